r"""Kernels of embedded points, as normalisations and forces meet them.

A kernel K (n, n) of positions Z is :math:`e^{-C_{ij}}`, with a cost C that is a function of the
squared distance (see :mod:`drot.costs.kernels`). :class:`KernelMatrix` says what an objective may
ask of it; :class:`TiledKernel` answers all of that, and the compiled loops of ``loops`` what they
are made for. A :class:`Normalizer`, which the objective answers with, makes a plan of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .._core.algebra import exp
from .._core.memory import slices
from ..costs.array import gather
from ..costs.kernels import Curve, Kernel
from .plans import Plan


@dataclass(kw_only=True)
class Normalizer:
    """How a kernel becomes a plan, ``Q_ij = left_i right_j K_ij``, and what that took."""

    value: float  # R(C_Z), but for what the rows add
    left: Tensor  # (n,)
    right: Tensor | None = None  # (n,), ones where absent
    dual: Tensor | None = None  # (n,) the logarithms of both where they are one, to start from
    products: int = 0  # of K with a vector

    def rows(self, K: Tensor, rows: slice, out: Tensor) -> tuple[Tensor, float]:
        """Some rows of Q, (b, n), from those of the kernel, in ``out``, and what they add to R."""
        Q = torch.mul(K, self.left[rows, None], out=out)
        return Q if self.right is None else Q.mul_(self.right), 0.0


class PairNormalizer(Normalizer):
    """``Q_ij = left K_ij / (1 + K_ij)``: each pair alone, and R is what the rows add.

    ``left`` is one number, (), the weight of the repulsion.
    """

    def rows(self, K: Tensor, rows: slice, out: Tensor) -> tuple[Tensor, float]:
        more = float(self.left * torch.log1p(K, out=out).sum(dtype=torch.float64))
        return torch.div(K, torch.add(K, 1, out=out), out=out).mul_(self.left), more


class KernelMatrix:
    """A kernel K (n, n) of positions Z (n, q) beside a plan P (n, n), as an objective asks for it.

    First ``normalize`` meets K, by its row sums or by products with vectors, then :meth:`forces`
    takes what it found.

    Attributes
    ----------
    passes : float
        Evaluations of the whole array so far.
    shift : Tensor, shape (n,), or 0
        The smallest cost of each row, where all entries of a row could vanish: K is then
        :math:`e^{s_i - C_{ij}}`. Known as soon as the rows have been met.
    """

    passes: float = 1.0
    shift: Tensor | float = 0.0

    def row_sums(self) -> Tensor:
        """Sums of the rows, (n,)."""
        raise TypeError(f"{type(self).__name__} has no row sums")

    def __matmul__(self, v: Tensor) -> Tensor:
        """K v for v (n,) or (n, k), in one pass."""
        raise TypeError(f"{type(self).__name__} has no products")

    def forces(self, normalizer: Normalizer) -> tuple[float, Tensor, Tensor]:
        """<P, C_Z> and what rows add to R; the derivative of <P, C_Z> by Z, (n, q), and that of
        <Q, C_Z> with Q held.

        Both are 2 sum_j (w_ij + w_ji) (z_i - z_j), with w the weights times dC / d|z_i - z_j|^2.
        """
        raise TypeError(f"{type(self).__name__} has no forces")


class TiledKernel(KernelMatrix):
    """A kernel whose rows are computed whenever they are met, or met once and ``kept``.

    ``kept``, memory for K (n, n), is given where the plan is kept too, and the slope is K or 1:
    forces ask for no distance then.
    ``self_pairs`` says whether the pairs i = j count, ``symmetric`` whether P and Q are.
    """

    def __init__(
        self, Z: Tensor, P: Plan, kernel: Kernel, kept: Tensor | None, *,
        self_pairs: bool, symmetric: bool,
    ):  # fmt: skip
        self.Z, self.P, self.kernel, self.kept = Z, P, kernel, kept
        self.self_pairs, self.symmetric = self_pairs, symmetric
        self.passes = 0.0 if kept is None else 1.0
        self.shift: Tensor = torch.zeros_like(Z[:, 0])
        self.value = torch.zeros((), dtype=torch.float64, device=Z.device)  # <P, C_Z>
        self._columns = Z.T.contiguous()  # (q, n)
        self._work = Z.new_empty(4, P.block, len(Z))
        if kept is not None:
            for rows, tile in P.tiles():
                self._tile(rows, tile, kept[rows])

    def tiles(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield ``(rows, K[rows])``, in memory that the next tile may overwrite."""
        self.passes += self.kept is None
        for rows in slices(slice(0, len(self.Z)), self.P.block):
            yield rows, self._tile(rows)[1] if self.kept is None else self.kept[rows]

    def __matmul__(self, v: Tensor) -> Tensor:
        if self.kept is not None:
            return self.kept @ v
        return gather((tile @ v for _, tile in self.tiles()), len(self.Z))

    def row_sums(self) -> Tensor:
        return gather((tile.sum(dim=1) for _, tile in self.tiles()), len(self.Z))

    def _tile(
        self, rows: slice, P: Tensor | None = None, out: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor]:
        """Some rows (b, n) of dC / d|z_i - z_j|^2 (None if it is 1), and of K in ``out`` if given.

        Those of P, if given, add <P, C> to the value.
        """
        of, b = self.kernel, rows.stop - rows.start
        cost, gap = self._work[:2, :b]
        first, *others = self._columns
        torch.sub(first[rows, None], first, out=cost).square_()
        for column in others:  # one difference each: no digit cancels
            torch.sub(column[rows, None], column, out=gap)
            cost.addcmul_(gap, gap)
        slope, K = None, gap if out is None else out
        if not isinstance(of, Curve):
            if not of.flat:
                slope = of.slope(cost)
                cost.copy_(of.cost(cost))
            torch.neg(cost, out=K)
            if not self.self_pairs:
                K.diagonal(rows.start).fill_(-torch.inf)
                self.shift[rows] = -K.amax(dim=1)
                K.add_(self.shift[rows, None])
            exp(K, out=K)
        else:
            slope = torch.reciprocal(cost.add_(of.guard), out=K)
            if not of.slope_is_kernel:
                cost.log_().mul_(of.b).add_(math.log(of.a))
                K = exp(cost, -1, out=self._work[2, :b])
                slope.mul_(of.b)
            elif P is not None:
                cost.log_()
            if not self.self_pairs:
                K.diagonal(rows.start).zero_()
        if P is not None:
            self.value += cost.mul_(P).sum(dtype=torch.float64)
        return slope, K

    def forces(self, normalizer: Normalizer) -> tuple[float, Tensor, Tensor]:
        q = self.Z.shape[1]
        lines = torch.cat([self.Z.T, torch.ones_like(self.Z[:, :1]).T])  # (q + 1, n)
        sums = lines.new_zeros(2, *lines.shape)  # [Z, 1]^T w^T, or [Z, 1]^T (w + w^T)
        self.passes += self.kept is None
        for rows, P in self.P.tiles():
            if self.kept is None:
                slope, K = self._tile(rows, P)
            else:
                K = self.kept[rows]
                slope = None if self.kernel.flat else K
            pull, push = self._work[0, : len(P)], self._work[3, : len(P)]
            Q, more = normalizer.rows(K, rows, push)
            self.value += more
            both = (P, Q) if slope is None else (torch.mul(P, slope, out=pull), Q.mul_(slope))
            for total, w in zip(sums, both, strict=True):
                total[:, rows] += lines @ w.T
                if not self.symmetric:
                    total.addmm_(lines[:, rows], w)
        factor = 4 if self.symmetric else 2
        attract, repel = (factor * (total[q:].T * self.Z - total[:q].T) for total in sums)
        return float(self.value), attract, repel
