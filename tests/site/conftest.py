"""The built site, served on loopback, and a headless Chromium to look at it."""

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import widget_page
from widget_page import SITE, Widget

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def without(what: str, variable: str) -> None:
    """Skip, or fail where the variable says that it must be there."""
    (pytest.fail if os.environ.get(variable) == "1" else pytest.skip)(what)


@pytest.fixture(scope="session")
def site() -> Path:
    """Folder of the built site."""
    if not (SITE / "index.html").is_file():
        without("no built site in _build/html: `make book` builds it", "DROT_REQUIRE_SITE")
    return SITE


@pytest.fixture(scope="session")
def site_url(site: Path) -> Iterator[str]:
    """Address of the built site, with a closing slash."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        log_message = lambda *_: None  # noqa: E731

    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """A Playwright browser."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        without("no Chromium on this machine", "DROT_REQUIRE_BROWSER")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # --no-sandbox: root in a container may not make one; every page comes from loopback.
        instance = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield instance
        instance.close()


@pytest.fixture(scope="module")
def open_widget(browser, site, tmp_path_factory) -> Callable:
    """Opens a widget as its chapter embeds it; ``state``: what follows the address."""

    def open_one(widget: str, state: str = ""):
        body = widget_page.embedded(widget)
        file = widget_page.write_page(tmp_path_factory.mktemp(widget), body)
        return widget_page.opened(browser, file.as_uri() + state, widget)

    return open_one


@pytest.fixture
def widget(request, open_widget) -> Iterator[Widget]:
    """The widget that a test is named after: ``test_WIDGET_...``."""
    with open_widget(request.node.name.split("_")[1]) as found:
        yield found
