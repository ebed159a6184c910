"""Coarse graphs: clusters of nodes become nodes (Chapter 11)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import as_real
from .contraction import alone, as_structure, as_weights, hard_plan
from .semirelaxed import as_given


class Coarsening(NamedTuple):
    """A graph whose nodes are clusters of another's."""

    structure: Tensor  # (k, k) Cbar, the weighted mean of C between clusters
    weights: Tensor  # (k,) q, mass of each cluster
    normalized: Tensor  # (k, k) diag(q)^1/2 Cbar diag(q)^1/2


def coarsen(cost_x, membership, *, weights_x: ArrayLike | None = None) -> Coarsening:
    r"""Contract clusters of nodes into single nodes: means of the similarity between clusters.

    With T the plan that sends :math:`w_i` to the cluster of i and :math:`q = T^\top \mathbf 1`,

    .. math:: \bar C = \mathrm{diag}(q)^{-1} \, T^\top C \, T \, \mathrm{diag}(q)^{-1}.

    The eigenvalues of :math:`\mathrm{diag}(q)^{1/2} \bar C \, \mathrm{diag}(q)^{1/2}` interlace
    those of :math:`\mathrm{diag}(w)^{1/2} C \, \mathrm{diag}(w)^{1/2}`, by Poincare's separation
    theorem, and the squares that are lost are the objective of the barycentre.

    Source: section 4.2 and lemma D.1 of Van Assel et al. (2024); book ``prp-interlacing``.

    Parameters
    ----------
    cost_x : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`.
    membership : array_like, shape (n,) of labels from 0, or (n, k) plan
        Clusters, none of them empty; a plan has row sums w.
    weights_x : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.

    Returns
    -------
    Coarsening
        ``structure``, ``weights`` (of sum 1) and ``normalized``.

    Raises
    ------
    ValueError
        If labels are negative, a cluster is empty, or shapes do not match.

    Examples
    --------
    >>> C = [[4.0, 2.0, 0.0], [2.0, 4.0, 1.0], [0.0, 1.0, 4.0]]
    >>> coarsen(C, [0, 0, 1]).structure.tolist()
    [[3.0, 0.5], [0.5, 4.0]]
    """
    cost = as_structure(cost_x, "cost_x", "square")
    n, _ = cost.shape
    w = as_weights(weights_x, n, cost)
    T = as_real(membership, "membership").to(w.device)
    if T.ndim != 2:
        if T.shape != (n,) or not bool(((T >= 0) & (T.round() == T)).all()):
            raise ValueError(f"membership must be {n} whole labels from 0, or an ({n}, k) plan")
        if int(T.max()) >= n:
            raise ValueError(f"membership has the label {int(T.max())}; {n} points have fewer")
        T = hard_plan(T.long(), w, int(T.max()) + 1)
    else:
        T = as_given(T, w, T.shape[1])
    q = T.sum(dim=0)
    if bool((q == 0).any()):
        empty = int((q == 0).nonzero()[0])
        raise ValueError(f"membership leaves cluster {empty} empty; number the clusters from 0 on")
    M, root = T.T @ alone(cost, w).left(T), q.sqrt()
    structure = (M + M.T) / 2 / torch.outer(q, q)
    return Coarsening(structure, q, root[:, None] * structure * root)
