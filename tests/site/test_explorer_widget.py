"""The explorer shows what drot computed: stored maps, neighbours, and a way through them."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import drot
import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book" / "_static"
WIDGETS = STATIC / "widgets"
CORE = WIDGETS / "explorer_core.js"
SCRIPTS = ("common.js", "explorer_core.js", "explorer_data.js", "explorer.js")
BOX = '[data-widget="explorer"]'

SPEC = importlib.util.spec_from_file_location(
    "explorer_data", ROOT / "scripts" / "explorer_data.py"
)
MAKER = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MAKER)

TEXT = MAKER.TARGET.read_text("utf8")
DATA = json.loads(TEXT.removeprefix(MAKER.HEAD).rstrip(";\n"))
MAPS = {(m["method"], m["perplexity"], m["start"]): m for m in DATA["maps"]}
N, K = DATA["n"], DATA["k"]


def unpack(case: tuple[str, int, str]) -> np.ndarray:
    """Positions of a stored map, read with NumPy."""
    import base64

    raw = np.frombuffer(base64.b64decode(MAPS[case]["xy"]), dtype="<i2")
    return raw.reshape(N, 2) * MAPS[case]["unit"]


def nearest(X: np.ndarray, i: int, k: int) -> list[int]:
    """The k nearest of point i; of equals the lower number first."""
    far = ((X - X[i]) ** 2).sum(axis=1)
    return [j for j in np.lexsort((np.arange(len(X)), far)) if j != i][:k]


IMAGES = MAKER.shown_pixels().astype(float)


# ------------------------------------------------------------------------------------ the data


def test_files_are_small():
    """The page asks for at most half a megabyte."""
    assert sum((WIDGETS / name).stat().st_size for name in SCRIPTS) < 500_000


def test_every_setting_is_stored():
    wanted = {("pca", 0, "")}
    wanted |= {(m, xi, "") for m in ("ccpca", "laplacian") for xi in MAKER.PERPLEXITIES}
    wanted |= {
        (m, xi, s) for m in MAKER.DESCENTS for xi in MAKER.PERPLEXITIES for s in MAKER.STARTS
    }
    assert set(MAPS) == wanted and len(DATA["maps"]) == len(wanted)
    assert list(DATA["methods"]) == list(MAKER.METHODS)


def test_images_are_the_digits():
    data = drot.datasets.digits(N)
    assert DATA["classes"] == "".join(str(int(label)) for label in data.y)
    assert np.abs(IMAGES - data.X.numpy()).max() <= 1  # 17 grey levels in 16


@pytest.mark.parametrize(
    "case", [("pca", 0, ""), ("laplacian", 15, ""), ("ccpca", 15, "")], ids=str
)
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
    """Another machine may come down elsewhere; where this one came down, there is no slope.

    Distances of digits are whole numbers and tie: which of two equal neighbours UMAP's graph
    takes is a matter of rounding, and moves its objective in the fifth digit.
    """
    near, flat = (1e-3, 0.5) if method == "umap" else (1e-6, 0.1)
    case = (method, 30, "pca")
    loss = MAKER.objective(method, MAKER.affinity(method, 30))
    found = loss.evaluate(torch.from_numpy(unpack(case)))
    assert float(found.value) == pytest.approx(MAPS[case]["value"], rel=near)
    assert float(found.gradient.abs().max()) < flat  # positions are rounded
    turned = loss.evaluate(torch.from_numpy(unpack(case)) * 1.05)
    assert float(turned.value) > float(found.value)


@pytest.mark.parametrize(
    "case", [("tsne", 30, "pca"), ("umap", 5, "random"), ("pca", 0, "")], ids=str
)
def test_share_of_kept_neighbours(case):
    Z = unpack(case)
    both = [len({*nearest(IMAGES, i, K)} & {*nearest(Z, i, K)}) for i in range(N)]
    assert np.mean(both) / K == pytest.approx(MAPS[case]["kept"], abs=2e-4)  # images tie


# ------------------------------------------------------------------------------------ the core


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    """The widget as the page embeds it, under the theme's own style sheets, in one file."""
    sheets = [
        Path(str(resources.files(package)))
        / "theme"
        / package
        / "static"
        / "styles"
        / f"{name}.css"
        for package, name in (
            ("pydata_sphinx_theme", "pydata-sphinx-theme"),
            ("sphinx_book_theme", "sphinx-book-theme"),
        )
    ]
    links = "".join(
        f'<link rel="stylesheet" href="{sheet.as_uri()}">'
        for sheet in (*sheets, STATIC / "book.css")
    )
    scripts = "".join(f'<script src="{(WIDGETS / name).as_uri()}"></script>' for name in SCRIPTS)
    file = tmp_path_factory.mktemp("widget") / "page.html"
    file.write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>Widget</title>{links}</head><body><main><article class="bd-article">'
        '<h1>Widget</h1><div class="drot-widget" data-widget="explorer" data-method="tsne" '
        'data-perplexity="30"><p class="drot-finding">Neighbours stay near.</p></div>'
        f"{scripts}</article></main></body></html>",
        encoding="utf8",
    )
    return file


def open_page(browser, file: Path, width: int = 1100, motion: str = "reduce"):
    """A page that fails the test where it complains or asks anyone else for anything."""
    context = browser.new_context(
        viewport={"width": width, "height": 1000}, reduced_motion=motion, has_touch=width < 500
    )
    page = context.new_page()
    page.said = []
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("console", lambda m: m.type in ("error", "warning") and page.said.append(m.text))
    page.on("request", lambda r: r.url.startswith("file:") or page.said.append(r.url))
    page.on("requestfailed", lambda r: page.said.append(r.url))
    page.goto(file.as_uri())
    page.locator(f"{BOX} output").wait_for()
    return page


@pytest.fixture
def page(browser, page_file):
    page = open_page(browser, page_file)
    yield page
    assert not page.said
    page.context.close()


@pytest.fixture(scope="module")
def core(browser, page_file):
    """Calls a function of the core in Chromium: core(name, *arguments)."""
    page = open_page(browser, page_file)
    yield lambda name, *given: page.evaluate(
        "([name, given]) => drotExplorer[name](...given)",
        [name, [g.tolist() if isinstance(g, np.ndarray) else g for g in given]],
    )
    assert not page.said
    page.context.close()


@pytest.mark.parametrize("case", [("tsne", 30, "random"), ("pca", 0, "")], ids=str)
def test_positions(core, case):
    found = core("positions", MAPS[case])
    np.testing.assert_allclose(found, unpack(case), rtol=0, atol=1e-12)
    assert np.min(found) < 0 < np.max(found)


def test_images(core):
    np.testing.assert_array_equal(core("images", DATA["pixels"], N), IMAGES)


def test_find(core):
    keys = list(MAPS)
    for method in DATA["methods"]:
        for xi in DATA["perplexities"]:
            for start in DATA["starts"]:
                at = core("find", DATA["maps"], method, xi, start)
                found = keys[at]
                assert found[0] == method
                assert found[1] in (0, xi) and (found[1] == 0) == (method == "pca")
                assert found[2] in ("", start) and (found[2] == "") == (
                    method not in MAKER.DESCENTS
                )


CLOUD = np.random.default_rng(0).normal(size=(40, 2)).round(1)  # with ties


def test_neighbours(core):
    for i in (0, 7, 39):
        assert core("neighbours", CLOUD, i, 6) == nearest(CLOUD, i, 6)
    other = np.random.default_rng(1).normal(size=(40, 3))
    both = {*nearest(CLOUD, 3, 8)} & {*nearest(other, 3, 8)}
    assert core("shared", CLOUD, other, 3, 8) == len(both) > 0


def test_at(core):
    place = CLOUD[5] + 0.01
    far = np.linalg.norm(CLOUD - place, axis=1)
    assert core("at", CLOUD, place, 1) == far.argmin()
    assert core("at", CLOUD, [99, 99], 1) == -1


def test_step(core):
    """More ahead than aside, the nearest such point, and none at the end."""
    for direction, (dx, dy) in {
        "right": (1, 0), "left": (-1, 0), "up": (0, 1), "down": (0, -1),
    }.items():  # fmt: skip
        for i in range(40):
            moved = CLOUD - CLOUD[i]
            ahead, aside = moved @ [dx, dy], np.abs(moved @ [dy, -dx])
            allowed = (ahead > 0) & (ahead >= aside)
            to = core("step", CLOUD, i, direction)
            if allowed.any():
                assert allowed[to]
                least = (moved[allowed] ** 2).sum(axis=1).min()
                assert (moved[to] ** 2).sum() == pytest.approx(least)
            else:
                assert to == i


def test_fit(core):
    """One scale for both axes, y upwards, inside the margins and touching two of them."""
    found = np.array(core("fit", CLOUD, 300, 200, 10))
    low, high = found.min(axis=0), found.max(axis=0)
    assert (low >= 10 - 1e-9).all() and (high <= [290 + 1e-9, 190 + 1e-9]).all()
    np.testing.assert_allclose((low + high) / 2, [150, 100])
    scale = np.ptp(found[:, 0]) / np.ptp(CLOUD[:, 0])
    np.testing.assert_allclose(np.ptp(found[:, 1]), scale * np.ptp(CLOUD[:, 1]))
    assert min(280 - np.ptp(found[:, 0]), 180 - np.ptp(found[:, 1])) == pytest.approx(0, abs=1e-9)
    assert found[:, 1].argmin() == CLOUD[:, 1].argmax()


def test_node_agrees_too():
    """The same file is a module of Node."""
    executable = shutil.which("node")
    if executable is None:
        pytest.skip("node is not installed: the core is compared with Python in Chromium only")
    program = """
    const core = require(process.argv[1]);
    const map = JSON.parse(require("fs").readFileSync(0, "utf8"));
    process.stdout.write(JSON.stringify(core.positions(map)));
    """
    case = ("umap", 15, "pca")
    done = subprocess.run(
        [executable, "-e", program, str(CORE)],
        input=json.dumps(MAPS[case]),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), unpack(case), rtol=0, atol=1e-12)


# ---------------------------------------------------------------------------------- in the page


def says(page, name: str) -> str:
    return page.locator(f'{BOX} output [data-name="{name}"]').inner_text()


def chosen(page) -> int:
    one = page.locator(f'{BOX} [role="option"][aria-selected="true"]')
    assert one.count() == 1
    svg = page.locator(f'{BOX} [role="listbox"]')
    assert svg.get_attribute("aria-activedescendant") == one.get_attribute("id")
    return int(one.get_attribute("data-image"))


def assert_agrees(page, case: tuple[str, int, str]) -> None:
    """Places, ring, lines, images and sentences, against Python."""
    Z, i = unpack(case), chosen(page)
    at = page.locator(f'{BOX} [role="option"]').evaluate_all(
        "all => all.map(e => { const m = new DOMMatrix(getComputedStyle(e).transform);"
        " return [m.e, m.f] })"
    )
    at = np.array(at) * [1, -1]
    scale = np.ptp(at, axis=0).max() / np.ptp(Z, axis=0)[np.ptp(at, axis=0).argmax()]
    gap = at - at.mean(axis=0) - scale * (Z - Z.mean(axis=0))
    assert np.abs(gap).max() < 0.2
    ring = page.locator(f"{BOX} .drot-chosen")
    where = [float(ring.get_attribute("cx")), -float(ring.get_attribute("cy"))]
    np.testing.assert_allclose(where, at[i], atol=0.06)

    similar, near = nearest(IMAGES, i, K), {*nearest(Z, i, K)}
    lines = page.locator(f"{BOX} .drot-ties line")
    drawn = lines.evaluate_all("all => all.map(e => [e.getAttribute('data-to'), e.classList[0]])")
    assert [int(to) for to, _ in drawn] == similar
    kept = [j in near for j in similar]
    assert [kind == "drot-tie-kept" for _, kind in drawn] == kept
    inks = page.locator(f"{BOX} .drot-large .drot-ink")
    levels = inks.evaluate_all("all => all.map(e => Number(e.getAttribute('opacity')))")
    np.testing.assert_allclose(np.array(levels) * 15, IMAGES[i], atol=1e-6)
    strip = page.locator(f"{BOX} .drot-strip svg")
    assert strip.count() == K
    shown = strip.evaluate_all("all => all.map(e => e.getAttribute('class'))")
    assert [kind == "drot-near" for kind in shown] == kept
    assert says(page, "image") == (
        f"Image {i + 1}, a {DATA['classes'][i]}: {sum(kept)} of its {K} most similar images are "
        f"among its {K} nearest in the map."
    )
    name, share = DATA["methods"][case[0]], 100 * MAPS[case]["kept"]
    assert says(page, "map").startswith(name)
    assert f"{share:.1f} %" in says(page, "map")


def test_first_view(page):
    assert_agrees(page, ("tsne", 30, "pca"))
    assert page.locator(f'{BOX} [role="option"]').count() == N
    assert page.locator(f"{BOX} .drot-finding").last.inner_text() == "Neighbours stay near."


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
    svg = page.locator(f'{BOX} [role="listbox"]')
    page.get_by_role("button", name="Start: chance").focus()
    page.keyboard.press("Tab")
    assert svg.evaluate("e => document.activeElement === e")
    assert svg.evaluate("e => getComputedStyle(e).outlineStyle") != "none"
    Z, i = unpack(("tsne", 30, "pca")), chosen(page)
    scrolled = page.evaluate("scrollY")
    for key, axis, sign in (
        ("ArrowRight", 0, 1), ("ArrowUp", 1, 1), ("ArrowLeft", 0, -1), ("ArrowDown", 1, -1),
    ):  # fmt: skip
        page.keyboard.press(key)
        j = chosen(page)
        assert j == i or sign * (Z[j] - Z[i])[axis] > 0
        i = j
        assert_agrees(page, ("tsne", 30, "pca"))
    page.keyboard.press("End")
    assert chosen(page) == N - 1
    page.keyboard.press("Home")
    assert chosen(page) == 0
    assert page.evaluate("scrollY") == scrolled
    page.keyboard.press("Tab")  # nothing inside traps the focus
    assert not svg.evaluate("e => document.activeElement === e")


def middle(page, i: int) -> tuple[float, float]:
    return page.locator(f'{BOX} [data-image="{i}"]').evaluate(
        """e => {
            const svg = e.ownerSVGElement, m = new DOMMatrix(getComputedStyle(e).transform);
            const box = svg.getBoundingClientRect(), s = box.width / svg.viewBox.baseVal.width;
            return [box.left + s * m.e, box.top + s * m.f];
        }"""
    )


def test_hover(page):
    Z = unpack(("tsne", 30, "pca"))
    gaps = np.linalg.norm(Z[:, None] - Z, axis=2) + 1e9 * np.eye(N)
    for i in np.argsort(-gaps.min(axis=1))[:3]:  # the most lonely: no doubt which is meant
        page.mouse.move(*middle(page, int(i)))
        assert chosen(page) == i
        assert_agrees(page, ("tsne", 30, "pca"))
    before = chosen(page)
    page.mouse.move(2, 2)  # away: the choice stays
    assert chosen(page) == before


def test_choice_survives_a_change_of_map(page):
    page.locator(f'{BOX} [role="listbox"]').focus()
    page.keyboard.press("End")
    page.get_by_role("button", name="UMAP").click()
    assert chosen(page) == N - 1
    assert_agrees(page, ("umap", 30, "pca"))


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_motion(browser, page_file, motion):
    """Numerals glide to their new places unless the reader asked for no motion."""
    page = open_page(browser, page_file, motion=motion)
    seconds = page.locator(f'{BOX} [role="option"]').first.evaluate(
        "e => parseFloat(getComputedStyle(e).transitionDuration)"
    )
    assert (seconds > 0) == (motion == "no-preference")
    page.context.close()


def test_phone(browser, page_file):
    page = open_page(browser, page_file, width=390)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    x, y = middle(page, 7)
    page.touchscreen.tap(x, y)
    i, Z = chosen(page), unpack(("tsne", 30, "pca"))
    assert i == 7 or np.linalg.norm(Z[i] - Z[7]) < 0.05 * np.ptp(Z)
    assert_agrees(page, ("tsne", 30, "pca"))
    picture = page.locator(f'{BOX} [role="listbox"]').bounding_box()
    side = page.locator(f"{BOX} .drot-side").bounding_box()
    assert side["y"] >= picture["y"] + picture["height"]
    facts = page.evaluate("probe.facts()")
    assert facts["overflow"] <= 0 and not facts["wide"]
    assert not page.said
    page.context.close()


def test_accessible(page):
    """What axe finds, and the contrast of all ten hues in both themes."""
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf8")
    page.evaluate(axe)
    page.evaluate(Path(__file__).with_name("probe.js").read_text("utf8"))
    assert not page.evaluate("probe.axe()")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert not page.evaluate("probe.faint()"), theme
        ground = colour(page, BOX, "backgroundColor")
        hues = [colour(page, f"{BOX} .drot-class-{k}", "fill") for k in range(10)]
        assert len({tuple(hue) for hue in hues}) == 10, theme
        assert min(contrast(hue, ground) for hue in hues) >= 4.5, theme
        for kind in ("drot-tie-kept", "drot-chosen"):
            assert contrast(colour(page, f"{BOX} .{kind}", "stroke"), ground) >= 3, (theme, kind)


def colour(page, selector: str, attribute: str) -> np.ndarray:
    text = page.evaluate(
        "([s, a]) => getComputedStyle(document.querySelector(s))[a]", [selector, attribute]
    )
    return np.array([float(v) for v in re.findall(r"[\d.]+", text)[:3]]) / 255


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """WCAG contrast of two colours."""

    def light(rgb: np.ndarray) -> float:
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_announced_and_labelled(page):
    output = page.locator(f"{BOX} output")
    assert output.get_attribute("aria-live") == "polite"
    slider = page.locator(f"{BOX} input")
    assert page.locator(f'label[for="{slider.get_attribute("id")}"]').inner_text().strip()
    svg = page.locator(f'{BOX} [role="listbox"]')
    assert "t-SNE at 30" in svg.get_attribute("aria-label")
    assert "arrow keys" in page.locator(f"#{svg.get_attribute('aria-describedby')}").inner_text()
    for one in page.locator(f"{BOX} .drot-strip svg").all():
        assert re.match(r"a \d, (not )?near in the map", one.get_attribute("aria-label"))
