"""Costs between points, met whole, in tiles of rows or by their factors (Chapters 0 and 15).

What an array of pairs answers, and how processes share it, is in ``array``; the costs of points are
in ``distances``; products of thin factors in ``factored``; kernels of positions in ``kernels``;
``stored`` builds the cost of a saved result again.
"""

from .array import Pairwise, shard
from .factored import Factored

__all__ = ["Factored", "Pairwise", "shard"]
