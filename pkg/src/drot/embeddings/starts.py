"""Where an embedding starts: chance, principal components, or the plan's own eigenvectors."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .._core.algebra import EXTRA, inverse, leading, signs
from .._core.chance import Seed, as_rng
from .._core.checks import as_count
from .._core.threads import by_size
from ..costs.array import Pairwise
from ..spectral.kernel_pca import at_unit_variance
from .plans import as_plan

START_SPREAD = 0.1  # of a start by chance, which attraction is to sort before it has grown
_SHIFT = 1e-5  # mu: well below what is slow, well above rounding
_LIKED = {torch.float64: 1e-9, torch.float32: 3e-7}  # below what is slow, above rounding
_RESIDUAL = {torch.float64: 1e-10, torch.float32: 1e-5}
_CLOSE = 1e-2  # distance to all neighbours, in radii of the map, that counts as none
_FLAT = 1e-6  # extent across, in units of that along, that counts as none
_SHAPES = (1e-2, 1e2)  # spreads, in bandwidths of the kernel, beyond which only the shape counts


def random_start(n: int, *, n_components: int = 2, random_state: Seed = 0) -> Tensor:
    """Independent standard normal coordinates, the papers' start.

    On the CPU in float64, from where :func:`drot.embed` takes them to the plan: all start alike.

    Source: section 5 of SNEkhorn (Van Assel et al., 2023); book ``sec-starts``.

    Parameters
    ----------
    n : int
        Points, at least 2.
    n_components : int
        Coordinates, at least 1.
    random_state : int, numpy Generator or torch Generator
        Same seed, same bits.

    Returns
    -------
    Tensor, shape (n, n_components), float64

    Raises
    ------
    ValueError, TypeError
        If a number is out of range or the seed is no seed.

    Examples
    --------
    >>> torch.equal(random_start(5, random_state=3), random_start(5, random_state=3))
    True
    """
    n, q = as_count("n", n, 2), as_count("n_components", n_components, 1)
    return torch.from_numpy(as_rng(random_state).standard_normal((n, q)))


@by_size
def spectral_start(plan, *, n_components: int = 2, random_state: Seed = 0) -> Tensor:
    """Laplacian eigenmaps of a plan, as a start whose first coordinate has variance 1.

    These are the slowest eigenvectors of the plan's normalised Laplacian, divided by the root of
    the degrees.

    Points that the plan holds together start together; its diagonal does not count. Where the
    plan falls into parts that exchange (almost) no mass the eigenvectors separate the parts and
    little else; :func:`drot.embed` adds noise then. Of more parts than coordinates no eigenvector
    is the slowest: those nearest to ``n_components`` random vectors are taken, which give each part
    a place by the seed.

    An affinity of more than 4096 points whose cost is met in tiles is never formed: block Lanczos,
    one pass over the plan for each product with a block of vectors (15 to 60 of them), to a
    residual of 1e-10 (1e-5 in float32), or after 300. Memory: some tiles and about 450 n numbers. A
    plan that is kept is factorised on its device in float64, n^3 / 3 multiplications and one more
    array, and Lanczos runs on its inverse.

    Source: Laplacian eigenmaps (Belkin and Niyogi, 2003) as scikit-learn computes them; book
    ``sec-starts``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n), symmetric
        Made symmetric if it is not.
    n_components : int
        At most n - 2.
    random_state : int, numpy Generator or torch Generator
        The eigensolver starts from a random vector.

    Returns
    -------
    Tensor, shape (n, n_components)
        Centred, on the device and in the dtype of the plan.

    Raises
    ------
    ValueError
        If the plan is not square, or too small for ``n_components``.

    Examples
    --------
    >>> plan = torch.eye(6, dtype=torch.float64) + 0.01
    >>> plan[:3, :3] += 1
    >>> plan[3:, 3:] += 1
    >>> Z = spectral_start(plan, n_components=1)[:, 0]
    >>> bool((Z[:3].sign() == -Z[3:].sign()).all())  # the two halves
    True
    """
    P = as_plan(plan)
    n = P.shape[0]
    most, q = max(1, n - 2), as_count("n_components", n_components, 1)
    if q > most:
        raise ValueError(
            f"n_components={q} is too many for the spectral start of {n} points, which "
            f"has up to {most}; pass init='random', or positions"
        )
    kept = P.matrix
    if kept is not None:  # in float64: rounding must not tell parts apart
        W = (kept + kept.T).double().fill_diagonal_(0).div_(2)
        degrees = W.sum(dim=1, keepdim=True)  # (n, 1)
    else:
        degrees = P.symmetric_product(torch.ones(n, 1, dtype=P.dtype, device=P.device)).double()
    lonely = degrees <= torch.finfo(P.dtype).eps * P.largest
    share = torch.where(lonely, 0.0, degrees.rsqrt())
    constant = torch.where(lonely, 0.0, degrees.sqrt())  # the eigenvector that is no coordinate
    constant /= constant.norm().clamp(min=torch.finfo(torch.float64).tiny)
    block = torch.from_numpy(as_rng(random_state).standard_normal((n, q + EXTRA))).to(share)
    precision = P.dtype if kept is None else torch.float64
    # parts share an eigenvalue: of its vectors those are taken that are near to the first q here
    liked = torch.cat([constant, block[:, :q]], dim=1)
    worth = _LIKED[precision] * torch.arange(q + 1, 0, -1).to(share) / q
    worth[0] = -3.0  # eigenvalues of L are at most 2
    if kept is not None:
        L = W.mul_(-share).mul_(share.T)  # the normalised Laplacian
        L.diagonal().add_(1 + _SHIFT)
        L.addmm_(liked * worth, liked.T, alpha=-1)
        product, tol = inverse(L), 1e-7
    else:  # the largest of I - L, by a pass for a block of products
        tol = _RESIDUAL[precision]

        def product(v: Tensor) -> Tensor:
            met = share * P.symmetric_product((share * v).to(P.dtype)).double()
            return met.addmm_(liked * worth, liked.T @ v)

    Z = leading(product, block, q, tol)[1] * share.masked_fill(lonely, 1)
    Z = Z.flip(1)  # the slowest first
    return at_unit_variance(Z * signs(Z)).to(P.dtype).contiguous()


def at_scale(Z: Tensor, value: Callable[[Tensor], float]) -> Tensor:
    """Z, centred: at spread 0.1 if its own is far too small; too large, smaller where better.

    Forces vanish at either end, so the slope does not tell a start from a solution. ``value``,
    the objective, does: a large Z is divided by 10 as long as it falls. A solution with far parts
    stays.
    """

    def spread(Z: Tensor) -> float:
        unit = float(Z.abs().max()) or 1.0  # squares neither overflow nor vanish
        return unit * float((Z / unit).double().square().mean().sqrt())

    if 0 < spread(Z) < _SHAPES[0]:
        return Z * (START_SPREAD / spread(Z))
    lowest = value(Z) if spread(Z) > _SHAPES[1] else 0.0
    noise = torch.finfo(Z.dtype).eps ** 0.5  # t-SNE's objective is all but level far out
    while spread(Z) > _SHAPES[1] and not (found := value(Z / 10)) > lowest + noise * abs(lowest):
        Z, lowest = Z / 10, found
    return Z


def with_noise(Z: Tensor, weights: Tensor | Pairwise, random_state: Seed) -> Tensor:
    """Z, centred, with noise for points that lie where all their neighbours lie, and across flats.

    There the forces on the points of a part of the plan vanish (book ``prp-one-place``); and no
    force leads out of a line or plane that holds all points. ``weights`` are symmetric, (n, n).
    One product.
    """
    n, q = Z.shape
    squares = Z.square().sum(dim=1, keepdim=True)  # (n, 1)
    size = float(squares.mean().sqrt())
    product = weights @ torch.cat([Z, squares, torch.ones_like(squares)], dim=1)
    pulled, far, sums = product.split([q, 1, 1], dim=1)
    tied = sums - weights.diagonal()[:, None]  # to others
    # sum_j W_ij |z_i - z_j|^2
    gaps = sums * squares - 2 * (Z * pulled).sum(dim=1, keepdim=True) + far
    together = gaps <= tied * (_CLOSE * size) ** 2
    together &= tied > torch.finfo(Z.dtype).eps ** 0.5 * sums  # who has no neighbour stays
    extents, axes = torch.linalg.eigh(Z.double().T @ Z.double())  # squares, ascending; (q, q)
    extents[: max(0, q - n + 1)] = torch.inf  # n centred points span n - 1 dimensions
    across = axes[:, extents <= _FLAT**2 * extents[-1]].to(Z.dtype)  # (q, missing)
    if not together.any() and not across.shape[1]:
        return Z
    noise = random_start(n, n_components=q, random_state=random_state).to(Z)
    if size == 0:  # nothing is known but the scale, that of the kernel
        return START_SPREAD * (noise - noise.mean(dim=0))
    return Z + _CLOSE * size * torch.where(together, noise, noise @ across @ across.T)
