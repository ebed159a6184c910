"""Every comparison with the peers: ``make bench``.

    python benchmarks/bench.py                              # this machine's CPU, and its GPU
    python benchmarks/bench.py --device cuda --out DIR      # only the GPU, into DIR
    python benchmarks/bench.py --device cuda --minutes 6    # in parts: it says how to go on
    python benchmarks/bench.py --cases ea sea               # these again; the other rows stay
    python benchmarks/bench.py --small                      # the smallest problem of each, a minute
    python benchmarks/bench.py --cases race --large --cap 900   # the race at n = 10 000 too

The cases are in ``cases/``: entropic affinity, symmetric entropic affinity, t-SNEkhorn, a race of
t-SNE and UMAP, semi-relaxed Gromov-Wasserstein, one thread against the default, and new points into
a fitted map. Ours and the peers run in turn in one process for each problem, on all cores: where
that is the default, the package takes fewer for what is small. Two files are written, with
``_cuda`` in their names on a GPU: ``bench.csv``, and ``machine.csv`` (the rates behind the floors).

``seconds`` is the median of ``repeats`` runs, ``spread`` the longest minus the shortest, and
``cpu_seconds`` adds up all threads. ``floor_s`` is the time below which the passes and products
that a run made cannot go on this machine (``machine.py``), ``ratio`` the seconds over it: how far
the code is from its machine, where ``passes`` and ``products`` say how good the method is.
``peak_rss_mb`` is the largest memory during the run, of which ``base_rss_mb`` was there before.
A process that takes longer than the cap is stopped, and larger ones of its kind are not started.

Prediction for two quiet cores: machine 10 s; ea 1 minute; sea 2; tsnekhorn 2; race 6; srgw 1;
threads 2; transform 1: 15 minutes.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import datetime
import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import machine
import recording
import torch
from cases import CASES, case
from cases.pairing import FIELDS, REPEATS, compare

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"
CAP = {"cpu": 150, "cuda": 1200}  # seconds of one process


@dataclasses.dataclass(frozen=True)
class Job:
    """One problem of one case."""

    case: str
    setting: dict[str, Any]
    device: str
    threads: int
    repeats: int
    small: bool

    @property
    def family(self) -> tuple:
        """Jobs that differ in n only."""
        rest = sorted((key, str(v)) for key, v in self.setting.items() if key != "data")
        return self.case, re.sub(r"_\d+$", "", self.setting["data"]), *rest

    @property
    def points(self) -> int:
        """As the setting has it; 0 where the data set says it."""
        size = re.search(r"_(\d+)$", self.setting["data"])
        return self.setting.get("n", int(size[1]) if size else 0)


def rows_of(job: Job, rates: list[machine.Rates]) -> list[dict[str, Any]]:
    """Solve the problem with all methods, after a small one that imports and warms up."""
    torch.set_num_threads(job.threads)
    module = case(job.case)
    if not job.small:
        same = {key: job.setting[key] for key in ("methods", "dtype") if key in job.setting}
        kind = {key: job.setting[key] for key in ("kind", "method") if key in job.setting}
        small = next(s for s in module.SETTINGS["small"] if kind.items() <= s.items())
        problem = module.problem(**small, **same, device=job.device)
        compare(problem, rates[0], repeats=1)
    problem = module.problem(**job.setting, device=job.device)
    (fitting,) = (r for r in rates if r.dtype == problem.dtype and r.threads == job.threads)
    shown = {"case": job.case, "threads": job.threads, "date": str(datetime.date.today())}
    return [shown | row for row in compare(problem, fitting, job.repeats)]


def apart(job: Job, rates: list[machine.Rates], cap: float) -> list[dict[str, Any]]:
    """The rows, from a process of their own; one row that says why, where it gave none."""
    order = {"job": dataclasses.asdict(job), "rates": [dataclasses.asdict(r) for r in rates]}
    every = job.threads == machine.cores()  # the default: nobody has asked for it
    env = os.environ | ({} if every else {"OMP_NUM_THREADS": str(job.threads)})
    command = [sys.executable, __file__, "--one"]
    try:
        done = subprocess.run(
            command, input=json.dumps(order), capture_output=True, text=True, env=env, timeout=cap
        )
    except subprocess.TimeoutExpired:
        return [empty(job, f"stopped after {cap:.0f} s")]
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return [empty(job, "data absent" if "not on this machine" in last else last[:300])]
    return json.loads(done.stdout.splitlines()[-1])


def empty(job: Job, note: str) -> dict[str, Any]:
    named = {"data": job.setting["data"], "method": job.setting.get("method", "all")}
    today = str(datetime.date.today())
    device = machine.device_name(job.device)
    rest = {"device": device, "threads": job.threads, "date": today, "note": note}
    return {"case": job.case, "n": job.points or "", **named, **rest}


def write(path: Path, fields: list[str], rows: list[dict[str, Any]], *facts: str) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf8", newline="") as file:
        file.write(recording.header(*facts))
        writer = csv.DictWriter(file, fields, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = path.read_text("utf8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def show(row: dict[str, Any]) -> None:
    names = ("case", "data", "method", "seconds", "passes", "products", "reached", "ratio", "note")
    parts = [str(row.get(name) if row.get(name) is not None else "") for name in names]
    widths = (10, 24, 28, 9, 8, 8, 12, 7, 0)
    print("  ".join(p.ljust(w) for p, w in zip(parts, widths, strict=True)).rstrip(), flush=True)


def bench(device: str, asked: argparse.Namespace) -> None:
    """All cases on one device."""
    kind = "cpu" if device == "cpu" else "cuda"
    started, threads = time.perf_counter(), asked.threads or machine.cores()
    cap, tail = asked.cap or CAP[kind], "" if device == "cpu" else f"_{kind}"
    facts = [] if device == "cpu" else [f"card {machine.device_name(device)}"]
    dtypes, counts = ("float64", "float32"), {1, threads} if device == "cpu" else {threads}
    seconds = 0.05 if asked.small else 0.3
    rates = machine.measure(device, dtypes=dtypes, threads=counts, seconds=seconds)
    columns = [field.name for field in dataclasses.fields(machine.Rates)]
    asked.out.mkdir(parents=True, exist_ok=True)
    listed = [dataclasses.asdict(r) for r in rates]
    write(asked.out / f"machine{tail}.csv", columns, listed, *facts)
    asked_for = [name for name in CASES if name in asked.cases]
    sizes = [
        "small" if asked.small else kind,
        *(["large"] if asked.large and kind == "cpu" else []),
    ]
    jobs = [
        Job(name, setting, device, threads, asked.repeats, asked.small)
        for name in asked_for
        for size in sizes
        for setting in case(name).SETTINGS.get(size, [])
    ]
    jobs = [job for job in jobs if not asked.most or job.points <= asked.most]
    path = asked.out / f"bench{tail}.csv"
    there = [row for row in read(path) if asked.skip or row["case"] not in asked_for]
    over: dict[tuple, int] = {}
    for number, job in list(enumerate(jobs))[asked.skip :]:
        if time.perf_counter() - started > 60 * asked.minutes:
            print(f"{len(jobs) - number} problems are left: go on with --skip {number}")
            return
        if job.family in over:
            found = [empty(job, f"not run: n = {over[job.family]} took too long")]
        else:
            found = apart(job, rates, cap)
        if found[0].get("note", "").startswith("stopped"):
            over[job.family] = job.points
        for row in found:
            show(row)
        there += found
        there.sort(key=lambda row: list(CASES).index(row["case"]))
        write(path, FIELDS, there, *facts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="auto", help="auto (CPU, and GPU if any), cpu or cuda")
    parser.add_argument("--out", type=Path, help="folder of the CSV files")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--small", action="store_true", help="the smallest problem of each case")
    parser.add_argument("--large", action="store_true", help="and the largest, on the CPU")
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--most", type=int, metavar="N", help="leave larger problems out")
    parser.add_argument("--cap", type=float, metavar="SECONDS", help=f"of a process: {CAP}")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no problem begins later")
    parser.add_argument("--skip", type=int, default=0, metavar="K", help="the first K problems")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        order = json.load(sys.stdin)
        rates = [machine.Rates(**r) for r in order["rates"]]
        print(json.dumps(rows_of(Job(**order["job"]), rates)))
        return
    asked.out = asked.out or (ROOT / "_build" / "bench_small" if asked.small else RESULTS)
    started = time.perf_counter()
    devices = [asked.device]
    if asked.device == "auto":
        devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for device in devices:
        bench(device, asked)
    print(f"wrote into {asked.out}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
