"""The widget of chapter 3 says what Python says: its solver, its two graphs, its numbers."""

from __future__ import annotations

import re

import drot
import numpy as np
import pytest
from scipy.stats import entropy
from widget_page import begin, chosen, labels_of, marks, points_of, readout, says, squared, table

WIDGET = "symmetric"
NUMBERS = ("before", "after", "mass", "symmetric")

LINE = [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
TURN = np.exp(1j * np.pi / 4 * np.arange(8))
OCTAGON = [[0, 0], *np.stack([TURN.real, TURN.imag], axis=1).tolist()]


def cloud(seed: int, n: int, *, decades: float = 0, apart: float = 0) -> list[list[float]]:
    """Points, each with a density of its own, in two clusters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 10 ** rng.uniform(-decades / 2, decades / 2, size=(n, 1))
    return (X + apart * rng.integers(0, 2, size=(n, 1))).tolist()


# ------------------------------------------------------------------------------------ the core


@pytest.mark.parametrize(
    ("points", "xi", "slack"),
    [
        (LINE, 1.5, [1]),
        ([[0, 0], [1, 0], [0.5, 0.8]], 1.7, []),
        ([[x, y] for y in (0.0, 9.0) for x in (-1.0, 0.0, 1.0)], 1.5, [1, 4]),
        ([[0, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]], 1.6, [0]),
        (OCTAGON, 6.0, [0]),
        (OCTAGON, 1.5, []),
        ([[-1, 0], [0, 0], [0, 0], [1, 0]], 2.5, [1, 2]),  # its middle is doubled
        (cloud(0, 11), 4.0, None),
        (cloud(1, 12, decades=2), 2.5, None),
        (cloud(2, 12, apart=12), 3.0, None),
        (cloud(5, 10, decades=2, apart=12), 6.0, None),
        (cloud(3, 8), 7.9, None),  # nearly even
        (cloud(4, 9), 1.06, None),  # nearly alone
    ],
)
def test_core_agrees_with_the_package(core, points, xi, slack):
    cost = squared(points)
    got = core("symmetricEntropicAffinity", cost, xi)
    want = drot.symmetric_entropic_affinity(cost, xi, tol=1e-11)
    assert got["residual"] <= 1e-8
    np.testing.assert_allclose(got["P"], want.plan.numpy(), rtol=0, atol=1e-6)
    assert got["slack"] == want.slack.tolist()
    if slack is not None:
        assert np.flatnonzero(got["slack"]).tolist() == slack
        assert (np.array(got["gamma"])[slack] == 0).all(), "slack to rounding only"


# ---------------------------------------------------------------------------------- in the page


def weights(page, panel: int, n: int) -> np.ndarray:
    """Off-diagonal entries that a panel draws, (n, n); each edge is as dark as its weight."""
    svg = page.locator(f"{page.box} svg").nth(panel)
    edges = svg.locator(".drot-edge")
    value, dark = marks(edges, "data-value", "stroke-opacity").T
    at = marks(svg.locator(".drot-point"), "cx", "cy")
    i, j = np.tril_indices(n, -1)
    ends = marks(edges, "x1", "y1", "x2", "y2")
    np.testing.assert_allclose(ends, np.hstack([at[i], at[j]]))
    plan = np.zeros((n, n))
    plan[i, j] = value
    np.testing.assert_allclose(dark * value.max(), value * dark.max(), rtol=0, atol=1e-12)
    assert 0 < dark.max() <= 1
    return plan + plan.T


def assert_agrees(page) -> dict[str, float]:
    """Both graphs and all numbers, against the package at the points that the page shows."""
    shown, points, i = readout(page), points_of(page), chosen(page)
    cost, xi = squared(points), shown["xi"]
    rows = drot.entropic_affinity(cost, xi, tol=1e-12).plan
    halved = drot.symmetrize(rows).numpy()
    symmetric = drot.symmetric_entropic_affinity(cost, xi, tol=1e-11)
    plan = symmetric.plan.numpy()

    for panel, want in enumerate((halved, plan)):
        off = want - np.diag(np.diag(want))
        np.testing.assert_allclose(weights(page, panel, len(cost)), off, rtol=0, atol=1e-6)
    assert shown["before"] == pytest.approx(xi, rel=1e-9)
    assert shown["after"] == pytest.approx(np.exp(entropy(halved[i])), rel=1e-6)
    assert shown["mass"] == pytest.approx(halved[i].sum(), rel=1e-6)
    assert shown["symmetric"] == pytest.approx(np.exp(entropy(plan[i])), rel=1e-5)

    slack, verdict = bool(symmetric.slack[i]), says(page, "verdict")
    assert verdict.startswith("Entropy slack" if slack else "Entropy saturated")
    assert not slack or f"perplexity {shown['symmetric']:.2f} > {xi:.2f}" in verdict
    assert f"point {i + 1} at ({points[i][0]:.2f}, {points[i][1]:.2f})" in says(page, "point")
    assert float(re.search(r"residual (\S+);", says(page, "solver"))[1]) <= 1e-8
    largest = max((one - np.diag(np.diag(one))).max() for one in (halved, plan))
    assert f"darkest edge {largest:.2f}" in says(page, "solver")
    return shown


def test_first_numbers(page):
    """The page opens at the counterexample, its middle point chosen."""
    shown = assert_agrees(page)
    assert points_of(page) == LINE and chosen(page) == 1
    assert shown["xi"] == 1.5
    assert shown["symmetric"] == pytest.approx(1.9430, abs=5e-5)
    assert says(page, "verdict") == "Entropy slack: perplexity 1.94 > 1.50."
    before, after = (
        page.locator(f"{page.box} svg").nth(k).locator(".drot-word").all_text_contents()
        for k in (0, 1)
    )
    assert after == ["1.50", "1.94", "1.50"]
    assert all(word.startswith("1.50 → ") for word in before)
    assert float(before[1].split()[-1]) == pytest.approx(shown["after"], abs=5.1e-3)


@pytest.mark.parametrize(
    ("name", "n", "slack"),
    [
        ("line of three", 3, [2]),
        ("two triples", 6, [2, 5]),
        ("two clusters", 12, None),
        ("star", 9, [1]),
    ],
)
def test_starts(page, name, n, slack):
    begin(page, name)
    assert_agrees(page)
    assert len(points_of(page)) == n
    right = page.locator(f"{page.box} svg").last
    assert right.locator("[data-point]").count() == n
    named = [i for i, name in enumerate(labels_of(page), 1) if ", slack" in name]
    assert named == slack if slack else named
    assert right.locator(".drot-over").count() == len(named), "a slack point is warm, and no other"
    assert right.locator(".drot-under").count() == 0


def test_points_move_by_keyboard(page):
    page.set_viewport_size({"width": 1100, "height": 500})  # there is something to scroll
    page.get_by_role("button", name="point 2").focus()
    seen = assert_agrees(page)["symmetric"]
    for key, (dx, dy) in {
        "ArrowUp": (0, 0.1),
        "ArrowRight": (0.1, 0),
        "ArrowDown": (0, -0.1),
        "Shift+ArrowUp": (0, 0.01),
        "Shift+ArrowLeft": (-0.01, 0),
    }.items():
        before = points_of(page)
        page.keyboard.press(key)
        after = points_of(page)
        np.testing.assert_allclose(np.subtract(after, before)[1], [dx, dy], atol=1e-9)
        assert (after[0], after[2]) == (before[0], before[2])
        last, seen = seen, assert_agrees(page)["symmetric"]
        assert seen != last, key
    scrolled = page.evaluate("scrollY")
    for _ in range(30):
        page.keyboard.press("ArrowUp")
    assert page.evaluate("scrollY") == scrolled, "the arrow key also scrolled the page"
    assert points_of(page)[1][1] < 1.2, "the point left its panel"
    assert marks(page.locator(f"{page.box} svg").first.locator(".drot-point"), "cy").min() >= 10
    assert says(page, "verdict").startswith("Entropy saturated"), "an acute angle is not slack"
    assert_agrees(page)


@pytest.mark.parametrize("panel", [0, 1])
def test_points_move_by_pointer(page, panel):
    svg = page.locator(f"{page.box} svg").nth(panel)

    def middle() -> np.ndarray:
        dot = svg.locator('[data-point="2"] .drot-point').bounding_box()
        return np.array([dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2])

    def frame() -> None:
        page.evaluate("() => new Promise(requestAnimationFrame)")

    start, scale = middle(), svg.bounding_box()["width"] / 340
    end = start - np.array([27, 54]) * scale
    page.mouse.move(start[0] + 3, start[1])  # off its middle: the point must not jump
    page.mouse.down()
    assert points_of(page) == LINE and chosen(page) == 2
    page.mouse.move(end[0] + 3, end[1], steps=4)
    page.wait_for_function(
        "old => !document.querySelector('[data-point=\"2\"]').ariaLabel.includes(old)",
        arg="(1.00, 0.00)",
    )
    frame()
    moved = points_of(page)
    assert middle() == pytest.approx(end, abs=1.5)
    both = marks(page.locator(f'{page.box} [data-point="2"] .drot-point'), "cx", "cy")
    assert np.array_equal(both[0], both[1]), "the point stands elsewhere in the other panel"
    page.mouse.up()
    np.testing.assert_allclose(moved[2], [1 - 27 / 95, 54 / 95], atol=0.011)
    assert moved[:2] == LINE[:2]
    assert_agrees(page)
    page.mouse.move(end[0] - 4, end[1])  # over the point, the button up
    frame()
    assert points_of(page) == moved
    page.keyboard.press("ArrowLeft")  # the same point listens to the keys
    assert points_of(page)[2][0] == pytest.approx(moved[2][0] - 0.1)


def test_points_are_touched(open_widget):
    """A finger on a point drags it; beside the points it scrolls."""
    page = open_widget(WIDGET, width=390)
    svg, touch = page.locator(f"{page.box} svg").first, "e => getComputedStyle(e).touchAction"
    assert svg.evaluate(touch) == "auto"
    assert svg.locator("[data-point]").first.evaluate(touch) == "none"
    svg.locator('[data-point="0"]').tap()
    assert chosen(page) == 0


def test_perplexity_by_keyboard(page):
    slider = page.get_by_role("slider", name="Target perplexity")
    slider.focus()
    seen = [assert_agrees(page)]
    for key in ("ArrowRight", "PageUp", "End"):
        page.keyboard.press(key)
        seen.append(assert_agrees(page))
        assert seen[-1]["xi"] > seen[-2]["xi"], key
        assert seen[-1]["symmetric"] > seen[-2]["symmetric"], key
    assert seen[-1]["xi"] == pytest.approx(3 - 0.05)
    page.keyboard.press("Home")
    assert assert_agrees(page)["xi"] == pytest.approx(1.05)
    assert slider.get_attribute("aria-valuetext") == "perplexity 1.05"
    begin(page, "star")
    slider.focus()
    page.keyboard.press("Home")
    notches = [readout(page)["xi"]]
    for _ in range(100):
        page.keyboard.press("ArrowRight")
        notches.append(float(page.locator('[data-name="xi"]').get_attribute("data-value")))
    steps = np.diff(np.log(notches))
    assert steps.min() > 0, "a notch without effect"
    assert steps.max() < 2 * np.log(8.95 / 1.05) / 100, "the scale is not logarithmic"


def test_points_are_chosen_by_tab_and_click(page):
    """The table lists them all."""
    begin(page, "two triples")
    rows = table(page)
    assert len(rows) == 6
    page.get_by_role("slider").focus()
    for i, row in enumerate(rows):
        page.keyboard.press("Tab")
        assert chosen(page) == i
        shown = assert_agrees(page)
        assert row[:5] == [str(i + 1), *(f"{shown[name]:.2f}" for name in NUMBERS)]
        assert row[5] in says(page, "verdict")
    rings = page.locator(f'{page.box} .drot-ring[visibility="visible"]')
    assert rings.count() == 2  # one in each panel
    page.locator(f"{page.box} svg").last.locator('[data-point="1"]').click()
    assert chosen(page) == 1
    assert_agrees(page)
    page.keyboard.press("Tab")
    assert chosen(page) == 2, "a click does not take the keyboard along"


def test_coincident_points_are_explained(open_widget):
    """Two points at one place have perplexity 2 or more; one step away all is well again."""
    page = open_widget(WIDGET, width=390)  # the sentence is long, and moves nothing even here
    box = page.locator(page.box)
    before = box.bounding_box()["height"]
    page.get_by_role("button", name="point 2").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert box.bounding_box()["height"] == pytest.approx(before, abs=0.6)
    assert points_of(page)[1] == points_of(page)[2]
    assert "2 points coincide" in says(page, "solver")
    assert says(page, "solver").count(".") == 2  # one sentence, and the point of 1.50
    assert says(page, "verdict") == ""
    assert page.locator(f'{page.box} [data-name="symmetric"]').inner_text() == "–"
    assert marks(page.locator(f"{page.box} .drot-edge"), "stroke-opacity").max() == 0
    page.keyboard.press("Shift+ArrowUp")
    assert_agrees(page)
    page.keyboard.press("Shift+ArrowDown")
    page.get_by_role("slider").focus()
    page.keyboard.press("End")  # above 2 the affinity exists again
    assert_agrees(page)


BOXES = "all => all.map(e => { const b = e.getBBox(); return [b.x, b.y, b.width, b.height]; })"
DARK = """all => all.filter(e => e.getAttribute('stroke-opacity') > 0.3)
    .map(e => ['x1', 'y1', 'x2', 'y2'].map(name => Number(e.getAttribute(name))))"""


@pytest.mark.parametrize("name", ["line of three", "two triples"])
def test_words_keep_clear_of_edges_and_points(page, name):
    """Also on the way to an acute angle, where edges rise beside the ends of the line."""
    begin(page, name)
    page.get_by_role("button", name="point 2").focus()
    t = np.linspace(0, 1, 200)[:, None]
    for _ in range(8):
        for panel in page.locator(f"{page.box} svg").all():
            points = panel.locator(".drot-point").evaluate_all(BOXES)
            ends = np.array(panel.locator(".drot-edge").evaluate_all(DARK))
            lines = np.concatenate([(1 - t) * e[:2] + t * e[2:] for e in ends])
            for x, y, w, h in panel.locator(".drot-word").evaluate_all(BOXES):
                assert 0 <= x <= 340 - w and 0 <= y <= 240 - h, "cut off"
                inside = abs(lines - [x + w / 2, y + h / 2]) < [w / 2, h / 2 - 2]
                assert not inside.all(axis=1).any(), "an edge under a word"
                for left, top, wide, tall in points:
                    beside = x + w < left or left + wide < x
                    assert beside or y + h < top + 1 or top + tall < y + 1
        page.keyboard.press("ArrowUp")
