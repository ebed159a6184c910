"""Bandwidths by perplexities, of each row or of all, and roots of many increasing functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from .._core.algebra import FAR, exp
from .._core.checks import as_positive, as_real, check_no_entry
from ..costs.array import Pairwise

Derivatives = tuple[Tensor, Tensor, Tensor]  # values, slopes and curvatures, (b,) each
Function = Callable[[Tensor, Tensor, Tensor], Derivatives]


def solve_rows(
    cost: Tensor, xi: Tensor, numbers: Tensor, tol: float, max_iter: int,
    others: Iterable[tuple[slice, Tensor]] = (),
) -> tuple[Tensor, Tensor, Tensor, list[float], int]:  # fmt: skip
    """Find log eps (b,) so that the rows ``numbers`` (b,) have the perplexities ``xi`` (b,).

    Their costs are ``cost`` (b, k), infinite where a pair is forbidden. Also returns log Z (b,),
    the error left of log xi (b,), the largest of each iteration, and the number of rows evaluated
    in all. ``others``, all rows that are to have one, are met where a perplexity is too low.
    """
    excess = cost - cost.amin(dim=1, keepdim=True)
    _check_reach(xi, (excess == 0).sum(dim=1), excess.isfinite().sum(dim=1), numbers, others)
    log_xi, log_z = xi.log().to(excess.dtype), torch.empty_like(excess[:, 0])

    def gap(t: Tensor, excess: Tensor, rows: Tensor) -> Derivatives:
        log_z[rows], shannon, slope, curvature = moments(excess, t)
        return shannon - log_xi[rows], slope, curvature

    log_eps, left, errors, work = find_roots(gap, first_bandwidth(excess), excess, tol, max_iter)
    return log_eps, log_z, left, errors, work


def as_perplexity(perplexity, n: int, device: torch.device) -> Tensor:
    """One target per row, shape (n,), float64."""
    target = as_real(perplexity, "perplexity").to(device, torch.float64)
    if target.ndim and target.shape != (n,):
        raise ValueError(
            f"perplexity must be one number or one per row ({n}); got shape {tuple(target.shape)}"
        )
    target = target.expand(n)
    check_no_entry(~(target > 0), target, "perplexity must be positive, and is {entry} at {at}")
    return target


def _check_reach(
    target: Tensor, ties: Tensor, usable: Tensor, rows: Tensor,
    others: Iterable[tuple[slice, Tensor]],
) -> None:  # fmt: skip
    """Refuse a perplexity that no bandwidth can give to one of ``rows``, their numbers (b,).

    ``ties`` (b,) counts the cheapest entries of each row and ``usable`` (b,) its finite ones:
    the perplexity of a softmax row lies strictly between the two.
    """
    bad = (target <= ties) | (target >= usable)
    if bad.any():
        i = int(bad.nonzero()[0])
        xi, row, low, high = (x[i].item() for x in (target, rows, ties, usable))
        if low == high:
            has = f"{high} entries, all equal" if high > 1 else "one entry"
            says = f"row {row} has {has}, so its perplexity is {high} at any bandwidth; "
            cure = "remove copies of points, or add columns that tell points apart"
            says += cure if high > 1 else "give more points"
        elif xi <= low:
            near = f", as {low} of its points are equally near (copies, or counts that coincide)"
            says = f"row {row} needs more than {low}{near if low > 1 else ''}; raise the perplexity"
            counts = ((x == x.amin(dim=1, keepdim=True)).sum(dim=1).max() for _, x in others)
            most = max([low, *map(int, counts)])
            cure = f" above {most} for all rows, or remove copies of points (UMAP takes them)"
            says += cure if most > 1 else ""
        else:
            says = f"row {row} has {high} points to choose from and allows less than {high}; lower "
            says += "the perplexity, or give more points"
        raise ValueError(f"perplexity={xi:g} is out of reach: {says}")


def one_bandwidth(
    bandwidth: float | None, perplexity: float | None, dtype: torch.dtype
) -> tuple[float, float | None]:
    """Check that one of the two was given, and is positive; a bandwidth of 0 is to be found."""
    if (bandwidth is None) == (perplexity is None):
        raise ValueError("give exactly one of bandwidth and perplexity")
    if bandwidth is not None:
        return as_positive("bandwidth", bandwidth, dtype), None
    return 0.0, as_positive("perplexity", perplexity)


def mean_bandwidth(
    cost: Pairwise, perplexity: float, tol: float, max_iter: int
) -> tuple[float, list[float]]:
    """log nu so that the mean log perplexity of all rows is that asked for, and the errors."""

    def ends(_: slice, tile: Tensor) -> Tensor:
        """Of rows (b, m), a first log bandwidth and the logarithms of what bounds perplexities."""
        excess = tile - tile.amin(dim=1, keepdim=True)
        ties, usable = (excess == 0).sum(dim=1), excess.isfinite().sum(dim=1)
        # a constant row has no scale of its own
        first = torch.where(ties < usable, first_bandwidth(excess).double(), 0.0)
        return torch.stack([first, ties.double().log(), usable.double().log()], dim=1)

    start, low, high = cost.map(ends).mean(dim=0)
    low, high = float(low.exp()), float(high.exp())
    if low == high:
        raise ValueError(
            f"an average perplexity of {perplexity:g} is out of reach: the entries of each row are "
            f"all equal, and it is {high:g} whatever the bandwidth; remove copies of points"
        )
    if not low * (1 + 1e-12) < perplexity < high * (1 - 1e-12):  # exp(log n) rounds
        raise ValueError(
            f"an average perplexity of {perplexity:g} is out of reach: it must lie strictly "
            f"between {low:g} (of the nearest points alone, copies among them) and {high:g} (of "
            "all points alike)"
        )

    def gap(t: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        def at_t(_: slice, tile: Tensor) -> Tensor:
            excess = tile - tile.amin(dim=1, keepdim=True)
            return torch.stack(moments(excess, t.to(tile.dtype).expand(len(tile)))[1:], dim=1)

        means = cost.map(at_t).mean(dim=0, dtype=torch.float64)
        entropy, slope, curvature = means.split(1)
        return entropy - math.log(perplexity), slope, curvature

    t, _, errors, _ = find_roots(gap, start.view(1), start.view(1), tol, max_iter)
    return float(t), errors


def first_bandwidth(excess: Tensor) -> Tensor:
    """A first log bandwidth: a tenth of the mean excess of each row."""
    finite = excess.isfinite()
    total = excess.masked_fill(~finite, 0.0).sum(dim=1)
    return (0.1 * total / finite.sum(dim=1)).log()


def moments(excess: Tensor, log_eps: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""log Z, Shannon entropy S of the softmax of ``-excess / eps``, dS/dt, d2S/dt2; t = log eps.

    With e = excess / eps, S = log Z + E[e], dS/dt = Var[e] and d2S/dt2 = K3[e] - 2 Var[e],
    where K3 is the third central moment.
    """
    e = (excess / torch.exp(log_eps)[:, None]).clamp_max_(FAR)  # (b, k)
    weight = exp(e, -1)
    z = weight.sum(dim=1)
    first, second, third = (weight.mul_(e).sum(dim=1) / z for _ in range(3))
    variance = (second - first.square()).clamp_min_(0.0)
    skew = third - 3 * first * second + 2 * first**3
    log_z = z.log()
    return log_z, log_z + first, variance, skew - 2 * variance


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
