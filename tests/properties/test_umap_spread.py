"""The unit of UMAP's embedding: at another spread it is the same picture, enlarged."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from drot import UMAP, umap_curve
from scipy.special import rel_entr

X = np.random.default_rng(0).normal(size=(36, 4)) + 5 * np.repeat(np.eye(4)[:3], 12, axis=0)
FIT = {"n_neighbors": 6, "random_state": 0}


def fit(spread: float, **options) -> UMAP:
    return UMAP(spread=spread, min_dist=0.125 * spread, **{**FIT, **options}).fit(X)


# powers of 2 scale without rounding
@pytest.mark.parametrize("power", [-30, 7])
@pytest.mark.parametrize("init", ["spectral", "pca", "random"])
def test_spread_is_the_unit_of_the_embedding(power, init):
    """The same bits in units of the spread: iterations, divergence and all."""
    spread = 2.0**power
    one, other = fit(1.0, init=init), fit(spread, init=init)
    np.testing.assert_array_equal(other.embedding_, spread * one.embedding_)
    assert other.kl_divergence_ == one.kl_divergence_ and other.n_iter_ == one.n_iter_
    assert other.result_.residual == one.result_.residual


def test_divergence_of_any_spread():
    """The sum over pairs with the curve of the spread itself, guarded in its unit."""
    for spread in (0.01, 30.0):
        model = fit(spread)
        a, b = umap_curve(0.125 * spread, spread)
        pairs = ~np.eye(len(X), dtype=bool)
        d2 = ((model.embedding_[:, None] - model.embedding_) ** 2).sum(axis=-1)
        P, Q = model.affinity_[pairs], (1 / (1 + a * (d2 + 1e-3 * spread**2) ** b))[pairs]
        kl = rel_entr(P, Q) + rel_entr(1 - P, 1 - Q)
        assert model.kl_divergence_ == pytest.approx(kl.sum(), rel=1e-9)


def test_given_starts_are_in_units_of_the_embedding():
    """Positions and earlier results are read as what they are, and left as they were."""
    Z = np.random.default_rng(3).normal(size=(36, 2))
    one, other = fit(1.0, init=Z), fit(0.25, init=0.25 * Z)
    np.testing.assert_array_equal(other.embedding_, 0.25 * one.embedding_)
    part = fit(0.25, init=0.25 * Z, max_iter=400, tol=0.1).result_
    kept = part.Z.clone()
    rest = fit(0.25, init=part, tol=0.1)
    assert rest.result_.n_iter == 0 and torch.equal(part.Z, kept)
    np.testing.assert_allclose(rest.embedding_, kept, rtol=1e-12)
    whole = fit(1.0, init=replace(part, Z=4 * part.Z))
    np.testing.assert_array_equal(fit(0.25, init=part).embedding_, 0.25 * whole.embedding_)


@pytest.mark.parametrize("ratio", [0.0, 0.125, 1.0])
def test_curve_scales(ratio):
    """b does not depend on the unit, and a d^2b is the same number, however small the spread."""
    a, b = umap_curve(ratio, 1.0)
    for spread in (1e-70, 1e-8, 10.0, 1e70):
        one, other = umap_curve(ratio * spread, spread)
        assert other == pytest.approx(b, rel=1e-6)
        assert np.log(one) + 2 * other * np.log(spread) == pytest.approx(np.log(a), abs=1e-5)
    for spread in (1e-300, 1e300):  # where a leaves the range of floats
        with pytest.raises(ValueError, match=r"spread=1e[+-]300 is out of range: a of the curve"):
            umap_curve(0.0, spread)
