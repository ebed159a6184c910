"""Similarities, plans and the objective of Gromov-Wasserstein, term by term, for several files."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from drot.affinities.doubly_stochastic import doubly_stochastic_affinity
from drot.gromov.contraction import hard_plan

__all__ = ["KERNELS", "LOSSES", "balanced", "cloud", "cloud_cost", "energy", "hard_plans"]
__all__ += ["latent_cost", "pointwise", "problem", "soft", "squares", "weights"]

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


def cloud(n: int = 40, p: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, p)))


def squares(X) -> np.ndarray:
    """Squared distances; numbers are points of the line."""
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    return ((X[:, None] - X[None]) ** 2).sum(axis=-1)


def cloud_cost(seed: int, n: int, p: int = 3) -> np.ndarray:
    """Squared distances of a cloud whose points have scales of their own."""
    rng = np.random.default_rng(seed)
    return squares(rng.normal(size=(n, p)) * rng.uniform(0.3, 3, size=(n, 1)))


def latent_cost(Z, kernel: str) -> np.ndarray:
    """C_Z: minus the logarithm of the kernel of the points."""
    return squares(Z) if kernel == "gaussian" else np.log1p(squares(Z))


def balanced(seed: int, n: int) -> torch.Tensor:
    """A symmetric plan, positive, rows of sum 1 to rounding, from a cloud in dimension 4."""
    if n == 1:
        return torch.ones(1, 1, dtype=torch.float64)
    return doubly_stochastic_affinity(squares(cloud(n, 4, seed)), bandwidth=2.0, tol=1e-13).plan


def weights(n: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.full(n, 3.0)))


def soft(w: torch.Tensor, k: int, seed: int = 0) -> torch.Tensor:
    shares = np.random.default_rng(seed).dirichlet(np.ones(k), size=len(w))
    return torch.from_numpy(shares) * w[:, None]


def hard_plans(w: torch.Tensor, k: int) -> list[torch.Tensor]:
    labels = itertools.product(range(k), repeat=len(w))
    return [hard_plan(torch.tensor(label), w, k) for label in labels]
