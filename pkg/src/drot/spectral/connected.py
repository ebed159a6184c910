r"""PCA as a coupling of two precisions, and of the components of a random graph (Chapter 10)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array, hstack
from torch import Tensor

from .._core.chance import Seed
from .._core.checks import as_count, as_points, as_positive, check_callback, check_same_device
from .._core.saving import Saved
from .._core.threads import by_size
from ..graphs.graph import connected_components
from ..graphs.priors import Prior, sample_graphs
from .methods import pca, pca_start


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


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ConnectedPCA(Saved):
    """A PCA of component means, averaged over random graphs."""

    Z: Tensor  # (n, q) principal components of the averaged means, in the unit of X
    means: Tensor  # (n, p) average over the graphs of each point's component mean
    n_connected: Tensor  # (N,) int64, components of each graph
    standard_error: float  # of `means`: root mean square, as a share of their spread

    def __repr__(self) -> str:
        n, q = self.Z.shape
        return (
            f"ConnectedPCA({n} points in dimension {q}, {len(self.n_connected)} graphs of "
            f"{self.n_connected.double().mean():.1f} components, "
            f"standard_error={self.standard_error:.1e})"
        )

    @property
    def start(self) -> Tensor:
        """Z scaled so that its first column has variance 1: a start for :func:`drot.embed`."""
        return pca_start(self.means, n_components=self.Z.shape[1])


@by_size
def ccpca(
    X,
    log_kernel,
    *,
    n_components: int = 2,
    prior: Prior = "row",
    n_samples: int = 100,
    random_state: Seed = 0,
    callback: Callable[[int, float], object] | None = None,
) -> ConnectedPCA:
    r"""Connected-component PCA (ccPCA): PCA of component means, averaged over random graphs.

    Draws graphs :math:`W^1, \dots, W^N`, replaces each point by the mean of its connected
    component, averages over the graphs, and takes the principal components of the result:

    .. math::

        Z = \mathrm{PCA}_q (\widehat M X), \qquad
        \widehat M = \frac1N \sum_{\ell=1}^N U^\ell {U^\ell}^\top,

    with :math:`U^\ell` an orthonormal basis of the null space of the Laplacian of
    :math:`W^\ell`. Neighbour embeddings place the points of a component relative to each other;
    this places the components.

    Source: Algorithm 1 and Corollary 1 of Van Assel et al. (2022); book ``alg-ccpca``.

    Parameters
    ----------
    X : array_like, shape (n, p)
    log_kernel : Affinity or array_like, shape (n, n)
        :math:`\log K_X`, whose graph posterior is drawn from; see :func:`drot.sample_graph`.
        t-SNE's is ``entropic_affinity(sqeuclidean(X), perplexity=..., diagonal="drop")``.
    n_components : int
        :math:`q`, at most min(n, p).
    prior : {"row", "binary", "edges"}
        D, one edge out of each node; B, independent edges; E, n edges in all.
    n_samples : int
        :math:`N`. The error falls as :math:`N^{-1/2}`, the time grows as N.
    random_state : int, numpy Generator or torch Generator
        Same seed, same graphs. The first graphs do not depend on ``n_samples``.
    callback : callable, optional
        Called as ``callback(done, standard_error)`` after each ten graphs and at the end.

    Returns
    -------
    ConnectedPCA
        On the device and in the dtype of X.

    Raises
    ------
    ValueError
        If X and the kernel do not match, if a name does not exist, or if every graph is
        connected: then all means coincide and there is nothing to place.
    TypeError
        If the seed is no seed.

    Notes
    -----
    One pass over the kernel, or two for ``"edges"``, in tiles; then
    :math:`O(N (np + m))` for graphs of m edges, on the CPU. Memory for the edges of all graphs
    and the means of ten.

    Examples
    --------
    >>> X = torch.tensor([[0.0, 0.0], [0.0, 1.0], [8.0, 0.0], [8.0, 1.0]])
    >>> pairs = torch.full((4, 4), -torch.inf)
    >>> pairs[0, 1] = pairs[1, 0] = pairs[2, 3] = pairs[3, 2] = 0.0
    >>> ccpca(X, pairs, n_components=1).Z[:, 0].abs().tolist()  # two components, at distance 8
    [4.0, 4.0, 4.0, 4.0]
    """
    X = as_points(X, "X")
    n, p = X.shape
    n_components = as_count("n_components", n_components, 1, min(n, p))
    check_callback(callback)
    graphs = sample_graphs(log_kernel, n_samples, prior=prior, random_state=random_state)
    if graphs[0].n != n:
        raise ValueError(f"X has {n} points and log_kernel {graphs[0].n} rows; one row for each")
    check_same_device(X, "X", graphs[0].edges, "log_kernel")
    centred = (X - X.mean(dim=0)).cpu().numpy()
    unit = float(np.abs(centred).max()) or 1.0
    centred /= unit  # whose squares are in range
    total, squares, counts = np.zeros_like(centred), 0.0, []
    for batch in (graphs[k : k + 10] for k in range(0, len(graphs), 10)):
        # one column for each component of ten graphs, so that each row of X is met once
        labels = [connected_components(graph).labels.cpu().numpy() for graph in batch]
        ones, ends = np.ones(n, centred.dtype), np.arange(n + 1)
        member = hstack([csr_array((ones, column, ends)) for column in labels], format="csr")
        sizes = member.sum(axis=0)  # (R,)
        means = (member.T @ centred) / sizes[:, None]  # (R, p)
        total += member @ means
        squares += float(sizes @ np.square(means, dtype=np.float64).sum(axis=1))
        counts += [1 + int(column.max()) for column in labels]
        if callback is not None:
            callback(len(counts), _standard_error(total, squares, len(counts)))
    if max(counts) == 1:
        raise ValueError(
            f"all {len(counts)} graphs are connected, so all means coincide; lower the perplexity "
            "or the weights of the kernel, or use drot.spectral.pca"
        )
    average = torch.from_numpy(total / len(graphs) * unit).to(X)
    return ConnectedPCA(
        Z=pca(average, n_components).Z,
        means=average + X.mean(dim=0),
        n_connected=torch.tensor(counts, device=X.device),
        standard_error=_standard_error(total, squares, len(graphs)),
    )


def _standard_error(total: np.ndarray, squares: float, n_samples: int) -> float:
    """Root mean square error of the average of N arrays, relative to its own size.

    ``squares`` is the sum of their squared norms. One array says nothing of its error: infinite.
    """
    size = float(np.square(total / n_samples, dtype=np.float64).sum())
    if n_samples == 1 or not 0 < size < math.inf:
        return math.inf
    return math.sqrt(max(0.0, squares / n_samples - size) / (n_samples - 1) / size)
