"""The map of the papers: labels are there, no sourced statement is left out, no extent wrong."""

import re
from pathlib import Path

BOOK = Path(__file__).resolve().parents[2] / "book"
STYLE = {  # how each work numbers its statements
    "snekhorn": r"\d+",
    "graphcoupling": r"\d+",
    "distr": r"[2-4A-F]\.\d+|1",  # and one algorithm without a section
    "thesis": r"[2-8]\.\d+",
}
KIND = r"Theorem|Proposition|Lemma|Corollary|Remark|Definition|Algorithm"
NUMBER = r"(?:[A-F]\.)?\d+(?:\.\d+)?"
NAMED = re.compile(rf"\b({KIND}|{KIND.replace('y|', 'ie|')})s? ({NUMBER}(?:(?:,| and) {NUMBER})*)")
CITE = re.compile(r"\{cite:[pt]\}`(\w+)`")
MAP = (BOOK / "papers.md").read_text("utf8")
PAGES = sorted([*BOOK.glob("[01]*.md"), *BOOK.glob("further/*.md"), BOOK / "errata.md"])
CHAPTERS = {
    path.relative_to(BOOK).with_suffix("").as_posix(): path.read_text("utf8") for path in PAGES
}


def numbers(text: str) -> set[tuple[str, str]]:
    """("Lemma", "7"), ... for what a text names, plurals taken apart."""
    found = set()
    for kind, many in NAMED.findall(text):
        kind = "Corollary" if kind.startswith("Corollar") else kind
        found |= {(kind, number) for number in re.findall(NUMBER, many)}
    return found


def rows(part: str) -> list[list[str]]:
    """Lines of the table of a section."""
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


PARTS = [part for part in re.split(r"^## ", MAP, flags=re.M) if rows(part)]
TABLES = {CITE.search(part)[1]: rows(part) for part in PARTS}
MAPPED = {key: numbers("\n".join(row[0] for row in table)) for key, table in TABLES.items()}
MAPPED["thesis"] = numbers("\n".join(row[1] for table in TABLES.values() for row in table))


def owners(line: str, start: int, end: int, paper: str) -> tuple[str, ...]:
    """The works of which a name at line[start:end] may be a statement.

    "Lemma 7 of {cite:t}`key`" says it; else those cited beside it that number so; else the paper.
    """
    another = rf"(?: and (?:{KIND})s? {NUMBER})?"
    after = re.match(rf"{another}(?: \([^()]*\))? of \{{cite:t\}}`(\w+)`", line[end:])
    if after:
        return (after[1],)
    number = re.search(NUMBER, line[start:end])[0]
    cited = [key for key in CITE.findall(line) if re.fullmatch(STYLE.get(key, ""), number)]
    return tuple(sorted(set(cited))) or (paper,)


def sourced() -> set[tuple[str, tuple[str, ...], str, str]]:
    """(chapter, works, kind, number) for each numbered statement that a chapter names."""
    found = set()
    for chapter, text in CHAPTERS.items():
        taught = CHAPTERS[chapter.removeprefix("further/")]  # the papers of a second page too
        head = re.search(r"^- \*\*Papers?\*\* (.*)$", taught, re.M)
        keys = CITE.findall(head[1]) if head else []
        for line in text.splitlines():
            for name in NAMED.finditer(line):
                works = owners(line, name.start(), name.end(), keys[0] if keys else "")
                if set(works) <= set(STYLE):
                    found |= {(chapter, works, *one) for one in numbers(name[0])}
    return found


SOURCES = sorted(sourced())


def test_every_sourced_statement_is_on_the_map():
    for chapter, works, *statement in SOURCES:
        known = set().union(*(MAPPED[key] for key in works))
        assert tuple(statement) in known, f"{chapter} names {statement} of {' or '.join(works)}"


def test_lines_lead_somewhere():
    """Each line names a place in this book, or is open; entries are those of the errata, all."""
    assert set(TABLES) == set(STYLE) - {"thesis"}
    entries = set(re.findall(r"^(?:\* - )?\((err-[\w-]+)\)=$", CHAPTERS["errata"], re.M))
    verdicts = [row[3] for table in TABLES.values() for row in table]
    holds = sum(verdict.startswith("holds") for verdict in verdicts)
    mended = sum(verdict.startswith("{ref}") for verdict in verdicts)
    counted = f"Of {holds + mended} lines on statements {holds} hold as printed; {mended} lead"
    assert counted in MAP
    for _, _, here, correction in (row for table in TABLES.values() for row in table):
        assert re.search(r"\{(prf:ref|eq|ref|numref)\}`|^open$", here)
        assert correction
        assert set(re.findall(r"`([\w-]+)`", correction)) <= entries
    named = set(re.findall(r"\{ref\}`(err-[\w-]+)`", MAP))
    assert named >= entries - {"err-losses"} and "err-losses" in MAP
