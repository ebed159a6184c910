"""Clouds of many kinds for the property tests, drawn from a seed that hypothesis can shrink."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

__all__ = ["KINDS", "WILD", "cloud", "clouds", "quick", "wild", "wild_clouds"]

# The same examples in every run: a red test stays red until it is mended.
quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)

KINDS = ("gaussian", "scales", "clusters", "duplicates", "outliers", "line", "grid")


def cloud(kind: str, seed: int, n: int, p: int) -> np.ndarray:
    """An (n, p) float64 cloud."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    match kind:
        case "scales":  # every point has a density of its own, over four decades
            X *= 10 ** rng.uniform(-2, 2, size=(n, 1))
        case "clusters":
            X += 30.0 * rng.integers(0, 3, size=(n, 1))
        case "duplicates":  # each point at most twice
            X[n // 2 : 2 * (n // 2)] = X[: n // 2]
        case "outliers":
            X[-1] += 1e4
        case "line":
            X = np.outer(np.linspace(0, 1, n), rng.normal(size=p))
        case "grid":  # many ties, though the point itself is the only one at cost 0
            X = np.stack(np.unravel_index(np.arange(n), (n, *[1] * (p - 1))), axis=1) * 1.0
    return X


@st.composite
def clouds(draw, kinds: tuple[str, ...] = KINDS, least: int = 4, most: int = 24) -> np.ndarray:
    """A cloud of 4 to 24 points in 1 to 5 dimensions."""
    kind, seed = draw(st.sampled_from(kinds)), draw(st.integers(0, 10_000))
    return cloud(kind, seed, draw(st.integers(least, most)), draw(st.integers(1, 5)))


WILD = (
    "collinear", "repeated", "hair", "tails", "integers", "constant", "one place", "far",
)  # fmt: skip


def wild(kind: str, seed: int, n: int, p: int, power: int = 0) -> np.ndarray:
    """An (n, p) cloud that nobody hopes for, times 10 to a power."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    match kind:
        case "collinear":
            X = np.outer(rng.normal(size=n), X[0]) + X[-1]
        case "repeated":  # a few places, some of them many times
            X = X[rng.integers(0, max(1, n // 3), size=n)]
        case "hair":  # clusters of a width near the rounding of their distance
            X = rng.integers(0, 3, size=(n, 1)) + 1e-12 * X
        case "tails":
            X = rng.standard_cauchy(size=(n, p)) ** 3
        case "integers":
            X = rng.integers(-2, 3, size=(n, p)).astype(float)
        case "constant":
            X[:, rng.integers(0, 2, size=p) == 0] = 1e6
        case "one place":
            X = np.tile(X[:1], (n, 1))
        case "far":
            X[n // 2 :] += 1e8
        case _:
            X = cloud(kind, seed, n, p)
    return X * 10.0**power


@st.composite
def wild_clouds(draw, least: int = 2, most: int = 14, powers: int = 8) -> np.ndarray:
    """Any cloud of 2 to 14 points at any scale from 1e-8 to 1e8, tame ones too."""
    kind, seed = draw(st.sampled_from((*WILD, *KINDS))), draw(st.integers(0, 10_000))
    n, p = draw(st.integers(least, most)), draw(st.integers(1, 4))
    return wild(kind, seed, n, p, draw(st.integers(-powers, powers)))
