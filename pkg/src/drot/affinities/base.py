r"""What an affinity solver returns: a plan in log form, its duals and its certificate.

And how any plan is read, and made symmetric.

Throughout, :math:`0 \log 0 = 0`, logarithms are natural, and a plan :math:`P` is a
non-negative matrix whose rows usually sum to 1 (total mass n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._core.algebra import exp, log_sum_and_entropy
from .._core.checks import as_square, check_fits, check_no_distances, check_non_negative
from .._core.saving import Saved
from ..costs.array import Pairwise, tile_rows
from ..costs.stored import restore

AffinityCallback = Callable[[int, float], bool | None]
NEGATIVE = "{at} of the cost has a negative entry, {entry}; for points pass drot.sqeuclidean(X)"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Affinity(Saved):
    """An (n, m) array of non-negative weights, known by its cost and a few vectors.

    It is a solver's result. What an objective reads of it, or of any array, is a ``Plan``, which no
    user sees; and a plan between two spaces is a bare (n, k) tensor.

    It answers as a :class:`Pairwise` does, with the shape, dtype, device, block and ranks of its
    cost. The array itself is formed on demand: whole by ``plan`` and ``log_plan``, or a few rows at
    a time by ``tiles`` and ``logs.tiles``, in which case it never exists as one. A dense cost is
    kept as it was given, not copied: do not change it in place afterwards.
    """

    cost: Pairwise  #: what was solved for, without the diagonal if that was dropped
    residual: float  #: what ``tol`` bounded, a max norm; each solver says of what
    n_iter: int  #: iterations made
    passes: float  #: evaluations of the whole array, a fraction where finished rows were left out
    converged: bool  #: whether the residual is within ``tol``
    trace: tuple[float, ...]  #: the residual after each iteration
    symmetric: ClassVar[bool] = False  #: whether P = P^T by its formula
    shape, dtype, device, block, ranks = (
        property(attrgetter(name), doc=f"``{name}``.")
        for name in ("cost.shape", "cost.dtype", "cost.device", "cost.block", "cost.ranks")
    )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.shape[0]} x {self.shape[1]}, "
            f"residual={self.residual:.1e}, n_iter={self.n_iter}, passes={self.passes:.1f})"
        )

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        """Log weights of the rows ``rows`` whose costs are ``cost`` (b, m)."""
        raise TypeError(f"{type(self).__name__} does not define its weights")

    def rows(self, index) -> Tensor:
        """The rows ``index``, shape (b, m)."""
        tile = self.log_rows(index, self.cost.rows(index))
        return exp(tile, out=tile)

    @property
    def logs(self) -> Pairwise:
        """log P, (n, m), computed when it is met."""
        cost, block = self.cost, min(self.block or self.shape[0], tile_rows(self.cost))

        def evaluate(index) -> Tensor:
            return self.log_rows(index, cost.rows(index))

        return Pairwise(evaluate, cost.shape, cost, block=block, ranks=cost.ranks)

    def tiles(self, most: int | None = None) -> Iterator[tuple[slice, Tensor]]:
        """Yield ``(rows, P[rows])`` in row tiles of at most ``most`` rows."""
        for rows, tile in self.logs.tiles(most):
            yield rows, tile.exp_()  # as `plan` has them, to the bit

    @property
    def log_plan(self) -> Tensor:
        """log P, shape (n, m); ``-inf`` where a pair is forbidden."""
        return self.logs.dense()

    @property
    def plan(self) -> Tensor:
        """P itself, shape (n, m)."""
        check_fits(self.shape, self.dtype, self.device)
        # not _core.algebra.exp: its last bit depends on the place, P = P^T
        return self.logs.map(lambda _, log_p: log_p.exp_())

    def dense(self) -> Tensor:
        """The plan, as costs and graphs give their arrays."""
        return self.plan

    @property
    def perplexity(self) -> Tensor:
        """Exponential of Shannon's entropy of each row divided by its mass, shape (n,)."""
        return self.logs.map(lambda _, log_p: log_sum_and_entropy(log_p)[1]).exp()

    def _stored(self) -> dict[str, object]:
        if self.cost.stored is None:
            raise ValueError(
                "a cost made by a callable cannot be saved; solve with cost.dense() and save that"
            )
        values: dict[str, object] = {"block": self.block or 0}
        values |= {f"cost.{name}": part for name, part in self.cost.stored.items()}
        return values | {name: value for name, value in vars(self).items() if name != "cost"}

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Affinity:
        parts = {name: values.pop(name) for name in [*values] if name.startswith("cost.")}
        parts = {name.removeprefix("cost."): part for name, part in parts.items()}
        return cls(cost=restore(parts, values.pop("block") or None), **values)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SymmetricAffinity(Affinity):
    """A plan of a symmetric cost, solved for C_ij - base_i - base_j, which rounds less."""

    base: Tensor  #: (n,) in units of the cost, of which ``base_i + base_j`` is taken out, or 0
    net: Tensor  #: (n,) dual variable of the row sums of what is left, with all its digits
    symmetric = True

    def _solved(self, rows: slice, cost: Tensor) -> Tensor:
        """The cost that was solved, rounded as it was, of the rows whose costs are ``cost``."""
        return _less(cost, rows, self.base) if self.base.any() else cost


def less_base(cost: Pairwise, base: Tensor) -> Pairwise:
    """C_ij - base_i - base_j: the same plan."""
    return cost.derive(lambda rows: _less(cost.rows(rows), rows, base)) if base.any() else cost


def _less(tile: Tensor, rows: slice | Tensor, base: Tensor) -> Tensor:
    rounding = 8 * torch.finfo(tile.dtype).eps * base.abs()
    tile = tile - (base[rows, None] + base)
    # what is left of a copy's cost is rounding: copies are at 0, as without a shift
    return tile.masked_fill_(tile.abs() <= rounding[rows, None] + rounding, 0.0)


def symmetrize(plan) -> Tensor:
    r"""Symmetric part of a plan, as t-SNE takes it: the mean of it and its transpose.

    .. math:: \mathrm{Proj}^{\ell_2}_{\mathcal S}(P) = \tfrac12 (P + P^\top)
              = \arg\min_{Q = Q^\top} \| Q - P \|_2.

    It keeps the total mass but neither the row sums nor the row entropies of an affinity.

    Source: Symmetric-SNE and appendix A.1 of SNEkhorn (Van Assel et al., 2023); book
    ``prp-euclid-sym``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n)

    Returns
    -------
    Tensor, shape (n, n)

    Raises
    ------
    ValueError
        If the plan is not square.

    Examples
    --------
    >>> symmetrize([[0.0, 1.0], [0.5, 0.5]]).tolist()
    [[0.0, 0.75], [0.75, 0.5]]
    """
    matrix = as_square(plan, "plan", 2)
    return (matrix + matrix.T) / 2


def read_plan(plan, name: str = "plan", what: str = "entry", least: int = 2) -> Tensor:
    """A finite non-negative (n, n) tensor, no distances, from an affinity, a graph or an array."""
    matrix = as_square(plan, name, least)
    check_non_negative(matrix, name, what)
    if not isinstance(plan, Affinity):
        check_no_distances(matrix, name)
    return matrix
