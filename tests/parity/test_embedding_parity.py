"""Maps, objectives and gradients held against other software, conventions mapped.

| peer: function                      | its convention                | in drot                   |
| ----------------------------------- | ----------------------------- | ------------------------- |
| sklearn: PCA, KernelPCA             | signs                         | pca, kernel_pca           |
| sklearn: KernelPCA of -C / 2        | signs                         | classical_mds             |
| sklearn: SpectralEmbedding          | scale of each column          | laplacian_eigenmaps       |
| sklearn: _t_sne._kl_divergence      | mass 1, condensed P, i != j   | SNELoss(P, "student") / n |
| openTSNE: kl_divergence_bh, theta 0 | mass 1, sparse P, dF / 4      | SNELoss(P, "student") / n |
| sklearn: TSNE(method="exact")       | exaggerates early, momentum   | tsne(P), a KL like theirs |
| umap: smooth_knn_dist               | float32, to 1e-5 of log2 k    | umap_membership, to 1e-9  |
| umap: fuzzy_simplicial_set          | sparse, float32               | fuzzy_union, dense        |
| umap: find_ab_params                | curve_fit, default tolerance  | umap_curve, same grid     |
| umap: optimize_layout_euclidean     | draws pairs, guards repulsion | BernoulliLoss, all pairs  |

P is of mass n here and of mass 1 there: values and gradients differ by the factor n. umap-learn
has no function for its loss: the test writes it down from the paper, on its graph and its
embedding. Its neighbours are found exactly here, which it does only for given distances.
"""

from functools import partial

import drot
import numpy as np
import pytest
import torch
from drot import spectral
from openTSNE.tsne import kl_divergence_bh
from scipy.sparse import csr_matrix
from scipy.spatial.distance import squareform
from sklearn import manifold
from sklearn.decomposition import PCA, KernelPCA
from sklearn.manifold._t_sne import _kl_divergence
from sklearn.metrics import pairwise_distances

with pytest.MonkeyPatch.context() as patch:  # so few sums take less time than their compiler
    patch.setattr("numba.config.DISABLE_JIT", True)
    from umap.umap_ import find_ab_params, fuzzy_simplicial_set, simplicial_set_embedding

DIGITS = drot.datasets.digits(300).X
N = len(DIGITS)
COSTS = drot.sqeuclidean(DIGITS).dense().numpy()
kernels = partial(KernelPCA, kernel="precomputed")
arpack = {"affinity": "precomputed", "eigen_solver": "arpack", "random_state": 0}


@pytest.mark.parametrize(
    ("ours", "given", "theirs", "read", "atol"),
    [
        (spectral.pca, DIGITS, partial(PCA, svd_solver="full"), DIGITS.numpy(), 1e-8),
        (spectral.kernel_pca, np.exp(-COSTS / 500), kernels, np.exp(-COSTS / 500), 1e-8),
        (spectral.classical_mds, COSTS, kernels, -COSTS / 2, 1e-7),
        (spectral.laplacian_eigenmaps, np.exp(-COSTS / 500),
         partial(manifold.SpectralEmbedding, **arpack), np.exp(-COSTS / 500), 1e-5),
    ],
    ids=["pca", "kernel", "scaling", "eigenmaps"],
)  # fmt: skip
def test_spectral_methods(ours, given, theirs, read, atol):
    """Column by column, up to sign; the last up to scale too."""
    A, B = ours(given, 2).Z.numpy(), theirs(2).fit_transform(read)
    if atol >= 1e-5:
        A, B = A / np.linalg.norm(A, axis=0), B / np.linalg.norm(B, axis=0)
    np.testing.assert_allclose(
        A, B * np.sign((A * B).sum(axis=0)), rtol=0, atol=atol * abs(B).max()
    )


@pytest.fixture(scope="module")
def joint() -> torch.Tensor:
    """t-SNE's plan, of mass n."""
    return drot.symmetrize(
        drot.entropic_affinity(drot.sqeuclidean(DIGITS), perplexity=20.0, diagonal="drop")
    )


@pytest.mark.parametrize("scale", [1e-2, 30.0])
@pytest.mark.parametrize("q", [1, 2])
def test_tsne_against_sklearn_and_opentsne(joint, scale, q):
    """Value and gradient to rounding; of the tree method at opening angle 0 to its digits."""
    Z = drot.random_start(N, n_components=q, random_state=q) * scale
    value, slope = _kl_divergence(Z.numpy().ravel(), squareform(joint.numpy() / N), 1, N, q)
    loss = drot.SNELoss(joint, "student")
    ours = loss.evaluate(Z)
    found, size = (ours.value + loss.constant) / N, abs(slope).max()
    assert found == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(ours.gradient / N, slope.reshape(N, q), atol=1e-11 * size)
    if q == 2 and scale >= 1:
        P, ask = csr_matrix(joint.numpy() / N), {"should_eval_error": True, "n_jobs": 1}
        value, slope = kl_divergence_bh(Z.numpy(), P, 1, {"theta": 0.0}, **ask)
        assert found == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(ours.gradient / N, 4 * slope, atol=1e-6 * size)


def test_tsne_reaches_sklearns_objective(joint):
    """From PCA, the divergence is about that of 1000 steps of scikit-learn's exact t-SNE; as
    measured by its own function."""
    model = manifold.TSNE(perplexity=20.0, method="exact", init="pca", random_state=0).fit(
        DIGITS.numpy()
    )
    found = drot.tsne(joint, init=drot.pca_start(DIGITS))
    P = squareform(joint.numpy() / N)
    ours, _ = _kl_divergence(found.Z.numpy().ravel(), P, 1, N, 2)
    theirs, _ = _kl_divergence(model.embedding_.astype(float).ravel(), P, 1, N, 2)
    assert theirs == pytest.approx(model.kl_divergence_, rel=1e-3)
    assert ours <= 1.1 * theirs  # with noise in the seventh digit: 0.93 to 1.01
    assert found.kl / N == pytest.approx(ours, rel=1e-8)


M = 200
RNG, WIDTHS = np.random.default_rng(0), np.repeat([0.5, 1.0, 4.0], [70, 70, 60])[:, None]
# Three clusters of unlike width, without ties.
BLOBS = RNG.normal(size=(M, 6)) * WIDTHS + 10.0 * RNG.integers(0, 3, size=(M, 1))


def theirs(k: int):
    """umap-learn's graph, sigma and rho from exact neighbours."""
    distances = pairwise_distances(BLOBS)
    index = distances.argsort(axis=1)[:, :k]
    near = np.take_along_axis(distances, index, axis=1).astype(np.float32)
    return fuzzy_simplicial_set(BLOBS, k, None, "euclidean", knn_indices=index, knn_dists=near)


@pytest.mark.parametrize("k", [15, 3, 30])
def test_umap_graph(k):
    """Same edges; entries to 2e-5. A sum off by 1e-5 moves log sigma by as much, and an entry e^-t
    by t times that: 2e-5 (1 + t) of its value."""
    graph, sigma, rho = theirs(k)
    found = drot.umap_membership(drot.sqeuclidean(BLOBS), n_neighbors=k)
    ours, other = drot.fuzzy_union(found).numpy(), graph.toarray()
    assert ((ours > 1e-30) == (other > 1e-30)).all()
    np.testing.assert_allclose(ours, other, rtol=0, atol=2e-5)
    edge = other > 1e-30
    allowed = 2e-5 * (1 - np.log(ours[edge]))
    assert (abs(ours[edge] / other[edge] - 1) <= allowed).all()
    assert np.median(abs(ours[edge] / other[edge] - 1)) < 1e-5
    np.testing.assert_allclose(found.rho, rho, rtol=1e-6)
    np.testing.assert_allclose(found.sigma, sigma, rtol=2e-4)


@pytest.mark.parametrize("min_dist", [0.0, 0.1, 0.8])
def test_umap_curve(min_dist):
    """a and b to 1e-5 of their value: what curve_fit leaves."""
    theirs = find_ab_params(1.0, min_dist)
    np.testing.assert_allclose(drot.umap_curve(min_dist), theirs, rtol=1e-5)


@pytest.mark.parametrize("scale", [0.3, 10.0])
def test_umap_loss(scale, monkeypatch):
    """The cross-entropy of the paper on their graph, each unordered pair twice: ours, but for the
    guard, and its gradient by their coefficients."""
    graph, _, _ = theirs(15)
    mu, Z = graph.toarray().astype(float), scale * drot.random_start(M)
    a, b = find_ab_params(1.0, 0.1)
    d2 = ((Z[:, None] - Z[None]) ** 2).sum(dim=2).numpy()
    i, j = np.triu_indices(M, 1)
    nu, m = 1 / (1 + a * d2[i, j] ** b), mu[i, j]
    value = -2 * float((m * np.log(nu) + (1 - m) * np.log(1 - nu)).sum())
    monkeypatch.setattr("drot.embeddings.losses.GUARD", 1e-12)
    found = drot.BernoulliLoss(mu, "curve", a=a, b=b).evaluate(Z)
    assert found.value == pytest.approx(value, rel=1e-8)
    # the coefficients of its sampled steps, summed over all pairs: twice 2 (attract + repel)
    np.fill_diagonal(d2, 1.0)  # idle: a point is no distance from itself
    attract = -2 * a * b * d2 ** (b - 1) / (1 + a * d2**b)
    repel = 2 * b / (d2 * (1 + a * d2**b))
    gaps = (Z[:, None] - Z[None]).numpy()
    step = ((mu * attract + (1 - mu) * repel)[:, :, None] * gaps).sum(axis=1)
    np.testing.assert_allclose(-found.gradient, 2 * step, atol=1e-7 * 2 * abs(step).max())


def test_umap_embedding():
    """From PCA, the exact descent ends below the loss of umap-learn's own embedding."""
    graph, _, _ = theirs(15)
    a, b = find_ab_params(1.0, 0.1)
    start = drot.pca_start(BLOBS)
    first, chance = (10 * start.numpy()).astype(np.float32), np.random.RandomState(0)
    other, _ = simplicial_set_embedding(
        BLOBS.astype(np.float32), graph, 2, 1.0, a, b, 1.0, 5, 50, first, chance, "euclidean",
        {}, False, {}, False,
    )  # fmt: skip
    P = torch.from_numpy(graph.toarray().astype(float))
    found = drot.umap(P, init=start)
    loss = drot.BernoulliLoss(P, "curve", a=a, b=b)
    assert found.value < loss.evaluate(torch.from_numpy(other).double()).value  # less than half
    assert manifold.trustworthiness(BLOBS, found.Z.numpy(), n_neighbors=5) > 0.9  # 0.946
