"""Kernel k-means, and graphs whose nodes are clusters of another's (Chapter 11)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, get_args

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import Seed, as_real, as_rng, check_count
from .contraction import (
    Contraction,
    alone,
    as_plan,
    as_structure,
    as_weights,
    centred,
    hard_plan,
    with_rows,
)
from .semirelaxed import SemiRelaxedGW, as_init
from .starts import Clusters as Init
from .starts import hard_start, starts


class KernelKMeans(NamedTuple):
    """Clusters in the space where the similarity is an inner product."""

    labels: Tensor  # (n,) int64
    objective: float  # sum_i w_i |phi_i - mean of its cluster|^2
    n_iter: int  # of the best start
    values: tuple[float, ...]  # the objective reached from each start


def kernel_kmeans(
    gram,
    n_clusters: int,
    *,
    weights_x: ArrayLike | None = None,
    init: Init | Sequence[Init] | ArrayLike | SemiRelaxedGW = "kmeans",
    n_starts: int = 4,
    max_iter: int = 1000,
    random_state: Seed = 0,
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
    gram : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`, positive semi-definite, or conditionally so: only differences count.
    n_clusters : int
        :math:`k`, from 1 to n.
    weights_x : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.
    init : {"kmeans", "spectral", "random"}, several of them, (n, k) plan, or result
        As for :func:`srgw_barycenter`.
    n_starts : int
        Starts of each kind.
    max_iter : int
        Iterations from each start; each lowers the objective.
    random_state : int, numpy Generator or torch Generator
        Same seed, same labels on the same device.

    Returns
    -------
    KernelKMeans
        ``labels`` and the ``objective``, a mean over the weights.

    Raises
    ------
    ValueError
        As :func:`srgw_barycenter`.

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
    cost = as_structure(gram, "gram", "square")
    n, _ = cost.shape
    k = check_count("n_clusters", n_clusters, 1, n)
    n_starts = check_count("n_starts", n_starts, 1)
    max_iter = check_count("max_iter", max_iter, 1)
    w = as_weights(weights_x, n, cost)
    kinds = as_init(init, w, k, get_args(Init))
    plans = starts(kinds, n_starts, partial(hard_start, cost, w, k, as_rng(random_state)))
    source = alone(centred(cost, w), w)
    ends = [lloyd(source, w, plan.argmax(dim=1), k, max_iter) for plan in plans]
    best = min(ends, key=lambda end: end.objective)
    return best._replace(values=tuple(end.objective for end in ends))


def lloyd(source: Contraction, w: Tensor, labels: Tensor, k: int, max_iter: int) -> KernelKMeans:
    """Lloyd's iterations, then moves of single points, until neither improves the labels."""
    diagonal = source.cost.diagonal()
    means = _Means(source, diagonal, w, labels, k)
    rounding = 1e-14 * float(w @ diagonal.abs())
    most, steps = 0, 0  # points that may move: all of them, by Lloyd's rule, while this is 0
    while steps < max_iter:
        if most == 0:
            labels = means.far.argmin(dim=1)
        else:
            gain, target = means.gains().min(dim=1)
            rows = (gain < -rounding).nonzero()[:, 0]
            if not len(rows):
                break
            rows = rows[gain[rows].argsort()][:most]
            most = len(rows)
            labels = means.labels.clone()
            labels[rows] = target[rows]
        new = _Means(source, diagonal, w, labels, k)
        if new.value < means.value - rounding:
            means, most, steps = new, 2 * most, steps + 1
        elif most == 1:
            break
        else:
            most = most // 4 or (1 if most else len(w))
    return KernelKMeans(means.labels, means.value, steps, ())


class _Means:
    """A labelling, the squared distances to its means, and the objective."""

    def __init__(self, source: Contraction, diagonal: Tensor, w: Tensor, labels: Tensor, k: int):
        T = hard_plan(labels, w, k)
        CT, self.q = source.product_labels(labels, w, k), T.sum(dim=0)
        share = 1 / self.q.masked_fill(self.q == 0, torch.inf)  # 0 for an empty cluster
        within = (T * CT).sum(dim=0) * share.square()  # (k,)  <m_c, m_c>
        far = diagonal[:, None] - 2 * CT * share + within
        self.far = far.masked_fill(self.q == 0, torch.inf)  # (n, k)
        self.w, self.labels = w, labels
        self.value = float(w @ diagonal) - float(self.q @ within)

    def gains(self) -> Tensor:
        """The change of the objective by each move of one point, means following (Hartigan)."""
        points = torch.arange(len(self.w), device=self.w.device)
        here = self.q[self.labels]
        rest = here - self.w
        alone = rest <= 1e-12 * here
        leave = here * self.w / rest.masked_fill(alone, torch.inf) * self.far[points, self.labels]
        weight = self.q * self.w[:, None] / (self.q + self.w[:, None]).clamp_min(1e-300)
        enter = torch.where(self.q == 0, 0.0, weight * self.far)
        enter[points, self.labels] = torch.inf
        return enter - leave[:, None]


class Coarsening(NamedTuple):
    """A graph whose nodes are clusters of another's."""

    structure: Tensor  # (k, k) Cbar, the weighted mean of C between clusters
    weights: Tensor  # (k,) q, mass of each cluster
    normalized: Tensor  # (k, k) diag(q)^1/2 Cbar diag(q)^1/2


def coarsen(cost_x, membership, *, weights_x: ArrayLike | None = None) -> Coarsening:
    r"""Coarsen a graph: contract clusters of nodes into single nodes, with mean similarities.

    With T the plan that sends :math:`w_i` to the cluster of i and :math:`q = T^\top \mathbf 1`,

    .. math:: \bar C = \mathrm{diag}(q)^{-1} \, T^\top C \, T \, \mathrm{diag}(q)^{-1}.

    The eigenvalues of :math:`\mathrm{diag}(q)^{1/2} \bar C \, \mathrm{diag}(q)^{1/2}` interlace
    those of :math:`\mathrm{diag}(w)^{1/2} C \, \mathrm{diag}(w)^{1/2}`, by Poincare's separation
    theorem, and the squares that are lost are the objective of the barycentre.

    Source: section 4.2 and lemma D.1 of Van Assel et al. (2024); book ``prp-interlacing``.

    Parameters
    ----------
    cost_x : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`.
    membership : array_like, shape (n,) of labels from 0, or (n, k) plan
        Clusters, none of them empty; a plan has row sums w.
    weights_x : array_like, shape (n,), optional
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
    cost = as_structure(cost_x, "cost_x", "square")
    n, _ = cost.shape
    w = as_weights(weights_x, n, cost)
    T = as_real(membership, "membership").to(w.device)
    if T.ndim != 2:
        if T.shape != (n,) or not bool(((T >= 0) & (T.round() == T)).all()):
            raise ValueError(f"membership must be {n} whole labels from 0, or an ({n}, k) plan")
        if int(T.max()) >= n:
            raise ValueError(f"membership has the label {int(T.max())}; {n} points have fewer")
        T = hard_plan(T.long(), w, int(T.max()) + 1)
    else:
        T = with_rows(as_plan(T, "membership", n, T.shape[1], w, weights_x=w), w)
    q = T.sum(dim=0)
    if bool((q == 0).any()):
        empty = int((q == 0).nonzero()[0])
        raise ValueError(f"membership leaves cluster {empty} empty; number the clusters from 0 on")
    M, root = T.T @ (cost @ T), q.sqrt()
    structure = (M + M.T) / 2 / torch.outer(q, q)
    return Coarsening(structure, q, root[:, None] * structure * root)
