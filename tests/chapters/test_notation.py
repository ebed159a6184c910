"""The tables of book/notation.md against the package: names, fields, shapes and units."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import drot
import pytest
import torch

PAGE = Path(__file__).resolve().parents[2] / "book" / "notation.md"
COLUMNS = ["Symbol", "Meaning", "In code", "Shape", "Unit", "First met"]
# as a power of the cost
UNITS = {"–": 0, "nats": 0, "data": 0.5, "√cost": 0.5, "cost": 1, "cost²": 2, "cost³": 3}
UNITS |= {"1/cost": -1}
SHAPES = {f"({sizes})" for sizes in ("n,", "R,", "k,", "n_iter,", "k, k", "k, q")}
SHAPES |= {f"(n, {columns})" for columns in "npcqRrk"} | {"scalar", "scalar or (n,)", "set"}


class Row(NamedTuple):
    """One line of a table."""

    symbol: str
    meaning: str
    code: str
    shape: str
    unit: str
    first: str

    def names(self) -> list[tuple[str, str | None]]:
        """Pairs (name, owner); the owner is None for a function that stands alone."""
        pairs = []
        for clause in self.code.split(";"):
            left, _, right = clause.partition(" of ")
            members, owners = (re.findall(r"`([^`]+)`", side) for side in (left, right))
            pairs += [(member, owner) for member in members for owner in owners or [None]]
        return pairs


def read() -> list[Row]:
    """All lines of all tables of the page."""
    rows = []
    for line in PAGE.read_text("utf8").splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            assert len(cells) == len(COLUMNS), line
            if cells != COLUMNS and not set("".join(cells)) <= set(":-"):
                rows.append(Row(*cells))
    return rows


ROWS = read()
AFFINITIES = map(vars(drot.affinities).get, drot.affinities.__all__)
KINDS = [k for k in AFFINITIES if inspect.isclass(k) and k is not drot.affinities.Affinity]
COMPUTED = {"plan", "log_plan", "perplexity"}  # properties, besides the fields


def find(path: str):
    """What a dotted name means inside ``drot``; classes of results lie in its packages."""
    first = path.split(".")[0]
    packages = [value for value in vars(drot).values() if inspect.ismodule(value)]
    home = next((place for place in (drot, *packages) if hasattr(place, first)), drot)
    return reduce(getattr, path.split("."), home)


def solve(cost: torch.Tensor) -> dict[str, object]:
    """A result of each solver, by the name of its class, and one of the metrics."""
    solved = [
        drot.entropic_affinity(cost, perplexity=4.0),
        drot.gaussian_affinity(cost, perplexity=4.0),
        drot.self_tuning_affinity(cost, n_neighbors=3),
        drot.doubly_stochastic_affinity(cost, perplexity=4.0),
        drot.symmetric_entropic_affinity(cost, perplexity=4.0),
        drot.umap_membership(cost, n_neighbors=4),
    ]
    errors = drot.metrics.constraint_errors(solved[0].plan, perplexity=5.0)
    return {type(one).__name__: one for one in solved} | {"metrics.ConstraintErrors": errors}


LAZY = drot.sqeuclidean(
    torch.rand(12, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
)


@pytest.fixture(scope="module")
def results() -> tuple[dict, dict]:
    """Results for a cost, and for four times that cost."""
    return solve(LAZY.dense()), solve(4 * LAZY.dense())


def values(row: Row, results: dict) -> dict[tuple[str, str], torch.Tensor]:
    """What the fields that a line names hold, by the class of each result that has them."""
    held = {}
    for name, owner in row.names():
        for kind, result in results.items():
            kinds = {base.__name__ for base in type(result).__mro__} | {kind}
            if owner in kinds and hasattr(result, name):
                value = getattr(result, name)
                value = value.dense() if isinstance(value, drot.costs.Pairwise) else value
                held[kind, name] = torch.as_tensor(value, dtype=torch.float64)
    return held


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.symbol + " " + row.code[:24])
def test_line_is_complete(row: Row):
    """A line says what, in which shape and unit, and where it is first met."""
    assert row.symbol and row.meaning
    assert row.shape in SHAPES and row.unit in UNITS
    assert row.names() or row.code in ("–", "coming"), f"{row.symbol}: {row.code!r}"
    assert re.fullmatch(r"\{(ref|eq|prf:ref)\}`[^`]+`", row.first) or "coming" in row.first


def test_a_letter_has_one_meaning():
    """No symbol stands in two lines, and no chapter explains its letters in a box of its own."""
    symbols = [symbol for row in ROWS for symbol in re.findall(r"\$([^$]+)\$", row.symbol)]
    assert len(symbols) > 80 and not {s for s in symbols if symbols.count(s) > 1}
    for page in PAGE.parent.rglob("[01]*.md"):
        assert "Letters in this chapter" not in page.read_text("utf8"), page.name


@pytest.mark.parametrize(
    ("name", "owner"), sorted({pair for row in ROWS for pair in row.names()}, key=str)
)
def test_name_exists(name: str, owner: str | None):
    """A name of the table is a function of drot, or belongs to the owner that the table states."""
    if owner is None:
        package, _, last = name.rpartition(".")
        home = getattr(drot, package) if package else drot
        assert callable(find(name)) and last in {*home.__all__, *drot.spectral.__all__}
    else:
        found = find(owner)
        known = {*inspect.signature(found).parameters, *dir(found)}
        known |= {*getattr(found, "__annotations__", ())} if inspect.isclass(found) else set()
        known |= {*dir(LAZY)} if found is drot.costs.Pairwise else set()
        assert name in known, f"{owner} has no {name}"


@pytest.mark.parametrize("kind", [*KINDS, drot.metrics.ConstraintErrors], ids=lambda k: k.__name__)
def test_every_field_is_listed(kind):
    """Every field of every result has a line, under its own class or one it derives from."""
    own = {field.name for field in fields(kind)} | COMPUTED if kind in KINDS else kind._fields
    bases = {base.__name__ for base in kind.__mro__}
    names = [pair for row in ROWS for pair in row.names() if pair[1] is not None]
    assert set(own) <= {name for name, owner in names if owner.rpartition(".")[2] in bases}


def test_shapes_are_those_of_results(results):
    """A field has the shape that its line states."""
    assert set(results[0]) == {kind.__name__ for kind in KINDS} | {"metrics.ConstraintErrors"}
    checked = set()
    for row in ROWS:
        for (kind, name), value in values(row, results[0]).items():
            sizes = {"n": 12, "p": 2, "n_iter": getattr(results[0][kind], "n_iter", None)}
            letters = re.findall(r"\w+", row.shape) if row.shape.startswith("(") else []
            assert tuple(value.shape) == tuple(sizes[s] for s in letters), name
            checked.add((kind, name))
    assert {(k.__name__, field.name) for k in KINDS for field in fields(k)} <= checked


def test_units_are_those_of_results(results):
    """With four times the cost a field is multiplied by 4, by 2 (√cost) or by 1, as stated."""
    for row in ROWS:
        once, more = (values(row, solved) for solved in results)
        for name, value in once.items():
            want = value * 4.0 ** UNITS[row.unit]
            torch.testing.assert_close(more[name], want, rtol=1e-6, atol=1e-7, msg=str(name))
