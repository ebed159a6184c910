"""The widget of chapter 8: the density sees a point that moves, and no component."""

import drot
import numpy as np
import pytest

WIDGET = "drift"


def graph_of(widget) -> np.ndarray:
    """The edges that are drawn."""
    W = np.zeros((len(widget.labels()),) * 2)
    i, j = widget.marks(".drot-edge", "data-from", "data-to").astype(int).T
    W[i, j] = 1
    return W


def assert_agrees(widget) -> tuple[float, np.ndarray]:
    points, shown = widget.points(), widget.numbers()["density"]
    density = drot.graphs.mrf_log_density(points, graph_of(widget))
    assert shown == pytest.approx(density, abs=1e-9)
    return shown, points


def test_a_component_and_a_point(widget):
    """By keyboard; nothing leaves the panel, and a component keeps its shape at the border."""
    first, start = assert_agrees(widget)
    own = drot.connected_components(graph_of(widget)).labels.numpy() == 1
    widget.handles.nth(7).focus()
    for key, presses in (("ArrowUp", 12), ("ArrowRight", 30), ("ArrowDown", 45)):
        for _ in range(presses):
            widget.page.keyboard.press(key)
    shown, points = assert_agrees(widget)
    assert shown == pytest.approx(first, abs=1e-9) and "does not notice" in widget.says("verdict")
    assert (points[~own] == start[~own]).all() and np.abs(points).max() <= 3.6
    moves = points[own] - start[own]
    assert np.ptp(moves, axis=0).max() < 1e-9 and np.abs(moves).max() > 0.5
    widget.press("Move the point alone")
    for _ in range(8):
        widget.handles.nth(7).press("ArrowUp")
    assert assert_agrees(widget)[0] < first and "fallen by" in widget.says("verdict")
    widget.press("Back to the start")
    assert widget.numbers()["density"] == first and (widget.points() == start).all()
