"""What the table of bad input cannot make: sentences and remedies particular to one function, what
only looks like bad input, and solvers that run out of budget."""

import math
import re
import warnings
from collections.abc import Callable
from functools import partial

import drot
import numpy as np
import pytest
import torch
from drot.plot import draw_graph  # noqa: F401  of the table
from faults import ROWS, STARTS, parameters, points, squares, thing


def changed(array: np.ndarray, i: int, j: int, entry: float) -> np.ndarray:
    array = np.array(array)
    array[i, j] = entry
    return array


X, C = points(8), squares(8)
P = C / C.sum(axis=1, keepdims=True)  # rows of sum 1, diagonal 0
TIED = changed(changed(changed(C, 4, 0, 0.0), 4, 4, 0.0), 4, 7, 0.0)  # three cheapest in row 4
FEW = np.array([[0, 1, 5, 6], [3, 0, 5, 6], [5, 5, 0, 1e9], [6, 6, 1e9, 0]])  # 1e9 rounds no other
UNEVEN = np.array([[0, 1e9, 1], [1e9, 0, 0.5], [1.5, 0.9, 0]])
COPIES = X[[0, 1, 2, 3, 4, 5, 3, 7]]
TWINS = points(20)[[*range(13), 17, *range(14, 20)]]
KERNEL = np.exp(-C)
CYCLE = np.roll(np.eye(3), 1, axis=0)
LARGE = torch.arange(2_000_000.0)[:, None]
FAR = drot.nearest(C, n_neighbors=3)
ODD = [drot.pairwise(lambda x, y: x[:, :1] - y[:, 0], X, block=block) for block in (None, 3)]


def rowwise(cost, perplexity=3.0):
    return drot.entropic_affinity(cost, perplexity=perplexity)


def symmetric(cost, perplexity=3.0):
    return drot.symmetric_entropic_affinity(cost, perplexity=perplexity)


def doubly(cost, perplexity=3.0):
    return drot.doubly_stochastic_affinity(cost, perplexity=perplexity)


def other(entry: float) -> list[float]:
    """The perplexity of row 5."""
    return [3.0] * 5 + [entry] + [3.0] * 2


def coupling(plan=P, log_kernel=-C, prior="row", **options):
    return drot.coupling_loss(plan, log_kernel, prior=prior, **options)


def euclidean() -> drot.distributional.DistributionalReduction:
    return drot.distributional_reduction(KERNEL, 3, init="random", on_failure="ignore")


def met(function: Callable):
    return rowwise(drot.pairwise(function, X))


def shared(similarity):
    return drot.DistR(3, similarity="precomputed").fit(similarity)


def known(distances, **options):
    return drot.TSNE(perplexity=3.0, metric="precomputed", **options).fit(distances)


# Calls :: a regular expression for their sentence; of a ValueError where it names no other type.
TABLE = r"""
drot.sqeuclidean(torch.zeros(3, 2).bfloat16()) :: TypeError: X.*bfloat16.*float64
drot.sqeuclidean([["a"]]) :: TypeError: ^X cannot .* numbers: it holds text$
drot.sqeuclidean(points(5, 3), points(5, 2)) :: X has 3 coordinates and Y has 2
met(lambda x, y: torch.cdist(x, y)[:, 1:]) :: return a \(8, 8\) tensor; got \(8, 7\)
met(lambda x, y: torch.cdist(x, y).T[:1]) :: got \(1, 8\)
met(lambda x, y: torch.cdist(x, y).numpy()) :: tensor; got ndarray
met(lambda x, y: torch.cdist(x, y).float()) :: keep torch.float64 on cpu; got torch.float
met(lambda x, y: torch.cdist(x, y) / 0 - 1) :: non-finite entry .*row 0, column 0
drot.spectral.laplacian_eigenmaps(UNEVEN, 1) :: entries \(0, 2\) and \(2, 0\) are 1 and 1.5
drot.self_tuning_affinity(drot.sqeuclidean(COPIES), n_neighbors=1)
    :: row 3 has 1 or more copies.*raise n_neighbors
drot.sqeuclidean(LARGE, block=10).dense()
    | symmetric(drot.sqeuclidean(LARGE, block=None))
    :: MemoryError: 2000000 x 2000000 .* 14901.2 GiB.*block=
drot.entropic_affinity(C, perplexity=7.0, diagonal="drop")
    :: out of reach: row 0 has 7 points .* allows less than 7; lower
drot.entropic_affinity(C, perplexity=5.0, n_neighbors=4)
    :: out of reach: row 0 has 4 points .* allows less than 4; lower
rowwise(X) | symmetric(X) | drot.self_tuning_affinity(X) | drot.umap_membership(X, n_neighbors=3)
    :: cost.*square.*\(8, 3\).*drot\.sqeuclidean\(X\)
symmetric(ODD[0]) | symmetric(ODD[1]) | doubly(ODD[0]) | doubly(ODD[1]) :: must be symmetric
symmetric(FAR) | doubly(FAR) :: must be finite for all pairs .* inf at row 0, col
symmetric(FEW) | doubly(FEW) :: entries \(0, 1\) and \(1, 0\) are 1 and 3
rowwise(C, other(0.5)) | symmetric(C, other(0.5))
    :: out of reach: row 5 needs more than 1; raise
rowwise(C, other(8.0)) | symmetric(C, other(8.0))
    :: out of reach: row 5 has 8 points .* allows less than 8; lower
rowwise(C, other(math.nan)) | symmetric(C, other(math.nan))
    :: perplexity must be positive, and is NaN at row 5
rowwise(TIED)
    :: row 4 needs more than 3, as 3 of its points are equally near \(copies, .*\); raise
rowwise(drot.sqeuclidean(TWINS, block=3), 1.5)
    :: row 13 needs more than 2, as 2 of its points are equally near \(copies, .*\); raise
rowwise(np.zeros((5, 5)), 2.0)
    :: out of reach: row 0 has 5 entries, all equal, .* remove copies .*, or add columns
rowwise(C, None) :: TypeError: perplexity
drot.gaussian_affinity(TIED, perplexity=1.14) :: between 1.1472 .* and 8\b
drot.gaussian_affinity(np.ones((4, 4)), perplexity=2.0)
    :: perplexity of 2 is out of reach: .* all equal, and it is 4 whatever the bandwidth; remove
drot.gaussian_affinity(C) | drot.gaussian_affinity(C, bandwidth=1.0, perplexity=3.0)
    | drot.doubly_stochastic_affinity(C)
    | drot.doubly_stochastic_affinity(C, bandwidth=1.0, perplexity=3.0)
    :: exactly one of bandwidth and perplexity
coupling(2 * P) :: row 0.*sums to 2.*one edge.*support.*drot.entropic_affinity
coupling(drot.symmetrize(P)) :: prior='row'.*support
coupling(P / 8, prior="edges") :: mass 1.*n = 8 edges.*support.*n over its mass
coupling(changed(P, 2, 5, 1.5), prior="binary")
    :: 1.5 at row 2, column 5.*once or not at all; pass probabilities.*support
coupling(log_kernel=changed(-C, 2, 5, -math.inf), prior="binary")
    :: row 2, column 5, but must be 0 where log_kernel is -inf.*support
drot.BernoulliLoss(np.eye(8)) :: mass on its diagonal.*diagonal='drop'
drot.BernoulliLoss(changed(P, 2, 5, 1.5)) :: 1.5.*row 2, column 5.*repulsion=1.*probabilities
shared(np.triu(np.ones((5, 5))))
    :: similarity must be symmetric.*entries \(0, 1\) and \(1, 0\) are 1 and 0
shared(X) :: X must be square \(n, n\) with .*='precomputed'.*\(8, 3\).*another similarity
shared(squares(20)) :: similarity holds distances
drot.tsne(X) | drot.umap(X) | drot.snekhorn(X) | drot.SNELoss(X)
    :: plan must be a square .*\(8, 3\).* take an estimator, as drot\.TSNE\(\)
drot.TSNE().fit(drot.sqeuclidean(X)) | drot.TSNE().fit(drot.gaussian_affinity(C, bandwidth=1.0))
    :: TypeError: TSNE takes an array of points.*pass
drot.snekhorn(rowwise(C)) | drot.snekhorn(P)
    :: must be symmetric with rows of sum 1; column . sums to .*pass drot.symmetric_entropic
drot.snekhorn(drot.symmetrize(P)) :: symmetric with rows of sum 1; row . sums to .*pass drot.symm
drot.snekhorn(CYCLE) :: must be symmetric; .*drot.symmetrize gives the nearest
drot.ccpca(X[:, :1], 2) | drot.umap_membership(C[:2, :2], n_neighbors=3)
    :: must be ., for the input allows no other number; got .$
drot.umap_membership(drot.nearest(C, n_neighbors=3), n_neighbors=5)
    :: row 0.*fewer than 4 finite entries
drot.distributional_reduction(C, 3, init=None) | drot.srgw_barycenter(C, 3, init=None)
    :: TypeError: ^init is a NoneType; pass '.*, a plan or a res
drot.srgw_barycenter(1e-170 * C, 3)
    | drot.semi_relaxed_gw(1e-170 * C, 1e-170 * C[:3, :3])
    | drot.gw_objective(1e-170 * C, 1e-170 * C, P / 8)
    | drot.distributional_reduction(1e-170 * C, 3, kernel="gram", loss="square")
    :: ^squares of these similarities underflow; give them in smaller units$
drot.srgw_barycenter(np.full((4, 4), 1e308), 2, loss="kl")
    | drot.srgw_barycenter(1.7e308 * KERNEL, 2, loss="kl")
    | drot.semi_relaxed_gw(1.7e308 * KERNEL, KERNEL[:2, :2], loss="kl")
    :: ^the objective of these similarities overflows; give them in larger units$
drot.srgw_barycenter(1e-300 * KERNEL, 2, loss="kl")
    | drot.semi_relaxed_gw(KERNEL, 1e-300 * KERNEL[:2, :2], loss="kl")
    | drot.distributional_reduction(1e-300 * KERNEL, 2)
    :: ^the entries of .* underflow; give them in smaller units$
drot.plot.scatter(X, legend="no") | drot.plot.scatter(X, beside=1)
    | drot.costs.Factored(X, X[::-1], symmetric="no")
    :: TypeError: ^(legend|beside|symmetric) must be True or False; got ('no'|1)$
drot.cluster_then_reduce(KERNEL, 3, centres=lambda T: KERNEL)
    :: ^centres must return a \(3, 3\) array; got \(8, 8\)$
drot.cluster_then_reduce(KERNEL, 3, centres="mean") :: TypeError: ^centres must be a function
drot.metrics.prototype_homogeneity(P, [None, *"abbabba"])
    | drot.metrics.prototype_homogeneity(P, [np.nan, 1, 1, 2, 2, 1, 2, 2])
    :: ^y has missing labels; leave out the points that have none$
drot.SNEkhornLoss(np.eye(8)).evaluate(X) | drot.SNEkhornLoss(np.eye(8)).evaluate(torch.ones(8, 2))
    :: TypeError: ^Z must be a tensor of torch.float64, as the plan; got (ndarray|torch.float32)$
drot.srgw_barycenter(KERNEL, 3, init=["random", 3]) | drot.srgw_barycenter(KERNEL, 3, init=())
    :: ^init=(3|..) does not exist; choose from 'kmeans'
drot.distributional_reduction(0 * C, 2) :: ^similarity is zero everywhere
drot.hyperbolic.distributional_reduction(KERNEL, 3, init=euclidean())
    :: ^row . of init is not on the hyperboloid
drot.hyperbolic.distances([[1.25, 0.75], [-1.25, 0.75]]) :: ^row 1 of Z is not on the hyperboloid
drot.cluster_then_reduce(KERNEL, 3, centres=lambda T: math.nan * T[:3])
    :: ^what centres returned has a non-finite entry
drot.gram(drot.DistR(2, similarity="gram").fit(TWINS)) :: TypeError: .*its result_
drot.plot.scatter(drot.TSNE()) :: NotFittedError: this TSNE is not fitted yet
draw_graph(None, X, C) :: X must be \(n, 2\) and .*; got \(8, 3\) and \(8, 8\)$
draw_graph(None, X[:, :2], C[:7, :7]) :: X must be \(n, 2\) and .*; got \(8, 2\) and \(7, 7\)$
draw_graph(None, X[:7, :2], 1.0) :: weights must be a square \(n, n\) array
draw_graph(None, X[:, :2], np.nan * C) :: weights has a non-finite entry \(NaN\) at row 0
draw_graph(None, X[:, :2], drot.sqeuclidean(X)) :: weights holds distances, small where
drot.plot.scatter(X[:, :2], size=-1) :: size must be positive and finite; got -1
known(X) :: must be square \(n, n\) with metric=.* shape \(8, 3\)
known(KERNEL) :: holds similarities, not dist
known(-C) :: Negative values in data: .* distances
known(np.triu(C)) :: the distances X .*symmetric
known(C, init="pca") :: init='pca' needs points
drot.datasets.digits(9) :: from 10 to 1797; got 9
drot.datasets.three_gaussians(spreads=(1, 2)) :: spreads must list 3 values
drot.datasets.circles(dimension=1) :: dimension must be a whole number of at least 2
drot.datasets.load("coil20", n_components=51) :: number from 1 to 50; got 51
drot.datasets.load("scgem", n_components=3) :: scgem is a table
"""
SENTENCES = [
    (eval(f"lambda: {call}"), words)
    for calls, words in (re.split(r"\s+:: ", x) for x in re.split(r"\n(?! )", TABLE.strip("\n")))
    for call in re.split(r"\s+\| ", calls)
]


@pytest.mark.parametrize(("call", "words"), SENTENCES)
def test_one_sentence(call, words, monkeypatch):
    """It says what is wrong, where, and what to do; before any file is looked for."""
    monkeypatch.setattr("drot.datasets.fetch.find", None)
    with pytest.raises((ValueError, TypeError, MemoryError)) as caught:
        call()
    kind, text = caught.type.__name__, str(caught.value)
    expected, colon, words = words.rpartition("Error: ")
    assert kind == (f"{expected}Error" if colon else "ValueError"), text
    assert re.search(words, text), text
    assert "\n" not in text and len(text) < 300


@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_one_odd_row_of_many_tiles_is_noticed(size):
    """Of a cost met in tiles every row counts, though not every pair is compared."""
    n = 400
    Y = np.c_[np.arange(n), points(n)]

    def odd(x, y, more=size):
        return (x[:, None, 1:] - y[None, :, 1:]).square().sum(-1) + more * (x[:, :1] == 1)

    for solve in (doubly, symmetric):
        with pytest.raises(ValueError, match=r"entries \((1, \d+|\d+, 1)\) and"):
            solve(drot.pairwise(odd, Y, block=100), 30.0)
        plan = solve(drot.pairwise(partial(odd, more=0.0), Y, block=100), 30.0).plan
        assert torch.equal(plan, plan.T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_is_no_asymmetry(dtype):
    """Gram matrices by matrix products, each triangle rounded in its own way."""
    Y = torch.tensor(points(90)).to(dtype) + 1e2
    noise = torch.randn(90, 90, dtype=dtype, generator=torch.Generator().manual_seed(0))
    lengths = Y.square().sum(dim=1)
    digits = 4 * torch.finfo(dtype).eps * noise
    K = (Y @ Y.T) + digits * (lengths[:, None] * lengths).sqrt()
    assert not torch.equal(K, K.T)
    drot.spectral.kernel_pca(K, 1)
    K[3, 4] += 1e-3 * K[3, 4].abs()
    with pytest.raises(ValueError, match="must be symmetric"):
        drot.spectral.kernel_pca(K, 1)


def test_numbers_of_any_library():
    """NumPy and torch scalars are numbers, and counts may come from `np.arange`."""
    plain = drot.gaussian_affinity(C, bandwidth=1.5).plan
    for value in (np.float32(1.5), torch.tensor(1.5), np.array(1.5)):
        assert torch.equal(drot.gaussian_affinity(C, bandwidth=value).plan, plain)
    assert drot.nearest(C, n_neighbors=np.int64(3)).shape == (8, 8)
    assert drot.sqeuclidean(X, block=np.int32(3)).block == 3
    one, other = (drot.srgw_barycenter(KERNEL, 3, refine=flag) for flag in (True, np.True_))
    assert torch.equal(one.plan, other.plan)


# Where ten points are at rest after a move or two: tests/properties/test_gromov.py
SETTLED = ("drot.semi_relaxed_gw", "drot.srgw_barycenter", "drot.kernel_kmeans")
BUDGETS = [name for name in ROWS if "on_failure" in parameters(name) and name not in SETTLED]


@pytest.mark.parametrize("name", BUDGETS)
def test_not_converged(name):
    """Out of budget: raise by default; warn or stay quiet on request; never converged."""
    given = ROWS[name].good() | {"max_iter": 1, "tol": 1e-300}
    given |= {"init": "random"} if name in STARTS else {}
    given |= {"n_starts": 1} if "n_starts" in parameters(name) else {}
    given.pop("on_failure", None)
    for more in ({}, {"on_failure": "raise"}):
        with pytest.raises(drot.NotConverged, match=r"residual is .* after [01] it") as caught:
            thing(name)(**given, **more)
        for remedy in ("tol=1e-300", "max_iter", "on_failure='ignore'"):
            assert remedy in str(caught.value)
    with pytest.warns(RuntimeWarning, match="residual is") as seen:
        found = [thing(name)(**given, on_failure="warn")]
    assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.append(thing(name)(**given, on_failure="ignore"))
    for result in found:
        assert result.converged is False and 0 < result.residual < math.inf
        assert result.n_iter <= 1
