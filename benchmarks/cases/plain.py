"""What only this package has, or has in float32 and in tiles: one call each, as n grows.

``ds`` is the doubly stochastic affinity of some average perplexity in tiles. ``tsne`` takes a kept
plan, whose time is not counted: ``steps`` is fifty steps, ``rest`` goes to 1e-3. ``srgw`` and
``distr`` take inner products by their factors and have 50 prototypes: k-means and moves of single
points, and distributional reduction from clusters. ``reached`` is the residual or the objective.
"""

from __future__ import annotations

import drot
import torch
from point_clouds import load
from torch import Tensor

from cases.entropic import tile_rows
from cases.pairing import Method, Outcome, Problem

K, STEPS, TOL = 50, 50, 1e-3


def problem(
    data: str,
    perplexity: int,
    *,
    kind: str,
    dtype: str = "float64",
    device: str = "cpu",
    methods: tuple[str, ...] = (),
) -> Problem:
    X = load(data).to(device, getattr(torch, dtype))
    X = X - X.mean(dim=0)
    maker = {"ds": ds, "tsne": tsne, "srgw": srgw, "distr": distr}[kind]
    made = [maker(X, perplexity, name) for name in methods]
    quantity = "residual" if kind in ("ds", "tsne") else "objective"
    return Problem(f"{data}, perplexity {perplexity}", *X.shape, dtype, device, quantity, made)


def ds(X: Tensor, xi: int, method: str) -> Method:
    def run() -> drot.affinities.DoublyStochasticAffinity:
        cost = drot.sqeuclidean(X, block=tile_rows(X))
        return drot.doubly_stochastic_affinity(cost, perplexity=xi, on_failure="ignore")

    return Method(f"drot {method}", "drot", run, lambda a: Outcome(a.residual, passes=a.passes))


def tsne(X: Tensor, xi: int, method: str) -> Method:
    plan = drot.symmetrize(
        drot.entropic_affinity(drot.sqeuclidean(X), perplexity=xi, diagonal="drop")
    )
    options = {"tol": TOL} if method == "rest" else {"max_iter": STEPS}

    def run() -> drot.embeddings.Embedding:
        return drot.tsne(plan, on_failure="ignore", **options)

    name = f"drot, to {TOL:.0e}" if method == "rest" else f"drot, {STEPS} steps"
    return Method(name, "drot", run, lambda e: Outcome(e.residual, passes=e.passes, steps=e.n_iter))


def srgw(X: Tensor, xi: int, method: str) -> Method:
    """Prototypes are random points of the plane, as in the case ``srgw``."""
    seed = torch.Generator().manual_seed(1)
    Z = 5 * torch.randn(K, 2, dtype=torch.float64, generator=seed).to(X)

    def run() -> drot.gromov.SemiRelaxedGW:
        return drot.semi_relaxed_gw(drot.gram(X), drot.gram(Z), on_failure="ignore")

    return Method(f"drot {method}", "drot", run, lambda s: Outcome(s.objective))


def distr(X: Tensor, xi: int, method: str) -> Method:
    options = {"kernel": "gram", "clustering": "kmeans", "init": "cluster_then_reduce"}

    def run() -> drot.distributional.DistributionalReduction:
        return drot.distributional_reduction(drot.gram(X), K, on_failure="ignore", **options)

    return Method(f"drot {method}", "drot", run, lambda d: Outcome(d.objective, steps=d.n_iter))
