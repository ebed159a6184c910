"""The container of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    details: Mapping[str, Tensor]

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


def make(name, description, X, y, label_names, **details) -> DataSet:
    """A `DataSet` from numpy arrays, in float64 and int64."""
    X = torch.from_numpy(np.ascontiguousarray(X, np.float64))
    y = torch.from_numpy(np.ascontiguousarray(y, np.int64))
    more = {key: torch.from_numpy(np.ascontiguousarray(value)) for key, value in details.items()}
    return DataSet(X, y, tuple(label_names), name, description, MappingProxyType(more))
