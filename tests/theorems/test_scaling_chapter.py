"""Chapter 16: rounding of distances, numbers that travel in a pass, two processes."""

from fractions import Fraction

import drot
import numpy as np
import pytest
import torch

UNIT = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}


def gamma(k: int, u: float) -> float:
    return k * u / (1 - k * u)


def exact(X: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances and sums of two squared norms in rational arithmetic, (n, n) each."""
    points = np.array([[Fraction(t) for t in row] for row in X.double().tolist()], dtype=object)
    norms = (points**2).sum(axis=1)
    return ((points[:, None] - points[None]) ** 2).sum(axis=2), norms[:, None] + norms


def by_products(X: torch.Tensor) -> torch.Tensor:
    norms = X.square().sum(dim=1)
    return norms[:, None] + norms - 2 * (X @ X.T)


def errors(found: torch.Tensor, D: np.ndarray) -> np.ndarray:
    """|found - D| off the diagonal, where it is 0, in rational arithmetic."""
    rows = [[Fraction(t) for t in row] for row in found.double().tolist()]
    return abs(np.array(rows, dtype=object) - D) * (1 - np.eye(len(D), dtype=int))


def clouds(dtype: torch.dtype, p: int, n: int = 10) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(p)
    X = torch.randn(n, p, generator=g, dtype=torch.float64)
    tight = 1e-4 * X
    tight[n // 2 :] += 30  # two tight clusters: no centre suits both
    scales = torch.logspace(-4, 1, n, dtype=torch.float64)[:, None]
    found = {"plain": X, "shifted": X + 100, "far": X + 1e4, "tight": tight, "scales": scales * X}
    return {name: cloud.to(dtype) for name, cloud in (found | {"near": 3 + 0.4 * X}).items()}


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("p", [1, 2, 7, 50])
def test_prp_gram_rounding(dtype, p):
    """Part 1: the error is at most 2 gamma_{p+2} S."""
    bound = Fraction(2 * gamma(p + 2, UNIT[dtype]))
    for name, X in clouds(dtype, p).items():
        D, S = exact(X)
        assert (errors(by_products(X), D) <= bound * S).all(), name


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("p", [1, 2, 7, 50])
@pytest.mark.parametrize("block", [None, 5])
def test_prp_gram_rounding_of_the_package(dtype, p, block):
    """Part 2: the relative error of what the package gives; copies are at 0."""
    u = UNIT[dtype]
    eta = (2 * u) ** 0.25
    assert eta <= 1 / 50 and gamma(p + 2, u) <= eta / 8
    bound = 5 * gamma(p + 2, u) / eta
    assert bound == pytest.approx(4.2 * (p + 2) * u**0.75, rel=0.01)
    for name, X in clouds(dtype, p, 14).items():
        X = torch.cat([X, X[:1]])
        D, _ = exact(X)
        found = drot.sqeuclidean(X, block=block).dense()
        assert found[0, -1] == found[-1, 0] == 0
        assert (errors(found, D) <= Fraction(bound) * D).all(), name
