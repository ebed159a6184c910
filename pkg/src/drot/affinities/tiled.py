r"""Matrices known by their rows, for plans and kernels that memory does not hold.

Objectives ask three things of an n x n array A: some rows ``A[rows]``, a product ``A @ v`` and
the sums ``A.sum(dim=1)``. A tensor answers them, and so does :class:`Rows`, whose rows are
computed whenever they are met: a solver written over tiles does not ask which it has.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from .._core.checks import check_finite
from .._core.kernels import exp
from .._core.memory import tile_entries
from ..costs.array import Pairwise, gather
from .base import Affinity

_ALIKE = {torch.float64: 1e-6, torch.float32: 1e-4}  # share of the largest entry: rounding


def tiles_of(n: int, device: torch.device, most: int | None = None) -> list[slice]:
    """The rows 0, ..., n - 1 in working tiles, of at most ``most`` rows."""
    step = max(16, tile_entries(device) // 2 // n)  # two arrays are at work at a time
    step = min(step, most or n)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def is_tiled(plan) -> bool:
    """Whether a plan is to be met in tiles of rows, and never to be formed."""
    return isinstance(plan, PlanRows) or (
        isinstance(plan, Affinity) and plan.cost.block is not None
    )


class Rows:
    """An (n, n) array whose rows are computed whenever they are met, never all at once."""

    def __init__(self, tiles: list[slice], like: Tensor | Pairwise):
        self.slices, n = tiles, tiles[-1].stop
        self.shape = (n, n)
        self.dtype: torch.dtype = like.dtype
        self.device: torch.device = like.device

    def __getitem__(self, rows: slice) -> Tensor:
        """Some rows, (b, n), in memory that the next call may overwrite."""
        raise TypeError(f"{type(self).__name__} does not say what its rows are")

    def tiles(self) -> Iterator[tuple[slice, Tensor]]:
        for rows in self.slices:
            yield rows, self[rows]

    def __matmul__(self, v: Tensor) -> Tensor:
        """A v for v (n,) or (n, k), in one pass."""
        return gather((tile @ v for _, tile in self.tiles()), self.shape[0])

    def sum(self, dim: int = 1) -> Tensor:
        """Sums of the rows, (n,); ``dim`` is 1."""
        return gather((tile.sum(dim=1) for _, tile in self.tiles()), self.shape[0])


class PlanRows(Rows):
    r"""An affinity that is met in tiles, and what one pass over it tells.

    Attributes
    ----------
    sums, loops : Tensor, shape (n,)
        Row sums, and the diagonal.
    mass, entropy, largest : float
        Sum of P, sum of P log P, largest entry.
    asymmetry : float
        Largest entry of :math:`(P - P^T) v / \sqrt n` for two random vectors v of signs, in units
        of ``largest``: 0 but for rounding if P is symmetric, and not otherwise.
    """

    def __init__(self, affinity: Affinity):
        cost = affinity.cost
        n, m = cost.shape
        if n != m:
            raise ValueError(
                f"plan must be a square (n, n) affinity of n >= 2 points; got shape {(n, m)}"
            )
        super().__init__(tiles_of(n, cost.device, cost.block), affinity.cost)
        self.affinity, self.factor = affinity, 1.0
        self._survey()

    def __getitem__(self, rows: slice) -> Tensor:
        tile = self.affinity.log_rows(rows, self.affinity.cost.rows(rows))
        tile = exp(tile, out=tile)
        return tile if self.factor == 1 else tile.mul_(self.factor)

    def __mul__(self, factor: float) -> PlanRows:
        """The same weights in another unit."""
        other = object.__new__(PlanRows)
        other.__dict__.update(self.__dict__)
        other.factor = self.factor * factor
        other.sums, other.loops = self.sums * factor, self.loops * factor
        return other

    def both(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """P v and P^T v, in one pass."""
        lines = v.T.contiguous()  # (k, n): as thin columns they take twice as long
        there, back = torch.empty_like(lines), torch.zeros_like(lines)
        for rows, tile in self.tiles():
            there[:, rows] = lines @ tile.T
            back.addmm_(lines[:, rows], tile)
        return there.T, back.T

    def _survey(self) -> None:
        n = self.shape[0]
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(n, 2))
        lines = torch.from_numpy(signs.T.copy()).to(self.device, self.dtype)  # (2, n)
        there, back = torch.empty_like(lines), torch.zeros_like(lines)
        sums, loops, largest = [], [], 0.0
        entropy = torch.zeros((), dtype=torch.float64, device=self.device)
        for rows, tile in self.tiles():
            check_finite(tile, f"plan (from row {rows.start} on)")
            there[:, rows] = lines @ tile.T
            back.addmm_(lines[:, rows], tile)
            sums.append(tile.sum(dim=1, dtype=torch.float64))
            loops.append(tile.diagonal(rows.start).clone())
            largest = max(largest, float(tile.max()))
            entropy += torch.xlogy(tile, tile).sum(dtype=torch.float64)
        exact = torch.cat(sums)
        self.sums, self.mass = exact.to(self.dtype), float(exact.sum())
        self.loops, self.largest, self.entropy = torch.cat(loops), largest, float(entropy)
        gaps = (there - back).abs().amax(dim=0)  # (n,)
        self.worst = int(gaps.argmax())
        self.asymmetry = float(gaps.max()) / (n**0.5 * largest) if largest else 0.0

    @property
    def symmetric(self) -> bool:
        """Whether P is its own transpose, but for rounding."""
        return self.asymmetry <= _ALIKE[self.dtype]

    def sum(self, dim: int = 1) -> Tensor:
        return self.sums

    def diagonal(self) -> Tensor:
        return self.loops


class KernelRows(Rows):
    """The kernel of an embedding: rows of e^(shift_i - C_Z), computed from Z (n, q).

    Attributes
    ----------
    shift : Tensor or None
        The smallest cost of each row, (n,), where ``shifted`` asks for it, so that no row
        vanishes; written as the rows are met.
    passes : float
        Evaluations of the whole array so far.
    """

    def __init__(
        self, Z: Tensor, kernel: str, tiles: list[slice], *, diagonal: bool, shifted: bool
    ):
        super().__init__(tiles, Z)
        self.kernel, self.diagonal, self.passes = kernel, diagonal, 0.0
        self.shift = torch.empty_like(Z[:, 0]) if shifted else None
        self._columns = Z.T.contiguous()  # (q, n)
        self._work = torch.empty(2, tiles[0].stop, len(Z), dtype=Z.dtype, device=Z.device)

    def __getitem__(self, rows: slice) -> Tensor:
        return self._weigh(rows, None)[1]

    def costs(self, rows: slice, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Some rows of C_Z and of the kernel, (b, n) each, the latter in ``out`` if given."""
        cost, kernel = self._weigh(rows, out)
        return cost.log_() if self.kernel == "student" else cost, kernel

    def _weigh(self, rows: slice, out: Tensor | None) -> tuple[Tensor, Tensor]:
        """e^C (Student) or C (Gaussian), and the kernel."""
        b = rows.stop - rows.start
        self.passes += b / self.shape[0]
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
