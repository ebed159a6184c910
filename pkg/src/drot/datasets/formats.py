"""Read the original files of the real data sets into arrays.

Every reader takes the files in the order in which the table of `_fetch` lists them, and returns
``X`` (n, p) and ``y`` (n,) in the data type in which the file holds them.  What comes from outside
is not trusted: sizes are bounded, nothing is unpickled, nothing is written to disk, and a file
that is not what it should be raises ``ValueError`` with one sentence.  Libraries that are slow to
import are imported where they are needed.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]
LIMIT = 2**29  # bytes: no archive here unpacks to more
COIL_IMAGE = re.compile(r"[^/]+/data/coil-20-proc/obj(\d{1,2})__(\d{1,2})\.png")


def pca(X: np.ndarray, n_components: int) -> np.ndarray:
    """Scores of the leading principal components, shape (n, n_components), float64.

    Columns are centred, nothing is scaled. A component's sign makes its largest entry positive.
    """
    from scipy.linalg import eigh

    X = X - X.mean(axis=0)
    n, p = X.shape
    small = X @ X.T if n <= p else X.T @ X
    size = len(small)
    values, vectors = eigh(small, subset_by_index=(size - n_components, size - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    scores = vectors * np.sqrt(np.maximum(values, 0)) if n <= p else X @ vectors
    top = np.abs(scores).argmax(axis=0)
    return scores * np.where(scores[top, np.arange(n_components)] < 0, -1.0, 1.0)


def _table(path: Path, delimiter: str | None) -> np.ndarray:
    """A file of numbers, one row a line, as a float64 array with two axes."""
    lines = path.read_text(encoding="ascii").splitlines()
    if not any(lines):
        raise ValueError(f"{path.name} is empty")
    table = np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2)
    if not np.isfinite(table).all():
        raise ValueError(f"{path.name} holds a number that is not finite")
    return table


def _classes(path: Path, n: int, first: int) -> np.ndarray:
    """A file of n class numbers, counted from `first`, as (n,) integers counted from 0."""
    ids = _table(path, None)
    if ids.shape != (n, 1):
        raise ValueError(f"{path.name} holds an array of shape {ids.shape}, not {n} class numbers")
    y = ids[:, 0].astype(np.int64)
    if (y != ids[:, 0]).any() or y.min() < first:
        raise ValueError(f"{path.name} holds something else than class numbers from {first} on")
    return y - first


def read_snareseq(paths: Sequence[Path]) -> Arrays:
    """Features separated by tabs, and class numbers from 1."""
    X = _table(paths[0], "\t")
    return {"X": X, "y": _classes(paths[1], len(X), 1)}


def read_scgem(paths: Sequence[Path]) -> Arrays:
    """Features separated by commas, and class numbers from 1."""
    X = _table(paths[0], ",")
    return {"X": X, "y": _classes(paths[1], len(X), 1)}


def _idx(path: Path, ndim: int) -> np.ndarray:
    """A gzipped IDX file of bytes: the header 0, 0, 8, ndim, the sizes, the bytes."""
    with gzip.open(path) as stream:
        header, sizes = stream.read(4), stream.read(4 * ndim)
        if header != bytes((0, 0, 8, ndim)) or len(sizes) != 4 * ndim:
            raise ValueError(f"{path.name} is no IDX file of bytes with {ndim} axes")
        shape = tuple(int(s) for s in np.frombuffer(sizes, ">u4"))
        size = int(np.prod(shape, dtype=object))
        if size > LIMIT:
            raise ValueError(f"{path.name} says it holds {size} bytes, more than {LIMIT}")
        body = stream.read(size + 1)
    if len(body) != size:
        raise ValueError(f"{path.name} should hold {size} bytes of data and holds another number")
    return np.frombuffer(body, np.uint8).reshape(shape)


def read_mnist(paths: Sequence[Path]) -> Arrays:
    """Images and labels as two gzipped IDX files."""
    images, y = _idx(paths[0], 3), _idx(paths[1], 1)
    if len(images) != len(y):
        raise ValueError(f"{paths[0].name} has {len(images)} images for {len(y)} labels")
    return {"X": images.reshape(len(y), -1), "y": y.astype(np.int64)}


def _grey(source, name: str, shape: tuple[int, int]) -> np.ndarray:
    """An 8-bit grey PNG of the given shape."""
    from PIL import Image

    try:
        with Image.open(source, formats=("PNG",)) as image:  # reads the header only
            if image.mode != "L" or image.size != shape[::-1]:
                raise ValueError(
                    f"{name} is a {image.size[1]} x {image.size[0]} image of mode {image.mode}, "
                    f"not {shape[0]} x {shape[1]} in 8-bit grey"
                )
            return np.asarray(image)
    except (Image.DecompressionBombError, SyntaxError, OSError) as error:
        raise ValueError(f"{name} cannot be read as a PNG image: {error}") from None


def read_fashion(paths: Sequence[Path], side: int = 28) -> Arrays:
    """A sprite of side x side tiles, row by row, and one class number a line."""
    labels = _table(paths[1], None)
    n = len(labels)
    y = _classes(paths[1], n, 0)
    tiles = int(np.ceil(np.sqrt(n)))  # in each direction; the last ones may be empty
    sprite = _grey(paths[0], paths[0].name, (tiles * side, tiles * side))
    images = sprite.reshape(tiles, side, tiles, side).transpose(0, 2, 1, 3)
    return {"X": np.ascontiguousarray(images.reshape(-1, side * side)[:n]), "y": y}


def read_olivetti(paths: Sequence[Path]) -> Arrays:
    """A MATLAB file whose ``faces`` (4096, n) has one image, stored by columns, in each column."""
    from scipy.io import loadmat

    content = loadmat(paths[0], variable_names=["faces"])
    if "faces" not in content:
        raise ValueError(f"{paths[0].name} has no variable 'faces'")
    faces = np.asarray(content["faces"])
    if faces.ndim != 2 or faces.shape[0] != 64 * 64 or faces.dtype.kind not in "uif":
        raise ValueError(f"'faces' in {paths[0].name} is no array of numbers of shape (4096, n)")
    pixels = faces.astype(np.uint8)
    if (pixels != faces).any():
        raise ValueError(f"'faces' in {paths[0].name} holds values that are not 0, 1, ..., 255")
    upright = pixels.T.reshape(-1, 64, 64).transpose(0, 2, 1)
    X = np.ascontiguousarray(upright.reshape(-1, 64 * 64))
    return {"X": X, "y": np.arange(len(X)) // 10}  # ten images of each person, in order


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than `limit` bytes."""

    def __init__(self, stream, limit: int):
        self.stream, self.left = stream, limit

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size if 0 <= size <= self.left else self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise ValueError("the archive unpacks to more bytes than it may")
        return data


def _members(path: Path, wanted: re.Pattern, limit: int = LIMIT):
    """Yield (match, content) for the wanted plain files of a .tar.gz, in memory.

    An archive with an absolute path or a ".." anywhere is refused whole, and so is one in which
    a wanted name is a link or no plain file.
    """
    with (
        gzip.open(path) as stream,
        tarfile.open(fileobj=_Bounded(stream, limit), mode="r|") as archive,
    ):
        for member in archive:
            parts = member.name.replace("\\", "/").split("/")
            if parts[0] == "" or ".." in parts or ":" in parts[0]:
                raise ValueError(f"{path.name} has a member outside its folder: {member.name!r}")
            match = wanted.fullmatch(member.name)
            if match is None:
                continue
            content = archive.extractfile(member) if member.isfile() else None
            if content is None:
                raise ValueError(f"{member.name!r} in {path.name} is a link or no plain file")
            if member.size > 2**20:
                raise ValueError(f"{member.name!r} in {path.name} is larger than 1 MiB")
            yield match, content.read()


def read_coil20(
    paths: Sequence[Path], objects: int = 20, views: int = 72, side: int = 128, rank: int = 50
) -> Arrays:
    """An archive of PNG images ``obj{1..}__{0..}.png``: PCA scores and reduced images."""
    images = np.zeros((objects, views, side, side), np.uint8)
    seen = np.zeros((objects, views), bool)
    for match, content in _members(paths[0], COIL_IMAGE):
        k, view = int(match[1]) - 1, int(match[2])
        if not (0 <= k < objects and 0 <= view < views):
            raise ValueError(f"{paths[0].name} has an image too many: {match[0]!r}")
        images[k, view] = _grey(io.BytesIO(content), match[0], (side, side))
        seen[k, view] = True
    if not seen.all():
        k, view = np.argwhere(~seen)[0]
        raise ValueError(
            f"{paths[0].name} lacks {(~seen).sum()} of {seen.size} images, "
            f"the first is obj{k + 1}__{view}.png"
        )
    n, half = objects * views, side // 4
    blocks = images.reshape(n, half, 4, half, 4).astype(np.int64).sum(axis=(2, 4))  # of 16 pixels
    return {
        "X": pca(images.reshape(n, -1) / 255.0, rank),
        "X32": ((blocks + 8) // 16).astype(np.uint8).reshape(n, -1),  # means, half rounded up
        "y": np.repeat(np.arange(objects), views),
        "view": np.tile(np.arange(views), objects),
    }


def read_pbmc3k(paths: Sequence[Path], names: Sequence[str]) -> Arrays:
    """An AnnData file: the stored PCA scores, and the Louvain class of each cell.

    `names` orders the classes. Reads the layout with compound tables (anndata 0.6) and the one
    with a group for each table (0.7 and later).
    """
    try:
        import h5py
    except ImportError:
        raise ValueError(
            f"{paths[0].name} is an HDF5 file and h5py, which reads it, is not installed: "
            "pip install h5py"
        ) from None
    with h5py.File(paths[0], "r") as file:
        try:
            X = np.asarray(file["obsm"]["X_pca"], dtype=np.float32)
            column = file["obs"]["louvain"]
            if isinstance(column, h5py.Group):  # 0.8 and later
                codes, classes = column["codes"], column["categories"]
            else:
                codes = column
                if "uns" in file and "louvain_categories" in file["uns"]:  # 0.6
                    classes = file["uns"]["louvain_categories"]
                else:  # 0.7
                    classes = file["obs"]["__categories"]["louvain"]
            codes, classes = np.asarray(codes), np.asarray(classes)
        except (KeyError, ValueError) as error:
            raise ValueError(f"{paths[0].name} lacks a part of pbmc3k: {error}") from None
    text = [c.decode() if isinstance(c, bytes) else str(c) for c in classes.tolist()]
    if sorted(text) != sorted(names) or codes.min() < 0 or codes.max() >= len(text):
        raise ValueError(f"{paths[0].name} has the classes {text}, not {list(names)}")
    order = np.array([list(names).index(c) for c in text])
    return {"X": X, "y": order[codes]}
