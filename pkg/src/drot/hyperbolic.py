"""Prototypes in hyperbolic space, by the Lorentz model of geoopt (Chapter 12).

A point is :math:`z = (z_0, v)` with :math:`z_0 = \\sqrt{1 + |v|^2}`, on the sheet where
:math:`\\langle z, z \\rangle_L = -z_0^2 + |v|^2 = -1`: curvature -1.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ._core.checks import Seed, as_rng, check_choice, check_count, check_positive
from ._core.run import OnFailure
from .distributional.hyperboloid import centres, exp, lift, mean, points, squares
from .distributional.loss import Normalization
from .distributional.reduction import (
    Clustering,
    Coupling,
    DistributionalReduction,
    Reduction,
    read_problem,
)
from .distributional.solve import Callback, Init, solve
from .embeddings.descent import lbfgs
from .embeddings.losses import Evaluation, Kernel
from .gromov.contraction import Loss, total
from .metrics.prototypes import silhouette_of

__all__ = ["distance", "kmeans", "reduce", "silhouette", "to_poincare", "wrapped_normal"]

_MEMORY = 10  # pairs of L-BFGS
_REACH = 2.0  # of normal coordinates, which stretch a length by at most sinh(r) / r = 1.8 there


def _lorentz():
    """geoopt's manifold of curvature -1."""
    try:
        with warnings.catch_warnings():
            # it compiles a helper on import in a manner that torch no longer likes
            warnings.simplefilter("ignore", DeprecationWarning)
            import geoopt
    except ImportError:
        raise ImportError(
            "drot.hyperbolic calls geoopt, which is not installed; pip install geoopt"
        ) from None
    return geoopt.Lorentz(k=1.0)


def distance(Z) -> Tensor:
    r"""Hyperbolic distances between points in Lorentz coordinates.

    .. math:: d(z, z') = \operatorname{arcosh}(- \langle z, z' \rangle_L)
              = 2 \operatorname{arsinh} \sqrt{\sinh^2 \tfrac{r - r'}{2}
              + \tfrac14 \sinh r \, \sinh r' \, \| n - n' \|^2},

    of which the second, by the radii r and directions n of the space-like parts, keeps its digits
    where points are close or far out.

    Source: equation (1) of Nickel and Kiela (2018), as appendix F.10 of Van Assel et al. (2024)
    uses it.

    Parameters
    ----------
    Z : array_like, shape (k, q + 1)
        Lorentz coordinates, the height first.

    Returns
    -------
    Tensor, shape (k, k)

    Examples
    --------
    >>> Z = [[1.0, 0.0], [float(np.cosh(2)), float(np.sinh(2))]]
    >>> round(float(distance(Z)[0, 1]), 9)
    2.0
    """
    return squares(points(Z)[:, 1:]).sqrt()


def wrapped_normal(
    n: int, *, n_components: int = 2, scale: float = 1.0, random_state: Seed = 0
) -> Tensor:
    r"""Points of a wrapped normal distribution around the origin.

    A normal vector of the tangent space at the origin, of standard deviation ``scale``, is
    carried along its geodesic: :math:`z = (\cosh |u|, \sinh |u| \, u / |u|)`.

    Source: Nagano et al. (2019), as appendix F.10 of Van Assel et al. (2024) starts with it.

    Parameters
    ----------
    n, n_components : int
    scale : float
    random_state : int, numpy Generator or torch Generator

    Returns
    -------
    Tensor, shape (n, n_components + 1), float64
        Lorentz coordinates.

    Examples
    --------
    >>> Z = wrapped_normal(5)
    >>> bool(((-Z[:, 0] ** 2 + Z[:, 1] ** 2 + Z[:, 2] ** 2 + 1).abs() < 1e-9).all())
    True
    """
    n, q = check_count("n", n, 1), check_count("n_components", n_components, 1)
    steps = check_positive("scale", scale) * as_rng(random_state).standard_normal((n, q))
    u = torch.from_numpy(np.hstack([np.zeros((n, 1)), steps]))
    return lift(_lorentz().expmap0(u)[:, 1:])


def to_poincare(Z) -> Tensor:
    r"""Points of the Poincare ball, for pictures: :math:`v / (1 + z_0)`.

    Source: appendix F.10 of Van Assel et al. (2024).

    Parameters
    ----------
    Z : array_like, shape (k, q + 1)
        Lorentz coordinates.

    Returns
    -------
    Tensor, shape (k, q)
        In the open unit ball.

    Examples
    --------
    >>> to_poincare([[1.0, 0.0, 0.0], [float(np.cosh(2)), float(np.sinh(2)), 0.0]]).round(
    ...     decimals=4
    ... ).tolist()
    [[0.0, 0.0], [0.7616, 0.0]]
    """
    Z = points(Z)
    return Z[:, 1:] / (1 + Z[:, :1])


class _Even:
    """B = 4 I: in its own normal coordinates each point has the attraction of a row of mass 1."""

    def solve(self, g: Tensor) -> Tensor:
        return g / 4


def _riemannian(g: Tensor, v: Tensor) -> Tensor:
    """Derivatives by v (k, q), in coordinates (k, q + 1) that have the length of the gradients.

    The metric of the chart is I - v v^T / z_0^2, and its inverse I + v v^T.
    """
    return torch.cat([g, (v * g).sum(dim=1, keepdim=True)], dim=1)


def _size(v: Tensor) -> float:
    """Root mean square distance between two points, over the square root of 2, as of a plane."""
    return float((squares(v).mean() / 2).sqrt())


class _Hyperbolic(Reduction):
    """Positions are held by their space-like parts v (k, q), a chart of the whole space."""

    def __init__(self, plain: Reduction, gamma: float):
        self.__dict__.update(plain.__dict__)
        self.gamma = gamma

    def log_kernel(self, Z: Tensor) -> Tensor:
        square = squares(Z)
        return -(torch.log1p(square / self.gamma**2) if self.kernel == "student" else square)

    def evaluate(self, c: Coupling, v: Tensor) -> Evaluation:
        """E_L and its derivative by v: exact by the kernel, then by the chain of the distance."""
        v = v.detach().requires_grad_()
        log = self.log_kernel(v)
        C, h2 = self.structure(v.detach(), c)
        value = self.constant + float(c.q @ (self.base.f2_of(C) @ c.q)) - total(c.M * h2)
        # minus their difference is dE / d log K, the factors being the best
        pull, push = c.M, c.q[:, None] * c.q * C
        if self.loss == "square":
            pull, push = 2 * C * pull, 2 * C * push
        (attract,) = torch.autograd.grad(-(log * pull).sum(), v, retain_graph=True)
        (repel,) = torch.autograd.grad(-(log * push).sum(), v)
        return Evaluation(value=value, attraction=attract, repulsion=repel)

    def around(
        self, c: Coupling, v: Tensor, unit: float, x: Tensor, warm: Tensor | None
    ) -> Evaluation:
        """E_L as a function of normal coordinates x (k, q) around v."""
        x = x.detach().requires_grad_()
        moved = exp(x, v)
        found = self.evaluate(c, moved)
        both = found.attraction, found.repulsion
        attract, repel = (
            torch.autograd.grad(moved, x, unit * g, retain_graph=True)[0] for g in both
        )
        return Evaluation(value=unit * found.value, attraction=attract, repulsion=repel)

    def place(self, c: Coupling, Z: Tensor, tol: float, max_iter: int) -> Tensor:
        """L-BFGS in normal coordinates, around new points once one of them is past its reach."""
        count, unit = 0, len(c.q) / self._loss(c).mass
        while True:
            objective, size = partial(self.around, c, Z, unit), _size(Z)
            for step in lbfgs(objective, torch.zeros_like(Z), _Even(), _MEMORY):
                count += 1
                done = step.found.residual(size, len(c.q)) <= tol or count > max_iter
                if done or float(step.Z.norm(dim=1).max()) > _REACH:
                    break
            if done or not bool(step.Z.any()):
                return exp(step.Z, Z)
            Z = exp(step.Z, Z)

    def slope(self, c: Coupling, Z: Tensor) -> float:
        found = self.evaluate(c, Z)
        attract, repel = _riemannian(found.attraction, Z), _riemannian(found.repulsion, Z)
        whole = Evaluation(value=found.value, attraction=attract, repulsion=repel)
        return whole.residual(_size(Z), self._loss(c).mass)

    def start(self, c: Coupling, n_components: int, rng: np.random.Generator) -> Tensor:
        return self.chance(len(c.q), n_components, rng)

    def chance(self, k: int, n_components: int, rng: np.random.Generator) -> Tensor:
        return wrapped_normal(k, n_components=n_components, random_state=rng)[:, 1:].to(self.w)

    def centres(self, c: Coupling, Z: Tensor) -> Tensor:
        return centres(Z, super().centres(c, torch.eye(len(Z)).to(Z)))

    def result(self, Z: Tensor, c: Coupling, *args) -> DistributionalReduction:
        found = super().result(Z, c, *args)
        object.__setattr__(found, "Z", lift(Z))
        return found


def reduce(
    similarity,
    n_prototypes: int,
    *,
    n_components: int = 2,
    kernel: Kernel = "student",
    scale: float = 1.0,
    normalization: Normalization = "sum",
    loss: Loss = "kl",
    weights: ArrayLike | None = None,
    init: Init | Sequence[Init] | ArrayLike | DistributionalReduction = "cluster_then_reduce",
    n_starts: int = 2,
    clustering: Clustering = "spectral",
    tol: float | None = None,
    max_iter: int = 100,
    random_state: Seed = 0,
    callback: Callback | None = None,
    on_failure: OnFailure = "raise",
) -> DistributionalReduction:
    r"""Distributional reduction with prototypes in hyperbolic space.

    The problem and the descent of :func:`drot.distributional_reduction`, with

    .. math:: K_{kl} = \frac{1}{1 + d(z_k, z_l)^2 / \gamma^2} \quad \text{or} \quad
              e^{- d(z_k, z_l)^2}

    of hyperbolic distances. Positions move by L-BFGS in normal coordinates, in which geodesics from
    the last positions are straight; no block raises the objective. Room grows with the exponential
    of the radius, as the number of nodes of a tree does.

    Source: appendix F.10 of Van Assel et al. (2024); the kernel with :math:`\gamma` after Guo et
    al. (2022).

    Parameters
    ----------
    similarity, n_prototypes, n_components, normalization, loss, weights
        As in :func:`drot.distributional_reduction`.
    kernel : {"student", "gaussian"}
    scale : float
        :math:`\gamma` of the Student kernel.
    init, n_starts, clustering, tol, max_iter, random_state, callback, on_failure
        As in :func:`drot.distributional_reduction`; positions start from a wrapped normal. The
        residual compares lengths of Riemannian gradients.

    Returns
    -------
    DistributionalReduction
        ``Z`` (k, q + 1) in Lorentz coordinates; :func:`to_poincare` draws it.

    Raises
    ------
    ImportError, ValueError, NotConverged
        Without geoopt; as :func:`drot.distributional_reduction`.

    Examples
    --------
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double() + 0.1
    >>> reduce(C, 2).Z.shape
    torch.Size([2, 3])
    """
    check_choice("kernel", kernel, ("student", "gaussian"))
    scale = check_positive("scale", scale)
    plain, k = read_problem(
        similarity, n_prototypes, n_components, kernel, normalization, loss, weights
    )
    if isinstance(init, DistributionalReduction):
        fields = {name: getattr(init, name) for name in init.__dataclass_fields__}
        init = DistributionalReduction(**{**fields, "Z": points(init.Z)[:, 1:]})
    limits = init, n_starts, clustering, tol, max_iter, random_state, callback, on_failure
    return solve(_Hyperbolic(plain, scale), k, n_components, "hyperbolic.reduce", *limits)


def silhouette(Z, plan, y) -> float:
    """The weighted silhouette of :mod:`drot.metrics`, with hyperbolic distances.

    Source: appendix F.10 of Van Assel et al. (2024).

    Parameters
    ----------
    Z : array_like, shape (k, q + 1)
        Lorentz coordinates.
    plan, y
        As in :func:`drot.metrics.weighted_silhouette`.

    Examples
    --------
    >>> Z = lift(torch.tensor([[0.0], [1.0], [10.0], [11.0]]))
    >>> 0 < silhouette(Z, np.eye(4) / 4, [0, 0, 1, 1]) < 1
    True
    """
    return silhouette_of(distance(Z).double(), plan, y)


def kmeans(Z, n_clusters: int, *, n_starts: int = 10, random_state: Seed = 0) -> Tensor:
    r"""k-means with hyperbolic distances and means.

    Lloyd's iterations. The mean of a cluster, unique in this space, minimises
    :math:`\sum_i d(z_i, m)^2`: there the average of the directions to the points is 0, which
    Newton's method solves for.

    Source: the k-means of appendix F.10 of Van Assel et al. (2024).

    Parameters
    ----------
    Z : array_like, shape (k, q + 1)
        Lorentz coordinates, of heights up to 1e76.
    n_clusters : int
    n_starts : int
        Random choices of points to start from.
    random_state : int, numpy Generator or torch Generator

    Returns
    -------
    Tensor, shape (k,)
        Labels below ``n_clusters``, of the start with the least sum of squares.

    Examples
    --------
    >>> Z = lift(torch.tensor([[0.0], [1.0], [10.0], [11.0]]).double())
    >>> labels = kmeans(Z, 2).tolist()
    >>> labels[0] == labels[1] != labels[2] == labels[3]
    True
    """
    v = points(points(Z).double(), share=0.25)[:, 1:]  # means see the distances doubled
    n, m = len(v), check_count("n_clusters", n_clusters, 1, len(v))
    n_starts, rng = check_count("n_starts", n_starts, 1), as_rng(random_state)
    best, lowest = torch.zeros(n, dtype=torch.int64, device=v.device), float("inf")
    for _ in range(n_starts):
        means = v[torch.from_numpy(rng.choice(n, m, replace=False))]
        value = float("inf")
        while True:
            least, new = squares(v, means).min(dim=1)
            if not float(least.sum()) < value:
                break
            labels, value = new, float(least.sum())
            rows = [
                mean(v[labels == c]) if bool((labels == c).any()) else means[c] for c in range(m)
            ]
            means = torch.stack(rows)
        if value < lowest:
            best, lowest = labels, value
    return best
