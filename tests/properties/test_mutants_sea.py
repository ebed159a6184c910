"""The solver of Chapter 3 step by step, against dense linear algebra and cases made by hand."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import drot
import numpy as np
import oracles
import pytest
import torch
from clouds import cloud
from drot.affinities import symmetric
from drot.affinities.symmetric import _Newton
from drot.affinities.symmetric_dual import Dual, Point
from drot.costs.array import Pairwise, as_pairwise

FALL = 0.7  # the share of a gamma that a step may take, as the book says


def squares(X) -> np.ndarray:
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    return ((X[:, None] - X[None]) ** 2).sum(axis=-1)


def solver(C, xi, gamma, lam, pinned=(), tol: float = 1e-9) -> _Newton:
    """The solver at given duals, with no step taken."""
    target = torch.tensor(np.log(np.broadcast_to(xi, len(C))) + 1)
    run = _Newton(Dual(as_pairwise(C), target), torch.ones(len(C)).double(), target * 0, tol)
    run.pinned[list(pinned)] = True
    run.point = run.dual.at(torch.tensor(gamma), torch.tensor(lam), run.pinned)
    return run


def solve(run, g, h, regular, moving, forcing, damping: float = 0.0) -> torch.Tensor:
    """The step (2, n) that the linear solve finds for gammas and lams that may move."""
    g, h = (torch.as_tensor(x, dtype=torch.float64) for x in (g, h))
    return run._solve(torch.stack([g, h]), torch.stack([regular, moving]), forcing, damping)


def moderate(seed: int, C: np.ndarray, spread: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gamma = 0.3 * np.median(C) * 10 ** rng.uniform(-spread, spread, size=len(C))
    return gamma, -gamma * rng.uniform(0.2, 2.0, size=len(C))


def matrices(C, gamma, lam) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B, D of prp-sea-hessian."""
    s = gamma[:, None] + gamma
    paid = s > 0
    log_p = np.where(paid, (lam[:, None] + lam - 2 * C) / np.where(paid, s, 1), 0)
    A = np.where(paid, np.exp(log_p) / np.where(paid, s, 1), 0)
    return A, -log_p * A, log_p**2 * A


def damped_hessian(C, gamma, lam, damping: float) -> np.ndarray:
    """Minus the Hessian plus ``damping`` times the metric of relative changes, (2n, 2n)."""
    A, B, D = (np.diag(M.sum(axis=1)) + M for M in matrices(C, gamma, lam))
    priced = np.where(gamma > 0, gamma, 1.0)
    level = np.where(gamma > 0, lam / priced, 0.0)
    one, cross, two = (np.diag(m) for m in ((1 + level**2) / priced, -level / priced, 1 / priced))
    return np.block(
        [[D + damping * one, B + damping * cross], [B + damping * cross, A + damping * two]]
    )


# -------------------------------------------------------------------------------- the step
@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_what_counts_as_small_is_measured_in_units_of_the_cost(scale):
    one, other = (torch.tensor([1.0, 2.0, 5.0]).double() * t for t in (1.0, scale))
    least = [
        _Newton(Dual(as_pairwise(1 - np.eye(3)), one), gamma, -gamma, 1e-9).least
        for gamma in (one, other)
    ]
    assert (least[0] < one).all()
    torch.testing.assert_close(least[1], scale * least[0])


def logarithms(C, xi, x) -> np.ndarray:
    """What is missing of each log perplexity, of the row made to sum to 1; and log row sums."""
    gamma, lam = np.split(x, 2)
    P = np.exp((lam[:, None] + lam - 2 * C) / (gamma[:, None] + gamma))
    share = P / P.sum(axis=1, keepdims=True)
    reached = np.array([oracles.log_perplexity(row) for row in share])
    return np.concatenate([np.log(xi) - reached, np.log(P.sum(axis=1))])


def step_by_hand(C, xi, gamma, lam) -> tuple[np.ndarray, np.ndarray, int]:
    """Newton's step for the logarithms; gammas that would lose over 70 % lose just that."""
    n = len(C)
    x = np.concatenate([gamma, lam])
    now = logarithms(C, xi, x)
    J = oracles.jacobian(lambda x: logarithms(C, xi, x), x, 1e-6)
    held, rounds = np.zeros(n, dtype=bool), 0
    while True:
        free = np.concatenate([~held, np.ones(n, dtype=bool)])
        d = np.concatenate([np.where(held, -FALL * gamma, 0), np.zeros(n)])
        d[free] = np.linalg.solve(J[np.ix_(free, free)], -(now + J @ d)[free])
        short = ~held & (d[:n] < -FALL * gamma)
        if not short.any():
            break
        held, rounds = held | short, rounds + 1
    dg, dl = np.split(d, 2)
    # a held row: log P_ii = lam_i / gamma_i changes by what the linear model says, at most 1
    turn = np.clip((dl - lam / gamma * dg) / gamma, -1, 1)
    dl = np.where(held, (gamma + dg) * (lam / gamma + turn) - lam, dl)
    return dg, dl, rounds


@pytest.mark.parametrize(
    ("seed", "spread", "low", "rounds"),
    [(8, 0.3, 1.0, 0), (3, 0.5, 1.0, 1), (2, 0.5, 1.0, 2), (13, 0.5, 1.0, 2), (35, 0.8, 0.3, 2)],
)
def test_alg_sea_aims_at_the_logarithms(seed, spread, low, rounds):
    """Newton's method for log row sums and log perplexities, with gammas held where they fall."""
    C = squares(np.random.default_rng(seed).normal(size=(9, 3)))
    xi = np.linspace(2, 6, 9)
    gamma, lam = moderate(seed, C, spread)
    lam *= low
    run = solver(C, xi, gamma, lam)
    run._forcing = lambda: 1e-12
    dg, dl, found = step_by_hand(C, xi, gamma, lam)
    assert found == rounds
    one, two = run._clipped(0.0)
    np.testing.assert_allclose(one, dg, rtol=1e-5, atol=1e-6 * gamma.max())
    np.testing.assert_allclose(two, dl, rtol=1e-5, atol=1e-6 * gamma.max())


def test_no_gamma_falls_further_however_many_pull_each_other_down():
    C = squares(np.random.default_rng(2).normal(size=(9, 3)))
    run = solver(C, 3.0, *moderate(2, C, 0.5))
    gamma, calls = run.point.gamma, itertools.count()

    def one_by_one(right, free, forcing, damping):
        falls = (torch.arange(9) == next(calls)) & free[0]
        return torch.stack([torch.where(falls, -gamma, 0.0), torch.zeros_like(gamma)])

    run._solve = one_by_one
    dg, _ = run._clipped(0.0)
    assert (dg >= -FALL * gamma).all() and int((dg < 0).sum()) == next(calls) >= 3


def scripted(value: float, slope: float, new_value: float, new_slope: float) -> _Newton:
    """A solver of two rows whose dual has these values and slopes at the start and after."""
    one, zero = torch.ones(2).double(), torch.zeros(2).double()

    def point(gamma, lam, value, slope):
        entropy = torch.tensor([-slope, 0.0], dtype=torch.float64)
        return Point(gamma, lam, zero, value, one, entropy, zero, zero, None)

    run = object.__new__(_Newton)
    run.pinned = torch.zeros(2, dtype=torch.bool)
    run.point = point(one / 2, zero, value, slope)
    run.dual = SimpleNamespace(
        target=zero, at=lambda gamma, lam, pinned, beside: point(gamma, lam, new_value, new_slope)
    )
    return run


@pytest.mark.parametrize(
    ("value", "slope", "new_value", "new_slope", "taken"),
    [
        (-3.0, 2.0, -3.0 + 2.1e-4, 2.0, True),  # 1e-4 of what the slope promises is enough
        (-3.0, 2.0, -3.0 + 1.9e-4, 2.0, False),
        (-3.0, 2.0, -3.1, 2.0, False),
        (0.0, 2.0, 2e-4, 0.0, True),  # just that
        (-3.0, 0.0, 1.0, 0.0, False),  # no slope, no step
        (-3.0, -1.0, 1.0, 1.0, False),
        (-3.0, 1e-14, -3.1, -0.79e-14, True),  # the value has no digits left: its slope has
        (-3.0, 1e-14, -3.1, 2e-14, True),
        (-3.0, 1e-14, -2.9, -0.81e-14, False),
        (-3.0, 1e-14, -2.9, -1.5e-14, False),
        (3.0, 5e-13, 3.1, -0.81e-13 * 5, False),
        (-3.0, 1e-12, -3.1, 1e-12, False),  # this slope is above the rounding of 3
        (-3.0, 1e-12, -2.9, -1e-12, True),
        (-3e3, 1e-10, -3.1e3, 0.0, True),  # but not above that of 3000
    ],
)
def test_a_step_must_increase_the_dual(value, slope, new_value, new_slope, taken):
    run = scripted(value, slope, new_value, new_slope)
    start = run.point
    step = torch.tensor([[1.0, 0.0], [0.25, 3.0]]).double()  # lam may pass 0 where gamma > 0
    assert run._try(step) == taken
    assert (run.point is start) != taken
    if taken:
        assert run.point.gamma.tolist() == [1.5, 0.5] and run.point.lam.tolist() == [0.25, 3.0]


@pytest.mark.parametrize("bare", [False, True])
def test_alg_sea_damped_steps_take_over(bare):
    """Where Newton's step fails, steps of a damped system follow, ever shorter, then none."""
    C = squares(np.random.default_rng(3).normal(size=(8, 3)))
    gamma, lam = moderate(3, C, 0.3)
    if bare:
        gamma[5], lam[5] = 0.0, -0.4
    run = solver(C, 3.0, gamma, lam)
    start, clipped, tried, least = run.point, run._clipped, [], run.damping
    run._clipped = lambda damping: tried.append(damping) or clipped(damping)
    run._try = lambda step: False
    assert not run._step()
    assert run.point is start
    damped = np.array(tried[1:])
    assert tried[0] == 0 and damped[0] <= 1e3 * least and damped[-1] >= 1e10
    assert (np.diff(damped) > 0).all()
    run._forcing = lambda: 0.1
    right, free = run._gradient(start).flatten().numpy(), run._free().flatten().numpy()
    for damping in damped:
        dg, dl = clipped(damping)
        assert (dg >= -FALL * start.gamma).all()
        if damping < 100:
            continue  # some gammas may be held
        matrix = damped_hessian(C, gamma, lam, damping)
        found = torch.cat([dg, dl]).numpy()
        assert not found[~free].any()
        matrix[~free] = matrix[:, ~free] = 0.0
        assert left_over(matrix + np.diag(1.0 * ~free), right, found) <= 0.1
    # the first that increases the dual is taken, and the next damping is less
    run = solver(C, 3.0, gamma, lam)
    honest, met, clipped = run._try, [], run._clipped
    run._clipped = lambda damping: met.append(damping) or clipped(damping)
    run._try = lambda step: met[-1] > 0 and honest(step)
    assert run._step() and run.point.value > start.value
    assert run.damping < met[-1]


def left_over(matrix, right, found) -> float:
    """What is left of the right-hand side, in the norm of the 2 x 2 blocks of the rows."""
    same_row = np.tile(np.eye(len(right) // 2), (2, 2))
    rest = right - matrix @ found
    size = [x @ np.linalg.solve(same_row * matrix, x) for x in (rest, right)]
    return math.sqrt(size[0] / size[1])


# ------------------------------------------------------------------------- the linear solve
@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("moves", ["both", "gamma", "lam"])
def test_one_row_takes_one_product(moves, damping):
    """The preconditioner is the block of each row: alone, a row is solved at once."""
    C = squares(np.random.default_rng(4).normal(size=(7, 3)))
    gamma, lam = moderate(4, C, 0.5)
    gamma[5], lam[5] = 0.0, -0.4  # bare
    run = solver(C, 3.0, gamma, lam)
    matrix = damped_hessian(C, gamma, lam, damping)
    g, h = np.random.default_rng(0).normal(size=(2, 7))
    for i in range(7):
        only = torch.arange(7) == i
        none = torch.zeros(7, dtype=torch.bool)
        regular = only & (run.point.gamma > 0) if moves != "lam" else none
        moving = only if moves != "gamma" else none
        before = run.dual.products
        found = solve(run, g, h, regular, moving, 1e-6, damping)
        free = torch.cat([regular, moving]).numpy()
        expected = np.zeros(14)
        right = np.concatenate([g, h])[free]
        expected[free] = np.linalg.solve(matrix[np.ix_(free, free)], right)
        np.testing.assert_allclose(found.flatten(), expected, rtol=1e-8)
        assert run.dual.products == before + free.any()


@pytest.mark.parametrize("damping", [0.0, 0.05])
def test_linear_solve_ends_where_it_should(damping):
    """At the first iterate whose error, as the preconditioner sees it, is small enough."""
    C = squares(np.random.default_rng(6).normal(size=(12, 3)))
    gamma, lam = moderate(6, C, 0.5)
    run = solver(C, 4.0, gamma, lam)
    matrix = damped_hessian(C, gamma, lam, damping)
    right = np.random.default_rng(1).normal(size=24)
    g, h = torch.tensor(right).split(12)
    every = torch.ones(12, dtype=torch.bool)

    def accuracy(forcing: float) -> tuple[float, int]:
        before = run.dual.products
        found = solve(run, g, h, every, every, forcing, damping).flatten().numpy()
        return left_over(matrix, right, found), run.dual.products - before

    assert accuracy(1.01) == (1.0, 0)
    for forcing in (0.7, 0.3, 0.1, 1e-2, 1e-4):
        left, count = accuracy(forcing)
        assert left <= forcing and count >= 1
        assert accuracy(1.001 * left) == (left, count)
        assert accuracy(0.999 * left)[1] > count


def test_nothing_to_solve_takes_nothing():
    """No right-hand side, no product; no curvature, no step."""
    C = squares(np.random.default_rng(4).normal(size=(7, 3)))
    run = solver(C, 3.0, *moderate(4, C, 0.5))
    zero, every = torch.zeros(7).double(), torch.ones(7, dtype=torch.bool)
    assert not solve(run, zero, zero, every, every, 0.1).any()
    assert run.dual.products == 0
    for flat in (0.0, -1.0):
        calls = itertools.count()
        run.dual.hessian_product = lambda _, step, x=flat, calls=calls: (x * step, next(calls))[0]
        assert not solve(run, zero + 1, zero - 1, every, every, 0.1).any()
        assert next(calls) == 1


@pytest.mark.parametrize("scale", [2.0**-15, 1.0, 2.0**15])
def test_constant_rows_have_a_first_direction(scale):
    """A singular block, of a row whose log P is constant, has 1e-10 a d for its determinant."""
    gamma = scale * np.array([1.0, 2.0, 5.0, 9.0])
    run = solver(np.zeros((4, 4)), 3.0, gamma, -2 * gamma)  # log P = -2
    g, h = np.random.default_rng(3).normal(size=(2, 4))
    met = []

    def product(point, step):
        met.append(step)
        return 0 * step

    run.dual.hessian_product = product
    every = torch.ones(4, dtype=torch.bool)
    solve(run, g, h, every, every, 0.1)
    a = math.exp(-2) * ((1 / (gamma[:, None] + gamma)).sum(axis=1) + 1 / (2 * gamma))
    b, d = 2 * a, 4 * a
    np.testing.assert_allclose(met[0][0], (a * g - b * h) / (1e-10 * a * d), rtol=1e-12)
    np.testing.assert_allclose(met[0][1], (d * h - b * g) / (1e-10 * a * d), rtol=1e-12)


# --------------------------------------------------------------------------- the active set
P, R = True, False  # pinned, or not
SORT = [
    # gamma, lam, pinned, gap, row sum, free -> gamma, lam, pinned;  least is 0.1
    ("enters", (0.09, -0.2, R, -0.1, 1.0, 0.0), (0.0, 0.0, P)),
    ("enters however bad its sum", (0.09, -0.2, R, -0.1, 5.0, 0.0), (0.0, 0.0, P)),
    ("too large", (0.1, -0.2, R, -0.1, 1.0, 0.0), (0.1, -0.2, R)),
    ("needs its price", (0.09, -0.2, R, 0.1, 1.0, 0.0), (0.09, -0.2, R)),
    ("stays pinned", (0.0, 0.0, P, -0.1, 1.0, 0.5), (0.0, 0.0, P)),
    ("has nothing to spare", (0.0, 0.0, P, -0.1, 1.0, 0.0), (0.0, 0.0, P)),
    ("leaves", (0.0, 0.0, P, 0.1, 1.0, 0.5), (1e-3, 1e-3 * math.log(0.5), R)),
    ("leaves with nothing", (0.0, 0.0, P, 0.1, 1.0, 0.0), (1e-3, 1e-3 * math.log(1e-12), R)),
    ("just meets", (0.0, 0.0, P, 0.0, 1.0, 0.5), (0.0, 0.0, P)),
    ("in debt", (0.0, 0.0, P, 0.1, 1.0, -0.1), (0.0, 0.0, R)),
    ("in debt, entropy to spare", (0.0, 0.0, P, -0.1, 1.0, -0.1), (0.0, 0.0, R)),
    ("bare leaves", (0.0, -0.4, R, 0.1, 1.05, 0.0), (1e-3, -0.4 + 1e-3 * math.log(1e-12), R)),
    ("bare leaves, too", (0.0, -0.4, R, 0.1, 0.95, 0.0), (1e-3, -0.4 + 1e-3 * math.log(1e-12), R)),
    ("bare, its sum is off", (0.0, -0.4, R, 0.1, 1.2, 0.0), (0.0, -0.4, R)),
    ("bare, off downwards", (0.0, -0.4, R, 0.1, 0.8, 0.0), (0.0, -0.4, R)),
    ("bare, entropy to spare", (0.0, -0.4, R, -0.1, 0.95, 0.0), (0.0, -0.4, R)),
    ("is full", (0.0, 0.0, R, -0.1, 0.9, 0.0), (0.0, 0.0, P)),
    ("is overfull", (0.0, 0.0, R, -0.1, 1.1, 0.0), (0.0, 0.0, R)),
    ("is just full", (0.0, 0.0, R, -0.1, 1.0, 0.0), (0.0, 0.0, R)),
    ("regular with mass to spare", (0.3, 0.2, R, 0.1, 0.9, 0.0), (0.3, 0.2, R)),
]  # fmt: skip


def sorter(rows) -> _Newton:
    """A solver whose rows are in these states; evaluating it does nothing."""
    columns = torch.tensor(rows, dtype=torch.float64).T.contiguous()
    gamma, lam, pinned, gap, row_sum, free = columns
    run = object.__new__(_Newton)
    run.pinned, run.least = pinned == 1, torch.full_like(gamma, 0.1)
    target = torch.ones_like(gamma)
    entropy = row_sum * (target - gap - row_sum.log())
    entropy = torch.where(gap == 0, row_sum, entropy)  # to the bit
    rest = torch.zeros_like(gamma)
    run.point = Point(gamma, lam, free, 0.0, row_sum, entropy, rest, rest, None)
    run.dual = SimpleNamespace(target=target, evaluated=0)

    def at(gamma, lam, pinned):
        run.dual.evaluated += 1
        return Point(gamma, lam, free, 0.0, row_sum, entropy, rest, rest, None)

    run.dual.at = at
    return run


@pytest.mark.parametrize(("before", "after"), [row[1:] for row in SORT], ids=[r[0] for r in SORT])
def test_rows_are_sorted_as_the_conditions_ask(before, after):
    run = sorter([before])
    start = run.point
    run._sort_rows()
    gamma, lam, pinned = after
    assert float(run.point.gamma) == gamma
    assert float(run.point.lam) == pytest.approx(lam, rel=1e-12, abs=1e-15)
    assert bool(run.pinned) == pinned
    moved = (gamma, lam, pinned) != before[:3]
    assert run.dual.evaluated == moved and (run.point is start) != moved
    assert float(start.gamma) == before[0] and float(start.lam) == before[1]


def test_rows_are_sorted_each_by_itself():
    run = sorter([row[1] for row in SORT])
    run._sort_rows()
    gamma, lam, pinned = zip(*(row[2] for row in SORT), strict=True)
    np.testing.assert_allclose(run.point.gamma, gamma, rtol=1e-12)
    np.testing.assert_allclose(run.point.lam, lam, rtol=1e-12)
    assert run.pinned.tolist() == list(pinned) and run.dual.evaluated == 1
    left = np.array([row[0].startswith(("leaves", "bare leaves")) for row in SORT])
    np.testing.assert_allclose(run.least, np.where(left, 1e-3, 0.1))


def test_rows_that_lean_on_each_other_go_back():
    """What misses entropy once it has no price gets its gamma and lam back, and is left alone."""
    run = sorter([(0.09, -0.2, R, -0.1, 1.0, 0.0), (0.05, -0.3, R, -0.1, 1.0, 0.0)])
    at = run.dual.at

    def after(gamma, lam, pinned):
        point = at(gamma, lam, pinned)
        if gamma[0] == 0:  # without its price row 0 misses entropy, row 1 just has it
            point.entropy[0] -= 0.3
            point.entropy[1] -= 0.1
        return point

    run.dual.at = after
    run._sort_rows()
    assert run.pinned.tolist() == [False, True]
    assert run.point.gamma.tolist() == [0.09, 0.0] and run.point.lam.tolist() == [-0.2, 0.0]
    np.testing.assert_allclose(run.least, [0.009, 0.1])
    assert run.dual.evaluated == 2


# ----------------------------------------------------------------------------- round about
@pytest.mark.parametrize("block", [None, 4])
@pytest.mark.parametrize(
    ("xi", "tol"),
    [(1 + 1e-3, 0.1 * math.log(1 + 1e-3)), (1.08, 0.1 * math.log(1.08)), (3.0, 1e-2)],
)
def test_start_is_within_a_tenth_of_what_is_asked(monkeypatch, xi, tol, block):
    """Else a row asked for little more than 1 could start as if it were asked for nothing."""
    asked = spied(monkeypatch)
    cost = drot.sqeuclidean(cloud("gaussian", 0, 10, 2), block=block)
    found = drot.symmetric_entropic_affinity(cost, [xi] + [5.0] * 9)
    ((how, start),) = asked
    assert how["tol"] == pytest.approx(tol, rel=1e-9)
    # that start, the diagonal of tiles, and the first point are paid for before the first check
    assert found.work[0] == start.passes + (block is not None) + 1


def spied(monkeypatch) -> list:
    """What the solver asks of the entropic affinity, and what it gets."""
    asked = []

    def spy(cost, perplexity, **how):
        asked.append((how, drot.entropic_affinity(cost, perplexity, **how)))
        return asked[-1][1]

    monkeypatch.setattr(symmetric, "entropic_affinity", spy)
    return asked


def test_perplexity_that_float32_takes_for_one(monkeypatch):
    asked = spied(monkeypatch)
    C = squares([0.0, 1.0, 3.0]).astype(np.float32)
    found = drot.symmetric_entropic_affinity(C, 1 + 1e-9)
    assert found.residual <= 1e-4 and found.plan.dtype == torch.float32
    assert asked[0][0]["tol"] == 1e-2
    np.testing.assert_allclose(found.plan, np.eye(3), atol=1e-3)


def test_residual_that_meets_the_tolerance_is_enough():
    C = squares(cloud("gaussian", 0, 10, 2))
    first = drot.symmetric_entropic_affinity(C, 3.0).trace[0]
    again = drot.symmetric_entropic_affinity(C, 3.0, tol=first)
    assert again.trace == (first,) and again.converged


# ------------------------------------------------------------------------ the dual function
@pytest.mark.parametrize(("power", "self_cost"), [(0, 0.0), (0, 1.0), (40, 0.0), (-40, 1.0)])
def test_cost_that_needs_nothing_is_taken_as_it_is(power, self_cost):
    """Without a copy; otherwise its diagonal is moved to 0 and its largest near to 1."""
    C = torch.tensor(2.0**power * (squares(cloud("gaussian", 2, 9, 3)) + self_cost))
    cost = as_pairwise(C)
    dual = Dual(cost, torch.ones(9).double())
    assert (dual.cost is cost) == (power == self_cost == 0)
    assert (2 * dual.base).tolist() == C.diagonal().tolist()
    moved = dual.cost.dense()
    np.testing.assert_allclose(dual.scale * moved, C - C.diagonal().mean(), rtol=1e-12)
    assert dual.scale == 1 if power == 0 else 1 <= float(moved.max()) < 2


@pytest.mark.parametrize(("ulps", "left"), [(8, 0), (9, 9), (-8, 0), (-9, -9)])
def test_what_is_left_of_a_copy_is_rounding(ulps, left):
    """Up to four roundings of each of two costs of 2, that is eight of the numbers from 2 to 4."""
    ulp = 2 * torch.finfo(torch.float64).eps
    near = 2 + ulps * ulp  # exact
    C = torch.tensor([[2, near, 5], [near, 2, 5], [5, 5, 2]], dtype=torch.float64)
    dual = Dual(as_pairwise(C), torch.ones(3).double())
    assert dual.scale == 1
    assert dual.cost.dense().tolist() == [[0, left * ulp, 3], [left * ulp, 0, 3], [3, 3, 0]]


@pytest.mark.parametrize("block", [None, 1])
def test_arrays_are_kept_where_they_fit(block):
    """A dense array keeps A, B and D; else each product computes them again."""
    C = torch.tensor(squares(cloud("gaussian", 2, 9, 3)))
    cost = Pairwise(lambda rows: C[rows], (9, 9), C, block=block)
    gamma, lam = moderate(2, C.numpy(), 0.3)
    gamma[3], lam[3] = 0.0, -0.1
    dual = Dual(cost, torch.ones(9).double())
    none = torch.zeros(9, dtype=torch.bool)
    point = dual.at(torch.tensor(gamma), torch.tensor(lam), none)
    assert (point.kept is not None) == (block is None)
    g, h = np.random.default_rng(0).normal(size=(2, 9))
    found = dual.hessian_product(point, torch.tensor(np.stack([g, h]))).flatten()
    expected = damped_hessian(C.numpy(), gamma, lam, 0.0) @ np.concatenate([g, h])
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_point_in_use_keeps_its_matrices():
    """The point beside which another is evaluated keeps its matrices, whichever comes after."""
    C = torch.tensor(squares(cloud("gaussian", 2, 9, 3)))
    dual, none = Dual(as_pairwise(C), torch.ones(9).double()), torch.zeros(9, dtype=torch.bool)
    values = [tuple(map(torch.tensor, moderate(seed, C.numpy(), 0.3))) for seed in range(4)]
    step = torch.randn(2, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    point = dual.at(*values[0], none)
    for value in values[1:]:
        before = dual.hessian_product(point, step)
        for _ in range(2):  # a step that fails, and one that is taken
            after = dual.at(*value, none, beside=point)
            assert torch.equal(dual.hessian_product(point, step), before)
        point = after
        fresh = Dual(as_pairwise(C), torch.ones(9).double())
        found = dual.hessian_product(point, step)
        assert torch.equal(found, fresh.hessian_product(fresh.at(*value, none), step))


@pytest.mark.parametrize("block", [None, 3])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_is_shared_with_most_entropy(seed, block):
    """Among pinned points at no cost from each other: of given row sums, with P_ij = v_i v_j."""
    rng = np.random.default_rng(seed)
    place = np.array([0, 1, 0, 2, 0, 1, 3, 0])
    C = torch.tensor(np.abs(np.subtract.outer(place, place)) * 1.0)
    C[0, 2] = C[2, 0] = -1e-17  # rounding
    cost = drot.pairwise(lambda x, y: C[x[:, 0].long()], np.arange(8.0)[:, None], block=block)
    dual = Dual(cost, torch.ones(8).double())
    assert dual.group.tolist() == [0, 1, 0, 3, 0, 1, 6, 0]
    left = torch.tensor(rng.uniform(0.05, 1.0, size=8))
    left[[4, 7]] = torch.tensor([0.0, [-0.2, 0.0, 1e-9, 0.4][seed]]).double()  # 4 is not pinned
    free, shannon = dual._share(left)
    v = free.clamp_min(0).sqrt().numpy()
    P = (place[:, None] == place) * np.outer(v, v)
    np.testing.assert_array_equal(free.clamp_max(0), left.clamp_max(0))
    np.testing.assert_allclose(P.sum(axis=1), left.clamp_min(0), rtol=1e-12)
    logs = np.log(np.where(P > 0, P, 1.0))
    np.testing.assert_allclose(shannon, -(P * logs).sum(axis=1), rtol=1e-10, atol=1e-12)


def test_entropy_of_a_row_in_debt_is_that_of_its_others():
    """There is no logarithm of a negative weight; entropy to spare is no offence."""
    C = squares([-1.0, 0.0, 1.0])
    gamma = torch.tensor([5.0, 0.0, 5.0]).double()
    dual = Dual(as_pairwise(C), torch.ones(3).double())
    for p, left in ((0.6, -0.2), (0.4, 0.2)):
        lam = 5 * math.log(p) + 2
        point = dual.at(gamma, torch.tensor([lam, 0.0, lam]).double(), torch.arange(3) == 1)
        assert float(point.free[1]) == pytest.approx(left, rel=1e-7)
        own = left * math.log(left) if left > 0 else 0.0
        assert float(point.entropy[1]) == pytest.approx(1 - 2 * p * math.log(p) - own, rel=1e-7)
        missing, wrong = (float(x[1]) for x in dual.violation(point))
        assert missing == 0.0  # it has more than the target, 1
        assert wrong == pytest.approx(max(0.0, -left), rel=1e-7, abs=1e-15)
