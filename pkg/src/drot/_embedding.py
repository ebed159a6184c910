"""What an embedding method returns, and how it is kept on disk."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

__all__ = ["Embedding", "load_embedding"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Embedding:
    """Positions that minimise an objective, and how far the descent came."""

    Z: Tensor  # (n, q) positions, centred, dimensionless
    value: float  # F(Z), in nats
    kl: float  # F(Z) plus the objective's constant: KL(P | Q) for the ones of this package
    dual: Tensor | None  # (n,) f of the plan of the embedding, where it has one
    residual: float  # what `tol` bounded: max |dF/dZ| for rows of mass 1
    n_iter: int
    passes: float  # evaluations of F and its gradient, line search included
    products: int  # products of the kernel of the embedding with a vector
    converged: bool
    trace: tuple[float, ...]  # residual at the start and after each iteration
    values: tuple[float, ...]  # F likewise

    def __repr__(self) -> str:
        return (
            f"Embedding({self.Z.shape[0]} x {self.Z.shape[1]}, value={self.value:.6g}, "
            f"residual={self.residual:.1e}, n_iter={self.n_iter}, passes={self.passes:.0f})"
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write all fields to an ``.npz`` file, which appears whole or not at all."""
        data = {"kind": np.array("Embedding")}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                data[field.name] = value.cpu().numpy() if isinstance(value, Tensor) else value
        path = Path(path)
        part = path.with_name(path.name + ".part")
        try:
            with part.open("wb") as file:
                np.savez(file, **data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def load_embedding(path: str | os.PathLike) -> Embedding:
    """Read what :meth:`Embedding.save` wrote; tensors come back on the CPU.

    Source: book ``sec-results``.

    Parameters
    ----------
    path : path
        An ``.npz`` file, read without pickle.

    Returns
    -------
    Embedding
        Equal to the saved one to the bit. As ``init`` of another call it resumes the run.

    Raises
    ------
    ValueError
        If the file does not hold an embedding.

    Examples
    --------
    >>> import tempfile
    >>> from drot.methods import snekhorn
    >>> found = snekhorn(torch.full((3, 3), 1 / 3, dtype=torch.float64), init="random")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.save(folder + "/embedding.npz")
    ...     back = load_embedding(folder + "/embedding.npz")
    >>> torch.equal(back.Z, found.Z) and back.trace == found.trace
    True
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            data = dict(file)
        if str(data.pop("kind")) != "Embedding":
            raise KeyError("kind")
        values = {"dual": None}
        for name, array in data.items():
            if name in ("trace", "values"):
                values[name] = tuple(array.tolist())
            else:
                values[name] = torch.from_numpy(array) if array.ndim else array.item()
        return Embedding(**values)
    except OSError:  # no such file: the operating system says it best
        raise
    except (AttributeError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path} does not hold an embedding saved by drot") from None
