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


PARTS = [part for part in re.split(r"^## ", MAP, flags=re.M)[1:] if rows(part)]
TABLES = {CITE.search(part)[1]: rows(part) for part in PARTS}
SOURCES = {key: "\n".join(row[0] for row in table) for key, table in TABLES.items()}
THESIS = re.compile(r"\((.*)\)$", re.M)  # "Remark 2 (Remark 4.1)"
MAPPED = {key: numbers(THESIS.sub("", text)) for key, text in SOURCES.items()}
MAPPED["thesis"] = set().union(*(numbers("\n".join(THESIS.findall(t))) for t in SOURCES.values()))


def owners(line: str, name: re.Match, paper: str) -> set[str]:
    """The works of which a name in a line may be a statement.

    "Lemma 7 of {cite:t}`key`" says it; else those cited beside it that number so; else the paper.
    """
    another = rf"(?: and (?:{KIND})s? {NUMBER})?"
    after = re.match(rf"{another}(?: \([^()]*\))? of \{{cite:t\}}`(\w+)`", line[name.end() :])
    number = re.search(NUMBER, name[0])[0]
    cited = {key for key in CITE.findall(line) if re.fullmatch(STYLE.get(key, ""), number)}
    return {after[1]} if after else cited or {paper}


def test_every_sourced_statement_is_on_the_map():
    for chapter, text in CHAPTERS.items():
        taught = CHAPTERS[chapter.removeprefix("further/")]  # the papers of a second page too
        head = re.search(r"^- \*\*Papers?\*\* (.*)$", taught, re.M)
        paper, *_ = [*CITE.findall(head[1] if head else ""), ""]
        for line in text.splitlines():
            for name in NAMED.finditer(line):
                works = owners(line, name, paper)
                if works <= set(STYLE):
                    known = set().union(*(MAPPED[key] for key in works))
                    assert numbers(name[0]) <= known, f"{chapter} names {name[0]} of {works}"


VERDICTS = {  # of statements, scores, figures and outlooks: how they begin
    "statements": ("holds", "{ref}"),
    "scores": ("in part", "differs", "not comparable"),
    "figures": ("seen", "by eye"),
    "outlooks": ("–",),
}
KINDS = ("false as stated", "hypothesis missing", "stronger than shown", "misprint")
LINKED = re.compile(r"\{ref\}`(?:([^`<]+) <)?(err-[\w-]+)>?`")
LABELLED = re.compile(r"^(?:\* - )?\((err-[\w-]+)\)=$", re.M)


def kinds() -> dict[str, list[str]]:
    """The kinds of each correction: of a section in the table at the top, of a row in its title."""
    top, rest = CHAPTERS["errata"].split("(sec-letters)=")
    found = {}
    for entries, kind, *_ in rows(top):
        found |= {entry: kind.split("; ") for _, entry in LINKED.findall(entries)}
    titled = r"\((err-[\w-]+)\)=\n +```\{rubric\} .* \((.*)\)\n"
    here = {entry: kind.split("; ") for entry, kind in re.findall(titled, rest)}
    index = r"(?:\n```\{index\}[^\n]*\n```\n)?"
    headed = rf"^\((err-[\w-]+)\)=\n## [^\n]*\n{index}\n\*([^*\n]*)\.\* \*\*Printed\*\*"
    said = {entry: kind.lower().split("; ") for entry, kind in re.findall(headed, top, re.M)}
    assert said.keys() == set(re.findall(r"^\((err-[\w-]+)\)=", top, re.M))
    here |= said
    assert all(here[entry] == found[entry] for entry in here.keys() & found.keys())
    return found | here


def test_every_correction_has_a_kind_and_they_are_counted():
    found, (first, remarks) = kinds(), CHAPTERS["errata"].split("(sec-remarks)=")
    assert set(found) == set(LABELLED.findall(first))
    assert {kind for some in found.values() for kind in some} == set(KINDS)
    counts = [sum(some[0] == kind for some in found.values()) for kind in KINDS]
    said = re.search(
        r"Of (\d+) corrections (\d+) are of something false as stated, (\d+) of a missing"
        r" hypothesis, (\d+) of words stronger than shown, (\d+) of misprints",
        first,
    )
    assert [int(number) for number in said.groups()] == [len(found), *counts]
    assert len(LABELLED.findall(remarks)) == 7 and "On seven statements" in first


def test_lines_lead_somewhere():
    """Each line names a place in this book, or is open; entries are those of the errata, all."""
    assert set(TABLES) == set(STYLE) - {"thesis"}
    entries = set(LABELLED.findall(CHAPTERS["errata"]))
    for _, _, here, verdict in (row for table in TABLES.values() for row in table):
        assert re.search(r"\{(prf:ref|eq|ref|numref)\}`|^open$", here)
        assert any(verdict.startswith(start) for some in VERDICTS.values() for start in some)
        assert {entry for _, entry in LINKED.findall(verdict)} <= entries
    named = {entry for _, entry in LINKED.findall(MAP)}
    assert named >= entries - {"err-losses"} and "err-losses" in MAP


def test_verdicts_are_counted():
    verdicts = [row[3] for table in TABLES.values() for row in table]
    n = {word: sum(v.startswith(word) for v in verdicts) for word in sum(VERDICTS.values(), ())}
    total = {about: sum(n[word] for word in words) for about, words in VERDICTS.items()}
    first = [sum(v.startswith(f"{{ref}}`{kind} <") for v in verdicts) for kind in KINDS]
    assert sum(total.values()) == len(verdicts) and n["not comparable"] == n["differs"] == 1
    assert sum(first) == n["{ref}"]
    for counted in (
        f"Of {total['scores']} lines {n['in part']} hold in part.",
        f"{total['statements']} lines on statements {n['holds']} hold, and {first[0]} have",
        f"({n['seen']} of {total['figures']} lines)",
    ):
        assert counted in MAP, counted
    starts = [("holds",), *((f"{{ref}}`{KINDS[k]} <",) for k in (1, 2, 3, 0)), ("in part",)]
    starts += [("differs", "not comparable"), ("seen",), ("by eye",)]
    shown = [list(map(int, row[1:])) for row in rows(MAP.split("\n## ")[0])]
    assert shown == [[sum(r[3].startswith(s) for r in t) for t in TABLES.values()] for s in starts]


def test_verdicts_name_the_kind_of_correction():
    """The gravest first, and a kind that the errata give the entry; of a remark, that it is one."""
    found, order = kinds(), (*KINDS, "remark")
    for verdict in (row[3] for table in TABLES.values() for row in table):
        links = LINKED.findall(verdict)
        for kind, entry in links:
            assert kind in found.get(entry, ["remark"]), (kind, entry)
        if verdict.startswith("{ref}"):
            grades = [order.index(kind) for kind, _ in links]
            assert grades == sorted(grades), verdict
