"""A symmetric entropic affinity on several processes that share the rows, and on one.

    python benchmarks/ranks.py                                 # starts 2 processes here
    python benchmarks/ranks.py --points 10000 --ranks 4 --dtype float32
    torchrun --nproc-per-node 2 benchmarks/ranks.py            # started by torchrun
    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \\
        benchmarks/ranks.py --points 200000 --dtype float32 --skip

Run the last command on each of two machines with eight cards: where CUDA is there, rank k of a
machine takes card k and the ranks talk through NCCL, otherwise through gloo.

Each rank makes the same points, calls ``costs.shard`` on their cost and then the solver, which is
the whole change against one process. The table says which rows each rank owns, its seconds, and its
largest resident memory. Then rank 0 solves alone, with as many threads as a rank had (``--skip``
leaves that out), and the largest differences of the duals are printed; more than 1e-8 in float64
(1e-2 in float32), relative to the largest dual, is an error.

Prediction. A pass of a rank takes its share of the entries, and joins 6 n numbers for all of them:
at n = 2000 that is 96 kB against 4e6 entries, so two ranks with a core each take little more than
half the time of one. The duals agree to rounding, and those of the ranks to the bit.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import drot
import machine
import recording
import torch
import torch.distributed as dist
from point_clouds import blobs
from torch import Tensor

P = 50  # dimension of the points
AGREE = {"float64": 1e-8, "float32": 1e-2}


def solve(
    X: Tensor, asked: argparse.Namespace, *, shared: bool
) -> tuple[float, drot.affinities.Affinity]:
    """Seconds and the affinity of the rows of this process, or of all rows."""
    cost = drot.sqeuclidean(X, block=asked.block)
    if shared:
        cost = drot.costs.shard(cost)
        dist.barrier()
    started = time.perf_counter()
    found = drot.symmetric_entropic_affinity(cost, perplexity=asked.perplexity)
    if X.device.type == "cuda":
        torch.cuda.synchronize(X.device)
    return time.perf_counter() - started, found


def work(rank: int, size: int, meeting: str, asked: argparse.Namespace) -> None:
    """One process of the group; ``meeting`` says where they find each other."""
    cuda = torch.cuda.is_available() and torch.cuda.device_count() >= asked.local
    device = torch.device("cpu")
    if cuda:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)))
        torch.cuda.set_device(device)
    torch.set_num_threads(max(1, machine.cores() // asked.local))
    dist.init_process_group(
        "nccl" if cuda else "gloo", init_method=meeting, rank=rank, world_size=size
    )
    try:
        report(rank, size, device, asked)
    finally:
        dist.destroy_process_group()


def report(rank: int, size: int, device: torch.device, asked: argparse.Namespace) -> None:
    """Solve together, gather what each rank says, solve alone, compare."""
    X = blobs(asked.points, P).to(device, getattr(torch, asked.dtype))
    seconds, found = solve(X, asked, shared=True)
    own = found.cost.own
    bits = found.gamma.double().sum().item().hex() + found.lam.double().sum().item().hex()
    mine = (own.start, own.stop, seconds, recording.peak_mb(), bits)
    said: list = [None] * size
    dist.all_gather_object(said, mine)
    if rank == 0:
        backend, threads = dist.get_backend(), torch.get_num_threads()
        print(
            f"n = {asked.points}, {asked.dtype}, {size} ranks, {backend}, {threads} threads each: "
            f"{found.passes:.1f} passes, {found.products:.0f} products"
        )
        for k, (start, stop, spent, peak, _) in enumerate(said):
            print(f"rank {k}: rows {start} to {stop}, {spent:.2f} s, {peak:.0f} MB")
        assert len({bits for *_, bits in said}) == 1, "the ranks disagree"
    if rank == 0 and not asked.skip:
        alone, one = solve(X, asked, shared=False)
        gap = max(difference(one.gamma, found.gamma), difference(one.lam, found.lam))
        print(f"alone:  rows 0 to {asked.points}, {alone:.2f} s; duals differ by {gap:.1e}")
        assert gap <= AGREE[asked.dtype], "the ranks do not find what one process finds"
    dist.barrier()


def difference(one: Tensor, other: Tensor) -> float:
    """Largest difference, relative to the largest entry."""
    return float((one - other).abs().max() / one.abs().max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=2000, help="how many")
    parser.add_argument(
        "--ranks", type=int, default=2, help="processes, where torchrun is not used"
    )
    parser.add_argument("--perplexity", type=float, default=30.0)
    parser.add_argument("--dtype", choices=AGREE, default="float64")
    parser.add_argument(
        "--block",
        default="auto",
        type=lambda text: text if text == "auto" else int(text),
        help="rows per tile; default: whole rows where they fit",
    )
    parser.add_argument("--skip", action="store_true", help="do not solve with one process too")
    asked = parser.parse_args()
    if "RANK" in os.environ:  # torchrun has set the scene
        asked.local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "env://", asked)
        return
    asked.local = asked.ranks
    with tempfile.TemporaryDirectory() as folder:
        meeting = (Path(folder) / "meeting").as_uri()
        torch.multiprocessing.spawn(work, (asked.ranks, meeting, asked), nprocs=asked.ranks)


if __name__ == "__main__":
    main()
