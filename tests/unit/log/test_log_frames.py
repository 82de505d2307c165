"""Dataframes of other libraries."""

from __future__ import annotations

import sys
from typing import Any

import polars as pl
import pytest

from unbandit.errors import LogError, ParameterError
from unbandit.log import ActionLog

pandas = pytest.importorskip("pandas")

DATA: dict[str, list[Any]] = {"subjID": ["s1", "s2", "s1"], "trial": [2, 1, 1], "choice": [1, 2, 2], "gain": [0, 1, 0]}
EXPECTED = ActionLog.from_actions([[2, 1], [2]])


def check(log: ActionLog) -> None:
    assert log.demonstrations == ("s1", "s2")
    assert log.pulls.tolist() == EXPECTED.pulls.tolist()
    assert log.actions is not None
    assert log.actions.tolist() == [1, 0, 1]
    assert log.notices[1:] == (
        "Column \"gain\" is ignored. If it contains the rewards, say so with columns={'reward': 'gain'}.",
    )


def test_polars_eager_and_lazy() -> None:
    check(ActionLog.from_frame(pl.DataFrame(DATA)))
    check(ActionLog.from_frame(pl.LazyFrame(DATA)))


def test_pandas() -> None:
    frame = pandas.DataFrame(DATA)
    check(ActionLog.from_frame(frame))
    check(ActionLog.from_frame(frame.astype({"subjID": "category", "choice": "float64"})))
    check(ActionLog.from_frame(frame.astype(object)))


def test_pandas_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    check(ActionLog.from_frame(pandas.DataFrame(DATA)))


def test_pyarrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    check(ActionLog.from_frame(pyarrow.table(DATA)))
    encoded = pyarrow.table({**DATA, "subjID": pyarrow.array(DATA["subjID"]).dictionary_encode()})
    check(ActionLog.from_frame(encoded))
    with pytest.raises(LogError, match='"arm" twice'):
        ActionLog.from_frame(pyarrow.table([[1], [2]], names=["arm", "arm"]))


def test_columns_with_numbers_for_names() -> None:
    assert ActionLog.from_frame(pandas.DataFrame({0: ["A", "B"]}), columns={"arm": "0"}).arms == ("A", "B")


def test_categories_and_enumerations() -> None:
    for kind in (pl.Categorical, pl.Enum(["z", "b", "a"])):
        log = ActionLog.from_frame(pl.DataFrame({"arm": pl.Series(["b", "a", "b"], dtype=kind)}))
        assert log.arms == ("b", "a")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_values_of_pandas_are_refused(missing: object) -> None:
    for values in (["A", missing, "B"], [1, missing, 2], [1, missing, "B"]):
        with pytest.raises(LogError, match=r"(?s)got a blank cell. Fill it in") as caught:
            ActionLog.from_frame(pandas.DataFrame({"arm": values}))
        assert (caught.value.row, caught.value.column) == (2, "arm")


def test_other_refusals() -> None:
    with pytest.raises(LogError, match='"arm" twice'):
        ActionLog.from_frame(pandas.DataFrame([[1, 2]], columns=["arm", "arm"]))
    with pytest.raises(LogError, match="without rows"):
        ActionLog.from_frame(pl.DataFrame({"arm": []}))
    with pytest.raises(LogError, match="Collect it first"):
        ActionLog.from_frame(pl.LazyFrame({"arm": ["A"]}).select(pl.col("nowhere")))
    with pytest.raises(LogError, match="Collect it first"):
        ActionLog.from_frame(pl.LazyFrame({"arm": ["A", "B"]}).select(pl.col("arm").cast(pl.Int64)))
    with pytest.raises(ParameterError, match="from_actions"):
        ActionLog.from_frame(["A", "B"])
