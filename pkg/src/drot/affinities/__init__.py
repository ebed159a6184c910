"""Entropic, doubly stochastic and symmetric affinities (Part I)."""

from .base import Affinity
from .baselines import symmetric_alternating_projections, symmetric_dual_ascent
from .doubly_stochastic import DoublyStochasticAffinity
from .rows import EntropicAffinity, GaussianAffinity, SelfTuningAffinity
from .symmetric import SymmetricEntropicAffinity
from .umap import UMAPMembership

__all__ = [
    "Affinity", "DoublyStochasticAffinity", "EntropicAffinity", "GaussianAffinity",
    "SelfTuningAffinity", "SymmetricEntropicAffinity", "UMAPMembership",
    "symmetric_alternating_projections", "symmetric_dual_ascent",
]  # fmt: skip
