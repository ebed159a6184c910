"""SNEkhorn, SNE, t-SNE, LargeVis and UMAP, from a plan to an embedding (Chapters 5, 6 and 9)."""

from __future__ import annotations

from typing import Literal, Unpack

from .._core.checks import check_choice
from .._core.options import takes_options_of
from ..affinities.umap import UMAPMembership, umap_curve
from ..costs.array import Diagonal
from ..costs.kernels import KernelName
from .embed import Embedding, Options, embed
from .losses import BernoulliLoss, PairKernel, SNEkhornLoss, SNELoss, SNENormalization
from .plans import as_plan

SNEkhornNormalization = Literal["doubly_stochastic", "sum"]

_embeds = takes_options_of(embed, Options)


@_embeds
def snekhorn(
    plan,
    *,
    kernel: KernelName = "gaussian",
    normalization: SNEkhornNormalization = "doubly_stochastic",
    **options: Unpack[Options],
) -> Embedding:
    r"""SNEkhorn and t-SNEkhorn: fit the doubly stochastic plan of an embedding to a given one.

    .. math::

        \min_{Z \in \mathbb R^{n \times q}} \mathrm{KL}(P | Q_Z), \qquad
        (Q_Z)_{ij} = e^{f_i + f_j - C_{ij}}, \quad Q_Z \mathbf 1 = \mathbf 1,

    with :math:`C_{ij} = \|z_i - z_j\|^2` (SNEkhorn) or :math:`\log(1 + \|z_i - z_j\|^2)`
    (t-SNEkhorn). The gradient holds f fixed, which is exact at the optimal f; :func:`embed`
    minimises.

    Source: (SNEkhorn) in section 4 of SNEkhorn (Van Assel et al., 2023); book ``eq-snekhorn``
    and ``prp-envelope``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n)
        :math:`P`, symmetric, rows of sum 1, diagonal included: ``symmetric_entropic_affinity`` as
        in the paper, or ``doubly_stochastic_affinity``.
    kernel : {"gaussian", "student"}
        ``"student"`` is t-SNEkhorn.
    normalization : {"doubly_stochastic", "sum"}
        ``"sum"`` only divides the kernel, its diagonal included, by its sum and multiplies it by
        n: the variant that bends embeddings into spheres.
    init, n_components, solver, learning_rate, tol, max_iter, random_state, callback, on_failure
        As in :func:`embed`.

    Returns
    -------
    Embedding
        ``kl`` is the generalised KL(P | Q), in nats for total mass n; ``dual`` is f.

    Raises
    ------
    ValueError
        If the plan is not symmetric with rows of sum 1, or a name does not exist.
    NotConverged
        If ``tol`` is not reached and ``on_failure="raise"``.

    Notes
    -----
    An evaluation is two passes over an n x n array and about six products with a vector. Three
    such arrays are kept; none where the plan is an affinity of more than 4096 points whose cost is
    met in tiles, with which every method here works (:func:`embed` has its memory), and then each
    product is a pass.

    Examples
    --------
    >>> import torch
    >>> plan = torch.tensor([[0.6, 0.4, 0.0], [0.4, 0.2, 0.4], [0.0, 0.4, 0.6]]).double()
    >>> found = snekhorn(plan, n_components=1, init=[[-1.0], [0.2], [1.0]])
    >>> bool(found.Z[0] < found.Z[1] < found.Z[2]), found.converged
    (True, True)
    """
    check_choice("normalization", normalization, SNEkhornNormalization)
    objective: SNEkhornLoss | SNELoss = SNEkhornLoss(plan, kernel)
    if normalization == "sum":
        objective = SNELoss(objective.P, kernel, diagonal="keep")
    return embed(objective, **options)


@_embeds
def sne(
    plan,
    *,
    normalization: SNENormalization = "sum",
    diagonal: Diagonal = "drop",
    **options: Unpack[Options],
) -> Embedding:
    r"""Stochastic neighbour embedding (SNE) and symmetric SNE of a given plan.

    ``normalization="sum"`` is symmetric SNE, one softmax over all pairs, ``"rows"`` the original
    SNE, one per row; :class:`SNELoss` has the objectives.

    Source: SNE (Hinton and Roweis, 2002); (Symmetric-SNE) in SNEkhorn (Van Assel et al., 2023),
    equation of section 2; book ``eq-sne``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n), non-negative
        :math:`P`; symmetric for ``"sum"``.
    normalization : {"sum", "rows"}
    diagonal : {"drop", "keep"}
        Whether pairs i = j count; ``"drop"`` needs a plan without them.
    init, n_components, solver, learning_rate, tol, max_iter, random_state, callback, on_failure
        As in :func:`embed`.

    Returns
    -------
    Embedding
        ``kl`` is in nats for the mass of the plan; divide by it to compare with software.

    Raises
    ------
    ValueError, NotConverged
        As :class:`SNELoss` and :func:`embed` do.

    Examples
    --------
    >>> import torch
    >>> plan = torch.tensor([[0.0, 0.9, 0.1], [0.9, 0.0, 0.1], [0.1, 0.1, 0.0]]).double()
    >>> found = sne(plan, init=[[0.0, 0.1], [0.3, 0.0], [1.0, 1.0]])
    >>> d = torch.pdist(found.Z).square()  # of the pairs 01, 02, 12
    >>> bool((d[0] < d[1:]).all()), round(found.kl, 3)  # three points realise any such plan
    (True, 0.0)
    """
    objective = SNELoss(plan, "gaussian", normalization=normalization, diagonal=diagonal)
    return embed(objective, **options)


@_embeds
def tsne(plan, *, diagonal: Diagonal = "drop", **options: Unpack[Options]) -> Embedding:
    r"""Exact t-SNE: one softmax over all pairs, of Student's kernel.

    Every pair repels; there is no tree, no interpolation and no early exaggeration. Without the
    pairs i = j there may be no minimum at a finite size: the map then grows as long as that pays
    (book ``prp-size``). ``diagonal="keep"`` fixes the size.

    Source: t-SNE (Van der Maaten and Hinton, 2008), equations (4) and (5); book ``eq-sne``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n), symmetric, non-negative
        :math:`P`; t-SNE's own is ``entropic_affinity(cost, perplexity=..., diagonal="drop")``,
        which stands for its mean with its transpose.
    diagonal : {"drop", "keep"}
        Whether pairs i = j count; ``"drop"`` needs a plan without them.
    init, n_components, solver, learning_rate, tol, max_iter, random_state, callback, on_failure
        As in :func:`embed`.

    Returns
    -------
    Embedding
        ``kl`` is in nats for the mass of the plan; divide by it to compare with software.

    Raises
    ------
    ValueError, NotConverged
        As :class:`SNELoss` and :func:`embed` do.

    Examples
    --------
    >>> import torch
    >>> plan = torch.tensor([[0.0, 0.9, 0.1], [0.9, 0.0, 0.1], [0.1, 0.1, 0.0]]).double()
    >>> found = tsne(plan, init=[[0.0, 0.1], [0.3, 0.0], [1.0, 1.0]])
    >>> d = torch.pdist(found.Z)
    >>> bool((d[0] < d[1:]).all())
    True
    """
    return embed(SNELoss(plan, "student", diagonal=diagonal), **options)


@_embeds
def largevis(
    plan,
    *,
    kernel: PairKernel = "student",
    repulsion: float = 1.0,
    **options: Unpack[Options],
) -> Embedding:
    r"""LargeVis without sampling: every pair has an edge or not, by Student's kernel.

    :class:`BernoulliLoss` has the objective. Every pair repels, where the software draws five
    pairs for each edge and gives them the weight 7.

    Source: (LargeVis) in section 3.1 of Van Assel et al. (2022), the cross-entropy of D and B;
    LargeVis (Tang et al., 2016), section 3.2; book ``prp-ce-largevis``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n), entries from 0 to ``repulsion``
        :math:`P`, diagonal 0. LargeVis' own is ``entropic_affinity(cost, perplexity=...,
        diagonal="drop")``, symmetrised or not: the objective is the same.
    kernel : {"student", "curve"}
        :math:`Q = 1 / (2 + d^2)`, of the derivation, or :math:`1 / (1 + d^2)`, of the software.
    repulsion : float
        :math:`\gamma`, the weight of the repulsion.
    init, n_components, solver, learning_rate, tol, max_iter, random_state, callback, on_failure
        As in :func:`embed`.

    Returns
    -------
    Embedding
        ``kl`` is the divergence of the edges, in nats, summed over ordered pairs.

    Raises
    ------
    ValueError, NotConverged
        As :class:`BernoulliLoss` and :func:`embed` do.

    Examples
    --------
    >>> import torch
    >>> plan = torch.tensor([[0.0, 0.4, 0.1], [0.4, 0.0, 0.1], [0.1, 0.1, 0.0]]).double()
    >>> found = largevis(plan, init=[[0.0, 0.1], [0.3, 0.0], [1.0, 1.0]], tol=1e-9)
    >>> (2 + torch.pdist(found.Z) ** 2).round(decimals=6).tolist()  # 1 / P: three points can
    [2.5, 10.0, 10.0]
    """
    return embed(BernoulliLoss(plan, kernel, repulsion=repulsion), **options)


@_embeds
def umap(
    plan,
    *,
    a: float | None = None,
    b: float | None = None,
    repulsion: float = 1.0,
    **options: Unpack[Options],
) -> Embedding:
    r"""UMAP without sampling: the whole cross-entropy of two fuzzy graphs.

    :class:`BernoulliLoss` has the objective, with :math:`Q = 1 / (1 + a (d^2 + 0.001)^b)`, for a
    curve of spread 1: rather than to fit another spread, multiply Z by it.
    Every pair repels; the software draws five pairs for each edge, whose repulsion is weaker by
    a factor that grows with n (Damrich and Hamprecht, 2021), so its pictures are tighter.

    Source: (UMAP) in section 3.1 of Van Assel et al. (2022); UMAP (McInnes et al., 2018),
    section 3; book ``prp-ce-umap``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (n, n), symmetric, entries from 0 to ``repulsion``
        :math:`P`, diagonal 0. UMAP's own is ``fuzzy_union(umap_membership(cost))``.
    a, b : float, optional
        Of the curve: both or neither. Default: ``umap_curve()``, which is for ``min_dist=0.1``.
    repulsion : float
        :math:`\gamma`, the weight of the repulsion.
    init, n_components, solver, learning_rate, tol, max_iter, random_state, callback, on_failure
        As in :func:`embed`.

    Returns
    -------
    Embedding
        ``kl`` is the divergence of the edges, in nats, summed over ordered pairs.

    Raises
    ------
    ValueError, NotConverged
        As :class:`BernoulliLoss` and :func:`embed` do.

    Examples
    --------
    >>> import torch
    >>> plan = torch.tensor([[0.0, 0.5, 0.1], [0.5, 0.0, 0.1], [0.1, 0.1, 0.0]]).double()
    >>> found = umap(plan, a=1.0, b=1.0, init=[[0.0, 0.1], [0.3, 0.0], [1.0, 1.0]], tol=1e-9)
    >>> (1.001 + torch.pdist(found.Z) ** 2).round(decimals=6).tolist()  # 1 / P
    [2.0, 10.0, 10.0]
    """
    if (a is None) != (b is None):
        raise ValueError("give both a and b of the curve, or neither")
    if a is None or b is None:
        a, b = umap_curve()
    if isinstance(plan, UMAPMembership):
        raise ValueError("plan has an edge out of each point; pass drot.fuzzy_union(plan), of both")
    P = as_plan(plan)
    P.check_symmetric()
    objective = BernoulliLoss(P, "curve", a=a, b=b, repulsion=repulsion)
    return embed(objective, **options)
