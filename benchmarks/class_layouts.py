"""Where the classes lie after t-SNE from five starts: graph coupling's Figures 1 and 2.

    DROT_DATA=<folder of the data files> python benchmarks/class_layouts.py

The balanced images of graph_coupling_tables.py, 8920 of MNIST and 9720 of Fashion-MNIST. openTSNE
runs plainly (perplexity 30, 1000 steps, no exaggeration) from two random starts, PCA, Laplacian
eigenmaps and ccPCA. A line of stage ``start`` or ``end`` holds the means of the ten classes, in the
order of their numbers, and the correlation of the 45 distances between them with those of the
means in all 50 dimensions; stage ``means`` is the PCA of the class means.

Prediction: 60 s a run of openTSNE at this size, ten runs, 10 minutes. Classes from a random start
correlate less than from the others: below .5, where the informed starts have .7 or more.
"""

from __future__ import annotations

import argparse
import functools
import sys
from importlib.metadata import version
from pathlib import Path

import drot
import graph_coupling_tables as tables
import recording
import sweep
import torch
from torch import Tensor

OUT = Path(__file__).parent / "results" / "class_layouts.csv"
KEY = ["data", "n", "start", "seed", "stage"]
RUNS = [("random", 0), ("random", 1), ("PCA", 0), ("Laplacian", 0), ("ccPCA", 0)]


def class_means(Z: Tensor, y: Tensor) -> Tensor:
    """(classes, q)"""
    return torch.stack([Z[y == k].mean(dim=0) for k in y.unique()])


@functools.cache
def embedded(data: str, n: int, start: str, seed: int) -> Tensor:
    Z = tables.start(data, n, start, "", seed)
    return torch.from_numpy(tables.run_opentsne(data, n, "plain", Z))


def case(data: str, n: int, start: str, seed: int, stage: str) -> dict[str, str]:
    torch.set_num_threads(1)
    X, y = tables.load(data, n)
    means = class_means(X, y)
    if stage == "means":
        layout = drot.spectral.pca(means, 2).Z
    elif stage == "start":
        layout = class_means(tables.start(data, n, start, "", seed), y)
    else:
        layout = class_means(embedded(data, n, start, seed), y)
    both = torch.stack([torch.pdist(layout.to(means.dtype)), torch.pdist(means)])
    places = "; ".join(f"{a:.4f} {b:.4f}" for a, b in layout.tolist())
    return {"match": f"{torch.corrcoef(both)[0, 1]:.4f}", "layout": places}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sweep.add_arguments(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for data, n in tables.BALANCED.items():
        rows.append((data, n, "PCA of the class means", 0, "means"))
        rows += [(data, n, *run, stage) for run in RUNS for stage in ("start", "end")]
    names = ("openTSNE", "scikit-learn", "numpy", "joblib")
    swept = sweep.run(
        [dict(zip(KEY, row, strict=True)) for row in rows],
        case,
        OUT,
        fields=["match", "layout"],
        facts=recording.header(", ".join(f"{name} {version(name)}" for name in names)),
        **sweep.options(asked),
    )
    sys.exit(f"{swept.failed} cases failed: run again" if swept.failed else 0)


if __name__ == "__main__":
    main()
