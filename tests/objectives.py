"""Every objective and method with a plan that it accepts, kept (block None) or met in tiles."""

from functools import partial

import drot
import torch
from clouds import cloud
from drot.affinities.umap import umap_curve, umap_membership
from drot.embeddings.losses import BernoulliLoss, KernelLoss, SNEkhornLoss, SNELoss
from drot.embeddings.methods import largevis, sne, snekhorn, tsne, umap

A, B = umap_curve()


def cost(n: int, block: int | None = None, seed: int = 0) -> drot.costs.Pairwise:
    X = torch.from_numpy(cloud("gaussian", seed, n, 5))
    return drot.sqeuclidean(X, block=block)


def rows(n: int = 12, block: int | None = None):
    """Rows of sum 1, not symmetric, diagonal 0."""
    return drot.entropic_affinity(cost(n, block), perplexity=n / 3, diagonal="drop")


def joint(n: int = 12, block: int | None = None):
    """Symmetric, rows of any sum, diagonal 0."""
    return rows(n, block).symmetrized() if block else drot.symmetrize(rows(n))


def stochastic(n: int = 12, block: int | None = None):
    """Symmetric, rows of sum 1, with the diagonal."""
    return drot.doubly_stochastic_affinity(cost(n, block), bandwidth=3.0, tol=1e-12)


def fuzzy(n: int = 12, block: int | None = None):
    """UMAP's directed graph."""
    return umap_membership(cost(n, block), n_neighbors=min(8, n // 2))


by_rows = partial(SNELoss, normalization="rows")
kept = partial(SNELoss, diagonal="keep")
curve = partial(BernoulliLoss, kernel="curve", a=A, b=B)
SOFTMAX = {
    "sne": (rows, by_rows),
    "t-rows": (rows, partial(by_rows, kernel="student")),
    "symmetric-sne": (joint, SNELoss),
    "t-sne": (joint, partial(SNELoss, kernel="student")),
    "sum": (stochastic, kept),
    "t-sum": (stochastic, partial(kept, kernel="student")),
    "kept-rows": (stochastic, partial(kept, normalization="rows")),
    "snekhorn": (stochastic, SNEkhornLoss),
    "t-snekhorn": (stochastic, partial(SNEkhornLoss, kernel="student")),
}
BERNOULLI = {
    "largevis": (rows, BernoulliLoss),
    "largevis-symmetric": (joint, partial(BernoulliLoss, repulsion=7.0)),
    "largevis-curve": (rows, partial(BernoulliLoss, kernel="curve", repulsion=2.0)),
    "umap": (fuzzy, curve),
    "umap-strong": (fuzzy, partial(curve, repulsion=3.0)),
}
OBJECTIVES = SOFTMAX | BERNOULLI
METHODS = {
    "snekhorn": (stochastic, snekhorn),
    "t-snekhorn": (stochastic, partial(snekhorn, kernel="student")),
    "sum": (stochastic, partial(snekhorn, normalization="sum")),
    "sne": (rows, partial(sne, normalization="rows")),
    "symmetric-sne": (joint, sne),
    "t-sne": (joint, tsne),
    "largevis": (joint, largevis),
    "umap": (joint, umap),
}


def objective(name: str, n: int = 12, block: int | None = None, like=None) -> KernelLoss:
    """Of the plan that belongs to it, or of ``like(plan)``, a change of its array."""
    plan, loss = OBJECTIVES[name]
    return loss(like(loss(plan(n)).P.matrix) if like else plan(n, block))


def run(name: str, n: int = 40, block: int | None = None, **options) -> drot.embeddings.Embedding:
    plan, method = METHODS[name]
    return method(plan(n, block), **options)
