"""Numbers fitted from logs: the measure runs end to end, and its metrics count what holds."""

import polars as pl
import pytest

from unbandit.calibration import calibrate, parameters
from unbandit.calibration.parameters import FitCell, Fits, FitTrials, fit_metrics


def test_the_measure_runs_end_to_end(monkeypatch, tmp_path):
    for name in ("INDEX_CELLS", "RANDOMISED_CELLS"):
        monkeypatch.setattr(parameters, name, ((3, 200),))
    done = calibrate(tmp_path, measures=["fit"], rules=["moss", "epsilon-greedy"], runs=2, particles=20, threads=1)
    found = next(each for each in done.found if each.measure.name == "fit")
    texts = [(each.cell.text, each.cell.usual) for each in found.metrics]
    assert texts == [("moss:scale=fit", False), ("moss:scale=fit", True), ("epsilon-greedy:epsilon=fit", False)]
    assert found.metrics[2].answered.value == 1.0
    assert "Numbers fitted from the log" in done.page.read_text(encoding="utf-8")


def test_the_same_seed_gives_the_same_rows_and_refusals_are_kept():
    cells = (FitCell("ucb1:exploration=fit", 2, 20, 2),)
    first, again = (FitTrials(cells, 1).rows(FitTrials(cells, 1).tasks[0]) for _ in range(2))
    assert first.equals(again)
    assert first["parameter"].to_list() == ["exploration"] * 2
    assert all("the log does not show exploration" in text for text in first["failure"].drop_nulls())


def test_metrics_count_what_holds_and_how_long_intervals_are():
    cell = FitCell("learning-softmax:rate=fit,temperature=fit", 2, 100, 3)
    rows = pl.DataFrame(
        {
            "run": [0, 0, 1, 1, 2, 2], "parameter": ["rate", "temperature"] * 3, "truth": [0.2, 0.3] * 3,
            "value": [0.2, 0.3, 0.4, 0.3, None, None], "low": [0.1, 0.2, 0.3, 0.1, None, None],
            "high": [0.3, 0.4, 0.5, 0.6, None, None], "gaps": [1, None, 1, None, None, None],
            "held": [1, None, 0, None, None, None], "failure": [None] * 4 + ["no"] * 2,
            "sharper": pl.Series([None] * 6, dtype=pl.Float64),
        }
    )  # fmt: skip
    found = fit_metrics(cell, rows)
    assert {name: each.value for name, each in found.coverage.items()} == {"rate": 0.5, "temperature": 1.0}
    assert found.widths["rate"] == pytest.approx((0.5 + 0.25) / 2)
    assert (found.gaps.value, found.answered.held, found.answered.runs) == (0.5, 2, 3)
    scores = {each.key: each.scores for each in Fits().criteria([found])}
    assert [score.row for score in scores["fit, coverage"]] == [
        "learning-softmax: rate",
        "learning-softmax: temperature",
    ]
    assert scores["fit, width"][0].verdict is None  # no goal for randomised rules


def test_an_index_rule_is_also_measured_with_its_usual_number_and_by_more_particles(monkeypatch):
    monkeypatch.setattr(parameters, "SHARPER", 2)
    cell = FitCell("ucb1:exploration=fit", 3, 400, 1, usual=True)
    assert cell.truths == {"exploration": (2.0, 2.0)}
    trials = FitTrials((cell,), 1)
    rows = trials.rows(trials.tasks[0])
    assert rows["truth"].to_list() == [pytest.approx(2.0)]
    found = fit_metrics(cell, rows)
    assert 0.3 < found.sharper < 3.0  # about as long by twice as many particles
    scores = {each.key: each.scores for each in Fits().criteria([found])}
    assert [score.row for score in scores["fit, width"]] == ["ucb1: exploration = 2"]
    assert [score.row for score in scores["fit, more particles"]] == ["ucb1:exploration=fit, usual value"]
