"""The compiled loops of the plane give the numbers of PyTorch's sweeps, and of the formulas."""

from __future__ import annotations

import drot
import drot.embeddings.losses
import numpy as np
import pytest
import torch
from clouds import cloud
from drot._core.kernels import suits
from drot.embeddings.losses import BernoulliLoss, SNEkhornLoss, SNELoss
from drot.embeddings.starts import random_start


def plans(n: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """A plan without its diagonal and a doubly stochastic one."""
    cost = drot.sqeuclidean(cloud("gaussian", 0, n, 5))
    rows = drot.symmetrize(drot.entropic_affinity(cost, n / 3, diagonal="drop"))
    return rows.to(dtype), drot.doubly_stochastic_affinity(cost, bandwidth=3.0).plan.to(dtype)


LOSSES = {
    "t-sne": lambda P, D: SNELoss(P, "student"),
    "t-sum": lambda P, D: SNELoss(D, "student", diagonal="keep"),
    "t-snekhorn": lambda P, D: SNEkhornLoss(D, "student"),
    "largevis": lambda P, D: BernoulliLoss(P, repulsion=3.0),
    "umap": lambda P, D: BernoulliLoss(P, "curve", a=1.58, b=0.9),
}
SCALES = [1e-6, 1e-2, 1.0, 30.0, 1e4]


def swept(loss, Z, monkeypatch):
    """What PyTorch gives."""
    with monkeypatch.context() as patch:
        patch.setattr(drot.embeddings.losses, "suits", lambda *_: False)
        return loss.evaluate(Z, tol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", LOSSES)
def test_loops_are_the_sweeps(name, scale, dtype, monkeypatch):
    """Value, both forces and dual, on one thread and on three."""
    digits = 1e-11 if dtype == torch.float64 else 2e-4
    threads = torch.get_num_threads()
    for n in (5, 600):  # 600 rows are shared by three threads
        loss, Z = LOSSES[name](*plans(n, dtype)), scale * random_start(n, dtype=dtype)
        Z[1] = Z[0]
        assert suits(Z, loss.plan)
        wanted = swept(loss, Z, monkeypatch)
        for count in (1, 3):
            torch.set_num_threads(count)
            try:
                found = loss.evaluate(Z, tol=1e-12)
            finally:
                torch.set_num_threads(threads)
            assert found.value == pytest.approx(wanted.value, rel=digits)
            for part in ("attraction", "repulsion"):
                a, b = getattr(found, part), getattr(wanted, part)
                assert a.dtype == dtype
                # the sweeps subtract sums over all points, which cancel: 1e-4 is theirs
                torch.testing.assert_close(a, b, rtol=0, atol=digits * float(b.abs().max() + scale))
            if found.dual is not None:
                torch.testing.assert_close(found.dual, wanted.dual, rtol=0, atol=10 * digits)


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e8, 1e70])
def test_no_digit_is_lost_at_any_size(size):
    """t-SNE of a map of any size, term by term; a sum that held K_ii = 1 would drown the others."""
    P, _ = plans(40, torch.float64)
    Z = size * random_start(40)
    found = SNELoss(P, "student").evaluate(Z)
    z = Z.numpy()
    u = 1 + ((z[:, None] - z) ** 2).sum(axis=2)
    K = np.where(np.eye(40), 0, 1 / u)
    value = (P.numpy() * np.log(u)).sum() + 40 * np.log(K.sum())
    assert found.value == pytest.approx(value, rel=1e-13)
    gaps = (z[:, None] - z) * K[..., None]
    for force, weights in ((found.attraction, P.numpy()), (found.repulsion, 40 * K / K.sum())):
        wanted = 4 * (weights[..., None] * gaps).sum(axis=1)
        np.testing.assert_allclose(force, wanted, rtol=0, atol=1e-13 * abs(wanted).max())


@pytest.mark.parametrize("name", LOSSES)
def test_positions_that_require_a_gradient(name):
    """They are read, and no graph is made of them."""
    loss, Z = LOSSES[name](*plans(20, torch.float64)), random_start(20)
    found = loss.evaluate(Z.clone().requires_grad_())
    assert torch.equal(found.gradient, loss.evaluate(Z).gradient)


def test_what_the_loops_leave_to_torch():
    """Other dimensions, plans met in tiles or laid out by columns, kernels whose squares vanish."""
    P, _ = plans(40, torch.float64)
    Z = random_start(40)
    assert suits(Z, P)
    assert not suits(random_start(40, n_components=3), P)
    assert not suits(Z, P.T) or P.T.is_contiguous()
    assert not suits(1e80 * Z, P)
    turned = SNELoss(P.T, "student").evaluate(Z)
    torch.testing.assert_close(turned.gradient, SNELoss(P, "student").evaluate(Z).gradient)
