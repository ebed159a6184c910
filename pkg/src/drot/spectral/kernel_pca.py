"""Kernel PCA with point masses: what all spectral methods have in common (Chapter 8)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .._core.checks import as_real, as_square, check_count, check_same_transposed


@dataclass(frozen=True, kw_only=True, repr=False)
class SpectralEmbedding:
    """Coordinates from the leading eigenvectors of a kernel."""

    Z: Tensor  # (n, q), centred; column k has the k-th largest eigenvalue as squared length
    eigenvalues: Tensor  # (q,) of the centred kernel, decreasing; negative ones count as 0 in Z
    weights: Tensor  # (n,) the point masses in which lengths and means are taken

    def __repr__(self) -> str:
        values = ", ".join(f"{value:.3g}" for value in self.eigenvalues)
        return f"SpectralEmbedding({self.Z.shape[0]} points, eigenvalues {values})"

    @property
    def vectors(self) -> Tensor:
        """Columns of Z at unit length, (n, q); 0 where the eigenvalue is not positive."""
        tiny = torch.finfo(self.Z.dtype).tiny
        shape = self.Z / self.Z.abs().amax(dim=0).clamp_min(tiny)  # whose squares are in range
        return shape / (self.weights @ shape.square()).clamp_min(tiny).sqrt()


def kernel_pca(kernel, n_components: int = 2, *, weights=None) -> SpectralEmbedding:
    r"""The points whose inner products are closest to a centred kernel.

    .. math::

        \min_{Z \in \mathbb R^{n \times q}} \; \sum_{ij} m_i m_j
        \bigl( \bar K_{ij} - \langle z_i, z_j \rangle \bigr)^2, \qquad
        \bar K = J K J^\top, \quad J = I - \tfrac{1}{\sum_i m_i} \mathbf 1 m^\top .

    With :math:`\mu_k` and :math:`u_k` the largest eigenvalues and their eigenvectors of
    :math:`\mathrm{diag}(m)^{1/2} \bar K \, \mathrm{diag}(m)^{1/2}`, column k of Z is
    :math:`\sqrt{\mu_k} \, \mathrm{diag}(m)^{-1/2} u_k`.

    Source: kernel PCA as in section 2.5.1 of the thesis (Van Assel, 2024); book
    ``prp-kernel-pca``.

    Parameters
    ----------
    kernel : array_like, shape (n, n), symmetric
        :math:`K`. Need not be positive: directions of negative eigenvalue get coordinate 0.
    n_components : int
        :math:`q`, from 1 to n.
    weights : array_like, shape (n,), positive, optional
        :math:`m`. Ones when left out.

    Returns
    -------
    SpectralEmbedding
        Determined up to the sign of each column and, where eigenvalues tie, a rotation. Signs are
        fixed so that the entry of largest magnitude of a column is positive.

    Raises
    ------
    ValueError
        If the kernel is not symmetric and finite, or a weight is not positive.

    Notes
    -----
    One dense eigendecomposition, :math:`O(n^3)`.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [5.0]], dtype=torch.float64)
    >>> found = kernel_pca(X @ X.T, 1)
    >>> torch.allclose(found.Z, X - 2)  # the mean is 2
    True
    """
    kernel = as_square(kernel, "kernel", 2)
    check_same_transposed(kernel, "kernel")
    n = kernel.shape[0]
    n_components = check_count("n_components", n_components, 1, n)
    weights = torch.ones_like(kernel[0]) if weights is None else as_real(weights, "weights")
    weights = weights.to(kernel)
    if weights.shape != (n,):
        raise ValueError(
            f"weights must be {n} positive numbers, one per point; got shape {tuple(weights.shape)}"
        )
    bad = ~((weights > 0) & torch.isfinite(weights))
    if bad.any():
        i = int(bad.nonzero()[0])
        raise ValueError(f"weights must be {n} positive numbers; row {i} has {float(weights[i]):g}")
    share = weights / weights.sum()
    means = kernel @ share  # (n,)
    centred = kernel - means[:, None] - means + share @ means
    root = weights.sqrt()
    matrix = root[:, None] * centred * root
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    return coordinates(values, vectors, weights, n_components)


def coordinates(
    values: Tensor, vectors: Tensor, weights: Tensor, n_components: int, unit: float = 1.0
) -> SpectralEmbedding:
    """From eigenvalues in increasing order and eigenvectors of the weighted, centred kernel.

    The kernel is in units of ``unit`` squared.
    """
    values = values.flip(0)[:n_components]
    vectors = vectors.flip(1)[:, :n_components] / weights.sqrt()[:, None]
    largest = vectors.abs().argmax(dim=0, keepdim=True)
    vectors = vectors * vectors.gather(0, largest).sign()
    return SpectralEmbedding(
        Z=vectors * values.clamp_min(0).sqrt() * unit,
        eigenvalues=values * unit * unit,
        weights=weights,
    )


def power_of_2(tensor: Tensor) -> float:
    """The largest power of 2 that no entry exceeds in size, a unit that costs no digit; 1 for 0."""
    largest = float(tensor.abs().max())
    return math.ldexp(0.5, math.frexp(largest)[1]) if largest else 1.0


def slowest(
    matrix: Tensor, weights: Tensor, n_components: int, dtype: torch.dtype
) -> SpectralEmbedding:
    r"""Kernel PCA of the inverse of a matrix on all but the constants, which are its null space.

    ``matrix`` is positive semidefinite and ``weights`` are the masses m, both float64: columns of
    Z solve :math:`A u = \mu \, \mathrm{diag}(m) \, u` with the smallest :math:`\mu > 0`, and
    come in ``dtype``.
    """
    root = weights.sqrt()
    scaled = matrix / (root[:, None] * root)
    constant = root / root.norm()
    top = 2 * scaled.abs().sum(dim=1).max()  # above all eigenvalues: there the constants go
    values, vectors = torch.linalg.eigh(scaled + top * constant[:, None] * constant)
    values = values.clamp_min(torch.finfo(values.dtype).eps * top)
    found = coordinates((1 / values).flip(0), vectors.flip(1), weights, n_components)
    return SpectralEmbedding(
        Z=found.Z.to(dtype),
        eigenvalues=found.eigenvalues.to(dtype),
        weights=found.weights.to(dtype),
    )


def at_unit_variance(Z: Tensor) -> Tensor:
    """Centred, and divided by the standard deviation of the first column."""
    Z = Z - Z.mean(dim=0)
    spread = Z[:, 0].square().mean().sqrt()
    return Z / spread if spread > 0 else Z
