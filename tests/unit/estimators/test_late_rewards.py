"""Late rewards: what an index rule knew is read as plain Python reads it, and what cannot be read says so."""

import warnings

import numpy as np
import pytest

import unbandit as ub
from unbandit.demonstrators import elimination
from unbandit.estimators.procedures import compare
from unbandit.log.tallies import LookRule, tally, with_looks

LATE = "ucb:alpha=0.25,delay=20"
INSTANCE = ub.Instance([0.2, 1.0, 0.6], 0.5)


@pytest.fixture(scope="module")
def log():
    return ub.parse_rule(LATE).demonstrate(INSTANCE, 2_000, seed=4)


def looks_in_python(actions, arms, opening, batch, delay):
    """Read off the definition, one decision at a time."""
    best = max(range(arms), key=actions.count)
    end = max(t for t, arm in enumerate(actions) if arm == best)

    def known(t):
        return actions[: max(t - (t - opening) % batch - delay, 0)]

    found = [[0] * 6 for _ in range(arms)]
    for arm in range(arms):
        if end >= opening:
            found[arm][3:] = known(end).count(arm), known(end).count(best), end - (end - opening) % batch + 1
        turns = [t for t in range(opening, len(actions)) if actions[t] == arm and arm != best]
        returns, earlier = [t for t in turns if t > end], [t for t in turns if t < end]
        if returns:
            t = returns[0]
        elif earlier:
            last = known(earlier[-1]).count(arm)
            t = next(t for t in earlier if known(t).count(arm) == last)
        else:
            continue
        found[arm][:3] = known(t).count(arm), known(t).count(best), t - (t - opening) % batch + 1
    return found


@pytest.mark.parametrize(("delay", "batch"), [(1, 1), (20, 1), (7, 4), (60, 10)])
def test_what_was_known_is_counted_as_in_plain_python(delay, batch):
    rule = ub.UCB(alpha=0.25, delay=delay, batch=batch)
    for horizon in (40, 400):
        for seed in range(4):
            played = rule.demonstrate(INSTANCE, horizon, seed=seed).actions
            opening = 3 + delay
            counted = tally(played, np.array([0, horizon]), 3, "switching")
            found = with_looks(counted, played, np.array([0, horizon]), LookRule(opening, batch, delay))
            assert found.looks[0].tolist() == looks_in_python(played.tolist(), 3, opening, batch, delay)


def test_epochs_that_were_tested_are_those_whose_rewards_had_arrived():
    pulls = np.array([[12, 5, 9, 12], [3, 3, 1, 40]])
    for delay in (1, 6, 25):
        for row in pulls:
            ends = np.array([np.minimum(row, epoch).sum() for epoch in range(int(row.max()) + 1)])
            expected = [max((e for e in range(n + 1) if ends[e] <= ends[n] - delay), default=0) for n in row]
            assert elimination.tested_epochs(row[None], row[None], delay)[0].tolist() == expected


def test_intervals_are_the_same_from_a_log_and_from_a_simulation(log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ub.AssumptionWarning)
        late = ub.estimate(log, LATE, sigma=0.5, check=False)
        prompt = ub.estimate(log, "ucb:alpha=0.25", sigma=0.5, check=False)
    tallies = ub.parse_rule(LATE).evidence(INSTANCE, 2_000, seed=4)
    again = compare(tallies, ub.parse_rule(LATE), "bracket", 2_000, noise=INSTANCE.noise)
    assert np.array_equal(late.columns.gap, again.gap, equal_nan=True)
    assert not np.array_equal(late.columns.gap, prompt.columns.gap)
    assert (late.columns.gap_low[0] < INSTANCE.gaps)[[0, 2]].all()
    assert (INSTANCE.gaps < late.columns.gap_high[0])[[0, 2]].all()


def test_the_check_simulates_late_rewards(log):
    assert ub.estimate(log, LATE, sigma=0.5, check=True).check.verdict == "fits"
    with pytest.warns(ub.AssumptionWarning, match="does not look like one"):
        assert ub.estimate(log, "ucb:alpha=0.25", sigma=0.5, check=True).check.verdict == "does not fit"


@pytest.mark.parametrize("method", ["switching", "counts"])
def test_methods_that_count_all_pulls_refuse_a_delay(log, method):
    with pytest.raises(ub.NotIdentifiable, match=f"with a delay of 20 rounds .* method {method}"):
        ub.estimate(log, LATE, sigma=0.5, method=method)


def test_logs_whose_rounds_are_not_kept_and_posteriors_of_index_rules_refuse_a_delay(log, tmp_path):
    log.write(tmp_path / "log.csv")
    with pytest.raises(ub.NotIdentifiable, match="scanned or followed are not kept"):
        ub.estimate(ub.ActionLog.scan(tmp_path / "log.csv"), LATE, sigma=0.5)
    assert ub.estimate(tmp_path / "log.csv", LATE, sigma=0.5).best  # a file is read, not scanned
    with pytest.raises(ub.NotIdentifiable, match="begins in mid-run, and which rewards"):
        ub.estimate(log, LATE, sigma=0.5, starting_pulls={"0": 30, "1": 30, "2": 30})
    with pytest.raises(ub.NotIdentifiable, match="no posterior for index rules whose rewards are late"):
        ub.posterior(log, LATE, sigma=0.5)
    with pytest.raises(ub.NotIdentifiable, match="an arm went before a reward of it was known"):
        ub.estimate(ub.ActionLog.from_actions("ABABAAAAAAAA"), "sae:alpha=0.1,delay=40", sigma=0.5)


def test_a_record_that_did_not_wait_in_turn_is_refused_by_the_posterior():
    record = ub.ActionLog.from_actions("ABBBABABAB")
    with pytest.raises(ub.InferenceError, match="in turn until a reward of each is known"):
        ub.posterior(record, "epsilon-greedy:delay=6", sigma=0.5)


def test_a_delay_that_the_opening_contradicts_does_not_fit():
    log = ub.UCB(alpha=0.25, delay=20).demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), 1_000, seed=1)
    with pytest.warns(ub.AssumptionWarning, match="pulls arms in turn until a reward of each is known"):
        answer = ub.estimate(log, ub.UCB(alpha=0.25, delay=900), sigma=0.5, check=True)
    assert answer.check.verdict == "does not fit"
