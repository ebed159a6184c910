"""Find the real data sets: in ``$DROT_DATA``, in the cache, or at their original address.

The project ships none of them. Wherever a data set comes from, a sha256 over its decoded arrays
is checked before anybody sees it. A download goes to a temporary folder inside the cache, is
read there, and only the checked arrays enter the cache, in one step: whatever fails, nothing
half-written stays behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from .formats import LIMIT
from .origins import ORIGINS, Arrays, Origin, Source

with warnings.catch_warnings():
    # tqdm.auto, which pooch imports, warns in a notebook kernel without ipywidgets
    warnings.simplefilter("ignore")
    import pooch

TIMEOUT = 30.0  # seconds without a byte from the server
SCRATCH = ".drot-"  # how a folder of a download begins
STALE = 86_400.0  # seconds after which nobody works in one any more
BROKEN = (ValueError, OSError, EOFError, zlib.error, zipfile.BadZipFile)  # by a damaged .npz


class DataUnavailable(OSError):
    """A data set is not here and could not be fetched, or it is not what it should be.

    The sentence names the address, the files to place by hand, and the folder for them.
    """


def cache_folder() -> Path:
    """``$DROT_CACHE`` where it is set, else the folder for caches of this system."""
    return Path(os.environ.get("DROT_CACHE") or pooch.os_cache("drot")).expanduser()


def digest(*arrays: np.ndarray) -> str:
    """A sha256 over the data type, the shape and the bytes (little-endian, C order) of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _checked(arrays: Arrays, origin: Origin) -> Arrays:
    """The arrays of a data set, or ValueError where they are not the ones it should have."""
    keys = ("X", "y", *origin.extra)
    if missing := [key for key in keys if key not in arrays]:
        raise ValueError(f"it lacks the arrays {', '.join(missing)}")
    arrays = {key: arrays[key] for key in keys}
    X, y = arrays["X"], arrays["y"].astype("<i8")
    found = digest(arrays[origin.hashed], y)
    if found != origin.digest:
        raise ValueError(f"its arrays have the sha256 {found}, not {origin.digest}")
    if X.shape[0] != len(y) or X.ndim != 2:
        raise ValueError(f"X has shape {X.shape} for {len(y)} labels")
    if origin.corners:  # rounding of the linear algebra moves X, so it has no sha256
        corners = np.concatenate([X[0, :3], X[-1, :3]])
        if not np.allclose(corners, origin.corners, rtol=0, atol=1e-6):
            raise ValueError(
                f"its principal components differ: {corners.round(4)}, not {origin.corners}"
            )
    return {**arrays, "y": y}


def _read_npz(path: Path, origin: Origin) -> Arrays:
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > LIMIT:
        raise ValueError(f"it unpacks to {size} bytes, more than {LIMIT}")
    with np.load(path, allow_pickle=False) as content:
        return _checked(content, origin)


def _store(path: Path, arrays: dict[str, Any]) -> None:
    """Write an .npz in one step: it is there whole, or not at all."""
    handle, draft = tempfile.mkstemp(suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez_compressed(stream, **arrays)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def _matches(path: Path, check: str) -> bool:
    kind, _, wanted = check.partition(":")
    if kind != "git":
        return not check or pooch.file_hash(path, alg=kind) == wanted
    content = path.read_bytes()
    head = b"blob %d\0" % len(content)
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest() == wanted


class _Capped:
    """A file that takes no more than `limit` bytes."""

    def __init__(self, stream, limit: int):
        self.stream, self.left, self.flush = stream, limit, stream.flush

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise ValueError("the file is larger than it may be")
        return self.stream.write(data)


def _reason(error: Exception) -> str:
    """What went wrong on the network, without the names of its objects."""
    from requests import exceptions

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code}"
    if isinstance(error, exceptions.Timeout):
        return f"no answer within {TIMEOUT:.0f} seconds"
    if isinstance(error, exceptions.ChunkedEncodingError):
        return "the transfer broke off"
    if isinstance(error, exceptions.ConnectionError):
        return "no connection"
    return str(error)


def _download(source: Source, folder: Path) -> Path:
    """Fetch one file into a folder, from the first of its addresses that gives it."""
    path, failures = folder / source.name, []
    for url in source.urls:
        # pooch sets the total; a total of 0 or None would read as "no bar"
        with tqdm(total=1, desc=source.name, unit="B", unit_scale=True, leave=False) as bar:
            get = pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT, chunk_size=2**16)
            try:
                with open(path, "wb") as stream:
                    get(url, _Capped(stream, source.limit), None)
            except (OSError, ValueError) as error:  # those of requests are OSErrors
                failures.append(f"{url}: {_reason(error)}")
                continue
        if _matches(path, source.check):
            return path
        failures.append(f"{url}: the file does not have the {source.check}")
    raise ValueError("; ".join(failures))


def _sweep(cache: Path) -> None:
    """Remove what processes that were killed in a download have left behind."""
    for path in cache.glob(f"{SCRATCH}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE:
                shutil.rmtree(path)


def _by_hand(origin: Origin, folder: Path) -> str:
    """What a person can do."""
    listing = ", ".join(f"{s.name} ({s.urls[0]})" for s in origin.sources)
    plural = "s" if len(origin.sources) > 1 else ""
    return (
        f"Place the file{plural} by hand in {folder}, or in a folder named by DROT_DATA: {listing}"
    )


def _placed(source: Source, folders: Sequence[Path]) -> Path | None:
    return next((f / source.name for f in folders if (f / source.name).is_file()), None)


def find(name: str, *, download: bool = True) -> Arrays:
    """The checked arrays of a data set, from the first place that has it.

    ``$DROT_DATA`` (the .npz), the cache (the .npz), the original files placed by hand in either,
    the network. Raises `DataUnavailable`.
    """
    origin, cache = ORIGINS[name], cache_folder()
    folders, damaged = [cache], ""
    if data := os.environ.get("DROT_DATA"):
        folder = Path(data).expanduser()
        if not folder.is_dir():
            raise DataUnavailable(f"DROT_DATA={data} is not a folder; correct it or unset it")
        folders.insert(0, folder)
        path = folder / origin.file
        if path.is_file():
            found = pooch.file_hash(str(path))
            if found != origin.sha256:
                raise DataUnavailable(
                    f"{path} has the sha256 {found}, not {origin.sha256}: "
                    "it is damaged or another file; replace it, or take it out of DROT_DATA"
                )
            try:
                return _read_npz(path, origin)
            except BROKEN as error:
                raise DataUnavailable(f"{path} cannot be used: {error}") from error
    path = cache / origin.file
    if path.is_file():
        try:
            return _read_npz(path, origin)
        except BROKEN as error:  # a new download takes its place
            damaged = f"{path} is damaged ({error}). "
    placed = [_placed(source, folders) for source in origin.sources]
    if None in placed and not download:
        raise DataUnavailable(
            f"{damaged}{name} is not on this machine, and download=False keeps off the network. "
            f"{_by_hand(origin, cache)}"
        )
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _sweep(cache)
        scratch = tempfile.TemporaryDirectory(prefix=SCRATCH, dir=cache)
    except OSError as error:
        raise DataUnavailable(
            f"{name} needs a folder to write to, and {cache} is none ({error.strerror}); "
            "name another by DROT_CACHE"
        ) from error
    with scratch as new:
        try:
            pairs = zip(origin.sources, placed, strict=True)
            paths = [here or _download(source, Path(new)) for source, here in pairs]
            arrays = _checked(origin.read(paths), origin)
            _store(path, arrays)
        except Exception as error:  # a reader meets a foreign file: it may fail in any way
            raise DataUnavailable(
                f"{damaged}{name} could not be fetched. {error}. {_by_hand(origin, cache)}"
            ) from error
    return arrays
