"""Similarities whose squares leave the range of floating point, and what is not a number."""

from __future__ import annotations

import math

import drot
import numpy as np
import pytest
import torch
from drot.costs.array import as_pairwise
from drot.gromov.barycenter import Reduced
from drot.gromov.contraction import Contraction, contraction
from drot.gromov.descent import Problem
from plans import cloud, problem, soft, weights

SIZES = [(torch.float32, 60), (torch.float32, -90), (torch.float64, -600)]


def groups(dtype: torch.dtype) -> torch.Tensor:
    return (cloud(24, 3) + 3 * cloud(3, 3, 1)[torch.arange(24) % 3]).to(dtype)


@pytest.mark.parametrize("kind", ["matrix", "tiles", "factors"])
@pytest.mark.parametrize(("dtype", "power"), SIZES, ids=str)
def test_the_unit_of_similarities(dtype, power, kind):
    """In another, a power of 2, plans are the same to the bit and objectives follow its square."""
    X = groups(dtype)
    make = {
        "matrix": lambda x: drot.sqeuclidean(x).dense(),
        "tiles": lambda x: drot.sqeuclidean(x, block=5),
        "factors": drot.factored_sqeuclidean,
    }[kind]
    costs = [make(X), make(X * 2.0 ** (power // 2))]
    ends = [drot.srgw_barycenter(C, 3, init="random") for C in costs]
    plans = [
        drot.semi_relaxed_gw(C, end.structure, init="random")
        for C, end in zip(costs, ends, strict=True)
    ]
    values = [drot.gw_objective(C, e.structure, e.plan) for C, e in zip(costs, ends, strict=True)]
    for one, other in (ends, plans):
        assert torch.equal(one.plan, other.plan)
        assert other.residual == one.residual and other.n_iter == one.n_iter
        assert other.objective == math.ldexp(one.objective, 2 * power) < math.inf
        assert other.trace == tuple(math.ldexp(value, 2 * power) for value in one.trace)
        assert one.objective > 0 and one.objective == pytest.approx(values[0], rel=1e-5)
    assert torch.equal(ends[1].structure, ends[0].structure * 2.0**power)
    assert values[1] == math.ldexp(values[0], 2 * power)


@pytest.mark.parametrize("size", [1e9, 1e-12])
def test_clusters_of_large_and_small_clouds(size):
    """In float32, whose squares of such distances are infinite or 0."""
    X = groups(torch.float32).numpy()
    ask = dict(n_clusters=3, random_state=0)
    plain = drot.SemiRelaxedGWClustering(**ask).fit(X)
    found = drot.SemiRelaxedGWClustering(**ask).fit((X * size).astype(np.float32))
    assert found.labels_.tolist() == plain.labels_.tolist() and found.result_.converged
    assert found.objective_ == pytest.approx(plain.objective_ * size**4, rel=1e-4, abs=0)


def test_squares_that_no_float_holds():
    """One sentence, and no number that is none."""
    A, B = problem(0, 6, 3)
    T = soft(weights(6), 3)
    for call in (
        lambda: drot.semi_relaxed_gw(1e200 * A, 1e200 * B),
        lambda: drot.semi_relaxed_gw(A, 1e200 * B),
        lambda: drot.srgw_barycenter(1e200 * A, 2),
        lambda: drot.gw_objective(1e200 * A, 1e200 * B, T),
        lambda: drot.srgw_barycenter(8e37 * (A - A.mean()).float().sign(), 2),
    ):
        with pytest.raises(ValueError, match=r"^squares of these similarities overflow; give"):
            call()
    X = (1e10 * groups(torch.float32)).float()
    for call in (
        lambda: drot.distributional_reduction(drot.gram(X), 3, kernel="gram"),
        lambda: drot.srgw_barycenter(3e37 * A.float(), 2, loss="kl"),
        lambda: drot.semi_relaxed_gw(3e37 * A.float(), 3e37 * B.float(), loss="kl"),
    ):
        with pytest.raises(ValueError, match=r"^the objective .* overflows; give them in larger"):
            call()
    assert drot.gw_objective(2.0**490 * A, 2.0**490 * B, T) < math.inf
    mean = 1e200 * A.mean()  # a mean needs no square
    assert float(drot.coarsen(1e200 * A, [0] * 6).structure) == pytest.approx(float(mean))


def test_a_gap_that_is_not_a_number():
    """It stays so, and counts as a failure."""
    A, B = problem(0, 6, 3)
    w = weights(6)
    T = soft(w, 3) * math.nan
    terms = Problem(contraction(A, B, "square"), w)
    state = terms.state(T)
    g = terms.half_gradient(state)
    assert math.isnan(terms.gap_at(state, g, g.min(dim=1).values))
    reduced = Reduced(Contraction(as_pairwise(A), B[:1, :1] * 0, "square"), w, 3)
    cell = reduced.cell(T)
    assert math.isnan(reduced.gap(cell))
