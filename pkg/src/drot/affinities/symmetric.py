"""Symmetric entropic affinities, solved through their dual by a second-order method (Chapter 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from .._core.checks import as_perplexity
from .._core.run import OnFailure, iterate, read_limits
from ..costs.array import as_pairwise, check_symmetric
from .rows import entropic_affinity
from .symmetric_dual import Dual, Point, SymmetricEntropicAffinity

Callback = Callable[[int, float], None]

_FALL = 0.7  # the largest share of a gamma that one step may take


def symmetric_entropic_affinity(
    cost,
    perplexity,
    *,
    tol: float | None = None,
    max_iter: int = 100,
    callback: Callback | None = None,
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
    book ``prp-sea-saturation`` and ``prp-sea-dual``.

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
        Points at which the conditions are checked, the start included. Typical: 6 to 14.
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
    A dense cost keeps six more arrays of its size, three at a point and three at the next; with
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
    cost = as_pairwise(cost)
    check_symmetric(cost)
    tol, max_iter = read_limits(tol, max_iter, on_failure, cost.dtype)
    target = as_perplexity(perplexity, cost.shape[0], cost.device).log().to(cost.dtype) + 1
    least = float(target.min()) - 1
    rough = min(1e-2, 0.1 * least) if least > 0 else 1e-2  # the start need not be better
    dual = Dual(cost, target)
    start = entropic_affinity(
        dual.cost, perplexity, tol=rough, max_iter=max_iter, on_failure="ignore"
    )
    run = _Newton(dual, start.eps, start.lam, tol)
    work: list[float] = []

    def steps() -> Iterator[tuple[Point, float]]:
        going = True
        while going:
            work.append(start.passes + dual.passes + dual.products)
            yield run.point, run.residual()
            going = run.step()

    where = "symmetric_entropic_affinity"
    course = iterate(where, steps(), tol, max_iter, callback, on_failure, first=1)
    return dual.affinity(course.state, course, start.passes, work)


class _Newton:
    """Truncated Newton ascent on the dual, with an active set for gamma_i = 0.

    The diagonal of the cost is 0. A row is *regular* (gamma > 0), *pinned* (gamma = lam = 0, what
    its row sum leaves stays on the diagonal) or *bare* (gamma = 0, lam < 0, nothing stays).
    """

    def __init__(self, dual: Dual, gamma: Tensor, lam: Tensor, tol: float):
        self.dual, self.tol = dual, tol
        self.least = 1e-2 * gamma  # a regular row below this is tried at 0
        self.pinned = torch.zeros_like(gamma, dtype=torch.bool)
        self.damping = 1e-2
        self.point = dual.at(gamma, lam, self.pinned)

    def residual(self) -> float:
        return float(torch.maximum(*self.dual.violation(self.point)).max())

    def step(self) -> bool:
        """One step that increases the dual; False if none can be found."""
        self._sort_rows()
        if self.residual() <= self.tol:  # the sorting alone was enough
            return True
        start = self.point
        if self._try(start, *self._newton()):
            return True
        while self.damping < 1e12:
            dg, dl = self._solve(*self._gradient(start), *self._free_parts(), 0.1, self.damping)
            if (dg >= -_FALL * start.gamma).all() and self._try(start, dg, dl):
                self.damping /= 8
                return True
            self.damping *= 8
        return False

    def _try(self, start: Point, dg: Tensor, dl: Tensor) -> bool:
        """Move by (dg, dl) if the dual increases enough for its slope."""
        slope = _inner(self._gradient(start), (dg, dl))
        if not slope > 0:
            return False
        lam = start.lam + dl
        lam = torch.where(start.gamma > 0, lam, lam.clamp(max=0.0))
        point = self.dual.at(start.gamma + dg, lam, self.pinned, beside=start)
        if slope > 1e3 * torch.finfo(dg.dtype).eps * abs(start.value):
            enough = point.value >= start.value + 1e-4 * slope
        else:  # digits of the value no longer tell; those of its slope do
            enough = _inner(self._gradient(point), (dg, dl)) >= -0.8 * slope
        if enough:
            self.point = point
        return enough

    def _newton(self) -> tuple[Tensor, Tensor]:
        """Newton's step, with no gamma falling by more than 70 %."""
        point, least = self.point, -_FALL * self.point.gamma
        regular, moving = self._free_parts()
        # aim at log row sums and log perplexities, which are closer to linear than the gradient:
        # (g, h) is the change of H and of the row sums that brings both to 0 in that sense
        r, gap = point.row_sum, self._gap()
        g = r * (gap - (self.dual.target - 1 - gap - r.log()) * r.log())
        h = -r * r.log()
        forcing = self._forcing()
        dg, dl = self._solve(g, h, regular, moving, forcing)
        held = torch.zeros_like(regular)
        for _ in range(4):  # holding some gammas may send others down
            short = regular & (dg < least)
            if not short.any():
                break
            held |= short
            dg = torch.where(held, least, 0.0)
            hg, hl = self.dual.product(point, dg, torch.zeros_like(dg))
            rest, dl = self._solve(g - hg, h - hl, regular & ~held, moving, forcing)
            dg = dg + rest
        # the term of P_ii is constant along rays through its apex, gamma = lam = 0: let
        # log P_ii turn by what the linear model says, however much gamma falls
        level = point.lam / point.gamma
        turn = ((dl - level * dg) / point.gamma).clamp(-1.0, 1.0)
        dl = torch.where(held, level * dg + (point.gamma + dg) * turn, dl)
        return torch.maximum(dg, least), dl

    def _forcing(self) -> float:
        """Relative accuracy of the linear solve: convergence of order 1.6, no digit beyond tol."""
        residual = self.residual()
        return min(0.3, max(residual**0.6, 0.1 * self.tol / residual))

    def _free_parts(self) -> tuple[Tensor, Tensor]:
        """Which gammas and which lams may move."""
        return self.point.gamma > 0, ~self.pinned

    def _gradient(self, point: Point) -> tuple[Tensor, Tensor]:
        return (
            torch.where(point.gamma > 0, self.dual.target - point.entropy, 0.0),
            torch.where(self.pinned, 0.0, 1 - point.row_sum),
        )

    def _sort_rows(self) -> None:
        """Move rows between regular, pinned and bare where the conditions ask for it."""
        point, dual = self.point, self.dual
        gap = self._gap()
        gamma, lam = point.gamma.clone(), point.lam.clone()
        slack = gamma == 0
        enter = ~slack & (gamma < self.least) & (gap < 0)
        leave = slack & (gap > 0) & ((point.row_sum - 1).abs() < 0.1) & (point.free >= 0)
        drop = self.pinned & (point.free < 0)
        stop = slack & ~self.pinned & (lam >= 0) & (point.row_sum < 1)
        if not (enter | leave | drop | stop).any():
            return
        self.pinned = (self.pinned | enter | stop) & ~leave & ~drop
        lam[enter] = gamma[enter] = 0.0
        self.least[leave] *= 1e-2
        gamma[leave] = self.least[leave]
        lam[leave] += gamma[leave] * point.free[leave].clamp_min(1e-12).log()
        self.point = dual.at(gamma, lam, self.pinned)
        wrong = enter & (self._gap() > 0)  # rows that lean on each other cannot all be slack
        if wrong.any():
            self.least[wrong] = 0.1 * point.gamma[wrong]
            self.pinned = self.pinned & ~wrong
            gamma[wrong], lam[wrong] = point.gamma[wrong], point.lam[wrong]
            self.point = dual.at(gamma, lam, self.pinned)

    def _gap(self) -> Tensor:
        """Missing log perplexity of each row, made to sum to 1."""
        point = self.point
        return self.dual.target - point.entropy / point.row_sum - point.row_sum.log()

    def _solve(
        self,
        g: Tensor,
        h: Tensor,
        regular: Tensor,
        moving: Tensor,
        forcing: float,
        damping: float = 0.0,
    ) -> tuple[Tensor, Tensor]:
        """Conjugate gradients on (-Hess + damping M) (dg, dl) = (g, h).

        dg lives on ``regular`` rows and dl on ``moving`` ones. M measures, row by row, the
        relative change of gamma and the turn of log P_ii:
        ((dl - level dg)^2 + dg^2) / gamma with level = lam / gamma.
        The preconditioner is the 2 x 2 block of each row.
        """
        point = self.point
        gamma = torch.where(point.gamma > 0, point.gamma, 1.0)
        level = point.lam / gamma
        m11, m12, m22 = (damping * m for m in ((1 + level**2) / gamma, -level / gamma, 1 / gamma))
        a, b, d = point.sums + point.diagonal
        a = torch.where(moving, a + m22, 1.0)
        b = torch.where(regular & moving, b + m12, 0.0)
        d = torch.where(regular, d + m11, 1.0)
        det = torch.maximum(a * d - b * b, 1e-10 * a * d)  # a constant row has det = 0
        g, h = torch.where(regular, g, 0.0), torch.where(moving, h, 0.0)
        x, y = torch.zeros_like(g), torch.zeros_like(h)
        u, v = (a * g - b * h) / det, (d * h - b * g) / det
        p, q = u, v
        rho = first = (g * u + h * v).sum()
        for _ in range(100):
            if not rho > forcing**2 * first:
                break
            hp, hq = self.dual.product(point, p, q)
            hp = torch.where(regular, hp + m11 * p + m12 * q, 0.0)
            hq = torch.where(moving, hq + m12 * p + m22 * q, 0.0)
            curvature = (p * hp + q * hq).sum()
            if not curvature > 0:
                break
            step = rho / curvature
            x, y = x + step * p, y + step * q
            g, h = g - step * hp, h - step * hq
            u, v = (a * g - b * h) / det, (d * h - b * g) / det
            rho, last = (g * u + h * v).sum(), rho
            p, q = u + rho / last * p, v + rho / last * q
        return x, y


def _inner(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> float:
    return float(sum((x * y).sum(dtype=torch.float64) for x, y in zip(one, other, strict=True)))
