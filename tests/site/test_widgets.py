"""What every widget of the book owes its reader: it stands still, fits, speaks, and is seen."""

import itertools
import re

import pytest
from bs4 import BeautifulSoup
from widget_page import AXE, STATIC, WIDGETS, Widget, embedded

# what they draw, by the property that makes it visible
DRAWN = {
    "stroke": ".drot-ring, .drot-curve, .drot-cost, .drot-cross, .drot-less, .drot-too-near,"
    ".drot-too-far, .drot-frame, .drot-mean, .drot-last, .drot-edge, .drot-chosen, .drot-tie-kept,"
    ".drot-tie-lost, .drot-dots, [data-point] path + circle, [data-prototype] rect",
    "fill": ".drot-point:not(.drot-less), .drot-probability, .drot-dot, .drot-ink, [data-image]",
}
WORDS = "svg text:not(.drot-number)"  # a number lies on a mark
HITS = ".drot-hit, .drot-frame, [data-prototype] rect"  # what a finger must not miss


@pytest.mark.parametrize("name", WIDGETS)
def test_widget_is_seen_speaks_and_stands_still(open_widget, name):
    with open_widget(name) as widget:
        if name == "symmetric":  # points above and below the target
            widget.press("star")
        assert_seen(widget)
        assert_speaks(widget)
        for width in (1100, 390):
            widget.page.set_viewport_size({"width": width, "height": 900})
            assert_stands_still(widget, width)


def assert_seen(widget: Widget) -> None:
    """What axe finds, its table too, and contrast in both themes."""
    ask, folds = widget.page.evaluate, widget.find("details")
    folds.evaluate_all("all => all.forEach(e => { e.open = true })")
    ask(AXE)
    assert not ask("probe.axe()")
    for theme in ("light", "dark"):
        ask("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert not ask("probe.faint()"), theme
        for attribute, kinds in DRAWN.items():
            assert not ask("given => probe.pale(...given)", [kinds, attribute, 3]), theme
        assert not ask("given => probe.pale(...given)", [WORDS, "fill", 4.5]), theme
        hues = "all => new Set(all.map(e => getComputedStyle(e).fill)).size"
        hues = widget.find(".drot-numeral[aria-selected=false]").evaluate_all(hues)
        assert hues == (10 if widget.name == "explorer" else 0)
    folds.evaluate_all("all => all.forEach(e => { e.open = false })")


def assert_speaks(widget: Widget) -> None:
    """What axe does not ask for."""
    box, output = widget.box, widget.find("output")
    assert box.get_attribute("role") == "group" and len(box.get_attribute("aria-label")) > 10
    assert output.get_attribute("aria-live") == "polite" and output.inner_text().strip()
    for one in widget.find("input").all():
        assert one.get_attribute("id") in output.get_attribute("for").split()
        assert one.get_attribute("aria-valuetext")
    hints = widget.find("svg [aria-describedby], svg[aria-describedby]")
    assert hints.count() or widget.name in ("prices", "row", "seats", "growth", "starts")
    for one in hints.all()[:1]:
        text = widget.page.locator(f"#{one.get_attribute('aria-describedby')}").inner_text()
        assert {"match": "swap", "srgw": "next cluster"}.get(widget.name, "arrow keys") in text


def states(widget: Widget):
    """Stop where a reader may stop: after each button, at both ends of each slider."""
    yield "first"
    for button in widget.find(".drot-buttons button").all():
        if button.is_enabled():
            button.click()
        if pressed := button.get_attribute("aria-pressed"):  # of such, one is always in force
            assert pressed == "true"
            assert button.locator("xpath=../*[@aria-pressed='true']").count() == 1
        yield button.inner_text()
        for slider in widget.find("input[type=range]:enabled").all():
            for key in ("Home", "End"):
                slider.press(key)
                yield f"{button.inner_text()}, {key}"
    for select in widget.find("select").all()[:3]:  # of the left map
        for option in select.locator("option").all():
            select.select_option(option.get_attribute("value"))
            yield f"{select.get_attribute('id')}, {option.inner_text()}"
    for point in widget.find("[data-prototype]").all():
        point.focus()
        yield point.get_attribute("aria-label")


def assert_stands_still(widget: Widget, width: int) -> None:
    """No number and no sentence changes the height, and nothing is wider than the screen.

    On a phone in every state, where there is least room.
    """
    first = widget.box.bounding_box()["height"]
    for state in states(widget) if width == 390 else ["first"]:
        assert not widget.page.evaluate("probe.room()"), state
        assert widget.box.bounding_box()["height"] == pytest.approx(first, abs=0.6), state
    for folded in widget.find("summary").all():
        folded.click()
        assert not widget.page.evaluate("probe.room()"), "with its table"
        folded.click()
    if width == 390 and widget.name != "starts":  # whose maps are small
        pictures = [svg.bounding_box() for svg in widget.find("svg").all()[:2]]
        for upper, lower in itertools.pairwise(pictures):
            assert lower["y"] >= upper["y"] + upper["height"]
        for hit in widget.find(HITS).all():
            box = hit.bounding_box()
            assert min(box["width"], box["height"]) >= (15 if widget.name == "prototypes" else 24)


@pytest.mark.parametrize("name", WIDGETS)
def test_without_javascript(site, name):
    """The chapter holds a finding, and nothing that waits for a script."""
    box = BeautifulSoup(embedded(name), "html.parser")
    assert len(box.select_one("p.drot-finding").text.split()) > 8 and not box.select("input, svg")


def test_what_is_drawn_is_looked_at():
    """No class of marks has another name than in the scripts."""
    scripts = "".join(file.read_text("utf8") for file in (STATIC / "widgets").glob("*.js"))
    assert all(kind in scripts for kind in re.findall(r"drot-[\w-]+", "".join(DRAWN.values())))
