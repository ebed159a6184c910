"""Imports point downwards, modules stay small, and the public list is the truth."""

from __future__ import annotations

import ast
import importlib
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


TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def imports(name: str) -> set[str]:
    """The modules of drot that this one imports, wherever in the file."""
    found, here = set(), ["drot", *name.split("/")]
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.ImportFrom) and node.level:
            path = [*here[1 : len(here) - node.level], *(node.module or "").split(".")]
            path = "/".join(filter(None, path))
            # or `from .package import module`
            names = [path] if path in MODULES else [f"{path}/{alias.name}" for alias in node.names]
            found |= {other.removeprefix("/") for other in names}
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names = names or [alias.name for alias in node.names]
            assert not any(other.split(".")[0] == "drot" for other in names), name
    return found


def place(name: str) -> int:
    package = name.split("/")[0]
    return PACKAGES.index(package) if package in PACKAGES else len(PACKAGES)


def code_lines(name: str) -> int:
    """Lines that are neither blank nor comment nor docstring."""
    documented, lines = set(), set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else node
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                documented |= set(range(first.lineno, first.end_lineno + 1))
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    with FILES[name].open(encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in empty | {tokenize.ENDMARKER}:
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
def test_modules(name):
    """Past 300 lines a module is two; it imports downwards; it does not print, seed or take all."""
    assert code_lines(name) <= 300
    for other in imports(name):
        assert other in MODULES, f"{name} imports {other!r}: write `from .module import name`"
        assert place(other) <= place(name) and other not in TOP, f"{name} imports {other}"
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            assert call not in ("print", "torch.manual_seed")
            assert not call.endswith(("manual_seed_all", "random.seed"))
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names)


def test_no_cycles():
    """Within a package too, imports have no cycle: the modules can be read in an order."""
    left = {name: imports(name) for name in MODULES}
    while left:
        free = [name for name, needs in left.items() if not needs & left.keys()]
        assert free, f"a cycle among {sorted(left)}"
        for name in free:
            del left[name]


@pytest.mark.parametrize("name", ["drot", *(f"drot.{package}" for package in PACKAGES)])
def test_public_lists(name):
    """`__all__` of a package has no double, and every name of it is there; nothing else shows."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names) and (names or name == "drot._core")
    assert all(getattr(module, exported) is not None for exported in names)
    shown = {shown for shown in vars(drot) if not shown.startswith("_")}
    assert shown - {*PACKAGES, *TOP} <= set(drot.__all__)


def picture() -> str:
    """What each package imports, as CONTRIBUTING.md draws it: implied arrows left out."""
    names = [*PACKAGES, *sorted(TOP)]
    below = {name: set() for name in names}
    for name in MODULES:
        package = name.split("/")[0]
        below[package] |= {other.split("/")[0] for other in imports(name)} - {package}

    def reach(name: str) -> set[str]:
        return below[name].union(*map(reach, below[name]))

    lines = ["```mermaid", "flowchart BT"]
    for name in names:
        direct = below[name].difference(*map(reach, below[name]))
        lines += [f"  {name} --> {other}" for other in names if other in direct]
    return "\n".join([*lines, "```"])


def test_picture_of_the_packages():
    """``python tests/contracts/test_dependencies.py`` prints it."""
    assert picture() in (ROOT.parents[2] / "CONTRIBUTING.md").read_text("utf8")


if __name__ == "__main__":
    print(picture())
