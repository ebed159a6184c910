r"""Kernels of embedded points, as normalisations and forces meet them.

A kernel K (n, n) of positions Z has rows :math:`e^{s_i - C_{ij}}` with a shift s, and answers
``K @ v``, ``K.sum(dim=1)`` and ``K.forces(a, b)``. :class:`TiledKernel` computes its rows whenever
they are met, :class:`DenseKernel` keeps them, and :class:`.StudentPairs` is a compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .._core.kernels import StudentPairs, exp
from .plans import Rows


def squared_distances(columns: Tensor, rows: slice, work: Tensor) -> Tensor:
    """Squared distances of some points to all, (b, n), in the first half of ``work`` (2, b, n).

    Summed over the coordinates ``columns`` (q, n), one difference each: no digit cancels.
    """
    cost, gap = work
    torch.sub(columns[0, rows, None], columns[0], out=cost).square_()
    for column in columns[1:]:
        torch.sub(column[rows, None], column, out=gap)
        cost.addcmul_(gap, gap)
    return cost


def scaled(kernel: Tensor, rows: slice, left: Tensor, right: Tensor | None, out: Tensor) -> Tensor:
    """Some rows of Q, ``left_i right_j K_ij``, (b, n), from those of the kernel, in ``out``."""
    Q = torch.mul(kernel, left[rows, None], out=out)
    return Q if right is None else Q.mul_(right)


def pulls(
    Z: Tensor,
    tiles: list[slice],
    weights: Callable[[slice, Tensor], tuple[Tensor, Tensor]],
    *,
    symmetric: bool,
) -> tuple[Tensor, Tensor]:
    """2 sum_j (w_ij + w_ji) (z_i - z_j), (n, q), for two w: gradients of <w, |z_i - z_j|^2>.

    ``weights`` takes rows and memory for them, (2, b, n), and returns those rows of both.
    """
    q = Z.shape[1]
    lines = torch.cat([Z.T, torch.ones_like(Z[:, :1]).T])  # (q + 1, n)
    sums = lines.new_zeros(2, *lines.shape)  # [Z, 1]^T w^T, or [Z, 1]^T (w + w^T)
    work = Z.new_empty(2, tiles[0].stop, len(Z))
    for rows in tiles:
        both = weights(rows, work[:, : rows.stop - rows.start])
        for total, w in zip(sums, both, strict=True):
            total[:, rows] += lines @ w.T
            if not symmetric:
                total.addmm_(lines[:, rows], w)
    factor = 4 if symmetric else 2
    attract, repel = (factor * (total[q:].T * Z - total[:q].T) for total in sums)
    return attract, repel


class TiledKernel(Rows):
    """The kernel of Z (n, q) beside the plan of an objective, computed whenever its rows are met.

    Attributes
    ----------
    shift : Tensor or None
        The smallest cost of each row, (n,), where ``shifted`` asks for it, so that no row
        vanishes; written as the rows are met.
    """

    def __init__(self, Z: Tensor, loss):
        super().__init__(loss.P.slices, Z)
        self.Z, self.plan, self.kernel = Z, loss.P, loss.kernel
        self.diagonal, self.symmetric = loss.diagonal, loss.symmetric
        self.shift = torch.empty_like(Z[:, 0]) if loss.shifted else None
        self.value = torch.zeros((), dtype=torch.float64, device=Z.device)  # <P, C_Z>
        self._met = 0  # rows
        self._columns = Z.T.contiguous()  # (q, n)
        self._work = Z.new_empty(2, self.slices[0].stop, len(Z))

    @property
    def passes(self) -> float:
        """Evaluations of the whole array so far."""
        return self._met / self.shape[0]

    def __getitem__(self, rows: slice) -> Tensor:
        return self._weigh(rows, None)[1]

    def _weigh(self, rows: slice, out: Tensor | None) -> tuple[Tensor, Tensor]:
        """Some rows of e^C (Student) or C (Gaussian), and of the kernel, in ``out`` if given."""
        b = rows.stop - rows.start
        self._met += b
        cost, kernel = squared_distances(self._columns, rows, self._work[:, :b]), self._work[1, :b]
        kernel = kernel if out is None else out
        if self.kernel == "student":
            torch.reciprocal(cost.add_(1.0), out=kernel)
            if not self.diagonal:
                kernel.diagonal(rows.start).zero_()
            return cost, kernel
        torch.neg(cost, out=kernel)
        if not self.diagonal:
            kernel.diagonal(rows.start).fill_(-torch.inf)
        if self.shift is not None:
            nearest = kernel.amax(dim=1)  # minus the smallest cost
            self.shift[rows] = -nearest
            kernel.sub_(nearest[:, None])
        return cost, exp(kernel, out=kernel)

    def _beside(self, P: Tensor, rows: slice, out: Tensor | None = None) -> Tensor:
        """Some rows of the kernel, (b, n), whose share of <P, C_Z> is added to the value."""
        cost, kernel = self._weigh(rows, out)
        cost = cost.log_() if self.kernel == "student" else cost
        self.value += cost.mul_(P).sum(dtype=torch.float64)
        return kernel

    def forces(self, left: Tensor, right: Tensor | None) -> tuple[float, Tensor, Tensor]:
        """<P, C_Z>, its derivative by Z, (n, q), and with Q_ij = left_i right_j K_ij that of
        <Q, C_Z> with Q held."""

        def weights(rows: slice, work: Tensor) -> tuple[Tensor, Tensor]:
            P = self.plan[rows]
            K = self._beside(P, rows)
            Q = scaled(K, rows, left, right, work[0])
            if self.kernel == "gaussian":
                return P, Q
            return torch.mul(P, K, out=work[1]), Q.mul_(K)  # K is dC / d|z_i - z_j|^2 too

        attract, repel = pulls(self.Z, self.slices, weights, symmetric=self.symmetric)
        return float(self.value), attract, repel


class DenseKernel(TiledKernel):
    """The same, kept in the memory of the objective, (n, n)."""

    def __init__(self, Z: Tensor, loss):
        super().__init__(Z, loss)
        self.kept = loss.memory
        for rows, P in self.plan.tiles():
            super()._beside(P, rows, self.kept[rows])

    def __getitem__(self, rows: slice) -> Tensor:
        return self.kept[rows]

    def __matmul__(self, v: Tensor) -> Tensor:
        return self.kept @ v

    def sum(self, dim: int = 1) -> Tensor:
        return self.kept.sum(dim=dim)

    def _beside(self, P: Tensor, rows: slice, out: Tensor | None = None) -> Tensor:
        return self.kept[rows]


KernelMatrix = TiledKernel | StudentPairs
