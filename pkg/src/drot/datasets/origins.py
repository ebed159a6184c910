"""Where the real data sets come from, and how to recognise them: the one table of addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from . import formats as _formats

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Source:
    """One original file: its name on disk, its addresses in the order of trial, its check."""

    name: str
    urls: tuple[str, ...]
    check: str = ""  # "md5:..." of the file, or "git:..." (its object name in git); "" is no check
    limit: int = 2**26  # bytes


@dataclass(frozen=True)
class Origin:
    """All there is to know about where a data set comes from and how to recognise it."""

    file: str  # the .npz looked for in $DROT_DATA, and written in the cache
    sha256: str  # of that file in $DROT_DATA
    digest: str  # of the decoded arrays, see `digest`
    sources: tuple[Source, ...]
    read: Callable[[Sequence[Path]], Arrays]
    label_names: tuple[str, ...]
    hashed: str = "X"  # the array under `digest`, together with y
    corners: tuple[float, ...] = ()  # the first 3 entries of the first row of X and of the last
    extra: tuple[str, ...] = ()  # further arrays to keep


def _raw(repository: str, commit: str, path: str) -> str:
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"


_SNEKHORN = ("PythonOT/SNEkhorn", "48178d4c16f00df171792dd115c7d742b0f73a38")
_SCOT = ("rsinghlab/SCOT", "14649be6e14017dcfe7ba619091b33d1df55f6a9")
_MNIST = ("RahulBaboota/MNIST", "07115411d22bb2ccfe9bc7963780bbe5cb3c8a4e")
_FASHION = (
    "sthanhng/Fashion-MNIST-Embedding-Visualization",
    "eb5f86f8b618beabe3d5c13a6495d0cfbe37a75b",
)


def _snareseq(features: str) -> tuple[Source, ...]:
    names = (features, "SNAREseq_label.txt")
    return tuple(Source(n, (_raw(*_SNEKHORN, f"data/SCOT/{n}"),)) for n in names)


def _mnist(name: str, md5: str) -> Source:
    folders = ("FLAGS.data_dir", "MNIST_data")
    return Source(name, tuple(_raw(*_MNIST, f"{f}/{name}") for f in folders), f"md5:{md5}")


_CELL_LINES = ("H1", "GM", "BJ", "K562")
_PBMC = (
    "CD4 T cells",
    "CD14+ Monocytes",
    "B cells",
    "CD8 T cells",
    "NK cells",
    "FCGR3A+ Monocytes",
    "Dendritic cells",
    "Megakaryocytes",
)

#: Every address the package may download from. Tests point it at a server of their own.
ORIGINS: dict[str, Origin] = {
    "snareseq_chromatin": Origin(
        file="snareseq_chromatin.npz",
        sha256="3120423d5b72b4ea50848f4b7f2302beff690857a89519a705c3a2da5fb66784",
        digest="1c4a25be0df37a426daac81a504376db77a18b29c41b15c356f927e2d1c0727f",
        sources=_snareseq("SNAREseq_1.txt"),
        read=_formats.read_snareseq,
        label_names=_CELL_LINES,
    ),
    "snareseq_expression": Origin(
        file="snareseq_expression.npz",
        sha256="e16e358af05df6ed9853d0bbdfaee1ba4d8e72b273eafe8d743d79fe10687520",
        digest="fd64344ac09c632d197b676beb89d4dbf8bc22fbe2697db39688ef7996dac0cb",
        sources=_snareseq("SNAREseq_2.txt"),
        read=_formats.read_snareseq,
        label_names=_CELL_LINES,
    ),
    "scgem": Origin(
        file="scgem_expression.npz",
        sha256="543db0f1e11c8fadafd4353afd9165c0aaf14537f6a71a01649287ac0d1d6dc9",
        digest="11be027d4589e7cfbe9a950931bfe717e5dbcf11b3660e5b160be2760c1935c5",
        sources=(
            Source(
                "Cheow_expression.csv",
                (
                    _raw(
                        "jw156605/MATCHER",
                        "2c245d771d715c6dfaa4bf172c5adeccef1cb8c9",
                        "pymatcher/data/Cheow_expression.csv",
                    ),
                ),
            ),
            Source(
                "scGEM_typeExpression.txt",
                (_raw(*_SCOT, "data/scGEM/scGEM_typeExpression.txt"),),
            ),
        ),
        read=_formats.read_scgem,
        label_names=("BJ", "d8", "d16T+", "d24T+", "iPS"),
    ),
    "coil20": Origin(
        file="coil20_pca50.npz",
        sha256="872428a4375c878d0cf2765b8d28923f000fd48d8f722b5aba7975373513f3f1",
        digest="b3818ad0b9d5eec6a022b8f3a9c490c4354428af89c4f544741ea240cdfb91d2",
        sources=(
            Source(
                f"SNEkhorn-{_SNEKHORN[1]}.tar.gz",
                ("https://codeload.github.com/{}/tar.gz/{}".format(*_SNEKHORN),),
                limit=2**28,
            ),
        ),
        read=_formats.read_coil20,
        label_names=tuple(f"obj{k}" for k in range(1, 21)),
        hashed="X32",
        corners=(0.29623721, 12.92165289, -15.09239276, 20.95030329, 2.33411547, 6.19268964),
        extra=("X32", "view"),
    ),
    "mnist": Origin(
        file="mnist_10k.npz",
        sha256="7614d651250d27ceb4500edefe378ec2b97aec4307e9a4931e4da18760fdc565",
        digest="7083823f253a67f952d8f4ac44bd404f674b015b4de6b2ca8f727d1908788c24",
        sources=(
            _mnist("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
            _mnist("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
        ),
        read=_formats.read_mnist,
        label_names=tuple("0123456789"),
    ),
    "fashion_mnist": Origin(
        file="fashion_mnist_10k.npz",
        sha256="9bc0da05f204d181e5cc479014095921c6cca43b675df19f0bf0692b7ea2668d",
        digest="3e51c599f1a83d713f4e27e4714865696dcae40716370d1980a863ffcbd74191",
        sources=tuple(
            Source(n, (_raw(*_FASHION, f"oss_data/{n}"),))
            for n in ("Fashion_MNIST_sprites.png", "Fashion_MNIST_labels.tsv")
        ),
        read=_formats.read_fashion,
        label_names=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
    ),
    "olivetti": Origin(
        file="olivetti.npz",
        sha256="007958dcce660c419397c944025414b568eff78efdffed541a4f330ee1557d3b",
        digest="5899c0d3ac292239b392302aff729017ec006900d052c7f3791acce74f9145c2",
        sources=(
            Source(
                "olivettifaces.mat",
                (
                    _raw(
                        "sjgershm/DBM",
                        "a30d9abb523aab874a299b8b1aa21e7df2023f60",
                        "olivettifaces.mat",
                    ),
                ),
            ),
        ),
        read=_formats.read_olivetti,
        label_names=tuple(f"s{k}" for k in range(1, 41)),
    ),
    "pbmc3k": Origin(
        file="pbmc3k_pca50.npz",
        sha256="2aaf9a196a72aa441fcd4be41ebe5ce11f697b6dd9a2b97cb0a4f4a1cc941fd7",
        digest="1787d4299bbe22d6d2c25363261a7e54cf60e71e83a7c30344b24c02752a4769",
        sources=(
            Source(
                "pbmc3k.h5ad",
                (
                    _raw(
                        "chanzuckerberg/cellxgene",
                        "eb1dc8944f8b647b1291faa36f1212f5610a4002",
                        "example-dataset/pbmc3k.h5ad",
                    ),
                ),
                check="git:e529a6d851bf1bde5b0ee58c41afcc1f4ffd36ac",
                limit=2**28,
            ),
        ),
        read=partial(_formats.read_pbmc3k, names=_PBMC),
        label_names=_PBMC,
    ),
}
