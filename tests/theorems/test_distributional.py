"""Chapter 14: distributional reduction, term by term, by differences, and against plain methods."""

import itertools
from dataclasses import replace

import drot
import numpy as np
import pytest
import torch
from drot.distributional.problem import make_problem
from drot.gromov.contraction import hard_plan
from plans import LOSSES, affinity, cloud, energy, pointwise, problem, soft, weights
from scipy.optimize import linear_sum_assignment, minimize
from sklearn.metrics import homogeneity_score, silhouette_score

KERNELS = ["student", "gaussian", "gram"]
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_factors = pytest.mark.parametrize("factors", ["sum", "rows", "doubly_stochastic"])


def source(kernel: str, n: int = 12, seed: int = 0) -> torch.Tensor:
    X = cloud(n, 3, seed)
    X = X - X.mean(dim=0)
    return X @ X.T if kernel == "gram" else affinity(n, seed=seed)


def build(C, k: int, kernel: str, w=None, q: int = 2):
    return make_problem(C, k, n_components=q, weights=w, kernel=kernel)


def students(Z):
    return 1 / (1 + np.square(Z[:, None] - Z).sum(axis=2))


def naive_structure(C, Z, T, kernel: str, factors: str = "sum") -> np.ndarray:
    """Cbar from the sums it must have, the doubly stochastic one by plain Sinkhorn."""
    C, Z, T = (np.asarray(x) for x in (C, Z, T))
    if kernel == "gram":
        return Z @ Z.T
    K = students(Z)
    K = K if kernel == "student" else np.exp(1 - 1 / K)
    q, M = T.sum(axis=0), T.T @ C @ T
    if factors == "sum":
        return K * M.sum() / (q @ K @ q)
    means = M.sum(axis=1) / q
    if factors == "rows":
        return K * (means / (K @ q))[:, None]
    s = np.ones(len(q))
    for _ in range(2000):
        s = np.sqrt(s * means / (K @ (q * s)))
    return s[:, None] * K * s


def term_by_term(C, Z, T, kernel: str, factors: str = "sum") -> float:
    """The objective by its definition, of the prototypes that have weight."""
    used = np.asarray(T).sum(axis=0) > 0
    Z, T = np.asarray(Z)[used], np.asarray(T)[:, used]
    loss = "square" if kernel == "gram" else "kl"
    return energy(C, naive_structure(C, Z, T, kernel, factors), T, loss)


@pytest.mark.parametrize("loss", LOSSES)
def test_thm_distr_split(loss):
    """The two errors add up, for soft plans with any weights; and the mean is the best matrix."""
    C, C_bar = problem(0, 7, 3)
    # the second: groups without similarity between them, whose mean is 0, and 0 log 0 = 0
    blocks = np.kron(np.eye(2), [[0.8, 0.5], [0.5, 0.9]])
    apart = np.kron(np.eye(2), [[0.3], [0.2]])
    cases = [(C.numpy(), C_bar.numpy(), soft(weights(7), 3, seed).numpy()) for seed in range(5)]
    for A, B, T in (*cases, (blocks, C_bar[:2, :2].numpy(), apart)):
        h = T.sum(axis=0)
        best = T.T @ A @ T / np.outer(h, h)
        mass = np.einsum("ik,jl->ijkl", T, T)
        whole, clustering = (
            (mass * np.where(mass > 0, pointwise(A, D, loss), 0)).sum() for D in (B, best)
        )
        drawing = np.einsum("k,m,kmkm->", h, h, pointwise(best, B, loss))
        assert whole == pytest.approx(clustering + drawing, rel=1e-10) and clustering < whole
    assert best[0, 1] == 0
    # (a - b)^4 is no such divergence
    a = np.array([0.0, 1.0, 5.0])
    fourth = [np.mean((a - b) ** 4) for b in (a.mean(), 3.0)]
    assert fourth[1] - fourth[0] != pytest.approx((a.mean() - 3.0) ** 4, rel=0.1)


@pytest.mark.parametrize("kernel", KERNELS[:2])
@pytest.mark.parametrize("empty", [False, True])
def test_gradient_by_differences(kernel, empty):
    """The closed gradient, factor of the kernel included, is that of the term-by-term value."""
    C, w = source(kernel), weights(12)
    T, Z = soft(w, 4, 1), cloud(4, 2, 2)
    if empty:
        T[:, 1] += T[:, 3]
        T[:, 3] = 0
    terms = build(C, 4, kernel, w)
    c = terms.couple(T)
    found = terms.position_loss(c).evaluate(Z, tol=1e-12)
    assert found.value == pytest.approx(term_by_term(C, Z, T, kernel), rel=1e-10)
    for i, j in itertools.product(range(4), range(2)):
        step = torch.zeros_like(Z)
        step[i, j] = 1e-5
        up, down = (term_by_term(C, Z + s * step, T, kernel) for s in (1, -1))
        assert float(found.gradient[i, j]) == pytest.approx((up - down) / 2e-5, abs=2e-8), (i, j)
    assert not empty or bool((found.gradient[3] == 0).all())


@each_factors
def test_prp_factors(factors):
    """Under kl SciPy's best factors have the sums of the statement, and are the package's."""
    C, w, Z = affinity(8), weights(8), cloud(3, 2, 2)
    T, K = soft(w, 3, 1), students(Z.numpy())
    value = term_by_term(C, Z, T, "student", factors)
    if factors == "sum":
        terms = build(C, 3, "student", w)
        assert terms.objective(Z, terms.couple(T)) == pytest.approx(value, rel=1e-12)

    def scaled(x) -> np.ndarray:
        u = np.exp(x)
        if factors == "sum":
            return u[0] * K
        return u[:, None] * K * (u if factors == "doubly_stochastic" else 1)

    def other(x) -> float:
        return energy(C, scaled(x), T, "kl")

    best = minimize(other, np.full(3, np.log(0.3)), method="BFGS", options={"gtol": 1e-10})
    assert value == pytest.approx(best.fun, rel=1e-7) and value <= best.fun * (1 + 1e-9)
    q, M = T.sum(dim=0).numpy(), (T.T @ C @ T).numpy()
    Q = np.outer(q, q) * scaled(best.x)
    assert Q.sum() == pytest.approx(M.sum(), rel=1e-5)
    if factors != "sum":
        np.testing.assert_allclose(Q.sum(axis=1), M.sum(axis=1), rtol=1e-4)


@pytest.mark.parametrize("kernel", ["gram", "student"])
def test_centres_of_clusters_of_one_weight(kernel):
    """The paper's CDR: inner products of centres are embedded by their PCA, whatever the weights
    of the clusters; its objective is that of the whole plan, above that of our own CDR."""
    X, made = cloud(12, 3), []
    X = X - X.mean(dim=0)
    C, loss = (drot.gram(X), "square") if kernel == "gram" else (affinity(), "kl")

    def similar(T):
        made.append(T.T @ X / T.sum(dim=0)[:, None])
        if kernel == "gram":
            return drot.gram(made[0])
        return drot.symmetric_entropic_affinity(drot.sqeuclidean(made[0]), perplexity=2).plan

    ask = {"kernel": kernel, "clustering": "kmeans", "tol": 1e-8}
    ours, theirs = (drot.cluster_then_reduce(C, 4, centres=f, **ask) for f in (None, similar))
    assert len(made) == 1 and theirs.converged and theirs.residual <= 1e-8
    assert torch.equal(ours.plan, theirs.plan) and len(theirs.weights.unique()) > 1
    value = drot.gw_objective(C, theirs.structure, theirs.plan, loss=loss)
    assert theirs.objective == pytest.approx(value, rel=1e-9)
    assert theirs.objective > ours.objective * (1 + 1e-6)
    if kernel == "gram":
        values, V = torch.linalg.eigh(made[0] @ made[0].T)
        torch.testing.assert_close(theirs.Z @ theirs.Z.T, V[:, 2:] * values[2:] @ V[:, 2:].T)
    else:  # at rest as four points of one weight
        P = similar(theirs.plan)
        assert drot.tsne(P, diagonal="keep", init=theirs.Z, tol=1e-7).n_iter == 0


@pytest.mark.parametrize("q", [1, 5])
@pytest.mark.parametrize("signs", [(1, 1, 1, 1), (1, 1, -1, -1), (-1, -1, -1, -1)])
def test_prp_distr_gram(q, signs):
    """The closed form for positions, against an optimiser and the package's, C of any signs."""
    rng, w = np.random.default_rng(q), weights(9)
    A = rng.normal(size=(9, 4))
    C, T = A @ np.diag(signs) @ A.T, soft(w, 4, 1)
    h, g = T.sum(dim=0).numpy(), w.numpy()
    best = (T.T @ torch.from_numpy(C) @ T).numpy() / np.outer(h, h)
    mu = np.linalg.eigvalsh(np.sqrt(h)[:, None] * best * np.sqrt(h))[::-1]
    formula = g @ C**2 @ g - (mu[:q].clip(0) ** 2).sum()
    clustering = energy(C, best, T)
    assert formula == pytest.approx(clustering + (mu**2).sum() - (mu[:q].clip(0) ** 2).sum())
    terms = build(torch.from_numpy(C), 4, "gram", w, q)
    c = terms.couple(T)
    Z = terms.update_positions(cloud(4, q), c, 1e-9, 1)
    assert terms.objective(Z, c) == pytest.approx(formula, rel=1e-9)
    assert terms.residual_at(Z, c) < 1e-9 and terms.residual_at(Z + 0.1, c) > 1e-3

    def objective(z):
        return energy(C, z.reshape(4, q) @ z.reshape(4, q).T, T)

    found = min(minimize(objective, z).fun for z in rng.normal(size=(3, 4 * q)))
    assert found == pytest.approx(formula, rel=1e-6, abs=1e-9)


@each_kernel
def test_prp_merge(kernel):
    """A prototype cut in two counts as one; one without weight does not count at all."""
    C, w = source(kernel), weights(12)
    T, Z = soft(w, 3, 1), cloud(3, 2, 2)
    one, two = build(C, 3, kernel, w), build(C, 4, kernel, w)
    value, pair = one.objective(Z, one.couple(T)), torch.cat([Z, Z[2:]])
    for share in (0.3, torch.linspace(0.1, 0.9, 12, dtype=torch.float64)[:, None]):
        assert two.objective(pair, two.couple(cut(T, share))) == pytest.approx(value, rel=1e-8)
    empty = torch.cat([T, torch.zeros_like(T[:, :1])], dim=1)
    for far in (0.0, 5.0):
        more = torch.cat([Z, Z.new_full((1, 2), far)])
        assert two.objective(more, two.couple(empty)) == pytest.approx(value, rel=1e-9)
    # where they do not share a place, a merge changes the value
    merged = torch.cat([T[:, :1] + T[:, 1:2], T[:, 2:]], dim=1)
    fewer = build(C, 2, kernel, T.sum(dim=1))
    assert fewer.objective(Z[1:], fewer.couple(merged)) != pytest.approx(value, rel=1e-6)


def cut(T: torch.Tensor, share) -> torch.Tensor:
    """The plan with its third column in two."""
    return torch.cat([T[:, :2], share * T[:, 2:], (1 - share) * T[:, 2:]], dim=1)


@pytest.mark.parametrize("factors", ["rows", "doubly_stochastic"])
def test_prp_merge_with_factors_of_rows_and_columns(factors):
    """A merge does not lower them, and changes nothing where all mean similarities are equal."""
    C, Z = source("student"), cloud(3, 2, 2)
    pair = torch.cat([Z, Z[2:]])
    uneven = torch.linspace(0.1, 0.9, 12, dtype=torch.float64)[:, None]
    even = torch.full((12,), 1 / 12).double()  # and C is doubly stochastic
    for w, same in ((weights(12), False), (even, True)):
        T = soft(w, 3, 1)
        whole = term_by_term(C, Z, T, "student", factors)
        half, parts = (
            term_by_term(C, pair, cut(T, share), "student", factors) for share in (0.3, uneven)
        )
        assert half == pytest.approx(whole, rel=1e-9)
        assert (parts == pytest.approx(whole, rel=1e-8)) == same and parts <= whole * (1 + 1e-8)


@each_kernel
@pytest.mark.parametrize(("first", "places"), [(1, 2), (4, 6)])  # one round, several
def test_plan_with_factors_that_follow(kernel, first, places):
    """The profiled objective falls from any plan, to a gap that its own derivative confirms."""
    C, w, Z = source(kernel), weights(12), cloud(4, 2, places)
    terms = build(C, 4, kernel, w)
    start = terms.couple(soft(w, 4, first))
    c = terms.update_plan(Z, start)
    value, gap = terms.objective(Z, c), terms.plan_gap(Z, c)
    assert value < terms.objective(Z, start)
    scale = terms.plan_problem(Z, c)[0].scale
    others = [soft(w, 4, 10 + seed) for seed in range(4)]
    for i, k in itertools.product(range(12), range(4)):  # one row, all of it to one place
        others.append(c.T.clone())
        others[-1][i] = hard_plan(torch.tensor([k]), w[i : i + 1], 4)[0]
    for S in others:  # one-sided differences
        near = terms.couple(c.T + 1e-5 * (S - c.T))
        assert terms.objective(Z, near) >= value - 1e-5 * gap * scale - 1e-9 * abs(value)


@pytest.mark.parametrize("kernel", ["student", "gram"])
def test_prp_distr_descent(kernel):
    """Each block lowers the objective, from either sequential method, and the best is kept."""
    C, ask = source(kernel, 24), {"kernel": kernel, "random_state": 0}
    first = drot.cluster_then_reduce(C, 5, **ask)
    second = drot.reduce_then_cluster(C, 5, on_failure="ignore", **ask)
    for start in (first, second):
        found = drot.distributional_reduction(C, 5, init=start, on_failure="ignore", **ask)
        assert found.values[0] == pytest.approx(start.objective, rel=1e-9)
        assert (np.diff(found.values) <= 1e-12).all() and found.objective <= start.objective
    names = ["reduce_then_cluster", "cluster_then_reduce"]
    joint, turned = (
        drot.distributional_reduction(C, 5, **more, **ask) for more in ({}, {"init": names})
    )
    assert joint.objective <= min(first.objective, second.objective)
    assert joint.converged and joint.residual <= 1e-3
    # whichever descent comes last
    assert joint.objective == min(joint.ends) == pytest.approx(turned.objective, rel=1e-9)


def test_baselines_are_what_they_say():
    """CDR: the best positions for its plan. DRC: means of a plain embedding."""
    C = affinity(24)
    first = drot.cluster_then_reduce(C, 4, tol=1e-6)
    assert len(first.ends) == 1
    terms = build(C, 4, "student")
    c = terms.couple(first.plan)
    again = terms.objective(terms.update_positions(first.Z + 0.05 * cloud(4, 2), c, 1e-7, 2000), c)
    assert again == pytest.approx(first.objective, rel=1e-6)
    X = cloud(24, 3)
    X = X - X.mean(dim=0)
    second = drot.reduce_then_cluster(drot.gram(X), 4, kernel="gram", clustering="kmeans")
    Y = drot.spectral.pca(X).Z
    for k in range(4):
        mean = Y[second.labels == k].mean(dim=0)
        torch.testing.assert_close(second.Z[k].abs(), mean.abs())
    for found in (first, second):
        assert bool(((found.plan > 0).sum(dim=1) == 1).all()) and found.n_iter == 0


def test_coot_term_by_term():
    """The objective is the four-index one; it falls; both marginals hold; Z is the best."""
    X = cloud(9, 4).numpy()
    found = drot.coot_clustering(X, 3, n_components=2, n_starts=3)
    assert all(b <= a + 1e-12 for a, b in itertools.pairwise(found.values))
    assert found.objective == min(found.ends) == found.values[-1]
    np.testing.assert_allclose(found.plan.sum(dim=0), 1 / 3)
    np.testing.assert_allclose(found.plan.sum(dim=1), 1 / 9)
    Z, T = found.Z.numpy(), found.plan.numpy()
    # all couplings of 4 features to 2 with mass 1/2 each: pairs, at a vertex
    values, best = [], []
    for pair in itertools.combinations(range(4), 2):
        S = np.eye(2)[[0 if j in pair else 1 for j in range(4)]] / 4
        rows = np.einsum("ijkl,jl->ik", (X[:, :, None, None] - Z) ** 2, S)
        values.append((rows * T).sum())
        each = np.repeat(rows, 3, axis=1)  # for these features each prototype takes three rows
        best.append(each[linear_sum_assignment(each)].mean())
    assert found.objective == pytest.approx(min(values), rel=1e-9)
    assert found.objective == pytest.approx(best[int(np.argmin(values))], rel=1e-9)


def test_effective_number_and_medoids():
    """Weights zero are no prototypes; the medoid is the point with most similarity."""
    C = affinity(15)
    found = drot.cluster_then_reduce(C, 4)
    T = torch.zeros(15, 3, dtype=torch.float64)
    T[:5, 0] = T[5:, 1] = 1 / 15
    fixed = replace(found, plan=T, Z=torch.zeros(3, 2), structure=torch.eye(3))
    assert fixed.n_used == 2
    assert fixed.effective_number == pytest.approx(3 * 2 ** (-2 / 3))
    sums = np.stack([C.numpy()[:, :5].sum(axis=1), C.numpy()[:, 5:].sum(axis=1)])
    assert fixed.medoids(C).tolist() == [*sums.argmax(axis=1).tolist(), -1]
    with pytest.raises(ValueError, match="compares 4 points and the plan has 15"):
        fixed.medoids(np.eye(4))


def test_scores():
    """Against scikit-learn where weights are equal, by loops where they are not."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(8, 2)), np.array([0, 0, 1, 1, 1, 2, 2, 2])
    plain = drot.metrics.weighted_silhouette(Z, np.eye(8) / 8, y)
    assert plain == pytest.approx(silhouette_score(Z, y))
    # weights: prototype 0 stands for two points of class 0 and one of class 1, 5 for two of 2
    T = np.zeros((11, 8))
    T[np.arange(8), np.arange(8)] = 1 / 11
    T[8, 0] = T[9, 0] = T[10, 5] = 1 / 11
    labels = np.append(y, [0, 1, 2])
    q = T.sum(axis=0)
    D = np.linalg.norm(Z[:, None] - Z, axis=2)
    score = 0.0
    for k in range(8):
        others = [(y == c) & (np.arange(8) != k) for c in range(3)]
        near = [q[some] @ D[k, some] / q[some].sum() for some in others]
        a = near.pop(y[k])
        score += q[k] * (min(near) - a) / max(a, min(near))
    assert drot.metrics.weighted_silhouette(Z, T, labels) == pytest.approx(score)
    assigned = T.argmax(axis=1)
    homogeneity = drot.metrics.prototype_homogeneity(T, labels)
    assert homogeneity == pytest.approx(homogeneity_score(labels, assigned))
