"""Chapter 10: PCA as a coupling of precisions, its landscape, components and their averages."""

import itertools
import math

import numpy as np
import pytest
import torch
from drot import spectral
from drot.graphs.graph import Graph, connected_components
from drot.graphs.priors import sample_graphs
from drot.metrics import neighborhood_curve, neighborhood_preservation
from drot.spectral.connected import ccpca
from drot.spectral.principal import precision_coupling_loss, precision_coupling_optimum
from plans import reach, same_points
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, wishart
from sklearn.decomposition import PCA


def cloud(n: int = 12, p: int = 5, seed: int = 0) -> np.ndarray:
    """Centred, with eigenvalues of the Gram matrix well apart."""
    X = np.random.default_rng(seed).normal(size=(n, p)) * np.linspace(0.3, 1.5, p)
    return X - X.mean(axis=0)


def loss(X: np.ndarray, Z: np.ndarray, gamma: float) -> float:
    """F_gamma as the text writes it, in NumPy, n x n and all."""
    eye = np.eye(len(X))
    precision = np.linalg.inv(eye + X @ X.T)
    return np.trace(Z.T @ precision @ Z) - gamma * np.linalg.slogdet(eye + Z @ Z.T)[1]


def value_and_slope(X, q: int, gamma: float):
    """F and its gradient by autograd, of a flat array."""

    def function(z):
        Z = torch.tensor(z.reshape(len(X), q), requires_grad=True)
        value = precision_coupling_loss(X, Z, gamma=gamma)
        return value.item(), torch.autograd.grad(value, Z)[0].numpy().ravel()

    return function


TIGHT = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 0, "gtol": 1e-12}


def eigen(X) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of the Gram matrix, largest first, and their vectors."""
    d, V = np.linalg.eigh(X @ X.T)
    return d[::-1].copy(), V[:, ::-1].copy()


def test_lem_wishart_posterior():
    """Prior times likelihood is the posterior up to a constant, at random precisions."""
    X = cloud(6, 3)
    n, p = X.shape
    nu = n + 2
    posterior = wishart(df=nu + p, scale=np.linalg.inv(np.eye(n) + X @ X.T))
    prior = wishart(df=nu, scale=np.eye(n))
    gaps = []
    for theta in prior.rvs(20, random_state=0):
        columns = multivariate_normal(np.zeros(n), np.linalg.inv(theta))
        gaps.append(prior.logpdf(theta) + columns.logpdf(X.T).sum() - posterior.logpdf(theta))
    assert np.std(gaps) < 1e-8 * abs(np.mean(gaps))
    np.testing.assert_allclose(posterior.mean(), (nu + p) * np.linalg.inv(np.eye(n) + X @ X.T))


@pytest.mark.parametrize("gamma", [0.35, 1.0, 2.5])
def test_thm_pca_coupling(gamma):
    """Descent from random starts ends at the formula, whatever the start; nothing is lower."""
    X, q, rng = cloud(), 2, np.random.default_rng(1)
    best = precision_coupling_optimum(X, q, gamma=gamma).numpy()
    (d, V), function = eigen(X), value_and_slope(X, q, gamma)
    lengths = np.sqrt(np.maximum(0, gamma * (1 + d[:q]) - 1))
    same_points(best, V[:, :q] * lengths, atol=1e-10)
    for scale in (1e-2, 1.0, 10.0):
        start = scale * rng.normal(size=best.size)
        z = minimize(function, start, jac=True, method="L-BFGS-B", options=TIGHT).x
        same_points(z.reshape(-1, q), best, atol=2e-4)
        found, least = (loss(X, Z, gamma) for Z in (z.reshape(-1, q), best))
        assert found == pytest.approx(least, abs=1e-9)
    assert abs(function(best.ravel())[1]).max() < 1e-10
    for _ in range(50):
        other = rng.normal(size=best.shape) * 10 ** rng.uniform(-2, 1)
        assert loss(X, other, gamma) > least


def test_thm_pca_coupling_is_pca():
    """gamma = 1: scikit-learn's principal components, in whatever unit X comes."""
    for unit in (1e-2, 1.0, 1e2):
        X = unit * (cloud(30, 6) + 7)
        found = precision_coupling_optimum(X, 3).numpy()
        same_points(found, PCA(3).fit_transform(X), 1e-9 * unit**2)
    # of a tie any choice of eigenvectors is as good, critical and a minimum
    frame = np.random.default_rng(0).normal(size=(9, 3))
    X = np.linalg.qr(frame - frame.mean(axis=0))[0] * [3, 2, 2]  # d = 9, 4, 4
    best = precision_coupling_loss(X, precision_coupling_optimum(X, 2)).item()
    for turn in (0.0, 0.7, 2.0):
        Z = X @ [[1, 0], [0, math.cos(turn)], [0, math.sin(turn)]]
        value, slope = value_and_slope(X, 2, 1.0)(Z)
        assert abs(slope).max() < 1e-12 and value == pytest.approx(best, rel=1e-12)
    # another gamma: no multiple of it
    X = cloud(30, 6)
    shrunk, plain = (precision_coupling_optimum(X, 2, gamma=g).norm(dim=0) for g in (0.2, 1.0))
    assert (shrunk / plain).diff().abs() > 1e-3
    # directions with d below 1 / gamma - 1 vanish
    assert precision_coupling_optimum(1e-3 * X, 2, gamma=0.9).abs().max() == 0


@pytest.mark.parametrize("gamma", [0.8, 1.0])
def test_prp_pca_landscape(gamma):
    """Every other critical point goes down somewhere: the Hessian has a negative eigenvalue."""
    X, q = cloud(8, 4), 2
    (d, V), n = eigen(X), 8

    def function(z):
        return precision_coupling_loss(X, z.reshape(n, q), gamma=gamma)

    usable = [k for k in range(4) if gamma * (1 + d[k]) > 1]
    assert len(usable) >= 3
    for size in range(q + 1):
        for chosen in itertools.combinations(usable, size):
            Z = np.zeros((n, q))
            Z[:, :size] = V[:, chosen] * np.sqrt(gamma * (1 + d[list(chosen)]) - 1)
            assert abs(value_and_slope(X, q, gamma)(Z)[1]).max() < 1e-10  # critical
            hessian = torch.autograd.functional.hessian(function, torch.tensor(Z.ravel()))
            lowest = torch.linalg.eigvalsh(hessian)[0].item()
            if chosen == tuple(usable[:q]):
                assert lowest > -1e-9  # the minimum; rotations cost nothing
            else:
                assert lowest < -1e-2
    # and a point off that list is not critical
    assert abs(value_and_slope(X, q, gamma)(V[:, :q] * 0.9 * np.sqrt(d[:q]))[1]).max() > 1e-2


def projection(edges, n: int) -> np.ndarray:
    """U U^T: 1 / size of the component where two points share one."""
    W = np.zeros((n, n))
    W[tuple(np.array(edges).T)] = 1
    same = reach(W).astype(float)
    return same / same.sum(axis=1, keepdims=True)


GRAPH = [(0, 1), (1, 2), (3, 4), (5, 6), (6, 7), (7, 5), (8, 9)]  # components of 3, 2, 3, 2


@pytest.mark.parametrize("epsilon", [1e-2, 1.0, 30.0])
def test_cor_ccpca(epsilon):
    """Descent on the coupling of component means ends at their PCA, for every epsilon."""
    n, q = 10, 2
    X = cloud(n, 4, seed=5)
    U = np.sqrt(np.unique(projection(GRAPH, n), axis=0)).T  # (n, R)
    R = U.shape[1]
    edges, weights = torch.tensor(GRAPH).T, torch.ones(len(GRAPH))
    parts = connected_components(Graph(n=n, edges=edges, weights=weights))
    np.testing.assert_allclose(parts.mean(X), U @ U.T @ X, atol=1e-12)
    # the cross-entropy itself, over nu + p: columns of U^T X have precision epsilon Theta
    mean_theta = np.linalg.inv(np.eye(R) + epsilon * U.T @ X @ X.T @ U)

    def function(z):
        Y = z.reshape(R, q)
        inner = np.eye(R) + epsilon * Y @ Y.T
        value = (np.trace(mean_theta @ inner) - np.linalg.slogdet(inner)[1]) / 2
        return value, (epsilon * (mean_theta @ Y - np.linalg.solve(inner, Y))).ravel()

    start = np.random.default_rng(0).normal(size=R * q)
    found = minimize(function, start, jac=True, method="L-BFGS-B", options=TIGHT).x
    same_points(U @ found.reshape(R, q), spectral.pca(U @ U.T @ X, q).Z.numpy(), atol=1e-3)


def all_row_graphs(weights: np.ndarray):
    """Every graph with one edge out of each point, and its probability."""
    n = len(weights)
    shares = weights / weights.sum(axis=1, keepdims=True)
    for heads in itertools.product(*([j for j in range(n) if j != i] for i in range(n))):
        yield list(enumerate(heads)), math.prod(shares[i, j] for i, j in enumerate(heads))


def mean_operator(draws, n: int) -> tuple[np.ndarray, float]:
    """E U U^T and E R over graphs and their probabilities."""
    M, expected = np.zeros((n, n)), 0.0
    for edges, weight in draws:
        P = projection(edges, n)
        M += weight * P
        expected += weight * len(np.unique(P, axis=0))
    return M, expected


def test_prp_mean_operator():
    """Averages of projections: symmetric, doubly stochastic, spectrum in [0, 1], trace E R."""
    n, X = 5, cloud(5, 3)
    weights = np.random.default_rng(0).uniform(size=(n, n)) ** 3
    M, expected = mean_operator(all_row_graphs(weights * (1 - np.eye(n))), n)
    np.testing.assert_allclose(M, M.T, atol=1e-14)
    np.testing.assert_allclose(M.sum(axis=1), 1)
    values = np.linalg.eigvalsh(M)
    assert M.min() > 0 and values[0] >= -1e-12 and values[-1] == pytest.approx(1)
    assert np.trace(M) == pytest.approx(expected)
    # all weights equal: a multiple of the centred cloud
    M, expected = mean_operator(all_row_graphs(1 - np.eye(n)), n)
    np.testing.assert_allclose(M @ X, (expected - 1) / (n - 1) * X, atol=1e-12)
    # no mass between two groups: none in M
    weights = np.ones((n, n)) - np.eye(n)
    weights[:2, 2:] = weights[2:, :2] = 0
    assert abs(mean_operator(all_row_graphs(weights), n)[0][:2, 2:]).max() == 0


def test_alg_ccpca():
    """The stated error is the spread of the means over all graphs, enumerated: far apart here."""
    Y = np.array([[0.0, 0], [0, 1], [9, 0], [9, 1], [9, 2]])
    log_weights = np.where(np.subtract.outer(Y[:, 0], Y[:, 0]) == 0, 0.0, -2.5)
    draws = list(all_row_graphs(np.exp(log_weights) * (1 - np.eye(5))))
    M, _ = mean_operator(draws, 5)
    Y = Y - Y.mean(axis=0)
    spread = sum(weight * (((projection(edges, 5) - M) @ Y) ** 2).sum() for edges, weight in draws)
    runs = [ccpca(Y, log_weights, n_samples=50, random_state=seed) for seed in range(20)]
    exact = math.sqrt(spread / 50) / np.linalg.norm(M @ Y)
    assert np.mean([run.standard_error for run in runs]) == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("prior", ["row", "binary", "edges"])
def test_alg_ccpca_priors(prior):
    """Each prior against a plain loop over graphs drawn one by one, with the same seeds."""
    n, N, rng = 8, 30, np.random.default_rng(2)
    X, log_kernel = rng.normal(size=(n, 3)), rng.normal(size=(n, n)) - 2
    found = ccpca(X, log_kernel, prior=prior, n_samples=N, random_state=7)
    drawn = sample_graphs(log_kernel, N, prior=prior, random_state=7)
    operators = [projection(graph.edges.T.tolist(), n) for graph in drawn]
    np.testing.assert_allclose(found.means, sum(operators) @ X / N, atol=1e-12)
    assert found.n_connected.tolist() == [len(np.unique(P, axis=0)) for P in operators]
    assert found.Z.mean(dim=0).abs().max() < 1e-12
    assert found.start[:, 0].square().mean().item() == pytest.approx(1)
    # the start has the shape of Z
    ratio = found.Z.norm(dim=0) / found.start.norm(dim=0)
    assert ratio[0].item() == pytest.approx(ratio[1].item())


def test_rem_ccpca_strain():
    """As epsilon falls, the expected coupling of means becomes an averaged strain."""
    n, q, rng = 8, 2, np.random.default_rng(0)
    X, Z = cloud(n, 4), rng.normal(size=(n, q))
    graphs = [[(i, int(rng.integers(n))) for i in range(0, n, 2)] for _ in range(5)]
    projections = [projection(edges, n) for edges in graphs]
    bases = [np.linalg.eigh(P)[1][:, -round(np.trace(P)) :] for P in projections]

    def coupling(epsilon):
        scale = math.sqrt(epsilon)
        return np.mean([loss(scale * U.T @ X, scale * U.T @ Z, 1.0) for U in bases])

    def strain(Y):
        return np.mean([np.linalg.norm(P @ (Y @ Y.T - X @ X.T) @ P) ** 2 for P in projections]) / 2

    for epsilon, rtol in ((1e-3, 0.1), (1e-4, 0.01)):
        value = coupling(epsilon) / epsilon**2
        assert value == pytest.approx(strain(Z) - strain(0 * Z), rel=rtol)


def test_lem_preservation_chance():
    """An embedding drawn at random scores 0 on average, the points themselves 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    scores = np.array([neighborhood_curve(X, rng.normal(size=(20, 2))).values for _ in range(200)])
    spread = scores.std(axis=0) / math.sqrt(len(scores))
    assert (abs(scores.mean(axis=0)) < 4 * spread).all()
    assert (neighborhood_curve(X, 3 * X[:, ::-1]).values == 1).all()
    # independent, but of densities that differ from point to point: not 0
    apart = [neighborhood_curve(X, X + 0.1 * rng.normal(size=X.shape)).values for _ in range(5)]
    assert (np.mean(apart, axis=0) > 0.2).all()
    # the worst possible, nearest and farthest exchanged: -K / (n - 1 - K)
    line = np.array([0.0, 1, 2, 3, 50, 51, 52, 53])[:, None]
    mixed = np.array([0.0, 50, 100, 150, 1, 51, 101, 151])[:, None]
    assert neighborhood_preservation(line, mixed, 1) == pytest.approx(-1 / 6)
