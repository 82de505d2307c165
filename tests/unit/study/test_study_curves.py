"""Sums and replicates against the plain definitions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from unbandit.errors import ParameterError
from unbandit.instance import Instance
from unbandit.study import Study
from unbandit.study.curves import StudyCurves, pool_arms, summary
from unbandit.study.monte_carlo import measured, slope
from unbandit.study.rows import rows
from unbandit.study.taskgrid import Tasks

INSTANCES = [Instance([1.0, 0.5, 0.2], 1.0, name="three"), Instance([0.3, 0.9], 0.5, name="two")]
STUDY = Study(INSTANCES, ["ucb:alpha=0.25", "sae:scale=0.3"], [100, 400], 50, 5, ["switching", "naive"])


@pytest.fixture(scope="module")
def parts():
    return [rows(STUDY, task) for task in STUDY.tasks]


@pytest.fixture(scope="module")
def folds(parts):
    return StudyCurves(STUDY, parts)


@pytest.mark.parametrize("estimator", ["switching", "naive"])
@pytest.mark.parametrize(("instance", "arm"), [("three", "1"), ("three", "0"), ("two", "0")])
def test_every_statistic_is_its_definition(folds, parts, instance, arm, estimator):
    rule = str(STUDY.rules[1])
    curve = folds.curve(instance=instance, rule=rule, arm=arm, estimator=estimator)
    assert curve.along.tolist() == [100, 400]
    everything = pl.concat(parts).filter(
        pl.col("instance") == instance, pl.col("rule") == rule, pl.col("arm") == arm, pl.col("estimator") == estimator
    )
    for at, horizon in enumerate((100, 400)):
        for replicate in range(21):
            seen = everything.filter(pl.col("horizon") == horizon, pl.col("run") % 20 != replicate - 1)
            error, sure = seen["estimate"] - seen["gap"], seen.filter(pl.col("verdict") == "estimated")
            kept = seen.filter(pl.col("most_pulled_is_best"))
            expected = {
                "mse": (error**2).mean(),
                "mean_error": error.mean(),
                "mean_absolute_error": error.abs().mean(),
                "regret": seen["regret"].mean(),
                "found": seen["found"].mean(),
                "kept": seen["most_pulled_is_best"].mean(),
                "points": seen["estimate"].is_not_null().mean(),
                "estimated": (seen["verdict"] == "estimated").mean(),
                "bounded": (seen["verdict"] == "bounded").mean(),
                "pulls": seen["pulls"].mean(),
                "coverage": ((sure["low"] <= sure["gap"]) & (sure["gap"] <= sure["high"])).mean(),
                "mse_kept": ((kept["estimate"] - kept["gap"]) ** 2).mean(),
            }
            for name, value in expected.items():
                found = getattr(curve, name)[replicate, at]
                assert found == pytest.approx(np.nan if value is None else value, nan_ok=True), name


def test_arms_at_one_horizon(folds):
    across = folds.over_arms(horizon=400, instance="three", rule=STUDY.rules[0])
    assert across.along.tolist() == ["0", "1", "2"]
    for at, arm in enumerate(across.along):
        along = folds.curve(instance="three", rule=STUDY.rules[0], arm=arm)
        assert np.array_equal(across.mse[:, at], along.mse[:, 1], equal_nan=True)
    assert across.gap.tolist() == pytest.approx([0.0, 0.5, 0.8])


def test_how_tasks_are_cut_does_not_matter(folds, parts, monkeypatch):
    """The same rows in blocks of 7 runs give the same sums, up to the order of adding."""
    cut = Study(INSTANCES, STUDY.rules, STUDY.horizons, STUDY.runs, STUDY.seed, STUDY.estimators)
    cut.__dict__["tasks"] = Tasks([(cell.horizon, 7) for cell in cut.cells], cut.runs)
    again = StudyCurves(cut, [rows(cut, task) for task in cut.tasks])
    for key in folds.keys():  # noqa: SIM118  # not a dictionary
        assert again.curve(**key).mse == pytest.approx(folds.curve(**key).mse, nan_ok=True)


def test_unknown_keys_are_refused(folds):
    for given, expected in (
        ({"arm": "1"}, "instance: expected one of three, two; got none of them"),
        ({"arm": "1", "instance": "four"}, 'instance: expected one of three, two; got "four"'),
        ({"arm": "1", "instance": "two"}, "rule: expected one of ucb"),
        ({"arm": "7", "instance": "two", "rule": STUDY.rules[0]}, 'arm: expected one of 0, 1; got "7"'),
        ({"arm": "1", "instance": "two", "rule": STUDY.rules[0], "estimator": "counts"}, "estimator: expected one of"),
    ):
        with pytest.raises(ParameterError, match=expected):
            folds.curve(**given)


def test_fewer_runs_than_folds():
    study = Study("two-armed", "ucb", 100, runs=3)
    found = StudyCurves(study, [rows(study, task) for task in study.tasks])
    assert found.count == 3
    assert found.curve(arm="1").mse.shape == (4, 1)


def test_the_jackknife_of_a_mean_is_its_standard_error():
    """Folds of equal size: the error is that of the fold means, s / sqrt(F)."""
    values = np.random.default_rng(1).normal(size=(20, 50))
    means = values.mean(axis=1)
    found = measured(np.concatenate([[values.mean()], (values.sum() - values.sum(axis=1)) / (19 * 50)]))
    assert found.value == pytest.approx(values.mean())
    assert found.error == pytest.approx(means.std(ddof=1) / np.sqrt(20))
    assert (found.high - found.value) / found.error == pytest.approx(2.093, abs=1e-3)  # Student's t, 19 degrees


def test_the_interval_of_a_slope_covers():
    """Slopes of MSE on T from 400 made-up studies: 95% intervals hold the truth in 92% to 98% (3 standard errors)."""
    rng, x, held = np.random.default_rng(7), np.log([1.0, 2.0, 4.0, 8.0]), 0
    for _ in range(400):
        squares = rng.chisquare(1, size=(20, 5, 4)) * np.array([1.0, 0.5, 0.25, 0.125])
        sums = squares.sum(axis=1)
        whole = np.concatenate([sums.sum(axis=0, keepdims=True), sums.sum(axis=0) - sums])
        found = measured(slope(x, np.log(whole)))
        held += found.low <= -1.0 <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_a_slope_needs_two_points():
    assert np.isnan(slope([1.0, 2.0], np.ones((3, 2)), np.array([True, False]))).all()


# One line for all arms of a cell, against the rows themselves

UNEVEN = Study(
    Instance([1.0, 0.97, 0.5, 0.2], 0.5, name="uneven"), ["sae:scale=0.4", "ucb"], 700, 60, 2, ["switching", "naive"]
)


@pytest.fixture(scope="module")
def uneven_parts():
    return [rows(UNEVEN, task) for task in UNEVEN.tasks]


@pytest.fixture(scope="module")
def lines(uneven_parts):
    return pool_arms(summary(StudyCurves(UNEVEN, uneven_parts)).filter(pl.col("gap") > 0))


@pytest.mark.parametrize("rule", UNEVEN.rules, ids=lambda rule: rule.name)
def test_coverage_is_that_of_all_intervals_together(uneven_parts, lines, rule):
    (line,) = lines.filter(rule=str(rule), estimator="switching").to_dicts()
    given = pl.concat(uneven_parts).filter(
        pl.col("rule") == str(rule), pl.col("estimator") == "switching", pl.col("gap") > 0,
        pl.col("verdict") == "estimated",
    )  # fmt: skip
    held = (given["low"] <= given["gap"]) & (given["gap"] <= given["high"])
    assert line["coverage"] == pytest.approx(held.mean(), abs=1e-5)
    assert line["estimated"] == pytest.approx(given.height / (3 * UNEVEN.runs), abs=1e-5)


def test_an_arm_that_is_rarely_estimated_is_not_the_worst(uneven_parts, lines):
    table = summary(StudyCurves(UNEVEN, uneven_parts)).filter(rule=str(UNEVEN.rules[0]), estimator="switching")
    rare = table.filter(pl.col("gap") > 0, pl.col("estimated") < 0.95)
    assert 0 < rare.height < 3  # the arm next to the best, which SAE has not eliminated in every run
    (line,) = lines.filter(rule=str(UNEVEN.rules[0]), estimator="switching").to_dicts()
    assert line["rmse"] == table.filter(pl.col("estimated") >= 0.95)["rmse"].max()


def test_without_intervals_there_is_no_coverage(lines):
    assert lines.filter(estimator="naive")["coverage"].is_null().all()
