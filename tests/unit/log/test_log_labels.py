"""Codes of labels: every label comes back, batch after batch, whatever its type."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbandit import ActionLog
from unbandit.errors import ParameterError
from unbandit.log.labels import FEW_ROWS, MOST_SPAN, LabelCoder, first_rows, given_arms, label_of
from unbandit.log.reader import renumbered

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
INTEGERS = st.integers(-3, 3) | st.integers(-(2**62), 2**62) | st.integers(2**63, 2**64 - 1)


def labels_in(coder: LabelCoder, *columns: pl.Series) -> list[str]:
    """Code columns one after the other, and return the label of every row."""
    codes = [code for column in columns for code in coder.code(column).tolist()]
    assert len(set(coder.labels)) == len(coder.labels)
    return [coder.labels[code] for code in codes]


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=50), st.integers(1, 9), st.booleans())
def test_text_comes_back_without_blanks_around_it(values: list[str], size: int, by_appearance: bool) -> None:
    batches = [pl.Series(values[at : at + size]) for at in range(0, len(values), size)]
    coder = LabelCoder(by_appearance=by_appearance)
    expected = [value.strip() for value in values]
    assert labels_in(coder, *batches) == expected
    if by_appearance:
        assert coder.labels == list(dict.fromkeys(expected))


@settings(deadline=None)
@given(st.lists(st.lists(INTEGERS, min_size=1), min_size=1, max_size=4), st.booleans())
def test_integers_come_back(batches: list[list[int]], by_appearance: bool) -> None:
    columns = [
        pl.Series(batch, dtype=pl.UInt64 if max(batch) >= 2**63 else pl.Int64, strict=False) for batch in batches
    ]
    columns = [column for column in columns if not column.null_count()]
    expected = [str(value) for column in columns for value in column.to_list()]
    coder = LabelCoder(by_appearance=by_appearance)
    assert labels_in(coder, *columns) == expected
    if by_appearance:
        assert coder.labels == list(dict.fromkeys(expected))


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float), min_size=1))
def test_floats_are_written_as_labels(values: list[float]) -> None:
    assert labels_in(LabelCoder(), pl.Series(values, dtype=pl.Float64)) == [label_of(value) for value in values]


@pytest.mark.parametrize("lengths", [(1, 1, 1), (40, 40, 40), (3000, 1, 3000), (1, 40, 3000), (9, 3000, 1)])
def test_text_in_runs_comes_back_like_text_in_no_order(lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    texts = np.array(["a", "a ", " b", "b", "c", *(f"arm {number}" for number in range(40))])
    batches = []
    for known, length in zip((5, 25, 45), lengths, strict=True):  # later batches have new labels
        batches.append(np.repeat(texts[rng.integers(0, known, 5 * FEW_ROWS // length + 2)], length).tolist())
    expected = [text.strip() for batch in batches for text in batch]
    coder = LabelCoder(by_appearance=True)
    assert labels_in(coder, *map(pl.Series, batches)) == expected
    assert coder.labels == list(dict.fromkeys(expected))


def test_types_may_differ_from_batch_to_batch() -> None:
    columns = [
        pl.Series([2, 1], dtype=pl.UInt8),
        pl.Series(["2", " 1 ", "x"]),
        pl.Series([1.0, 0.5]),
        pl.Series([MOST_SPAN * 2, 1]),
        pl.Series(["x", "y"], dtype=pl.Categorical),
        pl.Series([True]),
        pl.Series([2, 1], dtype=pl.Decimal(10, 2)),
    ]
    expected = ["2", "1", "2", "1", "x", "1", "0.5", str(MOST_SPAN * 2), "1", "x", "y", "true", "2", "1"]
    assert labels_in(LabelCoder(by_appearance=True), *columns) == expected


def test_what_is_forgotten_gets_a_new_code() -> None:
    coder = LabelCoder(by_appearance=True)
    coder.code(pl.Series(["a", "b", "c"]))
    coder.forget(1)
    assert coder.code(pl.Series(["c", "a"])).tolist() == [1, 0]
    integers = LabelCoder()
    integers.code(pl.Series([0, 1, 2]))
    integers.forget(1)
    assert integers.code(pl.Series([2, 0])).tolist() == [1, 0]


@pytest.mark.parametrize(("count", "kind"), [(200, np.uint8), (300, np.uint16), (70_000, np.uint32)])
def test_codes_grow_with_the_labels(count: int, kind: type) -> None:
    values = ["first"] * 300_000 + [f"label {number % (count - 1)}" for number in range(2 * count)]
    log = ActionLog.from_actions(values)
    assert log.actions is not None
    assert log.actions.dtype == kind
    assert [log.arms[code] for code in log.actions[-count:]] == values[-count:]


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1))
def test_order_of_appearance(values: list[int]) -> None:
    codes = np.array(values)
    assert codes[first_rows(codes)].tolist() == list(dict.fromkeys(values))
    order = np.array([3, 1, 4, 0, 2])
    assert order[renumbered(codes, order)].tolist() == values


@pytest.mark.parametrize("last", ["c", "ç", 3, True], ids=["ASCII", "other text", "number", "truth value"])
def test_listed_arms_are_the_same_text_whatever_stands_beside_them(last: object) -> None:
    assert given_arms(iter([" a", "b\t", last])) == ("a", "b", label_of(last))


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (["a", " a"], 'got "a" twice'),
        (["a", "\t"], "a label at position 2; got a blank"),
        (["a", "\ud800"], "half of a surrogate pair"),
        (["a"], "two labels or more; got 1"),
    ],
)
def test_listed_arms_that_are_no_arms(arms: list[str], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        given_arms(arms)
