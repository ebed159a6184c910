"""Chapter 14: prototypes in the Lorentz model, against closed forms and differences."""

import itertools
import math

import drot
import mpmath
import numpy as np
import pytest
import torch
from drot import hyperbolic
from drot.hyperbolic import HyperbolicProblem, exponential_map, squared_distances, to_lorentz
from plans import affinity, cloud, energy, soft, weights


def test_poincare_ball_and_wrapped_normal():
    """The ball's own distance formula agrees; radii of the start are those of a normal vector."""
    Z = to_lorentz(cloud(5, 2))
    B = hyperbolic.to_poincare(Z)
    top, inside = 2 * (B[:, None] - B).square().sum(dim=2), 1 - B.square().sum(dim=1)
    ball = torch.acosh(1 + top / (inside[:, None] * inside))
    torch.testing.assert_close(hyperbolic.distances(Z), ball, atol=1e-7, rtol=1e-9)
    start = hyperbolic.wrapped_normal(4000, n_components=2, scale=0.5, random_state=1)
    assert float(torch.acosh(start[:, 0]).square().mean()) == pytest.approx(2 * 0.25, rel=0.05)
    assert torch.equal(start, hyperbolic.wrapped_normal(4000, scale=0.5, random_state=1))


@pytest.mark.parametrize("kernel", ["student", "gaussian"])
def test_gradient_and_value(kernel):
    """The value is the four-index sum at hyperbolic distances; the slope, a difference of two."""
    C, w = affinity(10), weights(10)
    T, v = soft(w, 4, 1), 1.5 * cloud(4, 2, 2)
    v[3] = v[2]  # two at one place
    terms = HyperbolicProblem(C, 4, kernel=kernel, weights=w, scale=0.7)
    c = terms.couple(T)
    found = terms.around(v, c, torch.zeros_like(v))
    Z = to_lorentz(v).numpy()
    D = np.arccosh(np.maximum(1, np.outer(Z[:, 0], Z[:, 0]) - Z[:, 1:] @ Z[:, 1:].T)) ** 2
    K = 1 / (1 + D / 0.49) if kernel == "student" else np.exp(-D / 0.49)
    q, M = np.asarray(c.q), np.asarray(c.M)
    K = K * M.sum() / (q @ K @ q)
    assert found.value == pytest.approx(energy(C, K, T, "kl"), rel=1e-7)
    for i, j in itertools.product(range(4), range(2)):
        x = torch.zeros_like(v)
        x[i, j] = 1e-5
        up, down = (
            terms.objective(to_lorentz(exponential_map(s * 0.7 * x, v)), c) for s in (1, -1)
        )
        assert float(found.gradient[i, j]) == pytest.approx((up - down) / 2e-5, abs=1e-8)
    whole, pull = float(found.gradient.norm()), float(found.attraction.norm())
    size = float((squared_distances(v).mean() / 2).sqrt()) / 0.7  # bandwidths
    least = min(1, size**2) * terms.position_loss(c).mass / (2 * size)  # of four points
    assert terms.residual_at(to_lorentz(v), c) == pytest.approx(whole / max(pull, least), rel=1e-12)
    # lengths are those of the sheet, so that this is the length of the Riemannian gradient
    moved = exponential_map(1e-5 * found.gradient / whole, v)
    lengths = hyperbolic.distances(to_lorentz(torch.cat([v, moved])))[:4, 4:].diagonal()
    shares = found.gradient.norm(dim=1) / whole
    torch.testing.assert_close(lengths, 1e-5 * shares, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("init", ["cluster_then_reduce", "reduce_then_cluster", "random"])
def test_reduction(init):
    """No block raises the objective, points stay on the sheet, and a result goes on."""
    C, ask = affinity(16), dict(n_starts=1, on_failure="ignore")
    found = hyperbolic.distributional_reduction(C, 4, init=init, **ask)
    assert (np.diff(found.values) <= 0).all() and found.n_iter >= 1
    if init == "random":  # positions find something to gain
        assert found.values[1] < found.values[0]
    height = -(found.Z[:, 0] ** 2) + found.Z[:, 1:].square().sum(dim=1)
    torch.testing.assert_close(height, -torch.ones(4).double(), rtol=1e-6, atol=1e-6)
    assert float(found.weights.sum()) == pytest.approx(1)
    assert float(hyperbolic.to_poincare(found.Z).norm(dim=1).max()) < 1
    on = hyperbolic.distributional_reduction(C, 4, init=found, **ask)
    assert on.objective <= found.objective * (1 + 1e-9)


def test_centres():
    """Of two points the centre of a prototype is half way."""
    terms = HyperbolicProblem(affinity(8), 4)
    v, T = 2 * cloud(8, 2), torch.eye(4, dtype=torch.float64).repeat_interleave(2, dim=0) / 8
    apart = hyperbolic.distances(
        torch.cat([to_lorentz(v), terms.centroids(to_lorentz(v), terms.couple(T))])
    )
    for i in range(8):
        assert float(apart[i, 8 + i // 2]) == pytest.approx(float(apart[i, i ^ 1]) / 2, rel=1e-9)


def at(radius, angle) -> torch.Tensor:
    return torch.from_numpy(np.sinh(radius) * np.stack([np.cos(angle), np.sin(angle)])).T


def exact(x, y):
    """The distance by arcosh, with 400 digits."""
    with mpmath.workdps(400):
        x, y = ([mpmath.mpf(float(t)) for t in v] for v in (x, y))
        heights = mpmath.sqrt(1 + sum(t * t for t in x)) * mpmath.sqrt(1 + sum(t * t for t in y))
        return float(mpmath.acosh(heights - sum(s * t for s, t in zip(x, y, strict=True))))


@pytest.mark.parametrize("radius", [0.0, 1.0, 9.0, 14.0, 18.0, 25.0])
def test_distances_keep_their_digits(radius):
    """Close and far pairs, along a ray and across: to the rounding of their coordinates."""
    rng = np.random.default_rng(0)
    steps = np.array([[0, 0], [1e-6, 0], [0.3, 0], [2.0, 0], [0.3, 1e-6], [0.1, 0.7], [5, 0.1]])
    angle = 0.7 + np.r_[steps[:, 1] / np.cosh(radius), rng.uniform(0, 6, size=3)]
    v = at(radius + np.r_[steps[:, 0], 0, 0.1, 0.2], angle)
    share = 1e-9 + 8 * np.finfo(float).eps * np.sinh(radius)
    D = hyperbolic.distances(to_lorentz(v))
    assert torch.equal(D, D.T) and bool((D.diagonal() == 0).all())
    for i, j in itertools.combinations(range(10), 2):
        assert float(D[i, j]) == pytest.approx(exact(v[i], v[j]), rel=share, abs=1e-12), (i, j)


def test_not_too_far():
    """Fourth powers of heights are in range; where they are not: tests/contracts/test_inputs.py."""
    v = at(np.full(3, 174.0), np.arange(3.0))
    assert bool(torch.isfinite(hyperbolic.distances(to_lorentz(v))).all())


GROUPS = cloud(20, 3) + 2 * torch.eye(4)[torch.arange(20) % 4, :3].double()
NEAR = torch.exp(-drot.sqeuclidean(GROUPS).dense() / 4)


@pytest.mark.parametrize(
    "kernel, scale",
    [*(("student", scale) for scale in (1e-8, 0.1, 3.0, 100.0)), ("gaussian", 10.0)],
)
def test_no_bandwidth_gives_a_false_certificate(kernel, scale):
    """Who converged cannot gain by a dilation of the map; all answers are in range."""
    options = {"kernel": kernel, "scale": scale}
    found = hyperbolic.distributional_reduction(
        NEAR, 4, n_starts=1, max_iter=10, on_failure="ignore", **options
    )
    assert math.isfinite(found.objective) and bool(hyperbolic.to_poincare(found.Z).isfinite().all())
    terms = HyperbolicProblem(NEAR, 4, kernel=kernel, scale=scale)
    c = terms.couple(found.plan)
    assert terms.objective(found.Z, c) == pytest.approx(found.objective)
    if found.converged:
        length = torch.asinh(found.Z[:, 1:].norm(dim=1, keepdim=True)).clamp_min(1e-300)
        for factor in (0.5, 2, 50):
            far = (factor * length).clamp_max(170.0)
            ends = to_lorentz(
                torch.sinh(far) * torch.nn.functional.normalize(found.Z[:, 1:], eps=0)
            )
            assert terms.objective(ends, c) > 0.99 * found.objective


def test_a_narrow_kernel_sees_a_plane():
    flat = drot.distributional_reduction(NEAR, 4, kernel="gaussian", init="random").objective
    for scale in (1e-2, 1e-8):
        found = hyperbolic.distributional_reduction(
            NEAR, 4, kernel="gaussian", scale=scale, on_failure="ignore"
        )
        assert found.objective < 1.01 * flat


@pytest.mark.parametrize("radius, finite", [(170.0, True), (180.0, False), (1e3, False)])
def test_heights_out_of_range_are_worth_infinity(radius, finite):
    """A line search steps back from there; their means would overflow."""
    terms = HyperbolicProblem(NEAR, 4, scale=0.5)
    x = torch.zeros(4, 2, dtype=torch.float64)
    x[0, 0] = radius / 0.5  # bandwidths
    T = torch.eye(4, dtype=torch.float64).repeat_interleave(5, dim=0) / 20
    found = terms.around(torch.zeros_like(x), terms.couple(T), x)
    assert math.isfinite(found.value) == finite == math.isfinite(found.residual(1.0, 1.0))


@pytest.mark.parametrize("radius", [20.0, 60.0, 170.0])
def test_the_ball_is_open(radius):
    far = [[math.cosh(radius), math.sinh(radius), 0.0], [1.0, 0.0, 0.0]]
    assert 0.999 < float(hyperbolic.to_poincare(far).norm(dim=1).max()) < 1
