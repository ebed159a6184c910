"""Ties: distances on a lattice are exact, and what has no order is not put into one."""

import drot
import numpy as np
import pytest
import torch
from drot.metrics import neighborhood_curve as curve
from drot.metrics import neighborhood_preservation as preservation


def exact(X: np.ndarray, Y: np.ndarray | None = None) -> np.ndarray:
    """Squared distances of whole coordinates, in whole numbers: (n, m) int64."""
    return ((X[:, None] - (X if Y is None else Y)) ** 2).sum(axis=-1)


def integers(n: int, p: int, low: int, high: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, size=(n, p))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("step", [1.0, 2.0**-20, 2.0**30])
@pytest.mark.parametrize(("offset", "block"), [(0, None), (1001, None), (1001, 7)])
def test_distances_on_a_lattice_are_exact(dtype, step, offset, block):
    """Multiples of a power of two, from few points and many, of one cloud and of two."""
    for n in (5, 60):
        X, Y = integers(n, 6, -40, 50) + offset, integers(31, 6, -9, 60, 1) + offset
        x, y = (torch.from_numpy(Z).to(dtype) * step for Z in (X, Y))
        for cost, found in ((exact(X), (x,)), (exact(X, Y), (x, y))):
            C = drot.sqeuclidean(*found, block=block).dense() / step**2
            np.testing.assert_array_equal(C.numpy(), cost)
            student = drot.student_cost(*(z / step for z in found), block=block).dense()
            np.testing.assert_allclose(student, np.log1p(cost), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 1000), (torch.float64, 23_000_000)])
def test_distances_are_exact_up_to_the_last_digit(dtype, size):
    """Just below 2^21 and 2^50, between points far out, near one place, and the same."""
    X = integers(50, 2, 0, size)
    X[10:] //= 100
    X[0], X[1], X[3] = 0, size - 1, X[2]
    for Y in (X, X[10:], X[:3]):
        for pair in ((X, Y), (Y, X)):
            C = drot.sqeuclidean(*(torch.from_numpy(Z).to(dtype) for Z in pair)).dense()
            np.testing.assert_array_equal(C.numpy().astype(np.int64), exact(*pair))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_perplexity_below_the_ties_is_refused(dtype):
    """Neighbours at one distance have one weight, so a row has their number as perplexity."""
    X = integers(200, 12, 0, 2)
    C = exact(X) + 99 * np.eye(200)
    nearest = C.min(axis=1, keepdims=True) == C
    tied = nearest.sum(axis=1)
    row = int((tied >= 10.2).argmax())
    says = f"perplexity=10.2 is out of reach: row {row} allows more than {tied[row]} only, as"
    cost = drot.sqeuclidean(torch.from_numpy(X).to(dtype))
    with pytest.raises(ValueError, match=says):
        drot.entropic_affinity(cost, perplexity=10.2, diagonal="drop")
    found = drot.entropic_affinity(cost, perplexity=tied.max() + 1.0, diagonal="drop").plan.numpy()
    for weight, near in zip(found, nearest, strict=True):
        assert np.unique(weight[near]).size == 1


def test_neighbours_at_an_infinite_distance_have_no_order():
    """Of a cost cut to k entries, scores need no more than those; else they say what is missing."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    Z = X[:, :2]
    cut, few = (drot.nearest(drot.sqeuclidean(points), n_neighbors=10) for points in (X, Z))
    for K in (1, 9):
        score = preservation(X, Z, K)
        assert preservation(cut, few, K) == score
    for measure, some, needed in (
        (preservation, (cut, Z, 10), 10),
        (curve, (X, few), 28),
    ):
        says = rf"row 0 is at a finite distance from 9 other points and {needed} must be ranked"
        with pytest.raises(ValueError, match=says):
            measure(*some)


def test_one_neighbour_without_a_distance_comes_last():
    """n - 2 finite entries order all n - 1 neighbours; the row is named where they do not."""
    X = np.random.default_rng(1).normal(size=(12, 3))
    cut = drot.nearest(drot.sqeuclidean(X), n_neighbors=11)  # the point itself, and 10 of 11
    same = curve(cut, X[:, :2]).overlap
    assert torch.equal(same, curve(X, X[:, :2]).overlap)
    values = drot.nearest(drot.sqeuclidean(X), n_neighbors=12)
    values.values[7, 8:] = torch.inf
    values.block = 5
    with pytest.raises(ValueError, match="row 7 is at a finite distance from 7 other points"):
        preservation(X, values, 8)
