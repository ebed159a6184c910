"""Starts that a small slope would take for solutions: too small, too wide, flat."""

from __future__ import annotations

import math

import drot
import numpy as np
import objectives
import pytest
import torch
from clouds import cloud
from drot.embeddings.embed import embed
from drot.embeddings.losses import SNEkhornLoss, SNELoss
from drot.embeddings.starts import apart, at_scale
from objectives import METHODS
from torch import Tensor

N = 60


def points() -> Tensor:
    X = torch.from_numpy(cloud("gaussian", 3, N, 4))
    X[:, 0] += 4.0 * (torch.arange(N) % 3)
    return X


def rows() -> Tensor:
    return drot.entropic_affinity(drot.sqeuclidean(points()), 8.0, diagonal="drop").plan


def doubly() -> Tensor:
    return drot.symmetric_entropic_affinity(drot.sqeuclidean(points()), 8.0).plan


def graph() -> Tensor:
    return drot.fuzzy_union(drot.umap_membership(drot.sqeuclidean(points()), 8))


PLANS = {objectives.rows: rows, objectives.joint: lambda: drot.symmetrize(rows())}
PLANS |= {objectives.stochastic: doubly, objectives.fuzzy: graph}


def run(name: str, init) -> drot.embeddings.Embedding:
    plan, method = METHODS[name]
    return method(PLANS[plan](), init=init, tol=1e-3)


@pytest.mark.parametrize("name", METHODS)
def test_size_of_a_start(name):
    """From any size the picture is as good as from size 1, and its slope was small for a reason."""
    shape = drot.pca_start(points())
    wanted = run(name, shape).kl
    for size in (1e-30, 1e-4, 1e3, 1e6, 1e30, *[1e200] * ("snekhorn" in name)):
        found = run(name, size * shape)
        assert found.converged and found.n_iter > 5
        assert found.kl < 1.25 * wanted + 0.2, size  # 1.06 times, when tried


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [1e-30, 1e-4, 9e-3])
def test_small_starts_keep_their_shape(dtype, size):
    """They become the start of spread 0.1; what is not small stays to the bit."""
    Z = torch.tensor([[3.0, 0.0], [-1.0, 1.0], [-2.0, -1.0]], dtype=dtype)
    Z = Z / Z.square().mean().sqrt()
    never = {"value": lambda _: pytest.fail("asked for a value")}
    torch.testing.assert_close(at_scale(size * Z, **never), 0.1 * Z)
    for kept in (Z, 0.02 * Z, 90 * Z, torch.zeros_like(Z)):
        assert at_scale(kept, **never) is kept


def test_wide_starts_shrink_while_the_objective_falls():
    """By tens; a value that is not a number is worse than any, and where it rises that is all."""
    Z = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    best = lambda size: lambda Z: abs(math.log10(float(Z[0, 0]) / size))  # noqa: E731
    assert at_scale(1e8 * Z, best(1e5))[0] == pytest.approx(1e5)
    assert at_scale(1e8 * Z, best(1e9))[0] == 1e8
    assert 9 < at_scale(1e8 * Z, best(1.0))[0] < 101  # and no farther
    broken = lambda Z: math.inf if Z[0, 0] > 1e4 else float(Z[0, 0])  # noqa: E731
    assert 9 < at_scale(1e300 * Z, broken)[0] < 101
    level = lambda Z: 1.0 + 1e-15 * float(Z[0, 0] < 1e5)  # noqa: E731
    assert 9 < at_scale(1e8 * Z, level)[0] < 101


def test_a_solution_with_far_parts_is_left():
    """Parts that exchange little mass belong far apart: the array of such a solution stays."""
    mass = 1e-7
    P = torch.tensor([[1 - mass, mass], [mass, 1 - mass]], dtype=torch.float64)
    Z = torch.tensor([[0.0], [math.sqrt(1 / mass - 2)]], dtype=torch.float64)
    found = embed(SNEkhornLoss(P, "student"), Z)
    assert found.n_iter == 0 and found.converged
    torch.testing.assert_close(found.Z, Z - Z.mean())


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("axis", ["first", "oblique"])
def test_a_start_on_a_line_leaves_it(name, axis):
    """As good as the plane start of the same method, and wide in two directions."""
    X = drot.pca_start(points())
    direction = torch.tensor([[1.0, 0.0]] if axis == "first" else [[0.6, 0.8]]).double()
    found = run(name, X[:, :1] @ direction)
    across, along = torch.linalg.svdvals(found.Z).flip(0)
    assert across > 0.03 * along  # 0.09 to 0.38; the noise is 0.01
    assert found.kl < 1.25 * run(name, X).kl + 0.2


def test_noise_across_a_flat_start():
    """1 % of the spread in the missing directions alone, the same for a seed, and only there."""
    Z = torch.from_numpy(cloud("gaussian", 5, N, 3))
    Z -= Z.mean(dim=0)
    P = doubly()
    assert apart(Z, P, 0) is Z
    plane = torch.linalg.qr(torch.from_numpy(cloud("gaussian", 6, 3, 3))).Q  # third axis missing
    flat = Z * torch.tensor([1.0, 1.0, 0.0]) @ plane.T
    for seed in (0, 1):
        moved = apart(flat, P, seed)
        assert torch.equal(moved, apart(flat, P, seed))
        change = (moved - flat) @ plane
        assert change[:, :2].abs().max() < 1e-12
        spread = float(flat.square().sum(dim=1).mean().sqrt())
        assert float(change[:, 2].square().mean().sqrt()) == pytest.approx(0.01 * spread, rel=0.3)
    assert not torch.equal(apart(flat, P, 0), apart(flat, P, 1))
    thin = Z * torch.tensor([1.0, 1.0, 1e-4])  # thin is not flat
    assert apart(thin, P, 0) is thin


def test_few_points_leave_a_line():
    """Three centred points span two dimensions of three; two stay on their line."""
    Z = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]).double()
    moved = apart(Z, torch.full((3, 3), 1 / 3).double(), 0)
    assert torch.linalg.matrix_rank(moved - moved.mean(dim=0)) == 2
    two = drot.tsne([[0, 1.0], [1, 0]], init=[[0.0, 0], [1, 0]], max_iter=1, on_failure="ignore")
    assert (two.Z[:, 1] == 0).all()
    alone = SNELoss(np.eye(5), diagonal="keep")  # nobody has a neighbour
    assert embed(alone, np.zeros((5, 2)), on_failure="ignore").n_iter > 0


@pytest.mark.parametrize("estimator", [drot.TSNE, drot.SNEkhorn])
def test_columns_of_an_estimators_start(estimator):
    """They are n_components, or the sentence says both."""
    with pytest.raises(
        ValueError, match=r"^init has 2 columns and n_components=3; make them equal"
    ):
        estimator(n_components=3, perplexity=8, init=drot.pca_start(points())).fit(points())
    found = estimator(n_components=3, perplexity=8, init=drot.pca_start(points(), n_components=3))
    assert found.fit(points().numpy()).embedding_.shape == (N, 3)


def test_too_few_points_for_the_spectral_start():
    """The sentence says which start is meant; others do."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    says = "^n_components=2 is too many for the spectral start of 3 points, which has up to 1; "
    with pytest.raises(ValueError, match=says):
        drot.SNEkhorn(perplexity=1.5).fit(X)
    assert drot.SNEkhorn(perplexity=1.5, init="random").fit(X).embedding_.shape == (3, 2)


@pytest.mark.parametrize("q", [N - 1, N + 5])
def test_more_dimensions_than_points_span(q):
    """From a start by chance an embedding, if only in the dimensions that the points span."""
    found = drot.tsne(drot.symmetrize(rows()), n_components=q, init="random")
    assert found.converged and found.Z.shape == (N, q)
    assert int((torch.linalg.svdvals(found.Z) > 1e-9 * found.size).sum()) <= N - 1


def test_spectral_start_of_two_points():
    """The least that a plan can hold: Lanczos has no room there."""
    Z = drot.spectral_start([[0.0, 1.0], [1.0, 0.0]], n_components=1)
    torch.testing.assert_close(Z, torch.tensor([[1.0], [-1.0]], dtype=torch.float64))


def test_a_start_of_any_size_keeps_its_shape():
    """Squares of its entries neither overflow nor vanish."""
    Z = torch.randn(30, 2, dtype=torch.float64)
    tiny = at_scale(Z * 1e-170, lambda Z: 0.0)
    torch.testing.assert_close(tiny, 0.1 * Z / Z.square().mean().sqrt())
