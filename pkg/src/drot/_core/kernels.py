r"""One reading of the plan for Student's kernel in the plane: compiled loops for the CPU.

Where PyTorch sweeps over tiles some ten times, a loop over pairs needs one sweep: distance,
kernel, sums, attraction and repulsion of a pair stay in registers. The logarithms of the value
take half of its time; powers, for the curves of UMAP, are exponentials of logarithms. Numba
compiles each loop on its first call (a second or two) and keeps it on disk, by processor. Other
kernels stay with PyTorch, whose ``exp2`` is as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import torch
from torch import Tensor

_FAST = {"reassoc", "contract", "arcp", "nsz"}  # infinities and NaN stay what they are
_LN_2 = float(np.log(2))
_ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)
_SHIFT, _52 = np.uint64(1024), np.uint64(52)
_BITS, _NUMBER = np.uint64(0x4330000000000000), 2.0**52 + 1024  # an exponent read as a number
_LN_2_LOW, _MIDDLE = 2.3190468138462996e-17, 1.5 * 2.0**52
_FACTORS = 8  # of a product whose logarithm is taken once


def _compiled(fastmath) -> Callable:
    """Numba's compiler; without a folder for its cache it compiles in each process."""

    def decorate(function):
        options = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
        try:
            return numba.njit(function, cache=True, **options)
        except RuntimeError:  # pragma: no cover, no folder can be written to
            return numba.njit(function, **options)

    return decorate


@_compiled({"contract"})  # regrouped, the sum with the exponent would lose digits
def _log(m, e):
    """log(m 2^(e - 2^52 - 1024)) for sqrt(1/2) <= m <= sqrt(2), by artanh: 5e-15 of itself."""
    t = (m - 1.0) / (m + 1.0)
    z = t * t
    tail = 2 / 11 + z * (2 / 13 + z * (2 / 15 + z * (2 / 17 + z * (2 / 19))))
    series = 2.0 + z * (2 / 3 + z * (2 / 5 + z * (2 / 7 + z * (2 / 9 + z * tail))))
    return (e - _NUMBER) * _LN_2 + t * series


@_compiled(_FAST)
def _split(u, e):
    """u = m 2^k: m in the place of u, k in ``e`` as :func:`_log` reads it.

    Loops as simple as these become vector instructions; one loop of all of it would not.
    """
    bits, exponents = u.view(np.uint64), e.view(np.uint64)
    for j in range(len(u)):
        power = (bits[j] - _ROOT_HALF) >> _52  # modulo 2^12
        bits[j] -= power << _52
        exponents[j] = ((power + _SHIFT) & np.uint64(4095)) | _BITS


@_compiled(_FAST)
def _weighted_log(p, u, e):
    """sum_j p_j log u_j for u > 0; ``u`` is overwritten, ``e`` (n,) is memory."""
    _split(u, e)
    total = 0.0
    for j in range(len(u)):
        total += p[j] * _log(u[j], e[j])
    return total


@_compiled(_FAST)
def _student_row(xi, yi, x, y, p, u, row):
    """The sums of _meet for one point and some others; u and K are written."""
    one = x.dtype.type(1)
    s = ax = ay = rx = ry = x.dtype.type(0)
    for j in range(len(x)):
        dx, dy = xi - x[j], yi - y[j]
        v = one + dx * dx + dy * dy
        k = one / v
        u[j], row[j] = v, k
        w, k2 = p[j] * k, k * k
        s += k
        ax += w * dx
        ay += w * dy
        rx += k2 * dx
        ry += k2 * dy
    return s, ax, ay, rx, ry


@_compiled(_FAST)
def _meet(start, stop, P, x, y, kernel, values, out):
    """Of some rows: sum P log u; ``out`` gets sum K, sum P K (z_i - z_j), sum K^2 (z_i - z_j).

    All over j != i, with u = 1 + |z_i - z_j|^2 and K = 1 / u. ``kernel`` gets its rows if it has
    room for all.
    """
    n = len(x)
    u, e, row = np.empty(n), np.empty(n), np.empty_like(x)
    for i in range(start, stop):
        if len(kernel) == n:
            row = kernel[i]
        p, past = P[i], i + 1
        before = _student_row(x[i], y[i], x[:i], y[:i], p[:i], u[:i], row[:i])
        after = _student_row(x[i], y[i], x[past:], y[past:], p[past:], u[past:], row[past:])
        for k in range(5):
            out[k, i] = before[k] + after[k]
        u[i] = row[i] = 1
        values[i] = _weighted_log(p, u, e)


@_compiled(_FAST)
def _repel(start, stop, kernel, v, x, y, push):
    """Of some rows: sum_j v_j K_ij^2 (z_i - z_j)."""
    for i in range(start, stop):
        row, xi, yi = kernel[i], x[i], y[i]
        rx = ry = x.dtype.type(0)
        for j in range(len(x)):
            w = v[j] * row[j] * row[j]
            rx += w * (xi - x[j])
            ry += w * (yi - y[j])
        push[0, i], push[1, i] = rx, ry


@_compiled(_FAST)
def _logarithms(u, e):
    """log u in the place of u > 0; ``e`` is memory."""
    _split(u, e)
    for j in range(len(u)):
        u[j] = _log(u[j], e[j])


@_compiled({"contract"})
def _power_of_2(x):
    """The k for which e^x is next to 2^k, added to 3 * 2^51."""
    return x / _LN_2 + _MIDDLE


@_compiled({"contract"})
def _exp(x, power):
    """e^x / 2^k for the k in ``power``, by Taylor's series."""
    k = power - _MIDDLE
    r = (x - k * _LN_2) - k * _LN_2_LOW
    head = 1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * (1 / 3628800)))
    tail = r**4 * (1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800)))
    high = 1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (head + tail)))
    return 1.0 + r * (1.0 + r * (0.5 + r * (1 / 6 + r * high)))


@_compiled(_FAST)
def _exponentials(x, e):
    """e^x in the place of x, |x| <= 700; ``e`` is memory."""
    bits, powers = x.view(np.uint64), e.view(np.uint64)
    for j in range(len(x)):
        e[j] = _power_of_2(x[j])
    for j in range(len(x)):
        x[j] = _exp(x[j], e[j])
    for j in range(len(x)):
        bits[j] += powers[j] << _52


@_compiled(_FAST)
def _join(start, stop, P, x, y, a, b, guard, values, odds, out):
    """Of some rows, with u = |z_i - z_j|^2 + guard and w = a u^b, over j != i: sum P log w, and
    sum log(1 + 1 / w); ``out`` gets the sums of b P / u and b / (u (1 + w)) times (z_i - z_j).
    """
    n, part = len(x), (len(x) + _FACTORS - 1) // _FACTORS
    u, w, e, products = np.empty(n), np.empty(n), np.empty(n), np.empty(part)
    ratios, ones = np.zeros(_FACTORS * part), np.ones(part)
    for i in range(start, stop):
        p, xi, yi = P[i], x[i], y[i]
        for j in range(n):
            dx, dy = xi - x[j], yi - y[j]
            w[j] = u[j] = dx * dx + dy * dy + guard
        _logarithms(w, e)
        value = 0.0
        for j in range(n):
            w[j] = min(np.log(a) + b * w[j], 700.0)
            value += p[j] * w[j]
        _exponentials(w, e)
        ax = ay = rx = ry = x.dtype.type(0)
        for j in range(n):
            dx, dy = xi - x[j], yi - y[j]
            slope = b / u[j]
            pull, push = p[j] * slope, slope / (1.0 + w[j])
            ratios[j] = 1.0 / w[j]
            ax += pull * dx
            ay += pull * dy
            rx += push * dx
            ry += push * dy
        ratios[i] = 0
        products[:] = 1  # of 1 + 1 / w: one logarithm for eight pairs
        for f in range(_FACTORS):
            some = ratios[f * part : (f + 1) * part]
            for j in range(part):
                products[j] *= 1 + some[j]
        values[i], odds[i] = value, _weighted_log(ones, products, e[:part])
        out[0, i], out[1, i], out[2, i], out[3, i] = ax, ay, rx, ry


def suits(Z: Tensor, plan) -> bool:
    """Whether the loops take these points: on a CPU, in the plane, beside a plan that is kept."""
    if not isinstance(plan, Tensor) or Z.device.type != "cpu" or Z.shape[1] != 2:
        return False
    small = torch.finfo(Z.dtype).tiny ** -0.25 / 4  # no square of a kernel vanishes
    return plan.is_contiguous() and bool(Z.abs().max() < small)


def _over_rows(loop: Callable, n: int, *arguments) -> None:
    """Run a loop over all rows, an equal share for each of PyTorch's threads."""
    threads = min(torch.get_num_threads(), 1 + n // 256)
    ends = [n * t // threads for t in range(threads + 1)]
    if threads == 1:
        loop(0, n, *arguments)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda low, high: loop(low, high, *arguments), ends[:-1], ends[1:]))


class StudentPairs:
    """What one reading of a plan P (n, n) tells of Student's kernel K of points Z (n, 2).

    ``kernel``, memory for K (n, n) if products with it will be needed, may have no rows instead.
    """

    shift, passes = None, 1.0  # no row vanishes; one reading

    def __init__(self, Z: Tensor, P: Tensor, kernel: Tensor, *, diagonal: bool):
        self.n, self.kernel = len(Z), kernel
        self.columns = Z.detach().T.contiguous().numpy()  # (2, n)
        values = np.empty(self.n)
        out = torch.empty(5, self.n, dtype=Z.dtype)
        arguments = P.numpy(), *self.columns, kernel.numpy(), values, out.numpy()
        _over_rows(_meet, self.n, *arguments)
        self.value = float(values.sum())  # <P, C_Z>
        self.attraction, self._push = 4 * out[1:3].T, out[3:]  # its derivative, (n, q)
        self.sums = out[0].add_(1) if diagonal else out[0]

    def sum(self, dim: int = 1) -> Tensor:
        """Sums of the rows of K, (n,)."""
        return self.sums

    def __matmul__(self, v: Tensor) -> Tensor:
        return self.kernel @ v

    def forces(self, left: Tensor, right: Tensor | None) -> tuple[float, Tensor, Tensor]:
        """<P, C_Z>, its derivative, (n, 2), and with Q_ij = left_i right_j K_ij that of <Q, C_Z>
        with Q held: 4 sum_j Q_ij K_ij (z_i - z_j)."""
        push = self._push
        if right is not None:
            push = torch.empty_like(push)
            arguments = self.kernel.numpy(), right.numpy(), *self.columns, push.numpy()
            _over_rows(_repel, self.n, *arguments)
        return self.value, self.attraction, (4 * left * push).T


def bernoulli(
    Z: Tensor, P: Tensor, a: float, b: float, guard: float, repulsion: float
) -> tuple[float, Tensor, Tensor]:
    """F, attraction and repulsion (n, 2) of the pairs i != j, for the odds 1 / w of an edge with
    w = a (|z_i - z_j|^2 + guard)^b.

    The plan P is symmetric, its diagonal 0.
    """
    n, columns, told = len(Z), Z.detach().T.contiguous().numpy(), np.empty((2, len(Z)))
    out = torch.empty(4, n, dtype=Z.dtype)
    _over_rows(_join, n, P.numpy(), *columns, a, b, guard, *told, out.numpy())
    value = float(told[0].sum() + repulsion * told[1].sum())
    return value, 4 * out[:2].T, 4 * repulsion * out[2:].T
