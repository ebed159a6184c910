"""Results on disk: ``.npz`` files that appear whole or not at all, and are read without pickle."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor


class Saved:
    """A result that ``save`` writes and :func:`load` reads, known by the name of its class."""

    kinds: ClassVar[dict[str, type[Saved]]] = {}

    def __init_subclass__(cls) -> None:
        Saved.kinds[cls.__name__] = cls

    def save(self, path: str | os.PathLike) -> None:
        """Write all fields to an ``.npz`` file, which appears whole or not at all."""
        data: dict[str, Any] = {"kind": np.array(type(self).__name__)}
        for name, value in self._stored().items():
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

    def _stored(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Saved:
        return cls(**values)


def load(path: str | os.PathLike) -> Any:
    """Read a result from an ``.npz`` file that its ``save`` wrote; tensors come back on the CPU.

    Source: book ``sec-results``.

    Parameters
    ----------
    path : path
        The file is read without pickle, so a hostile one can hold only numbers.

    Returns
    -------
    Affinity, Embedding, SemiRelaxedGW (or what extends it) or ConnectedPCA
        Of the class that was saved, equal to it to the bit; an embedding or a plan resumes the run
        as ``init`` of another call. A cost that :func:`drot.costs.shard` shared comes back whole,
        its entries equal to rounding.

    Raises
    ------
    ValueError
        If the file does not hold a result of this package.

    Examples
    --------
    >>> import tempfile, drot
    >>> affinity = drot.gaussian_affinity([[0.0, 1.0], [1.0, 0.0]], bandwidth=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     affinity.save(folder + "/affinity.npz")
    ...     back = drot.load(folder + "/affinity.npz")
    >>> torch.equal(back.plan, affinity.plan)
    True
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        kind: Any = Saved.kinds[arrays.pop("kind").item()]
        tuples = {field.name for field in fields(kind) if str(field.type).startswith("tuple")}
        values = {name: _field(array, name in tuples) for name, array in arrays.items()}
        return kind._restored(values)
    except (OSError, MemoryError):  # no such file, no room: the operating system says it best
        raise
    except Exception:  # numpy and constructors raise what they like for a file of something else
        raise ValueError(f"{path} does not hold a result saved by drot") from None


def _field(array: np.ndarray, is_tuple: bool) -> Any:
    """A field as it was before ``save``: a tensor on the CPU, a number, or a tuple of numbers."""
    if is_tuple:
        return tuple(array.tolist())
    return torch.from_numpy(array) if array.ndim else array.item()
