"""Clustering by optimal transport: barycentres and kernel k-means (Chapter 11)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import Seed, as_rng, check_choice, check_count
from .._core.run import OnFailure, read_limits, settle
from ..costs.array import Pairwise
from .barycenter import Cell, Reduced, alternation, reduced_descent, refined
from .contraction import (
    Loss,
    alone,
    as_structure,
    as_weights,
    centred,
    hard_plan,
    standard,
)
from .lloyd import lloyd
from .merges import merge_and_split
from .semirelaxed import SHORT, Callback, SemiRelaxedGW, Watch, as_init
from .starts import clusters, features

Method = Literal["reduced", "alternation"]
Init = Literal["kmeans", "spectral", "random"]


@dataclass(frozen=True, kw_only=True, repr=False)
class SemiRelaxedBarycenter(SemiRelaxedGW):
    """A small similarity that stands for a large one, with the plan that joins them."""

    structure: Tensor  # (k, k) Cbar, 0 in the rows of an empty cluster


def srgw_barycenter(
    cost_x,
    n_clusters: int,
    *,
    weights_x: ArrayLike | None = None,
    loss: Loss = "square",
    method: Method = "reduced",
    init: Init | Sequence[Init] | ArrayLike | SemiRelaxedGW = "kmeans",
    n_starts: int = 4,
    refine: bool = True,
    tol: float | None = None,
    max_iter: int = 1000,
    random_state: Seed = 0,
    callback: Callback | None = None,
    on_failure: OnFailure = "raise",
) -> SemiRelaxedBarycenter:
    r"""The similarity between k clusters that is closest to one between n points.

    .. math::

        \min_{\bar C \in \mathbb R^{k \times k}} \; \min_{T \ge 0, \, T \mathbf 1 = w} \;
        E_L(C, \bar C, T).

    For a plan with column sums q the best :math:`\bar C` is :math:`T^\top C T / (q q^\top)`, the
    mean of C between clusters; what is left is a function of the plan, concave for ``"square"``
    when C or -C is conditionally positive definite, so that some best plan is hard.
    ``"reduced"`` lowers that function by conditional gradient, ``"alternation"`` solves for the
    plan and for :math:`\bar C` in turn. With ``refine``, points are then moved one by one, with
    :math:`\bar C` following, while that lowers the objective; and at the best end of all starts
    two clusters are merged and a third is split, for as long as that leads lower.

    Source: (srGWB) in section 4.2, lemma D.1 and theorem 4.1 of Van Assel et al. (2024); book
    ``lem-reduced-barycenter`` and ``thm-hard-plans``.

    Parameters
    ----------
    cost_x : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`. Non-negative for ``"kl"``.
    n_clusters : int
        :math:`k`, from 1 to n. Some clusters may stay empty.
    weights_x : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.
    loss : {"square", "kl"}
    method : {"reduced", "alternation"}
    init : {"kmeans", "spectral", "random"}, several of them, (n, k) plan, or result
        Where the clusters start: k-means on the points of C or on its leading eigenvectors, or
        labels by chance. A plan, or an earlier result, is one start.
    n_starts : int
        Starts of each kind.
    refine : bool
        Whether to end with moves of single points, merges and splits.
    tol : float, optional
        Largest accepted Frank-Wolfe gap of the reduced objective, as a share of
        :math:`\sum_{ij} (C_{ij} - m)^2 w_i w_j` with :math:`m = w^\top C w` (``"kl"``: of m).
        Default 1e-9 in float64, 1e-4 in float32.
    max_iter : int
        Iterations from each start.
    random_state : int, numpy Generator or torch Generator
        Same seed, same plan on the same device.
    callback : callable, optional
        Called as ``callback(iteration, residual, plan)``, starts counted on; true ends the run,
        as an interrupt from the keyboard does: the best plan so far is returned.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    SemiRelaxedBarycenter
        ``structure`` (k, k) in the unit of C, ``plan`` (n, k) of total mass 1, ``labels``, and
        what :func:`semi_relaxed_gw` reports; the ``objective`` can be lower than all ``values``.

    Raises
    ------
    ValueError
        If the similarity is not symmetric, n_clusters or weights are out of range, or ``init``
        does not fit.
    NotConverged
        If the best start did not reach ``tol`` and ``on_failure="raise"``.

    Notes
    -----
    One product of C with an (n, k) matrix an iteration, :math:`O(n k^2)` a round of moves. Not
    differentiable.

    Examples
    --------
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double()
    >>> found = srgw_barycenter(C, 2)
    >>> found.structure.sort(dim=1).values.tolist(), abs(found.objective) < 1e-12
    ([[0.0, 1.0], [0.0, 1.0]], True)
    """
    check_choice("loss", loss, get_args(Loss))
    check_choice("method", method, get_args(Method))
    cost = as_structure(cost_x, "cost_x", loss)
    tol, max_iter = read_limits(tol, max_iter, on_failure, cost.dtype)
    n, _ = cost.shape
    k = check_count("n_clusters", n_clusters, 1, n)
    n_starts = check_count("n_starts", n_starts, 1)
    w = as_weights(weights_x, n, cost)
    measured, unit = standard(cost, w, loss)
    problem = Reduced(alone(measured, w, loss), w, k)
    kinds, rng, watch = (
        as_init(init, w, k, get_args(Init)),
        as_rng(random_state),
        Watch(max_iter, callback),
    )
    given = [kinds] if isinstance(kinds, Tensor) else []
    names = () if isinstance(kinds, Tensor) else kinds
    source = measured if unit.far else cost
    drawn = (
        hard_plan(_labels(name, source, w, k, rng), w, k) for name in names for _ in range(n_starts)
    )
    ends: list[_End] = []
    try:
        for plan in chain(given, drawn):
            ends.append(_descend(problem, plan, method, refine, tol, watch))
            if watch.stopped:
                break
        best = min(ends, key=lambda end: end[0].value)
        if refine and k > 2 and not watch.full(best[2]):
            best = _escape(problem, best, features(source, w, k, rng), tol, max_iter, watch)
    except KeyboardInterrupt as error:
        T, gap, kept = watch.keep("srgw_barycenter", error)
        best = problem.cell(T), gap, kept
        ends = ends or [best]
    if watch.stopped:
        on_failure = "ignore"
    cell, residual, trace = best
    structure = problem.cell(cell.T).structure  # without the rounding of the steps
    return SemiRelaxedBarycenter(
        plan=cell.T,
        structure=torch.where(torch.outer(cell.q, cell.q) > 0, unit.entries(structure), 0),
        objective=unit.objectives([cell.value])[0],
        residual=residual,
        n_iter=len(trace) - 1,
        converged=settle("srgw_barycenter", residual, tol, len(trace) - 1, on_failure),
        trace=unit.objectives(trace),
        values=unit.objectives(end[0].value for end in ends),
        products=problem.products,
    )


_End = tuple[Cell, float, list[float]]  # where a start led, the gap there, the objective so far


def _labels(how: str, cost: Pairwise, w: Tensor, k: int, rng: np.random.Generator) -> Tensor:
    """Labels to start from, (n,)."""
    if how == "random":
        return torch.from_numpy(rng.integers(k, size=len(w))).to(w.device)
    return clusters(cost, w, k, how, rng)


def _descend(
    problem: Reduced, plan: Tensor, method: Method, refine: bool, tol: float, watch: Watch
) -> _End:
    """Where a plan leads, the gap there, and the objective on the way."""
    trace: list[float] = []
    cell = problem.cell(plan)
    steps = (
        reduced_descent(problem, cell) if method == "reduced" else alternation(problem, cell, tol)
    )
    promised = 0.0
    for new, gap in steps:
        gained, cell = cell.value - new.value, new
        watch.record(cell.value, gap, cell.T, trace)
        # a step that gains little of what the gap promised leaves the rest to the moves
        if gap <= tol or watch.full(trace) or (refine and gained < SHORT * promised):
            break
        promised = gap * problem.scale
    if refine and not watch.full(trace):
        for cell, gap in refined(problem, new, tol):
            watch.record(cell.value, gap, cell.T, trace)
            if watch.full(trace):
                break
    return cell, gap, trace


def _escape(
    problem: Reduced, end: _End, points: Tensor, tol: float, max_iter: int, watch: Watch
) -> _End:
    """Where merging and splitting clusters leads from the best end of all starts."""
    best, gap, trace = end

    def settle(begin: Cell) -> Cell:
        last = deque(islice(refined(problem, begin, tol), max_iter), maxlen=1)
        return last[0][0] if last else begin

    for cell in merge_and_split(problem, best, points, settle):
        best = cell
        gap = problem.gap(cell, problem.half_gradient(cell))
        watch.record(cell.value, gap, cell.T, trace)
        if watch.full(trace):
            break
    return best, gap, trace


class KernelKMeans(NamedTuple):
    """Clusters in the space where the similarity is an inner product."""

    labels: Tensor  # (n,) int64
    objective: float  # sum_i w_i |phi_i - mean of its cluster|^2
    n_iter: int  # of the best start
    values: tuple[float, ...]  # the objective reached from each start


def kernel_kmeans(
    gram,
    n_clusters: int,
    *,
    weights_x: ArrayLike | None = None,
    init: Init | Sequence[Init] | ArrayLike | SemiRelaxedGW = "kmeans",
    n_starts: int = 4,
    max_iter: int = 1000,
    random_state: Seed = 0,
) -> KernelKMeans:
    r"""k-means on points that are known by their inner products.

    With :math:`C_{ij} = \langle \phi_i, \phi_j \rangle` and the mean of cluster c as
    :math:`m_c = \sum_{i \in c} w_i \phi_i / q_c`,

    .. math::

        \min_{\text{labels}} \; \sum_i w_i \| \phi_i - m_{c(i)} \|^2
        = \sum_i w_i C_{ii} - \sum_c q_c \bar C_{cc}.

    It keeps the trace of the coarse similarity; the barycentre keeps its squared norm, and the
    two agree where C has rank one, not in general. Lloyd's iterations, then single points that
    change their cluster while that lowers the objective, means following.

    Source: Dhillon, Guan and Kulis (2004), as section 4.2 of Van Assel et al. (2024) uses it; book
    ``prp-kernel-kmeans``.

    Parameters
    ----------
    gram : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`, positive semi-definite, or conditionally so: only differences count.
    n_clusters : int
        :math:`k`, from 1 to n.
    weights_x : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.
    init : {"kmeans", "spectral", "random"}, several of them, (n, k) plan, or result
        As for :func:`srgw_barycenter`.
    n_starts : int
        Starts of each kind.
    max_iter : int
        Iterations from each start; each lowers the objective.
    random_state : int, numpy Generator or torch Generator
        Same seed, same labels on the same device.

    Returns
    -------
    KernelKMeans
        ``labels`` and the ``objective``, a mean over the weights.

    Raises
    ------
    ValueError
        As :func:`srgw_barycenter`.

    Notes
    -----
    One product of C with an (n, k) matrix an iteration.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [9.0], [10.0]]).double()
    >>> found = kernel_kmeans(X @ X.T, 2)
    >>> found.objective, bool(found.labels[0] == found.labels[1])
    (0.25, True)
    """
    cost = as_structure(gram, "gram", "square")
    n, _ = cost.shape
    k = check_count("n_clusters", n_clusters, 1, n)
    n_starts = check_count("n_starts", n_starts, 1)
    max_iter = check_count("max_iter", max_iter, 1)
    w = as_weights(weights_x, n, cost)
    contraction, rng = alone(centred(cost, w), w), as_rng(random_state)
    diagonal, kinds = contraction.diagonal(), as_init(init, w, k, get_args(Init))
    given = [kinds.argmax(dim=1)] if isinstance(kinds, Tensor) else []
    names = () if isinstance(kinds, Tensor) else kinds
    drawn = (_labels(name, cost, w, k, rng) for name in names for _ in range(n_starts))
    best: KernelKMeans | None = None
    values: list[float] = []
    for start in chain(given, drawn):
        labels, value, steps = lloyd(contraction, diagonal, w, start, k, max_iter)
        values.append(value)
        if best is None or value < best.objective:
            best = KernelKMeans(labels, value, steps, ())
    assert best is not None
    return best._replace(values=tuple(values))
