"""The row widget of chapter 2 says what Python says: in its core, and in the page."""

import json
import math

import drot
import numpy as np
import pytest
from widget_page import CHAPTERS, COSTS, marks, open_page, readout

WIDGET = "row"
ROWS = {
    "spread": COSTS,
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
def test_core_agrees_with_the_package(core, name):
    costs = ROWS[name]
    spread, ties = max(costs) - min(costs), costs.count(min(costs))
    assert core("ties", costs) == ties
    for share in (0.05, 0.3, 0.6, 0.95):
        xi = ties + share * (len(costs) - ties)
        want = package_row(costs, xi)
        eps = core("solve", costs, xi)
        assert eps == pytest.approx(want["eps"], rel=1e-9)
        p = core("softmax", costs, eps)
        np.testing.assert_allclose(p, want["p"], rtol=0, atol=1e-9)
        assert core("perplexity", p) == pytest.approx(xi, rel=1e-9)
        got = core("expectedCost", p, costs)
        assert got == pytest.approx(want["cost"], rel=1e-9, abs=1e-8 * spread)


def costs_of(page) -> list[float]:
    return json.loads(page.locator(page.box).get_attribute("data-costs"))


def assert_agrees(page) -> dict[str, float]:
    """Numbers, bars and both sliders, against the package."""
    shown = readout(page)
    want = package_row(costs_of(page), shown["perplexity"])
    assert shown["eps"] == pytest.approx(want["eps"], rel=1e-7)
    assert shown["cost"] == pytest.approx(want["cost"], rel=1e-7)
    heights = marks(page.locator(f"{page.box} .drot-probability"), "height").ravel()
    np.testing.assert_allclose(heights / heights.sum(), want["p"], atol=1e-7)
    eps, xi = (float(s.input_value()) for s in page.get_by_role("slider").all())
    assert eps == pytest.approx(math.log10(shown["eps"]), abs=0.011)
    assert xi == pytest.approx(shown["perplexity"], abs=0.051)
    return shown


def test_first_numbers(browser, site):
    """The chapter opens, without a server, at the bandwidth for the perplexity it names."""
    address = (site / f"book/{CHAPTERS[WIDGET]}.html").as_uri()
    page = open_page(browser, address, WIDGET)
    shown = assert_agrees(page)
    asked = float(page.locator(page.box).get_attribute("data-perplexity"))
    assert shown["perplexity"] == pytest.approx(asked, rel=1e-9)
    page.context.close()
