"""Gromov-Wasserstein and its semi-relaxed form (Chapters 11 to 13).

A call from the top: the input is read (``reading``) and, for the square loss, mostly brought to
size 1 (``contraction.standard``); ``starts`` draws plans; ``search.multistart`` follows
``descend(start)`` from each and then ``search(end)`` from the lowest. Both are paths. A descent is
paths ``in_turn``: ``conditional_gradient``, ``mirror_descent``, ``row_moves``; of barycentres
``reduced_descent``, ``reassign``, ``polish``. A search goes on with a rough descent, then
``lower_by``: trials of a state (deals, merges), then moves from the first lower one.

Open ``loss`` for what two entries cost, ``contraction`` for E_L as products and as a function of
the plan, ``objective`` for its value, gradient and the classical problems, ``semirelaxed``,
``barycenter`` and ``kmeans`` for the three solvers, ``descent`` for how a plan moves, ``starts``
for where it begins, ``search`` for several starts and the result.

A plan is T (n, k), of row sums w and column sums q. A column is a place, where mass may go, or a
cluster, where the structure Cbar (k, k) follows the plan; a path is an iterator of states whose
value falls.
"""

from .barycenter import SemiRelaxedBarycenter
from .kmeans import Coarsening, KernelKMeans, coarsen
from .objective import GromovMonge, gromov_monge, gw_gradient
from .search import SemiRelaxedGW

__all__ = [
    "Coarsening", "GromovMonge", "KernelKMeans", "SemiRelaxedBarycenter",
    "SemiRelaxedGW", "coarsen", "gromov_monge", "gw_gradient",
]  # fmt: skip
