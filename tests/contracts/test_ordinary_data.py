"""Plain data at the defaults: a result that has converged, or one clear sentence; no warning.

Every estimator and every public function of points meets every set of :func:`clouds.ordinary`. What
is refused is listed, so that another refusal, or one less, fails here.
"""

from collections.abc import Callable
from functools import partial

import drot
import numpy as np
import pytest
import torch  # noqa: F401  of the table
from clouds import ordinary
from drot import sqeuclidean as cost
from faults import ROWS, check_sentence, is_estimator, leaves, thing
from sklearn.metrics import homogeneity_score

SETS = ordinary()
pytestmark = pytest.mark.filterwarnings("error")
for X, _ in SETS.values():
    X.flags.writeable = False


# The defaults, but for what small n allows: one rule for all.
def perplexity(n: int) -> float:
    """30, or a third of the way from 1 to all others."""
    return min(30.0, 1 + (n - 2) / 3)


def count(n: int, default: int) -> int:
    """Of neighbours or clusters: one for two points at most, and two at least."""
    return min(default, max(2, n // 2))


ESTIMATORS: dict[str, Callable] = {
    **{
        name: lambda n, name=name: getattr(drot, name)(perplexity=perplexity(n))
        for name in ("SNE", "TSNE", "LargeVis", "SNEkhorn", "TSNEkhorn", "CCPCA")
    },
    "UMAP": lambda n: drot.UMAP(n_neighbors=count(n, 15)),
    "SemiRelaxedGWClustering": lambda n: drot.SemiRelaxedGWClustering(
        count(n, 8), perplexity=perplexity(n)
    ),
    "SemiRelaxedGWClustering-gram": lambda n: drot.SemiRelaxedGWClustering(
        count(n, 8), similarity="gram"
    ),
    "DistR": lambda n: drot.DistR(count(n, 20), perplexity=perplexity(n)),
    "DistR-5": lambda n: drot.DistR(min(n, 5), perplexity=perplexity(n)),
}


def rows(X):
    return drot.entropic_affinity(cost(X), perplexity=perplexity(len(X)), diagonal="drop")


def graph(X):
    return drot.symmetrize(rows(X))


def similarity(X):
    return drot.symmetric_entropic_affinity(cost(X), perplexity=perplexity(len(X))).plan


def even(X):
    return np.full((len(X), len(X[:10:2])), 1 / len(X) / len(X[:10:2]))


# names :: a call of one of them, f, at the points
FUNCTIONS = """
sqeuclidean student_cost gram factored_sqeuclidean :: f(X).dense()
costs.Factored :: f(X, X).dense()
pairwise :: f(torch.cdist, X).dense()
nearest :: f(cost(X), n_neighbors=2).dense().nan_to_num(posinf=0)
entropic_affinity gaussian_affinity :: f(cost(X), perplexity=perplexity(len(X)))
doubly_stochastic_affinity symmetric_entropic_affinity :: f(cost(X), perplexity=perplexity(len(X)))
self_tuning_affinity :: f(cost(X), n_neighbors=count(len(X), 7))
umap_membership :: f(cost(X), n_neighbors=count(len(X), 15))
expected_graph graphs.graph_log_normalizer :: f(-cost(X).dense())
coupling_loss :: f(rows(X).plan, -drot.student_cost(X).dense(), prior="row")
graphs.mrf_log_density :: f(X, graph(X))
sne spectral.laplacian_eigenmaps spectral.diffusion_map :: f(graph(X))
spectral_start :: f(drot.fuzzy_union(drot.umap_membership(cost(X), n_neighbors=count(len(X), 15))))
pca_start spectral.pca spectral.precision_coupling_optimum :: f(X)
spectral.classical_mds :: f(cost(X))
spectral.kernel_pca :: f(drot.gram(X).dense())
spectral.precision_coupling_loss :: f(X, X)
gw_objective gromov.gw_gradient :: f(cost(X), cost(X[:10:2]), even(X))
gromov.gromov_monge :: f(cost(X[:6]), cost(X[:6][::-1]))
semi_relaxed_gw :: f(cost(X[::2]), cost(X[:6:2]))
kernel_kmeans :: f(drot.gram(X), count(len(X), 8))
gromov.coarsen :: f(cost(X), np.arange(len(X)) % 2)
coot_clustering :: f(X, count(len(X), 8), n_components=1)
hyperbolic.distributional_reduction :: f(similarity(X), min(len(X), 3))
metrics.spectral_clustering_ari :: f(graph(X), np.arange(len(X)) % 2)
neighborhood_preservation :: f(X, X[:, :1], 1)
metrics.neighborhood_curve :: f(X, X[:, :1])
"""
FUNCTIONS = {
    f"drot.{name}": partial(eval(f"lambda f, X: {call}"), thing(f"drot.{name}"))
    for names, call in (line.split(" :: ") for line in FUNCTIONS.strip().splitlines())
    for name in names.split()
}

# Take points or costs and are not met here, and why.
ELSEWHERE = {
    "their estimators are": "ccpca srgw_barycenter distributional_reduction",
    "starts of DistR": "cluster_then_reduce reduce_then_cluster",
    "a baseline, shown not to arrive": "affinities.symmetric_dual_ascent",
    "of a map": (
        "embeddings.attraction_repulsion metrics.prototype_nmi metrics.weighted_silhouette"
    ),
}

# Who refuses what, and a word of the sentence.
COPIES = "half the same; most the same; one place; zeros; rare counts"
REFUSED = [
    ("SNEkhorn TSNEkhorn DistR DistR-5 SemiRelaxedGWClustering drot.entropic_affinity "
     "drot.symmetric_entropic_affinity "
     "drot.hyperbolic.distributional_reduction",
     COPIES, "out of reach"),
    ("SNE TSNE LargeVis CCPCA drot.graphs.mrf_log_density drot.coupling_loss "
     "drot.metrics.spectral_clustering_ari drot.sne "
     "drot.spectral.laplacian_eigenmaps drot.spectral.diffusion_map",
     f"{COPIES}; counts", "out of reach"),
    ("drot.gaussian_affinity drot.doubly_stochastic_affinity",
     "most the same; one place; zeros", "out of reach"),
    ("drot.self_tuning_affinity",
     f"{COPIES}; counts; ten the same; few integers; one-hot", "copies"),
    ("SNE TSNE LargeVis UMAP SNEkhorn TSNEkhorn drot.sne drot.spectral_start",
     "n = 3", "too many for the spectral start"),
    ("CCPCA", "n = 3; n = 4", "graphs are connected"),
    ("CCPCA drot.pca_start drot.spectral.pca drot.spectral.precision_coupling_optimum",
     "one feature", "n_components"),
    ("drot.spectral.laplacian_eigenmaps drot.spectral.diffusion_map",
     "two far groups", "connected components"),
]  # fmt: skip
WORDS = {
    (name, kind): word
    for names, kinds, word in REFUSED
    for name in names.split()
    for kind in kinds.split("; ")
}
PAIRS = [pytest.param(name, kind, id=f"{name}-{kind}") for name in FUNCTIONS for kind in SETS]


def finite(found) -> bool:
    """All that a result holds, but logarithms of plans; and it holds something."""
    held = [x for key, x in leaves(found, floats=True).items() if "log_plan" not in key]
    return len(held) > 0 and all(x.isfinite().all() for x in held)


PROJECTIONS = ["drot.spectral.pca", "drot.spectral.classical_mds", "drot.spectral.kernel_pca"]


def extent(X: np.ndarray) -> float:
    """The largest distance from the mean, rounding of squares included."""
    far = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    return 1.001 * float(far) + 1e-7 * float(np.abs(X).max())


def neighbours_of_class(Z: np.ndarray, y: np.ndarray) -> float:
    """Share of the points whose nearest other one has their class."""
    gaps = np.square(Z[:, None] - Z[None].astype(float)).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    return float((y[gaps.argmin(axis=1)] == y).mean())


def met(name: str, kind: str, solve: Callable):
    """What it finds, or None where it refuses, as it is said above."""
    try:
        found = solve()
    except ValueError as error:
        check_sentence(error)
        assert WORDS.get((name, kind), "what is not refused") in str(error), error
        return None
    assert (name, kind) not in WORDS, "no longer refused"
    return found


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, "float64") for name in ESTIMATORS]
    + [(name, "float32") for name in ESTIMATORS if name != "DistR"],  # 10 s
)
def test_estimators(name: str, dtype: str, kind: str):
    X, y = SETS[kind]
    model = ESTIMATORS[name](len(X)).set_params(random_state=0, dtype=dtype)
    model = met(name, kind, lambda: model.fit(X))
    if model is None:
        return
    assert getattr(model.result_, "converged", True)
    if hasattr(model, "labels_"):
        assert model.labels_.shape == (len(X),)
        assert finite(model.result_)
        assert y is None or homogeneity_score(y, model.labels_) > 0.8
    if hasattr(model, "embedding_"):
        Z = model.embedding_
        assert Z.shape == (len(X), 2) and Z.dtype == dtype
        # principal components of means lie within the cloud; kernels have the unit 1
        bound = extent(X) if name == "CCPCA" else 1e4
        assert np.abs(Z).max() <= bound
        assert y is None or neighbours_of_class(Z, y) >= 0.8


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_functions(name: str, kind: str):
    X, y = SETS[kind]
    found = met(name, kind, lambda: FUNCTIONS[name](X))
    if found is None:
        return
    assert getattr(found, "converged", True)
    assert finite(found)
    if name in PROJECTIONS:
        assert float(found.Z.norm(dim=1).max()) <= extent(X)
    if name == "drot.kernel_kmeans" and y is not None:
        assert homogeneity_score(y, found.labels) > 0.8


def test_every_estimator_and_function_of_points_is_met():
    """A new one gets its row."""
    kinds = {"cloud", "ranked", "table", "cost", "matrix", "distances", "symmetric", "factor"}
    kinds |= {"kl", "metric", "similarity"}
    takers = {name for name, row in ROWS.items() if kinds & set(row.roles.values())}
    takers |= set(filter(is_estimator, ROWS))
    assert takers - set(FUNCTIONS) - {f"drot.{name}" for name in ESTIMATORS} == {
        f"drot.{name}" for names in ELSEWHERE.values() for name in names.split()
    }
