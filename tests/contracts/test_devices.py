"""Every public function on another device: the same numbers, and there they stay.

Without CUDA the other device is the make-believe one of ``card``; the first tests show that it
refuses what CUDA refuses.
"""

from functools import partial

import drot
import numpy as np
import pytest
import torch
from card import NAME, make_believe
from drot._core import memory as _memory
from faults import ROWS, call, is_estimator, leaves, parameters
from torch import Tensor


# --------------------------------------------------------------------- the make-believe device
@pytest.fixture
def card():
    with make_believe():
        yield NAME


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, y: x @ y.T,
        lambda x, y: torch.cat([x, y]),
        lambda x, y: y.index_select(0, torch.tensor([0])),
        lambda x, y: torch.add(x, 1, out=y),
    ],
)
def test_it_mixes_with_no_other(card, mix):
    X = torch.arange(6.0).reshape(2, 3)
    with pytest.raises(RuntimeError, match=r"expected all tensors to be on the same device"):
        mix(X, X.to(card))


# --------------------------------------------------------------------------- public functions
HERE = {  # what returns numbers on the CPU, and why
    "drot.metrics.neighborhood_curve": "a histogram, as its docstring says",
    "drot.embed": "the objective has a device of its own, and the start moves there",
    "drot.embeddings.attraction_repulsion": "the objective has a device of its own, as above",
}


def arrays(given: dict) -> dict[str, np.ndarray]:
    return {key: value for key, value in given.items() if isinstance(value, np.ndarray)}


FUNCTIONS = [name for name in ROWS if not is_estimator(name) and arrays(ROWS[name].good())]
ESTIMATORS = [name for name in ROWS if is_estimator(name) and "device" in parameters(name)]
# Compiled loops on the CPU and sweeps elsewhere round differently: in single precision descents
# end at different places within their tolerance, of the same objective.
DESCENTS = {"drot.distributional_reduction", "drot.cluster_then_reduce"}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name, dtype, gpu):
    """All arrays on the device: the result is there, and equal to rounding."""
    given = ROWS[name].good()
    here = {key: torch.from_numpy(value) for key, value in arrays(given).items()}
    here = {key: x.to(dtype) if x.is_floating_point() else x for key, x in here.items()}
    there = {key: x.to(gpu) for key, x in here.items()}
    wanted, found = call(name, given | here), call(name, given | there)
    if name in DESCENTS and dtype == torch.float32:
        assert found.Z.device.type == found.plan.device.type == gpu
        assert found.objective == pytest.approx(wanted.objective, rel=1e-4)
        return
    close = 1e-4 if dtype == torch.float32 else 1e-8
    place = "cpu" if name in HERE else gpu
    assert not isinstance(found, Tensor) or found.device.type == place
    found, wanted = leaves(found, floats=True), leaves(wanted, floats=True)
    assert found and found.keys() == wanted.keys()
    for key, y in wanted.items():
        x = found[key].cpu()
        assert x.ndim == 0 or found[key].device.type == place
        size = float(y.double().abs().nan_to_num(posinf=0).max()) if y.numel() else 1.0
        torch.testing.assert_close(x, y, rtol=0, atol=close * max(1.0, size), equal_nan=True)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator(name, gpu):
    """By its parameter: results on the device, what scikit-learn reads in NumPy."""
    given = ROWS[name].good()
    here, there = call(name, given | {"device": "cpu"}), call(name, given | {"device": gpu})
    assert {x.device.type for x in leaves(there.result_).values()} == {gpu}
    for key, value in vars(here).items():
        assert key.startswith("_") or not isinstance(vars(there)[key], Tensor)
        if isinstance(value, np.ndarray):
            assert vars(there)[key].shape == value.shape


def test_medoids_of_a_loaded_result(gpu):
    """Which is on the CPU, by a similarity that is not."""
    C = drot.gram(np.random.default_rng(0).normal(size=(9, 3))).dense().exp()
    found = drot.cluster_then_reduce(C, 3)
    assert torch.equal(found.medoids(C.to(gpu)).cpu(), found.medoids(C))


# --------------------------------------------------------------------- what a GPU would wait for
POINTS = 120


def picture(method, cost: Tensor):
    """From the plan of a cost to some iterations of an embedding."""
    plan = drot.symmetric_entropic_affinity(cost, perplexity=10.0).plan
    plan = plan if method is drot.snekhorn else plan.fill_diagonal_(0.0)
    return method(plan, max_iter=10, on_failure="ignore")


CALLS = {  # numbers that may be read, an iteration
    "entropic": (lambda C: drot.entropic_affinity(C, perplexity=10.0), 6),
    "doubly stochastic": (lambda C: drot.doubly_stochastic_affinity(C, bandwidth=1.0), 3),
    "symmetric": (lambda C: drot.symmetric_entropic_affinity(C, perplexity=10.0), 25),
    "SNEkhorn": (partial(picture, drot.snekhorn), 60),
    "t-SNE": (partial(picture, drot.tsne), 60),
    "LargeVis": (partial(picture, drot.largevis), 60),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_large_crosses(name, card):
    """No array of n x n numbers leaves the device, and few numbers an iteration are waited for."""
    run, reads = CALLS[name]
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(POINTS, 4)))
    cost = drot.sqeuclidean(X.to(card)).dense()
    with make_believe() as traffic:
        found = run(cost)
    assert traffic.moved <= 100 * POINTS < 8 * POINTS**2 / 8
    assert 0 < traffic.reads <= 150 + reads * found.n_iter


def test_memory_of_a_gpu(monkeypatch):
    """Free is also what torch keeps and does not use."""
    meters = {"mem_get_info": (2**30, 2**34), "memory_reserved": 2**29, "memory_allocated": 2**28}
    for name, found in meters.items():
        monkeypatch.setattr(f"torch.cuda.{name}", lambda device, found=found: found)
    cuda = torch.device("cuda", 0)
    assert _memory.free_memory(cuda) == 2**30 + 2**29 - 2**28
    assert _memory.physical_memory(cuda) == 2**34
