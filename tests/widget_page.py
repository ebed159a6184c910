"""What the tests of the site share: its pages, and a widget in Chromium, to be moved and read."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
BOOK, SITE = ROOT / "book", ROOT / "_build" / "html"
STATIC = BOOK / "_static"
TOC = re.findall(r"^\s*(?:- file|root): (\S+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
SOURCES = {name: (ROOT / f"{name}.md").read_text("utf8") for name in TOC}
PROBE = Path(__file__).with_name("site").joinpath("probe.js").read_text("utf8")
AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf8")
BOX = r'<div class="drot-widget" data-widget="(\w+)"'
WIDGETS = {widget: name for name, text in SOURCES.items() for widget in re.findall(BOX, text)}


def write_page(folder: Path, body: str, like: str = "book/index") -> Path:
    """A page under the styles of one of the site; scripts and styles of ours are those of today."""
    head = (SITE / f"{like}.html").read_text("utf8").partition("</head>")[0]
    links = "".join(re.findall(r'<link[^>]* rel="stylesheet"[^>]*>', head))
    ours = lambda found: next(  # noqa: E731
        file.as_uri() for root in (STATIC, SITE / "_static") if (file := root / found[1]).is_file()
    )
    file = folder / "page.html"
    file.write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Widget</title>{re.sub(STATICS, ours, links)}</head><body><main>"
        f'<article class="bd-article"><h1>Widget</h1>{re.sub(STATICS, ours, body)}</article>'
        "</main></body></html>",
        encoding="utf8",
    )
    return file


STATICS = re.compile(r'\.\./_static/([^"?]+)')


def embedded(widget: str) -> str:
    """The element and the scripts of a widget, as its chapter was built."""
    text = (SITE / f"{WIDGETS[widget]}.html").read_text("utf8")
    start = BOX.replace(r"(\w+)", widget)
    return re.search(rf'{start}.*?</div>\s*(?:<script src="[^"]*"></script>\s*)+', text, re.S)[0]


class Widget:
    """A widget in a page."""

    def __init__(self, page, name: str) -> None:
        self.page, self.name = page, name
        self.box = page.locator(f'[data-widget="{name}"]')
        self.find = self.box.locator
        self.handles = self.find("svg [role=button]")

    # ---- move

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name).click()

    def slider(self, name: str):
        return self.page.get_by_role("slider", name=name)

    def slide(self, name: str, read: Callable) -> tuple[list, str]:
        """What is read after each key of a slider, and what this says at its upper end."""
        slider, seen = self.slider(name), []
        for key in ("Home", "ArrowRight", "PageUp", "End"):
            slider.press(key)
            seen.append(read(self))
        return seen, slider.get_attribute("aria-valuetext")

    # ---- read

    def given(self, name: str):
        """What the chapter hands to the widget."""
        return json.loads(self.box.get_attribute(f"data-{name}"))

    def core(self, name: str, *given):
        """What a function of the widget's arithmetic returns."""
        given = [g.tolist() if isinstance(g, np.ndarray) else g for g in given]
        code = f"given => drot{self.name.capitalize()}.{name}(...given)"
        return self.page.evaluate(code, given)

    def says(self, name: str) -> str:
        return self.find(f'output [data-name="{name}"]').inner_text().replace("\u2212", "-")

    def numbers(self) -> dict[str, float]:
        """All numbers that are announced, to all digits; what is printed is these, rounded."""
        numbers = {}
        for name, value, text in self.find("output b").evaluate_all(
            "all => all.map(e => [e.dataset.name, e.dataset.value, e.innerText])"
        ):
            numbers[name], digits = float(value), len(text.partition(".")[2])
            told = float(text.replace("\u2212", "-"))
            assert told == pytest.approx(numbers[name], abs=0.51 * 10**-digits), name
            assert digits >= 2 or abs(numbers[name]) >= 100, f"{name} is told as {text}"
        return numbers

    def marks(self, found, *names: str) -> np.ndarray:
        """Numbers that marks hold, (marks, names); they are given by a selector or found."""
        found = self.find(found) if isinstance(found, str) else found
        read = "(all, names) => all.map(e => names.map(name => Number(e.getAttribute(name))))"
        return np.array(found.evaluate_all(read, list(names))).reshape(-1, len(names))

    def labels(self) -> list[str]:
        """Names of the points."""
        return self.handles.evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")

    def points(self) -> np.ndarray:
        """Where the points are, from their names; two decimals are all they have."""
        names = [name.replace("\u2212", "-") for name in self.labels()]
        found = (re.search(r"\((.*?), (.*?)\)", name).groups() for name in names)
        return np.array([[float(v) for v in pair] for pair in found])

    def chosen(self) -> int:
        """Number of the one point that is pressed."""
        (one,) = self.handles.evaluate_all(
            "all => all.flatMap((e, i) => e.getAttribute('aria-pressed') === 'true' ? [i] : [])"
        )
        return one

    def table(self) -> list[list[str]]:
        """The cells of the table that is folded away, (rows, columns)."""
        cells = "[...row.cells].map(cell => cell.textContent.replace('\\u2212', '-'))"
        code = f"all => all.map(row => {cells})"
        return self.find("tbody tr").evaluate_all(code)


@contextmanager
def opened(browser, address: str, widget: str, width: int = 1100) -> Iterator[Widget]:
    """A widget in a file, which may complain of nothing and ask nobody else."""
    page, said = browser.new_page(viewport={"width": width, "height": 900}), []
    page.emulate_media(reduced_motion="reduce")
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda m: m.type in ("error", "warning") and said.append(m.text))
    page.on("requestfailed", lambda r: said.append(r.url))
    page.on("request", lambda r: r.url.startswith("file:") or said.append(r.url))
    page.goto(address)
    page.evaluate(PROBE)
    found = Widget(page, widget)
    found.find("output").first.wait_for(timeout=10_000)
    page.locator(f'[data-widget="{widget}"]:not([data-running])').wait_for(timeout=120_000)
    yield found
    assert not said
    page.close()
