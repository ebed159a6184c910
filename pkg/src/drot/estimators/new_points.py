"""What estimators say of points that they were not fitted to: ``transform``, ``predict``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from .._core.memory import rows_per_tile, slices
from .._core.run import outside
from .._core.threads import threads_for
from ..affinities.rows import entropic_rows
from ..costs.distances import sqeuclidean
from ..embeddings.place import PLACED
from .base import ClassNamePrefixFeaturesOutMixin, Estimator, TransformerMixin


class OutOfSample(Estimator):
    """An estimator that answers for new points, each by itself, and changes nothing that it has.

    ``_extend`` asks in turn ``_tiles_to`` how new points are compared with the fitted ones,
    ``_copies`` which are copies of one, ``_new_rows`` for the affinities of the others, and for
    what those lead to the function that it was given: ``_place`` or ``_assign``.
    """

    perplexity: float  # of a subclass that has it
    _points: np.ndarray  # (n, p) that it was fitted to
    labels_: np.ndarray

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
        return sqeuclidean(pair, fitted, block=1).rows

    def _copies(self, tile: Tensor) -> tuple[Tensor, Tensor]:
        """Which rows are copies of a fitted point, and of which one."""
        nearest, first = tile.min(dim=1)
        return nearest == 0, first  # exactly: copies are at distance 0

    def _new_rows(self, cost: Tensor, rows: Tensor) -> Tensor:
        """Affinities of new points, numbered ``rows`` (b,), from their costs (b, n)."""
        return entropic_rows(cost, self.perplexity, rows)


class OutOfSampleEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OutOfSample):
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
        the map in the row's weights. Fitted points stay where they are if all are asked for; else
        copies of one lie where the first of them does. A new point next to one may come to lie
        elsewhere, farther than a neighbour of the map, because it obeys its own row alone, and the
        fitted point all pairs that it is in. New points do not see each other, so a place does not
        depend on the others that are asked for, nor on parameters set since the fit. A
        ``ConvergenceWarning`` says where a place is not at rest.

        Book ``prp-new-point``. Memory: tiles of b x n.
        """
        known = torch.as_tensor(self.embedding_)
        return self._extend(X, self.embedding_, lambda was, P: was._place(P, known.to(P)))

    def _place(self, P: Tensor, Z: Tensor) -> tuple[Tensor, float]:
        """Places of the rows P of affinities, and the largest residual."""
        raise NotImplementedError
