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
import socket
import struct
import tarfile
import threading
import time
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from drot import datasets as data
from drot.datasets import fetch as _fetch
from drot.datasets import formats as _formats
from drot.datasets.origins import ORIGINS, Source
from PIL import Image

NAMES = tuple(ORIGINS)


# The server


class Server(ThreadingHTTPServer):
    """Serves ``files`` {name: bytes}; ``faults`` {name: how it goes wrong}; counts ``hits``."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.faults, self.hits = {}, {}, []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.lstrip("/")
        self.server.hits.append(name)
        fault, body = self.server.faults.get(name), self.server.files.get(name)
        if body is None or fault == "404":
            self.send_error(404)
            return
        if fault == "silent":
            time.sleep(2)
            return
        self.send_response(200)
        if fault != "unsized":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault in ("cut", "unsized") else body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, no DROT_DATA, and no proxy between us and the server."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DROT_CACHE", str(folder))
    monkeypatch.delenv("DROT_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
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
    names = [source.name for source in ORIGINS[name].sources]
    files = {names[0]: rows.encode(), names[1]: labels.encode()}
    return files, {"X": X, "y": y}, ORIGINS[name].read


def snareseq(name):
    return text_files(name, "\t", "%.18e", 4, "%d")


def scgem(name):
    files, arrays, read = text_files(name, ",", "%.12g", 5, "%.18e")
    key = ORIGINS[name].sources[0].name
    return {**files, key: files[key].replace(b"\n", b"\r\n")}, arrays, read


def mnist(name):
    rng = np.random.default_rng(6)
    X, y = rng.integers(0, 256, (12, 5, 4), np.uint8), rng.integers(0, 10, 12, np.uint8)
    names = [source.name for source in ORIGINS[name].sources]
    arrays = {"X": X.reshape(12, 20), "y": y.astype(np.int64)}
    return {names[0]: idx(X), names[1]: idx(y)}, arrays, ORIGINS[name].read


def fashion(name):
    rng = np.random.default_rng(7)
    X, y = rng.integers(0, 256, (7, 28, 28), np.uint8), np.array([9, 0, 3, 3, 1, 0, 2])
    sprite = np.zeros((84, 84), np.uint8)  # 3 x 3 tiles, two of them empty
    for k, image in enumerate(X):
        row, column = divmod(k, 3)
        sprite[28 * row : 28 * row + 28, 28 * column : 28 * column + 28] = image
    labels = "".join(f"{k}\n" for k in y).encode()
    names = [source.name for source in ORIGINS[name].sources]
    files = {names[0]: png(sprite), names[1]: labels}
    return files, {"X": X.reshape(7, -1), "y": y}, ORIGINS[name].read


def olivetti(name):
    from scipy.io import savemat

    X = np.random.default_rng(8).integers(0, 256, (20, 64, 64), np.uint8)
    faces = np.stack([image.flatten(order="F") for image in X], axis=1)  # (4096, 20)
    stream = io.BytesIO()
    savemat(stream, {"faces": faces, "p": np.eye(2)})
    arrays = {"X": X.reshape(20, -1), "y": np.repeat([0, 1], 10)}
    return {"olivettifaces.mat": stream.getvalue()}, arrays, ORIGINS[name].read


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
    file = ORIGINS[name].sources[0].name
    read = partial(_formats.read_coil20, objects=2, views=3, side=16, rank=3)
    return {file: tar(members or coil_members())}, arrays, read


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
            if layout == "0.7":
                file["obs/louvain"], file["obs/__categories/louvain"] = codes, classes
            else:
                file["obs/louvain/codes"], file["obs/louvain/categories"] = codes, classes
    return {"pbmc3k.h5ad": stream.getvalue()}, {"X": X, "y": y}, ORIGINS[name].read


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
    files, arrays, read = made or MAKERS[name](name)
    server.files.update(files)
    origin = ORIGINS[name]
    corners = ()
    if origin.corners:
        corners = tuple(np.concatenate([arrays["X"][0, :3], arrays["X"][-1, :3]]))
    origin = replace(
        origin,
        sources=tuple(
            replace(s, urls=(f"{server.address}/{s.name}",), check="") for s in origin.sources
        ),
        digest=_fetch.digest(arrays[origin.hashed], arrays["y"].astype("<i8")),
        corners=corners,
        read=read,
    )
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
    """The loader says in one line what it wants by hand, and leaves nothing behind."""
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
    assert sorted(hits) == sorted(source.name for source in origin.sources)
    assert left(cache) == [origin.file]
    same(_fetch.find(name), arrays)
    same(_fetch.find(name, download=False), arrays)
    assert data.available(name)
    assert server.hits == hits


@pytest.mark.parametrize("layout", ["0.6", "0.7", "0.8"])
def test_every_layout_of_anndata_is_read(layout, server, cache, monkeypatch):
    """Compound tables and groups give the same arrays."""
    _, arrays = publish("pbmc3k", server, monkeypatch, pbmc("pbmc3k", layout))
    same(_fetch.find("pbmc3k"), arrays)


def test_without_h5py_the_sentence_names_it(tmp_path, monkeypatch):
    """The one optional library is named when it is missed."""
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(ValueError, match="pip install h5py"):
        ORIGINS["pbmc3k"].read([tmp_path / "pbmc3k.h5ad"])


def test_progress_is_shown(server, cache, monkeypatch, capfd):
    """A download draws a bar with the name of the file."""
    publish("scgem", server, monkeypatch)
    _fetch.find("scgem")
    assert "Cheow_expression.csv" in capfd.readouterr().err


def test_next_address_is_tried(server, cache, monkeypatch):
    """A file with two addresses needs one of them."""
    origin, arrays = publish("mnist", server, monkeypatch)
    sources = tuple(
        replace(s, urls=(f"{server.address}/gone/{s.name}", *s.urls)) for s in origin.sources
    )
    monkeypatch.setitem(ORIGINS, "mnist", replace(origin, sources=sources))
    same(_fetch.find("mnist"), arrays)
    assert len(server.hits) == 4


# Broken transfers


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arrays_are_refused(name, server, cache, monkeypatch):
    """A file that decodes to other arrays than the known ones is not used and not kept."""
    origin, _ = publish(name, server, monkeypatch, digest="0" * 64)
    url = origin.sources[0].urls[0]
    refused(name, cache, "sha256", "0" * 64, url, origin.sources[0].name, str(cache), "DROT_DATA")
    assert not data.available(name)


@pytest.mark.parametrize(
    ("fault", "words"),
    [("404", "the server answers 404"), ("cut", "the transfer broke off"), ("unsized", "")],
)
@pytest.mark.parametrize("name", NAMES)
def test_broken_transfer_leaves_nothing(name, fault, words, server, cache, monkeypatch):
    """404, a connection cut before the announced length, and one cut without announcing any."""
    origin, _ = publish(name, server, monkeypatch)
    last = origin.sources[-1]
    server.faults[last.name] = fault
    refused(name, cache, words, last.urls[0], last.name, str(cache))
    server.faults.clear()
    assert _fetch.find(name)["X"].size  # and it works again when the server does


def test_no_network(server, cache, monkeypatch):
    """A port where nobody listens."""
    origin, _ = publish("snareseq_chromatin", server, monkeypatch)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sources = tuple(replace(s, urls=(f"http://127.0.0.1:{port}/{s.name}",)) for s in origin.sources)
    monkeypatch.setitem(ORIGINS, "snareseq_chromatin", replace(origin, sources=sources))
    text = refused("snareseq_chromatin", cache, "no connection", f":{port}/SNAREseq_1.txt")
    assert "object at 0x" not in text


def test_silent_server(server, cache, monkeypatch):
    """A server that accepts and says nothing does not hold us for ever."""
    publish("olivetti", server, monkeypatch)
    server.faults["olivettifaces.mat"] = "silent"
    monkeypatch.setattr(_fetch, "TIMEOUT", 0.2)
    refused("olivetti", cache, "no answer within")


def test_too_large_a_file_is_cut_short(server, cache, monkeypatch):
    """A download stops at its bound."""
    origin, _ = publish("olivetti", server, monkeypatch)
    sources = (replace(origin.sources[0], limit=1000),)
    monkeypatch.setitem(ORIGINS, "olivetti", replace(origin, sources=sources))
    refused("olivetti", cache, "larger than it may be")


@pytest.mark.parametrize("kind", ["md5", "git"])
def test_check_of_the_file_itself(kind, server, cache, monkeypatch):
    """Where the hash of an original is known, it is checked before the file is opened."""
    origin, arrays = publish("olivetti", server, monkeypatch)
    body = server.files["olivettifaces.mat"]
    plain = body if kind == "md5" else b"blob %d\0" % len(body) + body
    known = hashlib.new("md5" if kind == "md5" else "sha1", plain).hexdigest()
    opened = []

    def read(paths):
        opened.append(paths)
        return arrays

    for value, good in ((known, True), ("0" * len(known), False)):
        sources = (replace(origin.sources[0], check=f"{kind}:{value}"),)
        monkeypatch.setitem(ORIGINS, "olivetti", replace(origin, sources=sources, read=read))
        if good:
            _fetch.find("olivetti")
            (cache / origin.file).unlink()
            opened.clear()
        else:
            refused("olivetti", cache, f"{kind}:000")
            assert not opened


def test_interrupt_leaves_nothing(server, cache, monkeypatch):
    """Ctrl-C between the download and the cache."""

    def read(paths):
        assert all(path.is_file() for path in paths)
        raise KeyboardInterrupt

    publish("scgem", server, monkeypatch, read=read)
    with pytest.raises(KeyboardInterrupt):
        _fetch.find("scgem")
    assert left(cache) == []


def test_failing_write_leaves_nothing(server, cache, monkeypatch):
    """A full disk while the cache is written."""

    def full(stream, **arrays):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    publish("scgem", server, monkeypatch)
    monkeypatch.setattr(np, "savez_compressed", full)
    refused("scgem", cache, "No space left on device")


def test_folder_of_another_download_stays(server, cache, monkeypatch):
    """What a process may still be working in is left alone for a day, and then swept away."""
    publish("scgem", server, monkeypatch)
    now = time.time()
    for name, age in (("young", 86_300), ("old", 86_500)):
        folder = cache / f".drot-{name}"
        folder.mkdir(parents=True)
        (folder / "half").write_bytes(b"half")
        os.utime(folder, (now - age, now - age))
    _fetch.find("scgem")
    assert left(cache) == [".drot-young", ".drot-young/half", ORIGINS["scgem"].file]


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

HOSTILE = {  # kind: (member, content, what the refusal says)
    "parent": ("../evil", b"x", "outside its folder"),
    "deep parent": ("SNEkhorn-48178d4/data/../../../evil", b"x", "outside its folder"),
    "absolute": ("/evil", b"x", "outside its folder"),
    "drive": ("C:\\evil", b"x", "outside its folder"),
    "backslash": ("a\\..\\..\\evil", b"x", "outside its folder"),
    "symbolic link": (
        f"{COIL}/obj1__1.png",
        (tarfile.SYMTYPE, "/etc/hostname"),
        "is a link or no plain file",
    ),
    "hard link": (
        f"{COIL}/obj1__1.png",
        (tarfile.LNKTYPE, f"{COIL}/obj1__0.png"),
        "is a link or no plain file",
    ),
    "device": (f"{COIL}/obj1__1.png", (tarfile.CHRTYPE, ""), "is a link or no plain file"),
    "large member": (f"{COIL}/obj1__1.png", bytes(2**20 + 1), "larger than 1 MiB"),
    "no image": (f"{COIL}/obj1__1.png", b"no image", "cannot be read as a PNG"),
    "wrong size": (f"{COIL}/obj1__1.png", png(np.zeros((8, 8), np.uint8)), "8 x 8 image"),
    "colour": (f"{COIL}/obj1__1.png", png(np.zeros((16, 16, 3), np.uint8)), "of mode RGB"),
    "one too many": (f"{COIL}/obj3__0.png", png(np.zeros((16, 16), np.uint8)), "an image too many"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archive(kind, tmp_path, server, cache, monkeypatch):
    """Members outside the folder, links, devices and other images are refused; nothing escapes."""
    name, content, words = HOSTILE[kind]
    made = coil("coil20", [*coil_members(), (name, content)])
    origin, _ = publish("coil20", server, monkeypatch, made)
    refused("coil20", cache, words, origin.sources[0].urls[0])
    assert not list(tmp_path.rglob("*evil*"))


def test_harmless_members_are_passed_over(server, cache, monkeypatch):
    """Other files and links of the repository are neither read nor a reason to refuse it."""
    link = ("SNEkhorn-48178d4/latest", (tarfile.SYMTYPE, "README.md"))
    folder = (COIL, (tarfile.DIRTYPE, ""))
    _, arrays = publish(
        "coil20", server, monkeypatch, coil("coil20", [folder, link, *coil_members()])
    )
    same(_fetch.find("coil20"), arrays)


def test_missing_image_is_named(server, cache, monkeypatch):
    """An archive without one of the views."""
    members = [m for m in coil_members() if not m[0].endswith("obj2__1.png")]
    publish("coil20", server, monkeypatch, coil("coil20", members))
    refused("coil20", cache, "obj2__1.png")


def test_archive_bomb(tmp_path):
    """An archive that unpacks to more than its bound is left at the bound."""
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(tar([("a/zeros", bytes(2**22))]))
    with pytest.raises(ValueError, match="unpacks to more"):
        list(_formats._members(path, re.compile("x"), limit=2**20))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (gzip.compress(b"\0\0\x08\x01" + struct.pack(">3I", 1, 2, 2) + b"1234"), "no IDX file"),
        (gzip.compress(b"\0\0\x08\x03" + struct.pack(">3I", 1, 2, 2) + b"123"), "4 bytes"),
        (gzip.compress(b"\0\0\x08\x03" + struct.pack(">3I", 1, 2, 2) + b"12345"), "4 bytes"),
        (gzip.compress(b"\0\0\x08\x03" + struct.pack(">3I", *[2**31] * 3)), "more than"),
        (b"not gzip", "ot a gzipped file"),
        (gzip.compress(b"\0\0\x08\x03" + bytes(1000))[:-12], ""),
    ],
)
def test_bad_idx(body, words, server, cache, monkeypatch):
    """IDX files with a wrong header, a wrong length, a length that would fill the memory."""
    origin, _ = publish("mnist", server, monkeypatch)
    server.files[origin.sources[0].name] = body
    refused("mnist", cache, words)


def test_images_without_labels(server, cache, monkeypatch):
    """Twelve images and eleven labels, each a whole file."""
    origin, _ = publish("mnist", server, monkeypatch)
    images, labels = (source.name for source in origin.sources)
    server.files[labels] = idx(np.arange(11, dtype=np.uint8) % 10)
    refused("mnist", cache, f"{images} has 12 images for 11 labels")


def spoil_cells(body, fault):
    """A pbmc3k.h5ad as anndata 0.8 writes it, changed in one place."""
    h5py = pytest.importorskip("h5py", reason="h5py reads this file, and it is not installed")
    stream = io.BytesIO(body)
    with h5py.File(stream, "r+") as file:
        codes, classes = file["obs/louvain/codes"], file["obs/louvain/categories"]
        match fault:
            case "no scores":
                del file["obsm/X_pca"]
            case "scores in a table without them":
                del file["obsm"]
                file["obsm"] = np.zeros(30, [("X_umap", "<f8", (2,))])
            case "no classes of cells":
                del file["obs/louvain"]
            case "no names of classes":
                del file["obs/louvain/categories"]
            case "another class":
                classes[0] = b"Neurons"
            case "a class twice":
                classes[0] = classes[1]
            case "a code below 0":
                codes[3] = -1
            case "a code too high":
                codes[3] = 8
    return stream.getvalue()


@pytest.mark.parametrize(
    "fault",
    ["no scores", "scores in a table without them", "no classes of cells", "no names of classes"],
)
def test_cells_that_lack_a_part(fault, server, cache, monkeypatch):
    """An HDF5 file without the scores, or without the classes, is not that of pbmc3k."""
    publish("pbmc3k", server, monkeypatch, pbmc("pbmc3k", "0.8"))
    server.files["pbmc3k.h5ad"] = spoil_cells(server.files["pbmc3k.h5ad"], fault)
    refused("pbmc3k", cache, "pbmc3k.h5ad lacks a part of pbmc3k: ")


@pytest.mark.parametrize(
    "fault", ["another class", "a class twice", "a code below 0", "a code too high"]
)
def test_cells_of_other_classes(fault, server, cache, monkeypatch):
    """What the file has and what it should have are both said; no code counts from the end."""
    origin, _ = publish("pbmc3k", server, monkeypatch, pbmc("pbmc3k", "0.8"))
    server.files["pbmc3k.h5ad"] = spoil_cells(server.files["pbmc3k.h5ad"], fault)
    stored = sorted(origin.label_names)
    if fault == "another class":
        stored[0] = "Neurons"
    elif fault == "a class twice":
        stored[0] = stored[1]
    words = f"pbmc3k.h5ad has the classes {stored}, not {list(origin.label_names)}"
    refused("pbmc3k", cache, words)


@pytest.mark.parametrize(
    ("features", "labels", "words"),
    [
        (b"\n", b"1\n", "is empty"),
        (b"1\t2\n3\n", b"1\n2\n", ""),
        (b"1\tnan\n", b"1\n", "not finite"),
        (b"1\tx\n", b"1\n", "could not convert"),
        (b"1\t2\n", b"1\n2\n", "not 1 class numbers"),
        (b"1\t2\n", b"0\n", "class numbers from 1 on"),
        (b"1\t2\n", b"1.5\n", "class numbers from 1 on"),
        (b"<html>\xff</html>", b"1\n", ""),
    ],
)
def test_bad_tables(features, labels, words, server, cache, monkeypatch):
    """Tables that are ragged, empty, not numbers, or do not match."""
    publish("snareseq_chromatin", server, monkeypatch)
    server.files["SNAREseq_1.txt"], server.files["SNAREseq_label.txt"] = features, labels
    refused("snareseq_chromatin", cache, words)


@pytest.mark.parametrize("content", [{"face": 1}, {"faces": np.zeros((3, 2))}, None])
def test_bad_mat(content, server, cache, monkeypatch):
    """MATLAB files without the faces, with other shapes or values, or none at all."""
    from scipy.io import savemat

    publish("olivetti", server, monkeypatch)
    stream = io.BytesIO()
    if content is None:
        stream.write(b"MATLAB 7.3 MAT-file" + bytes(200))
    else:
        savemat(stream, content)
    server.files["olivettifaces.mat"] = stream.getvalue()
    refused("olivetti", cache)
    stream = io.BytesIO()
    savemat(stream, {"faces": np.full((4096, 10), 0.5)})
    server.files["olivettifaces.mat"] = stream.getvalue()
    refused("olivetti", cache, "0, 1, ..., 255")


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
        sha256 = hashlib.sha256((folder / origin.file).read_bytes()).hexdigest()
        monkeypatch.setitem(ORIGINS, "olivetti", replace(origin, sha256=sha256))
    refused("olivetti", cache, origin.file, "allow_pickle=False", download=False)
    assert not evil.exists()


# The folder DROT_DATA, the cache, and files placed by hand


def test_drot_data_comes_first(tmp_path, server, cache, monkeypatch):
    """A file of DROT_DATA with the right sha256 is used; the cache and the network rest."""
    origin, arrays = publish("scgem", server, monkeypatch)
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez_compressed(folder / origin.file, label_names=np.array(["BJ"]), **arrays)
    sha256 = hashlib.sha256((folder / origin.file).read_bytes()).hexdigest()
    monkeypatch.setitem(ORIGINS, "scgem", replace(origin, sha256=sha256))
    monkeypatch.setenv("DROT_DATA", str(folder))
    same(_fetch.find("scgem"), arrays)
    assert server.hits == [] and left(cache) == []


def test_drot_data_with_another_file(tmp_path, server, cache, monkeypatch):
    """A wrong sha256 in DROT_DATA is said, and not papered over by a download."""
    origin, arrays = publish("scgem", server, monkeypatch)
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez_compressed(folder / origin.file, **arrays)
    monkeypatch.setenv("DROT_DATA", str(folder))
    refused("scgem", cache, str(folder / origin.file), "sha256", origin.sha256, "replace it")
    assert server.hits == [] and not data.available("scgem")


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


@pytest.mark.parametrize("damage", ["truncated", "other arrays", "no arrays", "empty"])
def test_damaged_cache_is_replaced(damage, server, cache, monkeypatch):
    """A damaged cache is said without the network, and replaced with it."""
    origin, arrays = publish("scgem", server, monkeypatch)
    _fetch.find("scgem")
    path = cache / origin.file
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "other arrays":
        np.savez_compressed(path, X=arrays["X"] + 1, y=arrays["y"])
    elif damage == "no arrays":
        np.savez_compressed(path, Z=arrays["X"])
    else:
        path.write_bytes(b"")
    refused("scgem", cache, "is damaged", origin.file, download=False)
    same(_fetch.find("scgem"), arrays)
    same(_fetch.find("scgem", download=False), arrays)
    assert left(cache) == [origin.file]


def test_cache_that_would_fill_the_memory(server, cache, monkeypatch):
    """An .npz that unpacks to more than the bound is refused before it is unpacked."""
    origin, _ = publish("scgem", server, monkeypatch)
    _fetch.find("scgem")
    monkeypatch.setattr(_fetch, "LIMIT", 100)
    refused("scgem", cache, "unpacks to", origin.file, download=False)


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
    assert all((folder / file).is_file() for file in server.files)  # they are not ours to remove


def test_no_download_without_leave(server, cache, monkeypatch):
    """download=False asks nobody, makes no folder, and says what to do."""
    for name in ("scgem", "mnist"):
        origin, _ = publish(name, server, monkeypatch)
        text = refused(name, cache, "download=False", str(cache), "DROT_DATA", download=False)
        for source in origin.sources:
            assert source.name in text and source.urls[0] in text
    assert server.hits == [] and not cache.exists()


@pytest.mark.parametrize("shape", [(7, 3), (5, 3), (6,), (6, 3, 1)])
def test_points_without_labels(shape, server, cache, monkeypatch):
    """COIL-20, whose sha256 does not see the scores: as many of them as labels, in a table."""
    origin, arrays = publish("coil20", server, monkeypatch)
    content = {**arrays, "X": np.resize(arrays["X"], shape)}
    monkeypatch.setitem(ORIGINS, "coil20", replace(origin, read=lambda paths: content))
    refused("coil20", cache, f"X has shape {shape} for 6 labels")


def test_principal_components_are_compared(server, cache, monkeypatch):
    """COIL-20: right images with wrong scores (a sign, an order) are refused."""
    made = coil("coil20")
    origin, arrays = publish("coil20", server, monkeypatch, made)
    for bad in (-arrays["X"], arrays["X"][:, ::-1], arrays["X"] * (1 + 1e-4)):
        content = {**arrays, "X": bad}
        read = partial(dict, content)
        monkeypatch.setitem(ORIGINS, "coil20", replace(origin, read=lambda paths, r=read: r()))
        refused("coil20", cache, "principal components differ")


# The table of addresses


@pytest.mark.parametrize("name", NAMES)
def test_addresses_are_pinned(name):
    """Every address is https at a full commit, and every hash a whole sha256."""
    origin = ORIGINS[name]
    for source in origin.sources:
        assert isinstance(source, Source) and source.urls
        for url in source.urls:
            assert re.fullmatch(r"https://(raw\.githubusercontent|codeload\.github)\.com/.+", url)
            assert re.search(r"/[0-9a-f]{40}(/|$)", url), url
        assert re.fullmatch(r"|md5:[0-9a-f]{32}|git:[0-9a-f]{40}", source.check)
        assert "/" not in source.name and source.limit <= 2**28
    for value in (origin.sha256, origin.digest):
        assert re.fullmatch(r"[0-9a-f]{64}", value)


def test_names_of_files_are_distinct():
    """Originals of all data sets can lie in one folder."""
    of = {}
    for origin in ORIGINS.values():
        for source in origin.sources:
            assert of.setdefault(source.name, source.urls) == source.urls
        assert of.setdefault(origin.file, origin.file) == origin.file


def test_digest_knows_type_shape_and_order():
    """The hash of arrays moves with each of their parts, not with their layout in memory."""
    a = np.arange(6, dtype=np.int16).reshape(2, 3)
    same_bits = (np.asfortranarray(a), a.astype(">i2"), np.arange(12)[::2].astype("<i2"))
    assert _fetch.digest(same_bits[0]) == _fetch.digest(a) == _fetch.digest(same_bits[1])
    others = (a.astype("<u2"), a.reshape(3, 2), a.astype(np.int32), a + 1, same_bits[2])
    assert len({_fetch.digest(b) for b in (a, *others)}) == 6
    wanted = hashlib.sha256(b"<i2(2, 3)" + a.astype("<i2").tobytes()).hexdigest()
    assert _fetch.digest(a) == wanted
