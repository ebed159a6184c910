"""Chapter 12: the statements about distributional reduction, by loops and optimisers of others."""

from __future__ import annotations

import drot
import numpy as np
import pytest
import torch
from plans import LOSSES, energy, pointwise, problem, soft, weights
from scipy.optimize import minimize


def students(Z):
    return 1 / (1 + np.square(Z[:, None] - Z).sum(axis=2))


def means(C, T):
    h = T.sum(axis=0)
    return T.T @ C @ T / np.outer(h, h)


@pytest.mark.parametrize("loss", LOSSES)
def test_thm_distr_split(loss):
    """The two errors add up, for soft plans with any weights; and the mean is the best matrix."""
    C, C_bar = problem(0, 7, 3)
    for seed in range(5):
        T = soft(weights(7), 3, seed=seed)
        best = torch.from_numpy(means(C.numpy(), T.numpy()))
        h = T.sum(dim=0).numpy()
        drawing = sum(
            h[k] * h[m] * pointwise(best[k : k + 1, m : m + 1], C_bar[k : k + 1, m : m + 1], loss)
            for k in range(3)
            for m in range(3)
        )
        whole = energy(C, C_bar, T, loss)
        assert whole == pytest.approx(energy(C, best, T, loss) + float(np.squeeze(drawing)))
        assert energy(C, best, T, loss) < whole
    # groups without similarity between them: their mean is 0, and 0 log 0 = 0
    blocks = np.kron(np.eye(2), [[0.8, 0.5], [0.5, 0.9]])
    T = np.kron(np.eye(2), [[0.3], [0.2]])
    best, mass = means(blocks, T), np.einsum("ik,jl->ijkl", T, T)
    assert best[0, 1] == 0

    def sent(D):
        return float((mass * np.where(mass > 0, pointwise(blocks, D, loss), 0)).sum())

    C_bar = C_bar[:2, :2].numpy()
    drawing = sum(
        float(pointwise(best[k : k + 1, m : m + 1], C_bar[k : k + 1, m : m + 1], loss).item()) / 4
        for k in range(2)
        for m in range(2)
    )
    assert sent(C_bar) == pytest.approx(sent(best) + drawing, rel=1e-12)
    # another loss does not split: (a - b)^4 is no such divergence
    a = np.array([0.0, 1.0, 5.0])
    fourth = [np.mean((a - b) ** 4) for b in (a.mean(), 3.0)]
    assert fourth[1] - fourth[0] != pytest.approx((a.mean() - 3.0) ** 4, rel=0.1)


def test_prp_factors():
    """SciPy's best factors have the sums of the statement, and no other factors do better."""
    rng = np.random.default_rng(1)
    k = 4
    M = rng.uniform(0.1, 1, size=(k, k))
    M = M + M.T
    h = rng.dirichlet(np.ones(k))
    K = students(rng.normal(size=(k, 2)))

    def kl(u, v):
        Q = np.outer(h * u, h * v) * K
        return (M * np.log(M / Q) - M + Q).sum(), Q

    one = minimize(lambda s: kl(np.exp(s[0]) * np.ones(k), np.ones(k))[0], [0.0])
    assert kl(np.exp(one.x[0]) * np.ones(k), np.ones(k))[1].sum() == pytest.approx(
        M.sum(), rel=1e-5
    )
    rows = minimize(lambda s: kl(np.exp(s), np.ones(k))[0], np.zeros(k))
    np.testing.assert_allclose(kl(np.exp(rows.x), np.ones(k))[1].sum(1), M.sum(1), rtol=1e-4)
    both = minimize(lambda s: kl(np.exp(s), np.exp(s))[0], np.zeros(k))
    np.testing.assert_allclose(kl(np.exp(both.x), np.exp(both.x))[1].sum(1), M.sum(1), rtol=1e-4)
    assert rows.fun <= one.fun + 1e-9 and both.fun <= one.fun + 1e-9
    # and factors that have these sums are the best: exactly there
    assert kl(M.sum() / (h @ K @ h) * np.ones(k), np.ones(k))[0] == pytest.approx(one.fun, rel=1e-9)
    assert kl(M.sum(1) / (h * (K @ h)), np.ones(k))[0] == pytest.approx(rows.fun, rel=1e-7)
    u = np.ones(k)
    for _ in range(500):
        u = np.sqrt(u * M.sum(1) / (h * (K @ (h * u))))
    assert kl(u, u)[0] == pytest.approx(both.fun, rel=1e-7)
    # the divergence of the sums is the error of drawing
    Q = kl(u, np.ones(k))[1]
    drawing = pointwise(M / np.outer(h, h), Q / np.outer(h, h), "kl")
    drawing = sum(h[a] * h[b] * drawing[a, b, a, b] for a in range(k) for b in range(k))
    assert drawing == pytest.approx(kl(u, np.ones(k))[0], rel=1e-12)
    # what the package reports is normalised so
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(rng.normal(size=(30, 3))), 6).plan
    for normalization in ("sum", "rows", "doubly_stochastic"):
        found = drot.distributional_reduction(
            C, 5, normalization=normalization, n_starts=1, on_failure="ignore"
        )
        q, M = found.weights, found.plan.T @ C @ found.plan
        Q = torch.outer(q, q) * found.structure
        torch.testing.assert_close(Q.sum(), M.sum(), rtol=1e-7, atol=0)
        if normalization != "sum":
            torch.testing.assert_close(Q.sum(dim=1), M.sum(dim=1), rtol=1e-6, atol=1e-12)


def test_prp_merge():
    """Unused, doubled and surplus prototypes; k = n is t-SNE."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(24, 3))
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), 6).plan.numpy()
    Z, T = rng.normal(size=(4, 2)), rng.dirichlet(np.ones(4), size=24) / 24

    def value(Z, T):
        h, K = T.sum(axis=0), students(Z)
        return energy(C, K * C.mean() / (h @ K @ h), T, "kl")

    base = value(Z, T)
    split = np.hstack([0.3 * T[:, :1], 0.7 * T[:, :1], T[:, 1:]])
    assert value(np.vstack([Z[:1], Z]), split) == pytest.approx(base, rel=1e-12)
    part = T[:, :1] * rng.uniform(size=(24, 1))  # the columns need not be in proportion
    uneven = np.hstack([part, T[:, :1] - part, T[:, 1:]])
    assert value(np.vstack([Z[:1], Z]), uneven) == pytest.approx(base, rel=1e-12)
    unused = np.hstack([np.zeros((24, 1)), T])
    assert value(np.vstack([Z.mean(0, keepdims=True), Z]), unused) == pytest.approx(base)

    # factors of rows and columns: a merge at one place does not lower the value, and keeps it
    # if the mean similarities are equal, as those of a doubly stochastic C are
    def fitted(C, Z, T, both):
        h, K = T.sum(axis=0), students(Z)
        wanted = (T.T @ C @ T).sum(axis=1) / h
        u = np.ones(len(h))
        for _ in range(400):
            u = np.sqrt(u * wanted / (K @ (h * u))) if both else wanted / (K @ h)
        C_bar = u[:, None] * K * (u if both else 1)
        assert np.allclose(C_bar @ h, wanted, rtol=1e-9)
        return energy(C, C_bar, T, "kl")

    other = rng.uniform(0.1, 2, size=(24, 24))
    other = other + other.T + 6 * np.eye(24) * np.arange(24)[:, None]
    for both in (False, True):
        assert fitted(C, np.vstack([Z[:1], Z]), uneven, both) == pytest.approx(
            fitted(C, Z, T, both), rel=1e-8
        )
        merged = fitted(other, Z, T, both)
        assert fitted(other, np.vstack([Z[:1], Z]), uneven, both) < merged * (1 - 1e-6)
        # cut in proportion, the row sums are in proportion to the weights
        assert fitted(other, np.vstack([Z[:1], Z]), split, both) == pytest.approx(merged, rel=1e-8)
    inner = np.vstack([Z[:1], Z])
    assert energy(other, inner @ inner.T, uneven) == pytest.approx(energy(other, Z @ Z.T, T))
    # where they do not share a place, a merge changes the value
    merged = np.hstack([T[:, :1] + T[:, 1:2], T[:, 2:]])
    assert value(Z[1:], merged) != pytest.approx(base, rel=1e-6)
    # more prototypes: start from the best of fewer
    few = drot.distributional_reduction(torch.from_numpy(C), 3)
    padded = torch.cat([few.plan, torch.zeros(24, 2, dtype=torch.float64)], dim=1)
    more = drot.distributional_reduction(torch.from_numpy(C), 5, init=padded)
    assert more.objective <= few.objective * (1 + 1e-6)
    # k = n and T = I / n
    plain = drot.tsne(torch.from_numpy(C), diagonal="keep", init=X[:, :2])
    same = value(plain.Z.numpy(), np.eye(24) / 24)
    assert same * 24**2 == pytest.approx(plain.kl, rel=1e-9)


@pytest.mark.parametrize("q", [1, 2, 5])
def test_prp_distr_gram(q):
    """The closed form against an optimiser over positions, for definite and indefinite C."""
    rng = np.random.default_rng(q)
    for definite in (True, False):
        A = rng.normal(size=(9, 4))
        C = A @ (np.eye(4) if definite else np.diag([1, 1, -1, -1])) @ A.T
        T = rng.dirichlet(np.ones(4), size=9) / 9
        h, best = T.sum(axis=0), means(C, T)
        clustering = energy(C, best, T)
        hat = np.sqrt(h)[:, None] * best * np.sqrt(h)
        mu, w = np.linalg.eigh(hat)
        mu, w = mu[::-1], w[:, ::-1]
        kept = np.clip(mu, 0, None)[:q]
        formula = clustering + (mu**2).sum() - (kept**2).sum()
        g = T.sum(axis=1)
        assert formula == pytest.approx(g @ C**2 @ g - (kept**2).sum(), rel=1e-10)

        def objective(z, h=h, best=best, clustering=clustering):
            Z = z.reshape(4, q)
            return clustering + np.sum(np.outer(h, h) * (best - Z @ Z.T) ** 2)

        Z = np.zeros((4, q))  # columns of zeros after the fourth
        Z[:, : len(kept)] = w[:, :q] * np.sqrt(kept) / np.sqrt(h)[:, None]
        assert energy(C, Z @ Z.T, T) == pytest.approx(formula, rel=1e-9, abs=1e-12)
        starts = rng.normal(size=(6, 4 * q))
        found = min(minimize(objective, s, method="BFGS").fun for s in starts)
        assert found == pytest.approx(formula, rel=1e-6, abs=1e-9)
        if definite and q >= 4:
            assert formula == pytest.approx(clustering, rel=1e-9)


def test_prp_distr_descent():
    """Each block lowers the objective, from either sequential method, and the best is kept."""
    X = drot.datasets.digits(80).X
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), 10).plan
    sequential = [method(C, 8) for method in (drot.cluster_then_reduce, drot.reduce_then_cluster)]
    for start in sequential:
        found = drot.distributional_reduction(C, 8, init=start)
        assert found.trace[0] == pytest.approx(start.objective, rel=1e-9)
        assert (np.diff(found.trace) <= 1e-12).all() and found.trace[-1] < found.trace[0]
    both = drot.distributional_reduction(C, 8)
    assert both.objective <= min(start.objective for start in sequential)
    # whichever descent comes last
    names = ("reduce_then_cluster", "cluster_then_reduce")
    turned = drot.distributional_reduction(C, 8, init=names)
    assert both.objective == min(both.values) == pytest.approx(turned.objective, rel=1e-9)
    assert {both.values[-1] > min(both.values), turned.values[-1] > min(turned.values)} != {False}


def test_alg_distr():
    """One round from a plan: positions that another minimiser finds, then srGW's plan for them."""
    X = drot.datasets.digits(60).X
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), 10).plan
    ask = dict(normalization="none", tol=1e-6, on_failure="ignore")
    start = drot.cluster_then_reduce(C, 4, clustering="kmeans", **ask)
    found = drot.distributional_reduction(C, 4, init=start.plan, max_iter=1, **ask)

    def drawing(z):
        return energy(C, students(z.reshape(4, 2)), start.plan, "kl")

    place = minimize(drawing, start.Z.numpy().ravel(), tol=1e-10)
    assert found.trace[1] == pytest.approx(place.fun, rel=1e-5)
    move = drot.semi_relaxed_gw(C, students(found.Z.numpy()), loss="kl", init=start.plan)
    assert found.trace[2] == pytest.approx(move.objective, rel=1e-6)
    torch.testing.assert_close(found.plan, move.plan, rtol=0, atol=1e-6)
