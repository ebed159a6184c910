"""Embeddings: objectives, starts and the descent (Chapters 5, 6 and 9).

A method of ``methods`` makes an objective of a plan and hands it to ``embed``, which finds a start
(``starts``), follows a descent (``descent``) and says how far it came. An objective (``losses``)
holds a plan (``plans``) against the kernel of the positions (``kernel_matrix``, in tiles;
``loops``, compiled): how the kernel becomes a plan is all that they differ in. New points in a map
that is held fixed are in ``place``.
"""

from .embed import Embedding
from .losses import BernoulliLoss, SNEkhornLoss, SNELoss, attraction_repulsion

__all__ = ["BernoulliLoss", "Embedding", "SNELoss", "SNEkhornLoss", "attraction_repulsion"]
