"""The match widget of chapter 11 compares pairs as Python does: in its core, and in the page."""

from itertools import combinations

import numpy as np
import pytest
from widget_page import labels_of, says

WIDGET = "match"
PAIRS = list(combinations(range(7), 2))


def disagreement(A, B, carried) -> float:
    return float(np.square(A[np.ix_(carried, carried)] - B).sum())


def swapped(carried, one: int, two: int) -> list[int]:
    return [carried[{one: two, two: one}.get(k, k)] for k in range(7)]


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
