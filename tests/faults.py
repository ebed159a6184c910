"""The table of bad input: rows of public functions, columns of faults, and what the cells say.

A row is a public function with arguments that work; a column is a fault. What a parameter is (a
cloud, a cost, a count, ...) decides which faults can befall it, so a cell is a parameter of the
row spoiled as the column says.
"""

import datetime
import functools
import importlib
import inspect
import re
import traceback
import types
import typing
from collections.abc import Callable, Iterator
from math import inf, nan  # noqa: F401  of the table
from pathlib import Path
from typing import Literal, NamedTuple

import drot
import networkx
import numpy as np
import pandas
import torch
from scipy.sparse import csr_matrix as csr  # noqa: F401  of the table

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
def plan(symmetric: bool) -> np.ndarray:
    """Rows of sum 1: symmetric, or without self-loops."""
    if symmetric:
        return drot.symmetric_entropic_affinity(squares(), perplexity=4.0).plan.numpy()
    return drot.entropic_affinity(squares(), perplexity=4.0, diagonal="drop").plan.numpy()


def soft() -> np.ndarray:
    T = np.random.default_rng(4).uniform(0.1, 1, size=(N, 3))
    return T / T.sum()


def even(*shape: int) -> np.ndarray:
    return np.full(shape, 1 / np.prod(shape))


def sheet(k: int = 6) -> np.ndarray:
    """Points of the hyperboloid."""
    return drot.hyperbolic.wrapped_normal(k, scale=0.5).numpy()


LABELS = [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
VALUES = {  # what a row calls by a name; it may call the functions above too
    "plane": lambda: points(N, 2, 1),
    "rows": lambda: plan(False).copy(),
    "graph": lambda: (plan(False) + plan(False).T) / 2,
    "doubly": lambda: plan(True).copy(),
    # a log kernel whose graphs have two components at least
    "blocks": lambda: np.where(np.kron(np.eye(2), np.ones((5, 5))) > 0, 0.0, -np.inf),
    "cycles": lambda: np.eye(N)[[1, 2, 3, 4, 0, 6, 7, 8, 9, 5]],
    "gaussian_log": lambda: -squares(),
    "hard": lambda: np.eye(3)[LABELS] / N,
    "loss": lambda: drot.SNELoss(VALUES["graph"]()),
    "cdist": lambda: torch.cdist,
}
SAMPLES = {  # what a parameter of a kind gets, if the row says nothing
    **dict.fromkeys(("cloud", "metric", "ranked", "factor"), points),
    **dict.fromkeys(("cost", "matrix", "distances", "symmetric", "similarity"), squares),
    **dict.fromkeys(("signed", "symmetric_plan"), VALUES["graph"]),
    **dict.fromkeys(("graph", "rows"), VALUES["rows"]),
    **dict.fromkeys(("coupling", "plan_of_prototypes"), soft),
    **dict.fromkeys(("membership", "y"), LABELS.copy),
    **dict.fromkeys(("perplexities", "average_perplexity", "one_perplexity"), lambda: 4.0),
    "kl": VALUES["doubly"],
    "log_kernel": VALUES["blocks"],
    "sheet": sheet,
    "init": VALUES["plane"],
    "start_plan": lambda: even(N, 3),
    "weights": lambda: even(N),
    "masses": lambda: np.ones(N),
}

QUICK = "max_iter=3 on_failure=ignore"
PLAIN, FEW = "perplexity:plain_perplexity", "n_starts=1 random_state=0"
DISTR = "init:start_plan=cluster_then_reduce clustering=kmeans"
START = f"init n_components=2<=8 {QUICK}"
REDUCE = "similarity n_prototypes=3 max_iter=200 clustering=kmeans on_failure=ignore"

# names :: parameter[:what it is][=its value][<=the largest count that is allowed]; what has neither
# a value nor a sample of its kind is not passed.
ARGUMENTS = f"""
sqeuclidean :: X:metric Y=points(6,3,1)
student_cost :: X Y=points(6,3,1)
pairwise :: function=cdist X Y=points(6,3,1)
nearest :: cost:matrix n_neighbors=3<=10
costs.Factored :: left:factor right:factor=points(10,3,1) points:other symmetric:other
factored_sqeuclidean gram :: X:metric
entropic_affinity :: cost perplexity n_neighbors=8<=10
gaussian_affinity :: cost perplexity:average_perplexity
self_tuning_affinity :: cost:distances n_neighbors=3<=9
doubly_stochastic_affinity :: cost:symmetric perplexity:average_perplexity
symmetric_entropic_affinity :: cost:symmetric perplexity
affinities.symmetric_dual_ascent :: cost:symmetric perplexity {QUICK}
umap_membership :: cost:distances n_neighbors=4<=10
umap_curve datasets.three_gaussians ::
row_entropy row_perplexity :: plan:rows
kl_divergence :: plan:rows reference:rows=doubly
symmetrize :: plan:signed=rows
fuzzy_union laplacian connected_components :: graph
graphs.mrf_log_density :: X graph
expected_graph graphs.graph_log_normalizer sample_graph :: log_kernel
graphs.graph_log_probability :: graph=cycles log_kernel
sample_graphs :: log_kernel n_samples=3
coupling_loss :: plan=rows log_kernel=gaussian_log prior=row
SNELoss BernoulliLoss :: plan:symmetric_plan
SNEkhornLoss :: plan:symmetric_plan=doubly
embeddings.attraction_repulsion :: objective=loss Z=plane
embed :: objective=loss {START}
sne tsne largevis :: plan:symmetric_plan {START}
snekhorn :: plan:symmetric_plan=doubly {START}
umap :: plan:symmetric_plan {START} a:pair b:pair
random_start :: n=4
pca_start spectral.pca spectral.precision_coupling_optimum :: X n_components<=3
spectral_start :: plan:signed n_components<=8
ccpca :: X log_kernel n_samples=5 n_components<=3
spectral.precision_coupling_loss :: X Z=plane
neighborhood_preservation :: X:ranked Z:ranked=plane n_neighbors=3<=8
metrics.neighborhood_curve :: X:ranked Z:ranked=plane
gw_objective gromov.gw_gradient :: cost_x cost_z=squares(3) plan:coupling
gromov.gromov_monge :: cost_x=squares(5) cost_z=squares(5)
semi_relaxed_gw :: cost_x cost_z=squares(3) weights_x init:start_plan {QUICK}
srgw_barycenter :: similarity:symmetric n_clusters=3 weights init:start_plan {QUICK}
kernel_kmeans :: similarity:symmetric n_clusters=3 weights init:start_plan=kmeans
gromov.coarsen :: similarity:symmetric membership weights
distributional_reduction :: {REDUCE} weights init:start_plan
cluster_then_reduce reduce_then_cluster :: {REDUCE}
coot_clustering :: X:metric n_prototypes=3 weights n_components<=3
metrics.prototype_homogeneity :: plan:plan_of_prototypes y
metrics.prototype_nmi :: Z=points(3,2) plan:plan_of_prototypes y n_clusters=2<=3
metrics.weighted_silhouette :: Z:metric=points(3,2) plan:plan_of_prototypes=hard y
metrics.spectral_clustering_ari :: plan:symmetric_plan=doubly y n_clusters=3
hyperbolic.distances hyperbolic.to_poincare :: Z:sheet
hyperbolic.wrapped_normal :: n=3
hyperbolic.distributional_reduction :: similarity n_prototypes=3 weights init:start_plan {QUICK}
spectral.classical_mds :: cost:symmetric n_components<=10
spectral.kernel_pca :: similarity:similarity weights:masses n_components<=10
spectral.laplacian_eigenmaps spectral.diffusion_map :: graph:symmetric_plan n_components<=9
datasets.available :: name:name_of_a_set=mnist
datasets.digits :: n_samples=20<=1797
datasets.heteroscedastic_multinomials :: n_per_batch:sizes=(4,2,2) dimension=50
datasets.circles :: radii=(1.0,2.0)
datasets.unbalanced_clusters datasets.stochastic_block_model :: sizes=(2,3)
SNE TSNE SNEkhorn TSNEkhorn LargeVis :: {PLAIN}=3.0 max_iter=200 tol=1.0 random_state=0
UMAP :: n_neighbors=4<=10 max_iter=200 tol=1.0 random_state=0
CCPCA :: {PLAIN}=1.5 n_samples=5 random_state=0 n_components<=3
SemiRelaxedGWClustering :: n_clusters=2 {PLAIN}=3.0 {FEW} init:start_plan=kmeans
DistR :: n_prototypes=3 {PLAIN}=3.0 n_neighbors=4<=10 max_iter=50 tol=1.0 {FEW} {DISTR}
"""

# Public names without a row, and why.
ELSEWHERE = {
    "drot.costs.Pairwise": "made by sqeuclidean, student_cost, pairwise and nearest, which check",
    "drot.costs.shard": "needs a group of processes: tests/properties/test_ranks.py",
    "drot.load": "takes a path: tests/contracts/test_results.py",
    "drot.datasets.load": "reads files: tests/contracts/test_fetch.py, test_datasets.py",
    "drot.plot.COLORS": "a constant",
    "drot.plot.style": "takes nothing",
    **dict.fromkeys(
        (f"drot.plot.{name}" for name in ("draw_graph", "panels", "scale_bar", "scatter")),
        "tests/contracts/test_inputs.py",
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
    "not_negative": "noise min_dist",
    "share": "p_within p_between alpha damping",
    "count": "n n_components n_clusters n_neighbors n_prototypes n_samples n_starts max_iter "
    "n_per_cluster n_per_circle n_trials n_high dimension",
    "positive": "tol bandwidth learning_rate gamma scale spread time repulsion a b separation",
    # a plain yes or no
    "other": "verbose",
    "function": "function",
    "callback": "callback centres",
    "flag": "refine normalized download keep_affinity",
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
}
NAMES_OF = {
    ("drot.LargeVis", "kernel"): ("student", "curve"),
    ("drot.DistR", "kernel"): ("student", "gaussian", "gram"),
    ("drot.DistR", "similarity"): ("gram", "symmetrized_entropic", "umap", "symmetric_entropic"),
    ("drot.SemiRelaxedGWClustering", "similarity"): ("sqeuclidean", "gram", "symmetric_entropic"),
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


def read(words: str) -> Row:
    """What ``ARGUMENTS`` says of a function."""
    roles, given, high = {}, {}, {"n_clusters": N, "n_prototypes": N}
    for word in words.split():
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
    return eval(word) if re.match(r"\w*\(|\d", word) else word


ROWS = {
    f"drot.{name}": read(words)
    for names, words in (line.split("::") for line in ARGUMENTS.strip().splitlines())
    for name in names.split()
}


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


def leaves(found, floats: bool = False) -> dict[str, torch.Tensor]:
    """The arrays of a result, by name and whole, the plan of an affinity too; and its floats."""
    if isinstance(found, torch.Tensor | np.ndarray | float):
        return {"": torch.as_tensor(found).to_dense()}
    if isinstance(found, drot.costs.Pairwise):
        return {"": found.dense()}
    if isinstance(found, tuple | list):
        parts = {str(k): part for k, part in enumerate(found)}
    else:
        wanted = (torch.Tensor, np.ndarray, list, *([float] if floats else []))
        parts = {k: x for k, x in getattr(found, "__dict__", {}).items() if isinstance(x, wanted)}
        parts |= {"plan": found.plan} if isinstance(found, drot.affinities.Affinity) else {}
    return {f"{k} {key}": x for k, one in parts.items() for key, x in leaves(one, floats).items()}


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
    if is_estimator(name) and parameter == "X":
        return "table"
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


def put(value, entry: float):
    """An entry at row 2, column 1; instead of a number."""
    if not np.ndim(value):
        return entry
    value = np.array(value, dtype=np.float64)
    value[(2, 1)[: value.ndim]] = entry
    return value


def lopsided(value):
    value = np.array(value)
    value[2, 1] += 0.25
    return value


def both(value):
    """A negative entry in a matrix that stays symmetric."""
    value = np.array(value, dtype=np.float64)
    value[1, 2] = value[2, 1] = -0.25
    return value


def frame(value, entry) -> pandas.DataFrame:
    return pandas.DataFrame({"a": value[:, 0], "b": entry})


def coo(value):
    return torch.as_tensor(np.asarray(value, dtype=np.float64)).to_sparse()


COST, ONES, DAY = drot.sqeuclidean(points()), np.ones(8), datetime.date(2026, 1, 1)
RING, DRAWN = networkx.cycle_graph(10), drot.sample_graph(-squares())
# [kind < kind whose columns it has - but for one]; column :: Error: sentence :: ways to be wrong,
# expressions of v, the value. A sentence is of a ValueError where it names no other; a column alone
# is that of an array.
COLUMNS = r"""
[array]
not finite :: ^NAME .*(nan|NaN|inf).* at row 2, column 1\b.*; remove or impute it$
half precision :: TypeError: NAME is torch.float16.*pass float32 or float64 :: np.float16(v)
complex :: TypeError: NAME is complex .*; pass real numbers :: v + 0j
strings :: TypeError: NAME cannot be read as an array of numbers :: np.array(v, str) | "data"
a data set :: TypeError: NAME is of type DataSet, no array; pass its X$ :: drot.datasets.circles(3)
objects :: TypeError: NAME cannot be read as an array of numbers: it holds objects :: [None] | {}
ragged :: TypeError: NAME cannot be read as .* numbers: its rows differ in length$ :: [[1], [2, 3]]
a graph :: TypeError: NAME is a NetworkX graph; pass networkx.to_numpy_array\(G\)$ :: RING
sparse :: TypeError: ^NAME is sparse \(.*(csr\).*\.toarray|coo\).*to_dense)\(\)$ :: csr(v) | coo(v)
[cloud < array]
few points :: NAME needs at least 2 points .*shape \([01], \d\) :: v[:1] | v[:0]
empty :: NAME needs .*1 coordinate; got shape \(\d+, 0\) :: v[:, :0]
wrong ndim :: NAME must be an \(n, p\) array .* \((\d+,|1, \d+, \d|)\) :: v[:, 0] | v[None] | 3.0
drot graph :: TypeError: NAME is of type Graph, no array; pass its dense\(\)$ :: DRAWN
AnnData :: TypeError: NAME is an AnnData; pass .*X_pca :: types.SimpleNamespace(obsm={})
[metric < cloud]
too large :: ^squared distances overflow torch.float64; give NAME in larger units :: 1e200 * v
too small :: ^squared distances underflow torch.float64; give NAME in smaller units :: 1e-200 * v
[ranked < cloud]
[matrix < array]
one point :: NAME (needs|.*of|must be).*(2 points|\(1, 1\)) :: v[:1, :1]
empty :: NAME (needs|must be).*\(0, 0\) :: v[:0, :0]
wrong ndim :: NAME must be .*got.* \((\d+,|1, \d+, \d+)\) :: v[0] | v[None]
[cost < matrix]
not square :: NAME must be .*(square|\(n, n\)).*\(\d+, \d\) :: v[:, :-1]
[signed < cost]
[symmetric < cost]
drot graph :: TypeError: NAME is of type Graph, no array; pass its dense\(\)$ :: DRAWN
not symmetric :: must be symmetric;.*entries \(\d, \d\) and \(\d, \d\) :: lopsided(v)
[distances < cost]
drot graph :: TypeError: NAME is of type Graph, no array; pass its dense\(\)$ :: DRAWN
negative :: NAME.*negative :: put(v, -0.25)
[graph < cost]
a cost :: NAME holds distances, small where .*; pass an affinity of it$ :: COST
negative :: (NAME.* negative.*-0\.25.*|it has -0.25 at )(row 2, column 1|\(2, 1\)) :: put(v, -0.25)
[symmetric_plan < cost]
a cost :: AnyError: NAME (holds|is of type).*; pass an affinity of it\b :: COST
not symmetric :: must be symmetric :: lopsided(v)
negative :: (NAME|weights).*negative :: both(v)
[kl < symmetric]
negative :: needs a NAME without negative .*; entry \(1, 2\) is -0\.25 :: both(v)
[similarity < symmetric - drot graph]
a cost :: ^NAME holds distances, small where .*; pass an affinity of it, or drot.gram :: COST
[log_kernel < cost - one point]
a cost :: TypeError: NAME is of type Pairwise, .*; pass an affinity of it$ :: COST
not finite :: NAME is (nan|NaN|inf) at row 2, column 1; .* or -inf
[rows < array]
not finite :: NAME .*(non-negative|finite).*(nan|NaN|inf) at row 2, column 1
negative :: NAME .*non-negative.*-0\.25 at row 2, column 1 :: put(v, -0.25)
empty :: NAME .*empty :: v[:0, :0]
wrong ndim :: NAME must be a vector or matrix :: 3.0
[coupling < array]
negative :: NAME has negative entries :: put(v, -0.01)
wrong shape :: NAME must be a \(10, 3\) plan.*got shape \((3,|10, 2)\) :: v[0] | v[:, :2]
wrong sum :: NAME must have total mass 1; got 2.* Divide :: 2 * v
[plan_of_prototypes < array]
not finite :: NAME .*finite.*row 2
negative :: NAME .*negative.*row 2 :: put(v, -0.01)
wrong shape :: NAME must be \(n, k\) (.*got \(3,\)|with one label per row) :: v[0] | v[:4]
wrong sum :: NAME .*some mass :: 0 * v
[sheet < cloud - few points]
no point :: NAME needs at least 1 point and .*shape \(0, \d\) :: v[:0]
off the sheet :: row . of NAME is not on the :: v + 0.3
[factor < array]
wrong ndim :: NAME must be an \(n, p\) array .*shape \(3,\) :: v[0]
empty :: NAME needs .* 1 coordinate; got shape \(10, 0\) :: v[:, :0]
[init < cloud - strings]
wrong length :: NAME has 5 points, and 10 are to be placed$ :: v[:5]
other columns :: NAME has 1 columns and n_components=2; make them equal :: v[:, :-1]
[start_plan < array - strings]
negative :: NAME .*(non-)?negative :: put(v, -0.01)
wrong length :: NAME must be .*\(10, .\).*got.*\(5, .\) :: v[:5]
labels :: NAME must be a .* plan; .*; of labels numpy.eye\(.\)\[labels\] / 10 is one$ :: LABELS
wrong sum :: NAME must be a plan whose row sums :: 2 * v
[membership]
no label :: NAME must be 10 whole labels from 0 :: put(v, -1) | v[:5] | put(v, nan) | []
infinite :: NAME must be 10 whole labels from 0 :: put(v, inf)
strings :: TypeError: NAME cannot be read as an array of numbers :: list("aaaabbbccc")
sparse
[y]
wrong length :: one label per row; got \(10, \d+\) and \((5,|0,|)\) :: v[:5] | [] | 1
[weights < array]
not finite :: NAME has a non-finite entry \((nan|NaN|inf)\) at row 2; remove
negative :: NAME must not be negative; row 2 has -0.25 :: put(v, -0.25)
wrong sum :: NAME must sum to 1; got 3. Divide by the sum :: 3 * v
wrong shape :: NAME must be one number per point .* \([02],\) :: v[:2] | v[:0]
wrong ndim :: NAME must be one number per point :: v[None]
[masses < array]
not finite :: NAME must be 10 positive numbers.*row 2
negative :: NAME must be 10 positive numbers.*row 2 :: put(v, -0.25)
wrong length :: NAME must be 10 positive numbers :: v[:2]
[perplexities]
too small :: NAME=1 is out of reach: row 0 needs more than 1; raise the perplexity$ :: 1.0
too large :: NAME=10 is out of reach: row 0 has \d+ points .* less than \d+; lower :: 10.0
not positive :: NAME must be positive, and is (-3|0|NaN) at row 0$ :: -3.0 | 0.0 | nan
wrong length :: NAME must be one number or one per row \(10\) :: [3.0, 3.0] | []
no number :: TypeError: NAME (cannot be read|is complex|is sparse) :: "30" | 3j | csr(v) | coo(v)
[plain_perplexity < perplexities - wrong length]
no number :: TypeError: NAME must be one number; got \w :: True | "30" | [3.0, 3.0] | [] | 3j
[average_perplexity]
out of reach :: average NAME .* strictly between 1 .* and 10 :: 1.0 | 10.0
not positive :: NAME must be positive and finite; got (-2|nan) :: -2.0 | nan
strings :: TypeError: NAME must be one number :: "30" | [3.0, 3.0]
[one_perplexity]
out of reach :: NAME must be positive and finite; got (-1|nan) :: -1.0 | nan
strings :: TypeError: NAME must be one number :: "30"
[count]
negative :: NAME.* must be (a whole number|at least \d+; got) :: -1 | 0
no whole number :: TypeError: NAME.* must be (a whole|an integer).*got :: True | 2.5 | "3" | nan
[rank < count - negative]
negative :: NAME must be a whole number of at least 0; got -1 :: -1
[block]
no count :: NAME \(rows per tile\) must be a whole.* at least 1; got :: 0 | -1
no number :: TypeError: NAME \(rows per tile\) must be a whole.*1; got :: True | 2.5 | ONES
unknown name :: NAME='nonsense' does not exist; choose from ' :: "nonsense"
[positive]
not positive :: NAME must be positive :: 0.0 | -1.0 | nan
infinite :: NAME must be positive and finite; got inf :: inf
no number :: TypeError: NAME must be one number :: True | "1" | ONES | np.True_ | np.complex128(1j)
[pair]
not positive :: both a and b :: 1.0
[not_negative]
negative :: NAME must be .*(-0\.5|nan) :: -0.5 | nan
no number :: TypeError: NAME must be one number :: "1" | ONES
[share]
no share :: NAME must .*(-0\.5|nan|1\.5) :: -0.5 | nan | 1.5
no number :: AnyError: NAME must be one number; got (str|bool) :: "a" | True
[name]
unknown name :: NAME='nonsense' does not exist; choose from ' :: "nonsense"
no name :: NAME=(array|tensor|{}).* does not exist; choose from ' :: ONES | torch.ones(3) | {}
[name_of_a_set < name]
unknown name :: NAME='iris' does not exist; choose from 'snare :: "iris"
[sizes]
no size :: NAME must be a whole number of at least 1; got 0 :: (*v[:-1], 0)
no number :: TypeError: NAME must be a whole number of at least 1; got True :: (*v[:-1], True)
empty :: NAME must list .*; got \(\) :: ()
[scales]
negative :: NAME must be positive and finite; got (-1|nan) :: (1.0, 1.0, -1.0)
empty :: NAME must list .*; got \(\) :: ()
[seed]
no seed :: AnyError: NAME must be (an integer seed|a whole number) :: -1 | 0.5 | True | "0"
[dtype]
no float :: AnyError: float32'?(,| or) .*float64 :: torch.float16 | np.int64 | "int64" | 3
unknown name :: AnyError: NAME :: "nonsense"
[device]
unknown name :: NAME='nonsense' cannot be used :: "nonsense"
no float64 :: NAME='mps' has no float64, .*; pass None for the CPU :: "mps"
[objective]
no loss :: TypeError: NAME is of type \w+Affinity, and :: drot.gaussian_affinity(COST, bandwidth=1)
[function]
no function :: TypeError: NAME must be a function of two .*; got (3|None) :: 3 | None
[callback]
no function :: TypeError: NAME must be a function, or None; got (3|'print') :: 3 | "print"
[flag]
no flag :: TypeError: NAME must be True or False; got ('no'|1|None) :: "no" | 1 | None
[other]
[table]
not finite :: X has a .* entry .(nan|NaN|inf). at row 2, column 1
one point :: Found array with 1 sample.* minimum of 2 :: v[:1]
empty :: 0 (sample|feature) :: v[:0] | v[:, :0]
wrong ndim :: Expected 2D array, got 1D :: v[:, 0]
images :: X must be an .* \(\d+, 1, \d\); pass X.reshape\(len\(X\), -1\)$ :: v[:, None]
text :: ^column 'b' of X .* \(could not .*'x'\); encode it, or leave it out$ :: frame(v, "x")
dates :: TypeError: ^column 'b' of X is not all numbers .*'datetime.date' :: frame(v, DAY)
complex :: Complex data not supported :: v + 0j
strings :: could not convert string :: v.astype(str).astype(object) + "a"
ragged :: TypeError: X cannot be read as .* numbers: its rows differ in length$ :: [[1], [2, 3]]
a graph :: TypeError: X is a NetworkX graph; pass networkx.to_numpy_array\(G\)$ :: RING
drot graph :: TypeError: X is of type Graph, no array; pass its dense\(\)$ :: DRAWN
AnnData :: TypeError: X is an AnnData; pass .*X_pca :: types.SimpleNamespace(obsm={})
sparse :: TypeError: X is sparse \(.*(csr\).*\.toarray|coo\).*to_dense)\(\)$ :: csr(v) | coo(v)
genes :: TypeError: X is sparse \(csr\); pass sklearn.*PCA\(30\).*, or X.toar.*$ :: csr((40, 99))
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
        ends = ["put(v, nan) | put(v, inf)"] if column == "not finite" else ends
        if column not in said:
            found[name][column] = []
        said.add(column)
        for word in ends[0].split(" | "):
            found[name][column].append(Fault(eval(f"lambda v: {word}"), says, errors[kind]))
    return found


COLUMNS = read_columns(COLUMNS)

# Cells that a parameter of this kind has elsewhere but not here, and why.
NOT_HERE: dict[tuple[str, str, str], str] = {
    **{
        (name, "plan", "not symmetric"): "of these losses only the two directions together count"
        for name in ("drot.BernoulliLoss", "drot.largevis", "drot.umap")
    },
    ("drot.sqeuclidean", "X", "too small"): "the other cloud of the row has a usual size",
    ("drot.semi_relaxed_gw", "cost_z", "one point"): "all points may share one place",
    **{
        (name, "graph", "one point"): "a graph may have one node"
        for name in ("drot.fuzzy_union", "drot.laplacian", "drot.connected_components")
    },
}

# Cells whose sentence is another one.
SAYS = r"""
drot.gromov.gromov_monge cost_z one point :: at most 7 points; got 5 and 1
drot.gw_objective cost_z one point :: plan must be a \(10, 1\) plan; got
drot.gromov.gw_gradient cost_z one point :: plan must be a \(10, 1\) plan; got
drot.graphs.mrf_log_density graph one point :: X has 10 points and the graph 1 nodes
drot.graphs.graph_log_probability graph one point :: graph has 1 nodes and log_kernel 10
drot.graphs.graph_log_probability log_kernel empty :: log_kernel must be a square
drot.kl_divergence plan empty :: differ in shape|NAME .*empty
drot.kl_divergence reference empty :: differ in shape|NAME .*empty
"""
SAYS = dict(line.split(" :: ") for line in SAYS.strip().splitlines())


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
