"""Book, package and tests name the same statements."""

import ast
import builtins
import doctest
import importlib
import inspect
import re
from pathlib import Path
from pkgutil import walk_packages

import drot
import pytest
from sphinx.pycode import ModuleAnalyzer

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    path.relative_to(ROOT / "book").as_posix(): path.read_text("utf8")
    for path in sorted((ROOT / "book").rglob("*.md"))
    if not any(part.startswith("_") for part in path.relative_to(ROOT / "book").parts)
}
API = "".join(text for page, text in PAGES.items() if page.startswith("api"))
TEXT = "\n".join(PAGES.values())
KINDS = ("theorem", "thm"), ("proposition", "prp"), ("lemma", "lem"), ("remark", "rem")
KINDS += ("corollary", "cor"), ("algorithm", "alg"), ("definition", "def"), ("example", "exa")
TESTED = ("thm", "prp", "lem", "rem", "cor")
EQUATION = re.compile(r"\b(equation|eq\.|problem|algorithm|section|appendix|table)", re.I)

STATEMENTS = [  # kind, and label, which is empty where there is none
    (kind, (re.findall(r"^:label: *(\S+)", options, re.M) or [""])[0])
    for kind, options in re.findall(r"^[`:]{3,}\{prf:(\w+)\}.*\n((?::.*\n)*)", TEXT, re.M)
    if kind != "proof"
]
LABELS = {label for _, label in STATEMENTS}
TESTABLE = sorted(label for label in LABELS if label.startswith(TESTED))
TARGETS = LABELS | set(re.findall(r"^(?:\$\$ *)?\(([\w-]+)\)=?$", TEXT, re.M))
NAMES = {
    node.name
    for path in (ROOT / "tests").rglob("test_*.py")
    for node in ast.walk(ast.parse(path.read_text("utf8")))
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
}
MODULES = [thing for thing in map(vars(drot).get, drot.__all__) if inspect.ismodule(thing)]
PUBLIC = {
    f"{home.__name__}.{name}": getattr(home, name)
    for home in (drot, *MODULES)
    for name in home.__all__
    if not inspect.ismodule(getattr(home, name))
}
FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(PUBLIC[name])]


@pytest.mark.parametrize("module", [*walk_packages(drot.__path__, "drot.")], ids=lambda m: m.name)
def test_an_example_can_be_pasted(module):
    """It defines or imports all names but those that api.md tells a reader to import."""
    public = (one.__all__ for one in (drot, *MODULES, drot.plot, drot.exercises))
    known = {"drot", "np", "torch", *dir(builtins)}.union(*public)
    for test in doctest.DocTestFinder().find(importlib.import_module(module.name)):
        nodes = list(ast.walk(ast.parse("\n".join(example.source for example in test.examples))))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        made |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        made |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        made |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
        assert not used - made - known - {test.name.rpartition(".")[2]}, test.name


def test_every_statement_bears_a_label_of_its_own_and_of_its_kind():
    assert TESTABLE and FUNCTIONS and NAMES
    prefixes = dict(KINDS)
    assert [s for s in STATEMENTS if not s[1].startswith(f"{prefixes[s[0]]}-")] == []
    labels = [label for _, label in STATEMENTS]
    assert [label for label in LABELS if labels.count(label) > 1] == []


@pytest.mark.parametrize("label", TESTABLE)
def test_every_statement_has_a_test(label: str):
    name = f"test_{label.replace('-', '_')}"
    assert any(n == name or n.startswith(f"{name}_") for n in NAMES), f"no test is called {name}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_names_its_source_and_shows_an_example(name: str):
    doc = inspect.getdoc(PUBLIC[name]) or ""
    source = re.search(r"^Source: (.+?)(?:\n\n|\Z)", doc, re.M | re.S)
    assert source, f"{name}: no line 'Source: ...'"
    cited = set(re.findall(rf"\b(?:{'|'.join(dict(KINDS).values())}|eq|sec|ch)-[\w-]+", source[1]))
    assert cited <= TARGETS, f"{name} cites {cited - TARGETS}, not in the book"
    assert cited or EQUATION.search(source[1]) or ".datasets." in name, f"{name}: {source[1]!r}"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_is_explained_and_on_the_api_page(name: str):
    assert inspect.getdoc(PUBLIC[name])
    *_, module, last = name.split(".")
    documented = rf"^\.\. auto\w+:: (?:drot\.)?(?:{module}\.)?{last}\b"
    assert re.search(documented, API, re.M), f"{name} is not on a page of the API"


RESULTS = {
    kind: set(getattr(kind, "_fields", None) or kind.__dataclass_fields__)
    for kind in PUBLIC.values()
    if {"_fields", "__dataclass_fields__"} & {*dir(kind)} and not hasattr(kind, "fit")
}


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_every_field_is_explained_where_it_is_declared(kind):
    """In a comment ``#:``, which its page shows; up to a colon it would be read as a type."""
    homes = [one for one in kind.__mro__ if one.__module__.startswith("drot.")]
    told = {}
    for one in homes:
        docs = ModuleAnalyzer.for_module(one.__module__).find_attr_docs().items()
        told |= {name: lines[0] for (where, name), lines in docs if where == one.__name__}
    assert set(told) == RESULTS[kind]
    things = [thing for one in homes for thing in vars(one).values()]
    shown = [thing.__doc__ for thing in things if isinstance(thing, property)]
    assert [text for text in (*told.values(), *shown) if re.search(r":\s", text)] == []
