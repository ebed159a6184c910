"""The record behind book/reproductions/graph_coupling_tables.md, and the page without data."""

from __future__ import annotations

import csv
import importlib.util
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import drot
import numpy as np
import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from sklearn.manifold import SpectralEmbedding

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "book" / "reproductions" / "graph_coupling_tables.md"
RECORD = ROOT / "benchmarks" / "results" / "graph_coupling_tables.csv"
STARTS = ("random", "PCA", "Laplacian", "ccPCA")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    lines = [text for text in RECORD.read_text("utf8").splitlines() if not text.startswith("#")]
    return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def half(rows) -> dict[tuple[str, int, str, str, str], list[float]]:
    """100 R_n(n/2), one per seed, by data, points, method, start and variant."""
    found: dict[tuple[str, int, str, str, str], list[float]] = {}
    for row in rows:
        key = row["data"], int(row["n"]), row["method"], row["start"], row["variant"]
        found.setdefault(key, []).append(float(row["half"]))
    return found


@pytest.fixture(scope="module")
def script():
    """The script that wrote the record."""
    folder = ROOT / "benchmarks"
    sys.path.insert(0, str(folder))  # it imports its neighbour
    try:
        path = folder / "graph_coupling_tables.py"
        spec = importlib.util.spec_from_file_location("graph_coupling_tables", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def test_every_method_has_every_start(rows, half):
    """Each row once; PCA and Laplacian eigenmaps leave openTSNE nothing to draw."""
    keys = [
        tuple(row[k] for k in ("data", "n", "method", "start", "variant", "seed")) for row in rows
    ]
    assert len(set(keys)) == len(keys)
    for data, start in product(("mnist", "fashion"), STARTS):
        drawn = start in ("random", "ccPCA")
        assert len(half[data, 10_000, "UMAP", start, "-"]) == 3
        assert (len(half[data, 10_000, "openTSNE", start, "plain"]) > 1) == drawn
        assert len(half[data, 10_000, "openTSNE", start, "-"]) == 1
        for method in ("start", "openTSNE", "t-SNE"):
            assert len(half[data, 2000, method, start, "-"]) == 1
    for row in rows:
        assert -1 < float(row["half"]) < 100 and -1 < float(row["quarter"]) < 100


def test_the_grid_of_the_script_is_the_record(script, rows):
    """No row is missing and none is left from another grid."""
    expected = {tuple(str(part) or "-" for part in job) for job in script.grid()}
    names = ("data", "n", "method", "start", "variant", "seed")
    assert {tuple(row[name] for name in names) for row in rows} == expected


def test_a_random_start_scores_nothing(half):
    """R_n has mean 0 for a picture made without the data."""
    for data, n in product(("mnist", "fashion"), (2000, 10_000)):
        for value in half[data, n, "start", "random", "-"]:
            assert abs(value) < 1


def test_laplacian_start_is_that_of_scikit_learn(script):
    """By another eigensolver: the same columns up to sign and scale."""
    X = drot.datasets.digits(400, random_state=0).X
    ours = script.laplacian_start(X).numpy()
    theirs = SpectralEmbedding(random_state=0).fit_transform(X.numpy())
    theirs = theirs - theirs.mean(axis=0)
    assert ours.std(axis=0)[0] == pytest.approx(1, abs=1e-9)
    for column in range(2):
        cosine = np.corrcoef(ours[:, column], theirs[:, column])[0, 1]
        assert abs(cosine) == pytest.approx(1, abs=1e-4)
    ratio = ours.std(axis=0)[1] / ours.std(axis=0)[0]
    assert ratio == pytest.approx(theirs.std(axis=0)[1] / theirs.std(axis=0)[0], rel=1e-3)


def test_subsets_are_balanced(script, monkeypatch):
    """The same number of each class, in the order of the data."""
    source = drot.datasets.digits()
    monkeypatch.setattr(drot.datasets, "load_mnist", lambda **_: source)
    X, y = script.load.__wrapped__("mnist", 500)
    assert y.bincount().tolist() == [50] * 10
    first = (source.y == 3).nonzero()[:50, 0]
    assert (X[y == 3] == source.X[first]).all()


def test_what_the_page_says_of_table_2(half):
    """A random start costs much in plain descent, and little after exaggeration."""
    for data in ("mnist", "fashion"):
        plain, ends = (
            {start: np.mean(half[data, 10_000, "openTSNE", start, way]) for start in STARTS}
            for way in ("plain", "-")
        )
        assert plain["random"] < min(plain[start] for start in STARTS[1:]) - 8  # by 17 and 42
        assert ends["random"] > max(ends.values()) - 10  # by 3.5 and 0
    assert half["mnist", 10_000, "openTSNE", "random", "scale 1"][0] > 15  # 23


def test_page_runs_without_data(tmp_path):
    """Where no data are found, every cell still runs, and the page says that it computed none."""
    notebook = read_myst_markdown_notebook(
        PAGE.read_text("utf8"), MdParserConfig(enable_extensions={"colon_fence"})
    )
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) > 10
    absent = {"DROT_DATA": str(tmp_path), "DROT_CACHE": str(tmp_path), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-c", "\n\n".join(code)],
        capture_output=True,
        text=True,
        cwd=PAGE.parent,
        env=os.environ | absent,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not run: the data are absent" in done.stdout
