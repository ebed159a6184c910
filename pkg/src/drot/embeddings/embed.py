r"""Embeddings: minimise an objective over the positions of points (Chapter 4 and after)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Literal, Protocol, get_args

from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import Seed, as_points, check_choice, check_count, check_positive
from .._core.run import OnFailure, settle
from ..affinities.tiled import PlanRows
from .descent import Step, adam, lbfgs, metric_of, radius
from .evaluation import Evaluation
from .result import Embedding
from .starts import SMALL, apart, at_scale, random_start, spectral_start

Solver = Literal["lbfgs", "spectral", "adam"]
Init = ArrayLike | Embedding
Callback = Callable[[int, float, Tensor, float], bool | None]

_TOL = 0.02  # in either dtype
_REACH = 0.1  # longest step, in radii of the map
_MEMORY = 10  # pairs of L-BFGS


class Objective(Protocol):
    """What :func:`embed` minimises: ``SNELoss``, ``SNEkhornLoss``, ``BernoulliLoss``."""

    n: int  # points
    plan: Tensor | PlanRows  # (n, n); its dtype and device are the embedding's
    mass: float  # of the plan, to which residuals are in proportion

    @property
    def attraction(self) -> Tensor | PlanRows:
        """Symmetric weights, (n, n), whose Laplacian preconditions the descent."""

    @property
    def constant(self) -> float:
        """What is added to F to make it a divergence."""

    def evaluate(self, Z: Tensor, *, warm: Tensor | None = None, tol: float = 1e-6) -> Evaluation:
        """F and its gradient at Z (n, q)."""


def embed(
    objective: Objective,
    init: Init = "spectral",
    *,
    n_components: int = 2,
    solver: Solver = "lbfgs",
    learning_rate: float = 0.1,
    tol: float | None = None,
    max_iter: int = 2000,
    random_state: Seed = 0,
    callback: Callback | None = None,
    on_failure: OnFailure = "raise",
) -> Embedding:
    r"""Minimise an embedding objective F until attraction and repulsion balance.

    .. math:: \min_{Z \in \mathbb R^{n \times q}} F(Z), \qquad
        r(Z) = \frac{\| \nabla F(Z) \|}{\| \nabla \langle P, C_Z \rangle \|} .

    The residual r is the force that is left over, as a share of the attraction alone (norms over
    all points). It has no unit: it stays what it is when the data, the plan, the start or Z are
    measured in another one, and a map cannot lower it by growing.

    ``"lbfgs"`` is L-BFGS in the metric of the attraction: the matrix
    :math:`B = 4 L + \mu I`, with L the Laplacian of the objective's attraction weights, is
    factorised once, :math:`B^{-1}` is the first guess of the inverse second derivative, and ten
    pairs of steps and gradient changes correct it. ``"spectral"`` takes the direction
    :math:`-B^{-1} \nabla F` as it is. Both stop a step by Wolfe's conditions, so F falls at each
    iteration, and none is longer than a tenth of the map's radius (root mean squares both): maps
    that start small grow while attraction still decides who goes where (book ``sec-growing``). A
    step does not enlarge the map for less than 1 % of what it lowers F by (book ``sec-size``).
    ``"adam"`` is the papers' optimiser, a fixed rate and no line search.

    Source: spectral direction of Vladymyrov and Carreira-Perpinan (2012), equation (4), as
    metric of L-BFGS; book ``alg-embed``.

    Parameters
    ----------
    objective : Objective
        :class:`SNEkhornLoss`, :class:`SNELoss` or :class:`BernoulliLoss`.
    init : {"spectral", "random"}, array_like of shape (n, q), or Embedding
        Where to start: the plan's slow eigenvectors, normal coordinates of standard deviation
        0.1, given positions, or where an earlier run ended, which it continues. Of positions whose
        spread is below 1/100 of the kernel's bandwidth only the shape counts: they start at spread
        0.1. Those above 100 are divided by 10 as long as F falls. Points that start where all their
        neighbours are, but for 1 % of the spread of the cloud, get noise of that size, and so
        does a direction in which the cloud has no extent: no force would move them there (book
        ``prp-one-place``).
    n_components : int
        :math:`q`, for starts by name.
    solver : {"lbfgs", "spectral", "adam"}
    learning_rate : float
        Of Adam; idle otherwise.
    tol : float, optional
        Largest accepted residual. Default 0.02, when the picture hardly changes any more; take
        1e-3 for rest. Row sums of Q are iterated on to ``tol / 1000``.
    max_iter : int
        Iterations. Typical: 60 to 300.
    random_state : int, numpy Generator or torch Generator
        For starts by name.
    callback : callable, optional
        Called as ``callback(iteration, residual, Z, value)`` at the start and after each
        iteration; returning True stops the run, which then counts as not converged but raises
        nothing.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    Embedding
        Centred; determined up to a rotation or reflection and to the local minimum. Where F has no
        minimum at a finite size, as t-SNE's may not have, ``growth`` stays positive, however small,
        and ``size`` says where growing no longer paid (book ``prp-size``). A run that
        is interrupted from the keyboard returns what it has, with a warning.

    Raises
    ------
    ValueError
        If the start does not fit, or a name does not exist.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.

    Notes
    -----
    Per iteration little more than one evaluation of F. The factor of B costs n^3 / 3
    multiplications, about ten evaluations at n = 20 000, and one more n x n array. Where the plan
    is an affinity whose cost is met in tiles there is no such array: L is that of the twenty
    largest weights of each row, and conjugate gradients solve. Memory: ten arrays of b x n for
    tiles of b rows (see :class:`SNELoss`) and about 200 n numbers; the spectral start adds 450 n.

    Examples
    --------
    >>> import torch
    >>> from drot import doubly_stochastic_affinity, sqeuclidean
    >>> from drot.snekhorn_loss import SNEkhornLoss
    >>> X = torch.tensor([[0.0], [1.0], [2.0], [7.0], [8.0]], dtype=torch.float64)
    >>> plan = doubly_stochastic_affinity(sqeuclidean(X), bandwidth=1.0)  # nu = 1, as for Z
    >>> found = embed(SNEkhornLoss(plan), X + 0.1 * X.sin())
    >>> round(found.kl, 4), bool((found.Z.diff(dim=0) > 0).all())  # X itself, but for a shift
    (0.0, True)
    """
    return descend(
        objective,
        init,
        n_components,
        solver,
        learning_rate,
        tol,
        max_iter,
        random_state,
        callback,
        on_failure,
    )


def descend(
    objective: Objective,
    init,
    n_components: int,
    solver: Solver,
    learning_rate: float,
    tol: float | None,
    max_iter: int,
    random_state: Seed,
    callback: Callback | None,
    on_failure: OnFailure,
    *,
    inner: bool = False,
) -> Embedding:
    """What :func:`embed` does. ``inner``: a round of a longer descent, whose start stays as it is
    and whose interruption is passed on."""
    check_choice("solver", solver, get_args(Solver))
    check_choice("on_failure", on_failure, get_args(OnFailure))
    max_iter = check_count("max_iter", max_iter, 1)
    learning_rate = check_positive("learning_rate", learning_rate)
    Z, warm = _start(objective, init, n_components, random_state)
    attraction = objective.attraction
    tol = _TOL if tol is None else check_positive("tol", tol)
    run = _Run(objective, warm, tol / 1000)
    if not inner and not isinstance(init, Embedding):
        Z = at_scale(Z, lambda Z: run.evaluate(Z, None).value)
        Z = apart(Z, attraction, random_state)
    if solver == "adam":
        steps = adam(run.evaluate, Z, learning_rate)
    else:
        memory = _MEMORY if solver == "lbfgs" else 0
        steps = lbfgs(run.evaluate, Z, metric_of(attraction), memory, _REACH)
    del attraction  # for a kept plan one more (n, n)
    trace: list[float] = []
    values: list[float] = []
    step: Step | None = None
    stopped = False
    try:
        for step in steps:
            trace.append(step.found.residual(radius(step.Z), objective.mass))
            values.append(step.found.value)
            if callback is not None and callback(len(trace) - 1, trace[-1], step.Z, values[-1]):
                stopped = True
            if stopped or trace[-1] <= tol or len(trace) > max_iter:
                break
    except KeyboardInterrupt:
        if step is None or inner:
            raise
        stopped = True
        warnings.warn(
            f"embed: interrupted after {len(trace) - 1} iterations; the result is what they gave",
            RuntimeWarning,
            stacklevel=3,
        )
    assert step is not None  # the first one is the start
    residual, n_iter = trace[-1], len(trace) - 1
    Z = step.Z - step.Z.mean(dim=0)
    return Embedding(
        Z=Z,
        value=values[-1],
        kl=values[-1] + objective.constant,
        dual=step.found.dual,
        residual=residual,
        growth=-float((step.found.gradient * Z).sum()) / objective.mass,
        n_iter=n_iter,
        passes=run.passes,
        products=run.products,
        converged=settle("embed", residual, tol, n_iter, "ignore" if stopped else on_failure),
        trace=tuple(trace),
        values=tuple(values),
    )


class _Run:
    """Evaluations of one objective, counted."""

    def __init__(self, objective: Objective, warm: Tensor | None, tol: float):
        self.objective, self.warm, self.tol = objective, warm, tol
        self.passes, self.products = 0.0, 0

    def evaluate(self, Z: Tensor, warm: Tensor | None) -> Evaluation:
        warm = self.warm if warm is None else warm
        found = self.objective.evaluate(Z, warm=warm, tol=self.tol)
        self.passes += found.passes
        self.products += found.products
        return found


def _start(
    objective: Objective, init, n_components: int, random_state: Seed
) -> tuple[Tensor, Tensor | None]:
    """The first Z, centred, and the dual to begin with."""
    plan, warm = objective.plan, None
    dtype, device = plan.dtype, plan.device
    if isinstance(init, str):
        check_choice("init", init, ("spectral", "random"))
        if init == "random":
            Z = SMALL * random_start(
                objective.n,
                n_components=n_components,
                random_state=random_state,
                dtype=dtype,
                device=device,
            )
        else:
            Z = spectral_start(plan, n_components=n_components, random_state=random_state)
    else:
        if isinstance(init, Embedding):
            init, warm = init.Z, None if init.dual is None else init.dual.to(device, dtype)
        Z = as_points(init, "init").to(device, dtype)
        if Z.shape[0] != objective.n:
            raise ValueError(f"init has {Z.shape[0]} points and the plan {objective.n}")
    return Z - Z.mean(dim=0), warm
