"""Multistart and iterated local search over plans, and their result (Chapters 12 to 14).

A path is an iterator of states whose ``value`` falls. Of a state nothing else is read here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor

from .._core.run import Course, OnFailure, certify
from .._core.saving import Saved
from .contraction import SAME, SMALL, PlanProblem, StateT, Unit


class Valued(Protocol):
    """What paths go through."""

    @property
    def value(self) -> float: ...


V = TypeVar("V", bound=Valued)
Iterates = Iterator[V]  # a path: the start first, no gain at the end
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
    values: tuple[float, ...]  #: E_L at the best start and after each of its iterations
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


def in_turn(paths: Iterable[Callable[[V], Iterates[V]]], state: V) -> Iterates[V]:
    """One path after the other, each from where the one before it ended."""
    yield state
    for path in paths:
        for state in islice(path(state), 1, None):  # noqa: B020
            yield state


def end_of(path: Iterates[V], most: int) -> V:
    """The last of at most so many states."""
    return deque(islice(path, most), maxlen=1)[0]


def lower_by(
    problem: PlanProblem[StateT], state: StateT,
    trials: Callable[[StateT], Iterator[StateT]], moves: Callable[[StateT], Iterates[StateT]],
) -> Iterates[StateT]:  # fmt: skip
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
    values: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Multistart(Generic[V]):
    """The descent that ended lowest, among those from several starts."""

    course: Course  # of all
    state: V
    residual: float
    values: tuple[float, ...]  # at its start and after each iteration
    ends: tuple[float, ...]  # the values reached from each start
    max_iter: int

    def certify(self, tol: float, on_failure: OnFailure) -> dict[str, Any]:
        """The certificate of this end, which is no failure where somebody chose it."""
        n_iter, on_failure = len(self.values) - 1, "ignore" if self.course.stopped else on_failure
        spent = n_iter >= self.max_iter
        return certify(self.course.where, self.residual, n_iter, tol, on_failure, spent)

    def conclude(
        self, kind: type[Kind], tol: float, on_failure: OnFailure, objective: float,
        unit: Unit = SAME, **fields: Any,
    ) -> Kind:  # fmt: skip
        """The result: ``objective`` is exact at this end, ``unit`` that of the values."""
        last = self.state.value
        values, ends = (unit.objectives(x, last, objective) for x in (self.values, self.ends))
        fields |= self.certify(tol, on_failure)
        return self.course.give(kind(objective=objective, values=values, ends=ends, **fields))


def multistart(
    where: str, starts: Iterable, descend: Callable[[Any], Iterates[V]],
    report: Callable[[V], tuple], max_iter: int, callback: Callable[..., Any] | None = None,
    search: Sequence[Callable[[V], Iterates[V]]] = (),
) -> Multistart[V]:  # fmt: skip
    """Follow ``descend(start)`` from each start, and from the lowest end the paths of ``search``.

    All end where nothing is to be gained. ``report(state)`` is a residual, and what else
    ``callback(k, residual, ...)`` hears of each state, once, k counted on over the starts. If it
    returns true, or at an interrupt, the lowest end so far is kept.
    """
    ends: list[Track] = []
    searched: list[Track] = []

    def reach(track: Track, state: V) -> None:
        track.state = state
        track.values.append(state.value)
        course.tell(*report(state))

    with Course(where, callback) as course:
        for start in starts:
            ends.append(Track())
            for state in islice(descend(start), 1 + max_iter):
                reach(ends[-1], state)
        low = min(ends, key=lambda end: end.values[-1])
        searched.append(track := Track(low.state, [*low.values]))
        for path in search:
            for state in islice(path(track.state), 1, 2 + max_iter - len(track.values)):
                reach(track, state)
    ends = [end for end in ends if end.values]  # one that was interrupted may have no state yet
    low = min([*searched, *ends], key=lambda end: end.values[-1])
    values, reached = tuple(low.values), tuple(end.values[-1] for end in ends)
    return Multistart(course, low.state, report(low.state)[0], values, reached, max_iter)
