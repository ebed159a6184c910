"""Draw the picture of the README: ``.venv/bin/python scripts/readme_picture.py``."""

from __future__ import annotations

from pathlib import Path

import drot
import matplotlib.pyplot as plt
from drot.plot import draw_graph, style

TARGET = Path(__file__).resolve().parents[1] / "book" / "_static" / "readme.png"

X = drot.datasets.three_gaussians().X
cost = drot.sqeuclidean(X)
each = drot.entropic_affinity(cost, perplexity=5)
average = drot.doubly_stochastic_affinity(cost, perplexity=5)
with style():
    fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
    shades = {"vmin": 0, "vmax": float(average.perplexity.max().log2())}
    draw_graph(axes[0], X, each.plan, color=each.perplexity.log2(), **shades)
    dots = draw_graph(axes[1], X, average.plan, color=average.perplexity.log2(), **shades)
    axes[0].set_title("entropic: a perplexity of 5 for each point")
    axes[1].set_title("doubly stochastic: 5 on average")
    bar = fig.colorbar(dots, ax=axes, shrink=0.8, label="perplexity of the point")
    bar.set_ticks(range(5), labels=["1", "2", "4", "8", "16"])
    fig.savefig(TARGET, dpi=100, metadata={"Software": None})
