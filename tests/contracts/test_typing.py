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


def test_package_and_user_are_typed_and_wrong_programs_refused(tmp_path):
    """In one run. No result of a public function is of unknown type: its user's file is strict."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("\n".join(["import drot", *WRONG]), "utf8")
    command = [sys.executable, "-m", "mypy", "--config-file", "pkg/pyproject.toml"]
    command += ["pkg/src/drot", str(USER), str(wrong)]
    env = os.environ | {"MYPYPATH": str(ROOT / "pkg" / "src")}
    answer = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    said = answer.stdout + answer.stderr
    found = dict(re.findall(r"wrong\.py:(\d+): error: .*\[(.+)\]$", said, re.M))
    assert found == {str(k): error for k, error in enumerate(WRONG.values(), 2)}
    assert len(re.findall("error:", said)) == len(WRONG), said


@pytest.mark.filterwarnings("error")
def test_the_program_runs():
    """What it calls exists and takes what it passes; so do the types that it asserts."""
    runpy.run_path(str(USER), run_name="__main__")
