"""The cross-entropy between two random graphs, which couples points to points (Chapter 7)."""

from __future__ import annotations

import torch
from torch import Tensor

from .._core.checks import as_real, check_same_device
from ..affinities.base import Affinity, read_plan
from .priors import Diagonal, LogWeights, Prior

_SLACK = 1e-4  # what rounding and solvers leave of a sum


def coupling_loss(plan, log_kernel, *, prior: Prior, diagonal: Diagonal = "drop") -> Tensor:
    r"""Graph-coupling loss: the cross-entropy of the random graphs of two clouds.

    The graph :math:`W_X` of the data enters by its mean :math:`P = \mathbb E\, W_X` only. With
    :math:`c = \log K_Z` the log kernel of the embedding, the cross-entropy
    :math:`\mathcal H = - \mathbb E \log \mathbb P_Z(W_X)` is

    .. math::

        \mathcal H = \sum_{i \ne j} \bigl( \log(1 + e^{c_{ij}}) - P_{ij} c_{ij} \bigr)
        \;\text{(binary)}, \quad
        \sum_i \Bigl( \log \sum_{j \ne i} e^{c_{ij}} - \sum_{j \ne i} P_{ij} c_{ij} \Bigr)
        \;\text{(row)}, \quad
        n \log \sum_{i \ne j} e^{c_{ij}} - \sum_{i \ne j} P_{ij} c_{ij} \;\text{(edges)},

    which is :math:`- \sum P \log Q + (1 - P) \log (1 - Q)` with :math:`Q = K / (1 + K)` (binary)
    and :math:`- \sum P \log Q`, with Q the kernel divided by its row sums (row) or by its sum
    (edges). In all three the derivative with respect to c is the mean graph of the embedding,
    ``expected_graph(log_kernel, prior=prior)``, less P.

    Source: section 3.1 of Van Assel et al. (2022), the cross-entropies of its Table 1;
    book ``prp-cross-entropy``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n)
        :math:`P`. Rows of sum 1 for ``"row"`` (SNE), total mass n for ``"edges"`` (t-SNE),
        entries up to 1 for ``"binary"`` (LargeVis, UMAP). Constant: no gradient flows to it.
    log_kernel : Tensor, Affinity or array_like, shape (n, n)
        :math:`c`, finite, or ``-inf`` for an edge that cannot be, where P must be 0.
    prior : {"binary", "row", "edges"}
        Of the graph of the embedding: B, D or E.
    diagonal : {"drop", "keep"}
        Whether a node can have an edge to itself.

    Returns
    -------
    Tensor, scalar
        In nats, in the dtype of ``log_kernel``, and differentiable in it. For ``"binary"`` and
        ``"row"`` the cross-entropy itself. For ``"edges"`` the cross-entropy less the constant
        :math:`\mathbb E \log \prod_{ij} W_{X, ij}! - \log n!`, which Z cannot change; where
        :math:`W_X` has one edge per row the expectation is 0.

    Raises
    ------
    ValueError
        If P shows that the support of the data's graph is not within that of the embedding's:
        the cross-entropy is infinite or not defined. If a shape or an entry does not fit.

    Notes
    -----
    P is only a mean. That ``"row"`` needs a graph with one edge out of each node, not merely so
    on average, and ``"binary"`` one without double edges, is left to the caller. A dense
    :math:`O(n^2)` in time and memory; :class:`BernoulliLoss` and :class:`SNELoss` are the
    tiled objectives in Z.

    Examples
    --------
    >>> P = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], dtype=torch.float64)
    >>> c = torch.zeros(3, 3, dtype=torch.float64)  # every edge alike
    >>> [round(coupling_loss(P, c, prior=p).exp().item(), 6) for p in ("binary", "row", "edges")]
    [64.0, 8.0, 216.0]
    """
    P = read_plan(plan)
    n = LogWeights(log_kernel, prior, diagonal).n  # with the checks of all functions of a prior
    c = log_kernel.log_plan if isinstance(log_kernel, Affinity) else log_kernel
    if not (isinstance(c, Tensor) and c.requires_grad):
        c = as_real(c, "log_kernel")
    if P.shape[0] != n:
        raise ValueError(f"plan is of {P.shape[0]} points and log_kernel of {n}")
    check_same_device(P, "plan", c, "log_kernel")
    if diagonal == "drop":
        c = c.masked_fill(torch.eye(n, dtype=torch.bool, device=c.device), -torch.inf)
    _check_support(P, c.detach(), prior)
    P = P.to(c.dtype)
    attraction = (P * torch.where(P > 0, c, 0.0)).sum(dtype=torch.float64)  # 0 (-inf) = 0
    if prior == "binary":
        normalizer = -torch.nn.functional.logsigmoid(-c).sum(dtype=torch.float64)
    elif prior == "row":
        normalizer = torch.logsumexp(c, dim=1).sum(dtype=torch.float64)
    else:
        normalizer = n * torch.logsumexp(c.flatten(), dim=0).double()
    return (normalizer - attraction).to(c.dtype)


def _check_support(P: Tensor, c: Tensor, prior: Prior) -> None:
    """Refuse a mean that no graph of the embedding can have."""
    why = "the graphs of the data must be in the support of the embedding's"
    none = "where an edge cannot be (log_kernel is -inf, or it is a self-loop and diagonal='drop')"
    twice = "but with prior='binary' an edge is there once or not at all; pass probabilities"
    most = 1 + _SLACK if prior == "binary" else torch.inf
    for bad, says in (((P > 0) & (c == -torch.inf), none), (most < P, twice)):
        if bad.any():
            i, j = bad.nonzero()[0].tolist()
            raise ValueError(f"plan has {P[i, j]:g} at row {i}, column {j}, {says}: {why}")
    n, sums = len(P), P.sum(dim=1, dtype=torch.float64)
    off, mass = (sums - 1).abs() > _SLACK, float(sums.sum())
    if prior == "row" and off.any():
        i = int(off.nonzero()[0])
        raise ValueError(
            f"row {i} of the plan sums to {float(sums[i]):g}, but with prior='row' each node has "
            f"one edge; {why}: pass rows of sum 1, such as drot.entropic_affinity gives"
        )
    if prior == "edges" and abs(mass / n - 1) > _SLACK:
        raise ValueError(
            f"plan has the mass {mass:g}, but with prior='edges' there are n = {n} edges; {why}: "
            "multiply the plan by n over its mass"
        )
