"""Estimators with the interface of scikit-learn."""

from .clustering import DistR, SemiRelaxedGWClustering
from .embedding import CCPCA, SNE, TSNE, UMAP, LargeVis, SNEkhorn, TSNEkhorn

__all__ = [
    "CCPCA", "SNE", "TSNE", "UMAP", "DistR", "LargeVis", "SNEkhorn", "SemiRelaxedGWClustering",
    "TSNEkhorn",
]  # fmt: skip
