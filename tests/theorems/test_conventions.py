"""Notation and conventions: what entropy, perplexity and KL mean, and the mass they carry."""

import math

import drot
import numpy as np
import pytest
import torch


@pytest.mark.parametrize("m", [2, 30])
@pytest.mark.parametrize("alpha", [0.05, 1.0, 50.0])
def test_lem_perplexity_bounds(m, alpha):
    """1 <= H(p) <= log m + 1, strictly unless p is a Dirac or uniform; perplexity is exp(H - 1)."""
    for p in np.random.default_rng(m).dirichlet(np.full(m, alpha), size=20):
        entropy = float(drot.row_entropy(p))
        by_hand = -sum(x * (math.log(x) - 1) for x in p if x > 0)
        assert entropy == pytest.approx(by_hand, abs=1e-12)
        assert 1 - 1e-12 <= entropy <= math.log(m) + 1 + 1e-12
        if p.max() < 1 - 1e-6:
            assert entropy > 1 + 1e-6
        if np.abs(p - 1 / m).max() > 1e-3:
            assert entropy < math.log(m) + 1 - 1e-7
        assert float(drot.row_perplexity(p)) == pytest.approx(math.exp(entropy - 1), rel=1e-12)


def test_lem_perplexity_bounds_equality():
    """A Dirac has H = 1 exactly; the uniform on k entries has perplexity k, for every k; and H is
    Shannon's entropy plus the mass: a row of mass a has H(a p) = a H(p) - a log a."""
    assert drot.row_entropy(np.eye(10)).tolist() == [1.0] * 10
    assert drot.row_entropy(np.ones((2, 1))).tolist() == [1.0] * 2
    for k in range(1, 11):
        row = np.random.default_rng(k).permutation(np.repeat([1 / k, 0], [k, 10 - k]))
        assert float(drot.row_perplexity(row)) == pytest.approx(k, rel=1e-12)
    p = np.random.default_rng(0).dirichlet(np.ones(7))
    for a in (0.1, 1.0, 3.0):
        expected = a * float(drot.row_entropy(p)) - a * math.log(a)
        assert float(drot.row_entropy(a * p)) == pytest.approx(expected, abs=1e-12)


def kl(P, Q, **how) -> float:
    return float(drot.kl_divergence(P, Q, **how))


@pytest.mark.parametrize("seed", range(2))
def test_lem_kl_mass(seed):
    """Generalised KL = papers' KL + mass of Q; it is >= 0, and n KL(P/n | Q/n) at mass n."""
    rng = np.random.default_rng(seed)
    P, Q = rng.gamma(1.0, size=(2, 6, 6))  # two masses that differ
    papers, general = kl(P, Q, convention="papers"), kl(P, Q)
    assert general == pytest.approx(float(np.sum(P * np.log(P / Q) - P + Q)), rel=1e-12)
    assert general == pytest.approx(papers + Q.sum(), rel=1e-12) and general > 0
    # equality holds at P = Q only, and near it KL is a sum of squares over 2 Q
    assert kl(Q, Q) == pytest.approx(0, abs=1e-12)
    step = 1e-5 * rng.normal(size=Q.shape) * Q
    assert kl(Q + step, Q) == pytest.approx(np.sum(step**2 / (2 * Q)), rel=1e-2)
    for a in (1e-3, 6.0, 400.0):  # homogeneous, whatever the two masses are
        assert general == pytest.approx(a * kl(P / a, Q / a), rel=1e-11)
    # the papers' is not a divergence: minus the mass at P = Q, and lower where Q is doubled
    assert kl(P, P, convention="papers") == pytest.approx(-P.sum())
    assert kl(P, 2 * P, convention="papers") < -P.sum()


def test_lem_kl_mass_zeros():
    """0 log (0 / q) = 0, for q = 0 too; mass of P where Q has none costs infinity."""
    P, Q = torch.tensor([[0.0, 1.0]]).double(), torch.tensor([[0.5, 0.5]]).double()
    assert kl(P, P / 2) == pytest.approx(math.log(2) - 0.5)
    assert kl(P, Q) == pytest.approx(math.log(2))
    assert math.isinf(kl(Q, P))
