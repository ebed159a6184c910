"""Kernel PCA and its six kernels, neighbourhood scores and ccPCA: what must hold for any cloud."""

import math

import drot
import numpy as np
import pytest
import torch
from clouds import quick
from drot import spectral
from drot.affinities.rows import entropic_affinity
from drot.estimators.embedding import CCPCA
from drot.metrics import neighborhood_curve, neighborhood_preservation
from drot.spectral.connected import ccpca
from hypothesis import given
from hypothesis import strategies as st
from plans import same_points, squares
from sklearn.decomposition import PCA


def weights_of(n: int = 12, seed: int = 0) -> np.ndarray:
    """Symmetric, positive, uneven."""
    W = np.random.default_rng(seed).uniform(size=(n, n)) ** 4
    W = W + W.T
    np.fill_diagonal(W, 0)
    return W


def test_prp_kernel_pca():
    """What is left of the centred kernel is all that its other eigenvalues hold."""
    rng = np.random.default_rng(0)
    n, q = 9, 2
    K = rng.normal(size=(n, n))
    K = K + K.T  # indefinite
    m = rng.uniform(0.2, 3, size=n)
    J = np.eye(n) - np.outer(np.ones(n), m) / m.sum()
    centred = J @ K @ J.T
    found = spectral.kernel_pca(K, q, weights=m)
    Z = found.Z.numpy()
    # eigenvalues of the weighted matrix, by NumPy; masses measure lengths and means
    root = np.sqrt(m)
    values, vectors = np.linalg.eigh(root[:, None] * centred * root)
    np.testing.assert_allclose(found.eigenvalues, values[::-1][:q], rtol=1e-10)
    same_points(Z, vectors[:, ::-1][:, :q] * np.sqrt(values[::-1][:q]) / root[:, None], 1e-10)
    np.testing.assert_allclose((Z * m[:, None]).T @ Z, np.diag(found.eigenvalues), atol=1e-10)
    unit = found.vectors.numpy()
    np.testing.assert_allclose((unit * m[:, None]).T @ unit, np.eye(q), atol=1e-9)
    stress = float((np.outer(m, m) * (centred - Z @ Z.T) ** 2).sum())
    assert stress == pytest.approx(float((np.sort(values)[:-q] ** 2).sum()))
    everything = spectral.kernel_pca(K, n, weights=m)
    assert (everything.eigenvalues < 0).any()  # these have no coordinates
    assert everything.Z[:, everything.eigenvalues < 0].abs().max() == 0


def test_prp_spectral_kernels_laplacian():
    """All coordinates kept: squared distances are commute times over the volume, solved for."""
    W = weights_of()
    n, d = len(W), W.sum(axis=1)
    T = W / d[:, None]
    hitting = np.zeros((n, n))  # mean time from i to j: first-step equations
    for j in range(n):
        others = [i for i in range(n) if i != j]
        A = np.eye(n - 1) - T[np.ix_(others, others)]
        hitting[others, j] = np.linalg.solve(A, np.ones(n - 1))
    for normalized in (True, False):
        found = spectral.laplacian_eigenmaps(W, n - 1, normalized=normalized)
        gaps = drot.sqeuclidean(found.Z).dense().numpy()
        np.testing.assert_allclose(gaps, (hitting + hitting.T) / d.sum(), rtol=1e-8, atol=1e-12)
        masses = torch.from_numpy(d if normalized else np.ones(n))
        torch.testing.assert_close(masses @ found.Z**2, found.eigenvalues)
        assert (masses @ found.Z).abs().max() < 1e-9


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("time", [1, 3])
def test_prp_spectral_kernels_diffusion(time, alpha):
    """Distances between embedded points are those between the rows of T^t."""
    W = weights_of() + np.diag(np.full(12, 0.3))
    q = W.sum(axis=1) ** alpha
    V = W / np.outer(q, q)
    m = V.sum(axis=1)
    walk = np.linalg.matrix_power(V / m[:, None], time)
    gaps = ((walk[:, None] - walk[None]) ** 2 / m).sum(axis=2)
    found = spectral.diffusion_map(W, 11, time=time, alpha=alpha)
    np.testing.assert_allclose(drot.sqeuclidean(found.Z).dense(), gaps, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(found.weights, m)
    torch.testing.assert_close(found.weights @ found.Z**2, found.eigenvalues)
    assert (found.weights @ found.Z).abs().max() < 1e-9


@pytest.mark.parametrize(("n", "p", "rank"), [(2, 9, 1), (7, 7, 6), (6, 30, 5), (9, 12, 3)])
def test_pca_has_no_component_without_variance(n, p, rank):
    """Columns beyond the rank are 0 to rounding, and not to its root; the others scikit-learn's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p))
    found = spectral.pca(X, n)
    assert found.Z[:, rank:].abs().max() < 1e-14 * n and found.Z.mean(dim=0).abs().max() < 1e-14 * n
    assert (found.eigenvalues.diff() <= 0).all() and torch.isfinite(found.vectors).all()
    expected = PCA(n, svd_solver="full").fit_transform(X)
    np.testing.assert_allclose(found.Z.abs(), abs(expected), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(60, 2), (3, 40)])
@pytest.mark.parametrize(
    ("dtype", "powers"), [(torch.float32, (-100, 120)), (torch.float64, (-1000, 1000))]
)
def test_pca_at_every_scale(shape, dtype, powers):
    """In other units, powers of 2, all is the same to the bit, while it fits into the dtype."""
    X = torch.tensor(np.random.default_rng(0).normal(size=shape)).to(dtype)
    plain, start = spectral.pca(X, 2), drot.pca_start(X)
    torch.testing.assert_close(plain.vectors.square().sum(dim=0), torch.ones(2, dtype=dtype))
    for unit in (2.0**power for power in powers):
        found = spectral.pca(X * unit, 2)
        assert torch.equal(found.Z / unit, plain.Z)
        assert torch.equal(found.eigenvalues, plain.eigenvalues * unit * unit)
        torch.testing.assert_close(found.vectors, plain.vectors)
        torch.testing.assert_close(drot.pca_start(X * unit), start)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("w", [1e-6, 1e-15, 1e-30])
def test_diffusion_map_of_a_graph_barely_connected(w, dtype):
    """The constants have the eigenvalue 1, all but that of the halves: the two do not mix."""
    first = np.arange(10) < 3  # two uneven blocks of uneven weights
    W = np.exp(-np.random.default_rng(0).random((10, 10)))
    W = np.where(first[:, None] == first, (W + W.T) / 2, w)
    found = spectral.diffusion_map(torch.from_numpy(W).to(dtype), len(W) - 1)
    Z, m = found.Z.double().numpy(), found.weights.double().numpy()
    digits = 1e-5 if dtype == torch.float32 else 1e-12
    assert abs(m @ Z).max() < digits * m.sum() * abs(Z).max()
    a, b = m[first].sum(), m[~first].sum()  # Coifman and Lafon: the slowest, with mu = 1
    gap = abs(Z[first, 0].mean() - Z[~first, 0].mean())
    assert gap == pytest.approx(math.sqrt((a + b) / (a * b)), rel=digits + 30 * w)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    ("dtype", "powers"), [(torch.float32, (-100, 60)), (torch.float64, (-700, 400))]
)
def test_diffusion_map_of_weights_in_any_unit(alpha, dtype, powers):
    """Weights times c: masses times c^(1 - 2 alpha), and the same walk."""
    W = torch.from_numpy(weights_of()).to(dtype)
    plain = spectral.diffusion_map(W, alpha=alpha)
    for power in powers:
        found = spectral.diffusion_map(W * 2.0**power, alpha=alpha)
        scale = 2.0 ** (power * (1 - 2 * alpha))
        torch.testing.assert_close(found.eigenvalues, plain.eigenvalues)
        torch.testing.assert_close(found.weights / scale, plain.weights)
        torch.testing.assert_close(found.Z * math.sqrt(scale), plain.Z)
    with pytest.raises(ValueError, match=r"^the masses of these weights leave the range"):
        spectral.diffusion_map(W * torch.finfo(dtype).tiny / 2**10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normalized", [True, False])
def test_eigenmaps_are_of_graphs_connected_to_working_precision(normalized, dtype):
    """Two cliques of 5 joined by 25 edges of weight w: 1 / mu to three digits, or an error."""
    W = torch.block_diag(torch.ones(5, 5), torch.ones(5, 5)).to(dtype).fill_diagonal_(0)
    for w in (1e-3, 1e-9, 1e-12, 3e-14, 1e-16, 1e-25):
        W[:5, 5:] = W[5:, :5] = w
        ask = {"n_components": 1, "normalized": normalized}
        if w < 1e-13:
            with pytest.raises(ValueError, match=r"^the graph is not connected to working prec"):
                spectral.laplacian_eigenmaps(W, **ask)
            continue
        found = float(spectral.laplacian_eigenmaps(W, **ask).eigenvalues[0])
        assert found == pytest.approx((4 + 5 * w if normalized else 1) / (10 * w), rel=2e-3)


def test_eigenmaps_of_a_long_chain():
    """In float32 too: mu = 1 - cos(pi / (n - 1)) for the walk on a path, 5e-6 here."""
    n = 1000
    chain = torch.diag(torch.ones(n - 1), 1) + torch.diag(torch.ones(n - 1), -1)
    found = spectral.laplacian_eigenmaps(chain, 1)
    assert found.Z.dtype == torch.float32
    slow = 2 * math.sin(math.pi / (2 * (n - 1))) ** 2
    assert 1 / float(found.eigenvalues[0]) == pytest.approx(slow, rel=1e-6)


@pytest.mark.parametrize(
    "name", ["pca", "classical_mds", "laplacian_eigenmaps", "diffusion_map", "kernel_pca"]
)
def test_spectral_signs_and_layout(name):
    """One sign, not the solver's; rows in a row, as L-BFGS wants them."""
    X = torch.randn(50, 3, dtype=torch.float64)
    D = drot.sqeuclidean(X).dense()
    given = X if name == "pca" else D if name == "classical_mds" else torch.exp(-D)
    found = getattr(spectral, name)(given)
    assert (found.Z[found.vectors.abs().argmax(dim=0), [0, 1]] > 0).all()
    assert found.Z.is_contiguous()
    assert repr(found).startswith("SpectralEmbedding(50 points, eigenvalues ")
    if name == "laplacian_eigenmaps":
        W = drot.doubly_stochastic_affinity(D, bandwidth=0.3)
        same_points(*(spectral.laplacian_eigenmaps(graph).Z for graph in (W, W.plan)), 1e-8)


def grids(seed: int, n: int, p: int) -> np.ndarray:
    """Whole coordinates: exact distances, many ties, duplicates."""
    return np.random.default_rng(seed).integers(0, 3, size=(n, p)).astype(float)


@quick
@given(st.integers(0, 1000), st.integers(5, 14), st.booleans())
def test_def_preservation(seed, n, ties):
    """Curve and single values against plain counting."""
    rng = np.random.default_rng(seed)
    X = grids(seed, n, 2) if ties else rng.normal(size=(n, 3))
    Z = grids(seed + 1, n, 1) if ties else rng.normal(size=(n, 2))
    # rank of j among the neighbours of i, 0 for i itself; ties by number
    gaps = (squares(Y) - np.eye(n) for Y in (X, Z))
    x, z = (gap.argsort(axis=1, kind="stable").argsort(axis=1) for gap in gaps)
    off = ~np.eye(n, dtype=bool)
    curve = neighborhood_curve(X, Z)
    for K in range(1, n - 1):
        overlap = ((x <= K) & (z <= K) & off).sum() / (n * K)
        value = ((n - 1) * overlap - K) / (n - 1 - K)
        assert neighborhood_preservation(X, Z, K) == pytest.approx(value, abs=1e-12)
        assert float(curve.overlap[K - 1]) == pytest.approx(overlap)
        assert float(curve.values[K - 1]) == pytest.approx(value, abs=1e-12)
    area = np.average(curve.values, weights=1 / np.arange(1, n - 1))
    assert curve.area == pytest.approx(float(area))
    assert repr(curve) == f"NeighborhoodCurve({n} points, area={curve.area:.3f})"


def test_neighborhoods_of_other_distances(monkeypatch):
    """Costs in place of points, of which only the order counts, in tiles of any size."""
    X, Z = np.random.default_rng(0).normal(size=(2, 60, 4))
    whole, at_10 = neighborhood_curve(X, Z).values, neighborhood_preservation(X, Z, 10)
    cost = drot.pairwise(torch.cdist, X)  # distances, not squared
    kept = cost.dense().clone()
    assert torch.equal(neighborhood_curve(cost, Z).values, whole)
    assert torch.equal(cost.dense(), kept)  # the tile was not written to
    monkeypatch.setattr("drot.metrics.tile_rows", lambda cost: 7)
    assert torch.equal(neighborhood_curve(cost, Z).values, whole)
    assert neighborhood_preservation(X, Z, 10) == at_10


def blobs(n: int = 40, p: int = 4) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, p)) + 20 * rng.normal(size=(4, p))[np.arange(n) % 4]


@pytest.mark.parametrize("prior", ["row", "binary", "edges"])
def test_ccpca_shifts_and_units(prior):
    """A shift of X changes nothing, its unit scales Z; a dense log kernel is the same as the
    affinity it comes from, self-loops or not; another seed, other graphs."""
    X, ask = blobs(), {"prior": prior, "n_samples": 20}
    affinity = entropic_affinity(drot.sqeuclidean(X), perplexity=5, diagonal="drop")
    found, other = (ccpca(X, affinity, random_state=seed, **ask) for seed in (3, 4))
    assert not torch.equal(other.Z, found.Z)
    moved = ccpca(2 * X + 5, affinity.log_plan.fill_diagonal_(3.0), random_state=3, **ask)
    same_points(moved.Z, 2 * found.Z.numpy(), 1e-8)
    np.testing.assert_allclose(moved.means, 2 * found.means.numpy() + 5, atol=1e-9)
    assert moved.standard_error == pytest.approx(found.standard_error)
    for unit in (1e-170, 1e150):
        scaled = ccpca(unit * X, affinity, random_state=3, **ask)
        assert scaled.standard_error == pytest.approx(found.standard_error, rel=1e-9)
    parts, error = float(found.n_connected.double().mean()), found.standard_error
    graphs = f"20 graphs of {parts:.1f} components, standard_error={error:.1e}"
    assert repr(found) == f"ConnectedPCA(40 points in dimension 2, {graphs})"


def test_estimator(capsys):
    """The chain of functions to the bit, and its words; scikit-learn's checks: test_estimators."""
    X = blobs()
    model = CCPCA(perplexity=5.0, n_samples=8, random_state=5).fit(X)
    assert capsys.readouterr() == ("", "")
    seed = np.random.RandomState(5).randint(2**31 - 1)
    affinity = entropic_affinity(drot.sqeuclidean(X), perplexity=5.0, diagonal="drop")
    found = ccpca(X, affinity, n_samples=8, random_state=seed)
    np.testing.assert_array_equal(model.embedding_, found.Z)
    np.testing.assert_array_equal(model.start_, found.start)
    assert model.standard_error_ == found.standard_error and model.n_features_in_ == 4
    # new points at the mean of the map in the weights of their own affinity
    D = drot.sqeuclidean(np.vstack([X[3] + 0.1, X]))
    weights = entropic_affinity(D, perplexity=5.0, diagonal="drop").plan[0, 1:].numpy()
    np.testing.assert_allclose(
        model.transform(X[3:4] + 0.1)[0], weights @ model.embedding_, rtol=1e-7
    )
    assert list(model.get_feature_names_out()) == ["ccpca0", "ccpca1"]
    CCPCA(perplexity=5.0, n_samples=4, verbose=1).fit(X)
    out, err = capsys.readouterr()
    assert out == "" and "standard_error=" in err
