"""The records behind the pages of book/reproductions, the scripts that wrote them, and no data."""

import csv
from collections import defaultdict
from itertools import product
from pathlib import Path

import drot
import matplotlib.pyplot as plt
import numpy as np
import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from sklearn.metrics import silhouette_score

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "book" / "reproductions"


def read(name: str) -> list[dict[str, str]]:
    lines = (ROOT / "benchmarks" / "results" / f"{name}.csv").read_text("utf8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def grouped(rows, *names: str) -> dict[tuple[str, ...], list[dict[str, str]]]:
    """Rows by what they hold in some columns."""
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


@pytest.mark.parametrize("name", ["snekhorn_tables", "graph_coupling_tables", "distr_tables"])
def test_page_runs_without_data(tmp_path, monkeypatch, capsys, name):
    """Where no data are found, every cell still runs, and the page says that it computed none."""
    text, syntax = (PAGES / f"{name}.md").read_text("utf8"), {"colon_fence"}
    notebook = read_myst_markdown_notebook(text, MdParserConfig(enable_extensions=syntax))
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) > 10
    for place in ("DROT_DATA", "DROT_CACHE"):
        monkeypatch.setenv(place, str(tmp_path))
    monkeypatch.chdir(PAGES)
    with plt.rc_context({"backend": "agg"}):
        exec(compile("\n".join(code), name, "exec"), {"__name__": "__main__"})
    plt.close("all")
    assert "not run: the data are absent" in capsys.readouterr().out


POINTS = {"chromatin": 1047, "expression": 1047, "scgem": 177}
IMAGES = {"coil20": 1440, "olivetti": 400, "umist": 575}
SIZES = IMAGES | POINTS
AFFINITIES = ("rs", "ds", "st", "e", "se")
METHODS = ("UMAP", "openTSNE", "t-SNE", "t-SNEkhorn")
SCORES = dict.fromkeys(("half", "quarter", "homogeneity", "first"), -1)  # and the least
SCORES |= {f"ari_{seed}": -50 for seed in range(5)}


def test_grids_are_the_records(script):
    """No row is missing, none is there twice, and none is left from another grid.

    Of SNEkhorn every affinity at every multiple of 10 from 10 to min(n - 1, 300), images to 300.
    """
    starts, distr = script("graph_coupling_tables"), script("distr_tables")
    maps, table3 = script("ccpca_maps"), script("table3_scores")
    seeds = ("data", "method", "perplexity", "seed")
    due = [case for case in distr.grid() if distr.turn(case) <= distr.DONE]
    shown = ("data", "n", "method", "start", "variant", "seed")
    graphs = [(data, n, graph) for data, n in starts.BALANCED.items() for graph in maps.GRAPHS]
    tens = [
        (data, rows, kind, setting)
        for data, rows, kind in product(POINTS, ("raw", "unit"), AFFINITIES)
        for setting in range(10, min(POINTS[data] - 1, 300) + 1, 10)
    ]
    images = product(IMAGES, AFFINITIES, range(10, 301, 10))
    for name, keys, expected, grid in [
        ("graph_coupling_tables", shown, starts.grid(), ()),
        ("ccpca_maps", maps.KEY, graphs, ()),
        ("distr_tables", distr.Case._fields, due, distr.grid()),
        ("table2_ari", ("data", "rows", "affinity", "setting"), tens, ()),
        ("figure6_ari", ("data", "affinity", "setting"), images, ()),
        ("table3_scores", seeds, (), table3.grid()),  # as much as the next test says
    ]:
        rows = [row for row in read(name) if row.get("grid", "tens") == "tens"]
        there = set(grouped(rows, *keys))
        wanted, known = ({tuple(str(p) or "-" for p in job) for job in x} for x in (expected, grid))
        assert there >= wanted and there - wanted <= known and len(rows) == len(there)
        scores = [(row[s], least) for row in rows for s, least in SCORES.items() if row.get(s)]
        assert all(least < float(score) <= 100 for score, least in scores)


@pytest.fixture(scope="module")
def table3() -> dict[tuple[str, str, int], np.ndarray]:
    """Silhouettes of the seeds, by data set, method and perplexity."""
    found = grouped(read("table3_scores"), "data", "method", "perplexity")
    scores = {key: np.array([float(row["silhouette"]) for row in found[key]]) for key in found}
    return {(data, method, int(xi)): some for (data, method, xi), some in scores.items()}


def test_every_method_is_scored_with_five_seeds(table3, script):
    """Of the paper's grid as much as the page says."""
    run = script("table3_scores")
    for data, n in SIZES.items():
        for method, xi in product(METHODS, run.GRID[data]):
            scored = method != "openTSNE" or xi <= (n - 1) / 3
            assert len(table3.get((data, method, xi), ())) == 5 * scored
        own = run.GRID[data] if data in run.SMALL else (run.PERPLEXITY[data],)
        for kind, xi in product(run.PAPERS, own):  # to rest, and by the paper's rule
            assert {(data, kind, xi), (data, f"{kind}, Adam 1", xi)} <= set(table3)
        for kind in (*run.PAPERS, "t-SNE"):
            found = {xi for name, method, xi in table3 if (name, method) == (data, kind)}
            assert found == set(range(10, min(n, 300) + 1, 10))


def test_drawn_embeddings_are_the_scored_ones(table3):
    """The silhouettes of Figures 1 and 7, from their coordinates, are in the record."""
    drawn = grouped(read("table3_embeddings"), "data", "method")
    assert len(drawn) == 9
    for (data, method), rows in drawn.items():
        names = ("class", "z0", "z1", "row_perplexity")
        values = np.array([[float(row[name]) for name in names] for row in rows])
        xi = 30 if data == "coil20" else 50
        assert len(values) == SIZES[data]
        found = 100 * silhouette_score(values[:, 1:3], values[:, 0])
        assert found == pytest.approx(table3[data, method, xi][0], abs=0.2)
        if method.endswith("SNEkhorn"):
            assert values[:, 3] == pytest.approx(xi, abs=0.01)


def test_released_losses_are_those_of_the_package(script):
    """Sinkhorn to its end gives KL(P | Q), and t-SNE's loss carries n log n more."""
    settings, source = script("released_settings"), drot.datasets.digits(60, random_state=0)
    P = drot.symmetric_entropic_affinity(drot.sqeuclidean(source.X), perplexity=10, tol=1e-9).plan
    Z = drot.random_start(60, random_state=0)
    squares = drot.sqeuclidean(Z).dense()
    khorn, sne = drot.SNEkhornLoss(P, "student"), drot.SNELoss(P, "student", diagonal="keep")
    found = float(settings.snekhorn_loss(P, 1000)(squares))
    assert found == pytest.approx(khorn.evaluate(Z, tol=1e-9).value + khorn.constant, abs=1e-2)
    early = float(settings.snekhorn_loss(P, 2)(squares))
    assert abs(early - found) > 1e-2  # few steps are not the end
    found = float(settings.sne_loss(P)(squares))
    wanted = sne.evaluate(Z).value + sne.constant + 60 * np.log(60)
    assert found == pytest.approx(wanted, rel=1e-9)


def test_the_script_computes_what_the_package_does(script, monkeypatch):
    """On 150 digits in the place of MNIST, its methods end where the public functions do."""
    distr, source = script("distr_tables"), drot.datasets.digits(150)
    monkeypatch.setattr(distr, "load", lambda name, n: (source.X, source.y))
    for cached in ("problem", "whole", "start"):
        monkeypatch.setattr(distr, cached, getattr(distr, cached).__wrapped__)
    case = distr.Case("mnist", 150, "sea", 20, 2, "spectral", 12, 0, "DistR")
    C = drot.symmetric_entropic_affinity(drot.sqeuclidean(source.X), perplexity=20).plan

    def centres(T):
        means = T.T @ source.X / T.sum(dim=0)[:, None]
        return drot.symmetric_entropic_affinity(drot.sqeuclidean(means), perplexity=6).plan

    public = {
        "CDR": drot.cluster_then_reduce(C, 12),
        "centres": drot.cluster_then_reduce(C, 12, centres=centres),
        "DRC": drot.reduce_then_cluster(C, 12),
        "DistR": drot.distributional_reduction(C, 12, n_starts=1),
    }
    found = {name: distr.compute(**case._replace(method=name)._asdict()) for name in public}
    for name, result in public.items():
        assert float(found[name]["objective"]) == pytest.approx(result.objective, rel=0.05), name
        pure = 100 * drot.metrics.prototype_homogeneity(result.plan, source.y)
        assert float(found[name]["homogeneity"]) == pytest.approx(pure, abs=10), name
    values = {name: float(row["objective"]) for name, row in found.items()}
    assert values["DistR"] <= min(values.values()) and values["CDR"] < values["centres"]
    for name in ("CG", "MD"):  # from CDR, no step raises the objective
        row = distr.compute(**case._replace(method=name)._asdict())
        assert values["DistR"] * 0.9 < float(row["objective"]) <= values["CDR"]


@pytest.mark.skipif(
    not drot.datasets.available("snareseq_expression"), reason="the data are not here"
)
def test_a_case_of_the_record_again(script):
    """Chance is in the clusters, rounding in the descents: a few percent."""
    distr = script("distr_tables")
    rows = grouped(read("distr_tables"), *distr.Case._fields)
    for kind, k, method in (("sea", 44, "centres"), ("sea", 104, "CDR"), ("gram", 44, "DistR")):
        how, xi, q = ("kmeans", 0, 10) if kind == "gram" else ("spectral", 50, 2)
        case = distr.Case("expression", 1047, kind, xi, q, how, k, 0, method)
        ((held,), now) = rows[tuple(map(str, case))], distr.compute(**case._asdict())
        assert float(now["objective"]) == pytest.approx(float(held["objective"]), rel=0.1)
        for score in ("homogeneity", "first", "nmi"):
            assert float(now[score]) == pytest.approx(float(held[score]), abs=5), (case, score)
