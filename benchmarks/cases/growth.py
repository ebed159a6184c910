"""Time and memory as n grows: affinities, embeddings and prototypes of clusters in 50 dimensions.

Each method has a process of its own at each n, so that its peak of memory is its own.
``ea`` is the entropic affinity, in float64 on a CPU, ``sea`` the symmetric one in float32, in tiles
to 1e-3, at perplexity 30. ``dense`` keeps n x n arrays, ``tiles`` holds a few MB of them at a time
and forms no plan. The peers are those of the cases ``ea`` and ``sea``. ``tsnekhorn`` takes a kept
plan in float32, whose time is not counted: ``steps`` is fifty steps of the descent, ``rest`` goes
from the spectral start to 1e-3, or until rounding hides what a step gains. Its clusters overlap;
others would drift apart for ever. On a GPU there are besides: both affinities in float64, to 1e-9
and 1e-8 (``double``), ``sea`` in float32 to 1e-4 (``fine``), and what ``plain`` has.

Prediction, for two cores. A pass in tiles takes an exponential and some eight sweeps over an
entry, about 4 ns in float64, and the distances 2 p flops: in all about 4e8 entries x 7 passes x
4 ns = 11 s for ``ea`` at n = 20 000. ``sea`` needs some 20 passes and products, distances
included, of 5 ns: 40 s. Time grows as n^2, and so does the memory of what is dense; that of tiles
does not grow. An evaluation of ``tsnekhorn`` writes an entry some ten times and reads it six times
more for products: 5 ns, 30 s for fifty steps at n = 10 000, their Cholesky factor included.
"""

from __future__ import annotations

from cases import entropic, plain, symmetric, tsnekhorn
from cases.pairing import Problem

PERPLEXITY = 30
MODULES = {"ea": entropic, "sea": symmetric, "tsnekhorn": tsnekhorn}
CLOUDS = {"tsnekhorn": "mixture", "tsne": "mixture"}
SIZES = (1000, 2000, 5000, 10_000, 20_000)
CARD = (10_000, 20_000, 60_000, 200_000, 1_000_000)
MAPS = (5000, 20_000, 50_000)
GROWN = {  # device: kind: method: numbers of points, up to what takes too long or too much
    "cpu": {
        "ea": {"tiles": SIZES}
        | dict.fromkeys(("dense", "scikit-learn", "openTSNE", "TorchDR"), SIZES[:3]),
        "sea": {"tiles": SIZES, "dense": SIZES[:3], "TorchDR 0.1": SIZES[:2]},
        "tsnekhorn": {"steps": SIZES[:4], "rest": SIZES[:3]},
    },
    "cuda": {
        "ea": {"tiles": CARD, "dense": CARD[:3], "TorchDR": CARD[:3]},
        "sea": {"tiles": CARD, "fine": CARD[:3], "dense": CARD[:2], "TorchDR 0.1": CARD[:2]},
        "ea double": {"tiles": CARD[:4]},
        "sea double": {"fine": CARD[:3]},
        "ds": {"tiles": CARD[:4]},
        "tsnekhorn": {"steps": MAPS, "rest": MAPS},
        "tsne": {"steps": MAPS, "rest": MAPS},
        "srgw": {"factors": (60_000,)},
        "distr": {"factors": (60_000,)},
    },
}


def settings(device: str, sizes: tuple[int, ...] = ()) -> list[dict]:
    """One setting a process, from small to large."""
    return [
        {"data": f"{CLOUDS.get(kind, 'blobs')}_{n}", "kind": kind, "method": method}
        for kind, methods in GROWN[device].items()
        for method, numbers in methods.items()
        for n in sizes or numbers
    ]


SETTINGS = {"cpu": settings("cpu"), "cuda": settings("cuda")}
SETTINGS["small"] = settings("cuda", (200,))
SETTINGS["small"] += [s for s in settings("cpu", (200,)) if s not in SETTINGS["small"]]


def problem(data: str, kind: str, method: str, *, device: str = "cpu") -> Problem:
    kind, _, double = kind.partition(" ")
    dtype = "float64" if double or (kind == "ea" and device == "cpu") else "float32"
    module = MODULES.get(kind, plain)
    options = {"kind": kind} if module is plain else {}
    return module.problem(
        data, PERPLEXITY, dtype=dtype, device=device, methods=(method,), **options
    )
