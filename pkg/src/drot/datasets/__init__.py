"""Data sets: generated toys, digits, and the real data of the papers.

Generators need no file and no network. The same seed gives the same bits. `load` looks in the
folder named by ``DROT_DATA``, then in a cache (``DROT_CACHE`` names another one), then at the
original address. It checks a sha256 over the arrays wherever these come from. All return a
`DataSet` with ``X`` in float64.
"""

from .base import DataSet
from .fetch import DataUnavailable, available, load
from .toys import (
    circles,
    digits,
    heteroscedastic_multinomials,
    stochastic_block_model,
    three_gaussians,
    unbalanced_clusters,
)

__all__ = [
    "DataSet", "DataUnavailable", "available", "circles", "digits", "heteroscedastic_multinomials",
    "load", "stochastic_block_model", "three_gaussians", "unbalanced_clusters",
]  # fmt: skip
