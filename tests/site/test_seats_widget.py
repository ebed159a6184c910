"""The seats widget of chapter 12: the best seating for each number of seats, and its loss."""

import itertools

import drot
import numpy as np
import pytest

WIDGET = "seats"


def all_seatings(C: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each of the k^n ways to seat the points, and the fullest place."""
    n, k = len(C), len(D)
    ways = np.array(list(itertools.product(range(k), repeat=n)), dtype=np.int8)
    fullest = np.max([(ways == a).sum(axis=1) for a in range(k)], axis=0)
    pairs = itertools.combinations_with_replacement(range(n), 2)
    loss = sum((1 + (i < j)) * (C[i, j] - D[ways[:, i], ways[:, j]]) ** 2 for i, j in pairs)
    return loss / n**2, fullest


def test_the_mass_gathers(widget):
    """Each number of seats shows a best seating; with all of them it is the free problem's."""
    points, places = (np.array(widget.given("town")[key], float) for key in ("points", "places"))
    # inner products about the mean of the points
    C, D = (Z @ Z.T for Z in (points - points.mean(axis=0), places - points.mean(axis=0)))
    losses, fullest = all_seatings(C, D)
    slider = widget.slider("Seats in each place")
    slider.press("Home")
    first = widget.numbers()["value"]
    for seats in range(4, 9):
        shown = widget.numbers()
        labels = widget.marks(".drot-point", "data-place").ravel().astype(int)
        taken = np.bincount(labels, minlength=3)
        assert taken.max() <= seats == int(slider.input_value())
        seated = drot.gw_objective(C, D, np.eye(3)[labels] / len(C))
        assert shown["value"] == pytest.approx(float(seated), rel=1e-9)
        assert shown["value"] == pytest.approx(losses[fullest <= seats].min(), rel=1e-9)
        assert shown["share"] == pytest.approx(shown["value"] / first)
        words = widget.find(".drot-axis").all_text_contents()
        assert words == [f"place {a + 1} holds {taken[a]}" for a in range(3)]
        assert widget.find(".drot-probability").count() == len(C)
        slider.press("ArrowRight")
    widget.press("Set free")
    assert slider.input_value() == "12" and slider.get_attribute("aria-valuetext").endswith("limit")
    free = drot.semi_relaxed_gw(C, D)
    assert widget.numbers()["value"] == pytest.approx(free.objective, rel=1e-9)
    assert "7, 3, 2" in widget.says("finding")
