r"""Losses between the entries of two similarities (Chapters 11 to 14): one entry adds one.

Each is the Bregman divergence of a convex :math:`f_1` with the slope :math:`h_2`,

.. math:: L(a, b) = f_1(a) + f_2(b) - a \, h_2(b), \qquad f_2(b) = b \, h_2(b) - f_1(b).

So :math:`h_1(a) = a`, C is met as it is, and the best b for many a is their mean (book
``lem-reduced-barycenter``). Where :math:`L(a + s, b + s) = L(a, b)` a shift of both is free: then
:math:`f_1'' ` is constant, the loss is the square, and C is met around its mean.

Binary cross-entropy less the entropy of a, with :math:`h_2(b) = \log \tfrac b{1 - b}`, is another:
plans and barycentres would take it as an entry, prototypes cannot. Of :math:`k < n` prototypes one
holds mass of two points i and j, in any plan; a kernel gives that place and itself
:math:`\bar C = K(0) = 1`; and :math:`L(a, 1)` is infinite for :math:`a < 1`. So the objective is
infinite at every plan, unless :math:`C_{ij} = 1` for all such pairs. UMAP, with one place for each
point, leaves out the pairs i = j, which here are only some of those that meet the diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .._core.checks import check_choice
from ..costs.array import Pairwise

LossName = Literal["square", "kl"]
_TINY = 1e-300  # stands for 0 in a logarithm
Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Loss:
    """What an entry a of C costs that meets an entry b of Cbar."""

    name: str
    f1: Function
    f2: Function
    h2: Function  # finite: a tiny number stands for an end of the range, where L is infinite
    low: float = -math.inf  # the range of a and b
    high: float = math.inf
    free: bool = False  # whether a shift of both is

    @property
    def bounds(self) -> list[float]:
        """Numbers that match themselves alone."""
        return [bound for bound in (self.low, self.high) if math.isfinite(bound)]

    def seen(self, C: Pairwise, entries: Tensor) -> Tensor:
        """Some entries of C, with the zeros of a factored distance where an end of the range is."""
        return entries if self.free else C.with_zeros(entries)

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """L(a, b), entry by entry."""
        if self.free:  # no square cancels
            return self.f1(a - b)
        found = self.f1(a) + self.f2(b) - a * self.h2(b)
        for bound in self.bounds:
            found = torch.where((b == bound) & (a != bound), math.inf, found)
        return found.clamp_min(0)


LOSSES = {
    "square": Loss("square", torch.square, torch.square, lambda b: 2 * b, free=True),
    "kl": Loss(
        "kl",
        f1=lambda a: torch.xlogy(a, a) - a,
        f2=lambda b: b,
        h2=lambda b: b.clamp_min(max(_TINY, torch.finfo(b.dtype).tiny)).log(),
        low=0.0,
    ),
}


SQUARE = LOSSES["square"]


def as_loss(loss: str | Loss) -> Loss:
    """The loss of a name."""
    if not isinstance(loss, Loss):
        check_choice("loss", loss, tuple(LOSSES))
        loss = LOSSES[loss]
    return loss
