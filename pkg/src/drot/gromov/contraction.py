r"""The four-index sum of Gromov-Wasserstein as products of matrices (Chapters 11 to 14).

Of a plan T with row sums w and column sums q, and :math:`L(a, b) = f_1(a) + f_2(b) - a h_2(b)`
(:class:`.loss.Loss`), it is :math:`c + q^\top f_2(\bar C) q - \langle C T h_2(\bar C), T
\rangle` with :math:`c = \sum_{ij} f_1(C_{ij}) w_i w_j` (Peyre, Cuturi and Solomon, 2016).
:class:`Terms` are what C, w and the loss make of it, :class:`Problem` is the sum at a structure
:math:`\bar C`, as a function of the plan. The product is linear in T: a step along D costs the one
of D, and a line search costs nothing more.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

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
    """A plan, its product with C, and M and q, through which alone E_L depends on both.

    A place on a descent from n points to k others: it is no result, and unlike an ``Affinity`` it
    holds all its numbers.
    """

    T: Tensor  # (n, k)
    CT: Tensor  # (n, k)
    M: Tensor  # (k, k) T^T C T
    q: Tensor  # (k,) column sums

    @property
    def means(self) -> Tensor:
        """Of C between clusters, (k, k) M / (q q^T), the best structure; 0 of an empty one."""
        return ratio(self.M, torch.outer(self.q, self.q))


class Terms:
    """What of E_L a similarity C, the weights w of its points and the loss make, whatever the
    structure. C is met as it is, in tiles or by its factors.
    """

    def __init__(self, C: Pairwise, w: Tensor, loss: Loss = SQUARE):
        self.C, self.w, self.loss = C, w, loss
        self.products = 0.0  # of C with an (n, k) matrix, so far

    def each(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """``function(tile)`` of the working tiles of C, joined, as the loss sees them."""
        return self.C.map(lambda _, tile: function(self.loss.seen(self.C, tile)))

    @cached_property
    def f1_w(self) -> Tensor:
        """f1(C) w, (n,)."""
        return self.each(lambda tile: self.loss.f1(tile) @ self.w)

    @cached_property
    def constant(self) -> float:
        """sum_ij f1(C_ij) w_i w_j, the part that no plan changes."""
        if isinstance(self.C, Factored) and self.loss.free:
            a, b, w = self.C.left, self.C.right, self.w[:, None]
            value = total((a.T @ (a * w)) * (b.T @ (b * w)))
        else:
            value = float(self.w.double() @ self.f1_w.double())
        if not math.isfinite(value):
            raise ValueError(
                "the objective of these similarities overflows; give them in larger units"
            )
        return value

    @cached_property
    def scale(self) -> float:
        """The size of the terms of E_L that C makes."""
        return self.constant if self.loss.free else float(self.w @ (self.C @ self.w))

    @cached_property
    def diagonal(self) -> Tensor:
        return self.C.diagonal()

    def couple(self, T: Tensor, CT: Tensor | None = None) -> Coupling:
        """The coupling of a plan; M is symmetric, and not below 0 if C is not."""
        if CT is None:
            CT = self.C @ T
            self.products += 1
        M = T.T @ CT
        M = (M + M.T) / 2
        return Coupling(T, CT, M.clamp_min_(0) if self.loss.low >= 0 else M, T.sum(dim=0))

    def columns(self, index: Tensor, Y: Tensor) -> Tensor:
        """C[:, index] Y, (n, k), for Y (b, k)."""
        self.products += len(index) / len(self.w)
        return self.C.columns_times(index, Y)


def power_of_2(x: float) -> float:
    """The least one above x, 1 for 0: who divides by it loses no digit."""
    return math.ldexp(1.0, math.frexp(x)[1])


class Unit(NamedTuple):
    """What descents see of an entry c is (c - offset) / size: from there and back."""

    offset: float = 0.0
    size: float = 1.0  # a power of 2

    def seen(self, entries: Tensor) -> Tensor:
        return ((entries.double() - self.offset) / self.size).to(entries)

    def entries(self, seen: Tensor) -> Tensor:
        return (seen.double() * self.size + self.offset).to(seen)

    def objective(self, seen: float, least: float = 0.0) -> float:
        """E_L in the unit of C, size^2 times what a descent saw; below ``least`` it is rounding."""
        return max(seen * self.size * self.size, least)

    def objectives(self, values: Iterable[float], last: float, exact: float) -> tuple[float, ...]:
        """The same of many, of which the ``last`` is known, ``exact``, and the least."""
        return tuple(exact if x == last else self.objective(x, exact) for x in values)


SAME = Unit()


def standard(
    C: Pairwise, w: Tensor, loss: Loss, structure: Tensor | None = None
) -> tuple[Terms, Unit]:
    """The terms as descents see it, (C - m) / s with m = w^T C w and s a power of 2, and the unit
    in which they see a structure too.

    The square loss sees differences of C and Cbar alone. Of these numbers, at most about 1, the
    squares stay in range, and neither tolerance nor rounding is that of a common offset. Another
    loss sees more: there both stay as they are.
    """
    if not loss.free:
        return Terms(C, w, loss), SAME
    rest, m, largest = C.shifted(w)
    if structure is not None:
        largest = max(largest, float((structure.double() - m).abs().max()))
    limits = torch.finfo(C.dtype)
    if not largest < min(_MOST, limits.max / 4):
        raise ValueError("squares of these similarities overflow; give them in larger units")
    if 0 < largest < LEAST:
        raise ValueError("squares of these similarities underflow; give them in smaller units")
    unit = Unit(m, power_of_2(max(largest, limits.tiny)))
    return Terms(rest.divided(unit.size), w, loss), unit


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


@dataclass(eq=False)
class State:
    """A plan with what a problem knows of it. Nobody changes one: a step makes another.

    A problem has a subclass of its own, with the product with C from which its next slope is made.
    """

    T: Tensor  # (n, k)
    q: Tensor  # (k,) column sums
    value: float  # of the problem


StateT = TypeVar("StateT", bound=State)


class PlanProblem(ABC, Generic[StateT]):
    """A function of the (n, k) plans with row sums w, made of E_L, that paths lower.

    A subclass evaluates a plan (``state``) and says half of its slope (``half_gradient``). The
    ``constant``, which no plan changes, and the ``scale``, in which gaps are measured and of which
    1e-14 is rounding, are those of the terms, but for a subclass that has others.
    """

    def __init__(self, terms: Terms, k: int, constant: float | None = None):
        self.terms, self.w, self.n, self.k = terms, terms.w, len(terms.w), k
        # which refuses what overflows, before there is a start
        self.constant = terms.constant if constant is None else constant

    @abstractmethod
    def state(self, T: Tensor, product: Tensor | None = None) -> StateT:
        """Evaluate a plan; its product is taken as given where it is known."""

    @abstractmethod
    def half_gradient(self, state: StateT) -> Tensor:
        """Half of the derivative by T, (n, k), but for a term that is constant in each row."""

    @cached_property
    def scale(self) -> float:
        """The size of the terms of E_L: what a residual is measured in."""
        return self.terms.scale or 1.0

    def oracle(self, state: StateT) -> tuple[Tensor, Tensor, Tensor, float]:
        """Linear minimisation: half gradient, least entry of each row and its place, and gap."""
        g = self.half_gradient(state)
        least, labels = g.min(dim=1)
        slope = total(g * state.T) - total(self.w * least)
        gap = max(2 * slope / self.scale, 0.0)  # in this order what is not a number stays so
        return g, least, labels, gap

    def hard(self, labels: Tensor) -> StateT:
        """Of the plan that sends all of each point to its label."""
        return self.state(hard_plan(labels, self.w, self.k))

    def gap(self, state: StateT) -> float:
        """Frank-Wolfe gap max <dE/dT, T - S> over plans S, in units of the scale."""
        return self.oracle(state)[-1]

    def report(self, state: StateT) -> tuple[float, Tensor]:
        """What a caller hears of a state."""
        return self.gap(state), state.T


@dataclass(eq=False)
class Fixed(State):
    """Of a plan at a fixed structure."""

    CTh: Tensor  # (n, k) C T h2(Cbar)


class Problem(PlanProblem[Fixed]):
    """E_L at a structure Cbar (k, k), no larger than a plan and dense: a quadratic of the plan.

    ``h2`` is given where it is known to more digits than ``loss.h2(structure)`` has.
    """

    def __init__(self, terms: Terms, structure: Tensor, h2: Tensor | None = None):
        super().__init__(terms, len(structure))
        self.structure = structure
        self.f2 = terms.loss.f2(structure)  # (k, k)
        self.h2 = terms.loss.h2(structure) if h2 is None else h2  # (k, k)

    @cached_property
    def scale(self) -> float:
        least = float(self.f2.diagonal().min())  # of all mass in the place that suits it
        return self.terms.scale + least or 1.0  # C = 0 and Cbar = 0: E_L is 0

    def product(self, T: Tensor) -> Tensor:
        """C T h2(Cbar), (n, k)."""
        self.terms.products += 1
        C = self.terms.C
        if isinstance(C, Factored):
            return C.left @ (C.right.T @ T @ self.h2)  # the small ones first
        return C @ T @ self.h2

    def state(self, T: Tensor, CTh: Tensor | None = None) -> Fixed:
        CTh = self.product(T) if CTh is None else CTh
        q = T.sum(dim=0)
        value = self.constant + float(q @ (self.f2 @ q)) - total(CTh * T)
        return Fixed(T, q, value, CTh)

    def half_gradient(self, state: Fixed) -> Tensor:
        return self.f2 @ state.q - state.CTh

    def line(self, D: Tensor, CDh: Tensor, g: Tensor) -> Line:
        """The quadratic along D, with g the half gradient."""
        qD = D.sum(dim=0)
        curvature = float(qD @ (self.f2 @ qD)) - total(CDh * D)
        return Line(a=curvature, b=2 * total(g * D))

    def forbidden(self, T: Tensor) -> Tensor:
        """Where mass would match an end of the range in Cbar with another number, (n, k)."""

        def apart(bound: float) -> Tensor:  # by tiles, exactly 0 where T meets this end of C alone
            return self.terms.each(lambda tile: (tile - bound).abs() @ T)

        found = torch.zeros_like(T, dtype=torch.bool)
        for bound in self.terms.loss.bounds:
            here = (self.structure == bound).to(T)
            if bool(here.any()):
                found |= apart(bound) @ here > 0
        return found
