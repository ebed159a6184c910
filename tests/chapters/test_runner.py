"""What book/conftest.py promises, on small chapters in a folder of their own."""

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
RAISES = ":tags: [raises-exception]\n\n"
PAGES = {
    "good": ["x = 1\nx;", "x", f"{RAISES}raise ValueError('as announced')"],
    "failing": ["# first\n" + "x = 1\n" * 99 + "import json\njson.loads('{')", "print('never')"],
    "quiet": [f"{RAISES}1  # raises nothing"],
    "unfinished": ["import warnings; warnings.warn('stopped at a residual of 1', UserWarning)"],
    "stuck": ["import time; time.sleep(60)", "print('never')"],
}


def page(name: str) -> str:
    return "\n".join([HEADER, *(f"```{{code-cell}} ipython3\n{c}\n```\n" for c in PAGES[name])])


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A copy of the runner, whose cells have 5 s, not 600."""
    root = tmp_path_factory.mktemp("project")
    own = (".pytest.ini", "_config.yml", "conftest.py")
    for name in (*own, "book/conftest.py", "book/_ext/executions.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    runner = root / ".pytest.ini"
    text = runner.read_text("utf8").replace("--nbval-cell-timeout=600", "--nbval-cell-timeout=5")
    runner.write_text(text, "utf8")
    (root / "tests").mkdir()
    (root / "pkg" / "src" / "toy").mkdir(parents=True)
    (root / "pkg" / "src" / "toy" / "__init__.py").write_text("", "utf8")
    for name in PAGES:
        (root / "book" / f"{name}.md").write_text(page(name), "utf8")
    return root


def execute(project: Path, *names: str, code: int | None = None, **env: str) -> str:
    """What the runner says of these chapters; ``code`` is how it must end."""
    plugins = ("no:cacheprovider", "nbval.plugin", "xdist.plugin")  # others take long to load
    command = [sys.executable, "-m", "pytest", "-v", *(f"-p{name}" for name in plugins)]
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ours = ("DROT_", "PYTEST_", "OMP_")
    answer = subprocess.run(
        [*command, *(name if name[0] == "-" else f"book/{name}.md" for name in names)],
        cwd=project,
        env={k: v for k, v in os.environ.items() if not k.startswith(ours)} | env,
        capture_output=True,
        text=True,
    )
    assert code is None or answer.returncode == code, answer.stdout
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


def stored(executions) -> dict[str, object]:
    return {Path(r.uri).stem: r for r in executions.open_cache().list_cache_records()}


@pytest.mark.parametrize(
    ("name", "verdicts", "said"),
    [
        ("good", ["PASSED"] * 3, ""),
        ("failing", ["FAILED", "SKIPPED"], "json.loads('{')"),
        ("quiet", ["FAILED"], "nothing was raised"),
        ("unfinished", ["FAILED"], "UserWarning: stopped at a residual"),
        ("stuck", ["FAILED", "SKIPPED"], "Timeout of 5 seconds"),
    ],
)
def test_a_failure_skips_the_rest(report: str, name: str, verdicts: list[str], said: str):
    """Cell by cell; an announced exception must come, and a stuck cell is stopped."""
    assert re.findall(rf"{name}\.md::cell \d+ \(line \d+\) (\w+)", report) == verdicts
    line = page(name).splitlines().index("```{code-cell} ipython3") + 1
    assert said in report and (not said or f"{name}.md:{line}" in report)


def test_a_cell_that_raises_is_shown_on_one_screen(report: str):
    """Its page and line, itself, and the message, however long it is."""
    first = r"\n(book/failing\.md:\d+, cell 1 \(line \d+\): .*?JSONDecodeError: Expecting[^\n]*)"
    (shown,) = re.findall(first, report, re.S)
    assert "# first" in shown and "json.loads('{')" in shown
    assert shown.count("\n") < 40


def test_only_whole_chapters_are_stored(executions):
    """A semicolon silences a cell, as in Jupyter."""
    ((name, record),) = stored(executions).items()
    found = executions.open_cache().get_cache_bundle(record.pk).nb
    silenced, shown, _ = (cell.outputs for cell in found.cells if cell.cell_type == "code")
    assert name == "good" and silenced == [] and shown[0]["data"]["text/plain"] == "1"


def test_stored_chapters_are_reused_only_when_asked(project: Path, executions):
    assert "no tests ran" in execute(project, "good", code=5, DROT_REUSE="1")
    before = stored(executions)["good"].created
    execute(project, "good", code=0, DROT_STORE="0", DROT_AFRESH="1")
    assert stored(executions)["good"].created == before


def test_cache_knows_the_package(project: Path, executions, monkeypatch):
    """A change of the package, of a pin, of the data at hand, or a damaged entry ends its life."""
    monkeypatch.delenv("DROT_DATA", raising=False)
    assert executions.sound()
    for name in ("pkg/src/toy/more.py", "pkg/constraints.txt"):
        (project / name).write_text("numpy==0\n", "utf8")
        assert not executions.sound(), name
        (project / name).unlink()
        assert executions.sound(), name
    with monkeypatch.context() as patch:
        patch.setenv("DROT_DATA", str(project))
        assert not executions.sound()
    record = stored(executions)["good"]
    entry = executions.CACHE / "executed" / record.hashkey / "base.ipynb"
    entry.write_text(entry.read_text("utf8")[:20], "utf8")
    assert not executions.sound()
    executions.prepare()
    assert executions.sound() and not stored(executions)
