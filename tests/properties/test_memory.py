"""Which arrays are kept whole, and how much memory there is to keep them in."""

from __future__ import annotations

import drot
import numpy as np
import pytest
import torch
from drot._core import memory
from drot.costs.array import Pairwise

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype, size", [(torch.float64, 8), (torch.float32, 4)])
def test_dense_while_seven_arrays_fit_in_half_the_memory(monkeypatch, dtype, size):
    X = torch.rand(50, 3, dtype=dtype)
    need = 2 * 7 * 50 * 50 * size
    monkeypatch.setattr(memory, "free_memory", lambda device: need)
    assert drot.sqeuclidean(X).block is None
    monkeypatch.setattr(memory, "free_memory", lambda device: need - 1)
    for make in (drot.sqeuclidean, drot.student_cost):
        assert make(X).block == 2**18 // 50
        assert make(X, block=None).block is None and make(X, block=7).block == 7
    assert drot.pairwise(lambda x, y: torch.cdist(x, y), X).block == 2**18 // 50
    assert drot.sqeuclidean(X, torch.rand(10, 3, dtype=dtype)).block is None  # a fifth of it
    with pytest.raises(ValueError, match="block='automatic' does not exist; choose from 'auto'"):
        drot.sqeuclidean(X, block="automatic")


def test_a_tile_has_sixteen_rows_at_least(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda device: 0)
    for shape, height in (((10**6, 10**6), 16), ((100, 2**14), 16), ((100, 2**13), 32)):
        assert memory.automatic_block(shape, torch.float32, CPU) == height


def test_free_memory_is_measured(monkeypatch, tmp_path):
    """Less than there is; a container may have less."""
    assert 0 < memory.free_memory(CPU) < memory.physical_memory(CPU)
    assert memory.free_memory(torch.device("meta")) is None
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert memory.free_memory(CPU) == 2_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_memory(CPU) > 2_000_000
    (tmp_path / "memory.max").unlink()  # not Linux, or an old one
    assert memory.free_memory(CPU) > 2_000_000


@pytest.mark.parametrize("kind", ["SNE", "TSNE", "LargeVis", "SNEkhorn", "TSNEkhorn"])
def test_estimators_work_in_tiles(monkeypatch, kind):
    """Where memory is short, the affinity stays in tiles and the embedding is as good."""
    X = drot.datasets.digits().X[::25]  # 72 images
    dense, tiled = (getattr(drot, kind)(perplexity=8, random_state=0) for _ in range(2))
    dense.fit(X)
    monkeypatch.setattr(memory, "free_memory", lambda device: 0)
    plan = tiled.fit(X).affinity_.plan.numpy()
    if kind in ("TSNE", "LargeVis"):  # one affinity by rows has the forces of its symmetrised
        plan = (plan + plan.T) / 2
    assert isinstance(dense.affinity_, np.ndarray) and np.abs(dense.affinity_ - plan).max() < 1e-10
    assert tiled.result_.converged  # at a local minimum, as the other
    assert tiled.result_.value == pytest.approx(dense.result_.value, rel=0.02)


@pytest.mark.parametrize("n", [1, 5, 600, 1100])
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
    X, met, rows = torch.randn(900, 3, dtype=torch.float64), [], Pairwise.rows

    def counted(self, index):
        found = rows(self, index)
        met.append(len(found) if self.shape[0] == 900 else 0)
        return found

    whole = drot.semi_relaxed_gw(drot.sqeuclidean(X), drot.sqeuclidean(X[:7]), n_starts=1)
    monkeypatch.setattr(Pairwise, "rows", counted)
    cost = drot.sqeuclidean(X, block=50)
    found = drot.semi_relaxed_gw(cost, drot.sqeuclidean(X[:7]), n_starts=1)
    assert max(met) == 50 and found.objective == pytest.approx(whole.objective, rel=1e-9)
