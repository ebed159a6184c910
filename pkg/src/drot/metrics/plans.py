"""How well a plan keeps its constraints, and what a clustering of it is worth."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
import torch

from .._core.checks import (
    as_real,
    check_count,
    check_finite,
    check_non_negative,
    check_positive,
    check_same_transposed,
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
    plan = _square(plan)
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
    >>> two_pairs = torch.block_diag(*[torch.tensor([[1.0, 0.9], [0.9, 1.0]])] * 2)
    >>> spectral_clustering_ari(two_pairs, [0, 0, 1, 1])
    1.0
    """
    from sklearn.cluster import SpectralClustering
    from sklearn.metrics import adjusted_rand_score

    plan = _square(plan)
    check_non_negative(plan, "plan")
    check_same_transposed(plan, "plan")
    labels = np.asarray(labels.cpu() if isinstance(labels, torch.Tensor) else labels)
    if labels.shape != plan.shape[:1]:
        raise ValueError(
            "plan must be (n, n) with one label per row; "
            f"got {tuple(plan.shape)} and {labels.shape}"
        )
    if n_clusters is not None:
        n_clusters = check_count("n_clusters", n_clusters, 1, len(labels))
    model = SpectralClustering(
        n_clusters=len(np.unique(labels)) if n_clusters is None else n_clusters,
        affinity="precomputed",
        random_state=random_state,
    )
    with warnings.catch_warnings():
        # a graph that falls into its clusters is a success here, not a reason to warn
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        found = model.fit_predict(plan.cpu().numpy())
    return float(adjusted_rand_score(labels, found))


def _square(plan) -> torch.Tensor:
    """A finite (n, n) tensor."""
    plan = as_real(plan, "plan")
    if plan.ndim != 2 or plan.shape[0] != plan.shape[1] or plan.shape[0] < 1:
        raise ValueError(f"plan must be square (n, n); got shape {tuple(plan.shape)}")
    check_finite(plan, "plan")
    return plan
