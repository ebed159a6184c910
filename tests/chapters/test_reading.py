"""A reader is led: chapters name their neighbours, and the words of the glossary are linked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
TOC = re.findall(r"^\s*- file: book/(\S+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
PAGES = {name: (BOOK / f"{name}.md").read_text("utf8") for name in TOC}
LABELS = {name: re.search(r"^\((ch-[\w-]+)\)=$", text, re.M)[1] for name, text in PAGES.items()}
CHAPTERS = [name for name in TOC if re.match(r"\d\d_", name)]
TERM = re.compile(r"\{term\}`(?:[^`<]*<([^`>]+)>|([^`<]+))`")
GLOSSARY = PAGES["glossary"].split("```{glossary}\n")[1].rsplit("```", 1)[0]
WORDS = [line.strip() for line in GLOSSARY.splitlines() if line and not line.startswith(" ")]


def terms(text: str) -> list[str]:
    return [there or plain for there, plain in TERM.findall(text)]


@pytest.mark.parametrize("name", CHAPTERS)
def test_chapter_names_its_neighbours(name: str):
    """The last lines sum up the page before and the page after, by their labels."""
    at = TOC.index(name)
    for word, other in (("Behind us", TOC[at - 1]), ("Ahead", TOC[at + 1])):
        lines = re.findall(rf"^\*\*{word}:\*\* (.+)$", PAGES[name], re.M)
        assert len(lines) == 1, f"{name}: {word}"
        refs = re.findall(r"\{ref\}`(?:[^`<]*<)?(ch-[\w-]+)>?`", lines[0])
        assert LABELS[other] in refs, f"{name}: {word} must name {other}"
        assert lines[0].endswith(".") and lines[0].count(". ") <= 1, "a sentence, or two"


def test_words_are_sorted_and_single():
    assert sorted(set(WORDS), key=str.lower) == WORDS


@pytest.mark.parametrize("name", PAGES)
def test_linked_words_are_in_the_glossary(name: str):
    assert set(terms(PAGES[name])) <= set(WORDS)


@pytest.mark.parametrize("name", [name for name in CHAPTERS if name < "13"])
def test_chapter_links_its_words(name: str):
    assert len(set(terms(PAGES[name]))) >= 3


def test_every_word_is_linked_from_a_chapter_or_the_notation():
    found = {word for name in [*CHAPTERS, "notation"] for word in terms(PAGES[name])}
    assert set(WORDS) <= found | set(terms(GLOSSARY)), sorted(set(WORDS) - found)


INDEX = re.compile(r"(.*)\n(.*)\n```\{index\} (.+)\n(.*)\n(.*)\n(.*)")


@pytest.mark.parametrize("name", [name for name in PAGES if "{index}" in PAGES[name]])
def test_index_entries_stand_alone(name: str):
    """One line between blank ones, which takes no label from what it precedes."""
    found = INDEX.findall(PAGES[name])
    assert len(found) == PAGES[name].count("{index}"), "an entry is not written as ```{index} a; b"
    for before, blank, _, fence, after, heading in found:
        assert (blank, fence, after) == ("", "```", ""), (name, before)
        assert not re.match(r"\([\w-]+\)=$", before), f"{before} has lost its heading"
        assert not heading.startswith(("#", "(")), f"an entry before a heading: {heading}"


@pytest.mark.parametrize("name", CHAPTERS)
def test_index_entries_are_single(name: str):
    """Six or more in a chapter, each once; an entry and at most one level below it."""
    lines = [found[2] for found in INDEX.findall(PAGES[name])]
    entries = [
        entry.strip().removeprefix("!").strip() for line in lines for entry in line.split(",")
    ]
    assert len(entries) >= 6
    assert not {entry for entry in entries if entries.count(entry) > 1}
    for entry in entries:
        assert re.fullmatch(r"[^;$*`{}:!]+(; [^;$*`{}:!]+)?", entry), entry
