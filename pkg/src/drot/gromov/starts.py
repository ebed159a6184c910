"""Plans to start from: chance, clusters of the source, and their best places in the target."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from .._core.eigen import EXTRA, leading
from ..costs.array import Pairwise, as_pairwise
from ..costs.factored import Factored
from .contraction import Contraction, hard_plan
from .descent import Problem, lowest_plan

Init = Literal["kmeans", "spectral", "random", "product"]
Clusters = Literal["kmeans", "spectral", "random"]

_ROUGH = 1e-6  # gap at which a match of clusters is good enough to start from
_EIGEN = {torch.float64: 1e-8, torch.float32: 1e-5}  # residual of an eigenvector
_STEPS = 500
_TRIES = 8  # starts of a match, beside the product


def clusters(cost: Pairwise, w: Tensor, k: int, how: str, rng: np.random.Generator) -> Tensor:
    """k-means labels of the source's points or of its leading eigenvectors, (n,) below k."""
    k = min(k, len(w))
    return kmeans_labels(features(cost, w, k, rng, unit=how == "spectral"), k, rng, weights=w)


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
    cost: Pairwise, w: Tensor, k: int, rng: np.random.Generator, *, unit: bool = False
) -> Tensor:
    """Coordinates of the points of a similarity, (n, r).

    The cloud itself where it is known; else the k leading eigenvectors of C, each times the root
    of its eigenvalue's size, by three products with random vectors. ``unit`` puts each row of
    the bare eigenvectors on the sphere, as spectral clustering does.
    """
    if not unit and isinstance(cost, Factored):
        return cost.points
    if not unit and cost.parts is not None and "other" not in cost.parts:
        for name in ("sqeuclidean", "student"):
            if name in cost.parts:
                return cost.parts[name]
    root = w.sqrt()[:, None]
    V = torch.from_numpy(rng.standard_normal((len(w), min(len(w), k + 5)))).to(w)
    for _ in range(3):
        V = torch.linalg.qr(root * (cost @ (root * V))).Q
    values, vectors = torch.linalg.eigh(V.T @ (root * (cost @ (root * V))))
    order = values.abs().argsort(descending=True)[:k]
    V = V @ vectors[:, order]  # (n, k)
    if unit:
        return torch.nn.functional.normalize(V, dim=1)
    return torch.where(root > 0, V * values[order].abs().sqrt() / root, 0.0)


def spectral_labels(weights: Tensor, k: int, rng: np.random.Generator) -> Tensor:
    """Spectral clustering of a graph as scikit-learn defines it, but for the eigensolver.

    scikit-learn factorises a dense graph, n^3 operations; what it looks for are the largest
    eigenvalues of a matrix, for which a Lanczos iteration takes products, n^2 each.
    """
    degree = weights.fill_diagonal_(0).sum(dim=1)
    root = torch.where(degree > 0, degree, 1).sqrt()
    weights.div_(root).div_(root[:, None])  # an eigenvalue 1 for each part of the graph
    begin = torch.from_numpy(rng.standard_normal((len(root), k + EXTRA))).to(weights)
    vectors = leading(lambda V: weights @ V, begin, k, _EIGEN[weights.dtype])[1]
    points = vectors / root[:, None]
    return kmeans_labels(points / points.abs().max(), k, rng, n_init=10)


def match(problem: Problem, labels: Tensor, rng: np.random.Generator) -> Tensor:
    """The plan that sends whole clusters to the places that suit them.

    Averaging C over the clusters leaves a problem of a few points whose objective differs from
    that of the plan by the spread within the clusters, a constant: it is solved from many starts.
    """
    w, k = problem.w, problem.k
    labels = torch.unique(labels, return_inverse=True)[1]
    m = int(labels.max()) + 1
    if m < 2:
        return hard_plan(labels, w, k)
    member = hard_plan(labels, w, m)  # (n, m)
    mass = member.sum(dim=0)
    terms = problem.contraction
    small = member.T @ (terms.times(member)) / torch.outer(mass, mass)
    cost = as_pairwise((small + small.T) / 2)
    reduced = Problem(Contraction(cost, terms.structure, terms.loss), mass)
    trials = [mass[:, None].expand(m, k) / k]
    for _ in range(_TRIES):
        places = torch.from_numpy(rng.permutation(k)[:m]).to(w.device)
        trials.append(hard_plan(places, mass, k))
    ends = [lowest_plan(reduced, reduced.state(T), _ROUGH, _STEPS) for T in trials]
    best = min(ends, key=lambda state: state.value)
    return hard_plan(best.T.argmax(dim=1)[labels], w, k)


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


def soft_start(problem: Problem, cost: Pairwise, rng: np.random.Generator, name: str) -> Tensor:
    """A plan with the problem's row sums; clusters are those of ``cost``."""
    w, n, k = problem.w, problem.n, problem.k
    if name == "product":
        return w[:, None].expand(n, k) / k
    if name == "random":
        shares = torch.from_numpy(rng.standard_exponential((n, k))).to(w)
        return shares * (w / shares.sum(dim=1))[:, None]
    return match(problem, clusters(cost, w, k, name, rng), rng)


def hard_start(cost: Pairwise, w: Tensor, k: int, rng: np.random.Generator, name: str) -> Tensor:
    """A plan that sends each point to one cluster."""
    if name == "random":
        return hard_plan(torch.from_numpy(rng.integers(k, size=len(w))).to(w.device), w, k)
    return hard_plan(clusters(cost, w, k, name, rng), w, k)
