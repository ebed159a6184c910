"""One thread against the default, with a machine to itself and beside a program that never rests.

The estimators at their defaults. ``one`` is a program that asked for one thread, ``default`` one
that asked for nothing: up to ten million pairs the package takes one thread then too, and the two
rows should agree; beyond, on an idle machine, the default should win. ``reached`` is the objective.

Prediction: each two rows within 1.5 of each other, but for n = 5000.
"""

from __future__ import annotations

import subprocess
import sys
import weakref

import drot
import torch
from point_clouds import load
from threadpoolctl import threadpool_limits

from cases.pairing import Method, Outcome, Problem

KINDS = {  # an estimator, and what it minimised
    "t-SNE": (lambda: drot.TSNE(random_state=0), "kl_divergence_"),
    "SNEkhorn": (lambda: drot.SNEkhorn(random_state=0), "kl_divergence_"),
    "DistR": (lambda: drot.DistR(random_state=0), "objective_"),
    "srGW": (lambda: drot.SemiRelaxedGWClustering(random_state=0), "objective_"),
}
SETTINGS = {
    "small": [{"data": "even_200", "kind": kind, "beside": 0} for kind in KINDS],
    "cpu": [
        {"data": f"even_{n}", "kind": kind, "beside": beside}
        for beside in (0, 1)
        for n, kinds in ((600, KINDS), (3000, ("t-SNE",)), (5000, ("t-SNE",)))
        for kind in kinds
        if not (n == 5000 and beside)
    ],
}
SETTINGS["small"].append(SETTINGS["small"][0] | {"beside": 1})


def problem(data: str, kind: str, beside: int, *, device: str = "cpu") -> Problem:
    X = load(data).numpy()
    make, quantity = KINDS[kind]

    def default():
        return make().fit(X)

    def one():
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with threadpool_limits(1):
                return default()
        finally:
            torch.set_num_threads(before)

    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(beside)]
    place = f"{data}, " + ("idle" if not beside else "beside a busy program")
    methods = [
        Method(f"drot {kind}, {name}", "drot", run, lambda m: Outcome(getattr(m, quantity)))
        for name, run in (("one", one), ("default", default))
    ]
    found = Problem(place, *X.shape, "float64", device, quantity.strip("_"), methods)
    weakref.finalize(found, lambda: [one.kill() for one in busy])
    return found
