"""What this machine can do at most, and the seconds below which a computation cannot go.

    python benchmarks/machine.py               # a table, 15 s

Three rates, measured with torch: flops of a matrix product, exponentials (powers of 2, the faster
ones) of numbers that stay in the cache, bytes of a sum of two long vectors (two read, one
written). Each is the best of several runs, for one thread and for all (which are never slower than
one), for both dtypes; on a CUDA card if there is one. A computation that must do so many of each
takes at least the longest of the three times, even if they overlap perfectly: :func:`floor`. What
the operations of a method are is said where the method is (``cases/``), and never counts more than
it must do.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

__all__ = ["Operations", "Rates", "cache_bytes", "cores", "device_name", "floor", "measure"]

_GEMM = {"cpu": 1024, "cuda": 8192}  # side of the square matrices
_CACHED = {"cpu": 2**16, "cuda": 2**24}  # numbers whose exponentials are taken, per thread
_STREAM = {"cpu": 2**24, "cuda": 2**28}  # numbers in each of three vectors, beyond any cache


@dataclass(frozen=True)
class Operations:
    """What a computation cannot do without."""

    flops: float = 0.0  # of matrix products, 2 for a multiplication and an addition
    exps: float = 0.0  # exponentials and logarithms
    bytes: float = 0.0  # to and from memory

    def __add__(self, other: Operations) -> Operations:
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Operations(*(a + b for a, b in pairs))

    def __mul__(self, times: float) -> Operations:
        return Operations(*(times * a for a in dataclasses.astuple(self)))


@dataclass(frozen=True)
class Rates:
    """Per second, of one device, dtype and number of threads."""

    device: str
    dtype: str
    threads: int
    gemm: float  # flops of a product of square matrices
    exp: float  # exponentials
    stream: float  # bytes read and written


def floor(operations: Operations, rates: Rates) -> float:
    """Seconds below which nothing can go: the longest of the three."""
    return max(
        operations.flops / rates.gemm,
        operations.exps / rates.exp,
        operations.bytes / rates.stream,
    )


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def device_name(device: str) -> str:
    """``cpu``, or the card."""
    return "cpu" if device == "cpu" else torch.cuda.get_device_name(device)


def measure(
    device: str = "cpu",
    *,
    dtypes: Iterable[str] = ("float64", "float32"),
    threads: Iterable[int] | None = None,
    seconds: float = 0.3,
) -> list[Rates]:
    """The rates of a device, for one thread and for all of them where it has threads."""
    if threads is None:
        threads = sorted({1, cores()}) if device == "cpu" else [1]
    before, found = torch.get_num_threads(), {}
    try:
        for count in sorted(threads):
            torch.set_num_threads(count)
            for dtype in dtypes:
                rates = _rates(device, dtype, count, seconds)
                found[dtype, count] = _best_of(
                    rates, [r for r in found.values() if r.dtype == dtype]
                )
    finally:
        torch.set_num_threads(before)
    return list(found.values())


def _best_of(rates: Rates, fewer: list[Rates]) -> Rates:
    """More threads may always leave some idle."""
    names = ("gemm", "exp", "stream")
    most = {name: max(getattr(r, name) for r in [rates, *fewer]) for name in names}
    return dataclasses.replace(rates, **most)


def cache_bytes(device: str) -> int:
    """Bytes of the last cache: arrays that fit need not travel to memory and back."""
    if device != "cpu":
        return torch.cuda.get_device_properties(device).L2_cache_size
    found = [2**25]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text("utf8").strip()
        if text.endswith("K") and text[:-1].isdigit():
            found.append(1024 * int(text[:-1]))
    return max(found)


def _rates(device: str, dtype: str, threads: int, seconds: float) -> Rates:
    kind = torch.device(device).type
    like = {"dtype": getattr(torch, dtype), "device": device}
    wide = torch.finfo(like["dtype"]).bits // 8
    n = _GEMM[kind]
    a, b, c = (torch.ones(n, n, **like) for _ in range(3))
    gemm = 2 * n**3 / _best(lambda: torch.mm(a, b, out=c), kind, seconds)
    parts = threads if kind == "cpu" else 1
    short = torch.linspace(-4.0, 0.0, parts * _CACHED[kind], **like)
    out = torch.empty_like(short)
    exp = len(short) / _best(lambda: torch.exp2(short, out=out), kind, seconds)
    x, y, z = (torch.ones(_STREAM[kind], **like) for _ in range(3))
    stream = 3 * wide * len(x) / _best(lambda: torch.add(x, y, out=z), kind, seconds)
    return Rates(device, dtype, threads, gemm, exp, stream)


def _best(run: Callable[[], object], kind: str, seconds: float) -> float:
    """Least seconds of one run; the first is not counted."""

    def once() -> float:
        started = time.perf_counter()
        run()
        if kind == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - started

    once()
    end, least = time.perf_counter() + seconds, once()
    while time.perf_counter() < end:
        least = min(least, once())
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.parse_args()
    found = measure()
    if torch.cuda.is_available():
        found += measure("cuda")
    print("device  dtype    threads  Gflop/s  Gexp/s  GB/s")
    for r in found:
        numbers = f"{r.gemm / 1e9:8.1f}  {r.exp / 1e9:6.3f}  {r.stream / 1e9:4.0f}"
        print(f"{r.device:6}  {r.dtype:7}  {r.threads:7d} {numbers}")


if __name__ == "__main__":
    main()
