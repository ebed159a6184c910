r"""The four-index sum of Gromov-Wasserstein as products of matrices (Chapters 11 to 14).

Over the plans with row sums w, and with :math:`q = T^\top \mathbf 1`, it is a quadratic, the
:class:`Problem` :math:`c + q^\top f_2(\bar C) q - \langle C \, T \, h_2(\bar C), T \rangle`. The
product is linear in T: a step along D costs the one of D, and a line search costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypedDict, Unpack

import torch
from torch import Tensor

from .._core.algebra import ratio, total
from ..costs.array import Pairwise
from ..costs.factored import Factored
from .loss import SQUARE, Loss

SMALL = 1e-14  # of the scale of E: a smaller decrease is rounding
EMPTY = 1e-12  # of a cluster's mass: less is what rounding leaves of one that all have left
LEAST = 1e-146  # whose square is the least of float64 that has all its digits
_MOST = 2.0**500  # whose squares float64 adds up


@dataclass(eq=False)
class Coupling:
    """A plan, its product with C, and what a structure sees of it.

    It is a place on a descent over plans from n points to k others, no result of one, and unlike an
    ``Affinity`` it has all its numbers, and no cost between what it joins.
    """

    T: Tensor  # (n, k)
    CT: Tensor  # (n, k)
    M: Tensor  # (k, k) T^T C T
    q: Tensor  # (k,) column sums

    @property
    def means(self) -> Tensor:
        """Of C between clusters, (k, k) M / (q q^T), the best structure; 0 of an empty one."""
        return ratio(self.M, torch.outer(self.q, self.q))


class Contraction:
    r"""The four-index sum of E_L as matrix products (Peyre, Cuturi and Solomon, 2016).

    With :math:`L(a, b) = f_1(a) + f_2(b) - a \, h_2(b)` (see :class:`.loss.Loss`): C is met as it
    is, in tiles or by its factors. Cbar is k x k, no larger than a plan, and kept dense. Without
    one, a structure of one zero leaves the terms of C.
    """

    def __init__(
        self,
        cost: Pairwise,
        structure: Tensor | None = None,
        loss: Loss = SQUARE,
        h2: Tensor | None = None,
    ):
        if structure is None:
            structure = torch.zeros(1, 1, dtype=cost.dtype, device=cost.device)
        self.cost, self.loss, self.structure = cost, loss, structure
        self.n, self.k = cost.shape[0], structure.shape[0]
        self.products = 0.0  # products of C with an (n, k) matrix
        self.f2 = loss.f2(structure)  # (k, k)
        self.h2 = loss.h2(structure) if h2 is None else h2  # (k, k)

    def each(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """``function(tile)`` of the working tiles of C, joined.

        They have the zeros of a factored distance where the loss has to see them.
        """
        seen = self.cost.with_zeros if not self.loss.free else lambda tile: tile
        return self.cost.map(lambda _, tile: function(seen(tile)))

    def dense(self) -> Tensor:
        """C, (n, n)."""
        whole = self.cost.dense()
        return whole if self.loss.free else self.cost.with_zeros(whole)

    def couple(self, T: Tensor, CT: Tensor | None = None) -> Coupling:
        """What a structure sees of a plan; M is symmetric, and not below 0 if C is not."""
        CT = self.times(T) if CT is None else CT
        M = T.T @ CT
        M = (M + M.T) / 2
        return Coupling(T, CT, M.clamp_min_(0) if self.loss.low >= 0 else M, T.sum(dim=0))

    def times(self, T: Tensor) -> Tensor:
        """C T, (n, k)."""
        self.products += 1
        return self.cost @ T

    def product(self, T: Tensor) -> Tensor:
        """C T h2(Cbar), (n, k)."""
        self.products += 1
        if isinstance(self.cost, Factored):
            return self.cost.left @ (self.cost.right.T @ T @ self.h2)  # the small ones first
        return self.cost @ T @ self.h2

    def columns(self, index: Tensor, Y: Tensor) -> Tensor:
        """C[:, index] Y, (n, k), for Y (b, k)."""
        self.products += len(index) / self.n
        return self.cost.columns_times(index, Y)

    def f1_times(self, w: Tensor) -> Tensor:
        """f1(C) w, (n,)."""
        return self.each(lambda tile: self.loss.f1(tile) @ w)

    def constant(self, w: Tensor) -> float:
        """sum_ij f1(C_ij) w_i w_j, the part that no plan changes."""
        if isinstance(self.cost, Factored) and self.loss.free:
            a, b = self.cost.left, self.cost.right
            value = total((a.T @ (a * w[:, None])) * (b.T @ (b * w[:, None])))
        else:
            value = float(w.double() @ self.f1_times(w).double())
        if not math.isfinite(value):
            raise ValueError(
                "the objective of these similarities overflows; give them in larger units"
            )
        return value

    def scale(self, w: Tensor, constant: float) -> float:
        """The size of the terms of E_L: what a residual is measured in."""
        of_cost = constant if self.loss.free else float(w @ (self.cost @ w))
        return of_cost + float(self.f2.diagonal().min())  # of all mass in the place that suits it

    def forbidden(self, T: Tensor) -> Tensor:
        """Where mass would match an end of the range in Cbar with another number, (n, k)."""

        def apart(bound: float) -> Tensor:  # by tiles, exactly 0 where T meets this end of C alone
            return self.each(lambda tile: (tile - bound).abs() @ T)

        found = torch.zeros_like(T, dtype=torch.bool)
        for bound in self.loss.bounds:
            here = (self.structure == bound).to(T)
            if bool(here.any()):
                found |= apart(bound) @ here > 0
        return found


def power_of_2(x: float) -> float:
    """The least one above x, 1 for 0: who divides by it loses no digit."""
    return math.ldexp(1.0, math.frexp(x)[1])


class Unit(NamedTuple):
    """What descents see of an entry c is (c - offset) / size."""

    offset: float = 0.0
    size: float = 1.0  # a power of 2

    def entries(self, seen: Tensor) -> Tensor:
        return (seen.double() * self.size + self.offset).to(seen)

    def objective(self, seen: float, least: float = 0.0) -> float:
        """E_L in the unit of C, size^2 times what a descent saw; below ``least`` it is rounding."""
        return max(seen * self.size * self.size, least)

    def trace(self, values: Iterable[float], last: float, exact: float) -> tuple[float, ...]:
        """The same of many, of which the ``last`` is known, ``exact``, and the least."""
        return tuple(exact if x == last else self.objective(x, exact) for x in values)


SAME = Unit()


def standard(
    cost: Pairwise, w: Tensor, loss: Loss, structure: Tensor | None = None
) -> tuple[Contraction, Unit]:
    """The standardised problem: (C - m) / s and (Cbar - m) / s, m = w^T C w and s a power of 2.

    The square loss sees differences of C and Cbar alone. Of these numbers, at most about 1, the
    squares stay in range, and neither tolerance nor rounding is that of a common offset. Another
    loss sees more: there both stay as they are.
    """
    if not loss.free:
        return Contraction(cost, structure, loss), SAME
    rest, m, largest = cost.shifted(w)
    other = structure.double() - m if structure is not None else w.new_zeros(1, 1)
    largest = max(largest, float(other.abs().max()))
    limits = torch.finfo(cost.dtype)
    if not largest < min(_MOST, limits.max / 4):
        raise ValueError("squares of these similarities overflow; give them in larger units")
    if 0 < largest < LEAST:
        raise ValueError("squares of these similarities underflow; give them in smaller units")
    unit = Unit(m, power_of_2(max(largest, limits.tiny)))
    return Contraction(rest.divided(unit.size), (other / unit.size).to(w), loss), unit


def hard_plan(labels: Tensor, w: Tensor, k: int) -> Tensor:
    """The (n, k) plan that sends all of point i, its mass w_i, to ``labels[i]``."""
    T = w.new_zeros(len(labels), k)
    return T.scatter_(1, labels[:, None], w[:, None])


def with_rows(T: Tensor, w: Tensor) -> Tensor:
    """The plan whose rows sum to w: the steps of a descent leave rounding there."""
    return T * (w / T.sum(dim=1).clamp_min(torch.finfo(w.dtype).tiny))[:, None]


class Line(NamedTuple):
    """E_L(T + t D) = E_L(T) + b t + a t^2 (book ``prp-line-search``)."""

    a: float
    b: float

    def minimum(self) -> float:
        """The best t in [0, 1]."""
        if self.a > 0:
            return min(1.0, max(0.0, -self.b / (2 * self.a)))
        return 1.0 if self.a + self.b < 0 else 0.0


@dataclass
class State:
    """A plan with what is known of it."""

    T: Tensor  # (n, k)
    CTh: Tensor  # (n, k) C T h2(Cbar)
    q: Tensor  # (k,) column sums
    value: float  # E_L


class Known(TypedDict, total=False):
    """What a problem need not make when it is asked for."""

    constant: float
    scale: float
    diagonal: Tensor


class PlanProblem:
    """A function of the (n, k) plans with row sums w, made of E_L; it has these two."""

    half_gradient: Callable[[Any], Tensor]
    state: Callable[..., Any]  # of a plan

    def __init__(self, terms: Contraction, w: Tensor, k: int = 0, **known: Unpack[Known]):
        self.terms, self.w = terms, w
        self.n, self.k = terms.n, k or terms.k
        vars(self).update(known)
        if "constant" not in known:  # which refuses what overflows, before there is a start
            self.constant = terms.constant(w)

    @cached_property
    def scale(self) -> float:
        """The size of the terms of E_L: what a residual is measured in."""
        return self.terms.scale(self.w, self.constant) or 1.0  # C = 0 and Cbar = 0: E_L is 0

    @cached_property
    def diagonal(self) -> Tensor:
        return self.terms.cost.diagonal()

    def oracle(self, state: Any) -> tuple[Tensor, Tensor, Tensor, float]:
        """Linear minimisation: half gradient, least entry of each row and its place, and gap."""
        g = self.half_gradient(state)
        least, labels = g.min(dim=1)
        slope = total(g * state.T) - total(self.w * least)
        gap = max(2 * slope / self.scale, 0.0)  # in this order what is not a number stays so
        return g, least, labels, gap

    def hard(self, labels: Tensor) -> Any:
        """Of the plan that sends all of each point to its label."""
        return self.state(hard_plan(labels, self.w, self.k))

    def gap(self, state: Any) -> float:
        """Frank-Wolfe gap max <dE/dT, T - S> over plans S, in units of the scale."""
        return self.oracle(state)[-1]

    def report(self, state: Any) -> tuple[float, Tensor]:
        """What a caller hears of a state."""
        return self.gap(state), state.T


class Problem(PlanProblem):
    """E_L between two similarities over the (n, k) plans with row sums w."""

    def state(self, T: Tensor, CTh: Tensor | None = None) -> State:
        """Evaluate a plan; CTh is taken as given where it is known."""
        CTh = self.terms.product(T) if CTh is None else CTh
        q = T.sum(dim=0)
        value = self.constant + float(q @ (self.terms.f2 @ q)) - total(CTh * T)
        return State(T, CTh, q, value)

    def half_gradient(self, state: State) -> Tensor:
        """Half of dE_L/dT without the term that is constant in each row, (n, k)."""
        return self.terms.f2 @ state.q - state.CTh

    def line(self, D: Tensor, CDh: Tensor, g: Tensor) -> Line:
        """The quadratic along D, with g the half gradient."""
        qD = D.sum(dim=0)
        curvature = float(qD @ (self.terms.f2 @ qD)) - total(CDh * D)
        return Line(a=curvature, b=2 * total(g * D))
