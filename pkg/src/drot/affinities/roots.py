"""Bandwidths that reach a perplexity: a safeguarded third-order root search on log eps."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .._core.kernels import exp
from ..costs.array import Pairwise, tile_rows


def solve_rows(
    excess: Tensor, target: Tensor, tol: float, max_iter: int
) -> tuple[Tensor, Tensor, Tensor, list[float], int]:
    """Find log eps (b,) so that each row of ``excess`` (b, k) has log perplexity ``target``.

    Also returns log Z (b,), the error left (b,), the largest error of each iteration, and the
    number of rows evaluated in all.
    """
    log_eps = _start(excess)
    log_z, gap = torch.empty_like(log_eps), torch.empty_like(log_eps)
    low, high = torch.full_like(log_eps, -torch.inf), torch.full_like(log_eps, torch.inf)
    last = torch.full_like(log_eps, torch.inf)  # error of the iteration before
    active = torch.arange(len(log_eps), device=excess.device)  # rows still to solve
    errors, work = [], 0
    for k in range(max_iter):  # pragma: no branch, the last one breaks
        z, shannon, slope, curvature = _moments(excess, log_eps[active])
        work += len(active)
        log_z[active], gap[active] = z, shannon - target[active]
        errors.append(float(gap[active].abs().max()))
        left = gap[active].abs() > tol
        if not left.any() or k == max_iter - 1:  # eps, Z and the error belong together
            break
        if not left.all():
            active, excess, slope, curvature = (
                part[left] for part in (active, excess, slope, curvature)
            )
        g, t = gap[active], log_eps[active]
        low[active] = torch.where(g < 0, t, low[active])
        high[active] = torch.where(g > 0, t, high[active])
        log_eps[active] = halley(
            t, g, slope, curvature, low[active], high[active], 2.0 + k, last[active]
        )
        last[active] = g.abs()
    return log_eps, log_z, gap, errors, work


def _start(excess: Tensor) -> Tensor:
    """A first log bandwidth: a tenth of the mean excess of each row."""
    finite = excess.isfinite()
    total = excess.masked_fill(~finite, 0.0).sum(dim=1)
    return (0.1 * total / finite.sum(dim=1)).log()


def _moments(excess: Tensor, log_eps: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""log Z, Shannon entropy S of the softmax of ``-excess / eps``, dS/dt, d2S/dt2; t = log eps.

    With e = excess / eps, S = log Z + E[e], dS/dt = Var[e] and d2S/dt2 = K3[e] - 2 Var[e],
    where K3 is the third central moment.
    """
    # beyond 1e3 a weight is 0 in float64, and its moments must be 0 rather than 0 * inf
    e = (excess * torch.exp(-log_eps)[:, None]).clamp_max_(1e3)  # (b, k)
    weight = exp(e, -1)
    z = weight.sum(dim=1)
    first, second, third = (weight.mul_(e).sum(dim=1) / z for _ in range(3))
    variance = (second - first.square()).clamp_min_(0.0)
    skew = third - 3 * first * second + 2 * first**3
    log_z = z.log()
    return log_z, log_z + first, variance, skew - 2 * variance


def halley(
    t: Tensor,
    gap: Tensor,
    slope: Tensor,
    curvature: Tensor,
    low: Tensor,
    high: Tensor,
    most: float,
    last: Tensor,
) -> Tensor:
    """One step towards gap = 0, of at most ``most``, kept inside the bracket (low, high).

    Halves the bracket instead when the gap has not halved since ``last``.
    """
    newton = -gap / slope
    damped = 2 * slope.square() - gap * curvature
    step = torch.where(damped > slope.square() / 2, 2 * slope * -gap / damped, newton)
    step = torch.nan_to_num(step, nan=0.0, posinf=most, neginf=-most).clamp(-most, most)
    step = torch.where(step == 0, -most * gap.sign(), step)  # a flat row says only which way
    new = t + step
    middle = (low + high) / 2
    halve = (new <= low) | (new >= high) | (gap.abs() > last / 2)
    return torch.where(halve & middle.isfinite(), middle, new)


def solve_mean(
    cost: Pairwise, perplexity: float, tol: float, max_iter: int
) -> tuple[float, list[float]]:
    """log nu so that the mean log perplexity of all rows is that asked for, and the errors."""
    n = cost.shape[0]
    sums = torch.zeros(3, dtype=torch.float64, device=cost.device)  # log nu, log ties, log usable
    for _, tile in cost.tiles(tile_rows(cost)):
        excess = tile - tile.amin(dim=1, keepdim=True)
        ties, usable = (excess == 0).sum(dim=1), excess.isfinite().sum(dim=1)
        alive = ties < usable  # a constant row has no scale of its own
        sums[0] += _start(excess[alive]).sum()
        sums[1] += ties.double().log().sum()
        sums[2] += usable.double().log().sum()
    sums = cost.ranks.total(sums)
    low_end, high_end = (sums[1:] / n).exp().tolist()
    if not low_end * (1 + 1e-12) < perplexity < high_end * (1 - 1e-12):  # exp(log n) rounds
        raise ValueError(
            f"an average perplexity of {perplexity:g} is out of reach: it must lie strictly "
            f"between {low_end:g} (ties for the cheapest entry) and {high_end:g} (entries)"
        )
    t = sums[:1] / n
    low, high = torch.full_like(t, -torch.inf), torch.full_like(t, torch.inf)
    last = torch.full_like(t, torch.inf)
    errors: list[float] = []
    for k in range(max_iter):  # pragma: no branch, the last one breaks
        mean = torch.zeros(3, dtype=torch.float64, device=cost.device)  # entropy, slope, curvature
        for _, tile in cost.tiles(tile_rows(cost)):
            excess = tile - tile.amin(dim=1, keepdim=True)
            log_nu = t.to(tile.dtype).expand(len(tile))
            moments = _moments(excess, log_nu)[1:]
            mean += torch.stack([moment.sum() for moment in moments]) / n
        mean = cost.ranks.total(mean)
        gap, slope, curvature = (mean - mean.new_tensor([math.log(perplexity), 0, 0])).split(1)
        errors.append(abs(float(gap)))
        if errors[-1] <= tol or k == max_iter - 1:
            break
        low, high = torch.where(gap < 0, t, low), torch.where(gap > 0, t, high)
        t, last = halley(t, gap, slope, curvature, low, high, 2.0 + k, last), gap.abs()
    return float(t), errors
