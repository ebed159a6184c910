"""The match widget of chapter 11 compares pairs as Python does."""

from itertools import combinations, permutations

import numpy as np
import pytest

WIDGET = "match"


def test_swaps_and_the_solution(widget):
    A, B = (np.array(widget.given(name)) for name in "ab")

    def carried() -> list[int]:
        return ["abcdefg".index(name[-1]) for name in widget.labels()]

    def disagreement(carried) -> float:
        return float(np.square(A[np.ix_(carried, carried)] - B).sum())

    def swapped(carried, one: int, two: int) -> list[int]:
        return [carried[{one: two, two: one}.get(k, k)] for k in range(7)]

    first = carried()
    for k, key in enumerate(("Enter", " ", "Enter")):
        widget.handles.nth((1, 4, 0)[k]).press(key)
    widget.handles.nth(5).click()
    now = carried()
    assert now == swapped(swapped(first, 1, 4), 0, 5)
    numbers = [float(widget.says(name)) for name in ("value", "share", "swaps")]
    wanted = [disagreement(now), disagreement(now) / disagreement(first), 2]
    assert numbers == pytest.approx(wanted, rel=1e-2)
    while not widget.says("did").startswith("No swap"):
        widget.press("Best swap")
    now = carried()
    trials = [disagreement(swapped(now, *pair)) for pair in combinations(range(7), 2)]
    assert min(trials) >= disagreement(now)
    widget.press("Solution")
    best = min(map(disagreement, map(list, permutations(range(7)))))
    assert float(widget.says("value")) == pytest.approx(best, abs=1)
    assert disagreement(carried()) == best
