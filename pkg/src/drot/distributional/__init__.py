"""Distributional reduction (Chapter 14)."""

from .reduction import DistributionalReduction

__all__ = ["DistributionalReduction"]
