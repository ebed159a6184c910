r"""Plans as the objectives meet them: kept whole, or computed tile by tile whenever they are met.

Objectives ask some things of an n x n array A: its rows ``A[rows]`` in tiles, a product ``A @ v``,
the sums ``A.sum(dim=1)``; of a plan also its mass, its entropy, whether it is symmetric. A matrix
in memory answers them, and so does an affinity that is never formed: what is written over tiles
does not ask which it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._core.checks import check_finite, check_same_transposed
from .._core.kernels import exp
from .._core.memory import tile_entries
from ..affinities.base import Affinity, read_plan
from ..costs.array import Pairwise, gather

_ALIKE = {torch.float64: 1e-6, torch.float32: 1e-4}  # share of the largest entry: rounding


def tiles_of(n: int, device: torch.device, most: int | None = None) -> list[slice]:
    """The rows 0, ..., n - 1 in working tiles, of at most ``most`` rows."""
    step = max(16, tile_entries(device) // 2 // n)  # two arrays are at work at a time
    step = min(step, most or n)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


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


class Plan(Rows):
    """A plan P (n, n), and what one pass over it tells.

    Attributes
    ----------
    array : Tensor or Plan
        The matrix where it is kept, otherwise this object.
    sums, loops : Tensor, shape (n,)
        Row sums, and the diagonal.
    mass, entropy, largest : float
        Sum of P, sum of P log P, largest entry.
    symmetric : bool
    """

    array: Any
    sums: Tensor
    loops: Tensor
    mass: float
    largest: float

    def sum(self, dim: int = 1) -> Tensor:
        return self.sums

    def diagonal(self) -> Tensor:
        return self.loops

    def both(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """P v and P^T v for v (n, k), in one pass."""
        lines = v.T.contiguous()  # (k, n): as thin columns they take twice as long
        there, back = torch.empty_like(lines), torch.zeros_like(lines)
        for rows, tile in self.tiles():
            there[:, rows] = lines @ tile.T
            back.addmm_(lines[:, rows], tile)
        return there.T, back.T


class DensePlan(Plan):
    """A plan that is kept as it was given, (n, n): do not change it in place afterwards."""

    def __init__(self, matrix: Tensor):
        super().__init__(tiles_of(len(matrix), matrix.device), matrix)
        self.array = matrix
        self.sums, self.loops = matrix.sum(dim=1), matrix.diagonal()
        self.mass, self.largest = float(matrix.sum(dtype=torch.float64)), float(matrix.max())

    def __getitem__(self, rows: slice) -> Tensor:
        return self.array[rows]

    @cached_property
    def entropy(self) -> float:
        return float(sum(torch.xlogy(p, p).sum(dtype=torch.float64) for _, p in self.tiles()))

    @cached_property
    def symmetric(self) -> bool:
        return bool((self.array == self.array.T).all())

    def check_symmetric(self) -> None:
        check_same_transposed(self.array, "plan")

    def symmetric_part(self) -> Tensor:
        """Weights whose Laplacian is that of P, symmetric."""
        return (self.array + self.array.T) / 2


class TiledPlan(Plan):
    r"""An affinity that is met in tiles of rows and never formed.

    ``asymmetry`` is the largest entry of :math:`(P - P^T) v / \sqrt n` for two random vectors v of
    signs, in units of the largest entry: 0 but for rounding if P is symmetric, and not otherwise.
    """

    def __init__(self, affinity: Affinity):
        cost = affinity.cost
        n, m = cost.shape
        if n != m:
            raise ValueError(
                f"plan must be a square (n, n) affinity of n >= 2 points; got shape {(n, m)}"
            )
        super().__init__(tiles_of(n, cost.device, cost.block), affinity.cost)
        self.array, self.affinity, self.factor = self, affinity, 1.0
        self._survey()

    def __getitem__(self, rows: slice) -> Tensor:
        tile = self.affinity.log_rows(rows, self.affinity.cost.rows(rows))
        tile = exp(tile, out=tile)
        return tile if self.factor == 1 else tile.mul_(self.factor)

    def __mul__(self, factor: float) -> TiledPlan:
        """The same weights in another unit."""
        other = copy(self)
        other.array, other.factor = other, self.factor * factor
        other.sums, other.loops = self.sums * factor, self.loops * factor
        return other

    def _survey(self) -> None:
        n, largest = self.shape[0], 0.0
        sums, loops = [], []
        entropy = torch.zeros((), dtype=torch.float64, device=self.device)
        for rows, tile in self.tiles():
            check_finite(tile, f"plan (from row {rows.start} on)")
            sums.append(tile.sum(dim=1, dtype=torch.float64))
            loops.append(tile.diagonal(rows.start).clone())
            largest = max(largest, float(tile.max()))
            entropy += torch.xlogy(tile, tile).sum(dtype=torch.float64)
        exact = torch.cat(sums)
        self.sums, self.mass = exact.to(self.dtype), float(exact.sum())
        self.loops, self.largest, self.entropy = torch.cat(loops), largest, float(entropy)
        signs = torch.from_numpy(np.random.default_rng(0).choice([-1.0, 1.0], size=(n, 2)))
        there, back = self.both(signs.to(self.device, self.dtype))
        gaps = (there - back).abs().amax(dim=1)  # (n,)
        self.worst = int(gaps.argmax())
        self.asymmetry = float(gaps.max()) / (n**0.5 * largest) if largest else 0.0
        self.symmetric = self.asymmetry <= _ALIKE[self.dtype]

    def check_symmetric(self) -> None:
        if not self.symmetric:
            raise ValueError(
                f"plan must be symmetric; row {self.worst} and column {self.worst} differ; "
                "pass a symmetric affinity, or one of a dense cost through drot.symmetrize"
            )

    def symmetric_part(self) -> TiledPlan:
        """P itself, of which only (P + P^T) / 2 counts for a Laplacian."""
        return self


def as_plan(plan) -> DensePlan | TiledPlan:
    """An affinity whose cost is met in tiles is met so too; another plan is kept."""
    if isinstance(plan, DensePlan | TiledPlan):
        return plan
    if isinstance(plan, Affinity) and plan.cost.block is not None:
        return TiledPlan(plan)
    return DensePlan(read_plan(plan))
