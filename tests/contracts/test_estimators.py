"""The estimators of embeddings keep scikit-learn's rules and are the functions that they name."""

import copy
import inspect
import pickle
import re
import warnings
from collections import Counter
from itertools import permutations, product

import drot
import faults
import numpy as np
import pytest
import torch
from drot import SNE, TSNE, UMAP, LargeVis, SNEkhorn, TSNEkhorn
from drot._core import memory as _memory
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import pairwise_distances
from sklearn.utils.estimator_checks import check_estimator

STOCHASTIC = [SNEkhorn, TSNEkhorn]
ESTIMATORS = {kind: {"perplexity": 6.0} for kind in (SNE, TSNE, LargeVis, *STOCHASTIC)}
ESTIMATORS[UMAP] = {"n_neighbors": 6}
NEIGHBOURS = ("perplexity", "n_neighbors")
X = np.random.default_rng(0).normal(size=(30, 4))
START = np.random.default_rng(1).normal(size=(30, 2))
each = pytest.mark.parametrize("estimator", ESTIMATORS)
unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fit(estimator, **options):
    return estimator(**{**ESTIMATORS[estimator], **options}).fit(X)


def drawn(seed: int) -> int:
    """The seed of the start, as scikit-learn draws it."""
    return np.random.RandomState(seed).randint(2**31 - 1)


CHECKED = [
    *(kind(**dict.fromkeys(few, 3.5)) for kind, few in ESTIMATORS.items() if kind is not UMAP),
    UMAP(n_neighbors=3),
    TSNE(perplexity=8.5, metric="precomputed"),
    SNEkhorn(perplexity=8.5, metric="precomputed"),
    drot.CCPCA(perplexity=3.5, n_samples=5),
    drot.SemiRelaxedGWClustering(3, perplexity=3.0),
    drot.DistR(2, perplexity=3.0, init="cluster_then_reduce", n_starts=1),
    drot.SemiRelaxedGWClustering(3, similarity="precomputed"),
    drot.DistR(2, similarity="precomputed", kernel="gram", init="cluster_then_reduce", n_starts=1),
]
KNOWN = {  # of pairs: it makes distances to integers, some 0 and of no copies, or gives a cloud
    SNEkhorn: "check_estimators_dtypes",
    drot.SemiRelaxedGWClustering: "check_clustering",
    drot.DistR: "check_clustering",
}


@unfinished  # its values of max_iter are small
@pytest.mark.parametrize("model", CHECKED, ids=str)
def test_check_estimator(model):
    """scikit-learn's own list; as many neighbours as its small data sets allow, and not a tie."""
    pairs = "precomputed" in model.get_params().values()
    known = {KNOWN[type(model)]: "pairs"} if pairs and type(model) in KNOWN else {}
    results = check_estimator(model, on_skip=None, expected_failed_checks=known)
    count = Counter(result["status"] for result in results)
    assert count.keys() <= {"passed", "skipped", "xfail"} and count["passed"] >= 35
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == known.keys()


@each
def test_fit_is_the_functions(estimator):
    """Each is its chain of cost, affinity and method, to the bit, from a random start."""
    cost = drot.sqeuclidean(X)
    rows = drot.entropic_affinity(cost, perplexity=6.0, diagonal="drop").plan
    symmetric = drot.symmetric_entropic_affinity(cost, perplexity=6.0)
    plan, method, options = {
        SNE: (rows, drot.sne, {"normalization": "rows"}),
        TSNE: (drot.symmetrize(rows), drot.tsne, {}),
        LargeVis: ((rows + rows.T) / 2, drot.largevis, {}),
        UMAP: (drot.fuzzy_union(drot.umap_membership(cost, n_neighbors=6)), drot.umap, {}),
        SNEkhorn: (symmetric, drot.snekhorn, {"kernel": "gaussian"}),
        TSNEkhorn: (symmetric, drot.snekhorn, {"kernel": "student"}),
    }[estimator]
    model = fit(estimator, init="random", random_state=5)
    options["tol"] = {UMAP: 0.005}.get(estimator, 0.01)
    found = method(plan, init="random", random_state=drawn(5), **options)
    np.testing.assert_array_equal(model.affinity_, getattr(plan, "plan", plan))
    np.testing.assert_array_equal(model.embedding_, found.Z)
    assert model.kl_divergence_ == found.kl / len(found.Z) > 0 and model.result_.kl == found.kl
    assert model.n_iter_ == found.n_iter and model.n_features_in_ == 4
    assert type(model.kl_divergence_) is float and type(model.n_iter_) is int
    assert type(model.embedding_) is type(model.affinity_) is np.ndarray


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (LargeVis, {"repulsion": 7.0}),
        (UMAP, {"min_dist": 0.5}),
        (UMAP, {"n_neighbors": 9}),
        (UMAP, {"solver": "adam", "tol": 0.5, "max_iter": 5000}),
        (LargeVis, {"n_components": 3}),
        (TSNEkhorn, {"tol": 0.1}),
        (TSNEkhorn, {"solver": "adam", "tol": 0.1}),
    ],
)
def test_options(estimator, options):
    """Each option reaches the solver: another objective, another embedding."""
    plain, other = fit(estimator, init="pca"), fit(estimator, init="pca", **options)
    assert other.result_.converged and other.kl_divergence_ != plain.kl_divergence_
    assert other.embedding_.shape == (30, options.get("n_components", 2))


@pytest.mark.parametrize("init", ["spectral", "pca", "random", "ccpca", "array"])
@each
def test_starts(estimator, init):
    """Every start is the one it says; another fit goes on where one ended."""
    with pytest.warns(ConvergenceWarning, match="embedding stopped at a residual"):
        one = fit(estimator, init=START if init == "array" else init, max_iter=1, random_state=0)
    assert one.n_iter_ == 1 and not one.result_.converged
    if init in ("pca", "ccpca"):
        graph = drot.entropic_affinity(drot.sqeuclidean(X), perplexity=6.0, diagonal="drop")
        start = drot.ccpca(X, graph, random_state=drawn(0)).start
        start = drot.pca_start(X) if init == "pca" else start
        with pytest.warns(ConvergenceWarning):
            other = fit(estimator, init=start, max_iter=1)
        np.testing.assert_allclose(other.embedding_, one.embedding_, atol=1e-9)
    rest = fit(estimator, init=one.result_)
    assert rest.result_.values[0] == pytest.approx(one.result_.value, rel=1e-9)
    assert rest.result_.converged and rest.kl_divergence_ < one.kl_divergence_


@each
def test_rules(estimator):
    """Clones, names, keywords, documentation."""
    with pytest.raises(NotFittedError, match=r"is not fitted yet, .* 'embedding_'; call its fit"):
        _ = estimator().embedding_
    model = fit(estimator, random_state=0)
    np.testing.assert_array_equal(clone(model).fit_transform(X), model.embedding_)
    name = estimator.__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{name}0", f"{name}1"]
    with pytest.raises(AttributeError, match=r"has no 'nonsense'$"):
        _ = model.nonsense
    doc, parameters = inspect.getdoc(estimator), inspect.signature(estimator).parameters
    first, second, *_ = parameters
    assert first == "n_components" and second in NEIGHBOURS
    for parameter, one in parameters.items():
        assert re.search(rf"^{parameter} : ", doc, re.M), "explained here, and not elsewhere"
        assert (one.kind is one.KEYWORD_ONLY) == (parameter not in ("n_components", *NEIGHBOURS))


@unfinished
@pytest.mark.parametrize("tiled", [False, True], ids=["dense", "tiled"])
@pytest.mark.parametrize("name", [name for name in faults.ROWS if faults.is_estimator(name)])
def test_fitted_estimators_are_copied(name, tiled, monkeypatch):
    """`pickle` and `copy.deepcopy` take each, the affinity that is met in tiles too."""
    if tiled:
        monkeypatch.setattr(_memory, "physical_memory", lambda device: 0)
    model = faults.call(name, faults.ROWS[name].good())
    affinity = vars(model).get("_affinity")
    in_tiles = type(model) in ESTIMATORS and type(model) is not UMAP
    assert isinstance(affinity, drot.affinities.Affinity) >= (tiled and in_tiles)
    for back in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert vars(back).keys() == vars(model).keys()
        for key, value in vars(model).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(back, key), value)
        if isinstance(affinity, drot.affinities.Affinity):
            np.testing.assert_array_equal(back.affinity_, model.affinity_)
            assert (back._affinity.cost.block is None) == (affinity.cost.block is None)


@unfinished
@pytest.mark.parametrize("estimator", [*ESTIMATORS, drot.CCPCA])
def test_new_points_get_places_and_fitted_ones_keep_theirs(estimator):
    """Whatever the batch, on the fitted points the embedding, copies of one point included."""
    few = ESTIMATORS.get(estimator, {"perplexity": 6.0})
    clouds = X.astype(np.float32), X, np.concatenate([X, X[:2]])
    for cloud in clouds:
        model = estimator(**few, random_state=0).fit(cloud)
        assert model.embedding_.dtype == cloud.dtype
        np.testing.assert_array_equal(model.transform(cloud), model.embedding_)
        np.testing.assert_array_equal(model.transform(cloud[5:9]), model.embedding_[5:9])
        new = np.random.default_rng(1).normal(size=(40, 4)).astype(cloud.dtype)
        new[7] = cloud[3]
        before = pickle.dumps([vars(model), cloud, new])
        Z = model.transform(new)
        assert pickle.dumps([vars(model), cloud, new]) == before
        assert Z.dtype == cloud.dtype and np.isfinite(Z).all()
        np.testing.assert_array_equal(Z[7], model.embedding_[3])
        loose = 1e-6 if cloud.dtype == np.float64 else 2e-2
        if len(cloud) > 30:
            continue  # which of several copies are neighbours is left open
        for batch in (slice(0, 1), slice(5, 12)):
            np.testing.assert_allclose(model.transform(new[batch]), Z[batch], atol=loose)
    with pytest.raises(ValueError, match=r"row 1.*NaN|NaN.*row 1"):
        model.transform([[0.0] * 4, [np.nan] * 4])


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_copies_under_metrics_that_round(metric, dtype):
    """Fitted points stay where scikit-learn has a copy at 1e-16, in every unit."""
    cloud = (1e-3 * np.random.default_rng(0).normal(size=(30, 7))).astype(dtype)
    model = LargeVis(perplexity=6.0, metric=metric, init="random", random_state=0).fit(cloud)
    np.testing.assert_array_equal(model.transform(cloud[:20]), model.embedding_[:20])
    other = cloud[:1] * (1 + np.arange(7, dtype=dtype) / 9)
    assert np.abs(model.transform(other) - model.embedding_[0]).max() > 0


def test_a_new_point_that_no_bandwidth_fits_is_named(monkeypatch):
    """By its row among all that are asked for, whichever tile it is in, and whoever is a copy."""
    monkeypatch.setattr(drot.estimators.base, "rows_per_tile", lambda *_: 4)
    order = np.array([*permutations([1.0, 2.0, 3.0])])
    X = np.concatenate([order * signs for signs in product([-1, 1], repeat=3)])
    model = drot.TSNE(perplexity=10).fit(X)
    new = np.concatenate([X[:4], X[:2], np.zeros((1, 3))])  # all 48 are equally far from 0
    with pytest.raises(ValueError, match="row 6 has 48 entries, all equal"):
        model.transform(new)


def test_new_points_of_umap_are_placed_one_by_one():
    """Whatever else is asked for."""
    model = fit(UMAP, random_state=0)
    asked = np.concatenate([X[:1] + 0.1, X[:1] + 1e5])
    np.testing.assert_allclose(model.transform(asked)[:1], model.transform(asked[:1]), atol=1e-9)


def test_a_known_similarity_may_be_an_affinity():
    plan = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=5)
    known = drot.SemiRelaxedGWClustering(3, similarity="precomputed", random_state=0)
    np.testing.assert_array_equal(known.fit_predict(plan), clone(known).fit_predict(plan.plan))


def test_new_points_of_blobs_in_float32_come_to_rest():
    cloud = np.random.default_rng(0).normal(size=(120, 4)) + 10 * (np.arange(120) % 4)[:, None]
    model = UMAP(random_state=0).fit(cloud.astype(np.float32))
    with warnings.catch_warnings(action="error"):
        model.transform(cloud + 0.3)


@unfinished
@each
def test_metrics(estimator):
    """Distances are scikit-learn's, and precomputed ones those of points, new ones too: squared."""
    new, ask = np.random.default_rng(1).normal(size=(5, 4)), {"init": START, "max_iter": 1}
    for metric in ("l2", "minkowski", "cityblock"):
        D = pairwise_distances(X, metric=metric)
        plain = fit(estimator, metric=metric, **ask)
        known = estimator(**ESTIMATORS[estimator], metric="precomputed", **ask).fit(D)
        np.testing.assert_allclose(known.affinity_, plain.affinity_, atol=1e-9)
        Z = known.transform(pairwise_distances(new, X, metric=metric))
        np.testing.assert_allclose(Z, plain.transform(new), atol=1e-4)
        np.testing.assert_array_equal(known.transform(D), known.embedding_)


@unfinished
@each
def test_dtype(estimator):
    """Integers become float64, and `dtype` decides where it is given, however it is spelt."""
    plain = estimator(**ESTIMATORS[estimator], random_state=0, max_iter=20)
    assert plain.fit_transform((10 * X).astype(int)).dtype == np.float64
    for dtype in ("float32", np.float32, torch.float32):
        model = fit(estimator, dtype=dtype, random_state=0, max_iter=20)
        assert model.embedding_.dtype == model.affinity_.dtype == np.float32


@each
def test_a_callback_hears_of_each_step_and_may_end_the_run(estimator, capsys):
    """With a bar or in silence; what was found is kept, and no warning says it is not at rest."""
    for verbose in (0, 1):
        heard = []

        def callback(number, residual, Z, value, heard=heard):
            heard.append((number, residual, tuple(Z.shape)))
            return number == 3

        model = fit(estimator, random_state=0, callback=callback, tol=1e-9, verbose=verbose)
        assert [number for number, *_ in heard] == [0, 1, 2, 3] and model.n_iter_ == 3
        assert heard[-1][1:] == (model.result_.residual, (30, 2))
        out, err = capsys.readouterr()
        assert out == "" and ("embedding" in err) == ("residual=" in err) == bool(verbose)
        assert ("affinity" in err) == (verbose and estimator in STOCHASTIC)
        assert clone(model).callback is callback


@unfinished
@each
def test_an_affinity_need_not_be_kept(estimator):
    plain = fit(estimator, random_state=0, max_iter=5)
    light = fit(estimator, random_state=0, max_iter=5, keep_affinity=False)
    np.testing.assert_array_equal(light.embedding_, plain.embedding_)
    np.testing.assert_array_equal(light.transform(X[:3] + 0.1), plain.transform(X[:3] + 0.1))
    assert not any(getattr(v, "shape", ()) == (30, 30) for v in vars(light).values())
    with pytest.raises(AttributeError, match=r"has no 'affinity_': .* keep_affinity=False"):
        _ = light.affinity_


def test_callbacks_of_the_others():
    heard = []
    drot.CCPCA(perplexity=6.0, n_samples=4, callback=lambda *told: heard.append(told)).fit(X)
    assert [number for number, _ in heard][-1] == 4
    for model in (drot.DistR(4, perplexity=6.0), drot.SemiRelaxedGWClustering(4, perplexity=6.0)):
        heard.clear()
        model.set_params(callback=lambda *told: heard.append(told), random_state=0).fit(X)
        assert len(heard) > 1 and all(residual >= 0 for _, residual, _ in heard)


@pytest.mark.parametrize(
    ("limits", "advice"),
    [({"max_iter": 3}, "raise max_iter or loosen"), ({}, "no step gains any more: loosen")],
)
def test_advice_names_the_limit_that_was_met(limits, advice):
    """No residual of single precision is that small, so the descent ends by itself."""
    few = np.random.default_rng(0).normal(size=(30, 3)).astype("float32")
    with pytest.warns(ConvergenceWarning, match=f"above its tolerance; {advice} tol$"):
        drot.SNE(perplexity=5, tol=1e-12, random_state=0, **limits).fit(few)
