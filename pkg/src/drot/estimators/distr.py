"""scikit-learn's interface to distributional reduction: NumPy in, NumPy out."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from sklearn.base import ClusterMixin
from torch import Tensor

from .._core.checks import check_choice, check_count
from ..affinities.base import symmetrize
from ..affinities.rows import entropic_affinity
from ..affinities.symmetric import symmetric_entropic_affinity
from ..affinities.umap import umap_membership
from ..costs.array import as_pairwise, check_symmetric
from ..costs.distances import sqeuclidean
from ..costs.factored import gram
from ..distributional.reduction import DistributionalReduction, OutputKernel
from ..distributional.solve import distributional_reduction
from ..graphs.graph import fuzzy_union
from .base import BaseEmbedding, _bar, _read, warn_stopped

_SIMILARITIES = ("symmetric_entropic", "symmetrized_entropic", "umap", "gram", "precomputed")
# parameters that the function has under the same name
_OPTIONS = (
    *("n_components", "kernel", "normalization", "loss", "init", "n_starts", "clustering"),
    *("tol", "max_iter"),
)


class DistR(ClusterMixin, BaseEmbedding):
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
        :math:`\xi` of an entropic similarity, below the number of points; of ``"umap"`` the
        number of neighbours, rounded.
    similarity : {"symmetric_entropic", "symmetrized_entropic", "umap", "gram", "precomputed"}
        The symmetric entropic affinity, the mean of an entropic affinity and its transpose,
        the fuzzy graph of UMAP, inner products of the centred rows (in factors), or X itself,
        symmetric (n, n). Default: the first, or ``"gram"`` where the kernel is.
    kernel : {"student", "gaussian", "gram"}
        Of the prototypes.
    normalization : {"sum", "rows", "doubly_stochastic", "none"}, optional
    loss : {"kl", "square"}, optional
    init : {"cluster_then_reduce", "reduce_then_cluster", "random"}, several, plan, or result
        Default: the first two.
    n_starts : int
    clustering : {"spectral", "kmeans"}
        Of the starts.
    random_state : int, RandomState or None
        Seed of the starts. The same seed on the same device gives the same bits.
    max_iter : int
        Rounds of both blocks, from each start.
    tol : float, optional
        Largest accepted residual; see :func:`drot.distributional_reduction`.
    device : str or torch.device, optional
        Where to compute, for instance ``"cuda"``. Default: the CPU.
    dtype : {"float64", "float32"} or dtype, optional
        Of the computation. Default: the one of X; integers become float64.
    verbose : int
        1 shows a progress bar with the residual.

    Attributes
    ----------
    labels_ : ndarray, shape (n,)
        Where most of each point's mass goes, from 0 on in the order of the first points.
    prototypes_ : ndarray, shape (k, q)
        Positions; those without weight come last.
    weights_ : ndarray, shape (k,)
        Their shares of the points, of sum 1.
    plan_ : ndarray, shape (n, k)
        :math:`T`, of total mass 1.
    embedding_ : ndarray, shape (n, q)
        Each point at the mean of its prototypes: for a hard plan, at its own.
    objective_ : float
    n_iter_ : int
    result_ : DistributionalReduction
    n_features_in_ : int

    Notes
    -----
    There is no ``transform`` and no ``predict``: a new point would change the plan of all.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4)) + 9 * np.repeat([0, 1, 2], 10)[:, None]
    >>> model = DistR(3, perplexity=5, random_state=0).fit(X)
    >>> model.labels_.reshape(3, 10).std(axis=1).tolist(), model.prototypes_.shape
    ([0.0, 0.0, 0.0], (3, 2))
    """

    def __init__(
        self,
        n_prototypes: int = 20,
        n_components: int = 2,
        perplexity: float = 30.0,
        *,
        similarity=None,
        kernel="student",
        normalization=None,
        loss=None,
        init=("cluster_then_reduce", "reduce_then_cluster"),
        n_starts: int = 2,
        clustering="spectral",
        random_state=None,
        max_iter: int = 100,
        tol: float | None = None,
        device=None,
        dtype=None,
        verbose: int = 0,
    ) -> None:
        self.n_prototypes = n_prototypes
        self.n_components = n_components
        self.perplexity = perplexity
        self.similarity = similarity
        self.kernel = kernel
        self.normalization = normalization
        self.loss = loss
        self.init = init
        self.n_starts = n_starts
        self.clustering = clustering
        self.random_state = random_state
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.dtype = dtype
        self.verbose = verbose

    def fit(self, X, y=None):
        """Reduce the rows of X (n, p), or the similarity X (n, n); ``y`` is not used."""
        points, seed = _read(self, X)
        check_choice("kernel", self.kernel, get_args(OutputKernel))
        k = check_count("n_prototypes", self.n_prototypes, 2, len(points))
        cost, options = (
            self._cost(points),
            {name: getattr(self, name) for name in _OPTIONS},
        )
        with _bar("reduction", self.verbose) as callback:
            found = distributional_reduction(
                cost, k, **options, random_state=seed, callback=callback, on_failure="ignore"
            )
        warn_stopped(self, found.converged, found.residual)
        self.result_ = found = _ordered(found)
        self.labels_, self.prototypes_, self.weights_, self.plan_ = (
            x.cpu().numpy() for x in (found.labels, found.Z, found.weights, found.plan)
        )
        self.embedding_ = self.plan_ / self.plan_.sum(axis=1, keepdims=True) @ self.prototypes_
        self.objective_, self.n_iter_ = found.objective, max(1, found.n_iter)
        return self

    def _cost(self, points: Tensor):
        """The similarity of the points, or X itself."""
        default = "gram" if self.kernel == "gram" else "symmetric_entropic"
        similarity = default if self.similarity is None else self.similarity
        check_choice("similarity", similarity, _SIMILARITIES)
        match similarity:
            case "gram":
                return gram(points - points.mean(dim=0))
            case "symmetrized_entropic":
                return symmetrize(entropic_affinity(sqeuclidean(points), self.perplexity))
            case "umap":
                return fuzzy_union(umap_membership(sqeuclidean(points), round(self.perplexity)))
            case "symmetric_entropic":
                return symmetric_entropic_affinity(sqeuclidean(points), self.perplexity).plan
        cost = as_pairwise(points, "the similarity X")
        check_symmetric(cost, "the similarity X")
        return cost

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.similarity == "precomputed"
        return tags


def _ordered(found: DistributionalReduction) -> DistributionalReduction:
    """Prototypes in the order of their first points; those without any at the end."""
    order = list(dict.fromkeys([*found.labels.tolist(), *range(found.plan.shape[1])]))
    structure = found.structure[order][:, order]
    return replace(found, Z=found.Z[order], plan=found.plan[:, order], structure=structure)
