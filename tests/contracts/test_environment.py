"""One file pins what is installed, the package names ranges, and Binder's environment has both."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import drot
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pkg" / "pyproject.toml").read_text("utf8"))["project"]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text("utf8"))
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
LINES = (ROOT / "pkg" / "constraints.txt").read_text("utf8").splitlines()
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
