"""Every page in headless Chromium, at the width of a desk and of a phone, light and dark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = re.findall(r"^\s*(?:- file|root): (\S+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
WIDTHS = {"desk": 1440, "phone": 390}
CHAPTER = "book/01_entropic_affinity"  # formulas, statements, solutions and a widget

# The theme says this once, at the first visit, before it stores its mode.
TOLERATED = ("Got invalid theme mode",)

FACTS = """() => {
  const visible = (e) => e.checkVisibility({ checkVisibilityCSS: true });
  const name = (e) => e.outerHTML.slice(0, 120);
  const page = document.documentElement;
  const scrolls = (e) => {
    for (let up = e.parentElement; up; up = up.parentElement) {
      if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(up).overflowX)) return true;
    }
    return false;
  };
  const wide = [...document.querySelectorAll("main *")].filter(
    (e) => e.getBoundingClientRect().right > page.clientWidth + 1 && visible(e) && !scrolls(e));
  return {
    overflow: page.scrollWidth - page.clientWidth,
    wide: wide.slice(0, 3).map(name),
    formulas: document.querySelectorAll("mjx-container").length,
    plain: [...document.querySelectorAll(".math.notranslate")]
      .filter((e) => !e.querySelector("mjx-container")).map(name),
    errors: [...document.querySelectorAll("mjx-merror, merror, [data-mml-node=merror]")].map(name),
    open: [...document.querySelectorAll("article details[open]:not(.toctree-l1)")].map(name),
    shown: [...document.querySelectorAll("article .solution.dropdown > *:not(.admonition-title)")]
      .filter((e) => !e.matches(".toggle-button") && e.getBoundingClientRect().height > 1 && visible(e)
        && getComputedStyle(e).opacity !== "0").map(name),
    solutions: document.querySelectorAll("article .solution.dropdown").length,
    unnamed: [...document.querySelectorAll("img")].filter((e) => !e.hasAttribute("alt")).map(name),
    silent: [...document.querySelectorAll("article figure img, article .cell_output img")]
      .filter((e) => (e.getAttribute("alt") || "").trim().length < 15).map(name),
    headings: [...document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)")].map((e) => Number(e.tagName[1])),
    broken: [...document.images].filter((e) => e.complete && !e.naturalWidth && visible(e)).map(name),
    lang: page.lang,
  };
}"""

# sphinxcontrib-bibtex writes roles that are on their way out: not ours to mend.
AXE = """(options) => axe.run({ include: ["article.bd-article"], exclude: [".citation-list"] }, options).then((found) =>
  found.violations.map((v) => v.id + ": " + v.help + " | " + v.nodes.slice(0, 3).map(
    (n) => n.target.join(" ") + " " + (n.any[0]?.message || n.failureSummary || "").slice(0, 160)).join(" ; ")))"""
AXE_OPTIONS = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "resultTypes": ["violations"],
    "preload": False,
    # MathJax and the theme's code boxes scroll without being focusable; a keyboard reader
    # reaches the same text through the page.
    "rules": {"scrollable-region-focusable": {"enabled": False}},
}


@dataclass
class Visit:
    """What one loading of one page at one width left behind."""

    messages: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    facts: dict = field(default_factory=dict)
    axe: dict[str, list[str]] = field(default_factory=dict)


def typeset(page) -> None:
    """Wait until MathJax, where the page has it, has set every formula."""
    page.wait_for_load_state("load")
    page.evaluate("() => window.MathJax?.startup?.promise")
    page.evaluate("() => document.fonts.ready")


def set_theme(page, theme: str) -> None:
    """Click the theme's own button until it shows this theme."""
    button = page.locator("button.theme-switch-button:visible").first
    for _ in range(3):
        if page.locator("html").get_attribute("data-theme") == theme:
            return
        button.click()
    assert page.locator("html").get_attribute("data-theme") == theme


@pytest.fixture(scope="module")
def contexts(browser):
    """One context for each width, for all pages."""
    opened = {
        name: browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="light", reduced_motion="reduce"
        )
        for name, width in WIDTHS.items()
    }
    yield opened
    for context in opened.values():
        context.close()


@pytest.fixture(scope="module")
def visit(contexts, site_url):
    """Load a page at a width, once for all tests that ask about it."""
    base = site_url.rstrip("/") + "/"
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf8")

    @cache
    def load(name: str, width: str) -> Visit:
        seen = Visit()
        page = contexts[width].new_page()
        inside = (base, "data:", "blob:", "about:")
        page.on("request", lambda r: r.url.startswith(inside) or seen.outside.append(r.url))
        page.on("requestfailed", lambda r: seen.failed.append(r.url))
        page.on("response", lambda r: r.status >= 400 and seen.failed.append(f"{r.status} {r.url}"))
        page.on("pageerror", lambda e: seen.messages.append(str(e)))
        page.on("console", lambda m: m.type == "error" and seen.messages.append(m.text))
        page.goto(f"{base}{name}.html")
        typeset(page)
        seen.facts = page.evaluate(FACTS)
        seen.messages = [m for m in seen.messages if not any(part in m for part in TOLERATED)]
        if width == "desk":
            page.evaluate(axe)
            seen.axe["light"] = page.evaluate(AXE, AXE_OPTIONS)
            page.evaluate("() => { document.documentElement.dataset.theme = 'dark' }")
            seen.axe["dark"] = page.evaluate(AXE, AXE_OPTIONS | {"runOnly": ["color-contrast"]})
        page.close()
        return seen

    return load


every_page = pytest.mark.parametrize("name", PAGES)
every_width = pytest.mark.parametrize("width", WIDTHS)


@every_width
@every_page
def test_page_is_whole(visit, name, width):
    """Nothing complains, nothing comes from elsewhere, every picture and formula is there."""
    seen = visit(name, width)
    assert not seen.messages, "the console is not clean"
    assert not seen.outside, "the page asks other servers"
    assert not seen.failed, "something did not load"
    assert not seen.facts["errors"], "MathJax refused a formula"
    assert not seen.facts["plain"], "formulas left as text"
    assert not seen.facts["broken"], "pictures did not load"
    source = (ROOT / f"{name}.md").read_text("utf8")
    prose = re.sub(r"^(`{3,})\{?(?:code|raw).*?^\1|`[^`\n]*`", "", source, flags=re.M | re.S)
    if re.search(r"\$[^$\n]+\$|^\$\$", prose, re.M):
        assert seen.facts["formulas"] > 0


@every_width
@every_page
def test_page_fits(visit, name, width):
    facts = visit(name, width).facts
    assert facts["overflow"] <= 0, facts["wide"]


@every_width
@every_page
def test_proofs_and_solutions_start_closed(visit, name, width):
    facts = visit(name, width).facts
    assert not facts["open"]
    assert not facts["shown"]
    source = (ROOT / f"{name}.md").read_text("utf8")
    assert facts["solutions"] == len(re.findall(r"\{solution(?:-start)?\}.*\n:class: dropdown", source))


@every_page
def test_page_is_accessible(visit, name):
    """Alternative texts, headings in order, and what axe finds, in both themes."""
    seen = visit(name, "desk")
    facts = seen.facts
    assert facts["lang"] == "en"
    assert not facts["unnamed"] and not facts["silent"], "pictures without words"
    levels = facts["headings"]
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False)), levels
    for theme, violations in seen.axe.items():
        assert not violations, f"{theme}:\n" + "\n".join(violations)


# ---------------------------------------------------------------------- what a reader does


@pytest.fixture
def page(contexts, site_url):
    page = contexts["desk"].new_page()
    page.goto(f"{site_url.rstrip('/')}/{CHAPTER}.html")
    typeset(page)
    yield page
    page.close()


CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const ratio = (e) => {
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(ground(e))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const worst = (selector) => Math.min(...[...document.querySelectorAll(selector)].map(ratio));
  return { prose: worst("article p"), links: worst("article p a.reference"),
    titles: worst("article .admonition-title"), widget: worst(".drot-widget :is(label, output, p, b)") };
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_themes_toggle_and_are_legible(page, theme):
    other = {"light": "dark", "dark": "light"}[theme]
    set_theme(page, other)
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    set_theme(page, theme)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    for what, ratio in page.evaluate(CONTRAST).items():
        assert ratio >= 4.5, f"{what} in the {theme} theme: {ratio:.2f}"


def test_marks_of_the_widget_stand_out(page):
    """Bars, curve and dot against the ground: at least 3 to 1 for what carries the finding."""
    for theme in ("light", "dark"):
        set_theme(page, theme)
        ratios = page.evaluate(
            """() => {
              const rgb = (text) => text.match(/[\\d.]+/g).map(Number).slice(0, 3);
              const light = (c) => c.map((v) => v / 255)
                .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
                .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
              const box = document.querySelector(".drot-widget");
              const ground = light(rgb(getComputedStyle(box).backgroundColor));
              const against = (selector, property) => {
                const value = light(rgb(getComputedStyle(box.querySelector(selector))[property]));
                return (Math.max(value, ground) + 0.05) / (Math.min(value, ground) + 0.05);
              };
              return { bars: against(".drot-probability", "fill"), dot: against(".drot-dot", "fill"),
                curve: against(".drot-curve", "stroke"), costs: against(".drot-cost", "stroke") };
            }"""
        )
        for what, ratio in ratios.items():
            assert ratio >= 3, f"{what} in the {theme} theme: {ratio:.2f}"


def test_proof_opens_by_keyboard(page):
    proof = page.locator("article details.sd-dropdown").first
    proof.locator("summary").focus()
    page.keyboard.press("Enter")
    assert proof.evaluate("e => e.open")
    assert proof.locator("mjx-container").first.is_visible()
    page.keyboard.press("Enter")
    assert not proof.evaluate("e => e.open")


def test_solution_opens_by_click(page):
    solution = page.locator("article .solution.dropdown").first
    solution.locator(".admonition-title").click(position={"x": 4, "y": 4})
    page.wait_for_function("e => !e.classList.contains('toggle-hidden')", arg=solution.element_handle())


def test_slider_moves_by_arrow_keys_and_shows_focus(page):
    slider = page.locator('.drot-widget input[type="range"]').first
    output = page.locator(".drot-widget output").first
    page.locator(".drot-widget").first.scroll_into_view_if_needed()
    slider.focus()
    before = output.inner_text()
    page.keyboard.press("ArrowRight")
    assert output.inner_text() != before
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")  # focus by keyboard, on the second slider
    style = page.evaluate("(() => { const s = getComputedStyle(document.activeElement);"
                          " return [s.outlineStyle, parseFloat(s.outlineWidth)]; })()")
    assert style[0] != "none" and style[1] >= 2


def test_reference_shows_a_preview(page):
    """A statement's link shows the statement on hover; without tippy the link alone remains."""
    if page.locator("script[src*=tippy]").count() == 0:
        pytest.skip("the site was built without hover previews")
    link = page.locator('article a.reference.internal[href^="#"]').filter(
        has_text=re.compile(r"Theorem|Proposition|\(\d")
    ).first
    link.scroll_into_view_if_needed()
    link.hover()
    box = page.locator("[data-tippy-root]").first
    box.wait_for(state="visible", timeout=5000)
    assert len(box.inner_text().strip()) > 5


def test_search_works_offline(page, site_url):
    page.goto(f"{site_url.rstrip('/')}/search.html?q=perplexity")
    page.locator("#search-results li a").first.wait_for(timeout=15000)
