r"""Random graphs: priors B, D and E, posteriors of their form, and the coupling of two (Chapter 9).

All three weigh a graph W by :math:`\prod_{ij} w_{ij}^{W_{ij}}` and differ in the graphs that they
allow. With :math:`w = \pi` this is the prior, with :math:`w = \pi \odot K` the posterior that a
kernel :math:`K` makes of it.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from .._core.chance import Seed, as_rng
from .._core.checks import (
    as_count,
    as_real,
    check_choice,
    check_fits,
    check_no_distances,
    check_no_entry,
    check_same_device,
    check_square,
)
from .._core.memory import rows_per_tile
from .._core.threads import by_size
from ..affinities.base import Affinity, read_plan
from ..costs.array import Diagonal, Pairwise, fill_diagonal
from .graph import Graph, as_graph

Prior = Literal["binary", "row", "edges"]

_SURE = 40.0  # a rate beyond which an edge of a binary graph is certain in float64
_SLACK = 1e-4  # what rounding and solvers leave of the sums of a mean


def log_weights(log_kernel, prior: Prior, diagonal: Diagonal) -> Pairwise:
    """The logarithms of w, met in row tiles that are copies; impossible edges are -inf."""
    check_choice("prior", prior, Prior)
    check_choice("diagonal", diagonal, Diagonal)
    if isinstance(log_kernel, Affinity):
        array = log_kernel.logs
    else:
        matrix = as_real(log_kernel, "log_kernel")
        check_square(matrix, "log_kernel")
        says = "log_kernel is {entry} at {at}; logarithms of weights are finite, or -inf for an "
        check_no_entry(~(matrix < torch.inf), matrix, says + "edge that cannot be")  # NaN too
        low, high = matrix.aminmax()
        if 0 <= low < high <= 1:
            raise ValueError(
                "log_kernel has entries from 0 to 1, as weights have, and not their logarithms; "
                "pass the affinity itself, or the logarithm of the weights"
            )
        check_no_distances(matrix, "log_kernel")
        n, step = len(matrix), rows_per_tile(len(matrix), matrix.device)
        array = Pairwise(lambda rows: matrix[rows].clone(), (n, n), matrix, block=step)

    def evaluate(rows) -> Tensor:
        tile = array.rows(rows)
        if diagonal == "drop":
            fill_diagonal(tile, rows, -torch.inf)
        lonely = (tile.amax(dim=1) == -torch.inf).nonzero()[:, 0].tolist()
        if prior == "row" and lonely:
            i = int(torch.arange(len(tile.T))[rows][lonely[0]])
            raise ValueError(f"row {i} has no possible edge, but prior='row' gives each row one")
        return tile

    return array.derive(evaluate)


def _totals(weights: Pairwise, prior: Prior, most: float = torch.inf) -> Tensor:
    """By row, float64: log of the sum of w, or for binary graphs sum of min(log(1+w), most)."""
    if prior == "binary":
        return weights.map(lambda _, tile: _rates(tile, most).sum(dim=1))
    totals = weights.map(lambda _, tile: torch.logsumexp(tile.double(), dim=1))
    if (totals == -torch.inf).all():
        raise ValueError("no edge is possible, but prior='edges' has n of them")
    return totals


def _rates(tile: Tensor, most: float) -> Tensor:
    """log(1 + w), float64, up to a rate."""
    return torch.nn.functional.softplus(tile.double(), 1, _SURE).clamp_max_(most)


@by_size
def expected_graph(log_kernel, *, prior: Prior = "row", diagonal: Diagonal = "drop") -> Tensor:
    r"""Expected adjacency matrix of the random graph, entry by entry.

    .. math::

        \mathbb E\, W_{ij} =
        \frac{w_{ij}}{1 + w_{ij}} \;\text{(binary)}, \qquad
        \frac{w_{ij}}{\sum_\ell w_{i \ell}} \;\text{(row)}, \qquad
        n \frac{w_{ij}}{\sum_{\ell t} w_{\ell t}} \;\text{(edges)}.

    Source: Definition 2 of Van Assel et al. (2022), section 3, and its list of distributions;
    book ``lem-prior-laws``.

    Parameters
    ----------
    log_kernel, prior, diagonal
        As in :func:`~drot.sample_graph`.

    Returns
    -------
    Tensor, shape (n, n)
        Entries in [0, 1] for ``"binary"``, rows of sum 1 for ``"row"``, total n for ``"edges"``.

    Raises
    ------
    ValueError
        As :func:`~drot.sample_graph`.

    Examples
    --------
    >>> expected_graph([[9.0, 0.0], [0.0, 9.0]], prior="binary").tolist()  # no self-loops
    [[0.0, 0.5], [0.5, 0.0]]
    """
    weights = log_weights(log_kernel, prior, diagonal)
    check_fits(weights.shape, weights.dtype, weights.device)
    if prior == "binary":
        return weights.map(lambda _, tile: torch.sigmoid(tile))
    shift = _totals(weights, prior)[:, None]  # (n, 1)
    if prior == "edges":
        shift = (torch.logsumexp(shift, dim=0) - math.log(len(shift))).expand_as(shift)
    return weights.map(lambda rows, tile: (tile.double() - shift[rows]).exp().to(weights.dtype))


@by_size
def graph_log_normalizer(log_kernel, *, prior: Prior = "row", diagonal: Diagonal = "drop") -> float:
    r"""Log normalising constant: sum of :math:`\Omega(W) \prod w_{ij}^{W_{ij}}` over all graphs.

    .. math::

        \sum_{ij} \log(1 + w_{ij}) \;\text{(binary)}, \qquad
        \sum_i \log \sum_j w_{ij} \;\text{(row)}, \qquad
        n \log \sum_{ij} w_{ij} - \log n! \;\text{(edges)}.

    Source: Definition 2 of Van Assel et al. (2022), section 3; appendix A.2; book
    ``lem-prior-laws``.

    Parameters
    ----------
    log_kernel, prior, diagonal
        As in :func:`~drot.sample_graph`.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValueError
        As :func:`~drot.sample_graph`.

    Examples
    --------
    >>> three = torch.zeros(3, 3)  # all w are 1: the number of graphs with one edge per row
    >>> round(np.exp(graph_log_normalizer(three, prior="row")))
    8
    """
    return _log_normalizer(log_weights(log_kernel, prior, diagonal), prior)


def _log_normalizer(weights: Pairwise, prior: Prior) -> float:
    totals = _totals(weights, prior)
    n = len(totals)
    if prior == "edges":
        return n * float(torch.logsumexp(totals, dim=0)) - math.lgamma(n + 1)
    return float(totals.sum())


@by_size
def graph_log_probability(
    graph, log_kernel, *, prior: Prior = "row", diagonal: Diagonal = "drop"
) -> float:
    r"""Log probability of one graph under a prior or posterior.

    .. math::

        \log \mathbb P(W) = \log \Omega(W) + \sum_{ij} W_{ij} \log w_{ij} - \log \text{normaliser},

    with :math:`\Omega` the indicator of binary graphs, of graphs with one edge out of each node,
    or that of graphs with n edges in all, divided by :math:`\prod_{ij} W_{ij}!`.

    Source: Definition 2 of Van Assel et al. (2022), section 3; book ``def-priors``.

    Parameters
    ----------
    graph : Graph or array_like, shape (n, n), whole numbers
    log_kernel, prior, diagonal
        As in :func:`~drot.sample_graph`.

    Returns
    -------
    float
        In nats; ``-inf`` for a graph that cannot be.

    Raises
    ------
    ValueError
        As :func:`~drot.sample_graph`, or if the graph has another number of nodes.

    Examples
    --------
    >>> W = [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    >>> float(np.exp(graph_log_probability(W, torch.zeros(3, 3), prior="row")).round(9))
    0.125
    """
    weights, graph = log_weights(log_kernel, prior, diagonal), as_graph(graph)
    if graph.n != weights.shape[0]:
        raise ValueError(f"the graph has {graph.n} nodes and log_kernel {weights.shape[0]} rows")
    counts = graph.weights.to(weights.device, torch.float64)
    tail, head = graph.edges.to(weights.device)
    value = -_log_normalizer(weights, prior)
    degrees = counts.new_zeros(graph.n).index_add_(0, tail, counts)
    allowed = {
        "binary": (counts == 1).all(),
        "row": (counts == counts.round()).all() and (degrees == 1).all(),
        "edges": (counts == counts.round()).all() and counts.sum() == graph.n,
    }[prior]
    if not allowed:
        return -math.inf
    if prior == "edges":
        value -= float(torch.lgamma(counts + 1).sum())
    logs = counts.new_zeros(())
    for rows, tile in weights.tiles():
        here = (tail >= rows.start) & (tail < rows.stop)
        logs += (counts[here] * tile[tail[here] - rows.start, head[here]].double()).sum()
    return value + float(weights.ranks.total(logs))


@by_size
def sample_graphs(
    log_kernel,
    n_samples: int,
    *,
    prior: Prior = "row",
    diagonal: Diagonal = "drop",
    random_state: Seed = 0,
) -> list[Graph]:
    r"""Draw independent samples of a random graph.

    One pass over the array, or two, in tiles, serve all draws; beyond them a draw costs
    :math:`O(\log n)` per edge. A binary graph too: :math:`W_{ij} = 1` exactly where a Poisson
    variable of mean :math:`\log (1 + w_{ij})` is positive, and few of these are.

    Source: Definition 2 and Algorithm 1 of Van Assel et al. (2022); book ``lem-prior-laws``.

    Parameters
    ----------
    log_kernel : Tensor or array_like, shape (n, n)
        As in :func:`~drot.sample_graph`.
    n_samples : int
        At least 1. The first draws do not depend on it.
    prior, diagonal, random_state
        As in :func:`~drot.sample_graph`.

    Returns
    -------
    list of Graph

    Raises
    ------
    ValueError, TypeError
        As :func:`~drot.sample_graph`.

    Examples
    --------
    >>> graphs = sample_graphs(torch.zeros(4, 4), 3, prior="row")
    >>> [int(graph.weights.sum()) for graph in graphs]  # one edge out of each node
    [4, 4, 4]
    """
    weights = log_weights(log_kernel, prior, diagonal)
    streams = as_rng(random_state).spawn(as_count("n_samples", n_samples, 1))
    n = weights.shape[0]
    totals = None if prior == "row" else _totals(weights, prior, _SURE).cpu().numpy()
    tails, chances = [], []  # of the edges of each draw
    for stream in streams:
        tails.append(np.repeat(np.arange(n), _out_degrees(n, totals, prior, stream)))
        chances.append(stream.random(len(tails[-1])))
    heads = _heads(weights, prior, np.concatenate(tails), np.concatenate(chances))
    ends = np.cumsum([len(tail) for tail in tails[:-1]])
    graphs = []
    for tail, head in zip(tails, np.split(heads, ends), strict=True):
        pairs, counts = np.unique(tail * n + head, return_counts=True)
        if prior != "edges":  # a binary edge drawn twice is there once
            counts = np.ones_like(counts)
        edges = torch.from_numpy(np.stack([pairs // n, pairs % n])).to(weights.device)
        times = torch.from_numpy(counts).to(edges.device, weights.dtype)
        graphs.append(Graph(n=n, edges=edges, weights=times))
    return graphs


def sample_graph(
    log_kernel, *, prior: Prior = "row", diagonal: Diagonal = "drop", random_state: Seed = 0
) -> Graph:
    r"""Draw a random graph.

    .. math:: \mathbb P(W) \propto \Omega(W) \prod_{ij} w_{ij}^{W_{ij}} .

    ``"binary"`` (B) allows each edge once: independent, 1 with probability
    :math:`w_{ij} / (1 + w_{ij})`. ``"row"`` (D) has one edge out of each node, its head drawn with
    probability :math:`w_{ij} / \sum_\ell w_{i \ell}`. ``"edges"`` (E) has n edges in all, drawn
    from all pairs with replacement.

    Source: Definition 2 of Van Assel et al. (2022), section 3; book ``def-priors``.

    Parameters
    ----------
    log_kernel : Affinity or array_like, shape (n, n)
        :math:`\log w`, ``-inf`` for an edge that cannot be. An affinity gives the logarithm of
        its plan; :math:`-C` is that of a Gaussian kernel.
    prior : {"binary", "row", "edges"}
    diagonal : {"drop", "keep"}
        Whether a node can have an edge to itself. The papers' graphs have none.
    random_state : int, numpy Generator or torch Generator
        Same seed, same graph, whatever the tiles.

    Returns
    -------
    Graph
        Weights are whole numbers, in the dtype and on the device of the kernel.

    Raises
    ------
    ValueError
        If the kernel is not square, has NaN or +inf, holds weights from 0 to 1 in place of their
        logarithms, or allows no graph; if a name does not exist.
    TypeError
        If the seed is no seed.

    Notes
    -----
    Shares of a row are added up in float64: probabilities hold to about 1e-12.

    Examples
    --------
    >>> chain = torch.full((3, 3), -torch.inf)
    >>> chain[0, 1] = chain[1, 2] = chain[2, 1] = 0.0
    >>> sample_graph(chain, prior="row").dense().tolist()  # the only graph there is
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    (graph,) = sample_graphs(
        log_kernel, 1, prior=prior, diagonal=diagonal, random_state=random_state
    )
    return graph


def _out_degrees(n: int, totals, prior: Prior, stream: np.random.Generator) -> np.ndarray:
    """How many heads to draw for each row, (n,)."""
    if prior == "row":
        return np.ones(n, dtype=np.int64)
    if prior == "edges":
        shares = np.exp(totals - totals.max())
        return stream.multinomial(n, shares / shares.sum())
    return stream.poisson(totals)


def _heads(weights: Pairwise, prior: Prior, tails: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """The heads (M,) of edges from ``tails``, drawn in proportion to the weights (rates of a binary
    graph) by ``chances``, uniform in [0, 1): each by the process that meets its row.
    """
    n, device = weights.shape[0], weights.device
    order = np.argsort(tails, kind="stable")  # the edges of all draws, row by row
    ends = np.searchsorted(tails[order], np.arange(n + 1))
    heads = np.zeros_like(tails)
    for rows, tile in weights.tiles():
        if prior == "binary":
            shares = _rates(tile, _SURE)
        else:
            top = tile.amax(dim=1, keepdim=True).clamp_min(torch.finfo(tile.dtype).min)
            shares = (tile - top).double().exp_()
        shares = shares.cumsum_(dim=1)
        shares /= shares[:, -1:].clone().clamp_min(torch.finfo(torch.float64).tiny)
        # shares of each row add up from k to k + 1 in the k-th row of the tile: one sorted list
        shares += torch.arange(len(tile), device=device, dtype=torch.float64)[:, None]
        here = order[ends[rows.start] : ends[rows.stop]]
        row = tails[here] - rows.start
        keys = np.minimum(row + chances[here], np.nextafter(row + 1.0, 0.0))
        place = torch.searchsorted(
            shares.reshape(-1), torch.from_numpy(keys).to(device), right=True
        )
        heads[here] = (place % n).cpu().numpy()
    return weights.ranks.total(torch.from_numpy(heads).to(device)).cpu().numpy()


@by_size
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
    n = log_weights(log_kernel, prior, diagonal).shape[0]  # with its checks
    c = getattr(log_kernel, "log_plan", log_kernel)
    if not (isinstance(c, Tensor) and c.requires_grad):
        c = as_real(c, "log_kernel")
    if len(P) != n:
        raise ValueError(f"plan is of {len(P)} points and log_kernel of {n}")
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
    none = "must be 0 where log_kernel is -inf and, without diagonal='keep', at self-loops"
    twice = "with prior='binary' an edge is there once or not at all; pass probabilities"
    most = 1 + _SLACK if prior == "binary" else torch.inf
    for bad, says in (((P > 0) & (c == -torch.inf), none), (most < P, twice)):
        check_no_entry(bad, P, f"plan has {{entry}} at {{at}}, but {says}: {why}")
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
