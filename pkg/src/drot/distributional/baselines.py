"""Reduction and clustering one after the other, and clustering by CO-Optimal Transport."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import Seed, as_points, as_rng, check_choice, check_count
from .._core.run import OnFailure, iterate, read_limits, settle
from ..gromov.contraction import Loss, as_weights
from .loss import Normalization
from .reduction import (
    Clustering,
    Descent,
    DistributionalReduction,
    OutputKernel,
    Reduction,
    read_problem,
)

TOL = 1e-3  # of positions: few points come to rest


def cluster_first(
    problem: Reduction, how: Clustering, tol: float, max_iter: int, rng: np.random.Generator
) -> Iterator[Descent]:
    """Positions and plan of clusters of the data, the positions being the best for the plan."""
    while True:
        c = problem.cluster(how, rng)
        Z = problem.place(problem.start(c, rng), c, tol, max_iter)
        yield Descent(Z, c, problem.slope(Z, c), (problem.objective(Z, c),))


def reduce_first(
    problem: Reduction, how: Clustering, tol: float, max_iter: int, rng: np.random.Generator
) -> Iterator[Descent]:
    """Centres and plans of clusters of one embedding of all points, clustered again and again."""
    every = problem.identity()
    all_Z = problem.place(problem.start(every, rng), every, tol, max_iter)
    residual = problem.slope(all_Z, every)
    while True:
        c = problem.cluster(how, rng, all_Z, every)
        Z = problem.centres(all_Z, c)
        yield Descent(Z, c, residual, (problem.objective(Z, c),))


def cluster_then_reduce(
    similarity,
    n_prototypes: int,
    *,
    n_components: int = 2,
    kernel: OutputKernel = "student",
    normalization: Normalization | None = None,
    loss: Loss | None = None,
    weights: ArrayLike | None = None,
    clustering: Clustering = "spectral",
    tol: float | None = None,
    max_iter: int = 2000,
    random_state: Seed = 0,
    on_failure: OnFailure = "raise",
) -> DistributionalReduction:
    r"""Cluster the points, then embed the similarity between the clusters (CDR).

    With the plan T of the clusters, :math:`\min_Z E_L(C, \bar C(Z), T)`: the positions are the
    best for the weights and the mean similarities of the clusters, and nothing tells the
    clustering how well they can be drawn.

    Source: the sequential method CDR in appendix F.1 of Van Assel et al. (2024), whose second
    step embeds the centres of the clusters instead, all with the same weight; book
    ``thm-distr-split``.

    Parameters
    ----------
    similarity, n_prototypes, n_components, kernel, normalization, loss, weights
        As in :func:`distributional_reduction`.
    clustering : {"spectral", "kmeans"}
        Of C: spectral clustering as scikit-learn defines it, or k-means of the points, where the
        similarity knows them, or of its leading eigenvectors as coordinates. A C with negative
        entries is no graph, one held in factors is not formed: k-means takes its place.
    tol : float, optional
        Largest accepted residual, as in :func:`embed`. Default 1e-3.
    max_iter : int
        Iterations of the embedding.
    random_state : int, numpy Generator or torch Generator
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    DistributionalReduction
        Hard plan; ``trace`` holds the objective alone, ``n_iter`` is 0.

    Raises
    ------
    ValueError, NotConverged
        As :func:`distributional_reduction`.

    Examples
    --------
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double() + 0.1
    >>> sorted(round(x, 3) for x in cluster_then_reduce(C, 2).weights.tolist())
    [0.333, 0.667]
    """
    problem = read_problem(
        similarity, n_prototypes, n_components, kernel, normalization, loss, weights
    )
    limits = clustering, tol, max_iter, random_state, on_failure
    return _sequence("cluster_then_reduce", cluster_first, problem, *limits)


def reduce_then_cluster(
    similarity,
    n_prototypes: int,
    *,
    n_components: int = 2,
    kernel: OutputKernel = "student",
    normalization: Normalization | None = None,
    loss: Loss | None = None,
    weights: ArrayLike | None = None,
    clustering: Clustering = "spectral",
    tol: float | None = None,
    max_iter: int = 2000,
    random_state: Seed = 0,
    on_failure: OnFailure = "raise",
) -> DistributionalReduction:
    r"""Embed all points, then cluster the embedding and keep the centres (DRC).

    With labels found on :math:`Z^*`, :math:`z_k = \sum_i T_{ik} z^*_i / q_k`.

    Source: the sequential method DRC in appendix F.1 of Van Assel et al. (2024); book
    ``thm-distr-split``.

    Parameters
    ----------
    similarity, n_prototypes, n_components, kernel, normalization, loss, weights
        As in :func:`distributional_reduction`.
    clustering : {"spectral", "kmeans"}
        Of the similarity of the embedded points, or of their positions; of positions also where
        the similarity has negative entries.
    tol, max_iter, random_state, on_failure
        As in :func:`cluster_then_reduce`.

    Returns
    -------
    DistributionalReduction
        The centres with the hard plan and its objective; ``residual`` is that of the embedding
        of all points.

    Raises
    ------
    ValueError, NotConverged
        As :func:`distributional_reduction`.

    Notes
    -----
    The embedding is dense in the points: n x n.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [9.0], [10.0]]).double()
    >>> X = X - X.mean()
    >>> found = reduce_then_cluster(X @ X.T, 2, kernel="gram", n_components=1)
    >>> sorted(round(z, 9) for z in found.Z[:, 0].tolist())
    [-4.5, 4.5]
    """
    problem = read_problem(
        similarity, n_prototypes, n_components, kernel, normalization, loss, weights
    )
    limits = clustering, tol, max_iter, random_state, on_failure
    return _sequence("reduce_then_cluster", reduce_first, problem, *limits)


def _sequence(
    where: str,
    method: Callable[..., Iterator[Descent]],
    problem: Reduction,
    clustering: Clustering,
    tol: float | None,
    max_iter: int,
    random_state: Seed,
    on_failure: OnFailure,
) -> DistributionalReduction:
    tol, max_iter = read_limits(TOL if tol is None else tol, max_iter, on_failure, problem.w.dtype)
    check_choice("clustering", clustering, get_args(Clustering))
    found = next(method(problem, clustering, tol, max_iter, as_rng(random_state)))
    return problem.result(where, [found], tol, on_failure)


def coot_clustering(
    X,
    n_prototypes: int,
    *,
    n_components: int = 2,
    weights: ArrayLike | None = None,
    n_starts: int = 4,
    tol: float = 1e-9,
    max_iter: int = 200,
    random_state: Seed = 0,
    on_failure: OnFailure = "raise",
) -> DistributionalReduction:
    r"""Cluster the rows and the columns of a table at once, by CO-Optimal Transport.

    .. math::

        \min_{Z, T, S} \; \sum_{ijkl} (X_{ij} - Z_{kl})^2 \, T_{ik} S_{jl}

    over couplings T of the rows and S of the columns whose marginals are fixed, those of the
    prototypes and of the components uniform. Couplings by POT, then
    :math:`Z_{kl} = \sum_{ij} T_{ik} X_{ij} S_{jl} / (q_k \bar v_l)`, in turn. The columns of Z
    are means of columns of X: a linear reduction.

    Source: problem (COOT) in section 5.3.4 of the thesis, after Redko et al. (2020); book
    ``ch-distr``.

    Parameters
    ----------
    X : array_like, shape (n, p)
        Points.
    n_prototypes, n_components : int
        Rows and columns of Z: at most n and p.
    weights : array_like, shape (n,), optional
        Of the rows, of sum 1. Default: uniform.
    n_starts : int
        Random couplings to start from.
    tol : float
        Relative decrease of the objective at which a descent stops.
    max_iter : int
        Rounds of both.
    random_state : int, numpy Generator or torch Generator
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    DistributionalReduction
        ``structure`` is the matrix of inner products of Z; ``residual`` the last relative decrease.

    Raises
    ------
    ImportError
        If POT is not installed.
    ValueError
        If counts are out of range.

    Examples
    --------
    >>> X = [[0.0, 0.0, 5.0], [0.0, 0.0, 5.0], [7.0, 7.0, 1.0], [7.0, 7.0, 1.0]]
    >>> found = coot_clustering(X, 2)
    >>> found.labels.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """
    X = as_points(X, "X")
    n, p = X.shape
    k = check_count("n_prototypes", n_prototypes, 1, n)
    q = check_count("n_components", n_components, 1, p)
    n_starts = check_count("n_starts", n_starts, 1)
    tol, max_iter = read_limits(tol, max_iter, on_failure, X.dtype)
    w = as_weights(weights, n, X, "weights")
    centre = X.mean()  # Z follows a shift of X, and squares of what all entries share would cancel
    rng, ends = as_rng(random_state), []
    for _ in range(n_starts):
        steps = _coot(X - centre, w, k, q, rng)
        course = iterate("coot_clustering", steps, tol, max_iter, on_failure="ignore")
        ends.append(course)
        if course.stopped:
            on_failure = "ignore"
            break
    best = min(ends, key=lambda end: end.state[2][-1])
    Z, T, trace = best.state
    Z = Z + centre
    return DistributionalReduction(
        Z=Z,
        plan=T,
        structure=Z @ Z.T,
        objective=trace[-1],
        residual=best.residual,
        n_iter=best.n_iter,
        converged=settle("coot_clustering", best.residual, tol, best.n_iter, on_failure),
        trace=trace,
        values=tuple(end.state[2][-1] for end in ends),
        products=0.0,
    )


def _coot(
    X: Tensor, w: Tensor, k: int, q: int, rng: np.random.Generator
) -> Iterator[tuple[tuple[Tensor, Tensor, tuple[float, ...]], float]]:
    """Means for the couplings of rows and columns, then these for the means; how far they fell."""
    try:
        from ot.lp import emd
    except ImportError:
        raise ImportError(
            "coot_clustering calls POT, which is not installed; pip install POT"
        ) from None
    h, v, g = (torch.full((m,), 1 / m).to(X) for m in (k, X.shape[1], q))
    T, S = (
        emd(a, b, torch.from_numpy(rng.random((len(a), len(b)))).to(X)) for a, b in ((w, h), (v, g))
    )
    trace: tuple[float, ...] = ()
    while True:
        Z = k * q * (T.T @ X @ S)  # (k, q)
        trace = (*trace, _between(X, Z, T, S))
        fall = (trace[-2] - trace[-1]) / trace[0] if len(trace) > 1 and trace[0] else 1.0
        yield (Z, T, trace), fall if trace[-1] else 0.0
        T = emd(w, h, (X.square() @ v)[:, None] + Z.square() @ g - 2 * X @ S @ Z.T)
        S = emd(v, g, (w @ X.square())[:, None] + h @ Z.square() - 2 * X.T @ T @ Z)


def _between(X: Tensor, Z: Tensor, T: Tensor, S: Tensor) -> float:
    """The objective over the pairs that vertices couple: squares alone, of which none cancels."""
    i, k = T.nonzero(as_tuple=True)  # at most n + k - 1
    j, m = S.nonzero(as_tuple=True)  # at most p + q - 1
    return float(T[i, k] @ (X[i][:, j] - Z[k][:, m]).square() @ S[j, m])
