"""Every page in headless Chromium, at the width of a desk and of a phone, light and dark."""

import gzip
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from widget_page import AXE

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("probe.js").read_text("utf8")
PAGES = re.findall(r"^\s*(?:- file|root): (\S+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
DESK, PHONE = ({"width": width, "height": 900} for width in (1440, 390))
CHAPTER = "book/02_entropic_affinity"  # formulas, statements, solutions and a widget


def settle(page) -> None:
    """Wait until MathJax, where the page has it, has set every formula."""
    page.wait_for_load_state("load")
    page.evaluate("() => window.MathJax?.startup?.promise")
    page.evaluate("() => document.fonts.ready")
    page.evaluate(PROBE)


@pytest.fixture(scope="module")
def context(browser):
    """One for all pages."""
    context = browser.new_context(viewport=DESK, color_scheme="light", reduced_motion="reduce")
    yield context
    context.close()


@pytest.fixture(scope="module")
def visit(context, site_url):
    """What a page tells, at both widths and in both themes: one visit for all questions."""
    inside = (site_url, "data:", "blob:", "about:")

    @cache
    def load(name: str) -> dict:
        outside, failed, messages = [], [], []
        page = context.new_page()
        page.on("request", lambda r: r.url.startswith(inside) or outside.append(r.url))
        page.on("requestfailed", lambda r: failed.append(r.url))
        page.on("response", lambda r: r.status >= 400 and failed.append(r.url))
        page.on("pageerror", lambda e: messages.append(str(e)))
        page.on("console", lambda m: m.type == "error" and messages.append(m.text))
        page.goto(f"{site_url}{name}.html")
        settle(page)
        seen = {"outside": outside, "failed": failed, "messages": messages}
        seen |= page.evaluate("probe.facts()") | {"cost": page.evaluate("probe.cost()")}
        # before the keyboard has opened and closed what a reader finds closed
        page.set_viewport_size(PHONE)
        seen["phone"] = page.evaluate("probe.facts()")
        seen |= page.evaluate("probe.cut()")
        page.set_viewport_size(DESK)
        page.evaluate(AXE.read_text("utf8"))
        seen["axe"] = page.evaluate("probe.axe()")
        for theme in ("light", "dark"):
            page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            seen["faint", theme] = page.evaluate("probe.faint()")
            seen["keyboard", theme] = page.evaluate("probe.keyboard(5)")
        page.close()
        return seen

    return load


def source(name: str) -> str:
    return (ROOT / f"{name}.md").read_text("utf8")


every_page = pytest.mark.parametrize("name", PAGES)


@every_page
def test_page_is_whole(visit, name):
    """Nothing complains, nothing comes from elsewhere, every picture and formula is there."""
    seen = visit(name)
    # the theme says this at the first visit, before it stores its mode
    said = [text for text in seen["messages"] if "Got invalid theme mode" not in text]
    assert not said, "the console is not clean"
    assert not seen["outside"], "the page asks other servers"
    assert not seen["failed"], "something did not load"
    assert not seen["errors"], "MathJax refused a formula"
    assert not seen["plain"], "formulas left as text"
    assert not seen["broken"], "pictures did not load"
    blocks = r"^(`{3,})[^\n]*(?:code|raw|bash|python).*?^\1|`[^`\n]*`"
    prose = re.sub(blocks, "", source(name), flags=re.M | re.S)
    assert seen["formulas"] > 0 or not re.search(r"\$[^$\n]+\$|^\$\$", prose, re.M)
    assert not seen["open"] and not seen["shown"], "a proof or a solution starts open"
    written = re.findall(r"\{solution(?:-start)?\}.*\n:class: dropdown", source(name))
    assert seen["solutions"] == len(written)


@every_page
def test_page_fits(visit, name):
    """Formulas of chapters need no scrolling; figures that do can be scrolled by keyboard."""
    seen = visit(name)
    for width in (seen, seen["phone"]):
        assert width["overflow"] <= 0, width["wide"]
    assert not seen["cut"] or not re.match(r"book/(\d\d_|reproductions/)", name)
    assert not seen["stuck"]


@every_page
def test_page_is_accessible(visit, name):
    """Alternative texts, headings in order, what axe finds, and in both themes contrast and focus.

    The keyboard tries up to five of each kind of link, button, fold and slider.
    """
    seen = visit(name)
    assert seen["lang"] == "en"
    assert not seen["unnamed"] and not seen["silent"], "pictures without words"
    levels = seen["headings"]
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    assert not seen["axe"], "\n".join(seen["axe"])
    for what in ("faint", "keyboard"):
        for theme in ("light", "dark"):
            assert not seen[what, theme], (what, theme)


@every_page
def test_page_keeps_its_budget(visit, name, site, site_url):
    """What it fetches, but formulas, in bytes as GitHub Pages sends them; no preview's picture."""
    cost = visit(name)["cost"]
    addresses = [url.removeprefix(site_url).partition("?")[0] for url in cost["fetched"]]
    files = [site / unquote(a) for a in addresses if not a.startswith("_static/mathjax/")]
    weights = {file.name: sent(file) for file in files}
    page = (site / f"{name}.html").read_text("utf8")
    assert all(f.name in page for f in files if f.parent.name == "_images"), "not on the page"
    assert sum(weights.values()) < 2e6, sorted(weights.items(), key=lambda w: -w[1])[:5]
    assert len(files) <= 60 and cost["elements"] <= 15_000 and cost["loaded"] < 10_000


@cache
def sent(file: Path) -> int:
    """Bytes on the wire: fonts and pictures are packed already, all else is text."""
    packed = file.suffix in (".png", ".jpg", ".woff2", ".woff", ".ttf")
    return file.stat().st_size if packed else len(gzip.compress(file.read_bytes(), 6))


# ---------------------------------------------------------------------- what a reader does


@pytest.fixture
def page(context, site_url):
    page = context.new_page()
    page.goto(f"{site_url}{CHAPTER}.html")
    settle(page)
    yield page
    page.close()


def test_tab_reaches_all_that_can_be_operated(page):
    """One press after the other, from the top of the page to its end, and nothing holds it back."""
    wanted, reached = set(range(page.evaluate("probe.number()"))), []
    for _ in range(len(wanted) + 400):  # between them stand formulas and boxes that scroll
        page.keyboard.press("Tab")
        here = page.evaluate("probe.here()")
        if here is None:
            break
        reached.append(here)
    assert here is None, "the keyboard is caught"
    missed = wanted - set(reached)
    assert not missed, [page.locator(f'[data-number="{k}"]').inner_text() for k in missed]


def test_solution_opens_by_click_and_by_keyboard(page):
    solution = page.locator("article .solution.dropdown").first
    inside = solution.locator("section, .cell").first
    button = solution.locator("button.toggle-button")
    solution.locator(".admonition-title").click(position={"x": 4, "y": 4})
    inside.wait_for(state="visible", timeout=5000)
    for state in ("hidden", "visible"):
        button.press("Enter")
        inside.wait_for(state=state, timeout=5000)


def test_on_paper_proofs_and_solutions_are_open(page):
    shown = [
        page.locator("article details.sd-dropdown mjx-container").first,
        page.locator("article .solution.dropdown").first.locator("section, .cell").first,
    ]
    page.emulate_media(media="print")
    assert all(part.is_visible() for part in shown)
    assert not page.locator("article details.hide").first.is_visible()  # code that is folded


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
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        # previews fade in, and follow the theme by and by
        page.wait_for_function("!probe.faint().length", polling=300, timeout=15000)
    for kind in ("a.reference", ".tippy-header", "dt"):  # links, titles, words of the glossary
        assert page.locator(f"[data-tippy-root] {kind} >> visible=true").count(), kind


def test_search_needs_no_server(page, site_url):
    page.goto(f"{site_url}search.html?q=perplexity")
    page.locator("#search-results li a").first.wait_for(timeout=15000)
