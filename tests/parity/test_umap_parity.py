"""UMAP's graph, curve and loss held against umap-learn 0.5, conventions mapped.

| umap-learn                | its convention                        | in drot                  |
| ------------------------- | ------------------------------------- | ------------------------ |
| smooth_knn_dist           | float32, bisection to 1e-5 of log2 k  | umap_membership, to 1e-9 |
| fuzzy_simplicial_set      | sparse, float32                       | fuzzy_union, dense       |
| find_ab_params            | curve_fit, default tolerance          | umap_curve, same grid    |
| optimize_layout_euclidean | draws pairs, guard 0.001 on repulsion | BernoulliLoss, all pairs |

umap-learn has no function for its loss: the test writes it down from the paper, on its graph and
its embedding. Its neighbours are found exactly here, which it does only for given distances.
"""

import drot
import numpy as np
import pytest
import torch
from sklearn.manifold import trustworthiness
from sklearn.metrics import pairwise_distances

with pytest.MonkeyPatch.context() as patch:  # so few sums take less time than their compiler
    patch.setattr("numba.config.DISABLE_JIT", True)
    from umap.umap_ import find_ab_params, fuzzy_simplicial_set, simplicial_set_embedding

N = 200


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    """Three clusters of unlike width, without ties."""
    rng = np.random.default_rng(0)
    widths = np.repeat([0.5, 1.0, 4.0], [70, 70, 60])[:, None]
    return rng.normal(size=(N, 6)) * widths + 10.0 * rng.integers(0, 3, size=(N, 1))


def theirs(points: np.ndarray, k: int, rank: int = 1):
    """umap-learn's graph, sigma and rho from exact neighbours."""
    distances = pairwise_distances(points)
    index = distances.argsort(axis=1)[:, :k]
    near = np.take_along_axis(distances, index, axis=1).astype(np.float32)
    return fuzzy_simplicial_set(
        points, k, None, "euclidean", knn_indices=index, knn_dists=near, local_connectivity=rank
    )


@pytest.mark.parametrize(("k", "rank"), [(15, 1), (3, 1), (30, 3)])
def test_graph(points, k, rank):
    """Same edges; entries to 2e-5. A sum off by 1e-5 moves log sigma by as much, and an entry e^-t
    by t times that: 2e-5 (1 + t) of its value."""
    graph, sigma, rho = theirs(points, k, rank)
    found = drot.umap_membership(drot.sqeuclidean(points), n_neighbors=k, local_connectivity=rank)
    ours, other = drot.fuzzy_union(found).numpy(), graph.toarray()
    assert ((ours > 1e-30) == (other > 1e-30)).all()
    np.testing.assert_allclose(ours, other, rtol=0, atol=2e-5)
    edge = other > 1e-30
    allowed = 2e-5 * (1 - np.log(ours[edge]))
    assert (abs(ours[edge] / other[edge] - 1) <= allowed).all()
    assert np.median(abs(ours[edge] / other[edge] - 1)) < 1e-5
    np.testing.assert_allclose(found.rho, rho, rtol=1e-6)
    np.testing.assert_allclose(found.sigma, sigma, rtol=2e-4)


@pytest.mark.parametrize(("min_dist", "spread"), [(0.1, 1.0), (0.0, 1.0), (0.25, 0.3)])
def test_curve(min_dist, spread):
    """a and b to 1e-5 of their value: what curve_fit leaves."""
    theirs = find_ab_params(spread, min_dist)
    np.testing.assert_allclose(drot.umap_curve(min_dist, spread), theirs, rtol=1e-5)


@pytest.mark.parametrize("scale", [0.3, 10.0])
def test_loss(points, scale, monkeypatch):
    """The cross-entropy of the paper on their graph, each unordered pair twice: ours, but for the
    guard, and its gradient by their coefficients."""
    graph, _, _ = theirs(points, 15)
    mu, Z = graph.toarray().astype(float), scale * drot.random_start(N)
    a, b = find_ab_params(1.0, 0.1)
    d2 = ((Z[:, None] - Z[None]) ** 2).sum(dim=2).numpy()
    i, j = np.triu_indices(N, 1)
    nu, m = 1 / (1 + a * d2[i, j] ** b), mu[i, j]
    value = -2 * float((m * np.log(nu) + (1 - m) * np.log(1 - nu)).sum())
    monkeypatch.setattr("drot.embeddings.losses.GUARD", 1e-12)
    found = drot.BernoulliLoss(mu, "curve", a=a, b=b).evaluate(Z)
    assert found.value == pytest.approx(value, rel=1e-8)
    # the coefficients of its sampled steps, summed over all pairs: twice 2 (attract + repel)
    np.fill_diagonal(d2, 1.0)  # idle: a point is no distance from itself
    attract = -2 * a * b * d2 ** (b - 1) / (1 + a * d2**b)
    repel = 2 * b / (d2 * (1 + a * d2**b))
    gaps = (Z[:, None] - Z[None]).numpy()
    step = ((mu * attract + (1 - mu) * repel)[:, :, None] * gaps).sum(axis=1)
    np.testing.assert_allclose(-found.gradient, 2 * step, atol=1e-7 * 2 * abs(step).max())


def test_embedding(points):
    """From PCA, the exact descent ends below the loss of umap-learn's own embedding."""
    graph, _, _ = theirs(points, 15)
    a, b = find_ab_params(1.0, 0.1)
    start = drot.pca_start(points)
    first, chance = (10 * start.numpy()).astype(np.float32), np.random.RandomState(0)
    other, _ = simplicial_set_embedding(
        points.astype(np.float32), graph, 2, 1.0, a, b, 1.0, 5, 50, first, chance, "euclidean",
        {}, False, {}, False,
    )  # fmt: skip
    P = torch.from_numpy(graph.toarray().astype(float))
    found = drot.umap(P, init=start)
    loss = drot.BernoulliLoss(P, "curve", a=a, b=b)
    assert found.value < loss.evaluate(torch.from_numpy(other).double()).value  # less than half
    assert trustworthiness(points, found.Z.numpy(), n_neighbors=5) > 0.9  # 0.946
