"""Grids of cases through joblib, recorded row by row in a CSV file that a killed run can resume.

    swept = sweep.run(cases, function, path, fields=["residual", "seconds"])

A case is a dict of plain values, and ``function(**case)`` returns a dict of ``fields``. Each
finished case becomes a line of the file at once, whole or not at all: one write, then fsync. What
is in the file already is not computed again. A case that raises leaves its message in the column
``error``; the others go on, and the next run tries it again. When all is done the lines are put in
the order of the cases, so that a run that was killed and started again leaves the same file as one
that was not.

    python benchmarks/table3_scores.py --jobs 2                      processes of this machine
    python benchmarks/table3_scores.py --backend dask --jobs 2       Dask, a cluster of this machine
    python benchmarks/table3_scores.py --scheduler tcp://HOST:8786   Dask, a cluster that runs

The workers of a cluster need the package, the data, and this folder on ``PYTHONPATH``; only the
process that calls :func:`run` writes the file.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import fcntl
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib

__all__ = ["Busy", "Swept", "add_arguments", "options", "run"]

Case = Mapping[str, Any]
ERROR = "error"


class Busy(RuntimeError):
    """Another sweep is writing the same file."""


class Swept(NamedTuple):
    """How many cases were computed now, were there before, and raised."""

    done: int
    there: int
    failed: int


def run(
    cases: Iterable[Case],
    function: Callable[..., Mapping[str, Any]],
    path: str | os.PathLike,
    *,
    fields: Sequence[str],
    facts: str = "",
    error_column: bool = True,
    place: Callable[[dict[str, str]], Any] | None = None,
    show: Callable[[dict[str, str]], None] | None = None,
    backend: str = "loky",
    n_jobs: int = 1,
    scheduler: str | None = None,
) -> Swept:
    """Compute the cases that the file does not hold yet, and write each as it ends.

    Parameters
    ----------
    cases : iterable of dict
        Of the same names each; strings, numbers, booleans or None. Together the values are the
        key of a line: no two cases may be written alike.
    function : callable
        ``function(**case)`` returns a dict with the names ``fields``. Workers import it by name.
    path : path
        A CSV file: comment lines, the columns of the cases, ``fields``, and ``error``.
    fields : sequence of str
    facts : str
        Comment lines for the top of a new file.
    error_column : bool
        False leaves the column out: messages are printed, and failed cases leave no line.
    place : callable, optional
        Where a row (a dict of strings) belongs in the finished file. Default: the order of
        ``cases``, after rows of other cases.
    show : callable, optional
        Called with each new row.
    backend, n_jobs, scheduler
        Of joblib; ``scheduler`` is the address of a Dask cluster.

    Raises
    ------
    Busy
        If another sweep holds the file.
    ValueError
        If cases are not of one kind, or the file has other columns.
    """
    cases = [dict(case) for case in cases]
    names = list(cases[0]) if cases else []
    columns = [*names, *fields, *([ERROR] if error_column else [])]
    if len(set(columns)) != len(columns):
        raise ValueError(f"a column stands twice among {', '.join(columns)}")
    keys = [_key(case, names) for case in cases]
    if len(set(keys)) != len(keys):
        raise ValueError("two cases would be written alike")
    if not cases:
        return Swept(0, 0, 0)
    path = Path(path)
    with _held(path) as file, _until_told():
        rows = _open(file, columns, facts, path)
        known = {_key(row, names) for row in rows if not row.get(ERROR)}
        todo = [case for case, key in zip(cases, keys, strict=True) if key not in known]
        failed = 0
        work = _ended(function, todo, tuple(fields), backend, n_jobs, scheduler)
        with contextlib.closing(work):
            for case, values, message in work:
                row = _row(columns, case, values, message)
                failed += bool(message)
                if message and not error_column:
                    print(f"{case} failed: {message}", flush=True)
                    continue
                _write(file, _line(row[name] for name in columns))
                if show is not None:
                    show(row)
        _finish(file, path, columns, keys, names, place)
    return Swept(len(todo) - failed, len(cases) - len(todo), failed)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--backend``, ``--jobs`` and ``--scheduler``."""
    parser.add_argument("--backend", default="loky", help="of joblib: loky, dask, ...")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster that runs")


def options(asked: argparse.Namespace) -> dict[str, Any]:
    """What :func:`run` makes of those arguments."""
    return {"backend": asked.backend, "n_jobs": asked.jobs, "scheduler": asked.scheduler}


# -------------------------------------------------------------------------------------- workers


def _attempt(
    function: Callable[..., Mapping[str, Any]], case: dict[str, Any], fields: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The case, what the function made of it, and what it said if it raised."""
    try:
        values = dict(function(**case))
        if set(values) != set(fields):
            raise ValueError(f"the function returned {sorted(values)}, not {sorted(fields)}")
        return case, {name: _text(value) for name, value in values.items()}, ""
    except Exception as problem:
        return case, {}, f"{type(problem).__name__}: {problem}"


def _ended(
    function: Callable[..., Mapping[str, Any]],
    todo: list[dict[str, Any]],
    fields: tuple[str, ...],
    backend: str,
    n_jobs: int,
    scheduler: str | None,
) -> Iterator[tuple[dict[str, Any], dict[str, Any], str]]:
    """Cases as they end."""
    if not todo:
        return
    function = _importable(function)
    with _workers(backend, n_jobs, scheduler):
        # one case at a time to each worker: its row is written when it has ended
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        with contextlib.closing(
            parallel(joblib.delayed(_attempt)(function, case, fields) for case in todo)
        ) as found:
            yield from found


def _importable(function: Callable) -> Callable:
    """A function of the script that runs, as workers find it: in a module named as its file.

    There what it caches serves all cases of a worker.
    """
    script = getattr(sys.modules["__main__"], "__file__", None)
    local = "<" in function.__qualname__  # defined in another function: sent as it is
    if function.__module__ != "__main__" or local or script is None:
        return function
    return getattr(importlib.import_module(Path(script).stem), function.__qualname__)


@contextlib.contextmanager
def _workers(backend: str, n_jobs: int, scheduler: str | None) -> Iterator[None]:
    if scheduler is None and backend != "dask":
        with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
            yield
        return
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as stack:
        if scheduler is None:
            cluster = LocalCluster(n_workers=n_jobs, threads_per_worker=1, dashboard_address=None)
            scheduler = stack.enter_context(cluster)
        stack.enter_context(Client(scheduler))
        stack.enter_context(joblib.parallel_config(backend="dask", n_jobs=-1))
        yield


@contextlib.contextmanager
def _until_told() -> Iterator[None]:
    """SIGTERM ends the run as Ctrl-C does, with the exit status of a terminated process."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set a handler
        return

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# --------------------------------------------------------------------------------------- the file


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or "\n" in str(value) or "\r" in str(value):
        raise ValueError(f"{value!r} is not a number or a text of one line")
    return str(value)


def _key(case: Case, names: Sequence[str]) -> tuple[str, ...]:
    if missing := set(names) - set(case):
        raise ValueError(f"a case lacks {', '.join(sorted(missing))}")
    return tuple(_text(case[name]) for name in names)


def _row(columns: list[str], case: Case, values: Case, message: str) -> dict[str, str]:
    text = " ".join(message.split())  # one line, whatever was raised
    found = {**case, **values, ERROR: text}
    return {name: _text(found.get(name)) for name in columns}


@contextlib.contextmanager
def _held(path: Path) -> Iterator[io.FileIO]:
    """The file, opened for one sweep alone. The lock goes with its holder, however that ends."""
    while True:
        with open(path, "a+b", buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(f"another sweep is writing {path}") from None
            # the sweep before may just have put another file in its place
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield file
                return


def _open(file: io.FileIO, columns: list[str], facts: str, path: Path) -> list[dict[str, str]]:
    """Rows of a file that is new, whole, or torn in its last line, which is then cut off."""
    _, head, rows = _read(file, path)
    if head is None:
        file.truncate(0)
        _write(file, facts.encode() + _line(columns))
        return []
    if head != columns:
        raise ValueError(
            f"{path} has the columns {','.join(head)}; this sweep writes {','.join(columns)}: "
            "move the file away"
        )
    return rows


def _read(file: io.FileIO, path: Path) -> tuple[list[str], list[str] | None, list[dict[str, str]]]:
    """Comments, columns (None where there are none yet) and rows; a torn last line is cut off."""
    file.seek(0)
    content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        file.truncate(len(whole))
    lines = whole.decode().split("\n")[:-1]
    top = next((k for k, text in enumerate(lines) if not text.startswith("#")), len(lines))
    if top == len(lines):
        return lines, None, []
    head, *rows = csv.reader(lines[top:])
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"{path}: a line has {len(row)} fields, not {len(head)}: {row}")
    return lines[:top], head, [dict(zip(head, row, strict=True)) for row in rows]


def _line(values: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


def _write(file: io.FileIO, content: bytes) -> None:
    """One write, on disk when it returns."""
    if file.write(content) != len(content):
        raise OSError(f"{file.name}: the disk is full")
    os.fsync(file.fileno())


def _finish(
    file: io.FileIO,
    path: Path,
    columns: list[str],
    keys: list[tuple[str, ...]],
    names: list[str],
    place: Callable[[dict[str, str]], Any] | None,
) -> None:
    """Put the lines in order, the last of each case only; the file changes whole or not at all."""
    facts, _, rows = _read(file, path)
    last = {_key(row, names): row for row in rows}
    if place is None:
        number = {key: k for k, key in enumerate(keys)}
        kept = sorted(last, key=lambda key: number.get(key, -1))  # stable
    else:
        kept = sorted(last, key=lambda key: place(last[key]))
    content = "".join(f"{fact}\n" for fact in facts).encode() + _line(columns)
    content += b"".join(_line(last[key][name] for name in columns) for key in kept)
    part = path.with_name(path.name + ".part")
    with open(part, "wb", buffering=0) as new:
        _write(new, content)
    part.replace(path)
