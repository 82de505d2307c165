"""Codes of labels: the compiled way agrees with the plain one."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbandit.log import ActionLog, views
from unbandit.log.arrow_views import views_of
from unbandit.log.coding import code_integers, code_labels, first_appearances, recoded

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


def texts(column: pl.Series) -> list[str]:
    coded = views.code_views(column)
    assert coded is not None
    assert len(set(coded.labels)) == len(coded.labels)
    return [coded.labels[code] for code in coded.codes]


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=6), st.lists(st.integers(0, 5), min_size=1, max_size=50), st.integers(1, 9))
def test_views_give_the_labels_back(labels: list[str], draws: list[int], chunk: int) -> None:
    values = [labels[draw % len(labels)] for draw in draws]
    column = pl.concat([pl.Series(values[at : at + chunk]) for at in range(0, len(values), chunk)], rechunk=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views, "_OPENING_ROWS", 3)
        patch.setattr(views, "_PIECE_ROWS", 7)
        patch.setattr(views, "_WINDOW_ROWS", 2)
        assert texts(column) == values
        assert texts(column[1:]) == values[1:] if len(values) > 1 else True


@pytest.mark.parametrize("count", [200, 300, 3000])
def test_many_labels_that_show_late(count: int) -> None:
    values = ["first"] * 70_000 + [f"label {number % count}" for number in range(2 * count)]
    coded = views.code_views(pl.Series(values))
    assert coded is not None
    assert coded.codes.dtype == (np.uint8 if count == 200 else np.uint16)
    assert texts(pl.Series(values)) == values


def test_views_give_up_where_they_do_not_pay() -> None:
    values = [f"a label that is nowhere twice: {number}" for number in range(views._MOST_LOOKS + 1)]
    assert views.code_views(pl.Series(values)) is None
    with views_of(pl.Series([1, 2])) as chunks:
        assert chunks is None


def test_numbers_come_in_their_order() -> None:
    coded = views.code_views(pl.Series(["10", "9", "10"]))
    assert coded is not None
    assert coded.labels == ["9", "10"]


def test_a_long_log_takes_the_compiled_way(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ActionLog.from_actions(["b", "a", " a", "b"] * 3)
    monkeypatch.setattr("unbandit.log.coding.MANY_ROWS", 5)
    assert ActionLog.from_actions(["b", "a", " a", "b"] * 3) == expected


@settings(deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(-3, 3), min_size=1), st.sampled_from([np.int64, np.int8]))
def test_integers(values: list[int], kind: type) -> None:
    array = np.array(values).astype(kind)
    coded = code_integers(array)
    assert [int(coded.labels[code]) for code in coded.codes] == array.tolist()
    assert [int(label) for label in coded.labels] == sorted(set(array.tolist()))


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1))
def test_order_of_appearance(values: list[int]) -> None:
    coded = code_integers(np.array(values))
    expected = list(dict.fromkeys(coded.codes.tolist()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbandit.log.coding._BLOCK", 2)
        assert first_appearances(coded.codes, len(coded.labels)) == expected
        assert recoded(coded.codes, np.arange(5) + 1).tolist() == (coded.codes + 1).tolist()


def test_large_floats_are_labels_too() -> None:
    coded = code_labels(pl.Series([1e300, 0.5]))
    assert coded is not None
    assert len(coded.labels) == 2


def test_decimals_are_written_like_floats() -> None:
    coded = code_labels(pl.Series([2, 1], dtype=pl.Decimal(10, 2)))
    assert coded is not None
    assert coded.labels == ["1", "2"]
