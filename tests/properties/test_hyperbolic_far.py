"""Hyperbolic points far from the origin: distances, means, k-means and reductions."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
import torch
from drot import hyperbolic, sqeuclidean, symmetric_entropic_affinity
from drot.hyperbolic import _Hyperbolic, exp


def lift(v) -> torch.Tensor:
    v = torch.as_tensor(v)
    return torch.cat([torch.sqrt(1 + v.square().sum(dim=1, keepdim=True)), v], dim=1)


def at(radius, angle) -> np.ndarray:
    return np.stack([np.sinh(radius) * np.cos(angle), np.sinh(radius) * np.sin(angle)], axis=1)


def exact(x, y):
    """The distance by arcosh, with 400 digits."""
    with mpmath.workdps(400):
        x, y = ([mpmath.mpf(float(t)) for t in v] for v in (x, y))
        heights = mpmath.sqrt(1 + sum(t * t for t in x)) * mpmath.sqrt(1 + sum(t * t for t in y))
        return float(mpmath.acosh(heights - sum(s * t for s, t in zip(x, y, strict=True))))


@pytest.mark.parametrize("radius", [0.0, 1.0, 9.0, 14.0, 18.0, 25.0])
def test_distances_keep_their_digits(radius):
    """Close and far pairs, along a ray and across: to the rounding of their coordinates."""
    rng = np.random.default_rng(0)
    steps = np.array([[0, 0], [1e-6, 0], [0.3, 0], [2.0, 0], [0.3, 1e-6], [0.1, 0.7], [5, 0.1]])
    angle = 0.7 + np.r_[steps[:, 1] / np.cosh(radius), rng.uniform(0, 6, size=3)]
    v = at(radius + np.r_[steps[:, 0], 0, 0.1, 0.2], angle)
    share = 1e-9 + 8 * np.finfo(float).eps * np.sinh(radius)
    D = hyperbolic.distance(lift(v))
    assert torch.equal(D, D.T) and bool((D.diagonal() == 0).all())
    for i, j in itertools.combinations(range(10), 2):
        assert float(D[i, j]) == pytest.approx(exact(v[i], v[j]), rel=share, abs=1e-12), (i, j)


def test_too_far():
    """Heights whose fourth powers overflow have no means, and those are told so."""
    v = at(np.full(3, 174.0), np.arange(3.0))
    assert bool(torch.isfinite(hyperbolic.distance(lift(v))).all())
    v = at(np.full(3, 180.0), np.arange(3.0))
    with pytest.raises(ValueError, match="row 0 of Z has the height 7e\\+77, and means over"):
        hyperbolic.distance(lift(v))
    with pytest.raises(ValueError, match="means overflow past 5e\\+18"):  # single precision
        hyperbolic.distance(lift(at(np.full(3, 60.0), np.arange(3.0))).float())


@pytest.mark.parametrize("seed", [2, 3])
def test_reductions_of_blobs_converge(seed):
    """With the default kernel, to the residual that differences of the objective confirm."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(15, 4)) + 5 * rng.normal(size=4) for _ in range(rng.integers(2, 6))]
    C = symmetric_entropic_affinity(sqeuclidean(np.concatenate(parts)), perplexity=8.0).plan
    found = hyperbolic.reduce(C, 8, n_starts=1)
    assert found.converged and found.residual <= 1e-3
    problem = _Hyperbolic(C, 8)
    c, v = problem.couple(found.plan), found.Z[:, 1:]
    for i, angle in enumerate(torch.linspace(0, 6, 8)):  # each point by 1e-4 in some direction
        x = torch.zeros_like(v)
        x[i, 0], x[i, 1] = 1e-4 * angle.cos(), 1e-4 * angle.sin()
        rise = problem.objective(lift(exp(x, v)), c) - problem.objective(lift(exp(-x, v)), c)
        assert abs(rise) / 2e-4 * 8 / float(c.M.sum()) <= 1.01e-3
