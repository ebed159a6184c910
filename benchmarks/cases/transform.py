"""New points into a fitted map, which is not timed: 1000 into a map of 5000.

``reached`` is the share of new points whose nearest fitted one is among their ten nearest in the
map. Prediction: the package below two seconds on two cores, openTSNE and umap-learn above.
"""

from __future__ import annotations

import importlib

import drot
import numpy as np
from point_clouds import load
from sklearn.metrics import pairwise_distances

from cases.pairing import Method, Outcome, Problem, absent, present

SETTINGS = {
    "small": [{"data": "even_200", "new": 40}],
    "cpu": [{"data": "even_6000", "new": 1000}],
}
PERPLEXITY = 30
OURS = {
    "t-SNE": lambda: drot.TSNE(perplexity=PERPLEXITY, random_state=0),
    "UMAP": lambda: drot.UMAP(random_state=0),
}


def peers(X: np.ndarray) -> dict[str, tuple]:
    """Name -> software, map of X, and what places new points; maps of those that are here."""
    found = {}
    if present("openTSNE"):
        model = importlib.import_module("openTSNE").TSNE(perplexity=PERPLEXITY, random_state=0)
        fitted = model.fit(X)
        found["openTSNE"] = "openTSNE", np.asarray(fitted), fitted.transform
    if present("umap-learn"):
        model = importlib.import_module("umap").UMAP(random_state=0)
        found["umap-learn"] = "umap-learn", model.fit_transform(X), model.transform
    return found


def problem(data: str, new: int, *, device: str = "cpu") -> Problem:
    cloud = load(data).numpy()
    X, Y = cloud[:-new], cloud[-new:]
    nearest = pairwise_distances(Y, X).argmin(axis=1)
    ways = peers(X)
    for name, make in OURS.items():
        model = make().fit(X)
        ways[f"drot {name}"] = "drot", model.embedding_, model.transform

    def method(name: str) -> Method:
        software, Z, transform = ways[name]

        def read(places) -> Outcome:
            order = pairwise_distances(np.asarray(places), Z).argsort(axis=1)[:, :10]
            return Outcome(float((order == nearest[:, None]).any(axis=1).mean()))

        return Method(name, software, lambda: transform(Y), read)

    gone = [name for name in ("openTSNE", "umap-learn") if name not in ways]
    methods = [method(name) for name in ways] + [absent(name, name) for name in gone]
    label = f"{data}, {new} of them new"
    return Problem(label, *cloud.shape, "float64", device, "kept neighbours", methods)
