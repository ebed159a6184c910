"""Exponentials as powers of 2, sums of them along rows, and products with vectors."""

from __future__ import annotations

from decimal import Decimal

import pytest
import torch
from drot._core import kernels as _exponentials


def test_log_sum_exp_is_the_library_one():
    x = torch.randn(5, 9, dtype=torch.float64) * 300
    x[2, 3:] = -torch.inf
    assert torch.allclose(
        _exponentials.log_sum_exp(x.clone()), torch.logsumexp(x, dim=1), rtol=1e-14
    )


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
    found = _exponentials.exp(x, factor)
    for value, right, size in zip(found.tolist(), wanted, t.abs().tolist(), strict=True):
        assert abs(Decimal(value) / right - 1) <= Decimal((2 * size + 4) * u)
    special = torch.tensor([0.0, -torch.inf, torch.inf, -1e4, torch.nan], dtype=dtype) / factor
    zero, low, high, far, none = _exponentials.exp(special, factor).tolist()
    assert (zero, low, high, far) == (1.0, 0.0, float("inf"), 0.0) and none != none
    place = x.clone()
    assert _exponentials.exp(place, factor, out=place) is place and torch.equal(place, found)
    assert found.dtype == dtype and torch.equal(x, t / factor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_exponential_that_underflows_is_small(dtype):
    """Numbers too small for all their digits: as near as the smallest step."""
    x = torch.linspace(-760 if dtype == torch.float64 else -110, -80, 1000, dtype=dtype)
    step = 2.0**-1074 if dtype == torch.float64 else 2.0**-149
    found = _exponentials.exp(x).tolist()
    for value, v in zip(found, x.tolist(), strict=True):
        right = Decimal(v).exp()
        assert abs(Decimal(value) - right) <= right * Decimal("2e-4") + 2 * Decimal(step)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dots(dtype):
    """Products of a tile with vectors, ones among them, each a vector of its own."""
    tile, v, w = (torch.rand(s, dtype=dtype, generator=SEED) for s in ((7, 50), (50,), (50,)))
    found = _exponentials.dots(tile, v, None, w)
    for one, wanted in zip(found, (tile @ v, tile.sum(dim=1), tile @ w), strict=True):
        torch.testing.assert_close(one, wanted)
        assert one.shape == (7,) and one.dtype == dtype
    assert [one.shape for one in _exponentials.dots(tile, v)] == [(7,)]
