"""Properties of pairwise costs: exact where it matters, the same in tiles, free of origin."""

import copy
import math
import pickle

import drot
import numpy as np
import oracles
import pytest
import torch
from clouds import clouds, quick
from drot._core.ranks import Processes
from drot.costs.array import as_pairwise
from hypothesis import given
from hypothesis import strategies as st

BLOCKS = (1, 3, 7, None)


@quick
@given(clouds(), st.sampled_from([0.0, 1.0, 1e3, 1e8, -1e12]), st.integers(0, 99))
def test_sqeuclidean_is_exact(X, offset, seed):
    """Distances agree to 1e-11, relatively, with rational arithmetic, at any origin and scale."""
    Y, block = np.random.default_rng(seed).normal(size=(5, X.shape[1])), BLOCKS[seed % 4]
    x = (X + 1e3 * (offset > 0)).astype(np.float32)  # to 2e-5
    for A, B, rtol in (
        (X + offset, None, 3e-11),
        (X + offset, Y + offset, 3e-11),
        (X * (1e145, 1e-130)[seed % 2], None, 3e-11),
        (x, None, 2e-5),
    ):
        cost = drot.sqeuclidean(A, B, block=block if B is not None else None)
        C, exact = cost.dense().numpy(), oracles.exact_sqeuclidean(A, A if B is None else B)
        assert C.dtype == A.dtype
        np.testing.assert_allclose(C, exact, rtol=rtol, atol=0)
        assert (C[exact == 0] == 0).all() and (C >= 0).all()
        np.testing.assert_allclose(drot.student_cost(A, B).dense(), np.log1p(exact), rtol=rtol)


@pytest.mark.parametrize(
    ("dtype", "least"), [(torch.float64, 2.0**-485), (torch.float32, 2.0**-51)]
)
def test_sqeuclidean_refuses_to_underflow(dtype, least):
    """A cloud whose squares lose digits is refused as a whole; copies and close pairs are not."""
    X = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.3, 0.1]], dtype=dtype)
    for fine in (X * least, X * 0, X * 0 + least / 8):
        assert torch.isfinite(drot.sqeuclidean(fine).dense()).all()
    close = torch.cat([X, X[:1] + least / 8, X[:1]])  # one pair coincides, one all but
    assert drot.sqeuclidean(close).dense()[0, 3:].max() < torch.finfo(dtype).eps ** 4
    drot.sqeuclidean(X * least / 8, X)  # far from the others
    drot.student_cost(X * least / 8)  # whose kernel is 1 there
    for Y in (None, X * least / 8):
        with pytest.raises(ValueError, match=r"^squared distances underflow torch.f.*; give X"):
            drot.sqeuclidean(X * least / 8, Y)


@pytest.mark.parametrize("block", BLOCKS)
def test_pairwise_evaluates_the_callable(block):
    """Any function of two points, in the order (x, y), on tiles of any height."""
    X, Y = torch.randn(8, 2).double(), torch.randn(5, 2).double()
    heights = []

    def lopsided(x, y):  # not symmetric: 2 |x|_1 - |y|_1
        heights.append(len(x))
        return 2 * x.abs().sum(1)[:, None] - y.abs().sum(1)

    cost = drot.pairwise(lopsided, X, Y, block=block)
    for rows, tile in (*cost.tiles(), (slice(None), cost.dense())):
        torch.testing.assert_close(tile, lopsided(X[rows], Y), rtol=1e-14, atol=1e-14)
    assert heights[0] == (block or 8)
    assert drot.pairwise(lopsided, X, block=block).shape == (8, 8)


@pytest.mark.parametrize("given_type", ["float32", "float64", "int64", "uint8", "bool"])
def test_dtypes(given_type):
    """float32 and float64 are kept; integers, booleans and lists become float64."""
    X = torch.tensor([[0, 0], [1, 0], [0, 1], [1, 1]]).to(getattr(torch, given_type))
    kept, C = X.dtype if X.is_floating_point() else torch.float64, drot.sqeuclidean(X)
    near = drot.nearest(C, n_neighbors=2)  # one of two at the same distance
    assert near.dense().isfinite().sum(dim=1).tolist() == [2] * 4
    for cost in (C, drot.student_cost(X), near):
        assert cost.dtype == kept == cost.dense().dtype
    assert drot.row_entropy(X / 4 if kept == X.dtype else X).dtype == kept
    assert float(drot.row_entropy([0.5, 0.5])) == pytest.approx(math.log(2) + 1, rel=1e-15)


POINTS = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
MADE = {
    "distances": lambda block: drot.sqeuclidean(POINTS, block=block),
    "rectangular": lambda block: drot.student_cost(POINTS, POINTS[:4] + 1, block=block),
    "callable": lambda block: drot.pairwise(torch.cdist, POINTS, block=block),
    "nearest": lambda block: drot.nearest(drot.sqeuclidean(POINTS, block=block), n_neighbors=4),
    "matrix": lambda block: as_pairwise(POINTS @ POINTS.T),
    "factored": lambda block: drot.factored_sqeuclidean(POINTS, block=block),
}


@pytest.mark.parametrize("block", [None, 4])
@pytest.mark.parametrize("kind", MADE)
def test_costs_are_copied_and_multiply(kind, block):
    """By pickle and by deepcopy to the bit; A V for vectors and thin matrices, and A_ii."""
    cost = MADE[kind](block)
    for _ in range(2):  # before its rows are kept and after
        whole = cost.dense()
        for back in (pickle.loads(pickle.dumps(cost)), copy.deepcopy(cost)):
            assert torch.equal(back.dense(), whole) and back.ranks is cost.ranks
            assert (back.block, back.symmetric) == (cost.block, cost.symmetric)
    some = [3, 0, 8]
    torch.testing.assert_close(cost.rows(torch.tensor(some)), whole[some], rtol=1e-11, atol=1e-12)
    assert max(len(tile) for _, tile in cost.tiles(2)) == 2
    if kind != "nearest":  # infinite entries
        for V in (torch.randn(whole.shape[1], 2).double(), torch.randn(whole.shape[1]).double()):
            torch.testing.assert_close(cost @ V, whole @ V)
    if cost.shape[0] == cost.shape[1]:
        torch.testing.assert_close(cost.diagonal(), whole.diagonal())
        affinity = drot.entropic_affinity(cost, perplexity=2.0, diagonal="drop")
        assert torch.equal(pickle.loads(pickle.dumps(affinity)).plan, affinity.plan)


@pytest.mark.parametrize("block", [None, 7])
@pytest.mark.parametrize("step", [1.0, 2.0**-20, 2.0**30])
@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 1000), (torch.float64, 23_000_000)])
def test_distances_are_exact_up_to_the_last_digit(dtype, size, step, block):
    """Multiples of a power of two: just below 2^21 and 2^50 squares of it, between points far out,
    near one place, and the same."""
    X = np.random.default_rng(0).integers(0, size, size=(50, 2))
    X[10:] //= 100
    X[0], X[1], X[3] = 0, size - 1, X[2]
    for Y in (X, X[10:], X[:3]):
        for A, B in ((X, Y), (Y, X)):
            clouds = (torch.from_numpy(Z).to(dtype) * step for Z in (A, B))
            C = drot.sqeuclidean(*clouds, block=block).dense() / step**2
            exact = ((A[:, None] - B) ** 2).sum(axis=-1)  # in whole numbers
            np.testing.assert_array_equal(C.numpy().astype(np.int64), exact)


@pytest.mark.parametrize("block", [None, 7, 300])
def test_map_meets_each_row_once_and_gives_no_view(block):
    """In working tiles, of one as of several: the 600 points are more than a tile has."""
    for n in (20, 600):
        X = np.random.default_rng(0).normal(size=(n, 2))
        cost, sizes = drot.sqeuclidean(X, block=block), []

        def sums(rows, tile, cost=cost, sizes=sizes):
            sizes.append(len(tile))
            assert torch.equal(tile, cost.rows(rows))
            return tile.sum(dim=1)

        np.testing.assert_allclose(cost.map(sums), cost.dense().sum(dim=1), rtol=1e-13)
        most = min(block or n, 2**18 // n)
        assert sum(sizes) == n and max(sizes) <= most and len(sizes) == -(-n // most)
        diagonal = cost.diagonal()
        assert diagonal.untyped_storage().nbytes() == 8 * n
        diagonal.fill_(1.0)
        assert (cost.diagonal() == 0).all()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("index", [slice(0, 7, 2), slice(-3, None), slice(1, None, 3)])
def test_rows_of_any_slice(block, index):
    """A kept array and tiles give the rows that indexing names, and so does an affinity."""
    cost = drot.sqeuclidean(np.random.default_rng(0).normal(size=(8, 2)), block=block)
    assert torch.equal(cost.rows(index), cost.dense()[index])
    affinity = drot.entropic_affinity(cost, perplexity=3)
    torch.testing.assert_close(affinity.rows(index), affinity.plan[index])


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(
    "index", [slice(0, 2), slice(2, 6), slice(3, 7), slice(5, 8, 2), slice(6, 3)]
)
def test_rows_of_another_process(block, index):
    """Where a process keeps its own rows, others are evaluated, and each is the row asked for."""
    cost = drot.sqeuclidean(np.random.default_rng(0).normal(size=(8, 2)), block=block)
    last = Processes()
    last.rank, last.size = 1, 2
    assert cost.shared(last).own == slice(4, 8)
    torch.testing.assert_close(cost.shared(last).rows(index), cost.dense()[index])
