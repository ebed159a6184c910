"""Faults that were silent, or blamed somebody else."""

import drot
import numpy as np
import pytest
import torch
from drot._core.algebra import leading
from drot.hyperbolic import HyperbolicProblem
from oracles import bandwidth_by_bisection, softmax
from sklearn.datasets import make_blobs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
K = np.exp(-(drot.sqeuclidean(X).dense().numpy()))


@pytest.mark.parametrize("option", [{"n_starts": 5}, {"foo": 1}])
@pytest.mark.parametrize("method", [drot.cluster_then_reduce, drot.reduce_then_cluster])
def test_an_option_that_no_signature_has_is_refused(method, option):
    (name,) = option
    with pytest.raises(TypeError, match=rf"{method.__name__}\(\) .*'{name}'"):
        method(K, 3, **option)


def test_a_descent_that_ended_by_itself_is_not_told_to_go_on():
    few = {"kernel": "gaussian", "tol": 1e-300}
    with pytest.raises(drot.NotConverged, match=r"no step gains any more\. Loosen tol"):
        drot.distributional_reduction(K, 3, **few)
    with pytest.raises(drot.NotConverged, match="Raise max_iter"):
        drot.distributional_reduction(K, 3, tol=1e-12, max_iter=1)


def test_k_means_of_a_hyperbolic_map_sees_the_ball():
    # heights are exponentials of the radius: single far points became clusters
    rng, labels = np.random.default_rng(1), np.repeat(np.arange(5), 20)
    cloud = rng.normal(size=(100, 4)) + 6 * rng.normal(size=(5, 4))[labels]
    P = drot.symmetric_entropic_affinity(drot.sqeuclidean(cloud), perplexity=10).plan
    problem = HyperbolicProblem(P, 5, clustering="kmeans")
    c = problem.identity_coupling()
    Z = problem.initial_positions(c, np.random.default_rng(0))
    Z = problem.update_positions(Z, c, 0.02, 2000)
    found = problem.cluster(np.random.default_rng(0), (Z, c))
    assert (found.T > 0).sum(dim=0).max() < 60  # 23; of the heights 87


def test_coot_in_single_precision_returns_its_lowest_table():
    pytest.importorskip("ot")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        points, w = rng.normal(size=(3000, 4)).astype("f"), rng.random(3000).astype("f")
        ask = {"weights": w / w.sum(), "n_starts": 1, "random_state": seed, "on_failure": "ignore"}
        found = drot.coot_clustering(points, 6, **ask)
        assert found.objective <= min(found.values) and found.residual > -1e-12
        assert found.plan.dtype == found.Z.dtype == torch.float32


def test_kernel_k_means_in_single_precision_is_not_above_its_ends():
    for seed in range(40):
        cost = -drot.sqeuclidean(np.random.default_rng(seed).normal(size=(15, 2))).dense()
        found = drot.kernel_kmeans(cost.float() / 2, 4, random_state=seed)
        assert found.objective <= min(found.ends)


def test_what_a_block_iteration_has_is_returned_where_it_does_not_converge():
    d = torch.linspace(0, 1, 4000, dtype=torch.float64)[:, None]
    start = torch.from_numpy(RNG.normal(size=(4000, 3)))
    values, vectors = leading(lambda V: d * V, start, 3, 0.0)
    assert vectors.shape == (4000, 3) and 0.99 < values[0] <= values[-1] < 1 + 1e-9


def test_a_fit_that_failed_leaves_the_one_before():
    """Whole, with the parameters that it had, whatever failed."""
    model = drot.TSNE(perplexity=5, random_state=0).fit(X)
    before, places = {**vars(model)}, model.transform(X[:3] + 0.01)
    with pytest.raises(ValueError, match="non-finite"):
        model.fit(np.full((50, 3), np.nan))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    with pytest.raises(ValueError, match="perplexity"):
        model.set_params(perplexity=500).fit(X + 100)
    np.testing.assert_array_equal(model.transform(X[:3] + 0.01), places)


def test_what_a_subclass_sets_stays():
    class Centred(drot.TSNE):
        def fit(self, X, y=None):
            self.mean_ = X.mean(axis=0)
            return super().fit(X - self.mean_)

    model = Centred(perplexity=5, random_state=0).fit(X)
    assert model.fit(X + 1).mean_.shape == (4,)


def test_a_new_point_moves_no_generator():
    model = drot.TSNE(perplexity=5, random_state=None).fit(X)
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[2]  # noqa: NPY002
    model.transform(X[:3] + 0.1)
    assert np.random.get_state()[2] == before  # noqa: NPY002


def test_any_weight_of_the_repulsion_is_taken_above_the_data():
    """An estimator tries its options on a plan of next to nothing, not of an entry of its own."""
    cloud = np.random.default_rng(0).normal(size=(250, 5))
    few = drot.LargeVis(perplexity=244, repulsion=0.009, max_iter=2, tol=1e9).fit(cloud)
    assert few.affinity_.max() < few.repulsion
    with pytest.raises(ValueError, match=r"above repulsion=0\.003"):
        drot.LargeVis(perplexity=244, repulsion=0.003).fit(cloud)


def test_a_small_divergence_of_float32_is_not_zero():
    P = np.full((100, 100), 0.01)
    Q = P * (1 + 1e-3 * np.cos(np.arange(100)))
    exact = drot.kl_divergence(P, Q)
    assert 1e-6 < exact < 1e-4
    small = drot.kl_divergence(P.astype(np.float32), Q.astype(np.float32))
    assert small == pytest.approx(exact, rel=1e-2)


def test_rows_of_new_points_that_do_not_converge_are_refused(monkeypatch):
    model = drot.UMAP(n_neighbors=6, max_iter=2, tol=1e9).fit(X)
    monkeypatch.setattr("drot.affinities.umap.read_limits", lambda *_: (1e-9, 1))
    with pytest.raises(drot.NotConverged, match="rows of new points"):
        model.transform(X[:3] + 0.1)


def test_a_plan_whose_squares_leave_the_range_is_refused():
    """No unit of the plan changes its map, or gives a certificate of nothing."""
    P = drot.symmetrize(drot.entropic_affinity(drot.sqeuclidean(X), perplexity=5, diagonal="drop"))
    for plan, power in ((P, -300), (P, 300), (P.float(), -30), (P.float(), 30)):
        here, there = (drot.tsne(plan * 2.0**p, random_state=0) for p in (0, power))
        assert here.n_iter == there.n_iter and there.size == pytest.approx(here.size, rel=1e-3)
    for plan, unit in ((P, 1e-165), (P, 1e160), (P.float(), 1e-25), (P.float(), 1e20)):
        with pytest.raises(ValueError, match=r"mass .* leave the range of .*; scale it to mass n"):
            drot.tsne(plan * unit)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "precomputed"])
def test_distances_of_any_metric_are_in_range(metric):
    """As squared distances of the Euclidean one are; cosines have no unit."""
    points = drot.sqeuclidean(X).dense().sqrt().numpy() if metric == "precomputed" else X
    options = {"perplexity": 5, "metric": metric, "max_iter": 2, "tol": 1e9, "random_state": 0}
    model = drot.TSNE(**options).fit(points)
    if metric == "cosine":
        drot.TSNE(**options).fit(1e-9 * points)
        return
    for unit, dtype, way in (
        (1e-165, "f8", "under"),
        (1e200, "f8", "over"),
        (1e-25, "f4", "under"),
    ):
        with pytest.raises(ValueError, match=f"squared distances {way}flow"):
            drot.TSNE(**options).fit((unit * points).astype(dtype))
    with pytest.raises(ValueError, match="squared distances overflow"):
        model.transform(1e160 * points[:2])


def test_options_set_after_the_fit_wait_for_the_next():
    """New points are compared as the fitted ones were."""
    new, most = X[:3] + 0.1, {"max_iter": 2, "tol": 1e9, "random_state": 0}
    for model, later in (
        (drot.UMAP(n_neighbors=6, **most), {"n_neighbors": 200, "metric": "cosine"}),
        (drot.TSNE(perplexity=5, **most), {"perplexity": 20, "metric": "cosine"}),
        (drot.DistR(5, perplexity=5, **most), {"perplexity": 20}),
    ):
        places = model.fit(X).transform(new)
        np.testing.assert_array_equal(model.set_params(**later).transform(new), places)
        assert model.get_params()[min(later)] == later[min(later)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("more", [{"kernel": "student"}, {"kernel": "curve"}])
def test_new_points_are_placed_with_the_repulsion_of_the_fit(more):
    """Between the fitted points and one that is new as between two of them: no force is left."""
    model = drot.LargeVis(perplexity=5, repulsion=7.0, max_iter=50, random_state=0, **more).fit(X)
    new = X[:6] + 0.1
    z, Z = torch.from_numpy(model.transform(new)).requires_grad_(), model.embedding_
    square = ((new[:, None] - X) ** 2).sum(axis=2)
    P = torch.from_numpy(np.stack([softmax(row, bandwidth_by_bisection(row, 5)) for row in square]))
    d2 = (z[:, None] - torch.from_numpy(Z)).square().sum(dim=2)
    odds = 1 / (d2 + (1 if more["kernel"] == "student" else 1e-3))
    value = (-P * odds.log()).sum() + 7.0 * torch.log1p(odds).sum()
    value.backward()
    assert float(z.grad.norm(dim=1).max()) * np.linalg.norm(Z, axis=1).max() < 0.1


@pytest.mark.parametrize("name", ["obsm", "block", "tiles"])
def test_a_column_of_any_name_is_a_column(name):
    """An AnnData has an obsm, a cost and an affinity have a block and tiles."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X[:, :2], columns=["a", name])
    assert drot.sqeuclidean(table).shape == (len(X), len(X))


@pytest.mark.filterwarnings("ignore:SNE. the place of a new point")
def test_a_new_point_of_a_far_group_stays_near_the_map():
    """The tails of a Gaussian kernel are all but flat: they led it seventy radii away."""
    groups, _ = make_blobs(40, 4, centers=3, center_box=(-150, 150), random_state=0)
    model = drot.SNE(perplexity=5, random_state=0).fit(groups[:20])
    size = np.linalg.norm(model.embedding_, axis=1).max()
    assert np.linalg.norm(model.transform(groups[20:]), axis=1).max() < 4 * size
