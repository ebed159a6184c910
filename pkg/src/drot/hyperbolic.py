r"""Prototypes in hyperbolic space, by the Lorentz model (Chapter 14).

A point is :math:`z = (z_0, v)` with :math:`z_0 = \sqrt{1 + |v|^2}`, on the sheet where
:math:`\langle z, z \rangle_L = -z_0^2 + |v|^2 = -1`: curvature -1. Below, points are held by
their space-like parts v (k, q), with :math:`|v| = \sinh r` at distance r from the origin. Lorentz
products cancel: at radius 9 eight digits of a float64 are gone, at 18 all. The formulas here are
sums of terms of one sign. Coordinates round by eps sinh r: distances of 1e-3 at 30, 0.5 at 36.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ._core.algebra import ratio
from ._core.chance import Seed, as_rng
from ._core.checks import as_count, as_points, as_positive, check_choice
from ._core.options import takes_options_of
from ._core.threads import by_size
from .costs.kernels import KERNELS, KernelName
from .distributional.loss import kernel_structure, value_at
from .distributional.problem import ProblemOptions, ReductionProblem
from .distributional.reduction import DistributionalReduction
from .distributional.solve import SearchOptions, Start, solve
from .distributional.solve import distributional_reduction as euclidean_reduction
from .embeddings.descent import Evaluation, lbfgs
from .gromov.contraction import Coupling

__all__ = ["distances", "distributional_reduction", "to_poincare", "wrapped_normal"]

_FAR = 175.0  # distance from the origin up to which heights, and their means, are in range
_NARROW, _WIDE = 1e-100, 100.0  # bandwidths: e^-12 of a Gaussian is the least in range
_OFF = 1e-4  # the sheet, in squares of the height
_REACH = 8.0  # of normal coordinates, before new ones: each time L-BFGS forgets its pairs


@by_size
def distances(Z) -> Tensor:
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

    Raises
    ------
    ValueError
        If a row is not on the sheet, or too far out.

    Examples
    --------
    >>> Z = [[1.0, 0.0], [float(np.cosh(2)), float(np.sinh(2))]]
    >>> round(float(distances(Z)[0, 1]), 9)
    2.0
    """
    return squared_distances(as_lorentz(Z)[:, 1:]).sqrt()


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

    Raises
    ------
    ValueError
        If a number is out of range, or ``scale`` puts a point farther out than 175.

    Examples
    --------
    >>> Z = wrapped_normal(5)
    >>> bool(((-Z[:, 0] ** 2 + Z[:, 1] ** 2 + Z[:, 2] ** 2 + 1).abs() < 1e-9).all())
    True
    """
    n, q = as_count("n", n, 1), as_count("n_components", n_components, 1)
    steps = as_positive("scale", scale) * as_rng(random_state).standard_normal((n, q))
    length, direction = _polar(torch.from_numpy(steps))
    if float(length.max()) > _FAR:
        raise ValueError(
            f"scale={scale:g} puts a point at distance {float(length.max()):.0f} from the origin, "
            f"where heights exceed {math.exp(_FAR):.0e}, as they do past {_FAR:.0f}; "
            "take a smaller scale"
        )
    return to_lorentz(torch.sinh(length) * direction)


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

    Raises
    ------
    ValueError
        As :func:`distances`.

    Examples
    --------
    >>> to_poincare([[1.0, 0.0, 0.0], [float(np.cosh(2)), float(np.sinh(2)), 0.0]]).round(
    ...     decimals=4
    ... ).tolist()
    [[0.0, 0.0], [0.7616, 0.0]]
    """
    Z = as_lorentz(Z)
    ball, most = Z[:, 1:] / (1 + Z[:, :1]), 1 - 4 * torch.finfo(Z.dtype).eps
    return ball * (most / ball.norm(dim=1, keepdim=True).clamp_min(most))  # far out it rounds to 1


@takes_options_of(euclidean_reduction, SearchOptions)
def distributional_reduction(
    similarity,
    n_prototypes: int,
    *,
    kernel: KernelName = "student",
    scale: float = 1.0,
    init: Start | Sequence[Start] | ArrayLike | DistributionalReduction = "cluster_then_reduce",
    **options: Unpack[SearchOptions],
) -> DistributionalReduction:
    r"""Distributional reduction with prototypes in hyperbolic space.

    The problem and the descent of :func:`drot.distributional_reduction`, with

    .. math:: K_{kl} = \frac{1}{1 + d(z_k, z_l)^2 / \gamma^2} \quad \text{or} \quad
              e^{- d(z_k, z_l)^2 / \gamma^2}

    of hyperbolic distances. Positions move by L-BFGS in normal coordinates, in which geodesics from
    the last positions are straight; no block raises the objective. Room grows with the exponential
    of the radius, as the number of nodes of a tree does.

    Source: appendix F.10 of Van Assel et al. (2024); the kernel with :math:`\gamma` after Guo et
    al. (2022).

    Parameters
    ----------
    similarity, n_prototypes, n_components, weights
        As in :func:`drot.distributional_reduction`.
    kernel : {"student", "gaussian"}
    scale : float
        :math:`\gamma`, from 1e-100 to 100; above 0.5 runs may end unconverged (Notes).
    init, n_starts, clustering, tol, max_iter, random_state, callback, on_failure
        As in :func:`drot.distributional_reduction`, but by default of one kind of start. Positions
        start from a wrapped normal; the residual compares lengths of Riemannian gradients.

    Returns
    -------
    DistributionalReduction
        ``Z`` (k, q + 1) in Lorentz coordinates, float64 whatever the similarity is: heights grow
        with the exponential of the radius. :func:`to_poincare` draws it.

    Raises
    ------
    ValueError, NotConverged
        As :func:`drot.distributional_reduction`; or if ``scale`` is out of range.

    Notes
    -----
    Some ten times slower than the plane, more at a ``scale`` above 1. Past radius 30 float64 tells
    no places apart that are 1e-3 near, and ``tol`` is out of reach: so 2 of 27 runs on usual data
    ended, where clusters exchange next to no mass. A ``scale`` of 0.5 leaves them room.

    Examples
    --------
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double() + 0.1
    >>> distributional_reduction(C, 2).Z.shape
    torch.Size([2, 3])
    """
    check_choice("kernel", kernel, KERNELS)
    scale = as_positive("scale", scale)
    if not _NARROW <= scale <= _WIDE:
        raise ValueError(
            f"scale={scale:g} must lie from {_NARROW:.0e} to {_WIDE:.0f}: squares of narrower "
            f"kernels underflow, and distances in range, to {2 * _FAR:.0f}, do not fill wider ones"
        )
    where, make = "hyperbolic.distributional_reduction", partial(HyperbolicProblem, scale=scale)
    return solve(where, make, similarity, n_prototypes, init, kernel=kernel, **options)


class HyperbolicProblem(ReductionProblem):
    """Positions Z (k, q + 1) in Lorentz coordinates, float64: far points need the digits.

    Lengths, those of residuals too, are in bandwidths, ``scale``. A map has no centre to be moved
    to: wherever it lies, normal coordinates are taken around its points.
    """

    def __init__(
        self, similarity, n_prototypes: int, *, kernel: KernelName = "student", scale: float = 1.0,
        **options: Unpack[ProblemOptions],
    ):  # fmt: skip
        super().__init__(similarity, n_prototypes, kernel=kernel, **options)
        self.scale = scale

    def log_kernel(self, Z: Tensor) -> Tensor:
        return -KERNELS[self.kernel].cost(squared_distances(Z[:, 1:]) / self.scale**2)

    def around(self, v: Tensor, c: Coupling, x: Tensor, warm: Tensor | None = None) -> Evaluation:
        """E_L by normal coordinates x (k, q) around the space-like parts v; ``warm`` is idle.

        In bandwidths, as residuals are; infinite where heights leave the range. The derivative is
        exact by the logarithm of the kernel, then by the chain of the distance.
        """
        x = x.detach().requires_grad_()
        ends = exponential_map(self.scale * x, v)
        if not float(ends.detach().norm(dim=1).max()) <= math.sinh(_FAR):
            none = torch.full_like(v, math.nan)  # no residual
            return Evaluation(value=math.inf, attraction=none, repulsion=none)
        log = self.log_kernel(to_lorentz(ends))
        M, q = c.M.to(log), c.q.to(log)
        C, log_C = kernel_structure(log.detach(), M, q)
        value = value_at(C, log_C, M, q, self.constant, self.loss)
        forces = M, q[:, None] * q * C  # minus their difference is dE / d log K
        attract, repel = (torch.autograd.grad(log, x, -w, retain_graph=True)[0] for w in forces)
        return Evaluation(value=value, attraction=attract, repulsion=repel)

    def update_positions(self, Z: Tensor, c: Coupling, tol: float, max_iter: int) -> Tensor:
        """L-BFGS in normal coordinates, around new points once one of them is past its reach."""
        v, mass, count = Z[:, 1:], self.position_loss(c).mass, 0

        def metric(g: Tensor) -> Tensor:  # each point attracts as much as another
            return g * len(v) / (4 * mass)

        while True:
            objective, size = partial(self.around, v, c), self.size(to_lorentz(v))
            for step in lbfgs(objective, torch.zeros_like(v), metric, reach=math.inf):
                count += 1
                done = step.found.residual(size, mass) <= tol or count > max_iter
                if done or (past := self.scale * float(step.Z.norm(dim=1).max()) > _REACH):
                    break
            v = exponential_map(self.scale * step.Z, v)
            if done or not past:  # where L-BFGS itself ended, nothing is left but rounding
                return to_lorentz(v)

    def residual_at(self, Z: Tensor, c: Coupling) -> float:
        v = Z[:, 1:]
        here = self.around(v, c, torch.zeros_like(v))  # where they keep all lengths
        return here.residual(self.size(Z), self.position_loss(c).mass)

    def size(self, Z: Tensor) -> float:
        """Root mean square distance of two points over the square root of 2, as of a plane."""
        return float((squared_distances(Z[:, 1:]).mean() / 2).sqrt()) / self.scale

    def initial_positions(self, c: Coupling, rng: np.random.Generator) -> Tensor:
        return self.random_positions(len(c.q), rng)

    def random_positions(self, k: int, rng: np.random.Generator) -> Tensor:
        near = min(1.0, self.scale)  # of narrower kernels the space is flat
        Z = wrapped_normal(k, n_components=self.n_components, scale=near, random_state=rng)
        return Z.to(self.w.device)

    def cloud(self, Z: Tensor) -> Tensor:
        return to_poincare(Z)  # heights are exponentials

    def centroids(self, Z: Tensor, c: Coupling) -> Tensor:
        return to_lorentz(lorentz_centroids(Z[:, 1:], ratio(c.T, c.q).T.double()))

    def read_positions(self, Z: Tensor) -> Tensor:
        Z = as_lorentz(Z, "init")
        super().read_positions(Z[:, 1:])  # which refuses other dimensions
        return Z.to(self.w.device, torch.float64)


def as_lorentz(Z, name: str = "Z") -> Tensor:
    """Lorentz coordinates (k, q + 1)."""
    Z = as_points(Z, name, least=1)
    if Z.shape[1] < 2:
        raise ValueError(
            f"{name} needs at least 2 Lorentz coordinates: the height and one of space"
        )
    shares = Z[:, 1:] / Z[:, :1]  # whose squares are in range
    off = (Z[:, 0] ** -2 + shares.square().sum(dim=1) - 1).abs()
    off[Z[:, 0] <= 0] = torch.inf
    if float(off.max()) > _OFF:
        raise ValueError(
            f"row {int(off.argmax())} of {name} is not on the hyperboloid -z_0^2 + |v|^2 = -1, "
            "z_0 > 0"
        )
    highest, most = int(Z[:, 0].argmax()), min(torch.finfo(Z.dtype).max ** 0.5 / 4, math.exp(_FAR))
    if not float(Z[highest, 0]) <= most:
        raise ValueError(
            f"row {highest} of {name} has the height {float(Z[highest, 0]):.0e}, and means "
            f"overflow past {most:.0e}; move the origin into the middle"
        )
    return Z


def to_lorentz(v: Tensor) -> Tensor:
    """The height put before the space-like parts, (k, q + 1)."""
    return torch.cat([torch.sqrt(1 + v.square().sum(dim=1, keepdim=True)), v], dim=1)


def _polar(v: Tensor) -> tuple[Tensor, Tensor]:
    """Lengths (k, 1), without a slope at 0, and directions (k, q), 0 there."""
    length = v.square().sum(dim=-1, keepdim=True)
    length = length.clamp_min(torch.finfo(v.dtype).tiny).sqrt()
    return length, v / length


def _sinh_half_squared(v: Tensor, w: Tensor) -> Tensor:
    """sinh(d / 2)^2 = sinh((r - s) / 2)^2 + sinh r sinh s |n - m|^2 / 4, (k, l), differentiable.

    With a = |v| = sinh r and n = v / a, b = |w| = sinh s and m = w / b. Differences of radii and
    directions come from v - w, so that close points keep their digits.
    """
    (a, n), (b, m) = _polar(v[:, None]), _polar(w)  # (k, 1, 1) and (k, 1, q), (l, 1) and (l, q)
    gap = v[:, None] - w
    squares = ((v[:, None] + w) * gap).sum(dim=2, keepdim=True)  # a^2 - b^2
    rise = squares / (a * torch.sqrt(1 + b * b) + b * torch.sqrt(1 + a * a))  # sinh(r - s)
    rise = rise[..., 0].square()
    across = gap - squares / (a + b) * (n + m) / 2  # (a + b) (n - m) / 2
    share = (a / (a + b) * (b / (a + b)))[..., 0]
    return rise / (2 + 2 * torch.sqrt(1 + rise)) + share * across.square().sum(dim=2)


def squared_distances(v: Tensor, w: Tensor | None = None) -> Tensor:
    """Squared distances (k, l), of all pairs of v where w is absent; differentiable."""
    half = _sinh_half_squared(v, v if w is None else w)
    close = half <= torch.finfo(v.dtype).eps ** 2  # d^2 = 4 half, and the root has no slope at 0
    far = 2 * torch.asinh(torch.sqrt(torch.where(close, 1, half)))
    return torch.where(close, 4 * half, far.square())


def exponential_map(x: Tensor, m: Tensor) -> Tensor:
    """Ends of the geodesics from m in the directions x, of lengths |x|; an isometry at x = 0.

    From the origin it ends at v = sinh |x| x / |x|. The isometry that carries the origin to m along
    their geodesic takes v to v + (z_0 + <m, v> / (1 + m_0)) m, of which the terms that cancel are
    taken together.
    """
    (r, n), (b, e) = _polar(x), _polar(m)
    both = n + e  # of which half the square is 1 + <n, e>
    more = b * b / (1 + torch.sqrt(1 + b * b)) * both.square().sum(dim=-1, keepdim=True) / 2
    return torch.sinh(torch.asinh(b) - r) * e + torch.sinh(r) * (both + more * e)


def lorentz_centroids(v: Tensor, shares: Tensor) -> Tensor:
    """Means in the surrounding space, pushed back to the sheet along their rays, (c, q).

    Rows of ``shares`` (c, k) sum to 1, or to 0 for the origin. The Lorentz square of a mean is
    minus the mean of cosh d over pairs.
    """
    size = 1 + 2 * (shares @ _sinh_half_squared(v, v) * shares).sum(dim=1, keepdim=True)
    return shares @ v / size.sqrt()
