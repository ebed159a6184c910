r"""Barycentres of one similarity, and how they leave local minima (Chapter 11).

A merge of clusters a and b adds rows and columns of :math:`T^\top C T`, and a split of c needs the
product of C with one half of it; all splits together take one product. So the change that each
merge or split makes is known before any is tried, and the pairs that promise most are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import get_args

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import Seed, as_rng, check_choice, check_count
from .._core.run import OnFailure, lowest, read_limits
from .contraction import Loss, as_structure, as_weights, hard_plan, standard
from .descent import SMALL, descent, end_of
from .reduced import Cell, Reduced, reduced_descent, refined
from .semirelaxed import Callback, SemiRelaxedGW, as_init
from .starts import Clusters as Init
from .starts import features, hard_start, starts

_TRIES = 16  # pairs of a merge and a split that are tried before the search ends
_FEW = 16  # merges, and splits, of which the pairs are made
_POWERS = 8  # steps towards the leading direction of a cluster


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
    init: Init | Sequence[Init] | ArrayLike | SemiRelaxedGW = "kmeans",
    n_starts: int = 4,
    refine: bool = True,
    tol: float | None = None,
    max_iter: int = 1000,
    random_state: Seed = 0,
    callback: Callback | None = None,
    on_failure: OnFailure = "raise",
) -> SemiRelaxedBarycenter:
    r"""Solve for the semi-relaxed Gromov-Wasserstein barycentre of a similarity with k points.

    .. math::

        \min_{\bar C \in \mathbb R^{k \times k}} \; \min_{T \ge 0, \, T \mathbf 1 = w} \;
        E_L(C, \bar C, T).

    For a plan with column sums q the best :math:`\bar C` is :math:`T^\top C T / (q q^\top)`, the
    mean of C between clusters; what is left is a function of the plan, concave for ``"square"``
    when C or -C is conditionally positive definite, so that some best plan is hard.
    Conditional gradient lowers that function. With ``refine``, points are then moved one by one,
    with :math:`\bar C` following, while that lowers the objective; and at the best end of all
    starts two clusters are merged and a third is split, for as long as that leads lower.

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
    cost = as_structure(cost_x, "cost_x", loss)
    tol, max_iter = read_limits(tol, max_iter, on_failure, cost.dtype)
    n, _ = cost.shape
    k = check_count("n_clusters", n_clusters, 1, n)
    n_starts = check_count("n_starts", n_starts, 1)
    w, rng = as_weights(weights_x, n, cost), as_rng(random_state)
    kinds = as_init(init, w, k, get_args(Init))
    seen, unit = standard(cost, w, loss)
    problem = Reduced(seen, w, k)

    def moves(cell: Cell) -> Iterator[tuple[Cell, float]]:
        return islice(refined(problem, cell, tol), 1 + max_iter)

    def descend(plan: Tensor) -> Iterator[tuple]:
        steps = reduced_descent(problem, problem.cell(plan))
        return descent(steps, problem.scale, tol, moves if refine else None)

    def finish(cell: Cell, gap: float) -> Iterator[tuple]:
        yield cell, gap
        if refine and k > 2:
            points = features(cost, w, k, rng)
            for lower in merge_and_split(problem, cell, points, moves):
                yield lower, problem.slope(lower), lower.T

    plans = starts(kinds, n_starts, partial(hard_start, cost, w, k, rng))
    found = lowest("srgw_barycenter", plans, descend, max_iter, callback, finish)
    cell = problem.cell(found.state.T)  # without the rounding of the steps
    return SemiRelaxedBarycenter(
        plan=cell.T,
        structure=torch.where(torch.outer(cell.q, cell.q) > 0, unit.entries(cell.structure), 0),
        objective=unit.objectives([found.state.value])[0],
        residual=found.residual,
        n_iter=found.n_iter,
        converged=found.settle("srgw_barycenter", tol, on_failure),
        trace=unit.objectives(found.trace),
        values=unit.objectives(found.values),
        products=problem.products,
    )


def merge_and_split(
    problem: Reduced,
    cell: Cell,
    points: Tensor,
    moves: Callable[[Cell], Iterable[tuple[Cell, float]]],
) -> Iterator[Cell]:
    """Cells of ever lower value: clusters merged and split, then led down by ``moves``.

    Ends when none of the most promising pairs leads lower. ``points`` (n, r) say how to split.
    """
    improved = True
    while improved:
        improved = False
        labels = cell.T.argmax(dim=1)
        upper = _upper(points, labels, problem.w, problem.k)
        for a, b, c in _promising(_merges(problem, cell), _splits(problem, cell, upper)):
            trial = torch.where(labels == b, a, labels)
            trial = torch.where((labels == c) & upper, b, trial)
            new = end_of(moves(problem.hard(trial)))
            if new.value < cell.value - SMALL * problem.scale:
                cell, improved = new, True
                yield cell
                break


def _promising(merges: Tensor, splits: Tensor) -> list[tuple[int, int, int]]:
    """Merges of a and b, with splits of another c, that change the objective least."""
    k = len(splits)
    values, places = merges.flatten().sort(stable=True)
    pairs = [
        (float(value) + float(splits[c]), int(place) // k, int(place) % k, int(c))
        for value, place in zip(values[:_FEW], places[:_FEW], strict=True)
        for c in splits.argsort(stable=True)[:_FEW]
    ]
    apart = [pair for pair in sorted(pairs) if pair[0] < torch.inf and pair[3] not in pair[1:3]]
    return [pair[1:] for pair in apart[:_TRIES]]


def _merges(problem: Reduced, cell: Cell) -> Tensor:
    """The change of the objective when clusters a < b become one, (k, k); inf elsewhere."""
    M, q, k = cell.M, cell.q, problem.k
    found = torch.full_like(M, torch.inf)
    terms = problem.terms(M, q)
    corner = terms.diagonal()
    for a in range(k):
        row, mass = M[a] + M[a + 1 :], q[a] + q[a + 1 :]  # (m, k), (m,)
        both = problem.weighed(row, mass[:, None] * q)
        own = M[a, a] + M.diagonal()[a + 1 :] + 2 * M[a, a + 1 :]
        inside = both[:, a] + both[:, a + 1 :].diagonal()
        after = 2 * (both.sum(dim=1) - inside) + problem.weighed(own, mass.square())
        before = 2 * (terms[a].sum() + terms[a + 1 :].sum(dim=1) - terms[a, a + 1 :])
        before = before - corner[a] - corner[a + 1 :]
        found[a, a + 1 :] = before - after
    return found


def _splits(problem: Reduced, cell: Cell, upper: Tensor) -> Tensor:
    """The change of the objective when a cluster's upper half becomes one more, (k,)."""
    H = torch.where(upper[:, None], cell.T, 0.0)  # (n, k)
    CH = problem.contraction.cost @ H
    problem.products += 1
    q, half = cell.q, H.sum(dim=0)
    lower = q - half
    with_upper = cell.T.T @ CH  # (k, k) of cluster l with the upper half of c, in l, c
    with_lower = cell.M - with_upper
    own = (H.T @ CH).diagonal()
    cross = with_upper.diagonal() - own
    terms = problem.terms(cell.M, q)
    up = problem.weighed(with_upper, torch.outer(q, half))
    low = problem.weighed(with_lower, torch.outer(q, lower))
    after = 2 * (up + low).sum(dim=0) - 2 * (up + low).diagonal()
    after = after + problem.weighed(own, half.square()) + 2 * problem.weighed(cross, half * lower)
    after = after + problem.weighed(cell.M.diagonal() - own - 2 * cross, lower.square())
    before = 2 * terms.sum(dim=0) - terms.diagonal()
    return torch.where((half > 0) & (lower > 0), before - after, torch.inf)


def _upper(points: Tensor, labels: Tensor, w: Tensor, k: int) -> Tensor:
    """Which points lie beyond the mean of their cluster along its leading direction, (n,)."""
    member = hard_plan(labels, w, k)  # (n, k)
    mass = member.sum(dim=0)
    mass = torch.where(mass > 0, mass, 1)
    X = points - ((member.T @ points) / mass[:, None])[labels]
    X = X / X.abs().max().clamp_min(torch.finfo(X.dtype).tiny)
    ways = X[hard_plan(labels, X.square().sum(dim=1), k).argmax(dim=0)]  # (k, r) to the farthest
    for _ in range(_POWERS):
        along = (X * ways[labels]).sum(dim=1)
        ways = torch.nn.functional.normalize(member.T @ (along[:, None] * X), dim=1)
    return (X * ways[labels]).sum(dim=1) > 0
