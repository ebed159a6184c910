"""The words that a reader of a chapter's main route reads, and the minutes that they take."""

import math
import re

# What a reader opens, does or looks at instead of reading.
ASIDE = ("code-cell", "dropdown", "toggle", "exercise", "solution", "answer", "index", "raw")
ASIDE += ("figure", "glue:figure")
FENCE = re.compile(r"\s*(`{3,}|:{3,})(?:\{([\w:-]+)\})?")
SKIPPED = re.compile(r"#{1,2} (optional|exercises|further)", re.I)
OPTION = re.compile(r"\s*(:[\w-]+:|%|\([^\s)]+\)=)")
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|\{[\w:]+\}`[^`]*`", re.S)
WORD = re.compile(r"[^\W_][\w'’-]*")


def core_words(page: str) -> int:
    """Prose, lists, tables, statements and boxes; a formula or a link counts as one word."""
    open_fences: list[tuple[str, str]] = []
    kept, aside = [], False
    for line in re.sub(r"\A---\n.*?\n---\n", "", page, flags=re.S).splitlines():
        fence = FENCE.match(line)
        if fence and open_fences and not fence[2] and fence[1].startswith(open_fences[-1][0]):
            open_fences.pop()
        elif fence and not (open_fences and open_fences[-1][1] == "code-cell"):
            open_fences.append((fence[1], fence[2] or ""))
        elif not open_fences and re.match(r"#{1,3} ", line):
            if re.match(r"#{1,2} ", line):
                aside = bool(SKIPPED.match(line))
        elif not (aside or OPTION.match(line) or any(n.startswith(ASIDE) for _, n in open_fences)):
            kept.append(line)
    return len(WORD.findall(FORMULA.sub(" x ", "\n".join(kept))))


def minutes(words: int) -> int:
    """80 words a minute, since formulas and pictures stand between them; rounded up to 5."""
    return 5 * math.ceil(words / 80 / 5)
