"""A grid that was killed, torn or run elsewhere leaves the file of a grid that was not."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
CASES = [
    {"data": data, "xi": xi, "seed": seed} for data in "ab" for xi in (5, 30) for seed in (0, 1)
]
FIELDS = ["value", "note"]

# A grid in a process of its own. Each case leaves a mark, so that what ran twice can be seen.
PROGRAM = """
import functools, sys, time
from pathlib import Path
sys.path.insert(0, {folder!r})
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
    cases = {cases!r}
    print(sweep.run(cases, work, path, fields={fields!r}, facts="# a fact\\n", n_jobs=jobs))
"""


@pytest.fixture
def sweep(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import sweep

    return sweep


def work(data: str, xi: int, seed: int) -> dict:
    return {"value": xi / 7 + seed, "note": f"{data}, {seed}"}


def expected(fact: str = "") -> str:
    lines = [fact, "data,xi,seed,value,note,error\n"]
    for case in CASES:
        values = work(**case)
        line = [*map(str, case.values()), str(values["value"]), f'"{values["note"]}"', ""]
        lines.append(",".join(line) + "\n")
    return "".join(lines)


def test_rows_are_those_of_the_function_in_the_order_of_the_cases(sweep, tmp_path):
    path = tmp_path / "grid.csv"
    swept = sweep.run(CASES, work, path, fields=FIELDS, facts="# a fact\n")
    assert swept == (len(CASES), 0, 0)
    assert path.read_text("utf8") == expected("# a fact\n")
    assert os.listdir(tmp_path) == ["grid.csv"]  # no lock and no part of a file is left


def start(tmp_path: Path, name: str, pause: float, jobs: int = 1) -> subprocess.Popen:
    program = tmp_path / "program.py"
    program.write_text(
        PROGRAM.format(folder=str(BENCHMARKS), cases=CASES, fields=FIELDS), encoding="utf8"
    )
    (tmp_path / name).mkdir(exist_ok=True)
    command = [sys.executable, program, tmp_path / name, tmp_path / f"{name}.csv", pause, jobs]
    return subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_rows(path: Path, rows: int, process: subprocess.Popen) -> None:
    until = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < 2 + rows:
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("sign", "code", "jobs"),
    [
        (signal.SIGKILL, -signal.SIGKILL, 1),
        (signal.SIGKILL, -signal.SIGKILL, 2),
        (signal.SIGTERM, 128 + signal.SIGTERM, 1),
        (signal.SIGINT, -signal.SIGINT, 1),
    ],
)
def test_a_run_that_was_ended_goes_on_where_it_was(tmp_path, sign, code, jobs):
    """The same bytes as an uninterrupted run, and no finished case is computed twice."""
    first = start(tmp_path, "grid", 0.5, jobs)  # the signal has seconds to come
    path = tmp_path / "grid.csv"
    wait_for_rows(path, 3, first)
    first.send_signal(sign)
    assert first.wait(timeout=60) == code
    kept = path.read_text("utf8").splitlines()[2:]
    assert 3 <= len(kept) < len(CASES)
    again = start(tmp_path, "grid", 0)  # workers that outlive who was killed hold no lock
    out, err = again.communicate(timeout=60)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=60)
    assert again.returncode == 0, err
    assert f"done={len(CASES) - len(kept)}, there={len(kept)}, failed=0" in out
    assert path.read_text("utf8") == expected("# a fact\n")
    for line in kept:
        mark = "".join(line.split(",")[:3])
        assert (tmp_path / "grid" / mark).read_text() == "x", f"{mark} ran twice"


def test_two_sweeps_on_one_file_are_refused(sweep, tmp_path):
    first = start(tmp_path, "grid", 0.3)
    path = tmp_path / "grid.csv"
    wait_for_rows(path, 1, first)
    with pytest.raises(sweep.Busy, match="another sweep is writing"):
        sweep.run(CASES, work, path, fields=FIELDS)
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0 and "done=8" in out, err
    assert path.read_text("utf8") == expected("# a fact\n")
    assert sweep.run(CASES, work, path, fields=FIELDS) == (0, len(CASES), 0)


@pytest.mark.parametrize("cut", [1, 9, 20, 45])
def test_a_torn_last_line_is_dropped(sweep, tmp_path, cut):
    """A line without its end was cut short, however whole it looks; so was a short head."""
    path = tmp_path / "grid.csv"
    sweep.run(CASES, work, path, fields=FIELDS, facts="# a fact\n")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    lost = whole[-cut:].count(b"\n")
    assert sweep.run(CASES, work, path, fields=FIELDS) == (lost, len(CASES) - lost, 0)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:20])  # the comment, and a part of the columns
    sweep.run(CASES, work, path, fields=FIELDS, facts="# a fact\n")
    assert path.read_bytes() == whole


def test_a_damaged_line_is_not_read_over(sweep, tmp_path):
    path = tmp_path / "grid.csv"
    sweep.run(CASES, work, path, fields=FIELDS)
    path.write_text(path.read_text("utf8").replace("a,30,0,", "a,30,", 1), "utf8")
    with pytest.raises(ValueError, match="has 5 fields, not 6"):
        sweep.run(CASES, work, path, fields=FIELDS)


def test_a_case_that_raises_is_recorded_and_tried_again(sweep, tmp_path):
    path = tmp_path / "grid.csv"

    def broken(data: str, xi: int, seed: int) -> dict:
        if xi == 30 and seed == 1:
            raise ArithmeticError("no step,\nat all")
        return work(data, xi, seed)

    assert sweep.run(CASES, broken, path, fields=FIELDS) == (6, 0, 2)
    lines = path.read_text("utf8").splitlines()
    assert lines[4] == 'a,30,1,,,"ArithmeticError: no step, at all"'
    assert sweep.run(CASES, broken, path, fields=FIELDS) == (0, 6, 2)
    assert len(path.read_text("utf8").splitlines()) == 1 + len(CASES)
    assert sweep.run(CASES, work, path, fields=FIELDS) == (2, 6, 0)
    assert path.read_text("utf8") == expected()


def test_without_the_column_a_failed_case_leaves_no_line(sweep, tmp_path, capsys):
    path = tmp_path / "grid.csv"

    def broken(data: str, xi: int, seed: int) -> dict:
        return work(data, xi, 1 // seed)

    done = sweep.run(CASES, broken, path, fields=FIELDS, error_column=False)
    assert done == (4, 0, 4) and "ZeroDivisionError" in capsys.readouterr().out
    assert len(path.read_text("utf8").splitlines()) == 5
    assert sweep.run(CASES, work, path, fields=FIELDS, error_column=False) == (4, 4, 0)
    lines = path.read_text("utf8").splitlines()
    assert lines[0] == "data,xi,seed,value,note" and len(lines) == 9


def test_what_the_function_returns_is_checked(sweep, tmp_path):
    for wrong in ({"value": 1}, {"value": 1, "note": "two\nlines"}, {"value": [1], "note": ""}):
        path = tmp_path / f"{len(os.listdir(tmp_path))}.csv"
        swept = sweep.run(CASES, lambda wrong=wrong, **case: wrong, path, fields=FIELDS)
        assert swept.failed == len(CASES)
        assert "ValueError" in path.read_text("utf8")


def test_rows_can_be_placed_and_old_ones_stay(sweep, tmp_path):
    path = tmp_path / "grid.csv"
    sweep.run(CASES[:4], work, path, fields=FIELDS)

    def place(row: dict[str, str]) -> tuple:
        return -int(row["seed"]), row["data"], int(row["xi"])

    sweep.run(CASES[4:], work, path, fields=FIELDS, place=place)
    keys = [line.split(",")[:3] for line in path.read_text("utf8").splitlines()[1:]]
    wanted = sorted(CASES, key=lambda case: (-case["seed"], case["data"], case["xi"]))
    assert keys == [[str(part) for part in case.values()] for case in wanted]


def test_cases_must_be_told_apart(sweep, tmp_path):
    path = tmp_path / "grid.csv"
    with pytest.raises(ValueError, match="written alike"):
        sweep.run([{"a": 1}, {"a": "1"}], work, path, fields=FIELDS)
    with pytest.raises(ValueError, match="stands twice"):
        sweep.run([{"value": 1}], work, path, fields=FIELDS)
    with pytest.raises(ValueError, match="lacks b"):
        sweep.run([{"a": 1, "b": 1}, {"a": 2}], work, path, fields=FIELDS)
    assert not path.exists()
    sweep.run(CASES, work, path, fields=FIELDS)
    with pytest.raises(ValueError, match="move the file away"):
        sweep.run(CASES, work, path, fields=["value"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_dask_cluster_gives_the_same_rows(sweep, tmp_path):
    """By the address of a scheduler, as a cluster is reached."""
    from distributed import LocalCluster

    path = tmp_path / "grid.csv"
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        swept = sweep.run(CASES[:3], work, path, fields=FIELDS, scheduler=address)
        assert swept == (3, 0, 0)
        swept = sweep.run(CASES, work, path, fields=FIELDS, scheduler=address)
    assert swept == (len(CASES) - 3, 3, 0)
    assert path.read_text("utf8") == expected()


@pytest.mark.parametrize("name", ["graph_coupling_tables", "table3_scores"])
def test_recorded_grids_stand_as_they_are(sweep, tmp_path, monkeypatch, name):
    """The scripts find all of their cases in their files, and leave them to the bit."""
    script = importlib.import_module(name)
    record = BENCHMARKS / "results" / f"{name}.csv"
    path = tmp_path / record.name
    path.write_bytes(record.read_bytes())
    monkeypatch.setattr(script, "OUT", path)
    monkeypatch.setattr(sys, "argv", [name])
    try:
        with pytest.raises(SystemExit) as left:
            script.main()
    except OSError as problem:
        pytest.skip(f"the data sets of the grid are not all here: {problem}")
    assert left.value.code == 0
    assert path.read_bytes() == record.read_bytes()
