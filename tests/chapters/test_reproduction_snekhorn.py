"""The recorded scores behind book/reproductions/snekhorn_tables.md, and the page without data."""

from __future__ import annotations

import csv
import os
import statistics
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "book" / "reproductions" / "snekhorn_tables.md"
RECORD = ROOT / "benchmarks" / "results" / "table2_ari.csv"
POINTS = {"chromatin": 1047, "expression": 1047, "scgem": 177}
AFFINITIES = ("rs", "ds", "st", "e", "se")


@pytest.fixture(scope="module")
def scores() -> dict[tuple[str, str, str, int], float]:
    """Mean over the seeds, by data set, treatment of the rows, affinity and setting."""
    lines = [text for text in RECORD.read_text("utf8").splitlines() if not text.startswith("#")]
    found = {}
    for row in csv.DictReader(lines):
        if row["grid"] == "tens":
            mean = statistics.fmean(float(row[f"ari_{seed}"]) for seed in range(5))
            found[row["data"], row["rows"], row["affinity"], int(row["setting"])] = mean
    return found


def test_whole_grid_is_recorded(scores):
    """Every affinity at every multiple of 10 from 10 to min(n - 1, 300), and no score above 100."""
    expected = {
        (data, rows, kind, setting)
        for data, rows, kind in product(POINTS, ("raw", "unit"), AFFINITIES)
        for setting in range(10, min(POINTS[data] - 1, 300) + 1, 10)
    }
    assert set(scores) == expected
    assert all(-50 < score <= 100 for score in scores.values())


@pytest.mark.parametrize(
    ("data", "kind", "setting", "score"),
    [
        ("chromatin", "e", 20, 55.5),
        ("expression", "e", 170, 95.2),
        ("scgem", "e", 30, 69.9),
        ("expression", "se", 300, 96.6),
        ("scgem", "se", 60, 70.3),
    ],
)
def test_known_scores(scores, data, kind, setting, score):
    """Scores that were measured before, with other software, at the same settings."""
    assert scores[data, "raw", kind, setting] == pytest.approx(score, abs=0.1)


def test_symmetric_entropic_plans_have_the_perplexity_asked_for():
    """P^se meets it row by row; symmetrising P^e adds to it."""
    lines = [text for text in RECORD.read_text("utf8").splitlines() if not text.startswith("#")]
    found = {"e": [], "se": []}
    for row in csv.DictReader(lines):
        if row["affinity"] in found:
            found[row["affinity"]].append(float(row["perplexity"]) / int(row["setting"]))
    assert found["se"] == pytest.approx([1.0] * 154, abs=1e-4)
    assert all(ratio > 1.0002 for ratio in found["e"])


@pytest.mark.parametrize(
    ("data", "rows", "kind", "printed", "again"),
    [
        ("chromatin", "raw", "e", 55.4, True),
        ("chromatin", "raw", "se", 96.6, False),
        ("chromatin", "unit", "se", 96.6, False),
        ("expression", "raw", "e", 55.4, False),
        ("expression", "raw", "se", 96.6, True),
        ("scgem", "raw", "se", 71.6, True),
    ],
)
def test_which_printed_scores_come_out_again(scores, data, rows, kind, printed, again):
    """What the page says of SNEkhorn's Table 2: the best of the grid is near it, or far away."""
    best = max(score for key, score in scores.items() if key[:3] == (data, rows, kind))
    assert abs(best - printed) < 0.5 if again else abs(best - printed) > 9


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
