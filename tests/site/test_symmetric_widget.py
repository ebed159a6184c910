"""The widget of chapter 4 says what Python says: its solver, its two graphs, its numbers."""

import re

import drot
import numpy as np
import pytest
from plans import squares
from scipy.stats import entropy

WIDGET = "symmetric"
LINE = [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
OCTAGON = [[0, 0], *((np.cos(a), np.sin(a)) for a in np.pi / 4 * np.arange(8))]


def cloud(seed: int, n: int, *, decades: float = 0, apart: float = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 10 ** rng.uniform(-decades / 2, decades / 2, size=(n, 1))
    return X + apart * rng.integers(0, 2, size=(n, 1))


@pytest.mark.parametrize(
    ("points", "xi", "slack"),
    [
        (LINE, 1.5, [1]),
        (OCTAGON, 6.0, [0]),
        (OCTAGON, 1.5, []),
        ([[-1, 0], [0, 0], [0, 0], [1, 0]], 2.5, [1, 2]),  # its middle is doubled
        (cloud(1, 12, decades=2), 2.5, None),
        (cloud(5, 10, decades=2, apart=12), 6.0, None),
        (cloud(3, 8), 7.9, None),  # nearly even
        (cloud(4, 9), 1.06, None),  # nearly alone
    ],
)
def test_core_agrees_with_the_package(widget, points, xi, slack):
    cost = squares(points)
    got = widget.core("symmetricEntropicAffinity", cost, xi)
    want = drot.symmetric_entropic_affinity(cost, perplexity=xi, tol=1e-11)
    assert got["residual"] <= 1e-8
    np.testing.assert_allclose(got["P"], want.plan.numpy(), rtol=0, atol=1e-6)
    assert got["slack"] == want.slack.tolist()
    if slack is not None:
        assert np.flatnonzero(got["slack"]).tolist() == slack
        assert (np.array(got["gamma"])[slack] == 0).all(), "slack to rounding only"


def assert_drawn(widget, panel: int, plan: np.ndarray) -> None:
    """A line between the points of each pair, as dark as its weight."""
    svg = widget.find("svg").nth(panel)
    value, dark, *ends = widget.marks(
        svg.locator(".drot-edge"), "data-value", "stroke-opacity", "x1", "y1", "x2", "y2"
    ).T
    at = widget.marks(svg.locator(".drot-point"), "cx", "cy")
    i, j = np.tril_indices(len(plan), -1)
    np.testing.assert_allclose(np.transpose(ends), np.hstack([at[i], at[j]]))
    np.testing.assert_allclose(value, plan[i, j], rtol=0, atol=1e-6)
    np.testing.assert_allclose(dark * value.max(), value * dark.max(), rtol=0, atol=1e-12)
    assert 0 < dark.max() <= 1


def assert_agrees(widget) -> dict[str, float]:
    """Both graphs and all numbers, against the package at the points that the page shows."""
    shown, points, i = widget.numbers(), widget.points(), widget.chosen()
    cost, xi = squares(points), shown["xi"]
    halved = drot.symmetrize(drot.entropic_affinity(cost, perplexity=xi, tol=1e-12).plan).numpy()
    symmetric = drot.symmetric_entropic_affinity(cost, perplexity=xi, tol=1e-11)
    plan = symmetric.plan.numpy()
    assert_drawn(widget, 0, halved)
    assert_drawn(widget, 1, plan)
    assert shown["before"] == pytest.approx(xi, rel=1e-9)
    assert shown["after"] == pytest.approx(np.exp(entropy(halved[i])), rel=1e-6)
    assert shown["mass"] == pytest.approx(halved[i].sum(), rel=1e-6)
    assert shown["symmetric"] == pytest.approx(np.exp(entropy(plan[i])), rel=1e-5)

    slack, verdict = bool(symmetric.slack[i]), widget.says("verdict")
    assert verdict.startswith("Entropy slack" if slack else "Entropy saturated")
    assert not slack or f"perplexity {shown['symmetric']:.2f} > {xi:.2f}" in verdict
    assert f"point {i + 1} at ({points[i][0]:.2f}, {points[i][1]:.2f})" in widget.says("point")
    assert float(re.search(r"residual (\S+);", widget.says("solver"))[1]) <= 1e-8
    largest = max((one - np.diag(np.diag(one))).max() for one in (halved, plan))
    assert f"darkest edge {largest:.2f}" in widget.says("solver")
    return shown


def test_the_line_and_its_perplexity(widget):
    seen, text = widget.slide("Target perplexity", assert_agrees)
    numbers = np.array([[shown["xi"], shown["symmetric"]] for shown in seen])
    assert (np.diff(numbers, axis=0) > 0).all() and text == "perplexity 2.95"
    assert numbers[[0, -1], 0] == pytest.approx([1.05, 2.95])


@pytest.mark.parametrize(
    ("name", "n", "slack"),
    [("two triples", 6, [2, 5]), ("two clusters", 12, None), ("star", 9, [1])],
)
def test_starts_and_the_table(widget, name, n, slack):
    widget.press(name)
    named = [i for i, name in enumerate(widget.labels(), 1) if ", slack" in name]
    assert named == slack if slack else named
    right = widget.find("svg").last
    assert right.locator(".drot-more").count() == len(named), "a slack point is teal, and no other"
    right.locator('[data-point="1"]').click()
    shown, rows = assert_agrees(widget), widget.table()
    assert widget.chosen() == 1 and len(rows) == n
    told = [f"{shown[name]:.2f}" for name in ("before", "after", "mass", "symmetric")]
    assert rows[1][:5] == ["2", *told]
