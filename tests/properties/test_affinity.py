"""Properties of affinities: what must hold for every cloud, of every kind, in every layout."""

from __future__ import annotations

import functools
import math

import drot
import numpy as np
import oracles
import pytest
import torch
from clouds import KINDS, cloud, clouds, quick
from hypothesis import given
from hypothesis import strategies as st

shares = st.floats(0.02, 0.98)  # of the way from the fewest to the most neighbours


def reachable(X: np.ndarray, share: float, diagonal: str = "keep") -> float:
    """A perplexity between the ties and the entries of every row of this cloud."""
    C = drot.sqeuclidean(X).dense()
    if diagonal == "drop":
        C.fill_diagonal_(math.inf)
    ties = int((C.amin(dim=1, keepdim=True) == C).sum(dim=1).max())
    most = len(X) - (diagonal == "drop")
    return ties + share * (most - ties)


@quick
@given(clouds(), shares, st.sampled_from(["keep", "drop"]))
def test_entropic_rows(X, share, diagonal):
    """Every row sums to 1 and has the perplexity asked for, by the definition of perplexity."""
    xi = reachable(X, share, diagonal)
    if diagonal == "drop" and xi >= len(X) - 1:  # every other point is tied
        return
    affinity = drot.entropic_affinity(drot.sqeuclidean(X), xi, diagonal=diagonal)
    plan = affinity.plan.numpy()
    np.testing.assert_allclose(plan.sum(axis=1), 1, atol=1e-8)
    reached = [oracles.log_perplexity(row / row.sum()) for row in plan]
    np.testing.assert_allclose(reached, math.log(xi), atol=3e-9)
    np.testing.assert_allclose(affinity.perplexity, xi, rtol=3e-9)
    assert (affinity.eps > 0).all()
    if diagonal == "drop":
        assert (np.diag(plan) == 0).all()
        assert (affinity.log_plan.diagonal() == -math.inf).all()
    np.testing.assert_array_equal(affinity.log_plan.exp(), plan)


@quick
@given(clouds(("gaussian", "scales", "clusters")), shares, st.integers(0, 999))
def test_permutation(X, share, seed):
    """Numbering the points differently numbers rows and columns of every affinity so."""
    order = np.random.default_rng(seed).permutation(len(X))
    xi = reachable(X, share)
    for solve in (
        lambda cost: drot.entropic_affinity(cost, xi, tol=1e-11),
        lambda cost: drot.gaussian_affinity(cost, perplexity=xi, tol=1e-11),
        lambda cost: drot.gaussian_affinity(cost, bandwidth=0.5),
        lambda cost: drot.self_tuning_affinity(cost, n_neighbors=2),
        lambda cost: drot.doubly_stochastic_affinity(cost, bandwidth=2.0, tol=1e-11),
    ):
        plan = solve(drot.sqeuclidean(X)).plan[order][:, order]
        np.testing.assert_allclose(solve(drot.sqeuclidean(X[order])).plan, plan, atol=1e-8)


@quick
@given(clouds(("gaussian", "clusters")), shares, st.sampled_from([-1e3, 1.0, 1e6]))
def test_translation_and_rotation(X, share, offset):
    """Only distances matter: moving or turning the cloud changes no affinity."""
    xi = reachable(X, share)
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1], X.shape[1])))
    plain = drot.entropic_affinity(drot.sqeuclidean(X), xi).plan
    for moved in (X + offset, X @ turn):
        again = drot.entropic_affinity(drot.sqeuclidean(moved), xi).plan
        np.testing.assert_allclose(again, plain, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-4, 1e4, 1e150])
@pytest.mark.parametrize("kind", ["gaussian", "scales"])
def test_scale(scale, kind):
    """Units of the coordinates do not matter: eps and nu carry them, in squared units."""
    X, a = cloud(kind, 1, 15, 3), scale**2
    C, D = drot.sqeuclidean(X).dense(), drot.sqeuclidean(X).dense() * a
    base, scaled = (drot.entropic_affinity(M, 4.0, tol=1e-11) for M in (C, D))
    np.testing.assert_allclose(scaled.plan, base.plan, atol=1e-9)
    np.testing.assert_allclose(scaled.eps / a, base.eps, rtol=1e-7)
    base, scaled = (drot.gaussian_affinity(M, perplexity=4.0, tol=1e-11) for M in (C, D))
    np.testing.assert_allclose(scaled.plan, base.plan, atol=1e-9)
    assert scaled.nu / a == pytest.approx(base.nu, rel=1e-7)
    base, scaled = (drot.doubly_stochastic_affinity(M, perplexity=4.0) for M in (C, D))
    np.testing.assert_allclose(scaled.plan, base.plan, atol=1e-6)
    assert scaled.nu / a == pytest.approx(base.nu, rel=1e-6)
    np.testing.assert_allclose(scaled.f / a, base.f, atol=1e-5 * float(C.max()))
    base, scaled = (drot.self_tuning_affinity(M, n_neighbors=3) for M in (C, D))
    np.testing.assert_allclose(scaled.plan, base.plan, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("diagonal", ["keep", "drop"])
def test_tiles_equal_dense(kind, diagonal):
    """Tiles of 1, 3 or n rows give what the dense array gives, to 1e-12 of the cost's digits."""
    X = cloud(kind, 3, 16, 3)
    xi = 5.0
    solvers = {
        "entropic": lambda c: drot.entropic_affinity(c, xi, diagonal=diagonal),
        "gaussian": lambda c: drot.gaussian_affinity(c, perplexity=xi, diagonal=diagonal),
        "self-tuning": lambda c: drot.self_tuning_affinity(c, n_neighbors=3, diagonal=diagonal),
    }
    if kind not in ("line", "grid"):  # there, rounding decides which of two neighbours is kept
        solvers["neighbours"] = lambda c: drot.entropic_affinity(
            c, xi, diagonal=diagonal, n_neighbors=9
        )
    if diagonal == "keep":
        solvers["sinkhorn"] = lambda c: drot.doubly_stochastic_affinity(c, bandwidth=30.0)
    C = drot.sqeuclidean(X)
    for name, solve in solvers.items():
        whole = solve(C.dense())
        for block in (1, 3, 16):
            tiled = solve(drot.sqeuclidean(X, block=block))
            torch.testing.assert_close(tiled.plan, whole.plan, rtol=1e-7, atol=1e-12, msg=name)
            for rows, tile in tiled.tiles():
                assert tile.shape[0] <= block
                assert torch.equal(tile, tiled.plan[rows])
            for rows, tile in tiled.log_tiles(2):
                assert tile.shape[0] <= min(2, block)
                torch.testing.assert_close(tile, tiled.log_plan[rows], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_tiles_of_one_matrix(kind):
    """The same numbers in other tiles: solving a dense matrix by rows gives 1e-12."""
    C = drot.sqeuclidean(cloud(kind, 4, 15, 2)).dense()
    expected = drot.entropic_affinity(C, 4.0).plan
    for block in (1, 4, 15):
        points = torch.arange(15.0, dtype=torch.float64)[:, None]
        rows = drot.pairwise(lambda x, y: C[x[:, 0].long()][:, y[:, 0].long()], points, block=block)
        plan = drot.entropic_affinity(rows, 4.0).plan
        torch.testing.assert_close(plan, expected, rtol=1e-12, atol=1e-12)


@quick
@given(clouds(("gaussian", "scales", "outliers")), st.integers(0, 99))
def test_monotone_in_perplexity(X, seed):
    """More perplexity: larger eps, larger nu, costlier plans, row by row."""
    levels = reachable(X, 0.0) + np.linspace(0.05, 0.95, 6) * (len(X) - reachable(X, 0.0))
    C = drot.sqeuclidean(X).dense()
    solved = [drot.entropic_affinity(C, xi) for xi in levels]
    eps = torch.stack([s.eps for s in solved])
    cost = torch.stack([(s.plan * C).sum(dim=1) for s in solved])
    assert (eps.diff(dim=0) > 0).all() and (cost.diff(dim=0) > 0).all()
    nu = [drot.gaussian_affinity(C, perplexity=xi).nu for xi in levels]
    assert (np.diff(nu) > 0).all()


def test_limits():
    """Perplexity to 1: the identity; to n: the uniform plan. So with bandwidth 0 and infinity."""
    X = cloud("gaussian", 5, 12, 3)
    C = drot.sqeuclidean(X).dense()
    one, uniform = np.eye(12), np.full((12, 12), 1 / 12)
    for delta in (1e-3, 1e-6, 1e-8):
        cold = drot.entropic_affinity(C, 1 + delta)
        np.testing.assert_allclose(cold.plan, one, atol=delta)
        np.testing.assert_allclose(cold.perplexity, 1 + delta, rtol=2e-9)
        hot = drot.entropic_affinity(C, 12 - delta)
        np.testing.assert_allclose(hot.plan, uniform, atol=math.sqrt(delta))
        np.testing.assert_allclose(hot.perplexity, 12 - delta, rtol=2e-9)
    for solve in (drot.gaussian_affinity, drot.doubly_stochastic_affinity):
        np.testing.assert_allclose(solve(C, bandwidth=1e-3).plan, one, atol=1e-12)
        np.testing.assert_allclose(solve(C, bandwidth=1e9).plan, uniform, rtol=1e-7)


@pytest.mark.parametrize("xi", [1.01, 1.3, 1.9, 1.999])
def test_two_points(xi):
    """n = 2 in closed form: p solves the binary entropy, and eps = C / log(p / (1 - p))."""
    low, high = 0.5, 1.0
    for _ in range(100):
        p = (low + high) / 2
        entropy = -p * math.log(p) - (1 - p) * math.log1p(-p) if p < 1 else 0.0
        low, high = (p, high) if entropy > math.log(xi) else (low, p)
    C = np.array([[0.0, 3.0], [3.0, 0.0]])
    expected = [[p, 1 - p], [1 - p, p]]
    eps = 3 / math.log(p / (1 - p))
    affinity = drot.entropic_affinity(C, xi, tol=1e-13)
    np.testing.assert_allclose(affinity.plan, expected, atol=1e-9)
    np.testing.assert_allclose(affinity.eps, eps, rtol=1e-7)
    both = drot.doubly_stochastic_affinity(C, perplexity=xi)
    np.testing.assert_allclose(both.plan, expected, atol=1e-6)
    assert both.nu == pytest.approx(eps, rel=1e-6)
    mean = drot.gaussian_affinity(C, perplexity=xi, tol=1e-13)
    np.testing.assert_allclose(mean.plan, expected, atol=1e-9)


def test_three_points():
    """n = 3, diagonal dropped: two entries a row, again the binary entropy."""
    C = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]])
    plan = drot.entropic_affinity(C, 1.7, diagonal="drop").plan.numpy()
    two = drot.entropic_affinity(np.array([[0.0, 3.0], [3.0, 0.0]]), 1.7).plan.numpy()
    np.testing.assert_allclose(plan[0], [0, *two[0]], atol=1e-9)
    np.testing.assert_allclose(plan[1], [two[0, 0], 0, two[0, 1]], atol=1e-9)
    np.testing.assert_allclose(plan[2], [two[0, 1], two[0, 0], 0], atol=1e-9)


@quick
@given(clouds(("gaussian", "scales", "duplicates")), shares)
def test_drop_equals_the_row_without_its_own_entry(X, share):
    """Dropping the diagonal is solving each row with its own entry struck out."""
    C = drot.sqeuclidean(X).dense().numpy()
    n = len(C)
    xi = reachable(X, share, "drop")
    plan = drot.entropic_affinity(C, xi, diagonal="drop").plan.numpy()
    for i in range(0, n, 3):
        row = np.delete(C[i], i)
        expected = oracles.softmax(row, oracles.bandwidth_by_bisection(row, xi))
        np.testing.assert_allclose(np.delete(plan[i], i), expected, atol=1e-8)
    mean = drot.gaussian_affinity(C, bandwidth=1.0, diagonal="drop").plan.numpy()
    row = np.delete(C[1], 1)
    np.testing.assert_allclose(np.delete(mean[1], 1), oracles.softmax(row, 1.0), atol=1e-12)


@pytest.mark.parametrize("diagonal", ["keep", "drop"])
def test_neighbours(diagonal):
    """All n neighbours are the exact plan; k are the exact plan of the k cheapest columns."""
    X = cloud("scales", 6, 20, 3)
    C = drot.sqeuclidean(X).dense()
    exact = drot.entropic_affinity(C, 4.0, diagonal=diagonal)
    every = drot.entropic_affinity(C, 4.0, diagonal=diagonal, n_neighbors=20 - (diagonal == "drop"))
    torch.testing.assert_close(every.plan, exact.plan, rtol=1e-7, atol=1e-11)
    torch.testing.assert_close(every.eps, exact.eps, rtol=1e-7, atol=0)
    k = 7
    few = drot.entropic_affinity(C, 4.0, diagonal=diagonal, n_neighbors=k)
    plan = few.plan.numpy()
    assert ((plan > 0).sum(axis=1) <= k).all()
    assert (np.diag(plan) == 0).all() == (diagonal == "drop")
    for i, row in enumerate(C.numpy()):
        if diagonal == "drop":
            row = np.where(np.arange(20) == i, np.inf, row)
        near = np.argsort(row)[:k]
        eps = oracles.bandwidth_by_bisection(row[near], 4.0)
        expected = np.zeros(20)
        expected[near] = oracles.softmax(row[near], eps)
        np.testing.assert_allclose(plan[i], expected, atol=1e-8)
    np.testing.assert_allclose(few.perplexity, 4.0, rtol=3e-9)
    # with 3 xi neighbours the approximation is close, and it is one
    many = drot.entropic_affinity(C, 4.0, diagonal=diagonal, n_neighbors=12)
    assert 0 < float((many.plan - exact.plan).abs().max()) < 0.05


@pytest.mark.parametrize("diagonal", ["keep", "drop"])
def test_duals_give_the_plan(diagonal):
    """log P is (lam - C) / eps, (lam - C) / nu or (f_i + f_j - C) / nu: the duals are those."""
    C = drot.sqeuclidean(cloud("scales", 11, 13, 3)).dense()
    off = torch.eye(13, dtype=torch.bool) if diagonal == "drop" else torch.zeros(13, 13).bool()
    rows = drot.entropic_affinity(C, 4.0, diagonal=diagonal)
    mean = drot.gaussian_affinity(C, bandwidth=2.0, diagonal=diagonal)
    for affinity, scale in ((rows, rows.eps[:, None]), (mean, mean.nu)):
        expected = ((affinity.lam[:, None] - C) / scale).masked_fill(off, -math.inf)
        torch.testing.assert_close(affinity.log_plan, expected, rtol=1e-11, atol=1e-11)
    both = drot.doubly_stochastic_affinity(C, bandwidth=2.0)
    expected = (both.f[:, None] + both.f - C) / both.nu
    torch.testing.assert_close(both.log_plan, expected, rtol=1e-11, atol=1e-11)


def test_neighbours_of_a_nearest_cost():
    """n_neighbors=k is solving the cost drot.nearest(cost, k)."""
    cost = drot.sqeuclidean(cloud("gaussian", 7, 15, 3))
    named = drot.entropic_affinity(cost, 3.0, n_neighbors=6)
    by_cost = drot.entropic_affinity(drot.nearest(cost, 6), 3.0)
    assert torch.equal(named.plan, by_cost.plan)


def test_ties_and_outliers():
    """Duplicates with outliers at 1e6 converge, from just above the ties to just below n."""
    X = cloud("gaussian", 0, 30, 3)
    Z = np.concatenate([X, X, X[:5] + 1e6])
    for xi in (2.001, 2.01, 2.1, 3.0, 5.0, 20.0, 59.0, 60.0, 61.0, 64.0, 64.9):
        affinity = drot.entropic_affinity(drot.sqeuclidean(Z), xi)
        assert affinity.residual <= 1e-9
        assert affinity.n_iter <= 60
        np.testing.assert_allclose(affinity.perplexity, xi, rtol=3e-9)


@quick
@given(clouds(("gaussian", "clusters", "scales")), shares)
def test_float32(X, share):
    """float32 keeps its type and its stated residual, and stays near the float64 plan."""
    xi = reachable(X, share)
    cost = drot.sqeuclidean(X.astype(np.float32))
    for affinity in (
        drot.entropic_affinity(cost, xi),
        drot.gaussian_affinity(cost, perplexity=xi),
    ):
        assert affinity.plan.dtype == torch.float32
        assert affinity.residual <= 1e-4
        np.testing.assert_allclose(affinity.plan.sum(dim=1), 1, atol=1e-4)
    exact = drot.entropic_affinity(drot.sqeuclidean(X.astype(np.float32).astype(float)), xi)
    near = drot.entropic_affinity(cost, xi)
    np.testing.assert_allclose(near.perplexity, xi, rtol=3e-4)
    if share < 0.9:  # near n the perplexity hardly depends on eps
        np.testing.assert_allclose(near.plan, exact.plan, atol=5e-3)


@quick
@given(clouds(), shares, st.sampled_from([np.float32, np.float64]))
def test_one_bandwidth_reaches_any_perplexity(X, share, dtype):
    """The average perplexity asked for is reached on every kind of cloud, ties or outliers."""
    xi = reachable(X, share)
    cost = drot.sqeuclidean(X.astype(dtype))
    for solve in (drot.gaussian_affinity, drot.doubly_stochastic_affinity):
        affinity = solve(cost, perplexity=xi)
        tol = 1e-9 if dtype is np.float64 else 1e-4
        assert affinity.converged and affinity.residual <= tol
        assert affinity.plan.dtype == cost.dtype
        reached = float(affinity.perplexity.double().log().mean())
        assert reached == pytest.approx(math.log(xi), abs=5 * tol)
        np.testing.assert_allclose(affinity.plan.sum(dim=1), 1, atol=2 * tol)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9, 1e12])
def test_certificate_with_an_offset(offset):
    """The residual is that of the plan returned, also for costs with a large common part."""
    C = drot.sqeuclidean(cloud("gaussian", 8, 20, 3)).dense() + offset
    affinity = drot.entropic_affinity(C, 5.0)
    np.testing.assert_allclose(affinity.plan.sum(dim=1), 1, atol=1e-12)
    np.testing.assert_allclose(affinity.perplexity, 5.0, rtol=2e-9)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 4])
def test_certificate_of_an_unfinished_plan(max_iter):
    """Stopped early, the result still has rows of sum 1 and the residual of its own plan."""
    C = drot.sqeuclidean(cloud("scales", 9, 20, 3)).dense()
    options = {"tol": 1e-15, "max_iter": max_iter, "on_failure": "ignore"}
    rows = drot.entropic_affinity(C, 5.0, **options)
    np.testing.assert_allclose(rows.plan.sum(dim=1), 1, atol=1e-12)
    error = float((rows.perplexity.log() - math.log(5.0)).abs().max())
    assert rows.residual == pytest.approx(error, rel=1e-6, abs=1e-12)
    assert not rows.converged and rows.n_iter == max_iter == len(rows.trace)
    mean = drot.gaussian_affinity(C, perplexity=5.0, **options)
    error = abs(float(mean.perplexity.log().mean()) - math.log(5.0))
    assert mean.residual == pytest.approx(error, rel=1e-6, abs=1e-12)
    both = drot.doubly_stochastic_affinity(C, bandwidth=1.0, **options)
    error = float((both.plan.sum(dim=1) - 1).abs().max())
    assert both.residual == pytest.approx(error, rel=1e-6)
    assert not both.converged


def test_passes_count_evaluations():
    """`passes` counts evaluations of the whole array: rows that are done drop out."""
    easy = np.tile(np.linspace(0, 1, 40), (40, 1))
    hard = np.concatenate([easy[:-1], [np.geomspace(1e-9, 1e9, 40)]])
    first = drot.entropic_affinity(easy, 10.0)
    assert first.passes == pytest.approx(first.n_iter)
    second = drot.entropic_affinity(hard, 10.0)
    assert second.n_iter > first.n_iter
    spent = (39 * first.n_iter + second.n_iter) / 40
    assert second.passes == pytest.approx(spent, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_perplexity_of_a_result(kind):
    """`.perplexity` is Shannon's, of each row divided by its mass, for every kind of result."""
    C = drot.sqeuclidean(cloud(kind, 10, 14, 2)).dense()
    for affinity in (
        drot.entropic_affinity(C, 5.0, n_neighbors=9),
        drot.gaussian_affinity(C, bandwidth=1.0, diagonal="drop"),
        drot.self_tuning_affinity(C, n_neighbors=4),
        drot.doubly_stochastic_affinity(C, bandwidth=float(C.mean())),
    ):
        plan = affinity.plan.numpy()
        expected = [math.exp(oracles.log_perplexity(row / row.sum())) for row in plan]
        np.testing.assert_allclose(affinity.perplexity, expected, rtol=1e-9)


@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_trace_does_not_see_the_tiles(n_neighbors):
    """Each entry is the largest error over all rows that are not done, whatever tile they lie in,
    though some tiles take more iterations than others."""
    C = drot.sqeuclidean(cloud("outliers", 12, 40, 3)).dense()
    points = torch.arange(40.0, dtype=torch.float64)[:, None]
    tiled = drot.pairwise(lambda x, y: C[x[:, 0].long()][:, y[:, 0].long()], points, block=1)
    whole, parts = (drot.entropic_affinity(c, 6.0, n_neighbors=n_neighbors) for c in (C, tiled))
    alone = {drot.entropic_affinity(C[[i] * 40], 6.0).n_iter for i in range(40)}
    assert len(alone) > 1
    np.testing.assert_allclose(parts.trace, whole.trace, rtol=1e-6, atol=1e-13)


def test_self_tuning_solves_nothing():
    """Seven neighbours by default; one pass, no iteration, and a certificate that says so."""
    cost = drot.sqeuclidean(cloud("scales", 13, 12, 2))
    found = drot.self_tuning_affinity(cost)
    assert torch.equal(found.plan, drot.self_tuning_affinity(cost, n_neighbors=7).plan)
    assert (found.residual, found.n_iter, found.passes, found.trace) == (0.0, 0, 1.0, ())
    assert found.converged is True
    kernel = drot.gaussian_affinity(cost, bandwidth=1.0)
    assert (kernel.residual, kernel.n_iter, kernel.passes, kernel.trace) == (0.0, 0, 1.0, ())


def test_self_tuning_takes_free_pairs_but_no_negative_ones():
    """A cost of 0 is a copy, and with more neighbours than copies there is a bandwidth."""
    X = np.array([0.0, 0.0, 2.0, 4.0, 4.0])[:, None]
    C = drot.sqeuclidean(X).dense()
    assert drot.self_tuning_affinity(C, n_neighbors=2).sigma.tolist() == [2.0] * 5
    assert drot.self_tuning_affinity(C, n_neighbors=4).sigma.tolist() == [4.0, 4.0, 2.0, 4.0, 4.0]
    for k in (0, 5):
        with pytest.raises(ValueError, match="n_neighbors must be a whole number from 1 to 4"):
            drot.self_tuning_affinity(C, n_neighbors=k)
    with pytest.raises(ValueError, match="row 0 has 1 or more copies"):
        drot.self_tuning_affinity(C, n_neighbors=1)
    C[1, 2] = -0.5
    with pytest.raises(ValueError, match="not negative"):
        drot.self_tuning_affinity(C, n_neighbors=2)


def test_self_tuning_of_the_nearest_alone():
    """Of k kept costs one is the point's own: the k-th neighbour is not among them."""
    C = drot.sqeuclidean(cloud("gaussian", 3, 30, 3))
    kept = drot.nearest(C, 4)
    assert torch.equal(
        drot.self_tuning_affinity(kept, n_neighbors=3).sigma,
        drot.self_tuning_affinity(C, n_neighbors=3).sigma,
    )
    with pytest.raises(ValueError, match="row 0 has fewer than n_neighbors=4 finite costs"):
        drot.self_tuning_affinity(kept, n_neighbors=4)


@pytest.mark.parametrize("bandwidth", [1e-50, 1e50])
def test_a_bandwidth_is_a_number_of_the_dtype(bandwidth):
    """One that float32 rounds to 0 or inf is refused; in float64 it is a limit like any other."""
    C = drot.sqeuclidean(cloud("gaussian", 3, 12, 3)).dense()
    rows = drot.gaussian_affinity(C, bandwidth=bandwidth).plan
    limit = torch.eye(12) if bandwidth < 1 else torch.full((12, 12), 1 / 12)
    torch.testing.assert_close(rows, limit.double())
    for affinity in (
        drot.gaussian_affinity,
        drot.doubly_stochastic_affinity,
        functools.partial(drot.symmetric_alternating_projections, perplexity=3.0),
    ):
        with pytest.raises(ValueError, match=r"bandwidth must be positive and finite; .*float32"):
            affinity(C.float(), bandwidth=bandwidth)
    with pytest.raises(TypeError, match="damping must be one number; got str"):
        drot.doubly_stochastic_affinity(C, bandwidth=1.0, damping="a")


@pytest.mark.parametrize(("dtype", "largest"), [(torch.float32, 2e38), (torch.float64, 1e308)])
def test_a_dual_out_of_range(dtype, largest):
    """lam is about nu log n, which the dtype must hold too."""
    C = drot.sqeuclidean(cloud("gaussian", 3, 30, 3)).dense().to(dtype)
    assert drot.gaussian_affinity(C, bandwidth=largest / 10).lam.isfinite().all()
    with pytest.raises(ValueError, match="row 0 of this cost leaves the range of torch"):
        drot.gaussian_affinity(C, bandwidth=largest)
