"""Plans to start from: chance, clusters of the source, and their best places in the target."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Literal

import numpy as np
import torch
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from torch import Tensor

from ..costs.array import Pairwise, as_pairwise
from ..costs.factored import Factored
from .contraction import alone, hard_plan
from .descent import Problem, State, conditional_gradient, row_moves

Init = Literal["kmeans", "spectral", "random", "product"]

_ROUGH = 1e-6  # gap at which a match of clusters is good enough to start from
_DENSE = 300  # points of a graph below which all eigenvectors are as cheap as some
_EIGEN = {torch.float64: 1e-8, torch.float32: 1e-5}  # of eigenvalues, relative
_SEARCHES, _BLOCK, _POWERS = 20, 8, 10  # for eigenvalues that Lanczos iteration missed
_MISSED = 1e-3  # by how much such an eigenvalue is larger than the least
_TRIES = 8  # starts of a match, beside the product


def _start(init: str, problem: Problem, cost: Pairwise, rng: np.random.Generator) -> Tensor:
    """A plan with the problem's row sums."""
    w, n, k = problem.w, problem.n, problem.k
    if init == "product":
        return w[:, None].expand(n, k) / k
    if init == "random":
        shares = torch.from_numpy(rng.standard_exponential((n, k))).to(w)
        return shares * (w / shares.sum(dim=1))[:, None]
    labels = clusters(cost, w, k, init, rng)
    return match(problem, labels, rng)


def clusters(cost: Pairwise, w: Tensor, k: int, how: str, rng: np.random.Generator) -> Tensor:
    """k-means labels of the source's points or of its leading eigenvectors, (n,) below k."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    k = min(k, len(w))
    points = features(cost, w, k, rng, unit=how == "spectral").double().cpu().numpy()
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        # fewer distinct points than clusters: some stay empty
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(k, n_init=1, random_state=seed).fit(points, sample_weight=w.cpu().numpy())
    return torch.from_numpy(found.labels_.astype(np.int64)).to(w.device)


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
    if not unit and cost.parts is not None:
        for name in ("sqeuclidean", "student"):
            if name in cost.parts and "other" not in cost.parts:
                return cost.parts[name]
    contraction = alone(cost, w)
    n, r = cost.shape[0], min(cost.shape[0], k + 5)
    root = w.sqrt()[:, None]
    V = torch.from_numpy(rng.standard_normal((n, r))).to(w)

    def product(V: Tensor) -> tuple[Tensor, float]:
        """Entries up to 2, which LAPACK rounds alike in every unit of C, and their unit."""
        Y = root * contraction.left(root * V)
        size = math.ldexp(1.0, math.frexp(float(Y.abs().max()))[1] - 1)
        return Y / size, size

    for _ in range(3):
        V = torch.linalg.qr(product(V)[0]).Q
    Y, size = product(V)
    values, vectors = torch.linalg.eigh(V.T @ Y)
    values = values * size
    order = values.abs().argsort(descending=True)[:k]
    V = V @ vectors[:, order]  # (n, k)
    if not unit:
        return torch.where(root > 0, V * values[order].abs().sqrt() / root, 0.0)
    return V / V.norm(dim=1, keepdim=True).clamp_min(torch.finfo(w.dtype).tiny)


def spectral_labels(weights: Tensor, k: int, rng: np.random.Generator) -> Tensor:
    """Spectral clustering of a graph as scikit-learn defines it, but for the eigensolver.

    scikit-learn factorises a dense graph, n^3 operations; what it looks for are the largest
    eigenvalues of a matrix, for which Lanczos iteration takes products, n^2 each.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    degree = weights.fill_diagonal_(0).sum(dim=1)
    root = torch.where(degree > 0, degree, 1).sqrt()
    weights.div_(root).div_(root[:, None])  # an eigenvalue 1 for each part of the graph
    seed = int(rng.integers(2**31))
    vectors = _largest(weights, k, seed).double().cpu().numpy()
    points = vectors / root.double().cpu().numpy()[:, None]
    points /= np.abs(points).max()
    with warnings.catch_warnings():
        # a graph of fewer parts than clusters is no reason to warn: some stay empty
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = KMeans(k, n_init=10, random_state=seed).fit(points).labels_
    return torch.from_numpy(labels.astype(np.int64)).to(weights.device)


def _largest(graph: Tensor, k: int, seed: int) -> Tensor:
    """Eigenvectors of the k largest eigenvalues, (n, k), by Lanczos iteration.

    One vector to start from sees an eigenvalue once, but 1 is there once for each part of the
    graph: a few steps with a block look for what was missed.
    """
    n, rng = len(graph), np.random.default_rng(seed)
    if n <= max(4 * k, _DENSE):
        return torch.linalg.eigh(graph).eigenvectors[:, -k:]

    def product(x: np.ndarray) -> np.ndarray:
        return (graph @ torch.from_numpy(x.ravel()).to(graph)).double().cpu().numpy()

    operator = LinearOperator((n, n), product, dtype=np.float64)
    try:
        found = eigsh(operator, k, which="LA", v0=rng.uniform(-1, 1, n), tol=_EIGEN[graph.dtype])
    except ArpackError:  # a graph without edges
        return torch.linalg.eigh(graph).eigenvectors[:, -k:]
    least, V = float(found[0].min()), torch.from_numpy(found[1]).to(graph)
    for _ in range(_SEARCHES):
        B = torch.from_numpy(rng.standard_normal((n, _BLOCK))).to(graph)
        for _ in range(_POWERS):
            B = graph @ torch.linalg.qr(B - V @ (V.T @ B)).Q
        B = torch.linalg.qr(B - V @ (V.T @ B)).Q
        if float(torch.linalg.eigvalsh(B.T @ (graph @ B))[-1]) < least + _MISSED:
            break
        basis = torch.cat([V, B], dim=1)  # (n, k + b)
        values, turn = torch.linalg.eigh(basis.T @ (graph @ basis))
        least, V = float(values[-k]), basis @ turn[:, -k:]
    return V


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
    small = member.T @ problem.contraction.left(member) / torch.outer(mass, mass)
    problem.products += 1
    reduced = Problem(problem.contraction.with_cost(as_pairwise((small + small.T) / 2)), mass)
    best: State | None = None
    for trial in range(1 + _TRIES):
        if trial == 0:
            T = mass[:, None].expand(m, k) / k
        else:
            places = torch.from_numpy(rng.permutation(k)[:m]).to(w.device)
            T = hard_plan(places, mass, k)
        state = _settle_down(reduced, reduced.state(T))
        if best is None or state.value < best.value:
            best = state
    assert best is not None
    return hard_plan(best.T.argmax(dim=1)[labels], w, k)


def _settle_down(problem: Problem, state: State) -> State:
    """A few steps of conditional gradient, then moves and exchanges to a rough tolerance."""
    near = _last(islice(conditional_gradient(problem, state), 20), _ROUGH)
    return _last(islice(row_moves(problem, near, _ROUGH), 500), -1.0)


def _last(steps: Iterator[tuple[State, float]], enough: float) -> State:
    """The state of the first step whose gap is small enough, or of the last."""
    state, gap = next(steps)
    while gap > enough:
        state, gap = next(steps, (state, -math.inf))
    return state


def starts(
    init: tuple[str, ...] | Tensor,
    problem: Problem,
    cost: Pairwise,
    n_starts: int,
    rng: np.random.Generator,
) -> Iterator[Tensor]:
    """All the plans to start from, made when their turn comes; clusters are those of ``cost``."""
    if isinstance(init, Tensor):
        yield init
        return
    for name in init:
        for _ in range(1 if name == "product" else n_starts):
            yield _start(name, problem, cost, rng)
