"""Gromov-Wasserstein and its semi-relaxed form (Chapters 11 to 13).

A call from the top: the input is read (``reading``) and, for the square loss, mostly brought to
size 1 (``contraction.standard``); ``starts`` draws plans; ``search.multistart`` follows
``descend(start)`` from each and then ``search(end)`` from the lowest. Both are paths. A descent is
paths ``in_turn``: ``conditional_gradient``, ``mirror_descent``, ``row_moves``; of barycentres
``reduced_descent``, ``reassign``, ``polish``. A search goes on with a rough descent, then
``lower_by``: trials of a state (deals, merges), then moves from the first lower one.
"""

from .barycenter import SemiRelaxedBarycenter
from .kmeans import Coarsening, KernelKMeans, coarsen
from .objective import GromovMonge, GromovWasserstein, gromov_monge, gw_gradient
from .search import SemiRelaxedGW

__all__ = [
    "Coarsening", "GromovMonge", "GromovWasserstein", "KernelKMeans", "SemiRelaxedBarycenter",
    "SemiRelaxedGW", "coarsen", "gromov_monge", "gw_gradient",
]  # fmt: skip
