"""Doubly stochastic affinities: symmetric optimal transport with one entropy (Chapter 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from .._core.algebra import log_sum_and_entropy, log_sum_exp
from .._core.checks import as_number
from .._core.run import OnFailure, iterate, read_limits
from .._core.threads import by_size
from ..costs.array import Pairwise, as_pairwise, check_symmetric
from .bandwidths import halley, mean_bandwidth, one_bandwidth
from .base import AffinityCallback, SymmetricAffinity, less_base
from .sinkhorn import symmetric_sinkhorn

_BELIEVED = 1e-3  # error of the row sums at which the entropy is believed


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DoublyStochasticAffinity(SymmetricAffinity):
    """Doubly stochastic affinity: a symmetric plan, ``log P_ij = (f_i + f_j - C_ij) / nu``."""

    nu: float  #: bandwidth, dual variable of the total entropy, in units of the cost

    @property
    def f(self) -> Tensor:
        """``net + base``, (n,), dual variable of each row sum, in units of the cost."""
        return self.net + self.base

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        return _exponents(self._solved(rows, cost), rows, self.net / self.nu, self.nu)


def _exponents(cost: Tensor, rows: slice, f: Tensor, nu: float) -> Tensor:
    """f_i + f_j - C_ij / nu, (b, n)."""
    return (f[rows, None] + f).sub_(cost, alpha=1 / nu)


@by_size
def doubly_stochastic_affinity(
    cost,
    *,
    bandwidth: float | None = None,
    perplexity: float | None = None,
    damping: float = 2 / 3,
    tol: float | None = None,
    max_iter: int = 1000,
    callback: AffinityCallback | None = None,
    on_failure: OnFailure = "raise",
) -> DoublyStochasticAffinity:
    r"""Doubly stochastic affinity: symmetric entropic transport of unit masses at one bandwidth.

    With a bandwidth :math:`\nu`, finds the one vector :math:`f` for which

    .. math:: P^{\mathrm{ds}}_{ij} = e^{(f_i + f_j - C_{ij}) / \nu}

    has rows of sum 1, by symmetric Sinkhorn iterations in the log domain,
    :math:`f_i \leftarrow (1 - \theta) f_i - \theta \nu \log \sum_j e^{(f_j - C_{ij}) / \nu}`.
    With an average perplexity :math:`\xi`, finds :math:`\nu` too, so that
    :math:`\sum_i \mathrm H(P_{i:}) = n (\log \xi + 1)`; the plan then solves

    .. math::

        \min_{P \ge 0} \; \langle P, C \rangle \quad \text{s.t.} \quad
        P \mathbf 1 = \mathbf 1, \; P = P^\top, \; \sum_i \mathrm H(P_{i:}) \ge n (\log \xi + 1).

    Source: (DS) and (EOT) of SNEkhorn (Van Assel et al., 2023), section 2 and appendix A.2;
    book ``prp-eot`` and ``thm-sinkhorn-rate``.

    Parameters
    ----------
    cost : array_like or Pairwise, shape (n, n), symmetric
    bandwidth : float, optional
        :math:`\nu > 0`, in units of the cost. Give this or ``perplexity``.
    perplexity : float, optional
        :math:`\xi`, the geometric mean of the row perplexities.
    damping : float
        :math:`\theta` in (0, 1). The paper's 1/2 divides the error by 2 or more at each
        iteration once it is small, 2/3 by 3, when :math:`e^{-C/\nu}` is positive definite.
    tol : float, optional
        Largest accepted :math:`\max_i | (P \mathbf 1)_i - 1 |` and, when ``perplexity`` is
        given, error on the mean log perplexity. Default 1e-9 in float64, 1e-4 in float32.
    max_iter : int
        Sinkhorn iterations in all.
    callback : callable, optional
        Called as ``callback(iteration, residual)`` at each; it ends there if it returns true.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    DoublyStochasticAffinity
        ``plan`` is symmetric and its rows sum to 1 (total mass n); ``nu`` and ``f`` are the
        duals of the entropy and of the row sums.

    Raises
    ------
    ValueError
        If the cost is not symmetric and finite, not exactly one of ``bandwidth`` and
        ``perplexity`` is given, or the perplexity is out of reach.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.

    Notes
    -----
    One pass over the array per iteration, in tiles. Not differentiable.

    Examples
    --------
    >>> affinity = doubly_stochastic_affinity([[0.0, 1.0], [1.0, 0.0]], bandwidth=1.0)
    >>> affinity.plan.sum(dim=1).round(decimals=6).tolist()
    [1.0, 1.0]
    """
    cost = as_pairwise(cost)
    check_symmetric(cost)
    tol, max_iter = read_limits(tol, max_iter, on_failure, cost.dtype)
    if not 0 < as_number("damping", damping) < 1:
        raise ValueError(f"damping must lie strictly between 0 and 1; got {damping}")
    bandwidth, perplexity = one_bandwidth(bandwidth, perplexity, cost.dtype)
    # less the diagonal, and then the least of each row, f is of the size of nu and has its digits
    base = cost.diagonal() / 2
    plain = less_base(cost, base)
    least = plain.map(lambda _, tile: tile.amin(dim=1))
    base = base + least.clamp_max(0.0) / 2
    plain = less_base(cost, base)
    nu, extra = bandwidth, 0.0
    if perplexity is not None:
        log_nu, errors = mean_bandwidth(plain, perplexity, 1e-2, 100)  # of rows normalised alone
        nu, extra = math.exp(log_nu), len(errors) + 1.0
    steps = _sinkhorn(plain, nu, perplexity, damping, tol)
    where = "doubly_stochastic_affinity"
    (f, nu), found, course = iterate(where, steps, tol, max_iter, callback, on_failure, first=1)
    passes = found["n_iter"] + extra
    affinity = DoublyStochasticAffinity(
        cost=cost, base=base, net=nu * f, nu=nu, passes=passes, **found
    )
    return course.give(affinity)


def _sinkhorn(
    cost: Pairwise, nu: float, perplexity: float | None, damping: float, tol: float
) -> Iterator[tuple[tuple[Tensor, float], float]]:
    """Symmetric Sinkhorn iterations from f = 0, at ``nu`` for ever if no perplexity is given, else
    at bandwidths of a bracketed secant method on t = log nu.

    Yields f / nu (n,) and nu, and the residual.
    """
    t, low, high, slope, last = torch.tensor(
        [[math.log(nu)], [-math.inf], [math.inf], [1.0], [math.inf]], dtype=torch.float64
    )
    start = torch.zeros(cost.shape[0], dtype=cost.dtype, device=cost.device)
    past: tuple[Tensor, Tensor, Tensor] | None = None  # t, gap and f of the last bandwidth
    enough = _BELIEVED
    while True:
        log_sums = partial(_log_sums, cost, nu, perplexity is not None)
        for f, excess, *entropy in symmetric_sinkhorn(log_sums, start, damping):
            residual = float(torch.expm1(excess).abs().max())
            if perplexity is None:
                yield (f, nu), residual
                continue
            gap = entropy[0].mean(dtype=torch.float64).view(1).cpu() - math.log(perplexity)
            yield (f, nu), max(residual, float(gap.abs()))
            if residual <= enough:
                enough = max(tol / 4, min(_BELIEVED, 1e-2 * float(gap.abs())))
                if gap.abs() >= 4 * residual:  # else not even its sign is sure
                    break
        low, high = (t, high) if gap < 0 else (low, t)
        chord = torch.zeros_like(f)
        if past is not None and past[0] != t:
            slope, chord = (gap - past[1]) / (t - past[0]), (f - past[2]) / float(t - past[0])
        past = (t, gap, f)
        t = halley(t, (gap, slope, torch.zeros_like(t)), (low, high), 1.0, last)
        nu, last = math.exp(float(t)), gap.abs()
        start = f + chord * float(t - past[0])  # f moves along a smooth curve: follow its chord


def _log_sums(cost: Pairwise, nu: float, entropies: bool, f: Tensor) -> tuple[Tensor, ...]:
    """Logarithms of the row sums, (n,), with Shannon's entropies of the rows made to sum to 1."""

    def sums(rows: slice, tile: Tensor) -> Tensor:
        x = _exponents(tile, rows, f, nu)
        found = log_sum_and_entropy(x) if entropies else (log_sum_exp(x),)
        return torch.stack(found, dim=1)

    return cost.map(sums).unbind(dim=1)
