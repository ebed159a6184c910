"""Spectral methods and neighbourhood scores against scikit-learn.

| scikit-learn                        | ours                       | how they compare           |
| ----------------------------------- | -------------------------- | -------------------------- |
| PCA, KernelPCA                      | pca, kernel_pca            | equal up to sign           |
| ClassicalMDS, as KernelPCA of -C/2  | classical_mds              | equal up to sign           |
| Isomap                              | isomap                     | equal up to sign           |
| SpectralEmbedding (normalised)      | laplacian_eigenmaps        | up to scale, per column    |
| LocallyLinearEmbedding              | locally_linear_embedding   | up to scale, per column    |
| trustworthiness                     | trustworthiness            | equal                      |
"""

from __future__ import annotations

import drot
import numpy as np
import pytest
from drot import spectral
from drot.metrics import continuity, trustworthiness
from sklearn import manifold
from sklearn.decomposition import PCA, KernelPCA


def roll(n: int = 250) -> np.ndarray:
    rng = np.random.default_rng(0)
    t, h = rng.uniform(0, 4, size=n), rng.uniform(0, 2, size=n)
    return np.stack([(1 + t) * np.cos(t), (1 + t) * np.sin(t), h], axis=1)


@pytest.fixture(scope="module")
def digits():
    return drot.datasets.digits(300).X


def up_to_sign(A, B, atol: float) -> None:
    A, B = np.asarray(A), np.asarray(B)
    signs = np.sign((A * B).sum(axis=0))
    np.testing.assert_allclose(A, B * signs, atol=atol)


def up_to_scale(A, B, atol: float) -> None:
    """Columns at unit length, up to sign."""
    A, B = np.asarray(A), np.asarray(B)
    up_to_sign(A / np.linalg.norm(A, axis=0), B / np.linalg.norm(B, axis=0), atol)


def test_pca(digits):
    model = PCA(5, svd_solver="full")
    up_to_sign(spectral.pca(digits, 5).Z, model.fit_transform(digits), 1e-8)
    variances = spectral.pca(digits, 5).eigenvalues / (len(digits) - 1)
    np.testing.assert_allclose(variances, model.explained_variance_)


def test_kernel_pca_and_scaling(digits):
    kernel = np.exp(-drot.sqeuclidean(digits).dense().numpy() / 500)
    theirs = KernelPCA(4, kernel="precomputed").fit_transform(kernel)
    up_to_sign(spectral.kernel_pca(kernel, 4).Z, theirs, 1e-8)
    theirs = KernelPCA(4, kernel="precomputed").fit_transform(
        -drot.sqeuclidean(digits).dense().numpy() / 2
    )
    up_to_sign(spectral.classical_mds(drot.sqeuclidean(digits), 4).Z, theirs, 1e-7)


@pytest.mark.parametrize("k", [6, 12])
def test_isomap(k):
    X = roll()
    theirs = manifold.Isomap(n_neighbors=k, n_components=2).fit_transform(X)
    up_to_sign(spectral.isomap(X, 2, n_neighbors=k).Z, theirs, 1e-7)


def test_laplacian_eigenmaps():
    X = roll(150)
    W = np.exp(-drot.sqeuclidean(X).dense().numpy())
    theirs = manifold.SpectralEmbedding(
        3, affinity="precomputed", eigen_solver="arpack", random_state=0
    ).fit_transform(W)
    up_to_scale(spectral.laplacian_eigenmaps(W, 3).Z, theirs, 1e-5)


@pytest.mark.parametrize("k", [8, 15])
def test_locally_linear_embedding(k):
    X = roll()
    theirs = manifold.LocallyLinearEmbedding(
        n_neighbors=k, n_components=2, eigen_solver="dense"
    ).fit_transform(X)
    up_to_scale(spectral.locally_linear_embedding(X, 2, n_neighbors=k).Z, theirs, 1e-4)


@pytest.mark.parametrize("K", [1, 5, 30, 149])
def test_trustworthiness(K, digits):
    # pixels are whole numbers, so distances tie, and scikit-learn breaks ties as its sort does
    digits = digits.numpy() + 1e-3 * np.random.default_rng(0).normal(size=digits.shape)
    Z = spectral.pca(digits).Z
    theirs = manifold.trustworthiness(digits, Z, n_neighbors=K)
    assert trustworthiness(digits, Z, K) == pytest.approx(theirs, abs=1e-12)
    backwards = manifold.trustworthiness(Z, digits, n_neighbors=K)
    assert continuity(digits, Z, K) == pytest.approx(backwards, abs=1e-12)
