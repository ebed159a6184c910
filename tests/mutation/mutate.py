"""Which changes of the code do the tests notice?  Mutation testing of the numerical modules.

    python tests/mutation/mutate.py                # every module of modules.toml
    python tests/mutation/mutate.py symmetric      # one
    SAMPLE=50 python tests/mutation/mutate.py ...  # at most 50 mutants of each, drawn by a seed

cosmic-ray finds the mutants, makes them and keeps the record (one SQLite file a module, under
``_build/mutation``, which a stopped run resumes). A mutant lives in memory only: a process that
has imported torch forks, the child imports ``drot`` with one module changed, and the tests that
reach the changed line run, quickest first, until one fails; those that noticed the mutants
before it go ahead. No file of the package is touched.
A mutant that survived is tried again in the next run, one that was killed is not, as long as its
module stays as it is.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import datetime
import gc
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import json
import os
import random
import re
import resource
import signal
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "mutation"
PACKAGE = ROOT / "pkg" / "src" / "drot"
RECORD = ROOT / "_build" / "mutation"
RESULTS = HERE / "results.csv"
COLUMNS = ["module", "lines", "mutants", "tried", "killed", "by_time", "survived", "equivalent"]
COLUMNS += ["score", "date", "seconds"]
SEED = 0
USER = 1  # where say() writes; main() keeps it while the tests write elsewhere
ENOUGH = 5.0  # seconds of clean time of the tests that one round asks
SLOWEST = 20.0  # seconds; a test that takes longer is asked for no mutant
TIMES = 5  # a test that takes so many times its clean time has noticed
GRACE = 2.0  # seconds, added to that limit
# Operators of one kind replace each other; what cannot run (1.5 << 2) is no mutant.
KINDS = ("Add Sub Mul Div Pow", "BitAnd BitOr BitXor", "Eq NotEq Lt LtE Gt GtE", "Is IsNot")
ALIKE = {(a, b) for kind in KINDS for a in kind.split() for b in kind.split()}
OTHERS = ["Delete_USub", "Delete_Invert", "Delete_Not", "AddNot", "ReplaceTrueWithFalse"]
OTHERS += ["ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "NumberReplacer"]
OTHERS += ["ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"]
UNUSED = ("max_iter", "max_outer", "n_init", "callback")  # defaults that no result rests on


@dataclass(frozen=True)
class Mutant:
    """One change: where, by which operator, and the lines before and after."""

    job: str
    function: str
    operator: str
    occurrence: int
    line: int
    column: int
    before: str
    after: str
    source: str

    def key(self) -> tuple[str, str, str, str]:
        return self.function, self.operator, _squeeze(self.before), _squeeze(self.after)


def say(words: str) -> None:
    """To where the program was started, though the tests write elsewhere."""
    os.write(USER, f"{words}\n".encode())


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", "", text)


# ------------------------------------------------------------------------------------- mutants


Span = tuple[tuple[int, int], tuple[int, int]]


def _places(source: str) -> tuple[list[Span], list[Span]]:
    """Operations on two operands; and places that no result rests on.

    Those are messages, annotations, decorators and defaults of max_iter and its like.
    """
    lines = source.splitlines()
    binary, spans = [], []

    def add(node: ast.AST | None, spans: list[Span] = spans) -> None:
        if node is not None:
            ends = [(node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)]
            ends = [(row, len(lines[row - 1].encode()[:col].decode())) for row, col in ends]
            spans.append(tuple(ends))

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise | ast.JoinedStr):
            add(node)
        elif isinstance(node, ast.BinOp):
            add(node, binary)
        elif isinstance(node, ast.AnnAssign | ast.arg):
            add(node.annotation)
        elif isinstance(node, ast.Assign) and _squeeze(ast.unparse(node)).startswith("__all__"):
            add(node)
        if isinstance(node, ast.FunctionDef):
            add(node.returns)
            named = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            named = [*named, *node.args.kwonlyargs]
            for arg, default in zip(
                named, [*node.args.defaults, *node.args.kw_defaults], strict=True
            ):
                if arg.arg in UNUSED:
                    add(default)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                add(decorator)
    return binary, spans


def _wanted(operator: str) -> bool:
    name = operator.partition("/")[2]
    pair = re.fullmatch(r"Replace(?:Binary|Comparison)Operator_(\w+)_(\w+)", name)
    return pair.groups() in ALIKE if pair else name.endswith(tuple(OTHERS))


def _mutate(path: Path, spec) -> str | None:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    operator = get_operator(spec.operator_name)(**spec.operator_args)
    return mutate_code(path.read_text("utf8"), operator, spec.occurrence)


def mutants(db, path: Path) -> list[Mutant]:
    """The mutants of the record, in the order of the file."""
    source = path.read_text("utf8")
    old = source.splitlines()
    out, seen = [], set()
    for item in db.work_items:
        (spec,) = item.mutations
        changed = _mutate(path, spec)
        if changed is None:
            continue
        new = changed.splitlines()
        first = next((k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
        if first is None or changed in seen:
            continue
        seen.add(changed)
        last = next(k for k, (a, b) in enumerate(zip(old[::-1], new[::-1], strict=False)) if a != b)
        before, after = old[first : len(old) - last], new[first : len(new) - last]
        name = spec.operator_name.partition("/")[2]
        function = _function(source, spec.start_pos[0])
        out.append(
            Mutant(item.job_id, function, name, spec.occurrence, *spec.start_pos, "\n".join(before),
                   "\n".join(after), changed)
        )  # fmt: skip
    return sorted(out, key=lambda m: (m.line, m.column, m.operator, m.occurrence))


def _function(source: str, line: int) -> str:
    """Class and function around a line."""
    names = []
    for node in ast.walk(ast.parse(source)):  # from the outside to the inside
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (
            node.lineno <= line <= node.end_lineno
        ):
            names.append(node.name)
    return ".".join(names)


@contextlib.contextmanager
def record(name: str) -> Iterator:
    """cosmic-ray's record of a module, begun anew where the module has changed."""
    from cosmic_ray.commands.init import _all_work_items
    from cosmic_ray.work_db import WorkDB

    path = PACKAGE / f"{name}.py"
    stamp = RECORD / f"{name}.sha256"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    db = WorkDB(str(RECORD / f"{name}.sqlite"), WorkDB.Mode.create)
    try:
        if not stamp.exists() or stamp.read_text() != digest:
            binary, spans = _places(path.read_text("utf8"))
            items = []
            for item in _all_work_items([path], {}):
                (spec,) = item.mutations
                at, name = spec.start_pos, spec.operator_name
                if "ReplaceBinary" in name and not any(a <= at < b for a, b in binary):
                    continue  # the star before keyword-only parameters
                if _wanted(name) and not any(a <= at < b for a, b in spans):
                    items.append(item)
            db.clear()
            db.add_work_items(items)
            stamp.write_text(digest)
        yield db
    finally:
        db.close()


def excused(name: str) -> dict[tuple[str, ...], str]:
    """Mutants that compute the same, and those that only a test in processes of its own sees."""
    listed = tomllib.loads((HERE / "equivalent.toml").read_text("utf8"))
    out = {}
    for entry in listed.get(name, ()):
        for mutant in entry["mutants"]:
            operator = entry.get("operator", "")  # none: the change, whichever made it
            key = entry["function"], operator, _squeeze(entry["line"]), _squeeze(mutant)
            if "below" in entry:  # the line above, where one line stands in several places
                key = *key, _squeeze(entry["below"])
            out[key] = "killed" if "seen_by" in entry else "equivalent"
    return out


# --------------------------------------------------------------------------------------- tests


class Watch:
    """A plugin: chooses and orders tests, limits each, and says which failed first."""

    def __init__(self, chosen: dict[str, float] | None = None, coverage=None):
        self.chosen, self.coverage = chosen, coverage
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.skipped: list[str] = []

    def pytest_sessionstart(self):
        import hypothesis

        settings = hypothesis.settings
        phases = [p for p in hypothesis.Phase if p.name in ("explicit", "generate")]
        parent = settings.get_profile("drot")
        settings.register_profile("mutate", parent, phases=phases, print_blob=False)
        settings.load_profile("mutate")  # a failure is enough: no smaller one is sought

    def pytest_collection_modifyitems(self, items):
        if self.chosen is not None:
            order = {nodeid: k for k, nodeid in enumerate(self.chosen)}
            items[:] = sorted(
                (item for item in items if item.nodeid in order), key=lambda i: order[i.nodeid]
            )

    def pytest_runtest_logstart(self, nodeid):
        if self.coverage is not None:
            self.coverage.switch_context(nodeid)
            signal.signal(signal.SIGPROF, _too_long)
            signal.setitimer(signal.ITIMER_PROF, SLOWEST)
        elif self.chosen is not None:
            signal.setitimer(signal.ITIMER_PROF, TIMES * self.chosen[nodeid] + GRACE)
        self.seconds[nodeid] = time.process_time()

    def pytest_runtest_logfinish(self, nodeid):
        signal.setitimer(signal.ITIMER_PROF, 0)
        if self.coverage is not None:
            self.coverage.switch_context("")
        self.seconds[nodeid] = time.process_time() - self.seconds[nodeid]

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.skipped:
            self.skipped.append(report.nodeid)


def _too_long(*_):
    raise RuntimeError("takes too long to be asked for every mutant")


def _pytest(files: Iterable[str], watch: Watch, *more: str) -> int:
    import pytest

    quiet = ["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider"]
    plain = ["-o", "addopts=--import-mode=importlib", "-p", "_hypothesis_pytestplugin"]
    return int(pytest.main([*files, *quiet, *plain, *more], plugins=[watch]))


def forked(work: Callable, wall: float, show: bool = False) -> tuple[int, dict]:
    """Run ``work`` in a child; its exit status (-signal) and what it returned."""
    note = RECORD / f"note-{os.getpid()}.json"
    note.unlink(missing_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            if not show:
                os.setsid()  # the time limit ends what the tests start, too
            with (RECORD / ("asked.txt" if show else "log.txt")).open("w") as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
            code, found = work()
            note.write_text(json.dumps(found))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    ends, code = time.monotonic() + wall, None
    try:
        while code is None:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > ends:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.0 if done else 0.01)
    finally:
        if code is None:  # stopped: leave no child behind
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM) if show else os.killpg(child, signal.SIGKILL)
    found = json.loads(note.read_text()) if note.exists() else {}
    note.unlink(missing_ok=True)
    return code, found


def clean(file: str) -> dict:
    """Run a file of tests as it is: seconds of each test, and the lines of drot that it reaches."""
    parts = [ROOT / file, *sorted((ROOT / "tests").glob("*.py")), *sorted(PACKAGE.glob("*.py"))]
    digest = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
    kept = RECORD / "clean" / f"{Path(file).stem}.json"
    if kept.exists():
        found = json.loads(kept.read_text())
        if found["digest"] == digest or os.environ.get("DROT_MUTATE_KEEP"):
            return found

    def work():
        import coverage

        cov = coverage.Coverage(data_file=None, config_file=False, include=[f"{PACKAGE}/*"])
        cov.start()
        watch = Watch(coverage=cov)
        code = _pytest([file], watch)
        cov.stop()
        data, reached = cov.get_data(), {}
        for path in data.measured_files():
            for line, contexts in data.contexts_by_lineno(path).items():
                for context in filter(None, contexts):
                    reached.setdefault(Path(path).stem, {}).setdefault(context, []).append(line)
        bad = {*watch.failed, *watch.skipped}
        seconds = {test: t for test, t in watch.seconds.items() if test not in bad}
        return code, {"seconds": seconds, "reached": reached, "failed": watch.failed}

    _, found = forked(work, 1800)
    if not found:
        sys.exit(f"{file} did not run to its end:\n" + (RECORD / "log.txt").read_text()[-2000:])
    if found["failed"]:
        few = ", ".join(sorted(set(found["failed"]))[:3])
        say(f"  {len(found['failed'])} tests fail, or take long, without a mutant: left out: {few}")
    kept.parent.mkdir(exist_ok=True)
    found["digest"] = digest
    kept.write_text(json.dumps(found))
    return found


def statement(source: str, line: int) -> range:
    """Lines of the statement, or of the head of the block, that the line belongs to."""
    best = range(line, line + 1)
    size = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno
            if line <= max(end, node.lineno) and (size is None or end - node.lineno < size):
                best, size = range(node.lineno, max(end, node.lineno) + 1), end - node.lineno
    return best


def rounds(name: str, source: str, line: int, files: list[dict]) -> list[dict[str, float]]:
    """Tests that reach the line, then contracts that do, then others in the files of the first.

    Each quickest first, and for :data:`ENOUGH` seconds. The last are asked because what several
    tests share (a fixture, a cache) reaches the line in the first of them only.
    """
    lines = set(statement(source, line))
    asked: list[dict[str, float]] = [{}, {}, {}]
    for constant in (False, True):  # a constant, or a default, is read at import
        for found in files:
            reached = found["reached"].get(name, {})
            touch = {test for test, own in reached.items() if constant or lines & set(own)}
            for test, seconds in found["seconds"].items():
                contract = test.startswith("tests/contracts")
                if test in touch:
                    asked[contract][test] = seconds
                elif touch and not contract:
                    asked[2][test] = seconds
        if any(asked):
            break
    out = []
    for tests in filter(None, asked):
        chosen, total = {}, 0.0
        for test, seconds in sorted(tests.items(), key=lambda pair: pair[1]):
            if total + seconds > ENOUGH and chosen:
                break
            chosen[test] = seconds
            total += seconds
        out.append(chosen)
    return out


class Mutated(SourceFileLoader):
    """Loads one module of drot from a text of ours, everything else as ever."""

    def __init__(self, name: str, source: str):
        super().__init__(f"drot.{name}", str(PACKAGE / f"{name}.py"))
        self.code = compile(source, self.path, "exec")

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, fullname):
        return self.code


def bodies(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """The functions that differ, with their new bodies; None if more than functions differs."""
    plain = [[c for c in code.co_consts if not isinstance(c, CodeType)] for code in (old, new)]
    if old.co_code != new.co_code or plain[0] != plain[1] or old.co_names != new.co_names:
        return None
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    if len(inner[0]) != len(inner[1]):
        return None
    found = []
    for a, b in zip(*inner, strict=True):
        if a == b:
            continue
        if a.co_flags & inspect.CO_OPTIMIZED:  # a function; else the body of a class
            if (a.co_freevars, a.co_varnames[: a.co_argcount]) != (
                b.co_freevars, b.co_varnames[: b.co_argcount]
            ):  # fmt: skip
                return None
            found.append((a, b))
        elif (more := bodies(a, b)) is None:
            return None
        else:
            found += more
    return found


class Ask(Watch):
    """Collects all tests once; then forks for each mutant, and runs what was chosen for it."""

    def __init__(self, name: str, path: Path, tries: Callable):
        super().__init__()
        self.name, self.tries = f"drot.{name}", tries
        self.code = compile(path.read_text("utf8"), str(path), "exec")

    def pytest_collection_modifyitems(self, items):
        pass

    def pytest_runtestloop(self, session):
        items = {item.nodeid: item for item in session.items}
        functions: dict[CodeType, list[FunctionType]] = {}
        for found in gc.get_objects():
            if type(found) is FunctionType and found.__module__ == self.name:
                inner = inspect.unwrap(found)
                functions.setdefault(inner.__code__, []).append(inner)
                functions.setdefault(found.__code__, []).append(found)
        gc.freeze()

        def attempt(mutant: Mutant, chosen: dict[str, float]) -> tuple[str, str] | None:
            changed = bodies(self.code, compile(mutant.source, self.code.co_filename, "exec"))
            if changed is None or any(old not in functions for old, _ in changed):
                return None

            def work():
                for old, new in changed:
                    for function in functions[old]:
                        function.__code__ = new
                self.chosen = chosen
                wanted = [items[nodeid] for nodeid in chosen if nodeid in items]
                for item, following in zip(wanted, [*wanted[1:], None], strict=True):
                    session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if self.failed:
                        return 1, {"failed": self.failed}
                return 0, {"ran": len(wanted)}

            return judge(work, chosen)

        self.tries(attempt)
        return True


def judge(work: Callable, chosen: dict[str, float]) -> tuple[str, str]:
    """("killed" | "by time" | "survived", the test that noticed)."""
    limit = sum(TIMES * seconds + GRACE for seconds in chosen.values())
    code, found = forked(work, min(3 * limit + 60, 240))
    if code == 0:
        assert found["ran"] == len(chosen), "not every test that was chosen ran"
        return "survived", ""
    if code in (-signal.SIGPROF, -signal.SIGKILL):
        return "by time", ""
    return "killed", found["failed"][0] if found.get("failed") else f"exit {code}"


def by_import(name: str, mutant: Mutant, chosen: dict[str, float]) -> tuple[str, str]:
    """What is not the body of a function takes effect when the module is imported."""

    def work():
        sys.meta_path.insert(0, Mutated(name, mutant.source))
        watch = Watch(chosen)
        code = _pytest(dict.fromkeys(test.partition("::")[0] for test in chosen), watch, "-x")
        return code, {"failed": watch.failed, "ran": len(watch.seconds)}

    return judge(work, chosen)


# ---------------------------------------------------------------------------------------- main


def preload(files: list[str]) -> None:
    """Import what the tests import, but nothing of drot: every child then starts with it."""
    names = {"torch", "numpy", "scipy", "sklearn", "hypothesis", "pytest", "coverage", "pooch"}
    names |= {"scipy.optimize", "scipy.sparse.linalg", "sklearn.cluster", "sklearn.metrics"}
    names |= {"matplotlib", "tqdm", "PIL"}
    for file in [*files, *map(str, (ROOT / "tests").glob("*.py"))]:
        for node in ast.walk(ast.parse((ROOT / file).read_text("utf8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
    own = {path.stem for path in (ROOT / "tests").glob("*.py")}
    for name in sorted(names):
        if name.partition(".")[0] not in {"drot", *own}:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    assert not [m for m in sys.modules if m == "drot" or m.startswith("drot.")]


def run(name: str, sample: int, *, hours: float) -> dict:
    from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

    tests = tomllib.loads((HERE / "modules.toml").read_text("utf8"))[name]["tests"]
    path = PACKAGE / f"{name}.py"
    source = path.read_text("utf8")
    start = time.process_time() + _children()
    files = [clean(file) for file in tests]
    known_as = excused(name)
    with record(name) as db:
        every = mutants(db, path)
        chosen = every
        if sample and sample < len(every):
            order = random.Random(SEED).sample(range(len(every)), len(every))
            chosen = [every[k] for k in sorted(order[:sample])]  # a larger sample holds a smaller
        known = dict(db.results)
        counts = dict.fromkeys(("killed", "by time", "survived", "equivalent"), 0)
        waiting = []
        for mutant in chosen:
            before = known.get(mutant.job)
            above = _squeeze(source.splitlines()[mutant.line - 2])
            function, operator, *lines = mutant.key()
            keys = [(function, made_by, *lines) for made_by in (operator, "")]
            keys += [(*key, above) for key in keys]
            verdict = next(filter(None, map(known_as.get, keys)), None)
            if verdict:
                counts[verdict] += 1
            elif before is not None and before.test_outcome == TestOutcome.KILLED:
                counts["by time" if before.output == "by time" else "killed"] += 1
            else:
                waiting.append(mutant)

        lately: list[str] = []  # tests that noticed, the last one first: likely to notice again

        def asked_of(mutant: Mutant) -> list[dict[str, float]]:
            return [
                {test: asked[test] for test in dict.fromkeys([*lately, *asked]) if test in asked}
                for asked in rounds(name, source, mutant.line, files)
            ]

        def settle(mutant: Mutant, attempts: Iterator[tuple[str, str]]) -> None:
            tried = (answer for answer in attempts if answer[0] != "survived")
            outcome, noticed = next(tried, ("survived", ""))
            if outcome == "survived":
                say(f"  {mutant.function}, {mutant.operator}, line {mutant.line}")
                say(f"    - {mutant.before.strip()}\n    + {mutant.after.strip()}")
            counts[outcome] += 1
            if noticed:
                lately[:] = [noticed, *(test for test in lately if test != noticed)][:12]
            verdict = TestOutcome.SURVIVED if outcome == "survived" else TestOutcome.KILLED
            note = "by time" if outcome == "by time" else noticed
            text = f"{mutant.before}\n{mutant.after}"
            db.set_result(mutant.job, WorkResult(WorkerOutcome.NORMAL, note, verdict, text))

        rest = []

        def tries(attempt: Callable) -> None:
            for mutant in waiting:
                if time.monotonic() > hours:
                    return
                asked = asked_of(mutant)
                first = attempt(mutant, asked[0]) if asked else ("survived", "")
                if first is None:
                    rest.append((mutant, asked))
                    continue
                more = (attempt(mutant, chosen) for chosen in asked[1:])
                settle(mutant, itertools.chain([first], more))

        def work():
            db._engine.dispose(close=False)
            code = _pytest(tests, Ask(name, path, tries))
            return code, {"counts": counts, "rest": [m.job for m, _ in rest]}

        if waiting:
            code, found = forked(work, 1e9, show=True)
            if not found:
                sys.exit(f"asking the tests of {name} ended with {code}")
            counts = found["counts"]
            for mutant in waiting:
                if mutant.job in found["rest"] and time.monotonic() < hours:
                    asked = asked_of(mutant)
                    settle(mutant, (by_import(name, mutant, chosen) for chosen in asked))
        if sum(counts.values()) < len(chosen):
            say("  out of time; run it again to go on")
            return {}
    killed = counts["killed"] + counts["by time"]
    counted = killed + counts["survived"]
    row = {
        "module": name,
        "lines": len(source.splitlines()),
        "mutants": len(every),
        "tried": len(chosen),
        "killed": killed,
        "by_time": counts["by time"],
        "survived": counts["survived"],
        "equivalent": counts["equivalent"],
        "score": f"{killed / max(counted, 1):.3f}",
        "date": datetime.date.today().isoformat(),
        "seconds": round(time.process_time() + _children() - start),
    }
    save(row)
    say(f"  {row}")
    return row


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def save(row: dict) -> None:
    """Put the row of one module into results.csv, whole or not at all."""
    rows = {}
    if RESULTS.exists():
        with RESULTS.open(encoding="utf8", newline="") as file:
            rows = {old["module"]: old for old in csv.DictReader(file)}
    order = list(tomllib.loads((HERE / "modules.toml").read_text("utf8")))
    rows[row["module"]] = row
    new = RESULTS.with_suffix(".part")
    with new.open("w", encoding="utf8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in order if name in rows)
    new.replace(RESULTS)


def main(names: list[str]) -> int:
    global USER
    USER = os.dup(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"
    os.chdir(ROOT)
    RECORD.mkdir(parents=True, exist_ok=True)
    listed = tomllib.loads((HERE / "modules.toml").read_text("utf8"))
    names = names or list(listed)
    if unknown := [name for name in names if name not in listed]:
        sys.exit(f"no such module in tests/mutation/modules.toml: {', '.join(unknown)}")
    sample = int(os.environ.get("SAMPLE") or 0)
    hours = time.monotonic() + 3600 * float(os.environ.get("HOURS") or 1000)
    preload(sorted({file for name in names for file in listed[name]["tests"]}))
    survived = 0
    for name in names:
        say(f"{name}")
        row = run(name, sample or listed[name].get("sample", 0), hours=hours)
        survived += int(row.get("survived", 0))
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
