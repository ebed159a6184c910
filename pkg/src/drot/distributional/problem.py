"""Blocks of distributional reduction: positions for a fixed plan, a plan for fixed positions."""

from __future__ import annotations

import math
from itertools import islice
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.algebra import radius, ratio, total
from .._core.checks import as_count
from .._core.run import TOLERANCE
from ..costs.factored import Factored, gram
from ..costs.kernels import KERNELS, squares
from ..embeddings.descent import lbfgs, metric_of
from ..embeddings.plans import Plan
from ..embeddings.starts import random_start, spectral_start
from ..gromov.contraction import LEAST, Contraction, Coupling, Problem, State, hard_plan, with_rows
from ..gromov.descent import row_moves
from ..gromov.reading import as_cost, as_weights, check_similarity
from ..gromov.search import end_of
from ..gromov.starts import Clusters, spectral_labels
from ..spectral.kernel_pca import coordinates
from .loss import PrototypeLoss, kernel_structure, loss_of, value_at
from .reduction import Clustering, OutputKernel

_STEPS = 50  # of a plan, before its factors follow: mass of equal points would go round for long
_ROUNDS = 20  # plans with the factors of the kernel following
_CHANCE = 1e-3  # share of the mass that all pairs of prototypes exchange in a start
_SLACK = {torch.float64: 1e-10, torch.float32: 1e-6}  # a fall of E_L, as a share of its terms


class ProblemOptions(TypedDict, total=False):
    """What all methods take by name of the problem, as :func:`distributional_reduction` has it."""

    n_components: int
    weights: ArrayLike | None


class Iterate(NamedTuple):
    """Where positions and plan are, and what E_L is there."""

    Z: Tensor  # (k, q)
    coupling: Coupling
    residual: float
    value: float  # E_L


class ReductionProblem:
    """E_L between C and the similarity of k positions in q dimensions, for plans of row sums w.

    A subclass is another space of positions: how similar they are (``log_kernel`` or
    ``structure``), where they begin (``initial_positions``, ``random_positions``), and how they
    move (``update_positions``, until ``residual_at`` is small).
    """

    def __init__(
        self,
        similarity,
        n_prototypes: int,
        *,
        n_components: int = 2,
        kernel: OutputKernel = "student",
        weights: ArrayLike | None = None,
    ):
        self.kernel, self.loss = kernel, loss_of(kernel)
        self.cost = as_cost(similarity, "similarity", self.loss)
        cure = "of squared distances D pass drot.symmetric_entropic_affinity(D, perplexity=...)"
        check_similarity(self.cost, "similarity", cure)
        self.n = self.cost.shape[0]
        self.k = as_count("n_prototypes", n_prototypes, 2, self.n)
        self.n_components = as_count("n_components", n_components, 1)
        self.w = as_weights(weights, self.n, self.cost, "weights")
        self.terms = Contraction(self.cost, None, self.loss)
        self.couple = self.terms.couple
        self.constant, self.diagonal = self.terms.constant(self.w), self.cost.diagonal()
        self.data_scale = self.terms.scale(self.w, self.constant)
        if not self.loss.free and self.data_scale == 0:
            raise ValueError("similarity is zero everywhere; nothing holds the points together")
        info = torch.finfo(self.w.dtype)
        low = self.data_scale < max(LEAST, info.tiny / info.eps)  # descents square what E_L sums
        if low and any(bool(tile.any()) for _, tile in self.cost.tiles()):
            raise ValueError("squares of these similarities underflow; give them in smaller units")
        if self.data_scale > 1 / LEAST:
            raise ValueError("squares of these similarities overflow; give them in larger units")
        self.tol = TOLERANCE[self.w.dtype]  # of a plan, as in semi_relaxed_gw
        self._last: tuple = (None, None)  # positions, plan, and what was made of them

    # plans

    def hard_coupling(self, labels: Tensor) -> Coupling:
        return self.couple(hard_plan(labels, self.w, self.k))

    def identity_coupling(self) -> Coupling:
        """Each point its own prototype, with its own weight: dense, n x n."""
        CT = self.terms.dense() * self.w
        return Coupling(torch.diag(self.w), CT, self.w[:, None] * CT, self.w)

    def cluster(
        self, how: Clustering, rng: np.random.Generator, embedded: Iterate | None = None
    ) -> Coupling:
        """The plan of clusters of the data, or of the points of an embedding."""
        rng = np.random.default_rng(int(rng.integers(2**31)))
        if self.n == self.k:
            return self.hard_coupling(torch.arange(self.k, device=self.w.device))
        if how == "spectral" and (embedded or not isinstance(self.cost, Factored)):
            C = self.structure(embedded.Z, embedded.coupling)[0] if embedded else self.cost.dense()
            if bool((C >= 0).all()):
                used, labels = self.w > 0, torch.zeros_like(self.w, dtype=torch.long)
                C, w = C if bool(used.all()) else C[used][:, used], self.w[used]
                weights = (C + C.T).mul_(w).mul_(w[:, None])
                labels[used] = spectral_labels(weights, min(self.k, len(w)), rng)
                return self.hard_coupling(labels)
        source = gram(self.cloud(embedded.Z)) if embedded else self.cost
        return self.couple(Clusters(source, self.w, self.k, rng).plan("kmeans"))

    def update_plan(self, Z: Tensor, c: Coupling) -> Coupling:
        """A plan that is no worse for these positions.

        The factors of the kernel are those of the plan it starts from; they follow, for the
        better, and the plan after them.
        """
        for _ in range(_ROUNDS):
            problem, now = self.plan_problem(Z, c)
            found = end_of(row_moves(problem, now, self.tol), _STEPS)
            self.terms.products += problem.terms.products
            if not found.value < now.value - _SLACK[self.w.dtype] * problem.scale:
                break
            c = self.couple(with_rows(found.T, self.w))
            if self.plan_gap(Z, c) <= self.tol:
                break
        return c

    def plan_gap(self, Z: Tensor, c: Coupling) -> float:
        """Frank-Wolfe gap of a plan, at its own factors."""
        problem, state = self.plan_problem(Z, c)
        return problem.gap(state)

    def plan_problem(self, Z: Tensor, c: Coupling) -> tuple[Problem, State]:
        """E_L over plans at fixed positions and factors, and where c stands there."""
        # all that counts, as C is symmetric
        C, h2 = ((x + x.T).to(self.w) / 2 for x in self.structure_at(Z, c))
        terms = Contraction(self.cost, C, self.loss, h2)
        used = c.q > 0  # E_L does not see the others, which are of any similarity to themselves
        scale = self.data_scale + float(terms.f2[used][:, used].mean()) or 1.0
        problem = Problem(
            terms, self.w, constant=self.constant, scale=scale, diagonal=self.diagonal
        )
        return problem, problem.state(c.T, c.CT @ h2)

    # positions

    def log_kernel(self, Z: Tensor) -> Tensor:
        """log K (k, k); no digit cancels."""
        return -KERNELS[self.kernel].cost(squares(Z, Z))

    def structure(self, Z: Tensor, c: Coupling) -> tuple[Tensor, Tensor]:
        """Cbar (k, k), and what h2 makes of it."""
        M, q = c.M.to(Z), c.q.to(Z)
        return kernel_structure(self.log_kernel(Z), M, q)

    def structure_at(self, Z: Tensor, c: Coupling) -> tuple[Tensor, Tensor]:
        """The same, kept for the last Z and c: the very objects, which nobody changes in place."""
        if not (self._last[0] is Z and self._last[1] is c):
            self._last = Z, c, self.structure(Z, c)
        return self._last[2]

    def objective(self, Z: Tensor, c: Coupling) -> float:
        return value_at(*self.structure_at(Z, c), c.M, c.q, self.constant, self.loss)

    def position_loss(self, c: Coupling) -> PrototypeLoss:
        """E_L as a function of the positions alone."""
        return PrototypeLoss(c, self.constant, self.kernel)

    def update_positions(self, Z: Tensor, c: Coupling, tol: float, max_iter: int) -> Tensor:
        """Better positions for a plan, by L-BFGS."""
        loss = self.position_loss(c)
        steps = lbfgs(loss.evaluate, _centred(Z), metric_of(loss.weights))
        for step in islice(steps, max_iter + 1):
            if step.found.residual(radius(step.Z), loss.mass) <= tol:
                break
        return _centred(step.Z)

    def residual_at(self, Z: Tensor, c: Coupling) -> float:
        """The length of dE/dZ, in units of its part that pulls (:meth:`Evaluation.residual`)."""
        loss = self.position_loss(c)
        return loss.evaluate(Z).residual(self.size(Z), loss.mass)

    def size(self, Z: Tensor) -> float:
        """The radius of the map, in bandwidths of the kernel."""
        return radius(_centred(Z))

    def initial_positions(self, c: Coupling, rng: np.random.Generator) -> Tensor:
        """Positions to begin with: slow eigenvectors of M, or chance where it is too small."""
        k, q = len(c.q), self.n_components
        if not (k > q + 2 and bool((c.q > 0).all())):
            return self.random_positions(k, rng)
        seed = int(rng.integers(2**31))
        chance = _CHANCE * total(c.M) * torch.outer(c.q, c.q)  # clusters may exchange next to none
        own = Plan(c.M + chance, symmetric=True)
        return spectral_start(own, n_components=q, random_state=seed)

    def random_positions(self, k: int, rng: np.random.Generator) -> Tensor:
        """Standard normal positions."""
        seed = int(rng.integers(2**31))
        return random_start(k, n_components=self.n_components, random_state=seed).to(self.w)

    def cloud(self, Z: Tensor) -> Tensor:
        """Points whose straight distances tell who is near, for k-means."""
        return Z

    def centroids(self, Z: Tensor, c: Coupling) -> Tensor:
        """Means of positions of points (n, q) by prototype, (k, q)."""
        return ratio(c.T.T @ Z, c.q[:, None])

    def read_positions(self, Z: Tensor) -> Tensor:
        """Positions of an earlier result."""
        if Z.shape[1] != self.n_components:
            raise ValueError(
                f"init has positions in {Z.shape[1]} dimensions and n_components="
                f"{self.n_components}; make them equal"
            )
        return Z.to(self.w)


class InnerProductProblem(ReductionProblem):
    """Cbar = Z Z^T: the best positions for a plan are known."""

    def structure(self, Z: Tensor, c: Coupling) -> tuple[Tensor, Tensor]:
        C = Z @ Z.T
        return C, self.loss.h2(C)

    def update_positions(self, Z: Tensor, c: Coupling, tol: float, max_iter: int) -> Tensor:
        """The best of that rank for diag(q)^1/2 Z Z^T diag(q)^1/2: its largest eigenvalues."""
        used = c.q > 0
        q, M = c.q[used], c.M[used][:, used]
        values, vectors = torch.linalg.eigh(M / q.sqrt() / q.sqrt()[:, None])
        best = coordinates(values, vectors, q, self.n_components).Z
        Z = Z.masked_fill(used[:, None], 0)
        Z[used, : best.shape[1]] = best
        return Z

    def residual_at(self, Z: Tensor, c: Coupling) -> float:
        Z, M, q = Z.double(), c.M.double(), c.q.double()  # cubes of Z are in range
        pull = M @ Z
        off = (q[:, None] * q * (Z @ Z.T)) @ Z - pull
        return float(off.norm()) / (float(pull.norm()) or 1.0)

    def size(self, Z: Tensor) -> float:
        """There is no bandwidth, and from all places the best positions are found."""
        return math.inf

    def initial_positions(self, c: Coupling, rng: np.random.Generator) -> Tensor:
        zero = c.q.new_zeros(len(c.q), self.n_components)
        return self.update_positions(zero, c, 0.0, 1)


def make_problem(
    similarity, n_prototypes: int, *, kernel: OutputKernel = "student",
    **options: Unpack[ProblemOptions],
) -> ReductionProblem:  # fmt: skip
    """The problem for a kernel or for inner products."""
    gram = isinstance(kernel, str) and kernel == "gram"  # an array compares entry by entry
    kind = InnerProductProblem if gram else ReductionProblem  # which refuse others
    return kind(similarity, n_prototypes, kernel=kernel, **options)


def _centred(Z: Tensor) -> Tensor:
    return Z - Z.mean(dim=0)
