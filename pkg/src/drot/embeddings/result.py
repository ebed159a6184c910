"""What an embedding method returns, and how it is kept on disk."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

import numpy as np
from torch import Tensor

from .._core.saving import read, unpack, write
from .descent import radius


@dataclass(frozen=True, kw_only=True, repr=False)
class Embedding:
    """Positions that minimise an objective, and how far the descent came."""

    Z: Tensor  # (n, q) positions, centred, dimensionless
    value: float  # F(Z), in nats
    kl: float  # F(Z) plus the objective's constant: KL(P | Q) for the ones of this package
    dual: Tensor | None  # (n,) f of the plan of the embedding, where it has one
    residual: float  # what `tol` bounded: |dF/dZ| as a share of the attraction's
    growth: float  # -<dF/dZ, Z> / mass of P: what an enlargement, per its share, lowers F by
    n_iter: int
    passes: float  # evaluations of the n x n kernel, line search included
    products: int  # products of the kernel of the embedding with a vector
    converged: bool
    trace: tuple[float, ...]  # residual at the start and after each iteration
    values: tuple[float, ...]  # F likewise

    @property
    def size(self) -> float:
        """Root mean square distance of the points from their centre."""
        return radius(self.Z)

    def __repr__(self) -> str:
        return (
            f"Embedding({self.Z.shape[0]} x {self.Z.shape[1]}, value={self.value:.6g}, "
            f"size={self.size:.3g}, "
            f"residual={self.residual:.1e}, n_iter={self.n_iter}, passes={self.passes:.0f})"
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write all fields to an ``.npz`` file, which appears whole or not at all."""
        write(path, "Embedding", {field.name: getattr(self, field.name) for field in fields(self)})


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
    >>> import tempfile, torch
    >>> from drot.methods import snekhorn
    >>> found = snekhorn(torch.full((3, 3), 1 / 3, dtype=torch.float64), init="random")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.save(folder + "/embedding.npz")
    ...     back = load_embedding(folder + "/embedding.npz")
    >>> torch.equal(back.Z, found.Z) and back.trace == found.trace
    True
    """
    return read(path, "an embedding", _embedding)


def _embedding(kind: str, data: dict[str, np.ndarray]) -> Embedding:
    if kind != "Embedding":
        raise KeyError(kind)
    return Embedding(**{"dual": None, **unpack(data)})
