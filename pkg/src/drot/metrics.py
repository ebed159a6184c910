"""Scores of plans (Chapters 4 and 7), of prototypes (14), and of embeddings (10).

How many neighbours an embedding keeps is counted at every scale, in tiles of rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import entr, rel_entr
from torch import Tensor

from ._core.chance import Seed, seed_number
from ._core.checks import (
    as_count,
    as_points,
    as_real,
    as_symmetric,
    check_finite,
    check_non_negative,
    check_squares,
)
from ._core.memory import slices
from ._core.threads import by_size
from .costs.array import UNKEPT, Pairwise, as_pairwise, ranks_of, tile_rows
from .costs.distances import sqeuclidean

__all__ = [
    "NeighborhoodCurve",
    "neighborhood_curve", "neighborhood_preservation", "prototype_homogeneity", "prototype_nmi",
    "spectral_clustering_ari", "weighted_silhouette",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def spectral_clustering_ari(
    plan, y, *, n_clusters: int | None = None, random_state: Seed = 0
) -> float:
    """Adjusted Rand index of scikit-learn's spectral clustering of a symmetric affinity.

    Source: the score of Table 2 of SNEkhorn (Van Assel et al., 2023), with scikit-learn's
    default embedding and k-means.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n), symmetric, non-negative
        Of any scale.
    y : array_like, shape (n,)
        The classes to find, any labels.
    n_clusters : int, optional
        Their number when left out.
    random_state : int, numpy Generator or torch Generator
        Seed of k-means and of the eigensolver.

    Returns
    -------
    float
        1 for the classes themselves, about 0 for a random partition.

    Raises
    ------
    ValueError
        If the plan is not square, symmetric and non-negative, or the labels are not one per row.

    Examples
    --------
    >>> import torch
    >>> two_pairs = torch.block_diag(*[torch.tensor([[1.0, 0.9], [0.9, 1.0]])] * 2)
    >>> spectral_clustering_ari(two_pairs, [0, 0, 1, 1])
    1.0
    """
    from sklearn.cluster import SpectralClustering
    from sklearn.metrics import adjusted_rand_score

    T, classes = _plan_and_classes(as_symmetric(plan, "plan"), y)
    if n_clusters is None:
        n_clusters = len(np.unique(classes))
    n_clusters = as_count("n_clusters", n_clusters, 1, len(T))
    model = SpectralClustering(
        n_clusters, affinity="precomputed", random_state=seed_number(random_state)
    )
    with warnings.catch_warnings():
        # a graph that falls into its clusters is a success here, not a reason to warn
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        found = model.fit_predict(T)
    return float(adjusted_rand_score(classes, found))


def prototype_homogeneity(plan, y) -> float:
    r"""Homogeneity of prototypes: how far each stands for points of one class.

    With :math:`p_{ck} = \sum_{i : y_i = c} T_{ik}`, the mass of class c at prototype k,

    .. math:: 1 - \frac{H(c \mid k)}{H(c)}
              = 1 - \frac{\sum_{ck} p_{ck} \log (p_{ck} / p_{\cdot k})}
                         {\sum_c p_{c \cdot} \log p_{c \cdot}} .

    For a hard plan with equal row sums it is scikit-learn's ``homogeneity_score`` of its labels.

    Source: homogeneity in appendix F.1 of Van Assel et al. (2024), after Rosenberg and
    Hirschberg (2007).

    Parameters
    ----------
    plan : array_like, shape (n, k), non-negative
        :math:`T`, of any total mass: it is divided by it.
    y : array_like, shape (n,)
        Classes of the points, any labels.

    Returns
    -------
    float
        From 0 to 1; 1 where there is one class.

    Raises
    ------
    ValueError
        If the labels are not one per row, or the plan is negative or zero.

    Examples
    --------
    >>> prototype_homogeneity([[0.5, 0], [0.5, 0], [0, 0.5], [0, 0.5]], [0, 0, 1, 1])
    1.0
    """
    p = _joint(*_plan_and_classes(plan, y))
    whole, given = entr(p.sum(axis=1)).sum(), -rel_entr(p, p.sum(axis=0)).sum()  # H(c), H(c | k)
    return float(1 - given / whole) if whole > 0 else 1.0


def weighted_silhouette(Z, plan, y) -> float:
    r"""Weighted silhouette: how much nearer prototypes are to their own class than to the next.

    A prototype has the class c(k) that gives it most mass. With the weights :math:`q`, the column
    sums of the plan over its mass, without prototypes of weight 0, and Euclidean distances d,

    .. math::

        a_k = \frac{\sum_{l \ne k, \, c(l) = c(k)} q_l \, d(z_k, z_l)}
                   {\sum_{l \ne k, \, c(l) = c(k)} q_l}, \qquad
        b_k = \min_{c \ne c(k)} \frac{\sum_{c(l) = c} q_l \, d(z_k, z_l)}{\sum_{c(l) = c} q_l},

    and the score is :math:`\sum_k q_k (b_k - a_k) / \max(a_k, b_k)`, where a prototype alone in
    its class counts as 0.

    Source: equations (81) and (82) in appendix F.1 of Van Assel et al. (2024), after Rousseeuw
    (1987).

    Parameters
    ----------
    Z : array_like, shape (k, q)
        Positions, in any unit.
    plan : array_like, shape (n, k), non-negative
        Of any total mass.
    y : array_like, shape (n,)
        Classes of the points, any labels.

    Returns
    -------
    float
        From -1 to 1.

    Raises
    ------
    ValueError
        If all prototypes have the same class, shapes do not match, or squared distances leave the
        range of floats.

    Examples
    --------
    >>> Z = [[0.0], [1.0], [10.0], [11.0]]
    >>> round(weighted_silhouette(Z, np.eye(4) / 4, [0, 0, 1, 1]), 4)
    0.8997
    """
    Z = as_points(Z, "Z").double()
    check_squares(Z, "Z")
    T, classes = _plan_and_classes(plan, y, len(Z))
    q = T.sum(axis=0)
    used = q > 0
    label = _joint(T, classes).argmax(axis=0)[used]
    D = (Z[:, None] - Z).norm(dim=2).cpu().numpy()[np.ix_(used, used)]
    q = q[used] / q.sum()
    classes = np.unique(label)[:, None] == label  # (c, k)
    if len(classes) < 2:
        raise ValueError("a silhouette needs prototypes of at least 2 classes; all have one")
    others = (label[:, None] == label) & ~np.eye(len(q), dtype=bool)  # (k, k) of the same class
    rest = others @ q
    means = (D * q) @ classes.T / (classes @ q)  # (k, c)
    b = np.where(classes.T, np.inf, means).min(axis=1)
    a = np.where(rest > 0, (D * q * others).sum(axis=1) / np.where(rest > 0, rest, 1), b)
    larger = np.maximum(a, b)
    return float(q @ ((b - a) / np.where(larger > 0, larger, 1)))


def prototype_nmi(Z, plan, y, *, n_clusters: int | None = None, random_state: Seed = 0) -> float:
    """Normalised mutual information of classes with k-means clusters of the prototypes.

    k-means runs on the positions of the prototypes that have a weight, each counting once; a
    point takes the cluster of the prototype that has most of its mass. Points without mass do not
    count.

    Source: the k-means score in appendix F.1 of Van Assel et al. (2024).

    Parameters
    ----------
    Z : array_like, shape (k, q)
        Positions, in any unit.
    plan : array_like, shape (n, k), non-negative
        Of any total mass.
    y : array_like, shape (n,)
        Classes of the points, any labels.
    n_clusters : int, optional
        Default: the number of classes, or of prototypes with a weight if there are fewer.
    random_state : int, numpy Generator or torch Generator
        Seed of k-means, which starts 10 times.

    Returns
    -------
    float
        From 0 to 1; the mean of the two entropies normalises.

    Raises
    ------
    ValueError
        If shapes do not match or there are more clusters than prototypes.

    Examples
    --------
    >>> Z = [[0.0], [1.0], [10.0], [11.0]]
    >>> round(prototype_nmi(Z, np.eye(4) / 4, [0, 0, 1, 1]), 9)
    1.0
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import normalized_mutual_info_score

    Z = as_points(Z, "Z").double().cpu().numpy()
    T, classes = _plan_and_classes(plan, y, len(Z))
    used, counts = T.any(axis=0), T.any(axis=1)  # (k,), (n,)
    most = int(used.sum())
    if n_clusters is None:
        n_clusters = min(most, len(np.unique(classes[counts])))
    n_clusters = as_count("n_clusters", n_clusters, 1, most)
    model = KMeans(n_clusters, n_init=10, random_state=seed_number(random_state)).fit(Z[used])
    cluster = model.labels_[T[counts][:, used].argmax(axis=1)]
    return float(normalized_mutual_info_score(classes[counts], cluster))


def _plan_and_classes(plan, y, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The plan (n, k), as it is, in float64, and classes (n,), numbered from 0 in their order."""
    T = as_real(plan, "plan")
    y = np.asarray(y.cpu() if isinstance(y, Tensor) else y)
    if T.ndim != 2 or y.shape != T.shape[:1]:
        shapes = f"{tuple(T.shape)} and {y.shape}"
        raise ValueError(f"plan must be (n, k) with one label per row; got {shapes}")
    if k is not None and T.shape[1] != k:
        raise ValueError(f"Z has {k} prototypes and the plan {T.shape[1]}")
    if any(label is None or label != label for label in y.tolist()):
        raise ValueError("y has missing labels; leave out the points that have none")
    check_finite(T, "plan")
    check_non_negative(T, "plan")
    if not T.any():
        raise ValueError("plan is 0 everywhere; pass one with some mass")
    return T.double().cpu().numpy(), np.unique(y, return_inverse=True)[1]


def _joint(T: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Share of the mass of T (n, k) that each class has at each prototype, (c, k), of sum 1."""
    p = np.zeros((classes.max() + 1, T.shape[1]))
    np.add.at(p, classes, T)
    return p / p.sum()


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class NeighborhoodCurve:
    """:math:`R_n(K)` of n points for K = 1, ..., n - 2, and its area; float64."""

    overlap: Tensor  #: (n - 2,) Q_n(K), the share of neighbours kept, between 0 and 1
    values: Tensor  #: (n - 2,) R_n(K), which is 1 if all are kept and 0 on average by chance

    def __repr__(self) -> str:
        return f"NeighborhoodCurve({len(self.values) + 2} points, area={self.area:.3f})"

    @property
    def sizes(self) -> Tensor:
        """K = 1, ..., n - 2, shape (n - 2,)."""
        return torch.arange(1, len(self.values) + 1, dtype=self.values.dtype)

    @property
    def area(self) -> float:
        """Mean of :math:`R_n(K)` with weights 1/K, the area under it over log K."""
        weights = 1 / self.sizes
        return float((weights * self.values).sum() / weights.sum())


@by_size
def neighborhood_preservation(X, Z, n_neighbors: int) -> float:
    r"""Neighbourhood preservation: share of K nearest neighbours kept, with chance at 0.

    .. math::

        R_n(K) = \frac{(n - 1) \, Q_n(K) - K}{n - 1 - K}, \qquad
        Q_n(K) = \frac{1}{nK} \sum_i | \nu_i^K \cap \gamma_i^K |,

    with :math:`\nu_i^K` the K nearest neighbours of point i in X and :math:`\gamma_i^K` those in
    Z, the point itself not counted.

    Source: equation (23) of Van Assel et al. (2022), after Lee et al. (2015); book
    ``def-preservation``.

    Parameters
    ----------
    X, Z : array_like of shapes (n, p) and (n, q), or Pairwise of shape (n, n)
        The points and their embedding; squared Euclidean distances rank the neighbours. A
        :class:`Pairwise` is read as distances of any kind: ``nearest(D, n_neighbors=len(D))``
        makes one of a matrix D.
    n_neighbors : int
        K, from 1 to n - 2.

    Returns
    -------
    float
        1 if all neighbourhoods survive, 0 on average for an embedding drawn at random, and
        at least -K / (n - 1 - K).

    Raises
    ------
    ValueError
        If the two do not have the same number of points, or one is an array of distances, or the
        number of neighbours is out of range, or some row of a :class:`Pairwise` has fewer than K
        finite entries.

    Notes
    -----
    :math:`O(n^2 (p + q))` time in tiles of rows, never n x n at once: at most twenty arrays of
    b x n with b n about 2^18 (2^26 on a GPU). Points tied at the K-th place count in the order of
    their numbers, so each neighbourhood has exactly K points.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [3.0], [7.0], [15.0]])
    >>> neighborhood_preservation(X, -2 * X, 2)
    1.0
    >>> neighborhood_preservation(X, [[0.0], [7.0], [1.0], [3.0], [15.0]], 2) < 0.5
    True
    """
    x, z = _read(X, Z)
    n = x.shape[0]
    K = as_count("n_neighbors", n_neighbors, 1, n - 2)
    common = torch.zeros((), dtype=torch.int64, device=x.device)
    for x_tile, z_tile in _tiles(x, z, K):
        both = _near(x_tile, K) & _near(z_tile, K).to(x_tile.device)
        common += both.sum() - len(both)  # a point is near itself
    return _rescale(int(ranks_of(x, z).total(common)) / (n * K), K, n)


@by_size
def neighborhood_curve(X, Z) -> NeighborhoodCurve:
    r"""Neighbourhood preservation at every scale: :math:`R_n(K)` for all K at once.

    :func:`drot.neighborhood_preservation` defines it. A pair (i, j) of neighbour ranks r in X and
    s in Z belongs to both neighbourhoods exactly for :math:`K \ge \max(r, s)`; one histogram of
    these maxima gives the whole curve.

    Source: equation (23) of Van Assel et al. (2022), after Lee et al. (2015); book
    ``def-preservation``.

    Parameters
    ----------
    X, Z
        As in :func:`drot.neighborhood_preservation`.

    Returns
    -------
    NeighborhoodCurve
        float64, on the CPU.

    Raises
    ------
    ValueError
        As :func:`drot.neighborhood_preservation` does, for the largest K.

    Notes
    -----
    Two sorts per row, :math:`O(n^2 \log n)`, in tiles, with the memory of
    :func:`drot.neighborhood_preservation`.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [3.0], [7.0], [15.0]])
    >>> curve = neighborhood_curve(X, [[0.0], [7.0], [1.0], [3.0], [15.0]])
    >>> float(curve.values[1]) == neighborhood_preservation(X, [[0], [7], [1], [3], [15]], 2)
    True
    """
    x, z = _read(X, Z)
    n = x.shape[0]
    counts = torch.zeros(n, dtype=torch.int64, device=x.device)
    for x_tile, z_tile in _tiles(x, z, n - 2):
        worst = torch.maximum(_ranks(x_tile), _ranks(z_tile).to(x_tile.device))
        counts += torch.bincount(worst.flatten(), minlength=n)
    counts = ranks_of(x, z).total(counts).cpu()
    K = torch.arange(1, n - 1, dtype=torch.float64)
    overlap = counts[1 : n - 1].cumsum(0) / (n * K)  # rank 0 is the point itself
    return NeighborhoodCurve(overlap=overlap, values=_rescale(overlap, K, n))


def _as_cloud(cloud, name: str) -> Tensor:
    """Points, and not the distances between them."""
    points = as_points(cloud, name)
    square = points.shape[0] == points.shape[1] > 2 and torch.equal(points, points.T)
    if square and not points.diagonal().any() and (points >= 0).all() and points.any():
        raise ValueError(
            f"{name} holds distances, it seems: it is symmetric, and its diagonal is 0; pass "
            f"drot.nearest({name}, n_neighbors=len({name})), and if it holds points "
            f"drot.sqeuclidean({name})"
        )
    return points


def _read(X, Z) -> tuple[Pairwise, Pairwise]:
    """Both as costs (n, n) of which only the order within a row counts; clouds are never kept."""
    x, z = (
        as_pairwise(cloud, name)
        if isinstance(cloud, Pairwise)
        else sqeuclidean(_as_cloud(cloud, name), block=UNKEPT)
        for cloud, name in ((X, "X"), (Z, "Z"))
    )
    if x.shape != z.shape:
        raise ValueError(f"X has {x.shape[0]} points and Z has {z.shape[0]}; one row for each")
    if x.shape[0] < 3:
        raise ValueError(f"scores of neighbourhoods need at least 3 points; got {x.shape[0]}")
    return x, z


def _tiles(x: Pairwise, z: Pairwise, least: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The same rows of both, (b, n) each, with -inf for the point itself: nothing is nearer.

    ``least`` of the nearest must be told apart from the others: the infinite ones have no order.
    """
    step = min(tile_rows(x), *(cost.block or cost.shape[0] for cost in (x, z)))
    own = ranks_of(x, z).rows(x.shape[0])
    for rows in slices(own, step):
        tiles = x.rows(rows).clone(), z.rows(rows).clone()  # they may be views of kept arrays
        for tile in tiles:
            tile.diagonal(rows.start).fill_(-torch.inf)
            if tile.amax() < torch.inf:
                continue
            finite = (tile < torch.inf).sum(dim=1) - 1
            if (finite < least).any():
                i = int((finite < least).nonzero()[0])
                raise ValueError(
                    f"row {rows.start + i} is at a finite distance from {int(finite[i])} other "
                    f"points and {least} must be ranked; lower n_neighbors, or give the whole cost"
                )
        yield tiles


def _ranks(tile: Tensor) -> Tensor:
    """Rank of each entry in its row, (b, n): 0 for the point itself, ties by number."""
    order = _argsort(tile)
    places = torch.arange(tile.shape[1], device=tile.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def _argsort(tile: Tensor) -> Tensor:
    """Stable order of each row. On a CPU NumPy's vectorised sort is several times faster."""
    if tile.device.type != "cpu":
        return tile.argsort(dim=1, stable=True)
    values = tile.numpy()
    order = np.argsort(values, axis=1)
    in_order = np.take_along_axis(values, order, axis=1)
    tied = (in_order[:, 1:] == in_order[:, :-1]).any(axis=1)
    order[tied] = np.argsort(values[tied], axis=1, kind="stable")
    return torch.from_numpy(order)


def _near(tile: Tensor, K: int) -> Tensor:
    """Whether an entry is among the K + 1 smallest of its row, itself included: (b, n)."""
    last = tile.topk(K + 1, largest=False, sorted=False).values.amax(dim=1, keepdim=True)
    near = tile <= last
    tied = (near.sum(dim=1) > K + 1).nonzero()[:, 0]
    if len(tied):
        near[tied] = _ranks(tile[tied]) <= K
    return near


def _rescale(overlap, K, n: int):
    """R_n(K) of Q_n(K): 1 stays, and what K points drawn at random share becomes 0."""
    return ((n - 1) * overlap - K) / (n - 1 - K)
