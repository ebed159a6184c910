"""Neighbourhoods kept by t-SNE and UMAP from four starts: graph coupling's Tables 2 and 3.

    DROT_DATA=<folder of the data files> python benchmarks/graph_coupling_tables.py

Ten thousand images of MNIST and of Fashion-MNIST, reduced by PCA to 50 dimensions, are embedded by
openTSNE (perplexity 30, 1000 steps) and by umap-learn (defaults) from a random start, PCA,
Laplacian eigenmaps and ccPCA. The score is 100 R_n(K) at K = n/4 and K = n/2, in the 50 dimensions.
Lines of method ``start`` score the start itself.

The starts: independent N(0, 1); the first two principal components; Laplacian eigenmaps of
scikit-learn's default graph, which joins each point to n / 10 neighbours; ``drot.ccpca`` with prior
D, perplexity 30 and 100 graphs. Each is divided by the standard deviation of its first column.
openTSNE runs in two ways. With its defaults, the start is multiplied by 1e-4 and the first 250 of
the 1000 steps exaggerate the attraction. In lines of variant ``plain`` the start is taken as it is,
and all 1000 steps descend on the objective itself, at rate n / 12. Neighbours are exact, so
openTSNE draws no random number: from PCA and from Laplacian eigenmaps there is one result.
Variant ``scale 1`` changes the scale of the start alone, and ``plain 5`` that of a plain run.
umap-learn stretches the start to [0, 10] in both columns and draws negative samples at random.
In lines of variant ``pixels`` there is no PCA first, for the method and for its score.

Method ``t-SNE`` is ``drot.tsne`` to rest, a residual of 1e-3. It keeps n x n arrays
and runs on 2000 of the images, the first 200 of each class, whose starts are computed from them
alone. ``openTSNE`` runs on these 2000 as well, plainly from starts of four scales too.

Lines of 8920 points of MNIST and of BALANCED["fashion"] of Fashion-MNIST are the balanced samples:
the first points of each class, as many as the rarest has, with the paper's five seeds.

Each finished row is appended to the file, and rows that are there already are not computed again.
``--jobs`` and ``--backend`` hand the grid to more processes.

Prediction, measured first on one case of each kind, in CPU seconds at n = 10 000: a start 2 to 5,
openTSNE 57, umap-learn 9, the two scores 3.5. The grid has 22 runs of openTSNE there, 26 of
umap-learn and 18 starts, and on 2000 points 8 of openTSNE (6 s) and 8 of ``drot.tsne`` (30 s):
22 * 60 + 26 * 12.5 + 18 * 7 + 8 * 36 s = 34 minutes. With the paper's five seeds it would be 60.
"""

from __future__ import annotations

import argparse
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
from scipy.sparse import csgraph, diags_array
from scipy.sparse.linalg import eigsh
from sklearn.neighbors import kneighbors_graph
from torch import Tensor

OUT = Path(__file__).parent / "results" / "graph_coupling_tables.csv"
FIELDS = ["data", "n", "method", "start", "variant", "seed", "quarter", "half", "cpu_seconds"]
DATA = ("mnist", "fashion")
STARTS = ("random", "PCA", "Laplacian", "ccPCA")
SEEDS = range(5)
PERPLEXITY, N_NEIGHBORS = 30, 15  # of t-SNE and ccPCA; of UMAP
SMALL = 2000
BALANCED = {"mnist": 8920, "fashion": 9720}  # as many of each class as the rarest class has
SCALES = ("1e-4", "5", "25")  # of plain starts, beside 1
RUNS = [  # data, points, method, variant, seeds of each start: one where nothing is random
    *[(name, 10_000, "start", "", (3, 1, 1, 3)) for name in DATA],
    *[(name, 10_000, "UMAP", "", (3, 3, 3, 3)) for name in DATA],
    ("mnist", 10_000, "openTSNE", "plain", (3, 1, 1, 3)),
    ("fashion", 10_000, "openTSNE", "plain", (2, 1, 1, 2)),
    *[(name, 10_000, "openTSNE", "", (1, 1, 1, 1)) for name in DATA],
    ("mnist", 10_000, "openTSNE", "scale 1", (1, 0, 0, 0)),
    *[("mnist", 10_000, method, "pixels", (0, 1, 0, 1)) for method in ("start", "UMAP")],
    *[(d, SMALL, m, "", (1, 1, 1, 1)) for d in DATA for m in ("start", "openTSNE", "t-SNE")],
    *[(d, SMALL, "openTSNE", "plain", (1, 1, 0, 1)) for d in DATA],
    *[(d, SMALL, "openTSNE", f"plain {s}", (0, 1, 0, 1)) for d in DATA for s in SCALES],
    *[(d, n, "start", "", (5, 1, 1, 5)) for d, n in BALANCED.items()],
    *[(d, n, "openTSNE", "plain", (5, 1, 1, 5)) for d, n in BALANCED.items()],
    *[(d, n, "UMAP", "", (5, 5, 5, 5)) for d, n in BALANCED.items()],
]
ITERATIONS = 1000  # of openTSNE, 250 of them exaggerated
SCALE = 1e-4  # of the start of openTSNE
VARIANTS = ("-", "plain", *(f"plain {s}" for s in SCALES), "scale 1", "pixels")


@functools.cache
def load(name: str, n: int, variant: str = "") -> tuple[Tensor, Tensor]:
    """Points and classes; of fewer points than there are, the same number of each class."""
    n_components = None if variant == "pixels" else 50
    source = drot.datasets.load(
        {"fashion": "fashion_mnist"}.get(name, name), n_components=n_components, download=False
    )
    X, y = source.X, source.y
    if variant == "pixels":
        X = X / 255
    if n < len(X):
        classes = y.unique()
        each = [(y == k).nonzero()[: n // len(classes), 0] for k in classes]
        kept = torch.cat(each).sort().values
        X, y = X[kept], y[kept]
    return X, y


@functools.cache
def rows(name: str, n: int, variant: str) -> drot.affinities.EntropicAffinity:
    """t-SNE's kernel; tiles of it are computed when met."""
    cost = drot.sqeuclidean(load(name, n, variant)[0], block=1000)
    return drot.entropic_affinity(cost, perplexity=PERPLEXITY, diagonal="drop", tol=1e-6)


def unit(Z: Tensor) -> Tensor:
    """Centred, and divided by the standard deviation of the first column."""
    Z = Z - Z.mean(dim=0)
    return Z / Z[:, 0].square().mean().sqrt()


def laplacian_start(X: Tensor) -> Tensor:
    """scikit-learn's SpectralEmbedding with its defaults, by Lanczos iteration."""
    graph = kneighbors_graph(X.numpy(), max(len(X) // 10, 1), include_self=True)
    weights = (graph + graph.T) / 2
    _, scale = csgraph.laplacian(weights, normed=True, return_diag=True)  # square roots of degrees
    weights.setdiag(0)
    inverse = diags_array(1 / scale)
    first = np.full(len(X), 1.0)
    values, vectors = eigsh(inverse @ weights @ inverse, k=3, which="LA", v0=first, tol=1e-8)
    order = np.argsort(-values)[1:]  # without the constant one
    return unit(torch.from_numpy(vectors[:, order] / scale[:, None]))


@functools.cache
def start(name: str, n: int, kind: str, variant: str, seed: int) -> Tensor:
    X = load(name, n, variant)[0]
    if kind == "random":
        return drot.random_start(n, random_state=seed)
    if kind == "PCA":
        return drot.pca_start(X)
    if kind == "Laplacian":
        return laplacian_start(X)
    return drot.ccpca(X, rows(name, n, variant), random_state=seed).start


@functools.cache
def opentsne_affinity(name: str, n: int):
    from openTSNE.affinity import PerplexityBasedNN

    X = load(name, n)[0].numpy()
    return PerplexityBasedNN(X, perplexity=PERPLEXITY, method="exact", n_jobs=1, random_state=0)


@functools.cache
def nearest(name: str, n: int, variant: str) -> tuple[np.ndarray, np.ndarray]:
    """Exact neighbours for umap-learn, the point itself among them: (n, k) each."""
    cost = drot.sqeuclidean(load(name, n, variant)[0], block=1000)
    parts = [tile.topk(N_NEIGHBORS, dim=1, largest=False) for _, tile in cost.tiles(1000)]
    distances = torch.cat([part.values for part in parts]).clamp_min(0).sqrt()
    columns = torch.cat([part.indices for part in parts])
    return columns.numpy(), distances.numpy()


def run_opentsne(name: str, n: int, variant: str, Z: Tensor) -> np.ndarray:
    """openTSNE; plain, it exaggerates nothing. Named variants take Z as it is, or by a factor."""
    import openTSNE

    options = {"n_iter": ITERATIONS - 250}
    if variant.startswith("plain"):
        Z = float(variant[6:] or 1) * Z
        options = {"n_iter": ITERATIONS, "early_exaggeration_iter": 0, "learning_rate": n / 12}
    if not variant:
        Z = SCALE * Z
    model = openTSNE.TSNE(n_jobs=1, random_state=0, **options)
    return np.asarray(model.fit(affinities=opentsne_affinity(name, n), initialization=Z.numpy()))


def run_umap(name: str, n: int, variant: str, Z: Tensor, seed: int) -> np.ndarray:
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one thread because of the seed
        knn = nearest(name, n, variant)
        model = umap.UMAP(precomputed_knn=knn, init=Z.numpy(), random_state=seed, n_jobs=1)
        return model.fit_transform(load(name, n, variant)[0].numpy())


def run_ours(name: str, n: int, Z: Tensor) -> Tensor:
    plan = drot.symmetrize(rows(name, n, ""))
    return drot.tsne(plan, init=Z, tol=1e-3, on_failure="ignore").Z


def case(name: str, n: int, method: str, kind: str, variant: str, seed: int) -> list[str]:
    """One row of the file."""
    torch.set_num_threads(1)
    inner = "pixels" if variant == "pixels" else ""
    X = load(name, n, inner)[0]
    begin = time.process_time()
    Z = start(name, n, kind, inner, seed)
    match method:
        case "openTSNE":
            Z = run_opentsne(name, n, variant, Z)
        case "UMAP":
            Z = run_umap(name, n, inner, Z, seed)
        case "t-SNE":
            Z = run_ours(name, n, Z)
    seconds = time.process_time() - begin
    scores = [100 * drot.neighborhood_preservation(X, Z, n // part) for part in (4, 2)]
    shown = [f"{score:.3f}" for score in scores]
    return [name, str(n), method, kind, variant or "-", str(seed), *shown, f"{seconds:.1f}"]


def grid() -> Iterator[tuple[str, int, str, str, str, int]]:
    """All cases, seed by seed."""
    for seed in SEEDS:
        for name, n, method, variant, seeds in RUNS:
            for kind, most in zip(STARTS, seeds, strict=True):
                if seed < most:
                    yield name, n, method, kind, variant, seed


def columns(data: str, n: int, method: str, start: str, variant: str, seed: int) -> dict[str, str]:
    """The columns of one case, whose variant is written ``-`` where there is none."""
    row = case(data, n, method, start, variant.strip("-"), seed)
    return dict(zip(FIELDS[6:], row[6:], strict=True))


def place(row: dict[str, str]) -> tuple:
    """Where a row stands in the file."""
    methods = ["start", "openTSNE", "UMAP", "t-SNE"]
    first = DATA.index(row["data"]), -int(row["n"]), VARIANTS.index(row["variant"])
    second = methods.index(row["method"]), STARTS.index(row["start"])
    return *first, *second, int(row["seed"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sweep.add_arguments(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    OUT.parent.mkdir(exist_ok=True)
    names = ("openTSNE", "umap-learn", "scikit-learn", "numpy", "joblib")
    jobs = [
        (name, n, method, kind, variant or "-", s) for name, n, method, kind, variant, s in grid()
    ]
    swept = sweep.run(
        [dict(zip(FIELDS[:6], job, strict=True)) for job in jobs],
        columns,
        OUT,
        fields=FIELDS[6:],
        facts=recording.header(", ".join(f"{name} {version(name)}" for name in names)),
        place=place,
        **sweep.options(asked),
    )
    sys.exit(f"{swept.failed} cases failed: run again" if swept.failed else 0)


if __name__ == "__main__":
    main()
