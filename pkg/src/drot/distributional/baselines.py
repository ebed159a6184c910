"""Reduction and clustering one after the other, and clustering by CO-Optimal Transport."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import NamedTuple, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.chance import Seed, as_rng
from .._core.checks import as_count, as_points, as_symmetric, check_callback, check_squares
from .._core.options import takes_options_of
from .._core.run import OnFailure, read_limits
from .._core.threads import by_size
from ..embeddings.embed import MAP_TOL
from ..gromov.contraction import Unit, power_of_2
from ..gromov.reading import as_weights
from ..gromov.search import multistart
from .problem import Iterate, ProblemOptions, make_problem
from .reduction import DistributionalReduction, OutputKernel
from .solve import TOL, clustered, conclude, distributional_reduction, reduced


@takes_options_of(distributional_reduction, ProblemOptions)
def cluster_then_reduce(
    similarity, n_prototypes: int, *,
    centres: Callable[[Tensor], ArrayLike] | None = None,
    kernel: OutputKernel = "student", tol: float = TOL, max_iter: int = 2000,
    random_state: Seed = 0, on_failure: OnFailure = "raise", **options: Unpack[ProblemOptions],
) -> DistributionalReduction:  # fmt: skip
    r"""Cluster the points, then embed the similarity between the clusters (CDR).

    With the plan T of the clusters, :math:`\min_Z E_L(C, \bar C(Z), T)`: the positions are the
    best for the weights and the mean similarities of the clusters, and nothing tells the
    clustering how well they can be drawn.

    Source: the sequential method CDR in appendix F.1 of Van Assel et al. (2024), whose second
    step is that of ``centres``; book ``thm-distr-split``.

    Parameters
    ----------
    similarity, n_prototypes
        As in :func:`distributional_reduction`.
    centres : callable, optional
        Makes a similarity (k, k) of the plan (n, k), that of the centres of the clusters: they are
        embedded instead, all with the same weight, and the objective is still that of C and T.
    n_components, kernel, weights
        As in :func:`distributional_reduction`.
    clustering : {"spectral", "kmeans"}
        Of C: spectral clustering as scikit-learn defines it, or k-means of the points, where the
        similarity knows them, or of its leading eigenvectors as coordinates. A C with negative
        entries is no graph, one held in factors is not formed: k-means takes its place.
    tol : float
        Largest accepted residual, as in :func:`embed`.
    max_iter : int
        Iterations of the embedding.
    random_state : int, numpy Generator or torch Generator
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    DistributionalReduction
        Hard plan; ``values`` holds the objective alone, ``n_iter`` is 0.

    Raises
    ------
    ValueError, NotConverged
        As :func:`distributional_reduction`.

    Examples
    --------
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double() + 0.1
    >>> sorted(round(x, 3) for x in cluster_then_reduce(C, 2).weights.tolist())
    [0.333, 0.667]

    >>> X = torch.tensor([[0.0], [1.0], [2.0], [9.0]]).double()
    >>> def products(T):
    ...     centres = T.T @ X / T.sum(dim=0)[:, None]
    ...     return centres @ centres.T
    >>> ask = {"kernel": "gram", "n_components": 1, "clustering": "kmeans", "centres": products}
    >>> sorted(round(z, 9) for z in cluster_then_reduce(X @ X.T, 2, **ask).Z[:, 0].abs().tolist())
    [1.0, 9.0]
    """
    check_callback(centres, "centres")
    problem = make_problem(similarity, n_prototypes, kernel=kernel, **options)
    tol, max_iter = read_limits(tol, max_iter, on_failure, problem.w.dtype)
    if centres is None:
        at = next(clustered(problem, as_rng(random_state), tol, max_iter))
    else:
        c, k = problem.cluster(as_rng(random_state)), problem.k
        similar = as_symmetric(centres(c.T), "what centres returned")
        if len(similar) != k:
            raise ValueError(f"centres must return a ({k}, {k}) array; got {tuple(similar.shape)}")
        alike: ProblemOptions = {**options, "weights": None}
        few = make_problem(similar, k, kernel=kernel, **alike)
        at = next(clustered(few, as_rng(random_state), tol, max_iter))
        Z = problem.read_positions(at.Z)  # in the dtype and on the device of the points
        at = at._replace(Z=Z, coupling=c, value=problem.objective(Z, c))
    found = multistart("cluster_then_reduce", [at], repeat, Iterate.report, 0)
    return conclude(problem, found, tol, on_failure)


@takes_options_of(distributional_reduction, ProblemOptions)
def reduce_then_cluster(
    similarity, n_prototypes: int, *,
    kernel: OutputKernel = "student", tol: float = MAP_TOL, max_iter: int = 2000,
    random_state: Seed = 0, on_failure: OnFailure = "raise", **options: Unpack[ProblemOptions],
) -> DistributionalReduction:  # fmt: skip
    r"""Embed all points, then cluster the embedding and keep the centres (DRC).

    With labels found on :math:`Z^*`, :math:`z_k = \sum_i T_{ik} z^*_i / q_k`.

    Source: the sequential method DRC in appendix F.1 of Van Assel et al. (2024); book
    ``thm-distr-split``.

    Parameters
    ----------
    similarity, n_prototypes, n_components, kernel, weights
        As in :func:`distributional_reduction`.
    clustering : {"spectral", "kmeans"}
        Of the similarity of the embedded points, or of their positions; of positions also where
        the similarity has negative entries.
    tol : float
        Largest accepted residual of the embedding of all points; 0.02 is that of :func:`embed`.
    max_iter, random_state, on_failure
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
    problem = make_problem(similarity, n_prototypes, kernel=kernel, **options)
    tol, max_iter = read_limits(tol, max_iter, on_failure, problem.w.dtype)
    at = next(reduced(problem, as_rng(random_state), tol, max_iter))
    found = multistart("reduce_then_cluster", [at], repeat, Iterate.report, 0)
    return conclude(problem, found, tol, on_failure)


@by_size
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
        If counts are out of range, weights are negative or do not sum to 1, or squared distances
        leave the range of the dtype.
    NotConverged
        If the best start did not reach ``tol`` and ``on_failure="raise"``.

    Examples
    --------
    >>> X = [[0.0, 0.0, 5.0], [0.0, 0.0, 5.0], [7.0, 7.0, 1.0], [7.0, 7.0, 1.0]]
    >>> found = coot_clustering(X, 2)
    >>> found.labels.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """
    try:
        from ot.lp import emd
    except ImportError:
        says = "coot_clustering calls POT, which is not installed; pip install POT"
        raise ImportError(says) from None
    X = as_points(X, "X")
    (n, p), dtype, X = X.shape, X.dtype, X.double()  # as POT's couplings are
    k = as_count("n_prototypes", n_prototypes, 1, n)
    q = as_count("n_components", n_components, 1, p)
    n_starts = as_count("n_starts", n_starts, 1)
    tol, max_iter = read_limits(tol, max_iter, on_failure, dtype)
    w, rng = as_weights(weights, n, X), as_rng(random_state)
    h, v, g = (torch.full((m,), 1 / m).to(X) for m in (k, p, q))
    centre = X.mean()  # Z follows a shift of X, and squares of what all entries share would cancel
    X = X - centre
    check_squares(X.to(dtype), "X")
    unit = Unit(size=power_of_2(float(X.abs().max())))  # as POT's least cost
    X = X / unit.size

    def couplings() -> Iterator[list[Tensor]]:
        for _ in range(n_starts):
            costs = (torch.from_numpy(rng.random(shape)).to(X) for shape in ((n, k), (p, q)))
            yield [emd(a, b, cost) for (a, b), cost in zip(((w, h), (v, g)), costs, strict=True)]

    def descend(start: list[Tensor]) -> Iterator[_Table]:
        """Means for the couplings of rows and columns, then these for the means."""
        (T, S), last, scale = start, math.inf, 0.0
        while True:
            Z = k * q * (T.T @ X @ S)  # (k, q)
            costs = (X.square() @ v)[:, None] + Z.square() @ g - 2 * X @ S @ Z.T  # (n, k)
            value = _between(X, Z, T, S)
            scale = scale or value or 1.0
            fall = (last - value) / scale
            yield _Table(Z, T, value, fall)
            if fall <= tol:
                return
            last, T = value, emd(w, h, costs)
            S = emd(v, g, (w @ X.square())[:, None] + h @ Z.square() - 2 * X.T @ T @ Z)

    found = multistart("coot_clustering", couplings(), descend, lambda at: (at.fall,), max_iter)
    Z = (found.state.Z * unit.size + centre).to(dtype)
    objective = unit.objective(found.state.value)
    return found.conclude(
        DistributionalReduction, tol, on_failure, objective, unit,
        Z=Z, plan=found.state.T.to(dtype), structure=Z @ Z.T, products=0.0,
    )  # fmt: skip


class _Table(NamedTuple):
    """Means of the parts of a table."""

    Z: Tensor  # (k, q)
    T: Tensor  # (n, k) coupling of the rows
    value: float  # the objective
    fall: float  # since the table before, as a share of the first


def _between(X: Tensor, Z: Tensor, T: Tensor, S: Tensor) -> float:
    """The objective over the pairs that vertices couple: squares alone, of which none cancels."""
    i, k = T.nonzero(as_tuple=True)  # at most n + k - 1
    j, m = S.nonzero(as_tuple=True)  # at most p + q - 1
    return float(T[i, k] @ (X[i][:, j] - Z[k][:, m]).square() @ S[j, m])
