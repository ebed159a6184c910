"""The prices widget of chapter 1: a bill bounds every plan, and the best reaches the cheapest."""

import json

import numpy as np
import pytest
from scipy.optimize import linprog
from widget_page import marks, says, squared

WIDGET = "prices"


def town_of(page) -> dict[str, np.ndarray]:
    given = json.loads(page.locator(page.box).get_attribute("data-town"))
    return {name: np.array(value) for name, value in given.items()}


def costs(town) -> np.ndarray:
    everybody = squared(np.vstack([town["bakeries"], town["cafes"]]))
    n = len(town["bakeries"])
    return everybody[:n, n:]


def bill(town, f) -> float:
    """The carrier's bill when each café's fee is as high as it may be."""
    return float(town["has"] @ f + town["wants"] @ (costs(town) - f[:, None]).min(axis=0))


def cheapest(town) -> float:
    """The cost of the cheapest plan, by a linear program."""
    n, m = costs(town).shape
    sums = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    loaves = np.concatenate([town["has"], town["wants"]])
    return float(linprog(costs(town).ravel(), A_eq=sums, b_eq=loaves).fun)


def assert_agrees(page) -> float:
    """Bill, gap, bar and lines, for the fees of the sliders."""
    town = town_of(page)
    f = np.array([float(one.input_value()) for one in page.get_by_role("slider").all()])
    beside = page.locator(f"{page.box} label span").all_inner_texts()
    assert [float(text.replace("−", "-")) for text in beside] == f.tolist()
    shown = [float(says(page, name).replace("−", "-")) for name in ("bill", "gap")]
    assert shown == [bill(town, f), round(cheapest(town)) - bill(town, f)]
    (bar,) = marks(page.locator(f"{page.box} rect[height='18']"), "width").ravel()
    (line,) = marks(page.locator(f"{page.box} .drot-cross"), "x1").ravel()
    share = max(0, shown[0]) / round(cheapest(town))  # its axis begins at 0
    assert bar == pytest.approx(share * (line - 8), abs=1e-6)
    drawn = page.locator(f'{page.box} .drot-edge[visibility="visible"]').count()
    slack = costs(town) - f[:, None]
    assert drawn == (slack == slack.min(axis=0)).sum()
    return shown[0]


def test_buttons_and_sliders(page):
    """The bill rises with each step, and ends at the cost of the cheapest plan."""
    bills, best = [assert_agrees(page)], round(cheapest(town_of(page)))
    page.get_by_role("slider", name="Fee at bakery 3").press("ArrowRight")
    while "no plan is cheaper" not in says(page, "finding"):
        bills.append(float(says(page, "bill")))
        page.get_by_role("button", name="Best step").click()
    assert (np.diff(bills) > 0).all() and assert_agrees(page) == best
    page.get_by_role("slider", name="Fee at bakery 2").press("End")
    assert assert_agrees(page) < best and "Lower its fee" in says(page, "finding")
    page.get_by_role("button", name="Best fees").click()
    assert assert_agrees(page) == best
    page.get_by_role("button", name="No fees").click()
    assert assert_agrees(page) == bills[0]
