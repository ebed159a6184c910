"""Gromov-Wasserstein and its semi-relaxed form (Chapters 11 to 13).

What is what:

- C is a similarity of n points with weights w, Cbar, the *structure*, one of k places or clusters.
  A plan T (n, k) has the row sums w; its column sums are q. A column is a place, where mass may
  go, or a cluster, where the structure follows the plan.
- ``contraction.Terms``: C, w and the loss. All products with C are made here, and counted.
- ``contraction.Coupling``: a plan, C T and T^T C T, through which alone a structure sees C.
- ``contraction.PlanProblem``: a function of the plan, made of terms. ``Problem`` is E_L at a fixed
  structure, a quadratic; ``barycenter.Reduced`` and ``kmeans.Means`` are at the best structure or
  means, and so ``Grouping``.
- ``contraction.State``: a plan with its value and the product with C that the next step needs.
- ``contraction.Unit``: of the square loss descents see (C - m) / s, and results are told in the
  unit of C again.
- A path is an iterator of states whose value falls, the start first; its end is where it gains no
  more, or where who follows it stops. A descent is one, or several ``search.in_turn``.

A call from the top: the input is read (``reading``) and brought to its unit
(``contraction.standard``); ``starts`` draws plans; ``search.multistart`` follows a descent from
each, and from the lowest end the paths of a search: ``lower_by`` goes on from the first of some
trials (deals, merges) that is lower. ``Multistart.conclude`` makes the result.

A new problem is a subclass of ``PlanProblem``. It says what a plan is worth, ``state``, and half of
the slope there, ``half_gradient``; and its own ``constant`` and ``scale``, if they are not those of
the terms. That gives it certificates, several starts and searches. ``whole_steps`` and
``reassign`` lower a ``Grouping``, which says what a move of each row changes, ``changes``;
``conditional_gradient``, ``mirror_descent`` and ``row_moves`` lower a ``Problem`` alone.
"""

from .barycenter import SemiRelaxedBarycenter
from .kmeans import Coarsening, KernelKMeans, coarsen
from .objective import GromovMonge, gromov_monge, gw_gradient
from .search import SemiRelaxedGW

__all__ = [
    "Coarsening", "GromovMonge", "KernelKMeans", "SemiRelaxedBarycenter",
    "SemiRelaxedGW", "coarsen", "gromov_monge", "gw_gradient",
]  # fmt: skip
