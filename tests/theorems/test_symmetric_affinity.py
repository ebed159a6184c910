"""Chapter 4: one symmetric plan, its slack rows, its dual, its Hessian, three points in full."""

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
from numpy.testing import assert_allclose, assert_array_equal
from oracles import row_perplexities
from plans import cloud_cost, graph_cost, in_tiles, squares


def star_cost(leaves: int) -> np.ndarray:
    """A centre, row 0, at cost 1 from leaves that are at cost 4 from each other."""
    C = 4 * (1 - np.eye(leaves + 1))
    C[0, 1:] = C[1:, 0] = 1.0
    return C


LINE = squares([-1, 0, 1])
COSTS = {
    "cloud": cloud_cost(1, 18),
    "line": LINE,
    "triples": squares([-1.0, 0, 1, 9, 10, 11]),
    "graph": graph_cost(5, 12, 4.0),
    "star": star_cost(6),
    "simplex": squares(np.concatenate([np.zeros((1, 5)), np.eye(5) - 1 / 5])),
    "self-costs": cloud_cost(3, 9) + np.add.outer(np.arange(9.0), np.arange(9.0)),
}
each_cost = pytest.mark.parametrize("name", COSTS)
each_share = pytest.mark.parametrize("share", [0.02, 0.5, 0.97])  # of the way from 1 to n


@functools.cache
def solved(name: str, share: float):
    """A cost, a perplexity, the conic solution and the package's."""
    C = COSTS[name]
    xi = 1 + share * (len(C) - 1)
    conic = oracles.symmetric_entropic_transport(C, xi)
    return C, xi, conic, drot.symmetric_entropic_affinity(C, perplexity=xi)


def dual_of(C, xi, block: int | None = None) -> Dual:
    """The dual function over a matrix of zero diagonal, or over tiles computed each time."""
    return Dual(in_tiles(C, block), torch.tensor(np.log(np.broadcast_to(xi, len(C))) + 1))


def random_duals(seed: int, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positive gamma over a decade and a half, and lam that keep row sums moderate."""
    rng = np.random.default_rng(seed)
    gamma = 0.3 * np.median(C) * 10 ** rng.uniform(-1, 0.5, size=len(C))
    return gamma, -gamma * rng.uniform(0.2, 2.0, size=len(C))


@each_cost
@each_share
def test_prp_sea_unique(name, share):
    """The solver's plan is the conic one, feasible, and of the same cost."""
    C, xi, conic, affinity = solved(name, share)
    plan = affinity.plan.numpy()
    assert (plan * C).sum() == pytest.approx(conic.value, abs=1e-6)
    assert_allclose(plan, conic.plan, atol=1e-6)
    assert (plan >= 0).all()
    assert_array_equal(plan, plan.T)
    assert_allclose(plan.sum(axis=1), 1, atol=1e-8)
    assert (row_perplexities(plan) >= xi * (1 - 1e-8)).all()


@pytest.mark.parametrize("seed", range(2))
def test_prp_sea_unique_perplexity_by_row(seed):
    """A perplexity for each row, far apart from row to row: the conic plan again."""
    rng = np.random.default_rng(seed)
    for C in (cloud_cost(seed, 11), graph_cost(seed, 9, 4.0)):
        xi = rng.uniform(1.1, len(C) - 0.2, size=len(C))
        affinity = drot.symmetric_entropic_affinity(C, perplexity=xi)
        assert_allclose(affinity.plan, oracles.symmetric_entropic_transport(C, xi).plan, atol=1e-6)
        reached, held = row_perplexities(affinity.plan), ~affinity.slack.numpy()
        assert (reached >= xi * (1 - 1e-8)).all()
        assert_allclose(reached[held], xi[held], rtol=1e-8)


def test_err_sea_unique():
    """Symmetric with zero diagonal is not enough: two plans of cost 0 where costs vanish."""
    C = np.zeros((4, 4))
    C[2, 3] = C[3, 2] = 1.0
    for partner in ([2, 3, 0, 1], [3, 2, 1, 0]):
        plan = (np.eye(4) + np.eye(4)[partner]) / 2
        assert (row_perplexities(plan) > 1.5).all() and (plan * C).sum() == 0
    with pytest.raises(ValueError, match="points 2 and 3 must cost more than each on its own"):
        drot.symmetric_entropic_affinity(C, perplexity=1.5)


@each_cost
@each_share
def test_prp_sea_saturation(name, share):
    """Two slack rows share no mass and some row is saturated; the solver's slack rows are those."""
    _, xi, conic, affinity = solved(name, share)
    slack = row_perplexities(conic.plan) > xi * (1 + 1e-4)
    assert not slack.all()
    between = conic.plan[slack][:, slack]
    assert_allclose(between, np.diag(np.diag(between)), atol=1e-6)
    assert_array_equal(affinity.slack[slack], True)
    assert_array_equal(affinity.slack, affinity.gamma == 0)
    plan, saturated = affinity.plan.numpy(), ~affinity.slack.numpy()
    between = plan[~saturated][:, ~saturated]
    assert_array_equal(between, np.diag(np.diag(between)))  # 0 exactly
    assert_allclose(row_perplexities(plan)[saturated], xi, rtol=1e-8)
    assert_array_equal(affinity.free[saturated], 0)
    assert_allclose(affinity.free[~saturated], np.diag(plan)[~saturated], rtol=1e-13)
    assert_allclose(affinity.perplexity, row_perplexities(plan), rtol=1e-9)


def excess(weights, xi: float) -> float:
    return oracles.log_perplexity(np.array(weights) / sum(weights)) - math.log(xi)


def three_points(C: np.ndarray, xi: float) -> tuple[np.ndarray, int | None, np.ndarray | None]:
    """The statement: plan, slack row or None, and gamma where no row is slack."""
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        i, j, k = order
        rho = C[j, k] / (C[i, j] + C[i, k])
        if rho > 1:
            found = scipy.optimize.root_scalar(
                lambda q, rho=rho: excess([1, q, q**rho], xi), bracket=(0.0, 1.0), xtol=1e-15
            )
            q, far = found.root, found.root**rho
            plan = np.empty((3, 3))
            plan[np.ix_(order, order)] = [[1 + far - q, q, q], [q, 1, far], [q, far, 1]]
            return plan / (1 + q + far), i, None
    a = scipy.optimize.brentq(lambda a: excess([1 - 2 * a, a, a], xi), 0.0, 1 / 3, xtol=1e-15)
    kappa = math.log((1 - 2 * a) / a)
    gamma = [(C[i, i - 1] + C[i, i - 2] - C[i - 1, i - 2]) / kappa for i in range(3)]
    return np.full((3, 3), a) + (1 - 3 * a) * np.eye(3), None, np.array(gamma)


@pytest.mark.parametrize("seed", [2, 3, 8, 11])  # of the last two no corner is obtuse
def test_thm_sea_three(seed):
    """A corner is slack exactly if it is obtuse, whatever xi; the plan has the stated form."""
    X = np.random.default_rng(seed).normal(size=(3, 2))
    corner = np.array([(X[i - 1] - X[i]) @ (X[i - 2] - X[i]) for i in range(3)])
    for xi in (1.05, 1.8, 2.95):
        C = squares(X)
        plan, slack, gamma = three_points(C, xi)
        affinity = drot.symmetric_entropic_affinity(C, perplexity=xi)
        assert_allclose(affinity.plan, plan, atol=1e-8)
        assert_array_equal(affinity.slack, corner < 0)
        assert_array_equal(affinity.slack, np.arange(3) == slack)
        assert_allclose(oracles.symmetric_entropic_transport(C, xi).plan, plan, atol=1e-6)
        if slack is None:
            assert_allclose(affinity.gamma, gamma, rtol=1e-5)
            kappa = float(affinity.log_plan[0, 0] - affinity.log_plan[0, 1])
            assert_allclose(affinity.gamma, 2 * corner / kappa, rtol=1e-5)
        else:
            assert affinity.perplexity[slack] > xi + 1e-6


@pytest.mark.parametrize("rho", [0.7, 2.0, 2.02, 2.2, 20.0])
@pytest.mark.parametrize("skew", [0.0, 0.3])
def test_prp_sea_three_psd(rho, skew):
    """The sign of the smallest eigenvalue is that of 1 + q^rho - 2 q: never negative up to rho = 2,
    where Euclidean triangles end; above, it fails near perplexity 3."""
    C, signs = np.zeros((3, 3)), []
    C[[0, 0, 1], [1, 2, 2]] = C[[1, 2, 2], [0, 0, 1]] = 1 + skew, 1 - skew, 2 * rho
    for xi in (1.05, 1.5, 2.2, 2.9, 2.99, 2.9999):
        plan = drot.symmetric_entropic_affinity(C, perplexity=xi).plan.numpy()
        wanted = three_points(C, xi)[0]
        assert_allclose(plan, wanted, atol=1e-6)
        if xi < 2.95:  # beyond, the conic solver loses digits
            conic = oracles.symmetric_entropic_transport(C / C.max(), xi).plan
            assert_allclose(conic, wanted, atol=1e-6)
        least, q = np.linalg.eigvalsh(plan)[0], plan[0, 1] / plan[1, 1]
        if rho > 1:  # row 0 is slack
            assert abs(least) < 1e-6 or (least > 0) == (1 + q**rho > 2 * q)
        else:
            assert 0 < least == pytest.approx(1 - 3 * plan[0, 1], abs=1e-6)
        signs.append(least > -1e-9)
    assert all(signs) == (rho <= 2)


@each_cost
@each_share
def test_prp_sea_dual(name, share):
    """No duality gap; the formula of the plan; the multipliers of the conic program."""
    C, xi, conic, affinity = solved(name, share)
    plan, gamma, lam = affinity.plan.numpy(), affinity.gamma.numpy(), affinity.lam.numpy()
    value = (plan * C).sum()
    assert affinity.dual_value == pytest.approx(value, rel=1e-8, abs=1e-8 * C.max())
    recomputed = oracles.symmetric_dual(C, xi, gamma, lam)
    assert recomputed == pytest.approx(affinity.dual_value, rel=1e-11, abs=1e-11 * C.max())
    assert (gamma >= 0).all()
    # the formula wherever a price is positive, and what is said of the rest
    s, u = gamma[:, None] + gamma, lam[:, None] + lam - 2 * C
    paid = s > 0
    assert_allclose(plan[paid], np.exp(u[paid] / s[paid]), rtol=1e-11)
    assert_array_equal(plan[~paid & ~np.eye(len(C), dtype=bool)], 0)
    for i in np.flatnonzero(gamma == 0):
        assert lam[i] <= C[i, i]
        left = 1 - np.delete(plan[i], i).sum() if lam[i] == C[i, i] else 0
        assert plan[i, i] == pytest.approx(left, abs=1e-9 if left else 0)
    # complementary slackness, entry by entry
    assert_allclose(gamma * (row_perplexities(plan) - xi), 0, atol=1e-7 * C.max())
    assert_allclose(gamma, conic.entropy, atol=1e-5 * C.max())
    assert_allclose(lam, conic.row_sum, atol=1e-5 * C.max())


@pytest.mark.parametrize(
    ("C", "xi"),
    [(COSTS["cloud"], 10.0), (squares(np.random.default_rng(8).normal(size=(3, 2))), 2)],
)
def test_cor_sea_finite(C, xi):
    """Positive prices at which all rows are met: P is P^se, and q is nowhere larger."""
    affinity = drot.symmetric_entropic_affinity(C, perplexity=xi, tol=1e-11)
    gamma, lam = affinity.gamma.numpy(), affinity.lam.numpy()
    assert (gamma > 0).all()
    at = np.concatenate([gamma, lam])
    assert_allclose(oracles.symmetric_dual_gradient(C, xi, at), 0, atol=1e-9)
    P = np.exp((lam[:, None] + lam - 2 * C) / (gamma[:, None] + gamma))
    assert_allclose(P, oracles.symmetric_entropic_transport(C, xi).plan, atol=1e-6)
    best, rng = oracles.symmetric_dual(C, xi, gamma, lam), np.random.default_rng(0)
    for size, face in itertools.product((1e-2, 0.3, 3.0), ([], [0], [0, 1])):
        other = np.maximum(gamma * (1 + size * rng.normal(size=len(C))), 0)
        moved = lam * (1 + size * rng.normal(size=len(C)))
        other[face], moved[face] = 0.0, -abs(moved[face])  # faces of gamma >= 0 are no better
        assert oracles.symmetric_dual(C, xi, other, moved) < best


def explicit_hessian(C: np.ndarray, gamma: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Minus the Hessian, (2n, 2n), as stated; pairs without a price have no curvature."""
    s = gamma[:, None] + gamma
    paid = s > 0
    s = np.where(paid, s, 1.0)
    log_p = np.where(paid, (lam[:, None] + lam - 2 * C) / s, 0.0)
    A = np.where(paid, np.exp(log_p) / s, 0.0)
    B, D = -log_p * A, log_p**2 * A
    return np.block([[np.diag(M.sum(axis=1)) + M for M in row] for row in ((D, B), (B, A))])


@pytest.mark.parametrize("block", [None, 1, 4])
def test_prp_sea_hessian(block):
    """Value, entropies and row sums anywhere, not only at the optimum; products with unit vectors
    are the columns of the stated matrix, and of differences."""
    C, xi = cloud_cost(0, 9), np.linspace(2, 7, 9)
    gamma, lam = random_duals(0, C)
    at, dual = np.concatenate([gamma, lam]), dual_of(C, xi, block)
    point = dual.at(*map(torch.tensor, (gamma, lam)), torch.zeros(9, dtype=torch.bool))
    assert point.value == pytest.approx(oracles.symmetric_dual(C, xi, gamma, lam), rel=1e-12)
    slope = oracles.symmetric_dual_gradient(C, xi, at)
    assert_allclose(point.row_sum, 1 - slope[9:], rtol=1e-12)
    assert_allclose(point.entropy, np.log(xi) + 1 - slope[:9], atol=1e-12)
    by_value = oracles.jacobian(
        lambda x: np.array([oracles.symmetric_dual(C, xi, *np.split(x, 2))]), at, 1e-6
    )
    assert_allclose(by_value[0], slope, atol=1e-7)
    units = torch.eye(18).double().view(18, 2, 9)
    found = np.stack([dual.hessian_product(point, unit).flatten() for unit in units], axis=1)
    scale = np.abs(found).max()
    stated = explicit_hessian(C, gamma, lam)
    assert_allclose(found, stated, rtol=1e-10, atol=1e-13 * scale)
    measured = -oracles.jacobian(lambda x: oracles.symmetric_dual_gradient(C, xi, x), at, 1e-6)
    assert_allclose(found, measured, atol=1e-7 * scale)
    assert np.linalg.eigvalsh(found)[0] > -1e-12 * scale  # q is concave
    # the diagonals and row sums that the preconditioner reads
    own = np.stack([M.diagonal() for M in (stated[:9, :9], stated[:9, 9:], stated[9:, 9:])])
    assert_allclose(point.sums + point.diagonal, own, rtol=1e-10, atol=1e-14)
    assert (dual.products, dual.passes) == (18, 1)


def test_prp_sea_hessian_domain(monkeypatch):
    """A row without a price cannot be given lam > 0, where q is minus infinity."""
    C = cloud_cost(5, 9)
    gamma, lam = random_duals(5, C)
    run = _Newton(dual_of(C, 3.0), torch.tensor(gamma), torch.tensor(lam), 1e-9)
    gamma[0], lam[0] = 0.0, 1e-9 * lam[0]
    run.state = run.dual.at(torch.tensor(gamma), torch.tensor(lam), run.pinned)
    step = torch.zeros(2, 9, dtype=torch.float64)
    step[1, 0] = 1e-5
    assert 0 < float(run.state.row_sum[0]) < 1  # so q would increase
    monkeypatch.setattr(run, "_clipped", lambda damping: step)
    assert run._step() and float(run.state.lam[0]) == 0.0


def test_rows_are_sorted():
    """A bare row that lacks mass keeps what its sum leaves, and has a price where it lacks entropy:
    the least one, at which the diagonal stays."""
    C = cloud_cost(5, 9)
    gamma, lam = random_duals(5, C)
    gamma[0] = lam[0] = 0.0
    run = _Newton(dual_of(C, [8.9] + [3.0] * 8), torch.tensor(gamma), torch.tensor(lam), 1e-9)
    assert float(run.state.row_sum[0]) < 0.9
    run.small[0] = 1.0
    run._sort_rows()
    assert run.pinned.tolist() == [True] + [False] * 8 and float(run.state.gamma[0]) == 0
    left = float(run.state.free[0])
    assert left == pytest.approx(1 - float(np.asarray(run.state.row_sum)[0] - left))
    run._sort_rows()
    assert not run.pinned.any() and float(run.state.gamma[0]) == pytest.approx(1e-2)
    assert float(run.state.lam[0]) == pytest.approx(1e-2 * math.log(left))


@pytest.mark.parametrize("name", ["line", "graph", "star"])
@pytest.mark.parametrize("share", [0.3, 0.97])
def test_lem_sea_shift(name, share):
    """a_i + a_j moves lam by 2a and nothing else; a factor t multiplies gamma and lam."""
    C, rng = COSTS[name], np.random.default_rng(0)
    xi, top = 1 + share * (len(C) - 1), C.max()
    plain = drot.symmetric_entropic_affinity(C, perplexity=xi, tol=1e-11)
    shifts = [rng.uniform(0, 0.4, size=len(C)) * C[C > 0].min()]
    if name == "line":  # costs that tie only by such a shift
        shifts.append(np.array([0.0, 0.5, -0.5]))
    if share < 0.5:  # most rows then find another point cheaper than themselves
        shifts += [size * top * rng.normal(size=len(C)) for size in (0.5, 5.0)]
    for a in shifts:
        moved = drot.symmetric_entropic_affinity(C + np.add.outer(a, a), perplexity=xi, tol=1e-11)
        assert_allclose(moved.plan, plain.plan, atol=1e-8)
        assert_allclose(moved.gamma, plain.gamma, atol=1e-6 * top)
        assert_allclose(moved.lam, plain.lam.numpy() + 2 * a, atol=1e-6 * top)
        assert_array_equal(moved.slack, plain.slack)
        assert_allclose(moved.free, plain.free, atol=1e-8)
        assert moved.dual_value == pytest.approx(plain.dual_value + 2 * a.sum(), abs=1e-7 * top)
    for t in (0.3, 700.0):
        scaled = drot.symmetric_entropic_affinity(t * C, perplexity=xi, tol=1e-11)
        assert_allclose(scaled.plan, plain.plan, atol=1e-8)
        assert_allclose(scaled.gamma / t, plain.gamma, atol=1e-6 * top)
        assert_allclose(scaled.lam / t, plain.lam, atol=1e-6 * top)


@pytest.mark.parametrize(("seed", "n", "xi"), [(0, 8, 3.0), (1, 10, 6.0)])
def test_prp_sea_kl(seed, n, xi):
    """Up to the smallest gamma the projection of exp(-C/sigma) is the plan; well above, not."""
    C = squares(np.random.default_rng(seed).normal(size=(n, 4)))
    affinity = drot.symmetric_entropic_affinity(C, perplexity=xi, tol=1e-12)
    P, gamma = affinity.plan.numpy(), affinity.gamma.numpy()
    least = gamma.min()
    assert least > 0
    for share in (0.3, 0.95):
        conic = oracles.symmetric_entropic_projection(-C / (share * least), xi)
        assert_allclose(P, conic.plan, atol=1e-6)
        # the projection's own prices, raised by sigma, are gamma
        assert_allclose(gamma, share * least * (1 + conic.entropy), atol=1e-4 * C.max())
    other = oracles.symmetric_entropic_projection(-C / (3 * least), xi).plan
    assert np.abs(P - other).max() > 1e-3
