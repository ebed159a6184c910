r"""The objective of distributional reduction for a fixed plan, as a function of positions.

With :math:`q = T^\top \mathbf 1` and :math:`M = T^\top C \, T`, the sum over four indices is

.. math:: E_L(C, \bar C, T)
          = c + \sum_{kl} q_k q_l \, f_2(\bar C_{kl}) - M_{kl} \, h_2(\bar C_{kl}),

which sees the data through a k x k matrix only. For ``kl`` and
:math:`\bar C_{kl} = u_k v_l K_{kl}` with the best factors u and v, it is the objective of SNE,
t-SNE or SNEkhorn between M and the plan :math:`Q_{kl} = q_k q_l \bar C_{kl}` of weighted points:
the derivative by the cost is M - Q.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from .._core.algebra import ratio, total
from .._core.checks import check_choice
from ..affinities.sinkhorn import balance
from ..costs.kernels import KERNELS, squares
from ..embeddings.descent import Evaluation
from ..embeddings.kernel_matrix import KernelMatrix, Normalizer
from ..embeddings.losses import KernelLoss
from ..embeddings.plans import Plan
from ..gromov.contraction import Coupling
from ..gromov.loss import Loss, LossName, as_loss

Normalization = Literal["sum", "rows", "doubly_stochastic", "none"]


def _least(x: Tensor) -> float:
    """A weight that no sum notices, and whose inverse stays in range when squared."""
    return torch.finfo(x.dtype).tiny ** 0.5


def scaling_factors(
    kernel: Tensor | KernelMatrix,
    q: Tensor,
    r: Tensor,
    normalization: Normalization,
    warm: Tensor | None = None,
    tol: float = 0.0,
) -> tuple[Tensor, Tensor, float]:
    r"""log u and log v (k,) of :math:`Q_{kl} = q_k q_l u_k v_l K_{kl}`, and the mass of Q.

    The best for ``kl``: the sums of Q are those of M, whose rows sum to r; ``tol`` bounds the error
    of those that are iterated on, from ``warm``. A point without mass takes the factor that would
    give it the mean of C, and changes no other.
    """
    zero, used = torch.zeros_like(q), q > 0
    if normalization == "none":
        return zero, zero, float(q @ (kernel @ q))
    if normalization == "sum":
        half = zero + (r.sum().log() - (q @ (kernel @ q)).log()) / 2
        return half, half, total(r)
    target = torch.where(used, ratio(r, q), r.sum())  # sum of M: mean of C
    target = target.clamp_min(torch.finfo(q.dtype).tiny)
    if normalization == "rows":
        seen = kernel @ q
        return target.log() - torch.where(used, seen, seen + _least(q)).log(), zero, total(r)
    f = (target.log() - (kernel @ q).log()) / 2 if warm is None else warm
    f, mass = balanced_factors(kernel, q, r, target, f, tol)
    return f, f, mass


def balanced_factors(
    kernel: Tensor | KernelMatrix, q: Tensor, r: Tensor, target: Tensor, f: Tensor, tol: float
) -> tuple[Tensor, float]:
    """f (k,) such that the rows of q_k q_l e^(f_k + f_l) K_kl sum to r_k, and their mass.

    Sinkhorn with the momentum that SNEkhorn uses: divided by r, the plan is a stochastic matrix
    similar to a positive semidefinite one, and the spectrum to invert lies in [1, 2]. Points
    without mass, or of sum 0, change no other. The former take the factor that would give them
    ``target``, had they the least mass: without any, their own sums may be too small for a factor.
    """
    used = (q > 0) & (r > 0)
    mass = torch.where(used, q, 0)
    f = torch.where(used, f, 0)  # of the others any finite number
    seen = f

    def row_sums(f: Tensor) -> Tensor:
        nonlocal seen
        scale = f.exp()
        seen = kernel @ (mass * scale)  # (k,)
        return torch.where(used, scale * seen / target, 1)

    f, *_ = balance("the plan of the prototypes", row_sums, f, tol)
    # e^f (seen + least e^f) = target, a quadratic for the rest
    root = torch.hypot(seen, 2 * math.sqrt(_least(q)) * target.sqrt())
    rest = (2 * target).log() - (seen + root).log()
    return torch.where(used, f, rest), total(mass * f.exp() * seen)


def kernel_structure(
    log_K: Tensor, M: Tensor, q: Tensor, normalization: Normalization, loss: Loss
) -> tuple[Tensor, Tensor]:
    """Cbar (k, k) of a kernel with the best factors, and h2 of it, which is always finite."""
    K = log_K.exp()
    if loss.log:
        u, v, _ = scaling_factors(K, q, M.sum(dim=1), normalization)
        log_K = log_K + (u[:, None] + v)  # symmetric to the last bit if u is v
        return log_K.exp(), log_K
    if normalization == "sum":  # the s that minimises sum q q (s K)^2 - 2 s <M, K>
        K = K * ((M * K).sum() / (q @ (K.square() @ q))).clamp_min(0)
    return K, loss.h2(K)


def value_at(C: Tensor, h2: Tensor, M: Tensor, q: Tensor, constant: float, loss: Loss) -> float:
    """E_L of a structure."""
    return constant + total(torch.outer(q, q) * loss.f2(C)) - total(M * h2)


def read_kernel(
    kernel: str, normalization: Normalization | None, loss: LossName | None
) -> tuple[Normalization, Loss]:
    """The normalisation and loss of a kernel: usual ones where none is given, else of its kind."""
    check_choice("kernel", kernel, (*KERNELS, "gram"))
    gram = kernel == "gram"
    found = as_loss(("square" if gram else "kl") if loss is None else loss)
    known: tuple[Normalization, ...] = ("none",)  # whose best factors are, the usual one first
    if not gram and (found.log or found.free):
        known = get_args(Normalization) if found.log else ("sum", "none")
    chosen = known[0] if normalization is None else normalization
    check_choice("normalization", chosen, get_args(Normalization))
    if chosen not in known or (gram and not found.free):
        raise ValueError(
            f"kernel={kernel!r}, loss={found.name!r} and normalization={chosen!r} do not go "
            "together: 'gram', with entries of both signs, takes 'square' and 'none', another "
            "kernel 'kl', or 'square' with 'sum' or 'none'"
        )
    if found.high < math.inf:
        raise ValueError(
            f"loss={found.name!r} has a range that ends at {found.high:g}, which is what every "
            "kernel gives a prototype and itself: two points of one would cost infinitely much"
        )
    return chosen, found


def value_and_forces(
    log_K: Tensor, M: Tensor, q: Tensor, constant: float, normalization: Normalization, loss: Loss
) -> tuple[float, Tensor, Tensor]:
    """E_L, and weights (k, k) that attract and repel: minus their difference is dE / d log K."""
    C, h2 = kernel_structure(log_K, M, q, normalization, loss)
    pull = loss.pull(C)
    return value_at(C, h2, M, q, constant, loss), pull * M, pull * (q[:, None] * q) * C


class PrototypeLoss(KernelLoss):
    r"""E_L as a function of the positions of the prototypes, with the best factors of a kernel.

    ``value`` is E_L itself, of ``kl``. For the weights q = 1/n of a plan I/n it is 1/n^2 times the
    divergence of t-SNE (``sum``, diagonal kept), SNE (``rows``) or SNEkhorn.

    Parameters
    ----------
    c : Coupling
        With :math:`M = T^\top C \, T` (k, k), non-negative for ``kl``, and the weights q (k,).
    constant : float
        :math:`\sum_{ij} f_1(C_{ij}) w_i w_j`.
    kernel : {"student", "gaussian"}
    normalization : {"sum", "rows", "doubly_stochastic", "none"}
    loss : Loss
    """

    def __init__(
        self, c: Coupling, constant: float, kernel: str, normalization: Normalization, loss: Loss
    ):
        self.M, self.q, self.offset = c.M, c.q, constant
        self.normalization, self.loss = normalization, loss
        own = Plan(self.pulls(), symmetric=True)  # the solver's: nothing is looked for in it
        super().__init__(own, kernel, symmetric=True, diagonal=True)
        self.symmetric = normalization != "rows"
        self.r = self.M.sum(dim=1)

    def pulls(self) -> Tensor:
        """Weights (k, k) for starts and steps, in the unit of the gradient."""
        return self.M

    def normalize(self, K: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        q = self.q
        u, v, mass = scaling_factors(K, q, self.r, self.normalization, warm, tol)
        value = self.offset + mass - total(self.r * (u + v))
        return Normalizer(value=value, left=q * u.exp(), right=q * v.exp(), dual=v)


class EntryLoss(PrototypeLoss):
    """The same for ``square``, which is no divergence of plans: entry by entry.

    It knows ``sum``, which is then the best single factor, and ``none``.
    """

    def pulls(self) -> Tensor:
        mass, pulls = torch.outer(self.q, self.q), self.M.clamp_min(0)
        pulls = pulls if bool((pulls > 0).any()) else mass
        size = total(self.loss.pull(ratio(self.M, mass)) * self.M) or 2.0
        return pulls * (size / total(pulls))

    def evaluate(self, Z: Tensor, warm: Tensor | None = None, *, tol: float = 1e-6) -> Evaluation:
        D = squares(Z, Z)
        value, *forces = value_and_forces(
            -self.profile.cost(D), self.M, self.q, self.offset, self.normalization, self.loss
        )
        far = 1 - torch.eye(len(Z)).to(Z)  # who pulls at itself would hide who pulls at others
        weights = (far * self.profile.slope(D) * w for w in forces)
        attract, repel = (4 * (w.sum(dim=1, keepdim=True) * Z - w @ Z) for w in weights)
        return Evaluation(value=value, attraction=attract, repulsion=repel)
