"""What book/conftest.py promises, on small chapters in a folder of their own."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADER = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3, display_name: Python 3, language: python}
---
# A page
"""
PAGES = {
    "good": ["x = 1\nx;", "x"],
    "failing": ["assert 1 + 1 == 3", "print('never')"],
    "quiet": ["1  # raises nothing"],
    "loud": ["raise ValueError('as announced')"],
    "stuck": ["import time; time.sleep(60)", "print('never')"],
    "busy": ["import time\nwhile time.process_time() < 3.5:\n    pass", "print('never')"],
    "delayed": ["import time; time.sleep(4)", "print('a busy machine')"],
}
TAGS = {"quiet": ":tags: [raises-exception]\n\n", "loud": ":tags: [raises-exception]\n\n"}


def page(name: str) -> str:
    cells = [f"```{{code-cell}} ipython3\n{TAGS.get(name, '')}{c}\n```\n" for c in PAGES[name]]
    return "\n".join([HEADER, *cells])


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A copy of the runner, whose chapters have 3 s instead of 60 s."""
    root = tmp_path_factory.mktemp("project")
    for name in (".pytest.ini", "_config.yml", "book/conftest.py", "book/_ext/executions.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    runner = root / "book" / "conftest.py"
    text = runner.read_text("utf8").replace("SECONDS = 60.0", "SECONDS = 3.0")
    runner.write_text(text, "utf8")
    (root / "tests").mkdir()
    (root / "pkg" / "src" / "toy").mkdir(parents=True)
    (root / "pkg" / "src" / "toy" / "__init__.py").write_text("", "utf8")
    for name in PAGES:
        (root / "book" / f"{name}.md").write_text(page(name), "utf8")
    return root


def execute(project: Path, *names: str, **env: str) -> str:
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:randomly"]
    answer = subprocess.run(
        [*command, *(f"book/{name}.md" for name in names)],
        cwd=project,
        env={k: v for k, v in os.environ.items() if not k.startswith(("DROT_", "PYTEST_"))} | env,
        capture_output=True,
        text=True,
    )
    return answer.stdout + answer.stderr


@pytest.fixture(scope="module")
def report(project: Path) -> str:
    return execute(project, *PAGES)


@pytest.fixture(scope="module")
def executions(project: Path, report: str):
    """The module that keeps executions, for that folder, after the run."""
    path = project / "book" / "_ext" / "executions.py"
    spec = importlib.util.spec_from_file_location("executions_of_a_project", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def verdicts(report: str, name: str) -> list[str]:
    return re.findall(rf"{name}\.md::cell \d+ \(line \d+\) (\w+)", report)


def stored(executions) -> dict[str, object]:
    return {Path(r.uri).stem: r for r in executions.open_cache().list_cache_records()}


def test_chapter_passes_cell_by_cell(report: str):
    assert verdicts(report, "good") == ["PASSED", "PASSED"]
    assert re.search(r"executing book/good\.md", report)
    assert re.search(r"done book/good\.md: 2 cells, [\d.]+ s", report)


def test_failure_names_the_line_and_skips_the_rest(report: str):
    assert verdicts(report, "failing") == ["FAILED", "SKIPPED"]
    line = page("failing").splitlines().index("```{code-cell} ipython3") + 1
    assert f"failing.md:{line}" in report and "assert 1 + 1 == 3" in report


def test_announced_exception_must_come(report: str):
    assert verdicts(report, "loud") == ["PASSED"]
    assert verdicts(report, "quiet") == ["FAILED"]
    assert "nothing was raised" in report


def test_chapter_that_takes_too_long_fails(report: str):
    assert verdicts(report, "stuck") == ["FAILED", "SKIPPED"]
    assert "Timeout" in report
    assert verdicts(report, "busy") == ["FAILED", "SKIPPED"]
    assert re.search(r"the chapter has taken \d+ s; it has 3 s", report)


def test_a_busy_machine_fails_no_chapter(report: str):
    """What a chapter waits for the processor is not its own time."""
    assert verdicts(report, "delayed") == ["PASSED", "PASSED"]


def test_only_whole_chapters_are_stored(executions):
    assert set(stored(executions)) == {"good", "loud", "delayed"}


def test_semicolon_silences_as_in_jupyter(executions):
    record = stored(executions)["good"]
    cells = executions.open_cache().get_cache_bundle(record.pk).nb.cells
    assert cells[0].outputs == []
    assert cells[1].outputs[0]["data"]["text/plain"] == "1"


def test_stored_chapters_are_reused_only_when_asked(project: Path, executions):
    assert "no tests ran" in execute(project, "good", DROT_REUSE="1")
    assert verdicts(execute(project, "good"), "good") == ["PASSED", "PASSED"]


def test_nested_cell_is_an_error(project: Path, executions):
    nested = project / "book" / "nested.md"
    nested.write_text(HEADER + ":::{note}\n```{code-cell} ipython3\n1\n```\n:::\n", "utf8")
    assert "1 code cells are written, 0 are at the top level" in execute(project, "nested")
    nested.write_text("# No header\n```{code-cell} ipython3\n1\n```\n", "utf8")
    assert "no Jupytext header" in execute(project, "nested")
    nested.unlink()


def test_cache_knows_the_package(project: Path, executions, monkeypatch):
    """A change of the package, of a pin, of the data at hand, or a damaged entry ends its life."""
    monkeypatch.delenv("DROT_DATA", raising=False)
    assert executions.sound()
    module = project / "pkg" / "src" / "toy" / "__init__.py"
    module.write_text("changed = True\n", "utf8")
    assert not executions.sound()
    module.write_text("", "utf8")
    assert executions.sound()
    monkeypatch.setenv("DROT_DATA", str(project))
    assert not executions.sound()
    monkeypatch.delenv("DROT_DATA")
    pins = project / "pkg" / "constraints.txt"
    pins.write_text("numpy==0\n", "utf8")
    assert not executions.sound()
    pins.unlink()
    assert executions.sound()
    record = stored(executions)["good"]
    entry = executions.CACHE / "executed" / record.hashkey / "base.ipynb"
    entry.write_text(entry.read_text("utf8")[:20], "utf8")
    assert not executions.sound()
    executions.prepare()
    assert executions.sound() and not stored(executions)
