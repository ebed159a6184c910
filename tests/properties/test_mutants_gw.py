"""Facts of Gromov-Wasserstein, its descents and its scores that a changed line broke unnoticed."""

from __future__ import annotations

import itertools
import warnings
from itertools import islice
from types import SimpleNamespace

import drot
import numpy as np
import pytest
import sklearn.cluster
import torch
from drot._core.run import lowest
from drot.costs.array import Pairwise, as_pairwise
from drot.costs.factored import Factored
from drot.gromov.barycenter import Reduced, polish, reassign, reduced_descent
from drot.gromov.contraction import Contraction, contraction, hard_plan, standard
from drot.gromov.descent import (
    Line,
    Problem,
    _exchange_change,
    _exchanged,
    _squares,
    conditional_gradient,
    mirror_descent,
    row_moves,
)
from drot.gromov.kmeans import Means
from plans import LOSSES, cloud, energy, problem, soft, weights
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score


def similarities(n: int, k: int, seed: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    """Inner products of points, and of the first of them."""
    X = cloud(n, 2, seed)
    return X @ X.T, X[:k] @ X[:k].T


# ------------------------------------------------------------------------- products of matrices
KINDS = ["matrix", "tiles", "factors"]


def both(kind: str, n: int = 30) -> tuple[Pairwise, torch.Tensor]:
    """A cost of each kind, and the array that it stands for."""
    X = cloud(n, 2)
    D = drot.sqeuclidean(X).dense()
    if kind == "factors":
        return drot.factored_sqeuclidean(X, block=7), D
    return (as_pairwise(D) if kind == "matrix" else drot.sqeuclidean(X, block=7)), D


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_array(kind, loss):
    """Whatever holds C: each product, the diagonal, the constant and the scale."""
    cost, A = both(kind)
    B = problem(0, 5, 5)[1]
    terms, w, T = contraction(cost, B, loss), weights(30), soft(weights(30), 5)
    f1 = A.square() if loss == "square" else torch.xlogy(A, A) - A
    f2, h2 = (B.square(), 2 * B) if loss == "square" else (B, B.log())
    labels = torch.arange(30) % 4
    hard = hard_plan(labels, w, 5)
    torch.testing.assert_close(hard.sum(dim=0)[3], w[3::4].sum())
    assert hard.sum(dim=0)[4] == 0 and ((hard > 0).sum(dim=1) == 1).all()
    few, many = torch.tensor([3, 0, 17]), torch.arange(29, 8, -1)
    pairs = [
        (terms.product(T), A @ T @ h2),
        (terms.times(hard), A @ hard),
        (terms.product(hard), A @ hard @ h2),
        (terms.columns(few, T[:3]), A[:, few] @ T[:3]),
        (terms.columns(many, T[:21]), A[:, many] @ T[:21]),
        (torch.tensor(terms.constant(w)), w @ f1 @ w),
        (torch.tensor(terms.scale(w, terms.constant(w))),
         w @ (A.square() if loss == "square" else A) @ w + f2.mean()),
        (torch.tensor(Problem(terms, w).objective(T)), torch.tensor(energy(A, B, T, loss))),
    ]  # fmt: skip
    for found, expected in pairs:
        torch.testing.assert_close(found, expected.to(found), rtol=1e-10, atol=1e-10)
    if kind == "factors" and loss == "square":  # of the factors, without a row of C
        cost._evaluate = None
        assert terms.constant(w) == pytest.approx(float(w @ f1 @ w), rel=1e-10)


# ------------------------------------------------------------------------------------- descents
@pytest.fixture
def made(monkeypatch) -> list[float]:
    """What each product with C counts for: 1, or the share of the columns of C that it meets."""
    seen: list[float] = []
    inside = False

    def counted(name: str, share, owner=Contraction):
        method = getattr(owner, name)

        def call(self, *args):
            nonlocal inside
            if inside:  # one product made of another
                return method(self, *args)
            inside = True
            seen.append(share(self, *args))
            try:
                return method(self, *args)
            finally:
                inside = False

        monkeypatch.setattr(owner, name, call)

    counted("product", lambda *_: 1)
    for owner in (Pairwise, Factored):
        counted("__matmul__", lambda *_: 1, owner)
    counted("columns", lambda terms, index, Y: len(index) / terms.n)
    return seen


def descents(terms: Problem, T: torch.Tensor):
    yield "conditional gradient", conditional_gradient(terms, terms.state(T))
    yield "mirror descent", mirror_descent(terms, terms.state(T), None)
    yield "fixed epsilon", mirror_descent(terms, terms.state(T), 5.0)
    yield "row moves", row_moves(terms, terms.state(T), 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_each_step_of_a_descent(kind, loss, made):
    """A plan, what the state knows of it, the gap, a value that falls, and the products made."""
    cost, A = both(kind, 24)
    B, w = problem(1, 4, 4)[1], weights(24)
    f2, h2 = (B.square(), 2 * B) if loss == "square" else (B, B.log())
    terms = Problem(contraction(cost, B, loss), w)
    size = float(w @ (A.square() if loss == "square" else A) @ w + f2.mean())
    assert terms.scale == pytest.approx(size)
    made.clear()  # the scale took one of its own
    for name, steps in descents(terms, soft(w, 4, 3)):
        values = []
        for state, gap in islice(steps, 12):
            torch.testing.assert_close(state.T.sum(dim=1), w, rtol=0, atol=1e-12)
            assert bool((state.T >= 0).all())
            torch.testing.assert_close(state.q, state.T.sum(dim=0), rtol=0, atol=1e-12)
            torch.testing.assert_close(state.P, A @ state.T @ h2, rtol=1e-9, atol=1e-10)
            assert state.value == pytest.approx(energy(A, B, state.T, loss), abs=1e-10)
            G = 2 * (f2 @ state.q - A @ state.T @ h2)
            slope = float((G * state.T).sum() - w @ G.min(dim=1).values)
            assert gap == pytest.approx(slope / size, abs=1e-10)
            values.append(state.value)
        assert (np.diff(values) <= 1e-12).all() or name == "fixed epsilon"
        assert len(values) > 2 and values[-1] < values[0] - 1e-3
        assert terms.products == pytest.approx(sum(made)), name


def test_a_step_that_gains_nothing_is_not_made():
    """Between zeros all plans are as good, and the first stays."""
    A, B = (torch.zeros(n, n, dtype=torch.float64) for n in (5, 3))
    terms, T = Problem(contraction(A, B, "square"), weights(5)), soft(weights(5), 3)
    for steps in (conditional_gradient(terms, terms.state(T)), row_moves(terms, terms.state(T), 1)):
        assert all(torch.equal(state.T, T) for state, _ in islice(steps, 3))


@pytest.mark.parametrize("unit", [2.0**20, 2.0**-20])
def test_mirror_descent_does_not_see_units(unit):
    """In another unit, a power of 2, it takes the same steps to the bit, to the very end."""
    A, B = problem(3, 8, 3)
    w = weights(8)
    plans = []
    for size in (1.0, unit):
        terms = Problem(contraction(size * A, size * B, "square"), w)
        steps = mirror_descent(terms, terms.state(soft(w, 3)), None)
        plans.append([state.T for state, _ in islice(steps, 120)])
    assert all(torch.equal(one, other) for one, other in zip(*plans, strict=True))


@pytest.mark.parametrize("tol", [1e-9, 1e-2])
@pytest.mark.parametrize("unit", [2.0**20, 2.0**-20])
def test_row_moves_do_not_see_units(unit, tol):
    for seed in range(3):
        A, B = problem(seed, 12, 4)
        w = weights(12, seed)
        plans = []
        for size in (1.0, unit):
            terms = Problem(contraction(size * A, size * B, "square"), w)
            moves = row_moves(terms, terms.state(soft(w, 4, seed)), tol)
            plans.append([state.T for state, _ in islice(moves, 300)])
        assert len(plans[0]) < 300
        assert all(torch.equal(one, other) for one, other in zip(*plans, strict=True))


@pytest.mark.parametrize("tol", [1e-5, 1e-3, 1e-2, 1e-1])
def test_row_moves_end_where_the_tolerance_is_met(tol):
    """No row gains more than a thousandth of it; no entry has more than its share of the gap."""
    for seed in range(8):
        A, B = problem(seed, 12, 3)
        w = weights(12, seed)
        terms = Problem(contraction(A, B, "square"), w)
        moves = list(row_moves(terms, terms.state(soft(w, 3, seed)), tol, exchanges=False))
        for step, (state, _) in enumerate(moves):
            G = drot.gw_gradient(A, B, state.T)
            blame = state.T * (G - G.min(dim=1, keepdim=True).values)
            source = torch.where(blame.amax(dim=1) > 0, blame.argmax(dim=1), state.T.argmax(dim=1))
            gains = []
            for i, a in enumerate(source.tolist()):
                mass = float(state.T[i, a])
                for b in range(3):
                    p = float(G[i, b] - G[i, a])
                    q = float(B[a, a] ** 2 + B[b, b] ** 2 - 2 * B[a, b] ** 2)
                    q -= 2 * float(A[i, i] * (B[a, a] + B[b, b] - 2 * B[a, b]))
                    t = min(max(-p / (2 * q), 0), mass) if q > 0 else mass
                    gains.append((p + q * t) * t)
            left = min(gains) < -1e-3 * tol * terms.scale
            left |= float(blame.max()) > tol * terms.scale / 36
            assert left == (step < len(moves) - 1)
        assert moves[-1][1] <= tol


def test_mirror_descent_leaves_rows_without_weight():
    A, B = problem(3, 8, 3)
    w = weights(8)
    w[2] = 0
    terms = Problem(contraction(A, B, "square"), w)
    for state, gap in islice(mirror_descent(terms, terms.state(soft(w, 3)), None), 5):
        assert np.isfinite(gap) and bool((state.T[2] == 0).all())
        torch.testing.assert_close(state.T.sum(dim=1), w)


def test_a_gap_is_never_negative():
    """Where the conditions hold it is 0, whatever rounding says."""
    below = 0
    for seed in range(10):
        A, B = problem(seed, 9, 3)
        w = weights(9, seed)
        terms = Problem(contraction(A, B, "square"), w)
        for state, gap in row_moves(terms, terms.state(soft(w, 3, seed)), 1e-9):
            g = terms.half_gradient(state)
            raw = float((g * state.T).sum()) - float((w * g.min(dim=1).values).sum())
            below += raw < 0
            assert gap >= 0
    assert below


def test_exchange_of_two_places():
    """The closed form of the change is that of the permuted sum, for each pair."""
    M, h = problem(3, 5, 4)[0], problem(4, 5, 4)[0]
    found = _exchange_change(M, h)
    for a, b in itertools.product(range(5), repeat=2):
        order = torch.arange(5)
        order[a], order[b] = b, a
        change = float((M[order][:, order] * h).sum() - (M * h).sum())
        assert float(found[a, b]) == pytest.approx(change, abs=1e-12)
        assert float(_squares(M)[a, b]) == pytest.approx(float(M[a, a] + M[b, b] - 2 * M[a, b]))


@pytest.mark.parametrize("loss", LOSSES)
def test_adapted_epsilon(loss):
    """Halved after each step, and doubled until the model lies above the objective, no further."""
    A, B = problem(2, 8, 3)
    w = weights(8)
    terms = Problem(contraction(A, B, loss), w)
    start = soft(w, 3, 2)
    steps = mirror_descent(terms, terms.state(start), None)
    used, plans = [], [state.T for state, _ in islice(steps, 9)]

    def step(T, eps):
        K = T.log() - drot.gw_gradient(A, B, T, loss=loss) / eps
        return torch.softmax(K, dim=1) * w[:, None]

    def fits(T, eps) -> bool:
        S = step(T, eps)
        model = float((drot.gw_gradient(A, B, T, loss=loss) * (S - T)).sum())
        model += eps * float(torch.special.xlogy(S, S / T).sum())
        return energy(A, B, S, loss) <= energy(A, B, T, loss) + model + 1e-12

    eps = 0.1 * float(terms.half_gradient(terms.state(start)).std())
    for T, S in itertools.pairwise(plans):
        while eps < 1e6 and not fits(T, eps):
            eps *= 2
        used.append(eps)
        torch.testing.assert_close(S, step(T, eps), rtol=1e-6, atol=1e-9)
        eps /= 2
    assert len(set(used)) > 1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(8))
def test_rows_move_by_their_best_amounts(loss, seed):
    """From where it costs most to where it gains most, as sums tell; the same share of each."""
    A, B = problem(seed, 8, 3)
    w = weights(8, seed)
    terms = Problem(contraction(A, B, loss), w)
    steps = row_moves(terms, terms.state(soft(w, 3, seed)), 1e-9, exchanges=False)
    old, counts = next(steps)[0].T.clone(), []
    for new, _ in islice(steps, 7):  # conjugate gradient has the next
        G, value = drot.gw_gradient(A, B, old, loss=loss), energy(A, B, old, loss)
        blame = old * (G - G.min(dim=1, keepdim=True).values)  # 0 where no slope tells
        source = torch.where(blame.amax(dim=1) > 0, blame.argmax(dim=1), old.argmax(dim=1))
        best = []
        for i, a in enumerate(source.tolist()):
            mass, ends = float(old[i, a]), []
            for b in range(3):
                D = torch.zeros(8, 3, dtype=torch.float64)
                D[i, a], D[i, b] = -mass, mass * (a != b)
                half, whole = (energy(A, B, old + t * D * (a != b), loss) - value for t in (0.5, 1))
                q, p = 2 * (whole - 2 * half), 4 * half - whole  # the change is p t + q t^2
                t = min(max(-p / (2 * q), 0), 1) if q > 0 else float(p + q < 0)
                ends.append((p * t + q * t * t, b, t * mass))
            best.append(min(ends))
        D = new.T - old
        moved = [i for i in range(8) if float(D[i].abs().max()) > 1e-9]
        gains = [gain for gain, _, _ in best]
        if min(gains) > -1e-8:
            break
        counts.append(len(moved))
        assert sorted(gains)[: len(moved)] == sorted(gains[i] for i in moved)
        shares = []
        for i in moved:
            _, b, amount = best[i]
            only = {int(source[i]), b} == set(D[i].abs().gt(1e-12).nonzero()[:, 0].tolist())
            assert only and float(D[i, b] + D[i, source[i]]) == pytest.approx(0, abs=1e-14)
            shares.append(float(D[i, b]) / amount)
        assert shares == pytest.approx([shares[0]] * len(shares), rel=1e-4)
        assert energy(A, B, new.T, loss) - value <= 0.3 * min(gains) + 1e-12
        old = new.T.clone()
    assert len(counts) > 2 and max(counts) > 1


def test_rows_that_do_not_move_end_it(monkeypatch):
    """Fewer rows after each try in vain, and the end after one alone."""
    A, B = problem(0, 40, 3)
    w, tried = weights(40), []

    def move(terms, state, g, D, rows):
        tried.append(len(rows))
        return state, 0.0

    monkeypatch.setattr(drot.gromov.descent, "_move", move)
    terms = Problem(contraction(A, B, "square"), w)
    assert len(list(row_moves(terms, terms.state(soft(w, 3)), 1e-9))) == 1
    assert tried[0] > 4 and tried[-1] == 1 and sorted(set(tried), reverse=True) == tried


def test_points_that_do_not_pay_end_a_barycentre(monkeypatch):
    """Fewer points after each try in vain, and the end after one alone: the rest is rounding."""
    A, _ = problem(0, 40, 3)
    terms = Reduced(contraction(A, torch.zeros(3, 3).double(), "square"), weights(40), 3)
    start = terms.hard(torch.arange(40) % 3)
    assert len(list(islice(reassign(terms, start, 1e-9), 3))) == 3  # there is something to gain
    tried, cell = [], terms.cell

    def worse(T, CT=None):
        tried.append(int((T != start.T).any(dim=1).sum()))
        assert len(tried) < 50
        found = cell(T, CT)
        found.value = start.value
        return found

    monkeypatch.setattr(terms, "cell", worse)
    steps = list(reassign(terms, start, 1e-9))
    assert len(steps) == 1 and steps[0][0] is start
    assert tried[0] > 4 and tried[-1] == 1 and sorted(set(tried), reverse=True) == tried


def test_polish_ends_where_nothing_moves(monkeypatch):
    """At a plan that it leaves as it is, and at one that it would make worse."""
    X = torch.cat([cloud(6, 2), cloud(6, 2, 1) + 20])
    terms = Reduced(contraction(X @ X.T, torch.zeros(2, 2).double(), "square"), weights(12), 2)
    apart = terms.hard(torch.arange(12) // 6)
    assert [found for found, _ in islice(polish(terms, apart, 1e-9), 9)] == [apart]
    mixed = terms.cell(0.9 * apart.T + 0.1 * apart.T.flip(1))
    found = [cell.value for cell, _ in islice(polish(terms, mixed, 1e-9), 50)]
    assert 1 < len(found) < 50 and (np.diff(found) <= 1e-14 * terms.scale).all()
    cell = terms.cell

    def worse(T, CT=None):
        found = cell(T, CT)
        found.value = mixed.value + 1e-6 * terms.scale
        return found

    monkeypatch.setattr(terms, "cell", worse)
    assert [found for found, _ in islice(polish(terms, mixed, 1e-9), 50)] == [mixed]


def test_moves_of_kernel_kmeans():
    """What each move of a point changes, means following, against two sums of squares."""
    X, w, labels = cloud(12, 2), weights(12), torch.arange(12) % 3
    labels[labels == 2], labels[3] = 1, 2  # 2 has one point, 3 has none
    problem = Means(Contraction(as_pairwise(X @ X.T), None, "square"), w, 4)

    def within(labels) -> float:
        means = [w[labels == c] @ X[labels == c] / w[labels == c].sum() for c in range(4)]
        return float(w @ (X - torch.stack(means)[labels]).square().sum(dim=1))

    cell = problem.hard(labels)
    assert cell.value == pytest.approx(within(labels), rel=1e-12)
    changes = problem.changes(cell, labels, w)
    for i, b in itertools.product(range(12), range(4)):
        moved = labels.clone()
        moved[i] = b
        change = within(moved) - within(labels)
        assert float(changes[i, b]) == pytest.approx(change, abs=1e-12)


def test_epsilon_is_not_doubled_for_ever(monkeypatch):
    """A model that never lies above the objective: after 100 doublings the plan stays put."""
    A, B = problem(0, 10, 3)
    terms = Problem(contraction(A, B, "square"), weights(10))
    state = terms.state(soft(weights(10), 3))
    monkeypatch.setattr(terms, "line", lambda *args: Line(1e300, -1e300))
    before = terms.products
    (first, _), (second, _) = islice(mirror_descent(terms, state, None), 2)
    assert first is state and terms.products - before == 100
    torch.testing.assert_close(second.T, state.T, rtol=1e-12, atol=0)
    assert second.value == state.value


@pytest.mark.parametrize("loss", LOSSES)
def test_the_best_exchange_is_made(loss):
    """The plan whose two columns change places for the best, or nothing where none gains."""
    for seed in range(4):
        A, B = problem(seed, 7, 4)
        terms, T = Problem(contraction(A, B, loss), weights(7)), soft(weights(7), 4, seed)
        pairs = list(itertools.combinations(range(4), 2))
        for _ in range(20):
            values = []
            for a, b in pairs:
                order = torch.arange(4)
                order[a], order[b] = b, a
                values.append(energy(A, B, T[:, order], loss))
            found, before = _exchanged(terms, terms.state(T), 1e-9), energy(A, B, T, loss)
            if min(values) > before - 1e-9:
                break
            assert found.value == pytest.approx(min(values), abs=1e-12)
            gain = before - min(values)
            assert _exchanged(terms, terms.state(T), 1.01 * gain) is None
            assert _exchanged(terms, terms.state(T), 0.99 * gain) is not None
            T = found.T
        assert found is None


def until_it_slows(steps, tol: float, scale: float, refine: bool) -> list:
    """Steps up to the gap asked for, or to the first that gains 2 % or less of what was promised.

    The decrease that a gap promises is the gap times the scale.
    """
    kept = [next(steps)]
    for state, gap in steps:
        if kept[-1][1] <= tol:
            break
        promised = kept[-1][1] * scale
        gained = kept[-1][0].value - state.value
        kept.append((state, gap))
        if refine and gained < 0.02 * promised:
            break
    return kept


@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("solver", ["conditional_gradient", "mirror_descent"])
@pytest.mark.parametrize("seed", range(3))
def test_alg_srgw(solver, refine, seed):
    """Steps until they gain little, rows from there, again from there to the tolerance."""
    A, B = similarities(40, 8, seed)
    w = weights(40, seed)
    start = soft(w, 8, seed)
    tol = 1e-9

    terms = contraction(A, B, "square")
    measured, unit = standard(terms.cost, w, "square", terms.structure)

    def descend(T, tol) -> list:
        terms = Problem(measured, w)
        if solver == "mirror_descent":
            steps = mirror_descent(terms, terms.state(T), None)
        else:
            steps = conditional_gradient(terms, terms.state(T))
        kept = until_it_slows(islice(steps, 3000), tol, terms.scale, refine)
        if refine:
            kept += list(row_moves(terms, kept[-1][0], tol))[1:]
        return kept

    ask = dict(weights_x=w, init=start, solver=solver, refine=refine, on_failure="ignore")
    rough = descend(start, 1e-5)
    found = drot.semi_relaxed_gw(A, B, tol=1e-5, **ask)
    assert found.residual == pytest.approx(rough[-1][1], rel=1e-6, abs=1e-15)
    trace = unit.objectives(state.value for state, _ in rough)
    np.testing.assert_allclose(found.trace, trace, atol=1e-13)
    fine = descend(rough[-1][0].T, tol) if rough[-1][1] > tol else [rough[-1]]
    every = [*rough[:-1], *fine]
    found = drot.semi_relaxed_gw(A, B, tol=tol, **ask)
    trace = unit.objectives(state.value for state, _ in every)
    np.testing.assert_allclose(found.trace, trace, atol=1e-13)
    torch.testing.assert_close(found.plan, every[-1][0].T)
    assert found.values == (found.trace[-1],) and found.n_iter == len(every) - 1
    for most in {1, 2, len(rough) - 1, len(rough), len(every) - 2}:
        if 0 < most < len(every) - 1:
            part = drot.semi_relaxed_gw(A, B, tol=tol, max_iter=most, **ask)
            np.testing.assert_allclose(part.trace[:-1], found.trace[:most], atol=1e-13)
            assert part.n_iter == most


@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("tol", [1e-9, 2e-4])
def test_alg_barycenter(refine, seed, tol):
    """Steps until they gain little, whole points from there, then parts of points.

    The similarity is indefinite: the best plans are soft.
    """
    noise = torch.tensor(np.random.default_rng(seed).normal(size=(12, 12)))
    core = torch.tensor([[3.0, 2.0, -3.0], [2.0, -1.0, 2.0], [-3.0, 2.0, 3.0]])
    A = core.double().repeat(4, 4) + 0.2 * (noise + noise.T)
    w = weights(12, seed)
    start = soft(w, 2, seed)
    measured, unit = standard(as_pairwise(A), w, "square")
    terms = Reduced(measured, w, 2)
    steps = reduced_descent(terms, terms.cell(start))
    kept = until_it_slows(islice(steps, 41), tol, terms.scale, refine)
    if refine:
        kept += list(reassign(terms, kept[-1][0], tol))[1:]
        parts = polish(terms, kept[-1][0], tol)
        while kept[-1][1] > tol and (new := next(parts, None)):
            kept += [new] if new[0] is not kept[-1][0] else []
    kept = kept[:41]
    ask = dict(weights_x=w, init=start, refine=refine, tol=tol, on_failure="ignore")
    found = drot.srgw_barycenter(A, 2, max_iter=40, **ask)
    trace = unit.objectives(cell.value for cell, _ in kept)
    np.testing.assert_allclose(found.trace, trace, atol=1e-12)
    assert found.residual == pytest.approx(kept[-1][1], rel=1e-6, abs=1e-15)
    torch.testing.assert_close(found.plan, kept[-1][0].T)
    for most in {1, 3, len(kept) // 2, len(kept) - 2} & set(range(1, len(kept) - 1)):
        part = drot.srgw_barycenter(A, 2, max_iter=most, **ask)
        assert part.trace == found.trace[: most + 1]


# ------------------------------------------------------------------------------ what is refused
@pytest.mark.parametrize(("off", "good"), [(9e-6, True), (1.1e-5, False), (-1.1e-5, False)])
def test_masses_sum_to_one_up_to_rounding(off, good):
    """Weights within 1e-5 are divided by their sum; a plan is taken as it is."""
    A, B = problem(0, 4, 2)
    w = torch.tensor([0.1, 0.2, 0.3, 0.4 + off], dtype=torch.float64)
    T = w[:, None].expand(4, 2) / 2
    if good:
        found = drot.semi_relaxed_gw(A, B, weights_x=w).plan.sum(dim=1)
        torch.testing.assert_close(found, w / w.sum(), rtol=0, atol=1e-12)
        assert drot.gw_objective(A, B, T) == pytest.approx(energy(A, B, T), rel=1e-12)
    else:
        with pytest.raises(ValueError, match="weights_x must sum to 1"):
            drot.semi_relaxed_gw(A, B, weights_x=w)
        with pytest.raises(ValueError, match="plan must have total mass 1"):
            drot.gw_objective(A, B, T)


def test_start_has_the_row_sums():
    """To 1e-5 of the largest weight, then exactly; of the right shape."""
    A, B = similarities(20, 4)
    T = torch.full((20, 4), 1 / 80, dtype=torch.float64)
    near, off = T.clone(), T.clone()
    near[3, 1] += 1e-7
    off[3, 1] += 1e-6
    seen = []
    drot.semi_relaxed_gw(A, B, init=near, callback=lambda step, gap, T: seen.append(T))
    torch.testing.assert_close(seen[0].sum(dim=1), T.sum(dim=1), rtol=0, atol=1e-15)
    for wrong in (off, torch.cat([T, T[:1]]), torch.cat([T, T[:, :1]], dim=1)):
        with pytest.raises(ValueError, match=r"init must be (a \(20, 4\)|a plan.*row 3 sums to)"):
            drot.semi_relaxed_gw(A, B, init=wrong)


@pytest.mark.parametrize(
    "solve",
    [
        lambda A, **more: drot.semi_relaxed_gw(A, A[:4, :4], **more).trace,
        lambda A, **more: drot.srgw_barycenter(A, 4, **more).trace,
        lambda A, **more: drot.distributional_reduction(A, 4, kernel="gram", **more).trace,
        lambda A, **more: drot.kernel_kmeans(A, 4, **more).labels.tolist(),
    ],
    ids=["semi_relaxed_gw", "srgw_barycenter", "distributional_reduction", "kernel_kmeans"],
)
def test_default_seed_is_zero(solve):
    """Who says nothing gets what the seed 0 gives, and not what others give."""
    A, _ = similarities(16, 4)
    one = {"init": "random", "n_starts": 1}
    zero, other = (solve(A, **one, random_state=seed) for seed in (0, 1))
    assert solve(A, **one) == zero != other


def test_default_seeds_of_scores_are_zero():
    """A score of clusters without groups depends on the seed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(4, size=40)
    P = np.exp(-drot.sqeuclidean(X).dense().numpy())
    for score in (
        lambda **more: drot.metrics.prototype_nmi(X, np.eye(40), y, n_clusters=9, **more),
        lambda **more: drot.metrics.spectral_clustering_ari(P, y, n_clusters=9, **more),
    ):
        values = [score(random_state=seed) for seed in range(5)]
        assert score() == values[0] and len(set(values)) > 1 and values[0] != values[1]


# ------------------------------------------------------------------------------------ matchings
def test_matchings_of_at_most_seven_points():
    """Seven are allowed, and as many on both sides."""
    A = problem(1, 7)[0]
    order = torch.tensor([2, 0, 6, 1, 5, 3, 4])
    found = drot.gromov_monge(A, A[order][:, order])
    assert found.value == 0 and torch.equal(order[found.permutation], torch.arange(7))
    for n, k in ((4, 3), (3, 4), (8, 8)):
        with pytest.raises(ValueError, match=f"at most 7 points; got {n} and {k}"):
            drot.gromov_monge(np.ones((n, n)), np.ones((k, k)))


def test_entries_below_one_under_kl():
    A, B = (x / 10 for x in problem(2, 3, 3))
    values = [energy(A, B, torch.eye(3).double()[list(p)] / 3, "kl")
              for p in itertools.permutations(range(3))]  # fmt: skip
    assert drot.gromov_monge(A, B, loss="kl").value == pytest.approx(min(values), rel=1e-12)


def test_zeros_are_numbers_for_squares():
    """Only under kl is a match with a zero infinite."""
    A, B = problem(3, 4, 2)
    B[0, 1] = B[1, 0] = 0
    T = soft(weights(4), 2)
    G = drot.gw_gradient(A, B, T)
    assert float((G * T).sum()) / 2 == pytest.approx(energy(A, B, T), rel=1e-12)


def test_start_of_transport_has_the_marginals():
    """To 1e-5 of the largest weight, and of the right shape."""
    pytest.importorskip("ot")
    A = problem(4, 20)[0]
    T = torch.full((20, 20), 1 / 400, dtype=torch.float64)
    near, off = T.clone(), T.clone()
    near[0, 0] += 1e-7
    off[0, 0] += 1e-6
    found = drot.gromov_wasserstein(A, A, init=near, max_iter=1)
    torch.testing.assert_close(found.plan.sum(dim=1), near.sum(dim=1))
    for wrong in (off, torch.cat([T, T[:1]]), T[:, :19]):
        with pytest.raises(ValueError, match="init must be"):
            drot.gromov_wasserstein(A, A, init=wrong)


def test_start_of_transport_in_float32():
    """Marginals that are right to rounding are right, and the dtype stays."""
    pytest.importorskip("ot")
    for seed in range(8):
        A, B = (x.float() for x in problem(seed, 25 + seed, 4))
        T = soft(weights(25 + seed, seed), 4, seed)
        ask = dict(weights_x=T.sum(dim=1), weights_z=T.sum(dim=0), init=T)
        found = drot.gromov_wasserstein(A, B, **ask)
        assert found.plan.dtype == torch.float32
        exact = drot.gromov_wasserstein(A.double(), B.double(), **ask)
        assert found.value == pytest.approx(exact.value, rel=1e-4)


# --------------------------------------------------------------------------------------- scores
SIX = np.array([[0.0, 0], [0, 1], [10, 0], [10, 1], [0, 30], [0, 31]])  # three pairs
PAIRS = np.array([0, 0, 1, 1, 2, 2])


def test_scores_do_not_see_units():
    """The mass of the plan and the unit of the positions cancel; 0 log 0 warns of nothing."""
    T = np.random.default_rng(0).dirichlet(np.ones(6), size=6) + 2 * np.eye(6)
    T[:2, 4] = T[4:, 2] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for score in (
            lambda Z, T: drot.metrics.prototype_homogeneity(PAIRS, T),
            lambda Z, T: drot.metrics.weighted_silhouette(Z, T, PAIRS),
            lambda Z, T: drot.metrics.prototype_nmi(Z, T, PAIRS),
        ):
            assert 0 < score(SIX, T) <= 1
            assert score(1e-3 * SIX, 7 * T) == pytest.approx(score(SIX, T), rel=1e-9)
        assert drot.metrics.prototype_homogeneity(PAIRS, T) < 0.9
        hard = np.eye(6)
        assert drot.metrics.prototype_homogeneity(PAIRS, hard) == pytest.approx(1, abs=1e-12)


def test_one_class_is_homogeneous():
    for T in (np.eye(4), np.full((4, 3), 0.1), np.random.default_rng(1).random((4, 3))):
        assert drot.metrics.prototype_homogeneity([5, 5, 5, 5], T) == 1


def test_silhouette_of_odd_prototypes():
    """Alone in its class, or at the place of all others: 0. Without weight: not there."""
    Z, T = SIX[:4], np.eye(4)
    far = (10 + np.sqrt(101)) / 2
    two = drot.metrics.weighted_silhouette(Z, T, PAIRS[:4])  # two classes are enough
    assert two == pytest.approx(1 - 1 / far)
    assert drot.metrics.weighted_silhouette(np.ones((4, 2)), T, PAIRS[:4]) == 0
    # the first is alone in its class; the others have 2 and 1 other of their own
    y = [0, 1, 1, 1]
    own = [(np.sqrt(101) + 10) / 2, (np.sqrt(101) + 1) / 2, (10 + 1) / 2]
    next_ = [1, 10, np.sqrt(101)]
    score = sum((b - a) / max(a, b) for a, b in zip(own, next_, strict=True)) / 4
    assert drot.metrics.weighted_silhouette(Z, T, y) == pytest.approx(score)
    # a column without mass, which has no class: neither a member of the first nor a class
    empty = np.hstack([T, np.zeros((4, 1))])
    more = np.vstack([Z, [[0.5, 0.5]]])
    assert drot.metrics.weighted_silhouette(more, empty, y) == pytest.approx(score)
    assert drot.metrics.weighted_silhouette(more, empty, [1, 0, 0, 0]) == pytest.approx(score)


def test_clusters_of_prototypes():
    """As many as classes by default, or as prototypes in use; without weight they are no points."""
    T, nmi = np.eye(6) / 6, drot.metrics.prototype_nmi
    assert nmi(SIX, T, PAIRS) == pytest.approx(1)
    assert nmi(SIX, T, [0, 1, 2, 3, 4, 5], n_clusters=3) < 0.9
    assert nmi(SIX, T, PAIRS, n_clusters=1) == 0
    far = np.vstack([[[1e4, 0]], SIX])
    assert nmi(far, np.hstack([np.zeros((6, 1)), T]), PAIRS) == pytest.approx(1)
    merged = np.repeat(np.eye(2), 3, axis=0)  # two prototypes for three classes
    expected = normalized_mutual_info_score(PAIRS, [0, 0, 0, 1, 1, 1])
    assert nmi(SIX[[0, 4]], merged, PAIRS) == pytest.approx(expected)
    # a point without mass is in no cluster, and its class does not ask for one
    for first, second in ((1, 2), (0, 2), (0, 1)):
        none = np.zeros((5, 3))
        none[[0, 1, 2, 3], [first, first, second, second]] = 1
        where = np.zeros(3, dtype=int)
        where[second] = 4
        for asked in (2, None):
            classes = [0, 0, 1, 1, 2]
            assert nmi(SIX[where], none, classes, n_clusters=asked) == pytest.approx(1)
    alone = np.diag([1.0, 1, 1, 1, 1, 0])  # two classes of the three have mass
    pairs = [0, 0, 0, 0, 1, 2]
    expected = KMeans(2, n_init=10, random_state=0).fit(SIX[:5]).labels_
    score = normalized_mutual_info_score(pairs[:5], expected)
    assert nmi(SIX, alone, pairs) == pytest.approx(score)


def test_clusters_of_prototypes_start_ten_times(monkeypatch):
    seen = []
    monkeypatch.setattr(
        sklearn.cluster, "KMeans", lambda k, **more: seen.append((k, more)) or KMeans(k, **more)
    )
    drot.metrics.prototype_nmi(SIX, np.eye(6), PAIRS, random_state=3)
    assert seen == [(3, {"n_init": 10, "random_state": 3})]


@pytest.mark.parametrize(
    ("y", "T", "says"),
    [
        ([0, 1, 1, 1], np.eye(3), "one label per row"),
        ([0, 1], np.eye(3), "one label per row"),
        ([0, 1, 1], np.ones(3), "one label per row"),
        ([0, 1, 1], np.ones((3, 2, 2)), "one label per row"),
        ([0, 1, 1], [[1, 0], [1, -0.5], [0, 1]], r"negative entry \(-0.5\) at row 1, column 1"),
        ([0, 1, 1], [[1, 0], [0, 1], [np.inf, 1]], "plan has a non-finite entry .* at row 2"),
        ([0, 1, 1], np.zeros((3, 2)), "plan is 0 everywhere"),
    ],
)
def test_scores_say_what_is_no_plan(y, T, says):
    with pytest.raises(ValueError, match=says):
        drot.metrics.prototype_homogeneity(y, T)


@pytest.mark.parametrize("k", [2, 4])
def test_scores_want_a_place_for_each_prototype(k):
    for score in (drot.metrics.weighted_silhouette, drot.metrics.prototype_nmi):
        with pytest.raises(ValueError, match=f"Z has {k} prototypes and the plan 3"):
            score(np.eye(k), np.eye(3), [0, 1, 1])


def test_score_of_groups_wants_a_group():
    with pytest.raises(ValueError, match="n_clusters must be a whole number from 1 to 2"):
        drot.metrics.spectral_clustering_ari(np.ones((2, 2)), [0, 1], n_clusters=0)


# ----------------------------------------------------------------------------------- clustering
BLOBS = cloud(30, 2) + 20 * torch.eye(3, 2, dtype=torch.float64)[torch.arange(30) % 3]


@pytest.mark.parametrize("how", ["kmeans", "spectral", "random"])
def test_starts_are_what_their_names_say(how):
    """k-means and eigenvectors find clear groups at once, chance does not."""
    G = BLOBS @ BLOBS.T + 100 * (torch.arange(30)[:, None] % 3 == torch.arange(30) % 3)
    groups = drot.coarsen(G, torch.arange(30) % 3)
    value = float((G**2).mean() - groups.normalized.square().sum())
    ask = dict(init=how, n_starts=1, refine=False, max_iter=1, on_failure="ignore")
    first = drot.srgw_barycenter(G, 3, **ask).trace[0]
    assert (first == pytest.approx(value)) == (how != "random")
    one = drot.kernel_kmeans(G, 3, init=how, n_starts=1, max_iter=1)
    assert one.n_iter == (how == "random")


def test_a_stopped_barycentre_starts_no_more():
    A, _ = similarities(12, 3)
    seen = []
    found = drot.srgw_barycenter(A, 3, n_starts=3, callback=lambda *what: seen.append(what) or True)
    assert len(found.values) == 1 == len(seen)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (0, "3 whole labels"),
        (np.full((3, 1, 1), 1 / 3), "3 whole labels"),
        ([0, 0, 1, 1], "3 whole labels"),
        ([0, 1.5, 1], "3 whole labels"),
        ([0, 1, 3], "has the label 3; 3 points have fewer"),
        ([0, 1, 7], "has the label 7; 3 points have fewer"),
        ([0, 2, 2], "leaves cluster 1 empty"),
        ([[1 / 3, 0, 0, 0]] * 3, "leaves cluster 1 empty"),
    ],
)
def test_coarsening_says_what_is_no_membership(labels, says):
    with pytest.raises(ValueError, match=says):
        drot.coarsen(np.eye(3), labels)


def test_limits_of_kernel_kmeans():
    assert drot.kernel_kmeans(np.eye(3), 1, max_iter=1).objective == pytest.approx(2 / 3)
    for wrong in ({"max_iter": 0}, {"n_clusters": 0}, {"n_clusters": 4}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be a whole number"):
            drot.kernel_kmeans(np.eye(3), **{"n_clusters": 2, **wrong})


def test_lowest_of_all_ends_is_kept():
    """Whichever start led to it."""
    A, B = problem(3, 16, 4)
    G = cloud(20, 3) @ cloud(20, 3).T
    places = []
    for seed in range(6):
        ask = dict(init="random", n_starts=4, random_state=seed)
        one = drot.kernel_kmeans(G, 4, **ask)
        two = drot.srgw_barycenter(G, 4, refine=False, on_failure="ignore", **ask)
        three = drot.semi_relaxed_gw(A, B, **ask)
        for found in (one, two, three):
            assert len(found.values) == 4
            assert found.objective == pytest.approx(min(found.values), rel=1e-12)
            places.append(found.values.index(min(found.values)))
    assert min(len(set(places[some::3])) for some in range(3)) > 1


def test_plan_as_start_of_kernel_kmeans():
    """Each point begins where most of its mass is: of clear groups nothing is left to do."""
    plan = torch.full((30, 3), 0.2 / 60, dtype=torch.float64)
    plan[torch.arange(30), torch.arange(30) % 3] = 0.8 / 30
    plan /= 30 * plan.sum(dim=1, keepdim=True)
    found = drot.kernel_kmeans(BLOBS @ BLOBS.T, 3, init=plan)
    assert found.n_iter == 0 and torch.equal(found.labels, torch.arange(30) % 3)


@pytest.mark.parametrize("solve", [drot.semi_relaxed_gw, drot.srgw_barycenter])
def test_interrupt_points_to_the_caller(solve):
    """The warning of an interrupt names the line that called the package."""
    A, B = similarities(12, 3)

    def callback(step, *_):
        if step == 2:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted after 2 iterations") as seen:
        solve(A, B if solve is drot.semi_relaxed_gw else 3, init="random", callback=callback)
    assert [warning.filename for warning in seen] == [__file__]


def test_a_stopped_run_draws_no_more_starts():
    A, B = similarities(12, 3)
    one, many = np.random.default_rng(4), np.random.default_rng(4)
    ask = dict(init="random", callback=lambda *_: True)
    drot.semi_relaxed_gw(A, B, n_starts=1, random_state=one, **ask)
    found = drot.semi_relaxed_gw(A, B, n_starts=3, random_state=many, **ask)
    assert len(found.values) == 1
    for rng in (one, many):
        fresh = np.random.default_rng(4)
        fresh.standard_exponential((12, 3))
        assert rng.random() == fresh.random()


# ---------------------------------------------------------------------------- what is read in
@pytest.mark.parametrize("loss", LOSSES)
def test_kernel_as_target(loss):
    """A kernel whose logarithm is in factors, under either loss."""
    A, K = problem(0, 9)[0], drot.gaussian_kernel(cloud(10, 1, 3))
    T = soft(weights(9), 10)
    assert drot.gw_objective(A, K, T, loss=loss) == pytest.approx(
        energy(A, K.dense(), T, loss), rel=1e-10
    )


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_below_zero_under_kl(size, dtype):
    """Of a factored similarity, as a share of its largest terms; of an array nothing."""
    bound = 8 * torch.finfo(dtype).eps * 2**0.5 * 2  # two factors, terms of at most 1 + 1
    for share, good in ((0.5, True), (2.0, False)):
        points = size * torch.tensor([[1, 0], [-share * bound, 1]], dtype=dtype)
        C, B = drot.gram(points), torch.ones(2, 2, dtype=dtype)
        T = torch.eye(2, dtype=dtype) / 2
        if good:
            entries = size**2 * np.eye(2)
            value = drot.gw_objective(C, B, T, loss="kl")
            assert value == pytest.approx(energy(entries, B, T, "kl"), rel=1e-4)
        else:
            with pytest.raises(ValueError, match=r"cost_x without negative entries; entry \(0, 1"):
                drot.gw_objective(C, B, T, loss="kl")
        with pytest.raises(ValueError, match=r"cost_z without negative entries; entry \(0, 1"):
            drot.gw_objective(B, C.dense(), T, loss="kl")


def test_first_negative_entry_is_named_across_tiles():
    A = 1 - torch.eye(9, dtype=torch.float64)  # a zero is not negative
    A[7, 4] = A[4, 7] = A[8, 5] = A[5, 8] = -2
    like = torch.zeros(9, 9, dtype=torch.float64)
    cost = Pairwise(lambda rows: A[rows], (9, 9), as_pairwise(like), block=3)
    with pytest.raises(ValueError, match=r"entry \(4, 7\) is -2"):
        drot.gw_objective(cost, np.ones((2, 2)), np.full((9, 2), 1 / 18), loss="kl")


def test_a_zero_of_factors_is_not_negative():
    C = drot.gram([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
    with pytest.raises(ValueError, match=r"entry \(0, 2\) is -1"):
        drot.gw_objective(C, np.ones((2, 2)), np.full((3, 2), 1 / 6), loss="kl")


def test_copies_in_a_factored_target_are_zeros():
    """Rounding below 0 is a zero: infinite where a positive entry meets it."""
    Z = cloud(3, 4)[[0, 0, 1, 1, 2]] + 100
    D = drot.factored_sqeuclidean(Z)
    assert float(D.dense().min()) < 0
    A, T = torch.ones(5, 5, dtype=torch.float64), torch.eye(5, dtype=torch.float64) / 5
    assert drot.gw_objective(A, D, T, loss="kl") == np.inf
    assert drot.gw_objective(A, np.zeros((5, 5)), T, loss="kl") == np.inf  # zeros all over


@pytest.mark.parametrize(
    ("w", "says"),
    [
        ([0.5, 0.5], r"one number per point \(3\); got shape \(2,\)"),
        ([0.25] * 4, r"one number per point \(3\); got shape \(4,\)"),
        ([[0.5, 0.25, 0.25]], "one number per point"),
        ([0.5, 0.75, -0.25], "row 2 has -0.25"),
        ([-0.5, 1.75, -0.25], "row 0 has -0.5"),
        ([0.0, 1.5, -0.5], "row 2 has -0.5"),
        ([0.25, 0.25, 0.25], "must sum to 1; got 0.75"),
        ([0.5, 0.5, 0.5], "must sum to 1; got 1.5"),
    ],
)
def test_what_is_no_weight(w, says):
    with pytest.raises(ValueError, match=says):
        drot.semi_relaxed_gw(np.eye(3), np.eye(2), weights_x=w)


@pytest.mark.parametrize(
    ("T", "says"),
    [
        (np.full((4, 2), 1 / 8), r"\(3, 2\) plan, cost_x by cost_z; got shape \(4, 2\)"),
        (np.full((3, 3), 1 / 9), r"\(3, 2\) plan, cost_x by cost_z; got shape \(3, 3\)"),
        (np.full((2, 2), 1 / 4), r"\(3, 2\) plan, cost_x by cost_z; got shape \(2, 2\)"),
        ([[0.5, 0.5], [0.5, 0], [0, -0.5]], "negative entries"),
        (np.full((3, 2), 1 / 12), "total mass 1; got 0.5"),
        (np.full((3, 2), 1 / 3), "total mass 1; got 2"),
    ],
)
def test_what_is_no_plan(T, says):
    with pytest.raises(ValueError, match=says):
        drot.gw_objective(np.eye(3), np.eye(2), T)


@pytest.mark.parametrize("solver", ["conditional_gradient", "mirror_descent"])
def test_nothing_to_match(solver):
    """Where both similarities are 0, so is the objective; where they are constant, any plan is."""
    for size in (0.0, 1.0):
        A, B = (size * torch.ones(n, n, dtype=torch.float64) for n in (4, 2))
        found = drot.semi_relaxed_gw(A, B, solver=solver)
        assert found.objective == pytest.approx(0, abs=1e-15) and found.residual < 1e-15


def follow(ends, last=None, max_iter=10, callback=None):
    """Starts that end at once, at a value and a gap each; and what is done from the lowest."""
    states = [SimpleNamespace(value=value) for value, _ in ends]

    def begin(i):
        return [(states[i], ends[i][1])]

    def finish(state, gap):
        return [(state, gap), (SimpleNamespace(value=last[0]), last[1])]

    after = None if last is None else finish
    return lowest("here", range(len(ends)), begin, max_iter, callback, after)


def test_the_lowest_end_goes_on():
    """What follows is kept unless it ends higher; each state is heard of once."""
    found = follow([(3.0, 1e-6), (2.0, 1e-9)])
    assert (found.state.value, found.residual, found.values) == (2.0, 1e-9, (3.0, 2.0))
    heard = []
    found = follow([(2.0, 1e-6), (3.0, 1e-7)], (1.0, 1e-10), callback=lambda *a: heard.append(a))
    assert (found.state.value, found.residual, found.values) == (1.0, 1e-10, (2.0, 3.0))
    assert found.trace == (2.0, 1.0) and heard == [(0, 1e-6), (1, 1e-7), (2, 1e-10)]
    found = follow([(3.0, 1e-6), (2.0, 1e-6)], (2.5, 1e-10))
    assert (found.state.value, found.residual, found.trace) == (2.0, 1e-6, (2.0,))
    found = follow([(3.0, 1e-6), (2.0, 1e-6)], (1.0, 0.0), callback=lambda k, *_: k == 0)
    assert found.stopped and found.values == (3.0,) and found.settle("here", 1e-9, "raise") is False
    with pytest.raises(drot.NotConverged, match=r"here: the residual is 1\.00e-06 after 0 it"):
        follow([(3.0, 1e-6)]).settle("here", 1e-9, "raise")


def test_an_interrupt_while_a_start_is_made():
    """What the starts before have led to is kept; without one, the interrupt goes on."""

    def draw(many):
        yield from range(many)
        raise KeyboardInterrupt

    def begin(i):
        return [(SimpleNamespace(value=3.0 - i), 1e-3)]

    with pytest.warns(RuntimeWarning, match="here: interrupted after 1 iterations") as seen:
        found = lowest("here", draw(2), begin, 5, lambda *_: None)
    assert found.stopped and found.values == (3.0, 2.0) and found.state.value == 2.0
    assert [warning.filename for warning in seen] == [__file__]
    with pytest.raises(KeyboardInterrupt):
        lowest("here", draw(0), begin, 5)


def test_limits_of_distributional_reduction():
    """One round is a run; what was stopped on request is no failure, what ran out is one."""
    G, _ = similarities(12, 3)
    ask = dict(kernel="gram", init="random", n_starts=1, tol=1e-300)
    with pytest.raises(drot.NotConverged, match="after 1 iterations"):
        drot.distributional_reduction(G, 3, max_iter=1, **ask)
    found = drot.distributional_reduction(G, 3, callback=lambda i, r, Z: i == 1, **ask)
    assert found.n_iter == 1 and not found.converged
