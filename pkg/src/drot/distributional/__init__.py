"""Distributional reduction (Chapter 14): ``solve`` follows ``block_descent`` from ``starts``.

Open ``solve`` for the function, its starts and its descent, ``problem`` for the two blocks and the
spaces of positions, ``loss`` for E_L by the positions and the factors of a kernel, ``baselines``
for the sequential methods and COOT, ``reduction`` for the result.

A prototype is a column of the plan T (n, k): a weight, the column's sum, and a position, a row of Z
(k, q). All positions are the map. An embedding is a map of all points, each its own prototype.
"""

from .reduction import DistributionalReduction

__all__ = ["DistributionalReduction"]
