"""Chapter 7: three priors on graphs, their posteriors, and the cross-entropies between them.

The oracle is enumeration: with three or four nodes every graph can be listed, and every mean,
normaliser, posterior and cross-entropy is a finite sum.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import torch
from drot import (
    coupling_loss,
    expected_graph,
    fuzzy_union,
    graph_log_normalizer,
    graph_log_probability,
    laplacian,
    mrf_log_density,
    spectral,
)

PRIORS = ("binary", "row", "edges")
OFF = {n: ~np.eye(n, dtype=bool) for n in (2, 3, 4)}
FEASIBLE = {
    ("binary", "binary"),
    ("row", "binary"),
    ("row", "row"),
    ("row", "edges"),
    ("edges", "edges"),
}


@functools.cache
def graphs(n: int, prior: str) -> np.ndarray:
    """Every graph that a prior allows, (m, n, n); for n <= 3 from all matrices there are."""
    if n <= 3:
        flat = np.array(list(itertools.product(range(n + 1), repeat=n * (n - 1))))
    elif prior == "binary":
        flat = np.array(list(itertools.product(range(2), repeat=n * (n - 1))))
    else:
        picks = itertools.combinations_with_replacement(range(n * (n - 1)), n)
        flat = np.array([np.bincount(pick, minlength=n * (n - 1)) for pick in picks])
    W = np.zeros((len(flat), n, n), dtype=int)
    W[:, OFF[n]] = flat
    allowed = {
        "binary": (W <= 1).all(axis=(1, 2)),
        "row": (W.sum(axis=2) == 1).all(axis=1),
        "edges": W.sum(axis=(1, 2)) == n,
    }[prior]
    return W[allowed]


def factorials(W: np.ndarray) -> np.ndarray:
    return np.vectorize(math.factorial)(W).prod(axis=(1, 2))


def law(n: int, prior: str, w: np.ndarray) -> np.ndarray:
    """Probabilities of ``graphs(n, prior)``, (m,), straight from the definition."""
    W = graphs(n, prior)
    weights = (np.where(OFF[n], w, 1.0) ** W).prod(axis=(1, 2)) / (
        factorials(W) if prior == "edges" else 1
    )
    return weights / weights.sum()


def cross_entropy(W: np.ndarray, p: np.ndarray, K: np.ndarray, prior: str) -> float:
    """Minus the mean, under p, of the log probability of W: a sum over all graphs."""
    index = {w.tobytes(): i for i, w in enumerate(graphs(W.shape[1], prior))}
    other = law(W.shape[1], prior, K)
    total = 0.0
    for w, mass in zip(W, p, strict=True):
        if mass > 0:
            chance = other[index[w.tobytes()]] if w.tobytes() in index else 0.0
            total -= mass * (math.log(chance) if chance > 0 else -math.inf)
    return total


def kernel(seed: int, n: int, scale: float = 1.0) -> np.ndarray:
    """A Gaussian kernel matrix of random points; the diagonal is not 0, as in the papers."""
    X = scale * np.random.default_rng(seed).normal(size=(n, 2))
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)


def student(Z: np.ndarray) -> np.ndarray:
    return 1 / (1 + ((Z[:, None] - Z) ** 2).sum(axis=2))


def rough(seed: int, n: int) -> np.ndarray:
    """Weights without any symmetry."""
    return np.random.default_rng(seed).uniform(0.1, 3, size=(n, n))


def components(W: np.ndarray) -> np.ndarray:
    """Labels by matrix powers: the first node that is reached."""
    step = (W + W.T > 0) | np.eye(len(W), dtype=bool)
    return (np.linalg.matrix_power(step.astype(int), len(W)) > 0).argmax(axis=1)


def number(W: np.ndarray) -> int:
    return len(set(components(W).tolist()))


def means(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """X_M: each point at the mean of its component."""
    labels = components(W)
    return np.stack([X[labels == label].mean(axis=0) for label in labels])


def log(w: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(w, dtype=float)).log()


# -------------------------------------------------------------------- def-priors, lem-prior-laws
def test_number_of_graphs():
    for n in (2, 3, 4):
        m = n * (n - 1)
        assert len(graphs(n, "binary")) == 2**m
        assert len(graphs(n, "row")) == (n - 1) ** n
        assert len(graphs(n, "edges")) == math.comb(m + n - 1, n)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("seed", range(2))
def test_lem_prior_laws(seed, n, prior):
    """Normaliser, means and single probabilities of the three laws, by summing over graphs."""
    w = rough(seed, n)
    W, p = graphs(n, prior), law(n, prior, w)
    weights = (np.where(OFF[n], w, 1.0) ** W).prod(axis=(1, 2))
    if prior == "edges":
        weights = weights / factorials(W)
    total = weights.sum()
    assert float(graph_log_normalizer(log(w), prior=prior)) == pytest.approx(math.log(total))
    off = np.where(OFF[n], w, 0)
    closed = {
        "binary": (1 + off).prod(),
        "row": off.sum(axis=1).prod(),
        "edges": off.sum() ** n / math.factorial(n),
    }[prior]
    assert total == pytest.approx(closed, rel=1e-12)

    mean = np.einsum("m,mij->ij", p, W)
    found = expected_graph(log(w), prior=prior).numpy()
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-12)
    closed = {
        "binary": off / (1 + off),
        "row": off / off.sum(axis=1, keepdims=True),
        "edges": n * off / off.sum(),
    }[prior]
    np.testing.assert_allclose(mean, closed, rtol=0, atol=1e-12)

    for m in np.random.default_rng(seed).choice(len(W), size=5):
        found = float(graph_log_probability(W[m].astype(float), log(w), prior=prior))
        assert found == pytest.approx(math.log(p[m]), abs=1e-10)
    if prior != "row":  # rows, or all pairs, by SciPy
        return
    for i in range(n):
        row = scipy.stats.multinomial(1, off[i] / off[i].sum())
        heads = W[:, i].argmax(axis=1)
        for j in range(n):
            assert p[heads == j].sum() == pytest.approx(row.pmf(np.eye(n, dtype=int)[j]))


@pytest.mark.parametrize("n", [3, 4])
def test_lem_prior_laws_are_bernoulli_and_multinomial(n):
    """Probabilities of whole graphs, from SciPy's distributions."""
    w = rough(7, n)
    off = np.where(OFF[n], w, 0)
    edges = scipy.stats.multinomial(n, off[OFF[n]] / off.sum())
    np.testing.assert_allclose(
        law(n, "edges", w), edges.pmf(graphs(n, "edges")[:, OFF[n]]), rtol=1e-10
    )
    single = scipy.stats.bernoulli(off[OFF[n]] / (1 + off[OFF[n]]))
    want = single.pmf(graphs(n, "binary")[:, OFF[n]]).prod(axis=1)
    np.testing.assert_allclose(law(n, "binary", w), want, rtol=1e-10)


@pytest.mark.parametrize("prior", PRIORS)
def test_lem_prior_laws_slope_of_the_normaliser(prior):
    """The log normaliser generates the mean: its slope in log w, by autograd and differences."""
    c = log(rough(3, 4))
    for i, j in ((0, 1), (2, 0), (3, 2)):
        step = torch.zeros(4, 4, dtype=torch.float64)
        step[i, j] = 1e-5
        up, down = (float(graph_log_normalizer(c + s * step, prior=prior)) for s in (1, -1))
        slope = (up - down) / 2e-5
        assert slope == pytest.approx(float(expected_graph(c, prior=prior)[i, j]), abs=1e-8)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("n", [3, 4])
def test_rem_poisson(n, prior):
    """All three laws are independent Poisson numbers, on the condition that the prior states."""
    w = rough(5, n)
    W = graphs(n, prior)
    counts = scipy.stats.poisson(w[OFF[n]]).pmf(W[:, OFF[n]]).prod(axis=1)
    np.testing.assert_allclose(law(n, prior, w), counts / counts.sum(), rtol=1e-10)


# --------------------------------------------------------------------------- prp-limit-posterior
def posterior(
    X: np.ndarray, prior: str, pi: np.ndarray, epsilon: float, alpha: float = 1.0
) -> np.ndarray:
    """Bayes' rule with all constants, for Gaussian fields with Gaussian means."""
    n, p = X.shape
    W = graphs(n, prior)
    both = W + W.transpose(0, 2, 1)
    L = np.einsum("mi,ij->mij", both.sum(axis=2), np.eye(n)) - both
    labels = np.array([components(w) for w in W])  # (m, n)
    same = labels[:, :, None] == labels[:, None]
    means_ = same / same.sum(axis=2, keepdims=True)  # U U^T
    R = np.array([len(set(label)) for label in labels.tolist()])
    values = np.linalg.eigvalsh(L)
    kept = np.arange(n) >= R[:, None]  # the others are 0
    c_k = -p / 2 * np.log(np.where(kept, values / (2 * math.pi), 1)).sum(axis=1)  # log C_k
    c_eps = R * p / 2 * math.log(2 * math.pi / epsilon)  # log C^eps
    with np.errstate(divide="ignore"):
        edges = np.where(W > 0, W * np.log(np.where(W > 0, pi, 1)), 0).sum(axis=(1, 2))
    log_prior = alpha * (c_k + c_eps) + edges - (np.log(factorials(W)) if prior == "edges" else 0)
    # the columns of X are Gaussian with this covariance between rows
    covariance = np.linalg.inv(L + epsilon * means_)
    _, log_det = np.linalg.slogdet(2 * math.pi * covariance)
    solved = np.linalg.solve(covariance, np.broadcast_to(X, (len(W), n, p)))
    log_density = -p / 2 * log_det - np.einsum("ia,mia->m", X, solved) / 2
    if len(W) < 100:  # and by SciPy
        normal = [scipy.stats.multivariate_normal(np.zeros(n), c) for c in covariance]
        np.testing.assert_allclose(log_density, [d.logpdf(X.T).sum() for d in normal], rtol=1e-7)
    logs = log_prior + log_density
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def variation(p: np.ndarray, q: np.ndarray) -> float:
    return float(abs(p - q).sum() / 2)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("n", [3, 4])
def test_prp_limit_posterior(n, prior):
    """The posterior at epsilon, from Bayes' rule, tends to the law with weights pi K."""
    rng = np.random.default_rng(n)
    X, pi = rng.normal(size=(n, 2)) * 1.5 + 1, rough(n, n)
    pi[0, 1] = 0  # an edge that cannot be
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
    limit = law(n, prior, pi * K)
    W = graphs(n, prior)
    norms = np.array([(means(X, w) ** 2).sum() for w in W])
    kept = limit > 0
    assert kept.any() and not kept.all()
    spread = limit @ abs(norms - limit @ norms)
    reach = norms[kept].max() - norms[kept].min()
    gaps = []
    for epsilon in (1.0, 1e-1, 1e-2, 1e-3):
        found = posterior(X, prior, pi, epsilon)
        f = np.exp(-epsilon / 2 * norms)
        # part 1: the limit, reweighted
        np.testing.assert_allclose(found, limit * f / (limit @ f), rtol=1e-7, atol=1e-12)
        gap = variation(found, limit)
        exact = limit @ abs(f - limit @ f) / (2 * (limit @ f))
        assert gap == pytest.approx(exact, rel=1e-6, abs=1e-9)
        assert gap <= math.tanh(epsilon * reach / 8) + 1e-9
        gaps.append(gap)
    assert gaps[-1] / 1e-3 == pytest.approx(spread / 4, rel=0.02, abs=1e-5)  # the rate
    connected = (n, prior) == (3, "row")  # one edge out of each of three nodes: one component
    assert (gaps[0] > 1e-4) != connected


def test_prp_limit_posterior_bound_is_sharp():
    """Two values of f, mixed in the ratio of their square roots, attain it."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        p = rng.dirichlet(np.full(6, 0.4))
        f = np.exp(rng.normal(size=6) * 2)
        gap = variation(p * f / (p @ f), p)
        assert gap == pytest.approx(p @ abs(f - p @ f) / (2 * (p @ f)))
        assert gap <= math.tanh(math.log(f.max() / f.min()) / 4) + 1e-12
    a, b = 0.3, 2.0
    share = math.sqrt(a) / (math.sqrt(a) + math.sqrt(b))  # of the value b: mean sqrt(a b)
    p, f = np.array([1 - share, share]), np.array([a, b])
    assert p @ f == pytest.approx(math.sqrt(a * b))
    assert variation(p * f / (p @ f), p) == pytest.approx(math.tanh(math.log(b / a) / 4))


@pytest.mark.parametrize("prior", PRIORS)
def test_prp_limit_posterior_fails_without_the_hypothesis(prior):
    """If f tends to a constant that depends on the graph, so does the limit."""
    n = 3
    W, p = graphs(n, prior), law(n, prior, rough(1, n))
    constants = np.array([float(number(w)) for w in W])  # f -> R, not 1
    moved = p * constants / (p @ constants)
    spread = [number(w) for w, mass in zip(W, p, strict=True) if mass > 0]
    assert (variation(moved, p) > 0.01) == (len(set(spread)) > 1)


@pytest.mark.parametrize("n", [3, 4])
def test_rem_improper(n):
    """As epsilon vanishes the prior keeps the graphs with most components, at any alpha > 0."""
    most = {"binary": n, "row": n // 2, "edges": n - 1}
    for prior in PRIORS:
        W = graphs(n, prior)
        parts = np.array([number(w) for w in W])
        assert parts.max() == most[prior]
        if prior == "binary":
            assert (parts == n).sum() == 1 and W[parts == n].sum() == 0  # the empty graph
        L = np.einsum("mi,ij->mij", (W + W.transpose(0, 2, 1)).sum(axis=2), np.eye(n))
        L = L - W - W.transpose(0, 2, 1)
        values = np.linalg.eigvalsh(L)
        c_k = np.where(values > 1e-9, -np.log(np.where(values > 1e-9, values, 1)), 0).sum(axis=1)
        c_k += (n - parts) * math.log(2 * math.pi)  # log C_k for p = 2
        base = law(n, prior, np.ones((n, n)))
        for alpha, kept in ((1, most[prior]), (0.5, most[prior]), (-0.5, parts.min())):
            logs = alpha * (c_k + parts * math.log(2 * math.pi / 1e-12)) + np.log(base)
            p = np.exp(logs - logs.max())
            p /= p.sum()
            assert p[parts == kept].sum() > 1 - 1e-4
        # posteriors, by Bayes' rule: below alpha = 1 the fewest components, above it the most
        X = np.random.default_rng(n).normal(size=(n, 2))
        for alpha, kept in ((0, parts.min()), (0.5, parts.min()), (2, most[prior])):
            p = posterior(X, prior, rough(0, n), 1e-7, alpha)
            assert p[parts == kept].sum() > 0.99
    assert len(set(parts.tolist())) > 1


# ----------------------------------------------------------------------------------- prp-support
@pytest.mark.parametrize("n", [2, 3])
def test_prp_support(n):
    """Five of nine pairs, by looking for each graph of the one among those of the other."""
    sets = {prior: {w.tobytes() for w in graphs(n, prior)} for prior in PRIORS}
    found = {(x, z) for x in PRIORS for z in PRIORS if sets[x] <= sets[z]}
    assert found == FEASIBLE
    for x, z in itertools.product(PRIORS, PRIORS):
        value = cross_entropy(graphs(n, x), law(n, x, kernel(0, n)), kernel(1, n), z)
        assert math.isfinite(value) == ((x, z) in FEASIBLE)
    either = {(w | w.transpose()).tobytes() for w in graphs(n, "binary")}
    assert [either <= sets[z] for z in PRIORS] == [True, False, False]


@pytest.mark.parametrize("x", PRIORS)
@pytest.mark.parametrize("z", PRIORS)
def test_prp_support_in_the_package(x, z):
    """The loss takes the five pairs, and refuses those others that a mean can betray."""
    P = expected_graph(log(kernel(0, 4)), prior=x)
    K = log(kernel(1, 4))
    if (x, z) in FEASIBLE:
        W = graphs(4, x)
        value = float(coupling_loss(P, K, prior=z))
        want = cross_entropy(W, law(4, x, kernel(0, 4)), kernel(1, 4), z)
        if z == "edges":
            want -= law(4, x, kernel(0, 4)) @ np.log(factorials(W)) - math.log(24)
        assert value == pytest.approx(want, rel=1e-10)
    elif (x, z) != ("edges", "binary"):  # its mean is that of a binary graph, too
        with pytest.raises(ValueError, match="support"):
            coupling_loss(P, K, prior=z)


def test_prp_support_with_zeros():
    """Where the kernel of Z vanishes the mean of X must, too."""
    K = kernel(1, 3)
    K[0, 1] = 0
    w = kernel(0, 3)
    assert cross_entropy(graphs(3, "row"), law(3, "row", w), K, "row") == math.inf
    w[0, 1] = 0
    for x, z in FEASIBLE:
        assert cross_entropy(graphs(3, x), law(3, x, kernel(0, 3)), K, z) == math.inf
        assert math.isfinite(cross_entropy(graphs(3, x), law(3, x, w), K, z))
    # an edge of the union may come from either direction
    W = graphs(3, "binary")
    either = np.maximum(W, W.transpose(0, 2, 1))
    assert cross_entropy(either, law(3, "binary", w), K, "binary") == math.inf
    w[1, 0] = 0
    assert math.isfinite(cross_entropy(either, law(3, "binary", w), K, "binary"))


# ------------------------------------------------------------------------------ prp-cross-entropy
@pytest.mark.parametrize(("x", "z"), sorted(FEASIBLE))
@pytest.mark.parametrize("n", [3, 4])
def test_prp_cross_entropy(n, x, z):
    """One formula for all pairs: mean against log kernel, a normaliser, and a constant."""
    w, K = rough(0, n), rough(1, n)
    W, p = graphs(n, x), law(n, x, w)
    P = np.einsum("m,mij->ij", p, W)
    value = cross_entropy(W, p, K, z)
    formula = -(P * np.log(K))[OFF[n]].sum() + float(graph_log_normalizer(log(K), prior=z))
    found = float(coupling_loss(torch.from_numpy(P), log(K), prior=z))
    if z == "edges":
        formula += p @ np.log(factorials(W))
        found += p @ np.log(factorials(W)) - math.log(math.factorial(n))
    assert value == pytest.approx(formula, rel=1e-10)
    assert value == pytest.approx(found, rel=1e-10)


def test_prp_cross_entropy_sees_only_the_mean():
    """Another law of the same mean: the edges of all rows in step, instead of independent."""
    n, K = 3, rough(1, 3)
    W = graphs(n, "row")
    half = law(n, "row", np.ones((n, n)))  # each edge with probability 1/2
    pair = np.array([[[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]]])
    for z in PRIORS:
        one = cross_entropy(W, half, K, z)
        other = cross_entropy(pair, np.array([0.5, 0.5]), K, z)
        assert one == pytest.approx(other, rel=1e-12)


# ---------------------------------------------------------------------------- the four objectives
def mean_row(w: np.ndarray) -> np.ndarray:
    off = np.where(np.eye(len(w)) > 0, 0, w)
    return off / off.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [3, 4])
def test_prp_ce_sne(n):
    w, K = rough(2, n), rough(3, n)
    P, Q = mean_row(w), mean_row(K)
    value = cross_entropy(graphs(n, "row"), law(n, "row", w), K, "row")
    assert value == pytest.approx(-(P * np.log(np.where(OFF[n], Q, 1))).sum(), rel=1e-10)
    assert float(coupling_loss(torch.from_numpy(P), log(K), prior="row")) == pytest.approx(value)
    entropy = -(law(n, "row", w) * np.log(law(n, "row", w))).sum()
    divergence = sum(scipy.stats.entropy(P[i][OFF[n][i]], Q[i][OFF[n][i]]) for i in range(n))
    assert value == pytest.approx(entropy + divergence, rel=1e-10)


@pytest.mark.parametrize("n", [3, 4])
def test_prp_ce_symmetric(n):
    """t-SNE's divergence is this cross-entropy over n, but for constants; log n! is one."""
    w, K = rough(2, n), kernel(3, n)
    P, Q = mean_row(w), np.where(OFF[n], K, 0) / K[OFF[n]].sum()
    value = cross_entropy(graphs(n, "row"), law(n, "row", w), K, "edges")
    sum_ = -(P * np.log(np.where(OFF[n], Q, 1))).sum()
    assert value == pytest.approx(sum_ - math.log(math.factorial(n)), rel=1e-10)
    found = float(coupling_loss(torch.from_numpy(P), log(K), prior="edges"))
    assert found == pytest.approx(sum_, rel=1e-10)

    p = ((P + P.T) / (2 * n))[OFF[n]]
    kl = scipy.stats.entropy(p, Q[OFF[n]])
    constant = math.log(math.factorial(n)) / n + (p * np.log(p)).sum()
    assert kl == pytest.approx(value / n + constant, rel=1e-9)


@pytest.mark.parametrize("n", [3, 4])
def test_prp_ce_largevis(n):
    w, K = rough(2, n), kernel(3, n)
    P, Q = mean_row(w), K / (1 + K)
    value = cross_entropy(graphs(n, "row"), law(n, "row", w), K, "binary")
    terms = P * np.log(Q) + (1 - P) * np.log(1 - Q)
    assert value == pytest.approx(-terms[OFF[n]].sum(), rel=1e-10)
    both = P + P.T
    upper = np.triu_indices(n, 1)
    halves = -(both * np.log(Q) + (2 - both) * np.log(1 - Q))[upper].sum()
    assert value == pytest.approx(halves, rel=1e-10)
    found = float(coupling_loss(torch.from_numpy(P), log(K), prior="binary"))
    assert found == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("n", [3, 4])
def test_prp_ce_umap(n):
    """Of the union graph: its law, the cross-entropy, and the least that it can be."""
    w, K = rough(2, n), kernel(3, n)
    W, p = graphs(n, "binary"), law(n, "binary", w)
    union = ((W + W.transpose(0, 2, 1)) >= 1).astype(int)
    P = w / (1 + w)
    upper = np.triu_indices(n, 1)
    tilde = (P + P.T - P * P.T)[upper]
    # the pairs are independent, one variable each
    bits = union[:, *upper]
    joint = {}
    for key, mass in zip(map(tuple, bits), p, strict=True):
        joint[key] = joint.get(key, 0) + mass
    assert (union == union.transpose(0, 2, 1)).all()
    for key, mass in joint.items():
        want = np.where(np.array(key) == 1, tilde, 1 - tilde).prod()
        assert mass == pytest.approx(want, rel=1e-9)
    found = fuzzy_union(np.where(OFF[n], P, 0))[upper]
    np.testing.assert_allclose(found, tilde, rtol=1e-12)

    value = cross_entropy(union, p, K, "binary")
    Q = (K / (1 + K))[upper]
    assert value == pytest.approx(
        -2 * (tilde * np.log(Q) + (1 - tilde) * np.log(1 - Q)).sum(), rel=1e-10
    )
    # at Q = P it is smallest: twice the entropy of the graph, so KL is not 0 but the entropy
    best = np.where(OFF[n], 1.0, 0.0)
    best[upper] = tilde / (1 - tilde)
    best = np.triu(best) + np.triu(best, 1).T
    entropy = -sum(mass * math.log(mass) for mass in joint.values())
    least = cross_entropy(union, p, best, "binary")
    assert least == pytest.approx(2 * entropy, rel=1e-9) and least < value
    assert entropy > 0.5


@pytest.mark.parametrize("n", [3, 4])
def test_prp_ce_chain(n):
    """Beyond SNE, t-SNE and LargeVis pay for out-degrees that need not be 1."""
    w, K = rough(2, n), rough(4, n)
    W, p = graphs(n, "row"), law(n, "row", w)
    base = cross_entropy(W, p, K, "row")
    for z in ("edges", "binary"):
        more = cross_entropy(W, p, K, z) - base
        ones = (graphs(n, z).sum(axis=2) == 1).all(axis=1)
        assert more == pytest.approx(-math.log(law(n, z, K)[ones].sum()), rel=1e-9)
        off = np.where(OFF[n], K, 0)
        rows = off.sum(axis=1)
        chance = {
            "edges": math.factorial(n) * (rows / rows.sum()).prod(),
            "binary": rows.prod() / (1 + off).prod(),
        }[z]
        assert more == pytest.approx(-math.log(chance), rel=1e-9)
        if z == "edges":
            assert more > -math.log(math.factorial(n) / n**n) + 1e-3  # unequal sums of rows
    # equal sums are enough, the entries need not be
    for equal in (np.ones((n, n)), 5 * mean_row(K)):
        least = cross_entropy(W, p, equal, "edges") - cross_entropy(W, p, equal, "row")
        assert least == pytest.approx(-math.log(math.factorial(n) / n**n), rel=1e-9)


# ------------------------------------------------------------------------------ prp-power-kernel
def test_prp_power_kernel():
    """On S_C the field of a power is homogeneous: no annulus ring counts less than the others."""
    rng = np.random.default_rng(0)
    for a, b, edges in ((1.0, 1.0, 1), (1.577, 0.895, 2), (0.5, 2.5, 3)):
        W = np.zeros((4, 4))
        for k in range(edges):
            W[k, (k + 1) % 4] += 1 + k
        X = rng.normal(size=(4, 2))

        def log_k(x, a=a, b=b):
            return -math.log(a) - b * x.square().sum(dim=1).log()

        one, two = (float(mrf_log_density(s * X, W, kernel=log_k)) for s in (1, 7.0))
        assert two - one == pytest.approx(-2 * b * W.sum() * math.log(7), rel=1e-10)
    # two points in the plane, one edge: mass of the rings between 2^k and 2^(k + 1)
    for b in (0.895, 1.0, 1.2):
        rings = []
        for k in range(-20, 20):
            r = np.linspace(2.0**k, 2.0 ** (k + 1), 4001)
            rings.append(np.trapezoid(2 * math.pi * r * r ** (-2 * b), r))
        ratio = np.array(rings[1:]) / rings[:-1]
        np.testing.assert_allclose(ratio, 2.0 ** (2 - 2 * b), rtol=1e-6)
        assert max(rings[0], rings[-1]) >= max(rings) * (1 - 1e-9)  # one end never fades


@pytest.mark.parametrize(("b", "proper"), [(0.895, False), (1.0, False), (1.3, True)])
def test_prp_power_kernel_guarded(b, proper):
    """With a guard only the far field counts: integrable exactly if 2 b w > q (m - 1)."""
    u = np.linspace(-20, 60, 40001)  # log radius, plane, two points, one edge
    for guard in (1e-3, 1.0):
        terms = 2 * math.pi * np.exp(2 * u - b * np.logaddexp(math.log(guard), 2 * u))
        tails = [np.trapezoid(terms[u > cut], u[u > cut]) for cut in (20, 40)]
        assert (tails[1] < 1e-4 * tails[0]) == proper


def partitions(items: list[int]):
    """All partitions into non-empty parts."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for k in range(len(rest)):
            yield [*rest[:k], [items[0], *rest[k]], *rest[k + 1 :]]


@pytest.mark.parametrize("b", [0.45, 0.5, 0.6, 0.72, 0.75, 0.895, 1.0])
def test_prp_power_kernel_cycles(b):
    """One edge out of each node, in the plane: short directed cycles, by trying all partitions."""
    seen = set()
    for W in graphs(4, "row"):
        labels = components(W)
        proper = True
        for label in set(labels.tolist()):
            for parts in partitions(np.flatnonzero(labels == label).tolist()):
                colour = {i: k for k, part in enumerate(parts) for i in part}
                cut = sum(W[i, j] for i in colour for j in colour if colour[i] != colour[j])
                if len(parts) > 1 and not 2 * b * cut > 2 * (len(parts) - 1):
                    proper = False
        cycles = (W.sum(axis=0) == 1).all()
        longest = np.bincount(labels).max()
        assert proper == (cycles and (b == 1 or longest < 1 / (1 - b)))
        seen.add(proper)
    assert seen == ({False} if b <= 0.5 else {False, True})


# ---------------------------------------------------------------------- prp-attraction-repulsion
KERNELS = {
    "gaussian": lambda d2: -d2 / 2,
    "student": lambda d2: -torch.log1p(d2),
}


def value_at(P: torch.Tensor, Z: torch.Tensor, prior: str, name: str) -> torch.Tensor:
    d2 = (Z[:, None] - Z).square().sum(dim=2)
    return coupling_loss(P, KERNELS[name](d2), prior=prior)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("x", "z"), sorted(FEASIBLE))
def test_prp_attraction_repulsion(x, z, name):
    """Forces from the two mean graphs, against autograd through the sum over all graphs."""
    n = 3
    rng = np.random.default_rng(2)
    W, p = graphs(n, x), law(n, x, rough(0, n))
    P = np.einsum("m,mij->ij", p, W)
    Z = torch.tensor(rng.normal(size=(n, 2)), requires_grad=True)
    d2 = (Z[:, None] - Z).square().sum(dim=2)
    log_k = KERNELS[name](d2)
    allowed = torch.from_numpy(graphs(n, z)).double()
    fields = (allowed * log_k).sum(dim=(1, 2))  # log f_k(Z, W) for each graph
    if z == "edges":
        fields = fields - torch.from_numpy(np.log(factorials(graphs(n, z))))
    repulsion = torch.logsumexp(fields, dim=0)  # log of the marginal, eq. (5)
    attraction = -(torch.from_numpy(P) * log_k).sum()
    value = cross_entropy(W, p, np.exp(log_k.detach().numpy()), z)
    constant = p @ np.log(factorials(W)) if z == "edges" else 0.0
    assert (attraction + repulsion).item() + constant == pytest.approx(value, rel=1e-10)

    for part in (attraction, repulsion):
        (pull,) = torch.autograd.grad(part, Z, retain_graph=True)
        assert pull.abs().max() > 1e-2
        np.testing.assert_allclose(pull.sum(dim=0), 0, atol=1e-12)
    (gradient,) = torch.autograd.grad(attraction + repulsion, Z)
    latent = np.einsum("m,mij->ij", law(n, z, np.exp(log_k.detach().numpy())), graphs(n, z))
    points = Z.detach().numpy()
    by_hand = np.zeros((n, 2))
    for i, j in itertools.permutations(range(n), 2):
        gap = points[i] - points[j]
        slope = -gap if name == "gaussian" else -2 * gap / (1 + gap @ gap)  # of log k
        by_hand[i] -= (P[i, j] + P[j, i] - latent[i, j] - latent[j, i]) * slope
    np.testing.assert_allclose(gradient, by_hand, rtol=0, atol=1e-12)
    (package,) = torch.autograd.grad(value_at(torch.from_numpy(P), Z, z, name), Z)
    np.testing.assert_allclose(package, by_hand, rtol=0, atol=1e-12)


def test_prp_attraction_repulsion_laplacian_eigenmaps():
    """Gaussian attraction is a Laplacian's quadratic form; constrained, its slow eigenvectors."""
    rng = np.random.default_rng(0)
    n, q = 9, 2
    P = mean_row(rough(3, n) ** 3)
    Z = rng.normal(size=(n, q))
    L = laplacian(P).numpy()
    attraction = sum(P[i, j] * ((Z[i] - Z[j]) ** 2).sum() / 2 for i in range(n) for j in range(n))
    assert attraction == pytest.approx(np.trace(Z.T @ L @ Z) / 2, rel=1e-12)
    values = np.linalg.eigvalsh(L)
    found = spectral.laplacian_eigenmaps(P + P.T, q, normalized=False).Z.numpy()
    basis = np.linalg.qr(found)[0]
    assert abs(basis.sum(axis=0)).max() < 1e-9
    assert np.trace(basis.T @ L @ basis) == pytest.approx(values[1 : q + 1].sum(), rel=1e-9)
    for _ in range(200):  # no other frame is lower
        frame = rng.normal(size=(n, q))
        frame = np.linalg.qr(frame - frame.mean(axis=0))[0]
        assert np.trace(frame.T @ L @ frame) >= values[1 : q + 1].sum() - 1e-9


@pytest.mark.parametrize("z", PRIORS)
def test_prp_attraction_repulsion_alone(z):
    """Attraction is least where all points coincide; there repulsion is largest."""
    rng = np.random.default_rng(1)
    P = torch.from_numpy(mean_row(rough(0, 4)))
    Z = rng.normal(size=(4, 2))
    pulls, pushes = [], []
    for scale in (0.0, 0.3, 1.0, 3.0, 100.0, 1e4):
        K = log(student(scale * Z))
        pushes.append(float(graph_log_normalizer(K, prior=z)))
        pulls.append(float(-(P * K).sum()))
    assert pulls[0] == 0 and (np.diff(pulls) > 0).all() and (np.diff(pushes) < 0).all()
    if z == "binary":
        assert 0 < pushes[-1] < 1e-5
    else:
        assert pushes[-1] < -20


# ------------------------------------------------------------------------- prp-outliers, rem-ce-ee
@pytest.mark.parametrize("name", ["gaussian", "student"])
@pytest.mark.parametrize("n", [3, 4])
def test_prp_outliers(n, name):
    """Bounds on the edges of a far point, against sums over all graphs."""
    rng = np.random.default_rng(n)
    cloud = rng.normal(size=(n - 1, 2))
    for rho in (2.0, 4.0, 8.0, 30.0):
        X = np.vstack([cloud, np.add(cloud.mean(axis=0), [rho + 3, 0])])
        gaps = np.linalg.norm(X[:-1] - X[-1], axis=1)
        k = (lambda d: np.exp(-d * d / 2)) if name == "gaussian" else (lambda d: 1 / (1 + d * d))
        K = k(np.linalg.norm(X[:, None] - X, axis=2))
        kappa, S = k(gaps.min()), K[:-1, :-1][~np.eye(n - 1, dtype=bool)].sum()
        touching = {}
        for prior in PRIORS:
            W, p = graphs(n, prior), law(n, prior, K)
            edges = W[:, -1].sum(axis=1) + W[:, :, -1].sum(axis=1)
            touching[prior] = p @ edges
            assert p @ (edges > 0) <= touching[prior]
            if prior == "binary":
                union = np.maximum(W, W.transpose(0, 2, 1))[:, -1].sum(axis=1)
                assert p @ union <= 2 * (n - 1) * kappa
        assert touching["binary"] <= 2 * (n - 1) * kappa
        assert touching["edges"] <= 2 * n * (n - 1) * kappa / S
        assert touching["row"] >= 1 - 1e-12
        alone = law(n, "edges", K) @ (
            (graphs(n, "edges")[:, -1].sum(axis=1) + graphs(n, "edges")[:, :, -1].sum(axis=1)) == 0
        )
        assert alone >= 1 - 2 * n * (n - 1) * kappa / S - 1e-12
    if name == "gaussian":
        assert touching["binary"] < 1e-100 and touching["edges"] < 1e-100
        assert touching["row"] == pytest.approx(1, abs=1e-9)


def test_prp_outliers_force():
    """Student's kernel: no force exceeds the weight that exerts it, and some attain it."""
    rng = np.random.default_rng(0)
    P = rough(0, 6)
    np.fill_diagonal(P, 0)
    for scale in (0.1, 1.0, 30.0):
        Z = torch.tensor(scale * rng.normal(size=(6, 2)), requires_grad=True)
        d2 = (Z[:, None] - Z).square().sum(dim=2)
        (torch.from_numpy(P) * torch.log1p(d2)).sum().backward()
        force = Z.grad.norm(dim=1).numpy()
        assert (force <= (P + P.T).sum(axis=1) + 1e-12).all()
    # the others in one place, at distance 1: the bound is attained
    Z = torch.zeros(6, 2)
    Z[0] = torch.tensor([0.6, 0.8])
    Z.requires_grad_()
    (torch.from_numpy(P) * torch.log1p((Z[:, None] - Z).square().sum(dim=2))).sum().backward()
    assert float(Z.grad[0].norm()) == pytest.approx((P + P.T)[0].sum(), rel=1e-6)
    found = scipy.optimize.minimize_scalar(lambda r: -2 * r / (1 + r * r), bounds=(0, 9))
    assert -found.fun == pytest.approx(1) and found.x == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("n", [3, 4])
def test_rem_ce_ee(n):
    """H_EE by enumeration: a divergence of two matrices of mass 1, times n, and constants."""
    w, K = rough(0, n), kernel(1, n)
    W, p = graphs(n, "edges"), law(n, "edges", w)
    value = cross_entropy(W, p, K, "edges")
    P = np.where(OFF[n], w, 0)[OFF[n]] / w[OFF[n]].sum()
    Q = K[OFF[n]] / K[OFF[n]].sum()
    constant = p @ np.log(factorials(W)) - math.log(math.factorial(n))
    assert value == pytest.approx(-n * (P * np.log(Q)).sum() + constant, rel=1e-10)
    assert p @ np.log(factorials(W)) > 0.01  # the constant is not that of row graphs
    entropy = -(p * np.log(p)).sum()
    assert value == pytest.approx(entropy + n * scipy.stats.entropy(P, Q), rel=1e-10)
