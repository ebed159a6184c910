"""Graphs and random graphs: against enumeration of all graphs, and against frequencies."""

import itertools
import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
import scipy.stats
import torch
from drot.graphs.graph import (
    Components,
    Graph,
    as_graph,
    connected_components,
    fuzzy_union,
    mrf_log_density,
)
from drot.graphs.priors import (
    expected_graph,
    graph_log_normalizer,
    graph_log_probability,
    sample_graph,
    sample_graphs,
)

PRIORS = ("binary", "row", "edges")


def log_weights(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=1.2, size=(n, n))


def all_graphs(prior: str, n: int, diagonal: str) -> list[np.ndarray]:
    """Every graph that the prior allows, by brute force."""
    cells = np.ones((n, n)) if diagonal == "keep" else 1 - np.eye(n)
    most = n if prior == "edges" else 1
    found = []
    for counts in itertools.product(range(most + 1), repeat=int(cells.sum())):
        W = np.zeros((n, n))
        W[cells > 0] = counts
        if prior == "binary" or (W.sum(axis=1) == 1).all() or (prior == "edges" and W.sum() == n):
            found.append(W)
    return found


def weigh(W: np.ndarray, logs: np.ndarray, prior: str) -> float:
    """Omega(W) prod w^W."""
    value = math.prod(math.exp(logs[i, j]) ** W[i, j] for i, j in zip(*W.nonzero(), strict=True))
    if prior == "edges":
        value /= math.prod(math.factorial(int(c)) for c in W.flat)
    return value


@pytest.mark.parametrize(("n", "diagonal"), [(2, "keep"), (3, "drop")])
@pytest.mark.parametrize("prior", PRIORS)
def test_probabilities_by_enumeration(prior, n, diagonal):
    """Normaliser, probability of every graph and expectation, where one edge cannot be."""
    logs = log_weights(n, seed=n)
    logs[0, 1] = -np.inf
    graphs = all_graphs(prior, n, diagonal)
    raw = np.array([weigh(W, logs, prior) for W in graphs])
    options = {"prior": prior, "diagonal": diagonal}
    log_total = float(graph_log_normalizer(logs, **options))
    assert log_total == pytest.approx(math.log(raw.sum()), abs=1e-12)
    found = [math.exp(graph_log_probability(W, logs, **options)) for W in graphs]
    np.testing.assert_allclose(found, raw / raw.sum(), rtol=1e-11, atol=1e-300)
    mean = np.average(graphs, axis=0, weights=raw)
    np.testing.assert_allclose(expected_graph(logs, **options), mean, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("prior", PRIORS)
def test_impossible_graphs(prior):
    """Graphs outside the support have probability 0, whatever the weights."""
    chance = partial(graph_log_probability, log_kernel=log_weights(3), prior=prior)
    fitting = {
        "binary": [[0, 1, 1], [0, 0, 0], [0, 0, 0]],
        "row": [[0, 1, 0], [1, 0, 0], [1, 0, 0]],  # also binary, and three edges in all
        "edges": [[0, 3, 0], [0, 0, 0], [0, 0, 0]],
    }
    for name, W in fitting.items():
        assert (float(chance(W)) > -math.inf) == (name in (prior, "row")), (name, prior)
    assert float(chance(np.eye(3))) == -math.inf < float(chance(np.eye(3), diagonal="keep"))
    assert float(chance([[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]])) == -math.inf


@pytest.mark.parametrize("prior", ["row", "edges"])
def test_shifts_of_the_log_kernel(prior):
    """A factor common to all weights changes nothing but the normaliser; extremes are safe."""
    logs = log_weights(5)
    for shift in (-2000.0, 700.0):
        both = (logs, logs + shift)
        one, other = (expected_graph(x, prior=prior) for x in both)
        torch.testing.assert_close(one, other, rtol=1e-9, atol=0)
        one, other = (float(graph_log_normalizer(x, prior=prior)) for x in both)
        assert other - one == pytest.approx(5 * shift)


@pytest.mark.parametrize("diagonal", ["drop", "keep"])
@pytest.mark.parametrize("prior", PRIORS)
def test_frequencies(prior, diagonal):
    """Chi-square of 1500 draws against the exact probability of every graph."""
    n, draws = (2 if diagonal == "keep" else 3), 1500
    logs = log_weights(n, seed=5)
    graphs = all_graphs(prior, n, diagonal)
    raw = np.array([weigh(W, logs, prior) for W in graphs])
    found = Counter(
        g.dense().numpy().tobytes()
        for g in sample_graphs(logs, draws, prior=prior, diagonal=diagonal, random_state=7)
    )
    counts = np.array([found[W.tobytes()] for W in graphs])
    assert counts.sum() == draws  # nothing else was drawn
    wanted = draws * raw / raw.sum()
    rare = wanted < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        wanted = np.append(wanted[~rare], wanted[rare].sum())
    assert len(wanted) > 3
    assert scipy.stats.chisquare(counts, wanted).pvalue > 1e-3


def test_sure_and_impossible_edges():
    """Weights of e^1000 and e^-1000 are edges for sure and no edges, and cost nothing."""
    logs = np.full((4, 4), -1000.0)
    logs[0, 1] = logs[2, 3] = 1000.0
    for g in sample_graphs(logs, 50, prior="binary"):
        assert g.edges.tolist() == [[0, 2], [1, 3]]
    assert float(graph_log_normalizer(logs, prior="binary")) == pytest.approx(2000)
    logs[0, 2] = 0.0  # a sure edge leaves its neighbours in the row their own chances
    drawn = sample_graphs(logs, 400, prior="binary")
    share = np.mean([float(g.dense()[0, 2]) for g in drawn])
    assert share == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("prior", PRIORS)
def test_seeds(prior):
    """More draws begin with the same ones; another seed and a generator that moved on differ."""
    sample = partial(sample_graph, log_weights(12), prior=prior)
    few, more = (
        [g.dense() for g in sample_graphs(log_weights(12), n, prior=prior, random_state=4)]
        for n in (3, 6)
    )
    assert torch.equal(torch.stack(few), torch.stack(more[:3]))
    assert torch.equal(few[0], sample(random_state=4).dense())
    rng = np.random.default_rng(0)
    others = [sample(random_state=seed).dense() for seed in (5, rng, rng)]
    assert len({W.numpy().tobytes() for W in [*more, *others]}) == 9


def test_fuzzy_union():
    """Binary graphs: an edge in either direction. Probabilities: those of such an edge."""
    drawn = sample_graph(log_weights(3, seed=2), prior="binary")
    W = drawn.dense()
    assert torch.equal(fuzzy_union(W), (W + W.T >= 1).double())
    assert torch.equal(fuzzy_union(drawn), fuzzy_union(W))
    assert fuzzy_union([[0.3, 0.5], [0.25, 1.0]]).tolist() == [[0.0, 0.625], [0.625, 0.0]]


def test_kernels():
    """Two points at distance 2: -1/2 d^2, -log(1 + d^2), and whatever a callable says."""
    X, W = [[0.0, 0.0], [2.0, 0.0]], [[0.0, 3.0], [0.0, 0.0]]
    assert float(mrf_log_density(X, W)) == -6.0
    assert float(mrf_log_density(X, W, kernel="student")) == pytest.approx(-3 * math.log(5))
    assert float(mrf_log_density(X, W, kernel=lambda x: x[:, 0])) == -6.0  # from i to j: x_i - x_j
    assert float(mrf_log_density(X, np.zeros((2, 2)))) == 0.0
    assert float(mrf_log_density(X, W, kernel=lambda x: x[:, 0] - torch.inf)) == -math.inf


LOGS, X3 = np.zeros((3, 3)), np.zeros((3, 1))
PAIR = torch.tensor([[0], [1]])
SHAPES = r"edges must be \(2, m\) and weights \(m,\)"
NODES = "join the nodes 0 to 2, by whole numbers; got"
density = partial(mrf_log_density, X3, LOGS + 1)
three = partial(Graph, n=3)
elsewhere = torch.zeros(3, dtype=torch.int64, device="meta")


@pytest.mark.parametrize(
    ("function", "given", "says"),
    [
        # in the order of reading, though a later one is further off
        (as_graph, {"graph": [[0, 0.5], [-0.5, -3.0]]}, r"\(-0\.5\) at row 1, column 0"),
        (fuzzy_union, {"graph": [[1, 0.5], [1.5, 3]]}, r"above 1 \(1\.5\) at row 1, column 0"),
        (connected_components(LOGS).mean, {"X": X3[:2]}, "2 points and the graph 3 nodes"),
        (connected_components(LOGS).mean, {"X": [[0.0]] * 4}, "4 points and the graph 3 nodes"),
        (graph_log_probability, {"graph": [[0.0]], "log_kernel": LOGS}, "1 nodes.*3 rows"),
        (expected_graph, {"log_kernel": [[0, 0.2, 0.8], [1, 0, 0], [0, 1, 0]]}, "not their log"),
        (density, {"kernel": lambda x: x}, r"must return a \(6,\) tensor.*\(6, 1\)"),
        (density, {"kernel": lambda x: 3.0}, r"must return a \(6,\) tensor; got float"),
        (density, {"kernel": lambda x: x[:, 0] / 0}, r"NaN or \+inf"),
        (density, {"kernel": lambda x: x[:, 0] + torch.inf}, r"NaN or \+inf"),
        (three, {"edges": [0, 1], "weights": 1.0}, SHAPES),
        (three, {"edges": [[0, 1, 2]] * 3, "weights": [1.0] * 3}, SHAPES),
        (three, {"edges": [[0, 1, 2]] * 2, "weights": [1.0] * 2}, SHAPES),
        *[
            (three, {"edges": [[i], [j]], "weights": [1.0]}, NODES)
            for i, j in [(0, 3), (-1, 2), (0.5, 1)]
        ],
        *[(three, {"edges": PAIR, "weights": [x]}, "positive and fin") for x in (0.0, math.inf)],
        (three, {"edges": PAIR, "weights": elsewhere[:1]}, "edges is on cpu and weights on meta"),
        # or a Laplacian would count one of the two, and a density both
        (three, {"edges": [[1, 1], [2, 2]], "weights": [1, 1]}, "from 1 to 2 is listed twice"),
        (three, {"edges": [[2, 0, 2], [1, 2, 1]], "weights": [1] * 3}, "from 2 to 1 is listed tw"),
        (Graph, {"n": 0, "edges": PAIR, "weights": [1.0]}, "n must be .*at least 1"),
        *[
            (getattr(Components(labels=elsewhere, sizes=elsewhere), name), {"X": X3}, "on meta; mo")
            for name in ("mean", "center")
        ],
    ],
)
def test_what_is_refused(function, given, says):
    """One sentence: what, where, what to do."""
    with pytest.raises(ValueError, match=says):
        function(**given)


@pytest.mark.parametrize("function", [sample_graph, expected_graph, graph_log_normalizer])
def test_no_possible_edge(function):
    """A row that cannot have its edge is named, in whichever tile it lies."""
    logs = np.zeros((1100, 1100))  # more rows than a tile has
    logs[1033] = -np.inf
    with pytest.raises(ValueError, match=r"row 1033 has no possible edge.*prior='row'"):
        function(logs, prior="row")
    with pytest.raises(ValueError, match="no edge is possible"):
        function(np.full((3, 3), -np.inf), prior="edges")
    assert function(np.full((3, 3), -np.inf), prior="binary") is not None
    assert function(logs, prior="edges") is not None
