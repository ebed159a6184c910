"""Chapter 10: Gromov-Wasserstein with one marginal learned, against four-index sums and POT."""

from __future__ import annotations

import itertools

import cvxpy as cp
import drot
import numpy as np
import pytest
import torch
from drot.gromov.contraction import contraction, hard_plan
from drot.gromov.descent import Line, Problem, conditional_gradient, mirror_descent
from plans import LOSSES, cloud, energy, hard_plans, pointwise, problem, soft, weights


@pytest.mark.parametrize("loss", LOSSES)
def test_lem_gromov_monge(loss):
    """The best permutation, by a loop; the same minimum as over a family closed under them."""
    family = [problem(seed, 4, 4)[1] for seed in range(3)]
    A = problem(9, 4)[0]
    orders = [list(order) for order in itertools.permutations(range(4))]

    def mean(B, order=(0, 1, 2, 3)) -> float:
        turned = np.asarray(B)[np.ix_(order, order)]
        return float(np.einsum("ijij->", pointwise(A, turned, loss))) / 16

    for B in family:
        found = drot.gromov_monge(A, B, loss=loss)
        assert found.value == pytest.approx(min(mean(B, order) for order in orders), rel=1e-12)
        assert mean(B, found.permutation.tolist()) == pytest.approx(found.value, rel=1e-12)
        P = torch.eye(4, dtype=torch.float64)[found.permutation] / 4
        assert energy(A, B, P, loss) == pytest.approx(found.value, rel=1e-12)
    # dimension reduction over the orbit needs no permutation at all
    orbit = [B[order][:, order] for B in family for order in orders]
    least = min(drot.gromov_monge(A, B, loss=loss).value for B in family)
    assert min(mean(B) for B in orbit) == pytest.approx(least, rel=1e-12)
    # over a family that is not closed it does
    assert min(mean(B) for B in family) > least + 1e-3


def test_lem_srgw_weights():
    """GW at any second marginal lies above srGW, and at the learned one they are equal."""
    A, B = problem(1, 3, 2)
    w = weights(3)
    found = drot.semi_relaxed_gw(A, B, weights_x=w, init=["kmeans", "random", "product"])
    grid = np.linspace(0, 1, 41)
    shares = np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)  # (41^3, 3)
    T = np.stack([shares, 1 - shares], axis=2) * w.numpy()[:, None]
    values = np.einsum("ijkl,bik,bjl->b", pointwise(A, B, "square"), T, T, optimize=True)
    assert found.objective <= values.min() + 1e-12
    assert found.objective == pytest.approx(values.min(), abs=2e-2)
    assert found.objective == pytest.approx(energy(A, B, found.plan), abs=1e-12)
    torch.testing.assert_close(found.plan.sum(dim=1), w)
    torch.testing.assert_close(found.weights, found.plan.sum(dim=0))
    # POT with the learned marginal stays there; with others it stays above
    q = found.weights
    same = drot.gromov_wasserstein(A, B, weights_x=w, weights_z=q, init=found.plan)
    assert same.value == pytest.approx(found.objective, abs=1e-10)
    for seed in range(10):
        other = torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(2)))
        value = drot.gromov_wasserstein(A, B, weights_x=w, weights_z=other).value
        assert value >= found.objective - 1e-10


def test_prp_divergences():
    """Zero for one divergence is zero for every other, plan by plan."""
    core = np.array([[0.3, 1.0, 2.0], [1.5, 0.7, 0.2], [0.4, 0.9, 1.1]])  # not symmetric
    first, second = [0, 1, 2, 1, 0], [2, 0, 1, 0]
    A, B = core[np.ix_(first, first)], core[np.ix_(second, second)]
    a, b = A[:, :, None, None], B[None, None]
    losses = {
        "square": pointwise(A, B, "square"),
        "kl": pointwise(A, B, "kl"),
        "absolute": np.abs(a - b),
        "jump": (a != b).astype(float),
        "itakura": a / b - np.log(a / b) - 1,
    }
    rng, zeros = np.random.default_rng(0), 0
    fits = np.equal.outer(first, second).astype(float)  # point and place of one kind
    for seed in range(40):
        mask = fits if seed % 2 else rng.permuted(fits, axis=1)
        T = mask * rng.uniform(0.1, 1, size=mask.shape)
        T = T / T.sum()
        values = [float(np.einsum("ijkl,ik,jl->", L, T, T)) for L in losses.values()]
        zero = [value < 1e-14 for value in values]
        assert len(set(zero)) == 1 and all(zero) >= seed % 2
        zeros += zero[0]
    assert 20 <= zeros < 40
    # a loss that is no divergence: a log(a / b) vanishes elsewhere
    L = a * np.log(a / b)
    assert (np.abs(L)[a != b].min() > 1e-3) and (L < 0).any() and (L > 0).any()


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_srgw_asymmetric(loss):
    """(8.78) against central differences of the four-index sum, no matrix symmetric."""
    rng = np.random.default_rng(3)
    A, B = rng.uniform(0.1, 2, size=(5, 5)), rng.uniform(0.1, 2, size=(3, 3))
    w = weights(5).numpy()
    T, S = soft(weights(5), 3, 1).numpy(), soft(weights(5), 3, 2).numpy()

    def parts(B):
        return (B**2, 2 * B) if loss == "square" else (B, np.log(B))

    def F(A, B, T):
        (f2, h2), q = parts(B), T.sum(axis=0)
        return float(q @ f2 @ q - np.sum((A @ T @ h2.T) * T))

    f1 = A**2 if loss == "square" else A * np.log(A) - A
    for plan in (T, S):
        assert F(A, B, plan) + w @ f1 @ w == pytest.approx(energy(A, B, plan, loss), rel=1e-12)
    (f2, h2), q = parts(B), T.sum(axis=0)
    G = (f2 + f2.T) @ q - A @ T @ h2.T - A.T @ T @ h2
    step = 1e-5
    for i, k in np.ndindex(T.shape):
        E = np.zeros_like(T)
        E[i, k] = step
        slope = (F(A, B, T + E) - F(A, B, T - E)) / (2 * step)
        assert slope == pytest.approx(G[i, k], abs=1e-8)
    half = 2 * (f2 @ q - A @ T @ h2.T)  # what symmetric matrices leave of it
    assert np.abs(G - half).max() > 0.1
    # symmetric places: only the symmetric part of C counts, and the short formula is right for it
    mean, B = (A + A.T) / 2, (B + B.T) / 2
    assert F(A, B, T) == pytest.approx(F(mean, B, T), rel=1e-12)
    change = energy(A, B, T, loss) - energy(A, B, S, loss)
    assert change == pytest.approx(energy(mean, B, T, loss) - energy(mean, B, S, loss), abs=1e-12)
    (f2, h2), q = parts(B), T.sum(axis=0)
    np.testing.assert_allclose(
        2 * (f2 @ q - mean @ T @ h2), 2 * f2 @ q - A @ T @ h2 - A.T @ T @ h2, atol=1e-12
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_lem_srgw_divergence(loss):
    """Zero for weakly isomorphic similarities, and only for those."""
    core, _ = problem(2, 3)
    first, second = torch.tensor([0, 1, 2, 1, 0, 2, 2]), torch.tensor([2, 0, 1, 0])
    A, B = core[first][:, first], core[second][:, second]
    w = weights(7)
    found = drot.semi_relaxed_gw(A, B, weights_x=w, loss=loss)
    assert abs(found.objective) < 1e-12
    # whatever the plan matches is equal
    used = found.plan > 0
    match = used[:, None, :, None] & used[None, :, None, :]
    assert ((A[:, :, None, None] - B[None, None])[match].abs() < 1e-12).all()
    # mass of each class of twins is the same on both sides
    mass = torch.zeros(3, dtype=w.dtype)
    torch.testing.assert_close(
        mass.index_add(0, second, found.weights), mass.index_add(0, first, w), rtol=0, atol=1e-12
    )
    # M C_c M^T, not M^T C_c M as printed, is the large similarity
    M = torch.nn.functional.one_hot(first, 3).double()
    assert torch.equal(M @ core @ M.T, A) and M.shape == (7, 3)
    # a soft plan of value 0 holds a hard one: try those, where the second lacks a class
    C = B[1:3][:, 1:3]
    least = min(energy(A[:5, :5], C, T, loss) for T in hard_plans(weights(5), 2))
    assert least > 1e-3
    assert drot.semi_relaxed_gw(A[:5, :5], C, weights_x=weights(5), loss=loss).objective > 1e-3


def test_prp_srgw_trivial():
    """With L(a, b) = a b, no divergence, all mass on one point is optimal; with (a - b)^2 not."""
    A = drot.sqeuclidean(cloud(5, 2)).dense()
    B = drot.sqeuclidean(cloud(3, 2, 1)).dense()  # its least entry is on the diagonal
    B = B + torch.diag(torch.tensor([0.1, 0.0, 0.1], dtype=B.dtype)) + 0.1
    w = weights(5)

    def product(T, B=B) -> float:
        T = np.asarray(T)
        return float(np.einsum("ij,kl,ik,jl->", A.numpy(), B.numpy(), T, T))

    one = hard_plan(torch.full((5,), int(B.diagonal().argmin())), w, 3)
    others = [*hard_plans(w, 3), *(soft(w, 3, seed) for seed in range(200))]
    assert all(product(one) <= product(T) + 1e-12 for T in others)
    # the package's square loss holds the same product
    for T in others[-3:]:
        q = T.sum(dim=0)
        squares = float(w @ A.square() @ w + q @ B.square() @ q)
        half = (squares - drot.gw_objective(A, B, T)) / 2
        assert half == pytest.approx(product(T), rel=1e-12)
    # the other case: a log(a / b) falls in b, and a kernel is largest on its diagonal
    K = torch.exp(-B) + torch.diag(torch.tensor([0.0, 0.1, 0.0], dtype=B.dtype))
    lumps = [hard_plan(torch.full((5,), k), w, 3) for k in range(3)]

    def cross_entropy(T) -> float:
        return float(np.einsum("ij,kl,ik,jl", A.numpy(), -K.log().numpy(), T, T))

    assert int(K.argmax()) == 4  # the second entry of the diagonal
    assert all(cross_entropy(lumps[1]) <= cross_entropy(T) + 1e-12 for T in others)
    assert cross_entropy(lumps[1]) < min(cross_entropy(lumps[0]), cross_entropy(lumps[2])) - 1e-3
    # without the hypothesis on the diagonal, or with a divergence, the trivial plan loses
    D = B - 2 * float(B.max()) * (1 - torch.eye(3, dtype=torch.float64))
    one = hard_plan(torch.full((5,), int(D.diagonal().argmin())), w, 3)
    assert min(product(T, D) for T in others) < product(one, D) - 1e-2
    found = drot.semi_relaxed_gw(A, B, weights_x=w, init=["kmeans", "random"]).objective
    assert found < min(energy(A, B, T) for T in lumps) - 1e-3


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_prp_line_search(loss, seed):
    """Coefficients of the quadratic against sums at three points, its minimum against a grid."""
    A, B = problem(seed, 6, 3)
    w, n = weights(6, seed), 6
    T, X = soft(w, 3, seed), hard_plan(torch.arange(6) % 3, w, 3)
    terms = Problem(contraction(A, B, loss), w)
    state = terms.state(T)
    assert state.value == pytest.approx(energy(A, B, T, loss), rel=1e-12)
    D = X - T
    g = terms.half_gradient(state)
    line = terms.line(D, terms.contraction.product(D), g)
    grid = np.linspace(0, 1, 1001)
    values = [energy(A, B, T + t * D, loss) for t in (0, 0.5, 1)]
    a, b, c = np.polyfit([0, 0.5, 1], values, 2)
    assert (line.a, line.b) == pytest.approx((a, b), abs=1e-10)
    assert line.change(1.0) == pytest.approx(values[2] - values[0], abs=1e-10)
    best = grid[np.argmin(np.polyval([a, b, c], grid))]
    if a > 0 or abs(a + b) > 1e-6:
        assert line.minimum() == pytest.approx(best, abs=1e-3)
    # in the thesis' letters: F_2(T) where (8.81) prints the gradient
    f2, h2 = (B**2, 2 * B) if loss == "square" else (B, B.log())
    one = torch.ones(n, 1, dtype=w.dtype)

    def F1(T):
        return one @ T.sum(dim=0, keepdim=True) @ f2

    def F2(T):
        return A @ T @ h2

    right = ((F1(X) - F1(T) - F2(X) + F2(T)) * D).sum()
    printed = ((F1(X) - F1(T) - F2(X) + 2 * (F1(T) - F2(T))) * D).sum()
    assert float(right) == pytest.approx(a, abs=1e-10) and abs(float(printed) - a) > 1e-3
    linear = ((F1(T) - F2(T)) * D).sum() + ((F1(D) - F2(D)) * T).sum()  # (8.82) holds
    assert float(linear) == pytest.approx(b, abs=1e-10)


def test_the_best_length():
    """Of a convex, a concave and a linear function on [0, 1]."""
    lines = [
        (2.0, -1.0),
        (1.0, -4.0),
        (1.0, 3.0),
        (-2.0, 1.0),
        (-1.0, 2.0),
        (0.0, -1.0),
        (0.0, 1.0),
        (-1.0, 1.0),  # both ends alike: it stays
    ]
    assert [Line(a, b).minimum() for a, b in lines] == [0.25, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_bounds_the_slope(loss):
    """The residual is the largest decrease of the linear model, in units of the stated scale."""
    A, B = problem(5, 6, 3)
    w = weights(6)
    T = soft(w, 3, 1)
    terms = Problem(contraction(A, B, loss), w)
    G = drot.gw_gradient(A, B, T, loss=loss)
    worst = max(float((G * (T - S)).sum()) for S in hard_plans(w, 3))
    _, gap = next(conditional_gradient(terms, terms.state(T)))
    size = (A.square(), B.square()) if loss == "square" else (A, B)
    assert gap == pytest.approx(worst / float(w @ size[0] @ w + size[1].mean()), rel=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_mirror_descent(loss):
    """A step is the KL proximal step, by a conic solver; the other sign ascends."""
    A, B = problem(6, 4, 2)
    w, eps = weights(4), 1.5
    T = soft(w, 2, 3)
    G = drot.gw_gradient(A, B, T, loss=loss).numpy()
    S = cp.Variable((4, 2))
    model = cp.sum(cp.multiply(G, S)) + eps * cp.sum(cp.kl_div(S, T.numpy()))
    cp.Problem(cp.Minimize(model), [cp.sum(S, axis=1) == w.numpy()]).solve(solver="CLARABEL")
    terms = Problem(contraction(A, B, loss), w)
    steps = mirror_descent(terms, terms.state(T), eps)
    next(steps)
    new, _ = next(steps)
    np.testing.assert_allclose(new.T, S.value, atol=1e-5)
    K = np.exp(np.log(T.numpy()) - G / eps)
    np.testing.assert_allclose(new.T, w.numpy()[:, None] * K / K.sum(1, keepdims=True), atol=1e-12)
    before, eps = energy(A, B, T, loss), 50.0  # small steps: the sign decides
    after = []
    for sign in (-1, 1):
        K = np.exp(np.log(T.numpy()) + sign * G / eps)
        after.append(energy(A, B, w.numpy()[:, None] * K / K.sum(1, keepdims=True), loss))
    assert after[0] < before < after[1]
    K = np.exp(G - 1.5 * np.log(T.numpy()))  # (8.79) as it is printed: not this step
    printed = w.numpy()[:, None] * K / K.sum(1, keepdims=True)
    assert np.abs(printed - S.value).max() > 1e-2
    # an epsilon above twice the largest curvature always descends; the adapted one does too
    h2 = 2 * B if loss == "square" else B.log()
    f2 = B**2 if loss == "square" else B
    safe = 2 * float(f2.abs().max() + A.max() * h2.abs().max())
    for epsilon in (safe, None):
        found = drot.semi_relaxed_gw(
            A, B, weights_x=w, loss=loss, solver="mirror_descent", epsilon=epsilon, init=T,
            refine=False, max_iter=300, on_failure="ignore",
        )  # fmt: skip
        trace = np.array(found.trace)
        assert (np.diff(trace) <= 1e-12).all() and trace[-1] < trace[0] - 1e-3


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["conditional_gradient", "mirror_descent"])
def test_prp_low_rank(loss, solver):
    """The same numbers from factors as from dense matrices, and no n x n array."""
    X, Z = cloud(), cloud(12, 1, 1)
    T = soft(weights(40), 12, 2)
    pairs = [(drot.factored_sqeuclidean(X), drot.factored_sqeuclidean(Z))]
    if loss == "square":
        pairs += [(drot.gram(X), drot.gram(Z)), (drot.gram(X), drot.factored_sqeuclidean(Z))]
    else:
        pairs = [(pairs[0][0], drot.gaussian_kernel(Z))]
    for left, right in pairs:
        A, B = left.dense().clamp_min(0) if loss == "kl" else left.dense(), right.dense()
        assert torch.allclose(A, A.T, atol=1e-12)
        value = drot.gw_objective(left, right, T, loss=loss)
        assert value == pytest.approx(drot.gw_objective(A, B, T, loss=loss), rel=1e-10)
        assert value == pytest.approx(energy(A, B, T, loss), rel=1e-10)
        torch.testing.assert_close(
            drot.gw_gradient(left, right, T, loss=loss),
            drot.gw_gradient(A, B, T, loss=loss),
            rtol=1e-10,
            atol=1e-10,
        )
        options = {"weights_x": weights(40), "loss": loss, "solver": solver, "init": T}
        options |= {"max_iter": 30, "refine": False, "on_failure": "ignore"}
        thin = drot.semi_relaxed_gw(left, right, **options)
        full = drot.semi_relaxed_gw(A, B, **options)
        np.testing.assert_allclose(thin.trace, full.trace, rtol=1e-10)
        torch.testing.assert_close(thin.plan, full.plan, rtol=0, atol=1e-10)
    assert pairs[0][0].left.shape[1] == 3 + 2


def test_low_rank_forms_no_rows():
    """With the square loss, not one row of C is formed, whatever the solver does."""
    C, B = drot.gram(cloud(200)), drot.gram(cloud(4, 2, 1))

    def refuse(rows):
        raise AssertionError("a row of C was formed")

    C._evaluate = refuse
    for solver in ("conditional_gradient", "mirror_descent"):
        found = drot.semi_relaxed_gw(C, B, solver=solver, init=["kmeans", "random"])
        assert found.residual <= 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_row_move(loss):
    """The objective along a move of one row, on a grid, is the quadratic of the statement."""
    A, B = problem(4, 5, 3)
    T, L = soft(weights(5), 3, seed=2), pointwise(A, B, loss)
    moves, bent = [(0, 0, 1), (3, 2, 0), (4, 1, 2), (1, 2, 1)], 0
    for i, k, new in moves:
        a = L[i, i, k, k] + L[i, i, new, new] - 2 * L[i, i, k, new]
        slope = drot.gw_gradient(A, B, T, loss=loss)
        b = float(slope[i, new] - slope[i, k])
        if a <= 0:  # all of it or nothing
            bent += 1
            ends = min(0.0, b * float(T[i, k]) + a * float(T[i, k]) ** 2)
        for t in np.linspace(0, float(T[i, k]), 5):
            moved = T.clone()
            moved[i, k] -= t
            moved[i, new] += t
            change = energy(A, B, moved, loss) - energy(A, B, T, loss)
            assert change == pytest.approx(b * t + a * t * t, abs=1e-12)
            assert a > 0 or change >= ends - 1e-12
    assert 0 < bent < len(moves)


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_mirror_descent_bound(loss):
    """With epsilon at half the largest loss every step descends; far below it some do not."""
    A, B = problem(6, 6, 3)
    bound = float(pointwise(A, B, loss).max()) / 2

    def run(epsilon: float) -> np.ndarray:
        T, values = soft(weights(6), 3, seed=1), []
        for _ in range(40):
            values.append(drot.gw_objective(A, B, T, loss=loss))
            K = T.log() - drot.gw_gradient(A, B, T, loss=loss) / epsilon
            T = torch.softmax(K, dim=1) * T.sum(dim=1, keepdim=True)
        return np.diff(values)

    safe = run(bound)
    assert safe.max() < 1e-13 and safe[0] < -1e-8
    assert max(run(bound / 150).max(), run(bound / 1500).max()) > 1e-6
    # half the largest loss is the least that will do: two places, near the middle
    C = torch.ones(2, 2, dtype=torch.float64)
    D = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    L = pointwise(C, D, loss)[0, 0]
    assert L.max() == L[0, 0] == L[1, 1] and L[0, 1] == L[1, 0] == 0
    T = torch.tensor([[0.2505, 0.2495]], dtype=torch.float64).repeat(2, 1)
    changes = []
    for share in (0.49, 0.51):
        slope = drot.gw_gradient(C, D, T, loss=loss)
        S = torch.softmax(T.log() - slope / (share * float(L.max())), dim=1) / 2
        changes.append(energy(C, D, S, loss) - energy(C, D, T, loss))
    assert changes[0] > 1e-9 and changes[1] < -1e-9
    # where a step goes nowhere, the plan is stationary: no slope along its rows
    T = torch.full((2, 2), 0.25, dtype=torch.float64)
    slope = drot.gw_gradient(C, D, T, loss=loss)
    torch.testing.assert_close(torch.softmax(T.log() - slope, dim=1) / 2, T)
    assert float((slope[:, 0] - slope[:, 1]).abs().max()) < 1e-12
    # the inequality of the proof, with both divergences and a step of any size
    for scale in (1, 0.1, 0.01):
        T = soft(weights(6), 3, seed=1)
        K = T.log() - drot.gw_gradient(A, B, T, loss=loss) / (scale * bound)
        D = torch.softmax(K, dim=1) * T.sum(dim=1, keepdim=True) - T
        change = energy(A, B, T + D, loss) - energy(A, B, T, loss)
        assert change <= (1 - scale) * bound * float(D.abs().sum()) ** 2 + 1e-13
