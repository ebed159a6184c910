"""Similarities, plans and the objective of Gromov-Wasserstein, term by term, for several files."""

import itertools

import drot
import numpy as np
import torch
from drot.affinities.doubly_stochastic import doubly_stochastic_affinity
from drot.gromov.contraction import Problem, Terms, hard_plan
from drot.gromov.reading import as_pair

KERNELS = ("gaussian", "student")
LOSSES = ["square", "kl"]


def pointwise(A, B, loss: str) -> np.ndarray:
    """L of all entries of A with all of B, (n, n, k, k), as the losses are written."""
    a, b = np.asarray(A)[:, :, None, None], np.asarray(B)[None, None]
    if loss == "square":
        return (a - b) ** 2 + 0 * a
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a > 0, a * np.log(a / b) - a + b, b + 0 * a)


def energy(A, B, T, loss: str = "square") -> float:
    """The four-index sum, term by term."""
    return float(np.einsum("ijkl,ik,jl->", pointwise(A, B, loss), np.asarray(T), np.asarray(T)))


def problem(seed: int = 0, n: int = 6, k: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Two positive symmetric similarities."""
    rng = np.random.default_rng(seed)
    A, B = rng.uniform(0.1, 2, size=(n, n)), rng.uniform(0.1, 2, size=(k, k))
    return torch.from_numpy(A + A.T), torch.from_numpy(B + B.T)


def fixed(A, B, w: torch.Tensor, loss: str) -> Problem:
    """Their objective as a function of the plan."""
    C, structure, L = as_pair(A, B, loss)
    return Problem(Terms(C, w, L), structure)


def cloud(n: int = 40, p: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, p)))


def points(seed: int, n: int, q: int = 2, scale: float = 1.0) -> torch.Tensor:
    """Of a map."""
    return scale * cloud(n, q, seed)


def affinity(n: int = 12, perplexity: float = 4.0, seed: int = 0) -> torch.Tensor:
    """Symmetric entropic, of two groups."""
    X = cloud(n, 3, seed)
    X[: n // 2] += 3
    return drot.symmetric_entropic_affinity(drot.sqeuclidean(X), perplexity=perplexity).plan


def squares(X) -> np.ndarray:
    """Squared distances; numbers are points of the line."""
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    return ((X[:, None] - X[None]) ** 2).sum(axis=-1)


def cloud_cost(seed: int, n: int, p: int = 3) -> np.ndarray:
    """Squared distances of a cloud whose points have scales of their own."""
    rng = np.random.default_rng(seed)
    return squares(rng.normal(size=(n, p)) * rng.uniform(0.3, 3, size=(n, 1)))


def graph_cost(seed: int, n: int, decades: float) -> np.ndarray:
    """A cost in D over some decades, which no Euclidean space gives: its Gibbs kernel may be
    indefinite, and many rows slack."""
    C = 10 ** np.random.default_rng(seed).uniform(-decades / 2, decades / 2, size=(n, n))
    return (C + C.T) / 2 * (1 - np.eye(n))


def in_tiles(C, block: int | None, **known: bool) -> drot.costs.Pairwise:
    """A matrix as a cost that computes its rows, infinite entries too."""
    C = torch.as_tensor(C)
    rows_of = lambda rows: C[rows].clone()  # noqa: E731
    return drot.costs.Pairwise(rows_of, tuple(C.shape), C, block=block, **known)


def latent_cost(Z, kernel: str) -> np.ndarray:
    """C_Z: minus the logarithm of the kernel of the points."""
    return squares(Z) if kernel == "gaussian" else np.log1p(squares(Z))


def balanced(seed: int, n: int) -> torch.Tensor:
    """A symmetric plan, positive, rows of sum 1 to rounding, from a cloud in dimension 4."""
    if n == 1:
        return torch.ones(1, 1, dtype=torch.float64)
    return doubly_stochastic_affinity(squares(cloud(n, 4, seed)), bandwidth=2.0, tol=1e-13).plan


def same_points(A, B, atol: float) -> None:
    """Equal up to an orthogonal matrix on the right."""
    A, B = np.asarray(A), np.asarray(B)
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=atol)


def weights(n: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.full(n, 3.0)))


def soft(w: torch.Tensor, k: int, seed: int = 0) -> torch.Tensor:
    shares = np.random.default_rng(seed).dirichlet(np.ones(k), size=len(w))
    return torch.from_numpy(shares) * w[:, None]


def kmeans(Y, h, labels) -> float:
    """Weighted k-means cost of points, cluster by cluster."""
    return sum(
        float(h[m] @ np.square(Y[m] - np.average(Y[m], axis=0, weights=h[m])).sum(axis=1))
        for m in (labels == a for a in set(labels.tolist()))
    )


def cut(P, labels) -> float:
    """The normalised cut by its definition, group by group."""
    groups = [labels == a for a in set(labels.tolist())]
    return sum(P[np.ix_(mine, ~mine)].sum() / P[mine].sum() for mine in groups)


def hard_plans(w: torch.Tensor, k: int) -> list[torch.Tensor]:
    labels = itertools.product(range(k), repeat=len(w))
    return [hard_plan(torch.tensor(label), w, k) for label in labels]


def reach(W) -> np.ndarray:
    """Whether two nodes of a graph are connected, by powers of the adjacency matrix."""
    step = (W + W.T > 0) | np.eye(len(W), dtype=bool)
    return np.linalg.matrix_power(step.astype(np.int64), len(W)) > 0


def partitions(items: list[int]):
    """All partitions into non-empty parts."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for k in range(len(rest)):
            yield [*rest[:k], [items[0], *rest[k]], *rest[k + 1 :]]


def excess(W: np.ndarray, s: float, p: int) -> float:
    """Largest p (m - 1) - 2 s w over the partitions of the components of W into m >= 2 parts."""
    found = [-np.inf]
    for row in np.unique(reach(W), axis=0):
        for parts in partitions(np.flatnonzero(row).tolist()):
            colour = {i: k for k, part in enumerate(parts) for i in part}
            cut = sum(W[i, j] for i in colour for j in colour if colour[i] != colour[j])
            if len(parts) > 1:
                found.append(p * (len(parts) - 1) - 2 * s * cut)
    return max(found)
