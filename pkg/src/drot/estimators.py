"""scikit-learn's interface to the embedding methods: NumPy in, NumPy out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import Tensor

from ._checks import check_choice
from ._embedding import Embedding
from .initial import pca_start
from .methods import snekhorn
from .pairwise import sqeuclidean
from .symmetric import symmetric_entropic_affinity

__all__ = ["SNEkhorn", "TSNEkhorn"]

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


class SNEkhorn(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
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
    init : {"spectral", "pca", "random"}, array_like of shape (n, q), or Embedding
        Where the embedding starts. ``result_`` of an earlier fit continues that run.
    random_state : int, RandomState or None
        Seed of the start. The same seed on the same device gives the same bits.
    max_iter : int
        Iterations over the embedding.
    tol : float, optional
        Largest accepted entry of the gradient; see :func:`drot.embed`.
    solver : {"lbfgs", "spectral", "adam"}
    device : str or torch.device, optional
        Where to compute, for instance ``"cuda"``. Default: the CPU.
    dtype : {"float64", "float32"} or dtype, optional
        Of the computation. Default: the one of X; integers become float64.
    verbose : int
        1 shows progress bars with the residuals.

    Attributes
    ----------
    embedding_ : ndarray, shape (n, q)
    affinity_ : ndarray, shape (n, n)
        P, rows of sum 1.
    kl_divergence_ : float
        Generalised :math:`\mathrm{KL}(P | Q_Z)`, in nats for total mass n.
    n_iter_ : int
    result_ : Embedding
        With the residual and the trace.
    n_features_in_ : int

    Notes
    -----
    Memory and time grow as n^2 and, once, n^3. There is no ``transform``: a new point would
    change the plan of all. Where a solver stops short, ``fit`` gives a ``ConvergenceWarning``.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = SNEkhorn(perplexity=5, random_state=0)
    >>> model.fit_transform(X).shape, model.kl_divergence_ > 0
    ((30, 2), True)
    """

    _kernel = "gaussian"

    def __init__(
        self,
        n_components=2,
        perplexity=30.0,
        *,
        init="spectral",
        random_state=None,
        max_iter=2000,
        tol=None,
        solver="lbfgs",
        device=None,
        dtype=None,
        verbose=0,
    ):
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

    def fit(self, X, y=None):
        """Compute the affinity of X (n, p) and its embedding; ``y`` is not used."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        points = torch.tensor(X, device=self.device, dtype=_as_dtype(self.dtype))
        init = self.init
        if isinstance(init, str):
            check_choice("init", init, ("spectral", "pca", "random"))
            if init == "pca":
                init = pca_start(points, n_components=self.n_components)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        with _bar("affinity", self.verbose) as callback:
            affinity = symmetric_entropic_affinity(
                sqeuclidean(points), self.perplexity, callback=callback, on_failure="ignore"
            )
        self._warn("affinity", affinity.converged, affinity.residual)
        plan = affinity.plan
        with _bar("embedding", self.verbose) as callback:
            found = snekhorn(
                plan,
                n_components=self.n_components,
                kernel=self._kernel,
                init=init,
                solver=self.solver,
                tol=self.tol,
                max_iter=self.max_iter,
                random_state=seed,
                callback=callback,
                on_failure="ignore",
            )
        self._warn("embedding", found.converged, found.residual)
        self.result_: Embedding = found
        self.embedding_ = found.Z.cpu().numpy()
        self.affinity_ = plan.cpu().numpy()
        self.kl_divergence_ = found.kl
        self.n_iter_ = max(1, found.n_iter)
        return self

    def fit_transform(self, X, y=None):
        """Like ``fit``; returns ``embedding_``, (n, q)."""
        return self.fit(X).embedding_

    def __getattr__(self, name: str):
        # scikit-learn takes a method that cannot be read for a method that is not there
        why = ": a new point would change the plan of all; use fit_transform"
        raise AttributeError(
            f"{type(self).__name__} has no {name!r}" + (why if name == "transform" else "")
        )

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _warn(self, what: str, converged: bool, residual: float) -> None:
        if not converged:
            warnings.warn(
                f"{type(self).__name__}: the {what} stopped at a residual of {residual:.1e}, "
                "above its tolerance; raise max_iter or loosen tol",
                ConvergenceWarning,
                stacklevel=3,
            )


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
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> TSNEkhorn(perplexity=5, random_state=0).fit_transform(X).shape
    (30, 2)
    """

    _kernel = "student"


def _as_dtype(dtype) -> torch.dtype | None:
    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    check_choice("dtype", name, _DTYPES)
    return _DTYPES[name]


@contextmanager
def _bar(name: str, verbose: int) -> Iterator[Callable | None]:
    """A callback that moves a progress bar, or None."""
    if not verbose:
        yield None
        return
    from tqdm.auto import tqdm

    with tqdm(desc=name, unit="it") as bar:

        def callback(iteration: int, residual: float, Z: Tensor | None = None) -> None:
            bar.set_postfix(residual=f"{residual:.1e}", refresh=False)
            bar.update()

        yield callback
