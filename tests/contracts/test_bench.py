"""The smallest problem of each benchmark runs, beside its peers, and its row is complete."""

from __future__ import annotations

import csv
import importlib
import inspect
import math
import subprocess
import sys
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import drot
import pytest
import torch
from packaging.requirements import Requirement

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


def compared(name: str, rates, **setting) -> list[dict]:
    """Rows of one problem of a case."""
    from cases import case
    from cases.pairing import compare

    problem = case(name).problem(**setting)
    (fitting,) = (r for r in rates if r.dtype == problem.dtype)
    return compare(problem, fitting, repeats=1)


@pytest.fixture
def smallest(rates):
    """Rows of the smallest problem of a case: numbers are numbers, memory is there.

    Peers may be absent. A look at a run on its way is before its end, without memory of its own.
    """
    from cases import case

    def smallest(name: str) -> list[dict]:
        settings = case(name).SETTINGS["small"]
        rows = [row for setting in settings for row in compared(name, rates, **setting)]
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            if row["note"] == "absent":
                assert not row["method"].startswith(OURS)
                continue
            assert "seconds" in row, row["note"]
            if "repeats" not in row:
                assert math.isfinite(row["reached"]) and row["method"] == after["method"]
                assert row["seconds"] <= after["seconds"] and row["steps"] <= after["steps"]
                continue
            for number in ("seconds", "cpu_seconds", "reached", "spread"):
                assert math.isfinite(row[number]), row
            assert row["seconds"] > 0 and row["repeats"] == 1
            assert 0 < row["base_rss_mb"] <= row["peak_rss_mb"]
            assert row["version"].split()[-1][0].isdigit()
            if row["floor_s"] is not None:
                ratio = row["seconds"] / row["floor_s"]
                assert ratio > 0 and row["ratio"] == pytest.approx(ratio, rel=2e-3)
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


def test_passes_of_the_bisection_are_those_of_the_software():
    """Replayed on a problem that takes a known number: eps = 1 is right at once."""
    from cases.entropic import bisection_passes, without_diagonal

    X = torch.arange(12.0, dtype=torch.float64)[:, None]
    square = without_diagonal(torch.cdist(X, X).square())
    assert square.shape == (12, 11) and (square > 0).all()
    row = torch.softmax(-square, dim=1)
    xi = float(torch.exp(-torch.xlogy(row, row).sum(dim=1))[5])
    assert bisection_passes(X[:2] * 0, 1.0, 1e-9, 50) == 1
    assert 1 < bisection_passes(X, xi, 1e-9, 200) < 60


def test_symmetric_entropic_affinity(smallest):
    found = by_method(smallest("sea"))
    assert found["drot dense, to 1e-08"]["reached"] <= 1e-8
    assert found["drot tiles, to 1e-03"]["reached"] <= 1e-3
    assert found["drot dense, to 1e-08"]["products"] > found["drot dense, to 1e-03"]["products"]
    on_their_way = [row for name, row in found.items() if "0.1" in name and "reached" in row]
    assert all(row["reached"] < 1 for row in on_their_way)  # after 60 evaluations


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


def test_race(smallest):
    """Both descents of ours are looked at, openTSNE where it stops by default; same measure."""
    rows = smallest("race")
    assert {row["quantity"] for row in rows} == {"KL divergence", "cross-entropy"}
    for name, looks in (("drot t-SNE", 2), ("drot UMAP", 2), ("openTSNE", 15)):
        some = [row for row in rows if row["method"] == name and row["note"] != "absent"]
        assert not some or (len(some) > looks and some[-1]["reached"] < some[0]["reached"])
    ends = [row for row in rows if "repeats" in row]
    assert all(0 < row["reached"] < 3 for row in ends if row["quantity"] == "KL divergence")


def test_semi_relaxed_gw(smallest):
    found = by_method(smallest("srgw"))
    one, *same = (f"drot, product, {kind}" for kind in ("dense", "factors"))
    for name in (*same, "POT, product"):
        assert found[name]["reached"] == pytest.approx(found[one]["reached"], rel=1e-9)
    assert found["drot"]["reached"] <= found["POT, all starts"]["reached"] * (1 + 1e-9)


def test_growth(smallest):
    assert smallest("growth")


@pytest.mark.parametrize("objective", ["t-SNE", "t-SNEkhorn"])
def test_steps(objective, monkeypatch):
    """A line is a descent of the package, without its tolerance."""
    import steps

    monkeypatch.setattr(steps, "MARKS", (5, 10, 40))
    assert len({str(case) for case in steps.cases()}) == len(steps.cases())
    found = steps.measure("even_100", objective, "random 0", 0.1, 0.1, "float64")
    solve = drot.tsne if objective == "t-SNE" else partial(drot.snekhorn, kernel="student")
    options = {"init": "random", "random_state": 0, "on_failure": "ignore"}
    same = solve(steps.plan_of("even_100", objective), **options, max_iter=10, tol=1e-9)
    assert float(found["kl_10"]) == pytest.approx(same.kl / 100, abs=1e-4)
    assert found["n"] == 100 and set(found) >= {"steps", "kl", "kl_5", "size"}


@pytest.fixture
def gpu_meters(gpu, monkeypatch):
    """The device, with the meters of CUDA where it is a make-believe one."""
    if gpu != "cuda":
        facts = SimpleNamespace(L2_cache_size=2**25)
        meters = {"max_memory_allocated": 5 * 10**6, "get_device_name": "a card"}
        meters |= dict.fromkeys(["empty_cache", "synchronize", "reset_peak_memory_stats"])
        for name, found in (meters | {"get_device_properties": facts}).items():
            monkeypatch.setattr(f"torch.cuda.{name}", lambda device=None, found=found: found)
    return gpu


@pytest.mark.parametrize("name", ["ea", "sea", "tsnekhorn", "race", "srgw", "growth"])
def test_the_section_of_a_gpu(name, rates, gpu_meters):
    """Each method that runs there runs, on the smallest cloud, and meets the memory of the card."""
    from cases import case

    def part(setting: dict, *keys: str) -> dict:
        return {key: setting[key] for key in keys if key in setting}

    tried = {}
    for setting in case(name).SETTINGS["cuda"]:
        inspect.signature(case(name).problem).bind(**setting, device=gpu_meters)  # it can be called
        named = part(setting, "kind", "method")
        small = next(s for s in case(name).SETTINGS["small"] if named.items() <= s.items())
        chosen = small | part(setting, "methods", "dtype", "kind", "method")
        tried[str(chosen)] = chosen
    for chosen in tried.values():
        for row in compared(name, rates, **chosen, device=gpu_meters):
            if row["note"] == "absent":
                assert row["method"].startswith("TorchDR")
                continue
            assert "seconds" in row, row["note"]
            assert math.isfinite(row["reached"]) and row["device"] != "cpu"
            if row["method"].startswith(OURS) and "repeats" in row:
                assert row["peak_gpu_mb"] > 0


def test_a_method_that_fails_does_not_stop_the_others(rates):
    from cases.pairing import Method, Outcome, Problem, compare

    good = Method("good", "drot", lambda: 1, lambda one: Outcome(one))
    methods = [Method("bad", "drot", lambda: 1 / 0), good, Method("gone", "no-such-software")]
    problem = Problem("none", 1, 1, "float64", "cpu", "one", methods)
    bad, fine, gone = compare(problem, rates[0], repeats=3)
    assert bad["note"] == "ZeroDivisionError: division by zero" and "seconds" not in bad
    assert fine["repeats"] == 3 and fine["reached"] == 1 and fine["floor_s"] is None
    assert gone["note"] == "absent"


def test_the_peers_are_pinned_within_their_bounds():
    """And none of them asks for a torch of its own."""
    extras = tomllib.loads((ROOT / "pkg" / "pyproject.toml").read_text("utf8"))["project"]
    lines = (ROOT / "pkg" / "constraints.txt").read_text("utf8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    for peer in map(Requirement, extras["optional-dependencies"]["bench"]):
        assert peer.name != "torch"
        assert peer.specifier.contains(pins[peer.name]), str(peer)


def test_tiles_are_recorded_by_size(tmp_path, monkeypatch):
    """The lines of other affinities and of other sizes stay; by affinity, then by size."""
    import affinities

    def line(kind: str, n: int, residual: str) -> list:
        return [kind, "blobs", n, residual, *[0] * (len(affinities.TILE_FIELDS) - 4)]

    monkeypatch.setattr(affinities, "RESULTS", tmp_path)
    monkeypatch.setattr(affinities, "apart", lambda *order: [line(order[1], order[2], "new")])
    old = [line(kind, n, "old") for kind in ("symmetric", "entropic") for n in (10, 200)]
    affinities.write("tiles.csv", affinities.TILE_FIELDS, old)
    affinities.run_tiles(["symmetric"], [30, 10])
    found = [(row[0], int(row[2]), row[3]) for row in affinities.recorded("tiles.csv")]
    wanted = [("symmetric", 10, "new"), ("symmetric", 30, "new"), ("symmetric", 200, "old")]
    assert found == [*wanted, ("entropic", 10, "old"), ("entropic", 200, "old")]


def test_floor_is_the_longest_part(machine):
    rates = machine.Rates("cpu", "float64", 1, gemm=10.0, exp=5.0, stream=2.0)
    work = machine.Operations(flops=20.0, exps=20.0, bytes=2.0)
    assert machine.floor(work, rates) == 4
    assert machine.floor(work * 2, rates) == 8
    assert machine.floor(work + machine.Operations(bytes=10.0), rates) == 6
    assert machine.floor(work, replace(rates, exp=100.0, gemm=100.0)) == 1


def test_rates_are_of_this_machine(rates, machine):
    """Of a plausible size; of two measurements the faster is kept."""
    assert {(r.dtype, r.threads) for r in rates} == {("float64", 1), ("float32", 1)}
    for r in rates:
        assert 1e6 < r.gemm < 1e15 and 1e5 < r.exp < 1e14 and 1e6 < r.stream < 1e14
    more = machine._best_of(rates[0], [replace(rates[0], exp=2 * rates[0].exp)])
    assert more.exp == 2 * rates[0].exp and more.gemm == rates[0].gemm
    assert machine.cache_bytes("cpu") >= 2**20


def test_the_script_writes_its_files(tmp_path):
    """And keeps the rows of cases that it was not asked for."""
    command = [sys.executable, BENCHMARKS / "bench.py", "--small", "--threads", "1"]
    command += ["--repeats", "1", "--device", "cpu", "--out", tmp_path, "--cases", "ea"]
    old = tmp_path / "bench.csv"
    old.write_text("# old\ncase,data,method\nsrgw,a,b\nea,a,b\n", "utf8")
    subprocess.run([str(part) for part in command], check=True, capture_output=True, timeout=600)
    lines = [x for x in old.read_text("utf8").splitlines() if not x.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert [row["case"] for row in rows] == ["ea"] * 5 + ["srgw"]
    assert float(rows[0]["seconds"]) > 0 and float(rows[0]["floor_s"]) > 0
    assert rows[0]["threads"] == "1" and rows[0]["date"].count("-") == 2
    machine = (tmp_path / "machine.csv").read_text("utf8").splitlines()
    assert machine[-1].startswith("cpu,float32,1,")
    assert not list(tmp_path.glob("*.part")) and not (tmp_path / "growth.csv").exists()
