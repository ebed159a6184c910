"""Chapter 6: which plans have a best picture, and how far apart it puts their parts."""

import itertools
import math

import drot
import pytest
import torch
from drot.embeddings.losses import SNEkhornLoss, SNELoss
from plans import KERNELS, balanced, latent_cost, points
from torch import Tensor

each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def cost(Z: Tensor, kernel: str) -> Tensor:
    return torch.from_numpy(latent_cost(Z, kernel))


def dual(Z: Tensor, kernel: str) -> Tensor:
    """f of the picture by Newton's method on the rows' equations: nothing of the package."""
    K = torch.exp(-cost(Z, kernel))
    f = torch.zeros(len(Z), dtype=torch.float64)
    for _ in range(60):  # damped first, as far as it needs to be
        Q = torch.exp(f[:, None] + f) * K
        step = torch.linalg.solve(torch.diag(Q.sum(dim=1)) + Q, 1 - Q.sum(dim=1))
        f = f + step / max(1.0, float(step.abs().max()))
    return f


def value(P: Tensor, Z: Tensor, kernel: str) -> float:
    return float((P * cost(Z, kernel)).sum() - 2 * dual(Z, kernel).sum())


@each_kernel
@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (2, 3, 5)])
def test_prp_no_best_sandwich(kernel, sizes):
    """Mass lost between parts <= F - sum F_a <= the bound, for parts near, far and mixed."""
    P = torch.block_diag(*(balanced(k, n) for k, n in enumerate(sizes)))
    part = torch.repeat_interleave(torch.tensor(sizes))
    across = part[:, None] != part
    for seed, (q, far) in enumerate(itertools.product((1, 2, 3), (0.0, 1.0, 4.0))):
        Z = points(seed, len(P), q) + far * part[:, None]
        found, C = SNEkhornLoss(P, kernel).evaluate(Z, tol=1e-13), cost(Z, kernel)
        assert found.value == pytest.approx(value(P, Z, kernel), rel=1e-12, abs=1e-11)
        own = [part == a for a in range(len(sizes))]
        f0 = torch.cat([dual(Z[a], kernel) for a in own])
        gap = found.value - sum(value(P[a][:, a], Z[a], kernel) for a in own)
        lost, bound = (float(torch.exp(f[:, None] + f - C)[across].sum()) for f in (found.dual, f0))
        assert 0 < lost <= gap + 1e-10 and gap <= bound + 1e-10
        if far == 0 and len(P) > 2:
            assert lost > 1e-3 and bound > 1.001 * lost  # it says something


@each_kernel
def test_prp_no_best_infimum(kernel):
    """Farther is lower, down to the sum of the parts' own minima, which nothing reaches."""
    plans = [balanced(5, 6), balanced(6, 8)]
    parts = [drot.snekhorn(P, kernel=kernel, tol=1e-9) for P in plans]
    least = sum(part.value for part in parts)
    loss = SNEkhornLoss(torch.block_diag(*plans), kernel)
    above = []
    for far in (1.0, 4.0, 8.0) if kernel == "gaussian" else (3.0, 30.0, 300.0, 3000.0):
        Z = torch.cat([parts[0].Z, parts[1].Z + far * torch.tensor([1.0, 0.0])])
        above.append(loss.evaluate(Z, tol=1e-13).value - least)
    assert all(x > y > 0 for x, y in itertools.pairwise(above)) and above[-1] < 1e-5
    if kernel == "student":  # 2 sigma sigma / D^2
        s = [float(dual(part.Z, kernel).exp().sum()) for part in parts]
        assert above[-1] == pytest.approx(2 * s[0] * s[1] / 3000.0**2, rel=0.01)


@each_kernel
def test_prp_no_best_connected(kernel):
    """F >= <P, C>, and F = n log n in one place."""
    for seed in range(2):
        n = 10 + 5 * seed
        P = balanced(seed, n)
        loss = SNEkhornLoss(P, kernel)
        for scale in (0.1, 1.0, 10.0, 100.0):
            Z = points(seed, n, scale=scale)
            assert loss.evaluate(Z, tol=1e-12).value >= float((P * cost(Z, kernel)).sum()) - 1e-9
        top = loss.evaluate(torch.ones(n, 2, dtype=torch.float64), tol=1e-13).value
        assert top == pytest.approx(n * math.log(n), rel=1e-12)


def test_prp_no_best_radius():
    """A Gaussian minimum lies within the radius; outside it, one place is better."""
    for seed in range(2):
        n = 10 + 5 * seed
        P = balanced(seed, n)
        radius = math.log(n) / (2 * float(torch.linalg.eigvalsh(torch.eye(n) - P)[1]))
        Z = drot.snekhorn(P, init="random", tol=1e-6).Z
        assert 0 < float((Z - Z.mean(dim=0)).square().sum(dim=1).mean()) <= radius
        Z = points(seed, n)
        Z -= Z.mean(dim=0)
        Z *= math.sqrt(1.01 * radius / float(Z.square().sum(dim=1).mean()))
        assert SNEkhornLoss(P).evaluate(Z, tol=1e-12).value > n * math.log(n)


@each_kernel
@pytest.mark.parametrize("mass", [0.3, 1e-7])
def test_prp_no_best_two_points(kernel, mass):
    """They exchange some mass: the best picture is exact, at a distance known in closed form, and a
    start there stays, however far its parts are."""
    P = torch.tensor([[1 - mass, mass], [mass, 1 - mass]], dtype=torch.float64)
    square = math.log(1 / mass - 1) if kernel == "gaussian" else 1 / mass - 2
    Z = torch.tensor([[0.0], [math.sqrt(square)]], dtype=torch.float64)
    best = SNEkhornLoss(P, kernel).evaluate(Z, tol=1e-13)
    assert best.gradient.abs().max() < 1e-9
    Q = SNEkhornLoss(P, kernel).latent_plan(Z, tol=1e-13)
    torch.testing.assert_close(Q, P, rtol=1e-9, atol=0)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert value(P, factor * Z, kernel) > best.value
    left = drot.embed(SNEkhornLoss(P, kernel), Z)
    assert left.n_iter == 0 and left.converged
    torch.testing.assert_close(left.Z, Z - Z.mean())


def test_eq_snk_remainder():
    """Where forces cancel, 2 sigma sigma / e is near 1 + D^2, and how near: f of the whole map."""
    cloud = points(3, 16, 3)
    for far, near in ((10.0, 15.0), (12.0, 3.0)):
        X = cloud + far * torch.eye(3).double()[0] * (torch.arange(16) // 8)[:, None]
        P = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=4.0, tol=1e-10).plan
        Z = drot.snekhorn(P, kernel="student", tol=1e-8, max_iter=3000).Z
        x, f = Z[8:] - Z[:8, None], dual(Z, "student")
        kernel = 1 / (1 + x.square().sum(dim=2))
        Q = torch.exp(f[:8, None] + f[8:]) * kernel
        pull = (P[:8, 8:] * kernel)[..., None] * x
        left = (((P[:8, 8:] - Q) * kernel)[..., None] * x).sum(dim=(0, 1)).norm()
        assert left < 0.01 * pull.sum(dim=(0, 1)).norm()
        middles = torch.stack([part.mean(dim=0) for part in Z.split(8)])
        D = float((middles[0] - middles[1]).norm())
        r = 2 / D * float((Z - middles.repeat_interleave(8, dim=0)).norm(dim=1).max())
        law = float(f[:8].exp().sum() * f[8:].exp().sum() / P[:8, 8:].sum())
        g = ((1 + r) / (1 - r)) ** 3
        assert 1 < g < near
        assert (1 + D**2 * (1 - r) ** 2) / g <= law <= g * (1 + D**2 * (1 + r) ** 2)


CORNERS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]).double()
SQUARE = torch.tensor([[0.0, 2, 1, 2], [2, 0, 2, 1], [1, 2, 0, 2], [2, 1, 2, 0]]).double() / 5


def test_prp_square():
    """At the perplexity of the statement rows are 2/5, 2/5, 1/5, whatever the square; t-SNE's KL
    falls to 0 like s^-4 as the square grows, and no picture found is at 0."""
    for side in (1.0, 7.0):
        cost, xi = drot.sqeuclidean(side * CORNERS), 5 * 2**-0.8
        found = drot.entropic_affinity(cost, perplexity=xi, diagonal="drop").plan
        torch.testing.assert_close(found, SQUARE, rtol=0, atol=1e-8)
    P, loss = SQUARE, SNELoss(SQUARE, "student")
    found = [
        float(drot.kl_divergence(P, loss.latent_plan(s * CORNERS))) * s**4 for s in (10, 50, 250)
    ]
    assert found == pytest.approx([0.08] * 3, rel=0.02) and found[-1] == pytest.approx(0.08, 1e-3)
    how = {"tol": 1e-9, "max_iter": 40, "on_failure": "ignore"}
    ends = [drot.tsne(P, init=points(k, 4), **how) for k in range(5)]
    assert min(end.kl for end in ends) > 0
    assert max(float(torch.pdist(end.Z).max()) for end in ends) > 30


def test_prp_square_is_held_by_a_self_loop():
    """SNEkhorn grows with the square; its minimum is found, the same from every start."""
    for kernel in KERNELS:
        loss = SNEkhornLoss(SQUARE, kernel)
        values = [loss.evaluate(s * CORNERS, tol=1e-12).value for s in (2, 10, 50, 250)]
        assert all(x < y for x, y in itertools.pairwise(values))
        for k in range(2):
            end = drot.snekhorn(SQUARE, kernel=kernel, init=points(k, 4), tol=1e-7, max_iter=2000)
            assert float(torch.pdist(end.Z).max()) < 5
