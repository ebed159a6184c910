"""Spectral clustering scores of five affinities on the genomics data of SNEkhorn's Table 2.

    DROT_DATA=<folder of the data files> python benchmarks/table2_ari.py
    DROT_DATA=<folder of the data files> python benchmarks/table2_ari.py --only se

For SNAREseq (both modalities) and scGEM, each affinity is computed on the paper's grid: every
multiple of 10 from 10 to min(n - 1, 300), read as the perplexity (for the self-tuning affinity as
the number k of neighbours). Scalar bandwidths are also taken at the paper's powers of 10, on the
matrix shifted and scaled as the authors' SNAREseq script does. Each plan is clustered with five
seeds. The score is the adjusted Rand index times 100. ``book/reproductions/snekhorn_tables.md``
shows the result and executes part of it again.

Prediction, counted before the run: (30 + 30 + 17) grid points, twice (rows as they are, rows of
length 1), 5 affinities and 5 seeds make 3850 clusterings, most of them of a 1047 x 1047 matrix.
At 0.1 s each and 0.2 s a plan this is about 9 minutes on two cores. ``--only`` measures one
affinity again and keeps the recorded lines of the others; a fifth of the work, 2 minutes.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import drot
import numpy as np
import recording
import sklearn
import torch
from torch import Tensor

OUT = Path(__file__).parent / "results" / "table2_ari.csv"
SEEDS = range(5)
AFFINITIES = ("rs", "ds", "st", "e", "se")  # the order of the file
DATA = ("chromatin", "expression", "scgem")
FIELDS = ["data", "rows", "affinity", "grid", "setting", "nu", "perplexity", "alone", "zeros"]
FIELDS += [f"ari_{seed}" for seed in SEEDS]


def affinity(name: str, cost: drot.costs.Pairwise, setting: int) -> tuple[Tensor, float]:
    """A symmetric plan (n, n) and its scalar bandwidth, nan where it has none."""
    match name:
        case "rs":
            result = drot.gaussian_affinity(cost, perplexity=setting)
            return drot.symmetrize(result), result.nu
        case "ds":
            result = drot.doubly_stochastic_affinity(
                cost, perplexity=setting, tol=1e-6, max_iter=5000
            )
            return result.plan, result.nu
        case "st":
            return drot.self_tuning_affinity(cost, n_neighbors=setting).plan, float("nan")
        case "e":
            return drot.symmetrize(drot.entropic_affinity(cost, perplexity=setting)), float("nan")
        case "se":
            return drot.symmetric_entropic_affinity(cost, perplexity=setting).plan, float("nan")
    raise ValueError(f"no affinity {name!r}; there are {', '.join(AFFINITIES)}")


def with_bandwidth(name: str, cost: drot.costs.Pairwise, nu: float) -> Tensor:
    """P^rs (not yet symmetric) or P^ds at a given bandwidth."""
    if name == "rs":
        return drot.gaussian_affinity(cost, bandwidth=nu).plan
    return drot.doubly_stochastic_affinity(cost, bandwidth=nu, tol=1e-6, max_iter=5000).plan


def scores(plan: Tensor, y: Tensor) -> list[float]:
    """100 x ARI for each seed."""
    with warnings.catch_warnings():  # disconnected graphs are counted in `zeros` instead
        warnings.simplefilter("ignore", UserWarning)
        return [
            100 * drot.metrics.spectral_clustering_ari(plan, y, random_state=seed) for seed in SEEDS
        ]


def describe(plan: Tensor) -> dict[str, float]:
    """Points that keep 99 % of their mass, and zero eigenvalues of the normalised Laplacian."""
    mass = plan.sum(dim=1)
    scale = mass.rsqrt()
    values = torch.linalg.eigvalsh(scale[:, None] * plan * scale)  # 1 - those of the Laplacian
    shannon = -torch.xlogy(plan / mass[:, None], plan / mass[:, None]).sum(dim=1)
    return {
        "perplexity": round(float(shannon.mean().exp()), 3),
        "alone": int((plan.diagonal() > 0.99 * mass).sum()),
        "zeros": int((values > 1 - 1e-8).sum()),
    }


def grid(n: int) -> range:
    return range(10, min(n - 1, 300) + 1, 10)


def load(name: str) -> drot.datasets.DataSet:
    if name == "scgem":
        return drot.datasets.load("scgem", download=False)
    return drot.datasets.load(f"snareseq_{name}", download=False)


def measure(data: str, X: Tensor, y: Tensor, names: tuple[str, ...]) -> Iterator[dict]:
    """All lines of one data set and the affinities named."""
    for rows in ("raw", "unit"):
        points = X / X.norm(dim=1, keepdim=True) if rows == "unit" else X
        cost = drot.sqeuclidean(points)
        for name in names:
            for setting in grid(len(X)):
                plan, nu = affinity(name, cost, setting)
                yield line(data, rows, name, "tens", setting, nu, plan, y)
    cost = drot.sqeuclidean((X - X.mean()) / X.std())
    for name in (name for name in names if name in ("rs", "ds")):
        for exponent in range(-4, 5):
            plan = with_bandwidth(name, cost, 10.0**exponent)
            average = float((drot.row_entropy(plan) - 1).mean().exp())
            if 10 <= average <= min(len(X), 300):
                nu = 10.0**exponent
                yield line(data, "raw", name, "power", exponent, nu, (plan + plan.T) / 2, y)


def line(data, rows, name, kind, setting, nu, plan, y) -> dict:
    found = {f"ari_{s}": round(v, 3) for s, v in zip(SEEDS, scores(plan, y), strict=True)}
    start = {"data": data, "rows": rows, "affinity": name, "grid": kind, "setting": setting}
    return start | {"nu": f"{nu:.9g}"} | describe(plan) | found


def place(row: dict) -> tuple:
    """Where a line stands in the file."""
    kinds = (("raw", "tens"), ("unit", "tens"), ("raw", "power"))
    kind = kinds.index((row["rows"], row["grid"]))
    return DATA.index(row["data"]), kind, AFFINITIES.index(row["affinity"]), int(row["setting"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=AFFINITIES, help="measure one, keep the other lines")
    only = parser.parse_args().only
    names = (only,) if only else AFFINITIES
    version = f"scikit-learn {sklearn.__version__}"
    facts, kept = recording.header(version, f"numpy {np.__version__}"), []
    if only:
        recorded = OUT.read_text("utf8").splitlines(keepends=True)
        head = [text for text in recorded if text.startswith("#")]
        if f"# {version}\n" not in head:
            sys.exit(f"{OUT.name} was not recorded with {version}: run without --only")
        facts = "".join(text for text in head if not text.startswith(f"# {only} "))
        kept = [row for row in csv.DictReader(recorded[len(head) :]) if row["affinity"] != only]
    lines, started = [], time.perf_counter()
    for name in DATA:
        source = load(name)
        lines += measure(name, source.X, source.y, names)
        print(f"{name}: {len(lines)} lines, {time.perf_counter() - started:.0f} s", flush=True)
    seconds, today = time.perf_counter() - started, datetime.date.today()
    facts += f"# {only} measured on {today}, " if only else "# "
    facts += f"seconds {seconds:.0f}\n"
    OUT.parent.mkdir(exist_ok=True)
    with OUT.open("w", encoding="utf8", newline="") as file:
        file.write(facts)
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(kept + lines, key=place))
    print(f"wrote {OUT.name}: {len(kept) + len(lines)} lines, {today}")


if __name__ == "__main__":
    main()
