"""Blocks of distributional reduction: positions for a fixed plan, a plan for fixed positions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from .._core.checks import check_choice, check_count
from .._core.run import OnFailure, settle
from ..costs.array import Pairwise
from ..costs.factored import Factored, gram
from ..embeddings.descent import lbfgs, metric_of, radius
from ..embeddings.losses import Evaluation
from ..embeddings.starts import random_start, spectral_start
from ..gromov.contraction import (
    Contraction,
    Loss,
    alone,
    as_structure,
    as_weights,
    hard_plan,
    total,
)
from ..gromov.descent import Problem
from ..gromov.semirelaxed import SemiRelaxedGW, Watch, _Run
from ..gromov.starts import clusters, spectral_labels
from .loss import Normalization, PrototypeLoss, factors, log_kernel

OutputKernel = Literal["student", "gaussian", "gram"]
Clustering = Literal["spectral", "kmeans"]

_GAP = {torch.float64: 1e-9, torch.float32: 1e-4}  # of a plan, as in semi_relaxed_gw
_STEPS = {torch.float64: 2000, torch.float32: 200}  # of a plan; in float32 rounding goes round
_ROUNDS = 20  # plans with the factors of the kernel following
_INNER = 200  # iterations of an embedding between two plans
_SLACK = {torch.float64: 1e-13, torch.float32: 1e-6}  # rounding of E_L, as a share of its terms


@dataclass(frozen=True, kw_only=True, repr=False)
class DistributionalReduction(SemiRelaxedGW):
    """A few weighted prototypes in the plane that stand for all points, and the plan to them."""

    Z: Tensor  # (k, q) positions
    structure: Tensor  # (k, k) Cbar, the similarity of the prototypes, in the unit of C

    @property
    def n_used(self) -> int:
        """Prototypes with a positive weight."""
        return int((self.weights > 0).sum())

    @property
    def effective_number(self) -> float:
        """Perplexity of the weights: as many equal weights have the same entropy."""
        q = self.weights.double()
        return math.exp(-float(torch.xlogy(q, q).sum()))

    def medoids(self, similarity) -> Tensor:
        r"""The point that is most similar to each prototype's own, (k,).

        :math:`\arg \max_i (C T)_{ik}`, and -1 for a prototype without weight.
        """
        cost = as_structure(similarity, "similarity", "square")
        n = self.plan.shape[0]
        if cost.shape[0] != n:
            raise ValueError(f"similarity compares {cost.shape[0]} points and the plan has {n}")
        T = self.plan.to(cost.device, cost.dtype)
        best = alone(cost, T[:, 0]).left(T).argmax(dim=0)
        return torch.where(self.weights > 0, best, -1)

    def __repr__(self) -> str:
        n, k = self.plan.shape
        return (
            f"{type(self).__name__}({n} points, {self.n_used} of {k} prototypes, "
            f"objective={self.objective:.6g}, residual={self.residual:.1e}, n_iter={self.n_iter})"
        )


class Coupling(NamedTuple):
    """A plan and what the positions see of it."""

    T: Tensor  # (n, k)
    M: Tensor  # (k, k) T^T C T
    q: Tensor  # (k,) column sums


class Reduction:
    """E_L between C and the similarity of k positions, with row sums w."""

    def __init__(
        self,
        cost: Pairwise,
        w: Tensor,
        kernel: OutputKernel,
        normalization: Normalization,
        loss: Loss,
    ):
        self.base = alone(cost, w, loss)
        self.cost, self.w, self.loss, self.n = cost, w, loss, len(w)
        self.kernel, self.normalization = kernel, normalization
        self.constant = self.base.constant(w)
        self.diagonal, self.size = self.base.diagonal(), self.base.scale(w)
        self.gap = _GAP[w.dtype]
        self.products = 0.0

    def couple(self, T: Tensor) -> Coupling:
        self.products += 1
        return Coupling(T, self.base.between(T, self.base.left(T)), T.sum(dim=0))

    def identity(self) -> Coupling:
        """Each point its own prototype, with its own weight: dense, n x n."""
        w = self.w
        return Coupling(torch.diag(w), w[:, None] * self.base.dense() * w, w)

    def log_kernel(self, Z: Tensor) -> Tensor:
        assert self.kernel != "gram"  # which has entries of both signs
        return log_kernel(Z, self.kernel)

    def structure(self, Z: Tensor, c: Coupling) -> tuple[Tensor, Tensor]:
        """Cbar (k, k), and what h2 makes of it, without the underflow of a kernel's logarithm."""
        if self.kernel == "gram":
            C = Z @ Z.T
            return C, 2 * C
        log = self.log_kernel(Z)
        u, v = factors(log, c.M, c.q, self.normalization, self.loss)
        log = log + (u[:, None] + v)  # symmetric to the last bit if u is v
        C = log.exp()
        return C, (log if self.loss == "kl" else 2 * C)

    def objective(self, Z: Tensor, c: Coupling) -> float:
        C, h2 = self.structure(Z, c)
        return self.constant + float(c.q @ (self.base.f2_of(C) @ c.q)) - total(c.M * h2)

    # positions

    def place(self, c: Coupling, Z: Tensor, tol: float, max_iter: int) -> Tensor:
        """Better positions for a plan; the best ones for inner products."""
        if self.kernel == "gram":
            return self._eigen(c, Z)
        loss, Z = self._loss(c), Z - Z.mean(dim=0)

        def evaluate(Z: Tensor, warm: Tensor | None) -> Evaluation:
            return loss.evaluate(Z, warm=warm, tol=tol / 1000)

        for step in islice(lbfgs(evaluate, Z, metric_of(loss.attraction), 10, 0.1), max_iter + 1):
            if step.found.residual(radius(step.Z), loss.mass) <= tol:
                break
        return step.Z - step.Z.mean(dim=0)

    def _loss(self, c: Coupling) -> PrototypeLoss:
        assert self.kernel != "gram"  # whose best positions are known
        return PrototypeLoss(c.M, c.q, self.constant, self.kernel, self.normalization, self.loss)

    def _eigen(self, c: Coupling, Z: Tensor) -> Tensor:
        """diag(q)^1/2 Z Z^T diag(q)^1/2 is the best positive part of that rank."""
        root = c.q.sqrt()
        inverse = torch.where(root > 0, 1 / torch.where(root > 0, root, 1), 0)
        values, vectors = torch.linalg.eigh(inverse[:, None] * c.M * inverse)
        values, vectors = values.flip(0), vectors.flip(1)
        some = min(Z.shape[1], len(values))
        best = torch.zeros_like(Z)
        best[:, :some] = vectors[:, :some] * values[:some].clamp_min(0).sqrt()
        largest = best.abs().argmax(dim=0)  # a sign that does not depend on the solver
        best = best * torch.where(best.gather(0, largest[None]) < 0, -1, 1)
        return torch.where(root[:, None] > 0, inverse[:, None] * best, Z)

    def slope(self, c: Coupling, Z: Tensor) -> float:
        """The length of dE/dZ, in units of its part that pulls (:meth:`Evaluation.residual`)."""
        if self.kernel != "gram":
            loss = self._loss(c)
            return loss.evaluate(Z).residual(radius(Z - Z.mean(dim=0)), loss.mass)
        pull = c.M @ Z
        off = (c.q[:, None] * c.q * (Z @ Z.T)) @ Z - pull
        return float(off.norm()) / (float(pull.norm()) or 1.0)

    def start(self, c: Coupling, n_components: int, rng: np.random.Generator) -> Tensor:
        """Positions to begin with: slow eigenvectors of M, or chance where it is too small."""
        k = len(c.q)
        if self.kernel == "gram":
            return self._eigen(c, c.q.new_zeros(k, n_components))
        if k > n_components + 2 and bool((c.q > 0).all()):
            seed = int(rng.integers(2**31))
            return spectral_start(self._loss(c).plan, n_components=n_components, random_state=seed)
        return self.chance(k, n_components, rng)

    def chance(self, k: int, n_components: int, rng: np.random.Generator) -> Tensor:
        """Standard normal positions."""
        return random_start(
            k,
            n_components=n_components,
            random_state=int(rng.integers(2**31)),
            dtype=self.w.dtype,
            device=self.w.device,
        )

    def centres(self, c: Coupling, Z: Tensor) -> Tensor:
        """Means of positions of points (n, q) by prototype, (k, q)."""
        mass = c.q[:, None]
        return torch.where(mass > 0, c.T.T @ Z / torch.where(mass > 0, mass, 1), 0)

    # plan

    def transport(self, Z: Tensor, c: Coupling) -> tuple[Coupling, float]:
        """A plan that is no worse for these positions, and its Frank-Wolfe gap.

        The factors of the kernel are those of the plan it starts from; they follow, for the
        better, and the plan after them.
        """
        gap = math.inf
        for _ in range(_ROUNDS):
            problem = self._problem(Z, c)
            watch = Watch(_STEPS[self.w.dtype], None)
            run = _Run(problem, "conditional_gradient", True, None, self.gap, watch)
            state, gap, _ = run.lowest(iter([c.T]))
            before, new = problem.state(c.T).value, problem.state(state.T).value
            self.products += problem.products
            if not new < before - _SLACK[self.w.dtype] * problem.scale:
                return c, _gap(problem, c.T)
            c = self.couple(state.T)
            if self.kernel == "gram" or self.normalization == "none":
                break
            gap = self.plan_gap(Z, c)
            if gap <= self.gap:
                break
        return c, gap

    def plan_gap(self, Z: Tensor, c: Coupling) -> float:
        """Frank-Wolfe gap of a plan, at its own factors."""
        return _gap(self._problem(Z, c), c.T)

    def _problem(self, Z: Tensor, c: Coupling) -> Problem:
        C, h2 = self.structure(Z, c)
        terms = Contraction(self.cost, (C + C.T) / 2, self.loss)
        f2 = self.base.f2_of(C)
        # with a symmetric C, the symmetric parts are all that counts
        terms.f2, terms.h2 = (f2 + f2.T) / 2, (h2 + h2.T) / 2
        problem = Problem(terms, self.w, self.constant)
        problem._diagonal = self.diagonal
        used = c.q > 0  # E_L does not see the others, which are of any similarity to themselves
        problem.scale = self.size + float(terms.f2[used][:, used].mean()) or 1.0
        return problem

    def hard(self, labels: Tensor, k: int) -> Coupling:
        return self.couple(hard_plan(labels, self.w, k))

    def result(
        self,
        Z: Tensor,
        c: Coupling,
        residual: float,
        tol: float,
        trace: Sequence[float],
        values: Sequence[float],
        where: str,
        on_failure: OnFailure,
    ) -> DistributionalReduction:
        n_iter = (len(trace) - 1) // 2
        return DistributionalReduction(
            Z=Z,
            plan=c.T,
            structure=self.structure(Z, c)[0],
            objective=trace[-1],
            residual=residual,
            n_iter=n_iter,
            converged=settle(where, residual, tol, n_iter, on_failure),
            trace=tuple(trace),
            values=tuple(values),
            products=self.products,
        )


def _gap(problem: Problem, T: Tensor) -> float:
    state = problem.state(T)
    g = problem.half_gradient(state)
    return problem.gap(state, g, g.min(dim=1).values)


class Run:
    """Positions and plan in turn, from one start after another."""

    def __init__(self, problem: Reduction, tol: float, max_iter: int, callback=None):
        self.problem, self.tol, self.max_iter, self.callback = problem, tol, max_iter, callback
        self.stopped, self._count = False, 0

    def descend(self, Z: Tensor, c: Coupling) -> Descent:
        """Go down until neither positions nor plan have a slope, or nothing moves."""
        problem, residual = self.problem, math.inf
        trace = [problem.objective(Z, c)]
        try:
            while True:
                last = trace[-1]
                new = problem.place(c, Z, self.tol, _INNER)
                value = problem.objective(new, c)
                if value <= last:  # rounding aside, always
                    Z, last = new, value
                trace.append(last)
                moved, gap = problem.transport(Z, c)
                value = problem.objective(Z, moved)
                if value <= last:
                    c, last = moved, value
                trace.append(last)
                residual = max(problem.slope(c, Z), gap)
                if self.callback is not None and self.callback(self._count, residual, Z):
                    self.stopped = True
                self._count += 1
                stalled = not trace[-1] < trace[-3]
                full = len(trace) > 2 * self.max_iter
                if residual <= self.tol or stalled or self.stopped or full:
                    break
        except KeyboardInterrupt:
            self.interrupted()
        return Descent(Z, c, residual, trace)

    def interrupted(self) -> None:
        """No further start; what there is counts."""
        self.stopped = True
        warnings.warn(
            f"distributional reduction: interrupted after {self._count} rounds; the result is "
            "what they gave",
            RuntimeWarning,
            stacklevel=4,
        )


class Descent(NamedTuple):
    """Where positions and plan ended."""

    Z: Tensor
    coupling: Coupling
    residual: float
    trace: list[float]


def read_problem(
    similarity,
    n_prototypes: int,
    n_components: int,
    kernel: OutputKernel,
    normalization: Normalization | None,
    loss: Loss | None,
    weights,
) -> tuple[Reduction, int]:
    """Check what all reductions take, and fill in what goes with a kernel."""
    check_choice("kernel", kernel, get_args(OutputKernel))
    if loss is None:
        loss = "square" if kernel == "gram" else "kl"
    if normalization is None:
        normalization = "none" if kernel == "gram" else "sum"
    check_choice("loss", loss, get_args(Loss))
    check_choice("normalization", normalization, get_args(Normalization))
    if kernel == "gram" and (loss, normalization) != ("square", "none"):
        raise ValueError(
            "kernel='gram' has entries of both signs: it goes with loss='square' and "
            f"normalization='none', not {loss!r} and {normalization!r}"
        )
    if loss == "square" and normalization not in ("sum", "none"):
        raise ValueError(
            f"normalization={normalization!r} goes with loss='kl'; with 'square' pass 'sum', one "
            "factor for all pairs, or 'none'"
        )
    cost = as_structure(getattr(similarity, "plan", similarity), "similarity", loss)
    k = check_count("n_prototypes", n_prototypes, 2, cost.shape[0])
    check_count("n_components", n_components, 1)
    w = as_weights(weights, cost.shape[0], cost, "weights")
    return Reduction(cost, w, kernel, normalization, loss), k


def cluster(
    problem: Reduction, c: Coupling | None, Z: Tensor | None, how: Clustering, k: int, seed: int
) -> Tensor:
    """Labels (n,) below k: of the data where Z is None, else of the points of an embedding."""
    check_choice("clustering", how, get_args(Clustering))
    rng = np.random.default_rng(seed)
    if problem.n == k:
        return torch.arange(k, device=problem.w.device)
    if how == "spectral" and not (Z is None and isinstance(problem.cost, Factored)):
        C = problem.cost.dense() if Z is None or c is None else problem.structure(Z, c)[0]
        if bool((C >= 0).all()):
            return spectral_labels((C + C.T).mul_(problem.w).mul_(problem.w[:, None]), k, rng)
    return clusters(problem.cost if Z is None else gram(Z), problem.w, k, "kmeans", rng)
