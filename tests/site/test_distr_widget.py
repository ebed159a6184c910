"""The widget of chapter 14 shows what the chapter's cell gives it: members, weights, classes."""

import re

import drot
import numpy as np
import pytest
from widget_page import marks, says

WIDGET = "prototypes"


@pytest.fixture
def data(prototypes) -> dict:
    return prototypes[1]


def assert_painted(image, i: int) -> None:
    """An image is the digit as scikit-learn has it, on the scale of the widget."""
    found = np.zeros((8, 8), dtype=int)
    for d, ink in image.locator("path").evaluate_all(
        "all => all.map(p => [p.getAttribute('d'), p.getAttribute('fill-opacity')])"
    ):
        for x, y in re.findall(r"M(\d) (\d)h1v1h-1z", d):
            assert found[int(y), int(x)] == 0
            found[int(y), int(x)] = round(15 * float(ink))
    digit = drot.datasets.digits(300).X[i].numpy().reshape(8, 8).astype(int)
    np.testing.assert_array_equal(found, np.minimum(digit, 15))


def selected(page) -> int:
    """The prototype of which the members are shown: the one stop of the Tab key."""
    pressed = page.locator(f'{page.box} [data-prototype][tabindex="0"]')
    assert pressed.get_attribute("aria-pressed") == "true"
    return int(pressed.get_attribute("data-prototype"))


def assert_shows(page, data: dict, a: int) -> None:
    """Members, counts and words of one prototype, against the plan."""
    assert selected(page) == a
    labels, y = np.array(data["labels"]), np.array(data["classes"])
    own = (labels == a).nonzero()[0]
    panel = page.locator(f"{page.box} svg[role=img]")
    assert marks(panel.locator("[data-image]"), "data-image").ravel().tolist() == own[:24].tolist()
    bars = marks(panel.locator("[data-class]"), "data-class", "data-count", "height")
    counts = np.bincount(y[own], minlength=10)
    assert bars[:, :2].tolist() == [[c, m] for c, m in enumerate(counts.tolist())]
    np.testing.assert_allclose(bars[:, 2] / bars[:, 2].max(), counts / counts.max(), atol=1e-9)
    words = says(page, "chosen")
    weight, members = re.match(r"Weight ([\d.]+) %, (\d+) members?: ", words).groups()
    assert float(weight) == pytest.approx(100 * data["weights"][a], abs=0.0501)
    assert int(members) == len(own)
    told = {int(c): int(m) for m, c in re.findall(r"(\d+) of class (\d)", words)}
    assert told == {c: m for c, m in enumerate(counts.tolist()) if m}
    assert list(told.values()) == sorted(told.values(), reverse=True)


def test_begins_with_the_heaviest(page, data):
    assert_shows(page, data, int(np.argmax(data["weights"])))
    first = page.locator(f"{page.box} svg[role=img] [data-image]").first
    assert_painted(first, int(first.get_attribute("data-image")))


def test_the_map(page, data):
    """Every prototype is its medoid, at its place, with an area in proportion to its weight."""
    used = [a for a, w in enumerate(data["weights"]) if w > 0]
    assert page.locator(f"{page.box} [data-prototype]").count() == len(used)
    images = []
    for k, a in enumerate(used):
        image = page.locator(f'{page.box} [data-prototype="{a}"] [data-image]')
        assert int(image.get_attribute("data-image")) == data["medoids"][a]
        images.append(re.findall(r"-?[\d.]+", image.get_attribute("transform")))
        if k < 5:
            assert_painted(image, data["medoids"][a])
    x, y, side = np.array(images, dtype=float).T * [[1], [1], [8]]
    ratio = side**2 / np.array(data["weights"])[used]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    places, at = np.array(data["positions"])[used], np.stack([x, -y], axis=1)
    at += np.outer(side / 2, [1, -1])
    places, at = places - places[0], at - at[0]
    unit = np.sum(places * at) / np.sum(places**2)  # one scale, no turn, no mirror
    assert unit > 0
    np.testing.assert_allclose(at, unit * places, atol=0.05)
