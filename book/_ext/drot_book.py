"""Sphinx extension of the book.

- Serves MathJax from the site itself, from the wheel of ``sphinx-mathjax-offline``.
- Takes icons from the theme's web font, and not from 1.5 MB of script that draws the same.
- Lets Previous and Next lead from chapter to chapter.
- Counts the figures of each page at the front from 1, those of chapter 0 as 0.1, 0.2.
- Drops scripts that are emitted twice, and mends the markup of signatures and of the bibliography.
- Keeps words with a hyphen, and formulas with the comma behind them, in one line.
- Says on the button of a folded cell that it holds a page's imports.
- Lets exercises say whether an answer is right (``answers.py``).
- Shows every figure in one place (``gallery.py``).
- Ships every chapter as an executed notebook, and links it to Colab (``notebooks.py``).
- Keeps the build honest: a cache of executions that does not fit the package is emptied before
  it is read, and with ``DROT_EXECUTED=1`` (set by ``make``) the build may execute nothing.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import answers
import drot
import executions
import gallery
import myst_nb.core.execute.cache as nb_cache
import notebooks
import numpy
import torch
from docutils import nodes
from jupyter_cache.executors.utils import ExecutionResult
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.typing import stringify_annotation

# Part of MathJax that one output format (CHTML) needs: 3 MB of 24.
MATHJAX = ("tex-chtml.js", "input/tex/extensions", "output/chtml/fonts", "ui", "sre", "a11y")

# A formula in a line, and what must not begin the next one: punctuation, or the rest of "n-th".
FORMULA = re.compile(r'(<span class="math[^"]*">[^<]*</span>)(-[a-z]+|[.,;:!?)\]”]+)')

# A label of the book in a docstring, and the role that makes it a link.
LABEL = re.compile(r"``((thm|prp|lem|cor|rem|def|alg|eq|ch|sec|err)-[a-z0-9-]+)``")
ROLES = {"eq": "eq", "ch": "ref", "sec": "ref", "err": "ref"}

# Pages at the front, and what stands before the numbers of their figures.
FRONT = {
    "book/index": (),
    "book/00_one_picture": (0,),
    "book/quickstart": (),
    "book/reading_maps": (),
    "book/single_cells": (),
}

# A word or number with a hyphen at which no line may end, and where it may stand.
PROSE = (nodes.paragraph, nodes.emphasis, nodes.strong, nodes.term, nodes.caption, nodes.reference)
HYPHENED = re.compile(r"\b(?:[A-Za-z]-[A-Za-z]\w*|\d[\d.]*e-\d+)")


class NotAmongTheExecutionsOfPytest(Exception):
    """A chapter that pytest did not execute; run ``make book`` or ``make test``."""


def refuse(notebook, cwd, **options):
    """Stand where myst-nb executes a notebook; only one without code cells may pass."""
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        return ExecutionResult(notebook, cwd, 0.0)
    error = NotAmongTheExecutionsOfPytest()
    text = "".join(traceback.format_exception(error))
    return ExecutionResult(notebook, cwd, 0.0, error, text)


def check_cache(app):
    if os.environ.get("DROT_EXECUTED") == "1":
        nb_cache.single_nb_execution = refuse
    else:
        executions.prepare()


class KeepWordsWhole(SphinxPostTransform):
    """t-SNE, k-means and 1e-8 stay in one line."""

    default_priority = 900
    formats = ("html",)

    def run(self, **options) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if isinstance(text.parent, PROSE) and HYPHENED.search(text):
                parts, done = [], 0
                for word in HYPHENED.finditer(text):
                    parts.append(nodes.Text(text[done : word.start()]))
                    parts.append(nodes.inline("", word[0], classes=["together"]))
                    done = word.end()
                text.parent.replace(text, [*parts, nodes.Text(text[done:])])


def copy_mathjax(app, exception):
    if exception or app.builder.format != "html":
        return
    package = importlib.import_module("sphinx-mathjax-offline")
    source = Path(package.__file__).parent / "static" / "mathjax"
    for name in MATHJAX:
        target = Path(app.outdir, "_static", "mathjax", name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source / name, target)


def take_icons_from_the_font(app, exception):
    """The theme brings each icon twice; its style sheets need no more than the font."""
    if exception or app.builder.format != "html":
        return
    scripts = Path(app.outdir, "_static", "scripts")
    (scripts / "fontawesome.js").write_text("/* icons come from the font */\n", "utf8")
    (scripts / "fontawesome.js.map").unlink(missing_ok=True)


def drop_repeated_scripts(app, pagename, templatename, context, doctree):
    """sphinx-thebe declares its constants twice, which is an error in the browser."""
    seen, kept = set(), []
    for script in context.get("script_files", []):
        body = getattr(script, "attributes", {}).get("body")
        if not body or body not in seen:
            kept.append(script)
        seen.add(body)
    context["script_files"] = kept


def mend_markup(app, pagename, templatename, context, doctree):
    """Where the markup says of itself what it is not, and lets a line begin with a comma."""
    body = context.get("body", "")
    body = FORMULA.sub(r'<span class="together">\1\2</span>', body)
    # A signature over several lines is a list without terms.
    body = re.sub(r'<dl>(?=\s*<dd><em class="sig-param)', '<dl role="presentation">', body)
    # A bibliography is called a list, its entries something else, which is deprecated too.
    body = body.replace('<div role="list" class="citation-list">', '<div class="citation-list">')
    context["body"] = body.replace(' role="doc-biblioentry"', "")


def shorten_types(app, what, name, thing, options, signature, returned):
    """Say ArrayLike, and not all that NumPy takes for an array; tell two generators apart."""
    generators = "numpy.random.Generator | torch.Generator"
    names = {ArrayLike: "ArrayLike", numpy.random.Generator | torch.Generator: generators}
    for kind, short in names.items():
        signature = signature and signature.replace(stringify_annotation(kind, "smart"), short)
    return signature, returned


def link_labels(app, what, name, thing, options, lines):
    """Where a docstring names a statement of the book, lead there."""
    for i, line in enumerate(lines):
        lines[i] = LABEL.sub(lambda m: f":{ROLES.get(m[2], 'prf:ref')}:`{m[1]}`", line)


def name_by_package(app, doctree) -> None:
    """Give what is documented flat an anchor of its package too: pages of code link there."""
    modules = getattr(app.env, "_viewcode_modules", {})
    for module, entry in modules.items():
        if entry and (package := package_of(module)):
            modules[module] = (*entry[:3], package)
    for sign in doctree.findall(addnodes.desc_signature):
        if sign.get("module") == "drot":
            thing = getattr(drot, sign["fullname"].partition(".")[0])
            if package := package_of(getattr(thing, "__module__", "")):
                sign["ids"].append(f"{package}.{sign['fullname']}")


def package_of(module: str) -> str:
    """drot.gromov for drot.gromov.descent, drot.metrics for itself; none for others."""
    return ".".join(module.split(".")[:2]) if module.startswith("drot.") else ""


def name_the_imports(app, doctree) -> None:
    """Say on its button what a folded cell holds that begins with imports."""
    for cell in doctree.findall(nodes.container):
        if cell.get("hide_mode") == "all" and cell.astext().startswith(("import ", "from ")):
            cell["prompt_show"], cell["prompt_hide"] = "Imports of this page", "Hide the imports"


def turn_to_the_next_chapter(app, pagename, templatename, context, doctree):
    """Previous and Next of a chapter, and of the first page, pass over all that stands between.

    A chapter's second page lies beside it, and leads on as the chapter does.
    """
    found = app.env.found_docs
    route = [app.config.root_doc, *sorted(name for name in found if re.match(r"book/\d\d_", name))]
    here = pagename.replace("/further/", "/")
    if here not in route:
        return
    at = route.index(here)
    before = here if here != pagename else route[at - 1] if at else None
    after = route[at + 1] if at + 1 < len(route) else "book/papers"
    for side, name in (("prev", before), ("next", after)):
        context[side] = name and {
            "link": app.builder.get_relative_uri(pagename, name),
            "title": app.builder.render_partial(app.env.titles[name])["title"],
        }


def count_figures_by_page(app, env) -> list[str]:
    """Sphinx goes on counting from page to page where chapters have no number."""
    for page, first in FRONT.items():
        figures = env.toc_fignumbers.get(page, {}).get("figure", {})
        figures |= {name: (*first, k) for k, name in enumerate(figures, 1)}
    return []


def setup(app):
    app.connect("env-get-updated", count_figures_by_page, priority=900)  # after Sphinx itself
    app.connect("doctree-read", name_by_package, priority=900)
    app.connect("doctree-read", name_the_imports)
    app.connect("autodoc-process-docstring", link_labels)
    app.connect("autodoc-process-signature", shorten_types)
    app.connect("builder-inited", check_cache)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", take_icons_from_the_font)
    answers.setup(app)
    gallery.setup(app)
    notebooks.setup(app)
    app.connect("html-page-context", drop_repeated_scripts, priority=900)
    app.connect("html-page-context", turn_to_the_next_chapter)
    app.connect("html-page-context", mend_markup)
    app.add_post_transform(KeepWordsWhole)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
