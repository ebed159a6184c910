"""Results on disk: ``.npz`` files that appear whole or not at all, and are read without pickle."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

Result = TypeVar("Result")
Arrays = dict[str, np.ndarray]

_TUPLES = ("trace", "values", "work")  # fields that are tuples of numbers, not arrays


def write(path: str | os.PathLike, kind: str, values: Mapping[str, object]) -> None:
    """Write the name of a class and its fields; those that are None are left out."""
    data: dict[str, Any] = {"kind": np.array(kind)}  # Any: savez takes whatever numpy reads
    for name, value in values.items():
        if value is not None:
            data[name] = value.cpu().numpy() if isinstance(value, Tensor) else value
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            np.savez(file, **data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read(path: str | os.PathLike, what: str, build: Callable[[str, Arrays], Result]) -> Result:
    """What ``build`` makes of the name of a class and its arrays.

    A file that :func:`write` did not write, or not for this class, is refused in one sentence,
    which calls the result ``what``.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            data = dict(file)
        return build(str(data.pop("kind")), data)
    except OSError:  # no such file: the operating system says it best
        raise
    except Exception:  # numpy and constructors raise what they like for a file of something else
        raise ValueError(f"{path} does not hold {what} saved by drot") from None


def unpack(data: Arrays) -> dict[str, Any]:
    """Fields again: tensors on the CPU, numbers, and tuples of numbers."""
    values: dict[str, Any] = {}
    for name, array in data.items():
        if name in _TUPLES:
            values[name] = tuple(array.tolist())
        else:
            values[name] = torch.from_numpy(array) if array.ndim else array.item()
    return values
