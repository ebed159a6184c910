"""Digits: single against double precision, the same seed, other threads.

What solvers promise of hard clouds is in tests/properties/test_fuzz.py.
"""

import os
import subprocess
import sys

import drot
import numpy as np
import pytest
import torch
from faults import ROWS, STARTS, N, call, is_estimator, parameters
from torch import Tensor


def tensors(found) -> dict[str, Tensor]:
    """The arrays of a result, its plan too."""
    if isinstance(found, Tensor | float | tuple):
        parts = found if isinstance(found, tuple) else (found,)
        return {str(k): torch.as_tensor(x).to_dense() for k, x in enumerate(parts)}
    if isinstance(found, drot.costs.Pairwise):
        return {"dense": found.dense()}
    if isinstance(found, list):
        return {f"{k} {key}": x for k, one in enumerate(found) for key, x in tensors(one).items()}
    fields = vars(found) | ({"plan": found.plan} if hasattr(found, "plan") else {})
    return {key: x.to_dense() for key, x in fields.items() if isinstance(x, Tensor)}


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
NOISE = ("drot.spectral.kernel_pca", "drot.metrics.constraint_errors")  # numbers near 0
# Of double precision all the same: what a plan of it or no array decides, counts, POT, widths.
DOUBLE = ("drot.embed", "drot.embeddings.attraction_repulsion", "drot.random_start")
DOUBLE += ("drot.hyperbolic.wrapped_normal", "drot.metrics.neighborhood_curve")
DOUBLE += ("drot.gromov_wasserstein", "drot.umap_membership")


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
    found, wanted = tensors(found), tensors(wanted)
    assert name in DOUBLE or all(x.dtype != torch.float64 for x in found.values())
    for key, x in wanted.items():
        some = x.isfinite()
        assert torch.equal(some, found[key].isfinite())
        if some.any():
            gap = (found[key].double() - x.double())[some].abs().max()
            assert gap <= BOUNDS[name] * x[some].double().abs().max(), key


SEEDS = {
    "number": lambda: 3,
    "NumPy": lambda: np.random.default_rng(3),
    "torch": lambda: torch.Generator().manual_seed(3),
}
SEEDED = [n for n in ROWS if "random_state" in parameters(n) and not is_estimator(n)]


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)
@pytest.mark.parametrize("name", SEEDED)
def test_same_seed_same_bits(name, seed):
    given = ROWS[name].good() | ({"init": "random"} if name in STARTS else {})
    one, two = (tensors(call(name, given | {"random_state": seed()})) for _ in range(2))
    assert one and all(torch.equal(one[key], x) for key, x in two.items())


THREADS = """
import sys
import numpy as np
import torch
torch.set_num_threads(int(sys.argv[1]))
import drot

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5)) + 4 * rng.integers(0, 3, size=(200, 1))
cost = drot.sqeuclidean(X)
P = drot.entropic_affinity(cost, perplexity=20.0, diagonal="drop").plan
S = drot.symmetric_entropic_affinity(cost, perplexity=20.0)
D = drot.doubly_stochastic_affinity(cost, perplexity=20.0)
start = drot.pca_start(X)
loss = drot.SNELoss(drot.symmetrize(P), "student")
there = loss.evaluate(start)
few = drot.tsne(drot.symmetrize(P), init=start, max_iter=5, on_failure="ignore")
np.savez(sys.argv[2], cost=cost.dense(), P=P, S=S.plan, D=D.plan, value=there.value,
         gradient=there.gradient, Z=few.Z)
"""
APART = {  # of one thread against two, as a share of the largest entry
    "cost": 1e-14, "P": 1e-9, "S": 1e-8, "D": 1e-9, "value": 1e-12, "gradient": 1e-10, "Z": 1e-7,
}  # fmt: skip


def test_one_thread_against_two(tmp_path):
    """Threads change the order of sums, and so the last digits only."""
    found = []
    for threads in "12":
        command = [sys.executable, "-c", THREADS, threads, str(tmp_path / f"{threads}.npz")]
        environment = os.environ | {"OMP_NUM_THREADS": threads}
        subprocess.run(command, check=True, timeout=300, env=environment)
        found.append(np.load(command[-1], allow_pickle=False))
    for name, bound in APART.items():
        one, two = (run[name] for run in found)
        assert np.abs(one - two).max() <= bound * np.abs(one).max(), name
