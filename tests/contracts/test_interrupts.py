"""An interrupt ends the program, and what was found is in the exception; a kill leaves whole files.

An interrupt at a known iteration is sent by a callback, as the signal that Ctrl-C is; those that
come at any time are sent to a process of their own.
"""

import itertools
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager

import drot
import numpy as np
import pytest
import torch
from drot import Interrupted
from drot.distributional import baselines
from drot.estimators import base
from drot.gromov.kmeans import Means
from faults import ROWS, STARTS, call, is_estimator, parameters

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)) + 3 * RNG.integers(0, 3, size=(40, 1))
C = drot.sqeuclidean(X).dense()
P = drot.symmetric_entropic_affinity(C, perplexity=6.0).plan
Q = drot.symmetrize(drot.entropic_affinity(C, perplexity=6.0, diagonal="drop"))

# All functions with a callback; that of ccPCA looks on, and ends nothing.
SOLVERS = [n for n in ROWS if "callback" in parameters(n) and not is_estimator(n)]
SOLVERS.remove("drot.ccpca")


def solve(name: str, callback: Callable):
    """Of the row's data, from a start by chance, with iterations enough."""
    given = ROWS[name].good() | {"max_iter": 1000, "tol": 1e-12, "on_failure": "raise"}
    given |= {"init": "random"} if name in STARTS else {}
    return call(name, given | {"callback": callback})


@pytest.mark.parametrize("name", SOLVERS)
def test_what_was_found_is_in_the_exception(name):
    """It is what a callback that ends the run there has, to the bit, and it is pickled with it."""

    def callback(number, *_):
        if number == 2:
            signal.raise_signal(signal.SIGINT)

    stopped = solve(name, lambda number, *_: number == 2)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 2 iterations") as stop:
        solve(name, callback)
    assert type(stop.value) is Interrupted
    for error in (stop.value, pickle.loads(pickle.dumps(stop.value))):
        assert type(error.result) is type(stopped)
        for field, value in vars(stopped).items():
            one = getattr(error.result, field)
            if isinstance(value, (bool, int, float, tuple, torch.Tensor)):
                assert np.array_equal(one, value), field


def at_call(number: int, function: Callable) -> Callable:
    """The function, but for an interrupt at one of its calls."""
    calls = itertools.count(1)

    def interrupted(*arguments, **more):
        if next(calls) == number:
            raise KeyboardInterrupt
        return function(*arguments, **more)

    return interrupted


def test_solvers_without_a_callback(monkeypatch):
    monkeypatch.setattr(Means, "changes", at_call(2, Means.changes))
    with pytest.raises(Interrupted, match=r"^kernel_kmeans") as stop:
        drot.kernel_kmeans(X @ X.T, 3, init="random")
    assert stop.value.result.labels.shape == (40,)
    monkeypatch.setattr(baselines, "_between", at_call(3, baselines._between))
    with pytest.raises(Interrupted, match=r"^coot_clustering") as stop:
        drot.coot_clustering(X, 3)
    assert stop.value.result.Z.shape == (3, 2)
    monkeypatch.undo()
    monkeypatch.setattr(baselines, "_between", at_call(3, baselines._between))
    with pytest.raises(Interrupted, match=r"^coot_clustering") as stop:
        drot.coot_clustering(X, 3, max_iter=1)  # before the first state of the second start
    assert len(stop.value.result.ends) == 1


def test_nothing_found_yet(monkeypatch):
    """Before the first iterate there is nothing to carry; and what is infinite does not hide it."""
    monkeypatch.setattr(drot.SNELoss, "evaluate", at_call(1, drot.SNELoss.evaluate))
    with pytest.raises(KeyboardInterrupt) as stop:
        drot.tsne(Q)
    assert type(stop.value) is KeyboardInterrupt
    zeros, ask = torch.zeros(3, 3).double(), {"loss": "kl", "init": "product"}
    with pytest.raises(ValueError, match="infinite at every plan"):
        drot.semi_relaxed_gw(P, zeros, **ask)
    with pytest.raises(Interrupted):
        drot.semi_relaxed_gw(P, zeros, **ask, callback=at_call(1, print))


# ------------------------------------------------------------------------ estimators
ESTIMATORS = {
    **{name: {"perplexity": 6.0} for name in ("SNE", "TSNE", "LargeVis", "SNEkhorn", "TSNEkhorn")},
    "UMAP": {"n_neighbors": 6},
    "DistR": {"n_prototypes": 5, "perplexity": 6.0},
    "SemiRelaxedGWClustering": {"n_clusters": 3, "perplexity": 6.0},
}


@pytest.fixture
def ended_in(monkeypatch) -> Callable:
    """Have the run of an estimator end at the second look of one of its solvers."""

    def begin(where: str, end: Callable) -> None:
        @contextmanager
        def progress(what, *_):
            yield (lambda number, *_: end(number) if what == where else None)

        monkeypatch.setattr(base, "progress", progress)

    return begin


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_keeps_its_attributes(name, ended_in):
    """All that a fit leaves, as a fit that is ended on request leaves it; and the fit ends."""
    stopped, model = (getattr(drot, name)(**ESTIMATORS[name], random_state=0) for _ in range(2))
    what = {"DistR": "reduction", "SemiRelaxedGWClustering": "clustering"}.get(name, "embedding")
    ended_in(what, lambda number: number == 1)
    stopped.fit(X)
    ended_in(what, at_call(2, lambda number: None))
    with pytest.raises(Interrupted, match=f"exception, and of this {name}, which is") as stop:
        model.fit(X)
    assert stop.value.result is model.result_ and vars(model).keys() == vars(stopped).keys()
    for attribute in ("embedding_", "affinity_", "labels_", "prototypes_"):
        if hasattr(stopped, attribute):
            np.testing.assert_array_equal(getattr(model, attribute), getattr(stopped, attribute))


@pytest.mark.parametrize("name", ["SNEkhorn", "TSNEkhorn", "DistR", "SemiRelaxedGWClustering"])
def test_an_interrupt_inside_the_affinity(name, ended_in):
    """It is no failure to converge, its affinity no result; an earlier fit stays."""
    model = getattr(drot, name)(**ESTIMATORS[name], random_state=0)
    for earlier in (None, model):
        ended_in("affinity", at_call(1, lambda number: None))
        with pytest.raises(KeyboardInterrupt) as stop:
            model.fit(X)
        assert type(stop.value) is KeyboardInterrupt and hasattr(model, "result_") is bool(earlier)
        ended_in("", print)
        model.fit(X[:30])


# -------------------------------------------------------------------------- processes of their own
HEAD = """
import os, signal, sys, threading, warnings
import numpy as np
import torch
torch.set_num_threads(1)
import drot, drot.estimators
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(60, 4))
"""
LOOP = """
from sklearn.model_selection import GridSearchCV
drot.DistR(4, perplexity=6.0).fit(X)  # numba's compilation is done
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
grid = {"perplexity": np.linspace(3, 9, 10_000)}
score = lambda model, X, y=None: -model.objective_
GridSearchCV(drot.DistR(4), grid, scoring=score, n_jobs=1).fit(X)
"""
SAVES = """
found = drot.gaussian_affinity(drot.sqeuclidean(np.tile(X, (9, 9))), bandwidth=1.0)
found.save(sys.argv[1])
print("saved", flush=True)
while True:
    found.save(sys.argv[1])
"""
signals = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")


@pytest.mark.slow
@signals
def test_one_interrupt_ends_a_loop():
    """Whatever it meets there: the loop would take an hour."""
    command = [sys.executable, "-c", HEAD + LOOP]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    last = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode != 0
    assert last.startswith(("KeyboardInterrupt", "drot._core.run.Interrupted"))


@pytest.mark.slow
@signals
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_while_saving(number, tmp_path):
    """However a process dies while it saves over a result, the file is whole."""
    path, pipe = tmp_path / "result.npz", subprocess.PIPE
    command = [sys.executable, "-c", HEAD + SAVES, str(path)]
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as child:
        try:
            assert child.stdout.readline() == "saved\n"
            for _ in range(25):  # who reads meanwhile reads a whole file too
                drot.load(path)
            child.send_signal(number)
            assert child.wait(60) != 0
        finally:
            child.kill()
    drot.load(path)
    others = {p.name for p in tmp_path.iterdir()} - {"result.npz"}
    assert others <= ({"result.npz.part"} if number != signal.SIGINT else set())
    drot.load(path).save(path)  # the next one takes the draft's place
    assert [p.name for p in tmp_path.iterdir()] == ["result.npz"]
