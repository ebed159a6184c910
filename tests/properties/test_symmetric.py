"""The symmetric entropic affinity: what must hold for every cloud."""

import math

import drot
import numpy as np
import oracles
import pytest
import torch
from clouds import cloud
from drot import symmetric_entropic_affinity as solve
from drot.affinities import symmetric
from drot.affinities.symmetric_dual import Dual
from drot.costs.array import as_pairwise
from plans import cloud_cost, in_tiles, squares

each_block = pytest.mark.parametrize("block", [None, 3])


def errors(affinity, xi) -> float:
    """The optimality conditions, read from the plan alone in NumPy."""
    plan, slack = affinity.plan.numpy(), affinity.slack.numpy()
    safe = np.where(plan > 0, plan, 1.0)
    entropy = -(plan * (np.log(safe) - 1)).sum(axis=1)
    gap = np.log(np.broadcast_to(xi, len(plan))) + 1 - entropy
    owed = np.where(slack, np.maximum(gap, 0), np.abs(gap))
    assert np.array_equal(plan, plan.T) and (plan >= 0).all()
    return float(max(owed.max(), np.abs(plan.sum(axis=1) - 1).max()))


@pytest.mark.parametrize("longer, tries", [(1.0, 1), (1.7, 1), (1.9, 2), (6.0, 2)])
def test_a_last_step_may_overshoot_but_not_by_as_much_as_it_gains(longer, tries, monkeypatch):
    """Where the value has no digits left, the slope at the end of a step says whether it rose."""
    C, damped, clipped = cloud_cost(1, 18), [], symmetric._Newton._clipped

    def noted(self, damping):
        damped.append(damping)
        return clipped(self, damping) * (1.0 if damping else longer)

    start = drot.entropic_affinity(C, perplexity=5.0)
    dual = Dual(as_pairwise(C), torch.full((18,), math.log(5) + 1).double())
    run = symmetric._Newton(dual, start.eps, start.lam, 1e-9)
    next(residual for _, residual in run.steps() if residual < 1e-6)
    monkeypatch.setattr(symmetric._Newton, "_clipped", noted)
    assert run._step() and len(damped) == tries and run.state.residual < 1e-6


@pytest.mark.parametrize("max_iter", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["scales", "duplicates", "line", "triples"])
def test_certificate_of_an_unfinished_plan(kind, max_iter):
    """Stopped early, the residual is that of the plan that is handed back."""
    xi = 1.5 if kind == "triples" else 5.0
    C = squares([-1, 0, 1, 9, 10, 11]) if kind == "triples" else squares(cloud(kind, 9, 20, 3))
    affinity = solve(C, perplexity=xi, tol=1e-15, max_iter=max_iter, on_failure="ignore")
    assert not affinity.converged and affinity.n_iter == max_iter == len(affinity.trace)
    assert (np.diff([0, *affinity.work]) > 0).all() and len(affinity.work) == max_iter
    assert affinity.work[-1] == affinity.passes + affinity.products
    if (affinity.free >= 0).all():
        assert affinity.residual == pytest.approx(errors(affinity, xi), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("kind", "seed", "n"), [("scales", 12, 6), ("duplicates", 15, 12)])
def test_a_step_that_leads_down_is_damped(kind, seed, n, monkeypatch):
    """Newton's step aims at perplexities and may lower the dual: it is not tried, a damped one is.

    Rare: 14 of 7200 problems on random clouds have one, most of a perplexity just below n.
    """
    slopes, passes, clipped = [], [], symmetric._Newton._clipped

    def noted(self, damping):
        step = clipped(self, damping)
        assert not slopes or slopes[-1] > 0 or (damping > 0 and self.dual.passes == passes[-1])
        slopes.append(float((self._gradient(self.state) * step).sum()))
        passes.append(self.dual.passes)
        return step

    monkeypatch.setattr(symmetric._Newton, "_clipped", noted)
    xi = 1 + 0.97 * (n - 1)
    assert errors(solve(squares(cloud(kind, seed, n, 3)), perplexity=xi), xi) <= 2e-9
    assert min(slopes) < 0


@pytest.mark.parametrize("unit", [-22, -20, -19, -9, 0, 12])
def test_units_of_float32(unit):
    """Blobs far apart on a line: duals of 2^-45 of the cost keep their squares in range."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3, 1))[np.arange(300) % 3] * 1e3 + rng.normal(size=(300, 1))
    cost = drot.sqeuclidean(torch.tensor(X, dtype=torch.float32) * 2.0**unit)
    assert solve(cost, perplexity=1.5).converged


def test_slack_rows_at_no_cost_share_by_symmetry():
    """Points 0 and 2 cost each other nothing, but are no copies: what they keep is not the same."""
    C = np.array([[0.0, 1, 0], [1, 0, 2], [0, 2, 0]])
    affinity = solve(C, perplexity=2.3)
    assert affinity.slack.tolist() == [True, False, True] and errors(affinity, 2.3) <= 2e-9
    conic = oracles.symmetric_entropic_transport(C, 2.3)
    plan, free = affinity.plan.numpy(), affinity.free.numpy()
    assert (plan * C).sum() == pytest.approx(conic.value, abs=1e-8)
    np.testing.assert_allclose(plan[1], conic.plan[1], atol=1e-6)
    np.testing.assert_allclose(np.diag(plan)[[0, 2]], free[[0, 2]], rtol=1e-12)
    assert plan[0, 2] == pytest.approx(math.sqrt(free[0] * free[2]), rel=1e-12)


@each_block
@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
def test_one_less_the_adjacency(share, block):
    """Costs of 0 along edges: a plan of least cost where edges make cliques, else one sentence."""
    rng, slack = np.random.default_rng(0), 0
    for trial in range(12):
        n = int(rng.integers(5, 9))
        club = rng.integers(0, 4, size=n)
        C = (club[:, None] != club) * (1.0 + np.add.outer(rng.random(n), rng.random(n)))
        C = C + C.T
        ties = (C == 0).sum(axis=1).max()
        xi = ties + share * (n - ties)
        affinity = solve(in_tiles(C, block), perplexity=xi)
        slack += int(affinity.slack.sum())
        assert errors(affinity, xi) <= 2e-9
        if block is None and trial % 4 == 0:
            conic = oracles.symmetric_entropic_transport(C, xi)
            assert (affinity.plan.numpy() * C).sum() == pytest.approx(conic.value, abs=1e-7)
        i, j = np.argwhere(C > 0)[0]
        C[[i, j]] = C[:, [i, j]] = 0.0  # a path by way of every other point
        C[i, j] = C[j, i] = 1.0
        with pytest.raises(ValueError, match="or be copies"):
            solve(in_tiles(C, block), perplexity=xi)
    assert slack > 5 * (share < 0.5)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@each_block
def test_plan_of_a_gram_cost_has_the_residual_that_is_stated(offset, block):
    """The origin may lie far away: the plan handed out is that of the cost that was solved, here
    and with one bandwidth, of which f is half of lam."""
    X = torch.tensor(cloud("gaussian", 0, 60, 3)) + offset
    C = -(X @ X.T)
    C = (C + C.T) / 2
    found = solve(in_tiles(C, block), perplexity=10.0)
    cases = [(found, found.lam, found.gamma, errors(found, 10.0))]
    for ask in ({"bandwidth": 1.0}, {"perplexity": 10.0}):
        found = drot.doubly_stochastic_affinity(in_tiles(C, block), **ask)
        off = float((found.plan.sum(dim=1) - 1).abs().max())
        cases.append((found, 2 * found.f, torch.full_like(found.f, found.nu), off))
    for affinity, lam, gamma, off in cases:
        assert off <= affinity.residual + 1e-12 <= 1.1e-9
        assert torch.equal(affinity.plan, affinity.plan.T)
        u, s = (v[:, None] + v for v in (lam, gamma))
        digits = 20 * 2.3e-16 * float(C.abs().max() / gamma.min())
        torch.testing.assert_close((u - 2 * C) / s, affinity.log_plan, rtol=1e-12, atol=digits)


def test_perplexity_that_float32_takes_for_one():
    found = solve(squares([0, 1, 3]).astype(np.float32), perplexity=1 + 1e-9)
    assert found.residual <= 1e-4
    np.testing.assert_allclose(found.plan, np.eye(3), atol=1e-3)


def test_entropy_of_a_row_in_debt_is_that_of_its_others():
    """There is no logarithm of a negative weight; entropy to spare is no offence."""
    C = 4 * (1 - torch.eye(11).double())  # a star: ten points, and one in the middle
    C[0, 1:] = C[1:, 0] = 1.0
    middle, q = torch.arange(11) == 0, (0.88 - math.sqrt(0.256)) / 2.16
    gamma = -2 / math.log(q) * (~middle).double()
    given = gamma, gamma * math.log(0.12 / q), middle  # where the ten rows sum to 1
    dual = Dual(as_pairwise(C), torch.ones(11).double())
    point = dual.at(*given)
    assert float(point.free[0]) == pytest.approx(-0.2, rel=1e-7)
    assert float(point.entropy[0]) == pytest.approx(1 - 1.2 * math.log(0.12), rel=1e-7)
    dual.target = torch.where(middle, 1.0, point.entropy)  # the ten have what is asked for
    assert dual.at(*given).residual == pytest.approx(0.2, rel=1e-7)
