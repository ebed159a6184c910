"""One file pins what is installed, the package names ranges, Binder's environment has both; what is
handed out is a wheel and an archive of the package alone, light and well licensed."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import drot
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PKG = ROOT / "pkg"
PROJECT = tomllib.loads((PKG / "pyproject.toml").read_text("utf8"))["project"]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text("utf8"))
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
LINES = (PKG / "constraints.txt").read_text("utf8").splitlines()
CONSTRAINTS = [Requirement(line) for line in LINES if line and not line.startswith("#")]
PINNED = {canonicalize_name(c.name): str(c.specifier)[2:] for c in CONSTRAINTS}
EXTRAS = PROJECT["optional-dependencies"]
ALL = [*PROJECT["dependencies"], *EXTRAS["book"], *EXTRAS["test"], *EXTRAS["bench"]]
REQUIRED = [Requirement(r) for r in ALL]
# What only torch brings, in versions that it pins itself and that differ from platform to platform.
TORCH = re.compile(r"triton|nvidia-.*|cuda-.*")


@pytest.mark.parametrize("requirement", REQUIRED, ids=str)
def test_every_requirement_is_pinned_within_its_bounds(requirement: Requirement):
    assert requirement.specifier.contains(PINNED[canonicalize_name(requirement.name)])


def test_installed_versions_are_the_pinned_ones():
    installed = {canonicalize_name(d.name): d.version for d in importlib.metadata.distributions()}
    pinned = {name: PINNED[name] for name in installed.keys() & PINNED}
    # torch may come with the name of a build, as in +cpu
    assert {name: installed[name].partition("+")[0] for name in pinned} == pinned
    unpinned = installed.keys() - PINNED - {"drot", "pip", "setuptools", "wheel"}
    assert [name for name in unpinned if not TORCH.fullmatch(name)] == []


def test_binder_installs_the_package_with_what_the_book_needs():
    """All comes from pkg/pyproject.toml: nothing is named twice, so nothing can disagree."""
    *conda, pip = ENVIRONMENT["dependencies"]
    requirements = [r for r in pip["pip"] if not r.startswith("--")]
    assert requirements == ["-c pkg/constraints.txt", "-e ./pkg[book]", "./book/_lab"]
    versions = dict(r.partition("=")[::2] for r in conda)
    assert versions.keys() == {"python", "pip"}
    assert SpecifierSet(PROJECT["requires-python"]).contains(versions["python"])
    assert not (ROOT / "binder").exists() and not (ROOT / ".binder").exists()  # would win over it


def test_addresses_come_from_one_file():
    """The site and its repository: where ``_config.yml`` says they will be."""
    site, repository = CONFIG["html"]["baseurl"], CONFIG["repository"]["url"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    assert (citation["url"], citation["repository-code"]) == (site, repository)
    assert PROJECT["urls"] == {"Book": site, "Source": repository}
    owner = repository.removeprefix("https://github.com/")
    ours = re.compile(r"(?:https://github\.com|mybinder\.org/v2/gh)/(?!TorchDR/)([\w-]+/[\w-]+)")
    for name in ("README.md", "ENGINEERING.md", "book/index.md", "book/preface.md"):
        text = (ROOT / name).read_text("utf8")
        assert set(ours.findall(text)) <= {owner}, name
        addresses = re.findall(r"https://[\w-]+\.github\.io/[\w/]*", text)
        assert all(address.startswith(site) for address in addresses), name


def test_minutes_are_the_measured_ones():
    """What the README promises, ``tests/records/minutes.csv`` holds with its date."""
    lines = (ROOT / "tests" / "records" / "minutes.csv").read_text("utf8").splitlines()[1:]
    told = re.findall(
        r"^(make \w+) .*: about (\d+) min", (ROOT / "README.md").read_text("utf8"), re.M
    )
    assert sorted(told) == sorted(tuple(line.split(",")[1:]) for line in lines)


def test_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    assert drot.__version__ == PROJECT["version"] == str(citation["version"])
    assert PROJECT["requires-python"] == ">=3.11"
    for name in ("Makefile", ".ci/run"):
        assert "(3, 11)" in (ROOT / name).read_text("utf8")
    assert 'target-version = "py311"' in (ROOT / ".ruff.toml").read_text("utf8")


def test_code_is_clean():
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "."]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr


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
