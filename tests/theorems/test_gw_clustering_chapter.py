"""Chapter 11: barycentres, hard plans, kernel k-means, spectra.

Oracles: four-fold sums, least squares, all memberships, exact fractions, explicit features,
numerical search over plans and over orthonormal frames.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import drot
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import xlogy


def energy(C, D, T) -> float:
    """E_L of the square loss by its definition."""
    return float(np.einsum("ijkl,ik,jl", (C[:, :, None, None] - D[None, None]) ** 2, T, T))


def reduced(C, T) -> float:
    """min over Cbar by least squares: one unknown per entry, one equation per pair of pairs."""
    k = T.shape[1]
    value = 0.0
    for a, b in itertools.product(range(k), repeat=2):
        weight = np.outer(T[:, a], T[:, b]).ravel()
        root = np.sqrt(weight)
        fitted = np.linalg.lstsq(root[:, None], root * C.ravel(), rcond=None)[0]
        value += float(np.square(root * (C.ravel() - fitted[0])).sum())
    return value


def fast(C, T) -> float:
    h, q = T.sum(axis=1), T.sum(axis=0)
    used = q > 0
    M = T[:, used].T @ C @ T[:, used] / np.sqrt(np.outer(q[used], q[used]))
    return float(h @ C**2 @ h - np.square(M).sum())


def memberships(h, k):
    for labels in itertools.product(range(k), repeat=len(h)):
        yield np.asarray(labels), h[:, None] * np.eye(k)[list(labels)]


def soft(h, k, rng, share=0.4):
    return h[:, None] * rng.dirichlet(np.full(k, share), size=len(h))


def cpd(n, rng, rank=3):
    """Inner products and offsets; not positive semidefinite in general."""
    Y, a = rng.normal(size=(n, rank)), 2 * rng.normal(size=n)
    return Y @ Y.T + a[:, None] + a


def symmetric(n, rng):
    C = rng.normal(size=(n, n))
    return C + C.T


def best_soft(C, h, k, rng, tries):
    """Least reduced objective that a local search over plans finds, and its plan."""

    def plan(x):
        z = x.reshape(len(h), k)
        z = np.exp(z - z.max(axis=1, keepdims=True))
        return h[:, None] * z / z.sum(axis=1, keepdims=True)

    runs = [
        minimize(lambda x: fast(C, plan(x)), 2 * rng.normal(size=len(h) * k)) for _ in range(tries)
    ]
    best = min(runs, key=lambda run: run.fun)
    return best.fun, plan(best.x)


def kmeans(Y, h, labels) -> float:
    """Weighted k-means cost of points, cluster by cluster."""
    total = 0.0
    for a in set(labels.tolist()):
        mine = labels == a
        mean = h[mine] @ Y[mine] / h[mine].sum()
        total += float(h[mine] @ np.square(Y[mine] - mean).sum(axis=1))
    return total


def test_lem_reduced_barycenter():
    rng = np.random.default_rng(0)
    for k in (1, 2, 4):
        h = rng.dirichlet(np.full(6, 3.0))
        C, T = symmetric(6, rng), soft(h, k, rng)
        if k == 4:
            T[:, 0] += T[:, 2]
            T[:, 2] = 0  # an empty column
        value = reduced(C, T)
        assert fast(C, T) == pytest.approx(value, rel=1e-10)
        used = T.sum(axis=0) > 0
        small = drot.coarsen(C, T[:, used], weights_x=h)
        D = np.zeros((k, k))
        D[np.ix_(used, used)] = small.structure.numpy()
        assert energy(C, D, T) == pytest.approx(value, rel=1e-10)
        for _ in range(30):
            assert energy(C, D + 0.05 * rng.normal(size=(k, k)), T) >= value
        if k == 4:  # rows of an empty column are free
            D[2], D[:, 2] = 7.0, 7.0
            assert energy(C, D, T) == pytest.approx(value, rel=1e-10)
            E = D.copy()
            E[0, 1] += 0.1
            assert energy(C, E, T) > value + 1e-6
        V = (T[:, used] / T[:, used].sum(axis=0)) @ T[:, used].T
        assert np.allclose(V.sum(axis=1), h)
        assert h @ C**2 @ h - np.trace(V @ C @ V @ C) == pytest.approx(value, rel=1e-10)
    # continuous where a column vanishes, in any direction
    edge = np.stack([h, np.zeros(6)], axis=1)
    for _ in range(5):
        part = h * rng.uniform(size=6)
        gaps = [
            abs(fast(C, edge + t * np.stack([-part, part], axis=1)) - fast(C, edge))
            for t in (1e-2, 1e-4, 1e-6)
        ]
        assert gaps[0] > 30 * gaps[1] > 900 * gaps[2] and gaps[2] < 1e-4


def test_lem_concave():
    rng = np.random.default_rng(1)
    for n, sign in itertools.product((3, 5, 8), (1, -1)):
        C = sign * cpd(n, rng)
        gap = []
        for _ in range(50):
            P = rng.normal(size=(n, n))
            D = rng.normal(size=(n, n))
            D = D - D.mean(axis=0) - D.mean(axis=1, keepdims=True) + D.mean()
            Q = P + D
            assert np.allclose(P.sum(axis=0), Q.sum(axis=0))
            mixed = np.trace(P.T @ C @ Q @ C)
            own = (np.trace(P.T @ C @ P @ C) + np.trace(Q.T @ C @ Q @ C)) / 2
            gap.append(own - mixed)
        assert min(gap) > -1e-9 and max(gap) > 1
    # each hypothesis counts: other marginals, a matrix of both signs
    C = -np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)

    def excess(C, D):
        return np.trace(D.T @ C @ D @ C)

    P = np.outer([1.0, 1, 0, 0], [0, 0, 1, 1]) - np.outer([0.0, 0, 1, 1], [1, 1, 0, 0])
    assert excess(C, P) < -1
    mixed = np.diag([1.0, 1, -1, -1])
    u, v = np.array([1.0, -1, 0, 0]), np.array([0.0, 0, 1, -1])
    assert excess(mixed, np.outer(u, v)) < -1


def sag(C, h, rng) -> float:
    """The least R(middle) - mean of R at the ends that a search over pairs of plans finds."""

    def gap(x):
        z = x.reshape(2, len(h), 2)
        S, T = np.exp(z - z.max(axis=2, keepdims=True))
        S, T = (h[:, None] * P / P.sum(axis=1, keepdims=True) for P in (S, T))
        return fast(C, (S + T) / 2) - (fast(C, S) + fast(C, T)) / 2

    starts = [2 * rng.normal(size=4 * len(h)) for _ in range(3)]
    return min(minimize(gap, x, options={"maxiter": 30}).fun for x in starts)


def test_thm_hard_plans_search_finds_what_is_not_concave():
    """Of a matrix of both signs; and of none of those in the next test."""
    C = np.array([[2.0, -3, 1], [-3, 2, 1], [1, 1, -2]])
    assert sag(C, np.full(3, 1 / 3), np.random.default_rng(0)) < -0.1
    rng = np.random.default_rng(2)
    assert sag(symmetric(5, rng), rng.dirichlet(np.full(5, 3.0)), rng) < -1e-3


@pytest.mark.parametrize("sign", [1, -1])
def test_thm_hard_plans(sign):
    rng = np.random.default_rng(2)
    for n, k in ((5, 2), (6, 3), (7, 3)):
        h = rng.dirichlet(np.full(n, 3.0))
        C = sign * cpd(n, rng)
        # concave along segments, their ends hard, soft or with empty columns
        for _ in range(60):
            S, T = soft(h, k, rng, rng.uniform(0.1, 1)), soft(h, k, rng)
            if rng.uniform() < 0.3:
                T[:, 0] += T[:, 1]
                T[:, 1] = 0
            t = rng.uniform(0.1, 0.9)
            chord = (1 - t) * fast(C, S) + t * fast(C, T)
            assert fast(C, (1 - t) * S + t * T) >= chord - 1e-10 * abs(chord)
        assert sag(C, h, rng) > -1e-7
        least = min(fast(C, T) for _, T in memberships(h, k))
        found, _ = best_soft(C, h, k, rng, 6)
        assert found >= least - 1e-7
        ours = drot.srgw_barycenter(C, k, weights_x=h, init="random", n_starts=30)
        assert ours.objective == pytest.approx(least, rel=1e-9)
        assert bool(((ours.plan > 0).sum(dim=1) == 1).all())


def test_thm_hard_plans_rounding():
    """With a column to spare a solution may share points; each way to round it is one, too."""
    rng = np.random.default_rng(3)
    h = rng.dirichlet(np.full(5, 3.0))
    Y = np.array([[1.0, 0], [1, 0], [1, 0], [-1, 2], [-1, 2]])
    Y -= h @ Y
    C, T = Y @ Y.T, np.zeros((5, 3))
    T[:3, :2] = h[:3, None] * rng.dirichlet(np.ones(2), size=3)  # shared
    T[3:, 2] = h[3:]
    assert fast(C, T) == pytest.approx(0, abs=1e-12)
    for labels in itertools.product((0, 1), repeat=3):
        rounded = h[:, None] * np.eye(3)[[*labels, 2, 2]]
        assert fast(C, rounded) == pytest.approx(0, abs=1e-12)
    wrong = h[:, None] * np.eye(3)[[0, 0, 2, 2, 2]]  # not among the columns of its row
    assert fast(C, wrong) > 0.01
    # splitting a column never hurts, whatever the sign of C
    for _ in range(100):
        h = rng.dirichlet(np.full(5, 2.0))
        A, T = symmetric(5, rng), soft(h, 3, rng)
        merged = np.stack([T[:, 0] + T[:, 1], T[:, 2]], axis=1)
        assert fast(A, T) <= fast(A, merged) + 1e-12


def reduced_kl(C: np.ndarray, T: np.ndarray) -> float:
    """What the best structure leaves of the kl objective, pair by pair."""
    h, q, M = T.sum(axis=1), T.sum(axis=0), T.T @ C @ T

    def f(x: float) -> float:
        return x * math.log(x) if x > 0 else 0.0

    pairs = itertools.product(range(len(q)), repeat=2)
    kept = sum(q[a] * q[b] * f(M[a, b] / (q[a] * q[b])) for a, b in pairs if q[a] * q[b] > 0)
    pairs = itertools.product(range(len(h)), repeat=2)
    return sum(h[i] * h[j] * f(C[i, j]) for i, j in pairs) - kept


def test_prp_soft_kl():
    """All memberships, with weights and with copies for them; the solver finds a soft plan."""
    C, h = np.array([[5.0, 2, 0], [2, 0, 0], [0, 0, 6]]), np.array([1, 8, 1]) / 10
    T = np.array([[1, 0], [0, 1], [2 / 3, 1 / 3]]) * h[:, None]
    P = np.eye(3) - np.outer(np.ones(3), h)
    assert np.linalg.eigvalsh(P @ C @ P.T)[1] > 0.1 and np.linalg.eigvalsh(C)[0] < -0.6
    structure = T.T @ C @ T / np.outer(T.sum(axis=0), T.sum(axis=0))
    assert structure.ravel() == pytest.approx([69 / 25, 156 / 125, 156 / 125, 6 / 625])
    for shift, at_hard, at_soft in ((0.0, 0.298508, 0.286122), (0.01, 0.276205, 0.270197)):
        D = C + shift
        hard = [
            reduced_kl(D, h[:, None] * np.eye(2)[list(labels)])
            for labels in itertools.product(range(2), repeat=3)
        ]
        soft = reduced_kl(D, T)
        assert min(hard) == pytest.approx(at_hard, abs=1e-6)
        assert soft == pytest.approx(at_soft, abs=1e-6)
        assert soft == pytest.approx(drot.gw_objective(D, structure + shift, T, loss="kl"))
        ask = {"init": "random", "n_starts": 20}
        found = drot.srgw_barycenter(D, 2, weights_x=h, loss="kl", **ask)
        assert found.objective <= soft + 1e-12 and ((found.plan > 0).sum(dim=1) > 1).any()

    # what the proof compares: the second sum
    whole = h @ xlogy(C, C) @ h
    rows = [((0, 1, 0), 0.1113), ((0, 1, 1), 0.1085), ((0, 0, 1), 0.0), ((0, 0, 0), 0.0)]
    assert whole - reduced_kl(C, T) > 0.1236
    for labels, bound in rows:
        assert whole - reduced_kl(C, h[:, None] * np.eye(2)[list(labels)]) < bound
    copies = [0, *[1] * 8, 2]
    D, rows = C[np.ix_(copies, copies)], np.full((10, 1), 0.1)
    every = (rows * np.eye(2)[[0, *labels]] for labels in itertools.product(range(2), repeat=9))
    least = min(reduced_kl(D, plan) for plan in every)
    assert least == pytest.approx(0.298508, abs=1e-6)
    assert reduced_kl(D, rows * (T / h[:, None])[copies]) == pytest.approx(0.286122, abs=1e-6)


def test_prp_soft_wins():
    F = Fraction

    def exact(C, T):
        """R in fractions."""
        n, k = len(T), len(T[0])
        h = [sum(row) for row in T]
        q = [sum(row[a] for row in T) for a in range(k)]
        value = sum(h[i] * h[j] * C[i][j] ** 2 for i in range(n) for j in range(n))
        for a, b in itertools.product(range(k), repeat=2):
            if q[a] and q[b]:
                M = sum(T[i][a] * C[i][j] * T[j][b] for i in range(n) for j in range(n))
                value -= M * M / (q[a] * q[b])
        return value

    for shift in (0, 3, -5):
        C = [[F(c + shift) for c in row] for row in ((2, -3, 1), (-3, 2, 1), (1, 1, -2))]
        T = [[F(1, 3), F(0)], [F(0), F(1, 3)], [F(1, 6), F(1, 6)]]
        hard = {
            exact(C, [[F(int(a == b), 3) for b in range(2)] for a in labels])
            for labels in itertools.product(range(2), repeat=3)
        }
        assert hard == {F(25, 9), F(34, 9)} and exact(C, T) == F(206, 81)
    floats = np.array([[float(c) for c in row] for row in C])
    assert drot.gw_objective(
        floats, drot.coarsen(floats, np.array(T, dtype=float)).structure, np.array(T, dtype=float)
    ) == pytest.approx(206 / 81, rel=1e-12)
    values = np.linalg.eigvalsh(floats + 5)
    assert values[0] < -2.9 and values[-1] > 4.9  # neither CPD nor CND: both sum to 0
    # the loops of the exercise: a third of them, and the plan has lost its advantage
    for sigma, better in ((F(3, 10), True), (F(1, 3), None), (F(4, 10), False)):
        L = [[C[i][j] + 5 + (3 * sigma if i == j else 0) for j in range(3)] for i in range(3)]
        gain = min(
            exact(L, [[F(int(a == b), 3) for b in range(2)] for a in labels])
            for labels in itertools.product(range(2), repeat=3)
        ) - exact(L, T)
        assert (gain > 0) if better else (gain == 0 if better is None else gain < 0)


def features(C, h):
    """y_i and a_i by a Cholesky-like factor of the weighted centring."""
    n = len(h)
    P = np.eye(n) - np.outer(np.ones(n), h)
    values, vectors = np.linalg.eigh(P @ C @ P.T)
    assert values.min() > -1e-9 * max(1, values.max())
    return vectors * np.sqrt(values.clip(0)), C @ h - h @ C @ h / 2


def scatters(Y, a, T):
    q = T.sum(axis=0)
    kept = q > 0
    means, alpha = T[:, kept].T @ Y / q[kept, None], T[:, kept].T @ a / q[kept]
    mu = q[kept] @ alpha
    return (means.T * q[kept]) @ means, q[kept] @ (alpha - mu) ** 2


def test_lem_two_scatters():
    rng = np.random.default_rng(4)
    for n, k, sign in itertools.product((4, 7), (1, 2, 4), (1, -1)):
        h = rng.dirichlet(np.full(n, 2.0))
        C = sign * cpd(n, rng)
        Y, a = features(sign * C, h)
        assert np.allclose(Y @ Y.T + a[:, None] + a, sign * C, atol=1e-8)
        assert np.allclose(h @ Y, 0, atol=1e-7)
        (S, s) = scatters(Y, a, np.diag(h))
        for _ in range(10):
            T = soft(h, k, rng)
            B, b = scatters(Y, a, T)
            claimed = np.sum(S**2) - np.sum(B**2) + 2 * (s - b)
            assert claimed == pytest.approx(reduced(C, T), rel=1e-7, abs=1e-8)


def centred(X, h):
    return X - h @ X


def unique_best(values, parts, tol=1e-9):
    winners = {p for p, v in zip(parts, values, strict=True) if v < min(values) + tol}
    assert len(winners) == 1
    return winners.pop()


def partition(labels):
    return tuple(sorted(tuple(np.nonzero(labels == a)[0] + 1) for a in set(labels.tolist())))


def test_prp_kernel_kmeans():
    rng = np.random.default_rng(5)
    # J in its three forms, offsets and all
    h = rng.dirichlet(np.full(6, 2.0))
    C = cpd(6, rng)
    Y, a = features(C, h)
    S, _ = scatters(Y, a, np.diag(h))
    for labels, T in itertools.islice(memberships(h, 3), 100, 140):
        B, _ = scatters(Y, a, T)
        q = T.sum(axis=0)
        means = np.diag(T.T @ C @ T)[q > 0] / q[q > 0]
        assert kmeans(Y, h, labels) == pytest.approx(np.trace(S) - np.trace(B))
        assert kmeans(Y, h, labels) == pytest.approx(h @ np.diag(C) - means.sum())
    ours = drot.kernel_kmeans(C, 3, weights_x=h, init="random", n_starts=30)
    least = min(kmeans(Y, h, labels) for labels, _ in memberships(h, 3))
    assert ours.objective == pytest.approx(least, rel=1e-9)

    # part 1: two clusters, or a line
    for k, p in ((2, 4), (3, 1), (4, 1)):
        Y = centred(rng.normal(size=(6, p)), h)
        C = Y @ Y.T + 3.0
        S = (Y.T * h) @ Y
        R, J = [], []
        for labels, T in memberships(h, k):
            R.append(reduced(C, T) if k == 2 else fast(C, T))
            J.append(kmeans(Y, h, labels))
            law = np.sum(S**2) - (np.trace(S) - J[-1]) ** 2
            assert R[-1] == pytest.approx(law, abs=1e-9)
        assert J[int(np.argmin(R))] == pytest.approx(min(J))
    x = rng.normal(size=6) + 1
    offsets = (0.3 + 2 * (x - h @ x), (h @ x) * x - (h @ x) ** 2 / 2)
    for a in offsets:  # affine in x, and that of x x^T
        y = x - h @ x
        C = np.outer(y, y) + a[:, None] + a
        R, J = zip(
            *((fast(C, T), kmeans(y[:, None], h, labels)) for labels, T in memberships(h, 3)),
            strict=True,
        )
        order = np.argsort(J)
        assert (np.diff(np.array(R)[order]) > -1e-9).all()
    assert np.allclose(C, np.outer(x, x))

    # part 2, for soft plans as well, and both bounds are needed
    ratios = []
    for k, p in ((2, 2), (3, 2), (3, 4), (5, 2)):
        Y = centred(rng.normal(size=(7, p)) * rng.uniform(0.3, 3, size=p), h := np.full(7, 1 / 7))
        C = Y @ Y.T
        S, _ = scatters(Y, np.zeros(7), np.diag(h))
        lam = np.zeros(20)
        lam[:p] = np.linalg.eigvalsh(S)[::-1]
        r1, r2 = lam[k - 1 :].sum(), (lam[k - 1 :] ** 2).sum()
        for _ in range(200):
            T = soft(h, k, rng, rng.choice([0.02, 0.1, 0.5]))
            B, _ = scatters(Y, np.zeros(7), T)
            J = np.trace(S) - np.trace(B)
            R = fast(C, T)
            assert min(J - r1, R - r2) > -1e-10
            assert lam[k - 2] * (J - r1) - 1e-10 <= R - r2 <= 2 * lam[0] * (J - r1) + 1e-10
            if J - r1 > 1e-6:
                ratios.append((R - r2) / (lam[0] * (J - r1)))
    assert max(ratios) > 1.5 and min(ratios) < 0.9

    # part 3
    examples = (
        ([[0, 0], [0, 2], [2, 1]], 2, 1, ((1,), (2, 3)), ((1, 2), (3,))),
        ([[0, 2], [-2, 0], [1, -2], [1, 0]], 3, 1, ((1, 2), (3,), (4,)), ((1,), (2,), (3, 4))),
        ([[0], [1], [4], [7]], 2, 0, ((1, 2, 3), (4,)), ((1, 2), (3, 4))),
    )
    for points, k, inner, for_R, for_J in examples:
        X = np.array(points, dtype=float)
        C = X @ X.T if inner else np.square(X - X.T)
        h = np.full(len(X), 1 / len(X))
        all_plans = list(memberships(h, k))
        parts = [partition(labels) for labels, _ in all_plans]
        assert unique_best([reduced(C, T) for _, T in all_plans], parts) == for_R
        assert unique_best([kmeans(X, h, labels) for labels, _ in all_plans], parts) == for_J
    assert np.allclose(np.array(examples[1][0]).sum(axis=0), 0)


def test_cor_kmeans_limit():
    rng = np.random.default_rng(6)
    h = rng.dirichlet(np.full(6, 3.0))
    C = symmetric(6, rng)
    k, n = 3, 6
    full = [(labels, T) for labels, T in memberships(h, k) if (T.sum(axis=0) > 0).all()]

    def J(T):
        q = T.sum(axis=0)
        return h @ np.diag(C) - (np.diag(T.T @ C @ T)[q > 0] / q[q > 0]).sum()

    for sigma in (0.3, 2.0, -1.0):
        for _, T in full[::40]:
            law = reduced(C, T) + 2 * sigma * J(T) + sigma**2 * (n - k)
            assert reduced(C + sigma * np.diag(1 / h), T) == pytest.approx(law, rel=1e-9)
    costs = np.array([J(T) for _, T in full])
    everyone = list(memberships(h, k))
    looped = C + 200.0 * np.diag(1 / h)
    values = np.array([fast(looped, T) for _, T in everyone])
    winner = everyone[int(values.argmin())]
    assert (winner[1].sum(axis=0) > 0).all()
    found, _ = best_soft(looped, h, k, rng, 3)  # no soft plan does better
    assert values.min() * (1 - 1e-9) <= found
    assert J(winner[1]) == pytest.approx(costs.min(), rel=1e-9)
    assert fast(C, full[int(costs.argmin())][1]) > min(fast(C, T) for _, T in full) + 1e-6
    # among the solutions of kernel k-means, those of least R: a tie in J that R breaks
    tie = np.array([[1.0, 1, 0, 0], [1, 1, 0, 2], [0, 0, 1, 1], [0, 2, 1, 1]])
    g = np.full(4, 0.25)
    for sigma in (50.0, 500.0):
        looped = tie + sigma * 4 * np.eye(4)
        values = {partition(labels): fast(looped, T) for labels, T in memberships(g, 3)}
        winner = min(values, key=values.get)
        own = {
            partition(labels): (
                g @ np.diag(tie) - sum(np.diag(T.T @ tie @ T) / T.sum(axis=0)),
                fast(tie, T),
            )
            for labels, T in memberships(g, 3)
            if (T.sum(axis=0) > 0).all()
        }
        assert winner == min(own, key=lambda part: tuple(np.round(own[part], 9)))


def test_prp_row_kmeans():
    rng = np.random.default_rng(7)
    ratios = []

    def by_rows(C, T):
        h, q = T.sum(axis=1), T.sum(axis=0)
        means = (T / q).T @ C
        return float(np.einsum("ia,j,iaj->", T, h, (C[:, None] - means) ** 2))

    for n, k in ((4, 2), (6, 3), (6, 1)):
        for _ in range(60):
            h = rng.dirichlet(np.full(n, 2.0))
            C, T = symmetric(n, rng), soft(h, k, rng, 0.2)
            q = T.sum(axis=0)
            rows = sum(
                T[i, a] * h[j] * (C[i, j] - T[:, a] @ C[:, j] / q[a]) ** 2
                for i, a, j in itertools.product(range(n), range(k), range(n))
            )
            value = fast(C, T)
            assert rows <= value + 1e-10 and value <= 2 * rows + 1e-10
            ratios.append(value / rows)
            # J_2 is concave, as a function of the plan
            S, t = soft(h, k, rng, 0.2), rng.uniform()
            chord = t * by_rows(C, S) + (1 - t) * rows
            assert by_rows(C, T) == pytest.approx(rows)
            assert by_rows(C, t * S + (1 - t) * T) >= chord - 1e-10
    assert max(ratios) > 1.8 and min(ratios) < 1.2
    # hard plans lose at most a factor of two, whatever C is; here something, in all
    lost = 1.0
    h = np.full(4, 0.25)
    for C in (
        *(symmetric(4, rng) for _ in range(5)),
        np.array([[0.0, 4, 6, -1], [4, 6, -2, 4], [6, -2, -4, -3], [-1, 4, -3, -4]]),
    ):
        hard = {tuple(labels): fast(C, T) for labels, T in memberships(h, 2)}
        found, _ = best_soft(C, h, 2, rng, 4)
        best_rows = min((kmeans(C * np.sqrt(h), h, np.array(labels)), labels) for labels in hard)[1]
        assert hard[best_rows] <= 2 * min(found, min(hard.values())) + 1e-9
        lost = max(lost, hard[best_rows] / min(found, min(hard.values())))
    assert 1.6 < lost <= 2  # the last one comes near


def test_prp_spectral_relaxation():
    rng = np.random.default_rng(8)
    n, k = 6, 2
    h = rng.dirichlet(np.full(n, 3.0))
    C = symmetric(n, rng)
    weighted = np.sqrt(np.outer(h, h)) * C
    values, vectors = np.linalg.eigh(weighted)
    order = np.abs(values).argsort()[::-1]
    bound = np.square(values[order[k:]]).sum()

    def left(W):
        return np.square(weighted).sum() - np.square(W.T @ weighted @ W).sum()

    assert left(vectors[:, order[:k]]) == pytest.approx(bound, rel=1e-10)
    assert left(vectors[:, -k:]) > bound + 1e-6 or (values[order[:k]] > 0).all()

    def frame(x):
        return np.linalg.qr(x.reshape(n, k))[0]

    runs = [minimize(lambda x: left(frame(x)), rng.normal(size=n * k)) for _ in range(6)]
    assert min(run.fun for run in runs) == pytest.approx(bound, rel=1e-5)
    for _, T in memberships(h, k):
        assert fast(C, T) >= bound - 1e-12
    for _ in range(200):
        assert fast(C, soft(h, k, rng)) >= bound - 1e-12
    # degrees as weights: kernel k-means is the normalised cut, mean similarities are 1
    A = rng.uniform(size=(n, n))
    A = A + A.T
    d, vol = A.sum(axis=1), A.sum()
    g, D = d / vol, vol * A / np.outer(d, d)
    assert np.allclose(D @ g, 1)
    for labels, T in memberships(g, 3):
        q = T.sum(axis=0)
        if (q == 0).any():
            continue
        cut = sum(
            A[np.ix_(labels == a, labels != a)].sum() / d[labels == a].sum() for a in range(3)
        )
        J = g @ np.diag(D) - (np.diag(T.T @ D @ T) / q).sum()
        trace = np.trace(A / np.sqrt(np.outer(d, d)))
        assert trace - 3 + cut == pytest.approx(J)


def test_prp_interlacing():
    rng = np.random.default_rng(9)
    slack = []
    for n, k, definite in itertools.product((5, 7), (2, 3), (False, True)):
        h = rng.dirichlet(np.full(n, 3.0))
        C = symmetric(n, rng)
        if definite:
            C = C @ C / 5
        lam = np.linalg.eigvalsh(np.sqrt(np.outer(h, h)) * C)[::-1]
        for labels, T in itertools.islice(memberships(h, k), 20, 120):
            if (T.sum(axis=0) == 0).any():
                continue
            small = drot.coarsen(C, labels, weights_x=h)
            mu = np.linalg.eigvalsh(small.normalized.numpy())[::-1]
            assert (mu <= lam[:k] + 1e-12).all() and (mu >= lam[n - k :] - 1e-12).all()
            value = reduced(C, T)
            assert value == pytest.approx((lam**2).sum() - (mu**2).sum(), rel=1e-9)
            if definite:
                moved = ((lam[:k] - mu) ** 2).sum()
                assert moved <= value - (lam[k:] ** 2).sum() + 1e-12
                slack.append(moved / (value - (lam[k:] ** 2).sum()))
        for _ in range(10):  # the sum of squares, for soft plans and matrices of both signs
            T = soft(h, k, rng, 1.0)
            mu = np.linalg.eigvalsh(drot.coarsen(C, T, weights_x=h).normalized.numpy())
            assert reduced(C, T) == pytest.approx((lam**2).sum() - (mu**2).sum(), rel=1e-9)
        if not definite:
            continue
        below = 0
        for _ in range(100):  # soft plans: only from above
            T = soft(h, k, rng, 1.0)
            mu = np.linalg.eigvalsh(drot.coarsen(C, T, weights_x=h).normalized.numpy())[::-1]
            assert (mu <= lam[:k] + 1e-12).all()
            assert ((lam[:k] - mu) ** 2).sum() <= fast(C, T) - (lam[k:] ** 2).sum() + 1e-12
            below += (mu < lam[n - k :] - 1e-9).any()
        if k == 3:
            assert below > 0
    assert max(slack) > 0.2
    # the mean over all points may be 0, and then all that moves is lost
    v = np.array([1.0, -1, 2, -2])
    small = drot.coarsen(np.outer(v, v), [0, 0, 0, 0])
    lam = (v**2).mean()
    assert small.normalized.item() == pytest.approx(0, abs=1e-15)
    assert reduced(np.outer(v, v), np.full((4, 1), 0.25)) == pytest.approx(lam**2)
    # without the weights nothing interlaces
    small = drot.coarsen(np.eye(4), [0, 0, 1, 1])
    assert np.allclose(np.linalg.eigvalsh(small.structure), 0.5)
    assert np.allclose(np.linalg.eigvalsh(small.normalized), 0.25)
