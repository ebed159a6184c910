"""Gromov-Wasserstein, its semi-relaxed form and clustering: what must hold for any similarity."""

from __future__ import annotations

import itertools
import sys

import drot
import numpy as np
import pytest
import torch
from clouds import clouds, quick
from drot.estimators.clustering import SemiRelaxedGWClustering
from drot.gromov.contraction import hard_plan
from hypothesis import given
from hypothesis import strategies as st
from plans import LOSSES, cloud, energy, problem, soft, weights
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

SOLVERS = ["conditional_gradient", "mirror_descent"]


def similarities(X, loss: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a cloud and of its first points."""
    D = drot.sqeuclidean(X).dense()
    D = D / D.mean()
    return (D, D[:3, :3]) if loss == "square" else ((-D).exp(), (-D[:3, :3] / 2).exp())


# --- objective and gradient ---------------------------------------------------------------------


@quick
@given(clouds(), st.sampled_from(LOSSES), st.integers(0, 100))
def test_objective(X, loss, seed):
    """The four-index sum, whatever the cloud; half the gradient's product with the plan."""
    A, B = similarities(X, loss)
    T = soft(weights(len(A), seed), 3, seed)
    found = drot.gw_objective(A, B, T, loss=loss)
    assert found == pytest.approx(
        energy(A, B, T, loss), abs=1e-10 * max(1, float(A.square().max()))
    )
    G = drot.gw_gradient(A, B, T, loss=loss)
    assert float((G * T).sum()) / 2 == pytest.approx(found, abs=1e-9 * max(1, float(G.abs().max())))


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_by_autograd(loss):
    """The marginals move with the plan."""
    A, B = problem(0, 5, 3)
    T = soft(weights(5), 3).requires_grad_()
    a, b = A[:, :, None, None], B[None, None]
    L = (a - b).square() if loss == "square" else a * (a / b).log() - a + b
    torch.einsum("ijkl,ik,jl->", L, T, T).backward()
    torch.testing.assert_close(drot.gw_gradient(A, B, T.detach(), loss=loss), T.grad)


def test_invariances():
    """Order of points, shift and scale of the similarities, and exchange of their parts."""
    A, B = problem(1, 6, 4)
    T = soft(weights(6), 4)
    value = drot.gw_objective(A, B, T)
    p, q = torch.tensor([3, 0, 5, 1, 2, 4]), torch.tensor([2, 0, 3, 1])
    assert drot.gw_objective(A[p][:, p], B[q][:, q], T[p][:, q]) == pytest.approx(value)
    assert drot.gw_objective(A + 3, B + 3, T) == pytest.approx(value)
    assert drot.gw_objective(5 * A, 5 * B, T) == pytest.approx(25 * value)
    assert drot.gw_objective(B, A, T.T) == pytest.approx(value)
    kl = drot.gw_objective(A, B, T, loss="kl")
    assert drot.gw_objective(5 * A, 5 * B, T, loss="kl") == pytest.approx(5 * kl)
    assert drot.gw_objective(B, A, T.T, loss="kl") != pytest.approx(kl)


def test_zeros_of_kl():
    """0 log 0 = 0; a positive entry against a zero is infinite; both said, never NaN."""
    A = torch.tensor([[0.0, 2.0], [2.0, 0.0]], dtype=torch.float64)
    B = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    match = torch.eye(2, dtype=torch.float64) / 2
    assert drot.gw_objective(A, B, match, loss="kl") == pytest.approx(np.log(2) - 1 + 0.5)
    assert drot.gw_objective(B, A, match, loss="kl") == pytest.approx(-np.log(2) / 2 + 0.5)
    even = torch.full((2, 2), 0.25, dtype=torch.float64)
    assert drot.gw_objective(A, B, even, loss="kl") == np.inf
    G = drot.gw_gradient(A, B, match, loss="kl")
    assert torch.isinf(G).tolist() == [[False, True], [True, False]] and not G.isnan().any()
    for dtype in (torch.float32, torch.float64):
        for solver in SOLVERS:
            found = drot.semi_relaxed_gw(A.to(dtype), B.to(dtype), loss="kl", solver=solver)
            assert found.objective == pytest.approx(np.log(2) - 0.5, abs=1e-6)
    assert drot.gromov_monge(A, B, loss="kl").value == pytest.approx(np.log(2) - 0.5)
    three = 1 - torch.eye(3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"infinite at every plan .* small positive number"):
        drot.semi_relaxed_gw(three, B, loss="kl")
    assert np.isfinite(drot.semi_relaxed_gw(three, B + 1e-3, loss="kl").objective)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_zeros_of_a_factored_distance(dtype, size):
    """Rounding on its diagonal, of either sign, is the zero that a dense distance has there."""
    X = (size * cloud(30, 3)).to(dtype)
    F, C, T = drot.factored_sqeuclidean(X), drot.sqeuclidean(X), torch.eye(30, dtype=dtype) / 30
    rounding = F.dense().diagonal()
    assert bool((rounding > 0).any()) and bool((rounding < 0).any())
    close, mean = 1e-5 if dtype == torch.float32 else 1e-12, float(C.dense().mean())
    infinite = drot.gw_gradient(C, C, T, loss="kl").isinf()
    assert int(infinite.sum()) == 30 * 29
    for x, z in ((F, C), (C, F), (F, F)):
        assert drot.gw_objective(x, z, T, loss="kl") == pytest.approx(0, abs=close * mean)
        gradient = drot.gw_gradient(x, z, T, loss="kl")
        assert torch.equal(gradient.isinf(), infinite)
        assert float(gradient.diagonal().abs().max()) < 1e3 * close * mean
        found = drot.semi_relaxed_gw(x, z, loss="kl", init=T, on_failure="ignore")
        assert found.objective == pytest.approx(0, abs=close * mean)
        few = [drot.factored_sqeuclidean(X[:5]) if c is F else c.dense()[:5, :5] for c in (x, z)]
        part = drot.gromov_monge(*few, loss="kl")
        assert part.value == pytest.approx(0, abs=close * mean)
        assert part.permutation.tolist() == list(range(5))
    even = torch.full((30, 30), 1 / 900, dtype=dtype)
    for x, z in ((F, C), (C, F), (F, F), (C, C)):
        assert drot.gw_objective(x, z, even, loss="kl") == np.inf
    near = X.clone()
    near[1] = near[0] + 1e-2 * size * 1e-3 ** (dtype == torch.float64)
    F, C = drot.factored_sqeuclidean(near), drot.sqeuclidean(near)  # close, and not the same
    one = torch.zeros(30, 30, dtype=dtype)
    one[:2, 0], one[torch.arange(2, 30), torch.arange(2, 30)] = 1 / 30, 1 / 30
    for x in (F, C):
        assert drot.gw_objective(x, C, one, loss="kl") == np.inf


# --- the solver ---------------------------------------------------------------------------------


@quick
@given(clouds(least=5), st.sampled_from(LOSSES), st.sampled_from(SOLVERS), st.integers(0, 99))
def test_certificate(X, loss, solver, seed):
    """Row sums, monotone descent, stationarity, and an objective that is the plan's."""
    A, B = similarities(X, loss)
    w = weights(len(A), seed)
    found = drot.semi_relaxed_gw(
        A, B, weights_x=w, loss=loss, solver=solver, n_starts=1, random_state=seed
    )
    torch.testing.assert_close(found.plan.sum(dim=1), w, rtol=0, atol=1e-12)
    assert (found.plan >= 0).all() and found.converged and found.residual <= 1e-9
    scale = max(1.0, abs(found.trace[0]), float(A.square().max()))
    assert (np.diff(found.trace) <= 1e-12 * scale).all()
    assert found.objective == pytest.approx(energy(A, B, found.plan, loss), abs=1e-10 * scale)
    assert found.objective == pytest.approx(min(found.values), abs=1e-10 * scale)
    assert found.trace[-1] == pytest.approx(found.objective, abs=1e-10 * scale)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_no_move_lowers_it(loss, seed):
    """After the moves neither a row, whole or halved, nor an exchange of columns helps."""
    A, B = problem(seed, 9, 3)
    w = weights(9, seed)
    rough = drot.semi_relaxed_gw(
        A, B, weights_x=w, loss=loss, init="random", n_starts=1, refine=False, on_failure="ignore"
    )
    found = drot.semi_relaxed_gw(A, B, weights_x=w, loss=loss, init=rough)
    assert found.objective <= rough.objective + 1e-12
    for i, a, b, share in itertools.product(range(9), range(3), range(3), (0.5, 1.0)):
        T = found.plan.clone()
        T[i, b] += share * found.plan[i, a]
        T[i, a] -= share * found.plan[i, a]
        assert energy(A, B, T, loss) >= found.objective - 1e-9
    for order in ([1, 0, 2], [0, 2, 1], [2, 1, 0]):
        assert energy(A, B, found.plan[:, order], loss) >= found.objective - 1e-9


def test_permuting_the_points_permutes_the_plan():
    A, B = problem(2, 10, 3)
    start = soft(weights(10), 3)
    p = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    options = {"refine": False, "on_failure": "ignore", "max_iter": 5}
    one = drot.semi_relaxed_gw(A, B, weights_x=start.sum(1), init=start, **options)
    other = drot.semi_relaxed_gw(
        A[p][:, p], B, weights_x=start.sum(1)[p], init=start[p], **options
    )  # fmt: skip
    torch.testing.assert_close(other.plan, one.plan[p])
    shifted = drot.semi_relaxed_gw(
        3 * A + 1, 3 * B + 1, weights_x=start.sum(1), init=start, **options
    )
    torch.testing.assert_close(shifted.plan, one.plan)


@pytest.mark.parametrize("loss", LOSSES)
def test_tiles_are_the_matrix(loss):
    """A cost in tiles gives what the matrix gives; so do lists and integers."""
    X, Z = cloud(30, 2), cloud(4, 2, 1)
    B = drot.sqeuclidean(Z).dense() + 0.1
    dense = drot.semi_relaxed_gw(drot.sqeuclidean(X), B, loss=loss, random_state=3)
    tiles = drot.semi_relaxed_gw(drot.sqeuclidean(X, block=7), B, loss=loss, random_state=3)
    assert tiles.objective == pytest.approx(dense.objective, rel=1e-10)
    torch.testing.assert_close(tiles.plan, dense.plan, rtol=0, atol=1e-8)
    A = [[0, 2, 2], [2, 0, 1], [2, 1, 0]]
    assert drot.semi_relaxed_gw(A, A).objective == pytest.approx(0.0, abs=1e-12)
    assert drot.semi_relaxed_gw(A, A).plan.dtype == torch.float64


def test_float32_and_zero_weights():
    A, B = problem(3, 12, 3)
    w = weights(12)
    w[4] = 0
    w = w / w.sum()
    full = drot.semi_relaxed_gw(A, B, weights_x=w)
    half = drot.semi_relaxed_gw(A.float(), B.float(), weights_x=w)
    assert half.plan.dtype == torch.float32 and half.residual <= 1e-4
    assert half.objective == pytest.approx(full.objective, rel=1e-3)
    assert (full.plan[4] == 0).all() and full.labels.shape == (12,)
    keep = w > 0
    less = drot.semi_relaxed_gw(A[keep][:, keep], B, weights_x=w[keep], init=full.plan[keep])
    assert less.objective <= full.objective + 1e-12
    for init in ("kmeans", "spectral", "random", "product"):
        assert drot.semi_relaxed_gw(A, B, weights_x=w, init=init).converged
    assert drot.srgw_barycenter(A, 3, weights_x=w).converged


def test_starts_and_seeds():
    """As many values as starts, the same bits for the same seed, and a run that can go on."""
    A, B = problem(4, 15, 4)
    names = ["kmeans", "product", "spectral"]
    one = drot.semi_relaxed_gw(A, B, init=names, n_starts=3, random_state=2)
    two = drot.semi_relaxed_gw(A, B, init=names, n_starts=3, random_state=2)
    assert one.n_starts == len(one.values) == 7 and torch.equal(one.plan, two.plan)
    assert one.trace == two.trace and one.products == two.products
    many = [drot.semi_relaxed_gw(A, B, init="random", random_state=s).values for s in (0, 1)]
    assert many[0] != many[1]
    part = drot.semi_relaxed_gw(
        A, B, init="random", n_starts=1, max_iter=2, refine=False, on_failure="ignore"
    )
    assert not part.converged and part.n_iter == 2
    rest = drot.semi_relaxed_gw(A, B, init=part, refine=False, on_failure="ignore")
    assert rest.trace[0] == pytest.approx(part.objective) and rest.objective <= part.objective
    with pytest.raises(drot.NotConverged, match="semi_relaxed_gw: the residual is"):
        drot.semi_relaxed_gw(A, B, init="random", n_starts=1, max_iter=1, refine=False)
    seen = []
    stopped = drot.semi_relaxed_gw(
        A, B, on_failure="ignore", callback=lambda i, r, T: seen.append((i, r, T)) or i == 3
    )
    assert [i for i, _, _ in seen] == [0, 1, 2, 3] and stopped.plan.shape == (15, 4)
    assert all(T.shape == (15, 4) and r >= 0 for _, r, T in seen)
    before = A.clone(), B.clone(), part.plan.clone()
    drot.semi_relaxed_gw(A, B, init=part.plan)
    assert all(torch.equal(x, y) for x, y in zip(before, (A, B, part.plan), strict=True))


@pytest.mark.parametrize("kind", ["plan", "barycenter"])
def test_save_and_load(kind, tmp_path):
    A, B = problem(5, 8, 3)
    found = drot.semi_relaxed_gw(A, B) if kind == "plan" else drot.srgw_barycenter(A, 3)
    found.save(tmp_path / "result.npz")
    back = drot.load(tmp_path / "result.npz")
    assert type(back) is type(found) and torch.equal(back.plan, found.plan)
    for name in ("objective", "residual", "n_iter", "converged", "trace", "values", "products"):
        assert getattr(back, name) == getattr(found, name)
        assert type(getattr(back, name)) is type(getattr(found, name))
    assert [path.name for path in tmp_path.iterdir()] == ["result.npz"]
    np.savez(tmp_path / "other.npz", X=np.zeros(3))
    with pytest.raises(ValueError, match=r"other.npz does not hold a result"):
        drot.load(tmp_path / "other.npz")
    assert type(found).__name__ in repr(found) and len(repr(found)) < 200
    with pytest.raises(AttributeError):
        found.plan = None


ERRORS = {
    "cost_x": ({"cost_x": np.zeros((3, 4))}, r"cost_x must be square"),
    "symmetric": ({"cost_x": np.triu(np.ones((3, 3)))}, r"must be symmetric; entries \(0, 1\)"),
    "nan": ({"cost_z": np.full((2, 2), np.nan)}, r"cost_z has a non-finite entry"),
    "weights": ({"weights_x": [0.5, 0.5]}, r"weights_x must be one number per point \(3\)"),
    "negative": ({"weights_x": [1.5, -0.5, 0]}, r"negative; row 1 has -0.5"),
    "sum": ({"weights_x": [1, 1, 1]}, r"weights_x must sum to 1; got 3"),
    "loss": ({"loss": "l1"}, r"'square', 'kl'"),
    "solver": ({"solver": "adam"}, r"'conditional_gradient', 'mirror_descent'"),
    "init": ({"init": "fluid"}, r"'kmeans', 'spectral', 'random', 'product'"),
    "shape": ({"init": np.ones((2, 2))}, r"init must be a \(3, 2\) plan"),
    "rows": ({"init": np.ones((3, 2))}, r"row 0 sums to 2, not 0.333"),
    "kl": ({"cost_z": [[1.0, -1.0], [-1.0, 1.0]], "loss": "kl"}, r"entry \(0, 1\) is -1"),
    "starts": ({"n_starts": 0}, r"n_starts must be a whole number"),
    "epsilon": ({"epsilon": 0.0}, r"epsilon must be positive"),
}


@pytest.mark.parametrize(("options", "says"), ERRORS.values(), ids=ERRORS)
def test_errors(options, says):
    options = {"cost_x": np.ones((3, 3)), "cost_z": np.ones((2, 2)), **options}
    costs = options.pop("cost_x"), options.pop("cost_z")
    with pytest.raises(ValueError, match=says):
        drot.semi_relaxed_gw(*costs, **options)


def test_other_errors(monkeypatch):
    A, B = problem(0, 3, 2)
    with pytest.raises(ValueError, match=r"plan must have total mass 1; got 6"):
        drot.gw_objective(A, B, np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"plan must be a \(3, 2\)"):
        drot.gw_gradient(A, B, np.ones((2, 3)) / 6)
    with pytest.raises(ValueError, match=r"at most 7 points; got 8 and 8"):
        drot.gromov_monge(np.ones((8, 8)), np.ones((8, 8)))
    with pytest.raises(ValueError, match=r"float64 and cost_z is torch.float32"):
        drot.semi_relaxed_gw(A, B.float())
    with pytest.raises(ValueError, match=r"the factors must have as many columns"):
        drot.costs.Factored(np.ones((3, 2)), np.ones((3, 1)))
    with pytest.raises(ValueError, match=r"cluster 1 empty"):
        drot.coarsen(A, [0, 2, 2])
    with pytest.raises(ValueError, match=r"n_clusters must be a whole number from 1 to 3"):
        drot.srgw_barycenter(A, 4)
    with pytest.raises(ValueError, match=r"'product' does not exist"):
        drot.kernel_kmeans(A, 2, init="product")
    monkeypatch.setitem(sys.modules, "ot.gromov", None)
    with pytest.raises(ImportError, match="calls POT, which is not installed; pip install POT"):
        drot.gromov_wasserstein(A, B)


def test_one_cluster_and_as_many_as_points():
    A, _ = problem(6, 5)
    one = drot.srgw_barycenter(A, 1)
    assert one.objective == pytest.approx(float((A - A.mean()).square().mean()))
    assert float(one.structure) == pytest.approx(float(A.mean()))
    all_of = drot.srgw_barycenter(A, 5, init=torch.eye(5, dtype=torch.float64) / 5)
    assert all_of.objective == pytest.approx(0.0, abs=1e-12)
    assert drot.kernel_kmeans(A @ A.T, 1).objective == pytest.approx(
        float((A - A.mean(0)).square().sum(1).mean())
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["squares", "kernel", "factored"])
def test_structure_of_a_kl_barycentre(kind, dtype):
    """What the rounding of the steps leaves is neither negative nor 0 where clusters are alike."""
    close = 1e-4 if dtype == np.float32 else 1e-12
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, w = rng.normal(size=(6, 2)), rng.dirichlet(np.ones(6)).astype(dtype)
        if seed % 3 == 0:
            X[1] = X[0]
        D = drot.sqeuclidean(X).dense().numpy()
        C = {
            "squares": lambda D=D: D.astype(dtype),
            "kernel": lambda D=D: np.exp(-D).astype(dtype),
            "factored": lambda X=X: drot.factored_sqeuclidean(X.astype(dtype)),
        }[kind]()
        for k in (3, 4, 6):
            found = drot.srgw_barycenter(C, k, weights_x=w, loss="kl", random_state=seed)
            assert bool((found.structure >= 0).all())
            value = drot.gw_objective(C, found.structure, found.plan, loss="kl")
            assert value == pytest.approx(found.objective, abs=close * D.mean())


def test_a_factored_similarity_is_a_cost():
    """It stands wherever a cost stands, and saves what it is made of."""
    X = cloud(25, 3)
    C = drot.factored_sqeuclidean(X, block=10)
    affinity = drot.entropic_affinity(C, 5.0)
    torch.testing.assert_close(
        affinity.plan, drot.entropic_affinity(drot.sqeuclidean(X), 5.0).plan, rtol=1e-8, atol=1e-12
    )
    assert [rows.stop - rows.start for rows, _ in C.tiles()] == [10, 10, 5]
    torch.testing.assert_close(C.dense(), drot.sqeuclidean(X).dense(), rtol=0, atol=1e-12)
    T = soft(weights(25), 3)
    torch.testing.assert_close(C @ T, C.dense() @ T)
    torch.testing.assert_close(C.diagonal(), C.dense().diagonal())
    one = drot.costs.Factored(X, block=4)
    torch.testing.assert_close(one.dense(), X @ X.T)


# --- the estimator ------------------------------------------------------------------------------

BLOBS = cloud(60, 4).numpy() + 9 * np.eye(4)[np.arange(60) % 3]


@pytest.mark.parametrize("similarity", ["sqeuclidean", "entropic"])
def test_check_estimator(similarity):
    model = SemiRelaxedGWClustering(3, similarity=similarity, perplexity=3.0)
    results = check_estimator(model, on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert sum(result["status"] == "passed" for result in results) >= 40


@pytest.mark.parametrize(
    ("similarity", "loss"),
    [
        ("gram", "square"),  # inner products have both signs: not for kl
        *itertools.product(["sqeuclidean", "entropic", "precomputed"], LOSSES),
    ],
)
def test_estimator(similarity, loss):
    """The function's clusters, numbered by their first points; blobs are found."""
    X = (
        (-drot.sqeuclidean(BLOBS).dense() / 50).exp().numpy()
        if similarity == "precomputed"
        else BLOBS
    )
    model = SemiRelaxedGWClustering(
        3, similarity=similarity, loss=loss, perplexity=10.0, random_state=0
    ).fit(X)
    assert adjusted_rand_score(np.arange(60) % 3, model.labels_) == 1.0
    assert model.labels_[:3].tolist() == [0, 1, 2] and type(model.labels_) is np.ndarray
    np.testing.assert_allclose(model.weights_, 1 / 3)
    assert model.objective_ == model.result_.objective and model.structure_.shape == (3, 3)
    T = hard_plan(torch.from_numpy(model.labels_), torch.full((60,), 1 / 60).double(), 3)
    C = model._cost(torch.from_numpy(X))
    np.testing.assert_allclose(
        model.structure_, drot.coarsen(C, T).structure, rtol=1e-8, atol=1e-10
    )
    assert drot.SemiRelaxedGWClustering is SemiRelaxedGWClustering


def test_estimator_options(capsys):
    model = SemiRelaxedGWClustering(3, random_state=1)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    runs = [clone(model).fit_predict(BLOBS) for _ in range(2)]
    np.testing.assert_array_equal(*runs)
    assert not capsys.readouterr().err
    SemiRelaxedGWClustering(3, verbose=1).fit(BLOBS)
    assert "residual=" in capsys.readouterr().err
    with pytest.raises(AttributeError, match="no 'predict': a new point would change"):
        model.fit(BLOBS).predict(BLOBS)
    with pytest.raises(ValueError, match="'sqeuclidean', 'gram', 'entropic', 'precomputed'"):
        SemiRelaxedGWClustering(3, similarity="rbf").fit(BLOBS)
    with pytest.warns(ConvergenceWarning, match="stopped at a residual"):
        SemiRelaxedGWClustering(
            3, init="random", n_starts=1, max_iter=1, tol=1e-300, random_state=0
        ).fit(np.random.default_rng(0).normal(size=(40, 2)))
    many = SemiRelaxedGWClustering(8, random_state=0).fit(np.repeat(BLOBS[:3], 4, axis=0))
    assert set(many.labels_) == set(range(len(many.weights_)))  # empty clusters are left out
    assert SemiRelaxedGWClustering(3, dtype="float32").fit(BLOBS).structure_.dtype == np.float32
