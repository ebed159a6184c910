"""The page of corrections says at its top who could be misled by each of them."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "book" / "14_errata.md").read_text("utf8")
ENTRY = re.compile(r"^\((err-[\w-]+)\)=\n## ([^\n]+)\n(.*?)(?=^\(|\Z)", re.M | re.S)


def test_every_correction_is_named_once_at_the_top():
    entries = [label for label, _, _ in ENTRY.findall(PAGE)]
    top = re.findall(r"\{ref\}`(err-[\w-]+)`", PAGE[: PAGE.index(f"({entries[0]})=")])
    assert sorted(top) == sorted(entries)


def test_every_correction_says_what_is_printed_what_holds_and_runs_a_check():
    for label, _, text in ENTRY.findall(PAGE):
        assert "**Printed**" in text and "**holds**" in text.lower(), label
        assert "{code-cell}" in text and "assert" in text, label
