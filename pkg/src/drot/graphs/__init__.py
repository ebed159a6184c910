"""Random graphs, their priors and their coupling (Part II).

One graph, its Laplacian and its components are in ``graph``; laws of graphs, their draws and the
cross-entropy of two in ``priors``.
"""

from .graph import Components, Graph, mrf_log_density
from .priors import graph_log_normalizer, graph_log_probability

__all__ = [
    "Components", "Graph", "graph_log_normalizer", "graph_log_probability", "mrf_log_density",
]  # fmt: skip
