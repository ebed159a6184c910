r"""Descents of a plan: conditional gradient, mirror descent, moves of single rows (Chapter 12).

The first two are one product with C a step. The third is compiled. Move d from place a to place b
in row i: :math:`T + d \, e_i (e_b - e_a)^\top` has, by
:math:`E_L = c + q^\top f_2 q - \langle C T h_2, T \rangle`, the objective
:math:`E_L + \beta d + \alpha d^2`, where :math:`g = \mathbf 1 (f_2 q)^\top - C T h_2` and

.. math::

    \beta = 2 (g_{ib} - g_{ia}), \qquad
    \alpha = (f_2)_{aa} + (f_2)_{bb} - 2 (f_2)_{ab}
             - C_{ii} \bigl( (h_2)_{aa} + (h_2)_{bb} - 2 (h_2)_{ab} \bigr) .

:math:`C T h_2` changes by :math:`d \, C e_i (e_b - e_a)^\top h_2`. So one loop serves all
losses. It sees some rows at a time, a small block of C: what they do to the others is one product
after it. Wherever C is held, in tiles, by its factors or on a GPU, the block comes to the CPU.
Nothing is compiled before its first call, and nothing is kept on disk.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import torch
from torch import Tensor

from .._core.algebra import total
from .contraction import SMALL, Fixed, Problem, hard_plan, with_rows
from .search import Iterates

_FIRST = 0.1  # mirror step: its epsilon in standard deviations of the gradient
_DOUBLINGS = 100  # of epsilon in one step, at most
_ROUNDINGS = 64  # eps of the scale: what moves gain less than
_ROWS = 256  # of a block: its part of C stays in the cache
_VISITS = 20  # of each row, before Python hears of a block again
_PATIENCE = 10  # rounds of moves before rows that share mass find their shares at once
_SHARES = 1000  # most of which one system of equations is solved


def conditional_gradient(problem: Problem, state: Fixed, tol: float) -> Iterates[Fixed]:
    """Steps to the plan that the gradient likes best, each of the best length."""
    while True:
        yield state
        g, _, labels, gap = problem.oracle(state)
        if gap <= tol:
            return
        S = hard_plan(labels, problem.w, problem.k)
        CTh = problem.product(S)
        D, CDh = S - state.T, CTh - state.CTh
        t = problem.line(D, CDh, g).minimum()
        state = problem.state(*((S, CTh) if t == 1 else (state.T + t * D, state.CTh + t * CDh)))


def mirror_descent(
    problem: Problem, state: Fixed, tol: float = 0.0, share: float = -1.0, epsilon: float = 0.0
) -> Iterates[Fixed]:
    r"""Steps :math:`T \leftarrow \mathrm{diag}(w / K 1) K`, K = exp(log T - gradient / epsilon).

    A step is the minimum of the linearised objective plus epsilon KL(. | T). Without an epsilon,
    it is halved after each step and doubled until that model lies above the objective, which
    therefore falls (book ``prp-mirror-descent``). Ends at the tolerance, or at a step that gains
    less than a share of what the gap promised, a sign of mass on several places, which moves of
    single rows find sooner (book ``alg-srgw``).
    """
    value, promised, adapt = math.inf, 1.0, not epsilon
    eps = epsilon or _FIRST * float(problem.half_gradient(state).std()) or problem.scale
    # log T but for a number in each row; kept, so that mass too small for T can come back
    log_T = state.T.clamp_min(torch.finfo(state.T.dtype).tiny).log().log_softmax(dim=1)
    while True:
        yield state
        g, least, _, gap = problem.oracle(state)
        if gap <= tol or value - state.value < share * promised:
            return
        value, promised = state.value, gap * problem.scale
        g = g - least[:, None]  # the same in each row: what has settled is 0, without rounding
        for _ in range(_DOUBLINGS):
            log_K = (log_T - 2 / eps * g).log_softmax(dim=1)
            T = with_rows(problem.w[:, None] * log_K.exp(), problem.w)
            CTh = problem.product(T)
            D = T - state.T
            line = problem.line(D, CTh - state.CTh, g)
            # of rows that sum to the same, each term of the divergence is 0 or more
            divergence = total(T * (log_K - log_T) - D)
            if not adapt or line.a <= eps * divergence + SMALL * problem.scale:
                break
            eps *= 2
        state = Fixed(T, T.sum(dim=0), state.value + (line.a + line.b), CTh)
        log_T = log_K
        if adapt:
            eps /= 2


@numba.njit(nogil=True, error_model="numpy")
def _sweep(T, CTh, F, own, f2, h2, bound, share, step, gains, C, visits):
    """Rows in turn make their moves until none gains; T, CTh (n, k) and F = f2 q (k,) follow.

    ``gains`` (n,) gets what each row could gain when it was seen last. Without C, none moves.
    """
    n, k = T.shape
    quiet, i = 0, 0
    for _ in range(visits):
        step[:] = 0.0
        for turn in range(k):
            # from the place that adds most to the gap; from any, where that does not gain
            least, most, first = np.inf, 0.0, 0
            for a in range(k):
                least = min(least, F[a] - CTh[i, a])
            for a in range(k):
                blame = T[i, a] * (F[a] - CTh[i, a] - least)
                if blame > most:
                    most, first = blame, a
            best, source, target, amount = 0.0, 0, 0, 0.0
            for other in range(-1, k):
                a = first if other < 0 else other
                mass = T[i, a]
                if best < 0 or mass <= 0:
                    continue
                for b in range(k):
                    linear = 2 * (F[b] - CTh[i, b] - F[a] + CTh[i, a])
                    quadratic = f2[a, a] + f2[b, b] - 2 * f2[a, b]
                    quadratic -= own[i] * (h2[a, a] + h2[b, b] - 2 * h2[a, b])
                    some = mass if -linear >= 2 * quadratic * mass else -linear / (2 * quadratic)
                    change = (linear + quadratic * some) * some
                    # near a minimum the change is rounding and the slope is not
                    small = change >= -bound and linear * mass >= -share
                    if some > 0 and change < best and not small:
                        best, source, target, amount = change, a, b, some
            gains[i] = best if turn == 0 else gains[i]
            if best >= 0 or len(C) == 0:
                break
            T[i, source] = max(T[i, source] - amount, 0.0)
            T[i, target] += amount
            for c in range(k):
                F[c] += amount * (f2[c, target] - f2[c, source])
                once = amount * (h2[target, c] - h2[source, c])
                CTh[i, c] += own[i] * once
                step[c] += once
        quiet += 1
        if gains[i] < 0 and len(C) > 0:
            quiet = 0
            for j in range(n):
                for c in range(k):
                    CTh[j, c] += C[j, i] * step[c] if j != i else 0.0
        if quiet == n:
            return
        i = i + 1 if i + 1 < n else 0


def _numbers(x: Tensor) -> np.ndarray:
    """What the loop reads: float64 on the CPU."""
    return x.to("cpu", torch.float64).contiguous().numpy()


def row_moves(
    problem: Problem, state: Fixed, tol: float, *, exchanges: bool = True
) -> Iterates[Fixed]:
    """Move mass of single rows, each from the place and to the place that lower E_L most.

    A round visits the rows that can gain, a block at a time. Rows that share mass for many rounds
    find their shares by systems of equations. Where no row gains, the two places whose exchange
    gains most do so. Ends when nothing gains (book ``prp-row-move``; steps 2 and 3 of
    ``alg-srgw``).
    """
    terms, n, k = problem.terms, problem.n, problem.k
    small = _ROUNDINGS * torch.finfo(state.T.dtype).eps
    bound, share = small * problem.scale / n, max(small, tol) * problem.scale / (n * k)
    f2, h2, step, gains = _numbers(problem.f2), _numbers(problem.h2), np.empty(k), np.empty(n)
    rest, own = (f2, h2, bound, share, step, gains), terms.diagonal
    known, none, rounds = _numbers(own), np.empty((0, 0)), 0
    while True:
        yield state
        F, T, CTh = f2 @ _numbers(state.q), state.T, state.CTh
        _sweep(_numbers(T), _numbers(CTh), F, known, *rest, none, n)
        if (gains < 0).any():
            T, CTh = T.clone(), CTh.clone()
            for rows in torch.from_numpy(gains < 0).to(T.device).nonzero()[:, 0].split(_ROWS):
                some = T[rows], CTh[rows], own[rows], terms.C.entries(rows)
                t, cth, here, block = map(_numbers, some)
                _sweep(t, cth, F, here, *rest, block, _VISITS * len(rows))
                after = torch.from_numpy(t).to(T)
                CTh += terms.columns(rows, (after - T[rows]) @ problem.h2)
                T[rows] = after
        if bool((T != state.T).any()):
            state, rounds = problem.state(T, CTh), rounds + 1
            if rounds % _PATIENCE == 0:
                state = on_support(problem, state)
            continue
        lower = exchanged(problem, state, small * problem.scale) if exchanges else None
        if lower is None or not lower.value < state.value:  # what is left is rounding
            return
        state = lower


def on_support(problem: Problem, state: Fixed) -> Fixed:
    """Active-set steps to where E_L is least among the plans of the same support.

    Moves of single rows approach the minimum of such a quadratic by a factor a round. A step goes
    there at once or, where there is none, along a direction without curvature, until a place of
    some row is empty; then again. A plan with too many shares stays as it is.
    """
    terms = problem.terms
    while True:
        rows = ((state.T > 0).sum(dim=1) > 1).nonzero()[:, 0]
        T = state.T[rows]  # (r, k)
        i, a = (T > 0).nonzero().unbind(dim=1)  # row and place of each share, (m,)
        if not 0 < len(i) <= _SHARES:
            return state
        free = T.argmax(dim=1)[i] != a  # the largest of each row takes what the others leave
        Z = torch.eye(len(i)).to(T)[:, free]  # (m, m - r)
        Z[~free] = -(i[~free, None] == i[free]).to(T)
        H = problem.f2[a][:, a] - terms.C.entries(rows)[i][:, i] * problem.h2[a][:, a]  # (m, m)
        way, convex = _downhill(Z.T @ H @ Z, Z.T @ problem.half_gradient(state)[rows][i, a])
        way = Z @ way
        room = torch.where(way < 0, -T[i, a] / way, torch.inf)  # (m,) steps to the ends
        wall = float(room.min())
        t = min(1.0, wall) if convex else wall
        if not bool((t * way).isfinite().all()):  # equations without a solution, but for rounding
            return state
        D = torch.zeros_like(T)
        D[i, a] = torch.where(room <= t, -T[i, a], t * way)
        new = state.T.clone()
        new[rows] = (T + D).clamp_min_(0)
        lower = problem.state(new, state.CTh + terms.columns(rows, D @ problem.h2))
        if not lower.value <= state.value + SMALL * problem.scale:  # rounding
            return state
        state = lower
        if t < wall:
            return state


def _downhill(H: Tensor, slope: Tensor) -> tuple[Tensor, bool]:
    """Where y H y / 2 + slope y is least; else a direction that it falls along, not convex."""
    factor, failed = torch.linalg.cholesky_ex(H)
    if not failed:
        return -torch.cholesky_solve(slope[:, None], factor)[:, 0], True
    j = int(failed) - 1  # with the entries before it, this one has no curvature left
    factor = torch.linalg.cholesky_ex(H[:j, :j])[0]
    way = torch.zeros_like(slope)
    way[:j], way[j] = -torch.cholesky_solve(H[:j, j, None], factor)[:, 0], 1
    return torch.where(way @ slope > 0, -way, way), False


def exchanged(problem: Problem, state: Fixed, bound: float) -> Fixed | None:
    """Exchange the two places whose exchange lowers E_L most; None where none does.

    With M = T^T C T the objective is c + <q q^T, f2> - <M, h2>, and an exchange permutes M and q.
    """
    now = problem.terms.couple(state.T)
    change = _exchange_change(torch.outer(now.q, now.q), problem.f2)
    change = change - _exchange_change(now.M, problem.h2)  # (k, k)
    best = int(change.argmin())
    if not float(change.flatten()[best]) < -bound:
        return None
    order = torch.arange(problem.k, device=now.q.device)
    a, b = divmod(best, problem.k)
    order[a], order[b] = b, a
    return problem.state(now.T[:, order], now.CT[:, order] @ problem.h2)


def _exchange_change(M: Tensor, h: Tensor) -> Tensor:
    """The change of <M, h> when rows and columns a and b of M change places, (k, k) in a, b."""
    A, d, e = M @ h, M.diagonal(), h.diagonal()
    diag = A.diagonal()
    moved = A + A.T - diag[:, None] - diag  # sum_l (M_bl - M_al) (h_al - h_bl)
    ends = (M - d[:, None]) * (e[:, None] - h)  # its term l = a
    moved = moved - ends - ends.T
    return 2 * moved + (d - d[:, None]) * (e[:, None] - e)
