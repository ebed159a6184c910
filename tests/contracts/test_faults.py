"""Killed runs, full disks and hostile servers: nothing half-written, finished work kept.

Real processes are killed by real signals, at moments that they announce themselves.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import drot
import numpy as np
import pytest
import torch
from drot import datasets as data
from drot.datasets import fetch as _fetch
from drot.datasets.origins import ORIGINS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")

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
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [sys.executable, "-c", HEAD + code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
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
    for line in child.stdout:
        if line.startswith(words):
            return
    raise AssertionError(child.stderr.read())


# ---------------------------------------------------------------------------- long runs
EMBED = """
plan = drot.symmetrize(drot.entropic_affinity(cost, 9.0, diagonal="drop"))

def watch(iteration, residual, Z, value):
    say("iteration", iteration)
    time.sleep(0.02)

warnings.simplefilter("ignore")
found = drot.tsne(plan, init="random", tol=1e-12, callback=watch)
found.save(path)
say("saved", found.n_iter, found.converged)
"""


def test_interrupted_embedding(tmp_path):
    """Ctrl-C: the iterate that was reached is returned and kept, and the run goes on from it."""
    path = tmp_path / "embedding.npz"
    with process(EMBED, path) as child:
        await_line(child, "iteration 6")
        child.send_signal(signal.SIGINT)
        await_line(child, "saved")
        assert child.wait(60) == 0
    found = drot.load_embedding(path)
    assert found.n_iter >= 6 and not found.converged and len(found.values) == found.n_iter + 1
    assert (np.diff(found.values) <= 0).all()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 6 * rng.integers(0, 3, size=(60, 1))
    plan = drot.symmetrize(drot.entropic_affinity(drot.sqeuclidean(X), 9.0, diagonal="drop"))
    rest = drot.tsne(plan, init=found)
    assert rest.values[0] == pytest.approx(found.value, abs=1e-9) and rest.converged


PARTS = """
plan = drot.symmetrize(drot.entropic_affinity(cost, 9.0, diagonal="drop"))
found = "random"
for part in range(1000):  # a run in parts of five iterations, each kept
    found = drot.tsne(plan, init=found, tol=1e-12, max_iter=5, on_failure="ignore")
    found.save(path)
    say("part", part)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ended_embedding(number, tmp_path):
    """A run in parts, ended from outside: the parts that were saved are whole."""
    path = tmp_path / "embedding.npz"
    with process(PARTS, path) as child:
        await_line(child, "part 3")
        child.send_signal(number)
        assert child.wait(60) == -number
    found = drot.load_embedding(path)
    assert torch.isfinite(found.Z).all() and found.n_iter == 5
    assert {p.name for p in tmp_path.iterdir()} <= {"embedding.npz", "embedding.npz.part"}


AFFINITY = """
drot.gaussian_affinity(cost, perplexity=9.0).save(path)

def watch(iteration, residual):
    say("iteration", iteration)
    time.sleep(60)  # until the signal comes

drot.symmetric_entropic_affinity(cost, 9.0, tol=1e-12, callback=watch).save(path)
say("saved")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_affinity(number, tmp_path):
    """The symmetric affinity is short: what was saved before it stays, and nothing is beside it."""
    path = tmp_path / "affinity.npz"
    with process(AFFINITY, path) as child:
        await_line(child, "iteration 1")
        child.send_signal(number)
        assert child.wait(60) != 0
        assert "saved" not in child.stdout.read()
        if number == signal.SIGINT:
            assert "KeyboardInterrupt" in child.stderr.read()
    assert isinstance(drot.load_affinity(path), drot.GaussianAffinity)
    assert [p.name for p in tmp_path.iterdir()] == ["affinity.npz"]


DESCENTS = {
    "distributional_reduction": """
C = drot.symmetric_entropic_affinity(cost, 9.0).plan
run = lambda watch: drot.distributional_reduction(
    C, 8, init="random", n_starts=30, tol=1e-9, callback=watch, on_failure="ignore")
""",
    "semi_relaxed_gw": """
run = lambda watch: drot.semi_relaxed_gw(
    cost, drot.sqeuclidean(X[:9]), init="random", n_starts=500, callback=watch)
""",
    "srgw_barycenter": """
run = lambda watch: drot.srgw_barycenter(cost, 9, init="random", n_starts=500, callback=watch)
""",
}
DESCEND = """
def watch(iteration, residual, T):
    if iteration >= 3:
        say("iteration", iteration)
        time.sleep(0.02)
        return os.path.exists(path + ".stop")

warnings.simplefilter("ignore")
found = run(watch)
found.save(path)
say("saved", found.n_iter, found.converged)
"""


@pytest.mark.parametrize("name", DESCENTS)
def test_stopped_descent(name, tmp_path):
    """A callback that returns true ends the run; the result is saved, whole, and goes on."""
    path = tmp_path / "result.npz"
    with process(DESCENTS[name] + DESCEND, path) as child:
        await_line(child, "iteration")
        Path(f"{path}.stop").touch()
        await_line(child, "saved")
        assert child.wait(60) == 0
    check_descent(drot.load_semi_relaxed_gw(path))


def check_descent(found: drot.SemiRelaxedGW) -> None:
    np.testing.assert_allclose(found.plan.sum(dim=1), 1 / 60, atol=1e-12)
    assert (found.plan >= 0).all() and np.isfinite(found.objective)
    scale = max(1e-12, abs(found.trace[0]))
    assert (np.diff(found.trace) <= 1e-9 * scale).all()


@pytest.mark.parametrize("name", DESCENTS)
def test_interrupted_descent(name, tmp_path):
    """Ctrl-C: the best plan so far is returned, with a warning, as embed returns its iterate."""
    path = tmp_path / "result.npz"
    with process(DESCENTS[name] + DESCEND, path) as child:
        await_line(child, "iteration")
        child.send_signal(signal.SIGINT)
        await_line(child, "saved")
        assert child.wait(60) == 0
    found = drot.load_semi_relaxed_gw(path)
    check_descent(found)
    assert not found.converged or found.residual <= 1e-9


# -------------------------------------------------------------------------------- saving
RESULTS = {
    "affinity": ("drot.entropic_affinity(cost.dense(), 9.0)", drot.load_affinity),
    "embedding": (
        "drot.tsne(drot.symmetrize(drot.entropic_affinity(cost, 9.0, diagonal='drop')), "
        "max_iter=2, on_failure='ignore')",
        drot.load_embedding,
    ),
    "plan": ("drot.srgw_barycenter(cost, 40, n_starts=1)", drot.load_semi_relaxed_gw),
}
SAVES = """
found = {}
size = 0
while True:
    found.save(path)
    if not size:
        size = 1
        say("saved")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("kind", RESULTS)
def test_killed_while_saving(kind, number, tmp_path):
    """However a process dies while it saves over a result, the file is whole."""
    make, load = RESULTS[kind]
    path = tmp_path / "result.npz"
    with process(SAVES.format(make), path) as child:
        await_line(child, "saved")
        for _ in range(25):  # who reads meanwhile reads a whole file too
            load(path)
        child.send_signal(number)
        assert child.wait(60) != 0
    load(path)
    others = {p.name for p in tmp_path.iterdir()} - {"result.npz"}
    assert others <= ({"result.npz.part"} if number != signal.SIGINT else set())
    load(path).save(path)  # the next one takes the draft's place
    assert [p.name for p in tmp_path.iterdir()] == ["result.npz"]


FULL = """
import resource, signal
found = {}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # bytes: a disk that is full
for name in (path, path + ".new"):
    try:
        found.save(name)
    except OSError as error:
        say("refused", error.strerror)
say("end")
"""


@pytest.mark.parametrize("kind", RESULTS)
def test_full_disk(kind, tmp_path):
    """A file that cannot grow: an OSError, the old result whole, no draft, no half a new one."""
    path = tmp_path / "result.npz"
    drot.gaussian_affinity(torch.eye(3).double(), bandwidth=1.0).save(path)
    old = path.read_bytes()
    with process(FULL.format(RESULTS[kind][0]), path) as child:
        await_line(child, "refused")
        await_line(child, "refused")
        await_line(child, "end")
        assert child.wait(60) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["result.npz"] and path.read_bytes() == old


def written(shape: str, dtype: str = "<f8", body: bytes = b"") -> bytes:
    """An .npy whose header says what it likes."""
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}"
    head = head + " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body


LOADERS = {
    "affinity": drot.load_affinity,
    "embedding": drot.load_embedding,
    "plan": drot.load_semi_relaxed_gw,
}


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize(
    "member",
    [written("(3,)"), written("(10000000000000,)"), written("(1,)", "|O", b"cos\nsystem\n."), b""],
    ids=["cut short", "ten million million numbers", "pickle", "empty"],
)
def test_hostile_result(kind, member, tmp_path):
    """A result that claims more than it has, or holds objects, is one sentence and no memory."""
    path = tmp_path / "result.npz"
    names = {
        "affinity": "EntropicAffinity", "embedding": "Embedding", "plan": "SemiRelaxedGW"
    }  # fmt: skip
    stream = io.BytesIO()
    np.save(stream, np.array(names[kind]))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("kind.npy", stream.getvalue())
        for name in ("plan", "Z", "eps", "block"):
            archive.writestr(f"{name}.npy", member)
    with pytest.raises(ValueError, match=r"does not hold|allow_pickle"):
        LOADERS[kind](path)


# ------------------------------------------------------------------------------ downloads
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.hits.append(self.path)
        fault, body = server.fault, server.files[self.path.rsplit("/", 1)[-1]]
        if fault == "loop":
            self.redirect(f"{self.path}/again/{self.path.rsplit('/', 1)[-1]}")
        elif fault == "circle":
            self.redirect(self.path)
        elif fault == "elsewhere":
            self.redirect("file:///etc/hostname")
        elif fault == "nowhere":
            self.redirect("http://127.0.0.1:1/x")
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if fault == "stall":  # half, then nothing while the client is killed
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                server.stalled.set()
                server.release.wait(60)
                return
            self.wfile.write(body)

    def redirect(self, target: str) -> None:
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.hits, self.fault = {}, [], None
        self.stalled, self.release = threading.Event(), threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server with a small scGEM, and a cache of its own."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setenv("DROT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DROT_DATA", raising=False)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        first, second = ORIGINS["scgem"].sources
        server.files = {
            first.name: b"\n".join(b"1.5,%d" % k for k in range(4000)),
            second.name: b"\n".join(b"%d" % (1 + k % 5) for k in range(4000)),
        }
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


def scgem(address: str):
    """The origin of scGEM, at this address and with these arrays."""
    origin = ORIGINS["scgem"]
    X = np.stack([np.full(4000, 1.5), np.arange(4000.0)], axis=1)
    y = np.arange(4000) % 5
    sources = tuple(replace(s, urls=(f"{address}/{s.name}",), check="") for s in origin.sources)
    return replace(origin, sources=sources, digest=_fetch.digest(X, y.astype("<i8")), corners=())


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("loop", "Exceeded 30 redirects"),
        ("circle", "Exceeded 30 redirects"),
        ("elsewhere", "file:"),
        ("nowhere", "no connection"),
    ],
)
def test_redirects_end(fault, says, server, tmp_path, monkeypatch):
    """Redirects in a circle, without end, to a local file or to nobody: one sentence."""
    monkeypatch.setitem(ORIGINS, "scgem", scgem(server.address))
    server.fault = fault
    with pytest.raises(data.DataUnavailable) as caught:
        data.load_scgem()
    text = str(caught.value)
    assert says in text and "Place the files by hand" in text and "\n" not in text
    assert len(server.hits) <= 31 and not list((tmp_path / "cache").iterdir())
    server.fault = None
    assert data.load_scgem().X.shape == (4000, 2)


FETCH = """
from dataclasses import replace
from drot.datasets import fetch as _fetch
from drot.datasets.origins import ORIGINS

origin = ORIGINS["scgem"]
sources = tuple(replace(s, urls=(f"{path}/{s.name}",), check="") for s in origin.sources)
ORIGINS["scgem"] = replace(origin, sources=sources, digest=sys.argv[2], corners=())
say("asking")
_fetch.find("scgem")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_download(number, server, tmp_path, monkeypatch):
    """A process that dies in a download leaves no data set, and the next one is not in its way."""
    cache, origin = tmp_path / "cache", scgem(server.address)
    server.fault = "stall"
    with process(FETCH, server.address, origin.digest) as child:
        await_line(child, "asking")
        assert server.stalled.wait(60)
        time.sleep(0.1)
        child.send_signal(number)
        assert child.wait(60) != 0
    left = list(cache.iterdir())
    assert not left if number == signal.SIGINT else all(p.name.startswith(".drot-") for p in left)
    for path in left:  # a day later
        os.utime(path, (time.time() - 2 * 86400,) * 2)
    server.fault = None
    monkeypatch.setitem(ORIGINS, "scgem", origin)
    assert not data.available("scgem")
    assert data.load_scgem().X.shape == (4000, 2)
    assert [p.name for p in cache.iterdir()] == [origin.file]


@pytest.mark.parametrize("size", ["declared", "real"])
def test_zip_bomb(size, server, tmp_path, monkeypatch):
    """A cache that unpacks to more than the bound, whether it says so or lies about it."""
    cache, origin = tmp_path / "cache", scgem(server.address)
    cache.mkdir()
    monkeypatch.setitem(ORIGINS, "scgem", origin)
    path = cache / origin.file
    zeros = written("(4000, 100000)", body=bytes(2**24))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", zeros)
        archive.writestr("y.npy", zeros)
    if size == "declared":
        monkeypatch.setattr(_fetch, "LIMIT", 2**20)
    else:  # both places that hold the size say 100 bytes
        raw = path.read_bytes().replace(struct.pack("<I", len(zeros)), struct.pack("<I", 100))
        path.write_bytes(raw)
    with pytest.raises(data.DataUnavailable, match="is damaged") as caught:
        _fetch.find("scgem", download=False)
    assert ("unpacks to" in str(caught.value)) == (size == "declared")
    assert not server.hits
    assert _fetch.find("scgem")["X"].shape == (4000, 2)  # and the next download replaces it


def test_full_disk_in_a_download(server, tmp_path):
    """The disk fills while a file comes in: the sentence of the system, nothing left."""
    code = (
        """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
"""
        + "\n".join("    " + line for line in FETCH.strip().splitlines())
        + """
except OSError as error:
    say("refused", error)
"""
    )
    with process(code, server.address, scgem(server.address).digest) as child:
        text = next(line for line in child.stdout if line.startswith("refused"))
        assert child.wait(60) == 0
    assert re.search(r"File too large.*Place the files by hand", text)
    assert not list((tmp_path / "cache").iterdir())


def test_hash_of_a_download(server, tmp_path, monkeypatch):
    """Whole files with another content than the known one are not used and not kept."""
    good = scgem(server.address)
    monkeypatch.setitem(ORIGINS, "scgem", replace(good, digest="0" * 64))
    with pytest.raises(data.DataUnavailable, match="sha256"):
        data.load_scgem()
    first = good.sources[0]
    wrong = hashlib.md5(b"another file", usedforsecurity=False).hexdigest()
    sources = (replace(first, check=f"md5:{wrong}"), *good.sources[1:])
    monkeypatch.setitem(ORIGINS, "scgem", replace(good, sources=sources))
    with pytest.raises(data.DataUnavailable, match=f"does not have the md5:{wrong}"):
        data.load_scgem()
    assert not list((tmp_path / "cache").iterdir())
