"""Draw the pictures of links to the book, and of the README, after ``make book``.

.venv/bin/python scripts/pictures.py
"""

from __future__ import annotations

import shutil
from pathlib import Path

import drot
import matplotlib.pyplot as plt
from drot.plot import COLORS, scatter, style
from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
STATIC, SITE = ROOT / "book" / "_static", ROOT / "_build" / "html"


def social() -> plt.Figure:
    """Three maps of the same digits, 1200 x 630 pixels."""
    digits = drot.datasets.digits(500)
    fig, axes = plt.subplots(1, 3, figsize=(12, 6.3))
    for seed, ax in enumerate(axes):
        model = drot.TSNE(init="random", random_state=seed).fit(digits.X.numpy())
        scatter(model, digits.y, ax=ax, size=16)
        for name in ax.texts:
            name.set_fontsize(20)
    fig.get_layout_engine().set(wspace=0.15)  # three pictures, not one
    fig.suptitle("Dimension Reduction as Optimal Transport", fontsize=28, color=COLORS[0])
    fig.supxlabel("Three maps of the same digits. Which differences mean something?", fontsize=20)
    return fig


def page() -> None:
    """A widget of the built site."""
    with sync_playwright() as playwright:
        browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))))
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        view = chromium.new_page(viewport={"width": 880, "height": 660}, reduced_motion="reduce")
        view.goto((SITE / "book" / "02_entropic_affinity.html").as_uri())
        view.evaluate("() => window.MathJax?.startup?.promise")
        view.locator(".drot-widget output").first.wait_for()
        view.wait_for_timeout(500)
        view.locator(".drot-widget").first.screenshot(path=STATIC / "page.png")
        chromium.close()
    with Image.open(STATIC / "page.png") as picture:
        picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(STATIC / "page.png")


with style():
    social().savefig(STATIC / "social.png", dpi=100, metadata={"Software": None})
if (SITE / "index.html").exists():
    page()
