"""The widget of chapter 9 says what Python says: its three laws, its draws, its numbers."""

import drot
import numpy as np
import pytest
import torch
from plans import squares

WIDGET = "priors"
PRIORS = {"row": "D: one edge", "binary": "B: each edge", "edges": "E: n edges"}


def expectation(points, tau: float, prior: str) -> np.ndarray:
    log_kernel = torch.from_numpy(-squares(points) / (2 * tau**2))
    return drot.expected_graph(log_kernel, prior=prior).numpy()


def degrees(W: np.ndarray) -> np.ndarray:
    return W.sum(axis=-1) + W.sum(axis=-2)


def alone(P: np.ndarray, prior: str) -> np.ndarray:
    """Probability of no edge: in B a product, in E a power."""
    if prior == "binary":
        return (1 - P).prod(axis=0) * (1 - P).prod(axis=1)
    return (1 - degrees(P) / len(P)) ** len(P) if prior == "edges" else np.zeros(len(P))


def prior_of(widget) -> str:
    text = widget.find('button[aria-pressed="true"]').inner_text()
    return next(key for key, name in PRIORS.items() if text.startswith(name))


def weights(widget, panel: int, kind: str) -> np.ndarray:
    """Entries that a panel draws, (n, n); an edge is as dark as its weight, up to 1."""
    edges = widget.find("svg").nth(panel).locator(f".drot-{kind}")
    i, j = widget.marks(edges, "data-from", "data-to").astype(int).T
    value, dark = widget.marks(edges, "data-value", "stroke-opacity").T
    W = np.zeros((len(widget.labels()),) * 2)
    W[i, j] = value
    assert np.array_equal(dark, np.minimum(1, value) if kind == "mean" else value > 0)
    heads = edges.locator("xpath=following-sibling::*[1]")
    assert np.array_equal(widget.marks(heads, "fill-opacity").ravel(), dark)
    return W


def assert_agrees(widget) -> dict[str, float]:
    """Both graphs and all numbers, against Python at the points that the page shows."""
    shown, points, i = widget.numbers(), widget.points(), widget.chosen()
    prior = prior_of(widget)
    P = expectation(points, shown["tau"], prior)
    mean, last = weights(widget, 0, "mean"), weights(widget, 0, "last")
    np.testing.assert_allclose(weights(widget, 1, "mean"), P, rtol=0, atol=1e-12)
    if prior == "binary":
        assert (last <= 1).all()
    else:  # one edge from each point, or as many edges as points
        assert last.sum() == len(P) and (prior == "edges" or (last.sum(axis=1) == 1).all())
    assert shown["edges"] == pytest.approx(degrees(P)[i], rel=1e-9)
    assert shown["drawn"] == pytest.approx(degrees(mean)[i], rel=1e-9)
    assert shown["alone"] == pytest.approx(alone(P, prior)[i], abs=1e-9)
    assert f"expected graph: {abs(mean - P).max():.2f}." in widget.says("verdict")
    assert f"Point {i + 1} at ({points[i][0]:.2f}, {points[i][1]:.2f})" in widget.says("point")
    for panel, weight in enumerate((mean, P)):
        words = widget.find("svg").nth(panel).locator(".drot-word").all_text_contents()
        np.testing.assert_allclose([float(w) for w in words], degrees(weight), atol=0.0501)
    return shown


def test_begins_as_the_chapter_says(widget):
    """One edge out of each point: the far one, which is chosen, keeps its edge."""
    shown = assert_agrees(widget)
    assert widget.chosen() == 6 == widget.points()[:, 0].argmax() and prior_of(widget) == "row"
    assert shown["tau"] == 1 and shown["alone"] == 0 and shown["edges"] > 1


@pytest.mark.parametrize("prior", PRIORS)
def test_draws_add_up(widget, prior):
    """Their mean, and how often the chosen point had no edge; a thousand come near the law."""
    widget.press(PRIORS[prior])
    widget.handles.nth(6).focus()
    drawn = [weights(widget, 0, "last")]
    for _ in range(9):
        widget.press("Draw one")
        drawn.append(weights(widget, 0, "last"))
    np.testing.assert_allclose(weights(widget, 0, "mean"), np.mean(drawn, axis=0), atol=1e-12)
    lonely = np.mean([degrees(W)[6] == 0 for W in drawn])
    assert assert_agrees(widget)["lonely"] == pytest.approx(lonely, abs=1e-9)
    for _ in range(10):
        widget.press("Draw 100")
    assert widget.says("verdict").startswith("1010 graphs drawn.")
    mean, P = weights(widget, 0, "mean"), weights(widget, 1, "mean")
    # the law of an entry is binomial; the seed is the page's
    assert (np.abs(mean - P) <= 4.5 * np.sqrt(P / 1010) + 2e-3).all()
    widget.handles.nth(1).press("ArrowUp")  # draws of another law do not count
    assert widget.says("verdict").startswith("1 graph drawn.")


def test_bandwidth_by_keyboard(widget):
    seen, text = widget.slide("Bandwidth of the kernel", lambda w: assert_agrees(w)["tau"])
    assert (np.diff(seen) > 0).all() and text == "bandwidth 3.00"
    assert (seen[0], seen[-1]) == pytest.approx((0.3, 3))
