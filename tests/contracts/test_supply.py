"""What is handed out: a wheel and an archive of the package alone, light and well licensed."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PKG = ROOT / "pkg"
PROJECT = tomllib.loads((PKG / "pyproject.toml").read_text("utf8"))["project"]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text("utf8"))
    for path in (ROOT / ".github" / "workflows").glob("*.yml")
}
SOURCE = PKG / "src"
MODULES = {path.relative_to(SOURCE).as_posix() for path in (SOURCE / "drot").rglob("*.py")}
MODULES |= {"drot/py.typed", "drot/datasets/origins.toml"}
HELD = {f"src/{name}" for name in MODULES} | {"pyproject.toml", "LICENSE"}
IMPORT_SECONDS = 1.5  # of processor time, beyond what torch takes
HEAVY = ("matplotlib", "sklearn", "ot", "pandas", "h5py", "PIL", "requests", "IPython")


def run(*command: object, cwd: Path) -> str:
    """Run a command that sees nothing of this checkout, and return what it says."""
    keep = {"PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT"} & os.environ.keys()
    env = {name: os.environ[name] for name in keep} | {"PIP_CONFIG_FILE": os.devnull}
    names = ("OMP_NUM_THREADS", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_INPUT", "PYTHONNOUSERSITE")
    env |= dict.fromkeys(names, "1")
    command = tuple(map(str, command))
    answer = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


# ------------------------------------------------------------------------- wheel and archive


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """(source archive, wheel made from it), built offline by the setuptools that is here."""
    home = tmp_path_factory.mktemp("build")
    shutil.copytree(PKG, home / "pkg", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    program = f"from setuptools import build_meta; build_meta.build_sdist({str(home)!r})"
    run(sys.executable, "-c", program, cwd=home / "pkg")
    (archive,) = home.glob("*.tar.gz")
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "-q"]
    run(sys.executable, "-m", "pip", "wheel", *offline, "-w", home, archive, cwd=home)
    (wheel,) = home.glob("*.whl")
    return archive, wheel


def test_wheel_and_archive_hold_the_package_and_nothing_else(built):
    info = f"drot-{PROJECT['version']}.dist-info/"
    with zipfile.ZipFile(built[1]) as wheel:
        assert {name for name in wheel.namelist() if not name.startswith(info)} == MODULES
        assert wheel.read(f"{info}licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert b"\nLicense-Expression: MIT\n" in wheel.read(f"{info}METADATA")
    assert built[1].name == f"drot-{PROJECT['version']}-py3-none-any.whl"
    with tarfile.open(built[0]) as archive:
        names = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    found = {name for name in names if not name.startswith("src/drot.egg-info/")}
    assert found - {"PKG-INFO", "setup.cfg"} == HELD


def needed(name: str) -> dict[str, importlib.metadata.Distribution]:
    """What pip would install for a package without extras, itself left out."""
    found: dict[str, importlib.metadata.Distribution] = {}
    queue = [Requirement(line) for line in importlib.metadata.requires(name) or []]
    while queue:
        requirement = queue.pop()
        key = canonicalize_name(requirement.name)
        if key in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found[key] = importlib.metadata.distribution(requirement.name)
        queue += [Requirement(line) for line in found[key].requires or []]
    return found


@pytest.fixture(scope="session")
def fresh(built, tmp_path_factory) -> Path:
    """The interpreter of a new environment: the wheel, and links to what drot itself requires.

    Links, because nothing is downloaded. What only the book and the tests need is not there.
    """
    home = tmp_path_factory.mktemp("fresh")
    links = home / "links"
    links.mkdir()
    for distribution in needed("drot").values():
        for top in {Path(file).parts[0] for file in distribution.files or ()}:
            link = links / top
            if top not in ("..", "__pycache__") and not link.exists():
                link.symlink_to(distribution.locate_file(top))
    run(sys.executable, "-m", "venv", "--without-pip", home / "venv", cwd=home)
    python = home / "venv" / "bin" / "python"
    install = ["install", "-q", "--no-deps", "--no-index", built[1]]
    run(sys.executable, "-m", "pip", "--python", python, *install, cwd=home)
    (site,) = (home / "venv" / "lib").glob("python*/site-packages")
    (site / "links.pth").write_text(f"{links}\n")
    return python


def test_fresh_environment_solves(fresh):
    """The installed wheel computes, far from this checkout; a missing extra is named."""
    program = """
import importlib.util, drot, torch
assert not any(map(importlib.util.find_spec, ("ot", "pytest", "jupyter_book")))
X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
affinity = drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=5)
P = affinity.plan
assert torch.equal(P, P.T) and torch.allclose(P.sum(1), torch.ones(20).double(), atol=1e-3)
assert affinity.perplexity.min() > 4.99
print(drot.__file__)
try:
    drot.gromov_wasserstein([[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]])
except ImportError as error:
    print(error)
"""
    where, said = run(fresh, "-I", "-c", program, cwd=fresh.parent).splitlines()
    assert Path(where).is_relative_to(fresh.parents[1]) and not Path(where).is_relative_to(ROOT)
    assert "POT" in said and "install" in said


def test_import_is_quick_and_light(fresh):
    """Processor time, which other programs at work do not lengthen; the best of three."""
    program = f"""
import sys, time, torch
before, started = set(sys.modules), time.process_time()
import drot
print(time.process_time() - started, *[m for m in {HEAVY} if m in set(sys.modules) - before])
"""
    answers = [
        run(fresh, "-I", "-W", "error", "-c", program, cwd=fresh.parent).split() for _ in range(3)
    ]
    assert [heavy for answer in answers for heavy in answer[1:]] == []
    assert min(float(answer[0]) for answer in answers) < IMPORT_SECONDS


# ------------------------------------------------------------------------ versions and updates


def test_classifiers_and_matrix_name_the_same_pythons():
    label = "Programming Language :: Python :: 3."
    named = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if c.startswith(label)}
    matrix = WORKFLOWS["tests"]["jobs"]["package"]["strategy"]["matrix"]
    assert set(matrix["python"]) == named
    assert all(SpecifierSet(PROJECT["requires-python"]).contains(p) for p in named)
    assert min(named, key=lambda p: int(p[2:])) == PROJECT["requires-python"].removeprefix(">=")
    listing = WORKFLOWS["tests"]["jobs"]["oldest"]["steps"][-1]["run"].partition(" > ")[0]
    asked = subprocess.check_output(["bash", "-c", listing], cwd=ROOT, text=True)
    assert asked.split() == [line.replace(">=", "==") for line in PROJECT["dependencies"]]
