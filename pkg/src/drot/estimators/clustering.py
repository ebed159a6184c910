"""scikit-learn's interface to clustering by a semi-relaxed barycentre: NumPy in, NumPy out."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.random import RandomState
from sklearn.base import BaseEstimator, ClusterMixin
from torch import Tensor

from .._core.checks import check_choice, check_count
from ..affinities.symmetric import symmetric_entropic_affinity
from ..costs.distances import sqeuclidean
from ..costs.factored import factored_sqeuclidean, gram
from ..gromov.barycenter import SemiRelaxedBarycenter, srgw_barycenter
from ..gromov.contraction import Loss
from .base import _bar, _read, warn_stopped

Similarity = Literal["sqeuclidean", "gram", "entropic", "precomputed"]


@dataclass(eq=False, repr=False)
class SemiRelaxedGWClustering(ClusterMixin, BaseEstimator):
    r"""Cluster points by the small similarity that is closest to theirs.

    A similarity C between the rows of X is matched with one between k clusters,
    :math:`\min_{\bar C, T} E_L(C, \bar C, T)`, by :func:`drot.srgw_barycenter`; the
    columns of the plan are the clusters.

    Source: (srGWB) in section 4.2 of Van Assel et al. (2024); book ``thm-hard-plans``.

    Parameters
    ----------
    n_clusters : int
        :math:`k`, at most the number of points. Fewer may be found.
    similarity : {"sqeuclidean", "gram", "entropic", "precomputed"}
        Squared distances or inner products of the centred rows, held in factors; the symmetric
        entropic affinity; or X itself, symmetric (n, n).
    perplexity : float
        :math:`\xi` of the entropic affinity, below the number of points.
    loss : {"square", "kl"}
    init : {"kmeans", "spectral", "random"}, (n, k) plan, or SemiRelaxedBarycenter
        Where the clusters start.
    n_starts : int
    max_iter : int
        Iterations from each start.
    tol : float, optional
        Largest accepted gap; see :func:`drot.srgw_barycenter`.
    random_state : int, RandomState or None
        Seed of the starts. The same seed on the same device gives the same bits.
    device : str or torch.device, optional
        Where to compute, for instance ``"cuda"``. Default: the CPU.
    dtype : {"float64", "float32"} or dtype, optional
        Of the computation. Default: the one of X; integers become float64.
    verbose : int
        1 shows a progress bar with the residual.

    Attributes
    ----------
    labels_ : ndarray, shape (n,)
        Clusters from 0 on, in the order of their first points, none of them empty.
    structure_ : ndarray, shape (k, k)
        :math:`\bar C`, for the clusters that are not empty.
    weights_ : ndarray, shape (k,)
        Their shares of the points.
    objective_ : float
    n_iter_ : int
    result_ : SemiRelaxedBarycenter
    n_features_in_ : int

    Notes
    -----
    There is no ``predict``: a new point would change the structure.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 2)) + 9 * np.repeat([0, 1, 2], 10)[:, None]
    >>> model = SemiRelaxedGWClustering(3, random_state=0).fit(X)
    >>> model.labels_.reshape(3, 10).std(axis=1).tolist(), model.weights_.round(2).tolist()
    ([0.0, 0.0, 0.0], [0.33, 0.33, 0.33])
    """

    n_clusters: int = 8
    _: KW_ONLY
    similarity: Similarity = "sqeuclidean"
    perplexity: float = 30.0
    loss: Loss = "square"
    init: Any = "kmeans"
    n_starts: int = 4
    max_iter: int = 1000
    tol: float | None = None
    random_state: int | RandomState | None = None
    device: str | torch.device | None = None
    dtype: str | torch.dtype | type | None = None
    verbose: int = 0

    def fit(self, X, y=None):
        """Cluster the rows of X (n, p), or of the similarity X (n, n); ``y`` is not used."""
        points, seed = _read(self, X)
        k = check_count("n_clusters", self.n_clusters, 1, len(points))
        names = ("loss", "init", "n_starts", "max_iter", "tol")
        with _bar("clustering", self.verbose) as callback:
            found = srgw_barycenter(
                self._cost(points),
                k,
                **{name: getattr(self, name) for name in names},
                random_state=seed,
                callback=callback,
                on_failure="ignore",
            )
        warn_stopped(self, found.converged, found.residual)
        self.result_: SemiRelaxedBarycenter = found
        labels = found.labels.cpu().numpy()
        used, first, place = np.unique(labels, return_index=True, return_inverse=True)
        order = first.argsort()
        self.labels_ = order.argsort()[place]
        used = used[order]
        self.structure_ = found.structure.cpu().numpy()[np.ix_(used, used)]
        self.weights_ = found.weights.cpu().numpy()[used]
        self.objective_, self.n_iter_ = found.objective, found.n_iter
        return self

    def _cost(self, points: Tensor):
        check_choice("similarity", self.similarity, get_args(Similarity))
        match self.similarity:
            case "sqeuclidean":
                return factored_sqeuclidean(points)
            case "gram":
                return gram(points - points.mean(dim=0))
            case "entropic":
                return symmetric_entropic_affinity(sqeuclidean(points), self.perplexity).plan
        return points

    def __getattr__(self, name: str):
        # scikit-learn takes a method that cannot be read for a method that is not there
        why = ": a new point would change the structure; use fit_predict"
        raise AttributeError(
            f"{type(self).__name__} has no {name!r}" + (why if name == "predict" else "")
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.similarity == "precomputed"
        return tags
