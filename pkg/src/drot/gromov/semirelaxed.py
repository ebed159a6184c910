"""Semi-relaxed Gromov-Wasserstein: the second marginal is learned (Chapter 10)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from .._core.checks import (
    Seed,
    as_real,
    as_rng,
    check_choice,
    check_count,
    check_finite,
    check_positive,
)
from .._core.run import OnFailure, read_limits, settle
from .._core.saving import read, unpack, write
from .contraction import Loss, as_weights, contraction, with_rows
from .descent import Problem, State, conditional_gradient, mirror_descent, row_moves
from .starts import Init, starts

Solver = Literal["conditional_gradient", "mirror_descent"]
Callback = Callable[[int, float, Tensor], bool | None]

_SOFT = 0.1  # a mirror descent cannot leave a plan's zeros: this share of it starts uniform
_ROUGH = 1e-5  # gap at which a start has shown where it leads
SHORT = 0.02  # steps that gain less of what the gap promised are left to the row moves


@dataclass(frozen=True, kw_only=True, repr=False)
class SemiRelaxedGW:
    """A plan whose row sums are given and whose column sums are learned."""

    plan: Tensor  # (n, k) T, of total mass 1
    objective: float  # E_L(T)
    residual: float  # Frank-Wolfe gap over the scale of E_L: what `tol` bounded
    n_iter: int  # of the best start
    converged: bool
    trace: tuple[float, ...]  # E_L at the best start and after each of its iterations
    values: tuple[float, ...]  # E_L reached from each start
    products: float  # products of C with an (n, k) matrix, all starts together

    @property
    def weights(self) -> Tensor:
        """The learned weights, (k,), the column sums of the plan."""
        return self.plan.sum(dim=0)

    @property
    def labels(self) -> Tensor:
        """Where most of each point's mass goes, (n,)."""
        return self.plan.argmax(dim=1)

    @property
    def n_starts(self) -> int:
        """How many starts were tried."""
        return len(self.values)

    def save(self, path: str | os.PathLike) -> None:
        """Write all fields to an ``.npz`` file, which appears whole or not at all."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        write(path, type(self).__name__, values)

    def __repr__(self) -> str:
        n, k = self.plan.shape
        return (
            f"{type(self).__name__}({n} x {k}, objective={self.objective:.6g}, "
            f"residual={self.residual:.1e}, n_iter={self.n_iter}, n_starts={self.n_starts})"
        )


def load_semi_relaxed_gw(path: str | os.PathLike) -> SemiRelaxedGW:
    """Read what ``SemiRelaxedGW.save`` wrote; tensors come back on the CPU.

    Source: book ``sec-results``.

    Parameters
    ----------
    path : path
        An ``.npz`` file, read without pickle.

    Returns
    -------
    SemiRelaxedGW
        Of the class that was saved, a barycentre too; as ``init`` it resumes the run.

    Raises
    ------
    ValueError
        If the file does not hold such a result.

    Examples
    --------
    >>> import tempfile, torch
    >>> found = semi_relaxed_gw(torch.eye(3).double(), torch.eye(2).double())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.save(folder + "/plan.npz")
    ...     back = load_semi_relaxed_gw(folder + "/plan.npz")
    >>> torch.equal(back.plan, found.plan) and back.trace == found.trace
    True
    """
    return read(path, "a semi-relaxed plan", _result)


def _result(name: str, data: dict[str, np.ndarray]) -> SemiRelaxedGW:
    kinds: list[type[SemiRelaxedGW]] = [SemiRelaxedGW, *SemiRelaxedGW.__subclasses__()]
    return {kind.__name__: kind for kind in kinds}[name](**unpack(data))


def semi_relaxed_gw(
    cost_x,
    cost_z,
    *,
    weights_x: ArrayLike | None = None,
    loss: Loss = "square",
    solver: Solver = "conditional_gradient",
    init: Init | Sequence[Init] | ArrayLike | SemiRelaxedGW = ("kmeans", "random", "product"),
    n_starts: int = 4,
    refine: bool = True,
    epsilon: float | None = None,
    tol: float | None = None,
    max_iter: int = 10_000,
    random_state: Seed = 0,
    callback: Callback | None = None,
    on_failure: OnFailure = "raise",
) -> SemiRelaxedGW:
    r"""Send each point's mass to the points of another similarity, in amounts that are learned.

    .. math::

        \min_{T \ge 0} \; \sum_{ijkl} L(C_{ij}, \bar C_{kl}) \, T_{ik} T_{jl}
        \quad \text{s.t.} \quad T \mathbf 1 = w,

    which is Gromov-Wasserstein minimised over the second weights too. Conditional gradient steps
    towards the plan that the gradient likes best, by the length that is best along it; mirror
    descent multiplies the plan by :math:`e^{-\nabla E_L / \varepsilon}` and rescales its rows.
    The problem is not convex: several starts are tried, and with ``refine`` mass of single rows is
    then moved wherever that lowers the objective, each by its best amount, and two columns change
    places where no row gains any more. The objective falls at each iteration (but for a fixed
    ``epsilon``), and the best plan is returned.

    Source: (srGW) in section 4.1 and appendix E of Van Assel et al. (2024); book
    ``prp-line-search``, ``prp-mirror-descent`` and ``prp-low-rank``.

    Parameters
    ----------
    cost_x : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`. Non-negative for ``"kl"``.
    cost_z : array_like, Pairwise or Factored, shape (k, k), symmetric
        :math:`\bar C`. Where it is 0 and :math:`C > 0`, ``"kl"`` is infinite, and plans that
        match the two are avoided.
    weights_x : array_like, shape (n,), optional
        :math:`w`, of sum 1. Default: uniform.
    loss : {"square", "kl"}
        :math:`(a - b)^2` or :math:`a \log(a / b) - a + b`.
    solver : {"conditional_gradient", "mirror_descent"}
    init : name or names of starts, array_like of shape (n, k), or SemiRelaxedGW
        ``"kmeans"`` clusters the points of C, ``"spectral"`` its leading eigenvectors, and both
        send whole clusters where they fit best; ``"random"`` splits each row by chance,
        ``"product"`` evenly. A plan with row sums w, or an earlier result, is one start.
    n_starts : int
        Starts of each kind that draws at random.
    refine : bool
        Whether to end with moves of single rows and exchanges of two columns.
    epsilon : float, optional
        :math:`\varepsilon` of mirror descent, in units of the gradient. Default: adapted so that
        the objective falls.
    tol : float, optional
        Largest accepted Frank-Wolfe gap
        :math:`\max_S \langle \nabla E_L(T), T - S \rangle`, as a share of
        :math:`\sum_{ij} (C_{ij} - m)^2 w_i w_j` plus the mean of :math:`(\bar C_{kl} - m)^2`, with
        :math:`m = w^\top C w` (``"kl"``: of m plus the mean of :math:`\bar C`). Default 1e-9 in
        float64, 1e-4 in float32.
    max_iter : int
        Iterations from each start.
    random_state : int, numpy Generator or torch Generator
        Same seed, same plan on the same device.
    callback : callable, optional
        Called as ``callback(iteration, residual, plan)``, starts counted on; true ends the run,
        as an interrupt from the keyboard does: the best plan so far is returned.
    on_failure : {"raise", "warn", "ignore"}

    Returns
    -------
    SemiRelaxedGW
        ``plan`` with rows of sum w (total mass 1), the learned ``weights``, the ``objective``,
        the ``trace`` of the best start and the ``values`` of all.

    Raises
    ------
    ValueError
        If a similarity is not symmetric, weights are no weights, ``init`` does not fit, or under
        ``"kl"`` no start reached a finite objective.
    NotConverged
        If the best start did not reach ``tol`` and ``on_failure="raise"``.

    Notes
    -----
    One product of C with an (n, k) matrix an iteration, :math:`O(n^2 k)`, or fewer rows of it
    once few points move; :math:`O(n r k)` for a factored C. Not differentiable.

    Examples
    --------
    >>> import torch
    >>> C = torch.block_diag(torch.ones(2, 2), torch.ones(4, 4)).double()
    >>> found = semi_relaxed_gw(C, torch.eye(2).double())
    >>> round(found.objective, 12), sorted(round(x, 3) for x in found.weights.tolist())
    (0.0, [0.333, 0.667])
    """
    terms = contraction(cost_x, cost_z, loss)
    check_choice("solver", solver, get_args(Solver))
    tol, max_iter = read_limits(tol, max_iter, on_failure, terms.cost.dtype)
    n_starts = check_count("n_starts", n_starts, 1)
    w = as_weights(weights_x, terms.n, terms.cost)
    measured, unit = terms.standard(w)
    if epsilon is not None:
        epsilon = check_positive("epsilon", epsilon) / unit.size / unit.size
    problem = Problem(measured, w)
    source = measured.cost if unit.far else terms.cost
    plans = starts(as_init(init, w, terms.k), problem, source, n_starts, as_rng(random_state))
    run = _Run(problem, solver, refine, epsilon, tol, Watch(max_iter, callback))
    try:
        state, residual, trace = run.lowest(plans)
    except KeyboardInterrupt as error:
        T, residual, trace = run.watch.keep("semi_relaxed_gw", error)
        state = problem.state(T)
        run.values.append(state.value)
    if run.watch.stopped:
        on_failure = "ignore"
    objective = problem.contraction.objective(state.T, problem.constant)
    if objective == float("inf"):
        raise ValueError(
            "loss='kl' is infinite at every plan that was found: positive entries of cost_x meet "
            "zeros of cost_z; add a small positive number to cost_z, or try other starts"
        )
    return SemiRelaxedGW(
        plan=state.T,
        objective=unit.objectives([objective])[0],
        residual=residual,
        n_iter=len(trace) - 1,
        converged=settle("semi_relaxed_gw", residual, tol, len(trace) - 1, on_failure),
        trace=unit.objectives(trace),
        values=unit.objectives(run.values),
        products=problem.products,
    )


def as_init(
    init, w: Tensor, k: int, names: tuple[str, ...] = get_args(Init)
) -> tuple[str, ...] | Tensor:
    """Names of starts, or one plan with the row sums w."""
    if isinstance(init, str):
        init = (init,)
    if isinstance(init, Sequence) and init and all(isinstance(name, str) for name in init):
        for name in init:
            check_choice("init", name, names)
        return tuple(init)
    return as_given(init, w, k)


def as_given(init, w: Tensor, k: int) -> Tensor:
    """One plan with the row sums w."""
    T = as_real(getattr(init, "plan", init), "init").to(w)
    if T.shape != (len(w), k):
        raise ValueError(f"init must be a ({len(w)}, {k}) plan; got shape {tuple(T.shape)}")
    check_finite(T, "init")
    off = (T.sum(dim=1) - w).abs()
    if bool((T < 0).any()) or float(off.max()) > 1e-5 * float(w.max()):
        i = int(off.argmax())
        raise ValueError(
            "init must be non-negative with the row sums weights_x; "
            f"row {i} sums to {float(T[i].sum()):g}, not {float(w[i]):g}"
        )
    return with_rows(T, w)


class Watch:
    """What all descents of a call share: the budget of each, the callback, and the wish to stop."""

    def __init__(self, max_iter: int, callback: Callback | None):
        self.max_iter, self.callback = max_iter, callback
        self.stopped, self._count = False, 0
        self._best: tuple[float, float, Tensor, list[float], int] | None = None

    def full(self, trace: list[float]) -> bool:
        """Whether the descent must end."""
        return self.stopped or len(trace) > self.max_iter

    def record(self, value: float, gap: float, T: Tensor, trace: list[float]) -> None:
        trace.append(value)
        if self._best is None or value <= self._best[0]:
            self._best = value, gap, T, trace, len(trace)
        if self.callback is not None and self.callback(self._count, gap, T):
            self.stopped = True
        self._count += 1

    def keep(self, where: str, error: KeyboardInterrupt) -> tuple[Tensor, float, list[float]]:
        """After an interrupt from the keyboard: the best plan so far, its gap and its trace."""
        if self._best is None:
            raise error
        text = f"{where}: interrupted after {self._count} iterations; this is the best they gave"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
        self.stopped = True
        _, gap, T, trace, length = self._best
        return T, gap, trace[:length]


class _Run:
    """Descents from several starts that share their limits."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        refine: bool,
        epsilon: float | None,
        tol: float,
        watch: Watch,
    ):
        self.problem, self.solver, self.refine, self.epsilon = problem, solver, refine, epsilon
        self.tol, self.watch = tol, watch
        self.values: list[float] = []

    def lowest(self, plans: Iterator[Tensor]) -> tuple[State, float, list[float]]:
        """Go down from each plan, roughly, and from the lowest point to the tolerance."""
        best: _Descent | None = None
        for plan in plans:
            if self.watch.stopped:
                break
            found = self._descend(plan, max(self.tol, _ROUGH))
            self.values.append(found.state.value)
            if best is None or found.state.value < best.state.value:
                best = found
        assert best is not None
        if best.gap > self.tol and not self.watch.full(best.trace):
            place = self.values.index(best.state.value)
            again = self._descend(best.state.T, self.tol, list(best.trace[:-1]))
            best = again if again.state.value <= best.state.value else best
            self.values[place] = best.state.value
        return best.state, best.gap, best.trace

    def _descend(self, plan: Tensor, tol: float, trace: list[float] | None = None) -> _Descent:
        problem, trace = self.problem, [] if trace is None else trace
        if self.solver == "mirror_descent":
            if not trace and bool((plan == 0).any()):
                plan = (1 - _SOFT) * plan + _SOFT * problem.w[:, None] / problem.k
            steps = mirror_descent(problem, problem.state(plan), self.epsilon)
        else:
            steps = conditional_gradient(problem, problem.state(plan))
        last: tuple[State, float] | None = None
        for state, gap in steps:  # pragma: no branch, they have no end
            self.watch.record(state.value, gap, state.T, trace)
            if gap <= tol or self.watch.full(trace):
                break
            # a short step is a sign of mass on several places, which rows find sooner
            if self.refine and last is not None:
                promised = last[1] * problem.scale
                if last[0].value - state.value < SHORT * promised:
                    break
            last = state, gap
        if self.refine and not self.watch.full(trace):
            moves = row_moves(problem, state, tol)
            next(moves)  # the state that is known
            for state, gap in moves:
                self.watch.record(state.value, gap, state.T, trace)
                if self.watch.full(trace):
                    break
        state = problem.state(with_rows(state.T, problem.w))  # without the rounding of the steps
        trace[-1] = state.value
        return _Descent(state, gap, trace)


class _Descent(NamedTuple):
    """Where a descent ended."""

    state: State
    gap: float
    trace: list[float]
