r"""Barycentres of one similarity, and how they leave local minima (Chapter 13).

For a plan T with column sums q the best structure is :math:`\bar C = T^\top C T / (q q^\top)`, for
both losses, and what is left is :math:`\sum f_1(C_{ij}) w_i w_j - \sum q_k q_l f_1(\bar C_{kl})`.
A piece of a plan that changes its cluster, be it a point, half a cluster or all of it, changes two
rows and columns of :math:`T^\top C T`: so what it gains is known before it is tried.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from typing import TypeVar

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import normalize, pad

from .._core.algebra import ratio, total
from .._core.chance import Seed, as_rng
from .._core.checks import as_count, as_flag
from .._core.run import OnFailure, read_limits
from .._core.threads import by_size
from .contraction import EMPTY, SMALL, Fixed, PlanProblem, Problem, State, hard_plan, standard
from .descent import row_moves
from .loss import LossName, as_loss
from .objective import exact_objective
from .reading import as_similarity, as_weights
from .search import Iterates, PlanCallback, SemiRelaxedGW, end_of, in_turn, lower_by, multistart
from .starts import Clusters, HardInit, as_init, shuffled, starts

_PAYS = 0.3  # of the best gain of one row: what the moves of several together have to gain
_FINER = 1e-3  # of the tolerance: a smaller gain of one row is none
_PARTS = 5  # rounds of moves of parts before the structure follows
_TRIES = 16  # pairs of a merge and a split that are tried before the search ends
_FEW = 16  # merges of which the pairs are made
_DEALS = 8  # for each start, that lead nowhere
_POWERS = 8  # steps towards the leading direction of a cluster


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SemiRelaxedBarycenter(SemiRelaxedGW):
    """A barycentre: a small similarity that stands for a large one, and the plan between."""

    structure: Tensor  #: (k, k) Cbar, of the clusters, 0 in the rows of an empty one


@by_size
def srgw_barycenter(
    similarity,
    n_clusters: int,
    *,
    weights: ArrayLike | None = None,
    loss: LossName = "square",
    init: HardInit | Sequence[HardInit] | ArrayLike | SemiRelaxedGW = ("kmeans", "spectral"),
    n_starts: int = 4,
    refine: bool = True,
    tol: float | None = None,
    max_iter: int = 1000,
    random_state: Seed = 0,
    callback: PlanCallback | None = None,
    on_failure: OnFailure = "raise",
) -> SemiRelaxedBarycenter:
    r"""Solve for the semi-relaxed Gromov-Wasserstein barycentre of a similarity with k points.

    .. math::

        \min_{\bar C \in \mathbb R^{k \times k}} \; \min_{T \ge 0, \, T \mathbf 1 = w} \;
        E_L(C, \bar C, T).

    For a plan with column sums q the best :math:`\bar C` is :math:`T^\top C T / (q q^\top)`, the
    mean of C between clusters; what is left is a function of the plan, concave for ``"square"``
    when C or -C is conditionally positive definite, so that some best plan is hard.
    Conditional gradient lowers that function. With ``refine``, points are then reassigned, many at
    a time or one, with :math:`\bar C` following, and parts of points where a gap is left; and at
    the best end of all starts two clusters are merged and a third is split, for as long as that
    leads lower. Then the points of two clusters are dealt to these anew by chance, until many
    deals in turn lead nowhere.

    Source: (srGWB) in section 4.2, lemma D.1 and theorem 4.1 of Van Assel et al. (2024); book
    ``lem-reduced-barycenter``, ``thm-hard-plans`` and ``alg-barycenter``.

    Parameters
    ----------
    similarity : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`. Non-negative for ``"kl"``.
    n_clusters : int
        :math:`k`, from 1 to n. Some clusters may stay empty.
    weights : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.
    loss : {"square", "kl"}
    init : {"kmeans", "spectral", "random"}, several of them, (n, k) plan, or result
        Where the clusters start: k-means on the points of C or on its leading eigenvectors (both
        by default), or labels by chance. A plan, or an earlier result, is one start.
    n_starts : int
        Starts of each kind; the search ends after 8 times as many deals in turn that led nowhere,
        and none follows a plan. All ends may agree above the best: fit from two seeds, the lower
        ``objective`` wins. Of a graph's adjacency matrix ask for more starts, and of all kinds.
    refine : bool
        Whether to end with moves of single points, merges, splits and deals.
    tol : float, optional
        Largest accepted Frank-Wolfe gap of the reduced objective, as a share of
        :math:`\sum_{ij} (C_{ij} - m)^2 w_i w_j` with :math:`m = w^\top C w` (``"kl"``: of m).
        Default 1e-9 in float64, 1e-4 in float32.
    max_iter : int
        Iterations from each start.
    random_state : int, numpy Generator or torch Generator
        Same seed, same plan on the same device.
    callback : callable, optional
        Called as ``callback(iteration, residual, plan)``, starts counted on; true ends the run:
        the best plan so far is returned.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    SemiRelaxedBarycenter
        ``structure`` (k, k) in the unit of C, ``plan`` (n, k) of total mass 1, ``labels``, and
        what :func:`semi_relaxed_gw` reports; the ``objective`` can be lower than all ``ends``.

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
    C = as_similarity(similarity, "similarity", as_loss(loss))
    tol, max_iter = read_limits(tol, max_iter, on_failure, C.dtype)
    n, _ = C.shape
    k = as_count("n_clusters", n_clusters, 1, n)
    n_starts = as_count("n_starts", n_starts, 1)
    refine = as_flag("refine", refine)
    w, rng = as_weights(weights, n, C), as_rng(random_state)
    kinds = as_init(init, w, k, HardInit)
    terms, unit = standard(C, w, as_loss(loss))
    problem, clusters = Reduced(terms, k), Clusters(terms.C, w, k, rng)
    paths = (whole_steps, reassign, polish) if refine else (whole_steps,)
    steps, *singles = (partial(path, problem, tol=tol) for path in paths)
    moves, descend = partial(in_turn, singles), partial(in_turn, [steps, *singles])

    def merging(state: Fitted) -> Iterator[Fitted]:
        for new in merged(problem, state, clusters.points(spectral=False)):
            yield end_of(moves(new), 1 + max_iter)

    def dealing(state: Fitted) -> Iterator[Fitted]:
        for _ in range(_DEALS * n_starts):
            yield end_of(steps(problem.state(shuffled(state.T, 2, rng))), 1 + max_iter)

    drawn = k > 1 and not isinstance(kinds, Tensor)
    trials = [f for f, use in ((merging, k > 2), (dealing, drawn)) if use and refine]
    search = [partial(lower_by, problem, trials=f, moves=moves) for f in trials]
    states = map(problem.state, starts(kinds, n_starts, clusters.plan))
    found = multistart(
        "srgw_barycenter", states, descend, problem.report, max_iter, callback, search
    )
    state = problem.state(found.state.T)  # without the rounding of the steps
    structure = torch.where(torch.outer(state.q, state.q) > 0, unit.entries(state.structure), 0)
    objective = exact_objective(C, structure, terms.loss, state.T)
    return found.conclude(
        SemiRelaxedBarycenter, tol, on_failure, objective, unit,
        plan=state.T, structure=structure, products=terms.products,
    )  # fmt: skip


@dataclass(eq=False)
class Grouped(State):
    """Of a plan whose columns are clusters."""

    CT: Tensor  # (n, k) C T


GroupedT = TypeVar("GroupedT", bound=Grouped)


class Grouping(PlanProblem[GroupedT]):
    """A problem whose structure, or means, follow the plan."""

    @abstractmethod
    def changes(self, state: GroupedT, home: Tensor, mass: Tensor) -> Tensor:
        """Of the objective, when row i sends some mass from its home_i to b, (n, k)."""

    def partway(self, state: GroupedT, end: GroupedT, g: Tensor) -> GroupedT:
        """A plan between two, where it is lower than both: of a concave function there is none."""
        return end


@dataclass(eq=False)
class Fitted(Grouped):
    """With the structure that fits the plan best."""

    M: Tensor  # (k, k) T^T C T
    structure: Tensor  # (k, k)


class Reduced(Grouping[Fitted]):
    """min over Cbar of E_L(C, Cbar, T)."""

    def state(self, T: Tensor, CT: Tensor | None = None) -> Fitted:
        c = self.terms.couple(T, CT)
        value = self.constant - total(self.kept(c.M, torch.outer(c.q, c.q)))
        return Fitted(T, c.q, value, c.CT, c.M, c.means)

    def kept(self, M: Tensor, mass: Tensor) -> Tensor:
        """mass f1(M / mass), entry by entry; 0 for an empty cluster."""
        loss = self.terms.loss
        return mass * loss.f1(ratio(M, mass).clamp(loss.low, loss.high))  # where rounding left it

    def half_gradient(self, state: Fitted) -> Tensor:
        """That at the fixed structure."""
        fixed, at = self.at(state)
        return fixed.half_gradient(at)

    def at(self, state: Fitted) -> tuple[Problem, Fixed]:
        """The problem at the structure of a state, and the plan there."""
        fixed = Problem(self.terms, state.structure)
        return fixed, fixed.state(state.T, state.CT @ fixed.h2)

    def partway(self, state: Fitted, end: Fitted, g: Tensor) -> Fitted:
        """By the best length at the fixed structure, whose objective lies above the reduced one and
        touches it at the plan, so that both fall.
        """
        D, CD, (fixed, _) = end.T - state.T, end.CT - state.CT, self.at(state)
        t = fixed.line(D, CD @ fixed.h2, g).minimum()
        return self.state(state.T + t * D, state.CT + t * CD)

    def changes(self, state: Fitted, home: Tensor, mass: Tensor) -> Tensor:
        U, own = mass[:, None] * state.CT, mass.square() * self.terms.diagonal
        moves = (self.change(state.M, state.q, home, b, mass, U, own) for b in range(self.k))
        return torch.stack(list(moves), dim=1)

    def change(
        self, M: Tensor, q: Tensor, home: Tensor, b: int, mass: Tensor, U: Tensor, own: Tensor
    ) -> Tensor:
        """Of the reduced objective, when one of m pieces goes from its home to b, (m,).

        ``mass`` (m,) is that of the pieces, ``U`` (m, k) their part of M with each cluster, and
        ``own`` (m,) with themselves.
        """
        mass = torch.where(q[home] - mass > EMPTY * q.max(), mass, q[home])
        ends = torch.stack([home, torch.full_like(home, b)])  # (2, m)
        sign = torch.tensor([[-1.0], [1.0]]).to(q)
        E = torch.zeros_like(U)  # (m, k) -1 at home, 1 at b
        E.scatter_(1, ends.T, sign.T.expand(len(U), 2))
        # M + E U^T + U E^T + own E E^T, rows a and b
        after = M[ends] + sign[:, :, None] * (U + own[:, None] * E)
        after += U.gather(1, ends.T).T[:, :, None] * E
        after = self.kept(after, (q[ends] + sign * mass)[:, :, None] * (q + mass[:, None] * E))
        change = self.kept(M[ends], q[ends][:, :, None] * q) - after  # (2, m, k)
        # a pair of a or b with another counts twice
        corners = change.gather(2, ends.T.expand(2, -1, -1)).sum(dim=(0, 2))
        return torch.where(home == b, 0, 2 * change.sum(dim=(0, 2)) - corners)


def whole_steps(problem: Grouping[GroupedT], state: GroupedT, tol: float) -> Iterates[GroupedT]:
    """Conditional gradient: all of the way where that pays, as it does where the objective is
    concave, else a part. Of kernel k-means it is Lloyd's iteration.
    """
    while True:
        yield state
        g, _, labels, gap = problem.oracle(state)
        if gap <= tol:
            return
        new = problem.hard(labels)
        if new.value > state.value - SMALL * problem.scale:
            new = problem.partway(state, new, g)
        if not new.value < state.value - SMALL * problem.scale:
            return
        state = new


def reassign(problem: Grouping[GroupedT], state: GroupedT, tol: float) -> Iterates[GroupedT]:
    """Move single rows between clusters, the structure following, while that pays.

    The change of the reduced objective has a closed form, O(k) for each of the n k candidates.
    Many rows move together when that pays, fewer otherwise. Ends when no single row gains.
    """
    bound, most = max(SMALL, _FINER * tol) * problem.scale, problem.n
    while True:
        yield state
        mass, home = state.T.max(dim=1)
        changes = problem.changes(state, home, mass)
        gain = changes.min(dim=1).values
        # the first that gains as much: rounding does not choose between empty clusters
        target = (changes <= gain[:, None] + SMALL * problem.scale).int().argmax(dim=1)
        D = hard_plan(target, mass, problem.k) - hard_plan(home, mass, problem.k)
        rows = gain.argsort()[: int((gain < -bound).sum())]  # those that gain most first
        count = min(most, len(rows))
        while count:
            some, T = rows[:count], state.T.clone()
            T[some] += D[some]
            new = problem.state(T, state.CT + problem.terms.columns(some, D[some]))
            if new.value - state.value <= _PAYS * float(gain[rows[0]]):
                break
            count = count // 4 or int(count > 1)
        else:
            return  # what is left is rounding
        state, most = new, 2 * count


def polish(problem: Reduced, state: Fitted, tol: float) -> Iterates[Fitted]:
    """Parts of the mass of single rows at the fixed structure, then the structure, in turn.

    For the points that a similarity which is not conditionally definite leaves between clusters.
    """
    while True:
        yield state
        if problem.gap(state) <= tol:
            return
        fixed, start = problem.at(state)
        T = end_of(row_moves(fixed, start, tol, exchanges=False), 1 + _PARTS).T
        new = problem.state(T)
        if new.value > state.value + SMALL * problem.scale or bool((T == state.T).all()):
            return
        state = new


def merged(problem: Reduced, state: Fitted, points: Tensor) -> Iterator[Fitted]:
    """States with two clusters merged and a third split, the most promising first.

    ``points`` (n, r) say how to split.
    """
    labels = state.T.argmax(dim=1)
    upper = upper_halves(points, labels, problem.w, problem.k)
    for a, b, c in promising(merges(problem, state), splits(problem, state, upper)):
        trial = torch.where(labels == b, a, labels)
        yield problem.hard(torch.where((labels == c) & upper, b, trial))


def promising(merges: Tensor, splits: Tensor) -> list[tuple[int, ...]]:
    """Merges of a and b, with splits of another c, that change the objective least."""
    k, lowest = len(splits), merges.flatten().argsort(stable=True)[:_FEW].tolist()
    merged, halved = merges.tolist(), splits.tolist()
    pairs = [
        (merged[a][b] + halved[c], a, b, c)
        for a, b in (divmod(place, k) for place in lowest)
        for c in range(k)
        if c not in (a, b)
    ]
    return [tuple(pair[1:]) for pair in nsmallest(_TRIES, pairs) if pair[0] < math.inf]


def merges(problem: Reduced, state: Fitted) -> Tensor:
    """The change of the objective when clusters a < b become one, (k, k); inf elsewhere."""
    M, q = state.M, state.q
    a = torch.arange(len(q), device=q.device)
    found = [problem.change(M, q, a, b, q, M, M.diagonal()) for b in range(len(q))]
    return torch.stack(found, dim=1).masked_fill(a[:, None] >= a, torch.inf)


def splits(problem: Reduced, state: Fitted, upper: Tensor) -> Tensor:
    """The change of the objective when a cluster's upper half becomes one more, (k,)."""
    H = torch.where(upper[:, None], state.T, 0.0)  # (n, k)
    c = problem.terms.couple(H)
    U, own, half = c.CT.T @ state.T, c.M.diagonal(), c.q  # (k, k), (k,), (k,)
    M, q = pad(state.M, (0, 1, 0, 1)), pad(state.q, (0, 1))  # with an empty cluster
    each = torch.arange(problem.k, device=q.device)
    found = problem.change(M, q, each, problem.k, half, pad(U, (0, 1)), own)
    return torch.where((half > 0) & (half < state.q), found, torch.inf)


def upper_halves(points: Tensor, labels: Tensor, w: Tensor, k: int) -> Tensor:
    """Which points lie beyond the mean of their cluster along its leading direction, (n,)."""
    member = hard_plan(labels, w, k)  # (n, k)
    mass = member.sum(dim=0)
    mass = torch.where(mass > 0, mass, 1)
    X = points - ((member.T @ points) / mass[:, None])[labels]
    X = X / X.abs().max().clamp_min(torch.finfo(X.dtype).tiny)
    ways = X[hard_plan(labels, X.square().sum(dim=1), k).argmax(dim=0)]  # (k, r) to the farthest
    for _ in range(_POWERS):
        along = (X * ways[labels]).sum(dim=1)
        ways = normalize(member.T @ (along[:, None] * X), dim=1)
    return (X * ways[labels]).sum(dim=1) > 0
