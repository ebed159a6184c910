"""Chapter 13: barycentres, hard plans, kernel k-means, spectra, merges and splits of clusters.

Oracles: four-fold sums, all memberships, explicit features, numerical search over plans and over
orthonormal frames, scikit-learn.
"""

import itertools

import drot
import numpy as np
import pytest
import torch
from drot.gromov.barycenter import Reduced, merges, splits, upper_halves
from drot.gromov.contraction import Terms
from drot.gromov.loss import as_loss
from drot.gromov.reading import as_similarity
from plans import LOSSES, cloud, cut, energy, kmeans, problem, soft, weights
from scipy.optimize import minimize
from scipy.special import softmax, xlogy
from sklearn.metrics import adjusted_rand_score

MIXED = np.array([[2.0, -3, 1], [-3, 2, 1], [1, 1, -2]])  # rows sum to 0, both signs


def mean_structure(C, T) -> np.ndarray:
    """Weighted means of C between clusters; 0 for an empty cluster."""
    mass = np.outer(T.sum(axis=0), T.sum(axis=0))
    return np.divide(T.T @ C @ T, mass, out=np.zeros_like(mass), where=mass > 0)


def value(C, T, loss: str = "square") -> float:
    """R: what the means leave of E_L."""
    h, q = T.sum(axis=1), T.sum(axis=0)
    f = np.square if loss == "square" else lambda x: xlogy(x, x)
    return float(h @ f(C) @ h - q @ f(mean_structure(C, T)) @ q)


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


KINDS = {  # negative definite on vectors of sum 0, positive definite, positive on sum 0 only
    "distances": lambda n, seed: drot.sqeuclidean(cloud(n, 2, seed)).dense().numpy(),
    "kernel": lambda n, seed: np.exp(-KINDS["distances"](n, seed)),
    "offsets": lambda n, seed: cpd(n, np.random.default_rng(seed)),
}


def best_soft(C, h, k, rng, tries):
    """Least reduced objective that a local search over plans finds."""

    def objective(x):
        return value(C, h[:, None] * softmax(x.reshape(len(h), k), axis=1))

    return min(minimize(objective, 2 * rng.normal(size=len(h) * k)).fun for _ in range(tries))


def reduced(C, w, k: int, loss: str) -> Reduced:
    f = as_loss(loss)
    return Reduced(Terms(as_similarity(C, "cost_x", f), w, f), k)


@pytest.mark.parametrize("loss", LOSSES)
def test_lem_reduced_barycenter(loss):
    """The mean is the best structure for both losses; value, slope and limit of what is left."""
    (A, _), w, rng = problem(0, 6), weights(6), np.random.default_rng(0)
    T = soft(w, 3, 1)
    C, best = mean_structure(A.numpy(), T.numpy()), value(A.numpy(), T.numpy(), loss)
    assert energy(A, C, T, loss) == pytest.approx(best, rel=1e-12)
    for scale, _ in itertools.product((1e-3, 0.1), range(20)):
        assert energy(A, np.abs(C + scale * rng.normal(size=(3, 3))), T, loss) > best
    terms = reduced(A, w, 3, loss)
    cell = terms.state(T)
    np.testing.assert_allclose(cell.structure, C, atol=1e-12)
    assert cell.value == pytest.approx(best, abs=1e-12)
    # the gradient of the reduced objective is the partial one at the mean, by differences
    G, eps = 2 * terms.half_gradient(cell), 1e-6
    for D in (soft(w, 3, 5) - T, torch.eye(3).double()[[0, 1, 2] * 2] * w[:, None] - T):
        slope = (terms.state(T + eps * D).value - terms.state(T - eps * D).value) / (2 * eps)
        assert float((G * D).sum()) == pytest.approx(slope, abs=1e-7)
    # as a column runs empty the value tends to that of two clusters
    thin = T.clone()
    thin[:, 1] += thin[:, 2]
    thin[:, 2] = 0
    values = [terms.state(thin + s * (T - thin)).value for s in (1e-2, 1e-4, 1e-6, 0.0)]
    assert abs(values[2] - values[3]) < 1e-4 and abs(values[0] - values[3]) < 1e-1
    assert values[3] == pytest.approx(value(A.numpy(), thin.numpy(), loss), abs=1e-12)
    assert (terms.state(thin).structure[2] == 0).all()


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
            P, D = rng.normal(size=(n, n)), H @ rng.normal(size=(n, n)) @ H
            Q = P + D
            mixed = np.trace(P.T @ C @ Q @ C)
            own = (np.trace(P.T @ C @ P @ C) + np.trace(Q.T @ C @ Q @ C)) / 2
            assert own - mixed == pytest.approx(np.trace(D.T @ C @ D @ C) / 2, abs=1e-9)
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
        chord = (1 - t) * value(C, S) + t * value(C, T)
        assert value(C, (1 - t) * S + t * T) >= chord - 1e-10 * abs(chord)
    least = min(value(C, T) for _, T in memberships(h, k))
    assert best_soft(C, h, k, rng, 3) >= least - 1e-7
    found = drot.srgw_barycenter(C, k, weights=h, init=["kmeans", "random"], n_starts=20)
    assert found.objective == pytest.approx(least, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(found.structure, mean_structure(C, found.plan.numpy()), atol=1e-9)
    # conditional gradient alone leaves soft plans at its first step
    for plan in (found, drot.srgw_barycenter(C, k, weights=h, init=S, refine=False)):
        assert bool(((plan.plan > 0).sum(dim=1) == 1).all())
        assert plan.objective == pytest.approx(value(C, plan.plan.numpy()), abs=1e-9)


def test_prp_soft_kl():
    """All memberships, with weights and with copies for them; the solver finds a soft plan."""
    C, h = np.array([[5.0, 2, 0], [2, 0, 0], [0, 0, 6]]), np.array([1, 8, 1]) / 10
    T = np.array([[1, 0], [0, 1], [2 / 3, 1 / 3]]) * h[:, None]
    structure = mean_structure(C, T)
    assert structure.ravel() == pytest.approx([69 / 25, 156 / 125, 156 / 125, 6 / 625])
    for shift, at_hard, at_soft in ((0.0, 0.298508, 0.286122), (0.01, 0.276205, 0.270197)):
        D = C + shift
        hard, shared = min(value(D, S, "kl") for _, S in memberships(h, 2)), value(D, T, "kl")
        assert (hard, shared) == pytest.approx((at_hard, at_soft), abs=1e-6)
        assert shared == pytest.approx(drot.gw_objective(D, structure + shift, T, loss="kl"))
        found = drot.srgw_barycenter(D, 2, weights=h, loss="kl", init="random", n_starts=8)
        assert found.objective <= shared + 1e-12 and ((found.plan > 0).sum(dim=1) > 1).any()
    copies = [0, *[1] * 8, 2]
    D, tenth = C[np.ix_(copies, copies)], np.full(10, 0.1)
    hard = min(value(D, S, "kl") for labels, S in memberships(tenth, 2) if labels[0] == 0)
    shared = value(D, 0.1 * (T / h[:, None])[copies], "kl")
    assert [hard, shared] == pytest.approx([0.298508, 0.286122], abs=1e-6)


def test_prp_soft_wins():
    """In numbers, and with the loops of the exercise: at a third there is nothing left to win."""
    plan = np.array([[2, 0], [0, 2], [1, 1]]) / 6
    hard = [T for _, T in memberships(np.full(3, 1 / 3), 2)]
    for shift in (0, 3, -5):
        C = MIXED + shift
        assert value(C, plan) == pytest.approx(206 / 81, rel=1e-12)
        found = sorted(value(C, T) for T in hard)
        assert found == pytest.approx([25 / 9] * 6 + [34 / 9] * 2, rel=1e-12)
    structure = drot.gromov.coarsen(MIXED, plan).structure
    assert drot.gw_objective(MIXED, structure, plan) == pytest.approx(206 / 81, rel=1e-12)
    # the solver finds it: thm-hard-plans needs its hypothesis
    start = np.array([[1, 0], [0, 1], [0.7, 0.3]]) / 3
    assert drot.srgw_barycenter(MIXED, 2, init=start).objective == pytest.approx(206 / 81, abs=1e-9)
    values = np.linalg.eigvalsh(MIXED)
    assert values[0] < -2.9 and values[-1] > 4.9  # neither CPD nor CND: both sum to 0
    for sigma, sign in ((0.3, 1), (1 / 3, 0), (0.4, -1)):
        L = MIXED + 3 * sigma * np.eye(3)
        gain = min(value(L, T) for T in hard) - value(L, plan)
        assert np.sign(round(gain, 12)) == sign


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
    costs = [kmeans(Y, h, labels) for labels, _ in memberships(h, 3)]
    for cost, (_, T) in list(zip(costs, memberships(h, 3), strict=True))[100:140]:
        forms = [np.trace(S) - np.trace(scatters(Y, a, T)[0]), trace_cost(C, h, T)]
        assert forms == pytest.approx([cost] * 2)
    ours = drot.kernel_kmeans(C, 3, weights=h, init="random", n_starts=30)
    assert ours.objective == pytest.approx(min(costs), rel=1e-9)
    # part 1: two clusters, or a line
    for k, p in ((2, 4), (3, 1)):
        Y = rng.normal(size=(6, p))
        Y -= h @ Y
        S = (Y.T * h) @ Y
        for labels, T in memberships(h, k):
            law = np.sum(S**2) - (np.trace(S) - kmeans(Y, h, labels)) ** 2
            assert value(Y @ Y.T + 3.0, T) == pytest.approx(law, abs=1e-9)


@pytest.mark.parametrize(
    ("points", "k", "inner", "for_R", "for_J"),
    [
        ([[0, 0], [0, 2], [2, 1]], 2, True, ((1,), (2, 3)), ((1, 2), (3,))),
        ([[0, 2], [-2, 0], [1, -2], [1, 0]], 3, True, ((1, 2), (3,), (4,)), ((1,), (2,), (3, 4))),
        ([[0], [1], [4], [7]], 2, False, ((1, 2, 3), (4,)), ((1, 2), (3, 4))),
    ],
)
def test_err_kernel_kmeans(points, k, inner, for_R, for_J):
    """Part 3: memberships that are best for one and not for the other; the package finds both."""
    X = np.array(points, dtype=float)
    C, h = X @ X.T if inner else np.square(X - X.T), np.full(len(X), 1 / len(X))
    R, J = {}, {}
    for labels, T in memberships(h, k):
        R[partition(labels)], J[partition(labels)] = value(C, T), kmeans(X, h, labels)
    ask = {"init": "random", "n_starts": 20}
    other, one = drot.srgw_barycenter(C, k, **ask), drot.kernel_kmeans(X @ X.T, k, **ask)
    for table, winner, found in ((R, for_R, other), (J, for_J, one)):
        assert [key for key in table if table[key] < table[winner] + 1e-9] == [winner]
        assert partition(found.labels.numpy()) == winner
        assert found.objective == pytest.approx(table[winner], abs=1e-12)


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
    winner = min((T for _, T in memberships(h, k)), key=lambda T: value(looped, T))
    assert value(looped, winner) * (1 - 1e-9) <= best_soft(looped, h, k, rng, 2)
    assert trace_cost(C, h, winner) == pytest.approx(costs.min(), rel=1e-9)
    assert value(C, parts[int(costs.argmin())][1]) > min(value(C, T) for _, T in parts) + 1e-6


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
        rows, left = by_rows(C, T), value(C, T)
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
    for T in (*(T for _, T in memberships(h, k)), *(spread(h, k, rng) for _ in range(50))):
        assert value(C, T) >= bound - 1e-12
    A = symmetric(n, rng) + 5
    d, vol = A.sum(axis=1), A.sum()
    g, D = d / vol, vol * A / np.outer(d, d)
    trace = np.trace(A / np.sqrt(np.outer(d, d)))
    for labels, T in full(g, 3):
        assert trace - 3 + cut(A, labels) == pytest.approx(trace_cost(D, g, T))


def test_prp_interlacing():
    """Poincare separation for memberships; soft plans of definite matrices only from above."""
    rng, below, free = np.random.default_rng(9), 0, 0
    for n, k, definite in itertools.product((5, 7), (2, 3), (False, True)):
        h, C = rng.dirichlet(np.full(n, 3.0)), symmetric(n, rng)
        C = C @ C / 5 if definite else C
        lam = np.linalg.eigvalsh(np.sqrt(np.outer(h, h)) * C)[::-1]
        soft_ones = [(None, spread(h, k, rng, 1.0)) for _ in range(20)]
        for labels, T in [*full(h, k)[10:40], *soft_ones]:
            found = drot.gromov.coarsen(C, T if labels is None else labels, weights=h)
            np.testing.assert_allclose(found.weights, T.sum(axis=0), atol=1e-14)
            mu, plain = (
                np.linalg.eigvalsh(matrix.numpy())[::-1]
                for matrix in (found.normalized, found.structure)
            )
            assert value(C, T) == pytest.approx((lam**2).sum() - (mu**2).sum(), rel=1e-9)
            under = (mu < lam[n - k :] - 1e-9).any()
            if definite:
                moved, lost = ((lam[:k] - mu) ** 2).sum(), value(C, T) - (lam[k:] ** 2).sum()
                assert (mu <= lam[:k] + 1e-12).all() and moved <= lost + 1e-12
            if labels is None:
                assert mu[0] <= max(lam[0], 0) + 1e-12 and mu[-1] >= min(lam[-1], 0) - 1e-12
                below += definite and under
            else:
                assert (mu <= lam[:k] + 1e-12).all() and not under
                free += (plain > lam[:k] + 1e-9).any() or (plain < lam[n - k :] - 1e-9).any()
    assert below > 0 and free > 40  # without the weights nothing interlaces


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
    points = torch.from_numpy(X)
    problem, more = (reduced(torch.cdist(points, points).square(), w, k, loss) for k in (5, 6))
    cell = problem.hard(labels)
    merged, upper = merges(problem, cell), upper_halves(points, labels, w, 5)
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
    y = np.repeat(np.arange(4), 25)
    X = 8 * np.eye(4)[y] + np.random.default_rng(0).normal(size=(100, 4))
    wrong = np.where((y == 3) & (X[:, 0] > 0), 1, np.where(y == 1, 0, y))
    C = drot.sqeuclidean(torch.from_numpy(X).to(dtype))
    found = drot.srgw_barycenter(C, 4, loss=loss, init=np.eye(4)[wrong] / 100)
    assert adjusted_rand_score(found.labels, y) == 1 and found.plan.dtype == dtype
    assert found.objective < 0.7 * found.ends[0] and len(found.ends) == 1 and found.converged
    assert (np.diff(found.values) <= 0).all()


def test_part_of_a_step():
    """Where all of the way does not pay, some of it does: as much as is best at the structure that
    is held fixed, or more. A path of points is no definite similarity."""
    C, w, parts = torch.diag(torch.ones(11).double(), 1), weights(12), 0
    at = reduced(C + C.T, w, 3, "square")
    for seed in range(10):
        state = at.state(soft(w, 3, seed))
        for _ in range(4):
            g, _, labels, _ = at.oracle(state)
            end = at.hard(labels)
            if end.value > state.value:
                new, parts = at.partway(state, end, g), parts + 1
                along = [state.T + t * (end.T - state.T) for t in np.linspace(0, 1, 101)]
                best = min(energy(C + C.T, state.structure, T, "square") for T in along)
                assert new.value < best + 1e-12 and new.value < state.value
                end = new
            state = end
    assert parts


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
