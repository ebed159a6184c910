"""Scores of a plan: its constraints, its clusters, and the prototypes that it leads to."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from scipy.special import entr, rel_entr
from torch import Tensor

from .._core.checks import (
    as_points,
    as_real,
    as_square,
    as_symmetric,
    check_count,
    check_finite,
    check_non_negative,
    check_positive,
)
from ..affinities.base import row_entropy


class ConstraintErrors(NamedTuple):
    """Largest violation of each property that an affinity may have, all dimensionless."""

    symmetry: float  # max |P - P^T|
    row_sum: float  # max |P 1 - 1|
    log_perplexity: float  # max |H(P_i:) - (log xi + 1)|


def constraint_errors(plan, perplexity: float) -> ConstraintErrors:
    r"""Measure what Table 1 of the SNEkhorn paper ticks: symmetry, row sums, row entropies.

    Source: Table 1 of SNEkhorn (Van Assel et al., 2023); book ``prp-euclid-sym``.

    Parameters
    ----------
    plan : array_like, shape (n, n), non-negative
    perplexity : float
        :math:`\xi`, the perplexity that every row should have.

    Returns
    -------
    ConstraintErrors
        In max norm.

    Raises
    ------
    ValueError
        If the plan is not square, finite and non-negative, or the perplexity not positive.

    Examples
    --------
    >>> constraint_errors([[0.5, 0.5], [0.5, 0.5]], perplexity=2.0).row_sum
    0.0
    """
    plan = as_square(plan, "plan")
    target = math.log(check_positive("perplexity", perplexity)) + 1
    return ConstraintErrors(
        float((plan - plan.T).abs().max()),
        float((plan.sum(dim=1) - 1).abs().max()),
        float((row_entropy(plan) - target).abs().max()),
    )


def spectral_clustering_ari(
    plan, labels, *, n_clusters: int | None = None, random_state: int = 0
) -> float:
    """Adjusted Rand index of scikit-learn's spectral clustering of a symmetric affinity.

    Source: the score of Table 2 of SNEkhorn (Van Assel et al., 2023), with scikit-learn's
    default embedding and k-means.

    Parameters
    ----------
    plan : array_like, shape (n, n), symmetric, non-negative
    labels : array_like, shape (n,)
        The classes to find.
    n_clusters : int, optional
        Their number when left out.
    random_state : int
        Seed of k-means and of the eigensolver.

    Returns
    -------
    float
        1 for the classes themselves, about 0 for a random partition.

    Raises
    ------
    ValueError
        If the plan is not square, symmetric and non-negative, or the labels are not one per row.

    Examples
    --------
    >>> import torch
    >>> two_pairs = torch.block_diag(*[torch.tensor([[1.0, 0.9], [0.9, 1.0]])] * 2)
    >>> spectral_clustering_ari(two_pairs, [0, 0, 1, 1])
    1.0
    """
    from sklearn.cluster import SpectralClustering
    from sklearn.metrics import adjusted_rand_score

    plan = as_symmetric(plan, "plan", 1)
    _, classes = _read(plan, labels)
    if n_clusters is None:
        n_clusters = len(np.unique(classes))
    n_clusters = check_count("n_clusters", n_clusters, 1, len(plan))
    model = SpectralClustering(n_clusters, affinity="precomputed", random_state=random_state)
    with warnings.catch_warnings():
        # a graph that falls into its clusters is a success here, not a reason to warn
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        found = model.fit_predict(plan.cpu().numpy())
    return float(adjusted_rand_score(classes, found))


def prototype_homogeneity(y, plan) -> float:
    r"""How far each prototype stands for points of one class.

    With :math:`p_{ck} = \sum_{i : y_i = c} T_{ik}`, the mass of class c at prototype k,

    .. math:: 1 - \frac{H(c \mid k)}{H(c)}
              = 1 - \frac{\sum_{ck} p_{ck} \log (p_{ck} / p_{\cdot k})}
                         {\sum_c p_{c \cdot} \log p_{c \cdot}} .

    For a hard plan with equal row sums it is scikit-learn's ``homogeneity_score`` of its labels.

    Source: homogeneity in appendix F.1 of Van Assel et al. (2024), after Rosenberg and
    Hirschberg (2007).

    Parameters
    ----------
    y : array_like, shape (n,)
        Classes of the points, any labels.
    plan : array_like, shape (n, k), non-negative
        :math:`T`.

    Returns
    -------
    float
        From 0 to 1; 1 where there is one class.

    Raises
    ------
    ValueError
        If the labels are not one per row, or the plan is negative or zero.

    Examples
    --------
    >>> prototype_homogeneity([0, 0, 1, 1], [[0.5, 0], [0.5, 0], [0, 0.5], [0, 0.5]])
    1.0
    """
    p = _joint(*_read(plan, y))
    whole, given = entr(p.sum(axis=1)).sum(), -rel_entr(p, p.sum(axis=0)).sum()  # H(c), H(c | k)
    return float(1 - given / whole) if whole > 0 else 1.0


def weighted_silhouette(Z, plan, y) -> float:
    r"""Whether prototypes lie nearer to others of their class than to those of the next.

    A prototype has the class c(k) that gives it most mass. With the weights :math:`q`, without
    prototypes of weight 0,

    .. math::

        a_k = \frac{\sum_{l \ne k, \, c(l) = c(k)} q_l \, d(z_k, z_l)}
                   {\sum_{l \ne k, \, c(l) = c(k)} q_l}, \qquad
        b_k = \min_{c \ne c(k)} \frac{\sum_{c(l) = c} q_l \, d(z_k, z_l)}{\sum_{c(l) = c} q_l},

    and the score is :math:`\sum_k q_k (b_k - a_k) / \max(a_k, b_k)`, where a prototype alone in
    its class counts as 0.

    Source: equations (81) and (82) in appendix F.1 of Van Assel et al. (2024), after Rousseeuw
    (1987).

    Parameters
    ----------
    Z : array_like, shape (k, q)
        Positions.
    plan : array_like, shape (n, k), non-negative
    y : array_like, shape (n,)
        Classes of the points.

    Returns
    -------
    float
        From -1 to 1.

    Raises
    ------
    ValueError
        If all prototypes have the same class, or shapes do not match.

    Examples
    --------
    >>> Z = [[0.0], [1.0], [10.0], [11.0]]
    >>> round(weighted_silhouette(Z, np.eye(4) / 4, [0, 0, 1, 1]), 4)
    0.8997
    """
    Z = as_points(Z, "Z").double()
    distances = (Z[:, None] - Z).norm(dim=2)
    return silhouette_of(distances, plan, y)


def silhouette_of(distances: Tensor, plan, y) -> float:
    """The same for any distances (k, k) between the prototypes."""
    T, classes = _read(plan, y)
    if T.shape[1] != distances.shape[0]:
        raise ValueError(f"Z has {distances.shape[0]} prototypes and the plan {T.shape[1]}")
    q = T.sum(axis=0)
    used = q > 0
    label = _joint(T, classes).argmax(axis=0)[used]
    q, D = q[used] / q.sum(), distances.cpu().numpy()[np.ix_(used, used)]
    classes = np.unique(label)[:, None] == label  # (c, k)
    if len(classes) < 2:
        raise ValueError("a silhouette needs prototypes of at least 2 classes; all have one")
    others = (label[:, None] == label) & ~np.eye(len(q), dtype=bool)  # (k, k) of the same class
    rest = others @ q
    means = (D * q) @ classes.T / (classes @ q)  # (k, c)
    b = np.where(classes.T, np.inf, means).min(axis=1)
    a = np.where(rest > 0, (D * q * others).sum(axis=1) / np.where(rest > 0, rest, 1), b)
    larger = np.maximum(a, b)
    return float(q @ ((b - a) / np.where(larger > 0, larger, 1)))


def prototype_nmi(Z, plan, y, *, n_clusters: int | None = None, random_state: int = 0) -> float:
    """Normalised mutual information of classes with k-means clusters of the prototypes.

    k-means runs on the positions of the prototypes that have a weight, each counting once; a
    point takes the cluster of the prototype that has most of its mass. Points without mass do not
    count.

    Source: the k-means score in appendix F.1 of Van Assel et al. (2024).

    Parameters
    ----------
    Z : array_like, shape (k, q)
        Positions.
    plan : array_like, shape (n, k), non-negative
    y : array_like, shape (n,)
        Classes of the points.
    n_clusters : int, optional
        Default: the number of classes, or of prototypes with a weight if there are fewer.
    random_state : int
        Seed of k-means, which starts 10 times.

    Returns
    -------
    float
        From 0 to 1; the mean of the two entropies normalises.

    Raises
    ------
    ValueError
        If shapes do not match or there are more clusters than prototypes.

    Examples
    --------
    >>> Z = [[0.0], [1.0], [10.0], [11.0]]
    >>> round(prototype_nmi(Z, np.eye(4) / 4, [0, 0, 1, 1]), 9)
    1.0
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import normalized_mutual_info_score

    Z = as_points(Z, "Z").double().cpu().numpy()
    T, classes = _read(plan, y)
    if T.shape[1] != len(Z):
        raise ValueError(f"Z has {len(Z)} prototypes and the plan {T.shape[1]}")
    used, counts = T.any(axis=0), T.any(axis=1)  # (k,), (n,)
    most = int(used.sum())
    if n_clusters is None:
        n_clusters = min(most, len(np.unique(classes[counts])))
    n_clusters = check_count("n_clusters", n_clusters, 1, most)
    model = KMeans(n_clusters, n_init=10, random_state=random_state).fit(Z[used])
    cluster = model.labels_[T[counts][:, used].argmax(axis=1)]
    return float(normalized_mutual_info_score(classes[counts], cluster))


def _read(plan, y) -> tuple[np.ndarray, np.ndarray]:
    """The plan (n, k) and classes from 0 on (n,)."""
    T = as_real(plan, "plan")
    y = np.asarray(y.cpu() if isinstance(y, Tensor) else y)
    if T.ndim != 2 or y.shape != T.shape[:1]:
        shapes = f"{tuple(T.shape)} and {y.shape}"
        raise ValueError(f"plan must be (n, k) with one label per row; got {shapes}")
    check_finite(T, "plan")
    check_non_negative(T, "plan")
    if not T.any():
        raise ValueError("plan is 0 everywhere; pass one with some mass")
    return T.double().cpu().numpy(), np.unique(y, return_inverse=True)[1]


def _joint(T: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Mass of each class at each prototype, (c, k), of sum 1."""
    p = np.zeros((classes.max() + 1, T.shape[1]))
    np.add.at(p, classes, T)
    return p / p.sum()
