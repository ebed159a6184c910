r"""Kernels of embedded points, as normalisations and forces meet them.

A kernel K (n, n) of positions Z is :math:`e^{-C_{ij}}`, with a cost C that is a function of the
squared distance (see :mod:`drot.costs.kernels`). It answers ``K @ v``, ``K.sum(dim=1)`` and
``K.forces(normalizer)``. :class:`.StudentPairs` and :class:`.CurvePairs`, loops
that are compiled, answer what of it they are asked. A :class:`Normalizer` makes a plan of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor

from .._core.algebra import exp
from .._core.memory import slices
from ..costs.array import gather
from ..costs.kernels import STUDENT, Curve
from .loops import CurvePairs, StudentPairs, suits


def squared_distances(columns: Tensor, rows: slice, work: Tensor) -> Tensor:
    """Squared distances of some points to all, (b, n), in the first array of ``work`` (2, b, n).

    Summed over the coordinates ``columns`` (q, n), one difference each: no digit cancels.
    """
    cost, gap = work
    torch.sub(columns[0, rows, None], columns[0], out=cost).square_()
    for column in columns[1:]:
        torch.sub(column[rows, None], column, out=gap)
        cost.addcmul_(gap, gap)
    return cost


@dataclass(kw_only=True)
class Normalizer:
    """How a kernel becomes a plan, ``Q_ij = left_i right_j K_ij``."""

    value: float  # R(C_Z), but for what the rows add
    left: Tensor  # (n,)
    right: Tensor | None = None  # (n,), ones where absent
    dual: Tensor | None = None  # (n,)
    products: int = 0

    def rows(self, K: Tensor, rows: slice, out: Tensor) -> tuple[Tensor, float]:
        """Some rows of Q, (b, n), from those of the kernel, in ``out``, and what they add to R."""
        Q = torch.mul(K, self.left[rows, None], out=out)
        return Q if self.right is None else Q.mul_(self.right), 0.0


class PairNormalizer(Normalizer):
    """``Q_ij = left K_ij / (1 + K_ij)``: each pair alone, and R is what the rows add."""

    def rows(self, K: Tensor, rows: slice, out: Tensor) -> tuple[Tensor, float]:
        more = float(self.left * torch.log1p(K, out=out).sum(dtype=torch.float64))
        return torch.div(K, torch.add(K, 1, out=out), out=out).mul_(self.left), more


class TiledKernel:
    """The kernel of Z (n, q) for an objective, its rows computed whenever they are met, or met
    once and kept, beside a plan that is kept, where they will be needed again.

    Attributes
    ----------
    shift : Tensor, shape (n,)
        The smallest cost of each row, where all entries of a row could vanish: K is then
        :math:`e^{s_i - C_{ij}}`. Known as soon as the rows have been met.
    """

    def __init__(self, Z: Tensor, loss):
        self.Z, self.loss = Z, loss
        known = loss.profile.flat or loss.profile == STUDENT  # the slope, where K is
        keeps = known and loss.needs != "pairs" and loss.P.matrix is not None
        self.kept = loss.memory if keeps else None
        self.shift = torch.zeros_like(Z[:, 0])
        self.value = torch.zeros((), dtype=torch.float64, device=Z.device)  # <P, C_Z>
        self._met = 0  # rows
        self._columns = Z.T.contiguous()  # (q, n)
        self._work = Z.new_empty(4, loss.P.block, len(Z))
        if self.kept is not None:
            for rows, P in loss.P.tiles():
                self._tile(rows, P, self.kept[rows])

    @property
    def passes(self) -> float:
        """Evaluations of the whole array so far."""
        return self._met / len(self.Z)

    def tiles(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield ``(rows, K[rows])``, in memory that the next tile may overwrite."""
        for rows in slices(slice(0, len(self.Z)), self.loss.P.block):
            yield rows, self._tile(rows)[1] if self.kept is None else self.kept[rows]

    def __matmul__(self, v: Tensor) -> Tensor:
        """K v for v (n,) or (n, k), in one pass."""
        if self.kept is not None:
            return self.kept @ v
        return gather((tile @ v for _, tile in self.tiles()), len(self.Z))

    def sum(self, dim: int = 1) -> Tensor:
        """Sums of the rows, (n,); ``dim`` is 1."""
        return gather((tile.sum(dim=1) for _, tile in self.tiles()), len(self.Z))

    def _tile(
        self, rows: slice, P: Tensor | None = None, out: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor]:
        """Some rows (b, n) of dC / d|z_i - z_j|^2 (None if it is 1), and of K in ``out`` if given.

        Those of P, if given, add <P, C> to the value.
        """
        loss, b = self.loss, rows.stop - rows.start
        self._met += b
        cost = squared_distances(self._columns, rows, self._work[:2, :b])
        slope, kernel, of = None, self._work[1, :b] if out is None else out, loss.profile
        if not isinstance(of, Curve):
            if not of.flat:
                slope = of.slope(cost)
                cost.copy_(of.cost(cost))
            torch.neg(cost, out=kernel)
            if not loss.diagonal:
                kernel.diagonal(rows.start).fill_(-torch.inf)
                self.shift[rows] = -kernel.amax(dim=1)
                kernel.add_(self.shift[rows, None])
            exp(kernel, out=kernel)
        else:
            slope = torch.reciprocal(cost.add_(of.guard), out=kernel)
            if (of.a, of.b) != (1, 1):
                cost.log_().mul_(of.b).add_(math.log(of.a))
                kernel = exp(cost, -1, out=self._work[2, :b])
                slope.mul_(of.b)
            elif P is not None:  # the kernel is 1 / (guard + d^2), the slope too
                cost.log_()
            if not loss.diagonal:
                kernel.diagonal(rows.start).zero_()
        if P is not None:
            self.value += cost.mul_(P).sum(dtype=torch.float64)
        return slope, kernel

    def forces(self, normalizer: Normalizer) -> tuple[float, Tensor, Tensor]:
        """<P, C_Z> and what rows add to R; the derivative of <P, C_Z> by Z, (n, q), and that of
        <Q, C_Z> with Q held.

        Both are 2 sum_j (w_ij + w_ji) (z_i - z_j), with w the weights times dC / d|z_i - z_j|^2.
        """
        symmetric, q = self.loss.symmetric, self.Z.shape[1]
        lines = torch.cat([self.Z.T, torch.ones_like(self.Z[:, :1]).T])  # (q + 1, n)
        sums = lines.new_zeros(2, *lines.shape)  # [Z, 1]^T w^T, or [Z, 1]^T (w + w^T)
        for rows, P in self.loss.P.tiles():
            if self.kept is None:
                slope, K = self._tile(rows, P)
            else:  # Student's slope is the kernel
                K = self.kept[rows]
                slope = None if self.loss.profile.flat else K
            pull, push = self._work[0, : len(P)], self._work[3, : len(P)]
            Q, more = normalizer.rows(K, rows, push)
            self.value += more
            both = (P, Q) if slope is None else (torch.mul(P, slope, out=pull), Q.mul_(slope))
            for total, w in zip(sums, both, strict=True):
                total[:, rows] += lines @ w.T
                if not symmetric:
                    total.addmm_(lines[:, rows], w)
        factor = 4 if symmetric else 2
        attract, repel = (factor * (total[q:].T * self.Z - total[:q].T) for total in sums)
        return float(self.value), attract, repel


KernelMatrix = TiledKernel | StudentPairs


def kernel_matrix(Z: Tensor, loss) -> Any:
    """The kernel of Z (n, q) for an objective: by a compiled loop where there is one."""
    if loss.symmetric and isinstance(loss.profile, Curve) and suits(Z, loss.plan):
        if loss.needs == "pairs":
            return CurvePairs(Z, loss.plan, *astuple(loss.profile))
        if loss.profile == STUDENT:
            kept = loss.memory if loss.needs == "products" else Z.new_empty(0, len(Z))
            return StudentPairs(Z, loss.plan, kept, diagonal=loss.diagonal)
    return TiledKernel(Z, loss)
