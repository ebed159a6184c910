"""Semi-relaxed Gromov-Wasserstein: the second marginal is learned (Chapter 12)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from torch import Tensor

from .._core.checks import Seed, as_rng, check_choice, check_count, check_positive
from .._core.eigen import EXTRA, leading
from .._core.run import OnFailure, lowest, read_limits
from .._core.saving import Saved
from .._core.threads import by_size
from ..costs.array import Pairwise
from .contraction import (
    as_coupling,
    as_weights,
    contraction,
    hard_plan,
    ratio,
    standard,
    with_rows,
)
from .descent import SMALL, Problem, State, conditional_gradient, descent, mirror_descent
from .loss import LossName
from .moves import lowest_plan, row_moves

Init = Literal["kmeans", "spectral", "random", "product"]
Clusters = Literal["kmeans", "spectral", "random"]
Solver = Literal["conditional_gradient", "mirror_descent"]
Callback = Callable[[int, float, Tensor], bool | None]

_SOFT = 0.1  # a mirror descent cannot leave a plan's zeros: this share of it starts uniform
_ROUGH = 1e-5  # gap at which a start has shown where it leads
_MATCHED = 1e-6  # gap at which a match of clusters is good enough to start from
_EIGEN = {torch.float64: 1e-8, torch.float32: 1e-5}  # residual of an eigenvector
_LEADING = 1e-2  # residual of those that show clusters, of the square of C
_STEPS = 500
_DEALS = 30  # for each start, that lead nowhere
_BRIEFLY = 10  # rounds of moves after a deal
_TRIES = 8  # starts of a match, beside the product


@dataclass(frozen=True, kw_only=True, repr=False)
class SemiRelaxedGW(Saved):
    """A plan whose row sums are given and whose column sums are learned."""

    plan: Tensor  # (n, k) T, of total mass 1
    objective: float  # E_L(T)
    residual: float  # Frank-Wolfe gap over the scale of E_L: what `tol` bounded
    n_iter: int  # of the best start
    converged: bool
    trace: tuple[float, ...]  # E_L at the best start and after each of its iterations
    values: tuple[float, ...]  # E_L reached from each start
    products: float  # products of C with an (n, k) matrix, all starts together

    @property
    def weights(self) -> Tensor:
        """The learned weights, (k,), the column sums of the plan."""
        return self.plan.sum(dim=0)

    @property
    def labels(self) -> Tensor:
        """Where most of each point's mass goes, (n,); -1 of a point without mass."""
        return self.plan.argmax(dim=1).masked_fill(~self.plan.any(dim=1), -1)

    @property
    def n_starts(self) -> int:
        """How many starts were tried."""
        return len(self.values)

    def __repr__(self) -> str:
        n, k = self.plan.shape
        return (
            f"{type(self).__name__}({n} x {k}, objective={self.objective:.6g}, "
            f"residual={self.residual:.1e}, n_iter={self.n_iter}, n_starts={self.n_starts})"
        )


@by_size
def semi_relaxed_gw(
    cost_x,
    cost_z,
    *,
    weights_x: ArrayLike | None = None,
    loss: LossName = "square",
    solver: Solver = "conditional_gradient",
    init: Init | Sequence[Init] | ArrayLike | SemiRelaxedGW = ("kmeans", "spectral", "random"),
    n_starts: int = 4,
    refine: bool = True,
    epsilon: float | None = None,
    tol: float | None = None,
    max_iter: int = 10_000,
    random_state: Seed = 0,
    callback: Callback | None = None,
    on_failure: OnFailure = "raise",
) -> SemiRelaxedGW:
    r"""Solve the semi-relaxed Gromov-Wasserstein problem of two similarities.

    .. math::

        \min_{T \ge 0} \; \sum_{ijkl} L(C_{ij}, \bar C_{kl}) \, T_{ik} T_{jl}
        \quad \text{s.t.} \quad T \mathbf 1 = w,

    which is Gromov-Wasserstein minimised over the second weights too. Conditional gradient steps
    towards the plan that the gradient likes best, by the length that is best along it; mirror
    descent multiplies the plan by :math:`e^{-\nabla E_L / \varepsilon}` and rescales its rows.
    The problem is not convex: several starts are tried. With ``refine`` mass of single rows is
    moved wherever that lowers the objective, each by its best amount, from the start in place of
    conditional gradient and after mirror descent; two columns change places where no row gains any
    more; and from the lowest end the rows of some columns are dealt anew by chance and moved
    again. The objective falls at each iteration (but for a fixed ``epsilon``), and the best plan
    is returned.

    Source: (srGW) in section 4.1 and appendix E of Van Assel et al. (2024); book
    ``alg-srgw`` and ``prp-low-rank``.

    Parameters
    ----------
    cost_x : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`. Non-negative for ``"kl"``.
    cost_z : array_like, Pairwise or Factored, shape (k, k), symmetric
        :math:`\bar C`. Where it is 0 and :math:`C > 0`, ``"kl"`` is infinite, and plans that
        match the two are avoided.
    weights_x : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.
    loss : {"square", "kl"}
        :math:`(a - b)^2` or :math:`a \log(a / b) - a + b`.
    solver : {"conditional_gradient", "mirror_descent"}
    init : name or names of starts, array_like of shape (n, k), or SemiRelaxedGW
        ``"kmeans"`` clusters the points of C, ``"spectral"`` its leading eigenvectors, and both
        send whole clusters where they fit best; ``"random"`` splits each row by chance,
        ``"product"`` evenly. A plan with row sums w, or an earlier result, is one start.
    n_starts : int
        Starts of each kind that draws at random. The search from the lowest end is over after
        30 times as many deals in turn that led nowhere.
    refine : bool
        Whether to move single rows, exchange columns and deal anew; after mirror descent from the
        first step that gains less than 2 % of what its gap promised.
    epsilon : float, optional
        :math:`\varepsilon` of mirror descent, in units of the gradient. Default: adapted so that
        the objective falls.
    tol : float, optional
        Largest accepted Frank-Wolfe gap
        :math:`\max_S \langle \nabla E_L(T), T - S \rangle`, as a share of
        :math:`\sum_{ij} (C_{ij} - m)^2 w_i w_j` plus the mean of :math:`(\bar C_{kl} - m)^2`, with
        :math:`m = w^\top C w` (``"kl"``: of m plus the mean of :math:`\bar C`). Default 1e-9 in
        float64, 1e-4 in float32.
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
    SemiRelaxedGW
        ``plan`` with rows of sum w (total mass 1), the learned ``weights``, the ``objective``,
        the ``trace`` of the best start and the ``values`` of all.

    Raises
    ------
    ValueError
        If a similarity is not symmetric, weights are no weights, ``init`` does not fit, or under
        ``"kl"`` no start reached a finite objective.
    NotConverged
        If the best start did not reach ``tol`` and ``on_failure="raise"``.

    Notes
    -----
    One product of C with an (n, k) matrix an iteration, :math:`O(n^2 k)`, or fewer rows of it
    once few points move; :math:`O(n r k)` for a factored C. Moves of rows are compiled at the first
    call, within a second. Not differentiable.

    Examples
    --------
    >>> import torch
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double()
    >>> found = semi_relaxed_gw(C, torch.eye(2).double())
    >>> round(found.objective, 12), sorted(round(x, 3) for x in found.weights.tolist())
    (0.0, [0.333, 0.667])
    """
    terms = contraction(cost_x, cost_z, loss)
    check_choice("solver", solver, get_args(Solver))
    tol, max_iter = read_limits(tol, max_iter, on_failure, terms.cost.dtype)
    n_starts = check_count("n_starts", n_starts, 1)
    w = as_weights(weights_x, terms.n, terms.cost)
    seen, unit = standard(terms.cost, w, loss, terms.structure)
    if epsilon is not None:
        epsilon = check_positive("epsilon", epsilon) / unit.size / unit.size
    problem = Problem(seen, w)
    kinds, moves = as_init(init, w, terms.k), row_moves if refine else None
    most = _DEALS * (1 if isinstance(kinds, Tensor) else n_starts)
    rng = as_rng(random_state)

    def steps(plan: Tensor) -> Iterator[tuple]:
        if solver == "mirror_descent":
            return mirror_descent(problem, problem.state(plan), epsilon)
        found = conditional_gradient(problem, problem.state(plan))
        return islice(found, 1) if refine else found  # rows move from the start

    def roughly(plan: Tensor) -> Iterator[tuple]:
        if solver == "mirror_descent" and bool((plan == 0).any()):
            plan = (1 - _SOFT) * plan + _SOFT * w[:, None] / problem.k
        return descent(problem, steps(plan), max(tol, _ROUGH), moves)

    def finish(state: State, gap: float) -> Iterator[tuple]:
        for now, *more in descent(problem, steps(state.T), tol, moves):
            yield now, *more
        if refine and problem.k > 1:
            for lower in dealt(problem, now, tol, most, rng):
                yield lower, problem.gap(lower), lower.T

    draw = clusters(terms.cost, w, min(terms.k, terms.n), rng)
    plans = starts(kinds, n_starts, partial(soft_start, problem, draw, rng))
    found = lowest("semi_relaxed_gw", plans, roughly, max_iter, callback, finish)
    rounding = torch.finfo(w.dtype).eps * w[:, None]  # what the steps left of what went elsewhere
    T = with_rows(found.state.T.masked_fill(rounding >= found.state.T, 0), w)
    objective = problem.objective(T)
    if objective == float("inf") and found.interrupt is None:
        raise ValueError(
            f"loss={loss!r} is infinite at every plan that was found: positive entries of cost_x "
            "meet zeros of cost_z; add a small positive number to cost_z, or try other starts"
        )
    least = min(found.values)
    result = SemiRelaxedGW(
        plan=T,
        objective=unit.objectives([objective])[0],
        trace=unit.objectives((*found.trace[:-1], objective)),
        values=unit.objectives(objective if end == least else end for end in found.values),
        products=problem.products,
        **found.certificate(tol, on_failure),
    )
    return found.give(result)


def as_init(
    init, w: Tensor, k: int, names: tuple[str, ...] = get_args(Init)
) -> tuple[str, ...] | Tensor:
    """Names of starts, or one plan with the row sums w."""
    if isinstance(init, str):
        init = (init,)
    if isinstance(init, Sequence) and init and all(isinstance(name, str) for name in init):
        for name in init:
            check_choice("init", name, names)
        return tuple(init)
    plan = getattr(init, "plan", init)
    return as_coupling(plan, "init", len(w), k, w, weights_x=w)


def clusters(
    cost: Pairwise, w: Tensor, k: int, rng: np.random.Generator
) -> Callable[[str], Tensor]:
    """Labels (n,) below k by the name of a start: by chance, or by k-means on the points of C or
    on its leading eigenvectors, which are found once.
    """
    points = cache(lambda unit: features(cost, w, k, rng, unit=unit))

    def draw(name: str) -> Tensor:
        if name == "random":
            return torch.from_numpy(rng.integers(k, size=len(w))).to(w.device)
        return kmeans_labels(points(name == "spectral"), k, rng, weights=w)

    return draw


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
    of its eigenvalue's size. ``unit`` puts each row of the bare eigenvectors on the sphere, as
    spectral clustering does.
    """
    if not unit and cost.parts is not None and "other" not in cost.parts:
        for name in ("sqeuclidean", "student", "points", "left"):
            if name in cost.parts:
                return cost.parts[name]
    root = w.sqrt()[:, None]

    def product(V: Tensor) -> Tensor:
        return root * (cost @ (root * V))

    V = torch.from_numpy(rng.standard_normal((len(w), min(len(w), k + EXTRA)))).to(w)
    V = torch.linalg.qr(product(V)).Q
    image = product(V)
    size = image.abs().max() or 1.0
    size = size * (image / size).norm(dim=0).max().clamp_min(1)  # nearly the largest eigenvalue
    V = leading(lambda V: product(product(V) / size) / size, V, k, _LEADING)[1].to(w)
    values, vectors = torch.linalg.eigh(V.T @ product(V))
    V = V @ vectors  # (n, k)
    if unit:
        return torch.nn.functional.normalize(V, dim=1)
    return torch.where(root > 0, V * values.abs().sqrt() / root, 0.0)


def spectral_labels(weights: Tensor, k: int, rng: np.random.Generator) -> Tensor:
    """Spectral clustering of a graph as scikit-learn defines it, but for the eigensolver.

    scikit-learn factorises a dense graph, n^3 operations; what it looks for are the largest
    eigenvalues of a matrix, for which a Lanczos iteration takes products, n^2 each. Up to some 60
    points for each vector LAPACK takes less for these few.
    """
    degree = weights.fill_diagonal_(0).sum(dim=1)
    root = torch.where(degree > 0, degree, 1).sqrt()
    weights.div_(root).div_(root[:, None])  # an eigenvalue 1 for each part of the graph
    begin = torch.from_numpy(rng.standard_normal((len(root), k + EXTRA))).to(weights)
    n, b = begin.shape
    if weights.device.type == "cpu" and n <= 60 * b:
        vectors = torch.from_numpy(eigh(weights.numpy(), subset_by_index=(n - k, n - 1))[1])
    else:
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
    small = ratio(terms.between(member, terms.times(member)), torch.outer(mass, mass))
    reduced = Problem(contraction(small, terms.structure, terms.loss), mass)
    trials = [mass[:, None].expand(m, k) / k]
    for _ in range(_TRIES):
        places = torch.from_numpy(rng.permutation(k)[:m]).to(w.device)
        trials.append(hard_plan(places, mass, k))
    ends = [lowest_plan(reduced, reduced.state(T), _MATCHED, _STEPS) for T in trials]
    best = min(ends, key=lambda state: state.value)
    return hard_plan(best.T.argmax(dim=1)[labels], w, k)


def dealt(
    problem: Problem, state: State, tol: float, most: int, rng: np.random.Generator
) -> Iterator[State]:
    """States of ever lower value: by chance the rows of three places are dealt anew to these, one
    time in ten all clusters are matched anew, and moves of rows follow. Ends when so many trials
    in turn led nowhere.
    """
    failed = 0
    while failed < most:
        T = state.T.clone()
        if failed % 10 == 9:
            T = match(problem, T.argmax(dim=1), rng)
        else:
            places = torch.from_numpy(rng.permutation(problem.k)[:3]).to(T.device)
            deal = torch.from_numpy(rng.integers(len(places), size=problem.n)).to(places)
            T[:, places] = hard_plan(deal, T[:, places].sum(dim=1), len(places))
        new, failed = lowest_plan(problem, problem.state(T), max(tol, _ROUGH), _BRIEFLY), failed + 1
        if new.value < state.value - SMALL * problem.scale:
            state, failed = lowest_plan(problem, new, tol, _STEPS), 0
            yield state


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


def soft_start(
    problem: Problem, draw: Callable[[str], Tensor], rng: np.random.Generator, name: str
) -> Tensor:
    """A plan with the problem's row sums; clusters are those that are drawn."""
    w, n, k = problem.w, problem.n, problem.k
    if name == "product":
        return w[:, None].expand(n, k) / k
    if name == "random":
        shares = torch.from_numpy(rng.standard_exponential((n, k))).to(w)
        return shares * (w / shares.sum(dim=1))[:, None]
    return match(problem, draw(name), rng)
