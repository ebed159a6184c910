"""Connected-component PCA (ccPCA), of the components of random graphs (Chapter 10)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array, hstack
from torch import Tensor

from .._core.chance import Seed
from .._core.checks import as_count, as_points, check_callback, check_same_device
from .._core.saving import Saved
from .._core.threads import by_size
from ..graphs.graph import connected_components
from ..graphs.priors import Prior, sample_graphs
from .principal import pca, pca_start


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ConnectedPCA(Saved):
    """A PCA of component means, averaged over random graphs."""

    Z: Tensor  #: (n, q) principal components of the averaged means, in the unit of X
    means: Tensor  #: (n, p) average over the graphs of each point's component mean
    n_connected: Tensor  #: (N,) int64, components of each graph
    standard_error: float  #: of ``means``, the root mean square as a share of their spread

    def __repr__(self) -> str:
        n, q = self.Z.shape
        return (
            f"ConnectedPCA({n} points in dimension {q}, {len(self.n_connected)} graphs of "
            f"{self.n_connected.double().mean():.1f} components, "
            f"standard_error={self.standard_error:.1e})"
        )

    @property
    def start(self) -> Tensor:
        """Z scaled so that its first column has variance 1, a start for :func:`drot.embed`."""
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
