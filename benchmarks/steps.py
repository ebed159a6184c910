"""Where descents are after 50, 100 and 200 steps, by start and by how long a step may be.

    DROT_DATA=<folder of the data files> python benchmarks/steps.py

Each line is 200 steps of :func:`drot.embed` on one thread, without its tolerance. ``reach`` bounds
a step in radii of the map; where it is empty nothing does. ``spread`` is the start's: those that
are spectral or PCA have 1, the package's by chance has 0.1. ``steps`` counts those to a residual
of 0.02, the default tolerance, and ``kl`` is the divergence there; both are empty where 200 are too
few. Divergences are F and its constant, in nats for each unit of the mass of P. Perplexity 30;
15 neighbours for UMAP. In float32 the plan of float64 is rounded. ``size`` is the last map's.

A run that was killed goes on where it was.

Prediction, one thread: 2 s a line of 1000 points, four times that of 2000: 25 minutes.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
from pathlib import Path

import drot
import recording
import sweep
import torch
from drot.embeddings.descent import lbfgs, metric_of, radius
from drot.embeddings.losses import SNEkhornLoss
from drot.embeddings.starts import with_noise
from point_clouds import load
from torch import Tensor

OUT = Path(__file__).parent / "results" / "steps.csv"
CLOUDS = ("scgem", "mnist_1000", "digits_1000", "chromatin", "pbmc3k_1000", "coil20_1000", "toy")
CLOUDS += ("mnist_2000",)
METHODS = ("t-SNE", "t-SNEkhorn", "SNEkhorn", "LargeVis", "UMAP")
RULES = {  # by start: spread and reach
    "spectral": [(1, None), (1, 0.05), (1, 0.1), (1, 0.2)],
    "PCA": [(1, None), (1, 0.05), (1, 0.1), (1, 0.2)],
    "random 0": [(1, None), (1, 0.1), (0.1, 0.05), (0.1, 0.1), (0.1, 0.2)],
    "random 1": [(1, None), (0.1, 0.1)],
    "random 2": [(1, None), (0.1, 0.1)],
}
PERPLEXITY, NEIGHBORS, TOL, MARKS = 30, 15, 0.02, (50, 100, 200)
FIELDS = ["n", "steps", "kl", *(f"kl_{k}" for k in MARKS), "size"]


def cases() -> list[dict]:
    """One a line; the slow methods on the small clouds and from one start by chance only."""
    found = []
    for data, method, start in itertools.product(CLOUDS, METHODS, RULES):
        fast = method in ("t-SNE", "t-SNEkhorn")
        if data == "mnist_2000" and method in ("SNEkhorn", "LargeVis"):
            continue
        if start in ("random 1", "random 2") and not fast:
            continue
        case = {"data": data, "objective": method, "start": start}
        found += [case | {"spread": s, "reach": r, "dtype": "float64"} for s, r in RULES[start]]
        if start == "spectral":
            found.append(case | {"spread": 1, "reach": 0.1, "dtype": "float32"})
    return found


@functools.lru_cache(maxsize=1)
def points(data: str) -> Tensor:
    return drot.datasets.heteroscedastic_multinomials().X if data == "toy" else load(data)


@functools.lru_cache(maxsize=1)
def plan_of(data: str, method: str) -> Tensor:
    cost = drot.sqeuclidean(points(data))
    if method == "UMAP":
        return drot.fuzzy_union(drot.umap_membership(cost, n_neighbors=NEIGHBORS))
    if "khorn" in method:
        return drot.symmetric_entropic_affinity(cost, perplexity=PERPLEXITY, tol=1e-8).plan
    return drot.symmetrize(drot.entropic_affinity(cost, perplexity=PERPLEXITY, diagonal="drop"))


def loss_of(method: str, plan: Tensor) -> drot.SNELoss | SNEkhornLoss | drot.BernoulliLoss:
    if "khorn" in method:
        return SNEkhornLoss(plan, "student" if method == "t-SNEkhorn" else "gaussian")
    if method == "t-SNE":
        return drot.SNELoss(plan, "student")
    a, b = drot.umap_curve()
    curve = {"kernel": "curve", "a": a, "b": b} if method == "UMAP" else {}
    return drot.BernoulliLoss(plan, **curve)


def start_of(data: str, plan: Tensor, start: str, spread: float) -> Tensor:
    """Centred, in float64."""
    if start == "PCA":
        return drot.pca_start(points(data))
    if start == "spectral":
        return drot.spectral_start(plan)
    Z = spread * drot.random_start(len(plan), random_state=int(start.split()[1]))
    return Z - Z.mean(dim=0)


def measure(data, objective, start, spread, reach, dtype) -> dict:
    """The fields of a line."""
    torch.set_num_threads(1)
    plan = plan_of(data, objective)
    Z = start_of(data, plan, start, spread).to(getattr(torch, dtype))
    loss = loss_of(objective, plan.to(Z.dtype))
    weights = loss.weights
    evaluate = functools.partial(_evaluate, loss)
    Z, metric = with_noise(Z, weights, 0), metric_of(weights)
    steps = lbfgs(evaluate, Z, metric, reach=reach or math.inf)
    values, there = [], None
    for k, step in enumerate(itertools.islice(steps, MARKS[-1] + 1)):
        values.append((step.found.value + loss.constant) / loss.mass)
        if there is None and step.found.residual(radius(step.Z), loss.mass) <= TOL:
            there = k
    marks = {f"kl_{k}": f"{values[min(k, len(values) - 1)]:.5f}" for k in MARKS}
    kl = None if there is None else f"{values[there]:.5f}"
    return {"n": len(plan), "steps": there, "kl": kl, "size": f"{radius(step.Z):.4g}"} | marks


def _evaluate(loss, Z: Tensor, warm: Tensor | None):
    return loss.evaluate(Z, warm=warm, tol=TOL / 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sweep.add_arguments(parser)
    torch.set_num_threads(1)  # as the lines have it; the header says so
    options = sweep.options(parser.parse_args())
    print(sweep.run(cases(), measure, OUT, fields=FIELDS, facts=recording.header(), **options))


if __name__ == "__main__":
    main()
