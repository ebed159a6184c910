"""What a report of a fault should begin with: versions, threads, devices."""

from __future__ import annotations

import os
import platform
from importlib import metadata

import torch

_NAMES = ("drot", "torch", "numpy", "scipy", "scikit-learn", "numba", "matplotlib")


def show_versions() -> None:
    """Print the versions of the package and of what it stands on, the threads and the devices.

    Source: the section *Errors* of book ``ch-api``, for a report of one.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    drot ...
    """
    for name in _NAMES:
        print(name, metadata.version(name))
    print("Python", platform.python_version(), "on", platform.platform())
    print("threads", torch.get_num_threads(), "of", os.cpu_count(), "cores")
    print("CUDA", torch.version.cuda if torch.cuda.is_available() else "not available")
