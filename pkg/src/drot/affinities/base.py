"""What an affinity solver returns: a plan in log form, its duals and its certificate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from .._core.checks import as_square, check_fits, check_non_negative
from .._core.kernels import exp, log_sum_exp
from .._core.saving import read, unpack, write
from ..costs.array import Nearest, Pairwise, WithoutDiagonal, as_pairwise, tile_rows
from ..costs.distances import sqeuclidean, student_cost
from ..costs.factored import Factored


@dataclass(frozen=True, kw_only=True, repr=False)
class Affinity:
    """An (n, m) array of non-negative weights, known by its cost and a few vectors.

    The array itself is formed on demand: whole by ``plan`` and ``log_plan``, or a few rows at
    a time by ``tiles`` and ``log_tiles``, in which case it never exists as one. A dense cost is
    kept as it was given, not copied: do not change it in place afterwards.
    """

    cost: Pairwise
    residual: float  # what `tol` bounded, in max norm
    n_iter: int
    passes: float  # evaluations of the whole array that the solver needed
    converged: bool
    trace: tuple[float, ...]  # residual by iteration

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.cost.shape[0]} x {self.cost.shape[1]}, "
            f"residual={self.residual:.1e}, n_iter={self.n_iter}, passes={self.passes:.1f})"
        )

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        """Log weights of the rows ``rows`` whose costs are ``cost`` (b, m)."""
        raise TypeError(f"{type(self).__name__} does not define its weights")

    def log_tiles(self, most: int | None = None) -> Iterator[tuple[slice, Tensor]]:
        """Yield ``(rows, log P[rows])`` in row tiles of at most ``most`` rows."""
        for rows, tile in self.cost.tiles(most or tile_rows(self.cost)):
            yield rows, self.log_rows(rows, tile)

    def tiles(self, most: int | None = None) -> Iterator[tuple[slice, Tensor]]:
        """Yield ``(rows, P[rows])`` in row tiles of at most ``most`` rows."""
        for rows, tile in self.log_tiles(most):
            yield rows, tile.exp_()  # not kernels.exp: its last bit depends on the place, P = P^T

    def _whole(self, tiles: Iterator[tuple[slice, Tensor]]) -> Tensor:
        check_fits(self.cost.shape, self.cost.dtype, self.cost.device)
        own = self.cost.own
        shape = (own.stop - own.start, self.cost.shape[1])
        whole = torch.empty(shape, dtype=self.cost.dtype, device=self.cost.device)
        for rows, tile in tiles:
            whole[rows.start - own.start : rows.stop - own.start] = tile
        return self.cost.join([whole])

    @property
    def log_plan(self) -> Tensor:
        """log P, shape (n, m); ``-inf`` where a pair is forbidden."""
        return self._whole(self.log_tiles())

    @property
    def plan(self) -> Tensor:
        """P itself, shape (n, m)."""
        return self._whole(self.tiles())

    @property
    def perplexity(self) -> Tensor:
        """Exponential of Shannon's entropy of each row divided by its mass, shape (n,)."""
        return self.cost.join(_entropies(log_p) for _, log_p in self.log_tiles()).exp()

    def save(self, path: str | os.PathLike) -> None:
        """Write the duals, the certificate and what the cost is made of to an ``.npz`` file.

        The file appears whole or not at all. A cost made by a callable cannot be stored.
        """
        if self.cost.parts is None:
            raise ValueError(
                "a cost made by a callable cannot be saved; solve with cost.dense() and save that"
            )
        values: dict[str, object] = {"block": self.cost.block or 0}
        values |= {f"cost.{name}": part for name, part in self.cost.parts.items()}
        names = [field.name for field in fields(self) if field.name != "cost"]
        write(path, type(self).__name__, values | {name: getattr(self, name) for name in names})


def _kinds(base: type[Affinity]) -> dict[str, type[Affinity]]:
    found = {base.__name__: base}
    for kind in base.__subclasses__():
        found |= _kinds(kind)
    return found


def _entropies(log_p: Tensor) -> Tensor:
    """Shannon's entropy of rows (b, m), each divided by its mass; (b,)."""
    log_p = log_p - log_sum_exp(log_p.clone())[:, None]
    return -exp(log_p).mul_(log_p.clamp_min(-1e4)).sum(dim=1)  # 0 log 0 = 0


def load_affinity(path: str | os.PathLike) -> Affinity:
    """Read a result that :meth:`Affinity.save` wrote; tensors come back on the CPU.

    Source: book ``sec-results``.

    Parameters
    ----------
    path : path
        An ``.npz`` file. It is read without pickle, so a hostile file can hold only numbers.

    Returns
    -------
    Affinity
        Of the class that was saved, equal to it to the bit. A cost that :func:`drot.shard` shared
        comes back whole, and its entries equal to rounding.

    Raises
    ------
    ValueError
        If the file does not hold an affinity.

    Examples
    --------
    >>> import tempfile, drot
    >>> affinity = drot.gaussian_affinity([[0.0, 1.0], [1.0, 0.0]], bandwidth=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     affinity.save(folder + "/affinity.npz")
    ...     back = load_affinity(folder + "/affinity.npz")
    >>> torch.equal(back.plan, affinity.plan)
    True
    """
    return read(path, "an affinity", _affinity)


def _affinity(name: str, data: dict[str, np.ndarray]) -> Affinity:
    kind = _kinds(Affinity)[name]
    parts = {
        name.removeprefix("cost."): torch.from_numpy(array)
        for name, array in data.items()
        if name.startswith("cost.")
    }
    cost = restore(parts, int(data["block"]) or None)
    names = [field.name for field in fields(kind) if field.name != "cost"]
    return kind(cost=cost, **unpack({name: data[name] for name in names}))


def restore(parts: dict[str, Tensor], block: int | None) -> Pairwise:
    """Build a cost again from the arrays that a saved result holds."""
    if "without_diagonal" in parts:
        rest = {key: part for key, part in parts.items() if key != "without_diagonal"}
        return WithoutDiagonal(restore(rest, block))
    match parts:
        case {"values": values, "columns": columns, "m": m}:
            return Nearest(values, columns, int(m), block)
        case {"sqeuclidean": x}:
            return sqeuclidean(x, parts.get("other"), block=block)
        case {"student": x}:
            return student_cost(x, parts.get("other"), block=block)
        case {"left": left, **rest}:
            symmetric = "symmetric" in rest
            return Factored(
                left, rest.get("right"), block=block, points=rest.get("points"), symmetric=symmetric
            )
        case {"matrix": matrix}:
            return as_pairwise(matrix, square=False)
    raise ValueError(f"no cost is made of the arrays {', '.join(sorted(parts))}")


def symmetrize(plan) -> Tensor:
    r"""Nearest symmetric matrix in the Euclidean norm, the habit of t-SNE.

    .. math:: \mathrm{Proj}^{\ell_2}_{\mathcal S}(P) = \tfrac12 (P + P^\top)
              = \arg\min_{Q = Q^\top} \| Q - P \|_2.

    It keeps the total mass but neither the row sums nor the row entropies of an affinity.

    Source: Symmetric-SNE and appendix A.1 of SNEkhorn (Van Assel et al., 2023); book
    ``prp-euclid-sym``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n)

    Returns
    -------
    Tensor, shape (n, n)

    Raises
    ------
    ValueError
        If the plan is not square.

    Examples
    --------
    >>> symmetrize([[0.0, 1.0], [0.5, 0.5]]).tolist()
    [[0.0, 0.75], [0.75, 0.5]]
    """
    matrix = as_square(plan.plan if isinstance(plan, Affinity) else plan, "plan", 2)
    return (matrix + matrix.T) / 2


def read_plan(plan, name: str = "plan") -> Tensor:
    """A finite non-negative (n, n) tensor from an affinity or an array."""
    matrix = as_square(plan.plan if isinstance(plan, Affinity) else plan, name, 2)
    check_non_negative(matrix, name)
    return matrix
