"""Slow and independent answers, to hold against the fast ones of `drot`.

Nothing here imports `drot`. Conic programs are solved by an interior-point method, roots by
bisection, fixed points by the plainest iteration, derivatives by central differences. Arrays
are NumPy float64; n stays below about 30.

Entropies follow the book: H(p) = -sum p (log p - 1), so a row of mass 1 and perplexity xi has
H = log xi + 1.
"""

import itertools
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.special


class Conic(NamedTuple):
    """An optimal plan with the multipliers that certify it."""

    plan: np.ndarray  # (n, m)
    value: float
    entropy: np.ndarray | float  # multiplier of the entropy constraint(s), >= 0
    row_sum: np.ndarray  # (n,) multiplier of the row sums


def _entropies(plan: cp.Expression) -> cp.Expression:
    """H of each row, (n,)."""
    return cp.sum(cp.entr(plan) + plan, axis=1)


def _minimise(objective: cp.Expression, constraints: list[cp.Constraint]) -> tuple[float, float]:
    """Solve, and return the value and the factor by which all multipliers are too large.

    The solver now and then stalls a few digits short of its tolerance; another scale of the
    objective, which changes no solution, frees it. At 1e-12 plans are right to about 1e-9.
    """
    levels = itertools.product((1e-12, 1e-11, 1e-10, 1e-9), (1.0, 0.3, 3.0, 0.07, 0.5, 10.0))
    for tol, scale in levels:
        problem = cp.Problem(cp.Minimize(scale * objective), constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": the status says so too
            problem.solve(
                solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol, max_iter=200
            )
        if problem.status == cp.OPTIMAL:
            return float(problem.solution.opt_val) / scale, scale
    raise AssertionError(f"no scale of the objective gives full accuracy: {problem.status}")


def entropic_transport(
    cost: np.ndarray, perplexity: float | np.ndarray, symmetric: bool = False
) -> Conic:
    """(EA as OT): min <P, C> with rows of sum 1 and of entropy at least log xi + 1."""
    level = np.log(np.broadcast_to(perplexity, len(cost))) + 1
    plan = cp.Variable(cost.shape, symmetric=symmetric)
    sums, entropies = cp.sum(plan, axis=1) == 1, _entropies(plan) >= level
    value, scale = _minimise(cp.sum(cp.multiply(plan, cost)), [sums, entropies])
    return Conic(plan.value, value, entropies.dual_value / scale, -sums.dual_value / scale)


symmetric_entropic_transport = partial(entropic_transport, symmetric=True)  # (SEA)


def symmetric_transport(cost: np.ndarray, total_entropy: float) -> Conic:
    """(EOT): min <P, C> over symmetric P with rows of sum 1 and sum_i H(P_i:) >= total."""
    n = len(cost)
    plan = cp.Variable((n, n), symmetric=True)
    sums = cp.sum(plan, axis=1) == 1
    entropy = cp.sum(_entropies(plan)) >= total_entropy
    value, scale = _minimise(cp.sum(cp.multiply(plan, cost)), [sums, entropy, plan >= 0])
    return Conic(plan.value, value, float(entropy.dual_value) / scale, -sums.dual_value / scale)


def symmetric_dual(
    cost: np.ndarray, perplexity: float | np.ndarray, gamma: np.ndarray, lam: np.ndarray
) -> float:
    """The dual function of (SEA); -inf outside its domain."""
    level = np.log(np.broadcast_to(perplexity, len(cost))) + 1
    s, u = gamma[:, None] + gamma, lam[:, None] + lam - 2 * cost
    if ((s < 0) | (s == 0) & (u > 0)).any():
        return -np.inf
    paid = (s[s > 0] * np.exp(u[s > 0] / s[s > 0])).sum()
    return float(level @ gamma + lam.sum() - paid / 2)


def symmetric_dual_gradient(
    cost: np.ndarray, perplexity: float | np.ndarray, at: np.ndarray
) -> np.ndarray:
    """Its derivatives by gamma > 0, then by lam, at their concatenation (2n,)."""
    gamma, lam = np.split(at, 2)
    log_p = (lam[:, None] + lam - 2 * cost) / (gamma[:, None] + gamma)
    p = np.exp(log_p)
    level = np.log(np.broadcast_to(perplexity, len(cost))) + 1
    return np.concatenate([level + (p * (log_p - 1)).sum(axis=1), 1 - p.sum(axis=1)])


def _divergence(plan: cp.Expression, log_kernel: np.ndarray) -> cp.Expression:
    """Generalised KL(P | K), with log K given so that small kernels keep their digits."""
    linear = cp.sum(cp.multiply(plan, -log_kernel)) - cp.sum(plan) + np.exp(log_kernel).sum()
    return linear - cp.sum(cp.entr(plan))


def entropic_projection(
    log_kernel: np.ndarray, perplexity: float, symmetric: bool = False
) -> Conic:
    """Generalised KL projection of K onto rows of sum 1 and entropy at least log xi + 1."""
    plan = cp.Variable(log_kernel.shape, symmetric=symmetric)
    sums, entropies = cp.sum(plan, axis=1) == 1, _entropies(plan) >= np.log(perplexity) + 1
    value, scale = _minimise(_divergence(plan, log_kernel), [sums, entropies])
    return Conic(plan.value, value, entropies.dual_value / scale, -sums.dual_value / scale)


symmetric_entropic_projection = partial(entropic_projection, symmetric=True)


def doubly_stochastic_projection(log_kernel: np.ndarray) -> Conic:
    """Generalised KL projection of K onto P 1 = 1 and P^T 1 = 1; symmetry is not asked for."""
    plan = cp.Variable(log_kernel.shape)
    rows, columns = cp.sum(plan, axis=1) == 1, cp.sum(plan, axis=0) == 1
    value, scale = _minimise(_divergence(plan, log_kernel), [rows, columns])
    return Conic(plan.value, value, 0.0, -rows.dual_value / scale)


def nearest_symmetric(P: np.ndarray, kind: str) -> np.ndarray:
    """The symmetric Q of least |Q - P|^2 ("frobenius"), KL(Q|P) ("kl") or KL(P|Q) ("reverse")."""
    Q = cp.Variable(P.shape, symmetric=True)
    objective = {
        "frobenius": lambda: cp.sum_squares(Q - P),
        "kl": lambda: _divergence(Q, np.log(P)),
        "reverse": lambda: cp.sum(Q) - cp.sum(cp.multiply(P, cp.log(Q))),
    }[kind]()
    _minimise(objective, [])
    return Q.value


def softmax(row: np.ndarray, eps: float) -> np.ndarray:
    """exp(-c / eps), normalised."""
    return scipy.special.softmax(-(row - row.min()) / eps)


def log_perplexity(p: np.ndarray) -> float:
    """Shannon's entropy of one row of mass 1, by the definition, entry by entry."""
    return -sum(float(x) * float(np.log(x)) for x in p if x > 0)


def row_perplexities(plan) -> np.ndarray:
    return np.exp([log_perplexity(row) for row in np.asarray(plan)])


def bandwidth_by_bisection(row: np.ndarray, perplexity: float, halvings: int = 200) -> float:
    """The eps at which softmax(-c / eps) has this perplexity: halve a bracket 200 times."""
    low, high = -800.0, 800.0  # of log eps
    for _ in range(halvings):
        middle = (low + high) / 2
        with np.errstate(over="ignore", under="ignore"):
            reached = log_perplexity(softmax(row, np.exp(middle)))
        low, high = (middle, high) if reached < np.log(perplexity) else (low, middle)
    return float(np.exp((low + high) / 2))


def scaled(plan: np.ndarray, rows=1.0, columns=1.0, sweeps: int = 20_000) -> np.ndarray:
    """Scale rows, then columns, until both have these sums."""
    for _ in range(sweeps):
        plan = plan * (rows / plan.sum(axis=1))[:, None]
        plan = plan * (columns / plan.sum(axis=0))
        if np.abs(plan.sum(axis=1) - rows).max() < 1e-14:
            break
    return plan


def sinkhorn(cost: np.ndarray, nu: float) -> np.ndarray:
    """The doubly stochastic plan of exp(-C / nu)."""
    return scaled(np.exp(-cost / nu))


def exact_sqeuclidean(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Squared distances in rational arithmetic, rounded once at the end."""
    left, right = ([[Fraction(float(v)) for v in point] for point in cloud] for cloud in (X, Y))
    return np.array(
        [[float(sum((a - b) ** 2 for a, b in zip(x, y, strict=True))) for y in right] for x in left]
    )


def jacobian(
    function: Callable[[np.ndarray], np.ndarray], at: np.ndarray, step: float
) -> np.ndarray:
    """J_ij = d f_i / d x_j by central differences, (m, n)."""
    columns = [
        (function(at + step * unit) - function(at - step * unit)) / (2 * step)
        for unit in np.eye(len(at))
    ]
    return np.stack(columns, axis=1)
