"""The widget of chapter 7 says what Python says: its three laws, its draws, its numbers."""

from __future__ import annotations

import itertools
import json
import math
import re
from functools import partial
from importlib import resources
from pathlib import Path

import drot
import numpy as np
import pytest
import torch
import widget_page
from widget_page import node, write_page

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("priors_core.js", "priors.js")
CHAPTER = "book/07_graph_priors.html"
BOX = '[data-widget="priors"]'
open_page = partial(widget_page.open_page, box=BOX)
contrast = partial(widget_page.contrast, box=BOX)
NUMBERS = ("tau", "edges", "drawn", "alone", "lonely")
PRIORS = {"row": "D: one edge", "binary": "B: each edge", "edges": "E: n edges"}
SEED, UNIT = 7, 42
START = [[-1.9, 0.5], [-1.1, 1.3], [-0.8, 0], [-1.7, -1], [0.3, 0.9], [0.5, -0.8], [2.6, 0.2]]

CLOUDS = {
    "start": (START, 1.0),
    "three": ([[0, 0], [1, 0], [0, 2]], 0.7),
    "coincident": ([[0, 0], [0, 0], [1, 1], [3, 0]], 1.3),
    "far, beyond the range of exp": ([[0, 0], [0.5, 0], [40, 0]], 0.5),
    "random": (np.random.default_rng(0).normal(size=(8, 2)).tolist(), 0.9),
}


# ------------------------------------------------------------------------------ the Python side


def log_kernel(points, tau: float) -> torch.Tensor:
    X = np.asarray(points, dtype=float)
    return torch.from_numpy(-((X[:, None] - X) ** 2).sum(axis=-1) / (2 * tau**2))


def expectation(points, tau: float, prior: str) -> np.ndarray:
    return drot.expected_graph(log_kernel(points, tau), prior=prior).numpy()


def mulberry(seed: int):
    """The generator, in whole numbers modulo 2^32."""
    state, whole = seed % 2**32, 2**32

    def uniform() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) % whole
        t = (state ^ (state >> 15)) * (state | 1) % whole
        t ^= (t + (t ^ (t >> 7)) * (t | 61)) % whole
        return (t ^ (t >> 14)) / whole

    return uniform


def sample(points, tau: float, prior: str, uniform) -> np.ndarray:
    P = expectation(points, tau, prior)
    n = len(P)
    W = np.zeros((n, n), dtype=int)
    if prior == "binary":
        for i, j in itertools.permutations(range(n), 2):
            W[i, j] = uniform() < P[i, j]
        return W
    for row in range(n):
        shares = P[row] if prior == "row" else P.ravel()
        at = int(np.searchsorted(np.cumsum(shares), uniform() * shares.sum(), side="right"))
        i, j = (row, at) if prior == "row" else divmod(at, n)
        W[i, j] += 1
    return W


def draws(points, tau: float, prior: str, m: int) -> np.ndarray:
    uniform = mulberry(SEED)
    return np.stack([sample(points, tau, prior, uniform) for _ in range(m)])


def degrees(W: np.ndarray) -> np.ndarray:
    return W.sum(axis=-1) + W.sum(axis=-2)


def alone(points, tau: float, prior: str) -> np.ndarray:
    """Probability of no edge: in B a product, in E a power."""
    P = expectation(points, tau, prior)
    if prior == "row":
        return np.zeros(len(P))
    if prior == "binary":
        return (1 - P).prod(axis=0) * (1 - P).prod(axis=1)
    return (1 - degrees(P) / len(P)) ** len(P)


# ------------------------------------------------------------------------------- the test page


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    """The widget as the chapter embeds it, under the theme's own style sheets, in one file."""
    widget = (
        '<div class="drot-widget" data-widget="priors" data-prior="row" '
        'data-bandwidth="1"><p class="drot-finding">With one edge out of each point, a far point '
        "keeps its edge.</p></div>"
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
    """Evaluates JavaScript with the core as ``c`` and the arguments as ``a``, in Chromium."""
    page = open_page(browser, page_file)
    yield lambda code, *a: page.evaluate(
        f"a => {{ const c = drotPriors; return {code}; }}", list(a)
    )
    assert not page.said
    page.context.close()


# ------------------------------------------------------------------------------------ the core


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", CLOUDS)
def test_expected_graph_agrees_with_the_package(core, name, prior):
    points, tau = CLOUDS[name]
    found = core("c.expected(c.logKernel(a[0], a[1]), a[2])", points, tau, prior)
    np.testing.assert_allclose(found, expectation(points, tau, prior), rtol=1e-12, atol=1e-300)
    found = core("c.degrees(c.expected(c.logKernel(a[0], a[1]), a[2]))", points, tau, prior)
    np.testing.assert_allclose(found, degrees(expectation(points, tau, prior)), rtol=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
def test_lonely_points_by_listing_all_graphs(core, prior):
    points, tau = CLOUDS["three"]
    found = core("c.alone(c.logKernel(a[0], a[1]), a[2])", points, tau, prior)
    total, lonely = 0.0, np.zeros(3)
    for counts in itertools.product(range(4), repeat=6):
        W = np.zeros((3, 3))
        W[~np.eye(3, dtype=bool)] = counts
        chance = drot.graph_log_probability(W, log_kernel(points, tau), prior=prior).exp()
        total += float(chance)
        lonely += float(chance) * (degrees(W) == 0)
    assert total == pytest.approx(1)
    np.testing.assert_allclose(found, lonely, rtol=0, atol=1e-12)
    np.testing.assert_allclose(alone(points, tau, prior), lonely, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", [0, 7, 123456789, 2**32 - 1])
def test_generator(core, seed):
    found = core(
        "(() => { const r = c.generator(a[0]); return Array.from({ length: 500 }, r); })()", seed
    )
    uniform = mulberry(seed)
    assert found == [uniform() for _ in range(500)]
    assert min(found) >= 0 and max(found) < 1
    assert abs(np.mean(found) - 0.5) < 0.07


DRAW = (
    "(() => { const r = c.generator(a[3]), L = c.logKernel(a[0], a[1]);"
    " return Array.from({ length: a[4] }, () => c.sample(L, a[2], r)); })()"
)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", CLOUDS)
def test_draws_agree_one_by_one(core, name, prior):
    points, tau = CLOUDS[name]
    found = np.array(core(DRAW, points, tau, prior, SEED, 40))
    assert np.array_equal(found, draws(points, tau, prior, 40))
    assert (found.diagonal(axis1=1, axis2=2) == 0).all()
    if prior == "row":
        assert (found.sum(axis=2) == 1).all()
    if prior == "edges":
        assert (found.sum(axis=(1, 2)) == len(points)).all() and found.max() > 1


@pytest.mark.parametrize("prior", PRIORS)
def test_draws_have_the_right_mean(core, prior):
    points, tau = CLOUDS["three"]
    found = np.array(core(DRAW, points, tau, prior, 3, 20_000))
    error = abs(found.mean(axis=0) - expectation(points, tau, prior))
    assert (error <= 5 * found.std(axis=0) / math.sqrt(20_000)).all()


@pytest.mark.parametrize(
    ("code", "start"),
    [
        ("c.logKernel([[0, 0]], 1)", "points must"),
        ("c.logKernel([[0, 0], [1, NaN]], 1)", "points must"),
        ("c.logKernel([[0, 0], [1, 1]], 0)", "bandwidth must"),
        ("c.expected(c.logKernel([[0, 0], [1, 1]], 1), 'rows')", "there is no prior rows"),
    ],
)
def test_refuses(core, code, start):
    import playwright.sync_api

    with pytest.raises(playwright.sync_api.Error, match=start):
        core(code)


def test_node_agrees_too():
    program = """
    const core = require(process.argv[1]);
    const [points, tau] = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const L = core.logKernel(points, tau);
    const one = (prior) => {
      const random = core.generator(7);
      const W = Array.from({ length: 9 }, () => core.sample(L, prior, random));
      return [core.expected(L, prior), core.alone(L, prior), W];
    };
    process.stdout.write(JSON.stringify(core.PRIORS.map((p) => [p, one(p)])));
    """
    points, tau = CLOUDS["start"]
    said = node(program, [points, tau], core=SCRIPTS[0])
    found = dict(json.loads(said))
    assert set(found) == set(PRIORS)
    for prior, (mean, lonely, W) in found.items():
        np.testing.assert_allclose(mean, expectation(points, tau, prior), rtol=1e-12)
        np.testing.assert_allclose(lonely, alone(points, tau, prior), rtol=1e-9, atol=1e-15)
        assert np.array_equal(W, draws(points, tau, prior, 9))


# ---------------------------------------------------------------------------------- in the page


def points_of(page) -> list[list[float]]:
    """Where the points are, from their names; two decimals are all they have."""
    names = page.locator(f"{BOX} svg [role=button]").evaluate_all(
        "all => all.map(e => e.getAttribute('aria-label'))"
    )
    return [[float(v) for v in re.search(r"\((.*?), (.*?)\)", name).groups()] for name in names]


def readout(page) -> dict[str, float]:
    """What the page holds to all digits, after a look at what it prints."""
    numbers = {}
    for name in NUMBERS:
        item = page.locator(f'{BOX} output [data-name="{name}"]')
        numbers[name] = float(item.get_attribute("data-value"))
        assert float(item.inner_text()) == pytest.approx(numbers[name], abs=5.1e-3)
    return numbers


def says(page, name: str) -> str:
    return page.locator(f'{BOX} output [data-name="{name}"]').inner_text()


def prior_of(page) -> str:
    pressed = page.locator(f'{BOX} button[aria-pressed="true"]')
    assert pressed.count() == 1
    return next(key for key, name in PRIORS.items() if pressed.inner_text().startswith(name))


def chosen(page) -> int:
    pressed = page.locator(f"{BOX} svg [role=button]").evaluate_all(
        "all => all.flatMap((e, i) => e.getAttribute('aria-pressed') === 'true' ? [i] : [])"
    )
    assert len(pressed) == 1
    return pressed[0]


def weights(page, panel: int, kind: str) -> np.ndarray:
    """Entries that a panel draws, (n, n); an edge is as dark as its weight, up to 1."""
    edges = page.locator(f"{BOX} svg").nth(panel).locator(f".drot-{kind}")
    rows = edges.evaluate_all(
        "all => all.map(e => [e.dataset.from, e.dataset.to, e.dataset.value,"
        " e.getAttribute('stroke-opacity'),"
        " e.nextElementSibling.getAttribute('fill-opacity')].map(Number))"
    )
    W = np.zeros((len(START), len(START)))
    for i, j, value, dark, head in rows:
        W[int(i), int(j)] = value
        assert dark == head == (min(1, value) if kind == "mean" else value > 0)
    return W


def assert_agrees(page) -> dict[str, float]:
    """Both graphs and all numbers, against Python at the points that the page shows."""
    shown, points, i, prior = readout(page), points_of(page), chosen(page), prior_of(page)
    m = int(re.match(r"(\d+) graph", says(page, "verdict"))[1])
    P, W = expectation(points, shown["tau"], prior), draws(points, shown["tau"], prior, m)
    mean = W.mean(axis=0)
    np.testing.assert_allclose(weights(page, 1, "mean"), P, rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights(page, 0, "mean"), mean, rtol=0, atol=1e-12)
    assert np.array_equal(weights(page, 0, "last"), W[-1])
    assert shown["edges"] == pytest.approx(degrees(P)[i], rel=1e-9)
    assert shown["drawn"] == pytest.approx(degrees(mean)[i], rel=1e-9)
    assert shown["alone"] == pytest.approx(alone(points, shown["tau"], prior)[i], abs=1e-9)
    assert shown["lonely"] == pytest.approx((degrees(W)[:, i] == 0).mean(), rel=1e-9)
    assert f"expected graph: {abs(mean - P).max():.2f}." in says(page, "verdict")
    assert f"Point {i + 1} at ({points[i][0]:.2f}, {points[i][1]:.2f})" in says(page, "point")
    for panel, weight in enumerate((mean, P)):
        words = page.locator(f"{BOX} svg").nth(panel).locator(".drot-word").all_text_contents()
        np.testing.assert_allclose([float(w) for w in words], degrees(weight), atol=0.0501)
    return shown


def choose(page, prior: str) -> None:
    page.get_by_role("button", name=PRIORS[prior]).click()
    assert prior_of(page) == prior


def test_first_numbers(page):
    """The page opens with one edge out of each point, one graph drawn, the far point chosen."""
    shown = assert_agrees(page)
    assert points_of(page) == START and chosen(page) == 6 and prior_of(page) == "row"
    assert shown["tau"] == 1 and shown["alone"] == 0
    assert says(page, "verdict").startswith("1 graph drawn.")
    assert shown["edges"] > 1


@pytest.mark.parametrize("prior", PRIORS)
def test_draws_add_up(page, prior):
    choose(page, prior)
    gaps = []
    for button, m in (("Draw one", 2), ("Draw 100", 102), ("Draw 100", 202), ("Draw one", 203)):
        page.get_by_role("button", name=button).click()
        assert says(page, "verdict").startswith(f"{m} graphs drawn.")
        assert_agrees(page)
        gaps.append(float(re.search(r"graph: (\S+)\.", says(page, "verdict"))[1]))
    assert gaps[-1] < 0.3 * gaps[0]


def test_a_change_starts_again(page):
    """Draws of another law do not count."""
    many = page.get_by_role("button", name="Draw 100")
    for change in (
        lambda: choose(page, "edges"),
        lambda: page.get_by_role("slider").press("ArrowRight"),
        lambda: page.get_by_role("button", name="point 2").press("ArrowUp"),
    ):
        many.click()
        assert says(page, "verdict").startswith("101 graphs")
        change()
        assert says(page, "verdict").startswith("1 graph drawn.")
        assert_agrees(page)


def test_a_far_point(page):
    """The finding: D keeps its edge, B and E lose it."""
    page.get_by_role("slider").press("Home")
    far = page.get_by_role("button", name="point 7")
    for _ in range(40):
        far.press("ArrowRight")
    assert points_of(page)[6][0] < 3.7, "the point left its panel"
    lonely = {}
    for prior in PRIORS:
        choose(page, prior)
        page.get_by_role("button", name="Draw 100").click()
        shown = assert_agrees(page)
        lonely[prior] = shown["alone"], shown["lonely"], shown["edges"]
    assert lonely["row"][:2] == (0, 0) and lonely["row"][2] >= 1 - 1e-12
    for prior in ("binary", "edges"):
        assert lonely[prior][0] > 0.999 and lonely[prior][1] == 1 and lonely[prior][2] < 1e-3


def test_points_move_by_keyboard(page):
    page.set_viewport_size({"width": 1100, "height": 500})  # there is something to scroll
    page.get_by_role("button", name="point 5").focus()
    assert chosen(page) == 4
    for key, (dx, dy) in {
        "ArrowUp": (0, 0.1),
        "ArrowRight": (0.1, 0),
        "ArrowDown": (0, -0.1),
        "Shift+ArrowUp": (0, 0.01),
        "Shift+ArrowLeft": (-0.01, 0),
    }.items():
        before = points_of(page)
        page.keyboard.press(key)
        moved = np.subtract(points_of(page), before)
        np.testing.assert_allclose(moved[4], [dx, dy], atol=1e-9)
        assert abs(np.delete(moved, 4, axis=0)).max() == 0
        assert_agrees(page)
    scrolled = page.evaluate("scrollY")
    for _ in range(40):
        page.keyboard.press("ArrowUp")
    assert page.evaluate("scrollY") == scrolled, "the arrow key also scrolled the page"
    assert points_of(page)[4][1] < 2.6, "the point left its panel"
    assert_agrees(page)


@pytest.mark.parametrize("panel", [0, 1])
def test_points_move_by_pointer(page, panel):
    svg = page.locator(f"{BOX} svg").nth(panel)
    dot = svg.locator('[data-point="2"] .drot-point').bounding_box()
    x, y = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
    scale = svg.bounding_box()["width"] / 340
    page.mouse.move(x + 3, y)  # off its middle: the point must not jump
    page.mouse.down()
    assert points_of(page) == START and chosen(page) == 2
    page.mouse.move(x + 30 * scale + 3, y - 50 * scale, steps=4)
    page.wait_for_function(
        "old => !document.querySelector('[data-point=\"2\"]').ariaLabel.includes(old)",
        arg="(-0.80, 0.00)",
    )
    page.evaluate("() => new Promise(requestAnimationFrame)")
    page.mouse.up()
    moved = points_of(page)
    np.testing.assert_allclose(moved[2], [-0.8 + 30 / UNIT, 50 / UNIT], atol=0.02)
    assert moved[:2] + moved[3:] == START[:2] + START[3:]
    assert_agrees(page)
    page.mouse.move(x + 60 * scale, y)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert points_of(page) == moved, "the button is up"
    page.keyboard.press("ArrowLeft")  # the same point listens to the keys
    assert points_of(page)[2][0] == pytest.approx(moved[2][0] - 0.1)


def test_edges_end_at_their_points(page):
    """Each arc begins and ends where its points are, and bends to the right of its way."""
    for panel in (0, 1):
        svg = page.locator(f"{BOX} svg").nth(panel)
        at = svg.locator(".drot-point").evaluate_all(
            "all => all.map(e => [e.cx.baseVal.value, e.cy.baseVal.value])"
        )
        paths = svg.locator(".drot-mean").evaluate_all(
            "all => all.map(e => [+e.dataset.from, +e.dataset.to, e.getAttribute('d')])"
        )
        assert len(paths) == 42
        for i, j, path in paths:
            x, y, u, v, z, w = (float(n) for n in re.findall(r"-?[\d.]+", path))
            np.testing.assert_allclose([x, y, z, w], [*at[i], *at[j]], atol=0.006)
            # y points down: right of the way is a positive cross product
            assert (z - x) * (v - y) - (w - y) * (u - x) > 0


def test_bandwidth_by_keyboard(page):
    slider = page.get_by_role("slider", name="Bandwidth of the kernel")
    choose(page, "binary")
    slider.focus()
    seen = [assert_agrees(page)]
    for key in ("ArrowRight", "PageUp", "End"):
        page.keyboard.press(key)
        seen.append(assert_agrees(page))
        assert seen[-1]["tau"] > seen[-2]["tau"] and seen[-1]["edges"] > seen[-2]["edges"], key
    assert seen[-1]["tau"] == 3
    assert slider.get_attribute("aria-valuetext") == "bandwidth 3.00"
    page.keyboard.press("Home")
    notches = [readout(page)["tau"]]
    assert notches[0] == 0.3
    for _ in range(60):
        page.keyboard.press("ArrowRight")
        notches.append(float(page.locator('[data-name="tau"]').get_attribute("data-value")))
    assert (np.diff(notches) > 0).all() and notches[-1] == 3, "a notch without effect"


def test_points_are_chosen_by_tab_and_click(page):
    page.get_by_role("button", name="Draw 100").focus()
    for i in range(7):
        page.keyboard.press("Tab")
        assert chosen(page) == i
        assert_agrees(page)
    focused = page.locator(":focus-visible")
    assert focused.get_attribute("data-point") == "6"
    assert focused.evaluate("e => getComputedStyle(e).outlineStyle") != "none"
    assert page.locator(f'{BOX} .drot-ring[visibility="visible"]').count() == 2
    page.locator(f"{BOX} svg").last.locator('[data-point="1"]').click()
    assert chosen(page) == 1
    page.keyboard.press("Tab")
    assert chosen(page) == 2, "a click does not take the keyboard along"


def test_points_move_by_touch(browser, page_file):
    """A finger on a point drags it; beside the points it scrolls."""
    page = open_page(browser, page_file, width=390)
    touch = "e => getComputedStyle(e).touchAction"
    assert page.locator(f"{BOX} svg [data-point]").first.evaluate(touch) == "none"
    assert page.locator(f"{BOX} svg").first.evaluate(touch) == "auto"
    least = page.locator(f"{BOX} .drot-hit").first.bounding_box()
    assert min(least["width"], least["height"]) >= 24
    page.locator(f'{BOX} [data-point="0"]').first.tap()
    assert chosen(page) == 0
    assert not page.said
    page.context.close()


def test_table_lists_all_points(page):
    choose(page, "edges")
    page.get_by_role("button", name="Draw 100").click()
    page.get_by_text("Edges of all points").click()
    rows = page.locator(f"{BOX} tbody tr")
    assert rows.count() == 7
    for i in (0, 6):
        page.locator(f"{BOX} svg [role=button]").nth(i).focus()
        shown = assert_agrees(page)
        cells = rows.nth(i).locator("th, td").all_inner_texts()
        assert cells == [str(i + 1), *(f"{shown[name]:.2f}" for name in NUMBERS[1:])]


@pytest.mark.parametrize("width", [1100, 390])
def test_nothing_moves(browser, page_file, width):
    """No number and no sentence changes the height of the widget."""
    page = open_page(browser, page_file, width)
    page.get_by_role("button", name="Draw 100").click()
    height = page.locator(BOX).bounding_box()["height"]
    for prior in PRIORS:
        choose(page, prior)
        for key in ("End", "Home"):
            page.get_by_role("slider").press(key)
            for button in ("Draw one", "Draw 100"):
                page.get_by_role("button", name=button).click()
                assert page.locator(BOX).bounding_box()["height"] == pytest.approx(height, abs=0.6)
    assert not page.said
    page.context.close()


def test_phone(browser, page_file):
    """The panels stand one above the other, and nothing is wider than the screen."""
    page = open_page(browser, page_file, width=390)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    page.get_by_text("Edges of all points").click()
    upper, lower = (page.locator(f"{BOX} svg").nth(k).bounding_box() for k in (0, 1))
    assert lower["y"] >= upper["y"] + upper["height"]
    facts = page.evaluate("probe.facts()")
    assert facts["overflow"] <= 0 and not facts["wide"]
    page.context.close()


def test_accessible(page):
    """What axe finds, and contrast in both themes."""
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf8")
    page.evaluate(axe)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    page.locator(f"{BOX} details").evaluate("e => { e.open = true }")
    assert not page.evaluate("probe.axe()")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert not page.evaluate("probe.faint()"), theme
        for kind, attribute, least in (
            (".drot-mean", "stroke", 3),
            (".drot-last", "stroke", 3),
            (".drot-ring", "stroke", 3),
            (".drot-point", "fill", 3),
            (".drot-word", "fill", 4.5),
        ):
            assert contrast(page, kind, attribute) >= least, (theme, kind)


def test_announced_and_labelled(page):
    output = page.locator(f"{BOX} output")
    assert output.get_attribute("aria-live") == "polite"
    slider = page.locator(f"{BOX} input")
    assert slider.count() == 1
    assert page.locator(f'label[for="{slider.get_attribute("id")}"]').inner_text().strip()
    assert slider.get_attribute("id") in output.get_attribute("for").split()
    hint = page.locator(f"{BOX} svg [role=button]").first.get_attribute("aria-describedby")
    assert "arrow keys" in page.locator(f"#{hint}").inner_text()
    for panel in page.locator(f"{BOX} svg").all():
        assert len(panel.get_attribute("aria-label")) > 15
    for group in page.locator(f"{BOX} .drot-buttons").all():
        assert group.get_attribute("aria-label")


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
