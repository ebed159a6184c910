"""Distributional reduction: few weighted prototypes in few dimensions (Chapter 12)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from operator import itemgetter
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import Seed, as_rng, check_choice, check_count
from .._core.run import OnFailure, iterate, read_limits
from ..gromov.contraction import Loss
from ..gromov.semirelaxed import as_init
from .baselines import TOL, cluster_first, reduce_first
from .loss import Normalization
from .reduction import (
    Clustering,
    Coupling,
    Descent,
    DistributionalReduction,
    OutputKernel,
    Reduction,
    read_problem,
)

Init = Literal["cluster_then_reduce", "reduce_then_cluster", "random"]
Callback = Callable[[int, float, Tensor], bool | None]

_PLACE = 2000  # iterations of an embedding to start from
_INNER = 200  # iterations of an embedding between two plans


def distributional_reduction(
    similarity,
    n_prototypes: int,
    *,
    n_components: int = 2,
    kernel: OutputKernel = "student",
    normalization: Normalization | None = None,
    loss: Loss | None = None,
    weights: ArrayLike | None = None,
    init: Init | Sequence[Init] | ArrayLike | DistributionalReduction = (
        "cluster_then_reduce",
        "reduce_then_cluster",
    ),
    n_starts: int = 2,
    clustering: Clustering = "spectral",
    tol: float | None = None,
    max_iter: int = 100,
    random_state: Seed = 0,
    callback: Callback | None = None,
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

        \bar C_{kl} = u_k v_l K_{kl}, \qquad
        \begin{cases}
        u = v, \text{ constant} & \sum_{kl} q_k q_l \bar C_{kl} = \sum_{ij} w_i w_j C_{ij}
        \quad \text{(sum)} \\
        v = 1 & \sum_l q_l \bar C_{kl} = \sum_{il} T_{ik} C_{ij} w_j / q_k \quad \text{(rows)} \\
        u = v & \text{the same sums} \quad \text{(doubly stochastic)},
        \end{cases}

    the factors that are best for ``"kl"``. A prototype of weight 0 does not count, two at one place
    count as one, and k = n with :math:`T = I / n` is t-SNE, SNE or SNEkhorn, the pairs
    i = j kept: the objective is their divergence divided by n^2. With ``kernel="gram"`` that is
    PCA.

    Source: (DistR) and its computation in section 4.1 of Van Assel et al. (2024), section 5.3
    of the thesis; book ``eq-distr``, ``thm-distr-split``, ``alg-distr`` and
    ``prp-distr-descent``.

    Parameters
    ----------
    similarity : Affinity, array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`, non-negative for ``"kl"``: a symmetric entropic affinity, ``symmetrize`` of
        another, ``fuzzy_union``, or ``gram`` of centred points.
    n_prototypes : int
        :math:`k`, from 2 to n. Some may stay without weight.
    n_components : int
        :math:`q`, coordinates of the prototypes.
    kernel : {"student", "gaussian", "gram"}
        :math:`K_{kl} = 1 / (1 + \| z_k - z_l \|^2)`, :math:`e^{- \| z_k - z_l \|^2}` or
        :math:`z_k^\top z_l`.
    normalization : {"sum", "rows", "doubly_stochastic", "none"}, optional
        Default ``"sum"``, and ``"none"`` for inner products. With ``"square"``, ``"sum"`` is the
        single factor that is best for it.
    loss : {"kl", "square"}, optional
        Default ``"kl"``, and ``"square"`` for inner products.
    weights : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.
    init : str, several, plan, or result
        ``"cluster_then_reduce"`` and ``"reduce_then_cluster"``, both by default, are the functions
        of these names, so the result is never worse than theirs; ``"random"`` draws positions. A
        plan (n, k) is one start; an earlier result
        too, with its positions.
    n_starts : int
        Starts of each kind, the first as the function of its name makes it.
    clustering : {"spectral", "kmeans"}
        As in :func:`cluster_then_reduce`.
    tol : float, optional
        Largest accepted residual of the positions, the gradient as a share of its part that
        attracts as in :func:`embed`, and Frank-Wolfe gap of the plan, as in
        :func:`semi_relaxed_gw`. Default 1e-3; the plan itself is solved for to 1e-9, 1e-4 in
        float32.
    max_iter : int
        Rounds of both blocks, from each start.
    random_state : int, numpy Generator or torch Generator
        Same seed, same result on the same device.
    callback : callable, optional
        Called as ``callback(round, residual, Z)``, starts counted on; true ends the run.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    DistributionalReduction
        ``Z`` (k, q), ``plan`` (n, k) of total mass 1, the learned ``weights``, ``structure``
        (k, k), the ``objective`` E_L, its ``trace`` at the start and after each block, and the
        ``values`` of all starts.

    Raises
    ------
    ValueError
        If the similarity is not symmetric, a name does not exist, or a kernel, loss and
        normalisation do not go together.
    NotConverged
        If the best start did not reach ``tol`` and ``on_failure="raise"``.

    Notes
    -----
    A round costs as many products of C with an (n, k) matrix as the plan takes steps, and
    evaluations of k x k kernels; ``"reduce_then_cluster"`` embeds all n points first.

    Examples
    --------
    >>> import torch
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double() + 0.1
    >>> found = distributional_reduction(C, 3, init="cluster_then_reduce")
    >>> found.labels.unique().numel() <= 3, round(float(found.weights.sum()), 9)
    (True, 1.0)
    """
    problem = read_problem(
        similarity, n_prototypes, n_components, kernel, normalization, loss, weights
    )
    tol, max_iter = read_limits(TOL if tol is None else tol, max_iter, on_failure, problem.w.dtype)
    begin = starts(problem, init, n_starts, clustering, tol, random_state)
    return solve("distributional_reduction", problem, begin, tol, max_iter, callback, on_failure)


def solve(
    where: str,
    problem: Reduction,
    begin: Iterator[tuple[Tensor, Coupling]],
    tol: float,
    max_iter: int,
    callback: Callback | None,
    on_failure: OnFailure,
) -> DistributionalReduction:
    """The lowest end of the descents from all starts."""
    rounds = count()

    def hear(_: int, residual: float, Z: Tensor) -> bool:
        """Pass on the rounds, counted over all starts, and not the starts themselves."""
        if callback is None or residual == math.inf:
            return False
        return bool(callback(next(rounds), residual, Z))

    steps = descents(problem, begin, tol, max_iter)  # which end by themselves
    course = iterate(where, steps, -math.inf, sys.maxsize, hear, "ignore")
    return problem.result(where, course.state, tol, "ignore" if course.stopped else on_failure)


def descents(
    problem: Reduction, begin: Iterator[tuple[Tensor, Coupling]], tol: float, max_iter: int
) -> Iterator[tuple[list[Descent], float, Tensor]]:
    """Go down from one start after another; yields where all of them are, and the last."""
    ends: list[Descent] = []
    for Z, c in begin:
        for now in islice(descent(problem, Z, c, tol), max_iter + 1):
            yield [*ends, now], now.residual, now.Z
            if now.residual <= tol:
                break
        ends.append(now)


def descent(problem: Reduction, Z: Tensor, c: Coupling, tol: float) -> Iterator[Descent]:
    """Place, transport, repeat, until nothing moves (book ``alg-distr``)."""
    value, residual = problem.objective(Z, c), math.inf
    trace, by_value = [value], itemgetter(1)
    while len(trace) < 3 or trace[-1] < trace[-3]:
        yield Descent(Z, c, residual, tuple(trace))
        placed = problem.place(Z, c, tol, _INNER)
        # rounding aside, what is new is lower
        Z, value = min((placed, problem.objective(placed, c)), (Z, value), key=by_value)
        trace.append(value)
        moved = problem.transport(Z, c)
        c, value = min((moved, problem.objective(Z, moved)), (c, value), key=by_value)
        trace.append(value)
        residual = max(problem.slope(Z, c), problem.gap(Z, c))
    yield Descent(Z, c, residual, tuple(trace))


def starts(
    problem: Reduction,
    init,
    n_starts: int,
    clustering: Clustering,
    tol: float,
    random_state: Seed,
) -> Iterator[tuple[Tensor, Coupling]]:
    """Positions and plans to start from, made when their turn comes."""
    n_starts = check_count("n_starts", n_starts, 1)
    check_choice("clustering", clustering, get_args(Clustering))
    rng = as_rng(random_state)
    kinds = as_init(init, problem.w, problem.k, get_args(Init))
    if isinstance(kinds, Tensor):
        c = problem.couple(kinds)
        given = isinstance(init, DistributionalReduction)
        yield problem.read(init.Z) if given else problem.start(c, rng), c
        return
    drawn = isinstance(random_state, np.random.Generator | torch.Generator)
    seed = int(rng.integers(2**31)) if drawn else random_state
    methods = {
        "cluster_then_reduce": cluster_first,
        "reduce_then_cluster": reduce_first,
        "random": _chance,
    }
    for kind in kinds:
        found = methods[kind](problem, clustering, tol, _PLACE, as_rng(seed))
        for end in islice(found, n_starts):
            yield end.Z, end.coupling


def _chance(
    problem: Reduction, how: Clustering, tol: float, max_iter: int, rng: np.random.Generator
) -> Iterator[Descent]:
    """Standard normal positions, and the plan that clusters of the data lead to."""
    while True:
        c = problem.cluster(how, rng)
        Z = problem.chance(problem.k, rng)
        yield Descent(Z, problem.transport(Z, c), math.inf, ())
