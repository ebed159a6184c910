"""Read the original files of the real data sets into arrays.

Every reader takes the files in the order in which ``origins.toml`` lists them, and returns ``X``
(n, p) and ``y`` (n,), in the data type in which the files hold them; ``scores`` (n, q), where they
are principal components of larger images than X; and further arrays by name. Nothing is unpickled
and nothing is written to disk; what a file holds is checked afterwards, by its sha256. Libraries
that are slow to import are imported where they are needed.
"""

from __future__ import annotations

import gzip
import re
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from ..spectral.principal import pca

Arrays = dict[str, np.ndarray]
_COIL_IMAGE = re.compile(r"[^/]+/data/coil-20-proc/obj(\d+)__(\d+)\.png")


def _grey(file) -> np.ndarray:
    """An 8-bit grey image, (height, width)."""
    from PIL import Image

    with Image.open(file, formats=("PNG",)) as image:
        return np.asarray(image.convert("L"))


def read_prepared(paths: Sequence[Path], classes: str) -> Arrays:
    """The arrays of an .npz; that of COIL-20 has images ``X32`` and their components ``X``."""
    if not zipfile.is_zipfile(paths[0]):  # NumPy would speak of pickles
        raise ValueError("it is no .npz file")
    with np.load(paths[0], allow_pickle=False) as content:
        arrays = {"X": content["X"], "y": content[classes]}
        if "X32" in content:
            arrays |= {"X": content["X32"], "scores": arrays["X"]}
            arrays["view"] = content["view"].astype(np.int64)
        return arrays


def read_tables(paths: Sequence[Path]) -> Arrays:
    """Features separated by tabs or commas, one point a line, and class numbers from 1."""
    lines = paths[0].read_text("ascii").replace(",", "\t").splitlines()
    return {"X": np.loadtxt(lines, ndmin=2), "y": np.loadtxt(paths[1]).astype(np.int64) - 1}


def read_mnist(paths: Sequence[Path]) -> Arrays:
    """Images and labels as gzipped IDX files of bytes, with headers of 16 and 8 bytes."""
    images, labels = (gzip.decompress(path.read_bytes()) for path in paths)
    y = np.frombuffer(labels, np.uint8, offset=8)
    return {"X": np.frombuffer(images, np.uint8, offset=16).reshape(len(y), -1), "y": y}


def read_fashion_mnist(paths: Sequence[Path]) -> Arrays:
    """A sprite of 28 x 28 tiles, row by row, the last ones empty, and a class a line."""
    sprite, y = _grey(paths[0]), np.loadtxt(paths[1]).astype(np.int64)
    tiles = sprite.reshape(len(sprite) // 28, 28, -1, 28).transpose(0, 2, 1, 3)
    return {"X": tiles.reshape(-1, 28 * 28)[: len(y)], "y": y}


def read_olivetti(paths: Sequence[Path]) -> Arrays:
    """A MATLAB file whose ``faces`` (4096, n) has one image, stored by columns, in each column."""
    from scipy.io import loadmat

    faces = loadmat(paths[0], variable_names=["faces"])["faces"].astype(np.uint8)
    upright = faces.T.reshape(-1, 64, 64).transpose(0, 2, 1)
    X = upright.reshape(-1, 64 * 64)
    return {"X": X, "y": np.arange(len(X)) // 10}  # ten images of each person, in order


def read_coil20(paths: Sequence[Path], n_components: int = 50) -> Arrays:
    """An archive of images ``obj{1..}__{0..}.png``: reduced images and principal components."""
    images = {}
    with tarfile.open(paths[0], "r:gz") as archive:
        for member in archive:
            if match := _COIL_IMAGE.fullmatch(member.name):
                key = int(match[1]) - 1, int(match[2])
                images[key] = _grey(archive.extractfile(member))
    places = sorted(images)
    pixels = np.stack([images[place] for place in places])  # (n, side, side)
    n, side, _ = pixels.shape
    blocks = pixels.reshape(n, side // 4, 4, side // 4, 4).sum(axis=(2, 4), dtype=int)
    return {
        "X": ((blocks + 8) // 16).astype(np.uint8).reshape(n, -1),  # means, half rounded up
        "scores": pca(torch.from_numpy(pixels.reshape(n, -1) / 255.0), n_components).Z.numpy(),
        "y": np.array([place[0] for place in places]),
        "view": np.array([place[1] for place in places]),
    }


def read_pbmc3k(paths: Sequence[Path]) -> Arrays:
    """An AnnData file (of anndata 0.6 or 0.7): the stored PCA scores, and the class of each cell.

    The classes come by name, ``y`` (n,) of text.
    """
    try:
        import h5py
    except ImportError:
        raise ImportError("h5py, which reads it, is not installed: pip install h5py") from None
    with h5py.File(paths[0], "r") as file:
        old = "uns" in file and "louvain_categories" in file["uns"]  # obs is a compound table
        names = file["uns/louvain_categories"] if old else file["obs/__categories/louvain"]
        classes = np.asarray(names).astype(str)
        X, codes = np.asarray(file["obsm"]["X_pca"], np.float32), file["obs"]["louvain"][:]
    return {"X": X, "y": classes[codes]}


def read_umist(paths: Sequence[Path]) -> Arrays:
    """A MATLAB file: ``X`` (n, 1024), images stored by columns, and ``Y``, people from 1."""
    from scipy.io import loadmat

    content = loadmat(paths[0], variable_names=["X", "Y"])
    images = content["X"].astype(np.uint8).reshape(-1, 32, 32).transpose(0, 2, 1)
    return {"X": images.reshape(-1, 32 * 32), "y": content["Y"].ravel().astype(np.int64) - 1}


def read_zeisel(paths: Sequence[Path], level: int = 0) -> Arrays:
    """Components separated by commas, and a MATLAB table of names, (n, 2) cells of text.

    The classes come by name, ``y`` (n,) of text.
    """
    from scipy.io import loadmat

    X = np.loadtxt(paths[0], delimiter=",", dtype=np.float32, ndmin=2)
    names = loadmat(paths[1], variable_names=["zeisel_names"])["zeisel_names"]
    return {"X": X, "y": np.array([row[level].item() for row in names])}


def read_zeisel_subclasses(paths: Sequence[Path]) -> Arrays:
    """The second level of the same files."""
    return read_zeisel(paths, level=1)
