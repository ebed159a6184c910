"""The notebooks that the site ships: each chapter with its outputs, to download or open in Colab.

A chapter is executed once, by pytest.  Its notebook takes the outputs from there, has numbers
where the prose pastes them from code, and begins with a cell that makes it run in Colab.
"""

from __future__ import annotations

import re
from pathlib import Path

import answers
import executions
import nbformat
from myst_nb.core.variables import format_plain_text

# Addresses a copy on the branch that holds the site; Colab opens no Markdown.
COLAB = "https://colab.research.google.com/github/{user}/{repo}/blob/gh-pages/_sources/{page}.ipynb"
CLONE = "drot-book"  # "drot" would stand in the way of `import drot`
PASTED = re.compile(r"\{glue:text\}`([^`:]+):?([^`]*)`")
INDEX = re.compile(r"^```\{index\}[^\n]*\n```(\n+|\Z)", re.M)  # an empty box, but for Sphinx
RECORD = "application/papermill.record/text/plain"

# What chapters import besides the package and its requirements stands behind the package.
SET_UP = """\
# Only for Colab, or where drot is missing: fetches the book and installs its package.
from importlib.util import find_spec
from pathlib import Path

if find_spec("drot") is None:
    !git clone -q --depth 1 {repository} {clone}
    %pip install -q ./{clone}/pkg myst-nb
if Path("{clone}/{folder}").is_dir():
    %cd -q {clone}/{folder}"""


def set_up_cell(repository: str, folder: str):
    """First cell of a notebook; where drot is installed already, it does nothing."""
    source = SET_UP.format(repository=repository, clone=CLONE, folder=folder)
    return nbformat.v4.new_code_cell(source, id="set-up", metadata={"tags": ["set-up"]})


def paste_numbers(notebook) -> None:
    """Write the number where the prose names it; Colab and JupyterLab know no such role."""
    values = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "scrapbook" in output.get("metadata", {}) and RECORD in output["data"]:
                values[output["metadata"]["scrapbook"]["name"]] = output["data"][RECORD]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = PASTED.sub(
                lambda m: format_plain_text(values[m[1]], m[2]) if m[1] in values else m[0],
                cell.source,
            )


def drop_boxes(notebook) -> None:
    """A notebook has no index to send readers to, and its forms would not reply."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = answers.DIRECTIVE.sub("", INDEX.sub("", cell.source))


def ship(app, doctree) -> None:
    """Replace what myst-nb has written for a page, which is the page before its execution."""
    page = app.env.docname
    path = Path(app.outdir).parent / "jupyter_execute" / f"{page}.ipynb"
    if not path.is_file():
        return
    notebook = nbformat.read(path, as_version=4)
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        return
    try:
        _, notebook = executions.open_cache().merge_match_into_notebook(notebook)
    except KeyError:  # its execution failed, and myst-nb has said so
        return
    paste_numbers(notebook)
    drop_boxes(notebook)
    repository = app.config.html_theme_options["repository_url"]
    notebook.cells.insert(0, set_up_cell(repository, Path(page).parent.as_posix()))
    notebook.metadata.pop("source_map", None)  # lines of the Markdown file
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def offer_colab(app, pagename, templatename, context, doctree) -> None:
    """Beside Binder, where the theme has put that."""
    for group in context.get("header_buttons", []):
        if group.get("label") == "launch-buttons":
            user, repo = app.config.html_theme_options["repository_url"].split("/")[-2:]
            group["buttons"].append(
                {
                    "type": "link",
                    "text": "Colab",
                    "tooltip": "Launch on Colab",
                    "icon": "_static/images/logo_colab.png",
                    "url": COLAB.format(user=user, repo=repo, page=pagename),
                }
            )


def setup(app) -> None:
    app.connect("doctree-read", ship)
    app.connect("html-page-context", offer_colab, priority=900)
