"""Roots of many increasing functions at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Derivatives = tuple[Tensor, Tensor, Tensor]  # values, slopes and curvatures, (b,) each
Function = Callable[[Tensor, Tensor, Tensor], Derivatives]


def find_roots(
    function: Function, t: Tensor, data: Tensor, tol: float, max_iter: int
) -> tuple[Tensor, Tensor, list[float], int]:
    """Find where increasing functions are 0: one number t (b,) each, by Halley's method.

    ``function(t, data, rows)`` gives values, slopes and curvatures of the functions ``rows`` (k,)
    at t (k,); ``data`` (k, ...) are their rows of what was passed. Those that are done drop out.
    Also returns the values left (b,), the largest of each iteration, and the number of functions
    evaluated in all.
    """
    t, value = t.clone(), torch.empty_like(t)
    low, high = torch.full_like(t, -torch.inf), torch.full_like(t, torch.inf)
    last = torch.full_like(t, torch.inf)  # absolute value of the iteration before
    rows = torch.arange(len(t), device=t.device)  # still to solve
    errors: list[float] = []
    work = 0
    while len(rows):
        gap, slope, curvature = function(t[rows], data, rows)
        work += len(rows)
        value[rows] = gap
        errors.append(float(gap.abs().max()))
        left = gap.abs() > tol
        if not left.any() or len(errors) == max_iter:  # t and its value belong together
            break
        if not left.all():
            rows, data, gap, slope, curvature = (
                part[left] for part in (rows, data, gap, slope, curvature)
            )
        here, most = t[rows], 1.0 + len(errors)
        low[rows] = torch.where(gap < 0, here, low[rows])
        high[rows] = torch.where(gap > 0, here, high[rows])
        bracket = low[rows], high[rows]
        t[rows] = halley(here, (gap, slope, curvature), bracket, most, last[rows])
        last[rows] = gap.abs()
    return t, value, errors, work


def halley(
    t: Tensor, at_t: Derivatives, bracket: tuple[Tensor, Tensor], most: float, last: Tensor
) -> Tensor:
    """One step towards a root, of at most ``most``, kept inside the bracket.

    Halves the bracket instead, once it has two ends, where the step would leave it or the value
    has not halved since ``last``; with one end it goes all of ``most`` where the function is flat.
    """
    (gap, slope, curvature), (low, high) = at_t, bracket
    newton = -gap / slope
    damped = 2 * slope.square() - gap * curvature
    step = torch.where(damped > slope.square() / 2, 2 * slope * -gap / damped, newton)
    step = torch.nan_to_num(step, nan=0.0, posinf=most, neginf=-most).clamp(-most, most)
    step = torch.where(step == 0, -most * gap.sign(), step)  # a flat row says only which way
    new = t + step
    middle = (low + high) / 2
    halve = (new <= low) | (new >= high) | (gap.abs() > last / 2)
    new = torch.where(gap.abs() > 0.99 * last, t - most * gap.sign(), new)
    return torch.where(halve & middle.isfinite(), middle, new)
