"""The table of bad input: rows of public functions, columns of faults, and what the cells say.

A row is a public function with arguments that work; a column is a fault. What a parameter is (a
cloud, a cost, a count, ...) decides which faults can befall it, so a cell is a parameter of the
row spoiled as the column says.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterator
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
def _plan(kind: str) -> np.ndarray:
    if kind == "symmetric":
        return drot.symmetric_entropic_affinity(squares(), 4.0).plan.numpy()
    return drot.entropic_affinity(squares(), 4.0, diagonal="drop").plan.numpy()


def rows() -> np.ndarray:
    """Rows of sum 1, no self-loops."""
    return _plan("rows").copy()


def graph() -> np.ndarray:
    """Symmetric weights without self-loops."""
    return (rows() + rows().T) / 2


def doubly() -> np.ndarray:
    """Symmetric, and rows of sum 1."""
    return _plan("symmetric").copy()


def blocks() -> np.ndarray:
    """A log kernel whose graphs have two components at least."""
    log = np.full((N, N), -np.inf)
    log[:5, :5] = log[5:, 5:] = 0.0
    return log


def soft() -> np.ndarray:
    T = np.random.default_rng(4).uniform(0.1, 1, size=(N, 3))
    return T / T.sum()


def even(*shape: int) -> np.ndarray:
    return np.full(shape, 1 / math.prod(shape))


def sheet(k: int = 6) -> np.ndarray:
    """Points of the hyperboloid."""
    return drot.hyperbolic.wrapped_normal(k, scale=0.5).numpy()


def labels() -> list[int]:
    return [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]


VALUES = {  # what a row calls by a name
    "six": lambda: points(6, 3, 1),
    "plane": lambda: points(N, 2, 1),
    "other": lambda: points(N, 3, 1),
    "few": lambda: points(3, 2),
    "squares3": lambda: squares(3),
    "squares5": lambda: squares(5),
    "rows": rows,
    "graph": graph,
    "doubly": doubly,
    "cycles": lambda: np.eye(N)[[1, 2, 3, 4, 0, 6, 7, 8, 9, 5]],
    "gaussian_log": lambda: -squares(),
    "hard": lambda: np.eye(3)[labels()] / N,
    "even3": lambda: even(3),
    "sheet3": lambda: sheet(3),
    "loss": lambda: drot.SNELoss(graph()),
    "cdist": lambda: torch.cdist,
}
SAMPLES = {  # what a parameter of a kind gets, if the row says nothing
    **dict.fromkeys(("cloud", "ranked", "factor"), points),
    **dict.fromkeys(("cost", "matrix", "distances", "symmetric"), squares),
    **dict.fromkeys(("signed", "symmetric_plan"), graph),
    **dict.fromkeys(("graph", "rows"), rows),
    **dict.fromkeys(("coupling", "plan_of_prototypes"), soft),
    **dict.fromkeys(("membership", "y"), labels),
    **dict.fromkeys(("perplexities", "average_perplexity", "one_perplexity"), lambda: 4.0),
    "kl": doubly,
    "log_kernel": blocks,
    "sheet": sheet,
    "init": VALUES["plane"],
    "start_plan": lambda: even(N, 3),
    "weights": lambda: even(N),
    "masses": lambda: np.ones(N),
}

QUICK = "max_iter=3 on_failure=ignore"
FIT = "perplexity=3.0 max_iter=200 tol=1.0 random_state=0"
START = f"init n_components<=8 {QUICK}"
REDUCE = "similarity n_prototypes=3 max_iter=200 clustering=kmeans on_failure=ignore"
SCORE = "X:ranked Z:ranked=plane"

# parameter[:what it is][=its value][<=the largest count that is allowed]; what has neither a value
# nor a sample of its kind is not passed.
ARGUMENTS = {
    "drot.sqeuclidean": "X Y=six",
    "drot.student_cost": "X Y=six",
    "drot.pairwise": "function=cdist X Y=six",
    "drot.nearest": "cost:matrix k=3<=10",
    "drot.costs.Factored": "left:factor right:factor=other points:other symmetric:other",
    "drot.factored_sqeuclidean": "X",
    "drot.gram": "X",
    "drot.gaussian_kernel": "Z",
    # affinities
    "drot.entropic_affinity": "cost perplexity n_neighbors=8<=10",
    "drot.gaussian_affinity": "cost perplexity:average_perplexity",
    "drot.self_tuning_affinity": "cost:distances n_neighbors=3<=9",
    "drot.doubly_stochastic_affinity": "cost:symmetric perplexity:average_perplexity",
    "drot.symmetric_entropic_affinity": "cost:symmetric perplexity",
    "drot.symmetric_dual_ascent": f"cost:symmetric perplexity {QUICK}",
    "drot.symmetric_alternating_projections": f"cost:symmetric perplexity bandwidth=1.0 {QUICK}",
    "drot.umap_membership": "cost:distances n_neighbors=4<=10",
    "drot.umap_curve": "",
    # plans and graphs
    "drot.row_entropy": "plan:rows",
    "drot.row_perplexity": "plan:rows",
    "drot.kl_divergence": "plan:rows reference:rows=doubly",
    "drot.symmetrize": "plan:signed=rows",
    "drot.fuzzy_union": "graph",
    "drot.laplacian": "graph",
    "drot.connected_components": "graph",
    "drot.mrf_log_density": "X graph",
    "drot.expected_graph": "log_kernel",
    "drot.graph_log_normalizer": "log_kernel",
    "drot.graph_log_probability": "graph=cycles log_kernel",
    "drot.sample_graph": "log_kernel",
    "drot.sample_graphs": "log_kernel n_samples=3",
    "drot.coupling_loss": "plan=rows log_kernel=gaussian_log prior=row",
    # embeddings
    "drot.SNELoss": "plan:symmetric_plan",
    "drot.SNEkhornLoss": "plan:symmetric_plan=doubly",
    "drot.BernoulliLoss": "plan:symmetric_plan",
    "drot.attraction_repulsion": "objective=loss Z=plane",
    "drot.embed": f"objective=loss {START}",
    "drot.sne": f"plan:symmetric_plan {START}",
    "drot.tsne": f"plan:symmetric_plan {START}",
    "drot.snekhorn": f"plan:symmetric_plan=doubly {START}",
    "drot.largevis": f"plan:symmetric_plan {START}",
    "drot.umap": f"plan:symmetric_plan {START} a:pair b:pair",
    "drot.random_start": "n=4",
    "drot.pca_start": "X n_components<=3",
    "drot.spectral_start": "plan:signed n_components<=8",
    "drot.ccpca": "X log_kernel n_samples=5 n_components<=3",
    "drot.spectral.precision_coupling_loss": "X Z=plane",
    "drot.spectral.precision_coupling_optimum": "X n_components<=3",
    # scores
    "drot.neighborhood_preservation": f"{SCORE} K=3<=8",
    "drot.metrics.neighborhood_curve": SCORE,
    "drot.metrics.trustworthiness": f"{SCORE} K=3<=4",
    "drot.metrics.continuity": f"{SCORE} K=3<=4",
    # Gromov-Wasserstein
    "drot.gw_objective": "cost_x cost_z=squares3 plan:coupling",
    "drot.gw_gradient": "cost_x cost_z=squares3 plan:coupling",
    "drot.gromov_monge": "cost_x=squares5 cost_z=squares5",
    "drot.gromov_wasserstein": "cost_x cost_z=squares3 weights_x weights_z=even3 init:start_plan",
    "drot.semi_relaxed_gw": f"cost_x cost_z=squares3 weights_x init:start_plan {QUICK}",
    "drot.srgw_barycenter": f"cost_x n_clusters=3 weights_x init:start_plan {QUICK}",
    "drot.kernel_kmeans": "gram n_clusters=3 weights_x init:start_plan=kmeans",
    "drot.coarsen": "cost_x membership weights_x",
    "drot.distributional_reduction": f"{REDUCE} weights init:start_plan",
    "drot.cluster_then_reduce": REDUCE,
    "drot.reduce_then_cluster": REDUCE,
    "drot.coot_clustering": "X n_prototypes=3 weights n_components<=3",
    # other modules
    "drot.metrics.constraint_errors": "plan=doubly perplexity:one_perplexity",
    "drot.metrics.prototype_homogeneity": "y plan:plan_of_prototypes",
    "drot.metrics.prototype_nmi": "Z=few plan:plan_of_prototypes y n_clusters=2<=3 "
    "random_state:plain_seed",
    "drot.metrics.weighted_silhouette": "Z=few plan:plan_of_prototypes=hard y",
    "drot.metrics.spectral_clustering_ari": "plan:symmetric_plan=doubly labels:y n_clusters=3 "
    "random_state:plain_seed",
    "drot.hyperbolic.distance": "Z:sheet",
    "drot.hyperbolic.to_poincare": "Z:sheet",
    "drot.hyperbolic.kmeans": "Z:sheet n_clusters=2<=6",
    "drot.hyperbolic.silhouette": "Z:sheet=sheet3 plan:plan_of_prototypes=hard y",
    "drot.hyperbolic.wrapped_normal": "n=3",
    "drot.hyperbolic.reduce": f"similarity n_prototypes=3 weights init:start_plan {QUICK}",
    "drot.spectral.pca": "X n_components<=3",
    "drot.spectral.classical_mds": "cost:symmetric n_components<=10",
    "drot.spectral.isomap": "X n_components<=10 n_neighbors<=9",
    "drot.spectral.locally_linear_embedding": "X n_components<=9 n_neighbors<=9",
    "drot.spectral.kernel_pca": "kernel:symmetric weights:masses n_components<=10",
    "drot.spectral.laplacian_eigenmaps": "weights:symmetric_plan n_components<=9",
    "drot.spectral.diffusion_map": "weights:symmetric_plan n_components<=9",
    "drot.datasets.available": "name:name_of_a_set=mnist",
    "drot.datasets.digits": "n_samples=20<=1797",
    "drot.datasets.three_gaussians": "",
    "drot.datasets.heteroscedastic_multinomials": "n_per_batch:sizes=(4,2,2) dimension=50",
    "drot.datasets.circles": "radii=(1.0,2.0)",
    "drot.datasets.unbalanced_clusters": "sizes=(2,3)",
    "drot.datasets.stochastic_block_model": "sizes=(2,3)",
    # estimators
    **dict.fromkeys(
        ("drot.SNE", "drot.TSNE", "drot.SNEkhorn", "drot.TSNEkhorn", "drot.LargeVis"), FIT
    ),
    "drot.UMAP": "n_neighbors=4<=10 max_iter=200 tol=1.0 random_state=0",
    "drot.CCPCA": "perplexity=1.5 n_samples=5 random_state=0 n_components<=3",
    "drot.SemiRelaxedGWClustering": "n_clusters=2 n_starts=1 random_state=0 similarity=entropic "
    "perplexity=3.0 init:start_plan=kmeans",
    "drot.DistR": "n_prototypes=3 perplexity=3.0 max_iter=50 tol=1.0 n_starts=1 random_state=0 "
    "init:start_plan=cluster_then_reduce clustering=kmeans",
}

# Public names without a row, and why.
LOADERS = "coil20 fashion_mnist mnist olivetti pbmc3k scgem snareseq"
ELSEWHERE = {
    "drot.costs.Pairwise": "made by sqeuclidean, student_cost, pairwise and nearest, which check",
    "drot.shard": "needs a group of processes: tests/properties/test_ranks.py",
    "drot.load": "takes a path: tests/contracts/test_results.py",
    **dict.fromkeys(
        ("drot.datasets.load", *(f"drot.datasets.load_{name}" for name in LOADERS.split())),
        "reads files: tests/contracts/test_fetch.py, test_datasets.py",
    ),
    "drot.plot.COLORS": "a constant",
    "drot.plot.style": "takes nothing",
    "drot.plot.draw_graph": "takes axes: tests/contracts/test_inputs.py",
}

# What a parameter of a name is, in every row that does not say otherwise.
NAMED = {
    "cloud": "X Y Z",
    "symmetric": "cost_x cost_z gram",
    "graph": "graph plan",
    "kl": "similarity",
    "weights": "weights weights_x weights_z",
    "seed": "random_state",
    "perplexities": "perplexity",
    "scales": "spreads radii",
    "not_negative": "noise local_connectivity min_dist",
    "share": "p_within p_between alpha damping",
    "count": "n k K n_components n_clusters n_neighbors n_prototypes n_samples n_starts max_iter "
    "n_per_cluster n_per_circle n_trials n_high dimension",
    "positive": "tol bandwidth learning_rate gamma epsilon scale spread time regularization "
    "repulsion guard a b separation",
    # not data: a wrong one fails in the reader's own code, or is a plain yes or no
    "other": "callback function objective refine normalized download verbose",
    **{kind: kind for kind in ("y", "cost", "log_kernel", "init", "sizes", "dtype", "device")},
    "block": "block",
    "membership": "membership",
}
ROLES = {parameter: kind for kind, names in NAMED.items() for parameter in names.split()}

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
    f"drot.{function}": tuple(names.split())
    for functions, names in {
        "embed sne tsne snekhorn largevis umap": "spectral random",
        "SNE TSNE SNEkhorn TSNEkhorn LargeVis UMAP": "spectral pca random ccpca",
        "semi_relaxed_gw": "kmeans spectral random product",
        "srgw_barycenter kernel_kmeans SemiRelaxedGWClustering": "kmeans spectral random",
        "distributional_reduction hyperbolic.reduce DistR": (
            "cluster_then_reduce reduce_then_cluster random"
        ),
    }.items()
    for function in functions.split()
}


class Row(NamedTuple):
    """Arguments that work, what they are, and the largest counts that are allowed."""

    good: Callable[[], dict]
    roles: dict[str, str]
    high: dict[str, int]


def read(name: str) -> Row:
    """A row of ``ARGUMENTS``."""
    roles, given, high = {}, {}, {"n_clusters": N, "n_prototypes": N}
    for word in ARGUMENTS[name].split():
        parameter, is_a, value, most = re.fullmatch(
            r"(\w+)(?::(\w+))?(?:=([^<]+))?(?:<=(\d+))?", word
        ).groups()
        is_a = is_a or ROLES.get(parameter, "name")
        roles[parameter] = is_a
        if most:
            high[parameter] = int(most)
        if value or is_a in SAMPLES:
            given[parameter] = functools.partial(sample, value) if value else SAMPLES[is_a]
    roles = {key: is_a for key, is_a in roles.items() if is_a != "name"}
    return Row(lambda: {key: make() for key, make in given.items()}, roles, high)


def sample(word: str):
    if word in VALUES:
        return VALUES[word]()
    return ast.literal_eval(word) if re.match(r"[\d(]", word) else word


ROWS = {name: read(name) for name in ARGUMENTS}


def also(name: str, parameter: str) -> dict:
    """What cells of a parameter change besides it."""
    kinds = ROWS[name].roles
    if kinds.get("init") == "init":  # what only starts by name read
        found = {"n_components": {"init": "spectral"}, "random_state": {"init": "random"}}
        return found.get(parameter, {})
    one = parameter == "bandwidth" and kinds.get("perplexity") == "average_perplexity"
    return {"perplexity": None} if one else {}


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


def kind(name: str, parameter: str) -> str:
    """What a parameter is: as the row says, of scikit-learn, one of several names, or as named."""
    if is_estimator(name) and parameter in ("X", "random_state"):
        return {"X": "table", "random_state": "plain_seed"}[parameter]
    if parameter in ROWS[name].roles and not (is_estimator(name) and choices(name, parameter)):
        return ROWS[name].roles[parameter]
    if parameter not in ("init", "block") and choices(name, parameter):
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


def ways(says: str, *spoils, error: type | tuple = ValueError) -> list[Fault]:
    """Functions that spoil a value, or other values, with one sentence."""
    return [Fault(s if callable(s) else lambda _, s=s: s, says, error) for s in spoils]


def put(entry: float) -> Callable:
    """An entry at row 2, column 1; instead of a number."""

    def spoil(value):
        if not np.ndim(value):
            return entry
        value = np.array(value, dtype=np.float64)
        value[(2, 1)[: value.ndim]] = entry
        return value

    return spoil


def lopsided(value):
    value = np.array(value)
    value[2, 1] += 0.25
    return value


def both(value):
    """A negative entry in a matrix that stays symmetric."""
    value = np.array(value, dtype=np.float64)
    value[1, 2] = value[2, 1] = -0.25
    return value


def first(k: int) -> Callable:
    return lambda value: value[:k]


def thin(value):
    """The same numbers as a sparse tensor."""
    return torch.as_tensor(np.asarray(value, dtype=np.float64)).to_sparse()


def unfinite(says: str) -> dict[str, list[Fault]]:
    """Two columns; ENTRY stands for the entry."""
    return {
        "NaN": ways(says.replace("ENTRY", "(?:nan|NaN)"), put(math.nan)),
        "infinite": ways(says.replace("ENTRY", "inf"), put(math.inf)),
    }


EITHER = (TypeError, ValueError)
NO_NUMBER = r"NAME cannot be read as an array of numbers"
SPARSE = ways(r"^NAME is sparse \(csr\); pass NAME\.toarray\(\)$", csr_matrix, error=TypeError)
SPARSE += ways(
    r"^NAME is sparse \(torch\.sparse_coo\); pass NAME\.to_dense\(\)$", thin, error=TypeError
)
ARRAYS = {
    **unfinite(r"^NAME .*ENTRY.* at row 2, column 1\b.*; remove or impute it$"),
    "half precision": ways(
        "NAME is torch.float16.*pass float32 or float64",
        lambda v: np.asarray(v).astype(np.float16),
        error=TypeError,
    ),
    "complex": ways(
        r"NAME is complex .*; pass real numbers", lambda v: np.asarray(v) + 0j, error=TypeError
    ),
    "strings": ways(NO_NUMBER, lambda v: np.asarray(v).astype(str), "data", error=TypeError),
    "objects": ways(
        NO_NUMBER,
        lambda v: np.full(np.shape(v), None),
        [[1.0, 2.0], [3.0]],
        {"x": 1},
        error=TypeError,
    ),
    "sparse": SPARSE,
}
CLOUD = {
    **ARRAYS,
    "one point": ways(r"NAME needs at least 2 points .*shape \(1, \d\)", first(1)),
    "empty": ways(r"NAME needs at least 2 points .*shape \(0, \d\)", first(0))
    + ways(r"NAME needs .*1 coordinate; got shape \(\d+, 0\)", lambda v: v[:, :0]),
    "wrong ndim": ways(
        r"NAME must be an \(n, p\) array .* shape \(\d+,\); reshape", lambda v: v[:, 0]
    )
    + ways(r"NAME must be an \(n, p\) array .* shape \(1, \d+, \d\)", lambda v: v[None])
    + ways(r"NAME must be an \(n, p\) array .* shape \(\)", 3.0),
}
MATRIX = {
    **ARRAYS,
    "one point": ways(r"NAME (needs|.*of|must be).*(2 points|\(1, 1\))", lambda v: v[:1, :1]),
    "empty": ways(r"NAME (needs|must be).*\(0, 0\)", lambda v: v[:0, :0]),
    "wrong ndim": ways(r"NAME must be .*got.* \(\d+,\)", lambda v: v[0])
    + ways(r"NAME must be .*got.* \(1, \d+, \d+\)", lambda v: v[None]),
}
SQUARE = {
    **MATRIX,
    "not square": ways(r"NAME must be .*(square|\(n, n\)).*\(\d+, \d\)", lambda v: v[:, :-1]),
}
LOPSIDED = ways(r"must be symmetric;.*entries \(\d, \d\) and \(\d, \d\)", lopsided)
HIDDEN = ways("NAME must be 10 whole labels from 0", put(-1), first(5), put(math.nan), [])
REACH = r"NAME=\S+ is out of reach for row 0: .* strictly between 1 .* and "
PER_ROW = r"NAME must be one number or one per row \(10\)"
POSITIVE = "NAME must be positive and finite; got "
SIZE = "NAME must be a whole number of at least 1; got (0|True)"
TILES = r"NAME \(rows per tile\) must be a whole number of at least 1; got"
FLOATS = "'float32', 'float64'|float32 or float64"
UNKNOWN = ways("NAME='nonsense' does not exist; choose from '", "nonsense")
NO_NAME = ways(
    "NAME=(array|tensor|{}).* does not exist; choose from '",
    np.array(["a", "b"]),
    torch.ones(3),
    {},
)


def without(columns: dict, *names: str) -> dict:
    return {name: faults for name, faults in columns.items() if name not in names}


COLUMNS: dict[str, dict[str, list[Fault]]] = {
    "cloud": CLOUD,
    "ranked": CLOUD,
    "matrix": MATRIX,
    "cost": SQUARE,
    "signed": SQUARE,
    "symmetric": {**SQUARE, "not symmetric": LOPSIDED},
    "distances": {**SQUARE, "negative": ways("NAME.*negative", put(-0.25))},
    "graph": {
        **SQUARE,
        "negative": ways(
            r"NAME.* negative.*-0\.25.*(row 2, column 1|\(2, 1\))|it has -0.25 at row 2, column 1",
            put(-0.25),
        ),
    },
    "symmetric_plan": {
        **SQUARE,
        "not symmetric": ways("must be symmetric", lopsided),
        "negative": ways("(NAME|weights).*negative", both),
    },
    "kl": {
        **SQUARE,
        "not symmetric": LOPSIDED,
        "negative": ways(r"needs a NAME without negative .*; entry \(1, 2\) is -0\.25", both),
    },
    "log_kernel": {
        **without(SQUARE, "one point"),
        **unfinite(r"NAME is ENTRY at row 2, column 1; .* or -inf"),
    },
    "rows": {
        **ARRAYS,
        **unfinite(r"NAME .*(non-negative|finite).*ENTRY at row 2, column 1"),
        "negative": ways(r"NAME .*non-negative.*-0\.25 at row 2, column 1", put(-0.25)),
        "empty": ways("NAME .*empty", lambda v: v[:0, :0]),
        "wrong ndim": ways("NAME must be a vector or matrix", 3.0),
    },
    "coupling": {
        **ARRAYS,
        "negative": ways("NAME has negative entries", put(-0.01)),
        "wrong ndim": ways(r"NAME must be a \(10, 3\) plan.*got shape \(3,\)", lambda v: v[0]),
        "wrong length": ways(
            r"NAME must be a \(10, 3\) plan.*got shape \(10, 2\)", lambda v: v[:, :2]
        ),
        "wrong sum": ways("NAME must have total mass 1; got 2.* Divide", lambda v: 2 * v),
    },
    "plan_of_prototypes": {
        **ARRAYS,
        **unfinite("NAME .*finite.*row 2"),
        "negative": ways("NAME .*negative.*row 2", put(-0.01)),
        "wrong ndim": ways(r"NAME must be \(n, k\) .*got \(3,\)", lambda v: v[0]),
        "wrong length": ways(r"NAME must be \(n, k\) with one label per row", first(4)),
        "wrong sum": ways("NAME .*some mass", lambda v: 0 * v),
    },
    "sheet": {**CLOUD, "off the sheet": ways("row . of NAME is not on the", lambda v: v + 0.3)},
    "factor": {
        **ARRAYS,
        "wrong ndim": ways(r"NAME must be an \(n, p\) array .*shape \(3,\)", lambda v: v[0]),
        "empty": ways(r"NAME needs .* 1 coordinate; got shape \(10, 0\)", lambda v: v[:, :0]),
    },
    "init": {
        **without(CLOUD, "strings"),
        "one point": ways("NAME needs at least 2 points", first(1)),
        "wrong length": ways("NAME has 5 points and the plan 10", first(5)),
    },
    "start_plan": {
        **without(ARRAYS, "strings"),
        "negative": ways("NAME .*(non-)?negative", put(-0.01)),
        "wrong length": ways(r"NAME must be .*\(10, .\).*got.*\(5, .\)", first(5)),
        "wrong sum": ways("NAME must .*(row sums|sums of weights)", lambda v: 2 * v),
    },
    "membership": {
        "no label": HIDDEN,
        "strings": ways(NO_NUMBER, lambda _: list("aaaabbbccc"), error=TypeError),
        "sparse": SPARSE,
    },
    "y": {
        "wrong length": ways(r"one label per row; got \(10, \d+\) and \(5,\)", first(5)),
        "empty": ways("one label per row", []),
        "wrong ndim": ways("one label per row", 1),
    },
    "weights": {
        **ARRAYS,
        **unfinite(r"NAME has a non-finite entry \(ENTRY\) at row 2; remove"),
        "negative": ways("NAME must not be negative; row 2 has -0.25", put(-0.25)),
        "wrong sum": ways("NAME must sum to 1; got 3. Divide by the sum", lambda v: 3 * v),
        "wrong length": ways(r"NAME must be one number per point .* \(2,\)", first(2)),
        "wrong ndim": ways("NAME must be one number per point", lambda v: v[None]),
        "empty": ways(r"NAME must be one number per point .* \(0,\)", first(0)),
    },
    "masses": {
        **ARRAYS,
        **unfinite("NAME must be 10 positive numbers.*row 2"),
        "negative": ways("NAME must be 10 positive numbers.*row 2", put(-0.25)),
        "wrong length": ways("NAME must be 10 positive numbers", first(2)),
    },
    "perplexities": {
        "out of reach": ways(REACH, 1.0, 0.0, -2.0, float(N), 1e9, math.inf, math.nan),
        "wrong length": ways(PER_ROW, [3.0] * 7, []),
        "strings": ways("NAME cannot be read", "30", error=TypeError),
        "complex": ways("NAME is complex", 3j, error=TypeError),
        "sparse": SPARSE,
    },
    "average_perplexity": {
        "out of reach": ways("average NAME .* strictly between 1 .* and 10", 1.0, 10.0),
        "not positive": ways(f"{POSITIVE}(-2|nan)", -2.0, math.nan),
        "strings": ways("NAME must be one number", "30", [3.0] * 10, error=TypeError),
    },
    "one_perplexity": {
        "out of reach": ways(f"{POSITIVE}(-1|nan)", -1.0, math.nan),
        "strings": ways("NAME must be one number", "30", error=TypeError),
    },
    "count": {
        "negative": ways(r"NAME.* must be (a whole number|at least \d+; got)", -1, 0),
        "no whole number": ways("NAME.* must be (a whole|an integer).*got True", True, error=EITHER)
        + ways("NAME.* must be (a whole|an integer).*got", 2.5, "3", math.nan, error=EITHER),
    },
    "block": {
        "negative": ways(TILES, 0, -1),
        "no whole number": ways(TILES, True, 2.5, math.nan, np.ones(2), torch.ones(3), {}),
        "unknown name": UNKNOWN,
    },
    "positive": {
        "not positive": ways("NAME must be positive( and finite)?", 0.0, -1.0),
        "NaN": ways("NAME must be positive", math.nan),
        "infinite": ways(f"{POSITIVE}inf", math.inf),
        "no number": ways("NAME must be one number; got str", "1", error=TypeError)
        + ways("NAME must be one number", np.ones(8), error=TypeError),
    },
    "pair": {"not positive": ways("both a and b", 1.0)},
    "not_negative": {"negative": ways(r"NAME must be .*(-0\.5|nan)", -0.5, math.nan)},
    "share": {"no share": ways(r"NAME must .*(-0\.5|nan|1\.5)", -0.5, math.nan, 1.5)},
    "name": {"unknown name": UNKNOWN, "no name": NO_NAME},
    "name_of_a_set": {
        "unknown name": ways("NAME='iris' does not exist; choose from 'snare", "iris"),
        "no name": NO_NAME,
    },
    "sizes": {
        "no size": ways(SIZE, lambda v: (*v[:-1], 0), lambda v: (*v[:-1], True)),
        "empty": ways(r"NAME must list .*; got \(\)", ()),
    },
    "scales": {
        "negative": ways(f"{POSITIVE}(-1|nan)", (1.0, 1.0, -1.0), (1.0, 1.0, math.nan)),
        "empty": ways(r"NAME must list .*; got \(\)", ()),
    },
    "seed": {
        "no seed": ways(
            "NAME must be (an integer seed|a whole number of at least 0)",
            *(-1, 0.5, True, "0"),
            error=EITHER,
        )
    },
    "plain_seed": {"no seed": ways("(NAME|[Ss]eed)", -1, 0.5, "0", error=EITHER)},
    "dtype": {
        "no float": ways(
            FLOATS,
            *(torch.float16, torch.int64, torch.bool, lambda _: np.int64, lambda _: bool),
            *("int64", 3),
            error=EITHER,
        ),
        "unknown name": ways("NAME", "nonsense", error=EITHER),
    },
    "device": {"unknown name": ways("NAME='nonsense' cannot be used", "nonsense")},
    "other": {},
    "table": {  # read by scikit-learn, in its words
        **unfinite("X has a .* entry .ENTRY. at row 2, column 1"),
        "one point": ways(r"Found array with 1 sample.* minimum of 2", first(1)),
        "empty": ways("0 sample", first(0)) + ways("0 feature", lambda v: v[:, :0]),
        "wrong ndim": ways("Expected 2D array, got 1D array instead", lambda v: v[:, 0])
        + ways("dim 3, while dim <= 2 is required", lambda v: v[None]),
        "complex": ways("Complex data not supported", lambda v: v * 1j),
        "strings": ways("could not convert string", lambda v: v.astype(str).astype(object) + "a"),
        "objects": ways("inhomogeneous|sequence", [[1.0, 2.0], [3.0]]),
        "sparse": ways(r"Sparse data was passed for X.*\.toarray\(\)", csr_matrix, error=TypeError)
        + ways(r"can't convert Sparse .* tensor.*\.to_dense\(\)", thin, error=TypeError),
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
ALONE = r"plan must be a \(10, 1\) plan, cost_x by cost_z"
SAYS: dict[tuple[str, str, str], str] = {
    ("drot.gromov_monge", "cost_z", "one point"): "at most 7 points; got 5 and 1",
    ("drot.gromov_wasserstein", "cost_z", "one point"): r"one number per point \(1\)",
    ("drot.gw_objective", "cost_z", "one point"): ALONE,
    ("drot.gw_gradient", "cost_z", "one point"): ALONE,
    ("drot.mrf_log_density", "graph", "one point"): "X has 10 points and the graph 1 nodes",
    ("drot.graph_log_probability", "graph", "one point"): "graph has 1 nodes and log_kernel 10",
    ("drot.graph_log_probability", "log_kernel", "empty"): "log_kernel must be a square",
    ("drot.kl_divergence", "plan", "empty"): "differ in shape|NAME .*empty",
    ("drot.kl_divergence", "reference", "empty"): "differ in shape|NAME .*empty",
}

# Cells that are not as they should be yet.
OPEN: dict[tuple[str, str, str], str] = {}  # (function, parameter, fault): what is wrong still


def faults(name: str, parameter: str) -> Iterator[tuple[str, Fault]]:
    """The columns that apply to a parameter, each with its ways to be wrong."""
    columns = dict(COLUMNS[kind(name, parameter)])
    if kind(name, parameter) == "count" and parameter in ROWS[name].high:
        high = ROWS[name].high[parameter]
        columns["too large"] = ways(rf"NAME.*(to {high}|the {high} )", high + 1)
    if parameter == "init" and name in STARTS:
        columns["unknown name"] = UNKNOWN
    yield from ((column, fault) for column, given in columns.items() for fault in given)


TABLE = [
    (name, parameter, column, fault)
    for name in ROWS
    for parameter in parameters(name)
    for column, fault in faults(name, parameter)
    if (name, parameter, column) not in NOT_HERE
]
