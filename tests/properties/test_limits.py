"""The fewest, the first and the last: what is taken at the edge, where it ends, what is refused."""

from __future__ import annotations

from functools import partial

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


@pytest.mark.parametrize("zeros", [True, False])
def test_mirror_descent_starts_inside(zeros):
    """A tenth of a plan with zeros is spread; a positive plan is taken as it is."""
    X, w = torch.tensor(CLOUD[:12]), torch.linspace(1, 2, 12, dtype=torch.float64)
    w /= w.sum()
    plan = w[:, None] * torch.eye(4, dtype=torch.float64).repeat(3, 1)
    plan = plan if zeros else (plan + w[:, None]) / 5
    seen = []
    drot.semi_relaxed_gw(
        X @ X.T, X[:4] @ X[:4].T, weights_x=w, init=plan, solver="mirror_descent", refine=False,
        callback=lambda k, gap, T: seen.append(T.clone()) or True,
    )  # fmt: skip
    torch.testing.assert_close(seen[0], 0.9 * plan + 0.1 * w[:, None] / 4 if zeros else plan)


@pytest.mark.parametrize("refine", [True, False])
def test_barycentre_counts_its_iterations(refine):
    """As many as the trace says, none after the tolerance is met, never more than asked for."""
    X = torch.tensor(CLOUD[:30])
    solve = partial(drot.srgw_barycenter, X @ X.T, 3, init="random", n_starts=1, refine=refine)
    found, few = solve(), solve(max_iter=1, tol=1e-300, **LOOSE)
    assert 1 < found.n_iter == len(found.trace) - 1 < 60
    assert few.n_iter == len(few.trace) - 1 == 1 and not few.converged
    with pytest.raises(drot.NotConverged, match="after 1 iterations"):
        solve(max_iter=1, tol=1e-300)


C = drot.symmetric_entropic_affinity(drot.sqeuclidean(CLOUD[:24]), perplexity=6)


def test_generator_draws_the_starts():
    """The lowest of the ends is kept; the same state gives the same bits, another others; the
    first start is that of CDR."""
    reduce = partial(drot.distributional_reduction, C, 5, n_components=2, max_iter=20, **LOOSE)
    first, again, other = (
        reduce(init="random", n_starts=4, random_state=np.random.default_rng(seed))
        for seed in (5, 5, 6)
    )
    assert len(first.values) == 4 and first.trace[-1] == min(first.values) < max(first.values)
    assert torch.equal(first.Z, again.Z) and not torch.equal(first.Z, other.Z)
    found = reduce(init="cluster_then_reduce", n_starts=1, random_state=np.random.default_rng(5))
    alone = drot.cluster_then_reduce(C, 5, random_state=np.random.default_rng(5))
    assert found.trace[0] == alone.objective
