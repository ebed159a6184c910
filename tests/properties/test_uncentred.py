"""CO-Optimal Transport of a table and of the table plus a number: one problem."""

from __future__ import annotations

import warnings

import drot
import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    return 5 * rng.normal(size=(3, 6))[y] + rng.normal(size=(60, 6)), y


@pytest.mark.parametrize(
    ("dtype", "offset", "share"),
    [("f8", 1e6, 1e-8), ("f8", -1e8, 1e-6), ("f4", 300.0, 1e-5), ("f4", 1e4, 1e-4)],
)
def test_an_offset_changes_nothing(dtype, offset, share):
    """Labels and objective stay, and Z moves along, without a warning of POT."""
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = drot.coot_clustering(X, 3)
        found = drot.coot_clustering((X + offset).astype(dtype), 3)
    assert found.converged and adjusted_rand_score(y, found.labels) == 1
    assert found.objective == pytest.approx(plain.objective, rel=share)
    rounding = 4 * np.finfo(dtype).eps * abs(offset)
    here, there = (Z.double().flatten().sort().values for Z in (plain.Z, found.Z))  # in any order
    torch.testing.assert_close(there, here + offset, rtol=0, atol=rounding)
    torch.testing.assert_close(found.structure, found.Z @ found.Z.T)


def test_objective_of_all_columns_is_that_of_k_means():
    """With as many components as columns nothing is lost of them: the error within the clusters."""
    X, _ = table()
    far = X + 1e7
    found = drot.coot_clustering(far, 3, n_components=6)
    inertia = KMeans(3, n_init=10, random_state=0).fit(X).inertia_
    assert found.objective == pytest.approx(inertia / X.size, rel=1e-6)
    assert all(b <= a for a, b in zip(found.trace, found.trace[1:], strict=False))


def test_columns_with_offsets_of_their_own():
    """A million apart, which no common shift brings together: errors are added, not lost."""
    noise = np.random.default_rng(0).normal(size=(8, 2))
    X = np.repeat([[0.0, 0.0], [3.0, 2.0]], 4, axis=0) + 1e-3 * noise
    inertia = KMeans(2, n_init=10, random_state=0).fit(X).inertia_
    found = drot.coot_clustering(X + np.array([0, 1e6]), 2, n_components=2)
    assert found.objective == pytest.approx(inertia / X.size, rel=1e-5)
    assert found.converged and adjusted_rand_score(np.repeat([0, 1], 4), found.labels) == 1
