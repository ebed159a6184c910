"""The row widget of chapter 1 says what Python says: in its core, and in the page."""

from __future__ import annotations

import json
import math

import drot
import numpy as np
import pytest
from scipy.stats import entropy
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


def python_row(costs: list[float], eps: float) -> dict:
    """The same numbers from their definitions."""
    c = np.asarray(costs)
    p = np.exp(-(c - c.min()) / eps)
    p /= p.sum()
    return {"p": p, "perplexity": math.exp(entropy(p)), "cost": float(p @ c)}


def package_row(costs: list[float], xi: float) -> dict:
    """The package's solution; a square cost whose rows are all this one."""
    found = drot.entropic_affinity(np.tile(costs, (len(costs), 1)), perplexity=xi, tol=1e-12)
    return {"eps": float(found.eps[0]), "p": found.plan[0].numpy()}


@pytest.mark.parametrize("name", ROWS)
def test_core_agrees_with_python(core, name):
    costs = ROWS[name]
    spread, ties = max(costs) - min(costs), costs.count(min(costs))
    assert core("ties", costs) == ties
    for eps in (spread * factor for factor in (1e-3, 0.05, 0.2, 1.0, 30.0)):
        want = python_row(costs, eps)
        p = core("softmax", costs, eps)
        np.testing.assert_allclose(p, want["p"], rtol=1e-9, atol=1e-15)
        assert core("perplexity", p) == pytest.approx(want["perplexity"], rel=1e-9)
        got = core("expectedCost", p, costs)
        assert got == pytest.approx(want["cost"], rel=1e-9, abs=1e-12 * spread)
    for share in (0.05, 0.3, 0.6, 0.95):
        xi = ties + share * (len(costs) - ties)
        want = package_row(costs, xi)
        eps = core("solve", costs, xi)
        assert eps == pytest.approx(want["eps"], rel=1e-9)
        np.testing.assert_allclose(core("softmax", costs, eps), want["p"], rtol=0, atol=1e-9)


def costs_of(page) -> list[float]:
    return json.loads(page.locator(page.box).get_attribute("data-costs"))


def assert_agrees(page) -> dict[str, float]:
    shown = readout(page)
    want = python_row(costs_of(page), shown["eps"])
    assert shown["perplexity"] == pytest.approx(want["perplexity"], rel=1e-9)
    assert shown["cost"] == pytest.approx(want["cost"], rel=1e-9)
    heights = marks(page.locator(f"{page.box} .drot-probability"), "height").ravel()
    np.testing.assert_allclose(heights / heights.sum(), want["p"], atol=1e-9)
    return shown


def test_first_numbers(browser, site):
    """The chapter opens, without a server, at the bandwidth for the perplexity it names."""
    address = (site / f"book/{CHAPTERS[WIDGET]}.html").as_uri()
    page = open_page(browser, address, WIDGET)
    shown = assert_agrees(page)
    asked = float(page.locator(page.box).get_attribute("data-perplexity"))
    assert shown["perplexity"] == pytest.approx(asked, rel=1e-9)
    assert shown["eps"] == pytest.approx(package_row(costs_of(page), asked)["eps"], rel=1e-9)
    page.context.close()


def test_bandwidth_by_keyboard(page):
    slider = page.get_by_role("slider", name="Bandwidth")
    slider.focus()
    seen = [assert_agrees(page)]
    for key in ("ArrowRight", "ArrowRight", "PageUp", "End"):
        page.keyboard.press(key)
        seen.append(assert_agrees(page))
        for name in ("eps", "perplexity", "cost"):
            assert seen[-1][name] > seen[-2][name], key
        other = float(page.get_by_role("slider", name="Target perplexity").input_value())
        assert other == pytest.approx(seen[-1]["perplexity"], abs=0.051)
        assert slider.get_attribute("aria-valuetext").startswith("bandwidth ")
    page.keyboard.press("Home")
    assert assert_agrees(page)["perplexity"] < min(row["perplexity"] for row in seen)


def test_perplexity_by_keyboard(page):
    slider = page.get_by_role("slider", name="Target perplexity")
    slider.focus()
    for key in ("ArrowRight", "PageUp", "Home", "End", "ArrowLeft"):
        page.keyboard.press(key)
        asked = float(slider.input_value())
        shown = assert_agrees(page)
        assert shown["perplexity"] == pytest.approx(asked, rel=1e-9), key
        assert shown["eps"] == pytest.approx(package_row(costs_of(page), asked)["eps"], rel=1e-8)
        other = float(page.get_by_role("slider", name="Bandwidth").input_value())
        assert other == pytest.approx(math.log10(shown["eps"]), abs=0.011)
        assert slider.get_attribute("aria-valuetext") == f"perplexity {asked:.1f}"
