"""The built site, served on loopback, and a headless Chromium to look at it."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def site() -> Path:
    """Folder of the built site."""
    if not (SITE / "index.html").is_file():
        (pytest.fail if os.environ.get("DROT_REQUIRE_SITE") == "1" else pytest.skip)(
            "there is no built site in _build/html: `make book` builds it"
        )
    return SITE


@pytest.fixture(scope="session")
def site_url(site: Path) -> Iterator[str]:
    """Address of the built site, with a closing slash."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """A Playwright browser; without Chromium a skip, or a failure under DROT_REQUIRE_BROWSER=1."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        (pytest.fail if os.environ.get("DROT_REQUIRE_BROWSER") == "1" else pytest.skip)(
            "no Chromium on this machine: the browser tests did not run"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # --no-sandbox: root in a container may not make one; every page comes from loopback.
        instance = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield instance
        instance.close()
