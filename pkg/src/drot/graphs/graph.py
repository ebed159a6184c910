"""Directed weighted graphs between points, what they tie together and what they leave free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components as scipy_components
from torch import Tensor

from .._core.checks import (
    as_count,
    as_points,
    as_real,
    check_choice,
    check_fits,
    check_no_entry,
    check_same_device,
)
from ..affinities.base import read_plan
from ..costs.kernels import KERNELS, KernelName


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Graph:
    """A directed graph with positive weights on m of its n x n possible edges.

    Functions of a graph take one of these, a dense (n, n) array of weights, or an affinity. Its
    own edges and weights may be lists or arrays, of numbers of any type.

    Examples
    --------
    >>> Graph(n=3, edges=torch.tensor([[0], [2]]), weights=torch.tensor([2.0])).dense().tolist()
    [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    n: int  #: number of nodes
    edges: Tensor  #: (2, m) int64, each edge once, from ``edges[0]`` to ``edges[1]``
    weights: Tensor  #: (m,) positive, float; the number of times the edge counts

    def __post_init__(self):
        n = as_count("n", self.n, 1)
        edges, weights = as_real(self.edges, "edges"), as_real(self.weights, "weights")
        if edges.ndim != 2 or edges.shape[0] != 2 or weights.shape != edges.shape[1:]:
            shapes = f"{tuple(edges.shape)} and {tuple(weights.shape)}"
            raise ValueError(f"edges must be (2, m) and weights (m,); got {shapes}")
        check_same_device(edges, "edges", weights, "weights")
        good = (edges >= 0) & (edges < n) & (edges.frac() == 0)
        if not good.all():  # NaN and infinity too
            entry = f"{edges[~good][0]:g}"
            raise ValueError(f"edges join the nodes 0 to {n - 1}, by whole numbers; got {entry}")
        if not ((weights > 0) & (weights < torch.inf)).all():
            raise ValueError("weights of a Graph must be positive and finite; leave out the others")
        edges = edges.long()
        numbers = (edges[0] * n + edges[1]).sort().values  # (m,)
        twice = numbers[1:][numbers.diff() == 0]
        if len(twice):
            edge = "from {} to {}".format(*divmod(int(twice[0]), n))
            raise ValueError(f"the edge {edge} is listed twice; list it once, with both weights")
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        return f"Graph({self.n} nodes, {self.edges.shape[1]} edges)"

    def dense(self) -> Tensor:
        """The weights as an array, shape (n, n), 0 where there is no edge."""
        check_fits((self.n, self.n), self.weights.dtype, self.weights.device)
        whole = self.weights.new_zeros(self.n, self.n)
        whole[self.edges[0], self.edges[1]] = self.weights
        return whole


_weights = partial(read_plan, name="graph", what="weight", least=1)  # dense, of any graph


def as_graph(graph) -> Graph:
    """Read a :class:`Graph`, an affinity, or an (n, n) array of non-negative weights.

    Of a NetworkX graph G pass ``networkx.to_numpy_array(G)``.

    Source: the graphs of section 2 of Van Assel et al. (2022); book ``sec-laplacian``.

    Examples
    --------
    >>> as_graph([[0, 1], [0, 0]])
    Graph(2 nodes, 1 edges)
    """
    if isinstance(graph, Graph):
        return graph
    matrix = _weights(graph)
    edges = matrix.nonzero().T.contiguous()
    return Graph(n=matrix.shape[0], edges=edges, weights=matrix[edges[0], edges[1]])


def laplacian(graph) -> Tensor:
    r"""Graph Laplacian of a directed graph, both directions of an edge added up.

    .. math::

        L = \mathrm{diag}(\overline W \mathbf 1) - \overline W, \qquad
        \overline W = W + W^\top, \qquad
        \mathrm{tr}(X^\top L X) = \sum_{ij} W_{ij} \| x_i - x_j \|^2 .

    Self-loops do not count. A symmetric W is added to itself: its Laplacian here is twice
    :math:`\mathrm{diag}(W \mathbf 1) - W`.

    Source: Definition 1 of Van Assel et al. (2022), section 2.1; book ``eq-laplacian`` and
    ``lem-laplacian-null``.

    Parameters
    ----------
    graph : Graph, Affinity or array_like, shape (n, n), non-negative
        :math:`W`, ``W[i, j]`` the weight of the edge from i to j.

    Returns
    -------
    Tensor, shape (n, n)
        Symmetric and positive semidefinite; rows sum to 0.

    Raises
    ------
    ValueError
        If the weights are not square, finite and non-negative.

    Examples
    --------
    >>> laplacian([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 5.0]]).tolist()
    [[3.0, -3.0, 0.0], [-3.0, 3.0, 0.0], [0.0, 0.0, 0.0]]
    """
    weights = _weights(graph)
    both = (weights + weights.T).fill_diagonal_(0)
    return torch.diag(both.sum(dim=1)) - both


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Components:
    """The connected components of a graph, and the split of a cloud into means and the rest.

    Examples
    --------
    >>> parts = connected_components([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    >>> parts.mean([[0.0], [2.0], [9.0]]).tolist(), parts.center([[0.0], [2.0], [9.0]]).tolist()
    ([[1.0], [1.0], [9.0]], [[-1.0], [1.0], [0.0]])
    """

    labels: Tensor  #: (n,) int64, the component of each node, counted from 0
    sizes: Tensor  #: (R,) int64, nodes in each component

    def __repr__(self) -> str:
        return f"Components({len(self.labels)} nodes, {len(self.sizes)} components)"

    @property
    def null_space(self) -> Tensor:
        """U, (n, R), float64, whose orthonormal columns span the null space of L."""
        member = torch.nn.functional.one_hot(self.labels, len(self.sizes)).double()
        return member / self.sizes.double().sqrt()

    def mean(self, X) -> Tensor:
        """X_M = U U^T X, shape (n, p): each point replaced by the mean of its component."""
        X = _nodes(X, len(self.labels), self.labels)
        sums = X.new_zeros(len(self.sizes), X.shape[1]).index_add_(0, self.labels, X)  # (R, p)
        return (sums / self.sizes[:, None])[self.labels]

    def center(self, X) -> Tensor:
        """X_C = X - X_M, shape (n, p): every component moved to the origin."""
        return as_points(X, "X") - self.mean(X)


def _nodes(X, n: int, of: Tensor) -> Tensor:
    """A point for each of n nodes, on the device of the graph."""
    X = as_points(X, "X")
    if X.shape[0] != n:
        raise ValueError(f"X has {X.shape[0]} points and the graph {n} nodes")
    check_same_device(X, "X", of, "the graph")
    return X


def connected_components(graph) -> Components:
    """Find the connected components of a graph, its edges read in both directions.

    Source: section 2.1 of Van Assel et al. (2022); book ``lem-laplacian-null``. The search is
    SciPy's, linear in nodes and edges.

    Parameters
    ----------
    graph : Graph, Affinity or array_like, shape (n, n), non-negative

    Returns
    -------
    Components
        Labels in the order of their first node.

    Raises
    ------
    ValueError
        If the weights are not square, finite and non-negative.

    Examples
    --------
    >>> connected_components([[0, 0, 0], [1, 0, 0], [0, 0, 1]]).labels.tolist()
    [0, 0, 1]
    """
    graph = as_graph(graph)
    edges = graph.edges.cpu().numpy()
    matrix = coo_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(graph.n, graph.n))
    number, labels = scipy_components(matrix, connection="weak")  # in the order of the nodes
    labels = torch.from_numpy(labels.astype(np.int64)).to(graph.edges.device)
    return Components(labels=labels, sizes=torch.bincount(labels, minlength=number))


def mrf_log_density(
    X, graph, *, kernel: KernelName | Callable[[Tensor], Tensor] = "gaussian"
) -> float:
    r"""Log density of the pairwise Markov random field (MRF), not normalised.

    .. math:: \log f_\kappa(X, W) = \sum_{i \ne j} W_{ij} \log \kappa(x_i - x_j) .

    It does not change when a component of the graph moves as a whole.

    Source: equation (1) of Van Assel et al. (2022); book ``eq-mrf`` and ``prp-mrf-shift``.

    Parameters
    ----------
    X : array_like, shape (n, p)
    graph : Graph, Affinity or array_like, shape (n, n), non-negative
        :math:`W`. Self-loops do not count.
    kernel : {"gaussian", "student"} or callable
        :math:`\kappa(x) = e^{-\|x\|^2 / 2}` or :math:`(1 + \|x\|^2)^{-1}`. A callable takes the
        differences :math:`x_i - x_j`, one row per edge (m, p), and returns
        :math:`\log \kappa`, (m,).

    Returns
    -------
    float
        In nats; ``-inf`` where the density vanishes.

    Raises
    ------
    ValueError
        If X is not a finite cloud of as many points as the graph has nodes, if the kernel does
        not exist, or returns another shape or a number that is no log density.

    Examples
    --------
    >>> W = [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    >>> near = mrf_log_density([[0.0], [1.0], [2.0], [4.0]], W)
    >>> far = mrf_log_density([[0.0], [1.0], [902.0], [904.0]], W)
    >>> near, far  # -1/2 (1 + 4): the second pair moved by 900 for nothing
    (-2.5, -2.5)
    """
    graph = as_graph(graph)
    X = _nodes(X, graph.n, graph.edges)
    tail, head = graph.edges
    apart = tail != head
    gaps, weights = X[tail[apart]] - X[head[apart]], graph.weights[apart]  # (m, p), (m,)
    if callable(kernel):
        values = kernel(gaps)
    else:
        check_choice("kernel", kernel, KERNELS)
        cost = KERNELS[kernel].cost(gaps.square().sum(dim=1))
        values = -cost / 2 if kernel == "gaussian" else -cost  # of variance 1
    got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
    if got != tuple(weights.shape):
        raise ValueError(f"the kernel must return a ({len(weights)},) tensor; got {got}")
    if not (values < torch.inf).all():  # NaN too
        raise ValueError("the kernel returned NaN or +inf where a log density is wanted")
    return float((weights.to(X.dtype) * values).sum())


def fuzzy_union(graph) -> Tensor:
    r"""Fuzzy union, the graph of UMAP: an edge wherever there is one in either direction.

    .. math::

        \widetilde W_{ij} = \mathbf 1 \{ W_{ij} + W_{ji} \ge 1 \}, \qquad
        \widetilde P = P + P^\top - P \odot P^\top .

    If the :math:`W_{ij}` are independent and 1 with probability :math:`P_{ij}`, then
    :math:`\widetilde W_{ij}` is 1 with probability :math:`\widetilde P_{ij}`. On weights that are
    0 or 1 the second formula is the first, so one function serves both.

    Source: section 3.1 of Van Assel et al. (2022), paragraph on UMAP; book ``prp-ce-umap``.

    Parameters
    ----------
    graph : Graph, Affinity or array_like, shape (n, n), entries in [0, 1]
        A binary graph, or the probabilities of its edges.

    Returns
    -------
    Tensor, shape (n, n)
        Symmetric; entries in [0, 1]. The diagonal is 0.

    Raises
    ------
    ValueError
        If an entry is outside [0, 1], or the array is not square.

    Examples
    --------
    >>> fuzzy_union([[0.0, 0.5], [0.5, 0.0]]).tolist()
    [[0.0, 0.75], [0.75, 0.0]]
    """
    P = _weights(graph)
    says = "graph has an entry above 1 ({entry}) at {at}; a union needs a binary graph or "
    check_no_entry(P > 1, P, says + "probabilities")
    return (P + P.T - P * P.T).fill_diagonal_(0)
