"""Figures of the book: one look, and the few drawings that several chapters share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection

from ._core.checks import as_points, as_real

__all__ = ["COLORS", "draw_graph", "style"]

# Told apart by colour-blind readers and on a grey printer (Okabe and Ito, darkened).
COLORS = ("#0b6176", "#c0571a", "#5b4a9c", "#4f7f2a", "#b23a6b", "#8a6d00", "#3d7fb0", "#6b6b6b")


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib settings of the book's figures, as a context manager.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> with style():
    ...     fig, ax = plt.subplots()
    >>> plt.close(fig)
    """
    with plt.rc_context(
        {
            "axes.prop_cycle": plt.cycler(color=COLORS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "savefig.facecolor": "white",
        }
    ):
        yield
        interactive = matplotlib.is_interactive()
    # a notebook turns this on with the first figure; the context would turn it off again
    matplotlib.interactive(interactive)


def draw_graph(
    ax: Axes,
    X,
    weights,
    *,
    color=None,
    cmap: str = "viridis",
    vmin: float | None = None,
    vmax: float | None = None,
    least: float = 1e-3,
) -> PathCollection:
    """Draw a weighted graph in the plane: points, and edges as dark as their weight.

    Parameters
    ----------
    ax : matplotlib Axes
    X : array_like, shape (n, 2)
    weights : array_like, shape (n, n)
        Read as symmetric: an edge shows the mean of its two directions. The darkest edge is
        the heaviest one off the diagonal.
    color : array_like, shape (n,), optional
        One value per point, shown through ``cmap`` between ``vmin`` and ``vmax``.
    least : float
        Edges below this share of the heaviest are left out.

    Returns
    -------
    PathCollection
        The points, for a colour bar.
    """
    X = as_points(X, "X").cpu().numpy()
    weights = as_real(weights, "weights").cpu().numpy()
    if X.shape[1] != 2 or weights.shape != (len(X), len(X)):
        raise ValueError(f"X must be (n, 2) and weights (n, n); got {X.shape} and {weights.shape}")
    i, j = np.triu_indices(len(X), k=1)
    share = (weights[i, j] + weights[j, i]) / 2
    share = share / share.max()
    order = np.argsort(share)  # the heaviest on top
    order = order[share[order] > least]
    edges = np.stack([X[i], X[j]], axis=1)[order]
    shades = [(0, 0, 0, shade) for shade in np.sqrt(share[order])]
    ax.add_collection(LineCollection(list(edges), colors=shades, linewidths=0.9, zorder=1))
    shown: dict[str, Any] = {"c": COLORS[0]}
    if color is not None:
        shown = {"c": np.asarray(color), "cmap": cmap, "vmin": vmin, "vmax": vmax}
    points = ax.scatter(
        X[:, 0], X[:, 1], s=26, edgecolors="white", linewidths=0.5, zorder=2, **shown
    )
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return points
