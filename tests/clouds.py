"""Clouds of many kinds for the property tests, drawn from a seed that hypothesis can shrink."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

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


def ordinary() -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """Small sets as people have them: (n, p) points, and classes where they lie well apart."""
    rng = np.random.default_rng(0)

    def blobs(sizes, apart: float, spread: float = 1.0, p: int = 10):
        """Clusters around the corners of a simplex, and whose points are whose."""
        y = np.repeat(np.arange(len(sizes)), sizes)
        return apart * np.eye(len(sizes), p)[y] + spread * rng.normal(size=(len(y), p)), y

    def same(count: int) -> np.ndarray:
        X = rng.normal(size=(50, 4))
        X[50 - count :] = X[-1]
        return X

    def shifted(who: slice, by: float) -> np.ndarray:
        X = rng.normal(size=(50, 4))
        X[who] += by
        return X

    five = [10] * 5
    apart, classes = blobs(five, 12.0)
    t = np.linspace(0, 1, 50)
    ring = np.exp(2j * np.pi * t[:-1])
    arc = np.exp(1j * np.pi * t[::2])
    moons = np.concatenate([arc, 1 - 0.5j - arc]) + 0.05 * rng.normal(size=(2, 50)).T @ [1, 1j]
    plain = {
        "gaussian": rng.normal(size=(50, 4)),
        "uniform": rng.uniform(size=(50, 2)),
        "touching": blobs(five, 2.0)[0],
        "as many clusters as prototypes": blobs([3] * 20, 12.0, p=20)[0],
        "pairs": blobs([2] * 20, 12.0, p=20)[0],
        "all twice": np.tile(rng.normal(size=(25, 4)), (2, 1)),
        "ten the same": same(10),
        "half the same": same(25),
        "most the same": same(45),
        "one place": np.ones((50, 3)),
        "zeros": np.zeros((50, 3)),
        "one feature": rng.normal(size=(50, 1)),
        "a constant feature": np.insert(rng.normal(size=(50, 3)), 1, 1e6, axis=1),
        "integers": rng.integers(-9, 10, size=(50, 3)),
        "few integers": rng.integers(0, 3, size=(60, 2)),
        "one-hot": np.eye(10, dtype=int)[rng.integers(0, 10, size=50)],
        "three one-hots": np.hstack([np.eye(k)[rng.integers(0, k, size=50)] for k in (2, 3, 4)]),
        "binary": rng.integers(0, 2, size=(50, 12)),
        "counts": rng.poisson(0.3, size=(50, 5)),
        "rare counts": rng.poisson(0.05, size=(50, 8)),
        "dispersed counts": rng.negative_binomial(0.3, 0.01, size=(50, 20)),
        "line": np.outer(t, [3.0, -1.0, 2.0]),
        "circle": np.stack([ring.real, ring.imag], axis=1),
        "moons": np.stack([moons.real, moons.imag], axis=1),
        "lattice": np.indices((7, 7)).reshape(2, -1).T,
        "walk": rng.normal(size=(50, 4)).cumsum(axis=0),
        "outlier": shifted(slice(-1, None), 100.0),
        "far outlier": shifted(slice(-1, None), 1e6),
        "three points far": shifted(slice(-3, None), 1e3),
        "heavy tails": rng.standard_cauchy(size=(50, 4)),
        "lognormal": rng.lognormal(sigma=2.0, size=(50, 4)),
        "offset": 1e6 + rng.normal(size=(50, 4)),
        "units": rng.normal(size=(50, 6)) * 10.0 ** np.arange(-3, 3),
        "low rank": rng.normal(size=(50, 2)) @ rng.normal(size=(2, 9)),
        "wide": rng.normal(size=(20, 200)),
        **{f"n = {n}": rng.normal(size=(n, 3)) for n in (3, 4, 5, 7, 10, 20, 30, 40)},
    }
    labelled = {
        "apart": (apart, classes),
        "far": blobs(five, 1e3),
        "uneven": blobs([25, 14, 8, 3], 30.0, spread=2.0),
        "offset blobs": (1e6 + apart, classes),
        "small blobs": (1e-6 * apart, classes),
        "large blobs": (1e6 * apart, classes),
        "wide blobs": blobs([10] * 4, 40.0, p=300),
        "two far groups": blobs([25, 25], 1e4),
    }
    return {name: (X, None) for name, X in plain.items()} | labelled
