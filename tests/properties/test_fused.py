"""Compiled loops give what the plain ones give; without a compiler the plain ones run."""

from __future__ import annotations

import shutil
import warnings
from decimal import Decimal

import drot
import pytest
import torch
from clouds import cloud
from drot import _fused

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, compiling
needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("g++", "clang++")), reason="no C++ compiler here"
)


def clouds(dtype):
    g = torch.Generator().manual_seed(0)
    line = torch.tensor([[0.0], [1.0], [2.1]]) + 50 * torch.arange(6.0)[:, None, None]
    return {
        "clusters": torch.as_tensor(cloud("clusters", 0, 60, 4), dtype=dtype),
        "slack": line.reshape(-1, 1).to(dtype),  # a slack row in each far triple
        "heavy": torch.randn(80, 3, generator=g).pow(3).to(dtype),
    }


SOLVERS = {
    "entropic": (lambda C: drot.entropic_affinity(C, 2.5), ("eps", "lam")),
    "symmetric": (lambda C: drot.symmetric_entropic_affinity(C, 2.5), ("gamma",)),
    "sinkhorn": (lambda C: drot.doubly_stochastic_affinity(C, perplexity=3.5), ("f",)),
    "gaussian": (lambda C: drot.gaussian_affinity(C, perplexity=3.5), ("lam",)),
}


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.filterwarnings("error:the loop of")  # what is not compiled warns
def test_compiled_equals_plain(solver, dtype):
    solve, names = SOLVERS[solver]
    for kind, X in clouds(dtype).items():
        if dtype == torch.float32 and kind == "heavy":
            continue  # each shape and branch is a compilation of its own
        if solver == "symmetric" and kind == "slack":
            found = drot.symmetric_entropic_affinity(drot.sqeuclidean(X, fused=False), 1.5)
            fused = drot.symmetric_entropic_affinity(drot.sqeuclidean(X, block=7, fused=True), 1.5)
            assert found.slack.sum() == 6 and torch.equal(found.slack, fused.slack)
        else:
            found = solve(drot.sqeuclidean(X, fused=False))
            fused = solve(drot.sqeuclidean(X, block=7, fused=True))
        bound = 1e-8 if dtype == torch.float64 else 2e-2
        for name in names:
            one, other = getattr(found, name), getattr(fused, name)
            assert (one - other).abs().max() <= bound * one.abs().max(), (kind, name)
        assert (found.plan - fused.plan).abs().max() <= bound
        assert fused.converged and fused.n_iter >= 1


@needs_compiler
def test_the_compiled_loop_is_the_one_that_runs(monkeypatch):
    """A test that compared the plain loop with itself would prove nothing."""
    X = torch.as_tensor(cloud("gaussian", 1, 40, 3))
    drot.symmetric_entropic_affinity(drot.sqeuclidean(X, block=7, fused=True), 5)
    from drot import _sea_dual

    def refuse(*args):
        raise AssertionError("the plain loop ran")

    monkeypatch.setattr(_sea_dual._fresh_product, "function", refuse)
    drot.symmetric_entropic_affinity(drot.sqeuclidean(X, block=7, fused=True), 5)
    with pytest.raises(AssertionError, match="plain"):
        drot.symmetric_entropic_affinity(drot.sqeuclidean(X, block=7, fused=False), 5)


@needs_compiler
def test_long_float32_rows_keep_their_digits():
    """Sums of 2^18 terms, one after the other, in float32 would lose the third digit."""
    x = torch.rand(2, 2**18, generator=torch.Generator().manual_seed(2))
    add = _fused.Fusable(lambda tile: _fused.row_sum(tile * 1.0))
    exact = x.double().sum(dim=1)
    assert ((add(x, fused=True).double() - exact).abs() <= 1e-6 * exact).all()


def test_without_a_compiler(monkeypatch):
    """One warning, then the plain loop; an error of the input is not taken for one of it."""

    def broken(function, **options):
        def compiled(*args):
            raise RuntimeError("no compiler\nand a long story")

        return compiled

    monkeypatch.setattr(torch, "compile", broken)
    twice = _fused.Fusable(lambda x: 2 * x)
    with pytest.warns(RuntimeWarning, match=r"could not be compiled \(no compiler\); going on"):
        assert float(twice(torch.ones(1), fused=True)) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(twice(torch.ones(1), fused=True)) == 2
    fails = _fused.Fusable(lambda x: x @ torch.ones(3))
    with pytest.raises(RuntimeError, match=r"size|shape|inconsistent"):
        fails(torch.ones(2), fused=True)


def test_fusion_is_automatic_for_large_arrays_only(monkeypatch):
    cpu, double, single = torch.device("cpu"), torch.float64, torch.float32
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/" + name)
    assert _fused.automatic_fusion((40_000, 25_000), double, cpu)
    assert not _fused.automatic_fusion((40_000, 24_999), double, cpu)
    assert not _fused.automatic_fusion((40_000, 40_000), single, cpu)
    assert not _fused.automatic_fusion((40_000, 40_000), double, torch.device("meta"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert not _fused.automatic_fusion((40_000, 25_000), double, cpu)
    assert not drot.sqeuclidean(torch.rand(5, 2)).fused
    assert drot.sqeuclidean(torch.rand(5, 2), fused=True).fused
    with pytest.raises(ValueError, match="fused='yes' does not exist; choose from 'auto'"):
        drot.sqeuclidean(torch.rand(5, 2), fused="yes")


def test_log_sum_exp_is_the_library_one():
    x = torch.randn(5, 9, dtype=torch.float64) * 300
    x[2, 3:] = -torch.inf
    assert torch.allclose(_fused.log_sum_exp(x.clone()), torch.logsumexp(x, dim=1), rtol=1e-14)


DTYPES = [torch.float64, torch.float32]
SEED = torch.Generator().manual_seed(0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("factor", [1.0, -1.0, 0.5])
def test_exponential(dtype, factor):
    """Within 2 |factor x| + 4 roundings of e^(factor x); special values as everywhere."""
    u = torch.finfo(dtype).eps / 2
    least = -700.0 if dtype == torch.float64 else -86.0
    t = torch.cat([torch.linspace(least, 5.0, 4001), -torch.logspace(-8, 0, 200)]).to(dtype)
    x = t / factor
    wanted = [Decimal(v).exp() for v in (factor * x.double()).tolist()]
    found = _fused.exp(x, factor)
    for value, right, size in zip(found.tolist(), wanted, t.abs().tolist(), strict=True):
        assert abs(Decimal(value) / right - 1) <= Decimal((2 * size + 4) * u)
    special = torch.tensor([0.0, -torch.inf, torch.inf, -1e4, torch.nan], dtype=dtype) / factor
    zero, low, high, far, none = _fused.exp(special, factor).tolist()
    assert (zero, low, high, far) == (1.0, 0.0, float("inf"), 0.0) and none != none
    place = x.clone()
    assert _fused.exp(place, factor, out=place) is place and torch.equal(place, found)
    assert found.dtype == dtype and torch.equal(x, t / factor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_exponential_that_underflows_is_small(dtype):
    """Numbers too small for all their digits: as near as the smallest step."""
    x = torch.linspace(-760 if dtype == torch.float64 else -110, -80, 1000, dtype=dtype)
    step = 2.0**-1074 if dtype == torch.float64 else 2.0**-149
    found = _fused.exp(x).tolist()
    for value, v in zip(found, x.tolist(), strict=True):
        right = Decimal(v).exp()
        assert abs(Decimal(value) - right) <= right * Decimal("2e-4") + 2 * Decimal(step)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dots(dtype):
    """Products of a tile with vectors, ones among them, each a vector of its own."""
    tile, v, w = (torch.rand(s, dtype=dtype, generator=SEED) for s in ((7, 50), (50,), (50,)))
    found = _fused.dots(tile, v, None, w)
    for one, wanted in zip(found, (tile @ v, tile.sum(dim=1), tile @ w), strict=True):
        torch.testing.assert_close(one, wanted)
        assert one.shape == (7,) and one.dtype == dtype
    assert [one.shape for one in _fused.dots(tile, v)] == [(7,)]
