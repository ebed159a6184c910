"""t-SNE of few points: drot, openTSNE, scikit-learn, from points to positions.

``drot`` is the exact objective by L-BFGS until no entry of the gradient exceeds 1e-3, affinity
included, from spectral and from PCA starts; the peers run with their defaults: openTSNE 750 steps
after 250 exaggerated ones, exact neighbours, scikit-learn 1000 steps, with its tree and exactly.
``reached`` is KL(P | Q) in nats for mass 1, of the exact P on all pairs, computed afterwards.

A pass takes one reciprocal for each pair, which counts as nothing, and two products with the
positions. The work of a tree is not counted: no floor stands beside it.

Prediction. Our passes cost what exact t-SNE costs, and there are about half as many.
"""

from __future__ import annotations

import drot
import numpy as np
import torch
from machine import Operations
from point_clouds import load
from torch import Tensor

from cases.entropic import once
from cases.pairing import Method, Outcome, Problem, absent, present

METHODS = ("drot spectral", "drot PCA", "openTSNE", "scikit-learn barnes_hut")
METHODS += ("scikit-learn exact",)
SETTINGS = {
    "small": [{"data": "even_100", "perplexity": 10, "steps": 250}],
    "cpu": [{"data": "digits_500", "perplexity": 30}, {"data": "coil20_480", "perplexity": 30}],
    "cuda": [
        {"data": "coil20", "perplexity": 30, "methods": ("drot spectral", "drot PCA")},
    ],
}


def problem(
    data: str,
    perplexity: int,
    *,
    dtype: str = "float64",
    device: str = "cpu",
    steps: int = 1000,
    methods: tuple[str, ...] = METHODS,
) -> Problem:
    X = load(data).to(device, getattr(torch, dtype))
    n, p = X.shape
    makers = {
        "drot": lambda kind: ours(X, perplexity, kind, steps),
        "openTSNE": lambda _: opentsne(X, perplexity, steps),
        "scikit-learn": lambda kind: sklearn(X, perplexity, kind, steps),
    }
    made = [makers[name](kind) for name, _, kind in (m.partition(" ") for m in methods)]
    shown = f"{data}, perplexity {perplexity}"
    return Problem(shown, n, p, dtype, device, "KL divergence", methods=made)


def rows(X: Tensor, xi: int) -> drot.EntropicAffinity:
    return drot.entropic_affinity(drot.sqeuclidean(X), xi, diagonal="drop")


def divergence(X: Tensor, xi: int, Z: Tensor) -> float:
    """KL(P | Q) in nats for mass 1."""
    loss = drot.SNELoss(drot.symmetrize(rows(X, xi)), "student")
    return (loss.evaluate(Z.to(X)).value + loss.constant) / loss.mass


def operations(X: Tensor, affinity: float, passes: float) -> Operations:
    """The affinity's, and those of the passes over the embedding."""
    return once(X, affinity) + Operations(flops=2 * len(X) ** 2 * 3) * passes


def ours(X: Tensor, xi: int, start: str, steps: int) -> Method:
    def run() -> tuple[float, drot.Embedding]:
        affinity = rows(X, xi)
        init = drot.pca_start(X) if start == "PCA" else start
        plan = drot.symmetrize(affinity)
        found = drot.tsne(plan, init=init, max_iter=2 * steps, on_failure="ignore")
        return affinity.passes, found

    def read(result: tuple[float, drot.Embedding]) -> Outcome:
        before, found = result
        work = operations(X, before, found.passes)
        return Outcome(divergence(X, xi, found.Z), work, passes=found.passes)

    return Method(f"drot, {start} start", "drot", run, read)


def opentsne(X: Tensor, xi: int, steps: int) -> Method:
    if not present("openTSNE"):
        return absent("openTSNE", "openTSNE")
    import openTSNE

    def run() -> np.ndarray:
        model = openTSNE.TSNE(
            perplexity=xi,
            neighbors="exact",
            n_iter=steps - 250,
            n_jobs=torch.get_num_threads(),
            random_state=0,
        )
        return np.asarray(model.fit(X.numpy()))

    def read(Z: np.ndarray) -> Outcome:
        return Outcome(divergence(X, xi, torch.from_numpy(Z)), passes=steps)

    return Method("openTSNE", "openTSNE", run, read)


def sklearn(X: Tensor, xi: int, kind: str, steps: int) -> Method:
    from sklearn.manifold import TSNE

    def run() -> TSNE:
        model = TSNE(
            perplexity=xi,
            method=kind,
            max_iter=steps,
            n_jobs=torch.get_num_threads(),
            random_state=0,
        )
        return model.fit(X.numpy())

    def read(model: TSNE) -> Outcome:
        passes = int(model.n_iter_) + 1
        work = operations(X, 0, passes) if kind == "exact" else None
        Z = torch.from_numpy(model.embedding_)
        return Outcome(divergence(X, xi, Z), work, passes=passes)

    return Method(f"scikit-learn, {kind}", "scikit-learn", run, read)
