"""Every chapter can be run elsewhere: Binder, Colab, and a notebook to take along."""

import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, unquote, urlsplit

import nbformat
import notebooks
import pytest
import yaml
from bs4 import BeautifulSoup
from IPython.core.inputtransformer2 import TransformerManager

ROOT = Path(__file__).resolve().parents[2]
TOC = re.findall(r"^\s*(?:- file|root): (\S+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
SOURCES = {name: (ROOT / f"{name}.md").read_text("utf8") for name in TOC}
CHAPTERS = [name for name, text in SOURCES.items() if "{code-cell}" in text]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
REPOSITORY = CONFIG["repository"]["url"]
OWNER = REPOSITORY.removeprefix("https://github.com/")

every_chapter = pytest.mark.parametrize("name", CHAPTERS)


@every_chapter
def test_page_offers_binder_colab_and_the_notebook(site: Path, name: str):
    html = site / f"{name}.html"
    page = BeautifulSoup(html.read_text("utf8"), "html.parser")
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

    # its outputs are those of the page, and its prose has numbers where the page has them
    notebook = nbformat.read(notebook, as_version=4)
    nbformat.validate(notebook)
    first, *cells = (cell for cell in notebook.cells if cell.cell_type == "code")
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
    assert drawn == len(page.select("article .cell_output img[src*=_images]"))
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert not re.search(r"\{(glue:text|index|answer)\}", prose)


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
