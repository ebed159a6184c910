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


def squares(kind: str, seed: int, n: int, p: int = 3) -> torch.Tensor:
    return drot.sqeuclidean(cloud(kind, seed, n, p)).dense()


# Both solvers of one perplexity, for a cost whose rows are alike.
SOLVERS = {
    "rows": lambda C, xi, **ask: drot.entropic_affinity(C, perplexity=xi, **ask),
    "mean": lambda C, xi, **ask: drot.gaussian_affinity(C, perplexity=xi, **ask),
}


def log_bandwidth(found) -> float:
    return math.log(float(found.nu if hasattr(found, "nu") else found.eps[0]))


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
