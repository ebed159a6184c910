"""What every widget of the book owes its reader: it stands still, fits, speaks, and is seen."""

import itertools
import runpy
from pathlib import Path

import numpy as np
import pytest
from widget_page import AXE, CHAPTERS, PROBE, contrast, height, open_page

POINTS = {".drot-ring": "stroke", ".drot-point": "fill"}
CURVES = {".drot-curve": "stroke"}
PRESSED, OTHERS = '[aria-pressed="true"] rect', '[aria-pressed="false"] rect'
# what a widget draws, by the property that makes it visible
MARKS = {
    "starts": {f".drot-class-{k}": "stroke" for k in range(10)} | {".drot-chosen": "stroke"},
    "prices": {".drot-probability": "fill", ".drot-dot": "fill", ".drot-cross": "stroke"},
    "seats": {".drot-probability": "fill", ".drot-point": "fill", ".drot-dot": "fill"},
    "row": CURVES | {".drot-probability": "fill", ".drot-cost": "stroke", ".drot-dot": "fill"},
    "symmetric": {**POINTS, ".drot-more": "fill", ".drot-less": "stroke"},
    "balance": {**POINTS, ".drot-more": "fill", ".drot-less": "stroke"},
    "growth": CURVES | {".drot-too-near": "stroke", ".drot-point": "fill", ".drot-dot": "fill"},
    "drift": {**POINTS, ".drot-over": "fill", ".drot-edge": "stroke"},
    "priors": {**POINTS, ".drot-mean": "stroke", ".drot-last": "stroke"},
    "match": {".drot-too-near": "stroke", ".drot-too-far": "stroke", ".drot-frame": "stroke"},
    "srgw": CURVES | {".drot-cross": "stroke", "[data-point] circle:nth-of-type(3)": "stroke"},
    "prototypes": {PRESSED: "stroke", OTHERS: "stroke", ".drot-probability": "fill"},
    "explorer": {".drot-tie-kept": "stroke", ".drot-chosen": "stroke"},
}
WORDS = {
    "starts": [],
    "prices": [".drot-axis", ".drot-word"],
    "seats": [".drot-axis"],
    "row": [".drot-axis", ".drot-tick"],
    "symmetric": [".drot-word"],
    "balance": [".drot-word"],
    "growth": [".drot-axis", ".drot-tick"],
    "drift": [],
    "priors": [".drot-word"],
    "match": [".drot-axis", ".drot-ink"],
    "srgw": [".drot-word", ".drot-axis"],
    "prototypes": [".drot-axis", "svg[role=img] [data-image]"],
    "explorer": [f".drot-class-{k}" for k in range(10)],
}
HITS = ".drot-hit, .drot-frame, [data-prototype] rect"  # what a finger must not miss
widgets = pytest.mark.parametrize("widget", CHAPTERS)


def states(page):
    """Stop where a reader may stop: after each button, at both ends of each slider."""
    yield "first"
    for button in page.locator(f"{page.box} .drot-buttons button").all():
        if button.is_enabled():
            button.click()
        yield button.inner_text()
        for slider in page.get_by_role("slider", disabled=False).all():
            for key in ("Home", "End"):
                slider.press(key)
                yield f"{button.inner_text()}, {key}"
    for select in page.locator(f"{page.box} select").all():
        for option in select.locator("option").all():
            select.select_option(option.get_attribute("value"))
            yield f"{select.get_attribute('id')}, {option.inner_text()}"
    for point in page.locator(f"{page.box} [data-prototype]").all():
        point.focus()
        yield point.get_attribute("aria-label")


@widgets
@pytest.mark.parametrize("width", [1100, 390])
def test_stands_still_and_fits(open_widget, widget, width):
    """No number and no sentence changes the height, and nothing is wider than the screen.

    On a phone in every state, where there is least room.
    """
    page = open_widget(widget, width=width)
    page.evaluate(PROBE.read_text("utf8"))
    first = height(page)
    for state in states(page) if width == 390 else ["first"]:
        assert height(page) == pytest.approx(first, abs=0.6), state
        facts = page.evaluate("probe.facts()")
        assert facts["overflow"] <= 0 and not facts["wide"], state
    for folded in page.locator(f"{page.box} summary").all():
        folded.click()
        facts = page.evaluate("probe.facts()")
        assert facts["overflow"] <= 0 and not facts["wide"], "with its table"
    if width == 390 and widget != "starts":  # whose maps are small
        pictures = [svg.bounding_box() for svg in page.locator(f"{page.box} svg").all()[:2]]
        for upper, lower in itertools.pairwise(pictures):
            assert lower["y"] >= upper["y"] + upper["height"]
        for hit in page.locator(page.box).locator(HITS).all():
            box = hit.bounding_box()
            assert min(box["width"], box["height"]) >= (15 if widget == "prototypes" else 24)


@widgets
def test_accessible(open_widget, widget):
    """What axe finds, contrast in both themes, and what is announced."""
    page = open_widget(widget)
    page.evaluate(AXE.read_text("utf8"))
    page.evaluate(PROBE.read_text("utf8"))
    if widget == "symmetric":  # points above and below the target
        page.get_by_role("button", name="star").click()
    for folded in page.locator(f"{page.box} details").all():
        folded.evaluate("e => { e.open = true }")
    assert not page.evaluate("probe.axe()")
    hues = page.locator(f"{page.box} .drot-numeral[aria-selected=false]").evaluate_all
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert not page.evaluate("probe.faint()"), theme
        for kind, attribute in MARKS[widget].items():
            assert contrast(page, kind, attribute) >= 3, (theme, kind)
        for kind in WORDS[widget]:
            assert contrast(page, kind, "fill") >= 4.5, (theme, kind)
        if widget == "explorer":
            assert len(set(hues("all => all.map(e => getComputedStyle(e).fill)"))) == 10, theme
    box = page.locator(page.box)  # what axe does not ask for
    assert box.get_attribute("role") == "group" and len(box.get_attribute("aria-label")) > 10
    output = box.locator("output")
    assert output.get_attribute("aria-live") == "polite" and output.inner_text().strip()
    for one in box.locator("input").all():
        assert one.get_attribute("id") in output.get_attribute("for").split()
        assert one.get_attribute("aria-valuetext")
    hints = box.locator("svg [aria-describedby], svg[aria-describedby]")
    assert hints.count() or widget in ("prices", "row", "seats", "growth", "starts")
    for one in hints.all()[:1]:
        text = page.locator(f"#{one.get_attribute('aria-describedby')}").inner_text()
        assert {"match": "swap", "srgw": "next cluster"}.get(widget, "arrow keys") in text


@pytest.mark.parametrize(
    ("widget", "label", "numbers", "ends", "text"),
    [
        ("row", "Bandwidth", ["eps", "perplexity", "cost"], None, "bandwidth "),
        ("row", "Target perplexity", ["perplexity", "eps", "cost"], None, "perplexity "),
        ("symmetric", "Target perplexity", ["xi", "symmetric"], [1.05, 2.95], "perplexity 2.95"),
        ("priors", "Bandwidth of the kernel", ["tau"], [0.3, 3], "bandwidth 3.00"),
        ("srgw", "From", ["t"], [0, 1], "100 % moved"),
    ],
)
def test_slider_by_keyboard(open_widget, widget, label, numbers, ends, text):
    """Each key moves the number of the slider, and all that is shown agrees with Python."""
    module = Path(__file__).with_name(f"test_{widget}_widget.py")
    agrees, seen = runpy.run_path(str(module))["assert_agrees"], []
    page = open_widget(widget)
    slider = page.get_by_role("slider", name=label)
    slider.focus()
    for key in ("Home", "ArrowRight", "PageUp", "End"):
        page.keyboard.press(key)
        seen.append(agrees(page))
    for name in numbers:
        assert (np.diff([shown[name] for shown in seen]) > 0).all(), name
    assert ends is None or [seen[k][numbers[0]] for k in (0, -1)] == pytest.approx(ends)
    assert slider.get_attribute("aria-valuetext").startswith(text)


@widgets
def test_without_javascript(browser, widget_files, widget):
    page = browser.new_page(java_script_enabled=False)
    page.goto(widget_files(widget).as_uri())
    finding = page.locator(".drot-widget .drot-finding")
    assert finding.is_visible() and len(finding.inner_text().split()) > 8
    assert page.locator(".drot-widget :is(input, svg)").count() == 0
    page.close()


@widgets
def test_in_the_chapter(browser, open_widget, site_url, widget):
    """The built chapter shows the widget, in the state that the other tests begin with."""
    page = open_page(browser, f"{site_url}book/{CHAPTERS[widget]}.html", widget)
    shown = page.locator(f"{page.box} output").inner_text()
    if widget not in ("row", "prototypes"):  # their chapters compute what they show
        own = open_widget(widget)
        assert shown == own.locator(f"{own.box} output").inner_text()
    assert not [text for text in page.said if "widgets" in text or "drot" in text]
    page.context.close()
