"""The input graph of UMAP, and the curve of its output (Chapter 9)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .._core.algebra import FAR, RANGE, exp
from .._core.checks import as_count, as_number, as_positive, refuse_entries
from .._core.run import OnFailure, certify, read_limits
from .._core.threads import by_size
from ..costs.array import Nearest, WithoutDiagonal, as_pairwise, smallest
from .bandwidths import find_roots
from .base import NEGATIVE, Affinity

_FLOOR = 1e-3  # of the mean distance, as in umap-learn


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UMAPMembership(Affinity):
    """UMAP's memberships, ``log P_ij = -max(0, d_ij - rho_i) / sigma_i``, of k - 1 edges a row."""

    cost: Nearest
    rho: Tensor  # (n,) distance below which an edge is certain
    sigma: Tensor  # (n,) bandwidth, in units of the distance
    floored: Tensor  # (n,) bool: whether sigma is the least allowed, the row sum >= log2 k

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        return _logs(cost, self.rho[rows], self.sigma[rows])


def _logs(cost: Tensor, rho: Tensor, sigma: Tensor) -> Tensor:
    """Log memberships of some rows (b, m), from their costs."""
    return (cost.sqrt() - rho[:, None]).clamp_min_(0.0).div_(sigma[:, None]).neg_()


@by_size
def umap_membership(
    cost,
    *,
    n_neighbors: int = 15,
    local_connectivity: int = 1,
    tol: float | None = None,
    max_iter: int = 100,
    on_failure: OnFailure = "raise",
) -> UMAPMembership:
    r"""UMAP's membership strengths: probabilities of an edge to each nearest neighbour.

    .. math::

        P_{ij} = \exp \Bigl( - \frac{\max(0, d_{ij} - \rho_i)}{\sigma_i} \Bigr), \qquad
        \sum_{j \in N_i} P_{ij} = \log_2 k, \qquad d_{ij} = \sqrt{C_{ij}},

    with :math:`N_i` the k - 1 nearest other points of i: the point counts as its own first
    neighbour. :math:`\rho_i` is the smallest positive distance in :math:`N_i`, so one edge of each
    point is certain. The sum increases with :math:`\sigma_i`; a safeguarded Newton method with
    a third-order (Halley) correction finds :math:`\log \sigma_i`, for all rows at once.

    P is not symmetric and its rows do not sum to 1. :func:`fuzzy_union` makes UMAP's graph of it.

    Source: UMAP (McInnes et al., 2018), section 3.1 and algorithm 3; the graph of the paragraph
    on UMAP in section 3.1 of Van Assel et al. (2022); book ``prp-ce-umap``.

    Parameters
    ----------
    cost : array_like or Pairwise, shape (n, n), non-negative
        :math:`C`, squared distances. For points pass ``drot.sqeuclidean(X)``.
    n_neighbors : int
        :math:`k`, from 2 to n, the point itself among them.
    local_connectivity : int
        Which neighbour :math:`\rho_i` is the distance of, duplicates of the point not counted; 0
        sets :math:`\rho_i = 0`.
    tol : float, optional
        Largest accepted :math:`\max_i | \sum_j P_{ij} - \log_2 k |`. Default 1e-9 in float64,
        1e-4 in float32.
    max_iter : int
        Evaluations allowed per row. Typical: 6.
    on_failure : {"raise", "warn", "ignore"}
        What to do when ``tol`` is not reached.

    Returns
    -------
    UMAPMembership
        Entries of ``plan`` from 0 to 1, k - 1 per row, diagonal 0. ``rho`` and ``sigma`` are in
        units of the distance. As in umap-learn :math:`\sigma_i` is at least a thousandth of the
        row's mean distance (of all distances kept, if the row has only duplicates); where this
        keeps the sum above :math:`\log_2 k`, so also where too many neighbours are as near as
        :math:`\rho_i`, ``floored`` is True and the row does not count in ``residual``.

    Raises
    ------
    ValueError
        If a cost is negative or infinite, or there are fewer points than neighbours.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.

    Notes
    -----
    One pass over the cost, :math:`O(n^2)`, and n x k memory beyond it. Which of several points
    tied at the k-th place are kept is not specified.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [3.0], [6.0], [10.0]], dtype=torch.float64)
    >>> found = umap_membership((X - X.T) ** 2, n_neighbors=4)
    >>> found.rho.tolist()
    [1.0, 1.0, 2.0, 3.0, 4.0]
    >>> found.plan.sum(dim=1).round(decimals=9).tolist()  # log2 4, though a row has 3 neighbours
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    whole = WithoutDiagonal(as_pairwise(cost))
    tol, max_iter = read_limits(tol, max_iter, on_failure, whole.dtype)
    n = whole.shape[0]
    k = as_count("n_neighbors", n_neighbors, 2, n)
    rank = as_count("local_connectivity", local_connectivity, 0)
    values, columns = smallest(whole, k - 1)
    least, most = values[:, 0], values[:, -1]
    refuse_entries(least < 0, least, NEGATIVE)
    says = f"{{at}} of the cost has fewer than {k - 1} finite entries for neighbours"
    refuse_entries(~most.isfinite(), most, says)
    rho, sigma, floored, gap, trace = _bandwidths(values, k, rank, tol, max_iter)
    found = certify("umap_membership", gap, len(trace), tol, on_failure, trace=trace)
    near = Nearest(values, columns, n, whole.block, ranks=whole.ranks)
    return UMAPMembership(cost=near, rho=rho, sigma=sigma, floored=floored, passes=1.0, **found)


def _bandwidths(
    values: Tensor, k: int, rank: int, tol: float, max_iter: int, mean_sum: float | None = None
) -> tuple[Tensor, Tensor, Tensor, float, list[float]]:
    """rho, sigma and where sigma is the floor, (b,); the largest error of a sum, by iteration too.

    From the costs of the k - 1 nearest other points, ascending; ``mean_sum`` is the mean of the
    rows' sums of distances, where these are not all rows.
    """
    distances = values.sqrt()
    # the positive distance of that rank, the last if there are too few
    place = (distances == 0).sum(dim=1, keepdim=True) + rank
    padded = torch.cat([torch.zeros_like(place).to(distances), distances], dim=1)
    rho = padded.gather(1, place.clamp_max(k - 1) if rank else torch.zeros_like(place)).squeeze(1)
    excess = (distances - rho[:, None]).clamp_min_(0.0)
    sigma, trace = _sigmas(excess, math.log2(k), tol / 2, max_iter)  # sums below round anew
    # means over k entries: the distance of a point to itself counts, as in umap-learn
    sums = distances.sum(dim=1)
    floor = _FLOOR * torch.where(rho > 0, sums, sums.mean() if mean_sum is None else mean_sum) / k
    floor = floor.clamp_min(torch.finfo(floor.dtype).tiny)
    floored = sigma < floor
    sigma = sigma.maximum(floor)
    sums = torch.exp(-excess / sigma[:, None]).sum(dim=1)
    gap = (sums - math.log2(k)).abs().masked_fill(floored, 0.0)
    return rho, sigma, floored, float(gap.max()), trace


def membership_rows(
    cost: Tensor, n_neighbors: int, local_connectivity: int, mean_sum: float | None = None
) -> Tensor:
    """Rows (b, n) of :func:`umap_membership` for new points, from their costs to n others.

    ``mean_sum`` is that of the fitted rows' distances to neighbours; needed where rho can be 0.
    """
    values, columns = torch.topk(cost, n_neighbors - 1, largest=False)
    tol, max_iter = read_limits(None, 100, "raise", cost.dtype)
    found = _bandwidths(values, n_neighbors, local_connectivity, tol, max_iter, mean_sum)
    rho, sigma, _, gap, trace = found
    certify("rows of new points", gap, len(trace), tol, "raise")
    return torch.zeros_like(cost).scatter_(1, columns, _logs(values, rho, sigma).exp_())


def _sigmas(excess: Tensor, target: float, tol: float, max_iter: int) -> tuple[Tensor, list[float]]:
    """sigma (n,) with sum_j exp(-excess_ij / sigma_i) = target, and the errors by iteration.

    0 where the certain edges alone reach the target.
    """

    def gap(t: Tensor, excess: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        e = (excess / torch.exp(t)[:, None]).clamp_max_(FAR)
        weight = exp(e, -1)
        value = weight.sum(dim=1) - target
        slope = weight.mul_(e).sum(dim=1)
        return value, slope, weight.mul_(e - 1).sum(dim=1)

    sigma = excess.new_zeros(len(excess))
    active = (excess == 0).sum(dim=1) < target
    excess = excess[active]
    log_sigma, _, errors, _ = find_roots(gap, excess.mean(dim=1).log(), excess, tol, max_iter)
    sigma[active] = log_sigma.exp()
    return sigma, errors


def umap_curve(min_dist: float = 0.1, spread: float = 1.0) -> tuple[float, float]:
    r"""The two numbers of UMAP's curve of the embedding, from the distance of its neighbours.

    .. math::

        \min_{a, b} \sum_x \Bigl( \frac{1}{1 + a x^{2 b}} - \psi(x) \Bigr)^2, \qquad
        \psi(x) = \exp \Bigl( - \frac{\max(0, x - m)}{s} \Bigr),

    over 300 distances x evenly spaced from 0 to 3 s, by SciPy's least squares from a = b = 1 in
    units of s: in others b is the same, and a is divided by :math:`s^{2b}`.
    :math:`\psi` is the membership of :func:`umap_membership` with :math:`\rho = m` and
    :math:`\sigma = s`; the curve is its smooth stand-in.

    Source: UMAP (McInnes et al., 2018), section 4, definition 11; its software fits on the
    same grid; book ``cor-curve-cpd``.

    Parameters
    ----------
    min_dist : float
        :math:`m`, at least 0 and at most ``spread``, in units of the embedding.
    spread : float
        :math:`s > 0`.

    Returns
    -------
    a, b : float

    Raises
    ------
    ValueError
        If a number is out of range, or s so small or large that a is.

    Examples
    --------
    >>> [round(number, 3) for number in umap_curve()]
    [1.577, 0.895]
    """
    a, b = unit_curve(min_dist, spread)
    power = -2 * b * math.log(spread)
    if abs(math.log(a) + power) > RANGE:
        raise ValueError(f"spread={spread:g} is out of range: a of the curve would be e^{power:g}")
    return a * math.exp(power), b


def unit_curve(min_dist: float, spread: float) -> tuple[float, float]:
    """a and b of :func:`umap_curve` in units of the spread: those of ``min_dist / spread``."""
    from scipy.optimize import curve_fit

    spread, min_dist = as_positive("spread", spread), as_number("min_dist", min_dist)
    if not 0 <= min_dist <= spread:
        raise ValueError(f"min_dist must be from 0 to spread={spread:g}; got {min_dist}")
    x = np.linspace(0, 3, 300)
    wanted = np.exp(-np.maximum(0, x - min_dist / spread))

    def curve(x: np.ndarray, a: float, b: float) -> np.ndarray:
        return 1 / (1 + a * x ** (2 * b))

    (a, b), _ = curve_fit(curve, x, wanted, xtol=1e-12, ftol=1e-12)
    return float(a), float(b)
