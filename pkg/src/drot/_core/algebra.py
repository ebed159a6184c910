"""Arithmetic of tiles and of small matrices, and leading eigenvectors of a large one."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

EXTRA = 8  # vectors of a block beyond those asked for: a pass costs the same with them
_BLOCKS = 20  # of the space, before it is cut down to its best
_SPACE = 240  # vectors of it, beyond which its own eigenvectors cost more than products
_DENSE = 30  # blocks that make up the whole space: all eigenvectors cost less up to here
_PASSES = 300
_TIE = 1e-6  # of entries whose sizes count as one
_LOG2_E = 1 / math.log(2)

RANGE = 700.0  # e^RANGE and e^-RANGE are numbers of float64
FAR = 1e3  # e^-FAR is 0 in every dtype, and so is its product with FAR, as 0 log 0 should be


def total(x: Tensor) -> float:
    """The sum of all entries, in float64."""
    return float(x.sum(dtype=torch.float64))


def ratio(x: Tensor, mass: Tensor) -> Tensor:
    """x / mass, and 0 where there is no mass."""
    return torch.where(mass > 0, x / torch.where(mass > 0, mass, 1), 0)


def signs(columns: Tensor) -> Tensor:
    """1 or -1 of each column, (1, q), by its first entry of largest size, which rounding does not
    choose: eigenvectors have no sign.
    """
    size = columns.abs()
    first = (size >= (1 - _TIE) * size.amax(dim=0)).int().argmax(dim=0, keepdim=True)
    return torch.where(columns.gather(0, first) < 0, -1, 1)


def exp(x: Tensor, factor: float = 1.0, out: Tensor | None = None) -> Tensor:
    """e^(factor x), in ``out`` (which may be x) if given, as a power of 2.

    The relative error is at most 2 |factor x| + 4 roundings, where nothing underflows. On a CPU
    ``torch.exp2`` takes a third of the time of ``torch.exp``, and a fiftieth where the result is
    0 or nearly so, as weights between far clusters are.
    """
    return torch.mul(x, factor * _LOG2_E, out=out).exp2_()


def log_sum_exp(x: Tensor) -> Tensor:
    """log sum_j exp(x_ij), (b,), of rows that are not all minus infinity; x is overwritten."""
    top = x.amax(dim=1)
    x.sub_(top[:, None])
    return exp(x, out=x).sum(dim=1).log_().add_(top)


def log_sum_and_entropy(x: Tensor) -> tuple[Tensor, Tensor]:
    """The same, and Shannon's entropies (b,) of the rows of exp(x), each divided by its sum."""
    top = x.amax(dim=1)
    weight = exp(x.sub_(top[:, None]))
    mass = weight.sum(dim=1)
    log_mass = mass.log()
    mean = x.clamp_min_(-FAR).mul_(weight).sum(dim=1) / mass
    return log_mass + top, log_mass - mean


def radius(Z: Tensor) -> float:
    """Root mean square distance of centred points (n, q) from their centre."""
    return math.sqrt(total(Z * Z) / len(Z))


def inverse(B: Tensor) -> Callable[[Tensor], Tensor]:
    """g -> B^-1 g by the factor of a positive definite B, which is overwritten."""
    factor = torch.linalg.cholesky(B, out=B)

    def solve(g: Tensor) -> Tensor:
        # torch.cholesky_solve copies the factor, which takes longer than to read it twice
        half = torch.linalg.solve_triangular(factor, g, upper=False)
        return torch.linalg.solve_triangular(factor.mT, half, upper=True)

    return solve


def leading(
    product: Callable[[Tensor], Tensor], start: Tensor, k: int, tol: float
) -> tuple[Tensor, Tensor]:
    """The k largest eigenvalues, ascending, and their eigenvectors (n, k), float64.

    Block Lanczos with full orthogonalisation and thick restarts: ``product`` takes and gives
    (n, b) arrays, ``start`` (n, b) with b >= k spans the first block. Ends when A u - mu u has
    norm ``tol`` for all, or after 300 products, with what there is. Memory: at most 40 blocks
    of n x b.
    """
    n, b = start.shape
    blocks = min(_BLOCKS, max(6, _SPACE // b))
    if n <= _DENSE * b:
        values, vectors = torch.linalg.eigh(
            product(torch.eye(n, dtype=start.dtype, device=start.device))
        )
        return values[-k:], vectors[:, -k:]
    V = torch.linalg.qr(start).Q
    AV = V[:, :0]
    block = V
    for _ in range(_PASSES):
        image = product(block)
        AV = torch.cat([AV, image], dim=1)
        small = V.T @ AV
        values, U = torch.linalg.eigh((small + small.T) / 2)
        lead = U[:, -k:]
        vectors = V @ lead
        gap = (AV @ lead - vectors * values[-k:]).norm(dim=0).max()
        if gap <= tol:
            break
        block = image  # an orthonormal block in the complement of V's columns
        for _ in range(3):  # twice is enough, but for columns that had nothing outside
            block = torch.linalg.qr(block - V @ (V.T @ block)).Q
        if V.shape[1] == blocks * b:  # cut down to the best half
            keep = U[:, -(blocks // 2 * b) :]
            V, AV = V @ keep, AV @ keep
        V = torch.cat([V, block], dim=1)
    return values[-k:], vectors
