"""Stand-in for Binder and Colab: what they install, and a chapter run on it.

    python scripts/binder.py [book/05_snekhorn]

A copy of the repository gets a fresh environment from the pip part of ``environment.yml``. Then
drot is uninstalled, and the notebook that the site ships for Colab fetches and installs it again,
from that copy in place of GitHub, and runs.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import yaml

ROOT = Path(__file__).resolve().parents[1]

# Runs in the environment: execute the notebook in the folder given; no output may be lost.
EXECUTE = """
import sys
import nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
before = [bool(c.get("outputs")) for c in notebook.cells]
nbclient.NotebookClient(
    notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": sys.argv[2]}}
).execute()
after = [bool(c.get("outputs")) for c in notebook.cells]
assert not any(b and not a for b, a in zip(before, after, strict=True)), "a cell says nothing now"
outputs = [output for c in notebook.cells for output in c.get("outputs", [])]
assert any("image/png" in output.get("data", {}) for output in outputs), "no figure"
"""


def call(*command: object, **options) -> str:
    """Run a command; its standard output, or its complaint and the end."""
    text = [str(part) for part in command]
    done = subprocess.run(text, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(text)[:200]}: failed\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def copy_repository(target: Path) -> None:
    """What a clone would hold after a commit of everything that git does not ignore."""
    listed = call("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
    git = ["git", "-c", "user.name=stand-in", "-c", "user.email=stand-in@localhost"]
    for command in (["init", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "copy"]):
        call(*git, *command, cwd=target)


def known(index: str) -> bool:
    """Whether the host of an index has an address; pip would ask it anew for every package."""
    try:
        return bool(socket.getaddrinfo(urlsplit(index.split()[-1]).hostname, 443))
    except OSError:
        return False


def install(repository: Path, env: Path) -> None:
    """As conda does it: the pip part, as a file of requirements beside environment.yml."""
    listed = yaml.safe_load((repository / "environment.yml").read_text("utf8"))["dependencies"]
    (part,) = [entry["pip"] for entry in listed if isinstance(entry, dict)]
    requirements = repository / "condaenv.requirements.txt"
    lines = [line for line in part if not line.startswith("--extra-index-url") or known(line)]
    requirements.write_text("\n".join(lines) + "\n", "utf8")
    call(sys.executable, "-m", "venv", env)
    call(env / "bin" / "python", "-m", "pip", "install", "-q", "-r", requirements, cwd=repository)
    requirements.unlink()
    call(env / "bin" / "python", "-m", "pip", "check")


def run(repository: Path, env: Path, home: Path, chapter: str) -> None:
    """The notebook of the site, with none of your settings; git takes the copy for GitHub."""
    notebook = ROOT / "_build" / "html" / "_sources" / f"{chapter}.ipynb"
    github = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]
    config = {"COUNT": "1", "KEY_0": f"url.{repository.as_uri()}.insteadOf", "VALUE_0": github}
    own = ("JUPYTER", "PYTHON", "VIRTUAL_ENV")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    kept |= {f"GIT_CONFIG_{name}": value for name, value in config.items()}
    path = f"{env / 'bin'}{os.pathsep}{kept['PATH']}"
    kept |= {"HOME": str(home), "PATH": path, "JUPYTER_PLATFORM_DIRS": "1"}
    python, content = env / "bin" / "python", home / "content"
    content.mkdir()
    call(python, "-m", "pip", "uninstall", "-q", "-y", "drot")
    call(python, "-c", EXECUTE, notebook, content, env=kept)
    assert (content / "drot-book" / "book").is_dir(), "the first cell did not fetch the book"


def main(chapter: str = "book/02_entropic_affinity") -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository, env, home = (Path(folder) / name for name in ("repository", "env", "home"))
        repository.mkdir()
        home.mkdir()
        copy_repository(repository)
        install(repository, env)
        run(repository, env, home, chapter)
    print("passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
