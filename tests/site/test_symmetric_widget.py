"""The widget of chapter 4 says what Python says: its solver, its two graphs, its numbers."""

import re

import drot
import numpy as np
import pytest
from scipy.stats import entropy
from widget_page import (
    begin,
    chosen,
    labels_of,
    marks,
    points_of,
    readout,
    says,
    squared,
    table,
)

WIDGET = "symmetric"
NUMBERS = ("before", "after", "mass", "symmetric")

LINE = [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
TURN = np.exp(1j * np.pi / 4 * np.arange(8))
OCTAGON = [[0, 0], *np.stack([TURN.real, TURN.imag], axis=1).tolist()]


def cloud(seed: int, n: int, *, decades: float = 0, apart: float = 0) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 10 ** rng.uniform(-decades / 2, decades / 2, size=(n, 1))
    return (X + apart * rng.integers(0, 2, size=(n, 1))).tolist()


# ------------------------------------------------------------------------------------ the core


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
def test_core_agrees_with_the_package(core, points, xi, slack):
    cost = squared(points)
    got = core("symmetricEntropicAffinity", cost, xi)
    want = drot.symmetric_entropic_affinity(cost, perplexity=xi, tol=1e-11)
    assert got["residual"] <= 1e-8
    np.testing.assert_allclose(got["P"], want.plan.numpy(), rtol=0, atol=1e-6)
    assert got["slack"] == want.slack.tolist()
    if slack is not None:
        assert np.flatnonzero(got["slack"]).tolist() == slack
        assert (np.array(got["gamma"])[slack] == 0).all(), "slack to rounding only"


# ---------------------------------------------------------------------------------- in the page


def weights(page, panel: int, n: int) -> np.ndarray:
    """Off-diagonal entries that a panel draws, (n, n); each edge is as dark as its weight."""
    svg = page.locator(f"{page.box} svg").nth(panel)
    edges = svg.locator(".drot-edge")
    value, dark = marks(edges, "data-value", "stroke-opacity").T
    at = marks(svg.locator(".drot-point"), "cx", "cy")
    i, j = np.tril_indices(n, -1)
    ends = marks(edges, "x1", "y1", "x2", "y2")
    np.testing.assert_allclose(ends, np.hstack([at[i], at[j]]))
    plan = np.zeros((n, n))
    plan[i, j] = value
    np.testing.assert_allclose(dark * value.max(), value * dark.max(), rtol=0, atol=1e-12)
    assert 0 < dark.max() <= 1
    return plan + plan.T


def assert_agrees(page) -> dict[str, float]:
    """Both graphs and all numbers, against the package at the points that the page shows."""
    shown, points, i = readout(page), points_of(page), chosen(page)
    cost, xi = squared(points), shown["xi"]
    rows = drot.entropic_affinity(cost, perplexity=xi, tol=1e-12).plan
    halved = drot.symmetrize(rows).numpy()
    symmetric = drot.symmetric_entropic_affinity(cost, perplexity=xi, tol=1e-11)
    plan = symmetric.plan.numpy()

    for panel, want in enumerate((halved, plan)):
        off = want - np.diag(np.diag(want))
        np.testing.assert_allclose(weights(page, panel, len(cost)), off, rtol=0, atol=1e-6)
    assert shown["before"] == pytest.approx(xi, rel=1e-9)
    assert shown["after"] == pytest.approx(np.exp(entropy(halved[i])), rel=1e-6)
    assert shown["mass"] == pytest.approx(halved[i].sum(), rel=1e-6)
    assert shown["symmetric"] == pytest.approx(np.exp(entropy(plan[i])), rel=1e-5)

    slack, verdict = bool(symmetric.slack[i]), says(page, "verdict")
    assert verdict.startswith("Entropy slack" if slack else "Entropy saturated")
    assert not slack or f"perplexity {shown['symmetric']:.2f} > {xi:.2f}" in verdict
    assert f"point {i + 1} at ({points[i][0]:.2f}, {points[i][1]:.2f})" in says(page, "point")
    assert float(re.search(r"residual (\S+);", says(page, "solver"))[1]) <= 1e-8
    largest = max((one - np.diag(np.diag(one))).max() for one in (halved, plan))
    assert f"darkest edge {largest:.2f}" in says(page, "solver")
    return shown


@pytest.mark.parametrize(
    ("name", "n", "slack"),
    [("two triples", 6, [2, 5]), ("two clusters", 12, None), ("star", 9, [1])],
)
def test_starts_and_the_table(page, name, n, slack):
    begin(page, name)
    named = [i for i, name in enumerate(labels_of(page), 1) if ", slack" in name]
    assert named == slack if slack else named
    right = page.locator(f"{page.box} svg").last
    assert right.locator(".drot-more").count() == len(named), "a slack point is teal, and no other"
    right.locator('[data-point="1"]').click()
    shown, rows = assert_agrees(page), table(page)
    assert chosen(page) == 1 and len(rows) == n
    assert rows[1][:5] == ["2", *(f"{shown[name]:.2f}" for name in NUMBERS)]
