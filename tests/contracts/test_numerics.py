"""Digits: single against double precision, the same seed, other threads.

What solvers promise of hard clouds is in tests/properties/test_fuzz.py.
"""

import drot
import numpy as np
import pytest
import torch
from drot._core import threads
from faults import ROWS, STARTS, N, call, is_estimator, leaves, parameters
from threadpoolctl import threadpool_limits

# Shares of the largest entry by which float32 may differ, some ten times what was measured.
BOUNDS = dict.fromkeys(ROWS, 5e-6)
BOUNDS |= {"drot.umap_membership": 1e-3, "drot.doubly_stochastic_affinity": 6e-4}
BOUNDS |= {"drot.entropic_affinity": 2e-4, "drot.symmetric_entropic_affinity": 2e-4}
BOUNDS |= {f"drot.{name}": 2e-4 for name in ("cluster_then_reduce", "reduce_then_cluster")}
# Where descents end may differ, what one round from a given plan reaches must not.
ROUND = {"init": np.eye(3)[np.arange(N) % 3] / N, "max_iter": 1, "on_failure": "ignore"}
REACH = (
    "drot.distributional_reduction",
    "drot.srgw_barycenter",
    "drot.hyperbolic.distributional_reduction",
)
NOISE = ("drot.spectral.kernel_pca",)  # numbers near 0
# Of double precision all the same: what a plan of it or no array decides, counts, POT, widths.
DOUBLE = ("drot.embed", "drot.embeddings.attraction_repulsion", "drot.random_start")
DOUBLE += ("drot.hyperbolic.wrapped_normal", "drot.metrics.neighborhood_curve")
DOUBLE += ("drot.umap_membership",)


@pytest.mark.parametrize(
    "name", [n for n in ROWS if not is_estimator(n) and "datasets" not in n and n not in NOISE]
)
def test_float32(name):
    """The same numbers in either precision."""
    given = ROWS[name].good() | (ROUND if name in REACH else {})
    real = [key for key, x in given.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    small = {key: torch.from_numpy(given[key]).float() for key in real}
    found, wanted = (
        call(name, given | {key: x.to(dtype) for key, x in small.items()})
        for dtype in (torch.float32, torch.float64)
    )
    if name in REACH:
        assert found.plan.dtype == torch.float32
        assert found.objective == pytest.approx(wanted.objective, rel=1e-4)
        return
    found, wanted = leaves(found), leaves(wanted)
    assert name in DOUBLE or all(x.dtype != torch.float64 for x in found.values())
    for key, x in wanted.items():
        some = x.isfinite()
        assert torch.equal(some, found[key].isfinite())
        if some.any():
            gap = (found[key].double() - x.double())[some].abs().max()
            assert gap <= BOUNDS[name] * x[some].double().abs().max(), key


SEEDS = {
    "number": lambda: 2**40,  # more than scikit-learn's own generators take
    "NumPy": lambda: np.random.default_rng(3),
    "torch": lambda: torch.Generator().manual_seed(3),
    "RandomState": lambda: np.random.RandomState(3),  # of estimators
}
SEEDED = [
    (name, seed)
    for name in ROWS
    for seed in SEEDS
    if "random_state" in parameters(name) and (seed != "RandomState" or is_estimator(name))
]


@pytest.mark.parametrize(("name", "seed"), SEEDED)
def test_same_seed_same_bits(name, seed):
    given = ROWS[name].good() | ({"init": "random"} if name in STARTS else {})
    found = (call(name, given | {"random_state": SEEDS[seed]()}) for _ in range(2))
    one, two = (leaves(getattr(x, "result_", x)) for x in found)
    assert one and all(torch.equal(one[key], x) for key, x in two.items())


APART = {  # of one thread against two, as a share of the largest entry
    "cost": 1e-14, "P": 1e-9, "S": 1e-8, "D": 1e-9, "value": 1e-12, "gradient": 1e-10, "Z": 1e-7,
}  # fmt: skip


def digits() -> dict[str, np.ndarray]:
    """What may depend on the order of sums."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) + 4 * rng.integers(0, 3, size=(200, 1))
    cost, start = drot.sqeuclidean(X), drot.pca_start(X)
    P = drot.entropic_affinity(cost, perplexity=20.0, diagonal="drop").plan
    S = drot.symmetric_entropic_affinity(cost, perplexity=20.0).plan
    D = drot.doubly_stochastic_affinity(cost, perplexity=20.0).plan
    there = drot.SNELoss(drot.symmetrize(P), "student").evaluate(start)
    few = drot.tsne(drot.symmetrize(P), init=start, max_iter=5, on_failure="ignore")
    values = (cost.dense(), P, S, D, there.value, there.gradient, few.Z)
    return {name: np.asarray(x) for name, x in zip(APART, values, strict=True)}


def test_one_thread_against_two(monkeypatch):
    """Threads change the order of sums, and so the last digits only."""
    monkeypatch.setattr(threads, "_DEFAULT", 0)  # who asks for a number has it
    found = []
    for count in (1, 2):
        torch.set_num_threads(count)
        with threadpool_limits(count):
            found.append(digits())
    for name, bound in APART.items():
        one, two = (run[name] for run in found)
        assert np.abs(one - two).max() <= bound * np.abs(one).max(), name
