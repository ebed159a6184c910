r"""The dual of the symmetric entropic affinity: its value, derivatives and optimality, by tiles.

For gamma >= 0 and lam, both (n,), with s_ij = gamma_i + gamma_j, L_ij = (lam_i + lam_j - 2 C_ij)
/ s_ij and P = exp(L),

    g = <gamma, t> + <lam, 1> - 1/2 sum_ij s_ij P_ij,     t = log xi + 1,

has the gradient (t - H(P_i:), 1 - sum_j P_ij) and, with A = P / s, B = -L A, D = -L B
(elementwise), the negative Hessian

    [[ diag(D 1) + D, diag(B 1) + B ], [ diag(B 1) + B, diag(A 1) + A ]]

(book ``prp-sea-dual``). Where gamma_i = gamma_j = 0 a term is the limit of its perspective: 0 as
long as lam_i + lam_j <= 2 C_ij, and P_ij is then set by the row sums instead of the formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .._core.algebra import FAR, exp
from .._core.run import OnFailure, read_limits
from ..costs.array import Pairwise, as_pairwise, check_symmetric
from .bandwidths import as_perplexity
from .base import less_base

_RANGE = -8.0, 20.0  # log2 of a largest cost that is taken as it is; below, 1 / s^2 overflows


def read_dual(
    cost, perplexity, tol: float | None, max_iter: int, on_failure: OnFailure
) -> tuple[Dual, float, int]:
    """The dual function of a cost and a perplexity, and the limits of who maximises it."""
    cost = as_pairwise(cost)
    check_symmetric(cost)
    tol, max_iter = read_limits(tol, max_iter, on_failure, cost.dtype)
    xi = as_perplexity(perplexity, cost.shape[0], cost.device)
    return Dual(cost, xi.log().to(cost.dtype) + 1), tol, max_iter


@dataclass(frozen=True)
class DualState:
    """The dual function and the rows of the plan at one (gamma, lam)."""

    gamma: Tensor  # (n,) >= 0; 0 marks a slack row
    lam: Tensor  # (n,)
    free: Tensor  # (n,) weight of the self-loop of row i that the formula leaves free
    value: float  # g
    row_sum: Tensor  # (n,)
    entropy: Tensor  # (n,) H(P_i:)
    sums: Tensor  # (3, n) row sums of D, B, A
    diagonal: Tensor  # (3, n) diagonals of D, B, A
    kept: Tensor | None  # D, B, A themselves, the rows of this process, (3, b, n)
    residual: float  # the largest violation of the optimality conditions


def _weights(
    tile: Tensor, rows: slice, gamma: Tensor, lam: Tensor, out: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """D, B and A in the rows ``rows``, whose costs are ``tile`` (b, n); (b, n) each, in ``out``.

    They are 0 where s is.
    """
    u = (lam[rows, None] + lam).sub_(tile, alpha=2)
    s = gamma[rows, None] + gamma
    if (gamma[rows] == 0).any():
        apart = s == 0
        s.masked_fill_(apart, 1.0)
        u.masked_fill_(apart, -FAR)
    log_p = u.div_(s)
    d, b, a = (log_p, None, None) if out is None else out
    a = exp(log_p, out=a).div_(s)
    b = torch.mul(log_p.neg_(), a, out=b)
    return torch.mul(log_p, b, out=d), b, a


def times(blocks: Tensor, step: Tensor) -> Tensor:
    """Products (2, n) of symmetric 2 x 2 blocks, held as three rows (3, n), with (dg, dl)."""
    (d, b, a), (dg, dl) = blocks, step
    return torch.stack([d * dg + b * dl, b * dg + a * dl])


class Dual:
    """The dual function of one cost and its target entropies, and how often it was evaluated.

    It is that of ``cost`` = (C_ij - base_i - base_j) / scale, which is 0 on the diagonal: the same
    problem. The scale is 1, or a power of 2 where costs are so large or small that squares of the
    duals would leave the range of the dtype. Points of one ``group``, as copies are, cost nothing
    from each other; a group has the number of its first point.
    """

    def __init__(self, cost: Pairwise, target: Tensor):
        self.given, self.target = cost, target  # (n,) entropies log xi + 1
        self.passes, self.products = 0.0, 0
        self.work: list[float] = []  # passes and products when a residual was measured
        diagonal, least, most, group = self._extremes(cost)
        self.base = diagonal / 2
        self.cost = plain = less_base(cost, self.base)
        if self.base.any():
            _, least, most, group = self._extremes(plain)
        self.group = group.long()
        self._check_pairs(least, most)
        size = math.log2(float(most.max()) or 1.0)
        self.scale = 1.0 if _RANGE[0] <= size <= _RANGE[1] else 2.0 ** math.floor(size)
        if self.scale != 1:
            self.cost = plain.derive(lambda rows: plain.rows(rows) / self.scale)
        # D, B and A of two states, which take turns: with memory fetched anew, page by page, a
        # pass takes half as long again at n = 5000
        shape = (3, cost.own.stop - cost.own.start, cost.shape[0])
        self._rooms = [least.new_empty(shape) for _ in range(2)] if cost.block is None else []

    def _extremes(self, cost: Pairwise) -> Tensor:
        """C_ii, the least and largest entry of each row, its first column at no cost; (4, n)."""

        def columns(rows: slice, tile: Tensor) -> Tensor:
            first = (tile <= 0).to(torch.uint8).argmax(dim=1).to(tile.dtype)
            ends = tile.diagonal(rows.start), tile.amin(dim=1), tile.amax(dim=1), first
            return torch.stack(ends, dim=1)

        return cost.map(columns).T.contiguous()

    def _check_pairs(self, least: Tensor, most: Tensor) -> None:
        """Refuse two points that cost less than on their own, or as much and are no copies."""
        rounding = 64 * torch.finfo(least.dtype).eps * (most + self.base.abs())
        alone = torch.arange(len(least), device=least.device)
        if (least >= -rounding).all() and (self.group == alone).all():
            return
        for rows, tile in self.cost.working_tiles():
            together = self.group[rows, None] == self.group
            wrong = ((tile <= 0) != together) | (tile < -rounding[rows, None])
            if wrong.any():
                i, j = wrong.nonzero()[0].tolist()
                raise ValueError(
                    f"points {rows.start + i} and {j} must cost more than each on its own, "
                    "2 C_ij > C_ii + C_jj, or be copies, at no cost from the same points; pass "
                    "drot.sqeuclidean(X) for points X, or add a small cost to all pairs"
                )

    def at(
        self, gamma: Tensor, lam: Tensor, pinned: Tensor, beside: DualState | None = None
    ) -> DualState:
        """Evaluate, and leave the matrices of the state ``beside`` as they are.

        Where ``pinned``, a slack row keeps what its row sum leaves.
        """
        kept = None
        if self._rooms:
            kept = self._rooms[1 if beside is not None and beside.kept is self._rooms[0] else 0]
        powers = torch.stack([torch.ones_like(gamma), gamma, gamma.square()])

        def columns(rows: slice, tile: Tensor) -> Tensor:
            out = None if kept is None else kept[:, self.cost.local(rows)]
            d, b, a = _weights(tile, rows, gamma, lam, out)
            # (k, n) x (n, b): with a thin matrix on the right it takes three to six times as long
            sums = powers[:1] @ d.T, powers[:2] @ b.T, powers @ a.T
            diagonal = torch.stack([x.diagonal(rows.start) for x in (d, b, a)])
            return torch.cat([*sums, diagonal]).T

        d1, b1, bg, a1, ag, agg, *diagonal = self.cost.map(columns).T.contiguous()
        self.passes += 1
        row_sum = gamma * a1 + ag  # sum_j s_ij A_ij
        shannon = gamma * b1 + bg  # -sum_j P_ij log P_ij
        mass = (gamma.square() * a1 + 2 * gamma * ag + agg).sum(dtype=torch.float64)
        linear = (gamma * self.target + lam).sum(dtype=torch.float64)
        free, entropy = self._share(torch.where(pinned, 1 - row_sum, 0.0))
        row_sum = torch.where(pinned, 1.0, row_sum)
        entropy = shannon + entropy + row_sum
        gap = self.target - entropy
        gap = torch.where(gamma == 0, gap, gap.abs())  # a slack row may have more than asked for
        off = torch.stack([gap, (row_sum - 1).abs(), -free])  # and no negative weight
        return DualState(
            gamma=gamma,
            lam=lam,
            free=free,
            value=float(linear - mass / 2),
            row_sum=row_sum,
            entropy=entropy,
            sums=torch.stack([d1, b1, a1]),
            diagonal=torch.stack(diagonal),
            kept=kept,
            residual=float(off.max()),
        )

    def _share(self, left: Tensor) -> tuple[Tensor, Tensor]:
        """P_ii and Shannon's entropies of what pinned rows, ``left`` (n,), keep in their group.

        With gamma = lam = 0 the pairs of a group have u = s = 0: to them the Lagrangian does not
        respond, and any symmetric weights with row sums w serve. Those of most entropy are
        w_i w_j / sum w, even among copies, whose w are equal. A debt stays on the diagonal.
        """
        w = left.clamp_min(0.0)
        total, logs = (
            torch.zeros_like(w).index_add_(0, self.group, x)[self.group]
            for x in (w, torch.xlogy(w, w))
        )
        safe = torch.where(w > 0, total, 1.0)
        entropy = w * (safe.log() - logs / safe) - torch.xlogy(w, w)
        return w.square() / safe + left.clamp_max(0.0), entropy

    def hessian_product(self, state: DualState, step: Tensor) -> Tensor:
        """The negative Hessian at ``state`` times a step (dg, dl), (2, n)."""
        dg, dl = step[:1], step[1:].clone()  # a view that starts off a cache line rounds otherwise

        def product(rows: slice, tile: Tensor) -> Tensor:
            if state.kept is None:
                d, b, a = _weights(tile, rows, state.gamma, state.lam)
            else:
                d, b, a = state.kept[:, self.cost.local(rows)]
            return torch.cat([dg @ d.T, dl @ a.T]).add_(step.flip(0) @ b.T).T

        self.products += 1
        return self.cost.map(product).T + times(state.sums, step)

    def measured(self, state: DualState) -> float:
        """The residual, and a note of the work that was done so far."""
        self.work.append(self.passes + self.products)
        return state.residual
