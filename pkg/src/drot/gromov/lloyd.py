"""Kernel k-means: Lloyd's iterations, then moves of single points (Chapter 11)."""

from __future__ import annotations

import torch
from torch import Tensor

from .contraction import Contraction, hard_plan


def lloyd(
    contraction: Contraction, diagonal: Tensor, w: Tensor, labels: Tensor, k: int, max_iter: int
) -> tuple[Tensor, float, int]:
    """Labels that neither a Lloyd step nor the move of one point improves."""
    cell = _Means(contraction, diagonal, w, labels, k)
    most, steps = 0, 0  # points that may move: all of them, by Lloyd's rule, while this is 0
    while steps < max_iter:
        if most == 0:
            labels = cell.far.argmin(dim=1)
        else:
            gain, target = cell.gains().min(dim=1)
            rows = (gain < -1e-14 * cell.spread).nonzero()[:, 0]
            if not len(rows):
                break
            rows = rows[gain[rows].argsort()][:most]
            most = len(rows)
            labels = cell.labels.clone()
            labels[rows] = target[rows]
        new = _Means(contraction, diagonal, w, labels, k)
        if new.value < cell.value - 1e-14 * cell.spread:
            cell, most, steps = new, 2 * most, steps + 1
        elif most == 1:
            break
        else:
            most = most // 4 or (1 if most else len(w))
    return cell.labels, cell.value, steps


class _Means:
    """A labelling, the squared distances to its means, and the objective."""

    def __init__(
        self, contraction: Contraction, diagonal: Tensor, w: Tensor, labels: Tensor, k: int
    ):
        T = hard_plan(labels, w, k)
        CT, self.q = contraction.left_labels(labels, w, k), T.sum(dim=0)
        share = 1 / self.q.masked_fill(self.q == 0, torch.inf)  # 0 for an empty cluster
        within = (T * CT).sum(dim=0) * share.square()  # (k,)  <m_c, m_c>
        far = diagonal[:, None] - 2 * CT * share + within
        self.far = far.masked_fill(self.q == 0, torch.inf)  # (n, k)
        self.w, self.labels = w, labels
        self.spread = float(w @ diagonal.abs())
        self.value = float(w @ diagonal) - float(self.q @ within)

    def gains(self) -> Tensor:
        """The change of the objective by each move of one point, means following (Hartigan)."""
        points = torch.arange(len(self.w), device=self.w.device)
        here = self.q[self.labels]
        rest = here - self.w
        alone = rest <= 1e-12 * here
        leave = here * self.w / rest.masked_fill(alone, torch.inf) * self.far[points, self.labels]
        weight = self.q * self.w[:, None] / (self.q + self.w[:, None]).clamp_min(1e-300)
        enter = torch.where(self.q == 0, 0.0, weight * self.far)
        enter[points, self.labels] = torch.inf
        return enter - leave[:, None]
