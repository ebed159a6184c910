"""Embeddings: objectives, starts and the descent (Chapters 4, 5 and 8)."""

from .embed import Embedding
from .losses import BernoulliLoss, SNEkhornLoss, SNELoss

__all__ = ["BernoulliLoss", "Embedding", "SNELoss", "SNEkhornLoss"]
