"""Logs that begin in mid-run: their counts against those of the whole run, however they are read."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import SAE, UCB, UCB1, ActionLog, Instance, LogError, NotIdentifiable, ParameterError, estimate, posterior
from unbandit.demonstrators import parse_rule
from unbandit.estimators.stream import StreamingEstimate
from unbandit.log.growth import GrowingLog
from unbandit.log.partial import PartialLog, read_or_scan, started

ARMS = ("a", "b", "c", "d")
INSTANCE = Instance([1.0, 0.7, 0.5, 0.0], 0.5, ARMS)


def counts(actions, stop):
    return dict(zip(ARMS, np.bincount(actions[:stop], minlength=len(ARMS)).tolist(), strict=True))


def parts_of(actions, start, tmp_path):
    """Return the rows from `start` on, in memory, scanned and followed."""
    labels = [ARMS[code] for code in actions[start:]]
    growing = GrowingLog(ARMS)
    for at in range(0, len(labels), 7):
        growing.update(labels[at : at + 7])
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["arm", *labels, ""]))
    return [ActionLog.from_actions(labels, arms=ARMS), ActionLog.scan(path, arms=ARMS), growing]


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_the_whole_run(seed, tmp_path):
    generator = np.random.default_rng(seed)
    actions = generator.choice(4, size=60, p=generator.dirichlet(np.full(4, 0.7)))
    whole = ActionLog.from_codes(actions, ARMS)
    full, start = whole.tallied("switching"), 25
    starts = np.bincount(actions[:start], minlength=4)
    if not starts.any():
        return
    for rows in parts_of(actions, start, tmp_path):
        part = started(rows, counts(actions, start))
        found = part.tallied("switching")
        assert part.lengths.tolist() == [60]
        assert found.pulls.tolist() == full.pulls.tolist()
        best = int(full.pulls[0].argmax())
        for arm in range(4):
            if arm == best:
                continue
            # by hand: the arm's last pull before the best arm's last
            ends = np.flatnonzero(actions == best)[-1]
            pulls = np.flatnonzero(actions[:ends] == arm)
            if pulls.size and pulls[-1] >= start:
                upto = actions[: pulls[-1] + 1]
                expected = (np.sum(upto == arm), np.sum(upto == best), pulls[-1] + 1)
            else:
                expected = (starts[arm], 0, 0)
            assert (found.own[0, arm], found.of_best[0, arm], found.rounds[0, arm]) == expected


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
@pytest.mark.parametrize("rule", [UCB(alpha=0.25), UCB1(), SAE(alpha=0.25)], ids=str)
def test_an_estimate_is_that_of_the_whole_log_or_a_bound(rule):
    log = rule.demonstrate(INSTANCE, 3_000, seed=4)
    whole = estimate(log, rule, sigma=0.5, check=False)
    for start in (100, 700, 2_900):
        rows = ActionLog.from_codes(log.actions[start:], ARMS)
        found = estimate(rows, rule, sigma=0.5, starting_pulls=counts(log.actions, start), check=False)
        last = log.tallied("epochs" if isinstance(rule, SAE) else "switching")
        for arm, (one, other) in enumerate(zip(found, whole, strict=True)):
            assert one.pulls == other.pulls
            if isinstance(rule, SAE) or other.verdict == "best" or last.rounds[0, arm] > start:
                assert (one.verdict, one.gap, one.gap_low) == (other.verdict, other.gap, other.gap_low)
            else:  # the last hesitation came before the log began
                assert (one.verdict, one.gap, one.gap_high) == ("bounded", None, None)
                assert 0 <= one.gap_low < other.gap_high
        assert "mid-run" in {notice.code for notice in found.notes}
    assert "opening" not in {notice.code for notice in found.warnings}


def test_read_scanned_and_followed_give_the_same_numbers(tmp_path):
    rule = UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 2_000, seed=1)
    start = counts(log.actions, 300)
    rows = [
        estimate(each, rule, sigma=0.5, starting_pulls=start, check=False)
        for each in parts_of(log.actions, 300, tmp_path)
    ]
    streaming = StreamingEstimate(rule, arms=ARMS, sigma=0.5, starting_pulls=start, snapshot=tmp_path / "saved")
    streaming.update([ARMS[code] for code in log.actions[300:]])
    streaming.save()
    rows += [streaming.estimate(), StreamingEstimate.load(tmp_path / "saved").estimate()]
    for each in rows[1:]:
        assert each.to_dict()["arms"] == rows[0].to_dict()["arms"]


def test_simulations_hide_the_same_rounds():
    rule = UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 2_000, seed=1)
    rows, start = ActionLog.from_codes(log.actions[300:], ARMS), counts(log.actions, 300)
    asked = {"sigma": 0.5, "starting_pulls": start}
    plain = estimate(rows, rule, **asked, check=True)
    assert plain.check.verdict == "fits"
    again = estimate(rows, rule, **asked, method="bootstrap", resamples=200, seed=3, check=False)
    for one, other in zip(plain, again, strict=True):
        assert one.gap == other.gap
        if one.verdict == "estimated":
            assert 0.6 < (other.gap_high - other.gap_low) / (one.gap_high - one.gap_low) < 1.6
    at_random = ActionLog.from_codes(np.random.default_rng(1).integers(4, size=1_700), ARMS)
    with pytest.warns(UserWarning, match="does not look like"):
        assert estimate(at_random, rule, **asked, check=True).check.verdict == "does not fit"


def test_rounds_that_begin_late_need_the_counts_before(tmp_path):
    log = UCB(alpha=0.25).demonstrate(INSTANCE, 1_000, seed=1)
    path = tmp_path / "log.csv"
    log.to_frame()[200:].write_csv(path)
    log.to_frame()[600:].write_csv(late := tmp_path / "late.csv")
    with pytest.raises(LogError, match=r"begin at 601, so the opening is missing. Give .* starting_pulls"):
        estimate(late, "ucb:alpha=0.25", sigma=0.5)  # most of the run came before
    with pytest.raises(NotIdentifiable, match=r"in batches .* Give the pulls before the log with starting_pulls"):
        estimate(path, "ucb:alpha=0.25,batch=5", sigma=0.5)
    with pytest.raises(LogError, match="begin at 201"):  # whatever reads whole logs
        ActionLog.read(path)
    start = counts(log.actions, 200)
    found = estimate(path, "ucb:alpha=0.25", sigma=0.5, starting_pulls=start, check=False)
    rows = ActionLog.from_codes(log.actions[200:], ARMS)
    same = estimate(rows, UCB(alpha=0.25), sigma=0.5, starting_pulls=start, check=False)
    assert all(same[arm] == found[arm] for arm in ARMS)
    with pytest.raises(ParameterError, match="200 came before; the counts given add up to 202"):
        estimate(path, "ucb:alpha=0.25", sigma=0.5, starting_pulls=start | {"a": start["a"] + 2})
    log.to_frame()[200:].with_columns(round=log.to_frame()["round"][200:] - 1).write_csv(path)  # counted from 0
    assert read_or_scan(path).numbers[0] == 200
    assert estimate(path, "ucb:alpha=0.25", sigma=0.5, starting_pulls=start, check=False)["b"].gap == found["b"].gap


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
@pytest.mark.parametrize("text", ["ucb:alpha=0.25", "ucb1", "sae:alpha=0.25,scale=0.4"])
def test_without_counts_a_start_in_mid_run_gives_bounds_that_hold(text):
    rule, held, known = parse_rule(text), [], 0
    for run in range(40):
        means = np.random.default_rng(run).normal(size=4)
        whole = rule.demonstrate(Instance(means, 0.5, ARMS), 1_100, seed=run).demonstration(0)
        part = PartialLog(ActionLog.from_codes(whole[100:], ARMS), None, np.arange(101, 1_101))
        found = estimate(part, rule, sigma=0.5, check=False)
        assert [each.code for each in found.notes if each.code == "begins-late"]
        for arm in found:
            gap = means.max() - means[ARMS.index(arm.arm)]
            known += arm.verdict in ("estimated", "bounded") and arm.gap_high is not None
            held.append(not (gap < (arm.gap_low or 0) or gap > (np.inf if arm.gap_high is None else arm.gap_high)))
    assert np.mean(held) > 0.95
    assert known > 30  # and they say something


def test_counts_of_arms_and_demonstrations_must_match():
    rows = ActionLog.from_actions("ABAABA")
    with pytest.raises(ParameterError, match=r'starting_pulls: expected the pulls of every arm .* got none of "B"'):
        started(rows, {"A": 3, "C": 1})
    assert started(rows, {"A": 3, "B": 2, "C": 4}).pulls.tolist() == [[7, 4, 4]]
    growing = GrowingLog()
    growing.update("ABA")
    with pytest.raises(ParameterError, match=r'arm "C" was pulled before .* arms'):
        started(growing, {"A": 3, "B": 2, "C": 4})
    two = ActionLog.from_actions([["A", "B"], ["B", "A"]])
    with pytest.raises(ParameterError, match="each of the 2 demonstrations"):
        started(two, {"A": 3, "B": 2})
    table = ActionLog(("B", "A"), None, np.array([0, 3, 10]), ("2", "1"), _counts=np.array([[1, 2], [3, 4]]))
    assert started(two, table).starting_pulls.tolist() == [[4, 3], [2, 1]]
    with pytest.raises(ParameterError, match="one row per round"):
        started(rows, rows)
    with pytest.raises(LogError, match="expected a count of 0 or more"):
        started(rows, {"A": -3, "B": 1})
    with pytest.raises(ParameterError, match="a table of counts has no beginning"):
        started(table, table)


def test_what_looks_at_hidden_rewards_refuses_a_part():
    rows, start = ActionLog.from_actions("ABAABA"), {"A": 3, "B": 2}
    with pytest.raises(NotIdentifiable, match="exp3: the log begins in mid-run"):
        estimate(rows, "exp3", bernoulli=True, starting_pulls=start)
    with pytest.raises(NotIdentifiable, match="mid-run"):
        posterior(started(rows, start), "ucb:alpha=0.25")
    with pytest.raises(NotIdentifiable, match="mid-run"):
        estimate(rows, "softmax", method="bootstrap", starting_pulls=start)


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_a_log_that_begins_as_a_run_does_may_be_whole():
    log = UCB(alpha=0.25).demonstrate(INSTANCE, 1_000, seed=1)
    asked = {"sigma": 0.5, "starting_pulls": dict.fromkeys(ARMS, 5), "check": False}
    (notice,) = (each for each in estimate(log, "ucb:alpha=0.25", **asked).notes if each.code == "mid-run")
    assert "if the log is whole" in notice.message
    later = ActionLog.from_codes(log.actions[500:], ARMS)
    (notice,) = (each for each in estimate(later, "ucb:alpha=0.25", **asked).notes if each.code == "mid-run")
    assert "if the log is whole" not in notice.message
