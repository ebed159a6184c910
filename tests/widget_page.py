"""What the tests of the widgets share: a page in one file, Chromium before it, and its read-out."""

import json
import re
from importlib import resources
from pathlib import Path

import drot
import numpy as np
import pytest

BOOK = Path(__file__).resolve().parents[1] / "book"
STATIC = BOOK / "_static"
WIDGETS = STATIC / "widgets"
PROBE = Path(__file__).with_name("site") / "probe.js"
AXE = resources.files("axe_playwright_python").joinpath("axe.min.js")
CHAPTERS = {
    "starts": "index",
    "prices": "01_transport",
    "row": "02_entropic_affinity",
    "symmetric": "04_symmetric_affinity",
    "balance": "05_snekhorn",
    "growth": "06_map_size",
    "drift": "08_hidden_graphs",
    "priors": "09_graph_priors",
    "match": "11_reduction_as_gw",
    "seats": "12_semi_relaxed",
    "srgw": "13_clustering",
    "prototypes": "14_distributional",
    "explorer": "explorer",
}
SHEETS = [
    Path(str(resources.files(theme))) / f"theme/{theme}/static/styles/{theme.replace('_', '-')}.css"
    for theme in ("pydata_sphinx_theme", "sphinx_book_theme")
]
DIGITS = drot.datasets.digits(500)
PIXELS = "".join(chr(97 + int(level)) for level in DIGITS.X.flatten())
CLASSES = "".join(str(int(label)) for label in DIGITS.y)
COSTS = [0.0, 1.1, 1.6, 2.0, 2.3, 3.1, 4.0, 4.4, 5.8, 7.2, 8.5, 9.9]

TOWN = {
    "bakeries": [[1, 4], [3, 2], [3, 5]],
    "cafes": [[7, 1], [5, 2], [7, 4], [1, 0]],
    "has": [3, 6, 8],
    "wants": [2, 7, 2, 6],
    "beside": [1],
}
SEATS = {
    "points": [
        *([1, 1], [2, 1], [1, 2], [2, 2], [3, 1], [2, 3], [3, 2]),
        *([8, 1], [9, 1], [8, 2], [5, 6], [6, 6]),
    ],
    "places": [[2, 2], [8, 1], [6, 6]],
    "together": 7,
}

CORNERS = drot.sqeuclidean([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
PLANS = {  # of a square, without self-loops and with them
    key: drot.entropic_affinity(CORNERS, perplexity=5 * 2**-0.8, diagonal=diagonal).plan.tolist()
    for key, diagonal in (("off", "drop"), ("on", "keep"))
}


def embedded(widget: str) -> str:
    """The element and the scripts in a chapter's cell; what the cell computes is still to come."""
    text = (BOOK / f"{CHAPTERS[widget]}.md").read_text("utf8")
    start = re.escape(f'<div class="drot-widget" data-widget="{widget}"')
    return re.search(rf'{start}.*?</script>(?=""")', text, re.S)[0]


def write_page(folder: Path, body: str) -> Path:
    """A widget as a chapter embeds it, under the theme's own style sheets, in one file."""
    links = "".join(
        f'<link rel="stylesheet" href="{sheet.as_uri()}">'
        for sheet in (*SHEETS, STATIC / "book.css")
    )
    body = body.replace("../_static", STATIC.as_uri()).replace("{costs}", json.dumps(COSTS))
    body = body.replace("{pixels}", PIXELS).replace("{classes}", CLASSES)
    body = body.replace("{town}", json.dumps(TOWN)).replace("{hall}", json.dumps(SEATS))
    body = body.replace("{of_square}", json.dumps(PLANS))
    file = folder / "page.html"
    file.write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>Widget</title>{links}</head><body><main><article class="bd-article">'
        f"<h1>Widget</h1>{body}</article></main></body></html>",
        encoding="utf8",
    )
    return file


def open_page(browser, address: str, widget: str, width: int = 1100, motion: str = "reduce"):
    """A page that writes down, in ``said``, what it complains of and whom else it asks."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, reduced_motion=motion, has_touch=width < 500
    )
    page = context.new_page()
    page.box = f'[data-widget="{widget}"]'
    page.said = []
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("console", lambda m: m.type in ("error", "warning") and page.said.append(m.text))
    page.on("requestfailed", lambda r: page.said.append(r.url))
    if address.startswith("file:"):
        page.on("request", lambda r: r.url.startswith("file:") or page.said.append(r.url))
    page.goto(address)
    page.locator(f"{page.box} output").first.wait_for(timeout=10_000)
    page.locator(f"{page.box}:not([data-running])").wait_for(timeout=120_000)
    return page


def says(page, name: str) -> str:
    return page.locator(f'{page.box} output [data-name="{name}"]').inner_text()


def readout(page) -> dict[str, float]:
    """All numbers that the page announces, to all digits; what it prints is these, rounded."""
    numbers = {}
    for name, value, text in page.locator(f"{page.box} output b").evaluate_all(
        "all => all.map(e => [e.dataset.name, e.dataset.value, e.innerText])"
    ):
        numbers[name] = float(value)
        digits = len(text.partition(".")[2])
        assert float(text.replace("\u2212", "-")) == pytest.approx(
            numbers[name], abs=0.51 * 10**-digits
        ), name
        assert digits >= 2 or abs(numbers[name]) >= 100, f"{name} is told as {text}"
    return numbers


def marks(found, *names: str) -> np.ndarray:
    """Numbers that marks hold, (marks, names)."""
    read = "(all, names) => all.map(e => names.map(name => Number(e.getAttribute(name))))"
    return np.array(found.evaluate_all(read, list(names))).reshape(-1, len(names))


def labels_of(page) -> list[str]:
    """Names of the points."""
    points = page.locator(f"{page.box} svg [role=button]")
    return points.evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")


def points_of(page) -> list[list[float]]:
    """Where the points are, from their names; two decimals are all they have."""
    found = (re.search(r"\((.*?), (.*?)\)", name).groups() for name in labels_of(page))
    return [[float(v) for v in pair] for pair in found]


def squared(points) -> np.ndarray:
    """Squared distances, (n, n)."""
    X = np.asarray(points, dtype=float)
    return ((X[:, None] - X) ** 2).sum(axis=-1)


def chosen(page) -> int:
    """Number of the one point that is pressed."""
    (one,) = page.locator(f"{page.box} svg [role=button]").evaluate_all(
        "all => all.flatMap((e, i) => e.getAttribute('aria-pressed') === 'true' ? [i] : [])"
    )
    return one


def table(page) -> list[list[str]]:
    """The cells of the table that is folded away, (rows, columns)."""
    page.locator(f"{page.box} details").evaluate("e => { e.open = true }")
    return page.locator(f"{page.box} tbody tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.innerText))"
    )


def begin(page, name: str) -> None:
    """Press a button of which one is always in force."""
    button = page.get_by_role("button", name=name)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator(f'{page.box} .drot-buttons [aria-pressed="true"]').count() == 1


def height(page) -> float:
    return page.locator(page.box).bounding_box()["height"]


def contrast(page, kind: str, attribute: str) -> float:
    """WCAG contrast of the first mark of a kind against the ground of the widget."""
    return page.evaluate("given => probe.contrast(...given)", [page.box, kind, attribute])
