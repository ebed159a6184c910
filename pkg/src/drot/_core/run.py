"""How every iterative solver reports what it achieved, or that it did not."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeVar, get_args

import torch

from .checks import as_count, as_positive, check_callback, check_choice

OnFailure = Literal["raise", "warn", "ignore"]

Result = TypeVar("Result")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

Iterates = Iterator[Any]  # states whose ``value`` falls: the start first, no gain at the end

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
    check_choice("on_failure", on_failure, get_args(OnFailure))
    tol = TOLERANCE[dtype] if tol is None else as_positive("tol", tol)
    return tol, as_count("max_iter", max_iter, 1)


@dataclass(frozen=True)
class Ended:
    """The last state of a run, and who ended it; :meth:`give` returns what was made of it."""

    state: Any
    stopped: bool  # by the callback, or from the keyboard
    interrupt: Interrupted | None  # from the keyboard

    def give(self, result: Result) -> Result:
        """The result; after an interrupt, inside the exception."""
        if self.interrupt is not None:
            self.interrupt.result = result
            raise self.interrupt
        return result


@dataclass(frozen=True)
class Course(Ended):
    """An iteration that has ended: its last state, and whether it converged."""

    certificate: dict[str, Any]  # its trace: the residual at the start and after each iteration


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
    keyboard, which :meth:`Ended.give` sends on. A chosen end is no failure. The start is number
    ``first``: 1 where it counts as one.
    """
    check_callback(callback)
    trace: list[float] = []
    state, stopped, interrupt, number = None, False, None, first - 1
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
        stopped, text = True, f"{where}: interrupted after {number} iterations; what they gave is"
        interrupt = Interrupted(f"{text} the `.result` of this exception")
    chosen, spent = "ignore" if stopped else on_failure, number >= max_iter
    found = certificate(where, trace[-1], number, tol, chosen, spent, trace)
    return Course(state, stopped, interrupt, found)


def in_turn(paths: Iterable[Callable[[Any], Iterates]], state: Any) -> Iterates:
    """One path after the other, each from where the one before it ended."""
    yield state
    for path in paths:
        for state in islice(path(state), 1, None):  # noqa: B020
            yield state


def end_of(path: Iterates, most: int) -> Any:
    """The last of at most so many states."""
    return deque(islice(path, most), maxlen=1)[0]


@dataclass(frozen=True)
class Multistart(Ended):
    """The descent that ended lowest, among those from several starts."""

    where: str
    residual: float
    trace: tuple[float, ...]  # value at its start and after each iteration
    ends: tuple[float, ...]  # the values reached from each start
    max_iter: int

    def certificate(self, tol: float, on_failure: OnFailure) -> dict[str, Any]:
        """That of this end, which is no failure where somebody chose it."""
        n_iter, on_failure = len(self.trace) - 1, "ignore" if self.stopped else on_failure
        spent = n_iter >= self.max_iter
        return certificate(self.where, self.residual, n_iter, tol, on_failure, spent)


def multistart(
    where: str,
    starts: Iterable,
    descend: Callable[[Any], Iterates],
    report: Callable[[Any], tuple],
    max_iter: int,
    callback: Callable[..., Any] | None = None,
    search: Callable[[Any], Iterates] | None = None,
) -> Multistart:
    """Follow ``descend(start)`` from each start, and ``search(state)`` from the lowest end.

    Both end where nothing is to be gained. ``report(state)`` is a residual, and what else
    ``callback(k, residual, ...)`` hears of each state, once, k counted on over the starts. If it
    returns true, or at an interrupt, the lowest end so far is kept.
    """
    ends: list[tuple[Any, list[float]]] = []  # of the descents, and the values up to there
    searched: list[tuple[Any, list[float]]] = []  # the same of the search

    def paths() -> Iterator[tuple]:
        for start in starts:
            yield ends, [], islice(descend(start), 1 + max_iter)
        if search is not None:
            state, trace = min(ends, key=_value)
            yield searched, [*trace], islice(search(state), 1, 2 + max_iter - len(trace))

    def steps() -> Iterator[tuple]:
        for kept, trace, path in paths():
            place = len(kept)
            for state in path:
                trace.append(state.value)
                kept[place:] = [(state, trace)]
                yield state, *report(state)

    run = iterate(where, steps(), -math.inf, sys.maxsize, callback, "ignore")
    state, trace = min([*searched, *ends], key=_value)
    reached, residual = tuple(map(_value, ends)), report(state)[0]
    return Multistart(
        state, run.stopped, run.interrupt, where, residual, tuple(trace), reached, max_iter
    )


def _value(end: tuple[Any, list[float]]) -> float:
    return end[1][-1]


def certificate(
    where: str, residual: float, n_iter: int, tol: float, on_failure: OnFailure, spent: bool = True,
    trace: Iterable[float] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The fields ``residual``, ``n_iter`` and ``converged`` (``residual <= tol``) of a result,
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
