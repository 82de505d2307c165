"""What the figures share: ticks that are plain numbers, and rows in one form."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit.paper.panels import PlainLocator, Series, panels, plain
from unbandit.study.monte_carlo import Measured


@pytest.mark.parametrize(
    ("ends", "ticks"),
    [((400, 6_000), [500, 1_000, 2_000, 5_000]), ((400, 60_000), [1_000, 10_000]), ((21, 29), [22, 24, 26, 28])],
)
def test_ticks_stand_at_plain_numbers(ends, ticks):
    assert PlainLocator(1.5).tick_values(*ends) == ticks


def test_ticks_are_written_without_powers_of_ten():
    assert [plain(value) for value in (5000.0, 1.5, 0.002, 1e-7)] == ["5,000", "1.5", "0.002", "1e-07"]


def test_rows_have_one_form():
    rows = Series("a", "alpha 0.25", [500, 5_000], Measured(np.ones(2), np.zeros(2), 20)).rows
    assert rows.columns == ["panel", "curve", "x", "value", "error", "share"]
    assert rows["share"].to_list() == [1.0, 1.0]


def test_several_panels_have_letters():
    assert [axes.get_title() for axes in panels(3)[1]] == ["(a)", "(b)", "(c)"]
    assert panels(1)[1][0].get_title() == ""
