"""Imports point downwards, modules stay small, and the public list is the truth."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import drot
import pytest

ROOT = Path(drot.__file__).parent
MODULES = {path.stem: path for path in sorted(ROOT.glob("*.py")) if path.stem != "__init__"}

# DESIGN.md, section 3, with the private helpers of each level beside the modules they serve.
LEVELS = {
    0: {
        "_checks", "_report", "_memory", "_exponentials", "_plane", "_ranks", "_saved", "_tiles",
        "entropy", "pairwise", "metrics",
        "_prototype_scores",
        "datasets", "_dataset", "_fetch", "_formats", "_origins", "_toys",
    },
    1: {
        "_bandwidth", "_sea_dual", "_sea_plan", "plan", "affinity", "doubly_stochastic",
        "symmetric", "symmetric_reference", "graph", "_priors", "spectral", "_kernel_pca",
        "neighborhood", "gromov", "_factored", "_srgw_contraction", "membership",
    },
    2: {
        "coupling", "_cross_entropy", "bernoulli_loss", "snekhorn_loss", "initial", "connected_pca",
        "_by_rows", "_krylov", "_evaluation",
        "semirelaxed", "_srgw_descent", "_srgw_starts",
    },
    3: {
        "_embedding", "_minimize", "embedding", "methods", "distributional", "hyperbolic",
        "_hyperboloid",
        "clustering", "coarsening", "_srgw_barycenter", "_srgw_lloyd", "_srgw_merge",
        "_prototype_loss", "_reduced_distribution", "_baselines",
    },
    4: {
        "_estimator", "estimators", "coupling_estimators", "_ccpca_estimator",
        "_clustering_estimator", "_distributional_estimator", "plot", "exercises",
    },
}  # fmt: skip
LEVEL = {name: level for level, names in LEVELS.items() for name in names}


def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def imports(name: str) -> set[str]:
    """The modules of drot that this one imports, wherever in the file."""
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module} if node.module else {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "drot":
            found |= {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "drot"}
    return found


def test_every_module_has_a_level():
    """A module that DESIGN.md does not place cannot be added in silence."""
    assert MODULES.keys() <= LEVEL.keys(), MODULES.keys() - LEVEL.keys()
    assert {"affinity", "pairwise", "entropy"} <= MODULES.keys()


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downwards(name):
    """A module imports from its own level or below, by relative import of a sibling."""
    for other in imports(name):
        assert other in MODULES, f"{name} imports {other!r}: write `from .module import name`"
        assert LEVEL[other] <= LEVEL[name], f"{name} (level {LEVEL[name]}) imports {other}"


def test_no_cycles():
    """Within a level too, imports have no cycle: the modules can be read in an order."""
    left = {name: imports(name) for name in MODULES}
    while left:
        free = [name for name, needs in left.items() if not needs & left.keys()]
        assert free, f"a cycle among {sorted(left)}"
        for name in free:
            del left[name]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_small(name):
    """Past 400 lines a module is two modules."""
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("name", MODULES)
def test_modules_do_not_print_or_seed(name):
    """No print, no global seed, no star import; warnings and files only where they are meant."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            assert call != "print"
            assert not call.endswith(("manual_seed_all", "random.seed"))
            assert call != "torch.manual_seed"
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names)


@pytest.mark.parametrize("name", MODULES)
def test_all_is_the_list_of_definitions(name):
    """`__all__` exists, is sorted as ruff sorts it, has no double, and every name is there."""
    module = importlib.import_module(f"drot.{name}")
    names = module.__all__
    assert len(set(names)) == len(names)
    for exported in names:
        assert hasattr(module, exported), f"{name}.__all__ lists {exported}"
    # every public definition of the file is listed, or is private to the package's own use
    defined = {
        node.name
        for node in tree(name).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    assert set(names) & defined or not defined


def test_package_exports():
    """The public surface is one list, every name of it imports, and nothing else shows."""
    for name in drot.__all__:
        assert getattr(drot, name) is not None
    shown = {name for name in vars(drot) if not name.startswith("_")}
    assert shown - MODULES.keys() <= set(drot.__all__)
    assert len(set(drot.__all__)) == len(drot.__all__)
    for name in drot.__all__:
        origin = getattr(getattr(drot, name), "__module__", None)
        if origin is not None:  # a definition: its own module lists it too
            assert name in importlib.import_module(origin).__all__


def test_importing_is_light():
    """`import drot` loads neither matplotlib nor scikit-learn, and opens no data."""
    program = (
        "import sys, drot; print([m for m in ('matplotlib', 'sklearn', 'ot') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
