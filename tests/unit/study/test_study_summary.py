"""One line for all arms of a cell, against the rows themselves."""

from __future__ import annotations

import polars as pl
import pytest

from unbandit.instance import Instance
from unbandit.study import Study
from unbandit.study.curves import StudyCurves, pool_arms, summary
from unbandit.study.rows import rows

STUDY = Study(
    Instance([1.0, 0.97, 0.5, 0.2], 0.5, name="uneven"), ["sae:scale=0.4", "ucb"], 700, 60, 2, ["switching", "naive"]
)


@pytest.fixture(scope="module")
def parts():
    return [rows(STUDY, task) for task in STUDY.tasks]


@pytest.fixture(scope="module")
def lines(parts):
    return pool_arms(summary(StudyCurves(STUDY, parts)).filter(pl.col("gap") > 0))


@pytest.mark.parametrize("rule", STUDY.rules, ids=lambda rule: rule.name)
def test_coverage_is_that_of_all_intervals_together(parts, lines, rule):
    (line,) = lines.filter(rule=str(rule), estimator="switching").to_dicts()
    given = pl.concat(parts).filter(
        pl.col("rule") == str(rule), pl.col("estimator") == "switching", pl.col("gap") > 0,
        pl.col("verdict") == "estimated",
    )  # fmt: skip
    held = (given["low"] <= given["gap"]) & (given["gap"] <= given["high"])
    assert line["coverage"] == pytest.approx(held.mean(), abs=1e-5)
    assert line["estimated"] == pytest.approx(given.height / (3 * STUDY.runs), abs=1e-5)


def test_an_arm_that_is_rarely_estimated_is_not_the_worst(parts, lines):
    table = summary(StudyCurves(STUDY, parts)).filter(rule=str(STUDY.rules[0]), estimator="switching")
    rare = table.filter(pl.col("gap") > 0, pl.col("estimated") < 0.95)
    assert 0 < rare.height < 3  # the arm next to the best, which SAE has not eliminated in every run
    (line,) = lines.filter(rule=str(STUDY.rules[0]), estimator="switching").to_dicts()
    assert line["rmse"] == table.filter(pl.col("estimated") >= 0.95)["rmse"].max()


def test_without_intervals_there_is_no_coverage(lines):
    assert lines.filter(estimator="naive")["coverage"].is_null().all()
