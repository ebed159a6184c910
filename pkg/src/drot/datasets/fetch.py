"""Find the real data sets: in ``$DROT_DATA``, in the cache, or at their original address.

The project ships none of them. pooch downloads the original files into the cache, each in one
step, so that none is there half. Wherever a data set comes from, a sha256 over its decoded arrays
is checked before anybody sees it.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import formats
from .formats import Arrays

with warnings.catch_warnings():
    # tqdm.auto, which pooch imports, warns in a notebook kernel without ipywidgets
    warnings.simplefilter("ignore")
    import pooch

RETRIES = 2  # of a download that fails


class DataUnavailable(OSError):
    """A data set is not here and could not be fetched, or it is not what it should be.

    The sentence names the files to place by hand, their addresses, and the folder for them.
    """


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a data set comes from and how to recognise it: an entry of ``origins.toml``."""

    description: str
    file: str  # the .npz looked for before the original files
    sha256: str  # of the decoded arrays, see `digest`
    urls: dict[str, str]  # the original files, in the order in which `read` takes them
    label_names: list[str]
    read: Callable[[Sequence[Path]], Arrays]
    corners: Sequence[float] = ()  # the first 3 entries of the first row of X and of the last
    components: int | None = None  # of images


_TABLE = tomllib.loads(Path(__file__).with_name("origins.toml").read_text("utf8"))
ORIGINS = {
    name: Origin(read=getattr(formats, entry.pop("reader")), **entry)
    for name, entry in _TABLE.items()
}


def digest(*arrays: np.ndarray) -> str:
    """A sha256 over the data type, the shape and the bytes (little-endian, C order) of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def find(name: str, *, download: bool = True) -> Arrays:
    """The checked arrays of a data set, from the first place that has it.

    The .npz in ``$DROT_DATA`` or in the cache, the original files in either, the network. Raises
    `DataUnavailable`.
    """
    origin, folders = ORIGINS[name], _folders()
    if (prepared := _place(origin.file, folders)).is_file():
        return _checked(origin, [prepared], formats.read_prepared)
    paths = [_place(file, folders) for file in origin.urls]
    missing = [path for path in paths if not path.is_file()]
    listing = ", ".join(f"{file} ({url})" for file, url in origin.urls.items())
    by_hand = (
        f"place these files by hand in {folders[-1]}, or in a folder named by DROT_DATA or "
        f"DROT_CACHE: {listing}"
    )
    if missing and not download:
        reason = "is not on this machine, and download=False keeps off the network"
        raise DataUnavailable(f"{name} {reason}; {by_hand}")
    known = dict.fromkeys(origin.urls)  # without a hash: that of the arrays is checked
    cache = pooch.create(
        folders[-1], base_url="", registry=known, urls=origin.urls, retry_if_failed=RETRIES
    )
    try:
        for path in missing:
            cache.fetch(path.name, progressbar=True)
    except (OSError, ValueError) as error:  # those of requests are OSErrors
        raise DataUnavailable(f"{name} could not be fetched ({error}); {by_hand}") from error
    try:
        return _checked(origin, paths, origin.read)
    except DataUnavailable:
        for path in missing:
            path.unlink()
        raise


def _folders() -> list[Path]:
    """``$DROT_DATA`` where it is set, and the cache, ``$DROT_CACHE`` or that of this system."""
    folders = [Path(os.environ.get("DROT_CACHE") or pooch.os_cache("drot")).expanduser()]
    if data := os.environ.get("DROT_DATA"):
        folders.insert(0, Path(data).expanduser())
        if not folders[0].is_dir():
            raise DataUnavailable(f"DROT_DATA={data} is not a folder; correct it or unset it")
    return folders


def _place(file: str, folders: Sequence[Path]) -> Path:
    """Where a file lies, or is to lie: in the cache."""
    return next(
        (folder / file for folder in folders if (folder / file).is_file()), folders[-1] / file
    )


def _checked(
    origin: Origin, paths: Sequence[Path], read: Callable[[Sequence[Path]], Arrays]
) -> Arrays:
    """The arrays that some files hold, if they are those of the data set."""
    try:
        arrays = read(paths)
        X, y = arrays["X"], arrays["y"]
        if y.dtype.kind == "U":  # classes by name
            y = np.array([origin.label_names.index(label) for label in y])
        arrays["y"] = y = y.astype("<i8")
        found = digest(arrays.get("X32", X), y)
        if found != origin.sha256:
            raise ValueError(f"the arrays have the sha256 {found}, not {origin.sha256}")
        # rounding of the linear algebra moves principal components, so they have no sha256
        if origin.corners and not np.allclose(
            [X[0, :3], X[-1, :3]], np.reshape(origin.corners, (2, 3)), rtol=0, atol=1e-6
        ):
            raise ValueError(f"the principal components start with {X[0, :3].round(4)}")
    except Exception as error:  # a reader meets a foreign file: it may fail in any way
        files = " and ".join(map(str, paths))
        raise DataUnavailable(
            f"{files} cannot be used ({error}); remove or replace what is damaged or another file"
        ) from error
    return arrays
