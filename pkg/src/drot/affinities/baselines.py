"""A slow way to the symmetric entropic affinity, to compare with: what the papers run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import as_positive, check_choice
from .._core.run import OnFailure, iterate
from .._core.threads import by_size
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
    check_choice("optimizer", optimizer, Optimizer)
    learning_rate = as_positive("learning_rate", learning_rate)
    dual, tol, max_iter = read_dual(cost, perplexity, tol, max_iter, on_failure)
    start = entropic_affinity(dual.cost, perplexity=perplexity, tol=1e-2, on_failure="ignore")
    dual.passes += start.passes
    none = torch.zeros_like(start.eps, dtype=torch.bool)  # no row is pinned
    unit = float(start.eps.mean())
    theta = (start.eps / unit).sqrt().requires_grad_()
    scaled = (start.lam / unit).requires_grad_()
    seen: list[DualState] = []  # evaluated since the last step

    def loss() -> Tensor:
        """Minus the dual function, in units of ``unit``, with its derivatives in place."""
        with torch.no_grad():
            state = dual.at(theta.square() * unit, scaled * unit, none)
            dual.measured(state)
            seen.append(state)
            theta.grad = -2 * theta * (dual.target - state.entropy)
            scaled.grad = state.row_sum - 1
            value, first = state.value, seen[0].value  # of this step
            fair = value >= min(0.0, first) and math.isfinite(state.residual)
            if optimizer == "lbfgs" and not fair:
                # PyTorch's line search steps back from a wall; it breaks at what is not finite, and
                # from what is far worse it interpolates a step of next to nothing
                theta.grad.zero_()
                scaled.grad.zero_()
                return scaled.new_tensor(torch.finfo(scaled.dtype).max ** 0.25)
        return scaled.new_tensor(-value / unit)

    engine: torch.optim.Optimizer
    if optimizer == "lbfgs":  # of which a step is several evaluations
        engine = torch.optim.LBFGS(
            [theta, scaled], history_size=10, line_search_fn="strong_wolfe",
            tolerance_grad=0, tolerance_change=0,
        )  # fmt: skip
    else:
        engine = torch.optim.Adam([theta, scaled], lr=learning_rate)

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
    state, found, course = iterate(where, steps(), tol, max_iter, callback, on_failure, first=1)
    least = replace(affinity_at(dual, state, found), residual=min(found["trace"]))
    return course.give(least)
