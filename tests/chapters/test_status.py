"""The table of chapters in book/status.md against _toc.yml: no chapter is claimed or forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
# Pages that are no chapters.
OTHER = {"preface", "explorer", "notation", "glossary", "troubleshooting"}
OTHER |= {"datasets", "api", "status", "reliability", "licences", "bibliography", "genindex"}


def claimed() -> dict[str, str]:
    """Pages that the table links to, and the state that it gives them."""
    text = (ROOT / "book" / "status.md").read_text("utf8")
    return dict(re.findall(r"^\|[^|]*\| \{doc\}`([^`]+)` \| (\w+) \|$", text, re.M))


def test_chapters_are_those_of_the_contents():
    """Every chapter of the book is in the table, and nothing else is said to be here."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))["parts"]
    files = [chapter["file"] for part in parts for chapter in part["chapters"]]
    chapters = {name.removeprefix("book/") for name in files} - OTHER
    assert set(claimed()) == chapters
    assert set(claimed().values()) <= {"here", "begun"}
