"""The smallest problem of each benchmark runs, beside its peers, and its row is complete."""

import ast
import csv
import importlib
import math
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
OURS = ("drot", "Adam")  # the Adam of the papers runs on our objective


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def rates(script):
    return script("machine").measure(threads=[1], seconds=0.05)


def smallest(name: str, rates) -> list[dict]:
    """Rows of the smallest problem of a case: numbers are numbers, memory is there.

    Peers may be absent. A look at a run on its way is before its end, without memory of its own.
    """
    case, rows = importlib.import_module("cases").case(name), []
    for setting in case.SETTINGS["small"]:
        problem = case.problem(**setting)
        (fitting,) = (r for r in rates if r.dtype == problem.dtype)
        rows += importlib.import_module("cases.pairing").compare(problem, fitting, repeats=1)
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


def test_scripts_import_what_there_is():
    for script in (ROOT / "benchmarks").rglob("*.py"):
        for node in ast.walk(ast.parse(script.read_text("utf8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("drot"):
                there = importlib.import_module(node.module)
                missing = [name.name for name in node.names if not hasattr(there, name.name)]
                assert not missing, (script.name, node.module, missing)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ea", "sea", "tsnekhorn", "srgw", "threads", "transform"])
def test_smallest(name, rates, monkeypatch):
    """Ours reach what they are asked for, and no less than a peer on the same objective.

    umap-learn, whose compilation takes half a minute, counts as a peer that is not installed.
    """
    monkeypatch.setattr("cases.transform.present", lambda software: software == "openTSNE")
    found = {row["method"]: row for row in smallest(name, rates)}
    if name == "sea":
        assert found["drot dense, to 1e-08"]["reached"] <= 1e-8
        assert found["drot tiles, to 1e-03"]["reached"] <= 1e-3
    if name == "ea":
        assert found["drot tiles"]["reached"] <= 1e-9 * (1 + 1e-3)
        assert found["openTSNE"]["passes"] > 3 * found["drot dense"]["passes"]
    if name == "tsnekhorn":
        adam = min(row["reached"] for name, row in found.items() if name.startswith("Adam"))
        assert found["drot, to Adam's objective"]["reached"] <= adam * (1 + 1e-4)
    if name == "srgw":
        assert found["drot"]["reached"] <= found["POT, all starts"]["reached"] * (1 + 1e-9)


@pytest.mark.slow
def test_the_script_writes_its_files(script, tmp_path, monkeypatch, capsys):
    """And keeps the rows of cases that it was not asked for, and of problems that it skips."""
    old = tmp_path / "bench.csv"
    old.write_text("# old\ncase,data,method\nsrgw,a,b\nea,a,b\n", "utf8")
    words = f"bench.py --small --threads 1 --repeats 1 --device cpu --out {tmp_path} --cases ea sea"
    said = []
    for more in (["--minutes", "0.0001"], ["--cases", "ea"], ["--skip", "1"]):
        monkeypatch.setattr(sys, "argv", [*words.split(), *more])
        script("bench").main()
        said.append(capsys.readouterr().out)
    assert "2 problems are left: go on with --skip 0" in said[0] and "left" not in said[2]
    rows = list(csv.DictReader(x for x in old.read_text("utf8").splitlines() if x[0] != "#"))
    assert [row["case"] for row in rows] == ["ea"] * 5 + ["sea"] * 7 + ["srgw"]
    assert float(rows[0]["seconds"]) > 0 and float(rows[0]["floor_s"]) > 0
    assert "cpu,float32,1," in (tmp_path / "machine.csv").read_text("utf8").splitlines()[-1]
