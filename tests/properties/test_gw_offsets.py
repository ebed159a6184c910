"""Offsets and units of similarities change nothing; nor does the origin of a cloud."""

import math

import drot
import numpy as np
import pytest
import torch
from plans import cloud, energy, problem, soft, weights
from sklearn.cluster import KMeans

DTYPES = {torch.float64: 2.0**30, torch.float32: 2.0**12}  # offsets that leave each entry exact
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
kinds = pytest.mark.parametrize("kind", ["matrix", "tiles", "factors"])


def groups(apart: float = 3) -> torch.Tensor:
    """Four clusters in space, rounded so that their distances are multiples of 2^-8."""
    X = cloud(40, 3) + apart * cloud(4, 3, 1)[torch.arange(40) % 4]
    return (16 * X).round() / 16


def distances(dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.cdist(groups(), groups()).square().mul(256).round().div(256).to(dtype)


@pytest.mark.parametrize("kind", ["matrix", "factors"])
@dtypes
def test_barycentre_of_similarities_with_an_offset(dtype, kind):
    """The plan and the objective of the problem without, and its structure plus the offset.

    Two starts may end in the same places in another order, and then rounding says which is lower.
    """
    offset, eps = DTYPES[dtype], torch.finfo(dtype).eps
    if kind == "matrix":
        C = distances(dtype)
        moved = offset - C
    else:  # a constant column of the factors adds its square to C
        X = groups().to(dtype)
        far = torch.full_like(X[:, :1], offset**0.5)
        C, moved = drot.gram(X), drot.costs.Factored(torch.cat([X, far], dim=1))
    ask = dict(init="random", weights=weights(40))
    plain, far = drot.srgw_barycenter(C, 4, **ask), drot.srgw_barycenter(moved, 4, **ask)
    tol = 1e-9 if dtype == torch.float64 else 1e-4
    assert far.objective == pytest.approx(plain.objective, rel=tol) and far.n_iter > 0
    there = torch.stack([far.labels[plain.labels == k][0] for k in range(4)])
    assert torch.equal(far.labels, there[plain.labels]) and len(there.unique()) == 4
    sign = -1 if kind == "matrix" else 1
    found = sign * (far.structure.double()[there][:, there] - offset)
    wanted = plain.structure.double()
    torch.testing.assert_close(found, wanted, rtol=0, atol=2 * eps * offset)
    np.testing.assert_allclose(far.ends, plain.ends, rtol=tol)
    assert far.values[-1] == far.objective


@pytest.mark.parametrize("solver", ["conditional_gradient", "mirror_descent"])
@dtypes
def test_plan_of_similarities_with_an_offset(dtype, solver):
    """It is the one without; the objective is the sum of squares, the residual a share of those."""
    C, offset, w = distances(dtype), DTYPES[dtype], weights(40)
    B, tol = C[:4, :4], 1e-9 if dtype == torch.float64 else 1e-5
    A, S = C.double(), B.double()
    ask = dict(init=soft(w, 4), solver=solver, weights_x=w, on_failure="ignore")
    plain = drot.semi_relaxed_gw(C, B, **ask)
    far = drot.semi_relaxed_gw(offset + C, offset + B, **ask)
    assert far.objective == pytest.approx(plain.objective, rel=10 * tol) and far.n_iter > 0
    assert far.objective == pytest.approx(energy(A, S, far.plan.double()), rel=10 * tol)
    assert drot.gw_objective(offset + C, offset + B, far.plan) == pytest.approx(far.objective)
    slope = drot.gromov.gw_gradient(offset + C, offset + B, far.plan)
    half = float((slope * far.plan).sum(dtype=torch.float64)) / 2
    assert half == pytest.approx(far.objective, rel=tol)
    size = w @ (A - w @ A @ w).square() @ w + (S - w @ A @ w).square().diagonal().min()

    def gap(T) -> float:
        G = drot.gromov.gw_gradient(A, S, T)
        return float(((G * T).sum() - w @ G.min(dim=1).values) / size)

    assert far.residual == pytest.approx(gap(far.plan.double()), abs=10 * tol)
    short = drot.semi_relaxed_gw(offset + C, offset + B, refine=False, tol=1e-12, max_iter=3, **ask)
    assert short.residual == pytest.approx(gap(short.plan.double()), rel=1e-3)
    assert short.residual > 1e-4


@pytest.mark.parametrize("init", ["kmeans", "spectral"])
@pytest.mark.parametrize("seed", range(4))
def test_starts_are_made_of_what_the_square_loss_sees(init, seed):
    """Neither an offset nor a unit: the first plan of each run is the same."""
    A, B = (M.mul(256).round().div(256) for M in problem(seed, 30, 4))
    ask = dict(init=init, random_state=seed, callback=lambda *_: True)
    begin = []
    for size, offset in ((1, 0), (1, 2.0**20), (8, 0)):
        C, structure = size * A + offset, size * B + offset
        plans = drot.srgw_barycenter(C, 4, **ask), drot.semi_relaxed_gw(C, structure, **ask)
        begin.append(torch.stack([found.plan for found in plans]))
    assert torch.equal(begin[1], begin[0]) and torch.equal(begin[2], begin[0])


def test_an_empty_cluster_has_no_structure():
    """Its rows are 0, whatever the offset."""
    far, w = 1e8 / 3, weights(6)
    C = torch.block_diag(torch.ones(3, 3), torch.ones(3, 3)).double() + far
    T = torch.zeros(6, 3).double()
    T[:3, 0], T[3:, 2] = w[:3], w[3:]
    found = drot.srgw_barycenter(C, 3, init=T, weights=w)
    wanted = torch.tensor([[far + 1, 0, far], [0, 0, 0], [far, 0, far + 1]], dtype=torch.float64)
    torch.testing.assert_close(found.structure, wanted, rtol=1e-15, atol=0)
    assert 0 <= found.objective < 1e-14


FAR = {"float64": (torch.float64, 1e8, 1e-6), "float32": (torch.float32, 1e4, 1e-4)}


@pytest.mark.parametrize("kind", ["matrix", "tiles", "factors", *FAR])
def test_kernel_kmeans_sees_differences_alone(kind):
    """scikit-learn's k-means of the cloud, wherever it lies; of -D / 2 and a number added to it."""
    X, w, tol = groups(apart=9), weights(40), 1e-10
    far = torch.full_like(X[:, :1], 2.0**25)
    if kind in FAR:
        dtype, origin, tol = FAR[kind]
        moved = (X + origin).to(dtype)
        cost, X = drot.gram(moved), moved.double() - origin
    elif kind == "factors":
        D = drot.factored_sqeuclidean(X)
        sides = torch.cat([-D.left / 2, far], dim=1), torch.cat([D.right, far], dim=1)
        cost = drot.costs.Factored(*sides, points=X)
    else:
        cost = drot.pairwise(
            lambda x, y: 2.0**42 - (x[:, None] - y).square().sum(dim=2) / 2,  # without rounding
            X,
            block=7 if kind == "tiles" else None,
        )
    found = drot.kernel_kmeans(cost, 4, weights=w)
    peer = KMeans(4, n_init=20, random_state=0).fit(X.numpy(), sample_weight=w.numpy())
    assert found.objective == pytest.approx(peer.inertia_, rel=tol)
    assert len(set(zip(found.labels.tolist(), peer.labels_.tolist(), strict=True))) == 4


@kinds
@pytest.mark.parametrize(("dtype", "power"), [(torch.float32, 60), (torch.float64, -460)], ids=str)
def test_the_unit_of_similarities(dtype, power, kind):
    """In another, a power of 2, plans are the same to the bit and objectives follow its square."""
    X = groups().to(dtype)
    ends, plans, values = [], [], []
    for x in (X, X * 2.0 ** (power // 2)):
        C = {
            "matrix": drot.sqeuclidean(x).dense(),
            "tiles": drot.sqeuclidean(x, block=5),
            "factors": drot.factored_sqeuclidean(x),
        }[kind]
        ends.append(drot.srgw_barycenter(C, 3, init="random", n_starts=2))
        plans.append(drot.semi_relaxed_gw(C, ends[-1].structure, init="random", n_starts=2))
        values.append(drot.gw_objective(C, ends[-1].structure, ends[-1].plan))
    for one, other in (ends, plans):
        assert torch.equal(one.plan, other.plan)
        assert other.residual == one.residual and other.n_iter == one.n_iter
        assert other.objective == math.ldexp(one.objective, 2 * power) < math.inf
        assert other.values == tuple(math.ldexp(value, 2 * power) for value in one.values)
    assert ends[0].objective > 0 and ends[0].objective == pytest.approx(values[0], rel=1e-5)
    assert torch.equal(ends[1].structure, ends[0].structure * 2.0**power)
    assert values[1] == math.ldexp(values[0], 2 * power)


def test_the_unit_of_a_table():
    """POT's least cost is that of a table of entries about 1."""
    one, other = (drot.coot_clustering(groups() * 2.0**power, 4) for power in (0, -40))
    assert torch.equal(one.plan, other.plan)
    assert other.values == tuple(math.ldexp(value, -80) for value in one.values)


@pytest.mark.parametrize("kind", ["factors", "tiles"])
def test_objectives_of_single_precision(kind):
    """Clusters far apart: the last value is that of the labels, and no square of the clusters."""
    T, values = torch.eye(4).double()[torch.arange(40) % 4] / 40, []
    for X in (groups(1e4).float(), groups(1e4)):
        C, few = drot.gram(X), drot.gram(X[:4])
        C = C if kind == "factors" else drot.pairwise(lambda x, y: x @ y.T, X, block=5)
        values += [
            drot.kernel_kmeans(C, 4).objective,
            drot.srgw_barycenter(C, 4).objective,
            drot.gw_objective(C, few, T),
            drot.semi_relaxed_gw(C, few, init=T, refine=False).objective,
            drot.distributional_reduction(C, 4, kernel="gram", n_components=3).objective,
        ]
    if kind == "factors":  # else C itself is rounded
        assert values[0] == pytest.approx(values[5], rel=0.01)
    assert min(values) >= 0 and values[1:5] == pytest.approx(values[6:], rel=0.01)


def test_ends_are_those_of_the_starts_wherever_the_search_leads(monkeypatch):
    for seed in range(6):
        A, B = (x + x.T for x in np.random.default_rng(seed).random((2, 30, 30)))
        ask = dict(cost_x=A, cost_z=B[:7, :7], init="random", n_starts=2, random_state=seed)
        far = drot.semi_relaxed_gw(**ask)
        with monkeypatch.context() as patch:
            patch.setattr(drot.gromov.semirelaxed, "_DEALS", 0)
            near = drot.semi_relaxed_gw(**ask)
        assert far.objective <= near.objective and far.ends == pytest.approx(near.ends)


def test_trace_and_ends_lie_above_the_exact_objective():
    """In single precision too, where the numbers that a descent sees are not exact."""
    for n in range(6, 18):
        A = np.random.default_rng(n).random((n, n)) < 0.3
        for C in (np.eye(n), np.triu(A, 1) + np.triu(A, 1).T):
            found = drot.srgw_barycenter(C.astype(np.float32), 3)
            assert found.objective == found.values[-1] <= min(found.ends)
            assert (np.diff(found.values) <= 1e-13).all()


def test_squares_that_floats_still_hold():
    """And a mean, which needs none; where they do not: tests/contracts/test_inputs.py."""
    A, B = problem(0, 6, 3)
    assert drot.gw_objective(2.0**490 * A, 2.0**490 * B, soft(weights(6), 3)) < math.inf
    mean = float(1e200 * A.mean())
    assert float(drot.gromov.coarsen(1e200 * A, [0] * 6).structure) == pytest.approx(mean)
