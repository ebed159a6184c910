"""The built site, served on loopback, and a headless Chromium to look at it."""

import functools
import http.server
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import drot
import numpy as np
import pytest
import widget_page

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
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


def cells_of(widget: str) -> list[str]:
    """The cells of a widget's chapter up to its own, which comes last."""
    source = (widget_page.BOOK / f"{widget_page.CHAPTERS[widget]}.md").read_text("utf8")
    cells = re.findall(r"```\{code-cell\}.*?\n```", source, re.S)
    (last,) = (k for k, text in enumerate(cells) if f'data-widget="{widget}"' in text)
    return cells[: last + 1]


@pytest.fixture(scope="session")
def match() -> tuple[str, dict]:
    """The HTML that a cell of chapter 11 returns, and what it and the cell before it define."""
    first, *_, before, own = cells_of("match")
    names = {}
    exec("\n".join(re.findall(r"^(?:import|from) .*", first, re.M)), names)
    names |= {"HTML": str, "glue": lambda *_, **__: None}
    code = re.sub(r"^(```|:).*$", "", f"{before}\n{own}", flags=re.M)
    head, last = code.rsplit("\nHTML(", 1)
    exec(head, names)
    return eval("HTML(" + last, names), names


@pytest.fixture(scope="session")
def prototypes() -> tuple[str, dict]:
    """The HTML that a cell of chapter 14 returns, run on its own data, and these data."""
    cell = cells_of("prototypes")[-1]
    digits = drot.datasets.digits(300)
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(digits.X), perplexity=30).plan
    found = drot.distributional_reduction(C, 40, init="cluster_then_reduce", n_starts=1)
    names = {"digits": digits, "C": C, "found": found, "json": json, "HTML": str}
    head, last = cell[cell.index("data = {") : -4].rsplit("\nHTML(", 1)
    exec(head, names)
    return eval("HTML(" + last, names), names["data"]


@pytest.fixture(scope="session")
def widget_files(request, tmp_path_factory):
    """The test page of a widget, by its name."""

    @functools.cache
    def file(widget: str) -> Path:
        own = widget in ("match", "prototypes")
        body = request.getfixturevalue(widget)[0] if own else widget_page.embedded(widget)
        return widget_page.write_page(tmp_path_factory.mktemp(widget), body)

    return file


@pytest.fixture
def open_widget(browser, widget_files):
    """Opens widgets; at the end none of them may have complained, or asked for anything else."""
    pages = []

    def open_one(widget: str, **options):
        address = widget_files(widget).as_uri()
        pages.append(widget_page.open_page(browser, address, widget, **options))
        return pages[-1]

    yield open_one
    for page in pages:
        assert not page.said
        page.context.close()


@pytest.fixture
def page(request, open_widget):
    """The widget of the module that asks, on a wide screen."""
    return open_widget(request.module.WIDGET)


@pytest.fixture(scope="module")
def core(request, browser, widget_files):
    """Calls a function of the core in Chromium by its name."""
    widget = request.module.WIDGET
    page = widget_page.open_page(browser, widget_files(widget).as_uri(), widget)

    def evaluate(name: str, *given):
        given = [g.tolist() if isinstance(g, np.ndarray) else g for g in given]
        return page.evaluate(f"given => drot{widget.capitalize()}.{name}(...given)", given)

    yield evaluate
    assert not page.said
    page.context.close()
