"""Data sets: generated toys, digits, and the real data of the papers.

Generators need no file and no network. The same seed gives the same bits. Loaders look in the
folder named by ``DROT_DATA``, then in a cache (``DROT_CACHE`` names another one), then at the
original address. They check a sha256 over the arrays wherever these come from. All return a
`DataSet` with ``X`` in float64.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from .._core.checks import check_choice
from .base import DataSet, as_count, make
from .fetch import DataUnavailable, find
from .formats import pca
from .origins import ORIGINS


def available(name: str) -> bool:
    """Whether a loader would succeed now without the network.

    False where the data set is absent, and also where a file is damaged: the loader says why.

    Source: the rule that a page whose data is absent says so and is skipped.

    Parameters
    ----------
    name : str
        ``"snareseq_chromatin"``, ``"snareseq_expression"``, ``"scgem"``, ``"coil20"``, ``"mnist"``,
        ``"fashion_mnist"``, ``"olivetti"`` or ``"pbmc3k"``.

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


def _load(name: str, text: str, download: bool, n_components: int | None = None) -> DataSet:
    """A data set; `n_components` replaces pixels by that many principal components."""
    arrays = find(name, download=download)
    X, y = arrays["X"], arrays["y"]
    if n_components is not None:
        X = pca(X / 255.0, n_components)
    return make(name, text, X, y, ORIGINS[name].label_names)


def _rank(n_components: int | None, most: int) -> int | None:
    if n_components is None:
        return None
    rank = as_count("n_components", n_components)
    if rank > most:
        raise ValueError(f"n_components={rank} is more than the {most} there are")
    return rank


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
    text = f"SNARE-seq, {modality}: 1047 cells from four human cell lines."
    return _load(f"snareseq_{modality}", text, download)


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
    return _load("scgem", "scGEM: expression of 34 genes in 177 human cells.", download)


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
    ValueError, TypeError
        When ``n_components`` is not in 1, ..., 50.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("coil20"):
    ...     assert drot.datasets.load_coil20().X.shape == (1440, 50)
    """
    rank = _rank(n_components, 50)
    arrays = find("coil20", download=download)
    X = arrays["X32"] if rank is None else arrays["X"][:, :rank]
    text = "COIL-20: twenty objects on a turntable, 72 views each."
    names = ORIGINS["coil20"].label_names
    view = arrays["view"].astype(np.int64)
    return make("coil20", text, X, arrays["y"], names, view=view)


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
    ValueError, TypeError
        When ``n_components`` is not in 1, ..., 784.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> drot.datasets.load_mnist(n_components=1000)
    Traceback (most recent call last):
    ValueError: n_components=1000 is more than the 784 there are
    """
    rank = _rank(n_components, 784)
    return _load("mnist", "MNIST: the 10 000 test images.", download, rank)


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
    ValueError, TypeError
        When ``n_components`` is not in 1, ..., 784.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("fashion_mnist"):
    ...     assert drot.datasets.load_fashion_mnist(n_components=None).X.max() == 255
    """
    rank = _rank(n_components, 784)
    text = "Fashion-MNIST: 10 000 images drawn from the training set."
    return _load("fashion_mnist", text, download, rank)


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
    ValueError, TypeError
        When ``n_components`` is not in 1, ..., 400.
    DataUnavailable
        When the data is neither here nor can be fetched; the sentence says what to place where.

    Examples
    --------
    >>> import drot
    >>> if drot.datasets.available("olivetti"):
    ...     assert drot.datasets.load_olivetti().counts == (10,) * 40
    """
    rank = _rank(n_components, 400)
    return _load("olivetti", "Olivetti faces: 10 photographs of each of 40 people.", download, rank)


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
    return _load("pbmc3k", "PBMC 3k: 2638 blood cells of eight types.", download)
