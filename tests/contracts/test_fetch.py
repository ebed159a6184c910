"""Downloads, cache and files placed by hand: what is checked, what is refused, what stays behind.

A server on the loopback address plays the original addresses. It serves small files in the exact
formats of the originals, whole, broken or hostile.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from drot import datasets as data
from drot.datasets import fetch as _fetch
from drot.datasets import formats as _formats
from drot.datasets.fetch import ORIGINS
from PIL import Image

NAMES = tuple(ORIGINS)


# The server


class Server(ThreadingHTTPServer):
    """Serves ``files`` {name: bytes}; ``faults`` {name: how it goes wrong}; counts ``hits``."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.faults, self.hits = {}, {}, []
        self.stalled, self.release = threading.Event(), threading.Event()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server, name = self.server, self.path.lstrip("/")
        server.hits.append(name)
        fault, body = server.faults.get(name), server.files.get(name)
        if body is None or fault == "404":
            self.send_error(404)
            return
        self.send_response(200)
        if fault != "unsized":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault else body)
        if fault == "stall":
            self.wfile.flush()
            server.stalled.set()
            server.release.wait(60)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, no DROT_DATA, no second attempts, no proxy before the server."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DROT_CACHE", str(folder))
    monkeypatch.delenv("DROT_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(_fetch, "RETRIES", 0)
    return folder


# Small originals in the exact formats: each returns the files, the arrays in them, the reader


def png(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def idx(array):
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.tobytes())


def tar(members):
    """A .tar.gz of (name, content or TarInfo) as GitHub makes them, with a global header."""
    stream = io.BytesIO()
    with tarfile.open(
        fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT, pax_headers={"comment": "48178d4"}
    ) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:  # (type, target)
                info.type, info.linkname = content
                archive.addfile(info)
    return stream.getvalue()


def text_files(name, delimiter, form, classes, label_form):
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(scale=1e3, size=(9, 4)), 3)
    y = rng.permutation(np.arange(9) % classes)
    rows = "\n".join(delimiter.join(form % v for v in row) for row in X)
    labels = "\n".join(label_form % (k + 1) for k in y)  # no new line at the end
    names = list(ORIGINS[name].urls)
    files = {names[0]: rows.encode(), names[1]: labels.encode()}
    return files, {"X": X, "y": y}


def snareseq(name):
    return text_files(name, "\t", "%.18e", 4, "%d")


def scgem(name):
    files, arrays = text_files(name, ",", "%.12g", 5, "%.18e")
    key = next(iter(files))
    return {**files, key: files[key].replace(b"\n", b"\r\n")}, arrays


def mnist(name):
    rng = np.random.default_rng(6)
    X, y = rng.integers(0, 256, (12, 5, 4), np.uint8), rng.integers(0, 10, 12, np.uint8)
    images, labels = ORIGINS[name].urls
    return {images: idx(X), labels: idx(y)}, {"X": X.reshape(12, 20), "y": y.astype(np.int64)}


def fashion(name):
    rng = np.random.default_rng(7)
    X, y = rng.integers(0, 256, (7, 28, 28), np.uint8), np.array([9, 0, 3, 3, 1, 0, 2])
    sprite = np.zeros((84, 84), np.uint8)  # 3 x 3 tiles, two of them empty
    for k, image in enumerate(X):
        row, column = divmod(k, 3)
        sprite[28 * row : 28 * row + 28, 28 * column : 28 * column + 28] = image
    sprites, labels = ORIGINS[name].urls
    files = {sprites: png(sprite), labels: "".join(f"{k}\n" for k in y).encode()}
    return files, {"X": X.reshape(7, -1), "y": y}


def olivetti(name):
    from scipy.io import savemat

    X = np.random.default_rng(8).integers(0, 256, (20, 64, 64), np.uint8)
    faces = np.stack([image.flatten(order="F") for image in X], axis=1)  # (4096, 20)
    stream = io.BytesIO()
    savemat(stream, {"faces": faces, "p": np.eye(2)})
    arrays = {"X": X.reshape(20, -1), "y": np.repeat([0, 1], 10)}
    return {"olivettifaces.mat": stream.getvalue()}, arrays


COIL = "SNEkhorn-48178d4/data/coil-20-proc"


def coil_images():
    return np.random.default_rng(9).integers(0, 256, (2, 3, 16, 16), np.uint8)


def coil_members():
    images = coil_images()
    views = [(f"{COIL}/obj{k + 1}__{v}.png", png(images[k, v])) for v in (2, 0, 1) for k in (1, 0)]
    return [("SNEkhorn-48178d4/README.md", b"hello"), *views]


def coil(name, members=None):
    images = coil_images()
    X = images.reshape(6, -1) / 255
    u, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    scores = (u * s)[:, :3]
    scores = scores * np.sign(scores[np.abs(scores).argmax(axis=0), range(3)])
    means = images.reshape(6, 4, 4, 4, 4).mean(axis=(2, 4))
    arrays = {
        "X": scores,
        "y": np.repeat([0, 1], 3),
        "X32": np.floor(means + 0.5).astype(np.uint8).reshape(6, -1),
        "view": np.tile(np.arange(3), 2),
    }
    (file,) = ORIGINS[name].urls
    return {file: tar(members or coil_members())}, arrays


def pbmc(name, layout="0.6"):
    h5py = pytest.importorskip("h5py", reason="h5py reads this file, and it is not installed")
    rng = np.random.default_rng(10)
    X, names = rng.normal(size=(30, 50)).astype(np.float32), ORIGINS[name].label_names
    y = np.arange(30) % 8
    stored = sorted(names)  # the file orders the classes in a way of its own
    codes = np.array([stored.index(names[k]) for k in y], np.int8)
    classes = [c.encode() for c in stored]
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        if layout == "0.6":
            obsm = np.zeros(30, [("X_pca", "<f4", (50,)), ("X_umap", "<f8", (2,))])
            obsm["X_pca"] = X
            obs = np.zeros(30, [("index", "S16"), ("n_genes", "<i8"), ("louvain", "i1")])
            obs["louvain"] = codes
            file["obsm"], file["obs"] = obsm, obs
            file["uns/louvain_categories"] = np.array(classes)
        else:
            file["obsm/X_pca"] = X
            file["obs/louvain"], file["obs/__categories/louvain"] = codes, classes
    return {"pbmc3k.h5ad": stream.getvalue()}, {"X": X, "y": y}


MAKERS = {
    "snareseq_chromatin": snareseq,
    "snareseq_expression": snareseq,
    "scgem": scgem,
    "coil20": coil,
    "mnist": mnist,
    "fashion_mnist": fashion,
    "olivetti": olivetti,
    "pbmc3k": pbmc,
}


def publish(name, server, monkeypatch, made=None, **changes):
    """Put small originals on the server and point the table of addresses at it."""
    files, arrays = made or MAKERS[name](name)
    server.files.update(files)
    origin = ORIGINS[name]
    origin = replace(
        origin,
        urls={file: f"{server.address}/{file}" for file in origin.urls},
        sha256=_fetch.digest(arrays.get("X32", arrays["X"]), arrays["y"].astype("<i8")),
    )
    if origin.corners:
        corners = np.concatenate([arrays["X"][0, :3], arrays["X"][-1, :3]])
        read = partial(_formats.read_coil20, n_components=3)
        origin = replace(origin, corners=corners.tolist(), read=read)
    origin = replace(origin, **changes)
    monkeypatch.setitem(ORIGINS, name, origin)
    return origin, arrays


def same(found, arrays):
    assert set(found) == set(arrays)
    for key, wanted in arrays.items():
        if found[key].dtype.kind == "f" and key == "X":
            np.testing.assert_allclose(found[key], wanted, rtol=0, atol=1e-10, err_msg=key)
        else:
            np.testing.assert_array_equal(found[key], wanted, err_msg=key)


def left(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) if folder.exists() else []


def refused(name, folder, *words, **options):
    """The loader says in one line what is wrong, and leaves nothing behind."""
    before = left(folder)
    with pytest.raises(data.DataUnavailable) as caught:
        _fetch.find(name, **options)
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, (word, text)
    assert left(folder) == before
    return text


# Whole files


@pytest.mark.parametrize("name", NAMES)
def test_good_file_is_read_checked_and_cached(name, server, cache, monkeypatch):
    """A whole original gives its arrays to the bit; the second call reads the cache alone."""
    origin, arrays = publish(name, server, monkeypatch)
    same(_fetch.find(name), arrays)
    hits = list(server.hits)
    assert sorted(hits) == left(cache) == sorted(origin.urls)
    same(_fetch.find(name), arrays)
    same(_fetch.find(name, download=False), arrays)
    assert data.available(name)
    assert server.hits == hits


def test_both_layouts_of_anndata_are_read(server, cache, monkeypatch):
    """Compound tables (anndata 0.6) and groups (0.7) give the same arrays."""
    _, arrays = publish("pbmc3k", server, monkeypatch, pbmc("pbmc3k", "0.7"))
    same(_fetch.find("pbmc3k"), arrays)


def test_without_h5py_the_sentence_names_it(server, cache, monkeypatch):
    """The one optional library is named when it is missed."""
    publish("pbmc3k", server, monkeypatch)
    monkeypatch.setitem(sys.modules, "h5py", None)
    refused("pbmc3k", cache, "pip install h5py")


def test_progress_is_shown(server, cache, monkeypatch, capfd):
    """A download draws a bar."""
    publish("scgem", server, monkeypatch)
    _fetch.find("scgem")
    assert "100%" in capfd.readouterr().err


# Broken transfers


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arrays_are_refused(name, server, cache, monkeypatch):
    """A file that decodes to other arrays than the known ones is not used and not kept."""
    origin, _ = publish(name, server, monkeypatch, sha256="0" * 64)
    refused(name, cache, "sha256", "0" * 64, *origin.urls, str(cache), "replace what is damaged")
    assert not data.available(name)


@pytest.mark.parametrize("fault", ["404", "cut", "unsized"])
@pytest.mark.parametrize("name", ["mnist", "coil20", "pbmc3k"])
def test_broken_transfer_leaves_nothing(name, fault, server, cache, monkeypatch):
    """404, a connection cut before the announced length, and one cut without announcing any."""
    origin, _ = publish(name, server, monkeypatch)
    first, *_ = origin.urls
    server.faults[first] = fault
    words = () if fault == "unsized" else ("could not be fetched", "by hand", origin.urls[first])
    refused(name, cache, first, str(cache), *words)
    server.faults.clear()
    assert _fetch.find(name)["X"].size  # and it works again when the server does


def test_no_network(server, cache, monkeypatch):
    """A port where nobody listens."""
    origin, _ = publish("snareseq_chromatin", server, monkeypatch)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    urls = {file: f"http://127.0.0.1:{port}/{file}" for file in origin.urls}
    monkeypatch.setitem(ORIGINS, "snareseq_chromatin", replace(origin, urls=urls))
    refused("snareseq_chromatin", cache, "could not be fetched", "by hand", *urls.values())


def test_a_failed_download_is_tried_again(server, cache, monkeypatch):
    """pooch asks as often as it is told to."""
    publish("olivetti", server, monkeypatch)
    monkeypatch.setattr(_fetch, "RETRIES", 1)
    server.faults["olivettifaces.mat"] = "404"
    refused("olivetti", cache, "could not be fetched")
    assert len(server.hits) == 2


FETCH = """
import sys
from dataclasses import replace
from drot.datasets.fetch import ORIGINS, find

urls = {file: f"{sys.argv[1]}/{file}" for file in ORIGINS["scgem"].urls}
ORIGINS["scgem"] = replace(ORIGINS["scgem"], urls=urls, sha256=sys.argv[2])
find("scgem")
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_killed_download(number, server, cache, monkeypatch):
    """A process that dies in a download leaves no data set, and is not in the way of the next."""
    origin, arrays = publish("scgem", server, monkeypatch)
    server.faults["Cheow_expression.csv"] = "stall"
    with subprocess.Popen(
        [sys.executable, "-c", FETCH, server.address, origin.sha256], stderr=subprocess.DEVNULL
    ) as child:
        assert server.stalled.wait(60)
        child.send_signal(number)
        assert child.wait(60) != 0
    assert number == signal.SIGKILL or left(cache) == []
    server.faults.clear()
    assert not data.available("scgem")
    same(_fetch.find("scgem"), arrays)


def test_unusable_cache_is_named(tmp_path, server, cache, monkeypatch):
    """A cache that cannot be written names the variable that moves it."""
    publish("scgem", server, monkeypatch)
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("DROT_CACHE", str(file / "below"))
    with pytest.raises(data.DataUnavailable, match="DROT_CACHE"):
        _fetch.find("scgem")
    assert server.hits == []


# Hostile files


def test_nothing_is_written_by_an_archive(tmp_path, server, cache, monkeypatch):
    """Members outside the folder, links and folders are passed over: nothing is extracted."""
    evil = [(name, b"x") for name in ("../evil", "/evil", f"{COIL}/../../../evil", "C:\\evil")]
    link = ("SNEkhorn-48178d4/latest", (tarfile.SYMTYPE, "README.md"))
    folder = (COIL, (tarfile.DIRTYPE, ""))
    members = [folder, link, *evil, *coil_members()]
    _, arrays = publish("coil20", server, monkeypatch, coil("coil20", members))
    same(_fetch.find("coil20"), arrays)
    assert not list(tmp_path.rglob("*evil*"))


HOSTILE = {
    "symbolic link": (f"{COIL}/obj1__1.png", (tarfile.SYMTYPE, "/etc/hostname")),
    "device": (f"{COIL}/obj1__1.png", (tarfile.CHRTYPE, "")),
    "no image": (f"{COIL}/obj1__1.png", b"no image"),
    "wrong size": (f"{COIL}/obj1__1.png", png(np.zeros((8, 8), np.uint8))),
    "one too many": (f"{COIL}/obj3__0.png", png(np.zeros((16, 16), np.uint8))),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archive(kind, server, cache, monkeypatch):
    """Images that are links, devices or other images are refused."""
    made = coil("coil20", [*coil_members(), HOSTILE[kind]])
    publish("coil20", server, monkeypatch, made)
    refused("coil20", cache, "cannot be used")


@pytest.mark.parametrize("name", NAMES)
def test_other_files_under_the_name(name, server, cache, monkeypatch):
    """A page of a portal, or an empty file, in place of each original."""
    origin, _ = publish(name, server, monkeypatch)
    for body in (b"<html>\xff</html>", b""):
        server.files.update(dict.fromkeys(origin.urls, body))
        refused(name, cache, "cannot be used", *origin.urls)


class Trap:
    """Unpickling this object creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("place", ["cache", "DROT_DATA"])
def test_pickled_arrays_are_refused(place, tmp_path, server, cache, monkeypatch):
    """An .npz that holds objects is never unpickled, wherever it lies."""
    origin, arrays = publish("olivetti", server, monkeypatch)
    evil = tmp_path / "evil"
    trap = np.empty(1, object)
    trap[0] = Trap(evil)
    folder = cache if place == "cache" else tmp_path / "data"
    folder.mkdir()
    np.savez(folder / origin.file, X=trap, y=arrays["y"])
    if place == "DROT_DATA":
        monkeypatch.setenv("DROT_DATA", str(folder))
    refused("olivetti", cache, origin.file, "allow_pickle=False", download=False)
    assert not evil.exists()


# The folder DROT_DATA, the cache, and files placed by hand


@pytest.mark.parametrize("name", ["scgem", "coil20"])
def test_drot_data_comes_first(name, tmp_path, server, cache, monkeypatch):
    """An .npz of DROT_DATA with the right arrays is used; the cache and the network rest."""
    origin, arrays = publish(name, server, monkeypatch)
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez_compressed(folder / origin.file, label_names=np.array(["BJ"]), **arrays)
    monkeypatch.setenv("DROT_DATA", str(folder))
    same(_fetch.find(name), arrays)
    assert server.hits == [] and left(cache) == []


@pytest.mark.parametrize("damage", ["truncated", "other arrays", "no arrays", "empty"])
@pytest.mark.parametrize("place", ["cache", "DROT_DATA"])
def test_damaged_npz_is_named(place, damage, tmp_path, server, cache, monkeypatch):
    """A damaged or wrong .npz is said, and not papered over by a download."""
    origin, arrays = publish("scgem", server, monkeypatch)
    folder = cache if place == "cache" else tmp_path / "data"
    folder.mkdir()
    path = folder / origin.file
    np.savez_compressed(path, **arrays)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "other arrays":
        np.savez_compressed(path, X=arrays["X"] + 1, y=arrays["y"])
    elif damage == "no arrays":
        np.savez_compressed(path, Z=arrays["X"])
    else:
        path.write_bytes(b"")
    if place == "DROT_DATA":
        monkeypatch.setenv("DROT_DATA", str(folder))
    text = refused("scgem", cache, str(path), "cannot be used", "replace")
    assert "pickle" not in text  # no advice to read it unsafely
    assert server.hits == [] and not data.available("scgem")
    path.unlink()
    same(_fetch.find("scgem"), arrays)


def test_drot_data_is_no_folder(tmp_path, server, cache, monkeypatch):
    """A mistyped DROT_DATA is said; an empty one counts as none."""
    _, arrays = publish("scgem", server, monkeypatch)
    monkeypatch.setenv("DROT_DATA", str(tmp_path / "nowhere"))
    refused("scgem", cache, "DROT_DATA", "is not a folder")
    monkeypatch.setenv("DROT_DATA", "")
    same(_fetch.find("scgem"), arrays)


def test_drot_data_without_the_file(tmp_path, server, cache, monkeypatch):
    """A DROT_DATA that lacks this data set leads on to the cache and the network."""
    _, arrays = publish("scgem", server, monkeypatch)
    monkeypatch.setenv("DROT_DATA", str(tmp_path))
    same(_fetch.find("scgem"), arrays)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["cache", "DROT_DATA"])
def test_originals_placed_by_hand(name, place, tmp_path, server, cache, monkeypatch):
    """The original files under their own names serve as well, without the network."""
    _, arrays = publish(name, server, monkeypatch)
    folder = cache if place == "cache" else tmp_path / "data"
    folder.mkdir()
    for file, body in server.files.items():
        (folder / file).write_bytes(body)
    if place == "DROT_DATA":
        monkeypatch.setenv("DROT_DATA", str(folder))
    same(_fetch.find(name, download=False), arrays)
    assert server.hits == []
    broken = folder / next(iter(server.files))
    broken.write_bytes(b"")
    refused(name, cache, str(broken))
    assert all((folder / file).is_file() for file in server.files)  # they are not ours to remove


def test_no_download_without_leave(server, cache, monkeypatch):
    """download=False asks nobody, makes no folder, and says what to do."""
    for name in ("scgem", "mnist"):
        origin, _ = publish(name, server, monkeypatch)
        text = refused(name, cache, "download=False", str(cache), "DROT_DATA", download=False)
        for file, url in origin.urls.items():
            assert file in text and url in text
    assert server.hits == [] and not cache.exists()


def test_principal_components_are_compared(server, cache, monkeypatch):
    """COIL-20: right images with wrong scores (a sign, an order, a number) are refused."""
    origin, arrays = publish("coil20", server, monkeypatch)
    X = arrays["X"]
    for bad in (-X, X[:, ::-1], X * (1 + 1e-4), X[:-1], X[:, 0]):
        read = partial(dict, {**arrays, "X": bad})
        monkeypatch.setitem(ORIGINS, "coil20", replace(origin, read=lambda paths, r=read: r()))
        refused("coil20", cache, "cannot be used")


# The table of addresses


@pytest.mark.parametrize("name", NAMES)
def test_addresses_are_pinned(name):
    """Every address is https at a full commit, and every hash a whole sha256."""
    origin = ORIGINS[name]
    assert origin.urls and re.fullmatch(r"[0-9a-f]{64}", origin.sha256)
    for file, url in origin.urls.items():
        assert re.fullmatch(r"https://(raw\.githubusercontent|codeload\.github)\.com/.+", url)
        assert re.search(r"/[0-9a-f]{40}(/|$)", url), url
        assert "/" not in file


def test_names_of_files_are_distinct():
    """Originals of all data sets can lie in one folder."""
    of = {}
    for origin in ORIGINS.values():
        for file, url in (*origin.urls.items(), (origin.file, origin.file)):
            assert of.setdefault(file, url) == url


def test_digest_knows_type_shape_and_order():
    """The hash of arrays moves with each of their parts, not with their layout in memory."""
    a = np.arange(6, dtype=np.int16).reshape(2, 3)
    same_bits = (np.asfortranarray(a), a.astype(">i2"), np.arange(12)[::2].astype("<i2"))
    assert _fetch.digest(same_bits[0]) == _fetch.digest(a) == _fetch.digest(same_bits[1])
    others = (a.astype("<u2"), a.reshape(3, 2), a.astype(np.int32), a + 1, same_bits[2])
    assert len({_fetch.digest(b) for b in (a, *others)}) == 6
    wanted = hashlib.sha256(b"<i2(2, 3)" + a.astype("<i2").tobytes()).hexdigest()
    assert _fetch.digest(a) == wanted
