"""Pages fit together and lead a reader: headers, labels, exercises, neighbours, words, index."""

import builtins
import re
import symtable
from pathlib import Path

import pytest
import yaml
from myst_nb.core.read import is_myst_markdown_notebook
from reading import core_words, minutes

ROOT = Path(__file__).resolve().parents[2]
CONTENTS = (ROOT / "_toc.yml").read_text("utf8")
TOC = re.findall(r"^\s*(?:- file|root): (\S+)", CONTENTS, re.M)
PAGES = {name: (ROOT / f"{name}.md").read_text("utf8") for name in TOC}
WITH_CODE = [name for name, text in PAGES.items() if "{code-cell}" in text]
CHAPTERS = [name for name in TOC if re.match(r"book/\d\d_", name)]
TAUGHT = [name for name in CHAPTERS if name < "book/16"]
FURTHER = [name for name in TOC if name.startswith("book/further/")]
ROUTE = [*CHAPTERS, "book/papers"]  # what a reader turns over

every_page = pytest.mark.parametrize("name", PAGES)
every_chapter = pytest.mark.parametrize("name", CHAPTERS)
every_taught = pytest.mark.parametrize("name", TAUGHT)


CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```$", re.M | re.S)


def cells(text: str) -> str:
    return "\n".join(CELL.findall(text))


def test_contents_list_every_page():
    files = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in (ROOT / "book").rglob("*.md")
        if not any(part.startswith(("_", ".")) for part in path.relative_to(ROOT).parts)
    }
    assert files == set(TOC) - {"genindex"}  # which Sphinx writes
    assert [name[5:7] for name in CHAPTERS] == [f"{k:02d}" for k in range(len(CHAPTERS))]


@pytest.mark.parametrize("name", WITH_CODE)
def test_chapter_has_a_whole_header(name: str):
    assert is_myst_markdown_notebook(PAGES[name]), "code cells, but no Jupytext header"
    header = yaml.safe_load(PAGES[name].split("---")[1])
    assert header["kernelspec"]["name"] == "python3"
    assert header["kernelspec"]["display_name"]  # jupytext refuses to open a file without it
    assert header["jupytext"]["text_representation"]["format_name"] == "myst"
    barred = r"^\s*[!%].*|pip install|\burllib\b|\brequests\b|sys\.path"
    assert not re.findall(barred, cells(PAGES[name]), re.M), "needs a network or an installation"


@every_page
def test_every_theorem_is_followed_by_its_proof(name: str):
    """A folded prf:proof breaks a script of the site, and every solution stays open."""
    assert "{prf:proof}" not in PAGES[name]
    statement = r"^[`:]{3,}\{prf:(?:theorem|proposition|lemma|corollary)\}"
    for rest in re.split(statement, PAGES[name], flags=re.M)[1:]:
        assert re.search(r"^[`:]{3,}\{dropdown\}.*\bproof\b", rest, re.M | re.I), rest[:80]


def test_labels_and_glued_keys_are_unique():
    labels, keys = [], []
    for text in PAGES.values():
        labels += re.findall(r"^:label: *(\S+)|^\((\S+)\)=$|^\$\$ *\(([\w-]+)\)$", text, re.M)
        keys += set(re.findall(r"""\bglue\(\s*["']([^"']+)["']""", cells(text)))
    for names in (["".join(groups) for groups in labels], keys):
        assert names and not {x for x in names if names.count(x) > 1}


KINDS = (r", by hand$", r"[,?] [Ii]n code$", r"^Break\b", r"^Open: ")
EXERCISE = re.compile(
    r"^```\{exercise-start\} ([^\n]+)\n:label: (\S+)\n```\n(.*?)^```\{exercise-end\}", re.M | re.S
)
SOLUTION = re.compile(r"^```\{solution-start\} (\S+)\n(.*?)^```\{solution-end\}", re.M | re.S)


@every_page
def test_every_exercise_has_a_closed_solution(name: str):
    exercises = re.findall(r"\{exercise(?:-start)?\}.*\n(?::.*\n)*?:label: (\S+)", PAGES[name])
    solutions = re.findall(r"\{solution(?:-start)?\} *(\S+)\n((?::.*\n)*)", PAGES[name])
    assert sorted(exercises) == sorted(label for label, _ in solutions)
    for label, options in solutions:
        assert re.search(r"^:class: dropdown$", options, re.M), f"the solution of {label} is open"


@every_taught
def test_exercises_are_of_four_kinds(name: str):
    """Each is of one kind, and every kind is there."""
    titles = [title for title, _, _ in EXERCISE.findall(PAGES[name])]
    assert len(titles) == PAGES[name].count("{exercise-start}")
    kinds = [[kind for kind in KINDS if re.search(kind, title)] for title in titles]
    assert all(len(found) == 1 for found in kinds), titles
    assert {found[0] for found in kinds} == set(KINDS)


@every_taught
def test_every_solution_asserts_and_a_cell_judges_the_answer(name: str):
    """A stub runs as it stands; its solution holds a right answer and a wrong one against it."""
    solutions, judged = dict(SOLUTION.findall(PAGES[name])), 0
    for _, label, body in EXERCISE.findall(PAGES[name]):
        held, stub = cells(solutions[label]), cells(body)
        assert re.search(r"\bassert\b|assert_(close|allclose|array_equal)\b", held), label
        if stub:
            judged += 1
            assert "from drot.exercises import check" in stub, label
            assert re.search(r"^answer = None  # \S", stub, re.M), f"{label}: no stub"
            test = re.search(r"^check\(answer, (\w+)\)$", stub, re.M)
            assert test, f"{label}: the cell must end with its verdict"
            assert re.search(rf"assert check\(.*, {test[1]}\)\.right\b(?! is False)", held), label
            wrong = rf"{test[1]}\)\.right is False|not check\(|verdict\.right is False"
            assert re.search(wrong, held), label
    assert judged >= 1


@every_chapter
def test_chapter_takes_the_time_that_it_says(name: str):
    """At most 2,000 words outside folds, optional parts and exercises, and the minutes of them."""
    words = core_words(PAGES[name])
    assert words <= 2000
    assert f"**Time** about {minutes(words)} minutes" in PAGES[name], minutes(words)


@pytest.mark.parametrize("name", WITH_CODE)
def test_code_that_is_shown_fits_the_page(name: str):
    """86 characters a line at 1440 pixels, 81 in the box of an answer."""
    for cell in CELL.findall(PAGES[name]):
        options = re.match(r"(?:---\n.*?\n---\n|:[^\n]*\n)*", cell, re.S)[0]
        if not re.search("(?:hide|remove)-(?:input|cell)", options):
            width = 81 if "from drot.exercises import check" in cell else 86
            assert max(map(len, cell[len(options) :].splitlines()), default=0) <= width


def names(cell: str) -> tuple[set[str], set[str]]:
    """What a cell defines at its top level, and what it takes from there, in functions too."""
    made, taken, tables = set(), set(), [symtable.symtable(cell, "cell", "exec")]
    for name in tables[0].get_symbols():
        if name.is_assigned() or name.is_imported():
            made.add(name.get_name())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found = (s for s in table.get_symbols() if s.is_referenced())
        taken |= {s.get_name() for s in found if s.is_global() or table.get_type() == "module"}
    return made, taken


@pytest.mark.parametrize("name", [*CHAPTERS, *FURTHER, "book/quickstart"])
def test_code_that_is_shown_runs_without_what_is_not(name: str):
    """A reader can copy a page's code: names come from cells that are shown, or can be unfolded."""
    known = {*dir(builtins), "get_ipython"}
    for cell in CELL.findall(PAGES[name]):
        options = re.match(r"(?:---\n.*?\n---\n|:[^\n]*\n)*", cell, re.S)[0]
        if not re.search("remove-(?:input|cell)", options):
            made, taken = names(cell[len(options) :])
            assert not taken - made - known
            known |= made


def label(name: str) -> str:
    return re.search(r"^\((ch-[\w-]+)\)=$", PAGES[name], re.M)[1]


ENTRY = re.compile(r"^\((err-[\w-]+)\)=\n###? [^\n]+\n(.*?)(?=^\(|^## |\Z)", re.M | re.S)
ROW = re.compile(r"^\* - \((err-[\w-]+)\)=\n( +```\{rubric\} \S.*?)(?=^\* -|^:::)", re.M | re.S)


def test_corrections_are_whole():
    """Each says what is printed and what holds, is named at the top, and has a check.

    That is a cell, or one that a row takes a number from, or a test: its own, or a statement's.
    """
    page = PAGES["book/errata"]
    top, remarks = page.split("(sec-letters)=")[0], page.split("(sec-remarks)=")[1]
    tests = "".join(path.read_text("utf8") for path in (ROOT / "tests").rglob("test_*.py"))
    entries, rows = dict(ENTRY.findall(page)), dict(ROW.findall(page))
    assert len(entries) > 10 and len(rows) > 20
    for label, text in (entries | rows).items():
        glued = [f'glue("{key}"' for key in re.findall(r"\{glue:text\}`(\w+)", text)]
        code = [cell for cell in CELL.findall(page) if any(key in cell for key in glued)]
        named = re.findall(r"\{prf:ref\}`([\w-]+)`, whose test is the check", text) or [label]
        own = all(f"def test_{name.replace('-', '_')}(" in tests for name in named)
        assert own or "assert " in cells(text) + "".join(code), label
    for label, text in entries.items():
        assert "**Printed**" in text and re.search(r"\*\*(holds|instead)\*\*", text.lower()), label
        assert f"({label})=" in remarks or f"{{ref}}`{label}`" in top, label


TERM = re.compile(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`")
GLOSSARY = PAGES["book/glossary"].split("```{glossary}\n")[1].rsplit("```", 1)[0]
WORDS = [line.strip() for line in GLOSSARY.splitlines() if line and not line.startswith(" ")]


@every_taught
def test_our_map_is_the_last_thing_before_the_exercises(name: str):
    heads = re.findall(r"^## (.+)$", PAGES[name], re.M)
    assert heads[-2:] == ["Exercises", "What to keep"]
    assert "Our map now" not in heads[:-3]


@every_chapter
def test_chapter_says_what_comes_next(name: str):
    """The last line names the next page, by its label."""
    other = ROUTE[ROUTE.index(name) + 1]
    (line,) = re.findall(r"^\*\*Ahead:\*\* (.+)$", PAGES[name], re.M)
    refs = re.findall(r"\{ref\}`(?:[^`<]*<)?(ch-[\w-]+)>?`", line)
    assert label(other) in refs, f"the line must name {other}"
    assert line.endswith(".") and line.count(". ") <= 1, "a sentence, or two"


def test_glossary_is_sorted_and_every_word_is_linked():
    assert sorted(set(WORDS), key=str.lower) == WORDS
    linking = [*CHAPTERS, *FURTHER, "book/notation"]
    found = {word for text in [GLOSSARY, *map(PAGES.get, linking)] for word in TERM.findall(text)}
    assert set(WORDS) <= found, sorted(set(WORDS) - found)
