r"""The objective of distributional reduction for a fixed plan, as a function of positions.

With :math:`q = T^\top \mathbf 1` and :math:`M = T^\top C \, T`, the sum over four indices is

.. math:: E_L(C, \bar C, T)
          = c + \sum_{kl} q_k q_l \, f_2(\bar C_{kl}) - M_{kl} \, h_2(\bar C_{kl}),

which sees the data through a k x k matrix only. For ``kl`` and :math:`\bar C_{kl} = s K_{kl}` with
the best factor s, it is the objective of t-SNE between M and the plan
:math:`Q_{kl} = q_k q_l \bar C_{kl}` of weighted points: the derivative by the cost is M - Q.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._core.algebra import total
from .._core.checks import check_choice
from ..costs.kernels import KERNELS
from ..embeddings.kernel_matrix import KernelMatrix, Normalizer
from ..embeddings.losses import KernelLoss
from ..embeddings.plans import Plan
from ..gromov.contraction import Coupling
from ..gromov.loss import Loss, as_loss


def log_factor(kernel: Tensor | KernelMatrix, q: Tensor, M: Tensor) -> Tensor:
    """log s of the factor that is best for ``kl``: the sum of Q is that of M."""
    return M.sum().log() - (q @ (kernel @ q)).log()


def kernel_structure(log_K: Tensor, M: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """Cbar (k, k) of a kernel with the best factor, and its logarithm, which is always finite."""
    log_K = log_K + log_factor(log_K.exp(), q, M)
    return log_K.exp(), log_K


def value_at(C: Tensor, h2: Tensor, M: Tensor, q: Tensor, constant: float, loss: Loss) -> float:
    """E_L of a structure."""
    return constant + total(torch.outer(q, q) * loss.f2(C)) - total(M * h2)


def loss_of(kernel: str) -> Loss:
    """``square`` for inner products, whose entries have both signs, else ``kl``."""
    check_choice("kernel", kernel, (*KERNELS, "gram"))
    return as_loss("square" if kernel == "gram" else "kl")


class PrototypeLoss(KernelLoss):
    r"""E_L as a function of the positions of the prototypes, with the best factor of a kernel.

    ``value`` is E_L itself, of ``kl``. For the weights q = 1/n of a plan I/n it is 1/n^2 times the
    divergence of t-SNE, diagonal kept.

    Parameters
    ----------
    c : Coupling
        With :math:`M = T^\top C \, T` (k, k), non-negative, and the weights q (k,).
    constant : float
        :math:`\sum_{ij} f_1(C_{ij}) w_i w_j`.
    kernel : {"student", "gaussian"}
    """

    def __init__(self, c: Coupling, constant: float, kernel: str):
        self.M, self.q, self.offset = c.M, c.q, constant
        own = Plan(c.M, symmetric=True)  # the solver's: nothing is looked for in it
        super().__init__(own, kernel, symmetric=True, self_pairs=True)

    def normalize(self, K: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        log_s, mass = log_factor(K, self.q, self.M), total(self.M)
        scaled = self.q * (log_s / 2).exp()
        return Normalizer(value=self.offset + mass - mass * float(log_s), left=scaled, right=scaled)
