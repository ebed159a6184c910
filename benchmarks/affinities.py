"""Symmetric entropic affinity: residual reached, work and seconds; first-order methods beside it.

    DROT_DATA=<folder of the data files> python benchmarks/affinities.py
    python benchmarks/affinities.py --part race --torchdr <python of an environment with torchdr>

Three parts. ``targets``: every data set, six perplexities, both dtypes, down to 1e-8 (float32:
1e-4). ``race``: residual against work and processor seconds for ours, for the ascent methods of
``affinities.symmetric_dual_ascent`` and for TorchDR. ``tiles``: large n, the symmetric affinity
in float32 to 1e-3 and the entropic one in float64 to 1e-9, with nothing of size n x n held.

Prediction, counted before the run. A dense pass forms three arrays: one exponential, one
division and some ten sweeps, about 15 ns an entry in float64; a product reads the three, 24
bytes, about 4 ns. The start costs 3 to 5 passes, Newton 8 to 14, its conjugate gradients 15 to
60 products. So 1e6 entries take (12 x 15 + 30 x 4) ns each, 0.3 s, and n = 5000 takes 8 s. Ascent
needs 150 to 400 evaluations on blobs, 2 to 6 s at n = 1000, and does not arrive on the real
sets. In tiles a product costs as much as a pass, distances included: 2 p = 100 operations and
one exponential, about 8 ns an entry in float32. To 1e-3 that is some 30 of them: 24 s of
processor time at n = 10 000, 96 s at n = 20 000 and 900 s at n = 60 000, in less than 1 GB. The
entropic affinity needs 7 passes of about 6 ns an entry, the distances among them: 4 s, 17 s and
150 s.

Work is passes plus products, those of the start included. ``residual`` is the largest violation
of the row sums and of the entropies; in the race it is the least so far, which flatters methods
that return their last iterate. Seconds in the race are those of all threads, distances
included. The ascent methods start at the entropic affinity, in units of its mean bandwidth;
TorchDR starts at its own constants, on points shifted and scaled as the SNEkhorn authors' script
does, by one number each, which leaves the plan as it is. Each run has a process of its own and
ends after 2000 evaluations, or 40 s of processor time (100 s at n = 5000). TorchDR is an optional
peer: it is installed in an environment of its own, and left out where none is named.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import drot
import numpy as np
import recording
import torch
from point_clouds import blobs, load
from torch import Tensor

RESULTS = Path(__file__).parent / "results"
PERPLEXITIES = (5, 10, 30, 50, 100, 300)
TOLERANCE = {"float64": 1e-8, "float32": 1e-4}
LIMIT = 60  # passes, and products, at most
DATA = ("digits", "chromatin", "expression", "scgem", "coil20", "pbmc3k", "olivetti")
DATA += ("mnist_10000", "fashion_mnist_10000")  # all their points: a quarter of an hour, 7 GB
TARGET_FIELDS = ["data", "n", "p", "dtype", "perplexity", "residual", "passes", "products"]
TARGET_FIELDS += ["n_iter", "slack", "cpu_seconds"]

RACE = ("even_1000", "blobs_1000", "blobs_2000", "scgem", "olivetti", "chromatin", "expression")
RACE += ("coil20", "digits", "blobs_5000")
RACE_XI = 30
EVALUATIONS = 2000
METHODS = ("drot", "adam 0.03", "adam 0.1", "adam 1", "lbfgs")
PEERS = ("TorchDR Adam 0.1", "TorchDR Adam 1", "TorchDR LBFGS 1")
RACE_FIELDS = ["data", "n", "p", "perplexity", "method", "work", "cpu_seconds", "residual", "ended"]

TILES = {
    "symmetric": (drot.symmetric_entropic_affinity, "float32", 1e-3),
    "entropic": (drot.entropic_affinity, "float64", 1e-9),
}
TILE_FIELDS = ["affinity", "data", "n", "p", "dtype", "block", "perplexity", "tol", "residual"]
TILE_FIELDS += ["passes", "products", "n_iter", "seconds", "cpu_seconds", "base_mb", "peak_mb"]
MEMORY_MB = 1000  # what a run in tiles may hold beyond the imports, at any n: no n x n array

# Run by an interpreter that has torchdr, and only that. Before each step of Adam the gradients
# tell the residual: those of eps are 2 eps (H - h), those of mu the errors of the row sums. For
# L-BFGS it is computed at each evaluation, on a stopped clock.
PEER = """
import json, math, sys, time, warnings
import numpy as np, torch, torchdr
from torch.optim import optimizer as hooks

path, optimizer, lr, xi, most, limit = sys.argv[1:]
lr, xi, most, limit = float(lr), float(xi), int(most), float(limit)
warnings.simplefilter("ignore")

class Stop(Exception):
    pass

def note(residual):
    seconds = time.process_time() - started
    trace.append([len(trace) + 1, seconds, residual])
    if not math.isfinite(residual):
        raise Stop("not finite")
    if residual <= 1e-8:
        raise Stop("tolerance")
    if seconds > limit or len(trace) >= most:
        raise Stop("time" if seconds > limit else "evaluations")

def evaluate(eps, mu):
    s = eps[:, None] ** 2 + eps**2
    log_p = (mu[:, None] + mu - 2 * C) / s
    p = log_p.exp()
    gap = ((p * (1 - log_p)).sum(dim=1) - np.log(xi) - 1).abs()
    return float(torch.maximum(gap, (p.sum(dim=1) - 1).abs()).max())

def before(engine, arguments, named):
    eps, mu = engine.param_groups[0]["params"]
    if optimizer == "Adam":
        gap = (eps.grad / (2 * eps)).abs().max()
        note(float(torch.maximum(gap, mu.grad.abs().max())))
        return None

    def closure():
        global started
        loss = arguments[1]()
        paused = time.process_time()
        residual = evaluate(eps.detach(), mu.detach())
        started += time.process_time() - paused
        note(residual)
        return loss

    return (arguments[0], closure), named

X, ended = torch.from_numpy(np.load(path)), "no step"
if optimizer == "LBFGS":
    C = torch.cdist(X, X, compute_mode="donot_use_mm_for_euclid_dist") ** 2
kind = torchdr.SymmetricEntropicAffinity
kind(perplexity=5, max_iter=3)(X[:50])  # imports and thread pools
hooks.register_optimizer_step_pre_hook(before)
trace, started = [], time.process_time()
try:
    kind(perplexity=xi, lr=lr, tol=1e-12, max_iter=most, optimizer=optimizer)(X)
except Stop as stop:
    ended = str(stop)
print(json.dumps([ended, trace]))
"""


def seconds_allowed(n: int) -> float:
    """Processor time of one run of the race."""
    return 40.0 if n < 5000 else 100.0


def short(x: float) -> float:
    """Three figures are enough for a residual or seconds."""
    return float(f"{x:.3g}")


def targets(data: str, dtype: str) -> None:
    """One process: all perplexities of one data set, as JSON lines."""
    X = load(data).to(getattr(torch, dtype))
    n, p = X.shape
    drot.symmetric_entropic_affinity(
        drot.sqeuclidean(X[:100]), perplexity=5, tol=1e-3
    )  # imports, threads
    for xi in (xi for xi in PERPLEXITIES if xi < n):
        started = time.process_time()
        found = drot.symmetric_entropic_affinity(
            drot.sqeuclidean(X), perplexity=xi, tol=TOLERANCE[dtype], on_failure="ignore"
        )
        seconds = short(time.process_time() - started)
        fields = [data, n, p, dtype, xi, short(found.residual), round(found.passes, 2)]
        fields += [int(found.products), found.n_iter, int(found.slack.sum()), seconds]
        print(json.dumps(fields), flush=True)


class TimeUp(Exception):
    pass


def race(data: str, method: str) -> None:
    """One process: (work, seconds, residual) of one of our methods, as JSON lines."""
    X = load(data)
    optimizer, _, rate = method.partition(" ")
    small = drot.sqeuclidean(X[:100])  # the first run imports and starts thread pools
    drot.symmetric_entropic_affinity(small, perplexity=5, tol=1e-3)
    if method != "drot":
        drot.affinities.symmetric_dual_ascent(
            small, perplexity=5, optimizer=optimizer, max_iter=3, on_failure="ignore"
        )
    trace, started = [], time.process_time()

    def note(iteration: int, residual: float) -> None:
        seconds = time.process_time() - started
        trace.append([iteration, seconds, residual])
        if seconds > seconds_allowed(len(X)):
            raise TimeUp

    common = {"tol": 1e-8, "callback": note, "on_failure": "ignore"}
    result, ended = None, "time"
    try:
        cost = drot.sqeuclidean(X)
        if method == "drot":
            result = drot.symmetric_entropic_affinity(cost, perplexity=RACE_XI, **common)
        else:
            result = drot.affinities.symmetric_dual_ascent(
                cost,
                perplexity=RACE_XI,
                optimizer=optimizer,
                learning_rate=float(rate or 1),
                max_iter=EVALUATIONS,
                **common,
            )
    except TimeUp:
        # the callback counts evaluations; the start is known from a run that is stopped at once
        start = drot.affinities.symmetric_dual_ascent(
            cost, perplexity=RACE_XI, max_iter=1, on_failure="ignore"
        )
        work = [start.work[0] + k for k in range(len(trace))]
    if result is not None:
        work = result.work
        ended = "no step" if math.isfinite(result.trace[-1]) else "not finite"
        ended = "evaluations" if result.n_iter == EVALUATIONS else ended
        ended = "tolerance" if result.converged else ended
    trace = [[w, *point[1:]] for w, point in zip(work, trace, strict=True)]
    report(data, X, method, ended, trace)


def race_peer(data: str, method: str, python: str) -> None:
    """The same for TorchDR, in its own environment."""
    X = load(data)
    _, optimizer, rate = method.split()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        np.save(path, ((X - X.mean()) / X.std()).numpy())
        command = [python, "-c", PEER, path, optimizer, rate, RACE_XI, EVALUATIONS]
        command.append(seconds_allowed(len(X)))
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{method} on {data} failed:\n{done.stderr}")
    ended, trace = json.loads(done.stdout.splitlines()[-1])
    report(data, X, method, ended, trace)


def report(data: str, X: Tensor, method: str, ended: str, trace: list[list]) -> None:
    """Print the least residual so far: the first point, then one per 20 % of work or decade."""
    n, p = X.shape
    best, kept, last = math.inf, [], None
    for k, (work, seconds, residual) in enumerate(trace):
        fell = residual < best
        decades = math.ceil(math.log10(best)) if math.isfinite(best) and best > 0 else 99
        best = min(best, residual) if math.isfinite(residual) else best
        end = k == len(trace) - 1
        crossed = fell and best > 0 and math.ceil(math.log10(best)) < decades
        if last is None or crossed or work >= 1.2 * last or end or method == "drot":
            row = [data, n, p, RACE_XI, method, round(work, 2), short(seconds), short(best)]
            kept.append([*row, ended if end else ""])
            last = work
    for row in kept or [[data, n, p, RACE_XI, method, 0, 0, math.inf, ended]]:
        print(json.dumps(row))


def tiles(kind: str, n: int, p: int, block: int, xi: int) -> None:
    """One process: large n, duals only."""
    make, dtype, tol = TILES[kind]
    X = blobs(n, p).to(getattr(torch, dtype))
    make(drot.sqeuclidean(X[:1000], block=block), 5, tol=1e-2)
    base, wall, cpu = recording.forget_peak(), time.perf_counter(), time.process_time()
    found = make(drot.sqeuclidean(X, block=block), xi, tol=tol, on_failure="ignore")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = recording.peak_mb()
    assert peak - base < MEMORY_MB, f"{peak - base:.0f} MB at n = {n}, above {MEMORY_MB} MB"
    fields = [kind, "blobs", n, p, dtype, block, xi, tol, short(found.residual)]
    fields += [round(found.passes, 2), int(getattr(found, "products", 0)), found.n_iter]
    print(json.dumps([*fields, round(wall, 1), round(cpu, 1), round(base), round(peak)]))


def apart(*arguments: object) -> list[list]:
    """Run this script in a process of its own."""
    command = [sys.executable, __file__, "--case", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))} failed:\n{done.stderr}")
    return [json.loads(text) for text in done.stdout.splitlines()]


def show(lines: list[list]) -> None:
    for line in lines:
        print("  ".join(str(part).rjust(9) for part in line), flush=True)


def write(name: str, fields: list[str], lines: list[list], *facts: str) -> None:
    with (RESULTS / name).open("w", encoding="utf8", newline="") as file:
        file.write(recording.header(*facts))
        csv.writer(file, lineterminator="\n").writerows([fields, *lines])


def recorded(name: str) -> list[list[str]]:
    """The lines of a recorded table, without comments and heads."""
    texts = (RESULTS / name).read_text("utf8").splitlines()
    return list(csv.reader(text for text in texts if not text.startswith("#")))[1:]


def present(names: Sequence[str]) -> list[str]:
    """Those whose data are here."""
    found = []
    for name in names:
        try:
            load(name)
            found.append(name)
        except OSError as problem:
            print(f"skipped {name}: {problem}")
    return found


def run_targets(names: list[str] | None) -> None:
    """Targets on the data sets named, and keep the recorded lines of the others."""
    lines = [row for row in recorded("sea_targets.csv") if names and row[0] not in names]
    kinds, sets = list(TOLERANCE), list(DATA)
    for dtype in TOLERANCE:
        for data in present(names or DATA):
            found = apart("targets", data, dtype)
            show(found)
            lines += found
            lines.sort(key=lambda line: (kinds.index(line[3]), sets.index(line[0])))  # stable
            missed = [
                line
                for line in (dict(zip(TARGET_FIELDS, line, strict=True)) for line in lines)
                if float(line["residual"]) > TOLERANCE[line["dtype"]]
                or max(float(line["passes"]), float(line["products"])) > LIMIT
            ]
            fact = f"residual above tolerance, or passes or products above {LIMIT}: "
            fact += f"{len(missed)} of {len(lines)} lines"
            then = (
                [f"recorded before: {', '.join(d for d in DATA if d not in names)}"]
                if names
                else []
            )
            write("sea_targets.csv", TARGET_FIELDS, lines, *then, fact)
    print(fact)
    for line in missed:
        print("missed:", *line.values())


def run_race(python: str | None, names: list[str] | None) -> None:
    """Race on the data sets named, and keep the recorded lines of the others."""
    lines, name = [], "sea_race.csv"
    facts = [
        f"each run ends after {EVALUATIONS} evaluations, or {seconds_allowed(0):.0f} s of "
        f"processor time ({seconds_allowed(5000):.0f} s at n = 5000)"
    ]
    if names:
        lines = [row for row in recorded(name) if row[0] not in names]
    if python:
        question = (
            "import torch, torchdr; print(torchdr.__version__, 'with torch', torch.__version__)"
        )
        answer = subprocess.run(
            [python, "-c", question], capture_output=True, text=True, check=True
        )
        facts.append(f"TorchDR {answer.stdout.strip()}")
    else:
        print("skipped TorchDR: no --torchdr names an interpreter that has it")
    for data in present(names or RACE):
        for method in METHODS + (PEERS if python else ()):
            peer = [python] if method in PEERS else []
            found = apart("race", data, method, *peer)
            show(found[-1:])
            lines += found
            lines.sort(key=lambda line: RACE.index(line[0]))  # stable: methods stay in order
            write(name, RACE_FIELDS, lines, *facts)


def run_tiles(kinds: list[str], sizes: list[int]) -> None:
    """Record these affinities of these sizes anew, and keep the other lines."""
    lines = [
        row for row in recorded("tiles.csv") if row[0] not in kinds or int(row[2]) not in sizes
    ]
    for kind in kinds:
        for n in sizes:
            found = apart("tiles", kind, n, 50, 256, 30)
            show(found)
            lines += found
            lines.sort(key=lambda line: (list(TILES).index(line[0]), int(line[2])))
            write("tiles.csv", TILE_FIELDS, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", choices=("targets", "race", "tiles"), help="only this part")
    parser.add_argument("--torchdr", help="an interpreter with torchdr 0.5, for the race")
    parser.add_argument(
        "--data", nargs="+", choices=(*RACE, *DATA), help="only these, not for tiles"
    )
    parser.add_argument(
        "--n", type=int, nargs="+", default=[10_000, 20_000, 60_000], help="sizes for tiles"
    )
    parser.add_argument(
        "--kind", nargs="+", choices=TILES, default=list(TILES), help="affinities for tiles"
    )
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    match asked.case:
        case ["targets", data, dtype]:
            targets(data, dtype)
        case ["race", data, method]:
            race(data, method)
        case ["race", data, method, python]:
            race_peer(data, method, python)
        case ["tiles", kind, *sizes]:
            tiles(kind, *map(int, sizes))
        case _:
            RESULTS.mkdir(exist_ok=True)
            if asked.part in (None, "targets"):
                run_targets(asked.data)
            if asked.part in (None, "race"):
                run_race(asked.torchdr, asked.data)
            if asked.part in (None, "tiles"):
                run_tiles(asked.kind, asked.n)


if __name__ == "__main__":
    main()
