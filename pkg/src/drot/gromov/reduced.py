r"""Descents of the reduced objective of a barycentre (Chapter 11).

For a plan T with column sums q the best structure is :math:`\bar C = T^\top C T / (q q^\top)`, for
both losses, and what is left is :math:`\sum f_1(C_{ij}) w_i w_j - \sum q_k q_l f_1(\bar C_{kl})`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from .contraction import Contraction, hard_plan, total
from .descent import SMALL, Line, Problem, end_of, row_moves

_MOVES = 5  # rounds of moves before the structure follows


@dataclass
class Cell:
    """A plan, its products with C, and the best structure for it."""

    T: Tensor  # (n, k)
    CT: Tensor  # (n, k)
    q: Tensor  # (k,)
    M: Tensor  # (k, k) T^T C T
    structure: Tensor  # (k, k) M / (q q^T), 0 where a cluster is empty
    value: float


class Reduced(Problem):
    """min over Cbar of E_L(C, Cbar, T), as a function of the plan T with row sums w."""

    def __init__(self, contraction: Contraction, w: Tensor, k: int):
        super().__init__(contraction, w)
        self.k = k

    def cell(self, T: Tensor, CT: Tensor | None = None) -> Cell:
        if CT is None:
            CT = self.contraction.cost @ T
            self.products += 1
        q, M = T.sum(dim=0), self.contraction.between(T, CT)
        structure = _ratio(M, torch.outer(q, q))
        return Cell(T, CT, q, M, structure, self.constant - total(self.terms(M, q)))

    def hard(self, labels: Tensor) -> Cell:
        self.products += 1
        CT = self.contraction.product_labels(labels, self.w, self.k)
        return self.cell(hard_plan(labels, self.w, self.k), CT)

    def terms(self, M: Tensor, q: Tensor) -> Tensor:
        """q_k q_l f1(M_kl / (q_k q_l)), (k, k)."""
        return self.weighed(M, torch.outer(q, q))

    def weighed(self, M: Tensor, mass: Tensor) -> Tensor:
        """mass f1(M / mass), entry by entry; 0 for an empty cluster."""
        if self.contraction.loss == "kl":  # sums of what is not negative, to rounding
            M = M.clamp_min(0)
        return mass * self.contraction.f1_of(_ratio(M, mass))

    def at(self, cell: Cell) -> Problem:
        """The plan's problem at the fixed structure of a cell."""
        c = Contraction(self.contraction.cost, cell.structure, self.contraction.loss)
        return Problem(c, self.w, self.constant)

    def half_gradient(self, cell: Any) -> Tensor:
        """Half of the derivative by T, which is that at the fixed best structure, (n, k)."""
        c = self.contraction
        return c.f2_of(cell.structure) @ cell.q - cell.CT @ c.h2_of(cell.structure)

    def slope(self, cell: Cell) -> float:
        """The Frank-Wolfe gap."""
        g = self.half_gradient(cell)
        return self.gap(cell, g, g.min(dim=1).values)


def _ratio(M: Tensor, mass: Tensor) -> Tensor:
    return torch.where(mass > 0, M / torch.where(mass > 0, mass, 1), 0)


def reduced_descent(problem: Reduced, cell: Cell) -> Iterator[tuple[Cell, float]]:
    """Conditional gradient: all of the way where that pays, as it does where it is concave.

    Otherwise by the best length at the fixed structure, whose objective lies above the reduced
    one and touches it at the plan, so that both fall.
    """
    c = problem.contraction
    while True:
        g = problem.half_gradient(cell)
        best, labels = g.min(dim=1)
        yield cell, problem.gap(cell, g, best)
        new = problem.hard(labels)
        if new.value > cell.value - SMALL * problem.scale:
            D, CD = new.T - cell.T, new.CT - cell.CT
            qD, PD = D.sum(dim=0), CD @ c.h2_of(cell.structure)
            a = float(qD @ (c.f2_of(cell.structure) @ qD)) - total(PD * D)
            t = Line(a, 2 * total(g * D)).minimum()
            new = problem.cell(cell.T + t * D, cell.CT + t * CD)
        if not new.value < cell.value - SMALL * problem.scale:
            return
        cell = new


def reassign(problem: Reduced, cell: Cell, tol: float) -> Iterator[tuple[Cell, float]]:
    """Move single rows between clusters, the structure following, while that pays.

    Moving d_i from a to b changes two rows and columns of M, so the change of the reduced
    objective has a closed form, O(k) for each of the n k candidates. Many rows move together
    when that pays, fewer otherwise. Ends when no single row gains.
    """
    bound, most = max(SMALL, 1e-3 * tol) * problem.scale, problem.n
    while True:
        yield cell, problem.slope(cell)
        source = cell.T.argmax(dim=1)
        amount = cell.T.gather(1, source[:, None])[:, 0]
        change = torch.stack(
            [_change(problem, cell, source, amount, b) for b in range(problem.k)], dim=1
        )  # (n, k)
        gain, target = change.min(dim=1)
        rows = (gain < -bound).nonzero()[:, 0]
        if not len(rows):
            return
        rows = rows[gain[rows].argsort()]
        most = min(most, len(rows))
        while True:
            some = rows[:most]
            d = amount[some]
            D = hard_plan(target[some], d, problem.k) - hard_plan(source[some], d, problem.k)
            T = cell.T.clone()
            T[some] += D
            T[some, source[some]] = 0.0
            new = problem.cell(T, cell.CT + problem.contraction.columns(some, D))
            problem.products += len(some) / problem.n
            if new.value <= cell.value + 0.3 * float(gain[rows[0]]):
                break
            if most == 1:
                return  # what is left is rounding
            most = max(1, most // 4)
        cell, most = new, 2 * most


def polish(problem: Reduced, cell: Cell, tol: float) -> Iterator[tuple[Cell, float]]:
    """Parts of the mass of single rows at the fixed structure, then the structure, in turn.

    For the points that a similarity which is not conditionally definite leaves between clusters.
    """
    while True:
        gap = problem.slope(cell)
        yield cell, gap
        if gap <= tol:
            return
        fixed = problem.at(cell)
        start = fixed.state(cell.T, cell.CT @ fixed.contraction.h2)
        T = end_of(islice(row_moves(fixed, start, tol, exchanges=False), 1 + _MOVES)).T
        new = problem.cell(T)
        if new.value > cell.value + SMALL * problem.scale or bool((T == cell.T).all()):
            return
        cell = new


def refined(problem: Reduced, start: Cell, tol: float) -> Iterator[tuple[Cell, float]]:
    """The cells that moves of single points lead to, and polishing where a gap is left."""
    for cell, gap in reassign(problem, start, tol):
        yield cell, gap
    yield from islice(polish(problem, cell, tol), 1, None)  # the first is known


def _change(problem: Reduced, cell: Cell, source: Tensor, d: Tensor, b: int) -> Tensor:
    """The change of the reduced objective when row i sends d_i from source_i to b, (n,)."""
    n, k = cell.T.shape
    rows = torch.arange(n, device=d.device)
    u = d[:, None] * cell.CT  # (n, k) what the move carries along
    own = d.square() * problem.diagonal  # (n,)
    a = source
    # rows a and b of M after the move
    Ma, Mb = cell.M[a] - u, cell.M[b] + u  # (n, k) but for the columns a and b
    aa, bb = cell.M[a, a] - 2 * u[rows, a] + own, cell.M[b, b] + 2 * u[:, b] + own
    ab = cell.M[a, b] + u[rows, a] - u[:, b] - own
    Ma[rows, a], Ma[:, b], Mb[rows, a], Mb[:, b] = aa, ab, ab, bb
    q = cell.q.expand(n, k).clone()
    q[rows, a] -= d
    q[:, b] += d
    empty = q[rows, a] <= 1e-12 * cell.q.max()  # rounding
    q[rows, a] = torch.where(empty, 0.0, q[rows, a])

    def terms(M: Tensor, head: Tensor, q: Tensor) -> Tensor:
        return problem.weighed(M, head[:, None] * q)

    before = terms(cell.M[a], cell.q[a], cell.q.expand(n, k))
    before_b = terms(cell.M[b].expand(n, k), cell.q[b].expand(n), cell.q.expand(n, k))
    after, after_b = terms(Ma, q[rows, a], q), terms(Mb, q[:, b], q)
    # each pair (a, l) and (b, l) counts twice, the corners (a, a) and (b, b) once, (a, b) twice
    change = 2 * (before + before_b - after - after_b).sum(dim=1)
    corner = before[rows, a] + before_b[:, b] + 2 * before[:, b]
    corner_after = after[rows, a] + after_b[:, b] + 2 * after[:, b]
    return torch.where(a == b, 0.0, change - corner + corner_after)
