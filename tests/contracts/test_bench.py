"""The smallest problem of each benchmark runs, beside its peers, and its row is complete."""

from __future__ import annotations

import csv
import importlib
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
OURS = ("drot", "Adam")  # the Adam of the papers runs on our objective


@pytest.fixture(scope="module", autouse=True)
def machine():
    """The scripts import their neighbours."""
    sys.path.insert(0, str(BENCHMARKS))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield importlib.import_module("machine")
    torch.set_num_threads(threads)
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def rates(machine):
    return machine.measure(threads=[1], seconds=0.05)


@pytest.fixture
def smallest(rates):
    """Rows of the smallest problem of a case: numbers are numbers, memory is there.

    Peers may be absent. A look at a run on its way is before its end, without memory of its own.
    """
    from cases import case
    from cases.pairing import compare

    def smallest(name: str) -> list[dict]:
        rows = []
        for setting in case(name).SETTINGS["small"]:
            problem = case(name).problem(**setting)
            (fitting,) = (r for r in rates if r.dtype == problem.dtype)
            rows += compare(problem, fitting, repeats=1)
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            if row["note"] == "absent":
                assert not row["method"].startswith(OURS)
                continue
            assert "seconds" in row, row["note"]
            if "repeats" not in row:
                assert math.isfinite(row["reached"]) and row["method"] == after["method"]
                assert row["seconds"] <= after["seconds"] and row["steps"] <= after["steps"]
                continue
            assert all(math.isfinite(row[x]) for x in ("cpu_seconds", "reached", "spread")), row
            assert row["seconds"] > 0 and 0 < row["base_rss_mb"] <= row["peak_rss_mb"]
            assert row["version"].split()[-1][0].isdigit()
        return rows

    return smallest


def by_method(rows: list[dict]) -> dict[str, dict]:
    return {row["method"]: row for row in rows}


def test_entropic_affinity(smallest):
    """All reach their tolerance; the bisection makes several times our passes."""
    found = by_method(smallest("ea"))
    for name in ("drot dense", "drot tiles"):
        assert found[name]["reached"] <= 1e-9 * (1 + 1e-3)
        assert found[name]["passes"] <= 10
    assert found["scikit-learn"]["reached"] < 1e-4
    assert found["openTSNE"]["reached"] <= 1e-8
    assert found["openTSNE"]["passes"] > 3 * found["drot dense"]["passes"]


def test_symmetric_entropic_affinity(smallest):
    found = by_method(smallest("sea"))
    assert found["drot dense, to 1e-08"]["reached"] <= 1e-8
    assert found["drot tiles, to 1e-03"]["reached"] <= 1e-3
    assert found["drot dense, to 1e-08"]["products"] > found["drot dense, to 1e-03"]["products"]


def test_tsnekhorn(smallest):
    """Ours stops at Adam's best; TorchDR descends on the same objective from the same start."""
    found = by_method(smallest("tsnekhorn"))
    adam = [found[f"Adam, rate {rate}, 20 steps"] for rate in ("0.1", "1")]
    ours, theirs = found["drot, to Adam's objective"], found["TorchDR, 20 steps"]
    assert ours["reached"] <= min(row["reached"] for row in adam) * (1 + 1e-4)
    assert adam[0]["passes"] == 21
    assert found["drot, to 1e-03"]["reached"] < ours["reached"]
    if theirs["note"] != "absent":
        assert theirs["reached"] == pytest.approx(adam[1]["reached"], rel=0.1)


def test_semi_relaxed_gw(smallest):
    found = by_method(smallest("srgw"))
    one, *same = (f"drot, product, {kind}" for kind in ("dense", "factors"))
    for name in (*same, "POT, product"):
        assert found[name]["reached"] == pytest.approx(found[one]["reached"], rel=1e-9)
    assert found["drot"]["reached"] <= found["POT, all starts"]["reached"] * (1 + 1e-9)


def test_threads(smallest):
    """Both numbers of threads give the same objective, beside a busy program too."""
    rows = smallest("threads")
    assert len(rows) == 10 and {row["data"] for row in rows[-2:]} == {
        "even_200, beside a busy program"
    }
    for one, default in zip(rows[::2], rows[1::2], strict=True):
        assert one["method"].endswith(", one") and default["method"].endswith(", default")
        assert default["reached"] == pytest.approx(one["reached"], rel=1e-6)


def test_a_method_that_fails_does_not_stop_the_others(rates):
    from cases.pairing import Method, Outcome, Problem, compare

    good = Method("good", "drot", lambda: 1, lambda one: Outcome(one))
    methods = [Method("bad", "drot", lambda: 1 / 0), good, Method("gone", "no-such-software")]
    problem = Problem("none", 1, 1, "float64", "cpu", "one", methods)
    bad, fine, gone = compare(problem, rates[0], repeats=3)
    assert bad["note"] == "ZeroDivisionError: division by zero" and "seconds" not in bad
    assert fine["repeats"] == 3 and fine["reached"] == 1 and fine["floor_s"] is None
    assert gone["note"] == "absent"


def test_the_script_writes_its_files(tmp_path):
    """And keeps the rows of cases that it was not asked for, and of problems that it skips."""
    old = tmp_path / "bench.csv"
    old.write_text("# old\ncase,data,method\nsea,a,b\nea,a,b\n", "utf8")
    words = f"--small --threads 1 --repeats 1 --device cpu --out {tmp_path} --cases ea srgw"
    said = []
    for more in (["--minutes", "0.0001"], ["--cases", "ea"], ["--skip", "1"]):
        whole = [sys.executable, str(BENCHMARKS / "bench.py"), *words.split(), *more]
        said.append(subprocess.run(whole, check=True, capture_output=True, text=True).stdout)
    assert "2 problems are left: go on with --skip 0" in said[0] and "left" not in said[2]
    rows = list(csv.DictReader(x for x in old.read_text("utf8").splitlines() if x[0] != "#"))
    assert [row["case"] for row in rows] == ["ea"] * 5 + ["sea"] + ["srgw"] * 6
    assert float(rows[0]["seconds"]) > 0 and float(rows[0]["floor_s"]) > 0
    assert "cpu,float32,1," in (tmp_path / "machine.csv").read_text("utf8").splitlines()[-1]
