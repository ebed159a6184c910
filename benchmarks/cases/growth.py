"""Time and memory as n grows: affinities of blobs in 50 dimensions, perplexity 30.

Each method has a process of its own at each n, so that its peak of memory is its own.
``ea`` is the entropic affinity, in float64 on a CPU, ``sea`` the symmetric one in float32, in tiles
to 1e-3. ``dense`` keeps n x n arrays, ``tiles`` holds a few MB of them at a time and forms no plan.
The peers are those of the cases ``ea`` and ``sea``.

Prediction, for two cores. A pass in tiles takes an exponential and some eight sweeps over an
entry, about 4 ns in float64, and the distances 2 p flops: in all about 4e8 entries x 7 passes x
4 ns = 11 s for ``ea`` at n = 20 000. ``sea`` needs some 20 passes and products, distances
included, of 5 ns: 40 s. Time grows as n^2, and so does the memory of what is dense; that of tiles
does not grow.
"""

from __future__ import annotations

from cases import entropic, symmetric
from cases.pairing import Problem

PERPLEXITY = 30
SIZES = (1000, 2000, 5000, 10_000, 20_000)
KINDS = {  # method, most points: beyond, it takes too long or too much
    "cpu": {
        "ea": {
            "tiles": 20_000,
            "dense": 5000,
            "scikit-learn": 5000,
            "openTSNE": 5000,
            "TorchDR": 5000,
        },
        "sea": {"tiles": 20_000, "dense": 5000, "TorchDR 0.1": 2000},
    },
    "cuda": {
        "ea": {"tiles": 1_000_000, "dense": 60_000, "TorchDR": 60_000},
        "sea": {"tiles": 1_000_000, "dense": 20_000, "TorchDR 0.1": 20_000},
    },
}


def settings(sizes: tuple[int, ...], device: str) -> list[dict]:
    """One setting a process, from small to large."""
    kind = "cpu" if device == "cpu" else "cuda"
    return [
        {"data": f"blobs_{n}", "kind": case, "method": method}
        for case, methods in KINDS[kind].items()
        for method, most in methods.items()
        for n in sizes
        if n <= most
    ]


SETTINGS = {
    "small": settings((200,), "cpu"),
    "cpu": settings(SIZES, "cpu"),
    "cuda": settings((10_000, 20_000, 60_000, 200_000, 1_000_000), "cuda"),
}


def problem(data: str, kind: str, method: str, *, device: str = "cpu") -> Problem:
    module, dtype = (entropic, "float64") if kind == "ea" else (symmetric, "float32")
    if device != "cpu":
        dtype = "float32"
    return module.problem(data, PERPLEXITY, dtype=dtype, device=device, methods=(method,))
