"""What holds of every embedding: descent, reproducibility, starts, results, errors."""

import dataclasses
import itertools
import math

import drot
import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats
import torch
from clouds import cloud
from drot.embeddings import plans
from drot.embeddings.descent import Evaluation, Step, _search, _without_idle_growth, lbfgs, radius
from drot.embeddings.embed import embed
from drot.embeddings.losses import SNEkhornLoss, SNELoss
from drot.embeddings.methods import snekhorn
from drot.embeddings.starts import random_start, spectral_start, with_noise
from objectives import METHODS, SOFTMAX, joint, objective, run, stochastic

LOOSE = {"on_failure": "ignore"}
N = 60


@pytest.mark.parametrize("name", METHODS)
def test_descent_is_monotone(name):
    """F falls at every iteration, in steps of at most a tenth of the size of the map."""
    seen, ask = [], dict(init="random", max_iter=600, tol=1e-3, **LOOSE)
    found = run(name, callback=lambda *args: seen.append(args), **ask)
    # what rounding and the tolerance of the row sums leave open
    assert (np.diff(found.values) <= 1e-9 * abs(found.value)).all()
    assert found.values[-1] < found.values[0] - 0.1
    number, residual, Z, value = zip(*seen, strict=True)
    assert number == tuple(range(found.n_iter + 1))
    assert residual == found.trace and found.trace[-1] == found.residual <= 1e-3
    assert value == found.values and found.values[-1] == found.value
    torch.testing.assert_close(Z[-1] - Z[-1].mean(dim=0), found.Z)
    shares = [radius(new - old) / radius(old) for old, new in itertools.pairwise(Z)]
    assert max(shares) == pytest.approx(0.1)  # no longer, and this is what holds the steps back
    assert 0.1 < radius(Z[0]) < 0.2  # two coordinates of standard deviation 0.1
    assert found.converged and found.passes <= 1.5 * found.n_iter + 10


@pytest.mark.parametrize("name", SOFTMAX)
def test_residual(name):
    """Of the gradient as a share of that of <P, C_Z>; for both by autograd: test_two_routes."""
    loss = objective(name)
    found = embed(loss, "random", max_iter=3, **LOOSE)
    there = loss.evaluate(found.Z, tol=1e-12)
    share = float(there.gradient.norm() / there.attraction.norm())
    assert found.residual == pytest.approx(share, rel=1e-4)
    growth = -float((there.gradient * found.Z).sum()) / loss.mass
    assert found.growth == pytest.approx(growth, rel=1e-4)
    assert found.size == pytest.approx(float(found.Z.square().sum(dim=1).mean().sqrt()), rel=1e-12)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
@pytest.mark.parametrize("name", ["SNE", "LargeVis", "UMAP", "TSNEkhorn"])
def test_the_unit_of_the_data_changes_nothing(name, unit):
    """When it stops, and where. Of the start only the shape counts where it is small."""
    X, start = cloud("gaussian", 1, 40, 4), random_start(40).numpy()
    options = {"n_neighbors" if name == "UMAP" else "perplexity": 8}
    one, other = (
        getattr(drot, name)(init=size * start, **options).fit(scale * X).result_
        for scale, size in ((1.0, 2.0**-10), (unit, 2.0**-30))
    )
    assert one.converged and one.residual <= 0.02
    assert one.n_iter == other.n_iter and one.residual == pytest.approx(other.residual, rel=1e-6)
    torch.testing.assert_close(one.Z, other.Z, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["snekhorn", "t-snekhorn"])
def test_the_dual_of_a_result(name):
    """It is that of the plan of the embedding: on the diagonal, where C = 0, log Q_ii = 2 f_i."""
    loss = objective(name)
    found = embed(loss, max_iter=30, **LOOSE)
    log_q = loss.latent_plan(found.Z, tol=1e-12).diagonal().log()
    torch.testing.assert_close(2 * found.dual, log_q, atol=1e-4, rtol=0)


def test_the_residual_of_next_to_no_attraction():
    """Two points that a tie of 1e-70 holds: what counts is what growing still lowers."""
    pull = torch.tensor([[1e-70, 0.0], [-1e-70, 0.0]], dtype=torch.float64)

    def residual(push: float, size: float) -> float:
        found = Evaluation(value=0.0, attraction=pull, repulsion=push * pull)
        return found.residual(size, 2.0)

    assert residual(1e70, 1.0) == pytest.approx(1.0)  # norm root 2 of Z and slope, mass 2
    assert residual(1e60, 10.0) < 1e-8 < 1 < residual(1e60, 1e12)


@pytest.mark.parametrize("name", ["UMAP", "LargeVis", "TSNE"])
def test_adam_arrives_at_its_defaults(name):
    """Maps of LargeVis and UMAP are wider: at a tenth of the rate they would be on their way."""
    X = cloud("gaussian", 3, N, 4) + 10 * np.eye(4)[np.arange(N) % 3]
    model = getattr(drot, name)(solver="adam", random_state=0).fit(X)
    assert model.result_.residual <= 0.02 and model.n_iter_ < 1000


def test_descent_ends_where_no_step_lowers():
    """At rest, to rounding, and long before the budget."""
    found = run("t-snekhorn", 12, init="random", tol=1e-300, max_iter=9999, **LOOSE)
    assert 10 < found.n_iter < 5000 and found.residual < 1e-6 and not found.converged


def test_the_line_search():
    """Before a wall it ends as near as it came; rounding of values hides no descent; and where a
    direction of L-BFGS lowers nothing, the plain one is tried, once; then that is the end."""
    zero, one = torch.zeros(1, 1).double(), torch.ones(1, 1).double()

    def found(value, slope) -> Evaluation:
        return Evaluation(value=value, attraction=slope * one, repulsion=zero)

    def wall(Z, warm):  # a slope of -1 as far as 0.7
        return found(-float(Z) if Z < 0.7 else 9.0, -1.0)

    end, _ = _search(wall, Step(zero, wall(zero, None)), one, 9.0)
    assert 0.7 - 1e-6 < float(end) < 0.7
    for digits, gone in ((1e-16, True), (1e-14, False)):

        def rough(Z, warm, digits=digits):  # lowest at 1, by its slope
            return found(1.0 + 4 * digits * (Z > 0).item(), float(Z) - 1)

        lower = _search(rough, Step(zero, rough(zero, None)), one, 9.0)
        assert float(lower[0]) == 1 if gone else lower is None
    scale, calls = torch.tensor([[1.0, 7.0]], dtype=torch.float64), []

    def bowl(Z, warm):
        calls.append(Z)  # from the ninth evaluation on all is worse
        value = float((scale * (Z - 0.3) ** 2).sum()) / 2 + (len(calls) > 8)
        return Evaluation(value=value, attraction=scale * (Z - 0.3), repulsion=0 * Z)

    steps = list(lbfgs(bowl, torch.zeros_like(scale), torch.clone, reach=math.inf))
    assert len(calls) == 8 + 2 * 30 and len(steps) > 2


def test_growth_that_hardly_pays_is_left_out():
    """Below 1 % of what a step gains, by first order, its radial part goes, and nothing else."""
    Z = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double()
    turn = torch.tensor([[0.0, 1.0], [0.0, -1.0]]).double()
    for share, kept in ((0.005, False), (0.02, True)):
        found = Evaluation(value=0.0, attraction=-turn - share * Z, repulsion=0 * Z)
        way = _without_idle_growth(turn + Z, Step(Z, found))
        torch.testing.assert_close(way, turn + Z if kept else turn)
        back = turn - Z / 2  # what shrinks the map stays
        torch.testing.assert_close(_without_idle_growth(back, Step(Z, found)), back)


def test_plan_of_an_embedding_that_has_none():
    """Of points that are not finite: how far off the rows are."""
    loss, Z = objective("snekhorn"), random_start(12)
    with pytest.raises(drot.NotConverged, match="row sums are nan off after 1 products; the embed"):
        loss.evaluate(Z * math.nan)


def clusters(dtype: torch.dtype = torch.float64, block: int | None = None):
    """The symmetric entropic affinity of three clusters that exchange no mass."""
    X = torch.from_numpy(cloud("gaussian", 1, 60, 4)) + 50.0 * torch.eye(4)[torch.arange(60) % 3]
    return drot.symmetric_entropic_affinity(
        drot.sqeuclidean(X.to(dtype), block=block), perplexity=8
    )


@pytest.mark.parametrize(
    ("kernel", "dtype", "place"),
    [("gaussian", torch.float64, "cpu"), ("student", torch.float32, "gpu")],
)
def test_a_collapsed_start_is_left(kernel, dtype, place, request):
    """Spectral or given, dense or in tiles; another seed, another noise."""
    device = place if place == "cpu" else request.getfixturevalue("gpu")
    P = clusters(dtype).plan.to(device)
    start = spectral_start(P)
    assert torch.cdist(start, start)[P > 1e-3].max() < 1e-2  # each cluster in one place
    places = torch.stack([start[c::3].mean(dim=0) for c in range(3)]).repeat(20, 1)
    collapsed = SNEkhornLoss(P, kernel).evaluate(300.0 * places).value
    given = [(P, {}), (P, {"init": start}), (P, {"init": start, "random_state": 1})]
    given += [(clusters(dtype, block=16), {})] * (device == "cpu")
    runs = [snekhorn(plan, kernel=kernel, max_iter=20, **ask, **LOOSE) for plan, ask in given]
    for found in runs:
        assert found.value < collapsed - 1
        assert found.Z.dtype == dtype and found.Z.device.type == device
    assert not torch.equal(runs[1].Z, runs[2].Z)


@pytest.mark.parametrize("parts, size, gap", [(5, 80, 0.1), (40, 9, 0.01)])
@pytest.mark.parametrize("dtype, kept, tiled", [("float64", 1e-7, 1e-5), ("float32", 1e-4, 0.1)])
def test_the_seed_tells_parts_apart(dtype, kept, tiled, parts, size, gap, monkeypatch):
    """Each part of a plan starts in its own place, which the seed decides, and not rounding: in
    another unit and in tiles it is the same, to rounding."""
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(size, 4)) + 80 * rng.normal(size=4) for _ in range(parts)]
    X, starts, passes = torch.from_numpy(np.concatenate(X)).to(getattr(torch, dtype)), [], []
    for unit, block, seed in ((1, None, 0), (3, None, 0), (1, 37, 0), (3, 37, 0), (1, None, 1)):
        monkeypatch.setattr(plans, "_KEPT", 0 if block else 4096)
        cost = drot.sqeuclidean(unit * X, block=block)
        P = drot.entropic_affinity(cost, perplexity=5, diagonal="drop")
        P = plans.as_plan(drot.symmetrize(P) if block is None else P.symmetrized())
        product = P.symmetric_product
        P.symmetric_product = lambda v, f=product: passes.append(0) or f(v)
        starts.append(spectral_start(P, random_state=seed))
    first, again, *tiles, other = starts
    assert (again - first).abs().max() < kept
    assert all((start - first).abs().max() < tiled for start in tiles)
    assert (other - first).abs().max() > 0.1
    assert len(passes) < 300  # of two solves in tiles, of up to 300 each
    places = torch.stack([first[size * c : size * (c + 1)].mean(dim=0) for c in range(parts)])
    assert torch.pdist(places).min() > gap


@pytest.mark.parametrize("method", [drot.sne, drot.tsne, drot.umap])
def test_a_result_in_one_place_is_no_solution(method):
    """There all forces vanish; going on from it sorts the points all the same."""
    P = drot.entropic_affinity(
        drot.sqeuclidean(cloud("gaussian", 1, 40, 4)), perplexity=6, diagonal="drop"
    )
    P = drot.symmetrize(P) if method is drot.umap else P
    found = method(P, random_state=0)
    again = method(P, init=dataclasses.replace(found, Z=1e-8 * found.Z))
    assert again.n_iter > 0 and again.value < found.value + 0.1 * abs(found.value)


def test_points_without_neighbours_tell_no_parts_apart():
    rng = np.random.default_rng(0)
    P = torch.block_diag(*(torch.from_numpy(rng.random((30, 30))) for _ in range(6)))
    P = (P + P.T).fill_diagonal_(0)
    alone = torch.from_numpy(rng.permutation(180)[:150])
    P[alone], P[:, alone] = 0, 0
    assert (spectral_start(P) - spectral_start(3 * P)).abs().max() < 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_the_seed_overrules_no_plan(seed):
    """Clouds in a row that exchange 1e-7 of their mass with the next start in this order."""
    rng = np.random.default_rng(0)
    row = np.repeat(np.arange(8), 40)
    X = rng.normal(size=(320, 3))
    X[:, 0] += 9 * row
    P = drot.entropic_affinity(drot.sqeuclidean(X), perplexity=20, diagonal="drop")
    start = spectral_start(P, random_state=seed)[:, 0]
    assert abs(scipy.stats.spearmanr(row, start).statistic) > 0.95


def test_other_starts_stay_as_they_are():
    """So does what an earlier run ended with, and who has no tie."""
    loss = objective("t-snekhorn", 40)
    for Z in (random_start(40), 1e-9 * random_start(40)):
        Z = Z - Z.mean(dim=0)
        assert with_noise(Z, loss.weights, 0) is Z
    loss = SNEkhornLoss(clusters().plan, "student")
    start = spectral_start(loss.P)
    ended = dataclasses.replace(embed(loss, start, max_iter=1, **LOOSE), Z=start, dual=None)
    first = embed(loss, ended, max_iter=1, **LOOSE).values[0]
    assert first == pytest.approx(loss.evaluate(start, tol=2e-5).value, rel=1e-12)
    alone = torch.block_diag(torch.eye(2), torch.full((4, 4), 0.2)).double()
    Z = torch.tensor([[5.0, 1.0], [-5.0, 3.0], *4 * [[0.0, -1.0]]]).double()
    steps = (with_noise(Z, alone, 0) - Z).norm(dim=1) / Z.square().sum(dim=1).mean().sqrt()
    assert (steps[:2] == 0).all()  # each tied to itself only
    assert ((steps[2:] > 0) & (steps[2:] < 0.05)).all()
    # a point that holds nearly all its mass itself still has neighbours
    P = 0.999 * torch.eye(8).double() + 0.001 * clusters().plan[::3, ::3][:8, :8]
    Z = random_start(8) - random_start(8).mean(dim=0)
    assert with_noise(Z, P, 0) is Z


def test_starts():
    """Random starts are standard normal, the others centred with a first variance of 1."""
    Z = random_start(4000, n_components=3, random_state=1)
    np.testing.assert_allclose(Z.mean(dim=0), np.zeros(3), atol=0.06)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(3), atol=0.08)
    X = cloud("gaussian", 0, 50, 4) * [5.0, 3.0, 1.0, 1.0]
    start = drot.pca_start(X)
    assert start.shape == (50, 2)
    np.testing.assert_allclose(start.mean(dim=0), np.zeros(2), atol=1e-10)
    assert float(start[:, 0].square().mean()) == pytest.approx(1)


def test_spectral_start_is_an_eigenvector():
    """W z = nu D z for the two largest nu below 1, W the plan without its diagonal."""
    W = stochastic(30).plan.fill_diagonal_(0).numpy()
    values, vectors = scipy.linalg.eigh(W, np.diag(W.sum(axis=1)))
    assert values[-1] == pytest.approx(1)
    expected = vectors[:, [-2, -3]] - vectors[:, [-2, -3]].mean(axis=0)
    Z = spectral_start(stochastic(30).plan).numpy()
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-10)
    assert np.square(Z[:, 0]).mean() == pytest.approx(1)
    cosines = (Z * expected).sum(axis=0) / np.linalg.norm(Z, axis=0)
    np.testing.assert_allclose(abs(cosines), np.linalg.norm(expected, axis=0), rtol=1e-8)


@pytest.mark.parametrize("name", METHODS)
def test_size_of_a_start(name):
    """From any size the picture is as good as from size 1, and its slope was small for a reason;
    and so it is from a line, which it leaves."""
    shape = drot.pca_start(cloud("gaussian", 0, N, 5))  # of the cloud of the plan
    line = shape[:, :1] @ torch.tensor([[0.6, 0.8]]).double()
    starts = shape, 1e-30 * shape, (1e200 if "snekhorn" in name else 1e30) * shape, line
    wanted, *others = (run(name, N, init=start, tol=1e-3) for start in starts)
    for found in others:
        assert found.converged and found.n_iter > 5
        assert found.kl < 1.25 * wanted.kl  # 1.15 times, when tried
    across, along = torch.linalg.svdvals(found.Z).flip(0)
    assert across > 0.3 * along  # 0.6 to 0.9; the noise is 0.01


def test_few_points():
    """Three centred points leave their line; two stay, and have a spectral start of their own."""
    Z = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]).double()
    moved = with_noise(Z, torch.full((3, 3), 1 / 3).double(), 0)
    assert torch.linalg.matrix_rank(moved - moved.mean(dim=0)) == 2
    two = drot.tsne([[0, 1.0], [1, 0]], init=[[0.0, 0], [1, 0]], max_iter=1, **LOOSE)
    assert (two.Z[:, 1] == 0).all()
    Z = spectral_start([[0.0, 1.0], [1.0, 0.0]], n_components=1)
    torch.testing.assert_close(Z, torch.tensor([[1.0], [-1.0]], dtype=torch.float64))
    equal = spectral_start(np.ones((5, 5)))  # a plan whose eigenvalues are 0, 1.25, 1.25, ...
    assert equal.is_contiguous() and equal.abs().max() < 10
    alone = SNELoss(np.eye(5), diagonal="keep")  # nobody has a neighbour
    assert embed(alone, np.zeros((5, 2)), **LOOSE).n_iter > 0


@pytest.mark.parametrize("q", [N - 1, N + 5])
def test_more_dimensions_than_points_span(q):
    """From a start by chance an embedding, if only in the dimensions that the points span."""
    found = drot.tsne(joint(N), n_components=q, init="random")
    assert found.converged and found.Z.shape == (N, q)
    assert int((torch.linalg.svdvals(found.Z) > 1e-9 * found.size).sum()) <= N - 1


def test_given_starts_are_left_as_they_were():
    """Positions and earlier results go on from where they are."""
    X = np.random.default_rng(0).normal(size=(36, 4)) + 5 * np.repeat(np.eye(4)[:3], 12, axis=0)
    ask = {"n_neighbors": 6, "random_state": 0, "tol": 0.1}
    part = drot.UMAP(init=np.random.default_rng(3).normal(size=(36, 2)), **ask).fit(X).result_
    kept = part.Z.clone()
    rest = drot.UMAP(init=part, **ask).fit(X)
    assert rest.result_.n_iter == 0 and torch.equal(part.Z, kept)
    np.testing.assert_allclose(rest.embedding_, kept, rtol=1e-12)
