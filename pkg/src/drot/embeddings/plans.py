r"""Plans as the objectives meet them: kept whole, or computed tile by tile whenever they are met.

Up to 4096 points a plan is kept whole, whichever way its cost is met: then the descent is the same,
its metric too, and a map does not depend on how much memory there is.

An objective asks a plan for its rows, in working tiles, for its row sums, its mass, its entropy,
and whether it is symmetric. A matrix in memory answers, and so does an affinity that is never
formed: what is written over tiles does not ask which it has.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from .._core.checks import as_real, check_finite, check_same_transposed
from .._core.memory import rows_per_tile
from ..affinities.base import Affinity, read_plan
from ..costs.array import Pairwise, fill_diagonal

_KEPT = 4096  # points whose plan is kept in any case: 128 MiB in float64


class Plan(Pairwise):
    """A plan P (n, n), and what one pass over it tells.

    It is what an objective reads of an affinity, of a graph or of an array; it has no cost, no
    duals and no certificate, and no user sees it.

    An affinity of more than 4096 points whose cost is met in tiles is never formed; another plan is
    kept as it was given: do not change it in place afterwards.

    Attributes
    ----------
    matrix : Tensor, shape (n, n), or None
        The plan that is kept.
    sums : Tensor, shape (n,)
        Of the rows.
    mass, largest : float
        Sum of all entries, and the largest.
    symmetric : bool
        To the last bit if it is kept; by its formula if not.
    """

    block: int

    def __init__(self, plan, *, symmetric: bool | None = None):
        """``symmetric`` is given with a matrix that is known to be a plan: it is not read again."""
        whole: Any = _read(plan) if symmetric is None else plan
        self.matrix = whole if isinstance(whole, Tensor) else None
        if symmetric is None:
            symmetric = whole.symmetric if self.matrix is None else bool((whole == whole.T).all())
        n = whole.shape[0]
        step = rows_per_tile(2 * n, whole.device)  # two arrays are at work at a time
        block = min(step, n, getattr(whole, "block", n))
        evaluate = whole.rows if self.matrix is None else partial(Tensor.__getitem__, whole)
        super().__init__(evaluate, (n, n), whole, block=block, symmetric=symmetric)
        sums, self.largest = [], 0.0
        for rows, tile in self.tiles():
            if self.matrix is None:
                check_finite(tile, f"plan (from row {rows.start} on)")
            sums.append(tile.sum(dim=1, dtype=torch.float64))
            self.largest = max(self.largest, float(tile.max()))
        exact = torch.cat(sums)
        self.sums, self.mass = exact.to(self.dtype), float(exact.sum())

    @cached_property
    def entropy(self) -> float:
        """Sum of P log P."""
        return float(sum(torch.xlogy(p, p).sum(dtype=torch.float64) for _, p in self.tiles()))

    def check_symmetric(self) -> None:
        """Refuse a plan that differs from its transpose, but for rounding if it is kept."""
        if self.matrix is not None and not self.symmetric:
            check_same_transposed(self.matrix, "plan")
        elif not self.symmetric:
            raise ValueError(
                "plan must be symmetric; in tiles drot.symmetric_entropic_affinity and "
                "drot.doubly_stochastic_affinity are; pass another one of a dense cost through "
                "drot.symmetrize"
            )

    def symmetric_product(self, v: Tensor) -> Tensor:
        """(W + W^T) v / 2 for v (n, k), with W the plan without its diagonal, in one pass."""
        lines = v.T.contiguous()  # (k, n): as thin columns they take twice as long
        there, back = torch.empty_like(lines), torch.zeros_like(lines)
        for rows, tile in self.tiles():
            tile = fill_diagonal(tile.clone(), rows, 0.0)  # no difference of what is nearly equal
            there[:, rows] = lines @ tile.T
            back.addmm_(lines[:, rows], tile)
        return there.add_(back).div_(2).T

    def symmetric_part(self, factor: float = 1.0) -> Tensor | Pairwise:
        """Weights whose Laplacian is that of P, in another unit; in tiles it is P itself that is
        met, of which only (P + P^T) / 2 counts."""
        if self.matrix is None:
            return self.derive(lambda rows: self.rows(rows).mul_(factor))
        return (self.matrix + self.matrix.T).mul_(factor / 2)


def _read(plan) -> Tensor | Affinity:
    """The matrix that is kept; an affinity that is met in tiles, of many points, as it is."""
    plan = plan if isinstance(plan, Affinity) else as_real(plan, "plan")
    shape = tuple(plan.shape)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        raise ValueError(
            f"plan must be a square (n, n) affinity of n >= 2 points; got shape {shape}. For a "
            "cloud X of n points take an estimator, as drot.TSNE().fit(X), or an affinity of "
            "drot.sqeuclidean(X)"
        )
    tiled = isinstance(plan, Affinity) and plan.block is not None and shape[0] > _KEPT
    return plan if tiled else read_plan(plan)


def as_plan(plan) -> Plan:
    """An array or an affinity as a plan; one that was read before stays as it is."""
    return plan if isinstance(plan, Plan) else Plan(plan)
