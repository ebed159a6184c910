"""Seconds and memory of functions and estimators by the number of points: Chapter 16, quickstart.

    python benchmarks/lookup.py

Ten Gaussian clouds in 50 dimensions, perplexity 30, float64, defaults, one thread. Each line is a
process of its own: seconds of one call, or fit, from points (processor time), and the peak of the
resident memory less what the process held before, the points among it. A call that is not back
within LIMIT seconds leaves no line.

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
FIELDS = ["name", "n", "cpu_seconds", "memory_mb"]


def cloud(n: int) -> torch.Tensor:
    """n points around ten centres in 50 dimensions."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(10, 50))
    return torch.from_numpy(centres[rng.integers(10, size=n)] + rng.normal(size=(n, 50)))


def symmetric(X):
    return drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=30)


def fitted(name, *given):
    return lambda X: getattr(drot, name)(*given, random_state=0).fit(X)


CASES = {
    "entropic_affinity": lambda X: drot.entropic_affinity(drot.sqeuclidean(X), perplexity=30),
    "doubly_stochastic_affinity": lambda X: drot.doubly_stochastic_affinity(
        drot.sqeuclidean(X), perplexity=30
    ),
    "symmetric_entropic_affinity": symmetric,
    "TSNE": fitted("TSNE"),
    "TSNEkhorn": fitted("TSNEkhorn"),
    "UMAP": fitted("UMAP"),
    "semi_relaxed_gw": lambda X: drot.semi_relaxed_gw(
        symmetric(X).plan, torch.eye(10, dtype=torch.float64)
    ),
    "SemiRelaxedGWClustering": fitted("SemiRelaxedGWClustering", 10),
    "DistR": fitted("DistR", 50),
}


def measure(name: str, n: int) -> None:
    """One call, printed."""
    torch.set_num_threads(1)
    CASES[name](cloud(100))  # loads what is loaded once
    X = cloud(n)
    before, started = recording.forget_peak(), time.process_time()
    CASES[name](X)
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
