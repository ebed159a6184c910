"""Digits: single against double precision, hard cases with their certificates, the same bits.

The bounds of the tables are some ten times what was measured.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import NamedTuple

import drot
import numpy as np
import oracles
import pytest
import torch
from clouds import wild
from plans import energy
from torch import Tensor

N = 40


def points(n: int = N, p: int = 3, seed: int = 0) -> Tensor:
    """Three clusters."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(n, p)) + 4 * rng.integers(0, 3, size=(n, 1)))


def squares(X: Tensor) -> Tensor:
    return drot.sqeuclidean(X).dense()


def rows(X: Tensor) -> Tensor:
    return drot.entropic_affinity(drot.sqeuclidean(X), 8.0, diagonal="drop").plan


def symmetric(X: Tensor) -> Tensor:
    return drot.symmetrize(rows(X))


def doubly(X: Tensor) -> Tensor:
    return drot.symmetric_entropic_affinity(drot.sqeuclidean(X), 8.0).plan


def cyclic(X: Tensor) -> Tensor:
    """The plan that deals the points to four prototypes in turn."""
    return torch.eye(4).to(X).repeat(len(X) // 4, 1) / len(X)


def distances(Z: Tensor) -> Tensor:
    """What of an embedding does not turn."""
    return torch.cdist(Z, Z)


def start(X: Tensor) -> Tensor:
    return drot.pca_start(X)


def logs(X: Tensor) -> Tensor:
    return -squares(X)


class Case(NamedTuple):
    """Numbers of a cloud, and how much of the largest those in float32 may differ by."""

    call: object
    bound: float


STOP = {"max_iter": 4000, "tol": 0.02}
# Every main entry point. Embeddings and clusterings are compared by their value: where descents
# end may differ, what they reach must not.
CASES = {
    "sqeuclidean": Case(squares, 1e-6),
    "student_cost": Case(lambda X: drot.student_cost(X).dense(), 3e-6),
    "factored": Case(lambda X: drot.factored_sqeuclidean(X).dense(), 1e-6),
    "gram": Case(lambda X: drot.gram(X).dense(), 5e-7),
    "entropic": Case(lambda X: drot.entropic_affinity(drot.sqeuclidean(X), 8.0).plan, 8e-4),
    "entropic drop": Case(rows, 8e-4),
    "gaussian": Case(
        lambda X: drot.gaussian_affinity(drot.sqeuclidean(X), perplexity=8.0).plan, 1e-5
    ),
    "bandwidth": Case(
        lambda X: drot.gaussian_affinity(drot.sqeuclidean(X), bandwidth=2.0).plan, 6e-6
    ),
    "self-tuning": Case(lambda X: drot.self_tuning_affinity(drot.sqeuclidean(X)).plan, 1e-5),
    "doubly stochastic": Case(
        lambda X: drot.doubly_stochastic_affinity(drot.sqeuclidean(X), perplexity=8.0).plan, 5e-5
    ),
    "symmetric": Case(doubly, 4e-4),
    "projections": Case(
        lambda X: (
            drot.symmetric_alternating_projections(
                drot.sqeuclidean(X), 8.0, bandwidth=1.0, tol=1e-3
            ).plan
        ),
        1e-4,
    ),
    "membership": Case(lambda X: drot.umap_membership(drot.sqeuclidean(X), 8).plan, 2e-4),
    "union": Case(lambda X: drot.fuzzy_union(drot.umap_membership(drot.sqeuclidean(X), 8)), 2e-4),
    "laplacian": Case(lambda X: drot.laplacian(symmetric(X)), 1e-4),
    "expected graph": Case(lambda X: drot.expected_graph(logs(X)), 1e-5),
    "log normaliser": Case(lambda X: drot.graph_log_normalizer(logs(X), prior="binary"), 1e-6),
    "coupling loss": Case(lambda X: drot.coupling_loss(rows(X), logs(X), prior="row"), 1e-5),
    "field": Case(lambda X: drot.mrf_log_density(X, symmetric(X)), 1e-5),
    "entropy": Case(lambda X: drot.row_entropy(rows(X)), 3e-4),
    "divergence": Case(lambda X: drot.kl_divergence(doubly(X), rows(X) + 1e-3), 2e-5),
    "forces": Case(
        lambda X: torch.cat(drot.attraction_repulsion(drot.SNELoss(symmetric(X)), start(X))), 1e-4
    ),
    "pca": Case(lambda X: drot.spectral.pca(X).Z.abs(), 1e-5),
    "scaling": Case(lambda X: drot.spectral.classical_mds(drot.sqeuclidean(X)).Z.abs(), 1e-5),
    "isomap": Case(lambda X: distances(drot.spectral.isomap(X, n_neighbors=20).Z), 4e-4),
    "locally linear": Case(
        lambda X: drot.spectral.locally_linear_embedding(X, n_neighbors=20).eigenvalues, 1e-4
    ),
    "eigenmaps": Case(lambda X: drot.spectral.laplacian_eigenmaps(doubly(X)).eigenvalues, 1e-3),
    "diffusion": Case(lambda X: drot.spectral.diffusion_map(doubly(X)).eigenvalues, 1e-5),
    "precision": Case(lambda X: drot.spectral.precision_coupling_loss(X, start(X)), 1e-5),
    "tsne": Case(lambda X: torch.tensor(drot.tsne(symmetric(X), init=start(X), **STOP).kl), 1e-4),
    "sne": Case(  # at rest: in single precision the way there is another
        lambda X: torch.tensor(drot.sne(symmetric(X), init=start(X), tol=1e-3).kl), 1e-4
    ),
    "largevis": Case(
        lambda X: torch.tensor(drot.largevis(symmetric(X), init=start(X), **STOP).kl), 1e-4
    ),
    "umap": Case(
        lambda X: torch.tensor(
            drot.umap(
                drot.fuzzy_union(drot.umap_membership(drot.sqeuclidean(X), 8)),
                init=start(X),
                **STOP,
            ).kl
        ),
        1e-2,
    ),
    "snekhorn": Case(
        lambda X: torch.tensor(
            drot.snekhorn(doubly(X), kernel="student", init=start(X), **STOP).kl
        ),
        1e-4,
    ),
    "semi-relaxed": Case(
        lambda X: torch.tensor(drot.semi_relaxed_gw(squares(X), squares(X[:4])).objective), 5e-5
    ),
    "barycentre": Case(
        # clusters may come in any order
        lambda X: drot.srgw_barycenter(drot.sqeuclidean(X), 3).structure.flatten().sort().values,
        1e-6,
    ),
    "kernel k-means": Case(
        lambda X: torch.tensor(drot.kernel_kmeans(drot.gram(X), 3).objective), 5e-5
    ),
    "coarsen": Case(lambda X: drot.coarsen(drot.sqeuclidean(X), np.arange(N) % 3).structure, 1e-6),
    "reduction": Case(  # of a given plan: which plan a descent ends at may hang on a rounding
        lambda X: torch.tensor(
            drot.distributional_reduction(
                doubly(X), 4, init=cyclic(X), max_iter=1, on_failure="ignore"
            ).trace[1]
        ),
        5e-5,
    ),
    "preservation": Case(
        lambda X: torch.tensor(drot.neighborhood_preservation(X, start(X), 5)), 1e-2
    ),
    "trust": Case(lambda X: torch.tensor(drot.metrics.trustworthiness(X, start(X), 5)), 1e-2),
}


def gap(found: Tensor, wanted: Tensor) -> float:
    """The largest difference, as a share of the largest entry."""
    found, wanted = found.detach().cpu().double(), wanted.detach().cpu().double()
    some = wanted.isfinite()
    assert torch.equal(some, found.isfinite())
    return float((found - wanted)[some].abs().max() / wanted[some].abs().max())


@pytest.mark.parametrize("name", CASES)
def test_float32(name):
    """The table of errors: float32 against float64, on the same numbers."""
    call, bound = CASES[name]
    X = points().float()
    found, wanted = call(X), call(X.double())
    assert found.dtype == torch.float32 or found.ndim == 0
    assert gap(found, wanted) <= bound


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", CASES)
def test_device(name, dtype, gpu):
    """The same numbers on a GPU, and there they stay."""
    call, bound = CASES[name]
    X = points().to(dtype)
    found = call(X.to(gpu))
    assert found.device.type == gpu or found.ndim == 0
    assert gap(found, call(X)) <= (bound if dtype == torch.float32 else max(1e-6, bound / 20))


@pytest.mark.parametrize("prior", ["row", "binary", "edges"])
def test_device_ccpca(prior, gpu):
    """Graphs drawn on either device have the same law: means within their standard errors."""
    X = points()
    affinity = drot.entropic_affinity(drot.sqeuclidean(X), 2.0, diagonal="drop")
    there = drot.entropic_affinity(drot.sqeuclidean(X.to(gpu)), 2.0, diagonal="drop")
    options = {"prior": prior, "n_samples": 300}
    here, other = drot.ccpca(X, affinity, **options), drot.ccpca(X.to(gpu), there, **options)
    assert other.Z.device.type == gpu
    error = 6 * (here.standard_error + other.standard_error)
    centred = here.means - here.means.mean(dim=0)
    assert float((other.means.cpu() - here.means).norm() / centred.norm()) <= error
    with pytest.raises(ValueError, match=rf"X is on {gpu}.* and log_kernel on cpu; move one"):
        drot.ccpca(X.to(gpu), affinity, **options)


@pytest.mark.parametrize("name", CASES)
def test_device_same_bits(name, gpu):
    """Twice on the same GPU: the same bits, or the same to rounding where sums race."""
    call, _ = CASES[name]
    X = points().to(gpu)
    assert gap(call(X), call(X)) <= 1e-9


# ------------------------------------------------------------------------------ hard cases
HARD = {
    "far clusters": wild("far", 0, 24, 3),
    "hair": wild("hair", 1, 24, 2),
    "tails": wild("tails", 2, 24, 3),
    "outlier": wild("outliers", 3, 24, 3),
    "four decades": wild("scales", 4, 24, 3),
    "line": wild("line", 5, 24, 2),
    "tiny": wild("gaussian", 6, 24, 3, -8),
    "huge": wild("gaussian", 7, 24, 3, 8),
}
PERPLEXITIES = {"tiny": 1.01, "low": 2.0, "half": 12.0, "high": 23.0, "near n": 23.99}


def reach(X: np.ndarray, xi: float) -> bool:
    """Whether each row has few enough ties at its cheapest entry."""
    C = drot.sqeuclidean(X).dense()
    return xi > int((C == 0).sum(dim=1).max())


@pytest.mark.parametrize("xi", PERPLEXITIES.values(), ids=PERPLEXITIES)
@pytest.mark.parametrize("X", HARD.values(), ids=HARD)
def test_hard_rows(X, xi):
    """Entropic affinities where exponents are large or differences small: the plan certifies."""
    if not reach(X, xi):
        with pytest.raises(ValueError, match="out of reach"):
            drot.entropic_affinity(drot.sqeuclidean(X), xi)
        return
    P = drot.entropic_affinity(drot.sqeuclidean(X), xi).plan.numpy()
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    reached = [oracles.log_perplexity(row) for row in P]
    np.testing.assert_allclose(reached, math.log(xi), atol=3e-9)


STALLS = {("hair", "high"), ("hair", "near n")}  # tests/properties/test_fuzz.py has two more


@pytest.mark.parametrize("level", PERPLEXITIES)
@pytest.mark.parametrize("kind", HARD)
def test_hard_symmetric(kind, level):
    """The symmetric affinity: rows, entropies, and a duality gap that is closed."""
    X, xi = HARD[kind], PERPLEXITIES[level]
    cost = drot.sqeuclidean(X)
    if not reach(X, xi):
        with pytest.raises(ValueError, match="out of reach"):
            drot.symmetric_entropic_affinity(cost, xi)
        return
    try:
        found = drot.symmetric_entropic_affinity(cost, xi)
    except drot.NotConverged:
        assert (kind, level) in STALLS
        return
    P = found.plan.numpy()
    np.testing.assert_allclose(P, P.T, rtol=0, atol=1e-15)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=3e-9)
    gaps = math.log(xi) - np.array([oracles.log_perplexity(row) for row in P])
    assert gaps.max() <= 3e-9
    C = cost.dense().numpy()
    primal, size = float((P * C).sum()), float(C.max())
    assert primal - found.dual_value <= 1e-6 * size and found.dual_value - primal <= 1e-6 * size


@pytest.mark.parametrize("share", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("kind", HARD)
def test_hard_bandwidths(kind, share):
    """Sinkhorn with a bandwidth from a ten-thousandth of the mean cost to ten thousand of it."""
    cost = drot.sqeuclidean(HARD[kind])
    C = cost.dense().numpy()
    found = drot.doubly_stochastic_affinity(
        cost, bandwidth=share * float(C.mean()), max_iter=20_000, on_failure="ignore"
    )
    P = found.plan.numpy()
    assert np.isfinite(P).all() and np.abs(P - P.T).max() <= 1e-15
    assert abs(np.abs(P.sum(axis=1) - 1).max() - found.residual) <= 1e-9
    assert found.converged or share < 1


@pytest.mark.parametrize("kind", HARD)
def test_hard_matching(kind):
    """Semi-relaxed plans of such clouds: the objective is the plan's, and no vertex is better."""
    A, B = drot.sqeuclidean(HARD[kind]).dense(), drot.sqeuclidean(HARD[kind][:4]).dense()
    found = drot.semi_relaxed_gw(A, B, n_starts=2)
    T = found.plan.numpy()
    np.testing.assert_allclose(T.sum(axis=1), 1 / 24, atol=1e-12)
    size = float((A**2).mean() + (B**2).mean())
    assert found.objective == pytest.approx(energy(A, B, T), abs=1e-9 * size)
    g = drot.gw_gradient(A, B, T).numpy()
    assert (g * T).sum() - g.min(axis=1).sum() / 24 <= 1e-7 * size


# ---------------------------------------------------------------------------- the same bits
SEEDED = {
    "embedding": lambda s: drot.tsne(symmetric(points()), init="random", random_state=s).Z,
    "spectral start": lambda s: drot.spectral_start(doubly(points()), random_state=s),
    "graph": lambda s: drot.sample_graph(logs(points()), random_state=s).dense(),
    "ccpca": lambda s: drot.ccpca(
        points(),
        drot.entropic_affinity(drot.sqeuclidean(points()), 2.0, diagonal="drop"),
        random_state=s,
    ).Z,
    "plan": lambda s: drot.semi_relaxed_gw(
        squares(points()), squares(points(5)), init="random", random_state=s
    ).plan,
    "barycentre": lambda s: drot.srgw_barycenter(
        drot.sqeuclidean(points()), 4, init="random", random_state=s
    ).plan,
    "labels": lambda s: drot.kernel_kmeans(
        drot.gram(points()), 4, init="random", random_state=s
    ).labels,
    "reduction": lambda s: drot.distributional_reduction(
        doubly(points()), 4, init="random", random_state=s, on_failure="ignore"
    ).Z,
    "coot": lambda s: drot.coot_clustering(points(), 3, random_state=s).plan,
    "hyperbolic": lambda s: drot.hyperbolic.wrapped_normal(9, random_state=s),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEDED)
def test_same_seed_same_bits(name):
    """A seed, a NumPy generator or a torch generator: twice the same bits."""
    call = SEEDED[name]
    for seed in (
        lambda: 3,
        lambda: np.random.default_rng(3),
        lambda: torch.Generator().manual_seed(3),
    ):
        assert torch.equal(call(seed()), call(seed()))


THREADS = """
import sys
import numpy as np
import torch
torch.set_num_threads(int(sys.argv[1]))
import drot

rng = np.random.default_rng(0)
X = rng.normal(size=(700, 5)) + 4 * rng.integers(0, 3, size=(700, 1))
cost = drot.sqeuclidean(X)
P = drot.entropic_affinity(cost, 20.0, diagonal="drop").plan
S = drot.symmetric_entropic_affinity(cost, 20.0)
D = drot.doubly_stochastic_affinity(cost, perplexity=20.0)
start = drot.pca_start(X)
loss = drot.SNELoss(drot.symmetrize(P), "student")
there = loss.evaluate(start)
few = drot.tsne(drot.symmetrize(P), init=start, max_iter=5, on_failure="ignore")
np.savez(sys.argv[2], cost=cost.dense(), P=P, S=S.plan, D=D.plan, value=there.value,
         gradient=there.gradient, Z=few.Z)
"""
BOUNDS = {  # of one thread against two, as a share of the largest entry
    "cost": 1e-14, "P": 1e-9, "S": 1e-8, "D": 1e-9, "value": 1e-12, "gradient": 1e-10, "Z": 1e-7,
}  # fmt: skip


def test_one_thread_against_two(tmp_path):
    """Threads change the order of sums, and so the last digits only."""
    found = []
    for threads in (1, 2):
        path = tmp_path / f"{threads}.npz"
        subprocess.run(
            [sys.executable, "-c", THREADS, str(threads), str(path)],
            check=True,
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )
        with np.load(path, allow_pickle=False) as file:
            found.append(dict(file))
    for name, bound in BOUNDS.items():
        one, two = (run[name] for run in found)
        assert np.abs(one - two).max() <= bound * np.abs(one).max(), name
