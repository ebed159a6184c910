"""Seconds and memory of the package's functions by the number of points: the table of Chapter 16.

    python benchmarks/lookup.py

Ten Gaussian clouds in 50 dimensions, perplexity 30, float64, defaults, one thread. Each line is a
process of its own: seconds of one call (processor time), and the peak of the resident memory less
what the process held before the call, the points among it. The time of a map includes the
affinity that it is drawn from. A call that is not back within LIMIT seconds leaves no line.

Prediction. Seconds are passes times n^2 times 10 to 40 ns: at n = 1000 some 0.1 s for the entropic
affinity, 0.5 s for the symmetric one, and a minute for its map of 5000 points.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from pathlib import Path

import drot
import numpy as np
import recording
import torch

OUT = Path(__file__).parent / "results" / "lookup.csv"
SIZES = (1000, 2000, 5000)
LIMIT = 400
FIELDS = ["function", "n", "cpu_seconds", "memory_mb"]


def cloud(n: int) -> torch.Tensor:
    """n points around ten centres in 50 dimensions."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(10, 50))
    return torch.from_numpy(centres[rng.integers(10, size=n)] + rng.normal(size=(n, 50)))


def symmetric(C):
    return drot.symmetric_entropic_affinity(C, perplexity=30)


CASES = {
    "entropic_affinity": lambda C: drot.entropic_affinity(C, perplexity=30),
    "doubly_stochastic_affinity": lambda C: drot.doubly_stochastic_affinity(C, perplexity=30),
    "symmetric_entropic_affinity": symmetric,
    "tsne": lambda C: drot.tsne(
        drot.symmetrize(drot.entropic_affinity(C, perplexity=30, diagonal="drop"))
    ),
    "snekhorn": lambda C: drot.snekhorn(symmetric(C), kernel="student"),
    "umap": lambda C: drot.umap(drot.fuzzy_union(drot.umap_membership(C))),
    "semi_relaxed_gw": lambda C: drot.semi_relaxed_gw(
        symmetric(C).plan, torch.eye(10, dtype=torch.float64)
    ),
    "srgw_barycenter": lambda C: drot.srgw_barycenter(symmetric(C).plan, 10),
    "distributional_reduction": lambda C: drot.distributional_reduction(symmetric(C).plan, 50),
}


def measure(name: str, n: int) -> None:
    """One call, printed."""
    torch.set_num_threads(1)
    CASES[name](drot.sqeuclidean(cloud(100)))  # loads what is loaded once
    C = drot.sqeuclidean(cloud(n))
    before, started = recording.forget_peak(), time.process_time()
    CASES[name](C)
    print(f"{time.process_time() - started:.4g},{recording.peak_mb() - before:.0f}")


def main() -> None:
    torch.set_num_threads(1)
    lines = []
    for n in SIZES:
        for name in CASES:
            command = [sys.executable, "-W", "ignore", __file__, name, str(n)]
            try:
                run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
            except subprocess.TimeoutExpired:
                continue
            if run.returncode:
                print(name, n, run.stderr[-300:])
                continue
            lines.append([name, n, *run.stdout.split()[-1].split(",")])
            print(lines[-1], flush=True)
            with OUT.open("w", newline="", encoding="utf8") as file:
                file.write(recording.header("blobs in 50 dimensions, perplexity 30, float64"))
                table = csv.writer(file, lineterminator="\n")
                table.writerow(FIELDS)
                table.writerows(lines)


if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 1 else main()
