"""Let nbval execute the chapters: plain ``pytest book``.

A chapter is a MyST Markdown file with a Jupytext header.  It gets one kernel, and each of its
code cells is one test, named ``cell <k> (line <n>)``.

- After the first failure the rest of a chapter is skipped.
- A cell tagged ``raises-exception`` fails when it raises nothing.
- A chapter has 60 s in all, or as many as ``mystnb: {execution_timeout: 300}`` in its front matter
  says.  One that takes longer gets a warning in the summary: no machine is too slow for the book.
  ``DROT_CHAPTER_SECONDS=300`` (``.ci/run``) makes a failure of what takes longer than that too.
- A chapter that passed whole is stored where the build of the site finds it.
- ``DROT_REUSE=1`` leaves out chapters whose execution is stored already (``make book``);
  ``DROT_AFRESH=1`` forgets all stored executions first (``make test``); ``DROT_STORE=0`` leaves
  them as they are (``.ci/other-processor``).
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from pathlib import Path

import executions
import pytest
import yaml
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError, find_comment_markers, find_metadata_tags

ROOT = executions.ROOT
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
# The same extensions as the site: a cell nested in ":::" is no cell for it.
PARSER = MdParserConfig(enable_extensions=set(CONFIG["parse"]["myst_enable_extensions"]))
REUSE = os.environ.get("DROT_REUSE") == "1"
STORE = os.environ.get("DROT_STORE") != "0"
SECONDS = 60.0


def pytest_collect_file(file_path: Path, parent):
    option = parent.config.option
    if not (option.nbval or option.nbval_lax) or file_path.suffix != ".md":
        return None
    text = file_path.read_text("utf8")
    if not is_myst_markdown_notebook(text):
        if "{code-cell}" in text:
            raise pytest.Collector.CollectError(
                f"{file_path}: has code cells, but no Jupytext header"
            )
        return None
    return Chapter.from_parent(parent, path=file_path)


def read(path: Path):
    """The notebook of a chapter, from the same reader as the site's."""
    text = path.read_text("utf8")
    return read_myst_markdown_notebook(text, PARSER, add_source_map=True, path=path)


def pytest_xdist_auto_num_workers(config) -> int | None:
    """``-n auto``: two chapters at a time, and no second process for one chapter or none."""
    workers = min(2, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else 2
    if workers > 1 and REUSE and executions.sound():
        pages = [p for p in (ROOT / "book").rglob("*.md") if is_chapter(p)]
        workers = min(workers, sum(not executions.holds(read(p)) for p in pages))
    return workers if workers > 1 else 0


def is_chapter(path: Path) -> bool:
    return is_myst_markdown_notebook(path.read_text("utf8"))


class Chapter(IPyNbFile):
    """One chapter."""

    def collect(self):
        text = self.path.read_text("utf8")
        self.nb = read(self.path)
        self.cells = [c for c in self.nb.cells if c.cell_type == "code"]
        self.failed_at = None
        written = len(re.findall(r"^\s*[`~:]{3,}\{code-cell\}", text, re.M))
        if written != len(self.cells):
            raise self.CollectError(
                f"{self.path}: {written} code cells are written, {len(self.cells)} are at the top "
                "level; a cell inside another directive is never executed"
            )
        if REUSE and executions.holds(self.nb):
            return
        numbers = zip(self.nb.metadata["source_map"], self.nb.cells, strict=True)
        lines = [n for n, c in numbers if c.cell_type == "code"]
        for count, (line, cell) in enumerate(zip(lines, self.cells, strict=True), 1):
            options = defaultdict(bool, find_metadata_tags(cell.metadata))
            options.update(find_comment_markers(cell.source))
            options.setdefault("check", False)
            name = f"cell {count} (line {line})"
            item = Cell.from_parent(self, name=name, cell_num=count, cell=cell, options=options)
            item.line = line
            yield item

    def setup(self):
        self.started = time.perf_counter()
        super().setup()
        kernel = self.kernel
        # As jupyter-book executes: with a history, without which a closing ";" silences nothing.
        kernel.execute_cell_input = lambda source, **options: kernel.kc.execute(
            source, store_history=True, stop_on_error=False, **options
        )
        info = kernel.kc.kernel_info(reply=True, timeout=60)
        self.nb.metadata["language_info"] = info["content"]["language_info"]

    def teardown(self):
        super().teardown()
        passed = [i for i in self.session.items if i.parent is self and i.produced is not None]
        if not STORE or len(passed) != len(self.cells):
            return  # nobody asked, a cell failed, or one was not selected
        for item in passed:
            item.cell.execution_count = item.cell_num
            item.cell.outputs = item.produced
            for output in item.cell.outputs:
                if output.output_type == "execute_result":
                    output["execution_count"] = item.cell_num
        executions.store(self.nb, self.path, time.perf_counter() - self.started)


class Cell(IPyNbCell):
    """One code cell."""

    produced = None
    line = 1  # where the cell's fence stands

    def reportinfo(self):
        return self.path, self.line - 1, f"{self.parent.name}: {self.name}"

    def setup(self):
        super().setup()
        if self.parent.failed_at is not None:
            pytest.skip(f"{self.parent.failed_at} failed")

    def runtest(self):
        try:
            super().runtest()
            raised = any(o.output_type == "error" for o in self.test_outputs)
            if self.options["check_exception"] and not raised:
                self.raise_cell_error("tagged raises-exception, but nothing was raised")
        except pytest.skip.Exception:
            raise
        except BaseException:
            self.parent.failed_at = self.name
            raise
        self.produced = list(self.test_outputs)

    def repr_failure(self, excinfo):
        """Page, line, cell and message, on one screen."""
        error, where = excinfo.value, f"{self.path.relative_to(ROOT)}:{self.line}"
        if not isinstance(error, NbCellError):
            return f"{where}\n{super().repr_failure(excinfo)}"
        parts = [error.source, error.inner_traceback or ""]
        return "\n\n".join([f"{where}, {self.name}: {error}", *map(shortened, parts)])


def shortened(text: str, lines: int = 8) -> str:
    """The first and the last lines, without colours."""
    found = re.sub(r"\x1b\[[\d;]*m", "", text).strip().splitlines()
    if len(found) > 2 * lines:
        found[lines:-lines] = [f"... {len(found) - 2 * lines} lines ..."]
    return "\n".join(found)


class Progress:
    """Say which chapter starts, and how long it took; alive in the main process only."""

    def __init__(self, config):
        self.plugins = config.pluginmanager
        self.seconds = defaultdict(float)
        self.failed = set()
        self.left = {}
        self.total = {}
        self.slow = []

    def say(self, line):
        terminal = self.plugins.getplugin("terminalreporter")
        terminal.ensure_newline()
        terminal.write_line(line)

    @staticmethod
    def chapter(nodeid):
        path = nodeid.partition("::")[0]
        return path if path.endswith(".md") else None

    def count(self, nodeids):
        for path in filter(None, map(self.chapter, nodeids)):
            self.total[path] = self.left[path] = self.left.get(path, 0) + 1

    def pytest_collection_finish(self, session):
        self.count(item.nodeid for item in session.items)

    def pytest_xdist_node_collection_finished(self, node, ids):
        if not self.total:
            self.count(ids)

    def pytest_runtest_logstart(self, nodeid):
        path = self.chapter(nodeid)
        if path and self.left[path] == self.total[path] and path not in self.seconds:
            self.seconds[path] = 0.0
            self.say(f"executing {path} ...")

    def pytest_runtest_logreport(self, report):
        path = self.chapter(report.nodeid)
        if not path:
            return
        self.seconds[path] += report.duration
        if report.failed:
            self.failed.add(path)
        if report.when == "teardown":
            self.left[path] -= 1
            if not self.left[path]:
                word = "FAILED" if path in self.failed else "done"
                self.say(f"  {word} {path}: {self.total[path]} cells, {self.seconds[path]:.1f} s")

    def pytest_sessionfinish(self, session):
        """Which chapters were slow, and whether that fails: CI may ask for it, by a variable."""
        asked = float(os.environ.get("DROT_CHAPTER_SECONDS", "inf"))
        for path, seconds in sorted(self.seconds.items(), key=lambda x: -x[1]):
            budget = read(ROOT / path).metadata.get("mystnb", {}).get("execution_timeout", SECONDS)
            late = seconds > max(budget, asked)
            if seconds > budget:
                word = "FAILED" if late else "WARNING"
                self.slow.append(f"{word} {path}: {seconds:.1f} s, more than its {budget:.0f} s")
            session.exitstatus = session.exitstatus or int(late)

    def pytest_terminal_summary(self, terminalreporter):
        if self.slow:
            terminalreporter.section("chapters over their time, slowest first")
            terminalreporter.write("\n".join([*self.slow, ""]))


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # not in a worker of xdist
        config.pluginmanager.register(Progress(config), "drot-progress")


def pytest_sessionstart(session):
    if STORE and not hasattr(session.config, "workerinput"):
        executions.prepare(afresh=os.environ.get("DROT_AFRESH") == "1")
