"""Which arrays are kept whole, and how much memory there is to keep them in."""

import itertools
import warnings
from types import SimpleNamespace

import drot
import drot.embeddings.plans
import numpy as np
import pytest
import torch
from drot._core import memory
from drot._core.checks import check_fits
from drot.costs.array import Pairwise
from drot.estimators import base

CPU = torch.device("cpu")


@pytest.fixture
def bytes_here(monkeypatch):
    """A machine of so many bytes."""
    return lambda many: monkeypatch.setattr(memory, "physical_memory", lambda device: many)


@pytest.mark.parametrize("dtype, size", [(torch.float64, 8), (torch.float32, 4)])
def test_dense_while_seven_arrays_fit_in_half_the_memory(bytes_here, dtype, size):
    X = torch.rand(50, 3, dtype=dtype)
    need = 2 * 7 * 50 * 50 * size
    bytes_here(need)
    assert drot.sqeuclidean(X).block is None
    bytes_here(need - 1)
    for make in (drot.sqeuclidean, drot.student_cost):
        assert make(X).block == 2**18 // 50
        assert make(X, block=None).block is None and make(X, block=7).block == 7
    assert drot.pairwise(lambda x, y: torch.cdist(x, y), X).block == 2**18 // 50
    assert drot.sqeuclidean(X, torch.rand(10, 3, dtype=dtype)).block is None  # a fifth of it


def test_a_tile_has_sixteen_rows_at_least(bytes_here):
    bytes_here(0)
    for shape, height in (((10**6, 10**6), 16), ((100, 2**14), 16), ((100, 2**13), 32)):
        assert memory.automatic_block(shape, torch.float32, CPU) == height


GIB = 2**30
SECOND = "memory.max", "memory.current", "inactive_file"  # of version 2 of control groups
FIRST = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
NONE = 9223372036854771712  # what version 1 calls no limit


@pytest.fixture
def groups(monkeypatch, tmp_path):
    """A tree of control groups: what /proc/self/cgroup says, and of each the limit and the use."""

    def make(own: str, names: tuple[str, str, str], **told: tuple) -> None:
        (tmp_path / "own").write_text(own)
        for group, (limit, used, *files) in told.items():
            place = tmp_path / "fs" / group.replace("__", "/").strip("_")
            place.mkdir(parents=True, exist_ok=True)
            numbers = f"{limit}\n", f"{used}\n", f"anon 7\n{names[2]} {sum(files)}\n"
            for name, text in zip((*names[:2], "memory.stat"), numbers, strict=True):
                (place / name).write_text(text)
        monkeypatch.setattr(memory, "_OWN", tmp_path / "own")
        monkeypatch.setattr(memory, "_GROUPS", tmp_path / "fs")
        memory._host_memory.cache_clear()

    host = SimpleNamespace(total=64 * GIB, available=40 * GIB)
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: host)
    yield make
    memory._host_memory.cache_clear()


V1 = "5:cpu:/x\n4:memory,hugetlb:{}\n1:name=systemd:/x\n0::/\n"
TREES = {  # what it says, its files, the groups, and the memory that there is and that is free
    "a container of version 2": ("0::/\n", SECOND, {"_": (2 * GIB, GIB)}, 2, 1),
    "files in memory are given back": ("0::/\n", SECOND, {"_": (2 * GIB, GIB, GIB // 2)}, 2, 1.5),
    "no limit": ("0::/a\n", SECOND, {"a": ("max", GIB)}, 64, 40),
    "a limit above the host": ("0::/a\n", SECOND, {"a": (99 * GIB, GIB)}, 64, 40),
    "the least of nested ones": (
        "0::/a/b/c\n", SECOND, {"a": (3 * GIB, 2 * GIB), "a__b": ("max", 0),
                                "a__b__c": (8 * GIB, GIB)}, 3, 1,
    ),
    "free in one, not around it": (
        "0::/a/b\n", SECOND, {"a": (8 * GIB, 8 * GIB), "a__b": (4 * GIB, 0)}, 4, 0,
    ),
    "a sibling": ("0::/a/b\n", SECOND, {"a__other": (GIB, 0)}, 64, 40),
    "version 1": (
        V1.format("/a/b"), FIRST, {"memory": (NONE, GIB), "memory__a": (3 * GIB, GIB),
                                   "memory__a__b": (NONE, GIB)}, 3, 2,
    ),
    "version 1, the path on the host": (
        V1.format("/docker/0f"), FIRST, {"memory": (2 * GIB, 3 * GIB // 2)}, 2, 0.5,
    ),
    "version 1, files": (V1.format("/"), FIRST, {"memory": (2 * GIB, 2 * GIB, GIB)}, 2, 1),
    "outside of the root": ("0::/../../x\n", SECOND, {"_": (2 * GIB, GIB)}, 2, 1),
    "a group that is gone": ("0::/gone\n", SECOND, {}, 64, 40),
}  # fmt: skip


@pytest.mark.parametrize("tree", TREES)
def test_a_container_has_less(groups, tree, tmp_path):
    own, names, told, has, free = TREES[tree]
    groups(own, names, **told)
    assert memory.physical_memory(CPU) == has * GIB
    assert memory.free_memory(CPU) == free * GIB
    (tmp_path / "own").unlink()  # macOS and Windows have no groups
    memory._host_memory.cache_clear()
    assert memory.physical_memory(CPU) == 64 * GIB


def test_a_container_is_refused_what_would_end_it(groups):
    """3 GiB in a container of 2 are refused by a sentence, 0.7 GiB too while it is full; its
    arrays go into tiles at its own size."""
    for used, n, says in (
        (GIB, 20_000, r"takes 3\.0 GiB.* 2\.0 GiB .* 1\.0 GiB are free.*block="),
        (3 * GIB // 2, 10_000, r"takes 0\.7 GiB.* 0\.5 GiB are free"),
    ):
        groups("0::/pod/box\n", SECOND, pod=(4 * GIB, 0), pod__box=(2 * GIB, used))
        with pytest.raises(MemoryError, match=says):
            check_fits((n, n), torch.float64, CPU)
        check_fits((n // 2, n // 2), torch.float64, CPU)
    assert memory.automatic_block((4300, 4300), torch.float64, CPU) is None
    assert memory.automatic_block((4400, 4400), torch.float64, CPU) == 2**18 // 4400


@pytest.mark.parametrize("seconds", [1e-4, 10])
def test_a_long_fit_is_announced(bytes_here, monkeypatch, seconds):
    """Once, where tiles begin, if a hundred passes over them take more than a minute."""
    X, clock = np.random.default_rng(0).normal(size=(40, 3)), itertools.count(0, seconds)
    bytes_here(0)
    monkeypatch.setattr(base, "perf_counter", lambda: next(clock))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        drot.TSNE(perplexity=8, random_state=0).fit(X)
    said = [str(one.message) for one in seen if "TSNE" in str(one.message)]
    assert len(said) == (seconds > 1)
    for words in said:  # a tile has all rows
        assert words.startswith("TSNE: 40 x 40 distances do not fit into memory and are computed")
        assert words.endswith("17 minutes in all or more; fit some of the rows to be faster")


@pytest.mark.parametrize("n", [1, 5, 1100])
def test_a_dense_array_is_made_of_tiles(n):
    """Of as many rows as a working tile has; where it is symmetric, each pair is averaged."""
    M, asked = torch.rand(n, n, dtype=torch.float64), []
    before = M.clone()

    def rows_of(rows: slice) -> torch.Tensor:
        asked.append(rows)
        return M[rows]  # a view, in which nothing may be written

    assert torch.equal(Pairwise(rows_of, (n, n), M, symmetric=True).dense(), (M + M.T) / 2)
    height = 2**18 // n
    assert asked == [slice(k, min(k + height, n)) for k in range(0, n, height)]
    assert torch.equal(Pairwise(rows_of, (n, n), M).dense(), M)  # not known to be symmetric
    assert torch.equal(M, before)


def test_moves_meet_tiles_alone(monkeypatch):
    """Moves of many points look at no more rows at a time than a tile has."""
    X, met, rows = torch.randn(400, 3, dtype=torch.float64), [], Pairwise.rows

    def counted(self, index):
        found = rows(self, index)
        met.append(len(found) if self.shape[0] == 400 else 0)
        return found

    few = drot.sqeuclidean(X[:7])
    with monkeypatch.context() as patch:
        patch.setattr(Pairwise, "rows", counted)
        found = drot.semi_relaxed_gw(drot.sqeuclidean(X, block=50), few, n_starts=1)
    value = drot.gw_objective(drot.sqeuclidean(X), few, found.plan)
    assert max(met) == 50 and found.objective == pytest.approx(value, rel=1e-9)
