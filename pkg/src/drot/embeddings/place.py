"""New points in a map that is held fixed: one small problem each (Chapter 15)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .._core.algebra import radius
from ..costs.kernels import Kernel, squares

PLACED = 1e-6  # of a new point: nats that it could gain on the way of a radius of the map
_STEPS = 100
_LEAST = 1e-3  # curvature, as a share of the largest
_DECREASE = 1e-4  # of what the slope promises
_REACH = 2.0  # times as far from the centre as any point of the map, of a Gaussian kernel


class Placement(NamedTuple):
    """Positions of new points in a fixed map, and how far each descent came."""

    Z: Tensor  # (b, q)
    value: Tensor  # (b,) f of each row, in nats
    residual: Tensor  # (b,) |df/dz| times the radius of the map, in nats


def place(
    P: Tensor,
    Z: Tensor,
    kernel: Kernel,
    *,
    repulsion: float | None = None,
    dual: Tensor | None = None,
    tol: float = PLACED,
) -> Placement:
    r"""Minimise the divergence of rows P (b, m) from those of new points of the map Z (m, q).

    .. math:: f_i(z) = \sum_j P_{ij} C(z, z_j) + \log \sum_j e^{f_j - C(z, z_j)}, \quad
        \text{or} \quad \sum_j P_{ij} C(z, z_j) + \gamma \sum_j \log(1 + e^{-C(z, z_j)}) .

    The first where a row sums to 1; with ``repulsion``, :math:`\gamma`, each pair is joined alone.
    Newton's method in q dimensions, its curvature made positive, from the mean of the map in the
    weights P; a step that does not lower f is shortened. With a Gaussian kernel,
    whose tails may lead it anywhere, a point twice as far from the centre as any of the map stays,
    with its residual. Book ``prp-new-point``.
    """
    middle = Z.mean(dim=0)
    Z = Z - middle
    size, q = radius(Z), Z.shape[1]
    flat = torch.cat([Z, (Z[:, :, None] * Z[:, None, :]).flatten(1), torch.ones_like(Z[:, :1])], 1)

    def evaluate(P: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """f (b,), its gradient (b, q) and second derivative (b, q, q)."""
        d2 = squares(z, Z)
        cost, slope, curvature = kernel.cost(d2), kernel.slope(d2), kernel.curvature(d2)
        if repulsion is None:
            score = -cost if dual is None else dual - cost
            apart = torch.logsumexp(score, dim=1)
            Q = spread = (score - apart[:, None]).exp_()
        else:
            odds = (-cost).exp_()
            apart = repulsion * odds.log1p().sum(dim=1)
            Q = repulsion * odds / (1 + odds)
            spread = Q / (1 + odds)
        force = 2 * slope * (P - Q)

        def moments(weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            """Sums of weights (b,), of differences z - z_j (b, q) and of their squares."""
            first, second, total = (weights @ flat).split([q, q * q, 1], dim=1)
            zz, zf = z[:, :, None] * z[:, None, :], z[:, :, None] * first[:, None, :]
            square = zz * total[:, :, None] - zf - zf.mT + second.view(-1, q, q)
            return total, z * total - first, square

        total, gradient, _ = moments(force)
        second = moments(4 * curvature * (P - Q) + spread * (2 * slope) ** 2)[2]
        second = second + total[:, :, None] * torch.eye(q, dtype=z.dtype, device=z.device)
        if repulsion is None:
            mean = moments(2 * slope * Q)[1]
            second = second - mean[:, :, None] * mean[:, None, :]
        return (P * cost).sum(dim=1) + apart, gradient, second

    def step_of(gradient: Tensor, second: Tensor) -> Tensor:
        values, axes = torch.linalg.eigh(second)
        values = values.abs()
        floor = _LEAST * values.amax(dim=1, keepdim=True) + torch.finfo(P.dtype).tiny
        along = (gradient[:, None, :] @ axes)[:, 0] / values.maximum(floor)
        step = -(axes @ along[:, :, None])[:, :, 0]
        return step * (size / step.norm(dim=1, keepdim=True).clamp_min(size))  # at most a radius

    reach = _REACH * float(Z.norm(dim=1).max()) if kernel.flat else torch.inf
    z = P @ Z / P.sum(dim=1, keepdim=True)
    value, gradient, second = evaluate(P, z)
    step, share = step_of(gradient, second), torch.ones_like(value)
    slack = 4 * torch.finfo(P.dtype).eps
    active = (size * gradient.norm(dim=1) > tol).nonzero()[:, 0]
    for _ in range(_STEPS):
        if not len(active):
            break
        trial = z[active] + share[active, None] * step[active]
        found = evaluate(P[active], trial)
        wanted = _DECREASE * share[active] * (gradient[active] * step[active]).sum(dim=1)
        good = found[0] <= value[active] + wanted + slack * value[active].abs()
        better = active[good]
        z[better], value[better], gradient[better] = trial[good], found[0][good], found[1][good]
        step[better], share[better] = step_of(found[1][good], found[2][good]), 1.0
        share[active[~good]] /= 4
        near = z[active].norm(dim=1) <= reach
        active = active[near & (size * gradient[active].norm(dim=1) > tol)]
    return Placement(Z=z + middle, value=value, residual=size * gradient.norm(dim=1))
