"""Random graphs against frequencies; by enumeration: tests/theorems/test_graph_priors.py."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.stats
import torch
from drot import expected_graph, gaussian_affinity, pairwise, sample_graph, sample_graphs
from drot.graphs import graph_log_normalizer, graph_log_probability, mrf_log_density
from drot.graphs.priors import log_weights as weights_of

PRIORS = ("binary", "row", "edges")


def log_weights(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=1.2, size=(n, n))


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


@pytest.mark.parametrize("diagonal", ["drop", "keep"])
@pytest.mark.parametrize("prior", PRIORS)
def test_frequencies(prior, diagonal):
    """Chi-square of 1500 draws against the probability of each graph, and their mean."""
    n, draws = (2 if diagonal == "keep" else 3), 1500
    logs, ask = log_weights(n, seed=5), {"prior": prior, "diagonal": diagonal}
    drawn = torch.stack([g.dense() for g in sample_graphs(logs, draws, random_state=7, **ask)])
    graphs, counts = drawn.unique(dim=0, return_counts=True)
    wanted = draws * np.exp([graph_log_probability(W, logs, **ask) for W in graphs])
    counts, wanted = counts[wanted >= 5].numpy(), wanted[wanted >= 5]
    assert len(wanted) > 3
    counts = np.append(counts, draws - counts.sum())  # of the rare ones
    wanted = np.append(wanted, max(draws - wanted.sum(), 1e-9))
    assert scipy.stats.chisquare(counts, wanted).pvalue > 1e-3
    mean = expected_graph(logs, **ask)
    torch.testing.assert_close(drawn.mean(dim=0), mean, rtol=0, atol=0.06)


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
    never = mrf_log_density([[0.0], [2.0]], [[0, 3], [0, 0]], kernel=lambda x: x[:, 0] - torch.inf)
    assert float(never) == -math.inf


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


def test_log_weights_are_met_by_row_numbers_too():
    """As of any array of pairs: the diagonal is at the rows' own numbers."""
    whole = weights_of(log_weights(4), "row", "drop")
    some = torch.tensor([3, 1])
    assert torch.equal(whole.rows(some), whole.dense()[some])
    assert bool((whole.rows(some)[[0, 1], some] == -math.inf).all())


def test_weights_are_met_in_tiles_of_the_cost():
    """No more rows at a time than a tile of it has."""
    met = []

    def squares(x, y):
        met.append(len(x))
        return torch.cdist(x, y).square()

    X = torch.randn(30, 2, dtype=torch.float64)
    affinity = gaussian_affinity(pairwise(squares, X, block=4), bandwidth=1.0)
    for prior in PRIORS:
        expected_graph(affinity, prior=prior), sample_graph(affinity, prior=prior)
    assert max(met) == 4
