"""The built site is whole: every page, link, anchor and picture, and nothing from elsewhere."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
TOC = re.findall(r"^\s*(?:- file|root): (\S+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
# Markup that Sphinx was to replace.
UNRESOLVED = re.compile(
    r"\{(?:prf:ref|eq|ref|doc|numref|cite(?::\w+)?|term|glue(?::\w+)?|nb-download|func)\}`?"
    r"|\]\(#|:::|^```|\$\$",
    re.M,
)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, BeautifulSoup]:
    """Every page of the site, parsed."""
    files = [p for p in site.rglob("*.html") if "_static" not in p.relative_to(site).parts]
    return {p.resolve(): BeautifulSoup(p.read_text("utf8"), "html.parser") for p in files}


@pytest.fixture(scope="module")
def chapters(pages, site: Path) -> dict[str, BeautifulSoup]:
    """The article of each page of the table of contents."""
    return {n: pages[(site / f"{n}.html").resolve()].select_one("article.bd-article") for n in TOC}


def test_nothing_asks_another_server(pages, site: Path):
    """Neither a page nor a style sheet, where no browser test leads either."""
    within = re.compile(r"""(?:@import|url\()\s*(?:url\()?\s*['"]?(?:https?:)?//""")
    for path, page in pages.items():
        assert str(ROOT) not in str(page), f"{path.name} shows a path of the machine"
        for tag in page.select("[src], [srcset], [data], link:not([rel=canonical])"):
            asked = [tag.get(name, "") for name in ("src", "srcset", "data", "href")]
            assert not any(re.search(r"(?:^|[:,\s])//", url) for url in asked), (path.name, asked)
        styles = [tag["style"] for tag in page.select("[style]")] + [t.text for t in page("style")]
        assert not within.search("\n".join(styles)), path.name
    for sheet in site.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", sheet.read_text("utf8"), flags=re.S)
        assert not within.search(text), sheet.name


def test_links_and_anchors_exist(pages):
    ids = {
        path: {t[k] for k in ("id", "name") for t in page.find_all(attrs={k: True})}
        for path, page in pages.items()
    }
    bad = []
    for path, page in pages.items():
        for url in {t.get("href") or t.get("src") for t in page.select("[href], [src]")}:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                bad.append(f"{path.name}: {url} does not exist")
            elif parts.fragment.startswith("maps_"):  # a state of the explorer, tested with it
                continue
            elif parts.fragment and target in ids and unquote(parts.fragment) not in ids[target]:
                bad.append(f"{path.name}: {url} has no such anchor")
    assert not bad, "\n".join(sorted(set(bad)))


def test_docstrings_lead_to_the_book(chapters):
    """A label in a docstring has become a link to what it names."""
    api = [article for name, article in chapters.items() if name.startswith("book/api_")]
    statements = 'a[href*="#thm-"], a[href*="#prp-"], a[href*="#lem-"]'
    assert sum(len(article.select(statements)) for article in api) > 40
    shown = " ".join(code.get_text() for page in api for code in page.select("p code.literal"))
    assert not re.search(r"\b(thm|prp|lem|cor|def|alg|eq|sec|err)-[a-z]", shown)


def test_no_markup_is_left_unresolved(chapters):
    for name, article in chapters.items():
        assert not article.select("mjx-merror, merror, .problematic, .system-message"), name
        for paragraph in article.find_all("p"):  # cells return tables too
            assert not paragraph.get_text().lstrip().startswith("|"), (name, paragraph)
        text = BeautifulSoup(str(article), "html.parser")
        for tag in text.select("pre, code, script, .math"):
            tag.decompose()
        assert not UNRESOLVED.findall(text.get_text()), name


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
    loading = [p for p, page in pages.items() if page.find("script", src=re.compile("tippy"))]
    assert len(loading) >= len(TOC) - 1  # all pages but the index, which Sphinx writes
    assert (site / ".nojekyll").exists()  # GitHub Pages serves folders that begin with _


def test_figures_are_counted_from_one_on_each_page(chapters):
    """Those of chapters, 0 among them, behind the number of the chapter."""
    numbered = [name for name in TOC if re.match(r"book/\d\d_", name)]
    for name in [*numbered, "book/index", "book/quickstart", "book/reading_maps"]:
        titles = [tag.text.strip() for tag in chapters[name].select("figcaption .caption-number")]
        chapter = re.match(r"book/(\d\d)_", name)
        first = f"{int(chapter[1])}." if chapter else ""
        assert titles == [f"Fig. {first}{k}" for k in range(1, len(titles) + 1)], name
