"""COIL-20 and SNAREseq embedded with the settings that SNEkhorn's released scripts print.

    DROT_DATA=<folder of the data files> python benchmarks/released_settings.py

The paper speaks of "default parameters"; the scripts of PythonOT/SNEkhorn print theirs:

    fig1_paper      demo/fig1_paper.py at 48178d4, COIL-20 at perplexity 30: Adam at rate 0.5, at
                    most 800 steps, 10 Sinkhorn steps, start PCA of the data; the affinity by Adam
                    at rate 0.1, at most 20 000 steps
    SNAREseq_expe   expes/SNAREseq_expe.py at fb1a29f, chromatin at ten perplexities: rate 0.1, at
                    most 3000 steps, 5 Sinkhorn steps; the affinity at rate 0.1, after a NaN at
                    0.03, at most 5000 steps. t-SNEkhorn takes its affinity as a given matrix, and
                    then the class starts from the PCA of this matrix; t-SNE starts from the PCA of
                    the data. Expression, which the script does not have, is run likewise
    coil_expe       expes/coil_expe.py at 0b48c47, COIL-20 at ten perplexities: rate 1, at most
                    1500 steps, 5 Sinkhorn steps; the affinity at rate 1, after a NaN at 0.2, at
                    most 4500 steps. Starts as above

All stop by the classes' rule, a relative change of the loss below 1e-4 in a step. The loss is
KL(P | Q) with rows of P that sum to 1; for t-SNE, Q sums to 1 in all and counts the pairs (i, i).
The gradient runs through the Sinkhorn steps. This is code of our own that takes the same steps: the
Sinkhorn iteration is on exp(f), not on f. Affinity ``released`` is what the script's ascent gives,
``exact`` that of this package; ``affinity_residual`` is the largest error of a row's sum or entropy
(1e-3 stops the ascent). Scores are scikit-learn's, times 100, of one run: nothing is random. The
scripts have further methods, which are left out; ``all steps`` is a run without the rule, for
comparison. Lines without scores: the ascent gave NaN twice.

A run that was killed goes on where it was.

Prediction, one thread, from 50 steps of each on a busy machine: 70 ms a step of the ascent on
COIL-20, 30 on SNAREseq; 130 and 30 ms a step of t-SNEkhorn, 80 and 20 of t-SNE. If every run takes
all its steps: fig1_paper 28 minutes, SNAREseq_expe 65 on each modality, coil_expe 137.
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import drot
import recording
import sweep
import torch
from sklearn.manifold import trustworthiness
from sklearn.metrics import silhouette_score
from torch import Tensor

OUT = Path(__file__).parent / "results" / "released_settings.csv"
PERPLEXITIES = (30, 50, 10, 100, 5, 200, 400, 500, 800, 1000)  # the scripts', those shown first
FIELDS = ["affinity_rate", "affinity_steps", "affinity_residual", "steps", "kl"]
FIELDS += ["silhouette", "trustworthiness", "cpu_seconds"]
TOL, SINKHORN_TOL, AFFINITY_TOL = 1e-4, 1e-5, 1e-3  # the classes'


class Settings(NamedTuple):
    """What a script prints."""

    rate: float
    steps: int
    sinkhorn: int
    given: bool  # the affinity is a given matrix, and its PCA the start
    affinity_rates: tuple[float, ...]  # the next where one gives NaN
    affinity_steps: int


SCRIPTS = {
    "fig1_paper": Settings(0.5, 800, 10, False, (0.1,), 20_000),
    "SNAREseq_expe": Settings(0.1, 3000, 5, True, (0.1, 0.03), 5000),
    "coil_expe": Settings(1.0, 1500, 5, True, (1.0, 0.2), 4500),
}


@functools.cache
def load(name: str) -> tuple[Tensor, Tensor]:
    """Points and classes; SNAREseq shifted and scaled by one number each, as in the script."""
    if name == "coil20":
        source = drot.datasets.load("coil20", download=False)
        return source.X, source.y
    source = drot.datasets.load(f"snareseq_{name}", download=False)
    return (source.X - source.X.mean()) / source.X.std(), source.y


def entropies(P: Tensor) -> Tensor:
    """Of each row, with the papers' - sum P (log P - 1)."""
    return P.sum(dim=1) - torch.xlogy(P, P).sum(dim=1)


def ascend(C: Tensor, perplexity: float, rate: float, steps: int) -> tuple[Tensor, int]:
    """Dual ascent by Adam, as released: the plan where it stopped, and after how many steps."""
    n, target = len(C), math.log(perplexity) + 1
    gamma, mu = torch.ones(n, dtype=C.dtype), torch.zeros(n, dtype=C.dtype)
    optimizer = torch.optim.Adam([gamma, mu], lr=rate)
    double = 2 * C

    def plan() -> tuple[Tensor, Tensor]:
        """The plan (n, n), and the entropies of its rows."""
        log = (mu[:, None] + mu).sub_(double).div_(gamma[:, None] + gamma)
        P = log.exp()
        return P, -(P * log.sub_(1)).sum(dim=1)

    P, entropy = plan()
    for k in range(steps):
        gamma.grad, mu.grad = entropy - target, P.sum(dim=1) - 1
        settled = max(float(gamma.grad.abs().max()), float(mu.grad.abs().max())) < AFFINITY_TOL
        optimizer.step()
        gamma.clamp_(min=0)
        if gamma.isnan().any() or mu.isnan().any():
            raise FloatingPointError(f"NaN at step {k}")
        P, entropy = plan()
        if settled:
            break
    return P, k + 1


@functools.lru_cache(maxsize=2)
def affinity(name: str, kind: str, script: str, perplexity: int) -> tuple[Tensor, float, int]:
    """The plan (n, n), the rate that gave it, and the steps taken."""
    X = load(name)[0]
    C = drot.sqeuclidean(X)
    if kind == "entropic":
        return drot.symmetrize(drot.entropic_affinity(C, perplexity=perplexity)), 0.0, 0
    if kind == "exact":
        found = drot.symmetric_entropic_affinity(C, perplexity=perplexity)
        return found.plan, 0.0, found.n_iter
    settings = SCRIPTS[script]
    for rate in settings.affinity_rates:
        try:
            P, steps = ascend(torch.cdist(X, X).square(), perplexity, rate, settings.affinity_steps)
            return P, rate, steps
        except FloatingPointError as problem:
            print(name, perplexity, rate, problem, flush=True)
    return torch.full((len(X), len(X)), math.nan), settings.affinity_rates[-1], 0


def pca(X: Tensor) -> Tensor:
    """Two principal components with their scale, of the points or of a given matrix."""
    U, S, _ = torch.linalg.svd(X - X.mean(dim=0), full_matrices=False)
    sign = U.gather(0, U.abs().argmax(dim=0, keepdim=True)).sign()
    return (U * sign * S)[:, :2].contiguous()


def snekhorn_loss(P: Tensor, steps: int) -> Callable[[Tensor], Tensor]:
    """Z -> KL(P | Q) with Q after so many Sinkhorn steps and one more."""
    rows, constant = P.sum(dim=1), torch.xlogy(P, P).sum()

    def loss(squares: Tensor) -> Tensor:
        K = 1 / (1 + squares)
        u = torch.ones(len(K), dtype=K.dtype)
        sums = K @ u
        for _ in range(steps + 1):
            u = (u / sums).sqrt()
            sums = K @ u
            if float((u * sums - 1).detach().abs().max()) < SINKHORN_TOL:
                break
        return constant - (P * K.log()).sum() - 2 * (rows @ u.log())

    return loss


def sne_loss(P: Tensor) -> Callable[[Tensor], Tensor]:
    """Z -> KL(P | Q) with Q of mass 1, the pairs (i, i) included."""
    mass, constant = P.sum(), torch.xlogy(P, P).sum()

    def loss(squares: Tensor) -> Tensor:
        K = 1 / (1 + squares)
        return constant - (P * K.log()).sum() + mass * K.sum().log()

    return loss


def descend(
    loss: Callable[[Tensor], Tensor], Z: Tensor, rate: float, steps: int, tol: float
) -> tuple[Tensor, list[float]]:
    """Adam with the classes' stopping rule: positions, losses."""
    Z = Z.clone().requires_grad_()
    optimizer = torch.optim.Adam([Z], lr=rate)
    values: list[float] = []
    for k in range(steps):
        optimizer.zero_grad()
        norms = Z.square().sum(dim=1)
        squares = (norms[:, None] + norms - 2 * Z @ Z.T).clamp_min(0)
        value = loss(squares)
        value.backward()
        optimizer.step()
        values.append(value.item())
        if not math.isfinite(values[-1]):
            raise FloatingPointError(f"loss {values[-1]} at step {k}")
        if k > 1 and abs(values[-1] - values[-2]) < tol * abs(values[-2]):
            break
    return Z.detach(), values


def measure(script: str, data: str, method: str, affinity_by: str, perplexity: int) -> dict:
    """The columns of one case."""
    torch.set_num_threads(1)
    X, y = load(data)
    settings = SCRIPTS[script]
    begin = time.process_time()
    P, rate, steps = affinity(data, affinity_by, script, perplexity)
    residual = (entropies(P) - math.log(perplexity) - 1).abs().max()
    residual = max(float(residual), float((P.sum(dim=1) - 1).abs().max()))
    shown = {"affinity_rate": rate or None, "affinity_steps": steps or None}
    shown["affinity_residual"] = None if affinity_by == "entropic" else f"{residual:.1e}"
    if math.isnan(residual):
        return dict.fromkeys(FIELDS) | shown | {"affinity_residual": "nan"}
    khorn = method == "t-SNEkhorn"
    loss = snekhorn_loss(P, settings.sinkhorn) if khorn else sne_loss(P)
    start = pca(P if khorn and settings.given else X)
    tol = 0.0 if "all steps" in method else TOL
    Z, values = descend(loss, start, settings.rate, settings.steps, tol)
    # the mass of P is n, that of t-SNE's Q is 1: per unit of mass
    kl = values[-1] / float(P.sum()) - (0 if khorn else math.log(float(P.sum())))
    scores = silhouette_score(Z, y), trustworthiness(X.numpy(), Z.numpy())
    return shown | {
        "steps": len(values),
        "kl": f"{kl:.5f}",
        "silhouette": f"{100 * scores[0]:.3f}",
        "trustworthiness": f"{100 * scores[1]:.3f}",
        "cpu_seconds": f"{time.process_time() - begin:.1f}",
    }


def cases() -> list[dict]:
    """What is shown first comes first; the longest ascent waits for chromatin."""
    ways = [("t-SNE", "entropic"), ("t-SNEkhorn", "exact"), ("t-SNEkhorn", "released")]
    on = [("t-SNE, all steps", "entropic")]
    todo = [
        ("fig1_paper", "coil20", (30,), ways[:2] + on),
        ("SNAREseq_expe", "chromatin", (50,), on),
    ]
    todo += [("SNAREseq_expe", "chromatin", PERPLEXITIES, ways)]
    todo += [("fig1_paper", "coil20", (30,), ways[2:])]
    todo += [("coil_expe", "coil20", PERPLEXITIES, ways)]
    todo += [("SNAREseq_expe", "expression", PERPLEXITIES, ways)]
    return [
        {"script": s, "data": d, "method": method, "affinity_by": way, "perplexity": xi}
        for s, d, perplexities, some in todo
        for xi in perplexities
        for method, way in some
    ]


def place(row: dict[str, str]) -> tuple:
    """Where a row stands in the file."""
    method = row["method"], row["affinity_by"]
    return list(SCRIPTS).index(row["script"]), row["data"], *method, int(row["perplexity"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sweep.add_arguments(parser)
    options = sweep.options(parser.parse_args())
    torch.set_num_threads(1)
    names = ("scikit-learn", "numpy", "joblib")
    facts = recording.header(", ".join(f"{name} {version(name)}" for name in names))
    print(__doc__.rpartition("Prediction")[2], flush=True)
    done = sweep.run(cases(), measure, OUT, fields=FIELDS, facts=facts, place=place, **options)
    sys.exit(f"{done.failed} cases failed: run again" if done.failed else 0)


if __name__ == "__main__":
    main()
