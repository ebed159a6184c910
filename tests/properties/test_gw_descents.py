"""Descents of semi-relaxed Gromov-Wasserstein, and moves of rows and points, against sums."""

import itertools
import math

import drot
import numpy as np
import pytest
import torch
from drot.costs.array import Pairwise, as_pairwise
from drot.gromov import descent
from drot.gromov.descent import exchanged, row_moves
from drot.gromov.starts import match
from plans import LOSSES, cloud, energy, fixed, hard_plans, problem, soft, weights

KINDS = ["matrix", "tiles", "factors"]
losses = pytest.mark.parametrize("loss", LOSSES)
kinds = pytest.mark.parametrize("kind", KINDS)


def both(kind: str, n: int = 30) -> tuple[Pairwise, torch.Tensor]:
    """A cost of each kind, and the array that it stands for."""
    X = cloud(n, 2)
    D = drot.sqeuclidean(X).dense()
    if kind == "factors":
        return drot.factored_sqeuclidean(X, block=7), D
    return (as_pairwise(D) if kind == "matrix" else drot.sqeuclidean(X, block=7)), D


@kinds
def test_parts_of_products_are_those_of_the_array(kind):
    """Some columns times some rows, and the entries of some points, whatever holds C."""
    cost, A = both(kind)
    Y = cloud(21, 5)
    for index in (torch.tensor([3, 0, 17]), torch.arange(29, 8, -1)):
        found = cost.columns_times(index, Y[: len(index)]), cost.entries(index)
        expected = A[:, index] @ Y[: len(index)], A[index][:, index]
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@losses
@kinds
@pytest.mark.parametrize("solver", ["conditional_gradient", "mirror_descent"])
def test_certificate_of_an_unfinished_plan(solver, kind, loss):
    """Whatever holds C: the objective is the sum, the residual what the gradient still promises."""
    cost, A = both(kind, 24)
    B, w = problem(1, 4, 4)[1], weights(24)
    ask = dict(init=soft(w, 4, 3), solver=solver, refine=False, on_failure="ignore", weights_x=w)
    short, found = (
        drot.semi_relaxed_gw(cost, B, loss=loss, max_iter=steps, **ask) for steps in (3, 5)
    )
    T, mean = found.plan, w @ A @ w
    torch.testing.assert_close(T.sum(dim=1), w, rtol=0, atol=1e-12)
    assert found.n_iter == 5 and found.objective == pytest.approx(energy(A, B, T, loss), rel=1e-10)
    assert (np.diff(found.values) <= 1e-12).all() and found.values[-1] < found.values[0] - 1e-3
    assert found.values[3] == pytest.approx(short.objective, rel=1e-9)  # what each step says it is
    f2, h2, sizes = B, B.log(), (A, B)
    if loss == "square":
        f2, h2, sizes = B.square(), 2 * B, ((A - mean).square(), (B - mean).square())
    G = 2 * (f2 @ found.weights - A @ T @ h2)
    slope = (G * T).sum() - w @ G.min(dim=1).values
    size = w @ sizes[0] @ w + sizes[1].diagonal().min()
    assert found.residual == pytest.approx(float(slope / size), rel=1e-6)


def best_move(A, B, T, i: int, loss: str, source: int | None = None) -> float:
    """The largest decrease by a move of mass in row i, from one place or any, by sums."""
    value, best = energy(A, B, T, loss), 0.0
    for a, b in itertools.permutations(range(T.shape[1]), 2):
        if source is not None and a != source:
            continue
        D = torch.zeros_like(T)
        D[i, b], D[i, a] = T[i, a], -T[i, a]
        half, whole = (energy(A, B, T + t * D, loss) - value for t in (0.5, 1))
        q, p = 2 * (whole - 2 * half), 4 * half - whole  # the change is p t + q t^2
        t = min(max(-p / (2 * q), 0), 1) if q > 1e-12 else float(p + q < 0)
        best = min(best, p * t + q * t * t)
    return best


@losses
@pytest.mark.parametrize("seed", range(4))
def test_what_a_row_can_gain(loss, seed):
    """From the place that adds most to the gap, else from any; the compiled loop, by sums."""
    A, B = problem(seed, 6, 3)
    T, gains, none = soft(weights(6, seed), 3, seed), np.zeros(6), np.empty((0, 0))
    c = fixed(A, B, weights(6, seed), loss)
    given = T, c.product(T), c.f2 @ T.sum(dim=0), A.diagonal().clone(), c.f2, c.h2
    given = [x.numpy() for x in given]
    descent._sweep(*given, 1e-12, 1e-12, np.zeros(3), gains, none, 6)  # without C, none moves
    for i, g in enumerate(drot.gromov.gw_gradient(A, B, T, loss=loss)):
        wanted = best_move(A, B, T, i, loss, int((T[i] * (g - g.min())).argmax()))
        wanted = wanted if wanted < -1e-12 else best_move(A, B, T, i, loss)
        assert gains[i] == pytest.approx(wanted, abs=1e-9)


@losses
@kinds
@pytest.mark.parametrize("rows", [5, 256])
def test_row_moves_end_where_no_row_gains(kind, loss, rows, monkeypatch):
    """Whatever holds C, in blocks or at once: E falls, C T h2 is right, and no move gains then."""
    monkeypatch.setattr(descent, "_ROWS", rows)
    cost, A = both(kind, 14)
    for seed in range(3):
        B, w = problem(seed, 3, 3)[1], weights(14, seed)
        terms = fixed(cost, B, w, loss)
        path = list(row_moves(terms, terms.state(soft(w, 3, seed)), 1e-9, exchanges=False))
        values, state = [state.value for state in path], path[-1]
        assert (np.diff(values) <= 1e-13 * terms.scale).all() and values[-1] < values[0]
        assert terms.gap(state) <= 1e-9 and bool((state.T >= 0).all())
        torch.testing.assert_close(state.CTh, terms.state(state.T).CTh, rtol=1e-9, atol=1e-10)
        assert state.value == pytest.approx(energy(A, B, state.T, loss), abs=1e-10)
        left = min(best_move(A, B, state.T, i, loss) for i in range(14))
        assert left > -1e-9 * terms.scale


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_share_mass_for_long_find_their_shares_at_once(loss, monkeypatch):
    """By equations: moves alone come nearer by a factor a round, and end where a gap is left."""
    (A, B), w = problem(5, 30, 3), weights(30, 5)
    terms = fixed(A, B, w, loss)
    ends = []
    for patience in (10, 10**9):
        monkeypatch.setattr(descent, "_PATIENCE", patience)
        path = list(row_moves(terms, terms.state(soft(w, 3, 5)), 1e-9, exchanges=False))
        ends.append((len(path), terms.gap(path[-1]), path[-1].value))
    (at_once, no_gap, lowest), (long, gap, value) = ends
    assert at_once < 15 < long and no_gap < 1e-13 < gap
    assert lowest <= value + 1e-13 * terms.scale


def test_a_plan_that_is_no_number_has_no_gap_of_0():
    """Which would be a certificate."""
    A, B, w = *problem(0, 6, 3), weights(6, 0)
    terms = fixed(A, B, w, "square")
    assert terms.gap(terms.state(soft(w, 3, 0))) > 0
    assert math.isnan(terms.gap(terms.state(torch.nan * soft(w, 3, 0))))


def test_downhill():
    """The least of a convex quadratic; else a direction along which it falls for ever."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, slope = torch.from_numpy(rng.normal(size=(5, 5))), torch.from_numpy(rng.normal(size=5))
        H, lower = A @ A.T, A @ A.T - 6 * torch.eye(5).double()
        way, convex = descent._downhill(H, slope)
        assert convex
        torch.testing.assert_close(H @ way, -slope)
        way, convex = descent._downhill(lower, slope)
        assert not convex and float(way.norm()) >= 1
        assert float(way @ lower @ way) <= 1e-9 and float(way @ slope) <= 0


@losses
def test_deals_reach_the_best_of_all_hard_plans(loss):
    """Of six points, where moves of rows alone end above it."""
    for seed in (2, 20):
        (A, B), w = problem(seed, 6, 3), weights(6, seed)
        A += 4 * torch.eye(6).double()
        least = min(energy(A, B, T, loss) for T in hard_plans(w, 3))
        ask = dict(weights_x=w, loss=loss, init=soft(w, 3, seed), random_state=seed)
        found = drot.semi_relaxed_gw(A, B, **ask)
        assert (np.diff(found.values) <= 1e-12).all() and found.objective <= least + 1e-9
        assert found.objective == pytest.approx(energy(A, B, found.plan, loss), abs=1e-10)


@losses
def test_the_best_exchange_is_made(loss):
    """The plan whose two columns change places for the best, or nothing where none gains."""
    for seed in range(4):
        A, B = problem(seed, 7, 4)
        terms, T = fixed(A, B, weights(7), loss), soft(weights(7), 4, seed)
        for _ in range(20):
            values = []
            for a, b in itertools.combinations(range(4), 2):
                order = torch.arange(4)
                order[a], order[b] = b, a
                values.append(energy(A, B, T[:, order], loss))
            found, gain = exchanged(terms, terms.state(T), 1e-9), energy(A, B, T, loss)
            gain -= min(values)
            if gain < 1e-9:
                break
            assert found.value == pytest.approx(min(values), abs=1e-12)
            assert exchanged(terms, terms.state(T), 1.0001 * gain) is None
            assert exchanged(terms, terms.state(T), 0.9999 * gain) is not None
            T = found.T
        assert found is None


@pytest.mark.parametrize("solver", ["conditional_gradient", "mirror_descent"])
@pytest.mark.parametrize("refine", [True, False])
def test_a_place_that_no_plan_uses_buys_no_certificate(refine, solver):
    """Who converged has a Frank-Wolfe gap that is small beside the objective."""
    rng = np.random.default_rng(1)
    C, B = (torch.from_numpy(rng.normal(size=(n, n))) for n in (40, 6))
    C, B = C + C.T, B + B.T
    usual = drot.semi_relaxed_gw(C, B[1:, 1:]).objective
    B[0, 0] = 1e9
    options = {"refine": refine, "solver": solver, "n_starts": 1, "on_failure": "ignore"}
    found = drot.semi_relaxed_gw(C, B, **options)
    T, G = found.plan, drot.gromov.gw_gradient(C, B, found.plan)
    gap = float((G * T).sum() - T.sum(dim=1) @ G.min(dim=1).values)
    assert gap < 1e-6 * found.objective or not found.converged
    if refine:
        assert found.objective < 1.02 * usual


def test_one_cluster_is_matched_with_the_place_that_suits_it():
    """Sent whole, its points meet one entry of the target."""
    C = torch.full((6, 6), 0.52, dtype=torch.float64)
    places = torch.diag(torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64))
    whole = fixed(C, places, torch.full((6,), 1 / 6).double(), "square")
    plan = match(whole, torch.zeros(6, dtype=torch.long), np.random.default_rng(0))
    assert plan.argmax(dim=1).tolist() == [1] * 6
