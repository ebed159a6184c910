"""Semi-relaxed Gromov-Wasserstein: the second marginal is learned (Chapter 12)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.chance import Seed, as_rng
from .._core.checks import as_count, as_flag, check_choice
from .._core.run import OnFailure, read_limits
from .._core.threads import by_size
from .contraction import Fixed, Problem, standard, with_rows
from .descent import conditional_gradient, mirror_descent, row_moves
from .loss import LossName
from .objective import exact_objective
from .reading import as_pair, as_weights
from .search import Iterates, PlanCallback, SemiRelaxedGW, end_of, in_turn, lower_by, multistart
from .starts import ROUGH, Clusters, Init, as_init, match, shuffled, soft_start, starts

Solver = Literal["conditional_gradient", "mirror_descent"]

_SOFT = 0.1  # a mirror descent cannot leave a plan's zeros: this share of it starts uniform
_DEALS = 30  # for each start, that lead nowhere
_BRIEFLY = 10  # rounds of moves after a deal
_SHORT = 0.02  # mirror steps that gain less of what the gap promised are left to moves of rows


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
    tol: float | None = None,
    max_iter: int = 10_000,
    random_state: Seed = 0,
    callback: PlanCallback | None = None,
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
    again. The objective falls at each iteration, and the best plan is returned.

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
    tol : float, optional
        Largest accepted Frank-Wolfe gap
        :math:`\max_S \langle \nabla E_L(T), T - S \rangle`, as a share of
        :math:`\sum_{ij} (C_{ij} - m)^2 w_i w_j` plus the least :math:`(\bar C_{kk} - m)^2`, with
        :math:`m = w^\top C w` (``"kl"``: of m plus the least :math:`\bar C_{kk}`). Default 1e-9 in
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
        evaluated in float64, the ``values`` of the best start and the ``ends`` of all.

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
    call, in some seconds. Not differentiable.

    Examples
    --------
    >>> import torch
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double()
    >>> found = semi_relaxed_gw(C, torch.eye(2).double())
    >>> round(found.objective, 12), sorted(round(x, 3) for x in found.weights.tolist())
    (0.0, [0.333, 0.667])
    """
    C, structure, L = as_pair(cost_x, cost_z, loss)
    check_choice("solver", solver, Solver)
    refine = as_flag("refine", refine)
    tol, max_iter = read_limits(tol, max_iter, on_failure, C.dtype)
    n_starts = as_count("n_starts", n_starts, 1)
    w, rng = as_weights(weights_x, C.shape[0], C, "weights_x"), as_rng(random_state)
    terms, unit = standard(C, w, L, structure)
    problem = Problem(terms, unit.seen(structure))
    kinds, rough, mirror = as_init(init, w, problem.k), max(tol, ROUGH), solver == "mirror_descent"
    deals = _DEALS * (1 if isinstance(kinds, Tensor) else n_starts)
    steps = partial(mirror_descent, share=_SHORT if refine else -1)
    first: Callable[..., Iterates[Fixed]] = steps if mirror else conditional_gradient
    descents = [f for f, use in ((first, mirror or not refine), (row_moves, refine)) if use]

    def paths(tol: float) -> list[Callable[[Fixed], Iterates[Fixed]]]:
        return [partial(path, problem, tol=tol) for path in descents]

    def begin(T: Tensor) -> Fixed:
        if mirror and bool((T == 0).any()):
            T = (1 - _SOFT) * T + _SOFT * w[:, None] / problem.k
        return problem.state(T)

    def trials(state: Fixed) -> Iterator[Fixed]:
        for number in range(1, 1 + deals):
            labels = state.T.argmax(dim=1)
            T = shuffled(state.T, 3, rng) if number % 10 else match(problem, labels, rng)
            yield end_of(row_moves(problem, problem.state(T), rough), _BRIEFLY)

    search = paths(tol)
    if refine and problem.k > 1:
        moves = partial(row_moves, problem, tol=tol)
        search.append(partial(lower_by, problem, trials=trials, moves=moves))
    clusters = Clusters(terms.C, w, min(problem.k, problem.n), rng)
    states = map(begin, starts(kinds, n_starts, partial(soft_start, problem, clusters, rng)))
    found = multistart(
        "semi_relaxed_gw", states, partial(in_turn, paths(rough)), problem.report, max_iter,
        callback, search,
    )  # fmt: skip
    rounding = torch.finfo(w.dtype).eps * w[:, None]  # what the steps left of what went elsewhere
    T = with_rows(found.state.T.masked_fill(rounding >= found.state.T, 0), w)
    objective = exact_objective(C, structure, L, T)
    if objective == math.inf and not found.course.interrupt:
        raise ValueError(
            f"loss={L.name!r} is infinite at every plan that was found: positive entries of cost_x "
            "meet zeros of cost_z; add a small positive number to cost_z, or try other starts"
        )
    return found.conclude(
        SemiRelaxedGW, tol, on_failure, objective, unit, plan=T, products=terms.products
    )
