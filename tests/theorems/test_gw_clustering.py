"""Chapter 13: barycentres, hard plans, kernel k-means, spectra, merges and splits of clusters.

Oracles: four-fold sums, all memberships, exact fractions, explicit features, numerical search over
plans and over orthonormal frames, scikit-learn.
"""

import itertools
from fractions import Fraction

import drot
import numpy as np
import pytest
import torch
from drot.gromov.barycenter import (
    Reduced,
    merges,
    splits,
    upper_halves,
)
from drot.gromov.contraction import Contraction, as_cost
from plans import LOSSES, cloud, energy, problem, soft, weights
from scipy.optimize import minimize
from scipy.special import xlogy
from sklearn.metrics import adjusted_rand_score

MIXED = np.array([[2.0, -3, 1], [-3, 2, 1], [1, 1, -2]])  # rows sum to 0, both signs


def mean_structure(C, T) -> np.ndarray:
    """Weighted means of C between clusters, by a loop; 0 for an empty cluster."""
    C, T = np.asarray(C), np.asarray(T)
    D = np.zeros((T.shape[1], T.shape[1]))
    for a, b in itertools.product(range(len(D)), repeat=2):
        mass = np.outer(T[:, a], T[:, b])
        D[a, b] = (mass * C).sum() / mass.sum() if mass.sum() > 0 else 0.0
    return D


def value(C, T, loss: str = "square") -> float:
    """min over Cbar of E_L: the four-fold sum at the means."""
    D, empty = mean_structure(C, T), np.asarray(T).sum(axis=0) == 0
    D[empty], D[:, empty] = 1.0, 1.0  # free
    return energy(C, D, T, loss)


def fast(C, T) -> float:
    """The same for the square loss, as a difference of two squared norms."""
    h, q = T.sum(axis=1), T.sum(axis=0)
    used = q > 0
    M = T[:, used].T @ C @ T[:, used] / np.sqrt(np.outer(q[used], q[used]))
    return float(h @ C**2 @ h - np.square(M).sum())


def memberships(h, k):
    for labels in itertools.product(range(k), repeat=len(h)):
        yield np.asarray(labels), h[:, None] * np.eye(k)[list(labels)]


def full(h, k):
    """Those without an empty cluster."""
    return [(labels, T) for labels, T in memberships(h, k) if (T.sum(axis=0) > 0).all()]


def partition(labels):
    return tuple(sorted(tuple(np.nonzero(labels == a)[0] + 1) for a in set(labels.tolist())))


def spread(h, k, rng, share=0.4):
    return h[:, None] * rng.dirichlet(np.full(k, share), size=len(h))


def symmetric(n, rng):
    C = rng.normal(size=(n, n))
    return C + C.T


def cpd(n, rng, rank=3):
    """Inner products and offsets; not positive semidefinite in general."""
    Y, a = rng.normal(size=(n, rank)), 2 * rng.normal(size=n)
    return Y @ Y.T + a[:, None] + a


KINDS = {
    "distances": lambda n, seed: drot.sqeuclidean(cloud(n, 2, seed)).dense().numpy(),
    "student": lambda n, seed: -drot.student_cost(cloud(n, 2, seed)).dense().numpy(),
    "kernel": lambda n, seed: np.exp(-KINDS["distances"](n, seed)),
    "offsets": lambda n, seed: cpd(n, np.random.default_rng(seed)),
    "minus offsets": lambda n, seed: -cpd(n, np.random.default_rng(seed)),
}


def rows_of(z, h):
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return h[:, None] * z / z.sum(axis=-1, keepdims=True)


def best_soft(C, h, k, rng, tries):
    """Least reduced objective that a local search over plans finds."""

    def objective(x):
        return fast(C, rows_of(x.reshape(len(h), k), h))

    return min(minimize(objective, 2 * rng.normal(size=len(h) * k)).fun for _ in range(tries))


def sag(C, h, rng) -> float:
    """The least R(middle) - mean of R at the ends that a search over pairs of plans finds."""

    def gap(x):
        S, T = rows_of(x.reshape(2, len(h), 2), h)
        return fast(C, (S + T) / 2) - (fast(C, S) + fast(C, T)) / 2

    starts = [2 * rng.normal(size=4 * len(h)) for _ in range(3)]
    return min(minimize(gap, x, options={"maxiter": 30}).fun for x in starts)


def kmeans(Y, h, labels) -> float:
    """Weighted k-means cost of points, cluster by cluster."""
    Y, h, labels = (np.asarray(a) for a in (Y, h, labels))
    total = 0.0
    for a in set(labels.tolist()):
        mine = labels == a
        mean = h[mine] @ Y[mine] / h[mine].sum()
        total += float(h[mine] @ np.square(Y[mine] - mean).sum(axis=1))
    return total


def reduced(C, w, k: int, loss: str) -> Reduced:
    return Reduced(Contraction(as_cost(C, "cost_x", loss), None, loss), w, k)


def of_points(X: np.ndarray, k: int, loss: str, w=None) -> Reduced:
    C = torch.cdist(torch.from_numpy(X), torch.from_numpy(X)).square()
    return reduced(
        C, torch.full((len(X),), 1 / len(X), dtype=torch.float64) if w is None else w, k, loss
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_lem_reduced_barycenter(loss):
    """The mean is the best structure for both losses; value, slope and limit of what is left."""
    (A, _), w, rng = problem(0, 6), weights(6), np.random.default_rng(0)
    T = soft(w, 3, 1)
    C, best = mean_structure(A, T), value(A, T, loss)
    for scale, _ in itertools.product((1e-3, 0.1), range(20)):
        assert energy(A, np.abs(C + scale * rng.normal(size=(3, 3))), T, loss) > best
    terms = reduced(A, w, 3, loss)
    cell = terms.cell(T)
    np.testing.assert_allclose(cell.structure, C, atol=1e-12)
    assert cell.value == pytest.approx(best, abs=1e-12)
    # the gradient of the reduced objective is the partial one at the mean, by differences
    G, eps = 2 * terms.half_gradient(cell), 1e-6
    for D in (soft(w, 3, 5) - T, torch.eye(3).double()[[0, 1, 2] * 2] * w[:, None] - T):
        slope = (terms.cell(T + eps * D).value - terms.cell(T - eps * D).value) / (2 * eps)
        assert float((G * D).sum()) == pytest.approx(slope, abs=1e-7)
    # as a column runs empty the value tends to that of two clusters
    thin = T.clone()
    thin[:, 1] += thin[:, 2]
    thin[:, 2] = 0
    values = [terms.cell(thin + s * (T - thin)).value for s in (1e-2, 1e-4, 1e-6, 0.0)]
    assert abs(values[2] - values[3]) < 1e-4 and abs(values[0] - values[3]) < 1e-1
    assert values[3] == pytest.approx(value(A, thin, loss), abs=1e-12)
    assert (terms.cell(thin).structure[2] == 0).all()


def excess(C, P, Q) -> float:
    """What the trace inequality says is not negative."""
    return float(np.trace((P - Q).T @ C @ (P - Q) @ C)) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_lem_concave(kind):
    """The trace inequality, for matrices of the same row and column sums."""
    rng = np.random.default_rng(1)
    for n in (3, 5, 8):
        C = KINDS[kind](n, n)
        H = np.eye(n) - 1 / n
        signs = np.linalg.eigvalsh(H @ C @ H)
        assert signs.min() > -1e-9 or signs.max() < 1e-9
        gaps = []
        for _ in range(50):
            P, D = rng.normal(size=(n, n)), rng.normal(size=(n, n))
            Q = P + H @ D @ H
            mixed = np.trace(P.T @ C @ Q @ C)
            own = (np.trace(P.T @ C @ P @ C) + np.trace(Q.T @ C @ Q @ C)) / 2
            assert own - mixed == pytest.approx(excess(C, P, Q), abs=1e-9)
            gaps.append(own - mixed)
        assert min(gaps) > -1e-9 and max(gaps) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "k"), [(5, 2), (7, 3)])
def test_thm_hard_plans(kind, n, k):
    """Concave along segments, so no soft plan beats all memberships; the solver finds the best."""
    rng = np.random.default_rng(n)
    h, C = rng.dirichlet(np.full(n, 3.0)), KINDS[kind](n, n)
    for _ in range(60):  # ends hard, soft or with empty columns
        S, T = spread(h, k, rng, rng.uniform(0.1, 1)), spread(h, k, rng)
        if rng.uniform() < 0.3:
            T[:, 0] += T[:, 1]
            T[:, 1] = 0
        t = rng.uniform(0.1, 0.9)
        chord = (1 - t) * fast(C, S) + t * fast(C, T)
        assert fast(C, (1 - t) * S + t * T) >= chord - 1e-10 * abs(chord)
    assert sag(C, h, rng) > -1e-7
    least = min(fast(C, T) for _, T in memberships(h, k))
    assert best_soft(C, h, k, rng, 6) >= least - 1e-7
    found = drot.srgw_barycenter(C, k, weights=h, init=["kmeans", "random"], n_starts=20)
    assert found.objective == pytest.approx(least, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(found.structure, mean_structure(C, found.plan), atol=1e-9)
    # conditional gradient alone leaves soft plans at its first step
    for plan in (found, drot.srgw_barycenter(C, k, weights=h, init=S, refine=False)):
        assert bool(((plan.plan > 0).sum(dim=1) == 1).all())
        assert plan.objective == pytest.approx(fast(C, plan.plan.numpy()), abs=1e-9)


def test_thm_hard_plans_needs_the_hypothesis():
    """A matrix of both signs is not concave; there a point is split evenly, and the solver too."""
    assert sag(MIXED, np.full(3, 1 / 3), np.random.default_rng(2)) < -0.1
    C = np.array([[3.0, 2, -3], [2, -1, 2], [-3, 2, 3]])
    best = min(value(C, T) for _, T in memberships(np.full(3, 1 / 3), 2))
    half, start = (np.array([[1, 0], [a, 1 - a], [0, 1]]) / 3 for a in (0.5, 0.7))
    assert best == pytest.approx(34 / 9, abs=1e-12) and value(C, half) < best - 0.25
    found = drot.srgw_barycenter(C, 2, init=start)
    assert found.objective == pytest.approx(value(C, half), abs=1e-9)
    np.testing.assert_allclose(found.plan, half, rtol=0, atol=1e-4)


def reduced_kl(C: np.ndarray, T: np.ndarray) -> float:
    """What the best structure leaves of the kl objective."""
    h, q, M = T.sum(axis=1), T.sum(axis=0), T.T @ C @ T
    mass = np.where(np.outer(q, q) > 0, np.outer(q, q), 1)
    return float(h @ xlogy(C, C) @ h - xlogy(M, M / mass).sum())


def test_prp_soft_kl():
    """All memberships, with weights and with copies for them; the solver finds a soft plan."""
    C, h = np.array([[5.0, 2, 0], [2, 0, 0], [0, 0, 6]]), np.array([1, 8, 1]) / 10
    T = np.array([[1, 0], [0, 1], [2 / 3, 1 / 3]]) * h[:, None]
    structure = mean_structure(C, T)
    assert structure.ravel() == pytest.approx([69 / 25, 156 / 125, 156 / 125, 6 / 625])
    for shift, at_hard, at_soft in ((0.0, 0.298508, 0.286122), (0.01, 0.276205, 0.270197)):
        D = C + shift
        hard, shared = min(reduced_kl(D, S) for _, S in memberships(h, 2)), reduced_kl(D, T)
        assert (hard, shared) == pytest.approx((at_hard, at_soft), abs=1e-6)
        assert shared == pytest.approx(drot.gw_objective(D, structure + shift, T, loss="kl"))
        found = drot.srgw_barycenter(D, 2, weights=h, loss="kl", init="random", n_starts=8)
        assert found.objective <= shared + 1e-12 and ((found.plan > 0).sum(dim=1) > 1).any()
    copies = [0, *[1] * 8, 2]
    D, tenth = C[np.ix_(copies, copies)], np.full(10, 0.1)
    hard = min(reduced_kl(D, S) for labels, S in memberships(tenth, 2) if labels[0] == 0)
    shared = reduced_kl(D, 0.1 * (T / h[:, None])[copies])
    assert [hard, shared] == pytest.approx([0.298508, 0.286122], abs=1e-6)


def exact(C, T):
    """R of the square loss in fractions."""
    n, k = len(T), len(T[0])
    h, q = [sum(row) for row in T], [sum(row[a] for row in T) for a in range(k)]
    pairs = list(itertools.product(range(n), repeat=2))
    left = sum(h[i] * h[j] * C[i][j] ** 2 for i, j in pairs)
    for a, b in itertools.product(range(k), repeat=2):
        if q[a] and q[b]:
            left -= sum(T[i][a] * C[i][j] * T[j][b] for i, j in pairs) ** 2 / (q[a] * q[b])
    return left


def test_prp_soft_wins():
    """In fractions; and the loops of the exercise: at a third the plan has lost its advantage."""
    F = Fraction
    T = [[F(1, 3), F(0)], [F(0), F(1, 3)], [F(1, 6), F(1, 6)]]
    hard = [
        [[F(int(a == b), 3) for b in range(2)] for a in labels]
        for labels in itertools.product(range(2), repeat=3)
    ]
    for shift in (0, 3, -5):
        C = [[F(int(c) + shift) for c in row] for row in MIXED]
        assert {exact(C, S) for S in hard} == {F(25, 9), F(34, 9)} and exact(C, T) == F(206, 81)
    plan = np.array(T, dtype=float)
    structure = drot.gromov.coarsen(MIXED, plan).structure
    assert drot.gw_objective(MIXED, structure, plan) == pytest.approx(206 / 81, rel=1e-12)
    values = np.linalg.eigvalsh(MIXED)
    assert values[0] < -2.9 and values[-1] > 4.9  # neither CPD nor CND: both sum to 0
    for sigma, sign in ((F(3, 10), 1), (F(1, 3), 0), (F(4, 10), -1)):
        L = [[int(MIXED[i, j]) + 3 * sigma * (i == j) for j in range(3)] for i in range(3)]
        gain = min(exact(L, S) for S in hard) - exact(L, T)
        assert (gain > 0) - (gain < 0) == sign


def features(C, h):
    """y_i and a_i by a Cholesky-like factor of the weighted centring."""
    P = np.eye(len(h)) - np.outer(np.ones(len(h)), h)
    values, vectors = np.linalg.eigh(P @ C @ P.T)
    assert values.min() > -1e-9 * max(1, values.max())
    return vectors * np.sqrt(values.clip(0)), C @ h - h @ C @ h / 2


def scatters(Y, a, T):
    q = T.sum(axis=0)
    kept = q > 0
    means, alpha = T[:, kept].T @ Y / q[kept, None], T[:, kept].T @ a / q[kept]
    return (means.T * q[kept]) @ means, q[kept] @ (alpha - q[kept] @ alpha) ** 2


def trace_cost(C, h, T) -> float:
    q = T.sum(axis=0)
    return float(h @ np.diag(C) - (np.diag(T.T @ C @ T)[q > 0] / q[q > 0]).sum())


def test_lem_two_scatters():
    rng = np.random.default_rng(4)
    for n, k, sign in itertools.product((4, 7), (1, 2, 4), (1, -1)):
        h, C = rng.dirichlet(np.full(n, 2.0)), sign * cpd(n, rng)
        Y, a = features(sign * C, h)
        assert np.allclose(Y @ Y.T + a[:, None] + a, sign * C, atol=1e-8)
        assert np.allclose(h @ Y, 0, atol=1e-7)
        S, s = scatters(Y, a, np.diag(h))
        for _ in range(10):
            T = spread(h, k, rng)
            B, b = scatters(Y, a, T)
            claimed = np.sum(S**2) - np.sum(B**2) + 2 * (s - b)
            assert claimed == pytest.approx(value(C, T), rel=1e-7, abs=1e-8)


def test_prp_kernel_kmeans():
    """J in its three forms, offsets and all; where R and J order memberships alike."""
    rng = np.random.default_rng(5)
    h = rng.dirichlet(np.full(6, 2.0))
    C = cpd(6, rng)
    Y, a = features(C, h)
    S, _ = scatters(Y, a, np.diag(h))
    for labels, T in itertools.islice(memberships(h, 3), 100, 140):
        B, _ = scatters(Y, a, T)
        forms = [np.trace(S) - np.trace(B), trace_cost(C, h, T)]
        assert forms == pytest.approx([kmeans(Y, h, labels)] * 2)
    ours = drot.kernel_kmeans(C, 3, weights=h, init="random", n_starts=30)
    least = min(kmeans(Y, h, labels) for labels, _ in memberships(h, 3))
    assert ours.objective == pytest.approx(least, rel=1e-9)
    # part 1: two clusters, or a line
    for k, p in ((2, 4), (3, 1)):
        Y = rng.normal(size=(6, p))
        Y -= h @ Y
        S = (Y.T * h) @ Y
        for labels, T in memberships(h, k):
            law = np.sum(S**2) - (np.trace(S) - kmeans(Y, h, labels)) ** 2
            assert fast(Y @ Y.T + 3.0, T) == pytest.approx(law, abs=1e-9)


@pytest.mark.parametrize(
    ("points", "k", "inner", "for_R", "for_J"),
    [
        ([[0, 0], [0, 2], [2, 1]], 2, True, ((1,), (2, 3)), ((1, 2), (3,))),
        ([[0, 2], [-2, 0], [1, -2], [1, 0]], 3, True, ((1, 2), (3,), (4,)), ((1,), (2,), (3, 4))),
        ([[0], [1], [4], [7]], 2, False, ((1, 2, 3), (4,)), ((1, 2), (3, 4))),
        ([[1, 2], [1, 1], [2, 3], [1, 0], [2, 0]], 2, True, None, None),
    ],
)
def test_err_kernel_kmeans(points, k, inner, for_R, for_J):
    """Part 3: memberships that are best for one and not for the other; the package finds both."""
    X = np.array(points, dtype=float)
    C, h = X @ X.T if inner else np.square(X - X.T), np.full(len(X), 1 / len(X))
    R, J = {}, {}
    for labels, T in memberships(h, k):
        R[partition(labels)], J[partition(labels)] = value(C, T), kmeans(X, h, labels)
    winners = [min(table, key=table.get) for table in (R, J)]
    assert winners[0] != winners[1]
    for table, winner, claimed in zip((R, J), winners, (for_R, for_J), strict=True):
        assert sum(v < table[winner] + 1e-9 for v in table.values()) == 1
        assert claimed in (None, winner)
    ask = {"init": "random", "n_starts": 20}
    other, one = drot.srgw_barycenter(C, k, **ask), drot.kernel_kmeans(X @ X.T, k, **ask)
    assert [partition(found.labels.numpy()) for found in (other, one)] == winners
    assert one.objective == pytest.approx(J[winners[1]], abs=1e-12)
    assert other.objective == pytest.approx(R[winners[0]], abs=1e-12)


def test_cor_kmeans_limit():
    """Loops turn R into J: the law for each sigma, and the winner at a large one."""
    rng, n, k = np.random.default_rng(6), 6, 3
    h, C = rng.dirichlet(np.full(n, 3.0)), symmetric(n, rng)
    parts = full(h, k)
    for sigma, (_, T) in itertools.product((0.3, 2.0, -1.0), parts[::40]):
        law = value(C, T) + 2 * sigma * trace_cost(C, h, T) + sigma**2 * (n - k)
        assert value(C + sigma * np.diag(1 / h), T) == pytest.approx(law, rel=1e-9)
    costs = np.array([trace_cost(C, h, T) for _, T in parts])
    looped = C + 200.0 * np.diag(1 / h)
    winner = min((T for _, T in memberships(h, k)), key=lambda T: fast(looped, T))
    assert fast(looped, winner) * (1 - 1e-9) <= best_soft(looped, h, k, rng, 3)
    assert trace_cost(C, h, winner) == pytest.approx(costs.min(), rel=1e-9)
    assert fast(C, parts[int(costs.argmin())][1]) > min(fast(C, T) for _, T in parts) + 1e-6


def by_rows(C, T) -> float:
    """J_2, k-means of the rows: the sum of the statement."""
    h, means = T.sum(axis=1), (T / T.sum(axis=0)).T @ C
    return float(np.einsum("ia,j,iaj->", T, h, (C[:, None] - means) ** 2))


def test_prp_row_kmeans():
    """J_2 <= R <= 2 J_2, so its best membership loses at most a factor of 2; J_2 is concave."""
    rng = np.random.default_rng(3)
    for (n, k), _ in itertools.product(((4, 2), (6, 3), (6, 1)), range(60)):
        h, C = rng.dirichlet(np.full(n, 2.0)), symmetric(n, rng)
        S, T, t = spread(h, k, rng, 0.2), spread(h, k, rng, 0.2), rng.uniform()
        rows, left = by_rows(C, T), fast(C, T)
        assert rows <= left + 1e-10 and left <= 2 * rows + 1e-10
        assert by_rows(C, t * S + (1 - t) * T) >= t * by_rows(C, S) + (1 - t) * rows - 1e-10


def test_prp_spectral_relaxation():
    """The bound by frames and by plans; with degrees as weights J is the normalised cut."""
    rng, n, k = np.random.default_rng(8), 6, 2
    h, C = rng.dirichlet(np.full(n, 3.0)), symmetric(n, rng)
    weighted = np.sqrt(np.outer(h, h)) * C
    bound = np.sort(np.linalg.eigvalsh(weighted) ** 2)[:-k].sum()

    def at(x):
        W = np.linalg.qr(x.reshape(n, k))[0]
        return np.square(weighted).sum() - np.square(W.T @ weighted @ W).sum()

    runs = [minimize(at, rng.normal(size=n * k)).fun for _ in range(6)]
    assert min(runs) == pytest.approx(bound, rel=1e-5)
    for T in (*(T for _, T in memberships(h, k)), *(spread(h, k, rng) for _ in range(200))):
        assert fast(C, T) >= bound - 1e-12
    A = symmetric(n, rng) + 5
    d, vol = A.sum(axis=1), A.sum()
    g, D = d / vol, vol * A / np.outer(d, d)
    trace = np.trace(A / np.sqrt(np.outer(d, d)))
    for labels, T in full(g, 3):
        groups = [labels == a for a in range(3)]
        cut = sum(A[np.ix_(mine, ~mine)].sum() / d[mine].sum() for mine in groups)
        assert trace - 3 + cut == pytest.approx(trace_cost(D, g, T))


def test_prp_interlacing():
    """Poincare separation for memberships; soft plans of definite matrices only from above."""
    rng, below, free = np.random.default_rng(9), 0, 0
    for n, k, definite in itertools.product((5, 7), (2, 3), (False, True)):
        h, C = rng.dirichlet(np.full(n, 3.0)), symmetric(n, rng)
        C = C @ C / 5 if definite else C
        lam = np.linalg.eigvalsh(np.sqrt(np.outer(h, h)) * C)[::-1]
        soft_ones = [(None, spread(h, k, rng, 1.0)) for _ in range(50)]
        for labels, T in [*full(h, k)[10:80], *soft_ones]:
            found = drot.gromov.coarsen(C, T if labels is None else labels, weights=h)
            np.testing.assert_allclose(found.weights, T.sum(axis=0), atol=1e-14)
            mu, plain = (
                np.linalg.eigvalsh(matrix.numpy())[::-1]
                for matrix in (found.normalized, found.structure)
            )
            assert value(C, T) == pytest.approx((lam**2).sum() - (mu**2).sum(), rel=1e-9)
            under = (mu < lam[n - k :] - 1e-9).any()
            if definite:
                moved, lost = ((lam[:k] - mu) ** 2).sum(), fast(C, T) - (lam[k:] ** 2).sum()
                assert (mu <= lam[:k] + 1e-12).all() and moved <= lost + 1e-12
            if labels is None:
                assert mu[0] <= max(lam[0], 0) + 1e-12 and mu[-1] >= min(lam[-1], 0) - 1e-12
                below += definite and under
            else:
                assert (mu <= lam[:k] + 1e-12).all() and not under
                free += (plain > lam[:k] + 1e-9).any() or (plain < lam[n - k :] - 1e-9).any()
    assert below > 0 and free > 100  # without the weights nothing interlaces


def by_blobs(k: int = 4, each: int = 25) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Blobs at the corners of a simplex, which of them a point is of, and clusters of which one
    holds the first two blobs while two share the last."""
    y = np.repeat(np.arange(k), each)
    X = 8 * np.eye(k)[y] + np.random.default_rng(0).normal(size=(len(y), k))
    wrong = np.where(y == 1, 0, y)
    wrong[(y == k - 1) & (X[:, 0] > 0)] = 1
    return X, y, wrong


@pytest.mark.parametrize("loss", LOSSES)
def test_changes_by_merges_and_splits(loss):
    """What each would change, against labels that were changed; weights differ, one is 0."""
    rng = np.random.default_rng(1)
    w = torch.from_numpy(rng.dirichlet(np.ones(40)))
    w[7] = 0
    w /= w.sum()
    X, labels = rng.normal(size=(40, 3)), torch.from_numpy(rng.integers(5, size=40))
    labels[labels == 3] = 1  # an empty cluster, and one of a single point
    labels[labels == 4] = 2
    labels[5] = 4
    problem, more = (of_points(X, k, loss, w) for k in (5, 6))
    cell = problem.hard(labels)
    merged, upper = merges(problem, cell), upper_halves(torch.from_numpy(X), labels, w, 5)
    halved = splits(problem, cell, upper)
    want_merged, want_halved = np.full((5, 5), np.inf), np.full(5, np.inf)
    for a, b in itertools.combinations(range(5), 2):
        want_merged[a, b] = problem.hard(torch.where(labels == b, a, labels)).value - cell.value
    for c in range(3):
        want_halved[c] = more.hard(torch.where((labels == c) & upper, 5, labels)).value - cell.value
    np.testing.assert_allclose(merged, want_merged, rtol=0, atol=1e-12 * problem.scale)
    np.testing.assert_allclose(halved, want_halved, rtol=0, atol=1e-12 * problem.scale)
    assert (halved[:3] < 0).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_out_of_a_local_minimum(loss, dtype):
    """Two blobs in one cluster and one blob in two: single points stay, merging and splitting leads
    to the blobs."""
    X, y, wrong = by_blobs()
    C = drot.sqeuclidean(torch.from_numpy(X).to(dtype))
    found = drot.srgw_barycenter(C, 4, loss=loss, init=np.eye(4)[wrong] / len(y))
    assert adjusted_rand_score(found.labels, y) == 1 and found.plan.dtype == dtype
    assert found.objective < 0.7 * found.ends[0] and len(found.ends) == 1 and found.converged
    assert (np.diff(found.trace) <= 0).all()
    exact = drot.gw_objective(C, found.structure, found.plan, loss=loss)
    assert [found.trace[-1], exact] == pytest.approx([found.objective] * 2, rel=1e-5)
    again = drot.srgw_barycenter(C, 4, loss=loss, init=found)
    assert torch.equal(again.labels, found.labels)


def test_rounding_below_zero_is_no_loss_of_moves():
    """Under kl, what a move or a split takes away may be all there is, to rounding: not below 0."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        C = rng.exponential(size=(12, 12)) * (rng.random((12, 12)) < 0.2)
        C, w = torch.from_numpy(C + C.T), torch.from_numpy(rng.dirichlet(np.ones(12)))
        problem, labels = reduced(C, w, 4, "kl"), torch.from_numpy(rng.permutation(12) % 4)
        cell = problem.hard(labels)
        halved = splits(problem, cell, torch.from_numpy(rng.random(12) < 0.5))
        assert not halved.isnan().any() and not problem.changes(cell, labels, w).isnan().any()
