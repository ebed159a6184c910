"""The tables of book/notation.md against the package: names and fields."""

import inspect
import itertools
import re
from dataclasses import fields
from functools import reduce
from pathlib import Path

import drot
import pytest
import torch

PAGE = Path(__file__).resolve().parents[2] / "book" / "notation.md"
COLUMNS = ["Symbol", "Meaning", "In code", "Shape", "Unit", "First met"]


def read() -> list[list[str]]:
    """All lines of all tables of the page."""
    rows = []
    for line in PAGE.read_text("utf8").splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            assert len(cells) == len(COLUMNS), line
            if cells != COLUMNS and not set("".join(cells)) <= set(":-"):
                rows.append(cells)
    return rows


def named(code: str) -> list[tuple[str, str | None]]:
    """Pairs (name, owner); the owner is None for a function that stands alone."""
    pairs = []
    for clause in code.split(";"):
        left, _, right = clause.partition(" of ")
        members, owners = (re.findall(r"`([^`]+)`", side) for side in (left, right))
        pairs += itertools.product(members, owners or [None])
    return pairs


ROWS = read()
NAMES = {pair for _, _, code, *_ in ROWS for pair in named(code)}
AFFINITIES = map(vars(drot.affinities).get, drot.affinities.__all__)
KINDS = [k for k in AFFINITIES if inspect.isclass(k) and k is not drot.affinities.Affinity]
COMPUTED = {"plan", "log_plan", "perplexity"}  # properties, besides the fields


def find(path: str):
    """What a dotted name means inside ``drot``; classes of results lie in its packages."""
    first = path.split(".")[0]
    packages = [value for value in vars(drot).values() if inspect.ismodule(value)]
    home = next((place for place in (drot, *packages) if hasattr(place, first)), drot)
    return reduce(getattr, path.split("."), home)


def test_a_letter_has_one_meaning():
    """No symbol stands in two lines, and no chapter explains its letters in a box of its own."""
    symbols = [symbol for row in ROWS for symbol in re.findall(r"\$([^$]+)\$", row[0])]
    assert len(symbols) > 80 and not {s for s in symbols if symbols.count(s) > 1}
    for page in PAGE.parent.rglob("[01]*.md"):
        assert "Letters in this chapter" not in page.read_text("utf8"), page.name


@pytest.mark.parametrize(("name", "owner"), sorted(NAMES, key=str))
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
        known |= {*dir(drot.sqeuclidean(torch.eye(2)))} if found is drot.costs.Pairwise else set()
        assert name in known, f"{owner} has no {name}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_every_field_is_listed(kind):
    """Every field of every result has a line, under its own class or one it derives from."""
    own = {field.name for field in fields(kind)} | COMPUTED if kind in KINDS else kind._fields
    bases = {base.__name__ for base in kind.__mro__}
    assert set(own) <= {name for name, owner in NAMES if (owner or "").rpartition(".")[2] in bases}
