"""The widget of chapter 11 says what Python says: its objective, its curve, its moves."""

from __future__ import annotations

import itertools
import json
import re
from functools import partial
from importlib import resources
from pathlib import Path

import drot
import numpy as np
import pytest
import widget_page
from widget_page import node, write_page

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("srgw_core.js", "srgw.js")
CHAPTER = "book/11_clustering.html"
BOX = '[data-widget="srgw"]'
open_page = partial(widget_page.open_page, box=BOX)
contrast = partial(widget_page.contrast, box=BOX)
NUMBERS = ("t", "objective", "chord", "kmeans")
MARK = [[2.0, -3, 1], [-3, 2, 1], [1, 1, -2]]  # prp-soft-wins


def gram(X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=float)
    X = X - X.mean(axis=0)
    return X @ X.T


def squared(X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=float)
    return ((X[:, None] - X[None]) ** 2).sum(axis=-1)


def random_case(seed: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(n, n))
    T = rng.dirichlet(np.full(k, 0.4), size=n) / n
    return C + C.T, T


CASES = {
    "two": random_case(0, 5, 2),
    "three": random_case(1, 9, 3),
    "many": random_case(2, 12, 4),
    "one cluster": random_case(3, 4, 1),
    "an empty cluster": (MARK, np.array([[1, 0, 0], [0, 0, 1], [0.5, 0, 0.5]]) / 3),
    "constant": (np.ones((4, 4)), np.full((4, 2), 1 / 8)),
}


def plan_of(labels, k: int) -> np.ndarray:
    return np.eye(k)[list(labels)] / len(labels)


def energy(C, D, T) -> float:
    """The objective by its definition: all pairs of pairs."""
    pairs = (np.asarray(C)[:, :, None, None] - np.asarray(D)) ** 2
    return float(np.einsum("ijkl,ik,jl", pairs, T, T))


def structure_of(C, T) -> np.ndarray:
    """The package's small matrix, 0 for empty clusters."""
    used = T.sum(axis=0) > 0
    D = np.zeros((T.shape[1],) * 2)
    D[np.ix_(used, used)] = drot.coarsen(C, T[:, used]).structure.numpy()
    return D


def value_of(C, T) -> float:
    return energy(C, structure_of(C, T), T)


def kmeans_of(C, T) -> float:
    D = structure_of(C, T)
    return float(np.trace(np.asarray(C)) / len(T) - T.sum(axis=0) @ np.diag(D))


# ------------------------------------------------------------------------------- the test page


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    """The widget as the chapter embeds it, under the theme's own style sheets, in one file."""
    widget = (
        '<div class="drot-widget" data-widget="srgw" data-start="clouds" '
        'data-clusters="3"><p class="drot-finding">Between two memberships the objective bends '
        "downwards, so the best plan of the segment is at one of its ends.</p></div>"
    )
    return write_page(tmp_path_factory.mktemp("widget"), widget, SCRIPTS)


@pytest.fixture
def page(browser, page_file):
    page = open_page(browser, page_file)
    yield page
    assert not page.said
    page.context.close()


@pytest.fixture(scope="module")
def core(browser, page_file):
    """Calls a function of the core in Chromium: core(name, *arguments)."""
    page = open_page(browser, page_file)
    yield lambda name, *given: page.evaluate(
        "([name, given]) => drotSrgw[name](...given)",
        [name, [g.tolist() if isinstance(g, np.ndarray) else g for g in given]],
    )
    assert not page.said
    page.context.close()


# ------------------------------------------------------------------------------------ the core


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_python(core, name):
    C, T = CASES[name]
    found = core("reduced", C, T)
    D = structure_of(C, T)
    np.testing.assert_allclose(found["structure"], D, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["weights"], T.sum(axis=0), rtol=0, atol=1e-14)
    assert found["value"] == pytest.approx(energy(C, D, T), rel=1e-10, abs=1e-12)
    assert core("kmeans", C, T) == pytest.approx(kmeans_of(C, T), rel=1e-10, abs=1e-12)
    other = np.random.default_rng(0).normal(size=D.shape)
    other = other + other.T
    fixed = core("objective", C, other, T)
    assert fixed == pytest.approx(energy(C, other, T), rel=1e-10)
    if T.shape[1] > 1:  # the package compares at least two points
        assert fixed == pytest.approx(drot.gw_objective(C, other, T), rel=1e-10)


def test_golden_numbers(core):
    """The numbers of prp-soft-wins, and those of the first row of the k-means table."""
    soft = np.array([[1, 0], [0, 1], [0.5, 0.5]]) / 3
    assert core("reduced", MARK, soft)["value"] == pytest.approx(206 / 81, rel=1e-14)
    for labels in itertools.product(range(2), repeat=3):
        value = core("reduced", MARK, core("hard", labels, 2))["value"]
        want = 34 / 9 if len(set(labels)) == 1 else 25 / 9
        assert value == pytest.approx(want, rel=1e-14)
    X = np.array([[0.0, 0], [0, 2], [2, 1]])
    # C has the mean square 49/9; the clusters keep (13/6)^2, and 4/9 + 2 * 2/9 + 25/9
    for labels, value, cost in (((0, 1, 1), 3 / 4, 5 / 6), ((0, 0, 1), 16 / 9, 2 / 3)):
        plan = core("hard", labels, 2)
        assert core("reduced", X @ X.T, plan)["value"] == pytest.approx(value, rel=1e-12)
        assert core("kmeans", X @ X.T, plan) == pytest.approx(cost, rel=1e-12)


def test_similarities(core):
    X = np.random.default_rng(4).normal(size=(7, 2)) + 3
    np.testing.assert_allclose(core("products", X, [1, 1]), gram(X), rtol=0, atol=1e-12)
    centred = X - X.mean(axis=0)
    want = centred @ np.diag([2.5, -0.5]) @ centred.T
    np.testing.assert_allclose(core("products", X, [2.5, -0.5]), want, rtol=0, atol=1e-12)
    np.testing.assert_allclose(core("sqeuclidean", X), squared(X), rtol=0, atol=1e-12)


def test_segment(core):
    C, T = CASES["three"]
    S = random_case(9, 9, 3)[1]
    curve = core("segment", C, S, T, 10)
    want = [value_of(C, (1 - t) * S + t * T) for t in np.linspace(0, 1, 11)]
    np.testing.assert_allclose(curve, want, rtol=1e-10)
    np.testing.assert_allclose(core("mix", S, T, 0.3), 0.7 * S + 0.3 * T, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["two", "three", "many"])
def test_best_move(core, name):
    """The best of all single moves, walked to an end where none is left."""
    C, T = CASES[name]
    n, k = T.shape
    labels = np.random.default_rng(5).integers(k, size=n)
    for _ in range(60):
        values = {}
        for i, a in itertools.product(range(n), range(k)):
            trial = labels.copy()
            trial[i] = a
            values[i, a] = value_of(C, plan_of(trial, k))
        now = value_of(C, plan_of(labels, k))
        move = core("bestMove", C, labels, k)
        if move is None:
            assert min(values.values()) >= now - 1e-9
            return
        assert move["value"] == pytest.approx(min(values.values()), rel=1e-10)
        assert values[move["i"], move["to"]] == pytest.approx(move["value"], rel=1e-10)
        assert move["from"] == labels[move["i"]]
        labels[move["i"]] = move["to"]
    pytest.fail("the moves do not end")


REFUSED = [
    ("similarity", [[0, 1], [2, 0]], [[0.5], [0.5]]),
    ("similarity", [[0, 1, 2], [1, 0, 1]], [[0.5], [0.5]]),
    ("similarity", "0, 1", [[0.5], [0.5]]),
    ("plan", [[0, 1], [1, 0]], [[0.5, 0.5], [0.5, 0.5]]),
    ("plan", [[0, 1], [1, 0]], [[0.7, -0.2], [0.5, 0]]),
    ("plan", [[0, 1], [1, 0]], [[0.5], [0.5], [0.5]]),
]


@pytest.mark.parametrize(("what", "C", "T"), REFUSED)
def test_refuses(core, what, C, T):
    import playwright.sync_api

    with pytest.raises(playwright.sync_api.Error, match=f"a {what} must"):
        core("reduced", C, T)


def test_node_agrees_too():
    """The same file is a module of Node; an infinite entry cannot travel there through JSON."""
    program = """
    const core = require(process.argv[1]);
    const [C, T] = JSON.parse(require("fs").readFileSync(0, "utf8"));
    let said = "nothing";
    try { core.reduced([[Infinity]], [[1]]); } catch (error) { said = error.message; }
    process.stdout.write(JSON.stringify({ ...core.reduced(C, T), said }));
    """
    C, T = CASES["many"]
    said = node(program, [C.tolist(), T.tolist()], core=SCRIPTS[0])
    found = json.loads(said)
    assert found["said"] == "entries must be finite"
    assert found["value"] == pytest.approx(value_of(C, T), rel=1e-10)
    np.testing.assert_allclose(found["structure"], structure_of(C, T), rtol=0, atol=1e-12)


# ---------------------------------------------------------------------------------- in the page

STARTS = {
    "three clouds": (12, 3, gram),
    "a ring and its middle": (12, 2, squared),
    "three points": (3, 2, lambda X: np.array(MARK)),
}


def says(page, name: str) -> str:
    return page.locator(f'{BOX} output [data-name="{name}"]').inner_text()


def pressed(page) -> str:
    names = page.locator(f'{BOX} .drot-buttons [aria-pressed="true"]').all_inner_texts()
    assert len(names) == 1
    return next(name for name in STARTS if names[0].startswith(name))


def slider(page, which: str):
    return page.get_by_role("slider", name=which)


def clusters_of(page) -> int:
    return int(slider(page, "Clusters").input_value())


def plan_shown(page) -> np.ndarray:
    """The plan that the discs and their names tell, (n, k)."""
    k, t = clusters_of(page), float(number(page, "t"))
    rows = []
    for name in page.locator(f"{BOX} svg [role=button]").evaluate_all(
        "all => all.map(e => e.getAttribute('aria-label'))"
    ):
        row = np.zeros(k)
        if shared := re.search(r"shared, \d+ % in cluster (\d) and (\d+) % in cluster (\d)", name):
            row[int(shared[1]) - 1] = 1 - t
            row[int(shared[3]) - 1] += t
            assert int(shared[2]) == round(100 * t)
        else:
            row[int(re.search(r"in cluster (\d)$", name)[1]) - 1] = 1
        rows.append(row)
    return np.array(rows) / len(rows)


def number(page, name: str) -> float:
    return float(page.locator(f'{BOX} output [data-name="{name}"]').get_attribute("data-value"))


def similarity(page) -> np.ndarray:
    """From where the discs are drawn: the units cancel in no number, so they are read as well."""
    name = pressed(page)
    at = page.locator(f"{BOX} .drot-hit").evaluate_all(
        "all => all.map(c => [c.getAttribute('cx'), c.getAttribute('cy')].map(Number))"
    )
    unit = {"three clouds": 46, "a ring and its middle": 50, "three points": 46}[name]
    X = np.round((np.array(at) - [170, 120]) / [unit, -unit], 6)
    return STARTS[name][2](X)


def curve(page, which: str) -> np.ndarray:
    path = page.locator(f'{BOX} [data-curve="{which}"]')
    return np.array(json.loads(path.get_attribute("data-values")))


def assert_agrees(page) -> dict[str, float]:
    """Discs, curve, tangent and numbers, against Python."""
    shown = {name: number(page, name) for name in NUMBERS}
    for name, value in shown.items():
        text = page.locator(f'{BOX} output [data-name="{name}"]').inner_text()
        assert float(text) == pytest.approx(value, abs=5.1e-3 if name == "t" else 5.1e-4)
    C, T, t = similarity(page), plan_shown(page), shown["t"]
    values, held = curve(page, "reduced"), curve(page, "fixed")
    assert shown["objective"] == pytest.approx(value_of(C, T), rel=1e-9, abs=1e-9)
    sign = -1 if pressed(page) == "a ring and its middle" else 1  # distances: that of -C
    assert shown["kmeans"] == pytest.approx(sign * kmeans_of(C, T), rel=1e-9, abs=1e-9)
    assert shown["kmeans"] > 0 or pressed(page) == "three points"
    label = page.get_by_text(re.compile("^Clusters k = "))
    assert label.inner_text() == f"Clusters k = {clusters_of(page)}"
    assert shown["chord"] == pytest.approx((1 - t) * values[0] + t * values[-1], rel=1e-9)
    at = round(100 * t)
    assert values[at] == pytest.approx(shown["objective"], rel=1e-9)
    assert held[at] == pytest.approx(shown["objective"], rel=1e-9)  # they touch
    assert (held >= values - 1e-9 * np.abs(values)).all()  # and never cross
    np.testing.assert_allclose(np.diff(held, 3), 0, atol=1e-8 * np.abs(held).max())  # a parabola
    # what is drawn is what is held: the solid curve has its extremes where its values have
    heights = np.array(
        [
            float(y)
            for y in re.findall(
                r" (-?[\d.]+)",
                page.locator(f'{BOX} [data-curve="reduced"]').get_attribute("d"),
            )
        ]
    )
    assert len(heights) == 101
    if np.ptp(values) > 1e-9:
        fit = np.polyfit(values, heights, 1)
        assert fit[0] < 0  # more is higher
        np.testing.assert_allclose(np.polyval(fit, values), heights, atol=2e-3)
        dot = page.locator(f"{BOX} .drot-dot")
        assert float(dot.get_attribute("cy")) == pytest.approx(heights[at], abs=2e-3)
        assert float(dot.get_attribute("cx")) == pytest.approx(14 + t * 312)
    ends = page.locator(f"{BOX} [data-end]").all_text_contents()
    assert ends == [f"before: {values[0]:.3f}", f"after: {values[-1]:.3f}"]
    # the verdict
    best = min(values[0], values[-1])
    if says(page, "verdict").startswith("Sharing wins"):
        assert values.min() < best - 1e-9
        assert f"{values.min():.3f}" in says(page, "verdict")
    elif says(page, "verdict").startswith("Sharing does not pay"):
        assert values.min() >= best - 1e-9 * abs(best)
    else:
        assert says(page, "verdict") == "Before and after are the same."
    return shown


def begin(page, name: str) -> None:
    button = page.get_by_role("button", name=name)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"


def test_first_numbers(page):
    """The page opens on three clouds, on the way from a jumble to the clouds."""
    shown = assert_agrees(page)
    assert shown["t"] == 0.3 and clusters_of(page) == 3
    assert says(page, "verdict").startswith("Sharing does not pay")
    values = curve(page, "reduced")
    assert values[0] > 5 * values[-1]
    assert (np.diff(values, 2) < 1e-9).all(), "the curve must be concave"
    C = similarity(page)
    best = min(
        value_of(C, plan_of(labels, 3))
        for labels in ([0] * 4 + [1] * 4 + [2] * 4, [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2])
    )
    assert values[-1] == pytest.approx(best)


@pytest.mark.parametrize("name", STARTS)
def test_starts(page, name):
    begin(page, name)
    n, k, _ = STARTS[name]
    assert_agrees(page)
    assert page.locator(f"{BOX} svg [role=button]").count() == n
    assert clusters_of(page) == k
    assert int(slider(page, "Clusters").get_attribute("max")) == min(4, n)
    for key in ("Home", "End", "ArrowLeft", "PageDown"):
        slider(page, "From").focus()
        page.keyboard.press(key)
        assert_agrees(page)


def test_soft_wins_with_two_signs(page):
    begin(page, "three points")
    np.testing.assert_allclose(
        page.evaluate("drotSrgw.products([[-1, 1], [1, 1], [0, -2]], [2.5, -0.5])"), MARK
    )
    shown = assert_agrees(page)
    assert shown["objective"] == pytest.approx(206 / 81) and shown["chord"] == pytest.approx(25 / 9)
    assert says(page, "verdict") == (
        "Sharing wins: at 0.50 the objective is 2.543, below both ends."
    )


def test_slider_by_keyboard(page):
    share = slider(page, "From")
    share.focus()
    page.keyboard.press("Home")
    seen = [assert_agrees(page)["t"]]
    for key, want in (("ArrowRight", 0.01), ("PageUp", 0.11), ("End", 1.0)):
        page.keyboard.press(key)
        seen.append(assert_agrees(page)["t"])
        assert seen[-1] == pytest.approx(want)
    assert share.get_attribute("aria-valuetext") == "100 % moved"
    words = page.locator(f"{BOX} .drot-word").all_text_contents()
    assert words == ["1"] * 4 + ["2"] * 4 + ["3"] * 4


def test_clusters_by_keyboard(page):
    slider(page, "Clusters").focus()
    page.keyboard.press("End")
    assert clusters_of(page) == 4
    assert_agrees(page)
    page.keyboard.press("Home")
    assert clusters_of(page) == 2
    assert_agrees(page)
    page.get_by_text("The small matrix").click()
    rows = page.locator(f"{BOX} tbody tr")
    assert rows.count() == 2
    T, C = plan_shown(page), similarity(page)
    D = structure_of(C, T)
    for a in range(2):
        cells = rows.nth(a).locator("td").all_inner_texts()
        assert [float(c) for c in cells] == pytest.approx([*D[a], T[:, a].sum()], abs=5.1e-4)


def test_points_move_by_keyboard_and_click(page):
    slider(page, "From").focus()
    page.keyboard.press("End")
    page.keyboard.press("Tab")  # the button
    assert page.locator(":focus").inner_text().startswith("Descend")
    page.keyboard.press("Tab")  # the first point
    focused = page.locator(":focus-visible")
    assert focused.get_attribute("data-point") == "0"
    assert focused.evaluate("e => getComputedStyle(e).outlineStyle") != "none"
    page.keyboard.press("Enter")
    shown = assert_agrees(page)
    assert plan_shown(page)[0].argmax() == 1 and shown["t"] == 1
    values = curve(page, "reduced")
    assert says(page, "move") == (
        f"Point 1 went from cluster 1 to 2: objective {values[0]:.3f} to {values[-1]:.3f}."
    )
    assert page.locator(":focus").get_attribute("data-point") == "0", "the focus is lost"
    scrolled = page.evaluate("scrollY")
    page.keyboard.press(" ")
    assert page.evaluate("scrollY") == scrolled
    assert plan_shown(page)[0].argmax() == 2
    page.locator(f'{BOX} [data-point="11"]').click()
    assert plan_shown(page)[11].argmax() == 0
    assert_agrees(page)
    slider(page, "From").focus()
    page.keyboard.press("PageDown")  # 0.9 of the last move
    T = plan_shown(page)
    assert T[11, 0] * 12 == pytest.approx(0.9) and T[11, 2] * 12 == pytest.approx(0.1)
    assert_agrees(page)


@pytest.mark.parametrize("name", STARTS)
def test_descend_goes_down_and_ends(page, name):
    begin(page, name)
    slider(page, "From").focus()
    page.keyboard.press("Home")
    button = page.get_by_role("button", name="Descend")
    last, steps = number(page, "objective"), 0
    while True:
        button.click()
        shown = assert_agrees(page)
        if says(page, "move").startswith("No single point"):
            break
        assert shown["objective"] < last
        last, steps = shown["objective"], steps + 1
        assert steps < 40
    T, C = plan_shown(page), similarity(page)
    n, k = T.shape
    labels = T.argmax(axis=1)
    for i, a in itertools.product(range(n), range(k)):
        trial = labels.copy()
        trial[i] = a
        assert value_of(C, plan_of(trial, k)) >= last - 1e-9
    if name != "three points":
        assert steps >= 3
    else:
        assert steps == 0, "every membership of two clusters has the same objective"


def test_pies_show_the_shares(page):
    """A sector of 0.3 of the turn ends at 108 degrees from the top."""
    path = page.locator(f'{BOX} [data-point="1"] path')
    assert path.get_attribute("data-share") == "0.3"
    place = "([e, at]) => { const p = e.getPointAtLength(at); return [p.x, p.y] }"
    whole = path.evaluate("e => e.getTotalLength()")
    element = path.element_handle()
    start = np.array(page.evaluate(place, [element, 8]))  # up along the radius
    end = np.array(page.evaluate(place, [element, whole - 8]))  # before the way back
    disc = page.locator(f'{BOX} [data-point="1"] .drot-hit')
    centre = np.array(disc.evaluate("e => [e.cx.baseVal.value, e.cy.baseVal.value]"))
    np.testing.assert_allclose(start - centre, [0, -8], atol=0.05)
    angle = 2 * np.pi * 0.3
    np.testing.assert_allclose(end - centre, [8 * np.sin(angle), -8 * np.cos(angle)], atol=0.05)


@pytest.mark.parametrize("width", [1100, 390])
def test_nothing_moves(browser, page_file, width):
    """No number, verdict or move changes the height of the widget."""
    page = open_page(browser, page_file, width)
    height = page.locator(BOX).bounding_box()["height"]
    for name in STARTS:
        begin(page, name)
        for key in ("Home", "End"):
            slider(page, "From").focus()
            page.keyboard.press(key)
            page.get_by_role("button", name="Descend").click()
            assert page.locator(BOX).bounding_box()["height"] == pytest.approx(height, abs=0.6)
    assert not page.said
    page.context.close()


def test_phone(browser, page_file):
    """The panels stand one above the other, and nothing is wider than the screen."""
    page = open_page(browser, page_file, width=390)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    page.get_by_text("The small matrix").click()
    upper, lower = (page.locator(f"{BOX} svg").nth(k).bounding_box() for k in (0, 1))
    assert lower["y"] >= upper["y"] + upper["height"]
    least = page.locator(f"{BOX} .drot-hit").first.bounding_box()
    assert min(least["width"], least["height"]) >= 24
    page.locator(f'{BOX} [data-point="2"]').tap()
    assert_agrees(page)
    for name in STARTS:
        begin(page, name)
        facts = page.evaluate("probe.facts()")
        assert facts["overflow"] <= 0 and not facts["wide"]
    page.context.close()


def test_accessible(page):
    """What axe finds, and contrast in both themes."""
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf8")
    page.evaluate(axe)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    page.locator(f"{BOX} details").evaluate("e => { e.open = true }")
    slider(page, "Clusters").focus()
    page.keyboard.press("End")  # all four fills
    assert not page.evaluate("probe.axe()")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert not page.evaluate("probe.faint()"), theme
        fills = page.locator(f"{BOX} [data-point] circle:nth-of-type(2)").evaluate_all(
            "all => [...new Set(all.map(e => getComputedStyle(e).fill))]"
        )
        assert len(fills) >= 3, theme
        for kind, attribute in ((".drot-curve", "stroke"), (".drot-cross", "stroke")):
            assert contrast(page, kind, attribute) >= 3, (theme, kind)
        assert contrast(page, "[data-point] circle:nth-of-type(3)", "stroke") >= 3, theme
        assert contrast(page, ".drot-word", "fill") >= 4.5, theme


def test_announced_and_labelled(page):
    output = page.locator(f"{BOX} output")
    assert output.get_attribute("aria-live") == "polite"
    sliders = page.locator(f"{BOX} input")
    assert sliders.count() == 2
    for i in range(2):
        name = sliders.nth(i).get_attribute("id")
        assert page.locator(f'label[for="{name}"]').inner_text().strip()
        assert name in output.get_attribute("for").split()
    hint = page.locator(f"{BOX} svg [role=button]").first.get_attribute("aria-describedby")
    assert "next cluster" in page.locator(f"#{hint}").inner_text()
    for panel in page.locator(f"{BOX} svg").all():
        assert len(panel.get_attribute("aria-label")) > 15


def test_without_javascript(browser, page_file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator(f"{BOX} .drot-finding").is_visible()
    assert page.locator(f"{BOX} input").count() == 0
    context.close()


def test_in_the_chapter(browser, site, site_url):
    """The built chapter shows the widget, and its first numbers are right."""
    assert (site / CHAPTER).is_file()
    page = browser.new_page()
    page.goto(site_url + CHAPTER)
    page.locator(f"{BOX} output").wait_for()
    assert_agrees(page)
    assert len(page.locator(f"{BOX} > .drot-finding").last.inner_text().split()) > 8
    page.close()
