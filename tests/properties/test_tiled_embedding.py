"""Plans met in tiles: the objectives, starts and descents of dense plans, in less memory."""

import dataclasses
from functools import partial

import drot
import drot.embeddings.plans
import numpy as np
import pytest
import torch
from drot._core.algebra import leading
from drot.embeddings.descent import metric_of
from drot.embeddings.kernel_matrix import TiledKernel
from drot.embeddings.losses import BernoulliLoss, KernelLoss, SNEkhornLoss, SNELoss
from drot.embeddings.plans import Plan
from drot.embeddings.starts import random_start, spectral_start
from objectives import METHODS, OBJECTIVES, cost, fuzzy, objective, rows, run, stochastic
from plans import in_tiles
from torch.utils._python_dispatch import TorchDispatchMode


@pytest.fixture(autouse=True)
def small_plans_are_not_kept(monkeypatch):
    """Tiles at any size."""
    monkeypatch.setattr(drot.embeddings.plans, "_KEPT", 0)


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


@pytest.mark.parametrize(("block", "scale"), [(7, 10.0), (1000, 0.1)])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_tiles_give_the_dense_numbers(name, block, scale):
    dense, tiled = objective(name, 45), objective(name, 45, block)
    assert dense.P.matrix is not None and tiled.P.matrix is None
    assert tiled.P.block <= block
    same_numbers(dense, tiled, scale * random_start(45))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_passes_are_counted(name, monkeypatch):
    """As often as the tiles of the kernel are computed, an evaluation says it met the kernel."""
    loss, met, tile = objective(name, 45, 45), [], TiledKernel._tile
    monkeypatch.setattr(TiledKernel, "_tile", lambda *told: met.append(1) or tile(*told))
    assert loss.evaluate(random_start(45)).passes == len(met) > 0


def test_a_kernel_that_is_met_once_is_not_kept():
    """What normalises each pair alone asks for no row twice: beside the plan it needs no n x n."""
    graph, Z = 0.1 - 0.1 * torch.eye(45).double(), torch.randn(45, 3).double()
    pairs, sums = BernoulliLoss(graph, kernel="student"), SNELoss(graph, kernel="student")
    assert pairs.kernel_at(Z).kept is None and sums.kernel_at(Z).kept is not None


class Largest(TorchDispatchMode):
    """The largest tensor that torch makes."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.entries = max(self.entries, found.untyped_storage().nbytes() // 8)
        return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["sne", "t-sne", "kept-rows", "t-snekhorn", "largevis", "largevis-symmetric", "umap"]
)
def test_nothing_is_kept(name):
    """No array larger than four tiles is made, by an evaluation or the metric."""
    n, b = 400, 8
    loss, Z = objective(name, n, b), random_start(n)
    with Largest() as made:
        assert (loss.P @ Z).shape == (n, 2)
        loss.evaluate(Z)
        metric_of(loss.weights)(Z)
        assert isinstance(loss.constant, float)
    assert made.entries <= 4 * b * n < n * n / 10
    with Largest() as made:
        spectral_start(loss.P)
    assert made.entries <= 20 * 11 * n  # a space of 20 blocks of 11 vectors
    assert "memory" not in vars(loss)


@pytest.mark.parametrize("kernel", ["gaussian", "student"])
def test_rows_stand_for_their_symmetric_part(kernel):
    """t-SNE of an affinity of rows is that of the symmetrised plan, divergence and all."""
    few = drot.entropic_affinity(cost(45), perplexity=9.0, n_neighbors=20, diagonal="drop")
    for given in (rows(45), rows(45, 16), few):
        dense = SNELoss(drot.symmetrize(given), kernel)
        same_numbers(dense, SNELoss(given, kernel), random_start(45))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_symmetrized_in_tiles(offset):
    """(P + P^T) / 2 to rounding, its logarithm and its marks too, where all costs are huge."""
    C = in_tiles(cost(45).dense() + offset, 7)
    P = drot.entropic_affinity(C, perplexity=9.0, diagonal="drop")
    wanted, found = drot.symmetrize(P), P.symmetrized()
    torch.testing.assert_close(found.plan, wanted, rtol=1e-12, atol=1e-16)
    torch.testing.assert_close(found.log_plan, wanted.log(), rtol=1e-12, atol=1e-12)
    rows = torch.cat([found.rows(rows) for rows, _ in found.tiles(7)])
    torch.testing.assert_close(rows, wanted, rtol=1e-12, atol=1e-16)
    assert found.symmetric and found.residual == P.residual
    torch.testing.assert_close(found.perplexity.log(), drot.row_perplexity(
        wanted / wanted.sum(dim=1, keepdim=True)).log(), rtol=0, atol=1e-9)  # fmt: skip


def test_bad_plans():
    """What a dense plan is refused for, a tiled one is refused for; and a cost that lacks entries,
    or differs from its transpose, is not symmetrised."""
    whole, wide = stochastic(45, 16), drot.sqeuclidean(random_start(9), random_start(7), block=4)
    C = cost(45).dense()
    lopsided = in_tiles(C + C[:, :1], 7)
    few = drot.nearest(cost(45, 7), n_neighbors=20)

    def symmetrized(cost):
        return drot.entropic_affinity(cost, perplexity=9.0, diagonal="drop").symmetrized()

    which = r"must be symmetric; .* drot.symmetric_entropic_aff"
    for call, plan, says in (
        (SNEkhornLoss, drot.entropic_affinity(cost(45, 16), perplexity=9.0), which),
        (
            SNEkhornLoss,
            dataclasses.replace(whole, net=whole.net - 1.0),
            r"row \d+ sums to .*; pass",
        ),
        (SNELoss, whole, "mass on its diagonal"),
        (BernoulliLoss, whole, "mass on its diagonal"),
        (SNELoss, dataclasses.replace(rows(9, 4), cost=wide), r"square .* got \(9, 7\)"),
        (partial(BernoulliLoss, repulsion=0.1), rows(45, 16), r"at row \d+, column \d+, above rep"),
        (symmetrized, few, "finite for all pairs"),
        (symmetrized, lopsided, "symmetric"),
    ):
        with pytest.raises(ValueError, match=says):
            call(plan)


@pytest.mark.parametrize("make", [stochastic, rows, fuzzy])
def test_spectral_start_in_tiles(make):
    """The dense eigenvectors, signs and scale included, to 1e-8."""
    for n, q in ((30, 2), (200, 3)):
        wanted = spectral_start(make(n, None), n_components=q)
        found = spectral_start(make(n, 16), n_components=q)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-8 * float(wanted.abs().max()))


def test_leading_eigenvectors():
    """A matrix with a known spectrum, close eigenvalues among them; few products."""
    n, rng, calls = 400, np.random.default_rng(0), []
    U = torch.from_numpy(np.linalg.qr(rng.normal(size=(n, n)))[0])
    values = torch.linspace(-0.5, 0.9, n, dtype=torch.float64)
    values[-4:] = torch.tensor([0.95, 0.99, 0.995, 1.0])
    A = (U * values) @ U.T
    start = torch.from_numpy(rng.normal(size=(n, 12)))
    found, vectors = leading(lambda v: calls.append(v.shape) or A @ v, start, 4, 1e-10)
    torch.testing.assert_close(found, values[-4:], rtol=0, atol=1e-10)
    cosines = (vectors * U[:, -4:]).sum(dim=0).abs()
    torch.testing.assert_close(cosines, torch.ones_like(cosines), rtol=0, atol=1e-9)
    assert len(calls) <= 40 and all(shape == (n, 12) for shape in calls)


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
    run(name, 40, 16, solver="adam", max_iter=3, on_failure="ignore")
