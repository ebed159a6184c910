"""The container of a data set, and the checks of the numbers and seeds that generate one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, repr=False, eq=False)
class DataSet:
    """Points, their classes, and where both come from. Cannot be reassigned.

    >>> import drot
    >>> drot.datasets.digits()
    DataSet('digits': 1797 points in dimension 64, 10 classes)
    """

    X: Tensor  #: The points, shape (n, p), float64.
    y: Tensor  #: The class of each point, shape (n,), int64, counted from 0.
    label_names: tuple[str, ...]  #: ``label_names[k]`` is the name of class k.
    name: str  #: A short name.
    description: str  #: One or two sentences on what it is and where it comes from.
    #: Further arrays by name, first axis n unless the function says otherwise.
    details: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of points in each class, in the order of ``label_names``."""
        return tuple(torch.bincount(self.y, minlength=len(self.label_names)).tolist())

    def __repr__(self) -> str:
        (n, p), k = self.X.shape, len(self.label_names)
        return (
            f"DataSet({self.name!r}: {n} points in dimension {p}, "
            f"{k} class{'es' if k != 1 else ''})"
        )


def as_count(name: str, value, least: int = 1) -> int:
    """An integer, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer; got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value}")
    return int(value)


def as_groups(name: str, values) -> list:
    """A list with one entry or more."""
    try:
        values = list(values)
    except TypeError:
        raise TypeError(f"{name} must list one value for each group; got {values!r}") from None
    if not values:
        raise ValueError(f"{name} is empty; give one value for each group")
    return values


def as_probability(name: str, value) -> float:
    """A number in [0, 1]."""
    value = float(value)
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1; got {value}")
    return value


def make(name, description, X, y, label_names, **details) -> DataSet:
    """A `DataSet` from numpy arrays, in float64 and int64."""
    return DataSet(
        X=torch.from_numpy(np.ascontiguousarray(X, dtype=np.float64)),
        y=torch.from_numpy(np.ascontiguousarray(y, dtype=np.int64)),
        label_names=tuple(label_names),
        name=name,
        description=description,
        details={key: torch.from_numpy(np.ascontiguousarray(v)) for key, v in details.items()},
    )
