"""The widget of chapter 12 shows what the chapter's cell gives it: members, weights, classes."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import drot
import numpy as np
import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book" / "_static"
SCRIPT = STATIC / "widgets" / "prototypes.js"
SOURCE = ROOT / "book" / "12_distributional.md"
CHAPTER = "book/12_distributional.html"
BOX = '[data-widget="prototypes"]'


@pytest.fixture(scope="module")
def given() -> tuple[str, dict]:
    """The HTML of the chapter's cell, run on its own data, and these data."""
    notebook = read_myst_markdown_notebook(
        SOURCE.read_text("utf8"), MdParserConfig(enable_extensions={"colon_fence"})
    )
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    (cell,) = (text for text in cells if 'data-widget="prototypes"' in text)
    digits = drot.datasets.digits(300)
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(digits.X), perplexity=30).plan
    found = drot.distributional_reduction(C, 40, init="cluster_then_reduce", n_starts=1)
    names = {"digits": digits, "C": C, "found": found, "json": json, "HTML": str}
    head, last = cell.rstrip().rsplit("\nHTML(", 1)
    exec(head, names)
    return eval("HTML(" + last, names), names["data"]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory, given) -> Path:
    """The widget as the chapter embeds it, under the theme's own style sheets, in one file."""
    sheets = [
        Path(str(resources.files(package)))
        / "theme"
        / package
        / "static"
        / "styles"
        / f"{name}.css"
        for package, name in (
            ("pydata_sphinx_theme", "pydata-sphinx-theme"),
            ("sphinx_book_theme", "sphinx-book-theme"),
        )
    ]
    links = "".join(
        f'<link rel="stylesheet" href="{sheet.as_uri()}">'
        for sheet in (*sheets, STATIC / "book.css")
    )
    body = given[0].replace("../_static/widgets", SCRIPT.parent.as_uri())
    assert SCRIPT.as_uri() in body
    file = tmp_path_factory.mktemp("widget") / "page.html"
    file.write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>Widget</title>{links}</head><body><main><article class="bd-article">'
        f"<h1>Widget</h1>{body}</article></main></body></html>",
        encoding="utf8",
    )
    return file


def open_page(browser, file: Path, width: int = 1100):
    """A page that fails the test where it complains or asks anyone else for anything."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, reduced_motion="reduce", has_touch=width < 500
    )
    page = context.new_page()
    page.said = []
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("console", lambda m: m.type in ("error", "warning") and page.said.append(m.text))
    page.on("request", lambda r: r.url.startswith("file:") or page.said.append(r.url))
    page.on("requestfailed", lambda r: page.said.append(r.url))
    page.goto(file.as_uri())
    page.locator(f"{BOX} output").wait_for()
    return page


@pytest.fixture
def page(browser, page_file):
    page = open_page(browser, page_file)
    yield page
    assert not page.said
    page.context.close()


def chosen(page) -> int:
    pressed = page.locator(f'{BOX} [data-prototype][aria-pressed="true"]')
    assert pressed.count() == 1
    assert pressed.get_attribute("tabindex") == "0"
    return int(pressed.get_attribute("data-prototype"))


def pick(page, a: int):
    return page.locator(f'{BOX} [data-prototype="{a}"]')


def pixels(page, place: str) -> np.ndarray:
    """An image as it is painted: opacity times 15, (side, side)."""
    found = np.zeros((8, 8), dtype=int)
    for d, ink in page.locator(f"{place} path").evaluate_all(
        "all => all.map(p => [p.getAttribute('d'), p.getAttribute('fill-opacity')])"
    ):
        for x, y in re.findall(r"M(\d) (\d)h1v1h-1z", d):
            assert found[int(y), int(x)] == 0
            found[int(y), int(x)] = round(15 * float(ink))
    return found


def image_of(i: int) -> np.ndarray:
    """The digit as scikit-learn has it, on the scale of the widget."""
    image = drot.datasets.digits(300).X[i].numpy().reshape(8, 8)
    return np.minimum(image.astype(int), 15)


def assert_shows(page, data: dict, a: int) -> None:
    """Members, counts and words of one prototype, against the plan."""
    assert chosen(page) == a
    labels, y = np.array(data["labels"]), np.array(data["classes"])
    own = (labels == a).nonzero()[0]
    panel = f"{BOX} svg[role=img]"
    shown = page.locator(f"{panel} [data-image]").evaluate_all(
        "all => all.map(e => Number(e.getAttribute('data-image')))"
    )
    assert shown == own[:24].tolist()
    bars = page.locator(f"{panel} [data-class]").evaluate_all(
        "all => all.map(e => ['data-class', 'data-count', 'height'].map(n => +e.getAttribute(n)))"
    )
    counts = np.bincount(y[own], minlength=10)
    assert [bar[:2] for bar in bars] == [[c, m] for c, m in enumerate(counts.tolist())]
    heights = np.array([bar[2] for bar in bars])
    np.testing.assert_allclose(heights / heights.max(), counts / counts.max(), atol=1e-9)
    words = page.locator(f'{BOX} [data-name="chosen"]').inner_text()
    weight, members = re.match(r"Weight ([\d.]+) %, (\d+) members?: ", words).groups()
    assert float(weight) == pytest.approx(100 * data["weights"][a], abs=0.0501)
    assert int(members) == len(own)
    told = {int(c): int(m) for m, c in re.findall(r"(\d+) of class (\d)", words)}
    assert told == {c: m for c, m in enumerate(counts.tolist()) if m}
    assert list(told.values()) == sorted(told.values(), reverse=True)


def test_begins_with_the_heaviest(page, given):
    assert_shows(page, given[1], int(np.argmax(given[1]["weights"])))


def test_the_map(page, given):
    """Every prototype is its medoid, at its place, with an area in proportion to its weight."""
    data = given[1]
    used = [a for a, w in enumerate(data["weights"]) if w > 0]
    assert page.locator(f"{BOX} [data-prototype]").count() == len(used)
    boxes, at = [], []
    for a in used:
        image = page.locator(f'{BOX} [data-prototype="{a}"] [data-image]')
        assert int(image.get_attribute("data-image")) == data["medoids"][a]
        x, y, scale = map(float, re.findall(r"-?[\d.]+", image.get_attribute("transform")))
        boxes.append(8 * scale)
        at.append([x + 4 * scale, -(y + 4 * scale)])
    for a in used[:5]:
        drawn = pixels(page, f'{BOX} [data-prototype="{a}"] [data-image]')
        np.testing.assert_array_equal(drawn, image_of(data["medoids"][a]))
    ratio = np.square(boxes) / np.array(data["weights"])[used]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    places, at = np.array(data["positions"])[used], np.array(at)
    places, at = places - places[0], at - at[0]
    unit = np.sum(places * at) / np.sum(places**2)  # one scale, no turn, no mirror
    assert unit > 0
    np.testing.assert_allclose(at, unit * places, atol=0.05)


def test_images_are_as_large_as_fits(page):
    """None hides another while all of them cover more than the least share of the map."""
    images = page.locator(f"{BOX} [data-prototype] [data-image]").evaluate_all(
        """all => all.map(e => {
            const { a, e: x, f: y } = e.transform.baseVal.consolidate().matrix;
            return [x, y, 8 * a];
        })"""
    )
    x, y, side = np.array(images).T
    view = page.locator(f"{BOX} svg").first.get_attribute("viewBox")
    width, height = map(float, view.split()[2:])
    assert min(x.min(), y.min(), width - (x + side).max(), height - (y + side).max()) > 1
    middle = np.stack([x + side / 2, y + side / 2], axis=1)
    apart = np.abs(middle[:, None] - middle).max(axis=2)  # (k, k)
    room = (apart - (side[:, None] + side) / 2)[~np.eye(len(side), dtype=bool)]
    covered = np.square(side).sum() / (width * height)
    assert 0.0299 < covered < 0.1201
    if covered > 0.0301:
        assert room.min() > 2
    if covered < 0.1199:
        assert room.min() < 3


def test_pointing_and_focus(page, given):
    data = given[1]
    order = np.argsort(np.array(data["positions"])[:, 0], kind="stable").tolist()
    order = [a for a in order if data["weights"][a] > 0]
    pick(page, chosen(page)).focus()
    page.keyboard.press("Home")
    assert_shows(page, data, order[0])
    scrolled = page.evaluate("scrollY")
    for a in order[1:]:
        page.keyboard.press("ArrowRight")
        assert page.locator(":focus").get_attribute("data-prototype") == str(a)
        assert_shows(page, data, a)
    page.keyboard.press("ArrowDown")  # the end is the end
    assert chosen(page) == order[-1]
    page.keyboard.press("ArrowLeft")
    assert chosen(page) == order[-2]
    assert page.evaluate("scrollY") == scrolled
    least = min(order, key=lambda a: data["weights"][a])  # the smallest can be pointed at
    pick(page, least).dispatch_event("pointerenter", {"pointerType": "mouse"})
    assert_shows(page, data, least)
    page.mouse.move(0, 0)
    assert chosen(page) == least, "what was pointed at stays"


def test_members_are_painted(page, given):
    panel = f"{BOX} svg[role=img]"
    first = page.locator(f"{panel} [data-image]").first
    i = int(first.get_attribute("data-image"))
    np.testing.assert_array_equal(pixels(page, f'{panel} [data-image="{i}"]'), image_of(i))


def test_tab_goes_in_and_out(page):
    """Forty images are one stop of the Tab key."""
    pick(page, chosen(page)).focus()
    page.keyboard.press("Tab")
    assert page.locator(f"{BOX} :focus").count() == 0


@pytest.mark.parametrize("width", [1100, 390])
def test_nothing_moves(browser, page_file, width):
    """No choice changes the height of the widget, and nothing is wider than the screen."""
    page = open_page(browser, page_file, width)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    height = page.locator(BOX).bounding_box()["height"]
    pick(page, chosen(page)).focus()
    page.keyboard.press("Home")
    for _ in range(39):
        page.keyboard.press("ArrowRight")
        assert page.locator(BOX).bounding_box()["height"] == pytest.approx(height, abs=0.6)
    facts = page.evaluate("probe.facts()")
    assert facts["overflow"] <= 0 and not facts["wide"]
    assert not page.said
    page.context.close()


def test_tap(browser, page_file, given):
    """On a phone, where nothing hovers."""
    page = open_page(browser, page_file, width=390)
    upper, lower = (page.locator(f"{BOX} svg").nth(i).bounding_box() for i in (0, 1))
    assert lower["y"] >= upper["y"] + upper["height"]
    before = chosen(page)
    for a in range(40):
        box = pick(page, a).locator("rect").bounding_box()
        assert min(box["width"], box["height"]) >= 15
    other = page.locator(f'{BOX} [data-prototype][aria-pressed="false"]').last  # drawn on top
    a = int(other.get_attribute("data-prototype"))
    other.tap()
    assert a != before
    assert_shows(page, given[1], a)
    page.context.close()


def test_accessible(page):
    """What axe finds, and contrast in both themes."""
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf8")
    page.evaluate(axe)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    assert not page.evaluate("probe.axe()")
    inks = []
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert not page.evaluate("probe.faint()"), theme
        inks.append(
            page.locator(f"{BOX} [data-image]").first.evaluate("e => getComputedStyle(e).fill")
        )
        for state in ("true", "false"):
            frame = f'[aria-pressed="{state}"] rect'
            assert contrast(page, frame, "stroke") >= 3, (theme, state)
        assert contrast(page, "svg[role=img] [data-image]", "fill") >= 7, theme
    assert inks[0] != inks[1], "the ink follows the theme"


def contrast(page, kind: str, attribute: str) -> float:
    """WCAG contrast of the first mark of a kind against the ground of the widget."""
    pair = page.evaluate(
        """([box, kind, attribute]) => [
            getComputedStyle(document.querySelector(`${box} ${kind}`))[attribute],
            getComputedStyle(document.querySelector(box)).backgroundColor,
        ]""",
        [BOX, kind, attribute],
    )

    def light(colour: str) -> float:
        rgb = np.array([float(v) for v in re.findall(r"[\d.]+", colour)[:3]]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted(map(light, pair))
    return (high + 0.05) / (low + 0.05)


def test_labelled(page):
    assert page.locator(f"{BOX} output").get_attribute("aria-live") == "polite"
    first = page.locator(f"{BOX} [data-prototype]").first
    assert re.match(
        r"Prototype with a weight of [\d.]+ %, most often class \d",
        first.get_attribute("aria-label"),
    )
    hint = first.get_attribute("aria-describedby")
    assert "arrow keys" in page.locator(f"#{hint}").inner_text()
    for panel in page.locator(f"{BOX} svg").all():
        assert len(panel.get_attribute("aria-label")) > 15


def test_small_and_its_own(given):
    """Less than 200 kB in all, and no address but that of its script."""
    html = given[0]
    assert len(html.encode()) + SCRIPT.stat().st_size < 200_000
    assert re.findall(r'(?:src|href)="([^"]*)"', html) == [
        "../_static/widgets/common.js",
        "../_static/widgets/prototypes.js",
    ]
    assert re.findall(
        r"https?://[^\s\"']+",
        html + SCRIPT.read_text("utf8") + (SCRIPT.parent / "common.js").read_text("utf8"),
    ) == ["http://www.w3.org/2000/svg"]


def test_without_javascript(browser, page_file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator(f"{BOX} .drot-finding").is_visible()
    assert page.locator(f"{BOX} svg").count() == 0
    context.close()


@pytest.mark.parametrize("what", ["image", "weight"])
def test_refuses_what_does_not_fit(browser, page_file, tmp_path, what):
    """Data that contradict themselves say so, instead of a wrong picture."""
    text = page_file.read_text("utf8")
    cut = {"image": ('"images": "0', '"images": "'), "weight": ('"weights": [', '"weights": [1, ')}
    assert cut[what][0] in text
    file = tmp_path / "wrong.html"
    file.write_text(text.replace(*cut[what], 1), encoding="utf8")
    page = browser.new_page()
    said = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.as_uri())
    assert any(f"{what}" in error and "needs" in error for error in said)
    page.close()


def test_in_the_chapter(browser, site, site_url):
    """The built chapter shows the widget."""
    assert (site / CHAPTER).is_file()
    page = browser.new_page()
    page.goto(site_url + CHAPTER)
    page.locator(f"{BOX} output").wait_for()
    data = json.loads(page.locator(f'{BOX} script[type="application/json"]').inner_text())
    assert_shows(page, data, int(np.argmax(data["weights"])))
    assert len(page.locator(f"{BOX} > .drot-finding").last.inner_text().split()) > 8
    page.close()
