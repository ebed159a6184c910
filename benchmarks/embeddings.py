"""t-SNEkhorn on COIL-20 and the toy: the papers' optimiser, and L-BFGS on the Laplacian's metric.

    DROT_DATA=<folder of the data files> python benchmarks/embeddings.py

The symmetric entropic affinity at perplexity 30 is computed once. Each line then minimises
<P, C_Z> - 2 <f, 1> (mass n) on one thread, its CPU time counted from the first evaluation, the
factor of B included. ``adam, autograd`` is the papers' way: gradients by backpropagation through
the Sinkhorn iterations, which are warm-started and damped by 1/2; it runs for STEPS_AUTOGRAD steps
only, for its time per step. ``adam`` has the same steps at the envelope gradient, which makes it
many times faster. ``to_adam`` is the CPU seconds to within 0.01 % of the objective that ``adam``
reaches in 2000 steps or on convergence, ``to_target`` those to ``target``: 5235 for COIL-20, which
Adam does not reach, Adam's own for the toy. ``speedup`` is the seconds of ``adam`` to the target,
or all of them where it does not get there, over ``to_target``. A ``-`` stands where a level is
not reached.

Prediction. An evaluation makes 13 elementwise operations and a product with 3 columns on tiles
that stay in the cache, and reads the kept kernel once per product with a vector, of which the
momentum leaves six (1e-6 from 1e-2: 1 + 4 / log10(3 + 2 sqrt 2) = 6.2). With n = 1440, 0.5 ns per
entry and operation (2 ns for the logarithm and the reciprocal) and 10 GB/s, that is
15 + 5 + 6 * 1.7 = 30 ms; the solve with B of an L-BFGS iteration adds 2 passes, 4 ms. The
spectral direction needs some 500 evaluations to 5235; with ten pairs of L-BFGS a fifth of that
or less: 3 to 4 s, where 2000 steps of Adam take 60 s.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

import drot
import numpy as np
import recording
import torch
from drot.affinities.symmetric import symmetric_entropic_affinity
from drot.embeddings.descent import Evaluation
from drot.embeddings.embed import embed
from drot.embeddings.losses import SNEkhornLoss
from drot.embeddings.starts import random_start, spectral_start
from sklearn.manifold import trustworthiness
from sklearn.metrics import silhouette_score
from torch import Tensor

OUT = Path(__file__).parent / "results" / "embeddings.csv"
PERPLEXITY = 30
TARGET = 5235.0
STEPS_ADAM, STEPS_AUTOGRAD, STEPS_SPECTRAL = 2000, 20, 300
FIELDS = ["data", "n", "kernel", "start", "solver", "iterations", "evaluations", "products"]
FIELDS += ["cpu_seconds", "objective", "residual", "to_adam", "target", "to_target", "speedup"]
FIELDS += ["silhouette", "trustworthiness", "neighbour_accuracy"]


class Unrolled(SNEkhornLoss):
    """The objective with the papers' gradient, by autograd through Sinkhorn's iterations."""

    def evaluate(self, Z: Tensor, *, warm: Tensor | None = None, tol: float = 1e-6) -> Evaluation:
        leaf = Z.clone().requires_grad_()
        D = (leaf[:, None] - leaf).square().sum(dim=2)
        C = D if self.kernel.flat else torch.log1p(D)
        f = torch.zeros_like(Z[:, 0]) if warm is None else warm
        products = 0
        while True:
            image = -torch.logsumexp(f - C, dim=1)
            products += 1
            with torch.no_grad():
                residual = float(torch.expm1(f - image).abs().max())
            if residual <= tol:
                break
            f = (f + image) / 2
        pull, push = (self.P.matrix * C).sum(), 2 * f.sum()
        attract, repel = (torch.autograd.grad(x, leaf, retain_graph=True)[0] for x in (pull, push))
        return Evaluation(
            value=float(pull - push),
            attraction=attract,
            repulsion=repel,
            dual=f.detach(),
            products=products,
        )


def datasets() -> list[tuple[str, Tensor, Tensor]]:
    """Name, points, classes; a real data set whose file is absent is left out with a word."""
    toy = drot.datasets.heteroscedastic_multinomials()
    found = [("toy", toy.X, toy.y)]
    try:
        coil = drot.datasets.load("coil20", download=False)
        found.insert(0, ("coil20", coil.X, coil.y))
    except OSError as problem:
        print(f"skipped coil20: {problem}")
    return found


def scores(X: Tensor, y: Tensor, Z: Tensor) -> list[str]:
    """Silhouette, trustworthiness and the share of points whose nearest one is of their class."""
    D = torch.cdist(Z, Z).fill_diagonal_(torch.inf)
    accuracy = float((torch.as_tensor(y)[D.argmin(dim=1)] == torch.as_tensor(y)).double().mean())
    silhouette, trust = silhouette_score(Z, y), trustworthiness(X.numpy(), Z.numpy())
    return [f"{silhouette:.3f}", f"{trust:.4f}", f"{accuracy:.4f}"]


def timed(objective, Z: Tensor, **options):
    """The embedding, and CPU seconds at the start and after each iteration."""
    clock: list[float] = []

    def callback(iteration: int, residual: float, Z: Tensor, value: float) -> None:
        clock.append(time.process_time() - begin)

    begin = time.process_time()
    found = embed(objective, Z, callback=callback, on_failure="ignore", **options)
    return found, np.array(clock)


def when(found, clock: np.ndarray, level: float) -> float:
    """CPU seconds until the objective is at most ``level``; nan if it never is."""
    below = np.flatnonzero(np.array(found.values) <= level)
    return float(clock[below[0]]) if below.size else float("nan")


def measure(data: str, X: Tensor, y: Tensor, plan: Tensor, kernel: str):
    """Lines of one data set and one kernel."""
    n = len(plan)
    starts = {f"random {seed}": random_start(n, random_state=seed) for seed in range(3)}
    starts["spectral"] = spectral_start(plan)
    runs = [("random 0", "adam", {"solver": "adam", "max_iter": STEPS_ADAM})]
    runs += [("random 0", "adam, autograd", {"solver": "adam", "max_iter": STEPS_AUTOGRAD})]
    runs += [("random 0", "spectral", {"solver": "spectral", "max_iter": STEPS_SPECTRAL})]
    runs += [(start, "lbfgs", {}) for start in starts]
    adam = seconds = float("nan")
    for start, name, options in runs:
        loss = (Unrolled if "autograd" in name else SNEkhornLoss)(plan, kernel)
        found, clock = timed(loss, starts[start], **options)
        if name == "adam":
            adam = found.value
        level = adam + 1e-4 * abs(adam)
        target = TARGET if data == "coil20" else level
        to_adam, to_target = when(found, clock, level), when(found, clock, target)
        if name == "adam":
            seconds = to_target if to_target == to_target else clock[-1]
        shown = [to_adam, target, to_target, seconds / to_target]
        shown = [f"{value:.2f}" if value == value else "-" for value in shown]
        yield [
            *(data, n, kernel, start, name, found.n_iter, f"{found.passes:.0f}", found.products),
            *(f"{clock[-1]:.2f}", f"{found.value:.2f}", f"{found.residual:.1e}", *shown),
            *scores(X, y, found.Z),
        ]


def main() -> None:
    torch.set_num_threads(1)
    lines = []
    for data, X, y in datasets():
        plan = symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=PERPLEXITY).plan
        kernel = "student" if data == "coil20" else "gaussian"
        for line in measure(data, X, y, plan, kernel):
            print("  ".join(str(part).rjust(8) for part in line), flush=True)
            lines.append(line)
    OUT.parent.mkdir(exist_ok=True)
    with OUT.open("w", encoding="utf8", newline="") as file:
        file.write(recording.header())
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *lines])
    print(f"wrote {OUT.name}")


if __name__ == "__main__":
    main()
