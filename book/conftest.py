"""Let nbval execute the chapters: plain ``pytest book``.

A chapter is a MyST Markdown file with a Jupytext header. It gets one kernel, and each of its code
cells is one test, named ``cell <k> (line <n>)``. After the first failure the rest of a chapter is
skipped; a cell tagged ``raises-exception`` fails when it raises nothing; a chapter that passed
whole is stored where the build of the site finds it, and one over 60 s is named at the end.

``DROT_REUSE=1`` leaves out chapters whose execution is stored already (``make book``),
``DROT_AFRESH=1`` forgets all stored executions first (``make test``), ``DROT_STORE=0`` leaves
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
SECONDS = 60  # of a chapter, on two cores
# What did not arrive says so in a warning: no cell may show one, here and in .pytest.ini.
# Pictures have two dots for each one of the page.
BEFORE = """import warnings; warnings.filterwarnings('error', '(?s).*(residual|converge)')
get_ipython().config.InlineBackend.figure_formats = {"retina"}"""


def pytest_collect_file(file_path: Path, parent):
    option = parent.config.option
    if not (option.nbval or option.nbval_lax) or file_path.suffix != ".md":
        return None
    text = file_path.read_text("utf8")
    if is_myst_markdown_notebook(text):
        return Chapter.from_parent(parent, path=file_path)
    if "{code-cell}" in text:
        raise pytest.Collector.CollectError(f"{file_path}: has code cells, but no Jupytext header")
    return None


class Chapter(IPyNbFile):
    """One chapter."""

    def collect(self):
        text = self.path.read_text("utf8")
        self.nb = read_myst_markdown_notebook(text, PARSER, add_source_map=True, path=self.path)
        numbers = zip(self.nb.metadata["source_map"], self.nb.cells, strict=True)
        cells = [(line, cell) for line, cell in numbers if cell.cell_type == "code"]
        self.failed_at, self.passed, self.size = None, [], len(cells)
        written = len(re.findall(r"^\s*[`~:]{3,}\{code-cell\}", text, re.M))
        if written != len(cells):
            raise self.CollectError(
                f"{self.path}: {written} code cells are written, {len(cells)} are at the top "
                "level; a cell inside another directive is never executed"
            )
        if REUSE and executions.holds(self.nb):
            return
        for count, (line, cell) in enumerate(cells, 1):
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
        kernel.kc.execute(BEFORE, silent=True, reply=True, timeout=60)
        info = kernel.kc.kernel_info(reply=True, timeout=60)
        self.nb.metadata["language_info"] = info["content"]["language_info"]

    def teardown(self):
        super().teardown()
        if STORE and len(self.passed) == self.size:  # no cell failed or was not selected
            executions.store(self.nb, self.path, time.perf_counter() - self.started)


class Cell(IPyNbCell):
    """One code cell."""

    line = 1  # where the cell's fence stands

    def reportinfo(self):
        return self.path, self.line - 1, f"{self.parent.name}: {self.name}"

    def setup(self):
        super().setup()
        if self.parent.failed_at is not None:
            pytest.skip(f"{self.parent.failed_at} failed")

    def runtest(self):
        self.parent.failed_at = self.name  # until it has passed
        super().runtest()
        if self.options["check_exception"] and not any(
            output.output_type == "error" for output in self.test_outputs
        ):
            self.raise_cell_error("tagged raises-exception, but nothing was raised")
        glued = [out for out in self.test_outputs if "scrapbook" in out.get("metadata", {})]
        if any(str(text).startswith("np.") for out in glued for text in out["data"].values()):
            self.raise_cell_error("the site formats no number of NumPy: glue a float or an int")
        figure = "figure" in self.cell.metadata.get("mystnb", {})
        if figure and len(self.test_outputs) - len(glued) != 1:
            self.raise_cell_error("the figure's label names every output: end the cell with a ';'")
        self.parent.failed_at = None
        self.cell.execution_count, self.cell.outputs = self.cell_num, list(self.test_outputs)
        for output in self.cell.outputs:
            if output.output_type == "execute_result":
                output["execution_count"] = self.cell_num
        self.parent.passed.append(self)

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


def pytest_terminal_summary(terminalreporter):
    seconds = defaultdict(float)
    for report in (r for found in terminalreporter.stats.values() for r in found):
        path = getattr(report, "nodeid", "").partition("::")[0]
        if path.endswith(".md"):
            seconds[path] += getattr(report, "duration", 0.0)
    slow = sorted((-s, path) for path, s in seconds.items() if s > SECONDS)
    if slow:
        terminalreporter.section(f"chapters over {SECONDS} s, the slowest first")
        terminalreporter.write_line("\n".join(f"{-s:.0f} s  {path}" for s, path in slow))


def pytest_sessionstart(session):
    if STORE and not hasattr(session.config, "workerinput"):  # not in a worker of xdist
        executions.prepare(afresh=os.environ.get("DROT_AFRESH") == "1")
