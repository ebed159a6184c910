"""Gromov-Wasserstein: objective, gradient, and the best matching (Chapter 11)."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from .._core.threads import by_size
from ..costs.array import Pairwise
from .contraction import Problem, standard
from .loss import Loss, LossName
from .reading import as_coupling, as_pair


@by_size
def gw_objective(cost_x, cost_z, plan, *, loss: LossName = "square") -> float:
    r"""Evaluate the Gromov-Wasserstein objective of a plan between two similarities.

    .. math::

        E_L(C, \bar C, T) = \sum_{ijkl} L(C_{ij}, \bar C_{kl}) \, T_{ik} T_{jl},

    with :math:`L(a, b) = (a - b)^2` or :math:`a \log(a / b) - a + b`, where
    :math:`0 \log 0 = 0`. Under ``"kl"`` it is infinite if the plan matches a positive
    :math:`C_{ij}` with a zero :math:`\bar C_{kl}`. The sum of :math:`n^2 k^2` terms is
    taken as products of matrices.

    Source: (GW) in section 2.2 of Van Assel et al. (2024); the factorisation is proposition 1 of
    Peyre, Cuturi and Solomon (2016); book ``prp-gw-contraction``.

    Parameters
    ----------
    cost_x : array_like, Pairwise or Factored, shape (n, n), symmetric
        :math:`C`. Non-negative for ``"kl"``.
    cost_z : array_like, Pairwise or Factored, shape (k, k), symmetric
        :math:`\bar C`. Non-negative for ``"kl"``.
    plan : array_like, shape (n, k)
        :math:`T \ge 0`, of total mass 1.
    loss : {"square", "kl"}

    Returns
    -------
    float
        In squared units of the similarities for ``"square"``, in their unit for ``"kl"``.

    Raises
    ------
    ValueError
        If a similarity is not symmetric or the shapes do not match, the plan is negative or of
        another mass, or ``"kl"`` meets a negative entry.

    Notes
    -----
    :math:`O(n^2 k + n k^2)`, or :math:`O(n r k + n k^2)` for a factored :math:`C`. Not
    differentiable; see :func:`drot.gromov.gw_gradient`.

    Examples
    --------
    >>> C = [[0.0, 1.0], [1.0, 0.0]]
    >>> gw_objective(C, C, [[0.5, 0.0], [0.0, 0.5]])
    0.0
    >>> gw_objective(C, C, [[0.25, 0.25], [0.25, 0.25]])
    0.5
    """
    C, structure, L = as_pair(cost_x, cost_z, loss)
    T = as_coupling(plan, "plan", C.shape[0], len(structure), C)
    return exact_objective(C, structure, L, T)


def exact_objective(C: Pairwise, structure: Tensor, loss: Loss, T: Tensor) -> float:
    """E_L(T), of what C and Cbar differ by and in float64; infinite as :func:`gw_objective` is."""
    T, C, structure = T.double(), C.in_double(zeros=not loss.free), structure.double()
    terms, unit = standard(C, T.sum(dim=1), loss, structure)
    problem = Problem(terms, unit.seen(structure))
    if bool((problem.forbidden(T) & (T > 0)).any()):
        return math.inf
    return unit.objective(problem.state(T).value)


@by_size
def gw_gradient(cost_x, cost_z, plan, *, loss: LossName = "square") -> Tensor:
    r"""Gradient of the Gromov-Wasserstein objective by the plan, its marginals free.

    With :math:`w = T \mathbf 1` and :math:`q = T^\top \mathbf 1`, symmetric similarities give

    .. math::

        \nabla E_L(T) = 2 \bigl( f_1(C) w \mathbf 1^\top + \mathbf 1 (f_2(\bar C) q)^\top
        - C \, T \, h_2(\bar C) \bigr),

    and :math:`E_L(T) = \tfrac12 \langle \nabla E_L(T), T \rangle`. Where the row sums are fixed
    the first term is the same in each row and plays no part.

    Source: equation (8.78) of the thesis, with its constant term; book ``eq-srgw-gradient``.

    Parameters
    ----------
    cost_x, cost_z, plan, loss
        As in :func:`~drot.gw_objective`.

    Returns
    -------
    Tensor, shape (n, k)
        Under ``"kl"``, infinite where more mass would match a positive entry with a zero.

    Raises
    ------
    ValueError
        As :func:`~drot.gw_objective`.

    Examples
    --------
    >>> C = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double()
    >>> gw_gradient(C, C, torch.eye(2).double() / 2).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    C, structure, L = as_pair(cost_x, cost_z, loss)
    T = as_coupling(plan, "plan", C.shape[0], len(structure), C)
    terms, unit = standard(C, T.sum(dim=1), L, structure)
    problem = Problem(terms, unit.seen(structure))
    half = terms.f1_w[:, None] + problem.half_gradient(problem.state(T))
    return (2 * unit.size**2 * half).masked_fill(problem.forbidden(T), math.inf)


class GromovMonge(NamedTuple):
    """The best one-to-one matching."""

    value: float  #: mean of L over the n^2 pairs, which is E_L at the plan P_sigma / n
    permutation: Tensor  #: (n,) point i of cost_x goes to point permutation[i] of cost_z


@by_size
def gromov_monge(cost_x, cost_z, *, loss: LossName = "square") -> GromovMonge:
    r"""Solve the Gromov-Monge problem of at most 7 points, by trying all permutations.

    .. math:: \min_{\sigma \in S_n} \; \frac{1}{n^2}
              \sum_{ij} L(C_{ij}, \bar C_{\sigma_i \sigma_j}).

    Source: lemma 3.1 of Van Assel et al. (2024), whose value is this one times :math:`n^2`; book
    ``lem-dr-gromov-monge``.

    Parameters
    ----------
    cost_x, cost_z : array_like or Pairwise, shape (n, n), symmetric
        At most n = 7, for there are n! permutations.
    loss : {"square", "kl"}

    Returns
    -------
    GromovMonge
        ``value`` and ``permutation``, the first in lexicographic order among equals.

    Raises
    ------
    ValueError
        If n > 7 or the sizes differ.

    Examples
    --------
    >>> C = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]).double()
    >>> turned = C[[2, 0, 1]][:, [2, 0, 1]]
    >>> found = gromov_monge(C, turned)
    >>> found.value, found.permutation.tolist()
    (0.0, [1, 2, 0])
    """
    C, structure, L = as_pair(cost_x, cost_z, loss)
    n, k = C.shape[0], len(structure)
    if n != k or n > 7:
        raise ValueError(
            f"gromov_monge tries all permutations of at most 7 points; got {n} and {k}"
        )
    orders = torch.tensor(list(itertools.permutations(range(n))), device=C.device)
    matched = structure[orders[:, :, None], orders[:, None, :]]  # (n!, n, n)
    values = L(L.seen(C, C.dense()), matched).mean(dim=(1, 2))
    best = int(values.argmin())
    return GromovMonge(float(values[best]), orders[best])
