"""The growth widget of chapter 6 says what Python says: forces and divergence of a square."""

import json

import drot
import numpy as np
import pytest
import torch
from widget_page import begin, marks, readout, says, squared

WIDGET = "growth"


def measured(P, points, loops: bool) -> tuple[np.ndarray, float, float]:
    """Plan of the map, KL per point, and growth, by the package."""
    P, Z = np.asarray(P), torch.tensor(points, dtype=torch.float64)
    K = 1 / (1 + squared(points)) - (0 if loops else np.eye(len(P)))
    Q = P.sum() * K / K.sum()
    found = drot.SNELoss(P, "student", diagonal="keep" if loops else "drop").evaluate(Z)
    growth = -float((found.gradient * Z).sum()) / P.sum()
    return Q, float(drot.kl_divergence(P, Q)) / len(P), growth


def square(radius: float) -> list[list[float]]:
    a = radius / 2**0.5
    return [[-a, -a], [-a, a], [a, -a], [a, a]]


def test_only_self_loops_give_a_size(page):
    """Without them every larger square is better; with them one size is."""
    plans = json.loads(page.locator(page.box).get_attribute("data-plans"))
    slider = page.get_by_role("slider", name="Radius of the map")
    seen = {}
    for mode, name in (("off", "Without self-loops"), ("on", "With self-loops")):
        begin(page, name)
        slider.focus()
        for key in ("Home", *["PageUp"] * 5, "End"):
            page.keyboard.press(key)
            shown = readout(page)
            Q, kl, growth = measured(plans[mode], square(shown["radius"]), mode == "on")
            assert shown["kl"] == pytest.approx(kl, rel=1e-9)
            assert shown["growth"] == pytest.approx(growth, rel=1e-6, abs=1e-12)
            drawn = marks(page.locator(f"{page.box} line[data-value]"), "data-value")[:, 0]
            pull = (np.asarray(plans[mode]) - Q)[np.tril_indices(4, -1)]
            np.testing.assert_allclose(drawn, pull, atol=1e-9)
            assert ("enlarges" in says(page, "verdict")) == (growth > 0)
            seen.setdefault(mode, []).append((shown["radius"], kl, growth))
    radii, kl, growth = np.array(seen["off"]).T
    assert (radii[0], radii[-1]) == pytest.approx((0.2, 8))
    assert (np.diff(kl) < 0).all() and (growth > 0).all()
    _, kl, growth = np.array(seen["on"]).T
    assert growth[0] > 0 > growth[-1] and kl[-1] > kl.min() < kl[0]
