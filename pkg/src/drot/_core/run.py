"""How every iterative solver reports what it achieved, or that it did not."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import torch

from .checks import as_count, as_positive, check_callback, check_choice

OnFailure = Literal["raise", "warn", "ignore"]

Result = TypeVar("Result")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


class NotConverged(RuntimeError):
    """A run ended before the stated residual was reached."""


class Interrupted(KeyboardInterrupt):
    """An interrupt from the keyboard; ``result`` is the best that the run had found by then."""

    result: Any = None


def read_limits(
    tol: float | None, max_iter: int, on_failure: OnFailure, dtype: torch.dtype
) -> tuple[float, int]:
    """Check a solver's limits before any work; ``tol`` is 1e-9 in float64 and 1e-4 in float32."""
    check_choice("on_failure", on_failure, OnFailure)
    tol = TOLERANCE[dtype] if tol is None else as_positive("tol", tol)
    return tol, as_count("max_iter", max_iter, 1)


def says_stop(callback: Callable[..., Any], *what: Any) -> bool:
    """Whether a callback that hears of this ends the run."""
    told = callback(*what)
    if getattr(told, "ndim", 0):
        says = f"callback must return True to stop, or nothing; it returned a {type(told).__name__}"
        raise TypeError(says)
    return bool(told)


class Course:
    """An iteration as it goes, and who ended it.

    It is a ``with`` block: :meth:`tell` reports each iterate to the callback, which ends the run,
    and so leaves the block, if it returns true. An interrupt from the keyboard leaves it, too, and
    is raised again with the result by :meth:`give`; before the start it passes through. The start
    has the number ``first``: 1 where it counts as an iteration.
    """

    stopped = False  # by the callback, or from the keyboard
    interrupt: Interrupted | None = None  # from the keyboard

    def __init__(self, where: str, callback: Callable[..., Any] | None, *, first: int = 0):
        check_callback(callback)
        self.where, self.callback, self.first = where, callback, first
        self.number = first - 1  # of the last iterate

    def __enter__(self) -> Course:
        return self

    def tell(self, *what: Any) -> None:
        """One more iterate: ``callback(number, *what)`` hears of it, and ends the run if true."""
        self.number += 1
        if self.callback is not None and says_stop(self.callback, self.number, *what):
            raise _Stop

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is not None and issubclass(kind, KeyboardInterrupt) and self.number >= self.first:
            text = f"{self.where}: interrupted after {self.number} iterations; what they gave is"
            self.interrupt = Interrupted(f"{text} the `.result` of this exception")
        self.stopped = kind is _Stop or self.interrupt is not None
        return self.stopped

    def give(self, result: Result) -> Result:
        """The result; after an interrupt, inside the exception."""
        if self.interrupt is not None:
            self.interrupt.result = result
            raise self.interrupt
        return result


class _Stop(Exception):
    """A callback was true."""


def iterate(
    where: str,
    steps: Iterable[tuple],
    tol: float,
    max_iter: int,
    callback: Callable[..., Any] | None = None,
    on_failure: OnFailure = "raise",
    *,
    first: int = 0,
) -> tuple[Any, dict[str, Any], Course]:
    """Follow ``steps`` until a residual is at most ``tol``, or ``max_iter`` steps are done.

    They yield ``(state, residual, *more)``, the start first, and ``callback(k, residual, *more)``
    hears of each; if it returns true, the iteration ends there, as it does at an interrupt from the
    keyboard. A chosen end is no failure.

    Returns the last state, its certificate, whose trace has the residual of each state, and the
    course, which is to give the result.
    """
    state, trace = None, list[float]()
    with Course(where, callback, first=first) as course:
        for step in steps:
            state, residual, *more = step
            trace.append(residual)
            course.tell(residual, *more)
            if residual <= tol or course.number >= max_iter:
                break
    chosen, spent = "ignore" if course.stopped else on_failure, course.number >= max_iter
    return state, certify(where, trace[-1], course.number, tol, chosen, spent, trace), course


def certify(
    where: str, residual: float, n_iter: int, tol: float, on_failure: OnFailure, spent: bool = True,
    trace: Iterable[float] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A result's certificate: ``residual``, ``n_iter`` and ``converged`` (``residual <= tol``),
    and a ``trace``; a run that did not converge fails as ``on_failure`` says.

    A residual that is not a number counts as a failure; ``spent`` says that the budget ended it.
    """
    found: dict[str, Any] = dict(residual=residual, n_iter=n_iter, converged=residual <= tol)
    if trace is not None:
        found["trace"] = tuple(trace)
    if found["converged"]:
        return found
    text = (
        f"{where}: the residual is {residual:.2e} after {n_iter} iterations, above tol={tol:.0e}"
        f"{'. Raise max_iter, loosen' if spent else ', and no step gains any more. Loosen'} tol, "
        "or pass on_failure='ignore' and read `.residual`."
    )
    if on_failure == "raise":
        raise NotConverged(text)
    if on_failure == "warn":
        warnings.warn(text, RuntimeWarning, stacklevel=outside())
    return found


def outside() -> int:
    """The stack level, seen from the caller, of the code that called this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
