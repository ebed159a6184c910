"""Held-out points placed by `transform`: classes of ten neighbours and seconds, beside peers.

python benchmarks/new_points.py writes benchmarks/results/new_points.csv; peers that are not
installed are left out. CPU seconds of one thread; the first fit of each compiles and is not timed.
"""

from __future__ import annotations

import csv
import sys
import time
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import drot
import numpy as np
import recording
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

OUT = Path(__file__).parent / "results" / "new_points.csv"
PEERS = ("scikit-learn", "openTSNE", "umap-learn")
KINDS = ("SNE", "TSNE", "LargeVis", "UMAP", "SNEkhorn", "TSNEkhorn", "CCPCA")


def sets():
    """Name, points and classes; 30 principal components, fitted on the kept half alone."""
    yield "digits", *load_digits(return_X_y=True)
    for name, most in (("umist", 575), ("mnist", 3000)):
        try:
            data = drot.datasets.load(name)
        except Exception as error:  # the file is not there
            print(name, error, file=sys.stderr)
            continue
        pick = np.random.default_rng(0).permutation(len(data.X))[:most]
        yield name, np.asarray(data.X, dtype=float)[pick], np.asarray(data.y)[pick]


def models():
    """Name and model, peers at their defaults on one thread."""
    for name in KINDS:
        yield "drot " + name, getattr(drot, name)(random_state=0)
    with suppress(ImportError):
        yield "umap-learn", import_module("umap").UMAP(random_state=0, n_jobs=1)
    with suppress(ImportError):
        yield "openTSNE", import_module("openTSNE").TSNE(random_state=0, n_jobs=1)


def main() -> None:
    """One row per set and model."""
    torch.set_num_threads(1)
    for _, model in models():
        small = np.random.default_rng(0).normal(size=(200, 5))
        model.fit(small[:150]).transform(small[150:])
    with OUT.open("w", newline="") as file:
        file.write(recording.header(", ".join(f"{name} {version(name)}" for name in PEERS)))
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("data", "fitted", "new", "model", "accuracy", "fit_s", "transform_s"))
        for name, X, y in sets():
            order = np.random.default_rng(1).permutation(len(X))
            kept, new = order[: 2 * len(X) // 3], order[2 * len(X) // 3 :]
            pca = PCA(30, random_state=0).fit(X[kept])
            A, B = pca.transform(X[kept]), pca.transform(X[new])
            raw = KNeighborsClassifier(10).fit(A, y[kept]).score(B, y[new])
            out.writerow([name, len(A), len(B), "none: 30 components", f"{raw:.3f}", "", ""])
            for kind, model in models():
                begin = time.process_time()
                model = model.fit(A)
                middle = time.process_time()
                Z = np.asarray(getattr(model, "embedding_", model))
                places = np.asarray(model.transform(B))
                end = time.process_time()
                score = KNeighborsClassifier(10).fit(Z, y[kept]).score(places, y[new])
                seconds = f"{middle - begin:.2f}", f"{end - middle:.2f}"
                out.writerow([name, len(A), len(B), kind, f"{score:.3f}", *seconds])
                file.flush()


if __name__ == "__main__":
    main()
