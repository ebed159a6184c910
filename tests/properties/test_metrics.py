"""Properties of what measures a plan."""

from __future__ import annotations

import math

import drot
import numpy as np
import pytest


@pytest.mark.parametrize("seed", range(3))
def test_constraint_errors(seed):
    """Each number is the largest violation of one property, whichever row it is in."""
    P = np.random.default_rng(seed).dirichlet(np.ones(6), size=6)
    errors = drot.metrics.constraint_errors(P, perplexity=3.0)
    assert errors.symmetry == pytest.approx(np.abs(P - P.T).max())
    assert errors.row_sum == pytest.approx(0, abs=1e-14)
    entropies = [-sum(x * (math.log(x) - 1) for x in row) for row in P]
    worst = max(abs(h - math.log(3.0) - 1) for h in entropies)
    assert errors.log_perplexity == pytest.approx(worst, rel=1e-12)
    half = drot.metrics.constraint_errors(P / 2, perplexity=3.0)
    assert half.row_sum == pytest.approx(0.5)
    columns = drot.metrics.constraint_errors(P.T, perplexity=3.0)
    assert columns.row_sum == pytest.approx(np.abs(P.sum(axis=0) - 1).max())


def test_constraint_errors_tell_affinities_apart():
    """The ticks of Table 1: P^e has entropies, P^ds symmetry and row sums, neither has all."""
    C = drot.sqeuclidean(np.random.default_rng(0).normal(size=(25, 3)))
    rows = drot.metrics.constraint_errors(drot.entropic_affinity(C, 6.0).plan, 6.0)
    both = drot.metrics.constraint_errors(
        drot.doubly_stochastic_affinity(C, perplexity=6.0).plan, 6.0
    )
    assert rows.log_perplexity < 1e-8 and rows.row_sum < 1e-8 and rows.symmetry > 1e-2
    assert both.symmetry < 1e-8 and both.row_sum < 1e-8 and both.log_perplexity > 1e-2


def test_spectral_clustering_ari():
    """1 for separate groups whatever their names, near 0 for shuffled labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat([7, 3, 5], 15)
    X = rng.normal(size=(45, 2)) + np.repeat([[0, 0], [20, 0], [0, 20]], 15, axis=0)
    plan = drot.symmetrize(drot.entropic_affinity(drot.sqeuclidean(X), 5.0))
    assert drot.metrics.spectral_clustering_ari(plan, labels) == 1.0
    shuffled = rng.permutation(labels)
    assert abs(drot.metrics.spectral_clustering_ari(plan, shuffled)) < 0.15
    fewer = drot.metrics.spectral_clustering_ari(plan, labels, n_clusters=2)
    assert 0.3 < fewer < 0.9
