"""Distributional reduction: invariances, results, input, and the estimator."""

import dataclasses
import math
from functools import partial

import drot
import drot.hyperbolic
import numpy as np
import pytest
import torch
from drot import DistR, hyperbolic
from drot._core.checks import check_no_distances
from drot.distributional.problem import _ROUNDS as ROUNDS
from drot.distributional.problem import make_problem, spectral_labels
from drot.embeddings.embed import MAP_TOL
from drot.gromov.reading import as_similarity
from plans import affinity as grouped
from plans import cloud
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, pairwise_distances

FAST = {"init": "cluster_then_reduce", "n_starts": 1}
reduction = drot.distributional_reduction
quietly = partial(reduction, on_failure="ignore")
affinity = partial(grouped, 24, 5.0)


@pytest.mark.parametrize("n", [60, 480])  # all eigenvectors, and Lanczos iteration
def test_spectral_clusters_are_those_of_scikit_learn(n):
    """Four clusters with a weak link between each two, and a point that knows only itself."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=n)
    weights = rng.uniform(0.5, 1.5, size=(n, n)) * np.where(y[:, None] == y, 1, 0.05)
    weights = (weights + weights.T) / 2

    def labels(weights) -> np.ndarray:
        return spectral_labels(torch.tensor(weights), 4, np.random.default_rng(0))

    theirs = SpectralClustering(4, affinity="precomputed", random_state=0).fit(weights).labels_
    assert adjusted_rand_score(y, theirs) == adjusted_rand_score(y, labels(weights)) == 1
    unlike = weights * np.exp(rng.normal(size=n))[:, None] * np.exp(rng.normal(size=n))
    unlike = (unlike + unlike.T) / 2 + np.diag(rng.uniform(0, 100, size=n))  # no loops, all degrees
    assert adjusted_rand_score(y, labels(unlike)) > 0.9
    weights[0, 1:] = weights[1:, 0] = 0
    assert adjusted_rand_score(y[1:], labels(weights)[1:]) == 1


@pytest.mark.parametrize("clustering", ["spectral", "kmeans"])
def test_points_without_weight_are_in_no_cluster(clustering):
    """Nor do they move one: the others get the clusters that they have alone."""
    rng = np.random.default_rng(0)
    spread, centres = np.repeat([1.0, 2.0], [45, 30]), np.repeat([0.0, 3.0, 6.0, 3.0, 3.0], 15)
    X = spread[:, None] * rng.normal(size=(75, 3)) + centres[:, None]
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=6.0).plan
    w, ask = (torch.arange(75) < 45).double() / 45, {"clustering": clustering}
    for k in (6, 10):
        every = make_problem(C, k, weights=w, **ask).cluster(np.random.default_rng(0))
        alone = make_problem(C[:45, :45], k, **ask).cluster(np.random.default_rng(0))
        if clustering == "spectral":
            torch.testing.assert_close(every.T[:45], alone.T)
        assert not bool(every.T[45:].any()) and bool((every.q > 0).all())
    few = make_problem(C, 60, weights=w, **ask).cluster(np.random.default_rng(0))
    assert 2 <= int((few.q > 0).sum()) <= 45  # as many clusters as there are points


def test_light_points_are_in_the_clusters_of_their_likes():
    """However little they weigh: only those of no weight are left out."""
    C, w = torch.block_diag(*[torch.ones(4, 4).double()] * 2), torch.tensor([1, 1, 1, 1e-6] * 2)
    found = make_problem(C, 2, weights=w / w.sum()).cluster(np.random.default_rng(0))
    labels = found.T.argmax(dim=1).view(2, 4)
    assert bool((labels == labels[:, :1]).all()) and int(labels[0, 0] + labels[1, 0]) == 1


def test_no_objective_is_below_0():
    """It is a divergence: what rounding takes from 0 is none of it."""
    ask = {"n_starts": 1, "clustering": "kmeans", "random_state": 0}
    found = [drot.distributional_reduction(np.full((7, 7), c), 3, **ask) for c in (0.3, 3.1)]
    assert [x.objective for x in found] == [0.0, 0.0]


def test_callbacks_and_resuming():
    """A callback sees each round of each start and can stop; a result continues."""
    C, seen = affinity(), []
    one = reduction(C, 5, callback=lambda *what: seen.append(what), random_state=3)
    assert [i for i, _, _ in seen] == list(range(len(seen))) and seen[0][2].shape == (5, 2)
    assert one.residual in [r for _, r, _ in seen] and len(one.ends) == 4
    for rounds in (0, 1):  # what was stopped on request is no failure
        stopped = reduction(C, 5, callback=lambda i, *_, last=rounds: i == last, tol=1e-30)
        assert stopped.n_iter == rounds and len(stopped.ends) == 1 and not stopped.converged
    short = quietly(C, 5, max_iter=1, tol=1e-30)
    on = reduction(C, 5, init=short, tol=1e-5)
    assert on.values[0] == pytest.approx(short.objective, rel=1e-9)
    assert on.objective <= short.objective and on.converged


def test_plan_follows_the_factor_of_the_kernel(monkeypatch):
    """Until it is the best for its own: after one round it is the best for those before it."""
    rng = np.random.default_rng(4)
    C = torch.exp(-drot.sqeuclidean(torch.from_numpy(rng.normal(size=(14, 3)))).dense() / 3)
    terms = make_problem(C, 4)
    Z, start = torch.from_numpy(rng.normal(size=(4, 2))), terms.hard_coupling(torch.arange(14) % 4)
    values = [terms.objective(Z, start)]
    for rounds in (1, 20):
        monkeypatch.setattr(drot.distributional.problem, "_ROUNDS", min(rounds, ROUNDS))
        moved = terms.update_plan(Z, start)
        values.append(terms.objective(Z, moved))
        assert (terms.plan_gap(Z, moved) > 1e-5) == (rounds == 1)
    assert values[0] > values[1] > values[2]


def test_plans_of_single_precision_keep_their_mass():
    """Thousands of small steps round the rows of a plan, and do not add up."""
    C = drot.sqeuclidean(cloud(12, 2).float()).dense()
    ask = dict(init="reduce_then_cluster", n_starts=1, max_iter=10)
    found = quietly(C, 12, **ask)
    torch.testing.assert_close(found.plan.sum(dim=1), torch.full((12,), 1 / 12), rtol=3e-7, atol=0)
    assert torch.equal(found.structure, found.structure.T)
    value = drot.gw_objective(C, found.structure, found.plan, loss="kl")
    assert value == pytest.approx(found.objective, rel=1e-5)


def entropic() -> torch.Tensor:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(12, 4)) + 4 * rng.normal(size=4) for _ in range(3)])
    return drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=8.0).plan


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_far_ones_leave_the_others_alone(dtype):
    """Objective, similarities and gradient are those of the prototypes with weight alone."""
    C, T = entropic().to(dtype), torch.zeros(36, 5, dtype=dtype)
    T[torch.arange(36), torch.arange(36) // 12] = 1 / 36
    Z = torch.tensor([[0, 0], [1, 0], [0, 2], [300, 0], [-4e3, 50]], dtype=dtype)
    every = []
    for k in (5, 3):
        terms = make_problem(C, k, kernel="gaussian")
        c = terms.couple(T[:, :k])
        structure, seen = terms.structure(Z[:k], c)[0], terms.position_loss(c).evaluate(Z[:k])
        numbers = (terms.objective(Z[:k], c), seen.value, terms.plan_problem(Z[:k], c)[0].scale)
        every.append([*map(torch.tensor, numbers), seen.gradient[:3], structure[:3, :3]])
        assert bool(torch.isfinite(structure).all()) and not bool(seen.gradient[3:].any())
    share = 1e-12 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(*every, rtol=share, atol=share)


@pytest.mark.parametrize("init", ["random", "cluster_then_reduce", "reduce_then_cluster"])
def test_reductions_end_with_numbers(init):
    """Zeros among the weights and random places far out: finite, falling, and said as it is."""
    w = (torch.arange(36) >= 3).double() / 33
    ask = dict(kernel="gaussian", n_starts=1, max_iter=3)
    apart = drot.umap_membership(drot.sqeuclidean(entropic()), n_neighbors=6)
    alone = entropic()
    alone[:2] = alone[:, :2] = 0  # two points that know nobody
    for C in (drot.fuzzy_union(apart), alone):  # embeddings of the first fall apart
        found = quietly(C, 9, weights=w, init=init, **ask)
        for x in (found.Z, found.plan, found.structure, found.values, found.residual):
            assert bool(torch.as_tensor(x).isfinite().all())
        assert (np.diff(found.values) <= 0).all()
        mass = found.weights @ found.structure @ found.weights
        assert float(mass) == pytest.approx(float(w @ C @ w), rel=1e-6)


@pytest.mark.parametrize(
    "similarity",
    ["symmetric_entropic", "symmetrized_entropic", "umap", "gram", None, "precomputed"],
)
def test_estimator_is_the_functions(similarity):
    """Each name is the function it says; inner products and their kernel imply each other."""
    y = np.repeat([0, 1, 2], 10)
    X = np.random.default_rng(0).normal(size=(30, 4)) + 8 * y[:, None] * [1, -1, 1, 0]
    D, G = drot.sqeuclidean(X), drot.gram(torch.from_numpy(X - X.mean(axis=0)))
    symmetric = drot.symmetric_entropic_affinity(D, perplexity=6.0).plan
    C = {
        "symmetrized_entropic": lambda: drot.symmetrize(drot.entropic_affinity(D, perplexity=6.0)),
        "umap": lambda: drot.fuzzy_union(drot.umap_membership(D, n_neighbors=6)),
        "gram": lambda: G,
        None: lambda: G,
    }.get(similarity, lambda: symmetric)()
    options = FAST if similarity else FAST | {"kernel": "gram"}
    model = DistR(5, 2, 6.0, similarity=similarity, n_neighbors=6, random_state=1, **options)
    X = symmetric.numpy() if similarity == "precomputed" else X
    model.fit(X)
    assert model.__sklearn_tags__().input_tags.pairwise == (similarity == "precomputed")
    options = options | {"kernel": "gram"} if C is G else options
    found = reduction(C, 5, random_state=np.random.RandomState(1).randint(2**31 - 1), **options)
    assert model.objective_ == pytest.approx(found.objective, rel=1e-12)
    assert adjusted_rand_score(model.labels_, found.labels) == 1
    # prototypes in the order of their points
    first = [np.flatnonzero(model.labels_ == k)[0] for k in np.unique(model.labels_)]
    assert first == sorted(first) and model.labels_[0] == 0
    np.testing.assert_array_equal(np.sort(model.weights_), np.sort(found.weights))
    np.testing.assert_array_equal(model.labels_, model.plan_.argmax(axis=1))
    np.testing.assert_array_equal(model.prototypes_, model.result_.Z)
    np.testing.assert_allclose(model.weights_, model.plan_.sum(axis=0))
    np.testing.assert_allclose(model.embedding_, 30 * model.plan_ @ model.prototypes_)
    assert drot.metrics.prototype_homogeneity(model.plan_, y) == pytest.approx(1)
    again = model.set_params(init=model.result_).fit(X)
    assert again.objective_ == pytest.approx(found.objective, rel=1e-6)


@pytest.mark.parametrize(
    "metric", ["euclidean", "sqeuclidean", "cityblock", "cosine", "correlation"]
)
@pytest.mark.parametrize("n", [13, 150])
def test_distances_are_no_similarity(metric, n):
    """They are refused; kernel k-means takes inner products, or minus halves of their squares."""
    X = np.random.default_rng(n).normal(size=(n, 3)) + 4 * np.eye(3)[np.arange(n) % 3]
    X[1] = X[0]
    D = pairwise_distances(X, metric=metric)
    D = np.abs(D + D.T - 2 * np.diag(np.diag(D))) / 2
    words = "holds distances, it seems: its diagonal is 0.* positive diagonal$"
    with pytest.raises(ValueError, match=f"^similarity {words}"):
        DistR(3, similarity="precomputed").fit(D)
    for solve in (hyperbolic.distributional_reduction, drot.cluster_then_reduce, reduction):
        with pytest.raises(ValueError, match=words):
            solve(D, 3)
    with pytest.raises(ValueError, match=r"similarity holds .* of squared distances D pass -D / 2"):
        drot.kernel_kmeans(drot.sqeuclidean(X), 3)
    drot.kernel_kmeans(-drot.sqeuclidean(X).dense() / 2, 3)


@pytest.mark.parametrize(("n", "p"), [(3, 2), (12, 2), (40, 500)])
def test_distances_by_name_are_no_similarity(n, p):
    """Of few points, and of noise in many dimensions, their entries tell less than their name."""
    X = np.random.default_rng(n).normal(size=(n, p))
    for cost in (drot.sqeuclidean(X), drot.student_cost(X, block=4)):
        for solve in (drot.kernel_kmeans, reduction):
            with pytest.raises(ValueError, match="similarity holds distances, small"):
                solve(cost, 2)


@pytest.mark.parametrize("n", [13, 150])
def test_a_similarity_may_lack_its_diagonal(n):
    """Affinities and graphs without self-loops are no distances, at any perplexity."""
    D = drot.sqeuclidean(cloud(n, 3).numpy() + 4 * np.eye(3)[np.arange(n) % 3])
    graphs = [
        drot.symmetrize(drot.entropic_affinity(D, perplexity=k, diagonal="drop"))
        for k in (2, n / 2, n - 1.5)
    ]
    graphs += [drot.fuzzy_union(drot.umap_membership(D, n_neighbors=k)) for k in (3, n // 2, n)]
    ring, side = torch.eye(n).roll(1, 0), torch.arange(n) % 2
    graphs += [ring + ring.T, side[:, None] != side, 1 - torch.eye(n), torch.zeros(n, n)]
    graphs += [graphs[0] > graphs[0].median()]
    part = torch.arange(n)[:, None] // torch.tensor([2, 3, 5, n // 3])[:, None, None]
    graphs += list(part != part.mT)  # of parts, within which there are no edges
    block = torch.tensor([[1.0, 6, 5], [6, 2, 7], [5, 7, 3]])[
        part[3].clamp_max(2), part[3].mT.clamp_max(2)
    ]
    graphs += [block - block.diag().diag()]
    for graph in graphs:
        C = drot.symmetrize(graph.double())
        assert not C.diagonal().any()
        check_no_distances(as_similarity(C, "similarity"), "similarity")
        check_no_distances(C, "plan")


def test_a_start_in_other_dimensions():
    """A result with other columns than are asked for is refused, not taken for the answer."""
    for solve, q in ((reduction, 2), (hyperbolic.distributional_reduction, 3)):
        first = solve(affinity(), 4, max_iter=2, on_failure="ignore")
        again = solve(affinity(), 4, init=first, max_iter=2, on_failure="ignore")
        assert again.Z.shape == (4, q)
        with pytest.raises(ValueError, match=r"init has positions in 2 dimensions and n_comp.*=3"):
            solve(affinity(), 4, n_components=3, init=first)


def far_blobs(box: float) -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(100, 10, centers=5, center_box=(-box, box), random_state=0)


MATCHES = [{}, {"similarity": "symmetrized_entropic"}, {"similarity": "umap"}]
MATCHES += [{"clustering": "kmeans"}, {"init": "random"}, {"kernel": "gaussian"}]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", [*MATCHES, {"dtype": "float32"}], ids=str)
def test_prototypes_of_far_clusters_stay_in_reach(options):
    """The infimum lies at infinity, where clusters exchange next to no mass; the map does not."""
    for box, k in ((30, 7), (300, 5)):
        X, y = far_blobs(box)
        model = DistR(k, perplexity=15, random_state=0, **options).fit(X)
        assert model.result_.converged
        assert abs(model.prototypes_[model.weights_ > 0]).max() < 1e4
        if k == 5 and options.get("init") != "random":
            assert adjusted_rand_score(y, model.labels_) > 0.99


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_hyperbolic_prototypes_of_far_clusters(dtype):
    """Converged, in float64: heights of 1e24 have no digits left in float32."""
    X = torch.from_numpy(far_blobs(10)[0]).to(dtype)
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=15).plan
    found = drot.hyperbolic.distributional_reduction(C, 5, n_starts=1)
    assert found.converged and found.Z.dtype == torch.float64 and found.plan.dtype == dtype
    assert math.acosh(float(found.Z[:, 0].max())) < 1e3


RNG = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 2], 20)
TABLE = 5 * RNG.normal(size=(3, 6))[LABELS] + RNG.normal(size=(60, 6))


STAIRS = np.repeat([[0.0, 0.0], [3.0, 2.0]], 4, axis=0) + 1e-3 * RNG.normal(size=(8, 2))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("X", "k", "dtype", "offset", "share"),
    [
        *((TABLE, 3, "f8", offset, share) for offset, share in ((1e6, 1e-8), (-1e8, 1e-6))),
        *((TABLE, 3, "f4", offset, share) for offset, share in ((300.0, 1e-5), (1e4, 1e-4))),
        (STAIRS, 2, "f8", [0, 1e6], 1e-5),  # too far apart for a common shift
    ],
)
def test_an_offset_changes_nothing(X, k, dtype, offset, share):
    """Labels and objective stay, of all columns the error within the clusters, and Z moves along,
    without a warning of POT."""
    moved, columns = (X + np.array(offset)).astype(dtype), X.shape[1]
    found, all_columns = (drot.coot_clustering(moved, k, n_components=q) for q in (2, columns))
    means = KMeans(k, n_init=10, random_state=0).fit(X)
    assert all_columns.objective == pytest.approx(means.inertia_ / X.size, rel=max(share, 1e-6))
    assert found.converged and adjusted_rand_score(means.labels_, found.labels) == 1
    torch.testing.assert_close(found.structure, found.Z @ found.Z.T)
    assert (np.diff(all_columns.values) <= 0).all()
    if np.ndim(offset) == 0:
        plain = drot.coot_clustering(X, k)
        assert found.objective == pytest.approx(plain.objective, rel=share)
        rounding = 4 * np.finfo(dtype).eps * abs(offset)
        here, there = (Z.double().flatten().sort().values for Z in (plain.Z, found.Z))  # any order
        torch.testing.assert_close(there, here + offset, rtol=0, atol=rounding)


@pytest.mark.parametrize("init", ["reduce_then_cluster", "cluster_then_reduce"])
def test_a_run_that_is_ended_at_its_start_is_judged_by_both_blocks(init):
    """It says that it converged only where going on gains next to nothing."""
    cloud = RNG.normal(size=(60, 4)) + 3 * np.eye(4)[np.arange(60) % 4]
    S = torch.exp(-drot.sqeuclidean(cloud).dense() / 8)
    ended = drot.distributional_reduction(
        S, 5, init=init, n_starts=1, on_failure="ignore", callback=lambda *_: True
    )
    best = drot.distributional_reduction(S, 5, init=ended, on_failure="ignore")
    assert best.objective > 0.999 * ended.objective or not ended.converged
    flat = dataclasses.replace(best, Z=1e-4 * best.Z)  # in one place no force tells them apart
    again = drot.distributional_reduction(S, 5, init=flat, on_failure="ignore")
    assert again.objective < 1.01 * best.objective


@pytest.mark.parametrize("unit", [1.0, 2.0**-12, 2.0**-20, 2.0**12])
def test_positions_that_are_given_stay_in_any_unit(unit):
    """Inner products have no bandwidth below which positions are one place."""
    X = unit * (RNG.normal(size=(40, 5)) + 3 * np.eye(5)[np.arange(40) % 5])
    X -= X.mean(axis=0)
    asked = []

    def products(T):
        centres = T.T @ torch.from_numpy(X) / T.sum(dim=0)[:, None]
        asked.append(centres @ centres.T)
        return asked[-1]

    ask = {"kernel": "gram", "clustering": "kmeans", "centres": products}
    found = drot.cluster_then_reduce(X @ X.T, 5, **ask)
    values, vectors = torch.linalg.eigh(asked[0])  # PCA of the centres, all of one weight
    best = vectors[:, -2:] * values[-2:].sqrt()
    torch.testing.assert_close(found.Z @ found.Z.T / unit**2, best @ best.T / unit**2)
    half = dataclasses.replace(found, Z=found.Z / 2)
    ended = drot.distributional_reduction(
        X @ X.T, 5, kernel="gram", init=half, callback=lambda *_: True, on_failure="ignore"
    )
    torch.testing.assert_close(ended.Z, half.Z)


def test_centres_that_are_one_place_are_drawn_there():
    """What is drawn is the result, also where a descent would begin anew."""
    C = torch.exp(-drot.sqeuclidean(RNG.normal(size=(30, 3))).dense())
    found = drot.cluster_then_reduce(C, 4, centres=lambda T: np.ones((4, 4)), tol=1e-7)
    assert torch.pdist(found.Z).max() < 1e-2


@pytest.mark.parametrize("kernel", ["gram", "student"])
def test_centres_of_another_precision(kernel):
    """A result is of the precision of the points, whatever their centres are compared in."""
    C = grouped(12).float()
    for dtype in (torch.float32, torch.float64):
        alike = torch.eye(4, dtype=dtype) + 0.1
        found = drot.cluster_then_reduce(C, 4, kernel=kernel, centres=lambda _, S=alike: S)
        assert found.Z.dtype == found.structure.dtype == found.plan.dtype == torch.float32


def test_centres_of_weighted_points():
    """The points have weights, their centres have one each."""
    C, w = grouped(12), torch.arange(1.0, 1 + len(grouped(12))).double()
    ask = {"centres": lambda _: torch.eye(4) + 0.1, "weights": w / w.sum(), "tol": 1e-6}
    found = drot.cluster_then_reduce(C, 4, **ask)
    torch.testing.assert_close(found.plan.sum(dim=1), w / w.sum())
    apart = torch.pdist(found.Z)  # all are equally near
    assert len(found.weights.unique()) > 1 and apart.max() < 2 * apart.min()


def test_the_embedding_of_all_points_comes_to_rest_or_says_so():
    C = grouped(12)
    found = drot.reduce_then_cluster(C, 4, tol=1e-4)
    assert found.converged and found.residual <= 1e-4
    with pytest.raises(drot.NotConverged, match="reduce_then_cluster"):
        drot.reduce_then_cluster(C, 4, tol=1e-4, max_iter=1)


def test_an_embedding_to_start_from_is_no_finer_than_a_map():
    """However close prototypes are to come: the points of it only lead to them."""
    C, ask = grouped(12), dict(init="reduce_then_cluster", n_starts=1, on_failure="ignore")
    rough, fine = (
        drot.distributional_reduction(C, 4, tol=tol, callback=lambda *_: True, **ask).Z
        for tol in (MAP_TOL, 1e-6)
    )
    assert torch.equal(rough, fine)


def test_the_gap_of_a_plan_is_a_share_of_both_sides():
    """Of the size of E_L's terms, those of C and those of the prototypes that have mass."""
    C, rng = grouped(12), np.random.default_rng(0)
    problem = make_problem(C, 4)
    n, (Z, T) = len(C), torch.from_numpy(rng.random((len(C), 4))).split([4, len(C) - 4])
    Z, T = Z[:, :2], torch.cat([Z, T])
    T[:, 3] = 0
    T /= n * T.sum(dim=1, keepdim=True)
    c = problem.couple(T)
    structure = problem.structure(Z, c)[0]
    h = structure.log()
    g = structure @ T.sum(dim=0) - C @ T @ h
    gap = 2 * float((g * T).sum() - g.amin(dim=1).sum() / n)
    scale = float(C.mean() + structure[:3, :3].mean())
    assert problem.plan_gap(Z, c) == pytest.approx(gap / scale, rel=1e-9)
