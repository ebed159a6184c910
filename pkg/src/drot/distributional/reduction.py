"""What distributional reduction gives, and the names that its users write (Chapter 14)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..gromov.reading import as_similarity
from ..gromov.search import SemiRelaxedGW

OutputKernel = Literal["student", "gaussian", "gram"]
Clustering = Literal["spectral", "kmeans"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DistributionalReduction(SemiRelaxedGW):
    """A few weighted prototypes that stand for all points in few dimensions, and their plan."""

    Z: Tensor  #: (k, q) positions of the prototypes, in units of the kernel's bandwidth
    structure: Tensor  #: (k, k) Cbar, the similarity of the prototypes, in the unit of C

    @property
    def n_used(self) -> int:
        """Prototypes with a positive weight."""
        return int((self.weights > 0).sum())

    @property
    def effective_number(self) -> float:
        """Perplexity of the weights; as many equal weights have the same entropy."""
        q = self.weights.double()
        return math.exp(-float(torch.xlogy(q, q).sum()))

    def medoids(self, similarity) -> Tensor:
        r"""The point that is most similar to each prototype's own, (k,).

        :math:`\arg \max_i (C T)_{ik}`, and -1 for a prototype without weight.
        """
        C = as_similarity(similarity, "similarity")
        n = self.plan.shape[0]
        if C.shape[0] != n:
            raise ValueError(f"similarity compares {C.shape[0]} points and the plan has {n}")
        T = self.plan.to(C.device, C.dtype)
        return (C @ T).argmax(dim=0).masked_fill(~T.any(dim=0), -1)

    def __repr__(self) -> str:
        n, k = self.plan.shape
        return (
            f"{type(self).__name__}({n} points, {self.n_used} of {k} prototypes, "
            f"objective={self.objective:.6g}, residual={self.residual:.1e}, n_iter={self.n_iter})"
        )
