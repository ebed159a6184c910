"""Entropic affinity: passes over the n x n array, seconds, peak memory; peers beside it.

    python benchmarks/entropic_affinity.py                    # all of it, minutes
    python benchmarks/entropic_affinity.py --large --n 20000  # only tiles, no plan formed

Prediction, counted before the run. A pass evaluates log Z and three moments of every row: one
exponential and about eight sweeps over a tile that stays in cache. Cost per entry and pass on two
cores: about 2 ns for the exponential and 2 ns for the sweeps. A third-order step from a fair
start needs 5 to 8 passes to 1e-9, where a bisection from beta = 1 needs 17 to 1e-5, 27 to 1e-8
and more when the data are far from unit scale. Distances cost one more pass, of 2 p flops an
entry (0.7 s at n = 20 000, p = 50). In all about 4e8 entries x 7 passes x 4 ns = 11 s, or 22 s
of processor time, at n = 20 000, and 25 times that at n = 100 000. Memory beyond the points: a
few tiles of 2 MB.

Every line of the tables is the best of two runs, distances included; each method has a process
of its own. ``cpu_seconds`` adds up all threads: it is the column to compare when the machine is
shared. The diagonal is dropped, as the peers do. ``error`` is the largest
|log perplexity - log xi| of the rows returned, recomputed in float64. Peers do not report
passes: theirs are counted by replaying the bisection that both document (start at beta = 1,
double or halve until bracketed, then halve) down to their tolerance, 1e-5 for scikit-learn
(float32 distances) and 1e-8 for openTSNE (as asked here). Both get all other points as
neighbours and return the plan; ours returns the duals, from which a plan costs one pass more.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import drot
import numpy as np
import recording
import torch
from torch import Tensor

RESULTS = Path(__file__).parent / "results"
PERPLEXITIES = (5, 10, 30, 50, 100, 300)
METHODS = ("drot dense", "drot tiles", "scikit-learn", "openTSNE")
SMALL = ("digits", "chromatin", "scgem", "coil20", "pbmc3k")
FIELDS = ["data", "n", "p", "method", "perplexity", "passes", "seconds", "cpu_seconds", "base_mb"]
FIELDS += ["peak_mb", "error"]
LIMIT_MB = 2000  # what a run without the plan may hold in all


def load(name: str) -> Tensor:
    """Points (n, p) in float64; OSError where a data file is absent."""
    match name:
        case "digits":
            return drot.datasets.digits().X
        case "chromatin":
            return drot.datasets.load_snareseq(modality="chromatin", download=False).X
        case "scgem":
            return drot.datasets.load_scgem(download=False).X
        case "coil20":
            return drot.datasets.load_coil20(download=False).X
        case "pbmc3k":
            return drot.datasets.load_pbmc3k(download=False).X
    raise ValueError(f"no data set {name!r}; there are {', '.join(SMALL)}")


def blobs(n: int, p: int) -> Tensor:
    """Ten clusters whose spreads differ by a factor of ten."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=4.0, size=(10, p))
    which = rng.integers(10, size=n)
    return torch.from_numpy(centres[which] + rng.normal(size=(n, p)) * (0.2 + 0.2 * which)[:, None])


def error(plan: np.ndarray, xi: float) -> float:
    """Largest error on the log perplexity of a row."""
    plan = torch.as_tensor(plan, dtype=torch.float64)
    plan = plan / plan.sum(dim=1, keepdim=True)
    return float((-torch.xlogy(plan, plan).sum(dim=1) - np.log(xi)).abs().max())


def bisection_passes(sq: Tensor, xi: float, tol: float, most: int) -> float:
    """Row evaluations, over n, of the bisection on beta = 1 / eps that t-SNE software uses."""
    n = len(sq)
    beta, low = sq.new_ones(n), sq.new_zeros(n)
    high = sq.new_full((n,), torch.inf)
    active, work = torch.arange(n), 0
    for _ in range(most):
        e = sq[active] * beta[active, None]
        e -= e.amin(dim=1, keepdim=True)
        w = torch.exp(-e)
        z = w.sum(dim=1)
        gap = z.log() + w.mul_(e.clamp_max_(1e3)).sum(dim=1) / z - np.log(xi)
        work += len(active)
        left = ~(gap.abs() <= tol)
        active, gap = active[left], gap[left]
        if not len(active):
            break
        b = beta[active]
        low[active] = torch.where(gap > 0, b, low[active])
        high[active] = torch.where(gap > 0, high[active], b)
        beta[active] = torch.where(high[active].isinf(), 2 * b, (low[active] + high[active]) / 2)
    return work / n


def without_diagonal(square: Tensor) -> Tensor:
    n = len(square)
    return square.flatten()[1:].view(n - 1, n + 1)[:, :-1].reshape(n, n - 1)


def solver(method: str, X: Tensor, xi: int) -> Callable[[], tuple]:
    """A run from points to (passes or None, error or plan)."""

    def ours(block: int | None) -> tuple:
        cost = drot.sqeuclidean(X, block=block)
        result = drot.entropic_affinity(cost, xi, diagonal="drop")
        return result.passes, result.residual

    def sklearn() -> tuple:
        from sklearn.manifold._utils import _binary_search_perplexity
        from sklearn.metrics import pairwise_distances

        sq = pairwise_distances(X.numpy(), metric="euclidean", squared=True)
        return None, _binary_search_perplexity(sq.astype(np.float32), float(xi), 0)

    def opentsne() -> tuple:
        from openTSNE._tsne import compute_gaussian_perplexity
        from sklearn.metrics import pairwise_distances

        distances = torch.from_numpy(pairwise_distances(X.numpy()))
        return None, compute_gaussian_perplexity(
            without_diagonal(distances).numpy(),
            np.array([float(xi)]),
            perplexity_tol=1e-8,
            max_iter=200,
            num_threads=torch.get_num_threads(),
        )

    runs = {"drot dense": lambda: ours(None), "drot tiles": lambda: ours(256)}
    return (runs | {"scikit-learn": sklearn, "openTSNE": opentsne})[method]


def timed(run: Callable[[], object]) -> tuple[object, float, float]:
    """What a run returns, its seconds, and the seconds of all its threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = run()
    return outcome, time.perf_counter() - wall, time.process_time() - cpu


def small(data: str, method: str) -> None:
    """One process: all perplexities of one method on one data set, as JSON lines."""
    X = load(data)
    solver(method, X[:100], 5)()  # imports and thread pools
    base = recording.peak_mb()
    lines = []
    for xi in (xi for xi in PERPLEXITIES if xi < len(X) - 1):
        run = solver(method, X, xi)
        (passes, outcome), *first = timed(run)
        _, *second = timed(run)
        fastest = [round(min(pair), 3) for pair in zip(first, second, strict=True)]
        outcome = outcome if isinstance(outcome, float) else np.asarray(outcome)
        lines.append([xi, passes, fastest, outcome])
    peak = recording.peak_mb()
    if method not in ("drot dense", "drot tiles"):  # after the memory is read
        tol, most = (1e-5, 100) if method == "scikit-learn" else (1e-8, 200)
        sq = without_diagonal(drot.sqeuclidean(X).dense())
        for line in lines:
            line[1] = bisection_passes(sq, line[0], tol, most)
            line[3] = error(line[3], line[0])
    n, p = X.shape
    for xi, passes, seconds, gap in lines:
        fields = [data, n, p, method, xi, round(passes, 2), *seconds]
        print(json.dumps([*fields, round(base), round(peak), f"{gap:.1e}"]))


def large(n: int, p: int, block: int, xi: int, dtype: str) -> None:
    """One process: duals only, through tiles."""
    X = blobs(n, p).to(getattr(torch, dtype))
    drot.entropic_affinity(drot.sqeuclidean(X[:1000], block=block), 5)
    base = recording.peak_mb()
    result, *seconds = timed(lambda: drot.entropic_affinity(drot.sqeuclidean(X, block=block), xi))
    peak = recording.peak_mb()
    assert peak < LIMIT_MB, f"peak memory {peak:.0f} MB at n = {n}, above {LIMIT_MB} MB"
    fields = [f"blobs {dtype}", n, p, f"drot tiles of {block}", xi, round(result.passes, 2)]
    fields += [round(part, 2) for part in seconds]
    print(json.dumps([*fields, round(base), round(peak), f"{result.residual:.1e}"]))


def apart(*arguments: object) -> list[list]:
    """Run this script in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--case", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))} failed:\n{done.stderr}")
    return [json.loads(text) for text in done.stdout.splitlines()]


def show(lines: list[list]) -> None:
    for line in lines:
        print("  ".join(str(part).rjust(8) for part in line), flush=True)


def write(name: str, lines: list[list], *facts: str) -> None:
    with (RESULTS / name).open("w", encoding="utf8", newline="") as file:
        file.write(recording.header(*facts))
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *lines])
    print(f"wrote {name}")


def run_small() -> None:
    import openTSNE
    import sklearn

    lines = []
    for data in SMALL:
        try:
            load(data)
        except OSError as problem:
            print(f"skipped {data}: {problem}")
            continue
        for method in METHODS:
            found = apart("small", data, method)
            show(found)
            lines += found
    peers = f"scikit-learn {sklearn.__version__}, openTSNE {openTSNE.__version__}"
    write("entropic_affinity.csv", lines, peers)


def run_large(sizes: list[int], p: int, block: int, xi: int, dtype: str) -> None:
    lines = [line for n in sizes for line in apart("large", n, p, block, xi, dtype)]
    show(lines)
    last = dict(zip(FIELDS, lines[-1], strict=True))
    n, seconds, passes, peak = (last[key] for key in ("n", "cpu_seconds", "passes", "peak_mb"))
    print(f"passes {passes}, peak {peak} MB < {LIMIT_MB} MB (asserted), no plan formed")
    facts = []
    if n < 100_000:
        guess = seconds * (1e5 / n) ** 2
        facts = [f"extrapolated from n = {n} by cpu_seconds ~ n^2: {guess:.0f} s at n = 100000"]
        print(*facts)
    write("entropic_affinity_large.csv", lines, *facts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--n", type=int, nargs="+", default=[20_000, 40_000], help="sizes for tiles"
    )
    parser.add_argument("--p", type=int, default=50)
    parser.add_argument("--block", type=int, default=256, help="rows of a tile")
    parser.add_argument("--perplexity", type=int, default=30)
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--large", action="store_true", help="only the runs in tiles")
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)  # peers divide by zero on some data
    match asked.case:
        case ["small", data, method]:
            small(data, method)
        case ["large", n, p, block, xi, dtype]:
            large(int(n), int(p), int(block), int(xi), dtype)
        case _:
            RESULTS.mkdir(exist_ok=True)
            if not asked.large:
                run_small()
            run_large(asked.n, asked.p, asked.block, asked.perplexity, asked.dtype)


if __name__ == "__main__":
    main()
