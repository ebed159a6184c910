"""What the estimators share: NumPy in, NumPy out, bars, warnings, and no ``transform``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.random import RandomState
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import Tensor

from .._core.checks import as_device, as_points, check_choice, check_finite
from ..affinities.base import Affinity
from ..affinities.rows import entropic_affinity
from ..costs.array import Pairwise
from ..costs.distances import sqeuclidean
from ..embeddings.descent import radius
from ..embeddings.embed import Embedding, Init, Solver
from ..spectral.connected import ccpca
from ..spectral.methods import pca_start

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(eq=False, repr=False)
class BaseEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator that places the points it was fitted to, and no others.

    Fields are the parameters: those of a subclass that is a dataclass come after those here.
    """

    n_components: int = 2
    _: KW_ONLY
    random_state: int | RandomState | None = None
    device: str | torch.device | None = None
    dtype: str | torch.dtype | type | None = None
    verbose: int = 0

    _shared: ClassVar[str] = "plan"  # what a new point would change for all

    def fit_transform(self, X, y=None):
        """Like ``fit``; returns ``embedding_``, (n, q)."""
        return self.fit(X).embedding_

    def __getattr__(self, name: str):
        # scikit-learn takes a method that cannot be read for a method that is not there
        why = f": a new point would change the {self._shared} of all; use fit_transform"
        raise AttributeError(
            f"{type(self).__name__} has no {name!r}" + (why if name == "transform" else "")
        )

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]


@dataclass(eq=False, repr=False)
class EmbeddingEstimator(BaseEmbedding):
    """Cost, plan, embedding: a subclass says which plan and which method.

    ``_plan(cost, callback)`` is the plan (n, n), or, where the cost is met in tiles, the affinity
    itself; ``_embed(plan, options)`` is its embedding, by options of :func:`drot.embed`.
    """

    _neighbors: ClassVar[str] = "perplexity"  # the parameter that counts the neighbours
    _: KW_ONLY
    init: Init = "spectral"
    max_iter: int = 2000
    tol: float | None = None
    solver: Solver = "lbfgs"

    def fit(self, X, y=None):
        """Compute the affinity of X (n, p) and its embedding; ``y`` is not used."""
        points, seed = _read(self, X)
        cost = sqeuclidean(points)
        init = self._init(points, cost, seed)
        with _bar("affinity", self.verbose) as callback:
            plan = self._plan(cost, callback)
        with _bar("embedding", self.verbose) as callback:
            options = {"init": init, "random_state": seed, "callback": callback}
            for name in ("n_components", "solver", "tol", "max_iter"):
                options[name] = getattr(self, name)
            found = self._embed(plan, {**options, "on_failure": "ignore"})
        warn_stopped(self, found.converged, found.residual, "embedding")
        self.result_: Embedding = found
        self.embedding_ = found.Z.cpu().numpy()
        self.affinity_ = plan if isinstance(plan, Affinity) else plan.cpu().numpy()
        self.kl_divergence_ = found.kl
        self.n_iter_ = max(1, found.n_iter)
        return self

    def _init(self, points: Tensor, cost: Pairwise, seed: int):
        if not isinstance(self.init, str):
            Z = self.init.Z if isinstance(self.init, Embedding) else as_points(self.init, "init")
            if Z.shape[1] != self.n_components:
                raise ValueError(
                    f"init has {Z.shape[1]} columns and n_components={self.n_components}; make "
                    "them equal"
                )
            return self.init
        check_choice("init", self.init, ("spectral", "pca", "random", "ccpca"))
        if self.init == "pca":
            return pca_start(points, n_components=self.n_components)
        if self.init == "ccpca":
            graph = entropic_affinity(cost, getattr(self, self._neighbors), diagonal="drop")
            return ccpca(points, graph, n_components=self.n_components, random_state=seed).start
        return self.init


def warn_stopped(
    estimator: BaseEstimator, converged: bool, residual: float, what: str = ""
) -> None:
    """Say as scikit-learn does that a solver, or its part ``what``, did not reach its tolerance."""
    if not converged:
        warnings.warn(
            f"{type(estimator).__name__}: {what and f'the {what} '}stopped at a residual of "
            f"{residual:.1e}, above its tolerance; raise max_iter or loosen tol",
            ConvergenceWarning,
            stacklevel=3,
        )


def _read(estimator: BaseEstimator, X) -> tuple[Tensor, int]:
    """X (n, p) as a tensor where ``device`` and ``dtype`` say, and a seed."""
    X = validate_data(
        estimator,
        X,
        dtype=[np.float64, np.float32],
        ensure_min_samples=2,
        ensure_all_finite=False,  # the sentence below names the row
    )
    device, dtype = as_device(estimator.device), _as_dtype(estimator.dtype)
    X = np.array(X, order="C")  # torch reads no negative strides
    check_finite(torch.as_tensor(X), "X")
    points = torch.as_tensor(X, device=device, dtype=dtype)
    return points, check_random_state(estimator.random_state).randint(2**31 - 1)


def _as_dtype(dtype) -> torch.dtype | None:
    if dtype is None:
        return None
    name = str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype
    if not isinstance(name, str):
        with suppress(TypeError):  # what names no dtype is refused as it is
            name = np.dtype(name).name
    check_choice("dtype", name, _DTYPES)
    return _DTYPES[name]


@contextmanager
def _bar(name: str, verbose: int, shown: str = "residual", total: int = 0) -> Iterator:
    """A callback that moves a progress bar with the number ``shown``, or None."""
    if not verbose:
        yield None
        return
    from tqdm.auto import tqdm

    with tqdm(desc=name, total=total or None) as bar:

        def callback(done: int, number: float, Z=None, value: float | None = None) -> None:
            told = {shown: f"{number:.1e}"}
            if value is not None:
                told |= {"objective": f"{value:.6g}", "size": f"{radius(Z):.3g}"}
            bar.set_postfix(told, refresh=False)
            bar.update(done - bar.n if total else 1)

        yield callback
