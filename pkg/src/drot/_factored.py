"""Similarities that are products of two thin matrices: products with a plan in linear time."""

from __future__ import annotations

import torch
from torch import Tensor

from ._checks import as_points, as_real, check_count, check_finite
from .pairwise import Pairwise, tile_rows

__all__ = ["Factored", "factored_sqeuclidean", "gaussian_kernel", "gram"]


class Factored(Pairwise):
    r"""A similarity :math:`C = A_1 A_2^\top` that is never formed: its tiles are, on demand.

    Any function of the package that takes a cost takes it. Those that need only products
    :math:`C T`, as :func:`drot.semi_relaxed_gw` does, make them from the factors: with r columns
    in each factor and k in T that is :math:`2 n r k` multiplications in place of :math:`n^2 k`.

    Parameters
    ----------
    left, right : array_like, shapes (n, r) and (m, r)
        :math:`A_1` and :math:`A_2`, kept as they are given; ``right`` is ``left`` when left out.
    block : int, optional
        Rows per tile. Default: as many as make a tile of a few MB.
    points : Tensor, optional
        The cloud that the similarity compares, for those who look for clusters in it.

    Examples
    --------
    >>> C = Factored([[1.0, 0.0], [1.0, 2.0]])
    >>> C.dense().tolist(), C.product(torch.tensor([[1.0], [1.0]]).double()).tolist()
    ([[1.0, 1.0], [1.0, 5.0]], [[2.0], [6.0]])
    """

    def __init__(
        self,
        left,
        right=None,
        *,
        block: int | None = None,
        points: Tensor | None = None,
        parts: dict[str, Tensor] | None = None,
    ):
        self.left = as_real(left, "left")
        self.right = self.left if right is None else as_real(right, "right")
        for name, factor in (("left", self.left), ("right", self.right)):
            if factor.ndim != 2 or factor.shape[1] < 1:
                raise ValueError(f"{name} must be an (n, r) factor; got {tuple(factor.shape)}")
            check_finite(factor, name)
        a, b = self.left, self.right
        if a.shape[1] != b.shape[1] or a.dtype != b.dtype or a.device != b.device:
            raise ValueError(
                "the factors must have as many columns, one dtype and one device; got "
                f"{tuple(a.shape)} {a.dtype} on {a.device} and "
                f"{tuple(b.shape)} {b.dtype} on {b.device}"
            )
        super().__init__(
            lambda rows: self.left[rows] @ self.right.T,
            (a.shape[0], b.shape[0]),
            a,
            symmetric=b is a,
            parts=parts,
        )
        if block is not None:
            block = check_count("block (rows per tile)", block, 1)
        self.block = block or tile_rows(self)  # with a block, nothing of size n x m is kept
        self.points = a if points is None else points

    def product(self, T: Tensor) -> Tensor:
        """C T, (n, k), for T (m, k)."""
        return self.left @ (self.right.T @ T)

    @property
    def diagonal(self) -> Tensor:
        """The entries (i, i), (n,)."""
        return (self.left * self.right).sum(dim=1)


class GaussianKernel(Pairwise):
    """exp(-|z_i - z_j|^2), whose logarithm is held in factors as ``log``."""

    def __init__(self, log: Factored):
        super().__init__(
            lambda rows: log.rows(rows).clamp_max(0).exp(), log.shape, log, symmetric=log.symmetric
        )
        self.block, self.log, self.points = log.block, log, log.points


def gram(X, *, block: int | None = None) -> Factored:
    r"""Inner products of points, held as the points themselves.

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
        If X is not an (n, p) array of finite numbers with n >= 2.

    Examples
    --------
    >>> gram([[3.0, 4.0], [0.0, 1.0]]).dense().tolist()
    [[25.0, 4.0], [4.0, 1.0]]
    """
    return Factored(as_points(X, "X").clone(), block=block)


def factored_sqeuclidean(X, *, block: int | None = None) -> Factored:
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
        If X is not an (n, p) array of finite numbers with n >= 2.

    Examples
    --------
    >>> factored_sqeuclidean([[0.0, 0.0], [3.0, 4.0]]).dense().tolist()
    [[0.0, 25.0], [25.0, 0.0]]
    """
    X = as_points(X, "X").clone()
    x = X - X.mean(dim=0)
    norms, one = x.square().sum(dim=1, keepdim=True), torch.ones_like(x[:, :1])
    left, right = torch.cat([norms, one, -2 * x], dim=1), torch.cat([one, norms, x], dim=1)
    return _symmetric(Factored(left, right, block=block, points=x, parts={"sqeuclidean": X}))


def gaussian_kernel(Z, *, block: int | None = None) -> GaussianKernel:
    r"""A Gaussian kernel of points whose logarithm is known in factors.

    .. math:: K_{ij} = e^{-\| z_i - z_j \|^2}.

    The loss ``"kl"`` of Gromov-Wasserstein meets :math:`\log K` in its product with the plan, and
    that has rank d + 2.

    Source: appendix E.1 of Van Assel et al. (2024); book ``prp-low-rank``.

    Parameters
    ----------
    Z : array_like, shape (k, d)
        Points.
    block : int, optional
        Rows per tile. Default: as many as make a tile of a few MB.

    Returns
    -------
    GaussianKernel
        A pairwise object of shape (k, k) with the factored logarithm as ``log``.

    Raises
    ------
    ValueError
        If Z is not a (k, d) array of finite numbers with k >= 2.

    Examples
    --------
    >>> K = gaussian_kernel([[0.0], [1.0]])
    >>> [round(x, 4) for x in K.dense()[0].tolist()], K.log.left.shape[1]
    ([1.0, 0.3679], 3)
    """
    D = factored_sqeuclidean(as_points(Z, "Z"), block=block)
    return GaussianKernel(_symmetric(Factored(-D.left, D.right, block=block, points=D.points)))


def _symmetric(factored: Factored) -> Factored:
    """Mark as symmetric what is so by construction, though its factors differ."""
    factored.symmetric = True
    return factored
