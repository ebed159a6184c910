"""The table of bad input: rows of public functions, columns of faults, and what the cells say.

A row is a public function with arguments that work; a column is a fault. What a parameter is (a
cloud, a cost, a count, ...) decides which faults can befall it, so a cell is a parameter of the
row spoiled as the column says.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import drot
import numpy as np
import torch
from scipy.sparse import csr_matrix

N = 10
MODULES = ("drot", "drot.costs", "drot.affinities", "drot.graphs", "drot.spectral")
MODULES += ("drot.embeddings", "drot.gromov", "drot.metrics", "drot.distributional")
MODULES += ("drot.datasets", "drot.hyperbolic", "drot.plot")


# ------------------------------------------------------------------ arguments that work
def points(n: int = N, p: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


def squares(n: int = N) -> np.ndarray:
    X = points(n)
    return ((X[:, None] - X[None]) ** 2).sum(axis=-1)


@functools.cache
def _plan(diagonal: str) -> np.ndarray:
    return drot.entropic_affinity(squares(), 4.0, diagonal=diagonal).plan.numpy()


def rows() -> np.ndarray:
    """Rows of sum 1, no self-loops."""
    return _plan("drop").copy()


def graph() -> np.ndarray:
    """Symmetric weights without self-loops."""
    return (rows() + rows().T) / 2


@functools.cache
def _symmetric() -> np.ndarray:
    return drot.symmetric_entropic_affinity(squares(), 4.0).plan.numpy()


def doubly() -> np.ndarray:
    """Symmetric, and rows of sum 1."""
    return _symmetric().copy()


def blocks() -> np.ndarray:
    """A log kernel whose graphs have two components at least."""
    log = np.full((N, N), -np.inf)
    log[:5, :5] = log[5:, 5:] = 0.0
    return log


def soft(k: int = 3) -> np.ndarray:
    T = np.random.default_rng(4).uniform(0.1, 1, size=(N, k))
    return T / T.sum()


def sheet(k: int = 6) -> np.ndarray:
    """Points of the hyperboloid."""
    return drot.hyperbolic.wrapped_normal(k, scale=0.5).numpy()


def labels() -> list[int]:
    return [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]


class Row(NamedTuple):
    """Arguments that work, and what a parameter is where its name does not tell."""

    good: Callable[[], dict]
    roles: Mapping[str, str] = MappingProxyType({})
    high: Mapping[str, int] = MappingProxyType({})  # the largest count that is allowed
    also: Mapping[str, dict] = MappingProxyType({})  # what cells of a parameter change besides it


QUICK = {"max_iter": 3, "on_failure": "ignore"}
FIT = {"perplexity": 3.0, "max_iter": 200, "tol": 1.0, "random_state": 0}
SYMMETRIC = {"cost": "symmetric"}
CONDITION = {"cost_x": "symmetric", "cost_z": "symmetric"}
# what only starts by name read
NAMED = (
    {"n_components": 8},
    {"n_components": {"init": "spectral"}, "random_state": {"init": "random"}},
)
ONE = {"bandwidth": {"perplexity": None}}


def start() -> dict:
    return {"plan": graph(), "init": points(N, 2, 1), **QUICK}


def reduction() -> dict:
    return {
        "similarity": doubly(),
        "n_prototypes": 3,
        "max_iter": 200,
        "clustering": "kmeans",
        "on_failure": "ignore",
    }


REDUCED = Row(reduction, {"similarity": "kl"}, {"n_prototypes": N})
PRIOR = Row(lambda: {"log_kernel": blocks()}, {"log_kernel": "log_kernel"})
SCORE = Row(lambda: {"X": points(), "Z": points(N, 2, 1), "K": 3}, {"X": "ranked", "Z": "ranked"})

ROWS: dict[str, Row] = {
    "drot.sqeuclidean": Row(lambda: {"X": points(), "Y": points(6, 3, 1)}),
    "drot.student_cost": Row(lambda: {"X": points(), "Y": points(6, 3, 1)}),
    "drot.pairwise": Row(lambda: {"function": torch.cdist, "X": points(), "Y": points(6, 3, 1)}),
    "drot.nearest": Row(lambda: {"cost": squares(), "k": 3}, {"cost": "matrix"}, {"k": N}),
    "drot.costs.Factored": Row(
        lambda: {"left": points(), "right": points(N, 3, 1)},
        {"left": "factor", "right": "factor", "points": "other", "symmetric": "other"},
    ),
    "drot.factored_sqeuclidean": Row(lambda: {"X": points()}),
    "drot.gram": Row(lambda: {"X": points()}),
    "drot.gaussian_kernel": Row(lambda: {"Z": points()}),
    # affinities
    "drot.entropic_affinity": Row(
        lambda: {"cost": squares(), "perplexity": 4.0, "n_neighbors": 8},
        {"perplexity": "perplexities"},
        {"n_neighbors": N},
    ),
    "drot.gaussian_affinity": Row(
        lambda: {"cost": squares(), "perplexity": 4.0},
        {"perplexity": "average perplexity"},
        {},
        ONE,
    ),
    "drot.self_tuning_affinity": Row(
        lambda: {"cost": squares(), "n_neighbors": 3}, {"cost": "distances"}, {"n_neighbors": N - 1}
    ),
    "drot.doubly_stochastic_affinity": Row(
        lambda: {"cost": squares(), "perplexity": 4.0},
        {"cost": "symmetric", "perplexity": "average perplexity"},
        {},
        ONE,
    ),
    "drot.symmetric_entropic_affinity": Row(
        lambda: {"cost": squares(), "perplexity": 4.0},
        {"cost": "symmetric", "perplexity": "perplexities"},
    ),
    "drot.symmetric_dual_ascent": Row(
        lambda: {"cost": squares(), "perplexity": 4.0, **QUICK},
        {"cost": "symmetric", "perplexity": "perplexities"},
    ),
    "drot.symmetric_alternating_projections": Row(
        lambda: {"cost": squares(), "perplexity": 4.0, "bandwidth": 1.0, **QUICK},
        {"cost": "symmetric", "perplexity": "perplexities"},
    ),
    "drot.umap_membership": Row(
        lambda: {"cost": squares(), "n_neighbors": 4}, {"cost": "distances"}, {"n_neighbors": N}
    ),
    "drot.umap_curve": Row(dict),
    # plans and graphs
    "drot.row_entropy": Row(lambda: {"plan": rows()}, {"plan": "rows"}),
    "drot.row_perplexity": Row(lambda: {"plan": rows()}, {"plan": "rows"}),
    "drot.kl_divergence": Row(
        lambda: {"plan": rows(), "reference": doubly()}, {"plan": "rows", "reference": "rows"}
    ),
    "drot.symmetrize": Row(lambda: {"plan": rows()}, {"plan": "signed"}),
    "drot.fuzzy_union": Row(lambda: {"graph": rows()}),
    "drot.laplacian": Row(lambda: {"graph": rows()}),
    "drot.connected_components": Row(lambda: {"graph": rows()}),
    "drot.mrf_log_density": Row(lambda: {"X": points(), "graph": rows()}),
    "drot.expected_graph": PRIOR,
    "drot.graph_log_normalizer": PRIOR,
    "drot.graph_log_probability": Row(
        lambda: {"graph": np.eye(N)[[1, 2, 3, 4, 0, 6, 7, 8, 9, 5]], "log_kernel": blocks()},
        {"log_kernel": "log_kernel"},
    ),
    "drot.sample_graph": PRIOR,
    "drot.sample_graphs": Row(
        lambda: {"log_kernel": blocks(), "n_samples": 3}, {"log_kernel": "log_kernel"}
    ),
    "drot.coupling_loss": Row(
        lambda: {"plan": rows(), "log_kernel": -squares(), "prior": "row"},
        {"log_kernel": "log_kernel"},
    ),
    # embeddings
    "drot.SNELoss": Row(lambda: {"plan": graph()}, {"plan": "symmetric plan"}),
    "drot.SNEkhornLoss": Row(lambda: {"plan": doubly()}, {"plan": "symmetric plan"}),
    "drot.BernoulliLoss": Row(lambda: {"plan": graph()}, {"plan": "symmetric plan"}),
    "drot.attraction_repulsion": Row(
        lambda: {"objective": drot.SNELoss(graph()), "Z": points(N, 2, 1)}
    ),
    "drot.embed": Row(
        lambda: {"objective": drot.SNELoss(graph()), "init": points(N, 2, 1), **QUICK}, {}, *NAMED
    ),
    "drot.sne": Row(start, {"plan": "symmetric plan"}, *NAMED),
    "drot.tsne": Row(start, {"plan": "symmetric plan"}, *NAMED),
    "drot.snekhorn": Row(lambda: {**start(), "plan": doubly()}, {"plan": "symmetric plan"}, *NAMED),
    "drot.largevis": Row(start, {"plan": "symmetric plan"}, *NAMED),
    "drot.umap": Row(start, {"plan": "symmetric plan", "a": "pair", "b": "pair"}, *NAMED),
    "drot.random_start": Row(lambda: {"n": 4}),
    "drot.pca_start": Row(lambda: {"X": points()}, {}, {"n_components": 3}),
    "drot.spectral_start": Row(
        lambda: {"plan": graph()}, {"plan": "signed"}, {"n_components": N - 2}
    ),
    "drot.ccpca": Row(
        lambda: {"X": points(), "log_kernel": blocks(), "n_samples": 5},
        {"log_kernel": "log_kernel"},
        {"n_components": 3},
    ),
    "drot.spectral.precision_coupling_loss": Row(lambda: {"X": points(), "Z": points(N, 2, 1)}),
    "drot.spectral.precision_coupling_optimum": Row(
        lambda: {"X": points()}, {}, {"n_components": 3}
    ),
    # scores
    "drot.neighborhood_preservation": SCORE._replace(high={"K": N - 2}),
    "drot.metrics.neighborhood_curve": SCORE._replace(
        good=lambda: {"X": points(), "Z": points(N, 2, 1)}
    ),
    "drot.metrics.trustworthiness": SCORE._replace(high={"K": 4}),
    "drot.metrics.continuity": SCORE._replace(high={"K": 4}),
    # Gromov-Wasserstein
    "drot.gw_objective": Row(
        lambda: {"cost_x": squares(), "cost_z": squares(3), "plan": soft()},
        {**CONDITION, "plan": "coupling"},
    ),
    "drot.gw_gradient": Row(
        lambda: {"cost_x": squares(), "cost_z": squares(3), "plan": soft()},
        {**CONDITION, "plan": "coupling"},
    ),
    "drot.gromov_monge": Row(lambda: {"cost_x": squares(5), "cost_z": squares(5)}, CONDITION),
    "drot.gromov_wasserstein": Row(
        lambda: {
            "cost_x": squares(),
            "cost_z": squares(3),
            "weights_x": np.full(N, 1 / N),
            "weights_z": np.full(3, 1 / 3),
            "init": np.full((N, 3), 1 / N / 3),
        },
        {**CONDITION, "init": "start plan"},
    ),
    "drot.semi_relaxed_gw": Row(
        lambda: {
            "cost_x": squares(),
            "cost_z": squares(3),
            "weights_x": np.full(N, 1 / N),
            "init": np.full((N, 3), 1 / N / 3),
            **QUICK,
        },
        {**CONDITION, "init": "start plan"},
    ),
    "drot.srgw_barycenter": Row(
        lambda: {
            "cost_x": squares(),
            "n_clusters": 3,
            "weights_x": np.full(N, 1 / N),
            "init": np.full((N, 3), 1 / N / 3),
            **QUICK,
        },
        {**CONDITION, "init": "start plan"},
        {"n_clusters": N},
    ),
    "drot.kernel_kmeans": Row(
        lambda: {"gram": squares(), "n_clusters": 3, "weights_x": np.full(N, 1 / N)},
        {"gram": "symmetric", "init": "start plan"},
        {"n_clusters": N},
    ),
    "drot.coarsen": Row(
        lambda: {"cost_x": squares(), "membership": labels(), "weights_x": np.full(N, 1 / N)},
        {**CONDITION, "membership": "membership"},
    ),
    "drot.distributional_reduction": Row(
        lambda: {**reduction(), "weights": np.full(N, 1 / N), "init": np.full((N, 3), 1 / N / 3)},
        {"similarity": "kl", "init": "start plan"},
        {"n_prototypes": N},
    ),
    "drot.cluster_then_reduce": REDUCED,
    "drot.reduce_then_cluster": REDUCED,
    "drot.coot_clustering": Row(
        lambda: {"X": points(), "n_prototypes": 3, "weights": np.full(N, 1 / N)},
        {},
        {"n_prototypes": N, "n_components": 3},
    ),
    # other modules
    "drot.metrics.constraint_errors": Row(
        lambda: {"plan": doubly(), "perplexity": 4.0}, {"perplexity": "one perplexity"}
    ),
    "drot.metrics.prototype_homogeneity": Row(
        lambda: {"y": labels(), "plan": soft()}, {"plan": "plan of prototypes"}
    ),
    "drot.metrics.prototype_nmi": Row(
        lambda: {"Z": points(3, 2), "plan": soft(), "y": labels(), "n_clusters": 2},
        {"plan": "plan of prototypes", "random_state": "plain seed"},
        {"n_clusters": 3},
    ),
    "drot.metrics.weighted_silhouette": Row(
        lambda: {"Z": points(3, 2), "plan": np.eye(3)[labels()] / N, "y": labels()},
        {"plan": "plan of prototypes"},
    ),
    "drot.metrics.spectral_clustering_ari": Row(
        lambda: {"plan": doubly(), "labels": labels(), "n_clusters": 3},
        {"plan": "symmetric plan", "labels": "y", "random_state": "plain seed"},
        {"n_clusters": N},
    ),
    "drot.hyperbolic.distance": Row(lambda: {"Z": sheet()}, {"Z": "sheet"}),
    "drot.hyperbolic.to_poincare": Row(lambda: {"Z": sheet()}, {"Z": "sheet"}),
    "drot.hyperbolic.kmeans": Row(
        lambda: {"Z": sheet(), "n_clusters": 2}, {"Z": "sheet"}, {"n_clusters": 6}
    ),
    "drot.hyperbolic.silhouette": Row(
        lambda: {"Z": sheet(3), "plan": np.eye(3)[labels()] / N, "y": labels()},
        {"Z": "sheet", "plan": "plan of prototypes"},
    ),
    "drot.hyperbolic.wrapped_normal": Row(lambda: {"n": 3}),
    "drot.hyperbolic.reduce": Row(
        lambda: {
            "similarity": doubly(),
            "n_prototypes": 3,
            "weights": np.full(N, 1 / N),
            "init": np.full((N, 3), 1 / N / 3),
            **QUICK,
        },
        {"similarity": "kl", "init": "start plan"},
        {"n_prototypes": N},
    ),
    "drot.spectral.pca": Row(lambda: {"X": points()}, {}, {"n_components": 3}),
    "drot.spectral.classical_mds": Row(lambda: {"cost": squares()}, SYMMETRIC, {"n_components": N}),
    "drot.spectral.isomap": Row(
        lambda: {"X": points()}, {}, {"n_components": N, "n_neighbors": N - 1}
    ),
    "drot.spectral.locally_linear_embedding": Row(
        lambda: {"X": points()}, {}, {"n_components": N - 1, "n_neighbors": N - 1}
    ),
    "drot.spectral.kernel_pca": Row(
        lambda: {"kernel": squares(), "weights": np.ones(N)},
        {"kernel": "symmetric", "weights": "masses"},
        {"n_components": N},
    ),
    "drot.spectral.laplacian_eigenmaps": Row(
        lambda: {"weights": graph()}, {"weights": "symmetric plan"}, {"n_components": N - 1}
    ),
    "drot.spectral.diffusion_map": Row(
        lambda: {"weights": graph()}, {"weights": "symmetric plan"}, {"n_components": N - 1}
    ),
    "drot.datasets.available": Row(lambda: {"name": "mnist"}, {"name": "name of a set"}),
    "drot.datasets.digits": Row(lambda: {"n_samples": 20}, {}, {"n_samples": 1797}),
    "drot.datasets.three_gaussians": Row(dict),
    "drot.datasets.heteroscedastic_multinomials": Row(
        lambda: {"n_per_batch": (4, 2, 2), "dimension": 50}, {"n_per_batch": "sizes"}
    ),
    "drot.datasets.circles": Row(lambda: {"radii": (1.0, 2.0)}),
    "drot.datasets.unbalanced_clusters": Row(lambda: {"sizes": (2, 3)}),
    "drot.datasets.stochastic_block_model": Row(lambda: {"sizes": (2, 3)}),
    # estimators
    "drot.SNE": Row(lambda: dict(FIT)),
    "drot.TSNE": Row(lambda: dict(FIT)),
    "drot.SNEkhorn": Row(lambda: dict(FIT)),
    "drot.TSNEkhorn": Row(lambda: dict(FIT)),
    "drot.LargeVis": Row(lambda: dict(FIT)),
    "drot.UMAP": Row(
        lambda: {"n_neighbors": 4, "max_iter": 200, "tol": 1.0, "random_state": 0},
        {},
        {"n_neighbors": N},
    ),
    "drot.CCPCA": Row(
        lambda: {"perplexity": 1.5, "n_samples": 5, "random_state": 0}, {}, {"n_components": 3}
    ),
    "drot.SemiRelaxedGWClustering": Row(
        lambda: {
            "n_clusters": 2,
            "n_starts": 1,
            "random_state": 0,
            "similarity": "entropic",
            "perplexity": 3.0,
        },
        {"init": "start plan"},
        {"n_clusters": N},
    ),
    "drot.DistR": Row(
        lambda: {
            "n_prototypes": 3,
            "perplexity": 3.0,
            "max_iter": 50,
            "tol": 1.0,
            "n_starts": 1,
            "init": "cluster_then_reduce",
            "clustering": "kmeans",
            "random_state": 0,
        },
        {"init": "start plan"},
        {"n_prototypes": N},
    ),
}

# Public names without a row, and why.
ELSEWHERE = {
    "drot.costs.Pairwise": "made by sqeuclidean, student_cost, pairwise and nearest, which check",
    "drot.shard": "needs a group of processes: tests/properties/test_ranks.py",
    "drot.load": "takes a path: tests/contracts/test_results.py",
    **{
        f"drot.datasets.{name}": "reads files: tests/contracts/test_fetch.py, test_datasets.py"
        for name in (
            "load",
            "load_coil20",
            "load_fashion_mnist",
            "load_mnist",
            "load_olivetti",
            "load_pbmc3k",
            "load_scgem",
            "load_snareseq",
        )
    },
    "drot.plot.COLORS": "a constant",
    "drot.plot.style": "takes nothing",
    "drot.plot.draw_graph": "takes axes: a figure shows what is wrong",
}

# What a parameter of a name is, in every row that does not say otherwise.
ROLES = {
    "X": "cloud",
    "Y": "cloud",
    "Z": "cloud",
    "y": "y",
    "cost": "cost",
    "cost_x": "symmetric",
    "cost_z": "symmetric",
    "graph": "graph",
    "similarity": "kl",
    "plan": "graph",
    "log_kernel": "log_kernel",
    "gram": "symmetric",
    "weights": "weights",
    "weights_x": "weights",
    "weights_z": "weights",
    "init": "init",
    "random_state": "seed",
    "perplexity": "perplexities",
    "sizes": "sizes",
    "spreads": "scales",
    "radii": "scales",
    "dtype": "dtype",
    "device": "device",
    "noise": "not negative",
    "local_connectivity": "not negative",
    "min_dist": "not negative",
    "p_within": "share",
    "p_between": "share",
    "alpha": "share",
    "damping": "share",
    **dict.fromkeys(
        [
            "n",
            "k",
            "K",
            "n_components",
            "n_clusters",
            "n_neighbors",
            "n_prototypes",
            "n_samples",
            "n_starts",
            "max_iter",
            "block",
            "n_per_cluster",
            "n_per_circle",
            "n_trials",
            "n_high",
            "dimension",
        ],
        "count",
    ),
    **dict.fromkeys(
        [
            "tol",
            "bandwidth",
            "learning_rate",
            "gamma",
            "epsilon",
            "scale",
            "spread",
            "time",
            "regularization",
            "repulsion",
            "guard",
            "a",
            "b",
            "separation",
        ],
        "positive",
    ),
    # not data: a wrong one fails in the reader's own code, or is a plain yes or no
    **dict.fromkeys(
        ["callback", "function", "objective", "refine", "normalized", "download", "verbose"],
        "other",
    ),
}

# Names of estimators carry no types: what they may be.
NAMES = {
    "solver": ("lbfgs", "spectral", "adam"),
    "loss": ("square", "kl"),
    "prior": ("row", "binary", "edges"),
    "clustering": ("spectral", "kmeans"),
    "normalization": ("sum", "rows", "doubly_stochastic", "none"),
}
NAMES_OF = {
    ("drot.LargeVis", "kernel"): ("student", "curve"),
    ("drot.DistR", "kernel"): ("student", "gaussian", "gram"),
    ("drot.DistR", "similarity"): ("gram", "symmetrized_entropic", "umap", "symmetric_entropic"),
    ("drot.SemiRelaxedGWClustering", "similarity"): ("sqeuclidean", "gram", "entropic"),
}
STARTS = {  # names that init takes
    "drot.embed": ("spectral", "random"),
    "drot.semi_relaxed_gw": ("kmeans", "spectral", "random", "product"),
    "drot.distributional_reduction": ("cluster_then_reduce", "reduce_then_cluster", "random"),
    "drot.hyperbolic.reduce": ("cluster_then_reduce", "reduce_then_cluster", "random"),
    "drot.DistR": ("cluster_then_reduce", "reduce_then_cluster", "random"),
    **dict.fromkeys(
        ("drot.srgw_barycenter", "drot.kernel_kmeans", "drot.SemiRelaxedGWClustering"),
        ("kmeans", "spectral", "random"),
    ),
    **dict.fromkeys(
        ("drot.sne", "drot.tsne", "drot.snekhorn", "drot.largevis", "drot.umap"),
        ("spectral", "random"),
    ),
    **dict.fromkeys(
        (f"drot.{name}" for name in ("SNE", "TSNE", "SNEkhorn", "TSNEkhorn", "LargeVis", "UMAP")),
        ("spectral", "pca", "random", "ccpca"),
    ),
}


def thing(name: str):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def is_estimator(name: str) -> bool:
    return hasattr(thing(name), "get_params")


def public() -> Iterator[str]:
    """All that can be called and is no result, under the first of its names."""
    known = []
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            value = thing(f"{module}.{name}")
            result = inspect.isclass(value) and (
                issubclass(value, Exception | tuple)
                or (hasattr(value, "__dataclass_fields__") and not hasattr(value, "fit"))
            )
            if not (inspect.ismodule(value) or result or value in known):
                known.append(value)
                yield f"{module}.{name}"


def call(name: str, given: dict):
    """The function, or the fit of an estimator; X of an estimator comes with its parameters."""
    if not is_estimator(name):
        return thing(name)(**given)
    given = {"X": points(), **given}
    X = given.pop("X")
    return thing(name)(**given).fit(X)


@functools.cache
def hints(name: str) -> dict:
    function = thing(name)
    return typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)


def literals(hint) -> tuple[str, ...]:
    """The strings that a type allows."""
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return sum((literals(part) for part in typing.get_args(hint)), ())
    return ()


def choices(name: str, parameter: str) -> tuple[str, ...]:
    """The names that a parameter may have."""
    if (name, parameter) in NAMES_OF:
        return NAMES_OF[name, parameter]
    if is_estimator(name):
        return NAMES.get(parameter, ())
    return literals(hints(name).get(parameter))


def role(name: str, parameter: str) -> str:
    row = ROWS[name]
    if parameter in row.roles:
        return row.roles[parameter]
    if parameter != "init" and choices(name, parameter):
        return "name"
    return ROLES.get(parameter, "unknown")


def parameters(name: str) -> list[str]:
    return [*(["X"] if is_estimator(name) else []), *inspect.signature(thing(name)).parameters]


# ------------------------------------------------------------------------------- the columns
class Fault(NamedTuple):
    """How a value is spoiled, and the sentence that must come: what, where, what to do."""

    spoil: Callable
    says: str  # a regular expression; NAME stands for the parameter
    error: type | tuple = ValueError


def put(*where_and_what) -> Callable:
    *where, entry = where_and_what

    def spoil(value):
        value = np.array(value, dtype=np.float64)
        value[tuple(where)[: value.ndim]] = entry
        return value

    return spoil


def constant(value) -> Callable:
    return lambda _: value


def lopsided(value):
    value = np.array(value)
    value[2, 1] += 0.25
    return value


def thin(value):
    """The same numbers as a sparse tensor."""
    return torch.as_tensor(np.asarray(value, dtype=np.float64)).to_sparse()


EITHER = (TypeError, ValueError)
NAN = Fault(put(2, 1, math.nan), r"^NAME .*NaN.* at row 2, column 1\b.*; remove or impute it$")
NO_NUMBER = r"NAME cannot be read as an array of numbers"
SPARSE = [
    Fault(csr_matrix, r"^NAME is sparse \(csr\); pass NAME\.toarray\(\)$", TypeError),
    Fault(thin, r"^NAME is sparse \(torch\.sparse_coo\); pass NAME\.to_dense\(\)$", TypeError),
]
ARRAYS = {
    "NaN": [NAN],
    "infinite": [
        Fault(put(2, 1, math.inf), r"^NAME .*inf.* at row 2, column 1\b.*; remove or impute it$")
    ],
    "half precision": [
        Fault(
            lambda v: np.asarray(v).astype(np.float16),
            "NAME is torch.float16.*pass float32 or float64",
            TypeError,
        ),
    ],
    "complex": [
        Fault(lambda v: np.asarray(v) + 0j, r"NAME is complex .*; pass real numbers", TypeError)
    ],
    "strings": [
        Fault(lambda v: np.asarray(v).astype(str), NO_NUMBER, TypeError),
        Fault(constant("data"), NO_NUMBER, TypeError),
    ],
    "objects": [
        Fault(lambda v: np.full(np.shape(v), None), NO_NUMBER, TypeError),
        Fault(constant([[1.0, 2.0], [3.0]]), NO_NUMBER, TypeError),
        Fault(constant({"x": 1}), NO_NUMBER, TypeError),
    ],
    "sparse": SPARSE,
}
CLOUD = {
    **ARRAYS,
    "one point": [Fault(lambda v: v[:1], r"NAME needs at least 2 points .*shape \(1, \d\)")],
    "empty": [
        Fault(lambda v: v[:0], r"NAME needs at least 2 points .*shape \(0, \d\)"),
        Fault(lambda v: v[:, :0], r"NAME needs .*1 coordinate; got shape \(\d+, 0\)"),
    ],
    "wrong ndim": [
        Fault(lambda v: v[:, 0], r"NAME must be an \(n, p\) array .* shape \(\d+,\); reshape"),
        Fault(lambda v: v[None], r"NAME must be an \(n, p\) array .* shape \(1, \d+, \d\)"),
        Fault(constant(3.0), r"NAME must be an \(n, p\) array .* shape \(\)"),
    ],
}
SQUARE = {
    **ARRAYS,
    "one point": [Fault(lambda v: v[:1, :1], r"NAME (needs|.*of|must be).*(2 points|\(1, 1\))")],
    "empty": [Fault(lambda v: v[:0, :0], r"NAME (needs|must be).*\(0, 0\)")],
    "wrong ndim": [
        Fault(lambda v: v[0], r"NAME must be .*got.* \(\d+,\)"),
        Fault(lambda v: v[None], r"NAME must be .*got.* \(1, \d+, \d+\)"),
    ],
    "not square": [Fault(lambda v: v[:, :-1], r"NAME must be .*(square|\(n, n\)).*\(\d+, \d\)")],
}
NEGATIVE = Fault(put(2, 1, -0.25), r"NAME.* negative.*-0\.25.*(row 2, column 1|\(2, 1\))")


def both(value):
    """A negative entry in a matrix that stays symmetric."""
    value = np.array(value, dtype=np.float64)
    value[1, 2] = value[2, 1] = -0.25
    return value


NO_NAME = [
    Fault(constant(x), rf"NAME={kind}.* does not exist; choose from '")
    for x, kind in ((np.array(["a", "b"]), "array"), (torch.ones(3), "tensor"), ({}, "{}"))
]
TWO = r".*entries \(\d, \d\) and \(\d, \d\)"
COLUMNS: dict[str, dict[str, list[Fault]]] = {
    "cloud": CLOUD,
    "ranked": CLOUD,
    "matrix": {k: v for k, v in SQUARE.items() if k != "not square"},
    "cost": SQUARE,
    "signed": SQUARE,
    "symmetric": {**SQUARE, "not symmetric": [Fault(lopsided, f"must be symmetric;{TWO}")]},
    "distances": {**SQUARE, "negative": [Fault(put(2, 1, -0.25), "NAME.*negative")]},
    "graph": {**SQUARE, "negative": [NEGATIVE]},
    "symmetric plan": {
        **SQUARE,
        "not symmetric": [Fault(lopsided, "must be symmetric")],
        "negative": [Fault(both, "(NAME|weights).*negative")],
    },
    "kl": {
        **SQUARE,
        "not symmetric": [Fault(lopsided, f"must be symmetric;{TWO}")],
        "negative": [Fault(both, r"needs a NAME without negative .*; entry \(1, 2\) is -0\.25")],
    },
    "log_kernel": {
        **{k: v for k, v in SQUARE.items() if k not in ("infinite", "one point")},
        "NaN": [Fault(put(2, 1, math.nan), r"NAME is nan at row 2, column 1; .*finite, or -inf")],
        "infinite": [Fault(put(2, 1, math.inf), r"NAME is inf at row 2, column 1; .* or -inf")],
    },
    "rows": {
        **ARRAYS,
        "NaN": [Fault(put(2, 1, math.nan), r"NAME .*non-negative.*nan at row 2, column 1")],
        "infinite": [Fault(put(2, 1, math.inf), r"NAME .*finite.*inf at row 2, column 1")],
        "negative": [Fault(put(2, 1, -0.25), r"NAME .*non-negative.*-0\.25 at row 2, column 1")],
        "empty": [Fault(lambda v: v[:0, :0], "NAME .*empty")],
        "wrong ndim": [Fault(constant(3.0), "NAME must be a vector or matrix")],
    },
    "coupling": {
        **ARRAYS,
        "negative": [Fault(put(2, 1, -0.01), "NAME has negative entries")],
        "wrong ndim": [Fault(lambda v: v[0], r"NAME must be a \(10, 3\) plan.*got shape \(3,\)")],
        "wrong length": [
            Fault(lambda v: v[:, :2], r"NAME must be a \(10, 3\) plan.*got shape \(10, 2\)")
        ],
        "wrong sum": [Fault(lambda v: 2 * v, "NAME must have total mass 1; got 2.* Divide")],
    },
    "plan of prototypes": {
        **{k: v for k, v in ARRAYS.items() if k not in ("NaN", "infinite")},
        "NaN": [Fault(put(2, 1, math.nan), "NAME .*finite.*row 2")],
        "infinite": [Fault(put(2, 1, math.inf), "NAME .*finite.*row 2")],
        "negative": [Fault(put(2, 1, -0.01), "NAME .*negative.*row 2")],
        "wrong ndim": [Fault(lambda v: v[0], r"NAME must be \(n, k\) .*got \(3,\)")],
        "wrong length": [Fault(lambda v: v[:4], r"NAME must be \(n, k\) with one label per row")],
        "wrong sum": [Fault(lambda v: 0 * v, "NAME .*some mass")],
    },
    "sheet": {**CLOUD, "off the sheet": [Fault(lambda v: v + 0.3, "row . of NAME is not on the")]},
    "factor": {
        **ARRAYS,
        "wrong ndim": [Fault(lambda v: v[0], r"NAME must be an \(n, p\) array .*shape \(3,\)")],
        "empty": [Fault(lambda v: v[:, :0], r"NAME needs .* 1 coordinate; got shape \(10, 0\)")],
    },
    "init": {
        **{k: v for k, v in CLOUD.items() if k not in ("strings", "one point")},
        "one point": [Fault(lambda v: v[:1], "NAME needs at least 2 points")],
        "wrong length": [Fault(lambda v: v[:5], "NAME has 5 points and the plan 10")],
    },
    "start plan": {
        **{k: v for k, v in ARRAYS.items() if k not in ("strings",)},
        "negative": [Fault(put(2, 1, -0.01), "NAME .*(non-)?negative")],
        "wrong length": [Fault(lambda v: v[:5], r"NAME must be .*\(10, .\).*got.*\(5, .\)")],
        "wrong sum": [Fault(lambda v: 2 * v, "NAME must .*(row sums|sums of weights)")],
    },
    "membership": {
        "negative": [Fault(put(2, -1), "NAME must be 10 whole labels from 0")],
        "wrong length": [Fault(lambda v: v[:5], "NAME must be 10 whole labels from 0")],
        "NaN": [Fault(put(2, math.nan), "NAME must be 10 whole labels from 0")],
        "strings": [Fault(lambda v: list("aaaabbbccc"), "NAME.*labels", TypeError)],
        "empty": [Fault(constant([]), "NAME must be 10 whole labels from 0")],
        "sparse": SPARSE,
    },
    "y": {
        "wrong length": [Fault(lambda v: v[:5], r"one label per row; got \(10, \d+\) and \(5,\)")],
        "empty": [Fault(constant([]), "one label per row")],
        "wrong ndim": [Fault(constant(1), "one label per row")],
    },
    "weights": {
        **ARRAYS,
        "NaN": [Fault(put(2, math.nan), r"NAME has a non-finite entry \(NaN\) at row 2; remove")],
        "infinite": [Fault(put(2, math.inf), r"NAME has a non-finite entry \(inf\) at row 2")],
        "negative": [Fault(put(2, -0.25), "NAME must not be negative; row 2 has -0.25")],
        "wrong sum": [Fault(lambda v: 3 * v, "NAME must sum to 1; got 3. Divide by the sum")],
        "wrong length": [Fault(lambda v: v[:2], r"NAME must be one number per point .* \(2,\)")],
        "wrong ndim": [Fault(lambda v: v[None], "NAME must be one number per point")],
        "empty": [Fault(lambda v: v[:0], r"NAME must be one number per point .* \(0,\)")],
    },
    "masses": {
        **{k: v for k, v in ARRAYS.items() if k not in ("NaN", "infinite")},
        "NaN": [Fault(put(2, math.nan), "NAME must be 10 positive numbers.*row 2")],
        "infinite": [Fault(put(2, math.inf), "NAME must be 10 positive numbers.*row 2")],
        "negative": [Fault(put(2, -0.25), "NAME must be 10 positive numbers.*row 2")],
        "wrong length": [Fault(lambda v: v[:2], "NAME must be 10 positive numbers")],
    },
    "perplexities": {
        "perplexity too low": [
            Fault(constant(x), r"NAME=\S+ is out of reach for row 0: .* strictly between 1 .* and ")
            for x in (1.0, 0.0, -2.0)
        ],
        "perplexity too high": [
            Fault(constant(x), r"NAME=\S+ is out of reach for row 0: .* strictly between 1 .* and ")
            for x in (float(N), 1e9, math.inf)
        ],
        "NaN": [Fault(constant(math.nan), "NAME=nan is out of reach for row 0")],
        "wrong length": [
            Fault(constant([3.0] * 7), r"NAME must be one number or one per row \(10\)"),
            Fault(constant([]), r"NAME must be one number or one per row \(10\)"),
        ],
        "strings": [Fault(constant("30"), "NAME cannot be read", TypeError)],
        "complex": [Fault(constant(3j), "NAME is complex", TypeError)],
        "sparse": SPARSE,
    },
    "average perplexity": {
        "perplexity too low": [
            Fault(constant(1.0), "average NAME .* strictly between 1 .* and 10"),
            Fault(constant(-2.0), "NAME must be positive and finite; got -2"),
        ],
        "perplexity too high": [
            Fault(constant(10.0), "average NAME .* strictly between 1 .* and 10")
        ],
        "NaN": [Fault(constant(math.nan), "NAME must be positive and finite; got nan")],
        "wrong length": [Fault(constant([3.0] * 10), "NAME must be one number", TypeError)],
        "strings": [Fault(constant("30"), "NAME must be one number", TypeError)],
    },
    "one perplexity": {
        "perplexity too low": [Fault(constant(-1.0), "NAME must be positive and finite; got -1")],
        "NaN": [Fault(constant(math.nan), "NAME must be positive and finite; got nan")],
        "strings": [Fault(constant("30"), "NAME must be one number", TypeError)],
    },
    "count": {
        "negative": [
            Fault(constant(x), r"NAME.* must be (a whole number|at least \d+; got)")
            for x in (-1, 0)
        ],
        "boolean": [
            Fault(constant(True), "NAME.* must be (a whole number|an integer).*got True", EITHER)
        ],
        "no whole number": [
            Fault(constant(x), "NAME.* must be (a whole number|an integer).*got", EITHER)
            for x in (2.5, "3", math.nan)
        ],
    },
    "positive": {
        "not positive": [
            Fault(constant(x), "NAME must be positive( and finite)?") for x in (0.0, -1.0)
        ],
        "NaN": [Fault(constant(math.nan), "NAME must be positive")],
        "infinite": [Fault(constant(math.inf), "NAME must be positive and finite; got inf")],
        "strings": [Fault(constant("1"), "NAME must be one number; got str", TypeError)],
    },
    "pair": {"not positive": [Fault(constant(1.0), "both a and b")]},
    "not negative": {
        "negative": [Fault(constant(-0.5), "NAME must be .*-0.5")],
        "NaN": [Fault(constant(math.nan), "NAME must be .*nan")],
    },
    "share": {
        "negative": [Fault(constant(-0.5), "NAME must .*-0.5")],
        "NaN": [Fault(constant(math.nan), "NAME must .*nan")],
        "too large": [Fault(constant(1.5), "NAME must .*1.5")],
    },
    "name": {
        "unknown name": [
            Fault(constant("nonsense"), "NAME='nonsense' does not exist; choose from '")
        ],
        "no name": NO_NAME,
    },
    "name of a set": {
        "unknown name": [Fault(constant("iris"), "NAME='iris' does not exist; choose from 'snare")],
        "no name": NO_NAME,
    },
    "sizes": {
        "negative": [
            Fault(lambda v: (*v[:-1], 0), "NAME must be a whole number of at least 1; got 0")
        ],
        "boolean": [Fault(lambda v: (*v[:-1], True), "NAME must be a whole number .*; got True")],
        "empty": [Fault(constant(()), "NAME must list .*; got ()")],
    },
    "scales": {
        "negative": [Fault(constant((1.0, 1.0, -1.0)), "NAME must be positive and finite; got -1")],
        "NaN": [Fault(constant((1.0, 1.0, math.nan)), "NAME must be positive and finite; got nan")],
        "empty": [Fault(constant(()), "NAME must list .*; got ()")],
    },
    "seed": {
        "no seed": [
            Fault(
                constant(x), "NAME must be (an integer seed|a whole number of at least 0)", EITHER
            )
            for x in (-1, 0.5, True, "0")
        ],
    },
    "plain seed": {
        "no seed": [Fault(constant(x), "(NAME|[Ss]eed)", EITHER) for x in (-1, 0.5, "0")]
    },
    "dtype": {
        "half precision": [
            Fault(constant(torch.float16), "'float32', 'float64'|float32 or float64", EITHER)
        ],
        "whole numbers": [
            Fault(constant(x), "'float32', 'float64'|float32 or float64", EITHER)
            for x in (torch.int64, torch.bool, np.int64, bool, "int64", 3)
        ],
        "unknown name": [Fault(constant("nonsense"), "NAME", EITHER)],
    },
    "device": {"unknown name": [Fault(constant("nonsense"), "NAME='nonsense' cannot be used")]},
    "other": {},
    "table": {  # read by scikit-learn, in its words
        "NaN": [Fault(put(2, 1, math.nan), "X has a .* entry .NaN. at row 2, column 1; remove")],
        "infinite": [Fault(put(2, 1, math.inf), "X has a .* entry .inf. at row 2, column 1")],
        "one point": [Fault(lambda v: v[:1], r"Found array with 1 sample.* minimum of 2")],
        "empty": [Fault(lambda v: v[:0], "0 sample"), Fault(lambda v: v[:, :0], "0 feature")],
        "wrong ndim": [
            Fault(lambda v: v[:, 0], "Expected 2D array, got 1D array instead"),
            Fault(lambda v: v[None], "dim 3, while dim <= 2 is required"),
        ],
        "complex": [Fault(lambda v: v * 1j, "Complex data not supported")],
        "strings": [
            Fault(lambda v: v.astype(str).astype(object) + "a", "could not convert string")
        ],
        "objects": [Fault(constant([[1.0, 2.0], [3.0]]), "inhomogeneous|sequence")],
        "sparse": [
            Fault(csr_matrix, r"Sparse data was passed for X.*\.toarray\(\)", TypeError),
            Fault(thin, r"can't convert Sparse .* tensor.*\.to_dense\(\)", TypeError),
        ],
    },
}

# Cells that a parameter of this kind has elsewhere but not here, and why.
NOT_HERE: dict[tuple[str, str, str], str] = {
    **{
        (name, "plan", "not symmetric"): "of these losses only the two directions together count"
        for name in ("drot.BernoulliLoss", "drot.largevis", "drot.umap")
    },
    ("drot.metrics.constraint_errors", "plan", "one point"): "one row is a plan",
    ("drot.semi_relaxed_gw", "cost_z", "one point"): "all points may share one place",
    **{
        (name, "graph", "one point"): "a graph may have one node"
        for name in ("drot.fuzzy_union", "drot.laplacian", "drot.connected_components")
    },
}

# Cells whose sentence is another one.
SAYS: dict[tuple[str, str, str], str] = {
    **{
        (f"drot.{name}", "block", "no name"): r"NAME \(rows per tile\) must be a whole number"
        for name in (
            "sqeuclidean",
            "student_cost",
            "pairwise",
            "gaussian_kernel",
            "costs.Factored",
            "factored_sqeuclidean",
            "gram",
        )
    },
    ("drot.gromov_monge", "cost_z", "one point"): "at most 7 points; got 5 and 1",
    ("drot.gromov_wasserstein", "cost_z", "one point"): r"one number per point \(1\)",
    **{
        (f"drot.{name}", "cost_z", "one point"): r"plan must be a \(10, 1\) plan, cost_x by cost_z"
        for name in ("gw_objective", "gw_gradient")
    },
    ("drot.mrf_log_density", "graph", "one point"): "X has 10 points and the graph 1 nodes",
    ("drot.graph_log_probability", "graph", "one point"): "graph has 1 nodes and log_kernel 10",
    ("drot.graph_log_probability", "log_kernel", "empty"): "log_kernel must be a square",
    ("drot.kl_divergence", "plan", "empty"): "differ in shape|NAME .*empty",
    ("drot.kl_divergence", "reference", "empty"): "differ in shape|NAME .*empty",
    ("drot.metrics.constraint_errors", "plan", "negative"): "it has -0.25 at row 2, column 1",
    ("drot.coarsen", "membership", "strings"): "membership cannot be read as an array of numbers",
}

# Cells that are not as they should be yet.
OPEN: dict[tuple[str, str, str], str] = {}  # (function, parameter, fault): what is wrong still


class Cell(NamedTuple):
    function: str
    parameter: str
    fault: str
    given: Fault

    def __str__(self) -> str:
        return f"{self.function.removeprefix('drot.')}-{self.parameter}-{self.fault}"


def kind(name: str, parameter: str) -> str:
    if is_estimator(name):
        of_scikit_learn = {"X": "table", "random_state": "plain seed"}
        return of_scikit_learn.get(parameter) or role(name, parameter)
    return role(name, parameter)


def faults(name: str, parameter: str) -> Iterator[tuple[str, Fault]]:
    """The columns that apply to a parameter, each with its ways to be wrong."""
    for column, ways in COLUMNS[kind(name, parameter)].items():
        for fault in ways:
            yield column, fault
    if kind(name, parameter) == "count" and parameter in ROWS[name].high:
        high = ROWS[name].high[parameter]
        yield "too large", Fault(constant(high + 1), rf"NAME.*(to {high}|the {high} )")
    if parameter == "init" and name in STARTS:
        yield (
            "unknown name",
            Fault(constant("nonsense"), "NAME='nonsense' does not exist; choose from '"),
        )


def cells() -> Iterator[Cell]:
    for name in ROWS:
        for parameter in parameters(name):
            for column, fault in faults(name, parameter):
                if (name, parameter, column) not in NOT_HERE:
                    yield Cell(name, parameter, column, fault)


TABLE = list(cells())
