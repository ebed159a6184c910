"""What a call leaves behind: its inputs, the seeds of others, and a result that can be kept."""

import dataclasses
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import drot
import numpy as np
import pytest
import torch
from drot._core.saving import Saved
from memory import needs_linux, numbers


def points(n: int = 12, p: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, p, generator=generator, dtype=torch.float64)


# Every kind of result, for every kind of cost that can be stored.
RESULTS = {
    "entropic": lambda c: drot.entropic_affinity(c, perplexity=4.0),
    "entropic-nearest-drop": lambda c: drot.entropic_affinity(
        c, perplexity=3.0, n_neighbors=6, diagonal="drop"
    ),
    "gaussian-perplexity-drop": lambda c: drot.gaussian_affinity(
        c, perplexity=4.0, diagonal="drop"
    ),
    "self-tuning-drop": lambda c: drot.self_tuning_affinity(c, n_neighbors=3, diagonal="drop"),
    "sinkhorn-perplexity": lambda c: drot.doubly_stochastic_affinity(c, perplexity=4.0),
    "symmetric-slack": lambda c: drot.symmetric_entropic_affinity(c, perplexity=1.2),
    "unfinished": lambda c: drot.symmetric_entropic_affinity(
        c, perplexity=4.0, max_iter=2, tol=1e-12, on_failure="ignore"
    ),
}
COSTS = {
    "matrix": lambda X: drot.sqeuclidean(X).dense(),
    "cloud": drot.sqeuclidean,
    "tiles": lambda X: drot.sqeuclidean(X, block=5),
    "float32": lambda X: drot.sqeuclidean(X.float(), block=3),
}


def split() -> torch.Tensor:
    """Half of the points so near each other that rounding decides on their distances."""
    X = points().clone()
    X[:6] *= 1e-7
    return X


FACTORED = {
    "distances": lambda: drot.factored_sqeuclidean(split() + 100, block=5),
    "products": lambda: drot.gram(split()),
    "factors": lambda: drot.costs.Factored(
        split(), 2 * split(), points=split()[:, :1], symmetric=True
    ),
}
MAPS = {  # of points, a similarity
    "embedding": lambda S: drot.tsne(S, diagonal="keep", max_iter=5, on_failure="ignore"),
    "snekhorn": lambda S: drot.snekhorn(S, max_iter=5, on_failure="ignore"),
    "ccpca": lambda S: drot.ccpca(points(), S, n_samples=10),
    "srgw": lambda S: drot.semi_relaxed_gw(S, S[:4, :4]),
    "barycenter": lambda S: drot.srgw_barycenter(S, 4),
    "reduction": lambda S: drot.distributional_reduction(S, 4, kernel="gram"),
}


def similarity() -> torch.Tensor:
    return drot.symmetric_entropic_affinity(drot.sqeuclidean(points()), perplexity=4).plan


FOUND = {
    **{
        f"{name}-{kind}": lambda solve=solve, cost=cost: solve(cost(points()))
        for name, solve in RESULTS.items()
        for kind, cost in COSTS.items()
    },
    **{
        f"factored {name}": lambda cost=cost: drot.entropic_affinity(cost(), perplexity=4.0)
        for name, cost in FACTORED.items()
    },
    **{name: lambda solve=solve: solve(similarity()) for name, solve in MAPS.items()},
}


def same(left, right) -> None:
    """Equal to the bit, field by field; factors are no points: these would be rounded otherwise."""
    assert type(left) is type(right)
    if isinstance(left, drot.costs.Pairwise):
        assert (left.shape, left.dtype, left.block) == (right.shape, right.dtype, right.block)
        assert left.symmetric == right.symmetric and torch.equal(left.dense(), right.dense())
        names = ("left", "right", "points") if isinstance(left, drot.costs.Factored) else ()
    else:
        names = [field.name for field in dataclasses.fields(left)]
        names += ["plan", "log_plan"] if isinstance(left, drot.affinities.Affinity) else []
    for name in names:
        a, b = getattr(left, name), getattr(right, name)
        if isinstance(a, torch.Tensor):
            assert torch.equal(a, b) and a.dtype == b.dtype
        elif isinstance(a, drot.costs.Pairwise):
            same(a, b)
        else:
            assert a == b and type(a) is type(b)


# ------------------------------------------------------------------------------- no effects
@pytest.mark.parametrize("solve", RESULTS.values(), ids=RESULTS)
def test_global_seeds_are_left_alone(solve):
    """A result and its readings draw from no global seed, and change nothing of a tensor."""
    state, legacy = torch.random.get_rng_state(), np.random.get_state()  # noqa: NPY002
    C = drot.sqeuclidean(points()).dense()
    before, affinity = C.clone(), solve(C)
    _ = affinity.plan, affinity.log_plan, affinity.perplexity, list(affinity.tiles())
    drot.metrics.spectral_clustering_ari(drot.symmetrize(affinity), [0, 1] * 6)
    assert torch.equal(C, before) and torch.equal(torch.random.get_rng_state(), state)
    after = np.random.get_state()  # noqa: NPY002
    assert (after[1] == legacy[1]).all() and after[2:] == legacy[2:]


def test_a_cost_does_not_follow_its_cloud():
    """Changing X after the call changes neither the cost nor a result built on it."""
    for block in (None, 4):
        X = points().numpy()
        cost = drot.sqeuclidean(X, block=block)
        affinity = drot.entropic_affinity(cost, perplexity=4.0)
        plan, C = affinity.plan, drot.sqeuclidean(points()).dense()
        X[:] = 0.0
        torch.testing.assert_close(cost.dense(), C)
        assert torch.equal(affinity.plan, plan)


# ---------------------------------------------------------------------------------- results
@pytest.mark.parametrize("solve", FOUND.values(), ids=FOUND)
def test_results_are_frozen_and_saved(solve, tmp_path):
    """No field can be set; what was saved and loaded is the same to the bit, the cost lazy."""
    found = solve()
    for field in dataclasses.fields(found):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(found, field.name, None)
    types = {"converged": bool, "n_iter": int, "trace": tuple, "residual": float, "passes": float}
    if isinstance(found, drot.affinities.Affinity):
        assert all(type(getattr(found, name)) is kind for name, kind in types.items())
    assert repr(found).startswith(f"{type(found).__name__}(12 ") and len(repr(found)) < 200
    found.save(tmp_path / "result.npz")
    same(drot.load(tmp_path / "result.npz"), found)
    assert [path.name for path in tmp_path.iterdir()] == ["result.npz"]
    # what is stored is numbers
    with np.load(tmp_path / "result.npz", allow_pickle=False) as file:
        assert all(array.dtype != object for array in file.values())


def test_a_plan_is_the_readers_own():
    """Changing what `.plan` or `.tiles` gave does not change the result."""
    affinity = drot.entropic_affinity(drot.sqeuclidean(points()).dense(), perplexity=4.0)
    plan = affinity.plan.clone()
    for _, tile in [(0, affinity.plan), *affinity.tiles(), *affinity.log_tiles()]:
        tile.zero_()
    assert torch.equal(affinity.plan, plan)


# ------------------------------------------------------------------------------ save and load
def test_results_are_compared_as_objects():
    """Field by field would ask a tensor whether it is true."""
    for kind in (*Saved.kinds.values(), drot.spectral.SpectralEmbedding):
        assert kind.__eq__ is object.__eq__


def test_load_says_that_memory_is_short(tmp_path, monkeypatch):
    """A file that does not fit is a result all the same."""

    def full(*_, **more):
        raise MemoryError("Unable to allocate 9 EiB")

    monkeypatch.setattr(np, "load", full)
    with pytest.raises(MemoryError, match="9 EiB"):
        drot.load(tmp_path / "result.npz")


def test_save_refuses_callables(tmp_path):
    """A cost made by a callable holds code, which is not stored; the sentence says what to do."""
    affinity = drot.entropic_affinity(drot.pairwise(torch.cdist, points()), perplexity=4.0)
    with pytest.raises(ValueError, match=r"callable cannot be saved; solve with cost.dense\(\)"):
        affinity.save(tmp_path / "result.npz")
    assert not list(tmp_path.iterdir())


def stored(path: Path) -> dict[str, np.ndarray]:
    """What a saved affinity is made of."""
    drot.entropic_affinity(drot.sqeuclidean(points()), perplexity=4.0).save(path)
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("where", ["kind", "eps", "cost.sqeuclidean", "extra"])
def test_load_never_unpickles(where, tmp_path):
    """A file with a pickled object is refused, wherever it hides."""
    path = tmp_path / "hostile.npz"
    np.savez(path, **stored(path) | {where: np.array([Path()], dtype=object)})
    with pytest.raises(ValueError, match=r"allow_pickle|does not hold a result"):
        drot.load(path)


def but(change: Callable[[dict], dict]) -> Callable[[Path], None]:
    """An affinity with other arrays."""
    return lambda path: np.savez(path, **change(stored(path)))


def cut_short(path: Path) -> None:
    stored(path)
    path.write_bytes(path.read_bytes()[:-200])


NO_RESULT = {
    "text": lambda path: path.write_text("not an archive"),
    "empty": lambda path: path.write_bytes(b""),
    "another archive": lambda path: np.savez(path, X=np.zeros((3, 2))),
    "unknown kind": but(lambda a: a | {"kind": np.array("Pairwise")}),
    "unknown cost": but(lambda a: {"cost.cosine": a.pop("cost.sqeuclidean"), **a}),
    "a part lacks": but(lambda a: {key: a[key] for key in a if key != "eps"}),
    "cut short": cut_short,
}


@pytest.mark.parametrize("write", NO_RESULT.values(), ids=NO_RESULT)
def test_load_says_what_is_no_result(write, tmp_path):
    """A file of another kind, or cut short: one clear ValueError."""
    write(tmp_path / "file.npz")
    with pytest.raises(ValueError, match=r"file.npz does not hold a result saved by drot"):
        drot.load(tmp_path / "file.npz")
    with pytest.raises(FileNotFoundError):
        drot.load(tmp_path / "absent.npz")


# ------------------------------------------------------------------------------- signatures
PUBLIC = {  # functions and classes
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (drot, drot.metrics, drot.datasets)
    for name in module.__all__
    if inspect.isfunction(getattr(module, name, None))
    or (
        inspect.isclass(getattr(module, name, None))
        and not issubclass(getattr(module, name), BaseException | tuple)
    )
}
FUNCTIONS = {name: thing for name, thing in PUBLIC.items() if inspect.isfunction(thing)}


@pytest.mark.parametrize("name", PUBLIC)
def test_no_variable_keywords(name):
    """A misspelt option is an error: no public callable takes **kwargs or *args."""
    methods = (f for _, f in inspect.getmembers(PUBLIC[name], inspect.isfunction))
    ours = [f for f in methods if f.__module__.startswith("drot")]  # not scikit-learn's
    for member in (PUBLIC[name], *ours):
        for parameter in inspect.signature(member).parameters.values():
            assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)


# Data first. The perplexity is a datum of the entropic affinity, k of the k nearest, n of a random
# start, and a start of a descent.
DATA = {
    "X", "Y", "Z", "cost", "plan", "reference", "function", "labels", "path", "perplexity", "k",
    "n", "objective", "init", "graph", "log_kernel", "n_samples", "K", "n_components",
    "n_neighbors", "min_dist", "spread", "cost_x", "cost_z", "gram", "n_clusters", "membership",
    "similarity", "n_prototypes", "y",
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_options_are_keyword_only(name):
    """Data first, everything else by name only; a data set may take its one size or name first."""
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters.values())
    for parameter in parameters[name.startswith("drot.datasets.") :]:
        if parameter.kind is parameter.KEYWORD_ONLY:
            assert parameter.annotation is not parameter.empty
        else:
            assert parameter.name in DATA, f"{parameter.name} should be keyword-only"


def sections(doc: str) -> dict[str, str]:
    """The sections of a NumPy docstring."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", doc, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings(name):
    """Plain words, a source, parameters, what is returned, an example, in this order.

    Every parameter is described, as in the signature, with its default; no other.
    """
    found = sections(inspect.getdoc(FUNCTIONS[name]))
    first = found[""].split("\n\n")[0]
    assert first.endswith(".") and len(first) < 200
    assert re.search(r"^Source: ", found[""], re.MULTILINE)
    signature, listed = inspect.signature(FUNCTIONS[name]), []
    needed = {"Examples"} | ({"Parameters"} if signature.parameters else set())
    assert found.keys() >= needed | (
        set() if signature.return_annotation == "None" else {"Returns"}
    )
    order = ["", "Parameters", "Returns", "Raises", "Notes", "Examples"]
    assert [title for title in order if title in found] == list(found)
    assert ">>> " in found["Examples"]
    signature = signature.parameters
    for entry in re.split(r"\n(?=\S)", found.get("Parameters", "").strip()) if signature else ():
        head = entry.splitlines()[0]
        options = re.search(r"\{(\"[^}]*)\}", head)
        for parameter in (part.strip() for part in head.split(" : ")[0].split(",")):
            listed.append(parameter)
            default = signature[parameter].default
            assert "optional" not in head or default is not inspect.Parameter.empty
            for literal in re.findall(r"[Dd]efault(?:s to|:)? `*([\w.'\"-]+)", entry):
                assert default is None or repr(default).strip("'") == literal.strip("'\"`.")
            if options and default not in (inspect.Parameter.empty, None):
                assert f'"{default}"' in options.group(1)
    assert listed == list(signature)


def test_default_tolerance_is_the_documented_one():
    """1e-9 in float64 and 1e-4 in float32, as the docstrings say."""
    for dtype, tol in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
        cost = drot.sqeuclidean(points().to(dtype))
        for solve in (
            drot.entropic_affinity,
            drot.gaussian_affinity,
            drot.doubly_stochastic_affinity,
            drot.symmetric_entropic_affinity,
        ):
            with pytest.raises(drot.NotConverged, match=re.escape(f"above tol={tol:.0e}")):
                solve(cost, perplexity=4.0, max_iter=1)
            assert solve(cost, perplexity=4.0).residual <= tol
            assert "1e-9" in solve.__doc__ and "1e-4" in solve.__doc__


# ----------------------------------------------------------------------------------- memory
PEAK = """
from memory import forget_peak, peak
import torch
torch.set_num_threads(1)
import drot

X = torch.randn({n}, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
X[1] = X[0]  # copies are compared in tiles too
cost = drot.sqeuclidean(X, block=256)
drot.entropic_affinity(drot.sqeuclidean(X[:500], block=100), perplexity=30.0)  # loads it all
before = forget_peak()
{calls}
print(peak() - before)
"""
CALLS = """
drot.entropic_affinity(cost, perplexity=30.0)
drot.entropic_affinity(cost, perplexity=10.0, n_neighbors=30, diagonal="drop")
drot.self_tuning_affinity(cost)
drot.gaussian_affinity(cost, perplexity=30.0)
drot.doubly_stochastic_affinity(cost, bandwidth=9.0, max_iter=4, on_failure="ignore")
found = drot.symmetric_entropic_affinity(cost, perplexity=30.0, max_iter=2, on_failure="ignore")
for _, tile in found.tiles():
    del tile
"""


@pytest.mark.slow
@needs_linux
def test_tiles_bound_memory():
    """Duals in row tiles take a few tiles: under a quarter of the n x n array they never form."""
    n = 4000
    (taken,) = numbers(PEAK.format(n=n, calls=CALLS))
    assert taken < n * n * 8 / 4
