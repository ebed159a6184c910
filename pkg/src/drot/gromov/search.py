"""Multistart and iterated local search over plans, and their result (Chapters 12 to 14).

A path is an iterator of states whose ``value`` falls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar

from torch import Tensor

from .._core.run import Course, OnFailure, certify
from .._core.saving import Saved
from .contraction import SAME, SMALL, PlanProblem, Unit

Iterates = Iterator[Any]  # the start first, no gain at the end
PlanCallback = Callable[[int, float, Tensor], bool | None]

_STEPS = 500  # that follow a trial, at most


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SemiRelaxedGW(Saved):
    """A plan whose row sums are given and whose column sums are learned."""

    plan: Tensor  #: (n, k) T, of total mass 1
    objective: float  #: E_L(T)
    residual: float  #: what ``tol`` bounded, the Frank-Wolfe gap over the scale of E_L
    n_iter: int  #: iterations of the best start
    converged: bool  #: whether the residual is within ``tol``
    trace: tuple[float, ...]  #: E_L at the best start and after each of its iterations
    ends: tuple[float, ...]  #: E_L reached from each start
    products: float  #: products of C with an (n, k) matrix, all starts together

    @property
    def weights(self) -> Tensor:
        """The learned weights, (k,), the column sums of the plan."""
        return self.plan.sum(dim=0)

    @property
    def labels(self) -> Tensor:
        """Where most of each point's mass goes, (n,); -1 of a point without mass."""
        return self.plan.argmax(dim=1).masked_fill(~self.plan.any(dim=1), -1)

    @property
    def n_starts(self) -> int:
        """How many starts were tried."""
        return len(self.ends)

    def __repr__(self) -> str:
        n, k = self.plan.shape
        return (
            f"{type(self).__name__}({n} x {k}, objective={self.objective:.6g}, "
            f"residual={self.residual:.1e}, n_iter={self.n_iter}, n_starts={self.n_starts})"
        )


Kind = TypeVar("Kind", bound=SemiRelaxedGW)


def in_turn(paths: Iterable[Callable[[Any], Iterates]], state: Any) -> Iterates:
    """One path after the other, each from where the one before it ended."""
    yield state
    for path in paths:
        for state in islice(path(state), 1, None):  # noqa: B020
            yield state


def end_of(path: Iterates, most: int) -> Any:
    """The last of at most so many states."""
    return deque(islice(path, most), maxlen=1)[0]


def lower_by(
    problem: PlanProblem,
    state: Any,
    trials: Callable[[Any], Iterator],
    moves: Callable[[Any], Iterates],
) -> Iterates:
    """Iterated local search: to where moves lead from a state's first lower trial, and again."""
    while True:
        yield state
        bound = state.value - SMALL * problem.scale
        for new in trials(state):
            if new.value < bound:
                break
        else:
            return
        state = end_of(moves(new), _STEPS)


@dataclass
class Track:
    """How far a path has come: its last state, and the value of each."""

    state: Any = None
    trace: list[float] = field(default_factory=list)

    @property
    def value(self) -> float:
        return self.trace[-1]


_VALUE = attrgetter("value")


@dataclass(frozen=True)
class Multistart:
    """The descent that ended lowest, among those from several starts."""

    course: Course  # of all
    state: Any
    residual: float
    trace: tuple[float, ...]  # value at its start and after each iteration
    ends: tuple[float, ...]  # the values reached from each start
    max_iter: int

    def certify(self, tol: float, on_failure: OnFailure) -> dict[str, Any]:
        """The certificate of this end, which is no failure where somebody chose it."""
        n_iter, on_failure = len(self.trace) - 1, "ignore" if self.course.stopped else on_failure
        spent = n_iter >= self.max_iter
        return certify(self.course.where, self.residual, n_iter, tol, on_failure, spent)

    def conclude(
        self, kind: type[Kind], tol: float, on_failure: OnFailure, objective: float,
        unit: Unit = SAME, **fields: Any,
    ) -> Kind:  # fmt: skip
        """The result: ``objective`` is exact at this end, ``unit`` that of the values."""
        last = self.state.value
        trace, ends = (unit.trace(x, last, objective) for x in (self.trace, self.ends))
        fields |= self.certify(tol, on_failure)
        return self.course.give(kind(objective=objective, trace=trace, ends=ends, **fields))


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
    ends: list[Track] = []
    searched: list[Track] = []

    def reach(track: Track, state: Any) -> None:
        track.state = state
        track.trace.append(state.value)
        course.tell(*report(state))

    with Course(where, callback) as course:
        for start in starts:
            ends.append(Track())
            for state in islice(descend(start), 1 + max_iter):
                reach(ends[-1], state)
        if search is not None:
            low = min(ends, key=_VALUE)
            searched.append(Track(low.state, [*low.trace]))
            for state in islice(search(low.state), 1, 2 + max_iter - len(low.trace)):
                reach(searched[0], state)
    ends = [end for end in ends if end.trace]  # one that was interrupted may have no state yet
    low = min([*searched, *ends], key=_VALUE)
    trace, reached = tuple(low.trace), tuple(map(_VALUE, ends))
    return Multistart(course, low.state, report(low.state)[0], trace, reached, max_iter)
