"""scikit-learn's interface to ccPCA: NumPy in, NumPy out."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ..affinities.rows import entropic_affinity
from ..costs.distances import sqeuclidean
from ..graphs.priors import Prior
from ..spectral.connected import ConnectedPCA, ccpca
from .base import BaseEmbedding, _bar, _read


@dataclass(eq=False, repr=False)
class CCPCA(BaseEmbedding):
    r"""Principal components of the connected components of a neighbourhood graph.

    Entropic affinities between the rows of X are the probabilities of a random graph;
    :func:`drot.ccpca` replaces each point by the mean of its connected component, averages over
    graphs, and takes the principal components. ``start_`` is a start for t-SNE and its kin.

    Source: Algorithm 1 of Van Assel et al. (2022); book ``alg-ccpca``.

    Parameters
    ----------
    n_components : int
        :math:`q`, coordinates of the embedding.
    perplexity : float
        :math:`\xi`, of the affinity without self-loops; below n - 1.
    prior : {"row", "binary", "edges"}
        D, one edge out of each node; B, independent edges; E, n edges in all.
    n_samples : int
        :math:`N`, graphs.
    random_state : int, RandomState or None
        Seed of the graphs. The same seed on the same device gives the same bits.
    device : str or torch.device, optional
        Where to compute, for instance ``"cuda"``. Default: the CPU.
    dtype : {"float64", "float32"} or dtype, optional
        Of the computation. Default: the one of X; integers become float64.
    verbose : int
        1 shows a progress bar with the standard error.

    Attributes
    ----------
    embedding_ : ndarray, shape (n, q)
        In the unit of X.
    start_ : ndarray, shape (n, q)
        The same, its first column of variance 1.
    standard_error_ : float
        Monte Carlo error of the averaged means, as a share of their spread.
    result_ : ConnectedPCA
    n_features_in_ : int

    Notes
    -----
    There is no ``transform``: a new point would change the graphs of all.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4)) + 9 * np.repeat([0, 1], 15)[:, None]
    >>> Z = CCPCA(n_components=1, perplexity=5, random_state=0).fit_transform(X)
    >>> bool(abs(Z[:15].mean() - Z[15:].mean()) > 17)  # 9 in each of 4 coordinates
    True
    """

    _shared = "graphs"
    perplexity: float = 30.0
    _: KW_ONLY
    prior: Prior = "row"
    n_samples: int = 100

    def fit(self, X, y=None):
        """Draw the graphs of X (n, p) and embed their components; ``y`` is not used."""
        points, seed = _read(self, X)
        # with a block, tiles are computed when met: nothing of size n x n is kept
        cost = sqeuclidean(points, block=len(points))
        affinity = entropic_affinity(cost, self.perplexity, diagonal="drop")
        with _bar("ccpca", self.verbose, "standard_error", self.n_samples) as callback:
            found = ccpca(
                points,
                affinity,
                n_components=self.n_components,
                prior=self.prior,
                n_samples=self.n_samples,
                random_state=seed,
                callback=callback,
            )
        self.result_: ConnectedPCA = found
        self.embedding_ = found.Z.cpu().numpy()
        self.start_ = found.start.cpu().numpy()
        self.standard_error_ = found.standard_error
        return self
