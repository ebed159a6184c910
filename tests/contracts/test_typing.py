"""The types that the package declares are consistent, and are those that a user meets."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USER = ROOT / "tests" / "typing_user.py"
WRONG = {
    "drot.sqeuclidean([[0.0]], blok=3)": "call-arg",
    "drot.entropic_affinity([[0.0]], perplexity=3, diagonal='dropped')": "arg-type",
    "drot.symmetrize([[0.0]]).plan": "attr-defined",
    "drot.snekhorns": "attr-defined",
    "drot.TSNE(learning_rate=200)": "call-arg",
    "drot.DistR(3).nothing": "attr-defined",
    "drot.plot.nothing": "attr-defined",
    "drot.datasets.digits(20).y.nothing": "attr-defined",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> str:
    """Of the package, of its user and of wrong programs, in one run."""
    wrong = tmp_path_factory.mktemp("wrong") / "wrong.py"
    wrong.write_text("\n".join(["import drot", *WRONG]), "utf8")
    command = [sys.executable, "-m", "mypy", "--config-file", "pkg/pyproject.toml"]
    env = os.environ | {"MYPYPATH": str(ROOT / "pkg" / "src")}
    command += ["pkg/src/drot", str(USER), str(wrong)]
    answer = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    return answer.stdout + answer.stderr


def test_package_and_user_are_typed_and_wrong_programs_refused(said):
    """Its user's file is strict: no result of a public function is of unknown type or another."""
    found = dict(re.findall(r"wrong\.py:(\d+): error: .*\[(.+)\]$", said, re.M))
    assert found == {str(k): error for k, error in enumerate(WRONG.values(), 2)}
    assert len(re.findall("error:", said)) == len(WRONG), said


@pytest.mark.filterwarnings("error")
def test_the_program_runs():
    """What it calls exists and takes what it passes; so do the types that it asserts."""
    runpy.run_path(str(USER), run_name="__main__")
