r"""Objectives that hold a kernel between embedded points against a plan (Chapters 4 and 7).

All have one shape. With :math:`C_Z` the cost between points of the embedding,

.. math:: F(Z) = \langle P, C_Z \rangle + A(C_Z), \qquad
          \frac{\partial F}{\partial C_{ij}} = P_{ij} - Q_{ij},

where :math:`A` is the logarithm of what normalises the kernel :math:`e^{-C_Z}` to the plan
:math:`Q`. Here :math:`Q_{ij} = a_i b_j e^{-C_{ij}}`; in ``bernoulli_loss``, of LargeVis and UMAP,
each pair is normalised alone. Points that P holds together attract, points that Q holds together
repel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal, get_args

import torch
from torch import Tensor

from .._core.checks import (
    as_points,
    check_choice,
    check_fits,
    check_positive,
    check_same_transposed,
)
from .._core.kernels import StudentPairs, suits
from ..affinities.base import read_plan
from ..affinities.tiled import KernelRows, PlanRows, is_tiled, tiles_of
from .evaluation import Evaluation, Normalizer, Products

Kernel = Literal["gaussian", "student"]
Normalization = Literal["sum", "rows"]


def _check_symmetric(plan: Tensor | PlanRows) -> None:
    if isinstance(plan, Tensor):
        check_same_transposed(plan, "plan")
    elif not plan.symmetric:
        raise ValueError(
            f"plan must be symmetric; row {plan.worst} and column {plan.worst} differ; "
            "pass a symmetric affinity, or one of a dense cost through drot.symmetrize"
        )


class KernelLoss:
    """The common part of the objectives: a plan, a kernel, and passes over tiles of rows.

    A subclass says how the kernel is normalised. Between two evaluations nothing is remembered
    but memory to work in: the same Z and the same warm start give the same bits. A plan given as
    a tensor is kept, not copied: do not change it in place afterwards.

    An affinity whose cost is met in tiles is never formed, nor is the kernel: both are computed
    whenever their rows are needed, in at most ten arrays of b x n for tiles of b rows (b is at
    most the cost's ``block`` and b n about 2^17, 2^26 on a GPU) and some n-vectors.
    """

    balanced = True  # whether the kernel is multiplied with vectors to normalise it
    shifted = False  # whether each row's kernel is divided by its largest entry, lest it vanish
    kernels: tuple[str, ...] = get_args(Kernel)

    def __init__(self, plan, kernel: str, *, symmetric: bool, diagonal: bool):
        check_choice("kernel", kernel, self.kernels)
        self.plan: Tensor | PlanRows
        if is_tiled(plan):
            self.plan = plan if isinstance(plan, PlanRows) else PlanRows(plan)
        else:
            self.plan = read_plan(plan)
        self.tiled = isinstance(self.plan, PlanRows)
        self.kernel, self.diagonal, self.symmetric = kernel, diagonal, symmetric
        if symmetric:
            _check_symmetric(self.plan)
        self.n = n = self.plan.shape[0]
        p = self.plan
        if isinstance(p, PlanRows):
            self.mass, self.entropy, self._tiles = p.mass, p.entropy, p.slices
        else:
            self._tiles = tiles_of(n, p.device)
            self.mass = float(p.sum(dtype=torch.float64))
            parts = (torch.xlogy(p[rows], p[rows]).sum(dtype=torch.float64) for rows in self._tiles)
            self.entropy = float(sum(parts))  # sum P log P
        if self.mass == 0:
            raise ValueError("the plan is zero everywhere; nothing holds the points together")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n} x {self.n}, kernel={self.kernel!r})"

    @property
    def constant(self) -> float:
        """What F lacks to be the generalised KL(P | Q), in nats."""
        return self.entropy

    @property
    def attraction(self) -> Tensor | PlanRows:
        """Symmetric weights whose Laplacian is the curvature of the attraction, (n, n).

        By tiles P itself, of which only (P + P^T) / 2 counts.
        """
        P = self.plan
        return P if isinstance(P, PlanRows) else (P + P.T) / 2

    def normalize(
        self, kernel: Products, shift: Tensor | None, warm: Tensor | None, tol: float
    ) -> Normalizer:
        """The :class:`Normalizer` of ``kernel`` (n, n), whose rows are e^(shift - C_Z).

        The shift is known once ``kernel`` has been met.
        """
        raise TypeError(f"{type(self).__name__} does not say how the kernel is normalised")

    def check_size(self, Z: Tensor) -> None:
        """Refuse positions (n, q) of other points than the plan's."""
        if Z.ndim != 2 or len(Z) != self.n:
            has = f"{len(Z)} points" if Z.ndim == 2 else f"shape {tuple(Z.shape)}"
            raise ValueError(f"Z has {has} and the plan {self.n} points")

    def evaluate(self, Z: Tensor, *, warm: Tensor | None = None, tol: float = 1e-6) -> Evaluation:
        """F and its gradient at Z (n, q).

        ``tol`` bounds the row sums of Q where they are iterated on, ``warm`` starts that
        iteration; both are idle otherwise.
        """
        self.check_size(Z)
        if self.kernel == "student" and self.symmetric and suits(Z, self.plan):
            return self._in_plane(Z, warm, tol)
        kernel, shift, attraction = self._kernel(Z)
        found = self.normalize(kernel, shift, warm, tol)
        late = torch.zeros((), dtype=torch.float64, device=Z.device)  # <P, C_Z> by tiles

        def weights(rows: slice, work: Tensor) -> tuple[Tensor, Tensor]:
            P = self.plan[rows]
            if isinstance(kernel, KernelRows):
                cost, K = kernel.costs(rows)
                late.add_(cost.mul_(P).sum(dtype=torch.float64))
            else:
                K = kernel[rows]
            Q = self._latent(K, rows, found, work[0])
            if self.kernel == "gaussian":
                return P, Q
            return torch.mul(P, K, out=work[1]), Q.mul_(K)

        attract, repel = self._pull(Z, weights)
        return Evaluation(
            value=attraction + float(late) + found.value,
            attraction=attract,
            repulsion=repel,
            dual=found.dual,
            passes=kernel.passes if isinstance(kernel, KernelRows) else 1.0,
            products=found.products,
        )

    def _in_plane(self, Z: Tensor, warm: Tensor | None, tol: float) -> Evaluation:
        """What the compiled loops give."""
        P = self.plan
        assert isinstance(P, Tensor)  # of suits
        kernel = self._memory if self.balanced else P.new_empty(0, self.n)
        pairs = StudentPairs(Z, P, kernel, diagonal=self.diagonal)
        found = self.normalize(pairs, None, warm, tol)
        return Evaluation(
            value=pairs.value + found.value,
            attraction=pairs.attraction,
            repulsion=pairs.repulsion(found.left, found.right),
            dual=found.dual,
            products=found.products,
        )

    @cached_property
    def _memory(self) -> Tensor:
        """Kept for the kernel, (n, n)."""
        check_fits((self.n, 2 * self.n), self.plan.dtype, self.plan.device)
        return torch.empty(self.n, self.n, dtype=self.plan.dtype, device=self.plan.device)

    def latent_plan(self, Z: Tensor, *, tol: float = 1e-9) -> Tensor:
        """Q, the plan of the embedding Z (n, q): shape (n, n), of the mass of P."""
        kernel, shift, _ = self._kernel(Z)
        found = self.normalize(kernel, shift, None, tol)
        check_fits((self.n, self.n), Z.dtype, Z.device)
        whole = torch.empty(self.n, self.n, dtype=Z.dtype, device=Z.device)
        for rows in self._tiles:
            self._latent(kernel[rows], rows, found, whole[rows])
        return whole

    def _kernel(self, Z: Tensor) -> tuple[Tensor | KernelRows, Tensor | None, float]:
        """The kernel (n, n), the shift of its rows (n,) and <P, C_Z>: kept, or for tiles 0."""
        self.check_size(Z)
        source = KernelRows(
            Z, self.kernel, self._tiles, diagonal=self.diagonal, shifted=self.shifted
        )
        if isinstance(self.plan, PlanRows):
            return source, source.shift, 0.0
        kept = self._memory
        attraction = torch.zeros((), dtype=torch.float64, device=Z.device)
        for rows in self._tiles:
            cost, _ = source.costs(rows, kept[rows])
            attraction += cost.mul_(self.plan[rows]).sum(dtype=torch.float64)
        return kept, source.shift, float(attraction)

    @staticmethod
    def _latent(kernel: Tensor, rows: slice, found: Normalizer, out: Tensor) -> Tensor:
        """Some rows of Q, (b, n), from those of the kernel, in ``out``."""
        Q = torch.mul(kernel, found.left[rows, None], out=out)
        return Q if found.right is None else Q.mul_(found.right)

    def _pull(
        self, Z: Tensor, weights: Callable[[slice, Tensor], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """2 sum_j (w_ij + w_ji) (z_i - z_j), (n, q), for two w: gradients of <w, |z_i - z_j|^2>.

        ``weights`` takes rows and memory for them, (2, b, n), and returns those rows of both.
        """
        q = Z.shape[1]
        lines = torch.cat([Z.T, torch.ones_like(Z[:, :1]).T])  # (q + 1, n)
        sums = lines.new_zeros(2, *lines.shape)  # [Z, 1]^T w^T, or [Z, 1]^T (w + w^T)
        work = torch.empty(2, self._tiles[0].stop, self.n, dtype=Z.dtype, device=Z.device)
        for rows in self._tiles:
            for total, w in zip(
                sums, weights(rows, work[:, : rows.stop - rows.start]), strict=True
            ):
                total[:, rows] += lines @ w.T
                if not self.symmetric:
                    total.addmm_(lines[:, rows], w)
        factor = 4 if self.symmetric else 2
        attract, repel = (factor * (total[q:].T * Z - total[:q].T) for total in sums)
        return attract, repel


class SNELoss(KernelLoss):
    r"""Objective of SNE, symmetric SNE and t-SNE: softmax normalisations.

    .. math::

        F(Z) = \langle P, C_Z \rangle +
        \begin{cases}
        s \, \log \sum_{i \ne j} e^{-C_{ij}}, \quad s = \sum_{ij} P_{ij} & \text{(sum)} \\
        \sum_i m_i \log \sum_{j \ne i} e^{-C_{ij}}, \quad m_i = \sum_j P_{ij} & \text{(rows)}
        \end{cases}

    with :math:`C_{ij} = \|z_i - z_j\|^2` (Gaussian) or :math:`\log(1 + \|z_i - z_j\|^2)`
    (Student). Then Q has the mass of P, in all or row by row, and F differs from KL(P | Q) by a
    constant.

    Source: SNE (Hinton and Roweis, 2002) and t-SNE (Van der Maaten and Hinton, 2008), in the
    form of equation (Symmetric-SNE) of SNEkhorn; book ``eq-sne``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n), non-negative
        :math:`P`, of any mass; the value and the gradient are proportional to it. t-SNE
        software divides by the mass: so should who compares.
    kernel : {"gaussian", "student"}
        Of the embedding.
    normalization : {"sum", "rows"}
        ``"sum"`` for symmetric SNE and t-SNE, which needs a symmetric P (if it is met in tiles,
        any: only :math:`P + P^\top` counts for the gradient); ``"rows"`` for SNE.
    diagonal : {"drop", "keep"}
        Whether the pairs i = j count in the sums and in P.

    Raises
    ------
    ValueError
        If the plan is not of the kind asked for, or a name does not exist.

    Notes
    -----
    One evaluation is one pass over the kernel and one over the weights; the plan and the kernel
    are kept, two n x n arrays. For Student's kernel in the plane, on a CPU, it is one reading of
    the plan by a compiled loop, and no kernel is kept. A plan that is met in tiles keeps neither:
    two passes over the kernel and one over the plan, ten arrays of b x n.

    Examples
    --------
    >>> loss = SNELoss([[0.0, 1.0], [1.0, 0.0]], kernel="student")
    >>> Z = torch.tensor([[0.0], [3.0]], dtype=torch.float64)
    >>> loss.evaluate(Z).gradient.abs().max().item() < 1e-12  # two points: Q = P anywhere
    True
    """

    def __init__(
        self,
        plan,
        kernel: Kernel = "gaussian",
        *,
        normalization: Normalization = "sum",
        diagonal: Literal["drop", "keep"] = "drop",
    ):
        check_choice("normalization", normalization, get_args(Normalization))
        check_choice("diagonal", diagonal, ("drop", "keep"))
        self.normalization = normalization
        strict = normalization == "sum" and not is_tiled(plan)
        super().__init__(plan, kernel, symmetric=strict, diagonal=diagonal == "keep")
        if isinstance(self.plan, PlanRows) and normalization == "sum":
            self.symmetric = self.plan.symmetric
        if diagonal == "drop" and (self.plan.diagonal() != 0).any():
            raise ValueError(
                "the plan has mass on its diagonal; compute the affinity with diagonal='drop', or "
                "pass diagonal='keep' to count the pairs i = j in the embedding too"
            )
        self.masses = self.plan.sum(dim=1)  # (n,)
        self.balanced = False
        self.shifted = kernel == "gaussian"

    @property
    def constant(self) -> float:
        whole = torch.tensor(self.mass, dtype=torch.float64)
        mass = whole if self.normalization == "sum" else self.masses
        return self.entropy - float(torch.xlogy(mass, mass).sum(dtype=torch.float64))

    def normalize(
        self, kernel: Products, shift: Tensor | None, warm: Tensor | None, tol: float
    ) -> Normalizer:
        sums = kernel.sum(dim=1)
        shift = torch.zeros_like(sums) if shift is None else shift
        logs = sums.log() - shift  # (n,) log sum_j e^-C_ij
        if self.normalization == "rows":
            value = (self.masses * logs).sum(dtype=torch.float64)
            return Normalizer(value=float(value), left=self.masses / sums)
        total = torch.logsumexp(logs, dim=0)
        return Normalizer(
            value=self.mass * float(total), left=self.mass * torch.exp(-shift - total)
        )


def attraction_repulsion(objective: KernelLoss, Z, *, tol: float = 1e-9) -> tuple[Tensor, Tensor]:
    r"""Split the forces on the points of an embedding into attraction and repulsion.

    .. math::

        - \frac{\partial F}{\partial z_i} =
        \underbrace{- \frac{\partial}{\partial z_i} \langle P, C_Z \rangle}_{\text{attraction}}
        \; \underbrace{- \frac{\partial}{\partial z_i} A(C_Z)}_{\text{repulsion}} .

    Attraction sees the data, through P. Repulsion sees the embedding alone: A is the logarithm
    of what normalises its kernel, and depends on which graphs the prior allows.

    Source: equation (5) of Van Assel et al. (2022), section 3.2; book
    ``prp-attraction-repulsion``.

    Parameters
    ----------
    objective : SNELoss, SNEkhornLoss or BernoulliLoss
    Z : array_like, shape (n, q)
    tol : float
        For the row sums of Q, where they are iterated on (SNEkhorn).

    Returns
    -------
    attraction, repulsion : Tensor, shape (n, q)
        Minus the gradient is their sum; each adds up to 0 over the points. In the dtype of the
        plan.

    Raises
    ------
    ValueError
        If Z is not a finite cloud of as many points as the plan has.

    Examples
    --------
    >>> loss = SNELoss([[0.0, 1.0], [1.0, 0.0]], kernel="student")
    >>> pull, push = attraction_repulsion(loss, [[0.0], [3.0]])
    >>> pull[:, 0].round(decimals=9).tolist(), push[:, 0].round(decimals=9).tolist()
    ([1.2, -1.2], [-1.2, 1.2])
    """
    tol = check_positive("tol", tol)
    Z = as_points(Z, "Z").to(objective.plan.device, objective.plan.dtype)
    found = objective.evaluate(Z, tol=tol)
    return -found.attraction, found.repulsion
