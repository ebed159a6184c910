r"""Merge two clusters and split a third: out of the local minima of single points (Chapter 11).

A merge of clusters a and b adds rows and columns of :math:`T^\top C T`, and a split of c needs the
product of C with one half of it; all splits together take one product. So the change that each
merge or split makes is known before any is tried, and the pairs that promise most are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from .barycenter import Cell, Reduced
from .contraction import hard_plan
from .descent import _SMALL

_TRIES = 16  # pairs of a merge and a split that are tried before the search ends
_FEW = 16  # merges, and splits, of which the pairs are made
_POWERS = 8  # steps towards the leading direction of a cluster


def merge_and_split(
    problem: Reduced, cell: Cell, points: Tensor, settle: Callable[[Cell], Cell]
) -> Iterator[Cell]:
    """Cells of ever lower value: clusters merged and split, then led down by ``settle``.

    Ends when none of the most promising pairs leads lower. ``points`` (n, r) say how to split.
    """
    improved = True
    while improved:
        improved = False
        labels = cell.T.argmax(dim=1)
        upper = _upper(points, labels, problem.w, problem.k)
        for a, b, c in _promising(_merges(problem, cell), _splits(problem, cell, upper)):
            trial = torch.where(labels == b, a, labels)
            trial = torch.where((labels == c) & upper, b, trial)
            new = settle(problem.hard(trial))
            if new.value < cell.value - _SMALL * problem.scale:
                cell, improved = new, True
                yield cell
                break


def _promising(merges: Tensor, splits: Tensor) -> list[tuple[int, int, int]]:
    """Merges of a and b, with splits of another c, that change the objective least."""
    k = len(splits)
    values, places = merges.flatten().sort(stable=True)
    pairs = [
        (float(value) + float(splits[c]), int(place) // k, int(place) % k, int(c))
        for value, place in zip(values[:_FEW], places[:_FEW], strict=True)
        for c in splits.argsort(stable=True)[:_FEW]
    ]
    apart = [pair for pair in sorted(pairs) if pair[0] < torch.inf and pair[3] not in pair[1:3]]
    return [pair[1:] for pair in apart[:_TRIES]]


def _merges(problem: Reduced, cell: Cell) -> Tensor:
    """The change of the objective when clusters a < b become one, (k, k); inf elsewhere."""
    M, q, k = cell.M, cell.q, problem.k
    found = torch.full_like(M, torch.inf)
    terms = problem.terms(M, q)
    corner = terms.diagonal()
    for a in range(k):
        row, mass = M[a] + M[a + 1 :], q[a] + q[a + 1 :]  # (m, k), (m,)
        both = problem.weighed(row, mass[:, None] * q)
        own = M[a, a] + M.diagonal()[a + 1 :] + 2 * M[a, a + 1 :]
        inside = both[:, a] + both[:, a + 1 :].diagonal()
        after = 2 * (both.sum(dim=1) - inside) + problem.weighed(own, mass.square())
        before = 2 * (terms[a].sum() + terms[a + 1 :].sum(dim=1) - terms[a, a + 1 :])
        before = before - corner[a] - corner[a + 1 :]
        found[a, a + 1 :] = before - after
    return found


def _splits(problem: Reduced, cell: Cell, upper: Tensor) -> Tensor:
    """The change of the objective when a cluster's upper half becomes one more, (k,)."""
    H = torch.where(upper[:, None], cell.T, 0.0)  # (n, k)
    CH = problem.contraction.left(H)
    problem.products += 1
    q, half = cell.q, H.sum(dim=0)
    lower = q - half
    with_upper = cell.T.T @ CH  # (k, k) of cluster l with the upper half of c, in l, c
    with_lower = cell.M - with_upper
    own = (H.T @ CH).diagonal()
    cross = with_upper.diagonal() - own
    terms = problem.terms(cell.M, q)
    up = problem.weighed(with_upper, torch.outer(q, half))
    low = problem.weighed(with_lower, torch.outer(q, lower))
    after = 2 * (up + low).sum(dim=0) - 2 * (up + low).diagonal()
    after = after + problem.weighed(own, half.square()) + 2 * problem.weighed(cross, half * lower)
    after = after + problem.weighed(cell.M.diagonal() - own - 2 * cross, lower.square())
    before = 2 * terms.sum(dim=0) - terms.diagonal()
    return torch.where((half > 0) & (lower > 0), before - after, torch.inf)


def _upper(points: Tensor, labels: Tensor, w: Tensor, k: int) -> Tensor:
    """Which points lie beyond the mean of their cluster along its leading direction, (n,)."""
    member = hard_plan(labels, w, k)  # (n, k)
    mass = member.sum(dim=0)
    mass = torch.where(mass > 0, mass, 1)
    X = points - ((member.T @ points) / mass[:, None])[labels]
    X = X / X.abs().max().clamp_min(torch.finfo(X.dtype).tiny)
    ways = X[hard_plan(labels, X.square().sum(dim=1), k).argmax(dim=0)]  # (k, r) to the farthest
    for _ in range(_POWERS):
        along = (X * ways[labels]).sum(dim=1)
        ways = torch.nn.functional.normalize(member.T @ (along[:, None] * X), dim=1)
    return (X * ways[labels]).sum(dim=1) > 0
