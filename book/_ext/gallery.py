"""``{gallery}``: every figure of the book as a thumbnail with its first words and its place."""

from __future__ import annotations

import copy
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from PIL import Image
from sphinx import addnodes
from sphinx.transforms import SphinxTransformer
from sphinx.transforms.post_transforms import ReferencesResolver

WIDTH = 220  # of a thumbnail on the page, in pixels
FEWEST = 5  # words that say what is seen

SENTENCE_ENDS = re.compile(r"(?<=[.?!])\s")


class Gallery(nodes.General, nodes.Element):
    """Where the thumbnails come to stand."""


class GalleryDirective(Directive):
    def run(self) -> list[nodes.Node]:
        return [Gallery()]


def resolved(app, there: str, caption: nodes.caption) -> nodes.caption:
    """The caption with its references as the reader sees them."""
    page = app.env.get_doctree(there).copy()  # of the document, without its content
    page += caption.deepcopy()
    transformer = SphinxTransformer(page)
    transformer.set_environment(app.env)
    transformer.add_transforms([ReferencesResolver])
    held = app.env.temp_data.get("docname", "")
    app.env.temp_data["docname"] = there
    transformer.apply_transforms()
    app.env.temp_data["docname"] = held
    return page[0]


def sentences(caption: nodes.caption) -> list[nodes.Node]:
    """The first sentences, of five words or more, links as words: a thumbnail has one link."""
    kept: list[nodes.Node] = []
    words = 0
    for child in caption.children:
        if isinstance(child, nodes.Text):
            parts = SENTENCE_ENDS.split(child)
            for i, part in enumerate(parts):
                words += len(part.split())
                last = i < len(parts) - 1  # of its sentence
                if last and words >= FEWEST:
                    return [*kept, nodes.Text(" ".join(parts[: i + 1]))]
            kept.append(nodes.Text(child))
        else:
            words += 1
            math = isinstance(child, nodes.math)
            kept.append(copy.deepcopy(child) if math else nodes.inline("", child.astext()))
    return kept


def entry(app, here: str, there: str, figure: nodes.figure) -> nodes.Element | None:
    """A thumbnail, or nothing for a figure without a picture, a name or a caption."""
    images = list(figure.findall(nodes.image))
    captions = list(figure.findall(nodes.caption))
    if not (images and captions and figure["ids"]):
        return None
    source = {key: images[0][key] for key in ("uri", "candidates")}
    image = nodes.image(alt=images[0].get("alt", ""), loading="lazy", **source)
    number = app.env.toc_fignumbers.get(there, {}).get("figure", {}).get(figure["ids"][0], ())
    name = "Fig. " + ".".join(map(str, number)) if len(number) > 1 else "Figure"  # of a chapter
    address = app.builder.get_relative_uri(here, there) + "#" + figure["ids"][0]
    head = [nodes.strong("", name), nodes.Text(" ")] if len(number) > 1 else []
    text = [*head, *sentences(resolved(app, there, captions[0]))]
    link = nodes.reference("", "", image, internal=True, refuri=address)
    link["reftitle"] = name
    words = nodes.reference("", "", *text, internal=True, refuri=address)
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
            picture.thumbnail((2 * WIDTH, 3 * WIDTH))
            # 256 colours are a quarter of the bytes, and cannot be told from all
            picture.quantize(256, method=Image.Quantize.FASTOCTREE).save(target, optimize=True)
            width, height = picture.size  # so that its place is kept until it comes
        return f'src="../_images/small-{found[1]}" width="{width}" height="{height}"'

    text = page.read_text("utf8")
    page.write_text(re.sub(r'src="\.\./_images/([^"]+\.png)"', small, text), "utf8")


def setup(app) -> None:
    app.add_node(Gallery)
    app.add_directive("gallery", GalleryDirective)
    app.connect("doctree-resolved", fill)
    app.connect("build-finished", shrink)
