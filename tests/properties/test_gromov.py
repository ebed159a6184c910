"""Gromov-Wasserstein, semi-relaxed and clustering: what any similarity has."""

import itertools
import sys
from functools import partial

import drot
import numpy as np
import pytest
import torch
from drot.costs.array import Pairwise
from drot.estimators.clustering import SemiRelaxedGWClustering
from drot.gromov import starts
from drot.gromov.contraction import hard_plan, standard
from drot.gromov.loss import SQUARE
from plans import LOSSES, cloud, energy, hard_plans, kmeans, problem, weights
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

SOLVERS = ["conditional_gradient", "mirror_descent"]
gw, barycenter = drot.semi_relaxed_gw, drot.srgw_barycenter


def test_a_cost_knows_the_cloud_that_it_compares():
    """So does what descents see of it, whose points starts cluster; of two clouds none is known."""
    X, w = cloud(6, 2), torch.full((6,), 1 / 6).double()
    for make in (drot.sqeuclidean, drot.student_cost, drot.factored_sqeuclidean, drot.gram):
        points = standard(make(X), w, SQUARE)[0].C.points
        torch.testing.assert_close(points - points.mean(dim=0), X - X.mean(dim=0))
    assert drot.sqeuclidean(X, X.clone()).points is None


def test_all_products_of_a_barycentre_are_counted(monkeypatch):
    """Those of parts of points too; but for one where the start is made and one for the result."""
    made, times, n, k = [], Pairwise.__matmul__, 30, 4

    def some(C, index, Y):
        return made.append(len(index) / n) or C.rows(index).T @ Y

    monkeypatch.setattr(Pairwise, "columns_times", some)
    monkeypatch.setattr(
        Pairwise, "__matmul__", lambda C, V: made.append(V.shape == (n, k)) or times(C, V)
    )
    A = np.random.default_rng(3).normal(size=(n, n))  # indefinite
    found = barycenter(A + A.T, k, init="random", n_starts=1, on_failure="ignore")
    assert found.products == pytest.approx(sum(made) - 2)


def test_eigenvectors_that_start_and_split_clusters_are_found_once(monkeypatch):
    """The same points of a similarity without a cloud draw starts and say how to split."""
    made, features = [], starts.features
    monkeypatch.setattr(starts, "features", lambda *a, **b: made.append(b) or features(*a, **b))
    barycenter(torch.exp(-drot.sqeuclidean(cloud(30, 2)).dense()), 4, init="kmeans")
    assert len(made) == 1


def test_zeros_of_kl():
    """0 log 0 = 0; a positive entry against a zero is infinite; both said, never NaN."""
    A = torch.tensor([[0.0, 2.0], [2.0, 0.0]], dtype=torch.float64)
    B, match = A / 2, torch.eye(2, dtype=torch.float64) / 2
    assert drot.gw_objective(A, B, match, loss="kl") == pytest.approx(np.log(2) - 1 + 0.5)
    assert drot.gw_objective(B, A, match, loss="kl") == pytest.approx(-np.log(2) / 2 + 0.5)
    even = torch.full((2, 2), 0.25, dtype=torch.float64)
    assert drot.gw_objective(A, B, even, loss="kl") == np.inf
    G = drot.gromov.gw_gradient(A, B, match, loss="kl")
    assert torch.isinf(G).tolist() == [[False, True], [True, False]] and not G.isnan().any()
    for dtype, solver in itertools.product((torch.float32, torch.float64), SOLVERS):
        found = gw(A.to(dtype), B.to(dtype), loss="kl", solver=solver)
        assert found.objective == pytest.approx(np.log(2) - 0.5, abs=1e-6)
    assert drot.gromov.gromov_monge(A, B, loss="kl").value == pytest.approx(np.log(2) - 0.5)
    three = 1 - torch.eye(3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"infinite at every plan .* small positive number"):
        gw(three, B, loss="kl")
    assert np.isfinite(gw(three, B + 1e-3, loss="kl").objective)


@pytest.mark.parametrize(("dtype", "size"), [(torch.float64, 1e6), (torch.float32, 1e-6)])
def test_zeros_of_a_factored_distance(dtype, size):
    """Rounding on its diagonal, of either sign, is the zero that a dense distance has there."""
    X = (size * cloud(30, 3)).to(dtype)
    F, C, T = drot.factored_sqeuclidean(X), drot.sqeuclidean(X), torch.eye(30, dtype=dtype) / 30
    rounding = F.dense().diagonal()
    assert bool((rounding > 0).any()) and bool((rounding < 0).any())
    small = (1e-5 if dtype == torch.float32 else 1e-12) * float(C.dense().mean())
    even = torch.full((30, 30), 1 / 900, dtype=dtype)
    for x, z in ((F, C), (C, F), (F, F)):
        assert drot.gw_objective(x, z, T, loss="kl") == pytest.approx(0, abs=small)
        assert drot.gw_objective(x, z, even, loss="kl") == np.inf
        gradient = drot.gromov.gw_gradient(x, z, T, loss="kl")
        assert torch.equal(gradient.isinf(), ~torch.eye(30, dtype=bool))
        assert float(gradient.diagonal().abs().max()) < 1e3 * small
        found = gw(x, z, loss="kl", init=T, on_failure="ignore")
        assert found.objective == pytest.approx(0, abs=small)
    few = [drot.factored_sqeuclidean(X[:5]), C.dense()[:5, :5]]
    for x, z in itertools.product(few, repeat=2):
        assert drot.gromov.gromov_monge(x, z, loss="kl").value == pytest.approx(0, abs=small)
    near, one = X.clone(), T.clone()
    near[1] = near[0] + 1e-2 * size * 1e-3 ** (dtype == torch.float64)  # close, and not the same
    one[1, :2] = one[0, :2]
    for x in (drot.factored_sqeuclidean(near), drot.sqeuclidean(near)):
        assert drot.gw_objective(x, drot.sqeuclidean(near), one, loss="kl") == np.inf


def test_zero_weights():
    """A point without weight changes nothing, and has no label."""
    A, B = problem(3, 12, 3)
    w = weights(12)
    w[4] = 0
    w = w / w.sum()
    full, keep = gw(A, B, weights_x=w), w > 0
    less = gw(A[keep][:, keep], B, weights_x=w[keep], init=full.plan[keep])
    assert less.objective <= full.objective + 1e-12
    for init, solver in itertools.product(("kmeans", "spectral", "random", "product"), SOLVERS):
        found = gw(A, B, weights_x=w, init=init, solver=solver)
        assert found.converged and (found.plan[4] == 0).all()
    found = barycenter(A, 3, weights=w)
    assert found.converged and ((found.labels == -1) == (w == 0)).all()


def test_kernel_kmeans_labels_a_point_without_weight():
    """By the nearest mean, of clusters that are not empty."""
    X = torch.tensor([[0.0], [1.0], [2.0], [20.0], [21.0], [22.0]]).double()
    for i in range(6):
        w = torch.ones(6).double()
        w[i] = 0
        labels = drot.kernel_kmeans(X @ X.T, 2, weights=w / 5).labels
        assert labels.tolist() == [labels[0]] * 3 + [labels[5]] * 3 and labels[0] != labels[5]


def test_starts_and_resuming():
    """As many ends as starts, a callback that sees all of them, and a run that can go on."""
    A, B = problem(4, 15, 4)
    names = ["kmeans", "product", "spectral"]
    one = gw(A, B, init=names, n_starts=3, random_state=2)
    assert one.n_starts == len(one.ends) == 7
    ask = dict(init="random", n_starts=1, refine=False)
    part = gw(A, B, max_iter=2, on_failure="ignore", **ask)
    assert not part.converged and part.n_iter == 2
    rest = gw(A, B, init=part, refine=False, on_failure="ignore")
    assert rest.values[0] == pytest.approx(part.objective) and rest.objective <= part.objective
    for solve in (gw, lambda A, B, **more: barycenter(A, 4, **more)):
        with pytest.raises(drot.NotConverged, match=r"s.*r.*: the residual is .* after 1 iterati"):
            solve(A, B, max_iter=1, **ask)
    seen = []
    stopped = gw(A, B, callback=lambda i, r, T: seen.append((i, r, T.shape)) or i == 3)
    assert [i for i, _, _ in seen] == [0, 1, 2, 3] and stopped.plan.shape == (15, 4)
    assert all(shape == (15, 4) and r >= 0 for _, r, shape in seen)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["squares", "kernel", "factored"])
def test_structure_of_a_kl_barycentre(kind, dtype):
    """What the rounding of the steps leaves is neither negative nor 0 where clusters are alike."""
    close = 1e-4 if dtype == np.float32 else 1e-12
    for seed, k in itertools.product(range(4), (3, 4, 6)):
        rng = np.random.default_rng(seed)
        X, w = rng.normal(size=(6, 2)), rng.dirichlet(np.ones(6)).astype(dtype)
        if seed % 3 == 0:
            X[1] = X[0]
        D = drot.sqeuclidean(X).dense().numpy()
        C = D.astype(dtype) if kind == "squares" else np.exp(-D).astype(dtype)
        C = drot.factored_sqeuclidean(X.astype(dtype)) if kind == "factored" else C
        found = barycenter(C, k, weights=w, loss="kl", random_state=seed)
        assert bool((found.structure >= 0).all())
        value = drot.gw_objective(C, found.structure, found.plan, loss="kl")
        assert value == pytest.approx(found.objective, abs=close * D.mean())


def test_kernel_kmeans_of_a_negative_trace():
    """A kernel may be no inner product: what a move still gains is a share of the size of both."""
    X = cloud(40, 3, 1)
    ask = {"init": "random", "n_starts": 1, "max_iter": 1, "on_failure": "ignore"}
    short = drot.kernel_kmeans(-X @ X.T, 5, **ask)
    assert short.residual > 1e-3 and not short.converged
    done = drot.kernel_kmeans(-X @ X.T, 5, **ask | {"max_iter": 1000})
    assert done.converged and done.objective < short.objective < 0


def test_kernel_kmeans_that_is_not_done():
    """It says so as asked; the residual is what the best move of one point would gain."""
    X = cloud(80, 3).numpy()
    G, ask = X @ X.T, dict(init="random", n_starts=1, random_state=0)
    with pytest.raises(drot.NotConverged, match=r"kernel_kmeans: the residual is .* after 1 iter"):
        drot.kernel_kmeans(G, 5, max_iter=1, **ask)
    with pytest.warns(RuntimeWarning, match="kernel_kmeans: the residual"):
        short = drot.kernel_kmeans(G, 5, max_iter=1, on_failure="warn", **ask)
    done = drot.kernel_kmeans(G, 5, **ask)
    assert not short.converged and done.converged and done.residual <= 1e-9
    assert drot.kernel_kmeans(torch.ones(6, 6).double(), 2).converged  # of points at one place
    spread = G.diagonal().mean() - G.mean()
    labels, objective = short.labels.numpy(), partial(kmeans, X, np.full(80, 1 / 80))
    moved = (np.where(np.arange(80) == i, c, labels) for i in range(80) for c in range(5))
    gain = objective(labels) - min(map(objective, moved))
    assert short.residual == pytest.approx(gain / spread, rel=1e-9)


@pytest.mark.parametrize("graph", [15, 29, 50])
def test_two_clusters_of_a_graph_are_dealt_anew(graph):
    """They reach the best of all memberships, and never end above a start; none follows a plan."""
    A = torch.from_numpy(np.triu(np.random.default_rng(graph).random((8, 8)) < 0.3, 1)).double()
    A = A + A.T
    plans = hard_plans(torch.full((8,), 1 / 8).double(), 2)
    least = min(drot.gw_objective(A, drot.gromov.coarsen(A, T).structure, T) for T in plans[1:-1])
    for seed in range(3):
        found = barycenter(A, 2, random_state=seed)
        assert found.objective <= least + 1e-12 and found.objective <= min(found.ends) + 1e-12
        assert (np.diff(found.values) < 0).all()
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    barycenter(A, 2, init=plans[1], random_state=rng)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("seed", [65, 75, 87])
def test_moves_of_points_never_end_above_conditional_gradient(seed):
    """They follow it to its end: of a path with weights, which two clusters cut anywhere."""
    w = np.random.default_rng(seed).dirichlet(np.ones(20))
    A = np.diag(np.ones(19), 1) + np.diag(np.ones(19), -1)
    ask = dict(weights=w, loss="kl", random_state=seed)
    plain = barycenter(A, 2, refine=False, on_failure="ignore", **ask)
    assert barycenter(A, 2, **ask).objective <= plain.objective + 1e-12


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_objective_is_in_the_unit_of_the_similarity(dtype):
    """Where the largest of |C - m| is a power of two, to which float32 may round another one."""
    C = 3 * np.kron(np.eye(3), np.ones((3, 3))).astype(dtype)
    for k in (1, 2):
        found = barycenter(C, k)
        assert found.objective == drot.gw_objective(C, found.structure, found.plan)
    assert barycenter(C, 1).objective == pytest.approx(2, rel=1e-6)  # of the one plan there is


BLOBS = cloud(60, 4).numpy() + 9 * np.eye(4)[np.arange(60) % 3]


@pytest.mark.parametrize(
    ("similarity", "loss"),
    [
        ("gram", "square"),  # inner products have both signs: not for kl
        *itertools.product(["sqeuclidean", "symmetric_entropic", "precomputed"], LOSSES),
    ],
)
def test_estimator(similarity, loss):
    """The function's clusters, numbered by their first points; blobs are found."""
    near = (-drot.sqeuclidean(BLOBS).dense() / 50).exp().numpy()
    X = near if similarity == "precomputed" else BLOBS
    ask = dict(similarity=similarity, loss=loss, perplexity=10.0, random_state=0)
    model = SemiRelaxedGWClustering(3, **ask).fit(X)
    assert adjusted_rand_score(np.arange(60) % 3, model.labels_) == 1.0
    assert model.labels_[:3].tolist() == [0, 1, 2] and type(model.labels_) is np.ndarray
    np.testing.assert_allclose(model.weights_, 1 / 3)
    assert model.objective_ == model.result_.objective and model.structure_.shape == (3, 3)
    T = hard_plan(torch.from_numpy(model.labels_), torch.full((60,), 1 / 60).double(), 3)
    structure = drot.gromov.coarsen(model._cost(torch.from_numpy(X)), T).structure
    np.testing.assert_allclose(model.structure_, structure, rtol=1e-8, atol=1e-10)


def test_estimator_options(capsys):
    SemiRelaxedGWClustering(3).fit(BLOBS)
    assert not capsys.readouterr().err
    SemiRelaxedGWClustering(3, verbose=1, dtype="float32").fit(BLOBS)
    assert "residual=" in capsys.readouterr().err
    short = SemiRelaxedGWClustering(3, init="random", n_starts=1, max_iter=1, tol=1e-300)
    with pytest.warns(ConvergenceWarning, match="stopped at a residual"):
        short.set_params(random_state=0).fit(cloud(40, 2).numpy())
    few = np.repeat(BLOBS[:3], 4, axis=0)
    many = SemiRelaxedGWClustering(8, similarity="gram", random_state=0).fit(few)
    assert set(many.labels_) == set(range(len(many.weights_)))  # empty clusters are left out


def test_without_pot_the_sentence_names_it(monkeypatch):
    """Good input, and the one optional library of this function is missed."""
    for module in ("ot", "ot.lp"):
        monkeypatch.setitem(sys.modules, module, None)
    says = "^coot_clustering calls POT, which is not installed; pip install POT$"
    with pytest.raises(ImportError, match=says) as caught:
        drot.coot_clustering(np.eye(3), 2)
    assert caught.value.__suppress_context__  # one sentence, not two tracebacks


@pytest.mark.parametrize(("off", "good"), [(9e-6, True), (1.1e-5, False), (-1.1e-5, False)])
def test_masses_sum_to_one_up_to_rounding(off, good):
    """Weights within 1e-5 are divided by their sum; a plan is taken as it is."""
    A, B = problem(0, 4, 2)
    w = torch.tensor([0.1, 0.2, 0.3, 0.4 + off], dtype=torch.float64)
    T = w[:, None].expand(4, 2) / 2
    if good:
        found = gw(A, B, weights_x=w).plan.sum(dim=1)
        torch.testing.assert_close(found, w / w.sum(), rtol=0, atol=1e-12)
        assert drot.gw_objective(A, B, T) == pytest.approx(energy(A, B, T), rel=1e-12)
        return
    with pytest.raises(ValueError, match="weights_x must sum to 1"):
        gw(A, B, weights_x=w)
    with pytest.raises(ValueError, match="plan must have total mass 1"):
        drot.gw_objective(A, B, T)


def test_starts_have_the_marginals():
    """To 1e-5 of the largest weight, rows then exactly; of the right shape."""
    A, T = problem(4, 20)[0], torch.full((20, 20), 1 / 400, dtype=torch.float64)
    near, off = T.clone(), T.clone()
    near[3, 1] += 4e-7
    off[3, 1] += 6e-7
    found = gw(A, A, init=near, max_iter=1, on_failure="ignore")
    torch.testing.assert_close(found.plan.sum(dim=1), T.sum(dim=1), rtol=0, atol=1e-14)
    for wrong in (off, torch.cat([T, T[:1]]), T[:, :19]):
        with pytest.raises(ValueError, match=r"init must be (a \(20, 20\)|a plan.*row 3 sums to)"):
            gw(A, A, init=wrong)


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_below_zero_under_kl(size, dtype):
    """Of a factored similarity, as a share of its largest terms; of an array nothing."""
    bound = 8 * torch.finfo(dtype).eps * 2**0.5 * 2  # two factors, terms of at most 1 + 1
    B, T = torch.ones(2, 2, dtype=dtype), torch.eye(2, dtype=dtype) / 2
    for share, good in ((0.5, True), (2.0, False)):
        C = drot.gram(size * torch.tensor([[1, 0], [-share * bound, 1]], dtype=dtype))
        if good:
            value = energy(size**2 * np.eye(2), B, T, "kl")
            assert drot.gw_objective(C, B, T, loss="kl") == pytest.approx(value, rel=1e-4)
        else:
            with pytest.raises(ValueError, match=r"cost_x without negative entries; entry \(0, 1"):
                drot.gw_objective(C, B, T, loss="kl")
        with pytest.raises(ValueError, match=r"cost_z without negative entries; entry \(0, 1"):
            drot.gw_objective(B, C.dense(), T, loss="kl")


def test_a_search_spends_all_of_its_iterations():
    """The descent and what comes after it share ``max_iter``, and use it to the last."""
    A = np.random.default_rng(0).normal(size=(30, 30))
    ask = {"n_starts": 1, "init": "random", "random_state": 1, "on_failure": "ignore"}
    most = drot.srgw_barycenter(A @ A.T, 4, **ask).n_iter
    found = (drot.srgw_barycenter(A @ A.T, 4, max_iter=m, **ask) for m in range(1, 1 + most))
    assert [x.n_iter for x in found] == [*range(1, 1 + most)]
