"""Spectral methods and neighbourhood scores against scikit-learn.

| scikit-learn                        | ours                       | how they compare           |
| ----------------------------------- | -------------------------- | -------------------------- |
| PCA, KernelPCA                      | pca, kernel_pca            | equal up to sign           |
| ClassicalMDS, as KernelPCA of -C/2  | classical_mds              | equal up to sign           |
| Isomap                              | isomap                     | equal up to sign           |
| SpectralEmbedding (normalised)      | laplacian_eigenmaps        | up to scale, per column    |
| LocallyLinearEmbedding              | locally_linear_embedding   | up to scale, per column    |
"""

from functools import partial

import drot
import numpy as np
import pytest
from drot import spectral
from sklearn import manifold
from sklearn.decomposition import PCA, KernelPCA

DIGITS = drot.datasets.digits(300).X.numpy()
COSTS = drot.sqeuclidean(DIGITS).dense().numpy()
t, h = np.random.default_rng(0).uniform(0, 4, size=(2, 250))
ROLL = np.stack([(1 + t) * np.cos(t), (1 + t) * np.sin(t), h / 2], axis=1)
kernels = partial(KernelPCA, kernel="precomputed")
arpack = {"affinity": "precomputed", "eigen_solver": "arpack", "random_state": 0}


@pytest.mark.parametrize(
    ("ours", "given", "theirs", "read", "atol"),
    [
        (spectral.pca, DIGITS, partial(PCA, svd_solver="full"), DIGITS, 1e-8),
        (spectral.kernel_pca, np.exp(-COSTS / 500), kernels, np.exp(-COSTS / 500), 1e-8),
        (spectral.classical_mds, COSTS, kernels, -COSTS / 2, 1e-7),
        (partial(spectral.isomap, n_neighbors=6), ROLL,
         lambda q: manifold.Isomap(n_neighbors=6, n_components=q), ROLL, 1e-7),
        (spectral.laplacian_eigenmaps, np.exp(-COSTS / 500),
         partial(manifold.SpectralEmbedding, **arpack), np.exp(-COSTS / 500), 1e-5),
        (partial(spectral.locally_linear_embedding, n_neighbors=15), ROLL,
         lambda q: manifold.LocallyLinearEmbedding(
             n_neighbors=15, n_components=q, eigen_solver="dense"), ROLL, 1e-4),
    ],
    ids=["pca", "kernel", "scaling", "isomap", "eigenmaps", "locally linear"],
)  # fmt: skip
def test_methods(ours, given, theirs, read, atol):
    """Column by column, up to sign; the last two up to scale too."""
    A, B = ours(given, 2).Z.numpy(), theirs(2).fit_transform(read)
    if atol >= 1e-5:
        A, B = A / np.linalg.norm(A, axis=0), B / np.linalg.norm(B, axis=0)
    np.testing.assert_allclose(
        A, B * np.sign((A * B).sum(axis=0)), rtol=0, atol=atol * abs(B).max()
    )
