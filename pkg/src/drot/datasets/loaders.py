"""The real data of the papers: one function, `load`, and its names."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from .._core.checks import check_choice, check_count
from ..spectral.methods import pca
from .base import DataSet, make
from .fetch import ORIGINS, DataUnavailable, find


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
