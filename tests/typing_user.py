"""What a user writes, with arrays, lists and tensors: checked strictly by mypy, and run.

Every public function is called, and each result has the type that the reader of its page expects.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, assert_type

import drot
import matplotlib
import numpy as np
import torch
from drot import affinities, datasets, exercises, gromov, hyperbolic, metrics, plot, spectral
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
    cost = assert_type(drot.sqeuclidean(array), Pairwise)
    assert_type(drot.student_cost(tensor, block=None), Pairwise)
    assert_type(drot.pairwise(lambda x, y: torch.cdist(x, y, p=1), rows), Pairwise)
    assert_type(drot.nearest(cost, 4), Pairwise)
    assert_type(drot.gram(array), Factored)
    assert_type(assert_type(drot.factored_sqeuclidean(rows), Factored) @ tensor, Tensor)
    for part, tile in cost.tiles(most=5):
        assert_type(part, slice)
        assert_type(tile, Tensor)
    assert_type(drot.gaussian_kernel(array).dense(), Tensor)
    assert_type(cost.rows(slice(0, 2)), Tensor)
    return cost


def ranks(cost: Pairwise) -> Pairwise:
    return assert_type(drot.shard(cost, group=None), Pairwise)


def plans(cost: Pairwise) -> affinities.SymmetricEntropicAffinity:
    dense = cost.dense().numpy()
    entropic = assert_type(drot.entropic_affinity(cost, 4), affinities.EntropicAffinity)
    assert_type(drot.entropic_affinity(dense, [4.0] * SIZE, diagonal="drop").eps, Tensor)
    gaussian = drot.gaussian_affinity(dense.tolist(), bandwidth=1.0)
    assert_type(assert_type(gaussian, affinities.GaussianAffinity).nu, float)
    assert_type(drot.self_tuning_affinity(cost, n_neighbors=3), affinities.SelfTuningAffinity)
    balanced = drot.doubly_stochastic_affinity(cost, perplexity=4)
    assert_type(assert_type(balanced, affinities.DoublyStochasticAffinity).f, Tensor)
    assert_type(drot.umap_membership(cost, 4, on_failure="warn"), affinities.UMAPMembership)
    found = drot.symmetric_entropic_affinity(cost, perplexity=4)
    slow = drot.symmetric_dual_ascent(cost, 4, tol=0.1, optimizer="adam")
    assert_type(slow, affinities.SymmetricEntropicAffinity)
    other = drot.symmetric_alternating_projections(dense, 4, bandwidth=1.0, tol=1e-2)
    assert_type(other, affinities.SymmetricEntropicAffinity)
    assert_type(found.gamma, Tensor)
    assert_type(found.trace, tuple[float, ...])
    assert_type(drot.symmetrize(entropic), Tensor)
    assert_type(drot.row_entropy(found.plan), Tensor)
    assert_type(drot.row_perplexity(found.plan.numpy()), Tensor)
    assert_type(drot.kl_divergence(found.plan, entropic.plan, convention="generalized"), Tensor)
    assert_type(drot.umap_curve(), tuple[float, float])
    return assert_type(found, affinities.SymmetricEntropicAffinity)


def graphs(affinity: affinities.Affinity) -> None:
    graph = assert_type(drot.sample_graph(affinity, prior="row"), drot.graphs.Graph)
    assert_type(drot.sample_graphs(affinity.log_plan, 2, random_state=3), list[drot.graphs.Graph])
    assert_type(drot.expected_graph(affinity, prior="binary"), Tensor)
    assert_type(drot.graph_log_normalizer(affinity), Tensor)
    assert_type(drot.graph_log_probability(graph, affinity), Tensor)
    assert_type(drot.connected_components(graph), drot.graphs.Components)
    assert_type(drot.laplacian(affinity.plan), Tensor)
    assert_type(drot.fuzzy_union(affinity.plan.clamp(0, 1)), Tensor)
    assert_type(drot.mrf_log_density(rows, affinity.plan, kernel="gaussian"), Tensor)
    log_kernel = -drot.sqeuclidean(array).dense()
    loss = drot.coupling_loss(affinity, log_kernel, prior="row", diagonal="keep")
    assert_type(loss, Tensor)
    assert_type(spectral.precision_coupling_loss(array, tensor[:, :2]), Tensor)
    assert_type(spectral.precision_coupling_optimum(rows, 2, gamma=1.0), Tensor)
    sparse = drot.gaussian_affinity(drot.sqeuclidean(array), bandwidth=0.05, diagonal="drop")
    found = assert_type(drot.ccpca(array, sparse, n_samples=5), spectral.ConnectedPCA)
    assert_type(found.standard_error, float)


def embeddings(affinity: affinities.Affinity) -> Embedding:
    plan = affinity.plan
    edges = plan - torch.diag(plan.diag())
    loss = drot.SNEkhornLoss(affinity, "student")
    found = assert_type(drot.embed(loss, array[:, :2], tol=1.0), Embedding)
    assert_type(drot.attraction_repulsion(loss, found.Z), tuple[Tensor, Tensor])
    drot.SNELoss(plan.numpy(), "student", normalization="sum", diagonal="keep").evaluate(found.Z)
    drot.BernoulliLoss(edges, kernel="student").evaluate(found.Z)
    assert_type(drot.snekhorn(affinity, kernel="student", tol=1.0), Embedding)
    assert_type(drot.sne(plan, diagonal="keep", init="random", tol=1.0), Embedding)
    assert_type(drot.tsne(edges.numpy(), init=found, tol=1.0), Embedding)
    assert_type(drot.umap(edges, max_iter=3, on_failure="ignore"), Embedding)
    assert_type(drot.largevis(edges.tolist(), tol=1.0), Embedding)
    assert_type(found.dual, Tensor | None)
    assert_type(drot.random_start(SIZE, dtype=torch.float32, device="cpu"), Tensor)
    assert_type(drot.pca_start(array), Tensor)
    assert_type(drot.spectral_start(affinity), Tensor)
    Z = found.Z.numpy()
    assert_type(metrics.neighborhood_curve(rows, Z), metrics.NeighborhoodCurve)
    assert_type(drot.neighborhood_preservation(array, Z, 3), float)
    assert_type(metrics.trustworthiness(tensor, found.Z, 3), float)
    assert_type(metrics.continuity(rows, Z.tolist(), 3), float)
    return found


def spectra(affinity: affinities.Affinity) -> None:
    assert_type(assert_type(spectral.pca(rows, 2), SpectralEmbedding).eigenvalues, Tensor)
    assert_type(spectral.kernel_pca(tensor @ tensor.T), SpectralEmbedding)
    assert_type(spectral.classical_mds(drot.sqeuclidean(array)), SpectralEmbedding)
    assert_type(spectral.isomap(array, n_neighbors=6), SpectralEmbedding)
    assert_type(spectral.laplacian_eigenmaps(affinity.plan, normalized=False), SpectralEmbedding)
    assert_type(spectral.diffusion_map(affinity.plan.numpy(), time=2.0), SpectralEmbedding)
    assert_type(spectral.locally_linear_embedding(rows, n_neighbors=6), SpectralEmbedding)


def matchings(cost: Pairwise) -> gromov.SemiRelaxedGW:
    small = [[0.0, 1.0], [1.0, 0.0]]
    plan = np.full((2, 2), 0.25)
    assert_type(drot.gw_objective(small, small, plan, loss="square"), float)
    assert_type(drot.gw_gradient(small, np.array(small), plan.tolist()), Tensor)
    assert_type(drot.gromov_monge(small, small), gromov.GromovMonge)
    solved = drot.gromov_wasserstein(small, torch.tensor(small).double(), weights_x=[0.5, 0.5])
    assert_type(assert_type(solved, gromov.GromovWasserstein).plan, Tensor)
    found = drot.semi_relaxed_gw(cost, torch.eye(3).double(), n_starts=1, init="random")
    assert_type(found.labels, Tensor)
    barycenter = drot.srgw_barycenter(cost, 3, n_starts=1)
    assert_type(assert_type(barycenter, gromov.SemiRelaxedBarycenter).structure, Tensor)
    assert_type(drot.coarsen(cost, groups), gromov.Coarsening)
    means = drot.kernel_kmeans(array @ array.T, 3, n_starts=1)
    assert_type(assert_type(means, gromov.KernelKMeans).objective, float)
    return assert_type(found, gromov.SemiRelaxedGW)


def prototypes(affinity: affinities.Affinity) -> None:
    found = drot.distributional_reduction(affinity, 4, n_starts=1, tol=1.0)
    assert_type(assert_type(found, DistributionalReduction).medoids(affinity.plan), Tensor)
    plan = found.plan.numpy()
    assert_type(drot.cluster_then_reduce(affinity.plan, 4, tol=1.0), DistributionalReduction)
    assert_type(
        drot.reduce_then_cluster(affinity.plan.numpy(), 4, tol=1.0), DistributionalReduction
    )
    assert_type(drot.coot_clustering(rows, 3, n_starts=1), DistributionalReduction)
    assert_type(metrics.prototype_homogeneity(groups, plan), float)
    assert_type(metrics.prototype_nmi(found.Z, plan, groups), float)
    assert_type(metrics.weighted_silhouette(found.Z.numpy(), found.plan, groups), float)
    assert_type(metrics.spectral_clustering_ari(affinity.plan, groups), float)
    errors = assert_type(metrics.constraint_errors(affinity.plan, 4.0), metrics.ConstraintErrors)
    assert_type(errors.row_sum, float)
    sheet = assert_type(hyperbolic.wrapped_normal(8), Tensor)
    assert_type(hyperbolic.distance(sheet.tolist()), Tensor)
    assert_type(hyperbolic.to_poincare(sheet), Tensor)
    assert_type(hyperbolic.kmeans(sheet.numpy(), 2), Tensor)
    assert_type(hyperbolic.silhouette(sheet, np.eye(8) / 8, [0, 1] * 4), float)
    assert_type(hyperbolic.reduce(affinity, 3, n_starts=1, tol=1.0), DistributionalReduction)


def kept(affinity: affinities.Affinity, found: Embedding, plan: gromov.SemiRelaxedGW) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        affinity.save(path)
        found.save(str(path))
        plan.save(path)
        assert_type(drot.load(path), Any)


def estimators() -> None:
    assert_type(drot.SNEkhorn(perplexity=4, max_iter=50), drot.SNEkhorn)
    assert_type(drot.TSNEkhorn(), drot.TSNEkhorn)
    assert_type(drot.SNE(), drot.SNE)
    assert_type(drot.TSNE(perplexity=3), drot.TSNE)
    assert_type(drot.UMAP(), drot.UMAP)
    assert_type(drot.LargeVis(), drot.LargeVis)
    assert_type(drot.CCPCA(), drot.CCPCA)
    assert issubclass(drot.NotConverged, RuntimeError)
    assert_type(drot.DistR(3), drot.DistR)
    assert_type(drot.SemiRelaxedGWClustering(3), drot.SemiRelaxedGWClustering)


def data() -> None:
    cloud = assert_type(datasets.digits(20), datasets.DataSet)
    assert_type(cloud.X, Tensor)
    assert_type(cloud.label_names, tuple[str, ...])
    assert_type(datasets.circles(5, radii=(1.0, 2.0)), datasets.DataSet)
    assert_type(datasets.three_gaussians(4, spreads=[1, 2, 3]), datasets.DataSet)
    assert_type(datasets.unbalanced_clusters([3, 4]), datasets.DataSet)
    assert_type(datasets.stochastic_block_model((4, 4)), datasets.DataSet)
    counts = datasets.heteroscedastic_multinomials((4, 4, 4), n_trials=20, n_high=30, dimension=10)
    assert_type(counts, datasets.DataSet)
    assert_type(datasets.available("mnist"), bool)
    assert issubclass(datasets.DataUnavailable, OSError)


def downloads() -> None:
    """Not run: it needs the data."""
    assert_type(datasets.load("mnist", n_components=10), datasets.DataSet)
    assert_type(datasets.load_mnist(), datasets.DataSet)
    assert_type(datasets.load_fashion_mnist(), datasets.DataSet)
    assert_type(datasets.load_coil20(), datasets.DataSet)
    assert_type(datasets.load_olivetti(n_components=10), datasets.DataSet)
    assert_type(datasets.load_snareseq("expression"), datasets.DataSet)
    assert_type(datasets.load_scgem(), datasets.DataSet)
    assert_type(datasets.load_pbmc3k(), datasets.DataSet)


def drawings(affinity: affinities.Affinity) -> None:
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    with plot.style():
        figure, axes = plt.subplots()
        plot.draw_graph(axes, array[:, :2], affinity.plan, color=groups, cmap="viridis")
    plt.close(figure)
    assert_type(plot.COLORS[0], str)
    verdict = assert_type(exercises.check(1, lambda answer: answer == 1), exercises.Verdict)
    assert_type(verdict.right, bool | None)


if __name__ == "__main__":
    cost = costs()
    affinity = plans(cost)
    graphs(affinity)
    spectra(affinity)
    prototypes(affinity)
    kept(affinity, embeddings(affinity), matchings(cost))
    estimators()
    data()
    drawings(affinity)
