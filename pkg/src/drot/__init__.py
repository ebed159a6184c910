"""Dimension reduction as optimal transport: affinities, embeddings and their theorems, executed.

The functions follow the chapters of the book; each names the statement it computes.
"""

from . import datasets as datasets
from . import metrics as metrics
from ._report import NotConverged
from .affinity import (
    EntropicAffinity,
    GaussianAffinity,
    SelfTuningAffinity,
    entropic_affinity,
    gaussian_affinity,
    self_tuning_affinity,
)
from .doubly_stochastic import DoublyStochasticAffinity, doubly_stochastic_affinity
from .entropy import kl_divergence, row_entropy, row_perplexity
from .pairwise import Pairwise, nearest, pairwise, sqeuclidean, student_cost
from .plan import Affinity, load_affinity, symmetrize

__all__ = [
    "Affinity",
    "DoublyStochasticAffinity",
    "EntropicAffinity",
    "GaussianAffinity",
    "NotConverged",
    "Pairwise",
    "SelfTuningAffinity",
    "datasets",
    "doubly_stochastic_affinity",
    "entropic_affinity",
    "gaussian_affinity",
    "kl_divergence",
    "load_affinity",
    "metrics",
    "nearest",
    "pairwise",
    "row_entropy",
    "row_perplexity",
    "self_tuning_affinity",
    "sqeuclidean",
    "student_cost",
    "symmetrize",
]
__version__ = "0.1.0"
