"""Objectives, gradients and embeddings held against other software, conventions mapped.

| peer: function                      | its convention              | in drot                    |
| ----------------------------------- | --------------------------- | -------------------------- |
| sklearn: _t_sne._kl_divergence      | mass 1, condensed P, i != j | SNELoss(P, "student") / n  |
| openTSNE: kl_divergence_bh, theta 0 | mass 1, sparse P, dF / 4    | SNELoss(P, "student") / n  |
| sklearn: TSNE(method="exact")       | exaggerates early, momentum | tsne(P), a KL like theirs  |

P is of mass n here and of mass 1 there: values and gradients differ by the factor n.
"""

import drot
import numpy as np
import pytest
import torch
from openTSNE.tsne import kl_divergence_bh
from scipy.sparse import csr_matrix
from scipy.spatial.distance import squareform
from sklearn.manifold import TSNE
from sklearn.manifold._t_sne import _kl_divergence

N = 300


@pytest.fixture(scope="module")
def digits() -> torch.Tensor:
    return drot.datasets.digits(N).X.double()


@pytest.fixture(scope="module")
def joint(digits) -> torch.Tensor:
    """t-SNE's plan, of mass n."""
    return drot.symmetrize(
        drot.entropic_affinity(drot.sqeuclidean(digits), perplexity=20.0, diagonal="drop")
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


def test_tsne_reaches_sklearns_objective(digits, joint):
    """From PCA, the divergence is about that of 1000 steps of scikit-learn's exact t-SNE; as
    measured by its own function."""
    model = TSNE(perplexity=20.0, method="exact", init="pca", random_state=0).fit(digits.numpy())
    found = drot.tsne(joint, init=drot.pca_start(digits))
    P = squareform(joint.numpy() / N)
    ours, _ = _kl_divergence(found.Z.numpy().ravel(), P, 1, N, 2)
    theirs, _ = _kl_divergence(model.embedding_.astype(float).ravel(), P, 1, N, 2)
    assert theirs == pytest.approx(model.kl_divergence_, rel=1e-3)
    assert ours <= 1.1 * theirs  # with noise in the seventh digit: 0.93 to 1.01
    assert found.kl / N == pytest.approx(ours, rel=1e-8)
