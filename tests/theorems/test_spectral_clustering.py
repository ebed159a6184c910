"""Chapter 7: cuts as traces, what the eigengap bounds, and which groups a perplexity forbids."""

import itertools
import math

import cvxpy as cp
import drot
import numpy as np
import oracles
import pytest
from plans import balanced, cut, kmeans


def partitions(n: int, c: int):
    """Every labelling of n points by exactly c groups, up to the names of the groups."""
    for labels in itertools.product(range(c), repeat=n):
        first = [labels.index(a) for a in range(c) if a in labels]
        if len(first) == c and first == sorted(first):
            yield np.array(labels)


def laplacian(P: np.ndarray) -> np.ndarray:
    d = P.sum(axis=1)
    return np.eye(len(P)) - P / np.sqrt(d[:, None] * d)


def indicator(labels: np.ndarray, d: np.ndarray) -> np.ndarray:
    """U of the proposition: sqrt(d_i / vol G_a) in group a, 0 elsewhere."""
    H = (labels[:, None] == np.arange(labels.max() + 1)).astype(float)
    return np.sqrt(d)[:, None] * H / np.sqrt(d @ H)


@pytest.mark.parametrize("seed", range(3))
def test_prp_cut_trace(seed):
    """U is orthonormal and its trace is the cut, for degrees that are far from equal."""
    rng = np.random.default_rng(seed)
    n, c = 11, 2 + seed % 3
    P = np.exp(rng.normal(scale=1.2, size=(n, n)))
    P = P + P.T  # degrees differ by much
    P[rng.random((n, n)) < 0.2] = 0
    P = np.minimum(P, P.T) + np.diag(rng.uniform(0.1, 3, n))  # zeros, and self-loops of all sizes
    labels = rng.permutation(np.arange(n) % c)
    U = indicator(labels, P.sum(axis=1))
    np.testing.assert_allclose(U.T @ U, np.eye(c), atol=1e-12)
    trace = np.trace(U.T @ laplacian(P) @ U)
    assert trace == pytest.approx(cut(P, labels), rel=1e-12)
    # hence the eigenvalues bound every cut
    assert trace >= np.linalg.eigvalsh(laplacian(P))[:c].sum() - 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_thm_ky_fan(seed):
    """Both sides of the remainder, for random symmetric matrices and random frames."""
    rng = np.random.default_rng(seed)
    n = 9
    L = rng.normal(size=(n, n))
    L = L + L.T
    values, vectors = np.linalg.eigh(L)
    for c, s in itertools.product((1, 3, 8), range(20)):
        V = vectors[:, :c]
        U = np.linalg.qr(rng.normal(size=(n, c)))[0]
        if s % 2:  # near the optimum too, where the inequalities are close
            U = np.linalg.qr(V + 0.05 * U)[0]
        delta = c - ((U.T @ V) ** 2).sum()
        excess = np.trace(U.T @ L @ U) - values[:c].sum()
        assert delta >= -1e-12
        assert (values[c] - values[c - 1]) * delta <= excess + 1e-10
        assert excess <= (values[-1] - values[0]) * delta + 1e-10


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("c", [2, 3])
def test_prp_clustering_gap(seed, c):
    """All partitions of eight points: J = c - |U'V|^2, both bounds, and the factor at the best."""
    n = 8
    P = balanced(seed, n).numpy()
    values, vectors = np.linalg.eigh(np.eye(n) - P)
    V, base, gap, last = vectors[:, :c], values[:c].sum(), values[c] - values[c - 1], values[-1]
    assert gap > 1e-4
    costs, cuts = [], []
    for labels in partitions(n, c):
        J, excess = kmeans(V, np.ones(n), labels), cut(P, labels) - base
        U = indicator(labels, np.ones(n))
        assert abs(J - (c - ((U.T @ V) ** 2).sum())) < 1e-9
        assert gap * J <= excess + 1e-9 and excess <= last * J + 1e-9
        costs.append(J)
        cuts.append(excess)
    found, best = cuts[int(np.argmin(costs))], min(cuts)
    assert best - 1e-9 <= found <= last / gap * best + 1e-9
    # J <= c - 1: both spans contain the constant vector
    assert max(costs) <= c - 1 + 1e-9


def least_leak(n: int, m: int, xi: float) -> float:
    """phi_m(xi) by bisection, with the log perplexity of an explicit row."""
    low, high = 0.0, 1 - m / n
    for _ in range(60):
        t = (low + high) / 2
        row = np.concatenate([np.full(m, (1 - t) / m), np.full(n - m, t / (n - m))])
        low, high = (t, high) if oracles.log_perplexity(row) < math.log(xi) else (low, t)
    return (low + high) / 2


@pytest.mark.parametrize(("n", "m", "xi"), [(7, 1, 2), (7, 3, 4), (9, 2, 8)])
def test_prp_small_sets(n, m, xi):
    """The least leak, found by a conic program over all symmetric plans, is phi_m."""
    plan = cp.Variable((n, n), symmetric=True)
    inside = cp.sum(plan[:m, :m])
    entropies = cp.sum(cp.entr(plan), axis=1) >= math.log(xi)
    problem = cp.Problem(cp.Maximize(inside), [cp.sum(plan, axis=1) == 1, entropies])
    problem.solve(solver=cp.CLARABEL)
    leak, phi = 1 - problem.value / m, least_leak(n, m, xi)
    assert leak >= phi - 1e-6
    if xi <= n - m:  # attained
        assert leak == pytest.approx(phi, abs=1e-5)


@pytest.mark.parametrize("xi", [6.0, 30.0])
def test_prp_small_sets_plans(xi):
    """Every group of nearest neighbours leaks phi_m under P^se, phi / (2 - phi) under P^e."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[40:] += 9  # ten points apart
    cost = drot.sqeuclidean(X)
    symmetric = drot.symmetric_entropic_affinity(cost, perplexity=xi).plan.numpy()
    rows = drot.entropic_affinity(cost, perplexity=xi).plan.numpy()
    mean = (rows + rows.T) / 2
    tight, leaks = [], [0.0, *(least_leak(50, m, xi) for m in range(1, math.ceil(xi)))]
    for m, centre in itertools.product(range(1, math.ceil(xi)), range(0, 50, 7)):
        phi = leaks[m]
        near, far = np.split(np.argsort(cost.dense().numpy()[centre]), [m])
        assert rows[np.ix_(near, far)].sum(axis=1).min() >= phi - 1e-9
        leak = symmetric[np.ix_(near, far)].sum() / m
        assert leak >= phi - 1e-7
        average = mean[np.ix_(near, far)].sum() / mean[near].sum()
        assert average >= phi / (2 - phi) - 1e-9
        tight.append(leak / phi if phi > 1e-3 else np.inf)
    assert min(tight) < 2.5  # the bound is of the right size


def test_cor_no_lonely_point():
    """P^se: at any distance an outlier is as alone as the bound lets it be. P^ds: as it moves away,
    its self-weight tends to 1 as the proof's bound says; both are the conic solver's plans."""
    rest, n, xi = np.random.default_rng(1).normal(size=(9, 2)), 10, 5.0
    assert xi <= (n - 1) ** ((n - 1) / n)
    B = oracles.exact_sqeuclidean(rest, rest).sum() / (n - 1)
    for r in (10.0, 100.0):
        X = np.vstack([[r + np.abs(rest).max(), 0.0], rest])
        C = oracles.exact_sqeuclidean(X, X)
        plan = drot.doubly_stochastic_affinity(C, perplexity=xi).plan.numpy()
        assert C[0, 1:].min() >= r**2 and 1 - plan[0, 0] <= B / r**2
        kept = drot.symmetric_entropic_affinity(C, perplexity=xi).plan.numpy()
        assert 0 < 1 - least_leak(n, 1, xi) - kept.diagonal().max() + 1e-9 < 0.1
        conic = oracles.symmetric_entropic_transport(C / r**2, xi).plan
        np.testing.assert_allclose(kept, conic, atol=1e-4)
        conic = oracles.symmetric_transport(C / r**2, n * (math.log(xi) + 1)).plan
        np.testing.assert_allclose(plan, conic, atol=1e-4)
    # above the stated range the point must spread: all rows near the constant one
    assert drot.doubly_stochastic_affinity(C, perplexity=9.5).plan[0, 0] < 0.9


def test_prp_self_loops_plans():
    """rho >= phi_1 for P^se and phi_1 / (2 - phi_1) for P^e, and no such bound for P^ds."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[0] = (15.0, 0, 0)
    cost, xi = drot.sqeuclidean(X), 6.0
    phi = least_leak(40, 1, xi)
    plans = (
        drot.symmetric_entropic_affinity(cost, perplexity=xi).plan.numpy(),
        drot.symmetrize(drot.entropic_affinity(cost, perplexity=xi)).numpy(),
        drot.doubly_stochastic_affinity(cost, perplexity=xi).plan.numpy(),
    )
    se, e, ds = (float((1 - P.diagonal() / P.sum(axis=1)).min()) for P in plans)
    assert se >= phi - 1e-9 and e >= phi / (2 - phi) - 1e-9 and ds < 1e-3 < phi
    P = plans[2]
    apart, tied = (np.linalg.eigvalsh(laplacian(M))[1] for M in (P, P - np.diag(P.diagonal())))
    assert tied > 100 * apart  # the counterexample: the conventions differ without bound
