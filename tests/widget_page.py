"""What the tests of the widgets share: a page in one file, Chromium before it, and Node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

STATIC = Path(__file__).resolve().parents[1] / "book" / "_static"
WIDGETS = STATIC / "widgets"
THEMES = ("pydata_sphinx_theme", "sphinx_book_theme")


def write_page(folder: Path, widget: str, scripts: Sequence[str]) -> Path:
    """A widget as a chapter embeds it, under the theme's own style sheets, in one file."""
    sheets = [
        Path(str(resources.files(theme))).joinpath(
            "theme", theme, "static", "styles", f"{theme.replace('_', '-')}.css"
        )
        for theme in THEMES
    ]
    links = "".join(
        f'<link rel="stylesheet" href="{sheet.as_uri()}">'
        for sheet in (*sheets, STATIC / "book.css")
    )
    programs = "".join(
        f'<script src="{(WIDGETS / name).as_uri()}"></script>' for name in ("common.js", *scripts)
    )
    file = folder / "page.html"
    file.write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>Widget</title>{links}</head><body><main><article class="bd-article">'
        f"<h1>Widget</h1>{widget}{programs}</article></main></body></html>",
        encoding="utf8",
    )
    return file


def open_page(browser, file: Path, width: int = 1100, *, box: str):
    """A page that writes down, in ``said``, what it complains of and whom else it asks."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, reduced_motion="reduce", has_touch=width < 500
    )
    page = context.new_page()
    page.said = []
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("console", lambda m: m.type in ("error", "warning") and page.said.append(m.text))
    page.on("request", lambda r: r.url.startswith("file:") or page.said.append(r.url))
    page.on("requestfailed", lambda r: page.said.append(r.url))
    page.goto(file.as_uri())
    page.locator(f"{box} output").wait_for()
    return page


def contrast(page, kind: str, attribute: str, *, box: str) -> float:
    """WCAG contrast of the first mark of a kind against the ground of the widget."""
    pair = page.evaluate(
        """([box, kind, attribute]) => [
            getComputedStyle(document.querySelector(`${box} ${kind}`))[attribute],
            getComputedStyle(document.querySelector(box)).backgroundColor,
        ]""",
        [box, kind, attribute],
    )

    def light(colour: str) -> float:
        rgb = np.array([float(v) for v in re.findall(r"[\d.]+", colour)[:3]]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted(map(light, pair))
    return (high + 0.05) / (low + 0.05)


def node(program: str, data: object, *, core: str) -> str:
    """What a program for Node prints that finds the core as its argument and the data as input."""
    executable = shutil.which("node")
    if executable is None:
        pytest.skip("node is not installed: the widget is compared with Python in Chromium only")
    command = [executable, "-e", program, str(WIDGETS / core)]
    text = json.dumps(data)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
