"""The table of bad input: rows of public functions, columns of faults, and what the cells say.

A row is a public function with arguments that work; a column is a fault. What a parameter is (a
cloud, a cost, a count, ...) decides which faults can befall it, so a cell is a parameter of the
row spoiled as the column says.
"""

import ast
import functools
import importlib
import inspect
import math
import re
import traceback
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
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
        return drot.symmetric_entropic_affinity(squares(), perplexity=4.0).plan.numpy()
    return drot.entropic_affinity(squares(), perplexity=4.0, diagonal="drop").plan.numpy()


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
    **dict.fromkeys(("cloud", "metric", "ranked", "factor"), points),
    **dict.fromkeys(("cost", "matrix", "distances", "symmetric", "similarity"), squares),
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
FIT = "perplexity:plain_perplexity=3.0 max_iter=200 tol=1.0 random_state=0"
START = f"init n_components=2<=8 {QUICK}"
REDUCE = "similarity n_prototypes=3 max_iter=200 clustering=kmeans on_failure=ignore"
SCORE = "X:ranked Z:ranked=plane"

# parameter[:what it is][=its value][<=the largest count that is allowed]; what has neither a value
# nor a sample of its kind is not passed.
ARGUMENTS = {
    "drot.sqeuclidean": "X:metric Y=six",
    "drot.student_cost": "X Y=six",
    "drot.pairwise": "function=cdist X Y=six",
    "drot.nearest": "cost:matrix n_neighbors=3<=10",
    "drot.costs.Factored": "left:factor right:factor=other points:other symmetric:other",
    "drot.factored_sqeuclidean": "X:metric",
    "drot.gram": "X:metric",
    # affinities
    "drot.entropic_affinity": "cost perplexity n_neighbors=8<=10",
    "drot.gaussian_affinity": "cost perplexity:average_perplexity",
    "drot.self_tuning_affinity": "cost:distances n_neighbors=3<=9",
    "drot.doubly_stochastic_affinity": "cost:symmetric perplexity:average_perplexity",
    "drot.symmetric_entropic_affinity": "cost:symmetric perplexity",
    "drot.affinities.symmetric_dual_ascent": f"cost:symmetric perplexity {QUICK}",
    "drot.affinities.symmetric_alternating_projections": "cost:symmetric perplexity "
    f"bandwidth=1.0 {QUICK}",
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
    "drot.graphs.mrf_log_density": "X graph",
    "drot.expected_graph": "log_kernel",
    "drot.graphs.graph_log_normalizer": "log_kernel",
    "drot.graphs.graph_log_probability": "graph=cycles log_kernel",
    "drot.sample_graph": "log_kernel",
    "drot.sample_graphs": "log_kernel n_samples=3",
    "drot.coupling_loss": "plan=rows log_kernel=gaussian_log prior=row",
    # embeddings
    "drot.SNELoss": "plan:symmetric_plan",
    "drot.SNEkhornLoss": "plan:symmetric_plan=doubly",
    "drot.BernoulliLoss": "plan:symmetric_plan",
    "drot.embeddings.attraction_repulsion": "objective=loss Z=plane",
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
    "drot.neighborhood_preservation": f"{SCORE} n_neighbors=3<=8",
    "drot.metrics.neighborhood_curve": SCORE,
    # Gromov-Wasserstein
    "drot.gw_objective": "cost_x cost_z=squares3 plan:coupling",
    "drot.gromov.gw_gradient": "cost_x cost_z=squares3 plan:coupling",
    "drot.gromov.gromov_monge": "cost_x=squares5 cost_z=squares5",
    "drot.gromov_wasserstein": "cost_x cost_z=squares3 weights_x weights_z=even3 init:start_plan",
    "drot.semi_relaxed_gw": f"cost_x cost_z=squares3 weights_x init:start_plan {QUICK}",
    "drot.srgw_barycenter": f"similarity:symmetric n_clusters=3 weights init:start_plan {QUICK}",
    "drot.kernel_kmeans": "similarity:symmetric n_clusters=3 weights init:start_plan=kmeans",
    "drot.gromov.coarsen": "similarity:symmetric membership weights",
    "drot.distributional_reduction": f"{REDUCE} weights init:start_plan",
    "drot.cluster_then_reduce": REDUCE,
    "drot.reduce_then_cluster": REDUCE,
    "drot.coot_clustering": "X:metric n_prototypes=3 weights n_components<=3",
    # other modules
    "drot.metrics.constraint_errors": "plan=doubly perplexity:one_perplexity",
    "drot.metrics.prototype_homogeneity": "plan:plan_of_prototypes y",
    "drot.metrics.prototype_nmi": "Z=few plan:plan_of_prototypes y n_clusters=2<=3",
    "drot.metrics.weighted_silhouette": "Z:metric=few plan:plan_of_prototypes=hard y",
    "drot.metrics.spectral_clustering_ari": "plan:symmetric_plan=doubly y n_clusters=3",
    "drot.hyperbolic.distances": "Z:sheet",
    "drot.hyperbolic.to_poincare": "Z:sheet",
    "drot.hyperbolic.wrapped_normal": "n=3",
    "drot.hyperbolic.distributional_reduction": (
        f"similarity n_prototypes=3 weights init:start_plan {QUICK}"
    ),
    "drot.spectral.pca": "X n_components<=3",
    "drot.spectral.classical_mds": "cost:symmetric n_components<=10",
    "drot.spectral.isomap": "X n_components<=10 n_neighbors<=9",
    "drot.spectral.locally_linear_embedding": "X n_components<=9 n_neighbors<=9",
    "drot.spectral.kernel_pca": "similarity:similarity weights:masses n_components<=10",
    "drot.spectral.laplacian_eigenmaps": "graph:symmetric_plan n_components<=9",
    "drot.spectral.diffusion_map": "graph:symmetric_plan n_components<=9",
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
    "drot.CCPCA": "perplexity:plain_perplexity=1.5 n_samples=5 random_state=0 n_components<=3",
    "drot.SemiRelaxedGWClustering": "n_clusters=2 n_starts=1 random_state=0 similarity=entropic "
    "perplexity:plain_perplexity=3.0 init:start_plan=kmeans",
    "drot.DistR": "n_prototypes=3 perplexity:plain_perplexity=3.0 n_neighbors=4<=10 max_iter=50 "
    "tol=1.0 n_starts=1 random_state=0 init:start_plan=cluster_then_reduce clustering=kmeans",
}

# Public names without a row, and why.
ELSEWHERE = {
    "drot.show_versions": "takes nothing",
    "drot.costs.Pairwise": "made by sqeuclidean, student_cost, pairwise and nearest, which check",
    "drot.costs.shard": "needs a group of processes: tests/properties/test_ranks.py",
    "drot.load": "takes a path: tests/contracts/test_results.py",
    "drot.datasets.load": "reads files: tests/contracts/test_fetch.py, test_datasets.py",
    "drot.plot.COLORS": "a constant",
    "drot.plot.style": "takes nothing",
    "drot.plot.draw_graph": "takes axes: tests/contracts/test_inputs.py",
    **dict.fromkeys(
        (f"drot.plot.{name}" for name in ("panels", "scale_bar", "scatter")),
        "tests/properties/test_plot.py",
    ),
}

# What a parameter of a name is, in every row that does not say otherwise.
NAMED = {
    "cloud": "X Y Z",
    "symmetric": "cost_x cost_z",
    "graph": "graph plan",
    "kl": "similarity",
    "weights": "weights weights_x weights_z",
    "seed": "random_state",
    "perplexities": "perplexity",
    "scales": "spreads radii",
    "not_negative": "noise local_connectivity min_dist",
    "share": "p_within p_between alpha damping",
    "count": "n n_components n_clusters n_neighbors n_prototypes n_samples n_starts max_iter "
    "n_per_cluster n_per_circle n_trials n_high dimension",
    "positive": "tol bandwidth learning_rate gamma scale spread time repulsion a b separation",
    # not data: a wrong one fails in the reader's own code, or is a plain yes or no
    "other": "callback function centres refine normalized download verbose keep_affinity",
    **{kind: kind for kind in ("y", "cost", "log_kernel", "init", "sizes", "dtype")},
    **{kind: kind for kind in ("device", "objective")},
    "block": "block",
    "membership": "membership",
}
ROLES = {parameter: kind for kind, names in NAMED.items() for parameter in names.split()}

# Names of estimators carry no types: what they may be.
NAMES = {
    "solver": ("lbfgs", "adam"),
    "metric": ("euclidean", "manhattan", "cosine"),
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
        "distributional_reduction hyperbolic.distributional_reduction DistR": (
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
    if (name, parameter) == ("drot.DistR", "n_neighbors"):
        return {"similarity": "umap"}  # which alone reads it
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
                issubclass(value, BaseException | tuple)
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


def check_sentence(error: Exception) -> None:
    """Raised by the package itself, in words."""
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    assert type(error) in (ValueError, MemoryError), error
    assert Path(drot.__file__).parent in Path(place).parents, f"{place}: {error}"
    text = str(error)
    assert 20 < len(text) < 400 and "\n" not in text, text


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


def thin(value):
    """The same numbers as a sparse tensor."""
    return torch.as_tensor(np.asarray(value, dtype=np.float64)).to_sparse()


SPOILS = {  # in the words of the table: what is done to a value, or what it becomes
    "nan": math.nan,
    "inf": math.inf,
    "float16": torch.float16,
    "np.int64": lambda _: np.int64,
    "ones": np.ones(8),
    "tensor": torch.ones(3),
    "affinity": lambda _: drot.entropic_affinity(squares(), perplexity=4.0),
    "a cost": lambda v: drot.sqeuclidean(points()),
    "a data set": lambda v: drot.datasets.circles(3),
    "letters": lambda _: list("aaaabbbccc"),
    "as float16": lambda v: np.asarray(v).astype(np.float16),
    "as complex": lambda v: np.asarray(v) + 0j,
    "as text": lambda v: np.asarray(v).astype(str),
    "as words": lambda v: v.astype(str).astype(object) + "a",
    "as None": lambda v: np.full(np.shape(v), None),
    "csr": csr_matrix,
    "coo": thin,
    **{f"first {k}": lambda v, k=k: v[:k] for k in (0, 1, 2, 4, 5)},
    "row 0": lambda v: v[0],
    "column 0": lambda v: v[:, 0],
    "no column": lambda v: v[:, :0],
    "columns 0, 1": lambda v: v[:, :2],
    "one column less": lambda v: v[:, :-1],
    "one of it": lambda v: v[None],
    "1 x 1": lambda v: v[:1, :1],
    "0 x 0": lambda v: v[:0, :0],
    "lopsided": lopsided,
    "two entries -0.25": both,
    **{f"entry {x}": put(x) for x in (math.nan, math.inf, -1, -0.25, -0.01)},
    **{f"{k} times": lambda v, k=k: k * v for k in (0, 2, 3)},
    "moved": lambda v: v + 0.3,
    "huge": lambda v: 1e200 * v,
    "tiny": lambda v: 1e-200 * v,
    "last 0": lambda v: (*v[:-1], 0),
    "last True": lambda v: (*v[:-1], True),
}
# [kind < kind whose columns it has - but for one]; column :: Error: sentence :: ways to be wrong.
# A sentence is of a ValueError where it names no other; a column alone is that of an array.
COLUMNS = r"""
[array]
not finite :: ^NAME .*ENTRY.* at row 2, column 1\b.*; remove or impute it$
half precision :: TypeError: NAME is torch.float16.*pass float32 or float64 :: as float16
complex :: TypeError: NAME is complex .*; pass real numbers :: as complex
strings :: TypeError: NAME cannot be read as an array of numbers :: as text | "data"
of this package :: TypeError: NAME is of type DataSet, no array; pass its X$ :: a data set
objects :: TypeError: NAME cannot be read as an array of numbers :: as None | [[1], [2, 3]] | {}
sparse :: TypeError: ^NAME is sparse \(csr\); pass NAME\.toarray\(\)$ :: csr
sparse :: TypeError: ^NAME is sparse \(torch\.sparse_coo\); pass NAME\.to_dense\(\)$ :: coo
[cloud < array]
one point :: NAME needs at least 2 points .*shape \(1, \d\) :: first 1
empty :: NAME needs at least 2 points .*shape \(0, \d\) :: first 0
empty :: NAME needs .*1 coordinate; got shape \(\d+, 0\) :: no column
wrong ndim :: NAME must be an \(n, p\) array .* shape \(\d+,\); reshape :: column 0
wrong ndim :: NAME must be an \(n, p\) array .* shape \(1, \d+, \d\) :: one of it
wrong ndim :: NAME must be an \(n, p\) array .* shape \(\) :: 3.0
[metric < cloud]
too large :: ^squared distances overflow torch.float64; give NAME in larger units :: huge
too small :: ^squared distances underflow torch.float64; give NAME in smaller units :: tiny
[ranked < cloud]
[matrix < array]
one point :: NAME (needs|.*of|must be).*(2 points|\(1, 1\)) :: 1 x 1
empty :: NAME (needs|must be).*\(0, 0\) :: 0 x 0
wrong ndim :: NAME must be .*got.* \(\d+,\) :: row 0
wrong ndim :: NAME must be .*got.* \(1, \d+, \d+\) :: one of it
[cost < matrix]
not square :: NAME must be .*(square|\(n, n\)).*\(\d+, \d\) :: one column less
[signed < cost]
[symmetric < cost]
not symmetric :: must be symmetric;.*entries \(\d, \d\) and \(\d, \d\) :: lopsided
[distances < cost]
negative :: NAME.*negative :: entry -0.25
[graph < cost]
a cost :: NAME holds distances, small where :: a cost
negative :: (NAME.* negative.*-0\.25.*|it has -0.25 at )(row 2, column 1|\(2, 1\)) :: entry -0.25
[symmetric_plan < cost]
a cost :: AnyError: NAME (holds|is of type).*; pass an affinity of it\b :: a cost
not symmetric :: must be symmetric :: lopsided
negative :: (NAME|weights).*negative :: two entries -0.25
[kl < symmetric]
negative :: needs a NAME without negative .*; entry \(1, 2\) is -0\.25 :: two entries -0.25
[similarity < symmetric]
a cost :: ^NAME holds distances, small where .*; pass an affinity of it, or drot.gram :: a cost
[log_kernel < cost - one point]
a cost :: TypeError: NAME is of type Pairwise, .*; pass an affinity of it, or an array :: a cost
not finite :: NAME is ENTRY at row 2, column 1; .* or -inf
[rows < array]
not finite :: NAME .*(non-negative|finite).*ENTRY at row 2, column 1
negative :: NAME .*non-negative.*-0\.25 at row 2, column 1 :: entry -0.25
empty :: NAME .*empty :: 0 x 0
wrong ndim :: NAME must be a vector or matrix :: 3.0
[coupling < array]
negative :: NAME has negative entries :: entry -0.01
wrong ndim :: NAME must be a \(10, 3\) plan.*got shape \(3,\) :: row 0
wrong length :: NAME must be a \(10, 3\) plan.*got shape \(10, 2\) :: columns 0, 1
wrong sum :: NAME must have total mass 1; got 2.* Divide :: 2 times
[plan_of_prototypes < array]
not finite :: NAME .*finite.*row 2
negative :: NAME .*negative.*row 2 :: entry -0.01
wrong ndim :: NAME must be \(n, k\) .*got \(3,\) :: row 0
wrong length :: NAME must be \(n, k\) with one label per row :: first 4
wrong sum :: NAME .*some mass :: 0 times
[sheet < cloud - one point]
empty :: NAME needs at least 1 point and .*shape \(0, \d\) :: first 0
empty :: NAME needs .*1 coordinate; got shape \(\d+, 0\) :: no column
off the sheet :: row . of NAME is not on the :: moved
[factor < array]
wrong ndim :: NAME must be an \(n, p\) array .*shape \(3,\) :: row 0
empty :: NAME needs .* 1 coordinate; got shape \(10, 0\) :: no column
[init < cloud - strings]
one point :: NAME needs at least 2 points :: first 1
wrong length :: NAME has 5 points and the plan 10 :: first 5
other columns :: NAME has 1 columns and n_components=2; make them equal :: one column less
[start_plan < array - strings]
negative :: NAME .*(non-)?negative :: entry -0.01
wrong length :: NAME must be .*\(10, .\).*got.*\(5, .\) :: first 5
wrong sum :: NAME must be a plan whose row sums :: 2 times
[membership]
no label :: NAME must be 10 whole labels from 0 :: entry -1 | first 5 | entry nan | []
strings :: TypeError: NAME cannot be read as an array of numbers :: letters
sparse
[y]
wrong length :: one label per row; got \(10, \d+\) and \(5,\) :: first 5
empty :: one label per row :: []
wrong ndim :: one label per row :: 1
[weights < array]
not finite :: NAME has a non-finite entry \(ENTRY\) at row 2; remove
negative :: NAME must not be negative; row 2 has -0.25 :: entry -0.25
wrong sum :: NAME must sum to 1; got 3. Divide by the sum :: 3 times
wrong length :: NAME must be one number per point .* \(2,\) :: first 2
wrong ndim :: NAME must be one number per point :: one of it
empty :: NAME must be one number per point .* \(0,\) :: first 0
[masses < array]
not finite :: NAME must be 10 positive numbers.*row 2
negative :: NAME must be 10 positive numbers.*row 2 :: entry -0.25
wrong length :: NAME must be 10 positive numbers :: first 2
[perplexities]
too small :: NAME=1 is out of reach: row 0 allows more than 1 only; raise the perplexity$ :: 1.0
too large :: NAME=10 is out of reach: row 0 has \d+ points .* less than \d+; lower :: 10.0
not positive :: NAME must be positive, and is (-3|0|NaN) at row 0$ :: -3.0 | 0.0 | nan
wrong length :: NAME must be one number or one per row \(10\) :: [3.0, 3.0] | []
strings :: TypeError: NAME cannot be read :: "30"
complex :: TypeError: NAME is complex :: 3j
sparse
[plain_perplexity < perplexities - wrong length]
strings :: TypeError: NAME must be one number; got (str|list) :: "30" | [3.0, 3.0] | []
complex :: TypeError: NAME must be one number; got complex :: 3j
sparse :: TypeError: NAME must be one number; got (csr|Tensor) :: csr
[average_perplexity]
out of reach :: average NAME .* strictly between 1 .* and 10 :: 1.0 | 10.0
not positive :: NAME must be positive and finite; got (-2|nan) :: -2.0 | nan
strings :: TypeError: NAME must be one number :: "30" | [3.0, 3.0]
[one_perplexity]
out of reach :: NAME must be positive and finite; got (-1|nan) :: -1.0 | nan
strings :: TypeError: NAME must be one number :: "30"
[count]
negative :: NAME.* must be (a whole number|at least \d+; got) :: -1 | 0
no whole number :: AnyError: NAME.* must be (a whole|an integer).*got True :: True
no whole number :: AnyError: NAME.* must be (a whole|an integer).*got :: 2.5 | "3" | nan
[block]
negative :: NAME \(rows per tile\) must be a whole number of at least 1; got :: 0 | -1
no whole number :: NAME \(rows per tile\) must be a whole number of at least 1; :: True | 2.5 | ones
unknown name :: NAME='nonsense' does not exist; choose from ' :: "nonsense"
[positive]
not positive :: NAME must be positive( and finite)? :: 0.0 | -1.0
NaN :: NAME must be positive :: nan
infinite :: NAME must be positive and finite; got inf :: inf
no number :: TypeError: NAME must be one number; got str :: "1"
no number :: TypeError: NAME must be one number :: ones
[pair]
not positive :: both a and b :: 1.0
[not_negative]
negative :: NAME must be .*(-0\.5|nan) :: -0.5 | nan
no number :: AnyError: NAME must be (one|a whole) number :: "1" | ones
[share]
no share :: NAME must .*(-0\.5|nan|1\.5) :: -0.5 | nan | 1.5
[name]
unknown name :: NAME='nonsense' does not exist; choose from ' :: "nonsense"
no name :: NAME=(array|tensor|{}).* does not exist; choose from ' :: ones | tensor | {}
[name_of_a_set]
unknown name :: NAME='iris' does not exist; choose from 'snare :: "iris"
no name :: NAME=(array|tensor|{}).* does not exist; choose from ' :: ones | tensor | {}
[sizes]
no size :: NAME must be a whole number of at least 1; got (0|True) :: last 0 | last True
empty :: NAME must list .*; got \(\) :: ()
[scales]
negative :: NAME must be positive and finite; got (-1|nan) :: (1.0, 1.0, -1.0)
empty :: NAME must list .*; got \(\) :: ()
[seed]
no seed :: AnyError: NAME must be (an integer seed|a whole number) :: -1 | 0.5 | True | "0"
[plain_seed]
no seed :: AnyError: (NAME|[Ss]eed) :: -1 | 0.5 | "0"
[dtype]
no float :: AnyError: float32'?(,| or) .*float64 :: float16 | np.int64 | "int64" | 3
unknown name :: AnyError: NAME :: "nonsense"
[device]
unknown name :: NAME='nonsense' cannot be used :: "nonsense"
no float64 :: NAME='mps' has no float64, .*; pass None for the CPU :: "mps"
[objective]
no loss :: TypeError: NAME is a (Tensor|ndarray|EntropicAffinity), and must be a loss :: affinity
[other]
[table]
not finite :: X has a .* entry .ENTRY. at row 2, column 1
one point :: Found array with 1 sample.* minimum of 2 :: first 1
empty :: 0 sample :: first 0
empty :: 0 feature :: no column
wrong ndim :: Expected 2D array, got 1D array instead :: column 0
wrong ndim :: dim 3, while dim <= 2 is required :: one of it
complex :: Complex data not supported :: as complex
strings :: could not convert string :: as words
objects :: inhomogeneous|sequence :: [[1.0, 2.0], [3.0]]
sparse :: TypeError: Sparse data was passed for X.*\.toarray\(\) :: csr
sparse :: TypeError: can't convert Sparse .* tensor.*\.to_dense\(\) :: coo
"""


def read_columns(text: str) -> dict[str, dict[str, list[Fault]]]:
    """The kinds of ``COLUMNS``: what a kind says of a column is said instead of the other's."""
    errors = {"": ValueError, "Type": TypeError, "Any": (TypeError, ValueError)}
    found: dict[str, dict[str, list[Fault]]] = {}
    for line in text.strip().splitlines():
        if head := re.fullmatch(r"\[(\w+)(?: < (\w+)(?: - (.+))?)?\]", line):
            name, other, less = head.groups()
            found[name] = {key: f for key, f in found.get(other, {}).items() if key != less}
            said = set()
            continue
        column, says, *ends = line.split(" :: ") if " :: " in line else (line, "")
        kind, _, says = says.rpartition("Error: ")
        if not says:
            found[name][column] = found["array"][column]
            continue
        if column == "not finite":
            for column, end, entry in (("NaN", "nan", "(?:nan|NaN)"), ("infinite", "inf", "inf")):
                fault = Fault(SPOILS[f"entry {end}"], says.replace("ENTRY", entry))
                found[name][column] = [fault]
            continue
        if column not in said:
            found[name][column] = []
        said.add(column)
        for word in ends[0].split(" | "):
            spoil = SPOILS[word] if word in SPOILS else ast.literal_eval(word)
            spoil = spoil if callable(spoil) else lambda _, spoil=spoil: spoil
            found[name][column].append(Fault(spoil, says, errors[kind]))
    return found


COLUMNS = read_columns(COLUMNS)

# Cells that a parameter of this kind has elsewhere but not here, and why.
NOT_HERE: dict[tuple[str, str, str], str] = {
    **{
        (name, "plan", "not symmetric"): "of these losses only the two directions together count"
        for name in ("drot.BernoulliLoss", "drot.largevis", "drot.umap")
    },
    ("drot.sqeuclidean", "X", "too small"): "the other cloud of the row has a usual size",
    ("drot.metrics.constraint_errors", "plan", "one point"): "one row is a plan",
    ("drot.semi_relaxed_gw", "cost_z", "one point"): "all points may share one place",
    **{
        (name, "graph", "one point"): "a graph may have one node"
        for name in ("drot.fuzzy_union", "drot.laplacian", "drot.connected_components")
    },
}

# Cells whose sentence is another one.
ALONE = r"plan must be a \(10, 1\) plan; got"
SAYS: dict[tuple[str, str, str], str] = {
    ("drot.gromov.gromov_monge", "cost_z", "one point"): "at most 7 points; got 5 and 1",
    ("drot.gromov_wasserstein", "cost_z", "one point"): r"one number per point \(1\)",
    ("drot.gw_objective", "cost_z", "one point"): ALONE,
    ("drot.gromov.gw_gradient", "cost_z", "one point"): ALONE,
    ("drot.graphs.mrf_log_density", "graph", "one point"): "X has 10 points and the graph 1 nodes",
    (
        "drot.graphs.graph_log_probability",
        "graph",
        "one point",
    ): "graph has 1 nodes and log_kernel 10",
    ("drot.graphs.graph_log_probability", "log_kernel", "empty"): "log_kernel must be a square",
    ("drot.kl_divergence", "plan", "empty"): "differ in shape|NAME .*empty",
    ("drot.kl_divergence", "reference", "empty"): "differ in shape|NAME .*empty",
}


def faults(name: str, parameter: str) -> Iterator[tuple[str, Fault]]:
    """The columns that apply to a parameter, each with its ways to be wrong."""
    columns = dict(COLUMNS[kind(name, parameter)])
    if kind(name, parameter) == "count" and parameter in ROWS[name].high:
        high = ROWS[name].high[parameter]
        says = rf"NAME.*(to {high}|the {high} )"
        columns["too large"] = [Fault(lambda _: high + 1, says)]
    if parameter == "init" and name in STARTS:
        columns["unknown name"] = COLUMNS["name"]["unknown name"]
    yield from ((column, fault) for column, given in columns.items() for fault in given)


TABLE = [
    (name, parameter, column, fault)
    for name in ROWS
    for parameter in parameters(name)
    for column, fault in faults(name, parameter)
    if (name, parameter, column) not in NOT_HERE
]
