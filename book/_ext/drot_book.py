"""Sphinx extension of the book.

- Serves MathJax from the site itself, from the wheel of ``sphinx-mathjax-offline``.
- Drops scripts that are emitted twice, and mends the markup of long signatures.
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

import executions
import myst_nb.core.execute.cache as nb_cache
from jupyter_cache.executors.utils import ExecutionResult

# Part of MathJax that one output format (CHTML) needs: 3 MB of 24.
MATHJAX = ("tex-chtml.js", "input/tex/extensions", "output/chtml/fonts", "ui", "sre", "a11y")


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


def drop_repeated_scripts(app, pagename, templatename, context, doctree):
    """sphinx-thebe declares its constants twice, which is an error in the browser."""
    seen, kept = set(), []
    for script in context.get("script_files", []):
        body = getattr(script, "attributes", {}).get("body")
        if not body or body not in seen:
            kept.append(script)
        seen.add(body)
    context["script_files"] = kept


def mend_signatures(app, pagename, templatename, context, doctree):
    """A signature over several lines is a list without terms: say that it is no list of terms."""
    context["body"] = re.sub(
        r'<dl>(?=\s*<dd><em class="sig-param)', '<dl role="presentation">', context.get("body", "")
    )


def setup(app):
    app.connect("builder-inited", check_cache)
    app.connect("build-finished", copy_mathjax)
    app.connect("html-page-context", drop_repeated_scripts, priority=900)
    app.connect("html-page-context", mend_signatures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
