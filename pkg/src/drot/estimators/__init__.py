"""Estimators with the interface of scikit-learn."""

from .ccpca import CCPCA
from .clustering import SemiRelaxedGWClustering
from .distr import DistR
from .embedding import SNE, TSNE, UMAP, LargeVis, SNEkhorn, TSNEkhorn

__all__ = [
    "CCPCA", "SNE", "TSNE", "UMAP", "DistR", "LargeVis", "SNEkhorn", "SemiRelaxedGWClustering",
    "TSNEkhorn",
]  # fmt: skip
