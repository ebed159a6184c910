"""What a call leaves behind: its inputs, the seeds of others, and a result that can be kept."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re

import drot
import numpy as np
import pytest
import torch
from drot.affinities.base import restore
from memory import needs_linux, numbers


def points(n: int = 12, p: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, p, generator=generator, dtype=torch.float64)


# Every kind of result, for every kind of cost that can be stored.
RESULTS = {
    "entropic": lambda c: drot.entropic_affinity(c, 4.0),
    "entropic-drop": lambda c: drot.entropic_affinity(c, 4.0, diagonal="drop"),
    "entropic-nearest": lambda c: drot.entropic_affinity(c, 3.0, n_neighbors=6),
    "entropic-nearest-drop": lambda c: drot.entropic_affinity(
        c, 3.0, n_neighbors=6, diagonal="drop"
    ),
    "gaussian": lambda c: drot.gaussian_affinity(c, bandwidth=1.0),
    "gaussian-perplexity-drop": lambda c: drot.gaussian_affinity(
        c, perplexity=4.0, diagonal="drop"
    ),
    "self-tuning": lambda c: drot.self_tuning_affinity(c, n_neighbors=3),
    "self-tuning-drop": lambda c: drot.self_tuning_affinity(c, n_neighbors=3, diagonal="drop"),
    "sinkhorn": lambda c: drot.doubly_stochastic_affinity(c, bandwidth=1.0),
    "sinkhorn-perplexity": lambda c: drot.doubly_stochastic_affinity(c, perplexity=4.0),
    "symmetric": lambda c: drot.symmetric_entropic_affinity(c, 4.0),
    "symmetric-slack": lambda c: drot.symmetric_entropic_affinity(c, 1.2),
    "symmetric-ascent": lambda c: drot.symmetric_dual_ascent(c, 4.0, tol=0.1),
    "symmetric-projections": lambda c: drot.symmetric_alternating_projections(
        c, 4.0, bandwidth=1.0, tol=1e-2
    ),
}
COSTS = {
    "matrix": lambda X: drot.sqeuclidean(X).dense(),
    "cloud": drot.sqeuclidean,
    "tiles": lambda X: drot.sqeuclidean(X, block=5),
    "two clouds": lambda X: drot.sqeuclidean(X, X.clone(), block=5),
    "student": drot.student_cost,
    "float32": lambda X: drot.sqeuclidean(X.float(), block=3),
}


def same(left: drot.affinities.Affinity, right: drot.affinities.Affinity) -> None:
    """Equal to the bit, field by field, plan included."""
    assert type(left) is type(right)
    for field in dataclasses.fields(left):
        a, b = getattr(left, field.name), getattr(right, field.name)
        if field.name == "cost":
            assert (a.shape, a.dtype, a.block) == (b.shape, b.dtype, b.block)
            assert torch.equal(a.dense(), b.dense())
        elif isinstance(a, torch.Tensor):
            assert torch.equal(a, b) and a.dtype == b.dtype
        else:
            assert a == b and type(a) is type(b)
    assert torch.equal(left.plan, right.plan)
    assert torch.equal(left.log_plan, right.log_plan)


# ------------------------------------------------------------------------------- no effects
@pytest.mark.parametrize("solve", RESULTS.values(), ids=RESULTS)
def test_inputs_are_not_changed(solve):
    """Clouds, matrices and perplexities hold the same bytes after a call and its readings."""
    X, C = points().numpy(), drot.sqeuclidean(points()).dense().numpy()
    before = X.tobytes(), C.tobytes()
    for cost in (C, torch.from_numpy(C), drot.sqeuclidean(X), drot.sqeuclidean(X, block=4)):
        affinity = solve(cost)
        _ = affinity.plan, affinity.log_plan, affinity.perplexity
        drot.symmetrize(affinity)
        for _ in affinity.tiles():
            pass
    assert (X.tobytes(), C.tobytes()) == before


def test_perplexities_and_plans_are_not_changed():
    """Nor are the other arrays that functions read."""
    xi = np.linspace(2, 6, 12)
    P = np.random.default_rng(0).dirichlet(np.ones(12), size=12)
    P[0, 0] = 0.0
    before = xi.tobytes(), P.tobytes()
    drot.entropic_affinity(drot.sqeuclidean(points()), xi)
    drot.symmetric_entropic_affinity(drot.sqeuclidean(points()), xi)
    drot.row_entropy(P), drot.row_perplexity(P), drot.kl_divergence(P, P), drot.symmetrize(P)
    drot.nearest(P, 3).dense()
    drot.metrics.constraint_errors(P, 3.0)
    assert (xi.tobytes(), P.tobytes()) == before


def test_a_cost_does_not_follow_its_cloud():
    """Changing X after the call changes neither the cost nor a result built on it."""
    for block in (None, 4):
        X = points().numpy()
        cost = drot.sqeuclidean(X, block=block)
        affinity = drot.entropic_affinity(cost, 4.0)
        plan, C = affinity.plan, drot.sqeuclidean(points()).dense()
        X[:] = 0.0
        torch.testing.assert_close(cost.dense(), C)
        assert torch.equal(affinity.plan, plan)


@pytest.mark.parametrize("solve", RESULTS.values(), ids=RESULTS)
def test_global_seeds_are_left_alone(solve):
    """No call draws from, or seeds, the generators of torch and NumPy."""
    state, legacy = torch.random.get_rng_state(), np.random.get_state()  # noqa: NPY002
    affinity = solve(drot.sqeuclidean(points()))
    _ = affinity.plan
    drot.metrics.spectral_clustering_ari(drot.symmetrize(affinity), [0, 1] * 6)
    assert torch.equal(torch.random.get_rng_state(), state)
    after = np.random.get_state()  # noqa: NPY002
    assert (after[1] == legacy[1]).all() and after[2:] == legacy[2:]


@pytest.mark.parametrize("solve", RESULTS.values(), ids=RESULTS)
def test_same_call_same_bits(solve, device):
    """The same call twice gives the same bits, on the device of its input."""
    X = points(40).to(device)
    for make in COSTS.values():
        first, second = solve(make(X)), solve(make(X))
        same(first, second)
        assert first.plan.device.type == device
        for field in dataclasses.fields(first):
            value = getattr(first, field.name)
            assert not isinstance(value, torch.Tensor) or value.device.type == device


@pytest.mark.parametrize("solve", RESULTS.values(), ids=RESULTS)
def test_devices_agree(solve, gpu):
    """Another device gives the same plan, to rounding."""
    here, there = (
        solve(drot.sqeuclidean(points(40))),
        solve(drot.sqeuclidean(points(40).to(gpu))),
    )
    torch.testing.assert_close(there.plan.cpu(), here.plan, rtol=1e-6, atol=1e-9)


# ---------------------------------------------------------------------------------- results
@pytest.mark.parametrize("solve", RESULTS.values(), ids=RESULTS)
def test_results_are_frozen(solve):
    """No field of a result can be set, and each is documented by its type."""
    affinity = solve(drot.sqeuclidean(points()))
    assert isinstance(affinity, drot.affinities.Affinity)
    for field in dataclasses.fields(affinity):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(affinity, field.name, None)
    assert affinity.converged is True
    assert type(affinity.n_iter) is int and type(affinity.trace) is tuple
    assert type(affinity.residual) is float and type(affinity.passes) is float
    if isinstance(affinity, drot.affinities.SymmetricEntropicAffinity):
        assert type(affinity.products) is float and type(affinity.dual_value) is float
        assert type(affinity.work) is tuple and len(affinity.work) == affinity.n_iter
        assert {type(spent) for spent in affinity.work} == {float}
        vectors = affinity.gamma, affinity.lam, affinity.free, affinity.slack
        assert all(vector.shape == (12,) for vector in vectors)
        assert affinity.slack.dtype == torch.bool and not affinity.gamma.requires_grad
    text = repr(affinity)
    assert type(affinity).__name__ in text and "12 x 12" in text and len(text) < 200


def test_a_plan_is_the_readers_own():
    """Changing what `.plan` or `.tiles` gave does not change the result."""
    affinity = drot.entropic_affinity(drot.sqeuclidean(points()).dense(), 4.0)
    plan = affinity.plan.clone()
    affinity.plan.zero_()
    affinity.log_plan.zero_()
    for _, tile in affinity.tiles():
        tile.zero_()
    for _, tile in affinity.log_tiles():
        tile.zero_()
    assert torch.equal(affinity.plan, plan)


# ------------------------------------------------------------------------------ save and load
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("solve", RESULTS.values(), ids=RESULTS)
def test_save_and_load(solve, cost, tmp_path):
    """A result that was saved and loaded is the same to the bit, its cost still lazy."""
    affinity = solve(cost(points()))
    affinity.save(tmp_path / "result.npz")
    same(drot.load(tmp_path / "result.npz"), affinity)
    assert [path.name for path in tmp_path.iterdir()] == ["result.npz"]
    # what is stored is numbers, and as much as the cost is made of
    with np.load(tmp_path / "result.npz", allow_pickle=False) as file:
        assert all(array.dtype != object for array in file.values())


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


@pytest.mark.parametrize("cost", FACTORED.values(), ids=FACTORED)
@pytest.mark.parametrize("diagonal", ["keep", "drop"])
def test_save_and_load_factors(cost, diagonal, tmp_path):
    """Factors come back as factors: distances from the points would be rounded in another way."""
    affinity = drot.entropic_affinity(cost(), 4.0, diagonal=diagonal)
    affinity.save(tmp_path / "result.npz")
    back = drot.load(tmp_path / "result.npz")
    same(back, affinity)
    assert torch.equal(back.plan, affinity.plan)
    assert type(back.cost) is type(affinity.cost)
    if diagonal == "keep":
        assert (back.cost.block, back.cost.symmetric) == (affinity.cost.block, True)
        for name in ("left", "right", "points"):
            assert torch.equal(getattr(back.cost, name), getattr(affinity.cost, name))


def test_save_and_load_unfinished(tmp_path):
    """A run that did not converge says so after loading too."""
    options = {"max_iter": 2, "tol": 1e-12, "on_failure": "ignore"}
    for k, affinity in enumerate(
        (
            drot.entropic_affinity(drot.sqeuclidean(points()), 4.0, **options),
            drot.doubly_stochastic_affinity(drot.sqeuclidean(points()), bandwidth=0.1, **options),
            drot.symmetric_entropic_affinity(drot.sqeuclidean(points()), 4.0, **options),
        )
    ):
        affinity.save(str(tmp_path / f"{k}.npz"))
        back = drot.load(str(tmp_path / f"{k}.npz"))
        same(back, affinity)
        assert back.converged is False


def test_save_names_the_file_as_told(tmp_path):
    """The path is kept as it is, with or without an ending, and an old file is replaced."""
    affinity = drot.entropic_affinity(drot.sqeuclidean(points()), 4.0)
    path = tmp_path / "plan"
    path.write_text("old")
    affinity.save(path)
    same(drot.load(path), affinity)


@pytest.mark.parametrize("solve", [RESULTS["entropic"], RESULTS["entropic-drop"]])
def test_save_refuses_callables(solve, tmp_path):
    """A cost made by a callable holds code, which is not stored; the sentence says what to do."""
    affinity = solve(drot.pairwise(lambda x, y: torch.cdist(x, y), points()))
    with pytest.raises(ValueError, match=r"callable cannot be saved; solve with cost.dense\(\)"):
        affinity.save(tmp_path / "result.npz")
    assert not list(tmp_path.iterdir())


def test_save_is_atomic(tmp_path, monkeypatch):
    """A save that fails half-way leaves the old file whole and nothing beside it."""
    affinity = drot.entropic_affinity(drot.sqeuclidean(points()), 4.0)
    path = tmp_path / "result.npz"
    affinity.save(path)
    before = path.read_bytes()

    def full_disk(file, **arrays):
        file.write(b"half a result")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        drot.gaussian_affinity(drot.sqeuclidean(points()), bandwidth=1.0).save(path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["result.npz"]


def test_save_replaces_in_one_step(tmp_path):
    """Who is reading the old file while a new one is saved still reads the old one, whole."""
    path = tmp_path / "result.npz"
    drot.entropic_affinity(drot.sqeuclidean(points()), 4.0).save(path)
    before = path.read_bytes()
    with path.open("rb") as reader:
        drot.gaussian_affinity(drot.sqeuclidean(points()), bandwidth=1.0).save(path)
        assert reader.read() == before
    assert path.read_bytes() != before


class Trap:
    """Unpickling this would run code."""

    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


@pytest.mark.parametrize("where", ["kind", "eps", "cost.sqeuclidean", "extra"])
def test_load_never_unpickles(where, tmp_path):
    """A file with a pickled object is refused, wherever it hides, and nothing in it runs."""
    path = tmp_path / "hostile.npz"
    drot.entropic_affinity(drot.sqeuclidean(points()), 4.0).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays[where] = np.array([Trap()], dtype=object)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"allow_pickle|does not hold a result"):
        drot.load(path)
    assert not Trap.sprung


FAULTS = ["text", "npy", "empty", "other", "unknown kind", "unknown cost", "a part lacks"]


@pytest.mark.parametrize("fault", FAULTS)
def test_load_says_what_is_not_an_affinity(fault, tmp_path):
    """A file of another kind, or with a part missing, is one clear ValueError."""
    path = tmp_path / "file.npz"
    drot.entropic_affinity(drot.sqeuclidean(points()), 4.0).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    match fault:
        case "text":
            path.write_text("not an archive")
        case "npy":
            with path.open("wb") as file:
                np.save(file, np.zeros(3))
        case "empty":
            path.write_bytes(b"")
        case "other":
            np.savez(path, X=np.zeros((3, 2)))
        case "unknown kind":
            np.savez(path, **{**arrays, "kind": np.array("Pairwise")})
        case "unknown cost":
            arrays["cost.cosine"] = arrays.pop("cost.sqeuclidean")
            with pytest.raises(ValueError, match=r"^no cost is made of the arrays cosine, other$"):
                restore({"other": torch.eye(2), "cosine": torch.eye(2)}, None)
            np.savez(path, **arrays)
        case "a part lacks":
            del arrays["eps"]
            np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"file.npz does not hold a result saved by drot"):
        drot.load(path)
    with pytest.raises(FileNotFoundError):
        drot.load(tmp_path / "absent.npz")


# ------------------------------------------------------------------------------- signatures
def public_functions() -> dict[str, object]:
    """Functions and classes of the public modules, and the methods of the classes."""
    found = {}
    for module in (drot, drot.metrics, importlib.import_module("drot.datasets")):
        for name in module.__all__:
            thing = getattr(module, name, None)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found[f"{module.__name__}.{name}"] = thing
    return found


FUNCTIONS = {name: thing for name, thing in public_functions().items() if inspect.isfunction(thing)}


def test_public_names_are_found():
    """The list that the next tests run over is not empty by mistake."""
    assert {"drot.entropic_affinity", "drot.sqeuclidean"} <= FUNCTIONS.keys()
    assert len(FUNCTIONS) >= 12


@pytest.mark.parametrize("name", public_functions())
def test_no_variable_keywords(name):
    """A misspelt option is an error: no public callable takes **kwargs or *args."""
    thing = public_functions()[name]
    members = [thing]
    if inspect.isclass(thing) and not issubclass(thing, Exception | tuple):
        methods = (f for _, f in inspect.getmembers(thing, inspect.isfunction))
        members += [f for f in methods if f.__module__.startswith("drot")]  # not scikit-learn's
    for member in members:
        if inspect.isclass(member) and issubclass(member, Exception | tuple):
            continue
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
        if parameter.kind is not parameter.KEYWORD_ONLY:
            assert parameter.name in DATA, f"{parameter.name} should be keyword-only"


def test_a_misspelt_option_is_an_error():
    """Python says which option does not exist."""
    with pytest.raises(TypeError, match="perplexty"):
        drot.gaussian_affinity(np.eye(3), perplexty=2.0)


def sections(doc: str) -> dict[str, str]:
    """The sections of a NumPy docstring."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", doc, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings(name):
    """Plain words, a source, parameters, what is returned, an example, in this order."""
    found = sections(inspect.getdoc(FUNCTIONS[name]))
    first = found[""].split("\n\n")[0]
    assert first.endswith(".") and len(first) < 200
    assert re.search(r"^Source: ", found[""], re.MULTILINE)
    for title in ("Parameters", "Returns", "Examples"):
        assert title in found, f"{name} has no section {title}"
    order = ["", "Parameters", "Returns", "Raises", "Notes", "Examples"]
    assert [title for title in order if title in found] == list(found)
    assert ">>> " in found["Examples"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_documented(name):
    """Every parameter is described, in the order of the signature, and no other."""
    listed = [
        part.strip()
        for line in sections(inspect.getdoc(FUNCTIONS[name]))["Parameters"].splitlines()
        if line and not line[0].isspace()
        for part in line.split(" : ")[0].split(",")
    ]
    assert listed == list(inspect.signature(FUNCTIONS[name]).parameters)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_documented_defaults(name):
    """A default that a docstring states is the one of the signature, and `optional` has one."""
    found = sections(inspect.getdoc(FUNCTIONS[name]))["Parameters"]
    signature = inspect.signature(FUNCTIONS[name]).parameters
    for entry in re.split(r"\n(?=\S)", found.strip()):
        head = entry.splitlines()[0]
        for parameter in (part.strip() for part in head.split(" : ")[0].split(",")):
            default = signature[parameter].default
            if "optional" in head:
                assert default is not inspect.Parameter.empty
            for literal in re.findall(r"[Dd]efault(?:s to|:)? `*([\w.'\"-]+)", entry):
                if default is not None:
                    assert repr(default).strip("'") == literal.strip("'\"`.")
            options = re.search(r"\{(\"[^}]*)\}", head)
            if options and default not in (inspect.Parameter.empty, None):
                assert f'"{default}"' in options.group(1)


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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_annotations(name):
    """Every function says what it returns, and every option its type."""
    signature = inspect.signature(FUNCTIONS[name])
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            assert parameter.annotation is not parameter.empty


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_examples_parse(name):
    """An example that the doctest run would skip as text is none."""
    source = sections(inspect.getdoc(FUNCTIONS[name]))["Examples"]
    lines = [line[4:] for line in source.splitlines() if line.startswith((">>> ", "... "))]
    ast.parse("\n".join(lines))


# ----------------------------------------------------------------------------------- memory
PEAK = """
from memory import forget_peak, peak
import torch
torch.set_num_threads(1)
import drot

X = torch.randn({n}, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
cost = drot.sqeuclidean(X, block=256)
drot.entropic_affinity(drot.sqeuclidean(X[:500], block=100), 30.0)  # everything is loaded
before = forget_peak()
{calls}
print(peak() - before)
"""
CALLS = {
    "rows": """
drot.entropic_affinity(cost, 30.0)
drot.entropic_affinity(cost, 30.0, diagonal="drop")
drot.entropic_affinity(cost, 10.0, n_neighbors=30)
drot.self_tuning_affinity(cost)
""",
    "one bandwidth": """
drot.gaussian_affinity(cost, perplexity=30.0)
drot.doubly_stochastic_affinity(cost, bandwidth=9.0, max_iter=4, on_failure="ignore")
for _, tile in drot.gaussian_affinity(cost, bandwidth=9.0).tiles():
    del tile
""",
    "symmetric": """
found = drot.symmetric_entropic_affinity(cost, 30.0, max_iter=2, on_failure="ignore")
assert found.passes > 2 and found.products > 0
for _, tile in found.tiles():
    del tile
""",
}


@needs_linux
@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
def test_tiles_bound_memory(calls):
    """Duals in row tiles take a few tiles: under a quarter of the n x n array they never form."""
    n = 4000
    (taken,) = numbers(PEAK.format(n=n, calls=calls))
    assert taken < n * n * 8 / 4
