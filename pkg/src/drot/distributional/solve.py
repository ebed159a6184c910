"""Distributional reduction: few weighted prototypes in few dimensions (Chapter 14)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.chance import Seed, as_rng
from .._core.checks import as_count
from .._core.run import OnFailure, read_limits
from .._core.threads import by_size
from ..embeddings.descent import ONE_PLACE
from ..embeddings.embed import MAP_TOL
from ..gromov.contraction import Coupling
from ..gromov.objective import exact_objective
from ..gromov.search import Multistart, PlanCallback, multistart
from ..gromov.starts import as_init
from .problem import Iterate, ProblemOptions, ReductionProblem, make_problem
from .reduction import Clustering, DistributionalReduction, OutputKernel

Start = Literal["cluster_then_reduce", "reduce_then_cluster", "random"]


class SearchOptions(ProblemOptions, total=False):
    """What a search from several starts takes besides, likewise."""

    n_starts: int
    tol: float | None
    max_iter: int
    random_state: Seed
    callback: PlanCallback | None
    on_failure: OnFailure


TOL = 1e-3  # of positions: few points come to rest
_EMBED = 2000  # iterations of an embedding to start from
_INNER = 200  # iterations of an embedding between two plans


@by_size
def distributional_reduction(
    similarity,
    n_prototypes: int,
    *,
    n_components: int = 2,
    kernel: OutputKernel = "student",
    weights: ArrayLike | None = None,
    init: Start | Sequence[Start] | ArrayLike | DistributionalReduction = (
        "cluster_then_reduce",
        "reduce_then_cluster",
    ),
    n_starts: int = 2,
    clustering: Clustering = "spectral",
    tol: float | None = None,
    max_iter: int = 100,
    random_state: Seed = 0,
    callback: PlanCallback | None = None,
    on_failure: OnFailure = "raise",
) -> DistributionalReduction:
    r"""Distributional reduction (DistR): few weighted prototypes in few dimensions.

    .. math::

        \min_{Z \in \mathbb R^{k \times q}} \; \min_{T \ge 0, \, T \mathbf 1 = w} \;
        \sum_{ijkl} L \bigl( C_{ij}, \bar C(Z)_{kl} \bigr) \, T_{ik} T_{jl},

    a semi-relaxed Gromov-Wasserstein problem whose target moves: the plan clusters the points, its
    column sums are the learned weights of the prototypes, and their positions are an embedding.
    A block coordinate descent solves for positions (L-BFGS with the exact gradient, an
    eigenvalue problem for inner products) and for the plan (conditional gradient and moves of
    single rows) in turn. No step raises the objective; the best of several starts is returned.

    A kernel is normalised under the weights that it is given: with :math:`q = T^\top \mathbf 1`,

    .. math::

        \bar C_{kl} = s K_{kl}, \qquad \sum_{kl} q_k q_l \bar C_{kl} = \sum_{ij} w_i w_j C_{ij},

    by the factor that is best for ``"kl"``. A prototype of weight 0 does not count, two at one
    place count as one, and k = n with :math:`T = I / n` is t-SNE, the pairs i = j kept: the
    objective is its divergence divided by n^2. With ``kernel="gram"`` that is PCA.

    Source: (DistR) and its computation in section 4.1 of Van Assel et al. (2024), section 5.3
    of the thesis; book ``eq-distr``, ``thm-distr-split``, ``alg-distr`` and
    ``prp-distr-descent``.

    Parameters
    ----------
    similarity : Affinity, array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`, non-negative but for ``kernel="gram"``: a symmetric entropic affinity,
        ``symmetrize`` of another, ``fuzzy_union``, or ``gram`` of centred points.
    n_prototypes : int
        :math:`k`, from 2 to n. Some may stay without weight.
    n_components : int
        :math:`q`, coordinates of the prototypes.
    kernel : {"student", "gaussian", "gram"}
        :math:`K_{kl} = 1 / (1 + \| z_k - z_l \|^2)`, :math:`e^{- \| z_k - z_l \|^2}` or
        :math:`z_k^\top z_l`. L is ``"square"`` for the last, else ``"kl"``.
    weights : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.
    init : str, several, plan, or result
        ``"cluster_then_reduce"`` and ``"reduce_then_cluster"``, both by default, are the functions
        of these names, so the result is never worse than theirs; ``"random"`` draws positions. A
        plan (n, k) is one start; an earlier result too, with its positions unless they are one
        place, where no force is.
    n_starts : int
        Starts of each kind, the first as the function of its name makes it.
    clustering : {"spectral", "kmeans"}
        As in :func:`cluster_then_reduce`.
    tol : float, optional
        Largest accepted residual of the positions, as in :func:`embed`, and Frank-Wolfe gap of the
        plan, as in :func:`semi_relaxed_gw`. Default 1e-3; the plan itself is solved for to 1e-9,
        1e-4 in float32.
    max_iter : int
        Rounds of both blocks, from each start: 200 steps of positions each, 2000 in a start.
    random_state : int, numpy Generator or torch Generator
        Same seed, same result on the same device.
    callback : callable, optional
        Called as ``callback(number, residual, Z)`` at each start and after each round, counted on;
        true ends the run.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    DistributionalReduction
        ``Z`` (k, q), ``plan`` (n, k) of total mass 1, the learned ``weights``, ``structure``
        (k, k), the ``objective`` E_L, its ``values`` at the start and after each round, and the
        ``ends`` of all starts, in the order of ``init``; ``residual`` is the larger of the two.

    Raises
    ------
    ValueError
        If the similarity is zero, not symmetric, out of range or holds distances, or a name
        does not exist.
    NotConverged
        If the best start did not reach ``tol`` and ``on_failure="raise"``.

    Notes
    -----
    A round costs as many products of C with an (n, k) matrix as the plan takes steps, and
    evaluations of k x k kernels; ``"reduce_then_cluster"`` embeds all n points first. Where
    clusters exchange next to no mass the infimum lies at infinity; the map is returned where
    growing no longer pays (see ``tol``).

    Examples
    --------
    >>> import torch
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double() + 0.1
    >>> found = distributional_reduction(C, 3, init="cluster_then_reduce")
    >>> found.labels.unique().numel() <= 3, round(float(found.weights.sum()), 9)
    (True, 1.0)
    """
    return solve(
        "distributional_reduction", make_problem, similarity, n_prototypes, init,
        n_components=n_components, kernel=kernel, weights=weights, n_starts=n_starts,
        clustering=clustering, tol=tol, max_iter=max_iter, random_state=random_state,
        callback=callback, on_failure=on_failure,
    )  # fmt: skip


def solve(
    where: str, make: Callable[..., ReductionProblem], similarity, n_prototypes: int, init, *,
    kernel: OutputKernel, n_starts: int, tol: float | None, max_iter: int, random_state: Seed,
    callback: PlanCallback | None, on_failure: OnFailure, **options: Unpack[ProblemOptions],
) -> DistributionalReduction:  # fmt: skip
    """The lowest end of the descents from all starts."""
    problem = make(similarity, n_prototypes, kernel=kernel, **options)
    tol, max_iter = read_limits(TOL if tol is None else tol, max_iter, on_failure, problem.w.dtype)
    n_starts = as_count("n_starts", n_starts, 1)
    kinds = as_init(init, problem.w, problem.k, Start)
    states: Iterable[Iterate]
    if isinstance(kinds, Tensor):
        states = [given(problem, kinds, init, as_rng(random_state))]
    else:
        limits = dict.fromkeys(STARTS, tol) | {"reduce_then_cluster": max(tol, MAP_TOL)}
        drawn = (
            STARTS[kind](problem, as_rng(random_state), limits[kind], _EMBED) for kind in kinds
        )
        states = chain.from_iterable(islice(kind, n_starts) for kind in drawn)
    descend = partial(block_descent, problem, tol=tol)
    found = multistart(where, states, descend, Iterate.report, max_iter, callback)
    return conclude(problem, found, tol, on_failure)


def conclude(
    problem: ReductionProblem, found: Multistart[Iterate], tol: float, on_failure: OnFailure
) -> DistributionalReduction:
    """The result of where starts and descents have ended."""
    Z, c, *_ = found.state
    structure, objective = problem.structure(Z, c)[0], max(found.state.value, 0.0)
    if problem.loss.free:  # squares cancel in single precision
        objective = exact_objective(problem.terms.C, structure, problem.loss, c.T)
    return found.conclude(
        DistributionalReduction, tol, on_failure, objective,
        Z=Z, plan=c.T, structure=structure, products=problem.terms.products,
    )  # fmt: skip


def block_descent(problem: ReductionProblem, now: Iterate, tol: float) -> Iterator[Iterate]:
    """Positions, plan, repeat: the block descent of book ``alg-distr``."""
    now = measured(problem, now)
    while True:
        yield now
        before, Z = now.value, problem.update_positions(now.Z, now.coupling, tol, _INNER)  # 1
        now = accept(problem, now, Z, now.coupling)
        now = accept(problem, now, now.Z, problem.update_plan(now.Z, now.coupling))  # 2
        now = measured(problem, now)
        if now.residual <= tol or not now.value < before:  # 3
            yield now
            return


def measured(problem: ReductionProblem, now: Iterate) -> Iterate:
    """With the residual of both blocks."""
    Z, c = now.Z, now.coupling
    return now._replace(residual=max(problem.residual_at(Z, c), problem.plan_gap(Z, c)))


def accept(problem: ReductionProblem, now: Iterate, Z: Tensor, c: Coupling) -> Iterate:
    """With new positions or a new plan, unless rounding raised the objective."""
    new = Iterate(Z, c, now.residual, problem.objective(Z, c))
    return new if new.value <= now.value else now


def given(problem: ReductionProblem, T: Tensor, init, rng: np.random.Generator) -> Iterate:
    """A plan, with the positions of the result that it comes from."""
    c, Z = problem.couple(T), None
    if isinstance(init, DistributionalReduction):
        Z = problem.read_positions(init.Z)
    if Z is None or problem.size(Z) <= ONE_PLACE:  # where no force tells them apart
        Z = problem.initial_positions(c, rng)
    return Iterate(Z, c, math.inf, problem.objective(Z, c))


def clustered(
    problem: ReductionProblem, rng: np.random.Generator, tol: float, max_iter: int
) -> Iterator[Iterate]:
    """Clusters of the points, then positions for them."""
    while True:
        c = problem.cluster(rng)
        Z, residual = placed(problem, c, rng, tol, max_iter)
        yield Iterate(Z, c, residual, problem.objective(Z, c))


def reduced(
    problem: ReductionProblem, rng: np.random.Generator, tol: float, max_iter: int
) -> Iterator[Iterate]:
    """Positions of all points, then clusters of these and their centres."""
    points = problem.identity_coupling()
    every, residual = placed(problem, points, rng, tol, max_iter)
    while True:
        c = problem.cluster(rng, (every, points))
        Z = problem.centroids(every, c)
        yield Iterate(Z, c, residual, problem.objective(Z, c))


def scattered(
    problem: ReductionProblem, rng: np.random.Generator, tol: float, max_iter: int
) -> Iterator[Iterate]:
    """Positions by chance, then the plan for them, without limits."""
    while True:
        c = problem.cluster(rng)
        Z = problem.random_positions(problem.k, rng)
        c = problem.update_plan(Z, c)
        yield Iterate(Z, c, math.inf, problem.objective(Z, c))


def placed(
    problem: ReductionProblem, c: Coupling, rng: np.random.Generator, tol: float, max_iter: int
) -> tuple[Tensor, float]:
    """Positions for a plan from their beginning, and their residual."""
    Z = problem.update_positions(problem.initial_positions(c, rng), c, tol, max_iter)
    return Z, problem.residual_at(Z, c)


STARTS = {"cluster_then_reduce": clustered, "reduce_then_cluster": reduced, "random": scattered}
