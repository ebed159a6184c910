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
@pytest.mark.parametrize("p", [1, 7, 50])
def test_prp_gram_rounding(dtype, p):
    """Part 1: the error by products is at most 2 gamma_{p+2} S. Part 2: the relative error of what
    the package gives."""
    u = UNIT[dtype]
    eta, g = (2 * u) ** 0.25, gamma(p + 2, u)
    assert eta <= 1 / 50 and g <= eta / 8
    assert 5 * g / eta == pytest.approx(4.2 * (p + 2) * u**0.75, rel=0.01)
    for name, X in clouds(dtype, p).items():
        D, S = exact(X)
        assert (errors(by_products(X), D) <= Fraction(2 * g) * S).all(), name
        assert (errors(drot.sqeuclidean(X).dense(), D) <= Fraction(5 * g / eta) * D).all(), name
