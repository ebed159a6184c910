"""What a user writes, with arrays, lists and tensors: checked strictly by mypy, and run.

Every public function is called, and each result has the type that the reader of its page expects.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, assert_type

import drot
import numpy as np
import torch
from drot import datasets, exercises, hyperbolic, metrics, plot, spectral
from torch import Tensor

SIZE = 12
array = np.random.default_rng(0).normal(size=(SIZE, 3))
tensor = torch.from_numpy(array)
rows: list[list[float]] = array.tolist()
groups = [i % 3 for i in range(SIZE)]


def costs() -> drot.costs.Pairwise:
    cost = assert_type(drot.sqeuclidean(array), drot.costs.Pairwise)
    assert_type(drot.sqeuclidean(rows, tensor, block=4), drot.costs.Pairwise)
    assert_type(drot.student_cost(tensor, block=None), drot.costs.Pairwise)
    assert_type(drot.pairwise(lambda x, y: torch.cdist(x, y, p=1), rows), drot.costs.Pairwise)
    assert_type(drot.nearest(cost, 4), drot.costs.Pairwise)
    assert_type(drot.gram(array), drot.costs.Factored)
    factored = assert_type(drot.factored_sqeuclidean(rows), drot.costs.Factored)
    assert_type(factored @ tensor, Tensor)
    assert_type(drot.gaussian_kernel(array).dense(), Tensor)
    for part, tile in cost.tiles(most=5):
        assert_type(part, slice)
        assert_type(tile, Tensor)
    assert_type(cost.dense(), Tensor)
    assert_type(cost.rows(slice(0, 2)), Tensor)
    assert_type(cost.shape, tuple[int, int])
    assert_type(cost.dtype, torch.dtype)
    return cost


def ranks(cost: drot.costs.Pairwise) -> drot.costs.Pairwise:
    return assert_type(drot.shard(cost, group=None), drot.costs.Pairwise)


def affinities(cost: drot.costs.Pairwise) -> drot.affinities.SymmetricEntropicAffinity:
    dense = cost.dense().numpy()
    entropic = assert_type(drot.entropic_affinity(cost, 4), drot.affinities.EntropicAffinity)
    assert_type(drot.entropic_affinity(dense, [4.0] * SIZE, diagonal="drop").eps, Tensor)
    gaussian = drot.gaussian_affinity(dense.tolist(), bandwidth=1.0)
    assert_type(assert_type(gaussian, drot.affinities.GaussianAffinity).nu, float)
    assert_type(drot.self_tuning_affinity(cost, n_neighbors=3), drot.affinities.SelfTuningAffinity)
    balanced = drot.doubly_stochastic_affinity(cost, perplexity=4)
    assert_type(assert_type(balanced, drot.affinities.DoublyStochasticAffinity).f, Tensor)
    assert_type(drot.umap_membership(cost, 4, on_failure="warn"), drot.affinities.UMAPMembership)
    found = drot.symmetric_entropic_affinity(cost, perplexity=4)
    assert_type(found, drot.affinities.SymmetricEntropicAffinity)
    slow = drot.symmetric_dual_ascent(cost, 4, tol=0.1, optimizer="adam")
    assert_type(slow, drot.affinities.SymmetricEntropicAffinity)
    other = drot.symmetric_alternating_projections(dense, 4, bandwidth=1.0, tol=1e-2)
    assert_type(other, drot.affinities.SymmetricEntropicAffinity)
    assert_type(found.plan, Tensor)
    assert_type(found.gamma, Tensor)
    assert_type(found.converged, bool)
    assert_type(found.trace, tuple[float, ...])
    assert_type(drot.symmetrize(entropic), Tensor)
    assert_type(drot.symmetrize(found.plan.tolist()), Tensor)
    assert_type(drot.row_entropy(found.plan), Tensor)
    assert_type(drot.row_perplexity(found.plan.numpy()), Tensor)
    assert_type(drot.kl_divergence(found.plan, entropic.plan, convention="generalized"), Tensor)
    assert_type(drot.umap_curve(), tuple[float, float])
    return found


def graphs(affinity: drot.affinities.Affinity) -> None:
    graph = assert_type(drot.sample_graph(affinity, prior="row"), drot.graphs.Graph)
    assert_type(drot.sample_graphs(affinity.log_plan, 2, random_state=3), list[drot.graphs.Graph])
    assert_type(drot.expected_graph(affinity, prior="binary"), Tensor)
    assert_type(drot.graph_log_normalizer(affinity), Tensor)
    assert_type(drot.graph_log_probability(graph, affinity), Tensor)
    parts = assert_type(drot.connected_components(graph), drot.graphs.Components)
    assert_type(parts.labels, Tensor)
    assert_type(drot.laplacian(affinity.plan), Tensor)
    assert_type(drot.fuzzy_union(affinity.plan.clamp(0, 1)), Tensor)
    assert_type(drot.mrf_log_density(rows, affinity.plan, kernel="gaussian"), Tensor)
    log_kernel = -drot.sqeuclidean(array).dense()
    loss = drot.coupling_loss(affinity, log_kernel, prior="row", diagonal="keep")
    assert_type(loss, Tensor)
    assert_type(drot.spectral.precision_coupling_loss(array, tensor[:, :2]), Tensor)
    assert_type(drot.spectral.precision_coupling_optimum(rows, 2, gamma=1.0), Tensor)
    sparse = drot.gaussian_affinity(drot.sqeuclidean(array), bandwidth=0.05, diagonal="drop")
    found = assert_type(drot.ccpca(array, sparse, n_samples=5), drot.spectral.ConnectedPCA)
    assert_type(found.standard_error, float)


def embeddings(affinity: drot.affinities.Affinity) -> drot.embeddings.Embedding:
    plan = affinity.plan
    loss = drot.SNEkhornLoss(affinity, "student")
    found = drot.embed(loss, array[:, :2], max_iter=3, on_failure="ignore")
    assert_type(found, drot.embeddings.Embedding)
    assert_type(drot.attraction_repulsion(loss, found.Z), tuple[Tensor, Tensor])
    drot.SNELoss(plan.numpy(), "student", normalization="sum", diagonal="keep").evaluate(found.Z)
    edges = plan - torch.diag(plan.diag())
    drot.BernoulliLoss(edges, kernel="student").evaluate(found.Z)
    snekhorn = drot.snekhorn(affinity, kernel="student", max_iter=3, on_failure="ignore")
    assert_type(snekhorn, drot.embeddings.Embedding)
    sne = drot.sne(plan, diagonal="keep", init="random", max_iter=3, on_failure="ignore")
    assert_type(sne, drot.embeddings.Embedding)
    tsne = drot.tsne(edges.numpy(), init=found, max_iter=3, on_failure="ignore")
    assert_type(tsne, drot.embeddings.Embedding)
    assert_type(drot.umap(edges, max_iter=3, on_failure="ignore"), drot.embeddings.Embedding)
    assert_type(
        drot.largevis(edges.tolist(), max_iter=3, on_failure="ignore"), drot.embeddings.Embedding
    )
    assert_type(found.dual, Tensor | None)
    assert_type(drot.random_start(SIZE, dtype=torch.float32, device="cpu"), Tensor)
    assert_type(drot.pca_start(array), Tensor)
    assert_type(drot.spectral_start(affinity), Tensor)
    Z = found.Z.numpy()
    curve = assert_type(drot.metrics.neighborhood_curve(rows, Z), drot.metrics.NeighborhoodCurve)
    assert_type(curve.overlap, Tensor)
    assert_type(drot.neighborhood_preservation(array, Z, 3), float)
    assert_type(drot.metrics.trustworthiness(tensor, found.Z, 3), float)
    assert_type(drot.metrics.continuity(rows, Z.tolist(), 3), float)
    return found


def spectra(affinity: drot.affinities.Affinity) -> None:
    found = assert_type(spectral.pca(rows, 2), spectral.SpectralEmbedding)
    assert_type(found.eigenvalues, Tensor)
    assert_type(spectral.kernel_pca(tensor @ tensor.T), spectral.SpectralEmbedding)
    assert_type(spectral.classical_mds(drot.sqeuclidean(array)), spectral.SpectralEmbedding)
    assert_type(spectral.isomap(array, n_neighbors=6), spectral.SpectralEmbedding)
    maps = spectral.laplacian_eigenmaps(affinity.plan, normalized=False)
    assert_type(maps, spectral.SpectralEmbedding)
    diffusion = spectral.diffusion_map(affinity.plan.numpy(), time=2.0)
    assert_type(diffusion, spectral.SpectralEmbedding)
    linear = spectral.locally_linear_embedding(rows, n_neighbors=6)
    assert_type(linear, spectral.SpectralEmbedding)


def gromov(cost: drot.costs.Pairwise) -> drot.gromov.SemiRelaxedGW:
    small = [[0.0, 1.0], [1.0, 0.0]]
    plan = np.full((2, 2), 0.25)
    assert_type(drot.gw_objective(small, small, plan, loss="square"), float)
    assert_type(drot.gw_gradient(small, np.array(small), plan.tolist()), Tensor)
    monge = drot.gromov_monge(small, small)
    assert_type(monge, drot.gromov.GromovMonge)
    assert_type(monge.permutation, Tensor)
    solved = drot.gromov_wasserstein(small, torch.tensor(small).double(), weights_x=[0.5, 0.5])
    assert_type(assert_type(solved, drot.gromov.GromovWasserstein).plan, Tensor)
    found = drot.semi_relaxed_gw(cost, torch.eye(3).double(), n_starts=1, init="random")
    assert_type(found, drot.gromov.SemiRelaxedGW)
    assert_type(found.labels, Tensor)
    barycenter = drot.srgw_barycenter(cost, 3, n_starts=1)
    assert_type(assert_type(barycenter, drot.gromov.SemiRelaxedBarycenter).structure, Tensor)
    assert_type(drot.coarsen(cost, groups), drot.gromov.Coarsening)
    means = drot.kernel_kmeans(array @ array.T, 3, n_starts=1)
    assert_type(assert_type(means, drot.gromov.KernelKMeans).objective, float)
    return found


def prototypes(affinity: drot.affinities.Affinity) -> None:
    found = drot.distributional_reduction(affinity, 4, n_starts=1, on_failure="ignore")
    assert_type(found, drot.distributional.DistributionalReduction)
    assert_type(found.medoids(affinity.plan), Tensor)
    first = drot.cluster_then_reduce(affinity.plan, 4, on_failure="ignore")
    assert_type(first, drot.distributional.DistributionalReduction)
    second = drot.reduce_then_cluster(affinity.plan.numpy(), 4, on_failure="ignore")
    assert_type(second, drot.distributional.DistributionalReduction)
    third = drot.coot_clustering(rows, 3, n_starts=1, on_failure="ignore")
    assert_type(third, drot.distributional.DistributionalReduction)
    plan = found.plan.numpy()
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
    curved = hyperbolic.reduce(affinity, 3, n_starts=1, max_iter=2, on_failure="ignore")
    assert_type(curved, drot.distributional.DistributionalReduction)


def kept(
    affinity: drot.affinities.Affinity,
    found: drot.embeddings.Embedding,
    plan: drot.gromov.SemiRelaxedGW,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        affinity.save(path)
        assert_type(drot.load(path), Any)
        found.save(str(path))
        assert_type(drot.load(str(path)), Any)
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
    assert_type(drot.DistR(3), drot.DistR)
    assert_type(drot.SemiRelaxedGWClustering(3), drot.SemiRelaxedGWClustering)
    error: type[RuntimeError] = drot.NotConverged
    assert issubclass(error, Exception)


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
    assert_type(datasets.load_mnist(n_components=None), datasets.DataSet)
    assert_type(datasets.load_fashion_mnist(download=False), datasets.DataSet)
    assert_type(datasets.load_coil20(), datasets.DataSet)
    assert_type(datasets.load_olivetti(n_components=10), datasets.DataSet)
    assert_type(datasets.load_snareseq("expression"), datasets.DataSet)
    assert_type(datasets.load_scgem(), datasets.DataSet)
    assert_type(datasets.load_pbmc3k(), datasets.DataSet)


def drawings(affinity: drot.affinities.Affinity) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    with plot.style():
        figure, axes = plt.subplots()
        plot.draw_graph(axes, array[:, :2], affinity.plan, color=groups, cmap="viridis")
    plt.close(figure)
    assert_type(plot.COLORS[0], str)
    verdict = assert_type(exercises.check(1, lambda answer: answer == 1), exercises.Verdict)
    assert_type(verdict.right, bool | None)


def main() -> None:
    cost = costs()
    affinity = affinities(cost)
    graphs(affinity)
    spectra(affinity)
    prototypes(affinity)
    kept(affinity, embeddings(affinity), gromov(cost))
    estimators()
    data()
    drawings(affinity)


if __name__ == "__main__":
    main()
