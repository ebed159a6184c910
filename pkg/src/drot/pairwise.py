"""Functions of pairs of points, met in row tiles: the one primitive of the package.

Everything quadratic reads an n x m array a few rows at a time through
:meth:`Pairwise.tiles`. A dense matrix is the case of one tile, so a solver written over
tiles runs on a small matrix, on a large cloud in bounded memory, and on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ._checks import as_points, as_real, check_count, check_finite, check_fits

__all__ = ["Pairwise", "as_pairwise", "nearest", "pairwise", "sqeuclidean", "student_cost"]

Kernel = Callable[[Tensor, Tensor], Tensor]


class Pairwise:
    """An (n, m) array of numbers, one for each pair of points, met in row tiles.

    Made by :func:`sqeuclidean`, :func:`student_cost`, :func:`pairwise`, :func:`nearest`, or
    from a dense matrix by any function that takes a cost.

    Attributes
    ----------
    shape : tuple of int
        (n, m).
    dtype, device : torch.dtype, torch.device
        Of every tile.
    block : int or None
        Rows per tile. ``None`` keeps the dense array after its first use.
    """

    def __init__(
        self,
        evaluate: Callable[[slice | Tensor], Tensor],
        shape: tuple[int, int],
        like: Tensor,
        *,
        block: int | None = None,
        symmetric: bool = False,
        parts: dict[str, Tensor] | None = None,
    ):
        if block is not None:
            block = check_count("block (rows per tile)", block, 1)
        self._evaluate = evaluate
        self._dense: Tensor | None = None
        self.shape, self.dtype, self.device, self.block = shape, like.dtype, like.device, block
        self.symmetric = symmetric  # known to be symmetric by construction
        self.parts = parts  # what a saved result must hold to build it again

    def __repr__(self) -> str:
        n, m = self.shape
        tiles = "dense" if self.block is None else f"tiles of {self.block} rows"
        return f"Pairwise({n} x {m}, {self.dtype}, {self.device}, {tiles})"

    def rows(self, index: slice | Tensor) -> Tensor:
        """The rows ``index``, shape (b, m). Read-only: it may be a view of a kept array."""
        if self.block is not None:
            return self._evaluate(index)
        if self._dense is None:
            check_fits(self.shape, self.dtype, self.device)
            whole = self._evaluate(slice(0, self.shape[0]))
            # a matrix product may round (i, j) and (j, i) differently
            self._dense = (whole + whole.T) / 2 if self.symmetric else whole
        return self._dense[index]

    def tiles(self, most: int | None = None) -> Iterator[tuple[slice, Tensor]]:
        """Yield ``(rows, tile)`` from the first row to the last.

        ``rows`` is a slice and ``tile`` an array of shape (b, m), where b is at most
        ``block`` and at most ``most``.
        """
        n = self.shape[0]
        step = min(self.block or n, most or n)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, self.rows(rows)

    def dense(self) -> Tensor:
        """The whole array, shape (n, m)."""
        check_fits(self.shape, self.dtype, self.device)
        if self.block is None:
            return self.rows(slice(0, self.shape[0])).clone()
        return torch.cat([tile for _, tile in self.tiles()])

    def packed_tiles(self, most: int) -> Iterator[tuple[slice, Tensor, Tensor | None]]:
        """Yield ``(rows, entries, columns)``: the finite entries of some rows, (b, k) each.

        ``columns`` is None where the entries are whole rows.
        """
        for rows, tile in self.tiles(most):
            yield rows, tile, None


class Nearest(Pairwise):
    """A cost that is infinite but for k entries of each row; see :func:`nearest`."""

    def __init__(self, values: Tensor, columns: Tensor, m: int, block: int | None):
        def evaluate(rows: slice | Tensor) -> Tensor:
            some = values[rows]
            tile = torch.full((some.shape[0], m), torch.inf, dtype=some.dtype, device=some.device)
            return tile.scatter_(1, columns[rows], some)

        parts = {"values": values, "columns": columns, "m": torch.tensor(m)}
        super().__init__(evaluate, (values.shape[0], m), values, block=block, parts=parts)
        self.values, self.columns = values, columns

    def packed_tiles(self, most: int) -> Iterator[tuple[slice, Tensor, Tensor | None]]:
        for start in range(0, self.shape[0], most):
            rows = slice(start, min(start + most, self.shape[0]))
            yield rows, self.values[rows], self.columns[rows]


class WithoutDiagonal(Pairwise):
    """A square cost whose diagonal is infinite, so that no point sends mass to itself."""

    def __init__(self, cost: Pairwise):
        parts = None if cost.parts is None else {**cost.parts, "without_diagonal": torch.tensor(1)}
        super().__init__(
            cost.rows, cost.shape, cost, block=cost.block, symmetric=cost.symmetric, parts=parts
        )

    def rows(self, index: slice | Tensor) -> Tensor:
        tile = self._evaluate(index).clone()  # the other cost may have kept its array
        numbers = torch.arange(self.shape[0], device=self.device)[index]
        tile[torch.arange(len(numbers), device=self.device), numbers] = torch.inf
        return tile


def tile_rows(cost: Pairwise) -> int:
    """Rows that make a working tile: a few MB on a CPU (its cache), much more on a GPU."""
    entries = 2**26 if cost.device.type == "cuda" else 2**20
    return max(16, entries // cost.shape[1])


def as_pairwise(cost, name: str = "cost", *, square: bool = True) -> Pairwise:
    """Read a cost: a :class:`Pairwise` as it is, a matrix as one tile."""
    if not isinstance(cost, Pairwise):
        matrix = as_real(cost, name)
        if matrix.ndim != 2:
            raise ValueError(
                f"{name} must be a matrix of pairwise costs; got shape {tuple(matrix.shape)}"
            )
        check_finite(matrix, name)
        same = matrix.shape[0] == matrix.shape[1] and bool((matrix == matrix.T).all())
        cost = Pairwise(
            lambda rows: matrix[rows],
            tuple(matrix.shape),
            matrix,
            symmetric=same,
            parts={"matrix": matrix},
        )
        cost._dense = matrix
    if square and cost.shape[0] != cost.shape[1]:
        raise ValueError(
            f"{name} must be square (n, n); got {cost.shape}. For a cloud X of n points pass "
            "drot.sqeuclidean(X)"
        )
    if cost.shape[0] < 2:
        raise ValueError(f"{name} needs at least 2 points; got {cost.shape}")
    return cost


def _clouds(X, Y) -> tuple[Tensor, Tensor]:
    x = as_points(X, "X").clone()  # tiles are met later; the caller may reuse X by then
    if Y is None or Y is X:
        return x, x
    y = as_points(Y, "Y").clone()
    if x.device != y.device:
        raise ValueError(f"X is on {x.device} and Y on {y.device}; move one of them")
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"X has {x.shape[1]} coordinates and Y has {y.shape[1]}")
    dtype = torch.promote_types(x.dtype, y.dtype)
    return x.to(dtype), y.to(dtype)


def pairwise(function: Kernel, X, Y=None, *, block: int | None = None) -> Pairwise:
    r"""Any function of two points, evaluated for all pairs, in row tiles.

    Source: section 2 of the SNEkhorn paper asks of a cost only that it be a matrix
    :math:`C_{ij} = c(x_i, y_j)`; book ``sec-costs``.

    Parameters
    ----------
    function : callable
        Takes rows ``x`` (b, p) and all of ``y`` (m, p), returns the tile (b, m).
    X, Y : array_like, shapes (n, p) and (m, p)
        Points; ``Y`` is ``X`` when left out.
    block : int, optional
        Rows per tile. ``None`` computes the dense array at its first use and keeps it.

    Returns
    -------
    Pairwise

    Raises
    ------
    ValueError
        If a cloud is not finite or the two do not match, or if ``function`` returns another
        shape, dtype or device than the tile's, or a number that is not finite.

    Examples
    --------
    >>> manhattan = pairwise(lambda x, y: torch.cdist(x, y, p=1), [[0.0, 0.0], [1.0, 2.0]])
    >>> manhattan.dense().tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    """
    x, y = _clouds(X, Y)

    def evaluate(rows: slice | Tensor) -> Tensor:
        tile = function(x[rows], y)
        expected = (x[rows].shape[0], y.shape[0])
        if not isinstance(tile, Tensor) or tuple(tile.shape) != expected:
            got = tuple(tile.shape) if isinstance(tile, Tensor) else type(tile).__name__
            raise ValueError(f"the pairwise function must return a {expected} tensor; got {got}")
        if tile.dtype != x.dtype or tile.device != x.device:
            raise ValueError(
                f"the pairwise function must keep {x.dtype} on {x.device}; "
                f"got {tile.dtype} on {tile.device}"
            )
        check_finite(tile, "a tile of the pairwise function")
        return tile.detach()

    return Pairwise(evaluate, (x.shape[0], y.shape[0]), x, block=block)


def sqeuclidean(X, Y=None, *, block: int | None = None) -> Pairwise:
    r"""Squared Euclidean distances, without a factor 1/2.

    .. math:: C_{ij} = \| x_i - y_j \|_2^2.

    One matrix product per tile; pairs that are close for their distance to the origin are
    computed again from their difference, so duplicates are at distance 0 exactly and
    relative accuracy does not depend on where the origin lies.

    Source: :math:`C_X` of SNEkhorn (Van Assel et al., 2023), section 2; book ``sec-costs``.

    Parameters
    ----------
    X, Y : array_like, shapes (n, p) and (m, p)
        Points; ``Y`` is ``X`` when left out. Integers become float64.
    block : int, optional
        Rows per tile. ``None`` computes the dense (n, m) array at its first use and keeps it;
        a number computes tiles each time they are met and never holds more than one.

    Returns
    -------
    Pairwise
        In squared units of the coordinates; dtype and device of ``X``.

    Raises
    ------
    ValueError
        If a cloud is not an (n, p) array of finite numbers with n >= 2.

    Notes
    -----
    :math:`O(nmp)` time per pass over the tiles. Not differentiable.

    Examples
    --------
    >>> sqeuclidean([[0.0, 0.0], [3.0, 4.0]]).dense().tolist()
    [[0.0, 25.0], [25.0, 0.0]]
    """
    x, y, evaluate = _sqeuclidean(X, Y)
    parts = {"sqeuclidean": x} if y is x else {"sqeuclidean": x, "other": y}
    return Pairwise(
        evaluate, (x.shape[0], y.shape[0]), x, block=block, symmetric=y is x, parts=parts
    )


def student_cost(X, Y=None, *, block: int | None = None) -> Pairwise:
    r"""Logarithmic cost whose Gibbs kernel is Student's.

    .. math::

        C_{ij} = \log(1 + \| x_i - y_j \|_2^2), \qquad
        e^{-C_{ij}} = (1 + \| x_i - y_j \|_2^2)^{-1}.

    Source: t-SNEkhorn, section 4 of SNEkhorn (Van Assel et al., 2023); book ``sec-costs``.

    Parameters
    ----------
    X, Y, block
        As in :func:`sqeuclidean`.

    Returns
    -------
    Pairwise
        Dimensionless.

    Examples
    --------
    >>> student_cost([[0.0], [1.0]]).dense().exp().tolist()
    [[1.0, 2.0], [2.0, 1.0]]
    """
    x, y, evaluate = _sqeuclidean(X, Y)
    parts = {"student": x} if y is x else {"student": x, "other": y}
    return Pairwise(
        lambda rows: evaluate(rows).log1p_(),
        (x.shape[0], y.shape[0]),
        x,
        block=block,
        symmetric=y is x,
        parts=parts,
    )


def _sqeuclidean(X, Y) -> tuple[Tensor, Tensor, Callable[[slice | Tensor], Tensor]]:
    x, y = _clouds(X, Y)
    centre = y.mean(dim=0)
    xc, yc = x - centre, y - centre
    norm_x, norm_y = xc.square().sum(dim=1), yc.square().sum(dim=1)  # (n,), (m,)
    if not torch.isfinite(2 * (norm_x.max() + norm_y.max())):
        raise ValueError(f"squared distances overflow {x.dtype}; give X in larger units")
    near = torch.finfo(x.dtype).eps ** 0.25  # below this share of the norms, digits cancel

    def evaluate(rows: slice | Tensor) -> Tensor:
        norms = norm_x[rows][:, None] + norm_y  # (b, m)
        tile = torch.addmm(norms, xc[rows], yc.T, alpha=-2)  # (b, m)
        close = (tile <= norms.mul_(near)).nonzero(as_tuple=True)
        if close[0].numel() > tile.numel() // 16:
            direct = "donot_use_mm_for_euclid_dist"
            return torch.cdist(x[rows], y, compute_mode=direct).square_()
        tile[close] = (x[rows][close[0]] - y[close[1]]).square_().sum(dim=1)
        return tile

    return x, y, evaluate


def nearest(cost, k: int) -> Pairwise:
    r"""Keep the k cheapest entries of each row; the others become infinitely costly.

    An infinite cost forbids the pair, so a plan for this cost lives on the k-nearest-neighbour
    graph. Which of several entries tied at the k-th place are kept is not specified.

    Source: book ``sec-neighbours``; the usual shortcut of t-SNE software.

    Parameters
    ----------
    cost : Pairwise or array_like, shape (n, m)
    k : int
        Entries kept per row, the diagonal included, 2 <= k <= m.

    Returns
    -------
    Pairwise
        Holds n x k costs and columns; its tiles are dense rows with ``inf`` elsewhere.

    Examples
    --------
    >>> nearest([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]], 2).dense().tolist()
    [[0.0, 1.0, inf], [1.0, 0.0, inf], [inf, 2.0, 0.0]]
    """
    cost = as_pairwise(cost, square=False)
    m = cost.shape[1]
    k = check_count("k", k, 2, m)
    found = [tile.topk(k, largest=False) for _, tile in cost.tiles(tile_rows(cost))]
    values = torch.cat([part.values for part in found])  # (n, k)
    columns = torch.cat([part.indices for part in found])  # (n, k)
    return Nearest(values, columns, m, cost.block)


def restore(parts: dict[str, Tensor], block: int | None) -> Pairwise:
    """Build a cost again from the arrays that a saved result holds."""
    if "without_diagonal" in parts:
        rest = {key: part for key, part in parts.items() if key != "without_diagonal"}
        return WithoutDiagonal(restore(rest, block))
    match parts:
        case {"values": values, "columns": columns, "m": m}:
            return Nearest(values, columns, int(m), block)
        case {"sqeuclidean": x}:
            return sqeuclidean(x, parts.get("other"), block=block)
        case {"student": x}:
            return student_cost(x, parts.get("other"), block=block)
        case {"matrix": matrix}:
            return as_pairwise(matrix, square=False)
    raise ValueError(f"no cost is made of the arrays {', '.join(sorted(parts))}")
