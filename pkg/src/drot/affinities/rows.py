"""Affinities by rows: Gaussian, self-tuning and entropic (Chapter 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import zip_longest

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.algebra import exp, log_sum_exp
from .._core.checks import as_count, check_choice, check_no_entry
from .._core.run import OnFailure, certify, read_limits
from .._core.threads import by_size
from ..costs.array import (
    Diagonal,
    Pairwise,
    WithoutDiagonal,
    as_pairwise,
    check_symmetric,
    fill_diagonal,
)
from ..costs.distances import nearest
from .bandwidths import as_perplexity, mean_bandwidth, one_bandwidth, solve_rows
from .base import NEGATIVE, Affinity


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class EntropicAffinity(Affinity):
    """Entropic affinity: rows of one perplexity, ``log P_ij = (lam_i - C_ij) / eps_i``."""

    eps: Tensor  #: (n,) bandwidth of each row, dual variable of its entropy, in units of the cost
    lam: Tensor  #: (n,) dual variable of each row sum, in units of the cost

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        return _log_softmax(cost, self.eps[rows, None])

    def symmetrized(self) -> SymmetrizedAffinity:
        r"""(P + P^T) / 2, as :func:`drot.symmetrize` has it, of a symmetric cost: never formed.

        The entry (j, i) of P is known where (i, j) is met, since its cost is the same. One pass.
        """
        as_pairwise(self.cost)  # square
        # self-loops that are not allowed have an infinite cost
        check_symmetric(self.cost.derive(lambda i: fill_diagonal(self.cost.rows(i).clone(), i, 0)))
        least = self.cost.map(lambda _, tile: tile.amin(dim=1))

        def masses(rows: slice, tile: Tensor) -> Tensor:
            return log_sum_exp((least[rows, None] - tile).div_(self.eps[rows, None]))

        known = {name: value for name, value in vars(self).items() if name != "lam"}
        return SymmetrizedAffinity(**known, least=least, log_mass=self.cost.map(masses))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SymmetrizedAffinity(Affinity):
    """Symmetrised entropic affinity: its mean with its transpose, of a symmetric cost.

    ``log P_ij = (least_i - C_ij) / eps_i - log_mass_i`` before: exact for a common offset of costs.
    """

    eps: Tensor  #: (n,) of the rows, as in EntropicAffinity
    least: Tensor  #: (n,) cheapest entry of each row
    log_mass: Tensor  #: (n,) logarithm of sum_j exp((least_i - C_ij) / eps_i)
    symmetric = True

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        return torch.logaddexp(*self._both(rows, cost)).sub_(math.log(2))

    def rows(self, index: slice) -> Tensor:
        one, other = (exp(x, out=x) for x in self._both(index, self.cost.rows(index)))
        return one.add_(other).mul_(0.5)

    def _both(self, rows: slice, cost: Tensor) -> tuple[Tensor, Tensor]:
        """log P_ij and log P_ji, (b, n)."""
        own = (self.least[rows, None] - cost).div_(self.eps[rows, None])
        other = (self.least - cost).div_(self.eps).sub_(self.log_mass)
        return own.sub_(self.log_mass[rows, None]), other


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GaussianAffinity(Affinity):
    """Gaussian affinity: rows of one bandwidth, ``log P_ij = (lam_i - C_ij) / nu``."""

    nu: float  #: bandwidth, in units of the cost
    lam: Tensor  #: (n,) minus ``nu`` times the logarithm of each row sum of the kernel

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        return _log_softmax(cost, self.nu)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SelfTuningAffinity(Affinity):
    """Self-tuning affinity: a kernel, not a plan, ``log P_ij = -C_ij / (sigma_i sigma_j)``."""

    sigma: Tensor  #: (n,) square root of the cost of the k-th neighbour

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        return -cost / (self.sigma[rows, None] * self.sigma)


def _log_softmax(cost: Tensor, scale: Tensor | float) -> Tensor:
    """Log of rows of sum 1, (b, m); exact for a common offset, which ``lam - cost`` is not."""
    return torch.log_softmax((cost.amin(dim=1, keepdim=True) - cost) / scale, dim=1)


@by_size
def entropic_affinity(
    cost,
    *,
    perplexity: ArrayLike,
    diagonal: Diagonal = "keep",
    n_neighbors: int | None = None,
    tol: float | None = None,
    max_iter: int = 100,
    on_failure: OnFailure = "raise",
) -> EntropicAffinity:
    r"""Entropic affinity: a Gaussian kernel with a bandwidth for each row, of one perplexity.

    Solves, one row at a time,

    .. math::

        P^{\mathrm e} = \arg\min_{P \ge 0} \; \langle P, C \rangle
        \quad \text{s.t.} \quad P \mathbf 1 = \mathbf 1, \quad
        \mathrm H(P_{i:}) \ge \log \xi + 1 \;\; \forall i,

    with :math:`\mathrm H(p) = -\sum_j p_j (\log p_j - 1)`. The constraints are tight and
    :math:`P_{ij} \propto e^{-C_{ij} / \varepsilon_i}`. A safeguarded Newton method with a
    third-order (Halley) correction finds :math:`\log \varepsilon_i`, for all rows at once; rows
    that are done drop out.

    Source: problem (EA) and Proposition 1 of SNEkhorn (Van Assel et al., 2023); book
    ``prp-ea-ot`` and ``thm-ea-root``.

    Parameters
    ----------
    cost : array_like or Pairwise, shape (n, n)
        :math:`C`, finite. Only differences within a row matter. For points pass
        ``drot.sqeuclidean(X)``.
    perplexity : float or array_like of shape (n,)
        :math:`\xi`, for all rows or one per row. Strictly between the number of entries tied
        for the cheapest of a row and the number of its entries.
    diagonal : {"keep", "drop"}
        ``"keep"`` lets a point send mass to itself, as (EA) is written; ``"drop"`` forbids it,
        as t-SNE software does.
    n_neighbors : int, optional
        Restrict each row to its ``n_neighbors`` cheapest columns (the diagonal not counted when
        it is dropped). An approximation: the entropy is exact for the restricted row.
    tol : float, optional
        Largest accepted :math:`\max_i | \log \mathrm{perplexity}_i - \log \xi |`.
        Default 1e-9 in float64, 1e-4 in float32.
    max_iter : int
        Evaluations allowed per row. Typical: 5 to 8.
    on_failure : {"raise", "warn", "ignore"}
        What to do when ``tol`` is not reached.

    Returns
    -------
    EntropicAffinity
        Rows of ``plan`` sum to 1 (total mass n). ``eps`` and ``lam`` are the duals, in units
        of the cost; ``passes`` counts evaluations of the whole array. Dtype and device are the
        cost's.

    Raises
    ------
    ValueError
        If the cost is not square and finite, or a perplexity is out of reach.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.

    Notes
    -----
    Each tile of rows is computed once and iterated on, so memory is one tile beyond the cost.
    :math:`O(n^2)` time per pass. Not differentiable.

    Examples
    --------
    >>> C = [[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]]
    >>> affinity = entropic_affinity(C, perplexity=2.0)
    >>> affinity.perplexity.round(decimals=6).tolist()
    [2.0, 2.0, 2.0]
    >>> torch.allclose(affinity.eps[0], affinity.eps[2])  # the end points see the same costs
    True
    """
    cost = _read_cost(cost, diagonal)
    tol, max_iter = read_limits(tol, max_iter, on_failure, cost.dtype)
    if n_neighbors is not None:
        cost = nearest(cost, n_neighbors=n_neighbors)
    n = cost.shape[0]
    xi = as_perplexity(perplexity, n, cost.device)  # (n,)
    trace: list[float] = []  # largest error over all rows, by iteration
    evaluations = 0
    solved = torch.empty(3, cost.own.stop - cost.own.start, dtype=cost.dtype, device=cost.device)
    for rows, tile in cost.packed_tiles():
        cheapest, numbers = tile.amin(dim=1), torch.arange(n, device=tile.device)[rows]  # (b,)
        log_eps, log_z, gap, errors, work = solve_rows(
            tile, xi[rows], numbers, tol, max_iter, cost.packed_tiles()
        )
        trace = [max(pair) for pair in zip_longest(trace, errors, fillvalue=0.0)]
        evaluations += work
        eps = log_eps.exp()
        solved[:, cost.local(rows)] = torch.stack([eps, cheapest - eps * log_z, gap])
    eps, lam, gap = cost.join([solved.T]).T.contiguous()
    evaluations = int(cost.ranks.total(torch.tensor(evaluations, device=cost.device)))
    trace, residual = cost.ranks.largest(trace, cost.device), float(gap.abs().max())
    found = certify("entropic_affinity", residual, len(trace), tol, on_failure, trace=trace)
    return EntropicAffinity(cost=cost, eps=eps, lam=lam, passes=evaluations / n, **found)


def entropic_rows(cost: Tensor, perplexity: ArrayLike, rows: Tensor) -> Tensor:
    """Rows (b, n) of :func:`entropic_affinity` for new points, numbered ``rows``, from their costs
    to n others.
    """
    tol, max_iter = read_limits(None, 100, "raise", cost.dtype)
    xi = as_perplexity(perplexity, len(cost), cost.device)
    log_eps, _, gap, errors, _ = solve_rows(cost, xi, rows, tol, max_iter)
    certify("rows of new points", float(gap.abs().max()), len(errors), tol, "raise")
    # float32 has more digits of these than of their logarithms
    return torch.softmax(-(cost - cost.amin(dim=1, keepdim=True)) / log_eps.exp()[:, None], dim=1)


def _read_cost(cost, diagonal: Diagonal) -> Pairwise:
    check_choice("diagonal", diagonal, Diagonal)
    cost = as_pairwise(cost)
    return WithoutDiagonal(cost) if diagonal == "drop" else cost


@by_size
def gaussian_affinity(
    cost,
    *,
    bandwidth: float | None = None,
    perplexity: float | None = None,
    diagonal: Diagonal = "keep",
    tol: float | None = None,
    max_iter: int = 100,
    on_failure: OnFailure = "raise",
) -> GaussianAffinity:
    r"""Gaussian affinity: a kernel of one bandwidth, with rows that sum to 1.

    .. math:: P^{\mathrm{rs}}_{ij} = \frac{e^{-C_{ij} / \nu}}{\sum_\ell e^{-C_{i \ell} / \nu}}.

    Give the bandwidth :math:`\nu`, or an average perplexity :math:`\xi`: then :math:`\nu` solves
    :math:`\frac1n \sum_i \mathrm H(P_{i:}) = \log \xi + 1`, a single equation that increases
    with :math:`\nu`. ``drot.symmetrize`` gives the paper's symmetric version.

    Source: :math:`P^{\mathrm{rs}}` in section 5 of SNEkhorn (Van Assel et al., 2023); book
    ``thm-ea-root``.

    Parameters
    ----------
    cost : array_like or Pairwise, shape (n, n)
    bandwidth : float, optional
        :math:`\nu > 0`, in units of the cost.
    perplexity : float, optional
        :math:`\xi`, the geometric mean of the row perplexities.
    diagonal : {"keep", "drop"}
    tol : float, optional
        Largest accepted error on the mean log perplexity. Default 1e-9 in float64, 1e-4 in
        float32. Without ``perplexity`` there is nothing to solve.
    max_iter, on_failure
        As in :func:`entropic_affinity`.

    Returns
    -------
    GaussianAffinity
        Rows of ``plan`` sum to 1 (total mass n).

    Raises
    ------
    ValueError
        If not exactly one of ``bandwidth`` and ``perplexity`` is given, or it is out of reach or
        of the range of the dtype.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.

    Examples
    --------
    >>> affinity = gaussian_affinity([[0.0, 1.0], [1.0, 0.0]], bandwidth=1.0)
    >>> round(float(affinity.plan[0, 0]), 6)  # 1 / (1 + 1/e)
    0.731059
    """
    cost = _read_cost(cost, diagonal)
    tol, max_iter = read_limits(tol, max_iter, on_failure, cost.dtype)
    nu, perplexity = one_bandwidth(bandwidth, perplexity, cost.dtype)
    trace: list[float] = []
    residual, passes = 0.0, 0
    if perplexity is not None:
        log_nu, trace = mean_bandwidth(cost, perplexity, tol, max_iter)
        nu, residual, passes = math.exp(log_nu), trace[-1], len(trace) + 1
    lam = cost.map(lambda _, tile: log_sum_exp(tile / -nu).mul_(-nu))
    says = f"{{at}} of this cost leaves the range of {lam.dtype} at bandwidth={nu:g}; pass a "
    check_no_entry(~lam.isfinite(), lam, says + "bandwidth nearer to the costs")
    found = certify("gaussian_affinity", residual, len(trace), tol, on_failure, trace=trace)
    return GaussianAffinity(cost=cost, nu=nu, lam=lam, passes=passes + 1.0, **found)


@by_size
def self_tuning_affinity(
    cost, *, n_neighbors: int = 7, diagonal: Diagonal = "keep"
) -> SelfTuningAffinity:
    r"""Self-tuning affinity: a Gaussian kernel scaled by the distance to the k-th neighbour.

    .. math:: P^{\mathrm{st}}_{ij} = \exp \Bigl( - \frac{C_{ij}}{\sigma_i \sigma_j} \Bigr),
              \qquad \sigma_i = \sqrt{C_{i (k)}},

    where :math:`C_{i (k)}` is the k-th smallest cost of row i, the point itself not counted.
    The kernel is symmetric and is *not* normalised: its entries lie between 0 and 1.

    Source: Zelnik-Manor and Perona (2004), section 2.1, with C a squared distance;
    :math:`P^{\mathrm{st}}` in section 5 of SNEkhorn; book ``lem-self-tuning-scale``.

    Parameters
    ----------
    cost : array_like or Pairwise, shape (n, n), non-negative
    n_neighbors : int
        :math:`k`, from 1 to n - 1.
    diagonal : {"keep", "drop"}
        ``"keep"`` leaves the ones on the diagonal, ``"drop"`` sets it to 0 as the paper of 2004
        does.

    Returns
    -------
    SelfTuningAffinity
        ``sigma`` is in units of the square root of the cost.

    Raises
    ------
    ValueError
        If a cost is negative, or a point has ``n_neighbors`` copies (its sigma would be 0) or
        fewer finite costs (its sigma would be infinite).

    Examples
    --------
    >>> affinity = self_tuning_affinity([[0.0, 4.0], [4.0, 0.0]], n_neighbors=1)
    >>> affinity.sigma.tolist(), round(float(affinity.plan[0, 1]), 6)  # exp(-4 / (2 * 2))
    ([2.0, 2.0], 0.367879)
    """
    cost = _read_cost(cost, diagonal)
    n = cost.shape[0]
    n_neighbors = as_count("n_neighbors", n_neighbors, 1, n - 1)

    def ends(_: slice, tile: Tensor) -> Tensor:
        return torch.topk(tile, n_neighbors, largest=False).values[:, [0, -1]]

    least, kth = WithoutDiagonal(cost).map(ends).unbind(dim=1)
    check_no_entry(least < 0, least, NEGATIVE)
    sigma = kth.sqrt()  # (n,)
    says = f"{{at}} has fewer than n_neighbors={n_neighbors} finite costs to other points, so its "
    says += "bandwidth would be infinite; lower n_neighbors or keep more costs"
    check_no_entry(~sigma.isfinite(), sigma, says)
    says = f"{{at}} has {n_neighbors} or more copies, so its bandwidth would be 0; raise "
    says += "n_neighbors above the number of copies or remove them"
    check_no_entry(sigma == 0, sigma, says)
    return SelfTuningAffinity(
        cost=cost, sigma=sigma, passes=1.0, residual=0.0, n_iter=0, converged=True, trace=()
    )
