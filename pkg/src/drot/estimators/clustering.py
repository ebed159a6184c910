"""scikit-learn's interface to what matches a similarity: srGW clustering and DistR."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from .._core.checks import as_count, check_choice
from .._core.run import read_limits
from ..affinities.base import symmetrize
from ..affinities.rows import entropic_affinity
from ..affinities.umap import membership_rows, umap_membership
from ..costs.distances import sqeuclidean
from ..costs.factored import factored_sqeuclidean, gram
from ..distributional.loss import loss_of
from ..distributional.reduction import Clustering, DistributionalReduction, OutputKernel
from ..distributional.solve import distributional_reduction
from ..graphs.graph import fuzzy_union
from ..gromov.barycenter import SemiRelaxedBarycenter, srgw_barycenter
from ..gromov.loss import Loss, LossName, as_loss
from .base import BaseEmbedding, ClusterMixin, Estimator, as_precomputed, with_parameters

Similarity = Literal["sqeuclidean", "gram", "symmetric_entropic", "precomputed"]
ReductionSimilarity = Literal[
    "symmetric_entropic", "symmetrized_entropic", "umap", "gram", "precomputed"
]  # fmt: skip


def _squares(model, X: Tensor):
    n, p = X.shape  # a product takes 2 n (p + 2) or n^2 multiplications a column
    return factored_sqeuclidean(X) if 2 * (p + 2) < n else sqeuclidean(X)


def _costs_to(model, cost: Tensor, rows: Tensor) -> Tensor:
    return cost


def _products_to(model, cost: Tensor, rows: Tensor) -> Tensor:
    fitted = torch.as_tensor(model._points).to(cost)
    half = cost - (fitted - fitted.mean(dim=0)).square().sum(dim=1)
    return (half.mean(dim=1, keepdim=True) - half) / 2


def _symmetric(model, X: Tensor) -> Tensor:
    return model._symmetric_affinity(model._distances(X)).plan


def _symmetrized(model, X: Tensor) -> Tensor:
    return symmetrize(entropic_affinity(model._distances(X), perplexity=model.perplexity))


def _fuzzy(model, X: Tensor) -> Tensor:
    cost = model._distances(X)
    return fuzzy_union(umap_membership(cost, n_neighbors=model.n_neighbors))


# C of the fitted points (n, p), and the rows (b, n) of new ones, from their costs and numbers (b,)
SIMILARITIES = {
    "sqeuclidean": (_squares, _costs_to),
    "gram": (lambda model, X: gram(X - X.mean(dim=0)), _products_to),
    "symmetric_entropic": (_symmetric, Estimator._new_rows),
    "symmetrized_entropic": (_symmetrized, Estimator._new_rows),
    "umap": (_fuzzy, lambda model, cost, rows: membership_rows(cost, model.n_neighbors)),
    "precomputed": (lambda model, X: as_precomputed(X, "similarity"), _costs_to),
}


@with_parameters
class SimilarityEstimator(ClusterMixin, Estimator):
    """Points, their similarity C, and what matches it; ``"precomputed"`` takes X itself for C."""

    _similarities: ClassVar[Any]
    _: KW_ONLY
    similarity: Any = "symmetric_entropic"
    init: Any = ("kmeans", "spectral")
    n_starts: int = 4
    max_iter: int = 1000
    tol: float | None = None

    def predict(self, X) -> np.ndarray:
        r"""Labels (b,) of new points X (b, p), or of similarities to the fitted ones X (b, n).

        The fitted points keep their plan T and its structure. A new one, each by itself, has its
        own row c of similarities (of an affinity, the one row of its perplexity), and goes where a
        little of its mass raises :math:`E_L` least:

        .. math:: \min_k \; \sum_{jl} L(c_j, \bar C_{kl}) \, T_{jl} .

        A copy of a fitted point has its label; parameters are those of the fit. Nothing is claimed
        of what a fit to old and new points together would find. Memory: tiles of b x n.
        """
        return self._extend(X, self.labels_, lambda was, C: (was._assign(C), 0.0))

    def _assign(self, C: Tensor) -> Tensor:
        """Labels of new points with the similarities C (b, n)."""
        C, found = C.double(), self.result_
        T, q, structure = (x.to(C) for x in (found.plan, found.weights, found.structure))
        structure = (structure + structure.T) / 2  # all that counts, as C is
        loss = self._loss()
        raised = loss.f2(structure) @ q - (C @ T) @ loss.h2(structure)  # (b, k)
        return raised[:, : q.count_nonzero()].argmin(dim=1)

    def _keep(self, found) -> None:
        """The columns of a plan: of first points in their order, others with mass, the rest."""
        used, last = found.weights.nonzero()[:, 0].tolist(), range(found.plan.shape[1])
        order = list(dict.fromkeys([*found.labels.tolist(), *used, *last]))
        more = {"Z": found.Z[order]} if hasattr(found, "Z") else {}
        structure = found.structure[order][:, order]
        found = replace(found, plan=found.plan[:, order], structure=structure, **more)
        self.result_, self.labels_ = found, found.labels.cpu().numpy()
        self.objective_, self.n_iter_ = found.objective, max(1, found.n_iter)
        self.weights_ = found.weights.cpu().numpy()

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _similarity(self) -> str:
        check_choice("similarity", self.similarity, self._similarities)
        return self.similarity

    def _check(self, clusters: str, least: int, n: int) -> None:
        """Refuse options before there is an affinity."""
        self._loss()
        as_count(clusters, getattr(self, clusters), least, n)
        as_count("n_starts", self.n_starts, 1)
        read_limits(self.tol, self.max_iter, "ignore", torch.float64)

    def _cost(self, points: Tensor):
        return SIMILARITIES[self._similarity()][0](self, points)

    def _tiles_to(self, points: Tensor, fitted: Tensor):
        if self.similarity == "precomputed":
            return lambda rows: points[rows]
        return super()._tiles_to(points, fitted)

    def _copies(self, tile: Tensor) -> tuple[Tensor, Tensor]:
        same, first = super()._copies(tile)
        return same & (self.similarity != "precomputed"), first  # of similarities nobody knows

    def _new_rows(self, cost: Tensor, rows: Tensor) -> Tensor:
        return SIMILARITIES[self._similarity()][1](self, cost, rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.similarity == "precomputed"
        return tags


@with_parameters
class SemiRelaxedGWClustering(SimilarityEstimator):
    r"""Clustering by a semi-relaxed Gromov-Wasserstein (srGW) barycentre of the similarity.

    A similarity C between the rows of X is matched with one between k clusters,
    :math:`\min_{\bar C, T} E_L(C, \bar C, T)`, by :func:`drot.srgw_barycenter`; the
    columns of the plan are the clusters.

    Source: (srGWB) in section 4.2 of Van Assel et al. (2024); book ``thm-hard-plans``.

    Parameters
    ----------
    n_clusters : int
        :math:`k`, at most the number of points. Fewer may be found.
    similarity : {"symmetric_entropic", "sqeuclidean", "gram", "precomputed"}
        The symmetric entropic affinity; squared distances or inner products of the centred rows,
        held in factors where these are thin; or X itself, symmetric (n, n), of distances or of
        similarities, or an affinity, as ``drot.symmetric_entropic_affinity(D**2, perplexity=30)``
        of distances D by any other metric. Of an adjacency matrix the clusters are blocks of equal
        ties, such as hubs and leaves, which need not be communities.
    perplexity : float
        :math:`\xi` of the entropic affinity, below the number of points.
    loss : {"square", "kl"}
    init : {"kmeans", "spectral", "random"}, several, (n, k) plan, or SemiRelaxedBarycenter
        Where the clusters start. Default: the first two.
    n_starts : int
        Starts of each kind. Ends may agree above the best: fit from two seeds, the lower
        ``objective_`` wins.
    max_iter : int
        Iterations from each start.
    tol : float, optional
        Largest accepted gap; see :func:`drot.srgw_barycenter`.
    random_state, device, dtype, verbose
        As in :class:`SNE`.
    callback : callable, optional
        Called as ``callback(iteration, residual, plan)`` at the start and after each
        iteration; returning True ends the run, and the estimator keeps what was found.

    Attributes
    ----------
    labels_ : ndarray, shape (n,)
        Clusters from 0 on, in the order of their first points, none of them empty.
    structure_ : ndarray, shape (k, k)
        :math:`\bar C`, for the clusters that are not empty.
    weights_ : ndarray, shape (k,)
        Their shares of the points.
    objective_ : float
        :math:`E_L`, in squared units of the similarity, or in its unit for ``"kl"``.
    n_iter_ : int
    result_ : SemiRelaxedBarycenter
        Its columns in the order of ``labels_``, empty ones last.
    n_features_in_ : int

    Raises
    ------
    ValueError
        If X is not finite, of fewer points than clusters or, as a similarity, not symmetric; if the
        perplexity is out of reach, ``init`` does not fit, or a name does not exist.
    Interrupted
        As in :class:`SNE`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 2)) + 9 * np.repeat([0, 1, 2], 10)[:, None]
    >>> model = SemiRelaxedGWClustering(3, perplexity=5, random_state=0).fit(X)
    >>> model.labels_.reshape(3, 10).std(axis=1).tolist(), model.weights_.round(2).tolist()
    ([0.0, 0.0, 0.0], [0.33, 0.33, 0.33])
    """

    _similarities = Similarity
    n_clusters: int = 8
    _: KW_ONLY
    similarity: Similarity = "symmetric_entropic"
    perplexity: float = 30.0
    loss: LossName = "square"

    def _task(self, points: Tensor, seed: int):
        self._check("n_clusters", 1, len(points))
        solve = partial(
            srgw_barycenter, self._cost(points), self.n_clusters, loss=self.loss, init=self.init,
            n_starts=self.n_starts, tol=self.tol, max_iter=self.max_iter, random_state=seed,
            on_failure="ignore",
        )  # fmt: skip
        return "clustering", solve

    def _loss(self) -> Loss:
        return as_loss(self.loss)

    def _keep(self, found: SemiRelaxedBarycenter) -> None:
        super()._keep(found)
        k = np.count_nonzero(self.weights_)
        self.weights_ = self.weights_[:k]
        self.structure_ = self.result_.structure[:k, :k].cpu().numpy()


@with_parameters
class DistR(SimilarityEstimator, BaseEmbedding):
    r"""Distributional reduction (DistR): few weighted prototypes stand for all points.

    A similarity C between the rows of X is matched with one between the positions Z of k
    prototypes, :math:`\min_{Z, T} E_L(C, \bar C(Z), T)`, by
    :func:`drot.distributional_reduction`. The plan T says which prototypes stand for a point.

    Source: (DistR) in section 4.1 of Van Assel et al. (2024); book ``eq-distr``.

    Parameters
    ----------
    n_prototypes : int
        :math:`k`, from 2 to the number of points. Some may stay without weight.
    n_components : int
        :math:`q`, coordinates of the prototypes.
    perplexity : float
        :math:`\xi` of an entropic similarity, below the number of points.
    similarity : {"symmetric_entropic", "symmetrized_entropic", "umap", "gram", "precomputed"}
        The symmetric entropic affinity, the mean of an entropic affinity and its transpose,
        the fuzzy graph of UMAP, inner products of the centred rows (in factors), or X itself,
        symmetric (n, n) or an affinity, large where points are alike: no distances. Of such, D,
        ``drot.symmetric_entropic_affinity(D**2, perplexity=30)`` is one. Default: the first, or
        ``"gram"`` where the kernel is.
    n_neighbors : int
        Of ``"umap"``; see :func:`drot.umap_membership`.
    kernel : {"student", "gaussian", "gram"}, optional
        Of the prototypes. Default: the first, or ``"gram"`` where the similarity is.
    init : {"cluster_then_reduce", "reduce_then_cluster", "random"}, several, plan, or result
        Default: the first two.
    n_starts : int
        Starts of each kind.
    clustering : {"spectral", "kmeans"}
        Of the starts.
    max_iter : int
        Rounds of both blocks, from each start.
    tol : float, optional
        Largest accepted residual; see :func:`drot.distributional_reduction`.
    random_state, device, dtype, verbose
        As in :class:`SNE`.
    callback : callable, optional
        Called as ``callback(round, residual, Z)`` at the start and after each
        iteration; returning True ends the run, and the estimator keeps what was found.

    Attributes
    ----------
    labels_ : ndarray, shape (n,)
        Where most of each point's mass goes, from 0 on in the order of the first points.
    prototypes_ : ndarray, shape (k, q)
        Positions, in the order of ``labels_``; those without weight come last.
    weights_ : ndarray, shape (k,)
        Their shares of the points, of sum 1.
    plan_ : ndarray, shape (n, k)
        :math:`T`, of total mass 1.
    embedding_ : ndarray, shape (n, q)
        Each point at the mean of its prototypes: for a hard plan, at its own.
    objective_ : float
        As in :class:`SemiRelaxedGWClustering`.
    n_iter_ : int
    result_ : DistributionalReduction
        Its columns in the same order.
    n_features_in_ : int

    Raises
    ------
    ValueError
        As in :class:`SemiRelaxedGWClustering`.
    Interrupted
        As in :class:`SNE`.

    Notes
    -----
    ``predict`` gives new points a prototype, and leaves plan and prototypes as they are.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4)) + 9 * np.repeat([0, 1, 2], 10)[:, None]
    >>> model = DistR(3, perplexity=5, random_state=0).fit(X)
    >>> model.labels_.reshape(3, 10).std(axis=1).tolist(), model.prototypes_.shape
    ([0.0, 0.0, 0.0], (3, 2))
    """

    _similarities = ReductionSimilarity
    n_prototypes: int = 20
    n_components: int = 2
    perplexity: float = 30.0
    _: KW_ONLY
    similarity: ReductionSimilarity | None = None
    n_neighbors: int = 15
    kernel: OutputKernel | None = None
    init: Any = ("cluster_then_reduce", "reduce_then_cluster")
    n_starts: int = 2
    clustering: Clustering = "spectral"
    max_iter: int = 100

    def _task(self, points: Tensor, seed: int):
        self._check("n_prototypes", 2, len(points))
        as_count("n_components", self.n_components, 1)
        check_choice("clustering", self.clustering, Clustering)
        solve = partial(
            distributional_reduction, self._cost(points), self.n_prototypes, kernel=self._kernel(),
            n_components=self.n_components, init=self.init, n_starts=self.n_starts,
            clustering=self.clustering, tol=self.tol, max_iter=self.max_iter, random_state=seed,
            on_failure="ignore",
        )  # fmt: skip
        return "reduction", solve

    def _place(self, P: Tensor, Z: Tensor) -> tuple[Tensor, float]:
        return torch.as_tensor(self.prototypes_).to(P)[self._assign(P)], 0.0

    def _similarity(self) -> str:
        """By default that of the kernel."""
        usual = "gram" if self.kernel == "gram" else "symmetric_entropic"
        return usual if self.similarity is None else super()._similarity()

    def _kernel(self) -> OutputKernel:
        """By default that of the similarity."""
        if self.kernel is not None:
            return self.kernel
        return "gram" if self._similarity() == "gram" else "student"

    def _loss(self) -> Loss:
        return loss_of(self._kernel())

    def _keep(self, found: DistributionalReduction) -> None:
        super()._keep(found)
        self.prototypes_, self.plan_ = self.result_.Z.cpu().numpy(), self.result_.plan.cpu().numpy()
        self.embedding_ = self.plan_ / self.plan_.sum(axis=1, keepdims=True) @ self.prototypes_
