"""One process of a group, run by test_ranks: what it finds goes to a JSON file.

python ranks_worker.py TASK RANK SIZE FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import drot
import torch
import torch.distributed as dist

PERPLEXITY = 12


def cloud(n: int = 101) -> torch.Tensor:
    X = torch.randn(n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    X[: n // 3] += 4
    return X


SOLVERS = {
    "entropic": lambda C: drot.entropic_affinity(C, PERPLEXITY),
    "dropped": lambda C: drot.entropic_affinity(C, PERPLEXITY, diagonal="drop"),
    "neighbours": lambda C: drot.entropic_affinity(C, PERPLEXITY, n_neighbors=40),
    "symmetric": lambda C: drot.symmetric_entropic_affinity(C, PERPLEXITY),
    "sinkhorn": lambda C: drot.doubly_stochastic_affinity(C, perplexity=PERPLEXITY),
    "gaussian": lambda C: drot.gaussian_affinity(C, perplexity=PERPLEXITY),
    "self_tuning": lambda C: drot.self_tuning_affinity(C),
}
SLACK = torch.tensor([[0.0], [1.0], [2.1], [90.0], [91.0], [92.1]], dtype=torch.float64)


def equal(rank: int) -> dict:
    """Shared rows against all rows, in one process each."""
    found = {}
    for block in (None, 7):
        C = drot.sqeuclidean(cloud(), block=block)
        mine = drot.shard(C)
        own = mine.own.stop - mine.own.start
        for name, solve in SOLVERS.items():
            alone, shared = solve(C), solve(mine)
            rows = sum(tile.shape[0] for _, tile in shared.tiles())
            plan = shared.plan  # a collective: every rank calls it
            found[f"{name} {block}"] = {
                "plan": float((alone.plan - plan).abs().max()),
                "perplexity": float((alone.perplexity - shared.perplexity).abs().max()),
                "passes": [alone.passes, shared.passes],
                "trace": [len(alone.trace), len(shared.trace)],
                "rows": [own, rows],
                "bits": plan.double().sum().item().hex(),
            }
        if block is None:
            found["kept rows"] = mine._dense.shape[0]
    alone, shared = (
        drot.symmetric_entropic_affinity(C, 1.5)
        for C in (drot.sqeuclidean(SLACK), drot.shard(drot.sqeuclidean(SLACK)))
    )
    found["slack"] = [alone.slack.tolist(), shared.slack.tolist()]
    C, Z = drot.sqeuclidean(cloud()), drot.sqeuclidean(cloud(5)).dense() + 0.1
    for loss in ("square", "kl"):
        one, two = (
            drot.semi_relaxed_gw(cost, Z, loss=loss, random_state=0) for cost in (C, drot.shard(C))
        )
        found[f"srgw {loss}"] = [
            one.objective,
            two.objective,
            float((one.plan - two.plan).abs().max()),
        ]
    return found


def fails(rank: int) -> dict:
    """An error that only the last rank can see: the others must hear of it, and go on after."""
    C = drot.shard(drot.sqeuclidean(cloud()))
    if rank == dist.get_world_size() - 1:
        evaluate = C._evaluate

        def break_down(rows):
            raise ArithmeticError("a disk has burnt")

        C._evaluate = break_down
    started, found = time.monotonic(), {}
    try:
        drot.symmetric_entropic_affinity(C, PERPLEXITY)
    except Exception as error:
        found = {"kind": type(error).__name__, "text": str(error)}
    found["seconds"] = time.monotonic() - started
    if rank == dist.get_world_size() - 1:
        C._evaluate = evaluate
    found["after"] = drot.symmetric_entropic_affinity(C, PERPLEXITY).converged
    try:  # an error that all see alike
        drot.symmetric_entropic_affinity(C, 1e6)
    except ValueError as error:
        found["all"] = str(error)
    found["again"] = drot.entropic_affinity(C, PERPLEXITY).converged
    return found


def dies(rank: int) -> dict:
    """The last rank goes without a word."""
    C = drot.shard(drot.sqeuclidean(cloud()))
    drot.entropic_affinity(C, PERPLEXITY)
    if rank == dist.get_world_size() - 1:
        os._exit(9)
    started = time.monotonic()
    try:
        drot.symmetric_entropic_affinity(C, PERPLEXITY)
    except drot.RankFailed as error:
        return {"text": str(error), "seconds": time.monotonic() - started}
    return {}


if __name__ == "__main__":
    task, rank, size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'meeting'}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=20),
    )
    found = {"equal": equal, "fails": fails, "dies": dies}[task](rank)
    (folder / f"{rank}.json").write_text(json.dumps(found))
    os._exit(0)  # a group whose member died cannot be taken down in good order
