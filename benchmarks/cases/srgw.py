"""Semi-relaxed Gromov-Wasserstein: drot and POT, objective reached and time.

Points in k blobs of dimension 10 are matched with k prototypes, uniform weights: ``centres`` has
the Gram matrices of the points and of the blobs' centres, ``plane`` that of k random points of the
plane, ``kernel`` Gaussian kernels and the loss kl. ``POT, product`` runs POT's conditional gradient
from its default start, ``POT, all starts`` from each of its five and keeps the best. ``drot,
product`` is the same algorithm from the same plan, on the dense matrix and on its factors: its time
is the one to compare with POT's. ``drot`` is the call without options, on factors where there are
some, and ``drot, best of 20`` has 20 starts of each of four kinds (5 for the kernel). ``reached``
is the objective. Iterations of POT, and products of C with an (n, k) matrix of ours, stand in the
column ``products``.

Prediction. A product of C with a plan takes 2 n^2 k flops, on factors with r columns 4 n r k: at
n = 2000, k = 20 and r = 10 a hundredth. POT makes three products an iteration, and ours reads only
the columns of the points that still move.
"""

from __future__ import annotations

import drot
import torch
from machine import Operations, cache_bytes
from sklearn.datasets import make_blobs
from torch import Tensor

from cases.pairing import Method, Outcome, Problem, absent, present

P = 10  # dimension of the points
POT_STARTS = ("product", "random_product", "random", "kmeans", "kmeans_soft")
METHODS = ("POT product", "POT all", "product dense", "product factors", "default", "best")
SETTINGS = {
    "small": [{"data": "plane", "k": 4, "n": 120, "best": 2}],
    "cpu": [{"data": name, "k": 20} for name in ("centres", "plane", "kernel")],
    "cuda": [{"data": "plane", "k": 20, "n": 10_000, "methods": METHODS[2:]}],
}


def problem(
    data: str,
    k: int,
    *,
    n: int = 2000,
    dtype: str = "float64",
    device: str = "cpu",
    best: int = 20,
    methods: tuple[str, ...] = METHODS,
) -> Problem:
    like = {"dtype": getattr(torch, dtype), "device": device}
    X, _, centres = make_blobs(n, n_features=P, centers=k, random_state=0, return_centers=True)
    X, Z = torch.from_numpy(X).to(**like), torch.from_numpy(centres).to(**like)
    loss, thin = "square", None
    if data == "plane":
        seed = torch.Generator().manual_seed(1)
        Z = 5 * torch.randn(k, 2, dtype=torch.float64, generator=seed).to(**like)
    if data == "kernel":
        loss, best = "kl", min(best, 5)
        C = (-drot.sqeuclidean(X).dense() / 50).exp()
        D = (-drot.sqeuclidean(Z).dense() / 50).exp() + 0.01
    else:
        C, D = X @ X.T, Z @ Z.T
        thin = drot.gram(X), drot.gram(Z)
    default = thin or (C, D)
    kinds = ["kmeans", "spectral", "random", "product"]
    several = {"init": kinds, "n_starts": best, "random_state": 1}
    plain = {"init": "product", "refine": False, "max_iter": 200}
    makers = {
        "POT product": lambda: pot("POT, product", C, D, loss, POT_STARTS[:1]),
        "POT all": lambda: pot("POT, all starts", C, D, loss, POT_STARTS),
        "product dense": lambda: ours("drot, product, dense", C, D, loss, plain),
        "product factors": lambda: thin and ours("drot, product, factors", *thin, loss, plain),
        "default": lambda: ours("drot", *default, loss, {}),
        "best": lambda: ours(f"drot, best of {best}", *default, loss, several),
    }
    made = [method for name in methods if (method := makers[name]())]
    return Problem(f"{data}, k {k}", n, P, dtype, device, "objective", methods=made)


def ours(name: str, C, D, loss: str, options: dict) -> Method:
    def run() -> drot.gromov.SemiRelaxedGW:
        return drot.semi_relaxed_gw(C, D, loss=loss, on_failure="ignore", **options)

    def read(found: drot.gromov.SemiRelaxedGW) -> Outcome:
        n, k = found.plan.shape
        if isinstance(C, Tensor):
            work = dense(C, k, found.products)
        else:
            work = Operations(flops=2 * n * P * k * found.products)  # the left factor's part
        return Outcome(found.objective, work, products=round(found.products, 2))

    return Method(name, "drot", run, read)


def dense(C: Tensor, k: int, products: float) -> Operations:
    """Of products of C with a plan."""
    size = C.numel() * C.element_size()
    moved = size if size > cache_bytes(C.device.type) else 0.0
    return Operations(flops=2 * C.numel() * k, bytes=moved) * products


def pot(name: str, C: Tensor, D: Tensor, loss: str, starts: tuple[str, ...]) -> Method:
    if not present("POT"):
        return absent(name, "POT")
    import ot

    def run() -> list[dict]:
        return [
            ot.gromov.semirelaxed_gromov_wasserstein(
                C,
                D,
                loss_fun=f"{loss}_loss",
                symmetric=True,
                G0=None if start == "product" else start,
                log=True,
                random_state=0,
            )[1]
            for start in starts
        ]

    def read(logs: list[dict]) -> Outcome:
        least = min(float(log["srgw_dist"]) for log in logs)
        steps = sum(len(log["loss"]) - 1 for log in logs)
        return Outcome(least, dense(C, len(D), steps), products=steps)

    return Method(name, "POT", run, read)
