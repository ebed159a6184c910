"""What ``make`` does, with nothing but the standard library of Python 3.11.

    python book/_ext/make.py setup | book | test | bench | coverage | serve | links
    python book/_ext/make.py pdf | binder | renew | clean | distclean

``book`` and ``test`` create ``.venv`` where it is missing, incomplete or out of date, let pytest
execute the chapters (``book/conftest.py``), and build the site from those executions.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "_build"
SITE = BUILD / "html"
PDF = BUILD / "drot.pdf"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "drot-installed.json"  # written last: the installation is whole
UNDERWAY = VENV / "drot-installing"  # stands while pip works: the installation is not whole
PYPROJECT = ROOT / "pkg" / "pyproject.toml"
CONSTRAINTS = ROOT / "pkg" / "constraints.txt"
HELD: list[int] = []  # the lock of this folder, while this process has it
JUPYTER_BOOK = [PYTHON, "-c", "from jupyter_book.cli.main import main; main()", "build", "-q"]

# Runs in .venv: what is installed, and which packages have lost their files.
PROBE = """
import importlib.metadata, importlib.util, json, sys
dists, lost = [], []
for d in importlib.metadata.distributions():
    dists.append(f"{d.name}=={d.version}")
    for line in (d.read_text("RECORD") or "").splitlines():
        name = line.partition(",")[0]
        if name.endswith("/__init__.py") and name.count("/") == 1:
            lost += [] if d.locate_file(name).exists() else [d.name]
drot = importlib.util.find_spec("drot")
print(json.dumps({"dists": dists, "lost": lost, "drot": (drot.origin or "") if drot else ""}))
"""
# Also in .venv: it has pip, and is of the Python that `make` was given.
SAME_PYTHON = f"import sys, pip; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"


class Failed(Exception):
    """A phase that did not succeed; the text says which."""


# ------------------------------------------------------------------------------------ processes


def say(text: str) -> None:
    print(text, flush=True)


def environment(**more: str) -> dict[str, str]:
    # The hash seed: both workers of pytest must list the same tests in the same order.
    fixed = {"PYTHONNOUSERSITE": "1", "JUPYTER_PLATFORM_DIRS": "1", "PYTHONHASHSEED": "0"}
    env = {**os.environ, **fixed, **more}
    env["PATH"] = f"{PYTHON.parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    if env.get("DROT_DATA"):  # kernels run in the folder of their chapter
        env["DROT_DATA"] = str(Path(env["DROT_DATA"]).absolute())
    return env


def run(*command: object, env: dict[str, str] | None = None, silent: tuple[str, ...] = ()) -> int:
    """Run a command in a process group of its own; on Ctrl-C, let it finish tidily.

    ``silent`` names what is not shown: "stdout", "stderr" or both.
    """
    child = subprocess.Popen(
        [str(c) for c in command],
        cwd=ROOT,
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        process_group=0,
        pass_fds=HELD,  # should this process be killed, the lock goes with its child
        **dict.fromkeys(silent, subprocess.DEVNULL),
    )
    try:
        return child.wait()
    except KeyboardInterrupt:
        say("\ninterrupted: waiting for what is running to stop ...")
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                child.wait(timeout=20)
                break
        raise


@contextlib.contextmanager
def phase(name: str, times: dict[str, float]):
    """Say what begins, and how long it took."""
    say(f"\n== {name}")
    started = time.perf_counter()
    try:
        yield
    finally:
        times[name] = time.perf_counter() - started


@contextlib.contextmanager
def alone():
    """One make at a time in this folder; the lock goes with its holder."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".make.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another make is at work in this folder; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        HELD.append(handle.fileno())
        yield
        HELD.clear()


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, "utf8")
    part.replace(path)


# ------------------------------------------------------------------------------------- set-up


def pins() -> str:
    """Digest of everything that decides what is installed."""
    digest = hashlib.sha256(f"{ROOT} {sys.version_info[:2]}".encode())
    for path in (PYPROJECT, CONSTRAINTS):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def pip_install(*what: object) -> int:
    manner = [] if sys.stdout.isatty() else ["-q", "--progress-bar", "off"]
    pip = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", *manner]
    return run(*pip, "-c", CONSTRAINTS.relative_to(ROOT), *what)


def probe() -> dict | None:
    """What stands in .venv, or None where it does not answer."""
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        answer = subprocess.run(
            [PYTHON, "-c", PROBE], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return json.loads(answer.stdout)
    return None


def ready(found: dict | None) -> bool:
    if found is None or UNDERWAY.exists() or found["lost"]:
        return False
    with contextlib.suppress(OSError, ValueError, KeyError):
        stamp = json.loads(STAMP.read_text("utf8"))
        at_home = Path(found["drot"]).is_relative_to(ROOT / "pkg" / "src")
        return stamp["pins"] == pins() and set(stamp["dists"]) <= set(found["dists"]) and at_home
    return False


def setup() -> None:
    """Leave a whole .venv; a matter of a second where it is whole already."""
    found = probe()
    if ready(found):
        return
    usable = PYTHON.exists() and not UNDERWAY.exists() and not (found and found["lost"])
    if usable:
        usable = run(PYTHON, "-c", SAME_PYTHON, silent=("stdout", "stderr")) == 0
    if VENV.exists() and not usable:
        say(".venv is incomplete or of another Python; making it anew")
        shutil.rmtree(VENV)
    if not usable:
        say(f"creating .venv with Python {sys.version.split()[0]}")
        if run(sys.executable, "-m", "venv", VENV) != 0:
            shutil.rmtree(VENV, ignore_errors=True)
            raise Failed(
                "set-up (Python could not create a virtual environment; "
                "Debian and Ubuntu keep that part in the package python3-venv)"
            )
    STAMP.unlink(missing_ok=True)
    UNDERWAY.touch()
    say("installing torch, the package, and what book and tests need (the first time, minutes)")
    if pip_install("-e", "./pkg[book,test]") != 0:
        raise Failed("set-up: pip could not install the requirements; its message stands above")
    if run(PYTHON, "-m", "pip", "check") != 0:
        raise Failed("set-up: the installed packages do not fit together; see above")
    UNDERWAY.unlink()
    found = probe()
    if found is None or found["lost"]:
        raise Failed("set-up: .venv was installed but does not work; `make distclean` removes it")
    replace_text(STAMP, json.dumps({"pins": pins(), "dists": found["dists"]}))


def setup_extra(extra: str) -> bool:
    """Install what only the benchmarks or the mutants need; True when all of it is there."""
    peers = tomllib.loads(PYPROJECT.read_text("utf8"))["project"]["optional-dependencies"][extra]
    names = {re.split(r"[<>=~! ]", peer)[0] for peer in peers}
    pinned = {p for p in CONSTRAINTS.read_text("utf8").split() if p.partition("==")[0] in names}
    found = probe()
    if found is not None and pinned <= set(found["dists"]):
        return True
    say(f"installing {', '.join(sorted(names))}")
    return pip_install(*peers) == 0


# ------------------------------------------------------------------------------- book and tests


def pytest(*arguments: object, name: str, empty_is_fine: bool = False, **env: str) -> None:
    command = [PYTHON, "-m", "pytest", *arguments]
    code = run(*command, env=environment(PYTHONUNBUFFERED="1", **env))
    if empty_is_fine and code == 5:
        say("every chapter stands executed already")
    elif code:
        raise Failed(name)


def build_site() -> None:
    """Build into a folder of its own and swap: a site is never half a site."""
    new = BUILD / "new"
    shutil.rmtree(new, ignore_errors=True)  # a warm build would hide failures
    command = [*JUPYTER_BOOK, "-W", "-n", "--keep-going", "--path-output", new.relative_to(ROOT)]
    # stdout would only name the folder that is about to be moved; warnings come on stderr.
    if run(*command, ".", env=environment(DROT_EXECUTED="1"), silent=("stdout",)):
        raise Failed("building the site (-W -n: every warning is an error)")
    old = BUILD / "old"
    shutil.rmtree(old, ignore_errors=True)
    if SITE.exists():
        SITE.rename(old)
    (new / "_build" / "html").rename(SITE)
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(new, ignore_errors=True)


def make_chapters(times: dict[str, float]) -> None:
    with phase("set-up", times):
        setup()
    with phase("chapters: executing those that have changed", times):
        pytest("-q", "-n", "auto", "book", name="chapters", empty_is_fine=True, DROT_REUSE="1")


def make_book(times: dict[str, float]) -> None:
    make_chapters(times)
    with phase("building the site", times):
        build_site()


def make_pdf(times: dict[str, float]) -> None:
    """The book on paper, by LaTeX: optional, since LaTeX is no part of Python."""
    missing = [name for name in ("latexmk", "xelatex") if shutil.which(name) is None]
    if missing:
        raise Failed(
            f"set-up: {' and '.join(missing)} not found; on Debian and Ubuntu, `apt install "
            "latexmk texlive-xetex tex-gyre fonts-dejavu librsvg2-bin` brings what the PDF needs"
        )
    make_chapters(times)
    work = BUILD / "paper"
    shutil.rmtree(work, ignore_errors=True)
    tex = work / "_build" / "latex" / "drot.tex"
    with phase("writing the book as LaTeX", times):
        command = [*JUPYTER_BOOK, "-W", "-n", "--keep-going", "--builder", "latex"]
        command += ["--path-output", work.relative_to(ROOT), "."]
        if run(*command, env=environment(DROT_EXECUTED="1"), silent=("stdout",)):
            raise Failed("writing the book as LaTeX (-W -n: every warning is an error)")
    with phase("typesetting it, three times or four", times):
        command = ["latexmk", "-r", tex.with_name("latexmkrc"), "-cd", "-xelatex", "-silent"]
        command += ["-interaction=nonstopmode", "-halt-on-error", tex]
        if run(*command, silent=("stdout", "stderr")):
            log = tex.with_suffix(".log")
            lines = log.read_text("utf8", "replace").splitlines() if log.exists() else []
            say("\n".join(lines[-12:]))
            raise Failed(f"typesetting; {log.relative_to(ROOT)} ends as shown above")
    tex.with_suffix(".pdf").replace(PDF)


def make_test(times: dict[str, float]) -> None:
    with phase("set-up", times):
        setup()
    with phase("tests, doctests, and every chapter", times):
        paths = ["tests", "book", "pkg/src", "--ignore=tests/site"]
        pytest("-n", "auto", *paths, name="tests, doctests or chapters", DROT_AFRESH="1")
    with phase("building the site from these executions", times):
        build_site()
    with phase("tests of the site, in the browser too", times):
        pytest("tests/site", name="tests of the site", DROT_REQUIRE_SITE="1")


def make_bench(times: dict[str, float]) -> None:
    with phase("set-up", times):
        setup()
        if not setup_extra("bench"):
            say("pip could not install them all: rows of those that are missing will say so")
    with phase("benchmarks, into benchmarks/results", times):
        if run(PYTHON, "benchmarks/bench.py", env=environment()):
            raise Failed("benchmarks")


def make_coverage(times: dict[str, float]) -> None:
    """Lines and branches of the package that its tests run, those of their processes too."""
    with phase("set-up", times):
        setup()
    where = (BUILD / "coverage").relative_to(ROOT)
    shutil.rmtree(BUILD / "coverage", ignore_errors=True)
    (BUILD / "coverage").mkdir()
    env = environment(COVERAGE_FILE=str(BUILD / "coverage" / "data"))
    tool = [PYTHON, "-m", "coverage"]
    rc = "--rcfile=pkg/pyproject.toml"
    with phase("tests and doctests of the package, traced", times):
        folders = [f"tests/{name}" for name in ("theorems", "properties", "parity", "contracts")]
        tests = ["-m", "pytest", "-q", "-n", "auto", *folders, "pkg/src"]
        failed = run(*tool, "run", rc, *tests, env=env)
    with phase("record, into tests/records/coverage.csv", times):
        run(*tool, "combine", rc, "-q", env=env)
        run(*tool, "html", rc, "-q", "-d", where / "html", env=env)
        if run(*tool, "json", rc, "-q", "-o", where / "report.json", env=env):
            raise Failed("coverage: there are no data")
        run(PYTHON, "book/_ext/cover.py", where / "report.json")
    say(f"\nlines that no test ran: {where}/html/index.html")
    if failed:
        raise Failed("coverage: some tests failed, so the record is too low")


def make_renew(times: dict[str, float]) -> None:
    """Exact versions anew; the next make installs them."""
    with phase("set-up", times):
        setup()
    with phase("exact versions, into pkg/constraints.txt", times):
        if run(PYTHON, "book/_ext/renew.py"):
            raise Failed("renewing: pip found no versions that fit together; see above")


def make_binder(times: dict[str, float]) -> None:
    """What Binder and Colab would do, in an environment of its own."""
    make_book(times)
    with phase("a fresh environment, JupyterLab in Chromium, a notebook as in Colab", times):
        if run(PYTHON, "tests/site/binder.py"):
            raise Failed("the stand-in for Binder and Colab")


def links(times: dict[str, float]) -> None:
    """Ask every outside address of the book whether it still stands."""
    make_book(times)
    where = BUILD / "links"
    with phase("outside links", times):
        shutil.rmtree(where, ignore_errors=True)
        command = [*JUPYTER_BOOK, "--builder", "linkcheck", "--path-output"]
        command += [where.relative_to(ROOT), "."]
        code = run(*command, env=environment(DROT_EXECUTED="1"), silent=("stdout", "stderr"))
        for report in where.rglob("output.txt"):
            say("".join(x for x in report.open(encoding="utf8") if "[broken]" in x))
        if code:
            raise Failed("outside links: the broken ones are listed above")


def serve() -> None:
    if not (SITE / "index.html").is_file():
        raise Failed("serving: there is no site yet; `make book` builds it")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(SITE))
    port = int(os.environ.get("PORT") or 8000)
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    say(f"the book is at http://127.0.0.1:{server.server_port}/  (Ctrl-C ends)")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


def clean(*, everything: bool) -> None:
    caches = (".pytest_cache", ".hypothesis", ".ruff_cache", ".mypy_cache")
    doomed = [BUILD, *(ROOT / name for name in caches)]
    doomed += [*(ROOT / "pkg").rglob("*.egg-info")] if everything else []
    for path in doomed + ([VENV] if everything else []):
        shutil.rmtree(path, ignore_errors=True)


# ---------------------------------------------------------------------------------------- main


def interrupt(*_):
    raise KeyboardInterrupt


def main(command: str) -> int:
    for sign in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, interrupt)
    times: dict[str, float] = {}
    try:
        if command == "serve":
            serve()
        elif command in ("clean", "distclean"):
            with alone():
                clean(everything=command == "distclean")
        else:
            with alone():
                {
                    "setup": lambda _: setup(),
                    "book": make_book,
                    "pdf": make_pdf,
                    "test": make_test,
                    "bench": make_bench,
                    "binder": make_binder,
                    "coverage": make_coverage,
                    "renew": make_renew,
                    "links": links,
                }[command](times)
    except Failed as failure:
        say(f"\nmake {command}: FAILED in {failure}")
        return 1
    except KeyboardInterrupt:
        say(f"\nmake {command}: stopped. Nothing is broken; run it again to go on.")
        return 130
    finally:
        if times:
            say("")
        for name, seconds in times.items():
            say(f"{seconds:7.1f} s  {name}")
    if times:
        say(f"{sum(times.values()):7.1f} s  in all")
    if command == "book":
        say(f"\nopen {(SITE / 'index.html').as_uri()}\nor run `make serve`")
    if command == "pdf":
        say(f"\nopen {PDF.as_uri()}")
    if command == "test":
        say("\nmake test: all passed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
