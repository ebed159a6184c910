"""The record of the mutants is of this package, and mutants are put where they belong."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import pytest
from mutation import mutate

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "mutation"
PACKAGE = ROOT / "pkg" / "src" / "drot"
MODULES = tomllib.loads((HERE / "modules.toml").read_text("utf8"))
EQUIVALENT = tomllib.loads((HERE / "equivalent.toml").read_text("utf8"))

OLD = '''
def shifted(x, by=1):
    """x + 1"""
    return [y + by for y in x]

class Box:
    size = 2

    def twice(self):
        return 2 * self.size
'''


@pytest.mark.parametrize("name", MODULES)
def test_modules_and_their_tests_are_there(name):
    assert (PACKAGE / f"{name}.py").is_file()
    for test in MODULES[name]["tests"]:
        assert (ROOT / test).is_file(), test


@pytest.mark.parametrize("name", EQUIVALENT)
def test_equivalent_mutants_are_of_lines_that_stand(name):
    """An entry whose line has gone excuses nothing; away with it."""
    source = " ".join((PACKAGE / f"{name}.py").read_text("utf8").split())
    for entry in EQUIVALENT[name]:
        assert entry.keys() - {"seen_by", "below", "operator"} == {
            "function",
            "line",
            "mutants",
            "reason",
        }
        assert (ROOT / entry.get("seen_by", "tests")).exists()
        for line in (entry["line"], entry.get("below", "")):
            assert " ".join(line.split()) in source, line
        assert entry["line"] not in entry["mutants"] and entry["reason"]


def test_results_add_up():
    with (HERE / "results.csv").open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["module"] for row in rows] == [
        m for m in MODULES if m in {r["module"] for r in rows}
    ]
    for row in rows:
        tried, killed, survived, equivalent = (
            int(row[name]) for name in ("tried", "killed", "survived", "equivalent")
        )
        assert tried == killed + survived + equivalent <= int(row["mutants"])
        assert row["score"] == f"{killed / (killed + survived):.3f}"


@pytest.mark.parametrize(
    ("was", "now", "names"),
    [
        ("y + by", "y - by", ["shifted"]),
        ("2 * self", "3 * self", ["twice"]),
        ("by=1", "by=2", None),
        ("size = 2", "size = 3", None),
        ("x + 1", "x + 2", ["shifted"]),
    ],
)
def test_only_bodies_of_functions_are_put_in_place(was, now, names):
    """What takes effect at import, a default or a constant, needs an import."""
    new = OLD.replace(was, now)
    assert new != OLD
    found = mutate.bodies(compile(OLD, "old", "exec"), compile(new, "old", "exec"))
    assert (None if found is None else [body.co_name for _, body in found]) == names


def test_messages_and_annotations_are_no_mutants():
    source = (
        'def f(x: int = 1 + 1, *, max_iter: int = 7) -> "a | b":\n    raise E(f"{x + 2}", 3 * x)\n'
    )
    binary, left_out = mutate._places(source)
    for text, out in (("1 + 1", False), ("7", True), ("a | b", True), ("3 * x", True)):
        before = source[: source.index(text)]
        at = before.count("\n") + 1, len(before.rpartition("\n")[2])
        assert any(a <= at < b for a, b in left_out) == out, text
    assert len(binary) >= 2


def test_the_head_of_a_block_is_its_statement():
    source = "def f(x):\n    if (\n        x\n    ):\n        x = (\n            1\n        )\n"
    assert mutate.statement(source, 3) == range(2, 5)
    assert mutate.statement(source, 6) == range(5, 8)
