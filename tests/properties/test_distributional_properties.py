"""Distributional reduction: invariances, results, input, and the estimator."""

from __future__ import annotations

import inspect
import math
import pickle
import sys
import warnings
from itertools import islice

import drot
import numpy as np
import pytest
import torch
from clouds import cloud as any_cloud
from clouds import quick
from drot import DistR
from drot.distributional.loss import PrototypeLoss
from drot.distributional.reduction import Placed, read_problem
from drot.distributional.solve import descent
from drot.gromov.semirelaxed import spectral_labels
from hypothesis import given
from hypothesis import strategies as st
from plans import cloud, energy, pointwise
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

FAST = {"init": "cluster_then_reduce", "n_starts": 1}


def affinity(n: int = 24, perplexity: float = 5.0, seed: int = 0) -> torch.Tensor:
    X = cloud(n, 3, seed)
    X[: n // 2] += 4
    return drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity).plan


def blobs() -> tuple[np.ndarray, np.ndarray]:
    y = np.repeat([0, 1, 2], 10)
    return np.random.default_rng(0).normal(size=(30, 4)) + 8 * y[:, None] * [1, -1, 1, 0], y


@pytest.mark.parametrize("n", [60, 480])  # all eigenvectors, and Lanczos iteration
def test_spectral_clusters_are_those_of_scikit_learn(n):
    """Four clusters with a weak link between each two, and a point that knows only itself."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=n)
    weights = rng.uniform(0.5, 1.5, size=(n, n)) * np.where(y[:, None] == y, 1, 0.05)
    weights = (weights + weights.T) / 2
    theirs = SpectralClustering(4, affinity="precomputed", random_state=0).fit(weights).labels_
    ours = spectral_labels(torch.tensor(weights), 4, np.random.default_rng(0))
    assert adjusted_rand_score(y, ours) == 1
    assert adjusted_rand_score(theirs, ours) == 1
    heavy = weights + np.diag(rng.uniform(0, 100, size=n))  # a graph has no loops
    again = spectral_labels(torch.tensor(heavy), 4, np.random.default_rng(0))
    assert adjusted_rand_score(again, ours) == 1
    unlike = weights * np.exp(rng.normal(size=n))[:, None] * np.exp(rng.normal(size=n))
    unlike = (unlike + unlike.T) / 2  # degrees of all sizes, which the division takes out
    assert (
        adjusted_rand_score(y, spectral_labels(torch.tensor(unlike), 4, np.random.default_rng(0)))
        > 0.9
    )
    alone = torch.tensor(weights)
    alone[0, 1:] = alone[1:, 0] = 0
    found = spectral_labels(alone, 4, np.random.default_rng(0))
    assert adjusted_rand_score(y[1:], found[1:]) == 1


def test_spectral_clusters_find_the_parts_of_a_graph():
    """As many eigenvalues 1 as parts; Lanczos iteration from one vector misses some of them."""
    for seed in range(1, 4):
        rng = np.random.default_rng(seed)
        y = rng.integers(30, size=700)
        weights = rng.uniform(0.5, 1.5, size=(700, 700)) * (y[:, None] == y)
        for dtype in (torch.float64, torch.float32):
            graph = torch.tensor(weights + weights.T).to(dtype)
            labels = spectral_labels(graph, 30, np.random.default_rng(seed))
            assert adjusted_rand_score(y, labels) == 1
    assert spectral_labels(torch.zeros(700, 700), 3, np.random.default_rng(0)).shape == (700,)


@quick
@given(
    kind=st.sampled_from(["gaussian", "scales", "clusters", "duplicates", "outliers", "line"]),
    seed=st.integers(0, 1000),
    k=st.integers(2, 6),
    normalization=st.sampled_from(["sum", "rows", "doubly_stochastic", "none"]),
)
def test_any_cloud(kind, seed, k, normalization):
    """On any data a plan with its row sums, a trace that falls, and points that are finite."""
    X = any_cloud(kind, seed, 16, 3)
    P = drot.symmetrize(drot.entropic_affinity(drot.sqeuclidean(X), 5.0))
    found = drot.distributional_reduction(
        P, k, normalization=normalization, on_failure="ignore", max_iter=5, **FAST
    )
    assert torch.isfinite(found.Z).all() and bool((found.plan >= 0).all())
    torch.testing.assert_close(found.plan.sum(dim=1), torch.full((16,), 1 / 16).double())
    assert all(b <= a for a, b in zip(found.trace, found.trace[1:], strict=False))
    assert found.objective >= -1e-12


@pytest.mark.parametrize("normalization", ["sum", "rows", "doubly_stochastic"])
def test_scale_of_the_similarity(normalization):
    """A factor on C is a factor on Cbar and on the objective; positions and plan do not move."""
    C = affinity()
    one = drot.distributional_reduction(C, 4, normalization=normalization, **FAST)
    two = drot.distributional_reduction(8 * C, 4, normalization=normalization, **FAST)
    torch.testing.assert_close(one.Z, two.Z, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(one.plan, two.plan)
    torch.testing.assert_close(8 * one.structure, two.structure, rtol=1e-6, atol=0)
    assert two.objective == pytest.approx(8 * one.objective, rel=1e-8)


def test_order_of_points_and_prototypes():
    """From the same plan, points and prototypes in another order give the same, reordered."""
    C, rng = affinity(), np.random.default_rng(1)
    first = drot.cluster_then_reduce(C, 4)
    rows, columns = torch.from_numpy(rng.permutation(24)), torch.from_numpy(rng.permutation(4))
    kind = type(first)
    fields = {name: getattr(first, name) for name in first.__dataclass_fields__}
    moved = kind(**{**fields, "plan": first.plan[rows][:, columns], "Z": first.Z[columns]})
    one = drot.distributional_reduction(C, 4, init=first, tol=1e-5)
    two = drot.distributional_reduction(C[rows][:, rows], 4, init=moved, tol=1e-5)
    assert two.objective == pytest.approx(one.objective, rel=1e-7)
    torch.testing.assert_close(two.plan, one.plan[rows][:, columns])
    torch.testing.assert_close(two.Z, one.Z[columns], atol=1e-3, rtol=1e-3)


def test_weights_stand_for_copies():
    """A point of weight 2 / n is two points: same objective, same weights of the prototypes."""
    C = affinity(12)
    copies = torch.cat([torch.arange(12), torch.arange(4)])
    w = torch.bincount(copies).double() / 16
    labels = torch.arange(12) % 3
    plan = torch.nn.functional.one_hot(labels, 3).double()
    one = drot.distributional_reduction(C, 3, weights=w, init=plan * w[:, None], tol=1e-5)
    big = C[copies][:, copies]
    two = drot.distributional_reduction(big, 3, init=plan[copies] / 16, tol=1e-5)
    assert two.objective == pytest.approx(one.objective, rel=1e-6)
    torch.testing.assert_close(one.weights, two.weights)


def test_seeds_callbacks_and_resuming():
    """Same seed, same bits; a callback sees each round and can stop; a result continues."""
    C = affinity()
    before = C.clone()
    seen = []
    one = drot.distributional_reduction(
        C, 5, callback=lambda i, r, Z: seen.append((i, r, Z.shape)), random_state=3
    )
    two = drot.distributional_reduction(C, 5, random_state=np.int64(3))
    assert torch.equal(one.Z, two.Z) and torch.equal(one.plan, two.plan)
    assert torch.equal(C, before)
    assert [i for i, _, _ in seen] == list(range(len(seen))) and seen[0][2] == (5, 2)
    assert one.residual in [r for _, r, _ in seen] and len(one.values) == 4
    stopped = drot.distributional_reduction(C, 5, callback=lambda *_: True, tol=1e-30)
    assert stopped.n_iter == 0 and len(stopped.values) == 1 and not stopped.converged
    after = drot.distributional_reduction(C, 5, callback=lambda i, r, Z: i == 1, tol=1e-30)
    assert after.n_iter == 1 and len(after.values) == 1 and not after.converged
    with pytest.raises(drot.NotConverged, match="distributional_reduction: the residual"):
        drot.distributional_reduction(C, 5, max_iter=1, tol=1e-30)
    with pytest.warns(RuntimeWarning, match="residual"):
        short = drot.distributional_reduction(C, 5, max_iter=1, tol=1e-30, on_failure="warn")
    on = drot.distributional_reduction(C, 5, init=short, tol=1e-5)
    assert on.trace[0] == pytest.approx(short.objective, rel=1e-9)
    assert on.objective <= short.objective and on.converged


FOLLOW = [("sum", "kl"), ("doubly_stochastic", "kl"), ("sum", "square")]


@pytest.mark.parametrize(("normalization", "loss"), FOLLOW)
def test_plan_follows_the_factors_of_the_kernel(normalization, loss, monkeypatch):
    """One plan is the best for the factors of the plan before it; the rounds end at one that is
    the best for its own, and the gap is that at the factors of the plan."""
    rng = np.random.default_rng(4)
    C = torch.exp(-drot.sqeuclidean(torch.from_numpy(rng.normal(size=(14, 3)))).dense() / 3)
    terms = read_problem(C, 4, 2, "student", normalization, loss, None)
    Z = torch.from_numpy(rng.normal(size=(4, 2)))
    start = terms.hard(torch.arange(14) % 4)
    values = [energy(C, terms.structure(Z, start)[0], start.T, loss)]
    for rounds in (1, 20):
        monkeypatch.setattr(drot.distributional.reduction, "_ROUNDS", rounds)
        moved = terms.transport(Z, start)
        gap = terms.gap(Z, moved)
        target, T = terms.structure(Z, moved)[0].numpy(), moved.T.numpy()
        values.append(energy(C, target, T, loss))
        slope = 2 * np.einsum("ijkl,jl->ik", pointwise(C, target, loss), T)
        owed = (slope * T).sum() - slope.min(axis=1).sum() / 14
        scale = terms.plans(Z, moved)[0].scale
        assert gap == pytest.approx(owed / scale, abs=1e-12) and (gap > 1e-5) == (rounds == 1)
    assert values[0] > values[1] > values[2]


def test_what_is_no_better_is_not_taken(monkeypatch):
    """Where rounding, or a descent gone wrong, gives a higher value: positions stay, or plans."""
    terms = read_problem(affinity(), 4, 2, "student", None, None, None)
    start = terms.hard(torch.arange(24) % 4)
    Z = terms.start(start, np.random.default_rng(0))
    begin = Placed(Z, start, math.inf, (terms.objective(Z, start),))
    monkeypatch.setattr(terms, "place", lambda Z, c, tol, most: 30 * Z)
    assert terms.objective(30 * Z, start) > terms.objective(Z, start)
    _, (found, *_) = islice(descent(terms, begin, 1e-9), 2)
    first, placed, moved = found.trace
    assert torch.equal(found.Z, Z) and first == placed == terms.objective(Z, start)
    assert placed > moved == terms.objective(Z, found.coupling)  # the plan goes on from there
    monkeypatch.undo()
    worst = terms.hard(torch.zeros(24, dtype=torch.int64))
    monkeypatch.setattr(terms, "transport", lambda Z, c: worst)
    _, (found, *_) = islice(descent(terms, begin, 1e-9), 2)
    first, placed, moved = found.trace
    assert found.coupling is start and first > placed == moved == terms.objective(found.Z, start)
    assert terms.objective(found.Z, worst) > moved


@pytest.mark.parametrize("when", [1, 4])
def test_interrupt_inside_the_positions(when, monkeypatch):
    """Ctrl-C in a descent of the positions ends the rounds too, with one warning."""

    def evaluate(self, Z, **options):
        calls.append(Z)
        if len(calls) == when:
            raise KeyboardInterrupt
        return evaluation(self, Z, **options)

    calls, evaluation = [], PrototypeLoss.evaluate
    monkeypatch.setattr(PrototypeLoss, "evaluate", evaluate)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = DistR(perplexity=5.0, n_prototypes=5, init="random", n_starts=3, random_state=0)
        model.fit(blobs()[0])
    texts = [str(warning.message) for warning in seen]
    told = [text for text in texts if "interrupted" in text]
    assert len(told) == 1 and told[0].startswith("distributional_reduction: interrupted after ")
    assert not any("embed" in text for text in texts)
    assert len(calls) == when and len(model.result_.values) == 1
    assert np.isfinite(model.embedding_).all()


def test_plan_of_prototypes_that_has_none(monkeypatch):
    """Positions that are not finite, or a budget spent: how far off the rows are, and why."""
    q = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    M = torch.diag(q) + 0.2 * q[:, None] * q
    loss = PrototypeLoss(M, q, 0.0, "student", "doubly_stochastic")
    Z = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    with pytest.raises(drot.NotConverged, match="row sums are nan off after 1 products; the embed"):
        loss.evaluate(Z * torch.nan)
    K = 1 / (1 + torch.cdist(Z, Z).square())
    target = M.sum(dim=1) / q
    f = (target / (K @ q)).log() / 2
    first = f.exp() * (K @ (q * f.exp())) / target
    f = f - 2 / 3 * first.log()
    second = f.exp() * (K @ (q * f.exp())) / target
    for most, sums in ((1, first), (2, second)):
        monkeypatch.setattr(drot._core.sinkhorn, "_MOST", most)
        residual = float((sums - 1).abs().max())
        says = f"^the plan of the prototypes: row sums are {residual:.1e} off after {most} products"
        with pytest.raises(drot.NotConverged, match=says):
            loss.evaluate(Z, tol=1e-9)
    monkeypatch.undo()
    assert math.isfinite(loss.evaluate(Z, tol=1e-9).value)


def test_results_are_kept(tmp_path):
    """Saved without pickle, equal to the bit."""
    found = drot.distributional_reduction(affinity(), 4, **FAST)
    found.save(tmp_path / "found.npz")
    back = drot.load(tmp_path / "found.npz")
    assert type(back) is drot.distributional.DistributionalReduction
    for name in ("Z", "plan", "structure"):
        assert torch.equal(getattr(back, name), getattr(found, name))
    assert back.trace == found.trace and back.objective == found.objective
    assert "24 points, 4 of 4 prototypes" in repr(found)
    with pytest.raises(AttributeError):
        found.Z = None


def test_dtype():
    """float32 stays, and is close to float64."""
    C = affinity()
    fine = drot.distributional_reduction(C, 4, **FAST)
    coarse = drot.distributional_reduction(C.float(), 4, **FAST, on_failure="ignore")
    for value in (coarse.Z, coarse.plan, coarse.structure):
        assert value.dtype == torch.float32
    assert coarse.objective == pytest.approx(fine.objective, rel=2e-2)
    X = cloud(20, 3)
    thin = drot.gram((X - X.mean(dim=0)).float())
    assert drot.distributional_reduction(thin, 4, kernel="gram", **FAST).Z.dtype == torch.float32


GOOD = affinity(8, 3.0)
BAD = [
    (dict(similarity=GOOD[:, :4]), "square"),
    (dict(similarity=GOOD + torch.triu(GOOD)), "symmetric"),
    (dict(similarity=-GOOD), "without negative entries; entry"),
    (dict(similarity=GOOD * torch.nan), "finite"),
    (dict(n_prototypes=1), "n_prototypes must be a whole number from 2 to 8; got 1"),
    (dict(n_prototypes=9), "from 2 to 8; got 9"),
    (dict(n_components=0), "n_components must be a whole number"),
    (dict(kernel="cauchy"), "'student', 'gaussian', 'gram'"),
    (dict(normalization="columns"), "'sum', 'rows', 'doubly_stochastic', 'none'"),
    (dict(loss="l1"), "'square', 'kl'"),
    (dict(kernel="gram", loss="kl"), "kernel='gram' has entries of both signs"),
    (dict(loss="square", normalization="rows"), "goes with loss='kl'"),
    (dict(weights=np.full(8, 1.0)), "weights must sum to 1; got 8"),
    (dict(weights=-np.full(8, 1 / 8)), "must not be negative"),
    (dict(init="pca"), "'cluster_then_reduce', 'reduce_then_cluster', 'random'"),
    (dict(init=np.zeros((8, 3))), "row sums"),
    (dict(init=np.zeros((8, 2))), r"init must be a \(8, 3\) plan"),
    (dict(clustering="dbscan"), "'spectral', 'kmeans'"),
    (dict(tol=-1.0), "tol must be positive"),
    (dict(n_starts=0), "n_starts must be"),
    (dict(max_iter=0), "max_iter must be"),
    (dict(on_failure="cry"), "'raise', 'warn', 'ignore'"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input(change, message):
    options = {"similarity": GOOD, "n_prototypes": 3, **change}
    with pytest.raises(ValueError, match=message):
        drot.distributional_reduction(**options)
    if set(change) <= {"similarity", "n_prototypes", "kernel", "loss", "clustering", "on_failure"}:
        for method in (drot.cluster_then_reduce, drot.reduce_then_cluster):
            with pytest.raises(ValueError, match=message):
                method(**options)


def test_bad_input_of_scores_and_coot():
    T = np.eye(3) / 3
    scores = drot.metrics
    with pytest.raises(ValueError, match=r"one label per row; got \(3, 3\) and \(2,\)"):
        scores.prototype_homogeneity([0, 1], T)
    with pytest.raises(ValueError, match="some mass"):
        scores.prototype_homogeneity([0, 1, 1], 0 * T)
    with pytest.raises(ValueError, match="at least 2 classes"):
        scores.weighted_silhouette(np.eye(3), T, [1, 1, 1])
    with pytest.raises(ValueError, match="Z has 2 prototypes and the plan 3"):
        scores.weighted_silhouette(np.eye(2), T, [0, 1, 1])
    with pytest.raises(ValueError, match="Z has 2 prototypes and the plan 3"):
        scores.prototype_nmi(np.eye(2), T, [0, 1, 1])
    with pytest.raises(ValueError, match="n_clusters must be a whole number from 1 to 3"):
        scores.prototype_nmi(np.eye(3), T, [0, 1, 1], n_clusters=4)
    with pytest.raises(ValueError, match="n_components must be a whole number from 1 to 3"):
        drot.coot_clustering(np.eye(3), 2, n_components=4)
    with pytest.raises(ValueError, match="n_prototypes must be a whole number from 1 to 3"):
        drot.coot_clustering(np.eye(3), 4)


def test_without_pot_the_sentence_names_it(monkeypatch):
    """Good input, and the one optional library of this function is missed."""
    for name in ("ot", "ot.lp"):
        monkeypatch.setitem(sys.modules, name, None)
    says = "^coot_clustering calls POT, which is not installed; pip install POT$"
    with pytest.raises(ImportError, match=says) as caught:
        drot.coot_clustering(np.eye(3), 2)
    assert caught.value.__suppress_context__  # one sentence, not two tracebacks


def test_check_estimator():
    """scikit-learn's own list; a perplexity that its small data sets allow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        results = check_estimator(DistR(2, perplexity=3.0, **FAST), on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert sum(result["status"] == "passed" for result in results) >= 40


def test_estimator_is_the_functions():
    """The chain of cost, affinity and reduction, prototypes in the order of their points."""
    X, y = blobs()
    model = DistR(5, perplexity=6.0, random_state=5).fit(X)
    P = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), 6.0).plan
    seed = np.random.RandomState(5).randint(2**31 - 1)
    found = drot.distributional_reduction(P, 5, random_state=seed)
    assert model.objective_ == found.objective
    np.testing.assert_array_equal(np.sort(model.weights_), np.sort(found.weights))
    assert adjusted_rand_score(model.labels_, found.labels) == 1
    first = [np.flatnonzero(model.labels_ == k)[0] for k in np.unique(model.labels_)]
    assert first == sorted(first) and model.labels_[0] == 0
    np.testing.assert_array_equal(model.labels_, model.plan_.argmax(axis=1))
    np.testing.assert_array_equal(model.prototypes_, model.result_.Z)
    np.testing.assert_allclose(model.weights_, model.plan_.sum(axis=0))
    np.testing.assert_allclose(model.embedding_, 30 * model.plan_ @ model.prototypes_)
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.labels_)
    np.testing.assert_array_equal(clone(model).fit_transform(X), model.embedding_)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.plan_, model.plan_)
    assert drot.metrics.prototype_homogeneity(y, model.plan_) == pytest.approx(1)
    for name in ("transform", "predict"):
        assert not hasattr(model, name)
    again = DistR(5, perplexity=6.0, init=model.result_).fit(X)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-6)


@pytest.mark.parametrize(
    ("similarity", "make"),
    [
        ("symmetrized_entropic", lambda D: drot.symmetrize(drot.entropic_affinity(D, 6.0))),
        ("umap", lambda D: drot.fuzzy_union(drot.umap_membership(D, 6))),
        ("gram", None),
        ("precomputed", None),
    ],
)
def test_similarities(similarity, make):
    """Each name is the function it says."""
    X, _ = blobs()
    D = drot.sqeuclidean(X)
    options = {"kernel": "gram"} if similarity == "gram" else {}
    data, C = X, None
    if similarity == "gram":
        C = drot.gram(torch.from_numpy(X - X.mean(axis=0)))
    elif similarity == "precomputed":
        C = drot.symmetric_entropic_affinity(D, 7.0).plan
        data = C.numpy()
    else:
        C = make(D)
    given = None if similarity == "gram" else similarity  # the default of that kernel
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DistR(4, 2, 6.0, similarity=given, random_state=1, **options, **FAST).fit(data)
    seed = np.random.RandomState(1).randint(2**31 - 1)
    found = drot.distributional_reduction(
        C, 4, random_state=seed, on_failure="ignore", **options, **FAST
    )
    assert model.objective_ == pytest.approx(found.objective, rel=1e-12)
    assert model.__sklearn_tags__().input_tags.pairwise == (similarity == "precomputed")
    with pytest.raises(ValueError, match="'umap', 'gram', 'precomputed'"):
        DistR(4, similarity="cosine").fit(X)


def test_estimator_options(capsys):
    """Options reach the function; the parameters are documented; a short run warns."""
    X, _ = blobs()
    with pytest.warns(ConvergenceWarning, match="DistR: the reduction stopped at a residual"):
        DistR(4, perplexity=6.0, max_iter=1, tol=1e-30, **FAST).fit(X)
    for name in inspect.signature(DistR).parameters:
        assert f"\n{name} : " in inspect.getdoc(DistR) or f"{name}," in inspect.getdoc(DistR)
    model = DistR(4, 3, 6.0, kernel="gaussian", normalization="rows", verbose=1, **FAST).fit(X)
    assert model.prototypes_.shape == (4, 3) and "reduction" in capsys.readouterr().err
    with pytest.raises(ValueError, match="n_prototypes must be a whole number from 2 to 30"):
        DistR(31, perplexity=6.0).fit(X)
    assert DistR(4, perplexity=6.0, dtype="float32", **FAST).fit(X).plan_.dtype == np.float32


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("normalization", ["sum", "rows", "doubly_stochastic", "none"])
def test_factored_distance_under_kl(normalization, dtype):
    """Its zeros come with rounding of either sign, which no reduction meets as a negative mass."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    X[3] = X[2]
    X = torch.from_numpy(X).to(dtype)
    ask = {
        "n_prototypes": 11,
        "normalization": normalization,
        "loss": "kl",
        "clustering": "kmeans",
        "n_starts": 1,
        "max_iter": 10,
        "on_failure": "ignore",
    }
    C = drot.factored_sqeuclidean(X)
    dense = drot.sqeuclidean(X.double()).dense()
    for init in ("cluster_then_reduce", "reduce_then_cluster"):
        found = drot.distributional_reduction(C, init=init, **ask)
        wanted = energy(dense, found.structure.double(), found.plan.double(), "kl")
        assert found.objective == pytest.approx(wanted, rel=100 * torch.finfo(dtype).eps)
        assert found.Z.isfinite().all() and bool((found.structure >= 0).all())


@pytest.mark.parametrize("normalization", ["sum", "doubly_stochastic"])
def test_plans_of_single_precision_keep_their_mass(normalization):
    """Thousands of small steps round the rows of a plan, and do not add up."""
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(12, 2))).float()
    found = drot.distributional_reduction(
        drot.sqeuclidean(X),
        12,
        normalization=normalization,
        init="reduce_then_cluster",
        n_starts=1,
        max_iter=10,
        on_failure="ignore",
    )
    torch.testing.assert_close(found.plan.sum(dim=1), torch.full((12,), 1 / 12), rtol=3e-7, atol=0)
    assert torch.equal(found.structure, found.structure.T)
    assert drot.gw_objective(
        drot.sqeuclidean(X), found.structure, found.plan, loss="kl"
    ) == pytest.approx(found.objective, rel=1e-5)
