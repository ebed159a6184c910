"""What a call leaves behind: its inputs, the seeds of others, and a result that can be kept."""

import dataclasses
import inspect
import re
from unittest.mock import Mock

import drot
import numpy as np
import pytest
import torch
from drot._core.saving import Saved
from faults import ROWS, call, hints, is_estimator, parameters, points, public, thing
from memory import needs_linux, numbers

# Every function whose result is saved, and every kind of cost that can be stored.
SAVED = [
    name
    for name in ROWS
    if not is_estimator(name)
    and inspect.isclass(hints(name).get("return"))
    and issubclass(hints(name)["return"], Saved)
]
X = points()
NEAR = np.r_[1e-7 * X[:6], X[6:]]  # so near each other that rounding decides on their distances
COSTS = {
    "cloud": drot.sqeuclidean(X),
    "tiles": drot.sqeuclidean(X, block=4),
    "float32": drot.sqeuclidean(X.astype(np.float32), block=3),
}
FACTORED = {
    "distances": drot.factored_sqeuclidean(NEAR + 100, block=4),
    "products": drot.gram(NEAR),
    "factors": drot.costs.Factored(NEAR, 2 * NEAR, points=NEAR[:, :1], symmetric=True),
}
FOUND = {
    **{name: (name, {}) for name in SAVED},
    **{
        f"{name}, {kind}": (name, {"cost": cost})
        for name in SAVED
        for kind, cost in COSTS.items()
        if "cost" in parameters(name)
    },
    **{f"of {kind}": ("drot.gaussian_affinity", {"cost": cost}) for kind, cost in FACTORED.items()},
    **{
        f"{name}, drop": (f"drot.{name}_affinity", {"diagonal": "drop"})
        for name in ("entropic", "gaussian", "self_tuning")
    },
    "slack": ("drot.symmetric_entropic_affinity", {"perplexity": 1.2}),
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


@pytest.mark.parametrize("block", [None, 4])
def test_nothing_follows_what_a_reader_holds(block):
    """Changing X, or what `.plan` and `.tiles` gave, changes neither a cost nor its result."""
    X = points()
    cost = drot.sqeuclidean(X, block=block)
    found = [drot.entropic_affinity(given, perplexity=4.0) for given in (cost, cost.dense())]
    plans = [affinity.plan.clone() for affinity in found]
    X[:] = 0.0
    for affinity, plan in zip(found, plans, strict=True):
        for _, tile in [(0, affinity.plan), *affinity.tiles(), *affinity.logs.tiles()]:
            tile.zero_()
        assert torch.equal(affinity.plan, plan)
    torch.testing.assert_close(cost.dense(), drot.sqeuclidean(points()).dense())


@pytest.mark.parametrize(("name", "more"), FOUND.values(), ids=FOUND)
def test_results_are_frozen_and_saved(name, more, tmp_path):
    """No field can be set; what was saved and loaded is the same to the bit, the cost lazy."""
    found = call(name, ROWS[name].good() | more)
    for field in dataclasses.fields(found):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(found, field.name, None)
    types = {"converged": bool, "n_iter": int, "trace": tuple, "residual": float, "passes": float}
    if isinstance(found, drot.affinities.Affinity):
        assert all(type(getattr(found, name)) is kind for name, kind in types.items())
    assert repr(found).startswith(f"{type(found).__name__}(10 ") and len(repr(found)) < 200
    found.save(tmp_path / "result.npz")
    same(drot.load(tmp_path / "result.npz"), found)
    assert [path.name for path in tmp_path.iterdir()] == ["result.npz"]


def test_results_and_estimators_are_compared_as_objects():
    """Field by field would ask a tensor whether it is true; and what has no hash is no key."""
    estimators = map(thing, filter(is_estimator, ROWS))
    ours = [kind for kind in Saved.kinds.values() if kind.__module__.startswith("drot.")]
    for kind in (*ours, drot.spectral.SpectralEmbedding, *estimators):
        assert kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__


def test_save_refuses_callables(tmp_path):
    """A cost made by a callable holds code, which is not stored; the sentence says what to do."""
    affinity = drot.entropic_affinity(drot.pairwise(torch.cdist, points()), perplexity=4.0)
    with pytest.raises(ValueError, match=r"callable cannot be saved; solve with cost.dense\(\)"):
        affinity.save(tmp_path / "result.npz")
    assert not list(tmp_path.iterdir())


class Trap:
    """Notices that it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def test_load_says_what_is_no_result(tmp_path, monkeypatch):
    """A file of another kind, cut short, or with a pickled object: one clear ValueError."""
    path = tmp_path / "file.npz"
    with pytest.raises(FileNotFoundError):
        drot.load(path)
    drot.entropic_affinity(drot.sqeuclidean(points()), perplexity=4.0).save(path)
    whole, arrays = path.read_bytes(), dict(np.load(path))
    pickled = np.array([Trap()], dtype=object)
    for content in (
        b"not an archive",
        b"",
        whole[:-200],
        {"X": np.zeros((3, 2))},
        arrays | {"kind": np.array("Pairwise")},
        {key.replace("sqeuclidean", "cosine"): value for key, value in arrays.items()},
        {key: value for key, value in arrays.items() if key != "eps"},
        *(arrays | {where: pickled} for where in ("kind", "eps", "cost.sqeuclidean", "extra")),
    ):
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            np.savez(path, **content)
        with pytest.raises(ValueError, match=r"file.npz does not hold a result saved by drot"):
            drot.load(path)
    monkeypatch.setattr(np, "load", Mock(side_effect=MemoryError("Unable to allocate 9 EiB")))
    with pytest.raises(MemoryError, match="9 EiB"):  # what does not fit may be a result
        drot.load(path)


# ------------------------------------------------------------------------------- signatures
WHERE = re.compile(r"drot\.((metrics|datasets)\.)?\w+")  # functions and classes
PUBLIC = {name: thing(name) for name in public() if WHERE.fullmatch(name)}
FUNCTIONS = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}

# Data first. The perplexity is a datum of the entropic affinity, k of the k nearest, n of a random
# start, and a start of a descent.
DATA = {
    "X", "Y", "Z", "cost", "plan", "reference", "function", "labels", "path", "perplexity", "k",
    "n", "objective", "init", "graph", "log_kernel", "n_samples", "K", "n_components",
    "n_neighbors", "min_dist", "spread", "cost_x", "cost_z", "gram", "n_clusters", "membership",
    "similarity", "n_prototypes", "y",
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures(name):
    """A misspelt option is an error: no callable takes **kwargs or *args.

    Data first, all else by name only; a data set may take its one size or name first.
    """
    methods = (f for _, f in inspect.getmembers(PUBLIC[name], inspect.isfunction))
    ours = [f for f in methods if f.__module__.startswith("drot")]  # not scikit-learn's
    for member in (PUBLIC[name], *ours):
        for parameter in inspect.signature(member).parameters.values():
            assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    parameters = inspect.signature(FUNCTIONS[name]).parameters if name in FUNCTIONS else {}
    for parameter in list(parameters.values())[name.startswith("drot.datasets.") :]:
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
    """Plain words, parameters, what is returned, an example, in this order.

    Every parameter is described, as in the signature, with its default; no other.
    """
    found = sections(inspect.getdoc(FUNCTIONS[name]))
    first = found[""].split("\n\n")[0]
    assert first.endswith(".") and len(first) < 200
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
                for one in default if isinstance(default, tuple) else (default,):
                    assert f'"{one}"' in options.group(1)
    assert listed == list(signature)


@pytest.mark.parametrize(
    "name", ["entropic", "gaussian", "doubly_stochastic", "symmetric_entropic"]
)
@pytest.mark.parametrize(("dtype", "tol"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_default_tolerance_is_the_documented_one(name, dtype, tol):
    solve, cost = getattr(drot, f"{name}_affinity"), drot.sqeuclidean(torch.tensor(X, dtype=dtype))
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

X = torch.randn(4000, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
X[1] = X[0]  # copies are compared in tiles too
cost = drot.sqeuclidean(X, block=256)
drot.entropic_affinity(drot.sqeuclidean(X[:500], block=100), perplexity=30.0)  # loads it all
before = forget_peak()
some = {"max_iter": 2, "on_failure": "ignore"}
drot.entropic_affinity(cost, perplexity=30.0, **some)
drot.entropic_affinity(cost, perplexity=10.0, n_neighbors=30, diagonal="drop", **some)
drot.self_tuning_affinity(cost)
drot.gaussian_affinity(cost, perplexity=30.0, **some)
drot.doubly_stochastic_affinity(cost, bandwidth=9.0, **some)
found = drot.symmetric_entropic_affinity(cost, perplexity=30.0, **some)
for _, tile in found.tiles():
    del tile
print(peak() - before)
"""


@pytest.mark.slow
@needs_linux
def test_tiles_bound_memory():
    """Duals in row tiles take a few tiles: under a quarter of the n x n array they never form."""
    (taken,) = numbers(PEAK)
    assert taken < 4000**2 * 8 / 4
