"""The widget of chapter 13 says what Python says: its objective, its curve, its moves."""

import json
import re

import drot
import numpy as np
import pytest
from widget_page import begin, labels_of, marks, readout, says, squared

WIDGET = "srgw"
MARK = [[2.0, -3, 1], [-3, 2, 1], [1, 1, -2]]  # prp-soft-wins


def gram(X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=float)
    X = X - X.mean(axis=0)
    return X @ X.T


def plan_of(labels, k: int) -> np.ndarray:
    return np.eye(k)[list(labels)] / len(labels)


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


# ------------------------------------------------------------------------------------ the core


# ---------------------------------------------------------------------------------- in the page

STARTS = {
    "three clouds": (12, 3, gram),
    "a ring and its middle": (12, 2, squared),
    "three points": (3, 2, lambda X: np.array(MARK)),
}


def pressed(page) -> str:
    (text,) = page.locator(f'{page.box} [aria-pressed="true"]').all_inner_texts()
    return next(name for name in STARTS if text.startswith(name))


def slider(page, which: str):
    return page.get_by_role("slider", name=which)


def clusters_of(page) -> int:
    return int(slider(page, "Clusters").input_value())


def plan_shown(page) -> np.ndarray:
    """The plan that the discs and their names tell, (n, k)."""
    k, t, names = clusters_of(page), readout(page)["t"], labels_of(page)
    T = np.zeros((len(names), k))
    for row, name in zip(T, names, strict=True):
        if shared := re.search(r"shared, \d+ % in cluster (\d) and (\d+) % in cluster (\d)", name):
            row[int(shared[1]) - 1] = 1 - t
            row[int(shared[3]) - 1] += t
            assert int(shared[2]) == round(100 * t)
        else:
            row[int(re.search(r"in cluster (\d)$", name)[1]) - 1] = 1
    return T / len(T)


def similarity(page) -> np.ndarray:
    """From where the discs are drawn: the units cancel in no number, so they are read as well."""
    name = pressed(page)
    at = marks(page.locator(f"{page.box} .drot-hit"), "cx", "cy")
    unit = 50 if name == "a ring and its middle" else 46
    return STARTS[name][2](np.round((at - [170, 120]) / [unit, -unit], 6))


def curve(page, which: str) -> np.ndarray:
    path = page.locator(f'{page.box} [data-curve="{which}"]')
    return np.array(json.loads(path.get_attribute("data-values")))


def assert_agrees(page) -> dict[str, float]:
    """Discs, curve, tangent and numbers, against Python."""
    shown = readout(page)
    C, T, t = similarity(page), plan_shown(page), shown["t"]
    values, held = curve(page, "reduced"), curve(page, "fixed")
    assert shown["objective"] == pytest.approx(value_of(C, T), rel=1e-9, abs=1e-9)
    D = structure_of(C, T)
    kmeans = float(np.trace(C) / len(T) - T.sum(axis=0) @ np.diag(D))
    sign = -1 if pressed(page) == "a ring and its middle" else 1  # distances: that of -C
    assert shown["kmeans"] == pytest.approx(sign * kmeans, rel=1e-9, abs=1e-9)
    assert shown["kmeans"] > 0 or pressed(page) == "three points"
    assert shown["chord"] == pytest.approx((1 - t) * values[0] + t * values[-1], rel=1e-9)
    at = round(100 * t)
    assert values[at] == pytest.approx(shown["objective"], rel=1e-9)
    assert held[at] == pytest.approx(shown["objective"], rel=1e-9)  # they touch
    assert (held >= values - 1e-9 * np.abs(values)).all()  # and never cross
    ends = page.locator(f"{page.box} [data-end]").all_text_contents()
    assert ends == [f"before: {values[0]:.3f}", f"after: {values[-1]:.3f}"]
    assert not says(page, "verdict").startswith("Sharing wins") or f"{values.min():.3f}" in says(
        page, "verdict"
    )
    return shown


@pytest.mark.parametrize(("name", "least"), [*zip(STARTS, (3, 3, 0), strict=True)])
def test_descend_takes_the_best_move_and_ends(page, name, least):
    begin(page, name)
    n, k, _ = STARTS[name]
    assert plan_shown(page).shape == (n, k) and assert_agrees(page)
    if name == "three points":
        assert says(page, "verdict").startswith("Sharing wins: at 0.50 the objective is 2.543, ")
    slider(page, "From").press("Home")
    last, steps = readout(page)["objective"], 0
    while True:
        T, C = plan_shown(page), similarity(page)
        trials = np.repeat(T.argmax(axis=1)[None], n * k, axis=0)
        trials[np.arange(n * k), np.arange(n * k) // k] = np.arange(n * k) % k
        best = min(value_of(C, plan_of(labels, k)) for labels in trials)
        page.get_by_role("button", name="Descend").click()
        if says(page, "move").startswith("No single point"):
            break
        assert readout(page)["objective"] == pytest.approx(best) and best < last
        last, steps = best, steps + 1
        assert steps < 40
    assert best >= last - 1e-9 and steps >= least
    assert_agrees(page)
