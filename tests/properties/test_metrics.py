"""Properties of what measures a plan, and of scores of prototypes."""

import warnings

import drot
import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

curve, preservation = drot.metrics.neighborhood_curve, drot.neighborhood_preservation
homogeneity, nmi = drot.metrics.prototype_homogeneity, drot.metrics.prototype_nmi
silhouette, ari = drot.metrics.weighted_silhouette, drot.metrics.spectral_clustering_ari
SIX = np.array([[0.0, 0], [0, 1], [10, 0], [10, 1], [0, 30], [0, 31]])  # three pairs
PAIRS = np.array([0, 0, 1, 1, 2, 2])


def test_scores_do_not_see_units():
    """The mass of the plan and the unit of the positions cancel; 0 log 0 warns of nothing."""
    T = np.random.default_rng(0).dirichlet(np.ones(6), size=6) + 2 * np.eye(6)
    T[:2, 4] = T[4:, 2] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for score in (
            lambda Z, T: homogeneity(T, PAIRS),
            lambda Z, T: silhouette(Z, T, PAIRS),
            lambda Z, T: nmi(Z, T, PAIRS),
        ):
            assert 0 < score(SIX, T) <= 1
            assert score(1e-3 * SIX, 7 * T) == pytest.approx(score(SIX, T), rel=1e-9)
        assert homogeneity(T, PAIRS) < 0.9
        assert homogeneity(np.eye(6), PAIRS) == pytest.approx(1, abs=1e-12)
        for T in (np.eye(4), np.full((4, 3), 0.1)):  # one class
            assert homogeneity(T, [5, 5, 5, 5]) == 1


def test_silhouette_of_odd_prototypes():
    """Alone in its class, or at the place of all others: 0. Without weight: not there."""
    Z, T = SIX[:4], np.eye(4)
    two = silhouette(Z, T, PAIRS[:4])  # two classes are enough
    assert two == pytest.approx(1 - 2 / (10 + np.sqrt(101)))
    assert silhouette(np.ones((4, 2)), T, PAIRS[:4]) == 0
    # the first is alone in its class; the others have 2 and 1 other of their own
    y = [0, 1, 1, 1]
    own = [(np.sqrt(101) + 10) / 2, (np.sqrt(101) + 1) / 2, (10 + 1) / 2]
    others = [1, 10, np.sqrt(101)]
    score = sum((b - a) / max(a, b) for a, b in zip(own, others, strict=True)) / 4
    assert silhouette(Z, T, y) == pytest.approx(score)
    # a column without mass, which has no class: neither a member of the first nor a class
    empty, more = np.hstack([T, np.zeros((4, 1))]), np.vstack([Z, [[0.5, 0.5]]])
    assert silhouette(more, empty, y) == pytest.approx(score)
    assert silhouette(more, empty, [1, 0, 0, 0]) == pytest.approx(score)


def test_clusters_of_prototypes():
    """As many as classes by default, or as prototypes in use; without weight they are no points."""
    T = np.eye(6) / 6
    assert nmi(SIX, T, PAIRS) == pytest.approx(1)
    assert nmi(SIX, T, range(6), n_clusters=3) < 0.9 and nmi(SIX, T, PAIRS, n_clusters=1) == 0
    far = np.vstack([[[1e4, 0]], SIX])
    assert nmi(far, np.hstack([np.zeros((6, 1)), T]), PAIRS) == pytest.approx(1)
    merged = np.repeat(np.eye(2), 3, axis=0)  # two prototypes for three classes
    expected = normalized_mutual_info_score(PAIRS, [0, 0, 0, 1, 1, 1])
    assert nmi(SIX[[0, 4]], merged, PAIRS) == pytest.approx(expected)
    # a point without mass is in no cluster, and its class does not ask for one
    for first, second in ((1, 2), (0, 2), (0, 1)):
        none, where = np.zeros((5, 3)), np.zeros(3, dtype=int)
        none[[0, 1, 2, 3], [first, first, second, second]] = 1
        where[second] = 4
        for asked in (2, None):
            found = nmi(SIX[where], none, [0, 0, 1, 1, 2], n_clusters=asked)
            assert found == pytest.approx(1)
    pairs = [0, 0, 0, 0, 1, 2]  # of which two classes have mass
    expected = KMeans(2, n_init=10, random_state=0).fit(SIX[:5]).labels_
    found = nmi(SIX, np.diag([1.0, 1, 1, 1, 1, 0]), pairs)
    assert found == pytest.approx(normalized_mutual_info_score(pairs[:5], expected))


def test_score_of_groups():
    """Symmetry is up to rounding; one group says nothing of two classes."""
    score, pair = drot.metrics.spectral_clustering_ari, 0.1 * torch.eye(2).double() + 0.9
    plan, y = torch.block_diag(pair, pair), [0, 0, 1, 1]
    assert score(plan, y, n_clusters=1) == 0
    plan[0, 1] += 1e-9
    assert score(5 * plan, y) == 1
    plan[0, 1] += 1e-4
    with pytest.raises(ValueError, match="symmetric"):
        score(5 * plan, y)


def test_neighbours_at_an_infinite_distance_have_no_order():
    """Of a cost cut to k entries, scores need no more than those; else they say what is missing,
    and in which row. One neighbour without a distance comes last."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    Z = X[:, :2]
    cut, few = (drot.nearest(drot.sqeuclidean(points), n_neighbors=10) for points in (X, Z))
    for K in (1, 9):
        assert preservation(cut, few, K) == preservation(X, Z, K)
    last = drot.nearest(drot.sqeuclidean(X), n_neighbors=29)  # the point itself, and 28 of 29
    assert torch.equal(curve(last, Z).overlap, curve(X, Z).overlap)
    last.values[7, 8:] = torch.inf
    last.block = 5
    apart = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))  # said to be distances
    assert preservation(drot.nearest(apart, n_neighbors=5), np.arange(5.0)[:, None], 2) == 1
    says = "row %d is at a finite distance from %d other points"
    for row, others, ask in (
        (0, 9, lambda: preservation(cut, Z, 10)),
        (0, 9, lambda: curve(X, few)),
        (7, 7, lambda: preservation(X, last, 8)),
    ):
        with pytest.raises(ValueError, match=says % (row, others)):
            ask()
