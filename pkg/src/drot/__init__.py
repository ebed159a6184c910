"""Dimension reduction as optimal transport: affinities, embeddings and their theorems, executed.

The functions follow the chapters of the book; each names the statement it computes.
"""

from . import datasets as datasets
from . import metrics as metrics
from . import spectral as spectral
from ._embedding import Embedding, load_embedding
from ._priors import (
    expected_graph,
    graph_log_normalizer,
    graph_log_probability,
    sample_graph,
    sample_graphs,
)
from ._report import NotConverged
from .affinity import (
    EntropicAffinity,
    GaussianAffinity,
    SelfTuningAffinity,
    entropic_affinity,
    gaussian_affinity,
    self_tuning_affinity,
)
from .connected_pca import (
    ConnectedPCA,
    ccpca,
    precision_coupling_loss,
    precision_coupling_optimum,
)
from .coupling import SNELoss
from .doubly_stochastic import DoublyStochasticAffinity, doubly_stochastic_affinity
from .embedding import embed
from .entropy import kl_divergence, row_entropy, row_perplexity
from .graph import (
    Components,
    Graph,
    connected_components,
    fuzzy_union,
    laplacian,
    mrf_log_density,
)
from .initial import pca_start, random_start, spectral_start
from .methods import sne, snekhorn, tsne
from .neighborhood import (
    NeighborhoodCurve,
    continuity,
    neighborhood_curve,
    neighborhood_preservation,
    trustworthiness,
)
from .pairwise import Pairwise, nearest, pairwise, sqeuclidean, student_cost
from .plan import Affinity, load_affinity, symmetrize
from .snekhorn_loss import SNEkhornLoss
from .symmetric import SymmetricEntropicAffinity, symmetric_entropic_affinity
from .symmetric_reference import symmetric_alternating_projections, symmetric_dual_ascent

__all__ = [
    "CCPCA",
    "Affinity",
    "Components",
    "ConnectedPCA",
    "DoublyStochasticAffinity",
    "Embedding",
    "EntropicAffinity",
    "GaussianAffinity",
    "Graph",
    "NeighborhoodCurve",
    "NotConverged",
    "Pairwise",
    "SNELoss",
    "SNEkhorn",
    "SNEkhornLoss",
    "SelfTuningAffinity",
    "SymmetricEntropicAffinity",
    "TSNEkhorn",
    "ccpca",
    "connected_components",
    "continuity",
    "datasets",
    "doubly_stochastic_affinity",
    "embed",
    "entropic_affinity",
    "expected_graph",
    "fuzzy_union",
    "gaussian_affinity",
    "graph_log_normalizer",
    "graph_log_probability",
    "kl_divergence",
    "laplacian",
    "load_affinity",
    "load_embedding",
    "metrics",
    "mrf_log_density",
    "nearest",
    "neighborhood_curve",
    "neighborhood_preservation",
    "pairwise",
    "pca_start",
    "precision_coupling_loss",
    "precision_coupling_optimum",
    "random_start",
    "row_entropy",
    "row_perplexity",
    "sample_graph",
    "sample_graphs",
    "self_tuning_affinity",
    "sne",
    "snekhorn",
    "spectral",
    "spectral_start",
    "sqeuclidean",
    "student_cost",
    "symmetric_alternating_projections",
    "symmetric_dual_ascent",
    "symmetric_entropic_affinity",
    "symmetrize",
    "trustworthiness",
    "tsne",
]
__version__ = "0.1.0"

_ESTIMATORS = {
    "CCPCA": "_ccpca_estimator",
    "SNEkhorn": "estimators",
    "TSNEkhorn": "estimators",
}


def __getattr__(name: str):
    """Estimators need scikit-learn, which is slow to import: only when one is asked for."""
    if name in _ESTIMATORS:
        from importlib import import_module

        return getattr(import_module(f".{_ESTIMATORS[name]}", __name__), name)
    raise AttributeError(f"module 'drot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ESTIMATORS])
