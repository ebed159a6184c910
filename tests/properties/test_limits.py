"""The fewest, the first and the last: what is taken at the edge, where it ends, what is refused."""

from __future__ import annotations

import drot
import numpy as np
import pytest
import torch

LOOSE = {"on_failure": "ignore"}
CLOUD = np.random.default_rng(5).normal(size=(40, 2))


@pytest.mark.parametrize(("one", "other"), [((2, 3), (3, 3)), ((3, 3), (2, 3)), ((3,), (1, 3))])
def test_divergence_wants_equal_shapes(one, other):
    """No row is repeated in silence, whichever of the two is larger; one column is not empty."""
    with pytest.raises(ValueError, match="differ in shape"):
        drot.kl_divergence(np.ones(one), np.ones(other))
    assert drot.row_entropy(np.ones((2, 1))).tolist() == [1, 1]


def test_fewest_neighbours():
    """Two for a perplexity; one tunes: sigma_i is the distance to the nearest other point."""
    C = drot.sqeuclidean(CLOUD[:9]).dense()
    found = drot.entropic_affinity(C, perplexity=1.5, n_neighbors=2)
    torch.testing.assert_close(found.perplexity, torch.full((9,), 1.5).double())
    sigma = C.sort(dim=1).values[:, 1].sqrt()
    found = drot.self_tuning_affinity(C, n_neighbors=1)
    torch.testing.assert_close(found.plan, torch.exp(-C / torch.outer(sigma, sigma)))
    assert drot.self_tuning_affinity(C, n_neighbors=8).converged
    with pytest.raises(ValueError, match="row 2 has 1 or more copies"):
        drot.self_tuning_affinity(drot.sqeuclidean(CLOUD[[0, 1, 2, 3, 2]]), n_neighbors=1)


def test_score_of_groups():
    """Symmetry is up to rounding; one group says nothing of two classes."""
    score, pair = drot.metrics.spectral_clustering_ari, 0.1 * torch.eye(2).double() + 0.9
    plan, y = torch.block_diag(pair, pair), [0, 0, 1, 1]
    assert score(plan, y, n_clusters=1) == 0
    plan[0, 1] += 1e-9
    assert score(5 * plan, y) == 1
    plan[0, 1] += 1e-4
    with pytest.raises(ValueError, match="symmetric"):
        score(5 * plan, y)
