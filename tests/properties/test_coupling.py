"""What holds of every objective: values, gradients, symmetries, forces; and UMAP's graph."""

import math

import drot
import numpy as np
import pytest
import torch
from clouds import cloud, quick
from drot.affinities.umap import umap_membership
from drot.embeddings.losses import BernoulliLoss, SNEkhornLoss, attraction_repulsion
from drot.embeddings.starts import random_start
from hypothesis import given
from hypothesis import strategies as st
from objectives import BERNOULLI, OBJECTIVES, cost, objective

OFF = ~torch.eye(12, dtype=torch.bool)


def log_kernel(loss, Z: torch.Tensor) -> torch.Tensor:
    """-C, dense and differentiable, as the formulas say."""
    d2 = (Z[:, None] - Z[None]).square().sum(dim=2)
    curve = loss.kernel
    if curve.flat:
        return -d2
    return -(math.log(curve.a) + curve.b * torch.log(d2 + curve.guard))


@pytest.mark.parametrize("prior", ["binary", "row", "edges"])
def test_impossible_edges(prior):
    """log K = -inf is fine where P = 0: the value is that of a vanishing kernel."""
    P = drot.expected_graph(torch.tensor([[0.0, 0, -math.inf], [0, 0, 0], [0, 0, 0]]).double())
    c = torch.tensor([[0.0, 0.3, -math.inf], [1.0, 0.0, 0.2], [0.1, -0.5, 0.0]]).double()
    low = drot.coupling_loss(P, c.clamp_min(-60.0), prior=prior)
    value = drot.coupling_loss(P, c.requires_grad_(), prior=prior)
    value.backward()
    assert value.item() == pytest.approx(low.item(), rel=1e-12)
    assert c.grad.isfinite().all() and c.grad[0, 2] == 0


def test_coupling_loss_keeps_its_digits():
    """Odds of e^30 and of e^-30 to rounding, where log(1 - Q) would cancel."""
    c, P = torch.tensor([[[0.0, 30.0], [-30.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]]).double()
    value = drot.coupling_loss(P, c, prior="binary").item()
    assert value == pytest.approx(2 * math.log1p(math.exp(-30)), rel=1e-12)


def test_coupling_loss_of_affinities():
    """They stand for their plans: the law of Z may be one too."""
    P, Q = (
        drot.entropic_affinity(cost(9, seed=s), perplexity=3.0 + s, diagonal="drop") for s in (0, 1)
    )
    found = drot.coupling_loss(P, Q, prior="row")
    assert found == drot.coupling_loss(P.plan, Q.log_plan, prior="row")


@pytest.mark.parametrize(("scale", "q"), [(1e-2, 2), (1.0, 3), (30.0, 1)])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_two_routes(name, scale, q):
    """Against the dense cross-entropy, which sees no shift, rotation or order of the points: value,
    and the gradient and its attraction by autograd. The same Z gives the same after any other."""
    loss, Z = objective(name), scale * random_start(12, n_components=q) + 3.0
    z = Z.clone().requires_grad_()
    c, P = log_kernel(loss, z), loss.P.matrix
    if isinstance(loss, BernoulliLoss):
        g = loss.repulsion
        dense = g * drot.coupling_loss(P / g, c, prior="binary")
    elif isinstance(loss, SNEkhornLoss):
        f = torch.log(loss.latent_plan(Z, tol=1e-12).diagonal()) / 2
        # at the optimal f the value is stationary, so f may be held
        dense = -(P * c).sum() - 2 * f.sum() + torch.exp(f[:, None] + f + c).sum() - loss.n
    else:
        prior, loops = "row" if loss.normalization == "rows" else "edges", loss.self_pairs
        share = loss.n / loss.mass if prior == "edges" else 1.0
        dense = drot.coupling_loss(P * share, c, prior=prior, diagonal="keep" if loops else "drop")
        dense = dense * (loss.mass / loss.n)
    found = loss.evaluate(Z, tol=1e-12)
    assert found.passes == 1.0  # over the kernel; products only where row sums are iterated on
    assert (found.products != 0) == ("snekhorn" in name) == (found.dual is not None)
    assert found.products <= 18  # a damping without momentum takes 20 to 25
    assert found.value == pytest.approx(dense.item(), rel=1e-10, abs=1e-10)
    (wanted,) = torch.autograd.grad(dense, z, retain_graph=True)
    (pull,) = torch.autograd.grad((P * c).sum(), z)  # -<P, C>
    digits = {"rtol": 0, "atol": 1e-9 * max(1, float(wanted.abs().max()))}
    torch.testing.assert_close(found.gradient, wanted, **digits)
    attraction, repulsion = attraction_repulsion(loss, Z, tol=1e-12)
    torch.testing.assert_close(attraction, pull, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(attraction + repulsion, -wanted, **digits)
    loss.evaluate(2 * Z)
    assert torch.equal(loss.evaluate(Z, tol=1e-12).gradient, found.gradient)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_constant_makes_a_divergence(name):
    """F + constant is KL(P | Q), for Bernoulli gamma KL(P / gamma | Q) edge by edge."""
    loss, Z = objective(name), random_start(12)
    P, Q = loss.P.matrix, loss.latent_plan(Z, tol=1e-12)
    assert torch.equal(Q, loss.latent_plan(Z.numpy(), tol=1e-12))
    if name in BERNOULLI:
        P, Q = P[OFF] / loss.repulsion, Q[OFF]
        kl = torch.xlogy(P, P / Q) + torch.xlogy(1 - P, (1 - P) / (1 - Q))
        kl = loss.repulsion * float(kl.sum())
    else:
        kl = drot.kl_divergence(P, Q)
        assert float(Q.sum()) == pytest.approx(loss.mass)
    assert kl > 0.01
    assert loss.evaluate(Z, tol=1e-12).value + loss.constant == pytest.approx(kl, rel=1e-9)


@pytest.mark.parametrize(("name", "block"), [("largevis", None), ("snekhorn", 7)])
def test_objectives_count_the_points(name, block):
    """Positions of more or fewer points than the plan's, or of another shape, are refused."""
    loss, Z = objective(name, 20, block), random_start(21)
    assert repr(loss) == f"{type(loss).__name__}(20 x 20, kernel={loss.kernel!r})"
    for wrong, has in ((Z, "21 points"), (Z[:10], "10 points"), (Z[:20, 0], r"shape \(20,\)")):
        for ask in (loss.evaluate, loss.latent_plan):
            with pytest.raises(ValueError, match=f"Z has {has} and the plan 20"):
                ask(wrong)


@quick
@given(
    kind=st.sampled_from(["gaussian", "scales", "clusters", "outliers", "line"]),
    seed=st.integers(0, 1000),
    k=st.integers(3, 12),
)
def test_membership_solves_its_equation(kind, seed, k):
    """rho by sorting; sigma in the equation of its row, which sums to log2 k."""
    X = cloud(kind, seed, 16, 3)
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    found = umap_membership(drot.sqeuclidean(X), n_neighbors=k, tol=1e-12, max_iter=60)
    plan, rho, sigma = (x.numpy() for x in (found.plan, found.rho, found.sigma))
    assert found.residual <= 1e-12
    assert (plan.diagonal() == 0).all() and plan.max() <= 1 and (plan >= 0).all()
    for i in range(16):
        near = np.sort(np.delete(D[i], i))[: k - 1]
        assert rho[i] == pytest.approx(min(near[near > 0], default=0.0), rel=1e-6, abs=1e-9)
        surplus = np.exp(-np.maximum(near - rho[i], 0) / sigma[i]).sum() - np.log2(k)
        if found.floored[i]:
            assert sigma[i] == pytest.approx(1e-3 * near.sum() / k, rel=1e-6)
            assert surplus > -1e-9
        else:
            assert abs(surplus) < 1e-9
            assert plan[i].sum() == pytest.approx(np.log2(k), abs=1e-9)


def test_membership_of_duplicates():
    """Copies are certain neighbours and do not make rho 0; a cloud of copies is all joined."""
    X = torch.tensor([[0.0], [0.0], [1.0], [3.0], [6.0], [10.0]], dtype=torch.float64)
    found = umap_membership(drot.sqeuclidean(X), n_neighbors=5)
    assert found.rho[:2].tolist() == [1.0, 1.0]
    assert found.plan[0, 1] == found.plan[1, 0] == found.plan[0, 2] == 1
    # two certain edges where log2 3 = 1.58 are asked for: sigma is the floor
    tight = umap_membership(drot.sqeuclidean(X), n_neighbors=3)
    assert tight.floored.tolist()[:2] == [True, True] and not tight.floored[3]
    assert tight.converged and tight.plan[0].sum() == 2
    same = umap_membership(torch.zeros(5, 5), n_neighbors=5)
    assert same.floored.all() and (same.rho == 0).all()
    assert torch.equal(same.plan, torch.ones(5, 5) - torch.eye(5))
