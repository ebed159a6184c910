"""Stand-in for Binder and Colab: what they install, and a chapter run as they would run it.

    python tests/site/binder.py [--chapter book/04_snekhorn] [--pictures DIR]

A copy of the repository gets a fresh environment from the pip part of ``environment.yml``. There
JupyterLab, driven by headless Chromium, opens a chapter from the address that its Binder button
names, and runs all its cells. Then drot is uninstalled, and the notebook that the site ships for
Colab fetches and installs it again, from that copy in place of GitHub.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
REPOSITORY = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]
TOKEN = "stand-in"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# What a notebook in JupyterLab holds: of each code cell its count, kinds of output and errors.
CELLS = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  return [...notebook.model.cells].filter((cell) => cell.type === "code").map((cell) => {
    const outputs = cell.outputs.toJSON();
    return {
      count: cell.executionCount,
      kinds: outputs.flatMap((output) => Object.keys(output.data ?? {})),
      error: outputs.filter((o) => o.output_type === "error").map((o) => o.evalue).join(),
    };
  });
}"""

SHOW_FIGURE = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const drawn = (cell) =>
    cell.type === "code" && cell.outputs.toJSON().some((o) => o.data?.["image/png"]);
  return notebook.scrollToItem([...notebook.model.cells].findIndex(drawn), "start");
}"""

# Its kernel has answered; what is asked to run before is dropped.
READY = """() => {
  const context = window.jupyterapp.shell.currentWidget.sessionContext;
  return context.isReady && context.session?.kernel?.status === "idle" && context.kernelDisplayName;
}"""

# Runs in the environment: execute the notebook in the folder given, say what came out.
EXECUTE = """
import json, sys
import nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
before = [bool(c.get("outputs")) for c in notebook.cells]
nbclient.NotebookClient(
    notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": sys.argv[2]}}
).execute()
after = [bool(c.get("outputs")) for c in notebook.cells]
lost = sum(b and not a for b, a in zip(before, after, strict=True))
outputs = [output for c in notebook.cells for output in c.get("outputs", [])]
pictures = sum("image/png" in output.get("data", {}) for output in outputs)
print(json.dumps({"outputs": sum(after), "lost": lost, "pictures": pictures}))
"""


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    print(f"== {name} ...", flush=True)
    started = time.perf_counter()
    yield
    print(f"   {time.perf_counter() - started:.0f} s", flush=True)


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
    call(*git, "init", "-q", "-b", "main", cwd=target)
    call(*git, "add", "-A", cwd=target)
    call(*git, "commit", "-q", "-m", "copy", cwd=target)


def known(index: str) -> bool:
    """Whether the host of an index has an address; pip would ask it anew for every package."""
    host = urlsplit(index.split()[-1]).hostname
    try:
        return bool(socket.getaddrinfo(host, 443))
    except OSError:
        print(f"   without {host}, which cannot be reached from here")
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


@contextlib.contextmanager
def jupyterlab(repository: Path, env: Path, home: Path) -> Iterator[str]:
    """Address of a JupyterLab that works in the repository and knows no settings of yours."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [env / "bin" / "jupyter", "lab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}"]
    command += ["--LabApp.expose_app_in_browser=True", f"--ServerApp.root_dir={repository}"]
    with (home / "jupyterlab.log").open("w") as log:
        server = subprocess.Popen(
            [str(part) for part in command],
            cwd=repository,
            env=surroundings(env, home),
            stdout=log,
            stderr=log,
        )
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                if server.poll() is not None:
                    sys.exit((home / "jupyterlab.log").read_text("utf8")[-4000:])
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()
            server.wait(30)


def surroundings(env: Path, home: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "VIRTUAL_ENV"))}
    path = f"{env / 'bin'}{os.pathsep}{kept['PATH']}"
    return {**kept, "HOME": str(home), "PATH": path, "JUPYTER_PLATFORM_DIRS": "1", **more}


def run_all(page: Page, url: str, chapter: str) -> list[dict]:
    """Open the chapter as the button of its page does, run all cells, wait for the last."""
    page.goto(f"{url}lab/tree/{chapter}.md?token={TOKEN}")
    page.locator(".jp-NotebookPanel .jp-CodeCell").first.wait_for(timeout=120_000)
    glance = page.locator(".jp-MarkdownCell aside").filter(has_text="At a glance")
    glance.wait_for()  # MyST is rendered
    page.wait_for_function(READY, timeout=120_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-itemLabel:text-is('Run All Cells')").click()
    ends = time.monotonic() + 600
    while time.monotonic() < ends:
        cells = page.evaluate(CELLS)
        if cells[-1]["count"] or any(cell["error"] for cell in cells):
            return cells
        time.sleep(1)
    sys.exit(f"{chapter}: not all cells ran in 600 s")


def binder(repository: Path, env: Path, home: Path, chapter: str, pictures: Path | None) -> None:
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        sys.exit("no Chromium on this machine")
    with jupyterlab(repository, env, home) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 1100})
        cells = run_all(page, url, chapter)
        if pictures:
            pictures.mkdir(parents=True, exist_ok=True)
            page.evaluate(SHOW_FIGURE)
            page.wait_for_timeout(2000)
            page.screenshot(path=pictures / "jupyterlab.png")
        errors = [cell["error"] for cell in cells if cell["error"]]
        assert not errors, errors
        assert all(cell["count"] for cell in cells), "some cells did not run"
        drawn = sum("image/png" in cell["kinds"] for cell in cells)
        assert drawn, "no figure"
        print(f"   JupyterLab ran {len(cells)} cells of {chapter}: no error, {drawn} figures")
        browser.close()


def colab(repository: Path, env: Path, home: Path, chapter: str) -> None:
    notebook = SITE / "_sources" / f"{chapter}.ipynb"
    call(env / "bin" / "python", "-m", "pip", "uninstall", "-q", "-y", "drot")
    content = home / "content"
    content.mkdir()
    # git takes the copy where the cell asks for GitHub
    more = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": REPOSITORY,
    }
    answer = call(
        *(env / "bin" / "python", "-c", EXECUTE, notebook, content),
        env=surroundings(env, home, **more),
    )
    found = json.loads(answer.splitlines()[-1])
    assert (content / "drot-book" / "book").is_dir(), "the first cell did not fetch the book"
    assert not found["lost"] and found["pictures"], found
    print(f"   the site's notebook of {chapter} ran from its first cell: {found}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chapter", default="book/01_entropic_affinity")
    parser.add_argument("--pictures", type=Path, help="folder for a picture of JupyterLab")
    parser.add_argument("--folder", type=Path, help="work here and leave it; else a temporary one")
    options = parser.parse_args()
    started = time.perf_counter()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        repository, env, home = (folder / name for name in ("repository", "env", "home"))
        with phase("a copy of the repository, and an environment from environment.yml"):
            for path in (repository, home):
                path.mkdir(parents=True)
            copy_repository(repository)
            install(repository, env)
        with phase("Binder: JupyterLab opens the chapter and runs it"):
            binder(repository, env, home, options.chapter, options.pictures)
        with phase("Colab: the site's notebook installs drot and runs"):
            colab(repository, env, home, options.chapter)
    print(f"all passed in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
