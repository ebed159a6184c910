"""Prototypes without weight, as far from the others as one likes: they do not count."""

from __future__ import annotations

import math

import drot
import numpy as np
import pytest
import torch
from drot.distributional.loss import PrototypeLoss, factors
from drot.distributional.reduction import read_problem

NORMALIZATIONS = ("sum", "rows", "doubly_stochastic")


def points() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(12, 4)) + 4 * rng.normal(size=4) for _ in range(3)])


def graph() -> torch.Tensor:
    """Much of it 0: embeddings of it fall apart."""
    plan = drot.fuzzy_union(drot.umap_membership(drot.sqeuclidean(points()), 6))
    return torch.as_tensor(getattr(plan, "plan", plan))


def entropic() -> torch.Tensor:
    return drot.symmetric_entropic_affinity(drot.sqeuclidean(points()), 8.0).plan


def holes() -> np.ndarray:
    w = np.ones(36)
    w[:3] = 0
    return w / w.sum()


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_far_ones_leave_the_others_alone(normalization, dtype):
    """Objective, similarities and gradient are those of the prototypes with weight alone."""
    C = entropic().to(dtype)
    T = torch.zeros(36, 5, dtype=dtype)
    T[torch.arange(36), torch.arange(36) // 12] = 1 / 36
    Z = torch.tensor([[0, 0], [1, 0], [0, 2], [300, 0], [-4e3, 50]], dtype=dtype)
    found, alone = [], []
    for k, out in ((5, found), (3, alone)):
        problem = read_problem(C, k, 2, "gaussian", normalization, "kl", None)
        c = problem.couple(T[:, :k])
        structure = problem.structure(Z[:k], c)[0]
        loss = PrototypeLoss(c.M, c.q, problem.constant, "gaussian", normalization)
        seen = loss.evaluate(Z[:k])
        out += [problem.objective(Z[:k], c), seen.value, seen.gradient[:3], structure[:3, :3]]
        out += [problem.plans(Z[:k], c)[0].scale]  # the unit of the plan's residual
        assert bool(torch.isfinite(structure).all())
        assert float(seen.gradient[3:].abs().sum()) == 0
    share = 1e-12 if dtype == torch.float64 else 1e-4
    for x, y in zip(found, alone, strict=True):
        torch.testing.assert_close(torch.as_tensor(x), torch.as_tensor(y), rtol=share, atol=share)


def test_factor_of_the_far():
    """Of weighted points the sums are met, and a point without weight has the mean of C still."""
    z = torch.tensor([0.0, 1.0, 10.0, 30.0, 1e3], dtype=torch.float64)
    K = (-(z[:, None] - z).square()).exp()
    q = torch.tensor([0.5, 0.5, 0, 0, 0], dtype=torch.float64)
    r = torch.tensor([0.3, 0.4, 0, 0, 0], dtype=torch.float64)
    f, _, _ = factors(K, q, r, "doubly_stochastic")
    sums = q * f.exp() * (K @ (q * f.exp()))
    torch.testing.assert_close(sums, r, rtol=1e-12, atol=0)
    one = (f[2] + (K[2] * q * f.exp()).sum().log()).exp()  # e^f sum K q e^f
    assert float(one) == pytest.approx(0.7, rel=1e-12)
    assert bool((f[3:] > f[2]).all()) and bool((2 * f).exp().isfinite().all())


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("init", ["random", "cluster_then_reduce", "reduce_then_cluster"])
@pytest.mark.parametrize("weights", [None, holes()])
def test_reductions_end_with_numbers(normalization, init, weights):
    """Zeros among the weights and random places far out: finite, falling, and said as it is."""
    for C in (graph(), entropic()):
        found = drot.distributional_reduction(
            C,
            12,
            kernel="gaussian",
            normalization=normalization,
            weights=weights,
            init=init,
            n_starts=1,
            max_iter=3,
            on_failure="ignore",
        )
        numbers = (found.Z, found.plan, found.structure, torch.tensor(found.trace))
        assert all(bool(torch.isfinite(x).all()) for x in numbers)
        assert math.isfinite(found.residual)
        assert all(b <= a for a, b in zip(found.trace, found.trace[1:], strict=False))
        used = found.weights > 0
        mass = found.weights[used] @ found.structure[used][:, used] @ found.weights[used]
        w = torch.tensor(np.full(36, 1 / 36) if weights is None else weights)
        assert float(mass) == pytest.approx(float(w @ C @ w), rel=1e-6)


def test_a_point_that_knows_nobody():
    """A prototype with weight whose similarities are all 0 gets the similarity 0."""
    C = entropic().clone()
    C[:2] = C[:, :2] = 0
    found = drot.distributional_reduction(
        C,
        12,
        kernel="gaussian",
        normalization="doubly_stochastic",
        init="random",
        on_failure="ignore",
        max_iter=3,
    )
    assert math.isfinite(found.objective) and bool(torch.isfinite(found.structure).all())
