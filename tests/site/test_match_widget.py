"""The match widget of chapter 11 compares pairs as Python does: in its core, and in the page."""

from itertools import combinations, permutations

import numpy as np
import pytest
from widget_page import labels_of, says

WIDGET = "match"
PAIRS = list(combinations(range(7), 2))


def disagreement(A, B, carried) -> float:
    return float(np.square(A[np.ix_(carried, carried)] - B).sum())


def swapped(carried, one: int, two: int) -> list[int]:
    return [carried[{one: two, two: one}.get(k, k)] for k in range(7)]


@pytest.mark.parametrize("seed", range(4))
def test_core_agrees_with_numpy(core, seed):
    A, B = np.random.default_rng(seed).random((2, 7, 7))
    carried = core("draw", 7, seed)
    assert sorted(carried) == list(range(7)) and carried != core("draw", 7, seed + 1)
    now = disagreement(A, B, carried)
    assert core("disagreement", A, B, carried) == pytest.approx(now, rel=1e-12)
    assert core("swapped", carried, [2, 5]) == swapped(carried, 2, 5)
    after = sorted((disagreement(A, B, swapped(carried, *pair)), pair) for pair in PAIRS)
    lower = [list(pair) for value, pair in after if value < now]
    assert [one["pair"] for one in core("lowering", A, B, carried)] == lower
    least = min(disagreement(A, B, s) for s in permutations(range(7)))
    assert core("solution", A, B)["value"] == pytest.approx(least, rel=1e-12)


def test_swaps_and_the_solution(page, match):
    A, B, sigma = (match[1][name] for name in ("A", "B", "sigma"))
    dots = page.locator(f"{page.box} svg [role=button]")
    carried = lambda: ["abcdefg".index(name[-1]) for name in labels_of(page)]  # noqa: E731
    value = lambda: disagreement(A, B, carried())  # noqa: E731
    first, start = carried(), value()
    dots.nth(1).press("Enter")
    dots.nth(4).press(" ")
    dots.nth(0).click()
    dots.nth(5).click()
    assert carried() == swapped(swapped(first, 1, 4), 0, 5)
    numbers = [float(says(page, name)) for name in ("value", "share", "swaps")]
    assert numbers == pytest.approx([value(), value() / start, 2], rel=1e-2)
    while not says(page, "did").startswith("No swap"):
        page.get_by_role("button", name="Best swap").click()
    assert min(disagreement(A, B, swapped(carried(), *pair)) for pair in PAIRS) >= value()
    page.get_by_role("button", name="Solution").click()
    assert float(says(page, "value")) == pytest.approx(match[1]["disagreement"](sigma), abs=1)
