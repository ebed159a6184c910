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

import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .._core.kernels import dots, exp
from ..costs.array import Pairwise, tile_rows
from .base import Affinity

_RANGE = 20.0  # log2 of a mean cost that is taken as it is
_SWEEPS = 300  # most iterations to share what is left among slack rows that are no copies
_FAR = -1e4  # a log weight that is 0 in every dtype, and finite

Entries = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, bool]  # the arguments of _weights


def normalized(cost: Pairwise) -> tuple[Pairwise, Tensor, float]:
    """(C_ij - (C_ii + C_jj) / 2) / scale, C_ii (n,) and the scale: the same problem.

    The diagonal is 0. The scale is 1, or a power of 2 where the mean cost is so large or small
    that the squares of the duals would leave the range of the dtype.
    """
    total = torch.zeros((), dtype=torch.float64, device=cost.device)

    def diagonals() -> Iterator[Tensor]:
        for rows, tile in cost.tiles(tile_rows(cost)):
            total.add_(tile.sum(dtype=torch.float64))
            yield tile.diagonal(rows.start).clone()  # a view would keep the whole tile

    own = cost.join(diagonals())
    mean = float(cost.ranks.total(total)) / cost.shape[0] ** 2
    size = abs(math.log2(abs(mean))) if mean else 0.0
    scale = 2.0 ** round(math.log2(abs(mean))) if size > _RANGE else 1.0
    if scale == 1 and not own.any():
        return cost, own, scale
    return cost.derive(lambda rows: shifted(cost.rows(rows), rows, own).div_(scale)), own, scale


def shifted(tile: Tensor, rows: slice | Tensor, own: Tensor) -> Tensor:
    """C_ij - (C_ii + C_jj) / 2 for the rows ``rows``, whose costs are ``tile`` (b, n); a copy."""
    mean = (own[rows, None] + own).div_(2)
    rounding = 4 * torch.finfo(tile.dtype).eps * own.abs()
    tile = tile - mean
    # what is left of a copy's cost is rounding: copies are at 0, as without a shift
    return tile.masked_fill_(tile.abs() <= rounding[rows, None] + rounding, 0.0)


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
    kept: list[Tensor] | None  # A, B, D themselves, by tiles (3, b, n)


def _weights_of(
    numerator: Tensor, s: Tensor, pairs: bool, out: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """A, B and D from the numerator and denominator of L, overwritten; 0 where s is 0.

    They go into ``out``, of shape (3, ...), where it is given.
    """
    if pairs:
        apart = s == 0
        s.masked_fill_(apart, 1.0)
        numerator.masked_fill_(apart, _FAR)
    log_p = numerator.div_(s)
    if out is not None:
        a = exp(log_p, out=out[0]).div_(s)
        b = torch.mul(log_p.neg_(), a, out=out[1])
        return a, b, torch.mul(log_p, b, out=out[2])
    a = exp(log_p).div_(s)
    b = log_p.neg_() * a
    return a, b, log_p.mul_(b)


def _weights(
    tile: Tensor,
    own_gamma: Tensor,
    gamma: Tensor,
    own_lam: Tensor,
    lam: Tensor,
    pairs: bool,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """A, B, D, (b, n) each. ``pairs``: whether gamma_i + gamma_j may be 0 in these rows."""
    s = own_gamma[:, None] + gamma
    return _weights_of((own_lam[:, None] + lam).sub_(tile, alpha=2), s, pairs, out)


def _moments(a: Tensor, b: Tensor, d: Tensor, gamma: Tensor) -> Tensor:
    """A 1, A gamma, A gamma^2, B 1, B gamma, D 1, (b, 6)."""
    columns = dots(a, None, gamma, gamma.square()) + dots(b, None, gamma) + dots(d, None)
    return torch.stack(columns, dim=1)


def _product(a: Tensor, b: Tensor, d: Tensor, dg: Tensor, dl: Tensor) -> Tensor:
    """D dg + B dl and B dg + A dl, (b, 2)."""
    from_b = dots(b, dl, dg)
    return torch.stack([dots(d, dg)[0] + from_b[0], from_b[1] + dots(a, dl)[0]], dim=1)


class Dual:
    """The dual function of one cost and one target, and a count of the passes it took.

    The cost vanishes on the diagonal: see :func:`normalized`.
    """

    def __init__(self, cost: Pairwise, target: Tensor):
        self.cost, self.target = cost, target  # target (n,): h
        self.passes = self.products = 0
        self._rooms: list[tuple[Callable[[], Point | None], list[Tensor]]] = []

    def matrices(self, gamma: Tensor, lam: Tensor) -> Iterator[tuple[slice, Entries]]:
        """Yield the own rows and what :func:`_weights` asks of them."""
        slack = gamma == 0
        for rows, tile in self.cost.tiles(tile_rows(self.cost)):
            pairs = bool(slack[rows].any())
            yield rows, (tile, gamma[rows], gamma, lam[rows], lam, pairs)

    def at(self, gamma: Tensor, lam: Tensor, pinned: Tensor) -> Point:
        """Evaluate. Where ``pinned``, a slack row sends to itself what its row sum leaves."""
        room = self._room()
        a1, ag, agg, b1, bg, d1 = self.cost.join(self._sums(gamma, lam, room)).T.contiguous()
        self.passes += 1
        row_sum = gamma * a1 + ag  # sum_j s_ij A_ij
        shannon = gamma * b1 + bg  # -sum_j P_ij log P_ij
        mass = (gamma.square() * a1 + 2 * gamma * ag + agg).sum(dtype=torch.float64)
        linear = (gamma * self.target + lam).sum(dtype=torch.float64)
        free = torch.zeros_like(gamma)
        if pinned.any():
            index = pinned.nonzero()[:, 0]
            free[index], sums, own = self._spread(index, (1 - row_sum)[index])
            row_sum[index] += sums
            shannon[index] += own
        point = Point(
            gamma=gamma,
            lam=lam,
            free=free,
            value=float(linear - mass / 2),
            row_sum=row_sum,
            entropy=shannon + row_sum,
            sums=torch.stack([a1, b1, d1]),
            diagonal=torch.stack(_weights_of(2 * lam, 2 * gamma, True)),
            kept=room,
        )
        if room is not None:
            self._rooms.append((weakref.ref(point), room))
        return point

    def _room(self) -> list[Tensor] | None:
        """Where A, B and D are kept, (3, b, n) a tile: that of a point which nobody holds any more.

        New memory would be given back to the system and fetched again with every pass, page by
        page: a third of the time at n = 5000.
        """
        if self.cost.block is not None:
            return None
        for k, (point, room) in enumerate(self._rooms):
            if point() is None:
                del self._rooms[k]
                return room
        like = [tile for _, tile in self.cost.tiles(tile_rows(self.cost))]
        return [tile.new_empty(3, *tile.shape) for tile in like]

    def _sums(self, gamma: Tensor, lam: Tensor, room: list[Tensor] | None) -> Iterator[Tensor]:
        """Yield the moments of some rows, (b, 6); A, B and D go to ``room``, if there is any."""
        for k, (_, entries) in enumerate(self.matrices(gamma, lam)):
            yield _moments(*_weights(*entries, None if room is None else room[k]), gamma)

    def _spread(self, index: Tensor, left: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """P_ii, row sums and Shannon's entropies of what pinned rows keep among themselves; (k,).

        The rows ``index`` may share ``left`` (k,) among the pairs that cost them nothing, each
        with itself included. Of all symmetric ways that of most entropy is P_ij = v_i v_j, where
        v comes from symmetric Sinkhorn iterations: copies share evenly. A debt stays where it is.
        """
        debt, v = left.clamp_max(0.0), left.clamp_min(0.0).sqrt()
        shared = (self._among(index, torch.ones_like(left)) > 1).nonzero()[:, 0]
        if len(shared):
            goal, most = left[shared].clamp_min(0.0), index[shared]
            w = (goal / self._among(most, torch.ones_like(goal))).sqrt()
            for _ in range(_SWEEPS):
                sums = w * self._among(most, w)
                if (sums - goal).abs().max() <= 8 * torch.finfo(w.dtype).eps:
                    break
                w = w * torch.where(goal > 0, goal / sums, 0.0).sqrt()
            v[shared] = w
        logs = torch.xlogy(v, v)
        sums, mixed = v.square(), v * logs
        shannon = -2 * mixed
        if len(shared):
            sums[shared] = w * self._among(most, w)
            shannon[shared] = -torch.xlogy(sums[shared], w) - w * self._among(most, logs[shared])
        return v.square() + debt, sums + debt, shannon

    def _among(self, index: Tensor, x: Tensor) -> Tensor:
        """Sums of x (k,) over the points of ``index`` that each of them reaches at no cost."""
        parts = index.split(tile_rows(self.cost))
        return torch.cat([(self.cost.rows(part)[:, index] <= 0).to(x) @ x for part in parts])

    @cached_property
    def crossed(self) -> bool:
        """Whether two points cost no more than themselves, 2 C_ij <= C_ii + C_jj: one pass."""
        count = torch.zeros((), dtype=torch.float64, device=self.cost.device)
        for _, tile in self.cost.tiles(tile_rows(self.cost)):
            count += (tile <= 0).sum()
        self.passes += 1
        return bool(self.cost.ranks.total(count) > self.cost.shape[0])

    def excess(self, point: Point) -> float:
        """The largest lam_i + lam_j - 2 C_ij between slack rows: q is minus infinity above 0."""
        index = (point.gamma == 0).nonzero()[:, 0]
        lam = point.lam[index]
        parts = zip(index.split(tile_rows(self.cost)), lam.split(tile_rows(self.cost)), strict=True)
        most = [
            (own[:, None] + lam).sub_(self.cost.rows(part)[:, index], alpha=2).max()
            for part, own in parts
        ]
        return max(map(float, most), default=0.0)

    def product(self, point: Point, dg: Tensor, dl: Tensor) -> tuple[Tensor, Tensor]:
        """The negative Hessian at ``point`` times (dg, dl)."""
        if point.kept is not None:
            parts = (_product(a, b, d, dg, dl) for a, b, d in point.kept)
        else:
            parts = (
                _product(*_weights(*entries), dg, dl)
                for _, entries in self.matrices(point.gamma, point.lam)
            )
        out = self.cost.join(parts)  # (n, 2)
        self.products += 1
        a1, b1, d1 = point.sums
        return out[:, 0] + d1 * dg + b1 * dl, out[:, 1] + b1 * dg + a1 * dl

    def violation(self, point: Point, floor: float = 0.0) -> tuple[Tensor, Tensor]:
        """By how much each row breaks the optimality conditions: entropy (n,), row sum (n,).

        A slack row, whose gamma is the least there may be, ``floor``, may have more entropy than
        asked for, never less, and no negative weight.
        """
        gap = self.target - point.entropy
        slack = point.gamma <= floor
        entropy = torch.where(slack, gap.clamp_min(0.0), gap.abs())
        return entropy, torch.maximum((point.row_sum - 1).abs(), -point.free)


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
