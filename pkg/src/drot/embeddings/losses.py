r"""Objectives that hold a kernel between embedded points against a plan (Chapters 5, 6 and 9).

All have one shape. With :math:`C_Z` the cost between points of the embedding,

.. math:: F(Z) = \langle P, C_Z \rangle + R(C_Z), \qquad
          \frac{\partial F}{\partial C_{ij}} = P_{ij} - Q_{ij},

where :math:`R` is the logarithm of what normalises the kernel :math:`K = e^{-C_Z}` to the plan
:math:`Q`: all pairs or row by row in :class:`SNELoss`, rows and columns in :class:`SNEkhornLoss`,
each pair alone in :class:`BernoulliLoss`, of LargeVis and UMAP. Points that P holds together
attract, points that Q holds together repel.
"""

from __future__ import annotations

import math
from dataclasses import astuple
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from .._core.checks import as_points, as_positive, as_real, check_choice, check_finite, check_fits
from .._core.threads import by_size
from ..affinities.base import symmetrize
from ..affinities.rows import EntropicAffinity
from ..affinities.sinkhorn import balance
from ..costs.array import Diagonal, Nearest, Pairwise
from ..costs.kernels import STUDENT, Curve, Kernel, KernelName, as_kernel
from .descent import Evaluation
from .kernel_matrix import KernelMatrix, Normalizer, PairNormalizer, TiledKernel
from .loops import CurvePairs, StudentPairs, suits
from .plans import as_plan

PairKernel = Literal["student", "curve"]
SNENormalization = Literal["sum", "rows"]

GUARD = 1e-3  # squared distance, of a curve of spread 1
_OFF = 1e-3  # of a row sum from 1: no solver leaves as much, in float32 neither


class KernelLoss:
    """The objective of a coupling: a plan, a kernel, and how the kernel becomes a plan.

    Another coupling is a subclass with one method: ``normalize``, which turns a kernel K (what it
    may ask of that, :class:`.KernelMatrix` says) into R(C_Z) and the factors ``left`` and ``right``
    of :math:`Q_{ij} = l_i r_j K_{ij}`; and with the property ``constant``, which makes F a
    divergence, where that is not the generalised KL(P | Q). It tells ``__init__`` whether P is
    ``symmetric``, which is checked (Q is then, too), and whether the ``self_pairs`` i = j count; if
    not, the diagonals of P and K are 0. Value, forces, tiles and descent are common to all.

    Between two evaluations nothing is remembered but memory to work in: the same Z and the same
    warm start give the same bits. A plan given as a tensor is kept, not copied: do not change it in
    place afterwards. An affinity of more than 4096 points whose cost is met in tiles is never
    formed, nor is the kernel: both are computed whenever their rows are needed, in at most ten
    arrays of b x n for tiles of b rows (b is at most the cost's ``block`` and b n about 2^17, 2^25
    on a GPU) and some n-vectors.

    Attributes
    ----------
    n : int
        Points.
    P : Plan
        (n, n), with what one pass over it told; its dtype and device are the embedding's.
    mass : float
        Of the plan, to which values and residuals are in proportion.
    kernel : Kernel
        Of the embedding; by its name, one of ``KERNELS``.
    repulsion : float, or None
        Weight of the repulsion where each pair is normalised alone.
    weights : Tensor or Pairwise
        Symmetric weights, (n, n), whose Laplacian preconditions the descent.
    """

    rate = 0.1  # of Adam, in bandwidths of the kernel
    repulsion: float | None = None
    # of K, to normalise it: a pair for each entry of Q (by a PairNormalizer), row sums once, or
    # products again and again
    needs: Literal["pairs", "sums", "products"] = "products"

    def __init__(self, plan, kernel: str | Kernel, *, symmetric: bool, self_pairs: bool):
        self.kernel, self.self_pairs, self.symmetric = as_kernel(kernel), self_pairs, symmetric
        self.P = P = as_plan(plan)
        if symmetric:
            P.check_symmetric()
        self.n, self.mass = P.shape[0], P.mass
        if self.mass == 0:
            raise ValueError("the plan is zero everywhere; nothing holds the points together")
        info = torch.finfo(P.dtype)
        if not info.tiny**0.4 < self.mass < info.max**0.4:
            raise ValueError(
                f"the plan has the mass {self.mass:g}, and squares of forces leave the range of "
                f"{P.dtype}; scale it to mass n"
            )
        if not self_pairs and (P.diagonal() != 0).any():
            raise ValueError(
                "the plan has mass on its diagonal; compute the affinity with diagonal='drop', or "
                "of a symmetric one pass its plan.fill_diagonal_(0) (SNE and t-SNE can count the "
                "pairs i = j of the embedding too: pass diagonal='keep')"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n} x {self.n}, kernel={self.kernel!r})"

    def normalize(self, K: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        """The :class:`Normalizer` of the kernel K (n, n), whose rows are e^(shift - C_Z).

        ``warm`` (n,) is the dual of the evaluation before, ``tol`` what a row sum of Q may be off:
        idle where Q needs no iteration.
        """
        raise TypeError(f"{type(self).__name__} does not say how the kernel is normalised")

    @property
    def constant(self) -> float:
        """What F lacks to be the generalised KL(P | Q), in nats."""
        return self.P.entropy

    @property
    def weights(self) -> Tensor | Pairwise:
        """Symmetric weights whose Laplacian is the curvature of the attraction, (n, n)."""
        return self.P.symmetric_part()

    def evaluate(self, Z: Tensor, warm: Tensor | None = None, *, tol: float = 1e-6) -> Evaluation:
        """F and its gradient at Z (n, q): the kernel, its normalisation, the forces.

        ``tol`` bounds the row sums of Q where they are iterated on, ``warm`` starts that
        iteration; both are idle otherwise.
        """
        self.check_size(Z)
        K = self.kernel_at(Z)
        found = self.normalize(K, warm, tol)  # R, and what makes Q of K
        value, attraction, repulsion = K.forces(found)  # <P, C>, and what P and Q pull
        return Evaluation(
            value=value + found.value,
            attraction=attraction,
            repulsion=repulsion,
            dual=found.dual,
            passes=K.passes,
            products=found.products,
        )

    def kernel_at(self, Z: Tensor) -> KernelMatrix:
        """The kernel of Z (n, q): by a compiled loop where there is one."""
        P = self.P.matrix
        if P is not None and self.symmetric and isinstance(self.kernel, Curve) and suits(Z, P):
            if self.needs == "pairs":
                return CurvePairs(Z, P, self.kernel)
            if self.kernel == STUDENT:
                kept = self.memory if self.needs == "products" else Z.new_empty(0, len(Z))
                return StudentPairs(Z, P, kept, self_pairs=self.self_pairs)
        return self._tiled_kernel_at(Z)

    def _tiled_kernel_at(self, Z: Tensor) -> TiledKernel:
        known = self.kernel.flat or self.kernel.slope_is_kernel
        keeps = known and self.needs != "pairs" and self.P.matrix is not None
        return TiledKernel(
            Z, self.P, self.kernel, self.memory if keeps else None,
            self_pairs=self.self_pairs, symmetric=self.symmetric,
        )  # fmt: skip

    def latent_plan(self, Z: Tensor, *, tol: float = 1e-9) -> Tensor:
        """Q, the plan of the embedding Z (n, q): shape (n, n), of the mass of P."""
        Z = as_real(Z, "Z").to(self.P.device, self.P.dtype)
        self.check_size(Z)
        check_finite(Z, "Z")
        K = self._tiled_kernel_at(Z)
        found = self.normalize(K, None, tol)
        check_fits((self.n, self.n), Z.dtype, Z.device)
        whole = Z.new_empty(self.n, self.n)
        for rows, tile in K.tiles():
            found.rows(tile, rows, whole[rows])
        return whole

    def check_size(self, Z: Tensor) -> None:
        """Refuse positions (n, q) of other points than the plan's, or of another kind."""
        if not isinstance(Z, Tensor) or Z.dtype != self.P.dtype:
            has = str(Z.dtype) if isinstance(Z, Tensor) else type(Z).__name__
            raise TypeError(f"Z must be a tensor of {self.P.dtype}, as the plan; got {has}")
        if Z.ndim != 2 or len(Z) != self.n:
            has = f"{len(Z)} points" if Z.ndim == 2 else f"shape {tuple(Z.shape)}"
            raise ValueError(f"Z has {has} and the plan {self.n} points")

    @cached_property
    def memory(self) -> Tensor:
        """Kept for the kernel, (n, n)."""
        check_fits((self.n, 2 * self.n), self.P.dtype, self.P.device)
        return torch.empty(self.n, self.n, dtype=self.P.dtype, device=self.P.device)


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
        ``"sum"`` for symmetric SNE and t-SNE, which needs a symmetric P (an entropic affinity
        stands for :math:`(P + P^\top) / 2`); ``"rows"`` for SNE.
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

    needs = "sums"

    def __init__(
        self,
        plan,
        kernel: KernelName = "gaussian",
        *,
        normalization: SNENormalization = "sum",
        diagonal: Diagonal = "drop",
    ):
        check_choice("normalization", normalization, SNENormalization)
        check_choice("diagonal", diagonal, Diagonal)
        self.normalization, symmetric = normalization, normalization == "sum"
        if symmetric and isinstance(plan, EntropicAffinity):
            few = isinstance(plan.cost, Nearest)  # of others' neighbours: known as a whole only
            plan = symmetrize(plan) if few else plan.symmetrized()
        super().__init__(plan, kernel, symmetric=symmetric, self_pairs=diagonal == "keep")

    @property
    def constant(self) -> float:
        whole = torch.tensor(self.mass, dtype=torch.float64)
        mass = whole if self.normalization == "sum" else self.P.sums
        return super().constant - float(torch.xlogy(mass, mass).sum(dtype=torch.float64))

    def normalize(self, K: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        sums = K.row_sums()
        logs = sums.log() - K.shift  # (n,) log sum_j e^-C_ij
        if self.normalization == "rows":
            value = (self.P.sums * logs).sum(dtype=torch.float64)
            return Normalizer(value=float(value), left=self.P.sums / sums)
        log_total = torch.logsumexp(logs, dim=0)
        left = self.mass * torch.exp(-K.shift - log_total)
        return Normalizer(value=self.mass * float(log_total), left=left)


class SNEkhornLoss(KernelLoss):
    r"""Objective of SNEkhorn and t-SNEkhorn: divergence of doubly stochastic plans.

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

    def __init__(self, plan, kernel: KernelName = "gaussian"):
        P = as_plan(plan)
        # where these are not 1, drot.symmetrize would not help
        columns = P.sums if P.matrix is None else P.matrix.sum(dim=0)
        for line, sums in (("row", P.sums), ("column", columns)):
            i = int((sums - 1).abs().argmax())
            if abs(sums[i] - 1) > _OFF:
                raise ValueError(
                    f"plan must be symmetric with rows of sum 1; {line} {i} sums to {sums[i]:g}; "
                    "pass drot.symmetric_entropic_affinity or drot.doubly_stochastic_affinity"
                )
        super().__init__(P, kernel, symmetric=True, self_pairs=True)

    def normalize(self, K: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        f, products = (-K.row_sums().log() / 2, 1) if warm is None else (warm, 0)

        def log_sums(f: Tensor) -> tuple[Tensor]:
            scale = f.exp()
            return ((scale * (K @ scale)).log(),)

        f, sums, more = balance(log_sums, f, tol)
        # the concave function that f maximises: its error is of second order
        dual = float((2 * f - sums).sum(dtype=torch.float64)) + self.n
        scale, products = f.exp(), products + more
        return Normalizer(value=-dual, left=scale, right=scale, dual=f, products=products)


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
        C_{ij} = \log a + b \log(d_{ij}^2 + \delta) \;\text{(curve)}, \qquad
        d_{ij} = \| z_i - z_j \| .

    ``"student"`` is the kernel of the papers' derivation, :math:`Q = 1 / (2 + d^2)`: no pair is
    more likely joined than not. ``"curve"`` is the software's, :math:`Q = 1 / (1 + a d^{2 b})`
    (LargeVis has a = b = 1). Its odds are infinite at d = 0, where F would be infinite for any
    pair with :math:`P < \gamma`, with no gradient; the guard :math:`\delta = 0.001`, a squared
    distance, makes F smooth and finite everywhere. It is for a curve of spread 1, and enters
    attraction and repulsion alike, where umap-learn adds it to the repulsion alone.

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
    A descent is preconditioned with the Laplacian of ``weights``:
    :math:`(P + P^\top) / 2`, scaled so that they add up to :math:`\gamma b / \delta` times the
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

    rate = 1.0  # of wider maps
    needs = "pairs"
    kernel: Curve
    repulsion: float

    def __init__(
        self,
        plan,
        kernel: PairKernel = "student",
        *,
        a: float = 1.0,
        b: float = 1.0,
        repulsion: float = 1.0,
    ):
        check_choice("kernel", kernel, PairKernel)
        P, self.repulsion = as_plan(plan), as_positive("repulsion", repulsion)
        curve = Curve(as_positive("a", a), as_positive("b", b), GUARD)
        at = curve if kernel == "curve" else STUDENT
        super().__init__(P, at, symmetric=P.symmetric, self_pairs=False)
        # its inverse times b / guard is a number too
        if math.log(at.a) + at.b * math.log(at.guard) < 0.9 * math.log(torch.finfo(P.dtype).tiny):
            raise ValueError(
                f"the curve's a {GUARD:g}^b is below the numbers of {P.dtype} for a={a:g} and "
                f"b={b:g}; take a smaller b, or a map in other units"
            )
        if P.largest > self.repulsion:
            rows, p = next((rows, p) for rows, p in P.tiles() if p.max() > self.repulsion)
            i, j = (p > self.repulsion).nonzero()[0].tolist()
            raise ValueError(
                f"the plan has {p[i, j]:g} at row {rows.start + i}, column {j}, above "
                f"repulsion={self.repulsion:g}: nothing would keep this pair apart; pass "
                "probabilities and a repulsion of at least 1"
            )

    @property
    def weights(self) -> Tensor | Pairwise:
        """(P + P^T) / 2, scaled to the total curvature of the repulsion of coinciding points."""
        a, b, guard = astuple(self.kernel)
        repulsion = self.repulsion * self.n * (self.n - 1) / (1 + a * guard**b)
        return self.P.symmetric_part(repulsion / self.mass * b / guard)

    @property
    def constant(self) -> float:
        """What F lacks to be gamma times the divergence KL(P / gamma | Q) of the edges."""
        total = 0.0
        for _, tile in self.P.tiles():
            p = tile.double() / self.repulsion
            total += float((torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p)).sum())
        return self.repulsion * total

    def normalize(self, K: KernelMatrix, warm: Tensor | None, tol: float) -> Normalizer:
        gamma = torch.tensor(self.repulsion, dtype=torch.float64)
        return PairNormalizer(value=0.0, left=gamma)

    def latent_plan(self, Z: Tensor, *, tol: float = 1e-9) -> Tensor:
        """Q, the probabilities of the edges of the embedding Z (n, q): shape (n, n)."""
        return super().latent_plan(Z) / self.repulsion


def as_objective(objective) -> KernelLoss:
    """Refuse what is no loss, such as the plan that one is made of."""
    if not isinstance(objective, KernelLoss):
        raise TypeError(
            f"objective is of type {type(objective).__name__}, and must be a loss, such as "
            "drot.SNELoss(plan); of a plan drot.tsne, drot.umap and others make their own"
        )
    return objective


@by_size
def attraction_repulsion(objective: KernelLoss, Z, *, tol: float = 1e-9) -> tuple[Tensor, Tensor]:
    r"""Split the forces on the points of an embedding into attraction and repulsion.

    .. math::

        - \frac{\partial F}{\partial z_i} =
        \underbrace{- \frac{\partial}{\partial z_i} \langle P, C_Z \rangle}_{\text{attraction}}
        \; \underbrace{- \frac{\partial}{\partial z_i} R(C_Z)}_{\text{repulsion}} .

    Attraction sees the data, through P. Repulsion sees the embedding alone: R is the logarithm
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
    objective, tol = as_objective(objective), as_positive("tol", tol)
    Z = as_points(Z, "Z").to(objective.P.device, objective.P.dtype)
    found = objective.evaluate(Z, tol=tol)
    return -found.attraction, found.repulsion
