"""How much memory a device has left, and how a pairwise array is met in it."""

from __future__ import annotations

from pathlib import Path

import psutil
import torch

_ARRAYS = 7  # at its peak the symmetric solver holds the cost and two Hessians of three arrays
_SHARE = 0.5  # of the free memory, for those arrays

_CGROUP = Path("/sys/fs/cgroup")


def free_memory(device: torch.device) -> int | None:
    """Bytes that may still be taken on ``device``; None where they are not known."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    if device.type != "cpu":
        return None
    room = psutil.virtual_memory().available
    try:  # a container, as Binder's, may have less than the machine
        limit, used = ((_CGROUP / name).read_text() for name in ("memory.max", "memory.current"))
        return min(room, max(0, int(limit) - int(used)))
    except (OSError, ValueError):  # no container, or one with the limit "max"
        return room


def physical_memory(device: torch.device) -> int:
    """Bytes that ``device`` has, taken or not."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return psutil.virtual_memory().total


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
