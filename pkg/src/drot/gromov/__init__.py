"""Gromov-Wasserstein and its semi-relaxed form (Chapters 11 to 13)."""

from .barycenter import SemiRelaxedBarycenter
from .kmeans import Coarsening, KernelKMeans
from .objective import GromovMonge, GromovWasserstein
from .semirelaxed import SemiRelaxedGW

__all__ = [
    "Coarsening", "GromovMonge", "GromovWasserstein", "KernelKMeans", "SemiRelaxedBarycenter",
    "SemiRelaxedGW",
]  # fmt: skip
