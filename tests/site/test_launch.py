"""Every chapter can be run elsewhere: Binder, Colab, and a notebook to take along.

What needs the network stands in CONTRIBUTING.md; ``tests/site/binder.py`` is the stand-in for it.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, unquote, urlsplit

import nbformat
import notebooks
import pytest
import yaml
from bs4 import BeautifulSoup
from IPython.core.inputtransformer2 import TransformerManager
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
TOC = re.findall(r"^\s*(?:- file|root): (\S+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
SOURCES = {name: (ROOT / f"{name}.md").read_text("utf8") for name in TOC}
CHAPTERS = [name for name, text in SOURCES.items() if "{code-cell}" in text]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
REPOSITORY = CONFIG["repository"]["url"]
PARSER = MdParserConfig(enable_extensions=set(CONFIG["parse"]["myst_enable_extensions"]))
OWNER = REPOSITORY.removeprefix("https://github.com/")

every_chapter = pytest.mark.parametrize("name", CHAPTERS)


def opened(site: Path, name: str) -> BeautifulSoup:
    return BeautifulSoup((site / f"{name}.html").read_text("utf8"), "html.parser")


def shipped(site: Path, name: str):
    return nbformat.read(site / "_sources" / f"{name}.ipynb", as_version=4)


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(site: Path, name: str) -> str:
    return "\n".join(c.source for c in shipped(site, name).cells if c.cell_type == "markdown")


@every_chapter
def test_page_offers_binder_colab_and_the_notebook(site: Path, name: str):
    page, html = opened(site, name), site / f"{name}.html"
    links = {a.get_text(strip=True): a["href"] for a in page.select(".article-header-buttons a")}

    binder = urlsplit(links["Binder"])
    assert (binder.netloc, binder.path) == ("mybinder.org", f"/v2/gh/{OWNER}/main")
    (opens,) = parse_qs(binder.query)["urlpath"]
    assert (ROOT / opens.removeprefix("lab/tree/")) == ROOT / f"{name}.md"

    colab = urlsplit(links["Colab"])
    assert colab.netloc == "colab.research.google.com"
    branch = f"/github/{OWNER}/blob/gh-pages/"
    assert colab.path.startswith(branch)  # the branch is the folder of the site
    assert (site / colab.path.removeprefix(branch)).samefile(site / "_sources" / f"{name}.ipynb")

    notebook = html.parent / unquote(links[".ipynb"])
    assert notebook.samefile(site / "_sources" / f"{name}.ipynb")
    for link in page.select('article a.download[href$=".ipynb"]'):
        assert (html.parent / unquote(link["href"])).read_bytes() == notebook.read_bytes()


def test_pages_without_code_offer_nothing_to_run(site: Path):
    for name in set(TOC) - set(CHAPTERS):
        assert not opened(site, name).select('a[href*="mybinder"], a[href*="colab"]'), name


@every_chapter
def test_notebook_is_executed(site: Path, name: str):
    """Its outputs are those of the page, and its prose has numbers where the page has them."""
    notebook = shipped(site, name)
    nbformat.validate(notebook)
    first, *cells = code_cells(notebook)
    assert first is notebook.cells[0] and first.metadata.tags == ["set-up"] and not first.outputs
    assert len(cells) == len(re.findall(r"^```\{code-cell\}", SOURCES[name], re.M))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        raises = "raises-exception" in cell.metadata.get("tags", [])
        failed = [o.ename for o in cell.outputs if o.output_type == "error"]
        assert bool(failed) == raises, failed

    hidden = {"remove-cell", "remove-output"}
    kept = [cell for cell in cells if not hidden & set(cell.metadata.get("tags", []))]
    drawn = sum("image/png" in output.get("data", {}) for c in kept for output in c.outputs)
    assert drawn == len(opened(site, name).select("article .cell_output img[src*=_images]"))
    assert "{glue:text}" not in prose(site, name) and "{index}" not in prose(site, name)


def test_numbers_in_prose_are_those_of_the_page(site: Path):
    name = "book/01_entropic_affinity"
    assert re.search(r"the row has perplexity \{glue:text\}`[^`]*`", SOURCES[name])
    (shown,) = re.findall(r"the row has perplexity [\d.]+:", prose(site, name))
    assert shown in opened(site, name).get_text()


# ------------------------------------------------------------- the first cell of a notebook


def asked(monkeypatch, folder: Path, *, installed: bool, where: str = "book") -> list[str]:
    """What the first cell asks of IPython when it runs in this folder; a clone is an empty book."""
    said = []

    def system(command: str) -> None:
        said.append(command)
        (folder / command.split()[-1] / "book" / "reproductions").mkdir(parents=True)

    shell = SimpleNamespace(
        system=system, run_line_magic=lambda name, line: said.append(f"%{name} {line}")
    )
    program = TransformerManager().transform_cell(notebooks.set_up_cell(REPOSITORY, where).source)
    found = object() if installed else None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: found if name == "drot" else None)
    monkeypatch.chdir(folder)
    exec(compile(program, "set-up", "exec"), {"get_ipython": lambda: shell})
    return said


def test_first_cell_fetches_and_installs_where_drot_is_missing(monkeypatch, tmp_path: Path):
    assert asked(monkeypatch, tmp_path, installed=True) == []
    where = "book/reproductions"
    clone, pip, cd = asked(monkeypatch, tmp_path, installed=False, where=where)
    assert clone == f"git clone -q --depth 1 {REPOSITORY} drot-book"
    assert pip.split()[:4] == ["%pip", "install", "-q", "./drot-book/pkg"]
    assert cd == "%cd -q drot-book/book/reproductions"
    # After the kernel has started anew, all is there, and only the folder is to be found again.
    assert asked(monkeypatch, tmp_path, installed=True, where=where) == [cd]
    assert not notebooks.CLONE.isidentifier(), "Python would import the folder of the clone"


def requirements(*names: str) -> set[str]:
    """These distributions and what they require in turn, without extras."""
    found, todo = set(), [canonicalize_name(name) for name in names]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            for text in importlib.metadata.requires(name) or []:
                asked = Requirement(text)
                if asked.marker is None or asked.marker.evaluate({"extra": ""}):
                    todo.append(canonicalize_name(asked.name))
    return found


def imported(name: str) -> set[str]:
    """Top names of the modules that the cells of a chapter import."""
    notebook = read_myst_markdown_notebook(SOURCES[name], PARSER, path=ROOT / f"{name}.md")
    found = set()
    for node in (
        node for cell in code_cells(notebook) for node in ast.walk(ast.parse(cell.source))
    ):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names


def test_first_cell_installs_all_that_chapters_import():
    """What drot requires, what the cell names, and what Colab has: IPython."""
    line = next(x for x in notebooks.SET_UP.splitlines() if "%pip install" in x)
    named = line.partition("/pkg")[2].split()
    installed = requirements("drot", "ipython") | {canonicalize_name(name) for name in named}
    homes = importlib.metadata.packages_distributions()
    for name in CHAPTERS:
        for module in imported(name):
            owners = {canonicalize_name(owner) for owner in homes[module]}
            assert owners & installed, f"{name} imports {module}"
