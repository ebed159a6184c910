"""Dimension reduction as optimal transport: affinities, embeddings and their theorems, executed.

The functions follow the chapters of the book; each names the statement it computes.
"""

import typing as _typing

from . import datasets as datasets
from . import hyperbolic as hyperbolic
from . import metrics as metrics
from . import spectral as spectral
from ._baselines import cluster_then_reduce, coot_clustering, reduce_then_cluster
from ._cross_entropy import coupling_loss
from ._embedding import Embedding, load_embedding
from ._factored import Factored, factored_sqeuclidean, gaussian_kernel, gram
from ._priors import (
    expected_graph,
    graph_log_normalizer,
    graph_log_probability,
    sample_graph,
    sample_graphs,
)
from ._ranks import RankFailed
from ._reduced_distribution import DistributionalReduction
from ._report import NotConverged
from .affinity import (
    EntropicAffinity,
    GaussianAffinity,
    SelfTuningAffinity,
    entropic_affinity,
    gaussian_affinity,
    self_tuning_affinity,
)
from .bernoulli_loss import BernoulliLoss
from .clustering import KernelKMeans, SemiRelaxedBarycenter, kernel_kmeans, srgw_barycenter
from .coarsening import Coarsening, coarsen
from .connected_pca import (
    ConnectedPCA,
    ccpca,
    precision_coupling_loss,
    precision_coupling_optimum,
)
from .coupling import SNELoss, attraction_repulsion
from .distributional import distributional_reduction
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
from .gromov import (
    GromovMonge,
    GromovWasserstein,
    gromov_monge,
    gromov_wasserstein,
    gw_gradient,
    gw_objective,
)
from .initial import pca_start, random_start, spectral_start
from .membership import UMAPMembership, umap_curve, umap_membership
from .methods import largevis, sne, snekhorn, tsne, umap
from .neighborhood import (
    NeighborhoodCurve,
    continuity,
    neighborhood_curve,
    neighborhood_preservation,
    trustworthiness,
)
from .pairwise import Pairwise, nearest, pairwise, shard, sqeuclidean, student_cost
from .plan import Affinity, load_affinity, symmetrize
from .semirelaxed import SemiRelaxedGW, load_semi_relaxed_gw, semi_relaxed_gw
from .snekhorn_loss import SNEkhornLoss
from .symmetric import SymmetricEntropicAffinity, symmetric_entropic_affinity
from .symmetric_reference import symmetric_alternating_projections, symmetric_dual_ascent

__all__ = [
    "CCPCA",
    "SNE",
    "TSNE",
    "UMAP",
    "Affinity",
    "BernoulliLoss",
    "Coarsening",
    "Components",
    "ConnectedPCA",
    "DistR",
    "DistributionalReduction",
    "DoublyStochasticAffinity",
    "Embedding",
    "EntropicAffinity",
    "Factored",
    "GaussianAffinity",
    "Graph",
    "GromovMonge",
    "GromovWasserstein",
    "KernelKMeans",
    "LargeVis",
    "NeighborhoodCurve",
    "NotConverged",
    "Pairwise",
    "RankFailed",
    "SNELoss",
    "SNEkhorn",
    "SNEkhornLoss",
    "SelfTuningAffinity",
    "SemiRelaxedBarycenter",
    "SemiRelaxedGW",
    "SemiRelaxedGWClustering",
    "SymmetricEntropicAffinity",
    "TSNEkhorn",
    "UMAPMembership",
    "attraction_repulsion",
    "ccpca",
    "cluster_then_reduce",
    "coarsen",
    "connected_components",
    "continuity",
    "coot_clustering",
    "coupling_loss",
    "datasets",
    "distributional_reduction",
    "doubly_stochastic_affinity",
    "embed",
    "entropic_affinity",
    "expected_graph",
    "factored_sqeuclidean",
    "fuzzy_union",
    "gaussian_affinity",
    "gaussian_kernel",
    "gram",
    "graph_log_normalizer",
    "graph_log_probability",
    "gromov_monge",
    "gromov_wasserstein",
    "gw_gradient",
    "gw_objective",
    "hyperbolic",
    "kernel_kmeans",
    "kl_divergence",
    "laplacian",
    "largevis",
    "load_affinity",
    "load_embedding",
    "load_semi_relaxed_gw",
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
    "reduce_then_cluster",
    "row_entropy",
    "row_perplexity",
    "sample_graph",
    "sample_graphs",
    "self_tuning_affinity",
    "semi_relaxed_gw",
    "shard",
    "sne",
    "snekhorn",
    "spectral",
    "spectral_start",
    "sqeuclidean",
    "srgw_barycenter",
    "student_cost",
    "symmetric_alternating_projections",
    "symmetric_dual_ascent",
    "symmetric_entropic_affinity",
    "symmetrize",
    "trustworthiness",
    "tsne",
    "umap",
    "umap_curve",
    "umap_membership",
]
__version__ = "0.1.0"

_ESTIMATORS = {
    "CCPCA": "_ccpca_estimator",
    "DistR": "_distributional_estimator",
    "SemiRelaxedGWClustering": "_clustering_estimator",
    "LargeVis": "coupling_estimators",
    "SNE": "coupling_estimators",
    "SNEkhorn": "estimators",
    "TSNE": "coupling_estimators",
    "TSNEkhorn": "estimators",
    "UMAP": "coupling_estimators",
}


if _typing.TYPE_CHECKING:  # pragma: no cover, what a reader of types sees of them
    from ._ccpca_estimator import CCPCA
    from ._clustering_estimator import SemiRelaxedGWClustering
    from ._distributional_estimator import DistR
    from .coupling_estimators import SNE, TSNE, UMAP, LargeVis
    from .estimators import SNEkhorn, TSNEkhorn
else:

    def __getattr__(name: str):
        """Estimators need scikit-learn, which is slow to import: only when one is asked for."""
        if name in _ESTIMATORS:
            from importlib import import_module

            return getattr(import_module(f".{_ESTIMATORS[name]}", __name__), name)
        raise AttributeError(f"module 'drot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ESTIMATORS])
