"""Distributional reduction (Chapter 12)."""

from .reduction import DistributionalReduction

__all__ = ["DistributionalReduction"]
