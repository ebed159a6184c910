"""What estimators say of points that they were not fitted to: ``transform``, ``predict``."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from torch import Tensor

from .._core.checks import as_perplexity, check_choice, check_reach
from .._core.memory import tile_entries
from .._core.roots import solve_rows
from .._core.run import _outside, read_limits
from .._core.threads import threads_for
from ..costs.array import Pairwise, as_pairwise, check_symmetric
from ..costs.distances import sqeuclidean
from ..costs.kernels import Kernel
from ..embeddings.place import place
from .base import BaseEmbedding, Estimator

# of scikit-learn's; not those that take scales from the data, which new points would change
METRICS = (
    "euclidean", "precomputed", "manhattan", "cosine", "correlation", "chebyshev", "canberra",
    "braycurtis", "hamming",
)  # fmt: skip
# of a new point: nats that it could gain on the way of a radius of the map
_TOL = {torch.float64: 1e-6, torch.float32: 3e-3}


class MeetsNewPoints(Estimator):
    """An estimator that answers for new points, each by itself, and changes nothing that it has."""

    perplexity: float  # of a subclass that has it
    metric: str = "euclidean"  # of a subclass that has others
    _points: np.ndarray  # (n, p) that it was fitted to
    _columns: np.ndarray  # of a plan, for the labels
    labels_: np.ndarray

    def _answer(self, X, known: np.ndarray, find: Callable) -> np.ndarray:
        """What is ``known`` of fitted points, for those and their copies; of others, what is found.

        ``find(rows)`` is asked with rows of affinities (b, n), and tells the largest residual.
        """
        points = self._read(X, reset=False)[0]
        fitted = torch.as_tensor(self._points).to(points.device)
        points, values, tol = points.to(fitted), torch.as_tensor(known), _TOL[fitted.dtype]
        values = values.to(fitted if values.is_floating_point() else fitted.device)
        if torch.equal(points, fitted):
            return np.array(known)
        step, parts, worst = max(16, tile_entries(points.device) // len(fitted)), [], 0.0
        between = self._to(points, fitted)
        with threads_for(step * len(fitted)):  # a tile is small: two threads wait for each other
            for start in range(0, len(points), step):
                rows = slice(start, min(start + step, len(points)))
                tile = between(rows)
                same, first = self._copies(tile)
                found = values[first]
                if not same.all():
                    found[~same], residual = find(self._rows(tile, same, start))
                    worst = max(worst, residual)
                parts.append(found)
        if worst > tol:
            warnings.warn(
                f"{type(self).__name__}: the place of a new point stopped at a residual of "
                f"{worst:.1e}, above its tolerance of {tol:g}; pass dtype='float64' to the fit",
                ConvergenceWarning,
                stacklevel=_outside(),
            )
        return torch.cat(parts).cpu().numpy()

    def _to(self, points: Tensor, fitted: Tensor) -> Callable[[slice], Tensor]:
        """Tiles of squared distances to the fitted points."""
        if self.metric != "euclidean":
            return lambda rows: self._between(points[rows], fitted)
        pair = points.expand(2, -1) if len(points) == 1 else points  # of a cost
        return sqeuclidean(pair, fitted, block=1).rows

    def _copies(self, tile: Tensor) -> tuple[Tensor, Tensor]:
        """Which rows are copies of a fitted point, and of which one."""
        nearest, first = tile.min(dim=1)
        return nearest == 0, first  # exactly: copies are at distance 0

    def _between(self, points: Tensor, fitted: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    def _rows(self, cost: Tensor, same: Tensor, first: int) -> Tensor:
        """Affinities of the rows of ``cost`` (b, n) that are not the ``same`` as a fitted point."""
        excess = cost - cost.amin(dim=1, keepdim=True)
        xi = as_perplexity(self.perplexity, len(cost), cost.device)
        ties = (excess == 0).sum(dim=1).masked_fill(same, 0)
        check_reach(xi, ties, torch.full_like(ties, cost.shape[1]), first)
        excess = excess[~same]
        tol, most = read_limits(None, 100, "raise", cost.dtype)
        log_eps = solve_rows(excess, xi[~same].log().to(excess.dtype), tol, most)[0]
        return torch.softmax(-excess / log_eps.exp()[:, None], dim=1)


class PlacesNewPoints(MeetsNewPoints, BaseEmbedding):
    """An embedding that gives new points their place, and moves no other."""

    _profile: Kernel  # of the map

    def transform(self, X) -> np.ndarray:
        r"""Places of new points X (b, p) in the map of the fitted ones, which stay: (b, q).

        The affinity of a new point to the fitted ones is a row of its own; its place minimises the
        divergence of this row from the one that the kernel of the map gives it, from the mean of
        the map in the row's weights. A fitted point stays where it is, the first of its copies
        where there are several. New points do not see each other, so a place does not depend on the
        others that are asked for. A ``ConvergenceWarning`` says where a place is not at rest.

        Book ``prp-new-point``. Memory: tiles of b x n.
        """
        known = torch.as_tensor(self.embedding_)
        return self._answer(X, self.embedding_, lambda P: self._place(P, known.to(P)))

    def _distances(self, points: Tensor) -> Pairwise:
        if self.metric == "euclidean":
            return super()._distances(points)
        return as_pairwise(self._between(points))

    def _between(self, points: Tensor, fitted: Tensor | None = None) -> Tensor:
        """Squares of distances by ``metric``, to the ``fitted`` points or of all: dense."""
        D = points
        if self.metric != "precomputed":
            known = None if fitted is None else fitted.cpu().numpy()
            check_choice("metric", self.metric, METRICS)
            found = pairwise_distances(points.cpu().numpy(), known, metric=self.metric)
            D = torch.as_tensor(found).to(points)
            if fitted is not None and self.metric in ("cosine", "correlation"):  # unit-free
                rounding = 4 * points.shape[1] ** 0.5 * torch.finfo(D.dtype).eps
                D.masked_fill_(rounding >= D, 0.0)  # copies, which scikit-learn has off 0
            D = D if fitted is not None else (D + D.T) / 2
        elif fitted is None and D.shape[0] != D.shape[1]:
            raise ValueError(
                "X must be square (n, n) distances with metric='precomputed'; got shape "
                f"{tuple(D.shape)}. For a cloud of n points leave metric out"
            )
        elif (D < 0).any():
            raise ValueError(
                "Negative values in data: metric='precomputed' takes distances, not similarities"
            )
        elif fitted is None:
            if D.diagonal().any():
                raise ValueError(
                    "X has a diagonal that is not 0 with metric='precomputed': it holds "
                    "similarities, not distances; pass distances"
                )
            check_symmetric(as_pairwise(D), "the distances X")
        return D.square()

    def _place(self, P: Tensor, Z: Tensor) -> tuple[Tensor, float]:
        """Places of the rows P, and the largest residual."""
        result = self.result_
        dual = None if result.dual is None else result.dual.to(Z)
        repulsion = getattr(self, "repulsion", None)
        found = place(P, Z, self._profile, repulsion=repulsion, dual=dual, tol=_TOL[Z.dtype])
        return found.Z, float(found.residual.max())
