"""What is handed out: a wheel and an archive of the package alone, light and well licensed."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PKG = ROOT / "pkg"
PROJECT = tomllib.loads((PKG / "pyproject.toml").read_text("utf8"))["project"]
SOURCE = PKG / "src"
MODULES = {path.relative_to(SOURCE).as_posix() for path in (SOURCE / "drot").rglob("*.py")}
MODULES |= {"drot/py.typed", "drot/datasets/origins.toml"}
HELD = {f"src/{name}" for name in MODULES} | {"pyproject.toml", "LICENSE"}
IMPORT_SECONDS = 1.5  # of processor time, beyond what torch takes
HEAVY = ("matplotlib", "sklearn", "ot", "pandas", "h5py", "PIL", "requests", "IPython")


def run(*command: object, cwd: Path) -> str:
    """Run a command that sees nothing of this checkout, and return what it says."""
    keep = {"PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT"} & os.environ.keys()
    env = {name: os.environ[name] for name in keep}
    env |= dict.fromkeys(("OMP_NUM_THREADS", "PYTHONNOUSERSITE"), "1")
    command = tuple(map(str, command))
    answer = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.mark.slow
def test_wheel_and_archive_hold_the_package_and_nothing_else(tmp_path):
    """The wheel from the archive, by the setuptools that is here."""
    skipped = shutil.ignore_patterns("*.egg-info", "__pycache__")
    shutil.copytree(PKG, tmp_path / "pkg", ignore=skipped)
    build = f"from setuptools import build_meta; build_meta.build_%s({str(tmp_path)!r})"
    run(sys.executable, "-c", build % "sdist", cwd=tmp_path / "pkg")
    (source,) = tmp_path.glob("*.tar.gz")
    run(sys.executable, "-m", "tarfile", "-e", source, tmp_path, cwd=tmp_path)
    folder = tmp_path / source.name.removesuffix(".tar.gz")
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    found = {name for name in files if not name.startswith("src/drot.egg-info/")}
    assert found - {"PKG-INFO", "setup.cfg"} == HELD
    run(sys.executable, "-c", build % "wheel", cwd=folder)
    info = f"drot-{PROJECT['version']}.dist-info/"
    with zipfile.ZipFile(tmp_path / f"drot-{PROJECT['version']}-py3-none-any.whl") as wheel:
        assert {name for name in wheel.namelist() if not name.startswith(info)} == MODULES
        assert wheel.read(f"{info}licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert b"\nLicense-Expression: MIT\n" in wheel.read(f"{info}METADATA")


def test_import_is_quick_and_light():
    """Processor time, which other programs at work do not lengthen; it may try three times."""
    program = f"""
import sys, time, torch
before, started = set(sys.modules), time.process_time()
import drot
print(time.process_time() - started, *[m for m in {HEAVY} if m in set(sys.modules) - before])
"""
    command = ["env", f"PYTHONPATH={SOURCE}", sys.executable, "-W", "error", "-c", program]
    for _ in range(3):
        seconds, *heavy = run(*command, cwd=ROOT).split()
        assert heavy == []
        if float(seconds) < IMPORT_SECONDS:
            break
    assert float(seconds) < IMPORT_SECONDS
