"""scikit-learn's interface to SNEkhorn and t-SNEkhorn: NumPy in, NumPy out."""

from __future__ import annotations

from .._core.run import NotConverged
from ..affinities.symmetric import symmetric_entropic_affinity
from ..embeddings.losses import Kernel
from ..embeddings.methods import snekhorn
from .base import EmbeddingEstimator, warn_stopped


class SNEkhorn(EmbeddingEstimator):
    r"""Embed points so that two doubly stochastic plans agree, with a Gaussian kernel.

    Squared distances between the rows of X give the symmetric entropic affinity P, in which each
    point has the same perplexity; :func:`drot.snekhorn` then minimises :math:`\mathrm{KL}(P | Q_Z)`
    over the embedding Z.

    Source: (SNEkhorn) in section 4 of SNEkhorn (Van Assel et al., 2023); book ``eq-snekhorn``.

    Parameters
    ----------
    n_components : int
        :math:`q`, coordinates of the embedding.
    perplexity : float
        :math:`\xi`, neighbours per point, itself among them; below the number of points.
    init : {"spectral", "pca", "random", "ccpca"}, array_like of shape (n, q), or Embedding
        Where the embedding starts. ``result_`` of an earlier fit continues that run.
    random_state : int, RandomState or None
        Seed of the start. The same seed on the same device gives the same bits.
    max_iter : int
        Iterations over the embedding.
    tol : float, optional
        Largest accepted residual, 0.02 by default; see :func:`drot.embed`.
    solver : {"lbfgs", "spectral", "adam"}
    device : str or torch.device, optional
        Where to compute, for instance ``"cuda"``. Default: the CPU.
    dtype : {"float64", "float32"} or dtype, optional
        Of the computation. Default: the one of X; integers become float64.
    verbose : int
        1 shows progress bars with residuals, and of the map the objective and the size.

    Attributes
    ----------
    embedding_ : ndarray, shape (n, q)
    affinity_ : ndarray, shape (n, n), or Affinity
        P, rows of sum 1; where it does not fit into memory, met in tiles.
    kl_divergence_ : float
        Generalised :math:`\mathrm{KL}(P | Q_Z)`, in nats for total mass n.
    n_iter_ : int
    result_ : Embedding
        With the residual, the size and the trace.
    n_features_in_ : int

    Notes
    -----
    Memory and time grow as n^2 and, once, n^3. There is no ``transform``: a new point would
    change the plan of all. Where a solver stops short, ``fit`` gives a ``ConvergenceWarning``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = SNEkhorn(perplexity=5, random_state=0)
    >>> model.fit_transform(X).shape, model.kl_divergence_ > 0
    ((30, 2), True)
    """

    _kernel: Kernel = "gaussian"

    def __init__(
        self,
        n_components: int = 2,
        perplexity: float = 30.0,
        *,
        init="spectral",
        random_state=None,
        max_iter: int = 2000,
        tol: float | None = None,
        solver="lbfgs",
        device=None,
        dtype=None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.init = init
        self.random_state = random_state
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.device = device
        self.dtype = dtype
        self.verbose = verbose

    def _plan(self, cost, callback):
        affinity = symmetric_entropic_affinity(
            cost, self.perplexity, callback=callback, on_failure="ignore"
        )
        warn_stopped(self, affinity.converged, affinity.residual, "affinity")
        off = (float((tile.sum(dim=1) - 1).abs().max()) for _, tile in affinity.tiles())
        if not affinity.converged and max(off) > 1e-3:
            raise NotConverged(
                f"{type(self).__name__}: the affinity stopped at a residual of "
                f"{affinity.residual:.1e}, too far from one that can be embedded; pass "
                "dtype='float64', or another perplexity"
            )
        return affinity.plan if cost.block is None else affinity

    def _embed(self, plan, options):
        return snekhorn(plan, kernel=self._kernel, **options)


class TSNEkhorn(SNEkhorn):
    r"""Embed points so that two doubly stochastic plans agree, with Student's kernel.

    As :class:`SNEkhorn`, with :math:`\log(1 + \|z_i - z_j\|^2)` for the cost of the embedding:
    tails as heavy as those of t-SNE, which give clusters room.

    Source: t-SNEkhorn in section 4 of SNEkhorn (Van Assel et al., 2023); book ``eq-snekhorn``.

    Parameters
    ----------
    n_components, perplexity, init, random_state, max_iter, tol, solver, device, dtype, verbose
        As in :class:`SNEkhorn`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> TSNEkhorn(perplexity=5, random_state=0).fit_transform(X).shape
    (30, 2)
    """

    _kernel = "student"
