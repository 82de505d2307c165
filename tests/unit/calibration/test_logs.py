"""Logs as they happen: every condition gives logs that are read, and metrics count what holds."""

import numpy as np
import polars as pl
import pytest

from unbandit.calibration import calibrate, logs
from unbandit.calibration.logs import CONDITIONS, LogCell, Logs, LogTrials, log_metrics
from unbandit.demonstrators import parse_rule


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(logs, "SIZE", (3, 300))


@pytest.mark.thorough
def test_every_condition_is_measured_for_every_rule(small, tmp_path):
    done = calibrate(tmp_path, measures=["logs"], rules=["ucb"], runs=2, particles=20, threads=1)
    found = next(each for each in done.found if each.measure.name == "logs")
    assert [(each.cell.rule.name, each.cell.condition) for each in found.metrics] == [
        ("ucb", condition) for condition in CONDITIONS
    ]
    assert all(each.failed == 0 for each in found.metrics), {each.failure for each in found.metrics}
    assert "Logs as they happen" in done.page.read_text(encoding="utf-8")


def test_rules_that_choose_at_random_are_read_by_their_posteriors():
    cell = LogCell(parse_rule("thompson:deviation=1,sigma=0.5"), "two late arms and one withdrawn", 3, 60, 1)
    trials = LogTrials((cell,), 1, particles=30)
    found = log_metrics(cell, trials.rows(trials.tasks[0]))
    assert found.failed == 0, found.failure


def test_the_same_seed_gives_the_same_rows():
    cells = [LogCell(parse_rule("ucb:alpha=0.25"), condition, 3, 200, 2) for condition in CONDITIONS]
    first, again = (LogTrials(tuple(cells), 1) for _ in range(2))
    for task in first.tasks:
        assert first.rows(task).equals(again.rows(task))


def test_metrics_count_what_holds_and_what_was_refused():
    cell = LogCell(parse_rule("ucb:alpha=0.25"), "plain", 2, 100, 3)
    rows = pl.DataFrame(
        {
            "run": [0, 0, 1, 1, 2, 2], "verdict": [0, 1, 0, 1, None, None], "gap": [0.0, 0.5] * 3,
            "low": [None, 0.4, None, 0.6, None, None], "high": [None, 0.7, None, 0.9, None, None],
            "failure": [None] * 4 + ["no"] * 2,
        }
    )  # fmt: skip
    found = log_metrics(cell, rows)
    assert (found.coverage.value, found.failed, found.failure) == (0.5, 1, "no")
    assert np.isclose(found.width, 0.3)
    scores = {each.key: each.scores[0] for each in Logs().criteria([found])}
    assert scores["logs, answered"].measured.value == pytest.approx(2 / 3)
    assert scores["logs, coverage"].verdict == "not decided"
