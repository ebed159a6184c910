"""Chapter 1: transport, held against POT, conic solvers and brute force over permutations."""

import itertools
import math
from functools import partial

import cvxpy as cp
import drot
import numpy as np
import ot
import pytest
from numpy.testing import assert_allclose
from oracles import jacobian, scaled
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import cdist

cost_of = partial(cdist, metric="sqeuclidean")


def masses(rng, size: int) -> np.ndarray:
    """Positive weights of sum 1."""
    weights = rng.uniform(0.2, 1.0, size)
    return weights / weights.sum()


def some_plan(rng, h: np.ndarray, h_bar: np.ndarray) -> np.ndarray:
    """A plan that is neither a corner nor the product: half way to a cheapest one."""
    return (ot.emd(h, h_bar, rng.random((len(h), len(h_bar)))) + np.outer(h, h_bar)) / 2


def entropy(P: np.ndarray) -> float:
    return float(drot.row_entropy(P).sum())


def divergence(P: np.ndarray, Q: np.ndarray) -> float:
    """Generalised KL by its definition."""
    some = P > 0
    return float((P[some] * np.log(P[some] / Q[some])).sum() - P.sum() + Q.sum())


def scale_rows(P: np.ndarray, h: np.ndarray) -> np.ndarray:
    return P * (h / P.sum(axis=1))[:, None]


def entropic(C: np.ndarray, h: np.ndarray, h_bar: np.ndarray, nu: float) -> np.ndarray:
    """P_nu by scaling rows and columns."""
    return scaled(np.exp(-(C - C.min()) / nu), h, h_bar)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [2, 5])
def test_thm_birkhoff(ties, n):
    """The linear program over doubly stochastic matrices has the value of the best permutation."""
    rng = np.random.default_rng(n)
    C = rng.integers(-1, 2, (n, n)).astype(float) if ties else rng.normal(size=(n, n))
    best = min(C[range(n), s].sum() for s in itertools.permutations(range(n)))
    P = cp.Variable((n, n), nonneg=True)
    sums = [cp.sum(P, axis=axis) == 1 for axis in (0, 1)]
    cp.Problem(cp.Minimize(cp.sum(cp.multiply(P, C))), sums).solve(solver=cp.CLARABEL)
    assert (P.value * C).sum() == pytest.approx(best, abs=1e-6)
    assert (ot.emd(np.ones(n), np.ones(n), C) * C).sum() == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_thm_birkhoff_mean_of_permutations(seed):
    """Take away permutations, each as far as it goes: nothing is left after finitely many."""
    rng, n = np.random.default_rng(seed), 7
    weights = rng.dirichlet(np.ones(5))
    P = sum(w * np.eye(n)[rng.permutation(n)] for w in weights)
    P = 0.5 * P + 0.5 * ot.sinkhorn(np.ones(n), np.ones(n), rng.random((n, n)), 0.5, stopThr=1e-14)
    rest, total, steps = P.copy(), 0.0, 0
    while rest.max() > 1e-9:
        forbidden = np.where(rest > 1e-10, 0.0, 1.0)
        rows, columns = linear_sum_assignment(forbidden)
        assert forbidden[rows, columns].sum() == 0, "no permutation where the rest is positive"
        share = rest[rows, columns].min()
        rest[rows, columns] -= share
        total, steps = total + share, steps + 1
    assert total == pytest.approx(1, abs=1e-7) and 2 < steps <= (n - 1) ** 2 + 1


def bill(C: np.ndarray, h: np.ndarray, h_bar: np.ndarray) -> float:
    """The largest h.f + h_bar.f_bar with f_i + f_bar_j <= C_ij: a linear program of its own."""
    n, m = C.shape
    pairs = np.hstack([np.kron(np.eye(n), np.ones((m, 1))), np.kron(np.ones((n, 1)), np.eye(m))])
    found = linprog(-np.concatenate([h, h_bar]), pairs, C.ravel(), bounds=(None, None))
    return -float(found.fun)


def shortest(C: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The prices of the proof: lengths of shortest walks, by Bellman and Ford."""
    to_source, to_target = np.zeros(len(C)), np.zeros(C.shape[1])
    for _ in range(sum(C.shape) + 1):
        to_target = np.minimum(to_target, (to_source[:, None] + C).min(axis=0))
        back = np.where(P > 1e-12, to_target - C, np.inf)
        to_source = np.minimum(to_source, back.min(axis=1))
    return -to_source, to_target


@pytest.mark.parametrize("seed", range(4))
def test_thm_kantorovich_duality(seed):
    """Cheapest plan and best prices have one value; the proof's prices are such, and slack."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 9, 2)
    C = rng.normal(size=(n, m)) * 3  # costs of either sign
    h, h_bar = masses(rng, n), masses(rng, m)
    if seed % 2:  # a source with nothing
        h = np.append(h[:-1] + h[-1] / (n - 1), 0.0)
    P = ot.emd(h, h_bar, C)
    cost = (P * C).sum()
    assert bill(C, h, h_bar) == pytest.approx(cost, abs=1e-9)
    f, f_bar = shortest(C, P)
    slack = C - f[:, None] - f_bar
    assert slack.min() >= -1e-9
    assert h @ f + h_bar @ f_bar == pytest.approx(cost, abs=1e-9)
    assert abs(slack[P > 1e-12]).max() < 1e-9
    # another plan: its cost exceeds the bill by what it sends where prices fall short
    other = some_plan(rng, h, h_bar)
    assert (other * C).sum() - cost == pytest.approx((other * slack).sum(), abs=1e-9)
    assert (other * slack).sum() > 1e-6


def wasserstein(one: tuple, two: tuple) -> float:
    """W_2 between weighted clouds (points, weights), by POT."""
    C = cost_of(one[0], two[0])
    return math.sqrt(max((ot.emd(one[1], two[1], C) * C).sum(), 0.0))


@pytest.mark.parametrize("seed", range(2))
def test_prp_wasserstein_metric(seed):
    """Symmetry, and the triangle inequality with the glued plan between its two sides."""
    rng = np.random.default_rng(seed)
    first, second, third = ((rng.normal(size=(k, 3)), masses(rng, k)) for k in (4, 6, 5))
    assert wasserstein(first, second) == pytest.approx(wasserstein(second, first), abs=1e-12)
    P, Q = (ot.emd(a[1], b[1], cost_of(a[0], b[0])) for a, b in ((first, second), (second, third)))
    glued = P @ np.diag(1 / second[1]) @ Q
    assert_allclose(glued.sum(axis=1), first[1], atol=1e-12)
    assert_allclose(glued.sum(axis=0), third[1], atol=1e-12)
    through = math.sqrt((glued * cost_of(first[0], third[0])).sum())
    assert wasserstein(first, third) <= through + 1e-12
    assert through <= wasserstein(first, second) + wasserstein(second, third) + 1e-12


def test_prp_wasserstein_metric_zero():
    """Same mass at every place, however it is listed; not squared, the cost is no distance."""
    X, h = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), np.array([0.5, 0.3, 0.2])
    listed = np.vstack([X[[1, 0, 2]], X[[0]]]), np.array([0.3, 0.1, 0.2, 0.4])
    assert wasserstein((X, h), listed) == pytest.approx(0, abs=1e-9)
    assert wasserstein((X, h), (X, h[[1, 0, 2]])) > 0.1
    at = [(np.array([[float(x)]]), np.ones(1)) for x in range(3)]
    assert wasserstein(at[0], at[2]) ** 2 > sum(wasserstein(at[k], at[k + 1]) ** 2 for k in (0, 1))


@pytest.mark.parametrize("seed", range(2))
def test_prp_kmeans_transport(seed):
    """Over all partitions: k-means with weights and the nearest cloud of k points agree."""
    rng, n, k = np.random.default_rng(seed), 6, 3
    X, h = rng.normal(size=(n, 2)), masses(rng, 6)
    values, clouds = [], []
    for labels in itertools.product(range(k), repeat=n):
        T = np.eye(k)[list(labels)] * h[:, None]
        weights = T.sum(axis=0)
        Z = (T.T @ X)[weights > 0] / weights[weights > 0, None]
        values.append(float(h @ cost_of(X, Z).min(axis=1)))
        clouds.append((Z, weights[weights > 0]))
    best = int(np.argmin(values))
    assert wasserstein((X, h), clouds[best]) ** 2 == pytest.approx(values[best], abs=1e-12)
    for cloud, value in list(zip(clouds, values, strict=True))[::37]:
        assert wasserstein((X, h), cloud) ** 2 >= value - 1e-12
    for _ in range(50):  # other places, other weights
        Z = clouds[best][0] + 0.3 * rng.normal(size=clouds[best][0].shape)
        assert wasserstein((X, h), (Z, masses(rng, len(Z)))) ** 2 > values[best]
    # in the nearest cloud mass goes to a nearest point only, and points are means
    Z, weights = clouds[best]
    P = ot.emd(h, weights, cost_of(X, Z))
    assert ((P > 1e-12).argmax(axis=1) == cost_of(X, Z).argmin(axis=1)).all()
    assert ((P > 1e-12).sum(axis=1) == 1).all()
    assert_allclose(P.T @ X / weights[:, None], Z, atol=1e-12)


@pytest.mark.parametrize("nu", [0.15, 5.0])
def test_thm_entropic_unique(nu):
    """The plan of a conic solver is positive, has the form, and is found by scaling."""
    rng = np.random.default_rng(0)
    C, h, h_bar = rng.random((4, 6)), masses(rng, 4), masses(rng, 6)
    P = cp.Variable(C.shape)
    value = cp.sum(cp.multiply(P, C)) - nu * cp.sum(cp.entr(P) + P)
    sums = [cp.sum(P, axis=1) == h, cp.sum(P, axis=0) == h_bar]
    cp.Problem(cp.Minimize(value), sums).solve(solver=cp.CLARABEL)
    plan = entropic(C, h, h_bar, nu)
    assert_allclose(plan, P.value, atol=1e-5)
    assert plan.min() > 0
    M = C + nu * np.log(plan)  # f_i + f_bar_j
    assert_allclose(M + M[0, 0], M[:, :1] + M[:1], atol=1e-12)
    # any other plan is worse by nu times its divergence
    for _ in range(5):
        Q = some_plan(rng, h, h_bar)
        worse = ((Q - plan) * C).sum() - nu * (entropy(Q) - entropy(plan))
        assert worse == pytest.approx(nu * divergence(Q, plan), abs=1e-12) and worse > 0


def test_thm_entropic_unique_gradient():
    """The minimum has the plan for its gradient in C."""
    rng = np.random.default_rng(5)
    C, h, h_bar, nu = rng.random((3, 4)), masses(rng, 3), masses(rng, 4), 0.3

    def least(c: np.ndarray) -> np.ndarray:
        P = entropic(c.reshape(3, 4), h, h_bar, nu)
        return np.array([(P * c.reshape(3, 4)).sum() - nu * entropy(P)])

    gradient = jacobian(least, C.ravel(), 1e-5)[0].reshape(3, 4)
    assert_allclose(gradient, entropic(C, h, h_bar, nu), atol=1e-8)


def test_prp_sinkhorn_scaling():
    """Each scaling lowers the divergence by what its marginal lacked; the end is POT's plan."""
    rng, nu = np.random.default_rng(0), 0.2
    C, h, h_bar = rng.random((5, 7)), 3 * masses(rng, 5), 3 * masses(rng, 7)
    end = entropic(C, h, h_bar, nu)
    assert_allclose(end, 3 * ot.sinkhorn(h / 3, h_bar / 3, C, nu, stopThr=1e-14), atol=1e-9)
    P = np.exp(-C / nu)
    for _ in range(6):
        for turn, weights in ((False, h), (True, h_bar)):
            before, lacked = divergence(end, P), (P.T if turn else P).sum(axis=1)
            P = scale_rows(P.T, weights).T if turn else scale_rows(P, weights)
            assert before - divergence(end, P) == pytest.approx(
                divergence(weights, lacked), abs=1e-12
            )
    assert divergence(end, P) < 1e-3 * divergence(end, np.exp(-C / nu))
