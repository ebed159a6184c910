"""Kernel PCA with point masses: what all spectral methods have in common (Chapter 10)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.algebra import signs
from .._core.checks import as_count, as_real, as_symmetric, check_no_entry
from .._core.threads import by_size


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SpectralEmbedding:
    r"""Coordinates from the leading eigenvectors of a kernel of points with masses m.

    In these masses columns of Z have the mean 0, and are orthogonal:
    :math:`\sum_i m_i z_{ik} z_{il}` is :math:`\max(\mu_k, 0)` for k = l, and else 0.
    """

    Z: Tensor  #: (n, q) coordinates, in the square root of the kernel's unit
    eigenvalues: Tensor  #: (q,) mu, the largest of the centred kernel with its masses, decreasing
    weights: Tensor  #: (n,) m, the point masses

    def __repr__(self) -> str:
        values = ", ".join(f"{value:.3g}" for value in self.eigenvalues)
        return f"SpectralEmbedding({self.Z.shape[0]} points, eigenvalues {values})"

    @property
    def vectors(self) -> Tensor:
        """Columns of Z at unit length, (n, q); 0 where the eigenvalue is not positive."""
        tiny = torch.finfo(self.Z.dtype).tiny
        shape = self.Z / self.Z.abs().amax(dim=0).clamp_min(tiny)  # whose squares are in range
        return shape / (self.weights @ shape.square()).clamp_min(tiny).sqrt()


@by_size
def kernel_pca(
    similarity, n_components: int = 2, *, weights: ArrayLike | None = None
) -> SpectralEmbedding:
    r"""Kernel PCA: the points whose inner products are closest to a centred kernel.

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
    similarity : array_like, shape (n, n), symmetric
        :math:`K`. Need not be positive: directions of negative eigenvalue get coordinate 0.
    n_components : int
        :math:`q`, from 1 to n.
    weights : array_like, shape (n,), positive, optional
        :math:`m`, of any sum. Ones when left out.

    Returns
    -------
    SpectralEmbedding
        Of ``weights`` m. Determined up to the sign of each column and, where eigenvalues tie, a
        rotation. Signs are fixed so that the entry of largest magnitude of a column is positive.

    Raises
    ------
    ValueError
        If the similarity is not symmetric and finite, or a weight is not positive.

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
    kernel = as_symmetric(similarity, "similarity")
    n = kernel.shape[0]
    n_components = as_count("n_components", n_components, 1, n)
    weights = torch.ones_like(kernel[0]) if weights is None else as_real(weights, "weights")
    weights = weights.to(kernel)
    says = f"weights must be {n} positive numbers, one per point; got "
    if weights.shape != (n,):
        raise ValueError(f"{says}shape {tuple(weights.shape)}")
    check_no_entry(~((weights > 0) & weights.isfinite()), weights, says + "{entry} at {at}")
    share = weights / weights.sum()
    means = kernel @ share  # (n,)
    centred = kernel - means[:, None] - means + share @ means
    root = weights.sqrt()
    matrix = root[:, None] * centred * root
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    return coordinates(values, vectors, weights, n_components)


def coordinates(
    values: Tensor, vectors: Tensor, weights: Tensor, n_components: int
) -> SpectralEmbedding:
    """From eigenvalues (r,), increasing, and orthonormal eigenvectors (n, r) of the centred kernel
    with its masses (n,).
    """
    values = values.flip(0)[:n_components]
    vectors = vectors.flip(1)[:, :n_components] / weights.sqrt()[:, None]
    vectors = vectors * signs(vectors)
    return SpectralEmbedding(
        Z=(vectors * values.clamp_min(0).sqrt()).contiguous(), eigenvalues=values, weights=weights
    )


def at_unit_variance(Z: Tensor) -> Tensor:
    """Z (n, q) centred, and divided by the standard deviation of its first column."""
    Z = Z - Z.mean(dim=0)
    spread = Z[:, 0].square().mean().sqrt()
    return Z / spread if spread > 0 else Z
