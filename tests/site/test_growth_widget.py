"""The growth widget of chapter 6 says what Python says: forces and divergence of a square."""

import drot
import numpy as np
import pytest
import torch
from widget_page import squared

WIDGET = "growth"


def assert_agrees(widget, mode: str) -> tuple[float, float, float]:
    """Radius, KL per point and growth; what pulls each pair is plan less plan."""
    shown, P, loops = widget.numbers(), np.array(widget.given("plans")[mode]), mode == "on"
    square = shown["radius"] / 2**0.5 * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    K = 1 / (1 + squared(square)) - (0 if loops else np.eye(4))
    Q = P.sum() * K / K.sum()
    Z = torch.from_numpy(square)
    found = drot.SNELoss(P, "student", diagonal="keep" if loops else "drop").evaluate(Z)
    growth = -float((found.gradient * Z).sum()) / P.sum()
    assert shown["kl"] == pytest.approx(float(drot.kl_divergence(P, Q)) / 4, rel=1e-9)
    assert shown["growth"] == pytest.approx(growth, rel=1e-6, abs=1e-12)
    drawn = widget.marks("line[data-value]", "data-value")[:, 0]
    np.testing.assert_allclose(drawn, (P - Q)[np.tril_indices(4, -1)], atol=1e-9)
    assert ("enlarges" in widget.says("verdict")) == (growth > 0)
    return shown["radius"], shown["kl"], growth


def test_only_self_loops_give_a_size(widget):
    """Without them every larger square is better; with them one size is."""
    label = "Radius of the map"
    radii, kl, growth = zip(*widget.slide(label, lambda w: assert_agrees(w, "off"))[0], strict=True)
    assert (radii[0], radii[-1]) == pytest.approx((0.2, 8))
    assert (np.diff(kl) < 0).all() and min(growth) > 0
    widget.press("With self-loops")
    _, kl, growth = zip(*widget.slide(label, lambda w: assert_agrees(w, "on"))[0], strict=True)
    assert growth[0] > 0 > growth[-1] and kl[-1] > min(kl) < kl[0]
