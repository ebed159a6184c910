"""The search for a bandwidth: where it starts, what keeps it safe, and what it costs."""

from __future__ import annotations

import functools
import math

import drot
import numpy as np
import oracles
import pytest
import torch
from clouds import cloud
from drot._core.roots import first_bandwidth, halley
from drot.affinities import doubly_stochastic

INF = math.inf


def squares(kind: str, seed: int, n: int, p: int = 3) -> torch.Tensor:
    return drot.sqeuclidean(cloud(kind, seed, n, p)).dense()


def test_search_starts_at_a_tenth_of_the_mean():
    """One evaluation is made there: of each row, or at the geometric mean of the rows'."""
    C = torch.tensor([[1.0, 3, 6, 2], [0, 0, 5, 1], [7, 8, 9, 20], [1, 3, 6, 2]]).double()
    start = 0.1 * (C - C.amin(dim=1, keepdim=True)).mean(dim=1)
    ask = {"max_iter": 1, "on_failure": "ignore", "tol": 1e-14}
    torch.testing.assert_close(drot.entropic_affinity(C, perplexity=3.0, **ask).eps, start)
    found = drot.gaussian_affinity(C, perplexity=3.0, **ask)
    assert found.nu == pytest.approx(float(start.log().mean().exp()))
    inf = torch.tensor([[0.0, 1.0, INF, 4.0], [0.0, INF, INF, 2.0]])
    torch.testing.assert_close(first_bandwidth(inf), torch.tensor([0.5 / 3, 0.1]).log())


# Both solvers of one perplexity, for a cost whose rows are alike.
SOLVERS = {
    "rows": lambda C, xi, **ask: drot.entropic_affinity(C, perplexity=xi, **ask),
    "mean": lambda C, xi, **ask: drot.gaussian_affinity(C, perplexity=xi, **ask),
}


def log_bandwidth(found) -> float:
    return math.log(float(found.nu if hasattr(found, "nu") else found.eps[0]))


@pytest.mark.parametrize("name", SOLVERS)
def test_strides_grow_where_the_row_is_flat(name):
    """Without a slope to follow, log eps moves by 2, 3, 4, ... in the direction of the root."""
    row = np.arange(10.0)
    row[-1] = 1e300  # the start is far above all other entries, whose variance is 0 from there
    C = np.tile(row, (10, 1))
    met = [
        log_bandwidth(SOLVERS[name](C, 3.0, max_iter=k, on_failure="ignore")) for k in range(1, 9)
    ]
    assert met[0] == pytest.approx(math.log(1e298), rel=1e-12)
    np.testing.assert_allclose(np.diff(met), -np.arange(2.0, 9.0), rtol=1e-9)


@pytest.mark.parametrize("xi", [1.45, 1.5, 1.54, 1.58, 1.61])
@pytest.mark.parametrize("name", SOLVERS)
def test_stairs_are_bracketed(name, xi):
    """Where costs differ by decades the perplexity is a staircase in log eps: Halley's steps alone
    go up and down one stair for ever, which a bracket that is halved ends."""
    row = np.array([0, 1e-3, 0.1, 1e3])
    found = SOLVERS[name](np.tile(row, (4, 1)), xi)
    assert found.converged and found.n_iter <= 20
    expected = oracles.bandwidth_by_bisection(row, xi)
    assert math.exp(log_bandwidth(found)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("gap", [0.3, -0.3])
@pytest.mark.parametrize(("slope", "curvature"), [(0.0, 2.0), (0.0, -2.0), (1e-6, 0.0)])
def test_flat_step_says_only_which_way(gap, slope, curvature):
    """Without a slope the step is as long as allowed, and so is one that a tiny slope makes."""
    t, *at_t = torch.tensor([[1.0], [gap], [slope], [curvature]])
    end = torch.tensor([INF])
    assert float(halley(t, at_t, (-end, end), 2.5, end)) == 1 - math.copysign(2.5, gap)


# Passes over the array at five perplexities together, and 1 % more.
EXPENSE = {"gaussian": 23.1, "scales": 30.3, "clusters": 36.5, "outliers": 67.9, "line": 21.9}


@pytest.mark.parametrize("kind", EXPENSE)
def test_a_search_takes_few_passes(kind):
    """Halley's steps where they can be trusted, and a bracket where they cannot."""
    C = squares(kind, 0, 40)
    found = (drot.entropic_affinity(C, perplexity=xi).passes for xi in (2.5, 6.0, 15.0, 30.0, 39.0))
    assert sum(found) <= EXPENSE[kind]


def test_mean_of_unlike_rows():
    """Constant rows have no say in the start, ties none but in the range, large costs none."""
    C = np.array([[3.0, 3, 3, 3], [0, 0, 1, 5], [2, 7, 2, 4], [0, 9, 1, 4]])
    solve = functools.partial(drot.gaussian_affinity, C + 2.0**20)
    nu = solve(perplexity=2.9, tol=1e-12).nu
    mean = np.mean([oracles.log_perplexity(oracles.softmax(row, nu)) for row in C])
    assert mean == pytest.approx(math.log(2.9), abs=1e-11)
    low, high = 16**0.25, 4.0  # geometric means of 4, 2, 2 and 1 ties, and of 4 entries
    for end, inside in ((low, 1e-6), (high, -1e-6)):
        assert solve(perplexity=end + inside).converged
        with pytest.raises(ValueError, match=f"between {low:g} .* and {high:g} "):
            solve(perplexity=end - inside)


@pytest.mark.parametrize("n", [2, 3, 6, 13])
def test_ends_of_the_range_are_out_of_reach(n):
    """Though exp(log n) may be a little more than n."""
    for ties in range(1, n):
        C = np.tile(np.arange(n) >= ties, (n, 1)) * 1.0
        for xi in (ties, n):
            with pytest.raises(ValueError, match=r"an average perplexity of .* is out of reach"):
                drot.gaussian_affinity(C, perplexity=xi)
        assert drot.gaussian_affinity(C, perplexity=(ties + n) / 2).converged


@pytest.mark.parametrize("xi", [1.3, 3.0, 8.5])
def test_rows_that_are_alike_have_one_search(xi):
    """The mean of equal rows is each of them: the same steps, both ways."""
    C = np.tile(np.random.default_rng(1).uniform(size=9), (9, 1))
    rows, mean = (solve(C, xi) for solve in SOLVERS.values())
    assert rows.n_iter == mean.n_iter and mean.passes == rows.passes + 2
    np.testing.assert_allclose(mean.trace, rows.trace, rtol=1e-9, atol=1e-15)
    assert mean.nu == pytest.approx(float(rows.eps[0]), rel=1e-12)


def test_error_at_the_tolerance_is_within_it():
    """One more evaluation would not be made, nor one less; rows that are done wait."""
    C = np.tile([0.0, 1.0, 2.0, 5.0], (4, 1))
    trace = drot.entropic_affinity(
        C, perplexity=2.0, tol=1e-15, max_iter=4, on_failure="ignore"
    ).trace
    assert len(trace) == 4 and trace[-1] > 0
    for k, error in enumerate(trace, start=1):
        for solve in SOLVERS.values():
            found = solve(C, 2.0, tol=error)
            assert found.n_iter == k and found.converged
    C = squares("gaussian", 7, 9)
    trace = drot.doubly_stochastic_affinity(C, bandwidth=1.0).trace
    for k in (1, 5, 9):
        assert drot.doubly_stochastic_affinity(C, bandwidth=1.0, tol=trace[k - 1]).n_iter == k


@pytest.mark.parametrize("kind", ["gaussian", "scales", "clusters"])
def test_bandwidth_costs_less_than_a_second_plan(kind):
    """The potentials of one bandwidth start the next: to find it takes 1.6 times the iterations
    that a given one takes, and never twice as many."""
    C, shares = squares(kind, 3, 24), []
    for xi in (1.3, 3.0, 8.0, 15.0, 22.0):
        found = drot.doubly_stochastic_affinity(C, perplexity=xi)
        given = drot.doubly_stochastic_affinity(C, bandwidth=found.nu)
        torch.testing.assert_close(given.plan, found.plan, rtol=0, atol=1e-8)
        shares.append(found.n_iter / given.n_iter)
        assert found.passes <= found.n_iter + 16
    assert max(shares) < 2 and sum(shares) / 5 < 1.85  # 1.81 and 1.68


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 8, 13, 21])
def test_budget_of_a_bandwidth(max_iter):
    """Sinkhorn's iterations of all bandwidths share it; the certificate is of the plan returned,
    of its rows or of their mean perplexity, whichever is worse."""
    ask = {"perplexity": 6.0, "tol": 1e-13, "max_iter": max_iter, "on_failure": "ignore"}
    seen: list[tuple[int, float]] = []
    found = drot.doubly_stochastic_affinity(
        squares("scales", 4, 20), callback=lambda *news: seen.append(news), **ask
    )
    assert found.n_iter == max_iter == len(found.trace) and not found.converged
    assert seen == list(enumerate(found.trace, start=1))
    rows = float((found.plan.sum(dim=1) - 1).abs().max())
    mean = abs(float(found.perplexity.log().mean()) - math.log(6.0))
    assert found.residual == pytest.approx(max(rows, mean), rel=1e-6)


def test_damping_is_two_thirds_unless_told():
    C = squares("gaussian", 5, 12)
    solve = functools.partial(drot.doubly_stochastic_affinity, C, bandwidth=1.0)
    assert solve().trace == solve(damping=2 / 3).trace
    for damping in (1e-3, 0.999):
        solve(damping=damping, on_failure="ignore")


@pytest.mark.parametrize("scale", [1e-3, 5.0, 1e3])
def test_symmetry_of_a_cost_is_up_to_rounding(scale):
    """One part in 10^8 of the entry, or of the median of the rows where that is more."""
    C = squares("gaussian", 6, 9, 2)
    C *= scale / C.max()
    near = C.clone()
    near[2, 5] = near[5, 2] = 0.1 * C.median(dim=1).values[[2, 5]].min()
    for M, size in ((C, C[2, 5]), (near, near.median(dim=1).values[[2, 5]].min())):
        assert size > 1.5 * near[2, 5]
        good, bad = M.clone(), M.clone()
        good[2, 5] += 0.9e-8 * size
        bad[2, 5] += 1.1e-8 * size
        assert drot.doubly_stochastic_affinity(good, bandwidth=scale, tol=1e-6).converged
        with pytest.raises(ValueError, match=r"entries \(2, 5\) and \(5, 2\)"):
            drot.doubly_stochastic_affinity(bad, bandwidth=scale)


@pytest.mark.parametrize("start", [-8.0, 8.0])
@pytest.mark.parametrize("xi", [1.3, 5.0, 11.0])
def test_poor_start_costs_iterations_no_more(monkeypatch, start, xi):
    """From e^8 times too much or too little the same bandwidth is reached."""
    C = squares("scales", 3, 12)
    wanted = drot.doubly_stochastic_affinity(C, perplexity=xi).nu
    far = (math.log(wanted) + start, [0.0])
    monkeypatch.setattr(doubly_stochastic, "mean_bandwidth", lambda *_: far)
    found = drot.doubly_stochastic_affinity(C, perplexity=xi)
    assert found.nu == pytest.approx(wanted, rel=1e-6) and found.n_iter < 120


@pytest.mark.parametrize(
    ("kind", "seed", "n", "tol"),
    [("duplicates", 2, 16, 1e-9), ("scales", 0, 16, 1e-14), ("gaussian", 3, 12, 1e-14)],
)
def test_gap_is_trusted_only_beyond_the_residual(kind, seed, n, tol):
    """Near the solution the plan is balanced before its entropy is believed, and it can be
    balanced so well that the search goes on, down to rounding."""
    for xi in (3.0, n - 0.5):
        found = drot.doubly_stochastic_affinity(squares(kind, seed, n), perplexity=xi, tol=tol)
        assert found.converged and found.n_iter < 80
