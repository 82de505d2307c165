"""Ticks, names, labels that make room for each other, and bars between a table's numbers."""

from __future__ import annotations

from xml.dom import minidom

import numpy as np
import pytest
from figure_tools import ODD_NAMES
from hypothesis import given
from hypothesis import strategies as st

from unbandit.formatting import label as short
from unbandit.plots import BAR_STYLE, interval_bar
from unbandit.plots.parts import arm_name, even_ticks, evenly, log_ticks, narrow, spread


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_labels_keep_their_distance_and_their_order(wanted):
    places = spread(np.array(wanted), 0.04, 0.0, 1.0)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(places[order]) >= 0.04 - 1e-9).all()
    assert places.min() >= -1e-9
    assert places.max() <= 1 + 1e-9


def test_labels_that_have_room_stay_where_they_are():
    wanted = np.array([0.9, 0.1, 0.5])
    assert spread(wanted, 0.05, 0.0, 1.0).tolist() == wanted.tolist()


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_lie_between_the_ends_and_differ_in_words(low, width):
    ticks = even_ticks(low, low + width)
    room = 1e-6 * max(abs(low), width)
    assert all(ticks.low - room <= value <= ticks.high + room for value in ticks.values)
    assert len(set(ticks.labels)) == len(ticks.labels)
    assert len(ticks.labels) <= 9


@given(st.floats(0.9, 1e6), st.floats(1.5, 1e7))
def test_logarithmic_ticks_are_two_or_more_plain_numbers(low, factor):
    ticks = log_ticks(low, low * factor)
    assert 2 <= len(ticks.values) <= 9
    assert all(low * 0.99 <= value <= low * factor * 1.01 for value in ticks.values)


def test_ticks_are_round_numbers():
    assert even_ticks(-0.12, 0.31, 5).labels == ["−0.1", "0.0", "0.1", "0.2", "0.3"]
    assert log_ticks(10, 2_000, 8).labels == ["10", "20", "50", "100", "200", "500", "1,000", "2,000"]
    assert log_ticks(1, 10_000_000, 5).labels == ["1", "100", "10,000", "1,000,000"]


def test_equal_ends_are_moved_apart():
    assert even_ticks(3, 3).low < 3 < even_ticks(3, 3).high
    assert even_ticks(0, 0).low < 0 < even_ticks(0, 0).high
    assert even_ticks(0, 2, whole=True).labels == ["0", "1", "2"]


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_a_name_can_be_put_into_xml(name):
    shown = short(name)
    assert len(shown) <= 24
    shown.encode("utf-8")
    minidom.parseString(f"<a>{shown.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}</a>")


def test_marks_that_turn_the_direction_are_left_out():
    assert short("\u202eabc\u2066") == "abc"
    assert short("👩‍🔬") == "👩‍🔬"


@pytest.mark.parametrize("verdict", ["best", "estimated", "bounded", "unseen"])
@pytest.mark.parametrize(
    ("low", "point", "high"),
    [(0.2, 0.5, 0.8), (None, 0.5, None), (0.2, None, None), (None, None, 0.7), (0.2, None, 0.7), (None, None, None)],
)
def test_a_bar_is_an_image_without_style_that_readers_pass_over(low, point, high, verdict):
    text = interval_bar(low, point, high, (0.0, 1.0), verdict)
    (bar,) = minidom.parseString(text).getElementsByTagName("svg")
    assert bar.getAttribute("class") == f"interval-bar {verdict}"
    assert bar.getAttribute("aria-hidden") == "true"
    assert "style" not in text
    assert "script" not in text
    assert ('class="point"' in text) == (point is not None)
    assert text.count('class="end"') == (low is not None) + (high is not None)
    assert text.count('class="open"') == ((low is None) != (high is None))


def test_a_bar_stays_within_its_ends():
    for span in ((0.0, 1.0), (1.0, 1.0), (-2.0, 0.5)):
        text = interval_bar(-5.0, 0.0, 9.0, span, "estimated")
        (circle,) = minidom.parseString(text).getElementsByTagName("circle")
        assert 0 <= float(circle.getAttribute("cx")) <= 160
    left, right = (interval_bar(None, value, None, (0.0, 1.0), "estimated") for value in (0.0, 1.0))
    assert 'cx="6"' in left
    assert 'cx="154"' in right


def test_every_verdict_has_a_colour_in_the_style_sheet():
    assert all(f".interval-bar.{verdict}" in BAR_STYLE for verdict in ("best", "bounded", "unseen"))


def test_few_of_a_ranking_are_chosen_evenly_with_both_ends():
    assert evenly(range(3), 40).tolist() == [0, 1, 2]
    assert evenly(range(9), 3).tolist() == [0, 4, 8]
    assert evenly([], 3).tolist() == []
    assert (len(evenly(range(224), 40)), evenly(range(224), 40)[-1]) == (40, 223)


def test_labels_that_overlap_move_apart_within_the_ends():
    assert spread(np.array([0.0, 0.1, 5.0]), 1.0, 0.0, 10.0).tolist() == [0.0, 1.0, 5.0]
    assert spread(np.array([9.5, 9.5, 9.5]), 1.0, 0.0, 10.0).tolist() == [8.0, 9.0, 10.0]


def test_of_two_names_each_is_cut_by_itself():
    """The coefficients of a feature for two arms would look the same if the end were cut off both names together."""
    long = "a feature with a long name"
    assert arm_name(long, "sport, and more") == "a feature with a …, sport, and more"
    assert arm_name(long) == "a feature with a long n…"
    with narrow():
        assert arm_name("income", "a long name") == "income, a long n…"
