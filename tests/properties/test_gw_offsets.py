"""A number that is added to both similarities changes nothing; nor does the origin of a cloud."""

from __future__ import annotations

import itertools

import drot
import numpy as np
import pytest
import torch
from drot.gromov.contraction import standard
from plans import cloud, energy, soft, weights
from sklearn.cluster import KMeans

DTYPES = {torch.float64: 2.0**30, torch.float32: 2.0**12}  # offsets that leave each entry exact


def groups(n: int = 40, seed: int = 0, apart: float = 3) -> torch.Tensor:
    """Four clusters in space, rounded so that their distances are multiples of 2^-8."""
    X = cloud(n, 3, seed) + apart * cloud(4, 3, seed + 1)[torch.arange(n) % 4]
    return (16 * X).round() / 16


def distances(dtype: torch.dtype, n: int = 40, seed: int = 0) -> torch.Tensor:
    X = groups(n, seed)
    return torch.cdist(X, X).square().mul(256).round().div(256).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_barycentre_of_similarities_with_an_offset(dtype):
    """The plan and the objective of the problem without, and its structure plus the offset."""
    C, offset = distances(dtype), DTYPES[dtype]
    ask = dict(init="random", weights_x=weights(40))
    plain, far = drot.srgw_barycenter(C, 4, **ask), drot.srgw_barycenter(offset - C, 4, **ask)
    tol = 1e-9 if dtype == torch.float64 else 1e-4
    assert far.objective == pytest.approx(plain.objective, rel=tol) and far.n_iter > 0
    assert torch.equal(far.labels, plain.labels)
    found, wanted = offset - far.structure.double(), plain.structure.double()
    torch.testing.assert_close(found, wanted, rtol=0, atol=2 * torch.finfo(dtype).eps * offset)
    np.testing.assert_allclose(far.values, plain.values, rtol=tol)
    assert far.trace[-1] == far.objective


@pytest.mark.parametrize(
    ("dtype", "a"),
    [(torch.float64, 1e-7), (torch.float64, 1e-8), (torch.float32, 1e-3), (torch.float32, 1e-4)],
    ids=str,
)
def test_barycentre_beside_all_memberships(dtype, a):
    """1 - a D has hard best plans as -D has: two clusters of nine points, all of them tried."""
    D = torch.cdist(cloud(9), cloud(9)).square()
    C = (1 - a * D).to(dtype)
    A, least = C.double(), np.inf
    for chosen in itertools.product([0, 1], repeat=8):
        T = torch.eye(2).double()[[0, *chosen]]  # (9, 2)
        mean = T.T @ A @ T / torch.outer(T.sum(0), T.sum(0)).clamp_min(1)
        least = min(least, float((A - T @ mean @ T.T).square().mean()))
    found = drot.srgw_barycenter(C, 2, init=("kmeans", "spectral", "random"))
    assert found.objective == pytest.approx(least, rel=1e-6, abs=0)


@pytest.mark.parametrize("solver", ["conditional_gradient", "mirror_descent"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_plan_of_similarities_with_an_offset(dtype, solver):
    """It is the one without; the objective is the sum of squares, the residual a share of those."""
    C, offset, w = distances(dtype), DTYPES[dtype], weights(40)
    B = C[:4, :4]
    ask = dict(init=soft(w, 4), solver=solver, weights_x=w, on_failure="ignore")
    plain, far = (
        drot.semi_relaxed_gw(C, B, **ask),
        drot.semi_relaxed_gw(offset + C, offset + B, **ask),
    )
    tol = 1e-9 if dtype == torch.float64 else 1e-5
    assert far.objective == pytest.approx(plain.objective, rel=10 * tol) and far.n_iter > 0
    T = far.plan.double()
    assert far.objective == pytest.approx(energy(C.double(), B.double(), T), rel=10 * tol)
    assert drot.gw_objective(offset + C, offset + B, far.plan) == pytest.approx(far.objective)
    A, S = C.double(), B.double()
    m = w @ A @ w
    size = w @ (A - m).square() @ w + (S - m).square().mean()
    G = drot.gw_gradient(A, S, T)
    gap = float(((G * T).sum() - w @ G.min(dim=1).values) / size)
    assert far.residual == pytest.approx(gap, abs=10 * tol)
    short = drot.semi_relaxed_gw(offset + C, offset + B, refine=False, tol=1e-12, max_iter=3, **ask)
    G = drot.gw_gradient(A, S, short.plan.double())
    gap = float(((G * short.plan).sum() - w @ G.min(dim=1).values) / size)
    assert short.residual == pytest.approx(gap, rel=1e-3) and gap > 1e-4


def test_a_step_of_mirror_descent_with_an_offset():
    """T exp(-gradient / epsilon), rows rescaled, with epsilon in the unit of C squared."""
    C, w, epsilon = distances(torch.float32), weights(40), 300.0
    B, T = C[:4, :4], soft(w, 4)
    found = drot.semi_relaxed_gw(
        C + 4096, B + 4096, weights_x=w, init=T, solver="mirror_descent", epsilon=epsilon,
        refine=False, max_iter=1, on_failure="ignore",
    )  # fmt: skip
    G = drot.gw_gradient(C.double(), B.double(), T)
    wanted = torch.softmax(T.log() - G / epsilon, dim=1) * w[:, None]
    torch.testing.assert_close(found.plan.double(), wanted, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_factors_with_an_offset(dtype):
    """A constant column of the factors adds its square to C and changes nothing."""
    X, root = groups().to(dtype), DTYPES[dtype] ** 0.5
    far = drot.costs.Factored(torch.cat([X, torch.full_like(X[:, :1], root)], dim=1))
    ask = dict(init="random", weights_x=weights(40))
    tol = 1e-9 if dtype == torch.float64 else 1e-4
    plain, found = drot.srgw_barycenter(drot.gram(X), 4, **ask), drot.srgw_barycenter(far, 4, **ask)
    assert found.objective == pytest.approx(plain.objective, rel=tol)
    assert torch.equal(found.labels, plain.labels)
    S = (plain.structure.double() + root**2).to(dtype)
    aim = drot.costs.Factored(torch.cat([X, torch.full_like(X[:, :1], root)], dim=1)[:10])
    for near, other in ((plain.structure, S), (drot.gram(X[:10]), aim)):
        one = drot.semi_relaxed_gw(drot.gram(X), near, **ask)
        two = drot.semi_relaxed_gw(far, other, **ask)
        assert two.objective == pytest.approx(one.objective, rel=20 * tol)


@pytest.mark.parametrize("kind", ["matrix", "tiles", "factors"])
def test_what_a_descent_sees(kind):
    """(C - m) / s with m the mean and s a power of 2 that no deviation exceeds."""
    X, w = groups(), weights(40)
    D = distances(torch.float64)
    cost = {"matrix": D, "tiles": drot.sqeuclidean(X, block=7), "factors": drot.gram(X, block=7)}
    cost = drot.sqeuclidean(X) if kind == "matrix" else cost[kind]
    C = X @ X.T if kind == "factors" else D
    seen, unit = standard(cost, w, "square")
    m = float(w @ C @ w)
    assert unit.offset == pytest.approx(m, rel=1e-12)
    torch.testing.assert_close(seen.dense(), (C - m) / unit.size, rtol=1e-12, atol=1e-12)
    assert np.log2(unit.size) % 1 == 0 and float(seen.dense().abs().max()) <= 1
    assert seen.cost.block == cost.block and seen.cost.symmetric
    torch.testing.assert_close(unit.entries(seen.dense()), C, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1.0, 0.1, 1e9 / 3])
def test_similarities_that_are_all_alike(size):
    """A number all over is no variation: the descent is over at once, at 0."""
    C = torch.full((30, 30), size, dtype=torch.float64)
    found = drot.srgw_barycenter(C, 3)
    assert found.objective < 1e-20 and found.n_iter == 0 and found.residual < 1e-9
    torch.testing.assert_close(
        found.structure[found.weights > 0][:, found.weights > 0].max(), C.max()
    )


def test_an_empty_cluster_has_no_structure():
    """Its rows are 0, whatever the offset."""
    far, w = 1e8 / 3, weights(6)
    C = torch.block_diag(torch.ones(3, 3), torch.ones(3, 3)).double() + far
    T = torch.zeros(6, 3).double()
    T[:3, 0], T[3:, 2] = w[:3], w[3:]
    found = drot.srgw_barycenter(C, 3, init=T, weights_x=w)
    wanted = torch.tensor([[far + 1, 0, far], [0, 0, 0], [far, 0, far + 1]], dtype=torch.float64)
    torch.testing.assert_close(found.structure, wanted, rtol=1e-15, atol=0)
    assert 0 <= found.objective < 1e-14


# -------------------------------------------------------------------------------- one prototype
@pytest.mark.parametrize("loss", ["square", "kl"])
@pytest.mark.parametrize("init", ["kmeans", "spectral", "random", "product"])
def test_all_points_in_one_place(loss, init):
    """One number stands for all of C: the mean, whose objective is the spread."""
    C, w = distances(torch.float64), weights(40)
    one = drot.srgw_barycenter(C, 1, weights_x=w, loss=loss)
    found = drot.semi_relaxed_gw(C, one.structure, weights_x=w, loss=loss, init=init)
    assert found.objective == pytest.approx(one.objective, rel=1e-12)
    assert float(one.structure) == pytest.approx(float(w @ C @ w))
    assert found.objective == pytest.approx(energy(C, one.structure, w[:, None], loss), rel=1e-9)
    torch.testing.assert_close(found.plan, w[:, None])
    assert drot.gw_objective(C, one.structure, found.plan, loss=loss) == found.objective
    with pytest.raises(ValueError, match="cost_z needs at least 1 point; got"):
        drot.semi_relaxed_gw(C, torch.zeros(0, 0).double())


# ------------------------------------------------------------------------------- kernel k-means
@pytest.mark.parametrize(("dtype", "far"), [(torch.float64, 1e8), (torch.float32, 1e4)], ids=str)
def test_kernel_kmeans_far_from_the_origin(dtype, far):
    """The inertia of scikit-learn's k-means, wherever the cloud lies."""
    X, w = (groups(apart=9) + far).to(dtype), weights(40)
    found = drot.kernel_kmeans(drot.gram(X), 4, weights_x=w)
    x = X.double() - far
    peer = KMeans(4, n_init=20, random_state=0).fit(x.numpy(), sample_weight=w.numpy())
    assert found.objective == pytest.approx(peer.inertia_, rel=1e-6 if far > 1e5 else 1e-4)
    assert len(set(zip(found.labels.tolist(), peer.labels_.tolist(), strict=True))) == 4


@pytest.mark.parametrize("kind", ["matrix", "tiles", "factors"])
def test_kernel_kmeans_sees_differences_alone(kind):
    """-D / 2 and a number added to it have the clusters of the cloud, and their inertia."""
    X, w = groups(apart=9), weights(40)
    if kind == "factors":
        D = drot.factored_sqeuclidean(X)
        far = torch.full_like(X[:, :1], 2.0**25)
        cost = drot.costs.Factored(
            torch.cat([-D.left / 2, far], dim=1), torch.cat([D.right, far], dim=1), points=X
        )
    else:
        cost = drot.pairwise(
            lambda x, y: 2.0**42 - (x[:, None] - y).square().sum(dim=2) / 2,  # without rounding
            X,
            block=7 if kind == "tiles" else None,
        )
    found = drot.kernel_kmeans(cost, 4, weights_x=w)
    peer = KMeans(4, n_init=20, random_state=0).fit(X.numpy(), sample_weight=w.numpy())
    assert found.objective == pytest.approx(peer.inertia_, rel=1e-10)
    assert len(set(zip(found.labels.tolist(), peer.labels_.tolist(), strict=True))) == 4


@pytest.mark.parametrize("same", [True, False])
def test_factors_of_a_shifted_similarity(same):
    """C - m for the mean m."""
    X, w = cloud(9) + 3, weights(9)
    cost = (
        drot.costs.Factored(X)
        if same
        else drot.costs.Factored(X, X @ torch.diag(torch.arange(1.0, 4)).double())
    )
    C = cost.dense()
    found, m = cost.shifted(w)
    assert m == pytest.approx(float(w @ C @ w), rel=1e-12)
    torch.testing.assert_close(found.dense(), C - m)
