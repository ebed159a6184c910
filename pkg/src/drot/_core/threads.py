"""How many threads a call takes: one where its arrays are small, else as many as there are.

To wake a second thread takes some microseconds, and where another program has the core it comes
milliseconds late: every operation waits for it, longer than it would work alone. So a call that
meets fewer than ten million pairs (3162 points) runs on one thread of PyTorch, whose number the
compiled loops take too, and of the BLAS of NumPy and SciPy. All have their numbers back when it
ends, however it ends.

A program's own choice stands. Nothing is changed where ``OMP_NUM_THREADS``, ``MKL_NUM_THREADS`` or
``OPENBLAS_NUM_THREADS`` was set, or where PyTorch's number is another one than when this package
was imported, which is taken for the default; and no number is ever raised. Only the size decides,
so the same call gives the same bits again. With another number of threads sums round differently.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, wraps
from inspect import signature
from threading import Lock
from typing import ParamSpec, TypeVar

import torch
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

_PAYS = 10**7  # pairs from which on a second thread gains more than it costs
_CHOICES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_DEFAULT = 0 if any(name in os.environ for name in _CHOICES) else torch.get_num_threads()

_blas_is_ours = Lock()  # the number of a BLAS belongs to the process, PyTorch's to a Python thread


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")  # finding them takes milliseconds


@contextmanager
def threads_for(pairs: int) -> Iterator[None]:
    """As many threads as pay for an array of so many pairs."""
    before = torch.get_num_threads()
    if pairs >= _PAYS or not 1 < before == _DEFAULT:
        yield
        return
    first = _blas_is_ours.acquire(blocking=False)  # of calls that overlap in time
    try:
        torch.set_num_threads(1)
        with _blas().limit(limits=1) if first else nullcontext():
            yield
    finally:
        if torch.get_num_threads() == 1:  # else a callback has chosen
            torch.set_num_threads(before)
        if first:
            _blas_is_ours.release()


def by_size(function: Callable[P, R]) -> Callable[P, R]:
    """Let the function run on the threads that pay for its first argument."""
    names = [*signature(function).parameters]
    place = int(names[0] == "self")

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        data = args[place] if len(args) > place else kwargs.get(names[place])
        with threads_for(pairs_of(data)):
            return function(*args, **kwargs)

    return call


def pairs_of(data: object) -> int:
    """How many pairs n points have, or an (n, m) array entries; an objective says its n.

    0 for what is neither, which the function will refuse.
    """
    shape = getattr(data, "shape", None)
    try:
        n, *rest = shape or (getattr(data, "n", None) or len(data),)  # type: ignore[arg-type]
        return n * max(n, *rest, 0)
    except (TypeError, ValueError):
        return 0
