"""Widgets whose points or draws are a reader's own say what Python says, in chapter order.

Each test begins with the name of its widget.
"""

import json
import re

import drot
import numpy as np
import pytest
import torch
from plans import squares
from scipy.stats import entropy

LINE = [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
OCTAGON = [[0, 0], *((np.cos(a), np.sin(a)) for a in np.pi / 4 * np.arange(8))]


def cloud(seed: int, n: int, *, decades: float = 0, apart: float = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 10 ** rng.uniform(-decades / 2, decades / 2, size=(n, 1))
    return X + apart * rng.integers(0, 2, size=(n, 1))


CASES = [  # points, perplexity, and which of them are slack
    (LINE, 1.5, [1]),
    (OCTAGON, 6.0, [0]),
    (OCTAGON, 1.5, []),
    ([[-1, 0], [0, 0], [0, 0], [1, 0]], 2.5, [1, 2]),  # its middle is doubled
    (cloud(1, 12, decades=2), 2.5, None),
    (cloud(5, 10, decades=2, apart=12), 6.0, None),
    (cloud(3, 8), 7.9, None),  # nearly even
    (cloud(4, 9), 1.06, None),  # nearly alone
]


def test_symmetric_core_agrees_with_the_package(widget):
    for points, xi, slack in CASES:
        cost = squares(points)
        got = widget.core("symmetricEntropicAffinity", cost, xi)
        want = drot.symmetric_entropic_affinity(cost, perplexity=xi, tol=1e-11)
        assert got["residual"] <= 1e-8
        np.testing.assert_allclose(got["P"], want.plan.numpy(), rtol=0, atol=1e-6)
        assert got["slack"] == want.slack.tolist()
        if slack is not None:
            assert np.flatnonzero(got["slack"]).tolist() == slack
            assert (np.array(got["gamma"])[slack] == 0).all(), "slack to rounding only"


def assert_drawn(widget, panel: int, plan: np.ndarray) -> None:
    """A line between the points of each pair, as dark as its weight."""
    svg = widget.find("svg").nth(panel)
    value, dark, *ends = widget.marks(
        svg.locator(".drot-edge"), "data-value", "stroke-opacity", "x1", "y1", "x2", "y2"
    ).T
    at = widget.marks(svg.locator(".drot-point"), "cx", "cy")
    i, j = np.tril_indices(len(plan), -1)
    np.testing.assert_allclose(np.transpose(ends), np.hstack([at[i], at[j]]))
    np.testing.assert_allclose(value, plan[i, j], rtol=0, atol=1e-6)
    np.testing.assert_allclose(dark * value.max(), value * dark.max(), rtol=0, atol=1e-12)
    assert 0 < dark.max() <= 1


def symmetric_agrees(widget) -> dict[str, float]:
    """Both graphs and all numbers, against the package at the points that the page shows."""
    shown, points, i = widget.numbers(), widget.points(), widget.chosen()
    cost, xi = squares(points), shown["xi"]
    halved = drot.symmetrize(drot.entropic_affinity(cost, perplexity=xi, tol=1e-12).plan).numpy()
    symmetric = drot.symmetric_entropic_affinity(cost, perplexity=xi, tol=1e-11)
    plan = symmetric.plan.numpy()
    assert_drawn(widget, 0, halved)
    assert_drawn(widget, 1, plan)
    assert shown["before"] == pytest.approx(xi, rel=1e-9)
    assert shown["after"] == pytest.approx(np.exp(entropy(halved[i])), rel=1e-6)
    assert shown["mass"] == pytest.approx(halved[i].sum(), rel=1e-6)
    assert shown["symmetric"] == pytest.approx(np.exp(entropy(plan[i])), rel=1e-5)

    slack, verdict = bool(symmetric.slack[i]), widget.says("verdict")
    assert verdict.startswith("Entropy slack" if slack else "Entropy saturated")
    assert not slack or f"perplexity {shown['symmetric']:.2f} > {xi:.2f}" in verdict
    assert f"point {i + 1} at ({points[i][0]:.2f}, {points[i][1]:.2f})" in widget.says("point")
    assert float(re.search(r"residual (\S+);", widget.says("solver"))[1]) <= 1e-8
    largest = max((one - np.diag(np.diag(one))).max() for one in (halved, plan))
    assert f"darkest edge {largest:.2f}" in widget.says("solver")
    return shown


def test_symmetric_line_and_its_perplexity(widget):
    seen, text = widget.slide("Target perplexity", symmetric_agrees)
    numbers = np.array([[shown["xi"], shown["symmetric"]] for shown in seen])
    assert (np.diff(numbers, axis=0) > 0).all() and text == "perplexity 2.95"
    assert numbers[[0, -1], 0] == pytest.approx([1.05, 2.95])


@pytest.mark.parametrize(
    ("name", "n", "slack"),
    [("two triples", 6, [2, 5]), ("two clusters", 12, None), ("star", 9, [1])],
)
def test_symmetric_starts_and_the_table(widget, name, n, slack):
    widget.press(name)
    named = [i for i, name in enumerate(widget.labels(), 1) if ", slack" in name]
    assert named == slack if slack else named
    right = widget.find("svg").last
    assert right.locator(".drot-more").count() == len(named), "a slack point is teal, and no other"
    right.locator('[data-point="1"]').click()
    shown, rows = symmetric_agrees(widget), widget.table()
    assert widget.chosen() == 1 and len(rows) == n
    told = [f"{shown[name]:.2f}" for name in ("before", "after", "mass", "symmetric")]
    assert rows[1][:5] == ["2", *told]


PRIORS = {"row": "D: one edge", "binary": "B: each edge", "edges": "E: n edges"}


def expectation(points, tau: float, prior: str) -> np.ndarray:
    log_kernel = torch.from_numpy(-squares(points) / (2 * tau**2))
    return drot.expected_graph(log_kernel, prior=prior).numpy()


def degrees(W: np.ndarray) -> np.ndarray:
    return W.sum(axis=-1) + W.sum(axis=-2)


def alone(P: np.ndarray, prior: str) -> np.ndarray:
    """Probability of no edge: in B a product, in E a power."""
    if prior == "binary":
        return (1 - P).prod(axis=0) * (1 - P).prod(axis=1)
    return (1 - degrees(P) / len(P)) ** len(P) if prior == "edges" else np.zeros(len(P))


def prior_of(widget) -> str:
    text = widget.find('button[aria-pressed="true"]').inner_text()
    return next(key for key, name in PRIORS.items() if text.startswith(name))


def weights(widget, panel: int, kind: str) -> np.ndarray:
    """Entries that a panel draws, (n, n); an edge is as dark as its weight, up to 1."""
    edges = widget.find("svg").nth(panel).locator(f".drot-{kind}")
    i, j = widget.marks(edges, "data-from", "data-to").astype(int).T
    value, dark = widget.marks(edges, "data-value", "stroke-opacity").T
    W = np.zeros((len(widget.labels()),) * 2)
    W[i, j] = value
    assert np.array_equal(dark, np.minimum(1, value) if kind == "mean" else value > 0)
    heads = edges.locator("xpath=following-sibling::*[1]")
    assert np.array_equal(widget.marks(heads, "fill-opacity").ravel(), dark)
    return W


def priors_agree(widget) -> dict[str, float]:
    """Both graphs and all numbers, against Python at the points that the page shows."""
    shown, points, i = widget.numbers(), widget.points(), widget.chosen()
    prior = prior_of(widget)
    P = expectation(points, shown["tau"], prior)
    mean, last = weights(widget, 0, "mean"), weights(widget, 0, "last")
    np.testing.assert_allclose(weights(widget, 1, "mean"), P, rtol=0, atol=1e-12)
    if prior == "binary":
        assert (last <= 1).all()
    else:  # one edge from each point, or as many edges as points
        assert last.sum() == len(P) and (prior == "edges" or (last.sum(axis=1) == 1).all())
    assert shown["edges"] == pytest.approx(degrees(P)[i], rel=1e-9)
    assert shown["drawn"] == pytest.approx(degrees(mean)[i], rel=1e-9)
    assert shown["alone"] == pytest.approx(alone(P, prior)[i], abs=1e-9)
    assert f"expected graph: {abs(mean - P).max():.2f}." in widget.says("verdict")
    assert f"Point {i + 1} at ({points[i][0]:.2f}, {points[i][1]:.2f})" in widget.says("point")
    for panel, weight in enumerate((mean, P)):
        words = widget.find("svg").nth(panel).locator(".drot-word").all_text_contents()
        np.testing.assert_allclose([float(w) for w in words], degrees(weight), atol=0.0501)
    return shown


def test_priors_begin_as_the_chapter_says(widget):
    """One edge out of each point: the far one, which is chosen, keeps its edge."""
    shown = priors_agree(widget)
    assert widget.chosen() == 6 == widget.points()[:, 0].argmax() and prior_of(widget) == "row"
    assert shown["tau"] == 1 and shown["alone"] == 0 and shown["edges"] > 1


@pytest.mark.parametrize("prior", PRIORS)
def test_priors_draws_add_up(widget, prior):
    """Their mean, and how often the chosen point had no edge; a thousand come near the law."""
    widget.press(PRIORS[prior])
    widget.handles.nth(6).focus()
    drawn = [weights(widget, 0, "last")]
    for _ in range(9):
        widget.press("Draw one")
        drawn.append(weights(widget, 0, "last"))
    np.testing.assert_allclose(weights(widget, 0, "mean"), np.mean(drawn, axis=0), atol=1e-12)
    lonely = np.mean([degrees(W)[6] == 0 for W in drawn])
    assert priors_agree(widget)["lonely"] == pytest.approx(lonely, abs=1e-9)
    for _ in range(10):
        widget.press("Draw 100")
    assert widget.says("verdict").startswith("1010 graphs drawn.")
    mean, P = weights(widget, 0, "mean"), weights(widget, 1, "mean")
    # the law of an entry is binomial; the seed is the page's
    assert (np.abs(mean - P) <= 4.5 * np.sqrt(P / 1010) + 2e-3).all()
    widget.handles.nth(1).press("ArrowUp")  # draws of another law do not count
    assert widget.says("verdict").startswith("1 graph drawn.")


def test_priors_bandwidth_by_keyboard(widget):
    seen, text = widget.slide("Bandwidth of the kernel", lambda w: priors_agree(w)["tau"])
    assert (np.diff(seen) > 0).all() and text == "bandwidth 3.00"
    assert (seen[0], seen[-1]) == pytest.approx((0.3, 3))


MARK = [[2.0, -3, 1], [-3, 2, 1], [1, 1, -2]]  # prp-soft-wins
# points, clusters, pixels for one unit of length, similarity, steps that "Descend" takes at least
STARTS = {
    "three clouds": (12, 3, 46, lambda X: (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T, 3),
    "a ring and its middle": (12, 2, 50, squares, 3),
    "three points": (3, 2, 46, lambda X: np.array(MARK), 0),
}


def structure_of(C, T) -> np.ndarray:
    """The package's small matrix, 0 for empty clusters."""
    used = T.sum(axis=0) > 0
    D = np.zeros((T.shape[1],) * 2)
    D[np.ix_(used, used)] = drot.gromov.coarsen(C, T[:, used]).structure.numpy()
    return D


def value_of(C, T) -> float:
    """The objective by its definition: all pairs of pairs."""
    pairs = (np.asarray(C)[:, :, None, None] - structure_of(C, T)) ** 2
    return float(np.einsum("ijkl,ik,jl", pairs, T, T))


def plan_shown(widget) -> np.ndarray:
    """The plan that the discs and their names tell, (n, k)."""
    t, names = widget.numbers()["t"], widget.labels()
    T = np.zeros((len(names), int(widget.slider("Clusters").input_value())))
    for row, name in zip(T, names, strict=True):
        if shared := re.search(r"shared, \d+ % in cluster (\d) and (\d+) % in cluster (\d)", name):
            row[int(shared[1]) - 1] = 1 - t
            row[int(shared[3]) - 1] += t
            assert int(shared[2]) == round(100 * t)
        else:
            row[int(re.search(r"in cluster (\d)$", name)[1]) - 1] = 1
    return T / len(T)


def srgw_agrees(widget, name: str) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Curve, tangent and numbers, against Python: C from where the discs are drawn, T, numbers."""
    *_, unit, similarity, _ = STARTS[name]
    at = widget.marks(".drot-hit", "cx", "cy")
    C = similarity(np.round((at - [170, 120]) / [unit, -unit], 6))
    T, shown = plan_shown(widget), widget.numbers()
    values, held = (
        np.array(json.loads(widget.find(f'[data-curve="{c}"]').get_attribute("data-values")))
        for c in ("reduced", "fixed")
    )
    t, objective = shown["t"], value_of(C, T)
    assert shown["objective"] == pytest.approx(objective, rel=1e-9, abs=1e-9)
    kmeans = float(np.trace(C) / len(T) - T.sum(axis=0) @ np.diag(structure_of(C, T)))
    sign = -1 if similarity is squares else 1  # distances: that of -C
    assert shown["kmeans"] == pytest.approx(sign * kmeans, rel=1e-9, abs=1e-9)
    assert shown["kmeans"] > 0 or name == "three points"
    assert shown["chord"] == pytest.approx((1 - t) * values[0] + t * values[-1], rel=1e-9)
    touch = [values[round(100 * t)], held[round(100 * t)]]
    assert touch == pytest.approx([objective] * 2, rel=1e-9)
    assert (held >= values - 1e-9 * np.abs(values)).all()  # and never cross
    ends = widget.find("[data-end]").all_text_contents()
    assert ends == [f"before: {values[0]:.3f}", f"after: {values[-1]:.3f}"]
    verdict = widget.says("verdict")
    assert not verdict.startswith("Sharing wins") or f"{values.min():.3f}" in verdict
    return C, T, shown


def test_srgw_share_moves_by_keyboard(widget):
    seen, text = widget.slide("From", lambda w: srgw_agrees(w, "three clouds")[2]["t"])
    assert (np.diff(seen) > 0).all() and (seen[0], seen[-1]) == (0, 1) and text == "100 % moved"


@pytest.mark.parametrize("name", STARTS)
def test_srgw_descend_takes_the_best_move_and_ends(widget, name):
    widget.press(name)
    n, k, *_, least = STARTS[name]
    C, T, _ = srgw_agrees(widget, name)
    assert T.shape == (n, k)
    if name == "three points":
        found = widget.says("verdict")
        assert found.startswith("Sharing wins: at 0.50 the objective is 2.543, ")
    widget.slider("From").press("Home")
    last, steps = widget.numbers()["objective"], 0
    while True:
        T = np.repeat(plan_shown(widget)[None], n * k, axis=0)
        move = np.arange(n * k)
        T[move, move // k] = np.eye(k)[move % k] / n
        best = min(value_of(C, trial) for trial in T)
        widget.press("Descend")
        if widget.says("move").startswith("No single point"):
            break
        assert widget.numbers()["objective"] == pytest.approx(best) and best < last
        last, steps = best, steps + 1
        assert steps < 40
    assert best >= last - 1e-9 and steps >= least
    srgw_agrees(widget, name)


def prototypes(widget) -> dict[str, np.ndarray]:
    """What the cell of the chapter gives: members, weights, classes."""
    given = json.loads(widget.find('script[type="application/json"]').text_content())
    return {name: np.array(value) for name, value in given.items()}


def assert_painted(image, data: dict, i: int) -> None:
    """An image is the digit as scikit-learn has it, on the scale of the widget."""
    found = np.zeros((8, 8), dtype=int)
    for d, ink in image.locator("path").evaluate_all(
        "all => all.map(p => [p.getAttribute('d'), p.getAttribute('fill-opacity')])"
    ):
        for x, y in re.findall(r"M(\d) (\d)h1v1h-1z", d):
            assert found[int(y), int(x)] == 0
            found[int(y), int(x)] = round(15 * float(ink))
    digit = drot.datasets.digits(len(data["classes"])).X[i].numpy()
    np.testing.assert_array_equal(found.ravel(), np.minimum(digit, 15))


def test_prototypes_begin_with_the_heaviest(widget):
    """Members, counts and words of the one prototype at which the Tab key stops."""
    data = prototypes(widget)
    stop = widget.find('[data-prototype][tabindex="0"]')
    a = int(stop.get_attribute("data-prototype"))
    assert stop.get_attribute("aria-pressed") == "true"
    assert data["weights"][a] == data["weights"].max()
    own = (data["labels"] == a).nonzero()[0]
    panel = widget.find("svg[role=img]")
    shown = widget.marks(panel.locator("[data-image]"), "data-image").ravel()
    assert shown.tolist() == own[:24].tolist()
    assert_painted(panel.locator("[data-image]").first, data, own[0])
    bars = widget.marks(panel.locator("[data-class]"), "data-class", "data-count", "height")
    counts = np.bincount(data["classes"][own], minlength=10)
    np.testing.assert_array_equal(bars[:, :2], np.stack([np.arange(10), counts], axis=1))
    np.testing.assert_allclose(bars[:, 2] / bars[:, 2].max(), counts / counts.max(), atol=1e-9)
    words = widget.says("chosen")
    weight, members = re.match(r"Weight ([\d.]+) %, (\d+) members?: ", words).groups()
    assert float(weight) == pytest.approx(100 * data["weights"][a], abs=0.0501)
    assert int(members) == len(own)
    told = [(int(c), int(m)) for m, c in re.findall(r"(\d+) of class (\d)", words)]
    assert told == sorted([(c, counts[c]) for c in counts.nonzero()[0]], key=lambda t: -t[1])


def test_prototypes_on_the_map(widget):
    """Every prototype is its medoid, at its place, with an area in proportion to its weight."""
    data = prototypes(widget)
    used = np.flatnonzero(data["weights"])
    images = widget.find("[data-prototype] [data-image]")
    order = widget.marks("[data-prototype]", "data-prototype").ravel().astype(int)
    assert sorted(order) == used.tolist()
    medoids = widget.marks(images, "data-image").ravel()
    np.testing.assert_array_equal(medoids, data["medoids"][order])
    assert_painted(images.last, data, int(medoids[-1]))
    moves = images.evaluate_all("all => all.map(e => e.getAttribute('transform'))")
    x, y, side = np.array([re.findall(r"-?[\d.]+", m) for m in moves], float).T * [[1], [1], [8]]
    ratio = side**2 / data["weights"][order]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    places, at = data["positions"][order], np.stack([x, -y], axis=1)
    at += np.outer(side / 2, [1, -1])
    places, at = places - places[0], at - at[0]
    unit = np.sum(places * at) / np.sum(places**2)  # one scale, no turn, no mirror
    assert unit > 0
    np.testing.assert_allclose(at, unit * places, atol=0.05)
