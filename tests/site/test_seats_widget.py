"""The seats widget of chapter 12: the best seating for each number of seats, and its loss."""

import itertools
import json

import drot
import numpy as np
import pytest
from widget_page import marks, readout, says

WIDGET = "seats"


def similarities(points, places) -> tuple[np.ndarray, np.ndarray]:
    """Inner products about the mean of the points."""
    X, Z = (np.asarray(x, dtype=float) - np.mean(points, axis=0) for x in (points, places))
    return X @ X.T, Z @ Z.T


def loss(C, D, labels) -> float:
    k = len(D)
    return float(drot.gw_objective(C, D, np.eye(k)[labels] / len(C)))


def least(C, D, seats: int) -> float:
    """Over all k^n ways to seat the points."""
    n, k = len(C), len(D)
    labels = np.array(list(itertools.product(range(k), repeat=n)), dtype=np.int8)
    fits = (labels[:, :, None] == np.arange(k)).sum(axis=1).max(axis=1) <= seats
    labels = labels[fits]
    total = np.zeros(len(labels))
    for i, j in itertools.product(range(n), repeat=2):
        total += (C[i, j] - D[labels[:, i], labels[:, j]]) ** 2
    return float(total.min()) / n**2


def test_the_mass_gathers(page):
    """Each number of seats shows a best seating; with all of them it is the free problem's."""
    given = json.loads(page.locator(page.box).get_attribute("data-town"))
    C, D = similarities(given["points"], given["places"])
    slider = page.get_by_role("slider", name="Seats in each place")
    slider.focus()
    page.keyboard.press("Home")
    first, before = readout(page)["value"], np.inf
    for seats in (4, 5, 6, 7, 8):
        shown = readout(page)
        discs = page.locator(f"{page.box} .drot-point")
        labels = marks(discs, "data-place").ravel().astype(int)
        taken = np.bincount(labels, minlength=3)
        assert taken.max() <= seats and int(slider.input_value()) == seats
        assert shown["value"] == pytest.approx(loss(C, D, labels), rel=1e-9)
        assert shown["value"] == pytest.approx(least(C, D, seats), rel=1e-9)
        assert shown["share"] == pytest.approx(shown["value"] / first)
        assert shown["value"] <= before
        before = shown["value"]
        words = page.locator(f"{page.box} .drot-axis").all_text_contents()
        assert words == [f"place {a + 1} holds {taken[a]}" for a in range(3)]
        assert page.locator(f"{page.box} .drot-probability").count() == len(C)
        page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Set free").click()
    assert slider.input_value() == "12" and slider.get_attribute("aria-valuetext").endswith("limit")
    free = drot.semi_relaxed_gw(C, D)
    assert readout(page)["value"] == pytest.approx(free.objective, rel=1e-9)
    assert "7, 3, 2" in says(page, "finding")
