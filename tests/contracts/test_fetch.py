"""Downloads, cache and files placed by hand: what is checked, what is refused, what stays behind.

A server on the loopback address serves small files in the exact formats of the originals, whole,
broken or hostile.
"""

import gzip
import io
import re
import shutil
import struct
import sys
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from drot import datasets as data
from drot.datasets import fetch as _fetch
from drot.datasets import formats as _formats
from drot.datasets.fetch import ORIGINS
from PIL import Image
from scipy.io import savemat


class Handler(SimpleHTTPRequestHandler):
    """Counts ``hits``."""

    log_message = lambda *_: None  # noqa: E731

    def do_GET(self):
        self.server.hits.append(self.path[1:])
        super().do_GET()


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        server.hits, server.folder = [], folder
        server.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=[0.02]).start()
        yield server
        server.shutdown()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, no DROT_DATA, no second attempts, no proxy before the server."""
    monkeypatch.setenv("DROT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DROT_DATA", raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setattr(_fetch, "RETRIES", 0)
    return tmp_path / "cache"


@pytest.fixture(params=["cache", "DROT_DATA"])
def folder(request, cache, tmp_path, monkeypatch):
    """Where a reader may place files by hand."""
    place = tmp_path / request.param
    place.mkdir()
    if place != cache:
        monkeypatch.setenv("DROT_DATA", str(place))
    return place


# Small originals in the exact formats: each returns the files, and the arrays in them


def tar(members):
    """A .tar.gz of (name, pixels, or type and target) as GitHub makes them, with a header."""
    stream, head = io.BytesIO(), {"comment": "48178d4"}
    with tarfile.open(None, "w:gz", stream, format=tarfile.PAX_FORMAT, pax_headers=head) as archive:
        for name, content in members:
            info, body = tarfile.TarInfo(name), io.BytesIO()
            if isinstance(content, tuple):
                info.type, info.linkname = content
            else:
                Image.fromarray(content).save(body, "PNG")
                info.size = body.tell()
                body.seek(0)
            archive.addfile(info, body)
    return stream.getvalue()


def table(name):
    rng = np.random.default_rng(5)
    X, y = np.round(rng.normal(scale=1e3, size=(9, 4)), 3), rng.permutation(np.arange(9) % 5)
    rows = "\r\n".join(",".join(f"{v:.12g}" for v in row) for row in X)
    labels = "\n".join(f"{k + 1:.18e}" for k in y)  # no new line at the end
    bodies = rows.encode(), labels.encode()
    return dict(zip(ORIGINS[name].urls, bodies, strict=True)), {"X": X, "y": y}


def mnist(name):
    def idx(array):
        head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
        return gzip.compress(head + array.tobytes())

    rng = np.random.default_rng(6)
    X, y = rng.integers(0, 256, (12, 5, 4), np.uint8), rng.integers(0, 10, 12, np.uint8)
    images, labels = ORIGINS[name].urls
    return {images: idx(X), labels: idx(y)}, {"X": X.reshape(12, 20), "y": y.astype(np.int64)}


COIL = "SNEkhorn-48178d4/data/coil-20-proc"
VIEWS = np.random.default_rng(9).integers(0, 256, (2, 3, 16, 16), np.uint8)


def coil(name, before=()):
    images = [(f"{COIL}/obj{k + 1}__{v}.png", VIEWS[k, v]) for v in (2, 0, 1) for k in (1, 0)]
    X = VIEWS.reshape(6, -1) / 255
    u, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    scores = (u * s)[:, :3]
    means = VIEWS.reshape(6, 4, 4, 4, 4).mean(axis=(2, 4))
    arrays = {
        "scores": scores * np.sign(scores[np.abs(scores).argmax(axis=0), range(3)]),
        "y": np.repeat([0, 1], 3),
        "X": np.floor(means + 0.5).astype(np.uint8).reshape(6, -1),
        "view": np.tile(np.arange(3), 2),
    }
    (file,) = ORIGINS[name].urls
    return {file: tar([*before, *images])}, arrays


def matlab(**arrays):
    stream = io.BytesIO()
    savemat(stream, arrays)
    return stream.getvalue()


def umist(name):
    rng = np.random.default_rng(7)
    X, y = rng.integers(0, 256, (8, 32, 32), np.uint8), np.arange(8) % 3
    by_columns = X.transpose(0, 2, 1).reshape(8, -1)
    (file,) = ORIGINS[name].urls
    body = matlab(X=by_columns.astype(float), Y=(y + 1)[:, None])
    return {file: body}, {"X": X.reshape(8, -1), "y": y}


def zeisel(name):
    """Two levels of names; what the .npz holds of both is asked for by the name of the set."""
    rng, level = np.random.default_rng(8), "subclasses" in name
    X = np.round(rng.normal(size=(6, 4)), 4).astype(np.float32)
    names = np.array([ORIGINS[n].label_names[:3] for n in ("zeisel", "zeisel_subclasses")])
    y = np.array([[0, 1, 2, 0, 1, 2], [2, 2, 1, 1, 0, 0]])
    cells = np.empty((6, 2), object)
    cells[:] = np.stack([names[k][y[k]] for k in (0, 1)], axis=1)
    rows = "\n".join(",".join(f"{v:.5g}" for v in row) for row in X)
    files = dict(zip(ORIGINS[name].urls, (rows.encode(), matlab(zeisel_names=cells)), strict=True))
    return files, {"X": X, "y": y[int(level)]}


# A table, sets of images, an archive, classes by name; the others have their sha256.
MAKERS = {"scgem": table, "mnist": mnist, "coil20": coil, "umist": umist}
MAKERS |= {"zeisel": zeisel, "zeisel_subclasses": zeisel}
each = pytest.mark.parametrize("name", MAKERS)
some = pytest.mark.parametrize("name", ["scgem", "coil20"])  # two files, and one


@pytest.fixture
def publish(server, cache, monkeypatch):
    """Puts small originals on the server and points the table of addresses at it."""

    def publish(name, made=None, **changes):
        files, arrays = made or MAKERS[name](name)
        for file, body in files.items():
            (server.folder / file).write_bytes(body)
        changes.setdefault("urls", {file: f"{server.address}/{file}" for file in files})
        changes.setdefault("sha256", _fetch.digest(arrays["X"], arrays["y"]))
        if ORIGINS[name].corners:
            changes["corners"] = [*arrays["scores"][0], *arrays["scores"][-1]]
            changes["read"] = partial(_formats.read_coil20, n_components=3)
        monkeypatch.setitem(ORIGINS, name, replace(ORIGINS[name], **changes))
        return ORIGINS[name], arrays

    return publish


def same(found, arrays):
    assert set(found) == set(arrays)
    for key, wanted in arrays.items():
        exact = found[key].dtype.kind != "f"
        np.testing.assert_allclose(found[key], wanted, rtol=0, atol=0 if exact else 1e-10)


def left(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) if folder.exists() else []


def refused(name, folder, *words, **options):
    """The loader says in one line what is wrong, and leaves nothing behind."""
    before = left(folder)
    with pytest.raises(data.DataUnavailable) as caught:
        _fetch.find(name, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert [word for word in words if word not in text] == []
    assert left(folder) == before
    return text


@each
def test_good_file_is_read_checked_and_cached(name, server, cache, publish, capfd):
    """A whole original gives its arrays to the bit; the second call reads the cache alone.

    Without leave to download nobody is asked, no folder made, and it is said what to do.
    """
    origin, arrays = publish(name)
    words = ("download=False", str(cache), "DROT_DATA", *origin.urls, *origin.urls.values())
    refused(name, cache, *words, download=False)
    assert server.hits == [] and not cache.exists()
    same(_fetch.find(name), arrays)
    assert "100%" in capfd.readouterr().err  # the bar
    hits = list(server.hits)
    assert sorted(hits) == left(cache) == sorted(origin.urls)
    same(_fetch.find(name, download=False), arrays)
    assert data.available(name) and server.hits == hits


def test_without_h5py_the_sentence_names_it(cache, publish, monkeypatch):
    publish("pbmc3k", ({"pbmc3k.h5ad": b"no HDF"}, {"X": np.zeros((2, 50)), "y": np.zeros(2, int)}))
    monkeypatch.setitem(sys.modules, "h5py", None)
    refused("pbmc3k", cache, "pip install h5py")


@each
def test_wrong_files_are_refused(name, server, cache, publish):
    """What decodes to other arrays, is a page of a portal, empty, cut or absent, is not kept."""
    origin, _ = publish(name, sha256="0" * 64)
    words = ("cannot be used", *origin.urls, str(cache), "replace what is damaged")
    refused(name, cache, "sha256", "0" * 64, *words)
    publish(name)
    first = server.folder / next(iter(origin.urls))
    whole = first.read_bytes()
    for body in (b"<html>\xff</html>", b"", whole[: len(whole) // 2]):
        first.write_bytes(body)
        text = refused(name, cache, first.name, str(cache))
        assert (f"{first.name} has no content" in text) == (body == b"")
    first.unlink()
    refused(name, cache, "could not be fetched", "by hand", first.name, str(cache))
    assert not data.available(name)
    first.write_bytes(whole)
    assert _fetch.find(name)["X"].size  # and it works again when the server does


def test_unusable_cache_is_named(tmp_path, server, publish, monkeypatch):
    """A cache that cannot be written names the variable that moves it."""
    publish("scgem")
    (tmp_path / "file").touch()
    monkeypatch.setenv("DROT_CACHE", str(tmp_path / "file" / "below"))
    refused("scgem", tmp_path / "below", "DROT_CACHE")
    assert server.hits == []


def test_nothing_is_written_by_an_archive(tmp_path, publish):
    """Members outside the folder, links and folders are passed over: nothing is extracted."""
    evil = [
        (name, VIEWS[0, 0]) for name in ("../evil", "/evil", f"{COIL}/../../../evil", "C:\\evil")
    ]
    link = ("SNEkhorn-48178d4/latest", (tarfile.SYMTYPE, "README.md"))
    folder = (COIL, (tarfile.DIRTYPE, ""))
    _, arrays = publish("coil20", coil("coil20", before=[folder, link, *evil]))
    same(_fetch.find("coil20"), arrays)
    assert not list(tmp_path.rglob("*evil*"))


@some
def test_a_prepared_file_comes_first(name, folder, server, cache, publish):
    """An .npz with the right arrays is used, and the network rests."""
    origin, arrays = publish(name)
    held = {"label_names": np.array(["BJ"]), **arrays}
    if "scores" in held:
        held |= {"X": held.pop("scores"), "X32": arrays["X"]}
    np.savez_compressed(folder / origin.file, **held)
    same(_fetch.find(name), arrays)
    assert server.hits == [] and left(cache) == ([origin.file] if folder == cache else [])


def test_one_prepared_file_has_both_levels(folder, cache, publish):
    """The subclasses are the array of their own name, where it is there."""
    origin, arrays = publish("zeisel_subclasses")
    other = arrays | {"y": np.zeros_like(arrays["y"])}
    np.savez_compressed(folder / origin.file, **other, y2=arrays["y"])
    same(_fetch.find("zeisel_subclasses"), arrays)
    publish("zeisel", ({}, other), urls={})
    same(_fetch.find("zeisel"), other)


@pytest.mark.parametrize("damage", ["truncated", "other arrays", "pickled"])
def test_damaged_npz_is_named(folder, damage, server, cache, publish):
    """A damaged, wrong or hostile .npz is said, never unpickled, nor papered over by a download."""
    origin, arrays = publish("scgem")
    path, X = folder / origin.file, arrays["X"] + 1
    X = np.array([Path()], object) if damage == "pickled" else X
    np.savez_compressed(path, **arrays | {"X": X})
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-20])
    text = refused("scgem", cache, str(path), "cannot be used", "replace")
    assert ("allow_pickle=False" in text) == (damage == "pickled")
    assert server.hits == [] and not data.available("scgem")


def test_drot_data_without_the_file(tmp_path, cache, publish, monkeypatch):
    """A mistyped DROT_DATA is said; one without this data set, or an empty name, counts as none."""
    _, arrays = publish("scgem")
    monkeypatch.setenv("DROT_DATA", str(tmp_path / "nowhere"))
    refused("scgem", cache, "DROT_DATA", "is not a folder")
    for name in (str(tmp_path), ""):
        monkeypatch.setenv("DROT_DATA", name)
        same(_fetch.find("scgem"), arrays)


@some
def test_originals_placed_by_hand(name, folder, server, cache, publish):
    """The original files under their own names serve as well, without the network."""
    origin, arrays = publish(name)
    shutil.copytree(server.folder, folder, dirs_exist_ok=True)
    same(_fetch.find(name, download=False), arrays)
    assert server.hits == []
    broken = folder / next(iter(origin.urls))
    broken.write_bytes(b"")
    refused(name, cache, str(broken), f"{broken.name} has no content")
    assert all((folder / file).is_file() for file in origin.urls)  # they are not ours to remove


def test_principal_components_are_compared(cache, publish, monkeypatch):
    """COIL-20: right images with wrong scores (a sign, an order, a number) are refused."""
    origin, arrays = publish("coil20")
    Z = arrays["scores"]
    for bad in (-Z, Z[:, ::-1], Z * (1 + 1e-4), Z[:-1], Z[:, 0]):
        wrong = replace(origin, read=lambda paths, Z=bad: {**arrays, "scores": Z})
        monkeypatch.setitem(ORIGINS, "coil20", wrong)
        refused("coil20", cache, "cannot be used")


def test_addresses_are_pinned():
    """Each is https at a full commit, and no two originals have one name."""
    of = {}
    for origin in ORIGINS.values():
        assert origin.urls and re.fullmatch(r"[0-9a-f]{64}", origin.sha256)
        for file, url in origin.urls.items():
            assert re.fullmatch(r"https://(raw\.githubusercontent|codeload\.github)\.com/.+", url)
            assert re.search(r"/[0-9a-f]{40}(/|$)", url) and "/" not in file, url
            assert of.setdefault(file, url) == url
        assert of.setdefault((origin.file, origin.classes), origin) is origin
