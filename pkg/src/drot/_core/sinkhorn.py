"""Symmetric Sinkhorn iterations, for every plan e^(f_i + f_j) K_ij whose rows should sum to 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor


def symmetric_sinkhorn(
    log_sums: Callable[[Tensor], Tensor], f: Tensor, damping: float | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield f (n,) and the logarithms of the row sums (n,) that ``log_sums`` finds there, for ever.

    f loses the share ``damping`` of them at each iteration. Without one it moves with the momentum
    of Chebyshev's polynomials, for a derivative -(I + Q) of spectrum in [-2, -1], as where K is
    positive semidefinite: the error falls by 3 + 2 sqrt 2 each time, and by 3 at a damping of 2/3.
    """
    rate, momentum, direction = damping or 2 / 3, 0.0, torch.zeros_like(f)
    while True:
        excess = log_sums(f)
        yield f, excess
        direction = momentum * direction - excess
        f = f + rate * direction
        if damping is None:  # the recurrence for [1, 2]: centre 3/2, half width 1/2
            momentum = rate**2 / 8 if momentum == 0 else rate**2 / 16
            rate = 1 / (3 / 2 - momentum / rate)
