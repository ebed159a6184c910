"""What a report of an error needs to say."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

import torch


def show_versions() -> None:
    """Print the versions of the package and of what it stands on, the threads and the devices.

    Source: the section *Errors* of book ``ch-api``, for a report of one.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    drot ...
    """
    names = "drot", "torch", "numpy", "scipy", "scikit-learn", "numba", "matplotlib"
    lines = [f"{name} {metadata.version(name)}" for name in names]
    lines += [f"Python {platform.python_version()} on {platform.platform()}"]
    lines += [f"threads {torch.get_num_threads()} of {os.cpu_count()} cores"]
    lines += [f"CUDA {torch.version.cuda if torch.cuda.is_available() else 'not available'}"]
    sys.stdout.write("\n".join(lines) + "\n")
