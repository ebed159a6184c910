"""Costs built again from the arrays that a saved result holds: what each has as ``stored``."""

from __future__ import annotations

from typing import Any

from .array import Nearest, Pairwise, WithoutDiagonal, as_pairwise
from .distances import sqeuclidean, student_cost
from .factored import Factored


def restore(parts: dict[str, Any], block: int | None) -> Pairwise:
    """The cost whose ``stored`` these arrays are."""
    match parts:
        case {"without_diagonal": _, **rest}:
            return WithoutDiagonal(restore(rest, block))
        case {"values": values, "columns": columns, "m": m}:
            return Nearest(values, columns, int(m), block)
        case {"sqeuclidean": x, **rest}:
            return sqeuclidean(x, rest.get("other"), block=block)
        case {"student": x, **rest}:
            return student_cost(x, rest.get("other"), block=block)
        case {"left": left, **rest}:
            return Factored(left, block=block, **rest)
        case {"matrix": matrix}:
            return as_pairwise(matrix, square=False)
    raise ValueError(f"no cost is made of the arrays {', '.join(sorted(parts))}")
