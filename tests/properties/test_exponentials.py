"""Exponentials as powers of 2, and sums of them along rows."""

import math
from decimal import Decimal

import pytest
import torch
from drot._core.kernels import exp, log_sum_exp

LEAST = {torch.float64: 2.0**-1074, torch.float32: 2.0**-149}


def test_log_sum_exp_is_the_library_one():
    x = torch.randn(5, 9, dtype=torch.float64) * 300
    x[2, 3:] = -torch.inf
    wanted = torch.logsumexp(x, dim=1)
    torch.testing.assert_close(log_sum_exp(x.clone()), wanted, rtol=1e-14, atol=1e-8)


@pytest.mark.parametrize("dtype", LEAST)
@pytest.mark.parametrize("factor", [1.0, -1.0, 0.5])
def test_exponential(dtype, factor):
    """Within 2 |factor x| + 4 roundings of e^(factor x), and near 0 within a small step."""
    low, u = (-760.0 if dtype == torch.float64 else -110.0), torch.finfo(dtype).eps / 2
    t = torch.cat([torch.linspace(low, 5.0, 3001), -torch.logspace(-8, 0, 200)]).to(dtype)
    x = t / factor
    found = exp(x, factor)
    for value, power in zip(found.tolist(), (factor * x.double()).tolist(), strict=True):
        right = Decimal(power).exp()
        normal = right > torch.finfo(dtype).tiny * 2
        share = Decimal((2 * abs(power) + 4) * u) if normal else Decimal("2e-4")
        step = 0 if normal else 2 * Decimal(LEAST[dtype])
        assert abs(Decimal(value) - right) <= right * share + step
    special = torch.tensor([0.0, -torch.inf, torch.inf, -1e4, torch.nan], dtype=dtype) / factor
    *numbers, none = exp(special, factor).tolist()
    assert numbers == [1.0, 0.0, math.inf, 0.0] and math.isnan(none)
    assert torch.equal(x, t / factor) and found.dtype == dtype
    assert exp(x, factor, out=x) is x and torch.equal(x, found)
