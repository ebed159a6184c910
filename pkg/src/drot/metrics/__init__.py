"""Scores of plans and of embeddings."""

from .neighborhoods import (
    NeighborhoodCurve,
    continuity,
    neighborhood_curve,
    neighborhood_preservation,
    trustworthiness,
)
from .plans import (
    ConstraintErrors,
    constraint_errors,
    prototype_homogeneity,
    prototype_nmi,
    spectral_clustering_ari,
    weighted_silhouette,
)

__all__ = [
    "ConstraintErrors", "NeighborhoodCurve", "constraint_errors", "continuity",
    "neighborhood_curve", "neighborhood_preservation", "prototype_homogeneity", "prototype_nmi",
    "spectral_clustering_ari", "trustworthiness", "weighted_silhouette",
]  # fmt: skip
