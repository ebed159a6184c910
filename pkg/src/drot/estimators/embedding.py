"""scikit-learn's interface to the embeddings: SNE, t-SNE, LargeVis, UMAP, SNEkhorn and ccPCA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from sklearn.metrics import pairwise_distances
from torch import Tensor

from .._core.checks import (
    as_count,
    as_flag,
    as_positive,
    check_choice,
    check_finite,
    check_no_entry,
    check_squares,
)
from .._core.run import read_limits
from ..affinities.base import symmetrize
from ..affinities.rows import entropic_affinity
from ..affinities.umap import membership_rows, umap_curve, umap_membership
from ..costs.array import UNKEPT, Pairwise, as_pairwise, check_symmetric
from ..costs.distances import sqeuclidean
from ..costs.kernels import KernelName
from ..embeddings.embed import Embedding, MapInit, MapSolver, embed, read_positions
from ..embeddings.losses import BernoulliLoss, KernelLoss, PairKernel, SNEkhornLoss, SNELoss
from ..embeddings.place import place
from ..graphs.graph import fuzzy_union
from ..graphs.priors import Prior
from ..spectral.connected import ConnectedPCA, ccpca
from ..spectral.principal import pca_start
from .base import BaseEmbedding, as_precomputed, with_parameters

# of scikit-learn's; not those that take scales from the data, which new points would change
EUCLIDEAN = ("euclidean", "l2", "minkowski")
METRICS = (
    *EUCLIDEAN, "precomputed", "manhattan", "cityblock", "l1", "cosine", "correlation", "chebyshev",
    "canberra", "braycurtis", "hamming",
)  # fmt: skip


@with_parameters
class EmbeddingEstimator(BaseEmbedding):
    """Cost, plan, objective, embedding: a subclass says which plan and which objective.

    ``_plan(cost)`` is the plan (n, n), or, where the cost is met in tiles, an affinity that has it.
    ``_objective()`` refuses options that do not fit, before there is a plan, and gives the loss as
    a function of the plan alone.
    """

    _neighbors: ClassVar[str] = "perplexity"  # the parameter that counts the neighbours
    _tol: ClassVar[float] = 0.01  # where none is given: benchmarks/results/defaults_maps.csv
    n_components: int = 2
    _: KW_ONLY
    init: MapInit = "spectral"
    metric: str = "euclidean"
    max_iter: int = 2000
    tol: float | None = None
    solver: MapSolver = "lbfgs"
    keep_affinity: bool = True

    def _task(self, points: Tensor, seed: int):
        keep = as_flag("keep_affinity", self.keep_affinity)  # all options before the affinity
        check_choice("solver", self.solver, MapSolver)
        tol = self._tol if self.tol is None else self.tol
        read_limits(tol, self.max_iter, "ignore", points.dtype)
        as_count("n_components", self.n_components, 1)
        make = self._objective()
        cost = self._distances(points)
        init, plan = self._init(points, cost, seed), self._plan(cost)
        objective = make(plan)
        self._affinity = plan if keep else None
        self._settle = partial(place, kernel=objective.kernel, repulsion=objective.repulsion)
        solve = partial(
            embed, objective, init, n_components=self.n_components, solver=self.solver,
            tol=tol, max_iter=self.max_iter, random_state=seed, on_failure="ignore",
        )  # fmt: skip
        return "embedding", solve

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == "precomputed"
        return tags

    def _plan(self, cost: Pairwise):
        raise NotImplementedError

    def _objective(self) -> Callable[..., KernelLoss]:
        raise NotImplementedError

    def _keep(self, found: Embedding) -> None:
        self.result_: Embedding = found
        self.embedding_ = found.Z.cpu().numpy()
        self.kl_divergence_ = found.kl / len(found.Z)
        self.n_iter_ = max(1, found.n_iter)

    @property
    def affinity_(self) -> np.ndarray:
        """P, (n, n): formed when it is asked for where it was met in tiles."""
        known = self._affinity if "result_" in vars(self) else None
        if known is None:
            raise AttributeError("affinity_")  # __getattr__ says why
        return getattr(known, "plan", known).cpu().numpy()

    def _init(self, points: Tensor, cost: Pairwise, seed: int):
        if not isinstance(self.init, str):
            read_positions(self.init, len(points), self.n_components)  # which refuses others
            return self.init
        check_choice("init", self.init, ("spectral", "pca", "random", "ccpca"))
        if self.metric == "precomputed" and self.init in ("pca", "ccpca"):
            raise ValueError(
                f"init={self.init!r} needs points, and metric='precomputed' has their distances; "
                "pass init='spectral', 'random' or an array"
            )
        if self.init == "pca":
            return pca_start(points, n_components=self.n_components)
        if self.init == "ccpca":
            xi = getattr(self, self._neighbors)
            graph = entropic_affinity(cost, perplexity=xi, diagonal="drop")
            return ccpca(points, graph, n_components=self.n_components, random_state=seed).start
        return self.init

    def _distances(self, points: Tensor) -> Pairwise:
        check_choice("metric", self.metric, METRICS)
        if self.metric in EUCLIDEAN:
            return super()._distances(points)
        if self.metric == "precomputed":
            points = as_precomputed(points, "metric")
        return as_pairwise(self._squares_between(points))

    def _squares_between(self, points: Tensor, fitted: Tensor | None = None) -> Tensor:
        """Squares of distances by ``metric``, to the ``fitted`` points or of all: dense."""
        D = points
        if self.metric != "precomputed":
            if self.metric in ("cosine", "correlation"):
                cosine = self.metric == "cosine"
                length = (points if cosine else points - points[:, :1]).abs().amax(dim=1)
                says = (
                    f"{{at}} of X is {'zero' if cosine else 'constant'}: it has no {self.metric} "
                )
                check_no_entry(length == 0, length, says + "distance; drop it")
            known = None if fitted is None else fitted.cpu().numpy()
            found = pairwise_distances(points.cpu().numpy(), known, metric=self.metric)
            D = torch.as_tensor(found).to(points)
            check_finite(D, f"X has no {self.metric} distance everywhere: the array of distances")
            if fitted is not None and self.metric in ("cosine", "correlation"):  # unit-free
                rounding = 4 * points.shape[1] ** 0.5 * torch.finfo(D.dtype).eps
                D.masked_fill_(rounding >= D, 0.0)  # copies, which scikit-learn has off 0
            D = D if fitted is not None else (D + D.T) / 2
        elif (D < 0).any():
            raise ValueError(
                "Negative values in data: metric='precomputed' takes distances, not similarities"
            )
        elif fitted is None:
            if D.diagonal().any():
                raise ValueError(
                    "X has a diagonal that is not 0 with metric='precomputed': it holds "
                    "similarities, not distances; pass distances"
                )
            check_symmetric(as_pairwise(D), "the distances X")
        check_squares(D, "X", small=fitted is not None)
        return D.square()

    def _tiles_to(self, points: Tensor, fitted: Tensor) -> Callable[[slice], Tensor]:
        if self.metric in EUCLIDEAN:
            return super()._tiles_to(points, fitted)
        return lambda rows: self._squares_between(points[rows], fitted)

    def _place(self, P: Tensor, Z: Tensor) -> tuple[Tensor, float]:
        result = self.result_
        dual = None if result.dual is None else result.dual.to(P.device, torch.float64)
        # the forces of a map in float32 round to more than its points may be off
        found = self._settle(P.double(), Z.double(), dual=dual)
        return found.Z.to(P), float(found.residual.max())


@with_parameters
class SNE(EmbeddingEstimator):
    r"""Stochastic neighbour embedding (SNE): Gaussian neighbours, row by row.

    Row by row, entropic affinities P of X, without self-loops, are held against the rows of a
    Gaussian kernel of the embedding,

    .. math:: \min_{Z \in \mathbb R^{n \times q}} \; \sum_i \mathrm{KL}(P_{i:} | Q_{i:}), \qquad
              Q_{ij} = \frac{e^{-\|z_i - z_j\|^2}}{\sum_{l \ne i} e^{-\|z_i - z_l\|^2}},

    by :func:`drot.embed`. In the book's words: one random edge out of each node, in the data and in
    the embedding (priors D and D).

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
    metric : str
        ``"euclidean"`` (or ``"l2"``), ``"manhattan"`` (or ``"l1"``, ``"cityblock"``),
        ``"cosine"``, ``"correlation"``, ``"chebyshev"``, ``"canberra"``, ``"braycurtis"`` or
        ``"hamming"``, as scikit-learn has them, or ``"precomputed"``: X are distances (n, n), and
        (b, n) for ``transform``. The cost is the squared distance.
    random_state : int, Generator of NumPy or torch, RandomState or None
        Seed of the start. The same seed gives the same bits, on one device with one number of
        threads.
    max_iter : int
        Iterations over the embedding.
    tol : float, optional
        Largest accepted residual, 0.01 by default; see :func:`drot.embed`.
    solver : {"lbfgs", "adam"}
    device : str or torch.device, optional
        Where to compute, for instance ``"cuda"``. Default: the CPU.
    dtype : {"float64", "float32"} or dtype, optional
        Of the computation. Default: the one of X; integers become float64.
    verbose : int
        1 shows progress bars with residuals, and of the map the objective and the size.
    callback : callable, optional
        Called as ``callback(iteration, residual, Z, value)`` at the start and after each
        iteration; returning True ends the run, and the estimator keeps what was found.
    keep_affinity : bool
        Whether ``affinity_`` is kept, n x n numbers that the map itself does not need.

    Attributes
    ----------
    embedding_ : ndarray, shape (n, q)
        Centred, and without a unit: the kernel has the bandwidth 1.
    affinity_ : ndarray, shape (n, n)
        P, rows of sum 1, diagonal 0. Where the fit met it in tiles it is formed when it is asked
        for, which raises ``MemoryError`` where it does not fit.
    kl_divergence_ : float
        Mean over the rows of :math:`\mathrm{KL}(P_i | Q_i)`, in nats: ``result_.kl`` by n.
    n_iter_ : int
    result_ : Embedding
        With the residual, the size and the trace.
    n_features_in_ : int

    Raises
    ------
    ValueError
        If X is no finite table of 2 points or more, the perplexity is out of their reach, ``init``
        does not fit, or a name does not exist.
    Interrupted
        At an interrupt from the keyboard: the estimator keeps what was found.

    Notes
    -----
    Exact: every pair counts, so memory and time grow as n^2 and, once, n^3.
    ``transform`` places new points and leaves the others. Where the solver stops short, ``fit``
    gives a ``ConvergenceWarning``. Up to 3162 points ``fit`` runs on one thread (book
    ``sec-sca-wrong``).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> SNE(perplexity=5, random_state=0).fit_transform(X).shape
    (30, 2)
    """

    perplexity: float = 30.0
    _symmetric: ClassVar[bool] = False

    def _plan(self, cost):
        affinity = entropic_affinity(cost, perplexity=self.perplexity, diagonal="drop")
        if cost.block is not None:
            return affinity.symmetrized() if self._symmetric else affinity
        return symmetrize(affinity.plan) if self._symmetric else affinity.plan

    def _objective(self) -> Callable[..., KernelLoss]:
        return partial(SNELoss, normalization="rows")


class TSNE(SNE):
    r"""t-SNE, exact: Student's kernel, one softmax over all pairs.

    Entropic affinities of X, without self-loops, made symmetric, against one softmax over all
    pairs,

    .. math:: \min_{Z \in \mathbb R^{n \times q}} \; \mathrm{KL}(P | Q), \qquad
              Q_{ij} = n \frac{(1 + \|z_i - z_j\|^2)^{-1}}
                             {\sum_{k \ne l} (1 + \|z_k - z_l\|^2)^{-1}},

    by :func:`drot.embed`. In the book's words: one edge out of each node in the data, n edges in
    all in the embedding (priors D and E). No early exaggeration.

    Source: t-SNE (Van der Maaten and Hinton, 2008); (Symmetric-SNE) in section 3.1 of Van Assel et
    al. (2022); book ``eq-sne``.

    Parameters
    ----------
    n_components, perplexity, init, metric, random_state, max_iter, tol, solver, device, dtype,
    verbose, callback, keep_affinity
        As in :class:`SNE`.

    Attributes
    ----------
    affinity_ : ndarray, shape (n, n)
        :math:`P = (P^D + (P^D)^\top) / 2`, symmetric, of mass n; as in :class:`SNE`.
    kl_divergence_ : float
        KL(P | Q) in nats, for mass 1, as in scikit-learn: ``result_.kl`` by n.
    embedding_, n_iter_, result_, n_features_in_
        As in :class:`SNE`.

    Raises
    ------
    ValueError, Interrupted
        As in :class:`SNE`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = TSNE(perplexity=5, random_state=0).fit(X)
    >>> model.embedding_.shape, round(float(model.affinity_.sum()), 6)
    ((30, 2), 30.0)
    """

    _symmetric = True

    def _objective(self):
        return partial(SNELoss, kernel="student")


@with_parameters
class LargeVis(SNE):
    r"""LargeVis, exact: neighbours are joined and others are not, pair by pair.

    Entropic affinities of X, without self-loops, made symmetric, are probabilities of edges that
    Student's kernel of the embedding is to give,

    .. math:: \min_{Z \in \mathbb R^{n \times q}} \; - \sum_{i \ne j} P_{ij} \log Q_{ij}
              + (\gamma - P_{ij}) \log (1 - Q_{ij}), \qquad
              Q_{ij} = \frac{1}{2 + \|z_i - z_j\|^2},

    by :func:`drot.embed`. In the book's words: one edge out of each node in the data, independent
    edges in the embedding (priors D and B).

    Source: (LargeVis) in section 3.1 of Van Assel et al. (2022), after Tang et al. (2016);
    book ``prp-ce-largevis``.

    Parameters
    ----------
    n_components, perplexity, init, metric, random_state, max_iter, tol, solver, device, dtype,
    verbose, callback, keep_affinity
        As in :class:`SNE`.
    kernel : {"student", "curve"}
        :math:`Q = 1 / (2 + d^2)`, of the derivation, or :math:`1 / (1 + d^2)`, of the software;
        see :class:`drot.BernoulliLoss`.
    repulsion : float
        :math:`\gamma`, at least 1 to be safe: the weight of the repulsion.

    Attributes
    ----------
    affinity_ : ndarray, shape (n, n)
        :math:`P = \overline P / 2` with :math:`\overline P = P^D + (P^D)^\top`, symmetric, of
        mass n. The objective of P over ordered pairs is that of :math:`\overline P` over
        unordered ones, with :math:`2 - \overline P` for the pairs not joined, and that of
        :math:`P^D` itself.
    kl_divergence_ : float
        Divergence of the edges, in nats, summed over ordered pairs, by n.
    embedding_, n_iter_, result_, n_features_in_
        As in :class:`SNE`.

    Raises
    ------
    ValueError, Interrupted
        As in :class:`SNE`.

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

    def _objective(self):
        check_choice("kernel", self.kernel, PairKernel)
        repulsion = as_positive("repulsion", self.repulsion)
        return partial(BernoulliLoss, kernel=self.kernel, repulsion=repulsion)


@with_parameters
class UMAP(EmbeddingEstimator):
    r"""UMAP, exact: two fuzzy graphs agree, pair by pair.

    Memberships of X, on nearest neighbours, joined by a fuzzy union, against the probabilities of
    edges in the embedding,

    .. math:: \min_{Z \in \mathbb R^{n \times q}} \; - \sum_{i \ne j} \widetilde P_{ij} \log Q_{ij}
              + (\gamma - \widetilde P_{ij}) \log (1 - Q_{ij}), \qquad
              Q_{ij} = \frac{1}{1 + a \|z_i - z_j\|^{2 b}},

    by :func:`drot.embed`: UMAP's cross-entropy, of all pairs, without its sampling. In the book's
    words: independent edges in the data and in the embedding (priors B and B).

    Source: (UMAP) in section 3.1 of Van Assel et al. (2022), after McInnes et al. (2018);
    book ``prp-ce-umap``.

    Parameters
    ----------
    n_components : int
        :math:`q`, coordinates of the embedding.
    n_neighbors : int
        :math:`k`, from 2 to n, the point itself among them; also the perplexity of a start by
        ``"ccpca"``, which needs k < n - 1.
    min_dist : float
        Of the curve, from 0 to 1; see :func:`drot.umap_curve`.
    repulsion : float
        :math:`\gamma`, at least 1: the weight of the repulsion.
    tol : float, optional
        Largest accepted residual, 0.005 by default; see :func:`drot.embed`.
    init, metric, random_state, max_iter, solver, device, dtype, verbose, callback, keep_affinity
        As in :class:`SNE`.

    Attributes
    ----------
    embedding_ : ndarray, shape (n, q)
        Centred, in the unit of ``min_dist``.
    affinity_ : ndarray, shape (n, n)
        :math:`\widetilde P`, symmetric, entries from 0 to 1, diagonal 0.
    kl_divergence_ : float
        Divergence of the edges, in nats, summed over ordered pairs, by n.
    n_iter_, result_, n_features_in_
        As in :class:`SNE`.

    Raises
    ------
    ValueError, Interrupted
        As in :class:`SNE`.

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
    _tol = 0.005
    n_neighbors: int = 15
    _: KW_ONLY
    min_dist: float = 0.1
    repulsion: float = 1.0

    def _plan(self, cost):
        return fuzzy_union(umap_membership(cost, n_neighbors=self.n_neighbors))

    def _objective(self):
        a, b = umap_curve(self.min_dist)
        repulsion = as_positive("repulsion", self.repulsion)
        return partial(BernoulliLoss, kernel="curve", a=a, b=b, repulsion=repulsion)

    def _new_rows(self, cost, rows):
        return membership_rows(cost, self.n_neighbors)


@with_parameters
class SNEkhorn(EmbeddingEstimator):
    r"""SNEkhorn: two doubly stochastic plans agree, with a Gaussian kernel.

    Squared distances between the rows of X give the symmetric entropic affinity P, in which each
    point has the same perplexity. The embedding has one of the same kind,

    .. math:: \min_{Z \in \mathbb R^{n \times q}} \; \mathrm{KL}(P | Q), \qquad
              Q_{ij} = e^{f_i + f_j - \|z_i - z_j\|^2}, \quad Q \mathbf 1 = \mathbf 1,

    by :func:`drot.snekhorn`.

    Source: (SNEkhorn) in section 4 of SNEkhorn (Van Assel et al., 2023); book ``eq-snekhorn``.

    Parameters
    ----------
    n_components : int
        :math:`q`, coordinates of the embedding.
    perplexity : float
        :math:`\xi`, neighbours per point, itself among them; below the number of points.
    init, metric, random_state, max_iter, tol, solver, device, dtype, verbose, callback,
    keep_affinity
        As in :class:`SNE`.

    Attributes
    ----------
    affinity_ : ndarray, shape (n, n)
        P, rows of sum 1; formed when it is asked for where the fit met it in tiles.
    kl_divergence_ : float
        Generalised :math:`\mathrm{KL}(P | Q_Z)`, in nats for mass 1: ``result_.kl`` by n.
    embedding_, n_iter_, result_, n_features_in_
        As in :class:`SNE`.

    Raises
    ------
    ValueError, Interrupted
        As in :class:`SNE`.

    Notes
    -----
    Memory and time grow as n^2 and, once, n^3. ``transform`` places new points
    and leaves the others, their duals too. Where a solver stops short, ``fit`` gives a
    ``ConvergenceWarning``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = SNEkhorn(perplexity=5, random_state=0)
    >>> model.fit_transform(X).shape, model.kl_divergence_ > 0
    ((30, 2), True)
    """

    perplexity: float = 30.0
    _kernel: ClassVar[KernelName] = "gaussian"

    def _plan(self, cost):
        affinity = self._symmetric_affinity(cost)
        return affinity.plan if cost.block is None else affinity

    def _objective(self):
        return partial(SNEkhornLoss, kernel=self._kernel)


class TSNEkhorn(SNEkhorn):
    r"""t-SNEkhorn: two doubly stochastic plans agree, with Student's kernel.

    As :class:`SNEkhorn`, with :math:`\log(1 + \|z_i - z_j\|^2)` for the cost of the embedding:
    tails as heavy as those of t-SNE, which give clusters room.

    Source: t-SNEkhorn in section 4 of SNEkhorn (Van Assel et al., 2023); book ``eq-snekhorn``.

    Parameters
    ----------
    n_components, perplexity, init, metric, random_state, max_iter, tol, solver, device, dtype,
    verbose, callback, keep_affinity
        As in :class:`SNEkhorn`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> TSNEkhorn(perplexity=5, random_state=0).fit_transform(X).shape
    (30, 2)
    """

    _kernel = "student"


@with_parameters
class CCPCA(BaseEmbedding):
    r"""ccPCA: principal components of the connected components of neighbourhood graphs.

    Entropic affinities between the rows of X are the probabilities of a random graph W;
    :func:`drot.ccpca` replaces each point by the mean of its connected component, averages over
    graphs,

    .. math:: \bar X = \mathbb E_W \, U_W U_W^\top X, \qquad
              U_W \text{ orthonormal, of the null space of the Laplacian of } W,

    and takes the principal components of :math:`\bar X`. ``start_`` is a start for t-SNE and its
    kin.

    Source: Algorithm 1 of Van Assel et al. (2022); book ``alg-ccpca``.

    Parameters
    ----------
    n_components : int
        :math:`q`, coordinates of the embedding.
    perplexity : float
        :math:`\xi`, of the affinity without self-loops; below n - 1.
    prior : {"row", "binary", "edges"}
        D, one edge out of each node; B, independent edges; E, n edges in all.
    n_samples : int
        :math:`N`, graphs.
    random_state : int, Generator of NumPy or torch, RandomState or None
        Seed of the graphs.
    verbose : int
        1 shows a progress bar with the standard error.
    device, dtype
        As in :class:`SNE`.
    callback : callable, optional
        Called as ``callback(graphs, standard_error)`` after each ten graphs and at the end. What
        it returns is not used: ``n_samples`` graphs are drawn.

    Attributes
    ----------
    embedding_ : ndarray, shape (n, q)
        In the unit of X.
    start_ : ndarray, shape (n, q)
        The same, its first column of variance 1.
    standard_error_ : float
        Monte Carlo error of the averaged means, as a share of their spread.
    result_ : ConnectedPCA
    n_features_in_ : int

    Raises
    ------
    ValueError
        If X is no finite table of 2 points or more, the perplexity is out of their reach, or a
        number is out of range.

    Notes
    -----
    A new point joins a fitted one by an edge drawn from its entropic affinity, and so the component
    of that one: ``transform`` gives its expected place, the mean of the map in the affinity's
    weights.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4)) + 9 * np.repeat([0, 1], 15)[:, None]
    >>> Z = CCPCA(n_components=1, perplexity=5, random_state=0).fit_transform(X)
    >>> bool(abs(Z[:15].mean() - Z[15:].mean()) > 17)  # 9 in each of 4 coordinates
    True
    """

    n_components: int = 2
    perplexity: float = 30.0
    _: KW_ONLY
    prior: Prior = "row"
    n_samples: int = 100

    def _task(self, points: Tensor, seed: int):
        cost = sqeuclidean(points, block=UNKEPT)
        affinity = entropic_affinity(cost, perplexity=self.perplexity, diagonal="drop")
        solve = partial(
            ccpca, points, affinity, n_components=self.n_components, prior=self.prior,
            n_samples=self.n_samples, random_state=seed,
        )  # fmt: skip
        return "graphs", solve, "standard_error", self.n_samples

    def _keep(self, found: ConnectedPCA) -> None:
        self.result_: ConnectedPCA = found
        self.embedding_, self.start_ = found.Z.cpu().numpy(), found.start.cpu().numpy()
        self.standard_error_ = found.standard_error

    def _place(self, P, Z):
        return P @ Z, 0.0
