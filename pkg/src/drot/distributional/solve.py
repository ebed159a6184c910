"""Distributional reduction: few weighted prototypes in few dimensions (Chapter 12)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import Seed, as_points, as_rng, check_choice, check_count, check_positive
from .._core.run import OnFailure
from ..gromov.contraction import Loss
from ..gromov.semirelaxed import as_init
from .baselines import cluster_first, reduce_first
from .loss import Normalization
from .reduction import (
    Clustering,
    Coupling,
    Descent,
    DistributionalReduction,
    OutputKernel,
    Reduction,
    Run,
    cluster,
    read_problem,
)

Init = Literal["cluster_then_reduce", "reduce_then_cluster", "random"]
Callback = Callable[[int, float, Tensor], bool | None]

_TOL = 1e-3  # of positions: few points come to rest
_PLACE = 2000  # iterations of an embedding to start from


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
    r"""Stand for many points by a few weighted ones in few dimensions.

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
    of the thesis; book ``eq-distr``, ``thm-distr-split`` and ``prp-distr-descent``.

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
    problem, k = read_problem(
        similarity, n_prototypes, n_components, kernel, normalization, loss, weights
    )
    limits = (init, n_starts, clustering, tol, max_iter, random_state, callback, on_failure)
    return solve(problem, k, n_components, "distributional_reduction", *limits)


def solve(
    problem: Reduction,
    k: int,
    q: int,
    where: str,
    init,
    n_starts: int,
    clustering: Clustering,
    tol: float | None,
    max_iter: int,
    random_state: Seed,
    callback: Callback | None,
    on_failure: OnFailure,
) -> DistributionalReduction:
    """The best end of the descents from all starts."""
    tol = _TOL if tol is None else check_positive("tol", tol)
    max_iter = check_count("max_iter", max_iter, 1)
    n_starts = check_count("n_starts", n_starts, 1)
    check_choice("clustering", clustering, get_args(Clustering))
    check_choice("on_failure", on_failure, get_args(OnFailure))
    run = Run(problem, tol, max_iter, callback)
    ends: list[Descent] = []
    try:
        for Z, coupling in _starts(problem, k, q, init, n_starts, clustering, tol, random_state):
            ends.append(run.descend(Z, coupling))
            if run.stopped:
                break
    except KeyboardInterrupt:  # while the next start was made
        if not ends:
            raise
        run.interrupted()
    best = min(ends, key=lambda end: end.trace[-1])
    return problem.result(
        best.Z,
        best.coupling,
        best.residual,
        tol,
        best.trace,
        [end.trace[-1] for end in ends],
        where,
        "ignore" if run.stopped else on_failure,
    )


def _starts(
    problem: Reduction,
    k: int,
    q: int,
    init,
    n_starts: int,
    clustering: Clustering,
    tol: float,
    random_state: Seed,
) -> Iterator[tuple[Tensor, Coupling]]:
    """Positions and plans to start from, made when their turn comes."""
    rng = as_rng(random_state)
    kinds = as_init(init, problem.w, k, get_args(Init))
    if isinstance(kinds, Tensor):
        coupling = problem.couple(kinds)
        if isinstance(init, DistributionalReduction):
            Z = as_points(init.Z, "init").to(problem.w)
        else:
            Z = problem.start(coupling, q, rng)
        yield Z, coupling
        return
    if isinstance(random_state, np.random.Generator | torch.Generator):
        seed = int(rng.integers(2**31))
    else:
        seed = random_state
    methods = {
        "cluster_then_reduce": cluster_first,
        "reduce_then_cluster": reduce_first,
        "random": _chance,
    }
    for kind in kinds:
        found = methods[kind](problem, k, q, clustering, tol, _PLACE, np.random.default_rng(seed))
        for Z, coupling, _ in islice(found, n_starts):
            yield Z, coupling


def _chance(
    problem: Reduction, k: int, q: int, how: Clustering, tol: float, max_iter: int, rng
) -> Iterator[tuple[Tensor, Coupling, float]]:
    """Standard normal positions, and the plan that clusters of the data lead to."""
    while True:
        labels = cluster(problem, None, None, how, k, int(rng.integers(2**31)))
        Z = problem.chance(k, q, rng)
        yield Z, problem.transport(Z, problem.hard(labels, k))[0], math.inf
