"""The same numbers from other software and by slower ways, after the conventions are mapped.

| way: function                      | its convention                     | in drot              |
| ---------------------------------- | ---------------------------------- | -------------------- |
| sklearn: _binary_search_perplexity | exp(-beta |x - y|^2), i != j       | 1/eps, diagonal=drop |
| openTSNE: joint_probabilities_nn   | point-wise: rows sum to 1, i != j  | plan                 |
| POT: sinkhorn                      | mass 1, exp(-M / reg)              | reg = nu, plan / n   |
| drot: symmetric_dual_ascent        | gamma = theta^2, first derivatives | the same duals       |
| alternating KL projections         | exp(-C / sigma), temperatures      | gamma = sigma temp.  |
| TorchDR: SymmetricEntropicAffinity | mass 1; zero_diag=False to keep    | plan / n             |

What peers leave open: which of several neighbours tied at the last place are kept (so no
integer-valued data where a number of neighbours is set).
"""

import drot
import numpy as np
import oracles
import ot
import pytest
import torch
from openTSNE.affinity import joint_probabilities_nn
from plans import squares
from scipy.special import entr, log_softmax
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


# Residuals of 1e-7 and 1e-8; L-BFGS stops where a step promises less than 1e-9 of the loss; the
# norm of TorchDR's gradient is 1e-7.
ASCENT, LBFGS, PROJECTED, TORCHDR = 1e-5, 2e-4, 1e-6, 1e-5
POINTS = np.random.default_rng(0).normal(size=(8, 4))
EIGHT = squares(POINTS)  # no slack row at perplexity 3
ACUTE = np.array([[0.0, 1.0, 0.8], [1.0, 0.0, 1.0], [0.8, 1.0, 0.0]])
LINE = squares([0, 1, 2])
each_case = pytest.mark.parametrize(("C", "xi"), [(EIGHT, 3.0), (ACUTE, 1.8)], ids=["8", "3"])


def same(slow, fast, accuracy: float) -> None:
    """Plan, duals and value agree; the slow plan is a symmetric one of the same form."""
    np.testing.assert_allclose(slow.plan, fast.plan, atol=accuracy)
    top = float(fast.gamma.max())
    np.testing.assert_allclose(slow.gamma, fast.gamma, atol=10 * accuracy * top)
    np.testing.assert_allclose(slow.lam, fast.lam, atol=10 * accuracy * top)
    assert slow.dual_value == pytest.approx(fast.dual_value, abs=accuracy**1.5)
    assert slow.dual_value <= fast.dual_value + 1e-12  # the fast one is the maximum
    np.testing.assert_array_equal(slow.plan, slow.plan.T)


@each_case
@pytest.mark.parametrize(("optimizer", "rate", "tol"), [("adam", 0.1, 1e-7), ("lbfgs", 1.0, 1e-4)])
def test_dual_ascent(C, xi, optimizer, rate, tol):
    """First derivatives climb to the point that second derivatives find."""
    fast = drot.symmetric_entropic_affinity(C, perplexity=xi)
    slow = drot.affinities.symmetric_dual_ascent(
        C, perplexity=xi, optimizer=optimizer, learning_rate=rate, tol=tol, max_iter=4000
    )
    same(slow, fast, LBFGS if optimizer == "lbfgs" else ASCENT)
    assert slow.converged and slow.residual <= tol
    assert slow.residual == min(slow.trace) and slow.n_iter == len(slow.trace) == len(slow.work)
    assert slow.products == 0 and slow.work[-1] <= slow.passes
    if optimizer != "lbfgs":
        assert slow.passes > 4 * (fast.passes + fast.products)


def test_lbfgs_bears_infinite_values():
    """Where scales differ by a hundred its first steps are too long: it steps back and goes on."""
    draw = np.random.default_rng(5)
    C = squares(draw.normal(size=(20, 2)) * 10 ** draw.uniform(-1, 1, size=(20, 1)))
    slow = drot.affinities.symmetric_dual_ascent(
        C, perplexity=9, optimizer="lbfgs", max_iter=60, on_failure="ignore"
    )
    first = np.flatnonzero(~np.isfinite(slow.trace))[0]
    assert slow.n_iter == 60 and np.isfinite(slow.trace[first:]).sum() > 10
    assert slow.residual == np.nanmin(slow.trace)


@pytest.mark.parametrize(("optimizer", "rate"), [("adam", 0.1), ("lbfgs", 1.0)])
def test_dual_ascent_misses_slack_rows(optimizer, rate):
    """Where a row is slack first derivatives do not arrive: three points, 1000 evaluations."""
    ask = {"optimizer": optimizer, "learning_rate": rate, "tol": 1e-8, "max_iter": 1000}
    slow = drot.affinities.symmetric_dual_ascent(LINE, perplexity=1.5, on_failure="ignore", **ask)
    assert not slow.converged and slow.residual > 1e-3 and not slow.slack.any()
    fast = drot.symmetric_entropic_affinity(LINE, perplexity=1.5)
    assert fast.n_iter < 12 and fast.residual <= 1e-9
    with pytest.raises(drot.NotConverged, match=rf"symmetric_dual_ascent \({optimizer}\)"):
        drot.affinities.symmetric_dual_ascent(
            LINE, perplexity=1.5, optimizer=optimizer, max_iter=100
        )


def alternating_projections(C, xi: float, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """The plan, and the temperatures of its rows: rows of perplexity xi or more and symmetric
    plans in turn, with Dykstra's correction of the first, which are no convex set of log P."""
    log_p, correction = -C / sigma, np.zeros_like(C)
    while True:
        log_y = log_p + correction
        rows = drot.entropic_affinity(log_y.max(axis=1, keepdims=True) - log_y, perplexity=xi)
        temperatures = np.maximum(rows.eps.numpy(), 1)
        log_rows = log_softmax(log_y / temperatures[:, None], axis=1)
        correction, log_p = log_y - log_rows, (log_rows + log_rows.T) / 2
        P = np.exp(log_p)
        missing = np.log(xi) + (P * log_p).sum(axis=1)
        missing = np.where(temperatures > 1, abs(missing), missing)
        if max(missing.max(), abs(P.sum(axis=1) - 1).max()) <= 1e-8:
            return P, temperatures


@pytest.mark.parametrize(
    ("C", "xi"), [(EIGHT, 3.0), (ACUTE, 1.6), (LINE, 1.6)], ids=["8", "acute", "line"]
)
@pytest.mark.parametrize("sigma", [0.25, 0.6])
def test_alternating_projections(C, xi, sigma):
    """At any bandwidth the limit is the projection on the feasible set, as the solver has it; below
    the smallest gamma it is the affinity, with the same duals."""
    plan, temperatures = alternating_projections(C, xi, sigma)
    conic = oracles.symmetric_entropic_projection(-C / sigma, xi)
    np.testing.assert_allclose(plan, conic.plan, atol=PROJECTED)
    prices = sigma * (1 + conic.entropy)
    np.testing.assert_allclose(sigma * temperatures, prices, atol=1e-4 * C.max())
    fast = drot.symmetric_entropic_affinity(C, perplexity=xi)
    if sigma < float(fast.gamma.min()):
        np.testing.assert_allclose(plan, fast.plan, atol=PROJECTED)
        np.testing.assert_allclose(sigma * temperatures, fast.gamma, atol=PROJECTED * C.max())
        assert temperatures.min() > 1


@pytest.mark.parametrize("square", [True, False])
def test_symmetric_against_torchdr(square):
    """TorchDR's affinity, run long, is the same plan over n."""
    torchdr = pytest.importorskip("torchdr")
    theirs = torchdr.SymmetricEntropicAffinity(
        perplexity=3, tol=1e-7, max_iter=4000, zero_diag=False, eps_square=square
    )(torch.from_numpy(POINTS))
    ours = drot.symmetric_entropic_affinity(drot.sqeuclidean(POINTS), perplexity=3.0)
    np.testing.assert_allclose(ours.plan / 8, theirs, atol=TORCHDR / 8)
