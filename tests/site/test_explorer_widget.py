"""The explorer shows what drot computed: stored maps, neighbours, and a way through them."""

from __future__ import annotations

import base64
import json
import runpy
from types import SimpleNamespace

import drot
import numpy as np
import pytest
import torch
from widget_page import BOOK, marks, says, squared

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


WAYS = {"ArrowRight": [1, 0], "ArrowUp": [0, 1], "ArrowLeft": [-1, 0], "ArrowDown": [0, -1]}
VIEW = ("tsne", 30, "pca")  # the first
IMAGES = MAKER.shown_pixels().astype(float)


# ------------------------------------------------------------------------------------ the data


def test_every_setting_is_stored():
    """In at most half a megabyte."""
    assert MAKER.TARGET.stat().st_size < 500_000
    settings = [(m, xi) for m in MAKER.METHODS if m != "pca" for xi in MAKER.PERPLEXITIES]
    wanted = {("pca", 0, "")}
    for m, xi in settings:
        wanted |= {(m, xi, start) for start in (MAKER.STARTS if m in MAKER.DESCENTS else [""])}
    assert set(MAPS) == wanted and len(DATA["maps"]) == len(wanted)
    assert list(DATA["methods"]) == list(MAKER.METHODS)


def test_images_are_the_digits():
    data = drot.datasets.digits(N)
    assert DATA["classes"] == "".join(str(int(label)) for label in data.y)
    assert np.abs(IMAGES - data.X.numpy()).max() <= 1  # 17 grey levels in 16


@pytest.mark.parametrize("case", [("pca", 0, ""), ("ccpca", 15, "")], ids=str)
def test_map_is_computed_again(case):
    """The same picture up to rounding; eigenvectors have a sign, and the maker turned it."""
    Z, _ = MAKER.embed(*case)
    Z = Z - Z.mean(dim=0)
    shown = torch.from_numpy(unpack(case))
    left, _, right = torch.linalg.svd(Z.T @ shown)
    gap = (Z @ left @ right - shown).abs().max()
    assert gap < 1e-3 * shown.abs().max()


@pytest.mark.parametrize("method", MAKER.DESCENTS)
def test_descent_is_at_rest(method):
    """Another machine may come down elsewhere; where this one came down, there is no slope."""
    # equal distances of digits: rounding chooses UMAP's neighbours, and the fifth digit
    near, flat = (1e-3, 0.5) if method == "umap" else (1e-6, 0.1)
    case = (method, 30, "pca")
    loss = MAKER.objective(method, MAKER.affinity(method, 30))
    found = loss.evaluate(torch.from_numpy(unpack(case)))
    assert float(found.value) == pytest.approx(MAPS[case]["value"], rel=near)
    assert float(found.gradient.abs().max()) < flat  # positions are rounded


@pytest.mark.parametrize("case", [("tsne", 30, "pca"), ("umap", 5, "random")], ids=str)
def test_share_of_kept_neighbours(case):
    Z = unpack(case)
    both = [len({*nearest(IMAGES, i)} & {*nearest(Z, i)}) for i in range(N)]
    assert np.mean(both) / K == pytest.approx(MAPS[case]["kept"], abs=2e-4)  # images tie


# ---------------------------------------------------------------------------------- in the page


def chosen(page) -> int:
    one = page.locator(f'{page.box} [role="option"][aria-selected="true"]')
    svg = page.locator(f'{page.box} [role="listbox"]')
    assert svg.get_attribute("aria-activedescendant") == one.get_attribute("id")
    return int(one.get_attribute("data-image"))


def assert_agrees(page, case: tuple[str, int, str]) -> None:
    """Places, ring, lines, images and sentences, against Python."""
    Z, i = unpack(case), chosen(page)
    at = page.locator(f'{page.box} [role="option"]').evaluate_all(
        "all => all.map(e => { const m = new DOMMatrix(getComputedStyle(e).transform);"
        " return [m.e, m.f] })"
    )
    at = np.array(at) * [1, -1]
    scale = np.ptp(at, axis=0).max() / np.ptp(Z, axis=0)[np.ptp(at, axis=0).argmax()]
    gap = at - at.mean(axis=0) - scale * (Z - Z.mean(axis=0))
    assert np.abs(gap).max() < 0.2
    ring = marks(page.locator(f"{page.box} .drot-chosen"), "cx", "cy")
    np.testing.assert_allclose(ring * [1, -1], at[[i]], atol=0.06)

    similar, near = nearest(IMAGES, i), nearest(Z, i)
    kept = [j in near for j in similar]
    lines = page.locator(f"{page.box} .drot-ties line")
    assert marks(lines, "data-to").ravel().tolist() == similar
    for found, kind in ((lines, "drot-tie-kept"), (page.locator(".drot-strip svg"), "drot-near")):
        classes = found.evaluate_all("all => all.map(e => e.getAttribute('class'))")
        assert [name == kind for name in classes] == kept
    levels = marks(page.locator(f"{page.box} .drot-large .drot-ink"), "opacity").ravel()
    np.testing.assert_allclose(levels * 15, IMAGES[i], atol=1e-6)
    assert says(page, "image") == (
        f"Image {i + 1}, a {DATA['classes'][i]}: {sum(kept)} of its {K} most similar images are "
        f"among its {K} nearest in the map."
    )
    assert says(page, "map").startswith(DATA["methods"][case[0]])
    assert f"{100 * MAPS[case]['kept']:.1f} %" in says(page, "map")


def test_first_view(page):
    assert_agrees(page, VIEW)
    assert page.locator(f'{page.box} [role="option"]').count() == N
    assert "t-SNE at 30" in page.locator('[role="listbox"]').get_attribute("aria-label")


def test_every_method_and_setting(page):
    slider = page.get_by_role("slider")
    starts = [page.get_by_role("button", name=f"Start: {s}") for s in DATA["starts"].values()]
    for method, name in DATA["methods"].items():
        page.get_by_role("button", name=name, exact=True).click()
        if method in MAKER.DESCENTS:
            starts[1].click()
            assert starts[1].get_attribute("aria-pressed") == "true"
            assert_agrees(page, (method, 30, "random"))
            starts[0].click()
            assert_agrees(page, (method, 30, "pca"))
        else:
            assert all(button.is_disabled() for button in starts)
            assert_agrees(page, (method, 0 if method == "pca" else 30, ""))
        assert slider.is_disabled() == (method == "pca")
    page.get_by_role("button", name="ccPCA").click()
    slider.focus()
    for key, xi in (("Home", 5), ("ArrowRight", 15), ("End", 60)):
        page.keyboard.press(key)
        assert slider.get_attribute("aria-valuetext") == str(xi)
        assert_agrees(page, ("ccpca", xi, ""))


def test_keyboard(page):
    """Tab reaches the map once; arrows walk, Home and End jump, and the page does not scroll."""
    svg = page.locator(f'{page.box} [role="listbox"]')
    page.get_by_role("button", name="Start: chance").focus()
    page.keyboard.press("Tab")
    assert svg.evaluate("e => document.activeElement === e")
    Z, i = unpack(VIEW), chosen(page)
    scrolled = page.evaluate("scrollY")
    for key in [*WAYS, "ArrowRight", "ArrowRight", "ArrowUp"] + 30 * ["ArrowDown"]:
        moved = Z - Z[i]  # to the nearest that is more ahead than aside; at the end to none
        ahead, aside = moved @ WAYS[key], np.abs(moved @ WAYS[key][::-1])
        far = np.where((ahead > 0) & (ahead >= aside), (moved**2).sum(axis=1), np.inf)
        i = int(far.argmin()) if np.isfinite(far).any() else i
        page.keyboard.press(key)
        assert chosen(page) == i
    assert_agrees(page, VIEW)
    for key, i in (("End", N - 1), ("Home", 0)):
        page.keyboard.press(key)
        assert chosen(page) == i
    assert page.evaluate("scrollY") == scrolled
    page.get_by_role("button", name="UMAP").click()
    assert chosen(page) == 0, "another map, the same image"


def middle(page, i: int) -> tuple[float, float]:
    return page.locator(f'{page.box} [data-image="{i}"]').evaluate(
        """e => {
            const svg = e.ownerSVGElement, m = new DOMMatrix(getComputedStyle(e).transform);
            const box = svg.getBoundingClientRect(), s = box.width / svg.viewBox.baseVal.width;
            return [box.left + s * m.e, box.top + s * m.f];
        }"""
    )


def test_hover_and_touch(page, open_widget):
    gaps = squared(unpack(VIEW)) + 1e9 * np.eye(N)
    i = int(gaps.min(axis=1).argmax())  # the most lonely: no doubt which is meant
    page.mouse.move(*middle(page, i))
    assert chosen(page) == i
    assert_agrees(page, VIEW)
    page.mouse.move(2, 2)  # away: the choice stays
    assert chosen(page) == i
    phone = open_widget(WIDGET, width=390)
    phone.touchscreen.tap(*middle(phone, i))
    assert chosen(phone) == i
