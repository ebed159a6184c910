"""Every page in headless Chromium, at the width of a desk and of a phone, light and dark."""

import gzip
import re
from functools import cache
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote

import pytest
from widget_page import AXE, PROBE, SOURCES, TOC

DESK, PHONE, SMALL = ({"width": width, "height": 900} for width in (1440, 390, 320))
CHAPTER = "book/02_entropic_affinity"  # formulas, statements, solutions and a widget


def go(page, address: str):
    """Wait until MathJax, where the page has it, has set every formula."""
    page.goto(address)
    page.evaluate("() => window.MathJax?.startup?.promise")
    page.evaluate("() => document.fonts.ready")
    page.evaluate(PROBE)
    return page


def paint(page, theme: str) -> None:
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)


@pytest.fixture(scope="module")
def context(browser):
    """One for all pages."""
    context = browser.new_context(viewport=DESK, color_scheme="light", reduced_motion="reduce")
    yield context
    context.close()


@pytest.mark.parametrize("name", TOC)
def test_page(context, site, site_url, name):
    """One visit for all questions, at both widths and in both themes; all that is wrong is told.

    Formulas of chapters need no scrolling; figures that do can be scrolled by keyboard, which tries
    up to five of each kind of link, button, fold and slider.
    """
    page, inside = context.new_page(), (site_url, "data:", "blob:", "about:")
    outside, failed, said = [], [], []
    page.on("request", lambda r: r.url.startswith(inside) or outside.append(r.url))
    page.on("requestfailed", lambda r: failed.append(r.url))
    page.on("response", lambda r: r.status >= 400 and failed.append(r.url))
    page.on("pageerror", lambda e: said.append(str(e)))
    page.on("console", lambda m: m.type == "error" and said.append(m.text))
    wrong, found = go(page, f"{site_url}{name}.html").evaluate("probe.facts()")
    cost = page.evaluate("probe.cost()")
    # before the keyboard has opened and closed what a reader finds closed
    page.set_viewport_size(PHONE)
    wrong["too wide for a phone"] = page.evaluate("probe.room()")
    scrolled = page.evaluate("probe.cut()")
    if re.match(r"book/(\d\d_|reproductions/)", name):
        wrong["formulas cut on a phone"] = scrolled["cut"]
    wrong["figures out of the keyboard's reach"] = scrolled["stuck"]
    page.set_viewport_size(DESK)
    # the theme lets the keyboard into code that scrolls a moment after the width has changed
    page.wait_for_function(
        "() => [...document.querySelectorAll('pre')].every("
        "pre => pre.scrollWidth <= pre.clientWidth || pre.tabIndex === 0)"
    )
    page.evaluate(AXE)
    wrong["axe"] = page.evaluate("links => probe.axe(links)", name in (CHAPTER, "book/papers"))
    for theme in ("light", "dark"):
        paint(page, theme)
        wrong[f"faint, {theme}"] = page.evaluate("probe.faint()")
        wrong[f"by keyboard, {theme}"] = page.evaluate("probe.keyboard(5)")
    page.close()
    wrong |= {"asked elsewhere": outside, "did not load": failed}
    # the theme says this at the first visit, before it stores its mode
    wrong["console"] = [text for text in said if "Got invalid theme mode" not in text]
    assert not {what: these for what, these in wrong.items() if these}

    blocks = r"^(`{3,})[^\n]*(?:code|raw|bash|python).*?^\1|`[^`\n]*`"
    prose = re.sub(blocks, "", SOURCES[name], flags=re.M | re.S)
    assert found["formulas"] > 0 or not re.search(r"\$[^$\n]+\$|^\$\$", prose, re.M)
    written = re.findall(r"\{solution(?:-start)?\}.*\n:class: dropdown", SOURCES[name])
    assert found["solutions"] == len(written) and found["lang"] == "en" and found["titled"]
    keep_budget(cost, site, site_url, name)


def keep_budget(cost: dict, site: Path, site_url: str, name: str) -> None:
    """What it fetches, but formulas, in bytes as GitHub Pages sends them; no preview's picture."""
    addresses = [url.removeprefix(site_url).partition("?")[0] for url in cost["fetched"]]
    files = [site / unquote(a) for a in addresses if not a.startswith("_static/mathjax/")]
    weights = {file.name: sent(file) for file in files}
    page = (site / f"{name}.html").read_text("utf8")
    assert all(f.name in page for f in files if f.parent.name == "_images"), "not on the page"
    assert sum(weights.values()) < 2e6, sorted(weights.items(), key=lambda w: -w[1])[:5]
    assert len(files) <= 60 and cost["elements"] <= 15_000 and cost["loaded"] < 30_000


@cache
def sent(file: Path) -> int:
    """Bytes on the wire: fonts and pictures are packed already, all else is text."""
    packed = file.suffix in (".png", ".jpg", ".woff2", ".woff", ".ttf")
    return file.stat().st_size if packed else len(gzip.compress(file.read_bytes(), 6))


@pytest.fixture(scope="module")
def page(context, site_url):
    """One chapter, for all that follows."""
    page = go(context.new_page(), f"{site_url}{CHAPTER}.html")
    yield page
    page.close()


def test_tab_reaches_all_that_can_be_operated(page):
    """One press after the other, from the top of the page to its end, and nothing holds it back."""
    for k in range(page.evaluate("probe.walk()") + 400):  # formulas too, and boxes that scroll
        page.keyboard.press("Tab")
        if k % 20 == 0 and page.evaluate("walked.left"):
            break
    assert page.evaluate("walked.left"), "the keyboard is caught"
    assert not page.evaluate("walked.missed()")


def test_on_paper_proofs_and_solutions_are_open(page):
    shown = [
        page.locator("article details.sd-dropdown mjx-container").first,
        page.locator("article .solution.dropdown").first.locator("section, .cell").first,
    ]
    page.emulate_media(media="print")
    assert all(part.is_visible() for part in shown)
    assert not page.locator("article details.hide").first.is_visible()  # code that is folded
    page.emulate_media(media="screen")


def test_solution_opens_by_click_and_by_keyboard(page):
    solution = page.locator("article .solution.dropdown").first
    inside = solution.locator("section, .cell").first
    solution.locator(".admonition-title").click(position={"x": 4, "y": 4})
    inside.wait_for(state="visible", timeout=5000)
    for state in ("hidden", "visible"):
        solution.locator("button.toggle-button").press("Enter")
        inside.wait_for(state=state, timeout=5000)


def test_reference_shows_a_preview(page):
    """A link to a statement or an equation shows it on hover; it still is a link, and so are those
    in the preview, with titles and words as legible as on the page."""
    links = page.locator('article a.reference.internal[href^="#"]')
    link = links.filter(has_text=re.compile(r"Theorem|Proposition|\(\d")).first
    link.scroll_into_view_if_needed()
    link.hover()
    preview = page.locator("[data-tippy-root]").first
    preview.wait_for(state="visible", timeout=5000)
    assert len(preview.inner_text().strip()) > 5
    some = page.locator("article a.reference.internal:not(details *)")
    some.evaluate_all("all => all.slice(0, 30).forEach(e => e._tippy?.show())")
    for theme in ("light", "dark"):
        paint(page, theme)
        # previews fade in, and follow the theme by and by
        page.wait_for_function("!probe.faint().length", polling=300, timeout=15000)
    for kind in ("a.reference", ".tippy-header", "dt"):  # links, titles, words of the glossary
        assert page.locator(f"[data-tippy-root] {kind} >> visible=true").count(), kind


def test_search_needs_no_server(page, site_url):
    page.goto(f"{site_url}search.html?q=perplexity")
    page.locator("#search-results li a").first.wait_for(timeout=15000)


def test_concept_map_is_legible(page, site_url):
    """Words stay in their boxes, boxes in the picture and apart, the picture in the page."""

    def within(box, frame) -> bool:
        return all(box[k] >= frame[k] and box[k + 2] <= frame[k + 2] for k in (0, 1))

    go(page, f"{site_url}book/00_one_picture.html")
    for size in (DESK, SMALL):
        page.set_viewport_size(size)
        found = page.evaluate("probe.map()")
        assert found["map"][0] >= 0 and found["map"][2] <= found["page"] and found["nodes"]
        for node in found["nodes"]:
            assert within(node["box"], found["map"]) and node["size"] >= 11
            assert all(within(word, node["box"]) for word in node["words"]), "words leave their box"
        for (a, b, c, d), (p, q, r, s) in combinations([n["box"] for n in found["nodes"]], 2):
            assert r <= a or c <= p or s <= b or d <= q, "two boxes overlap"
