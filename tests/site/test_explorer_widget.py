"""The explorer shows what drot computed: stored maps, neighbours, and a way through them."""

import base64
import itertools
import json
import re
import runpy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from widget_page import BOOK, marks, open_page, says, squared

WIDGET = "explorer"
MAKER = SimpleNamespace(**runpy.run_path(str(BOOK.parent / "scripts" / "explorer_data.py")))

TEXT = MAKER.TARGET.read_text("utf8")
DATA = json.loads(TEXT.removeprefix(MAKER.HEAD).rstrip(";\n"))
MAPS = {(m["method"], m["perplexity"], m["start"]): m for m in DATA["maps"]}
N, K = DATA["n"], DATA["k"]


def unpack(case: tuple[str, int, str]) -> np.ndarray:
    """Positions of a stored map, read with NumPy."""
    raw = np.frombuffer(base64.b64decode(MAPS[case]["xy"]), dtype="<i2")
    return raw.reshape(N, 2) * MAPS[case]["unit"]


def nearest(X: np.ndarray, i: int) -> list[int]:
    """The K nearest of point i; of equals the lower number first."""
    order = np.argsort(((X - X[i]) ** 2).sum(axis=1), kind="stable")
    return [j for j in order.tolist() if j != i][:K]


VIEW = [("tsne", 30, "r3"), ("tsne", 30, "r4")]  # the first: left and right
SIDES = ("left", "right")
IMAGES = MAKER.shown_pixels().astype(float)


# ------------------------------------------------------------------------------------ the data


def test_every_setting_is_stored():
    """In at most half a megabyte, and five random starts are five maps."""
    assert MAKER.TARGET.stat().st_size < 500_000
    settings = [(m, xi) for m in MAKER.METHODS if m != "pca" for xi in MAKER.PERPLEXITIES]
    wanted = {("pca", 0, "")}
    for m, xi in settings:
        wanted |= {(m, xi, start) for start in (MAKER.STARTS if m in MAKER.DESCENTS else [""])}
    assert set(MAPS) == wanted and len(DATA["maps"]) == len(wanted)
    assert list(DATA["methods"]) == list(MAKER.METHODS) and len(MAKER.SEEDS) == 5
    for m, xi in itertools.product(MAKER.DESCENTS, MAKER.PERPLEXITIES):
        assert len({MAPS[m, xi, start]["xy"] for start in MAKER.STARTS}) == 6, (m, xi)


@pytest.mark.parametrize("start", ["pca", "r5"])
@pytest.mark.parametrize("method", MAKER.DESCENTS)
def test_descent_is_at_rest(method, start):
    """Another machine may come down elsewhere; where this one came down, there is no slope."""
    # equal distances of digits: rounding chooses UMAP's neighbours, and the fifth digit
    near, flat = (1e-3, 0.5) if method == "umap" else (1e-6, 0.1)
    case = (method, 30, start)
    loss = MAKER.objective(method, MAKER.affinity(method, 30))
    found = loss.evaluate(torch.from_numpy(unpack(case)))
    assert float(found.value) == pytest.approx(MAPS[case]["value"], rel=near)
    assert float(found.gradient.abs().max()) < flat  # positions are rounded


# ---------------------------------------------------------------------------------- in the page


def part(page, side: str, what: str):
    """Something of the left map or of the right one."""
    return page.locator(f'{page.box} [aria-label="{side} map"] {what}')


def chosen(page) -> int:
    """The image, which both maps mark."""
    numbers = set()
    for side in SIDES:
        one, svg = part(page, side, '[aria-selected="true"]'), part(page, side, "svg")
        assert svg.get_attribute("aria-activedescendant") == one.get_attribute("id")
        numbers.add(int(one.get_attribute("data-image")))
    return numbers.pop() if len(numbers) == 1 else pytest.fail(f"the maps differ: {numbers}")


def pick(page, side: str, **wishes) -> None:
    for name, value in wishes.items():
        part(page, side, f'select[id$="{name}"]').select_option(str(value))


def assert_agrees(page, cases: list[tuple[str, int, str]], at: int) -> None:
    """Places, rings, lines, images and sentences, against Python; `at`: the map pointed at."""
    i, Z = chosen(page), [unpack(case) for case in cases]
    similar, near = nearest(IMAGES, i), [nearest(z, i) for z in Z]
    for s, side in enumerate(SIDES):
        there = part(page, side, '[role="option"]').evaluate_all(
            "all => all.map(e => { const m = new DOMMatrix(getComputedStyle(e).transform);"
            " return [m.e, m.f] })"
        )
        there = np.array(there) * [1, -1]
        scale = np.ptp(there, axis=0).max() / np.ptp(Z[s], axis=0)[np.ptp(there, axis=0).argmax()]
        gap = there - there.mean(axis=0) - scale * (Z[s] - Z[s].mean(axis=0))
        assert np.abs(gap).max() < 0.2, cases
        ring = marks(part(page, side, ".drot-chosen"), "cx", "cy")
        np.testing.assert_allclose(ring * [1, -1], there[[i]], atol=0.06)
        # lines to the most similar where one points; rings around those near there in the other
        kind, others = ("line", similar) if s == at else ("circle", near[at])
        found = part(page, side, f".drot-ties {kind}")
        assert set(marks(found, "data-to").ravel().astype(int)) == set(others)
        assert part(page, side, ".drot-ties > *").count() == K
        x, y = ("x2", "y2") if s == at else ("cx", "cy")
        for j, *end in marks(found, "data-to", x, y):
            np.testing.assert_allclose(end * np.array([1, -1]), there[int(j)], atol=0.06)
        looks = found.evaluate_all("all => all.map(e => [+e.dataset.to, e.getAttribute('class')])")
        assert all((look == "drot-tie-kept") == (j in near[s]) for j, look in looks)
        assert DATA["methods"][cases[s][0]] in part(page, side, "svg").get_attribute("aria-label")
    strip = page.locator(".drot-strip svg").evaluate_all("a => a.map(e => e.getAttribute('class'))")
    assert [name == "drot-near" for name in strip] == [j in near[at] for j in similar]
    levels = marks(page.locator(f"{page.box} .drot-large .drot-ink"), "opacity").ravel()
    np.testing.assert_allclose(levels * 15, IMAGES[i], atol=1e-6)

    digit, (here, other) = DATA["classes"][i], (SIDES[at], SIDES[1 - at])
    assert says(page, "similar") == (
        f"Image {i + 1}, {'an' if digit == '8' else 'a'} {digit}: of its {K} most similar images, "
        f"{len({*similar} & {*near[at]})} are near on the {here}."
    )
    both = len({*near[0]} & {*near[1]})
    assert (
        says(page, "shared") == f"Of its {K} nearest on the {here}, {both} are near on the {other}."
    )
    left, right = (f"{100 * MAPS[case]['kept']:.1f} %" for case in cases)
    assert f"{left} of the most similar are near on the left, {right}" in says(page, "kept")


def test_first_view(page):
    """As the book links it; nothing is written to the address before the reader acts."""
    assert_agrees(page, VIEW, 0)
    assert [part(page, side, '[role="option"]').count() for side in SIDES] == [N, N]
    common = np.mean(
        [len({*nearest(A, i)} & {*nearest(B, i)}) for A, B in [map(unpack, VIEW)] for i in range(N)]
    )
    shown = re.search(r"[\d.]+(?= %)", says(page, "common"))[0]
    assert float(shown) == pytest.approx(100 * common / K, abs=0.06)
    page.wait_for_timeout(400)
    assert page.evaluate("location.hash") == ""


def middle(page, side: str, i: int) -> tuple[float, float]:
    return part(page, side, f'[data-image="{i}"]').evaluate(
        """e => {
            const svg = e.ownerSVGElement, m = new DOMMatrix(getComputedStyle(e).transform);
            const box = svg.getBoundingClientRect(), s = box.width / svg.viewBox.baseVal.width;
            return [box.left + s * m.e, box.top + s * m.f];
        }"""
    )


def lonely(case) -> int:
    """No doubt which is meant."""
    return int((squared(unpack(case)) + 1e9 * np.eye(N)).min(axis=1).argmax())


def test_address_keeps_the_state(page, browser, widget_files):
    """What one sees is in the address, and a link, or a word typed there, shows it again."""
    pick(page, "left", method="umap", xi=5, start="r2")
    pick(page, "right", method="ccpca")
    i = lonely(("ccpca", 30, ""))
    page.mouse.move(*middle(page, "right", i))
    word = f"#maps_umap-5-r2_ccpca-30-r4_{i + 1}-right"
    page.wait_for_function("word => location.hash === word", arg=word, timeout=5000)
    assert page.evaluate("history.length") <= 2, "the way back is short"

    again = open_page(browser, widget_files(WIDGET).as_uri() + word, WIDGET)
    assert_agrees(again, [("umap", 5, "r2"), ("ccpca", 30, "")], 1)
    assert chosen(again) == i and part(again, "left", "select").first.input_value() == "umap"
    seen = says(again, "similar")
    for bad in ("maps_tsne-7-r1_tsne-5-r1_1-left", "maps_tsne-5-r1_tsne-5-r1_501-left", "sec-x"):
        again.evaluate("word => { location.hash = word }", bad)
        assert says(again, "similar") == seen, bad
    again.evaluate("() => { location.hash = 'maps_tsne-5-r1_pca-5-r1_7-left' }")
    again.wait_for_function("document.querySelector('output').innerText.includes('Image 7,')")
    assert_agrees(again, [("tsne", 5, "r1"), ("pca", 0, "")], 0)
    assert not again.said
    again.context.close()
