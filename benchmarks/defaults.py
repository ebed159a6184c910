"""What the defaults of the estimators were chosen from: tolerance of maps, similarity of clusters.

    DROT_DATA=<folder of the data files> python benchmarks/defaults.py          # both
    python benchmarks/defaults.py maps                                          # or clusters

Eight labelled sets, of at most 2000 points each, drawn by a seed. Each row is a process's own time
on one thread, in CPU seconds, so that a busy machine changes it little.

``defaults_maps.csv``: t-SNE, UMAP and t-SNEkhorn at four tolerances, all else as it is by default.
``kl`` is what the estimator reports, per point; ``classes`` the share of points whose class is
that of most of their ten neighbours in the map, from ten folds; ``kept`` the share of ten nearest
neighbours in the data that are so in the map, corrected for chance.

``defaults_clusters.csv``: ``SemiRelaxedGWClustering`` by what it may compare, under both losses,
with as many clusters as there are classes, and scikit-learn's k-means with ten starts, from three
seeds each: ``ari`` is the adjusted Rand index.

A finished case is written at once and is not computed again.

Prediction for one thread: a map of 2000 points takes 2 to 5 seconds at .02 and up to ten times as
many at .001: 96 maps, 15 minutes. A clustering takes 1 to 10 seconds: 144 of them, 10 minutes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import cache
from pathlib import Path

import drot
import numpy as np
import recording
import sklearn
import sweep
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

RESULTS = Path(__file__).parent / "results"
MAPS, CLUSTERS = RESULTS / "defaults_maps.csv", RESULTS / "defaults_clusters.csv"
SETS = ("olivetti", "umist", "coil20", "digits", "blobs", "zeisel", "pbmc3k", "mnist")
MOST = 2000
TOLERANCES = (0.02, 0.01, 0.005, 0.001)
METHODS = ("TSNE", "UMAP", "TSNEkhorn")
COMPARED = ("k-means", "sqeuclidean", "gram", "symmetric_entropic")
CPU = "time in CPU seconds of one thread"


@cache
def points(name: str) -> tuple[np.ndarray, np.ndarray]:
    """At most so many points of a set, in float64, and their classes as numbers."""
    if name == "blobs":
        X, y = make_blobs(MOST, centers=10, n_features=20, cluster_std=6.0, random_state=0)
    elif name == "digits":
        data = drot.datasets.digits()
        X, y = np.asarray(data.X), np.asarray(data.y)
    else:
        data = drot.datasets.load(name, download=False)
        X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
    pick = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST])
    return X[pick], np.unique(y[pick], return_inverse=True)[1]


@cache
def warm(kind: str) -> None:
    """What is compiled and imported is not in the first time."""
    X = np.random.default_rng(0).normal(size=(60, 5))
    if kind in METHODS:
        made = {"n_neighbors": 5} if kind == "UMAP" else {"perplexity": 5}
        getattr(drot, kind)(**made, tol=0.5, random_state=0).fit(X)
    elif kind != "k-means":
        drot.SemiRelaxedGWClustering(3, similarity=kind, perplexity=5, random_state=0).fit(X)


def draw(data: str, method: str, tol: float) -> dict:
    """One map."""
    torch.set_num_threads(1)
    X, y = points(data)
    warm(method)
    model = getattr(drot, method)(tol=tol, random_state=0)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it arrived is a column
        Z = model.fit_transform(X)
    seconds = time.process_time() - begin
    order = np.random.default_rng(0).permutation(len(X))  # folds of mixed classes
    classes = cross_val_score(KNeighborsClassifier(10), Z[order], y[order], cv=10).mean()
    return {
        "n": len(X),
        "cpu_s": f"{seconds:.2f}",
        "n_iter": model.n_iter_,
        "kl": f"{model.kl_divergence_:.4f}",
        "classes": f"{classes:.4f}",
        "kept": f"{drot.neighborhood_preservation(X, Z, 10):.4f}",
        "converged": model.result_.converged,
    }


def cluster(data: str, similarity: str, loss: str, seed: int) -> dict:
    """One clustering; ``loss`` is idle for k-means."""
    torch.set_num_threads(1)
    X, y = points(data)
    warm(similarity)
    k = len(np.unique(y))
    if similarity == "k-means":
        model = KMeans(k, n_init=10, random_state=seed)
    else:
        made = {"similarity": similarity, "loss": loss}
        model = drot.SemiRelaxedGWClustering(k, **made, random_state=seed)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = model.fit_predict(X)
    seconds = time.process_time() - begin
    ari = f"{adjusted_rand_score(y, labels):.4f}"
    found = len(np.unique(labels))
    return {"n": len(X), "k": k, "found": found, "cpu_s": f"{seconds:.2f}", "ari": ari}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=["maps", "clusters"])
    sweep.add_arguments(parser)
    asked = parser.parse_args()
    options = sweep.options(asked)
    options["facts"] = recording.header(f"scikit-learn {sklearn.__version__}, {CPU}")
    if asked.what != "clusters":
        cases = [
            {"data": data, "method": method, "tol": tol}
            for data in SETS
            for method in METHODS
            for tol in TOLERANCES
        ]
        fields = ("n", "cpu_s", "n_iter", "kl", "classes", "kept", "converged")
        sweep.run(cases, draw, MAPS, fields=fields, **options)
    if asked.what != "maps":
        cases = [
            {"data": data, "similarity": similarity, "loss": loss, "seed": seed}
            for data in SETS
            for similarity in COMPARED
            for loss in ("square", "kl")
            for seed in range(3)
            if loss == "square" or similarity in ("symmetric_entropic", "sqeuclidean")
        ]
        fields = ("n", "k", "found", "cpu_s", "ari")
        sweep.run(cases, cluster, CLUSTERS, fields=fields, **options)


if __name__ == "__main__":
    main()
