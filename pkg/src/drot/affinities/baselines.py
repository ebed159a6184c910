"""Slow ways to the symmetric entropic affinity, to compare with: what the papers run or name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import as_perplexity, as_positive, check_choice
from .._core.run import OnFailure, iterate
from .._core.threads import by_size
from .bandwidths import solve_rows
from .base import AffinityCallback
from .rows import entropic_affinity
from .symmetric import SymmetricEntropicAffinity, affinity_at
from .symmetric_dual import DualState, read_dual

Optimizer = Literal["adam", "lbfgs"]


@by_size
def symmetric_dual_ascent(
    cost,
    *,
    perplexity: ArrayLike,
    optimizer: Optimizer = "adam",
    learning_rate: float = 0.1,
    tol: float = 1e-3,
    max_iter: int = 5000,
    callback: AffinityCallback | None = None,
    on_failure: OnFailure = "raise",
) -> SymmetricEntropicAffinity:
    r"""Symmetric entropic affinity by ascent along first derivatives, as the papers do it.

    Maximises the dual function over :math:`\theta` and :math:`\lambda`, where
    :math:`\gamma = \theta^2`, from the duals of the entropic affinity. To be independent of the
    unit of the cost, both are divided by the mean of the first :math:`\gamma`. Use
    :func:`~drot.symmetric_entropic_affinity` for anything but a comparison: where a row is slack
    this does not arrive, and elsewhere it takes many times the work.

    Source: (Dual-SEA) and the paragraph on numerical optimisation in section 3 of SNEkhorn
    (Van Assel et al., 2023); book ``ch-repro-sea``.

    Parameters
    ----------
    cost, perplexity
        As in :func:`~drot.symmetric_entropic_affinity`.
    optimizer : {"adam", "lbfgs"}
        PyTorch's Adam, or its L-BFGS with 10 pairs and strong Wolfe conditions. Its line search
        steps back from where the dual function is negative or not finite.
    learning_rate : float
        Of Adam, dimensionless; idle otherwise.
    tol : float
        As there; 1e-3 is what such methods are run to.
    max_iter : int
        Evaluations of the dual function.
    callback : callable, optional
        Called as ``callback(evaluation, residual)`` after each.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    SymmetricEntropicAffinity
        Of the evaluation with the least residual. ``products`` is 0 and ``free`` too.

    Raises
    ------
    ValueError
        As there, and if the optimizer does not exist.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.

    Examples
    --------
    >>> points = torch.linspace(0, 1, 12, dtype=torch.float64)[:, None]
    >>> cost = torch.cdist(points, points) ** 2
    >>> slow = symmetric_dual_ascent(cost, perplexity=4, tol=1e-2)
    >>> slow.converged and slow.passes > 20
    True
    """
    check_choice("optimizer", optimizer, get_args(Optimizer))
    learning_rate = as_positive("learning_rate", learning_rate)
    dual, tol, max_iter = read_dual(cost, perplexity, tol, max_iter, on_failure)
    start = entropic_affinity(dual.cost, perplexity=perplexity, tol=1e-2, on_failure="ignore")
    dual.passes += start.passes
    none = torch.zeros_like(start.eps, dtype=torch.bool)  # no row is pinned
    unit = float(start.eps.mean())
    theta = (start.eps / unit).sqrt().requires_grad_()
    level = (start.lam / unit).requires_grad_()
    seen: list[DualState] = []  # evaluated since the last step

    def loss() -> Tensor:
        """Minus the dual function, in units of ``unit``, with its derivatives in place."""
        with torch.no_grad():
            state = dual.at(theta.square() * unit, level * unit, none)
            dual.measured(state)
            seen.append(state)
            theta.grad = -2 * theta * (dual.target - state.entropy)
            level.grad = state.row_sum - 1
            value, first = state.value, seen[0].value  # of this step
            fair = value >= min(0.0, first) and math.isfinite(state.residual)
            if optimizer == "lbfgs" and not fair:
                # PyTorch's line search steps back from a wall; it breaks at what is not finite, and
                # from what is far worse it interpolates a step of next to nothing
                theta.grad.zero_()
                level.grad.zero_()
                return level.new_tensor(torch.finfo(level.dtype).max ** 0.25)
        return level.new_tensor(-value / unit)

    engine: torch.optim.Optimizer
    if optimizer == "lbfgs":  # of which a step is several evaluations
        engine = torch.optim.LBFGS(
            [theta, level], history_size=10, line_search_fn="strong_wolfe",
            tolerance_grad=0, tolerance_change=0,
        )  # fmt: skip
    else:
        engine = torch.optim.Adam([theta, level], lr=learning_rate)

    def steps() -> Iterator[tuple[DualState, float]]:
        best: DualState | None = None
        while True:
            seen.clear()
            engine.step(loss)
            for state in seen:
                if best is None or state.residual < best.residual:
                    best = state
                yield best, state.residual
            stuck = len(seen) == 1  # L-BFGS found no step
            if stuck if optimizer == "lbfgs" else not math.isfinite(seen[-1].residual):
                return

    where = f"symmetric_dual_ascent ({optimizer})"
    course = iterate(where, steps(), tol, max_iter, callback, on_failure, first=1)
    found = affinity_at(dual, course.state, course)
    return course.give(replace(found, residual=min(course.certificate["trace"])))


@by_size
def symmetric_alternating_projections(
    cost,
    *,
    perplexity: ArrayLike,
    bandwidth: float,
    tol: float = 1e-6,
    max_iter: int = 5000,
    callback: AffinityCallback | None = None,
    on_failure: OnFailure = "raise",
) -> SymmetricEntropicAffinity:
    r"""Symmetric entropic affinity by alternating KL projections of a Gaussian kernel.

    Both projections are for the Kullback-Leibler divergence. That of P on the symmetric matrices
    is :math:`\sqrt{P \odot P^\top}`; that of a row on :math:`\mathcal H_\xi` raises its
    temperature until its perplexity is :math:`\xi`, or only normalises it if it has more. Since
    :math:`\mathcal H_\xi` is not affine, its projection carries Dykstra's correction; the limit
    is the projection of :math:`e^{-C / \sigma}` on the intersection, which is
    :math:`P^{\mathrm{se}}` as long as :math:`\sigma \le \min_i \gamma_i`. Use
    :func:`~drot.symmetric_entropic_affinity` for anything but a comparison.

    Source: Remark 6 and Lemma 9 of SNEkhorn (Van Assel et al., 2023), which name the method;
    book ``prp-sea-kl`` and ``sec-sea-projections``.

    Parameters
    ----------
    cost, perplexity
        As in :func:`~drot.symmetric_entropic_affinity`; the plan is held as a dense matrix.
    bandwidth : float
        :math:`\sigma > 0`, in units of the cost.
    tol : float
        Largest accepted error of the row sums and the log perplexities of the symmetric matrix,
        in max norm; of a row that was only normalised, missing log perplexity alone counts.
    max_iter : int
        Pairs of projections.
    callback : callable, optional
        Called as ``callback(iteration, residual)`` after each.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    SymmetricEntropicAffinity
        Of the last pair of projections. ``gamma`` is :math:`\sigma` times the temperature of
        each row: where it equals :math:`\sigma`, the row may have more than :math:`\xi`, and a
        smaller bandwidth is needed. One pass is one pair of projections.

    Raises
    ------
    ValueError
        As there.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.

    Examples
    --------
    >>> points = torch.linspace(0, 1, 5, dtype=torch.float64)[:, None]
    >>> cost = torch.cdist(points, points) ** 2
    >>> slow = symmetric_alternating_projections(cost, perplexity=2.5, bandwidth=0.01)
    >>> slow.perplexity.round(decimals=4).tolist()
    [2.5, 2.5, 2.5, 2.5, 2.5]
    """
    dual, tol, max_iter = read_dual(cost, perplexity, tol, max_iter, on_failure)
    sigma = as_positive("bandwidth", bandwidth, dual.cost.dtype) / dual.scale
    C, n, wanted = dual.cost.dense(), len(dual.target), dual.target - 1
    xi, numbers = as_perplexity(perplexity, n, C.device), torch.arange(n, device=C.device)

    def steps() -> Iterator[tuple[tuple[Tensor, Tensor], float]]:
        log_p = -C / sigma  # (n, n) symmetric
        correction = torch.zeros_like(log_p)
        while True:
            log_y = log_p + correction
            excess = log_y.amax(dim=1, keepdim=True) - log_y
            temperature = solve_rows(excess, xi, numbers, tol / 10, 200)[0].exp().clamp_min(1.0)
            log_rows = torch.log_softmax(-excess / temperature[:, None], dim=1)
            correction = log_y - log_rows
            log_p = (log_rows + log_rows.T) / 2
            p = log_p.exp()
            missing = wanted + (p * log_p).sum(dim=1)
            missing = torch.where(temperature > 1, missing.abs(), missing)
            residual = float(torch.maximum(missing, (p.sum(dim=1) - 1).abs()).max())
            yield (sigma * temperature, log_p.diagonal()), residual

    where = "symmetric_alternating_projections"
    course = iterate(where, steps(), tol, max_iter, callback, on_failure, first=1)
    gamma, log_own = course.state
    state = dual.at(gamma, gamma * log_own, torch.zeros_like(gamma, dtype=torch.bool))
    dual.work = [float(k) for k in range(1, 1 + course.certificate["n_iter"])]
    dual.passes = float(len(dual.work))
    return course.give(affinity_at(dual, state, course))
