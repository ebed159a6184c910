"""Draw the pictures of the README and of links to the book.

.venv/bin/python scripts/pictures.py
"""

from __future__ import annotations

from pathlib import Path

import drot
import matplotlib.pyplot as plt
from drot.plot import COLORS, draw_graph, style

STATIC = Path(__file__).resolve().parents[1] / "book" / "_static"


def readme() -> plt.Figure:
    """Two affinities of three clouds."""
    X = drot.datasets.three_gaussians().X
    cost = drot.sqeuclidean(X)
    each = drot.entropic_affinity(cost, perplexity=5)
    average = drot.doubly_stochastic_affinity(cost, perplexity=5)
    fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
    shades = {"vmin": 0, "vmax": float(average.perplexity.max().log2())}
    draw_graph(axes[0], X, each.plan, color=each.perplexity.log2(), **shades)
    dots = draw_graph(axes[1], X, average.plan, color=average.perplexity.log2(), **shades)
    axes[0].set_title("entropic: a perplexity of 5 for each point")
    axes[1].set_title("doubly stochastic: 5 on average")
    bar = fig.colorbar(dots, ax=axes, shrink=0.8, label="perplexity of the point")
    bar.set_ticks(range(5), labels=["1", "2", "4", "8", "16"])
    return fig


def social() -> plt.Figure:
    """Three maps of the same digits, 1200 x 630 pixels."""
    digits = drot.datasets.digits(500)
    fig, axes = plt.subplots(1, 3, figsize=(12, 6.3))
    for seed, ax in enumerate(axes):
        Z = drot.TSNE(init="random", random_state=seed).fit_transform(digits.X.numpy())
        ax.scatter(*Z.T, c=digits.y, cmap="tab10", s=14)
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(False)
    fig.suptitle("Dimension Reduction as Optimal Transport", fontsize=28, color=COLORS[0])
    fig.supxlabel("Three maps of the same digits. Which differences mean something?", fontsize=20)
    return fig


for name, draw in {"readme": readme, "social": social}.items():
    with style():
        draw().savefig(STATIC / f"{name}.png", dpi=100, metadata={"Software": None})
