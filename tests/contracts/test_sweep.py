"""A grid that was killed, torn or run elsewhere leaves the file of a grid that was not."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
CASES = [
    {"data": data, "xi": xi, "seed": seed} for data in "ab" for xi in (5, 30) for seed in (0, 1)
]
FIELDS = ["value", "note"]

# A grid in a process of its own. Each case leaves a mark, so that what ran twice can be seen.
PROGRAM = f"""
import functools, sys, time
from pathlib import Path
sys.path.insert(0, {str(BENCHMARKS)!r})
import sweep

marks, path, pause, jobs = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])

@functools.cache
def load(xi):
    return xi / 7

def work(data, xi, seed):
    (marks / f"{{data}}{{xi}}{{seed}}").open("a").write("x")
    time.sleep(pause)
    return {{"value": load(xi) + seed, "note": f"{{data}}, {{seed}}"}}

if __name__ == "__main__":
    print(sweep.run({CASES}, work, path, fields={FIELDS}, facts="# a fact\\n", n_jobs=jobs))
"""


def work(data: str, xi: int, seed: int) -> dict:
    return {"value": xi / 7 + seed, "note": f"{data}, {seed}"}


def expected(fact: str = "") -> str:
    lines = [fact, "data,xi,seed,value,note,error\n"]
    for case in CASES:
        values = work(**case)
        line = [*map(str, case.values()), str(values["value"]), f'"{values["note"]}"', ""]
        lines.append(",".join(line) + "\n")
    return "".join(lines)


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "grid.csv"


@pytest.fixture
def sweep(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("sweep")


@pytest.fixture
def run(sweep, path):
    """The grid, or a part of it, here."""
    return lambda cases=CASES, work=work, **options: sweep.run(
        cases, work, path, **{"fields": FIELDS} | options
    )


def start(path: Path, pause: float, jobs: int = 1, rows: int = 0) -> subprocess.Popen:
    """The grid in a process of its own, which has written some rows."""
    program = path.with_name("program.py")
    program.write_text(PROGRAM, encoding="utf8")
    command = [sys.executable, program, path.with_name("marks"), path, pause, jobs]
    process = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while rows and (not path.exists() or path.read_bytes().count(b"\n") < 2 + rows):
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.01)
    return process


@pytest.mark.parametrize(
    ("sign", "code", "jobs"),
    [
        (signal.SIGKILL, -signal.SIGKILL, 2),
        (signal.SIGTERM, 128 + signal.SIGTERM, 1),
    ],
)
def test_a_run_that_was_ended_goes_on_where_it_was(path, sign, code, jobs):
    """The same bytes as an uninterrupted run, and no finished case is computed twice."""
    first = start(path, 0.5, jobs, rows=3)  # the signal has seconds to come
    first.send_signal(sign)
    assert first.wait(timeout=60) == code
    kept = path.read_text("utf8").splitlines()[2:]
    assert 3 <= len(kept) < len(CASES)
    again = start(path, 0)  # workers that outlive who was killed hold no lock
    out, err = again.communicate(timeout=60)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=60)
    assert again.returncode == 0, err
    assert f"done={len(CASES) - len(kept)}, there={len(kept)}, failed=0" in out
    assert path.read_text("utf8") == expected("# a fact\n")
    for line in kept:
        mark = "".join(line.split(",")[:3])
        assert (path.with_name("marks") / mark).read_text() == "x", f"{mark} ran twice"


def test_two_sweeps_on_one_file_are_refused(sweep, run, path):
    first = start(path, 0.3, rows=1)
    with pytest.raises(sweep.Busy, match="another sweep is writing"):
        run()
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0 and "done=8" in out, err
    assert path.read_text("utf8") == expected("# a fact\n")
    assert run() == (0, len(CASES), 0)


@pytest.mark.parametrize("cut", [1, 45])
def test_a_torn_last_line_is_dropped(run, path, cut):
    """A line without its end was cut short, however whole it looks; so was a short head."""
    run(facts="# a fact\n")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    lost = whole[-cut:].count(b"\n")
    assert run() == (lost, len(CASES) - lost, 0)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:20])  # the comment, and a part of the columns
    run(facts="# a fact\n")
    assert path.read_bytes() == whole


def test_a_case_that_raises_is_recorded_and_tried_again(run, path):
    def broken(data: str, xi: int, seed: int) -> dict:
        if xi == 30 and seed == 1:
            raise ArithmeticError("no step,\nat all")
        return work(data, xi, seed)

    assert run(work=broken) == (6, 0, 2)
    lines = path.read_text("utf8").splitlines()
    assert lines[4] == 'a,30,1,,,"ArithmeticError: no step, at all"'
    assert run(work=broken) == (0, 6, 2)
    assert len(path.read_text("utf8").splitlines()) == 1 + len(CASES)
    assert run() == (2, 6, 0)
    assert path.read_text("utf8") == expected()


def test_rows_can_be_placed_and_old_ones_stay(run, path):
    run(CASES[:4])
    run(CASES[4:], place=lambda row: (-int(row["seed"]), row["data"], int(row["xi"])))
    keys = [line.split(",")[:3] for line in path.read_text("utf8").splitlines()[1:]]
    wanted = sorted(CASES, key=lambda case: (-case["seed"], case["data"], case["xi"]))
    assert keys == [[str(part) for part in case.values()] for case in wanted]


def test_cases_must_be_told_apart(run, path):
    with pytest.raises(ValueError, match="written alike"):
        run([{"a": 1}, {"a": "1"}])
    assert not path.exists()
    run()
    with pytest.raises(ValueError, match="move the file away"):
        run(fields=["value"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_dask_cluster_gives_the_same_rows(run, path):
    """By the address of a scheduler, as a cluster is reached."""
    from distributed import LocalCluster

    threads = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with LocalCluster(**threads, dashboard_address=None) as cluster:
        there = partial(run, scheduler=cluster.scheduler_address)
        assert there(CASES[:3]) == (3, 0, 0)
        assert there() == (len(CASES) - 3, 3, 0)
    assert path.read_text("utf8") == expected()


@pytest.mark.parametrize("name", ["graph_coupling_tables", "table3_scores"])
def test_recorded_grids_stand_as_they_are(sweep, path, monkeypatch, name):
    """The scripts find all of their cases in their files, and leave them to the bit."""
    script = importlib.import_module(name)
    record = (BENCHMARKS / "results" / f"{name}.csv").read_bytes()
    path.write_bytes(record)
    monkeypatch.setattr(script, "OUT", path)
    monkeypatch.setattr(sys, "argv", [name])
    try:
        with pytest.raises(SystemExit) as left:
            script.main()
    except OSError as problem:
        pytest.skip(f"the data sets of the grid are not all here: {problem}")
    assert left.value.code == 0
    assert path.read_bytes() == record
