"""The page: one well-formed file that holds everything, fetches nothing, and believes no text."""

from __future__ import annotations

import html
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from types import SimpleNamespace

import pytest

from unbandit import __version__
from unbandit.paper.claims import HOLDS, Claim
from unbandit.paper.figure import Selection
from unbandit.paper.page import page
from unbandit.study.monte_carlo import Measured

EMPTY = {"meta", "img", "br", "link", "input", "hr"}


class Reader(HTMLParser):
    """Read a page: its tags with their attributes, its text, and whether every tag is closed in turn."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def read(tiny):
    return Reader(page(tiny))


def test_every_figure_is_on_it_with_its_caption_and_files(tiny, read):
    images, targets = read.all("img"), {link["href"] for link in read.all("a")}
    assert len(images) == len(tiny.made)
    for made, image in zip(tiny.made, images, strict=True):
        assert image["src"].startswith("data:image/png;base64,")
        assert image["alt"] == made.figure.alt
        assert made.figure.caption in read.text
        assert {path.name for path in made.files} <= targets
        assert f"#{made.figure.name}" in targets


def test_every_claim_is_on_it_twice_with_its_verdict(tiny, read):
    for made in tiny.made:
        for claim in made.claims:
            assert read.text.count(claim.says) >= 2, claim
            assert claim.statistic in read.text
            assert claim.because in read.text
    counted = sum(tiny.verdicts.values()) + sum(tiny.own_verdicts.values())
    assert counted == sum(len(made.claims) for made in tiny.made)


def test_nothing_is_fetched_and_nothing_runs(read):
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in read.tags}
    for _, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "srcset"]
        for name in ("src", "href"):
            assert not (attributes.get(name) or "").startswith(("http:", "https:", "//", "file:", "javascript:"))
    style = "".join(read.words)
    assert "@import" not in style
    assert "url(" not in style


def test_links_lead_somewhere(tiny, read):
    anchors = {attributes["id"] for _, attributes in read.tags if "id" in attributes}
    for link in read.all("a"):
        target = link["href"]
        assert target[1:] in anchors if target.startswith("#") else (tiny.folder / target).is_file(), target


def test_tables_have_headers_with_a_scope_and_headings_go_down_one_by_one(read):
    assert all(header["scope"] in ("col", "row", "rowgroup") for header in read.all("th"))
    levels = [int(tag[1]) for tag, _ in read.tags if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert read.all("html")[0]["lang"] == "en"


def test_how_it_was_made_is_said(tiny, read):
    assert f"unbandit {__version__}" in read.text
    assert tiny.command in html.unescape(read.text)
    assert "4 for every picture" in read.text
    assert "arXiv:2106.14866" in read.text
    assert f"{tiny.parts:,} parts, 0 of which were there already" in read.text


def test_text_is_only_text(tiny):
    evil = '<script>alert("x")</script> & <b>'
    first = tiny.made[0]
    figure = SimpleNamespace(beyond=False, name="evil", title=evil, section=evil, caption=evil, alt=evil + "'\"")
    claims = [Claim(evil, evil, None, HOLDS, evil), Claim("a", "b", Measured(1.0, 0.1, 20), HOLDS, "c")]
    selection = [Selection(evil, 100, 7, 93, 0.25, 0.125)]
    made = replace(first, figure=figure, claims=claims, selection=selection, runs=(100, 250))
    shown = replace(tiny, made=[made], asked=evil)
    read = Reader(page(shown))
    assert not read.all("script")
    assert not read.all("b")
    assert read.text.count(evil) >= 8
    assert read.all("img")[0]["alt"] == evil + "'\""
    assert "What the authors' selection of runs does" in read.text
    assert "100 7 93 0.25 0.125" in read.text
    assert "1.00 ± 0.10" in read.text
    assert "100, 250 runs" in read.text


def test_a_page_without_selection_or_claims(tiny):
    bare = replace(tiny, made=[replace(tiny.made[0], claims=[], selection=[], runs=())])
    read = Reader(page(bare))
    assert "The paper claims nothing of it." in read.text
    assert "selection of runs" not in read.text
