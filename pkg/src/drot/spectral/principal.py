"""Principal component analysis (PCA), and the coupling of two precisions that it minimises."""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import eigh
from torch import Tensor

from .._core.algebra import signs
from .._core.checks import as_count, as_points, as_positive
from .._core.threads import by_size
from .kernel_pca import SpectralEmbedding, at_unit_variance


@by_size
def pca(X, n_components: int = 2) -> SpectralEmbedding:
    r"""Principal component analysis (PCA): kernel PCA of the Gram matrix :math:`X X^\top`.

    Computed from the leading eigenvectors of the smaller of the two products
    :math:`X_c X_c^\top` and :math:`X_c^\top X_c` of the centred cloud.

    Source: section 2.5.1 of the thesis (Van Assel, 2024); book ``prp-kernel-pca``.

    Parameters
    ----------
    X : array_like, shape (n, p)
    n_components : int
        From 1 to min(n, p).

    Returns
    -------
    SpectralEmbedding
        Each point has the mass 1. ``eigenvalues`` are n times the variances: 0 or infinite, unlike
        ``Z``, where their squares leave the range of the dtype.

    Raises
    ------
    ValueError
        If X is not a finite cloud, or has fewer than ``n_components`` coordinates or points.

    Examples
    --------
    >>> pca([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]], 1).Z[:, 0].abs().tolist()
    [2.0, 0.0, 2.0]
    """
    X = as_points(X, "X")
    n, p = X.shape
    n_components = as_count("n_components", n_components, 1, min(n, p))
    cloud = X.cpu().numpy()
    centred = cloud - cloud.mean(axis=0, dtype=np.float64)
    unit = float(max(centred.max(), -centred.min())) or 1.0
    centred /= unit  # whose squares are in range
    small = centred @ centred.T if n <= p else centred.T @ centred
    vectors = eigh(small, subset_by_index=(len(small) - n_components, len(small) - 1))[1]
    # eigenvalues are known to eps of the largest one, these lengths to eps of it: without variance
    # the length is 0 to rounding, and not to its square root
    scores = vectors * np.linalg.norm(centred.T @ vectors, axis=0) if n <= p else centred @ vectors
    values = np.square(scores).sum(axis=0)  # (q,)
    order = values.argsort()[::-1]
    scores, values = scores[:, order], values[order]
    Z, eigenvalues = torch.from_numpy(scores) * unit, torch.from_numpy(values) * unit * unit
    return SpectralEmbedding(
        Z=(Z * signs(Z)).to(X).contiguous(), eigenvalues=eigenvalues.to(X), weights=X.new_ones(n)
    )


def pca_start(X, *, n_components: int = 2) -> Tensor:
    """PCA initialisation: principal components, scaled so that the first has variance 1.

    A start is a matter of shape: objectives set the scale. Signs are fixed by scikit-learn's
    rule, so no seed is needed: the largest coordinate of each axis is positive.

    Source: book ``sec-starts``; the habit of t-SNE software since Kobak and Berens (2019).

    Parameters
    ----------
    X : array_like, shape (n, p)
    n_components : int
        At most min(n, p).

    Returns
    -------
    Tensor, shape (n, n_components)
        Centred, on the device and in the dtype of ``X``; 0, but for rounding, where the cloud
        extends in fewer directions.

    Raises
    ------
    ValueError
        If X is not a finite cloud, or has fewer than ``n_components`` coordinates or points.

    Examples
    --------
    >>> Z = pca_start([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]], n_components=1)
    >>> round(Z.square().mean().item(), 9)
    1.0
    """
    X = as_points(X, "X")
    Z = pca(X, n_components).Z
    Z = Z / Z.abs().max().clamp_min(torch.finfo(Z.dtype).tiny)  # squares are in range
    axes = (X - X.mean(dim=0)).T @ Z  # (p, q)
    return at_unit_variance(Z * signs(axes))


@by_size
def precision_coupling_loss(X, Z, *, gamma: float = 1.0) -> Tensor:
    r"""The precision-coupling objective: cross-entropy of two Wishart posteriors.

    .. math::

        F_\gamma(Z) = \mathrm{tr} \bigl( Z^\top (I + X X^\top)^{-1} Z \bigr)
                      - \gamma \log \det (I + Z^\top Z),
        \qquad \gamma = \frac{\nu_Z + q}{\nu_X + p}.

    It is the cross-entropy between the two posteriors of a precision matrix with Wishart priors
    of :math:`\nu_X` and :math:`\nu_Z` degrees of freedom, up to the factor
    :math:`(\nu_X + p) / 2` and a constant. X is taken as it is: centre it first.

    Source: Theorem 2 of Van Assel et al. (2022), with :math:`\gamma` corrected; book
    ``thm-pca-coupling``.

    Parameters
    ----------
    X, Z : array_like or Tensor, shapes (n, p) and (n, q)
    gamma : float
        :math:`\gamma > 0`.

    Returns
    -------
    Tensor, scalar
        In nats, in the dtype of Z. Differentiable in Z.

    Raises
    ------
    ValueError
        If the two clouds do not match.

    Notes
    -----
    Computed in float64; :math:`O(n p \min(n, p) + n q^2)`.

    Examples
    --------
    >>> X = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    >>> losses = [precision_coupling_loss(X, t * X).item() for t in (0.9, 1.0, 1.1)]
    >>> losses[1] < losses[0] and losses[1] < losses[2]  # X itself is optimal
    True
    """
    X, gamma = as_points(X, "X"), as_positive("gamma", gamma)
    held = as_points(Z, "Z")
    if held.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} points and Z has shape {tuple(held.shape)}")
    inner = (Z if isinstance(Z, Tensor) and Z.requires_grad else held).double()
    U, s, _ = torch.linalg.svd(X.to(inner), full_matrices=False)  # (n, r), (r,), r = min(n, p)
    along = U.T @ inner  # (r, q)
    # (I + X X^T)^-1 is 1 across the directions of X, and 1 / (1 + s^2) along them
    shrunk = torch.cat([inner - U @ along, along / s.square().add(1).sqrt()[:, None]])
    volume = torch.eye(inner.shape[1]).to(inner) + inner.T @ inner
    return (shrunk.square().sum() - gamma * torch.logdet(volume)).to(held.dtype)


@by_size
def precision_coupling_optimum(X, n_components: int = 2, *, gamma: float = 1.0) -> Tensor:
    r"""The minimiser of :func:`drot.spectral.precision_coupling_loss`.

    .. math:: Z = V_q \, \mathrm{diag}(\lambda)^{1/2}, \qquad
              \lambda_k = \max \bigl( 0, \gamma (1 + d_k) - 1 \bigr),

    with :math:`d_1 \ge \dots \ge d_q` the largest eigenvalues of :math:`X_c X_c^\top`, for the
    centred cloud :math:`X_c`, and :math:`V_q` their eigenvectors. For :math:`\gamma = 1` these
    are the principal components.

    Source: Theorem 2 of Van Assel et al. (2022), appendix A.3; book ``thm-pca-coupling``.

    Parameters
    ----------
    X : array_like, shape (n, p)
        Centred here.
    n_components : int
        :math:`q`, at most min(n, p).
    gamma : float
        :math:`\gamma > 0`.

    Returns
    -------
    Tensor, shape (n, q)
        Determined up to a rotation of its columns.

    Raises
    ------
    ValueError
        If X is not a finite cloud, or has fewer than ``n_components`` coordinates, or, with
        :math:`\gamma > 1`, fewer directions.

    Examples
    --------
    >>> X = [[0.0], [2.0], [4.0]]  # d = 8
    >>> precision_coupling_optimum(X, 1).square().sum().item()
    8.0
    >>> precision_coupling_optimum(X, 1, gamma=0.1).abs().max().item()  # below 1 / (1 + d)
    0.0
    """
    X, gamma = as_points(X, "X"), as_positive("gamma", gamma)
    found = pca(X.double(), n_components)
    info = torch.finfo(torch.float64)
    d = found.eigenvalues.clamp(info.tiny, info.max)  # (q,)
    flat = d <= (1e-10 * d[0]).clamp_min(info.tiny)
    if gamma > 1 and flat.any():
        raise ValueError(
            f"X has {int((~flat).sum())} directions; with gamma={gamma:g} above 1 the other "
            f"columns of the {n_components} have a length but no direction; lower n_components"
        )
    return (found.Z * (gamma + (gamma - 1) / d).clamp_min(0).sqrt()).to(X.dtype)
