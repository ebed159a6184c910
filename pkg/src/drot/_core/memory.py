"""How much memory a device has, and how a pairwise array is met in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil
import torch

_ARRAYS = 7  # at its peak the symmetric solver holds the cost and two Hessians of three arrays
_SHARE = 0.5  # of the memory, for those arrays

# The control groups (cgroups) of Linux, by which a container, as Binder's, has less than its host
_GROUPS, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# limit, bytes in use, and which of these are copies of files, given back when they are wanted
_SECOND = "memory.max", "memory.current", "inactive_file"
_FIRST = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"


def physical_memory(device: torch.device) -> int:
    """Bytes that ``device`` has, taken or not: of the CPU, those that this process may have."""
    return torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else _host_memory()


@cache  # to ask takes up to a millisecond
def _host_memory() -> int:
    return min([psutil.virtual_memory().total, *(limit for limit, _ in _limits())])


def free_memory(device: torch.device) -> int:
    """Bytes that may still be taken on ``device``."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    rooms = [max(0, limit - used) for limit, used in _limits()]
    return min([psutil.virtual_memory().available, *rooms])


def _limits() -> Iterator[tuple[int, int]]:
    """Limit and bytes in use of the groups that this process is in, from its own to the root."""
    try:
        lines = _OWN.read_text("utf8").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, names = (_GROUPS / "memory", _FIRST) if controllers else (_GROUPS, _SECOND)
        place = root / path.lstrip("/")
        # a container sees its own group as the root, whatever the path on its host
        for group in (place, *place.parents):
            if group.is_relative_to(root):
                yield from _limit(group, *names)


def _limit(group: Path, limit: str, used: str, files: str) -> Iterator[tuple[int, int]]:
    try:
        most, now = (int((group / name).read_text("utf8")) for name in (limit, used))
        stat = dict(line.split() for line in (group / "memory.stat").read_text("utf8").splitlines())
    except (OSError, ValueError):  # no such group, or one without a limit: "max"
        return
    yield most, now - int(stat.get(files, 0))


def rows_per_tile(m: int, device: torch.device) -> int:
    """Rows of m entries in a working tile: a core's own cache holds it, or it fills a GPU."""
    return max(16, (2**26 if device.type == "cuda" else 2**18) // m)


def slices(rows: slice, step: int) -> Iterator[slice]:
    """The rows in slices of at most ``step``, one after the other."""
    for start in range(rows.start, rows.stop, step):
        yield slice(start, min(start + step, rows.stop))


def automatic_block(shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> int | None:
    """None where seven dense arrays fit into half of the memory, else rows per tile.

    What is free at the moment does not count, since the same call is to give the same result.
    """
    size = shape[0] * shape[1] * torch.finfo(dtype).bits // 8
    if _ARRAYS * size <= _SHARE * physical_memory(device):
        return None
    return rows_per_tile(shape[1], device)
