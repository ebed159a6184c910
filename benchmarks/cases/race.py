"""t-SNE and UMAP against the clock: drot, openTSNE, scikit-learn, TorchDR, umap-learn.

All start from the same points and run with their defaults, on all cores: perplexity 30 for t-SNE,
15 neighbours for UMAP. openTSNE runs on to 2000 steps; its default, 250 exaggerated ones and 500,
is the check point at ``DEFAULT`` of that run. A row without ``repeats`` is such a check point, each
5 steps of ours and 50 of the others that let one look, with the ``seconds`` since the run had the
points. ``reached`` is computed afterwards, for all by the same exact objective in float64, in nats
for each unit of mass: KL(P | Q) for t-SNE, for UMAP the divergence of the edges, all pairs of them.
What umap-learn descends has the repulsion of a few sampled pairs, which is another objective.

A pass of ours takes one reciprocal for each pair, which counts as nothing, and two products with
the positions. The work of a tree or a grid is not counted: no floor stands beside it.

Prediction, two cores: an exact step at n = 5000 takes 60 ms, one of openTSNE 16 ms, and there are
80 of ours for 750 of theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import drot
import numpy as np
import torch
from drot.embeddings.losses import BernoulliLoss
from machine import Operations
from point_clouds import load
from torch import Tensor

from cases.entropic import once
from cases.pairing import Method, Outcome, Problem, absent, present

STEPS, DEFAULT = 2000, 750  # of openTSNE
OURS, THEIRS = 5, 50  # steps between two check points
PERPLEXITY, NEIGHBORS = 30, 15
METHODS = {  # most points: beyond, it takes too long
    "drot t-SNE": 10_000,
    "openTSNE": 10_000,
    "scikit-learn": 10_000,
    "TorchDR": 2000,
    "drot UMAP": 10_000,
    "umap-learn": 10_000,
}
Way = list[tuple[int, float, Tensor]]  # steps, seconds, positions


def settings(*sizes: int) -> list[dict[str, Any]]:
    """One method a process, from small to large."""
    return [
        {"data": f"mnist_{n}", "method": method}
        for method, most in METHODS.items()
        for n in sizes
        if n <= most
    ]


SETTINGS = {
    "small": [{"data": "even_300", "method": m, "steps": DEFAULT} for m in METHODS],
    "cpu": settings(2000, 5000),
    "large": settings(10_000),
    "cuda": [{"data": "mnist_10000", "method": f"drot {m}"} for m in ("t-SNE", "UMAP")],
}


def problem(
    data: str, method: str, *, dtype: str = "float64", device: str = "cpu", steps: int = STEPS
) -> Problem:
    X = load(data).to(device, getattr(torch, dtype))
    objective = "UMAP" if "umap" in method.lower() else "t-SNE"
    judge = cache(lambda: divergence(X.double(), objective))
    makers = {"drot": ours, "openTSNE": opentsne, "scikit-learn": sklearn}
    makers |= {"TorchDR": torchdr, "umap-learn": umap_learn}
    made = makers[method.split()[0]](X, method, steps, judge)
    quantity = "KL divergence" if objective == "t-SNE" else "cross-entropy"
    return Problem(data, *X.shape, dtype, device, quantity, methods=[made])


def tsne_plan(X: Tensor) -> tuple[float, Tensor]:
    """The passes it took, and P."""
    affinity = drot.entropic_affinity(drot.sqeuclidean(X), perplexity=PERPLEXITY, diagonal="drop")
    return affinity.passes, drot.symmetrize(affinity)


def umap_plan(X: Tensor) -> Tensor:
    return drot.fuzzy_union(drot.umap_membership(drot.sqeuclidean(X), n_neighbors=NEIGHBORS))


def divergence(X: Tensor, objective: str) -> Callable[[Tensor], float]:
    """Of positions, for mass 1."""
    if objective == "t-SNE":
        loss = drot.SNELoss(tsne_plan(X)[1], "student")
    else:
        a, b = drot.umap_curve()
        loss = BernoulliLoss(umap_plan(X), "curve", a=a, b=b)
    return lambda Z: (loss.evaluate(Z.to(X)).value + loss.constant) / loss.mass


def outcome(judge, Z: Tensor, steps: int, way: Way = (), **rest: Any) -> Outcome:
    """What a run that made this many steps reached, and what it had on its way."""
    judge = judge()
    before = [(step, seconds, judge(Z)) for step, seconds, Z in way]
    return Outcome(judge(Z), steps=steps, way=before, **{"passes": steps} | rest)


def ours(X: Tensor, method: str, steps: int, judge) -> Method:
    """The estimators, by the functions that they call: these let one look."""

    def run() -> tuple[float, drot.embeddings.Embedding, Way]:
        begin, way = time.perf_counter(), []

        def look(step: int, residual: float, Z: Tensor, value: float) -> None:
            if step % OURS == 0:
                way.append((step, time.perf_counter() - begin, Z.clone()))

        if method == "drot UMAP":
            return 0.0, drot.umap(umap_plan(X), callback=look, on_failure="ignore"), way
        passes, plan = tsne_plan(X)
        return passes, drot.tsne(plan, callback=look, on_failure="ignore"), way

    def read(result: tuple[float, drot.embeddings.Embedding, Way]) -> Outcome:
        before, found, way = result
        work = None
        if method == "drot t-SNE":
            work = once(X, before) + Operations(flops=2 * len(X) ** 2 * 3) * found.passes
        return outcome(judge, found.Z, found.n_iter, way, operations=work, passes=found.passes)

    return Method(method, "drot", run, read)


def opentsne(X: Tensor, method: str, steps: int, judge) -> Method:
    if not present("openTSNE"):
        return absent(method, "openTSNE")
    import openTSNE

    def run() -> tuple[np.ndarray, Way]:
        begin, way = time.perf_counter(), []

        def look(iteration: int, error: float, Z: np.ndarray) -> None:
            step = THEIRS * (len(way) + 1)  # it counts anew after exaggeration
            way.append((step, time.perf_counter() - begin, torch.tensor(np.array(Z))))

        model = openTSNE.TSNE(
            n_iter=steps - 250,
            n_jobs=torch.get_num_threads(),
            random_state=0,
            callbacks=look,
            callbacks_every_iters=THEIRS,
        )
        return np.array(model.fit(X.numpy())), way

    def read(found: tuple[np.ndarray, Way]) -> Outcome:
        return outcome(judge, torch.tensor(found[0]), steps, found[1])

    return Method(method, "openTSNE", run, read)


def sklearn(X: Tensor, method: str, steps: int, judge) -> Method:
    from sklearn.manifold import TSNE

    def run() -> TSNE:
        return TSNE(n_jobs=torch.get_num_threads(), random_state=0).fit(X.numpy())

    def read(model: TSNE) -> Outcome:
        return outcome(judge, torch.tensor(model.embedding_), int(model.n_iter_) + 1)

    return Method(method, "scikit-learn", run, read)


def torchdr(X: Tensor, method: str, steps: int, judge) -> Method:
    if not present("torchdr"):
        return absent(method, "torchdr")
    import torchdr

    class Watched(torchdr.TSNE):
        def on_training_step_end(self) -> None:
            super().on_training_step_end()
            step = int(self.n_iter_) + 1
            if step % THEIRS == 0:
                way.append((step, time.perf_counter() - begin, self.embedding_.detach().clone()))

    way, begin = [], 0.0

    def run() -> tuple[Tensor, int]:
        nonlocal begin
        begin = time.perf_counter()
        way.clear()
        model = Watched(max_iter=steps, device="cpu", random_state=0)
        return model.fit_transform(X.float()).detach(), int(model.n_iter_) + 1

    return Method(method, "torchdr", run, lambda found: outcome(judge, *found, way))


def umap_learn(X: Tensor, method: str, steps: int, judge) -> Method:
    if not present("umap-learn"):
        return absent(method, "umap-learn")
    import umap

    if len(X) >= 4096:  # it searches neighbours by other code, compiled before the clock runs
        umap.UMAP(force_approximation_algorithm=True, n_epochs=2).fit(X[:500].numpy())

    def run() -> umap.UMAP:
        return umap.UMAP(n_jobs=torch.get_num_threads()).fit(X.numpy())

    def read(model: umap.UMAP) -> Outcome:
        return outcome(judge, torch.tensor(model.embedding_), 500 if len(X) <= 10_000 else 200)

    return Method(method, "umap-learn", run, read)
