"""Where executed chapters are kept, and what makes them worthless.

A chapter is executed by pytest (``book/conftest.py``) and its outputs go into a jupyter-cache,
from which the site is built.  jupyter-cache looks at a chapter's code and at nothing else, so
the cache carries a key: a digest of everything besides the chapter that its outputs depend on.
A cache with another key, or with a damaged entry, is emptied before anyone reads it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "_build" / ".jupyter_cache"  # as `execute.cache` in _config.yml
KEY = CACHE / "drot.key"


def key() -> str:
    """Digest of the package, the pins, the Python version and the data at hand."""
    digest = hashlib.sha256(f"{sys.version}\n".encode())
    plain = ("pkg/pyproject.toml", "pkg/constraints.txt", "book/conftest.py")
    shared = "pages", "distr_record", "graph_coupling_verdicts", "table3_verdicts"
    plain += tuple(f"benchmarks/{name}.py" for name in shared)
    files = [ROOT / name for name in plain]
    for folder in ("pkg/src", "benchmarks/results", "book/_static/widgets"):
        found = sorted(path for path in (ROOT / folder).rglob("*") if path.is_file())
        files += [p for p in found if "__pycache__" not in p.parts and ".egg-info" not in str(p)]
    for path in files:
        digest.update(f"{path.relative_to(ROOT).as_posix()}\n".encode())
        digest.update(path.read_bytes() if path.is_file() else b"absent")
    data = os.environ.get("DROT_DATA", "")
    here = sorted(Path(data).iterdir()) if data and Path(data).is_dir() else []
    digest.update(repr([bool(data), *((path.name, path.stat().st_size) for path in here)]).encode())
    return digest.hexdigest()


def sound() -> bool:
    """Whether the cache bears the current key and every entry can be read."""
    try:
        if KEY.read_text("utf8") != key():
            return False
        for record in open_cache().list_cache_records():
            json.loads((CACHE / "executed" / record.hashkey / "base.ipynb").read_text("utf8"))
    except Exception:  # whatever is wrong with a cache, the answer is a new one
        return False
    return True


def prepare(*, afresh: bool = False) -> None:
    """Leave a cache that may be trusted; ``afresh`` leaves an empty one."""
    if not afresh and sound():
        return
    KEY.unlink(missing_ok=True)  # first, so that an interrupted removal is noticed
    shutil.rmtree(CACHE, ignore_errors=True)
    open_cache().list_cache_records()  # creates the database before several workers want to
    KEY.write_text(key(), "utf8")


def open_cache():
    """Return the jupyter-cache."""
    from jupyter_cache import get_cache

    return get_cache(str(CACHE))


def holds(notebook) -> bool:
    """Whether the cache has outputs for exactly this code."""
    try:
        open_cache().match_cache_notebook(notebook)
    except KeyError:
        return False
    return True


def store(notebook, path: Path, seconds: float) -> None:
    """Keep an executed chapter."""
    from jupyter_cache.base import CacheBundleIn

    bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": round(seconds, 2)})
    with KEY.open() as one_worker_at_a_time:
        fcntl.flock(one_worker_at_a_time, fcntl.LOCK_EX)
        open_cache().cache_notebook_bundle(bundle, overwrite=True)
