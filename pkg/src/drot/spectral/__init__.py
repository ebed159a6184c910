r"""Spectral methods as one: kernel PCA, each with a kernel of its own (Chapter 10).

All minimise, over centred coordinates Z and for a symmetric kernel K with point masses m,

.. math:: \sum_{ij} m_i m_j \bigl( K_{ij} - \langle z_i, z_j \rangle \bigr)^2 .

Column k of Z has :math:`\sum_i m_i z_{ik}^2 = \mu_k`, the k-th largest eigenvalue. This is done in
``kernel_pca``; three kernels are in ``methods``; PCA, and the coupling of precisions that it
minimises, in ``principal``; PCA of the components of random graphs in ``connected``.

All but PCA and ccPCA hold an n x n array and decompose it: for up to some thousands of points.
"""

from .connected import ConnectedPCA
from .kernel_pca import SpectralEmbedding, kernel_pca
from .methods import (
    classical_mds,
    diffusion_map,
    laplacian_eigenmaps,
)
from .principal import pca, precision_coupling_loss, precision_coupling_optimum

__all__ = [
    "ConnectedPCA", "SpectralEmbedding", "classical_mds", "diffusion_map", "kernel_pca",
    "laplacian_eigenmaps", "pca", "precision_coupling_loss",
    "precision_coupling_optimum",
]  # fmt: skip
