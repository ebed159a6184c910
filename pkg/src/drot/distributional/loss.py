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
from typing import Literal

import torch
from torch import Tensor

from .._core.run import NotConverged
from ..embeddings.kernels import KernelMatrix, pulls
from ..embeddings.losses import Evaluation, Kernel, KernelLoss, Normalizer
from ..gromov.contraction import Loss, total

Normalization = Literal["sum", "rows", "doubly_stochastic", "none"]

_FLOOR = {torch.float64: 1e-12, torch.float32: 1e-5}  # rounding of a row sum
_MOST = 1000  # products for one normalisation


def log_kernel(Z: Tensor, kernel: str) -> Tensor:
    """log K (k, k) of positions Z (k, q); no digit cancels."""
    D = torch.zeros(len(Z), len(Z), dtype=Z.dtype, device=Z.device)
    for z in Z.T:
        D += (z[:, None] - z).square()
    return -(torch.log1p(D) if kernel == "student" else D)


def _tiny(x: Tensor) -> float:
    return torch.finfo(x.dtype).tiny


def _least(x: Tensor) -> float:
    """A weight that no sum notices, and whose inverse stays in range when squared."""
    return _tiny(x) ** 0.5


def balance(
    kernel: Tensor | KernelMatrix, q: Tensor, r: Tensor, f: Tensor | None, tol: float
) -> tuple[Tensor, Tensor, int]:
    """f (k,) such that the rows of q_k q_l e^(f_k + f_l) K_kl sum to r_k; those sums; products.

    Sinkhorn with the momentum that SNEkhorn uses: divided by r, the plan is a stochastic matrix
    similar to a positive semidefinite one, and the spectrum to invert lies in [1, 2]. Points
    without mass, or of sum 0, change no other. The former take the factor that would give them the
    mean of C, had they the least mass: without any, their own sums may be too small for a factor.
    """
    target = torch.where(q > 0, r / torch.where(q > 0, q, 1), r.sum())  # sum of M: the mean of C
    target = target.clamp_min(_tiny(q))
    used = (q > 0) & (r > 0)
    mass = torch.where(used, q, 0)
    products = 0
    if f is None:
        f, products = (target.log() - (kernel @ mass).log()) / 2, 1
    f = torch.where(used, f, 0)  # of the others any finite number
    momentum, rate, direction = 0.0, 2 / 3, torch.zeros_like(f)
    while True:
        scale = f.exp()
        sums = scale * (kernel @ (mass * scale))  # (k,) to be the target
        products += 1
        ratio = torch.where(used, sums / target, 1)
        residual = float((ratio - 1).abs().max())
        if residual <= tol:
            break
        if products >= _MOST or not math.isfinite(residual):
            raise NotConverged(
                f"the plan of the prototypes: row sums are {residual:.1e} off after {products} "
                "products; the embedding has points that are not finite or too far apart"
            )
        direction = momentum * direction - ratio.log()
        f = f + rate * direction
        momentum = rate**2 / 8 if momentum == 0 else rate**2 / 16
        rate = 1 / (3 / 2 - momentum / rate)
    seen = kernel @ (mass * scale)  # e^f (seen + least e^f) = target, a quadratic for the rest
    root = torch.hypot(seen, 2 * math.sqrt(_least(q)) * target.sqrt())
    return torch.where(used, f, (2 * target).log() - (seen + root).log()), mass * sums, products


def factors(
    log_K: Tensor, M: Tensor, q: Tensor, normalization: Normalization, loss: Loss
) -> tuple[Tensor, Tensor]:
    r"""log u and log v (k,) of :math:`\bar C_{kl} = u_k v_l K_{kl}`, the best for M and q."""
    K, zero = log_K.exp(), torch.zeros_like(q)
    if normalization == "none":
        return zero, zero
    if loss == "square":
        half = _best_scale(K, M, q).log() / 2
        return zero + half, zero + half
    mean, seen = M.sum(), K @ q
    if normalization == "sum":
        half = (mean.log() - (q @ seen).log()) / 2
        return zero + half, zero + half
    if normalization == "rows":
        target = torch.where(q > 0, M.sum(dim=1) / torch.where(q > 0, q, 1), mean)
        seen = torch.where(q > 0, seen, seen + _least(q))  # as balance
        return target.clamp_min(_tiny(q)).log() - seen.log(), zero
    f = balance(K, q, M.sum(dim=1), None, _FLOOR[K.dtype])[0]
    return f, f


def _best_scale(K: Tensor, M: Tensor, q: Tensor) -> Tensor:
    """s >= 0 that minimises sum q q (s K)^2 - 2 s <M, K>."""
    best = (M * K).sum() / (q @ (K.square() @ q))
    return best.clamp_min(_tiny(K))


class PrototypeLoss(KernelLoss):
    r"""E_L as a function of the positions of the prototypes, with the best factors of a kernel.

    ``value`` is E_L itself. For ``kl`` and the weights q = 1/n of a plan I/n it is 1/n^2 times the
    divergence of t-SNE (``sum``, diagonal kept), SNE (``rows``) or SNEkhorn.

    Parameters
    ----------
    M : Tensor, shape (k, k), symmetric
        :math:`T^\top C \, T`; non-negative for ``kl``.
    q : Tensor, shape (k,)
        Weights, of sum 1.
    constant : float
        :math:`c = \sum_{ij} f_1(C_{ij}) w_i w_j`.
    kernel : {"student", "gaussian"}
    normalization : {"sum", "rows", "doubly_stochastic", "none"}
    loss : {"kl", "square"}
        ``square`` knows ``sum``, which is then the best single factor, and ``none``.
    """

    def __init__(
        self,
        M: Tensor,
        q: Tensor,
        constant: float,
        kernel: Kernel,
        normalization: Normalization,
        loss: Loss = "kl",
    ):
        self.M, self.q, self.offset = M, q, constant
        self.normalization, self.loss = normalization, loss
        plan = M
        if loss == "square":  # weights for starts and steps, in the unit of the gradient
            mass = torch.outer(q, q)
            norm = total(torch.where(mass > 0, M.square() / torch.where(mass > 0, mass, 1), 0))
            plan = M.clamp_min(0)
            plan = plan if bool((plan > 0).any()) else mass
            plan = plan * (2 * (norm or 1.0) / total(plan))
        super().__init__(plan, kernel, symmetric=True, diagonal=True)
        self.symmetric = normalization != "rows"
        self.r, self.total = M.sum(dim=1), total(M)

    @property
    def constant(self) -> float:
        """Nothing: the value is E_L."""
        return 0.0

    def normalize(self, kernel: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        q, m, c = self.q, self.total, self.offset
        if self.normalization == "doubly_stochastic":
            floor = max(tol, _FLOOR[q.dtype])
            f, sums, products = balance(kernel, q, self.r, warm, floor)
            dual = total(2 * f * self.r - sums)  # f maximises it: errors are of second order
            scale = q * f.exp()
            return Normalizer(value=c - dual, left=scale, right=scale, dual=f, products=products)
        seen = kernel @ q
        if self.normalization == "none":
            return Normalizer(value=c + float(q @ seen), left=q, right=q)
        if self.normalization == "sum":
            mass = float(q @ seen)
            value = c + m - m * math.log(m / mass)
            return Normalizer(value=value, left=q * (m / mass), right=q)
        used = (q > 0) & (self.r > 0)
        ratio = torch.where(used, self.r / torch.where(used, q * seen, 1), 1)
        value = c + m - total(self.r * ratio.log())
        return Normalizer(value=value, left=torch.where(used, q * ratio, 0), right=q)

    def evaluate(self, Z: Tensor, *, warm: Tensor | None = None, tol: float = 1e-6) -> Evaluation:
        if self.loss == "kl":
            return super().evaluate(Z, warm=warm, tol=tol)
        K = log_kernel(Z, self.kernel).exp()
        s = _best_scale(K, self.M, self.q) if self.normalization == "sum" else K.new_ones(())
        C = s * K
        mass = self.q[:, None] * self.q
        value = self.offset + total(mass * C.square()) - 2 * total(self.M * C)
        pull, push = 2 * C * self.M, 2 * C * mass * C  # dE / d cost is their difference
        if self.kernel == "student":
            pull, push = pull * K, push * K
        attract, repel = pulls(
            Z, self.P.slices, lambda rows, _: (pull[rows], push[rows]), symmetric=self.symmetric
        )
        return Evaluation(value=value, attraction=attract, repulsion=repel)
