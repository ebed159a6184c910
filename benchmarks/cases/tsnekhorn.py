"""t-SNEkhorn: drot's L-BFGS, the papers' Adam, TorchDR.

All start at the same N(0, 1) points and get the same plan, the exact symmetric entropic affinity,
whose time is not counted. ``Adam`` is the papers' optimiser for ``STEPS`` steps on our evaluations
of the objective and its gradient, at the papers' rate 0.1 and at 1. ``Adam, autograd`` has the
papers' gradient as well, by backpropagation through Sinkhorn's iterations; it runs for ``FEW``
steps, and is there for its time per step (a pass is a step). ``drot, to Adam's objective`` stops
within 0.01 % of the best that ``Adam`` reached. TorchDR runs Adam at rate 1 and 5 Sinkhorn
iterations a step; its plan of the embedding is told to keep the diagonal, as the objective has it.
``reached`` is <P, C_Z> - 2 <f, 1>, evaluated by us.

A pass takes one logarithm for each pair, a product reads the kernel once.

Prediction. L-BFGS, whose map grows by at most a tenth a step, from radius 1 to some 50, reaches
Adam's objective in about 60 passes, and comes to rest in some 400.
"""

from __future__ import annotations

import math
from typing import Any

import drot
import torch
from drot.embeddings.embed import embed
from drot.embeddings.losses import SNEkhornLoss
from embeddings import Unrolled
from machine import Operations, cache_bytes
from point_clouds import load
from torch import Tensor

from cases.pairing import Method, Outcome, Problem, absent, present

STEPS, FEW, FEW_OURS = 2000, 10, 50
TOL = 1e-3  # rest
METHODS = ("adam 0.1", "adam 1", "to adam", "lbfgs", "autograd", "TorchDR")
SETTINGS = {
    "small": [{"data": "even_100", "perplexity": 10, "steps": 20, "most": 40}],
    "cpu": [{"data": "coil20_480", "perplexity": 30}, {"data": "digits_500", "perplexity": 30}],
    "cuda": [
        {"data": "coil20", "perplexity": 30, "methods": ("adam 1", "to adam", "lbfgs")},
        {
            "data": "mixture_20000",
            "perplexity": 30,
            "dtype": "float32",
            "steps": 200,
            "methods": ("adam 1", "to adam", "lbfgs", "TorchDR"),
        },
    ],
}


def problem(
    data: str,
    perplexity: int,
    *,
    dtype: str = "float64",
    device: str = "cpu",
    steps: int = STEPS,
    most: int = 2000,
    methods: tuple[str, ...] = METHODS,
) -> Problem:
    X = load(data).to(device, getattr(torch, dtype))
    n, p = X.shape
    tol = 1e-8 if dtype == "float64" else 1e-4
    cost = drot.sqeuclidean(X)
    plan = drot.symmetric_entropic_affinity(
        cost, perplexity=perplexity, tol=tol, on_failure="ignore"
    ).plan
    start = drot.random_start(n, random_state=0).to(plan)
    level: list[float] = []  # what Adam reached, at its best rate
    makers = {
        "adam 0.1": lambda: adam(plan, start, steps, 0.1, level),
        "adam 1": lambda: adam(plan, start, steps, 1.0, level),
        "to adam": lambda: ours(plan, start, most, "drot, to Adam's objective", level),
        "lbfgs": lambda: ours(plan, start, most, f"drot, to {TOL:.0e}"),
        "autograd": lambda: autograd(plan, start),
        "TorchDR": lambda: torchdr(X, plan, start, steps),
        "steps": lambda: ours(plan, start, FEW_OURS, f"drot, {FEW_OURS} steps"),
        "rest": lambda: ours(plan, "spectral", most, f"drot, to {TOL:.0e}"),
    }
    shown = f"{data}, perplexity {perplexity}"
    made = [makers[name]() for name in methods]
    return Problem(shown, n, p, dtype, device, "objective", methods=made)


def operations(plan: Tensor, found: drot.embeddings.Embedding, *, factor: bool) -> Operations:
    """What its passes and products cannot do without."""
    n = len(plan)
    size = n * n * plan.element_size()
    flops = 2 * n * n * (3 * found.passes + found.products) + factor * n**3 / 3
    # a pass reads the plan and the kernel, a product the kernel, a solve the factor
    arrays = 2 * found.passes + found.products + factor * found.n_iter
    moved = arrays * size if size > cache_bytes(plan.device.type) else 0.0
    return Operations(flops, found.passes * n * n, moved)


def ours(
    plan: Tensor, start: Tensor | str, most: int, name: str, level: list[float] | None = None
) -> Method:
    def run() -> drot.embeddings.Embedding:
        goal = -math.inf if level is None else min(level) + 1e-4 * abs(min(level))
        there = lambda iteration, residual, Z, value: value <= goal  # noqa: E731
        options = {"tol": TOL, "max_iter": most, "callback": there, "on_failure": "ignore"}
        return embed(SNEkhornLoss(plan, "student"), start, **options)

    def read(found: drot.embeddings.Embedding) -> Outcome:
        work = operations(plan, found, factor=True)
        return Outcome(found.value, work, passes=found.passes, products=found.products)

    return Method(name, "drot", run, read)


def adam(plan: Tensor, start: Tensor, steps: int, rate: float, level: list[float]) -> Method:
    def run() -> drot.embeddings.Embedding:
        options = {"solver": "adam", "learning_rate": rate, "max_iter": steps}
        return embed(SNEkhornLoss(plan, "student"), start, on_failure="ignore", **options)

    def read(found: drot.embeddings.Embedding) -> Outcome:
        level.append(found.value)
        work = operations(plan, found, factor=False)
        return Outcome(found.value, work, passes=found.passes, products=found.products)

    return Method(f"Adam, rate {rate:g}, {steps} steps", "drot", run, read)


def autograd(plan: Tensor, start: Tensor) -> Method:
    def run() -> drot.embeddings.Embedding:
        options = {"solver": "adam", "max_iter": FEW, "on_failure": "ignore"}
        return embed(Unrolled(plan, "student"), start, **options)

    def read(found: drot.embeddings.Embedding) -> Outcome:
        work = operations(plan, found, factor=False)
        return Outcome(found.value, work, passes=found.passes, products=found.products)

    return Method(f"Adam, autograd, {FEW} steps", "drot", run, read)


def torchdr(X: Tensor, plan: Tensor, start: Tensor, steps: int) -> Method:
    name = f"TorchDR, {steps} steps"
    if not present("torchdr"):
        return absent(name, "torchdr")
    import torchdr

    log_plan = (plan / len(plan)).log()

    class Given(torchdr.LogAffinity):
        """The plan that the others get, of mass 1 as TorchDR has it."""

        def _compute_log_affinity(self, X: Tensor, **kwargs) -> Tensor:
            return log_plan.clone()

    def run() -> tuple[Any, Tensor]:
        model = torchdr.TSNEkhorn(
            optimizer="Adam",
            optimizer_kwargs=None,
            lr=1.0,
            max_iter=steps,
            init=start,
            init_scaling=float(start[:, 0].std()),  # it divides by it
            process_duplicates=False,
        )
        model.affinity_in = Given()
        model.affinity_in._pre_processed = True
        model.affinity_out.zero_diag = False
        return model, model.fit_transform(X)

    def read(found: tuple[Any, Tensor]) -> Outcome:
        model, Z = found
        value = SNEkhornLoss(plan, "student").evaluate(Z.detach().to(plan)).value
        n, passes = len(plan), int(model.n_iter_) + 1
        return Outcome(value, Operations(exps=passes * n * n), passes=passes)

    return Method(name, "torchdr", run, read)
