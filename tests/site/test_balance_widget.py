"""The widget of chapter 5 says what Python says: two plans of a picture, and its masses."""

import drot
import numpy as np
import pytest
from widget_page import squared

WIDGET = "balance"


def assert_agrees(widget, on: bool) -> dict[str, float]:
    """Divided by its sum, or balanced."""
    cost, shown = squared(widget.points()), widget.numbers()
    K = np.exp(-cost)
    Q = len(K) * K / K.sum()
    if on:
        Q = drot.doubly_stochastic_affinity(cost, bandwidth=1.0, tol=1e-12).plan.numpy()
    mass = Q.sum(axis=1)
    extremes = [shown["least"], shown["most"]]
    assert extremes == pytest.approx([mass.min(), mass.max()], abs=1e-8)
    drawn = widget.marks(".drot-edge", "data-value")[:, 0]
    np.testing.assert_allclose(drawn, Q[np.tril_indices(len(Q), -1)], atol=1e-8)
    told = [float(line[1]) for line in widget.table()]
    np.testing.assert_allclose(told, mass, atol=0.0051)
    return shown


def test_balance_makes_up_for_the_crowd(widget):
    """Off, the middle has more than one unit, and more when a point joins it; on, one for all."""
    first = assert_agrees(widget, on=False)
    assert first["mass"] > 1.1 and first["least"] < 0.9
    for _ in range(8):
        widget.handles.nth(5).press("ArrowLeft")
    widget.handles.nth(0).focus()
    assert assert_agrees(widget, on=False)["mass"] != first["mass"]
    widget.press("Balance on")
    now = assert_agrees(widget, on=True)
    assert now["least"] == pytest.approx(1, abs=1e-9) == now["most"]
