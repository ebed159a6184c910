"""A new loss or kernel is one entry, and every method that takes one takes it."""

import drot
import numpy as np
import pytest
import torch
from drot.costs.kernels import KERNELS, Kernel
from drot.embeddings.place import place
from drot.gromov.loss import LOSSES, Loss

EPS = 1e-12


def binary() -> Loss:
    """Binary cross-entropy less the entropy of a: the divergence of two probabilities."""
    return Loss(
        "binary",
        f1=lambda a: torch.xlogy(a, a) + torch.xlogy(1 - a, 1 - a),
        f2=lambda b: -torch.log1p(-b.clamp_max(1 - EPS)),
        h2=lambda b: torch.logit(b, EPS),
        low=0.0,
        high=1.0,
    )


def naive(C: np.ndarray, B: np.ndarray, T: np.ndarray) -> float:
    a, b = C[:, None, :, None], B[None, :, None, :]
    L = a * np.log(a / b) + (1 - a) * np.log((1 - a) / (1 - b))
    return float(np.einsum("ikjl,ik,jl->", L, T, T))


@pytest.fixture
def graph(monkeypatch) -> torch.Tensor:
    """Probabilities of edges of two groups; ``binary`` is a loss while the test runs."""
    monkeypatch.setitem(LOSSES, "binary", binary())
    z = torch.randn(14, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    z[7:] += 3
    return 0.05 + 0.9 / (1 + torch.cdist(z, z).square())


def test_a_loss_is_one_entry(graph):
    """Objective, semi-relaxed plans and barycentres of binary cross-entropy."""
    C, n = graph, len(graph)
    B = torch.tensor([[0.9, 0.1, 0.2], [0.1, 0.8, 0.1], [0.2, 0.1, 0.5]]).double()
    found = drot.semi_relaxed_gw(C, B, loss="binary")
    value = naive(C.numpy(), B.numpy(), found.plan.numpy())
    assert found.objective == pytest.approx(value, rel=1e-9) and found.residual < 1e-9
    assert drot.gw_objective(C, B, found.plan, loss="binary") == pytest.approx(value, rel=1e-9)
    middle = drot.srgw_barycenter(C, 2, loss="binary")
    q, M = middle.plan.sum(0), middle.plan.T @ C @ middle.plan
    torch.testing.assert_close(middle.structure, M / torch.outer(q, q))  # the mean, as of squares
    value = naive(C.numpy(), middle.structure.numpy(), middle.plan.numpy())
    assert middle.objective == pytest.approx(value, rel=1e-9)
    assert len(set(middle.labels[:7].tolist())) == 1
    wrong = torch.full((n, n), 1.5).double()
    with pytest.raises(ValueError, match="none above 1"):
        drot.srgw_barycenter(wrong, 2, loss="binary")
    # kernels have K(z, z) = 1, and L(a, 1) is infinite: of two points in one place too
    T, one = torch.full((n, 2), 0.5 / n).double(), torch.eye(2).double() * 0.5 + 0.5
    assert drot.gw_objective(C, one, T, loss="binary") == float("inf")


class Rational(Kernel):
    """K = (1 + u / 2)^-2: Student's of another degree."""

    def cost(self, u: torch.Tensor) -> torch.Tensor:
        return 2 * torch.log1p(u / 2)

    def slope(self, u: torch.Tensor) -> torch.Tensor:
        return 1 / (1 + u / 2)

    def curvature(self, u: torch.Tensor) -> torch.Tensor:
        return -0.5 / (1 + u / 2).square()


def test_a_kernel_is_one_entry(graph, monkeypatch):
    """Embeddings, new points, DistR, hyperbolic prototypes and the Markov field take it."""
    monkeypatch.setitem(KERNELS, "rational", Rational())
    P = graph.clone().fill_diagonal_(0)
    Z = torch.randn(14, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    loss = drot.embeddings.SNELoss(P, "rational")
    Z.requires_grad_()
    C = 2 * torch.log1p((Z[:, None] - Z).square().sum(dim=2) / 2)
    off = ~torch.eye(14, dtype=torch.bool)
    value = (P * C).sum() + P.sum() * (-C[off]).exp().sum().log()
    (slope,) = torch.autograd.grad(value, Z)
    Z = Z.detach()
    torch.testing.assert_close(loss.evaluate(Z).gradient, slope)
    assert drot.embed(loss).converged
    rows = drot.embeddings.SNELoss(P, "rational", normalization="rows")
    assert rows.latent_plan(Z).sum(dim=1).sub(P.sum(dim=1)).abs().max() < 1e-12
    new = place(torch.full((1, 14), 1 / 14).double(), Z[:, :2], Rational(), tol=1e-9)
    assert new.residual.max() <= 1e-9
    for found in (
        drot.distributional_reduction(graph, 4, kernel="rational"),
        drot.hyperbolic.distributional_reduction(graph, 4, kernel="rational"),
    ):
        groups = (set(found.labels[part].tolist()) for part in (slice(7), slice(7, 14)))
        assert found.converged and not set.intersection(*groups)
    density = drot.graphs.mrf_log_density(Z, P, kernel="rational")
    assert density == pytest.approx(-(P * C).sum().item())
