r"""Descent methods for embeddings, each a sequence of iterates (Chapter 5).

The attraction of every objective is, for a Gaussian kernel exactly, the quadratic form
:math:`2 \operatorname{tr}(Z^\top L Z)` of the Laplacian L of its weights. Its second derivative
:math:`B = 4 L + \mu I` is the same at every Z, so it is factorised once: this is the spectral
direction of Vladymyrov and Carreira-Perpinan (2012). L-BFGS takes :math:`B^{-1}`, scaled, for its
first guess of the inverse second derivative, and learns the repulsion. Where the weights are met
in tiles, the strongest ones of each row stand for all.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import cg
from torch import Tensor

from .._core.algebra import inverse, radius, total
from ..costs.array import Pairwise, WithoutDiagonal, smallest

ONE_PLACE = 1e-3  # radius in bandwidths of the kernel: F is within 1e-5 of its value there
_RIDGE = 1e-3  # mu, for rows of mass 1
_DECREASE, _CURVATURE = 1e-4, 0.9  # Wolfe's conditions
_CURVED = 1e-10  # cosine of step and change of gradient: below it, the pair is rounding
_MEMORY = 10  # pairs of L-BFGS
_REACH = 0.1  # longest step, in radii of the map
_GROWTH = 0.01  # of what a step gains: a share that is no reason to enlarge the map
_TRIALS = 30
_IDLE = 50  # steps that lower nothing
_NEAR = 20  # weights of each row that stand for all
_CG_TOL, _CG_MOST = 1e-6, 1000


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """An objective at one embedding."""

    value: float  # F(Z), in nats
    attraction: Tensor  # (n, q) the derivative of <P, C_Z>
    repulsion: Tensor  # (n, q) minus the derivative of R(C_Z)
    dual: Tensor | None = None  # (n,) a warm start for the next evaluation, where one helps
    passes: float = 1.0  # evaluations of the n x n kernel
    products: int = 0  # products of the kernel with a vector; by tiles each is a pass too

    @cached_property
    def gradient(self) -> Tensor:
        """dF/dZ, (n, q)."""
        return self.attraction - self.repulsion

    def residual(self, size: float, mass: float) -> float:
        """The length of the gradient, in units of that of the attraction.

        Or of a force that lowers F by 1 for each unit of mass on the way of a radius of the map,
        its ``size``, where attraction is weaker: two far groups of points exchange next to no
        mass, and a ratio of two nothings says nothing.
        """
        scale = size * len(self.attraction) ** 0.5 / mass
        whole = scale * float(self.gradient.double().norm())
        if size <= ONE_PLACE:  # forces vanish there in proportion to the size
            return whole
        part = scale * float(self.attraction.double().norm())
        return whole / max(part, min(1.0, size * size))


class Step(NamedTuple):
    """An iterate, and the objective there."""

    Z: Tensor  # (n, q)
    found: Evaluation


Evaluate = Callable[[Tensor, Tensor | None], Evaluation]  # takes Z and a warm start
Metric = Callable[[Tensor], Tensor]  # g -> B^-1 g, (n, q), for a positive definite B


def metric_of(weights: Tensor | Pairwise) -> Metric:
    """g -> B^-1 g for B = 4 L + mu I, with L the Laplacian of symmetric weights (n, n).

    B is factorised once, n^3 / 3 multiplications. Where the weights are met in tiles L is that of
    the twenty largest of each row alone; a pair counts if either of its points chose it. That
    takes one pass, then 100 n numbers and by conjugate gradients, in float64 on the CPU, some
    hundred sparse products for each column of g, to six digits.
    """
    if isinstance(weights, Tensor):
        degrees = weights.sum(dim=1)  # (n,)
        B = weights.mul(-4.0)
        B.diagonal().add_(4 * degrees + _RIDGE * degrees.mean())
        return inverse(B)
    n = weights.shape[0]
    k = min(_NEAR, n - 1)
    values, columns = smallest(WithoutDiagonal(weights.derive(lambda i: -weights.rows(i))), k)
    ends = np.repeat(np.arange(n), k), columns.cpu().numpy().ravel()
    near = csr_array((-values.double().cpu().numpy().ravel(), ends), shape=(n, n))
    mass = float((weights @ torch.ones_like(values[:, 0])).double().sum())
    B = laplacian(4 * near.maximum(near.T)) + _RIDGE * mass / n * eye_array(n)
    options = {"rtol": _CG_TOL, "maxiter": _CG_MOST, "M": diags_array(1 / B.diagonal())}

    def solve(g: Tensor) -> Tensor:
        found = [cg(B, column, **options)[0] for column in g.T.double().cpu().numpy()]
        return torch.from_numpy(np.stack(found, axis=1)).to(g)

    return solve


def lbfgs(
    evaluate: Evaluate, Z: Tensor, metric: Metric, *, reach: float = _REACH
) -> Iterator[Step]:
    """L-BFGS on B's metric.

    The steps are numbered as in the book's ``alg-embed``; ``metric`` is step 1, and who follows the
    iterates stops (step 3), for instance at a residual.

    One solve with B per iteration: that of the gradient, since B^-1 y is a difference of two.
    No step is longer than ``reach`` radii of the map, root mean squares both. Where it is bounded,
    a step does not enlarge the map if that is to bring less than 1 % of what the step lowers the
    objective by: t-SNE's maps would spend their steps on it for ever.

    Ends when no step along the descent direction lowers the objective any more, or rounding hides
    for many steps whether one does.
    """
    now = Step(Z, evaluate(Z, None))  # 2
    yield now  # 3
    lowest, idle = now.found.value, 0
    pairs: deque[Tensor] = deque(maxlen=_MEMORY)  # (3, n q) each: s, y and B^-1 y
    h = metric(now.found.gradient)
    while idle < _IDLE:
        direction, longest = _direction(now.found.gradient, h, pairs), reach  # 4
        if reach < math.inf:
            direction = _without_idle_growth(direction, now)
            longest = reach * radius(now.Z) / (radius(direction) or 1.0)
        new = _search(evaluate, now, direction, longest)  # 5, and 2 again
        if new is None and not pairs:
            return
        if new is None:  # forget and try the plain direction
            pairs.clear()
            continue
        last, h = h, metric(new.found.gradient)
        s, y = new.Z - now.Z, new.found.gradient - now.found.gradient
        if total(s * y) > _CURVED * math.sqrt(total(s * s) * total(y * y)):
            pairs.append(torch.stack([s, y, h - last]).flatten(1).double())
        now = new
        yield now  # 3
        lowest, idle = min(lowest, now.found.value), 0 if now.found.value < lowest else idle + 1


def _direction(g: Tensor, h: Tensor, pairs: Collection[Tensor]) -> Tensor:
    """Minus the L-BFGS inverse second derivative times g, given h = B^-1 g.

    In closed form (Byrd, Nocedal and Schnabel, 1994, theorem 2.2), from steps S, changes Y of the
    gradient and B^-1 Y. The first guess is B^-1 times the factor that suits the last pair.
    """
    if not pairs:
        return -h
    S, Y, T = torch.stack([*pairs], dim=1)  # (m, n q) each
    slope, SY, YT = g.double().flatten(), S @ Y.T, Y @ T.T
    factor, R = SY[-1, -1] / YT[-1, -1], SY.triu()
    u = torch.linalg.solve_triangular(R, (S @ slope)[:, None], upper=True)
    rest = SY.diagonal()[:, None] * u + factor * (YT @ u - (T @ slope)[:, None])
    v = torch.linalg.solve_triangular(R.T, rest, upper=False)
    return -(factor * (h.flatten() - T.T @ u[:, 0]) + S.T @ v[:, 0]).view_as(g).to(g)


def _without_idle_growth(direction: Tensor, now: Step) -> Tensor:
    """The direction, without its radial part where that is a small share of its slope."""
    g, Z = now.found.gradient, now.Z
    rate = total(direction * Z) / (total(Z * Z) or 1.0)
    idle = rate > 0 and abs(rate * total(g * Z)) < _GROWTH * abs(total(g * direction))
    return direction - rate * Z if idle else direction


def _search(evaluate: Evaluate, start: Step, direction: Tensor, longest: float) -> Step | None:
    """Double or halve the step, first of length 1, until Wolfe's conditions hold or it is as long
    as it may be; None if none is found.

    Where the values differ by rounding only, slopes decide (Hager and Zhang, 2005).
    """
    slope = total(start.found.gradient * direction)
    value = start.found.value
    noise = 10 * torch.finfo(direction.dtype).eps * abs(value)
    length, low, high, best = min(1.0, longest), 0.0, math.inf, None
    if not slope < 0:
        return None
    for _ in range(_TRIALS):
        Z = start.Z + length * direction
        found = evaluate(Z, start.found.dual)
        new = total(found.gradient * direction)
        enough = found.value <= value + _DECREASE * length * slope or (
            found.value <= value + noise and new <= (2 * _DECREASE - 1) * slope
        )
        if not enough:
            high = length
        elif new >= _CURVATURE * slope or length == longest:
            return Step(Z, found)
        else:
            low, best = length, Step(Z, found)
        length = min(2 * length, longest) if high == math.inf else (low + high) / 2
    return best


def adam(evaluate: Evaluate, Z: Tensor, learning_rate: float) -> Iterator[Step]:
    """Adam, as the papers run it: fixed rate, no line search, values that may rise."""
    parameter = torch.nn.Parameter(Z.clone())
    optimizer = torch.optim.Adam([parameter], lr=learning_rate)
    dual = None
    while True:
        found = evaluate(parameter.detach(), dual)
        yield Step(parameter.detach().clone(), found)
        parameter.grad, dual = found.gradient, found.dual
        optimizer.step()
