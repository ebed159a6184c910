"""scikit-learn's interface to SNE, t-SNE, LargeVis, UMAP and SNEkhorn: NumPy in, NumPy out."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from .._core.checks import as_points
from .._core.run import NotConverged
from ..affinities.base import symmetrize
from ..affinities.rows import entropic_affinity
from ..affinities.symmetric import symmetric_entropic_affinity
from ..affinities.umap import umap_membership, unit_curve
from ..embeddings.embed import Embedding
from ..embeddings.losses import Kernel, PairKernel
from ..embeddings.methods import largevis, sne, snekhorn, tsne, umap
from ..graphs.graph import fuzzy_union
from .base import EmbeddingEstimator, warn_stopped


@dataclass(eq=False, repr=False)
class SNE(EmbeddingEstimator):
    r"""Stochastic neighbour embedding (SNE): Gaussian neighbours, row by row.

    Row by row, entropic affinities P of X, without self-loops, are held against the rows of a
    Gaussian kernel of the embedding. In the book's words: one random edge out of each node, in
    the data and in the embedding (priors D and D).

    Source: SNE (Hinton and Roweis, 2002); (SNE) in section 3.1 of Van Assel et al. (2022); book
    ``eq-sne``.

    Parameters
    ----------
    n_components : int
        :math:`q`, coordinates of the embedding.
    perplexity : float
        :math:`\xi`, neighbours per point; below n - 1.
    init : {"spectral", "pca", "random", "ccpca"}, array_like of shape (n, q), or Embedding
        Where the embedding starts. ``result_`` of an earlier fit continues that run.
    random_state : int, RandomState or None
        Seed of the start. The same seed on the same device gives the same bits.
    max_iter : int
        Iterations over the embedding.
    tol : float, optional
        Largest accepted residual, 0.02 by default; see :func:`drot.embed`.
    solver : {"lbfgs", "spectral", "adam"}
    device : str or torch.device, optional
        Where to compute, for instance ``"cuda"``. Default: the CPU.
    dtype : {"float64", "float32"} or dtype, optional
        Of the computation. Default: the one of X; integers become float64.
    verbose : int
        1 shows progress bars with residuals, and of the map the objective and the size.

    Attributes
    ----------
    embedding_ : ndarray, shape (n, q)
    affinity_ : ndarray, shape (n, n), or Affinity
        P, rows of sum 1, diagonal 0; where it does not fit into memory, met in tiles.
    kl_divergence_ : float
        :math:`\sum_i \mathrm{KL}(P_i | Q_i)`, in nats.
    n_iter_ : int
    result_ : Embedding
        With the residual, the size and the trace.
    n_features_in_ : int

    Notes
    -----
    Exact: every pair counts, so memory and time grow as n^2 and, once, n^3. There is no
    ``transform``: a new point would change the plan of all. Where the solver stops short, ``fit``
    gives a ``ConvergenceWarning``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> SNE(perplexity=5, random_state=0).fit_transform(X).shape
    (30, 2)
    """

    perplexity: float = 30.0
    _symmetric: ClassVar[bool] = False

    def _plan(self, cost, callback):
        affinity = entropic_affinity(cost, self.perplexity, diagonal="drop")
        if cost.block is not None:
            return affinity
        return symmetrize(affinity) if self._symmetric else affinity.plan

    def _embed(self, plan, options):
        return sne(plan, normalization="rows", **options)


class TSNE(SNE):
    r"""t-SNE, exact: Student's kernel, one softmax over all pairs.

    Exact t-SNE: entropic affinities of X, without self-loops, made symmetric, against one softmax
    over all pairs. In the book's words: one edge out of each node in the data, n edges in all in
    the embedding (priors D and E). No early exaggeration.

    Source: t-SNE (Van der Maaten and Hinton, 2008); (Symmetric-SNE) in section 3.1 of Van Assel et
    al. (2022); book ``eq-sne``.

    Parameters
    ----------
    n_components, perplexity, init, random_state, max_iter, tol, solver, device, dtype, verbose
        As in :class:`SNE`.

    Attributes
    ----------
    affinity_ : ndarray, shape (n, n), or Affinity
        :math:`P = (P^D + (P^D)^\top) / 2`, symmetric, of mass n.
    kl_divergence_ : float
        KL(P | Q) in nats, for mass n: n times that of scikit-learn.

    Notes
    -----
    Where P does not fit into memory, ``affinity_`` is :math:`P^D`, an affinity met in tiles, and
    ``kl_divergence_`` is KL(:math:`P^D` | Q). It is larger by a number that Q does not enter, so
    the embedding is the same.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = TSNE(perplexity=5, random_state=0).fit(X)
    >>> model.embedding_.shape, round(float(model.affinity_.sum()), 6)
    ((30, 2), 30.0)
    """

    _symmetric = True

    def _embed(self, plan, options):
        return tsne(plan, **options)


@dataclass(eq=False, repr=False)
class LargeVis(SNE):
    r"""LargeVis, exact: neighbours are joined and others are not, pair by pair.

    Entropic affinities of X, without self-loops, made symmetric, are probabilities of edges that
    Student's kernel of the embedding is to give. In the book's words: one edge out of each
    node in the data, independent edges in the embedding (priors D and B).

    Source: (LargeVis) in section 3.1 of Van Assel et al. (2022), after Tang et al. (2016);
    book ``prp-ce-largevis``.

    Parameters
    ----------
    n_components, perplexity, init, random_state, max_iter, tol, solver, device, dtype, verbose
        As in :class:`SNE`.
    kernel : {"student", "curve"}
        :math:`Q = 1 / (2 + d^2)`, of the derivation, or :math:`1 / (1 + d^2)`, of the software;
        see :class:`drot.BernoulliLoss`.
    repulsion : float
        :math:`\gamma`, at least 1 to be safe: the weight of the repulsion.

    Attributes
    ----------
    affinity_ : ndarray, shape (n, n), or Affinity
        :math:`P = \overline P / 2` with :math:`\overline P = P^D + (P^D)^\top`, symmetric, of
        mass n. The objective of P over ordered pairs is that of :math:`\overline P` over
        unordered ones, with :math:`2 - \overline P` for the pairs not joined, and that of
        :math:`P^D` itself.
    kl_divergence_ : float
        Divergence of the edges, in nats, summed over ordered pairs.

    Notes
    -----
    As in :class:`TSNE`: where P does not fit into memory, ``affinity_`` is :math:`P^D` and
    ``kl_divergence_`` its own.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> LargeVis(perplexity=5, random_state=0).fit_transform(X).shape
    (30, 2)
    """

    _: KW_ONLY
    kernel: PairKernel = "student"
    repulsion: float = 1.0
    _symmetric = True

    def _embed(self, plan, options):
        return largevis(plan, kernel=self.kernel, repulsion=self.repulsion, **options)


@dataclass(eq=False, repr=False)
class UMAP(EmbeddingEstimator):
    r"""UMAP, exact: two fuzzy graphs agree, pair by pair.

    Memberships of X, on nearest neighbours, joined by a fuzzy union, against the probabilities
    :math:`Q = 1 / (1 + a d^{2 b})` of the embedding, all pairs of it: UMAP's cross-entropy without
    its sampling. In the book's words: independent edges in the data and in the embedding (B and B).

    Source: (UMAP) in section 3.1 of Van Assel et al. (2022), after McInnes et al. (2018);
    book ``prp-ce-umap``.

    Parameters
    ----------
    n_components : int
        :math:`q`, coordinates of the embedding.
    n_neighbors : int
        :math:`k`, from 2 to n, the point itself among them; also the perplexity of a start by
        ``"ccpca"``, which needs k < n - 1.
    min_dist, spread : float
        Of the curve; see :func:`drot.umap_curve`. The embedding at another spread, for the same
        ``min_dist / spread``, is the same one enlarged.
    local_connectivity : float
        Neighbours that are joined for certain; see :func:`drot.umap_membership`.
    repulsion : float
        :math:`\gamma`, at least 1: the weight of the repulsion.
    init, random_state, max_iter, tol, solver, device, dtype, verbose
        As in :class:`SNE`.

    Attributes
    ----------
    embedding_ : ndarray, shape (n, q)
    affinity_ : ndarray, shape (n, n)
        :math:`\widetilde P`, symmetric, entries from 0 to 1, diagonal 0.
    kl_divergence_ : float
        Divergence of the edges, in nats, summed over ordered pairs.
    n_iter_ : int
    result_ : Embedding
    n_features_in_ : int

    Notes
    -----
    As in :class:`SNE`. All pairs repel, where the software draws a few: the picture is wider.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> UMAP(n_neighbors=5, random_state=0).fit_transform(X).shape
    (30, 2)
    """

    _neighbors = "n_neighbors"
    n_neighbors: int = 15
    _: KW_ONLY
    min_dist: float = 0.1
    spread: float = 1.0
    local_connectivity: float = 1.0
    repulsion: float = 1.0

    def _plan(self, cost, callback):
        membership = umap_membership(
            cost, self.n_neighbors, local_connectivity=self.local_connectivity
        )
        return fuzzy_union(membership)

    def _embed(self, plan, options):
        # in units of the spread: guard, tolerance and starts are for a curve of length 1
        a, b = unit_curve(self.min_dist, self.spread)
        init = options["init"]
        if isinstance(init, Embedding):
            init = replace(init, Z=init.Z / self.spread)
        elif not isinstance(self.init, str):
            init = as_points(init, "init") / self.spread
        found = umap(plan, a=a, b=b, repulsion=self.repulsion, **{**options, "init": init})
        return replace(found, Z=found.Z * self.spread)


@dataclass(eq=False, repr=False)
class SNEkhorn(EmbeddingEstimator):
    r"""SNEkhorn: two doubly stochastic plans agree, with a Gaussian kernel.

    Squared distances between the rows of X give the symmetric entropic affinity P, in which each
    point has the same perplexity; :func:`drot.snekhorn` then minimises :math:`\mathrm{KL}(P | Q_Z)`
    over the embedding Z.

    Source: (SNEkhorn) in section 4 of SNEkhorn (Van Assel et al., 2023); book ``eq-snekhorn``.

    Parameters
    ----------
    n_components : int
        :math:`q`, coordinates of the embedding.
    perplexity : float
        :math:`\xi`, neighbours per point, itself among them; below the number of points.
    init : {"spectral", "pca", "random", "ccpca"}, array_like of shape (n, q), or Embedding
        Where the embedding starts. ``result_`` of an earlier fit continues that run.
    random_state : int, RandomState or None
        Seed of the start. The same seed on the same device gives the same bits.
    max_iter : int
        Iterations over the embedding.
    tol : float, optional
        Largest accepted residual, 0.02 by default; see :func:`drot.embed`.
    solver : {"lbfgs", "spectral", "adam"}
    device : str or torch.device, optional
        Where to compute, for instance ``"cuda"``. Default: the CPU.
    dtype : {"float64", "float32"} or dtype, optional
        Of the computation. Default: the one of X; integers become float64.
    verbose : int
        1 shows progress bars with residuals, and of the map the objective and the size.

    Attributes
    ----------
    embedding_ : ndarray, shape (n, q)
    affinity_ : ndarray, shape (n, n), or Affinity
        P, rows of sum 1; where it does not fit into memory, met in tiles.
    kl_divergence_ : float
        Generalised :math:`\mathrm{KL}(P | Q_Z)`, in nats for total mass n.
    n_iter_ : int
    result_ : Embedding
        With the residual, the size and the trace.
    n_features_in_ : int

    Notes
    -----
    Memory and time grow as n^2 and, once, n^3. There is no ``transform``: a new point would
    change the plan of all. Where a solver stops short, ``fit`` gives a ``ConvergenceWarning``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = SNEkhorn(perplexity=5, random_state=0)
    >>> model.fit_transform(X).shape, model.kl_divergence_ > 0
    ((30, 2), True)
    """

    perplexity: float = 30.0
    _kernel: ClassVar[Kernel] = "gaussian"

    def _plan(self, cost, callback):
        affinity = symmetric_entropic_affinity(
            cost, self.perplexity, callback=callback, on_failure="ignore"
        )
        warn_stopped(self, affinity.converged, affinity.residual, "affinity")
        off = (float((tile.sum(dim=1) - 1).abs().max()) for _, tile in affinity.tiles())
        if not affinity.converged and max(off) > 1e-3:
            raise NotConverged(
                f"{type(self).__name__}: the affinity stopped at a residual of "
                f"{affinity.residual:.1e}, too far from one that can be embedded; pass "
                "dtype='float64', or another perplexity"
            )
        return affinity.plan if cost.block is None else affinity

    def _embed(self, plan, options):
        return snekhorn(plan, kernel=self._kernel, **options)


class TSNEkhorn(SNEkhorn):
    r"""t-SNEkhorn: two doubly stochastic plans agree, with Student's kernel.

    As :class:`SNEkhorn`, with :math:`\log(1 + \|z_i - z_j\|^2)` for the cost of the embedding:
    tails as heavy as those of t-SNE, which give clusters room.

    Source: t-SNEkhorn in section 4 of SNEkhorn (Van Assel et al., 2023); book ``eq-snekhorn``.

    Parameters
    ----------
    n_components, perplexity, init, random_state, max_iter, tol, solver, device, dtype, verbose
        As in :class:`SNEkhorn`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> TSNEkhorn(perplexity=5, random_state=0).fit_transform(X).shape
    (30, 2)
    """

    _kernel = "student"
