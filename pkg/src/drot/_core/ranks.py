"""Processes that share the rows of a pairwise array through ``torch.distributed``.

Every rank holds the points and all n-vectors; each meets its own rows and the results are
joined. So a rank's time and its part of a kept array are one share of the whole, and what
travels is a few n-vectors per pass. All ranks take the same decisions, since they join the same
bits in the same order.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


class Processes:
    """The usual case: one process, which owns all rows and has nobody to ask."""

    rank, size = 0, 1

    def __reduce__(self) -> str:
        return "ALONE"  # there is but one, also in a pickle

    def rows(self, n: int) -> slice:
        """The rows of this process among n."""
        return self._share(n, self.rank)

    def join(self, part: Tensor, n: int) -> Tensor:
        """All n rows, from each process's own."""
        if self.size == 1:
            return part
        shares = [self._share(n, rank) for rank in range(self.size)]
        counts = [rows.stop - rows.start for rows in shares]
        padded = part.new_zeros(max(counts), *part.shape[1:])  # as large on every rank
        padded[: len(part)] = part
        parts = self._gather(padded)
        return torch.cat([some[:count] for some, count in zip(parts, counts, strict=True)])

    def total(self, part: Tensor) -> Tensor:
        """The sum over the processes, the same bits on each: in the order of ranks."""
        return torch.stack(self._gather(part.contiguous())).sum(dim=0)

    def largest(self, trace: list[float], device: torch.device) -> list[float]:
        """Entry by entry the largest of the processes' traces, which may differ in length."""
        length = torch.stack(self._gather(torch.tensor(len(trace), device=device))).max()
        padded = torch.zeros(int(length), dtype=torch.float64, device=device)
        padded[: len(trace)] = torch.tensor(trace, dtype=torch.float64)
        return torch.stack(self._gather(padded)).amax(dim=0).tolist()

    def _share(self, n: int, rank: int) -> slice:
        return slice(rank * n // self.size, (rank + 1) * n // self.size)

    def _gather(self, part: Tensor) -> list[Tensor]:
        """The parts of all ranks."""
        return [part]


ALONE = Processes()


class Ranks(Processes):
    """The processes of a group, each with a contiguous share of the rows."""

    def __init__(self, group: dist.ProcessGroup | None = None):
        if not (dist.is_available() and dist.is_initialized()):
            raise RuntimeError(
                "torch.distributed is not initialised; start with torchrun and call "
                "torch.distributed.init_process_group first"
            )
        self.group, self.rank = group, dist.get_rank(group)
        self.size = dist.get_world_size(group)

    def __reduce__(self) -> str:
        raise TypeError(
            "a cost shared among processes cannot be pickled or copied; save its affinity with "
            "save, or pickle the cost that was given to drot.costs.shard"
        )

    def _gather(self, part: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(part) for _ in range(self.size)]
        dist.all_gather(parts, part, group=self.group)
        return parts
