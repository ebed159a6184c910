"""How similarities, weights and plans are read (Chapters 11 to 14)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .._core.algebra import total
from .._core.checks import as_real, check_finite, check_no_entry, check_same_device
from ..costs.array import Pairwise, as_pairwise, check_symmetric
from .contraction import with_rows
from .loss import SQUARE, Loss, LossName, as_loss

_MASS = 1e-5  # by which masses that are written with six digits miss their sum


def as_pair(cost_x, cost_z, loss_name: LossName) -> tuple[Pairwise, Tensor, Loss]:
    """Both similarities, the second (k, k) as a structure, and the loss."""
    loss = as_loss(loss_name)
    x = as_similarity(cost_x, "cost_x", loss)
    z = as_similarity(cost_z, "cost_z", loss, least=1)
    check_same_device(x, "cost_x", z, "cost_z")
    if x.dtype != z.dtype:
        raise ValueError(f"cost_x is {x.dtype} and cost_z is {z.dtype}; convert one of them")
    whole = loss.seen(z, z.dense())
    return x, (whole + whole.T) / 2, loss


def as_similarity(similarity, name: str, loss: Loss = SQUARE, *, least: int = 2) -> Pairwise:
    """A symmetric similarity of some points, in the range of the loss; of an affinity, its plan."""
    C = as_pairwise(getattr(similarity, "plan", similarity), name, least=least)
    check_symmetric(C, name)
    largest, info = 0.0, torch.finfo(C.dtype)
    for rows, tile in C.working_tiles() if loss.bounds else ():
        out = (tile < loss.low - C.rounding) | (tile > loss.high + C.rounding)
        if bool(out.any()):
            i, j = out.nonzero()[0].tolist()
            most = f" and none above {loss.high:g}" if math.isfinite(loss.high) else ""
            raise ValueError(
                f"loss={loss.name!r} needs a {name} without negative entries{most}; entry "
                f"({rows.start + i}, {j}) is {float(tile[i, j]):g}"
            )
        largest = max(largest, float(tile.max()))
    if 0 < largest < info.tiny / info.eps:
        raise ValueError(f"the entries of {name} underflow; give them in smaller units")
    return C


def as_weights(weights, n: int, like: Pairwise | Tensor, name: str = "weights") -> Tensor:
    """n masses of sum 1, uniform where none are given."""
    if weights is None:
        return torch.full((n,), 1 / n, dtype=like.dtype, device=like.device)
    w = as_real(weights, name).to(like.device, like.dtype)
    if w.shape != (n,):
        raise ValueError(f"{name} must be one number per point ({n}); got shape {tuple(w.shape)}")
    check_finite(w, name)
    check_no_entry(w < 0, w, f"{name} must not be negative; {{at}} has {{entry}}")
    if abs(total(w) - 1) > _MASS:
        raise ValueError(f"{name} must sum to 1; got {total(w):g}. Divide by the sum")
    return w / w.sum()


def as_coupling(
    plan, name: str, n: int, k: int, like: Pairwise | Tensor, *, rows: Tensor | None = None
) -> Tensor:
    """A plan of mass 1, with given sums of its rows, made exact."""
    T = as_real(plan, name).to(like.device, like.dtype)
    if T.shape != (n, k):
        cure = f"; of labels numpy.eye({k})[labels] / {n} is one" if T.shape == (n,) else ""
        raise ValueError(f"{name} must be a ({n}, {k}) plan; got shape {tuple(T.shape)}{cure}")
    check_finite(T, name)
    check_no_entry(T < 0, T, f"{name} has negative entries, {{entry}} at {{at}}")
    if rows is not None:
        found = T.sum(dim=1)
        i = int((found - rows).abs().argmax())
        if float((found - rows).abs()[i]) > _MASS * float(rows.max()):
            raise ValueError(
                f"{name} must be a plan whose row sums are the weights; row {i} sums to "
                f"{float(found[i]):g}, not {float(rows[i]):g}"
            )
    if abs(total(T) - 1) > _MASS:
        raise ValueError(f"{name} must have total mass 1; got {total(T):g}. Divide by the sum")
    return T if rows is None else with_rows(T, rows)
