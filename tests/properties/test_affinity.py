"""Properties of affinities: what must hold for every cloud, of every kind, in every layout."""

import functools
import math

import drot
import numpy as np
import oracles
import pytest
import torch
from clouds import cloud
from plans import in_tiles

each_diagonal = pytest.mark.parametrize("diagonal", ["keep", "drop"])


def squares(kind: str, seed: int, n: int, p: int = 3) -> torch.Tensor:
    return drot.sqeuclidean(cloud(kind, seed, n, p)).dense()


SOLVERS = {
    "entropic": (functools.partial(drot.entropic_affinity, perplexity=4.0, tol=1e-11), 1e-9),
    "gaussian": (functools.partial(drot.gaussian_affinity, perplexity=4.0, tol=1e-11), 1e-9),
    "doubly stochastic": (functools.partial(drot.doubly_stochastic_affinity, perplexity=4.0), 1e-6),
    "symmetric": (functools.partial(drot.symmetric_entropic_affinity, perplexity=4.0), 1e-6),
    "self-tuning": (functools.partial(drot.self_tuning_affinity, n_neighbors=3), 1e-12),
}


@pytest.mark.parametrize("scale", [1e-300, 1e300])
@pytest.mark.parametrize("name", SOLVERS)
def test_scale(name, scale):
    """Units of the cost do not matter, however small or large: duals carry them."""
    (solve, atol), C = SOLVERS[name], squares("scales", 1, 15)
    base, scaled = solve(C), solve(C * scale)
    np.testing.assert_allclose(scaled.plan, base.plan, atol=atol)
    for dual in {"eps", "nu", "sigma", "f", "gamma", "lam"} & vars(base).keys():
        unit, wanted = scale ** (0.5 if dual == "sigma" else 1), np.asarray(getattr(base, dual))
        found = np.asarray(getattr(scaled, dual)) / unit
        np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


@each_diagonal
def test_neighbours(diagonal):
    """All n neighbours are the exact plan; k are the exact plan of the k cheapest columns."""
    C, k = squares("scales", 6, 20), 7
    solve = functools.partial(drot.entropic_affinity, C, perplexity=4.0, diagonal=diagonal)
    exact, every = solve(), solve(n_neighbors=20 - (diagonal == "drop"))
    torch.testing.assert_close(every.plan, exact.plan, rtol=1e-7, atol=1e-11)
    torch.testing.assert_close(every.eps, exact.eps, rtol=1e-7, atol=0)
    allowed = C.clone().fill_diagonal_(math.inf) if diagonal == "drop" else C
    log_plan = (exact.lam[:, None] - allowed) / exact.eps[:, None]
    torch.testing.assert_close(log_plan, exact.log_plan, rtol=1e-11, atol=1e-11)
    two = solve(perplexity=1.5, n_neighbors=2).perplexity  # the fewest
    torch.testing.assert_close(two, torch.full((20,), 1.5).double())
    few = solve(n_neighbors=k)
    expected = np.zeros((20, 20))
    for i, row in enumerate(C.numpy()):
        if diagonal == "drop":
            row = np.where(np.arange(20) == i, np.inf, row)
        near = np.argsort(row)[:k]
        expected[i, near] = oracles.softmax(
            row[near], oracles.bandwidth_by_bisection(row[near], 4.0)
        )
    np.testing.assert_allclose(few.plan, expected, atol=1e-8)
    assert ((few.plan > 0).sum(dim=1) <= k).all()
    np.testing.assert_allclose(few.perplexity, 4.0, rtol=3e-9)
    if diagonal == "keep":
        by_cost = drot.entropic_affinity(drot.nearest(C, n_neighbors=k), perplexity=4.0)
        assert torch.equal(few.plan, by_cost.plan)
    # with 3 xi neighbours the approximation is close, and it is one
    assert 0 < float((solve(n_neighbors=12).plan - exact.plan).abs().max()) < 0.05


def test_self_tuning_takes_free_pairs():
    """A cost of 0 is a copy, and with more neighbours than copies there is a bandwidth."""
    C = drot.sqeuclidean(np.array([0.0, 0.0, 2.0, 4.0, 4.0])[:, None]).dense()
    solve = drot.self_tuning_affinity
    assert solve(C, n_neighbors=2).sigma.tolist() == [2.0] * 5
    assert solve(C, n_neighbors=4).sigma.tolist() == [4.0, 4.0, 2.0, 4.0, 4.0]
    with pytest.raises(ValueError, match="row 0 has fewer than n_neighbors=4 finite costs"):
        solve(drot.nearest(C, n_neighbors=4), n_neighbors=4)
    kept = solve(drot.nearest(C, n_neighbors=4), n_neighbors=3).sigma  # one is the point's own
    assert torch.equal(kept, solve(C, n_neighbors=3).sigma)


@pytest.mark.parametrize("bandwidth", [1e-50, 1e50])
def test_a_bandwidth_is_a_number_of_the_dtype(bandwidth):
    """One that float32 rounds to 0 or inf is refused; in float64 it is a limit like any other."""
    C = squares("gaussian", 3, 12)
    rows = drot.gaussian_affinity(C, bandwidth=bandwidth).plan
    limit = torch.eye(12) if bandwidth < 1 else torch.full((12, 12), 1 / 12)
    torch.testing.assert_close(rows, limit.double())
    for solve in (drot.gaussian_affinity, drot.doubly_stochastic_affinity):
        with pytest.raises(ValueError, match=r"bandwidth must be positive and finite; .*float32"):
            solve(C.float(), bandwidth=bandwidth)


@pytest.mark.parametrize(("dtype", "largest"), [(torch.float32, 2e38), (torch.float64, 1e308)])
def test_a_dual_out_of_range(dtype, largest):
    """lam is about nu log n, which the dtype must hold too."""
    C = squares("gaussian", 3, 30).to(dtype)
    assert drot.gaussian_affinity(C, bandwidth=largest / 10).lam.isfinite().all()
    with pytest.raises(ValueError, match="row 0 of this cost leaves the range of torch"):
        drot.gaussian_affinity(C, bandwidth=largest)


@pytest.mark.parametrize("solve", [drot.entropic_affinity, drot.gaussian_affinity])
def test_stairs_are_bracketed(solve):
    """Where costs differ by decades the perplexity is a staircase in log eps: Halley's steps alone
    go up and down one stair for ever, which a halved bracket ends. A limit costs no memory."""
    row = np.array([0, 1e-3, 0.1, 1e3])
    for xi in (1.45, 1.5, 1.54, 1.58, 1.61):
        found = solve(np.tile(row, (4, 1)), perplexity=xi, max_iter=10**15)
        assert found.converged
        expected = oracles.softmax(row, oracles.bandwidth_by_bisection(row, xi))
        np.testing.assert_allclose(found.plan, np.tile(expected, (4, 1)), atol=1e-8)


def test_mean_of_unlike_rows():
    """Constant rows have no say in the start, ties none but in the range, large costs none."""
    C = np.array([[3.0, 3, 3, 3], [0, 0, 1, 5], [2, 7, 2, 4], [0, 9, 1, 4]])
    solve = functools.partial(drot.gaussian_affinity, C + 2.0**20)
    found = solve(perplexity=2.9, tol=1e-12)
    mean = np.mean([oracles.log_perplexity(oracles.softmax(row, found.nu)) for row in C])
    log_plan = (found.lam.numpy()[:, None] - 2.0**20 - C) / found.nu
    np.testing.assert_allclose(log_plan, found.log_plan, atol=1e-8)
    assert mean == pytest.approx(math.log(2.9), abs=1e-11)
    low, high = 16**0.25, 4.0  # geometric means of 4, 2, 2 and 1 ties, and of 4 entries
    for end, inside in ((low, 1e-6), (high, -1e-6)):
        assert solve(perplexity=end + inside).converged
        with pytest.raises(ValueError, match=f"between {low:g} .* and {high:g} "):
            solve(perplexity=end - inside)


@pytest.mark.parametrize(("kind", "seed", "n"), [("scales", 0, 16), ("gaussian", 3, 12)])
def test_gap_is_trusted_only_beyond_the_residual(kind, seed, n):
    """Near the solution the plan is balanced before its entropy is believed, and it can be
    balanced so well that the search goes on, down to rounding."""
    solve = functools.partial(drot.doubly_stochastic_affinity, squares(kind, seed, n), tol=1e-14)
    assert solve(perplexity=3.0).converged


@pytest.mark.parametrize("max_iter", [1, 3, 8, 21])
def test_certificate_of_an_unfinished_plan(max_iter):
    """Stopped early, the residual is of the plan returned, of its rows or of their mean perplexity,
    whichever is worse; Sinkhorn's iterations of all bandwidths share the budget."""
    C, seen = squares("scales", 4, 20), []
    ask = {"tol": 1e-15, "max_iter": max_iter, "on_failure": "ignore"}
    both = functools.partial(drot.doubly_stochastic_affinity, C, **ask)
    gap = math.log(6.0)
    for found, mean in (
        (drot.entropic_affinity(C, perplexity=6.0, **ask), lambda p: (p - gap).abs().max()),
        (drot.gaussian_affinity(C, perplexity=6.0, **ask), lambda p: (p.mean() - gap).abs()),
        (both(bandwidth=1.0), lambda p: 0 * p[0]),
        (both(perplexity=6.0, callback=lambda *x: seen.append(x)), lambda p: abs(p.mean() - gap)),
    ):
        rows = float((found.plan.sum(dim=1) - 1).abs().max())
        error = max(rows, float(mean(found.perplexity.log())))
        assert found.residual == pytest.approx(error, rel=1e-6, abs=1e-12)
        assert found.n_iter == len(found.trace) <= max_iter
        assert found.converged == (found.residual <= 1e-15)
    assert seen == list(enumerate(found.trace, start=1)) and found.n_iter == max_iter


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9, 1e12])
def test_certificate_with_an_offset(offset):
    """The residual is that of the plan returned, also for costs with a large common part."""
    affinity = drot.entropic_affinity(squares("gaussian", 8, 20) + offset, perplexity=5.0)
    np.testing.assert_allclose(affinity.plan.sum(dim=1), 1, atol=1e-12)
    np.testing.assert_allclose(affinity.perplexity, 5.0, rtol=2e-9)


@each_diagonal
@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_trace_does_not_see_the_tiles(n_neighbors, diagonal):
    """Each entry is the largest error over all rows that are left, whatever tile they are in."""
    C = squares("outliers", 12, 40)
    solve = functools.partial(drot.entropic_affinity, perplexity=6.0)
    assert len({solve(C[[i] * 40]).n_iter for i in range(40)}) > 1
    solve = functools.partial(solve, n_neighbors=n_neighbors, diagonal=diagonal)
    whole, cut = solve(C), solve(C, max_iter=2, on_failure="ignore")
    assert whole.trace[1] == cut.trace[1] == pytest.approx(cut.residual, rel=1e-9)
    assert cut.residual > 1e-3
    for block in (1, 7):
        parts = solve(in_tiles(C, block))
        np.testing.assert_allclose(parts.trace, whole.trace, rtol=1e-6, atol=1e-13)
        torch.testing.assert_close(parts.plan, whole.plan, rtol=1e-12, atol=1e-12)
        for rows, tile in parts.logs.tiles(2):
            assert len(tile) <= min(2, block) and torch.equal(tile, parts.log_plan[rows])


def test_bandwidth_of_two_scales():
    """Two distances that differ by rounding alone leave a flat stretch below the bandwidth."""
    cost = drot.sqeuclidean(np.array([[0.0], [-512.21061336], [-1024.42122672]]))
    found = drot.gaussian_affinity(cost, perplexity=1.618, diagonal="drop")
    reached = np.log(oracles.row_perplexities(found.plan.numpy())).mean()
    assert found.passes < 20 and reached == pytest.approx(np.log(1.618), abs=3e-9)
