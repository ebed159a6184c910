"""Spectral methods, each with a kernel of its own (Chapter 10)."""

from __future__ import annotations

import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from .._core.checks import (
    as_count,
    as_flag,
    as_number,
    as_positive,
    as_symmetric,
    check_non_negative,
    check_same_transposed,
)
from .._core.threads import by_size
from ..costs.array import as_pairwise
from .kernel_pca import SpectralEmbedding, coordinates, kernel_pca

_RESOLVED = 2.0**-41  # an eigenvalue below this share of the largest has fewer than three digits


@by_size
def classical_mds(cost, n_components: int = 2) -> SpectralEmbedding:
    r"""Classical multidimensional scaling (MDS): kernel PCA of :math:`-\frac12 C`.

    For squared Euclidean distances :math:`-\frac12 J C J` is the centred Gram matrix, and the
    result is that of :func:`pca`.

    Source: section 2.5.1 of the thesis (Van Assel, 2024); book ``prp-kernel-pca``.

    Parameters
    ----------
    cost : Pairwise or array_like, shape (n, n), symmetric
        *Squared* distances.
    n_components : int
        :math:`q`, from 1 to n.

    Returns
    -------
    SpectralEmbedding
        Each point has the mass 1. Negative eigenvalues among the largest show that the costs are
        not Euclidean.

    Raises
    ------
    ValueError
        If the cost is not square and symmetric.

    Examples
    --------
    >>> classical_mds([[0.0, 1, 25], [1, 0, 16], [25, 16, 0]], 1).Z.round(decimals=9).tolist()
    [[-2.0], [-1.0], [3.0]]
    """
    C = as_pairwise(cost).dense()
    check_same_transposed(C, "cost")
    return kernel_pca(-C / 2, n_components)


@by_size
def laplacian_eigenmaps(
    graph, n_components: int = 2, *, normalized: bool = True
) -> SpectralEmbedding:
    r"""Laplacian eigenmaps: kernel PCA of the pseudo-inverse of the graph Laplacian.

    With symmetric weights W, degrees :math:`d = W \mathbf 1` and :math:`L = \mathrm{diag}(d) - W`,
    the coordinates solve :math:`L u = \mu \, \mathrm{diag}(m) \, u` with the smallest
    :math:`\mu > 0`, and are divided by :math:`\sqrt\mu`. ``normalized=True`` takes the masses
    :math:`m = d`, ``False`` takes ones; then K is the pseudo-inverse of L. Squared distances
    between embedded points, all coordinates kept, are the mean times of a walk from one point to
    the other and back, divided by :math:`\sum_i d_i`.

    Source: Belkin and Niyogi (2003), as in section 2.5.1 of the thesis (Van Assel, 2024); book
    ``prp-kernel-pca``.

    Parameters
    ----------
    graph : Graph, Affinity or array_like, shape (n, n), symmetric, non-negative
        :math:`W`, of any scale: twice the weights halve :math:`Z Z^\top`. The diagonal does not
        count.
    n_components : int
        :math:`q`, from 1 to n - 1.
    normalized : bool
        Whether masses are degrees.

    Returns
    -------
    SpectralEmbedding
        ``eigenvalues`` are :math:`1 / \mu`; ``weights`` are the masses m, in which column k of Z
        has the squared length :math:`1 / \mu_k`.

    Raises
    ------
    ValueError
        If the weights are not symmetric and non-negative, or the graph is not connected to working
        precision: if the smallest :math:`\mu` is below 5e-13 of the largest
        :math:`d_i / m_i`, where rounding takes its digits.

    Examples
    --------
    >>> chain = torch.diag(torch.ones(4), 1) + torch.diag(torch.ones(4), -1)
    >>> Z = laplacian_eigenmaps(chain, 1).Z[:, 0]
    >>> bool((Z.diff() > 0).all() or (Z.diff() < 0).all())
    True
    """
    normalized = as_flag("normalized", normalized)
    W = _connected_weights(graph)
    n_components = as_count("n_components", n_components, 1, W.shape[0] - 1)
    dtype, W = W.dtype, W.double().fill_diagonal_(0)
    degrees = W.sum(dim=1)
    masses = degrees if normalized else torch.ones_like(degrees)
    values, vectors = _without_constants(W - torch.diag(degrees), masses)  # of -L
    times = -1 / values.clamp_max(torch.finfo(values.dtype).eps * values[0])  # 1 / mu, increasing
    found = coordinates(times.to(dtype), vectors.to(dtype), masses.to(dtype), n_components)
    slow, least = 1 / float(found.eigenvalues[0]), _RESOLVED * float((degrees / masses).max())
    if not slow > least:
        raise ValueError(
            f"the graph is not connected to working precision: its smallest eigenvalue, {slow:.0e},"
            f" is not above {least:.0e}; embed its parts one by one, or raise the perplexity"
        )
    return found


def _connected_weights(graph) -> Tensor:
    """Symmetric weights of a connected graph, with their diagonal: a new array, (n, n)."""
    W = as_symmetric(graph, "graph")
    check_non_negative(W, "graph", "weight")
    number, labels = connected_components(csr_array(W.cpu().numpy()), directed=False)
    if number > 1:
        raise ValueError(
            f"the graph falls into {number} connected components, which nothing places relative "
            f"to each other (no path joins the points 0 and {int((labels != labels[0]).argmax())})"
            f"; embed them one by one, or raise the perplexity"
        )
    return W / 2 + W.T / 2


@by_size
def diffusion_map(
    graph, n_components: int = 2, *, time: float = 1.0, alpha: float = 1.0
) -> SpectralEmbedding:
    r"""Diffusion map: kernel PCA of the transition densities of a random walk.

    The weights are divided by :math:`(d_i d_j)^\alpha`; the walk on the new weights, of degrees
    m, has transition matrix :math:`T = \mathrm{diag}(m)^{-1} W`, and
    :math:`K_{ij} = (T^{2t})_{ij} / m_j`. Distances between embedded points, all coordinates kept,
    are those between the distributions of two walks after t steps.

    Source: Coifman and Lafon (2006), as in section 2.5.1 of the thesis (Van Assel, 2024); book
    ``prp-kernel-pca``.

    Parameters
    ----------
    graph : Graph, Affinity or array_like, shape (n, n), symmetric, non-negative
        :math:`W`; here the diagonal counts, since a walk may stay.
    n_components : int
        :math:`q`, from 1 to n - 1.
    time : float
        :math:`t > 0`, in steps.
    alpha : float
        From 0, a plain walk, to 1, which removes the density of the points.

    Returns
    -------
    SpectralEmbedding
        ``eigenvalues`` are those of T but for the 1 of the constants, to the power 2t; ``weights``
        are the masses m.

    Raises
    ------
    ValueError
        If the weights are not symmetric and non-negative, or the graph is not connected.

    Examples
    --------
    >>> pairs = torch.tensor([[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]])
    >>> Z = diffusion_map(pairs, 1).Z[:, 0]
    >>> bool((Z[0] - Z[1]).abs() < (Z[0] - Z[2]).abs())
    True
    """
    W = _connected_weights(graph)
    time = as_positive("time", time)
    alpha = as_number("alpha", alpha, 0, 1)
    n_components = as_count("n_components", n_components, 1, W.shape[0] - 1)
    unit = W.max()
    W = W / unit
    density = W.sum(dim=1).pow(alpha)
    W = W / (density[:, None] * density)
    masses = W.sum(dim=1)
    values, vectors = _without_constants(W, masses)
    powers, order = values.abs().pow(2 * time).sort()
    masses = masses * unit ** (1 - 2 * alpha)
    if not ((masses > 0) & (masses < torch.inf)).all():
        raise ValueError(f"the masses of these weights leave the range of {W.dtype}; rescale them")
    return coordinates(powers, vectors[:, order], masses, n_components)


def _without_constants(matrix: Tensor, masses: Tensor) -> tuple[Tensor, Tensor]:
    r"""Eigenvalues (n - 1,), increasing, and eigenvectors (n, n - 1), orthonormal, of a matrix A.

    A (n, n) is symmetric and, with the masses m (n,), has the constants for an eigenvector: those
    of :math:`\mathrm{diag}(m)^{-1/2} A \, \mathrm{diag}(m)^{-1/2}`, but for the eigenvector of the
    constants, which centring removes: it is moved below all others and left out.
    """
    root = masses.sqrt()
    scaled = matrix / root[:, None] / root
    constant = root / root.norm()
    far = 3 * scaled.abs().sum(dim=1).max()
    values, vectors = torch.linalg.eigh(scaled - far * constant[:, None] * constant)
    return values[1:], vectors[:, 1:]
