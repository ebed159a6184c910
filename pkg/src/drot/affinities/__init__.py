"""Entropic, doubly stochastic and symmetric affinities (Part I).

What all of them are, a plan in log form, is in ``base``. To find the affinities by rows (entropic,
Gaussian, self-tuning), open ``rows``, and ``bandwidths`` for the roots that give their
perplexities; the doubly stochastic one, ``doubly_stochastic``, and ``sinkhorn`` for its iterations,
which SNEkhorn shares; the symmetric one, ``symmetric`` for Newton's method, ``symmetric_dual`` for
the function that it climbs, and ``baselines`` for a slow way there; UMAP's graph and curve,
``umap``; entropies, perplexities and divergences of given plans, ``entropies``.
"""

from .base import Affinity
from .baselines import symmetric_dual_ascent
from .doubly_stochastic import DoublyStochasticAffinity
from .rows import EntropicAffinity, GaussianAffinity, SelfTuningAffinity
from .symmetric import SymmetricEntropicAffinity
from .umap import UMAPMembership

__all__ = [
    "Affinity", "DoublyStochasticAffinity", "EntropicAffinity", "GaussianAffinity",
    "SelfTuningAffinity", "SymmetricEntropicAffinity", "UMAPMembership",
    "symmetric_dual_ascent",
]  # fmt: skip
