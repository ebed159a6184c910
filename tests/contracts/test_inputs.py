"""What the table of bad input cannot make: sentences and remedies particular to one function, what
only looks like bad input, and solvers that run out of budget."""

import datetime  # noqa: F401  of the table
import math
import re
import warnings
from collections.abc import Callable
from functools import partial

import drot
import drot.graphs.graph
import matplotlib.pyplot as plt  # noqa: F401  of the table
import numpy as np
import pytest
import torch
from drot.plot import draw_graph  # noqa: F401  of the table
from faults import ROWS, STARTS, parameters, points, squares, thing


def changed(array: np.ndarray, i: int, j: int, entry: float) -> np.ndarray:
    array = np.array(array)
    array[i, j] = entry
    return array


X, C = points(8), squares(8)
P = C / C.sum(axis=1, keepdims=True)  # rows of sum 1, diagonal 0
TIED = changed(changed(changed(C, 4, 0, 0.0), 4, 4, 0.0), 4, 7, 0.0)  # three cheapest in row 4
FEW = np.array([[0, 1, 5, 6], [3, 0, 5, 6], [5, 5, 0, 1e9], [6, 6, 1e9, 0]])  # 1e9 rounds no other
UNEVEN = np.array([[0, 1e9, 1], [1e9, 0, 0.5], [1.5, 0.9, 0]])
COPIES = X[[0, 1, 2, 3, 4, 5, 3, 7]]
TWINS = points(20)[[*range(13), 17, *range(14, 20)]]
KERNEL = np.exp(-C)
CYCLE = np.roll(np.eye(3), 1, axis=0)
EVEN = np.full((8, 8), 1 / 8)
SIGNS = torch.tensor(KERNEL - KERNEL.mean()).float().sign()
PAIRS = torch.block_diag(torch.ones(3, 3), torch.ones(3, 3))
LINE = np.arange(5.0)[:, None]
plotted = partial(drot.plot.scatter, X[:, :2])
LARGE = torch.arange(2_000_000.0)[:, None]
FAR = drot.nearest(C, n_neighbors=3)
FULL = squares(30)  # enough to be told from a graph
MANY = np.eye(4)[np.repeat(range(4), [5, 12, 9, 20])]  # copies
ZERO = changed(X, 5, slice(None), 0.0)
ODD = [drot.pairwise(lambda x, y: x[:, :1] - y[:, 0], X, block=block) for block in (None, 3)]


def rowwise(cost, perplexity=3.0):
    return drot.entropic_affinity(cost, perplexity=perplexity)


def symmetric(cost, perplexity=3.0):
    return drot.symmetric_entropic_affinity(cost, perplexity=perplexity)


def doubly(cost, perplexity=3.0):
    return drot.doubly_stochastic_affinity(cost, perplexity=perplexity)


def other(entry: float) -> list[float]:
    """The perplexity of row 5."""
    return [3.0] * 5 + [entry] + [3.0] * 2


def coupling(plan=P, log_kernel=-C, prior="row", **options):
    return drot.coupling_loss(plan, log_kernel, prior=prior, **options)


def euclidean() -> drot.distributional.DistributionalReduction:
    return drot.distributional_reduction(KERNEL, 3, init="random", on_failure="ignore")


def met(function: Callable):
    return rowwise(drot.pairwise(function, X))


def shared(similarity):
    return drot.DistR(3, similarity="precomputed").fit(similarity)


def quick(**options):
    return drot.TSNE(perplexity=3.0, tol=1e9, **options)


def called(told):
    return quick(callback=lambda *what: told).fit(X)


def sheet(radius: float) -> torch.Tensor:
    return torch.from_numpy(np.array([[math.cosh(radius), math.sinh(radius), 0.0], [1.0, 0, 0]]))


def graph(edges, weights, n=3):
    return drot.graphs.Graph(n=n, edges=edges, weights=weights)


def density(kernel):
    return drot.graphs.mrf_log_density(np.zeros((3, 1)), np.ones((3, 3)), kernel=kernel)


def components(n=3, device="cpu"):
    labels = torch.zeros(n, dtype=torch.int64, device=device)
    return drot.graphs.Components(labels=labels, sizes=labels)


def known(distances, **options):
    return drot.TSNE(perplexity=3.0, metric="precomputed", **options).fit(distances)


# Calls :: a regular expression for their sentence; of a ValueError where it names no other type.
TABLE = r"""
drot.sqeuclidean(torch.zeros(3, 2).bfloat16()) :: TypeError: X.*bfloat16.*float64
drot.sqeuclidean([["a"]]) :: TypeError: ^X cannot .* numbers: it holds text$
drot.sqeuclidean(points(5, 3), points(5, 2)) :: X has 3 coordinates and Y has 2
met(lambda x, y: torch.cdist(x, y)[:, 1:]) :: return a \(8, 8\) tensor; got \(8, 7\)
met(lambda x, y: torch.cdist(x, y).T[:1]) :: got \(1, 8\)
met(lambda x, y: torch.cdist(x, y).numpy()) :: tensor; got ndarray
met(lambda x, y: torch.cdist(x, y).float()) :: keep torch.float64 on cpu; got torch.float
met(lambda x, y: torch.cdist(x, y) / 0 - 1) :: non-finite entry .*row 0, column 0
drot.spectral.laplacian_eigenmaps(UNEVEN, 1) :: entries \(0, 2\) and \(2, 0\) are 1 and 1.5
drot.spectral.laplacian_eigenmaps(np.eye(4)) :: no path joins the points 0 and 1
drot.spectral.laplacian_eigenmaps(PAIRS) | drot.spectral.diffusion_map(PAIRS)
    :: 2 connected components
drot.spectral.precision_coupling_loss(X[:4], X[:3]) :: X has 4 points
drot.spectral.precision_coupling_optimum(np.eye(4), 4, gamma=2.0) :: X has 3 directions
drot.neighborhood_preservation(X, X[:5], 2) :: X has 8 points and Z has 5
drot.metrics.neighborhood_curve(X[:2], X[:2]) | drot.neighborhood_preservation(X[:2], X[:2], 1)
    :: at least 3 points
drot.ccpca(X, np.zeros((7, 7))) :: X has 8 points and log_kernel 7 rows
drot.ccpca(X, 9 * np.ones((8, 8)), prior="binary", n_samples=3) :: all 3 graphs
drot.metrics.weighted_silhouette(np.eye(2), np.eye(3), [0, 1, 1])
    | drot.metrics.prototype_nmi(np.eye(2), np.eye(3), [0, 1, 1])
    :: Z has 2 prototypes and the plan 3
drot.metrics.weighted_silhouette(np.eye(4), np.eye(3), [0, 1, 1])
    | drot.metrics.prototype_nmi(np.eye(4), np.eye(3), [0, 1, 1])
    :: Z has 4 prototypes and the plan 3
drot.metrics.weighted_silhouette(np.eye(3), np.eye(3), [1, 1, 1]) :: at least 2 classes
drot.neighborhood_preservation(abs(LINE - LINE.T), LINE, 2) :: X holds distances, it seems
drot.neighborhood_preservation(X, quick().fit(X), 2) | drot.sqeuclidean(quick().fit(X))
    :: TypeError: ^\w is of type TSNE, no array; pass its embedding_$
drot.metrics.prototype_homogeneity(drot.DistR(3, perplexity=3.0).fit(X), X[:, 0])
    :: TypeError: ^plan is of type DistR, no array; pass its plan_$
drot.tsne(quick().fit(X)) :: TypeError: ^plan is of type TSNE, no array; pass its affinity_$
drot.metrics.prototype_homogeneity(drot.SemiRelaxedGWClustering(2, perplexity=3.0).fit(X), X[:, 0])
    :: TypeError: ^plan is of type SemiRelaxedGWClustering, no array; pass its result_.plan$
drot.tsne(FULL) | drot.sne(FULL) | drot.umap(FULL / FULL.max()) | drot.laplacian(FULL)
    | drot.spectral.laplacian_eigenmaps(FULL) | drot.spectral.diffusion_map(FULL)
    | drot.spectral.kernel_pca(FULL) | drot.ccpca(points(30), FULL) | drot.largevis(FULL)
    | drot.expected_graph(FULL) | drot.spectral_start(FULL)
    | drot.metrics.spectral_clustering_ari(FULL, np.arange(30) % 3)
    :: ^\w+ holds distances, it seems: its diagonal is 0 .*; pass an affinity of it\. If it is a
drot.umap(symmetric(C)) | drot.largevis(doubly(C))
    :: mass on its diagonal; .* or of a symmetric one pass its plan.fill_diagonal_\(0\)
drot.umap(drot.umap_membership(C, n_neighbors=3)) :: pass drot.fuzzy_union\(plan\)
drot.umap(P) :: ^plan must be symmetric; entries
quick(metric="cosine").fit(ZERO) | drot.UMAP(n_neighbors=4, metric="cosine").fit(ZERO)
    :: ^row 5 of X is zero: it has no cosine distance; drop it$
quick(metric="correlation").fit(ZERO + 3) :: ^row 5 of X is constant: it has no correlation
drot.random_start(X) :: TypeError: ^n must be .* of at least 2; got ndarray of shape \(8, 3\)$
called(X) | called(torch.ones(3)) | drot.tsne(drot.symmetrize(P), callback=lambda *what: X)
    :: TypeError: ^callback must return True to stop, or nothing; it returned a (ndarray|Tensor)$
rowwise(MANY @ MANY.T < 1) | rowwise(drot.sqeuclidean(MANY, block=6))
    :: ^perplexity=3 .* row 0 needs more than 5.*; raise the perplexity above 20 for all rows, or
drot.self_tuning_affinity(drot.sqeuclidean(COPIES), n_neighbors=1)
    :: row 3 has 1 or more copies.*raise n_neighbors
drot.sqeuclidean(LARGE, block=10).dense()
    | symmetric(drot.sqeuclidean(LARGE, block=None))
    | drot.reduce_then_cluster(drot.gram(LARGE), 3, kernel="gram")
    :: MemoryError: 2000000 x 2000000 .* 14901.2 GiB.*block=
drot.entropic_affinity(C, perplexity=7.0, diagonal="drop")
    :: out of reach: row 0 has 7 points .* allows less than 7; lower
drot.entropic_affinity(C, perplexity=5.0, n_neighbors=4)
    :: out of reach: row 0 has 4 points .* allows less than 4; lower
rowwise(X) | symmetric(X) | drot.self_tuning_affinity(X) | drot.umap_membership(X, n_neighbors=3)
    :: cost.*square.*\(8, 3\).*drot\.sqeuclidean\(X\)
symmetric(ODD[0]) | symmetric(ODD[1]) | doubly(ODD[0]) | doubly(ODD[1]) :: must be symmetric
symmetric(FAR) | doubly(FAR) :: must be finite for all pairs .* inf at row 0, col
symmetric(FEW) | doubly(FEW) :: entries \(0, 1\) and \(1, 0\) are 1 and 3
rowwise(C, other(0.5)) | symmetric(C, other(0.5))
    :: out of reach: row 5 needs more than 1; raise
rowwise(C, other(8.0)) | symmetric(C, other(8.0))
    :: out of reach: row 5 has 8 points .* allows less than 8; lower
rowwise(C, other(math.nan)) | symmetric(C, other(math.nan))
    :: perplexity must be positive, and is NaN at row 5
rowwise(TIED)
    :: row 4 needs more than 3, as 3 of its points are equally near \(copies, .*\); raise
rowwise(drot.sqeuclidean(TWINS, block=3), 1.5)
    :: row 13 needs more than 2, as 2 of its points are equally near \(copies, .*\); raise
rowwise(np.zeros((5, 5)), 2.0)
    :: out of reach: row 0 has 5 entries, all equal, .* remove copies .*, or add columns
rowwise(C, None) :: TypeError: perplexity
drot.sqeuclidean(rowwise(C)) | drot.spectral.pca(drot.sqeuclidean(X))
    :: TypeError: ^X is of type \w+; pass the points it compares$
rowwise(rowwise(C)) | drot.nearest(rowwise(C), n_neighbors=3)
    :: TypeError: ^cost is of type EntropicAffinity, no array; pass its cost$
drot.row_entropy(drot.sqeuclidean(X)) :: plan holds distances, small .* an affinity of it$
drot.kl_divergence(np.ones((2, 3)), CYCLE) | drot.kl_divergence(CYCLE, np.ones((2, 3)))
    | drot.kl_divergence(np.ones(3), np.ones((1, 3))) :: differ in shape
drot.gaussian_affinity(TIED, perplexity=1.14) :: between 1.1472 .* and 8\b
drot.gaussian_affinity(np.ones((4, 4)), perplexity=2.0)
    :: perplexity of 2 is out of reach: .* all equal, and it is 4 whatever the bandwidth; remove
drot.gaussian_affinity(C) | drot.gaussian_affinity(C, bandwidth=1.0, perplexity=3.0)
    | drot.doubly_stochastic_affinity(C)
    | drot.doubly_stochastic_affinity(C, bandwidth=1.0, perplexity=3.0)
    :: exactly one of bandwidth and perplexity
coupling(2 * P) :: row 0.*sums to 2.*one edge.*support.*drot.entropic_affinity
coupling(drot.symmetrize(P)) :: prior='row'.*support
coupling(P / 8, prior="edges") :: mass 1.*n = 8 edges.*support.*n over its mass
coupling(changed(P, 2, 5, 1.5), prior="binary")
    :: 1.5 at row 2, column 5.*once or not at all; pass probabilities.*support
coupling(log_kernel=changed(-C, 2, 5, -math.inf), prior="binary")
    :: row 2, column 5, but must be 0 where log_kernel is -inf.*support
drot.graphs.graph.as_graph([[0, 0.5], [-0.5, -3.0]]) :: \(-0\.5\) at row 1, column 0
drot.fuzzy_union([[1, 0.5], [1.5, 3]]) :: above 1 \(1\.5\) at row 1, column 0
components().mean(X[:2, :1]) :: 2 points and the graph 3 nodes
components().mean(X[:4, :1]) :: 4 points and the graph 3 nodes
components(device="meta").mean(X[:3]) | components(device="meta").center(X[:3]) :: on meta; mo
drot.graphs.graph_log_probability([[0.0]], np.zeros((3, 3))) :: 1 nodes.*3 rows
drot.expected_graph([[0, 0.2, 0.8], [1, 0, 0], [0, 1, 0]]) :: not their log
density(lambda x: x) :: must return a \(6,\) tensor.*\(6, 1\)
density(lambda x: 3.0) :: must return a \(6,\) tensor; got float
density(lambda x: x[:, 0] / 0) | density(lambda x: x[:, 0] + math.inf) :: NaN or \+inf
graph([0, 1], 1.0) | graph([[0, 1, 2]] * 3, [1.0] * 3) | graph([[0, 1, 2]] * 2, [1.0] * 2)
    :: edges must be \(2, m\) and weights \(m,\)
graph([[0], [3]], [1.0]) | graph([[-1], [2]], [1.0]) | graph([[0.5], [1]], [1.0])
    :: join the nodes 0 to 2, by whole numbers; got
graph([[0], [1]], [0.0]) | graph([[0], [1]], [math.inf]) :: positive and fin
graph(torch.tensor([[0], [1]]), torch.ones(1, device="meta"))
    :: edges is on cpu and weights on meta
graph([[1, 1], [2, 2]], [1, 1]) :: from 1 to 2 is listed twice
graph([[2, 0, 2], [1, 2, 1]], [1, 1, 1]) :: from 2 to 1 is listed tw
graph([[0], [1]], [1.0], n=0) :: n must be .*at least 1
drot.tsne(1 - np.eye(8), init=X[:, :2], n_components="2")
    :: TypeError: n_components must be a whole number of at least 1; got '2'
drot.BernoulliLoss(np.eye(8)) | drot.SNELoss(np.eye(8)) | drot.SNELoss(EVEN, normalization="rows")
    :: mass on its diagonal.*diagonal='drop'
drot.SNELoss(np.zeros((3, 3))) :: zero everywhere
drot.SNEkhornLoss(changed(changed(EVEN, 1, 3, 0.12501), 0, 2, 0.125001)) :: \(1, 3\) and \(3, 1\)
drot.SNEkhornLoss(2 * EVEN) :: row \d+ sums to 2; pass
drot.SNELoss(1 - np.eye(4)).latent_plan(np.full((4, 2), np.nan)) :: Z has a non
drot.umap_curve(2.0) :: min_dist must be from 0 to 1; got 2
drot.BernoulliLoss(changed(P, 2, 5, 1.5)) :: 1.5.*row 2, column 5.*repulsion=1.*probabilities
shared(np.triu(np.ones((5, 5))))
    :: similarity must be symmetric.*entries \(0, 1\) and \(1, 0\) are 1 and 0
shared(X) :: X must be square \(n, n\) with .*='precomputed'.*\(8, 3\).*another similarity
shared(squares(20)) :: similarity holds distances
shared(KERNEL).predict(X) :: X has 3 features, but .* is expecting 8 features
drot.TSNE(metric="correlation", perplexity=3.0, tol=1.0).fit(X).transform([[1.0, 1, 1]])
    :: no correlation distance
drot.tsne(X) | drot.umap(X) | drot.snekhorn(X) | drot.SNELoss(X)
    :: plan must be a square .*\(8, 3\).* take an estimator, as drot\.TSNE\(\)
drot.TSNE().fit(drot.sqeuclidean(X))
    :: TypeError: TSNE takes an array of points.*pass the points, .* drot.entropic_affinity$
drot.TSNE().fit(drot.gaussian_affinity(C, bandwidth=1.0))
    :: TypeError: TSNE takes an array of points.*pass the points, .* drot.tsne$
drot.snekhorn(rowwise(C)) | drot.snekhorn(P)
    :: must be symmetric with rows of sum 1; column . sums to .*pass drot.symmetric_entropic
drot.snekhorn(drot.symmetrize(P)) :: symmetric with rows of sum 1; row . sums to .*pass drot.symm
drot.snekhorn(CYCLE) :: must be symmetric; .*drot.symmetrize gives the nearest
drot.ccpca(X[:, :1], 2) | drot.umap_membership(C[:2, :2], n_neighbors=3)
    :: must be ., for the input allows no other number; got .$
drot.umap_membership(drot.nearest(C, n_neighbors=3), n_neighbors=5)
    :: row 0.*fewer than 4 finite entries
drot.distributional_reduction(C, 3, init=None) | drot.srgw_barycenter(C, 3, init=None)
    :: TypeError: ^init is of type NoneType; pass '.*, a plan or a res
drot.srgw_barycenter(1e-170 * C, 3)
    | drot.semi_relaxed_gw(1e-170 * C, 1e-170 * C[:3, :3])
    | drot.gw_objective(1e-170 * C, 1e-170 * C, P / 8)
    | drot.distributional_reduction(1e-170 * C, 3, kernel="gram")
    | drot.distributional_reduction(1e-18 * np.float32(KERNEL), 2, kernel="gram")
    | drot.distributional_reduction(1e-160 * KERNEL, 3)
    :: ^squares of these similarities underflow; give them in smaller units$
drot.semi_relaxed_gw(1e200 * KERNEL, 1e200 * KERNEL) | drot.semi_relaxed_gw(KERNEL, 1e200 * KERNEL)
    | drot.srgw_barycenter(1e200 * KERNEL, 2) | drot.srgw_barycenter(8e37 * SIGNS, 2)
    | drot.gw_objective(1e200 * KERNEL, 1e200 * KERNEL, EVEN / 8)
    | drot.gromov.gw_gradient(1e200 * KERNEL, 1e200 * KERNEL, EVEN / 8)
    | drot.distributional_reduction(1e180 * KERNEL, 3)
    :: ^squares of these similarities overflow; give them in larger units$
drot.distributional_reduction(drot.gram(1e10 * torch.tensor(X).float()), 3, kernel="gram")
    | drot.srgw_barycenter(np.float32(9e37 * (1 + KERNEL)), 2, loss="kl")
    | drot.semi_relaxed_gw(*2 * [np.float32(9e37 * (1 + KERNEL))], loss="kl")
    | drot.srgw_barycenter(np.full((4, 4), 1e308), 2, loss="kl")
    | drot.srgw_barycenter(1.7e308 * KERNEL, 2, loss="kl")
    | drot.semi_relaxed_gw(1.7e308 * KERNEL, KERNEL[:2, :2], loss="kl")
    :: ^the objective of these similarities overflows; give them in larger units$
drot.srgw_barycenter(1e-300 * KERNEL, 2, loss="kl")
    | drot.semi_relaxed_gw(KERNEL, 1e-300 * KERNEL[:2, :2], loss="kl")
    | drot.distributional_reduction(1e-300 * KERNEL, 2)
    | drot.kernel_kmeans(np.float32(1e-44 * KERNEL), 2) | drot.kernel_kmeans(5e-324 * KERNEL, 2)
    :: ^the entries of .* underflow; give them in smaller units$
drot.plot.scatter(X, beside=1)
    | drot.costs.Factored(X, X[::-1], symmetric="no")
    :: TypeError: ^(beside|symmetric) must be True or False; got ('no'|1)$
drot.cluster_then_reduce(KERNEL, 3, centres=lambda T: KERNEL)
    :: ^centres must return a \(3, 3\) array; got \(8, 8\)$
drot.cluster_then_reduce(KERNEL, 3, centres="mean") :: TypeError: ^centres must be a function
drot.metrics.prototype_homogeneity(P, [None, *"abbabba"])
    | drot.metrics.prototype_homogeneity(P, [np.nan, 1, 1, 2, 2, 1, 2, 2])
    :: ^y has missing labels; leave out the points that have none$
drot.SNEkhornLoss(np.eye(8)).evaluate(X) | drot.SNEkhornLoss(np.eye(8)).evaluate(torch.ones(8, 2))
    :: TypeError: ^Z must be a tensor of torch.float64, as the plan; got (ndarray|torch.float32)$
drot.semi_relaxed_gw(KERNEL, np.eye(2, dtype="f4")) :: float64 and cost_z is torch.float32
drot.semi_relaxed_gw(KERNEL, [[1, -1], [-1, 1]], loss="kl") :: entry \(0, 1\) is -1
drot.gromov.coarsen(np.eye(3), [0, 1, 3]) :: has the label 3; 3 points have fewer
drot.gromov.coarsen(np.eye(3), [0, 2, 2]) | drot.gromov.coarsen(np.eye(3), [[1 / 3, 0]] * 3)
    :: leaves cluster 1 empty
drot.costs.Factored(np.eye(3), np.ones((3, 1))) :: must have as many columns
drot.costs.Factored(X, points=X[:3]) :: points has 3 rows
drot.costs.Factored(X, points="a") :: TypeError: points
drot.srgw_barycenter(KERNEL, 3, init=["random", 3]) | drot.srgw_barycenter(KERNEL, 3, init=())
    :: ^init=(3|..) does not exist; choose from 'kmeans'
drot.distributional_reduction(0 * C, 2) :: ^similarity is zero everywhere
drot.hyperbolic.distributional_reduction(KERNEL, 3, init=euclidean())
    :: ^row . of init is not on the hyperboloid
drot.hyperbolic.distances([[1.25, 0.75], [-1.25, 0.75]]) :: ^row 1 of Z is not on the hyperboloid
drot.hyperbolic.distances(sheet(180.0)) :: row 0 of Z has the height 7e\+77, and means over
drot.hyperbolic.distances(sheet(60.0).float()) :: means overflow past 5e\+18
drot.hyperbolic.distributional_reduction(KERNEL, 4, scale=1e-120) :: scale=1e-120 must lie from
drot.hyperbolic.distributional_reduction(KERNEL, 4, scale=1e3) :: scale=1000 must lie from
drot.cluster_then_reduce(KERNEL, 3, centres=lambda T: math.nan * T[:3])
    :: ^what centres returned has a non-finite entry
drot.gram(drot.DistR(2, similarity="gram").fit(TWINS)) :: TypeError: .*its embedding_
drot.plot.scatter(drot.TSNE()) :: NotFittedError: this TSNE is not fitted yet
draw_graph(None, X, C) :: X must be \(n, 2\) and .*; got \(8, 3\) and \(8, 8\)$
draw_graph(None, X[:, :2], C[:7, :7]) :: X must be \(n, 2\) and .*; got \(8, 2\) and \(7, 7\)$
draw_graph(None, X[:7, :2], 1.0) :: weights must be a square \(n, n\) array
draw_graph(None, X[:, :2], np.nan * C) :: weights has a non-finite entry \(NaN\) at row 0
draw_graph(None, X[:, :2], drot.sqeuclidean(X)) :: weights holds distances, small where
plotted(size=-1) | plotted(size=0) | plotted(size=math.nan) :: ^size must be positive and fin
plotted([*"abababa"]) :: y has 7 entries and the map 8 points
plotted([*"aaaabbbb"], names=["B"]) :: names has 1 entries and y 2 classes
plotted(np.zeros((8, 1))) :: one class per point; got shape \(8, 1\); pass y.ravel\(\)$
plotted(np.arange(8).astype("M8[ns]")) | plotted(8 * [datetime.date(2026, 1, 1)])
    :: TypeError: ^y holds dates; pass numbers
plotted(ax=plt.figure()) :: TypeError: ^ax must be one Axes, .*; got Figure$
drot.plot.scatter(points(9)) :: shape \(n, 2\); got \(9, 3\); pass two columns, Z\[:, :2\]$
plotted(images=np.zeros((8, 9))) :: images must have shape \(n, h, w\)
drot.plot.panels(0) :: count must be a whole number of at least 1; got 0
drot.plot.panels(1, side=-1) :: side must be positive and finite; got -1.0
drot.plot.scale_bar(drot.plot.panels(1)[0], np.ones((3, 2)))
    | drot.plot.scale_bar(drot.plot.panels(1)[0], np.eye(3)) :: in the plane of positive size
known(X) :: must be square \(n, n\) with metric=.* shape \(8, 3\)
known(KERNEL) :: holds similarities, not dist
known(-C) :: Negative values in data: .* distances
known(np.triu(C)) :: the distances X .*symmetric
known(C, init="pca") :: init='pca' needs points
drot.datasets.digits(9) :: from 10 to 1797; got 9
drot.datasets.three_gaussians(spreads=(1, 2)) :: spreads must list 3 values
drot.datasets.circles(dimension=1) :: dimension must be a whole number of at least 2
drot.datasets.load("coil20", n_components=51) :: number from 1 to 50; got 51
drot.datasets.load("digits") :: call drot.datasets.digits\(\)$
drot.TSNE(n_iter=500) | drot.TSNEkhorn(n_iter=500)
    :: TypeError: ^TSNE(khorn)? got .* 'n_iter'; its parameters are n_components, perplexity, .*
drot.TSNE(X).fit(X) :: TypeError: ^n_components must be .* at least 1; got ndarray of shape
drot.TSNE(random_state="a").fit(X) :: TypeError: also a RandomState, or None\); got 'a'$
drot.datasets.load("scgem", n_components=3) :: scgem is a table
"""
SENTENCES = [
    (eval(f"lambda: {call}"), words)
    for calls, words in (re.split(r"\s+:: ", x) for x in re.split(r"\n(?! )", TABLE.strip("\n")))
    for call in re.split(r"\s+\| ", calls)
]


@pytest.mark.parametrize(("call", "words"), SENTENCES)
def test_one_sentence(call, words, monkeypatch):
    """It says what is wrong, where, and what to do; before any file is looked for."""
    monkeypatch.setattr("drot.datasets.fetch.find", None)
    with pytest.raises((ValueError, TypeError, MemoryError)) as caught:
        call()
    kind, text = caught.type.__name__, str(caught.value)
    expected, colon, words = words.rpartition("Error: ")
    assert kind == (f"{expected}Error" if colon else "ValueError"), text
    assert re.search(words, text), text
    assert "\n" not in text and len(text) < 300


@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_one_odd_row_of_many_tiles_is_noticed(size):
    """Of a cost met in tiles every row counts, though not every pair is compared."""
    n = 400
    Y = np.c_[np.arange(n), points(n)]

    def odd(x, y, more=size):
        return (x[:, None, 1:] - y[None, :, 1:]).square().sum(-1) + more * (x[:, :1] == 1)

    for solve in (doubly, symmetric):
        with pytest.raises(ValueError, match=r"entries \((1, \d+|\d+, 1)\) and"):
            solve(drot.pairwise(odd, Y, block=100), 30.0)
        plan = solve(drot.pairwise(partial(odd, more=0.0), Y, block=100), 30.0).plan
        assert torch.equal(plan, plan.T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_is_no_asymmetry(dtype):
    """Gram matrices by matrix products, each triangle rounded in its own way."""
    Y = torch.tensor(points(90)).to(dtype) + 1e2
    noise = torch.randn(90, 90, dtype=dtype, generator=torch.Generator().manual_seed(0))
    lengths = Y.square().sum(dim=1)
    digits = 4 * torch.finfo(dtype).eps * noise
    K = (Y @ Y.T) + digits * (lengths[:, None] * lengths).sqrt()
    assert not torch.equal(K, K.T)
    drot.spectral.kernel_pca(K, 1)
    K[3, 4] += 1e-3 * K[3, 4].abs()
    with pytest.raises(ValueError, match="must be symmetric"):
        drot.spectral.kernel_pca(K, 1)
    drot.SNEkhornLoss(changed(EVEN, 1, 3, 0.125 + 1e-8))


def test_numbers_of_any_library():
    """NumPy and torch scalars are numbers, and counts may come from `np.arange`."""
    plain = drot.gaussian_affinity(C, bandwidth=1.5).plan
    for value in (np.float32(1.5), torch.tensor(1.5), np.array(1.5)):
        assert torch.equal(drot.gaussian_affinity(C, bandwidth=value).plan, plain)
    assert drot.nearest(C, n_neighbors=np.int64(3)).shape == (8, 8)
    assert drot.sqeuclidean(X, block=np.int32(3)).block == 3
    one, other = (drot.srgw_barycenter(KERNEL, 3, refine=flag) for flag in (True, np.True_))
    assert torch.equal(one.plan, other.plan)


# Where ten points are at rest after a move or two: tests/properties/test_gromov.py
SETTLED = ("drot.semi_relaxed_gw", "drot.srgw_barycenter", "drot.kernel_kmeans")
BUDGETS = [name for name in ROWS if "on_failure" in parameters(name) and name not in SETTLED]


@pytest.mark.parametrize("name", BUDGETS)
def test_not_converged(name):
    """Out of budget: raise by default; warn or stay quiet on request; never converged."""
    given = ROWS[name].good() | {"max_iter": 1, "tol": 1e-300}
    given |= {"init": "random"} if name in STARTS else {}
    given |= {"n_starts": 1} if "n_starts" in parameters(name) else {}
    given.pop("on_failure", None)
    for more in ({}, {"on_failure": "raise"}):
        with pytest.raises(drot.NotConverged, match=r"residual is .* after [01] it") as caught:
            thing(name)(**given, **more)
        for remedy in ("tol=1e-300", "max_iter", "on_failure='ignore'"):
            assert remedy in str(caught.value)
    with pytest.warns(RuntimeWarning, match="residual is") as seen:
        found = [thing(name)(**given, on_failure="warn")]
    assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.append(thing(name)(**given, on_failure="ignore"))
    for result in found:
        assert result.converged is False and 0 < result.residual < math.inf
        assert result.n_iter <= 1
