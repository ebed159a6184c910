"""The widget of chapter 5 says what Python says: two plans of a picture, its masses and prices."""

import drot
import numpy as np
import pytest
from widget_page import begin, marks, points_of, readout, squared, table

WIDGET = "balance"


def plans(points) -> tuple[np.ndarray, np.ndarray]:
    """Divided by its sum, and balanced."""
    cost = squared(points)
    K = np.exp(-cost)
    return len(K) * K / K.sum(), drot.doubly_stochastic_affinity(
        cost, bandwidth=1.0, tol=1e-12
    ).plan.numpy()


def assert_agrees(page, on: bool) -> dict[str, float]:
    points = points_of(page)
    Q, shown = plans(points)[on], readout(page)
    mass = Q.sum(axis=1)
    assert shown["least"] == pytest.approx(mass.min(), abs=1e-8)
    assert shown["most"] == pytest.approx(mass.max(), abs=1e-8)
    drawn = marks(page.locator(f"{page.box} .drot-edge"), "data-value")[:, 0]
    np.testing.assert_allclose(drawn, Q[np.tril_indices(len(Q), -1)], atol=1e-8)
    told = [float(line[1]) for line in table(page)]
    np.testing.assert_allclose(told, mass, atol=0.0051)
    return shown


def test_balance_makes_up_for_the_crowd(page):
    """Off, the middle has more than one unit, and more when a point joins it; on, one for all."""
    begin(page, "Balance off")
    first = assert_agrees(page, on=False)
    assert first["mass"] > 1.1 and first["least"] < 0.9
    page.locator(f"{page.box} svg [role=button]").nth(5).focus()
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    page.locator(f"{page.box} svg [role=button]").nth(0).focus()
    assert assert_agrees(page, on=False)["mass"] != first["mass"]
    begin(page, "Balance on")
    now = assert_agrees(page, on=True)
    assert now["least"] == pytest.approx(1, abs=1e-9) == now["most"]
