"""Figures of the book: one look, and the few drawings that several chapters share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import Normalize, to_rgb
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke
from matplotlib.rcsetup import cycler
from scipy.spatial.distance import cdist
from torch import Tensor

from ._core.checks import as_count, as_flag, as_points, as_positive, as_square
from .hyperbolic import to_poincare

__all__ = ["COLORS", "draw_graph", "panels", "scale_bar", "scatter", "style"]


def __dir__() -> list[str]:
    return __all__


# Eight told apart by colour-blind readers and on a grey printer (Okabe and Ito, darkened), and two.
COLORS = (
    *("#0b6176", "#c0571a", "#5b4a9c", "#4f7f2a", "#b23a6b", "#8a6d00", "#3d7fb0", "#6b6b6b"),
    *("#8a2be2", "#1d1d1d"),
)
_MOST = 50  # whole numbers that may be classes
_MARKERS = "oD^"  # a colour that comes again has another form: 30 classes are told apart


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
            "axes.prop_cycle": cycler(color=COLORS),
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
) -> PathCollection:
    """Draw a weighted graph in the plane: points, and edges as dark as their weight.

    Parameters
    ----------
    ax : matplotlib Axes
    X : array_like, shape (n, 2)
    weights : Affinity or array_like, shape (n, n)
        Read as symmetric: an edge shows the mean of its two directions. The darkest edge is
        the heaviest one off the diagonal; edges below a thousandth of it are left out.
    color : array_like, shape (n,), optional
        One value per point, shown through ``cmap`` between ``vmin`` and ``vmax``.

    Returns
    -------
    PathCollection
        The points, for a colour bar.

    Raises
    ------
    ValueError
        If the points are not in the plane, or the weights are not those of as many.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> ax = panels(1)[0]
    >>> X, path = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]], [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> points = draw_graph(ax, X, path)
    >>> len(points.get_offsets()), len(ax.collections[0].get_segments())  # and two edges
    (3, 2)
    >>> plt.close(ax.figure)
    """
    X = as_points(X, "X").cpu().numpy()
    weights = as_square(weights, "weights").cpu().numpy()
    if X.shape[1] != 2 or weights.shape != (len(X), len(X)):
        raise ValueError(f"X must be (n, 2) and weights (n, n); got {X.shape} and {weights.shape}")
    i, j = np.triu_indices(len(X), k=1)
    share = np.maximum(weights[i, j] + weights[j, i], 0) / 2
    share = share / (share.max() or 1)
    order = np.argsort(share)  # the heaviest on top
    order = order[share[order] > 1e-3]
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


def panels(count: int, *, columns: int = 3, side: float = 1.9) -> list[Axes]:
    """Axes for maps side by side, in rows of at most ``columns``.

    Pass ``columns=1`` for a figure that is to be narrow: the panels then stand one above the
    other.

    Parameters
    ----------
    count : int
    columns : int
    side : float
        Of a panel, in inches.

    Returns
    -------
    list of Axes
        One per map; their figure is ``axes[0].figure``.

    Raises
    ------
    ValueError
        If a number is below 1, or the side not positive.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> axes = panels(4)
    >>> len(axes), axes[0].figure.get_size_inches().round(1).tolist()  # rows of 3 and 1
    (4, [5.7, 4.4])
    >>> plt.close(axes[0].figure)
    """
    count, columns = as_count("count", count, 1), as_count("columns", columns, 1)
    wide, side = min(count, columns), as_positive("side", side)
    rows = math.ceil(count / wide)
    with style():
        size = (side * wide, (side + 0.3) * rows)
        grid = plt.subplots(rows, wide, figsize=size, squeeze=False)[1].ravel()
    for ax in grid:
        ax.set_axis_off()  # until something is drawn: the last row may have holes
    return list(grid[:count])


def scale_bar(ax: Axes, model) -> None:
    """Draw a bar below a map, a power of ten long, in bandwidths of the map's kernel.

    Parameters
    ----------
    ax : matplotlib Axes
        Where the map is drawn.
    model : estimator, result or array_like of shape (n, 2)
        As for :func:`scatter`.

    Raises
    ------
    ValueError
        If the map is not in the plane, or all its points coincide.

    Examples
    --------
    >>> ax = panels(1)[0]
    >>> scale_bar(ax, [[0.0, 0.0], [30.0, 0.0]])
    >>> ax.texts[0].get_text()
    '10'
    """
    Z = _map_of(model)[0]
    size = float(Z.std())
    if not size > 0 or Z.shape[1] != 2:
        raise ValueError(f"a bar needs a map in the plane of positive size; got {Z.shape}, {size}")
    bar = 10.0 ** round(math.log10(size))
    left, low = Z.min(axis=0) - [0, 0.4 * size]
    _, ink, font = _look_of(ax)
    ax.plot([left, left + bar], [low, low], color=ink, lw=2)
    ax.text(left + 1.1 * bar, low, f"{bar:g}", color=ink, va="center", fontsize=font)


def scatter(
    model,
    y=None,
    *,
    names: Mapping | Sequence[str] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    beside: bool = False,
    size: float | None = None,
    images=None,
) -> Axes:
    r"""Draw a map of points or prototypes, with its classes named on it.

    Axes have no numbers: a map is determined up to a rotation at most. Classes have the ten
    :data:`COLORS`, lighter on a dark ground, and another marker when these come again.

    Parameters
    ----------
    model : estimator, pipeline that ends with one, result or array_like of shape (n, 2)
        Anything with ``embedding_`` or ``Z``, or positions. Prototypes (of :class:`drot.DistR` or
        a reduction) are discs, the area as their weight; those without weight are left out.
        Lorentz coordinates (n, 3) of :mod:`drot.hyperbolic` are drawn in Poincare's disc.
    y : array_like of shape (n,), optional
        Classes: integers, strings or pandas categories, whose order is kept; missing ones are
        grey. Or numbers, which are shown by a colour scale: fractions, and whole ones of more
        than 50 values that have no ``names``. Of points, or of fewer prototypes: one has the class
        (the mean number) that most of its points have.
    names : mapping or sequence of str, optional
        What to write for a class: from classes to names, or names in the order of the classes.
    ax : matplotlib Axes, optional
        Default: a new figure.
    title : str, optional
    beside : bool
        Names where no point lies, each with a thin line to its class, so that they hide none.
    size : float, optional
        Area of a point, or of a prototype of mean weight, in square points.
    images : array_like, shape (n, h, w) or (k, h, w), optional
        Pictures in place of discs. A prototype shows the mean over its points.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If the map is not in the plane; if classes, names or pictures are not as many as they
        should be, or have another shape; or if the size is not positive.
    TypeError
        If the classes are dates, or ``ax`` is no Axes.
    NotFittedError
        If the estimator has no map yet.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> Z = [[0.0, 0.0], [0.1, 0.0], [3.0, 3.0]]
    >>> ax = scatter(Z, ["T cell", "T cell", "B cell"])
    >>> [text.get_text() for text in ax.texts]
    ['B cell', 'T cell']
    >>> plt.close(ax.figure)
    """
    Z, weights, plan = _map_of(model)
    beside = as_flag("beside", beside)
    if ax is None:
        with style():
            ax = plt.subplots(figsize=(4.2, 4.2))[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be one Axes, as plt.gca() is; got {type(ax).__name__}")
    if Z.shape[1] == 3 and np.allclose(Z[:, 0], np.hypot(1, np.linalg.norm(Z[:, 1:], axis=1))):
        Z = to_poincare(Z).numpy()
        ax.add_patch(Circle((0, 0), 1, fill=False, color="#8a8a8a", linewidth=0.8))
    if Z.shape[1] != 2:
        raise ValueError(f"maps here have shape (n, 2); got {Z.shape}; pass two columns, Z[:, :2]")
    classes, index, numbers = _classes(y, names, plan, len(Z))
    side = 72 * min(ax.get_window_extent().size) / ax.figure.dpi  # of the panel, in points
    usual = float(np.clip(0.2 * side**2 / len(Z), 2, 30 if weights is None else 300))
    area = usual if size is None else as_positive("size", size)
    areas = np.full(len(Z), area) if weights is None else area * weights / weights.mean()
    seen = areas > 0
    ground, _, font = _look_of(ax)
    look: dict[str, Any] = {"linewidths": 0.3, "edgecolors": ground, "alpha": 0.85}
    if images is not None:
        _place_images(ax, Z, images, plan, areas)
    elif numbers is not None:
        shown = ax.scatter(Z[seen, 0], Z[seen, 1], s=areas[seen], c=numbers[seen], **look)
        ax.figure.colorbar(shown, ax=ax, shrink=0.7)
    else:
        other = COLORS[0] if y is None else "#9a9a9a"
        _place_classes(ax, Z[seen], areas[seen], index[seen], classes, other, look)
    _write_names(ax, Z[seen], index[seen], classes, beside, weights is not None)
    if title is not None:
        ax.set_title(title, fontsize=font)
    ax.set_axis_on()
    ax.margins(0.06 if images is None else 0.12)  # pictures are larger than discs
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")  # titles of a row keep one height
    ax.spines[:].set_visible(False)
    return ax


def _place_classes(
    ax: Axes, Z: np.ndarray, areas: np.ndarray, index: np.ndarray, classes: list[str], other: str,
    look: Mapping[str, Any],
) -> None:  # fmt: skip
    """Each class in a colour and a form of its own; what has none (-1) in the colour ``other``."""
    for c in np.unique(index).tolist():
        here = index == c
        given = other if c < 0 else COLORS[c % len(COLORS)]
        on_black = look["edgecolors"] == "black"
        color = [(part + 0.8) / 1.8 if on_black else part for part in to_rgb(given)]
        marker = _MARKERS[max(c, 0) // len(COLORS) % len(_MARKERS)]
        label = classes[c] if c >= 0 else None
        marking: dict[str, Any] = {"color": [color], "marker": marker, "label": label}
        ax.scatter(Z[here, 0], Z[here, 1], s=areas[here], **marking, **look)


def _write_names(
    ax: Axes, Z: np.ndarray, index: np.ndarray, classes: list[str], beside: bool, discs: bool
) -> None:
    """The name of each class at a point in its middle, above a disc, or where no point lies."""
    ground, ink, font = _look_of(ax)
    halo = [withStroke(linewidth=2, foreground=ground, alpha=0.8)]
    write: dict[str, Any] = {"color": ink, "fontsize": font, "ha": "center", "path_effects": halo}
    free = _free_places(Z) if beside and (index >= 0).any() else np.empty((0, 2))
    for c in np.unique(index[index >= 0]).tolist():
        here = Z[index == c]
        place = here[np.linalg.norm(here - np.median(here, axis=0), axis=1).argmin()]
        if len(free):
            at = free[np.linalg.norm(free - place, axis=1).argmin()]
            free = free[np.linalg.norm(free - at, axis=1) > 0.12 * np.ptp(Z, axis=0).max()]
            line = {"arrowstyle": "-", "lw": 0.8, "color": ink, "shrinkA": 1, "shrinkB": 0}
            ax.annotate(classes[c], tuple(place), tuple(at), va="center", arrowprops=line, **write)
        else:
            va = "bottom" if discs else "center"
            ax.text(place[0], place[1], classes[c], va=va, **write)


def _free_places(Z: np.ndarray) -> np.ndarray:
    """Places of a grid within the bounds of a map that are far enough from its points."""
    low, size = Z.min(axis=0), np.ptp(Z, axis=0)
    steps = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, 40)]), axis=-1).reshape(-1, 2)
    places = low + size * steps
    return places[cdist(places, Z).min(axis=1) > 0.07 * size.max()]


def _look_of(ax: Axes) -> tuple[str, str, float]:
    """The colours of ground and ink, and a size of letters: 10 pixels on a figure 350 wide."""
    font = max(9.0, 2.1 * ax.figure.get_window_extent().width / ax.figure.dpi)
    dark = sum(to_rgb(ax.get_facecolor())) < 1.5
    return ("black", "white", font) if dark else ("white", "black", font)


def _map_of(model) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Positions (n, q); of prototypes also weights (k,), and the plan that gives them points."""

    def array(x) -> np.ndarray | None:
        return x.detach().cpu().numpy() if isinstance(x, Tensor) else x

    model = model[-1] if hasattr(model, "named_steps") else model  # of a pipeline
    for names in (("prototypes_", "weights_", "plan_"), ("Z", "weights", "plan")):
        if hasattr(model, names[0]):
            Z, weights, plan = (array(getattr(model, name, None)) for name in names)
            return np.asarray(Z), None if plan is None else weights, plan
    Z = model.embedding_ if hasattr(model, "fit") else getattr(model, "embedding_", model)
    return as_points(Z, "the map").cpu().numpy(), None, None


def _classes(y, names, plan, n: int) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Names of the classes, the class of each of n places (-1: none), or a number for each."""
    if y is None:
        return [], np.full(n, -1), None
    held: Any = y.detach().cpu().numpy() if isinstance(y, Tensor) else getattr(y, "cat", y)
    if hasattr(held, "categories"):  # of pandas
        found, index = list(held.categories), np.array(held.codes, dtype=int)
    else:
        values = np.asarray(held)
        if values.ndim != 1:
            cure = "; pass y.ravel()" if values.shape[1:] == (1,) else ""
            raise ValueError(f"y must have one class per point; got shape {values.shape}{cure}")
        held = values.tolist()  # pandas' NA, known by its name, is not even unequal to itself
        missing = np.array([v is None or repr(v) == "<NA>" or v != v for v in held], dtype=bool)
        kept = values[~missing]
        kept = np.array(kept.tolist()) if all(isinstance(v, Real) for v in kept) else kept
        if kept.dtype.kind in "mM" or hasattr(next(iter(kept), None), "isoformat"):
            raise TypeError("y holds dates; pass numbers, as matplotlib.dates.date2num(y), or text")
        many = kept.dtype.kind in "iuf" and names is None and len(np.unique(kept)) > _MOST
        if many or (kept.dtype.kind == "f" and (kept != kept.round()).any()):
            numbers = np.full(len(values), np.nan)
            numbers[~missing] = kept
            return [], np.full(n, -1), _pool(numbers, plan, n, "y")
        kept = (kept.astype(int) if kept.dtype.kind == "f" else kept).tolist()
        found = sorted(set(kept), key=lambda c: (isinstance(c, str), c))
        place, index = {c: i for i, c in enumerate(found)}, np.full(len(values), -1)
        index[~missing] = [place[c] for c in kept]
    if isinstance(names, Mapping):
        names = [names.get(c, c) for c in found]
    elif names is not None and len(names) != len(found):
        raise ValueError(f"names has {len(names)} entries and y {len(found)} classes")
    words = [str(c) for c in (found if names is None else names)]
    share = _pool(np.eye(len(found) + 1)[index], plan, n, "y")  # (n, classes + 1), the last: none
    index = share.argmax(axis=1)
    used = [c for c in range(len(found)) if (index == c).any()]  # others take no colour
    order = {c: i for i, c in enumerate(used)}
    return [words[c] for c in used], np.array([order.get(c, -1) for c in index.tolist()]), None


def _pool(values: np.ndarray, plan: np.ndarray | None, n: int, name: str) -> np.ndarray:
    """Values of n places: means over the points that the plan gives to each, or as given."""
    if plan is None or len(values) != len(plan):
        if len(values) == n:
            return values
        raise ValueError(f"{name} has {len(values)} entries and the map {n} points")
    weights = np.maximum(plan.sum(axis=0), 1e-300)
    return np.tensordot((plan / weights).T, values, axes=1)


def _place_images(ax: Axes, Z: np.ndarray, images, plan, areas: np.ndarray) -> None:
    """Pictures at the places whose area is positive, as large as a disc of three times it."""
    images = _pool(np.asarray(images, dtype=float), plan, len(Z), "images")
    if images.ndim != 3:
        raise ValueError(f"images must have shape (n, h, w); got {images.shape}")
    ax.scatter(Z[:, 0], Z[:, 1], s=0)  # sets the limits
    for place, image, area in zip(Z, images, areas, strict=True):
        if area > 0:
            ink = Normalize()(image)  # what is light lets others through
            picture = np.dstack([np.zeros((*ink.shape, 3)), ink])
            box = OffsetImage(picture, zoom=math.sqrt(3 * area) / len(ink))
            ax.add_artist(AnnotationBbox(box, tuple(place), frameon=False, pad=0))
