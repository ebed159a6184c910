"""Checks of the input, each with one sentence: what is wrong, where, and what to do.

``as_`` gives the input back in the form that the package works with, ``check_`` gives nothing; both
raise where they cannot take it. An array comes before its name, a number, a flag or a word after.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Mapping
from numbers import Real
from typing import Any, get_args

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from .memory import free_memory, physical_memory, slices

_FEW = 30  # components that a sparse table is best reduced to
_FITS = 2**26  # bytes of an array that fits wherever the package does
_SEEN, _LEAST = 64, 13  # points whose entries are looked at, and that tell distances apart
_DENSE, _AGREE = 0.5, 0.2  # share of entries above 0, and correlation, that distances surpass
_CHANCE = 8.0  # over the points: what a correlation may come to among few
_DETOUR = 1e-3  # of the largest, by which rounding may break the triangle inequality
_WEIGHTS, _TWINS = 3, 0.05  # numbers, and share of pairs with one row, of which graphs may consist


def as_real(value, name: str) -> Tensor:
    """A float32 or float64 tensor that carries no gradient; integers become float64."""
    check_form(value, name)
    try:
        # through NumPy, Python numbers are float64; torch alone would make them float32
        tensor = value if isinstance(value, Tensor) else torch.as_tensor(_native(value))
    except (TypeError, ValueError, RuntimeError) as error:
        uneven = "inhomogeneous" in str(error)
        why = "its rows differ in length" if uneven else error
        raise TypeError(f"{name} cannot be read as an array of numbers: {why}") from None
    if tensor.is_complex():
        raise TypeError(f"{name} is complex ({tensor.dtype}); pass real numbers")
    if tensor.dtype in (torch.float16, torch.bfloat16):
        raise TypeError(
            f"{name} is {tensor.dtype}, too coarse for entropies; pass float32 or float64"
        )
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.float64)
    return tensor.detach()


def check_form(value, name: str) -> None:
    """Refuse what holds numbers in another form than an array, and name the array to pass."""
    if issparse(value):
        wide = value.shape != value.T.shape and min(value.shape) > _FEW
        first = f"sklearn.decomposition.PCA({_FEW}).fit_transform({name}), or " if wide else ""
        raise TypeError(f"{name} is sparse ({value.format}); pass {first}{name}.toarray()")
    if isinstance(value, Tensor) and value.layout != torch.strided:
        raise TypeError(f"{name} is sparse ({value.layout}); pass {name}.to_dense()")
    if isinstance(getattr(value, "obsm", None), Mapping):  # a column may have this name
        raise TypeError(f"{name} is an AnnData; pass an array of it, such as adata.obsm['X_pca']")
    if callable(getattr(value, "adjacency", None)):  # likewise
        raise TypeError(f"{name} is a NetworkX graph; pass networkx.to_numpy_array(G)")
    if type(value).__module__.startswith("drot."):
        has = dir(value)
        wanted = {"cost": ["cost"], "X": [], "Z": []}.get(name, ["plan_", "plan", "affinity_"])
        wanted += ["embedding_", "Z", "X", "result_.plan"]
        part = next((part for part in wanted if part.split(".")[0] in has), None)
        ways = ["an affinity of it"] * ("block" in has)
        whole = ", or ".join(ways + ["its dense()"] * (not getattr(value, "of_distances", False)))
        says = f"its {part}" if part else whole if "dense" in has else "numbers"
        raise TypeError(f"{name} is of type {type(value).__name__}, no array; pass {says}")


def _native(value) -> np.ndarray:
    """A writable array that torch can share: other strides, byte orders and locks are copied."""
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        raise TypeError("it holds " + ("objects" if array.dtype.kind == "O" else "text"))
    array = np.require(array, array.dtype.newbyteorder("="), ("C", "W"))
    return array.copy() if min(array.strides, default=0) < 0 else array  # one column, backwards


def check_finite(tensor: Tensor, name: str) -> None:
    """Refuse NaN and infinite entries, and name the first row that has one."""
    says = f"{name} has a non-finite entry ({{entry}}) at {{at}}; remove or impute it"
    check_no_entry(~torch.isfinite(tensor), tensor, says)


def check_no_entry(bad: Tensor, tensor: Tensor, says: str) -> None:
    """Refuse an array that has a ``bad`` entry; the sentence names the first, ``{entry} {at}``."""
    if bad.any():
        where = bad.nonzero()[0].tolist()
        entry = f"{tensor[tuple(where)].item():g}".replace("nan", "NaN")  # as scikit-learn asks
        at = f"row {where[0]}" + (f", column {where[-1]}" if len(where) > 1 else "")
        raise ValueError(says.format(entry=entry, at=at))


def as_points(value, name: str, least: int = 2) -> Tensor:
    """A finite (n, p) point cloud of ``least`` points or more."""
    if hasattr(type(value), "tiles"):  # a cost, or an affinity; a table may have such a column
        raise TypeError(f"{name} is of type {type(value).__name__}; pass the points it compares")
    points = as_real(value, name)
    if points.ndim != 2:
        raise ValueError(
            f"{name} must be an (n, p) array of n points; got shape {tuple(points.shape)}"
            + ("; reshape n numbers to (n, 1)" if points.ndim == 1 else "")
            + (f"; pass {name}.reshape(len({name}), -1)" if points.ndim > 2 else "")
        )
    if points.shape[0] < least or points.shape[1] < 1:
        raise ValueError(
            f"{name} needs at least {least} point{'s'[: least - 1]} and 1 coordinate; "
            f"got shape {tuple(points.shape)}"
        )
    check_finite(points, name)
    return points


def check_squares(centred: Tensor, name: str, *, small: bool = False) -> None:
    """Refuse points (n, p) whose squared distances leave the range of their dtype.

    Below it they may stay where they are added to larger numbers: ``small``.
    """
    info, extent = torch.finfo(centred.dtype), centred.amax(dim=0) - centred.amin(dim=0)
    low = not small and 0 < float(extent.max()) < (info.tiny / info.eps) ** 0.5  # 0: all coincide
    if low or not torch.isfinite(4 * centred.square().sum(dim=1).max()):
        way, units = ("under", "smaller") if low else ("over", "larger")
        says = f"squared distances {way}flow {centred.dtype}; give {name} in {units} units"
        raise ValueError(says)


def check_square(matrix: Tensor, name: str, least: int = 1) -> None:
    """Refuse what is not an (n, n) array with n >= ``least``."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < least:
        raise ValueError(
            f"{name} must be a square (n, n) array of n >= {least} points; "
            f"got shape {tuple(matrix.shape)}"
        )


def check_likeness(value, name: str, cure: str = "pass an affinity of it") -> None:
    """Refuse a cost that this package made of distances, where large entries mean likeness."""
    if getattr(value, "of_distances", False):
        raise ValueError(f"{name} holds distances, small where points are near; {cure}")


def check_no_distances(matrix, name: str, cure: str = "pass an affinity of it") -> None:
    """Refuse distances in the place of a similarity: by name, or as some entries show them.

    Of distances, squared or not, the roots obey the triangle inequality, and rows differ the more,
    the larger the entry that they share. So they may in a graph of few weights, or of blocks of
    nodes with one row: it passes. ``matrix`` is an (n, n) tensor, or a Pairwise.
    """
    check_likeness(matrix, name, cure)
    n = matrix.shape[0]
    some = torch.linspace(0, n - 1, min(n, _SEEN), device=matrix.device).long()
    rows = matrix[some] if isinstance(matrix, Tensor) else matrix.with_zeros(matrix.rows(some))
    S = rows[:, some].double()  # (m, m)
    dense = bool((S >= 0).all()) and float((S > 0).double().mean()) > _DENSE
    if n < _LEAST or not dense or bool(S.diagonal().any()) or len(S.unique()) <= _WEIGHTS:
        return
    root, (i, j) = S.sqrt(), torch.triu_indices(len(S), len(S), 1)
    gaps = (torch.cdist(S, S).square() - 2 * S.square())[i, j].clamp_min(0).sqrt()
    agree = float(torch.corrcoef(torch.stack([S[i, j], gaps]))[0, 1])
    twins = float((gaps <= 1e-6 * gaps.max()).double().mean())
    if agree > _AGREE + _CHANCE / len(S) and twins < _TWINS:
        around = (root[:, :, None] + root).amin(dim=1)  # by way of another point
        if bool((root <= around + _DETOUR * root.max()).all()):
            raise ValueError(
                f"{name} holds distances, it seems: its diagonal is 0 and near points have small "
                f"entries, where a similarity has large ones; {cure}. If it is a similarity, drop "
                "its small entries, or give it a positive diagonal"
            )


def as_square(value, name: str, least: int = 1) -> Tensor:
    """A finite (n, n) array that is no cost: a matrix, or what has one as ``dense()``."""
    cure = "pass an affinity of it" + ", or drot.gram(X)" * (name == "similarity")
    check_likeness(value, name, cure)
    matrix = as_real(value.dense() if hasattr(value, "dense") else value, name)
    check_square(matrix, name, least)
    check_finite(matrix, name)
    return matrix


def as_symmetric(value, name: str) -> Tensor:
    """A finite (n, n) similarity, n >= 2, that is its own transpose, but for rounding."""
    matrix = as_square(value, name, 2)
    check_same_transposed(matrix, name)
    check_no_distances(matrix, name)
    return matrix


def as_device(device) -> torch.device | None:
    """A device of torch that can hold float64 on this machine; None stays None."""
    if device is None:
        return None
    if str(device).startswith("mps"):
        says = "has no float64, in which sums are kept here; pass None for the CPU, or 'cuda'"
        raise ValueError(f"device={device!r} {says}")
    try:
        return torch.empty(0, device=device).device
    except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
        reason = str(error).splitlines()[0][:100]
        says = f"device={device!r} cannot be used here ({reason}); pass None for the CPU, or a "
        raise ValueError(says + "device that torch has") from None


def check_non_negative(matrix: Tensor, name: str, what: str = "entry") -> None:
    """Refuse a matrix with a negative entry, and name the first."""
    check_no_entry(matrix < 0, matrix, f"{name} has a negative {what} ({{entry}}) at {{at}}")


def check_same_transposed(matrix: Tensor, name: str, *, strict: bool = False) -> None:
    """Refuse a square matrix that differs from its transpose, and name the two entries.

    Rounding, a share of what the entries were made of, is no difference: of the entries themselves,
    of the diagonal (a Gram matrix), or of the largest in both rows. ``strict`` takes a smaller
    share, and what is usual in both rows: no huge entry excuses the others of its row.
    """
    rtol = max(1e-8 if strict else 1e-6, 64 * torch.finfo(matrix.dtype).eps)
    size = matrix.abs()  # of the rows, (n,)
    size = size.median(dim=1).values if strict else size.amax(dim=1)
    root = matrix.diagonal().abs().sqrt()
    n, most, worst = len(matrix), 0.0, (0, 0)
    for rows in slices(slice(0, n), max(1, 2**18 // n)):
        one, other = matrix[rows], matrix[:, rows].T
        gap = (one - other).abs()
        made_of = torch.maximum(one.abs(), other.abs())
        made_of = torch.maximum(made_of, root[rows, None] * root)
        made_of = torch.maximum(made_of, torch.minimum(size[rows, None], size))
        gap.masked_fill_(gap <= rtol * made_of, 0.0)
        if gap.max() > most:
            i, j = divmod(int(gap.argmax()), n)
            most, worst = float(gap.max()), (rows.start + i, j)
    if most > 0:
        raise unequal(name, worst, float(matrix[worst]), float(matrix[worst[::-1]]))


def unequal(name: str, pair: tuple[int, int], one: float, other: float) -> ValueError:
    """Says which two entries of a matrix differ that should not."""
    i, j = pair
    return ValueError(
        f"{name} must be symmetric; entries ({i}, {j}) and ({j}, {i}) are {one:g} and {other:g}; "
        "of an array, drot.symmetrize gives the nearest symmetric one"
    )


def check_same_device(one, name: str, other, other_name: str) -> None:
    """Refuse two tensors or costs on different devices."""
    if one.device != other.device:
        raise ValueError(
            f"{name} is on {one.device} and {other_name} on {other.device}; move one of them"
        )


def check_choice(name: str, value, options: Any) -> None:
    """Refuse a name that is not of a ``Literal``, or of a collection, and list those that are."""
    options = get_args(options) or tuple(options)
    # an array compares entry by entry, and is no name
    if not any(isinstance(value, type(one)) and value == one for one in options):
        names = ", ".join(map(repr, options))
        raise ValueError(f"{name}={reprlib.repr(value)} does not exist; choose from {names}")


def as_flag(name: str, value) -> bool:
    """True or False, of Python or NumPy: ``"no"`` would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)


def check_callback(callback, name: str = "callback") -> None:
    """Refuse what cannot be called, before there is anything to tell it."""
    if not (callback is None or callable(callback)):
        raise TypeError(f"{name} must be a function, or None; got {callback!r}")


def as_count(name: str, value, low: int, high: int | None = None) -> int:
    """A whole number from ``low`` to ``high``; NumPy's integers count, booleans do not."""
    span = f"a whole number {f'of at least {low}' if high is None else f'from {low} to {high}'}"
    span = f"{low}, for the input allows no other number" if high == low else span
    array = getattr(value, "ndim", 0) and f"{type(value).__name__} of shape {tuple(value.shape)}"
    says = f"{name} must be {span}; got {array or repr(value)}"
    if isinstance(value, bool):
        raise TypeError(says)
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(says) from None
    if count < low or (high is not None and count > high):
        raise ValueError(says)
    return count


def as_number(name: str, value, low: float | None = None, high: float | None = None) -> float:
    """One number, of Python, NumPy or torch; from ``low`` to ``high``, if both are given."""
    number = value.item() if getattr(value, "ndim", 1) == 0 else value
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"{name} must be one number; got {type(number).__name__}")
    number = float(number)
    if low is not None and high is not None and not low <= number <= high:
        raise ValueError(f"{name} must be from {low:g} to {high:g}; got {number}")
    return number


def as_positive(name: str, value, dtype: torch.dtype = torch.float64) -> float:
    """A number that is finite and above 0 in ``dtype``."""
    value, info = as_number(name, value), torch.finfo(dtype)
    if not info.tiny <= value <= info.max:
        raise ValueError(f"{name} must be positive and finite; got {value} ({info.dtype})")
    return value


def check_fits(shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a dense array that memory cannot hold, and name the way around."""
    size = shape[0] * shape[1] * torch.finfo(dtype).bits // 8
    room = physical_memory(device)
    free = free_memory(device) if size > _FITS else room
    if 2 * size > room or size > free:
        raise MemoryError(
            f"a dense {shape[0]} x {shape[1]} array takes {size / 2**30:.1f} GiB; of the "
            f"{room / 2**30:.1f} GiB here it may have half, and {free / 2**30:.1f} GiB are free. "
            "Build the cost with block=... (rows per tile) and read the result through its tiles"
        )
