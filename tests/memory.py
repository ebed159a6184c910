"""How much memory a process held at most, as Linux tells.

`ru_maxrss` is no measure of it: a program starts with what the process that called it had held.
"""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_ABOUT = Path("/proc/self")

needs_linux = pytest.mark.skipif(not _ABOUT.exists(), reason="memory is read from /proc")


def peak() -> int:
    """The most bytes resident at once, since the start or `forget_peak`; 0 where none can tell."""
    if not _ABOUT.exists():
        return 0
    status = (_ABOUT / "status").read_text("utf8")
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


def forget_peak() -> int:
    """Let the peak begin again, where the system permits it; the bytes that it begins with."""
    with contextlib.suppress(OSError):
        (_ABOUT / "clear_refs").write_text("5")
    return peak()


def numbers(program: str) -> list[float]:
    """What a program of its own, which may import this module, prints.

    Its arrays go back to the system when they are freed. Otherwise the C library keeps what it
    thinks useful, ten times what is in use if chance will have it, and the peak counts that too.
    """
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=os.environ | {"PYTHONPATH": path, "MALLOC_MMAP_THRESHOLD_": "262144"},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert run.returncode == 0, run.stderr
    return [float(word) for word in run.stdout.split()]
