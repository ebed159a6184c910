"""Load the real data sets: from ``$DROT_DATA``, the cache, or their original address.

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
from functools import partial
from pathlib import Path

import numpy as np
import torch

from .._core.checks import as_count, as_flag, check_choice
from ..spectral.principal import pca
from . import formats, toys
from .base import DataSet, make
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
    corners: Sequence[float] = ()  # the first 3 scores of the first image and of the last
    components: int | None = None  # of images
    classes: str = "y"  # the array of the .npz that holds them


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
        return _checked(origin, [prepared], partial(formats.read_prepared, classes=origin.classes))
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
        if empty := [path.name for path in paths if not path.stat().st_size]:
            raise ValueError(f"{' and '.join(empty)} has no content")
        arrays = read(paths)
        y = arrays["y"]
        if y.dtype.kind == "U":  # classes by name
            y = np.array([origin.label_names.index(label) for label in y])
        arrays["y"] = y.astype("<i8")
        found = digest(arrays["X"], arrays["y"])
        if found != origin.sha256:
            raise ValueError(f"the arrays have the sha256 {found}, not {origin.sha256}")
        # rounding of the linear algebra moves principal components, so they have no sha256
        if origin.corners:
            ends = arrays["scores"][[0, -1], :3]
            if not np.allclose(ends.ravel(), origin.corners, rtol=0, atol=1e-6):
                raise ValueError(f"the principal components start with {ends[0].round(4)}")
    except Exception as error:  # a reader meets a foreign file: it may fail in any way
        files = " and ".join(map(str, paths))
        raise DataUnavailable(
            f"{files} cannot be used ({error}); remove or replace what is damaged or another file"
        ) from error
    return arrays


def available(name: str) -> bool:
    """Whether :func:`load` would succeed now without the network.

    False where the data set is absent, and also where a file is damaged: :func:`load` says why.

    Source: the rule that a page whose data is absent says so and is skipped.

    Parameters
    ----------
    name : str
        ``"snareseq_chromatin"``, ``"snareseq_expression"``, ``"scgem"``, ``"coil20"``, ``"mnist"``,
        ``"fashion_mnist"``, ``"olivetti"``, ``"umist"``, ``"pbmc3k"``, ``"zeisel"`` or
        ``"zeisel_subclasses"``.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        When there is no data set of that name.

    Examples
    --------
    >>> import drot
    >>> drot.datasets.available("iris")
    Traceback (most recent call last):
    ValueError: name='iris' does not exist; choose from 'snareseq_chromatin', ...
    """
    check_choice("name", name, ORIGINS)
    try:
        find(name, download=False)
    except DataUnavailable:
        return False
    return True


def load(name: str, *, n_components: int | None = 50, download: bool = True) -> DataSet:
    """Load a real data set of the papers by its name.

    Nothing is scaled. The page of the data sets says what each one is, where it comes from and what
    its licence is.

    Source: the data sets of SNEkhorn (Van Assel et al., 2023), of the graph coupling paper (2022)
    and of the DistR paper (2025); book ``sec-real-data``.

    Parameters
    ----------
    name : str
        As in :func:`available`.
    n_components : int, optional
        Of images: so many principal components of the pixels divided by 255, centred, neither
        scaled nor whitened, signed so that the largest entry of each is positive; None for the
        pixels, 0 to 255. The other sets are tables, which come as they are.
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``details["view"]`` of COIL-20 is the angle in steps of 5 degrees.

    Raises
    ------
    ValueError
        When there is no data set of that name, or not so many components.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("scgem"):
    ...     assert drot.datasets.load("scgem").X.shape == (177, 34)
    """
    if "random_state" in getattr(getattr(toys, str(name), None), "__annotations__", ()):
        raise ValueError(f"{name!r} is made here, not loaded; call drot.datasets.{name}()")
    check_choice("name", name, ORIGINS)
    download = as_flag("download", download)
    origin = ORIGINS[name]
    if origin.components and n_components is not None:
        n_components = as_count("n_components", n_components, 1, origin.components)
    elif not origin.components and n_components not in (None, 50):
        raise ValueError(f"{name} is a table, not a set of images; leave out n_components")
    arrays = find(name, download=download)
    X, y, scores = arrays.pop("X"), arrays.pop("y"), arrays.pop("scores", None)
    if origin.components and n_components is not None:
        if scores is None:
            scores = pca(torch.from_numpy(X / 255.0), n_components).Z.numpy()
        X = scores[:, :n_components]
    return make(name, origin.description, X, y, origin.label_names, **arrays)
