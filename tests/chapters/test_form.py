"""The pages fit together: headers, labels, exercises, and nothing that needs a network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from myst_nb.core.read import is_myst_markdown_notebook

ROOT = Path(__file__).resolve().parents[2]
TOC = re.findall(r"^\s*(?:- file|root): (\S+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
PAGES = {name: (ROOT / f"{name}.md").read_text("utf8") for name in TOC}
CHAPTERS = [name for name, text in PAGES.items() if "{code-cell}" in text]


def cells(text: str) -> list[str]:
    return re.findall(r"^```\{code-cell\}.*?\n(.*?)^```$", text, re.M | re.S)


def test_contents_list_every_page():
    files = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in (ROOT / "book").rglob("*.md")
        if not any(part.startswith(("_", ".")) for part in path.relative_to(ROOT).parts)
    }
    assert files == set(TOC) - {"genindex"}  # which Sphinx writes


@pytest.mark.parametrize("name", CHAPTERS)
def test_chapter_has_a_whole_header(name: str):
    assert is_myst_markdown_notebook(PAGES[name]), "code cells, but no Jupytext header"
    header = yaml.safe_load(PAGES[name].split("---")[1])
    assert header["kernelspec"]["name"] == "python3"
    assert header["kernelspec"]["display_name"]  # jupytext refuses to open a file without it
    assert header["jupytext"]["text_representation"]["format_name"] == "myst"


@pytest.mark.parametrize("name", CHAPTERS)
def test_chapter_needs_no_network_and_no_installation(name: str):
    text = "\n".join(cells(PAGES[name]))
    found = re.search(r"^\s*[!%].*|pip install|\burllib\b|\brequests\b|sys\.path", text, re.M)
    assert not found, found and found[0]


@pytest.mark.parametrize("name", PAGES)
def test_every_exercise_has_a_closed_solution(name: str):
    exercises = re.findall(r"\{exercise(?:-start)?\}.*\n(?::.*\n)*?:label: (\S+)", PAGES[name])
    solutions = re.findall(r"\{solution(?:-start)?\} *(\S+)\n((?::.*\n)*)", PAGES[name])
    assert sorted(exercises) == sorted(label for label, _ in solutions)
    for label, options in solutions:
        assert re.search(r"^:class: dropdown$", options, re.M), f"the solution of {label} is open"


@pytest.mark.parametrize("name", PAGES)
def test_proofs_fold_with_a_dropdown(name: str):
    """A folded prf:proof breaks a script of the site, and every solution stays open."""
    assert "{prf:proof}" not in PAGES[name]


@pytest.mark.parametrize("name", PAGES)
def test_every_theorem_is_followed_by_its_proof(name: str):
    statement = re.compile(r"^[`:]{3,}\{prf:(?:theorem|proposition|lemma|corollary)\}", re.M)
    parts = statement.split(PAGES[name])
    for rest in parts[1:]:
        folded = re.search(r"^[`:]{3,}\{dropdown\}.*\bproof\b", rest, re.M | re.I)
        assert folded, f"no proof follows the statement {rest[:80]!r}"


def test_labels_and_glued_keys_are_unique():
    labels, keys = [], []
    for text in PAGES.values():
        labels += re.findall(r"^:label: *(\S+)|^\((\S+)\)=$|^\$\$ *\(([\w-]+)\)$", text, re.M)
        keys += set(re.findall(r"""\bglue\(\s*["']([^"']+)["']""", "\n".join(cells(text))))
    labels = [next(filter(None, groups)) for groups in labels]
    for names in (labels, keys):
        assert not {x for x in names if names.count(x) > 1}
