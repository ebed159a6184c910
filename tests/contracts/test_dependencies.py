"""Imports point downwards, modules stay small, and the public list is the truth."""

from __future__ import annotations

import ast
import importlib
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import drot
import pytest

ROOT = Path(drot.__file__).parent
FILES = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in ROOT.rglob("*.py")}
MODULES = {name: path for name, path in sorted(FILES.items()) if path.stem != "__init__"}

# The packages in the order of the book; each imports from those before it, and from itself.
PACKAGES = ["_core", "costs", "affinities", "graphs", "spectral", "embeddings", "gromov"]
PACKAGES += ["metrics", "distributional", "datasets", "estimators"]
TOP = {"hyperbolic", "plot", "exercises"}  # modules beside the packages: nobody imports them


def tree(name: str) -> ast.Module:
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


def imports(name: str) -> set[str]:
    """The modules of drot that this one imports, wherever in the file."""
    found, here = set(), ["drot", *name.split("/")]
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.ImportFrom) and node.level:
            path = [*here[: len(here) - node.level], *(node.module or "").split(".")]
            path = [part for part in path[1:] if part]
            if "/".join(path) in MODULES:
                found.add("/".join(path))
            else:  # from .package import module
                found |= {"/".join([*path, alias.name]) for alias in node.names}
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [alias.name for alias in node.names]
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            assert not any(other.split(".")[0] == "drot" for other in names), name
    return found


def place(name: str) -> int:
    package = name.split("/")[0]
    return PACKAGES.index(package) if package in PACKAGES else len(PACKAGES)


def code_lines(path: Path) -> int:
    """Lines that are neither blank nor comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    documented = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped | {tokenize.ENDMARKER}:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def test_every_module_has_a_place():
    """At most ten modules in a package, and none that the order does not know."""
    for name in MODULES:
        package, _, rest = name.partition("/")
        assert (package in PACKAGES and "/" not in rest) or name in TOP, name
    for package in PACKAGES:
        assert 1 <= sum(name.split("/")[0] == package for name in MODULES) <= 10, package


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downwards(name):
    """A module imports from its own package or one before it, by a relative import."""
    for other in imports(name):
        assert other in MODULES, f"{name} imports {other!r}: write `from .module import name`"
        assert place(other) <= place(name), f"{name} imports {other}"
        assert other not in TOP


def test_no_cycles():
    """Within a package too, imports have no cycle: the modules can be read in an order."""
    left = {name: imports(name) for name in MODULES}
    while left:
        free = [name for name, needs in left.items() if not needs & left.keys()]
        assert free, f"a cycle among {sorted(left)}"
        for name in free:
            del left[name]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_small(name):
    """Past 300 lines of code a module is two modules."""
    assert code_lines(MODULES[name]) <= 300


@pytest.mark.parametrize("name", MODULES)
def test_modules_do_not_print_or_seed(name):
    """No print, no global seed, no star import; warnings and files only where they are meant."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            assert call != "print"
            assert not call.endswith(("manual_seed_all", "random.seed"))
            assert call != "torch.manual_seed"
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names)


@pytest.mark.parametrize("name", ["__init__", *(f"{package}/__init__" for package in PACKAGES)])
def test_public_lists(name):
    """`__all__` of a package has no double, and every name of it is there."""
    module = importlib.import_module(".".join(["drot", *name.split("/")[:-1]]))
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names)
    for exported in names:
        assert getattr(module, exported) is not None
    assert names or name == "_core/__init__"


def picture() -> str:
    """What each package imports, as CONTRIBUTING.md draws it: implied arrows left out."""
    names = [*PACKAGES, *sorted(TOP)]
    below = {name: set() for name in names}
    for name in MODULES:
        below[name.split("/")[0]] |= {other.split("/")[0] for other in imports(name)}
    lines = ["```mermaid", "flowchart BT"]
    for name in names:
        below[name].discard(name)
        implied = {far for near in below[name] for far in reach(near, below)}
        lines += [f"  {name} --> {other}" for other in names if other in below[name] - implied]
    return "\n".join([*lines, "```"])


def reach(name: str, below: dict[str, set[str]]) -> set[str]:
    return {far for near in below[name] for far in {near} | reach(near, below)} - {name}


def test_picture_of_the_packages():
    """``python tests/contracts/test_dependencies.py`` prints it."""
    assert picture() in (ROOT.parents[2] / "CONTRIBUTING.md").read_text("utf8")


def test_package_exports():
    """The public surface is one list, and nothing else shows but packages."""
    shown = {name for name in vars(drot) if not name.startswith("_")}
    assert shown - {*PACKAGES, *TOP} <= set(drot.__all__)


def test_importing_is_light():
    """`import drot` loads neither matplotlib nor scikit-learn, and opens no data."""
    program = (
        "import sys, drot; print([m for m in ('matplotlib', 'sklearn', 'ot') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


if __name__ == "__main__":
    print(picture())
