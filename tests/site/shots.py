"""Full-page pictures of the built site, to be looked at by hand.

python tests/site/shots.py book/index.html --out /some/folder [--dark] [--width 390]
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SET_THEME = "theme => { document.documentElement.dataset.theme = theme }"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing per request."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", help="paths inside the site, such as book/index.html")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--site", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--width", type=int, nargs="*", default=[1440, 390])
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--only", default=None, help="CSS selector: picture of that element alone")
    options = parser.parse_args()

    options.out.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(Quiet, directory=options.site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/"
    chromium = next(filter(None, map(shutil.which, BROWSERS)))
    theme = "dark" if options.dark else "light"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width in options.width:
            size = {"width": width, "height": 900}
            context = browser.new_context(viewport=size, color_scheme=theme)
            for name in options.pages:
                page = context.new_page()
                page.goto(base + name, wait_until="networkidle")
                page.wait_for_timeout(600)
                if page.locator("html").get_attribute("data-theme") != theme:
                    page.evaluate(SET_THEME, theme)
                stem = name.removesuffix(".html").replace("/", "_")
                target = options.out / f"{stem}-{width}-{theme}.png"
                if options.only:
                    page.locator(options.only).first.screenshot(path=target)
                else:
                    page.screenshot(path=target, full_page=True)
                print(target)
                page.close()
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
