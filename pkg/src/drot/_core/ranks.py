"""Processes that share the rows of a pairwise array through ``torch.distributed``.

Every rank holds the points and all n-vectors; each meets its own rows and the results are
joined. So a rank's time and its part of a kept array are one share of the whole, and what
travels is a few n-vectors per pass. All ranks take the same decisions, since they join the same
bits in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor


class RankFailed(RuntimeError):
    """Another process of the group stopped with an error."""


class Alone:
    """One process that owns all rows."""

    def __reduce__(self) -> str:
        return "ALONE"  # there is but one, also in a pickle

    def rows(self, n: int) -> slice:
        """The rows of this process among n."""
        return slice(0, n)

    def join(self, part: Tensor, n: int) -> Tensor:
        """All n rows, from each process's own."""
        return part

    def total(self, part: Tensor) -> Tensor:
        """The sum over the processes, the same bits on each."""
        return part

    def largest(self, trace: list[float], most: int, device: torch.device) -> list[float]:
        """Entry by entry the largest of the processes' traces, each of length at most ``most``."""
        return trace

    @contextmanager
    def together(self) -> Iterator[None]:
        """What one process cannot do, none does: an error in the body reaches all."""
        yield


ALONE = Alone()


class Ranks(Alone):
    """The processes of a group, each with a contiguous share of the rows."""

    def __init__(self, group: dist.ProcessGroup | None = None):
        if not (dist.is_available() and dist.is_initialized()):
            raise RuntimeError(
                "torch.distributed is not initialised; start with torchrun and call "
                "torch.distributed.init_process_group first"
            )
        self.group, self.rank = group, dist.get_rank(group)
        self.size = dist.get_world_size(group)
        self._told: BaseException | None = None  # the error that the others know of

    def __reduce__(self) -> str:
        raise TypeError(
            "a cost shared among processes cannot be pickled or copied; save its affinity with "
            "save, or pickle the cost that was given to drot.shard"
        )

    def rows(self, n: int, rank: int | None = None) -> slice:
        rank = self.rank if rank is None else rank
        return slice(rank * n // self.size, (rank + 1) * n // self.size)

    def join(self, part: Tensor, n: int) -> Tensor:
        counts = [self._count(n, rank) for rank in range(self.size)]
        own = counts[self.rank]
        if part.shape[0] != own:
            raise ValueError(f"{part.shape[0]} rows to join; rank {self.rank} owns {own}")
        most = max(counts)
        padded = part.new_zeros(most, *part.shape[1:])
        padded[: part.shape[0]] = part
        parts = self._gather(padded)
        return torch.cat([some[:count] for some, count in zip(parts, counts, strict=True)])

    def total(self, part: Tensor) -> Tensor:
        return torch.stack(self._gather(part.contiguous())).sum(dim=0)  # in the order of ranks

    def largest(self, trace: list[float], most: int, device: torch.device) -> list[float]:
        padded = torch.zeros(most + 1, dtype=torch.float64, device=device)
        padded[: len(trace)] = torch.tensor(trace, dtype=torch.float64)
        padded[most] = len(trace)
        top = torch.stack(self._gather(padded)).amax(dim=0).tolist()
        return top[: int(top[most])]

    @contextmanager
    def together(self) -> Iterator[None]:
        try:
            yield
        except RankFailed:
            raise
        except BaseException as error:
            if error is not self._told:  # an inner function may have told them already
                self._told = error
                self._tell()
            raise

    def _count(self, n: int, rank: int) -> int:
        rows = self.rows(n, rank)
        return rows.stop - rows.start

    def _gather(self, part: Tensor) -> list[Tensor]:
        """The parts of all ranks, after each has said that it has one."""
        self._agree(well=True, device=part.device)
        parts = [torch.empty_like(part) for _ in range(self.size)]
        self._collective(lambda: dist.all_gather(parts, part, group=self.group))
        return parts

    def _agree(self, well: bool, device: torch.device) -> None:
        flag = torch.tensor([int(well)], device=device)
        flags = [torch.empty_like(flag) for _ in range(self.size)]
        self._collective(lambda: dist.all_gather(flags, flag, group=self.group))
        failed = [rank for rank, other in enumerate(flags) if not int(other)]
        if well and failed:
            raise RankFailed(
                f"rank {failed[0]} of {self.size} stopped with an error; its own message says why"
            )

    def _tell(self) -> None:
        """Let the others know that this rank stops, at the point where they wait for it."""
        try:
            backend = dist.get_backend(self.group)
            device = torch.device("cuda" if backend == "nccl" else "cpu")
            self._agree(well=False, device=device)
        except RankFailed:  # the others are gone too
            pass

    def _collective(self, call: Callable[[], object]) -> None:
        try:
            call()
        except (RuntimeError, ValueError) as error:
            raise RankFailed(
                f"rank {self.rank} of {self.size} lost the others: "
                f"{str(error).strip().splitlines()[0][:200]}"
            ) from error
