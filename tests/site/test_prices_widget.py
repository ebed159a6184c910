"""The prices widget of chapter 1: a bill bounds every plan, and the best reaches the cheapest."""

import numpy as np
import ot
import pytest
from widget_page import squared

WIDGET = "prices"


def assert_agrees(widget) -> tuple[float, float]:
    """Bill, gap, bar and lines, for the fees of the sliders; the bill, and the cheapest plan."""
    town = {name: np.array(value) for name, value in widget.given("town").items()}
    bakeries, cafes, has, wants = (town[key] for key in ("bakeries", "cafes", "has", "wants"))
    C = squared(np.vstack([bakeries, cafes]))[: len(bakeries), len(bakeries) :]
    cheapest = round(ot.emd2(1.0 * has, 1.0 * wants, C))  # of whole numbers, one is
    f = np.array([float(one.input_value()) for one in widget.find("input").all()])
    beside = [text.replace("\u2212", "-") for text in widget.find("label span").all_inner_texts()]
    assert [*map(float, beside)] == f.tolist()
    slack = C - f[:, None]
    bill = float(has @ f + wants @ slack.min(axis=0))  # each café's fee is as high as it may be
    assert [float(widget.says(name)) for name in ("bill", "gap")] == [bill, cheapest - bill]
    (bar,) = widget.marks("rect[height='18']", "width").ravel()
    (line,) = widget.marks(".drot-cross", "x1").ravel()
    # its axis begins at 0
    assert bar == pytest.approx(max(0, bill) / cheapest * (line - 8), abs=1e-6)
    drawn = widget.find('.drot-edge[visibility="visible"]').count()
    assert drawn == (slack == slack.min(axis=0)).sum()
    return bill, cheapest


def test_buttons_and_sliders(widget):
    """The bill rises with each step, and ends at the cost of the cheapest plan."""
    first, best = assert_agrees(widget)
    widget.slider("Fee at bakery 3").press("ArrowRight")
    bills = [first]
    while "no plan is cheaper" not in widget.says("finding"):
        bills.append(float(widget.says("bill")))
        widget.press("Best step")
    assert (np.diff(bills) > 0).all() and assert_agrees(widget)[0] == best
    widget.slider("Fee at bakery 2").press("End")
    assert assert_agrees(widget)[0] < best and "Lower its fee" in widget.says("finding")
    widget.press("Best fees")
    assert assert_agrees(widget)[0] == best
    widget.press("No fees")
    assert float(widget.says("bill")) == first
