"""The data of the benchmarks by name: ``digits``, ``coil20_480``, ``blobs_5000``."""

from __future__ import annotations

import drot
import numpy as np
import torch
from torch import Tensor

__all__ = ["NAMES", "blobs", "even", "load", "mixture"]

NAMES = ("digits", "chromatin", "expression", "scgem", "coil20", "pbmc3k", "olivetti")
NAMES += ("mnist_N", "fashion_mnist_N", "even_N", "blobs_N", "mixture_N")


def blobs(n: int, p: int) -> Tensor:
    """Ten clusters whose spreads differ by a factor of ten."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(10, p))
    which = rng.integers(10, size=n)
    return torch.from_numpy(centres[which] + rng.normal(size=(n, p)) * (0.2 + 0.2 * which)[:, None])


def even(n: int, p: int) -> Tensor:
    """The easy case: ten clusters of one spread."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(10, p))
    return torch.from_numpy(centres[rng.integers(10, size=n)] + rng.normal(size=(n, p)))


def mixture(n: int, p: int) -> Tensor:
    """Ten clusters that overlap, in five dimensions, and a little noise in all others."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=2.0, size=(10, 5))
    low = centres[rng.integers(10, size=n)] + rng.normal(size=(n, 5))
    axes = np.linalg.qr(rng.normal(size=(p, 5)))[0]
    return torch.from_numpy(low @ axes.T + 0.1 * rng.normal(size=(n, p)))


def load(name: str) -> Tensor:
    """Points (n, p) in float64; OSError where a data file is absent.

    A number at the end asks for that many points: of the image sets the first, of the other real
    sets some that are evenly spaced.
    """
    kind, _, size = name.rpartition("_")
    if not size.isdigit():
        kind, size = name, ""
    match kind, size:
        case "blobs" | "even" | "mixture", n if n:
            return {"blobs": blobs, "even": even, "mixture": mixture}[kind](int(n), 50)
        case "mnist" | "fashion_mnist", n if n:
            return drot.datasets.load(kind, download=False).X[: int(n)]
        case "digits", _:
            X = drot.datasets.digits().X
        case "chromatin" | "expression", _:
            X = drot.datasets.load(f"snareseq_{kind}", download=False).X
        case "scgem" | "coil20" | "pbmc3k" | "olivetti", _:
            X = drot.datasets.load(kind, download=False).X
        case _:
            raise ValueError(f"no data set {name!r}; there are {', '.join(NAMES)}")
    if not size:
        return X
    return X[torch.arange(int(size)) * len(X) // int(size)]
