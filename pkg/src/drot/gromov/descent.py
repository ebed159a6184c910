r"""Descents of E_L over the plans with fixed row sums (Chapter 12).

With :math:`q = T^\top \mathbf 1` and :math:`P = C \, T \, h_2(\bar C)`, the objective is
:math:`c + q^\top f_2(\bar C) q - \langle P, T \rangle`, a quadratic. P is linear in T, so a step
along a direction D costs the one product that makes P(D), and a line search costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypedDict, Unpack

import torch
from torch import Tensor

from .._core.algebra import total
from .._core.run import Iterates, end_of
from .contraction import Contraction, hard_plan, with_rows

SMALL = 1e-14  # of the scale of E: a smaller decrease is rounding
_STEPS = 500  # that follow a trial, at most


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
    P: Tensor  # (n, k) C T h2(Cbar)
    q: Tensor  # (k,) column sums
    value: float  # E_L


class Known(TypedDict, total=False):
    """What a problem need not make when it is asked for."""

    constant: float
    scale: float
    diagonal: Tensor


class PlanProblem:
    """A function of the (n, k) plans with row sums w, made of E_L; it has ``half_gradient``."""

    half_gradient: Callable[[Any], Tensor]

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

    def gap_at(self, state: Any, g: Tensor, best: Tensor) -> float:
        """The gap where the half gradient and its smallest entry of each row are known."""
        slope = total(g * state.T) - total(self.w * best)
        return max(2 * slope / self.scale, 0.0)  # in this order what is not a number stays so

    def gap(self, state: Any) -> float:
        """Frank-Wolfe gap max <dE/dT, T - S> over plans S, in units of the scale."""
        g = self.half_gradient(state)
        return self.gap_at(state, g, g.min(dim=1).values)

    def report(self, state: Any) -> tuple[float, Tensor]:
        """What a caller hears of a state."""
        return self.gap(state), state.T


class Problem(PlanProblem):
    """E_L between two similarities over the (n, k) plans with row sums w."""

    def state(self, T: Tensor, P: Tensor | None = None) -> State:
        """Evaluate a plan; P is taken as given where it is known."""
        P = self.terms.product(T) if P is None else P
        q = T.sum(dim=0)
        value = self.constant + float(q @ (self.terms.f2 @ q)) - total(P * T)
        return State(T, P, q, value)

    def objective(self, T: Tensor) -> float:
        """E_L(T), infinite where C > 0 meets Cbar = 0 under ``kl``."""
        infinite = (self.terms.forbidden(T) & (T > 0)).any()
        return math.inf if bool(infinite) else self.state(T).value

    def half_gradient(self, state: State) -> Tensor:
        """Half of dE_L/dT without the term that is constant in each row, (n, k)."""
        return self.terms.f2 @ state.q - state.P

    def line(self, D: Tensor, PD: Tensor, g: Tensor) -> Line:
        """The quadratic along D, with g the half gradient."""
        qD = D.sum(dim=0)
        curvature = float(qD @ (self.terms.f2 @ qD)) - total(PD * D)
        return Line(a=curvature, b=2 * total(g * D))


def lower_by(
    problem: PlanProblem,
    state: Any,
    trials: Callable[[Any], Iterator],
    moves: Callable[[Any], Iterates],
) -> Iterates:
    """To where moves lead from the first lower one of a state's trials, while there is one."""
    while state is not None:
        yield state
        bound = state.value - SMALL * problem.scale
        lower = (end_of(moves(new), _STEPS) for new in trials(state) if new.value < bound)
        state = next(lower, None)


def conditional_gradient(problem: Problem, state: State, tol: float) -> Iterates:
    """Steps to the plan that the gradient likes best, each of the best length."""
    while True:
        yield state
        g = problem.half_gradient(state)
        best, labels = g.min(dim=1)
        if problem.gap_at(state, g, best) <= tol:
            return
        S = hard_plan(labels, problem.w, problem.k)
        P = problem.terms.product(S)
        D, PD = S - state.T, P - state.P
        t = problem.line(D, PD, g).minimum()
        state = problem.state(*((S, P) if t == 1 else (state.T + t * D, state.P + t * PD)))


def mirror_descent(
    problem: Problem, state: State, tol: float = 0.0, share: float = -1.0, epsilon: float = 0.0
) -> Iterates:
    r"""Steps :math:`T \leftarrow \mathrm{diag}(w / K 1) K`, K = exp(log T - gradient / epsilon).

    A step is the minimum of the linearised objective plus epsilon KL(. | T). Without an epsilon,
    it is halved after each step and doubled until that model lies above the objective, which
    therefore falls (book ``prp-mirror-descent``). Ends at the tolerance, or at a step that gains
    less than a share of what the gap promised, a sign of mass on several places, which moves of
    single rows find sooner (book ``alg-srgw``).
    """
    value, promised = math.inf, 1.0
    adapt = not epsilon
    eps = 0.1 * float(problem.half_gradient(state).std()) if adapt else epsilon
    eps = eps or problem.scale
    # log T but for a number in each row; kept, so that mass too small for T can come back
    log_T = state.T.clamp_min(torch.finfo(state.T.dtype).tiny).log().log_softmax(dim=1)
    while True:
        yield state
        g = problem.half_gradient(state)
        best = g.min(dim=1).values
        gap = problem.gap_at(state, g, best)
        if gap <= tol or value - state.value < share * promised:
            return
        value, promised = state.value, gap * problem.scale
        g = g - best[:, None]  # the same in each row: what has settled is 0, without rounding
        for _ in range(100):
            log_K = (log_T - 2 / eps * g).log_softmax(dim=1)
            T = with_rows(problem.w[:, None] * log_K.exp(), problem.w)
            P = problem.terms.product(T)
            D = T - state.T
            line = problem.line(D, P - state.P, g)
            # of rows that sum to the same, each term of the divergence is 0 or more
            divergence = total(T * (log_K - log_T) - D)
            if not adapt or line.a <= eps * divergence + SMALL * problem.scale:
                break
            eps *= 2
        state = State(T, P, T.sum(dim=0), state.value + (line.a + line.b))
        log_T = log_K
        if adapt:
            eps /= 2
