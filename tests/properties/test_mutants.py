"""Facts that a changed line of the package broke and no other test noticed (tests/mutation)."""

from __future__ import annotations

import math
from itertools import islice

import drot
import numpy as np
import pytest
import torch
from drot.affinities.symmetric import _Newton
from drot.affinities.symmetric_dual import Dual
from drot.costs.array import Pairwise, as_pairwise


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ([0.5, -0.5], "-0.5 at row 1$"),
        ([[0.5, 0.5], [-0.25, 1.25], [-1.0, 2.0]], "-0.25 at row 1, column 0$"),
        (1.0, "must be a vector or matrix"),
        (np.ones((2, 0)), "is empty"),
    ],
)
def test_entropy_says_what_is_no_plan(plan, says):
    with pytest.raises(ValueError, match=says):
        drot.row_entropy(plan)


def test_entropy_of_single_entries():
    """A matrix of one column is not empty: each row has its mass in one place."""
    torch.testing.assert_close(drot.row_entropy(np.ones((2, 1))), torch.ones(2).double())


@pytest.mark.parametrize(("one", "other"), [((2, 3), (3, 3)), ((3, 3), (2, 3)), ((3,), (1, 3))])
def test_divergence_wants_equal_shapes(one, other):
    """No row is repeated in silence, whichever of the two is larger."""
    with pytest.raises(ValueError, match="differ in shape"):
        drot.kl_divergence(np.ones(one), np.ones(other))


# ------------------------------------------------------------------- the solver of Chapter 3
LINE = torch.tensor([[0.0, 1, 4], [1, 0, 1], [4, 1, 0]], dtype=torch.float64)


def newton(perplexity: float, gamma, lam, pinned) -> _Newton:
    """The solver at given duals, with no step taken."""
    target = torch.full((3,), math.log(perplexity) + 1, dtype=torch.float64)
    run = _Newton(Dual(as_pairwise(LINE), target), torch.ones(3).double(), lam, 1e-9)
    run.pinned = pinned
    run.point = run.dual.at(gamma, lam, pinned)
    return run


def test_slack_row_that_leaves_keeps_its_weight_on_itself():
    """Where more perplexity is asked for than a slack row has, its gamma turns positive."""
    found = drot.symmetric_entropic_affinity(LINE, 1.5)
    assert found.slack.tolist() == [False, True, False] and found.free[1] > 0.1
    run = newton(2.2, found.gamma, found.lam, found.slack)
    run._sort_rows()
    gamma, lam = run.point.gamma[1], run.point.lam[1]
    assert not run.pinned.any() and gamma > 0
    torch.testing.assert_close((lam / gamma).exp(), found.free[1])


def test_linear_solves_are_as_accurate_as_the_residual_asks():
    """Order 1.6 far from the solution, never more digits than the tolerance needs."""
    run = newton(1.5, torch.ones(3).double(), torch.zeros(3).double(), torch.zeros(3).bool())
    for residual, tol, forcing in [
        (1e-2, 1e-9, 1e-2**0.6),
        (1e-8, 1e-9, 0.01),
        (5.0, 1e-9, 0.3),
    ]:
        run.tol = tol
        run.dual.residual = lambda point, residual=residual: residual
        assert run._forcing() == pytest.approx(forcing)


@pytest.mark.parametrize(("power", "scale"), [(0, 0), (17, 0), (-17, 0), (40, 40), (-60, -60)])
def test_only_extreme_costs_are_scaled(power, scale):
    """By a power of 2 near the largest."""
    n = 10
    cost = 2.0**power * (1 - torch.eye(n, dtype=torch.float64))
    dual = Dual(as_pairwise(cost), torch.ones(n).double())
    assert dual.scale == 2.0**scale and not dual.base.any()
    torch.testing.assert_close(dual.cost.dense(), cost / dual.scale)


# -------------------------------------------------------------------------------- affinities
def test_two_neighbours_are_the_fewest():
    cost = drot.sqeuclidean(np.random.default_rng(0).normal(size=(8, 2)))
    found = drot.entropic_affinity(cost, 1.5, n_neighbors=2)
    torch.testing.assert_close(found.perplexity, torch.full((8,), 1.5).double())
    with pytest.raises(ValueError, match="n_neighbors"):
        drot.entropic_affinity(cost, 1.5, n_neighbors=1)


@pytest.mark.parametrize(
    "how", [{"bandwidth": 2.0}, {"perplexity": 5.0}], ids=["bandwidth", "perplexity"]
)
@pytest.mark.parametrize(
    ("solve", "checks"),
    [(drot.gaussian_affinity, 0), (drot.doubly_stochastic_affinity, 1)],
    ids=["gaussian", "doubly"],
)
def test_passes_of_one_bandwidth_count_evaluations(solve, checks, how):
    """``passes`` counts evaluations of the whole array; a check of symmetry comes on top."""
    points = torch.tensor(np.random.default_rng(0).normal(size=(24, 2)))
    rows_seen = 0

    def evaluate(rows):
        nonlocal rows_seen
        found = torch.cdist(points[rows], points).square()
        rows_seen += len(found)
        return found

    like = torch.zeros(24, 24, dtype=torch.float64)
    found = solve(Pairwise(evaluate, (24, 24), as_pairwise(like), block=7), **how)
    assert found.passes + checks == rows_seen / 24


def test_one_neighbour_tunes():
    """sigma_i is the distance to the nearest other point, the smallest k there is."""
    X = np.random.default_rng(1).normal(size=(9, 2))
    C = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    sigma = np.sqrt(np.sort(C, axis=1)[:, 1])
    found = drot.self_tuning_affinity(C, n_neighbors=1)
    np.testing.assert_allclose(found.plan, np.exp(-C / np.outer(sigma, sigma)))
    with pytest.raises(ValueError, match="n_neighbors"):
        drot.self_tuning_affinity(C, n_neighbors=9)  # there are 8 others


def test_copies_without_a_bandwidth_are_named():
    X = np.random.default_rng(2).normal(size=(6, 2))
    X[4] = X[2]
    with pytest.raises(ValueError, match="row 2 has 1 or more copies"):
        drot.self_tuning_affinity(drot.sqeuclidean(X), n_neighbors=1)


# --------------------------------------------------------------------------- graphs, matchings
@pytest.mark.parametrize(
    ("edges", "weights"),
    [(torch.zeros(1, 2).long(), [1.0, 1.0]), (torch.tensor([[0], [1]]), [-1.0])],
    ids=["one row", "negative"],
)
def test_graph_wants_pairs_and_positive_weights(edges, weights):
    with pytest.raises(ValueError, match=r"\(2, m\)|positive"):
        drot.graphs.Graph(n=3, edges=edges, weights=torch.tensor(weights))


def test_array_of_a_graph_has_two_dimensions():
    with pytest.raises(ValueError, match="square"):
        drot.laplacian(np.zeros((2, 2, 2)))


def test_kernel_gives_a_number_for_every_edge():
    """One number for all edges would be spread over them in silence."""
    with pytest.raises(ValueError, match=r"must return a \(2,\) tensor; got \(\)"):
        drot.mrf_log_density(np.eye(2), [[0, 1], [1, 0]], kernel=lambda d: d.sum())


def test_union_names_the_entry_above_one():
    with pytest.raises(ValueError, match=r"1\.5\) at row 1, column 0"):
        drot.fuzzy_union([[0, 1, 0], [1.5, 0, 0], [0, 0, 0]])


def test_matching_of_copies_in_factors():
    """A factored distance of copies may fall below 0 by rounding; 0 log 0 is still 0."""
    X = np.random.default_rng(0).normal(size=(3, 4))[[0, 0, 1, 1, 2]] + 100
    cost = drot.factored_sqeuclidean(X)
    assert (cost.dense() < 0).any()
    found = drot.gromov_monge(cost, drot.sqeuclidean(X).dense().clamp_min(1e-9), loss="kl")
    assert found.value == pytest.approx(0, abs=1e-6)


def test_gromov_wasserstein_starts_where_it_is_told():
    """A matching of value 0 is kept, and what is no plan with these marginals is refused."""
    pytest.importorskip("ot")
    A = drot.sqeuclidean(np.random.default_rng(3).normal(size=(6, 2))).dense()
    p = torch.tensor([3, 0, 5, 1, 2, 4])
    B = A[p][:, p]
    T = torch.zeros(6, 6, dtype=torch.float64)
    T[p, torch.arange(6)] = 1 / 6
    found = drot.gromov_wasserstein(A, B, init=T)
    assert found.value == pytest.approx(0, abs=1e-12)
    torch.testing.assert_close(found.plan, T)
    eye = torch.eye(6, dtype=torch.float64)
    negative = T + eye - eye.roll(1, 0)  # the marginals of T
    one = torch.zeros(6, 6, dtype=torch.float64)
    one[:, 0] = 1 / 6  # the row sums of T, other column sums
    for wrong in (T[:5], 1.01 * T, negative, one, one.T):
        with pytest.raises(ValueError, match=r"init (must be|has negative)"):
            drot.gromov_wasserstein(A, B, init=wrong)


@pytest.mark.parametrize("wrong", [{"max_iter": 0}, {"tol": 0.0}, {"max_iter": 1.5}])
def test_gromov_wasserstein_wants_limits(wrong):
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        drot.gromov_wasserstein(np.eye(3), np.eye(3), **wrong)


# ------------------------------------------------------------------------------------- scores
def blocks() -> torch.Tensor:
    """Two groups of two points."""
    return torch.block_diag(*[torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)] * 2)


def test_score_of_groups_names_a_negative_entry():
    plan = blocks()
    plan[1, 2] = plan[2, 1] = -0.5
    with pytest.raises(ValueError, match=r"-0\.5\) at row 1, column 2"):
        drot.metrics.spectral_clustering_ari(plan, [0, 0, 1, 1])


@pytest.mark.parametrize(("off", "good"), [(1e-9, True), (1e-4, False)])
def test_score_of_groups_wants_symmetry_up_to_rounding(off, good):
    plan = 5 * blocks()
    plan[0, 1] += off * 5
    if good:
        assert drot.metrics.spectral_clustering_ari(plan, [0, 0, 1, 1]) == 1
    else:
        with pytest.raises(ValueError, match="symmetric"):
            drot.metrics.spectral_clustering_ari(plan, [0, 0, 1, 1])


def test_score_of_groups_counts_groups():
    """One group says nothing of two classes, and there is no fewer; labels are one per row."""
    assert drot.metrics.spectral_clustering_ari(blocks(), [0, 0, 1, 1], n_clusters=1) == 0
    with pytest.raises(ValueError, match="n_clusters"):
        drot.metrics.spectral_clustering_ari(blocks(), [0, 0, 1, 1], n_clusters=0)
    for labels in ([0, 0, 1], [0, 0, 1, 1, 1], [[0, 0, 1, 1]] * 4):
        with pytest.raises(ValueError, match="one label per row"):
            drot.metrics.spectral_clustering_ari(blocks(), labels)


def test_each_constraint_error_is_its_own():
    """Each is the largest violation, over entries or rows, whatever its sign."""
    plan = np.array([[0.5, 0.5, 0.0], [0.2, 0.5, 0.0], [0.0, 0.0, 1.0]])
    found = drot.metrics.constraint_errors(plan, 2.0)
    shannon = np.array([np.log(2), -0.2 * np.log(0.2) - 0.5 * np.log(0.5), 0.0])
    assert found.symmetry == pytest.approx(0.3)
    assert found.row_sum == pytest.approx(0.3)
    assert found.log_perplexity == pytest.approx(
        np.abs(shannon + plan.sum(axis=1) - np.log(2) - 1).max()
    )


@pytest.mark.parametrize("shape", [(4,), (2, 3), (3, 2), (0, 0), (2, 2, 2)], ids=str)
def test_scores_want_a_square(shape):
    with pytest.raises(ValueError, match="square"):
        drot.metrics.constraint_errors(np.full(shape, 0.5), 2.0)


# ---------------------------------------------------------------------------------- objectives
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 1), (4,), (2, 2, 2)], ids=str)
def test_objectives_want_a_square_plan_of_points(shape):
    with pytest.raises(ValueError, match="square"):
        drot.SNELoss(np.full(shape, 0.5))


def test_objectives_name_a_negative_entry():
    plan = np.full((3, 3), 1 / 3)
    plan[1, 2] = -0.25
    with pytest.raises(ValueError, match=r"-0\.25\) at row 1, column 2"):
        drot.SNELoss(plan)


def test_symmetry_of_a_plan_is_up_to_rounding():
    """Of a plan that is not symmetric, the worst pair is named."""
    plan = drot.symmetric_entropic_affinity(drot.sqeuclidean(np.arange(6.0)[:, None]), 2.0).plan
    plan[1, 3] += 1e-8
    drot.SNEkhornLoss(plan)
    plan[1, 3] += 1e-5
    plan[0, 2] += 1e-6
    with pytest.raises(ValueError, match=r"entries \(1, 3\) and \(3, 1\)"):
        drot.SNEkhornLoss(plan)


def test_objective_asks_for_room_before_it_takes_it(monkeypatch):
    """The kernel, and as much again for what is made of it."""
    asked = []
    monkeypatch.setattr(drot.embeddings.losses, "check_fits", lambda shape, *_: asked.append(shape))
    loss = drot.SNELoss((1 - np.eye(5)) / 20)
    Z = torch.arange(10.0, dtype=torch.float64).reshape(5, 2)
    loss.evaluate(Z)
    assert asked == [(5, 10)]
    loss.latent_plan(Z)
    assert asked == [(5, 10), (5, 5)]


# ---------------------------------------------------------------------- semi-relaxed transport
def similarities(n: int = 12, k: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    X = torch.tensor(np.random.default_rng(5).normal(size=(n, 2)))
    return X @ X.T, X[:k] @ X[:k].T


def test_semi_relaxed_says_how_many_iterations_it_took():
    A, B = similarities(40, 8)
    ask = dict(init="random", n_starts=1, tol=1e-300, max_iter=2, random_state=0)
    found = drot.semi_relaxed_gw(A, B, on_failure="ignore", **ask)
    with pytest.raises(drot.NotConverged, match=f"after {found.n_iter} iterations"):
        drot.semi_relaxed_gw(A, B, **ask)
    assert found.n_iter == len(found.trace) - 1 == 2


def test_semi_relaxed_start_is_a_plan():
    """Non-negative, with the weights of the points as row sums."""
    A, B = similarities()
    T = torch.full((12, 4), 1 / 48, dtype=torch.float64)
    drot.semi_relaxed_gw(A, B, init=T)
    negative = T.clone()
    negative[3, :2] += torch.tensor([-0.5, 0.5])
    off = T.clone()
    off[3, 0] += 1e-3
    for wrong in (negative, off, T[:11], T.T):
        with pytest.raises(ValueError, match="init"):
            drot.semi_relaxed_gw(A, B, init=wrong)


@pytest.mark.parametrize("zeros", [True, False])
def test_mirror_descent_starts_inside(zeros):
    """A tenth of a plan with zeros is spread; a positive plan is taken as it is."""
    A, B = similarities()
    w = torch.linspace(1, 2, 12, dtype=torch.float64)
    w /= w.sum()
    plan = torch.zeros(12, 4, dtype=torch.float64)
    plan[torch.arange(12), torch.arange(12) % 4] = w
    if not zeros:
        plan = (plan + w[:, None]) / 5
    seen = []
    drot.semi_relaxed_gw(
        A, B, weights_x=w, init=plan, solver="mirror_descent", refine=False,
        callback=lambda k, gap, T: seen.append(T.clone()), on_failure="ignore",
    )  # fmt: skip
    torch.testing.assert_close(seen[0], 0.9 * plan + 0.1 * w[:, None] / 4 if zeros else plan)


def test_best_start_goes_down_to_the_tolerance():
    """Starts are compared roughly; the lowest is not left at that."""
    A, B = similarities(40, 8)
    found = drot.semi_relaxed_gw(
        A, B, init="random", n_starts=1, random_state=0, solver="mirror_descent", refine=False
    )
    assert 0 < found.residual <= 1e-9
    rough = drot.semi_relaxed_gw(
        A, B, init="random", n_starts=1, random_state=0, solver="mirror_descent", refine=False,
        tol=1e-5,
    )  # fmt: skip
    assert rough.residual > 1e-9 and rough.n_iter < found.n_iter
    assert found.trace[: rough.n_iter] == rough.trace[: rough.n_iter]


def test_budget_holds_for_moves_of_rows_too(monkeypatch):
    """The rows take over at once here, and stop when they have had what was asked for."""
    monkeypatch.setattr(drot.gromov.descent, "_SHORT", 1e9)
    A, B = similarities(40, 8)
    ask = dict(init="random", n_starts=1, random_state=0, on_failure="ignore")
    whole = drot.semi_relaxed_gw(A, B, **ask).n_iter
    assert whole > 4
    for most in range(1, whole):
        assert drot.semi_relaxed_gw(A, B, max_iter=most, **ask).n_iter == most


# ---------------------------------------------------------------------------------- clustering
@pytest.mark.parametrize("refine", [True, False])
def test_barycentre_counts_its_iterations(refine):
    """As many as the trace says, none after the tolerance is met, never more than asked for."""
    A, _ = similarities(30)
    ask = dict(init="random", n_starts=1, random_state=0, refine=refine)
    found = drot.srgw_barycenter(A, 3, **ask)
    assert found.n_iter == len(found.trace) - 1 < 60
    few = drot.srgw_barycenter(A, 3, max_iter=1, tol=1e-300, on_failure="ignore", **ask)
    assert few.n_iter == len(few.trace) - 1 == 1 and not few.converged
    with pytest.raises(drot.NotConverged, match="after 1 iterations"):
        drot.srgw_barycenter(A, 3, max_iter=1, tol=1e-300, **ask)


def test_barycentre_hands_over_only_where_it_refines(monkeypatch):
    A, _ = similarities(30)
    ask = dict(init="random", n_starts=1, random_state=0, refine=False)
    found = drot.srgw_barycenter(A, 3, **ask)
    monkeypatch.setattr(drot.gromov.descent, "_SHORT", 1e9)
    assert drot.srgw_barycenter(A, 3, **ask).n_iter == found.n_iter > 1


def test_barycentre_needs_a_start():
    with pytest.raises(ValueError, match="n_starts"):
        drot.srgw_barycenter(np.eye(4), 2, n_starts=0)


# -------------------------------------------------------------------- distributional reduction
def reduce(**more):
    X = np.random.default_rng(7).normal(size=(24, 3))
    ask = dict(n_prototypes=5, n_components=2, on_failure="ignore", max_iter=20) | more
    return drot.distributional_reduction(
        drot.symmetric_entropic_affinity(drot.sqeuclidean(X), 6), **ask
    )


def test_lowest_end_of_all_starts_is_kept():
    found = reduce(init="random", n_starts=4, random_state=1)
    assert len(found.values) == 4 and len(set(found.values)) > 1
    assert found.trace[-1] == min(found.values)


def test_generator_draws_the_starts():
    """The same state gives the same bits, another others; the first start is that of CDR."""
    first, again, other = (
        reduce(init="random", n_starts=1, random_state=np.random.default_rng(seed))
        for seed in (5, 5, 6)
    )
    assert torch.equal(first.Z, again.Z) and not torch.equal(first.Z, other.Z)
    found = reduce(init="cluster_then_reduce", n_starts=1, random_state=np.random.default_rng(5))
    X = np.random.default_rng(7).normal(size=(24, 3))
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), 6)
    alone = drot.cluster_then_reduce(C, 5, random_state=np.random.default_rng(5))
    assert found.trace[0] == alone.objective


@pytest.mark.parametrize("made", [0, 1])
def test_interrupt_between_starts(monkeypatch, made):
    """What is there is returned with a warning; where there is nothing, the interrupt goes on."""
    starts = drot.distributional.solve.starts

    def broken(*args):
        yield from islice(starts(*args), made)
        raise KeyboardInterrupt

    monkeypatch.setattr(drot.distributional.solve, "starts", broken)
    if not made:
        with pytest.raises(KeyboardInterrupt):
            reduce(init="random")
        return
    with pytest.warns(RuntimeWarning, match="interrupted"):
        found = reduce(init="random")
    assert len(found.values) == 1


def test_kernel_kmeans_needs_a_start():
    """One of each kind is enough."""
    X = torch.tensor([[0.0], [1.0], [9.0], [10.0]], dtype=torch.float64)
    assert drot.kernel_kmeans(X @ X.T, 2, n_starts=1).objective == pytest.approx(0.25)
    with pytest.raises(ValueError, match="n_starts"):
        drot.kernel_kmeans(X @ X.T, 2, n_starts=0)


@pytest.mark.parametrize("labels", [[0, -1, 1], [0, 0.5, 1], [0, 1]])
def test_coarsening_wants_whole_labels(labels):
    with pytest.raises((TypeError, ValueError), match="membership"):
        drot.coarsen(np.eye(3), labels)


def test_scores_take_a_single_point():
    assert drot.metrics.constraint_errors([[1.0]], 1.0) == (0.0, 0.0, 0.0)
