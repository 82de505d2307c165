"""Contexts: logs are made and read, what holds is counted, and misreadings are judged by another limit."""

import polars as pl
import pytest

from unbandit.calibration.contexts import ContextCell, Contexts, ContextTrials, context_metrics
from unbandit.calibration.measure import MET, MISSED


@pytest.mark.parametrize(
    ("played", "read"),
    [
        ("linucb:alpha=1", "linucb:alpha=1"),
        ("linucb:alpha=1,disjoint=true", "linucb:alpha=1,disjoint=true"),
        ("linucb:alpha=1", "linucb:alpha=fit"),
    ],
)
def test_logs_are_made_and_read(played, read):
    trials = ContextTrials((ContextCell(played, read, 2, 3, 120, 2),), 1, particles=50)
    first, again = (trials.rows(trials.tasks[0]) for _ in range(2))
    assert first.equals(again)
    answered = first.filter(pl.col("failure").is_null())  # a short log may not show a number that is to be fitted
    assert answered.height == first.height or "=fit" in trials.cells[0].read
    assert answered.height
    assert answered["held"].is_between(0, 1).all()
    assert answered["length"].is_between(0, 4).all()


def test_a_missing_feature_leaves_the_flag_alone():
    trials = ContextTrials((ContextCell("linucb:alpha=1", "linucb:alpha=1", 3, 3, 40, 1, missing=1),), 1, particles=50)
    (row,) = trials.rows(trials.tasks[0]).to_dicts()
    assert row["flagged"] is not None
    assert row["held"] is None


def test_a_long_run_stands_beside_the_usual_one():
    trials = ContextTrials((ContextCell("linucb:alpha=1", "linucb:alpha=1", 2, 3, 40, 3, long=2),), 1, particles=50)
    rows = trials.rows(trials.tasks[0])
    assert (rows["long_error"] != rows["error"]).all()
    assert ((rows["long_error"] / rows["error"]).log().abs() < 0.5).all()
    found = context_metrics(trials.cells[0], rows.with_columns(long_error=2 * pl.col("error")))
    assert found.against_long.value == pytest.approx(0.5)
    scores = {each.key: each.scores for each in Contexts().criteria([found])}
    assert len(scores["contexts, against a long run"]) == 1
    assert scores["contexts, coverage"] == scores["contexts, check"] == []


def test_metrics_and_criteria():
    rows = pl.DataFrame(
        {
            "run": range(100), "held": [0.94, 0.96] * 50, "angle": [2.0, 4.0] * 50, "error": [0.1] * 100,
            "length": [0.5] * 100, "flagged": [False] * 99 + [True], "failure": [None] * 100,
        },
        schema_overrides={"failure": pl.String},
    )  # fmt: skip
    right = context_metrics(ContextCell("linucb:alpha=1", "linucb:alpha=1", 3, 5, 300, 100), rows)
    wrong = context_metrics(ContextCell("lints:v=0.5", "linucb:alpha=1", 3, 5, 300, 100), rows)
    assert (right.coverage.value, right.angle.value) == (pytest.approx(0.95), pytest.approx(3.0))
    scores = {each.key: each.scores for each in Contexts().criteria([right, wrong])}
    assert [score.verdict for score in scores["contexts, coverage"]] == [MET]  # of the right reading only
    assert [score.verdict for score in scores["contexts, coverage by rule"]] == [MET]
    assert [score.verdict for score in scores["contexts, check"]] == ["not decided", MISSED]


def test_cells_of_the_whole_measure():
    from unbandit.calibration.settings import Sizes

    cells = [cell for _, trials in Contexts().trials(Sizes()) for cell in trials.cells]
    assert len(cells) == 3 * 12 + 2 + 2 * 4 + 7 + 3
    assert sum(cell.misread for cell in cells) == 7  # a number that is fitted is none
    assert len({cell.described["name"] for cell in cells}) == len(cells)
