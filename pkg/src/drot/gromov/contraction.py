"""The four-index sum of Gromov-Wasserstein as products of matrices, and how its input is read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from .._core.checks import as_real, check_choice, check_finite
from ..costs.array import Pairwise, as_pairwise, check_symmetric, tile_rows
from ..costs.factored import Factored, GaussianKernel

Loss = Literal["square", "kl"]

_ZERO = 1e-300  # stands for a zero of Cbar inside logarithms; the objective itself is exact
_ROUNDING = 8  # units of rounding, within which entries are the same
_LARGE = 2.0**500  # has a square, with room for sums of it
_FAR = 8.0  # sizes, beyond which an offset hides what is left from an eigensolver


class Contraction:
    r"""The four-index sum of E_L as matrix products (Peyre, Cuturi and Solomon, 2016).

    With :math:`L(a, b) = f_1(a) + f_2(b) - h_1(a) h_2(b)`; ``square`` has :math:`a^2, b^2, a, 2b`
    and ``kl`` has :math:`a \log a - a, b, a, \log b`. Both have :math:`h_1(a) = a`, so C is met as
    it is, in tiles or by its factors. Cbar is k x k, no larger than a plan, and kept dense.
    """

    def __init__(
        self, cost_x: Pairwise, structure: Tensor, loss: Loss, log: Factored | None = None
    ):
        self.cost, self.loss, self.structure = cost_x, loss, structure
        self.n, self.k = cost_x.shape[0], structure.shape[0]
        self._log = log  # factors of h2(Cbar), where there are any
        self.f2 = self.f2_of(structure)  # (k, k)
        self.h2 = self.h2_of(structure)  # (k, k)

    def f1_of(self, a: Tensor) -> Tensor:
        return a.square() if self.loss == "square" else torch.xlogy(a, a) - a

    def f2_of(self, b: Tensor) -> Tensor:
        return b.square() if self.loss == "square" else b

    def h2_of(self, b: Tensor) -> Tensor:
        tiny = max(_ZERO, torch.finfo(b.dtype).tiny)
        return 2 * b if self.loss == "square" else b.clamp_min(tiny).log()

    def with_cost(self, cost_x: Pairwise) -> Contraction:
        """Another C against the same Cbar."""
        return Contraction(cost_x, self.structure, self.loss, self._log)

    def standard(self, w: Tensor) -> tuple[Contraction, Unit]:
        """The same problem in the unit of what C and Cbar differ by: see :func:`standard`."""
        cost, unit = standard(self.cost, w, self.loss, self.structure)
        log = self._log
        if log is not None and self.loss == "square":  # of 2 Cbar
            uniform = as_weights(None, self.k, log)
            log = log.shifted(uniform, 2 * unit.offset)[0].divided(unit.size)
        return Contraction(cost, unit.measure(self.structure), self.loss, log), unit

    def tiles(self) -> Iterator[tuple[slice, Tensor]]:
        """Row tiles of C, with the zeros of a factored distance where ``kl`` has to see them."""
        for rows, tile in self.cost.tiles(tile_rows(self.cost)):
            yield rows, _with_zeros(tile, self.cost) if self.loss == "kl" else tile

    def dense(self) -> Tensor:
        """C, (n, n)."""
        return self.cost.join(tile for _, tile in self.tiles())

    def left(self, T: Tensor) -> Tensor:
        """C T, (n, k)."""
        return self.cost @ T

    def met(self, T: Tensor) -> Tensor:
        """C T by tiles, (n, k): exactly 0 where T meets zeros of C alone."""
        return self.cost.join(tile @ T for _, tile in self.tiles())

    def right(self, Y: Tensor) -> Tensor:
        """Y h2(Cbar), for Y with k columns."""
        if self._log is not None:
            return (Y @ self._log.right) @ self._log.left.T
        return Y @ self.h2

    def between(self, T: Tensor, CT: Tensor) -> Tensor:
        """T^T C T, (k, k): symmetric, and under ``kl`` not negative, as in exact arithmetic."""
        M = T.T @ CT
        M = (M + M.T) / 2
        return M.clamp_min_(0) if self.loss == "kl" else M

    def product(self, T: Tensor) -> Tensor:
        """C T h2(Cbar), (n, k)."""
        if isinstance(self.cost, Factored):  # the small factors meet first
            return self.cost.left @ self.right(self.cost.right.T @ T)
        return self.right(self.left(T))

    def left_labels(self, labels: Tensor, w: Tensor, k: int) -> Tensor:
        """C T for the plan that sends all of point i to ``labels[i]``, below k."""
        if not isinstance(self.cost, Factored):
            return self.left(hard_plan(labels, w, k))
        return self.cost.left @ self._sums(self.cost.right, labels, w, k).T

    @staticmethod
    def _sums(right: Tensor, labels: Tensor, w: Tensor, k: int) -> Tensor:
        """Sums of the rows of the right factor by label, (k, r), in place of a product."""
        return right.new_zeros(k, right.shape[1]).index_add_(0, labels, right * w[:, None])

    def product_labels(self, labels: Tensor, w: Tensor) -> Tensor:
        """C T h2(Cbar) for the plan that sends all of point i to ``labels[i]``."""
        if not isinstance(self.cost, Factored):
            return self.product(hard_plan(labels, w, self.k))
        sums = self._sums(self.cost.right, labels, w, self.k)
        return self.cost.left @ self.right(sums.T)

    @property
    def kept(self) -> bool:
        """Whether C is held as a matrix, so that a few of its rows are free to read."""
        return self.cost.block is None

    def columns(self, index: Tensor, Y: Tensor) -> Tensor:
        """C[:, index] Y, (n, k), for Y (b, k)."""
        if isinstance(self.cost, Factored):
            return self.cost.left @ (self.cost.right[index].T @ Y)
        if 4 * len(index) > self.n:  # a product is cheaper than a copy of so many rows
            return self.left(Y.new_zeros(self.n, Y.shape[1]).index_copy_(0, index, Y))
        return self.cost.rows(index).T @ Y

    def diagonal(self) -> Tensor:
        """C_ii, (n,)."""
        return self.cost.diagonal()

    def constant(self, w: Tensor) -> float:
        """sum_ij f1(C_ij) w_i w_j, the part that no plan changes."""
        if isinstance(self.cost, Factored) and self.loss == "square":
            a, b = self.cost.left, self.cost.right
            return _in_range(total((a.T @ (a * w[:, None])) * (b.T @ (b * w[:, None]))))
        parts = (w[rows] @ (self.f1_of(tile) @ w) for rows, tile in self.tiles())
        own = sum((part.double() for part in parts), w.new_zeros((), dtype=torch.float64))
        return _in_range(float(self.cost.ranks.total(own)))

    def scale(self, w: Tensor) -> float:
        """The size of the terms of E_L: what a residual is measured in."""
        of_cost = (
            self.constant(w) if self.loss == "square" else float(w @ self.left(w[:, None])[:, 0])
        )
        return _in_range(of_cost + float(self.f2.mean()))

    def objective(self, T: Tensor, constant: float) -> float:
        """E_L(T), with an infinite cost where C > 0 meets Cbar = 0 under ``kl``."""
        q = T.sum(dim=0)
        if self.loss == "kl" and bool((self.structure == 0).any()):
            mass = T.T @ self.met(T)  # (k, k)
            if bool(((self.structure == 0) & (mass > 0)).any()):
                return math.inf
        return constant + float(q @ self.f2 @ q) - total(self.product(T) * T)


class Alike(Contraction):
    r"""``kl`` of similarities that are all about m, by what they differ from it.

    With :math:`a = C / m - 1` and :math:`b = \bar C / m - 1` a term is m times
    :math:`(1 + a) \log(1 + a) - a + b - \log(1 + b) - a \log(1 + b)`, of second order in a and b:
    what is larger cancels, and is left out.
    """

    def __init__(self, plain: Contraction, m: float):
        cost = plain.cost.derive(lambda rows: (plain.cost.rows(rows) - m).div_(m))
        super().__init__(cost, (plain.structure - m) / m, "square")  # whose zeros are like others

    def f1_of(self, a: Tensor) -> Tensor:
        return (1 + a) * a.log1p() - a

    def f2_of(self, b: Tensor) -> Tensor:
        return b - b.log1p()

    def h2_of(self, b: Tensor) -> Tensor:
        return b.log1p()

    @classmethod
    def of(cls, plain: Contraction, w: Tensor) -> tuple[Contraction, float]:
        """The problem so, and the m it is in units of; as it is, and 1, unless all are about m."""
        m = float(w @ plain.left(w[:, None])[:, 0])
        off = plain.cost.join((tile - m).abs().amax(dim=1) for _, tile in plain.tiles())  # (n,)
        spread = max(float(off.max()), float((plain.structure - m).abs().max()))
        return (cls(plain, m), m) if _FAR * spread < m else (plain, 1.0)


def total(x: Tensor) -> float:
    return float(x.sum(dtype=torch.float64))


def _in_range(value: float) -> float:
    """A sum over C as it is, unless it left the range of the dtype."""
    if not math.isfinite(value):
        raise ValueError("the objective of these similarities overflows; give them in larger units")
    return value


class Unit(NamedTuple):
    """What descents see of an entry c is (c - offset) / size."""

    offset: float = 0.0
    size: float = 1.0  # a power of 2

    @property
    def far(self) -> bool:
        """Whether all entries are alike: clusters show in what is left."""
        return abs(self.offset) > _FAR * self.size

    def measure(self, x: Tensor) -> Tensor:
        return ((x.double() - self.offset) / self.size).to(x)

    def entries(self, x: Tensor) -> Tensor:
        """What ``measure`` was given."""
        return (x.double() * self.size + self.offset).to(x)

    def objectives(self, values: Iterable[float]) -> tuple[float, ...]:
        """E_L in the unit of C; rounding below 0 is not a negative sum of squares."""
        return tuple(max(value, 0.0) * self.size * self.size for value in values)


def standard(
    cost: Pairwise, w: Tensor, loss: Loss, structure: Tensor | None = None
) -> tuple[Pairwise, Unit]:
    """(C - m) / s with m = w^T C w and s a power of 2: the same problem where Cbar follows.

    The square loss sees differences of C and Cbar alone. Of these numbers, at most about 1, the
    squares stay in range, and neither tolerance nor rounding is that of a common offset. ``kl``
    sees ratios too: there C stays as it is.
    """
    if loss == "kl":
        return cost, Unit()
    if isinstance(cost, Factored):
        factors, m = cost.shifted(w)
        spread = largest = factors.bound
    else:
        ends = cost.join(
            torch.stack([tile @ w, tile.amax(dim=1), tile.amin(dim=1)], dim=1)
            for _, tile in cost.tiles(tile_rows(cost))
        )  # (n, 3)
        m = float(w @ ends[:, 0])
        spread = largest = max(float(ends[:, 1].max()) - m, m - float(ends[:, 2].min()))
    if structure is not None:
        largest = max(spread, float((structure.double() - m).abs().max()))
    info = torch.finfo(cost.dtype)
    if not largest < min(_LARGE, info.max / 4):
        raise ValueError("squares of these similarities overflow; give them in larger units")
    unit = Unit(m, math.ldexp(1.0, math.frexp(max(largest, info.tiny))[1]))
    if isinstance(cost, Factored):
        return factors.divided(unit.size), unit
    share = 0.0 if spread <= _ROUNDING * info.eps * abs(m) else 1 / unit.size
    return cost.derive(lambda rows: (cost.rows(rows) - m).mul_(share)), unit


def centred(cost: Pairwise, w: Tensor) -> Pairwise:
    """J C J with J = I - 1 w^T: inner products of points less their mean."""
    if isinstance(cost, Factored):
        return cost.centred(w)
    mean = cost.join(tile @ w for _, tile in cost.tiles(tile_rows(cost)))  # (n,)
    rest = mean - w @ mean
    return cost.derive(lambda rows: (cost.rows(rows) - mean[rows, None]).sub_(rest))


def hard_plan(labels: Tensor, w: Tensor, k: int) -> Tensor:
    """The (n, k) plan that sends all of point i, its mass w_i, to ``labels[i]``."""
    T = w.new_zeros(len(labels), k)
    return T.scatter_(1, labels[:, None], w[:, None])


def with_rows(T: Tensor, w: Tensor) -> Tensor:
    """The plan whose rows sum to w: the steps of a descent leave rounding there."""
    return T * (w / T.sum(dim=1).clamp_min(torch.finfo(w.dtype).tiny))[:, None]


def as_weights(weights, n: int, like: Pairwise | Tensor, name: str = "weights_x") -> Tensor:
    """n masses of sum 1, uniform where none are given."""
    if weights is None:
        return torch.full((n,), 1 / n, dtype=like.dtype, device=like.device)
    w = as_real(weights, name).to(like.device, like.dtype)
    if w.shape != (n,):
        raise ValueError(f"{name} must be one number per point ({n}); got shape {tuple(w.shape)}")
    check_finite(w, name)
    if bool((w < 0).any()):
        i = int((w < 0).nonzero()[0])
        raise ValueError(f"{name} must not be negative; row {i} has {float(w[i]):g}")
    if abs(total(w) - 1) > 1e-5:
        raise ValueError(f"{name} must sum to 1; got {total(w):g}. Divide by the sum")
    return w / w.sum()


def _rounding(cost: Pairwise) -> float:
    """What rounding may leave in the place of a zero: nothing but in a product of factors."""
    if not isinstance(cost, Factored):
        return 0.0
    return _ROUNDING * torch.finfo(cost.dtype).eps * cost.left.shape[1] ** 0.5 * cost.bound


def _with_zeros(entries: Tensor, cost: Pairwise) -> Tensor:
    """Entries of C that is not negative, without the rounding of factors."""
    bound = _rounding(cost)
    return entries.masked_fill(entries <= bound, 0) if bound else entries


def as_structure(cost, name: str, loss: Loss, *, least: int = 2) -> Pairwise:
    """A symmetric similarity of some points, non-negative where the loss needs it."""
    cost = as_pairwise(cost, name, least=least)
    check_symmetric(cost, name)
    if loss == "kl":
        bound = _rounding(cost)
        for rows, tile in cost.tiles(tile_rows(cost)):
            if bool((tile < -bound).any()):
                i, j = (tile < -bound).nonzero()[0].tolist()
                raise ValueError(
                    f"loss='kl' needs a {name} without negative entries; entry "
                    f"({rows.start + i}, {j}) is {float(tile[i, j]):g}"
                )
    return cost


def alone(cost: Pairwise, w: Tensor, loss: Loss = "square") -> Contraction:
    """The terms of C: against a structure of one zero, which adds nothing."""
    return Contraction(cost, w.new_zeros(1, 1), loss)


def contraction(cost_x, cost_z, loss: Loss) -> Contraction:
    """Read both similarities and the loss."""
    check_choice("loss", loss, get_args(Loss))
    x = as_structure(cost_x, "cost_x", loss)
    z = as_structure(cost_z, "cost_z", loss, least=1)
    if x.device != z.device:
        raise ValueError(f"cost_x is on {x.device} and cost_z on {z.device}; move one of them")
    if x.dtype != z.dtype:
        raise ValueError(f"cost_x is {x.dtype} and cost_z is {z.dtype}; convert one of them")
    factors = z.log if isinstance(z, GaussianKernel) and loss == "kl" else None
    if isinstance(z, Factored) and loss == "square":
        factors = Factored(2 * z.left, z.right)
    whole = _with_zeros(z.dense(), z) if loss == "kl" else z.dense()
    if factors is not None and factors.left.shape[1] * 2 >= whole.shape[0]:
        factors = None  # the dense product is the cheaper one
    return Contraction(x, (whole + whole.T) / 2, loss, factors)


def as_plan(plan, n: int, k: int, like: Pairwise) -> Tensor:
    T = as_real(plan, "plan").to(like.device, like.dtype)
    if T.shape != (n, k):
        raise ValueError(f"plan must be ({n}, {k}), cost_x by cost_z; got {tuple(T.shape)}")
    check_finite(T, "plan")
    if bool((T < 0).any()):
        raise ValueError("plan has negative entries")
    if abs(total(T) - 1) > 1e-5:
        raise ValueError(f"plan must have total mass 1; got {total(T):g}. Divide by the sum")
    return T
