"""Costs between points, met whole, in tiles of rows or by their factors (Chapters 0 and 15)."""

from .array import Pairwise, shard
from .factored import Factored

__all__ = ["Factored", "Pairwise", "shard"]
