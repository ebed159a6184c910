"""The book on paper: what the LaTeX builder makes of a page that has one thing of each kind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import make
import nbformat
import paper
import pytest
import yaml
from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]
PAGE = r"""(ch-small)=
# A small page

$$
\inner{P}{C} = \tr(P^\top C) , \qquad \argmin_{p \in \R} \H(p)
$$ (eq-small)

```{margin} **In the code**
$P$ is `plan`.
```

```{prf:theorem} One root
:label: thm-small

The root of {eq}`eq-small` is unique.
```

::::{dropdown} Proof
It is the only one.
::::

:::{admonition} At a glance
:class: tip
- A list.
:::

```{prf:lemma} Another
:label: lem-small

See {prf:ref}`thm-small`.
```

```{exercise-start} By hand
:label: ex-small
```
Find it.
```{exercise-end}
```

```{solution-start} ex-small
:class: dropdown
```
Found.
```{solution-end}
```

| name | value | what it is about, in a sentence too long for a line of any table, however small |
|:--|--:|:--|
| `a` | 1.0 ± 0.1 | words, and more words, so many that they cannot stand in one line: (n, m) |

Take it with you: {nb-download}`small.ipynb`.
"""
CODE = {
    "HTML('widget')": (
        "text/html",
        '<div class="drot-widget"><p class="drot-finding">It moves.</p></div><script></script>',
    ),
    "HTML('note')": (
        "text/html",
        '<div class="admonition note"><p class="admonition-title">Data</p><p>Absent.</p></div>',
    ),
    "secret = 1": ("text/plain", "'shown'"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The LaTeX source of a book with that page, by the book's own settings."""
    home = tmp_path_factory.mktemp("book")
    cells = [nbformat.v4.new_markdown_cell(PAGE)]
    for source, (kind, data) in CODE.items():
        output = nbformat.v4.new_output("display_data", {"text/plain": "unseen", kind: data})
        cells.append(nbformat.v4.new_code_cell(source, outputs=[output]))
    cells[-1].metadata["tags"] = ["hide-input"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(book, home / "small.ipynb")
    (home / "index.md").write_text("# The book\n\nWords.\n", "utf8")
    (home / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nparts:\n"
        "  - {caption: First, chapters: [{file: other}]}\n"
        "  - {caption: Second, numbered: 1, chapters: [{file: small}]}\n",
        "utf8",
    )
    (home / "other.md").write_text("# Another page\n\nMore.\n", "utf8")
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    config["execute"] = {"execute_notebooks": "off"}
    config["sphinx"]["local_extensions"] = {"drot_book": str(ROOT / "book" / "_ext")}
    sphinx = config["sphinx"]["config"]
    sphinx["latex_additional_files"] = [str(ROOT / p) for p in sphinx["latex_additional_files"]]
    sphinx["html_static_path"] = []
    del config["html"]["favicon"]
    config["bibtex_bibfiles"] = [str(ROOT / "book" / "references.bib")]
    (home / "_config.yml").write_text(yaml.safe_dump(config, allow_unicode=True), "utf8")
    build = [sys.executable, *make.JUPYTER_BOOK[1:], "-W", "--builder", "latex", "."]
    env = {**os.environ, "DROT_EXECUTED": "1"}
    answer = subprocess.run(build, cwd=home, env=env, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return home / "_build" / "latex"


@pytest.fixture(scope="module")
def source(folder: Path) -> str:
    return (folder / "drot.tex").read_text("utf8")


def test_numbers_are_those_of_the_site(source: str):
    """A chapter of a numbered part has its number; one counter serves all statements."""
    assert re.search(r"\\drotchapter\{1\}\s*\\chapter\{A small page\}", source)
    assert re.search(r"\\drotchapter\{\}\s*\\chapter\{Another page\}", source)
    assert r"\tag{1.1}\label{equation:small:eq-small}" in source
    assert r"\begin{drotstatement}{Theorem 1.1 (One root)}" in source
    assert r"\begin{drotstatement}{Lemma 1.2 (Another)}" in source
    link = re.search(r"\\hyperref\[\\detokenize\{(small:thm-small)\}\]\{[^}]*Theorem 1\.1", source)
    assert link and rf"\label{{\detokenize{{{link[1]}}}}}" in source
    assert r"\begin{drotexercise}{Exercise 1.1 (By hand)}" in source


def test_folds_stand_open(source: str):
    assert re.search(r"begin\{drotproof\}\{Proof\}\s*\\sphinxAtStartPar\s*It is the only", source)
    assert re.search(r"\\begin\{drotsolution\}\{Solution to .*Exercise 1\.1", source)
    assert r"\begin{drotglance}{At a glance}" in source
    assert re.search(r"\\begin\{drotaside\}\{[^}]*In the code", source)


def test_what_moves_gives_way_to_its_finding_and_an_address(source: str):
    page = "https://drot-book.github.io/drot/small.html"
    assert rf"It moves. Try it at \sphinxurl{{{page}}}" in source
    assert r"\begin{drotnote}{Data}" in source and "Absent." in source
    assert "unseen" not in source
    assert rf"\sphinxhref{{{page}}}" in source  # the notebook is on the site


def test_code_that_draws_is_left_out_and_what_it_prints_is_not(source: str):
    assert "secret" not in source
    assert re.search(r"\\begin\{drotprinted\}.*shown.*\\end\{drotprinted\}", source, re.S)


def test_macros_of_formulas_are_those_of_the_site(source: str):
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    for name in config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]:
        assert rf"\drotmacro{{{name}}}" in source


def row(*texts: str) -> nodes.row:
    entries = [nodes.entry("", nodes.paragraph("", text), classes=[]) for text in texts]
    parent = nodes.row("", *entries)
    nodes.tbody("", parent)
    return parent


def test_columns_fit_the_page():
    size, types = paper.columns([row("a", "b"), row("short", "also short")])
    assert (size, types) == (r"\small", ["l", "l"])
    long = " ".join(["word"] * 60)
    size, types = paper.columns([row("a", "b", "c"), row("name", long, "1.5")])
    shares = [re.search(r"\\X\{(\d+)\}\{(\d+)\}", kind) for kind in types]
    numbers = [int(share[1]) for share in shares]
    assert sum(numbers) <= int(shares[0][2]) == 860
    assert numbers[1] > 5 * numbers[0] and min(numbers) >= 10 * len("1.5")
    ten = [row(*["1234567"] * 10), row(*["1234567"] * 10)]
    assert paper.columns(ten)[0] == r"\footnotesize"


def test_without_latex_one_sentence_says_what_is_missing(monkeypatch, tmp_path):
    """Before anything is installed or executed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(make, "setup", lambda: pytest.fail("went on"))
    with pytest.raises(make.Failed, match=r"latexmk and xelatex not found; .*apt install"):
        make.make_pdf({})


def test_the_page_can_be_typeset(folder: Path):
    if not (shutil.which("xelatex") and shutil.which("latexmk")):
        pytest.skip("no LaTeX on this machine: nothing was typeset")
    once = ["xelatex", "-interaction=nonstopmode", "-halt-on-error", "drot.tex"]
    answer = subprocess.run(once, cwd=folder, capture_output=True, text=True, errors="replace")
    assert answer.returncode == 0, answer.stdout[-1500:]
    assert (folder / "drot.pdf").stat().st_size > 10_000
    log = (folder / "drot.log").read_text("utf8", "replace")
    assert "Missing character" not in log
