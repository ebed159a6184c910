"""Embeddings: objectives, starts and the descent (Chapters 4 and 7)."""

from .bernoulli import BernoulliLoss
from .embed import Embedding
from .losses import SNEkhornLoss, SNELoss

__all__ = ["BernoulliLoss", "Embedding", "SNELoss", "SNEkhornLoss"]
