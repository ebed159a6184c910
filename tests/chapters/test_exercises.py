"""Exercises of every chapter: four kinds, and one of them judges the reader's answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTERS = {path.stem: path.read_text("utf8") for path in sorted(BOOK.glob("[01]*.md"))}
CHAPTERS = {name: text for name, text in CHAPTERS.items() if name[:2] <= "12"}
KINDS = {
    "by hand": re.compile(r", by hand$"),
    "in code": re.compile(r"[,?] [Ii]n code$"),
    "break": re.compile(r"^Break\b"),
    "open": re.compile(r"^Open: "),
}
EXERCISE = re.compile(
    r"^```\{exercise-start\} ([^\n]+)\n:label: (\S+)\n```\n(.*?)^```\{exercise-end\}", re.M | re.S
)
SOLUTION = re.compile(r"^```\{solution-start\} (\S+)\n(.*?)^```\{solution-end\}", re.M | re.S)
CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```$", re.M | re.S)
CHECKED = [name for name in CHAPTERS if name[:2] < "13"]


def kinds(title: str) -> list[str]:
    return [kind for kind, pattern in KINDS.items() if pattern.search(title)]


def test_chapters_were_found():
    assert [name[:2] for name in CHAPTERS] == [f"{k:02d}" for k in range(13)]


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_exercise_has_one_kind(name: str):
    for title, _, _ in EXERCISE.findall(CHAPTERS[name]):
        assert len(kinds(title)) == 1, f"{name}: {title!r} is {kinds(title)}"


@pytest.mark.parametrize("name", CHAPTERS)
def test_all_kinds_are_there(name: str):
    found = EXERCISE.findall(CHAPTERS[name])
    assert len(found) == len(re.findall(r"\{exercise-start\}", CHAPTERS[name])) >= 4
    assert {kind for title, _, _ in found for kind in kinds(title)} == set(KINDS)


@pytest.mark.parametrize("name", CHECKED)
def test_every_solution_asserts(name: str):
    solutions = dict(SOLUTION.findall(CHAPTERS[name]))
    for _, label, _ in EXERCISE.findall(CHAPTERS[name]):
        cells = "\n".join(CELL.findall(solutions[label]))
        assert re.search(r"\bassert\b|assert_(close|allclose|array_equal)\b", cells), label


@pytest.mark.parametrize("name", CHECKED)
def test_a_cell_judges_the_answer(name: str):
    """The stub runs as it stands; the solution holds a right answer and a wrong one against it."""
    solutions = dict(SOLUTION.findall(CHAPTERS[name]))
    judged = 0
    for _, label, body in EXERCISE.findall(CHAPTERS[name]):
        for cell in CELL.findall(body):
            assert "from drot.exercises import check" in cell, label
            assert re.search(r"^answer = None  # \S", cell, re.M), f"{label}: no stub"
            test = re.search(r"^check\(answer, (\w+)\)$", cell, re.M)
            assert test, f"{label}: the cell must end with its verdict"
            held = "\n".join(CELL.findall(solutions[label]))
            assert re.search(rf"assert check\(.*, {test[1]}\)\.right\b(?! is False)", held), label
            assert re.search(
                rf"{test[1]}\)\.right is False|not check\(|verdict\.right is False", held
            )
            judged += 1
    assert judged >= 1
