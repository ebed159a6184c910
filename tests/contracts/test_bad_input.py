"""Bad input, by the table of ``faults``: every public function against every fault.

A function, or a parameter, that is not in the table fails a test.
"""

import re
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import drot
import faults
import numpy as np
import pytest
import torch
from faults import COLUMNS, ROWS, N, call, is_estimator, kind, leaves, parameters, points, thing
from memory import forget_peak, peak
from torch import Tensor

SECONDS = 10.0  # a cell may take, far more than any needs: what hangs is found
ROOM = 2**28  # bytes that a cell may add to the peak of the process


def test_every_public_function_has_a_row():
    """And every parameter a kind: a new one fails here until it is in the table.

    What takes one of several names is asked for another; what takes a start too.
    """
    assert ROWS.keys() | faults.ELSEWHERE.keys() == set(faults.public())
    assert not ROWS.keys() & faults.ELSEWHERE.keys()
    for name, parameter in [(row, parameter) for row in ROWS for parameter in parameters(row)]:
        assert kind(name, parameter) in COLUMNS, (name, parameter)
        if parameter == "init":
            assert name in faults.STARTS
        elif faults.choices(name, parameter):
            assert kind(name, parameter) in ("name", "block"), (name, parameter)


@contextmanager
def watched(seconds: float = SECONDS) -> Iterator[None]:
    """No hang, no wild allocation, no warning."""

    def late(*_):
        raise TimeoutError(f"took more than {5 * seconds} seconds")

    resident = forget_peak()
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 5 * seconds)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - start < seconds
    assert peak() - resident < ROOM


def bits(value) -> bytes | None:
    if isinstance(value, Tensor | np.ndarray):
        return np.asarray(value.to_dense() if isinstance(value, Tensor) else value).tobytes()
    return repr(value).encode() if isinstance(value, list | tuple) else None


def good(name: str) -> dict:
    return ROWS[name].good() | ({"X": points()} if is_estimator(name) else {})


def seeds() -> tuple:
    """Of all libraries."""
    _, keys, place, *_ = np.random.get_state()  # noqa: NPY002
    return bits(torch.random.get_rng_state()), bits(keys), place


@pytest.fixture(scope="module", autouse=True)
def imported():
    """What is slow to import is there before a cell is timed."""
    for name in ROWS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(name, ROWS[name].good())


@pytest.mark.parametrize("name", ROWS)
def test_the_rows_are_good(name):
    """What the cells spoil is sound: no exception, no warning, nothing that is not finite.

    The input is left as it was, and so are global seeds.
    """
    given = good(name)
    before, drawn = {key: bits(value) for key, value in given.items()}, seeds()
    with watched(4 * SECONDS):
        found = call(name, given)
    assert {key: bits(value) for key, value in given.items()} == before and seeds() == drawn
    assert not any(x.isnan().any() for x in leaves(found, floats=True).values())


def sound(name: str, parameter: str, given: dict):
    """A value that would do, where the row leaves the default."""
    if given.get(parameter) is None or isinstance(given[parameter], str):
        match kind(name, parameter):
            case "init":
                return points(N, 2, 1)
            case "weights":
                return np.full(N, 1 / N)
            case "start_plan":
                k = given.get("n_prototypes") or given.get("n_clusters")
                return np.full((N, k), 1 / N / k)
    return given.get(parameter)


EARLY = ("name", "count", "positive", "not_negative", "flag")
OF_AFFINITIES = ("similarity", "n_neighbors")


@pytest.mark.parametrize(
    "cell", faults.TABLE, ids=["-".join(cell[:3])[5:] for cell in faults.TABLE]
)
def test_cell(cell, monkeypatch):
    """One sentence that says what, where and what to do; the input is left as it was.

    An estimator says it before it has an affinity, but of what that depends on.
    """
    name, parameter, column, fault = cell
    if is_estimator(name) and kind(name, parameter) in EARLY and parameter not in OF_AFFINITIES:
        for made in ("_plan", "_cost"):
            monkeypatch.setattr(thing(name), made, None, raising=False)
    given = {"X": points(), **ROWS[name].good()} if parameter == "X" else ROWS[name].good()
    given |= faults.also(name, parameter)
    given[parameter] = fault.spoil(sound(name, parameter, given))
    before = {key: bits(value) for key, value in given.items()}
    known = faults.STARTS.get(name) if parameter == "init" else faults.choices(name, parameter)
    says = faults.SAYS.get(" ".join(cell[:3]), fault.says).replace("NAME", parameter)
    with watched(), pytest.raises(fault.error) as caught:
        call(name, given)
    text = str(caught.value)
    assert re.search(says, text, re.DOTALL), f"{type(caught.value).__name__}: {text}"
    assert column != "unknown name" or all(repr(choice) in text for choice in known or ())
    assert len(text) < 400 or kind(name, parameter) == "table"
    assert {key: bits(value) for key, value in given.items()} == before


# ------------------------------------------------------------------------------- devices
NUMBERS = {
    *("cloud", "ranked", "symmetric", "graph", "log_kernel", "rows", "coupling", "factor", "init"),
    *("start_plan", "membership", "weights", "masses", "plan_of_prototypes", "y", "perplexities"),
    *("sheet", "metric", "similarity"),
}
ARRAYS = {*NUMBERS, "table", "cost", "matrix", "distances", "kl", "signed", "symmetric_plan"}


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, parameter)
        for name in ROWS
        if not is_estimator(name)
        for parameter in [p for p in parameters(name) if kind(name, p) in COLUMNS][1:]
        if kind(name, parameter) in NUMBERS
    ],
)
def test_other_device(name, parameter, gpu):
    """Arrays on two devices: one sentence that names both, or the small one is moved."""
    given = ROWS[name].good() | faults.also(name, parameter)
    given[parameter] = sound(name, parameter, given)
    plain = call(name, given)
    given[parameter] = torch.as_tensor(np.asarray(given[parameter])).to(gpu)
    try:
        found = call(name, given)
    except ValueError as error:
        assert re.search(r"\bcpu\b", str(error)) and re.search(rf"\b{gpu}", str(error))
        assert re.search(r"move one|one device", str(error))
    else:
        for one, other in zip(leaves(found).values(), leaves(plain).values(), strict=True):
            moves = name.endswith("precision_coupling_loss")  # X, to what is differentiated
            assert one.device.type == (gpu if moves else "cpu")
            assert torch.allclose(one.cpu(), other)


# -------------------------------------------------------------------------------- memory
LARGE = 40  # points whose n x n array does not fit


@pytest.fixture
def little_memory(monkeypatch):
    """A machine of 12 KiB."""
    monkeypatch.setattr("drot._core.checks.physical_memory", lambda device: 3 * 4096)


X = points(LARGE)
TILED = drot.sqeuclidean(X, block=8)
TOO_LARGE = {  # what needs the whole array, though it takes less
    "dense of tiles": lambda: TILED.dense(),
    "plan": lambda: drot.entropic_affinity(TILED, perplexity=5.0).plan,
    "symmetrize": lambda: drot.symmetrize(drot.entropic_affinity(TILED, perplexity=5.0)),
    "scaling": lambda: drot.spectral.classical_mds(TILED),
    "t-SNE": lambda: drot.TSNE(perplexity=5.0).fit(X),
    "UMAP": lambda: drot.UMAP(n_neighbors=5).fit(X),
    "DistR": lambda: drot.DistR(3, perplexity=5.0).fit(X),
}
FITS = {  # what goes in tiles, or in factors
    "entropic": lambda: drot.entropic_affinity(TILED, perplexity=5.0),
    "doubly stochastic": lambda: drot.doubly_stochastic_affinity(TILED, bandwidth=1.0),
    "symmetric": lambda: drot.symmetric_entropic_affinity(TILED, perplexity=5.0),
    "membership": lambda: drot.umap_membership(TILED, n_neighbors=5),
    "scores": lambda: drot.metrics.neighborhood_curve(X, X[:, :2]),
    "barycentre": lambda: drot.srgw_barycenter(drot.factored_sqeuclidean(X), 3),
    "ccPCA": lambda: drot.CCPCA(perplexity=1.5, random_state=0).fit(X),
}


@pytest.mark.parametrize("use", TOO_LARGE.values(), ids=TOO_LARGE)
def test_will_not_fit(use, little_memory):
    """An n x n that memory cannot hold: how large it is, and the way around."""
    with watched(), pytest.raises(MemoryError) as caught:
        use()
    assert re.search(r"40 x (40|80) array takes .* GiB .*block=", str(caught.value))


@pytest.mark.parametrize("use", FITS.values(), ids=FITS)
def test_tiles_fit(use, little_memory):
    """The way around works, to the tolerance."""
    with watched():
        found = use()
    assert getattr(found, "converged", True)


# ------------------------------------------------------------------------------ welcomed
FORMS = (
    lambda v: np.asarray(v).tolist(),
    lambda v: torch.tensor(np.array(v), requires_grad=np.asarray(v).dtype.kind == "f"),
    lambda v: np.array(v)[::-1].copy()[::-1],  # a negative stride
    lambda v: np.array(v, dtype=np.asarray(v).dtype.newbyteorder(">")),
    lambda v: np.broadcast_to(v, np.shape(v)),  # read-only
)


@pytest.mark.parametrize(
    "name", [n for n in ROWS if any(kind(n, p) in ARRAYS for p in parameters(n))]
)
def test_other_forms(name):
    """Lists, tensors and views of the same numbers give the same, as do leaves of a gradient."""
    given = good(name)
    plain = leaves(call(name, dict(given)))
    for form in FORMS:
        other = {
            key: form(x) if kind(name, key) in ARRAYS and not isinstance(x, str | float) else x
            for key, x in given.items()
        }
        with watched(4 * SECONDS):
            found = leaves(call(name, other))
        torch.testing.assert_close(found, plain, rtol=1e-9, atol=1e-12, equal_nan=True)


def test_one_column_turned_round():
    """A view with a negative stride over one entry is an array like any other, as is a leaf."""
    assert drot.sqeuclidean(points(5, 1)[:, ::-1]).shape == (5, 5)
    assert not drot.sqeuclidean(torch.ones(5, 1, requires_grad=True)).dense().requires_grad
