"""Costs of pairs of points: squared Euclidean, Student's, any function, nearest neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from .._core.checks import as_count, as_points, check_finite, check_same_device, check_squares
from .._core.threads import by_size
from .array import Block, Nearest, Pairwise, as_pairwise, fill_diagonal, smallest

PairFunction = Callable[[Tensor, Tensor], Tensor]


def _clouds(X, Y) -> tuple[Tensor, Tensor]:
    x = as_points(X, "X").clone()  # tiles are met later; the caller may reuse X by then
    if Y is None or Y is X:
        return x, x
    y = as_points(Y, "Y").clone()
    check_same_device(x, "X", y, "Y")
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"X has {x.shape[1]} coordinates and Y has {y.shape[1]}")
    dtype = torch.promote_types(x.dtype, y.dtype)
    return x.to(dtype), y.to(dtype)


def pairwise(function: PairFunction, X, Y=None, *, block: Block = "auto") -> Pairwise:
    r"""Pairwise cost: any function of two points, evaluated for all pairs, in row tiles.

    Source: section 2 of the SNEkhorn paper asks of a cost only that it be a matrix
    :math:`C_{ij} = c(x_i, y_j)`; book ``sec-costs``.

    Parameters
    ----------
    function : callable
        Takes rows ``x`` (b, p) and all of ``y`` (m, p), returns the tile (b, m).
    X, Y : array_like, shapes (n, p) and (m, p)
        Points; ``Y`` is ``X`` when left out.
    block
        As in :func:`sqeuclidean`.

    Returns
    -------
    Pairwise

    Raises
    ------
    TypeError
        If ``function`` cannot be called.
    ValueError
        If a cloud is not finite or the two do not match, or if ``function`` returns another
        shape, dtype or device than the tile's, or a number that is not finite.

    Examples
    --------
    >>> manhattan = pairwise(lambda x, y: torch.cdist(x, y, p=1), [[0.0, 0.0], [1.0, 2.0]])
    >>> manhattan.dense().tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    """
    if not callable(function):
        raise TypeError(f"function must be a function of two clouds of points; got {function!r}")
    x, y = _clouds(X, Y)
    return Pairwise(partial(_call, function, x, y), (len(x), len(y)), x, block=block)


def _call(function: PairFunction, x: Tensor, y: Tensor, rows: slice | Tensor) -> Tensor:
    """A tile of a callable, checked."""
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


def sqeuclidean(X, Y=None, *, block: Block = "auto") -> Pairwise:
    r"""Squared Euclidean distances, without a factor 1/2.

    .. math:: C_{ij} = \| x_i - y_j \|_2^2.

    One matrix product per tile; pairs that are close for their distance to the origin are
    computed again from their difference, so duplicates are at distance 0 exactly and
    relative accuracy does not depend on where the origin lies. Points with whole coordinates, or
    multiples of a power of 2, have exact distances, and ties, where all stay below
    :math:`2^{50}` (:math:`2^{21}` in float32) in squares of that unit.

    Source: :math:`C_X` of SNEkhorn (Van Assel et al., 2023), section 2; book ``sec-costs``.

    Parameters
    ----------
    X, Y : array_like, shapes (n, p) and (m, p)
        Points; ``Y`` is ``X`` when left out. Integers become float64.
    block : {"auto"}, int or None
        Rows per tile. A number computes tiles each time they are met and never holds more than
        one, b m entries for b rows; ``None`` computes the dense (n, m) array at its first use and
        keeps it. ``"auto"`` is ``None`` where seven such arrays fit into half of the memory, taken
        or not, and otherwise what makes a tile of 2^18 entries (2^26 on a GPU), 16 rows at least.

    Returns
    -------
    Pairwise
        In squared units of the coordinates; dtype and device of ``X``.

    Raises
    ------
    ValueError
        If a cloud is not an (n, p) array of finite numbers with n >= 2, or its squared distances
        leave the range of the dtype: its extent must exceed 1e-146 (3e-16 in float32).

    Notes
    -----
    :math:`O(nmp)` time per pass over the tiles. Not differentiable.

    Examples
    --------
    >>> sqeuclidean([[0.0, 0.0], [3.0, 4.0]]).dense().tolist()
    [[0.0, 25.0], [25.0, 0.0]]
    """
    return _of_distances("sqeuclidean", X, Y, block)


def student_cost(X, Y=None, *, block: Block = "auto") -> Pairwise:
    r"""Student cost: the logarithmic one whose Gibbs kernel is Student's.

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

    Raises
    ------
    ValueError
        If a cloud is not finite, the two do not match, or their squared distances overflow.

    Examples
    --------
    >>> student_cost([[0.0], [1.0]]).dense().exp().tolist()
    [[1.0, 2.0], [2.0, 1.0]]
    """
    return _of_distances("student", X, Y, block)


def _of_distances(kind: str, X, Y, block: Block) -> Pairwise:
    """The cost "sqeuclidean" or "student" between two clouds."""
    x, y = _clouds(X, Y)
    centre = _centre(x, y)
    yc = y - centre
    check_squares(torch.cat([x - centre, yc]), "X", small=kind == "student")
    evaluate = partial(_tile, kind, x, y, centre, yc, yc.square().sum(dim=1))
    stored = {kind: x} if y is x else {kind: x, "other": y}
    shape = len(x), len(y)
    cost = Pairwise(evaluate, shape, x, block=block, symmetric=y is x, stored=stored)
    cost.points, cost.of_distances = x if y is x else None, True
    return cost


def _centre(x: Tensor, y: Tensor) -> Tensor:
    """The mean of y, moved so that a lattice about it stays one.

    Squared distances of multiples of ``step`` are multiples of step^2, and so are all sums on the
    way, which are at most 2 (|x|^2 + |y|^2). Below 2 step^2 / eps floats hold them all. So the
    mean is rounded to a multiple of the least such step, a power of 2: data that are multiples of
    it stay so, and for others the mean moves by sqrt(eps) of their radius.
    """
    mean = y.mean(dim=0)
    most = sum(float((z - mean).square().sum(dim=1).max()) for z in (x, y))
    eps = torch.finfo(x.dtype).eps  # twice what is needed: the norms change with the centre
    step = 2.0 ** math.ceil(math.frexp(2 * most * eps)[1] / 2)
    return (mean / step).round_().mul_(step)


def _tile(
    kind: str, x: Tensor, y: Tensor, centre: Tensor, yc: Tensor, norm_y: Tensor, rows
) -> Tensor:
    """Rows of |x_i - y_j|^2, (b, m), or of the logarithm of 1 more.

    By products of the clouds about ``centre``, and where these cancel by the differences.
    """
    some = x[rows]  # (b, p)
    xc = some - centre
    norms = xc.square().sum(dim=1, keepdim=True) + norm_y
    tile = torch.addmm(norms, xc, yc.T, alpha=-2)
    near = torch.finfo(x.dtype).eps ** 0.25  # below this share of the norms, digits cancel
    close = tile <= norms.mul_(near)
    count = int(close.count_nonzero())
    if 16 * count > tile.numel():  # so too for fewer than 16 points: one coordinate after the other
        tile.zero_()
        for one, other in zip(some.T, y.T.contiguous(), strict=True):
            gap = torch.sub(one[:, None], other, out=norms)
            tile.addcmul_(gap, gap)
    elif y is x and count == len(tile):  # each point and itself
        fill_diagonal(tile, rows, 0.0)
    else:
        i, j = close.nonzero(as_tuple=True)
        tile[i, j] = (some[i] - y[j]).square_().sum(dim=1)
    return tile.log1p_() if kind == "student" else tile


@by_size
def nearest(cost, *, n_neighbors: int) -> Pairwise:
    r"""Nearest neighbours: keep the cheapest entries of each row, the others cost infinity.

    An infinite cost forbids the pair, so a plan for this cost lives on the k-nearest-neighbour
    graph. Which of several entries tied at the k-th place are kept is not specified.

    Source: book ``sec-neighbours``; the usual shortcut of t-SNE software.

    Parameters
    ----------
    cost : Pairwise or array_like, shape (n, m)
    n_neighbors : int
        k, entries kept per row, the diagonal included, from 2 to m.

    Returns
    -------
    Pairwise
        Holds n x k costs and columns; its tiles are dense rows with ``inf`` elsewhere.

    Raises
    ------
    ValueError
        If the cost is no matrix, or ``n_neighbors`` is out of range.

    Examples
    --------
    >>> nearest([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]], n_neighbors=2).dense().tolist()
    [[0.0, 1.0, inf], [1.0, 0.0, inf], [inf, 2.0, 0.0]]
    """
    cost = as_pairwise(cost, square=False)
    m = cost.shape[1]
    k = as_count("n_neighbors", n_neighbors, 2, m)
    values, columns = smallest(cost, k)  # (n, k) each
    return Nearest(values, columns, m, cost.block, ranks=cost.ranks)
