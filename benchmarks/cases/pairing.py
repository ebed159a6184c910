"""Methods on one problem, in turn and in one process: time, work, memory, and what was reached.

A method has a part that is timed, from the points to its result, and a part that is not, which
reads off what it did. Methods alternate, so that a busy minute of the machine falls on all; each
runs ``REPEATS`` times unless one run takes long, and the median counts. Where a run was looked at
on its way, each look is a row of its own, of the median run.
"""

from __future__ import annotations

import gc
import importlib.metadata
import math
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from machine import Operations, Rates, device_name, floor
from recording import forget_peak, peak_mb

__all__ = ["FIELDS", "Method", "Outcome", "Problem", "absent", "compare", "present"]

FIELDS = ["case", "data", "n", "p", "dtype", "device", "threads", "method", "seconds", "spread"]
FIELDS += ["repeats", "cpu_seconds", "steps", "passes", "products", "reached", "quantity"]
FIELDS += ["base_rss_mb", "peak_rss_mb", "peak_gpu_mb", "floor_s", "ratio", "version", "date"]
FIELDS += ["note"]
REPEATS = 3
LONG = 5.0  # seconds; a run beyond is not repeated


@dataclass(frozen=True)
class Outcome:
    """What a run did, as far as its method tells."""

    reached: float
    operations: Operations | None = None  # at least; None where nobody counts them
    passes: float | None = None
    products: float | None = None
    steps: int | None = None
    way: Sequence[tuple[int, float, float]] = ()  # steps, seconds, reached
    note: str = ""


@dataclass(frozen=True)
class Method:
    """One way to solve a problem."""

    name: str
    software: str  # whose version is recorded
    run: Callable[[], Any] | None = None  # timed; None where the software is not here
    read: Callable[[Any], Outcome] | None = None  # not timed


@dataclass(frozen=True)
class Problem:
    """What the methods of a case solve."""

    data: str
    n: int
    p: int
    dtype: str
    device: str
    quantity: str  # what ``reached`` is
    methods: list[Method] = field(default_factory=list)


def present(software: str) -> bool:
    """Whether a distribution is installed."""
    try:
        importlib.metadata.version(software)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def absent(name: str, software: str) -> Method:
    """A peer that is not here: its row says so."""
    return Method(name, software)


def compare(problem: Problem, rates: Rates, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """Rows of all methods: ``FIELDS`` without the case, the threads and the date."""
    runs: dict[str, list[_Run]] = {method.name: [] for method in problem.methods}
    problems: dict[str, str] = {}
    gc.collect()
    gc.freeze()  # what is there already is not looked at again
    for _ in range(repeats):
        for method in problem.methods:
            done = runs[method.name]
            if method.run is None or method.name in problems or (done and done[-1].wall > LONG):
                continue
            try:
                done.append(_timed(method, problem.device))
            except Exception as error:  # one method that fails does not stop the others
                problems[method.name] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    gc.unfreeze()
    rows = []
    for method in problem.methods:
        row = {
            "data": problem.data,
            "n": problem.n,
            "p": problem.p,
            "dtype": problem.dtype,
            "device": device_name(problem.device),
            "method": method.name,
            "quantity": problem.quantity,
            "version": f"{method.software} {_version(method.software)}".strip(),
            "note": "absent" if method.run is None else problems.get(method.name, ""),
        }
        done = sorted(runs[method.name], key=lambda run: run.wall)
        middle = done[(len(done) - 1) // 2].outcome if done else Outcome(math.nan)
        row["note"] = row["note"] or middle.note
        for steps, seconds, reached in middle.way:
            rows.append(
                row | {"steps": steps, "seconds": _short(seconds), "reached": _six(reached)}
            )
        rows.append(row | _numbers(done, middle, rates))
    return rows


@dataclass(frozen=True)
class _Run:
    wall: float
    cpu: float
    base_mb: float
    peak_mb: float
    gpu_mb: float | None
    outcome: Outcome


def _timed(method: Method, device: str) -> _Run:
    on_card = device != "cpu"
    gc.collect()
    if on_card:
        torch.cuda.empty_cache()
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    base = forget_peak()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers divide by zero, and say what they will change
        wall, cpu = time.perf_counter(), time.process_time()
        found = method.run()
        if on_card:
            torch.cuda.synchronize(device)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = max(base, peak_mb())  # Linux counts pages in batches, and can forget some
        gpu = torch.cuda.max_memory_allocated(device) / 1e6 if on_card else None
        outcome = method.read(found)
    return _Run(wall, cpu, base, peak, gpu, outcome)


def _numbers(runs: list[_Run], outcome: Outcome, rates: Rates) -> dict[str, Any]:
    if not runs:
        return {}
    walls = [run.wall for run in runs]
    seconds = statistics.median(walls)
    least = None if outcome.operations is None else floor(outcome.operations, rates)
    gpu = runs[0].gpu_mb
    return {
        "seconds": _short(seconds),
        "spread": _short(max(walls) - min(walls)),
        "repeats": len(runs),
        "cpu_seconds": _short(statistics.median(run.cpu for run in runs)),
        "steps": outcome.steps,
        "passes": None if outcome.passes is None else round(outcome.passes, 2),
        "products": outcome.products,
        "reached": _six(outcome.reached),
        "base_rss_mb": round(runs[0].base_mb),
        "peak_rss_mb": round(max(run.peak_mb for run in runs)),
        "peak_gpu_mb": None if gpu is None else round(gpu),
        "floor_s": None if least is None else _short(least),
        "ratio": None if not least else _short(seconds / least),
    }


def _short(x: float) -> float:
    return x if not math.isfinite(x) else float(f"{x:.4g}")


def _six(x: float) -> float:
    return float(f"{x:.6g}")


def _version(software: str) -> str:
    try:
        return importlib.metadata.version(software)
    except importlib.metadata.PackageNotFoundError:
        return ""
