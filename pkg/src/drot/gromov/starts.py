"""Where plans begin: names of starts, clusters of a similarity and the plans made of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from .._core.algebra import EXTRA, leading
from .._core.checks import check_choice
from ..costs.array import Pairwise, as_pairwise
from .contraction import Problem, Terms, hard_plan
from .descent import row_moves
from .reading import as_coupling
from .search import end_of

Init = Literal["kmeans", "spectral", "random", "product"]
HardInit = Literal["kmeans", "spectral", "random"]

ROUGH = 1e-5  # gap at which a start has shown where it leads
_MATCHED = 1e-6  # gap at which a match of clusters is good enough to start from
_LEADING = 1e-2  # residual of those that show clusters, of the square of C
_STEPS = 500  # of moves, at most
_TRIES = 8  # starts of a match, beside the product


def as_init(init, w: Tensor, k: int, names: Any = Init) -> tuple[str, ...] | Tensor:
    """Names of starts, of a ``Literal``, or one plan with the row sums w."""
    if isinstance(init, str):
        init = (init,)
    if isinstance(init, Sequence) and (not init or any(isinstance(name, str) for name in init)):
        for name in init or [init]:
            check_choice("init", name, names)
        return tuple(init)
    plan = getattr(init, "plan", init)
    if not hasattr(plan, "__len__") and not type(plan).__module__.startswith("drot."):
        says = f"pass {', '.join(map(repr, get_args(names)))}, a plan or a result"
        raise TypeError(f"init is of type {type(init).__name__}; {says}")
    return as_coupling(plan, "init", len(w), k, w, rows=w)


def starts(
    init: tuple[str, ...] | Tensor, n_starts: int, draw: Callable[[str], Tensor]
) -> Iterator[Tensor]:
    """All the plans to start from, drawn when their turn comes."""
    if isinstance(init, Tensor):
        yield init
        return
    for name in init:
        for _ in range(1 if name == "product" else n_starts):
            yield draw(name)


def soft_start(problem: Problem, clusters: Clusters, rng: np.random.Generator, name: str) -> Tensor:
    """A plan with the problem's row sums, by the name of a start."""
    w, n, k = problem.w, problem.n, problem.k
    if name == "product":
        return w[:, None].expand(n, k) / k
    if name == "random":
        shares = torch.from_numpy(rng.standard_exponential((n, k))).to(w)
        return shares * (w / shares.sum(dim=1))[:, None]
    return match(problem, clusters.labels(name), rng)


class Clusters:
    """Clusters of a similarity by the name of a start: by chance, or by k-means on the points of C
    or on its leading eigenvectors, which are found once.
    """

    def __init__(self, C: Pairwise, w: Tensor, k: int, rng: np.random.Generator):
        self.w, self.k, self.rng = w, k, rng
        self.points = cache(partial(features, C, w, k, rng))

    def plan(self, name: str) -> Tensor:
        """The plan (n, k) that sends each point to its cluster."""
        return hard_plan(self.labels(name), self.w, self.k)

    def labels(self, name: str) -> Tensor:
        """The cluster of each point, (n,) below k."""
        if name == "random":
            drawn = self.rng.integers(self.k, size=len(self.w))
            return torch.from_numpy(drawn).to(self.w.device)
        points = self.points(spectral=name == "spectral")
        return kmeans_labels(points, self.k, self.rng, weights=self.w)


def kmeans_labels(
    points: Tensor, k: int, rng: np.random.Generator, n_init: int = 1, weights: Tensor | None = None
) -> Tensor:
    """k-means labels of points, (n,) below k; some clusters may stay empty."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    w = None if weights is None else weights.cpu().numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct points
        found = KMeans(k, n_init=n_init, random_state=int(rng.integers(2**31))).fit(
            points.double().cpu().numpy(), sample_weight=w
        )
    return torch.from_numpy(found.labels_.astype(np.int64)).to(points.device)


def features(
    C: Pairwise, w: Tensor, k: int, rng: np.random.Generator, *, spectral: bool = False
) -> Tensor:
    """Coordinates of the points of a similarity, (n, r).

    The cloud itself where it is known; else the k leading eigenvectors of C, each times the root
    of its eigenvalue's size. ``spectral`` puts each row of the bare eigenvectors on the sphere, as
    spectral clustering does.
    """
    if not spectral and C.points is not None:
        return C.points
    root = w.sqrt()[:, None]

    def product(V: Tensor) -> Tensor:
        return root * (C @ (root * V))

    V = torch.from_numpy(rng.standard_normal((len(w), min(len(w), k + EXTRA)))).to(w)
    V = torch.linalg.qr(product(V)).Q
    image = product(V)
    size = image.abs().max() or 1.0
    size = size * (image / size).norm(dim=0).max().clamp_min(1)  # nearly the largest eigenvalue
    V = leading(lambda V: product(product(V) / size) / size, V, k, _LEADING)[1].to(w)
    values, vectors = torch.linalg.eigh(V.T @ product(V))
    V = V @ vectors  # (n, k)
    if spectral:
        return torch.nn.functional.normalize(V, dim=1)
    return torch.where(root > 0, V * values.abs().sqrt() / root, 0.0)


def match(problem: Problem, labels: Tensor, rng: np.random.Generator) -> Tensor:
    """The plan that sends whole clusters to the places that suit them.

    Averaging C over the clusters leaves a problem of a few points whose objective differs from
    that of the plan by the spread within the clusters, a constant: it is solved from many starts.
    """
    w, k = problem.w, problem.k
    labels = torch.unique(labels, return_inverse=True)[1]
    m = int(labels.max()) + 1
    terms = problem.terms
    parts = terms.couple(hard_plan(labels, w, m))
    means = as_pairwise(parts.means, least=1)
    reduced = Problem(Terms(means, parts.q, terms.loss), problem.structure)
    T, ends = parts.q[:, None].expand(m, k) / k, []
    for number in range(1 + _TRIES):
        if number > 0:
            T = hard_plan(torch.from_numpy(rng.permutation(k)[:m]).to(w.device), parts.q, k)
        ends.append(end_of(row_moves(reduced, reduced.state(T), _MATCHED), _STEPS))
    best = min(ends, key=lambda state: state.value)
    return hard_plan(best.T.argmax(dim=1)[labels], w, k)


def shuffled(T: Tensor, places: int, rng: np.random.Generator) -> Tensor:
    """The plan T with the rows of so many places, drawn by chance, dealt anew to these."""
    some = torch.from_numpy(rng.permutation(T.shape[1])[:places]).to(T.device)
    deal = torch.from_numpy(rng.integers(len(some), size=len(T))).to(some)
    return T.index_copy(1, some, hard_plan(deal, T[:, some].sum(dim=1), len(some)))
