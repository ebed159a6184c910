"""The built site is whole: pages, links, pictures and notebooks, and nothing from elsewhere."""

import re
import xml.etree.ElementTree as ET
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, unquote, urlsplit

import nbformat
import notebooks
import pytest
import yaml
from bs4 import BeautifulSoup
from IPython.core.inputtransformer2 import TransformerManager
from widget_page import ROOT, SOURCES, STATIC, TOC

CHAPTERS = [name for name, text in SOURCES.items() if "{code-cell}" in text]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
REPOSITORY = CONFIG["repository"]["url"]
OWNER = REPOSITORY.removeprefix("https://github.com/")
# Markup that Sphinx was to replace.
UNRESOLVED = re.compile(
    r"\{(?:prf:ref|eq|ref|doc|numref|cite(?::\w+)?|term|glue(?::\w+)?|nb-download|func)\}`?"
    r"|\]\(#|:::|^```|\$\$",
    re.M,
)


TAG = re.compile(r"""<([a-z][\w-]*)((?:\s+[\w:-]+(?:=(?:"[^"]*"|'[^']*'))?)*)\s*/?>""")
ATTRIBUTE = re.compile(r"""([\w:-]+)=(?:"([^"]*)"|'([^']*)')""")
REMOTE = re.compile(r"(?:^|[:,\s])//")
REMOTE_STYLE = re.compile(r"""(?:@import|url\()\s*(?:url\()?\s*['"]?(?:https?:)?//""")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, str]:
    """Every page of the site."""
    files = [p for p in site.rglob("*.html") if "_static" not in p.relative_to(site).parts]
    return {p.resolve(): p.read_text("utf8") for p in files}


@pytest.fixture(scope="module")
def tags(pages) -> dict[Path, list[tuple[str, dict[str, str]]]]:
    """Names and attributes of their tags, as Sphinx and the cells write them."""
    return {
        path: [
            (name, {key: unescape(a or b) for key, a, b in ATTRIBUTE.findall(inside)})
            for name, inside in TAG.findall(re.sub("<!--.*?-->", "", text, flags=re.S))
        ]
        for path, text in pages.items()
    }


@pytest.fixture(scope="module")
def parts(pages, site: Path) -> dict[str, str]:
    """Each page of the table of contents, from its buttons to the end of its article."""
    main = re.compile(r'<div class="article-header-buttons">.*</article>', re.S)
    return {name: main.search(pages[(site / f"{name}.html").resolve()])[0] for name in TOC}


@pytest.fixture(scope="module")
def chapters(parts) -> dict[str, BeautifulSoup]:
    return {name: BeautifulSoup(part, "html.parser") for name, part in parts.items()}


def test_nothing_asks_another_server(pages, tags, site: Path):
    """Neither a page nor a style sheet, where no browser test leads either."""
    for path, text in pages.items():
        assert str(ROOT) not in text, f"{path.name} shows a path of the machine"
        assert not REMOTE_STYLE.search("\n".join(re.findall(r"<style.*?</style>", text, re.S)))
        for name, given in tags[path]:
            loads = {"src", "srcset", "data"} | ({"href"} if name == "link" else set())
            asked = [given[key] for key in loads & {*given} if given.get("rel") != "canonical"]
            assert not any(map(REMOTE.search, asked)), (path.name, asked)
            assert not REMOTE_STYLE.search(given.get("style", "")), path.name
    for sheet in site.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", sheet.read_text("utf8"), flags=re.S)
        assert not REMOTE_STYLE.search(text), sheet.name


def test_links_and_anchors_exist(tags):
    ids = {
        path: {given[key] for _, given in found for key in ("id", "name") if key in given}
        for path, found in tags.items()
    }
    bad = set()
    for path, found in tags.items():
        for url in {given[key] for _, given in found for key in ("href", "src") if key in given}:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.is_file():
                bad.add(f"{path.name}: {url} does not exist")
            elif anchor.startswith("maps_"):  # a state of the explorer, tested with it
                continue
            elif anchor and target in ids and anchor not in ids[target]:
                bad.add(f"{path.name}: {url} has no such anchor")
    assert not bad, "\n".join(sorted(bad))


def test_docstrings_lead_to_the_book(chapters):
    """A label in a docstring has become a link to what it names."""
    api = [article for name, article in chapters.items() if name.startswith("book/api_")]
    statements = 'a[href*="#thm-"], a[href*="#prp-"], a[href*="#lem-"]'
    assert sum(len(article.select(statements)) for article in api) > 40
    shown = " ".join(code.get_text() for page in api for code in page.select("p code.literal"))
    assert not re.search(r"\b(thm|prp|lem|cor|def|alg|eq|sec|err)-[a-z]", shown)


def test_no_markup_is_left_unresolved(parts):
    """But in code and formulas; no row of a table that cells return is a paragraph."""
    for name, part in parts.items():
        assert not re.search(r"<(mjx-)?merror|class=.[^>]*(problematic|system-message)", part), name
        assert not re.search(r"<p[^>]*>\s*\|", part), name
        part = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", part, flags=re.S)
        part = re.sub(r'<(span|div) class="math\b.*?</\1>', "", part, flags=re.S)
        assert not UNRESOLVED.findall(unescape(re.sub(r"<[^>]*>", "", part))), name


def test_every_picture_of_a_cell_is_a_figure_with_caption(chapters):
    for name, article in chapters.items():
        for image in article.select("div.cell_output img"):
            figure, where = image.find_parent("figure"), f"{name}: {image['src']}"
            assert figure is not None and figure.get("id"), where
            assert figure.select_one("figcaption .caption-text"), where
            # Sphinx takes the name of the file where no text is given.
            assert "jupyter_execute" not in image["alt"], where


def test_previews_on_hover_come_from_this_site(pages, site: Path):
    for script in CONFIG["sphinx"]["config"]["tippy_js"]:
        assert (site / "_static" / script).is_file()
        assert list((site / "_static" / script).parent.glob("LICENSE*")), f"{script}: no licence"
    loading = [text for text in pages.values() if re.search('<script[^>]* src="[^"]*tippy', text)]
    assert len(loading) >= len(TOC) - 1  # all pages but the index, which Sphinx writes
    assert (site / ".nojekyll").exists()  # GitHub Pages serves folders that begin with _


def test_figures_are_counted_from_one_on_each_page(chapters):
    """Those of chapters, 0 among them, behind the number of the chapter."""
    numbered = [name for name in TOC if re.match(r"book/\d\d_", name)]
    front = ("index", "quickstart", "reading_maps", "single_cells")
    for name in [*numbered, *(f"book/{name}" for name in front)]:
        titles = [tag.text.strip() for tag in chapters[name].select("figcaption .caption-number")]
        chapter = re.match(r"book/(\d\d)_", name)
        first = f"{int(chapter[1])}." if chapter else ""
        assert titles == [f"Fig. {first}{k}" for k in range(1, len(titles) + 1)], name


def test_concept_map_leads_to_every_chapter():
    """Each stands once, under its number, with a link where it is written."""
    svg = "{http://www.w3.org/2000/svg}"
    drawn = ET.parse(STATIC / "concept_map.svg").getroot()
    assert drawn.find(f"{svg}title").text and drawn.find(f"{svg}desc").text
    found = []
    for node in (node for node in drawn.iter() if "node" in node.get("class", "").split()):
        texts = {text.get("class"): text.text for text in node.iter(f"{svg}text")}
        number = re.search(r"\bn(\d\d)\b", node.get("class"))[1]
        assert texts["name"].startswith(number)
        found.append((number, node.get("href") if node.tag == f"{svg}a" else None))
    written = [name.removeprefix("book/") for name in TOC if re.match(r"book/\d\d_", name)]
    assert sorted(found) == sorted((name[:2], f"{name}.html") for name in written)


@pytest.mark.parametrize("name", CHAPTERS)
def test_page_offers_binder_colab_and_the_notebook(site: Path, chapters, name: str):
    html, page = site / f"{name}.html", chapters[name]
    links = {a.get_text(strip=True): a["href"] for a in page.select(".article-header-buttons a")}

    binder = urlsplit(links["Binder"])
    assert (binder.netloc, binder.path) == ("mybinder.org", f"/v2/gh/{OWNER}/main")
    assert parse_qs(binder.query)["urlpath"] == [f"lab/tree/{name}.md"]

    colab = urlsplit(links["Colab"])
    assert colab.netloc == "colab.research.google.com"
    # the branch is the folder of the site
    assert colab.path == f"/github/{OWNER}/blob/gh-pages/_sources/{name}.ipynb"

    file = site / "_sources" / f"{name}.ipynb"
    assert (html.parent / unquote(links[".ipynb"])).samefile(file)
    for link in page.select('article a.download[href$=".ipynb"]'):
        assert (html.parent / unquote(link["href"])).read_bytes() == file.read_bytes()

    # its outputs are those of the page, and its prose has numbers where the page has them
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    first, *cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    assert first is notebook.cells[0] and first.metadata.tags == ["set-up"] and not first.outputs
    assert len(cells) == len(re.findall(r"^```\{code-cell\}", SOURCES[name], re.M))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    drawn = 0
    for cell in cells:
        tags = set(cell.metadata.get("tags", []))
        failed = [o.ename for o in cell.outputs if o.output_type == "error"]
        assert bool(failed) == ("raises-exception" in tags), failed
        if not tags & {"remove-cell", "remove-output"}:
            drawn += sum("image/png" in output.get("data", {}) for output in cell.outputs)
    assert drawn == len(page.select("article .cell_output img[src*=_images]"))
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert not re.search(r"\{(glue:text|index|answer)\}", prose)


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
