"""Time and memory as n grows: affinities and embeddings of clusters in 50 dimensions.

Each method has a process of its own at each n, so that its peak of memory is its own.
``ea`` is the entropic affinity, in float64 on a CPU, ``sea`` the symmetric one in float32, in tiles
to 1e-3, at perplexity 30. ``dense`` keeps n x n arrays, ``tiles`` holds a few MB of them at a time
and forms no plan. The peers are those of the cases ``ea`` and ``sea``. ``tsnekhorn`` takes a kept
plan in float32, whose time is not counted: ``steps`` is fifty steps of the descent, ``rest`` goes
from the spectral start to 1e-3, or until rounding hides what a step gains. Its clusters overlap;
others would drift apart for ever.

Prediction, for two cores. A pass in tiles takes an exponential and some eight sweeps over an
entry, about 4 ns in float64, and the distances 2 p flops: in all about 4e8 entries x 7 passes x
4 ns = 11 s for ``ea`` at n = 20 000. ``sea`` needs some 20 passes and products, distances
included, of 5 ns: 40 s. Time grows as n^2, and so does the memory of what is dense; that of tiles
does not grow. An evaluation of ``tsnekhorn`` writes an entry some ten times and reads it six times
more for products: 5 ns, 30 s for fifty steps at n = 10 000, their Cholesky factor included.
"""

from __future__ import annotations

from cases import entropic, symmetric, tsnekhorn
from cases.pairing import Problem

PERPLEXITY = 30
MODULES = {"ea": entropic, "sea": symmetric, "tsnekhorn": tsnekhorn}
CLOUDS = {"ea": "blobs", "sea": "blobs", "tsnekhorn": "mixture"}
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
        "tsnekhorn": {"steps": 10_000, "rest": 5000},
    },
    "cuda": {
        "ea": {"tiles": 1_000_000, "dense": 60_000, "TorchDR": 60_000},
        "sea": {"tiles": 1_000_000, "dense": 20_000, "TorchDR 0.1": 20_000},
        "tsnekhorn": {"steps": 20_000, "rest": 20_000},
    },
}


def settings(sizes: tuple[int, ...], device: str) -> list[dict]:
    """One setting a process, from small to large."""
    kind = "cpu" if device == "cpu" else "cuda"
    return [
        {"data": f"{CLOUDS[case]}_{n}", "kind": case, "method": method}
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
    dtype = "float64" if kind == "ea" and device == "cpu" else "float32"
    return MODULES[kind].problem(data, PERPLEXITY, dtype=dtype, device=device, methods=(method,))
