"""Stand-in for Binder and Colab: what they install, and a chapter run as they would run it.

    python tests/site/binder.py [book/04_snekhorn]

A copy of the repository gets a fresh environment from the pip part of ``environment.yml``. There
JupyterLab, driven by headless Chromium, opens a chapter from the address that its Binder button
names, and runs all its cells. Then drot is uninstalled, and the notebook that the site ships for
Colab fetches and installs it again, from that copy in place of GitHub.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Of each code cell of the notebook in JupyterLab: its count, whether it drew, and its errors.
CELLS = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  return [...notebook.model.cells].filter((cell) => cell.type === "code").map((cell) => {
    const outputs = cell.outputs.toJSON();
    return {
      count: cell.executionCount,
      drawn: outputs.some((o) => o.data?.["image/png"]),
      error: outputs.filter((o) => o.output_type === "error").map((o) => o.evalue).join(),
    };
  });
}"""

# Its kernel has answered; what is asked to run before is dropped.
READY = """() => {
  const context = window.jupyterapp.shell.currentWidget.sessionContext;
  return context.isReady && context.session?.kernel?.status === "idle" && context.kernelDisplayName;
}"""

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


def surroundings(env: Path, home: Path) -> dict[str, str]:
    """None of your own settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "VIRTUAL_ENV"))}
    path = f"{env / 'bin'}{os.pathsep}{kept['PATH']}"
    return {**kept, "HOME": str(home), "PATH": path, "JUPYTER_PLATFORM_DIRS": "1"}


def binder(repository: Path, env: Path, home: Path, chapter: str) -> None:
    """Open the chapter as the button of its page does, run all cells, wait for the last."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [env / "bin" / "jupyter", "lab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=stand-in"]
    command += ["--LabApp.expose_app_in_browser=True", f"--ServerApp.root_dir={repository}"]
    with (
        (home / "jupyterlab.log").open("w") as log,
        subprocess.Popen(
            command, cwd=repository, env=surroundings(env, home), stdout=log, stderr=log
        ) as server,
        sync_playwright() as playwright,
    ):
        try:
            executable = next(filter(None, map(shutil.which, BROWSERS)))
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1440, "height": 1100})
            for _ in range(600):
                if socket.socket().connect_ex(("127.0.0.1", port)) == 0:
                    break
                time.sleep(0.1)
            page.goto(f"http://127.0.0.1:{port}/lab/tree/{chapter}.md?token=stand-in")
            page.locator(".jp-NotebookPanel .jp-CodeCell").first.wait_for(timeout=120_000)
            glance = page.locator(".jp-MarkdownCell aside").filter(has_text="At a glance")
            glance.wait_for()  # MyST is rendered
            page.wait_for_function(READY, timeout=120_000)
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.locator(".lm-Menu-itemLabel:text-is('Run All Cells')").click()
            for _ in range(600):
                cells = page.evaluate(CELLS)
                if cells[-1]["count"] or any(cell["error"] for cell in cells):
                    break
                time.sleep(1)
        finally:
            server.terminate()
    assert not any(cell["error"] for cell in cells), cells
    assert all(cell["count"] for cell in cells), "some cells did not run"
    assert any(cell["drawn"] for cell in cells), "no figure"


def colab(repository: Path, env: Path, home: Path, chapter: str) -> None:
    """Run the notebook of the site; git takes the copy where it asks for GitHub."""
    notebook = ROOT / "_build" / "html" / "_sources" / f"{chapter}.ipynb"
    github = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]
    config = {"COUNT": "1", "KEY_0": f"url.{repository.as_uri()}.insteadOf", "VALUE_0": github}
    instead = {f"GIT_CONFIG_{name}": value for name, value in config.items()}
    python, content = env / "bin" / "python", home / "content"
    content.mkdir()
    call(python, "-m", "pip", "uninstall", "-q", "-y", "drot")
    call(python, "-c", EXECUTE, notebook, content, env=surroundings(env, home) | instead)
    assert (content / "drot-book" / "book").is_dir(), "the first cell did not fetch the book"


def main(chapter: str = "book/01_entropic_affinity") -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository, env, home = (Path(folder) / name for name in ("repository", "env", "home"))
        repository.mkdir()
        home.mkdir()
        copy_repository(repository)
        install(repository, env)
        print("== Binder: JupyterLab opens the chapter and runs it", flush=True)
        binder(repository, env, home, chapter)
        print("== Colab: the site's notebook installs drot and runs", flush=True)
        colab(repository, env, home, chapter)
    print("all passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
