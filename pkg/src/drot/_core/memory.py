"""How much memory a device has left, and how a pairwise array is met in it."""

from __future__ import annotations

import os
from pathlib import Path

import torch

_ARRAYS = 7  # at its peak the symmetric solver holds the cost and two Hessians of three arrays
_SHARE = 0.5  # of the free memory, for those arrays

_CGROUP = Path("/sys/fs/cgroup")


def free_memory(device: torch.device) -> int | None:
    """Bytes that may still be taken on ``device``; None where the system does not say."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    if device.type != "cpu":
        return None
    found = [room for room in (_system(), _container()) if room is not None]
    return min(found, default=None)


def _system() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):  # not Linux
        pass
    room = physical_memory(torch.device("cpu"))
    return None if room is None else room // 2


def _container() -> int | None:
    """What a control group leaves: a container may have less than the machine."""
    try:
        limit = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
        return None if limit == "max" else max(0, int(limit) - used)
    except (OSError, ValueError):
        return None


def physical_memory(device: torch.device) -> int | None:
    """Bytes that ``device`` has, taken or not; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # pragma: no cover, not a POSIX system
        return None


def tile_entries(device: torch.device) -> int:
    """Entries of a working tile: what a core's own cache holds, or what fills a GPU."""
    return 2**26 if device.type == "cuda" else 2**18


def automatic_block(shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> int | None:
    """None where seven dense arrays fit into half of the free memory, else rows per tile."""
    room = free_memory(device)
    size = shape[0] * shape[1] * torch.finfo(dtype).bits // 8
    if room is None or _ARRAYS * size <= _SHARE * room:
        return None
    return max(16, tile_entries(device) // shape[1])
