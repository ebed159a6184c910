"""Symmetric entropic affinity: drot's Newton method, ascent along first derivatives, TorchDR.

``drot`` goes to 1e-8 (float32: 1e-4) and, to be compared with methods that do not get there, to
1e-3. The ascent methods start at the entropic affinity and stop at 1e-3; TorchDR starts at its own
constants, on points shifted and scaled by one number each, which leaves the plan as it is, and
stops by its own rule. All end after ``STEPS`` evaluations. ``reached`` is the largest violation of
a row sum or an entropy; TorchDR's is that of the plan it returns.

A pass takes one exponential for each pair. In tiles a product with the Hessian takes it again,
and the distances too; otherwise it reads kept arrays.

Prediction. On even clusters Adam needs 150 to 400 evaluations to 1e-3 at its best rate, Newton's
method some 10 passes and 10 products to 1e-8. On COIL-20 first-order methods do not arrive.
"""

from __future__ import annotations

from typing import Any

import drot
import numpy as np
import torch
from machine import Operations, cache_bytes
from point_clouds import load
from torch import Tensor

from cases.entropic import tile_rows
from cases.pairing import Method, Outcome, Problem, absent, present

STEPS = 500  # TorchDR's own limit
TOLERANCE = {"float64": 1e-8, "float32": 1e-4}
METHODS = ("dense", "rough", "tiles", "ascent 0.1", "ascent 1", "TorchDR 0.1", "TorchDR 1")
SETTINGS = {
    "small": [{"data": "even_150", "perplexity": 10, "steps": 60}],
    "cpu": [
        {"data": "even_1000", "perplexity": 30},
        {"data": "coil20", "perplexity": 30},
        {"data": "chromatin", "perplexity": 30},
    ],
    "cuda": [
        {
            "data": "blobs_10000",
            "perplexity": 30,
            "dtype": "float32",
            "methods": ("dense", "rough", "tiles", "TorchDR 0.1", "TorchDR 1"),
        }
    ],
}


def problem(
    data: str,
    perplexity: int,
    *,
    dtype: str = "float64",
    device: str = "cpu",
    steps: int = STEPS,
    methods: tuple[str, ...] = METHODS,
) -> Problem:
    X = load(data).to(device, getattr(torch, dtype))
    n, p = X.shape
    tol, made = TOLERANCE[dtype], []
    for name in methods:
        kind, _, rate = name.partition(" ")
        match kind:
            case "dense":
                made.append(ours(X, perplexity, None, tol))
            case "rough":
                made.append(ours(X, perplexity, None, 1e-3))
            case "tiles":
                made.append(ours(X, perplexity, tile_rows(X), 1e-3))
            case "fine":
                made.append(ours(X, perplexity, tile_rows(X), tol))
            case "ascent":
                made.append(ascent(X, perplexity, float(rate), steps))
            case "TorchDR":
                made.append(torchdr(X, perplexity, float(rate), steps))
    shown = f"{data}, perplexity {perplexity}"
    return Problem(shown, n, p, dtype, device, "residual", methods=made)


def operations(X: Tensor, found: Any, block: int | None) -> Operations:
    """What the passes and products of a run cannot do without."""
    n, p = X.shape
    size = n * n * X.element_size()
    start = found.work[0] - 1  # passes of the start, which keeps its tile in the cache
    rest = found.passes - start + found.products
    if block is not None:
        return Operations(2 * n * n * p, n * n) * rest + Operations(2 * n * n * p, start * n * n)
    # after the start, each pass and each product reads at least one whole array
    moved = (2 + rest) * size if size > cache_bytes(X.device.type) else 0.0
    return Operations(2 * n * n * p, found.passes * n * n, moved)


def ours(X: Tensor, xi: int, block: int | None, tol: float) -> Method:
    def run() -> drot.affinities.SymmetricEntropicAffinity:
        cost = drot.sqeuclidean(X, block=block)
        return drot.symmetric_entropic_affinity(cost, perplexity=xi, tol=tol, on_failure="ignore")

    def read(found: drot.affinities.SymmetricEntropicAffinity) -> Outcome:
        work = operations(X, found, block)
        return Outcome(found.residual, work, passes=found.passes, products=found.products)

    return Method(f"drot {'tiles' if block else 'dense'}, to {tol:.0e}", "drot", run, read)


def ascent(X: Tensor, xi: int, rate: float, steps: int) -> Method:
    def run() -> drot.affinities.SymmetricEntropicAffinity:
        return drot.affinities.symmetric_dual_ascent(
            drot.sqeuclidean(X),
            perplexity=xi,
            learning_rate=rate,
            tol=1e-3,
            max_iter=steps,
            on_failure="ignore",
        )

    def read(found: drot.affinities.SymmetricEntropicAffinity) -> Outcome:
        return Outcome(found.residual, operations(X, found, None), passes=found.passes, products=0)

    return Method(f"Adam, rate {rate:g}, to 1e-03", "drot", run, read)


def torchdr(X: Tensor, xi: int, rate: float, steps: int) -> Method:
    name = f"TorchDR, rate {rate:g}"
    if not present("torchdr"):
        return absent(name, "torchdr")
    import torchdr

    points = (X - X.mean()) / X.std()
    n, p = X.shape

    def run() -> tuple[Any, Tensor]:
        solver = torchdr.SymmetricEntropicAffinity(perplexity=xi, lr=rate, max_iter=steps)
        return solver, solver(points, log=True)

    def read(found: tuple[Any, Tensor]) -> Outcome:
        solver, log_p = found
        log_p = log_p.double() + np.log(n)
        P = log_p.exp()
        row_sum, shannon = P.sum(dim=1), -torch.xlogy(P, P).sum(dim=1)
        gap = (shannon + row_sum - np.log(xi) - 1).abs()
        residual = float(torch.maximum(gap, (row_sum - 1).abs()).max())
        passes = int(solver.n_iter_) + 1
        size = n * n * X.element_size()
        moved = passes * size if size > cache_bytes(X.device.type) else 0.0
        work = Operations(2 * n * n * p, passes * n * n, moved)
        return Outcome(residual, work, passes=passes, products=0)

    return Method(name, "torchdr", run, read)
