"""What the pages of book/reproductions share: records, numbers as text, tables.

globals().update(runpy.run_path("../../benchmarks/pages.py"))    in a cell
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import drot
import torch
from IPython.display import HTML, Markdown
from myst_nb import glue
from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).parent / "results"

threadpool_limits(1)  # many small problems: threads would wait for each other more than they help
torch.set_num_threads(1)


def read(name: str) -> tuple[str, list[dict[str, str]]]:
    """When and with what it was recorded, and the rows."""
    lines = (RESULTS / f"{name}.csv").read_text("utf8").splitlines()
    facts = [line[2:] for line in lines if line.startswith("#") and "seconds" not in line]
    made = "; ".join(fact.removeprefix("date ").removeprefix("processor ") for fact in facts)
    return made, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def put(prefix: str = "", **values) -> None:
    """Numbers for the text, each under its name after the prefix."""
    for name, value in values.items():
        glue(prefix + name, value, display=False)


def one(x: float, digits: int = 1) -> str:
    """A number with one digit after the point, unless said."""
    text = f"{x:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def signed(x: float, digits: int = 1) -> str:
    """A difference, with its sign."""
    return "+" * (float(f"{x:.{digits}f}") > 0) + one(x, digits)


def spread_of(values: Sequence[float], of=one) -> str:
    """Mean ± standard deviation, where there are several."""
    spread = f"\u00a0±\u00a0{statistics.pstdev(values):.1f}" if len(values) > 1 else ""
    return of(statistics.fmean(values)) + spread


def words(count: int) -> str:
    """A small count."""
    return ["none", "one", "two", "three", "four", "five", "six", "seven", "eight"][count]


def up_to(x: float) -> str:
    """One digit, rounded up: nothing lies beyond."""
    return one(math.ceil(round(10 * x, 6)) / 10)


def at_least(x: float) -> str:
    """One digit, rounded down."""
    return one(math.floor(round(10 * x, 6)) / 10)


def judged(count: float, of: float) -> str:
    """What was printed for all holds on all, in part on more than half, else it differs."""
    return "holds" if count == of else "in part" if 2 * count > of else "differs"


def nearness(ours: float, theirs: float, spread: float) -> str:
    """How many of the printed standard deviations ours is away: two hold, four are near."""
    away = abs(ours - theirs) / spread
    return "holds" if away <= 2 else "near" if away <= 4 else "differs"


def grouped(n: int | str) -> str:
    """10 000, on one line."""
    return f"{int(n):,}".replace(",", "\u202f")


def power(value: float | str) -> str:
    """One digit and a power of ten, on one line."""
    digit, exponent = f"{float(value):.0e}".split("e")
    if int(exponent) >= -2:
        return f"{float(value):.1g}"
    factor = "" if digit == "1" else rf"{digit} \cdot "
    return f"${factor}10^{{{int(exponent)}}}$"


def table(head: str | Sequence, rows: Iterable[Sequence], left: int = 1) -> Markdown:
    """Markdown, with some columns of words first; the head may be one string with bars."""
    head = head.split(" | ") if isinstance(head, str) else head
    lines = [head, [":--"] * left + ["--:"] * (len(head) - left), *rows]
    return Markdown("\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines))


def asked(titles: dict[str, str], instead: str) -> HTML:
    """Whether the data sets are at hand, by their names in ``drot.datasets``, for the reader."""
    missing = [title for name, title in titles.items() if not drot.datasets.available(name)]
    note = "The data are here: the checks of this page were run on them."
    if missing:
        note = (
            "<strong>Skipped: data of this page are absent</strong> (" + ", ".join(missing) + "). "
            f"The tables are the recorded ones{instead}. The page Data sets says how to get them."
        )
    return HTML(
        f'<div class="admonition note"><p class="admonition-title">Data</p><p>{note}</p></div>'
    )
