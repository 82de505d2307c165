"""Many demonstrations in one log: each is read alone, whatever the lengths and whatever stands beside it."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbandit as ub
from unbandit import SAE, UCB, UCB1, ActionLog, AssumptionWarning, Instance, NotIdentifiable, ParameterError, estimate
from unbandit.log.partial import PartialLog, ThinnedLog, read_or_scan
from unbandit.result import NUMBERS

LENGTHS = (3, 40, 7, 1, 200, 12)


def quietly(log, rule, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimate(log, rule, **({"sigma": 1.0, "best_mean": 1.0} | options))


def mixed(rule):
    instance = Instance([1.0, 0.5, 0.2], 0.5)
    runs = [rule.demonstrate(instance, length, seed=length).demonstration(0).tolist() for length in LENGTHS]
    return ActionLog.from_actions(runs, arms=range(3))


@pytest.mark.parametrize("method", ["switching", "counts", "naive"])
@pytest.mark.parametrize("rule", [UCB(scale=0.5), SAE(scale=0.2)], ids=lambda rule: rule.name)
def test_a_row_equals_the_estimate_from_its_demonstration_alone(rule, method):
    log = mixed(rule)
    together = quietly(log, rule, method=method)
    assert together.horizons == LENGTHS
    for which in range(len(log)):
        alone = quietly(log.select(which), rule, method=method)
        for name in (*NUMBERS, "pulls", "verdict"):
            np.testing.assert_array_equal(getattr(together.columns, name)[which], getattr(alone.columns, name)[0])
        assert together.best_by_demonstration[which] == alone.best
        mine = [notice for notice in (*together.warnings, *together.notes) if notice.demonstration == str(which + 1)]
        assert [notice.message for notice in mine] == [notice.message for notice in (*alone.warnings, *alone.notes)]


def test_a_horizon_holds_for_all_and_must_reach_the_longest():
    log = mixed(UCB())
    assert quietly(log, UCB(), horizon=200).horizons == (200,) * len(LENGTHS)
    with pytest.raises(ValueError, match="the log has 200 rounds, more than the horizon 199"):
        quietly(log, UCB(), horizon=199)


def test_counts_of_several_demonstrations():
    import polars as pl

    frame = pl.DataFrame({"subject": ["x", "x", "y", "y"], "arm": ["A", "B", "A", "B"], "pulls": [36, 4, 4, 36]})
    result = quietly(ActionLog.from_frame(frame), UCB(alpha=0.25, scale=1.0), horizon=10_000)
    assert result.best_by_demonstration == (("A",), ("B",))
    assert result.best == ("A", "B")
    np.testing.assert_allclose(result.gaps, [[0.0, 2.0], [2.0, 0.0]])


actions = st.lists(st.integers(0, 2), min_size=1, max_size=40)


@given(actions, st.sampled_from(["ucb", "sae"]))
def test_arms_never_pulled_do_not_change_the_others(played, rule):
    few = quietly(ActionLog.from_actions(played, arms=range(3)), rule)
    many = quietly(ActionLog.from_actions(played, arms=range(10)), rule)
    assert list(few) == list(many)[:3]
    assert few.best == many.best
    for row in list(many)[3:]:
        assert (row.verdict, row.pulls) == ("unseen", 0)
        assert all(getattr(row, name) is None for name in NUMBERS)


@given(st.lists(actions, min_size=1, max_size=5), st.sampled_from(["ucb", "sae"]))
def test_any_log_gives_numbers_that_fit_their_verdicts(runs, rule):
    result = quietly(ActionLog.from_actions(runs, arms=range(3)), rule)
    for row in result:
        numbers = {name for name in NUMBERS if getattr(row, name) is not None}
        if row.verdict == "best":
            assert numbers == {"gap", "mean"}
            assert (row.gap, row.mean) == (0.0, 1.0)
        elif row.verdict == "estimated":
            assert numbers == set(NUMBERS) - {"ratio"}
            assert row.gap_low < row.gap < row.gap_high
            assert row.mean_low < row.mean < row.mean_high
        elif row.verdict == "bounded":
            assert numbers <= {"gap_low", "gap_high", "mean_low", "mean_high"}
            assert row.gap_low >= 0
            assert row.mean_high <= 1.0
            assert (row.gap_high is None) == (row.mean_low is None)
            assert rule == "sae" or row.gap_high is None
        else:
            assert (numbers, row.pulls) == (set(), 0)


@pytest.fixture
def three(tmp_path):
    """Return the path of a log of three subjects: whole, with missing rounds, and from round 101 on; and whole logs."""
    runs = UCB1().demonstrate(Instance([1.0, 0.4], 0.5, ["A", "B"]), 400, runs=3, seed=2)
    table = runs.to_frame().with_columns(subject=pl.lit("s") + pl.col("demonstration").cast(pl.String))
    first, second, third = table.partition_by("subject", maintain_order=True)
    second = second.filter(pl.col("round") % 10 != 7)
    third = third.filter(pl.col("round") > 100)
    path = tmp_path / "three.csv"
    pl.concat([first, second, third]).select("subject", "round", "arm").write_csv(path)
    return path, runs


def test_one_of_several_is_read_as_if_it_were_alone(three):
    path, runs = three
    names = read_or_scan(path).demonstrations
    whole = ub.estimate(path, "ucb1", sigma=0.5, check=False, demonstration=names[0])
    assert whole.demonstrations == (names[0],)
    assert (
        whole.columns.gap.tolist() == ub.estimate(runs.select(0), "ucb1", sigma=0.5, check=False).columns.gap.tolist()
    )
    record = read_or_scan(path)
    assert isinstance(record.select(0), ActionLog)
    assert isinstance(record.select(1), ThinnedLog)
    assert record.select(1).lengths.tolist() == [400]
    assert isinstance(record.select(2), PartialLog)
    kept = ub.estimate(path, "ucb1", sigma=0.5, check=False, demonstration=names[1])
    assert "missing-rounds" in {notice.code for notice in kept.notes}
    before = dict(zip("AB", np.bincount(runs.demonstration(2)[:100], minlength=2).tolist(), strict=True))
    later = ub.estimate(path, "ucb1", sigma=0.5, check=False, demonstration=names[2], starting_pulls=before)
    assert later.columns.pulls.sum() == 400


@pytest.mark.parametrize("ask", [ub.estimate, ub.posterior, ub.report])
def test_a_demonstration_that_is_not_there_is_refused(three, ask):
    with pytest.raises(ParameterError, match=r'demonstration: expected one of s\w+, s\w+, s\w+; got "x"'):
        ask(three[0], "ucb1", sigma=0.5, demonstration="x")


def test_a_check_reads_one_of_several(three):
    path, runs = three
    name = read_or_scan(path).demonstrations[0]
    found = ub.check(path, "ucb1", sigma=0.5, demonstration=name)
    assert found.rows[0].check.p_value == ub.check(runs.select(0), "ucb1", sigma=0.5).rows[0].check.p_value
    with pytest.raises(NotIdentifiable, match="misses rounds"):
        ub.check(path, "ucb1", sigma=0.5, demonstration=read_or_scan(path).demonstrations[1])


def test_a_scanned_log_has_no_demonstration_to_choose(three):
    runs = three[1]
    runs.write(three[0].with_suffix(".parquet"))
    with pytest.raises(ParameterError, match="expected a log in memory"):
        ub.estimate(ActionLog.scan(three[0].with_suffix(".parquet")), "ucb1", sigma=0.5, demonstration="0")
