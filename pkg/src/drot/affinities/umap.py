"""The input graph of UMAP, and the curve of its output (Chapter 9)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .._core.algebra import FAR, exp
from .._core.checks import as_count, as_number, check_no_entry
from .._core.run import OnFailure, certify, read_limits
from .._core.threads import by_size
from ..costs.array import Nearest, WithoutDiagonal, as_pairwise, smallest
from .bandwidths import find_roots
from .base import NEGATIVE, Affinity

_FLOOR = 1e-3  # of the mean distance, as in umap-learn


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UMAPMembership(Affinity):
    """UMAP's memberships, ``log P_ij = -max(0, d_ij - rho_i) / sigma_i``, of k - 1 edges a row."""

    rho: Tensor  #: (n,) distance below which an edge is certain
    sigma: Tensor  #: (n,) bandwidth beyond that distance, in its unit
    floored: Tensor  #: (n,) bool, whether sigma is the least allowed and the row sum >= log2 k

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
    values, columns = smallest(whole, k - 1)
    least, most = values[:, 0], values[:, -1]
    check_no_entry(least < 0, least, NEGATIVE)
    says = f"{{at}} of the cost has fewer than {k - 1} finite entries for neighbours"
    check_no_entry(~most.isfinite(), most, says)
    rho, sigma, floored, gap, trace = _bandwidths(values, k, tol, max_iter)
    found = certify("umap_membership", gap, len(trace), tol, on_failure, trace=trace)
    near = Nearest(values, columns, n, whole.block, ranks=whole.ranks)
    return UMAPMembership(cost=near, rho=rho, sigma=sigma, floored=floored, passes=1.0, **found)


def _bandwidths(
    values: Tensor, k: int, tol: float, max_iter: int
) -> tuple[Tensor, Tensor, Tensor, float, list[float]]:
    """rho, sigma and where sigma is the floor, (b,); the largest error of a sum, by iteration too.

    From the costs of the k - 1 nearest other points.
    """
    distances = values.sqrt()
    rho = distances.masked_fill(distances == 0, torch.inf).amin(dim=1)
    rho = torch.where(rho < torch.inf, rho, 0)  # of copies alone
    excess, target = (distances - rho[:, None]).clamp_min_(0.0), math.log2(k)

    def gap(t: Tensor, excess: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The sum of exp(-excess / sigma) less the target, t = log sigma, and two derivatives."""
        e = (excess / torch.exp(t)[:, None]).clamp_max_(FAR)
        weight = exp(e, -1)
        value = weight.sum(dim=1) - target
        slope = weight.mul_(e).sum(dim=1)
        return value, slope, weight.mul_(e - 1).sum(dim=1)

    active = (excess == 0).sum(dim=1) < target  # else the certain edges alone reach it
    some, tol = excess[active], tol / 2  # sums below round anew
    log_sigma, _, trace, _ = find_roots(gap, some.mean(dim=1).log(), some, tol, max_iter)
    sigma = excess.new_zeros(len(excess))
    sigma[active] = log_sigma.exp()
    # means over k entries: the distance of a point to itself counts, as in umap-learn
    sums = distances.sum(dim=1)
    floor = _FLOOR * torch.where(rho > 0, sums, sums.mean()) / k
    floor = floor.clamp_min(torch.finfo(floor.dtype).tiny)
    floored = sigma < floor
    sigma = sigma.maximum(floor)
    sums = torch.exp(-excess / sigma[:, None]).sum(dim=1)
    left = (sums - target).abs().masked_fill(floored, 0.0)
    return rho, sigma, floored, float(left.max()), trace


def membership_rows(cost: Tensor, n_neighbors: int) -> Tensor:
    """Rows (b, n) of :func:`umap_membership` for new points, from their costs to n others, none of
    which they are a copy of.
    """
    values, columns = torch.topk(cost, n_neighbors - 1, largest=False)
    tol, max_iter = read_limits(None, 100, "raise", cost.dtype)
    rho, sigma, _, gap, trace = _bandwidths(values, n_neighbors, tol, max_iter)
    certify("rows of new points", gap, len(trace), tol, "raise")
    return torch.zeros_like(cost).scatter_(1, columns, _logs(values, rho, sigma).exp_())


def umap_curve(min_dist: float = 0.1) -> tuple[float, float]:
    r"""The two numbers of UMAP's curve of the embedding, from the distance of its neighbours.

    .. math::

        \min_{a, b} \sum_x \Bigl( \frac{1}{1 + a x^{2 b}} - \psi(x) \Bigr)^2, \qquad
        \psi(x) = e^{- \max(0, x - m)},

    over 300 distances x evenly spaced from 0 to 3, by SciPy's least squares from a = b = 1.
    :math:`\psi` is the membership of :func:`umap_membership` with :math:`\rho = m` and
    :math:`\sigma = 1`; the curve is its smooth stand-in. A map of another spread s is this one,
    enlarged: b is the same, and a is divided by :math:`s^{2b}`.

    Source: UMAP (McInnes et al., 2018), section 4, definition 11; its software fits on the
    same grid; book ``cor-curve-cpd``.

    Parameters
    ----------
    min_dist : float
        :math:`m`, from 0 to 1, in units of the embedding.

    Returns
    -------
    a, b : float

    Raises
    ------
    ValueError
        If the number is out of range.

    Examples
    --------
    >>> [round(number, 3) for number in umap_curve()]
    [1.577, 0.895]
    """
    from scipy.optimize import curve_fit

    min_dist = as_number("min_dist", min_dist, 0, 1)
    x = np.linspace(0, 3, 300)
    wanted = np.exp(-np.maximum(0, x - min_dist))

    def curve(x: np.ndarray, a: float, b: float) -> np.ndarray:
        return 1 / (1 + a * x ** (2 * b))

    (a, b), _ = curve_fit(curve, x, wanted, xtol=1e-12, ftol=1e-12)
    return float(a), float(b)
