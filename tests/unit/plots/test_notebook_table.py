"""What a notebook shows of an answer."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest
from figure_tools import FOUR, ODD_NAMES, answered

from unbandit import UCB, ActionLog, datasets

KNOWN = {"div", "style", "table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "path", "circle", "p", "strong",
         "code"}  # fmt: skip


class Reader(HTMLParser):
    """Gather the tags, and the text outside the style sheet; tags must close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], [], "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += "" if "style" in self.open else data + "\n"


def read(result):
    reader = Reader()
    reader.feed(result._repr_html_())
    assert reader.open == []
    assert set(reader.tags) <= KNOWN
    assert not {name for name, _ in reader.attributes} & {"style", "onclick", "onload"}
    return reader


def test_rows_have_few_columns_numbers_in_words_and_a_bar():
    reader = read(answered(FOUR))
    lines = reader.text.splitlines()
    assert lines[:7] == [
        "ucb:alpha=0.25,scale=1.0, method bracket", "arm", "verdict", "pulls", "gap", "95% interval", "A"
    ]  # fmt: skip
    assert reader.tags.count("svg") == 4
    assert "at least 0.00" in reader.text
    assert "nan" not in reader.text.lower()


@pytest.mark.parametrize("options", [{"best_mean": 1.0}, {"scale": "unknown"}, {"method": "naive"}, {"rule": "sae"}])
def test_every_quantity_can_be_shown(options):
    reader = read(answered(FOUR, **options))
    assert ("value" in reader.text) == ("best_mean" in options)
    assert ("ratio" in reader.text) == ("scale" in options)


@pytest.mark.parametrize("name", [name for name in ODD_NAMES if name != "\ud800"], ids=ascii)
def test_names_are_text(name):
    reader = read(answered(ActionLog.from_counts({name: 90, "other": 40})))
    reader.text.encode("utf-8")
    assert all(letter.isprintable() or letter in "\n\u200d" for letter in reader.text)
    if len(name) <= 60 and name.isprintable():
        assert name.strip() in reader.text


def test_a_long_name_is_cut():
    assert len(answered(ActionLog.from_counts({"x" * 100_000: 90, "other": 40}))._repr_html_()) < 10_000


def test_many_rows_are_cut_with_a_line_that_says_so():
    result = answered(UCB().demonstrate(datasets.linear(224), 2_000, seed=1))
    reader = read(result)
    assert reader.tags.count("svg") == 40
    assert "184 more rows: see \n.to_frame()" in reader.text


def test_many_demonstrations_are_shown_in_good_time_and_their_notices_once():
    result = answered(UCB().demonstrate(datasets.linear(20), 200, runs=500, seed=1))
    start = time.process_time()
    reader = read(result)
    assert time.process_time() - start < 1
    assert "9,960 more rows" in reader.text
    assert "of 500 demonstrations, the first being" in reader.text
    few = answered(UCB().demonstrate(datasets.linear(20), 200, runs=15, seed=1))
    assert "more like this" in read(few).text
    assert reader.tags.count("p") <= 10
