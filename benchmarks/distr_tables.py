"""Prototypes of eight data sets: the experiments of distributional reduction.

    DROT_DATA=<folder of the data files> python benchmarks/distr_tables.py [--turns 9]

Each data set is reduced to k weighted prototypes, the number of classes and 0, 20, ..., 100 more.
Data of more than 50 dimensions are reduced by PCA before. The similarity of the points is

    sea, ea      the symmetric entropic affinity, or the symmetrised one, of perplexity 20, 50, 100
                 or 200, for Student's kernel in the plane, loss kl
    umap         UMAP's memberships of as many neighbours, for its fitted curve, loss kl in the
                 place of binary cross-entropy, which no plan of fewer prototypes than points makes
                 finite (drot.gromov.loss)
    hyperbolic   as sea, for the Cauchy kernel of scale 0.2 in the hyperbolic plane; DistR from CDR
    gram         inner products of the centred points, in 2, 5, 10 or 20 components, loss square;
                 a graph needs weights of one sign, so spectral clusters are of the products less
                 their least, as in a copy of the paper's code; by k-means too

and the methods are

    CDR, DRC     clusters first, as drot.cluster_then_reduce; reduction first, where all points are
                 embedded to a residual of 0.02
    centres      CDR as the paper has it: centres of the clusters are embedded with one weight. A
                 perplexity is then at most k / 2
    DistR        descends from CDR and DRC and keeps the lower end
    CG, MD       DistR from CDR alone with the paper's solvers of the plan, conditional gradient and
                 mirror descent without moves of single rows, 200 steps a round
    COOT         co-optimal transport with 2 or 10 components, one start
    k-means      of the points alone, to see how many prototypes it takes
    chance       each point has one of k labels drawn at random
    CPD          no prototypes: the least eigenvalue of the similarity on vectors of sum 0, as a
                 share of its largest

MNIST and Fashion-MNIST are their first 200 images of each class, and again 10 000 images, in single
precision and with 50 prototypes, for CDR and DistR from CDR alone.

Scores, times 100: homogeneity, weighted silhouette and NMI of all points, and in ``first`` the
homogeneity of as many points as prototypes have weight, drawn at random, in the mean of 200 draws;
in the hyperbolic plane by its distances. ``used`` counts prototypes with weight, ``shared`` points
with mass on two or more. ``cpu_seconds`` counts what a method needs once the affinity is there: for
DRC the embedding of all points, for DistR both starts. The seed draws the clusterings, of k-means
too; embeddings of all points start at eigenvectors, once for all seeds and all k.

The grid is long, so its cases have turns. The record has the first five; ``--turns 9`` goes on, to
four perplexities, six numbers, two clusterings and five seeds of everything.

    1   sea at 50, spectral clusters, with 0, 20, 40 and 100 more prototypes than classes, CG and MD
        with 40; inner products in 10 components with 0, 40 and 100; one seed each. On the six sets
        of Table 2 moreover five seeds of CDR, DRC and DistR with 0, 20 and 40, three by k-means,
        three of inner products with 40 and of COOT with 10 components. Labels by chance, least
        eigenvalues, all images
    2   sea at 20 and 200 with 40 and 100, one seed
    3   ea and umap at 50 with 40 and 100, one seed
    4   these with 0, sea at 100, Zeisel's cells by five seeds and by k-means, COOT with 2
        components, the hyperbolic plane with 40
    5   sea with 20, 60 and 80, one seed
    9   the rest

The rows of CDR, DRC and DistR in turn 1 with several seeds, of COOT there and of all images are two
days older; their embedding of all points went to a residual of 0.001.

Prediction, measured first on one case of each kind, in CPU seconds: a case of CDR, DRC and DistR
takes 1.3 on SNAREseq, 1.8 on COIL-20, 4 on 2000 images, 7.5 on PBMC and 9 on Zeisel's cells; the
embedding of all points 2, 2, 5, 31 and 35 at perplexity 20 and a quarter of it at 200. That makes 5
minutes for what is new in turn 1, 5 each for turns 2 and 3, 12 for turn 4, and 6 hours for all.
Measured: 10 minutes for turn 4, 26 for turn 5, and the affinities; DRC, at any perplexity, 0.2 to 4
on SNAREseq, 0.7 to 10 on COIL-20, 1 to 17 on 2000 images, 9 to 76 on PBMC, 5 to 42 on Zeisel's
cells.
"""

from __future__ import annotations

import argparse
import copy
import functools
import itertools
import math
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import drot
import numpy as np
import recording
import sweep
import torch
from drot.costs.kernels import KERNELS, Kernel
from drot.distributional.problem import (
    Coupling,
    Iterate,
    ReductionProblem,
    make_problem,
    spectral_labels,
)
from drot.distributional.solve import block_descent
from drot.gromov.contraction import with_rows
from drot.gromov.descent import conditional_gradient, mirror_descent
from drot.hyperbolic import HyperbolicProblem, lorentz_centroids, squared_distances
from drot.metrics import (
    prototype_homogeneity,
    prototype_nmi,
    weighted_silhouette,
)
from scipy.linalg import eigvalsh
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor

OUT = Path(__file__).parent / "results" / "distr_tables.csv"
SCORES = ("objective", "homogeneity", "silhouette", "nmi", "first", "used", "shared", "cpu_seconds")
SIZES = {  # the smallest first
    "expression": 1047,
    "chromatin": 1047,
    "coil20": 1440,
    "mnist": 2000,
    "fashion": 2000,
    "pbmc3k": 2638,
    "zeisel": 3005,
    "zeisel_subclasses": 3005,
}
CLASSES = {
    "coil20": 20,
    "pbmc3k": 8,
    "chromatin": 4,
    "expression": 4,
    "mnist": 10,
    "fashion": 10,
    "zeisel": 7,
    "zeisel_subclasses": 48,
}
FILES = {
    "expression": "snareseq_expression",
    "chromatin": "snareseq_chromatin",
    "fashion": "fashion_mnist",
}
COLUMNS = {"chromatin": 19, "expression": 10}  # else 45 or 50
PERPLEXITIES = (50, 20, 100, 200)
STEPS = range(0, 101, 20)  # prototypes beyond the number of classes
COMPONENTS = (10, 2, 5, 20)  # of inner products
SEEDS = range(5)
DONE = 5  # turns in the record
WHOLE = 10_000
TOL, ALL_TOL, ROUNDS = 1e-3, 0.02, 100  # of prototypes, and of an embedding of all points
STEPS_OF_PLAN = 200  # of the paper's solvers, in each round
SCALE = 0.2  # of the hyperbolic kernel
DRAWS = 200
THREE = ("CDR", "DRC", "DistR")


class Case(NamedTuple):
    """One row of the record. Methods of one case share affinity, embedding and clusters."""

    data: str
    n: int
    similarity: str
    perplexity: int  # 0 without one
    components: int
    clustering: str
    prototypes: int
    seed: int
    method: str

    @property
    def place(self) -> tuple:
        return self[:5]

    @property
    def step(self) -> int:
        return self.prototypes - CLASSES[self.data]


class Fitted(Kernel):
    """UMAP's curve 1 / (1 + a u^b), with a guard where its slope is infinite."""

    def __init__(self) -> None:
        self.a, self.b = drot.umap_curve()

    def power(self, u: Tensor) -> Tensor:
        return self.a * (u + 1e-3) ** self.b

    def cost(self, u: Tensor) -> Tensor:
        return torch.log1p(self.power(u))

    def slope(self, u: Tensor) -> Tensor:
        part = self.power(u)
        return self.b * part / ((1 + part) * (u + 1e-3))


KERNELS["umap"] = Fitted()
KERNEL = {"gram": "gram", "umap": "umap"}  # else student


@functools.cache
def load(name: str, n: int) -> tuple[Tensor, Tensor]:
    """Points and classes; of fewer points than there are, the same number of each class."""
    more = {"n_components": 50} if name in ("mnist", "fashion") else {}
    source = drot.datasets.load(FILES.get(name, name), download=False, **more)
    X, y = source.X.double(), source.y
    if n < len(X):
        kept = [(y == c).nonzero()[: n // len(y.unique()), 0] for c in y.unique()]
        rows = torch.cat(kept).sort().values
        X, y = X[rows], y[rows]
    return X, y


def similar(kind: str, X: Tensor, perplexity: int):
    """The similarity of points."""
    if kind == "gram":
        return drot.gram(X - X.mean(dim=0))
    D = drot.sqeuclidean(X)
    if kind == "ea":
        return drot.symmetrize(drot.entropic_affinity(D, perplexity=perplexity))
    if kind == "umap":
        return drot.fuzzy_union(drot.umap_membership(D, n_neighbors=perplexity).plan)
    return drot.symmetric_entropic_affinity(D, perplexity=perplexity).plan


@functools.lru_cache(1)
def problem(name: str, n: int, kind: str, perplexity: int, components: int) -> ReductionProblem:
    """The objective, with its similarity."""
    X = load(name, n)[0]
    return reduction(similar(kind, X.float() if n == WHOLE else X, perplexity), 2, kind, components)


def reduction(C: Tensor, k: int, kind: str, components: int) -> ReductionProblem:
    if kind == "hyperbolic":
        return HyperbolicProblem(C, k, n_components=components, scale=SCALE)
    return make_problem(C, k, n_components=components, kernel=KERNEL.get(kind, "student"))


def task(case: Case) -> ReductionProblem:
    """The problem for the case's number of prototypes and kind of clusters."""
    found = copy.copy(problem(*case.place))
    found.k, found.clustering = case.prototypes, case.clustering
    return found


@functools.lru_cache(1)
def whole(name: str, n: int, kind: str, perplexity: int, components: int):
    """All points embedded, with what the clustering sees of them, and CPU seconds."""
    begin = time.process_time()
    every = None
    if kind == "gram":  # the eigenvectors of the points' second moments, not of n x n products
        Z = drot.spectral.pca(load(name, n)[0], components).Z
    else:
        terms = problem(name, n, kind, perplexity, components)
        every = terms.identity_coupling()
        Z = terms.update_positions(
            terms.initial_positions(every, np.random.default_rng(0)), every, ALL_TOL, 2000
        )
    return (Z, every), time.process_time() - begin


@functools.lru_cache(2)
def start(case: Case) -> tuple[Iterate, float]:
    """What CDR or DRC, the method of the case, makes, and its CPU seconds."""
    terms, before, picture = task(case), 0.0, None
    if case.method == "DRC":
        picture, before = whole(*case.place)
    begin = time.process_time()
    rng = np.random.default_rng(case.seed)
    if case.similarity == "gram" and case.clustering == "spectral":
        cloud = picture[0] if picture else load(case.data, case.n)[0]
        products = drot.gram(cloud - cloud.mean(dim=0)).dense()
        labels = spectral_labels(products - products.min(), case.prototypes, rng)
        coupling = terms.hard_coupling(labels)
    else:
        coupling = terms.cluster(rng, picture)
    if picture:
        Z = terms.centroids(picture[0], coupling)
    else:
        Z = terms.initial_positions(coupling, np.random.default_rng(case.seed))
        Z = terms.update_positions(Z, coupling, TOL, 2000)
    placed = Iterate(Z, coupling, math.inf, terms.objective(Z, coupling))
    return placed, before + time.process_time() - begin


def descended(case: Case, terms: ReductionProblem, first: Iterate) -> tuple[Iterate, float]:
    begin = time.process_time()
    *_, end = itertools.islice(block_descent(terms, first, TOL), ROUNDS + 1)
    return end, time.process_time() - begin


def embedded_centres(case: Case) -> tuple[Iterate, float]:
    """CDR as the paper has it, from the clusters of ours."""
    (first, seconds), terms, begin = (
        start(case._replace(method="CDR")),
        task(case),
        time.process_time(),
    )
    c, k = first.coupling, case.prototypes
    X = load(case.data, case.n)[0].to(c.T)
    centres = ReductionProblem.centroids(terms, X, c)  # the data are flat in any case
    C = similar(case.similarity, centres, min(case.perplexity, k // 2))
    few = reduction(C, k, case.similarity, case.components)
    each = few.identity_coupling()
    Z = few.update_positions(
        few.initial_positions(each, np.random.default_rng(case.seed)), each, TOL, 2000
    )
    placed = Iterate(Z, c, math.inf, terms.objective(Z, c))
    return placed, seconds + time.process_time() - begin


def by_papers_solver(case: Case) -> tuple[Iterate, float]:
    """DistR from CDR, with conditional gradient or mirror descent alone for the plan."""
    (first, seconds), terms = start(case._replace(method="CDR")), task(case)

    def update_plan(Z: Tensor, c: Coupling) -> Coupling:
        plans, now = terms.plan_problem(Z, c)
        if case.method == "MD":  # which cannot leave zeros
            now = plans.state(0.9 * now.T + 0.1 * terms.w[:, None] / terms.k)
            steps = mirror_descent(plans, now, terms.tol)
        else:
            steps = conditional_gradient(plans, now, terms.tol)
        *_, state = itertools.islice(steps, STEPS_OF_PLAN)
        rounding = torch.finfo(terms.w.dtype).eps * terms.w[:, None]
        return terms.couple(with_rows(state.T.masked_fill(rounding >= state.T, 0), terms.w))

    terms.update_plan = update_plan
    end, more = descended(case, terms, first)
    return end, seconds + more


def reduced(case: Case) -> tuple[Iterate, float]:
    """Where a method ends, and its CPU seconds."""
    if case.method in ("CDR", "DRC"):
        return start(case)
    if case.method == "centres":
        return embedded_centres(case)
    if case.method in ("CG", "MD"):
        return by_papers_solver(case)
    alone = case.n == WHOLE or case.similarity == "hyperbolic"
    kinds = ("CDR",) if alone else ("CDR", "DRC")
    begun = [start(case._replace(method=kind)) for kind in kinds]
    ends = [descended(case, task(case), first) for first, _ in begun]
    spent = sum(seconds for _, seconds in (*begun, *ends))
    return min((end for end, _ in ends), key=lambda end: end.value), spent


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


def hyperbolic_clusters(v: Tensor, k: int) -> np.ndarray:
    """Labels by k-means in hyperbolic space, the best of ten starts."""
    rng, best, kept = np.random.default_rng(0), math.inf, None
    for _ in range(10):
        m = v[torch.from_numpy(rng.permutation(len(v))[:k])]
        for _ in range(100):
            far = squared_distances(v, m)
            labels = far.argmin(dim=1)
            member = torch.nn.functional.one_hot(labels, k).double().T
            count = member.sum(dim=1, keepdim=True)
            new = torch.where(count > 0, lorentz_centroids(v, member / count.clamp_min(1)), m)
            if torch.equal(new, m):
                break
            m = new
        value = float(far.min(dim=1).values.sum())
        if value < best:
            best, kept = value, labels.numpy()
    return kept


def hyperbolic_silhouette(v: Tensor, T: np.ndarray, y: np.ndarray) -> float:
    """``drot.metrics.weighted_silhouette`` by hyperbolic distances."""
    mass = np.eye(int(y.max()) + 1)[y].T @ T  # (c, k)
    q, label = T.sum(axis=0), mass.argmax(axis=0)
    D, total = squared_distances(v).sqrt().numpy(), 0.0
    for i in np.flatnonzero(q):
        near = {}
        for c in set(label[q > 0]):
            at = (label == c) & (np.arange(len(q)) != i)
            near[c] = np.average(D[i, at], weights=q[at]) if q[at].sum() else None
        own, rest = near.pop(label[i]), min(near.values())
        total += q[i] * (0 if own is None else (rest - own) / max(rest, own))
    return float(total / q.sum())


def scores(case: Case, Z: Tensor, T: Tensor) -> dict[str, Any]:
    y = load(case.data, case.n)[1].numpy()
    used = T.sum(dim=0) > 0
    labels = T.argmax(dim=1).numpy()
    if case.similarity == "hyperbolic":
        v = Z[:, 1:]
        silhouette = hyperbolic_silhouette(v, T.numpy(), y)
        clusters = np.zeros(len(v), dtype=int)
        number = min(CLASSES[case.data], int(used.sum()))
        clusters[used.numpy()] = hyperbolic_clusters(v[used], number)
        nmi = normalized_mutual_info_score(y, clusters[labels])
    else:
        silhouette, nmi = weighted_silhouette(Z, T, y), prototype_nmi(Z, T, y)
    return percents(
        homogeneity=prototype_homogeneity(T, y),
        silhouette=silhouette,
        nmi=nmi,
        first=first_homogeneity(labels, y, int(used.sum())),
    ) | {"used": int(used.sum()), "shared": int(((T > 0).sum(dim=1) > 1).sum())}


def percents(**found: float) -> dict[str, str]:
    return {name: f"{100 * score:.3f}" for name, score in found.items()}


def labelled(case: Case, labels: np.ndarray) -> dict[str, Any]:
    """Scores of labels that no prototypes belong to."""
    y, k = load(case.data, case.n)[1].numpy(), case.prototypes
    return percents(
        homogeneity=prototype_homogeneity(np.eye(k)[labels], y),
        first=first_homogeneity(labels, y, k),
    ) | {"used": k}


def least_eigenvalue(case: Case) -> float:
    """Of the similarity on vectors of sum 0, over the largest: below 0, it is not CPD."""
    C = similar(case.similarity, load(case.data, case.n)[0], case.perplexity)
    C = C - C.mean(dim=0) - C.mean(dim=1, keepdim=True) + C.mean()
    most = float(eigvalsh(C.numpy(), subset_by_index=(len(C) - 1, len(C) - 1))[0])
    C = (C + most / len(C)).numpy()  # the constant vector goes to the other end
    return float(eigvalsh(C, subset_by_index=(0, 0))[0]) / most


def compute(**case: Any) -> dict[str, Any]:
    """The scores of one case, as text or numbers, empty where there are none."""
    torch.set_num_threads(1)
    here, begin = Case(**case), time.process_time()
    empty: dict[str, Any] = dict.fromkeys(SCORES, "")
    match here.method:
        case "chance":
            n = len(load(here.data, here.n)[1])
            found = labelled(
                here, np.random.default_rng(here.seed).integers(here.prototypes, size=n)
            )
        case "CPD":
            found = {"objective": f"{least_eigenvalue(here):.4g}"}
        case "k-means":
            model = KMeans(here.prototypes, n_init=1, random_state=here.seed)
            model.fit(load(here.data, here.n)[0].numpy())
            found = {"objective": f"{model.inertia_:.7g}"} | labelled(here, model.labels_)
        case "COOT":
            q, limits = here.components, {"n_starts": 1, "max_iter": 50, "on_failure": "ignore"}
            X, k, s = load(here.data, here.n)[0], here.prototypes, here.seed
            end = drot.coot_clustering(X, k, n_components=q, random_state=s, **limits)
            begin = time.process_time() - begin  # without the scores
            found = {"objective": f"{end.objective:.7g}"} | scores(here, end.Z, end.plan)
            return empty | found | {"cpu_seconds": f"{begin:.2f}"}
        case _:
            end, spent = reduced(here)
            found = {"objective": f"{end.value:.7g}"} | scores(here, end.Z, end.coupling.T)
            return empty | found | {"cpu_seconds": f"{spent:.2f}"}
    return empty | found | {"cpu_seconds": f"{time.process_time() - begin:.2f}"}


def turn(case: Case) -> int:
    """When a case is due: see above."""
    step, first, main = case.step, case.seed == 0, case.method in THREE
    six = not case.data.startswith("zeisel")  # the sets of Table 2
    match case.similarity, case.perplexity, case.clustering:
        case "none" | "points", _, _:
            return 1
        case _ if case.n == WHOLE or (case.method == "CPD" and case.perplexity == 50):
            return 1
        case "sea", 50, "spectral":
            if six and main and step in (0, 20, 40):
                return 1
            if case.method in ("CG", "MD"):
                return 1 if first and step == 40 else 9
            if first:
                return 1 if step in (0, 20, 40, 100) else 5
            return 4 if main and step in (0, 40) else 9
        case "sea", 50, "kmeans":
            if six and main and step in (0, 20, 40) and case.seed < 3:
                return 1
            return 4 if first and main and step == 40 else 9
        case "sea", xi, "spectral" if first and (main or case.method == "centres"):
            if step in (40, 100) and xi != 100:
                return 2
            return 4 if step in (0, 40, 100) else 5
        case "ea" | "umap", 50, "spectral" if first and (main or case.method == "centres"):
            return 3 if step in (40, 100) else 4 if step == 0 else 9
        case "gram", _, _:
            if six and main and step == 40 and case.seed < 3:
                return 1
            return 1 if first and step in (0, 40, 100) and case.components == 10 else 9
        case "hyperbolic", 50, _ if case.method != "DRC":
            return 4 if first and step == 40 else 9
        case "coot", _, _:
            if six and case.components == 10 and step in (0, 40) and case.seed < 3:
                return 1
            return 4 if first and step in (0, 40) else 9
    return 9


def grid() -> Iterator[Case]:
    """All cases, those of one similarity together."""
    four, six = (*THREE, "centres"), (*THREE, "centres", "CG", "MD")
    for name, n in SIZES.items():
        numbers = [CLASSES[name] + step for step in STEPS]
        yield from (
            Case(name, n, "none", 0, 0, "-", k, s, "chance") for k in numbers for s in SEEDS
        )
        for kind, xi in itertools.product(("sea", "ea", "umap", "hyperbolic"), PERPLEXITIES):
            if kind in ("sea", "ea"):
                yield Case(name, n, kind, xi, 0, "-", CLASSES[name], 0, "CPD")
            for how, k, s in itertools.product(("spectral", "kmeans"), numbers, SEEDS):
                methods = six if how == "spectral" and kind != "hyperbolic" else four
                if kind != "hyperbolic" or how == "spectral":
                    yield from (Case(name, n, kind, xi, 2, how, k, s, m) for m in methods)
        for q, k, s in itertools.product(COMPONENTS, numbers, SEEDS):
            if q <= COLUMNS.get(name, 45):
                for how in ("spectral", "kmeans"):
                    yield from (Case(name, n, "gram", 0, q, how, k, s, m) for m in four)
            if q in (2, 10):
                yield Case(name, n, "coot", 0, q, "-", k, s, "COOT")
    for name in ("mnist", "fashion"):
        for k in (100, 300, 1000):
            yield Case(name, WHOLE, "points", 0, 50, "kmeans", k, 0, "k-means")
        for s, m in itertools.product(SEEDS, ("CDR", "DistR")):
            yield Case(name, WHOLE, "sea", 50, 2, "spectral", 50, s, m)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=DONE, help="how many turns of the grid")
    asked = parser.parse_args()
    cases = [case for case in grid() if turn(case) <= asked.turns]
    cases.sort(key=lambda case: (turn(case) > 1, list(SIZES).index(case.data), turn(case)))
    order = {tuple(map(str, case)): number for number, case in enumerate(grid())}
    names = ("scikit-learn", "scipy", "numpy", "POT")
    done = sweep.run(
        [case._asdict() for case in cases],
        compute,
        OUT,
        fields=SCORES,
        facts=recording.header(", ".join(f"{name} {version(name)}" for name in names)),
        place=lambda row: order.get(tuple(row[name] for name in Case._fields), -1),
    )
    print(done)


if __name__ == "__main__":
    main()
