r"""Embeddings: minimise an objective over the positions of points (Chapter 5 and after)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypedDict

from numpy.typing import ArrayLike
from torch import Tensor

from .._core.algebra import radius
from .._core.chance import Seed
from .._core.checks import as_count, as_points, as_positive, check_callback, check_choice
from .._core.run import OnFailure, iterate, read_limits
from .._core.saving import Saved
from .._core.threads import threads_for
from .descent import ONE_PLACE, Evaluation, Step, adam, lbfgs, metric_of
from .losses import KernelLoss, as_objective
from .starts import START_SPREAD, at_scale, random_start, spectral_start, with_noise

MapSolver = Literal["lbfgs", "adam"]

MAP_TOL = 0.02  # in either dtype


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Embedding(Saved):
    """Positions that minimise an objective, and how far the descent came."""

    Z: Tensor  #: (n, q) positions, centred, in units of the kernel's bandwidth
    value: float  #: F(Z), in nats
    kl: float  #: F(Z) plus the objective's constant, in nats; KL(P | Q) for those of this package
    dual: Tensor | None = None  #: (n,) f of the plan of the embedding, where it has one
    residual: float  #: what ``tol`` bounded, the length of dF/dZ as a share of its attraction's
    #: -<dF/dZ, Z> / mass of P, by which an enlargement, per its share, lowers F. Where it stays
    #: positive, the map was still growing when the run ended
    growth: float
    n_iter: int  #: iterations made
    passes: float  #: evaluations of the n x n kernel, those of line searches included
    products: int  #: products of the kernel of the embedding with a vector
    converged: bool  #: whether the residual is within ``tol``
    trace: tuple[float, ...]  #: the residual at the start and after each iteration
    values: tuple[float, ...]  #: F likewise

    @property
    def size(self) -> float:
        """Root mean square distance of the points from their centre, in the unit of Z."""
        return radius(self.Z)

    def __repr__(self) -> str:
        return (
            f"Embedding({self.Z.shape[0]} x {self.Z.shape[1]}, value={self.value:.6g}, "
            f"size={self.size:.3g}, "
            f"residual={self.residual:.1e}, n_iter={self.n_iter}, passes={self.passes:.0f})"
        )


MapInit = ArrayLike | Embedding
MapCallback = Callable[[int, float, Tensor, float], bool | None]


class Options(TypedDict, total=False):
    """What each method takes by name, as :func:`embed` has it, defaults included."""

    n_components: int | None
    init: MapInit
    solver: MapSolver
    learning_rate: float | None
    tol: float | None
    max_iter: int
    random_state: Seed
    callback: MapCallback | None
    on_failure: OnFailure


def embed(
    objective: KernelLoss,
    init: MapInit = "spectral",
    *,
    n_components: int | None = None,
    solver: MapSolver = "lbfgs",
    learning_rate: float | None = None,
    tol: float | None = None,
    max_iter: int = 2000,
    random_state: Seed = 0,
    callback: MapCallback | None = None,
    on_failure: OnFailure = "raise",
) -> Embedding:
    r"""Minimise an embedding objective F until attraction and repulsion balance.

    .. math:: \min_{Z \in \mathbb R^{n \times q}} F(Z), \qquad
        r(Z) = \frac{\| \nabla F(Z) \|}{\| \nabla \langle P, C_Z \rangle \|} .

    The residual r is the force that is left over, as a share of the attraction alone (norms over
    all points), or of the force that lowers F by 1 for each unit of mass on the way of the map's
    radius, where attraction is weaker: clusters that exchange next to no mass would part for ever.
    Of a map of radius 1/1000 or less, where all forces vanish, it is r's numerator times that
    radius and the root of n, for each unit of mass.
    It has no unit: it stays what it is when the data, the plan, the start or Z are
    measured in another one, and a map cannot lower it by growing.

    ``"lbfgs"`` is L-BFGS in the metric of the attraction: the matrix
    :math:`B = 4 L + \mu I`, with L the Laplacian of the objective's attraction weights, is
    factorised once, :math:`B^{-1}` is the first guess of the inverse second derivative, and ten
    pairs of steps and gradient changes correct it. A step ends by Wolfe's conditions, so F falls at
    each iteration, and none is longer than a tenth of the map's radius (root mean squares both):
    maps that start small grow while attraction still decides who goes where (book
    ``sec-growing``). A step does not enlarge the map for less than 1 % of what it lowers F by
    (book ``sec-size``).
    ``"adam"`` is the papers' optimiser, a fixed rate and no line search.

    Source: spectral direction of Vladymyrov and Carreira-Perpinan (2012), equation (4), as
    metric of L-BFGS; book ``alg-embed``.

    Parameters
    ----------
    objective : KernelLoss
        :class:`SNEkhornLoss`, :class:`SNELoss`, :class:`BernoulliLoss`, or another subclass.
    init : {"spectral", "random"}, array_like of shape (n, q), or Embedding
        Where to start: the plan's slow eigenvectors, normal coordinates of standard deviation
        0.1, given positions, or where an earlier run ended, which it continues unless that is one
        place. Of positions whose spread is below 1/100 of the kernel's bandwidth only the shape
        counts: they start at spread 0.1. Those above 100 are divided by 10 as long as F falls.
        Points that start where all their neighbours are, but for 1 % of the map's radius,
        get noise of that size, and so does a direction in which the cloud has no extent: no force
        would move them there (book ``prp-one-place``).
    n_components : int, optional
        :math:`q`. Default: 2 for starts by name; the columns of positions that are given.
    solver : {"lbfgs", "adam"}
    learning_rate : float, optional
        Of Adam; idle otherwise. Default 0.1, and 1 for LargeVis and UMAP, whose maps are wider.
    tol : float, optional
        Largest accepted residual. Default 0.02, when the picture hardly changes any more; take
        1e-3 for rest. Row sums of Q are iterated on to ``tol / 1000``.
    max_iter : int
        Iterations. Typical: 60 to 300.
    random_state : int, numpy Generator or torch Generator
        For starts by name, and for the noise above.
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
        and ``size`` says where growing no longer paid (book ``prp-size``).

    Raises
    ------
    ValueError
        If the start does not fit, or a name does not exist.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.
    Interrupted
        At an interrupt from the keyboard, with the embedding so far as ``result``.

    Notes
    -----
    Per iteration little more than one evaluation of F. The factor of B costs n^3 / 3
    multiplications, about ten evaluations at n = 20 000, and one more n x n array. Where the plan
    is an affinity of more than 4096 points whose cost is met in tiles there is no such array: L is
    that of the twenty largest weights of each row, and conjugate gradients solve. Up to there tiles
    change no step. Memory: ten arrays of b x n for
    tiles of b rows (see :class:`SNELoss`) and about 200 n numbers; the spectral start adds 450 n.

    Examples
    --------
    >>> import torch
    >>> from drot import doubly_stochastic_affinity, sqeuclidean
    >>> from drot.embeddings import SNEkhornLoss
    >>> X = torch.tensor([[0.0], [1.0], [2.0], [7.0], [8.0]], dtype=torch.float64)
    >>> plan = doubly_stochastic_affinity(sqeuclidean(X), bandwidth=1.0)  # nu = 1, as for Z
    >>> found = embed(SNEkhornLoss(plan), X + 0.1 * X.sin())
    >>> round(found.kl, 4), bool((found.Z.diff(dim=0) > 0).all())  # X itself, but for a shift
    (0.0, True)
    """
    objective = as_objective(objective)
    check_choice("solver", solver, MapSolver)
    rate = as_positive("learning_rate", objective.rate if learning_rate is None else learning_rate)
    tol = MAP_TOL if tol is None else tol
    tol, max_iter = read_limits(tol, max_iter, on_failure, objective.P.dtype)
    check_callback(callback)
    passes, products = [], []  # of each evaluation, line search included
    values: list[float] = []

    def evaluate(Z: Tensor, warm: Tensor | None) -> Evaluation:
        if warm is None and isinstance(init, Embedding) and init.dual is not None:
            warm = init.dual.to(Z)
        found = objective.evaluate(Z, warm=warm, tol=tol / 1000)
        passes.append(found.passes)
        products.append(found.products)
        return found

    def measured(step: Step) -> tuple[Step, float, Tensor, float]:
        values.append(step.found.value)
        residual = step.found.residual(radius(step.Z), objective.mass)
        return step, residual, step.Z, values[-1]

    with threads_for(objective.n**2):  # as by_size does, without its frame
        Z = _start(objective, init, n_components, random_state)
        if not isinstance(init, Embedding) or radius(Z) <= ONE_PLACE:
            Z = at_scale(Z, lambda Z: evaluate(Z, None).value)
            Z = with_noise(Z, objective.weights, random_state)
        if solver == "adam":
            path = adam(evaluate, Z, rate)
        else:
            path = lbfgs(evaluate, Z, metric_of(objective.weights))
        steps = map(measured, path)
        last, ended, course = iterate("embed", steps, tol, max_iter, callback, on_failure)
        constant = objective.constant
    Z, found = last.Z - last.Z.mean(dim=0), last.found
    result = Embedding(
        Z=Z,
        value=found.value,
        kl=found.value + constant,
        dual=found.dual,
        growth=-float((found.gradient * Z).sum()) / objective.mass,
        passes=float(sum(passes)),
        products=sum(products),
        values=tuple(values[: len(ended["trace"])]),
        **ended,
    )
    return course.give(result)


def _start(
    objective: KernelLoss, init: MapInit, n_components: int | None, random_state: Seed
) -> Tensor:
    """The first Z, centred."""
    plan, q = objective.P, 2 if n_components is None else n_components
    if isinstance(init, str):
        check_choice("init", init, ("spectral", "random"))
        if init == "spectral":
            Z = spectral_start(plan, n_components=q, random_state=random_state)
        else:
            Z = START_SPREAD * random_start(objective.n, n_components=q, random_state=random_state)
    else:
        Z = read_positions(init, objective.n, n_components)
    Z = Z.to(plan.device, plan.dtype)
    return Z - Z.mean(dim=0)


def read_positions(init: ArrayLike | Embedding, n: int, n_components: int | None) -> Tensor:
    """Positions (n, q) to start from, which is not a name."""
    Z = as_points(init.Z if isinstance(init, Embedding) else init, "init")
    if Z.shape[0] != n:
        raise ValueError(f"init has {Z.shape[0]} points, and {n} are to be placed")
    if n_components is not None and Z.shape[1] != as_count("n_components", n_components, 1):
        raise ValueError(
            f"init has {Z.shape[1]} columns and n_components={n_components}; make them equal"
        )
    return Z
