"""Small widgets say what Python says: each test begins with the name of its own."""

import itertools
import math

import drot
import numpy as np
import ot
import pytest
import torch
from plans import squares
from scipy.special import rel_entr


def tsne_plan(X: torch.Tensor, xi: float) -> torch.Tensor:
    """Of mass n."""
    rows = drot.entropic_affinity(drot.sqeuclidean(X), perplexity=xi, diagonal="drop", tol=1e-11)
    return drot.symmetrize(rows)


def divergence(P: torch.Tensor, Z: np.ndarray) -> float:
    """KL(P / n, Q)."""
    K = 1 / (1 + squares(Z)) - np.eye(len(Z))
    return float(rel_entr(P.numpy() / len(P), K / K.sum()).sum())


def test_starts_of_the_first_page_are_of_tsne(widget):
    """Its affinities, objective and gradient are the package's."""
    n = 60
    X, Z = drot.datasets.digits(n).X, np.random.default_rng(0).normal(scale=3, size=(n, 2))
    code = """([X, Z]) => {
        const P = drotStarts.affinities(drotStarts.squares(X, 64), 12);
        const numbers = [P, drotStarts.gradient(P, Z), [drotStarts.objective(P, Z)]];
        return numbers.map(list => Array.from(list));
    }"""
    given = [X.flatten().tolist(), Z.ravel().tolist()]
    P, gradient, value = widget.page.evaluate(code, given)
    wanted = tsne_plan(X, 12)
    np.testing.assert_allclose(np.reshape(P, (n, n)), wanted / n, rtol=1e-7, atol=1e-15)
    slope = drot.SNELoss(wanted, "student").evaluate(torch.from_numpy(Z)).gradient / n
    np.testing.assert_allclose(np.reshape(gradient, (n, 2)), slope, rtol=1e-6, atol=1e-12)
    assert value[0] == pytest.approx(divergence(wanted, Z), rel=1e-9)


def test_starts_say_what_their_maps_are(widget):
    """KL of each, and how alike they are: ten nearest, and distances between classes."""
    digits, shown = drot.datasets.digits(500), widget.numbers()
    maps = widget.page.evaluate("drotStartsState.maps.map(map => Array.from(map.Z))")
    maps, plan = np.array(maps).reshape(2, 500, 2), tsne_plan(digits.X, 30)
    told = widget.find(".drot-maps .drot-title").all_inner_texts()[:2]
    told = [float(heading.rpartition("KL ")[2]) for heading in told]
    assert told == pytest.approx([divergence(plan, Z) for Z in maps], abs=6e-4)
    near = [squares(Z).argsort(axis=1)[:, 1:11] for Z in maps]
    shared = [len({*a} & {*b}) / 10 for a, b in zip(*near, strict=True)]
    assert shown["shared"] == pytest.approx(np.mean(shared), abs=1e-9)
    y = digits.y.numpy()
    centres = [np.stack([Z[y == c].mean(axis=0) for c in range(10)]) for Z in maps]
    gaps = [squares(c)[np.triu_indices(10, 1)] ** 0.5 for c in centres]
    assert shown["correlated"] == pytest.approx(np.corrcoef(gaps)[0, 1], abs=1e-9)


def prices_agree(widget) -> tuple[float, float]:
    """Bill, gap, bar and lines, for the fees of the sliders; the bill, and the cheapest plan."""
    town = {name: np.array(value) for name, value in widget.given("town").items()}
    bakeries, cafes, has, wants = (town[key] for key in ("bakeries", "cafes", "has", "wants"))
    C = squares(np.vstack([bakeries, cafes]))[: len(bakeries), len(bakeries) :]
    cheapest = round(ot.emd2(1.0 * has, 1.0 * wants, C))  # of whole numbers, one is
    f = np.array([float(one.input_value()) for one in widget.find("input").all()])
    beside = [text.replace("\u2212", "-") for text in widget.find("label span").all_inner_texts()]
    assert [*map(float, beside)] == f.tolist()
    slack = C - f[:, None]
    bill = float(has @ f + wants @ slack.min(axis=0))  # each café's fee is as high as it may be
    assert [float(widget.says(name)) for name in ("bill", "gap")] == [bill, cheapest - bill]
    (bar,) = widget.marks("rect[height='18']", "width").ravel()
    (line,) = widget.marks(".drot-cross", "x1").ravel()
    # its axis begins at 0
    assert bar == pytest.approx(max(0, bill) / cheapest * (line - 8), abs=1e-6)
    drawn = widget.find('.drot-edge[visibility="visible"]').count()
    assert drawn == (slack == slack.min(axis=0)).sum()
    return bill, cheapest


def test_prices_bound_every_plan(widget):
    """The bill rises with each step, and ends at the cost of the cheapest plan."""
    first, best = prices_agree(widget)
    widget.slider("Fee at bakery 3").press("ArrowRight")
    bills = [first]
    while "no plan is cheaper" not in widget.says("finding"):
        bills.append(float(widget.says("bill")))
        widget.press("Best step")
    assert (np.diff(bills) > 0).all() and prices_agree(widget)[0] == best
    widget.slider("Fee at bakery 2").press("End")
    assert prices_agree(widget)[0] < best and "Lower its fee" in widget.says("finding")
    widget.press("Best fees")
    assert prices_agree(widget)[0] == best
    widget.press("No fees")
    assert float(widget.says("bill")) == first


def package_row(costs: list[float], xi: float) -> dict:
    """The package's solution; a square cost whose rows are all this one."""
    found = drot.entropic_affinity(np.tile(costs, (len(costs), 1)), perplexity=xi, tol=1e-12)
    p = found.plan[0].numpy()
    return {"eps": float(found.eps[0]), "p": p, "cost": float(p @ costs)}


def test_row_with_ties_and_far_from_zero(widget):
    for costs in ([0.0, 0.0, 0.5, 1.0, 1.0, 7.0], [5000.0, 5001.0, 5004.0], [-3e-7, -1e-7, 2e-7]):
        ties = costs.count(min(costs))
        assert widget.core("ties", costs) == ties
        for share in (0.05, 0.6, 0.95):
            xi = ties + share * (len(costs) - ties)
            eps, want = widget.core("solve", costs, xi), package_row(costs, xi)
            assert eps == pytest.approx(want["eps"], rel=1e-9)
            p = widget.core("softmax", costs, eps)
            np.testing.assert_allclose(p, want["p"], rtol=0, atol=1e-9)


def row_agrees(widget) -> dict[str, float]:
    """Numbers, bars and both sliders, against the package."""
    shown = widget.numbers()
    want = package_row(widget.given("costs"), shown["perplexity"])
    assert shown["eps"] == pytest.approx(want["eps"], rel=1e-7)
    assert shown["cost"] == pytest.approx(want["cost"], rel=1e-7)
    heights = widget.marks(".drot-probability", "height").ravel()
    np.testing.assert_allclose(heights / heights.sum(), want["p"], atol=1e-7)
    eps, xi = (float(s.input_value()) for s in widget.find("input").all())
    assert eps == pytest.approx(math.log10(shown["eps"]), abs=0.011)
    assert xi == pytest.approx(shown["perplexity"], abs=0.051)
    return shown


def test_row_begins_as_asked_and_slides(widget):
    """With a larger bandwidth, or perplexity, all three numbers are larger."""
    asked = widget.given("perplexity")
    assert row_agrees(widget)["perplexity"] == pytest.approx(asked, rel=1e-9)
    for label, says in (("Bandwidth", "bandwidth "), ("Target perplexity", "perplexity ")):
        seen, text = widget.slide(label, row_agrees)
        numbers = [[shown[name] for name in ("eps", "perplexity", "cost")] for shown in seen]
        assert (np.diff(numbers, axis=0) > 0).all() and text.startswith(says)


def balance_agrees(widget, on: bool) -> dict[str, float]:
    """Divided by its sum, or balanced."""
    cost, shown = squares(widget.points()), widget.numbers()
    K = np.exp(-cost)
    Q = len(K) * K / K.sum()
    if on:
        Q = drot.doubly_stochastic_affinity(cost, bandwidth=1.0, tol=1e-12).plan.numpy()
    mass = Q.sum(axis=1)
    assert [shown["least"], shown["most"]] == pytest.approx([mass.min(), mass.max()], abs=1e-8)
    drawn = widget.marks(".drot-edge", "data-value")[:, 0]
    np.testing.assert_allclose(drawn, Q[np.tril_indices(len(Q), -1)], atol=1e-8)
    told = [float(line[1]) for line in widget.table()]
    np.testing.assert_allclose(told, mass, atol=0.0051)
    return shown


def test_balance_makes_up_for_the_crowd(widget):
    """Off, the middle has more than one unit, and more when a point joins it; on, one for all."""
    first = balance_agrees(widget, on=False)
    assert first["mass"] > 1.1 and first["least"] < 0.9
    for _ in range(8):
        widget.handles.nth(5).press("ArrowLeft")
    widget.handles.nth(0).focus()
    assert balance_agrees(widget, on=False)["mass"] != first["mass"]
    widget.press("Balance on")
    now = balance_agrees(widget, on=True)
    assert now["least"] == pytest.approx(1, abs=1e-9) == now["most"]


def growth_agrees(widget, mode: str) -> tuple[float, float, float]:
    """Radius, KL per point and growth; what pulls each pair is plan less plan."""
    shown, P, loops = widget.numbers(), np.array(widget.given("plans")[mode]), mode == "on"
    square = shown["radius"] / 2**0.5 * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    K = 1 / (1 + squares(square)) - (0 if loops else np.eye(4))
    Q = P.sum() * K / K.sum()
    Z = torch.from_numpy(square)
    found = drot.SNELoss(P, "student", diagonal="keep" if loops else "drop").evaluate(Z)
    growth = -float((found.gradient * Z).sum()) / P.sum()
    assert shown["kl"] == pytest.approx(float(drot.kl_divergence(P, Q)) / 4, rel=1e-9)
    assert shown["growth"] == pytest.approx(growth, rel=1e-6, abs=1e-12)
    drawn = widget.marks("line[data-value]", "data-value")[:, 0]
    np.testing.assert_allclose(drawn, (P - Q)[np.tril_indices(4, -1)], atol=1e-9)
    assert ("enlarges" in widget.says("verdict")) == (growth > 0)
    return shown["radius"], shown["kl"], growth


def test_growth_ends_with_self_loops_only(widget):
    """Without them every larger square is better; with them one size is."""
    label = "Radius of the map"
    radii, kl, growth = zip(*widget.slide(label, lambda w: growth_agrees(w, "off"))[0], strict=True)
    assert (radii[0], radii[-1]) == pytest.approx((0.2, 8))
    assert (np.diff(kl) < 0).all() and min(growth) > 0
    widget.press("With self-loops")
    _, kl, growth = zip(*widget.slide(label, lambda w: growth_agrees(w, "on"))[0], strict=True)
    assert growth[0] > 0 > growth[-1] and kl[-1] > min(kl) < kl[0]


def drift_agrees(widget) -> tuple[float, np.ndarray, np.ndarray]:
    """The density, of the edges that are drawn, and points and edges."""
    points, shown = widget.points(), widget.numbers()["density"]
    W = np.zeros((len(points),) * 2)
    i, j = widget.marks(".drot-edge", "data-from", "data-to").astype(int).T
    W[i, j] = 1
    assert shown == pytest.approx(drot.graphs.mrf_log_density(points, W), abs=1e-9)
    return shown, points, W


def test_drift_of_a_component_and_a_point(widget):
    """The density sees a point that moves, and no component. By keyboard; nothing leaves the panel,
    and a component keeps its shape at the border."""
    first, start, W = drift_agrees(widget)
    own = drot.connected_components(W).labels.numpy() == 1
    widget.handles.nth(7).focus()
    for key, presses in (("ArrowUp", 12), ("ArrowRight", 30), ("ArrowDown", 45)):
        for _ in range(presses):
            widget.page.keyboard.press(key)
    shown, points, _ = drift_agrees(widget)
    assert shown == pytest.approx(first, abs=1e-9) and "does not notice" in widget.says("verdict")
    assert (points[~own] == start[~own]).all() and np.abs(points).max() <= 3.6
    moves = points[own] - start[own]
    assert np.ptp(moves, axis=0).max() < 1e-9 and np.abs(moves).max() > 0.5
    widget.press("Move the point alone")
    for _ in range(8):
        widget.handles.nth(7).press("ArrowUp")
    assert drift_agrees(widget)[0] < first and "fallen by" in widget.says("verdict")
    widget.press("Back to the start")
    assert widget.numbers()["density"] == first and (widget.points() == start).all()


def test_match_swaps_and_has_the_solution(widget):
    A, B = (np.array(widget.given(name)) for name in "ab")

    def carried() -> list[int]:
        return ["abcdefg".index(name[-1]) for name in widget.labels()]

    def disagreement(carried) -> float:
        return float(np.square(A[np.ix_(carried, carried)] - B).sum())

    def swapped(carried, one: int, two: int) -> list[int]:
        return [carried[{one: two, two: one}.get(k, k)] for k in range(7)]

    first = carried()
    for k, key in enumerate(("Enter", " ", "Enter")):
        widget.handles.nth((1, 4, 0)[k]).press(key)
    widget.handles.nth(5).click()
    now = carried()
    assert now == swapped(swapped(first, 1, 4), 0, 5)
    numbers = [float(widget.says(name)) for name in ("value", "share", "swaps")]
    wanted = [disagreement(now), disagreement(now) / disagreement(first), 2]
    assert numbers == pytest.approx(wanted, rel=1e-2)
    while not widget.says("did").startswith("No swap"):
        widget.press("Best swap")
    now = carried()
    trials = [disagreement(swapped(now, *pair)) for pair in itertools.combinations(range(7), 2)]
    assert min(trials) >= disagreement(now)
    widget.press("Solution")
    best = min(map(disagreement, map(list, itertools.permutations(range(7)))))
    assert float(widget.says("value")) == pytest.approx(best, abs=1)
    assert disagreement(carried()) == best


def all_seatings(C: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each of the k^n ways to seat the points, and the fullest place."""
    n, k = len(C), len(D)
    ways = np.array(list(itertools.product(range(k), repeat=n)), dtype=np.int8)
    fullest = np.max([(ways == a).sum(axis=1) for a in range(k)], axis=0)
    pairs = itertools.combinations_with_replacement(range(n), 2)
    loss = sum((1 + (i < j)) * (C[i, j] - D[ways[:, i], ways[:, j]]) ** 2 for i, j in pairs)
    return loss / n**2, fullest


def test_seats_let_the_mass_gather(widget):
    """Each number of seats shows a best seating; with all of them it is the free problem's."""
    points, places = (np.array(widget.given("town")[key], float) for key in ("points", "places"))
    # inner products about the mean of the points
    C, D = (Z @ Z.T for Z in (points - points.mean(axis=0), places - points.mean(axis=0)))
    losses, fullest = all_seatings(C, D)
    slider = widget.slider("Seats in each place")
    slider.press("Home")
    first = widget.numbers()["value"]
    for seats in range(4, 9):
        shown = widget.numbers()
        labels = widget.marks(".drot-point", "data-place").ravel().astype(int)
        taken = np.bincount(labels, minlength=3)
        assert taken.max() <= seats == int(slider.input_value())
        seated = drot.gw_objective(C, D, np.eye(3)[labels] / len(C))
        assert shown["value"] == pytest.approx(float(seated), rel=1e-9)
        assert shown["value"] == pytest.approx(losses[fullest <= seats].min(), rel=1e-9)
        assert shown["share"] == pytest.approx(shown["value"] / first)
        words = widget.find(".drot-axis").all_text_contents()
        assert words == [f"place {a + 1} holds {taken[a]}" for a in range(3)]
        assert widget.find(".drot-probability").count() == len(C)
        slider.press("ArrowRight")
    widget.press("Set free")
    assert slider.input_value() == "12" and slider.get_attribute("aria-valuetext").endswith("limit")
    free = drot.semi_relaxed_gw(C, D)
    assert widget.numbers()["value"] == pytest.approx(free.objective, rel=1e-9)
    assert "7, 3, 2" in widget.says("finding")
