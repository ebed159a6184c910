"""Spectral clustering scores of five affinities on images: SNEkhorn's Figure 6, three sets of four.

    DROT_DATA=<folder of the data files> python benchmarks/figure6_ari.py

COIL-20, Olivetti and UMIST (PCA to 50 dimensions), the affinities, the grid, the seeds and the
score of ``table2_ari.py``. Finished rows are in the file at once, and rows that are there already
are not computed again. ``book/reproductions/snekhorn_tables.md`` draws the result.

Prediction, measured first at perplexity 30: 0.3 CPU seconds a plan and 0.35 a score on COIL-20,
0.03 and 0.1 on Olivetti, which makes 6 minutes for the grid, and 2 more for UMIST.
"""

from __future__ import annotations

import argparse
import functools
import sys
from itertools import product
from pathlib import Path

import drot
import numpy as np
import recording
import sklearn
import sweep
import table2_ari as table2
import torch

OUT = Path(__file__).parent / "results" / "figure6_ari.csv"
SIZES = {"coil20": 1440, "olivetti": 400, "umist": 575}
FIELDS = ["perplexity", "alone", "zeros", *(f"ari_{seed}" for seed in table2.SEEDS)]


@functools.cache
def points(data: str) -> tuple[drot.costs.Pairwise, torch.Tensor]:
    source = drot.datasets.load(data, download=False)
    return drot.sqeuclidean(source.X), source.y


def score(data: str, affinity: str, setting: int) -> dict:
    """One line: what the plan is like, and 100 x ARI for each seed."""
    cost, y = points(data)
    plan, nu = table2.affinity(affinity, cost, setting)
    found = table2.line(data, "raw", affinity, "tens", setting, nu, plan, y)
    return {name: found[name] for name in FIELDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sweep.add_arguments(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    cases = [
        {"data": data, "affinity": kind, "setting": setting}
        for data, kind in product(SIZES, table2.AFFINITIES)
        for setting in table2.grid(SIZES[data])
    ]
    swept = sweep.run(
        cases,
        score,
        OUT,
        fields=FIELDS,
        facts=recording.header(f"scikit-learn {sklearn.__version__}", f"numpy {np.__version__}"),
        **sweep.options(asked),
    )
    sys.exit(f"{swept.failed} cases failed: run again" if swept.failed else 0)


if __name__ == "__main__":
    main()
