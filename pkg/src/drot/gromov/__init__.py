"""Gromov-Wasserstein and its semi-relaxed form (Chapters 11 to 13)."""

from .barycenter import SemiRelaxedBarycenter
from .kmeans import Coarsening, KernelKMeans, coarsen
from .objective import GromovMonge, GromovWasserstein, gromov_monge, gw_gradient
from .semirelaxed import SemiRelaxedGW

__all__ = [
    "Coarsening", "GromovMonge", "GromovWasserstein", "KernelKMeans", "SemiRelaxedBarycenter",
    "SemiRelaxedGW", "coarsen", "gromov_monge", "gw_gradient",
]  # fmt: skip
