"""The same numbers from other software, after the conventions are mapped.

| peer: function                     | its convention                       | in drot              |
| ---------------------------------- | ------------------------------------ | -------------------- |
| sklearn: _binary_search_perplexity | exp(-beta |x - y|^2), i != j         | 1/eps, diagonal=drop |
| openTSNE: joint_probabilities_nn   | point-wise: rows sum to 1, i != j    | plan                 |
| POT: sinkhorn                      | total mass 1, exp(-M / reg)          | reg = nu, plan / n   |

What peers leave open: which of several neighbours tied at the last place are kept (so no
integer-valued data where a number of neighbours is set).
"""

import drot
import numpy as np
import ot
import pytest
from openTSNE.affinity import joint_probabilities_nn
from scipy.special import entr
from sklearn.datasets import load_digits
from sklearn.manifold import _utils
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors

# Float32 and a search that stops at 1e-5; one at 1e-8; marginals at 1e-13 of mass 1.
SKLEARN, OPENTSNE, POT = 2e-5, 1e-6, 1e-8
SCALES = np.random.default_rng(0).normal(size=(150, 5)) * np.geomspace(0.1, 10, 150)[:, None]
CLOUDS = {"digits": load_digits().data[:200], "scales": SCALES}


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("xi", [5.0, 30.0])
def test_conditional_against_sklearn(name, xi):
    """t-SNE's conditional probabilities are the entropic affinity without self-loops."""
    X = CLOUDS[name]
    squared = euclidean_distances(X, squared=True).astype(np.float32)
    theirs = _utils._binary_search_perplexity(squared, xi, 0)
    ours = drot.entropic_affinity(drot.sqeuclidean(X), perplexity=xi, diagonal="drop")
    np.testing.assert_allclose(ours.plan, theirs, atol=SKLEARN)


@pytest.mark.parametrize("xi", [3.0, 12.5])
def test_conditional_against_opentsne(xi):
    """Row by row, from the same neighbours."""
    X, k = SCALES, 40
    distances, columns = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()
    theirs = joint_probabilities_nn(
        columns, distances, [xi], symmetrize=False, normalization="point-wise"
    ).toarray()
    ours = drot.entropic_affinity(
        drot.sqeuclidean(X), perplexity=xi, diagonal="drop", n_neighbors=k
    )
    found = np.abs(entr(theirs).sum(axis=1) - np.log(xi)) < 1e-7
    assert found.mean() > 0.9
    np.testing.assert_allclose(ours.plan[found], theirs[found], atol=OPENTSNE)


@pytest.mark.parametrize("method", ["sinkhorn", "sinkhorn_log"])
@pytest.mark.parametrize("nu", [5.0, 30.0])
def test_doubly_stochastic_against_pot(method, nu):
    """P^ds is n times the entropic transport plan between uniform marginals."""
    X = SCALES[:60]
    C, n = drot.sqeuclidean(X).dense().numpy(), 60
    uniform = np.full(n, 1 / n)
    theirs = ot.sinkhorn(uniform, uniform, C, nu, method=method, numItermax=50_000, stopThr=1e-13)
    ours = drot.doubly_stochastic_affinity(C, bandwidth=nu, tol=1e-12)
    np.testing.assert_allclose(ours.plan, n * theirs, atol=POT)
