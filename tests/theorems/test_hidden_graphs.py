"""Chapter 8: Laplacians, random fields on graphs, when they are distributions, diffuse means."""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import torch
from drot.graphs.graph import connected_components, laplacian, mrf_log_density
from plans import excess, reach


def graph(n: int, *edges: tuple[int, int]) -> np.ndarray:
    W = np.zeros((n, n))
    for edge in edges:
        W[edge] += 1
    return W


GRAPHS = {  # S_C has dimension 2 for p = 1
    "path": graph(3, (0, 1), (1, 2)),
    "triangle": graph(3, (0, 1), (1, 2), (2, 0)),
    "doubled": graph(3, (0, 1), (1, 0), (1, 2)),
    "two edges": graph(4, (0, 3), (2, 1)),
}


def random_graph(seed: int, n: int = 9, density: float = 0.12) -> np.ndarray:
    """Directed, with real weights and self-loops; usually of several components."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.2, 3, size=(n, n)) * (rng.random((n, n)) < density)


def both(W: np.ndarray) -> np.ndarray:
    """Both directions added up, self-loops left out."""
    return W + W.T - 2 * np.diag(np.diag(W))


def centred_basis(W: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the vectors that sum to 0 on each component, (n, n - R)."""
    return scipy.linalg.null_space(reach(W).astype(float))


def shells(W: np.ndarray, log_k, log_radii: np.ndarray) -> np.ndarray:
    """d mass / d log radius on S_C at some radii: one coordinate, dim S_C = 2."""
    Q = centred_basis(W)
    i, j = np.nonzero(both(W) * (np.arange(len(W))[:, None] < np.arange(len(W))))
    weights, steps = both(W)[i, j], Q[i] - Q[j]  # (m,), (m, 2)
    ridges = np.sort(np.arctan2(-steps[:, 0], steps[:, 1]) % math.pi)

    def along(angle: float) -> np.ndarray:
        gaps = steps @ [math.cos(angle), math.sin(angle)]
        return np.exp(weights @ log_k(gaps[:, None] * np.exp(log_radii)) + 2 * log_radii)

    # between two ridges, where some x_i = x_j, substitute so that both ends are resolved
    total = 0
    t = np.linspace(-60, 60, 2401)
    for low, high in zip(ridges, [*ridges[1:], ridges[0] + math.pi], strict=True):
        if high - low < 1e-9:
            continue
        share = scipy.special.expit(t)
        near = np.where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share))
        jacobian = (high - low) * share * (1 - share)
        total = total + sum(along(a) * w for a, w in zip(near, jacobian, strict=True))
    return 2 * total * (t[1] - t[0])  # x and -x


def mass(W: np.ndarray, log_k) -> float:
    return float(shells(W, log_k, np.arange(-12, 40, 0.15)).sum() * 0.15)


KERNELS = {  # log k, integral over the line, bound
    "gaussian": (lambda x: -(x**2) / 2, math.sqrt(2 * math.pi), 1.0),
    "student": (lambda x: -np.log1p(x**2), math.pi, 1.0),
    "laplace": (lambda x: math.log(1.7) - np.abs(x), 3.4, 1.7),
}


def test_lem_laplacian_null():
    """Quadratic form by double loop, null space by SVD, components by matrix powers."""
    numbers = set()
    for seed in range(5):
        W, X = random_graph(seed), np.random.default_rng(seed).normal(size=(9, 3))
        L, parts, connected = laplacian(W).numpy(), connected_components(W), reach(W)
        assert np.array_equal(L, L.T) and np.linalg.eigvalsh(L).min() > -1e-12
        pairs = (W * ((X[:, None] - X) ** 2).sum(axis=2)).sum()
        means = np.stack([X[mine].mean(axis=0) for mine in connected])
        np.testing.assert_allclose(parts.mean(X), means, atol=1e-13)
        np.testing.assert_allclose(parts.center(X), X - means, atol=1e-13)
        for Y in (X, X - means):
            assert np.trace(Y.T @ L @ Y) == pytest.approx(pairs, rel=1e-10)
        assert np.array_equal(parts.labels[:, None] == parts.labels, connected)
        null, U = scipy.linalg.null_space(L), parts.null_space.numpy()
        assert null.shape[1] == len(parts.sizes) == U.shape[1]
        member = np.equal.outer(parts.labels.numpy(), np.arange(U.shape[1]))
        np.testing.assert_allclose(U, member / np.sqrt(member.sum(axis=0)), rtol=1e-14)
        np.testing.assert_allclose(U @ U.T, null @ null.T, atol=1e-10)
        numbers.add(len(parts.sizes))
    assert len(numbers) > 1 and max(numbers) > 2


@pytest.mark.parametrize(
    ("kernel", "log_k"),
    [
        ("gaussian", lambda x: -(x @ x) / 2),
        ("student", lambda x: -np.log1p(x @ x)),
        # loops would show, and which end of an edge is taken from which
        (
            lambda x: 0.5 - x.abs().sum(dim=1) + x[:, 0] / 2,
            lambda x: 0.5 - np.abs(x).sum() + x[0] / 2,
        ),
    ],
)
def test_prp_mrf_shift(kernel, log_k):
    """The density is that of the definition, whole weights or not; translations along S_M change
    nothing, any other changes it somewhere."""
    for seed in range(4):
        W, rng = random_graph(seed), np.random.default_rng(seed + 100)
        X, parts = rng.normal(size=(9, 2)), connected_components(W)

        def density(X, W=W) -> float:
            return float(mrf_log_density(X, W, kernel=kernel))

        edges = ((i, j) for i, j in zip(*np.nonzero(W), strict=True) if i != j)
        expected = sum(W[i, j] * log_k(X[i] - X[j]) for i, j in edges)
        assert density(X) == pytest.approx(expected, rel=1e-12)
        places = rng.normal(scale=30, size=(len(parts.sizes), 2))
        assert density(X + places[parts.labels]) == pytest.approx(density(X), abs=1e-9)
        T = parts.center(rng.normal(size=(9, 2))).numpy()  # in S_C, not 0
        assert density(X + 50 * T) < density(X) - 1


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", GRAPHS)
def test_thm_integrable(name, kernel):
    """Mass on S_C by quadrature: within the bound, and equal to it exactly for forests."""
    W = GRAPHS[name]
    log_k, total, top = KERNELS[kernel]
    sizes = connected_components(W).sizes.numpy()
    edges, free = int(W.sum()), int((sizes - 1).sum())
    bound = top ** (edges - free) * total**free / math.sqrt(sizes.prod())
    found = mass(W, log_k)
    assert found <= bound * (1 + 1e-6)
    if edges == free:
        assert found == pytest.approx(bound, rel=1e-6)
    else:
        assert found < 0.9 * bound


@pytest.mark.parametrize("taus", [(0.5, 2.0), (3.0, 3.0)])
def test_rem_mrf_bandwidths(taus):
    """On a path each bandwidth is a factor of the mass; the field stays blind to S_M."""
    (log_k, total, _), W, tau = KERNELS["student"], GRAPHS["path"], np.array(taus)
    exact = math.prod(taus) * total**2 / math.sqrt(3)
    assert mass(W, lambda gaps: log_k(gaps / tau[:, None])) == pytest.approx(exact, rel=1e-5)
    by_hand = -math.log1p((1 / taus[0]) ** 2) - math.log1p((2 / taus[1]) ** 2)

    def kernel(x):
        return -(x[:, 0] / torch.tensor(tau)).square().log1p()

    for X in ([[0.0], [1.0], [3.0]], [[7.0], [8.0], [10.0]]):
        assert float(mrf_log_density(X, W, kernel=kernel)) == pytest.approx(by_hand, rel=1e-12)


def log_trees(W: np.ndarray) -> float:
    """log of the product of size times weight of all spanning trees, over the components."""
    pairs, total = both(W), 0.0
    for row in np.unique(reach(W), axis=0):
        nodes, trees = np.flatnonzero(row), 0.0
        edges = [e for e in itertools.combinations(nodes, 2) if pairs[e] > 0]
        for chosen in itertools.combinations(edges, len(nodes) - 1):
            if (reach(graph(len(W), *chosen))[nodes[0]] == row).all():
                trees += math.prod(pairs[e] for e in chosen)
        total += math.log(len(nodes) * trees)
    return total


@pytest.mark.parametrize("seed", range(2))
def test_prp_mrf_gaussian(seed):
    """Trace formula; constant by all spanning trees; covariance L^+ x Sigma by a basis."""
    rng, n, p = np.random.default_rng(seed), 5, 2
    W, root, X = random_graph(seed + 3, n, 0.4), rng.normal(size=(p, p)), rng.normal(size=(n, p))
    sigma = root @ root.T + 0.3 * np.eye(p)
    inverse = np.linalg.inv(sigma)
    L, tensor = laplacian(W).numpy(), torch.from_numpy(inverse)
    value = float(mrf_log_density(X, W, kernel=lambda x: -((x @ tensor) * x).sum(dim=1) / 2))
    assert value == pytest.approx(-np.trace(inverse @ X.T @ L @ X) / 2, rel=1e-12)
    # the constant: determinant of the precision in a basis against trees, one by one
    Q = centred_basis(W)
    free, precision = Q.shape[1], np.kron(Q.T @ L @ Q, inverse)
    exact = free * p / 2 * math.log(2 * math.pi) - np.linalg.slogdet(precision)[1] / 2
    whole = np.kron(Q, np.eye(p))  # to the coordinates X_ia
    np.testing.assert_allclose(
        whole @ np.linalg.inv(precision) @ whole.T, np.kron(np.linalg.pinv(L), sigma), atol=1e-9
    )
    means = np.eye(n) - Q @ Q.T  # projection on the null space of L, where the means live
    np.testing.assert_allclose(np.linalg.inv(L + means), np.linalg.pinv(L) + means, atol=1e-9)
    formula = free / 2 * np.linalg.slogdet(2 * math.pi * sigma)[1] - p / 2 * log_trees(W)
    assert formula == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(
    ("name", "weights", "s"),
    [
        ("path", (0.4, 0.8), 1.0),  # one edge too light
        ("path", (0.4, 0.8), 1.5),
        ("triangle", (0.3, 0.3, 0.3), 1.0),  # no cut too light, but all three parts at once
        ("triangle", (0.9, 0.1, 0.1), 1.0),  # one point too loose
        ("triangle", (0.9, 0.4, 0.4), 1.0),
        ("two edges", (0.6, 0.3), 1.0),
    ],
)
def test_prp_mrf_student(name, weights, s):
    """The mass of a shell of S_C goes like radius^max(p (m - 1) - 2 s w): integrable if < 0."""
    W = GRAPHS[name].copy()
    W[W > 0] = weights
    near, far = np.log(shells(W, lambda x: -s * np.log1p(x**2), np.log([1e4, 1e5])))
    slope, expected = (far - near) / math.log(10), excess(W, s, 1)
    assert (slope > 0) == (expected > 0)
    if len(connected_components(W).sizes) == 1:
        assert slope == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_cor_mrf_plane(n):
    """All graphs with one edge out of each node, all partitions: the permutations remain."""
    proper = 0
    for heads in itertools.product(*([j for j in range(n) if j != i] for i in range(n))):
        W = graph(n, *enumerate(heads))
        fine = excess(W, 1.0, 2) < 0
        assert fine == (len(set(heads)) == n)
        proper += fine
    assert proper == round(math.factorial(n) / math.e)  # derangements


def test_err_mrf_student():
    """Of the 56 graphs with three edges on three points 20 have a finite integral in the plane."""
    pairs = list(itertools.permutations(range(3), 2))
    found = itertools.combinations_with_replacement(pairs, 3)
    assert [excess(graph(3, *edges), 1.0, 2) < 0 for edges in found].count(True) == 20


def test_prp_diffuse_means():
    """Precision L + eps U Theta U^T: X_C keeps its law, and means spread."""
    W = graph(6, (0, 1), (1, 2), (2, 0), (3, 4))  # components of 3, 2 and 1
    parts, L = connected_components(W), laplacian(W).numpy()
    U, root = parts.null_space.numpy(), np.random.default_rng(0).normal(size=(3, 3))
    theta = root @ root.T + np.eye(3)
    centre = parts.center(np.eye(6)).numpy()  # the projection on S_C
    means = np.eye(3)[:, parts.labels] / parts.sizes.numpy()[:, None]
    for epsilon in (1.0, 1e-2, 1e-4):
        covariance = np.linalg.inv(L + epsilon * U @ theta @ U.T)
        np.testing.assert_allclose(centre @ covariance @ centre.T, np.linalg.pinv(L), atol=1e-8)
        found = np.diag(means @ covariance @ means.T)
        expected = np.diag(np.linalg.inv(theta)) / (epsilon * parts.sizes.numpy())
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["gaussian", "student"])
def test_prp_mrf_markov(kernel):
    """The law of an end of a path, given the others, forgets the far end as the means diffuse."""
    W, log_k, grid, middle = GRAPHS["path"], KERNELS[kernel][0], np.linspace(-10, 10, 51), 0.4

    def conditional(far: float, epsilon: float) -> np.ndarray:
        values = []
        for x in grid:
            X = np.array([[x], [middle], [far]])
            log_means = -epsilon / 2 * float(connected_components(W).mean(X).square().sum())
            values.append(float(mrf_log_density(X, W, kernel=kernel)) + log_means)
        density = np.exp(np.array(values) - max(values))
        return density / np.trapezoid(density, grid)

    limit = np.exp(log_k(grid - middle))
    limit /= np.trapezoid(limit, grid)
    gaps = [
        max(np.abs(conditional(far, epsilon) - limit).max() for far in (-5.0, 8.0))
        for epsilon in (0.3, 1e-2, 1e-5)
    ]
    assert gaps[0] > 2 * gaps[1] > 20 * gaps[2] and gaps[2] < 1e-3
