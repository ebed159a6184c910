"""Symmetric Sinkhorn iterations, for every plan e^(f_i + f_j) K_ij whose rows should sum to 1.

Book ``thm-sinkhorn-rate`` and ``prp-sinkhorn-momentum``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from .._core.run import NotConverged

_FLOOR = {torch.float64: 1e-12, torch.float32: 1e-5}  # rounding of a row sum
_MOST = 1000  # products for one normalisation; about ten are needed


def symmetric_sinkhorn(
    log_sums: Callable[[Tensor], tuple[Tensor, ...]], f: Tensor, damping: float | None = None
) -> Iterator[tuple[Tensor, ...]]:
    """Yield f (n,) and what ``log_sums`` finds there, for ever: the logarithms of the row sums (n,)
    first.

    f loses the share ``damping`` of them at each iteration. Without one it moves with the momentum
    of Chebyshev's polynomials, for a derivative -(I + Q) of spectrum in [-2, -1], as where K is
    positive semidefinite: the error falls by 3 + 2 sqrt 2 each time, and by 3 at a damping of 2/3.
    """
    rate, momentum, direction = damping or 2 / 3, 0.0, torch.zeros_like(f)
    while True:
        excess, *more = log_sums(f)
        yield f, excess, *more
        direction = momentum * direction - excess
        f = f + rate * direction
        if damping is None:  # the recurrence for [1, 2]: centre 3/2, half width 1/2
            momentum = rate**2 / 8 if momentum == 0 else rate**2 / 16
            rate = 1 / (3 / 2 - momentum / rate)


def balance(
    log_sums: Callable[[Tensor], tuple[Tensor, ...]], f: Tensor, tol: float
) -> tuple[Tensor, Tensor, int]:
    """f (n,) at which the row sums of a plan are 1 within ``tol``; those sums; products."""
    tol = max(tol, _FLOOR[f.dtype])
    steps = symmetric_sinkhorn(log_sums, f)
    for products, (f, excess) in enumerate(steps, 1):
        residual = float(torch.expm1(excess).abs().max())
        if residual <= tol:
            return f, excess.exp(), products
        if products >= _MOST or not math.isfinite(residual):
            break
    raise NotConverged(
        f"the plan of the embedding: row sums are {residual:.1e} off after {products} products; "
        "the embedding has points that are not finite or too far apart"
    )
