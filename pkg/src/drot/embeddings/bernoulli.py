r"""The objective of LargeVis and UMAP: one Bernoulli variable per pair (Chapter 7)."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from .._core.checks import check_fits, check_positive
from .._core.kernels import bernoulli, exp, suits
from .kernels import pulls, squared_distances
from .losses import Evaluation, KernelLoss

_PLANE_ODDS = 1e30  # below it the product of eight odds of a pair stays in range
PairKernel = Literal["student", "curve"]


class BernoulliLoss(KernelLoss):
    r"""Objective of LargeVis and UMAP: each pair has an edge or not, whatever the others do.

    .. math::

        F(Z) = \langle P, C_Z \rangle + \gamma \sum_{i \ne j} \log(1 + e^{-C_{ij}})
             = - \sum_{i \ne j} \bigl( P_{ij} \log Q_{ij}
               + (\gamma - P_{ij}) \log(1 - Q_{ij}) \bigr),
        \qquad Q_{ij} = \frac{1}{1 + e^{C_{ij}}},

    with the cost, the logarithm of the odds against an edge,

    .. math::

        C_{ij} = \log(1 + d_{ij}^2) \;\text{(student)}, \qquad
        C_{ij} = \log a + b \log(d_{ij}^2 + \epsilon) \;\text{(curve)}, \qquad
        d_{ij} = \| z_i - z_j \| .

    ``"student"`` is the kernel of the papers' derivation, :math:`Q = 1 / (2 + d^2)`: no pair is
    more likely joined than not. ``"curve"`` is the software's, :math:`Q = 1 / (1 + a d^{2 b})`
    (LargeVis has a = b = 1). Its odds are infinite at d = 0, where F would be infinite for any
    pair with :math:`P < \gamma`, with no gradient; the guard :math:`\epsilon` makes F smooth and
    finite everywhere. It enters attraction and repulsion alike, so the gradient is that of F to
    rounding. With a = b = :math:`\epsilon` = 1 the curve is Student's kernel.

    The weight :math:`\gamma` of the repulsion changes the plan, not the model: F is
    :math:`\gamma` times the cross-entropy of :math:`P / \gamma` and Q.

    Source: the cross-entropies (LargeVis) and (UMAP) of Van Assel et al. (2022), section 3.1;
    LargeVis (Tang et al., 2016), section 3.2, for :math:`\gamma`; book ``prp-ce-largevis`` and
    ``prp-ce-umap``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n), entries from 0 to ``repulsion``
        :math:`P`, probabilities of edges, symmetric or not: only :math:`P + P^\top` counts.
        The diagonal must be 0.
    kernel : {"student", "curve"}
        Of the embedding.
    a, b : float
        Of the curve, positive; idle otherwise. :func:`umap_curve` has UMAP's.
    guard : float
        :math:`\epsilon > 0`, a squared distance; of the curve. No Q is above
        :math:`1 / (1 + a \epsilon^b)`, so it must be small beside :math:`a^{-1/b}`, where Q is 1/2:
        a curve of spread s takes 0.001 :math:`s^2`. umap-learn adds 0.001, and only to the
        repulsion.
    repulsion : float
        :math:`\gamma`, at least the largest entry of P. 1 is the cross-entropy; the software of
        LargeVis has 7, for the few pairs that it draws.

    Raises
    ------
    ValueError
        If P has mass on its diagonal or an entry above :math:`\gamma`, which F would pull together
        without bound; if a name does not exist or a number is out of range.

    Notes
    -----
    One evaluation is one pass over the pairs, in tiles; of size n x n only the plan is kept, and
    not even that if it is an affinity whose cost is met in tiles: ten arrays of b x n then.
    A descent is preconditioned with the Laplacian of ``attraction``: the weights
    :math:`(P + P^\top) / 2`, scaled so that they add up to :math:`\gamma b / \epsilon` times the
    sum of Q over all pairs, both where all points coincide. All pairs repel there, with
    about n times the weight of the plan, and a step in the plan's own scale would throw the
    points hundreds of times too far apart. Later steps learn their scale.

    Examples
    --------
    >>> loss = BernoulliLoss([[0.0, 0.25], [0.25, 0.0]])
    >>> Z = torch.tensor([[0.0], [2.0**0.5]], dtype=torch.float64)  # Q = 1 / (2 + 2)
    >>> found = loss.evaluate(Z)
    >>> found.gradient.abs().max().item() < 1e-12, abs(found.value + loss.constant) < 1e-12
    (True, True)
    """

    kernels = get_args(PairKernel)

    def __init__(
        self,
        plan,
        kernel: PairKernel = "student",
        *,
        a: float = 1.0,
        b: float = 1.0,
        guard: float = 1e-3,
        repulsion: float = 1.0,
    ):
        super().__init__(plan, kernel, symmetric=False, diagonal=False)
        self.symmetric = self.P.symmetric
        self.a, self.b = check_positive("a", a), check_positive("b", b)
        self.guard = check_positive("guard", guard)
        if kernel == "student":
            self.a = self.b = self.guard = 1.0
        self.repulsion = check_positive("repulsion", repulsion)
        if (self.P.diagonal() != 0).any():
            raise ValueError(
                "the plan has mass on its diagonal, but pairs i = j do not count here; compute "
                "the affinity with diagonal='drop'"
            )
        if self.P.largest > self.repulsion:
            rows, p = next((rows, p) for rows, p in self.P.tiles() if p.max() > self.repulsion)
            i, j = (p > self.repulsion).nonzero()[0].tolist()
            raise ValueError(
                f"the plan has {p[i, j]:g} at row {rows.start + i}, column {j}, above "
                f"repulsion={self.repulsion:g}: nothing would keep this pair apart; pass "
                "probabilities and a repulsion of at least 1"
            )

    @property
    def attraction(self):
        """(P + P^T) / 2, scaled to the total curvature of the repulsion of coinciding points."""
        repulsion = self.repulsion * self.n * (self.n - 1) / (1 + self.a * self.guard**self.b)
        return super().attraction * (repulsion / self.mass * self.b / self.guard)

    @property
    def constant(self) -> float:
        """What F lacks to be gamma times the divergence KL(P / gamma | Q) of the edges."""
        total = 0.0
        for _, tile in self.P.tiles():
            p = tile.double() / self.repulsion
            total += float((torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p)).sum())
        return self.repulsion * total

    def evaluate(self, Z: Tensor, *, warm: Tensor | None = None, tol: float = 1e-6) -> Evaluation:
        """F and its gradient at Z (n, q); ``warm`` and ``tol`` are idle."""
        self.check_size(Z)
        odds = 1 / (self.a * self.guard**self.b)  # of points in one place
        if self.symmetric and odds < _PLANE_ODDS and suits(Z, self.plan):
            told = bernoulli(Z, self.plan, self.a, self.b, self.guard, self.repulsion)
            return Evaluation(value=told[0], attraction=told[1], repulsion=told[2])
        total = torch.zeros((), dtype=torch.float64, device=Z.device)
        tiles = self._pairs(Z)

        def weights(rows: slice, work: Tensor) -> tuple[Tensor, Tensor]:
            nonlocal total
            cost, slope, odds = next(tiles)
            P = self.P[rows]
            total += cost.mul_(P).sum(dtype=torch.float64)
            total += self.repulsion * torch.log1p(odds, out=cost).sum(dtype=torch.float64)
            Q = odds.div_(torch.add(odds, 1, out=cost))
            return torch.mul(P, slope, out=work[0]), Q.mul_(slope).mul_(self.repulsion)

        attract, repel = pulls(Z, self.P.slices, weights, symmetric=self.symmetric)
        return Evaluation(value=float(total), attraction=attract, repulsion=repel)

    def latent_plan(self, Z: Tensor, *, tol: float = 1e-9) -> Tensor:
        """Q, the probabilities of the edges of the embedding Z (n, q): shape (n, n)."""
        self.check_size(Z)
        check_fits((self.n, self.n), Z.dtype, Z.device)
        return torch.cat([odds / (1 + odds) for _, _, odds in self._pairs(Z)])

    def _pairs(self, Z: Tensor):
        """By tiles, (b, n) each: C, its derivative by the squared distance, and e^-C, 0 if i = j.

        The three are memory that the next tile overwrites.
        """
        memory = Z.new_empty(4, self.P.slices[0].stop, self.n)
        columns = Z.T.contiguous()  # (q, n)
        for rows in self.P.slices:
            work = memory[:, : rows.stop - rows.start]
            cost, slope, odds = squared_distances(columns, rows, work[:2]), work[2], work[3]
            cost.add_(self.guard)
            torch.reciprocal(cost, out=slope)
            cost.log_()
            if self.b == 1:
                torch.div(slope, self.a, out=odds)
            else:
                slope.mul_(self.b)
                cost.mul_(self.b)
            if self.a != 1:
                cost.add_(math.log(self.a))
            if self.b != 1:
                exp(cost, -1, out=odds)
            odds.diagonal(rows.start).zero_()
            yield cost, slope, odds
