"""The first page's widget is t-SNE: its affinities, objective and gradient are the package's."""

import drot
import numpy as np
import pytest
import torch
from scipy.special import rel_entr
from widget_page import squared

WIDGET = "starts"


def tsne_plan(X: torch.Tensor, xi: float) -> torch.Tensor:
    """Of mass n."""
    rows = drot.entropic_affinity(drot.sqeuclidean(X), perplexity=xi, diagonal="drop", tol=1e-11)
    return drot.symmetrize(rows)


def divergence(P: torch.Tensor, Z: np.ndarray) -> float:
    """KL(P / n, Q)."""
    K = 1 / (1 + squared(Z)) - np.eye(len(Z))
    return float(rel_entr(P.numpy() / len(P), K / K.sum()).sum())


def test_core_is_tsne(widget):
    n = 60
    X, Z = drot.datasets.digits(n).X, np.random.default_rng(0).normal(scale=3, size=(n, 2))
    code = """([X, Z]) => {
        const P = drotStarts.affinities(drotStarts.squares(X, 64), 12);
        const numbers = [P, drotStarts.gradient(P, Z), [drotStarts.objective(P, Z)]];
        return numbers.map(list => Array.from(list));
    }"""
    given = [X.flatten().tolist(), Z.ravel().tolist()]
    P, gradient, value = widget.page.evaluate(code, given)
    wanted = tsne_plan(X, 12)
    np.testing.assert_allclose(np.reshape(P, (n, n)), wanted / n, rtol=1e-7, atol=1e-15)
    slope = drot.SNELoss(wanted, "student").evaluate(torch.from_numpy(Z)).gradient / n
    np.testing.assert_allclose(np.reshape(gradient, (n, 2)), slope, rtol=1e-6, atol=1e-12)
    assert value[0] == pytest.approx(divergence(wanted, Z), rel=1e-9)


def test_page_says_what_its_maps_are(widget):
    """KL of each, and how alike they are: ten nearest, and distances between classes."""
    digits, shown = drot.datasets.digits(500), widget.numbers()
    maps = widget.page.evaluate("drotStartsState.maps.map(map => Array.from(map.Z))")
    maps, plan = np.array(maps).reshape(2, 500, 2), tsne_plan(digits.X, 30)
    told = widget.find(".drot-maps .drot-title").all_inner_texts()[:2]
    told = [float(heading.rpartition("KL ")[2]) for heading in told]
    assert told == pytest.approx([divergence(plan, Z) for Z in maps], abs=6e-4)
    near = [squared(Z).argsort(axis=1)[:, 1:11] for Z in maps]
    shared = [len({*a} & {*b}) / 10 for a, b in zip(*near, strict=True)]
    assert shown["shared"] == pytest.approx(np.mean(shared), abs=1e-9)
    y = digits.y.numpy()
    centres = [np.stack([Z[y == c].mean(axis=0) for c in range(10)]) for Z in maps]
    gaps = [squared(c)[np.triu_indices(10, 1)] ** 0.5 for c in centres]
    assert shown["correlated"] == pytest.approx(np.corrcoef(gaps)[0, 1], abs=1e-9)
