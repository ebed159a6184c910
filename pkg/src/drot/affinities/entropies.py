r"""Entropy, perplexity and divergence of given plans.

Throughout, :math:`0 \log 0 = 0`, and logarithms are natural.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from .._core.checks import as_real, check_choice, check_likeness, check_no_entry, check_same_device

Convention = Literal["generalized", "papers"]


def _non_negative(value, name: str) -> Tensor:
    check_likeness(value, name)
    plan = as_real(value.dense() if hasattr(value, "dense") else value, name)
    if plan.ndim == 0:
        raise ValueError(f"{name} must be a vector or matrix of non-negative numbers; got one")
    if plan.shape[-1] == 0:
        raise ValueError(f"{name} is empty, of shape {tuple(plan.shape)}; pass a row or more")
    says = f"{name} must hold finite non-negative numbers; it has {{entry}} at {{at}}"
    check_no_entry(~((plan >= 0) & plan.isfinite()), plan, says)  # NaN too
    return plan


def row_entropy(plan) -> Tensor:
    r"""Entropy of each row of a plan, in the convention of the papers.

    .. math::

        \mathrm H(p) = -\sum_j p_j (\log p_j - 1),

    which is Shannon's entropy plus the mass of the row. A row of mass 1 and perplexity
    :math:`\xi` has :math:`\mathrm H = \log \xi + 1`; a Dirac row has :math:`\mathrm H = 1`.

    Source: notation of SNEkhorn (Van Assel et al., 2023), section 1; book
    ``def-entropy`` and ``lem-perplexity-bounds``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (..., m), non-negative
        One row, or a matrix of rows.

    Returns
    -------
    Tensor, shape (...)
        In nats.

    Raises
    ------
    ValueError
        If an entry is negative or not finite, or there is none.

    Examples
    --------
    >>> row_entropy([[1.0, 0.0], [0.5, 0.5]]).round(decimals=6).tolist()  # 1 and 1 + log 2
    [1.0, 1.693147]
    """
    plan = _non_negative(plan, "plan")
    return (plan - torch.xlogy(plan, plan)).sum(dim=-1)


def row_perplexity(plan) -> Tensor:
    r"""Perplexity of each row: the number of equally likely columns of its entropy.

    For a row of mass 1 the perplexity is :math:`\xi = e^{\mathrm H(p) - 1}`, the
    exponential of Shannon's entropy. It lies between 1 (all mass in one place) and m
    (evenly spread).

    Source: SNEkhorn, section 2; book ``lem-perplexity-bounds``.

    Parameters
    ----------
    plan : Affinity or array_like, shape (..., m), non-negative
        Rows. A row whose mass is not 1 is read as it is, without normalisation.

    Returns
    -------
    Tensor, shape (...)
        Dimensionless.

    Raises
    ------
    ValueError
        As :func:`row_entropy`.

    Examples
    --------
    >>> row_perplexity([[0.25, 0.25, 0.25, 0.25]]).round(decimals=6).tolist()
    [4.0]
    """
    return (row_entropy(plan) - 1).exp()


def kl_divergence(plan, reference, *, convention: Convention = "generalized") -> float:
    r"""Kullback-Leibler divergence of two non-negative arrays.

    ``"generalized"`` is the Bregman divergence of the negative entropy, non-negative and
    zero only when the two are equal,

    .. math:: \mathrm{KL}(P | Q) = \sum_{ij} P_{ij} \log \frac{P_{ij}}{Q_{ij}} - P_{ij} + Q_{ij}.

    ``"papers"`` is :math:`\sum_{ij} P_{ij} (\log (P_{ij} / Q_{ij}) - 1)`, as the SNEkhorn
    paper writes it. The first exceeds the second by the total mass of :math:`Q`, so both
    have the same minimiser in :math:`P`; a number, though, must say which it is.

    Source: book ``lem-kl-mass``.

    Parameters
    ----------
    plan, reference : Affinity or array_like, same shape, non-negative
        Where ``plan`` is positive and ``reference`` is 0 the divergence is infinite.
    convention : {"generalized", "papers"}

    Returns
    -------
    float
        In nats times the unit of mass.

    Raises
    ------
    ValueError
        If shapes or devices differ, or an entry is negative or not finite.

    Examples
    --------
    >>> P = [[0.5, 0.5], [0.5, 0.5]]
    >>> kl_divergence(P, P), kl_divergence(P, P, convention="papers")
    (0.0, -2.0)
    """
    check_choice("convention", convention, Convention)
    plan, reference = _non_negative(plan, "plan"), _non_negative(reference, "reference")
    if plan.shape != reference.shape:
        raise ValueError(
            f"plan and reference differ in shape: {tuple(plan.shape)} and {tuple(reference.shape)}"
        )
    check_same_device(plan, "plan", reference, "reference")
    plan, reference = plan.double(), reference.double()  # terms of size n cancel
    total = (torch.xlogy(plan, plan) - torch.xlogy(plan, reference) - plan).sum()
    return float(total + reference.sum() if convention == "generalized" else total)
