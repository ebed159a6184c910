"""Products with C and the descents of Gromov-Wasserstein, step by step, against sums."""

import itertools
from itertools import islice

import drot
import numpy as np
import pytest
import torch
from drot._core.algebra import ratio
from drot.costs.array import Pairwise, as_pairwise
from drot.gromov import moves
from drot.gromov.contraction import as_terms, hard_plan
from drot.gromov.descent import Problem, conditional_gradient, mirror_descent
from drot.gromov.moves import exchanged, row_moves
from drot.gromov.starts import dealt
from plans import LOSSES, cloud, energy, hard_plans, problem, soft, weights

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


def parts(A: torch.Tensor, B: torch.Tensor, loss: str) -> tuple[torch.Tensor, ...]:
    """f1(A), f2(B), h2(B), and A in the unit of a loss."""
    if loss == "square":
        return A.square(), B.square(), 2 * B, A.square()
    return torch.xlogy(A, A) - A, B, B.log(), A


def square(seed: int, n: int, k: int) -> tuple[Problem, torch.Tensor, torch.Tensor]:
    """A problem under the square loss, and its similarities."""
    A, B = problem(seed, n, k)
    return Problem(as_terms(A, B, "square"), weights(n, seed)), A, B


@losses
@kinds
def test_products_are_those_of_the_array(kind, loss):
    """Whatever holds C: each product, the constant, the scale, and how much was multiplied."""
    cost, A = both(kind)
    B = problem(0, 5, 5)[1]
    terms, w, T = as_terms(cost, B, loss), weights(30), soft(weights(30), 5)
    f1, f2, h2, unit = parts(A, B, loss)
    labels = torch.arange(30) % 4
    hard = hard_plan(labels, w, 5)
    few, many = torch.tensor([3, 0, 17]), torch.arange(29, 8, -1)
    pairs = [
        (hard, torch.eye(5)[labels] * w[:, None]),
        (terms.product(T), A @ T @ h2),
        (terms.times(hard), A @ hard),
        (terms.product(hard), A @ hard @ h2),
        (terms.columns(few, T[:3]), A[:, few] @ T[:3]),
        (terms.cost.entries(few), A[few][:, few]),
        (terms.columns(many, T[:21]), A[:, many] @ T[:21]),
        (torch.tensor(terms.constant(w)), w @ f1 @ w),
        (torch.tensor(terms.scale(w, terms.constant(w))), w @ unit @ w + f2.mean()),
        (torch.tensor(Problem(terms, w).objective(T)), torch.tensor(energy(A, B, T, loss))),
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected.to(found), rtol=1e-10, atol=1e-10)
    assert terms.products == pytest.approx(4 + (3 + 21) / 30)
    assert ratio(torch.ones(2), torch.tensor([0.0, 4.0])).tolist() == [0, 0.25]
    if kind == "factors" and loss == "square":  # of the factors, without a row of C
        cost._evaluate = None
        assert terms.constant(w) == pytest.approx(float(w @ f1 @ w), rel=1e-10)


# ------------------------------------------------------------------------------------- descents
@losses
@kinds
def test_each_step_of_a_descent(kind, loss):
    """A plan, what the state knows of it, the gap, and a value that falls."""
    cost, A = both(kind, 24)
    B, w = problem(1, 4, 4)[1], weights(24)
    _, f2, h2, unit = parts(A, B, loss)
    terms, T = Problem(as_terms(cost, B, loss), w), soft(w, 4, 3)
    size = float(w @ unit @ w + f2.mean())
    assert terms.scale == pytest.approx(size)
    for fixed, steps in (
        (False, conditional_gradient(terms, terms.state(T))),
        (False, mirror_descent(terms, terms.state(T), None)),
        (True, mirror_descent(terms, terms.state(T), 5.0)),
        (False, ((s, terms.gap(s)) for s in row_moves(terms, terms.state(T), 1e-9))),
    ):
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
        assert (np.diff(values) <= 1e-12).all() or fixed
        assert len(values) > 1 and values[-1] < values[0] - 1e-3


# ------------------------------------------------------------------------ moves of rows and points
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
    c = as_terms(A, B, loss)
    given = T, c.product(T), c.f2 @ T.sum(dim=0), A.diagonal().clone(), c.f2, c.h2
    given = [x.numpy() for x in given]
    moves._settle(*given, 1e-12, 1e-12, np.zeros(3), gains, none, 6)  # without C, none moves
    for i, g in enumerate(drot.gromov.gw_gradient(A, B, T, loss=loss)):
        wanted = best_move(A, B, T, i, loss, int((T[i] * (g - g.min())).argmax()))
        wanted = wanted if wanted < -1e-12 else best_move(A, B, T, i, loss)
        assert gains[i] == pytest.approx(wanted, abs=1e-9)


@losses
@kinds
@pytest.mark.parametrize("rows", [5, 256])
def test_row_moves_end_where_no_row_gains(kind, loss, rows, monkeypatch):
    """Whatever holds C, in blocks or at once: E falls, P is right, and no move gains at the end."""
    monkeypatch.setattr(moves, "_ROWS", rows)
    cost, A = both(kind, 14)
    for seed in range(3):
        B, w = problem(seed, 3, 3)[1], weights(14, seed)
        terms = Problem(as_terms(cost, B, loss), w)
        path = list(row_moves(terms, terms.state(soft(w, 3, seed)), 1e-9, exchanges=False))
        values, state = [state.value for state in path], path[-1]
        assert (np.diff(values) <= 1e-13 * terms.scale).all() and values[-1] < values[0]
        assert terms.gap(state) <= 1e-9 and bool((state.T >= 0).all())
        torch.testing.assert_close(state.P, terms.state(state.T).P, rtol=1e-9, atol=1e-10)
        assert state.value == pytest.approx(energy(A, B, state.T, loss), abs=1e-10)
        left = min(best_move(A, B, state.T, i, loss) for i in range(14))
        assert left > -1e-9 * terms.scale


def test_downhill():
    """The least of a convex quadratic; else a direction along which it falls for ever."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, slope = torch.from_numpy(rng.normal(size=(5, 5))), torch.from_numpy(rng.normal(size=5))
        H, lower = A @ A.T, A @ A.T - 6 * torch.eye(5).double()
        way, convex = moves._downhill(H, slope)
        assert convex
        torch.testing.assert_close(H @ way, -slope)
        way, convex = moves._downhill(lower, slope)
        assert not convex and float(way.norm()) >= 1
        assert float(way @ lower @ way) <= 1e-9 and float(way @ slope) <= 0


@losses
def test_deals_reach_the_best_of_all_hard_plans(loss):
    """Of six points; soft plans do no better where C_ii outweighs the rest."""
    for seed in range(2):
        A, B = problem(seed, 6, 3)
        A += 4 * torch.eye(6).double()
        terms = Problem(as_terms(A, B, loss), weights(6, seed))
        least = min(energy(A, B, T, loss) for T in hard_plans(terms.w, 3))
        state = terms.state(soft(terms.w, 3, seed))
        states = [state, *dealt(terms, state, 1e-9, 200, np.random.default_rng(seed))]
        values = [found.value for found in states]
        assert (np.diff(values) < 0).all() and values[-1] <= least + 1e-9
        assert values[-1] == pytest.approx(energy(A, B, states[-1].T, loss), abs=1e-10)


@losses
def test_the_best_exchange_is_made(loss):
    """The plan whose two columns change places for the best, or nothing where none gains."""
    for seed in range(4):
        A, B = problem(seed, 7, 4)
        terms, T = Problem(as_terms(A, B, loss), weights(7)), soft(weights(7), 4, seed)
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


# ------------------------------------------------------------------------------------ soft plans
@pytest.mark.parametrize("seed", [0, 5, 7])
def test_soft_plans_in_few_rounds(seed):
    """Distances against a kernel of four points; moves of rows alone take 1400 to 3500 rounds."""
    X = cloud(36, 4, seed) + 4 * cloud(3, 4, seed + 50)[torch.arange(36) % 3]
    C, Z = torch.cdist(X, X).square(), cloud(4, 2, seed + 9)
    B = 1 / (1 + torch.cdist(Z, Z).square())
    C, B, w = C / C.max(), B * C.mean() / C.max() / B.mean(), weights(36)
    found = drot.semi_relaxed_gw(C, B, loss="kl", init=soft(w, 4, seed), weights_x=w, tol=1e-12)
    assert found.n_iter < 400 and bool(((found.plan > 0).sum(dim=1) > 1).any())
    assert found.objective == pytest.approx(energy(C, B, found.plan, "kl"), rel=1e-9)
    G = drot.gromov.gw_gradient(C, B, found.plan, loss="kl")
    gap = float((G * found.plan).sum() - w @ G.min(dim=1).values)
    assert gap < 1e-11 and (np.diff(found.trace) <= 1e-12).all()
