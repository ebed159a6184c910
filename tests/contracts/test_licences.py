"""Licences of what is installed, as each declares them: the page ``book/licences.md``."""

import re
from importlib import metadata

from IPython.display import Markdown
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def licence(distribution):
    """What a distribution says of its licence."""
    about = distribution.metadata
    if about.get("License-Expression"):
        return about.get("License-Expression")
    classes = [c for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
    names = [c.split(" :: ")[-1] for c in classes if c != "License :: OSI Approved"]
    field = (about.get("License") or "UNKNOWN").strip().splitlines()[0]
    if names or field != "UNKNOWN":
        return "; ".join(names) or field
    files = [f for f in distribution.files or () if "LICEN" in f.name.upper()]
    return files[0].read_text().splitlines()[0] if files else "not stated"


def needed(*extras):
    """Names of what `drot[extras]` requires, directly or not, as far as it is installed."""
    found, queue = set(), [("drot", {"", *extras})]
    while queue:
        name, wanted = queue.pop()
        for line in metadata.requires(name) or ():
            need = Requirement(line)
            marked = need.marker is None or any(need.marker.evaluate({"extra": e}) for e in wanted)
            key = canonicalize_name(need.name)
            if marked and key in installed and key not in found:
                found.add(key)
                queue.append((need.name, {"", *need.extras}))
    return found


# setuptools, once imported, shows the copies that it carries as if they were installed
found = [d for d in metadata.distributions() if "_vendor" not in str(d.locate_file(""))]
installed = {canonicalize_name(d.name): d for d in found}
package, book = needed(), needed("book")
rows = []
for name in sorted(installed.keys() - {"drot"}):
    use = "package" if name in package else "book" if name in book else "tests, benchmarks"
    rows.append((name, installed[name].version, licence(installed[name]), use))

PERMISSIVE = "MIT|BSD|0BSD|ISC|Apache|PSF|Python Software|Public Domain|CC0|Zlib|BSL-1.0|Boost"
OF_THE_FILE = "MPL|Mozilla|LGPL"  # or of the library
APART = {"docutils": "GNU General Public License (GPL)"}  # one file, not installed
VENDOR = "(nvidia|cuda)-.*"  # torch's libraries for GPUs


def unusual(name, terms):
    """The parts of a licence that are neither permissive nor end at their own files."""
    known = rf"\b({PERMISSIVE}|{OF_THE_FILE})\b"
    parts = [part for part in re.split(" AND | OR |; ", terms) if not re.search(known, part)]
    return [part for part in parts if part != APART.get(name)]


def table(*uses):
    some = [" | ".join(row) for row in rows if row[3] in uses]
    return Markdown("\n".join(["Software | Version | Licence | For", ":--|:--|:--|:--", *some]))


def test_licences_end_at_their_own_files_or_are_permissive():
    ours = needed("book", "data", "test", "bench", "mutate")
    odd = {row[0]: unusual(row[0], row[2]) for row in rows if row[0] in ours}
    odd = {name: parts for name, parts in odd.items() if not re.fullmatch(VENDOR, name)}
    assert not any(odd.values()), odd
