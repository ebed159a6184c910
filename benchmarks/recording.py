"""What each recorded result says of the machine: date, processor, cores, versions."""

from __future__ import annotations

import datetime
import platform
import resource
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


def peak_mb() -> float:
    """Largest resident memory of this process so far, in MB (10^6 bytes)."""
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
