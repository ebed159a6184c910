"""Any cloud whatever: a result whose certificate holds, or one clear sentence.

Certificates are recomputed here from the input and the plan, in NumPy. What a search found is kept
as a test of its own at the end. ``DROT_FUZZ=1000`` looks further, at other examples each time.
"""

import contextlib
import os
import signal
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial, wraps

import drot
import numpy as np
import oracles
import pytest
import torch
from clouds import wild, wild_clouds
from faults import check_sentence
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import energy, squares
from sklearn.exceptions import ConvergenceWarning

EXAMPLES = int(os.environ.get("DROT_FUZZ", "0"))
SECONDS = 60  # for one call on a handful of points, which hangs if it takes so long

shares = st.floats(0.001, 0.999)  # of the way from 1 to the number of points


def fuzz(examples: int):
    """The same examples in every run, or many others."""
    return settings(
        max_examples=EXAMPLES or examples,
        deadline=None,
        derandomize=not EXAMPLES,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


class Refused(Exception):
    """The input of an example, by a sentence of this package."""


def kept(*shares: float):
    """How many calls give a result, and how many give up: what refuses all is no use."""
    return pytest.mark.parametrize("attempt", [shares], indirect=True, ids=["kept"])


@pytest.fixture
def attempt(request):
    """The result of a call, which ends the example where the input is refused."""
    ends = Counter()

    def late(*_):
        raise AssertionError(f"took more than {SECONDS} s")

    def run(solve: Callable):
        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        ends["tried"] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = solve()
        except (drot.NotConverged, ConvergenceWarning):
            ends["unfinished"] += 1
            raise Refused from None
        except (ValueError, MemoryError) as error:
            check_sentence(error)
            raise Refused from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        ends["kept"] += 1
        return found

    yield run
    kept, unfinished = (*request.param, 0.0)[:2]
    assert ends["kept"] >= kept * ends["tried"], ends
    assert ends["unfinished"] <= unfinished * ends["tried"], ends


def drawn(*strategies):
    """Examples, each of which is over where its input is refused."""

    def wrap(test: Callable) -> Callable:
        @given(*strategies)
        @wraps(test)
        def run(*args, **kwargs):
            with contextlib.suppress(Refused):
                test(*args, **kwargs)

        return run

    return wrap


def perplexity_of(share: float, n: int) -> float:
    return 1 + share * (n - 1)


@pytest.mark.parametrize("diagonal", ["keep", "drop"])
@pytest.mark.parametrize("solve", [drot.entropic_affinity, drot.gaussian_affinity])
@kept(0.25)
@fuzz(50)
@drawn(wild_clouds(), shares)
def test_entropic(attempt, solve, diagonal, X, share):
    """Rows of sum 1, the perplexity asked for, of each or on average, and the form of a softmax."""
    xi = perplexity_of(share, len(X) - (diagonal == "drop"))
    cost = drot.sqeuclidean(X)
    found = attempt(lambda: solve(cost, perplexity=xi, diagonal=diagonal))
    P, log, lam, C = (np.asarray(x) for x in (found.plan, found.log_plan, found.lam, cost.dense()))
    each = solve is drot.entropic_affinity
    eps, reached = (
        found.eps.numpy() if each else np.full(len(X), found.nu),
        np.log(oracles.row_perplexities(P)),
    )
    assert found.residual <= 1e-9
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(reached if each else reached.mean(), np.log(xi), atol=3e-9)
    # eps log P_ij = lam_i - C_ij
    some = np.isfinite(log)
    assert (some == ((diagonal == "keep") | ~np.eye(len(X), dtype=bool))).all()
    gap = np.where(some, eps[:, None] * np.where(some, log, 0) - lam[:, None] + C, 0)
    assert (np.abs(gap).max(axis=1) <= 1e-9 * (C.max(axis=1) + eps)).all()


@pytest.mark.parametrize(("dtype", "digits"), [("f8", 3e-9), ("f4", 3e-4)])
@kept(0.2, 0.03)
@fuzz(50)
@drawn(wild_clouds(), shares)
def test_symmetric(attempt, dtype, digits, X, share):
    """Symmetric, rows of sum 1, perplexities reached or exceeded, and the form of the duals."""
    xi, X = perplexity_of(share, len(X)), X.astype(dtype)
    cost = attempt(lambda: drot.sqeuclidean(X))
    found = attempt(lambda: drot.symmetric_entropic_affinity(cost, perplexity=xi))
    P, slack = found.plan.double().numpy(), found.slack.numpy()
    np.testing.assert_array_equal(P, P.T)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=digits)
    gap = np.log(xi) - np.log(oracles.row_perplexities(P))
    assert (gap <= digits).all() and (np.abs(gap[~slack]) <= digits).all()
    gamma, lam, log, C = (
        np.asarray(x, dtype=float) for x in (found.gamma, found.lam, found.log_plan, cost.dense())
    )
    total, some = gamma[:, None] + gamma, (1e-280 if dtype == "f8" else 1e-30) < P
    right = (lam[:, None] + lam - 2 * C)[some]
    size = np.abs(lam).max() + 2 * C.max() + total.max()
    assert (gamma >= 0).all() and {found.gamma.dtype, found.plan.dtype} == {cost.dtype}
    np.testing.assert_allclose(total[some] * log[some], right, atol=digits / 3 * size)


@pytest.mark.parametrize("target", ["bandwidth", "perplexity"])
@kept(0.25, 0.15)
@fuzz(50)
@drawn(wild_clouds(), shares, st.integers(-2, 2))
def test_doubly_stochastic(attempt, target, X, share, power):
    """Symmetric, rows of sum 1, the form of a scaled kernel, and the perplexity on average."""
    cost = drot.sqeuclidean(X)
    C = cost.dense().numpy()
    xi, nu = perplexity_of(share, len(X)), 10.0**power * (float(C.mean()) or 1.0)
    asked = {"perplexity": xi} if target == "perplexity" else {"bandwidth": nu}
    found = attempt(lambda: drot.doubly_stochastic_affinity(cost, **asked, max_iter=5000))
    P, f = found.plan.numpy(), found.f.numpy()
    np.testing.assert_allclose(P, P.T, rtol=0, atol=1e-15)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=3e-9)
    some = P > 1e-280
    size = (np.abs(f).max() + C.max()) / found.nu
    np.testing.assert_allclose(
        np.log(P[some]), ((f[:, None] + f - C) / found.nu)[some], atol=1e-12 * size + 1e-12
    )
    if target == "perplexity":
        assert abs(np.log(oracles.row_perplexities(P)).mean() - np.log(xi)) <= 3e-9


@pytest.mark.parametrize("method", ["pca", "classical_mds"])
@kept(0.4)
@fuzz(80)
@drawn(wild_clouds(), st.integers(1, 3))
def test_spectral(attempt, method, X, q):
    """Principal components and classical scaling against the singular values."""
    s = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    wanted = np.concatenate([s**2, np.zeros(8)])[:q]
    origin = float(np.abs(X).max()) ** 2 * len(X)  # what centring rounds
    data = X if method == "pca" else drot.sqeuclidean(X)
    found = attempt(lambda: getattr(drot.spectral, method)(data, q))
    Z = found.Z.numpy()
    assert np.isfinite(Z).all()
    bound = 1e-9 * float(s[0] ** 2) + 1e-14 * origin
    np.testing.assert_allclose(found.eigenvalues, wanted, atol=bound)
    np.testing.assert_allclose(Z.T @ Z, np.diag(np.maximum(wanted, 0)), atol=bound)


@pytest.mark.parametrize("method", ["laplacian_eigenmaps", "diffusion_map"])
@kept(0.15)
@fuzz(40)
@drawn(wild_clouds(least=3), st.integers(1, 2), shares)
def test_graphs_of_neighbours(attempt, method, X, q, share):
    """Eigenmaps and diffusion maps: centred and finite, or the reason why not."""
    solve, xi = getattr(drot.spectral, method), perplexity_of(share, len(X))

    def run():
        rows = drot.entropic_affinity(drot.sqeuclidean(X), perplexity=xi)
        return solve(drot.symmetrize(rows), q)

    found = attempt(run)
    Z, m = found.Z.numpy(), found.weights.numpy()
    assert np.isfinite(Z).all() and np.isfinite(found.eigenvalues.numpy()).all()
    size = float(found.eigenvalues.abs().max())
    np.testing.assert_allclose(m @ Z**2, found.eigenvalues.clamp_min(0), atol=1e-6 * size)
    assert np.abs(m @ Z).max() <= 1e-5 * m.sum() * max(1e-300, np.abs(Z).max())


@kept(0.1)
@fuzz(30)
@drawn(wild_clouds(least=3), shares, st.sampled_from(["row", "binary", "edges"]))
def test_ccpca(attempt, X, share, prior):
    """Means that keep the mean of the cloud, and their principal components."""
    cost, ask = drot.sqeuclidean(X), dict(perplexity=perplexity_of(share, len(X) - 1))
    options = dict(n_components=1, prior=prior, n_samples=12)
    found = attempt(
        lambda: drot.ccpca(X, drot.entropic_affinity(cost, diagonal="drop", **ask), **options)
    )
    means, size = found.means.numpy(), float(np.abs(X).max())
    np.testing.assert_allclose(means.mean(axis=0), X.mean(axis=0), atol=1e-12 * size)
    assert ((means <= X.max(axis=0) + 1e-12 * size) & (means >= X.min(axis=0) - 1e-12 * size)).all()
    s = np.linalg.svd(means - means.mean(axis=0), compute_uv=False)
    assert abs(float(found.Z.norm()) - s[0]) <= 1e-6 * s[0] + 1e-7 * size
    assert ((found.n_connected >= 1) & (found.n_connected <= len(X))).all()


@pytest.mark.parametrize("method", ["tsne", "snekhorn"])
@kept(0.25, 0.1)
@fuzz(20)
@drawn(wild_clouds(least=3, most=10), shares, st.integers(0, 3))
def test_embeddings(attempt, method, X, share, seed):
    """Values that fall to rest; that the residual says what it means: test_embedding.py."""
    cost, options = drot.sqeuclidean(X), dict(init="random", tol=1e-3, random_state=seed)

    def solve():
        if method == "tsne":
            xi = perplexity_of(share, len(X) - 1)
            rows = drot.entropic_affinity(cost, perplexity=xi, diagonal="drop")
            return drot.tsne(drot.symmetrize(rows), **options)
        xi = perplexity_of(share, len(X))
        plan = drot.symmetric_entropic_affinity(cost, perplexity=xi, tol=1e-11).plan
        return drot.snekhorn(plan, kernel="student", **options)

    end = attempt(solve)
    assert torch.isfinite(end.Z).all() and end.residual <= 1e-3 and end.kl >= -1e-6
    values = np.array(end.values)
    assert (np.diff(values) <= 1e-9 * np.abs(values).max() + 1e-12).all()


@pytest.mark.parametrize("loss", ["square", "kl"])
@kept(0.9, 0.05)
@fuzz(40)
@drawn(wild_clouds(most=10), wild_clouds(most=4, powers=1), st.integers(0, 9))
def test_semi_relaxed(attempt, loss, X, Y, seed):
    """Row sums, an objective by its four sums, and no vertex that is better to first order."""
    A, B = drot.sqeuclidean(X).dense(), drot.sqeuclidean(Y).dense()
    if loss == "kl":
        A, B = A / (float(A.max()) or 1.0), B / (float(B.max()) or 1.0) + 0.01
    found = attempt(lambda: drot.semi_relaxed_gw(A, B, loss=loss, n_starts=1, random_state=seed))
    T, n = found.plan.numpy(), len(X)
    np.testing.assert_allclose(T.sum(axis=1), 1 / n, atol=1e-12)
    assert (T >= 0).all()
    scale = max(energy(A, B, np.full(T.shape, 1 / T.size), loss), float(A.max()) ** 2 / n**2)
    scale = max(scale, float((B**2).max() if loss == "square" else B.max()), 1e-300)
    assert found.objective == pytest.approx(energy(A, B, T, loss), abs=1e-9 * scale)
    assert (np.diff(found.values) <= 1e-9 * scale).all()
    g = drot.gromov.gw_gradient(A, B, T, loss=loss).numpy()
    gap = (g * T).sum() - g.min(axis=1).sum() / n
    assert gap <= 1e-7 * scale + 1e-9 * max(float((A**2).mean()), 1e-300)


@kept(0.9, 0.05)
@fuzz(40)
@drawn(wild_clouds(most=10), st.integers(1, 4), st.integers(0, 9))
def test_barycentre(attempt, X, k, seed):
    """The structure is the mean of C between clusters, the objective its four sums."""
    k = min(k, len(X))
    C = drot.sqeuclidean(X).dense()
    found = attempt(lambda: drot.srgw_barycenter(C, k, n_starts=1, random_state=seed))
    T, q = found.plan.numpy(), found.weights.numpy()
    np.testing.assert_allclose(T.sum(axis=1), 1 / len(X), atol=1e-12)
    used = q > 0
    scale = max(float((C**2).mean()), 1e-300)
    means = T.T @ C.numpy() @ T
    means[np.ix_(used, used)] /= np.outer(q, q)[np.ix_(used, used)]
    np.testing.assert_allclose(found.structure, means, atol=1e-9 * np.sqrt(scale))
    assert found.objective == pytest.approx(energy(C, found.structure, T), abs=1e-9 * scale)
    assert (np.diff(found.values) <= 1e-9 * scale).all()


@kept(0.2, 0.1)
@fuzz(16)
@drawn(wild_clouds(least=3, most=9), shares, st.integers(2, 3), st.integers(0, 9))
def test_reduction(attempt, X, share, k, seed):
    """Row sums, a similarity of prototypes that is their kernel's, its objective, a fall."""
    cost = drot.sqeuclidean(X)

    def solve():
        C = drot.symmetric_entropic_affinity(cost, perplexity=perplexity_of(share, len(X))).plan
        options = {"init": "random", "n_starts": 1, "random_state": seed}
        return C, drot.distributional_reduction(C, k, **options)

    found = attempt(solve)
    C, end = found
    T, n = end.plan.numpy(), len(X)
    np.testing.assert_allclose(T.sum(axis=1), 1 / n, atol=1e-12)
    K = 1 / (1 + squares(end.Z))
    q = T.sum(axis=0)
    factor = float(C.sum()) / n**2 / (q @ K @ q)
    np.testing.assert_allclose(end.structure, factor * K, rtol=1e-9)
    assert end.objective == pytest.approx(energy(C, end.structure, T, "kl"), abs=1e-9)
    assert (np.diff(end.values) <= 1e-12).all()


def test_stalled_affinity_is_not_embedded(monkeypatch):
    """Where the affinity stops far from one, the estimator says so, and not how to call it."""
    model, X = drot.TSNEkhorn(perplexity=12.0), wild("scales", 4, 24, 3)
    stops = partial(pytest.warns, ConvergenceWarning, match="the affinity stopped at a residual")

    def limited(**ask) -> None:
        solve = partial(drot.symmetric_entropic_affinity, **ask)
        monkeypatch.setattr("drot.estimators.base.symmetric_entropic_affinity", solve)

    limited(max_iter=1)
    with stops(), pytest.raises(drot.NotConverged, match=r"too far from one that can be .* dty"):
        model.fit(X)
    limited(tol=1e-30)  # rows are close to it all the same
    with stops():
        model.fit(X)
