"""Book, package and tests name the same statements."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import drot
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    path.relative_to(ROOT / "book").as_posix(): path.read_text("utf8")
    for path in sorted((ROOT / "book").rglob("*.md"))
    if not any(part.startswith("_") for part in path.relative_to(ROOT / "book").parts)
}
KINDS = {
    "theorem": "thm",
    "proposition": "prp",
    "lemma": "lem",
    "remark": "rem",
    "corollary": "cor",
    "definition": "def",
    "algorithm": "alg",
    "example": "exa",
}
TESTED = ("thm", "prp", "lem", "rem", "cor", "alg")
DIRECTIVE = re.compile(r"^[`:]{3,}\{prf:(\w+)\}(.*)\n((?::.*\n)*)", re.M)
EQUATION = re.compile(r"\b(equation|eq\.|problem|algorithm|section|appendix|table)", re.I)


def statements() -> list[tuple[str, str, str]]:
    """Page, kind and label of every numbered statement; the label is empty where there is none."""
    found = []
    for page, text in PAGES.items():
        for kind, _, options in DIRECTIVE.findall(text):
            label = re.search(r"^:label: *(\S+)", options, re.M)
            found.append((page, kind, label[1] if label else ""))
    return found


STATEMENTS = statements()
LABELS = {label for _, _, label in STATEMENTS}
TESTABLE = sorted(label for label in LABELS if label.split("-")[0] in TESTED)
TEXT = "\n".join(PAGES.values())
TARGETS = LABELS | set(re.findall(r"^(?:\$\$ *)?\(([\w-]+)\)=?$", TEXT, re.M))


def test_functions() -> set[str]:
    """Names of all test functions."""
    names = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                names.add(node.name)
    return names


test_functions.__test__ = False
NAMES = test_functions()
PUBLIC = [name for name in drot.__all__ if not inspect.ismodule(getattr(drot, name))]
FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(drot, name))]
MODULES = [name for name in drot.__all__ if inspect.ismodule(getattr(drot, name))]


def test_there_is_something_to_trace():
    assert TESTABLE and FUNCTIONS and NAMES


@pytest.mark.parametrize(("page", "kind", "label"), STATEMENTS)
def test_every_statement_bears_a_label_of_its_kind(page: str, kind: str, label: str):
    if kind == "proof":
        return
    assert kind in KINDS, f"{page}: {{prf:{kind}}} has no prefix here"
    assert label.startswith(f"{KINDS[kind]}-"), f"{page}: {{prf:{kind}}} labelled {label!r}"


def test_labels_are_unique():
    labels = [label for _, _, label in STATEMENTS if label]
    assert len(labels) == len(set(labels)), sorted(x for x in labels if labels.count(x) > 1)


@pytest.mark.parametrize("label", TESTABLE)
def test_every_statement_has_a_test(label: str):
    name = f"test_{label.replace('-', '_')}"
    assert any(n == name or n.startswith(f"{name}_") for n in NAMES), f"no test is called {name}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_names_its_source(name: str):
    doc = inspect.getdoc(getattr(drot, name)) or ""
    source = re.search(r"^Source: (.+?)(?:\n\n|\Z)", doc, re.M | re.S)
    assert source, f"drot.{name}: no line 'Source: ...'"
    cited = set(re.findall(rf"\b(?:{'|'.join(KINDS.values())}|eq|sec|ch)-[\w-]+", source[1]))
    assert cited <= TARGETS, f"drot.{name} cites {cited - TARGETS}, not in the book"
    assert cited or EQUATION.search(source[1]), f"drot.{name}: {source[1]!r}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_shows_an_example(name: str):
    assert ">>> " in (inspect.getdoc(getattr(drot, name)) or "")


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_is_explained_and_on_the_api_page(name: str):
    assert inspect.getdoc(getattr(drot, name))
    documented = rf"^\.\. auto(?:function|class|exception|data):: (?:drot\.)?{name}\b"
    assert re.search(documented, PAGES["api.md"], re.M), f"drot.{name} is not on the page"


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_module_is_explained_and_on_the_api_page(module: str):
    for name in getattr(drot, module).__all__:
        assert inspect.getdoc(getattr(getattr(drot, module), name)), f"{module}.{name}"
        documented = rf"^\.\. auto\w+:: (?:drot\.)?(?:{module}\.)?{name}\b"
        assert re.search(documented, PAGES["api.md"], re.M), f"{module}.{name} is not on the page"


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_is_named_captioned_and_described(page: str):
    heads = re.findall(r"^```\{code-cell\}[^\n]*\n---\n(.*?)\n---", PAGES[page], re.M | re.S)
    for head in heads:
        if "figure:" in head:
            wanted = ("alt", "name", "caption")
            missing = [k for k in wanted if not re.search(rf"\b{k}: *\S", head)]
            assert not missing, f"{page}: a figure without {missing}:\n{head}"
