"""The map of the papers: labels are there, no sourced statement is left out, no extent wrong."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

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
    for _, _, here, correction in (row for table in TABLES.values() for row in table):
        assert re.search(r"\{(prf:ref|eq|ref|numref)\}`|^open$", here)
        assert correction == "–" or set(re.findall(r"`([\w-]+)`", correction)) <= entries
    named = set(re.findall(r"\{ref\}`(err-[\w-]+)`", MAP))
    assert named >= entries - {"err-losses"} and "err-losses" in MAP


def test_perspectives_of_each_paper_have_lines():
    """Section 6, 5 and 6: several lines, each with a place in the book or the word open."""
    for key, section in (("snekhorn", 6), ("graphcoupling", 5), ("distr", 6)):
        lines = [row for row in TABLES[key] if row[0].startswith(f"Section {section}: ")]
        assert len(lines) >= 3, key
    assert all(
        row[0].startswith("Section") for t in TABLES.values() for row in t if "open" in row[2]
    )


# -------------------------------------------------------------------------------- extent of lines

ITEM = re.compile(r"\b(Table|Figure|[Aa]ppendi)[sxce]* (F?[\d.]+)(?: (?:and|to) (F?[\d.]+))?")


def record(name: str, **wanted: str) -> list[dict[str, str]]:
    """Rows of a recorded grid; SNAREseq has one row in the tables of SNEkhorn."""
    lines = (BOOK.parent / "benchmarks" / "results" / f"{name}.csv").read_text("utf8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def sets(name: str, **wanted: str) -> set[str]:
    return {row["data"] for row in record(name, **wanted) if "unit rows" not in row["data"]}


def part(n: object, printed: int, what: str) -> set[str]:
    """Nothing, where all that is printed is here."""
    return set() if n == printed else {f"{n} of {printed} {what}"}


def held() -> dict[tuple[str, str], set[str]]:
    """How much of a table or figure the records hold, of how much that is printed."""
    at_hand = {}
    one = {"expression"}  # SNAREseq has one row
    names = {"Table 2": "table2_ari", "Table 3": "table3_scores", "Figure 6": "figure6_ari"}
    for (item, name), printed in zip(names.items(), (12, 16, 4), strict=True):
        at_hand["snekhorn", item] = part(len(sets(name) - one), printed, "sets")
    at_hand["snekhorn", "Figure 8"] = set()
    for data, name, printed in (  # multiples of 10 up to min(n, 300)
        ("coil20", "COIL-20", 30), ("olivetti", "Olivetti", 30), ("umist", "UMIST", 30),
        ("chromatin", "SNAREseq", 30), ("scgem", "scGEM", 17),
    ):  # fmt: skip
        rows = record("table3_scores", data=data, method="t-SNEkhorn")
        found = part(len({row["perplexity"] for row in rows}), printed, f"on {name}")
        at_hand["snekhorn", "Figure 8"] |= found
    for item, method in (("Table 2", "openTSNE"), ("Table 3", "UMAP")):
        rows = record("graph_coupling_tables", method=method)
        runs = [(r["data"], r["start"]) for r in rows if r["n"] in ("8920", "9720")]
        seeds = max(runs.count(run) for run in runs)  # one where nothing is random
        found = part(len({data for data, _ in runs}), 5, "sets") | part(seeds, 5, "seeds")
        at_hand["graphcoupling", item] = found
    settings = {}
    for kind in ("sea", "ea", "umap", "gram", "coot"):
        rows = [row for row in record("distr_tables", similarity=kind) if row["method"] != "CPD"]
        numbers = {(row["data"], row["prototypes"]) for row in rows if row["n"] != "10000"}
        most = max(sum(name == data for name, _ in numbers) for data in sets("distr_tables"))
        settings[kind] = (
            part(len({row["data"] for row in rows}), 8, "sets")
            | part(len({row["perplexity"] for row in rows}), 4, "perplexities")
            | part(most, 6, "numbers")
        )
    for item in ("Figure 3", "Figure 5", "F.1", "F.4", "F.6"):
        at_hand["distr", item] = settings["sea"]
    at_hand["distr", "F.3"] = settings["ea"] | settings["umap"]
    both = sets("distr_tables", similarity="sea", clustering="kmeans")
    wide = sets("distr_tables", similarity="gram", components="5")
    timed = sets("distr_tables", method="DistR") & {"chromatin", "zeisel", "mnist"}
    at_hand["distr", "F.7"] = part(len(both), 8, "sets")
    at_hand["distr", "F.8"] = part(len(wide), 8, "sets")
    at_hand["distr", "F.9"] = part(len(timed), 3, "sets")
    found = part(
        len(sets("distr_tables", similarity="coot") - {"zeisel", "zeisel_subclasses"}), 6, "sets"
    )
    at_hand["distr", "Table 2"] = at_hand["distr", "F.2"] = found
    return at_hand


HELD = held()
EXPERIMENTS = [
    (key, here, [n if n[0] == "F" else f"{kind} {n}" for kind, *both in found for n in both if n])
    for key, table in TABLES.items()
    for printed, _, here, _ in table
    if (found := ITEM.findall(printed.replace("appendix B", "").replace("Appendix B", "")))
]


@pytest.mark.parametrize(("key", "here", "items"), EXPERIMENTS)
def test_a_line_says_how_much_of_an_experiment_is_here(key: str, here: str, items: list[str]):
    """What it counts is what the record holds."""
    stated = re.findall(r"\d+(?: to \d+)? of \d+ (?:on )?[\w-]+", here)
    assert set(stated) == set().union(*(HELD.get((key, item), set()) for item in items))
    if "images of MNIST" in here:
        runs = record("distr_tables", data="mnist", similarity="coot")
        assert all(f"on {run['n']} images" in here for run in runs)
