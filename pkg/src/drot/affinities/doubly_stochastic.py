"""Doubly stochastic affinities: symmetric optimal transport with one entropy (Chapter 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .._core.checks import as_number, check_positive
from .._core.kernels import log_sum_exp
from .._core.run import OnFailure, read_limits, settle
from ..costs.array import Pairwise, as_pairwise, check_symmetric, tile_rows
from .base import Affinity
from .roots import halley, solve_mean

Callback = Callable[[int, float], None]


@dataclass(frozen=True, kw_only=True, repr=False)
class DoublyStochasticAffinity(Affinity):
    """A symmetric plan, ``log P_ij = (f_i + f_j - C_ij) / nu``."""

    nu: float  # dual variable of the total entropy, in units of the cost
    base: Tensor  # (n,) the part of f that cancels against large costs, or 0
    rest: Tensor  # (n,) f - base, to more digits than f has

    @property
    def f(self) -> Tensor:
        """Dual variable of the row sums, (n,), in units of the cost."""
        return self.base + self.rest

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        base = self.base if self.base.any() else None
        return _exponents(cost, rows, self.rest, base).div_(self.nu)


def _exponents(cost: Tensor, rows: slice, f: Tensor, base: Tensor | None) -> Tensor:
    """f_i + f_j - (C_ij - base_i - base_j), (b, n)."""
    if base is None:
        return (f[rows, None] + f).sub_(cost)
    return (base[rows, None] + base).sub_(cost).add_(f[rows, None] + f)


def doubly_stochastic_affinity(
    cost,
    *,
    bandwidth: float | None = None,
    perplexity: float | None = None,
    damping: float = 2 / 3,
    tol: float | None = None,
    max_iter: int = 1000,
    callback: Callback | None = None,
    on_failure: OnFailure = "raise",
) -> DoublyStochasticAffinity:
    r"""Share mass symmetrically, each point giving and getting 1, at one bandwidth.

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
        Called as ``callback(iteration, residual)`` after each iteration.
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
    check_symmetric(cost, strict=True)
    tol, max_iter = read_limits(tol, max_iter, on_failure, cost.dtype)
    if (bandwidth is None) == (perplexity is None):
        raise ValueError("give exactly one of bandwidth and perplexity")
    if not 0 < as_number("damping", damping) < 1:
        raise ValueError(f"damping must lie strictly between 0 and 1; got {damping}")
    run = _Sinkhorn(cost, damping, max_iter, callback)
    f = torch.zeros(cost.shape[0], dtype=cost.dtype, device=cost.device)
    if bandwidth is not None:
        nu = check_positive("bandwidth", bandwidth, cost.dtype)
        f, residual = run.balance(f, nu, tol)
    else:
        nu, f, residual = _reach(run, f, check_positive("perplexity", perplexity), tol)
    return DoublyStochasticAffinity(
        cost=cost,
        nu=nu,
        base=torch.zeros_like(f) if run.base is None else run.base,
        rest=f,
        residual=residual,
        n_iter=len(run.trace),
        passes=float(run.passes),
        trace=tuple(run.trace),
        converged=settle("doubly_stochastic_affinity", residual, tol, len(run.trace), on_failure),
    )


class _Sinkhorn:
    """Symmetric Sinkhorn iterations that share one budget and one record.

    They seek f for the cost C_ij - base_i - base_j. Where f is so large that it cannot be rounded
    to what the row sums ask for, as for Gram costs far from the origin, it goes into the base.
    """

    def __init__(self, cost: Pairwise, damping: float, max_iter: int, callback: Callback | None):
        self.cost, self.damping, self.max_iter, self.callback = cost, damping, max_iter, callback
        self.base: Tensor | None = None  # (n,)
        self.trace: list[float] = []
        self.passes = 0

    def balance(self, f: Tensor, nu: float, tol: float) -> tuple[Tensor, float]:
        """Iterate from f until row sums are within ``tol`` of 1, or the budget is spent."""
        digit = torch.finfo(f.dtype).eps
        while True:
            excess = self.cost.join(
                log_sum_exp(_exponents(tile, rows, f, self.base).div_(nu))
                for rows, tile in self.cost.tiles(tile_rows(self.cost))
            )  # (n,)
            self.passes += 1
            residual = float(torch.expm1(excess).abs().max())
            self.trace.append(residual)
            if self.callback is not None:
                self.callback(len(self.trace), residual)
            if not residual > tol or len(self.trace) >= self.max_iter:
                return f, residual
            step = excess.mul_(-nu * self.damping)
            if residual < 0.1 and digit * float(f.abs().max()) > 0.1 * tol * nu:
                self.base = f if self.base is None else self.base + f
                f = step
            else:
                f = f + step

    def mean_entropy(self, f: Tensor, nu: float) -> float:
        """Shannon entropy of a row of mass 1, averaged over the rows."""
        total = torch.zeros((), dtype=torch.float64, device=f.device)
        for rows, tile in self.cost.tiles(tile_rows(self.cost)):
            log_p = _exponents(tile, rows, f, self.base).div_(nu)
            log_p -= log_sum_exp(log_p.clone())[:, None]
            total -= (log_p.exp() * log_p.clamp_min(-1e4)).sum(dtype=torch.float64)  # 0 log 0 = 0
        self.passes += 1
        return float(self.cost.ranks.total(total)) / self.cost.shape[0]


def _reach(run: _Sinkhorn, f: Tensor, perplexity: float, tol: float) -> tuple[float, Tensor, float]:
    """The bandwidth of an average perplexity, by a bracketed secant method on t = log nu."""
    log_nu, errors = solve_mean(run.cost, perplexity, 1e-2, 100)  # of the row-normalised kernel
    run.passes += len(errors) + 1
    t, low, high, slope, last = torch.tensor(
        [[log_nu], [-math.inf], [math.inf], [1.0], [math.inf]], dtype=torch.float64
    )
    # (t, gap, f / nu) of the last bandwidth, and the base that f then had
    past: tuple[Tensor, Tensor, Tensor, Tensor | None] | None = None
    inner = 1e-3
    while True:
        nu = math.exp(float(t))
        f, residual = run.balance(f, nu, inner)
        gap = t.new_tensor([run.mean_entropy(f, nu) - math.log(perplexity)])
        worst = max(residual, float(gap.abs()))
        if not worst > tol or len(run.trace) >= run.max_iter:
            return nu, f, worst
        inner = max(tol / 4, min(1e-3, 1e-2 * float(gap.abs())))
        if gap.abs() < 4 * residual:  # not even its sign is sure: balance better first
            continue
        low, high = (t, high) if gap < 0 else (low, t)
        chord = None
        if past is not None and past[0] != t:
            slope = (gap - past[1]) / (t - past[0])
            if past[3] is run.base:
                chord = (f / nu - past[2]) / float(t - past[0])
        past = (t, gap, f / nu, run.base)
        new = halley(t, gap, slope, torch.zeros_like(t), low, high, 1.0, last)
        # the potentials move along a smooth curve: follow its chord
        f = past[2] if chord is None else past[2] + chord * float(new - t)
        t, last = new, gap.abs()
        f = f * math.exp(float(t))
