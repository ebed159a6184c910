"""How every iterative solver reports what it achieved, or that it did not."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Literal, get_args

import torch

from ._checks import check_choice, check_count, check_positive

__all__ = ["NotConverged", "OnFailure", "read_limits", "settle"]

OnFailure = Literal["raise", "warn", "ignore"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


class NotConverged(RuntimeError):
    """An iteration budget ran out before the stated residual was reached."""


def read_limits(
    tol: float | None, max_iter: int, on_failure: OnFailure, dtype: torch.dtype
) -> tuple[float, int]:
    """Check a solver's limits before any work; ``tol`` is 1e-9 in float64 and 1e-4 in float32."""
    check_choice("on_failure", on_failure, get_args(OnFailure))
    tol = _TOLERANCE[dtype] if tol is None else check_positive("tol", tol)
    return tol, check_count("max_iter", max_iter, 1)


def settle(where: str, residual: float, tol: float, n_iter: int, on_failure: OnFailure) -> bool:
    """Return whether ``residual <= tol``; otherwise fail as ``on_failure`` says.

    A residual that is not a number counts as a failure.
    """
    if residual <= tol:
        return True
    text = (
        f"{where}: the residual is {residual:.2e} after {n_iter} iterations, above tol={tol:.0e}. "
        "Raise max_iter, loosen tol, or pass on_failure='ignore' and read `.residual`."
    )
    if on_failure == "raise":
        raise NotConverged(text)
    if on_failure == "warn":
        warnings.warn(text, RuntimeWarning, stacklevel=_outside())
    return False


def _outside() -> int:
    """The stack level, seen from the caller, of the code that called this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
