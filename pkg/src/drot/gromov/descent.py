r"""Descents of E_L over the plans with fixed row sums (Chapter 12).

With :math:`q = T^\top \mathbf 1` and :math:`P = C \, T \, h_2(\bar C)`, the objective is
:math:`c + q^\top f_2(\bar C) q - \langle P, T \rangle`, a quadratic. P is linear in T, so a step
along a direction D costs the one product that makes P(D), and a line search costs nothing more.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .contraction import Contraction, hard_plan, total, with_rows

SMALL = 1e-14  # of the scale of E: a smaller decrease is rounding
_PAYS = 0.3  # of the best gain of one row: what the moves of several together have to gain
_SHORT = 0.02  # steps that gain less of what the gap promised are left to moves of rows
_FACE = 50  # most steps of conjugate gradient, each a product, between rounds of moves


Steps = Iterator[tuple[Any, float]]  # states, and their gaps


class Line(NamedTuple):
    """E_L(T + t D) = E_L(T) + b t + a t^2 (book ``prp-line-search``)."""

    a: float
    b: float

    def minimum(self) -> float:
        """The best t in [0, 1]."""
        if self.a > 0:
            return min(1.0, max(0.0, -self.b / (2 * self.a)))
        return 1.0 if self.a + self.b < 0 else 0.0

    def change(self, t: float) -> float:
        return (self.a * t + self.b) * t


@dataclass
class State:
    """A plan with what is known of it."""

    T: Tensor  # (n, k)
    P: Tensor  # (n, k) C T h2(Cbar)
    q: Tensor  # (k,) column sums
    value: float  # E_L

    def moved(self, T: Tensor, t: float, qD: Tensor, PD: Tensor, line: Line) -> State:
        """At T, which is t D away."""
        return State(T, self.P + t * PD, self.q + t * qD, self.value + line.change(t))


class Problem:
    """E_L between two similarities over the (n, k) plans with row sums w."""

    def __init__(
        self,
        contraction: Contraction,
        w: Tensor,
        k: int = 0,
        *,
        constant: float | None = None,
        scale: float | None = None,
        diagonal: Tensor | None = None,
    ):
        self.contraction, self.w = contraction, w
        self.n, self.k = contraction.n, k or contraction.k
        self.constant = contraction.constant(w) if constant is None else constant
        if scale is not None:
            self.scale = scale or 1.0
        if diagonal is not None:
            self.diagonal = diagonal

    @property
    def products(self) -> float:
        """Products of C with an (n, k) matrix."""
        return self.contraction.products

    @cached_property
    def scale(self) -> float:
        """The size of the terms of E_L: what a residual is measured in."""
        return self.contraction.scale(self.w, self.constant) or 1.0  # C = 0 and Cbar = 0: E_L is 0

    @cached_property
    def diagonal(self) -> Tensor:
        return self.contraction.cost.diagonal()

    def state(self, T: Tensor, P: Tensor | None = None) -> State:
        """Evaluate a plan; P is taken as given where it is known."""
        P = self.contraction.product(T) if P is None else P
        q = T.sum(dim=0)
        value = self.constant + float(q @ (self.contraction.f2 @ q)) - total(P * T)
        return State(T, P, q, value)

    def objective(self, T: Tensor) -> float:
        """E_L(T), infinite where C > 0 meets Cbar = 0 under ``kl``."""
        infinite = (self.contraction.forbidden(T) & (T > 0)).any()
        return math.inf if bool(infinite) else self.state(T).value

    def half_gradient(self, state: State) -> Tensor:
        """Half of dE_L/dT without the term that is constant in each row, (n, k)."""
        return self.contraction.f2 @ state.q - state.P

    def line(self, D: Tensor, PD: Tensor, g: Tensor) -> Line:
        """The quadratic along D, with g the half gradient."""
        qD = D.sum(dim=0)
        curvature = float(qD @ (self.contraction.f2 @ qD)) - total(PD * D)
        return Line(a=curvature, b=2 * total(g * D))

    def gap_at(self, state: Any, g: Tensor, best: Tensor) -> float:
        """The gap where the half gradient and its smallest entry of each row are known."""
        slope = total(g * state.T) - total(self.w * best)
        return max(2 * slope / self.scale, 0.0)  # in this order what is not a number stays so

    def gap(self, state: Any) -> float:
        """Frank-Wolfe gap max <dE/dT, T - S> over plans S, in units of the scale."""
        g = self.half_gradient(state)
        return self.gap_at(state, g, g.min(dim=1).values)


def descent(
    problem: Problem, steps: Steps, tol: float, moves: Callable[..., Steps] | None = None
) -> Iterator[tuple]:
    """Steps to the tolerance; then ``moves(problem, state, tol)``, from where they gain little.

    A step that gains less than 2 % of what the gap promised is a sign of mass on several places,
    which moves of single rows find sooner (book ``alg-srgw``). Yields ``(state, gap, plan)``.
    """
    value, promised = math.inf, 0.0
    for state, gap in steps:
        yield state, gap, state.T
        if gap <= tol or (moves is not None and value - state.value < _SHORT * promised):
            break
        value, promised = state.value, gap * problem.scale
    if moves is not None:
        for cell, gap in islice(moves(problem, state, tol), 1, None):  # the first is known
            yield cell, gap, cell.T


def end_of(steps: Iterable[tuple]):
    """The last state that is yielded."""
    return deque(steps, maxlen=1)[0][0]


def lowest_plan(problem: Problem, start: State, tol: float, most: int) -> State:
    """Where conditional gradient and moves of single rows lead."""
    steps = conditional_gradient(problem, start)
    return end_of(islice(descent(problem, steps, tol, row_moves), most))


def conditional_gradient(problem: Problem, state: State) -> Steps:
    """Steps to the plan that the gradient likes best, each of the best length.

    Yields the state and its gap; the caller stops. The product of C with a hard plan S follows from
    that with the one before where few points moved.
    """
    contraction = problem.contraction
    labels, P = torch.full_like(problem.w, -1, dtype=torch.long), state.P  # of the last S
    while True:
        g = problem.half_gradient(state)
        last, (best, labels) = labels, g.min(dim=1)
        yield state, problem.gap_at(state, g, best)
        S, moved = hard_plan(labels, problem.w, problem.k), (labels != last).nonzero()[:, 0]
        if 2 * len(moved) < problem.n:
            change = contraction.h2[labels[moved]] - contraction.h2[last[moved]]  # (m, k)
            P = P + contraction.columns(moved, change * problem.w[moved, None])
        else:
            P = contraction.product(S)
        D, PD = S - state.T, P - state.P
        line = problem.line(D, PD, g)
        t = line.minimum()
        if t == 1:
            state = problem.state(S, P)
        else:
            state = state.moved(state.T + t * D, t, D.sum(dim=0), PD, line)


def mirror_descent(problem: Problem, state: State, epsilon: float | None) -> Steps:
    r"""Steps :math:`T \leftarrow \mathrm{diag}(w / K 1) K`, K = exp(log T - gradient / epsilon).

    A step is the minimum of the linearised objective plus epsilon KL(. | T). Without an epsilon,
    it is halved after each step and doubled until that model lies above the objective, which
    therefore falls (book ``prp-mirror-descent``).
    """
    adapt = epsilon is None
    eps = 0.1 * float(problem.half_gradient(state).std()) if adapt else epsilon
    eps = eps or problem.scale
    # log T but for a number in each row; kept, so that mass too small for T can come back
    log_T = state.T.clamp_min(torch.finfo(state.T.dtype).tiny).log().log_softmax(dim=1)
    while True:
        g = problem.half_gradient(state)
        best = g.min(dim=1).values
        yield state, problem.gap_at(state, g, best)
        g = g - best[:, None]  # the same in each row: what has settled is 0, without rounding
        for _ in range(100):
            log_K = (log_T - 2 / eps * g).log_softmax(dim=1)
            T = with_rows(problem.w[:, None] * log_K.exp(), problem.w)
            P = problem.contraction.product(T)
            D = T - state.T
            line = problem.line(D, P - state.P, g)
            # of rows that sum to the same, each term of the divergence is 0 or more
            divergence = total(T * (log_K - log_T) - D)
            if not adapt or line.a <= eps * divergence + SMALL * problem.scale:
                break
            eps *= 2
        state = State(T, P, T.sum(dim=0), state.value + line.change(1.0))
        log_T = log_K
        if adapt:
            eps /= 2


def row_moves(problem: Problem, state: State, tol: float, *, exchanges: bool = True) -> Steps:
    """Move mass of single rows, from the place that costs them most to any other.

    The change of E_L by an amount d is (linear) d + (quadratic) d^2 in closed form, so its best
    amount is known: all of the mass where the second derivative is negative, whatever the
    gradient says. The rows that gain most move together, fewer if that does not pay. Where no row
    gains, the two places whose exchange gains most do so. Rows that share mass among the same
    places for many rounds find their shares by conjugate gradient. Yields like the others, and
    ends when nothing gains (book ``prp-row-move``; steps 3 and 4 of ``alg-srgw``).
    """
    f2_pairs, h2_pairs = _squares(problem.contraction.f2), _squares(problem.contraction.h2)
    bound = max(SMALL, 1e-3 * tol) * problem.scale
    share = tol * problem.scale / (problem.n * problem.k)
    most, rounds = problem.n, 0  # rows that may move together, and how often some did
    while True:
        if rounds == problem.n:  # which took as long as some products
            state, rounds = _on_face(problem, state, share), 0
        g = problem.half_gradient(state)
        best = g.min(dim=1).values
        yield state, problem.gap_at(state, g, best)
        blame = state.T * (g - best[:, None])  # (n, k) what each entry adds to the gap
        worst, source = blame.max(dim=1)
        source = torch.where(worst > 0, source, state.T.argmax(dim=1))[:, None]  # (n, 1)
        mass = state.T.gather(1, source)  # (n, 1)
        linear = 2 * (g - g.gather(1, source))  # (n, k)
        quadratic = f2_pairs[source[:, 0]] - problem.diagonal[:, None] * h2_pairs[source[:, 0]]
        amount = torch.where(quadratic > 0, -linear / (2 * quadratic), mass)
        amount = torch.minimum(amount.clamp_min(0), mass)
        gain, target = ((linear + quadratic * amount) * amount).min(dim=1)
        slope = -2 * worst  # near a minimum the gain is rounding and the slope is not
        rows = ((gain < -bound) | ((slope < -share) & (gain < 0))).nonzero()[:, 0]
        if not len(rows):
            exchanged = _exchanged(problem, state, bound) if exchanges else None
            if exchanged is None:
                return
            state = exchanged
            continue
        D = hard_plan(target, amount.gather(1, target[:, None])[:, 0], problem.k)
        D.scatter_add_(1, source, -D.sum(dim=1, keepdim=True))
        found = together(rows, gain, most, partial(_move, problem, state, g, D))
        if found is None:
            return
        state, most = found
        rounds += 1


def together(
    rows: Tensor, gain: Tensor, most: int, move: Callable[[Tensor], tuple[Any, float]]
) -> tuple[Any, int] | None:
    """Move the rows that gain most, at most so many, or fewer where that does not pay.

    ``move(rows)`` gives what they lead to, and the change of the objective. Returns the first and
    how many may move next; None where not even one pays: what is left is rounding.
    """
    rows = rows[gain[rows].argsort()]
    count = min(most, len(rows))
    while count:
        new, change = move(rows[:count])
        if change <= _PAYS * float(gain[rows[0]]):
            return new, 2 * count
        count = count // 4 or int(count > 1)
    return None


def _on_face(problem: Problem, state: State, share: float) -> State:
    """Lower E_L among the plans that have mass in no other place, by conjugate gradient.

    Moves of single rows approach the minimum of such a quadratic by a factor a round. Where an
    entry comes to 0 it stays there, and the directions start anew.
    """
    D, last = torch.zeros_like(state.T), math.inf
    for _ in range(_FACE):
        g, free = problem.half_gradient(state), state.T > 0
        mean = (g * free).sum(dim=1, keepdim=True) / free.sum(dim=1, keepdim=True).clamp_min(1)
        r = torch.where(free, g - mean, 0)  # (n, k) of row sums 0
        if 2 * float((state.T * r).abs().max()) <= share:
            break
        norm = total(r.square())
        D = norm / last * D - r
        PD = problem.contraction.product(D)
        line = problem.line(D, PD, r)
        if not line.b < 0:  # rounding
            break
        room = torch.where(D < 0, -state.T / D, math.inf)  # (n, k) steps to the ends of the face
        wall = float(room.min())
        t = min(-line.b / (2 * line.a), wall) if line.a > 0 else wall
        T = torch.where(room <= t, 0, (state.T + t * D).clamp_min(0))
        state, last = state.moved(T, t, D.sum(dim=0), PD, line), norm if t < wall else math.inf
    return state


def _squares(x: Tensor) -> Tensor:
    """x_aa + x_bb - 2 x_ab, (k, k)."""
    d = x.diagonal()
    return d[:, None] + d - 2 * x


def _move(
    problem: Problem, state: State, g: Tensor, D: Tensor, rows: Tensor
) -> tuple[State, float]:
    """Along some rows of D (n, k), all by the same best length; and the change."""
    D = D[rows]
    PD = problem.contraction.columns(rows, D @ problem.contraction.h2)  # (n, k)
    line = problem.line(D, PD[rows], g[rows])
    t = line.minimum()
    T = state.T.clone()
    T[rows] += t * D
    return state.moved(T.clamp_min_(0), t, D.sum(dim=0), PD, line), line.change(t)


def _exchanged(problem: Problem, state: State, bound: float) -> State | None:
    """Exchange the two places whose exchange lowers E_L most; None where none does.

    With M = T^T C T the objective is c + <q q^T, f2> - <M, h2>, and an exchange permutes M and q.
    """
    contraction = problem.contraction
    CT = contraction.times(state.T)
    M = state.T.T @ CT  # (k, k)
    change = _exchange_change(torch.outer(state.q, state.q), contraction.f2)
    change = change - _exchange_change((M + M.T) / 2, contraction.h2)  # (k, k)
    best = int(change.argmin())
    if not float(change.flatten()[best]) < -bound:
        return None
    order = torch.arange(problem.k, device=M.device)
    a, b = divmod(best, problem.k)
    order[a], order[b] = b, a
    return problem.state(state.T[:, order], CT[:, order] @ contraction.h2)


def _exchange_change(M: Tensor, h: Tensor) -> Tensor:
    """The change of <M, h> when rows and columns a and b of M change places, (k, k) in a, b."""
    A, d, e = M @ h, M.diagonal(), h.diagonal()
    diag = A.diagonal()
    moved = A + A.T - diag[:, None] - diag  # sum_l (M_bl - M_al) (h_al - h_bl)
    ends = (M - d[:, None]) * (e[:, None] - h)  # its term l = a
    moved = moved - ends - ends.T
    return 2 * moved + (d - d[:, None]) * (e[:, None] - e)
