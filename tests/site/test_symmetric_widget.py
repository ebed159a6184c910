"""The widget of chapter 3 says what Python says: its solver, its two graphs, its numbers."""

from __future__ import annotations

import json
import math
import re
import warnings
from functools import partial
from importlib import resources
from pathlib import Path

import cvxpy as cp
import drot
import numpy as np
import pytest
import widget_page
from widget_page import node, write_page

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("row_core.js", "symmetric_core.js", "symmetric.js")
CHAPTER = "book/03_symmetric_affinity.html"
BOX = '[data-widget="symmetric"]'
open_page = partial(widget_page.open_page, box=BOX)
contrast = partial(widget_page.contrast, box=BOX)
NUMBERS = ("xi", "before", "after", "mass", "symmetric")

LINE = [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
ANGLES = np.arange(8) * math.pi / 4


def gaussian(seed: int, n: int) -> list[list[float]]:
    return np.random.default_rng(seed).normal(size=(n, 2)).tolist()


def scales(seed: int, n: int) -> list[list[float]]:
    """Every point has a density of its own, over two decades."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, 2)) * 10 ** rng.uniform(-1, 1, size=(n, 1))).tolist()


def clusters(seed: int, n: int) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, 2)) + 12 * rng.integers(0, 2, size=(n, 1))).tolist()


# name: points, perplexity, rows that are slack
CASES = {
    "line": (LINE, 1.5, [1]),
    "acute triangle": ([[0, 0], [1, 0], [0.5, 0.8]], 1.7, []),
    "two triples": ([[x, y] for y in (0.0, 9.0) for x in (-1.0, 0.0, 1.0)], 1.5, [1, 4]),
    "square and its centre": ([[0, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]], 1.6, [0]),
    "octagon and its centre": (
        [[0, 0], *np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1).tolist()],
        6.0,
        [0],
    ),
    "octagon, little": (
        [[0, 0], *np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1).tolist()],
        1.5,
        [],
    ),
    "a middle that is doubled": ([[-1, 0], [0, 0], [0, 0], [1, 0]], 2.5, [1, 2]),
    "gaussian": (gaussian(0, 11), 4.0, None),
    "scales": (scales(1, 12), 2.5, None),
    "clusters": (clusters(2, 12), 3.0, None),
    "nearly even": (gaussian(3, 8), 7.9, None),
    "nearly alone": (gaussian(4, 9), 1.06, None),
}


def squared(points) -> np.ndarray:
    X = np.asarray(points, dtype=float)
    return ((X[:, None] - X[None]) ** 2).sum(axis=-1)


def perplexities(plan: np.ndarray) -> np.ndarray:
    """exp of Shannon's entropy of each row, divided by its mass first."""
    p = plan / plan.sum(axis=1, keepdims=True)
    return np.exp(-(p * np.log(np.where(p > 0, p, 1))).sum(axis=1))


def conic_plan(cost: np.ndarray, xi: float) -> np.ndarray:
    """The primal problem by an interior-point method for exponential cones."""
    plan = cp.Variable(cost.shape, symmetric=True)
    entropies = cp.sum(cp.entr(plan) + plan, axis=1) >= math.log(xi) + 1
    constraints = [entropies, cp.sum(plan, axis=1) == 1, plan >= 0]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(plan, cost / cost.mean()))), constraints)
    tight = {name: 1e-11 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the status says so too
        problem.solve(solver=cp.CLARABEL, **tight)
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return plan.value


# ------------------------------------------------------------------------------- the test page


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    """The widget as a chapter embeds it, under the theme's own style sheets, in one file."""
    widget = (
        '<div class="drot-widget" data-widget="symmetric" data-start="line" '
        'data-perplexity="1.5"><p class="drot-finding">The middle of three points keeps more '
        "entropy than it must, at every perplexity.</p></div>"
    )
    return write_page(tmp_path_factory.mktemp("widget"), widget, SCRIPTS)


@pytest.fixture
def page(browser, page_file):
    page = open_page(browser, page_file)
    yield page
    assert not page.said
    page.context.close()


@pytest.fixture(scope="module")
def solver(browser, page_file):
    """Calls a function of the core in Chromium: solver(name, *arguments)."""
    page = open_page(browser, page_file)
    yield lambda name, *given: page.evaluate(
        "([name, given]) => drotSymmetric[name](...given)", [name, list(given)]
    )
    assert not page.said
    page.context.close()


def result(found: dict) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in found.items()}


# ------------------------------------------------------------------------------------ the core


def assert_like_package(got: dict, cost: np.ndarray, xi: float) -> None:
    want = drot.symmetric_entropic_affinity(cost, xi, tol=1e-11)
    np.testing.assert_allclose(got["P"], want.plan.numpy(), rtol=0, atol=1e-6)
    assert got["slack"].tolist() == want.slack.tolist()
    size = float(want.gamma.max())
    for ours, theirs in ((got["gamma"], want.gamma), (got["lam"], want.lam)):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-6, atol=1e-6 * size)


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_package(solver, name):
    points, xi, slack = CASES[name]
    cost = squared(points)
    got = result(solver("symmetricEntropicAffinity", cost.tolist(), xi))
    assert got["residual"] <= 1e-8
    assert_like_package(got, cost, xi)
    if slack is not None:
        assert np.flatnonzero(got["slack"]).tolist() == slack
        assert (got["gamma"][slack] == 0).all(), "slack to rounding only"


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_a_conic_solver(solver, name):
    points, xi, _ = CASES[name]
    cost = squared(points)
    got = result(solver("symmetricEntropicAffinity", cost.tolist(), xi))
    want = conic_plan(cost, xi)
    # the plan is unique but for the mass that coincident slack points exchange
    same = cost > 0 if name == "a middle that is doubled" else np.full(cost.shape, True)
    np.testing.assert_allclose(got["P"][same], want[same], rtol=0, atol=2e-6)
    assert (got["P"] * cost).sum() == pytest.approx((want * cost).sum(), rel=1e-7)


@pytest.mark.parametrize(("xi", "middle"), [(1.2, 1.4018), (1.5, 1.9430), (2.0, 2.5791)])
def test_three_on_a_line(solver, xi, middle):
    """Row 0 is (1, q, q^4) / Z: in units of the cost, 4 is the one between the end points."""
    got = result(solver("symmetricEntropicAffinity", squared(LINE).tolist(), xi))
    assert got["slack"].tolist() == [False, True, False]
    np.testing.assert_allclose(perplexities(got["P"]), [xi, middle, xi], rtol=0, atol=5e-5)
    low, high = 0.0, 1.0
    for _ in range(100):
        q = (low + high) / 2
        row = np.array([[1, q, q**2]])  # C_02 = 2 (C_01 + C_12)
        low, high = (q, high) if perplexities(row)[0] < xi else (low, q)
    np.testing.assert_allclose(got["P"][0], (row / row.sum())[0], rtol=0, atol=1e-10)


def certificate(cost: np.ndarray, xi: float, got: dict) -> tuple[float, float]:
    """Violation of the constraints, and the relative gap to the dual function.

    For feasible P and any gamma >= 0, lam the gap is at least 0, and 0 only at the optimum.
    """
    P, gamma, lam, eta = got["P"], got["gamma"], got["lam"], math.log(xi) + 1
    assert (P == P.T).all() and (P >= 0).all() and (gamma >= 0).all()
    entropy = (P - P * np.log(np.where(P > 0, P, 1))).sum(axis=1)
    violation = max(abs(P.sum(axis=1) - 1).max(), (eta - entropy).max())
    s = gamma[:, None] + gamma
    u = lam[:, None] + lam - 2 * cost
    assert (u[s == 0] <= 0).all(), "the dual function is minus infinity"
    with np.errstate(over="ignore"):
        terms = np.where(s > 0, s * np.exp(u / np.where(s > 0, s, 1)), 0)
    value = eta * gamma.sum() + lam.sum() - terms.sum() / 2
    return violation, ((P * cost).sum() - value) / (P * cost).sum()


@pytest.mark.parametrize("make", [gaussian, scales, clusters])
def test_certificate_on_random_clouds(solver, make):
    """n = 3 to 40, the perplexity anywhere between 1 and n."""
    some_slack = 0
    for n in range(3, 41):
        share = np.random.default_rng(n).uniform()
        xi = 1.05 * ((n - 0.05) / 1.05) ** share
        cost = squared(make(100 + n, n))
        got = result(solver("symmetricEntropicAffinity", cost.tolist(), xi))
        violation, gap = certificate(cost, xi, got)
        assert got["residual"] <= 1e-8
        assert violation <= max(1.01 * got["residual"], 1e-12), "the residual is not the real one"
        assert abs(gap) <= 1e-8
        some_slack += got["slack"].any()
    assert some_slack >= 5, "the clouds test nothing but the easy case"


def test_costs_without_a_geometry(solver):
    """A hub at cost 1 from leaves at cost 4: it is slack with nothing left on its diagonal."""
    cost = np.full((9, 9), 4.0)
    cost[0] = cost[:, 0] = 1
    np.fill_diagonal(cost, 0)
    got = result(solver("symmetricEntropicAffinity", cost.tolist(), 6.0))
    violation, gap = certificate(cost, 6.0, got)
    assert violation <= 1e-8 and abs(gap) <= 1e-8
    assert got["slack"].tolist() == [True] + [False] * 8
    assert got["P"][0, 0] < 1e-8 and got["lam"][0] < 0


@pytest.mark.parametrize("name", ["two triples", "gaussian", "clusters"])
def test_order_and_unit_do_not_matter(solver, name):
    points, xi, _ = CASES[name]
    cost = squared(points)
    want = result(solver("symmetricEntropicAffinity", cost.tolist(), xi))
    order = np.random.default_rng(5).permutation(len(cost))
    shuffled = result(solver("symmetricEntropicAffinity", cost[np.ix_(order, order)].tolist(), xi))
    np.testing.assert_allclose(shuffled["P"], want["P"][np.ix_(order, order)], rtol=0, atol=1e-9)
    np.testing.assert_allclose(shuffled["gamma"], want["gamma"][order], rtol=1e-7, atol=1e-7)
    assert shuffled["slack"].tolist() == want["slack"][order].tolist()
    for unit in (1e-8, 1e6):
        scaled = result(solver("symmetricEntropicAffinity", (unit * cost).tolist(), xi))
        np.testing.assert_allclose(scaled["P"], want["P"], rtol=0, atol=1e-9)
        for part in ("gamma", "lam"):
            np.testing.assert_allclose(scaled[part], unit * want[part], rtol=1e-6, atol=1e-6 * unit)


def test_where_it_starts_does_not_matter(solver):
    """A drag begins at the last result; a point that turns slack, and back, changes nothing."""
    near, slack = None, []
    for height in (0.0, 0.3, 0.6, 0.9, 1.2, 0.9, 0.6, 0.3):
        cost = squared([[-1, 0], [0, height], [1, 0]]).tolist()
        cold = result(solver("symmetricEntropicAffinity", cost, 1.5))
        near = solver("symmetricEntropicAffinity", cost, 1.5, near)
        np.testing.assert_allclose(near["P"], cold["P"], rtol=0, atol=1e-9)
        assert near["slack"] == cold["slack"].tolist()
        slack.append(near["slack"][1])
    assert slack[0] and not slack[4] and slack[-1]
    points, xi, _ = CASES["square and its centre"]  # not as many: a start of no use
    other = solver("symmetricEntropicAffinity", squared(points).tolist(), xi, near)
    assert other["residual"] <= 1e-8


@pytest.mark.parametrize("name", CASES)
def test_entropic_affinity_agrees(solver, name):
    points, xi, _ = CASES[name]
    cost = squared(points)
    got = result(solver("entropicAffinity", cost.tolist(), xi))
    want = drot.entropic_affinity(cost, xi, tol=1e-12)
    np.testing.assert_allclose(got["eps"], want.eps.numpy(), rtol=1e-8)
    np.testing.assert_allclose(got["P"], want.plan.numpy(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        np.exp((got["lam"][:, None] - cost) / got["eps"][:, None]), got["P"], rtol=0, atol=1e-9
    )


REFUSED = {
    "perplexity must": [
        ([[0, 1], [1, 0]], 2),
        ([[0, 1, 4], [1, 0, 1], [4, 1, 0]], 1),
        ([[0, 0, 1], [0, 0, 1], [1, 1, 0]], 2),  # two points coincide
        ([[0, 0, 0], [0, 0, 0], [0, 0, 0]], 1.5),
        ([[0, 1, 4], [1, 0, 1], [4, 1, 0]], "NaN"),
    ],
    "costs must": [
        ([[0, 1], [2, 0]], 1.5),
        ([[0, -1], [-1, 0]], 1.5),
        ([[1, 1], [1, 0]], 1.5),
        ([[0, 1, 2], [1, 0, 1]], 1.5),
        ([[0]], 1.5),
        ("0, 1", 1.5),
    ],
}


@pytest.mark.parametrize(
    ("start", "cost", "xi"), [(start, *case) for start in REFUSED for case in REFUSED[start]]
)
@pytest.mark.parametrize("name", ["entropicAffinity", "symmetricEntropicAffinity"])
def test_refuses(solver, name, start, cost, xi):
    import playwright.sync_api

    with pytest.raises(playwright.sync_api.Error, match=start):
        solver(name, cost, xi)


def test_node_agrees_too():
    """The same file is a module of Node; an infinite cost cannot travel there through JSON."""
    program = """
    const core = require(process.argv[1]);
    const [points, xi] = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const found = core.symmetricEntropicAffinity(core.sqeuclidean(points), xi);
    let said = "nothing";
    try { core.symmetricEntropicAffinity([[0, Infinity], [Infinity, 0]], 1.5); }
    catch (error) { said = error.message; }
    process.stdout.write(JSON.stringify({ ...found, said }));
    """
    points, xi, _ = CASES["two triples"]
    said = node(program, [points, xi], core=SCRIPTS[1])
    found = json.loads(said)
    assert found.pop("said").startswith("costs must be finite")
    assert_like_package(result(found), squared(points), xi)


# ---------------------------------------------------------------------------------- in the page


def points_of(page) -> list[list[float]]:
    """Where the points are, from their names; two decimals are all they have."""
    names = page.locator(f"{BOX} [role=button]").evaluate_all(
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


def chosen(page) -> int:
    pressed = page.locator(f"{BOX} [role=button]").evaluate_all(
        "all => all.flatMap((e, i) => e.getAttribute('aria-pressed') === 'true' ? [i] : [])"
    )
    assert len(pressed) == 1
    return pressed[0]


def weights(page, panel: int, n: int) -> np.ndarray:
    """Off-diagonal entries that a panel draws, (n, n); each edge is as dark as its weight."""
    edges = page.locator(f"{BOX} svg").nth(panel).locator(".drot-edge")
    value, dark = np.array(
        edges.evaluate_all(
            "all => all.map(e => [e.dataset.value, e.getAttribute('stroke-opacity')].map(Number))"
        )
    ).T
    plan = np.zeros((n, n))
    plan[np.tril_indices(n, -1)] = value
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
    assert shown["after"] == pytest.approx(perplexities(halved)[i], rel=1e-6)
    assert shown["mass"] == pytest.approx(halved[i].sum(), rel=1e-6)
    assert shown["symmetric"] == pytest.approx(perplexities(plan)[i], rel=1e-5)

    slack = bool(symmetric.slack[i])
    assert says(page, "verdict").startswith("Entropy slack" if slack else "Entropy saturated")
    if slack:
        assert f"perplexity {shown['symmetric']:.2f} > {xi:.2f}" in says(page, "verdict")
    assert f"point {i + 1} at ({points[i][0]:.2f}, {points[i][1]:.2f})" in says(page, "point")
    said = float(re.search(r"residual (\S+);", says(page, "solver")).group(1))
    assert said <= 1e-8
    largest = max((one - np.diag(np.diag(one))).max() for one in (halved, plan))
    assert f"darkest edge {largest:.2f}" in says(page, "solver")
    return shown


def begin(page, name: str) -> None:
    button = page.get_by_role("button", name=name)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator(f'{BOX} .drot-buttons [aria-pressed="true"]').count() == 1


def test_first_numbers(page):
    """The page opens at the counterexample, its middle point chosen."""
    shown = assert_agrees(page)
    assert points_of(page) == LINE and chosen(page) == 1
    assert shown["xi"] == 1.5
    assert shown["symmetric"] == pytest.approx(1.9430, abs=5e-5)
    assert says(page, "verdict") == "Entropy slack: perplexity 1.94 > 1.50."
    words = page.locator(f"{BOX} svg").last.locator(".drot-word").all_text_contents()
    assert words == ["1.50", "1.94", "1.50"]
    words = page.locator(f"{BOX} svg").first.locator(".drot-word").all_text_contents()
    assert all(word.startswith("1.50 → ") for word in words)
    assert float(words[1].split()[-1]) == pytest.approx(shown["after"], abs=5.1e-3)


STARTS = {
    "line of three": (3, [2]),
    "two triples": (6, [2, 5]),
    "two clusters": (12, None),
    "star": (9, [1]),
}


@pytest.mark.parametrize("name", STARTS)
def test_starts(page, name):
    begin(page, name)
    n, slack = STARTS[name]
    assert_agrees(page)
    assert len(points_of(page)) == n
    assert page.locator(f"{BOX} svg").last.locator("[data-point]").count() == n
    handles = page.locator(f"{BOX} [role=button]")
    named = [i + 1 for i in range(n) if ", slack" in handles.nth(i).get_attribute("aria-label")]
    assert named == slack if slack else named
    over = page.locator(f"{BOX} svg").last.locator(".drot-over").count()
    assert over == len(named), "a slack point is warm, and no other"
    assert page.locator(f"{BOX} svg").last.locator(".drot-under").count() == 0


def test_points_move_by_keyboard(page):
    page.set_viewport_size({"width": 1100, "height": 500})  # there is something to scroll
    page.get_by_role("button", name="point 2").focus()
    seen = [assert_agrees(page)["symmetric"]]
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
        seen.append(assert_agrees(page)["symmetric"])
        assert seen[-1] != seen[-2], key
    scrolled = page.evaluate("scrollY")
    for _ in range(30):
        page.keyboard.press("ArrowUp")
    assert page.evaluate("scrollY") == scrolled, "the arrow key also scrolled the page"
    assert points_of(page)[1][1] < 1.2 and page.locator(f"{BOX} svg").first.evaluate(
        "e => [...e.querySelectorAll('.drot-point')].every(c => c.cy.baseVal.value >= 10)"
    ), "the point left its panel"
    assert says(page, "verdict").startswith("Entropy saturated"), "an acute angle is not slack"
    assert_agrees(page)


@pytest.mark.parametrize("panel", [0, 1])
def test_points_move_by_pointer(page, panel):
    svg = page.locator(f"{BOX} svg").nth(panel)
    dot = svg.locator('[data-point="2"] .drot-point').bounding_box()
    x, y = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
    scale = svg.bounding_box()["width"] / 340
    page.mouse.move(x + 3, y)  # off its middle: the point must not jump
    page.mouse.down()
    assert points_of(page) == LINE and chosen(page) == 2
    page.mouse.move(x - 27 * scale + 3, y - 54 * scale, steps=4)
    page.wait_for_function(
        "old => !document.querySelector('[data-point=\"2\"]').ariaLabel.includes(old)",
        arg="(1.00, 0.00)",
    )
    page.evaluate("() => new Promise(requestAnimationFrame)")
    moved = points_of(page)
    for other in page.locator(f'{BOX} [data-point="2"] .drot-point').all():  # in both panels
        box = other.locator("xpath=ancestor::*[local-name()='svg']").bounding_box()
        dot = other.bounding_box()
        at = (dot["x"] + dot["width"] / 2 - box["x"], dot["y"] + dot["height"] / 2 - box["y"])
        home = svg.bounding_box()
        want = (x - 27 * scale - home["x"], y - 54 * scale - home["y"])
        assert at == pytest.approx(want, abs=1.5)
    page.mouse.up()
    np.testing.assert_allclose(moved[2], [1 - 27 / 95, 54 / 95], atol=0.011)
    assert moved[:2] == LINE[:2]
    assert_agrees(page)
    page.mouse.move(x - 27 * scale - 4, y - 54 * scale)  # over the point, the button up
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert points_of(page) == moved
    page.keyboard.press("ArrowLeft")  # the same point listens to the keys
    assert points_of(page)[2][0] == pytest.approx(moved[2][0] - 0.1)


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
    notches = [1.05]
    for _ in range(100):
        page.keyboard.press("ArrowRight")
        notches.append(float(page.locator('[data-name="xi"]').get_attribute("data-value")))
    assert (np.diff(notches) > 0).all(), "a notch without effect"
    steps = np.diff(np.log(notches))
    assert steps.max() < 2 * np.log(8.95 / 1.05) / 100, "the scale is not logarithmic"


def test_points_are_chosen_by_tab_and_click(page):
    begin(page, "two triples")
    page.get_by_role("slider").focus()
    for i in range(6):
        page.keyboard.press("Tab")
        assert chosen(page) == i
        assert_agrees(page)
    focused = page.locator(":focus-visible")
    assert focused.get_attribute("data-point") == "5"
    assert focused.evaluate("e => getComputedStyle(e).outlineStyle") != "none"
    rings = page.locator(f'{BOX} .drot-ring[visibility="visible"]')
    assert rings.count() == 2  # one in each panel
    page.locator(f"{BOX} svg").last.locator('[data-point="1"]').click()
    assert chosen(page) == 1
    assert_agrees(page)
    page.keyboard.press("Tab")
    assert chosen(page) == 2, "a click does not take the keyboard along"


def test_coincident_points_are_explained(page):
    """Two points at one place have perplexity 2 or more; one step away all is well again."""
    page.get_by_role("button", name="point 2").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert points_of(page)[1] == points_of(page)[2]
    assert "2 points coincide" in says(page, "solver")
    assert says(page, "solver").count(".") == 2  # one sentence, and the point of 1.50
    assert says(page, "verdict") == ""
    assert page.locator(f'{BOX} [data-name="symmetric"]').inner_text() == "–"
    dark = page.locator(f"{BOX} .drot-edge").evaluate_all(
        "all => Math.max(...all.map(e => Number(e.getAttribute('stroke-opacity'))))"
    )
    assert dark == 0
    page.keyboard.press("Shift+ArrowUp")
    assert_agrees(page)
    page.keyboard.press("Shift+ArrowDown")
    page.get_by_role("slider").focus()
    page.keyboard.press("End")  # above 2 the affinity exists again
    assert_agrees(page)


def test_table_lists_all_points(page):
    begin(page, "two clusters")
    page.get_by_text("Perplexities of all points").click()
    rows = page.locator(f"{BOX} tbody tr")
    assert rows.count() == 12
    for i in (0, 7):
        page.locator(f"{BOX} [role=button]").nth(i).focus()
        shown = assert_agrees(page)
        cells = rows.nth(i).locator("th, td").all_inner_texts()
        want = [f"{shown[name]:.2f}" for name in NUMBERS[1:]]
        assert cells[:5] == [str(i + 1), *want]
        assert cells[5] in says(page, "verdict")


@pytest.mark.parametrize("width", [1100, 390])
def test_nothing_moves(browser, page_file, width):
    """No number, verdict or complaint changes the height of the widget."""
    page = open_page(browser, page_file, width)
    height = page.locator(BOX).bounding_box()["height"]
    slider = page.get_by_role("slider")
    for name in STARTS:
        begin(page, name)
        assert page.locator(BOX).bounding_box()["height"] == pytest.approx(height, abs=0.6), name
        slider.focus()
        for key in ("End", "Home"):
            page.keyboard.press(key)
            assert page.locator(BOX).bounding_box()["height"] == pytest.approx(height, abs=0.6)
    begin(page, "line of three")
    page.get_by_role("button", name="point 2").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert "coincide" in says(page, "solver")
    assert page.locator(BOX).bounding_box()["height"] == pytest.approx(height, abs=0.6)
    assert not page.said
    page.context.close()


def test_phone(browser, page_file):
    """The panels stand one above the other, and nothing is wider than the screen."""
    page = open_page(browser, page_file, width=390)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    page.get_by_text("Perplexities of all points").click()
    upper, lower = (page.locator(f"{BOX} svg").nth(k).bounding_box() for k in (0, 1))
    assert lower["y"] >= upper["y"] + upper["height"]
    for name in STARTS:
        begin(page, name)
        facts = page.evaluate("probe.facts()")
        assert facts["overflow"] <= 0 and not facts["wide"]
    page.context.close()


def test_accessible(page):
    """What axe finds, in the state with most on show, and contrast in both themes."""
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf8")
    page.evaluate(axe)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    for name in ("line of three", "star"):
        begin(page, name)
        page.locator(f"{BOX} details").evaluate("e => { e.open = true }")
        assert not page.evaluate("probe.axe()")
    marks = {".drot-over": "fill", ".drot-ring": "stroke", ".drot-under": "stroke"}
    words = {".drot-word": "fill"}
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert not page.evaluate("probe.faint()"), theme
        for kinds, least in ((marks, 3), (words, 4.5)):
            for kind, attribute in kinds.items():
                assert contrast(page, kind, attribute) >= least, (theme, kind)


def test_announced_and_labelled(page):
    output = page.locator(f"{BOX} output")
    assert output.get_attribute("aria-live") == "polite"
    slider = page.locator(f"{BOX} input")
    assert slider.count() == 1
    assert page.locator(f'label[for="{slider.get_attribute("id")}"]').inner_text().strip()
    assert slider.get_attribute("id") in output.get_attribute("for").split()
    hint = page.locator(f"{BOX} [role=button]").first.get_attribute("aria-describedby")
    assert "arrow keys" in page.locator(f"#{hint}").inner_text()
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
