"""Chapter 12: Gromov-Wasserstein with one marginal learned, against four-index sums and POT."""

import itertools

import cvxpy as cp
import drot
import numpy as np
import pytest
import torch
from drot.gromov.contraction import hard_plan
from drot.gromov.descent import mirror_descent
from ot.gromov import gromov_wasserstein2 as gw2
from plans import LOSSES, cloud, energy, fixed, hard_plans, pointwise, problem, soft, weights


def steps(plan, logits) -> np.ndarray:
    """Rows of exp(logits) with the sums of the plan's."""
    logits = np.asarray(logits)
    K = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(plan).sum(axis=1, keepdims=True) * K / K.sum(axis=1, keepdims=True)


def test_lem_srgw_weights():
    """GW at any second marginal lies above srGW, and at the learned one they are equal."""
    A, B = problem(1, 3, 2)
    w = weights(3)
    found = drot.semi_relaxed_gw(A, B, weights_x=w, init=["kmeans", "random", "product"])
    grid = np.linspace(0, 1, 21)
    shares = np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)  # (21^3, 3)
    T = np.stack([shares, 1 - shares], axis=2) * w.numpy()[:, None]
    values = np.einsum("ijkl,bik,bjl->b", pointwise(A, B, "square"), T, T, optimize=True)
    assert found.objective <= values.min() + 1e-12
    assert found.objective == pytest.approx(values.min(), abs=5e-2)
    # POT with the learned marginal stays there; with others it stays above
    q = found.weights
    ask = dict(G0=found.plan, tol_rel=1e-9, tol_abs=1e-9)
    assert gw2(A, B, w, q, **ask) == pytest.approx(found.objective, abs=1e-10)
    for seed in range(4):
        other = torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(2)))
        assert gw2(A, B, w, other) >= found.objective - 1e-10


def test_prp_divergences():
    """Zero for one divergence is zero for every other, plan by plan."""
    core = np.array([[0.3, 1.0, 2.0], [1.5, 0.7, 0.2], [0.4, 0.9, 1.1]])  # not symmetric
    first, second = [0, 1, 2, 1, 0], [2, 0, 1, 0]
    A, B = core[np.ix_(first, first)], core[np.ix_(second, second)]
    a, b = A[:, :, None, None], B[None, None]
    losses = [pointwise(A, B, "square"), pointwise(A, B, "kl"), np.abs(a - b), (a != b) * 1.0]
    losses.append(a / b - np.log(a / b) - 1)
    rng, zeros = np.random.default_rng(0), 0
    fits = np.equal.outer(first, second).astype(float)  # point and place of one kind
    for seed in range(40):
        mask = fits if seed % 2 else rng.permuted(fits, axis=1)
        T = mask * rng.uniform(0.1, 1, size=mask.shape)
        T = T / T.sum()
        zero = [float(np.einsum("ijkl,ik,jl->", L, T, T)) < 1e-14 for L in losses]
        assert len(set(zero)) == 1 and all(zero) >= seed % 2
        zeros += zero[0]
    assert 20 <= zeros < 40


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_srgw_asymmetric(loss):
    """(8.78) against central differences of the four-index sum, no matrix symmetric."""
    rng = np.random.default_rng(3)
    A, B = rng.uniform(0.1, 2, size=(5, 5)), rng.uniform(0.1, 2, size=(3, 3))
    T, S = (soft(weights(5), 3, seed).numpy() for seed in (1, 2))

    def slopes(A, B, T):
        """Of any matrices, and the short formula of symmetric ones."""
        (f2, h2), q = (B**2, 2 * B) if loss == "square" else (B, np.log(B)), T.sum(axis=0)
        one, other = A @ T @ h2.T, A.T @ T @ h2
        return (f2 + f2.T) @ q - one - other, 2 * (f2 @ q - one)

    whole, short = slopes(A, B, T)
    D = S - T  # rows of sum 0: what depends on the row sums alone drops out
    for E in (D, D[:, ::-1]):
        up, down = (energy(A, B, T + s * E, loss) for s in (1e-5, -1e-5))
        assert (up - down) / 2e-5 == pytest.approx((whole * E).sum(), rel=1e-6, abs=1e-9)
    assert np.abs(whole - short).max() > 0.1
    # symmetric places: only the symmetric part of C counts, and the short formula is right for it
    mean, B = (A + A.T) / 2, (B + B.T) / 2
    changes = [energy(C, B, T, loss) - energy(C, B, S, loss) for C in (A, mean)]
    assert changes[0] == pytest.approx(changes[1], abs=1e-12)
    np.testing.assert_allclose(slopes(mean, B, T)[1], slopes(A, B, T)[0], atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_lem_srgw_divergence(loss):
    """Zero for weakly isomorphic similarities, and only for those."""
    core, _ = problem(2, 3)
    first, second = torch.tensor([0, 1, 2, 1, 0, 2, 2]), torch.tensor([2, 0, 1, 0])
    A, B, w = core[first][:, first], core[second][:, second], weights(7)
    found = drot.semi_relaxed_gw(A, B, weights_x=w, loss=loss)
    assert abs(found.objective) < 1e-12
    # whatever the plan matches is equal
    used = found.plan > 0
    match = used[:, None, :, None] & used[None, :, None, :]
    assert ((A[:, :, None, None] - B[None, None])[match].abs() < 1e-12).all()
    # mass of each class of twins is the same on both sides
    masses = (np.bincount(second, found.weights), np.bincount(first, w))
    np.testing.assert_allclose(*masses, rtol=0, atol=1e-12)
    # a soft plan of value 0 holds a hard one: try those, where the second lacks a class
    C = B[1:3][:, 1:3]
    assert min(energy(A[:5, :5], C, T, loss) for T in hard_plans(weights(5), 2)) > 1e-3
    assert drot.semi_relaxed_gw(A[:5, :5], C, weights_x=weights(5), loss=loss).objective > 1e-3


def test_prp_srgw_trivial():
    """With L(a, b) = a b, no divergence, all mass on one point is optimal; with (a - b)^2 not."""
    A, B = (drot.sqeuclidean(X).dense().numpy() for X in (cloud(5, 2), cloud(3, 2, 1)))
    B = B + np.diag([0.1, 0.0, 0.1]) + 0.1  # its least entry is on the diagonal
    w = weights(5)
    others = [T.numpy() for T in (*hard_plans(w, 3), *(soft(w, 3, seed) for seed in range(200)))]
    lumps = [hard_plan(torch.full((5,), k), w, 3).numpy() for k in range(3)]

    def product(T, B) -> float:
        return float(np.einsum("ij,kl,ik,jl->", A, B, T, T))

    # the other case: a log(a / b) falls in b, and a kernel is largest on its diagonal
    K = np.exp(-B) + np.diag([0.0, 0.1, 0.0])
    for C in (B, -np.log(K)):
        own = [product(T, C) for T in lumps]
        assert all(own[C.diagonal().argmin()] <= product(T, C) + 1e-12 for T in others)
    # without the hypothesis on the diagonal, or with a divergence, the trivial plan loses
    D = B - 2 * B.max() * (1 - np.eye(3))
    one = lumps[D.diagonal().argmin()]
    assert min(product(T, D) for T in others) < product(one, D) - 1e-2
    found = drot.semi_relaxed_gw(A, B, weights_x=w, init=["kmeans", "random"]).objective
    assert found < min(energy(A, B, T) for T in lumps) - 1e-3


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(2))
def test_prp_line_search(loss, seed):
    """Coefficients of the quadratic against sums at three points, its minimum against a grid."""
    (A, B), w = problem(seed, 6, 3), weights(6, seed)
    T, X = soft(w, 3, seed), hard_plan(torch.arange(6) % 3, w, 3)
    quadratic, D = fixed(A, B, w, loss), X - T
    state = quadratic.state(T)
    assert state.value == pytest.approx(energy(A, B, T, loss), rel=1e-12)
    line = quadratic.line(D, quadratic.product(D), quadratic.half_gradient(state))
    values = [energy(A, B, T + t * D, loss) for t in (0, 0.5, 1)]
    a, b, c = np.polyfit([0, 0.5, 1], values, 2)
    assert (line.a, line.b) == pytest.approx((a, b), abs=1e-10)
    assert line.a + line.b == pytest.approx(values[2] - values[0], abs=1e-10)
    grid = np.linspace(0, 1, 1001)
    best = grid[np.argmin(np.polyval([a, b, c], grid))]
    if a > 0 or abs(a + b) > 1e-6:
        assert line.minimum() == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_mirror_descent(loss):
    """A step is the KL proximal step, by a conic solver; the other sign ascends."""
    (A, B), w, eps = problem(6, 4, 2), weights(4), 1.5
    T = soft(w, 2, 3)
    G, log_T = drot.gromov.gw_gradient(A, B, T, loss=loss).numpy(), np.log(T.numpy())
    S = cp.Variable((4, 2))
    model = cp.sum(cp.multiply(G, S)) + eps * cp.sum(cp.kl_div(S, T.numpy()))
    cp.Problem(cp.Minimize(model), [cp.sum(S, axis=1) == w.numpy()]).solve(solver="CLARABEL")
    quadratic = fixed(A, B, w, loss)
    _, new = itertools.islice(mirror_descent(quadratic, quadratic.state(T), epsilon=eps), 2)
    np.testing.assert_allclose(new.T, S.value, atol=1e-5)
    np.testing.assert_allclose(new.T, steps(T, log_T - G / eps), atol=1e-12)
    printed = steps(T, G - eps * log_T)  # (8.79) as it is printed: not this step
    assert np.abs(printed - S.value).max() > 1e-2
    # small steps: the sign decides
    down, up = (energy(A, B, steps(T, log_T - s * G / 50), loss) for s in (1, -1))
    assert down < energy(A, B, T, loss) < up
    # the adapted epsilon descends as far as one cares to go
    path = mirror_descent(quadratic, quadratic.state(T))
    trace = np.array([state.value for state in itertools.islice(path, 100)])
    assert (np.diff(trace) <= 1e-12).all() and trace[-1] < trace[0] - 1e-3


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_low_rank(loss):
    """The same numbers from factors as from dense matrices; of descents: test_gw_descents.py."""
    X, Z = cloud(), cloud(12, 1, 1)
    T, left = soft(weights(40), 12, 2), drot.factored_sqeuclidean(X)
    if loss == "square":
        pairs = [(left, drot.factored_sqeuclidean(Z)), (drot.gram(X), drot.gram(Z))]
    else:
        pairs = [(left, drot.pairwise(lambda x, y: (-torch.cdist(x, y).square()).exp(), Z))]
    for left, right in pairs:
        A, B = left.dense().clamp_min(0) if loss == "kl" else left.dense(), right.dense()
        value = drot.gw_objective(left, right, T, loss=loss)
        assert value == pytest.approx(energy(A, B, T, loss), rel=1e-10)
        slopes = (drot.gromov.gw_gradient(*pair, T, loss=loss) for pair in ((left, right), (A, B)))
        torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-10)
    assert pairs[0][0].left.shape[1] == 3 + 2


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_row_move(loss):
    """The objective along a move of one row, on a grid, is the quadratic of the statement."""
    A, B = problem(4, 5, 3)
    T, L = soft(weights(5), 3, seed=2), pointwise(A, B, loss)
    slope, bent = drot.gromov.gw_gradient(A, B, T, loss=loss), []
    for i, k, new in ((0, 0, 1), (3, 2, 0), (4, 1, 2), (1, 2, 1)):
        a = L[i, i, k, k] + L[i, i, new, new] - 2 * L[i, i, k, new]
        b, whole = float(slope[i, new] - slope[i, k]), float(T[i, k])
        bent.append(a <= 0)  # all of it or nothing
        for t in np.linspace(0, whole, 5):
            moved = T.clone()
            moved[i, k] -= t
            moved[i, new] += t
            change = energy(A, B, moved, loss) - energy(A, B, T, loss)
            assert change == pytest.approx(b * t + a * t * t, abs=1e-12)
            assert a > 0 or change >= min(0.0, b * whole + a * whole**2) - 1e-12
    assert 0 < sum(bent) < 4


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_mirror_descent_bound(loss):
    """Half the largest loss is the least that will do: two places, near the middle."""
    C = torch.ones(2, 2, dtype=torch.float64)
    D = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    T, most = torch.tensor([[0.2505, 0.2495]] * 2).double(), float(pointwise(C, D, loss).max())
    G, value = drot.gromov.gw_gradient(C, D, T, loss=loss), energy(C, D, T, loss)
    low, high = (
        energy(C, D, steps(T, T.log() - G / (share * most)), loss) for share in (0.49, 0.51)
    )
    assert low > value + 1e-9 and high < value - 1e-9
