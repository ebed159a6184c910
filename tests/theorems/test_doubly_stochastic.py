"""Chapter 3: symmetric transport with one entropy, Sinkhorn's speed, what the plans are."""

import math

import drot
import numpy as np
import oracles
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from plans import cloud_cost, graph_cost

COSTS = {"cloud": cloud_cost(1, 16), "graph": graph_cost(2, 10, 1.0)}
RANDOM = np.random.default_rng(0).normal(size=(9, 9))
each_cost = pytest.mark.parametrize("name", COSTS)


def at_bandwidth(C, nu: float, tol: float = 1e-12, **how):
    return drot.doubly_stochastic_affinity(C, bandwidth=nu, tol=tol, **how)


def total_entropy(plan) -> float:
    return float(drot.row_entropy(plan).sum())


@each_cost
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_prp_eot(name, share):
    """P^ds solves (EOT): plan, objective and multipliers to 1e-6, total entropy saturated."""
    C = COSTS[name]
    n = len(C)
    xi = 1 + share * (n - 1)
    affinity = drot.doubly_stochastic_affinity(C, perplexity=xi)
    plan, f = affinity.plan.numpy(), affinity.f.numpy()
    conic = oracles.symmetric_transport(C, n * (math.log(xi) + 1))
    assert (plan * C).sum() == pytest.approx(conic.value, abs=1e-6)
    assert_allclose(plan, conic.plan, atol=1e-6)
    assert affinity.nu == pytest.approx(conic.entropy, rel=1e-5)
    assert_allclose(f, conic.row_sum / 2, atol=1e-5 * C.max())
    # feasible, of the stated form, and saturated
    assert_allclose(plan.sum(axis=1), 1, atol=1e-8)
    assert_allclose(plan, plan.T, rtol=1e-12)
    assert_allclose(plan, np.exp((f[:, None] + f - C) / affinity.nu), rtol=1e-11)
    assert total_entropy(plan) == pytest.approx(n * (math.log(xi) + 1), abs=1e-7)
    again = drot.doubly_stochastic_affinity(C, perplexity=xi, damping=0.3)
    assert_allclose(again.f, f, atol=1e-6 * C.max())


@pytest.mark.parametrize("theta", [0.5, 2 / 3, 1.0])
def test_thm_sinkhorn_rate(theta):
    """The Jacobian of the damped map at its fixed point is I - theta (I + P)."""
    C, nu = cloud_cost(6, 9), 1.3
    affinity = at_bandwidth(C, nu, tol=1e-13)
    f = affinity.f.numpy()

    def step(f: np.ndarray) -> np.ndarray:
        """The map that the solver iterates, written again from the statement."""
        return (1 - theta) * f - theta * nu * np.log(np.exp((f[None] - C) / nu).sum(axis=1))

    assert_allclose(step(f), f, atol=1e-12)
    stated = np.eye(9) - theta * (np.eye(9) + affinity.plan.numpy())
    assert_allclose(oracles.jacobian(step, f, 1e-5), stated, atol=1e-9)
    # theta = 1 maps f* + c to f* - c, so it never settles from a generic start: refused
    if theta == 1:
        assert_allclose(step(f + 0.7), f - 0.7, atol=1e-11)
        for damping in (0.0, 1.0):
            with pytest.raises(ValueError, match="damping must lie strictly between 0 and 1"):
                at_bandwidth(C, nu, damping=damping)


@pytest.mark.parametrize("nu", [0.3, 10.0])
@pytest.mark.parametrize("theta", [0.3, 2 / 3, 0.9])
def test_thm_sinkhorn_rate_measured(theta, nu):
    """The solver's residual falls by max |1 - theta (1 + mu)|: 1/3 exactly at theta = 2/3."""
    affinity = at_bandwidth(cloud_cost(7, 12), nu, damping=theta)
    mu = np.linalg.eigvalsh(affinity.plan.numpy())
    predicted = np.abs(1 - theta * (1 + mu)).max()
    assert predicted <= max(abs(1 - theta), abs(1 - 2 * theta)) + 1e-12
    if theta == 2 / 3:
        assert predicted == pytest.approx(1 / 3, abs=1e-12)
    # modes of nearly the same rate fade slowly, so the measure may lie a little below
    tail = [r for r in affinity.trace if 1e-11 < r < 1e-4]
    assert len(tail) >= 6, "too few iterations to read a rate"
    assert 0.85 * predicted < (tail[-1] / tail[0]) ** (1 / (len(tail) - 1)) < 1.02 * predicted


@each_cost
def test_prp_entropy_monotone(name):
    """Total entropy and cost increase strictly, continuously, between the stated limits."""
    C = COSTS[name]
    n, smallest = len(C), C[C > 0].min()
    bandwidths = np.geomspace(smallest / 5, 10 * C.max(), 13)
    plans = [at_bandwidth(C, nu).plan.numpy() for nu in bandwidths]
    entropies = np.diff([total_entropy(plan) for plan in plans])
    costs = np.diff([(plan * C).sum() for plan in plans])
    assert (entropies > 0).all() and (costs > 0).all()
    # the proof's two inequalities: between two bandwidths, cost moves as nu times entropy does
    price = costs / entropies
    assert (bandwidths[:-1] < price).all() and (price < bandwidths[1:]).all()
    here, near, nearer = (
        at_bandwidth(C, bandwidths[6] * (1 + t), tol=1e-13).plan for t in (0, 1e-4, 1e-6)
    )
    jumps = [float((plan - here).abs().max()) for plan in (near, nearer)]
    assert jumps[1] == pytest.approx(1e-2 * jumps[0], rel=1e-2)
    hot = at_bandwidth(C, 1e6 * C.max())
    assert total_entropy(hot.plan) == pytest.approx(n * (math.log(n) + 1), abs=1e-9)
    assert_allclose(hot.plan, 1 / n, rtol=1e-5)
    cold = at_bandwidth(C, smallest / 50)
    assert_allclose(cold.plan, np.eye(n), atol=1e-12)


def test_prp_entropy_monotone_constant():
    """For C = a_i + a_j the plan is uniform at every nu; added to any cost it changes f only."""
    a = np.random.default_rng(0).normal(size=7)
    C, D = a[:, None] + a, cloud_cost(0, 7)
    for nu in (0.3, 1.0, 5.0):
        assert_allclose(at_bandwidth(C, nu).plan, 1 / 7, rtol=1e-10)
    plain, moved = (at_bandwidth(M, 1.0) for M in (D, D + C))
    assert_allclose(moved.plan, plain.plan, atol=1e-11)
    assert_allclose(moved.f, plain.f + torch.tensor(a), atol=1e-10)


@pytest.mark.parametrize("C", [*COSTS.values(), RANDOM + RANDOM.T])
@pytest.mark.parametrize("nu", [0.9, 3.0])
def test_lem_ds_kl(C, nu):
    """P^ds is the KL projection of exp(-C/nu) on P 1 = 1, P^T 1 = 1; symmetry comes by itself."""
    conic, kernel = oracles.doubly_stochastic_projection(-C / nu), np.exp(-C / nu)
    affinity = drot.doubly_stochastic_affinity(C, bandwidth=nu)
    plan = affinity.plan.numpy()
    assert affinity.nu == nu
    assert_allclose(plan, conic.plan, atol=1e-6)
    assert drot.kl_divergence(plan, kernel) == pytest.approx(conic.value, abs=1e-6)
    # Pythagoras: KL(Q|K) = KL(Q|P) + KL(P|K) for every doubly stochastic Q
    Q = oracles.sinkhorn(np.random.default_rng(1).normal(size=C.shape), 1.0)
    split = drot.kl_divergence(Q, plan) + drot.kl_divergence(plan, kernel)
    assert drot.kl_divergence(Q, kernel) == pytest.approx(split, rel=1e-7)


@each_cost
def test_lem_ds_laplacian(name):
    """With unit row sums the three Laplacians are I - P, with a spectrum in [0, 2]."""
    C = COSTS[name]
    P = at_bandwidth(C, float(np.median(C)), tol=1e-13).plan.numpy()
    degrees = P.sum(axis=1)
    for scale in (1, degrees[:, None], np.sqrt(np.outer(degrees, degrees))):
        assert_allclose((np.diag(degrees) - P) / scale, np.eye(len(C)) - P, atol=1e-12)
    values = np.linalg.eigvalsh(np.eye(len(C)) - P)
    assert values[0] == pytest.approx(0, abs=1e-12)
    assert values[1] > 1e-6  # one component: every pair has mass
    assert values[-1] < (2 if name == "graph" else 1 + 1e-12)  # a kernel may be indefinite


@pytest.mark.parametrize("k", [1, 3, 7])
def test_lem_self_tuning_scale(k):
    """exp(-C_ij/(sigma_i sigma_j)), sigma_i^2 the k-th cost: of the formula are its symmetries, for
    any unit and order; exp(-s_i/s_j) at k."""
    C = cloud_cost(k, 15)
    affinity = drot.self_tuning_affinity(C, n_neighbors=k)
    P, sigma = affinity.plan.numpy(), affinity.sigma.numpy()
    by_hand = np.sqrt([np.sort(np.delete(row, i))[k - 1] for i, row in enumerate(C)])
    assert_allclose(sigma, by_hand, rtol=1e-14)
    assert_allclose(P, np.exp(-C / np.outer(sigma, sigma)), rtol=1e-12)
    assert_array_equal(np.diag(P), 1.0)
    nearest = np.argsort(C + np.diag(np.full(15, np.inf)))[:, k - 1]
    assert_allclose(P[np.arange(15), nearest], np.exp(-sigma / sigma[nearest]), rtol=1e-12)
    # Zelnik-Manor and Perona set the diagonal to 0; nothing else changes
    dropped = drot.self_tuning_affinity(C, n_neighbors=k, diagonal="drop").plan
    assert_array_equal(dropped, P - np.eye(15))
