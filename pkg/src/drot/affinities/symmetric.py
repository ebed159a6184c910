"""Symmetric entropic affinities, solved through their dual by a second-order method (Chapter 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.algebra import total
from .._core.run import OnFailure, iterate
from .._core.threads import by_size
from .base import AffinityCallback, SymmetricAffinity
from .rows import entropic_affinity
from .symmetric_dual import Dual, DualState, read_dual, times

_FALL = 0.7  # the largest share of a gamma that one step may take
_SMALL = 1e-2  # a regular row below this share of its first gamma is tried at 0; less each time
_RISE = 1e-4  # of what its slope promises, what a step must gain
_TELL = 1e3  # roundings of the value: where less is promised, only slopes tell
_TURN = 0.8  # of the slope, downwards at the end of a step that they are to accept
_DAMPING = 1e-12, 1e12  # the least; where a step is given up
_PRODUCTS = 100  # of one linear solve
_SINGULAR = 1e-10  # share of a d that the determinant of a block a d - b^2 keeps


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SymmetricEntropicAffinity(SymmetricAffinity):
    """Symmetric entropic affinity: ``log P_ij (gamma_i + gamma_j) = lam_i + lam_j - 2 C_ij``."""

    gamma: Tensor  #: (n,) >= 0, dual variable of each entropy constraint, in units of the cost
    #: (n,) P_ii where gamma_i = 0, which the formula does not give; else 0. Copies, at no cost from
    #: each other, exchange the geometric mean of theirs
    free: Tensor
    dual_value: float  #: of the dual function, in units of the cost; at the optimum it is <P, C>
    products: float  #: products with the Hessian of the dual function, none dearer than a pass
    work: tuple[float, ...]  #: passes and products when each entry of the trace was measured

    @property
    def lam(self) -> Tensor:
        """``net + 2 base``, (n,), dual variable of each row sum, in units of the cost."""
        return self.net + 2 * self.base

    @property
    def slack(self) -> Tensor:
        """Rows whose entropy has no price (gamma = 0), (n,) booleans."""
        return self.gamma == 0

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        u = (self.net[rows, None] + self.net).sub_(self._solved(rows, cost), alpha=2)
        s = self.gamma[rows, None] + self.gamma
        log_p = u / s
        if self.slack[rows].any():  # u = 0: the point itself and those at no cost from it
            log_v = self.free.clamp_min(0.0).log() / 2
            inside = torch.where(u >= 0, log_v[rows, None] + log_v, -torch.inf)
            log_p = torch.where(s == 0, inside, log_p)
        return log_p


def affinity_at(dual: Dual, state: DualState, found: dict) -> SymmetricEntropicAffinity:
    """What a solver ``found``, a certificate and the state it is of, in units of the cost."""
    return SymmetricEntropicAffinity(
        cost=dual.given,
        base=dual.base,
        gamma=dual.scale * state.gamma,
        net=dual.scale * state.lam,
        free=state.free,
        dual_value=dual.scale * state.value + 2 * total(dual.base),
        passes=dual.passes,
        products=float(dual.products),
        work=tuple(dual.work[: found["n_iter"]]),
        **found,
    )


@by_size
def symmetric_entropic_affinity(
    cost,
    *,
    perplexity: ArrayLike,
    tol: float | None = None,
    max_iter: int = 100,
    callback: AffinityCallback | None = None,
    on_failure: OnFailure = "raise",
) -> SymmetricEntropicAffinity:
    r"""Symmetric entropic affinity: a symmetric plan with unit rows of a perplexity or more each.

    Solves

    .. math::

        P^{\mathrm{se}} = \arg\min_{P \ge 0} \; \langle P, C \rangle \quad \text{s.t.} \quad
        P \mathbf 1 = \mathbf 1, \quad P = P^\top, \quad
        \mathrm H(P_{i:}) \ge \log \xi + 1 \;\; \forall i,

    with :math:`\mathrm H(p) = -\sum_j p_j (\log p_j - 1)`, through its concave dual. Where
    :math:`\gamma_i + \gamma_j > 0` the plan is

    .. math:: P^{\mathrm{se}}_{ij}
              = \exp \frac{\lambda_i + \lambda_j - 2 C_{ij}}{\gamma_i + \gamma_j} .

    Rows with :math:`\gamma_i = 0` are *slack*: their perplexity exceeds :math:`\xi`. There may
    be any number of them; no two exchange mass, unless they are copies of a point. A truncated
    Newton method on :math:`(\gamma, \lambda)`, started at the entropic affinity and damped where
    it must be, finds the duals, and an active set the slack rows.

    Source: problem (SEA), Propositions 4 and 5 of SNEkhorn (Van Assel et al., 2023), corrected;
    book ``prp-sea-saturation``, ``prp-sea-dual`` and ``alg-sea``.

    Parameters
    ----------
    cost : array_like or Pairwise, shape (n, n), symmetric and finite
        :math:`C`, with :math:`2 C_{ij} > C_{ii} + C_{jj}` off the diagonal, or equality between
        copies, which cost nothing from the same points. Adding :math:`a_i + a_j` to it changes
        ``lam`` only. For points pass ``drot.sqeuclidean(X)``.
    perplexity : float or array_like of shape (n,)
        :math:`\xi`, for all rows or one per row. Strictly between the number of entries tied
        for the cheapest of a row and n.
    tol : float, optional
        Largest accepted violation of the optimality conditions, in max norm over the row sums,
        :math:`| (P \mathbf 1)_i - 1 |`, and the entropies,
        :math:`| \mathrm H(P_{i:}) - \log \xi - 1 |` (for a slack row only what is missing).
        Default 1e-9 in float64, 1e-4 in float32.
    max_iter : int
        Iterates at which the conditions are checked, the start included. Typical: 6 to 14.
    callback : callable, optional
        Called as ``callback(iteration, residual)`` at each; it ends there if it returns true.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    SymmetricEntropicAffinity
        ``plan`` is symmetric and its rows sum to 1 (total mass n); ``gamma`` and ``lam`` are the
        duals of the entropies and of the row sums; ``passes`` counts evaluations of the whole
        array, those of the start included, and ``products`` the products with the Hessian.

    Raises
    ------
    ValueError
        If the cost is not symmetric and finite, two points cost less than on their own, or a
        perplexity is out of reach.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.

    Notes
    -----
    A dense cost keeps six more arrays of its size, three at an iterate and three at the next; with
    tiles nothing of that size is held and each product evaluates the array again. Not
    differentiable.

    Examples
    --------
    >>> affinity = symmetric_entropic_affinity([[0, 1, 4], [1, 0, 1], [4, 1, 0]], perplexity=1.5)
    >>> affinity.perplexity.round(decimals=4).tolist()  # the middle point has more than it needs
    [1.5, 1.943, 1.5]
    >>> affinity.slack.tolist()
    [False, True, False]
    """
    dual, tol, max_iter = read_dual(cost, perplexity, tol, max_iter, on_failure)
    lowest = float(dual.target.min()) - 1
    rough = min(1e-2, 0.1 * lowest) if lowest > 0 else 1e-2  # the start need not be better
    start = entropic_affinity(
        dual.cost, perplexity=perplexity, tol=rough, max_iter=max_iter, on_failure="ignore"
    )
    dual.passes += start.passes
    steps = _Newton(dual, start.eps, start.lam, tol).steps()
    where = "symmetric_entropic_affinity"
    state, found, course = iterate(where, steps, tol, max_iter, callback, on_failure, first=1)
    return course.give(affinity_at(dual, state, found))


class _Newton:
    """Truncated Newton ascent on the dual, with an active set for gamma_i = 0 (``alg-sea``).

    The diagonal of the cost is 0. A row is *regular* (gamma > 0), *pinned* (gamma = lam = 0, what
    its row sum leaves stays on the diagonal) or *bare* (gamma = 0, lam < 0, nothing stays).
    Gradients and steps are (2, n), for gamma and for lam.
    """

    def __init__(self, dual: Dual, gamma: Tensor, lam: Tensor, tol: float):
        self.dual, self.tol = dual, tol
        self.small = _SMALL * gamma
        self.pinned = torch.zeros_like(gamma, dtype=torch.bool)
        self.damping = 1e-2  # of the first step after Newton's
        self.state = dual.at(gamma, lam, self.pinned)

    def steps(self) -> Iterator[tuple[DualState, float]]:
        """Check, sort the rows, step: yield states and residuals until no step increases g."""
        going = True
        while going:
            yield self.state, self.dual.measured(self.state)
            self._sort_rows()
            # the sorting alone may be enough
            going = self.state.residual <= self.tol or self._step()

    def _sort_rows(self) -> None:
        """Move rows between regular, pinned and bare where the conditions ask for it."""
        state, gap = self.state, self._gap()
        gamma, lam = state.gamma.clone(), state.lam.clone()
        slack = gamma == 0
        enter = ~slack & (gamma < self.small) & (gap < 0)
        leave = slack & (gap > 0) & ((state.row_sum - 1).abs() < 0.1) & (state.free >= 0)
        drop = self.pinned & (state.free < 0)
        stop = slack & ~self.pinned & (lam >= 0) & (state.row_sum < 1)
        if not (enter | leave | drop | stop).any():
            return
        self.pinned = (self.pinned | enter | stop) & ~leave & ~drop
        lam[enter] = gamma[enter] = 0.0
        self.small[leave] *= _SMALL
        gamma[leave] = self.small[leave]
        lam[leave] += gamma[leave] * state.free[leave].clamp_min(1e-12).log()
        self.state = self.dual.at(gamma, lam, self.pinned)
        wrong = enter & (self._gap() > 0)  # rows that lean on each other cannot all be slack
        if wrong.any():
            self.small[wrong] = 0.1 * state.gamma[wrong]
            self.pinned = self.pinned & ~wrong
            gamma[wrong], lam[wrong] = state.gamma[wrong], state.lam[wrong]
            self.state = self.dual.at(gamma, lam, self.pinned)

    def _step(self) -> bool:
        """Solve, clip, try; with more and more damping until the dual rises as its slope says."""
        start, gradient, damping = self.state, self._gradient(self.state), 0.0
        while damping < _DAMPING[1]:
            step = self._clipped(damping)
            slope = total(gradient * step)
            if slope > 0:
                lam = start.lam + step[1]
                lam = torch.where(start.gamma > 0, lam, lam.clamp(max=0.0))
                state = self.dual.at(start.gamma + step[0], lam, self.pinned, beside=start)
                if slope > _TELL * torch.finfo(lam.dtype).eps * abs(start.value):
                    enough = state.value >= start.value + _RISE * slope
                else:  # digits of the value no longer tell; those of its slope do
                    enough = total(self._gradient(state) * step) >= -_TURN * slope
                if enough:
                    self.state = state
                    self.damping = max(damping / 8, _DAMPING[0]) if damping else self.damping
                    return True
            damping = 8 * damping if damping else self.damping
        return False

    def _clipped(self, damping: float) -> Tensor:
        """Newton's step or a damped one, with no gamma falling by more than 70 %."""
        state, movable, least = self.state, self._movable(), -_FALL * self.state.gamma
        # of the linear solve: convergence of order 1.6, no digit beyond tol
        forcing = min(0.3, max(state.residual**0.6, 0.1 * self.tol / state.residual))
        aim = self._aim() if damping == 0 else self._gradient(state)
        step = self._solve(aim, movable, forcing, damping)
        held = torch.zeros_like(self.pinned)
        for _ in range(4):  # holding some gammas may send others down
            short = movable[0] & (step[0] < least)
            if not short.any():
                break
            held |= short
            fixed = torch.stack([torch.where(held, least, 0.0), torch.zeros_like(least)])
            left = aim - self.dual.hessian_product(state, fixed)
            others = torch.stack([movable[0] & ~held, movable[1]])
            step = fixed + self._solve(left, others, forcing, damping)
        dg, dl = step
        # the term of P_ii is constant along rays through its apex, gamma = lam = 0: let
        # log P_ii turn by what the linear model says, however much gamma falls
        level = state.lam / state.gamma
        turn = ((dl - level * dg) / state.gamma).clamp(-1.0, 1.0)
        dl = torch.where(held, level * dg + (state.gamma + dg) * turn, dl)
        return torch.stack([torch.maximum(dg, least), dl])

    def _movable(self) -> Tensor:
        """Which gammas and which lams may move, (2, n)."""
        return torch.stack([self.state.gamma > 0, ~self.pinned])

    def _gradient(self, state: DualState) -> Tensor:
        slopes = torch.stack([self.dual.target - state.entropy, 1 - state.row_sum])
        return torch.where(self._movable(), slopes, 0.0)

    def _gap(self) -> Tensor:
        """Missing log perplexity of each row, made to sum to 1."""
        state = self.state
        return self.dual.target - state.entropy / state.row_sum - state.row_sum.log()

    def _aim(self) -> Tensor:
        """The change of H and of the row sums that brings log perplexities and log row sums to
        their targets, to first order: they are closer to linear than the gradient."""
        r, gap = self.state.row_sum, self._gap()
        log_r = r.log()
        return torch.stack([r * (gap - (self.dual.target - 1 - gap - log_r) * log_r), -r * log_r])

    def _solve(self, right: Tensor, movable: Tensor, forcing: float, damping: float) -> Tensor:
        """Conjugate gradients on (-Hess + damping M) step = right, where ``movable``; (2, n) each.

        Ends at the relative accuracy ``forcing``.
        M measures, row by row, the relative change of gamma and the turn of log P_ii:
        ((dl - level dg)^2 + dg^2) / gamma with level = lam / gamma.
        The preconditioner is the 2 x 2 block of each row.
        """
        state = self.state
        gamma = torch.where(state.gamma > 0, state.gamma, 1.0)
        level = state.lam / gamma
        metric = damping * torch.stack([1 + level**2, -level, torch.ones_like(level)]) / gamma
        d, b, a = state.sums + state.diagonal + metric
        d, a = torch.where(movable, torch.stack([d, a]), 1.0)
        b = torch.where(movable.all(dim=0), b, 0.0)
        det = torch.maximum(a * d - b * b, _SINGULAR * a * d)  # a constant row has det = 0
        inverse = torch.stack([a, -b, d]) / det
        left = torch.where(movable, right, 0.0)
        step = torch.zeros_like(left)
        search = rough = times(inverse, left)
        rho = first = (left * rough).sum()
        for _ in range(_PRODUCTS):
            if not rho > forcing**2 * first:
                break
            image = self.dual.hessian_product(state, search) + times(metric, search)
            image = torch.where(movable, image, 0.0)
            curvature = (search * image).sum()
            if not curvature > 0:
                break
            step = step + rho / curvature * search
            left = left - rho / curvature * image
            rough = times(inverse, left)
            rho, last = (left * rough).sum(), rho
            search = rough + rho / last * search
        return step
