"""The four-index sum of Gromov-Wasserstein as products of matrices, and how its input is read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from .._core.checks import as_real, check_choice, check_finite, check_same_device
from ..costs.array import Pairwise, as_pairwise, check_symmetric, tile_rows
from ..costs.factored import Factored

Loss = Literal["square", "kl"]

_ROUNDING = 8  # units of rounding, within which an entry of factors is a zero


class Contraction:
    r"""The four-index sum of E_L as matrix products (Peyre, Cuturi and Solomon, 2016).

    With :math:`L(a, b) = f_1(a) + f_2(b) - h_1(a) h_2(b)`; ``square`` has :math:`a^2, b^2, a, 2b`
    and ``kl`` has :math:`a \log a - a, b, a, \log b`. Both have :math:`h_1(a) = a`, so C is met as
    it is, in tiles or by its factors. Cbar is k x k, no larger than a plan, and kept dense.
    """

    def __init__(self, cost_x: Pairwise, structure: Tensor, loss: Loss):
        self.cost, self.loss, self.structure = cost_x, loss, structure
        self.n, self.k = cost_x.shape[0], structure.shape[0]
        self.factors = cost_x if isinstance(cost_x, Factored) else None
        self.f2 = self.f2_of(structure)  # (k, k)
        self.h2 = self.h2_of(structure)  # (k, k)

    def f1_of(self, a: Tensor) -> Tensor:
        return a.square() if self.loss == "square" else torch.xlogy(a, a) - a

    def f2_of(self, b: Tensor) -> Tensor:
        return b.square() if self.loss == "square" else b

    def h2_of(self, b: Tensor) -> Tensor:
        # a tiny number stands for a zero of Cbar; the objective itself is exact
        tiny = max(1e-300, torch.finfo(b.dtype).tiny)
        return 2 * b if self.loss == "square" else b.clamp_min(tiny).log()

    def tiles(self) -> Iterator[tuple[slice, Tensor]]:
        """Row tiles of C, with the zeros of a factored distance where ``kl`` has to see them."""
        for rows, tile in self.cost.tiles(tile_rows(self.cost)):
            yield rows, _with_zeros(tile, self.cost) if self.loss == "kl" else tile

    def dense(self) -> Tensor:
        """C, (n, n)."""
        return self.cost.join(tile for _, tile in self.tiles())

    def met(self, T: Tensor) -> Tensor:
        """C T by tiles, (n, k): exactly 0 where T meets zeros of C alone."""
        return self.cost.join(tile @ T for _, tile in self.tiles())

    def between(self, T: Tensor, CT: Tensor) -> Tensor:
        """T^T C T, (k, k): symmetric, and under ``kl`` not negative, as in exact arithmetic."""
        M = T.T @ CT
        M = (M + M.T) / 2
        return M.clamp_min_(0) if self.loss == "kl" else M

    def product(self, T: Tensor) -> Tensor:
        """C T h2(Cbar), (n, k)."""
        if self.factors is None:
            return self.cost @ T @ self.h2
        return self.factors.left @ (self.factors.right.T @ T @ self.h2)  # the small ones first

    def product_labels(self, labels: Tensor, w: Tensor, k: int, h2: Tensor | None = None) -> Tensor:
        """C T, or C T h2, for the plan that sends all of point i to ``labels[i]``, below k."""
        if self.factors is None:
            CT = self.cost @ hard_plan(labels, w, k)
            return CT if h2 is None else CT @ h2
        right = self.factors.right
        sums = right.new_zeros(k, right.shape[1]).index_add_(0, labels, right * w[:, None]).T
        return self.factors.left @ (sums if h2 is None else sums @ h2)  # (r, k) sums of rows

    def columns(self, index: Tensor, Y: Tensor) -> Tensor:
        """C[:, index] Y, (n, k), for Y (b, k)."""
        if self.factors is not None:
            return self.factors.left @ (self.factors.right[index].T @ Y)
        if 4 * len(index) > self.n:  # a product is cheaper than a copy of so many rows
            return self.cost @ Y.new_zeros(self.n, Y.shape[1]).index_copy_(0, index, Y)
        return self.cost.rows(index).T @ Y

    def constant(self, w: Tensor) -> float:
        """sum_ij f1(C_ij) w_i w_j, the part that no plan changes."""
        if self.factors is not None and self.loss == "square":
            a, b = self.factors.left, self.factors.right
            value = total((a.T @ (a * w[:, None])) * (b.T @ (b * w[:, None])))
        else:
            parts = (w[rows] @ (self.f1_of(tile) @ w) for rows, tile in self.tiles())
            own = sum((part.double() for part in parts), w.new_zeros((), dtype=torch.float64))
            value = float(self.cost.ranks.total(own))
        if not math.isfinite(value):
            raise ValueError(
                "the objective of these similarities overflows; give them in larger units"
            )
        return value

    def scale(self, w: Tensor, constant: float) -> float:
        """The size of the terms of E_L: what a residual is measured in."""
        of_cost = constant if self.loss == "square" else float(w @ (self.cost @ w))
        return of_cost + float(self.f2.mean())

    def objective(self, T: Tensor, constant: float) -> float:
        """E_L(T), with an infinite cost where C > 0 meets Cbar = 0 under ``kl``."""
        q = T.sum(dim=0)
        if self.loss == "kl" and bool((self.structure == 0).any()):
            mass = T.T @ self.met(T)  # (k, k)
            if bool(((self.structure == 0) & (mass > 0)).any()):
                return math.inf
        return constant + float(q @ self.f2 @ q) - total(self.product(T) * T)


def total(x: Tensor) -> float:
    return float(x.sum(dtype=torch.float64))


class Unit(NamedTuple):
    """What descents see of an entry c is (c - offset) / size."""

    offset: float = 0.0
    size: float = 1.0  # a power of 2

    def entries(self, seen: Tensor) -> Tensor:
        return (seen.double() * self.size + self.offset).to(seen)

    def objectives(self, values: Iterable[float]) -> tuple[float, ...]:
        """E_L in the unit of C; rounding below 0 is not a negative sum of squares."""
        return tuple(max(value, 0.0) * self.size * self.size for value in values)


def standard(
    cost: Pairwise, w: Tensor, loss: Loss, structure: Tensor | None = None
) -> tuple[Contraction, Unit]:
    """The problem of (C - m) / s and (Cbar - m) / s, with m = w^T C w and s a power of 2.

    The square loss sees differences of C and Cbar alone. Of these numbers, at most about 1, the
    squares stay in range, and neither tolerance nor rounding is that of a common offset. ``kl``
    sees ratios too: there both stay as they are. Without a Cbar, one zero stands for it.
    """
    nothing = w.new_zeros(1, 1)
    if loss == "kl":
        return Contraction(cost, nothing if structure is None else structure, loss), Unit()
    if isinstance(cost, Factored):
        cost, m = cost.shifted(w)
        largest = cost.bound
    else:
        ends = cost.join(
            torch.stack([tile @ w, tile.amax(dim=1), tile.amin(dim=1)], dim=1)
            for _, tile in cost.tiles(tile_rows(cost))
        )  # (n, 3)
        m = float(w @ ends[:, 0])
        largest = max(float(ends[:, 1].max()) - m, m - float(ends[:, 2].min()))
    if structure is not None:
        largest = max(largest, float((structure.double() - m).abs().max()))
    limits = torch.finfo(cost.dtype)
    if not largest < min(2.0**500, limits.max / 4):
        raise ValueError("squares of these similarities overflow; give them in larger units")
    unit = Unit(m, math.ldexp(1.0, math.frexp(max(largest, limits.tiny))[1]))
    if structure is not None:
        nothing = ((structure.double() - m) / unit.size).to(structure)
    if isinstance(cost, Factored):
        return Contraction(cost.divided(unit.size), nothing, loss), unit
    return Contraction(
        cost.derive(lambda rows: (cost.rows(rows) - m).div_(unit.size)), nothing, loss
    ), unit


def centred(cost: Pairwise, w: Tensor) -> Pairwise:
    """J C J with J = I - 1 w^T: inner products of points less their mean."""
    if isinstance(cost, Factored):
        return cost.centred(w)
    mean = cost.join(tile @ w for _, tile in cost.tiles(tile_rows(cost)))  # (n,)
    rest = mean - w @ mean
    return cost.derive(lambda rows: (cost.rows(rows) - mean[rows, None]).sub_(rest))


def alone(cost: Pairwise, w: Tensor, loss: Loss = "square") -> Contraction:
    """The terms of C: against a structure of one zero, which adds nothing."""
    return Contraction(cost, w.new_zeros(1, 1), loss)


def hard_plan(labels: Tensor, w: Tensor, k: int) -> Tensor:
    """The (n, k) plan that sends all of point i, its mass w_i, to ``labels[i]``."""
    T = w.new_zeros(len(labels), k)
    return T.scatter_(1, labels[:, None], w[:, None])


def with_rows(T: Tensor, w: Tensor) -> Tensor:
    """The plan whose rows sum to w: the steps of a descent leave rounding there."""
    return T * (w / T.sum(dim=1).clamp_min(torch.finfo(w.dtype).tiny))[:, None]


def _rounding(cost: Pairwise) -> float:
    """What rounding may leave in the place of a zero: nothing but in a product of factors."""
    if not isinstance(cost, Factored):
        return 0.0
    return _ROUNDING * torch.finfo(cost.dtype).eps * cost.left.shape[1] ** 0.5 * cost.bound


def _with_zeros(entries: Tensor, cost: Pairwise) -> Tensor:
    """Entries of C that is not negative, without the rounding of factors."""
    bound = _rounding(cost)
    return entries.masked_fill(entries <= bound, 0) if bound else entries


def contraction(cost_x, cost_z, loss: Loss) -> Contraction:
    """Read both similarities and the loss."""
    check_choice("loss", loss, get_args(Loss))
    x = as_structure(cost_x, "cost_x", loss)
    z = as_structure(cost_z, "cost_z", loss, least=1)
    check_same_device(x, "cost_x", z, "cost_z")
    if x.dtype != z.dtype:
        raise ValueError(f"cost_x is {x.dtype} and cost_z is {z.dtype}; convert one of them")
    whole = _with_zeros(z.dense(), z) if loss == "kl" else z.dense()
    return Contraction(x, (whole + whole.T) / 2, loss)


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


def as_plan(plan, name: str, n: int, k: int, like: Pairwise | Tensor, **sums: Tensor) -> Tensor:
    """A plan of mass 1; ``weights_x`` and ``weights_z`` are the sums of its rows and columns."""
    T = as_real(plan, name).to(like.device, like.dtype)
    if T.shape != (n, k):
        raise ValueError(
            f"{name} must be a ({n}, {k}) plan, cost_x by cost_z; got shape {tuple(T.shape)}"
        )
    check_finite(T, name)
    if bool((T < 0).any()):
        raise ValueError(f"{name} has negative entries")
    for which, wanted in sums.items():
        found = T.sum(dim=1 if which == "weights_x" else 0)
        i = int((found - wanted).abs().argmax())
        if float((found - wanted).abs()[i]) > 1e-5 * float(wanted.max()):
            line = "row" if which == "weights_x" else "column"
            raise ValueError(
                f"{name} must be a plan with the {line} sums {which}; {line} {i} sums to "
                f"{float(found[i]):g}, not {float(wanted[i]):g}"
            )
    if abs(total(T) - 1) > 1e-5:
        raise ValueError(f"{name} must have total mass 1; got {total(T):g}. Divide by the sum")
    return T
