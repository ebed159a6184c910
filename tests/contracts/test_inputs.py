"""What the table of bad input cannot make: sentences and remedies particular to one function, what
only looks like bad input, and solvers that run out of budget."""

import math
import re
import warnings

import drot
import numpy as np
import pytest
import torch
from drot.plot import draw_graph
from faults import ROWS, STARTS, parameters, points, squares, thing


def changed(array: np.ndarray, i: int, j: int, entry: float) -> np.ndarray:
    array = np.array(array)
    array[i, j] = entry
    return array


X, C = points(8), squares(8)
P = C / C.sum(axis=1, keepdims=True)  # rows of sum 1, diagonal 0
TIED = changed(changed(changed(C, 4, 0, 0.0), 4, 4, 0.0), 4, 7, 0.0)  # three cheapest in row 4
FEW = [[0, 1, 5, 6], [3, 0, 5, 6], [5, 5, 0, 1e9], [6, 6, 1e9, 0]]
UNEVEN = [[0, 1e9, 1], [1e9, 0, 0.5], [1.5, 0.9, 0]]
COPIES = X[[0, 1, 2, 3, 4, 5, 3, 7]]
TWINS = points(20)[[*range(13), 17, *range(14, 20)]]
LARGE = torch.arange(2_000_000.0)[:, None]

SOLVERS = {
    "entropic": lambda cost, xi=3.0, **o: drot.entropic_affinity(cost, perplexity=xi, **o),
    "gaussian": lambda cost, xi=3.0, **o: drot.gaussian_affinity(cost, perplexity=xi, **o),
    "sinkhorn": lambda cost, xi=3.0, **o: drot.doubly_stochastic_affinity(cost, perplexity=xi, **o),
    "symmetric": lambda cost, xi=3.0, **o: drot.symmetric_entropic_affinity(
        cost, perplexity=xi, **o
    ),
    "ascent": lambda cost, xi=3.0, **o: drot.affinities.symmetric_dual_ascent(
        cost, perplexity=xi, **o
    ),
    "projections": lambda cost, xi=3.0, **o: drot.affinities.symmetric_alternating_projections(
        cost, perplexity=xi, bandwidth=1.0, **o
    ),
}
OTHERS = {
    "one bandwidth": lambda cost: drot.gaussian_affinity(cost, bandwidth=1.0),
    "scaled": lambda cost: drot.doubly_stochastic_affinity(cost, bandwidth=1.0),
    "self-tuning": lambda cost: drot.self_tuning_affinity(cost, n_neighbors=2),
    "membership": lambda cost: drot.umap_membership(cost, n_neighbors=3),
}
SYMMETRIC = [SOLVERS[name] for name in ("sinkhorn", "symmetric", "ascent", "projections")]
SYMMETRIC.append(OTHERS["scaled"])
MOST = "out of reach: row %d has %d points .* allows less than %d; lower"
LEAST = "out of reach: row %d allows more than %d only%s; raise"
NEAR = r", as %d of its points are equally near \(copies, .*\)"
LOPSIDED = r"entries \(0, 1\) and \(1, 0\) are %s and %s"


def coupling(plan=P, log_kernel=-C, prior="row", **options):
    return drot.coupling_loss(plan, log_kernel, prior=prior, **options)


# A call, and a regular expression for its sentence; a ValueError where it names no other type.
def kernel() -> np.ndarray:
    return np.exp(-squares(8))


def euclidean() -> drot.distributional.DistributionalReduction:
    return drot.distributional_reduction(kernel(), 3, init="random", on_failure="ignore")


SENTENCES = [
    # clouds and callables
    (lambda: drot.sqeuclidean(changed(X, 5, 2, -math.inf)), r"X .*\(-inf\) at row 5, column 2"),
    (lambda: drot.sqeuclidean(torch.zeros(3, 2).bfloat16()), "TypeError: X.*bfloat16.*float64"),
    (lambda: drot.sqeuclidean(points(5, 3), points(5, 2)), "X has 3 coordinates and Y has 2"),
    *(
        (lambda use=use, f=f: use(drot.pairwise(f, X)), words)
        for use in (lambda cost: cost.dense(), SOLVERS["entropic"])
        for f, words in (
            (lambda x, y: torch.cdist(x, y)[:, 1:], r"return a \(8, 8\) tensor; got \(8, 7\)"),
            (lambda x, y: torch.cdist(x, y).T[:1], r"got \(1, 8\)"),
            (lambda x, y: torch.cdist(x, y).numpy(), "tensor; got ndarray"),
            (lambda x, y: torch.cdist(x, y).float(), "keep torch.float64 on cpu; got torch.float"),
            (lambda x, y: torch.cdist(x, y) / 0 - 1, "non-finite entry .*row 0, column 0"),
        )
    ),
    # costs
    *(
        (lambda solve=solve: solve(X), r"cost.*square.*\(8, 3\).*drot\.sqeuclidean\(X\)")
        for solve in (*SOLVERS.values(), *OTHERS.values())
    ),
    *(
        (lambda solve=solve, cost=cost: solve(cost), words)
        for solve in SYMMETRIC
        for cost, words in (
            (drot.pairwise(lambda x, y: x[:, :1] - y[:, 0], X), "must be symmetric"),
            (drot.pairwise(lambda x, y: x[:, :1] - y[:, 0], X, block=3), "must be symmetric"),
            (
                drot.nearest(C, n_neighbors=3),
                r"must be finite for all pairs .* inf at row 0, column",
            ),
        )
    ),
    *(  # a cost of 1e9 says nothing about the rounding of other costs
        (lambda solve=solve, cost=cost: solve(np.array(cost), 2.0), LOPSIDED % (1, 3))
        for solve in SYMMETRIC[:4]
        for cost in (FEW,)
    ),
    (
        lambda: drot.spectral.laplacian_eigenmaps(np.array(UNEVEN), 1),
        r"entries \(0, 2\) and \(2, 0\) are 1 and 1.5",
    ),
    (lambda: drot.self_tuning_affinity(-C, n_neighbors=2), "row 0 .* not negative"),
    (
        lambda: drot.self_tuning_affinity(drot.sqeuclidean(COPIES), n_neighbors=1),
        "row 3 has 1 or more copies.*raise n_neighbors",
    ),
    *(
        (use, "MemoryError: 2000000 x 2000000 .* 14901.2 GiB.*block=")
        for use in (
            lambda: drot.sqeuclidean(LARGE, block=10).dense(),
            *(lambda s=s: s(drot.sqeuclidean(LARGE, block=None)) for s in SYMMETRIC[:2]),
        )
    ),
    # perplexities
    (lambda: drot.entropic_affinity(C, perplexity=7.0, diagonal="drop"), MOST % (0, 7, 7)),
    (lambda: drot.entropic_affinity(TIED, perplexity=3.0), LEAST % (4, 3, NEAR % 3)),
    (
        lambda: drot.entropic_affinity(np.zeros((5, 5)), perplexity=2.0),
        "out of reach: row 0 has 5 entries, all equal, .* remove copies .*, or add columns",
    ),
    (lambda: drot.gram(drot.DistR(2, similarity="gram").fit(TWINS)), "TypeError: .*its result_"),
    (lambda: drot.entropic_affinity(C, perplexity=5.0, n_neighbors=4), MOST % (0, 4, 4)),
    (
        lambda: drot.entropic_affinity(drot.sqeuclidean(TWINS, block=3), perplexity=1.5),
        LEAST % (13, 2, NEAR % 2),
    ),
    *(
        (lambda s=SOLVERS[name], xi=xi: s(C, [3.0] * 5 + [xi] + [3.0] * 2), words)
        for name in ("entropic", "symmetric", "ascent", "projections")
        for words, few in (
            (LEAST % (5, 1, ""), (0.5, 1.0)),
            (MOST % (5, 8, 8), (8.0, 30.0)),
            ("perplexity must be positive, and is NaN at row 5", (math.nan,)),
        )
        for xi in few
    ),
    (lambda: drot.entropic_affinity(C, perplexity=None), "TypeError: perplexity"),
    *(
        (lambda s=s, o=o: s(C, **o), "exactly one of bandwidth and perplexity")
        for s in (drot.gaussian_affinity, drot.doubly_stochastic_affinity)
        for o in ({}, {"bandwidth": 1.0, "perplexity": 3.0})
    ),
    (lambda: SOLVERS["gaussian"](TIED, 3 ** (1 / 8) - 1e-3), f"between {3 ** (1 / 8):g} .* and 8 "),
    # counts and names
    (lambda: drot.self_tuning_affinity(C, n_neighbors=None), "n_neighbors .* from 1 to 7"),
    # plans
    (lambda: coupling(2 * P), "row 0.*sums to 2.*one edge.*support.*drot.entropic_affinity"),
    (lambda: coupling(drot.symmetrize(P)), "prior='row'.*support"),
    (lambda: coupling(P / 8, prior="edges"), "mass 1.*n = 8 edges.*support.*n over its mass"),
    (
        lambda: coupling(changed(P, 2, 5, 1.5), prior="binary"),
        "1.5 at row 2, column 5.*once or not at all; pass probabilities.*support",
    ),
    (
        lambda: coupling(log_kernel=changed(-C, 2, 5, -math.inf), prior="binary"),
        "row 2, column 5, but must be 0 where log_kernel is -inf.*support",
    ),
    (lambda: drot.BernoulliLoss(np.eye(8)), "mass on its diagonal.*diagonal='drop'"),
    (
        lambda: drot.BernoulliLoss(changed(P, 2, 5, 1.5)),
        "1.5.*row 2, column 5.*repulsion=1.*probabilities",
    ),
    (
        lambda: drot.DistR(3, similarity="precomputed").fit(np.triu(np.ones((5, 5)))),
        f"similarity must be symmetric.*{LOPSIDED % (1, 0)}",
    ),
    (
        lambda: drot.DistR(3, similarity="precomputed").fit(X),
        r"X must be square \(n, n\) with similarity='precomputed'.*\(8, 3\).*another similarity",
    ),
    *(
        (
            lambda f=f: f(X),
            r"plan must be a square .*\(8, 3\).* take an estimator, as drot\.TSNE\(\)",
        )
        for f in (drot.tsne, drot.umap, drot.snekhorn, drot.SNELoss)
    ),
    *(
        (lambda cost=cost: drot.TSNE().fit(cost), "TypeError: TSNE takes an array of points.*pass")
        for cost in (drot.sqeuclidean(X), drot.gaussian_affinity(C, bandwidth=1.0))
    ),
    (lambda: drot.DistR(similarity="precomputed").fit(squares(20)), "similarity holds distances"),
    (
        lambda: drot.umap_membership(drot.nearest(C, n_neighbors=3), n_neighbors=5),
        "row 0.*fewer than 4 finite entries",
    ),
    *(
        (
            lambda f=f: f(C, 3, init=None),
            "TypeError: ^init is a NoneType; pass '.*, a plan or a res",
        )
        for f in (drot.distributional_reduction, drot.srgw_barycenter)
    ),
    (lambda: drot.sqeuclidean([["a"]]), "TypeError: ^X cannot .* numbers: it holds text$"),
    (lambda: drot.distributional_reduction(0 * C, 2), "^similarity is zero everywhere"),
    (
        lambda: drot.hyperbolic.distributional_reduction(kernel(), 3, init=euclidean()),
        "^row . of init is not on the hyperboloid",
    ),
    (
        lambda: drot.cluster_then_reduce(
            kernel(), 3, centres=lambda T: torch.full((3, 3), math.nan)
        ),
        "^what centres returned has a non-finite entry",
    ),
    (
        lambda: drot.datasets.stochastic_block_model((3, 4), p_within="a"),
        "TypeError: ^p_within must be one number; got str",
    ),
    (lambda: drot.plot.scatter(drot.TSNE()), "NotFittedError: this TSNE is not fitted yet"),
    (lambda: drot.random_start(3, dtype="float32"), r"dtype='float32' .* pass torch\.float32 or"),
    (
        lambda: drot.gaussian_affinity(np.ones((4, 4)), perplexity=2.0),
        "perplexity of 2 is out of reach: .* all equal, and it is 4 whatever the bandwidth; remove",
    ),
    *(
        (lambda Z=Z, W=W: draw_graph(None, Z, W), rf"X must be \(n, 2\) and .*; got {shapes}$")
        for Z, W, shapes in (
            (X, C, r"\(8, 3\) and \(8, 8\)"),
            (X[:, :2], C[:7], r"\(8, 2\) and \(7, 8\)"),
            (X[:7, :2], 1.0, r"\(7, 2\) and \(\)"),
        )
    ),
]


@pytest.mark.parametrize(("call", "words"), SENTENCES)
def test_one_sentence(call, words):
    """It says what is wrong, where, and what to do."""
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

    for solve in (
        lambda cost: drot.doubly_stochastic_affinity(cost, bandwidth=1.0),
        lambda cost: drot.symmetric_entropic_affinity(cost, perplexity=30.0),
    ):
        with pytest.raises(ValueError, match=r"entries \((1, \d+|\d+, 1)\) and"):
            solve(drot.pairwise(odd, Y, block=100))
        plan = solve(drot.pairwise(lambda x, y: odd(x, y, 0.0), Y, block=100)).plan
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


# Where ten points are at rest after a move or two: tests/properties/test_gromov.py
SETTLED = ("drot.semi_relaxed_gw", "drot.srgw_barycenter", "drot.kernel_kmeans")
BUDGETS = [name for name in ROWS if "on_failure" in parameters(name) and name not in SETTLED]


@pytest.mark.parametrize("name", BUDGETS)
def test_not_converged(name):
    """Out of budget: raise by default; warn or stay quiet on request; never converged."""
    given = ROWS[name].good() | {"max_iter": 1, "tol": 1e-300}
    given |= {"init": "random"} if name in STARTS else {}
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
