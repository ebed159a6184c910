"""The widget of chapter 9 says what Python says: its three laws, its draws, its numbers."""

import drot
import numpy as np
import pytest
import torch
from widget_page import begin, chosen, marks, points_of, readout, says, squared

WIDGET = "priors"
PRIORS = {"row": "D: one edge", "binary": "B: each edge", "edges": "E: n edges"}
START = [[-1.9, 0.5], [-1.1, 1.3], [-0.8, 0], [-1.7, -1], [0.3, 0.9], [0.5, -0.8], [2.6, 0.2]]


# ------------------------------------------------------------------------------ the Python side


def log_kernel(points, tau: float) -> torch.Tensor:
    return torch.from_numpy(-squared(points) / (2 * tau**2))


def expectation(points, tau: float, prior: str) -> np.ndarray:
    return drot.expected_graph(log_kernel(points, tau), prior=prior).numpy()


def degrees(W: np.ndarray) -> np.ndarray:
    return W.sum(axis=-1) + W.sum(axis=-2)


def alone(points, tau: float, prior: str) -> np.ndarray:
    """Probability of no edge: in B a product, in E a power."""
    P = expectation(points, tau, prior)
    if prior == "binary":
        return (1 - P).prod(axis=0) * (1 - P).prod(axis=1)
    return (1 - degrees(P) / len(P)) ** len(P) if prior == "edges" else np.zeros(len(P))


# ---------------------------------------------------------------------------------- in the page


def prior_of(page) -> str:
    pressed = page.locator(f'{page.box} button[aria-pressed="true"]')
    assert pressed.count() == 1
    return next(key for key, name in PRIORS.items() if pressed.inner_text().startswith(name))


def weights(page, panel: int, kind: str) -> np.ndarray:
    """Entries that a panel draws, (n, n); an edge is as dark as its weight, up to 1."""
    edges = page.locator(f"{page.box} svg").nth(panel).locator(f".drot-{kind}")
    heads = edges.locator("xpath=following-sibling::*[1]")
    W = np.zeros((len(START), len(START)))
    i, j, value, dark = marks(edges, "data-from", "data-to", "data-value", "stroke-opacity").T
    W[i.astype(int), j.astype(int)] = value
    assert np.array_equal(dark, np.minimum(1, value) if kind == "mean" else value > 0)
    assert np.array_equal(marks(heads, "fill-opacity").ravel(), dark)
    return W


def assert_agrees(page) -> dict[str, float]:
    """Both graphs and all numbers, against Python at the points that the page shows."""
    shown, points, i, prior = readout(page), points_of(page), chosen(page), prior_of(page)
    P = expectation(points, shown["tau"], prior)
    mean, last = weights(page, 0, "mean"), weights(page, 0, "last")
    np.testing.assert_allclose(weights(page, 1, "mean"), P, rtol=0, atol=1e-12)
    if prior == "binary":
        assert (last <= 1).all()
    else:  # one edge from each point, or as many edges as points
        assert last.sum() == len(P) and (prior == "edges" or (last.sum(axis=1) == 1).all())
    assert shown["edges"] == pytest.approx(degrees(P)[i], rel=1e-9)
    assert shown["drawn"] == pytest.approx(degrees(mean)[i], rel=1e-9)
    assert shown["alone"] == pytest.approx(alone(points, shown["tau"], prior)[i], abs=1e-9)
    assert f"expected graph: {abs(mean - P).max():.2f}." in says(page, "verdict")
    assert f"Point {i + 1} at ({points[i][0]:.2f}, {points[i][1]:.2f})" in says(page, "point")
    for panel, weight in enumerate((mean, P)):
        words = page.locator(f"{page.box} svg").nth(panel).locator(".drot-word").all_text_contents()
        np.testing.assert_allclose([float(w) for w in words], degrees(weight), atol=0.0501)
    return shown


@pytest.mark.parametrize("prior", PRIORS)
def test_draws_add_up(page, prior):
    """Their mean, and how often the chosen point had no edge; a thousand come near the law."""
    shown = assert_agrees(page)
    assert points_of(page) == START and chosen(page) == 6 and prior_of(page) == "row"
    assert shown["tau"] == 1 and shown["alone"] == 0 and shown["edges"] > 1
    begin(page, PRIORS[prior])
    drawn = [weights(page, 0, "last")]
    for _ in range(9):
        page.get_by_role("button", name="Draw one").click()
        drawn.append(weights(page, 0, "last"))
    np.testing.assert_allclose(weights(page, 0, "mean"), np.mean(drawn, axis=0), atol=1e-12)
    lonely = np.mean([degrees(W)[6] == 0 for W in drawn])
    assert assert_agrees(page)["lonely"] == pytest.approx(lonely, abs=1e-9)
    for _ in range(10):
        page.get_by_role("button", name="Draw 100").click()
    assert says(page, "verdict").startswith("1010 graphs drawn.")
    mean, P = weights(page, 0, "mean"), weights(page, 1, "mean")
    # the law of an entry is binomial; the seed is the page's
    assert (np.abs(mean - P) <= 4.5 * np.sqrt(P / 1010) + 2e-3).all()
    page.get_by_role("button", name="point 2").press("ArrowUp")  # draws of another law do not count
    assert says(page, "verdict").startswith("1 graph drawn.")
