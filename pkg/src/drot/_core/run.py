"""How every iterative solver reports what it achieved, or that it did not."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

import torch

from .checks import check_choice, check_count, check_positive

OnFailure = Literal["raise", "warn", "ignore"]
State = TypeVar("State")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


class NotConverged(RuntimeError):
    """An iteration budget ran out before the stated residual was reached."""


def read_limits(
    tol: float | None, max_iter: int, on_failure: OnFailure, dtype: torch.dtype
) -> tuple[float, int]:
    """Check a solver's limits before any work; ``tol`` is 1e-9 in float64 and 1e-4 in float32."""
    check_choice("on_failure", on_failure, get_args(OnFailure))
    tol = _TOLERANCE[dtype] if tol is None else check_positive("tol", tol)
    return tol, check_count("max_iter", max_iter, 1)


@dataclass(frozen=True)
class Course(Generic[State]):
    """Where an iteration ended, and how it got there."""

    state: State
    trace: tuple[float, ...]  # residual at the start and after each iteration
    n_iter: int
    converged: bool
    stopped: bool  # by the callback, or from the keyboard

    @property
    def residual(self) -> float:
        return self.trace[-1]

    @property
    def certificate(self) -> dict[str, Any]:
        """What every result says of how it was found."""
        names = ("residual", "n_iter", "trace", "converged")
        return {name: getattr(self, name) for name in names}


def iterate(
    where: str,
    steps: Iterable[tuple],
    tol: float,
    max_iter: int,
    callback: Callable[..., Any] | None = None,
    on_failure: OnFailure = "raise",
    *,
    first: int = 0,
) -> Course:
    """Follow ``steps`` until a residual is at most ``tol``, or ``max_iter`` steps are done.

    They yield ``(state, residual, *more)``, the start first, and ``callback(k, residual, *more)``
    hears of each; if it returns true, the iteration ends there, as it does at an interrupt from the
    keyboard. A chosen end is no failure. The start is number ``first``: 1 where it counts as one.
    """
    trace: list[float] = []
    state, stopped, number = None, False, first - 1
    try:
        for step in steps:
            state, residual, *more = step
            number += 1
            trace.append(residual)
            stopped = callback is not None and bool(callback(number, residual, *more))
            if stopped or residual <= tol or number >= max_iter:
                break
    except KeyboardInterrupt:
        if not trace:
            raise
        stopped = True
        text = f"{where}: interrupted after {number} iterations; this is what they gave"
        warnings.warn(text, RuntimeWarning, stacklevel=_outside())
    converged = settle(where, trace[-1], tol, number, "ignore" if stopped else on_failure)
    return Course(state, tuple(trace), number, converged, stopped)


def certificate(
    where: str, residual: float, trace: list[float], tol: float, on_failure: OnFailure
) -> dict[str, Any]:
    """What a result says of how it was found, where nothing was iterated on as a whole."""
    converged = settle(where, residual, tol, len(trace), on_failure)
    n_iter = len(trace)
    return dict(residual=residual, n_iter=n_iter, trace=tuple(trace), converged=converged)


def settle(where: str, residual: float, tol: float, n_iter: int, on_failure: OnFailure) -> bool:
    """Return whether ``residual <= tol``; otherwise fail as ``on_failure`` says.

    A residual that is not a number counts as a failure.
    """
    if residual <= tol:
        return True
    text = (
        f"{where}: the residual is {residual:.2e} after {n_iter} iterations, above tol={tol:.0e}. "
        "Raise max_iter, loosen tol, or pass on_failure='ignore' and read `.residual`."
    )
    if on_failure == "raise":
        raise NotConverged(text)
    if on_failure == "warn":
        warnings.warn(text, RuntimeWarning, stacklevel=_outside())
    return False


def _outside() -> int:
    """The stack level, seen from the caller, of the code that called this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
