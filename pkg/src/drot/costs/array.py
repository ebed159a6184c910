"""An array of pairs met in row tiles: the one primitive of the package.

Everything quadratic reads an n x m array a few rows at a time. A dense matrix is the case of one
tile, so a solver written over tiles runs on a small matrix, on a large cloud in bounded memory, on
a GPU, and on several processes that share the rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor

from .._core.checks import (
    as_count,
    as_flag,
    as_real,
    check_choice,
    check_finite,
    check_fits,
    check_no_entry,
    check_same_transposed,
    unequal,
)
from .._core.memory import automatic_block, rows_per_tile, slices
from .._core.ranks import ALONE, Processes, Ranks

Block = int | Literal["auto"] | None
UNKEPT = 2**31  # the block of an array that is never kept: more rows than any has
Diagonal = Literal["keep", "drop"]  # the pairs i = j


class Pairwise:
    """An (n, m) array of numbers, one for each pair of points, met in row tiles.

    Made by :func:`drot.sqeuclidean`, :func:`drot.student_cost`, :func:`drot.pairwise`,
    :func:`drot.nearest`, or from a dense matrix by any function that takes a cost.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(index)`` gives rows, (b, m), for a slice of them or a tensor of their numbers.
    shape : tuple of int
        (n, m).
    like : Tensor or Pairwise
        Whose dtype and device the rows have.
    block : int, "auto" or None
        As below; ``"auto"`` asks the memory of the machine.
    symmetric : bool
        Whether rows and columns agree but for rounding, which a kept array then loses.
    stored : dict of tensors, optional
        What a saved result holds to build the array again. Default: such a result cannot be saved.
    ranks : Processes
        That share the rows.

    Attributes
    ----------
    dtype, device : torch.dtype, torch.device
        Of every tile.
    block : int or None
        Rows per tile. ``None`` keeps the dense array after its first use.
    own : slice
        The rows that this process meets: all, unless :func:`drot.costs.shard` has shared them.
    points : Tensor or None
        The cloud whose points are compared, (n, p), where it is known.

    Notes
    -----
    ``pickle`` and ``copy`` take one whose rows are not shared; one made of a function needs a
    function that they take.
    """

    points: Tensor | None = None
    of_distances = False  # small where points are near

    def __init__(
        self,
        evaluate: Callable[[slice | Tensor], Tensor],
        shape: tuple[int, int],
        like: Tensor | Pairwise,
        *,
        block: Block = None,
        symmetric: bool = False,
        stored: dict[str, Tensor] | None = None,
        ranks: Processes = ALONE,
    ):
        if isinstance(block, str):
            check_choice("block", block, ("auto",))
            block = automatic_block(shape, like.dtype, like.device)
        elif block is not None:
            block = as_count("block (rows per tile)", block, 1)
        self._evaluate = evaluate
        self._dense: Tensor | None = None  # the rows in own, once they are kept
        self.shape, self.block = shape, block
        self.dtype: torch.dtype = like.dtype
        self.device: torch.device = like.device
        self.symmetric = as_flag("symmetric", symmetric)  # known to be symmetric by construction
        self.stored = stored  # what a saved result must hold to build it again
        self.ranks = ranks
        self.own = ranks.rows(shape[0])

    def __repr__(self) -> str:
        n, m = self.shape
        tiles = "dense" if self.block is None else f"tiles of {self.block} rows"
        if (self.own.start, self.own.stop) != (0, n):
            tiles += f", rows {self.own.start} to {self.own.stop} here"
        return f"{type(self).__name__}({n} x {m}, {self.dtype}, {self.device}, {tiles})"

    def derive(self, evaluate: Callable[[slice | Tensor], Tensor]) -> Pairwise:
        """Another array of the same points, met in the same way."""
        other = Pairwise(
            evaluate, self.shape, self, block=self.block, symmetric=self.symmetric, ranks=self.ranks
        )
        other.points = self.points
        return other

    def shared(self, ranks: Processes) -> Pairwise:
        """The same array, of which each rank meets its own rows."""
        other = copy.copy(self)
        other.ranks, other.own, other._dense = ranks, ranks.rows(self.shape[0]), None
        return other

    def rows(self, index: slice | Tensor) -> Tensor:
        """The rows ``index``, shape (b, m). Read-only: it may be a view of a kept array."""
        if self.block is not None:
            return self._evaluate(index)
        if isinstance(index, slice):
            index = slice(*index.indices(self.shape[0]))
            if self.own.start <= index.start <= index.stop <= self.own.stop:
                return self._keep()[self.local(index)]
        elif self.own == slice(0, self.shape[0]):
            return self._keep()[index]
        return self._evaluate(index)  # rows of another process

    def _keep(self) -> Tensor:
        """The own rows of a dense array, kept."""
        if self._dense is None:
            shape = self.own.stop - self.own.start, self.shape[1]
            check_fits(shape, self.dtype, self.device)
            whole = torch.empty(shape, dtype=self.dtype, device=self.device)
            # arrays of full size in between would cost more than they hold
            for rows in slices(self.own, tile_rows(self)):
                whole[self.local(rows)] = self._evaluate(rows)
                if self.symmetric and shape == self.shape:
                    # a matrix product may round (i, j) and (j, i) differently
                    right, below = whole[: rows.stop, rows], whole[rows, : rows.stop]
                    mean = (right + below.T).div_(2)
                    right.copy_(mean)
                    below.copy_(mean.T)
            self._dense = whole
        return self._dense

    def tiles(self, most: int | None = None) -> Iterator[tuple[slice, Tensor]]:
        """Yield ``(rows, tile)`` from the first row of this process to the last.

        ``rows`` is a slice and ``tile`` an array of shape (b, m), where b is at most
        ``block`` and at most ``most``.
        """
        n = self.shape[0]
        for rows in slices(self.own, min(self.block or n, most or n)):
            yield rows, self.rows(rows)

    def working_tiles(self) -> Iterator[tuple[slice, Tensor]]:
        """The same in tiles that a core's own cache holds, or that fill a GPU."""
        return self.tiles(tile_rows(self))

    def local(self, rows: slice) -> slice:
        """Where some rows of this process stand among its own."""
        return slice(rows.start - self.own.start, rows.stop - self.own.start, rows.step)

    def join(self, parts: Iterable[Tensor]) -> Tensor:
        """What the tiles gave, (b, ...) each, row after row, from all processes."""
        return self.ranks.join(gather(parts, self.own.stop - self.own.start), self.shape[0])

    def map(self, function: Callable[[slice, Tensor], Tensor]) -> Tensor:
        """``function(rows, tile)``, (b, ...), of every working tile, row after row, from all
        processes; a tile may be a view of a kept array, and the result is none.
        """
        step, own = tile_rows(self), self.own
        if own.stop - own.start <= min(self.block or step, step):  # one tile, with nothing to join
            return self.ranks.join(function(own, self.rows(own)), self.shape[0])
        return self.join(function(rows, tile) for rows, tile in self.tiles(step))

    def dense(self) -> Tensor:
        """The whole array, shape (n, m)."""
        check_fits(self.shape, self.dtype, self.device)
        return self.join(tile for _, tile in self.tiles())

    def __matmul__(self, V: Tensor) -> Tensor:
        """A V, (n, ...), for V (m, ...)."""
        return self.join(tile @ V for _, tile in self.tiles())

    def diagonal(self) -> Tensor:
        """The entries (i, i) of a square array, (n,)."""
        # a view would keep the whole tile
        return self.map(lambda rows, tile: tile.diagonal(rows.start).clone())

    def entries(self, index: Tensor) -> Tensor:
        """A[index, index], (b, b)."""
        step = self.block or max(1, len(index))  # no more whole rows than a tile has
        return torch.cat([self.rows(some)[:, index] for some in index.split(step)])

    def centred(self, w: Tensor) -> Pairwise:
        """J A J^T with J = I - 1 w^T: inner products of points less their mean."""
        mean = self.map(lambda _, tile: tile @ w)  # (n,)
        rest = mean - w @ mean
        return self.derive(lambda rows: (self.rows(rows) - mean[rows, None]).sub_(rest))

    def columns_times(self, index: Tensor, Y: Tensor) -> Tensor:
        """A[:, index] Y, (n, k), of a symmetric array, for Y (b, k)."""
        n = self.shape[0]
        if 4 * len(index) > n:  # a product is cheaper than a copy of so many rows
            return self @ Y.new_zeros(n, Y.shape[1]).index_copy_(0, index, Y)
        step = self.block or max(1, len(index))  # of an array in tiles, a tile at a time
        parts = zip(index.split(step), Y.split(step), strict=True)
        return sum((self.rows(some).T @ part for some, part in parts), Y.new_zeros(()))

    def shifted(self, w: Tensor) -> tuple[Pairwise, float, float]:
        """A - m, the mean m = w^T A w, and a number that no entry of the first exceeds in size."""
        ends = self.map(lambda _, t: torch.stack([t @ w, t.amax(dim=1), t.amin(dim=1)], dim=1))
        m = float(w @ ends[:, 0])
        largest = float((ends[:, 1:].double() - m).abs().max())
        return self.derive(lambda rows: self.rows(rows) - m), m, largest

    def divided(self, size: float) -> Pairwise:
        """A / size; of a dense A, which need not be kept, it alone is."""
        return self.derive(lambda rows: self._evaluate(rows) / size)

    def in_double(self, *, zeros: bool = False) -> Pairwise:
        """The same numbers in float64, in tiles; with the ``zeros`` that rounding hides."""
        fine = self.derive(lambda rows: self.with_zeros(self.rows(rows)).double())
        fine.dtype, fine.block = torch.float64, self.block or tile_rows(self)
        return fine

    @property
    def rounding(self) -> float:
        """What a zero may come to: more than 0 where entries are products of factors."""
        return 0.0

    def with_zeros(self, entries: Tensor) -> Tensor:
        """Some entries of an array that is not negative, rounding taken for zeros."""
        return entries.masked_fill(entries <= self.rounding, 0) if self.rounding else entries

    def packed_tiles(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield ``(rows, entries)``: (b, k) entries of some rows, all finite ones among them."""
        return self.working_tiles()


def gather(parts: Iterable[Tensor], count: int) -> Tensor:
    """Parts (b, ...) one below the other, ``count`` rows in all, in an array of their own.

    Each part goes at once to where it belongs: small results that stay alive between tiles would
    leave holes in the heap, which then grows by many tiles.
    """
    parts = iter(parts)
    part = next(parts)
    whole, done = part.new_empty(count, *part.shape[1:]), len(part)
    whole[:done] = part
    for part in parts:
        whole[done : done + len(part)] = part
        done += len(part)
    if done != count:
        raise ValueError(f"there are {done} rows to join, and {count} are wanted")
    return whole


def smallest(cost: Pairwise, k: int) -> tuple[Tensor, Tensor]:
    """The k smallest entries of each row, ascending, and their columns, (n, k) each."""
    own = cost.own.stop - cost.own.start
    values = torch.empty(own, k, dtype=cost.dtype, device=cost.device)
    columns = torch.empty(own, k, dtype=torch.long, device=cost.device)
    for rows, tile in cost.working_tiles():
        here = cost.local(rows)
        torch.topk(tile, k, largest=False, out=(values[here], columns[here]))
    return cost.join([values]), cost.join([columns])


class Nearest(Pairwise):
    """A cost that is infinite but for k entries of each row; see :func:`drot.nearest`."""

    def __init__(
        self, values: Tensor, columns: Tensor, m: int, block: int | None, *,
        ranks: Processes = ALONE,
    ):  # fmt: skip
        stored = {"values": values, "columns": columns, "m": torch.tensor(m)}
        evaluate, shape = partial(_spread, values, columns, m), (len(values), m)
        super().__init__(evaluate, shape, values, block=block, stored=stored, ranks=ranks)
        self.values = values

    def packed_tiles(self) -> Iterator[tuple[slice, Tensor]]:
        for rows in slices(self.own, tile_rows(self)):
            yield rows, self.values[rows]


def _spread(values: Tensor, columns: Tensor, m: int, rows: slice | Tensor) -> Tensor:
    """Rows of m entries, infinite but for the values."""
    some = values[rows]
    tile = torch.full((some.shape[0], m), torch.inf, dtype=some.dtype, device=some.device)
    return tile.scatter_(1, columns[rows], some)


class WithoutDiagonal(Pairwise):
    """A square cost whose diagonal is infinite, so that no point sends mass to itself."""

    def __init__(self, cost: Pairwise):
        block, symmetric, ranks = cost.block, cost.symmetric, cost.ranks
        evaluate, shape = partial(_bare, cost), cost.shape
        super().__init__(evaluate, shape, cost, block=block, symmetric=symmetric, ranks=ranks)
        if cost.stored is not None:
            self.stored = {**cost.stored, "without_diagonal": torch.tensor(1)}
        self.of_distances = cost.of_distances

    def rows(self, index: slice | Tensor) -> Tensor:
        return self._evaluate(index)  # not kept: the other cost may have kept its array


def _bare(cost: Pairwise, index: slice | Tensor) -> Tensor:
    """A copy of some rows of a square cost, infinite on the diagonal."""
    return fill_diagonal(cost.rows(index).clone(), index, torch.inf)


def fill_diagonal(tile: Tensor, rows: slice | Tensor, value: float) -> Tensor:
    """Write to the entries (i, i) among some rows (b, m) of a square array."""
    numbers = torch.arange(tile.shape[1], device=tile.device)[rows]
    tile[torch.arange(len(numbers), device=tile.device), numbers] = value
    return tile


def tile_rows(cost: Pairwise) -> int:
    """Rows that make a working tile: one or two MB on a CPU (its cache), much more on a GPU."""
    return rows_per_tile(cost.shape[1], cost.device)


def ranks_of(*costs: object) -> Processes:
    """The processes that share the rows of the first cost that is shared."""
    shared = (cost.ranks for cost in costs if isinstance(cost, Pairwise))
    return next((ranks for ranks in shared if ranks is not ALONE), ALONE)


def as_pairwise(cost, name: str = "cost", *, square: bool = True, least: int = 2) -> Pairwise:
    """Read a cost: a :class:`Pairwise` as it is, a matrix as one tile."""
    if not isinstance(cost, Pairwise):
        matrix = as_real(cost, name)
        if matrix.ndim != 2:
            raise ValueError(
                f"{name} must be a matrix of pairwise costs; got shape {tuple(matrix.shape)}"
            )
        check_finite(matrix, name)
        same = matrix.shape[0] == matrix.shape[1] and bool((matrix == matrix.T).all())
        evaluate, shape = partial(Tensor.__getitem__, matrix), (matrix.shape[0], matrix.shape[1])
        cost = Pairwise(evaluate, shape, matrix, symmetric=same, stored={"matrix": matrix})
        cost._dense = matrix
    if square and cost.shape[0] != cost.shape[1]:
        cure = "an affinity of drot.sqeuclidean(X), or drot.gram(X)"
        raise ValueError(
            f"{name} must be square (n, n); got {cost.shape}. For a cloud X of n points pass "
            f"{cure if name == 'similarity' else 'drot.sqeuclidean(X)'}"
        )
    if cost.shape[0] < least:
        raise ValueError(f"{name} needs at least {least} point{'s'[: least - 1]}; got {cost.shape}")
    return cost


def shard(cost, *, group: dist.ProcessGroup | None = None) -> Pairwise:
    r"""Distribute the rows of a cost among the processes of a ``torch.distributed`` group.

    With r processes, process s meets the rows :math:`\lfloor sn / r \rfloor` to
    :math:`\lfloor (s + 1) n / r \rfloor`. Every process calls the same function with the same
    arguments; each evaluates, and where the cost is dense keeps, its own rows alone, and n-vectors
    travel. All get the same result, to the bit, and up to rounding that of one process. ``tiles``
    of a result are the rows of the process; ``plan`` gathers all.

    Every function that takes a cost takes a shared one, and every function that takes an affinity
    takes that of a shared cost. Affinities, :func:`~drot.nearest`, :func:`~drot.umap_membership`,
    scores of neighbourhoods, random graphs, and sums of Gromov-Wasserstein share the rows. What
    needs the whole array (``dense``, ``plan``, Laplacians, embeddings of a plan that is kept)
    gathers it in each process. Products by the factors of a factored cost, and embeddings of a plan
    that is met in tiles, are computed whole by each process: they gain nothing.

    Source: book ``sec-ranks``.

    Parameters
    ----------
    cost : Pairwise or array_like, shape (n, m)
        The same in all processes.
    group : torch.distributed.ProcessGroup, optional
        Default: all processes. Gloo on a CPU, NCCL on GPUs.

    Returns
    -------
    Pairwise

    Raises
    ------
    RuntimeError
        If ``torch.distributed`` is not initialised.
    ValueError
        If there are more processes than rows.

    Notes
    -----
    An error may concern rows that only one process meets: a perplexity out of reach there, no
    memory left. Let it end that process. ``torchrun`` then ends the others; without it they stop
    at their next join, with the error of ``torch.distributed``: at once with gloo, which sees the
    closed connection, else after the timeout given to ``init_process_group``. A process that
    catches the error and goes on leaves the others waiting, until that timeout.

    Examples
    --------
    >>> import tempfile, torch.distributed as dist
    >>> with tempfile.TemporaryDirectory() as folder:  # torchrun does this for many processes
    ...     address = f"file://{folder}/ranks"
    ...     dist.init_process_group("gloo", init_method=address, rank=0, world_size=1)
    ...     rows = shard([[0.0, 1.0], [1.0, 0.0]]).own
    ...     dist.destroy_process_group()
    >>> rows
    slice(0, 2, None)
    """
    ranks, cost = Ranks(group), as_pairwise(cost, square=False)
    if ranks.size > (n := cost.shape[0]):
        raise ValueError(f"{ranks.size} processes cannot share {n} rows; start {n} at most")
    return cost.shared(ranks)


def check_symmetric(cost: Pairwise, name: str = "the cost") -> None:
    """Refuse a cost that differs from its transpose: by pairs, or where it is met in tiles by
    C z and C^T z, in one pass.
    """
    if cost.symmetric:
        return
    n = cost.shape[0]
    if cost.block is None:
        matrix = cost.rows(slice(0, n))
        _check_all_finite(matrix, name)
        return check_same_transposed(matrix, name, strict=True)
    z = 0.5 + (0.618034 * torch.arange(n, dtype=cost.dtype, device=cost.device)) % 1  # generic
    back = torch.zeros_like(z)  # C^T z

    def products(rows: slice, tile: Tensor) -> Tensor:
        back.add_(z[rows] @ tile)
        return torch.stack([tile @ z, tile.abs() @ z], dim=1)

    along, size = cost.map(products).unbind(dim=1)
    _check_all_finite(size, name)
    rtol = max(1e-8, 64 * torch.finfo(cost.dtype).eps)
    excess = (along - cost.ranks.total(back)).abs() - rtol * size
    i = int(excess.argmax())
    if excess[i] > 0:
        row = cost.rows(slice(i, i + 1))[0]
        column = cost.map(lambda _, tile: tile[:, i].clone())
        j = int((row - column).abs().argmax())
        raise unequal(name, (i, j), float(row[j]), float(column[j]))


def _check_all_finite(numbers: Tensor, name: str) -> None:
    says = "must be finite for all pairs of points, and is {entry} at {at}; of a cost of nearest "
    says += "neighbours an affinity by rows can be made, such as drot.entropic_affinity"
    check_no_entry(~numbers.isfinite(), numbers, f"{name} {says}")
