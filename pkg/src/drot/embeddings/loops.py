r"""Compiled loops over pairs, for the CPU.

The loops read a plan once for Student's kernel in the plane. Where PyTorch sweeps over tiles some
ten times, a loop over pairs needs one sweep: distance, kernel, sums, attraction and repulsion of a
pair stay in registers. The logarithms of the value take half of its time; powers, for the curves
of UMAP, are exponentials of logarithms. Both are series here, since calls of a library would keep
a loop from becoming vector instructions. Numba compiles each loop on its first call in a process,
which takes some seconds. Other kernels stay with PyTorch, whose ``exp2`` is as fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple

import numba
import numpy as np
import torch
from torch import Tensor

from .._core.algebra import RANGE
from ..costs.kernels import Curve
from .kernel_matrix import KernelMatrix, Normalizer

_FAST = {"reassoc", "contract", "arcp", "nsz"}  # infinities and NaN stay what they are
_LN_2, _LN_2_LOW = math.log(2), 2.3190468138462996e-17  # the second is what the first lacks
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_MIDDLE = 1.5 * 2.0**52  # whole numbers added to it are its last bits


def _compiled(fastmath) -> Callable:
    """Numba's compiler. Nothing is kept on disk: its cache is not safe where processes share it."""
    return numba.njit(nogil=True, fastmath=fastmath, error_model="numpy")


@_compiled({"contract"})  # regrouped, the sum with the exponent would lose digits
def _log(u):
    """log u for a positive float64: u = m 2^k with sqrt(1/2) <= m <= sqrt(2), log m by artanh."""
    bits = np.float64(u).view(np.int64)
    k = (bits - _ROOT_HALF) >> 52
    m = np.int64(bits - (k << 52)).view(np.float64)
    t = (m - 1.0) / (m + 1.0)
    z = t * t
    tail = 2 / 11 + z * (2 / 13 + z * (2 / 15 + z * (2 / 17 + z * (2 / 19))))
    series = 2.0 + z * (2 / 3 + z * (2 / 5 + z * (2 / 7 + z * (2 / 9 + z * tail))))
    return k * _LN_2 + t * series


@_compiled({"contract"})
def _exp(x):
    """e^x for |x| <= RANGE: 2^k e^r with |r| <= log(2) / 2, and e^r by Taylor's series."""
    power = x / _LN_2 + _MIDDLE  # its last bits are k
    k = power - _MIDDLE
    r = (x - k * _LN_2) - k * _LN_2_LOW
    head = 1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * (1 / 3628800)))
    tail = r**4 * (1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800)))
    high = 1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (head + tail)))
    series = np.float64(1.0 + r * (1.0 + r * (0.5 + r * (1 / 6 + r * high))))
    exponent = np.float64(power).view(np.int64) << 52
    return np.int64(series.view(np.int64) + exponent).view(np.float64)


@_compiled(_FAST)
def _student_rows(start, stop, P, x, y, kernel, values, out):
    """Of some rows: sum P log u; ``out`` gets sum K, sum P K (z_i - z_j), sum K^2 (z_i - z_j).

    All over j != i, with u = 1 + |z_i - z_j|^2 and K = 1 / u. ``kernel`` gets its rows if it has
    room for them.
    """
    one, zero, kept = x.dtype.type(1), x.dtype.type(0), len(kernel) > 0
    for i in range(start, stop):
        p, xi, yi = P[i], x[i], y[i]
        value = 0.0
        s = ax = ay = rx = ry = zero
        for j in range(len(x)):
            dx, dy = xi - x[j], yi - y[j]
            u = one + dx * dx + dy * dy
            k = one / u
            if kept:
                kernel[i, j] = k
            w, k2 = p[j] * k, k * k
            value += p[j] * _log(u)
            s += zero if j == i else k  # added and subtracted, 1 would drown the others
            ax += w * dx
            ay += w * dy
            rx += k2 * dx
            ry += k2 * dy
        values[i] = value
        out[0, i], out[1, i], out[2, i], out[3, i], out[4, i] = s, ax, ay, rx, ry


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
def _join(start, stop, P, x, y, a, b, guard, values, odds, out):
    """Of some rows, with u = |z_i - z_j|^2 + guard and w = a u^b, over j != i: sum P log w, and
    sum log(1 + 1 / w); ``out`` gets the sums of b P / u and b / (u (1 + w)) times (z_i - z_j).
    """
    log_a, u, ratio = np.log(a), np.empty(len(x)), np.empty(len(x))
    for i in range(start, stop):
        p, xi, yi = P[i], x[i], y[i]
        for j in range(len(x)):
            dx, dy = xi - x[j], yi - y[j]
            u[j] = dx * dx + dy * dy + guard
        value = odd = 0.0
        for j in range(len(x)):
            log_w = log_a + b * _log(u[j])
            value += p[j] * log_w
            ratio[j] = _exp(-min(log_w, RANGE))  # 1 / w, which is no more than BernoulliLoss allows
        ratio[i] = 0
        ax = ay = rx = ry = x.dtype.type(0)
        for j in range(len(x)):
            dx, dy = xi - x[j], yi - y[j]
            slope = b / u[j]
            pull, push = p[j] * slope, slope * ratio[j] / (1.0 + ratio[j])
            ax += pull * dx
            ay += pull * dy
            rx += push * dx
            ry += push * dy
        for j in range(len(x)):
            odd += _log(1.0 + ratio[j])
        values[i], odds[i] = value, odd
        out[0, i], out[1, i], out[2, i], out[3, i] = ax, ay, rx, ry


def suits(Z: Tensor, P: Tensor) -> bool:
    """Whether the loops take these points: on a CPU, in the plane, beside a plan that is kept."""
    if Z.device.type != "cpu" or Z.shape[1] != 2:
        return False
    small = torch.finfo(Z.dtype).tiny ** -0.25 / 4  # no square of a kernel vanishes
    return P.is_contiguous() and bool(Z.abs().max() < small)


def _over_rows(loop: Callable, n: int, *arguments) -> None:
    """Run a loop over all rows, an equal share for each of PyTorch's threads."""
    threads = min(torch.get_num_threads(), 1 + n // 256)
    if threads == 1:
        loop(0, n, *arguments)
        return
    ends = [n * t // threads for t in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda low, high: loop(low, high, *arguments), ends[:-1], ends[1:]))


class StudentPairs(KernelMatrix):
    """What one reading of a plan P (n, n) tells of Student's kernel K of points Z (n, 2).

    ``kept``, memory for K (n, n) if products with it will be needed, may have no rows instead.
    """

    def __init__(self, Z: Tensor, P: Tensor, kept: Tensor, *, self_pairs: bool):
        self.n, self.kept = len(Z), kept
        self.columns = Z.detach().T.contiguous().numpy()  # (2, n)
        values = np.empty(self.n)
        out = torch.empty(5, self.n, dtype=Z.dtype)
        arguments = P.numpy(), *self.columns, kept.numpy(), values, out.numpy()
        _over_rows(_student_rows, self.n, *arguments)
        self.value = float(values.sum())  # <P, C_Z>
        self.attraction, self._push = 4 * out[1:3].T, out[3:]  # its derivative, (n, q)
        self.sums = out[0].add_(1) if self_pairs else out[0]

    def row_sums(self) -> Tensor:
        return self.sums

    def __matmul__(self, v: Tensor) -> Tensor:
        return self.kept @ v

    def forces(self, normalizer: Normalizer) -> tuple[float, Tensor, Tensor]:
        """The last is 4 sum_j Q_ij K_ij (z_i - z_j), with Q_ij = left_i right_j K_ij."""
        left, right, push = normalizer.left, normalizer.right, self._push
        if right is not None:
            push = torch.empty_like(push)
            arguments = self.kept.numpy(), right.numpy(), *self.columns, push.numpy()
            _over_rows(_repel, self.n, *arguments)
        return self.value, self.attraction, (4 * left * push).T


class CurvePairs(KernelMatrix):
    """What one reading of a symmetric plan P (n, n), its diagonal 0, tells of the odds 1 / w of an
    edge, w = a (|z_i - z_j|^2 + guard)^b, of points Z (n, 2): each pair is normalised alone.
    """

    def __init__(self, Z: Tensor, P: Tensor, kernel: Curve):
        columns, values = Z.detach().T.contiguous().numpy(), np.empty((2, len(Z)))
        self.out = torch.empty(4, len(Z), dtype=Z.dtype)
        curve = astuple(kernel)  # a, b, guard
        _over_rows(_join, len(Z), P.numpy(), *columns, *curve, *values, self.out.numpy())
        self.value, self.apart = values.sum(axis=1)

    def forces(self, normalizer: Normalizer) -> tuple[float, Tensor, Tensor]:
        """With Q_ij = left / (1 + w_ij); rows add the logarithms of 1 + 1 / w_ij, times left."""
        left = float(normalizer.left)
        return float(self.value + left * self.apart), 4 * self.out[:2].T, 4 * left * self.out[2:].T
