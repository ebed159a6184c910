"""Doubly stochastic affinity: Sinkhorn iterations at two dampings, and POT's beside them.

    python benchmarks/doubly_stochastic.py

For each data set and average perplexity, ``drot`` finds the bandwidth nu once. Then every method
starts from nothing at that nu and runs until all row sums and column sums are within 1e-9 of 1.
An iteration of ``drot`` is one pass over the n x n array; one of POT, which scales rows and columns
in turn and makes no use of symmetry, is two.

Prediction, from the eigenvalues l of the plan (book thm-sinkhorn-rate): near the solution the
damped iteration multiplies the error by max |1 - theta (1 + l)|, at most 1/2 for theta = 1/2 and
1/3 for theta = 2/3, so 9 / log10(2) = 30 and 9 / log10(3) = 19 iterations and a few more to come
near. Alternating scaling multiplies it by the square of the second eigenvalue, which is close to 1
when the data have clusters: hundreds of iterations at small perplexity, few at large. The column
``rate`` is the predicted factor, ``predicted`` is log(1e-9) / log(rate).
"""

from __future__ import annotations

import csv
import math
import time
import warnings
from pathlib import Path

import drot
import numpy as np
import ot
import recording
import torch
from torch import Tensor

OUT = Path(__file__).parent / "results" / "doubly_stochastic.csv"
PERPLEXITIES = (5, 30, 300)
TOL = 1e-9
STEP = 10  # iterations of POT between two looks at its residual, as POT itself does
MOST = 500  # iterations of POT at most; a line that stops there shows the residual it left
FIELDS = ["data", "n", "perplexity", "nu", "method", "rate", "predicted", "iterations", "passes"]
FIELDS += ["cpu_seconds", "residual"]


def clouds() -> list[tuple[str, Tensor]]:
    """Points by name; a real data set whose file is absent is left out with a word."""
    found = [("digits", drot.datasets.digits().X)]
    for name, load in (
        ("chromatin", lambda: drot.datasets.load("snareseq_chromatin", download=False)),
        ("coil20", lambda: drot.datasets.load("coil20", download=False)),
    ):
        try:
            found.append((name, load().X))
        except OSError as problem:
            print(f"skipped {name}: {problem}")
    return found


def pot_iterations(C: np.ndarray, nu: float) -> tuple[int, float]:
    """Iterations that ``ot.sinkhorn`` needs, a multiple of STEP, and the residual they leave."""
    n = len(C)
    weights, start, residual = np.full(n, 1 / n), None, math.inf
    for k in range(STEP, MOST + 1, STEP):
        plan, log = ot.sinkhorn(
            weights,
            weights,
            C,
            nu,
            numItermax=STEP,
            stopThr=0,
            warmstart=start,
            log=True,
            warn=False,
        )
        residual = max(np.abs(n * plan.sum(axis) - 1).max() for axis in (0, 1))
        if residual <= TOL or not math.isfinite(residual):
            return k, residual
        start = (np.log(log["u"]), np.log(log["v"]))
    return MOST, residual


def timed(run) -> float:
    """Seconds of a run, all threads added up, so that a shared machine changes little."""
    start = time.process_time()
    run()
    return time.process_time() - start


def measure(data: str, X: Tensor, xi: int):
    """Lines of one data set and one perplexity."""
    cost = drot.sqeuclidean(X)
    C = cost.dense()
    n = len(C)
    exact = drot.doubly_stochastic_affinity(cost, perplexity=xi, tol=1e-8, max_iter=5000)
    nu = exact.nu
    spectrum = torch.linalg.eigvalsh(exact.plan)[:-1]  # without the eigenvalue 1 of the constants

    def line(method, rate, iterations, passes, seconds, residual):
        predicted = math.inf if rate >= 1 else math.log(TOL) / math.log(rate)
        fields = [data, n, xi, f"{nu:.6g}", method, f"{rate:.4f}", f"{predicted:.3g}"]
        return [*fields, iterations, passes, f"{seconds:.2f}", f"{residual:.1e}"]

    for theta in (1 / 2, 2 / 3):
        runs = []
        seconds = timed(
            lambda theta=theta, runs=runs: runs.append(
                drot.doubly_stochastic_affinity(cost, bandwidth=nu, damping=theta, tol=TOL)
            )
        )
        rate = max(abs(1 - 2 * theta), float((1 - theta * (1 + spectrum)).abs().max()))
        name = f"drot, damping {'1/2' if theta == 1 / 2 else '2/3'}"
        found = runs[0]
        yield line(name, rate, found.n_iter, found.passes, seconds, found.residual)
    weights, matrix = np.full(n, 1 / n), C.numpy()
    k, residual = pot_iterations(matrix, nu)
    rate = float(spectrum[-1]) ** 2
    for method in ("sinkhorn_log", "sinkhorn"):
        seconds = timed(
            lambda method=method: ot.sinkhorn(
                weights, weights, matrix, nu, method=method, numItermax=k, stopThr=0, warn=False
            )
        )
        yield line(f"POT {method}", rate, k, 2 * k, seconds, residual)


def main() -> None:
    warnings.simplefilter("ignore", RuntimeWarning)  # POT divides by zero where it underflows
    lines = []
    for data, X in clouds():
        for xi in PERPLEXITIES:
            for line in measure(data, X, xi):
                print("  ".join(str(part).rjust(8) for part in line), flush=True)
                lines.append(line)
    OUT.parent.mkdir(exist_ok=True)
    with OUT.open("w", encoding="utf8", newline="") as file:
        file.write(recording.header(f"POT {ot.__version__}"))
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *lines])
    print(f"wrote {OUT.name}")


if __name__ == "__main__":
    main()
