"""The widget of chapter 8: the density sees a point that moves, and no component."""

import drot
import numpy as np
import pytest
from widget_page import begin, marks, points_of, says

WIDGET = "drift"


def graph_of(page) -> np.ndarray:
    """The edges that are drawn."""
    n = len(points_of(page))
    W = np.zeros((n, n))
    i, j = marks(page.locator(f"{page.box} .drot-edge"), "data-from", "data-to").astype(int).T
    W[i, j] = 1
    return W


def assert_agrees(page) -> float:
    shown = float(marks(page.locator(f"{page.box} output b"), "data-value").item())
    density = drot.graphs.mrf_log_density(np.array(points_of(page)), graph_of(page))
    assert shown == pytest.approx(density, abs=1e-9)
    assert says(page, "density") == f"\N{MINUS SIGN}{-shown:.2f}"
    return shown


def test_a_component_and_a_point(page):
    """By keyboard; nothing leaves the panel, and a component keeps its shape at the border."""
    first, start = assert_agrees(page), np.array(points_of(page))
    own = drot.connected_components(graph_of(page)).labels.numpy() == 1
    point = page.get_by_role("button", name="point 8 ")
    for key, presses in (("ArrowUp", 12), ("ArrowRight", 40), ("ArrowDown", 60)):
        for _ in range(presses):
            point.press(key)
        shown, points = assert_agrees(page), np.array(points_of(page))
        assert shown == pytest.approx(first, abs=1e-9)
        assert (points[~own] == start[~own]).all() and np.abs(points).max() <= 3.6
        moves = points[own] - start[own]
        assert np.ptp(moves, axis=0).max() < 1e-9 and np.abs(moves).max() > 0.5
    assert "does not notice" in says(page, "verdict")
    begin(page, "Move the point alone")
    for _ in range(8):
        point.press("ArrowUp")
    assert assert_agrees(page) < first
    assert "fallen by" in says(page, "verdict")
    page.get_by_role("button", name="Back to the start").click()
    assert assert_agrees(page) == first and (np.array(points_of(page)) == start).all()
