"""Estimates by stretch, and the alarm where stretches disagree by more than noise."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unbandit import SAE, UCB, UCB1, ActionLog, Instance, NotIdentifiable, ParameterError, estimate, report, stretches
from unbandit.estimators.stretches import _below

ARMS = ("a", "b", "c", "d")
MEANS = (1.0, 0.7, 0.4, 0.0)


def demonstrate(before, after, rounds=3_000, seed=1, sigma=0.5):
    """Play UCB, in plain Python, on means that change after half of the rounds."""
    generator, width = np.random.default_rng(seed), UCB(alpha=0.25).width(np.arange(1, rounds + 1), rounds)
    pulls, sums, actions = np.zeros(len(before), int), np.zeros(len(before)), []
    for t in range(rounds):
        arm = t if t < len(before) else int((sums / pulls + width[pulls - 1]).argmax())
        mean = (before if 2 * t < rounds else after)[arm]
        pulls[arm] += 1
        sums[arm] += mean + sigma * generator.standard_normal()
        actions.append(arm)
    return ActionLog.from_codes(np.array(actions), ARMS)


def test_a_stretch_is_a_log_that_begins_in_mid_run():
    log = demonstrate(MEANS, MEANS)
    found = stretches(log, "ucb:alpha=0.25", sigma=0.5, windows=3)
    assert found.first.tolist() == [1, 1_001, 2_001]
    assert found.last.tolist() == [1_000, 2_000, 3_000]
    for at, (first, last) in enumerate(zip(found.first, found.last, strict=True)):
        rows = ActionLog.from_codes(log.actions[first - 1 : last], ARMS)
        starts = dict(zip(ARMS, np.bincount(log.actions[: first - 1], minlength=4).tolist(), strict=True))
        options = {"sigma": 0.5, "horizon": 3_000, "check": False} | ({"starting_pulls": starts} if at else {})
        alone = estimate(rows, "ucb:alpha=0.25", **options)
        assert found.columns.verdict[at].tolist() == alone.columns.verdict[0].tolist()
        assert np.array_equal(found.columns.gap[at], alone.columns.gap[0], equal_nan=True)
    assert found.to_frame().height == 12
    assert not found.drifted
    assert found.notices == ()


def test_the_alarm_names_the_arm_and_the_stretch():
    down = stretches(demonstrate(MEANS, (0.0, 0.7, 0.4, 0.0)), "ucb:alpha=0.25", sigma=0.5)
    assert (down.drifted, down.furthest.arm) == (True, "a")
    (notice,) = down.notices
    assert (notice.code, notice.arm, notice.round) == ("drift", "a", int(down.first[down.furthest.after]))
    assert "others moved alike" in notice.message
    assert down.furthest.after >= 2
    up = stretches(demonstrate(MEANS, (1.0, 0.7, 1.4, 0.0), seed=4), "ucb:alpha=0.25", sigma=0.5)
    assert (up.drifted, up.furthest.arm) == (True, "c")
    said = json.loads(json.dumps(up.to_dict(), allow_nan=False))
    assert (said["drifted"], said["furthest"]["arm"], len(said["rows"])) == (True, "c", 16)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_arm_that_overtakes_the_best_one_is_never_missed_for_it(seed):
    found = stretches(demonstrate(MEANS, (1.0, 1.4, 0.4, 0.0), seed=seed), "ucb:alpha=0.25", sigma=0.5).furthest
    assert (found.arm == "b") if found.decided else ("b" in (found.shown_by, found.compared_with))


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_stationary_logs_hardly_ever_raise_it():
    alarms, rule = 0, UCB1()
    for run in range(20):
        means = np.random.default_rng(run).normal(size=4)
        log = rule.demonstrate(Instance(means, 0.5, ARMS), 2_000, seed=run)
        alarms += stretches(log, rule, sigma=0.5).drifted
    assert alarms <= 2  # of 20; at 1% each, three or more happen once in a thousand times


def test_without_a_known_noise_there_is_no_alarm_and_no_false_comfort():
    found = stretches(demonstrate(MEANS, (0.0, 0.7, 0.4, 0.0)), "ucb:alpha=0.25")
    assert found.furthest is None
    assert not found.drifted
    assert [notice.code for notice in found.notes] == ["drift-not-tested"]
    assert np.isfinite(found.columns.gap).any()


def test_what_shows_no_gap_again_and_again_is_refused():
    log = demonstrate(MEANS, MEANS, rounds=400)
    for rule, why in (
        (SAE(alpha=0.25), "dropped shows nothing in later"), ("thompson", "need hundreds of them"),
        (UCB(alpha=0.25, delay=5), "gap in each"), ("sliding-window-ucb:window=100", "gap in each"),
    ):  # fmt: skip
        with pytest.raises(NotIdentifiable, match=f"index rules without a delay.*{why}"):
            stretches(log, rule, sigma=0.5)
    with pytest.raises(ParameterError, match="gaps would be to other arms in each stretch"):
        stretches(log, "ucb:alpha=0.25", sigma=0.5, availability={"1": (30, None)})
    with pytest.raises(ParameterError, match="windows: 400 rounds make no 11 stretches"):
        stretches(log, "ucb:alpha=0.25", sigma=0.5, windows=11)
    with pytest.raises(ParameterError, match="windows"):
        stretches(log, "ucb:alpha=0.25", sigma=0.5, windows=1)
    for options in ({"kept": 0.5}, {"pool": True}, {"method": "counts"}, {"scale": "unknown"}):
        with pytest.raises(ParameterError, match="leave"):
            stretches(log, "ucb:alpha=0.25", **options)
    with pytest.raises(ParameterError, match="no order"):
        stretches(ActionLog.from_counts({"a": 50, "b": 60}), "ucb:alpha=0.25")


def test_each_demonstration_has_stretches_of_its_own():
    log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5, 0.3], 0.5), horizon=2_000, runs=2, seed=7)
    with pytest.raises(ParameterError, match="expected one demonstration"):
        stretches(log, "ucb:alpha=0.25", sigma=0.5)
    named = stretches(log, "ucb:alpha=0.25", sigma=0.5, demonstration=log.demonstrations[1])
    assert named.demonstration == log.demonstrations[1]


def test_a_report_draws_the_stretches_and_warns():
    made = report(
        demonstrate(MEANS, (0.0, 0.7, 0.4, 0.0)), "ucb:alpha=0.25", sigma=0.5, windows=4, check=False
    )  # fmt: skip
    assert "Stretch by stretch" in made.html
    assert "drift" in {notice.code for notice in made.answer.warnings}
    assert "windows=4" in made.html


def test_a_report_of_part_of_a_run_says_so_and_draws_no_moment():
    log = demonstrate(MEANS, MEANS, rounds=1_000)
    rows = ActionLog.from_codes(log.actions[np.random.default_rng(1).random(1_000) < 0.8], ARMS)
    whole, part = (report(each, "ucb:alpha=0.25", sigma=0.5, check=False, **options).html
                   for each, options in ((log, {}), (rows, {"kept": 0.8})))  # fmt: skip
    assert "A moment of hesitation" in whole
    assert "A moment of hesitation" not in part
    assert "no round is missing" not in part
    assert "misses rounds" in part


def test_the_alarm_quotes_two_limits_that_contradict_each_other():
    """Arm c rises: the gap's own estimates are bounds from below in both stretches, which contradict nothing."""
    found = stretches(demonstrate(MEANS, (1.0, 0.7, 1.4, 0.0), seed=4), "ucb:alpha=0.25", sigma=0.5)
    (notice,), furthest = found.notices, found.furthest
    assert furthest.limit_before - furthest.limit_after > 0.5
    assert f"at least {furthest.limit_before:.4g} below" in notice.message
    assert f"at most {furthest.limit_after:.4g} below" in notice.message
    assert notice.message.index("at least") < notice.message.index("at most")
    assert _below(-0.2, is_least=True) == "at most 0.2 above"
