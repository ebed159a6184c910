r"""Kernels of a squared distance, for positions of points: one entry adds one.

Embeddings, distributional reduction, prototypes in hyperbolic space and the Markov field of a graph
take their kernels here. A kernel is :math:`K = e^{-C(u)}` with a cost C of
:math:`u = \| z_i - z_j \|^2`: the forces need its slope, new points its curvature too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .._core.checks import check_choice

KernelName = Literal["gaussian", "student"]


def squares(x: Tensor, y: Tensor) -> Tensor:
    """Squared distances (n, m) of positions (n, q) and (m, q); no digit cancels."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square()


class Kernel:
    """A cost C of squared distances u, any smooth function that grows, from C(0) on."""

    flat = False  # whether the slope is 1

    @property
    def slope_is_kernel(self) -> bool:
        """Whether C' = K, so that who has the one has the other."""
        return False

    def cost(self, u: Tensor) -> Tensor:
        """C(u)."""
        raise TypeError(f"{type(self).__name__} has no cost")

    def slope(self, u: Tensor) -> Tensor:
        """C'(u)."""
        raise TypeError(f"{type(self).__name__} has no slope")

    def curvature(self, u: Tensor) -> Tensor:
        """C''(u), for new points."""
        raise TypeError(f"{type(self).__name__} has no curvature")


@dataclass(frozen=True)
class Gaussian(Kernel):
    """C = u."""

    flat = True

    def cost(self, u: Tensor) -> Tensor:
        return u

    def slope(self, u: Tensor) -> Tensor:
        return torch.ones_like(u)

    def curvature(self, u: Tensor) -> Tensor:
        return torch.zeros_like(u)


@dataclass(frozen=True)
class Curve(Kernel):
    r""":math:`C = \log a + b \log (u + \delta)`; Student's kernel where all three are 1."""

    a: float = 1.0
    b: float = 1.0
    guard: float = 1.0

    @property
    def slope_is_kernel(self) -> bool:
        return self.a == self.b == 1

    def cost(self, u: Tensor) -> Tensor:
        if self == STUDENT:
            return torch.log1p(u)
        return (u + self.guard).log().mul_(self.b).add_(math.log(self.a))

    def slope(self, u: Tensor) -> Tensor:
        return self.b / (u + self.guard)

    def curvature(self, u: Tensor) -> Tensor:
        return -self.b / (u + self.guard).square()


STUDENT = Curve()
KERNELS: dict[str, Kernel] = {"gaussian": Gaussian(), "student": STUDENT}


def as_kernel(kernel: str | Kernel) -> Kernel:
    """The kernel of a name."""
    if not isinstance(kernel, Kernel):
        check_choice("kernel", kernel, KERNELS)
        kernel = KERNELS[kernel]
    return kernel
