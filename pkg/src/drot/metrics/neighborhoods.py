"""How many neighbours survive an embedding, at every scale, in tiles of rows (Chapter 8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .._core.checks import as_points, check_count
from ..costs.array import Pairwise, as_pairwise, ranks_of, tile_rows
from ..costs.distances import sqeuclidean


@dataclass(frozen=True, kw_only=True, repr=False)
class NeighborhoodCurve:
    """:math:`R_n(K)` for every K, and its area."""

    overlap: Tensor  # (n - 2,) Q_n(K) for K = 1, ..., n - 2, between 0 and 1
    values: Tensor  # (n - 2,) R_n(K)

    def __repr__(self) -> str:
        return f"NeighborhoodCurve({len(self.values) + 2} points, area={self.area:.3f})"

    @property
    def sizes(self) -> Tensor:
        """K = 1, ..., n - 2, shape (n - 2,)."""
        return torch.arange(1, len(self.values) + 1, dtype=self.values.dtype)

    @property
    def area(self) -> float:
        """Mean of :math:`R_n(K)` with weights 1/K: the area under it over log K."""
        weights = 1 / self.sizes
        return float((weights * self.values).sum() / weights.sum())


def neighborhood_preservation(X, Z, K: int) -> float:
    r"""Share of the K nearest neighbours that survive, rescaled so that chance scores 0.

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
        :class:`Pairwise` is read as distances of any kind.
    K : int
        Neighbours, from 1 to n - 2.

    Returns
    -------
    float
        1 if all neighbourhoods survive, 0 on average for an embedding drawn at random, and
        at least -K / (n - 1 - K).

    Raises
    ------
    ValueError
        If the two do not have the same number of points, or K is out of range, or some row of a
        :class:`Pairwise` has fewer than K finite entries.

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
    K = check_count("K", K, 1, n - 2)
    common = torch.zeros((), dtype=torch.int64, device=x.device)
    for x_tile, z_tile in _tiles(x, z, K, K):
        both = _nearest(x_tile, K) & _nearest(z_tile, K).to(x_tile.device)
        common += both.sum() - len(both)  # a point is near itself
    return _rescale(int(ranks_of(x, z).total(common)) / (n * K), K, n)


def neighborhood_curve(X, Z) -> NeighborhoodCurve:
    r""":math:`R_n(K)` of :func:`drot.neighborhood_preservation` for all K at once.

    A pair (i, j) of neighbour ranks r in X and s in Z belongs to both neighbourhoods exactly
    for :math:`K \ge \max(r, s)`; one histogram of these maxima gives the whole curve.

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
    for x_tile, z_tile in _tiles(x, z, n - 2, n - 2):
        worst = torch.maximum(_ranks(x_tile), _ranks(z_tile).to(x_tile.device))
        counts += torch.bincount(worst.flatten(), minlength=n)
    counts = ranks_of(x, z).total(counts).cpu()
    K = torch.arange(1, n - 1, dtype=torch.float64)
    overlap = counts[1 : n - 1].cumsum(0) / (n * K)  # rank 0 is the point itself
    return NeighborhoodCurve(overlap=overlap, values=_rescale(overlap, K, n))


def trustworthiness(X, Z, K: int) -> float:
    r"""Whether the neighbours that Z shows are neighbours in X.

    .. math::

        T(K) = 1 - \frac{2}{n K (2n - 3K - 1)} \sum_i
               \sum_{j \in \gamma_i^K \setminus \nu_i^K} (r_{ij} - K),

    with :math:`r_{ij}` the rank of j among the neighbours of i in X.

    Source: Venna and Kaski (2001); one of the scores of section 5 of SNEkhorn; book
    ``def-trust``.

    Parameters
    ----------
    X, Z
        As in :func:`drot.neighborhood_preservation`.
    K : int
        Neighbours, at least 1 and below n / 2.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        As :func:`drot.neighborhood_preservation` does. Ranks reach beyond K: of the finite
        entries of X
        each row needs n - 2.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [3.0], [7.0], [15.0]])
    >>> trustworthiness(X, 2 * X, 2)
    1.0
    >>> round(trustworthiness(X, [[0.0], [15.0], [1.0], [3.0], [7.0]], 1), 3)  # 15 beside 1
    0.667
    """
    x, z = _read(X, Z)
    n = x.shape[0]
    K = check_count("K", K, 1, (n - 1) // 2)
    excess = torch.zeros((), dtype=torch.int64, device=x.device)
    for x_tile, z_tile in _tiles(x, z, n - 2, K):
        shown = _nearest(z_tile, K).to(x_tile.device)
        excess += (_ranks(x_tile)[shown] - K).clamp_min(0).sum()
    return 1 - 2 * int(ranks_of(x, z).total(excess)) / (n * K * (2 * n - 3 * K - 1))


def continuity(X, Z, K: int) -> float:
    r"""Whether the neighbours of X are shown as neighbours by Z: trustworthiness backwards.

    Source: Venna and Kaski (2001); book ``def-trust``.

    Parameters
    ----------
    X, Z, K
        As in :func:`trustworthiness`.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [3.0], [7.0], [15.0]])
    >>> Z = torch.tensor([[0.0], [0.1], [9.0], [9.1], [9.2]])
    >>> continuity(X, Z, 1) == trustworthiness(Z, X, 1)
    True
    """
    x, z = _read(X, Z)
    return trustworthiness(z, x, K)


def _read(X, Z) -> tuple[Pairwise, Pairwise]:
    x, z = (
        as_pairwise(cloud, name)
        if isinstance(cloud, Pairwise)
        else sqeuclidean(as_points(cloud, name), block=2**20)
        for cloud, name in ((X, "X"), (Z, "Z"))
    )
    if x.shape != z.shape:
        raise ValueError(f"X has {x.shape[0]} points and Z has {z.shape[0]}; one row for each")
    if x.shape[0] < 3:
        raise ValueError(f"scores of neighbourhoods need at least 3 points; got {x.shape[0]}")
    return x, z


def _tiles(x: Pairwise, z: Pairwise, *least: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The same rows of both, (b, n) each, with -inf for the point itself: nothing is nearer.

    ``least`` says how many of the nearest of x and of z must be told apart from the others: the
    infinite ones have no order.
    """
    step = min(tile_rows(x), *(cost.block or cost.shape[0] for cost in (x, z)))
    own = ranks_of(x, z).rows(x.shape[0])
    for start in range(own.start, own.stop, step):
        rows = slice(start, min(start + step, own.stop))
        tiles = x.rows(rows).clone(), z.rows(rows).clone()  # they may be views of kept arrays
        for tile, known in zip(tiles, least, strict=True):
            tile.diagonal(rows.start).fill_(-torch.inf)
            if tile.amax() < torch.inf:
                continue
            finite = (tile < torch.inf).sum(dim=1) - 1
            if (finite < known).any():
                i = int((finite < known).nonzero()[0])
                raise ValueError(
                    f"row {start + i} is at a finite distance from {int(finite[i])} other points "
                    f"and {known} must be ranked; lower K, or give the whole cost"
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


def _nearest(tile: Tensor, K: int) -> Tensor:
    """Whether an entry is among the K + 1 smallest of its row, itself included: (b, n)."""
    last = tile.topk(K + 1, largest=False, sorted=False).values.amax(dim=1, keepdim=True)
    near = tile <= last
    tied = (near.sum(dim=1) > K + 1).nonzero()[:, 0]
    if len(tied):
        near[tied] = _ranks(tile[tied]) <= K
    return near


def _rescale(overlap, K, n: int):
    return ((n - 1) * overlap - K) / (n - 1 - K)
