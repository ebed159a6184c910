"""What the estimators share: NumPy in, NumPy out, bars, warnings, and answers for new points."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from inspect import signature
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self, dataclass_transform

import numpy as np
import torch
from numpy.random import RandomState
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import Tensor

from .._core.algebra import radius
from .._core.chance import Seed, seed_number
from .._core.checks import (
    as_device,
    as_number,
    as_points,
    as_real,
    check_callback,
    check_choice,
    check_form,
)
from .._core.memory import rows_per_tile, slices
from .._core.run import Interrupted, NotConverged, outside, says_stop
from .._core.threads import by_size, threads_for
from ..affinities.base import Affinity
from ..affinities.rows import entropic_rows
from ..affinities.symmetric import SymmetricEntropicAffinity, symmetric_entropic_affinity
from ..costs.array import UNKEPT, Pairwise
from ..costs.distances import sqeuclidean
from ..embeddings.place import PLACED

if TYPE_CHECKING:  # pragma: no cover, scikit-learn has no types: of such a base all is accepted

    class BaseEstimator:
        n_features_in_: int
        feature_names_in_: np.ndarray
        perplexity: float  # where there is one, as the next two
        labels_: np.ndarray
        result_: Any
        _points: np.ndarray  # (n, p) that it was fitted to

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

    class TransformerMixin:
        embedding_: np.ndarray

        def set_output(self, *, transform: str | None = None) -> Self: ...

    class ClassNamePrefixFeaturesOutMixin:
        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...

    class ClusterMixin:
        def fit_predict(self, X: Any, y: Any = None) -> np.ndarray: ...

else:
    from sklearn.base import (  # isort: skip
        BaseEstimator, ClassNamePrefixFeaturesOutMixin,
        ClusterMixin as ClusterMixin, TransformerMixin,
    )  # fmt: skip

_PASSES = 100  # over all pairs, of a fit that is soon done
_MANY = 20_000  # points of a fit that may take long

_DTYPES = {"float32": torch.float32, "float64": torch.float64, "float": torch.float64}


@dataclass_transform(eq_default=False)
def with_parameters(cls: Any) -> Any:
    """A dataclass whose fields are parameters: what is none is refused with the names of all."""
    init = dataclass(eq=False, repr=False)(cls).__init__

    @wraps(init)
    def __init__(self, *values, **options) -> None:
        try:
            init(self, *values, **options)
        except TypeError as error:
            _, *known = signature(init).parameters
            says = f"{type(self).__name__} {str(error).partition('() ')[2]}; its parameters are "
            raise TypeError(says + ", ".join(known)) from None

    cls.__init__ = __init__
    return cls


@with_parameters
class Estimator(BaseEstimator):
    """An estimator of the points it was fitted to, which answers for new ones, each by itself.

    Fields are the parameters: those of a subclass that is a dataclass come after those here.
    A subclass says what ``fit`` solves (``_task``) and which attributes that gives (``_keep``).

    ``_extend`` asks in turn ``_tiles_to`` how new points are compared with the fitted ones,
    ``_copies`` which are copies of one, ``_new_rows`` for the affinities of the others, and for
    what those lead to the function that it was given: ``_place`` or ``_assign``.
    """

    _: KW_ONLY
    random_state: Seed | RandomState | None = None
    device: str | torch.device | None = None
    dtype: str | torch.dtype | type | None = None
    verbose: int = 0
    callback: Callable[..., Any] | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str):
            # scikit-learn takes a method that cannot be read for a method that is not there
            if name.endswith("_") and not name.startswith("_") and "result_" not in vars(self):
                raise NotFittedError(
                    f"this {type(self).__name__} is not fitted yet, so it has no {name!r}; "
                    "call its fit first"
                )
            why = ": it was fitted with keep_affinity=False" if name == "affinity_" else ""
            raise AttributeError(f"{type(self).__name__} has no {name!r}{why}")

    @by_size
    def fit(self, X, y=None) -> Self:
        """Fit to points X (n, p), or to what is known of their pairs, X (n, n); ``y`` is not used.

        What was found by then is kept at an interrupt, too. Where nothing is found an earlier fit
        stays as it was.
        """
        new, stop = copy(self), None
        points, seed = new._read(X), new._drawn_number()
        new._points = points.cpu().numpy()
        what, solve, *bar = new._task(points, seed)
        ended = False  # by the callback, which is no failure
        with progress(what, self.verbose, *bar) as shown:

            def callback(*told) -> bool:
                nonlocal ended
                ended = any(
                    [says_stop(one, *told) for one in (shown, self.callback) if one is not None]
                )
                return ended

            try:
                found = solve(callback=callback)
            except Interrupted as error:
                stop, found = error, error.result
        new._keep(found)
        self.__dict__ = vars(new)  # all of it at once
        if stop is not None:
            stop.result = self.result_
            stop.args = (f"{stop}, and of this {type(self).__name__}, which is fitted with it",)
            raise stop
        if not ended:
            self._warn(what, found)
        return self

    def _task(self, points: Tensor, seed: int) -> tuple[str, Callable, *tuple[Any, ...]]:
        """What is to be found, by which function of a ``callback``, and what a bar shows of it."""
        raise NotImplementedError

    def _read(self, X, reset: bool = True) -> Tensor:
        """X (n, p) as a tensor where ``device`` and ``dtype`` say; with ``reset``, of a new fit.

        Otherwise X has the features of the fitted points, and may be one point.
        """
        if isinstance(X, Affinity) and getattr(self, "similarity", None) == "precomputed":
            X = X.plan
        if isinstance(X, Pairwise | Affinity):
            cure = "drot.tsne" if isinstance(X, Affinity) else "drot.entropic_affinity"
            raise TypeError(
                f"{type(self).__name__} takes an array of points, and makes its cost itself; got "
                f"{X!r}; pass the points, or give it to a function such as {cure}"
            )
        check_form(X, "X")
        check_callback(self.callback)
        if isinstance(X, list):  # scikit-learn has no words for rows that differ in length
            as_real(X, "X")
        if reset:
            self._fitted = self.get_params(deep=False)  # by which new points are compared
        X = X.detach().cpu() if isinstance(X, Tensor) else X
        try:
            points = validate_data(
                self,
                X,
                dtype=[np.float64, np.float32],
                copy=True,
                reset=reset,
                allow_nd=True,  # the sentences of as_points name the cure, and the row
                ensure_min_samples=1 + reset,
                # scikit-learn asks for columns first
                ensure_all_finite=not reset and self.__sklearn_tags__().input_tags.pairwise,
            )
        except (TypeError, ValueError):
            if hasattr(X, "columns"):
                check_columns(X)
            raise
        as_number("perplexity", getattr(self, "perplexity", 1))  # which new points have too
        device, dtype = as_device(self.device), None
        if self.dtype is not None:  # a name, or a type of NumPy or torch, which has one
            name = getattr(self.dtype, "__name__", str(self.dtype)).removeprefix("torch.")
            check_choice("dtype", name, _DTYPES)
            dtype = _DTYPES[name]
        return as_points(points, "X", least=1).to(device=device, dtype=dtype)

    def _drawn_number(self) -> int:
        """A number from ``random_state``, drawn once for each fit."""
        state = self.random_state
        if not (state is None or isinstance(state, RandomState)):
            state = seed_number(state)
        return check_random_state(state).randint(2**31 - 1)

    def _distances(self, points: Tensor) -> Pairwise:
        """Squared distances; a warning where they are many or met in tiles, and that takes long."""
        cost, n = sqeuclidean(points), len(points)
        if cost.block is not None or n > _MANY:
            rows, begin = cost.block or rows_per_tile(n, points.device), perf_counter()
            tiles = n / len(sqeuclidean(points, block=rows).rows(slice(0, rows)))
            minutes = _PASSES * tiles * (perf_counter() - begin) / 60
            why = "do not fit into memory and are computed again" if cost.block else "are met"
            if minutes > 1:
                warnings.warn(
                    f"{type(self).__name__}: {n} x {n} distances {why} in each step, {minutes:.0f} "
                    "minutes in all or more; fit some of the rows to be faster",
                    RuntimeWarning,
                    stacklevel=outside(),
                )
        return cost

    def _keep(self, found: Any) -> None:
        """Set the attributes that a result gives."""
        raise NotImplementedError

    def _symmetric_affinity(self, cost: Pairwise) -> SymmetricEntropicAffinity:
        """The symmetric entropic affinity, or as close to it as can be embedded."""
        try:
            with progress("affinity", self.verbose) as callback:
                found = symmetric_entropic_affinity(
                    cost, perplexity=self.perplexity, callback=callback, on_failure="ignore"
                )
        except Interrupted:
            raise KeyboardInterrupt from None  # an affinity is no result of an estimator
        advice = "pass dtype='float64', or another perplexity"
        self._warn("affinity", found, advice)
        off = (float((tile.sum(dim=1) - 1).abs().max()) for _, tile in found.tiles())
        if not found.converged and max(off) > 1e-3:
            raise NotConverged(
                f"{type(self).__name__}: the affinity stopped at a residual of "
                f"{found.residual:.1e}, too far from one that can be embedded; {advice}"
            )
        return found

    def _warn(self, what: str, found, advice: str | None = None) -> None:
        """Say as scikit-learn does that a solver did not reach its tolerance."""
        if not getattr(found, "converged", True):
            spent = found.n_iter >= getattr(self, "max_iter", 0)
            ways = "raise max_iter or loosen" if spent else "no step gains any more: loosen"
            advice = advice or f"{ways} tol"
            warnings.warn(
                f"{type(self).__name__}: the {what} stopped at a residual of "
                f"{found.residual:.1e}, above its tolerance; {advice}",
                ConvergenceWarning,
                stacklevel=outside(),
            )

    def _extend(self, X, known: np.ndarray, find: Callable) -> np.ndarray:
        """What is ``known`` of fitted points, for those and their copies; of others, what is found.

        ``find(was, rows)`` is asked with this estimator as it was fitted and with rows of
        affinities (b, n), and tells the largest residual.
        """
        was = copy(self)
        vars(was).update(self._fitted)  # parameters set since then wait for the next fit
        points = was._read(X, reset=False)
        fitted = torch.as_tensor(was._points).to(points.device)
        points, values = points.to(fitted), torch.as_tensor(known)
        values = values.to(fitted if values.is_floating_point() else fitted.device)
        if torch.equal(points, fitted):
            return np.array(known)
        step, parts, worst = rows_per_tile(len(fitted), points.device), [], []
        between = was._tiles_to(points, fitted)
        with threads_for(step * len(fitted)):  # a tile is small: two threads wait for each other
            for rows in slices(slice(0, len(points)), step):
                tile = between(rows)
                same, first = was._copies(tile)
                found, new = values[first], (~same).nonzero()[:, 0]
                if len(new):
                    found[new], residual = find(was, was._new_rows(tile[new], rows.start + new))
                    worst.append(residual)
                parts.append(found)
        off = [residual for residual in worst if not residual <= PLACED]  # one may be no number
        if off:
            warnings.warn(
                f"{type(self).__name__}: the place of a new point stopped at a residual of "
                f"{max(off):.1e}, above its tolerance of {PLACED:g}; it may lie elsewhere",
                ConvergenceWarning,
                stacklevel=outside(),
            )
        return torch.cat(parts).cpu().numpy()

    def _tiles_to(self, points: Tensor, fitted: Tensor) -> Callable[[slice], Tensor]:
        """Tiles of what new points are compared by: here squared distances to the fitted ones."""
        pair = points.expand(2, -1) if len(points) == 1 else points  # of a cost
        return sqeuclidean(pair, fitted, block=UNKEPT).rows

    def _copies(self, tile: Tensor) -> tuple[Tensor, Tensor]:
        """Which rows are copies of a fitted point, and of which one."""
        nearest, first = tile.min(dim=1)
        return nearest == 0, first  # exactly: copies are at distance 0

    def _new_rows(self, cost: Tensor, rows: Tensor) -> Tensor:
        """Affinities of new points, numbered ``rows`` (b,), from their costs (b, n)."""
        return entropic_rows(cost, self.perplexity, rows)


class BaseEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """An embedding (n, q) that gives new points their place, and moves no other."""

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def fit_transform(self, X, y=None):
        """Like ``fit``; returns ``embedding_``, (n, q)."""
        return self.fit(X).embedding_

    def transform(self, X) -> np.ndarray:
        r"""Places of new points X (b, p) in the map of the fitted ones, which stay: (b, q).

        The affinity of a new point to the fitted ones is a row of its own; its place minimises the
        divergence of this row from the one that the kernel of the map gives it, from the mean of
        the map in the row's weights (of ccPCA it is this mean, of DistR the position of the
        prototype that ``predict`` gives). Fitted points stay where they are if all are asked for;
        else copies of one lie where the first of them does. A new point next to one may come to lie
        elsewhere, farther than a neighbour of the map, because it obeys its own row alone, and the
        fitted point all pairs that it is in. New points do not see each other, so a place does not
        depend on the others that are asked for, nor on parameters set since the fit. A
        ``ConvergenceWarning`` says where a place is not at rest.

        Book ``prp-new-point``. Memory: tiles of b x n.
        """
        known = torch.as_tensor(self.embedding_)
        return self._extend(X, self.embedding_, lambda was, P: was._place(P, known.to(P)))

    def _place(self, P: Tensor, Z: Tensor) -> tuple[Tensor, float]:
        """Places of the rows P of affinities in the map Z (n, q), and the largest residual."""
        raise NotImplementedError


def check_columns(X) -> None:
    """Refuse a data frame that is not all numbers, and name the column."""
    for name, column in zip(X.columns, np.asarray(X).T, strict=True):
        try:
            np.array(column.tolist(), dtype=float)
        except (TypeError, ValueError) as error:
            says = f"column {name!r} of X is not all numbers ({error}); encode it, or leave it out"
            raise type(error)(says) from None


def as_precomputed(X: Tensor, option: str) -> Tensor:
    """An array (n, n); what is not square is a cloud, it seems."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X must be square (n, n) with {option}='precomputed'; got shape {tuple(X.shape)}. "
            f"For a cloud of n points take another {option}"
        )
    return X


@contextmanager
def progress(
    what: str, verbose: int, shown: str = "residual", total: int | None = None
) -> Iterator:
    """A callback that moves a progress bar with the number ``shown``, or None."""
    if not verbose:
        yield None
        return
    from tqdm.auto import tqdm

    with tqdm(desc=what, total=total) as bar:

        def callback(done: int, number: float, Z=None, value: float | None = None) -> None:
            told = {shown: f"{number:.1e}"}
            if value is not None:
                told |= {"objective": f"{value:.6g}", "size": f"{radius(Z):.3g}"}
            bar.set_postfix(told, refresh=False)
            bar.update(done - bar.n)

        yield callback
