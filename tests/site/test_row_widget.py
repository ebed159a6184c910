"""The row widget of chapter 2 says what Python says: in its core, and in the page."""

import math

import drot
import numpy as np
import pytest

WIDGET = "row"
ROWS = {
    "tied for the cheapest": [0.0, 0.0, 0.5, 1.0, 1.0, 7.0],
    "far from zero": [5000.0, 5001.0, 5004.0, 5009.0, 5016.0],
    "large unit": [0.0, 1500.0, 1900.0, 2100.0, 2600.0, 3100.0, 3500.0],
    "small unit": [0.0, 1e-7, 3e-7, 8e-7],
    "negative": [-3.0, -1.0, 0.0, 2.0],
}


def package_row(costs: list[float], xi: float) -> dict:
    """The package's solution; a square cost whose rows are all this one."""
    found = drot.entropic_affinity(np.tile(costs, (len(costs), 1)), perplexity=xi, tol=1e-12)
    p = found.plan[0].numpy()
    return {"eps": float(found.eps[0]), "p": p, "cost": float(p @ costs)}


@pytest.mark.parametrize("name", ROWS)
def test_core_agrees_with_the_package(widget, name):
    costs = ROWS[name]
    spread, ties = max(costs) - min(costs), costs.count(min(costs))
    assert widget.core("ties", costs) == ties
    for share in (0.05, 0.6, 0.95):
        xi = ties + share * (len(costs) - ties)
        want = package_row(costs, xi)
        eps = widget.core("solve", costs, xi)
        assert eps == pytest.approx(want["eps"], rel=1e-9)
        p = widget.core("softmax", costs, eps)
        np.testing.assert_allclose(p, want["p"], rtol=0, atol=1e-9)
        assert widget.core("perplexity", p) == pytest.approx(xi, rel=1e-9)
        got = widget.core("expectedCost", p, costs)
        assert got == pytest.approx(want["cost"], rel=1e-9, abs=1e-8 * spread)


def assert_agrees(widget) -> dict[str, float]:
    """Numbers, bars and both sliders, against the package."""
    shown = widget.numbers()
    want = package_row(widget.given("costs"), shown["perplexity"])
    assert shown["eps"] == pytest.approx(want["eps"], rel=1e-7)
    assert shown["cost"] == pytest.approx(want["cost"], rel=1e-7)
    heights = widget.marks(".drot-probability", "height").ravel()
    np.testing.assert_allclose(heights / heights.sum(), want["p"], atol=1e-7)
    eps, xi = (float(s.input_value()) for s in widget.find("input").all())
    assert eps == pytest.approx(math.log10(shown["eps"]), abs=0.011)
    assert xi == pytest.approx(shown["perplexity"], abs=0.051)
    return shown


def test_begins_as_asked_and_slides(widget):
    """With a larger bandwidth, or perplexity, all three numbers are larger."""
    asked = widget.given("perplexity")
    assert assert_agrees(widget)["perplexity"] == pytest.approx(asked, rel=1e-9)
    for label, says in (("Bandwidth", "bandwidth "), ("Target perplexity", "perplexity ")):
        seen, text = widget.slide(label, assert_agrees)
        numbers = [[shown[name] for name in ("eps", "perplexity", "cost")] for shown in seen]
        assert (np.diff(numbers, axis=0) > 0).all() and text.startswith(says)
