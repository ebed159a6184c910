"""The widget of chapter 13 says what Python says: its objective, its curve, its moves."""

import json
import re

import drot
import numpy as np
import pytest
from plans import squares

WIDGET = "srgw"
MARK = [[2.0, -3, 1], [-3, 2, 1], [1, 1, -2]]  # prp-soft-wins
# points, clusters, pixels for one unit of length, similarity, steps that "Descend" takes at least
STARTS = {
    "three clouds": (12, 3, 46, lambda X: (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T, 3),
    "a ring and its middle": (12, 2, 50, squares, 3),
    "three points": (3, 2, 46, lambda X: np.array(MARK), 0),
}


def structure_of(C, T) -> np.ndarray:
    """The package's small matrix, 0 for empty clusters."""
    used = T.sum(axis=0) > 0
    D = np.zeros((T.shape[1],) * 2)
    D[np.ix_(used, used)] = drot.gromov.coarsen(C, T[:, used]).structure.numpy()
    return D


def value_of(C, T) -> float:
    """The objective by its definition: all pairs of pairs."""
    pairs = (np.asarray(C)[:, :, None, None] - structure_of(C, T)) ** 2
    return float(np.einsum("ijkl,ik,jl", pairs, T, T))


def plan_shown(widget) -> np.ndarray:
    """The plan that the discs and their names tell, (n, k)."""
    t, names = widget.numbers()["t"], widget.labels()
    T = np.zeros((len(names), int(widget.slider("Clusters").input_value())))
    for row, name in zip(T, names, strict=True):
        if shared := re.search(r"shared, \d+ % in cluster (\d) and (\d+) % in cluster (\d)", name):
            row[int(shared[1]) - 1] = 1 - t
            row[int(shared[3]) - 1] += t
            assert int(shared[2]) == round(100 * t)
        else:
            row[int(re.search(r"in cluster (\d)$", name)[1]) - 1] = 1
    return T / len(T)


def assert_agrees(widget, name: str) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Curve, tangent and numbers, against Python: C from where the discs are drawn, T, numbers."""
    *_, unit, similarity, _ = STARTS[name]
    at = widget.marks(".drot-hit", "cx", "cy")
    C = similarity(np.round((at - [170, 120]) / [unit, -unit], 6))
    T, shown = plan_shown(widget), widget.numbers()
    values, held = (
        np.array(json.loads(widget.find(f'[data-curve="{c}"]').get_attribute("data-values")))
        for c in ("reduced", "fixed")
    )
    t, objective = shown["t"], value_of(C, T)
    assert shown["objective"] == pytest.approx(objective, rel=1e-9, abs=1e-9)
    kmeans = float(np.trace(C) / len(T) - T.sum(axis=0) @ np.diag(structure_of(C, T)))
    sign = -1 if similarity is squares else 1  # distances: that of -C
    assert shown["kmeans"] == pytest.approx(sign * kmeans, rel=1e-9, abs=1e-9)
    assert shown["kmeans"] > 0 or name == "three points"
    assert shown["chord"] == pytest.approx((1 - t) * values[0] + t * values[-1], rel=1e-9)
    touch = [values[round(100 * t)], held[round(100 * t)]]
    assert touch == pytest.approx([objective] * 2, rel=1e-9)
    assert (held >= values - 1e-9 * np.abs(values)).all()  # and never cross
    ends = widget.find("[data-end]").all_text_contents()
    assert ends == [f"before: {values[0]:.3f}", f"after: {values[-1]:.3f}"]
    verdict = widget.says("verdict")
    assert not verdict.startswith("Sharing wins") or f"{values.min():.3f}" in verdict
    return C, T, shown


def test_share_moves_by_keyboard(widget):
    seen, text = widget.slide("From", lambda w: assert_agrees(w, "three clouds")[2]["t"])
    assert (np.diff(seen) > 0).all() and (seen[0], seen[-1]) == (0, 1) and text == "100 % moved"


@pytest.mark.parametrize("name", STARTS)
def test_descend_takes_the_best_move_and_ends(widget, name):
    widget.press(name)
    n, k, *_, least = STARTS[name]
    C, T, _ = assert_agrees(widget, name)
    assert T.shape == (n, k)
    if name == "three points":
        found = widget.says("verdict")
        assert found.startswith("Sharing wins: at 0.50 the objective is 2.543, ")
    widget.slider("From").press("Home")
    last, steps = widget.numbers()["objective"], 0
    while True:
        T = np.repeat(plan_shown(widget)[None], n * k, axis=0)
        move = np.arange(n * k)
        T[move, move // k] = np.eye(k)[move % k] / n
        best = min(value_of(C, trial) for trial in T)
        widget.press("Descend")
        if widget.says("move").startswith("No single point"):
            break
        assert widget.numbers()["objective"] == pytest.approx(best) and best < last
        last, steps = best, steps + 1
        assert steps < 40
    assert best >= last - 1e-9 and steps >= least
    assert_agrees(widget, name)
