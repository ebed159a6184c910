"""Chapter 0: what entropy, perplexity and KL mean, and the mass they carry."""

from __future__ import annotations

import math

import drot
import numpy as np
import oracles
import pytest
import torch


def simplex(rng: np.random.Generator, m: int, alpha: float) -> np.ndarray:
    """A random point of the simplex; a small alpha lies near its corners."""
    return rng.dirichlet(np.full(m, alpha))


@pytest.mark.parametrize("m", [2, 3, 10, 200])
@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 50.0])
def test_lem_perplexity_bounds(m, alpha):
    """1 <= H(p) <= log m + 1, strictly unless p is a Dirac or uniform; perplexity is exp(H - 1)."""
    rng = np.random.default_rng(m)
    for _ in range(20):
        p = simplex(rng, m, alpha)
        entropy = float(drot.row_entropy(p))
        by_hand = -sum(x * (math.log(x) - 1) for x in p if x > 0)
        assert entropy == pytest.approx(by_hand, abs=1e-12)
        assert 1 - 1e-12 <= entropy <= math.log(m) + 1 + 1e-12
        # the two gaps are sums of non-negative terms that vanish at a Dirac and at the uniform
        to_uniform = sum(x * math.log(x * m) - x + 1 / m for x in p if x > 0)
        to_uniform += sum(1 / m for x in p if x == 0)
        assert math.log(m) + 1 - entropy == pytest.approx(to_uniform, abs=1e-12)
        if p.max() < 1 - 1e-6:
            assert entropy > 1 + 1e-6
        if np.abs(p - 1 / m).max() > 1e-3:
            assert entropy < math.log(m) + 1 - 1e-7
        assert float(drot.row_perplexity(p)) == pytest.approx(math.exp(entropy - 1), rel=1e-12)


@pytest.mark.parametrize("m", [2, 3, 10, 200])
def test_lem_perplexity_bounds_equality(m):
    """A Dirac has H = 1 exactly; the uniform on k entries has perplexity k, for every k."""
    assert drot.row_entropy(np.eye(m)).tolist() == [1.0] * m
    for k in range(1, m + 1):
        row = np.zeros(m)
        row[np.random.default_rng(k).permutation(m)[:k]] = 1 / k
        assert float(drot.row_perplexity(row)) == pytest.approx(k, rel=1e-12)
        assert float(drot.row_entropy(row)) == pytest.approx(math.log(k) + 1, rel=1e-12)


def test_lem_perplexity_bounds_mass():
    """H is Shannon's entropy plus the mass: a row of mass a has H(a p) = a H(p) - a log a."""
    rng = np.random.default_rng(0)
    for a in (0.1, 1.0, 3.0):
        p = simplex(rng, 7, 1.0)
        expected = a * float(drot.row_entropy(p)) - a * math.log(a)
        assert float(drot.row_entropy(a * p)) == pytest.approx(expected, abs=1e-12)


def naive_kl(P: np.ndarray, Q: np.ndarray) -> float:
    return float(np.sum(P * np.log(P / Q) - P + Q))


@pytest.mark.parametrize("seed", range(5))
def test_lem_kl_mass(seed):
    """Generalised KL = papers' KL + mass of Q; it is >= 0, and n KL(P/n | Q/n) at mass n."""
    rng = np.random.default_rng(seed)
    P, Q = rng.gamma(1.0, size=(2, 6, 6))  # two masses that differ
    papers = float(drot.kl_divergence(P, Q, convention="papers"))
    general = float(drot.kl_divergence(P, Q))
    assert general == pytest.approx(naive_kl(P, Q), rel=1e-12)
    assert papers == pytest.approx(float(np.sum(P * (np.log(P / Q) - 1))), rel=1e-12)
    assert general == pytest.approx(papers + Q.sum(), rel=1e-12)
    assert general > 0
    # equality holds at P = Q only, and near it KL is a sum of squares over 2 Q
    assert float(drot.kl_divergence(Q, Q)) == pytest.approx(0, abs=1e-12)
    step = 1e-5 * rng.normal(size=Q.shape) * Q
    assert float(drot.kl_divergence(Q + step, Q)) == pytest.approx(
        np.sum(step**2 / (2 * Q)), rel=1e-2
    )
    # homogeneous, for every a and whatever the two masses are
    for a in (1e-3, 6.0, 400.0):
        inner = float(drot.kl_divergence(P / a, Q / a))
        assert general == pytest.approx(a * inner, rel=1e-11)


def test_lem_kl_mass_papers_sign():
    """The papers' KL is not a divergence: KL(P | P) = -mass, and doubling Q lowers it."""
    P = np.random.default_rng(0).gamma(1.0, size=(4, 4))
    assert float(drot.kl_divergence(P, P, convention="papers")) == pytest.approx(-P.sum())
    twice = float(drot.kl_divergence(P, 2 * P, convention="papers"))
    assert twice < float(drot.kl_divergence(P, P, convention="papers"))


def test_lem_kl_mass_minimiser():
    """Both conventions have the same minimiser in P: they differ by a constant of Q."""
    rng = np.random.default_rng(1)
    Q = rng.gamma(1.0, size=(5, 5))
    ends = rng.gamma(1.0, size=(2, 5, 5))
    line = [(1 - t) * ends[0] + t * ends[1] for t in np.linspace(0, 1, 41)]
    by = {
        name: [float(drot.kl_divergence(P, Q, convention=name)) for P in line]
        for name in ("generalized", "papers")
    }
    assert np.ptp(np.subtract(by["generalized"], by["papers"])) < 1e-12
    assert np.argmin(by["generalized"]) == np.argmin(by["papers"])


def test_lem_kl_mass_zeros():
    """0 log (0 / q) = 0, for q = 0 too; mass of P where Q has none costs infinity."""
    P, Q = torch.tensor([[0.0, 1.0]]).double(), torch.tensor([[0.5, 0.5]]).double()
    assert float(drot.kl_divergence(P, P / 2)) == pytest.approx(math.log(2) - 0.5)
    assert float(drot.kl_divergence(P, Q)) == pytest.approx(math.log(2))
    assert math.isinf(float(drot.kl_divergence(Q, P)))


def test_lem_kl_mass_conic():
    """The value that the conic solver reports for a KL projection is the generalised KL."""
    log_kernel = -np.random.default_rng(2).gamma(2.0, size=(5, 5))
    solution = oracles.doubly_stochastic_projection(log_kernel)
    ours = float(drot.kl_divergence(solution.plan.clip(0), np.exp(log_kernel)))
    assert ours == pytest.approx(solution.value, abs=1e-7)
