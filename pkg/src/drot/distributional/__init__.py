"""Distributional reduction (Chapter 14): positions and a plan, in turn.

A prototype is a column of the plan T (n, k): a weight, the column's sum, and a position, a row of Z
(k, q). All positions are the map. An embedding is a map of all points, each its own prototype: its
coupling is that of the plan diag(w).

``problem.ReductionProblem`` has the two blocks, ``update_positions`` and ``update_plan``, each with
its residual, and E_L for both, ``objective``; a ``problem.Iterate`` is where they are. A subclass
is another space of positions. ``solve`` draws starts and follows ``block_descent`` from each; the
sequential methods (``baselines``, with COOT) are one start, without a descent. ``loss`` is E_L by
the positions and the factors of a kernel, ``reduction`` the result.
"""

from .reduction import DistributionalReduction

__all__ = ["DistributionalReduction"]
