"""The book on paper: what the LaTeX builder needs to be told.

- Numbers are those of the site: of chapters, statements, equations, figures and tables.
- Statements, notes, exercises and proofs, which the site draws as boxes and folds, get
  environments of ``paper.sty``; what the site folds stands open.
- What only a browser can show gives way to a sentence that says where to find it.
- Columns of tables are as wide as their contents ask, and long tables may break.
- The macros of formulas are those of MathJax, from ``_config.yml``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx import addnodes
from sphinx.builders.latex.nodes import thebibliography
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.latex import LaTeXTranslator
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_node, solution_node
from sphinx_jupyterbook_latex.nodes import RootHeader
from sphinx_proof.nodes import NODE_TYPES

STATEMENTS = tuple(NODE_TYPES.values())
# Characters that a line of a table holds, by size of type
SIZES = {r"\small": 86, r"\footnotesize": 95, r"\scriptsize": 108}
TOGETHER = re.compile(r" ± | %|\(\w+, \w+\)")  # what a table does not break
LONG = 12  # rows; a longer table may break


class Box(nodes.General, nodes.Element):
    """An environment of paper.sty, ``env``, whose first child is its title."""


class BoxTitle(nodes.General, nodes.TextElement):
    """The argument of that environment."""


def tex(code: str) -> nodes.raw:
    return nodes.raw("", code, format="latex")


def box(env: str, title: list[nodes.Node], body: list[nodes.Node]) -> Box:
    return Box("", BoxTitle("", "", *title), *body, env=env)


def page_of(node: nodes.Node) -> str:
    """The page of the site that a node of the joined tree comes from."""
    while not (isinstance(node, nodes.document) or "docname" in node.attributes):
        node = node.parent
    return node.get("docname", "")


def number_on_site(env, page: str, kind: str, node: nodes.Element) -> str:
    """The number of a figure, table, equation or statement, as the site shows it."""
    numbers = env.toc_fignumbers.get(page, {}).get(kind, {})
    found = [numbers[name] for name in node["ids"] if name in numbers]
    return ".".join(map(str, found[0])) if found else ""


def anchor(page: str, label: str) -> nodes.raw:
    return tex(rf"\phantomsection\label{{\detokenize{{{page}:{label}}}}}")


# ------------------------------------------------------------------- what a browser alone shows


class Cells(SphinxPostTransform):
    """Code and its outputs, before outputs in HTML are thinned out.

    Code that the site folds away, which draws a picture, is left out.  Containers lose their
    classes: the writer would open an environment for each, and sphinx-jupyterbook-latex frames
    that cannot nest.
    """

    default_priority = 3
    formats = ("latex",)

    def run(self) -> None:
        for container in list(self.document.findall(nodes.container)):
            if container.get("hide_mode") == "input":
                shown = [c for c in container.children if "cell_input" not in c["classes"]]
                container.children = shown
            if "cell_output" in container["classes"]:
                for block in list(container.findall(nodes.literal_block)):
                    before, after = tex(r"\begin{drotprinted}"), tex(r"\end{drotprinted}")
                    block.replace_self([before, block.deepcopy(), after])
        for bundle in list(self.document.findall(nodes.container)):
            if bundle.get("nb_element") != "mime_bundle":
                continue
            for given in bundle.children:
                if given.get("mime_type") == "text/html":
                    told = self.tell(BeautifulSoup(given.astext(), "html.parser"), bundle)
                    if told is not None:
                        bundle.replace_self(told)
                    break
        for container in self.document.findall(nodes.container):
            container["classes"] = []

    def tell(self, html: BeautifulSoup, bundle: nodes.container) -> nodes.Node | None:
        """What stands in a picture's place: its finding, and where it moves."""
        note = html.select_one(".admonition")
        if note is not None:
            title = note.select_one(".admonition-title").extract()
            text = " ".join(note.get_text(" ").split())
            return box("drotnote", [nodes.Text(title.get_text())], [nodes.paragraph("", text)])
        if html.select_one(".drot-widget") is None:
            return None
        text = " ".join(w.get_text() for w in html.select(".drot-finding"))
        address = f"{self.config.html_baseurl}{page_of(bundle)}.html"
        link = nodes.reference("", address, refuri=address)
        body = nodes.paragraph("", f"{' '.join(text.split())} Try it at ", link, nodes.Text("."))
        return box("drotaside", [nodes.Text("A picture that moves")], [body])


# ----------------------------------------------------------------- boxes, folds, tables, numbers


class Shapes(SphinxPostTransform):
    """From what the extensions of the site made to what ``paper.sty`` draws."""

    default_priority = 900
    formats = ("latex",)

    def run(self) -> None:
        steps = (self.statements, self.exercises, self.proofs, self.notes, self.cards, self.tables)
        for step in (*steps, self.first_page, self.last_pages, self.drawings):
            step()
        for node in list(self.document.findall(addnodes.download_reference)):
            address = f"{self.config.html_baseurl}{page_of(node)}.html"
            node.replace_self(nodes.reference("", "", *node.children, refuri=address))

    def found(self, kind) -> list[nodes.Element]:
        return list(self.document.findall(kind))

    @staticmethod
    def contents(node: nodes.Element) -> list[nodes.Node]:
        """What stands below the title; a statement keeps it in a section of its own."""
        body: list[nodes.Node] = []
        for child in node.children[1:]:
            body += child.children if isinstance(child, nodes.section) else [child]
        return body

    def statements(self) -> None:
        for node in self.found(lambda n: isinstance(n, STATEMENTS)):
            page = page_of(node)
            number = number_on_site(self.env, page, node["countertype"], node)
            title = [nodes.Text(f"{node['realtype'].title()} {number}"), *node[0].children]
            target = anchor(page, node["label"])
            node.replace_self([target, box("drotstatement", title, self.contents(node))])

    def exercises(self) -> None:
        for node in self.found(
            lambda n: isinstance(n, (exercise_node, exercise_enumerable_node, solution_node))
        ):
            page, label = page_of(node), node["label"]
            targets = [anchor(page, label), anchor("exercise", label)]
            solution = isinstance(node, solution_node)
            title = node[0].children
            if solution:  # "Solution to", and a link whose first space LaTeX would drop
                title = [nodes.Text(f"{title[0].astext()} "), *title[1:]]
            env = "drotsolution" if solution else "drotexercise"
            node.replace_self([*targets, box(env, title, self.contents(node))])

    def proofs(self) -> None:
        """A fold with the title Proof opens, and ends with a square."""
        for node in self.found(nodes.container):
            if node.get("design_component") != "dropdown":
                continue
            title, body = (node[0].children, node.children[1:])
            env = "drotproof" if node[0].astext().startswith("Proof") else "drotfold"
            node.replace_self(box(env, title, body))

    def notes(self) -> None:
        for node in self.found(nodes.admonition):
            env = "drotglance" if "tip" in node["classes"] else "drotnote"
            node.replace_self(box(env, node[0].children, node.children[1:]))
        for node in self.found(nodes.sidebar):
            node.replace_self(box("drotaside", node[0].children, node.children[1:]))

    def cards(self) -> None:
        """A card is its title and what it says."""
        for node in self.found(nodes.container):
            if node.get("design_component") == "card-title":
                node.replace_self(nodes.paragraph("", "", nodes.strong("", "", *node.children)))

    def first_page(self) -> None:
        """The page that leads the site has the book's title; on paper it needs one of its own."""
        for section in self.document.findall(nodes.section):
            section.insert(1, tex(r"\drotchapter{}\chapter{About this book}"))
            break
        for node in self.found(RootHeader):
            node.replace_self(nodes.rubric("", "", *node.children, **{"heading-level": 3}))

    def last_pages(self) -> None:
        """The works cited stand on the page that says so; LaTeX makes an index of its own."""
        for page in self.found(addnodes.start_of_file):
            if page["docname"] == "genindex":
                page.parent.remove(page)
            if page["docname"] == "book/bibliography":
                for works in self.found(thebibliography):
                    works.parent.remove(works)
                    next(page.findall(nodes.section)).append(works)

    def drawings(self) -> None:
        """Drawings that the site takes into its pages, with its colours and styles."""
        for count, node in enumerate(self.found(nodes.raw)):
            if "html" not in node["format"] or "<svg" not in node.astext():
                continue
            picture = Path(self.app.outdir, f"drawing{count}.pdf")
            if as_pdf(node.astext(), picture):
                node.replace_self(tex(rf"\drotdrawing{{{picture.name}}}"))
            else:
                address = f"{self.config.html_baseurl}{page_of(node)}.html"
                link = nodes.reference("", address, refuri=address)
                node.replace_self(nodes.paragraph("", "The drawing is at ", link, nodes.Text(".")))

    def tables(self) -> None:
        for table in self.found(nodes.table):
            rows = list(table.findall(nodes.row))
            if any("morecols" in e or "morerows" in e for row in rows for e in row):
                continue
            size, types = columns(rows)
            for text in list(table.findall(nodes.Text)):
                text.parent.replace(text, nodes.Text(breakable(text)))
            at = table.parent.index(table)
            spec = addnodes.tabular_col_spec(spec="".join(types))
            table.parent.insert(at, [tex(rf"\drottablesize{{{size}}}"), spec])
            if len(rows) > LONG:
                table["classes"].append("longtable")


def as_pdf(svg: str, picture: Path) -> bool:
    """Convert a drawing; False where rsvg-convert is not installed."""
    converter = shutil.which("rsvg-convert")
    if converter is None:
        return False
    svg = re.sub(r"var\([\w-]+,\s*([^)]+)\)", r"\1", svg)  # the colour that follows the name
    svg = svg.replace("currentColor", "#222832").replace("inherit", "TeX Gyre Heros, sans-serif")
    subprocess.run([converter, "-f", "pdf", "-o", picture], input=svg, text=True, check=True)
    return True


def columns(rows: list[nodes.row]) -> tuple[str, list[str]]:
    """A size of type, and a type for each column: the whole is no wider than the page."""
    cells = [[width(entry) for entry in row] for row in rows]
    lines = [[line + 2 for line, _ in column] for column in zip(*cells, strict=True)]
    needed = [max(word for _, word in column) + 3 for column in zip(*cells, strict=True)]
    natural = [max(column) for column in lines]
    body = rows[1:] or rows
    for size, room in SIZES.items():
        if sum(natural) <= room:
            right = [
                all("text-right" in row[j]["classes"] for row in body) for j in range(len(lines))
            ]
            return size, ["r" if r else "l" for r in right]
        if sum(needed) <= 0.8 * room:
            break
    # Each column has room for its words; what is left goes where most text would have to break.
    given, total = list(needed), max(room, sum(needed))
    while sum(given) + 1 <= total:
        pairs = zip(lines, given, strict=True)
        over = [sum(max(0, line - g) for line in column) for column, g in pairs]
        given[over.index(max(over))] += 1
    share = r">{\raggedright\arraybackslash}\X"
    return size, [f"{share}{{{10 * g:.0f}}}{{{10 * total:.0f}}}" for g in given]


def breakable(leaf: nodes.Text) -> str:
    """The text of a cell, told where a line may end: in long names, and not in numbers."""
    text = leaf.astext()
    if isinstance(leaf.parent, nodes.literal):
        return re.sub(r"(?<=[_.])(?=\w)", "\u200b", text)
    if isinstance(leaf.parent, (nodes.math, nodes.raw)):
        return text
    return TOGETHER.sub(lambda m: m[0].replace(" ", "\xa0"), text)


def width(entry: nodes.entry) -> tuple[float, float]:
    """Characters of a cell in one line, and of its longest word."""
    line, longest = 0.0, 0.0
    bold = 1.15 if isinstance(entry.parent.parent, nodes.thead) else 1.0
    for leaf in entry.findall(nodes.Text):
        text, scale = leaf.astext(), bold
        if isinstance(leaf.parent, (nodes.math, nodes.math_block)):
            text = re.sub(r"\\(?:mathrm|mathcal|bar|text)|[{}^_ ]", "", text)
            text = re.sub(r"\\[a-zA-Z]+", "x", text)
        elif isinstance(leaf.parent, nodes.raw):  # a citation
            text = re.sub(r"\\hyperlink\{[^}]*\}|[{}]", "", text)
        elif isinstance(leaf.parent, nodes.literal):
            scale = 1.15
        line += scale * len(text)
        longest = max([longest, *(scale * len(word) for word in re.split(r"[ \n_.]", text))])
    return line, longest


# ----------------------------------------------------------------------------------- the writer


class PaperTranslator(LaTeXTranslator):
    """Writes the site's numbers where LaTeX would count for itself."""

    def of_site(self, kind: str, node: nodes.Element) -> str:
        return number_on_site(self.builder.env, self.curfilestack[-1], kind, node)

    def visit_Box(self, node: Box) -> None:
        self.body.append(f"\n\\begin{{{node['env']}}}")
        self.no_latex_floats += 1

    def depart_Box(self, node: Box) -> None:
        self.no_latex_floats -= 1
        self.body[-1] = self.body[-1].rstrip("\n")  # no paragraph ends before the box does
        self.body.append(f"\n\\end{{{node['env']}}}\n")

    def visit_BoxTitle(self, node: BoxTitle) -> None:
        self.body.append("{")

    def depart_BoxTitle(self, node: BoxTitle) -> None:
        self.body.append("}")  # a paragraph begins its own line

    def visit_title(self, node: nodes.title) -> None:
        section = isinstance(node.parent, nodes.section) and not self.this_is_the_title
        name = self.sectionnames[min(self.sectionlevel, 2)] if section else ""
        if name in ("part", "chapter"):
            number = self.builder.env.toc_secnumbers.get(self.curfilestack[-1], {}).get("")
            shown = number[0] if number and name == "chapter" else ""
            self.body.append(rf"\drotchapter{{{shown}}}" + "\n")
        super().visit_title(node)

    def visit_caption(self, node: nodes.caption) -> None:
        if isinstance(node.parent, nodes.figure):
            number = self.of_site("figure", node.parent)
            self.in_caption += 1
            # The empty argument would go into a list of figures, which the book has not.
            self.body.append(rf"\drotnumber{{figure}}{{{number}}}" + "\n\\caption[]{")
        else:
            super().visit_caption(node)

    def visit_table(self, node: nodes.table) -> None:
        number = self.of_site("table", node)
        if number:
            self.body.append("\n" + rf"\drotnumber{{table}}{{{number}}}" + "\n")
        super().visit_table(node)
        self.table.has_verbatim = True  # that is, tabular: tabulary counts widths anew, and fails

    def visit_math_block(self, node: nodes.math_block) -> None:
        if node.get("nowrap"):
            super().visit_math_block(node)
        formula = "\n".join(line for line in node.astext().splitlines() if line.strip())
        number, label = self.of_site("displaymath", node), ""
        if node.get("label"):
            label = rf"\tag{{{number}}}\label{{equation:{node['docname']}:{node['label']}}}"
        env = "equation" if label else "equation*"
        room = r"\dimexpr\displaywidth-5em\relax" if label else r"\displaywidth"
        self.body.append(
            f"\n\\begin{{{env}}}{label}\\drotfit{{{room}}}{{\n{formula}\n}}\\end{{{env}}}\n"
        )
        raise nodes.SkipNode


def macros(app, config) -> None:
    """What MathJax calls \\R is \\R here, too; beside them what unicode-math would override."""
    lines = []
    for name, meaning in config.mathjax3_config["tex"]["macros"].items():
        text, arguments = meaning if isinstance(meaning, list) else (meaning, 0)
        lines.append(rf"\drotmacro{{{name}}}{{{arguments}}}{{{text.replace('#', '##')}}}")
    lines = [r"\usepackage{paper}", r"\newcommand{\drotmacros}{%", *lines, "}"]
    elements = config.latex_elements
    elements["preamble"] = "\n".join([*lines, elements.get("preamble", "")])


def translate(app) -> None:
    """Only for LaTeX: where any translator is registered, the theme does not install its own."""
    if app.builder.name == "latex":
        app.set_translator("latex", PaperTranslator)


def setup(app) -> None:
    app.connect("builder-inited", translate)
    app.add_node(Box, latex=(PaperTranslator.visit_Box, PaperTranslator.depart_Box))
    app.add_node(BoxTitle, latex=(PaperTranslator.visit_BoxTitle, PaperTranslator.depart_BoxTitle))
    for transform in (Cells, Shapes):
        app.add_post_transform(transform)
    app.connect("config-inited", macros)
