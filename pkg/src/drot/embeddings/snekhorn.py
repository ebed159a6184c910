r"""The objective of SNEkhorn: a doubly stochastic plan against another (Chapter 4)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .._core.run import NotConverged
from .evaluation import Normalizer, Products
from .losses import Kernel, KernelLoss

_FLOOR = {torch.float64: 1e-12, torch.float32: 1e-5}  # rounding of a row sum
_MOST = 1000  # products for one normalisation; about ten are needed


class SNEkhornLoss(KernelLoss):
    r"""Divergence of a doubly stochastic plan from the one of an embedding.

    The points of the embedding get a plan of the form :math:`Q_{ij} = e^{f_i + f_j - C_{ij}}` with
    rows of sum 1, where :math:`C_{ij} = \|z_i - z_j\|^2` (Gaussian) or
    :math:`\log(1 + \|z_i - z_j\|^2)` (Student, t-SNEkhorn). The objective

    .. math:: F(Z) = \langle P, C_Z \rangle - 2 \langle f_Z, \mathbf 1 \rangle
                   = \mathrm{KL}(P | Q_Z) - \sum_{ij} P_{ij} \log P_{ij}

    has the derivative :math:`\partial F / \partial C = P - Q`, with no derivative of f in it: f
    maximises a concave function, so F does not change, to first order, when f does. With row
    sums of Q within r of 1 the value printed is off by :math:`O(r^2)`, the gradient by
    :math:`O(r)`.

    Sinkhorn's fixed-point iteration runs on the kept kernel, with the momentum of Chebyshev's
    polynomials for a spectrum in [1, 2]: an iteration is a matrix-vector product and divides the
    error by :math:`3 + 2 \sqrt 2`, where plain damping divides it by 3 at most. Since
    :math:`C_{ii} = 0`, :math:`f_i \le 0`; and :math:`f_i \ge -\tfrac12 \log n`, because
    :math:`Q - \mathbf 1 \mathbf 1^\top / n` is positive semidefinite: nothing overflows and no
    logarithm of the kernel is needed.

    Source: (SNEkhorn) in section 4 of SNEkhorn (Van Assel et al., 2023); book ``eq-snekhorn``,
    ``prp-envelope`` and ``prp-sinkhorn-momentum``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n)
        :math:`P`, symmetric and non-negative, rows of sum 1, diagonal included.
    kernel : {"gaussian", "student"}

    Raises
    ------
    ValueError
        If the plan is not symmetric or not doubly stochastic.
    NotConverged
        From ``evaluate``, if the row sums of Q do not reach ``tol``.

    Notes
    -----
    One evaluation is one pass over the kernel, one over the weights and six to ten products
    with a vector; the plan and the kernel are kept, two n x n arrays. A plan that is met in tiles
    keeps neither: each product computes the kernel again, in tiles of b x n.

    Examples
    --------
    >>> plan = torch.full((3, 3), 1 / 3, dtype=torch.float64)
    >>> loss = SNEkhornLoss(plan)
    >>> found = loss.evaluate(torch.zeros(3, 2, dtype=torch.float64))  # one place: Q = P
    >>> round(found.value + loss.constant, 9), found.gradient.abs().max().item()
    (0.0, 0.0)
    """

    def __init__(self, plan, kernel: Kernel = "gaussian"):
        super().__init__(plan, kernel, symmetric=True, diagonal=True)
        sums = self.plan.sum(dim=1)
        gap = (sums - 1).abs()
        if gap.max() > 1e-3:
            i = int(gap.argmax())
            raise ValueError(
                f"SNEkhorn needs rows of sum 1; row {i} sums to {float(sums[i]):g}; "
                "pass drot.symmetric_entropic_affinity or drot.doubly_stochastic_affinity"
            )

    def normalize(
        self, kernel: Products, shift: Tensor | None, warm: Tensor | None, tol: float
    ) -> Normalizer:
        f, sums, products = _balance(kernel, warm, max(tol, _FLOOR[self.plan.dtype]))
        # the concave function that f maximises: its error is of second order
        dual = (2 * f - sums).sum(dtype=torch.float64) + self.n
        scale = f.exp()
        return Normalizer(value=-float(dual), left=scale, right=scale, dual=f, products=products)


def _balance(kernel: Products, f: Tensor | None, tol: float) -> tuple[Tensor, Tensor, int]:
    """f (n,) such that rows of e^(f_i + f_j) K_ij sum to 1 within ``tol``; those sums; products.

    The residual -log(row sums) has the derivative -(I + Q'), where Q' is similar to a positive
    semidefinite matrix of norm 1: the spectrum lies in [-2, -1], for any f.
    """
    products = 0
    if f is None:
        f, products = -kernel.sum(dim=1).log() / 2, 1
    momentum, rate, direction = 0.0, 2 / 3, torch.zeros_like(f)
    while True:
        scale = f.exp()
        sums = scale * (kernel @ scale)  # (n,)
        products += 1
        residual = float((sums - 1).abs().max())
        if residual <= tol:
            return f, sums, products
        if products >= _MOST or not math.isfinite(residual):
            raise NotConverged(
                f"the plan of the embedding: row sums are {residual:.1e} off after {products} "
                "products; the embedding has points that are not finite or too far apart"
            )
        direction = momentum * direction - sums.log()
        f = f + rate * direction
        # Chebyshev's recurrence for [1, 2]: centre 3/2, half width 1/2
        momentum = rate**2 / 8 if momentum == 0 else rate**2 / 16
        rate = 1 / (3 / 2 - momentum / rate)
