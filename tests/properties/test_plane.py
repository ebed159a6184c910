"""The compiled loops of the plane give the numbers of PyTorch's sweeps, and of the formulas."""

import drot
import drot.embeddings.losses
import numpy as np
import pytest
import torch
from drot import fuzzy_union
from drot.costs.kernels import KERNELS, STUDENT, Curve
from drot.embeddings.kernel_matrix import TiledKernel
from drot.embeddings.loops import StudentPairs, suits
from drot.embeddings.losses import BernoulliLoss, KernelLoss, SNEkhornLoss, SNELoss
from drot.embeddings.starts import random_start
from objectives import A, B, fuzzy, joint, objective

# Those with a compiled loop.
LOSSES = ["t-sne", "t-sum", "t-snekhorn", "largevis-symmetric", "umap-union"]


def loss_of(name: str, n: int, dtype: torch.dtype = torch.float64) -> KernelLoss:
    if name == "umap-union":
        return BernoulliLoss(fuzzy_union(fuzzy(n)).to(dtype), "curve", a=A, b=B)
    return objective(name, n, like=lambda P: P.to(dtype))


@pytest.mark.parametrize(("dtype", "digits"), [(torch.float64, 1e-11), (torch.float32, 2e-4)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("name", LOSSES)
def test_loops_are_the_sweeps(name, scale, dtype, digits, monkeypatch):
    """Value, both forces and dual, on one thread and on three; positions may require a gradient."""
    for n in (5, 300):  # 300 rows are shared by three threads
        loss, Z = loss_of(name, n, dtype), scale * random_start(n).to(dtype)
        Z[1] = Z[0]
        assert suits(Z, loss.P.matrix)
        with monkeypatch.context() as patch:
            patch.setattr(drot.embeddings.losses, "suits", lambda *_: False)
            wanted = loss.evaluate(Z, tol=1e-12)
        for count in (1, 3):
            torch.set_num_threads(count)
            found = loss.evaluate(Z.clone().requires_grad_(), tol=1e-12)
            assert found.value == pytest.approx(wanted.value, rel=digits)
            for part in ("attraction", "repulsion"):
                a, b = getattr(found, part), getattr(wanted, part)
                assert a.dtype == dtype and not a.requires_grad
                # the sweeps subtract sums over all points, which cancel: 1e-4 is theirs
                torch.testing.assert_close(a, b, rtol=0, atol=digits * float(b.abs().max() + scale))
            if found.dual is not None:
                torch.testing.assert_close(found.dual, wanted.dual, rtol=0, atol=10 * digits)


@pytest.mark.parametrize("kind", [SNELoss, SNEkhornLoss])
def test_a_curve_that_is_not_students_has_no_loop_of_sums(kind, monkeypatch):
    """The loops of sums and products know Student's kernel; that of single pairs any curve."""
    P, Z = objective("t-snekhorn", 20).P.matrix, random_start(20)
    found = []
    for curve in (STUDENT, Curve(2.0, 0.8, 1e-3)):
        monkeypatch.setitem(KERNELS, "curve", curve)
        loss = kind(P, "curve", **({"diagonal": "keep"} if kind is SNELoss else {}))
        found.append(type(loss.kernel_at(Z)))
    assert found == [StudentPairs, TiledKernel]


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e8, 1e70])
def test_no_digit_is_lost_at_any_size(size):
    """t-SNE of a map of any size, term by term; a sum that held K_ii = 1 would drown the others."""
    P = joint(40)
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


@pytest.mark.parametrize("b, scale", [(1e3, 9.0), (90.0, 1e-3), (0.9, 1e70), (101.9, 1e-3)])
def test_curves_of_any_steepness(b, scale):
    """Odds beyond e^700 and below e^-700, at which numbers of floats end, are those of formulas."""
    P = fuzzy_union(fuzzy(40))
    Z = scale * random_start(40)
    z = Z.numpy()
    with np.errstate(over="ignore"):
        u = ((z[:, None] - z) ** 2).sum(axis=2) + 1e-3
    off = ~np.eye(40, dtype=bool)
    log_w = b * np.log(u)
    value = (P.numpy() * log_w).sum() + np.logaddexp(0, -log_w)[off].sum()
    if b * np.log(1e-3) < -637:
        with pytest.raises(ValueError, match=r"curve.s a 0.001\^b is below .* smaller b"):
            BernoulliLoss(P, "curve", b=b)
        assert BernoulliLoss(P, "student", b=b).kernel == STUDENT  # which does not use it
        return
    found = BernoulliLoss(P, "curve", b=b).evaluate(Z)
    assert found.value == pytest.approx(value, rel=1e-12)
    push = np.where(off, b / u / (1 + np.exp(np.minimum(log_w, 708))), 0)
    wanted = 4 * (push[..., None] * (z[:, None] - z)).sum(axis=1)
    np.testing.assert_allclose(found.repulsion, wanted, rtol=1e-9, atol=1e-12 * abs(wanted).max())


@pytest.mark.parametrize("a, b", [(2.0, 1.0), (1.0, 2.0), (0.5, 0.5), (1.0, 1.0)])
def test_curves_are_the_same_in_the_plane_and_in_space(a, b):
    """By a compiled loop and in tiles, where the slope is the kernel and where it is not."""
    P, Z = fuzzy_union(fuzzy(40)), random_start(40)
    flat = BernoulliLoss(P, "curve", a=a, b=b).evaluate(Z)
    deep = BernoulliLoss(P, "curve", a=a, b=b).evaluate(torch.nn.functional.pad(Z, (0, 1)))
    assert deep.value == pytest.approx(flat.value, rel=1e-12)
    torch.testing.assert_close(deep.gradient[:, :2], flat.gradient)


def test_what_the_loops_leave_to_torch():
    """Other dimensions, plans laid out by columns, kernels whose squares vanish."""
    P, Z = joint(40), random_start(40)
    assert suits(Z, P)
    assert not suits(random_start(40, n_components=3), P) and not suits(1e80 * Z, P)
    assert not suits(Z, P.T) or P.T.is_contiguous()
    turned = SNELoss(P.T, "student").evaluate(Z)
    torch.testing.assert_close(turned.gradient, SNELoss(P, "student").evaluate(Z).gradient)
