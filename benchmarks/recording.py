"""What each recorded result says of the machine: date, processor, cores, versions."""

from __future__ import annotations

import contextlib
import datetime
import platform
import re
import resource
import sys
from pathlib import Path

import drot
import torch


def processor() -> str:
    """Model name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def header(*more: str) -> str:
    """Comment lines for the top of a CSV file."""
    facts = [
        f"date {datetime.date.today()}",
        f"processor {processor()}, threads {torch.get_num_threads()}",
        f"python {platform.python_version()}, torch {torch.__version__}, drot {drot.__version__}",
        *more,
    ]
    return "".join(f"# {fact}\n" for fact in facts)


def forget_peak() -> float:
    """Let the peak of the resident memory begin again here, where the system can: MB now."""
    with contextlib.suppress(OSError):  # else it is the peak of the process so far
        Path("/proc/self/clear_refs").write_text("5")
    return peak_mb()


def peak_mb() -> float:
    """Largest resident memory since :func:`forget_peak`, or since the start, in MB (10^6 bytes).

    ``ru_maxrss`` counts what the program that started this one had held, too.
    """
    try:
        status = Path("/proc/self/status").read_text("utf8")
        return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1e6
    except (OSError, TypeError):  # not Linux
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
