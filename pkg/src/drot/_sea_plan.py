"""What the symmetric entropic affinity returns: a plan known by its duals (Chapter 3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ._sea_dual import shifted
from .plan import Affinity

__all__ = ["SymmetricEntropicAffinity"]


@dataclass(frozen=True, kw_only=True, repr=False)
class SymmetricEntropicAffinity(Affinity):
    """A symmetric plan, ``log P_ij = (lam_i + lam_j - 2 C_ij) / (gamma_i + gamma_j)``."""

    gamma: Tensor  # (n,) >= 0, dual variable of the entropy constraint, in units of the cost
    own: Tensor  # (n,) C_ii, which is taken out of the cost, or 0
    net: Tensor  # (n,) lam - own, to more digits than lam has
    # (n,) P_ii where gamma_i = 0, which the formula does not give; else 0. Two such rows at no cost
    # from each other share the mean sqrt(free_i free_j)
    free: Tensor
    floor: float  # gamma of the rows without a price: 0, unless these had to exchange mass
    dual_value: float  # value of the dual function, in units of the cost: <P, C> at the optimum
    products: float  # products with the Hessian, none dearer than a pass
    work: tuple[float, ...]  # passes and products when each entry of the trace was measured

    @property
    def lam(self) -> Tensor:
        """Dual variable of the row sum, (n,), in units of the cost."""
        return self.net + self.own

    @property
    def slack(self) -> Tensor:
        """Rows whose entropy has no price (gamma = floor), (n,) booleans."""
        return self.gamma <= self.floor

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        if self.own.any():  # the cost that was solved, rounded as it was
            cost = shifted(cost, rows, self.own)
        s = self.gamma[rows, None] + self.gamma
        u = (self.net[rows, None] + self.net).sub_(cost, alpha=2)
        log_p = u / s
        if self.floor == 0 and self.slack[rows].any():
            # u = 0 up to rounding: the point itself, its copies, and others at no cost
            rounding = 64 * torch.finfo(u.dtype).eps * (self.net[rows, None].abs() + self.net.abs())
            log_v = self.free.clamp_min(0.0).log() / 2
            inside = torch.where(u >= -rounding, log_v[rows, None] + log_v, -torch.inf)
            log_p = torch.where(s == 0, inside, log_p)
        return log_p
