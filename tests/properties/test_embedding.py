"""What holds of every embedding: symmetries, descent, reproducibility, results, errors."""

from __future__ import annotations

import dataclasses
import itertools
import math

import drot
import drot.embeddings.losses
import drot.embeddings.plans
import numpy as np
import pytest
import torch
from clouds import cloud, quick
from drot import load
from drot.embeddings.bernoulli import BernoulliLoss
from drot.embeddings.descent import Laplacian, Step, _search, lbfgs, radius
from drot.embeddings.embed import Embedding, embed
from drot.embeddings.losses import Evaluation, SNEkhornLoss, SNELoss
from drot.embeddings.methods import sne, snekhorn, tsne
from drot.embeddings.plans import DensePlan
from drot.embeddings.starts import apart, random_start, spectral_start
from drot.spectral.methods import pca_start
from hypothesis import given
from hypothesis import strategies as st


def plan(n: int = 40, seed: int = 0, diagonal: bool = True) -> torch.Tensor:
    """Symmetric, rows of sum 1 (with the diagonal) or of any sum (without)."""
    cost = drot.sqeuclidean(cloud("gaussian", seed, n, 5))
    if diagonal:
        return drot.doubly_stochastic_affinity(cost, bandwidth=3.0, tol=1e-12).plan
    return drot.symmetrize(drot.entropic_affinity(cost, n / 3, diagonal="drop"))


# Every objective, with a plan that it accepts.
LOSSES = {
    "snekhorn": lambda n=40: SNEkhornLoss(plan(n)),
    "t-snekhorn": lambda n=40: SNEkhornLoss(plan(n), "student"),
    "sum": lambda n=40: SNELoss(plan(n), diagonal="keep"),
    "t-sum": lambda n=40: SNELoss(plan(n), "student", diagonal="keep"),
    "sne": lambda n=40: SNELoss(plan(n, diagonal=False), normalization="rows"),
    "symmetric-sne": lambda n=40: SNELoss(plan(n, diagonal=False)),
    "t-sne": lambda n=40: SNELoss(plan(n, diagonal=False), "student"),
}
# Every method, from a plan on.
METHODS = {
    "snekhorn": lambda **options: snekhorn(plan(), **options),
    "t-snekhorn": lambda **options: snekhorn(plan(), kernel="student", **options),
    "sum": lambda **options: snekhorn(plan(), normalization="sum", **options),
    "sne": lambda **options: sne(plan(diagonal=False), normalization="rows", **options),
    "symmetric-sne": lambda **options: sne(plan(diagonal=False), **options),
    "t-sne": lambda **options: tsne(plan(diagonal=False), **options),
}


def same(left: Embedding, right: Embedding) -> None:
    """Equal to the bit."""
    for field in dataclasses.fields(left):
        a, b = getattr(left, field.name), getattr(right, field.name)
        assert type(a) is type(b)
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


# ------------------------------------------------------------------------------- symmetries
@quick
@given(name=st.sampled_from(sorted(LOSSES)), seed=st.integers(0, 1000), q=st.integers(1, 3))
def test_rotation_and_translation(name, seed, q):
    """F does not see a rotation, reflection or shift; its gradient turns along."""
    loss = LOSSES[name](16)
    rng = np.random.default_rng(seed)
    Z = torch.from_numpy(rng.normal(size=(16, q)))
    R = torch.from_numpy(np.linalg.qr(rng.normal(size=(q, q)))[0])
    here = loss.evaluate(Z, tol=1e-12)
    there = loss.evaluate(Z @ R + 3.0, tol=1e-12)
    assert there.value == pytest.approx(here.value, abs=1e-9)
    torch.testing.assert_close(there.gradient, here.gradient @ R, rtol=0, atol=1e-9)
    # so the gradient has no mean (no shift) and no torque (no rotation)
    torch.testing.assert_close(here.gradient.sum(dim=0), torch.zeros(q).double(), atol=1e-9, rtol=0)
    torque = Z.T @ here.gradient
    torch.testing.assert_close(torque, torque.T, rtol=0, atol=1e-8)


@quick
@given(name=st.sampled_from(sorted(LOSSES)), seed=st.integers(0, 1000))
def test_permutation(name, seed):
    """Points in another order: the same value, the gradient in that order."""
    loss = LOSSES[name](16)
    rng = np.random.default_rng(seed)
    Z, order = torch.from_numpy(rng.normal(size=(16, 2))), rng.permutation(16)
    other = LOSSES[name](16)
    other.P = DensePlan(other.plan[order][:, order].contiguous())
    here, there = loss.evaluate(Z, tol=1e-12), other.evaluate(Z[order], tol=1e-12)
    assert there.value == pytest.approx(here.value, abs=1e-9)
    torch.testing.assert_close(there.gradient, here.gradient[order], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_embeddings_turn_with_their_start(name):
    """A run from a start that was turned and shifted ends at a turned embedding."""
    start = random_start(40, random_state=1)
    R = torch.linalg.qr(random_start(2, random_state=2)).Q
    options = {"max_iter": 10, "on_failure": "ignore"}
    here = METHODS[name](init=start, **options)
    there = METHODS[name](init=start @ R - 7.0, **options)
    torch.testing.assert_close(there.Z, here.Z @ R, rtol=0, atol=1e-6)
    assert there.values == pytest.approx(here.values, abs=1e-8)


@pytest.mark.parametrize("name", ["sne", "symmetric-sne", "t-sne"])
def test_mass(name):
    """F, its gradient and the constant are proportional to the mass; residuals are not."""
    P, Z = plan(diagonal=False), random_start(40)
    options = {"normalization": "rows"} if name == "sne" else {}
    kernel = "student" if name == "t-sne" else "gaussian"
    one, many = (SNELoss(c * P, kernel, **options) for c in (1.0, 1e-3))
    a, b = one.evaluate(Z), many.evaluate(Z)
    assert b.value == pytest.approx(1e-3 * a.value) and a.value > 1
    torch.testing.assert_close(b.gradient, 1e-3 * a.gradient)
    assert (b.value + many.constant) == pytest.approx(1e-3 * (a.value + one.constant))
    runs = [embed(loss, Z, max_iter=5, on_failure="ignore") for loss in (one, many)]
    assert runs[1].trace == pytest.approx(runs[0].trace, rel=1e-6)
    torch.testing.assert_close(runs[1].Z, runs[0].Z)


@pytest.mark.parametrize("name", LOSSES)
def test_the_constant_makes_a_divergence(name):
    """F + constant is the generalised KL of the two plans, which have one mass."""
    loss, Z = LOSSES[name](20), random_start(20)
    Q = loss.latent_plan(Z)
    value = loss.evaluate(Z, tol=1e-12).value + loss.constant
    assert value == pytest.approx(float(drot.kl_divergence(loss.plan, Q)), abs=1e-7)
    assert float(Q.sum()) == pytest.approx(loss.mass)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("entries", [1, 500, 2**30])
def test_tiles_do_not_matter(name, entries, monkeypatch):
    """Tiles of 16, 25 or all rows: the same numbers to rounding."""
    Z = random_start(40)
    whole = LOSSES[name]().evaluate(Z, tol=1e-12)
    monkeypatch.setattr(drot.embeddings.plans, "tile_entries", lambda _: 2 * entries)
    parts = LOSSES[name]()
    assert len(parts.P.slices) == {1: 3, 500: 3, 2**30: 1}[entries]
    found = parts.evaluate(Z, tol=1e-12)
    assert found.value == pytest.approx(whole.value, rel=1e-13)
    torch.testing.assert_close(found.gradient, whole.gradient, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["symmetric-sne", "sne"])
def test_far_outliers_do_not_overflow(name):
    """Where every kernel of a row is below the smallest number, its logarithm is still right."""
    loss, Z = LOSSES[name](), random_start(40)
    Z[3] += 100.0
    found = loss.evaluate(Z)
    assert math.isfinite(found.value) and torch.isfinite(found.gradient).all()
    Z.requires_grad_()
    cost = (Z[:, None] - Z[None]).square().sum(dim=2)
    logs = (-cost).masked_fill(torch.eye(40, dtype=torch.bool), -math.inf)
    if name == "sne":
        normal = (loss.plan.sum(dim=1) * torch.logsumexp(logs, dim=1)).sum()
    else:
        normal = loss.mass * torch.logsumexp(logs, dim=(0, 1))
    value = (loss.plan * cost).sum() + normal
    value.backward()
    assert found.value == pytest.approx(value.item(), rel=1e-12)
    torch.testing.assert_close(found.gradient, Z.grad, rtol=1e-9, atol=1e-8)


# ---------------------------------------------------------------------------------- descent
@pytest.mark.parametrize("solver", ["lbfgs", "spectral"])
@pytest.mark.parametrize("name", METHODS)
def test_descent_is_monotone(name, solver):
    """F falls at every iteration, and what is reported is what was."""
    seen = []
    options = {"init": "random", "solver": solver, "max_iter": 600, "on_failure": "ignore"}
    options["tol"] = 1e-3
    found = METHODS[name](callback=lambda *args: seen.append(args), **options)
    # what rounding and the tolerance of the row sums leave open
    assert (np.diff(found.values) <= 1e-9 * abs(found.value)).all()
    assert found.values[-1] < found.values[0] - 0.1
    assert len(found.trace) == len(found.values) == found.n_iter + 1 == len(seen)
    assert [step[0] for step in seen] == list(range(found.n_iter + 1))
    assert tuple(step[1] for step in seen) == found.trace and found.trace[-1] == found.residual
    assert tuple(step[3] for step in seen) == found.values and found.values[-1] == found.value
    torch.testing.assert_close(seen[-1][2] - seen[-1][2].mean(dim=0), found.Z)
    if solver == "lbfgs":
        assert found.converged and found.residual <= 1e-3
        assert found.passes <= 1.5 * found.n_iter + 10


def costs(Z: torch.Tensor, kernel: str) -> torch.Tensor:
    """C_Z, differentiable."""
    D = (Z[:, None] - Z).square().sum(dim=2)
    return torch.log1p(D) if kernel == "student" else D


@pytest.mark.parametrize("name", LOSSES)
def test_residual(name):
    """The gradient, by finite differences, over that of <P, C_Z>, by automatic differentiation."""
    loss = LOSSES[name](12)
    found = embed(loss, "random", max_iter=3, on_failure="ignore")
    step, slopes = 1e-5, []
    for k in range(24):
        move = torch.zeros(24, dtype=torch.float64)
        move[k] = step
        up, down = (
            loss.evaluate(found.Z + s * move.reshape(12, 2), tol=1e-12).value for s in (1, -1)
        )
        slopes.append((up - down) / (2 * step))
    Z = found.Z.clone().requires_grad_()
    (loss.plan * costs(Z, loss.kernel)).sum().backward()
    slopes = np.array(slopes)
    assert found.residual == pytest.approx(np.linalg.norm(slopes) / float(Z.grad.norm()), rel=1e-4)
    assert found.growth == pytest.approx(-slopes @ found.Z.flatten().numpy() / loss.mass, rel=1e-4)
    assert found.size == pytest.approx(float(found.Z.square().sum(dim=1).mean().sqrt()), rel=1e-12)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
@pytest.mark.parametrize(
    "model",
    [drot.SNE, drot.TSNE, drot.LargeVis, drot.UMAP, drot.SNEkhorn, drot.TSNEkhorn],
    ids=lambda model: model.__name__,
)
def test_the_unit_of_the_data_changes_nothing(model, unit):
    """When it stops, and where. Of the start only the shape counts where it is small."""
    X, start = cloud("gaussian", 1, 40, 4), random_start(40).numpy()
    one, other = (
        model(
            init=size * start, **({"n_neighbors": 8} if model is drot.UMAP else {"perplexity": 8})
        )
        .fit(scale * X)
        .result_
        for scale, size in ((1.0, 2.0**-10), (unit, 2.0**-30))
    )
    assert one.converged and one.residual <= 0.02
    assert one.n_iter == other.n_iter and one.residual == pytest.approx(other.residual, rel=1e-6)
    torch.testing.assert_close(one.Z, other.Z, rtol=1e-6, atol=1e-6)


def test_the_unit_of_the_map_changes_nothing():
    """The curve of another length, and a map as much larger: the same residual; also of a plan
    in another unit, and of one whose points do not attract."""
    P = drot.fuzzy_union(drot.umap_membership(drot.sqeuclidean(cloud("gaussian", 1, 30, 4)), 8))
    Z = 3 * random_start(30)
    Z -= Z.mean(dim=0)

    def residual(s):
        loss = BernoulliLoss(P, "curve", a=1.5 * s**-1.8, b=0.9, guard=1e-3 * s * s)
        return loss.evaluate(s * Z).residual(radius(s * Z), loss.mass)

    assert residual(64.0) == pytest.approx(residual(1.0), rel=1e-9)
    P = plan(30, diagonal=False)
    one, other = (
        loss.evaluate(Z).residual(radius(Z), loss.mass)
        for loss in (SNELoss(P, "student"), SNELoss(1e6 * P, "student"))
    )
    assert other == pytest.approx(one, rel=1e-9)
    push = random_start(30)
    alone = [
        Evaluation(value=0.0, attraction=0 * push, repulsion=push / s).residual(s, 2.0)
        for s in (1.0, 1e6)
    ]
    assert alone[0] == pytest.approx(float(push.norm()) * 30**0.5 / 2)
    assert alone[1] == pytest.approx(alone[0])


@pytest.mark.parametrize("growth", [0.01, 0.5])
def test_steps_do_not_enlarge_a_map_for_little(growth):
    """A step grows the map only where that is its share of the slope; else its size stays."""
    P = drot.symmetrize(
        drot.entropic_affinity(drot.sqeuclidean(cloud("gaussian", 2, 80, 5)), 3, diagonal="drop")
    )
    loss, start, kept = SNELoss(P, "student"), spectral_start(P), []
    evaluate = lambda Z, warm: loss.evaluate(Z)  # noqa: E731
    shares = {0.0: [], growth: []}
    for least, seen in shares.items():
        steps = lbfgs(evaluate, start, Laplacian(P), 10, 0.1, least)
        for old, new in itertools.pairwise(itertools.islice(steps, 120)):
            s, g, Z = new.Z - old.Z, old.found.gradient, old.Z
            rate = float((s * Z).sum() / Z.square().sum())
            share = abs(rate * float((g * Z).sum()) / float((g * s).sum()))
            assert float((g * s).sum()) < 0
            seen.append((rate, share))
        kept.append(radius(new.Z))
    grown = [(rate, share) for rate, share in shares[growth] if rate > 1e-9]
    assert grown and min(share for _, share in grown) >= growth * (1 - 1e-6)
    assert any(rate > 1e-9 and share < growth for rate, share in shares[0.0])


def test_steps_are_no_longer_than_a_tenth_of_the_map():
    """From any start by chance; and the bound is met, for it is what holds the steps back."""
    for name, method in METHODS.items():
        seen = []
        method(
            init="random",
            max_iter=30,
            on_failure="ignore",
            callback=lambda k, residual, Z, value, seen=seen: seen.append(Z.clone()),
        )
        shares = [radius(new - old) / radius(old) for old, new in itertools.pairwise(seen)]
        assert max(shares) == pytest.approx(0.1), name
        assert 0.1 < radius(seen[0]) < 0.2  # two coordinates of standard deviation 0.1


@pytest.mark.parametrize("name", METHODS)
def test_solvers_end_alike(name):
    """From one start near a minimum, all three solvers find it."""
    start = 0.95 * METHODS[name](init="random", tol=1e-4).Z
    ends = [
        METHODS[name](init=start, solver=solver, tol=1e-4, learning_rate=0.01, max_iter=20_000)
        for solver in ("lbfgs", "spectral", "adam")
    ]
    for end in ends[1:]:
        assert end.value == pytest.approx(ends[0].value, rel=2e-4)
    assert ends[0].n_iter < ends[2].n_iter  # a seventh to a fifteenth


def test_the_first_direction_is_spectral():
    """Without repulsion the first step of Newton's method reaches the minimum: B = 4 L + mu."""
    P = plan()
    L = torch.diag(P.sum(dim=1)) - P
    g = random_start(40)
    B = 4 * L + 1e-3 * torch.eye(40)
    torch.testing.assert_close(B @ Laplacian(P).solve(g), g)


# -------------------------------------------------------------------------- reproducibility
@pytest.mark.parametrize("init", ["random", "spectral"])
def test_same_seed_same_bits(init, device):
    """Twice the same call, on one device: equal to the bit. Another seed: another embedding."""
    options = {"init": init, "max_iter": 30, "on_failure": "ignore"}
    P = plan().to(device)
    runs = [snekhorn(P, random_state=3, **options) for _ in range(2)]
    same(*runs)
    assert runs[0].Z.device.type == device
    generator = torch.Generator().manual_seed(3)
    drawn = [snekhorn(P, random_state=generator, **options).Z for _ in range(2)]
    if init == "random":
        assert not torch.equal(*drawn)  # a generator moves on
        assert not torch.equal(snekhorn(P, random_state=4, **options).Z, runs[0].Z)


# ---------------------------------------------------------------------------------- starts
def clusters(dtype: torch.dtype = torch.float64, block: int | None = None):
    """The symmetric entropic affinity of three clusters that exchange no mass."""
    X = torch.from_numpy(cloud("gaussian", 1, 60, 4)) + 50.0 * torch.eye(4)[torch.arange(60) % 3]
    cost = drot.sqeuclidean(X.to(dtype), block=block)
    return drot.symmetric_entropic_affinity(cost, 8)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kernel", ["gaussian", "student"])
def test_a_collapsed_start_is_left(kernel, dtype, device):
    """Spectral or given, dense or in tiles; another seed, another noise."""
    affinity = clusters(dtype)
    P = affinity.plan.to(device)
    start = spectral_start(P)
    near = torch.cdist(start, start)[P > 1e-3]
    assert near.max() < 1e-2  # each cluster in one place
    options = {"kernel": kernel, "max_iter": 60, "on_failure": "ignore"}
    loss = SNEkhornLoss(P, kernel)
    collapsed = loss.evaluate(300.0 * start).value
    runs = [snekhorn(P, **options), snekhorn(P, init=start, **options)]
    runs.append(snekhorn(P, init=start, random_state=1, **options))
    if device == "cpu":
        runs.append(snekhorn(clusters(dtype, block=16), **options))
    for found in runs:
        assert found.value < collapsed - 1
        assert found.Z.dtype == dtype and found.Z.device.type == device
    same(snekhorn(P, **options), runs[0])
    assert not torch.equal(runs[1].Z, runs[2].Z)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_leaves_a_collapsed_start(name):
    """Points that all are in one place, and a slope of zero: the noise is all there is."""
    place = torch.full((40, 2), 7.0, dtype=torch.float64)
    found = METHODS[name](init=place, max_iter=40, on_failure="ignore")
    assert found.n_iter > 5 and found.value < found.values[0] - 1
    assert torch.pdist(found.Z).min() > 0


def test_other_starts_stay_as_they_are():
    """To the bit; so does what an earlier run ended with, and who has no tie."""
    loss = LOSSES["t-snekhorn"]()
    for Z in (random_start(40), 1e-9 * random_start(40), pca_start(cloud("gaussian", 0, 40, 5))):
        Z = Z - Z.mean(dim=0)
        assert apart(Z, loss.attraction, 0) is Z
    P = clusters().plan
    loss = SNEkhornLoss(P, "student")
    start = spectral_start(P)
    ended = embed(loss, start, max_iter=1, on_failure="ignore")
    collapsed = dataclasses.replace(ended, Z=start, dual=None)
    first = embed(loss, collapsed, max_iter=1, on_failure="ignore").values[0]
    assert first == loss.evaluate(start, tol=2e-5).value
    alone = torch.eye(6).double()  # each tied to itself only
    alone[1:, 1:] = 0.2
    alone[0, 0] = alone[1, 1] = 1.0
    alone[1, 2:] = alone[2:, 1] = 0.0
    Z = torch.tensor([[5.0, 1.0], [-5.0, 3.0], *4 * [[0.0, -1.0]]]).double()
    moved = apart(Z, alone, 0)
    assert torch.equal(moved[:2], Z[:2])
    steps = (moved - Z)[2:].norm(dim=1) / Z.square().sum(dim=1).mean().sqrt()
    assert ((steps > 0) & (steps < 0.05)).all()
    assert torch.equal(Z[2], torch.tensor([0.0, -1.0]).double())  # not written into


def test_the_diagonal_does_not_tell_who_is_near():
    """A point that holds nearly all its mass itself still has neighbours."""
    P = 0.999 * torch.eye(8).double() + 0.001 * clusters().plan[::3, ::3][:8, :8]
    Z = random_start(8)
    Z = Z - Z.mean(dim=0)
    assert apart(Z, P, 0) is Z


def test_the_past_of_an_objective_does_not_matter():
    """An objective remembers nothing: the same Z gives the same bits after any other."""
    loss, Z = LOSSES["t-snekhorn"](), random_start(40)
    first = loss.evaluate(Z)
    loss.evaluate(5 * Z), loss.latent_plan(-Z)
    again = loss.evaluate(Z)
    assert first.value == again.value and torch.equal(first.gradient, again.gradient)


def test_no_side_effects():
    """Plans, starts and the global generators are left as they were."""
    P, Z = plan(), random_start(40)
    before = P.clone(), Z.clone(), torch.random.get_rng_state(), np.random.get_state()  # noqa: NPY002
    for solver in ("lbfgs", "spectral", "adam"):
        snekhorn(P, init=Z, solver=solver, max_iter=3, on_failure="ignore")
    snekhorn(P, init="random", max_iter=3, on_failure="ignore")
    snekhorn(P, init="spectral", max_iter=3, on_failure="ignore")
    pca_start(Z)
    assert torch.equal(P, before[0]) and torch.equal(Z, before[1])
    assert torch.equal(torch.random.get_rng_state(), before[2])
    assert (np.random.get_state()[1] == before[3][1]).all()  # noqa: NPY002


@pytest.mark.parametrize("name", LOSSES)
def test_float32(name):
    """Single precision gives the same value, gradient and embedding, to its digits."""
    loss, Z = LOSSES[name](), random_start(40)
    single = LOSSES[name]()
    single.P = DensePlan(single.plan.float())
    a, b = loss.evaluate(Z), single.evaluate(Z.float())
    assert b.gradient.dtype == torch.float32
    assert b.value == pytest.approx(a.value, rel=1e-6)
    torch.testing.assert_close(b.gradient.double(), a.gradient, rtol=0, atol=1e-4)
    start = embed(loss, Z).Z  # from afar, rounding may choose another minimum
    runs = [embed(one, start + 0.01 * Z) for one in (loss, single)]
    assert runs[1].Z.dtype == torch.float32 and runs[1].converged
    assert runs[1].value == pytest.approx(runs[0].value, rel=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_devices_agree(name, gpu):
    """Another device gives the same value and gradient, to rounding."""
    loss, Z = LOSSES[name](), random_start(40)
    there = LOSSES[name]()
    there.P = DensePlan(there.plan.to(gpu))
    a, b = loss.evaluate(Z, tol=1e-12), there.evaluate(Z.to(gpu), tol=1e-12)
    assert b.value == pytest.approx(a.value, rel=1e-12)
    torch.testing.assert_close(b.gradient.cpu(), a.gradient, rtol=0, atol=1e-10)


# ---------------------------------------------------------------------------------- results
@pytest.mark.parametrize("name", METHODS)
def test_save_and_load(name, tmp_path):
    """What was saved and loaded is the same to the bit, and holds numbers only."""
    found = METHODS[name](max_iter=5, on_failure="ignore")
    found.save(tmp_path / "embedding.npz")
    same(load(tmp_path / "embedding.npz"), found)
    assert [path.name for path in tmp_path.iterdir()] == ["embedding.npz"]
    with np.load(tmp_path / "embedding.npz", allow_pickle=False) as file:
        assert all(array.dtype != object for array in file.values())


def test_load_refuses_other_files(tmp_path):
    """A file of another kind is named in one sentence."""
    path = tmp_path / "other.npz"
    np.savez(path, kind=np.array("Sketch"), Z=np.eye(2))
    with pytest.raises(ValueError, match="does not hold a result saved by drot"):
        load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="does not hold a result"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.npz")


def test_results_are_frozen():
    """No field can be set; Z is centred; the text is short."""
    found = snekhorn(plan())
    for field in dataclasses.fields(found):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(found, field.name, None)
    assert found.Z.mean(dim=0).abs().max() < 1e-12
    assert "Embedding(40 x 2" in repr(found) and len(repr(found)) < 200
    assert type(found.n_iter) is int and type(found.products) is int
    assert found.converged is True and type(found.passes) is float


def test_resume(tmp_path):
    """A run that stopped early and was saved goes on to the end that one run reaches."""
    options = {"init": "random", "tol": 1e-5}
    whole = snekhorn(plan(), **options)
    part = snekhorn(plan(), max_iter=10, on_failure="ignore", **options)
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


def test_interrupt_keeps_the_work():
    """Ctrl-C in the middle returns the last iterate, with a warning."""

    def interrupt(k, residual, Z, value):
        if k == 3:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted after 3 iterations"):
        found = snekhorn(plan(), init="random", callback=interrupt)
    assert found.n_iter == 3 and not found.converged
    assert found.value == found.values[-1]


@pytest.mark.parametrize("when", [0, 3])
def test_interrupt_without_a_result_goes_on(when, monkeypatch):
    """Ctrl-C at the first evaluation: nothing to keep."""

    def evaluate(self, Z, **options):
        calls.append(Z)
        if len(calls) > when:
            raise KeyboardInterrupt
        return evaluation(self, Z, **options)

    calls, evaluation = [], SNEkhornLoss.evaluate
    monkeypatch.setattr(SNEkhornLoss, "evaluate", evaluate)
    options = {"init": "random", "max_iter": 50, "on_failure": "ignore"}
    if when:
        with pytest.warns(RuntimeWarning, match="interrupted after [12] iterations"):
            found = embed(SNEkhornLoss(plan()), **options)
        assert 1 <= found.n_iter < when and len(calls) == when + 1
    else:
        with pytest.raises(KeyboardInterrupt):
            embed(SNEkhornLoss(plan()), **options)
        assert len(calls) == when + 1


class Unit:
    """The metric B = I."""

    def solve(self, g):
        return g.clone()


@pytest.mark.parametrize(("memory", "trials"), [(0, 30), (5, 30)])
def test_descent_ends_where_no_step_lowers(memory, trials):
    """A slope that lies (the value rises against it): the start, after all trials, nothing else."""
    lengths = []

    def evaluate(Z, warm):
        lengths.append(float(Z[0, 0]) - 1)
        return Evaluation(value=float(Z.sum()), attraction=0 * Z, repulsion=torch.ones_like(Z))

    start = torch.ones(3, 2, dtype=torch.float64)
    steps = list(lbfgs(evaluate, start, Unit(), memory))
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

    steps = list(lbfgs(evaluate, torch.zeros(1, 2, dtype=torch.float64), Unit(), 5))
    values = [step.found.value for step in steps]
    assert len(steps) > 2 and max(values) < 1 and (np.diff(values) < 0).all()
    assert len(calls) == 8 + 2 * 30  # two directions in vain


@pytest.mark.parametrize("memory", [0, 5])
def test_descent_ends_at_a_point_without_slope(memory):
    """At a stationary point there is no direction to try."""
    calls = []

    def evaluate(Z, warm):
        calls.append(Z)
        return Evaluation(value=1.0, attraction=0 * Z, repulsion=0 * Z)

    start = torch.ones(3, 2, dtype=torch.float64)
    steps = list(lbfgs(evaluate, start, Unit(), memory))
    assert len(steps) == 1 == len(calls) and torch.equal(steps[0].Z, start)


def test_search_stays_among_finite_points():
    """A slope down to infinity: the objective is asked where numbers end, and not beyond."""

    def evaluate(Z, warm):
        assert torch.isfinite(Z).all()
        return Evaluation(
            value=-float(Z.sum()) / 1e308, attraction=0 * Z, repulsion=torch.ones_like(Z) / 1e308
        )

    Z = torch.tensor([[1e308]], dtype=torch.float64)
    start = Step(Z, evaluate(Z, None))
    new, length = _search(evaluate, start, Z.clone(), 1.0, math.inf)
    assert length == pytest.approx(torch.finfo(torch.float64).max / 1e308 - 1, abs=1e-6)
    assert torch.equal(new.Z, Z + length * Z)


@pytest.mark.parametrize("kernel", ["gaussian", "student"])
def test_plan_of_an_embedding_that_has_none(kernel, monkeypatch):
    """Points that are not finite, or a budget spent: how far off the rows are, and why."""
    loss, Z = SNEkhornLoss(plan(), kernel), random_start(40, random_state=2)
    with pytest.raises(drot.NotConverged, match="row sums are nan off after 2 products; the embed"):
        loss.evaluate(Z * math.nan)
    D = torch.cdist(Z, Z).square()
    K = torch.exp(-D) if kernel == "gaussian" else 1 / (1 + D)
    f = -K.sum(dim=1).log() / 2
    first = (f.exp() * (K @ f.exp()) - 1).abs().max()
    f = f - 2 / 3 * (f.exp() * (K @ f.exp())).log()
    second = (f.exp() * (K @ f.exp()) - 1).abs().max()
    for most, residual in ((2, first), (3, second)):
        monkeypatch.setattr(drot.embeddings.losses, "_MOST", most)
        says = f"^the plan of the embedding: row sums are {residual:.1e} off after {most} products"
        with pytest.raises(drot.NotConverged, match=says):
            loss.evaluate(Z, tol=1e-9)
    monkeypatch.undo()
    assert loss.evaluate(Z, tol=1e-9).products > 3


def test_not_converged():
    """Too small a budget raises, warns or is recorded, as asked."""
    options = {"init": "random", "max_iter": 2}
    with pytest.raises(drot.NotConverged, match=r"embed: the residual is .* after 2 iterations"):
        snekhorn(plan(), **options)
    with pytest.warns(RuntimeWarning, match="embed: the residual"):
        found = snekhorn(plan(), on_failure="warn", **options)
    assert found.n_iter == 2 and not found.converged


# ----------------------------------------------------------------------------------- starts
def test_starts():
    """Random starts are standard normal, the others centred with a first variance of 1."""
    Z = random_start(4000, n_components=3, random_state=1)
    assert Z.shape == (4000, 3) and Z.dtype == torch.float64
    np.testing.assert_allclose(Z.mean(dim=0), 0, atol=0.06)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(3), atol=0.08)
    single = random_start(4000, n_components=3, random_state=1, dtype=torch.float32)
    assert torch.equal(single, Z.float())
    X = torch.from_numpy(cloud("gaussian", 0, 50, 4)) * torch.tensor([5.0, 3.0, 1.0, 1.0])
    for start in (
        pca_start(X),
        spectral_start(drot.gaussian_affinity(drot.sqeuclidean(X), bandwidth=20.0)),
    ):
        assert start.shape == (50, 2)
        np.testing.assert_allclose(start.mean(dim=0), 0, atol=1e-10)
        assert float(start[:, 0].square().mean()) == pytest.approx(1)


def test_pca_start_is_the_svd():
    """Scores on the two leading right singular vectors of the centred cloud."""
    X = cloud("scales", 1, 30, 4)
    U, S, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    expected = U[:, :2] * S[:2]
    Z = pca_start(X).numpy()
    Z = Z * np.sign((Z * expected).sum(axis=0)) * np.sqrt((expected[:, 0] ** 2).mean())
    np.testing.assert_allclose(Z, expected, atol=1e-8 * abs(expected).max())


def test_spectral_start_is_an_eigenvector():
    """W z = nu D z for the two largest nu below 1, W the plan without its diagonal."""
    W = plan(30).numpy()
    np.fill_diagonal(W, 0)
    D = W.sum(axis=1)
    values, vectors = np.linalg.eigh(W / np.sqrt(np.outer(D, D)))
    assert values[-1] == pytest.approx(1)
    expected = (vectors / np.sqrt(D)[:, None])[:, [-2, -3]]
    expected -= expected.mean(axis=0)
    Z = spectral_start(plan(30)).numpy()
    cosines = abs((Z * expected).sum(axis=0))
    cosines /= np.linalg.norm(Z, axis=0) * np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(cosines, 1, atol=1e-8)


# ----------------------------------------------------------------------------------- errors
BAD = plan().clone()
BAD[3, 5] += 0.1


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: snekhorn(BAD), ValueError, r"symmetric; entries \(3, 5\) and \(5, 3\)"),
        (lambda: tsne(BAD), ValueError, r"drot.symmetrize gives"),
        (lambda: snekhorn(plan() * 2), ValueError, r"row \d+ sums to 2; pass"),
        (lambda: snekhorn(-plan()), ValueError, r"negative entry .* row 0, column 0"),
        (lambda: snekhorn(plan()[:5]), ValueError, r"square \(n, n\) .* got shape \(5, 40\)"),
        (lambda: snekhorn(plan() * math.nan), ValueError, r"plan has a non-finite entry"),
        (lambda: tsne(plan()), ValueError, r"mass on its diagonal; .* diagonal='drop'"),
        (lambda: tsne(np.zeros((5, 5))), ValueError, r"plan is zero everywhere"),
        (lambda: snekhorn(plan(), kernel="cauchy"), ValueError, r"'gaussian', 'student'"),
        (lambda: snekhorn(plan(), normalization="rows"), ValueError, r"'doubly_stochastic', 'sum'"),
        (lambda: sne(plan(), normalization="max"), ValueError, r"'sum', 'rows'"),
        (lambda: sne(plan(), diagonal="no"), ValueError, r"'drop', 'keep'"),
        (lambda: snekhorn(plan(), solver="sgd"), ValueError, r"'lbfgs', 'spectral', 'adam'"),
        (lambda: snekhorn(plan(), init="pca"), ValueError, r"'spectral', 'random'"),
        (lambda: snekhorn(plan(), init=np.zeros((7, 2))), ValueError, r"init has 7 points .* 40"),
        (lambda: snekhorn(plan(), init=np.zeros(40)), ValueError, r"init must be an \(n, p\)"),
        (lambda: snekhorn(plan(), tol=-1.0), ValueError, r"tol must be positive"),
        (lambda: snekhorn(plan(), max_iter=0), ValueError, r"max_iter must be a whole number"),
        (lambda: snekhorn(plan(), n_components=0), ValueError, r"n_components must be"),
        (lambda: snekhorn(plan(), on_failure="shrug"), ValueError, r"'raise', 'warn', 'ignore'"),
        (lambda: snekhorn(plan(), learning_rate=0.0), ValueError, r"learning_rate must be"),
        (lambda: snekhorn(plan(), init="random", random_state="x"), TypeError, r"random_state"),
        (lambda: random_start(1), ValueError, r"n must be a whole number of at least 2"),
        (
            lambda: pca_start(np.zeros((5, 2)), n_components=3),
            ValueError,
            r"n_components .* from 1 to 2",
        ),
    ],
)
def test_errors(call, error, says):
    """Bad input gets one sentence: what, where, what to do."""
    with pytest.raises(error, match=says):
        call()
