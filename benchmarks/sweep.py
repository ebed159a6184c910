"""Grids of cases through joblib, recorded row by row in a CSV file that a killed run can resume.

    swept = sweep.run(cases, function, path, fields=["residual", "seconds"])

A case is a dict of plain values, and ``function(**case)`` returns a dict of ``fields``. Each
finished case becomes a line of the file at once, in one write. What is in the file already is not
computed again. A case that raises is printed and leaves no line: the next run tries it again. When
all is done the lines are put in order, so that a run that was killed and started again leaves the
same file as one that was not.

    python benchmarks/table3_scores.py --jobs 2    two processes; --backend takes any of joblib's
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import importlib
import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib


class Swept(NamedTuple):
    """How many cases were computed now, were there before, and raised."""

    done: int
    there: int
    failed: int


def run(
    cases: Iterable[Mapping[str, Any]],
    function: Callable[..., Mapping[str, Any]],
    path: Path,
    *,
    fields: Sequence[str],
    facts: str = "",
    place: Callable[[dict[str, str]], Any] | None = None,
    backend: str = "loky",
    n_jobs: int = 1,
) -> Swept:
    """Compute the cases that the file does not hold yet, and write each as it ends.

    The values of a case are the key of its line. ``facts`` are comment lines for the top of a new
    file; ``place`` says where a row, a dict of strings, belongs in it (default: in the order of
    ``cases``, after rows of others). A second run on the same file raises BlockingIOError.
    """
    cases = [dict(case) for case in cases]
    names = list(cases[0])
    columns, number = [*names, *fields], {_key(case, names): k for k, case in enumerate(cases)}
    if len(number) < len(cases):
        raise ValueError("two cases would be written alike")
    with path.open("a+", encoding="utf8", newline="") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        top, rows = _read(file, columns)
        if not top:
            file.truncate(0)
            file.write(facts + _line(columns))
            file.flush()
        known = {_key(row, names) for row in rows}
        todo = [case for case in cases if _key(case, names) not in known]
        function, failed = _importable(function), 0
        # one case at a time to each worker: its row is written when it has ended
        work = joblib.Parallel(n_jobs, backend, return_as="generator_unordered", batch_size=1)
        for case, values, message in work(joblib.delayed(_attempt)(function, c) for c in todo):
            if not message and values.keys() != set(fields):
                message = f"returned {sorted(values)}, not {sorted(fields)}"
            print(*case.values(), message or list(values.values()), flush=True)
            failed += bool(message)
            if not message:
                file.write(_line((case | values)[name] for name in columns))
                file.flush()
        top, rows = _read(file, columns)
    rows.sort(key=place or (lambda row: number.get(_key(row, names), -1)))
    part = path.with_name(path.name + ".part")
    part.write_text(top + "".join(_line(row.values()) for row in rows), "utf8", newline="")
    part.replace(path)
    return Swept(len(todo) - failed, len(cases) - len(todo), failed)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--backend`` and ``--jobs``."""
    parser.add_argument("--backend", default="loky", help="of joblib: loky, dask, ray, ...")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")


def options(asked: argparse.Namespace) -> dict[str, Any]:
    """What :func:`run` makes of those arguments."""
    return {"backend": asked.backend, "n_jobs": asked.jobs}


def _attempt(function: Callable, case: dict[str, Any]) -> tuple[dict, dict, str]:
    """The case, what the function made of it, and what it said if it raised."""
    try:
        return case, dict(function(**case)), ""
    except Exception as problem:
        return case, {}, f"{type(problem).__name__}: {problem}"


def _importable(function: Callable) -> Callable:
    """A function of the script that runs, as workers find it: in a module named as its file.

    There what it caches serves all cases of a worker.
    """
    if function.__module__ != "__main__":
        return function
    script = Path(sys.modules["__main__"].__file__).stem
    return getattr(importlib.import_module(script), function.__name__)


def _key(row: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple("" if row[name] is None else str(row[name]) for name in names)


def _line(values: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def _read(file: io.TextIOWrapper, columns: list[str]) -> tuple[str, list[dict[str, str]]]:
    """Comments and columns, "" where these are not there yet, and the rows.

    A last line without its end was torn, and is cut off.
    """
    file.seek(0)
    lines = file.read().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        file.truncate(len("".join(lines[:-1]).encode()))
        lines.pop()
    comments = [line for line in lines if line.startswith("#")]
    rows = list(csv.reader(lines[len(comments) :]))
    if not rows:
        return "", []
    if rows[0] != columns:
        raise ValueError(f"{file.name} has the columns {','.join(rows[0])}: move the file away")
    top = "".join(comments) + _line(columns)
    return top, [dict(zip(columns, row, strict=True)) for row in rows[1:]]
