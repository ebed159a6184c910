"""Distributional reduction (Chapter 14): ``solve`` follows ``block_descent`` from ``starts``."""

from .reduction import DistributionalReduction

__all__ = ["DistributionalReduction"]
