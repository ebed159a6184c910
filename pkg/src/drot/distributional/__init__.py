"""Distributional reduction (Chapter 13)."""

from .reduction import DistributionalReduction

__all__ = ["DistributionalReduction"]
