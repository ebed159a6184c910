"""The row widget of chapter 1 says what Python says: in Node, in the page, from a file."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import drot
import numpy as np
import pytest
import widget_page

ROOT = Path(__file__).resolve().parents[2]
PAGE = "book/01_entropic_affinity.html"
BOX = '[data-widget="row"]'
node = partial(widget_page.node, core="row_core.js")

ROWS = {
    "spread": [0.0, 1.1, 1.6, 2.0, 2.3, 3.1, 4.0, 4.4, 5.8, 7.2, 8.5, 9.9],
    "tied for the cheapest": [0.0, 0.0, 0.5, 1.0, 1.0, 7.0],
    "far from zero": [5000.0, 5001.0, 5004.0, 5009.0, 5016.0],
    "large unit": [0.0, 1500.0, 1900.0, 2100.0, 2600.0, 3100.0, 3500.0],
    "small unit": [0.0, 1e-7, 3e-7, 8e-7],
    "negative": [-3.0, -1.0, 0.0, 2.0],
}

# Reads {costs, eps, xi} and answers with what the page would show.
PROGRAM = """
const core = require(process.argv[1]);
const { costs, eps, xi } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const row = (e) => {
  const p = core.softmax(costs, e);
  return { eps: e, p, perplexity: core.perplexity(p), cost: core.expectedCost(p, costs) };
};
process.stdout.write(JSON.stringify({
  ties: core.ties(costs), given: eps.map(row), solved: xi.map((x) => row(core.solve(costs, x))),
}));
"""


def python_row(costs: list[float], eps: float) -> dict:
    """The same numbers from their definitions."""
    c = np.asarray(costs)
    p = np.exp(-(c - c.min()) / eps)
    p /= p.sum()
    kept = p[p > 0]
    shannon = -float(np.sum(kept * np.log(kept)))
    return {"p": p, "perplexity": math.exp(shannon), "cost": float(p @ c)}


def package_row(costs: list[float], xi: float) -> dict:
    """The package's solution; a square cost whose rows are all this one."""
    found = drot.entropic_affinity(np.tile(costs, (len(costs), 1)), perplexity=xi, tol=1e-12)
    p = found.plan[0].numpy()
    return {"eps": float(found.eps[0]), "p": p, "cost": float(p @ np.asarray(costs))}


@pytest.mark.parametrize("name", ROWS)
def test_node_agrees_with_python(name):
    costs = ROWS[name]
    spread = max(costs) - min(costs)
    ties = costs.count(min(costs))
    eps = [spread * factor for factor in (1e-3, 0.05, 0.2, 1.0, 30.0)]
    xi = [ties + share * (len(costs) - ties) for share in (0.05, 0.3, 0.6, 0.95)]
    answer = json.loads(node(PROGRAM, {"costs": costs, "eps": eps, "xi": xi}))

    assert answer["ties"] == ties
    for value, got in zip(eps, answer["given"], strict=True):
        want = python_row(costs, value)
        np.testing.assert_allclose(got["p"], want["p"], rtol=1e-9, atol=1e-15)
        assert got["perplexity"] == pytest.approx(want["perplexity"], rel=1e-9)
        assert got["cost"] == pytest.approx(want["cost"], rel=1e-9, abs=1e-12 * spread)
    for value, got in zip(xi, answer["solved"], strict=True):
        want = package_row(costs, value)
        assert got["perplexity"] == pytest.approx(value, rel=1e-9)
        assert got["eps"] == pytest.approx(want["eps"], rel=1e-9)
        np.testing.assert_allclose(got["p"], want["p"], rtol=0, atol=1e-9)
        assert got["cost"] == pytest.approx(want["cost"], rel=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        "core.solve([0, 0, 1], 2)",  # two ties: perplexity 2 only in the limit
        "core.solve([0, 1, 2], 3)",
        "core.solve([1, 1], 1.5)",
        "core.solve([0, 1, 2], NaN)",
        "core.softmax([0, 1], 0)",
        "core.softmax([0, NaN], 1)",
        "core.softmax([0], 1)",
        "core.softmax('0, 1', 1)",
    ],
)
def test_node_refuses(call):
    program = (
        "const core = require(process.argv[1]); let said = 'nothing';"
        f"try {{ {call}; }} catch (error) {{ said = error.message; }} process.stdout.write(said);"
    )
    said = node(program, None)
    assert said.startswith(("perplexity must", "eps must", "costs must")), said


# ---------------------------------------------------------------------------------- in the page


def readout(page) -> dict[str, float]:
    """What the page holds to all digits, after a look at what it prints."""
    numbers = {}
    for name in ("eps", "perplexity", "cost"):
        item = page.locator(f'{BOX} output [data-name="{name}"]').first
        numbers[name] = float(item.get_attribute("data-value"))
        assert float(item.inner_text()) == pytest.approx(numbers[name], rel=6e-3)
    return numbers


def costs_of(page) -> list[float]:
    return json.loads(page.locator(BOX).first.get_attribute("data-costs"))


def assert_agrees(page) -> dict[str, float]:
    shown = readout(page)
    want = python_row(costs_of(page), shown["eps"])
    assert shown["perplexity"] == pytest.approx(want["perplexity"], rel=1e-9)
    assert shown["cost"] == pytest.approx(want["cost"], rel=1e-9)
    heights = page.locator(f"{BOX} .drot-probability").evaluate_all(
        "bars => bars.map(bar => Number(bar.getAttribute('height')))"
    )
    np.testing.assert_allclose(np.array(heights) / np.sum(heights), want["p"], atol=1e-9)
    return shown


@pytest.fixture
def page(browser, site_url):
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(site_url + PAGE)
    page.locator(f"{BOX} output").first.wait_for()
    yield page
    context.close()


def test_first_numbers(page):
    """The page opens at the package's bandwidth for the perplexity it names."""
    shown = assert_agrees(page)
    asked = float(page.locator(BOX).first.get_attribute("data-perplexity"))
    want = package_row(costs_of(page), asked)
    assert shown["perplexity"] == pytest.approx(asked, rel=1e-9)
    assert shown["eps"] == pytest.approx(want["eps"], rel=1e-9)
    assert shown["cost"] == pytest.approx(want["cost"], rel=1e-9)


def test_bandwidth_by_keyboard(page):
    slider = page.get_by_role("slider", name="Bandwidth")
    slider.focus()
    seen = [assert_agrees(page)]
    for key in ("ArrowRight", "ArrowRight", "PageUp", "End"):
        page.keyboard.press(key)
        seen.append(assert_agrees(page))
        assert seen[-1]["eps"] > seen[-2]["eps"], key
        assert seen[-1]["perplexity"] > seen[-2]["perplexity"], key
        assert seen[-1]["cost"] > seen[-2]["cost"], key
    page.keyboard.press("Home")
    least = assert_agrees(page)
    assert least["perplexity"] < min(row["perplexity"] for row in seen)
    assert "bandwidth" in slider.get_attribute("aria-valuetext")


def test_perplexity_by_keyboard(page):
    slider = page.get_by_role("slider", name="Target perplexity")
    slider.focus()
    for key in ("ArrowRight", "PageUp", "Home", "End", "ArrowLeft"):
        page.keyboard.press(key)
        asked = float(slider.input_value())
        shown = assert_agrees(page)
        want = package_row(costs_of(page), asked)
        assert shown["perplexity"] == pytest.approx(asked, rel=1e-9), key
        assert shown["eps"] == pytest.approx(want["eps"], rel=1e-8), key


def test_sliders_follow_each_other(page):
    by_eps, by_xi = (
        page.get_by_role("slider", name="Bandwidth"),
        page.get_by_role("slider", name="Target perplexity"),
    )
    by_eps.focus()
    page.keyboard.press("PageUp")
    assert float(by_xi.input_value()) == pytest.approx(readout(page)["perplexity"], abs=0.051)
    by_xi.focus()
    page.keyboard.press("PageDown")
    assert float(by_eps.input_value()) == pytest.approx(math.log10(readout(page)["eps"]), abs=0.011)


def test_announced_labelled_and_still(page):
    output = page.locator(f"{BOX} output").first
    assert output.get_attribute("aria-live") == "polite"
    for one in page.locator(f"{BOX} input").all():
        assert page.locator(f'label[for="{one.get_attribute("id")}"]').inner_text().strip()
        assert one.get_attribute("id") in output.get_attribute("for").split()
    moving = page.locator(f"{BOX} .drot-probability").first.evaluate(
        "bar => getComputedStyle(bar).transitionDuration"
    )
    assert set(moving.split(", ")) == {"0s"}, "reduced motion was asked for"


def test_without_javascript(browser, site_url):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site_url + PAGE)
    assert page.locator(f"{BOX} .drot-finding").first.is_visible()
    assert len(page.locator(f"{BOX} .drot-finding").first.inner_text().split()) > 8
    assert page.locator(f"{BOX} input").count() == 0
    context.close()


def test_from_a_file(browser, site):
    """The built folder works without a server."""
    page = browser.new_page()
    page.goto((site / PAGE).as_uri(), wait_until="domcontentloaded")
    page.locator(f"{BOX} output").first.wait_for()
    assert_agrees(page)
    page.close()
