"""Plans met in tiles: the objectives, starts and descents of dense plans, in less memory."""

from __future__ import annotations

import dataclasses

import drot
import drot._core.eigen
import drot.embeddings.descent
import drot.embeddings.kernels
import drot.embeddings.plans
import numpy as np
import pytest
import torch
from clouds import cloud
from drot._core.eigen import leading
from drot.embeddings.descent import metric_of
from drot.embeddings.losses import BernoulliLoss, KernelLoss, SNEkhornLoss, SNELoss
from drot.embeddings.plans import Plan
from drot.embeddings.starts import random_start, spectral_start
from memory import needs_linux, numbers
from objectives import (
    BERNOULLI,
    DEVICE,
    METHODS,
    OBJECTIVES,
    cost,
    fuzzy,
    joint,
    objective,
    rows,
    run,
    stochastic,
)  # fmt: skip
from torch.utils._python_dispatch import TorchDispatchMode

# Those whose plan in tiles is the dense one.
TILED = [name for name, (plan, _) in OBJECTIVES.items() if plan is not joint]


# ---------------------------------------------------------------------------------- objectives
def same_numbers(dense: KernelLoss, tiled: KernelLoss, Z: torch.Tensor) -> None:
    """Value, constant, gradient, dual, forces and plan, to 1e-12."""
    a, b = (loss.evaluate(Z, tol=1e-13) for loss in (dense, tiled))
    assert b.value == pytest.approx(a.value, rel=1e-12)
    assert tiled.constant == pytest.approx(dense.constant, rel=1e-12)
    assert tiled.mass == pytest.approx(dense.mass, rel=1e-13)
    pairs = [(b.gradient, a.gradient), (tiled.latent_plan(Z), dense.latent_plan(Z))]
    pairs += [(b.attraction, a.attraction), (b.repulsion, a.repulsion)]
    pairs += [] if a.dual is None else [(b.dual, a.dual)]
    for found, wanted in pairs:
        size = float(wanted.abs().max())
        torch.testing.assert_close(found, wanted, rtol=0, atol=2e-12 * max(1.0, size))


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("block", [7, 16, 1000])
@pytest.mark.parametrize("name", TILED)
def test_tiles_give_the_dense_numbers(name, block, scale):
    dense, tiled = objective(name, 45), objective(name, 45, block)
    assert isinstance(dense.plan, torch.Tensor) and isinstance(tiled.plan, Plan)
    assert tiled.P.block <= block
    same_numbers(dense, tiled, scale * random_start(45))


@pytest.mark.parametrize(("entries", "tiles"), [(1, 3), (500, 3), (2**30, 1)])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_tiles_of_a_plan_that_is_kept(name, entries, tiles, monkeypatch):
    """16, 22 or all rows at a time."""
    whole = objective(name, 45)
    monkeypatch.setattr(drot.embeddings.plans, "tile_entries", lambda _: 2 * entries)
    parts = objective(name, 45)
    assert len(list(parts.P.tiles())) == tiles
    same_numbers(whole, parts, random_start(45))


class Largest(TorchDispatchMode):
    """The largest tensor that torch makes."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.entries = max(self.entries, found.untyped_storage().nbytes() // 8)
        return found


@pytest.mark.parametrize("name", TILED)
def test_nothing_is_kept(name):
    """No array larger than four tiles is made, by an evaluation or the metric."""
    n, b = 500, 8
    loss, Z = objective(name, n, b), random_start(n)
    with Largest() as made:
        assert (loss.plan @ Z).shape == (n, 2)
        loss.evaluate(Z)
        metric_of(loss.attraction)(Z)
        assert isinstance(loss.constant, float)
    assert made.entries <= 4 * b * n < n * n / 10
    with Largest() as made:
        spectral_start(loss.plan)
    assert made.entries <= 20 * 11 * n  # a space of 20 blocks of 11 vectors
    assert "memory" not in vars(loss)


@pytest.mark.parametrize("kernel", ["gaussian", "student"])
def test_rows_stand_for_their_symmetric_part(kernel):
    """t-SNE of a tiled affinity of rows moves as that of the symmetrised plan; its divergence is
    larger by what symmetrising costs."""
    P, Z = rows(45), random_start(45)
    dense, tiled = SNELoss(drot.symmetrize(P), kernel), SNELoss(rows(45, 16), kernel)
    a, b = dense.evaluate(Z), tiled.evaluate(Z)
    assert b.value == pytest.approx(a.value, rel=1e-12)
    torch.testing.assert_close(b.gradient, a.gradient, rtol=0, atol=1e-11)
    kl = float(drot.kl_divergence(P.plan, tiled.latent_plan(Z)))
    assert b.value + tiled.constant == pytest.approx(kl, abs=1e-9)
    assert kl > a.value + dense.constant + 0.1


@pytest.mark.parametrize("name", TILED)
def test_passes_are_counted(name):
    """Once for pairs, twice for a softmax; for SNEkhorn once per product and once more."""
    found = objective(name, 45, 16).evaluate(random_start(45))
    expected = found.products + 1 if "snekhorn" in name else 2
    assert found.passes == pytest.approx(1 if name in BERNOULLI else expected)


@pytest.mark.parametrize("kernel", ["gaussian", "student"])
def test_float32_in_tiles(kernel):
    """Row sums within 1.5e-5, the value to 1e-6, the gradient to 5e-5 of its largest entry."""
    double = stochastic(600, 128)
    single = dataclasses.replace(
        double, base=double.base.float(), net=double.net.float(),
        cost=drot.sqeuclidean(cloud("gaussian", 0, 600, 5).astype(np.float32), block=128),
    )  # fmt: skip
    Z = 3 * random_start(600)
    a = SNEkhornLoss(double, kernel).evaluate(Z, tol=1e-9)
    b = SNEkhornLoss(single, kernel).evaluate(Z.float(), tol=1e-6)
    D = torch.cdist(Z, Z).square()
    C = D if kernel == "gaussian" else torch.log1p(D)
    sums = torch.exp(b.dual.double()[:, None] + b.dual.double() - C).sum(dim=1)
    assert float((sums - 1).abs().max()) <= 1.5e-5
    assert b.value == pytest.approx(a.value, rel=1e-6)
    assert b.gradient.dtype == torch.float32
    size = max(1.0, float(a.gradient.abs().max()))
    torch.testing.assert_close(b.gradient.double(), a.gradient, rtol=0, atol=5e-5 * size)


# ---------------------------------------------------------------------- plans that do not fit
def test_bad_plans():
    """What a dense plan is refused for, a tiled one is refused for."""
    half = stochastic(45, 16)
    half = dataclasses.replace(half, net=half.net - 1.0)
    wide = drot.sqeuclidean(cloud("gaussian", 0, 9, 2), cloud("gaussian", 1, 7, 2), block=4)
    wide = dataclasses.replace(rows(9, 4), cost=wide)
    which = r"must be symmetric; .* drot.symmetric_entropic_aff"
    for call, plan, says in (
        (SNEkhornLoss, drot.entropic_affinity(cost(45, 16), 9.0), which),
        (SNEkhornLoss, drot.self_tuning_affinity(cost(45, 16)), which),
        (SNEkhornLoss, half, r"row \d+ sums to .*; pass"),
        (SNELoss, stochastic(45, 16), "mass on its diagonal"),
        (BernoulliLoss, stochastic(45, 16), "mass on its diagonal"),
        (SNELoss, wide, r"square \(n, n\) .* got shape \(9, 7\)"),
    ):
        with pytest.raises(ValueError, match=says):
            call(plan)
    with pytest.raises(ValueError, match=r"at row \d+, column \d+, above repulsion=0.1"):
        BernoulliLoss(rows(45, 16), repulsion=0.1)


# ------------------------------------------------------------------------------------- starts
@pytest.mark.parametrize("make", [stochastic, rows, fuzzy])
def test_spectral_start_in_tiles(make):
    """The dense eigenvectors, signs and scale included, to 1e-8."""
    for n, q in ((30, 2), (200, 3)):
        wanted = spectral_start(make(n, None), n_components=q)
        found = spectral_start(make(n, 16), n_components=q)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-8 * float(wanted.abs().max()))


def counted(A: torch.Tensor):
    """v -> A v, and the shapes of what it was asked for."""
    calls = []
    return lambda v: calls.append(v.shape) or A @ v, calls


def same_directions(found: torch.Tensor, wanted: torch.Tensor) -> None:
    cosines = (found * wanted).sum(dim=0).abs()
    torch.testing.assert_close(cosines, torch.ones_like(cosines), rtol=0, atol=1e-9)


def test_leading_eigenvectors():
    """A matrix with a known spectrum, close eigenvalues among them; few products."""
    n, rng = 300, np.random.default_rng(0)
    U = torch.from_numpy(np.linalg.qr(rng.normal(size=(n, n)))[0])
    values = torch.cat([torch.linspace(-0.5, 0.9, n - 4), torch.tensor([0.95, 0.99, 0.995, 1.0])])
    product, calls = counted((U * values.double()) @ U.T)
    found, vectors = leading(product, torch.from_numpy(rng.normal(size=(n, 12))), 4, 1e-10)
    torch.testing.assert_close(found, values[-4:].double(), rtol=0, atol=1e-10)
    same_directions(vectors, U[:, -4:])
    assert len(calls) <= 40 and all(shape == (n, 12) for shape in calls)


@pytest.mark.parametrize("passes", [1, 2, 5])
def test_leading_eigenvectors_of_a_few_products(passes, monkeypatch):
    """With the products spent: the best of the space that they span, no more, no less."""
    n, b, rng = 200, 3, np.random.default_rng(0)
    A = torch.from_numpy(rng.normal(size=(n, n)))
    A = A + A.T
    product, calls = counted(A)
    start = torch.from_numpy(rng.normal(size=(n, b)))
    monkeypatch.setattr(drot._core.eigen, "_PASSES", passes)
    values, vectors = leading(product, start, 2, 1e-10)
    assert calls == [(n, b)] * passes and vectors.shape == (n, 2)
    blocks = [torch.linalg.qr(start).Q]  # of start, A start, ..., A^(passes - 1) start
    for _ in range(passes - 1):
        blocks.append(torch.linalg.qr(A @ blocks[-1]).Q)
    space = torch.linalg.qr(torch.cat(blocks, dim=1)).Q
    best, turn = torch.linalg.eigh(space.T @ A @ space)
    torch.testing.assert_close(values, best[-2:], rtol=0, atol=1e-9)
    same_directions(vectors, space @ turn[:, -2:])


# ------------------------------------------------------------------------------------ descent
@pytest.mark.parametrize("most", [1, 2, 4])
def test_near_laplacian_of_a_few_products(most, monkeypatch):
    """With the products spent: in each column the nearest to B^-1 g, in the norm of B, of the
    space that D^-1 g, ..., (D^-1 B)^(most - 1) D^-1 g span, D the diagonal of B."""
    n = 20
    P = stochastic(n, 16)  # the nineteen others are among the twenty largest
    W, P = P.plan.fill_diagonal_(0), Plan(P)
    B = (torch.diag(4 * W.sum(dim=1) + 1e-3) - 4 * W).numpy()
    g = random_start(n)
    monkeypatch.setattr(drot.embeddings.descent, "_CG_MOST", most)
    found = metric_of(P)(g).numpy()
    for column in range(2):
        r = g[:, column].numpy()
        space = [r / np.diag(B)]
        for _ in range(most - 1):
            space.append(B @ space[-1] / np.diag(B))
        K = np.stack(space, axis=1)
        wanted = K @ np.linalg.solve(K.T @ B @ K, K.T @ r)
        np.testing.assert_allclose(found[:, column], wanted, rtol=0, atol=1e-8)
        assert np.abs(B @ wanted - r).max() > 1e-5  # not there yet


@pytest.mark.parametrize("n", [9, 60])
def test_near_laplacian(n):
    """B of the twenty largest weights of a row, or of all, both ways, against a dense product."""
    P = stochastic(n, 16 if n > 16 else 4)
    W, P = P.plan.fill_diagonal_(0), Plan(P)
    values, columns = W.topk(min(20, n - 1), dim=1)
    near = torch.zeros_like(W).scatter_(1, columns, values)
    near = torch.maximum(near, near.T)
    g = random_start(n)
    B = torch.diag(4 * near.sum(dim=1) + 1e-3) - 4 * near
    torch.testing.assert_close(B @ metric_of(P)(g), g, rtol=0, atol=1e-5)
    assert metric_of(P)(g.float()).dtype == torch.float32
    assert (metric_of(P)(torch.zeros_like(g)) == 0).all()


@pytest.mark.parametrize("name", METHODS)
def test_methods_in_tiles(name):
    """A tiled plan works everywhere; from near a dense minimum the descent ends there."""
    whole = run(name, 40, init="spectral", tol=1e-5)
    parts = run(name, 40, 16, init=whole.Z + 0.01 * random_start(40), tol=1e-5)
    assert parts.converged and parts.value == pytest.approx(whole.value, rel=1e-6)
    again = run(name, 40, 16)  # from the spectral start
    assert again.converged and (np.diff(again.values) <= 1e-9 * abs(again.value)).all()
    assert abs(again.kl) < 10 * abs(whole.kl) + 1
    for solver in ("adam", "spectral"):
        run(name, 40, 16, solver=solver, max_iter=3, on_failure="ignore")


# ------------------------------------------------------------------------------------- memory
@needs_linux
def test_scores_in_bounded_memory():
    """Twenty arrays of 2^18 entries, where one of all distances would take 275 MiB."""
    preserved, trust, area, taken = numbers("""
from memory import forget_peak, peak
import drot, numpy as np, torch
torch.set_num_threads(1)
rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 3)) * [1.0, 1.0, 0.1]
Z = X[:, :2] + 0.01 * rng.normal(size=(6000, 2))
drot.metrics.neighborhood_curve(X[:50], Z[:50])  # loads what it needs
before = forget_peak()
print(drot.neighborhood_preservation(X, Z, 10), drot.metrics.trustworthiness(X, Z, 10))
print(drot.metrics.neighborhood_curve(X, Z).area, (peak() - before) / 2**20)
""")
    assert 0.3 < preserved < area < trust < 1
    assert taken < 50


# ------------------------------------------------------------------------------------- devices
@pytest.mark.parametrize("block", [None, 16])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_devices_agree(name, block, monkeypatch, gpu):
    """Another device gives the same value, forces, start and metric, to rounding."""
    here, Z = objective(name, 45, block), random_start(45)
    monkeypatch.setitem(DEVICE, "name", gpu)
    there = objective(name, 45, block)
    a, b = here.evaluate(Z, tol=1e-12), there.evaluate(Z.to(gpu), tol=1e-12)
    assert b.value == pytest.approx(a.value, rel=1e-8) and b.gradient.device.type == gpu
    for x, y in ((b.attraction, a.attraction), (b.repulsion, a.repulsion)):
        torch.testing.assert_close(x.cpu(), y, rtol=0, atol=1e-6)
    starts = [spectral_start(loss.plan).cpu() for loss in (here, there)]
    torch.testing.assert_close(starts[1], starts[0], rtol=0, atol=1e-6)
    steps = [metric_of(x.attraction)(Z.to(x.plan.device)).cpu() for x in (here, there)]
    torch.testing.assert_close(steps[1], steps[0], rtol=1e-4, atol=1e-4)
