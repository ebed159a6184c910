"""The widget of chapter 14 shows what the chapter's cell gives it: members, weights, classes."""

import json
import re

import drot
import numpy as np
import pytest

WIDGET = "prototypes"


@pytest.fixture(scope="module")
def data(widget) -> dict:
    """What the cell gives."""
    given = json.loads(widget.find('script[type="application/json"]').text_content())
    return {name: np.array(value) for name, value in given.items()}


def assert_painted(image, data: dict, i: int) -> None:
    """An image is the digit as scikit-learn has it, on the scale of the widget."""
    found = np.zeros((8, 8), dtype=int)
    for d, ink in image.locator("path").evaluate_all(
        "all => all.map(p => [p.getAttribute('d'), p.getAttribute('fill-opacity')])"
    ):
        for x, y in re.findall(r"M(\d) (\d)h1v1h-1z", d):
            assert found[int(y), int(x)] == 0
            found[int(y), int(x)] = round(15 * float(ink))
    digit = drot.datasets.digits(len(data["classes"])).X[i].numpy()
    np.testing.assert_array_equal(found.ravel(), np.minimum(digit, 15))


def test_begins_with_the_heaviest(widget, data):
    """Members, counts and words of the one prototype at which the Tab key stops."""
    stop = widget.find('[data-prototype][tabindex="0"]')
    a = int(stop.get_attribute("data-prototype"))
    assert stop.get_attribute("aria-pressed") == "true"
    assert data["weights"][a] == data["weights"].max()
    own = (data["labels"] == a).nonzero()[0]
    panel = widget.find("svg[role=img]")
    shown = widget.marks(panel.locator("[data-image]"), "data-image").ravel()
    assert shown.tolist() == own[:24].tolist()
    assert_painted(panel.locator("[data-image]").first, data, own[0])
    bars = widget.marks(panel.locator("[data-class]"), "data-class", "data-count", "height")
    counts = np.bincount(data["classes"][own], minlength=10)
    np.testing.assert_array_equal(bars[:, :2], np.stack([np.arange(10), counts], axis=1))
    np.testing.assert_allclose(bars[:, 2] / bars[:, 2].max(), counts / counts.max(), atol=1e-9)
    words = widget.says("chosen")
    weight, members = re.match(r"Weight ([\d.]+) %, (\d+) members?: ", words).groups()
    assert float(weight) == pytest.approx(100 * data["weights"][a], abs=0.0501)
    assert int(members) == len(own)
    told = [(int(c), int(m)) for m, c in re.findall(r"(\d+) of class (\d)", words)]
    assert told == sorted([(c, counts[c]) for c in counts.nonzero()[0]], key=lambda t: -t[1])


def test_the_map(widget, data):
    """Every prototype is its medoid, at its place, with an area in proportion to its weight."""
    used = np.flatnonzero(data["weights"])
    images = widget.find("[data-prototype] [data-image]")
    order = widget.marks("[data-prototype]", "data-prototype").ravel().astype(int)
    assert sorted(order) == used.tolist()
    medoids = widget.marks(images, "data-image").ravel()
    np.testing.assert_array_equal(medoids, data["medoids"][order])
    assert_painted(images.last, data, int(medoids[-1]))
    moves = images.evaluate_all("all => all.map(e => e.getAttribute('transform'))")
    x, y, side = np.array([re.findall(r"-?[\d.]+", m) for m in moves], float).T * [[1], [1], [8]]
    ratio = side**2 / data["weights"][order]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    places, at = data["positions"][order], np.stack([x, -y], axis=1)
    at += np.outer(side / 2, [1, -1])
    places, at = places - places[0], at - at[0]
    unit = np.sum(places * at) / np.sum(places**2)  # one scale, no turn, no mirror
    assert unit > 0
    np.testing.assert_allclose(at, unit * places, atol=0.05)
