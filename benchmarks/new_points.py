"""Maps of fitted and of held-out points: classes of ten neighbours, KL and seconds, beside peers.

python benchmarks/new_points.py writes benchmarks/results/new_points.csv; peers that are not
installed are left out. CPU seconds of one thread; the first fit of each compiles and is not timed.
``accuracy`` is of the held-out points (scikit-learn's t-SNE places none), ``kept`` of the fitted
ones, each by its ten neighbours; ``kl`` is t-SNE's exact objective at perplexity 30, in nats.
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
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsClassifier

OUT = Path(__file__).parent / "results" / "new_points.csv"
PEERS = ("scikit-learn", "openTSNE", "umap-learn")
OF_TSNE = ("drot TSNE", "openTSNE", "scikit-learn")
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
    yield "scikit-learn", TSNE(random_state=0, n_jobs=1)


def divergence(X: np.ndarray, Z: np.ndarray) -> float:
    """KL(P | Q) of a t-SNE map."""
    rows = drot.entropic_affinity(drot.sqeuclidean(X), perplexity=30, diagonal="drop")
    loss = drot.SNELoss(drot.symmetrize(rows), "student")
    return (loss.evaluate(torch.as_tensor(Z).double()).value + loss.constant) / loss.mass


def scores(Z, y, places, new) -> tuple[str, str]:
    """Accuracy of held-out points, and of the fitted ones, which do not see themselves."""
    near = KNeighborsClassifier(10).fit(Z, y)
    others = y[near.kneighbors(return_distance=False)]  # (n, 10)
    votes = [np.bincount(row).argmax() for row in others]
    return "" if places is None else f"{near.score(places, new):.3f}", f"{np.mean(votes == y):.3f}"


def main() -> None:
    """One row per set and model."""
    torch.set_num_threads(1)
    for _, model in models():
        small = np.random.default_rng(0).normal(size=(200, 5))
        fitted = model.fit(small[:150])
        if hasattr(model, "transform"):
            fitted.transform(small[150:])
    torch.set_num_threads(1)  # again: umap-learn has chosen another number
    with OUT.open("w", newline="") as file:
        file.write(recording.header(", ".join(f"{name} {version(name)}" for name in PEERS)))
        out = csv.writer(file, lineterminator="\n")
        head = ("data", "fitted", "new", "model", "accuracy", "kept", "kl", "fit_s", "transform_s")
        out.writerow(head)
        for name, X, y in sets():
            order = np.random.default_rng(1).permutation(len(X))
            kept, new = order[: 2 * len(X) // 3], order[2 * len(X) // 3 :]
            pca = PCA(30, random_state=0).fit(X[kept])
            A, B = pca.transform(X[kept]), pca.transform(X[new])
            sizes, raw = (name, len(A), len(B)), scores(A, y[kept], B, y[new])
            out.writerow([*sizes, "none: 30 components", *raw, "", "", ""])
            for kind, model in models():
                torch.set_num_threads(1)
                begin = time.process_time()
                model = model.fit(A)
                middle = time.process_time()
                Z = np.asarray(getattr(model, "embedding_", model))
                places = np.asarray(model.transform(B)) if hasattr(model, "transform") else None
                end = time.process_time()
                found = scores(Z, y[kept], places, y[new])
                kl = f"{divergence(A, Z):.3f}" if kind in OF_TSNE else ""
                placed = "" if places is None else f"{end - middle:.2f}"
                out.writerow([*sizes, kind, *found, kl, f"{middle - begin:.2f}", placed])
                file.flush()


if __name__ == "__main__":
    main()
