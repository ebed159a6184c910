r"""The dual of the symmetric entropic affinity: its value, derivatives and optimality, by tiles.

For gamma >= 0 and lam, both (n,), with s_ij = gamma_i + gamma_j, L_ij = (lam_i + lam_j - 2 C_ij)
/ s_ij and P = exp(L),

    q = <gamma, h> + <lam, 1> - 1/2 sum_ij s_ij P_ij,     h = log xi + 1,

has the gradient (h - H(P_i:), 1 - sum_j P_ij) and, with A = P / s, B = -L A, D = -L B
(elementwise), the negative Hessian

    [[ diag(D 1) + D, diag(B 1) + B ], [ diag(B 1) + B, diag(A 1) + A ]]

(book ``prp-sea-dual``). Where gamma_i = gamma_j = 0 a term is the limit of its perspective: 0 as
long as lam_i + lam_j <= 2 C_ij, and P_ij is then set by the row sums instead of the formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .pairwise import Pairwise, tile_rows

__all__ = ["Dual", "Point", "without_self_cost"]

_FAR = -1e4  # a log weight that is 0 in every dtype, and finite


def without_self_cost(cost: Pairwise) -> tuple[Pairwise, Tensor]:
    """C_ij - (C_ii + C_jj) / 2, and C_ii (n,): the same problem, with a zero diagonal."""
    parts = (
        tile.diagonal(rows.start).clone()  # a view would keep the whole tile
        for rows, tile in cost.tiles(tile_rows(cost))
    )
    own = torch.cat(list(parts))
    if not own.any():
        return cost, own
    half = own / 2

    def evaluate(rows: slice | Tensor) -> Tensor:
        return (cost.rows(rows) - half[rows, None]).sub_(half)

    return Pairwise(evaluate, cost.shape, cost, block=cost.block, symmetric=cost.symmetric), own


@dataclass(frozen=True)
class Point:
    """The dual function and the rows of the plan at one (gamma, lam)."""

    gamma: Tensor  # (n,) >= 0; 0 marks a slack row
    lam: Tensor  # (n,)
    free: Tensor  # (n,) weight of each entry of row i that the formula leaves free
    value: float  # q
    row_sum: Tensor  # (n,)
    entropy: Tensor  # (n,) H(P_i:)
    sums: Tensor  # (3, n) row sums of A, B, D
    diagonal: Tensor  # (3, n) diagonals of A, B, D
    kept: list[tuple[slice, Tensor, Tensor, Tensor]] | None  # A, B, D themselves, by tiles


class Dual:
    """The dual function of one cost and one target, and a count of the passes it took.

    The cost vanishes on the diagonal: see :func:`without_self_cost`.
    """

    def __init__(self, cost: Pairwise, target: Tensor):
        self.cost, self.target = cost, target  # target (n,): h
        self.passes = self.products = 0

    def matrices(self, gamma: Tensor, lam: Tensor) -> Iterator[tuple[slice, Tensor, ...]]:
        """Yield ``(rows, A, B, D)``, (b, n) each."""
        slack = gamma == 0
        for rows, tile in self.cost.tiles(tile_rows(self.cost)):
            s = gamma[rows, None] + gamma
            log_p = (lam[rows, None] + lam).sub_(tile, alpha=2)
            if slack[rows].any():
                pair = slack[rows, None] & slack
                s.masked_fill_(pair, 1.0)
                log_p.masked_fill_(pair, _FAR)
            log_p.div_(s)
            a = torch.exp(log_p).div_(s)
            b = log_p.neg_() * a
            yield rows, a, b, log_p.mul_(b)

    def at(self, gamma: Tensor, lam: Tensor, pinned: Tensor) -> Point:
        """Evaluate. Where ``pinned``, a slack row sends to itself what its row sum leaves."""
        powers = torch.stack([torch.ones_like(gamma), gamma, gamma.square()], dim=1)  # (n, 3)
        moments, diagonal, kept = [], [], []
        for rows, *tiles in self.matrices(gamma, lam):
            moments.append(torch.cat([tile @ powers for tile in tiles], dim=1))  # (b, 9)
            diagonal.append(torch.stack([tile.diagonal(rows.start) for tile in tiles]))
            if self.cost.block is None:
                kept.append((rows, *tiles))
        self.passes += 1
        a1, ag, agg, b1, bg, _, d1, _, _ = torch.cat(moments).unbind(dim=1)
        row_sum = gamma * a1 + ag  # sum_j s_ij A_ij
        shannon = gamma * b1 + bg  # -sum_j P_ij log P_ij
        mass = (gamma.square() * a1 + 2 * gamma * ag + agg).sum(dtype=torch.float64)
        linear = (gamma * self.target + lam).sum(dtype=torch.float64)
        free = torch.zeros_like(gamma)
        if pinned.any():
            left = (1 - row_sum)[pinned]
            copies = self._copies(pinned)
            free[pinned] = left / copies
            row_sum = torch.where(pinned, 1.0, row_sum)
            shannon[pinned] -= torch.xlogy(left, left / copies).nan_to_num(0.0)  # no log of a debt
        return Point(
            gamma=gamma,
            lam=lam,
            free=free,
            value=float(linear - mass / 2),
            row_sum=row_sum,
            entropy=shannon + row_sum,
            sums=torch.stack([a1, b1, d1]),
            diagonal=torch.cat(diagonal, dim=1),
            kept=kept or None,
        )

    def _copies(self, pinned: Tensor) -> Tensor:
        """How many pinned points lie at each pinned point, itself included: (k,)."""
        index = pinned.nonzero()[:, 0]
        parts = index.split(tile_rows(self.cost))
        return torch.cat([(self.cost.rows(part)[:, index] <= 0).sum(dim=1) for part in parts])

    def product(self, point: Point, dg: Tensor, dl: Tensor) -> tuple[Tensor, Tensor]:
        """The negative Hessian at ``point`` times (dg, dl)."""
        both = torch.stack([dg, dl], dim=1)  # (n, 2)
        tiles = point.kept or self.matrices(point.gamma, point.lam)
        parts = []
        for _, a, b, d in tiles:
            from_b = b @ both
            parts.append(torch.stack([d @ dg + from_b[:, 1], from_b[:, 0] + a @ dl]))
        self.products += 1
        a1, b1, d1 = point.sums
        out = torch.cat(parts, dim=1)
        return out[0] + d1 * dg + b1 * dl, out[1] + b1 * dg + a1 * dl

    def violation(self, point: Point) -> tuple[Tensor, Tensor]:
        """By how much each row breaks the optimality conditions: entropy (n,), row sum (n,).

        A slack row may have more entropy than asked for, never less, and no negative weight.
        """
        gap = self.target - point.entropy
        slack = point.gamma == 0
        entropy = torch.where(slack, gap.clamp_min(0.0), gap.abs())
        return entropy, torch.maximum((point.row_sum - 1).abs(), -point.free)
