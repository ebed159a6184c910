"""The first page's widget is t-SNE: its affinities, objective and gradient are the package's."""

import drot
import numpy as np
import pytest
import torch
from widget_page import readout

WIDGET = "starts"


@pytest.fixture(scope="module")
def digits():
    return drot.datasets.digits(500)


@pytest.fixture(scope="module")
def plan(digits) -> torch.Tensor:
    rows = drot.entropic_affinity(
        drot.sqeuclidean(digits.X), perplexity=30, diagonal="drop", tol=1e-11
    )
    return drot.symmetrize(rows)  # of mass n


def divergence(P: torch.Tensor, Z: np.ndarray) -> float:
    """KL(P, Q) for a joint distribution P."""
    K = 1 / (1 + ((Z[:, None] - Z) ** 2).sum(axis=2))
    np.fill_diagonal(K, 0)
    P, Q = P.numpy(), K / K.sum()
    return float((P[P > 0] * np.log(P[P > 0] / Q[P > 0])).sum())


def maps_of(page) -> np.ndarray:
    """Positions of the two maps, (2, 500, 2)."""
    code = "drotStartsState.maps.map(map => Array.from(map.Z))"
    return np.array(page.evaluate(code)).reshape(2, -1, 2)


def test_core_is_tsne(page, digits):
    n = 60
    X, Z = digits.X[:n], np.random.default_rng(0).normal(scale=3, size=(n, 2))
    code = """([X, Z]) => {
        const P = drotStarts.affinities(drotStarts.squares(X, 64), 12);
        const numbers = [P, drotStarts.gradient(P, Z), [drotStarts.objective(P, Z)]];
        return numbers.map(list => Array.from(list));
    }"""
    P, gradient, value = page.evaluate(code, [X.flatten().tolist(), Z.ravel().tolist()])
    rows = drot.entropic_affinity(drot.sqeuclidean(X), perplexity=12, diagonal="drop", tol=1e-11)
    wanted = drot.symmetrize(rows)
    np.testing.assert_allclose(np.reshape(P, (n, n)), wanted / n, rtol=1e-7, atol=1e-15)
    slope = drot.SNELoss(wanted, "student").evaluate(torch.from_numpy(Z)).gradient / n
    np.testing.assert_allclose(np.reshape(gradient, (n, 2)), slope, rtol=1e-6, atol=1e-12)
    assert value[0] == pytest.approx(divergence(wanted / n, Z), rel=1e-9)


def test_page_says_what_its_maps_are(page, digits, plan):
    maps, shown = maps_of(page), readout(page)
    headings = page.locator(f"{page.box} .drot-maps .drot-title").all_inner_texts()
    for heading, Z in zip(headings, maps, strict=False):
        value = divergence(plan / 500, Z)
        assert float(heading.rpartition("KL ")[2]) == pytest.approx(value, abs=6e-4)
    near = np.linalg.norm(maps[:, :, None] - maps[:, None], axis=3).argsort(axis=2)[:, :, 1:11]
    pairs = [(a, b) for a in range(2) for b in range(a)]
    shared = [len(set(near[a, i]) & set(near[b, i])) / 10 for a, b in pairs for i in range(500)]
    assert shown["shared"] == pytest.approx(np.mean(shared), abs=1e-9)
    y = digits.y.numpy()
    centres = np.stack([[Z[y == c].mean(axis=0) for c in range(10)] for Z in maps])
    gaps = np.linalg.norm(centres[:, :, None] - centres[:, None], axis=3)
    gaps = gaps[:, *np.triu_indices(10, 1)]
    alike = [np.corrcoef(gaps[a], gaps[b])[0, 1] for a, b in pairs]
    assert shown["correlated"] == pytest.approx(np.mean(alike), abs=1e-9)
