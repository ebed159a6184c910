"""Chapter 5: the objective of SNEkhorn, its gradient by the envelope theorem, the dual's bounds."""

import math

import numpy as np
import pytest
import torch
from drot.embeddings.losses import SNEkhornLoss
from plans import KERNELS, balanced, points

each_kernel = pytest.mark.parametrize("kernel", KERNELS)


@each_kernel
def test_prp_envelope_orders(kernel):
    """With f off by t, the value is off by O(t^2) and the gradient by O(t)."""
    P, Z = balanced(10, 20), points(11, 20)
    loss = SNEkhornLoss(P, kernel)
    exact = loss.evaluate(Z, tol=1e-12)
    nudge = points(12, 20, q=1)[:, 0]
    errors = []
    for t in (1e-2, 1e-3):
        near = loss.evaluate(Z, warm=exact.dual + t * nudge, tol=1e9)  # taken as it is
        assert torch.equal(near.dual, exact.dual + t * nudge) and near.products == 1
        gap = float((near.gradient - exact.gradient).abs().max())
        errors.append((near.value - exact.value, gap))
    (value, gradient), (value_less, gradient_less) = errors
    assert value > 0 and value / value_less == pytest.approx(100, rel=0.1)
    assert gradient / gradient_less == pytest.approx(10, rel=0.1)
    for tol in (1e-2, 1e-4, 1e-6):  # row sums within r of 1: n r^2 and 5 r
        near = loss.evaluate(Z, tol=tol)
        assert -1e-12 <= near.value - exact.value <= 20 * tol**2
        assert (near.gradient - exact.gradient).abs().max() <= 5 * tol
        assert near.products < exact.products


@each_kernel
@pytest.mark.parametrize("delta", [1.0, 3.0, 30.0])
def test_prp_one_place_forces(kernel, delta):
    """Parts in one place each: forces within are zero, those between at most the bound."""
    sizes = (4, 7, 20)
    P = torch.block_diag(*(balanced(k, m) for k, m in enumerate(sizes)))
    part = torch.repeat_interleave(torch.tensor(sizes))
    places = delta * torch.tensor([[0.0, 0.0], [1.0, 0.0], [-1.0, 1.5]]).double()
    gradient = SNEkhornLoss(P, kernel).evaluate(places[part], tol=1e-12).gradient
    s = delta * math.exp(-(delta**2)) if kernel == "gaussian" else delta / (1 + delta**2) ** 2
    for a, n in enumerate(sizes):
        rest = sum(math.sqrt(m / n) for b, m in enumerate(sizes) if b != a)
        slopes = gradient[part == a].norm(dim=1)
        assert slopes.max() <= 4 * s * rest + 1e-12
        assert slopes.max() - slopes.min() < 1e-12  # one force for all
    if delta == 1.0:
        assert slopes.max() > 0.05 * 4 * s * rest  # the bound is no giant


@each_kernel
def test_prp_one_place_second_order(kernel):
    """All in one place: no slope, and F(Z + tV) - F(Z) = -2 t^2 tr V^T P V + O(t^4)."""
    P, V = balanced(3, 12), points(4, 12)
    V -= V.mean(dim=0)
    loss, Z = SNEkhornLoss(P, kernel), torch.ones(12, 2, dtype=torch.float64)
    here = loss.evaluate(Z, tol=1e-14)
    assert here.gradient.abs().max() < 1e-13
    wanted = -2 * float(torch.trace(V.T @ P @ V))
    assert wanted < -1
    errors = [
        abs(loss.evaluate(Z + t * V, tol=1e-13).value - here.value - t**2 * wanted)
        for t in (0.1, 0.05, 0.025)
    ]
    ratios = np.divide(errors[:-1], errors[1:])
    assert (ratios > 13).all() and (ratios < 20).all()  # 16: the error is of fourth order
    assert errors[-1] < 0.01 * 0.025**2 * abs(wanted)
