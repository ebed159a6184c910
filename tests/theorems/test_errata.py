"""Rows of the tables of ``book/errata.md``: the right column holds, the printed form does not."""

import inspect
import itertools
import math

import drot
import numpy as np
import pytest
import torch
from scipy.stats import wishart
from sklearn.manifold import spectral_embedding

EYE = torch.eye(3, dtype=torch.float64)


def test_err_sign():
    C = drot.sqeuclidean(np.random.default_rng(0).normal(size=(12, 2))).dense()
    affinity = drot.entropic_affinity(C, perplexity=3)
    right, printed = (torch.exp(sign * C / affinity.eps[:, None]) for sign in (-1, 1))
    torch.testing.assert_close(right / right.sum(dim=1)[:, None], affinity.plan, rtol=1e-8, atol=0)
    assert abs(right.sum(dim=1) / printed.sum(dim=1) - 1).min() > 0.1


def test_err_toy():
    """Batches of p_1, of p_2, and of p_2 with more trials."""
    X = drot.datasets.heteroscedastic_multinomials(n_high=10_000, random_state=0).X
    spread = [float(torch.pdist(part).square().mean()) for part in (X[:99], X[500:599], X[901:])]
    assert spread[1] / spread[2] == pytest.approx(10, rel=0.05)
    assert spread[0] / spread[1] == pytest.approx(1, rel=0.05)


def test_err_clustering_words():
    assert inspect.signature(spectral_embedding).parameters["norm_laplacian"].default is True
    printed = [  # Table 2: the symmetric entropic affinity, and the best of the other four
        *((85.9, 84.9), (28.5, 30.0), (50.6, 49.7), (95.9, 95.9), (81.1, 83.3), (77.0, 74.7)),
        *((79.3, 94.0), (49.5, 49.5), (17.4, 16.3), (44.2, 11.8), (71.6, 74.8), (96.6, 55.4)),
    ]
    assert len(printed) == 12 and sum(se >= best for se, best in printed) == 8
    assert sum(se > best for se, best in printed) == 6


def test_err_mrf_loops():
    printed = np.array([[1.0, -1.0], [0.0, 0.0]])  # of W, not of W + W^T, and one edge
    assert not np.array_equal(printed, printed.T)
    log_kernel = -drot.sqeuclidean([[0.0], [1.0], [3.0]]).dense()
    loops = torch.softmax(log_kernel, dim=1).diagonal()  # with k(0) = 1 among the choices
    assert (1 - loops).prod() < 0.1  # the probability that there is none
    assert drot.expected_graph(log_kernel, prior="row").diagonal().sum() == 0


def test_err_gamma():
    """Minus the mean log density, under the posterior of Z, of draws from that of X."""
    n, p, q, nu_x, nu_z = 5, 3, 1, 9, 24
    X = np.random.default_rng(0).normal(size=(n, p))
    X = X - X.mean(axis=0)
    posterior = wishart(nu_x + p, np.linalg.inv(np.eye(n) + X @ X.T))
    draws = np.moveaxis(posterior.rvs(400, random_state=0), 0, -1)
    d, V = np.linalg.eigh(X @ X.T)

    def value(gamma: float, scale: float = 1.0) -> float:
        Z = scale * V[:, -1:] * math.sqrt(max(0, gamma * (1 + d[-1]) - 1))
        return -wishart(nu_z + q, np.linalg.inv(np.eye(n) + Z @ Z.T)).logpdf(draws).mean()

    right, printed = (nu_z + q) / (nu_x + p), (nu_x + q) / (nu_z + p)
    scales = np.linspace(0.5, 1.5, 11)
    values = [value(right, scale) for scale in scales]
    assert scales[np.argmin(values)] == pytest.approx(1, abs=0.11)  # up to Monte Carlo error
    assert value(printed) > min(values) + 1
    # a column far from the origin: the map is not PCA's
    moved = X + np.array([0, 0, 100])
    maps = [np.linalg.eigh(Y @ Y.T)[1][:, -1] for Y in (moved, X)]
    assert abs(maps[0] @ maps[1]) < 0.5 < abs(maps[0].sum()) / math.sqrt(n)


@pytest.mark.parametrize(("epsilon", "d_k"), [(0.02, 20.0), (0.5, 3.0), (2.0, 3.0)])
def test_err_epsilon(epsilon, d_k):
    lengths = np.linspace(0, 60, 60_001)
    trace, volume = lengths / (1 + epsilon * d_k), np.log(1 + epsilon * lengths)
    right, printed = (lengths[np.argmin(a * trace - volume)] for a in (epsilon, 1))
    assert right == pytest.approx(d_k, abs=1e-2)
    assert printed == pytest.approx(max(0, epsilon * d_k + 1 - 1 / epsilon), abs=1e-2)
    assert abs(printed - d_k) > 0.4


def test_err_student():
    """Without equivariance, C_Z(Z) = a relabelled C_X for every Z: reduction costs, GW nothing."""
    C_X = torch.exp(-drot.sqeuclidean([[0.0], [1.0], [3.0]]).dense())
    swap = [1, 0, 2]
    C_Z, plain = C_X[swap][:, swap], EYE / 3
    centre = EYE - 1 / 3
    for matrix in (C_X, C_Z.log()):  # the other hypotheses
        assert torch.linalg.eigvalsh(centre @ matrix @ centre).min() > -1e-12
    assert C_X.min() > 0
    assert drot.gw_objective(C_X, C_Z, plain, loss="kl") > 0.02
    assert abs(drot.gw_objective(C_X, C_Z, plain[swap], loss="kl")) < 1e-12


def test_err_connected():
    cloud = np.random.default_rng(0).normal(size=(60, 2)) * [3, 1]
    cloud -= cloud.mean(axis=0)
    equal = drot.ccpca(cloud, np.zeros((60, 60)), n_samples=600)  # all pairs weigh the same
    size = float(equal.Z.norm()) / np.linalg.norm(cloud)
    expected = float(equal.n_connected.double().mean())
    assert size / ((expected - 1) / 59) == pytest.approx(1, abs=0.1) and size < 0.03
    U = np.ones((60, 1)) / math.sqrt(60)  # of a connected graph
    assert abs(U @ U.T @ cloud).max() < 1e-12


def test_err_crossing():
    """In scikit-learn's digits edges cross more often than pairs are joined."""
    source = drot.datasets.digits()
    C = drot.sqeuclidean(source.X)
    rows = drot.entropic_affinity(C, perplexity=30, diagonal="drop")
    apart, shares = source.y[:, None] != source.y, []
    for graph in drot.sample_graphs(rows, 5):
        part = drot.connected_components(graph).labels
        across = (source.y[graph.edges[0]] != source.y[graph.edges[1]]).double().mean()
        shares.append((100 * across, 100 * (part[:, None] == part)[apart].double().mean()))
    edges, pairs = np.mean(shares, axis=0).tolist()
    assert 4 < edges < 20 and pairs < min(6, edges / 2)


def test_err_infinite_variance():
    """e^(-epsilon x^2) with a spike on |x| < epsilon, of epsilon^-2 times its mass."""
    variances = []
    for epsilon in (1e-1, 1e-2, 1e-3):
        share = 1 / (1 + epsilon**-2)  # of the part e^(-epsilon x^2)
        variances.append(share / (2 * epsilon) + (1 - share) * epsilon**2 / 3)
    assert variances[0] < 0.06 and variances[2] < variances[1] / 5 < variances[0] / 25


def test_err_ties_rank():
    line = np.arange(6.0)[:, None]
    gaps = (line - line.T) ** 2
    rank = (gaps[:, None, :] < gaps[:, :, None]).sum(axis=2)
    assert (rank == 1).sum() > 6  # at K = 1, members of all neighbourhoods: Q is above 1
    assert drot.neighborhood_preservation(line, line, 1) == 1


def test_err_sampling_time():
    for n in (10, 100):
        graph = drot.sample_graph(torch.zeros(n, n).double(), prior="edges", random_state=0)
        assert graph.weights.sum() == n


def test_err_isomap():
    line = np.array([0.0, 1.0, 3.0, 6.0])
    geodesic, H, centred = abs(line[:, None] - line), np.eye(4) - 0.25, line - line.mean()
    np.testing.assert_allclose(-H @ geodesic**2 @ H / 2, np.outer(centred, centred), atol=1e-12)
    assert np.linalg.matrix_rank(-H @ geodesic @ H / 2, tol=1e-6) == 3  # not the line


def test_err_sne_input():
    rows = drot.entropic_affinity(drot.sqeuclidean([[0.0], [1.0], [3.0]]), perplexity=2)
    assert abs(rows.plan.sum(dim=1) - 1).max() < 1e-9
    assert abs(drot.symmetrize(rows).sum(dim=1) - 1).max() > 0.01


def test_err_larger():
    """Over the set of the one matrix I, which is closed under permutations."""
    swap, identity = torch.eye(2).flip(0).double(), torch.eye(2).double()
    left = drot.gw_objective(swap, identity, identity / 2)
    right = drot.gw_objective(swap, identity, torch.full((2, 2), 0.25).double())
    assert left == pytest.approx(1) and right == pytest.approx(0.5)


def test_err_weak():
    """A place without weight, whose row no M C_c M^T with fewer points can have."""
    C, C_bar = torch.ones(2, 2).double(), torch.tensor([[1.0, 5.0], [5.0, 7.0]]).double()
    found = drot.semi_relaxed_gw(C, C_bar)
    assert found.objective == 0 and found.weights.tolist() == [1, 0]
    assert not torch.equal(C_bar[0], C_bar[1])


def test_err_losses():
    a, b = np.random.default_rng(0).uniform(0.1, 2, size=(2, 1000))
    np.testing.assert_allclose(a**2 + b**2 - a * 2 * b, (a - b) ** 2, atol=1e-12)
    factored = (a * np.log(a) - a) + b - a * np.log(b)
    np.testing.assert_allclose(factored, a * np.log(a / b) - a + b, atol=1e-12)
    short = [float((a * np.log(a / (scale * b))).sum()) for scale in (1, 10, 100)]
    assert factored.min() >= 0 and short[0] > short[1] > short[2] < 0


def test_err_ce_constants():
    """The attraction as a trace, for any P; - log n! is asked in ``test_prp_ce_symmetric``."""
    d = torch.tensor([[0.0], [0.7], [2.0], [4.5]]).double()
    log_K = -drot.sqeuclidean(d).dense() / 2
    P = drot.expected_graph(0.5 * log_K, prior="row")
    S = (P + P.T) / 2
    whole = float(torch.trace(d.T @ drot.laplacian(P) @ d))  # of P + P^T
    definition = float(torch.trace(d.T @ (S.sum(dim=1).diag() - S) @ d))
    assert -float((P * log_K).sum()) == pytest.approx(whole / 2) == pytest.approx(definition)


def test_err_combinations():
    """The probability of an edge at which the binary cross-entropy is least."""
    q = np.linspace(0.001, 0.999, 999)
    for p in (0.4, 0.4 + 0.4 - 0.4 * 0.4):  # B, B; and the union of two, as in UMAP
        assert q[np.argmin(-p * np.log(q) - (1 - p) * np.log(1 - q))] == pytest.approx(p)


def test_err_normaliser():
    """Z and its mirror image have the same value; half way between them it is larger."""
    Z = np.array([[-1.0], [1.0]])
    at = [float(torch.exp(-drot.sqeuclidean(z).dense()).sum()) for z in (Z, -Z, 0 * Z)]
    assert at[0] == at[1] < at[2]


def test_err_cpd_affinity():
    cost, H = drot.sqeuclidean([[0.0], [1], [2], [5]]), np.eye(4) - 0.25
    P = drot.symmetrize(drot.entropic_affinity(cost, perplexity=3.9))
    assert np.linalg.eigvalsh(H @ P.numpy() @ H).min() < -5e-4
    v = np.array([1.0, -2, 1, 0])
    assert v @ P.numpy() @ v == pytest.approx(-3.54e-3, abs=1e-5)


def test_err_eta():
    identity = torch.eye(12, dtype=torch.float64)  # costs 0, and no plan is cheaper
    # at eta = 6, in the printed range, it is feasible and not saturated
    assert drot.row_entropy(identity).sum() == 12 > 6
    constant = torch.full_like(identity, 1 / 12)
    assert abs(drot.row_entropy(constant).sum() - 12 * (math.log(12) + 1)) < 1e-9


def test_err_mrf_markov():
    L = drot.laplacian([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]]).numpy()  # 0 - 1 - 2

    def ends_given_middle(covariance: np.ndarray) -> float:
        """Correlation of points 0 and 2 given point 1."""
        left = covariance - np.outer(covariance[:, 1], covariance[1]) / covariance[1, 1]
        return left[0, 2] / math.sqrt(left[0, 0] * left[2, 2])

    assert ends_given_middle(np.linalg.pinv(L)) == pytest.approx(-1, abs=1e-9)  # centred
    diffuse = np.linalg.inv(L + 1e-6 * np.ones((3, 3)) / 3)
    assert abs(ends_given_middle(diffuse)) < 1e-5


def test_err_odds():
    squared = drot.sqeuclidean([[0.0], [0.7], [2.0], [4.5]]).dense()
    off = ~torch.eye(4, dtype=torch.bool)
    Q = drot.expected_graph(-torch.log1p(squared), prior="binary")
    torch.testing.assert_close(Q[off], 1 / (2 + squared[off]))  # Student
    Q = drot.expected_graph(-(squared + torch.eye(4)).log(), prior="binary")
    torch.testing.assert_close(Q[off], 1 / (1 + squared[off]))  # LargeVis
    # integral of 1 / r^(2 b) in dimension q, between radii: grows at one end or the other
    r = torch.logspace(-8, 8, 1601, dtype=torch.float64)
    for q, b in itertools.product((1, 2, 3), (0.4, 0.895, 1.0, 1.5, 2.0)):
        f = r ** (q - 2 * b)  # per log radius
        inner = torch.trapezoid(f[400:1201], r.log()[400:1201])
        assert torch.trapezoid(f, r.log()) > 1.9 * inner
    membership = drot.umap_membership(squared, n_neighbors=3).plan
    assert (membership.max(dim=1).values == 1).all()  # odds 1 / 0


def test_err_zero_columns():
    h, m = np.array([0.2, 0.3, 0.5]), 10
    Q, P = np.stack([0 * h, h], axis=1), np.stack([h / 2, h / 2], axis=1)
    printed = np.stack([0 * h + 1 / m, Q[:, 1]], axis=1)
    repaired = (1 - 1 / m) * Q + P / m
    np.testing.assert_allclose(printed.sum(axis=1), h + 1 / m)
    np.testing.assert_allclose(repaired.sum(axis=1), h)
    assert (repaired.sum(axis=0) > 0).all()


def test_err_rank():
    """Of rank one, and not an inner product: z z^T has a diagonal >= 0."""
    C = -np.ones((2, 2))
    assert drot.gw_objective(C, C, np.eye(2) / 2) == 0
    grid = itertools.product(np.linspace(-2, 2, 21), repeat=2)
    assert min(drot.gw_objective(C, np.outer(z, z), np.eye(2) / 2) for z in grid) > 0.9
