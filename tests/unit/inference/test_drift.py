"""Drift as the check of an ordinary estimate notices it: the statistic, the warning, and where there is neither."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import unbandit as ub
from unbandit.demonstrators import IndexRule, parse_rule
from unbandit.errors import Notice
from unbandit.estimators.check import DRIFTED, said_of
from unbandit.estimators.stretches import with_stretches
from unbandit.fit import Check
from unbandit.inference.check import _Decided
from unbandit.inference.predictive import ALARM, DRIFT, ArmDrift, _moved, is_alarm, offsets_over_means, which_moved

ARMS = ("a", "b", "c")
BEFORE, FROM_FAR, SWAPPED = (1.0, 0.5, 0.2), (1.0, 0.5, 0.75), (0.2, 0.5, 1.0)


def ucb1(before, after, rounds=6_000, seed=5, sigma=0.5):
    """Play UCB1, in plain Python, on means that change after half of the rounds."""
    generator, arms = np.random.default_rng(seed), len(before)
    pulls, sums, actions = np.zeros(arms), np.zeros(arms), []
    for t in range(rounds):
        arm = t if t < arms else int(np.argmax(sums / pulls + np.sqrt(2 * np.log(t + 1) / pulls)))
        pulls[arm] += 1
        sums[arm] += (before if 2 * t < rounds else after)[arm] + sigma * generator.standard_normal()
        actions.append(arm)
    return ub.ActionLog.from_codes(np.array(actions), ARMS[:arms])


def codes(answer):
    return [notice.code for notice in answer.warnings]


def statistic(answer):
    return next((each for each in answer.check.statistics if each.name == DRIFT), None)


@pytest.fixture(scope="module")
def drifting():
    return ucb1(BEFORE, FROM_FAR)


def test_an_ordinary_estimate_warns_of_drift_with_arm_and_rounds(drifting):
    with pytest.warns(ub.AssumptionWarning, match='Arm "c" drifted'):
        answer = ub.estimate(drifting, "ucb1", sigma=0.5, check=True)
    (notice,) = (each for each in answer.warnings if each.code == "drift")
    assert (notice.arm, notice.demonstration) == ("c", None)
    assert 2_000 < notice.round < 6_000
    assert "windows=4" in notice.message
    assert "do not rely on them" in notice.message
    assert answer.check.verdict == "fits"
    assert "Apart from the drift, it does not differ noticeably" in answer.notes[-1].message
    assert statistic(answer).tail <= ALARM
    assert json.loads(answer.to_json())["warnings"][0]["code"] == "drift"
    without = ub.estimate(drifting, "ucb1", sigma=0.5, check=False)
    assert codes(without) == []
    assert without.to_frame().equals(answer.to_frame())


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_drift_is_said_once_beside_stretches(drifting):
    asked = {"sigma": 0.5, "check": True}
    answer, found = ub.estimate(drifting, "ucb1", **asked), ub.stretches(drifting, "ucb1", sigma=0.5)
    both = with_stretches(answer, found)
    assert found.drifted
    assert codes(answer) == codes(both) == ["drift"]
    assert "rounds 3,001 to 4,500" in both.warnings[0].message
    unsure = with_stretches(answer, replace(found, furthest=found.furthest._replace(p_value=0.5)))
    assert unsure.warnings == answer.warnings  # of the check alone


def test_a_still_log_is_not_warned_of():
    answer = ub.estimate(ucb1(BEFORE, BEFORE), "ucb1", sigma=0.5, check=True)
    assert codes(answer) == []
    assert "It does not differ noticeably" in answer.notes[-1].message
    assert statistic(answer).tail > ALARM


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_a_rule_that_does_not_fit_may_have_drifted():
    answer = ub.estimate(ucb1(BEFORE, SWAPPED), "ucb1", sigma=0.5, check=True)
    assert answer.check.verdict == "does not fit"
    assert codes(answer)[:2] == ["does-not-fit", "perhaps-drift"]
    assert "drift" not in codes(answer)
    assert "drifted" not in answer.warnings[0].message
    assert "drifted: by its average since the log began" in answer.warnings[1].message
    assert "windows=4" in answer.warnings[1].message


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_drift_is_looked_for_only_where_it_shows(drifting):
    short = ub.ActionLog.from_codes(drifting.actions[:600], ARMS)
    rows = ub.ActionLog.from_codes(short.actions[np.random.default_rng(1).random(600) < 0.8], ARMS)
    asked = (
        (short, "sae:alpha=0.25", {"sigma": 0.5}),
        (short, "ucb1", {}),  # the noise is not known
        (short, "ucb1:delay=5", {"sigma": 0.5}),
        (short, "klucb", {"bernoulli": True, "best_mean": 0.9}),  # gaps depend on the level of the means
        (short, "ucb1", {"sigma": 0.5, "availability": {"c": (1, 599)}}),
        (rows, "ucb1", {"sigma": 0.5, "kept": 0.8}),
    )
    for log, rule, options in asked:
        answer = ub.estimate(log, rule, check=True, **options)
        assert statistic(answer) is None, (rule, options)
        assert "drift" not in codes(answer)


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_a_posterior_warns_too(drifting):
    answer = ub.estimate(drifting, "ucb1", sigma=0.5, method="posterior", particles=60, check=True)
    assert "drift" in codes(answer)


def test_several_demonstrations_drift_together():
    runs = [ucb1(BEFORE, FROM_FAR, seed=seed).actions for seed in (5, 8, 12)]
    with pytest.warns(ub.AssumptionWarning, match="3 of 3 demonstrations show drift"):
        answer = ub.estimate(ub.ActionLog.from_codes(np.stack(runs), ARMS), "ucb1", sigma=0.5, check=True)
    (notice,) = (each for each in answer.warnings if each.code == "drift")
    assert (notice.arm, notice.count, notice.demonstration) == ("c", 3, "3")
    assert 'demonstration="3"' in notice.message


def test_one_of_several_demonstrations_is_chance():
    assert is_alarm(1, 1)
    assert not is_alarm(0, 1)
    assert not is_alarm(1, 2)
    assert is_alarm(2, 20)


def test_batches_are_simulated_like_the_log():
    log = ub.UCB1(batch=20).demonstrate(ub.Instance(BEFORE, 0.5, ARMS), 2_000, seed=3)
    answer = ub.estimate(log, "ucb1:batch=20", sigma=0.5, check=True)
    assert statistic(answer).tail > ALARM


@pytest.mark.parametrize("text", ["ucb:alpha=0.25", "ucb1", "ucb1:clock=pulls", "klucb:noise=gaussian", "moss"])
def test_offsets_are_those_of_the_index(text):
    rule = parse_rule(text).for_arms(3)
    assert isinstance(rule, IndexRule)
    pulls, rounds = np.array([[1, 5, 70], [2, 9, 300]]), np.array([6, 20, 400])
    offsets = offsets_over_means(rule, 1_000, pulls, rounds)
    for row, counts in zip(offsets, pulls, strict=True):
        expected = [rule.index(0.0, int(n), int(t), 1_000) for n, t in zip(counts, rounds, strict=True)]
        assert row == pytest.approx(expected)


def test_gaps_are_read_where_an_arm_took_its_last_turn(drifting):
    """Count again, run by run and round by round."""
    rule, arms, rounds = ub.UCB1(), 3, 800
    runs = np.stack([drifting.actions[:rounds], ucb1(BEFORE, SWAPPED, rounds=rounds).actions])
    found = _moved(runs, arms, rule, rounds, 0.5)
    for run, actions in enumerate(runs):
        best = int(np.bincount(actions, minlength=arms).argmax())
        assert found.best[run] == best
        for at, moment in enumerate(found.moments.tolist()):
            counts = np.bincount(actions[:moment], minlength=arms)
            for arm in set(range(arms)) - {best}:
                fewer = arm if counts[arm] <= counts[best] else best
                turns = [t for t in range(moment) if actions[t] == fewer and (t == 0 or actions[t - 1] != fewer)]
                before, round = np.bincount(actions[: turns[-1]], minlength=arms), turns[-1] + 1
                gap = rule.index(0.0, int(before[arm]), round, rounds) - rule.index(
                    0.0, int(before[best]), round, rounds
                )
                assert found.at_moment[0, at, run, arm] == pytest.approx(gap)
                last = max(t for t in range(moment) if actions[t] in (arm, best))
                before, round = np.bincount(actions[:last], minlength=arms), last + 1
                limit = rule.index(0.0, int(before[arm]), round, rounds) - rule.index(
                    0.0, int(before[best]), round, rounds
                )
                assert found.at_moment[2, at, run, arm] == pytest.approx(limit)


def test_a_third_arm_tells_which_of_two_moved_and_two_alone_do_not():
    def told(*third, shown=0.5, spread=0.05):
        gaps = [(0.0, 0.0), (shown, shown), *third]
        falls = np.array([*zip(*gaps, strict=True), np.where(np.arange(len(gaps)) > 0, spread, 0.0)])
        return which_moved(falls, 1, 0, shown, spread)

    unknown = -np.inf, np.inf
    assert told((0.45, 0.45)) == told((0.4, np.inf)) == told(unknown, (0.48, 0.48)) == 0  # fell alike
    assert told((0.02, 0.02)) == told((-np.inf, 0.1)) == told(unknown, (0.05, 0.05)) == 1  # stayed
    assert told((-0.02, -0.02), shown=-0.5) == 1
    assert told((-0.45, -0.45), shown=-0.5) == 0
    assert told() is told(unknown) is told((0.25, 0.25)) is told((0.0, 0.0), (0.5, 0.5)) is None
    assert told((0.02, 0.02), spread=0.2) is None  # within noise
    assert told((0.45, 0.1)) is None  # moved between the moments of its limits


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_where_no_third_arm_decides_both_are_named_and_no_arm_alone():
    log = ub.ActionLog.from_codes(ucb1((1.0, 0.3), (1.0, 0.7)).actions, ARMS[:2])
    answer, found = ub.estimate(log, "ucb1", sigma=0.5, check=True), ub.stretches(log, "ucb1", sigma=0.5)
    (notice,) = (each for each in answer.warnings if each.code in DRIFTED)
    assert 'rms "b" and "a" drifted relative to each other (the log shows only differences)' in notice.message
    assert notice.arm is None
    assert found.drifted
    assert not found.furthest.decided
    assert "relative to each other" in found.notices[0].message
    assert found.notices[0].arm is None
    assert '"b" to "a"' in repr(found)


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
@pytest.mark.parametrize("heard", ["a", "c", None])
def test_stretches_and_check_never_name_different_arms(drifting, heard):
    answer, found = ub.estimate(drifting, "ucb1", sigma=0.5, check=False), ub.stretches(drifting, "ucb1", sigma=0.5)
    drift = found.furthest._replace(decided=False, arm="c", shown_by="c", compared_with="a")
    undecided = replace(found, furthest=drift)
    misfit = Notice("does-not-fit", "It does not fit.")
    doubtful = replace(answer, warnings=(misfit, Notice("perhaps-drift", "Perhaps.", arm=heard)))
    said, doubt = with_stretches(doubtful, undecided).warnings
    assert (said.code, said.arm, doubt) == ("drift", heard, misfit)
    settled = replace(found, furthest=drift._replace(decided=True))
    assert with_stretches(doubtful, settled).warnings[0].arm == "c"


def test_what_would_fit_instead_never_contradicts_what_the_log_shows_of_drift():
    """The lead of A fell, which a rival in which A gets better may yet explain in the rounds that are predicted."""
    found = ArmDrift("1", "A", "B", "A", 3_000, 0.351, 0.1, "at least", "about", 5.0, 0.0025)
    names = {"ucb1, if A rises": ("A", 0.2), "ucb1, if A falls": ("A", -0.2), "ucb1, if B falls": ("B", -0.2)}
    evidence = dict(zip((*names, "moss"), (-1.0, -1.5, -2.0, -2.5), strict=True))
    others = {name: SimpleNamespace(log_evidence=value) for name, value in evidence.items()}
    own = (SimpleNamespace(log_evidence=-9.0),) * 2
    decided = _Decided(None, own, others, {}, None, 100, 100, 0, names)
    assert decided.instead() == tuple(evidence)
    assert decided.instead(found) == ("ucb1, if A falls", "moss")
    either = found._replace(decided=False, at_moment=0.1, at_end=0.351)  # A rose, or B fell
    assert decided.instead(either) == ("ucb1, if A rises", "ucb1, if B falls", "moss")
    assert not any(found._replace(arm="B").agrees(*each) for each in names.values())


def test_an_arm_that_is_not_pulled_any_more_may_have_been_withdrawn_rather_than_drifted(drifting):
    """So it is said beside the drift, in all three places, with the line of the table."""
    actions = drifting.demonstration(0).copy()
    actions[3_500:][actions[3_500:] == 2] = 0
    log, last = ub.ActionLog.from_codes(actions, ARMS), int(np.flatnonzero(actions == 2)[-1]) + 1
    found = ArmDrift("1", "c", "c", "a", 3_000, 0.1, 0.4, "about", "about", 5.0, 0.0025)
    fits, misfit = Check("fits", 0.5, 399), Check("does not fit", 0.001, 399, failed=("1",))
    line = (
        f'Arm "c" is never pulled after round {last:,}: it may have been withdrawn. If so, give availability a table '
    )
    for check in (fits, misfit):
        *_, notice = said_of(check, parse_rule("ucb1"), [found], log)[0]
        assert f"{line}with the lines `arm,first,last` and `c,,{last}`." in notice.message
        *_, notice = said_of(check, parse_rule("ucb1"), [found], drifting)[0]
        assert "withdrawn" not in notice.message
    both = ub.ActionLog.from_codes(np.stack([drifting.demonstration(0), actions]), ARMS)
    second = replace(misfit, failed=("2",))
    *_, notice = said_of(second, parse_rule("ucb1"), [found._replace(demonstration="2")], both)[0]
    assert (
        f'add demonstration="2", and give availability a table with the lines `arm,first,last` and `c,,{last}`.'
        in notice.message
    )
    by_stretch = replace(ub.stretches(drifting, "ucb1", sigma=0.5))
    assert by_stretch.furthest.left_after is None
    assert "withdrawn" not in by_stretch.notices[0].message
    told = replace(by_stretch, furthest=by_stretch.furthest._replace(left_after=last, shown_by="c"))
    assert line in told.notices[0].message
    assert ub.stretches(log, "ucb1", sigma=0.5).furthest.left_after in (None, last)
