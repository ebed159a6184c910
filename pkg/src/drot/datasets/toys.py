"""Generated data: the toys of the papers, each from a seed. Read them as `drot.datasets`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from .._core.chance import Seed, as_rng
from .._core.checks import as_count, as_number, as_positive, check_choice
from .base import DataSet, make

Profiles = Literal["simplex", "cube"]


def _each(name: str, values, check: Callable, count: int | None = None) -> list:
    """One checked value for each group."""
    if np.ndim(values) != 1 or count not in (None, len(values)) or not len(values):
        number = f"{count} values" if count else "one value for each group"
        raise ValueError(f"{name} must list {number}; got {values!r}")
    return [check(name, value) for value in values]


_size = partial(as_count, low=1)


def digits(n_samples: int | None = None, *, random_state: Seed = 0) -> DataSet:
    """Handwritten digits, 8 x 8 pixels with values 0 to 16.

    All 1797 of them, in their order, or a stratified draw without replacement: each class keeps
    its share, rounded by largest remainder, and the order stays. No network is needed.

    Source: scikit-learn's ``load_digits`` (the test part of the UCI set "Optical Recognition of
    Handwritten Digits").

    Parameters
    ----------
    n_samples : int, optional
        Size of the draw, 10 to 1797. None keeps every digit and uses no seed.
    random_state : int, numpy Generator or torch Generator
        Decides the draw.

    Returns
    -------
    DataSet
        ``X`` of shape (n, 64); class k is digit k; ``details["index"]`` (n,) holds the rows drawn.

    Raises
    ------
    ValueError, TypeError
        When ``n_samples`` is out of range, or the seed is no seed.

    Examples
    --------
    >>> import drot
    >>> drot.datasets.digits(100).counts
    (10, 10, 10, 10, 10, 10, 10, 10, 10, 10)
    """
    from sklearn.datasets import load_digits  # slow to import, and only needed here

    X, y = load_digits(return_X_y=True)
    index = np.arange(len(y))
    if n_samples is not None:
        n = as_count("n_samples", n_samples, 10, len(y))
        rng = as_rng(random_state)
        share = n * np.bincount(y) / len(y)
        quota = np.floor(share).astype(int)
        first = np.argsort(quota - share, kind="stable")  # largest remainder first
        quota[first[: n - quota.sum()]] += 1
        drawn = [rng.choice(np.nonzero(y == k)[0], q, replace=False) for k, q in enumerate(quota)]
        index = np.sort(np.concatenate(drawn))
    text = "Handwritten digits of 8 x 8 pixels, values 0 to 16, from scikit-learn."
    return make("digits", text, X[index], y[index], map(str, range(10)), index=index)


def three_gaussians(
    n_per_cluster: int = 30, *, spreads: Sequence[float] = (1.0, 2.0, 3.0), random_state: Seed = 0
) -> DataSet:
    r"""Three Gaussian clouds in the plane, each wider than the one before.

    Cluster k is drawn from :math:`\mathcal N(c_k, \sigma_k^2 I_2)` with centres
    :math:`c = (-8, -8), (8, -8), (0, 8)`.

    Source: Figure 2 of SNEkhorn (Van Assel et al., 2023). The paper prints no parameters. The
    defaults are those of its authors' script (PythonOT/SNEkhorn, ``demo/fig2_paper.py``), with
    the clusters numbered from the tightest to the widest.

    Parameters
    ----------
    n_per_cluster : int
        Points in each cluster.
    spreads : sequence of 3 floats
        Standard deviations :math:`\sigma_k`, positive.
    random_state : int, numpy Generator or torch Generator
        Same seed, same bits.

    Returns
    -------
    DataSet
        ``X`` of shape (3 n_per_cluster, 2), ordered by cluster.

    Raises
    ------
    ValueError, TypeError
        When a number is out of range, or the seed is no seed.

    Examples
    --------
    >>> import drot
    >>> data = drot.datasets.three_gaussians(1000)
    >>> [round(float(data.X[data.y == k].std(dim=0).mean()), 1) for k in range(3)]
    [1.0, 2.0, 3.0]
    >>> [[round(z) for z in centre] for centre in data.X.view(3, 1000, 2).mean(dim=1).tolist()]
    [[-8, -8], [8, -8], [0, 8]]
    """
    y = np.repeat(np.arange(3), _size("n_per_cluster", n_per_cluster))
    sigma = np.array(_each("spreads", spreads, as_positive, 3))[y, None]  # (n, 1)
    centres = np.array([[-8.0, -8.0], [8.0, -8.0], [0.0, 8.0]])
    X = centres[y] + sigma * as_rng(random_state).standard_normal((len(y), 2))
    text = "Three Gaussian clouds in the plane, each wider than the one before."
    return make("three_gaussians", text, X, y, ("tight", "middle", "wide"))


def heteroscedastic_multinomials(
    n_per_batch: Sequence[int] = (500, 250, 250),
    *,
    n_trials: int = 1_000,
    n_high: int = 10_000,
    dimension: int = 10_000,
    profiles: Profiles = "simplex",
    random_state: Seed = 0,
) -> DataSet:
    r"""Frequencies counted from two distributions, one of them at two levels of noise.

    Draw :math:`p_1, p_2` in the probability simplex of dimension m, then rows
    :math:`x_i = \tilde x_i / N_i`, where :math:`\tilde x_i` is multinomial with :math:`N_i` trials:
    batch 0 from :math:`p_1` and batch 1 from :math:`p_2` with ``n_trials`` trials, batch 2 from
    :math:`p_2` with ``n_high`` trials. The class is which p; the batch effect is which N.

    Source: simulated data of SNEkhorn (Van Assel et al., 2023), Section 5, after Landa et al.
    (2021); book ``err-toy``. The paper has ``n_high`` = 2000, Section 4.4 of the thesis 10 000.

    Parameters
    ----------
    n_per_batch : sequence of 3 ints
        Rows in batches 0, 1, 2.
    n_trials, n_high : int
        Trials of the noisy batches 0 and 1, and of batch 2.
    dimension : int
        m, at least 2.
    profiles : {"simplex", "cube"}
        How p is drawn. ``"simplex"``: uniformly, Dirichlet(1, ..., 1), as the texts say.
        ``"cube"``: a uniform point of the unit cube divided by its sum, as the authors' script
        does (PythonOT/SNEkhorn, ``demo/fig5_paper.py``); then :math:`p_1` and :math:`p_2` are
        :math:`\sqrt 3` times closer.
    random_state : int, numpy Generator or torch Generator
        Same seed, same bits.

    Returns
    -------
    DataSet
        ``X`` of shape (n, m), rows summing to 1, ordered by batch; ``y`` is 0 for :math:`p_1` and
        1 for :math:`p_2`; ``details`` holds ``batch`` (n,), ``n_trials`` (n,), ``profiles`` (2, m).

    Raises
    ------
    ValueError, TypeError
        When a number is out of range, a name does not exist, or the seed is no seed.

    Examples
    --------
    >>> import drot
    >>> data = drot.datasets.heteroscedastic_multinomials((4, 2, 2), dimension=50)
    >>> data.y.tolist(), data.details["batch"].tolist()
    ([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 2, 2])
    """
    sizes = _each("n_per_batch", n_per_batch, _size, 3)
    n_trials, n_high = _size("n_trials", n_trials), _size("n_high", n_high)
    trials = np.repeat([n_trials, n_trials, n_high], sizes)
    m = as_count("dimension", dimension, 2)
    check_choice("profiles", profiles, Profiles)
    rng = as_rng(random_state)
    # Exponential weights divided by their sum are uniform on the simplex.
    p = rng.standard_exponential((2, m)) if profiles == "simplex" else rng.random((2, m))
    p /= p.sum(axis=1, keepdims=True)
    y = np.repeat([0, 1, 1], sizes)
    X = np.empty((len(y), m))
    for i, (k, count) in enumerate(zip(y, trials, strict=True)):  # one row at a time: little memory
        X[i] = rng.multinomial(count, p[k]) / count
    text = "Frequencies of two multinomial distributions, the second at two levels of noise."
    extra = {"batch": np.repeat(np.arange(3), sizes), "n_trials": trials, "profiles": p}
    return make("heteroscedastic_multinomials", text, X, y, ("p1", "p2"), **extra)


def circles(
    n_per_circle: int = 100,
    *,
    radii: Sequence[float] = (1.0,),
    noise: float = 0.05,
    dimension: int = 2,
    random_state: Seed = 0,
) -> DataSet:
    r"""One circle, or several around the same centre.

    Circle k holds points at uniform angles :math:`\theta` and radius :math:`r_k` in the first two
    coordinates. Gaussian noise is added to all coordinates.

    Source: Figure 1 of the DistR paper (Van Assel et al., 2025), upper row: a circle in three
    dimensions, ``dimension=3``. The paper prints no parameters.

    Parameters
    ----------
    n_per_circle : int
        Points on each circle.
    radii : sequence of floats
        :math:`r_k`, positive, one for each circle.
    noise : float
        Standard deviation of the noise, 0 or more, in the unit of ``radii``.
    dimension : int
        Coordinates of a point, at least 2.
    random_state : int, numpy Generator or torch Generator
        Same seed, same bits.

    Returns
    -------
    DataSet
        ``X`` of shape (n, dimension); ``y`` is the circle; ``details["angle"]`` (n,) in radians.

    Raises
    ------
    ValueError, TypeError
        When a number is out of range, or the seed is no seed.

    Examples
    --------
    >>> import drot
    >>> data = drot.datasets.circles(50, radii=(1, 2), noise=0)
    >>> sorted({round(r, 6) for r in data.X.norm(dim=1).tolist()})
    [1.0, 2.0]
    """
    n = _size("n_per_circle", n_per_circle)
    radius = _each("radii", radii, as_positive)
    p = as_count("dimension", dimension, 2)
    sigma = as_number("noise", noise)
    if not 0 <= sigma < math.inf:
        raise ValueError(f"noise must be 0 or positive, and finite; got {sigma}")
    rng = as_rng(random_state)
    y = np.repeat(np.arange(len(radius)), n)
    angle = rng.uniform(0, 2 * math.pi, len(y))
    X = sigma * rng.standard_normal((len(y), p))
    X[:, :2] += np.repeat(radius, n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    names = [f"radius {r:g}" for r in radius]
    return make("circles", "Points on circles around one centre.", X, y, names, angle=angle)


def unbalanced_clusters(
    sizes: Sequence[int] = (20, 60, 180),
    *,
    separation: float = 5.0,
    dimension: int = 3,
    random_state: Seed = 0,
) -> DataSet:
    r"""Gaussian clusters of unit spread and unequal sizes.

    The K centres are the corners of a regular polygon in the first two coordinates, neighbours
    ``separation`` apart; cluster k is :math:`\mathcal N(c_k, I)`.

    Source: Figure 1 of the DistR paper (Van Assel et al., 2025), lower row: clusters of varying
    sizes in three dimensions. The paper prints no parameters.

    Parameters
    ----------
    sizes : sequence of ints
        Points in each cluster.
    separation : float
        Distance of neighbouring centres, in standard deviations, positive.
    dimension : int
        Coordinates of a point, at least 2.
    random_state : int, numpy Generator or torch Generator
        Same seed, same bits.

    Returns
    -------
    DataSet
        ``X`` of shape (n, dimension), ordered by cluster.

    Raises
    ------
    ValueError, TypeError
        When a number is out of range, or the seed is no seed.

    Examples
    --------
    >>> import drot
    >>> drot.datasets.unbalanced_clusters().counts
    (20, 60, 180)
    """
    sizes = _each("sizes", sizes, _size)
    gap = as_positive("separation", separation)
    p = as_count("dimension", dimension, 2)
    k = len(sizes)
    turn = 2 * math.pi * np.arange(k) / k
    radius = gap / (2 * math.sin(math.pi / k)) if k > 1 else 0.0
    centres = radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)  # (k, 2)
    y = np.repeat(np.arange(k), sizes)
    X = as_rng(random_state).standard_normal((len(y), p))
    X[:, :2] += centres[y]
    text = "Gaussian clusters of unit spread and unequal sizes."
    return make("unbalanced_clusters", text, X, y, [f"{size} points" for size in sizes])


def stochastic_block_model(
    sizes: Sequence[int] = (40, 30, 20),
    *,
    p_within: float = 0.5,
    p_between: float = 0.05,
    random_state: Seed = 0,
) -> DataSet:
    """A random graph whose nodes fall into blocks.

    Each pair of distinct nodes is joined independently, with probability ``p_within`` inside a
    block and ``p_between`` across blocks.

    Source: the planted partition model; a test graph for the clustering of Section 4.2 of the
    DistR paper (Van Assel et al., 2025), whose input is a matrix and not a cloud.

    Parameters
    ----------
    sizes : sequence of ints
        Nodes in each block.
    p_within, p_between : float
        Probabilities of an edge, 0 to 1.
    random_state : int, numpy Generator or torch Generator
        Same seed, same bits.

    Returns
    -------
    DataSet
        ``X`` is the adjacency matrix, shape (n, n): symmetric, entries 0 and 1, diagonal 0. Rows
        are ordered by block, and ``y`` is the block.

    Raises
    ------
    ValueError, TypeError
        When a number is out of range, or the seed is no seed.

    Examples
    --------
    >>> import drot
    >>> graph = drot.datasets.stochastic_block_model((2, 3), p_within=1, p_between=0)
    >>> graph.X.sum(dim=1).tolist()
    [1.0, 1.0, 2.0, 2.0, 2.0]
    """
    sizes = _each("sizes", sizes, _size)
    within, between = as_number("p_within", p_within, 0, 1), as_number("p_between", p_between, 0, 1)
    y = np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(y[:, None] == y, within, between)
    upper = np.triu(as_rng(random_state).random(chance.shape) < chance, k=1)
    names = [f"block {k}" for k in range(len(sizes))]
    text = "Adjacency matrix of a random graph with blocks."
    return make("stochastic_block_model", text, upper | upper.T, y, names)
