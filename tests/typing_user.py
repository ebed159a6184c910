"""What a user writes, with arrays, lists and tensors: checked strictly by mypy, and run.

Every public type is met once, as the reader of its page expects it.
"""
# mypy: disallow-any-generics, disallow-subclassing-any, disallow-untyped-calls, strict-equality
# mypy: disallow-untyped-defs, disallow-untyped-decorators, warn-return-any, extra-checks

from typing import Any, assert_type

import drot
import numpy as np
import torch
from drot import affinities, datasets, exercises, gromov, hyperbolic, metrics, spectral
from drot.costs import Factored, Pairwise
from drot.distributional import DistributionalReduction
from drot.embeddings import Embedding
from drot.spectral import SpectralEmbedding
from torch import Tensor

SIZE = 12
array = np.random.default_rng(0).normal(size=(SIZE, 3))
tensor = torch.from_numpy(array)
rows: list[list[float]] = array.tolist()
groups = [i % 3 for i in range(SIZE)]


def costs() -> Pairwise:
    assert_type(drot.pairwise(lambda x, y: torch.cdist(x, y, p=1), rows), Pairwise)
    assert_type(assert_type(drot.factored_sqeuclidean(rows), Factored) @ tensor, Tensor)
    cost = drot.sqeuclidean(array)
    for part, tile in cost.tiles(most=5):
        assert_type(part, slice)
        assert_type(tile, Tensor)
    return assert_type(cost, Pairwise)


def plans(cost: Pairwise) -> affinities.SymmetricEntropicAffinity:
    dense = cost.dense().numpy()
    assert_type(drot.entropic_affinity(cost, perplexity=[4.0] * SIZE), affinities.EntropicAffinity)
    gaussian = drot.gaussian_affinity(dense.tolist(), bandwidth=1.0)
    assert_type(assert_type(gaussian, affinities.GaussianAffinity).nu, float)
    assert_type(drot.self_tuning_affinity(cost, n_neighbors=3), affinities.SelfTuningAffinity)
    balanced = drot.doubly_stochastic_affinity(dense, perplexity=4)
    assert_type(assert_type(balanced, affinities.DoublyStochasticAffinity).f, Tensor)
    assert_type(
        drot.umap_membership(cost, n_neighbors=4, on_failure="warn"), affinities.UMAPMembership
    )
    found = drot.symmetric_entropic_affinity(cost, perplexity=4)
    assert_type(found.trace, tuple[float, ...])
    assert_type(drot.kl_divergence(found.plan, balanced.plan, convention="generalized"), float)
    return assert_type(found, affinities.SymmetricEntropicAffinity)


def graphs(affinity: affinities.Affinity) -> None:
    graph = assert_type(drot.sample_graph(affinity, prior="row"), drot.graphs.Graph)
    assert_type(drot.sample_graphs(affinity.log_plan, 2, random_state=3), list[drot.graphs.Graph])
    assert_type(drot.connected_components(graph), drot.graphs.Components)
    log_kernel = -drot.sqeuclidean(array).dense()
    assert_type(drot.coupling_loss(affinity, log_kernel, prior="row", diagonal="keep"), Tensor)
    sparse = drot.gaussian_affinity(drot.sqeuclidean(array), bandwidth=0.05, diagonal="drop")
    assert_type(drot.ccpca(array, sparse, n_samples=5), spectral.ConnectedPCA)


def embeddings(affinity: affinities.Affinity) -> None:
    loss = drot.SNEkhornLoss(affinity, "student")
    found = assert_type(drot.embed(loss, array[:, :2], tol=1.0), Embedding)
    assert_type(drot.embeddings.attraction_repulsion(loss, found.Z), tuple[Tensor, Tensor])
    assert_type(drot.sne(affinity.plan, diagonal="keep", init=found, tol=1.0), Embedding)
    assert_type(found.dual, Tensor | None)
    assert_type(drot.random_start(SIZE, n_components=3), Tensor)
    assert_type(metrics.neighborhood_curve(rows, found.Z), metrics.NeighborhoodCurve)
    assert_type(spectral.pca(rows, 2), SpectralEmbedding)


def matchings(cost: Pairwise) -> None:
    small = [[0.0, 1.0], [1.0, 0.0]]
    assert_type(drot.gw_objective(small, small, np.full((2, 2), 0.25), loss="square"), float)
    assert_type(drot.gromov.gromov_monge(small, small), gromov.GromovMonge)
    found = drot.semi_relaxed_gw(cost, torch.eye(3).double(), n_starts=1, init="random")
    assert_type(assert_type(found, gromov.SemiRelaxedGW).labels, Tensor)
    assert_type(drot.srgw_barycenter(cost, 3, n_starts=1), gromov.SemiRelaxedBarycenter)
    assert_type(drot.gromov.coarsen(cost, groups), gromov.Coarsening)
    assert_type(drot.kernel_kmeans(array @ array.T, 3, n_starts=1), gromov.KernelKMeans)


def prototypes(affinity: affinities.Affinity) -> None:
    found = drot.distributional_reduction(affinity, 4, n_starts=1, tol=1.0)
    assert_type(assert_type(found, DistributionalReduction).medoids(affinity.plan), Tensor)
    assert_type(metrics.prototype_nmi(found.Z, found.plan.numpy(), groups), float)
    assert_type(hyperbolic.distances(hyperbolic.wrapped_normal(8).tolist()), Tensor)


def others() -> None:
    assert_type(drot.DistR(3), drot.DistR)
    assert_type(drot.TSNE(callback=lambda step, *told: step == 9, keep_affinity=False), drot.TSNE)
    assert_type(drot.TSNE().get_params(), dict[str, Any])
    assert_type(drot.plot.COLORS[0], str)
    cloud = assert_type(datasets.digits(20), datasets.DataSet)
    assert_type(cloud.label_names, tuple[str, ...])
    verdict = assert_type(exercises.check(1, lambda answer: answer == 1), exercises.Verdict)
    assert_type(verdict.right, bool | None)


if __name__ == "__main__":
    cost = costs()
    affinity = plans(cost)
    graphs(affinity)
    embeddings(affinity)
    matchings(cost)
    prototypes(affinity)
    others()
