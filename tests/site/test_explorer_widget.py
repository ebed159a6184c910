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
from plans import squares
from widget_page import ROOT

MAKER = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "explorer_data.py")))
DATA = json.loads(MAKER.TARGET.read_text("utf8").removeprefix(MAKER.HEAD).rstrip(";\n"))
MAPS = {(m["method"], m["perplexity"], m["start"]): m for m in DATA["maps"]}
N, K = DATA["n"], DATA["k"]
SIDES = ("left", "right")
IMAGES = MAKER.shown_pixels().astype(float)


def unpack(case: tuple[str, int, str]) -> np.ndarray:
    """Positions of a stored map, read with NumPy."""
    raw = np.frombuffer(base64.b64decode(MAPS[case]["xy"]), dtype="<i2")
    return raw.reshape(N, 2) * MAPS[case]["unit"]


def nearest(X: np.ndarray, i: int) -> list[int]:
    """The K nearest of point i; of equals the lower number first."""
    order = np.argsort(((X - X[i]) ** 2).sum(axis=1), kind="stable")
    return [j for j in order.tolist() if j != i][:K]


def test_every_setting_is_stored():
    """In at most half a megabyte, and five random starts are five maps."""
    assert MAKER.TARGET.stat().st_size < 500_000
    wanted = {("pca", 0, "")}
    for m, xi in itertools.product(MAKER.METHODS, MAKER.PERPLEXITIES):
        starts = MAKER.STARTS if m in MAKER.DESCENTS else [""]
        wanted |= {(m, xi, start) for start in starts if m != "pca"}
        assert len({MAPS[case]["xy"] for case in wanted if case[:2] == (m, xi)}) in (0, len(starts))
    assert set(MAPS) == wanted and len(DATA["maps"]) == len(wanted) and len(MAKER.SEEDS) == 5
    assert list(DATA["methods"]) == list(MAKER.METHODS)


@pytest.mark.parametrize("method", MAKER.DESCENTS)
def test_descents_are_at_rest(method):
    """Another machine may come down elsewhere; where this one came down, there is no slope."""
    # equal distances of digits: rounding chooses UMAP's neighbours, and the fifth digit
    near, flat = (1e-3, 0.5) if method == "umap" else (1e-6, 0.1)
    loss = MAKER.objective(method, MAKER.affinity(method, 30))
    for case in ((method, 30, "pca"), (method, 30, "r5")):
        found = loss.evaluate(torch.from_numpy(unpack(case)))
        assert float(found.value) == pytest.approx(MAPS[case]["value"], rel=near)
        assert float(found.gradient.abs().max()) < flat  # positions are rounded


def part(widget, side: str, what: str):
    """Something of the left map or of the right one."""
    return widget.find(f'[aria-label="{side} map"] {what}')


def assert_agrees(widget, cases: list[tuple[str, int, str]], i: int, at: int) -> None:
    """Places, rings, lines, images and sentences of image i; `at`: the map pointed at."""
    Z = [unpack(case) for case in cases]
    similar, near = nearest(IMAGES, i), [nearest(z, i) for z in Z]
    for s, side in enumerate(SIDES):
        one, svg = part(widget, side, '[aria-selected="true"]'), part(widget, side, "svg")
        assert svg.get_attribute("aria-activedescendant") == one.get_attribute("id")
        assert one.get_attribute("data-image") == str(i)
        there = part(widget, side, '[role="option"]').evaluate_all(
            "all => all.map(e => { const m = new DOMMatrix(getComputedStyle(e).transform);"
            " return [m.e, m.f] })"
        )
        there, middled = np.array(there), (Z[s] - Z[s].mean(axis=0)) * [1, -1]
        gaps = there - there.mean(axis=0)
        scale = np.abs(gaps).max() / np.abs(middled).max()
        assert len(there) == N and np.abs(gaps - scale * middled).max() < 0.2, cases
        # lines to the most similar where one points; rings around those near there in the other
        kind, others, *ends = (
            ("line", similar, "x2", "y2") if s == at else ("circle", near[at], "cx", "cy")
        )
        found = part(widget, side, f".drot-ties {kind}")
        to, *ends = widget.marks(found, "data-to", *ends).T
        to = to.astype(int)
        assert {*to} == {*others} and part(widget, side, ".drot-ties > *").count() == K
        np.testing.assert_allclose(np.transpose(ends), there[to], atol=0.06)
        ring = widget.marks(part(widget, side, ".drot-chosen"), "cx", "cy")
        np.testing.assert_allclose(ring, there[[i]], atol=0.06)
        looks = found.evaluate_all("all => all.map(e => e.getAttribute('class'))")
        assert [look == "drot-tie-kept" for look in looks] == [j in near[s] for j in to]
        assert DATA["methods"][cases[s][0]] in svg.get_attribute("aria-label")
    strip = widget.find(".drot-strip svg").evaluate_all("a => a.map(e => e.getAttribute('class'))")
    assert [name == "drot-near" for name in strip] == [j in near[at] for j in similar]
    levels = widget.marks(".drot-large .drot-ink", "opacity").ravel()
    np.testing.assert_allclose(levels * 15, IMAGES[i], atol=1e-6)

    digit, names = DATA["classes"][i], ("first", "second")
    here, other = names[at], names[1 - at]
    assert widget.says("similar") == (
        f"Image {i + 1}, {'an' if digit == '8' else 'a'} {digit}: of its {K} most similar images, "
        f"{len({*similar} & {*near[at]})} are near in the {here} map."
    )
    both = len({*near[0]} & {*near[1]})
    shared = f"Of its {K} nearest in the {here}, {both} are near in the {other}."
    left, right = (f"{100 * MAPS[case]['kept']:.1f} %" for case in cases)
    assert widget.says("shared") == shared
    assert f"{left} of the most similar are near in the first map, {right}" in widget.says("kept")


def test_explorer_first_view(widget):
    """As the book links it; nothing is written to the address before the reader acts."""
    view = [("tsne", 30, "r3"), ("tsne", 30, "r4")]
    assert_agrees(widget, view, 310, 0)
    A, B = map(unpack, view)
    common = np.mean([len({*nearest(A, i)} & {*nearest(B, i)}) for i in range(N)])
    shown = re.search(r"[\d.]+(?= %)", widget.says("common"))[0]
    assert float(shown) == pytest.approx(100 * common / K, abs=0.06)
    # an address is written 300 ms after what it tells
    begun = "performance.getEntriesByType('navigation')[0].loadEventEnd"
    widget.page.wait_for_function(f"performance.now() > {begun} + 400")
    assert widget.page.evaluate("location.hash") == ""


def middle(widget, side: str, i: int) -> tuple[float, float]:
    return part(widget, side, f'[data-image="{i}"]').evaluate(
        """e => {
            const svg = e.ownerSVGElement, m = new DOMMatrix(getComputedStyle(e).transform);
            const box = svg.getBoundingClientRect(), s = box.width / svg.viewBox.baseVal.width;
            return [box.left + s * m.e, box.top + s * m.f];
        }"""
    )


def test_explorer_address_keeps_the_state(widget, open_widget):
    """What one sees is in the address, and a link, or a word typed there, shows it again."""
    wishes = (("left", "method", "umap"), ("left", "xi", "5"), ("left", "start", "r2"))
    for side, name, value in (*wishes, ("right", "method", "ccpca")):
        part(widget, side, f'select[id$="{name}"]').select_option(value)
    Z = unpack(("ccpca", 30, ""))
    i = int((squares(Z) + 1e9 * np.eye(N)).min(axis=1).argmax())  # no doubt which is meant
    widget.page.mouse.move(*middle(widget, "right", i))
    word = f"#maps_umap-5-r2_ccpca-30-r4_{i + 1}-right"
    widget.page.wait_for_function("word => location.hash === word", arg=word, timeout=5000)
    assert widget.page.evaluate("history.length") <= 2, "the way back is short"

    with open_widget("explorer", word) as again:
        assert_agrees(again, [("umap", 5, "r2"), ("ccpca", 30, "")], i, 1)
        assert part(again, "left", "select").first.input_value() == "umap"
        seen = again.says("similar")
        go = "word => { location.hash = word }"
        for bad in ("tsne-7-r1_tsne-5-r1_1-left", "tsne-5-r1_tsne-5-r1_501-left"):
            again.page.evaluate(go, f"maps_{bad}")
            assert again.says("similar") == seen, bad
        again.page.evaluate(go, "maps_tsne-5-r1_pca-5-r1_7-left")
        again.find('[data-name="similar"]', has_text="Image 7,").wait_for()
        assert_agrees(again, [("tsne", 5, "r1"), ("pca", 0, "")], 6, 0)
