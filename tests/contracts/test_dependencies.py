"""Imports point downwards, modules are small, public lists are the truth, types are as declared."""

import ast
import importlib
import os
import re
import runpy
import subprocess
import sys
import tokenize
from pathlib import Path

import drot
import grimp
import pytest
from importlinter.cli import lint_imports

ROOT = Path(drot.__file__).parent
PKG = Path(__file__).parents[2] / "pkg"
MODULES = {p.relative_to(ROOT).as_posix(): p for p in sorted(ROOT.rglob("*.py"))}
PACKAGES = sorted({name.partition("/")[0] for name in MODULES if "/" in name})
TOP = ("hyperbolic", "plot", "exercises", "versions")  # modules beside the packages


def test_layers():
    """import-linter reads them in ``pkg/pyproject.toml``."""
    assert lint_imports(config_filename=str(PKG / "pyproject.toml"), no_cache=True) == 0


def code_lines(tree: ast.Module, path: Path) -> int:
    """Lines that are neither blank nor comment nor docstring."""
    documented, lines = set(), set()
    for node in ast.walk(tree):
        written = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if written and ast.get_docstring(node):
            documented |= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in empty | {tokenize.ENCODING, tokenize.ENDMARKER}:
                lines |= {*range(token.start[0], token.end[0] + 1)}
    return len(lines - documented)


def test_modules():
    """At most ten in a package, 300 lines of code in each; none prints or seeds."""
    for package in PACKAGES:
        assert sum(n.startswith(f"{package}/") for n in MODULES) <= 11, package  # one is __init__
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert code_lines(tree, path) <= 300, name
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                call = ast.unparse(node.func)
                assert call != "print" and not call.endswith(("seed", "seed_all")), name


@pytest.mark.parametrize("name", ["drot", *(f"drot.{package}" for package in PACKAGES)])
def test_public_lists(name):
    """`__all__` of a package has no double, and every name of it is there; nothing else shows."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names) and (names or name == "drot._core")
    assert all(getattr(module, exported) is not None for exported in names)
    shown = {shown for shown in vars(drot) if not shown.startswith("_")}
    assert shown - {*PACKAGES, *TOP} <= set(drot.__all__)
    for own in (drot.exercises, drot.metrics, drot.plot):
        assert dir(own) == sorted(own.__all__)


def picture() -> str:
    """What each package imports, as ENGINEERING.md draws it: implied arrows left out."""
    graph = grimp.build_graph("drot")
    for name in (names := sorted(graph.find_children("drot"))):
        graph.squash_module(name)
    below = {n: graph.find_modules_directly_imported_by(n) & {*names} - {n} for n in names}
    lines = ["```mermaid", "flowchart BT"]
    for name in names:
        implied = (graph.find_upstream_modules(near) - {near} for near in below[name])
        arrows = sorted(below[name].difference(*implied))
        lines += [f"  {name[5:]} --> {other[5:]}" for other in arrows]
    return "\n".join([*lines, "```"])


def test_picture_of_the_packages():
    """``python tests/contracts/test_dependencies.py`` prints it."""
    assert picture() in (PKG.parent / "ENGINEERING.md").read_text("utf8")


USER = PKG.parent / "tests" / "typing_user.py"
WRONG = {
    "drot.sqeuclidean([[0.0]], blok=3)": "call-arg",
    "drot.entropic_affinity([[0.0]], perplexity=3, diagonal='dropped')": "arg-type",
    "drot.symmetrize([[0.0]]).plan": "attr-defined",
    "drot.snekhorns": "attr-defined",
    "drot.TSNE(learning_rate=200)": "call-arg",
    "drot.DistR(3).nothing": "attr-defined",
    "drot.plot.nothing": "attr-defined",
    "drot.datasets.digits(20).y.nothing": "attr-defined",
}


def test_package_and_user_are_typed_and_wrong_programs_refused(tmp_path):
    """In one run. No result of a public function is of unknown type: its user's file is strict."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("\n".join(["import drot", *WRONG]), "utf8")
    command = [sys.executable, "-m", "mypy", "--config-file", "pkg/pyproject.toml"]
    command += ["pkg/src/drot", str(USER), str(wrong)]
    env = os.environ | {"MYPYPATH": str(PKG / "src")}
    answer = subprocess.run(command, cwd=PKG.parent, env=env, capture_output=True, text=True)
    said = answer.stdout + answer.stderr
    found = dict(re.findall(r"wrong\.py:(\d+): error: .*\[(.+)\]$", said, re.M))
    assert found == {str(k): error for k, error in enumerate(WRONG.values(), 2)}
    assert len(re.findall("error:", said)) == len(WRONG), said


@pytest.mark.filterwarnings("error")
def test_the_program_runs():
    """What it calls exists and takes what it passes; so do the types that it asserts."""
    runpy.run_path(str(USER), run_name="__main__")


if __name__ == "__main__":
    print(picture())
