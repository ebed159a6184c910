"""Chapter 9: three priors on graphs, their posteriors, and the cross-entropies between them.

The oracle is enumeration: with three or four nodes every graph can be listed, and every mean,
normaliser, posterior and cross-entropy is a finite sum.
"""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from drot import coupling_loss, expected_graph, fuzzy_union
from drot.graphs import graph_log_normalizer, graph_log_probability, mrf_log_density
from plans import reach, squares

PRIORS = ("binary", "row", "edges")
OFF = {n: ~np.eye(n, dtype=bool) for n in (2, 3, 4)}
FEW = [(3, "binary"), (3, "row"), (4, "row"), (4, "edges")]  # of n = 4 there are 4096 binary ones
FEASIBLE = {(x, z) for x, z in itertools.product(PRIORS, PRIORS) if x in ("row", z)}


@functools.cache
def graphs(n: int, prior: str) -> np.ndarray:
    """Every graph that a prior allows, (m, n, n); for n <= 3 from all matrices there are."""
    m = n * (n - 1)
    if n <= 3 or prior == "binary":
        flat = np.array(list(itertools.product(range(n + 1 if n <= 3 else 2), repeat=m)))
    else:
        picks = itertools.combinations_with_replacement(range(m), n)
        flat = np.array([np.bincount(pick, minlength=m) for pick in picks])
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


def masses(n: int, prior: str, w: np.ndarray) -> np.ndarray:
    """What the definition gives each of ``graphs(n, prior)``, (m,), before it is normalised."""
    W = graphs(n, prior)
    products = (np.where(OFF[n], w, 1.0) ** W).prod(axis=(1, 2))
    return products / factorials(W) if prior == "edges" else products


def law(n: int, prior: str, w: np.ndarray) -> np.ndarray:
    return masses(n, prior, w) / masses(n, prior, w).sum()


def mean_graph(n: int, prior: str, w: np.ndarray) -> np.ndarray:
    return np.einsum("m,mij->ij", law(n, prior, w), graphs(n, prior))


def cross_entropy(W: np.ndarray, p: np.ndarray, K: np.ndarray, prior: str) -> float:
    """Minus the mean, under p, of the log probability of W: a sum over all graphs."""
    n = W.shape[1]
    chance = dict(zip(map(bytes, graphs(n, prior)), law(n, prior, K), strict=True))
    chances = np.array([chance.get(bytes(w), 0.0) for w in W])[p > 0]
    return float(-p[p > 0] @ np.log(chances)) if (chances > 0).all() else math.inf


def gaussian(X: np.ndarray) -> np.ndarray:
    return np.exp(-squares(X) / 2)


def kernel(seed: int, n: int) -> np.ndarray:
    """A Gaussian kernel matrix of random points; the diagonal is not 0, as in the papers."""
    return gaussian(np.random.default_rng(seed).normal(size=(n, 2)))


def rough(seed: int, n: int) -> np.ndarray:
    """Weights without any symmetry."""
    return np.random.default_rng(seed).uniform(0.1, 3, size=(n, n))


def means(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """X_M: each point at the mean of its component."""
    return np.stack([X[row].mean(axis=0) for row in reach(W)])


def log(w: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(w, dtype=float)).log()


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_lem_prior_laws(n, prior):
    """Normaliser, means and single probabilities of the three laws, by summing."""
    w, m = rough(0, n), n * (n - 1)
    w[0, 1] *= n < 3  # an edge that cannot be, where there are others
    W, total, p = graphs(n, prior), masses(n, prior, w).sum(), law(n, prior, w)
    off = np.where(OFF[n], w, 0)
    many, closed, mean = {
        "binary": (2**m, (1 + off).prod(), off / (1 + off)),
        "row": ((n - 1) ** n, off.sum(axis=1).prod(), off / off.sum(axis=1, keepdims=True)),
        "edges": (math.comb(m + n - 1, n), off.sum() ** n / math.factorial(n), n * off / off.sum()),
    }[prior]
    assert len(W) == many
    assert total == pytest.approx(closed, rel=1e-12)
    assert float(graph_log_normalizer(log(w), prior=prior)) == pytest.approx(math.log(total))
    for found in (mean_graph(n, prior, w), expected_graph(log(w), prior=prior)):
        np.testing.assert_allclose(found, mean, rtol=0, atol=1e-12)
    for shift in (-2000.0, 700.0) if prior != "binary" else ():  # a factor of all weights
        normalizer = float(graph_log_normalizer(log(w) + shift, prior=prior))
        assert normalizer == pytest.approx(math.log(total) + n * shift)
        np.testing.assert_allclose(expected_graph(log(w) + shift, prior=prior), mean, atol=1e-9)
    for g in np.random.default_rng(0).choice(len(W), size=50):
        found = math.exp(graph_log_probability(W[g].astype(float), log(w), prior=prior))
        assert found == pytest.approx(p[g], rel=1e-10)


@pytest.mark.parametrize("prior", PRIORS)
def test_rem_poisson(prior):
    """All three laws are independent Poisson numbers, on the condition that the prior states."""
    n, w = 4, rough(5, 4)
    W = graphs(n, prior)
    counts = scipy.stats.poisson(w[OFF[n]]).pmf(W[:, OFF[n]]).prod(axis=1)
    np.testing.assert_allclose(law(n, prior, w), counts / counts.sum(), rtol=1e-10)


def log_constants(W: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Laplacians, numbers of components R and log C_k of many graphs at once."""
    both, n = W + W.transpose(0, 2, 1), W.shape[1]
    L = np.einsum("mi,ij->mij", both.sum(axis=2), np.eye(n)) - both
    values = np.linalg.eigvalsh(L)
    R = (values < 1e-9).sum(axis=1)
    c_k = np.log(np.where(values < 1e-9, 1, values / (2 * math.pi))).sum(axis=1)
    return L, R, -p / 2 * c_k


def posterior(
    X: np.ndarray, prior: str, pi: np.ndarray, epsilon: float, alpha: float = 1.0
) -> np.ndarray:
    """Bayes' rule with all constants, for Gaussian fields with Gaussian means."""
    n, p = X.shape
    W = graphs(n, prior)
    L, R, c_k = log_constants(W, p)
    averages = np.stack([means(np.eye(n), w) for w in W])  # U U^T
    c_eps = R * p / 2 * math.log(2 * math.pi / epsilon)  # log C^eps
    edges = scipy.special.xlogy(W, pi).sum(axis=(1, 2))
    log_prior = alpha * (c_k + c_eps) + edges - (np.log(factorials(W)) if prior == "edges" else 0)
    # the columns of X are Gaussian with this precision between rows
    precision = L + epsilon * averages
    log_density = p / 2 * np.linalg.slogdet(precision / (2 * math.pi))[1]
    log_density -= np.einsum("ia,mij,ja->m", X, precision, X) / 2
    return scipy.special.softmax(log_prior + log_density)


@pytest.mark.parametrize(("n", "prior"), FEW)
def test_prp_limit_posterior(n, prior):
    """The posterior at epsilon, from Bayes' rule, tends to the law with weights pi K."""
    X, pi = np.random.default_rng(n).normal(size=(n, 2)) * 1.5 + 1, rough(n, n)
    pi[0, 1] = 0  # an edge that cannot be
    limit = law(n, prior, pi * gaussian(X))
    norms = np.array([(means(X, w) ** 2).sum() for w in graphs(n, prior)])
    kept = limit > 0
    assert kept.any() and not kept.all()
    gaps = []
    for epsilon in (1.0, 1e-1, 1e-2, 1e-3):
        found = posterior(X, prior, pi, epsilon)
        f = np.exp(-epsilon / 2 * norms)
        # part 1: the limit, reweighted
        np.testing.assert_allclose(found, limit * f / (limit @ f), rtol=1e-7, atol=1e-12)
        gaps.append(abs(found - limit).sum() / 2)  # total variation
        exact = limit @ abs(f - limit @ f) / (2 * (limit @ f))
        assert gaps[-1] == pytest.approx(exact, rel=1e-6, abs=1e-9)
        assert gaps[-1] <= math.tanh(epsilon * np.ptp(norms[kept]) / 8) + 1e-9
    spread = limit @ abs(norms - limit @ norms)
    assert gaps[-1] / 1e-3 == pytest.approx(spread / 4, rel=0.02, abs=1e-5)  # the rate
    connected = (n, prior) == (3, "row")  # one edge out of each of three nodes: one component
    assert (gaps[0] > 1e-4) != connected


@pytest.mark.parametrize(("n", "prior"), FEW)
def test_rem_improper(n, prior):
    """As epsilon vanishes the prior keeps the graphs with most components, at any alpha > 0."""
    most = {"binary": n, "row": n // 2, "edges": n - 1}[prior]
    _, R, c_k = log_constants(graphs(n, prior), 2)
    assert R.max() == most
    base = np.log(law(n, prior, np.ones((n, n))))
    for alpha, kept in ((1, most), (0.5, most), (-0.5, R.min())):
        p = scipy.special.softmax(alpha * (c_k + R * math.log(2 * math.pi / 1e-12)) + base)
        assert p[kept == R].sum() > 1 - 1e-4
    # posteriors, by Bayes' rule: below alpha = 1 the fewest components, above it the most
    X = np.random.default_rng(n).normal(size=(n, 2))
    for alpha, kept in ((0, R.min()), (0.5, R.min()), (2, most)):
        assert posterior(X, prior, rough(0, n), 1e-7, alpha)[kept == R].sum() > 0.99


def test_prp_support():
    """Five of nine pairs, by looking for each graph of the one among those of the other."""
    n, sets = 3, {prior: set(map(bytes, graphs(3, prior))) for prior in PRIORS}
    for x, z in itertools.product(PRIORS, PRIORS):
        value = cross_entropy(graphs(n, x), law(n, x, kernel(0, n)), kernel(1, n), z)
        assert math.isfinite(value) == (sets[x] <= sets[z]) == ((x, z) in FEASIBLE)
    either = {bytes(w | w.transpose()) for w in graphs(n, "binary")}
    assert [either <= sets[z] for z in PRIORS] == [True, False, False]
    # the loss refuses the pairs that a mean can betray: not edges and binary
    for x, z in (("binary", "row"), ("binary", "edges"), ("edges", "row")):
        with pytest.raises(ValueError, match="support"):
            coupling_loss(expected_graph(log(kernel(0, 4)), prior=x), log(kernel(1, 4)), prior=z)


@pytest.mark.parametrize(("x", "z"), sorted(FEASIBLE))
@pytest.mark.parametrize("n", [3, 4])
def test_prp_cross_entropy(n, x, z):
    """One formula for all pairs: mean against log kernel, a normaliser, and a constant."""
    w, K = rough(0, n), rough(1, n)
    W, p, P = graphs(n, x), law(n, x, w), mean_graph(n, x, w)
    value = cross_entropy(W, p, K, z)
    formula = -(P * np.log(K))[OFF[n]].sum() + float(graph_log_normalizer(log(K), prior=z))
    found = float(coupling_loss(torch.from_numpy(P), log(K), prior=z))
    if z == "edges":
        formula += p @ np.log(factorials(W))
        found += p @ np.log(factorials(W)) - math.log(math.factorial(n))
    assert [formula, found] == pytest.approx([value, value], rel=1e-10)


def test_prp_ce_sne():
    n, w, K = 4, rough(2, 4), rough(3, 4)
    P, Q, p = mean_graph(n, "row", w), mean_graph(n, "row", K), law(n, "row", w)
    value = cross_entropy(graphs(n, "row"), p, K, "row")
    assert value == pytest.approx(-scipy.special.xlogy(P, Q).sum(), rel=1e-10)
    divergence = scipy.stats.entropy(P.T + np.eye(n), Q.T + np.eye(n)).sum() * 2
    assert value == pytest.approx(divergence - p @ np.log(p), rel=1e-10)


def test_prp_ce_symmetric():
    """t-SNE's divergence is this cross-entropy over n, but for constants; log n! is one."""
    n, w, K = 4, rough(2, 4), kernel(3, 4)
    P, Q = mean_graph(n, "row", w), np.where(OFF[n], K, 0) / K[OFF[n]].sum()
    value = cross_entropy(graphs(n, "row"), law(n, "row", w), K, "edges")
    factor = math.log(math.factorial(n))
    assert value == pytest.approx(-scipy.special.xlogy(P, Q).sum() - factor, rel=1e-10)
    p = ((P + P.T) / (2 * n))[OFF[n]]
    kl = scipy.stats.entropy(p, Q[OFF[n]])
    assert kl == pytest.approx(value / n + factor / n + (p * np.log(p)).sum(), rel=1e-9)


def test_prp_ce_largevis():
    n, w, K = 4, rough(2, 4), kernel(3, 4)
    P, Q = mean_graph(n, "row", w), K / (1 + K)
    value = cross_entropy(graphs(n, "row"), law(n, "row", w), K, "binary")
    terms = P * np.log(Q) + (1 - P) * np.log(1 - Q)
    assert value == pytest.approx(-terms[OFF[n]].sum(), rel=1e-10)
    both = P + P.T
    halves = both * np.log(Q) + (2 - both) * np.log(1 - Q)
    assert value == pytest.approx(-halves[np.triu_indices(n, 1)].sum(), rel=1e-10)


def test_prp_ce_umap():
    """Of the union graph: its law, the cross-entropy, and the least that it can be."""
    n, w, K = 4, rough(2, 4), kernel(3, 4)
    W, p = graphs(n, "binary"), law(n, "binary", w)
    union = ((W + W.transpose(0, 2, 1)) >= 1).astype(int)
    P, upper = w / (1 + w), np.triu_indices(n, 1)
    tilde = (P + P.T - P * P.T)[upper]
    # the pairs are independent, one variable each
    bits, index = np.unique(union[:, *upper], axis=0, return_inverse=True)
    joint = np.bincount(index.ravel(), p)
    np.testing.assert_allclose(joint, np.where(bits, tilde, 1 - tilde).prod(axis=1), rtol=1e-9)
    np.testing.assert_allclose(fuzzy_union(P)[upper], tilde, rtol=1e-12)
    assert not fuzzy_union(P).diagonal().any()  # that of P is not 0
    value = cross_entropy(union, p, K, "binary")
    Q = (K / (1 + K))[upper]
    terms = tilde * np.log(Q) + (1 - tilde) * np.log(1 - Q)
    assert value == pytest.approx(-2 * terms.sum(), rel=1e-10)
    # at Q = P it is smallest: twice the entropy of the graph, so KL is not 0 but the entropy
    best = np.zeros((n, n))
    best[upper] = tilde / (1 - tilde)
    entropy, least = -joint @ np.log(joint), cross_entropy(union, p, best + best.T, "binary")
    assert least == pytest.approx(2 * entropy, rel=1e-9) and 1 < least < value


def test_prp_ce_chain():
    """Beyond SNE, t-SNE and LargeVis pay for out-degrees that need not be 1."""
    n, w, K = 4, rough(2, 4), rough(4, 4)
    W, p = graphs(n, "row"), law(n, "row", w)
    off = np.where(OFF[n], K, 0)
    rows, all_equal = off.sum(axis=1), math.factorial(n) / n**n
    closed = {"edges": math.factorial(n) * (rows / rows.sum()).prod()}
    closed["binary"] = rows.prod() / (1 + off).prod()
    for z, chance in closed.items():
        more = cross_entropy(W, p, K, z) - cross_entropy(W, p, K, "row")
        assert more == pytest.approx(-math.log(chance), rel=1e-9)
    assert -math.log(closed["edges"]) > -math.log(all_equal) + 1e-3  # unequal sums of rows
    # equal sums are enough, the entries need not be
    equal = 5 * mean_graph(n, "row", K)
    least = cross_entropy(W, p, equal, "edges") - cross_entropy(W, p, equal, "row")
    assert least == pytest.approx(-math.log(all_equal), rel=1e-9)


def test_prp_power_kernel():
    """On S_C the field of a power is homogeneous: no annulus ring counts less than the others."""
    X = np.random.default_rng(0).normal(size=(4, 2))
    for a, b, edges in ((1.0, 1.0, 1), (1.577, 0.895, 2), (0.5, 2.5, 3)):
        W = np.zeros((4, 4))
        for k in range(edges):
            W[k, (k + 1) % 4] += 1 + k

        def log_k(x, a=a, b=b):
            return -math.log(a) - b * x.square().sum(dim=1).log()

        one, two = (float(mrf_log_density(s * X, W, kernel=log_k)) for s in (1, 7.0))
        assert two - one == pytest.approx(-2 * b * W.sum() * math.log(7), rel=1e-10)


KERNELS = {  # log k of squared distances, and its slope by the points
    "gaussian": (lambda d2: -d2 / 2, lambda gap: -gap),
    "student": (lambda d2: -torch.log1p(d2), lambda gap: -2 * gap / (1 + gap @ gap)),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("x", "z"), sorted(FEASIBLE))
def test_prp_attraction_repulsion(x, z, name):
    """Forces from the two mean graphs, against autograd through the sum over all graphs."""
    n, (function, slope) = 3, KERNELS[name]
    W, p, P = graphs(n, x), law(n, x, rough(0, n)), mean_graph(n, x, rough(0, n))
    Z = torch.tensor(np.random.default_rng(2).normal(size=(n, 2)), requires_grad=True)
    log_k = function((Z[:, None] - Z).square().sum(dim=2))
    K = np.exp(log_k.detach().numpy())
    fields = (torch.from_numpy(graphs(n, z)) * log_k).sum(dim=(1, 2))  # log f_k(Z, W) for each
    if z == "edges":
        fields = fields - torch.from_numpy(np.log(factorials(graphs(n, z))))
    repulsion = torch.logsumexp(fields, dim=0)  # log of the marginal, eq. (5)
    attraction = -(torch.from_numpy(P) * log_k).sum()
    constant = p @ np.log(factorials(W)) if z == "edges" else 0.0
    found = (attraction + repulsion).item() + constant
    assert found == pytest.approx(cross_entropy(W, p, K, z), rel=1e-10)
    for part in (attraction, repulsion):
        (pull,) = torch.autograd.grad(part, Z, retain_graph=True)
        assert pull.abs().max() > 1e-2
        np.testing.assert_allclose(pull.sum(dim=0), 0, atol=1e-12)
    loss = coupling_loss(torch.from_numpy(P), log_k, prior=z)
    gradients = [
        torch.autograd.grad(whole, Z, retain_graph=True)[0]
        for whole in (attraction + repulsion, loss)
    ]
    surplus, points = P - mean_graph(n, z, K), Z.detach().numpy()
    by_hand = np.zeros((n, 2))
    for i, j in itertools.permutations(range(n), 2):
        by_hand[i] -= (surplus[i, j] + surplus[j, i]) * slope(points[i] - points[j])
    for gradient in gradients:
        np.testing.assert_allclose(gradient, by_hand, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_prp_outliers(name):
    """Bounds on the edges of a far point, against sums over all graphs."""
    n, cloud = 4, np.random.default_rng(4).normal(size=(3, 2))
    for rho in (2.0, 4.0, 8.0, 30.0):
        X = np.vstack([cloud, np.add(cloud.mean(axis=0), [rho + 3, 0])])
        K = KERNELS[name][0](torch.from_numpy(squares(X))).exp().numpy()
        kappa, S = K[-1, :-1].max(), K[:-1, :-1][OFF[n][:-1, :-1]].sum()
        touching = {}
        for prior in PRIORS:
            W, p = graphs(n, prior), law(n, prior, K)
            edges = W[:, -1].sum(axis=1) + W[:, :, -1].sum(axis=1)
            touching[prior] = p @ edges
        assert touching["binary"] <= 2 * (n - 1) * kappa
        assert touching["edges"] <= 2 * n * (n - 1) * kappa / S
        assert touching["row"] >= 1 - 1e-12
    if name == "gaussian":
        assert touching["binary"] < 1e-100 and touching["edges"] < 1e-100
        assert touching["row"] == pytest.approx(1, abs=1e-9)


def test_rem_ce_ee():
    """H_EE by enumeration: a divergence of two matrices of mass 1, times n, and constants."""
    n, w, K = 4, rough(0, 4), kernel(1, 4)
    W, p = graphs(n, "edges"), law(n, "edges", w)
    value = cross_entropy(W, p, K, "edges")
    P, Q = (A[OFF[n]] / A[OFF[n]].sum() for A in (w, K))
    repeats = p @ np.log(factorials(W))
    constant = repeats - math.log(math.factorial(n))
    assert value == pytest.approx(-n * (P * np.log(Q)).sum() + constant, rel=1e-10)
    assert repeats > 0.01  # the constant is not that of row graphs
    assert value == pytest.approx(n * scipy.stats.entropy(P, Q) - p @ np.log(p), rel=1e-10)
