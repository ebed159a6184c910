"""Dimension reduction as optimal transport: affinities, embeddings and their theorems, executed.

The functions follow the chapters of the book; each names the statement it computes.
"""

import typing as _typing

from . import datasets as datasets
from . import hyperbolic as hyperbolic
from . import metrics as metrics
from . import spectral as spectral
from ._core.run import NotConverged
from .affinities.base import (
    Affinity,
    kl_divergence,
    load_affinity,
    row_entropy,
    row_perplexity,
    symmetrize,
)
from .affinities.baselines import symmetric_alternating_projections, symmetric_dual_ascent
from .affinities.doubly_stochastic import DoublyStochasticAffinity, doubly_stochastic_affinity
from .affinities.rows import (
    EntropicAffinity,
    GaussianAffinity,
    SelfTuningAffinity,
    entropic_affinity,
    gaussian_affinity,
    self_tuning_affinity,
)
from .affinities.symmetric import SymmetricEntropicAffinity, symmetric_entropic_affinity
from .affinities.umap import UMAPMembership, umap_curve, umap_membership
from .costs.array import Pairwise
from .costs.distances import nearest, pairwise, shard, sqeuclidean, student_cost
from .costs.factored import Factored, factored_sqeuclidean, gaussian_kernel, gram
from .distributional.baselines import cluster_then_reduce, coot_clustering, reduce_then_cluster
from .distributional.reduction import DistributionalReduction
from .distributional.solve import distributional_reduction
from .embeddings.bernoulli import BernoulliLoss
from .embeddings.embed import Embedding, embed, load_embedding
from .embeddings.losses import SNEkhornLoss, SNELoss, attraction_repulsion
from .embeddings.methods import largevis, sne, snekhorn, tsne, umap
from .embeddings.starts import random_start, spectral_start
from .graphs.cross_entropy import coupling_loss
from .graphs.graph import (
    Components,
    Graph,
    connected_components,
    fuzzy_union,
    laplacian,
    mrf_log_density,
)
from .graphs.priors import (
    expected_graph,
    graph_log_normalizer,
    graph_log_probability,
    sample_graph,
    sample_graphs,
)
from .gromov.barycenter import SemiRelaxedBarycenter, srgw_barycenter
from .gromov.kmeans import Coarsening, KernelKMeans, coarsen, kernel_kmeans
from .gromov.objective import (
    GromovMonge,
    GromovWasserstein,
    gromov_monge,
    gromov_wasserstein,
    gw_gradient,
    gw_objective,
)
from .gromov.semirelaxed import SemiRelaxedGW, load_semi_relaxed_gw, semi_relaxed_gw
from .metrics.neighborhoods import (
    NeighborhoodCurve,
    continuity,
    neighborhood_curve,
    neighborhood_preservation,
    trustworthiness,
)
from .spectral.connected import (
    ConnectedPCA,
    ccpca,
    precision_coupling_loss,
    precision_coupling_optimum,
)
from .spectral.methods import pca_start

__all__ = [
    "CCPCA", "SNE", "TSNE", "UMAP", "Affinity", "BernoulliLoss", "Coarsening", "Components",
    "ConnectedPCA", "DistR", "DistributionalReduction", "DoublyStochasticAffinity", "Embedding",
    "EntropicAffinity", "Factored", "GaussianAffinity", "Graph", "GromovMonge",
    "GromovWasserstein", "KernelKMeans", "LargeVis", "NeighborhoodCurve", "NotConverged",
    "Pairwise", "SNELoss", "SNEkhorn", "SNEkhornLoss", "SelfTuningAffinity",
    "SemiRelaxedBarycenter", "SemiRelaxedGW", "SemiRelaxedGWClustering",
    "SymmetricEntropicAffinity", "TSNEkhorn", "UMAPMembership", "attraction_repulsion", "ccpca",
    "cluster_then_reduce", "coarsen", "connected_components", "continuity", "coot_clustering",
    "coupling_loss", "datasets", "distributional_reduction", "doubly_stochastic_affinity", "embed",
    "entropic_affinity", "expected_graph", "factored_sqeuclidean", "fuzzy_union",
    "gaussian_affinity", "gaussian_kernel", "gram", "graph_log_normalizer",
    "graph_log_probability", "gromov_monge", "gromov_wasserstein", "gw_gradient", "gw_objective",
    "hyperbolic", "kernel_kmeans", "kl_divergence", "laplacian", "largevis", "load_affinity",
    "load_embedding", "load_semi_relaxed_gw", "metrics", "mrf_log_density", "nearest",
    "neighborhood_curve", "neighborhood_preservation", "pairwise", "pca_start",
    "precision_coupling_loss", "precision_coupling_optimum", "random_start", "reduce_then_cluster",
    "row_entropy", "row_perplexity", "sample_graph", "sample_graphs", "self_tuning_affinity",
    "semi_relaxed_gw", "shard", "sne", "snekhorn", "spectral", "spectral_start", "sqeuclidean",
    "srgw_barycenter", "student_cost", "symmetric_alternating_projections",
    "symmetric_dual_ascent", "symmetric_entropic_affinity", "symmetrize", "trustworthiness",
    "tsne", "umap", "umap_curve", "umap_membership",
]  # fmt: skip
__version__ = "0.1.0"


if _typing.TYPE_CHECKING:  # pragma: no cover, what a reader of types sees of them
    from .estimators import (
        CCPCA,
        SNE,
        TSNE,
        UMAP,
        DistR,
        LargeVis,
        SemiRelaxedGWClustering,
        SNEkhorn,
        TSNEkhorn,
    )
else:

    def __getattr__(name: str):
        """Estimators need scikit-learn, which is slow to import: only when one is asked for."""
        if name in __all__ or name == "estimators":
            from importlib import import_module

            estimators = import_module(".estimators", __name__)
            return estimators if name == "estimators" else getattr(estimators, name)
        raise AttributeError(f"module 'drot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
