"""Killed runs and full disks: nothing half-written, finished work kept.

Real processes are killed by real signals, at moments that they announce themselves.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import drot
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems"),
]

HEAD = """
import os, sys, time, warnings
import numpy as np
import torch
torch.set_num_threads(1)
import drot

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4)) + 6 * rng.integers(0, 3, size=(60, 1))
cost = drot.sqeuclidean(X)
path = sys.argv[1]

def say(*words):
    print(*words, flush=True)
"""


@contextmanager
def process(code: str, *arguments) -> Iterator[subprocess.Popen]:
    """A Python of its own, ended whatever happens."""
    child = subprocess.Popen(
        [sys.executable, "-c", HEAD + code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    watchdog = threading.Timer(120, child.kill)  # a test that waits for it must not wait for ever
    watchdog.start()
    try:
        yield child
    finally:
        watchdog.cancel()
        child.kill()
        child.communicate()


def await_line(child: subprocess.Popen, words: str) -> None:
    """Read its output up to a line; it may not end before."""
    if not any(line.startswith(words) for line in child.stdout):
        raise AssertionError(child.stderr.read())


SAVES = """
found = drot.srgw_barycenter(cost, 40, n_starts=1)
found.save(path)
say("saved")
while True:
    found.save(path)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_while_saving(number, tmp_path):
    """However a process dies while it saves over a result, the file is whole."""
    path = tmp_path / "result.npz"
    with process(SAVES, path) as child:
        await_line(child, "saved")
        for _ in range(25):  # who reads meanwhile reads a whole file too
            drot.load(path)
        child.send_signal(number)
        assert child.wait(60) != 0
    drot.load(path)
    others = {p.name for p in tmp_path.iterdir()} - {"result.npz"}
    assert others <= ({"result.npz.part"} if number != signal.SIGINT else set())
    drot.load(path).save(path)  # the next one takes the draft's place
    assert [p.name for p in tmp_path.iterdir()] == ["result.npz"]
