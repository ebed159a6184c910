"""Graphs and maps of ccPCA at the size of the paper: what its Figure 4 and section 4.3 say of them.

    DROT_DATA=<folder of the data files> python benchmarks/ccpca_maps.py

The balanced images of graph_coupling_tables.py, 8920 of MNIST and 9720 of Fashion-MNIST. Graph
``D 30`` is t-SNE's, one edge out of each point at perplexity 30; ``B 15`` is UMAP's, independent
edges with its memberships of 15 neighbours; ``pi`` is D 30 with a prior on the edges: ``pi 0.1``
says that one across classes is a tenth as likely as the kernel says, before rows are normalised.
``PCA`` is the map without a graph.

``across`` is the share of edges between two classes, and ``joined`` the share of the pairs of two
classes in one component, both in % and over five graphs; ``components`` their mean number, of 100
graphs for ccPCA. B has no map: its graphs hold nearly all points in one component.
``error`` is the standard error of the averaged means as a share of their spread, in %.
``like_pca`` is the correlation of the distances between class means in the map with those in PCA's,
``within`` the variance within classes as a share of all in the map, in %; ``quarter`` and ``half``
are 100 R_n(K). ``layout`` has the mean and the standard deviations of each class along the two
columns. ``kernel_seconds`` and ``graph_seconds`` are CPU seconds: the affinity; the graphs and PCA.

Prediction: an affinity 3 s, 100 graphs 3, scores 3.5, 16 maps, 3 minutes; B 4 s. Edges across rise
with the perplexity, from some 10 % at 30, and the error with them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import drot
import graph_coupling_tables as tables
import recording
import sweep
import torch
from class_layouts import class_means
from drot.affinities.base import Affinity
from drot.graphs.graph import Graph
from torch import Tensor

OUT = Path(__file__).parent / "results" / "ccpca_maps.csv"
KEY = ["data", "n", "graph"]
GRAPHS = ("PCA", "D 10", "D 30", "D 100", "D 300", "D 1000", "B 15", "B 5", "B 3", "pi 0.1", "pi 0")
FIELDS = ["across", "joined", "components", "error", "like_pca", "within", "quarter", "half"]
FIELDS += ["kernel_seconds", "graph_seconds", "layout"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Changed(Affinity):
    """The logarithms of an affinity, row by row made others."""

    source: Affinity
    change: Callable[[slice, Tensor], Tensor]

    @classmethod
    def of(cls, source: Affinity, change: Callable[[slice, Tensor], Tensor]) -> Changed:
        told = ("cost", "residual", "n_iter", "passes", "converged", "trace")
        return cls(source=source, change=change, **{name: getattr(source, name) for name in told})

    def log_rows(self, rows: slice, cost: Tensor) -> Tensor:
        return self.change(rows, self.source.log_rows(rows, cost))


def kernel(X: Tensor, y: Tensor, graph: str) -> tuple[Affinity, str]:
    """Its logarithm, and the prior. Of B the odds; a certain edge fails once in 160 000 draws."""
    name, _, setting = graph.partition(" ")
    cost = drot.sqeuclidean(X, block=1000)
    if name == "B":
        found = drot.umap_membership(cost, n_neighbors=int(setting))
        odds = Changed.of(found, lambda _, log_p: (log_p - (-log_p.expm1()).log()).clamp_max(12.0))
        return odds, "binary"
    perplexity = 30 if name == "pi" else int(setting)
    rows = drot.entropic_affinity(cost, perplexity=perplexity, diagonal="drop", tol=1e-6)
    if name == "D":
        return rows, "row"
    share = torch.tensor(float(setting)).double().log()
    other = torch.where(y[:, None] != y, share, 0.0)
    return Changed.of(rows, lambda at, log_p: log_p + other[at]), "row"


def case(data: str, n: int, graph: str) -> dict[str, str]:
    torch.set_num_threads(1)
    X, y = tables.load(data, n)
    found, begin = dict.fromkeys(FIELDS, ""), time.process_time()
    if graph == "PCA":
        spent, middle, Z = 0.0, begin, drot.spectral.pca(X, 2).Z
    else:
        log_kernel, prior = kernel(X, y, graph)
        spent = time.process_time() - begin
        found |= shares(drot.sample_graphs(log_kernel, 5, prior=prior, random_state=0), y)
        if prior == "binary":
            return found
        middle = time.process_time()
        maps = drot.ccpca(X, log_kernel, prior=prior, random_state=0)
        found["components"] = f"{float(maps.n_connected.double().mean()):.3f}"
        found["error"], Z = f"{100 * maps.standard_error:.3f}", maps.Z
    end = time.process_time()
    found |= {"kernel_seconds": f"{spent:.1f}", "graph_seconds": f"{end - middle:.2f}"}
    Z, plain = tables.unit(Z), tables.unit(drot.spectral.pca(X, 2).Z)
    both = torch.stack([torch.pdist(class_means(A, y)) for A in (Z, plain)])
    found["like_pca"] = f"{float(torch.corrcoef(both)[0, 1]):.3f}"
    within = (Z - class_means(Z, y)[y]).square().sum() / Z.square().sum()
    found["within"] = f"{100 * float(within):.3f}"
    for name, part in (("quarter", 4), ("half", 2)):
        found[name] = f"{100 * drot.neighborhood_preservation(X, Z, n // part):.3f}"
    spreads = torch.stack([Z[y == k].std(dim=0) for k in y.unique()])
    places = torch.cat([class_means(Z, y), spreads], dim=1).tolist()
    found["layout"] = "; ".join(" ".join(f"{x:.4f}" for x in place) for place in places)
    return found


def shares(graphs: list[Graph], y: Tensor) -> dict[str, str]:
    """In %: edges between classes, pairs of points of two classes in one component; components."""
    found, sizes = [], torch.bincount(y).double()
    for graph in graphs:
        part = drot.connected_components(graph).labels
        inside = torch.bincount((y.max() + 1) * part + y).double().square().sum()
        joined = torch.bincount(part).double().square().sum() - inside
        across = (y[graph.edges[0]] != y[graph.edges[1]]).double().mean()
        pairs = sizes.sum() ** 2 - sizes.square().sum()
        found.append([100 * across, 100 * joined / pairs, 1 + part.max()])
    means = torch.tensor(found, dtype=torch.float64).mean(dim=0).tolist()
    return {name: f"{x:.3f}" for name, x in zip(FIELDS, means, strict=False)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sweep.add_arguments(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = [(data, n, graph) for data, n in tables.BALANCED.items() for graph in GRAPHS]
    names = ("scikit-learn", "numpy", "joblib")
    swept = sweep.run(
        [dict(zip(KEY, row, strict=True)) for row in rows],
        case,
        OUT,
        fields=FIELDS,
        facts=recording.header(", ".join(f"{name} {version(name)}" for name in names)),
        **sweep.options(asked),
    )
    sys.exit(f"{swept.failed} cases failed: run again" if swept.failed else 0)


if __name__ == "__main__":
    main()
