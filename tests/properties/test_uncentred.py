"""CO-Optimal Transport of a table and of the table plus a number: one problem."""

from __future__ import annotations

import drot
import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

RNG = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 2], 20)
TABLE = 5 * RNG.normal(size=(3, 6))[LABELS] + RNG.normal(size=(60, 6))
STAIRS = np.repeat([[0.0, 0.0], [3.0, 2.0]], 4, axis=0) + 1e-3 * RNG.normal(size=(8, 2))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("dtype", "offset", "share"),
    [("f8", 1e6, 1e-8), ("f8", -1e8, 1e-6), ("f4", 300.0, 1e-5), ("f4", 1e4, 1e-4)],
)
def test_an_offset_changes_nothing(dtype, offset, share):
    """Labels and objective stay, and Z moves along, without a warning of POT."""
    plain = drot.coot_clustering(TABLE, 3)
    found = drot.coot_clustering((TABLE + offset).astype(dtype), 3)
    assert found.converged and adjusted_rand_score(LABELS, found.labels) == 1
    assert found.objective == pytest.approx(plain.objective, rel=share)
    rounding = 4 * np.finfo(dtype).eps * abs(offset)
    here, there = (Z.double().flatten().sort().values for Z in (plain.Z, found.Z))  # in any order
    torch.testing.assert_close(there, here + offset, rtol=0, atol=rounding)
    torch.testing.assert_close(found.structure, found.Z @ found.Z.T)


@pytest.mark.parametrize(
    ("X", "offset", "k", "share"), [(TABLE, 1e7, 3, 1e-6), (STAIRS, [0, 1e6], 2, 1e-5)]
)
def test_objective_of_all_columns_is_that_of_k_means(X, offset, k, share):
    """The error within the clusters, also where columns are too far apart for a common shift."""
    found = drot.coot_clustering(X + np.array(offset), k, n_components=X.shape[1])
    means = KMeans(k, n_init=10, random_state=0).fit(X)
    assert found.objective == pytest.approx(means.inertia_ / X.size, rel=share)
    assert found.converged and adjusted_rand_score(means.labels_, found.labels) == 1
    assert all(b <= a for a, b in zip(found.trace, found.trace[1:], strict=False))
