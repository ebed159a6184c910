"""Exponentials of a tile, and sums along its rows."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_LOG2_E = 1 / math.log(2)


def exp(x: Tensor, factor: float = 1.0, out: Tensor | None = None) -> Tensor:
    """e^(factor x), in ``out`` (which may be x) if given, as a power of 2.

    The relative error is at most 2 |factor x| + 4 roundings, where nothing underflows. On a CPU
    ``torch.exp2`` takes a third of the time of ``torch.exp``, and a fiftieth where the result is
    0 or nearly so, as weights between far clusters are.
    """
    return torch.mul(x, factor * _LOG2_E, out=out).exp2_()


def dots(tile: Tensor, *vectors: Tensor | None) -> list[Tensor]:
    """Products of the tile (b, n) with vectors (n,); None stands for ones. Each (b,)."""
    lines = [torch.ones_like(tile[0]) if v is None else v for v in vectors]
    # (k, n) x (n, b): with a thin matrix on the right it takes three to six times as long
    return list((torch.stack(lines) @ tile.T).unbind(dim=0))


def log_sum_exp(x: Tensor) -> Tensor:
    """log sum_j exp(x_ij), (b,), of rows that are not all minus infinity; x is overwritten."""
    top = x.amax(dim=1)
    x.sub_(top[:, None])
    return exp(x, out=x).sum(dim=1).log_().add_(top)
