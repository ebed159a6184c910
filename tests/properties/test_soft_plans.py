"""Points that share their mass among the same places: conjugate gradient finds their shares."""

from __future__ import annotations

import drot
import numpy as np
import pytest
import torch
from drot.gromov.contraction import contraction
from drot.gromov.descent import Line, Problem, _on_face
from plans import cloud, energy, soft, weights


def pair(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared distances, and a kernel of four points: best plans are soft."""
    X = cloud(36, 4, seed) + 4 * cloud(3, 4, seed + 50)[torch.arange(36) % 3]
    C, Z = torch.cdist(X, X).square(), cloud(4, 2, seed + 9)
    B = 1 / (1 + torch.cdist(Z, Z).square())
    return C / C.max(), B * C.mean() / C.max() / B.mean()


@pytest.mark.parametrize("seed", [0, 5, 7])
def test_soft_plans_in_few_rounds(seed):
    """Moves of rows alone take 1400 to 3500 rounds."""
    (C, B), w = pair(seed), weights(36)
    found = drot.semi_relaxed_gw(C, B, loss="kl", init=soft(w, 4, seed), weights_x=w, tol=1e-12)
    assert found.n_iter < 400 and bool(((found.plan > 0).sum(dim=1) > 1).any())
    assert found.objective == pytest.approx(energy(C, B, found.plan, "kl"), rel=1e-9)
    G = drot.gw_gradient(C, B, found.plan, loss="kl")
    gap = float((G * found.plan).sum() - w @ G.min(dim=1).values)
    assert gap < 1e-11 and (np.diff(found.trace) <= 1e-12).all()


def test_the_minimum_on_a_face():
    """Where the quadratic is convex and its minimum inside: that of the linear equations."""
    w, rng = weights(8), np.random.default_rng(0)
    X, Z = cloud(8), cloud(3, 3, 1)
    C, B = -(X @ X.T), Z @ Z.T  # <C T, T h2> is negative: E_L is convex in T
    terms = Problem(contraction(C, B, "square"), w)
    T = soft(w, 3) * torch.tensor(rng.random((8, 3)) < 0.8)
    T[:, 0] += w - T.sum(dim=1)
    state = terms.state(T)
    free = (T > 0).numpy()
    share, moves = 1e-15, []
    for i in range(8):
        first, *others = np.flatnonzero(free[i])
        for j in others:
            D = torch.zeros(8, 3).double()
            D[i, j], D[i, first] = 1, -1
            moves.append(D)
    found = _on_face(terms, state, share)
    assert found.value < state.value and bool((found.T >= 0).all())
    torch.testing.assert_close(found.T.sum(dim=1), w, rtol=0, atol=1e-14)
    assert not bool((found.T[~torch.from_numpy(free)] > 0).any())
    torch.testing.assert_close(found.P, terms.state(found.T).P, rtol=1e-10, atol=1e-12)
    assert found.value == pytest.approx(energy(C, B, found.T), rel=1e-10)
    inside = [D for D in moves if bool((found.T[D != 0] > 0).all())]
    assert len(inside) > 1
    G = drot.gw_gradient(C, B, found.T)
    assert max(abs(float((G * D).sum())) for D in inside) < 1e-8  # no slope in the face it ends in


def test_a_direction_that_does_not_descend(monkeypatch):
    """By rounding alone; the plan stays."""
    w = weights(8)
    terms = Problem(contraction(cloud(8) @ cloud(8).T, torch.eye(3).double(), "square"), w)
    state = terms.state(soft(w, 3))
    monkeypatch.setattr(Problem, "line", lambda *_: Line(1.0, 0.0))
    assert _on_face(terms, state, 0.0) is state


def test_a_face_is_left_at_rounding():
    """Asked for more digits than there are, the descent on a face ends, and never rises."""
    w, rng = weights(8), np.random.default_rng(0)
    X, Z = cloud(8), cloud(3, 3, 1)
    terms = Problem(contraction(-(X @ X.T), Z @ Z.T, "square"), w)
    T = soft(w, 3) * torch.tensor(rng.random((8, 3)) < 0.8)
    T[:, 0] += w - T.sum(dim=1)
    state, values = terms.state(T), []
    for _ in range(20):
        state = _on_face(terms, state, 0.0)
        values.append(state.value)
    assert values[0] - min(values) < 1e-12 * abs(values[0]) and max(values) == values[0]
    torch.testing.assert_close(state.T.sum(dim=1), w, rtol=0, atol=1e-13)
