"""Prototypes of six data sets: the tables and trade-offs of distributional reduction.

    DROT_DATA=<folder of the data files> python benchmarks/distr_tables.py

Three methods reduce each data set to k weighted prototypes: clusters first (CDR), reduction first
(DRC), and distributional reduction (DistR), which descends from both and keeps the lower end: what
``drot.distributional_reduction`` does with one start of each kind. Data of more than 50 dimensions
are reduced by PCA before.

    kernel student   the symmetric entropic affinity of some perplexity, Student's kernel in the
                     plane, loss kl
    kernel gram      inner products of the centred points and of the prototypes, loss square, in
                     some number of components; a graph needs weights of one sign, so the clusters
                     are by k-means
    method COOT      co-optimal transport with 10 components, one start

The perplexity is 50, and k the number of classes plus 0, 20, 40 and 90, with five seeds; with
clusters by k-means in place of spectral clusters, three. Inner products have 2, 5, 10 and 20
components, k is the number of classes plus 40, for COOT plus 0 as well, and there are three seeds.
MNIST and Fashion-MNIST run in two ways. On 2000 images, the first 200 of each class, all of the
above. On all 10 000 images, in single precision and with 50 prototypes: CDR, and DistR from CDR
alone, since DRC embeds all points with n x n arrays and n^3 factorisations; and k-means of the
points, to see how many prototypes it takes.

Scores, times 100: homogeneity, weighted silhouette and NMI of all points, and in ``first`` the
homogeneity of as many points as prototypes have weight, drawn at random, in the mean of 200 draws.
``cpu_seconds`` counts what a method needs once the affinity is there: for DRC the embedding of all
points, for DistR both starts too.

The seed draws the clusterings. The embedding of all points starts at eigenvectors and draws
nothing, so it is computed once for all seeds and all k. Each finished row is appended to the file,
and rows that are there already are not computed again.

Prediction, measured first on one case of each kind, in CPU seconds: a case of the three methods
takes 1.5 on SNAREseq, 2 on COIL-20, 4.5 on 2000 images, 5 on PBMC, half of that by k-means, and 0.6
by inner products; the embedding of all points 4, 6 and 30, and 120 on PBMC; a case of 10 000 images
30, its affinity 60. With 20 cases by spectral clusters and 12 by k-means on each set, 100 of inner
products and COOT, and 10 of 10 000 images that is 24 minutes. The paper's grid has more
perplexities and more numbers of prototypes; two more perplexities would be another 40 minutes.
"""

from __future__ import annotations

import argparse
import copy
import csv
import functools
import itertools
import math
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import drot
import numpy as np
import recording
import torch
from drot.distributional.reduction import Placed, Reduction, read_problem
from drot.distributional.solve import descent
from drot.metrics import prototype_homogeneity, prototype_nmi, weighted_silhouette
from sklearn.cluster import KMeans
from torch import Tensor

OUT = Path(__file__).parent / "results" / "distr_tables.csv"
FIELDS = [
    *("data", "n", "kernel", "perplexity", "components", "clustering", "prototypes", "method"),
    *("seed", "objective", "homogeneity", "silhouette", "nmi", "first", "used", "cpu_seconds"),
]
KEY = FIELDS[:9]
SIZES = {
    "coil20": 1440,
    "mnist": 2000,
    "fashion": 2000,
    "chromatin": 1047,
    "expression": 1047,
    "pbmc3k": 2638,
}
CLASSES = {"coil20": 20, "pbmc3k": 8, "chromatin": 4, "expression": 4}  # else 10
COLUMNS = {"chromatin": 19, "expression": 10}  # else 50
STEPS = (0, 20, 40, 90)  # prototypes beyond the number of classes
COMPONENTS = (2, 5, 10, 20)  # of inner products
SEEDS = range(5)
FEW = 3  # seeds of what is beside the point
WHOLE = 10_000
TOL, MOST = 1e-3, 100  # of positions; rounds
DRAWS = 200


class Case(NamedTuple):
    """What one computation takes; its methods share the clusterings."""

    data: str
    n: int
    kernel: str
    perplexity: int  # 0 for inner products
    components: int
    clustering: str
    prototypes: int
    seed: int
    methods: tuple[str, ...] = ("CDR", "DRC", "DistR")

    def key(self, method: str) -> tuple[str, ...]:
        return (*(str(part) for part in self[:7]), method, str(self.seed))


def classes(name: str) -> int:
    return CLASSES.get(name, 10)


@functools.cache
def load(name: str, n: int) -> tuple[Tensor, Tensor]:
    """Points and classes; of fewer points than there are, the same number of each class."""
    match name:
        case "chromatin" | "expression":
            source = drot.datasets.load(f"snareseq_{name}", download=False)
        case "coil20":
            source = drot.datasets.load("coil20", download=False)
        case "pbmc3k":
            source = drot.datasets.load("pbmc3k", download=False)
        case "mnist":
            source = drot.datasets.load("mnist", n_components=50, download=False)
        case _:
            source = drot.datasets.load("fashion_mnist", n_components=50, download=False)
    X, y = source.X.double(), source.y
    if n < len(X):
        kept = [(y == c).nonzero()[: n // len(y.unique()), 0] for c in y.unique()]
        rows = torch.cat(kept).sort().values
        X, y = X[rows], y[rows]
    return X, y


@functools.lru_cache(1)
def problem(name: str, n: int, kernel: str, perplexity: int, components: int) -> Reduction:
    """The objective, with its similarity."""
    X = load(name, n)[0]
    if kernel == "gram":
        similarity = drot.gram(X - X.mean(dim=0))
    else:
        X = X.float() if n == WHOLE else X
        similarity = drot.symmetric_entropic_affinity(
            drot.sqeuclidean(X), perplexity=perplexity
        ).plan
    return read_problem(similarity, 2, components, kernel, None, None, None)


@functools.lru_cache(1)
def whole(name: str, n: int, kernel: str, perplexity: int, components: int):
    """All points embedded, with what the clustering sees of them, and CPU seconds."""
    begin = time.process_time()
    task = problem(name, n, kernel, perplexity, components)
    if kernel == "gram":  # the eigenvectors of the points' second moments, not of n x n products
        Z, every = drot.spectral.pca(load(name, n)[0], components).Z, None
    else:
        every = task.identity()
        Z = task.place(task.start(every, np.random.default_rng(0)), every, TOL, 2000)
    return Placed(Z, every, 0.0, ()), time.process_time() - begin


def first_homogeneity(labels: np.ndarray, y: np.ndarray, number: int) -> float:
    """Mean homogeneity of ``number`` points drawn without replacement."""
    rng = np.random.default_rng(0)
    k = int(labels.max()) + 1
    cells = y * k + labels
    found = []
    for _ in range(DRAWS):
        some = rng.choice(len(y), number, replace=False)
        table = np.bincount(cells[some], minlength=k * (int(y.max()) + 1)).reshape(-1, k)
        whole = entropy(table.sum(axis=1))
        given = entropy(table.ravel()) - entropy(table.sum(axis=0))
        found.append(1 - given / whole if whole > 0 else 1.0)
    return float(np.mean(found))


def entropy(counts: np.ndarray) -> float:
    share = counts[counts > 0] / counts.sum()
    return -float(np.sum(share * np.log(share)))


def scores(case: Case, Z: Tensor, T: Tensor) -> list[str]:
    y = load(case.data, case.n)[1].numpy()
    used = int((T.sum(dim=0) > 0).sum())
    labels = T.argmax(dim=1).numpy()
    found = [
        prototype_homogeneity(T, y),
        weighted_silhouette(Z, T, y),
        prototype_nmi(Z, T, y),
        first_homogeneity(labels, y, used),
    ]
    return [*(f"{100 * score:.3f}" for score in found), str(used)]


def compute(case: Case) -> Iterator[list[str]]:
    """The rows of a case, method by method."""
    torch.set_num_threads(1)
    if case.methods == ("k-means",):
        begin = time.process_time()
        X, y = (part.numpy() for part in load(case.data, case.n))
        model = KMeans(case.prototypes, n_init=1, random_state=case.seed).fit(X)
        plan = np.eye(case.prototypes)[model.labels_]
        pure = 100 * prototype_homogeneity(plan, y)
        first = 100 * first_homogeneity(model.labels_, y, case.prototypes)
        found = [f"{model.inertia_:.7g}", f"{pure:.3f}", "", "", f"{first:.3f}"]
        seconds = f"{time.process_time() - begin:.2f}"
        yield [*case.key("k-means"), *found, str(case.prototypes), seconds]
        return
    if case.methods == ("COOT",):
        begin = time.process_time()
        X = load(case.data, case.n)[0]
        limits = {"n_starts": 1, "max_iter": 50, "on_failure": "ignore"}
        found = drot.coot_clustering(
            X, case.prototypes, n_components=10, random_state=case.seed, **limits
        )
        seconds = time.process_time() - begin
        yield row(case, "COOT", found.objective, found.Z, found.plan, seconds)
        return
    k, place = case.prototypes, case[:5]
    task = copy.copy(problem(*place))
    task.k = k
    ends: list[Placed] = []
    spent = 0.0
    for method in ("CDR", "DRC"):
        if method not in case.methods:
            continue
        picture, before = None, 0.0
        if method == "DRC":
            picture, before = whole(*place)
        begin = time.process_time()
        rng = np.random.default_rng(case.seed)
        if picture is None:
            coupling = task.cluster(case.clustering, rng)
            Z = task.start(coupling, np.random.default_rng(case.seed))
            Z = task.place(Z, coupling, TOL, 2000)
        else:
            how = case.clustering if picture.coupling else "kmeans"
            coupling = task.cluster(how, rng, picture)
            Z = task.centres(picture.Z, coupling)
        seconds = time.process_time() - begin
        first = Placed(Z, coupling, math.inf, (task.objective(Z, coupling),))
        yield row(case, method, first.value, Z, coupling.T, before + seconds)
        begin = time.process_time()
        *_, (end, *_) = itertools.islice(descent(task, first, TOL), MOST + 1)
        spent += before + seconds + time.process_time() - begin
        ends.append(end)
    best = min(ends, key=lambda end: end.value)
    yield row(case, "DistR", best.value, best.Z, best.coupling.T, spent)


def row(case: Case, method: str, value: float, Z: Tensor, T: Tensor, seconds: float) -> list[str]:
    return [*case.key(method), f"{value:.7g}", *scores(case, Z, T), f"{seconds:.2f}"]


def grid() -> Iterator[Case]:
    """All cases, those of one similarity together, the headline first."""
    for name in SIZES:
        for step in STEPS:
            for seed in SEEDS:
                yield student(name, 50, step, seed, "spectral")
                if seed < FEW:
                    yield student(name, 50, step, seed, "kmeans")
    for name, n in SIZES.items():
        for q in COMPONENTS:
            for seed in range(FEW if q <= COLUMNS.get(name, 50) else 0):
                yield Case(name, n, "gram", 0, q, "kmeans", classes(name) + 40, seed)
        for step in (0, 40):
            for seed in range(FEW):
                k = classes(name) + step
                yield Case(name, n, "coot", 0, 10, "-", k, seed, ("COOT",))
    yield from large()


def student(name: str, perplexity: int, step: int, seed: int, how: str) -> Case:
    """The symmetric entropic affinity, and Student's kernel in the plane."""
    k = classes(name) + step
    return Case(name, SIZES[name], "student", perplexity, 2, how, k, seed)


def large() -> Iterator[Case]:
    """All images; and clusters of their points alone, as many as one likes."""
    for name in ("mnist", "fashion"):
        for k in (100, 300, 1000):
            yield Case(name, WHOLE, "points", 0, 50, "kmeans", k, 0, ("k-means",))
    for name in ("mnist", "fashion"):
        for seed in SEEDS:
            yield Case(name, WHOLE, "student", 50, 2, "spectral", 50, seed, ("CDR", "DistR"))


def read() -> list[list[str]]:
    if not OUT.exists():
        return []
    lines = OUT.read_text("utf8").splitlines()
    return list(csv.reader(line for line in lines if not line.startswith("#")))[1:]


def write(rows: list[list[str]], *, mode: str) -> None:
    fresh = not OUT.exists()
    with OUT.open(mode, encoding="utf8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            names = ("scikit-learn", "scipy", "numpy", "POT")
            file.write(recording.header(", ".join(f"{name} {version(name)}" for name in names)))
            writer.writerow(FIELDS)
        writer.writerows(rows)


def place(order: dict[tuple[str, ...], int], found: list[str]) -> int:
    """Where a row stands in the file: in the order of the grid."""
    return order[tuple(found[: len(KEY)])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="words that a case must have, as student,50")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    there = {tuple(found[: len(KEY)]) for found in read()}
    words = [word for word in asked.only.split(",") if word]
    todo = []
    for case in grid():
        parts = {str(part) for part in case}
        done = all(case.key(method) in there for method in case.methods)
        if not done and all(word in parts for word in words):
            todo.append(case)
    print(f"{len(there)} rows are there, {len(todo)} cases to compute", flush=True)
    OUT.parent.mkdir(exist_ok=True)
    for case in todo:
        rows = list(compute(case))
        write(rows, mode="a")
        for found in rows:
            print("  ".join(found), flush=True)
    order = {
        case.key(m): i for i, (case, m) in enumerate((c, m) for c in grid() for m in c.methods)
    }
    lines = OUT.read_text("utf8").splitlines()
    ordered = sorted(read(), key=lambda found: place(order, found))
    OUT.write_text("".join(f"{line}\n" for line in lines if line.startswith("#")), "utf8")
    write([FIELDS, *ordered], mode="a")


if __name__ == "__main__":
    main()
