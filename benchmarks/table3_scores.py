"""Silhouette and trustworthiness of embeddings: SNEkhorn's Table 3 and Figures 1, 7 and 8.

    DROT_DATA=<folder of the data files> python benchmarks/table3_scores.py

For COIL-20, Olivetti, UMIST, SNAREseq (both modalities) and scGEM, an embedding is computed for
each method, perplexity and seed, and scored with scikit-learn's defaults: the silhouette of the
classes, and the trustworthiness with respect to 5 neighbours in X. Data of more than 50 dimensions
are reduced by PCA before. The seed draws one N(0, 1) start, which all methods share, as in the
paper. The methods are

    t-SNEkhorn, t-SNE   this package, L-BFGS to rest, a residual of 1e-3
    openTSNE            its defaults (Barnes-Hut below 10 000 points), exact neighbours; the start
                        is multiplied by 1e-4, its own default scale
    UMAP                umap-learn's defaults; the perplexity is read as n_neighbors, and umap-learn
                        stretches the start to a square of side 10
    <name>, Adam <rate> the paper's optimiser from the same start: stops when KL changes by less
                        than 1e-5 of itself, here after at most 2000 steps; PERPLEXITY only

Each finished row is appended to the file, and rows that are there already are not computed again.
``--figures`` computes the embeddings of DRAWN, 70 CPU seconds, into a file of their own.
``--jobs`` and ``--backend`` hand the grid to more processes.

Prediction, measured first at one seed and perplexity 30, in CPU seconds for the four methods:
COIL-20 26, Olivetti 2.6, chromatin 8.5, expression 21, scGEM 0.6. The paper's grid has every
multiple of 10 from 10 to 300, which makes 2.5 hours. This one has 7 perplexities (9 and 12 on the
small sets): 26 * 7 * 5 + 2.6 * 9 * 5 + 8.5 * 7 * 5 + 21 * 7 * 5 + 0.6 * 12 * 5 s = 34 minutes, and
Adam 10 minutes with three seeds. UMIST, which came later: 5 * 9 * 5 s and Adam, 6 minutes.
"""

from __future__ import annotations

import argparse
import csv
import functools
import sys
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import drot
import numpy as np
import recording
import sweep
import torch
from drot.embeddings.embed import embed
from drot.embeddings.losses import SNEkhornLoss, SNELoss
from sklearn.manifold import trustworthiness
from sklearn.metrics import silhouette_score
from torch import Tensor

RESULTS = Path(__file__).parent / "results"
OUT, POINTS = RESULTS / "table3_scores.csv", RESULTS / "table3_embeddings.csv"
FIELDS = ["data", "method", "perplexity", "seed", "silhouette", "trustworthiness", "kl"]
FIELDS += ["residual", "iterations", "cpu_seconds"]
GRID = {  # perplexities; of the paper's, multiples of 10 from 10 to min(n, 300)
    "coil20": (10, 20, 30, 50, 100, 200, 300),
    "olivetti": (10, 20, 30, 50, 70, 100, 150, 200, 300),
    "umist": (10, 20, 30, 50, 70, 100, 150, 200, 300),
    "chromatin": (10, 20, 30, 50, 100, 200, 300),
    "expression": (10, 20, 30, 50, 100, 200, 300),
    "scgem": (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 130, 170),
    "chromatin, unit rows": (20, 50, 100),
}
METHODS = ("t-SNEkhorn", "t-SNE", "openTSNE", "UMAP")
PERPLEXITY = {"coil20": 30, "olivetti": 30, "umist": 30}
PERPLEXITY |= {"chromatin": 50, "expression": 50, "scgem": 30}
RATES = (0.1, 1.0)  # of Adam
SEEDS, FEWER = range(5), range(3)
DRAWN = (  # what Figures 1 and 7 show: data, method, perplexity, seed
    ("coil20", "t-SNE, Adam 0.1", 30, 0),
    ("coil20", "t-SNE", 30, 0),
    ("coil20", "t-SNEkhorn", 30, 0),
    ("chromatin", "t-SNE", 50, 0),
    ("chromatin", "t-SNEkhorn", 50, 0),
    ("expression", "t-SNE", 50, 0),
    ("expression", "t-SNEkhorn", 50, 0),
)
CHANGE, STEPS = 1e-5, 2000  # the paper's stopping rule


@functools.cache
def load(name: str) -> tuple[Tensor, Tensor]:
    """Points and classes."""
    name, _, rows = name.partition(", ")
    match name:
        case "coil20":
            source = drot.datasets.load("coil20", download=False)
        case "olivetti":
            source = drot.datasets.load("olivetti", download=False)
        case "umist":
            source = drot.datasets.load("umist", download=False)
        case "scgem":
            source = drot.datasets.load("scgem", download=False)
        case _:
            source = drot.datasets.load(f"snareseq_{name}", download=False)
    X = source.X / source.X.norm(dim=1, keepdim=True) if rows else source.X
    return X, source.y


@functools.lru_cache(maxsize=4)
def plan(name: str, kind: str, xi: int) -> Tensor:
    """The plan of the data that a method of ours holds its embedding against."""
    cost = drot.sqeuclidean(load(name)[0])
    if kind == "t-SNEkhorn":
        return drot.symmetric_entropic_affinity(cost, perplexity=xi).plan
    return drot.symmetrize(drot.entropic_affinity(cost, perplexity=xi, diagonal="drop"))


def ours(P: Tensor, kind: str, Z: Tensor) -> drot.embeddings.Embedding:
    if kind == "t-SNEkhorn":
        return drot.snekhorn(P, kernel="student", init=Z, tol=1e-3, on_failure="ignore")
    return drot.tsne(P, init=Z, tol=1e-3, on_failure="ignore")


def adam(P: Tensor, kind: str, Z: Tensor, rate: float) -> drot.embeddings.Embedding:
    """Adam with the paper's stopping rule."""
    loss = (SNEkhornLoss if kind == "t-SNEkhorn" else SNELoss)(P, "student")
    evaluate, seen = loss.evaluate, []

    def record(Z: Tensor, **options):
        found = evaluate(Z, **options)
        seen.append(found.value + loss.constant)
        return found

    def settled(iteration: int, residual: float, Z: Tensor, value: float) -> bool:
        return iteration > 1 and abs(seen[-1] - seen[-2]) < CHANGE * abs(seen[-2])

    loss.evaluate = record
    options = {"solver": "adam", "learning_rate": rate, "max_iter": STEPS, "callback": settled}
    return embed(loss, Z, tol=1e-9, on_failure="ignore", **options)


def peer(X: np.ndarray, method: str, xi: int, seed: int, Z: np.ndarray) -> np.ndarray:
    if method == "UMAP":
        import umap

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # one thread because of the seed
            model = umap.UMAP(n_neighbors=xi, init=Z, random_state=seed, n_jobs=1)
            return model.fit_transform(X)
    import openTSNE

    options = {"perplexity": xi, "neighbors": "exact", "random_state": seed, "n_jobs": 1}
    return np.asarray(openTSNE.TSNE(initialization=1e-4 * Z, **options).fit(X))


def case(name: str, method: str, xi: int, seed: int) -> tuple[list, np.ndarray]:
    """One row of the file, and the embedding."""
    torch.set_num_threads(1)
    X, y = load(name)
    start = drot.random_start(len(X), random_state=seed)
    kind, _, rate = method.partition(", Adam ")
    begin = time.process_time()
    kl = residual = iterations = "-"
    if kind in ("t-SNEkhorn", "t-SNE"):
        P = plan(name, kind, xi)
        found = adam(P, kind, start, float(rate)) if rate else ours(P, kind, start)
        Z = found.Z.numpy()
        mass = len(X) if kind == "t-SNEkhorn" else float(P.sum())
        kl, residual = f"{found.kl / mass:.5f}", f"{found.residual:.1e}"
        iterations = found.n_iter
    else:
        Z = peer(X.numpy(), method, xi, seed, start.numpy())
    seconds = time.process_time() - begin
    scores = silhouette_score(Z, y), trustworthiness(X.numpy(), Z)
    shown = [f"{100 * score:.3f}" for score in scores]
    row = [name, method, xi, seed, *shown, kl, residual, iterations, f"{seconds:.2f}"]
    return list(map(str, row)), Z


def grid() -> Iterator[tuple[str, str, int, int]]:
    """All cases, seed by seed."""
    for seed in SEEDS:
        for name, perplexities in GRID.items():
            if ", " in name and seed not in FEWER:
                continue
            points = len(load(name)[0])
            for xi in perplexities:
                for method in METHODS:
                    if method == "openTSNE" and xi > (points - 1) / 3:
                        continue  # it would take another perplexity
                    yield name, method, xi, seed
        if seed in FEWER:
            for name, xi in PERPLEXITY.items():
                for rate in RATES:
                    for kind in ("t-SNEkhorn", "t-SNE"):
                        yield name, f"{kind}, Adam {rate:g}", xi, seed


def score(data: str, method: str, perplexity: int, seed: int) -> dict[str, str]:
    """The columns of one case."""
    row, _ = case(data, method, perplexity, seed)
    return dict(zip(FIELDS[4:], row[4:], strict=True))


def place(row: dict[str, str]) -> tuple:
    """Where a row stands in the file."""
    methods = [*METHODS, *(f"{m}, Adam {r:g}" for r in RATES for m in METHODS[:2])]
    numbers = int(row["perplexity"]), int(row["seed"])
    return list(GRID).index(row["data"]), methods.index(row["method"]), *numbers


def facts() -> str:
    names = ("scikit-learn", "umap-learn", "openTSNE", "numpy", "joblib")
    return recording.header(", ".join(f"{name} {version(name)}" for name in names))


def draw() -> None:
    """Compute the embeddings of the figures, and the perplexity of each row of their plans."""
    with POINTS.open("w", encoding="utf8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        file.write(facts())
        writer.writerow(["data", "method", "class", "z0", "z1", "row_perplexity"])
        for name, method, xi, seed in DRAWN:
            row, Z = case(name, method, xi, seed)
            P = plan(name, method.partition(",")[0], xi)
            P = P / P.sum(dim=1, keepdim=True)
            perplexity = torch.exp(-torch.xlogy(P, P).sum(dim=1))
            for y, z, value in zip(load(name)[1].tolist(), Z, perplexity.tolist(), strict=True):
                writer.writerow([name, method, y, f"{z[0]:.2f}", f"{z[1]:.2f}", f"{value:.2f}"])
            print("  ".join(part.rjust(8) for part in row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sweep.add_arguments(parser)
    parser.add_argument("--figures", action="store_true", help="compute what the figures show")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    RESULTS.mkdir(exist_ok=True)
    if asked.figures:
        draw()
        return
    swept = sweep.run(
        [dict(zip(FIELDS[:4], job, strict=True)) for job in grid()],
        score,
        OUT,
        fields=FIELDS[4:],
        facts=facts(),
        place=place,
        **sweep.options(asked),
    )
    sys.exit(f"{swept.failed} cases failed: run again" if swept.failed else 0)


if __name__ == "__main__":
    main()
