"""Kernel k-means, and graphs whose nodes are clusters of another's (Chapter 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.algebra import ratio, total
from .._core.chance import Seed, as_rng
from .._core.checks import as_count, as_real, check_no_distances
from .._core.run import OnFailure, read_limits
from .._core.threads import by_size
from .barycenter import Grouped, Grouping, reassign, whole_steps
from .contraction import EMPTY, SAME, Terms, hard_plan
from .reading import as_coupling, as_similarity, as_weights
from .search import SemiRelaxedGW, in_turn, multistart
from .starts import Clusters, HardInit, as_init, starts

_ROUNDINGS = 16  # of the terms, below 0: where these take an objective it is 0


class KernelKMeans(NamedTuple):
    """Clusters in the space where the similarity is an inner product."""

    labels: Tensor  #: (n,) int64
    objective: float  #: sum of the squared distances to the mean of the cluster, by weight
    n_iter: int  #: iterations of the best start
    ends: tuple[float, ...]  #: the objective reached from each start
    residual: float  #: what ``tol`` bounded, the share that one point's move would gain at most
    converged: bool  #: whether it is within ``tol``


@by_size
def kernel_kmeans(
    similarity,
    n_clusters: int,
    *,
    weights: ArrayLike | None = None,
    init: HardInit | Sequence[HardInit] | ArrayLike | SemiRelaxedGW = "kmeans",
    n_starts: int = 4,
    tol: float | None = None,
    max_iter: int = 1000,
    random_state: Seed = 0,
    on_failure: OnFailure = "raise",
) -> KernelKMeans:
    r"""Solve kernel k-means, on points that are known by their inner products.

    With :math:`C_{ij} = \langle \phi_i, \phi_j \rangle` and the mean of cluster c as
    :math:`m_c = \sum_{i \in c} w_i \phi_i / q_c`,

    .. math::

        \min_{\text{labels}} \; \sum_i w_i \| \phi_i - m_{c(i)} \|^2
        = \sum_i w_i C_{ii} - \sum_c q_c \bar C_{cc}.

    It keeps the trace of the coarse similarity; the barycentre keeps its squared norm, and the
    two agree where C has rank one, not in general. Lloyd's iterations, then single points that
    change their cluster while that lowers the objective, means following.

    Source: Dhillon, Guan and Kulis (2004), as section 4.2 of Van Assel et al. (2024) uses it; book
    ``prp-kernel-kmeans``.

    Parameters
    ----------
    similarity : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`, positive semi-definite, or conditionally so: only differences count.
    n_clusters : int
        :math:`k`, from 1 to n.
    weights : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.
    init : {"kmeans", "spectral", "random"}, several of them, (n, k) plan, or result
        As for :func:`srgw_barycenter`.
    n_starts : int
        Starts of each kind.
    tol : float, optional
        Largest accepted residual: what moving one point would lower the objective by, as a share of
        its value for one cluster. Default 1e-9 in float64, 1e-4 in float32.
    max_iter : int
        Iterations from each start; each lowers the objective.
    random_state : int, numpy Generator or torch Generator
        Same seed, same labels on the same device.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    KernelKMeans
        ``labels``, of a point without weight that of the nearest mean, and the ``objective``, a
        mean over the weights, to some roundings of :math:`\sum_i w_i |C_{ii}|`: 0 where these take
        it below. Otherwise negative only where C is not conditionally positive; with equal weights
        a constant added to the diagonal then moves the value and no label.

    Raises
    ------
    ValueError
        As :func:`srgw_barycenter`; or if the entries underflow.
    NotConverged
        If the best start did not reach ``tol`` and ``on_failure="raise"``.

    Notes
    -----
    One product of C with an (n, k) matrix an iteration.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [9.0], [10.0]]).double()
    >>> found = kernel_kmeans(X @ X.T, 2)
    >>> found.objective, bool(found.labels[0] == found.labels[1])
    (0.25, True)
    """
    C = as_similarity(similarity, "similarity")
    check_no_distances(C, "similarity", "of squared distances D pass -D / 2, or -D.dense() / 2")
    n, _ = C.shape
    k = as_count("n_clusters", n_clusters, 1, n)
    n_starts = as_count("n_starts", n_starts, 1)
    tol, max_iter = read_limits(tol, max_iter, on_failure, C.dtype)
    w = as_weights(weights, n, C)
    kinds = as_init(init, w, k, HardInit)
    clusters = Clusters(C, w, k, as_rng(random_state))
    problem = Means(Terms(C.centred(w), w), k)
    own = problem.terms.diagonal[w > 0].abs()  # not all 0 where even its mean is
    if bool(own.any()) and float(w[w > 0] @ own) < torch.finfo(w.dtype).tiny:
        raise ValueError("the entries of similarity underflow; give them in smaller units")
    states = (problem.hard(T.argmax(dim=1)) for T in starts(kinds, n_starts, clusters.plan))
    paths = [partial(path, problem, tol=0.0) for path in (whole_steps, reassign)]
    found = multistart("kernel_kmeans", states, partial(in_turn, paths), problem.report, max_iter)
    mass, labels = found.state.T.max(dim=1)
    gain = -float(problem.changes(found.state, labels, mass).min())
    rounding = torch.finfo(w.dtype).eps * float(w @ C.diagonal().abs())  # of equal points
    found = replace(found, residual=max(0.0, gain) / (problem.scale + rounding or 1.0))
    ended = found.certify(tol, on_failure)
    far = problem.half_gradient(found.state).masked_fill(found.state.q == 0, torch.inf)
    labels = torch.where(mass > 0, labels, far.argmin(dim=1))
    exact = Means(Terms(problem.terms.C.in_double(), w.double()), k).hard(labels).value
    values = (exact, *SAME.objectives(found.ends, found.state.value, exact))
    value, *ends = (x if x < -_ROUNDINGS * rounding else max(x, 0.0) for x in values)
    return found.course.give(KernelKMeans(labels, value, ends=tuple(ends), **ended))


@dataclass(eq=False)
class Centred(Grouped):
    """With what the means of the clusters tell."""

    squares: Tensor  # (k,) of the means' distances from the origin


class Means(Grouping[Centred]):
    """The objective of kernel k-means: for a barycentre's squares, the trace."""

    def __init__(self, terms: Terms, k: int):
        super().__init__(terms, k, constant=float(terms.w @ terms.diagonal))
        self.scale = float(self.w @ terms.diagonal.abs()) or 1.0  # 0 of points in one place

    def state(self, T: Tensor, CT: Tensor | None = None) -> Centred:
        CT = self.terms.C @ T if CT is None else CT
        q, kept = T.sum(dim=0), (T * CT).sum(dim=0)
        return Centred(T, q, self.constant - total(ratio(kept, q)), CT, ratio(kept, q.square()))

    def half_gradient(self, state: Centred) -> Tensor:
        """Half the squared distances to the means."""
        share = ratio(torch.ones_like(state.q), state.q)
        return state.squares / 2 - state.CT * share

    def changes(self, state: Centred, home: Tensor, mass: Tensor) -> Tensor:
        """Means following (Hartigan)."""
        far = self.terms.diagonal[:, None] + 2 * self.half_gradient(state)
        d, here = mass[:, None], state.q[home, None]
        rest = (here - d).masked_fill(here - d <= EMPTY * here, torch.inf)
        leave = far.gather(1, home[:, None]) * d * here / rest  # (n, 1)
        q = state.q.clamp_min(torch.finfo(d.dtype).tiny)
        enter = far * (d * q / (d + q))
        return (enter - leave).scatter_(1, home[:, None], 0)


class Coarsening(NamedTuple):
    """A graph whose nodes are clusters of another's."""

    structure: Tensor  #: (k, k) Cbar, the weighted mean of C between clusters
    weights: Tensor  #: (k,) q, mass of each cluster
    normalized: Tensor  #: (k, k) diag(q)^1/2 Cbar diag(q)^1/2


@by_size
def coarsen(similarity, membership, *, weights: ArrayLike | None = None) -> Coarsening:
    r"""Coarsen a graph: contract clusters of nodes into single nodes, with mean similarities.

    With T the plan that sends :math:`w_i` to the cluster of i and :math:`q = T^\top \mathbf 1`,

    .. math:: \bar C = \mathrm{diag}(q)^{-1} \, T^\top C \, T \, \mathrm{diag}(q)^{-1}.

    The eigenvalues of :math:`\mathrm{diag}(q)^{1/2} \bar C \, \mathrm{diag}(q)^{1/2}` interlace
    those of :math:`\mathrm{diag}(w)^{1/2} C \, \mathrm{diag}(w)^{1/2}`, by Poincare's separation
    theorem, and the squares that are lost are the objective of the barycentre.

    Source: section 4.2 and lemma D.1 of Van Assel et al. (2024); book ``prp-interlacing``.

    Parameters
    ----------
    similarity : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`.
    membership : array_like, shape (n,) of labels from 0, or (n, k) plan
        Clusters, none of them empty; a plan has row sums w.
    weights : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.

    Returns
    -------
    Coarsening
        ``structure``, ``weights`` (of sum 1) and ``normalized``.

    Raises
    ------
    ValueError
        If labels are negative, a cluster is empty, or shapes do not match.

    Examples
    --------
    >>> C = [[4.0, 2.0, 0.0], [2.0, 4.0, 1.0], [0.0, 1.0, 4.0]]
    >>> coarsen(C, [0, 0, 1]).structure.tolist()
    [[3.0, 0.5], [0.5, 4.0]]
    """
    C = as_similarity(similarity, "similarity")
    n, _ = C.shape
    w = as_weights(weights, n, C)
    T = as_real(membership, "membership").to(w.device)
    if T.ndim != 2:
        if T.shape != (n,) or not bool(((T >= 0) & (T.frac() == 0)).all()):
            raise ValueError(
                f"membership must be {n} whole labels from 0, or a plan of shape ({n}, k)"
            )
        if int(T.max()) >= n:
            raise ValueError(f"membership has the label {int(T.max())}; {n} points have fewer")
        T = hard_plan(T.long(), w, int(T.max()) + 1)
    else:
        T = as_coupling(T, "membership", n, T.shape[1], w, rows=w)
    q = T.sum(dim=0)
    if bool((q == 0).any()):
        empty = int((q == 0).nonzero()[0])
        raise ValueError(f"membership leaves cluster {empty} empty; number the clusters from 0 on")
    structure, root = Terms(C, w).couple(T).means, q.sqrt()
    return Coarsening(structure, q, root[:, None] * structure * root)
