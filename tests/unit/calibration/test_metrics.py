"""Figures from rows made up so that the answer is known, and from rows of a small study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from unbandit import UCB
from unbandit.calibration.identify import CANNOT_TELL, RIGHT, WRONG, Identify, UsualSetting, identify_metrics
from unbandit.calibration.measure import MET, OPEN, judge
from unbandit.calibration.posterior import Sampler, posterior_metrics
from unbandit.calibration.settings import TrialSetting
from unbandit.study.monte_carlo import holm, rank_test, ratio, share_of

ARMS = 3
SETTING = TrialSetting(UCB(), ARMS, 500, 400)


def made_up(runs: int = 400, seed: int = 1, **columns: object) -> pl.DataFrame:
    """Rows of a posterior that is exactly right: the truth is one more draw from what it believes."""
    generator = np.random.default_rng(seed)
    size = runs * ARMS
    believed = generator.normal(size=size)
    truth = believed + generator.normal(size=size)
    gap = np.abs(generator.normal(size=size))
    table = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), ARMS),
            "arm": np.tile(np.arange(ARMS), runs),
            "mean": truth,
            "gap": gap,
            "mean_low": believed - 1.959964,
            "mean_high": believed + 1.959964,
            "gap_low": gap - 0.1,
            "gap_high": gap + 0.1,
            "gap_estimate": gap + 0.3,
            "mean_deviation": np.ones(size),
            "between": np.full(size, 0.15),
            "gap_deviation": np.full(size, 0.5),
            "informed_deviation": np.full(size, 0.3),
            "log_evidence_error": np.repeat(np.arange(runs) % 2 * 0.2, ARMS),
            "naive_gap": gap + 0.6,
            "rank": generator.integers(0, 100, size),
            "warnings": pl.Series([None] * size, dtype=pl.String),
            "failure": pl.Series([None] * size, dtype=pl.String),
        }
    )
    return table.with_columns(**columns)


def test_a_right_posterior_is_found_right():
    found = posterior_metrics(SETTING, made_up())
    assert (found.runs, found.failed, found.warned) == (400, 0, 0)
    assert found.coverage.value == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 1_200))
    # arms are independent here, so the error is that of 1,200 cases, known to a few per cent
    assert found.coverage.error == pytest.approx(np.sqrt(0.95 * 0.05 / 1_200), rel=0.2)
    assert found.gap_coverage.value == 1.0
    assert 0 < found.gap_coverage.error < 0.005  # a share of 1 is not known for certain
    assert found.spread.value == pytest.approx(0.15)
    assert found.kept.value == pytest.approx(0.36)  # of variances
    assert found.evidence_error.value == pytest.approx(0.1)
    assert found.evidence_error.error == pytest.approx(0.1 / np.sqrt(400), rel=0.01)
    assert found.against_naive.value == pytest.approx(0.25)
    assert found.uniform > 0.001


def test_the_order_of_rows_does_not_matter():
    rows = made_up()
    assert posterior_metrics(SETTING, rows.sample(fraction=1.0, shuffle=True, seed=3)) == posterior_metrics(
        SETTING, rows
    )


def test_arms_that_err_together_have_a_larger_error():
    together = made_up().with_columns(pl.col("mean", "mean_low", "mean_high").first().over("run"))
    assert posterior_metrics(SETTING, together).coverage.error == pytest.approx(np.sqrt(0.95 * 0.05 / 400), rel=0.2)


def test_runs_that_failed_are_counted_and_have_no_figures():
    gone = pl.col("run") % 4 == 0
    numbers = ("mean_low", "mean_high", "gap_low", "gap_high", "gap_estimate", "rank")
    rows = made_up().with_columns(
        pl.when(gone).then(pl.lit("round 3: it died.")).alias("failure"),
        *(pl.when(~gone).then(name).alias(name) for name in numbers),
        pl.when(pl.col("run") == 1).then(pl.lit("thin-cloud")).alias("warnings"),
    )
    found = posterior_metrics(SETTING, rows)
    assert (found.runs, found.failed, found.warned) == (400, 100, 1)
    kept = posterior_metrics(SETTING, rows.filter(~gone))
    assert found.coverage == kept.coverage
    assert found.kept == kept.kept
    nothing = posterior_metrics(SETTING, rows.with_columns(failure=pl.lit("no")))
    assert nothing.failed == 400
    assert np.isnan([nothing.coverage.value, nothing.spread.value, nothing.kept.value, nothing.uniform]).all()


def test_arms_never_pulled_are_not_held_against_the_naive_estimator():
    rows = made_up(
        naive_gap=pl.when(pl.col("arm") == 2).then(None).otherwise("naive_gap"),
        gap_estimate=pl.when(pl.col("arm") == 2).then(pl.col("gap") + 50).otherwise("gap_estimate"),
    )
    assert posterior_metrics(SETTING, rows).against_naive.value == pytest.approx(0.25)


def test_ranks_that_pile_up_are_seen():
    generator = np.random.default_rng(2)
    chances = [rank_test(generator.integers(0, 100, 400).astype(float)) for _ in range(200)]
    # of uniform ranks as many are below 0.1 as should be, within four standard errors
    assert abs(np.mean(np.array(chances) < 0.1) - 0.1) < 4 * np.sqrt(0.09 / 200)
    assert rank_test(generator.binomial(99, 0.5, 400).astype(float)) < 1e-9
    assert rank_test(np.where(generator.random(400) < 0.2, 0, generator.integers(0, 100, 400)).astype(float)) < 1e-6
    assert np.isnan(rank_test(np.arange(99.0)))  # too few for 20 bins


def test_one_arm_of_each_run_is_ranked():
    rows = made_up(rank=pl.when(pl.col("arm") == pl.col("run") % ARMS).then(pl.col("run") % 100).otherwise(0))
    assert posterior_metrics(SETTING, rows).uniform == pytest.approx(1.0)


def test_p_values_are_adjusted_for_their_number():
    assert holm(np.array([0.5, 0.001, 0.02, 0.03])).round(4).tolist() == [0.5, 0.004, 0.06, 0.06]
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).tolist() == []


def test_a_ratio_has_the_error_of_its_runs():
    generator = np.random.default_rng(3)
    above, below = generator.exponential(2.0, (4_000, 1)), generator.exponential(1.0, (4_000, 1))
    found = ratio(above, below)
    assert found.value == pytest.approx(above.sum() / below.sum())
    # the delta method: both have a coefficient of variation of 1; the jackknife's error is known to a sixth of itself
    assert found.error == pytest.approx(found.value * np.sqrt(2 / 4_000), rel=0.5)
    assert np.isnan(ratio(above, np.zeros((4_000, 1))).value)


def test_runs_without_a_case_decide_nothing():
    cases = np.zeros((500, 4), np.bool_)
    cases[3:14] = True  # 44 intervals, of 11 runs
    few = share_of(cases, cases)
    assert (few.value, few.folds) == (1.0, 11)
    assert judge(few, 0.5) == OPEN
    assert ratio(2.0 * cases, 1.0 * cases).folds == 11
    cases[3:24] = True
    assert judge(share_of(cases, cases), 0.5) == MET
    cases[:] = False
    cases[7] = True  # without that run nothing is left, so its error is unknown
    assert np.isnan(share_of(cases, cases).error)
    assert judge(share_of(cases, cases), 0.5) == OPEN


def test_runs_without_a_long_posterior_are_counted():
    rows = pl.DataFrame({"run": np.repeat(np.arange(40), ARMS), "arm": np.tile(np.arange(ARMS), 40)}).with_columns(
        gap=0.0, gap_estimate=1.0, long_gap=1.0, log_evidence=-3.0, long_log_evidence=-3.0,
        failure=pl.when(pl.col("run") < 2).then(pl.lit("no")),
    )  # fmt: skip
    found = Sampler().metrics(replace(SETTING, runs=40), rows)
    assert (found.failed, found.against_long.value) == (2, 1.0)
    score = Sampler().criteria([found])[0].scores[0]
    assert (score.text, score.verdict) == ("1.000 ± 0.000 (2 of 40 failed)", "missed")
    whole = Sampler().metrics(replace(SETTING, runs=40), rows.with_columns(failure=pl.lit(None, pl.String)))
    assert (whole.failed, Sampler().criteria([whole])[0].scores[0].verdict) == (0, MET)


def test_what_records_were_taken_for():
    rows = pl.DataFrame(
        {
            "outcome": [RIGHT] * 90 + [WRONG] * 4 + [CANNOT_TELL] * 6,
            "verdict": ["identified"] * 92 + ["cannot tell", "none fits"] + ["cannot tell"] * 6,
            "leading": ["ucb"] * 90 + ["sae", "sae", "thompson"] + ["ucb"] * 7,
            "largest": [1.0] * 50 + [0.6] * 50,
        }
    )
    found = identify_metrics(SETTING, rows)
    assert (found.right.value, found.wrong.value, found.cannot_tell.value) == (0.9, 0.04, 0.06)
    assert found.taken_for == {"sae": 2, "none of them": 1, "one of several others": 1}
    assert found.reachable.value == pytest.approx(0.8)
    scores = {each.key: each.scores for each in Identify().criteria([found])}
    assert scores["identify, reachable"][0].text.startswith("80.0 ±")
    assert [each.row for each in scores["identify, reachable"]] == ["ucb", "all together"]
    (most,) = scores["identify, at most"]  # all of probability 1, and 5 of the others: 0.4 of each may be wrong
    assert most.measured.value == pytest.approx(0.5 + 5 * 0.6 / 100)
    assert len(found.largest) == 100
    older = replace(found, largest=None)  # a line of the record that does not have them
    assert "identify, at most" not in {each.key for each in Identify().criteria([found, older])}
    usual = replace(found, setting=UsualSetting(**vars(SETTING)))
    keys = {each.key for each in Identify().criteria([found, usual])}
    assert {"identify, right", "identify, usual, right", "identify, usual, at most"} <= keys
