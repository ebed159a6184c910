"""One thread where arrays are small; a program has its numbers back, and its own choice stands."""

import runpy
import threading
from typing import Unpack

import drot
import faults
import numpy as np
import pytest
import torch
from drot._core import threads
from drot._core.options import takes_options_of
from drot._core.threads import by_size, threads_for
from drot.embeddings.embed import Options
from threadpoolctl import threadpool_info, threadpool_limits

SMALL, LARGE = 3000**2, 5000**2


def now() -> tuple[int, ...]:
    """Threads of PyTorch, and of the BLAS of NumPy and SciPy."""
    blas = (pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
    return torch.get_num_threads(), *blas


@pytest.fixture(autouse=True)
def three(monkeypatch):
    """A machine of three cores, and a program that has asked for nothing."""
    before = torch.get_num_threads()
    with threadpool_limits(3):
        torch.set_num_threads(3)
        monkeypatch.setattr(threads, "_DEFAULT", 3)
        yield now()
        torch.set_num_threads(before)
    torch.set_num_threads(before)


def cost(n: int = 30) -> drot.costs.Pairwise:
    return drot.sqeuclidean(np.random.default_rng(0).normal(size=(n, 4)))


def test_small_arrays_take_one_thread(three):
    assert three[0] == 3 and 3 in three[1:]  # a library that another brought may have one only
    with threads_for(SMALL):
        assert set(now()) == {1}
        with threads_for(LARGE):  # within a call that has decided
            assert set(now()) == {1}
    assert now() == three
    with threads_for(LARGE):
        assert now() == three
        with threads_for(SMALL):
            assert set(now()) == {1}
        assert now() == three


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_numbers_are_given_back(three, error):
    """After an error and an interrupt; from within a call, from a callback that stops it."""
    with pytest.raises(error), threads_for(SMALL):
        raise error
    assert now() == three
    plan, seen = drot.doubly_stochastic_affinity(cost(), bandwidth=1.0), []

    def callback(*_):
        seen.append(now())
        if len(seen) == 3:
            raise error

    with pytest.raises(error):
        drot.embed(drot.SNEkhornLoss(plan), callback=callback)
    assert set(seen) == {(1,) * len(three)} and now() == three


def test_a_choice_stands(three, monkeypatch):
    """Another number than the default, or within a call; the variables of the environment."""
    for count in (1, 2, 4):
        torch.set_num_threads(count)
        with threads_for(1):
            assert now() == (count, *three[1:])
        assert now() == (count, *three[1:])
    torch.set_num_threads(3)
    with threads_for(1):
        torch.set_num_threads(2)  # as a callback may
    assert now() == (2, *three[1:])
    torch.set_num_threads(3)
    monkeypatch.setattr(threads, "_DEFAULT", 0)  # what a variable makes of it
    with threads_for(1):
        assert now() == three


@pytest.mark.parametrize(
    "name", [None, "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"]
)
def test_variables_are_choices(name, monkeypatch):
    """Read when the package is imported, as those who own them read them."""
    for one in threads._CHOICES:
        monkeypatch.delenv(one, raising=False)
    if name:
        monkeypatch.setenv(name, "3")
    found = runpy.run_path(threads.__file__, run_name="drot._core.threads")
    assert found["_DEFAULT"] == (0 if name else 3)


def test_python_threads_share_one_blas(three):
    """Of two calls that overlap the first one lowers its number, and gives it back."""
    entered, left = threading.Event(), threading.Event()

    def other() -> None:
        torch.set_num_threads(3)
        with threads_for(SMALL):
            entered.set()
            left.wait(60)

    thread = threading.Thread(target=other)
    with threads_for(SMALL):
        thread.start()
        assert entered.wait(60) and set(now()) == {1}
    assert now() == three
    left.set()
    thread.join()
    with threads_for(SMALL):
        assert set(now()) == {1}


def test_what_is_counted():
    """Pairs of points, entries of an array, those of an affinity's cost and of an objective."""
    C, X = cost(), np.zeros((30, 4))
    plan = drot.doubly_stochastic_affinity(C, bandwidth=1.0)
    for data in (C, C.dense(), X, X.tolist(), plan, drot.SNEkhornLoss(plan), np.zeros((9, 100))):
        assert threads.pairs_of(data) == 900
    for data in (None, 3, np.float64(1), np.zeros((0, 2))):
        assert threads.pairs_of(data) == 0


def test_first_argument_by_name_or_place():
    class Thing:
        @by_size
        def fit(self, X, y=None):
            return torch.get_num_threads()

    @takes_options_of(drot.embed, Options)
    def method(plan, **options: Unpack[Options]):
        return torch.get_num_threads()

    solve, many = by_size(lambda cost, *, tol=1.0: torch.get_num_threads()), torch.zeros(5000, 1)
    for call in (Thing().fit, solve, method):
        assert call(many[:9]) == 1 and call(many) == 3
    assert Thing().fit(X=many[:9], y=many) == 1 and solve(tol=2.0, cost=many) == 3


def test_every_solver_decides():
    """What iterates up to a `max_iter`, each estimator's `fit`, and passes over all pairs."""
    solvers = [
        getattr(faults.thing(name), "fit", faults.thing(name))
        for name in faults.ROWS
        if faults.is_estimator(name) or "max_iter" in faults.parameters(name)
    ]
    assert len(solvers) > 25
    deciders = by_size(len).__code__, drot.tsne.__code__
    others = [f.__qualname__ for f in solvers if f.__code__ not in deciders]
    assert others == ["embed"]  # which has no frame for it: its callback heard one thread above
    passes = (
        drot.expected_graph, drot.coupling_loss, drot.nearest, drot.neighborhood_preservation,
        drot.graphs.graph_log_probability, drot.graphs.graph_log_normalizer,
        drot.metrics.neighborhood_curve, drot.embeddings.attraction_repulsion,
        drot.hyperbolic.distances,
    )  # fmt: skip
    assert [f.__qualname__ for f in passes if f.__code__ not in deciders] == []
