"""Chapter 2: the entropic affinity is an optimal transport plan, and what follows."""

import math

import drot
import numpy as np
import oracles
import pytest
import scipy.special
import torch
from drot.affinities.bandwidths import moments
from numpy.testing import assert_allclose, assert_array_equal
from plans import cloud_cost


def tied_cost(seed: int, n: int) -> np.ndarray:
    """A cost whose row i has 1 + i % 3 entries tied for the cheapest."""
    C = np.random.default_rng(seed).uniform(0.1, 1, size=(n, n))
    for i in range(n):
        C[i, [(i + d) % n for d in range(1 + i % 3)]] = 0.0
    return C


COSTS = {
    "cloud": cloud_cost(1, 16),
    "random": np.random.default_rng(2).normal(size=(10, 10)),  # both signs, not symmetric
    "ties": tied_cost(3, 9),
}
each_cost = pytest.mark.parametrize("name", COSTS)


def softmax_rows(C, eps) -> np.ndarray:
    return scipy.special.softmax(-C / np.broadcast_to(eps, len(C))[:, None], axis=1)


@pytest.mark.parametrize("ties", [1, 2, 5])
def test_thm_ea_root(ties):
    """log perplexity of softmax(-c/eps) climbs strictly in log eps, from log k to log m."""
    rng, m = np.random.default_rng(ties), 12
    row = np.concatenate([np.zeros(ties), rng.uniform(0.5, 3.0, m - ties)])
    grid = [
        oracles.log_perplexity(oracles.softmax(row, math.exp(t)))
        for t in (-8, *np.linspace(-2.5, 6, 100), 14)
    ]
    assert np.all(np.diff(grid) > 0)
    assert grid[0] == pytest.approx(math.log(ties), abs=1e-12)
    assert grid[-1] == pytest.approx(math.log(m), abs=1e-11)
    # so every xi in (k, m) has exactly one eps, and it is the one returned
    C = np.stack([rng.permutation(row) for _ in range(m)])
    for xi in np.linspace(ties + 1e-3, m - 1e-3, 5):
        affinity = drot.entropic_affinity(C, perplexity=xi)
        assert affinity.converged and affinity.residual <= 1e-9
        expected = oracles.bandwidth_by_bisection(row, xi)
        assert_allclose(affinity.eps, expected, rtol=1e-5)
        assert_allclose(affinity.plan, softmax_rows(C, expected), atol=1e-8)
        assert_allclose(affinity.perplexity, xi, rtol=2e-9)
    # and no other xi has one
    for xi in (ties - 0.5, ties, m, m + 1):
        with pytest.raises(ValueError, match="out of reach: row 0"):
            drot.entropic_affinity(C, perplexity=xi)


@pytest.mark.parametrize("t", [-1.5, 0.0, 3.0])
def test_thm_ea_root_derivatives(t):
    """dg/dt = Var(c)/eps^2 and d2g/dt2 = K3/eps^3 - 2 Var/eps^2, as the solver uses them."""
    row = np.random.default_rng(7).uniform(0, 3, 12)
    row -= row.min()

    def g(s: float) -> float:
        return oracles.log_perplexity(oracles.softmax(row, math.exp(s)))

    found = torch.cat(moments(torch.tensor(row)[None], torch.tensor([t]).double())).tolist()
    slope = (g(t + 1e-5) - g(t - 1e-5)) / 2e-5
    curvature = (g(t + 1e-3) - 2 * g(t) + g(t - 1e-3)) / 1e-6
    eps = math.exp(t)
    log_z = math.log(np.exp(-row / eps).sum())
    assert found == pytest.approx([log_z, g(t), slope, curvature], rel=1e-4, abs=1e-6)
    p = oracles.softmax(row, eps)
    second, third = (p @ (row - p @ row) ** k / eps**k for k in (2, 3))
    assert found == pytest.approx([log_z, g(t), second, third - 2 * second], rel=1e-9, abs=1e-12)


@each_cost
@pytest.mark.parametrize("share", [0.1, 0.4, 0.9])
def test_prp_ea_ot(name, share):
    """The entropic affinity solves (EA as OT): plan and objective to 1e-6, entropies tight."""
    C = COSTS[name]
    most_ties = int((C - C.min(axis=1, keepdims=True) == 0).sum(axis=1).max())
    xi = most_ties + share * (len(C) - most_ties)
    affinity = drot.entropic_affinity(C, perplexity=xi)
    plan = affinity.plan.numpy()
    conic = oracles.entropic_transport(C, xi)
    assert (plan * C).sum() == pytest.approx(conic.value, abs=1e-6)
    assert_allclose(plan, conic.plan, atol=1e-6)
    assert_allclose(drot.row_entropy(plan), math.log(xi) + 1, atol=1e-8)  # all saturated
    assert_allclose(plan.sum(axis=1), 1, atol=1e-12)


def test_err_ties():
    """Row (0, 0, 0, 1) at xi = 2 is not constant, yet has many optima and no softmax row."""
    row = np.array([[0.0, 0.0, 0.0, 1.0]])
    optima = np.array([[0.5, 0.5, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [0.6, 0.2, 0.2, 0]])
    assert (drot.row_entropy(optima) >= math.log(2) + 1 - 1e-12).all()
    assert_allclose(optima @ row[0], 0.0)  # all of them cost nothing: the least
    coldest = oracles.softmax(row[0], math.exp(-20))  # softmax rows start at the number of ties
    assert oracles.log_perplexity(coldest) > math.log(3) - 1e-9
    with pytest.raises(ValueError, match="more than 3, as 3 of its points are equally near"):
        drot.entropic_affinity(np.tile(row, (4, 1)), perplexity=2.0)


@each_cost
def test_prp_bandwidth_dual(name):
    """eps and lam are the multipliers of entropy and row sum, and the dual value is optimal."""
    C = COSTS[name]
    xi = 0.5 * len(C)
    affinity = drot.entropic_affinity(C, perplexity=xi)
    eps, lam = affinity.eps.numpy(), affinity.lam.numpy()
    conic = oracles.entropic_transport(C, xi)
    assert_allclose(eps, conic.entropy, atol=1e-5 * np.abs(C).max())
    assert_allclose(lam, conic.row_sum, atol=1e-5 * np.abs(C).max())
    # stationarity of the Lagrangian
    stated = C + eps[:, None] * affinity.log_plan.numpy()
    assert_allclose(stated, np.broadcast_to(lam[:, None], C.shape), atol=1e-9)


@pytest.mark.parametrize("where", ["below", "at", "between", "above"])
def test_lem_ea_kl(where):
    """The KL projection of exp(-C/sigma) has rows softmax(-C_i / max(eps_i, sigma))."""
    C, xi = cloud_cost(8, 12), 4.0
    affinity = drot.entropic_affinity(C, perplexity=xi)
    eps = affinity.eps.numpy()
    sigma = {
        "below": 0.5 * eps.min(),
        "at": eps.min(),
        "between": float(np.median(eps)) * 1.01,
        "above": 1.5 * eps.max(),
    }[where]
    rows = softmax_rows(C, np.maximum(eps, sigma))
    conic = oracles.entropic_projection(-C / sigma, xi)
    # at min eps one multiplier vanishes together with its slack: the solver loses half its digits
    assert_allclose(conic.plan, rows, atol=1e-5 if where == "at" else 1e-6)
    kl = float(drot.kl_divergence(rows, np.exp(-C / sigma)))
    assert kl == pytest.approx(conic.value, abs=1e-6)
    # it is the entropic affinity exactly while sigma <= min eps
    same = np.abs(rows - affinity.plan.numpy()).max() < 1e-8
    assert same == (where in ("below", "at"))


@pytest.mark.parametrize("seed", range(2))
def test_prp_euclid_sym(seed):
    """(P + P^T)/2 is the nearest symmetric matrix, and neither doubly stochastic nor saturated;
    it is nearest in KL(P | Q) as well, and in KL(Q | P) geometric means are."""
    P = drot.entropic_affinity(cloud_cost(seed, 10), perplexity=4.0).plan.numpy()
    S, geometric = drot.symmetrize(P).numpy(), np.sqrt(P * P.T)
    assert_array_equal(S, (P + P.T) / 2)
    for kind, nearest in (("frobenius", S), ("reverse", S), ("kl", geometric)):
        assert_allclose(oracles.nearest_symmetric(P, kind), nearest, atol=1e-6)
    assert np.abs(S - geometric).max() > 1e-3
    # row sums become (1 + column sum) / 2
    assert_allclose(S.sum(axis=1), (1 + P.sum(axis=0)) / 2, rtol=1e-12)
    assert np.abs(S.sum(axis=1) - 1).max() > 1e-2  # an entropic affinity is not doubly stochastic
    # nor are the entropies kept
    assert np.abs(drot.row_entropy(S).numpy() - (math.log(4.0) + 1)).max() > 1e-2


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_cor_two_projections(factor):
    """KL onto H_xi, then l2 onto S, by a solver: the symmetrised P^e while sigma <= min eps."""
    C, xi = cloud_cost(8, 10), 4.0
    affinity = drot.entropic_affinity(C, perplexity=xi)
    sigma = factor * float(affinity.eps.min())
    first = oracles.entropic_projection(-C / sigma, xi).plan
    second = oracles.nearest_symmetric(first, "frobenius")
    gap = np.abs(second - drot.symmetrize(affinity).numpy()).max()
    assert gap < 2e-5 if factor <= 1 else gap > 1e-3
    if factor > 1:  # it shows on the diagonal, where symmetrising changes nothing
        off = np.abs(np.diagonal(second) - np.diagonal(affinity.plan.numpy()))
        wide = affinity.eps.numpy() < sigma
        assert (off[wide] > 1e-4).all() and (off[~wide] < 2e-5).all()


def test_lem_ea_equivariance():
    """Shift a row, scale the cost, permute the points: P and the duals move as stated."""
    rng, every = np.random.default_rng(9), np.arange(14)
    C, shift, order = cloud_cost(9, 14), rng.normal(size=14), rng.permutation(14)

    def solve(C):
        found = drot.entropic_affinity(C, perplexity=5.0, tol=1e-12)
        return found.plan.numpy(), found.eps.numpy(), found.lam.numpy()

    base = solve(C)
    changes = [(C + shift[:, None], 1, shift, every), (C[order][:, order], 1, 0, order)]
    changes += [(a * C, a, 0, every) for a in (1e-4, 0.3, 1e4)]
    for changed, a, b, to in changes:
        plan, eps, lam = solve(changed)
        assert_allclose(plan, base[0][to][:, to], atol=1e-11)
        assert_allclose(eps, a * base[1][to], rtol=1e-10)
        assert_allclose(lam, a * base[2][to] + b, rtol=1e-9, atol=1e-9 * min(a, 1))
