"""Embeddings: objectives, starts and the descent (Chapters 5, 6 and 9)."""

from .embed import Embedding
from .losses import BernoulliLoss, SNEkhornLoss, SNELoss, attraction_repulsion

__all__ = ["BernoulliLoss", "Embedding", "SNELoss", "SNEkhornLoss", "attraction_repulsion"]
