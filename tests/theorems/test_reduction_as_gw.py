"""Chapter 11: dimension reduction, Gromov-Monge and Gromov-Wasserstein.

Oracles: all permutations, four-fold sums by einsum, quadrature, random plans, closed forms.
"""

import itertools
import math

import drot
import numpy as np
import pytest
from drot import spectral
from oracles import scaled
from plans import LOSSES, energy, squares
from scipy.integrate import quad
from scipy.optimize import linear_sum_assignment, minimize


def balanced(n: int, seed: int) -> np.ndarray:
    """A random doubly stochastic matrix, (n, n), sparse-ish."""
    S = np.random.default_rng(seed).gamma(0.3, size=(n, n)) + 1e-12
    return scaled(S, sweeps=400)


def centred(C) -> np.ndarray:
    C = np.asarray(C, dtype=float)
    J = np.eye(len(C)) - 1 / len(C)
    return J @ (C + C.T) / 2 @ J


def is_cpd(C) -> bool:
    return bool(np.linalg.eigvalsh(centred(C)).min() > -1e-10 * max(1.0, np.abs(C).max()))


def permutations(n: int):
    return [np.eye(n)[list(s)] for s in itertools.permutations(range(n))]


def gram_minimum(C, q: int) -> float:
    """min over Z of |C - Z Z^T|^2 for any square C."""
    sym = (C + C.T) / 2
    values = np.clip(np.linalg.eigvalsh(sym)[::-1][:q], 0, None)
    return float((C**2).sum() - (values**2).sum())


def student_softmax(Z):
    kernel = 1 / (1 + squares(Z))
    return len(Z) * kernel / kernel.sum()


def test_lem_dr_gromov_monge():
    """At a global minimum, which PCA is, no permutation helps, and some hurt."""
    rng, n = np.random.default_rng(0), 5
    orders = [list(s) for s in itertools.permutations(range(n))]
    X, Z = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    for s in orders:
        np.testing.assert_allclose(student_softmax(Z)[np.ix_(s, s)], student_softmax(Z[s]))
    gram = centred(X @ X.T)
    best = spectral.kernel_pca(gram, 2).Z.numpy()
    values = [np.square(gram - (best @ best.T)[np.ix_(s, s)]).sum() for s in orders]
    assert values[0] == pytest.approx(gram_minimum(gram, 2), rel=1e-10)
    assert min(values) >= values[0] - 1e-10 and max(values) > values[0] + 1
    for order in ([0, 1, 2, 3, 4], [3, 1, 4, 0, 2]):  # it is undone
        value, sigma = drot.gromov.gromov_monge(gram, (best @ best.T)[np.ix_(order, order)])
        assert value * n * n == pytest.approx(values[0], rel=1e-10)
        assert np.array(order)[sigma].tolist() == list(range(n))


@pytest.mark.parametrize("loss", LOSSES)
def test_prp_gw_contraction(loss):
    """The three sums of matrices, symmetric or not, any marginals, against four indices."""
    rng = np.random.default_rng(1)
    C, D = rng.uniform(0.1, 3, size=(6, 6)), rng.uniform(0.1, 3, size=(4, 4))
    C, D = C + C.T, D + D.T
    T = rng.dirichlet(np.ones(24)).reshape(6, 4)
    h, g = T.sum(axis=1), T.sum(axis=0)
    found = float(drot.gw_objective(C, D, T, loss=loss))
    assert found == pytest.approx(energy(C, D, T, loss), rel=1e-12)
    for A, B in ((C, D), (np.triu(C) + 0.1, np.tril(D) + 0.1)):
        if loss == "square":
            f1, f2, h2 = A**2, B**2, 2 * B
        else:
            f1, f2, h2 = A * np.log(A) - A, B, np.log(B)
        whole, turned = (h @ f1 @ h + g @ f2 @ g - np.sum((A @ T @ m) * T) for m in (h2.T, h2))
        assert whole == pytest.approx(energy(A, B, T, loss), rel=1e-12)
    assert turned != pytest.approx(whole, rel=1e-3)  # the second matrix is transposed


def test_prp_stable_image():
    rng, n, q = np.random.default_rng(2), 6, 2
    C, A = rng.normal(size=(n, n)), rng.uniform(size=(n, n))  # not even symmetric
    least = gram_minimum(C, q)
    for seed in range(20):
        S, Z = balanced(n, seed), rng.normal(size=(n, q))
        Y = S @ Z
        shared, moved = n * n * energy(C, Z @ Z.T, S / n), np.square(C - Y @ Y.T).sum()
        assert shared >= moved - 1e-9 >= least - 2e-9
        # condition 2: a loss that is linear and non-decreasing, similarities that are convex
        assert (S @ squares(Z) @ S.T >= squares(Y) - 1e-10).all()
        shared = np.einsum("ij,kl,ik,jl", A, squares(Z), S, S)
        assert shared >= (A * squares(Y)).sum() - 1e-10
    for P in permutations(3):  # and no gap at permutations
        Z = rng.normal(size=(3, q))
        moved = np.square(C[:3, :3] - (P @ Z) @ (P @ Z).T).sum()
        assert 9 * energy(C[:3, :3], Z @ Z.T, P / 3) == pytest.approx(moved, rel=1e-12)


def test_rem_equivariant():
    """phi(psi(z_i, z_j), g(Z)) turns with the points; without a symmetric g it does not."""
    Z, n = np.random.default_rng(3).normal(size=(5, 2)), 5
    functions = {
        "gram": lambda Z: Z @ Z.T,
        "scaled": lambda Z: scaled(np.exp(-squares(Z)), sweeps=50),
        # psi not symmetric, phi not a product, g permutation invariant
        "uneven": lambda Z: np.tanh(Z[:, :1] + 2 * Z[:, 1]) ** 2 + np.sort(Z[:, 0]) @ np.arange(n),
        "ordered": lambda Z: Z @ Z.T + Z[0, 0],
    }
    for name, C_Z in functions.items():
        gaps = [np.abs(C_Z(P @ Z) - P @ C_Z(Z) @ P.T).max() for P in permutations(n)[::7]]
        assert max(gaps) > 0.1 if name == "ordered" else max(gaps) < 1e-9, name


def test_lem_cpd():
    rng = np.random.default_rng(3)
    for n, good in itertools.product((3, 6, 9), (True, False)):
        Y, a = rng.normal(size=(n, 2)), rng.normal(size=n)
        C = Y @ Y.T + a[:, None] + a
        if not good:
            C = C - 4 * np.outer(v := rng.normal(size=n), v)
        assert is_cpd(C) == good
        # face 3: rebuilt from J C J and the row means
        shift = C.mean(axis=1) - C.mean() / 2
        assert np.allclose(centred(C) + shift[:, None] + shift, C)
        # face 4: every entrywise power of exp(C), large and small
        powers = [np.exp(t * C) for t in (1e-3, 0.1, 1.0)]
        assert all(np.linalg.eigvalsh(K).min() > -1e-11 * K.max() for K in powers) == good
    # a kernel that is positive semidefinite while its logarithm is not CPD
    K = np.array([[2.0, 1.0, 1.4], [1.0, 2.0, 1.4], [1.4, 1.4, 2.0]]) - 0.99
    assert np.linalg.eigvalsh(K).min() > 0 and not is_cpd(np.log(K))
    assert np.linalg.eigvalsh(K**0.05).min() < 0


def sags(A, B, loss, plans) -> list[float]:
    """The value half way between two plans, less the mean of theirs."""

    def at(T) -> float:
        return energy(A, B, T, loss)

    return [at((S + T) / 2) - (at(S) + at(T)) / 2 for S, T in itertools.pairwise(plans)]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("loss", LOSSES)
def test_prp_gw_concave(loss, sign):
    """Plans of equal or other weights; opposite signs bend the other way."""
    rng, n = np.random.default_rng(4), 5
    X, Z = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    A, B = (sign * (M @ M.T) for M in (X, Z))
    if loss == "kl":
        A, B = A - A.min() + 0.1, np.exp(B)
    plans = [balanced(n, seed) / n for seed in range(12)]
    assert min(sags(A, B, loss, plans)) >= -1e-10
    vertices = [energy(A, B, P / n, loss) for P in permutations(n)]
    assert min(vertices) <= min(energy(A, B, T, loss) for T in plans)
    rows, columns = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(3))
    wide = [scaled(rng.gamma(0.3, size=(n, 3)) + 1e-9, rows, columns, 500) for _ in range(12)]
    assert min(sags(A, B[:3, :3], loss, wide)) >= -1e-10
    assert sags(X @ X.T, -X @ X.T, "square", plans[:2])[0] < -1e-6


def test_thm_dr_gw():
    """With Z and T free no descent over both ends below reduction."""
    rng, n, q = np.random.default_rng(5), 6, 2
    # (1) for a fixed plan the best Z is known: n^2 E = |C|^2 - 2 <S^T C S, Z Z^T> + |Z Z^T|^2
    C = rng.normal(size=(n, n))
    for seed in range(20):
        pulled = balanced(n, seed).T @ C @ balanced(n, seed)
        best = (C**2).sum() - (pulled**2).sum() + gram_minimum(pulled, q)
        assert best >= gram_minimum(C, q) - 1e-10
    # (2) Z and T free: minimise over both from many starts
    X = rng.normal(size=(n, 3))
    C_X = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=3).plan.numpy()
    assert is_cpd(C_X)

    def shared(z, S):
        return n * n * energy(C_X, student_softmax(z.reshape(n, q)), S / n, "kl")

    starts = rng.normal(size=(6, n * q))
    reduction = min(minimize(shared, z, args=(np.eye(n),), method="BFGS").fun for z in starts)
    for seed in range(2):
        S, z = balanced(n, seed), starts[seed]
        for _ in range(8):  # blocks: Z for a fixed plan, then a step of the plan to a vertex
            z = minimize(shared, z, args=(S,), method="BFGS", options={"maxiter": 30}).x
            K = np.log(student_softmax(z.reshape(n, q)))
            vertex = np.eye(n)[linear_sum_assignment(-C_X @ S @ K)[1]]
            if shared(z, vertex) < shared(z, S):
                S = vertex
        assert shared(z, S) >= reduction - 1e-6


def test_prp_student_cpd():
    for c in (1e-3, 1.0, 50.0):
        integral, _ = quad(lambda s, c=c: -np.expm1(-s * c) / s * np.exp(-s), 0, np.inf)
        assert integral == pytest.approx(math.log1p(c), rel=1e-6)
    rng = np.random.default_rng(6)
    for p in (1, 2, 10):
        Z = rng.normal(size=(80, p)) * np.exp(rng.normal(size=(80, 1)))
        cost = drot.student_cost(Z).dense().numpy()
        assert is_cpd(-cost) and not is_cpd(cost)
        for r in (0.05, 1.0, 4.0):
            assert np.linalg.eigvalsh(np.exp(-r * cost)).min() > -1e-11
    # the diagonal need not be 0
    offset = rng.uniform(0, 2, size=80)
    assert is_cpd(-np.log1p(squares(Z) + offset[:, None] + offset))
    # C must be CND: squares of squared distances are not
    line = np.subtract.outer(np.arange(-1.0, 2), np.arange(-1.0, 2)) ** 4
    assert not is_cpd(-np.log1p(0.01 * line))


def test_cor_curve_cpd():
    rng = np.random.default_rng(7)
    d = np.sqrt(squares(rng.normal(size=(60, 2))))
    for a, b in itertools.product((0.1, 1.6, 9.0), (0.3, 0.895, 1.0)):
        assert is_cpd(-np.log1p(a * d ** (2 * b)))
    v = np.array([1.0, -2, 1])
    three = np.abs(np.subtract.outer([-1.0, 0, 1], [-1.0, 0, 1]))
    for a, b in itertools.product((0.1, 1.6), (1.05, 1.33, 2.0)):
        forms = [v @ -np.log1p(a * (x * three) ** (2 * b)) @ v for x in (1e-3, 1e-2, 0.1)]
        assert forms[0] < 0
        assert forms[0] == pytest.approx((8 - 2 * 4**b) * a * 1e-3 ** (2 * b), rel=1e-2)
    assert drot.umap_curve(min_dist=0.1)[1] < 1 < drot.umap_curve(min_dist=0.5)[1]


def test_prp_affinity_cpd():
    cost = drot.sqeuclidean(np.random.default_rng(8).normal(size=(40, 3)))
    loopless = drot.symmetrize(drot.entropic_affinity(cost, perplexity=8, diagonal="drop")).numpy()
    i, j = np.unravel_index(loopless.argmax(), loopless.shape)
    v = np.eye(40)[i] - np.eye(40)[j]
    assert v @ loopless @ v == pytest.approx(-2 * loopless.max()) and not is_cpd(loopless)
    scaled = drot.doubly_stochastic_affinity(cost, bandwidth=2.0).plan.numpy()
    assert np.linalg.eigvalsh(scaled).min() > -1e-9


def test_prp_two_points():
    def pair(own, other):
        return np.array([[own, other], [other, own]])

    k = np.linspace(1e-3, 1, 1000)
    for eps in (0.0, 0.2, 0.7, 0.99):
        C = pair(eps, 1.0)
        matched, shared = (
            [4 * energy(C, pair(1, x), T, "kl") for x in k]
            for T in (np.eye(2) / 2, pair(0.25, 0.25))
        )
        gap = 1 - eps + (1 + eps) * math.log((1 + eps) / 2)
        assert gap > 0 and min(matched) - min(shared) == pytest.approx(gap, abs=1e-5)
        assert k[np.argmin(shared)] == pytest.approx((1 + eps) / 2, abs=2e-3)
        assert np.argmin(matched) == len(k) - 1
    for eps, x, t in itertools.product((1.0, 1.5), (0.2, 0.6, 1.0), np.linspace(0, 1, 21)):
        plans = (pair(t, 1 - t) / 2, np.eye(2) / 2)  # C is CPD: no plan helps
        values = [energy(pair(eps, 1.0), pair(1, x), T, "kl") for T in plans]
        assert values[0] >= values[1] - 1e-12


def test_cor_cross_entropy():
    """f a Gaussian and R = 1 + sum |z_i - z_j|^2, convex and invariant; one that is not."""
    rng, n, q = np.random.default_rng(9), 5, 2
    A = rng.uniform(size=(n, n))

    def parts(Z):
        """-log C_Z."""
        return squares(Z) + math.log(1 + squares(Z).sum())

    for seed in range(20):
        S, Z = balanced(n, seed), rng.choice([0.3, 1, 5]) * rng.normal(size=(n, q))
        assert (parts(S @ Z) <= S @ parts(Z) @ S.T + 1e-10).all()
        shared = np.einsum("ij,kl,ik,jl", A, parts(Z), S, S)
        assert shared >= (A * parts(S @ Z)).sum() - 1e-10
    # f must be log-concave: Student's is not, far out
    Z, S = np.array([[0.0], [1.0], [9.0]]), np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    assert (np.log1p(squares(S @ Z)) > S @ np.log1p(squares(Z)) @ S.T + 0.5)[0, 1]


def test_prp_collapse():
    """f = exp(-|z - shift|^2), log-concave and not even; R convex and invariant."""
    rng, n = np.random.default_rng(10), 6
    A = rng.uniform(size=(n, n))
    A = A + A.T

    def gaps(Z, shift):
        return np.square(Z[:, None] - Z - shift).sum(axis=2)

    def objective(Z, shift):
        return (A * (gaps(Z, shift) + math.log(1 + np.linalg.norm(Z, axis=1).sum()))).sum()

    for shift, _ in itertools.product((np.zeros(2), np.array([0.7, -0.2])), range(20)):
        Z = rng.normal(size=(n, 2)) * rng.choice([0.01, 1, 10]) + rng.normal(size=2)
        mean = np.broadcast_to(Z.mean(axis=0), Z.shape)
        assert objective(Z, shift) >= objective(mean, shift) - 1e-9
    # a lopsided C_X and an f that is not even: symmetry was needed, spread out is better
    together, apart = np.zeros((n, 1)), -np.arange(n)[:, None] / 2
    lopsided = np.triu(A, 1)
    assert (lopsided * gaps(apart, 1.0)).sum() < (lopsided * gaps(together, 1.0)).sum() - 1


def test_prp_bilinear():
    """Over the permutations of B: one plan or two, hard or soft, is the same where concave."""
    rng, n = np.random.default_rng(11), 4
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    A, B, group = X @ X.T, Y @ Y.T, permutations(n)
    for sign, same in ((1, True), (-1, False)):  # -1: not concave, two plans do strictly better
        one = min(np.square(A - sign * P @ B @ P.T).sum() for P in group)
        two = min(np.square(A - sign * P @ B @ Q.T).sum() for P in group for Q in group)
        assert two == pytest.approx(one) if same else two < one - 1e-3
        assert min(n * n * energy(A, sign * B, P / n) for P in group) == pytest.approx(one)
        if same:
            soft = [n * n * energy(A, B, balanced(n, seed) / n) for seed in range(20)]
            assert min(soft) >= one - 1e-9


def test_prp_bilinear_converse():
    """Two plans with the best a I + b reach 18; one plan, hard or soft, no less than 72."""
    C = np.array([[4.0, -5, 1], [-5, 4, 1], [1, 1, -2]])

    def f(P):
        """min over a and b, for a pair whose quotient is P."""
        design = np.stack([P.ravel(), np.ones(9)], axis=1)
        fitted = design @ np.linalg.lstsq(design, C.ravel(), rcond=None)[0]
        return np.square(C.ravel() - fitted).sum()

    values = [f(P) for P in permutations(3)]
    assert [values[0], values[2], min(values)] == pytest.approx([72, 18, 18])
    plans = [balanced(3, seed) for seed in range(20)] + permutations(3)
    for a, b in itertools.product(np.linspace(-9, 9, 19), np.linspace(-4, 4, 9)):
        D = a * np.eye(3) + b
        products = [np.sum((C @ S @ D) * S) for S in plans]
        assert (C**2).sum() + (D**2).sum() - 2 * max(products) >= 72 - 1e-9
