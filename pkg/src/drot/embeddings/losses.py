r"""Objectives that hold a kernel between embedded points against a plan (Chapters 4 and 7).

All have one shape. With :math:`C_Z` the cost between points of the embedding,

.. math:: F(Z) = \langle P, C_Z \rangle + A(C_Z), \qquad
          \frac{\partial F}{\partial C_{ij}} = P_{ij} - Q_{ij},

where :math:`A` is the logarithm of what normalises the kernel :math:`e^{-C_Z}` to the plan
:math:`Q`. Here :math:`Q_{ij} = a_i b_j e^{-C_{ij}}`; in :class:`.BernoulliLoss`, of LargeVis and
UMAP, each pair is normalised alone. Points that P holds together attract, points that Q holds
together repel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import torch
from torch import Tensor

from .._core.checks import as_points, check_choice, check_fits, check_positive
from .._core.kernels import StudentPairs, suits
from .._core.sinkhorn import balance
from .kernels import DenseKernel, KernelMatrix, TiledKernel, scaled
from .plans import as_plan

Kernel = Literal["gaussian", "student"]
Normalization = Literal["sum", "rows"]

_ONE_PLACE = 1e-3  # radius in bandwidths of the kernel: F is within 1e-5 of its value there


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """An objective at one embedding."""

    value: float  # F(Z), in nats
    attraction: Tensor  # (n, q) the derivative of <P, C_Z>
    repulsion: Tensor  # (n, q) minus the derivative of A(C_Z)
    dual: Tensor | None = None  # (n,) a warm start for the next evaluation, where one helps
    passes: float = 1.0  # evaluations of the n x n kernel
    products: int = 0  # products of the kernel with a vector; by tiles each is a pass too

    @cached_property
    def gradient(self) -> Tensor:
        """dF/dZ, (n, q)."""
        return self.attraction - self.repulsion

    def residual(self, size: float, mass: float) -> float:
        """The length of the gradient, in units of that of the attraction.

        Where nothing attracts, or all points have met in one place: in units of a force that
        lowers F by 1 for each unit of mass on the way of a radius of the map, its ``size``.
        """
        whole, part = (float(x.double().norm()) for x in (self.gradient, self.attraction))
        if part > 0 and size > _ONE_PLACE:
            return whole / part
        return whole * size * len(self.attraction) ** 0.5 / mass


@dataclass(frozen=True, kw_only=True)
class Normalizer:
    """How a kernel becomes a plan, ``Q_ij = left_i right_j K_ij``."""

    value: float  # A(C_Z)
    left: Tensor  # (n,)
    right: Tensor | None = None  # (n,), ones where absent
    dual: Tensor | None = None  # (n,)
    products: int = 0


class KernelLoss:
    """The objective of a coupling: a plan, a kernel, and how the kernel becomes a plan.

    Another coupling is a subclass with two methods: ``normalize``, which turns a kernel K into
    A(C_Z) and the factors of :math:`Q_{ij} = a_i b_j K_{ij}`, and the property ``constant``, which
    makes F a divergence where that is not the generalised KL(P | Q). Value, forces, tiles and
    descent are common to all.

    Between two evaluations nothing is remembered but memory to work in: the same Z and the same
    warm start give the same bits. A plan given as a tensor is kept, not copied: do not change it in
    place afterwards. An affinity whose cost is met in tiles is never formed, nor is the kernel:
    both are computed whenever their rows are needed, in at most ten arrays of b x n for tiles of
    b rows (b is at most the cost's ``block`` and b n about 2^17, 2^26 on a GPU) and some n-vectors.

    Attributes
    ----------
    n : int
        Points.
    plan : Tensor or TiledPlan
        P, (n, n); its dtype and device are the embedding's.
    mass : float
        Of the plan, to which values and residuals are in proportion.
    attraction : Tensor or TiledPlan
        Symmetric weights, (n, n), whose Laplacian preconditions the descent.
    """

    balanced = True  # whether the kernel is multiplied with vectors to normalise it
    shifted = False  # whether each row's kernel is divided by its largest entry, lest it vanish
    kernels: tuple[str, ...] = get_args(Kernel)

    def __init__(self, plan, kernel: str, *, symmetric: bool, diagonal: bool):
        check_choice("kernel", kernel, self.kernels)
        self.P = P = as_plan(plan)
        if symmetric:
            P.check_symmetric()
        self.kernel, self.diagonal, self.symmetric = kernel, diagonal, symmetric
        self.n, self.mass = P.shape[0], P.mass
        if self.mass == 0:
            raise ValueError("the plan is zero everywhere; nothing holds the points together")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n} x {self.n}, kernel={self.kernel!r})"

    @property
    def plan(self):
        return self.P.array

    def normalize(self, kernel: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        """The :class:`Normalizer` of ``kernel`` (n, n), whose rows are e^(shift - C_Z).

        The shift is known once ``kernel`` has been met.
        """
        raise TypeError(f"{type(self).__name__} does not say how the kernel is normalised")

    @property
    def constant(self) -> float:
        """What F lacks to be the generalised KL(P | Q), in nats."""
        return self.P.entropy

    @property
    def attraction(self):
        """Symmetric weights whose Laplacian is the curvature of the attraction, (n, n)."""
        return self.P.symmetric_part()

    def evaluate(self, Z: Tensor, *, warm: Tensor | None = None, tol: float = 1e-6) -> Evaluation:
        """F and its gradient at Z (n, q).

        ``tol`` bounds the row sums of Q where they are iterated on, ``warm`` starts that
        iteration; both are idle otherwise.
        """
        kernel = self._kernel(Z)
        found = self.normalize(kernel, warm, tol)
        value, attraction, repulsion = kernel.forces(found.left, found.right)
        return Evaluation(
            value=value + found.value,
            attraction=attraction,
            repulsion=repulsion,
            dual=found.dual,
            passes=kernel.passes,
            products=found.products,
        )

    def latent_plan(self, Z: Tensor, *, tol: float = 1e-9) -> Tensor:
        """Q, the plan of the embedding Z (n, q): shape (n, n), of the mass of P."""
        kernel = self._swept(Z)
        found = self.normalize(kernel, None, tol)
        check_fits((self.n, self.n), Z.dtype, Z.device)
        whole = Z.new_empty(self.n, self.n)
        for rows, K in kernel.tiles():
            scaled(K, rows, found.left, found.right, whole[rows])
        return whole

    def check_size(self, Z: Tensor) -> None:
        """Refuse positions (n, q) of other points than the plan's."""
        if Z.ndim != 2 or len(Z) != self.n:
            has = f"{len(Z)} points" if Z.ndim == 2 else f"shape {tuple(Z.shape)}"
            raise ValueError(f"Z has {has} and the plan {self.n} points")

    def _kernel(self, Z: Tensor) -> KernelMatrix:
        """The kernel of Z: by a compiled loop where there is one."""
        self.check_size(Z)
        if self.kernel == "student" and self.symmetric and suits(Z, self.plan):
            kernel = self.memory if self.balanced else self.plan.new_empty(0, self.n)
            return StudentPairs(Z, self.plan, kernel, diagonal=self.diagonal)
        return self._swept(Z)

    def _swept(self, Z: Tensor) -> TiledKernel:
        """The kernel of Z by sweeps over tiles, kept beside a plan that is kept."""
        self.check_size(Z)
        return TiledKernel(Z, self) if self.P is self.plan else DenseKernel(Z, self)

    @cached_property
    def memory(self) -> Tensor:
        """Kept for the kernel, (n, n)."""
        check_fits((self.n, 2 * self.n), self.plan.dtype, self.plan.device)
        return self.plan.new_empty(self.n, self.n)


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
        P = as_plan(plan)
        whole = normalization == "sum" and P.array is not P  # in memory: to be made symmetric first
        super().__init__(P, kernel, symmetric=whole, diagonal=diagonal == "keep")
        self.symmetric = whole or (normalization == "sum" and P.symmetric)
        if diagonal == "drop" and (P.diagonal() != 0).any():
            raise ValueError(
                "the plan has mass on its diagonal; compute the affinity with diagonal='drop', or "
                "pass diagonal='keep' to count the pairs i = j in the embedding too"
            )
        self.balanced = False
        self.shifted = kernel == "gaussian"

    @property
    def constant(self) -> float:
        whole = torch.tensor(self.mass, dtype=torch.float64)
        mass = whole if self.normalization == "sum" else self.P.sums
        return super().constant - float(torch.xlogy(mass, mass).sum(dtype=torch.float64))

    def normalize(self, kernel: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        sums = kernel.sum(dim=1)
        shift = torch.zeros_like(sums) if kernel.shift is None else kernel.shift
        logs = sums.log() - shift  # (n,) log sum_j e^-C_ij
        if self.normalization == "rows":
            value = (self.P.sums * logs).sum(dtype=torch.float64)
            return Normalizer(value=float(value), left=self.P.sums / sums)
        total = torch.logsumexp(logs, dim=0)
        return Normalizer(
            value=self.mass * float(total), left=self.mass * torch.exp(-shift - total)
        )


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
        sums = self.P.sums
        gap = (sums - 1).abs()
        if gap.max() > 1e-3:
            i = int(gap.argmax())
            raise ValueError(
                f"SNEkhorn needs rows of sum 1; row {i} sums to {float(sums[i]):g}; "
                "pass drot.symmetric_entropic_affinity or drot.doubly_stochastic_affinity"
            )

    def normalize(self, kernel: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        f, products = (-kernel.sum(dim=1).log() / 2, 1) if warm is None else (warm, 0)

        def row_sums(f: Tensor) -> Tensor:
            scale = f.exp()
            return scale * (kernel @ scale)

        f, sums, more = balance("the plan of the embedding", row_sums, f, tol)
        # the concave function that f maximises: its error is of second order
        dual = (2 * f - sums).sum(dtype=torch.float64) + self.n
        scale = f.exp()
        return Normalizer(
            value=-float(dual), left=scale, right=scale, dual=f, products=products + more
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
