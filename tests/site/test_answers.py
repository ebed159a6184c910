"""Exercises that answer: the form of ``{answer}``, what it says, and what the directive refuses."""

import io
import re
from pathlib import Path
from types import SimpleNamespace

import answers
import notebooks
import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils
from widget_page import AXE, BOOK, PROBE, write_page

CHAPTERS = sorted(path.stem for path in BOOK.glob("[01]*_*.md"))[1:]  # no opening
BINDER = "https://mybinder.org/v2/gh/us/it/main"
NUMBER = "```{answer} 0.25\n:within: 0.005\n:hint: Think of $x^2$; half: of it, of course.\n```\n"
CHOICE = "```{answer} 2\n:choices: grows; stays the *same*; shrinks\n```\n"
MALFORMED = [  # what comes after the name, options, and the sentence
    ("x", ":within: 1\n", "The answer must be a number, and is `x`."),
    ("1", "", "An answer has either `:within:` or `:choices:`."),
    ("1", ":within: 0\n", "`:within:` must be positive, and is 0."),
    ("1", ":within: some\n", "`:within:` must be a number, and is `some`."),
    ("3", ":choices: a; b\n", "The answer must be one of the choices, 1 to 2."),
    ("1.5", ":choices: a; b\n", "The answer must be one of the choices"),
    ("1", ":choices: a\n", "`:choices:` are two to four"),
]
EXERCISE = re.compile(
    r"^```\{exercise-start\}[^\n]*\n:label: (\S+)\n```\n(.*?)^```\{exercise-end\}", re.M | re.S
)


def built(folder: Path, text: str, builder: str = "html") -> tuple[str, str]:
    """A page of this text as Sphinx writes it, and what Sphinx complains of."""
    (folder / "index.md").write_text(f"# Page\n\n{text}\nEnd.\n", "utf8")
    config = {
        "extensions": ["myst_parser", "answers"],
        "myst_enable_extensions": ["dollarmath"],
        "html_theme": "basic",
    }
    said = io.StringIO()
    with patch_docutils(), docutils_namespace():
        places = (folder, None, folder / "out", folder / "trees", builder, config)
        Sphinx(*places, status=None, warning=said, freshenv=True).build()
    (file,) = (folder / "out").glob("index.*")
    return file.read_text("utf8"), said.getvalue()


@pytest.fixture(scope="module")
def forms(tmp_path_factory) -> tuple[str, str]:
    """Two good forms and all bad ones, built."""
    bad = [f"```{{answer}} {head}\n{options}```\n" for head, options, _ in MALFORMED]
    return built(tmp_path_factory.mktemp("answers"), "\n".join([NUMBER, CHOICE, *bad]))


@pytest.fixture(scope="module")
def page(browser, site, forms, tmp_path_factory):
    """An exercise with both forms, on a phone."""
    good = "".join(map(str, BeautifulSoup(forms[0], "html.parser").select("form.drot-answer")))
    body = (
        f'<nav class="dropdown-launch-buttons"><a href="{BINDER}">Binder</a></nav>'
        '<div class="exercise"><p><span class="caption-number">Exercise 1.4 </span></p>'
        f'<div class="cell">x</div>{good}</div><script src="../_static/exercises.js"></script>'
    )
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(write_page(tmp_path_factory.mktemp("page"), body).as_uri())
    page.evaluate(PROBE)
    yield page
    page.close()


def reply(page, given: str) -> str:
    field = page.get_by_role("textbox", name="Your answer")
    field.fill(given)
    assert page.get_by_role("status").first.inner_text().strip() == ""  # no word on what was
    field.press("Enter")
    return page.get_by_role("status").first.inner_text().partition(".")[0]


@pytest.mark.parametrize(
    ("says", "given"),
    [
        ("Right", "0.25 .25 0,25 +0.25 1/4 2^-2 25e-2 2.5E-1 -1/-4 −1/−4 0.245 0.255 0,2450"),
        ("Not yet", "0.2449 0.2551 -0.25 0 1/3 -2^2 1e300"),
        ("That is not a number", "a 1/ /4 1/0 0x1 1,000,000 1..2 2^ -- e5 alert(1) Infinity NaN"),
    ],
)
def test_reply_to_a_number(page, says: str, given: str):
    for text in given.split():
        assert reply(page, text) == says, text


def test_form_waits_for_an_answer_and_hints_at_a_wrong_one(page):
    status = page.get_by_role("status").first
    page.get_by_role("textbox").fill("")
    page.get_by_role("button", name="Check").first.click()
    assert status.inner_text().strip() == ""
    reply(page, "7")
    assert "half: of it, of course." in status.inner_text()
    reply(page, "1/4")
    assert "course" not in status.inner_text()


def test_choice_is_made_and_checked_by_keyboard(page):
    group, status = page.get_by_role("group", name="Your answer"), page.get_by_role("status").last
    group.get_by_label("grows").press("Space")
    page.keyboard.press("Enter")
    assert status.inner_text().strip() == "Not yet."
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # on the button
    assert status.inner_text().strip() == "Right."


def test_form_is_accessible_and_fits_a_phone(page):
    """Its cell leads to Binder; on paper nothing of it is shown."""
    link = page.get_by_role("link", name="Open Exercise 1.4 in Binder")
    assert link.get_attribute("href") == BINDER
    page.evaluate(AXE)
    reply(page, "7")
    assert not page.evaluate("probe.axe()")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert not page.evaluate("probe.faint()"), theme
    assert not page.evaluate("probe.room()")
    page.emulate_media(media="print")
    assert not page.locator("form:visible, .drot-binder:visible").count()


def test_malformed_directives_are_named(forms):
    html, said = forms
    for line, (*_, sentence) in zip(said.strip().splitlines(), MALFORMED, strict=True):
        assert sentence in line and "index.md:" in line  # a warning fails the build of the book
    assert html.count('class="drot-answer"') == 2


def test_only_the_page_has_forms(tmp_path: Path):
    """Neither a notebook nor any other format; what stands around them stays."""
    text, said = built(tmp_path, "Before.\n\n" + CHOICE, "text")
    assert not said and text.split() == ["Page", "****", "Before.", "End."]
    cell = {"cell_type": "markdown", "source": f"Before.\n\n{NUMBER}\n{CHOICE}\nEnd."}
    notebook = SimpleNamespace(cells=[SimpleNamespace(**cell)])
    notebooks.drop_boxes(notebook)
    assert notebook.cells[0].source == "Before.\n\nEnd."


@pytest.mark.parametrize("name", CHAPTERS)
def test_two_exercises_of_a_chapter_answer(name: str):
    """Each within an exercise; a number is, within its tolerance, one that the solution names."""
    text = (BOOK / f"{name}.md").read_text("utf8")
    held = [(label, body) for label, body in EXERCISE.findall(text) if "{answer}" in body]
    assert 2 <= len(held) == len(answers.DIRECTIVE.findall(text)) == text.count("{answer}")
    for label, body in held:
        (directive,) = answers.DIRECTIVE.findall(body)
        solution = text.partition(f"{{solution-start}} {label}\n")[2].partition("{solution-end}")[0]
        assert solution, label
        if within := re.search(r"^:within: (\S+)$", directive, re.M):
            right, named = float(directive.split()[1]), re.findall(r"-?\d+(?:\.\d+)?", solution)
            assert any(abs(float(n) - right) <= float(within[1]) for n in named), label
