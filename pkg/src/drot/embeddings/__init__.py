"""Embeddings: objectives, starts and the descent (Chapters 4 and 7)."""

from .bernoulli import BernoulliLoss
from .losses import SNELoss
from .result import Embedding
from .snekhorn import SNEkhornLoss

__all__ = ["BernoulliLoss", "Embedding", "SNELoss", "SNEkhornLoss"]
