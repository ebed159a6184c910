"""The concept map on the first page: every chapter once, linked exactly where it is written."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("probe.js").read_text("utf8")
SVG = "{http://www.w3.org/2000/svg}"
MAP = ET.parse(ROOT / "book" / "_static" / "concept_map.svg").getroot()
NODES = [node for node in MAP.iter() if "node" in node.get("class", "").split()]


def number(node: ET.Element) -> str:
    return re.search(r"\bn(\d\d)\b", node.get("class"))[1]


def test_every_chapter_stands_once():
    assert sorted(map(number, NODES)) == [f"{k:02d}" for k in range(15)]
    for node in NODES:
        name = next(t for t in node.iter(f"{SVG}text") if t.get("class") == "name")
        assert name.text.startswith(number(node))


def test_links_are_the_chapters_of_the_table_of_contents():
    toc = re.findall(r"^\s*- file: book/(\d\d_\w+)", (ROOT / "_toc.yml").read_text("utf8"), re.M)
    written = {name[:2]: f"{name}.html" for name in toc}
    assert {number(n): n.get("href") for n in NODES if n.tag == f"{SVG}a"} == written
    for node in NODES:
        second = next(t for t in node.iter(f"{SVG}text") if t.get("class") == "sub")
        coming = number(node) not in written
        assert second.text.startswith("coming:") == coming, number(node)
        assert ("coming" in node.get("class").split()) == coming, number(node)


def test_both_layouts_place_every_chapter_and_draw_every_arrow():
    style = MAP.find(f"{SVG}style").text
    wide, narrow = style.split("@container")
    for part in (wide, narrow):
        places = dict(re.findall(r"\.n(\d\d) \{ transform: translate\((\d+px, \d+px)\)", part))
        assert set(places) == set(map(number, NODES))
        assert len(set(places.values())) == len(NODES)
    assert MAP.find(f"{SVG}title").text and MAP.find(f"{SVG}desc").text


@pytest.mark.parametrize("width", [1440, 1100, 390, 320])
def test_map_is_legible(browser, site_url, width):
    """Words stay in their boxes, boxes in the picture and apart, the picture in the page."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(site_url + "book/index.html")
    page.evaluate(PROBE)
    found = page.evaluate("probe.map()")
    page.close()
    left, top, right, bottom = found["map"]
    assert left >= 0 and right <= found["page"]
    boxes = [node["box"] for node in found["nodes"]]
    assert len(boxes) == len(NODES)
    for node in found["nodes"]:
        a, b, c, d = node["box"]
        assert a >= left and b >= top and c <= right and d <= bottom
        assert node["size"] >= 11
        for p, q, r, s in node["words"]:
            assert p >= a and q >= b and r <= c and s <= d, "words leave their box"
    for k, (a, b, c, d) in enumerate(boxes):
        for p, q, r, s in boxes[:k]:
            assert r <= a or c <= p or s <= b or d <= q, "two boxes overlap"
