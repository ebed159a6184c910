"""Chapter 5: the plan of an embedding, how fast it is balanced, and what happens if it is not."""

import itertools
import math

import numpy as np
import oracles
import pytest
import torch
from drot.affinities.sinkhorn import symmetric_sinkhorn
from drot.embeddings.losses import SNEkhornLoss
from numpy.testing import assert_allclose
from plans import KERNELS, balanced, latent_cost, points

RATE = 3 + 2 * math.sqrt(2)


def kernel_of(Z: np.ndarray, kind: str) -> np.ndarray:
    return np.exp(-latent_cost(Z, kind))


def momentum_steps(K: np.ndarray, f: np.ndarray, steps: int) -> list[np.ndarray]:
    """The iteration of the package."""
    matrix = torch.from_numpy(K)
    path = symmetric_sinkhorn(lambda f: (f + (matrix @ f.exp()).log(),), torch.from_numpy(f))
    return [f.numpy() for f, _ in itertools.islice(path, steps + 1)]


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("scale", [0.3, 4.0])
def test_prp_sinkhorn_momentum(kind, scale):
    """Near the solution the error keeps below twice the rate's power, for every start."""
    K = kernel_of(points(0, 30, scale=scale), kind)
    assert np.linalg.eigvalsh(K).min() > -1e-12
    f = momentum_steps(K, np.zeros(len(K)), 60)[-1]
    Q = np.exp(f[:, None] + f) * K
    assert_allclose(Q.sum(axis=1), 1, atol=1e-12)
    assert_allclose(Q, oracles.sinkhorn(-np.log(K), 1.0), atol=1e-5)
    values, vectors = np.linalg.eigh(Q)
    assert values.min() > -1e-12 and values.max() < 1 + 1e-12
    for start in (vectors[:, 0], vectors[:, -1], np.random.default_rng(1).normal(size=len(K))):
        errors = np.linalg.norm(np.subtract(momentum_steps(K, f + 1e-4 * start, 9), f), axis=1)
        bound = 2 * errors[0] * RATE ** -np.arange(10.0)
        assert (errors[1:] <= bound[1:] * 1.01 + 1e-11).all()
    # and the bound is attained, up to its factor, where the spectrum reaches 0 or 1
    past = momentum_steps(K, f + 1e-4 * vectors[:, -1], 6)
    assert np.linalg.norm(past[6] - f) > 0.4 * 2e-4 * RATE**-6


def test_lem_sphere():
    """Divided by its sum, a kernel is balanced exactly if all points are equally crowded."""
    turn = 2 * np.pi * np.arange(12) / 12
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    for kind, Z in itertools.product(KERNELS, (ring, np.vstack([ring, [[0.0, 0.0]]]))):
        n, K = len(Z), kernel_of(Z, kind)
        Q = SNEkhornLoss(balanced(0, n), kind).latent_plan(torch.tensor(Z)).numpy()
        assert_allclose(Q, oracles.sinkhorn(-np.log(K), 1.0), atol=1e-8)
        sums, gap = K.sum(axis=1), abs(Q - n * K / K.sum()).max()
        if n == 12:
            assert np.ptp(sums) < 1e-12 and gap < 1e-9
        else:  # the middle is the most crowded
            assert sums[-1] > sums[:-1].max() + 1e-12 and gap > 1e-2
