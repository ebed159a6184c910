"""A grid that was killed or torn leaves the file of a grid that was not."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CASES = [
    {"data": data, "xi": xi, "seed": seed} for data in "ab" for xi in (5, 30) for seed in (0, 1)
]
FIELDS = ["value", "note"]

# A grid in a process of its own. Each case leaves a mark, so that what ran twice can be seen.
PROGRAM = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(BENCHMARKS)!r})
import sweep

marks, path, pause, jobs = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4]

def work(data, xi, seed):
    (marks / f"{{data}}{{xi}}{{seed}}").open("a").write("x")
    time.sleep(pause)
    return {{"value": xi / 7 + seed, "note": f"{{data}}, {{seed}}"}}

if __name__ == "__main__":
    print(sweep.run({CASES}, work, path, fields={FIELDS}, facts="# a fact\\n", n_jobs=int(jobs)))
"""


def work(data: str, xi: int, seed: int) -> dict:
    return {"value": xi / 7 + seed, "note": f"{data}, {seed}"}


def expected(fact: str = "") -> str:
    rows = [f"{c['data']},{c['xi']},{c['seed']},{c['xi'] / 7 + c['seed']}" for c in CASES]
    notes = [f'"{c["data"]}, {c["seed"]}"' for c in CASES]
    lines = ["data,xi,seed,value,note", *map(",".join, zip(rows, notes, strict=True))]
    return fact + "\n".join(lines) + "\n"


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "grid.csv"


@pytest.fixture
def run(monkeypatch, path):
    """The grid, or a part of it, here."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    sweep = importlib.import_module("sweep")
    return lambda cases=CASES, work=work, **options: sweep.run(
        cases, work, path, **{"fields": FIELDS} | options
    )


def start(path: Path, pause: float, jobs: int = 1) -> subprocess.Popen:
    program = path.with_name("program.py")
    program.write_text(PROGRAM, encoding="utf8")
    command = [sys.executable, program, path.with_name("marks"), path, pause, jobs]
    return subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its workers end with it
    )


def await_rows(path: Path, rows: int) -> None:
    until = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < 2 + rows:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_goes_on_where_it_was(path, run, jobs):
    """The same bytes as an uninterrupted run, no finished case twice; two at once are refused."""
    first = start(path, 0.5, jobs)
    await_rows(path, 3)
    with pytest.raises(BlockingIOError):
        run()
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=60)
    kept = path.read_text("utf8").splitlines()[2:]
    assert 3 <= len(kept) < len(CASES)
    out, _ = start(path, 0).communicate(timeout=60)
    assert f"done={len(CASES) - len(kept)}, there={len(kept)}, failed=0" in out
    assert path.read_text("utf8") == expected("# a fact\n")
    for line in kept:
        mark = "".join(line.split(",")[:3])
        assert (path.with_name("marks") / mark).read_text() == "x", f"{mark} ran twice"


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


def test_a_case_that_raises_is_said_and_tried_again(run, path, capsys):
    def broken(data: str, xi: int, seed: int) -> dict:
        if xi == 30 and seed == 1:
            raise ArithmeticError("no step")
        return work(data, xi, seed)

    assert run(work=broken) == (6, 0, 2)
    assert "a 30 1 ArithmeticError: no step" in capsys.readouterr().out
    assert run(work=lambda **case: {"value": 1.0}) == (0, 6, 2)
    assert run() == (2, 6, 0)
    assert path.read_text("utf8") == expected()


def test_rows_can_be_placed_and_old_ones_stay(run, path):
    run(CASES[:4])
    run(CASES[4:], place=lambda row: (-int(row["seed"]), row["data"], int(row["xi"])))
    keys = [line.split(",")[:3] for line in path.read_text("utf8").splitlines()[1:]]
    wanted = sorted(CASES, key=lambda case: (-case["seed"], case["data"], case["xi"]))
    assert keys == [[str(part) for part in case.values()] for case in wanted]


def test_cases_must_be_told_apart(run):
    with pytest.raises(ValueError, match="written alike"):
        run([{"a": 1}, {"a": "1"}])
    run()
    with pytest.raises(ValueError, match="move the file away"):
        run(fields=["value"])


@pytest.mark.parametrize("name", ["graph_coupling_tables", "table3_scores", "figure6_ari"])
def test_recorded_grids_stand_as_they_are(run, path, monkeypatch, name):
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
