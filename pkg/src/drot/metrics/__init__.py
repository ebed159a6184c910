"""How well a plan keeps its constraints, and what a clustering of it is worth."""

from .plans import ConstraintErrors, constraint_errors, spectral_clustering_ari
from .prototypes import prototype_homogeneity, prototype_nmi, weighted_silhouette

__all__ = [
    "ConstraintErrors", "constraint_errors", "prototype_homogeneity", "prototype_nmi",
    "spectral_clustering_ari", "weighted_silhouette",
]  # fmt: skip
