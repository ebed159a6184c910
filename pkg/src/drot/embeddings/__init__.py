r"""Embeddings: objectives, starts and the descent (Chapters 5, 6 and 9).

A method of ``methods`` makes an objective of a plan and hands it to ``embed``, which finds a start
(``starts``), follows a descent (``descent``) and says how far it came. New points in a map that is
held fixed are in ``place``. The nouns, for n points with positions Z (n, q):

- A *plan* P (n, n) has the weights of the data (``plans``): an array, or an affinity that is read
  in tiles.
- A *kernel matrix* K (n, n) has :math:`e^{-C(\|z_i - z_j\|^2)}`, for a kernel C of
  ``costs/kernels.py``. It gives its row sums, or products with vectors (``kernel_matrix``, in
  tiles; ``loops``, compiled, for the plane).
- A *normalizer* is how K becomes the plan Q of the embedding, :math:`Q_{ij} = l_i r_j K_{ij}` or
  pair by pair, and the part R of the objective whose derivative by C is -Q.
- An *objective* (``losses``) is :math:`F(Z) = \langle P, C \rangle + R`. One evaluation makes K of
  Z, asks the objective's ``normalize`` for the normalizer of K, and K for its ``forces``: what P
  pulls and Q pushes.

How K becomes Q is all that objectives differ in. A new one is a subclass of ``KernelLoss`` whose
``normalize`` returns a ``Normalizer``; it says with ``needs`` what that asks of K, and with
``constant`` what F lacks to be a divergence, unless that is P's entropy. Its method is two lines.
"""

from .embed import Embedding
from .losses import BernoulliLoss, SNEkhornLoss, SNELoss, attraction_repulsion

__all__ = ["BernoulliLoss", "Embedding", "SNELoss", "SNEkhornLoss", "attraction_repulsion"]
