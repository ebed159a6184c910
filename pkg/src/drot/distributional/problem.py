"""Blocks of distributional reduction: positions for a fixed plan, a plan for fixed positions."""

from __future__ import annotations

import math
from itertools import islice
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from torch import Tensor

from .._core.algebra import EXTRA, leading, radius, ratio, total
from .._core.checks import as_count, check_choice, check_no_distances
from .._core.run import TOLERANCE
from ..costs.factored import Factored, gram
from ..costs.kernels import KERNELS, squares
from ..embeddings.descent import lbfgs, metric_of
from ..embeddings.plans import Plan
from ..embeddings.starts import random_start, spectral_start
from ..gromov.contraction import LEAST, Coupling, Fixed, Problem, Terms, hard_plan, with_rows
from ..gromov.descent import row_moves
from ..gromov.reading import as_similarity, as_weights
from ..gromov.search import end_of
from ..gromov.starts import Clusters, kmeans_labels
from ..spectral.kernel_pca import coordinates
from .loss import PrototypeLoss, kernel_structure, loss_of, value_at
from .reduction import Clustering, OutputKernel

_STEPS = 50  # of a plan, before its factors follow: mass of equal points would go round for long
_ROUNDS = 20  # plans with the factors of the kernel following
_CHANCE = 1e-3  # share of the mass that all pairs of prototypes exchange in a start
_EIGEN = {torch.float64: 1e-8, torch.float32: 1e-5}  # residual of an eigenvector
_FEW = 60  # points for each vector up to which LAPACK is faster
_N_INIT = 10  # of k-means, as spectral clustering has them
_SLACK = {torch.float64: 1e-10, torch.float32: 1e-6}  # a fall of E_L, as a share of its terms


class ProblemOptions(TypedDict, total=False):
    """What makes a problem besides its kernel, as :func:`distributional_reduction` has it."""

    n_components: int
    weights: ArrayLike | None
    clustering: Clustering


class Iterate(NamedTuple):
    """Where positions and plan are, and what E_L is there."""

    Z: Tensor  # (k, q)
    coupling: Coupling
    residual: float
    value: float  # E_L

    def report(self) -> tuple[float, Tensor]:
        """What a caller hears of it."""
        return self.residual, self.Z


class ReductionProblem:
    """E_L between C and the similarity of k positions in q dimensions, for plans of row sums w.

    A subclass is another space of positions: how similar they are (``log_kernel`` or
    ``structure``), where they begin (``initial_positions``, ``random_positions``), how they move
    (``update_positions``, until ``residual_at`` is small), and how large a map is (``size``). Of an
    embedding, k-means clusters its ``cloud``, and prototypes stand at ``centroids``.
    """

    def __init__(
        self, similarity, n_prototypes: int, *,
        n_components: int = 2, kernel: OutputKernel = "student", weights: ArrayLike | None = None,
        clustering: Clustering = "spectral",
    ):  # fmt: skip
        check_choice("clustering", clustering, Clustering)
        self.clustering = clustering
        self.kernel, self.loss = kernel, loss_of(kernel)
        C = as_similarity(similarity, "similarity", self.loss)
        cure = "of squared distances D pass drot.symmetric_entropic_affinity(D, perplexity=...)"
        check_no_distances(C, "similarity", cure)
        self.n = C.shape[0]
        self.k = as_count("n_prototypes", n_prototypes, 2, self.n)
        self.n_components = as_count("n_components", n_components, 1)
        self.w = as_weights(weights, self.n, C)
        self.terms = Terms(C, self.w, self.loss)
        self.couple, scale = self.terms.couple, self.terms.scale
        self.constant = self.terms.constant  # or it refuses what overflows
        if not self.loss.free and scale == 0:
            raise ValueError("similarity is zero everywhere; nothing holds the points together")
        info = torch.finfo(self.w.dtype)
        low = scale < max(LEAST, info.tiny / info.eps)  # descents square what E_L sums
        if low and any(bool(tile.any()) for _, tile in C.tiles()):
            raise ValueError("squares of these similarities underflow; give them in smaller units")
        if scale > 1 / LEAST:
            raise ValueError("squares of these similarities overflow; give them in larger units")
        self.tol = TOLERANCE[self.w.dtype]  # of a plan, as in semi_relaxed_gw

    # plans

    def hard_coupling(self, labels: Tensor) -> Coupling:
        return self.couple(hard_plan(labels, self.w, self.k))

    def identity_coupling(self) -> Coupling:
        """Each point its own prototype, with its own weight: dense, n x n."""
        CT = self.loss.seen(self.terms.C, self.terms.C.dense()) * self.w
        return Coupling(torch.diag(self.w), CT, self.w[:, None] * CT, self.w)

    def cluster(
        self, rng: np.random.Generator, embedded: tuple[Tensor, Coupling] | None = None
    ) -> Coupling:
        """The plan of clusters of the data, or of an embedding of all points with its coupling."""
        rng = np.random.default_rng(int(rng.integers(2**31)))
        if self.n == self.k:
            return self.hard_coupling(torch.arange(self.k, device=self.w.device))
        spectral = self.clustering == "spectral"
        if spectral and (embedded or not isinstance(self.terms.C, Factored)):
            C = self.structure(*embedded)[0] if embedded else self.terms.C.dense()
            if bool((C >= 0).all()):
                used, labels = self.w > 0, torch.zeros_like(self.w, dtype=torch.long)
                C, w = C if bool(used.all()) else C[used][:, used], self.w[used]
                weights = (C + C.T).mul_(w).mul_(w[:, None])
                labels[used] = spectral_labels(weights, min(self.k, len(w)), rng)
                return self.hard_coupling(labels)
        source = gram(self.cloud(embedded[0])) if embedded else self.terms.C
        return self.couple(Clusters(source, self.w, self.k, rng).plan("kmeans"))

    def update_plan(self, Z: Tensor, c: Coupling) -> Coupling:
        """A plan that is no worse for these positions.

        The factors of the kernel are those of the plan it starts from; they follow, for the
        better, and the plan after them.
        """
        for _ in range(_ROUNDS):
            problem, now = self.plan_problem(Z, c)
            found = end_of(row_moves(problem, now, self.tol), _STEPS)
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

    def plan_problem(self, Z: Tensor, c: Coupling) -> tuple[Problem, Fixed]:
        """E_L over plans at fixed positions and factors, and where c stands there."""
        # all that counts, as C is symmetric
        C, h2 = ((x + x.T).to(self.w) / 2 for x in self.structure(Z, c))
        problem = Problem(self.terms, C, h2)
        used = c.q > 0  # E_L does not see the others, which are of any similarity to themselves
        problem.scale = self.terms.scale + float(problem.f2[used][:, used].mean()) or 1.0
        return problem, problem.state(c.T, c.CT @ problem.h2)

    # positions

    def log_kernel(self, Z: Tensor) -> Tensor:
        """log K (k, k); no digit cancels."""
        return -KERNELS[self.kernel].cost(squares(Z, Z))

    def structure(self, Z: Tensor, c: Coupling) -> tuple[Tensor, Tensor]:
        """Cbar (k, k), and what h2 makes of it."""
        M, q = c.M.to(Z), c.q.to(Z)
        return kernel_structure(self.log_kernel(Z), M, q)

    def objective(self, Z: Tensor, c: Coupling) -> float:
        return value_at(*self.structure(Z, c), c.M, c.q, self.constant, self.loss)

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


def spectral_labels(weights: Tensor, k: int, rng: np.random.Generator) -> Tensor:
    """Spectral clustering of a graph as scikit-learn defines it, but for the eigensolver.

    scikit-learn factorises a dense graph, n^3 operations; what it looks for are the largest
    eigenvalues of a matrix, for which a Lanczos iteration takes products, n^2 each. Of few points
    LAPACK takes less time.
    """
    degree = weights.fill_diagonal_(0).sum(dim=1)
    root = torch.where(degree > 0, degree, 1).sqrt()
    weights.div_(root).div_(root[:, None])  # an eigenvalue 1 for each part of the graph
    begin = torch.from_numpy(rng.standard_normal((len(root), k + EXTRA))).to(weights)
    n, b = begin.shape
    if weights.device.type == "cpu" and n <= _FEW * b:
        vectors = torch.from_numpy(eigh(weights.numpy(), subset_by_index=(n - k, n - 1))[1])
    else:
        vectors = leading(lambda V: weights @ V, begin, k, _EIGEN[weights.dtype])[1]
    points = vectors / root[:, None]
    return kmeans_labels(points / points.abs().max(), k, rng, n_init=_N_INIT)
