"""Entropic affinity: drot, scikit-learn, openTSNE, TorchDR.

All drop the diagonal and take every other point for a neighbour, but TorchDR, whose default keeps
the 3 xi nearest; its note says what its bandwidths give over all points. The peers return a plan,
ours the duals, from which a plan costs one pass more. ``reached`` is the largest
|log perplexity - log xi| of a row, computed afterwards.

A pass takes one exponential for each pair; one matrix product gives the distances. Peers do not
report passes. scikit-learn's and openTSNE's are counted by replaying the bisection that both
document (start at 1, double or halve until bracketed, then halve) to their tolerance, 1e-5 and,
as asked here, 1e-8; TorchDR's are the calls of its kernel, as a share of all pairs.

Prediction. Third-order steps need 4 to 7 passes to 1e-9 where the bisection needs 20 to 35. A
pass costs an exponential and some eight sweeps over a tile in the cache: 3 to 5 times the floor.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import drot
import numpy as np
import torch
from machine import Operations, cache_bytes
from point_clouds import load
from torch import Tensor

from cases.pairing import Method, Outcome, Problem, absent, present

SETTINGS = {
    "small": [{"data": "even_150", "perplexity": 10}],
    "cpu": [
        {"data": "digits", "perplexity": 30},
        {"data": "digits", "perplexity": 300},
        {"data": "coil20", "perplexity": 30},
        {"data": "pbmc3k", "perplexity": 30},
        {"data": "pbmc3k", "perplexity": 5},
    ],
    "cuda": [{"data": "blobs_10000", "perplexity": 30, "dtype": "float32"}],
}
METHODS = ("dense", "tiles", "scikit-learn", "openTSNE", "TorchDR")
BLOCK = 256  # rows of a tile on a CPU
CARD = 2**26  # entries of a tile on a GPU: four such arrays of float32 take 1 GB at any n
CHECKED = 20_000  # points; beyond, the error is the one that the solver reports


def tile_rows(X: Tensor) -> int:
    return BLOCK if X.device.type == "cpu" else max(16, CARD // len(X))


def problem(
    data: str,
    perplexity: int,
    *,
    dtype: str = "float64",
    device: str = "cpu",
    methods: tuple[str, ...] = METHODS,
) -> Problem:
    X = load(data).to(device, getattr(torch, dtype))
    n, p = X.shape
    makers = {
        "dense": lambda: ours(X, perplexity, None),
        "tiles": lambda: ours(X, perplexity, tile_rows(X)),
        "scikit-learn": lambda: sklearn(X, perplexity),
        "openTSNE": lambda: opentsne(X, perplexity),
        "TorchDR": lambda: torchdr(X, perplexity),
    }
    off_card = () if device == "cpu" else ("scikit-learn", "openTSNE")
    return Problem(
        f"{data}, perplexity {perplexity}",
        *(n, p, dtype, device, "log perplexity error"),
        methods=[makers[name]() for name in methods if name not in off_card],
    )


def once(X: Tensor, passes: float, sweeps: float = 0.0) -> Operations:
    """Distances once, an exponential a pass, and ``sweeps`` over an array too large to stay."""
    n, p = X.shape
    size = n * n * X.element_size()
    moved = sweeps * size if size > cache_bytes(X.device.type) else 0.0
    return Operations(flops=2 * n * n * p, exps=passes * n * n, bytes=moved)


def ours(X: Tensor, xi: int, block: int | None) -> Method:
    def run() -> drot.affinities.EntropicAffinity:
        return drot.entropic_affinity(
            drot.sqeuclidean(X, block=block), perplexity=xi, diagonal="drop"
        )

    def read(found: drot.affinities.EntropicAffinity) -> Outcome:
        gap = found.residual
        if len(X) <= CHECKED:
            gap = (found.perplexity.double().log() - np.log(xi)).abs().max()
        # a dense array is written and read; a tile stays in the cache
        operations = once(X, found.passes, 0 if block else 2)
        return Outcome(float(gap), operations, passes=found.passes)

    return Method(f"drot {'tiles' if block else 'dense'}", "drot", run, read)


def sklearn(X: Tensor, xi: int) -> Method:
    from sklearn.manifold._utils import _binary_search_perplexity
    from sklearn.metrics import pairwise_distances

    def run() -> np.ndarray:
        sq = pairwise_distances(X.numpy(), metric="euclidean", squared=True)
        return _binary_search_perplexity(sq.astype(np.float32), float(xi), 0)

    return Method("scikit-learn", "scikit-learn", run, lambda plan: of_plan(X, xi, plan, 1e-5, 100))


def opentsne(X: Tensor, xi: int) -> Method:
    if not present("openTSNE"):
        return absent("openTSNE", "openTSNE")
    from openTSNE._tsne import compute_gaussian_perplexity
    from sklearn.metrics import pairwise_distances

    def run() -> np.ndarray:
        distances = torch.from_numpy(pairwise_distances(X.numpy()))
        return compute_gaussian_perplexity(
            without_diagonal(distances).numpy(),
            np.array([float(xi)]),
            perplexity_tol=1e-8,
            max_iter=200,
            num_threads=torch.get_num_threads(),
        )

    def read(plan: Any) -> Outcome:
        return of_plan(X, xi, np.asarray(plan), 1e-8, 200)

    return Method("openTSNE", "openTSNE", run, read)


def torchdr(X: Tensor, xi: int) -> Method:
    if not present("torchdr"):
        return absent("TorchDR", "torchdr")
    import torchdr
    from torchdr.affinity import entropic

    calls: list[int] = []
    kernel = entropic._log_Pe

    def counted(C: Tensor, eps: Tensor) -> Tensor:
        calls.append(C.numel())
        return kernel(C, eps)

    def run() -> tuple[Tensor, Tensor]:
        calls.clear()
        solver = torchdr.EntropicAffinity(perplexity=xi)
        entropic._log_Pe = counted
        try:
            plan, _ = solver(X)
        finally:
            entropic._log_Pe = kernel
        return plan, solver.eps_

    def read(found: tuple[Tensor, Tensor]) -> Outcome:
        plan, eps = found
        passes = sum(calls) / len(X) ** 2
        note = ""
        if len(X) <= CHECKED:
            note = f"{error_at(X, xi, eps):.2g} with all other points for neighbours"
        return Outcome(error(plan, xi), once(X, passes), passes=passes, note=note)

    return Method("TorchDR", "torchdr", run, read)


def of_plan(X: Tensor, xi: int, plan: np.ndarray, tol: float, most: int) -> Outcome:
    """The error of a plan, and the passes of the bisection that led to it."""
    passes = bisection_passes(X, xi, tol, most)
    return Outcome(error(plan, xi), once(X, passes, 2), passes=passes)


def error(plan: Tensor | np.ndarray, xi: float) -> float:
    """Largest error on the log perplexity of a row."""
    P = torch.as_tensor(plan, dtype=torch.float64)
    P = P / P.sum(dim=1, keepdim=True)
    return float((-torch.xlogy(P, P).sum(dim=1) - np.log(xi)).abs().max())


def error_at(X: Tensor, xi: float, eps: Tensor) -> float:
    """The same for the rows over all other points at given bandwidths."""
    worst, scale = 0.0, eps.double().view(-1, 1)
    for rows, tile in drot.sqeuclidean(X.double(), block=256).tiles():
        tile = tile.clone()
        tile.diagonal(rows.start).fill_(torch.inf)
        worst = max(worst, error(torch.softmax(-tile / scale[rows], dim=1), xi))
    return worst


@cache  # the repetitions ask again
def bisection_passes(X: Tensor, xi: float, tol: float, most: int) -> float:
    """Row evaluations, over n, of the bisection on beta = 1 / eps that t-SNE software uses."""
    sq = without_diagonal(drot.sqeuclidean(X).dense())
    n = len(sq)
    beta, low = sq.new_ones(n), sq.new_zeros(n)
    high = sq.new_full((n,), torch.inf)
    active, work = torch.arange(n), 0
    for _ in range(most):
        e = sq[active] * beta[active, None]
        e -= e.amin(dim=1, keepdim=True)
        w = torch.exp(-e)
        z = w.sum(dim=1)
        gap = z.log() + w.mul_(e.clamp_max_(1e3)).sum(dim=1) / z - np.log(xi)
        work += len(active)
        left = ~(gap.abs() <= tol)
        active, gap = active[left], gap[left]
        if not len(active):
            break
        b = beta[active]
        low[active] = torch.where(gap > 0, b, low[active])
        high[active] = torch.where(gap > 0, high[active], b)
        beta[active] = torch.where(high[active].isinf(), 2 * b, (low[active] + high[active]) / 2)
    return work / n


def without_diagonal(square: Tensor) -> Tensor:
    n = len(square)
    return square.flatten()[1:].view(n - 1, n + 1)[:, :-1].reshape(n, n - 1)
