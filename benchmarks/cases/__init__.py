"""What is compared, one module a case: each has ``SETTINGS`` and ``problem(**setting)``."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["CASES", "case"]

CASES = {
    "ea": "entropic",
    "sea": "symmetric",
    "tsnekhorn": "tsnekhorn",
    "race": "race",
    "srgw": "srgw",
    "threads": "threads",
    "transform": "transform",
}


def case(name: str) -> ModuleType:
    """The module of a case."""
    return importlib.import_module(f"cases.{CASES[name]}")
