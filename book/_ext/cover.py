"""Write tests/records/coverage.csv from the data that ``make coverage`` has gathered.

One row a module: lines that can run, how many did, branches likewise, and the date.
"""

from __future__ import annotations

import csv
import datetime
import json
import sys
from pathlib import Path

RECORD = Path(__file__).resolve().parents[2] / "tests" / "records" / "coverage.csv"
FIELDS = ["module", "lines", "lines_covered", "branches", "branches_covered", "date"]


def rows(report: dict) -> list[list]:
    """From the report of ``coverage json``, by name of module, and their sum."""
    date = datetime.date.fromisoformat(report["meta"]["timestamp"][:10]).isoformat()
    keys = ["num_statements", "covered_lines", "num_branches", "covered_branches"]
    found = [
        [Path(path).stem, *(file["summary"][key] for key in keys), date]
        for path, file in report["files"].items()
    ]
    return [*sorted(found), ["all", *(report["totals"][key] for key in keys), date]]


def main(path: str) -> None:
    RECORD.parent.mkdir(exist_ok=True)
    table = rows(json.loads(Path(path).read_text("utf8")))
    with RECORD.open("w", encoding="utf8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *table])
    for name, lines, ran, branches, taken, _ in table:
        print(f"{name:<26}{ran:>6} of {lines:>5} lines {taken:>6} of {branches:>5} branches")


if __name__ == "__main__":
    main(sys.argv[1])
