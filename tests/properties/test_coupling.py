"""What holds of every coupling: gradients, two routes to a value, symmetries, forces, descent."""

from __future__ import annotations

import itertools
import math

import drot
import drot.embeddings.plans
import numpy as np
import pytest
import torch
from clouds import cloud, quick
from drot.affinities.umap import umap_curve, umap_membership
from drot.embeddings.embed import embed
from drot.embeddings.losses import BernoulliLoss, SNEkhornLoss, SNELoss, attraction_repulsion
from drot.embeddings.methods import largevis, umap
from drot.embeddings.starts import random_start
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

A, B = umap_curve()
PRIORS = ("binary", "row", "edges")


def rows(n: int = 12) -> torch.Tensor:
    """Rows of sum 1, not symmetric, diagonal 0."""
    cost = drot.sqeuclidean(cloud("gaussian", 0, n, 5))
    return drot.entropic_affinity(cost, n / 3, diagonal="drop").plan


def fuzzy(n: int = 12) -> torch.Tensor:
    return drot.fuzzy_union(umap_membership(drot.sqeuclidean(cloud("gaussian", 0, n, 5)), 6))


def stochastic(n: int = 12) -> torch.Tensor:
    cost = drot.sqeuclidean(cloud("gaussian", 0, n, 5))
    return drot.doubly_stochastic_affinity(cost, bandwidth=3.0, tol=1e-12).plan


# Objectives of this chapter, by the plan they are made for.
BERNOULLI = {
    "largevis": lambda P=None: BernoulliLoss(rows() if P is None else P),
    "largevis-symmetric": lambda P=None: BernoulliLoss(
        drot.symmetrize(rows()) if P is None else P, repulsion=7.0
    ),
    "largevis-curve": lambda P=None: BernoulliLoss(rows() if P is None else P, "curve"),
    "umap": lambda P=None: BernoulliLoss(fuzzy() if P is None else P, "curve", a=A, b=B),
    "umap-strong": lambda P=None: BernoulliLoss(
        fuzzy() if P is None else P, "curve", a=A, b=B, guard=0.2, repulsion=3.0
    ),
}
LOSSES = {
    **BERNOULLI,
    "sne": lambda: SNELoss(rows(), normalization="rows"),
    "t-rows": lambda: SNELoss(rows(), "student", normalization="rows"),
    "symmetric-sne": lambda: SNELoss(drot.symmetrize(rows())),
    "t-sne": lambda: SNELoss(drot.symmetrize(rows()), "student"),
    "snekhorn": lambda: SNEkhornLoss(stochastic()),
    "t-snekhorn": lambda: SNEkhornLoss(stochastic(), "student"),
}


def log_kernel(loss, Z: torch.Tensor) -> torch.Tensor:
    """-C, dense and differentiable, as the formulas say."""
    d2 = (Z[:, None] - Z[None]).square().sum(dim=2)
    if loss.kernel == "gaussian":
        return -d2
    if loss.kernel == "student":
        return -torch.log(1 + d2)
    return -(math.log(loss.a) + loss.b * torch.log(d2 + loss.guard))


# ------------------------------------------------------------------------------ coupling_loss
def log_probability(W: np.ndarray, c: np.ndarray, prior: str) -> float:
    """log P(W), by counting over all pairs or over the shares of a multinomial."""
    off = ~np.eye(len(c), dtype=bool)
    w = np.where(off, np.exp(c), 0.0)
    if prior == "binary":
        q = w / (1 + w)
        return float(np.log(np.where(W == 1, q, 1 - q)[off]).sum())
    if prior == "row":
        return float(np.log((w / w.sum(axis=1, keepdims=True))[W == 1]).sum())
    n = len(c)
    return math.lgamma(n + 1) + sum(
        k * math.log(p) - math.lgamma(k + 1)
        for k, p in zip(W[off], (w / w.sum())[off], strict=True)
        if k
    )


@pytest.mark.parametrize("prior", PRIORS)
def test_coupling_loss_is_an_expectation(prior):
    """All graphs with one edge out of each of four nodes: the mean of -log P_Z, and the
    constant that is left out."""
    n, rng = 4, np.random.default_rng(0)
    P = rng.random((n, n))
    np.fill_diagonal(P, 0.0)
    P /= P.sum(axis=1, keepdims=True)
    c = rng.normal(size=(n, n))
    mean = 0.0
    for heads in itertools.product(range(n), repeat=n):  # the law D: a head for each row
        W = np.zeros((n, n))
        W[range(n), heads] = 1
        share = math.prod(P[range(n), heads])
        if share > 0:
            mean -= share * log_probability(W, c, prior)
    found = drot.coupling_loss(P, c, prior=prior)
    left_out = math.lgamma(n + 1) if prior == "edges" else 0.0
    assert found.item() == pytest.approx(mean + left_out, rel=1e-12)


@pytest.mark.parametrize("diagonal", ["drop", "keep"])
@pytest.mark.parametrize("prior", PRIORS)
def test_the_derivative_is_a_mean_graph(prior, diagonal):
    """dH/dc = Q - P; second derivatives exist too."""
    c = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 6))).requires_grad_()
    data = torch.from_numpy(np.random.default_rng(1).normal(size=(6, 6)))
    P = drot.expected_graph(data, prior=prior, diagonal=diagonal)
    options = {"prior": prior, "diagonal": diagonal}
    drot.coupling_loss(P, c, **options).backward()
    Q = drot.expected_graph(c.detach(), **options)
    torch.testing.assert_close(c.grad, Q - P, rtol=0, atol=1e-13)
    assert torch.autograd.gradgradcheck(lambda x: drot.coupling_loss(P, x, **options), (c,))
    # so it is least where the two graphs are one
    least = drot.coupling_loss(P, data, **options)
    assert least < drot.coupling_loss(P, data + 0.1 * c.detach(), **options)


@pytest.mark.parametrize("prior", PRIORS)
def test_impossible_edges(prior):
    """log K = -inf is fine where P = 0: the value is that of a vanishing kernel."""
    P = drot.expected_graph(torch.tensor([[0.0, 0, -math.inf], [0, 0, 0], [0, 0, 0]]).double())
    c = torch.tensor([[0.0, 0.3, -math.inf], [1.0, 0.0, 0.2], [0.1, -0.5, 0.0]]).double()
    low = c.clamp_min(-60.0)
    c.requires_grad_()
    value = drot.coupling_loss(P, c, prior=prior)
    value.backward()
    assert value.item() == pytest.approx(drot.coupling_loss(P, low, prior=prior).item(), rel=1e-12)
    assert c.grad.isfinite().all() and c.grad[0, 2] == 0


def test_coupling_loss_keeps_its_digits():
    """Odds of e^30 and of e^-30 to rounding, where log(1 - Q) would cancel."""
    c = torch.tensor([[0.0, 30.0], [-30.0, 0.0]], dtype=torch.float64)
    P = torch.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    value = drot.coupling_loss(P, c, prior="binary").item()
    assert value == pytest.approx(2 * math.log1p(math.exp(-30)), rel=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
def test_coupling_loss_of_affinities(prior):
    """Affinities stand for their plans: the law of Z may be one too."""
    cost = drot.sqeuclidean(cloud("gaussian", 3, 9, 2))
    P = drot.entropic_affinity(cost, 3.0, diagonal="drop")
    Q = drot.entropic_affinity(drot.sqeuclidean(cloud("gaussian", 4, 9, 2)), 4.0, diagonal="drop")
    found = drot.coupling_loss(P, Q, prior=prior)
    assert found == drot.coupling_loss(P.plan, Q.log_plan, prior=prior)
    assert drot.coupling_loss(P, Q.log_plan.float(), prior=prior).dtype == torch.float32


# ---------------------------------------------------------------------------------- objectives
@pytest.mark.parametrize("scale", [1e-2, 1.0, 30.0])
@pytest.mark.parametrize("name", LOSSES)
def test_two_routes(name, scale):
    """Tiles against the dense cross-entropy: value, and gradient by autograd."""
    loss = LOSSES[name]()
    Z = (scale * random_start(12)).requires_grad_()
    c, P = log_kernel(loss, Z), loss.plan
    if isinstance(loss, BernoulliLoss):
        g = loss.repulsion
        dense = g * drot.coupling_loss(P / g, c, prior="binary")
    elif isinstance(loss, SNEkhornLoss):
        f = torch.log(loss.latent_plan(Z.detach(), tol=1e-12).diagonal()) / 2
        # at the optimal f the value is stationary, so f may be held
        dense = -(P * c).sum() - 2 * f.sum() + torch.exp(f[:, None] + f + c).sum() - loss.n
    else:
        prior = "row" if loss.normalization == "rows" else "edges"
        if prior == "edges":
            P = P * (loss.n / loss.mass)
        dense = drot.coupling_loss(P, c, prior=prior) * (loss.mass / loss.n)
    found = loss.evaluate(Z.detach(), tol=1e-12)
    dense.backward()
    assert found.value == pytest.approx(dense.item(), rel=1e-10, abs=1e-10)
    size = float(Z.grad.abs().max())
    torch.testing.assert_close(found.gradient, Z.grad, rtol=0, atol=1e-9 * max(1, size))


@pytest.mark.parametrize("scale", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("name", BERNOULLI)
def test_finite_differences(name, scale):
    """The slope of the printed value, coordinate by coordinate."""
    loss, Z = BERNOULLI[name](), scale * random_start(12)
    gradient, step = loss.evaluate(Z).gradient, 1e-5 * scale
    for i, k in itertools.product(range(12), range(2)):
        move = torch.zeros_like(Z)
        move[i, k] = step
        up, down = (loss.evaluate(Z + s * move).value for s in (1, -1))
        slope = (up - down) / (2 * step)
        assert gradient[i, k].item() == pytest.approx(slope, rel=1e-5, abs=1e-4)


@quick
@given(name=st.sampled_from(sorted(BERNOULLI)), seed=st.integers(0, 1000), q=st.integers(1, 3))
def test_symmetries(name, seed, q):
    """F sees no rotation, reflection or shift, nor the order of the points."""
    rng = np.random.default_rng(seed)
    loss, Z = BERNOULLI[name](), torch.from_numpy(rng.normal(size=(12, q)))
    R = torch.from_numpy(np.linalg.qr(rng.normal(size=(q, q)))[0])
    here, there = loss.evaluate(Z), loss.evaluate(Z @ R + 3.0)
    assert there.value == pytest.approx(here.value, rel=1e-10)
    torch.testing.assert_close(there.gradient, here.gradient @ R, rtol=0, atol=1e-8)
    order = rng.permutation(12)
    other = BERNOULLI[name](loss.plan[order][:, order])
    there = other.evaluate(Z[order])
    assert there.value == pytest.approx(here.value, rel=1e-12)
    torch.testing.assert_close(there.gradient, here.gradient[order], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", BERNOULLI)
@pytest.mark.parametrize("entries", [1, 500])
def test_tiles_do_not_matter(name, entries, monkeypatch):
    """Tiles of 16 or 25 rows of 40: the same value, gradient, forces and plan."""
    P = (0.9 * torch.rand(40, 40, dtype=torch.float64)).fill_diagonal_(0)
    Z = random_start(40)
    whole = BERNOULLI[name](P)
    monkeypatch.setattr(drot.embeddings.plans, "tile_entries", lambda _: 2 * entries)
    parts = BERNOULLI[name](P)
    assert whole.P.block == 40 > parts.P.block
    a, b = whole.evaluate(Z), parts.evaluate(Z)
    assert b.value == pytest.approx(a.value, rel=1e-13)
    torch.testing.assert_close(b.gradient, a.gradient, rtol=0, atol=1e-11)
    torch.testing.assert_close(parts.latent_plan(Z), whole.latent_plan(Z), rtol=0, atol=1e-15)
    assert parts.constant == pytest.approx(whole.constant, rel=1e-13)
    for x, y in ((b.attraction, a.attraction), (b.repulsion, a.repulsion)):
        torch.testing.assert_close(x, y, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", BERNOULLI)
def test_float32(name):
    """Single precision gives the same value and gradient, to its digits."""
    loss, Z = BERNOULLI[name](), random_start(12)
    single = BERNOULLI[name](loss.plan.float())
    a, b = loss.evaluate(Z), single.evaluate(Z.float())
    assert b.gradient.dtype == torch.float32
    assert b.value == pytest.approx(a.value, rel=1e-6)
    size = float(a.gradient.abs().max())
    torch.testing.assert_close(b.gradient.double(), a.gradient, rtol=0, atol=3e-6 * size)


def test_only_the_two_directions_together_count():
    """P, its transpose and their mean have one objective: LargeVis may symmetrise or not."""
    P, Z = rows(), random_start(12)
    losses = [BernoulliLoss(plan) for plan in (P, P.T, drot.symmetrize(P))]
    assert [loss.symmetric for loss in losses] == [False, False, True]
    found = [loss.evaluate(Z) for loss in losses]
    for other in found[1:]:
        assert other.value == pytest.approx(found[0].value, rel=1e-13)
        torch.testing.assert_close(other.gradient, found[0].gradient, rtol=0, atol=1e-13)
    # over unordered pairs: bar P for the edge, 2 - bar P for its absence
    bar, Q = P + P.T, losses[0].latent_plan(Z)
    i, j = torch.triu_indices(12, 12, offset=1)
    value = -(bar * Q.log() + (2 - bar) * (-Q).log1p())[i, j].sum()
    assert found[0].value == pytest.approx(value.item(), rel=1e-12)


def test_kernels_of_pairs():
    """Q = 1 / (2 + d^2) and 1 / (1 + a d^2b); the first is the second with a guard of 1."""
    P, Z = fuzzy(), random_start(12)
    d2 = (Z[:, None] - Z[None]).square().sum(dim=2)
    off = ~torch.eye(12, dtype=torch.bool)
    Q = BernoulliLoss(P).latent_plan(Z)
    torch.testing.assert_close(Q[off], 1 / (2 + d2[off]))
    assert (Q.diagonal() == 0).all()
    one = BernoulliLoss(P, "curve", a=1.0, b=1.0, guard=1.0)
    assert one.evaluate(Z).value == pytest.approx(BernoulliLoss(P).evaluate(Z).value, rel=1e-14)
    curve = BernoulliLoss(P, "curve", a=A, b=B, guard=1e-9).latent_plan(Z)
    torch.testing.assert_close(curve[off], 1 / (1 + A * d2[off] ** B), rtol=1e-5, atol=0)


@pytest.mark.parametrize("gamma", [1.0, 7.0])
@pytest.mark.parametrize("name", ["largevis", "umap"])
def test_repulsion_thins_the_plan(name, gamma):
    """A weight gamma on the repulsion is the plan P / gamma, and F gamma times as large."""
    P, Z = (rows() if name == "largevis" else fuzzy()), random_start(12)
    options = {} if name == "largevis" else {"kernel": "curve", "a": A, "b": B}
    heavy = BernoulliLoss(P, repulsion=gamma, **options)
    thin = BernoulliLoss(P / gamma, **options)
    assert heavy.evaluate(Z).value == pytest.approx(gamma * thin.evaluate(Z).value, rel=1e-13)
    assert heavy.constant == pytest.approx(gamma * thin.constant, rel=1e-13)
    # by hand: the pairs that are not joined weigh gamma - P
    Q, off = heavy.latent_plan(Z), ~torch.eye(12, dtype=torch.bool)
    value = -(P * Q.log() + (gamma - P) * (1 - Q).log())[off].sum()
    assert heavy.evaluate(Z).value == pytest.approx(value.item(), rel=1e-9)


@pytest.mark.parametrize("name", BERNOULLI)
def test_the_constant_makes_a_divergence(name):
    """F + constant is gamma KL(P / gamma | Q), edge by edge, and never negative."""
    loss, Z = BERNOULLI[name](), random_start(12)
    off = ~torch.eye(12, dtype=torch.bool)
    P, Q = loss.plan[off] / loss.repulsion, loss.latent_plan(Z)[off]
    kl = torch.xlogy(P, P / Q) + torch.xlogy(1 - P, (1 - P) / (1 - Q))
    value = loss.evaluate(Z).value + loss.constant
    assert value == pytest.approx(loss.repulsion * float(kl.sum()), rel=1e-9) and value > 0


# -------------------------------------------------------------------------------------- forces
@pytest.mark.parametrize("name", LOSSES)
def test_forces(name):
    """Two parts, each without net force; their sum is minus the gradient; attraction is that of
    <P, C_Z> by autograd."""
    loss, Z = LOSSES[name](), random_start(12)
    attraction, repulsion = attraction_repulsion(loss, Z, tol=1e-12)
    gradient = loss.evaluate(Z, tol=1e-12).gradient
    torch.testing.assert_close(attraction + repulsion, -gradient, rtol=0, atol=1e-9)
    zero = torch.zeros(2, dtype=torch.float64)
    for force in (attraction, repulsion):
        torch.testing.assert_close(force.sum(dim=0), zero, rtol=0, atol=1e-9)
        assert force.abs().max() > 0.1
    z = Z.clone().requires_grad_()
    (loss.plan * log_kernel(loss, z)).sum().backward()  # -<P, C>
    torch.testing.assert_close(attraction, z.grad, rtol=1e-9, atol=1e-9)
    # attraction shrinks the cloud and repulsion widens it
    assert (attraction * Z).sum() < 0 < (repulsion * Z).sum()


@pytest.mark.parametrize("gap", [0.01, 0.5, 3.0, 100.0])
@pytest.mark.parametrize("name", [*BERNOULLI, "sne", "t-sne", "snekhorn"])
def test_attraction_pulls_and_repulsion_pushes(name, gap):
    """Two points on a line: the left one is drawn to the right and pushed to the left."""
    pair = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    if name in BERNOULLI:
        loss = BERNOULLI[name](pair)
    elif name == "snekhorn":
        loss = SNEkhornLoss((pair + 1) / (pair + 1).sum(dim=1))
    else:
        loss = SNELoss(pair, "student" if name == "t-sne" else "gaussian")
    attraction, repulsion = attraction_repulsion(loss, [[0.0], [gap]])
    assert attraction[0, 0] > 0 > attraction[1, 0]
    if not (name == "snekhorn" and gap == 100.0):  # there the kernel is 0
        assert repulsion[0, 0] < 0 < repulsion[1, 0]


def test_attraction_does_not_see_the_prior():
    """Equation (5): the same P and kernel, three priors: one attraction, three repulsions."""
    P, Z = drot.symmetrize(rows()), random_start(12)
    losses = [
        SNELoss(P, "student"),
        SNELoss(P, "student", normalization="rows"),
        BernoulliLoss(P, "student"),
    ]
    forces = [attraction_repulsion(loss, Z) for loss in losses]
    for attraction, repulsion in forces[1:]:
        torch.testing.assert_close(attraction, forces[0][0], rtol=1e-12, atol=1e-12)
        assert (repulsion - forces[0][1]).abs().max() > 0.1


# ------------------------------------------------------------------------------------- descent
@pytest.mark.parametrize("name", ["largevis", "largevis-symmetric", "umap", "umap-strong"])
@pytest.mark.parametrize("init", ["spectral", "pca", "random"])
def test_descent(name, init):
    """L-BFGS falls at each iteration and comes to rest, from any start."""
    X = drot.datasets.digits(300).X.double()
    cost = drot.sqeuclidean(X)
    if name.startswith("umap"):
        P = drot.fuzzy_union(umap_membership(cost, 15))
    else:
        P = drot.symmetrize(drot.entropic_affinity(cost, 20.0, diagonal="drop"))
    start = drot.pca_start(X) if init == "pca" else init
    found = embed(BERNOULLI[name](P), start, tol=1e-3)
    assert found.converged and found.residual <= 1e-3
    assert (np.diff(found.values) <= 1e-12 * abs(found.value)).all()
    assert found.passes <= 1.3 * found.n_iter + 10 and found.n_iter < 1500
    assert (
        drot.metrics.trustworthiness(X, found.Z, 5) > 0.97
    )  # 0.985 to 0.991, after 198 to 578 steps


@pytest.mark.parametrize("name", ["largevis", "umap"])
def test_coinciding_points(name):
    """Where all points coincide F and its gradient are finite; copies in the data embed."""
    loss = BERNOULLI[name]()
    found = loss.evaluate(torch.zeros(12, 2, dtype=torch.float64))
    assert math.isfinite(found.value) and (found.gradient == 0).all()
    X = cloud("duplicates", 0, 40, 4)
    cost = drot.sqeuclidean(X)
    if name == "umap":
        result = umap(drot.fuzzy_union(umap_membership(cost, 8)))
    else:
        result = largevis(drot.symmetrize(drot.entropic_affinity(cost, 8.0, diagonal="drop")))
    assert result.converged and result.Z.isfinite().all()


@pytest.mark.parametrize("name", BERNOULLI)
def test_the_metric_of_the_first_step(name):
    """Attraction weights: proportional to P + P^T, of the total that the repulsion has when all
    points coincide, both as second derivatives of F by the squared distances."""
    loss = BERNOULLI[name]()
    weights = loss.attraction
    P = loss.plan + loss.plan.T
    torch.testing.assert_close(weights / weights.sum(), P / P.sum())
    Q = loss.latent_plan(torch.zeros(12, 2, dtype=torch.float64))
    slope = loss.b / loss.guard  # of C at distance 0
    assert float(weights.sum()) == pytest.approx(loss.repulsion * slope * float(Q.sum()), rel=1e-12)


# ---------------------------------------------------------------------------------- membership
@quick
@given(
    kind=st.sampled_from(["gaussian", "scales", "clusters", "outliers", "line"]),
    seed=st.integers(0, 1000),
    k=st.integers(3, 12),
    rank=st.sampled_from([0.0, 0.4, 1.0, 1.5, 2.0]),
)
def test_membership_solves_its_equation(kind, seed, k, rank):
    """rho and sigma by sorting and by bisection in SciPy; rows sum to log2 k."""
    X = cloud(kind, seed, 16, 3)
    found = umap_membership(drot.sqeuclidean(X), k, local_connectivity=rank, tol=1e-12, max_iter=60)
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    plan = found.plan.numpy()
    assert (plan.diagonal() == 0).all() and plan.max() <= 1 and (plan >= 0).all()
    for i in range(16):
        near = np.sort(np.delete(D[i], i))[: k - 1]
        low, part = divmod(rank, 1)
        positive = np.concatenate([[0.0], near[near > 0]])
        ends = [positive[min(int(low) + s, len(positive) - 1)] for s in (0, 1)]
        rho = (1 - part) * ends[0] + part * ends[1]
        assert found.rho[i].item() == pytest.approx(rho, rel=1e-6, abs=1e-9)
        excess = np.maximum(near - found.rho[i].item(), 0)
        if found.floored[i]:
            floor = 1e-3 * near.sum() / k
            assert found.sigma[i].item() == pytest.approx(floor, rel=1e-6)
            assert np.exp(-excess / floor).sum() > np.log2(k) - 1e-9
            continue
        sigma = brentq(
            lambda s, x=excess: np.exp(-x / s).sum() - np.log2(k), 1e-9, 1e9, xtol=1e-14, rtol=1e-14
        )
        assert found.sigma[i].item() == pytest.approx(sigma, rel=1e-7)
        np.testing.assert_allclose(plan[i].sum(), np.log2(k), atol=1e-9)
    assert found.residual <= 1e-12


def test_membership_is_scale_free():
    """Distances in other units: rho and sigma in those units, the graph as it was."""
    X = cloud("gaussian", 0, 30, 4)
    one, many = (umap_membership(drot.sqeuclidean(c * X), 8) for c in (1.0, 1e3))
    torch.testing.assert_close(many.plan, one.plan, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(many.sigma, 1e3 * one.sigma, rtol=1e-8, atol=0)
    torch.testing.assert_close(many.rho, 1e3 * one.rho, rtol=1e-12, atol=0)
    assert one.n_iter == many.n_iter <= 5  # of third order


def test_membership_of_duplicates():
    """Copies are certain neighbours and do not make rho 0; a cloud of copies is all joined."""
    X = torch.tensor([[0.0], [0.0], [1.0], [3.0], [6.0], [10.0]], dtype=torch.float64)
    found = umap_membership(drot.sqeuclidean(X), 5)
    assert found.rho[:2].tolist() == [1.0, 1.0]
    assert found.plan[0, 1] == found.plan[1, 0] == found.plan[0, 2] == 1
    torch.testing.assert_close(found.plan.sum(dim=1), torch.full((6,), math.log2(5)).double())
    # two certain edges where log2 3 = 1.58 are asked for: sigma is the floor
    tight = umap_membership(drot.sqeuclidean(X), 3)
    assert tight.floored.tolist()[:2] == [True, True] and not tight.floored[3]
    assert tight.converged and tight.plan[0].sum() == 2
    same = umap_membership(torch.zeros(5, 5), 5)
    assert same.floored.all() and (same.rho == 0).all()
    assert torch.equal(same.plan, torch.ones(5, 5) - torch.eye(5))


@pytest.mark.parametrize("block", [None, 7])
def test_membership_by_tiles(block):
    """The cost in tiles gives the same graph; float32 stays float32."""
    X = cloud("gaussian", 0, 30, 4)
    whole = umap_membership(drot.sqeuclidean(X).dense(), 8)
    parts = umap_membership(drot.sqeuclidean(X, block=block), 8)
    torch.testing.assert_close(parts.plan, whole.plan, rtol=1e-9, atol=1e-12)
    single = umap_membership(drot.sqeuclidean(X.astype(np.float32)), 8)
    assert single.plan.dtype == single.sigma.dtype == torch.float32
    torch.testing.assert_close(single.plan.double(), whole.plan, rtol=0, atol=1e-4)


def test_membership_is_kept(tmp_path):
    """Saved and loaded to the bit; tiles, log plan and plan are one graph."""
    found = umap_membership(drot.sqeuclidean(cloud("gaussian", 0, 20, 3)), 6)
    found.save(tmp_path / "graph.npz")
    back = drot.load(tmp_path / "graph.npz")
    assert type(back) is drot.affinities.UMAPMembership and torch.equal(back.plan, found.plan)
    assert torch.equal(back.floored, found.floored) and torch.equal(back.sigma, found.sigma)
    assert torch.equal(found.log_plan.exp(), found.plan)
    assert ((found.plan > 0).sum(dim=1) == 5).all()


def test_two_neighbors():
    """k = 2: the nearest other point, certain; log2 2 = 1 whatever sigma."""
    found = umap_membership(drot.sqeuclidean(cloud("gaussian", 0, 9, 2)), 2)
    assert torch.equal(found.plan.sum(dim=1), torch.ones(9, dtype=torch.float64))
    assert ((found.plan == 0) | (found.plan == 1)).all() and found.residual == 0


def test_curve_fits_better_than_its_neighbours():
    """a and b are a minimum of the squared misfit on the stated grid."""
    x = np.linspace(0, 3, 300)
    wanted = np.where(x < 0.1, 1.0, np.exp(-(x - 0.1)))

    def misfit(a: float, b: float) -> float:
        return float(((1 / (1 + a * x ** (2 * b)) - wanted) ** 2).sum())

    for s, t in itertools.product((0.999, 1.001), repeat=2):
        assert misfit(A, B) < misfit(s * A, t * B)


# ---------------------------------------------------------------------------- what is left unsaid
@pytest.mark.parametrize("kernel", ["gaussian", "student"])
def test_tolerances_by_default(kernel):
    """1e-6 for a step of the descent, 1e-9 for the plan and the forces."""
    ring = torch.eye(7, dtype=torch.float64)
    plan = 0.4 * ring + 0.3 * ring.roll(1, dims=0) + 0.3 * ring.roll(-1, dims=0)
    loss, Z = SNEkhornLoss(plan, kernel), 2 * random_start(7)
    few, plain, many = (loss.evaluate(Z, **ask) for ask in ({"tol": 1.0}, {}, {"tol": 1e-9}))
    assert few.products < plain.products < many.products
    assert plain.products == loss.evaluate(Z, tol=1e-6).products
    assert torch.equal(loss.latent_plan(Z), loss.latent_plan(Z, tol=1e-9))
    assert not torch.equal(loss.latent_plan(Z), loss.latent_plan(Z, tol=1e-12))
    assert (loss.latent_plan(Z).sum(dim=1) - 1).abs().max() <= 1e-9
    told = attraction_repulsion(loss, Z, tol=1e-9)
    assert not torch.equal(told[1], attraction_repulsion(loss, Z, tol=1e-12)[1])
    found = attraction_repulsion(loss, Z)
    assert all(torch.equal(x, y) for x, y in zip(found, told, strict=True))


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in BERNOULLI])
def test_metric_of_softmax_objectives(name):
    """The attraction weights are symmetric and weigh squared distances as P does."""
    loss = LOSSES[name]()
    weights = loss.attraction
    torch.testing.assert_close(weights, weights.T, rtol=0, atol=0)
    for seed in range(3):
        D = drot.sqeuclidean(cloud("gaussian", seed, 12, 2)).dense()
        assert float((weights * D).sum()) == pytest.approx(float((loss.plan * D).sum()), rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_work_of_a_dense_evaluation(name):
    """One pass over the kernel; products with vectors only where row sums are iterated on."""
    loss = LOSSES[name]()
    found = loss.evaluate(random_start(12))
    assert found.passes == 1.0
    assert (found.products != 0) == isinstance(loss, SNEkhornLoss) == (found.dual is not None)


@pytest.mark.parametrize("mass", [1.0, 7.0, 1e-12])
def test_value_is_proportional_to_the_mass(mass):
    P, Z = drot.symmetrize(rows()), random_start(12)
    wanted, found = (SNELoss(plan).evaluate(Z) for plan in (P, P * (mass / P.sum())))
    assert found.value == pytest.approx(wanted.value * mass / float(P.sum()), rel=1e-12)
    torch.testing.assert_close(found.gradient, wanted.gradient * mass / P.sum())


def test_fewest_points():
    """Two will do; a single one, an empty plan and another number of points are refused."""
    pair = [[0.0, 1.0], [1.0, 0.0]]
    assert SNELoss(pair).n == 2
    for wrong in ([[1.0]], np.zeros((0, 0))):
        with pytest.raises(ValueError, match="n >= 2 points"):
            SNELoss(wrong)
    with pytest.raises(ValueError, match="zero everywhere"):
        SNELoss(np.zeros((3, 3)))
    for n in (3, 5, 12):
        loss = SNELoss((1 - np.eye(4)) / 12)
        with pytest.raises(ValueError, match=f"Z has {n} points and the plan 4"):
            attraction_repulsion(loss, np.zeros((n, 4)))
    assert attraction_repulsion(loss, np.eye(4))[0].shape == (4, 4)


def test_one_sum_needs_a_symmetric_plan():
    """An array is refused, not symmetrised in silence; row by row any plan will do."""
    with pytest.raises(ValueError, match="plan must be symmetric"):
        SNELoss(rows())
    assert SNELoss(drot.symmetrize(rows())).symmetric
    assert not SNELoss(rows(), normalization="rows").symmetric
    assert not SNELoss(stochastic(), normalization="rows", diagonal="keep").symmetric
    cost = drot.sqeuclidean(cloud("gaussian", 0, 12, 5), block=4)
    tiled = drot.doubly_stochastic_affinity(cost, bandwidth=3.0)  # half the work, where it may be
    assert SNELoss(tiled, diagonal="keep").symmetric
    assert not SNELoss(tiled, normalization="rows", diagonal="keep").symmetric
    assert not SNELoss(drot.entropic_affinity(cost, 4.0, diagonal="drop")).symmetric


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in BERNOULLI])
def test_the_constant_makes_a_divergence_of_plans(name):
    """F + constant is KL(P | Q), whatever normalises Q: one mass for all or one for each row."""
    loss, Z = LOSSES[name](), random_start(12)
    value = loss.evaluate(Z, tol=1e-12).value + loss.constant
    kl = float(drot.kl_divergence(loss.plan, loss.latent_plan(Z, tol=1e-12)))
    assert value == pytest.approx(kl, rel=1e-9) and kl > 0.01


def test_loops_count_where_they_are_kept():
    """A plan with a diagonal is refused unless pairs i = j count, for every normalisation."""
    P = np.full((3, 3), 1 / 3)
    for normalization in ("sum", "rows"):
        with pytest.raises(ValueError, match="mass on its diagonal"):
            SNELoss(P, normalization=normalization)
        kept = SNELoss(P, normalization=normalization, diagonal="keep")
        found = kept.evaluate(torch.zeros(3, 2, dtype=torch.float64))
        assert found.value == pytest.approx(3 * math.log(9 if normalization == "sum" else 3))
        off = SNELoss(P * (1 - np.eye(3)), normalization=normalization, diagonal="keep")
        assert off.latent_plan(torch.zeros(3, 1).double()).diagonal().min() > 0


# ------------------------------------------------------------------------------------- devices
@pytest.mark.parametrize("name", BERNOULLI)
def test_devices_agree(name, gpu):
    """Another device gives the same value, gradient and forces, to rounding."""
    here, Z = BERNOULLI[name](), random_start(12)
    there = BERNOULLI[name](here.plan.to(gpu))
    a, b = here.evaluate(Z), there.evaluate(Z.to(gpu))
    assert b.value == pytest.approx(a.value, rel=1e-12) and b.gradient.device.type == gpu
    torch.testing.assert_close(b.gradient.cpu(), a.gradient, rtol=0, atol=1e-9)
    for x, y in ((b.attraction, a.attraction), (b.repulsion, a.repulsion)):
        torch.testing.assert_close(x.cpu(), y, rtol=0, atol=1e-9)
    c = log_kernel(here, Z).fill_diagonal_(0.0)
    value = drot.coupling_loss(here.plan, c, prior="binary")
    assert drot.coupling_loss(here.plan.to(gpu), c.to(gpu), prior="binary").item() == pytest.approx(
        value.item(), rel=1e-12
    )
    cost = drot.sqeuclidean(cloud("gaussian", 0, 30, 4))
    graph = umap_membership(cost.dense().to(gpu), 8, local_connectivity=1.5).plan
    torch.testing.assert_close(graph.cpu(), umap_membership(cost, 8, local_connectivity=1.5).plan)


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("kind", ["sne", "bernoulli", "snekhorn"])
def test_objectives_count_the_points(kind, tiled):
    """Positions of more or fewer points than the plan's, or of another shape, are refused."""
    cost = drot.sqeuclidean(cloud("gaussian", 0, 20, 5), block=7 if tiled else None)
    loss = {
        "sne": lambda: SNELoss(
            drot.entropic_affinity(cost, 5.0, diagonal="drop"), "student", normalization="rows"
        ),
        "bernoulli": lambda: BernoulliLoss(drot.entropic_affinity(cost, 5.0, diagonal="drop")),
        "snekhorn": lambda: SNEkhornLoss(drot.doubly_stochastic_affinity(cost, bandwidth=3.0)),
    }[kind]()
    assert isinstance(loss.plan, torch.Tensor) != tiled
    for Z, says in (
        (random_start(21), "Z has 21 points and the plan 20"),
        (random_start(10), "Z has 10 points and the plan 20"),
        (random_start(20)[:, 0], r"Z has shape \(20,\) and the plan 20"),
    ):
        for ask in (loss.evaluate, loss.latent_plan):
            with pytest.raises(ValueError, match=says):
                ask(Z)


def test_objectives_say_what_they_are():
    assert repr(SNELoss(rows(), normalization="rows")) == "SNELoss(12 x 12, kernel='gaussian')"
    assert repr(SNEkhornLoss(stochastic(9), "student")) == "SNEkhornLoss(9 x 9, kernel='student')"
