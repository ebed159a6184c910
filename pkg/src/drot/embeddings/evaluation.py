"""What an objective tells of one embedding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from .._core.kernels import StudentPairs
from ..affinities.tiled import Rows

Products = Tensor | Rows | StudentPairs  # a kernel (n, n), as far as its sums and products go
_ONE_PLACE = 1e-3  # radius in bandwidths of the kernel: F is within 1e-5 of its value there


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """An objective at one embedding."""

    value: float  # F(Z), in nats
    attraction: Tensor  # (n, q) the derivative of <P, C_Z>
    repulsion: Tensor  # (n, q) minus the derivative of A(C_Z)
    dual: Tensor | None = None  # (n,) a warm start for the next evaluation, where one helps
    passes: float = 1.0  # evaluations of the n x n kernel
    products: int = 0  # products of the kernel with a vector; by tiles each is a pass too

    @cached_property
    def gradient(self) -> Tensor:
        """dF/dZ, (n, q)."""
        return self.attraction - self.repulsion

    def residual(self, size: float, mass: float) -> float:
        """The length of the gradient, in units of that of the attraction.

        Where nothing attracts, or all points have met in one place: in units of a force that
        lowers F by 1 for each unit of mass on the way of a radius of the map, its ``size``.
        """
        whole, part = (float(x.double().norm()) for x in (self.gradient, self.attraction))
        if part > 0 and size > _ONE_PLACE:
            return whole / part
        return whole * size * len(self.attraction) ** 0.5 / mass


@dataclass(frozen=True, kw_only=True)
class Normalizer:
    """How a kernel becomes a plan, ``Q_ij = left_i right_j K_ij``."""

    value: float  # A(C_Z)
    left: Tensor  # (n,)
    right: Tensor | None = None  # (n,), ones where absent
    dual: Tensor | None = None  # (n,)
    products: int = 0
