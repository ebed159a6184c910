"""Processes that share the rows find what one finds, and none waits for one that is gone."""

import copy
import dataclasses
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import drot
import faults
import pytest
import torch
import torch.distributed as dist
from drot._core.ranks import Processes

pytestmark = pytest.mark.slow
WORKER = Path(__file__).parents[1] / "ranks_worker.py"


def cloud() -> torch.Tensor:
    return torch.randn(12, 3, dtype=torch.float64)


def run(task: str, folder: Path, size: int = 2) -> list[dict | str]:
    """What each of ``size`` processes wrote; the message of one that stopped with an error."""
    env = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    env |= {"NUMBA_DISABLE_JIT": "1"}  # ten points need less time than its compiler
    lines = ([sys.executable, str(WORKER), task, str(k), str(size), folder] for k in range(size))
    group = [
        subprocess.Popen(s, env=os.environ | env, stderr=subprocess.PIPE, text=True) for s in lines
    ]
    try:
        ends = [process.communicate(timeout=600) for process in group]
    finally:
        for process in group:
            process.kill()
    return [
        end[1] if process.returncode else json.loads((folder / f"{rank}.json").read_text())
        for rank, (process, end) in enumerate(zip(group, ends, strict=True))
    ]


def test_every_public_function_takes_tiles_and_shared_rows(tmp_path):
    """What takes a cost or an affinity gives, in tiles and shared, what it gives whole.

    Processes agree to the bit; each meets its own rows only, and keeps no other. The functions are
    those of ``faults.ROWS``, which has all. Memory that nobody wrote is NaN.
    """
    cases, other = run("everything", tmp_path)
    assert cases == other
    wrong = {case: end for case, end in cases.items() if not (end or "").startswith("equal")}
    assert not wrong
    tried = {case.split()[0] for case in cases}
    takes = re.compile(r"^\w+(, \w+)* : .*\b(Pairwise|Affinity)\b", re.MULTILINE)
    documented = {
        name
        for name in faults.ROWS
        if takes.search(inspect.getdoc(faults.thing(name)).split("Attributes\n")[0])
    }
    assert documented - tried == set() and len(documented) > 30


class Half(Processes):
    """One of two processes, which never meets the other."""

    def __init__(self, rank: int):
        self.rank = rank

    def rows(self, n: int) -> slice:
        return slice(self.rank * n // 2, (1 + self.rank) * n // 2)


def test_shared_rows_are_shared_again():
    """What one sharing has kept is not taken for rows of another."""
    C = drot.sqeuclidean(cloud())
    whole = C.dense()
    part = C.shared(Half(1))
    assert torch.equal(part.rows(slice(6, 12)), whole[6:])
    again = part.shared(Half(0))  # what is kept are the rows of the other half
    assert torch.equal(again.rows(slice(0, 6)), whole[:6])


def test_a_saved_affinity_of_shared_rows_comes_back_whole(tmp_path):
    """Each process may save; what is loaded has all rows, equal to rounding."""
    affinity = drot.entropic_affinity(drot.sqeuclidean(cloud()), perplexity=4.0)
    part = dataclasses.replace(affinity, cost=affinity.cost.shared(Half(1)))
    part.save(tmp_path / "part.npz")
    back = drot.load(tmp_path / "part.npz")
    assert back.cost.own == slice(0, 12)
    torch.testing.assert_close(back.plan, affinity.plan, rtol=0, atol=1e-14)


def test_an_error_on_one_rank_ends_all(tmp_path):
    """By the closed connection, or after the stated time of the group, 20 s: none waits forever."""
    first, last = run("fails", tmp_path)
    assert "ValueError: perplexity=1e+06 is out of reach: row 100 has" in last
    assert first["text"]  # torch.distributed says what it lost
    assert "out of reach" in first["all"] and first["again"]  # an error of all stops nobody


def test_shared_rows_are_not_pickled(tmp_path, monkeypatch):
    """A group of processes does not travel, and without one nothing is shared."""
    with pytest.raises(RuntimeError, match=r"torch\.distributed is not initialised; start with"):
        drot.costs.shard(torch.eye(3))
    where = f"file://{tmp_path / 'meeting'}"
    dist.init_process_group("gloo", init_method=where, rank=0, world_size=1)
    try:
        with monkeypatch.context() as more:
            more.setattr(dist, "get_world_size", lambda group: 5)
            with pytest.raises(ValueError, match=r"5 .* share 3 rows; st"):
                drot.costs.shard(torch.eye(3))
        cost = drot.costs.shard(drot.sqeuclidean(cloud()))
        affinity = drot.entropic_affinity(cost, perplexity=4.0)
        for take in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match=r"^a cost shared among processes cannot be pick"):
                take(affinity)
    finally:
        dist.destroy_process_group()


def test_traces_of_processes_may_differ_in_length():
    class Beside(Processes):
        """With another, whose trace has three entries."""

        def _gather(self, part):
            return [part, torch.tensor(3.0 if part.ndim == 0 else [1.0, 1.0, 1.0]).to(part)]

    assert Beside().largest([2.0, 0.5], torch.device("cpu")) == [2.0, 1.0, 1.0]
