"""The directive ``{answer}``: a form in an exercise, for a number or a choice.

The argument is a number with its tolerance ``:within:``, or the place of the right one among
``:choices:``, which semicolons part; ``:hint:`` is a sentence for those who are wrong.  Only HTML
has the form, hidden until ``exercises.js`` is there to say whether it is right.
"""

from __future__ import annotations

import math
import re

from docutils import nodes
from docutils.parsers.rst.directives import unchanged_required
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

DIRECTIVE = re.compile(r"^```\{answer\}[^\n]*\n(?::[^\n]*\n)*```(?:\n+|\Z)", re.M)
OPEN = '<form class="drot-answer" hidden data-right="{}" data-within="{}">'
NUMBER = '<label>Your answer <input name="answer" size="8" autocomplete="off" required></label>'
CHOICE = '<label><input type="radio" name="answer" value="{}" required> '
CLOSE = '<button>Check</button><output aria-live="polite"><b></b> <span hidden>'


class Answer(SphinxDirective):
    required_arguments = 1
    option_spec = dict.fromkeys(("within", "choices", "hint"), unchanged_required)

    def run(self) -> list[nodes.Node]:
        within, choices = self.options.get("within"), self.options.get("choices")
        labels = [label.strip() for label in (choices or "").split(";")]
        if (within is None) == (choices is None):
            raise self.error("An answer has either `:within:` or `:choices:`.")
        right = self.number(self.arguments[0], "The answer")
        close = 0.5 if within is None else self.number(within, "`:within:`")
        if close <= 0:
            raise self.error(f"`:within:` must be positive, and is {within}.")
        if choices and not (2 <= len(labels) <= 4 and all(labels)):
            raise self.error("`:choices:` are two to four, parted by semicolons, and none empty.")
        if choices and right not in range(1, len(labels) + 1):
            raise self.error(f"The answer must be one of the choices, 1 to {len(labels)}.")
        parts = [OPEN.format(right, close), NUMBER]
        if choices:
            parts[1:] = ["<fieldset><legend>Your answer</legend>"]
            for k, label in enumerate(labels, start=1):
                parts += [CHOICE.format(k), self.words(label), "</label>"]
            parts += ["</fieldset>"]
        parts += [CLOSE, self.words(self.options.get("hint", "")), "</span></output></form>"]
        html = [nodes.raw("", p, format="html") if isinstance(p, str) else p for p in parts]
        return [addnodes.only("", *html, expr="html")]

    def number(self, text: str, what: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.error(f"{what} must be a number, and is `{text}`.")
        return number

    def words(self, text: str) -> nodes.Node:
        """What may hold formulas."""
        return nodes.inline("", "", *self.parse_inline(text)[0])


def setup(app) -> dict:
    app.add_directive("answer", Answer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
