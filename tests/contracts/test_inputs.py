"""Bad input gets one clear sentence: what is wrong, where, and what to do."""

from __future__ import annotations

import functools
import math
import warnings

import drot
import numpy as np
import pytest
import torch
from drot.costs.array import as_pairwise, check_symmetric
from drot.embeddings.losses import KernelLoss
from drot.plot import draw_graph


def points(n: int = 8, p: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, p))


def matrix(n: int = 8) -> np.ndarray:
    X = points(n)
    return ((X[:, None] - X[None]) ** 2).sum(axis=-1)


def spoiled(entry: float) -> np.ndarray:
    X = points()
    X[5, 2] = entry
    return X


def spoiled_cost(entry: float) -> np.ndarray:
    C = matrix()
    C[3, 6] = entry
    return C


def tied() -> np.ndarray:
    """Row 4 has three entries tied for its cheapest."""
    C = matrix()
    C[4, [0, 4, 7]] = 0.0
    return C


SOLVERS = {
    "entropic": lambda cost: drot.entropic_affinity(cost, 3.0),
    "gaussian": lambda cost: drot.gaussian_affinity(cost, bandwidth=1.0),
    "gaussian-perplexity": lambda cost: drot.gaussian_affinity(cost, perplexity=3.0),
    "self-tuning": lambda cost: drot.self_tuning_affinity(cost, n_neighbors=2),
    "sinkhorn": lambda cost: drot.doubly_stochastic_affinity(cost, bandwidth=1.0),
    "sinkhorn-perplexity": lambda cost: drot.doubly_stochastic_affinity(cost, perplexity=3.0),
    "symmetric": lambda cost: drot.symmetric_entropic_affinity(cost, 3.0),
    "symmetric-ascent": lambda cost: drot.symmetric_dual_ascent(cost, 3.0),
    "symmetric-projections": lambda cost: drot.symmetric_alternating_projections(
        cost, 3.0, bandwidth=1.0
    ),
}
# The three that solve for one perplexity per row and a symmetric plan.
SYMMETRIC = {
    "newton": drot.symmetric_entropic_affinity,
    "ascent": drot.symmetric_dual_ascent,
    "projections": functools.partial(drot.symmetric_alternating_projections, bandwidth=1.0),
}
COSTS = {
    "sqeuclidean": drot.sqeuclidean,
    "student_cost": drot.student_cost,
    "pairwise": lambda X: drot.pairwise(torch.cdist, X),
}


# ----------------------------------------------------------------------------------- clouds
@pytest.mark.parametrize("make", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize(
    ("X", "error", "says"),
    [
        (spoiled(math.nan), ValueError, ["X", "NaN", "row 5, column 2", "remove or impute"]),
        (spoiled(math.inf), ValueError, ["X", "inf", "row 5, column 2"]),
        (spoiled(-math.inf), ValueError, ["X", "-inf", "row 5"]),
        (points(1), ValueError, ["X", "at least 2 points", "(1, 3)"]),
        (np.zeros((4, 0)), ValueError, ["X", "1 coordinate", "(4, 0)"]),
        (np.zeros(5), ValueError, ["X", "(n, p)", "(5,)", "reshape"]),
        (np.zeros((2, 3, 4)), ValueError, ["X", "(n, p)", "(2, 3, 4)"]),
        (points().astype(np.float16), TypeError, ["X", "float16", "float32 or float64"]),
        (torch.zeros(3, 2, dtype=torch.bfloat16), TypeError, ["X", "bfloat16", "float64"]),
        (points() * 1j, TypeError, ["X", "complex", "real"]),
        (torch.zeros(3, 2, dtype=torch.complex64), TypeError, ["X", "complex"]),
        ([[1.0, 2.0], [3.0]], TypeError, ["X", "array of numbers"]),
        ([["a", "b"], ["c", "d"]], TypeError, ["X", "array of numbers"]),
        (None, TypeError, ["X", "array of numbers"]),
    ],
    ids=lambda v: None if isinstance(v, list | type) else "",
)
def test_clouds(make, X, error, says):
    """A cloud is a finite real (n, p) array of at least two points."""
    with pytest.raises(error) as caught:
        make(X)
    for words in says:
        assert words in str(caught.value)


def test_two_clouds():
    """Two clouds must have the same number of coordinates; Y is named when it is the bad one."""
    with pytest.raises(ValueError, match=r"X has 3 coordinates and Y has 2"):
        drot.sqeuclidean(points(5, 3), points(5, 2))
    with pytest.raises(ValueError, match=r"Y has a non-finite entry .* row 5"):
        drot.sqeuclidean(points(), spoiled(math.nan))


@pytest.mark.parametrize("block", [0, -1, 2.5, "8", True])
def test_block(block):
    """`block` is a positive number of rows, None, or "auto"."""
    says = r"block .* must be a whole number of at least 1; got"
    if isinstance(block, str):
        says = r"block='8' does not exist; choose from 'auto'"
    for make in COSTS.values():
        with pytest.raises(ValueError, match=says):
            drot.sqeuclidean(points(), block=block)
        assert make(points()).block is None


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x, y: torch.cdist(x, y)[:, 1:], r"must return a \(8, 8\) tensor; got \(8, 7\)"),
        (lambda x, y: torch.cdist(x, y).T[:1], r"got \(1, 8\)"),
        (lambda x, y: torch.cdist(x, y).numpy(), r"tensor; got ndarray"),
        (lambda x, y: torch.cdist(x, y).float(), r"keep torch.float64 on cpu; got torch.float32"),
        (lambda x, y: torch.cdist(x, y) / 0 - 1, r"non-finite entry .*row 0, column 0"),
    ],
)
def test_callables(function, says):
    """What a callable returns is checked, tile by tile, and the sentence says what came back."""
    for use in (lambda cost: cost.dense(), lambda cost: drot.entropic_affinity(cost, 3.0)):
        with pytest.raises(ValueError, match=says):
            use(drot.pairwise(function, points()))


# ------------------------------------------------------------------------------------ costs
@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize(
    ("cost", "error", "says"),
    [
        (points(), ValueError, ["cost", "square", "(8, 3)", "drot.sqeuclidean(X)"]),
        (np.zeros(4), ValueError, ["cost", "matrix", "(4,)"]),
        (np.zeros((2, 2, 2)), ValueError, ["cost", "matrix", "(2, 2, 2)"]),
        (np.zeros((1, 1)), ValueError, ["cost", "at least 2 points"]),
        (spoiled_cost(math.nan), ValueError, ["cost", "NaN", "row 3, column 6"]),
        (spoiled_cost(math.inf), ValueError, ["cost", "inf", "row 3, column 6"]),
        (matrix().astype(np.float16), TypeError, ["cost", "float16"]),
        (matrix() + 0j, TypeError, ["cost", "complex"]),
        ("cost", TypeError, ["cost", "array of numbers"]),
    ],
    ids=lambda v: None if isinstance(v, list | type) else "",
)
def test_costs(solve, cost, error, says):
    """A cost is a finite real square matrix or a Pairwise; a cloud is never taken for one."""
    with pytest.raises(error) as caught:
        solve(cost)
    for words in says:
        assert words in str(caught.value)


@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_rectangular_pairwise(solve):
    """Costs between two different clouds are not an affinity of one."""
    with pytest.raises(ValueError, match=r"square .*\(8, 5\)"):
        solve(drot.sqeuclidean(points(8), points(5)))


@pytest.mark.parametrize("block", [None, 3])
def test_doubly_stochastic_needs_symmetry(block):
    """A cost that differs from its transpose is refused; the two entries are named."""
    C = matrix()
    C[2, 6] += 0.5
    for options in ({"bandwidth": 1.0}, {"perplexity": 3.0}):
        with pytest.raises(
            ValueError, match=r"must be symmetric; entries \((2, 6|6, 2)\)"
        ) as caught:
            drot.doubly_stochastic_affinity(C, **options)
        assert f"{C[2, 6]:g}" in str(caught.value) and f"{C[6, 2]:g}" in str(caught.value)
        lopsided = drot.pairwise(lambda x, y: x[:, :1] - y[:, 0], points(), block=block)
        with pytest.raises(ValueError, match="must be symmetric"):
            drot.doubly_stochastic_affinity(lopsided, **options)
        with pytest.raises(ValueError, match="infinite entries"):
            drot.doubly_stochastic_affinity(drot.nearest(matrix(), 3), **options)
    rounded = matrix() * (1 + 1e-12 * np.random.default_rng(0).normal(size=(8, 8)))
    assert drot.doubly_stochastic_affinity(rounded, bandwidth=1.0).converged


FEW = [[0, 1, 5, 6], [3, 0, 5, 6], [5, 5, 0, 1e9], [6, 6, 1e9, 0]]
MANY = [[0, 1, 1e9, 1e9], [3, 0, 1e9, 1e9], [1e9, 1e9, 0, 1], [1e9, 1e9, 1, 0]]


@pytest.mark.parametrize("C", [FEW, MANY], ids=["one pair", "every row"])
def test_forbidden_pairs_hide_no_asymmetry(C):
    """A cost of 1e9 says nothing about the rounding of other costs."""
    for solve in (
        lambda: drot.doubly_stochastic_affinity(np.array(C), bandwidth=1.0),
        lambda: drot.symmetric_entropic_affinity(np.array(C), 2.0),
        lambda: drot.symmetric_alternating_projections(np.array(C), 2.0, bandwidth=1.0),
        lambda: drot.symmetric_dual_ascent(np.array(C), 2.0),
    ):
        with pytest.raises(ValueError, match=r"entries \(0, 1\) and \(1, 0\) are 1 and 3"):
            solve()


def test_large_weights_hide_no_asymmetry():
    P = np.zeros((4, 4))
    P[0, 1], P[2, 3], P[3, 2] = 0.5, 1e6, 1e6
    with pytest.raises(ValueError, match=r"entries \(0, 1\) and \(1, 0\) are 0.5 and 0"):
        drot.SNELoss(P)
    W = np.array([[0, 1e9, 1], [1e9, 0, 0.5], [1.5, 0.9, 0]])
    with pytest.raises(ValueError, match=r"entries \(0, 2\) and \(2, 0\) are 1 and 1.5"):
        drot.spectral.laplacian_eigenmaps(W, 1)


@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_one_odd_row_of_many_tiles_is_noticed(size):
    """Of a cost met in tiles every row counts, though not every pair is compared."""
    n = 400
    Y = np.c_[np.arange(n), points(n)]

    def odd(x, y, more=size):
        return (x[:, None, 1:] - y[None, :, 1:]).square().sum(-1) + more * (x[:, :1] == 1)

    says = r"entries \((1, \d+|\d+, 1)\) and"
    for solve in (
        lambda cost: drot.doubly_stochastic_affinity(cost, bandwidth=1.0),
        lambda cost: drot.symmetric_entropic_affinity(cost, 30.0),
    ):
        with pytest.raises(ValueError, match=says):
            solve(drot.pairwise(odd, Y, block=100))
        plan = solve(drot.pairwise(lambda x, y: odd(x, y, 0.0), Y, block=100)).plan
        assert torch.equal(plan, plan.T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [0.0, 1e2])
def test_rounding_is_no_asymmetry(dtype, offset):
    """Gram matrices and distances by matrix products, each triangle rounded in its own way."""
    X = torch.tensor(points(90)).to(dtype) + offset
    noise = torch.randn(90, 90, dtype=dtype, generator=torch.Generator().manual_seed(0))
    squares = X.square().sum(dim=1)
    digits = 4 * torch.finfo(dtype).eps * noise
    gram = (X @ X.T) + digits * (squares[:, None] * squares).sqrt()
    distances = torch.cdist(X, X, compute_mode="donot_use_mm_for_euclid_dist") ** 2
    for C in (-gram, distances * (1 + digits)):
        assert not torch.equal(C, C.T)
        check_symmetric(as_pairwise(C))
        drot.spectral.kernel_pca(gram, 1)
        with pytest.raises(ValueError, match="must be symmetric"):
            C[3, 4] += 1e-3 * C[3, 4].abs()
            check_symmetric(as_pairwise(C))


@pytest.mark.parametrize("block", [None, 3])
@pytest.mark.parametrize("solve", SYMMETRIC.values(), ids=SYMMETRIC)
def test_symmetric_needs_symmetry(solve, block):
    """A symmetric plan is sought for a symmetric and finite cost only."""
    C = matrix()
    C[2, 6] += 0.5
    with pytest.raises(ValueError, match=r"must be symmetric; entries \((2, 6|6, 2)\)"):
        solve(C, 3.0)
    lopsided = drot.pairwise(lambda x, y: x[:, :1] - y[:, 0], points(), block=block)
    with pytest.raises(ValueError, match="must be symmetric"):
        solve(lopsided, 3.0)
    with pytest.raises(ValueError, match="infinite entries"):
        solve(drot.nearest(matrix(), 3), 2.0)


def test_self_tuning_needs_costs_above_zero():
    """Negative costs have no square root, and copies no distance: the row is named."""
    with pytest.raises(ValueError, match=r"row 0 .* not negative"):
        drot.self_tuning_affinity(-matrix(), n_neighbors=2)
    X = points()
    X[6] = X[3]
    with pytest.raises(ValueError, match=r"row 3 has 1 or more copies.*raise n_neighbors"):
        drot.self_tuning_affinity(drot.sqeuclidean(X), n_neighbors=1)
    assert drot.self_tuning_affinity(drot.sqeuclidean(X), n_neighbors=2).converged


# ------------------------------------------------------------------------------- perplexity
@pytest.mark.parametrize(
    ("cost", "xi", "diagonal", "row", "bounds"),
    [
        (matrix(), 1.0, "keep", 0, (1, 8)),
        (matrix(), 8.0, "keep", 0, (1, 8)),
        (matrix(), 30.0, "keep", 0, (1, 8)),
        (matrix(), -2.0, "keep", 0, (1, 8)),
        (matrix(), math.nan, "keep", 0, (1, 8)),
        (matrix(), math.inf, "keep", 0, (1, 8)),
        (matrix(), 7.0, "drop", 0, (1, 7)),
        (tied(), 2.5, "keep", 4, (3, 8)),
        (tied(), 3.0, "keep", 4, (3, 8)),
        (matrix(), [3.0] * 5 + [9.0] + [3.0] * 2, "keep", 5, (1, 8)),
        (np.zeros((5, 5)), 2.0, "keep", 0, (5, 5)),
    ],
)
def test_perplexity_out_of_reach(cost, xi, diagonal, row, bounds):
    """The sentence names the row, its ties and its entries."""
    with pytest.raises(ValueError, match=f"out of reach for row {row}:") as caught:
        drot.entropic_affinity(cost, xi, diagonal=diagonal)
    low, high = bounds
    assert f"strictly between {low} (entries tied for the cheapest)" in str(caught.value)
    assert f"and {high} (entries)" in str(caught.value)
    bad = xi if isinstance(xi, float) else 9.0
    assert f"perplexity={bad:g} " in str(caught.value)


@pytest.mark.parametrize("solve", SYMMETRIC.values(), ids=SYMMETRIC)
@pytest.mark.parametrize("xi", [0.5, 1.0, 8.0, 30.0, math.nan])
def test_symmetric_perplexity_out_of_reach(solve, xi):
    """Between 1 and n, as for rows on their own; of one row when there is one for each."""
    with pytest.raises(ValueError, match=r"for row 0: .* between 1 \(.*\) and 8 \(entries\)"):
        solve(matrix(), xi, max_iter=20)
    with pytest.raises(ValueError, match=r"for row 5: .* between 1 \(.*\) and 8 \(entries\)"):
        solve(matrix(), [3.0] * 5 + [xi] + [3.0] * 2)
    with pytest.raises(ValueError, match=r"one number or one per row \(8\)"):
        solve(matrix(), [3.0] * 7)
    with pytest.raises(TypeError, match="perplexity"):
        solve(matrix(), "30")


def test_perplexity_row_is_counted_across_tiles():
    """The row named is that of the whole cost, also when it lies in a later tile."""
    X = points(20)
    X[13] = X[17]
    with pytest.raises(ValueError, match=r"out of reach for row 13: .* between 2 "):
        drot.entropic_affinity(drot.sqeuclidean(X, block=3), 1.5)


def test_perplexity_of_restricted_rows():
    """With k neighbours a row has k entries: the upper bound says so."""
    with pytest.raises(ValueError, match=r"and 4 \(entries\)"):
        drot.entropic_affinity(matrix(), 5.0, n_neighbors=4)


@pytest.mark.parametrize("xi", [[3.0] * 7, [3.0] * 9, np.full((8, 1), 3.0), [3.0], []])
def test_perplexity_of_wrong_length(xi):
    """One number, or one per row: the sentence says how many rows there are."""
    with pytest.raises(ValueError, match=r"one number or one per row \(8\)"):
        drot.entropic_affinity(matrix(), xi)


@pytest.mark.parametrize("xi", [None, "30", 3j])
def test_perplexity_is_a_number(xi):
    """What is not a real number is a TypeError that names perplexity."""
    with pytest.raises(TypeError, match="perplexity"):
        drot.entropic_affinity(matrix(), xi)


@pytest.mark.parametrize("solve", [drot.gaussian_affinity, drot.doubly_stochastic_affinity])
@pytest.mark.parametrize("xi", [0.5, 1.0, 8.0, 9.0])
def test_average_perplexity_out_of_reach(solve, xi):
    """An average perplexity has bounds of its own."""
    with pytest.raises(ValueError, match=r"average perplexity of .* between 1 .* and 8 "):
        solve(matrix(), perplexity=xi)


def test_average_perplexity_counts_ties():
    """The lower bound is the geometric mean of the ties: 3 in one row of eight, 1 elsewhere."""
    low = 3 ** (1 / 8)
    with pytest.raises(ValueError, match=f"strictly between {low:g} .* and 8 "):
        drot.gaussian_affinity(tied(), perplexity=low - 1e-3)
    affinity = drot.gaussian_affinity(tied(), perplexity=low + 1e-3)
    assert float(affinity.perplexity.log().mean()) == pytest.approx(np.log(low + 1e-3), abs=2e-9)


# ---------------------------------------------------------------------------------- options
@pytest.mark.parametrize("solve", [drot.gaussian_affinity, drot.doubly_stochastic_affinity])
class TestBandwidthOrPerplexity:
    """The two affinities of one bandwidth."""

    def test_exactly_one(self, solve):
        """Neither, or both, of bandwidth and perplexity is refused."""
        for options in ({}, {"bandwidth": 1.0, "perplexity": 3.0}):
            with pytest.raises(ValueError, match="exactly one of bandwidth and perplexity"):
                solve(matrix(), **options)

    @pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
    @pytest.mark.parametrize("name", ["bandwidth", "perplexity"])
    def test_positive(self, solve, name, value):
        """Both are positive and finite numbers."""
        with pytest.raises(ValueError, match=f"{name} must be positive and finite"):
            solve(matrix(), **{name: value})

    @pytest.mark.parametrize("value", ["1", [1.0, 2.0], np.ones(8)])
    @pytest.mark.parametrize("name", ["bandwidth", "perplexity"])
    def test_one_number(self, solve, name, value):
        """One number each, not one per row."""
        with pytest.raises(TypeError, match=f"{name} must be one number"):
            solve(matrix(), **{name: value})

    def test_scalars_of_any_library(self, solve):
        """NumPy and torch scalars are numbers."""
        plain = solve(matrix(), bandwidth=1.5).plan
        for value in (np.float64(1.5), np.float32(1.5), torch.tensor(1.5), np.array(1.5)):
            assert torch.equal(solve(matrix(), bandwidth=value).plan, plain)


@pytest.mark.parametrize(
    "solve",
    [
        lambda **o: drot.entropic_affinity(matrix(), 3.0, **o),
        lambda **o: drot.gaussian_affinity(matrix(), perplexity=3.0, **o),
        lambda **o: drot.doubly_stochastic_affinity(matrix(), perplexity=3.0, **o),
        lambda **o: drot.symmetric_entropic_affinity(matrix(), 3.0, **o),
    ],
    ids=["entropic", "gaussian", "sinkhorn", "symmetric"],
)
class TestSolverOptions:
    """What every iterative solver takes."""

    @pytest.mark.parametrize("tol", [0.0, -1e-3, math.nan])
    def test_tol(self, solve, tol):
        """A tolerance is positive."""
        with pytest.raises(ValueError, match="tol must be positive"):
            solve(tol=tol)

    @pytest.mark.parametrize("max_iter", [0, -5])
    def test_max_iter(self, solve, max_iter):
        """A budget of no iteration is refused, whatever on_failure says."""
        with pytest.raises(ValueError, match="max_iter"):
            solve(max_iter=max_iter, on_failure="ignore")

    def test_not_converged(self, solve):
        """Out of budget: raise by default; warn or stay quiet on request; never converged."""
        short = {"max_iter": 1, "tol": 1e-12}
        for options in (short, {**short, "on_failure": "raise"}):
            with pytest.raises(
                drot.NotConverged, match=r"residual is .* after 1 iterations"
            ) as caught:
                solve(**options)
            for remedy in ("tol=1e-12", "max_iter", "on_failure='ignore'"):
                assert remedy in str(caught.value)
        with pytest.warns(RuntimeWarning, match="residual is") as seen:
            result = solve(**short, on_failure="warn")
        assert len(seen) == 1 and seen[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ignored = solve(**short, on_failure="ignore")
        for found in (result, ignored):
            assert not found.converged and found.residual > 1e-12
            assert found.plan.isfinite().all()

    def test_converged(self, solve):
        """Inside the budget nothing is said, and the residual is within tol."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for tol in (None, 1e-6, 1e-11):
                found = solve(tol=tol, on_failure="warn")
                assert found.converged and found.residual <= (tol or 1e-9)
                assert found.n_iter == len(found.trace) > 0

    def test_on_failure_names(self, solve):
        """A wrong name is refused at once, and the right ones are listed."""
        with pytest.raises(ValueError, match=r"on_failure='stop' .*'raise', 'warn', 'ignore'"):
            solve(on_failure="stop")


@pytest.mark.parametrize(
    "solve",
    [
        lambda **o: drot.symmetric_dual_ascent(matrix(), 3.0, **o),
        lambda **o: drot.symmetric_alternating_projections(matrix(), 3.0, bandwidth=1.0, **o),
    ],
    ids=["ascent", "projections"],
)
class TestSlowSolverOptions:
    """The same of the two slow ways, which are run to a looser tolerance."""

    def test_limits(self, solve):
        """A positive tolerance, some iterations, and a name that exists."""
        for tol in (0.0, -1e-3, math.nan):
            with pytest.raises(ValueError, match="tol must be positive"):
                solve(tol=tol)
        for max_iter in (0, -5):
            with pytest.raises(ValueError, match="max_iter"):
                solve(max_iter=max_iter, on_failure="ignore")
        with pytest.raises(ValueError, match=r"on_failure='stop' .*'raise', 'warn', 'ignore'"):
            solve(on_failure="stop")

    def test_not_converged(self, solve):
        """Out of budget: raise by default; warn or stay quiet on request; never converged."""
        short = {"max_iter": 2, "tol": 1e-12}
        with pytest.raises(drot.NotConverged, match=r"residual is .* after 2 iterations"):
            solve(**short)
        with pytest.warns(RuntimeWarning, match="residual is") as seen:
            result = solve(**short, on_failure="warn")
        assert len(seen) == 1 and seen[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ignored = solve(**short, on_failure="ignore")
        for found in (result, ignored):
            assert found.converged is False and found.residual > 1e-12
            assert found.plan.isfinite().all() and found.n_iter == 2

    def test_converged(self, solve):
        """Inside the budget nothing is said, and the residual is within tol."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = solve(tol=1e-3, on_failure="warn")
        assert found.converged and found.residual <= 1e-3
        assert found.n_iter == len(found.trace) > 1 and min(found.trace[:-1]) > 1e-3


def test_ascent_options():
    """The optimizer has one of three names, its rate and the bandwidth are positive numbers."""
    with pytest.raises(ValueError, match=r"optimizer='sgd' .*'adam', 'lbfgs', 'gradient'"):
        drot.symmetric_dual_ascent(matrix(), 3.0, optimizer="sgd")
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="learning_rate must be positive and finite"):
            drot.symmetric_dual_ascent(matrix(), 3.0, learning_rate=value)
        with pytest.raises(ValueError, match="bandwidth must be positive and finite"):
            drot.symmetric_alternating_projections(matrix(), 3.0, bandwidth=value)
    with pytest.raises(TypeError, match="bandwidth must be one number"):
        drot.symmetric_alternating_projections(matrix(), 3.0, bandwidth=np.ones(8))


@pytest.mark.parametrize(
    "solve",
    [
        lambda **o: drot.entropic_affinity(1 - np.eye(2), 1.5, **o),  # the rows end together
        lambda **o: drot.gaussian_affinity(matrix(), perplexity=3.0, **o),
        lambda **o: drot.doubly_stochastic_affinity(matrix(), bandwidth=1.0, **o),
        lambda **o: drot.symmetric_dual_ascent(matrix(), 3.0, **o),
    ],
    ids=["entropic", "gaussian", "sinkhorn", "ascent"],
)
def test_tolerance_is_a_bound(solve):
    """A residual equal to tol is accepted, one a tenth above it is not."""
    found = solve(tol=1e-3)
    assert 0 < found.residual <= 1e-3
    budget = {"max_iter": found.n_iter}
    assert solve(tol=found.residual, **budget).residual == found.residual
    with pytest.raises(drot.NotConverged):
        solve(tol=found.residual / 1.1, **budget)


@pytest.mark.parametrize(
    "solve",
    [
        lambda **o: drot.entropic_affinity(matrix(), 3.0, **o),
        lambda **o: drot.gaussian_affinity(matrix(), bandwidth=1.0, **o),
        lambda **o: drot.self_tuning_affinity(matrix(), n_neighbors=2, **o),
    ],
    ids=["entropic", "gaussian", "self-tuning"],
)
@pytest.mark.parametrize("name", ["zero", None, True, ["keep"]])
def test_diagonal_names(solve, name):
    """A wrong name of `diagonal` lists the right ones."""
    with pytest.raises(ValueError, match=r"diagonal=.* does not exist; choose from 'keep', 'drop'"):
        solve(diagonal=name)


def test_convention_names():
    """A wrong name of KL's convention lists the right ones."""
    with pytest.raises(ValueError, match="choose from 'generalized', 'papers'"):
        drot.kl_divergence([1.0], [1.0], convention="forward")


@pytest.mark.parametrize("k", [0, -1, 8, 100, 2.0, "3", None])
def test_self_tuning_neighbours(k):
    """From 1 to n - 1 neighbours; the sentence names the parameter and the range."""
    with pytest.raises(ValueError, match=r"n_neighbors must be a whole number from 1 to 7"):
        drot.self_tuning_affinity(matrix(), n_neighbors=k)


@pytest.mark.parametrize("k", [0, 1, -1, 9, 2.0, "3"])
def test_neighbours(k):
    """From 2 to n entries a row; each sentence names the parameter that was passed."""
    with pytest.raises(ValueError, match=r"^k must be a whole number from 2 to 8"):
        drot.nearest(matrix(), k)
    with pytest.raises(ValueError, match=r"^n_neighbors must be a whole number from 2 to 8"):
        drot.entropic_affinity(matrix(), 3.0, n_neighbors=k)


def test_numpy_integers():
    """Counts may be NumPy integers, as `for k in np.arange(...)` gives them."""
    assert drot.nearest(matrix(), np.int64(3)).shape == (8, 8)
    assert drot.entropic_affinity(matrix(), 2.0, n_neighbors=np.int64(5)).converged
    assert drot.self_tuning_affinity(matrix(), n_neighbors=np.int32(2)).converged
    assert drot.sqeuclidean(points(), block=np.int64(3)).block == 3


# ------------------------------------------------------------------------ plans and metrics
@pytest.mark.parametrize(
    "call",
    [
        drot.row_entropy,
        drot.row_perplexity,
        lambda P: drot.kl_divergence(P, P),
    ],
)
def test_plans_are_not_negative(call):
    """Entropies are of vectors or matrices of non-negative numbers."""
    for bad in ([-0.1, 1.1], [math.nan, 1.0]):
        with pytest.raises(ValueError, match="non-negative"):
            call(bad)
    with pytest.raises(ValueError, match="vector or matrix"):
        call(1.0)


def test_shapes_of_plans():
    """What must be square, or of one shape, says which shapes came."""
    wide = np.full((2, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"differ in shape: \(2, 3\) and \(3, 2\)"):
        drot.kl_divergence(wide, wide.T)
    with pytest.raises(ValueError, match=r"square \(n, n\) array of .*; got shape \(2, 3\)"):
        drot.symmetrize(wide)
    with pytest.raises(ValueError, match=r"square \(n, n\) array of .*; got shape \(2, 3\)"):
        drot.metrics.constraint_errors(wide, perplexity=2.0)
    with pytest.raises(ValueError, match="one label per row"):
        drot.metrics.spectral_clustering_ari(np.eye(3), [0, 1])


# ------------------------------------------------------------------------------------- size
def test_too_large_for_memory():
    """An n x n that will not fit is refused before it is tried: how large, and `block=`."""
    X = torch.zeros(2_000_000, 1)
    X[:, 0] = torch.arange(2_000_000)
    for use in (
        lambda: drot.sqeuclidean(X).dense(),
        lambda: drot.sqeuclidean(X, block=10).dense(),
        lambda: drot.entropic_affinity(drot.sqeuclidean(X, block=None), 30.0),
        lambda: drot.doubly_stochastic_affinity(drot.sqeuclidean(X, block=None), bandwidth=1.0),
        lambda: drot.symmetric_entropic_affinity(drot.sqeuclidean(X, block=None), 30.0),
        lambda: drot.symmetric_alternating_projections(
            drot.sqeuclidean(X, block=10), 30.0, bandwidth=1.0
        ),
    ):
        with pytest.raises(MemoryError, match=r"2000000 x 2000000 .* 14901 GiB .*block="):
            use()


def test_plan_too_large_for_memory(monkeypatch):
    """A plan that will not fit names its tiles, which still work."""
    affinity = drot.entropic_affinity(drot.sqeuclidean(points(50), block=10), 5.0)
    room = 50 * 50 * 8 + 4096
    monkeypatch.setattr("drot._core.checks.physical_memory", lambda device: room)
    with pytest.raises(MemoryError, match=r"50 x 50 .*block=.*tiles"):
        affinity.plan  # noqa: B018
    assert sum(tile.shape[0] for _, tile in affinity.tiles()) == 50


def test_overflowing_distances():
    """Coordinates whose squares overflow are named as such, not as a perplexity."""
    with pytest.raises(ValueError, match=r"overflow|non-finite|infinite"):
        drot.entropic_affinity(drot.sqeuclidean(points() * 1e200), 3.0)


# --------------------------------------------------------------------------------- welcomed
def test_duplicates_are_welcome():
    """Copies of points need no jitter, as long as the perplexity is above their number."""
    X = points()
    X[4:] = X[:4]
    for solve in (
        lambda cost: drot.entropic_affinity(cost, 3.0),
        lambda cost: drot.entropic_affinity(cost, 3.0, diagonal="drop"),
        lambda cost: drot.gaussian_affinity(cost, perplexity=3.0),
        lambda cost: drot.doubly_stochastic_affinity(cost, perplexity=3.0),
        lambda cost: drot.self_tuning_affinity(cost, n_neighbors=2),
        lambda cost: drot.symmetric_entropic_affinity(cost, 3.0),
    ):
        affinity = solve(drot.sqeuclidean(X))
        assert affinity.converged and affinity.plan.isfinite().all()
        np.testing.assert_allclose(affinity.plan[4:, 4:], affinity.plan[:4, :4], atol=1e-8)


@pytest.mark.parametrize(
    "view",
    [
        lambda X: X[::-1],
        lambda X: X[:, ::-1],
        np.asfortranarray,
        lambda X: X.astype(">f8"),
        lambda X: X.tolist(),
        torch.from_numpy,
        lambda X: torch.from_numpy(X).requires_grad_(),
    ],
    ids=["rows reversed", "columns reversed", "fortran", "big endian", "list", "tensor", "grad"],
)
def test_arrays_of_any_layout(view):
    """Views, foreign byte orders, lists and tensors hold the same numbers."""
    X = points()
    expected = np.sort(drot.sqeuclidean(X).dense().flatten())
    found = drot.sqeuclidean(view(X)).dense()
    assert not found.requires_grad
    np.testing.assert_allclose(np.sort(found.flatten()), expected, rtol=1e-12)


def test_read_only_arrays():
    """A read-only array is read, without a warning."""
    X, C = points(), matrix()
    X.flags.writeable = C.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drot.entropic_affinity(drot.sqeuclidean(X), 3.0)
        drot.entropic_affinity(C, 3.0)
        drot.symmetric_entropic_affinity(C, 3.0)
        drot.row_entropy(C)


# --------------------------------------------------------------------- couplings of two graphs
def row_plan(n: int = 8) -> np.ndarray:
    """Rows of sum 1, diagonal 0."""
    P = np.abs(matrix(n))
    return P / P.sum(axis=1, keepdims=True)


def changed(array: np.ndarray, i: int, j: int, entry: float) -> np.ndarray:
    array[i, j] = entry
    return array


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: drot.coupling_loss(2 * row_plan(), -matrix(), prior="row"),
            ["row 0", "sums to 2", "one edge", "support", "drot.entropic_affinity"],
        ),
        (
            lambda: drot.coupling_loss(drot.symmetrize(row_plan()), -matrix(), prior="row"),
            ["prior='row'", "support"],
        ),
        (
            lambda: drot.coupling_loss(row_plan() / 8, -matrix(), prior="edges"),
            ["mass 1", "n = 8 edges", "support", "n over its mass"],
        ),
        (
            lambda: drot.coupling_loss(changed(row_plan(), 2, 5, 1.5), -matrix(), prior="binary"),
            ["1.5", "row 2, column 5", "once or not at all", "support", "probabilities"],
        ),
        (
            lambda: drot.coupling_loss(
                row_plan(), changed(-matrix(), 2, 5, -math.inf), prior="binary"
            ),
            ["row 2, column 5", "-inf", "support", "must be 0"],
        ),
        (
            lambda: drot.coupling_loss(np.eye(8), -matrix(), prior="row"),
            ["row 0, column 0", "self-loop", "support", "diagonal='keep'"],
        ),
        (
            lambda: drot.coupling_loss(row_plan(), -matrix(5), prior="row"),
            ["8 points", "log_kernel of 5"],
        ),
        (
            lambda: drot.coupling_loss(row_plan(), changed(-matrix(), 1, 2, math.nan), prior="row"),
            ["log_kernel is nan", "row 1, column 2"],
        ),
        (
            lambda: drot.coupling_loss(
                row_plan(), changed(-matrix(), 1, 2, math.inf), prior="binary"
            ),
            ["log_kernel is inf", "row 1, column 2"],
        ),
        (
            lambda: drot.coupling_loss(changed(row_plan(), 1, 2, math.nan), -matrix(), prior="row"),
            ["plan", "NaN", "row 1, column 2"],
        ),
        (
            lambda: drot.coupling_loss(row_plan(), -matrix(), prior="degree"),
            ["prior='degree'", "'binary', 'row', 'edges'"],
        ),
        (
            lambda: drot.coupling_loss(row_plan(), -matrix(), prior="row", diagonal="no"),
            ["diagonal='no'", "'drop', 'keep'"],
        ),
        (lambda: drot.BernoulliLoss(np.eye(8)), ["mass on its diagonal", "diagonal='drop'"]),
        (
            lambda: drot.BernoulliLoss(changed(row_plan(), 2, 5, 1.5)),
            ["1.5", "row 2, column 5", "repulsion=1", "probabilities"],
        ),
        (lambda: drot.BernoulliLoss(row_plan(), "gaussian"), ["'gaussian'", "'student', 'curve'"]),
        (lambda: drot.BernoulliLoss(row_plan(), "curve", guard=0.0), ["guard must be positive"]),
        (lambda: drot.BernoulliLoss(row_plan(), "curve", a=-1.0), ["a must be positive"]),
        (lambda: drot.BernoulliLoss(row_plan(), "curve", b=math.nan), ["b must be positive"]),
        (lambda: drot.BernoulliLoss(np.zeros((8, 8))), ["zero everywhere"]),
        (lambda: drot.BernoulliLoss(points()), ["square (n, n)", "(8, 3)"]),
        (lambda: drot.umap(row_plan(), a=1.0), ["both a and b"]),
        (
            lambda: drot.DistR(3, similarity="precomputed").fit(np.triu(np.ones((5, 5)))),
            ["the similarity X must be symmetric", "entries (0, 1) and (1, 0) are 1 and 0"],
        ),
        (
            lambda: drot.DistR(3, similarity="precomputed").fit(points()),
            ["the similarity X must be square (n, n)", "(8, 3)"],
        ),
        (lambda: drot.largevis(changed(row_plan(), 2, 5, -0.5)), ["negative entry (-0.5)"]),
        (
            lambda: drot.attraction_repulsion(drot.BernoulliLoss(row_plan()), points(5)),
            ["Z has 5 points", "plan 8"],
        ),
        (
            lambda: drot.attraction_repulsion(drot.BernoulliLoss(row_plan()), spoiled(math.nan)),
            ["Z", "NaN", "row 5, column 2"],
        ),
        (lambda: drot.umap_membership(matrix(), 9), ["n_neighbors", "from 2 to 8", "9"]),
        (lambda: drot.umap_membership(matrix(), 1), ["n_neighbors", "from 2 to 8"]),
        (lambda: drot.umap_membership(matrix(), 2.5), ["n_neighbors", "2.5"]),
        (lambda: drot.umap_membership(points(), 3), ["square", "drot.sqeuclidean"]),
        (
            lambda: drot.umap_membership(changed(matrix(), 2, 5, -1.0), 3),
            ["row 2", "negative entry", "not be negative"],
        ),
        (lambda: drot.umap_membership(spoiled_cost(math.nan), 3), ["NaN", "row 3, column 6"]),
        (
            lambda: drot.umap_membership(drot.nearest(matrix(), 3), 5),
            ["row 0", "fewer than 4 finite entries"],
        ),
        (
            lambda: drot.umap_membership(matrix(), 3, local_connectivity=-1.0),
            ["local_connectivity", "-1"],
        ),
        (lambda: drot.umap_membership(matrix(), 3, tol=0.0), ["tol must be positive"]),
        (lambda: drot.umap_curve(2.0, 1.0), ["min_dist must be from 0 to spread=1", "2.0"]),
        (lambda: drot.umap_curve(-0.1), ["min_dist must be from 0"]),
        (lambda: drot.umap_curve(0.1, 0.0), ["spread must be positive"]),
    ],
)
def test_couplings_say_what_is_wrong(call, says):
    with pytest.raises(ValueError) as info:
        call()
    text = str(info.value)
    assert all(part in text for part in says), text
    assert "\n" not in text and len(text) < 250


def test_membership_that_does_not_converge():
    """One evaluation is not enough: said, and the result is to be had."""
    with pytest.raises(drot.NotConverged, match=r"umap_membership: the residual"):
        drot.umap_membership(matrix(), 5, max_iter=1)
    found = drot.umap_membership(matrix(), 5, max_iter=1, on_failure="ignore")
    assert not found.converged and found.residual > 1e-9


def test_couplings_leave_their_inputs_alone():
    """No plan, kernel, cost or start is changed in place."""
    P, C = torch.from_numpy(row_plan()), torch.from_numpy(matrix())
    Z = torch.from_numpy(points())
    before = [P.clone(), C.clone(), Z.clone()]
    for prior in ("binary", "row", "edges"):
        drot.coupling_loss(P, C, prior=prior)
    for kernel in ("student", "curve"):
        loss = drot.BernoulliLoss(P, kernel)
        loss.evaluate(Z), loss.latent_plan(Z), drot.attraction_repulsion(loss, Z)
    drot.umap_membership(C, 4)
    drot.umap(P, init=Z, max_iter=2, on_failure="ignore")
    for now, then in zip((P, C, Z), before, strict=True):
        assert torch.equal(now, then)


BASES = {  # a use of a class that has to be filled in, and what it lacks
    "affinity": (
        lambda: (
            drot.affinities.Affinity(
                cost=drot.sqeuclidean(points()),
                residual=0.0,
                n_iter=0,
                passes=0.0,
                converged=True,
                trace=(),
            ).plan
        ),
        "Affinity does not define its weights",
    ),
    "objective": (
        lambda: KernelLoss(torch.eye(3), "gaussian", symmetric=True, diagonal=True).evaluate(
            torch.zeros(3, 2)
        ),
        "KernelLoss does not say how the kernel is normalised",
    ),
}


@pytest.mark.parametrize(("use", "says"), BASES.values(), ids=BASES)
def test_classes_name_what_they_lack(use, says):
    """The sentence has the name of the class in which the gap is to be filled."""
    with pytest.raises(TypeError, match=f"^{says}$"):
        use()


@pytest.mark.parametrize(
    ("X", "weights"), [(points(8, 3), matrix()), (points(8, 2), matrix()[:7]), (points(7, 2), 1.0)]
)
def test_a_drawing_wants_points_of_the_plane(X, weights):
    """Shapes of both are named before anything is drawn."""
    shape = np.shape(weights)
    with pytest.raises(ValueError, match=r"weights .n, n.; got") as caught:
        draw_graph(None, X, weights)  # no axes to draw on
    assert str(caught.value) == f"X must be (n, 2) and weights (n, n); got {X.shape} and {shape}"
