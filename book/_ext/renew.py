"""Write pkg/constraints.txt anew: the newest versions that fit together, as pip finds them.

    python book/_ext/renew.py        (or: make renew)

Nothing is installed. A version that refuses the oldest Python of the package is passed over,
whatever Python this is. What only torch brings stays out: torch pins it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "pkg" / "constraints.txt"
# Not pinned: the project, the tools that install it, and what torch pins itself.
FREE = re.compile(r"drot|pip|setuptools|wheel|triton|nvidia-.*|cuda-.*", re.I)

PROJECT = tomllib.loads((ROOT / "pkg" / "pyproject.toml").read_text("utf8"))["project"]
OLDEST = PROJECT["requires-python"].removeprefix(">=")  # 3.11 is 3.11.0


def resolved() -> dict:
    """What pip would install for the package with all its extras, in a new environment."""
    passed_over: list[str] = []
    while True:
        report = asked(passed_over)
        late = too_new(report)
        if not late:
            return report
        passed_over += late


def asked(passed_over: list[str]) -> dict:
    """pip's answer when these versions, as "name!=version", do not count."""
    extras = ",".join(PROJECT["optional-dependencies"])
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    command += ["--dry-run", "--ignore-installed", "--report", "-", f"./pkg[{extras}]"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf8") as without:
        without.write("\n".join(passed_over))
        without.flush()
        command += ["-c", without.name]
        answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(answer.stdout)


def too_new(report: dict) -> list[str]:
    """Versions that the oldest Python cannot have, as "name!=version"."""
    return [
        f"{m['name']}!={m['version']}"
        for m in (entry["metadata"] for entry in report["install"])
        if OLDEST not in SpecifierSet(m.get("requires_python") or "")
    ]


def constraints(report: dict, before: str) -> str:
    """The text of the file, below the comments that it had."""
    comments = [line for line in before.splitlines() if line.startswith("#")]
    found = [entry["metadata"] for entry in report["install"]]
    kept = [m for m in found if not FREE.fullmatch(m["name"].replace("_", "-"))]
    pins = [f"{m['name']}=={m['version'].partition('+')[0]}" for m in kept]  # torch's may say +cpu
    return "\n".join([*comments, *sorted(pins, key=str.lower)]) + "\n"


def main() -> None:
    before = CONSTRAINTS.read_text("utf8")
    after = constraints(resolved(), before)
    CONSTRAINTS.write_text(after, "utf8")
    old, new = set(before.splitlines()), set(after.splitlines())
    for line in sorted(old ^ new, key=str.lower):
        print("+" if line in new else "-", line)


if __name__ == "__main__":
    main()
