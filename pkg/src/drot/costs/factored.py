"""Similarities that are products of two thin matrices: products with a plan in linear time."""

from __future__ import annotations

from functools import cached_property, partial

import torch
from torch import Tensor

from .._core.checks import as_flag, as_points, check_squares
from .array import Block, Pairwise, tile_rows


class Factored(Pairwise):
    r"""A similarity :math:`C = A_1 A_2^\top` that is never formed: its tiles are, on demand.

    Any function of the package that takes a cost takes it. Those that need only products
    :math:`C T`, as :func:`drot.semi_relaxed_gw` does, make them from the factors: with r columns
    in each factor and k in T that is :math:`2 n r k` multiplications in place of :math:`n^2 k`.

    Parameters
    ----------
    left, right : array_like, shapes (n, r) and (m, r)
        :math:`A_1` and :math:`A_2`, kept as they are given, under these names; ``right`` is
        ``left`` when left out.
    block : int, optional
        Rows per tile. Default: as many as make a tile of a few MB.
    points : Tensor, optional
        The cloud that the similarity compares, for those who look for clusters in it.
    symmetric : bool
        Whether :math:`A_1 A_2^\top` is known to be symmetric, though the factors differ.

    Examples
    --------
    >>> C = Factored([[1.0, 0.0], [1.0, 2.0]])
    >>> C.dense().tolist(), (C @ torch.tensor([[1.0], [1.0]]).double()).tolist()
    ([[1.0, 1.0], [1.0, 5.0]], [[2.0], [6.0]])
    """

    def __init__(
        self, left, right=None, *, block: Block = None, points=None, symmetric: bool = False
    ):
        a = self.left = as_points(left, "left")
        b = self.right = a if right is None else as_points(right, "right")
        if (a.shape[1], a.dtype, a.device) != (b.shape[1], b.dtype, b.device):
            raise ValueError(
                "the factors must have as many columns, one dtype and one device; got "
                f"{tuple(a.shape)} {a.dtype} on {a.device} and "
                f"{tuple(b.shape)} {b.dtype} on {b.device}"
            )
        self.points = a if points is None else as_points(points, "points").to(a)
        if len(self.points) != len(a):
            raise ValueError(f"points has {len(self.points)} rows and left {len(a)}")
        stored = {"left": a}
        if b is not a:
            stored |= {"right": b} | ({"symmetric": torch.tensor(True)} if symmetric else {})
        if self.points is not a:
            stored["points"] = self.points
        evaluate, shape = partial(_product, a, b), (len(a), len(b))
        symmetric = as_flag("symmetric", symmetric) or b is a
        super().__init__(evaluate, shape, a, block=block, symmetric=symmetric, stored=stored)
        self.block = self.block or tile_rows(self)  # so nothing of size n x m is kept

    def __matmul__(self, V: Tensor) -> Tensor:
        return self.left @ (self.right.T @ V)

    def diagonal(self) -> Tensor:
        return (self.left * self.right).sum(dim=1)

    def entries(self, index: Tensor) -> Tensor:
        return self.left[index] @ self.right[index].T

    def with_factors(self, left: Tensor, right: Tensor | None = None) -> Factored:
        """Another similarity of the same points."""
        return Factored(left, right, block=self.block, points=self.points, symmetric=self.symmetric)

    def centred(self, w: Tensor) -> Factored:
        """J C J^T with J = I - 1 w^T: each factor less its mean."""
        same = self.right is self.left
        return self.with_factors(
            self.left - w @ self.left, None if same else self.right - w @ self.right
        )

    def columns_times(self, index: Tensor, Y: Tensor) -> Tensor:
        return self.left @ (self.right[index].T @ Y)

    def shifted(self, w: Tensor) -> tuple[Factored, float, float]:
        """As of any array, and by the factors.

        With a and b the means of the factors and A and B what they leave, C is
        A B^T + (A b) 1^T + 1 (B a)^T + a^T b, whose last term is m: it is left out, not cancelled.
        """
        a, b = w @ self.left, w @ self.right  # (r,)
        A, B, one = self.left - a, self.right - b, torch.ones_like(self.left[:, :1])
        left = torch.cat([A, (A @ b)[:, None], one], dim=1)
        right = torch.cat([B, one, (B @ a)[:, None]], dim=1)
        rest = self.with_factors(left, right)
        return rest, float(a.double() @ b.double()), rest.bound

    @property
    def bound(self) -> float:
        """No entry is larger."""
        left, right = (x.abs().amax(dim=0).double() for x in (self.left, self.right))
        return float(left @ right)

    @cached_property
    def rounding(self) -> float:
        return 8 * torch.finfo(self.dtype).eps * self.left.shape[1] ** 0.5 * self.bound

    def divided(self, size: float) -> Factored:
        return self.with_factors(self.left / size**0.5, self.right / size**0.5)

    def in_double(self, *, zeros: bool = False) -> Pairwise:
        if zeros:
            return super().in_double(zeros=True)
        return self.with_factors(self.left.double(), self.right.double())


def gram(X, *, block: Block = None) -> Factored:
    r"""Gram matrix: inner products of points, held as the points themselves.

    .. math:: C = X X^\top.

    Source: the similarity of PCA in Table 1 of Van Assel et al. (2024); book ``prp-low-rank``.

    Parameters
    ----------
    X : array_like, shape (n, p)
        Points. Centre the columns where the similarity should not depend on the origin.
    block : int, optional
        Rows per tile. Default: as many as make a tile of a few MB.

    Returns
    -------
    Factored
        Of shape (n, n) and r = p columns in each factor.

    Raises
    ------
    ValueError
        If X is not an (n, p) array of finite numbers with n >= 2, or squares of its entries leave
        the range of the dtype.

    Examples
    --------
    >>> gram([[3.0, 4.0], [0.0, 1.0]]).dense().tolist()
    [[25.0, 4.0], [4.0, 1.0]]
    """
    X = as_points(X, "X").clone()
    check_squares(X, "X")
    return Factored(X, block=block)


def factored_sqeuclidean(X, *, block: Block = None) -> Factored:
    r"""Squared Euclidean distances as a product of two factors with p + 2 columns.

    .. math::

        \| x_i - x_j \|^2 = (\| x_i \|^2, \, 1, \, -2 x_i^\top) \cdot (1, \, \| x_j \|^2, \, x_j).

    Rounding leaves about 1e-16 of the largest distance on the diagonal;
    :func:`drot.sqeuclidean` has exact zeros there, and takes n^2 operations a product.

    Source: Scetbon et al. (2022), section 3, and appendix E.1 of Van Assel et al. (2024); book
    ``prp-low-rank``.

    Parameters
    ----------
    X : array_like, shape (n, p)
        Points.
    block : int, optional
        Rows per tile. Default: as many as make a tile of a few MB.

    Returns
    -------
    Factored
        Of shape (n, n) and r = p + 2 columns in each factor.

    Raises
    ------
    ValueError
        If X is not an (n, p) array of finite numbers with n >= 2, or squares of its entries leave
        the range of the dtype.

    Examples
    --------
    >>> factored_sqeuclidean([[0.0, 0.0], [3.0, 4.0]]).dense().tolist()
    [[0.0, 25.0], [25.0, 0.0]]
    """
    X = as_points(X, "X")
    x = X - X.mean(dim=0)
    check_squares(x, "X")
    norms, one = x.square().sum(dim=1, keepdim=True), torch.ones_like(x[:, :1])
    left, right = torch.cat([norms, one, -2 * x], dim=1), torch.cat([one, norms, x], dim=1)
    return Factored(left, right, block=block, points=x, symmetric=True)


def _product(left: Tensor, right: Tensor, rows: slice | Tensor) -> Tensor:
    return left[rows] @ right.T
