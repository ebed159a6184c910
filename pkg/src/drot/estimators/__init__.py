"""Estimators with the interface of scikit-learn."""

import re
from inspect import getdoc

from .clustering import DistR, SemiRelaxedGWClustering
from .embedding import CCPCA, SNE, TSNE, UMAP, LargeVis, SNEkhorn, TSNEkhorn

__all__ = [
    "CCPCA", "SNE", "TSNE", "UMAP", "DistR", "LargeVis", "SNEkhorn", "SemiRelaxedGWClustering",
    "TSNEkhorn",
]  # fmt: skip


def _entries(found: re.Match[str]) -> str:
    """What a docstring says to be as in another class, as it stands there."""
    names, there = "|".join(re.findall(r"\w+", found[1])), getdoc(globals()[found[2]]) or ""
    entries = re.finditer(rf"^({names})( :.*)?(\n    .*)*$", there, re.M)
    return "\n".join(entry[0] for entry in entries)


_AS_IN = re.compile(r"^((?:\w+,\s)*\w+)\n    As in :class:`(\w+)`\.$", re.M)
for _kind in (CCPCA, TSNE, UMAP, LargeVis, SNEkhorn, SemiRelaxedGWClustering, DistR, TSNEkhorn):
    _kind.__doc__ = _AS_IN.sub(_entries, getdoc(_kind) or "")  # for help(), and the site
