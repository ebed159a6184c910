"""The estimators keep scikit-learn's rules and say what they do."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings

import drot
import faults
import numpy as np
import pytest
import torch
from drot._core import memory as _memory
from drot.affinities.symmetric import symmetric_entropic_affinity
from drot.embeddings.methods import largevis, sne, snekhorn, tsne, umap
from drot.estimators.embedding import SNE, TSNE, UMAP, LargeVis, SNEkhorn, TSNEkhorn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

ESTIMATORS = [SNEkhorn, TSNEkhorn]
KERNELS = {SNEkhorn: "gaussian", TSNEkhorn: "student"}


def points(n: int = 30, p: int = 4) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, p))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_check_estimator(estimator):
    """scikit-learn's own list; a perplexity that its small data sets allow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its max_iter values are small
        results = check_estimator(estimator(perplexity=3.0), on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert sum(result["status"] == "passed" for result in results) >= 35


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fit_is_the_functions(estimator):
    """The estimator is the chain of cost, affinity and embedding, to the bit."""
    X = points()
    model = estimator(perplexity=6.0, init="random", random_state=5).fit(X)
    affinity = symmetric_entropic_affinity(drot.sqeuclidean(X), 6.0)
    seed = np.random.RandomState(5).randint(2**31 - 1)
    found = snekhorn(affinity, kernel=KERNELS[estimator], init="random", random_state=seed)
    np.testing.assert_array_equal(model.affinity_, affinity.plan)
    np.testing.assert_array_equal(model.embedding_, found.Z)
    assert model.kl_divergence_ == found.kl == model.result_.kl
    assert model.n_iter_ == found.n_iter and model.n_features_in_ == 4
    # and the divergence is the one of the two plans
    cost = drot.sqeuclidean if estimator is SNEkhorn else drot.student_cost
    Q = drot.doubly_stochastic_affinity(cost(found.Z), bandwidth=1.0).plan
    assert model.kl_divergence_ == pytest.approx(float(drot.kl_divergence(affinity.plan, Q)))
    for name in ("embedding_", "affinity_"):
        assert type(getattr(model, name)) is np.ndarray
    assert type(model.kl_divergence_) is float and type(model.n_iter_) is int


@pytest.mark.parametrize(
    "options", [{"tol": 0.1}, {"solver": "spectral", "tol": 0.1}, {"solver": "adam", "tol": 0.5}]
)
def test_options_reach_the_solver(options):
    """Tolerance and solver are those of the function, to the bit."""
    X, start = points(), np.random.default_rng(1).normal(size=(30, 2))
    model = TSNEkhorn(perplexity=6.0, init=start, **options).fit(X)
    plan = symmetric_entropic_affinity(drot.sqeuclidean(X), 6.0)
    found = snekhorn(plan, kernel="student", init=start, **options)
    assert model.result_.values == found.values and found.n_iter > 0
    assert found.values != snekhorn(plan, kernel="student", init=start).values


@pytest.mark.parametrize("init", ["spectral", "pca", "random"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_random_state(estimator, init):
    """Same seed, same bits, whether an integer or a RandomState; X is left as it was."""
    X = points()
    before = X.tobytes()
    options = {"perplexity": 6.0, "init": init, "max_iter": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        runs = [
            estimator(random_state=seed, **options).fit_transform(X)
            for seed in (0, 0, np.random.RandomState(0), 1)
        ]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])
    assert X.tobytes() == before
    assert (init == "random") == (not np.allclose(runs[0], runs[3], atol=1e-3))


def test_there_is_no_transform():
    """Absent by scikit-learn's rule, with the reason in the error."""
    model = TSNEkhorn(perplexity=6.0).fit(points())
    assert not hasattr(model, "transform")
    with pytest.raises(AttributeError, match="has no 'transform': a new point would change"):
        model.transform(points())
    with pytest.raises(AttributeError, match=r"has no 'nonsense'$"):
        _ = model.nonsense


def test_not_fitted():
    """An unfitted model has no embedding and scikit-learn says so."""
    with pytest.raises(NotFittedError):
        check_is_fitted(TSNEkhorn())
    check_is_fitted(TSNEkhorn(perplexity=6.0).fit(points()))


def test_parameters():
    """Both take the same, keyword-only past the second; clones and pickles keep all."""
    names = list(inspect.signature(TSNEkhorn).parameters)
    assert names == list(inspect.signature(SNEkhorn).parameters)
    assert names[:2] == ["n_components", "perplexity"]
    for name, parameter in inspect.signature(TSNEkhorn).parameters.items():
        assert (parameter.kind is parameter.KEYWORD_ONLY) == (name not in names[:2])
        assert name in inspect.getdoc(TSNEkhorn) and name in inspect.getdoc(SNEkhorn)
    model = TSNEkhorn(3, 6.0, init="random", random_state=2, tol=1e-2)
    assert clone(model).get_params() == model.get_params()
    model.fit(points())
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.embedding_, model.embedding_)
    assert model.embedding_.shape == (30, 3)


@pytest.mark.parametrize("tiled", [False, True], ids=["dense", "tiled"])
@pytest.mark.parametrize("name", [name for name in faults.ROWS if faults.is_estimator(name)])
def test_fitted_estimators_are_copied(name, tiled, monkeypatch):
    """`pickle` and `copy.deepcopy` take each, the affinity that is met in tiles too."""
    if tiled:
        monkeypatch.setattr(_memory, "free_memory", lambda device: 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = faults.call(name, faults.ROWS[name].good())
    affinity = getattr(model, "affinity_", None)
    assert isinstance(affinity, drot.affinities.Affinity) >= (tiled and name in IN_TILES)
    for back in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert vars(back).keys() == vars(model).keys()
        for key, value in vars(model).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(back, key), value)
        if isinstance(affinity, drot.affinities.Affinity):
            assert torch.equal(back.affinity_.plan, affinity.plan)
            assert (back.affinity_.cost.block is None) == (affinity.cost.block is None)


IN_TILES = {f"drot.{name}" for name in ("SNE", "TSNE", "LargeVis", "SNEkhorn", "TSNEkhorn")}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_dtype(estimator):
    """float32 stays, integers become float64, and `dtype` decides where it is given."""
    X = points()
    options = {"perplexity": 6.0, "random_state": 0}
    assert estimator(**options).fit_transform(X.astype(np.float32)).dtype == np.float32
    assert estimator(**options).fit_transform((10 * X).astype(int)).dtype == np.float64
    for dtype in ("float32", np.float32, torch.float32):
        model = estimator(dtype=dtype, **options).fit(X)
        assert model.embedding_.dtype == model.affinity_.dtype == np.float32
    with pytest.raises(ValueError, match="'float32', 'float64'"):
        estimator(dtype="float16", **options).fit(X)


def test_init():
    """An array, or the result of an earlier fit, which goes on where that one ended."""
    X = points()
    start = np.random.default_rng(1).normal(size=(30, 2))
    with pytest.warns(ConvergenceWarning, match="embedding stopped at a residual"):
        part = TSNEkhorn(perplexity=6.0, init=start, max_iter=5).fit(X)
    assert part.n_iter_ == 5 and not part.result_.converged
    rest = TSNEkhorn(perplexity=6.0, init=part.result_).fit(X)
    assert rest.result_.values[0] == pytest.approx(part.result_.value, abs=1e-6)
    assert rest.result_.converged and rest.kl_divergence_ < part.kl_divergence_


def test_verbose(capsys):
    """Silent by default; with verbose=1 two bars with residuals, on stderr."""
    TSNEkhorn(perplexity=6.0).fit(points())
    quiet = capsys.readouterr()
    assert quiet.out == quiet.err == ""
    TSNEkhorn(perplexity=6.0, verbose=1).fit(points())
    loud = capsys.readouterr()
    assert loud.out == ""
    assert "affinity" in loud.err and "embedding" in loud.err and "residual=" in loud.err


def test_pipeline_and_names():
    """It stands at the end of a pipeline and names its columns."""
    pipe = make_pipeline(StandardScaler(), TSNEkhorn(perplexity=6.0, random_state=0))
    assert pipe.fit_transform(points()).shape == (30, 2)
    assert list(pipe[-1].get_feature_names_out()) == ["tsnekhorn0", "tsnekhorn1"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"perplexity": 40.0}, r"perplexity=40 is out of reach .* 30"),
        ({"init": "umap"}, r"'spectral', 'pca', 'random'"),
        ({"solver": "sgd"}, r"'lbfgs', 'spectral', 'adam'"),
        ({"tol": 0.0}, r"tol must be positive"),
        ({"n_components": 0}, r"n_components must be"),
        ({"init": np.zeros((3, 2))}, r"init has 3 points"),
    ],
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_errors(estimator, options, says):
    """Errors are those of the functions: one sentence."""
    with pytest.raises(ValueError, match=says):
        estimator(**{"perplexity": 6.0, **options}).fit(points())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_device(estimator, gpu):
    """On a GPU: the same embedding from the same start, NumPy out."""
    X = points()
    options = {"perplexity": 6.0, "init": "pca"}
    here, there = (estimator(device=d, **options).fit(X) for d in (None, gpu))
    assert there.result_.Z.device.type == gpu and type(there.embedding_) is np.ndarray
    assert there.kl_divergence_ == pytest.approx(here.kl_divergence_, rel=1e-3)


# --------------------------------------------------------------- SNE, t-SNE, LargeVis and UMAP
COUPLINGS = {SNE: {"perplexity": 6.0}, TSNE: {"perplexity": 6.0}, LargeVis: {"perplexity": 6.0}}
COUPLINGS[UMAP] = {"n_neighbors": 6}


@pytest.mark.parametrize("estimator", COUPLINGS)
def test_check_estimator_of_couplings(estimator):
    """scikit-learn's own list; as many neighbours as its small data sets allow, and not a tie."""
    few = {name: 3.5 if name == "perplexity" else 3 for name in COUPLINGS[estimator]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        results = check_estimator(estimator(**few), on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert sum(result["status"] == "passed" for result in results) >= 35


@pytest.mark.parametrize("estimator", COUPLINGS)
def test_couplings_are_the_functions(estimator):
    """Each is its chain of cost, affinity and method, to the bit, from a random start."""
    X = points()
    cost = drot.sqeuclidean(X)
    rows = drot.entropic_affinity(cost, 6.0, diagonal="drop").plan
    plan, method, options, mass = {
        SNE: (rows, sne, {"normalization": "rows"}, 30),
        TSNE: (drot.symmetrize(rows), tsne, {}, 30),
        LargeVis: ((rows + rows.T) / 2, largevis, {}, 30),
        UMAP: (drot.fuzzy_union(drot.umap_membership(cost, 6)), umap, {}, None),
    }[estimator]
    seed = np.random.RandomState(5).randint(2**31 - 1)
    model = estimator(**COUPLINGS[estimator], init="random", random_state=5).fit(X)
    found = method(plan, init="random", random_state=seed, **options)
    np.testing.assert_array_equal(model.affinity_, plan)
    np.testing.assert_array_equal(model.embedding_, found.Z)
    assert model.kl_divergence_ == found.kl == model.result_.kl and found.kl > 0
    assert model.n_iter_ == found.n_iter and model.n_features_in_ == 4
    if mass:
        assert model.affinity_.sum() == pytest.approx(mass)
    assert (model.affinity_.diagonal() == 0).all()
    assert getattr(drot, estimator.__name__) is estimator


@pytest.mark.parametrize("init", ["spectral", "pca", "random", "ccpca", "array"])
@pytest.mark.parametrize("estimator", [*COUPLINGS, TSNEkhorn])
def test_starts_of_couplings(estimator, init):
    """Every start is the one it says; another fit goes on where one ended."""
    X = points()
    options = {**COUPLINGS.get(estimator, {"perplexity": 6.0}), "random_state": 0}
    start = np.random.default_rng(1).normal(size=(30, 2)) if init == "array" else init
    with pytest.warns(ConvergenceWarning, match="embedding stopped"):
        one = estimator(**options, init=start, max_iter=1).fit(X)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    if init in ("pca", "ccpca"):
        graph = drot.entropic_affinity(drot.sqeuclidean(X), 6.0, diagonal="drop")
        start = (
            drot.pca_start(X) if init == "pca" else drot.ccpca(X, graph, random_state=seed).start
        )
        with pytest.warns(ConvergenceWarning):
            other = estimator(**options, init=start, max_iter=1).fit(X)
        np.testing.assert_allclose(other.embedding_, one.embedding_, atol=1e-9)
    rest = estimator(**options, init=one.result_).fit(X)
    assert rest.result_.converged
    assert rest.result_.values[0] == pytest.approx(one.result_.value, rel=1e-9)
    assert rest.kl_divergence_ < one.kl_divergence_


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (LargeVis, {"repulsion": 7.0}),
        (LargeVis, {"kernel": "curve"}),
        (UMAP, {"repulsion": 2.0}),
        (UMAP, {"min_dist": 0.5}),
        (UMAP, {"spread": 2.0}),
        (UMAP, {"local_connectivity": 2.0}),
        (UMAP, {"n_neighbors": 9}),
        (SNE, {"perplexity": 9.0}),
        (TSNE, {"solver": "spectral", "tol": 0.1}),
        (UMAP, {"solver": "adam", "tol": 0.5, "max_iter": 5000}),
        (LargeVis, {"n_components": 3}),
    ],
)
def test_options_of_couplings(estimator, options):
    """Each option reaches the solver: another objective, another embedding."""
    X = points()
    plain = estimator(**COUPLINGS[estimator], init="pca").fit(X)
    other = estimator(**{**COUPLINGS[estimator], "init": "pca", **options}).fit(X)
    assert other.result_.converged and other.kl_divergence_ != plain.kl_divergence_
    assert other.embedding_.shape == (30, options.get("n_components", 2))


@pytest.mark.parametrize("estimator", COUPLINGS)
def test_rules_of_couplings(estimator, capsys):
    """The rules of the others: silence, dtype, clones, names, no transform, no change of X."""
    X = points()
    before = X.tobytes()
    options = {**COUPLINGS[estimator], "random_state": 0}
    model = estimator(**options).fit(X)
    quiet = capsys.readouterr()
    assert quiet.out == quiet.err == "" and X.tobytes() == before
    assert model.embedding_.dtype == model.affinity_.dtype == np.float64
    assert type(model.kl_divergence_) is float and type(model.n_iter_) is int
    np.testing.assert_array_equal(estimator(**options).fit_transform(X), model.embedding_)
    assert estimator(**options, dtype="float32").fit(X).embedding_.dtype == np.float32
    assert clone(model).get_params() == model.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).embedding_, model.embedding_)
    name = estimator.__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{name}0", f"{name}1"]
    with pytest.raises(AttributeError, match="has no 'transform': a new point would change"):
        model.transform(X)
    estimator(**options, verbose=1).fit(X)
    assert "embedding" in capsys.readouterr().err
    doc = inspect.getdoc(estimator)
    for parameter, kind in inspect.signature(estimator).parameters.items():
        assert parameter in doc
        assert (kind.kind is kind.KEYWORD_ONLY) == (
            parameter not in ("n_components", "perplexity", "n_neighbors")
        )


@pytest.mark.parametrize(
    ("estimator", "options", "says"),
    [
        (SNE, {"perplexity": 29.0}, r"perplexity=29 is out of reach .* 29"),
        (TSNE, {"init": "umap"}, r"'spectral', 'pca', 'random', 'ccpca'"),
        (LargeVis, {"kernel": "gaussian"}, r"'student', 'curve'"),
        (LargeVis, {"repulsion": 0.01}, r"above repulsion=0.01"),
        (UMAP, {"n_neighbors": 31}, r"n_neighbors must be a whole number from 2 to 30"),
        (UMAP, {"min_dist": 2.0}, r"min_dist must be from 0 to spread=1"),
        (UMAP, {"spread": 0.0}, r"spread must be positive"),
        (UMAP, {"local_connectivity": -1.0}, r"local_connectivity must be"),
        (UMAP, {"init": np.zeros((3, 2))}, r"init has 3 points"),
    ],
)
def test_errors_of_couplings(estimator, options, says):
    with pytest.raises(ValueError, match=says):
        estimator(**{**COUPLINGS[estimator], **options}).fit(points())
