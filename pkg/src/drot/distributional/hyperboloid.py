r"""The geometry of the hyperboloid, with digits at any radius (Chapter 12).

Points are given by their space-like parts v (k, q), with :math:`|v| = \sinh r` at distance r from
the origin. Lorentz products cancel: at radius 9 eight digits of a float64 are gone, at 18 all. The
formulas here are sums of terms of one sign.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._core.checks import as_points


def points(Z, *, share: float = 0.5) -> Tensor:
    """Lorentz coordinates (k, q + 1); ``share`` of the exponents of the dtype is for heights."""
    Z = as_points(Z, "Z")
    if Z.shape[1] < 2:
        raise ValueError("Z needs at least 2 Lorentz coordinates: the height and one of the space")
    shares = Z[:, 1:] / Z[:, :1]  # whose squares are in range
    off = (Z[:, 0] ** -2 + shares.square().sum(dim=1) - 1).abs()
    if bool((Z[:, 0] <= 0).any()) or float(off.max()) > 1e-4:
        raise ValueError(
            f"row {int(off.argmax())} of Z is not on the hyperboloid -z_0^2 + |v|^2 = -1, z_0 > 0"
        )
    highest, most = int(Z[:, 0].argmax()), torch.finfo(Z.dtype).max ** share / 4
    if not float(Z[highest, 0]) <= most:
        raise ValueError(
            f"row {highest} of Z has the height {float(Z[highest, 0]):.0e}, and distances overflow "
            f"past {most:.0e}; move the origin into the middle of Z"
        )
    return Z


def lift(v: Tensor) -> Tensor:
    """The height put before the space-like parts, (k, q + 1)."""
    return torch.cat([torch.sqrt(1 + v.square().sum(dim=1, keepdim=True)), v], dim=1)


def _polar(v: Tensor) -> tuple[Tensor, Tensor]:
    """Lengths (k, 1), without a slope at 0, and directions (k, q), 0 there."""
    tiny = torch.finfo(v.dtype).tiny
    length = v.square().sum(dim=-1, keepdim=True).clamp_min(tiny).sqrt()
    return length, v / length


def _halves(v: Tensor, w: Tensor) -> Tensor:
    """sinh(d / 2)^2 = sinh((r - s) / 2)^2 + sinh r sinh s |n - m|^2 / 4, (k, l), differentiable.

    With a = |v| = sinh r and n = v / a, b = |w| = sinh s and m = w / b. Differences of radii and
    directions come from v - w, so that close points keep their digits.
    """
    (a, n), (b, m) = _polar(v[:, None]), _polar(w)  # (k, 1, 1) and (k, 1, q), (l, 1) and (l, q)
    gap = v[:, None] - w
    squares = ((v[:, None] + w) * gap).sum(dim=2, keepdim=True)  # a^2 - b^2
    rise = squares / (a * torch.sqrt(1 + b * b) + b * torch.sqrt(1 + a * a))  # sinh(r - s)
    rise = rise[..., 0].square()
    across = gap - squares / (a + b) * (n + m) / 2  # (a + b) (n - m) / 2
    ratio = (a / (a + b) * (b / (a + b)))[..., 0]
    return rise / (2 + 2 * torch.sqrt(1 + rise)) + ratio * across.square().sum(dim=2)


def squares(v: Tensor, w: Tensor | None = None) -> Tensor:
    """Squared distances (k, l), of all pairs of v where w is absent; differentiable."""
    half = _halves(v, v if w is None else w)
    tiny = torch.finfo(v.dtype).eps ** 2
    near = half <= tiny  # d^2 = 4 half there, and the root has no slope at 0
    far = 2 * torch.asinh(torch.sqrt(torch.where(near, 1, half)))
    return torch.where(near, 4 * half, far.square())


def boost(v: Tensor, m: Tensor) -> Tensor:
    """v after the isometry that carries the origin to m along their geodesic, (k, q).

    It is v + (z_0 + <m, v> / (1 + m_0)) m, of which the terms that cancel are taken together; -m
    undoes it.
    """
    (a, n), (b, e) = _polar(v), _polar(m)
    both = n + e  # of which half the square is 1 + <n, e>
    more = b * b / (1 + torch.sqrt(1 + b * b)) * both.square().sum(dim=-1, keepdim=True) / 2
    return torch.sinh(torch.asinh(b) - torch.asinh(a)) * e + a * (both + more * e)


def exp(x: Tensor, m: Tensor) -> Tensor:
    """Ends of the geodesics from m in the directions x, of lengths |x|; an isometry at x = 0."""
    length, direction = _polar(x)
    return boost(torch.sinh(length) * direction, m)


def log(v: Tensor, m: Tensor) -> Tensor:
    """x of ``exp``, (k, q): normal coordinates of v around m."""
    size, direction = _polar(boost(v, -m))
    return torch.asinh(size) * direction


def centres(v: Tensor, shares: Tensor) -> Tensor:
    """Means in the surrounding space, pushed back to the sheet along their rays, (c, q).

    Rows of ``shares`` (c, k) sum to 1, or to 0 for the origin. The Lorentz square of a mean is
    minus the mean of cosh d over pairs.
    """
    size = 1 + 2 * (shares @ _halves(v, v) * shares).sum(dim=1, keepdim=True)
    return shares @ v / size.sqrt()


def mean(v: Tensor) -> Tensor:
    """The point with the least sum of squared distances to those of v, (q,).

    Newton's method in normal coordinates: half of d^2 has the second derivative 1 along its
    geodesic and d coth d across. It is convex, so G, the mean of the directions to the points,
    vanishes at the minimum alone, and a short enough step of Newton's shortens G.
    """
    m = centres(v, v.new_full((1, len(v)), 1 / len(v)))
    x = log(v, m)
    G, eye = x.mean(dim=0), torch.eye(v.shape[1]).to(v)
    while True:
        length, direction = _polar(x)
        across = torch.where(length < 1e-6, 1, length / torch.tanh(length))
        H = across.mean() * eye + ((1 - across) * direction).T @ direction / len(v)
        step = torch.linalg.solve(H, G)[None]
        while True:
            closer = exp(step, m)
            new = log(v, closer)
            if float(new.mean(dim=0).norm()) < float(G.norm()):
                break
            step = step / 2
            if not float(step.norm()) > torch.finfo(v.dtype).eps * float(length.max()):
                return m[0]  # what is left is rounding
        m, x, G = closer, new, new.mean(dim=0)
