"""Chapter 6: the size of a t-SNE map, from its objective at infinity; all oracles are numpy's."""

import drot
import mpmath
import numpy as np
import pytest
import torch
from drot.embeddings.losses import SNELoss
from numpy.testing import assert_allclose
from plans import points, squares
from scipy.optimize import minimize


def plan(seed: int, n: int, *, symmetric: bool = True) -> np.ndarray:
    """Positive off the diagonal, of a mass that is not 1."""
    P = np.exp(np.random.default_rng(1000 + seed).normal(size=(n, n)))
    P = P + P.T if symmetric else P
    np.fill_diagonal(P, 0)
    return P


def pairs(P) -> np.ndarray:
    """Entries of all ordered pairs i != j, row by row."""
    return P[~np.eye(len(P), dtype=bool)]


def terms(P, Z) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P, squared distances, and Q in proportion to 1 / d^2, of all pairs."""
    p, D = pairs(P), pairs(squares(Z))
    return p, D, p.sum() / D / (1 / D).sum()


def value(P, Z, one: float = 1.0) -> float:
    """F of t-SNE: <P, log(1 + d^2)> + m log sum 1 / (1 + d^2); without the ones it is F_inf."""
    p, D = pairs(P), one + pairs(squares(Z))
    return float((p * np.log(D)).sum() + p.sum() * np.log((1 / D).sum()))


def gradient(P, Z, one: float = 1.0) -> np.ndarray:
    K = 1 / (one + squares(Z) + np.eye(len(Z)))
    np.fill_diagonal(K, 0)
    W = (P - P.sum() * K / K.sum()) * K
    W = W + W.T
    return 2 * (W.sum(axis=1)[:, None] * Z - W @ Z)


def coefficient(P, Z) -> float:
    """c(Z)."""
    p, D, q = terms(P, Z)
    return float(((p - q) / D).sum())


def above_infinity(P, Z, s) -> mpmath.mpf:
    """F(sZ) - F_inf(Z), both from their definitions, in eighty digits."""
    p, D = ([mpmath.mpf(float(x)) for x in v] for v in terms(P, Z)[:2])
    s2, m = mpmath.mpf(s) ** 2, mpmath.fsum(p)
    near = mpmath.fsum(x * mpmath.log(1 + s2 * d) for x, d in zip(p, D, strict=True))
    near += m * mpmath.log(mpmath.fsum(1 / (1 + s2 * d) for d in D))
    far = mpmath.fsum(x * mpmath.log(d) for x, d in zip(p, D, strict=True))
    return near - far - m * mpmath.log(mpmath.fsum(1 / d for d in D))


CLOUDS = [
    (seed, n, q, symmetric)
    for seed, (n, q) in enumerate([(2, 1), (3, 1), (6, 2)])
    for symmetric in (True, False)
]


@pytest.mark.parametrize(("seed", "n", "dimension", "symmetric"), CLOUDS)
def test_prp_size_along_a_ray(seed, n, dimension, symmetric):
    """-1/2 sum P/d^4 <= s^4 (F(sZ) - F_inf - c/s^2) <= sum Q/d^4, at all sizes, in 80 digits."""
    P, Z = plan(seed, n, symmetric=symmetric), points(seed, n, dimension).numpy()
    p, D, q = terms(P, Z)
    c, low, high = coefficient(P, Z), float((p / D**2).sum()), float((q / D**2).sum())
    with mpmath.workdps(80):
        for s in (0.01, 0.3, 1.0, 5.0, 100.0):
            rest = s**4 * above_infinity(P, Z, s) - s**2 * mpmath.mpf(c)
            slack = 1e-12 * (low + high) * (1 + s**2)  # c in float64
            assert -low / 2 - slack <= rest <= high + slack


def test_prp_size_of_a_finite_map():
    """P is Student's kernel of -1, 0, 1: c = -m / 24 by hand, and the best map is that one."""
    Z, P = np.array([[-1.0], [0.0], [1.0]]), np.array([[0, 5, 2], [5, 0, 5], [2, 5, 0.0]])
    assert_allclose(pairs(P * (1 + squares(Z))), 10)
    assert coefficient(P, Z) == pytest.approx(-P.sum() / 24, rel=1e-12)
    entropy = -(pairs(P) * np.log(pairs(P) / P.sum())).sum()
    assert value(P, Z) == pytest.approx(entropy, rel=1e-12)  # KL = 0
    ends = [
        minimize(
            lambda x: value(P, x[:, None], 0),
            points(seed, 3, 1).flatten().numpy(),
            jac=lambda x: gradient(P, x[:, None], 0).ravel(),
        ).fun
        for seed in range(15)
    ]
    assert value(P, 100 * Z) < min(ends)  # from below


def test_prp_size_loops():
    """Counted self-loops: F >= <P, C> + m log n, 2 m log n in one place, and a best map is near."""
    for seed in range(3):
        n = 4 + seed
        P = plan(seed, n) + np.diag(np.random.default_rng(seed).random(n))
        Z = points(seed, n).numpy()
        m, loss, values = P.sum(), SNELoss(P, "student", diagonal="keep"), []
        for s in (1e-9, 1.0, 1e2, 1e4, 1e6):
            D = squares(s * Z)
            here = (P * np.log1p(D)).sum() + m * np.log((1 / (1 + D)).sum())
            assert loss.evaluate(torch.from_numpy(s * Z)).value == pytest.approx(here, rel=1e-12)
            assert here >= (P * np.log1p(D)).sum() + m * np.log(n)
            values.append(here)
        assert values[0] == pytest.approx(2 * m * np.log(n), rel=1e-9)
        rise = (m - np.trace(P)) * np.log(1e4)
        assert values[-1] - values[-2] == pytest.approx(rise, rel=1e-3)
        best = drot.tsne(P, diagonal="keep", tol=1e-5, max_iter=3000, on_failure="ignore")
        attraction = (P * np.log1p(squares(best.Z))).sum()
        assert best.value <= values[0] and attraction <= m * np.log(n)


@pytest.mark.parametrize(("seed", "n", "dimension", "symmetric"), CLOUDS)
def test_prp_growth(seed, n, dimension, symmetric):
    """-<grad F, Z> = 2 sum (P - Q) / (1 + d^2), against differences of F along the ray."""
    P, Z = plan(seed, n, symmetric=symmetric), points(seed, n, dimension).numpy()
    for Y in (0.5 * Z, 3 * Z):
        p, k = pairs(P), 1 / (1 + pairs(squares(Y)))
        growth = 2 * ((p - p.sum() * k / k.sum()) * k).sum()
        slope = (value(P, (1 + 1e-5) * Y) - value(P, (1 - 1e-5) * Y)) / 2e-5
        assert -slope == pytest.approx(growth, rel=1e-6, abs=1e-8 * P.sum())
        assert -(gradient(P, Y) * Y).sum() == pytest.approx(growth, rel=1e-9, abs=1e-11)
