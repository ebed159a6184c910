"""The concept map of the opening chapter: every chapter once, linked where it is written."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("probe.js").read_text("utf8")
SVG = "{http://www.w3.org/2000/svg}"
MAP = ET.parse(ROOT / "book" / "_static" / "concept_map.svg").getroot()
NODES = [node for node in MAP.iter() if "node" in node.get("class", "").split()]


def number(node: ET.Element) -> str:
    return re.search(r"\bn(\d\d)\b", node.get("class"))[1]


def test_every_chapter_stands_once_and_leads_to_it():
    assert MAP.find(f"{SVG}title").text and MAP.find(f"{SVG}desc").text
    toc = re.findall(r"^\s*- file: book/(\d\d_\w+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
    written = {name[:2]: f"{name}.html" for name in toc}
    assert sorted(map(number, NODES)) == sorted(written)
    assert {number(n): n.get("href") for n in NODES if n.tag == f"{SVG}a"} == written
    for node in NODES:
        texts = {text.get("class"): text.text for text in node.iter(f"{SVG}text")}
        assert texts["name"].startswith(number(node))


@pytest.mark.parametrize("width", [1440, 320])
def test_map_is_legible(browser, site_url, width):
    """Words stay in their boxes, boxes in the picture and apart, the picture in the page."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(site_url + "book/00_one_picture.html")
    page.evaluate(PROBE)
    found = page.evaluate("probe.map()")
    page.close()

    def within(box, frame) -> bool:
        return all(box[k] >= frame[k] and box[k + 2] <= frame[k + 2] for k in (0, 1))

    assert found["map"][0] >= 0 and found["map"][2] <= found["page"]
    boxes = [node["box"] for node in found["nodes"]]
    assert len(boxes) == len(NODES)
    for node in found["nodes"]:
        assert within(node["box"], found["map"]) and node["size"] >= 11
        assert all(within(word, node["box"]) for word in node["words"]), "words leave their box"
    for (a, b, c, d), (p, q, r, s) in combinations(boxes, 2):
        assert r <= a or c <= p or s <= b or d <= q, "two boxes overlap"
