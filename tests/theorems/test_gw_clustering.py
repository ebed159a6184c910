"""Chapter 11: barycentres, hard plans and kernel k-means, against all memberships of few points."""

from __future__ import annotations

import itertools

import drot
import numpy as np
import pytest
import torch
from drot.costs.array import as_pairwise
from drot.gromov.barycenter import Reduced, reduced_descent
from drot.gromov.contraction import Contraction, hard_plan
from plans import LOSSES, cloud, energy, problem, soft, weights
from scipy.optimize import minimize
from sklearn.cluster import KMeans

SOFT = torch.tensor([[3.0, 2.0, -3.0], [2.0, -1.0, 2.0], [-3.0, 2.0, 3.0]], dtype=torch.float64)


def mean_structure(A, T) -> np.ndarray:
    """Weighted means of A between clusters, by a loop; 0 for an empty cluster."""
    A, T = np.asarray(A), np.asarray(T)
    k = T.shape[1]
    C = np.zeros((k, k))
    for a, b in itertools.product(range(k), repeat=2):
        mass = np.outer(T[:, a], T[:, b])
        C[a, b] = (mass * A).sum() / mass.sum() if mass.sum() > 0 else 0.0
    return C


def value(A, T, loss: str = "square") -> float:
    """min over Cbar of E_L, from the means."""
    C = mean_structure(A, T)
    C[np.asarray(T).sum(axis=0) == 0] = 1.0  # a cluster without mass does not count
    C[:, np.asarray(T).sum(axis=0) == 0] = 1.0
    return energy(A, C, T, loss)


def labellings(n: int, k: int):
    """All partitions of n points into at most k clusters, once each."""
    for label in itertools.product(range(k), repeat=n):
        first = list(dict.fromkeys(label))
        if first == sorted(first) and first == list(range(len(first))):
            yield torch.tensor(label)


def centred(A) -> np.ndarray:
    H = np.eye(len(A)) - 1 / len(A)
    return H @ np.asarray(A) @ H


@pytest.mark.parametrize("loss", LOSSES)
def test_lem_reduced_barycenter(loss):
    """The mean is the best structure for both losses; what is left is a continuous norm."""
    A, _ = problem(0, 6)
    w = weights(6)
    T = soft(w, 3, 1)
    C = mean_structure(A, T)
    best = energy(A, C, T, loss)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 0.1):
        for _ in range(20):
            step = scale * rng.normal(size=(3, 3))
            assert energy(A, np.abs(C + step + step.T), T, loss) > best
    terms = Reduced(Contraction(as_pairwise(A), w.new_zeros(1, 1), loss), w, 3)
    cell = terms.cell(T)
    np.testing.assert_allclose(cell.structure, C, atol=1e-12)
    assert cell.value == pytest.approx(best, abs=1e-12)
    q = np.asarray(T.sum(dim=0))
    if loss == "square":
        R = np.diag(q**-0.5) @ np.asarray(T.T @ A @ T) @ np.diag(q**-0.5)
        assert best == pytest.approx(float(w @ A.square() @ w) - (R**2).sum(), abs=1e-12)
    # the gradient of the reduced objective is the partial one at the mean, by differences
    G, eps = 2 * terms.half_gradient(cell), 1e-6
    for D in (soft(w, 3, 5) - T, hard_plan(torch.arange(6) % 3, w, 3) - T):
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


@pytest.mark.parametrize("loss", LOSSES)
def test_moves_of_single_points(loss):
    """The closed form of a move is the difference of two objectives, empty clusters included."""
    A, _ = problem(3, 6)
    w = weights(6)
    terms = Reduced(Contraction(as_pairwise(A), w.new_zeros(1, 1), loss), w, 3)
    labels = torch.tensor([0, 0, 1, 1, 1, 1])  # cluster 2 is empty
    cell = terms.hard(labels)
    changes = terms.changes(cell, labels, w)
    for b in range(3):
        for i in range(6):
            moved = labels.clone()
            moved[i] = b
            difference = terms.hard(moved).value - cell.value
            assert float(changes[i, b]) == pytest.approx(difference, abs=1e-12)
    single = terms.hard(torch.tensor([0, 1, 1, 1, 1, 1]))
    change = terms.changes(single, torch.tensor([0, 1, 1, 1, 1, 1]), w)
    assert float(change[0, 1]) == pytest.approx(
        terms.hard(torch.ones(6, dtype=torch.int64)).value - single.value, abs=1e-12
    )


def definite(kind: str, n: int, seed: int) -> torch.Tensor:
    X = cloud(n, 2, seed)
    D = drot.sqeuclidean(X).dense()
    match kind:
        case "distances":
            return D
        case "gram":
            return X @ X.T
        case "student":
            return -drot.student_cost(X).dense()
    return (-D).exp()


KINDS = ["distances", "gram", "student", "kernel"]


@pytest.mark.parametrize("kind", KINDS)
def test_lem_concave(kind):
    """The trace inequality and the concavity that follows; both fail for an indefinite matrix."""
    A = definite(kind, 6, 0)
    sign = -1 if kind == "distances" else 1
    assert np.linalg.eigvalsh(centred(sign * A)).min() > -1e-12
    rng = np.random.default_rng(1)
    w = weights(6)

    def gap(A, P, Q) -> float:
        A = np.asarray(A)
        return float(np.trace(P.T @ A @ P @ A + Q.T @ A @ Q @ A) / 2 - np.trace(P.T @ A @ Q @ A))

    for seed in range(30):
        P, Q = soft(w, 3, seed).numpy(), soft(w, 3, seed + 100).numpy()
        U, V = (T @ np.diag(1 / T.sum(0)) @ T.T for T in (P, Q))
        np.testing.assert_allclose(U.sum(1), w)  # the same marginals
        assert gap(A, U, V) >= -1e-14
        t = rng.uniform()
        middle = value(A, t * P + (1 - t) * Q)
        assert middle >= t * value(A, P) + (1 - t) * value(A, Q) - 1e-12
    B = SOFT
    eigen = np.linalg.eigvalsh(centred(B))
    assert eigen.min() < -1e-2 and eigen.max() > 1e-2
    u = np.ones(3) / 3
    half, ends = (
        np.array([[1, 0], [0.5, 0.5], [0, 1]]),
        [[[1, 0], [s, 1 - s], [0, 1]] for s in (0, 1)],
    )
    P, Q = (np.array(end) * u[:, None] for end in ends)
    assert value(B, half * u[:, None]) < (value(B, P) + value(B, Q)) / 2 - 0.1
    swaps = [np.eye(3)[list(order)] for order in itertools.permutations(range(3))]
    assert min(gap(B, P, Q) for P in swaps for Q in swaps) < -1e-2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_thm_hard_plans(kind, seed):
    """No soft plan beats the best of all memberships, and the solver finds that."""
    n, k = 7, 3
    A, w = definite(kind, n, seed), weights(n, seed)
    plans = [hard_plan(labels, w, k) for labels in labellings(n, k)]
    best = min(value(A, T) for T in plans)
    terms = Reduced(Contraction(as_pairwise(A), w.new_zeros(1, 1), "square"), w, k)

    def soft_value(logits: np.ndarray) -> tuple[float, np.ndarray]:
        s = torch.from_numpy(logits.reshape(n, k)).softmax(dim=1)
        cell = terms.cell(s * w[:, None])
        g = 2 * terms.half_gradient(cell) * w[:, None]
        return cell.value, (s * (g - (s * g).sum(1, keepdim=True))).numpy().ravel()

    rng = np.random.default_rng(seed)
    ends = [minimize(soft_value, rng.normal(size=n * k), jac=True).fun for _ in range(10)]
    assert min(ends) >= best - 1e-10
    found = drot.srgw_barycenter(A, k, weights_x=w, init=["kmeans", "random"])
    assert found.objective == pytest.approx(best, abs=1e-10)
    assert ((found.plan > 0).sum(dim=1) == 1).all()
    np.testing.assert_allclose(found.structure, mean_structure(A, found.plan), atol=1e-12)
    # conditional gradient alone stays on hard plans after its first step
    states = [
        cell for cell, _ in itertools.islice(reduced_descent(terms, terms.cell(soft(w, k))), 4)
    ]
    assert all(((cell.T > 0).sum(dim=1) == 1).all() for cell in states[1:])
    values = [cell.value for cell in states]
    assert len(values) > 1 and (np.diff(values) < 0).all()


def test_thm_hard_plans_needs_the_hypothesis():
    """For an indefinite matrix the middle point of three is split evenly, and that is better."""
    w = torch.full((3,), 1 / 3, dtype=torch.float64)
    best = min(value(SOFT, hard_plan(labels, w, 2)) for labels in labellings(3, 2))
    half = torch.tensor([[1, 0], [0.5, 0.5], [0, 1]], dtype=torch.float64) / 3
    assert best == pytest.approx(34 / 9, abs=1e-12) and value(SOFT, half) < best - 0.25
    start = torch.tensor([[1, 0], [0.7, 0.3], [0, 1]], dtype=torch.float64) / 3
    found = drot.srgw_barycenter(SOFT, 2, init=start)
    assert found.objective == pytest.approx(value(SOFT, half), abs=1e-9)
    torch.testing.assert_close(found.plan, half, rtol=0, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_reduced_descent(loss):
    """A certificate, monotone descent, and the best membership of few points."""
    A, _ = problem(4, 7)
    w = weights(7)
    best = min(value(A, hard_plan(labels, w, 2), loss) for labels in labellings(7, 2))
    found = drot.srgw_barycenter(A, 2, weights_x=w, loss=loss, init="random", n_starts=8)
    assert found.objective <= best + 1e-10 and found.residual <= 1e-9
    assert (np.diff(found.trace) <= 1e-12).all() and found.n_starts == 8
    assert found.objective == pytest.approx(value(A, found.plan, loss), abs=1e-10)
    assert found.objective == min(found.values)


def kmeans_value(X, labels, w) -> float:
    """Weighted within-cluster scatter of points, by a loop."""
    X, w, total = np.asarray(X), np.asarray(w), 0.0
    for c in np.unique(labels):
        mine = np.asarray(labels) == c
        m = np.average(X[mine], axis=0, weights=w[mine])
        total += float((w[mine, None] * (X[mine] - m) ** 2).sum())
    return total


def test_prp_kernel_kmeans():
    """Trace against squared norm: bounds both ways, equal order for rank one, not in general."""
    k = 2
    for seed, p in itertools.product(range(6), (1, 2)):
        X, w = cloud(6, p, seed), weights(6, seed)
        A = X @ X.T
        root = w.sqrt()
        lam = np.linalg.eigvalsh(np.asarray(root[:, None] * A * root))[::-1]
        pairs = []
        for labels in labellings(6, k):
            T = hard_plan(labels, w, k)
            H = T[:, T.sum(0) > 0] / root[:, None] / T[:, T.sum(0) > 0].sum(0).sqrt()
            R = H.T @ (root[:, None] * A * root) @ H
            scatter, norm = kmeans_value(X, labels, w), value(A, T)
            assert scatter == pytest.approx(lam.sum() - float(R.trace()), abs=1e-12)
            assert norm == pytest.approx((lam**2).sum() - float((R**2).sum()), abs=1e-12)
            assert scatter**2 / p - 1e-12 <= norm <= 2 * lam[0] * scatter + 1e-12
            pairs.append((scatter, norm))
        assert drot.kernel_kmeans(A, k, weights_x=w, n_starts=8).objective == pytest.approx(
            min(pairs)[0], abs=1e-12
        )
        if p == 1:  # the squared norm is the trace squared
            assert np.argmin([s for s, _ in pairs]) == np.argmin([v for _, v in pairs])
    # five points of the plane where the best memberships differ
    X = torch.tensor([[1, 2], [1, 1], [2, 3], [1, 0], [2, 0]], dtype=torch.float64)
    w = torch.full((5,), 0.2, dtype=torch.float64)
    all_of = list(labellings(5, 2))
    scatter = [kmeans_value(X, labels, w) for labels in all_of]
    norm = [value(X @ X.T, hard_plan(labels, w, 2)) for labels in all_of]
    a, b = int(np.argmin(scatter)), int(np.argmin(norm))
    assert scatter[b] > scatter[a] + 0.1 and norm[a] > norm[b] + 0.1
    one, other = drot.kernel_kmeans(X @ X.T, 2), drot.srgw_barycenter(X @ X.T, 2, init="random")
    assert (
        one.objective == pytest.approx(scatter[a]) and one.labels.tolist() != other.labels.tolist()
    )
    assert other.objective == pytest.approx(norm[b])


def test_a_step_is_lloyds():
    """Conditional gradient on the reduced objective sends a point to the nearest profile."""
    A, w = definite("gram", 9, 2), weights(9)
    T = hard_plan(torch.arange(9) % 3, w, 3)
    terms = Reduced(Contraction(as_pairwise(A), w.new_zeros(1, 1), "square"), w, 3)
    cell = terms.cell(T)
    q = T.sum(dim=0)
    profile = np.asarray(A @ T / q)  # (n, k) mean similarity to each cluster
    means = np.array([np.average(profile[np.arange(9) % 3 == c], 0, w[np.arange(9) % 3 == c])
                      for c in range(3)])  # fmt: skip
    np.testing.assert_allclose(means, cell.structure, atol=1e-12)
    far = (np.asarray(q) * (profile[:, None] - means) ** 2).sum(axis=2)
    g = np.asarray(terms.half_gradient(cell))
    np.testing.assert_allclose(g - g[:, :1], far - far[:, :1], atol=1e-12)


def test_kernel_kmeans_is_kmeans():
    """scikit-learn's inertia on clear blobs, from a Gram matrix, factors or squared distances."""
    X = cloud(90, 4) + 12 * torch.eye(4, dtype=torch.float64)[torch.arange(90) % 3]
    inertia = KMeans(3, n_init=5, random_state=0).fit(X.numpy()).inertia_ / 90
    for A in (X @ X.T, drot.gram(X), -drot.sqeuclidean(X).dense() / 2):
        found = drot.kernel_kmeans(A, 3)
        assert found.objective == pytest.approx(inertia, rel=1e-10)
        assert found.objective == pytest.approx(
            kmeans_value(X, found.labels, np.full(90, 1 / 90)), rel=1e-10
        )
    # from poor labels, moves of single points still end where no move helps
    bad = drot.kernel_kmeans(X @ X.T, 3, init="random", n_starts=5)
    assert bad.objective == min(bad.values)
    n = np.full(90, 1 / 90)
    for i, b in itertools.product(range(0, 90, 7), range(3)):
        moved = bad.labels.clone()
        moved[i] = b
        assert kmeans_value(X, moved, n) >= bad.objective - 1e-12


def test_prp_interlacing():
    """Poincare separation for random memberships; the lost squares are the objective."""
    for seed in range(10):
        A, _ = problem(seed, 8)
        A = A - 2  # indefinite
        w, rng = weights(8, seed), np.random.default_rng(seed)
        labels = torch.from_numpy(np.concatenate([np.arange(3), rng.integers(3, size=5)]))
        found = drot.coarsen(A, labels, weights_x=w)
        T = hard_plan(labels, w, 3)
        np.testing.assert_allclose(found.structure, mean_structure(A, T), atol=1e-12)
        torch.testing.assert_close(found.weights, T.sum(dim=0))
        root = w.sqrt()
        lam = np.linalg.eigvalsh(np.asarray(root[:, None] * A * root))[::-1]
        small = np.linalg.eigvalsh(np.asarray(found.normalized))[::-1]
        assert (small <= lam[:3] + 1e-12).all() and (small >= lam[-3:] - 1e-12).all()
        assert value(A, T) == pytest.approx((lam**2).sum() - (small**2).sum(), abs=1e-12)
        # without the weights on both sides it is not so
        plain = np.linalg.eigvalsh(np.asarray(found.structure))[::-1]
        assert not ((plain <= lam[:3] + 1e-12).all() and (plain >= lam[-3:] - 1e-12).all())
    # a soft plan only contracts: its eigenvalues lie within the extremes and 0
    T = soft(w, 3, 1)
    soft_found = drot.coarsen(A, T, weights_x=w)
    eigen = np.linalg.eigvalsh(np.asarray(soft_found.normalized))
    assert eigen.max() <= max(lam[0], 0) + 1e-12 and eigen.min() >= min(lam[-1], 0) - 1e-12
