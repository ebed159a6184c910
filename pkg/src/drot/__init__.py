"""Dimension reduction as optimal transport: affinities, embeddings and their theorems, executed.

The functions follow the chapters of the book; each names the statement it computes.
"""

import typing as _typing
from importlib import import_module as _import_module

from . import (
    affinities,
    costs,
    datasets,
    distributional,
    embeddings,
    graphs,
    gromov,
    hyperbolic,
    metrics,
    spectral,
)
from ._core.run import Interrupted, NotConverged
from ._core.saving import load
from .affinities.base import symmetrize
from .affinities.doubly_stochastic import doubly_stochastic_affinity
from .affinities.entropies import kl_divergence, row_entropy, row_perplexity
from .affinities.rows import entropic_affinity, gaussian_affinity, self_tuning_affinity
from .affinities.symmetric import symmetric_entropic_affinity
from .affinities.umap import umap_curve, umap_membership
from .costs.distances import nearest, pairwise, sqeuclidean, student_cost
from .costs.factored import factored_sqeuclidean, gram
from .distributional.baselines import cluster_then_reduce, coot_clustering, reduce_then_cluster
from .distributional.solve import distributional_reduction
from .embeddings.embed import embed
from .embeddings.losses import BernoulliLoss, SNEkhornLoss, SNELoss
from .embeddings.methods import largevis, sne, snekhorn, tsne, umap
from .embeddings.starts import random_start, spectral_start
from .graphs.graph import connected_components, fuzzy_union, laplacian
from .graphs.priors import coupling_loss, expected_graph, sample_graph, sample_graphs
from .gromov.barycenter import srgw_barycenter
from .gromov.kmeans import kernel_kmeans
from .gromov.objective import gw_objective
from .gromov.semirelaxed import semi_relaxed_gw
from .metrics import neighborhood_preservation
from .spectral.connected import ccpca
from .spectral.principal import pca_start

__all__ = [
    "CCPCA", "SNE", "TSNE", "UMAP", "BernoulliLoss", "DistR", "Interrupted", "LargeVis",
    "NotConverged", "SNELoss", "SNEkhorn", "SNEkhornLoss", "SemiRelaxedGWClustering", "TSNEkhorn",
    "affinities", "ccpca", "cluster_then_reduce", "connected_components", "coot_clustering",
    "costs", "coupling_loss", "datasets", "distributional", "distributional_reduction",
    "doubly_stochastic_affinity", "embed", "embeddings", "entropic_affinity", "expected_graph",
    "factored_sqeuclidean", "fuzzy_union", "gaussian_affinity", "gram", "graphs", "gromov",
    "gw_objective", "hyperbolic", "kernel_kmeans", "kl_divergence",
    "laplacian", "largevis", "load", "metrics", "nearest", "neighborhood_preservation", "pairwise",
    "pca_start", "random_start", "reduce_then_cluster", "row_entropy", "row_perplexity",
    "sample_graph", "sample_graphs", "self_tuning_affinity", "semi_relaxed_gw",
    "sne", "snekhorn", "spectral", "spectral_start", "sqeuclidean", "srgw_barycenter",
    "student_cost", "symmetric_entropic_affinity", "symmetrize", "tsne", "umap", "umap_curve",
    "umap_membership",
]  # fmt: skip
__version__ = "0.1.0"


if _typing.TYPE_CHECKING:  # pragma: no cover, what a reader of types sees of them
    from . import estimators as estimators
    from . import exercises as exercises
    from . import plot as plot
    from .estimators import (  # isort: skip
        CCPCA, SNE, TSNE, UMAP, DistR, LargeVis, SemiRelaxedGWClustering, SNEkhorn, TSNEkhorn,
    )  # fmt: skip
else:

    def __getattr__(name: str):
        """Estimators need scikit-learn and figures matplotlib, which are slow to import: only when
        they are asked for."""
        if name in ("estimators", "exercises", "plot"):
            return _import_module(f".{name}", __name__)
        if name in __all__:
            return getattr(_import_module(".estimators", __name__), name)
        raise AttributeError(f"module 'drot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", "estimators", "exercises", "plot"})
