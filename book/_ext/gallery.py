"""``{gallery}``: every figure of the book as a thumbnail with its sentence, linked to its place."""

from __future__ import annotations

import copy
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from PIL import Image
from sphinx import addnodes

WIDTH = 220  # of a thumbnail on the page, in pixels

SENTENCE_ENDS = re.compile(r"(?<=[.?!])\s")


class Gallery(nodes.General, nodes.Element):
    """Where the thumbnails come to stand."""


class GalleryDirective(Directive):
    def run(self) -> list[nodes.Node]:
        return [Gallery()]


def sentence(caption: nodes.caption) -> list[nodes.Node]:
    """The first sentence, its links as words: a thumbnail has one link, to its figure."""
    kept: list[nodes.Node] = []
    for child in caption.children:
        if isinstance(child, nodes.Text):
            first, *rest = SENTENCE_ENDS.split(child, maxsplit=1)
            kept.append(nodes.Text(first))
            if rest:
                break
        elif isinstance(child, nodes.math):
            kept.append(copy.deepcopy(child))
        else:
            kept.append(nodes.inline("", child.astext()))
    return kept


def entry(app, here: str, there: str, figure: nodes.figure) -> nodes.Element | None:
    """A thumbnail, or nothing for a figure without a picture, a name or a caption."""
    images = list(figure.findall(nodes.image))
    captions = list(figure.findall(nodes.caption))
    if not (images and captions and figure["ids"]):
        return None
    source = {key: images[0][key] for key in ("uri", "candidates")}
    image = nodes.image(alt="", loading="lazy", **source)
    number = app.env.toc_fignumbers.get(there, {}).get("figure", {}).get(figure["ids"][0], ())
    name = "Fig. " + ".".join(map(str, number)) if number else "Figure"
    address = app.builder.get_relative_uri(here, there) + "#" + figure["ids"][0]
    text = nodes.paragraph("", "", nodes.strong("", name), nodes.Text(" "), *sentence(captions[0]))
    link = nodes.reference("", "", image, internal=True, refuri=address)
    link["reftitle"] = name
    words = nodes.reference("", "", *text.children, internal=True, refuri=address)
    return nodes.container(
        "", nodes.paragraph("", "", link), nodes.paragraph("", "", words), classes=["drot-thumb"]
    )


def pages(env) -> list[str]:
    """All pages in the order of the contents."""
    listed: list[str] = []

    def walk(page: str) -> None:
        listed.append(page)
        for tree in env.get_doctree(page).findall(addnodes.toctree):
            for name in tree["includefiles"]:
                walk(name)

    walk(env.config.root_doc)
    return listed


def fill(app, doctree, here: str) -> None:
    """Put the thumbnails of each page under its title."""
    for place in list(doctree.findall(Gallery)):
        found: list[nodes.Node] = []
        for there in pages(app.env):
            figures = app.env.get_doctree(there).findall(nodes.figure)
            shown = [one for figure in figures if (one := entry(app, here, there, figure))]
            if shown:
                title = app.env.titles[there].astext()
                address = app.builder.get_relative_uri(here, there)
                notebook = "../" * here.count("/") + f"_sources/{there}.ipynb"
                head = nodes.paragraph(
                    "", "",
                    nodes.reference("", "", nodes.strong("", title), internal=True, refuri=address),
                    nodes.Text(" · "),
                    nodes.reference("", "notebook", internal=False, refuri=notebook),
                    classes=["drot-gallery-head"],
                )  # fmt: skip
                found += [head, nodes.container("", *shown, classes=["drot-gallery"])]
        place.replace_self(found)


def shrink(app, exception) -> None:
    """Let the page load small copies of its pictures."""
    page = Path(app.outdir, "book", "gallery.html")
    if exception or app.builder.format != "html" or not page.is_file():
        return

    def small(found: re.Match) -> str:
        source, target = (Path(app.outdir, "_images", part + found[1]) for part in ("", "small-"))
        with Image.open(source) as picture:
            picture.thumbnail((2 * WIDTH, 2 * WIDTH))
            picture.save(target, optimize=True)
        return f'src="../_images/small-{found[1]}"'

    text = page.read_text("utf8")
    page.write_text(re.sub(r'src="\.\./_images/([^"]+\.png)"', small, text), "utf8")


def setup(app) -> None:
    app.add_node(Gallery)
    app.add_directive("gallery", GalleryDirective)
    app.connect("doctree-resolved", fill)
    app.connect("build-finished", shrink)
