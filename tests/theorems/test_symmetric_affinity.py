"""Chapter 3: one symmetric plan, its slack rows, its dual, its Hessian, three points in full."""

from __future__ import annotations

import functools
import itertools
import math

import drot
import numpy as np
import oracles
import pytest
import scipy.optimize
import torch
from drot.affinities.symmetric import _Newton
from drot.affinities.symmetric_dual import Dual
from drot.costs.array import Pairwise, as_pairwise


def squares(X) -> np.ndarray:
    """Squared distances; numbers are points of the line."""
    X = np.asarray(X, dtype=float)
    X = X[:, None] if X.ndim == 1 else X
    return ((X[:, None] - X[None]) ** 2).sum(axis=-1)


def cloud_cost(seed: int, n: int, p: int = 3) -> np.ndarray:
    """Squared distances of a cloud whose points have scales of their own: a cost in D."""
    rng = np.random.default_rng(seed)
    return squares(rng.normal(size=(n, p)) * rng.uniform(0.3, 3, size=(n, 1)))


def graph_cost(seed: int, n: int, decades: float) -> np.ndarray:
    """A cost in D over some decades, which no Euclidean space gives; many rows are slack."""
    C = 10 ** np.random.default_rng(seed).uniform(-decades / 2, decades / 2, size=(n, n))
    C = (C + C.T) / 2
    np.fill_diagonal(C, 0)
    return C


def star_cost(leaves: int) -> np.ndarray:
    """A centre, row 0, at cost 1 from leaves that are at cost 4 from each other."""
    C = np.full((leaves + 1, leaves + 1), 4.0)
    C[0] = C[:, 0] = 1.0
    np.fill_diagonal(C, 0)
    return C


def triples(k: int, distance: float = 10.0) -> np.ndarray:
    """k copies of (-1, 0, 1) on the line; the middles are rows 1, 4, 7, ..."""
    return squares((distance * np.arange(k)[:, None] + np.array([-1.0, 0.0, 1.0])).ravel())


LINE = squares([-1, 0, 1])
SHARES = (0.02, 0.3, 0.6, 0.97)  # of the way from perplexity 1 to n
COSTS = {
    "cloud": lambda: cloud_cost(0, 12),
    "cloud22": lambda: cloud_cost(1, 22),
    "line": lambda: LINE,
    "triples": lambda: triples(2),
    "graph": lambda: graph_cost(2, 10, 1.0),
    "wide graph": lambda: graph_cost(5, 12, 4.0),
    "star": lambda: star_cost(6),
    "simplex": lambda: squares(np.concatenate([np.zeros((1, 5)), np.eye(5) - 1 / 5])),
    "self-costs": lambda: cloud_cost(3, 9) + np.add.outer(np.arange(9.0), np.arange(9.0)),
}
each_cost = pytest.mark.parametrize("name", COSTS)
each_share = pytest.mark.parametrize("share", SHARES)


@functools.cache
def solved(name: str, share: float) -> tuple[np.ndarray, float, oracles.Conic]:
    """A cost, a perplexity and the conic solution, found once."""
    C = COSTS[name]()
    xi = level(C, share)
    return C, xi, oracles.symmetric_entropic_transport(C, xi)


def level(C: np.ndarray, share: float) -> float:
    return 1 + share * (len(C) - 1)


def row_perplexities(plan: np.ndarray) -> np.ndarray:
    return np.exp([oracles.log_perplexity(row) for row in plan])


def dual_of(C, xi, block: int | None = None) -> Dual:
    """The dual function over a matrix of zero diagonal, or over tiles computed each time."""
    cost = as_pairwise(C)
    if block:
        cost = Pairwise(lambda rows: torch.as_tensor(C)[rows], C.shape, cost, block=block)
    target = np.log(np.broadcast_to(xi, len(C))) + 1
    return Dual(cost, torch.tensor(target))


def random_duals(seed: int, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positive gamma over a decade and a half, and lam that keep row sums moderate."""
    rng = np.random.default_rng(seed)
    gamma = 0.3 * np.median(C) * 10 ** rng.uniform(-1, 0.5, size=len(C))
    return gamma, -gamma * rng.uniform(0.2, 2.0, size=len(C))


def no_rows(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.bool)


# --------------------------------------------------------------------------- prp-sea-unique
@each_cost
@each_share
def test_prp_sea_unique(name, share):
    """The solver's plan is the conic one, feasible, and of the same cost."""
    C, xi, conic = solved(name, share)
    plan = drot.symmetric_entropic_affinity(C, xi).plan.numpy()
    assert (plan * C).sum() == pytest.approx(conic.value, abs=1e-6)
    np.testing.assert_allclose(plan, conic.plan, atol=1e-6)
    assert (plan >= 0).all()
    np.testing.assert_array_equal(plan, plan.T)
    np.testing.assert_allclose(plan.sum(axis=1), 1, atol=1e-8)
    assert (row_perplexities(plan) >= xi * (1 - 1e-8)).all()


@pytest.mark.parametrize("seed", range(4))
def test_prp_sea_unique_perplexity_by_row(seed):
    """A perplexity for each row, far apart from row to row: the conic plan again."""
    rng = np.random.default_rng(seed)
    for C in (cloud_cost(seed, 11), graph_cost(seed, 9, 4.0)):
        xi = rng.uniform(1.1, len(C) - 0.2, size=len(C))
        affinity = drot.symmetric_entropic_affinity(C, xi)
        conic = oracles.symmetric_entropic_transport(C, xi)
        np.testing.assert_allclose(affinity.plan, conic.plan, atol=1e-6)
        reached = row_perplexities(affinity.plan.numpy())
        assert (reached >= xi * (1 - 1e-8)).all()
        held = ~affinity.slack.numpy()
        np.testing.assert_allclose(reached[held], xi[held], rtol=1e-8)


@pytest.mark.parametrize("name", ["cloud", "line", "triples", "graph", "star"])
def test_prp_sea_unique_starts(name):
    """From any start the solver arrives at the same plan: here at eight random ones."""
    C = COSTS[name]()
    n, xi = len(C), level(C, 0.25)
    expected = drot.symmetric_entropic_affinity(C, xi, tol=1e-11)
    rng = np.random.default_rng(0)
    for _ in range(8):
        gamma = float(expected.gamma.mean()) * 10 ** rng.uniform(-1, 1, size=n)
        lam = -gamma * rng.uniform(0, 3, size=n)
        run = _Newton(dual_of(C, xi), torch.tensor(gamma), torch.tensor(lam), 1e-10)
        for _, residual in itertools.islice(run.steps(), 60):
            if residual <= 1e-10:
                break
        assert residual <= 1e-10, "no step increases the dual, yet the conditions do not hold"
        np.testing.assert_allclose(run.point.gamma, expected.gamma, atol=1e-7 * C.max())
        np.testing.assert_allclose(run.point.lam, expected.lam, atol=1e-7 * C.max())
        np.testing.assert_allclose(run.point.free, expected.free, atol=1e-8)


@pytest.mark.parametrize("name", ["cloud", "line", "wide graph", "simplex"])
def test_prp_sea_unique_exchange(name):
    """Every other feasible plan costs more: the proof's exchange, and moves of any other kind."""
    C = COSTS[name]()
    n, xi = len(C), level(C, 0.3)
    plan = drot.symmetric_entropic_affinity(C, xi, tol=1e-12).plan.numpy()
    value, rng = (plan * C).sum(), np.random.default_rng(1)
    uniform = np.full((n, n), 1 / n)
    for _ in range(200):
        move = rng.normal(size=(n, n))
        move = plan * (move + move.T)
        move -= np.diag(move.sum(axis=1))  # rows sum to 0
        t = rng.uniform(0.01, 1) / np.abs(move / np.maximum(plan, 1e-300)).max()
        moved = plan + t * move
        # towards the uniform plan until every row has its perplexity again
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            mixed = (1 - middle) * moved + middle * uniform
            enough = (row_perplexities(mixed) >= xi).all()
            low, high = (low, middle) if enough else (middle, high)
        mixed = (1 - high) * moved + high * uniform
        assert (mixed * C).sum() > value


def test_prp_sea_unique_erratum():
    """Symmetric with zero diagonal is not enough: two plans of cost 0 where costs vanish."""
    C = np.zeros((4, 4))
    C[2, 3] = C[3, 2] = 1.0
    plans = []
    for partner in ([2, 3, 0, 1], [3, 2, 1, 0]):
        plan = (np.eye(4) + np.eye(4)[partner]) / 2
        np.testing.assert_array_equal(plan, plan.T)
        np.testing.assert_array_equal(plan.sum(axis=1), 1)
        assert (row_perplexities(plan) > 1.5).all()
        assert (plan * C).sum() == 0
        plans.append(plan)
    assert np.abs(plans[0] - plans[1]).max() == 0.5
    assert oracles.symmetric_entropic_transport(C, 1.5).value == pytest.approx(0, abs=1e-8)
    with pytest.raises(ValueError, match="points 2 and 3 must cost more than each on its own"):
        drot.symmetric_entropic_affinity(C, 1.5)


# ----------------------------------------------------------------------- prp-sea-saturation
@each_cost
@each_share
def test_prp_sea_saturation(name, share):
    """Two slack rows share no mass and some row is saturated; the solver's slack rows are those."""
    C, xi, conic = solved(name, share)
    slack = row_perplexities(conic.plan) > xi * (1 + 1e-4)
    assert not slack.all()
    between = conic.plan[slack][:, slack]
    np.testing.assert_allclose(between, np.diag(np.diag(between)), atol=1e-6)
    affinity = drot.symmetric_entropic_affinity(C, xi)
    np.testing.assert_array_equal(affinity.slack[slack], True)
    np.testing.assert_array_equal(affinity.slack, affinity.gamma == 0)
    plan = affinity.plan.numpy()
    between = plan[affinity.slack][:, affinity.slack]
    np.testing.assert_array_equal(between, np.diag(np.diag(between)))  # 0 exactly
    saturated = ~affinity.slack.numpy()
    np.testing.assert_allclose(row_perplexities(plan)[saturated], xi, rtol=1e-8)
    np.testing.assert_array_equal(affinity.free[saturated], 0)
    np.testing.assert_allclose(affinity.free[~saturated], np.diag(plan)[~saturated], rtol=1e-13)
    np.testing.assert_allclose(affinity.perplexity, row_perplexities(plan), rtol=1e-9)


def test_prp_sea_saturation_is_not_vacuous():
    """The costs above do have slack rows: none, one, two and more of them."""
    counts = set()
    for name, share in itertools.product(COSTS, SHARES):
        C, xi, _ = solved(name, share)
        counts.add(int(drot.symmetric_entropic_affinity(C, xi).slack.sum()))
    assert counts >= {0, 1, 2, 3}


@pytest.mark.parametrize(("xi", "middle"), [(1.2, 1.4018), (1.5, 1.9430), (2.0, 2.5791)])
def test_prp_sea_saturation_line(xi, middle):
    """-1, 0, 1: the middle point has more entropy than it needs, at every perplexity."""
    affinity = drot.symmetric_entropic_affinity(LINE, xi)
    np.testing.assert_array_equal(affinity.slack, [False, True, False])
    np.testing.assert_allclose(affinity.perplexity, [xi, middle, xi], atol=5e-5)
    if xi == 1.5:
        assert (affinity.plan.numpy() * LINE).sum() == pytest.approx(0.527033, abs=5e-7)
    conic = oracles.symmetric_entropic_transport(LINE, xi)
    np.testing.assert_allclose(affinity.plan, conic.plan, atol=1e-6)


@pytest.mark.parametrize("k", [2, 5, 100])
def test_prp_sea_saturation_triples(k):
    """k slack rows of 3k, exactly the middles: no n - 1 rows need be saturated."""
    affinity = drot.symmetric_entropic_affinity(triples(k, 30.0), 1.5)
    np.testing.assert_array_equal(affinity.slack, np.arange(3 * k) % 3 == 1)
    np.testing.assert_allclose(affinity.perplexity, np.tile([1.5, 1.9430, 1.5], k), atol=5e-5)
    alone = drot.symmetric_entropic_affinity(LINE, 1.5).plan
    np.testing.assert_allclose(affinity.plan, np.kron(np.eye(k), alone), atol=1e-8)


@pytest.mark.parametrize("d", [5, 10])
def test_prp_sea_saturation_simplex(d):
    """The centre of a regular simplex is slack, its corners are not."""
    C = squares(np.concatenate([np.zeros((1, d)), np.eye(d) - 1 / d]))
    for xi in (1.5, 3.0, 0.8 * d):
        affinity = drot.symmetric_entropic_affinity(C, xi)
        np.testing.assert_array_equal(affinity.slack, np.arange(d + 1) == 0)
        assert float(affinity.perplexity[0]) > 1.05 * xi
        conic = oracles.symmetric_entropic_transport(C, xi)
        np.testing.assert_allclose(affinity.plan, conic.plan, atol=1e-6)


# ---------------------------------------------------------------------------- thm-sea-three
def bisect(function, low: float, high: float) -> float:
    """The root of an increasing function."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return (low + high) / 2


def excess(weights, xi: float) -> float:
    row = np.array(weights) / sum(weights)
    return oracles.log_perplexity(row) - math.log(xi)


def three_points(C: np.ndarray, xi: float) -> tuple[np.ndarray, int | None, np.ndarray | None]:
    """The statement: plan, slack row or None, and gamma where no row is slack."""
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        near, far = C[i, j] + C[i, k], C[j, k]
        if far > near:
            rho = far / near
            q = bisect(lambda q, rho=rho: excess([1, q, q**rho], xi), 0.0, 1.0)
            Z = 1 + q + q**rho
            plan = np.empty((3, 3))
            plan[j, j] = plan[k, k] = 1 / Z
            plan[i, j] = plan[j, i] = plan[i, k] = plan[k, i] = q / Z
            plan[j, k] = plan[k, j] = q**rho / Z
            plan[i, i] = 1 - 2 * q / Z
            return plan, i, None
    a = bisect(lambda a: excess([1 - 2 * a, a, a], xi), 0.0, 1 / 3)
    kappa = math.log((1 - 2 * a) / a)
    gamma = [(C[i, i - 1] + C[i, i - 2] - C[i - 1, i - 2]) / kappa for i in range(3)]
    return np.full((3, 3), a) + (1 - 3 * a) * np.eye(3), None, np.array(gamma)


def triangle(kind: str, seed: int) -> np.ndarray:
    """Corners of a triangle of this kind, the widest angle at a random one, turned and moved."""
    rng = np.random.default_rng(seed)
    reach = {"acute": (0.34, 0.49), "right": (0.5, 0.5), "obtuse": (0.52, 0.98)}[kind]
    angle = math.pi * rng.uniform(*reach)
    one, other = rng.uniform(0.7, 1.0, size=2) if kind == "acute" else rng.uniform(0.2, 3, size=2)
    X = np.array([[0, 0], [one, 0], [other * math.cos(angle), other * math.sin(angle)]])
    turn, _ = np.linalg.qr(rng.normal(size=(2, 2)))
    return (X @ turn + rng.normal(size=2))[rng.permutation(3)]


def angles(X: np.ndarray) -> np.ndarray:
    """Cosine of the angle at each corner."""
    found = []
    for i in range(3):
        u, v = X[i - 1] - X[i], X[i - 2] - X[i]
        found.append(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)))
    return np.array(found)


@pytest.mark.parametrize("kind", ["acute", "obtuse"])
@pytest.mark.parametrize("seed", range(8))
def test_thm_sea_three(kind, seed):
    """A corner is slack exactly if it is obtuse, whatever xi; the plan has the stated form."""
    X = triangle(kind, seed)
    C, obtuse = squares(X), angles(X) < 0
    assert obtuse.sum() == (kind == "obtuse")
    for xi in (1.05, 1.5, 2.2, 2.95):
        plan, slack, gamma = three_points(C, xi)
        affinity = drot.symmetric_entropic_affinity(C, xi)
        np.testing.assert_allclose(affinity.plan, plan, atol=1e-8)
        np.testing.assert_array_equal(affinity.slack, obtuse)
        conic = oracles.symmetric_entropic_transport(C, xi)
        np.testing.assert_allclose(conic.plan, plan, atol=1e-6)
        if kind == "acute":
            assert slack is None
            np.testing.assert_allclose(affinity.gamma, gamma, rtol=1e-5)
            kappa = math.log(plan[0, 0] / plan[0, 1])
            corner = [(X[i - 1] - X[i]) @ (X[i - 2] - X[i]) for i in range(3)]
            np.testing.assert_allclose(affinity.gamma, 2 * np.array(corner) / kappa, rtol=1e-5)
        else:
            assert obtuse[slack]
            assert row_perplexities(plan)[slack] > xi + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_thm_sea_three_right(seed):
    """At a right angle entropy is free of charge and yet none is left over."""
    C = squares(triangle("right", seed))
    widest = int(C.sum(axis=1).argmin())  # opposite the largest side
    for xi in (1.2, 1.7, 2.6):
        plan, _, gamma = three_points(np.round(C, 14), xi)
        affinity = drot.symmetric_entropic_affinity(C, xi)
        np.testing.assert_allclose(affinity.plan, plan, atol=1e-6)
        np.testing.assert_allclose(row_perplexities(affinity.plan.numpy()), xi, rtol=1e-6)
        assert abs(float(affinity.gamma[widest])) < 1e-5 * C.max()
        if gamma is not None:
            np.testing.assert_allclose(affinity.gamma, gamma, atol=1e-5 * C.max())


@pytest.mark.parametrize("excess", [-1e-3, 1e-3])
@pytest.mark.parametrize("skew", [0.0, 0.4])
def test_thm_sea_three_next_to_right(excess, skew):
    """A thousandth to either side of C_12 = C_01 + C_02 decides, at every perplexity."""
    C = np.zeros((3, 3))
    C[0, 1], C[0, 2], C[1, 2] = 1 + skew, 1 - skew, 2 * (1 + excess)
    C = C + C.T
    for xi in (1.1, 1.8, 2.7):
        plan, slack, gamma = three_points(C, xi)
        assert (slack == 0) == (excess > 0) and (gamma is None) == (excess > 0)
        affinity = drot.symmetric_entropic_affinity(C, xi, tol=1e-12)
        np.testing.assert_array_equal(affinity.slack, np.arange(3) == slack)
        np.testing.assert_allclose(affinity.plan, plan, atol=1e-8)
        if gamma is not None:
            np.testing.assert_allclose(affinity.gamma, gamma, atol=1e-6)
        conic = oracles.symmetric_entropic_transport(C, xi)
        np.testing.assert_allclose(conic.plan, plan, atol=1e-5)


def test_thm_sea_three_same_for_all_triangles():
    """Without a slack row the plan does not depend on the triangle at all."""
    xi = 1.8
    plans = [
        drot.symmetric_entropic_affinity(squares(triangle("acute", seed)), xi).plan.numpy()
        for seed in range(5)
    ]
    for plan in plans:
        np.testing.assert_allclose(plan, plans[0], atol=1e-8)
        off = plan[~np.eye(3, dtype=bool)]
        np.testing.assert_allclose(off, off[0], atol=1e-8)
        assert 0 < off[0] < 1 / 3


@pytest.mark.parametrize("seed", range(12))
def test_thm_sea_three_any_cost(seed):
    """Any symmetric cost, positive off the diagonal, over three decades: not only distances."""
    rng = np.random.default_rng(seed)
    C = np.zeros((3, 3))
    C[np.triu_indices(3, 1)] = (
        10 ** rng.uniform(-1.5, 1.5, size=3) if seed % 2 else rng.uniform(1, 2)
    )
    C[np.triu_indices(3, 1)] *= rng.uniform(0.9, 1.1, size=3)
    C = C + C.T
    for xi in (1.1, 2.0, 2.9):
        plan, slack, gamma = three_points(C, xi)
        affinity = drot.symmetric_entropic_affinity(C, xi)
        np.testing.assert_allclose(affinity.plan, plan, atol=2e-8)
        np.testing.assert_array_equal(affinity.slack, np.arange(3) == slack)
        if gamma is not None:
            np.testing.assert_allclose(affinity.gamma, gamma, rtol=1e-5)
        conic = oracles.symmetric_entropic_transport(C / C.max(), xi)
        np.testing.assert_allclose(conic.plan, plan, atol=1e-6)


@pytest.mark.parametrize("kind", ["acute", "right", "obtuse"])
@pytest.mark.parametrize("seed", range(4))
def test_prp_sea_three_psd(kind, seed):
    """Three points of a Euclidean space: no negative eigenvalue, positive ones if acute."""
    C = squares(triangle(kind, seed))
    for xi in (1.05, 1.5, 2.2, 2.95, 2.999):
        plan = oracles_of_three(C, xi)
        least = np.linalg.eigvalsh(plan)[0]
        assert least > -1e-9
        if kind == "acute":
            assert least == pytest.approx(1 - 3 * plan[0, 1], abs=1e-6) and least > 1e-3


@pytest.mark.parametrize("rho", [0.7, 1.5, 2.0, 2.02, 2.2, 4.5, 20.0])
@pytest.mark.parametrize("skew", [0.0, 0.3])
def test_prp_sea_three_psd_any_cost(rho, skew):
    """The sign of the smallest eigenvalue is that of 1 + q^rho - 2 q; above 2 it fails near 3."""
    C = np.zeros((3, 3))
    C[0, 1], C[0, 2], C[1, 2] = 1 + skew, 1 - skew, 2 * rho
    C = C + C.T
    signs = []
    for xi in (1.1, 2.0, 2.9, 2.99, 2.9999):
        plan = oracles_of_three(C, xi)
        least = np.linalg.eigvalsh(plan)[0]
        q = plan[0, 1] / plan[1, 1]
        if rho > 1:  # row 0 is slack
            assert abs(least) < 1e-6 or (least > 0) == (1 + q**rho > 2 * q)
        signs.append(least > -1e-9)
    assert all(signs) == (rho <= 2)


def oracles_of_three(C, xi):
    """The plan of the solver, which the theorem's own form confirms."""
    plan = drot.symmetric_entropic_affinity(C, xi).plan.numpy()
    np.testing.assert_allclose(plan, three_points(C, xi)[0], atol=1e-6)
    return plan


# ----------------------------------------------------------------------------- prp-sea-dual
@each_cost
@each_share
def test_prp_sea_dual(name, share):
    """No duality gap; the formula of the plan; the multipliers of the conic program."""
    C, xi, conic = solved(name, share)
    affinity = drot.symmetric_entropic_affinity(C, xi)
    plan, gamma, lam = affinity.plan.numpy(), affinity.gamma.numpy(), affinity.lam.numpy()
    value, digits = (plan * C).sum(), 1e-8 * np.abs(C).max()
    assert affinity.dual_value == pytest.approx(value, rel=1e-8, abs=digits)
    recomputed = oracles.symmetric_dual(C, xi, gamma, lam)
    assert recomputed == pytest.approx(affinity.dual_value, rel=1e-11, abs=1e-11 * C.max())
    assert (gamma >= 0).all()
    # the formula wherever a price is positive, and what is said of the rest
    s, u = gamma[:, None] + gamma, lam[:, None] + lam - 2 * C
    paid = s > 0
    np.testing.assert_allclose(plan[paid], np.exp(u[paid] / s[paid]), rtol=1e-11)
    np.testing.assert_array_equal(plan[~paid & ~np.eye(len(C), dtype=bool)], 0)
    for i in np.flatnonzero(gamma == 0):
        assert lam[i] <= C[i, i]
        if lam[i] == C[i, i]:
            assert plan[i, i] == pytest.approx(1 - np.delete(plan[i], i).sum(), abs=1e-9)
        else:
            assert plan[i, i] == 0
    # complementary slackness, entry by entry
    spare = row_perplexities(plan) - xi
    np.testing.assert_allclose(gamma * spare, 0, atol=1e-7 * C.max())
    np.testing.assert_allclose(gamma, conic.entropy, atol=1e-5 * C.max())
    np.testing.assert_allclose(lam, conic.row_sum, atol=1e-5 * C.max())


@pytest.mark.parametrize("block", [None, 1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_prp_sea_dual_value_and_gradient(seed, block):
    """Value, entropies and row sums anywhere, not only at the optimum."""
    C = cloud_cost(seed, 9)
    xi = np.linspace(2, 7, 9)
    gamma, lam = random_duals(seed, C)
    at = np.concatenate([gamma, lam])
    point = dual_of(C, xi, block).at(torch.tensor(gamma), torch.tensor(lam), no_rows(9))
    assert point.value == pytest.approx(oracles.symmetric_dual(C, xi, gamma, lam), rel=1e-12)
    slope = oracles.symmetric_dual_gradient(C, xi, at)
    np.testing.assert_allclose(point.row_sum, 1 - slope[9:], rtol=1e-12)
    np.testing.assert_allclose(point.entropy, np.log(xi) + 1 - slope[:9], atol=1e-12)
    measured = oracles.jacobian(
        lambda x: np.array([oracles.symmetric_dual(C, xi, *np.split(x, 2))]), at, 1e-6
    )
    np.testing.assert_allclose(measured[0], slope, atol=1e-7)


@pytest.mark.parametrize("block", [None, 4])
def test_prp_sea_dual_slack_rows(block):
    """Value, row sums and entropies where gamma_i = 0: pinned rows, bare rows, copies."""
    C = squares([-1.0, 0.0, 0.0, 0.9, 3.0, 4.0, 5.1])
    n, xi = len(C), 2.5
    gamma, lam = random_duals(0, C)
    gamma[[1, 2, 5]] = 0.0
    lam[[1, 2]], lam[5] = 0.0, -0.4
    pinned = torch.tensor([False, True, True, False, False, False, False])
    dual = dual_of(C, xi, block)
    point = dual.at(torch.tensor(gamma), torch.tensor(lam), pinned)
    s, u = gamma[:, None] + gamma, lam[:, None] + lam - 2 * C
    plan = np.where(s > 0, np.exp(u / np.where(s > 0, s, 1.0)), 0.0)
    free = np.zeros(n)
    free[[1, 2]] = (1 - plan[[1, 2]].sum(axis=1)) / 2  # the two copies share it
    plan[np.ix_([1, 2], [1, 2])] = free[[1, 2], None]
    np.testing.assert_allclose(point.free, free, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(point.row_sum, plan.sum(axis=1), rtol=1e-12)
    assert point.value == pytest.approx(oracles.symmetric_dual(C, xi, gamma, lam), rel=1e-12)
    safe = np.where(plan > 0, plan, 1.0)
    entropy = (plan - plan * np.log(safe)).sum(axis=1)
    assert (free[[1, 2]] > 0).all()
    np.testing.assert_allclose(point.entropy, entropy, rtol=1e-12)
    # what each row owes: a slack row only missing entropy, and no negative weight
    gap = np.log(xi) + 1 - np.asarray(point.entropy)
    owed, sums = (np.asarray(x) for x in dual.violation(point))
    slack = gamma == 0
    np.testing.assert_allclose(owed, np.where(slack, np.maximum(gap, 0), np.abs(gap)), rtol=1e-12)
    wrong = np.abs(np.asarray(point.row_sum) - 1)
    np.testing.assert_allclose(sums, np.maximum(wrong, -free), rtol=1e-12)


def test_prp_sea_dual_debt():
    """A pinned row whose others already weigh more than 1 owes the rest: never optimal."""
    dual = dual_of(LINE, 1.5)
    gamma, lam = torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0.0, 0.0, 0.0])
    gamma, lam = gamma.double() * 5, lam.double()
    point = dual.at(gamma, lam, torch.tensor([False, True, False]))
    expected = 1 - 2 * math.exp(-2 / 5)
    assert expected < 0
    assert float(point.free[1]) == pytest.approx(expected, rel=1e-14)
    assert float(dual.violation(point)[1][1]) == pytest.approx(-expected, rel=1e-14)
    assert torch.isfinite(point.entropy).all()


@pytest.mark.parametrize("seed", range(5))
def test_prp_sea_dual_concave(seed):
    """Along a segment q lies above its chord, on faces of gamma >= 0 too."""
    C = cloud_cost(seed, 7)
    rng = np.random.default_rng(seed)
    ends = [random_duals(10 * seed + k, C) for k in range(2)]
    for face in ([], [0], [1, 4]):
        x, y = (np.concatenate(end) for end in ends)
        x[face] = y[face] = 0.0
        x[7 + np.array(face, dtype=int)] = -rng.uniform(0, 1, size=len(face))
        y[7 + np.array(face, dtype=int)] = 0.0
        value = [oracles.symmetric_dual(C, 3.0, *np.split(z, 2)) for z in (x, y)]
        for t in (0.2, 0.5, 0.9):
            between = oracles.symmetric_dual(C, 3.0, *np.split((1 - t) * x + t * y, 2))
            assert between > (1 - t) * value[0] + t * value[1]
    optimum = drot.symmetric_entropic_affinity(C, 3.0).dual_value
    assert all(oracles.symmetric_dual(C, 3.0, *end) < optimum for end in ends)


@pytest.mark.parametrize(("leaves", "xi"), [(6, 4.0), (6, 5.0), (8, 3.0), (8, 6.0)])
def test_prp_sea_dual_star(leaves, xi):
    """A slack row may keep nothing for itself: lam_0 < C_00 and P_00 = 0 exactly."""
    C = star_cost(leaves)
    affinity = drot.symmetric_entropic_affinity(C, xi)
    assert bool(affinity.slack[0]) and int(affinity.slack.sum()) == 1
    assert float(affinity.plan[0, 0]) == 0 and float(affinity.free[0]) == 0
    assert float(affinity.log_plan[0, 0]) == -math.inf
    assert float(affinity.lam[0]) < -0.02
    np.testing.assert_allclose(affinity.plan[0, 1:], 1 / leaves, atol=1e-8)
    conic = oracles.symmetric_entropic_transport(C, xi)
    np.testing.assert_allclose(affinity.plan, conic.plan, atol=1e-6)
    np.testing.assert_allclose(affinity.lam, conic.row_sum, atol=1e-5)


def test_prp_sea_dual_star_kept():
    """At less perplexity the same centre keeps some: lam_0 = C_00, and the row is slack too."""
    for xi in (1.5, 2.0, 3.0):
        affinity = drot.symmetric_entropic_affinity(star_cost(6), xi)
        assert bool(affinity.slack[0]) and float(affinity.lam[0]) == 0
        assert 0.05 < float(affinity.plan[0, 0]) < 0.7


# --------------------------------------------------------------------------- cor-sea-finite
@pytest.mark.parametrize("name", ["cloud22", "acute"])
def test_cor_sea_finite(name):
    """Positive prices at which all rows are met: P is P^se, and q is nowhere larger."""
    C = squares(triangle("acute", 0)) if name == "acute" else COSTS[name]()
    n, xi = len(C), 2.0 if name == "acute" else 12.0
    affinity = drot.symmetric_entropic_affinity(C, xi, tol=1e-11)
    gamma, lam = affinity.gamma.numpy(), affinity.lam.numpy()
    assert (gamma > 0).all()
    at = np.concatenate([gamma, lam])
    np.testing.assert_allclose(oracles.symmetric_dual_gradient(C, xi, at), 0, atol=1e-9)
    P = np.exp((lam[:, None] + lam - 2 * C) / (gamma[:, None] + gamma))
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(row_perplexities(P), xi, rtol=1e-8)
    np.testing.assert_allclose(P, oracles.symmetric_entropic_transport(C, xi).plan, atol=1e-6)
    best, rng = oracles.symmetric_dual(C, xi, gamma, lam), np.random.default_rng(0)
    for size in (1e-2, 0.3, 3.0):  # faces of gamma >= 0 are no better
        for face in ([], [0], [0, 1]):
            other = np.maximum(gamma * (1 + size * rng.normal(size=n)), 0)
            other[face] = 0.0
            moved = lam * (1 + size * rng.normal(size=n))
            moved[face] = -abs(moved[face])
            assert oracles.symmetric_dual(C, xi, other, moved) < best


@pytest.mark.parametrize("kind", ["right", "obtuse"])
def test_cor_sea_finite_none(kind):
    """A corner that is not acute has no price, and positive prices only come near the optimum."""
    C, xi = np.round(squares(triangle(kind, 0)), 14), 1.7
    conic = oracles.symmetric_entropic_transport(C, xi)
    widest = int(C.sum(axis=1).argmin())  # opposite the largest side
    assert conic.entropy[widest] < 1e-4 * C.max()
    value = float((conic.plan * C).sum())
    gaps = []
    for price in (1e-1, 1e-2, 1e-3):  # the best lam for these prices
        gamma = np.maximum(conic.entropy, 0)
        gamma[widest] = price * C.max()
        gaps.append(value - best_lam(C, xi, gamma, conic.row_sum))
    assert gaps[0] > gaps[1] > gaps[2] > 0 and gaps[2] < 0.05 * gaps[0]


def best_lam(C: np.ndarray, xi: float, gamma: np.ndarray, start: np.ndarray) -> float:
    """max q over lam at given prices, by BFGS."""

    def loss(lam):
        slope = oracles.symmetric_dual_gradient(C, xi, np.concatenate([gamma, lam]))
        return -oracles.symmetric_dual(C, xi, gamma, lam), -slope[len(C) :]

    found = scipy.optimize.minimize(loss, start, jac=True, tol=1e-12)
    return -float(found.fun)


# -------------------------------------------------------------------------- prp-sea-hessian
def explicit_hessian(C: np.ndarray, gamma: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Minus the Hessian, (2n, 2n), as stated; pairs without a price have no curvature."""
    s = gamma[:, None] + gamma
    paid = s > 0
    s = np.where(paid, s, 1.0)
    log_p = np.where(paid, (lam[:, None] + lam - 2 * C) / s, 0.0)
    A = np.where(paid, np.exp(log_p) / s, 0.0)
    B, D = -log_p * A, log_p**2 * A
    blocks = [[np.diag(M.sum(axis=1)) + M for M in row] for row in ((D, B), (B, A))]
    return np.block(blocks)


@pytest.mark.parametrize("block", [None, 1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_prp_sea_hessian(seed, block):
    """Products with unit vectors are the columns of the stated matrix, and of differences."""
    C = cloud_cost(seed, 9)
    xi = np.linspace(2, 7, 9)
    gamma, lam = random_duals(seed, C)
    dual = dual_of(C, xi, block)
    point = dual.at(torch.tensor(gamma), torch.tensor(lam), no_rows(9))
    units = torch.eye(18, dtype=torch.float64)
    columns = [dual.hessian_product(point, unit.view(2, 9)).flatten() for unit in units]
    product = torch.stack(columns, dim=1).numpy()
    scale = np.abs(product).max()
    stated = explicit_hessian(C, gamma, lam)
    np.testing.assert_allclose(product, stated, rtol=1e-10, atol=1e-13 * scale)
    measured = -oracles.jacobian(
        lambda x: oracles.symmetric_dual_gradient(C, xi, x), np.concatenate([gamma, lam]), 1e-6
    )
    np.testing.assert_allclose(product, measured, atol=1e-7 * scale)
    assert np.linalg.eigvalsh(product)[0] > -1e-12 * scale  # q is concave
    # the diagonals and row sums that the preconditioner reads
    A, B, D = (stated[9:, 9:], stated[:9, 9:], stated[:9, :9])
    own = np.stack([M.diagonal() for M in (D, B, A)])
    np.testing.assert_allclose(point.sums + point.diagonal, own, rtol=1e-10, atol=1e-14)
    assert dual.products == 18
    assert dual.passes == 1 + (block is not None)  # the diagonal of tiles


@pytest.mark.parametrize("block", [None, 3])
def test_prp_sea_hessian_slack(block):
    """With slack rows the pairs that no price reaches drop out of the three matrices."""
    C = cloud_cost(4, 8)
    gamma, lam = random_duals(4, C)
    gamma[[2, 5]], lam[[2, 5]] = 0.0, [0.0, -0.3]
    dual = dual_of(C, 3.0, block)
    pinned = torch.arange(8) == 2
    point = dual.at(torch.tensor(gamma), torch.tensor(lam), pinned)
    v = np.random.default_rng(0).normal(size=16)
    found = dual.hessian_product(point, torch.tensor(v).view(2, 8)).flatten()
    expected = explicit_hessian(C, gamma, lam) @ v
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def newton(C: np.ndarray, xi, seed: int, pinned: list[int], bare: list[int]) -> _Newton:
    """The solver at random duals, with some rows slack."""
    gamma, lam = random_duals(seed, C)
    run = _Newton(dual_of(C, xi), torch.tensor(gamma), torch.tensor(lam), 1e-9)
    gamma[pinned + bare], lam[pinned] = 0.0, 0.0
    run.pinned[pinned] = True
    run.point = run.dual.at(torch.tensor(gamma), torch.tensor(lam), run.pinned)
    return run


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize(("pinned", "bare"), [([], []), ([2], []), ([2, 6], [0])])
def test_prp_sea_hessian_solve(pinned, bare, damping):
    """Conjugate gradients solve with the matrix, damped as stated, on what may move."""
    C = cloud_cost(5, 9)
    run = newton(C, 3.0, 5, pinned, bare)
    gamma, lam = run.point.gamma.numpy(), run.point.lam.numpy()
    priced = np.where(gamma > 0, gamma, 1.0)
    ray = np.where(gamma > 0, lam / priced, 0.0)
    metric = [[np.diag((1 + ray**2) / priced), np.diag(-ray / priced)], []]
    metric[1] = [metric[0][1], np.diag(1 / priced)]
    matrix = explicit_hessian(C, gamma, lam) + damping * np.block(metric)
    free = np.concatenate([gamma > 0, ~run.pinned.numpy()])
    np.testing.assert_array_equal(run._free().flatten(), free)
    right = np.random.default_rng(1).normal(size=18)
    found = run._solve(torch.tensor(right).view(2, 9), run._free(), 1e-13, damping).flatten()
    expected = np.zeros(18)
    expected[free] = np.linalg.solve(matrix[np.ix_(free, free)], right[free])
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(("pinned", "bare"), [([], []), ([2], []), ([2, 6], [0])])
def test_prp_sea_hessian_step(pinned, bare):
    """A step is taken if q increases enough for its slope, and refused otherwise."""
    C = cloud_cost(5, 9)
    run = newton(C, 3.0, 5, pinned, bare)
    start = run.point
    regular, moving = run._free()
    up = run._gradient(start)
    np.testing.assert_allclose(up[0], np.where(regular, math.log(3) + 1 - start.entropy, 0))
    np.testing.assert_allclose(up[1], np.where(moving, 1 - start.row_sum, 0))
    small = 1e-4 * float(start.gamma[regular].min())
    assert not run._try(-small * up) and run.point is start
    assert run._try(small * up)
    value = oracles.symmetric_dual(C, 3.0, run.point.gamma.numpy(), run.point.lam.numpy())
    assert start.value < run.point.value == pytest.approx(value, rel=1e-12)
    # far along the same line, where its slope still promises more, q is lower
    far = 100 * float(start.gamma.max()) * up[1].clamp(min=0) / float(up[1].max())
    run.point = start
    still = torch.zeros_like(far)
    assert not run._try(torch.stack([still, far])) and run.point is start
    # and where q has gained half of what is asked for, 1e-4 of what the slope promises

    def lacks(t: float) -> float:
        lam = start.lam + t * far
        lam = torch.where(start.gamma > 0, lam, lam.clamp(max=0.0))
        gain = run.dual.at(start.gamma, lam, run.pinned).value - start.value
        return 0.5e-4 * t * float((up[1] * far).sum()) - gain

    t = bisect(lacks, 0.0, 1.0)
    assert not run._try(torch.stack([still, t * far])) and run.point is start
    assert run._try(torch.stack([still, 0.5 * t * far]))


def test_prp_sea_hessian_domain():
    """A row without a price cannot be given lam > 0, where q is minus infinity."""
    C = cloud_cost(5, 9)
    run = newton(C, 3.0, 5, [], [0])
    lam = run.point.lam.clone()
    lam[0] = -1e-6
    start = run.point = run.dual.at(run.point.gamma, lam, run.pinned)
    dl = torch.zeros_like(lam)
    dl[0] = 1.0
    assert 0 < float(start.row_sum[0]) < 1  # so q would increase
    assert run._try(torch.stack([torch.zeros_like(lam), 1e-5 * dl]))
    assert float(run.point.lam[0]) == 0.0
    run.point = start
    run._sort_rows()
    assert not run.pinned.any()
    run.point = run.dual.at(start.gamma, start.lam + 1e-6 * dl, run.pinned)
    run._sort_rows()  # lam = 0 and mass to spare: it goes to the diagonal
    np.testing.assert_array_equal(run.pinned, np.arange(9) == 0)
    assert float(run.point.free[0]) == pytest.approx(1 - float(start.row_sum[0]), abs=1e-4)


def test_prp_sea_hessian_last_step():
    """Where the value has no more digits the slope decides: Newton's step passes, thrice it not."""
    C = cloud_cost(0, 12)
    affinity = drot.symmetric_entropic_affinity(C, 4.0, tol=1e-13)
    rng = np.random.default_rng(0)
    gamma = affinity.gamma * torch.tensor(1 + 1e-9 * rng.normal(size=12))
    run = _Newton(dual_of(C, 4.0), gamma, affinity.lam, 1e-13)
    start = run.point
    step = run._clipped(0.0)
    slope = float((run._gradient(start) * step).sum())
    assert 0 < slope < 1e-14 * abs(start.value)
    assert not run._try(3 * step) and run.point is start
    assert run._try(step)
    assert run.dual.residual(run.point) < 1e-3 * run.dual.residual(start)


# --------------------------------------------------------------------------- lem-sea-shift
@pytest.mark.parametrize("name", ["cloud", "line", "graph", "wide graph", "star"])
@each_share
def test_lem_sea_shift(name, share):
    """a_i + a_j moves lam by 2a and nothing else; a factor t multiplies gamma and lam."""
    C = COSTS[name]()
    xi, top = level(C, share), C.max()
    # small, so that no row finds another point cheaper than itself; the next test goes further
    a = np.random.default_rng(0).uniform(0, 0.4, size=len(C)) * C[C > 0].min()
    plain = drot.symmetric_entropic_affinity(C, xi, tol=1e-11)
    same_but_for_lam(C, xi, a, plain)
    for t in (0.3, 700.0):
        scaled = drot.symmetric_entropic_affinity(t * C, xi, tol=1e-11)
        np.testing.assert_allclose(scaled.plan, plain.plan, atol=1e-8)
        np.testing.assert_allclose(scaled.gamma / t, plain.gamma, atol=1e-6 * top)
        np.testing.assert_allclose(scaled.lam / t, plain.lam, atol=1e-6 * top)


def same_but_for_lam(C, xi, a, plain):
    """Solve for C_ij + a_i + a_j and compare with the result for C."""
    top = C.max()
    moved = drot.symmetric_entropic_affinity(C + np.add.outer(a, a), xi, tol=1e-11)
    np.testing.assert_allclose(moved.plan, plain.plan, atol=1e-8)
    np.testing.assert_allclose(moved.gamma, plain.gamma, atol=1e-6 * top)
    np.testing.assert_allclose(moved.lam, plain.lam.numpy() + 2 * a, atol=1e-6 * top)
    np.testing.assert_array_equal(moved.slack, plain.slack)
    np.testing.assert_allclose(moved.free, plain.free, atol=1e-8)
    assert moved.dual_value == pytest.approx(plain.dual_value + 2 * a.sum(), abs=1e-7 * top)


@pytest.mark.parametrize("name", ["cloud", "line", "graph", "wide graph", "star"])
@pytest.mark.parametrize("size", [0.5, 5.0])
def test_lem_sea_shift_large(name, size):
    """Also where most rows then find another point cheaper than themselves."""
    C = COSTS[name]()
    a = size * C.max() * np.random.default_rng(1).normal(size=len(C))
    for share in (0.02, 0.3):
        xi = level(C, share)
        same_but_for_lam(C, xi, a, drot.symmetric_entropic_affinity(C, xi, tol=1e-11))


@pytest.mark.parametrize("copies", [2, 3])
def test_lem_sea_shift_copies(copies):
    """Copies of a slack point keep what the formula leaves free, though costs are rounded."""
    C = squares(np.repeat([-1.0, 0.0, 1.0], copies))
    a = np.repeat(np.random.default_rng(2).normal(size=3) * math.pi, copies)
    plain = drot.symmetric_entropic_affinity(C, 1.5 * copies, tol=1e-11)
    assert int(plain.slack.sum()) == copies
    for size in (1e-2, 1.0, 1e3):
        moved = drot.symmetric_entropic_affinity(C + size * np.add.outer(a, a), 1.5 * copies)
        np.testing.assert_allclose(moved.plan, plain.plan, atol=1e-6)


@pytest.mark.parametrize("copies", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_lem_sea_shift_copies_apart(copies, seed):
    """Copies with a shift each: their costs no longer cancel exactly, and the plan is the same."""
    C = squares(np.repeat([-1.0, 0.0, 1.0], copies))
    plain = drot.symmetric_entropic_affinity(C, 1.5 * copies, tol=1e-11)
    for size in (1e-2, 1.0, 1e3):
        a = size * np.random.default_rng(seed).normal(size=3 * copies)
        moved = drot.symmetric_entropic_affinity(C + np.add.outer(a, a), 1.5 * copies)
        np.testing.assert_allclose(moved.plan, plain.plan, atol=1e-6)


def test_lem_sea_shift_ties():
    """Costs that tie only by such a shift: the perplexity is within reach all the same."""
    a = np.array([0.0, 0.5, -0.5])
    plain = drot.symmetric_entropic_affinity(LINE, 1.5, tol=1e-11)
    same_but_for_lam(LINE, 1.5, a, plain)


def test_lem_sea_shift_gram():
    """Squared distances and minus twice the Gram matrix have one plan."""
    X = np.random.default_rng(0).normal(size=(15, 4))
    for xi in (1.5, 4.0, 12.0):
        by_distance = drot.symmetric_entropic_affinity(squares(X), xi)
        by_gram = drot.symmetric_entropic_affinity(-2 * X @ X.T, xi)
        np.testing.assert_allclose(by_gram.plan, by_distance.plan, atol=1e-7)
        np.testing.assert_allclose(by_gram.gamma, by_distance.gamma, rtol=1e-5, atol=1e-6)
        shift = by_distance.lam.numpy() - 2 * (X**2).sum(axis=1)
        np.testing.assert_allclose(by_gram.lam, shift, atol=1e-5)


# ----------------------------------------------------------------------------- prp-sea-kl
KL_CASES = [(0, 8, 3.0), (1, 10, 2.0), (1, 10, 6.0)]


@pytest.mark.parametrize(("seed", "n", "xi"), KL_CASES)
def test_prp_sea_kl(seed, n, xi):
    """Up to the smallest gamma the projection of exp(-C/sigma) is the plan; well above, not."""
    C = squares(np.random.default_rng(seed).normal(size=(n, 4)))
    affinity = drot.symmetric_entropic_affinity(C, xi)
    least = float(affinity.gamma.min())
    assert least > 0
    for share in (0.3, 0.95):
        conic = oracles.symmetric_entropic_projection(-C / (share * least), xi)
        np.testing.assert_allclose(affinity.plan, conic.plan, atol=1e-6)
        # the projection's own prices, raised by sigma, are gamma
        prices = share * least * (1 + conic.entropy)
        np.testing.assert_allclose(affinity.gamma, prices, atol=1e-4 * C.max())
    other = oracles.symmetric_entropic_projection(-C / (3 * least), xi).plan
    assert np.abs(affinity.plan.numpy() - other).max() > 1e-3


@pytest.mark.parametrize(("seed", "n", "xi"), KL_CASES)
def test_prp_sea_kl_identity(seed, n, xi):
    """Cost minus priced entropy exceeds that of the plan by the priced divergence of each row."""
    C = squares(np.random.default_rng(seed).normal(size=(n, 4)))
    affinity = drot.symmetric_entropic_affinity(C, xi, tol=1e-12)
    P, gamma = affinity.plan.numpy(), affinity.gamma.numpy()

    def priced(Q: np.ndarray) -> float:
        return (Q * C).sum() - gamma @ drot.row_entropy(Q).numpy()

    for k in range(3):
        R = np.random.default_rng(k).normal(size=(n, n))
        Q = oracles.sinkhorn(R + R.T, 1.0)
        Q = (Q + Q.T) / 2
        apart = sum(
            g * float(drot.kl_divergence(q, p)) for g, q, p in zip(gamma, Q, P, strict=True)
        )
        assert priced(Q) == pytest.approx(priced(P) + apart, rel=1e-9)


def test_prp_sea_kl_slack():
    """With a slack row no sigma gives the plan; the projections tend to it with sigma."""
    plan = drot.symmetric_entropic_affinity(LINE, 1.5).plan.numpy()
    errors = []
    for sigma in (0.3, 0.1, 0.03, 0.01):
        found = oracles.symmetric_entropic_projection(-LINE / sigma, 1.5).plan
        errors.append(np.abs(found - plan).max())
        assert row_perplexities(found)[1] > 1.5 + 1e-3
    assert errors[-1] > 1e-4  # not there yet
    assert (np.diff(errors) < 0).all() and errors[-1] < 2e-3
