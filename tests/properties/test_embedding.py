"""What holds of every embedding: descent, reproducibility, starts, results, errors."""

from __future__ import annotations

import dataclasses
import itertools
import math

import drot
import numpy as np
import pytest
import torch
from clouds import cloud
from drot import load
from drot.embeddings.descent import lbfgs, metric_of, radius
from drot.embeddings.embed import Embedding, embed
from drot.embeddings.losses import BernoulliLoss, Evaluation, SNEkhornLoss, SNELoss
from drot.embeddings.methods import sne, snekhorn
from drot.embeddings.starts import apart, random_start, spectral_start
from drot.spectral.methods import pca_start
from objectives import METHODS, SOFTMAX, A, B, fuzzy, joint, objective, run, stochastic

LOOSE = {"on_failure": "ignore"}


def plan(n: int = 40) -> torch.Tensor:
    """Doubly stochastic."""
    return stochastic(n).plan


def same(left: Embedding, right: Embedding) -> None:
    """Equal to the bit."""
    for field in dataclasses.fields(left):
        a, b = getattr(left, field.name), getattr(right, field.name)
        assert type(a) is type(b)
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


# ---------------------------------------------------------------------------------- descent


@pytest.mark.parametrize("loss", [SNELoss, SOFTMAX["t-sne"][1], SOFTMAX["sne"][1]])
def test_mass(loss):
    """F, its gradient and the constant are proportional to the mass; residuals are not."""
    P, Z = joint(40), random_start(40)
    one, many = (loss(c * P) for c in (1.0, 1e-3))
    a, b = one.evaluate(Z), many.evaluate(Z)
    assert b.value == pytest.approx(1e-3 * a.value) and a.value > 1
    torch.testing.assert_close(b.gradient, 1e-3 * a.gradient)
    assert (b.value + many.constant) == pytest.approx(1e-3 * (a.value + one.constant))
    runs = [embed(each, Z, max_iter=5, **LOOSE) for each in (one, many)]
    assert runs[1].trace == pytest.approx(runs[0].trace, rel=1e-6)
    torch.testing.assert_close(runs[1].Z, runs[0].Z)


@pytest.mark.parametrize("solver", ["lbfgs", "spectral"])
@pytest.mark.parametrize("name", METHODS)
def test_descent_is_monotone(name, solver):
    """F falls at every iteration, and what is reported is what was."""
    seen = []
    found = run(
        name, init="random", solver=solver, max_iter=600, tol=1e-3, **LOOSE,
        callback=lambda *args: seen.append(args),
    )  # fmt: skip
    # what rounding and the tolerance of the row sums leave open
    assert (np.diff(found.values) <= 1e-9 * abs(found.value)).all()
    assert found.values[-1] < found.values[0] - 0.1
    assert [step[0] for step in seen] == list(range(found.n_iter + 1))
    assert tuple(step[1] for step in seen) == found.trace and found.trace[-1] == found.residual
    assert tuple(step[3] for step in seen) == found.values and found.values[-1] == found.value
    torch.testing.assert_close(seen[-1][2] - seen[-1][2].mean(dim=0), found.Z)
    sizes = [radius(step[2]) for step in seen]
    moves = [radius(new[2] - old[2]) for old, new in itertools.pairwise(seen)]
    shares = [move / size for move, size in zip(moves, sizes, strict=False)]
    assert max(shares) == pytest.approx(0.1)  # no longer, and this is what holds the steps back
    assert 0.1 < sizes[0] < 0.2  # two coordinates of standard deviation 0.1
    if solver == "lbfgs":
        assert found.converged and found.residual <= 1e-3
        assert found.passes <= 1.5 * found.n_iter + 10


@pytest.mark.parametrize("name", SOFTMAX)
def test_residual(name):
    """The gradient, by finite differences, over that of <P, C_Z>, by automatic differentiation."""
    loss = objective(name)
    found = embed(loss, "random", max_iter=3, **LOOSE)
    moves = 1e-5 * torch.eye(24, dtype=torch.float64).reshape(24, 12, 2)
    up, down = (
        np.array([loss.evaluate(found.Z + s * move, tol=1e-12).value for move in moves])
        for s in (1, -1)
    )
    slopes = (up - down) / 2e-5
    Z = found.Z.clone().requires_grad_()
    D = (Z[:, None] - Z).square().sum(dim=2)
    (loss.plan * (torch.log1p(D) if loss.kernel == "student" else D)).sum().backward()
    assert found.residual == pytest.approx(np.linalg.norm(slopes) / float(Z.grad.norm()), rel=1e-4)
    assert found.growth == pytest.approx(-slopes @ found.Z.flatten().numpy() / loss.mass, rel=1e-4)
    assert found.size == pytest.approx(float(found.Z.square().sum(dim=1).mean().sqrt()), rel=1e-12)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
@pytest.mark.parametrize("name", ["SNE", "TSNE", "LargeVis", "UMAP", "SNEkhorn", "TSNEkhorn"])
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


def test_the_unit_of_the_map_changes_nothing():
    """The curve of another length, and a map as much larger: the same residual; also of a plan
    in another unit, and of one whose points do not attract."""
    Z = 3 * random_start(30)
    Z -= Z.mean(dim=0)

    def residual(loss, Z):
        return loss.evaluate(Z).residual(radius(Z), loss.mass)

    curves = (
        (BernoulliLoss(fuzzy(30), "curve", a=A * s ** (-2 * B), b=B, guard=1e-3 * s * s), s * Z)
        for s in (1.0, 64.0)
    )
    one, other = (residual(*curve) for curve in curves)
    assert other == pytest.approx(one, rel=1e-9)
    one, other = (residual(SNELoss(c * joint(30), "student"), Z) for c in (1.0, 1e6))
    assert other == pytest.approx(one, rel=1e-9)
    push = random_start(30)
    for s in (1.0, 1e6):
        alone = Evaluation(value=0.0, attraction=0 * push, repulsion=push / s).residual(s, 2.0)
        assert alone == pytest.approx(float(push.norm()) * 30**0.5 / 2)


@pytest.mark.parametrize("growth", [0.01, 0.5])
def test_steps_do_not_enlarge_a_map_for_little(growth):
    """A step grows the map only where that is its share of the slope; else its size stays."""
    P = drot.symmetrize(
        drot.entropic_affinity(drot.sqeuclidean(cloud("gaussian", 2, 80, 5)), 3, diagonal="drop")
    )
    loss, start = SNELoss(P, "student"), spectral_start(P)
    shares = {0.0: [], growth: []}
    for least, grown in shares.items():
        steps = lbfgs(lambda Z, warm: loss.evaluate(Z), start, metric_of(P), 10, 0.1, least)
        for old, new in itertools.pairwise(itertools.islice(steps, 120)):
            s, g, Z = new.Z - old.Z, old.found.gradient, old.Z
            rate = float((s * Z).sum() / Z.square().sum())
            assert float((g * s).sum()) < 0
            if rate > 1e-9:
                grown.append(abs(rate * float((g * Z).sum()) / float((g * s).sum())))
    assert min(shares[growth]) >= growth * (1 - 1e-6) and min(shares[0.0]) < growth


@pytest.mark.parametrize("name", ["snekhorn", "t-sne"])
def test_solvers_end_alike(name):
    """From one start near a minimum, all three solvers find it."""
    start = 0.95 * run(name, init="random", tol=1e-4).Z
    first, *others = [
        run(name, init=start, solver=solver, tol=1e-4, learning_rate=0.01, max_iter=20_000)
        for solver in ("lbfgs", "spectral", "adam")
    ]
    for end in others:
        assert end.value == pytest.approx(first.value, rel=2e-4)
    assert first.n_iter < others[1].n_iter  # a seventh to a fifteenth


def unit(g):
    """The metric B = I."""
    return g.clone()


@pytest.mark.parametrize("memory", [0, 5])
@pytest.mark.parametrize(("slope", "trials"), [(1.0, 30), (0.0, 0)])
def test_descent_ends_where_no_step_lowers(memory, slope, trials):
    """A slope that lies (the value rises against it): the start, after all trials. No slope:
    there is no direction to try."""
    lengths = []

    def evaluate(Z, warm):
        lengths.append(float(Z[0, 0]) - 1)
        return Evaluation(value=float(Z.sum()), attraction=0 * Z, repulsion=slope + 0 * Z)

    start = torch.ones(3, 2, dtype=torch.float64)
    steps = list(lbfgs(evaluate, start, unit, memory))
    assert len(steps) == 1 and torch.equal(steps[0].Z, start)
    assert lengths == [0.0, *(2.0**-k for k in range(trials))]


def test_descent_ends_where_a_fresh_direction_does_too():
    """Where the direction of L-BFGS lowers nothing, what it learned is forgotten, once; where
    the plain one does not either, that is the end."""
    center, calls = torch.tensor([[0.3, -0.2]], dtype=torch.float64), []
    scale = torch.tensor([[1.0, 7.0]], dtype=torch.float64)

    def evaluate(Z, warm):
        calls.append(Z)
        wall = 1.0 if len(calls) > 8 else 0.0  # from the ninth evaluation on all is worse
        value = float((scale * (Z - center) ** 2).sum()) / 2 + wall
        return Evaluation(value=value, attraction=scale * (Z - center), repulsion=0 * Z)

    steps = list(lbfgs(evaluate, torch.zeros(1, 2, dtype=torch.float64), unit, 5))
    values = [step.found.value for step in steps]
    assert len(steps) > 2 and max(values) < 1 and (np.diff(values) < 0).all()
    assert len(calls) == 8 + 2 * 30  # two directions in vain


@pytest.mark.parametrize("kernel", ["gaussian", "student"])
def test_plan_of_an_embedding_that_has_none(kernel, monkeypatch):
    """Points that are not finite, or a budget spent: how far off the rows are, and why."""
    loss, Z = SNEkhornLoss(plan(), kernel), random_start(40, random_state=2)
    with pytest.raises(drot.NotConverged, match="row sums are nan off after 1 products; the embed"):
        loss.evaluate(Z * math.nan)
    D = torch.cdist(Z, Z).square()
    K = torch.exp(-D) if kernel == "gaussian" else 1 / (1 + D)
    f, damping = -K.sum(dim=1).log() / 2, 2 / 3
    for most in (1, 2):
        sums = f.exp() * (K @ f.exp())
        monkeypatch.setattr(drot._core.sinkhorn, "_MOST", most)
        says = f"row sums are {(sums - 1).abs().max():.1e} off after {most} products"
        with pytest.raises(drot.NotConverged, match=f"^the plan of the embedding: {says}"):
            loss.evaluate(Z, tol=1e-9)
        f = f - damping * sums.log()
    monkeypatch.undo()
    assert loss.evaluate(Z, tol=1e-9).products > 3


# -------------------------------------------------------------------------- reproducibility
@pytest.mark.parametrize("init", ["random", "spectral"])
def test_same_seed_same_bits(init, device):
    """Twice the same call, on one device: equal to the bit. Another seed: another embedding."""
    options = {"init": init, "max_iter": 30, **LOOSE}
    P = plan().to(device)
    first, again = (snekhorn(P, random_state=3, **options) for _ in range(2))
    same(first, again)
    assert first.Z.device.type == device
    generator = torch.Generator().manual_seed(3)
    drawn = [snekhorn(P, random_state=generator, **options).Z for _ in range(2)]
    if init == "random":
        assert not torch.equal(*drawn)  # a generator moves on
        assert not torch.equal(snekhorn(P, random_state=4, **options).Z, first.Z)


def test_no_side_effects():
    """Plans, starts and the global generators are left as they were."""
    P, Z = plan(), random_start(40)
    before = P.clone(), Z.clone(), torch.random.get_rng_state(), np.random.get_state()  # noqa: NPY002
    for solver in ("lbfgs", "spectral", "adam"):
        for init in (Z, "random", "spectral"):
            snekhorn(P, init=init, solver=solver, max_iter=3, **LOOSE)
    pca_start(Z)
    assert torch.equal(P, before[0]) and torch.equal(Z, before[1])
    assert torch.equal(torch.random.get_rng_state(), before[2])
    assert (np.random.get_state()[1] == before[3][1]).all()  # noqa: NPY002


# ---------------------------------------------------------------------------------- starts
def clusters(dtype: torch.dtype = torch.float64, block: int | None = None):
    """The symmetric entropic affinity of three clusters that exchange no mass."""
    X = torch.from_numpy(cloud("gaussian", 1, 60, 4)) + 50.0 * torch.eye(4)[torch.arange(60) % 3]
    return drot.symmetric_entropic_affinity(drot.sqeuclidean(X.to(dtype), block=block), 8)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kernel", ["gaussian", "student"])
def test_a_collapsed_start_is_left(kernel, dtype, device):
    """Spectral or given, dense or in tiles; another seed, another noise."""
    P = clusters(dtype).plan.to(device)
    start = spectral_start(P)
    near = torch.cdist(start, start)[P > 1e-3]
    assert near.max() < 1e-2  # each cluster in one place
    options = {"kernel": kernel, "max_iter": 60, **LOOSE}
    collapsed = SNEkhornLoss(P, kernel).evaluate(300.0 * start).value
    runs = [snekhorn(P, **options), snekhorn(P, init=start, **options)]
    runs.append(snekhorn(P, init=start, random_state=1, **options))
    if device == "cpu":
        runs.append(snekhorn(clusters(dtype, block=16), **options))
    for found in runs:
        assert found.value < collapsed - 1
        assert found.Z.dtype == dtype and found.Z.device.type == device
    assert not torch.equal(runs[1].Z, runs[2].Z)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_leaves_a_collapsed_start(name):
    """Points that all are in one place, and a slope of zero: the noise is all there is."""
    place = torch.full((40, 2), 7.0, dtype=torch.float64)
    found = run(name, init=place, max_iter=40, **LOOSE)
    assert found.n_iter > 5 and found.value < found.values[0] - 1
    assert torch.pdist(found.Z).min() > 0


def test_other_starts_stay_as_they_are():
    """To the bit; so does what an earlier run ended with, and who has no tie."""
    loss = objective("t-snekhorn", 40)
    for Z in (random_start(40), 1e-9 * random_start(40), pca_start(cloud("gaussian", 0, 40, 5))):
        Z = Z - Z.mean(dim=0)
        assert apart(Z, loss.attraction, 0) is Z
    loss = SNEkhornLoss(clusters().plan, "student")
    start = spectral_start(loss.plan)
    ended = embed(loss, start, max_iter=1, **LOOSE)
    collapsed = dataclasses.replace(ended, Z=start, dual=None)
    first = embed(loss, collapsed, max_iter=1, **LOOSE).values[0]
    assert first == loss.evaluate(start, tol=2e-5).value
    alone = torch.block_diag(torch.eye(2), torch.full((4, 4), 0.2)).double()
    Z = torch.tensor([[5.0, 1.0], [-5.0, 3.0], *4 * [[0.0, -1.0]]]).double()
    moved = apart(Z, alone, 0)
    assert torch.equal(moved[:2], Z[:2])  # each tied to itself only
    steps = (moved - Z)[2:].norm(dim=1) / Z.square().sum(dim=1).mean().sqrt()
    assert ((steps > 0) & (steps < 0.05)).all()
    assert torch.equal(Z[2], torch.tensor([0.0, -1.0]).double())  # not written into
    # a point that holds nearly all its mass itself still has neighbours
    P = 0.999 * torch.eye(8).double() + 0.001 * clusters().plan[::3, ::3][:8, :8]
    Z = random_start(8) - random_start(8).mean(dim=0)
    assert apart(Z, P, 0) is Z


def test_starts():
    """Random starts are standard normal, the others centred with a first variance of 1."""
    Z = random_start(4000, n_components=3, random_state=1)
    assert Z.shape == (4000, 3) and Z.dtype == torch.float64
    np.testing.assert_allclose(Z.mean(dim=0), 0, atol=0.06)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(3), atol=0.08)
    single = random_start(4000, n_components=3, random_state=1, dtype=torch.float32)
    assert torch.equal(single, Z.float())
    X = cloud("gaussian", 0, 50, 4) * [5.0, 3.0, 1.0, 1.0]
    P = drot.gaussian_affinity(drot.sqeuclidean(X), bandwidth=20.0)
    for start in (pca_start(X), spectral_start(P)):
        assert start.shape == (50, 2)
        np.testing.assert_allclose(start.mean(dim=0), 0, atol=1e-10)
        assert float(start[:, 0].square().mean()) == pytest.approx(1)


def test_spectral_start_is_an_eigenvector():
    """W z = nu D z for the two largest nu below 1, W the plan without its diagonal."""
    W = plan(30).fill_diagonal_(0).numpy()
    D = W.sum(axis=1)
    values, vectors = np.linalg.eigh(W / np.sqrt(np.outer(D, D)))
    assert values[-1] == pytest.approx(1)
    expected = (vectors / np.sqrt(D)[:, None])[:, [-2, -3]]
    expected -= expected.mean(axis=0)
    Z = spectral_start(plan(30)).numpy()
    cosines = abs((Z * expected).sum(axis=0))
    cosines /= np.linalg.norm(Z, axis=0) * np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(cosines, 1, atol=1e-8)


# ---------------------------------------------------------------------------------- results
@pytest.mark.parametrize("name", ["t-snekhorn", "t-sne"])
def test_save_and_load(name, tmp_path):
    """What was saved and loaded is the same to the bit, and holds numbers only."""
    found, path = run(name, max_iter=5, **LOOSE), tmp_path / "embedding.npz"
    found.save(path)
    same(load(path), found)
    assert list(tmp_path.iterdir()) == [path]
    with np.load(path, allow_pickle=False) as file:
        assert all(array.dtype != object for array in file.values())
    np.savez(path, kind=np.array("Sketch"), Z=np.eye(2))
    with pytest.raises(ValueError, match="does not hold a result saved by drot"):
        load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="does not hold a result"):
        load(path)


def test_results_are_frozen():
    """No field can be set; Z is centred; the text is short."""
    found = snekhorn(plan())
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.Z = None
    assert found.Z.mean(dim=0).abs().max() < 1e-12 and found.converged is True
    assert "Embedding(40 x 2" in repr(found) and len(repr(found)) < 200


def test_resume(tmp_path):
    """A run that stopped early and was saved goes on to the end that one run reaches."""
    options = {"init": "random", "tol": 1e-5}
    whole = snekhorn(plan(), **options)
    part = snekhorn(plan(), max_iter=10, **LOOSE, **options)
    assert not part.converged and part.n_iter == 10
    part.save(tmp_path / "part.npz")
    rest = snekhorn(plan(), init=load(tmp_path / "part.npz"), tol=1e-5)
    assert rest.values[0] == pytest.approx(part.value, abs=1e-9)  # it starts where the other ended
    assert rest.value == pytest.approx(whole.value, abs=1e-6)
    done = snekhorn(plan(), init=whole, tol=1e-5)
    assert done.n_iter == 0 and done.products <= whole.products and done.converged


def test_callback_stops():
    """A callback that returns True ends the run; nothing is raised, nothing claimed."""
    found = snekhorn(plan(), init="random", callback=lambda k, residual, Z, value: k == 4)
    assert found.n_iter == 4 and found.converged is False


@pytest.mark.parametrize("when", [1, 4])
def test_interrupt_keeps_the_work(when, monkeypatch):
    """Ctrl-C returns the last iterate, with a warning; at the first evaluation it goes on."""

    def evaluate(self, Z, **options):
        calls.append(Z)
        if len(calls) == when:
            raise KeyboardInterrupt
        return evaluation(self, Z, **options)

    calls, evaluation = [], SNEkhornLoss.evaluate
    monkeypatch.setattr(SNEkhornLoss, "evaluate", evaluate)
    if when == 1:
        with pytest.raises(KeyboardInterrupt):
            snekhorn(plan(), init="random")
        return
    with pytest.warns(RuntimeWarning, match="interrupted after [12] iterations"):
        found = snekhorn(plan(), init="random")
    assert 1 <= found.n_iter < 3 and not found.converged and found.value == found.values[-1]
    assert len(calls) == when


def test_not_converged():
    """Too small a budget raises, warns or is recorded, as asked."""
    options = {"init": "random", "max_iter": 2}
    with pytest.raises(drot.NotConverged, match=r"embed: the residual is .* after 2 iterations"):
        snekhorn(plan(), **options)
    with pytest.warns(RuntimeWarning, match="embed: the residual"):
        found = snekhorn(plan(), on_failure="warn", **options)
    assert found.n_iter == 2 and not found.converged


# ----------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kernel": "cauchy"}, r"'gaussian', 'student'"),
        ({"normalization": "rows"}, r"'doubly_stochastic', 'sum'"),
        ({"solver": "sgd"}, r"'lbfgs', 'spectral', 'adam'"),
        ({"init": "pca"}, r"'spectral', 'random'"),
        ({"init": np.zeros((7, 2))}, r"init has 7 points .* 40"),
        ({"init": np.zeros(40)}, r"init must be an \(n, p\)"),
        ({"tol": -1.0}, r"tol must be positive"),
        ({"max_iter": 0}, r"max_iter must be a whole number"),
        ({"n_components": 0}, r"n_components must be"),
        ({"on_failure": "shrug"}, r"'raise', 'warn', 'ignore'"),
        ({"learning_rate": 0.0}, r"learning_rate must be"),
        ({"init": "random", "random_state": "x"}, r"random_state"),
    ],
)
def test_errors_of_options(options, says):
    with pytest.raises((ValueError, TypeError), match=says):
        snekhorn(plan(), **options)


def test_other_errors():
    with pytest.raises(ValueError, match=r"'sum', 'rows'"):
        sne(plan(), normalization="max")
    with pytest.raises(ValueError, match=r"'drop', 'keep'"):
        sne(plan(), diagonal="no")
    with pytest.raises(ValueError, match=r"n must be a whole number of at least 2"):
        random_start(1)
    with pytest.raises(ValueError, match=r"n_components .* from 1 to 2"):
        pca_start(np.zeros((5, 2)), n_components=3)
