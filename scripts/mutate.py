"""Would the tests notice? Small changes of the package, drawn by a seed, each tried by its tests.

    pip install cosmic-ray pytest-cov
    python scripts/mutate.py                           # 200 changes of the whole package
    python scripts/mutate.py --sample 20 gromov costs  # 20 of two packages

cosmic-ray makes the changes (a sign, an operator, a comparison, a number, a condition), in a copy.
The tests that reach the changed line run until one fails; which these are, coverage tells once, and
the answer is kept in `_build/mutants` (remove it when tests or package have changed). Changes that
no test noticed are printed: each wants an assertion, or makes no difference.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cosmic_ray.commands.init import _all_work_items
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "pkg" / "src" / "drot"
RECORD = ROOT / "_build" / "mutants"
ASKED = ("tests/theorems", "tests/properties")
HANG = ("-o", "faulthandler_timeout=100")  # a test that takes longer counts as a failure
KINDS = ("Add Sub Mul Div Pow", "Eq NotEq Lt LtE Gt GtE", "Is IsNot")  # replace each other
ALIKE = {(a, b) for kind in KINDS for a in kind.split() for b in kind.split()}
OTHERS = ("USub", "Delete_Not", "AddNot", "TrueWithFalse", "FalseWithTrue", "AndWithOr")
OTHERS += ("OrWithAnd", "NumberReplacer", "BreakWithContinue", "ZeroIterationForLoop")


def wanted(operator: str) -> bool:
    pair = re.search(r"(?:Binary|Comparison)Operator_(\w+)_(\w+)", operator)
    return pair.groups() in ALIKE if pair else operator.endswith(OTHERS)


def pytest(*arguments: str, source: Path = PACKAGE.parent, record: Path | None = None, **options):
    env = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    env |= {"COVERAGE_FILE": str(record)} if record else {}
    words = ["-m", "pytest", "-q", "-n0", "--dist=no", "-p", "no:cacheprovider", *arguments]
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=env, **options)


def reached() -> CoverageData:
    """Which test ran which line."""
    file = RECORD / "coverage"
    if not file.exists():
        RECORD.mkdir(parents=True, exist_ok=True)
        options = (f"--cov={PACKAGE}", "--cov-context=test", "--cov-report=")
        pytest(*ASKED, *options, check=True, record=file)
    data = CoverageData(str(file))
    data.read()
    return data


@functools.cache
def contexts(data: CoverageData, path: str) -> dict[int, list[str]]:
    return data.contexts_by_lineno(path)


def tests_of(data: CoverageData, path: Path, line: int) -> list[str]:
    found = contexts(data, str(path)).get(line, ())
    return sorted({context.partition("|")[0] for context in found if "::" in context})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", help="default: all")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="end the sample then")
    asked = parser.parse_args()
    paths = [path for name in asked.packages or [""] for path in (PACKAGE / name).rglob("*.py")]
    data, changes = reached(), []
    for item in _all_work_items(sorted(paths), {}):
        (spec,) = item.mutations
        path, line = Path(spec.module_path).resolve(), spec.start_pos[0]
        if wanted(spec.operator_name) and (tests := tests_of(data, path, line)):
            changes.append((path, line, spec, tests))
    random.Random(asked.seed).shuffle(changes)
    until = time.monotonic() + 60 * asked.minutes
    killed = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PACKAGE, Path(folder) / "drot")
        names = Path(folder) / "names"
        for path, line, spec, tests in changes:
            operator = get_operator(spec.operator_name)(**spec.operator_args)
            old = path.read_text("utf8")
            new = mutate_code(old, operator, spec.occurrence)
            if time.monotonic() > until or tried == asked.sample:
                break
            if new is None or new == old:
                continue
            copy = Path(folder) / "drot" / path.relative_to(PACKAGE)
            copy.write_text(new, "utf8")
            names.write_text("\n".join(tests), "utf8")  # too many for a command line
            run = pytest("-x", *HANG, f"@{names}", source=Path(folder), capture_output=True)
            copy.write_text(old, "utf8")
            if run.returncode in (4, 5):
                raise SystemExit(f"tests have changed: remove {RECORD} and begin again")
            noticed = run.returncode != 0
            tried, killed = tried + 1, killed + noticed
            if not noticed:
                name = spec.operator_name.partition("/")[2]
                print(f"survived: {path.relative_to(ROOT)}:{line} {name} #{spec.occurrence}")
                print(f"    {old.splitlines()[line - 1].strip()}", flush=True)
    print(f"{killed} of {tried} noticed")


if __name__ == "__main__":
    main()
