"""Rules that forget: what their rounds say about gaps, held against the definition, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import unbandit as ub
from unbandit.errors import NotIdentifiable
from unbandit.kernels.recent import read_recent_arm
from unbandit.result import BOUNDED, ESTIMATED

INSTANCE = ub.Instance([1.0, 0.7, 0.4, -3.0], 0.5)
RULES = [ub.SlidingWindowUCB(window=60), ub.DiscountedUCB(discount=0.98)]
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def by_definition(actions, rule, arm, best):
    """Return gap, distance of the two sides, and both numbers of rewards: every sum written out over rounds."""
    window, discount = rule.memory
    rounds = len(actions)
    ages = np.arange(rounds)[:, None] - np.arange(rounds)[None, :]  # of the reward of round s before round t, plus 1
    weight = np.where(ages > 0, discount ** np.maximum(ages - 1.0, 0.0), 0.0)
    if window:
        weight = np.where(ages <= window, weight, 0.0)
    own, other, total = weight @ (actions == arm), weight @ (actions == best), weight.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = [np.sqrt(rule.exploration * np.log(np.maximum(total, 1.0)) / count) for count in (own, other)]
        gaps = width[0] - width[1]
    pulled = np.flatnonzero(actions == arm)
    bounded = pulled.size < 2 or (own[pulled[1:]] == 0).any()
    points, apart = np.full(rounds, np.nan), np.zeros(rounds)
    for t in range(rounds):
        if bounded:
            points[t] = gaps[t]
        elif (coming := pulled[pulled >= t]).size:
            points[t] = gaps[coming[0]]
            if window and own[coming[0]] < own[t]:
                after = gaps[pulled[pulled < t][-1] + 1]
                apart[t] = abs(points[t] - after)
                points[t] = (points[t] + after) / 2
    used = np.isfinite(points) & np.isfinite(gaps)
    share = np.where(used, own, 0.0) / own[used].sum()
    of_arm = (used[:, None] * weight).sum(axis=0)[actions == arm] / own[used].sum()
    of_best = (np.where(used, share / np.where(other > 0, other, 1.0), 0.0) @ weight)[actions == best]
    return not bounded, share[used] @ points[used], share @ apart, 1 / (of_arm @ of_arm), 1 / (of_best @ of_best)


@every_rule
def test_the_reading_is_the_definition(rule):
    for seed in range(3):
        log = rule.demonstrate(INSTANCE, 400, seed=seed)
        actions, columns = log.actions, ub.estimate(log, rule, sigma=0.5, check=False).columns
        best = int(np.bincount(actions).argmax())
        for arm in {0, 1, 2, 3} - {best}:
            found = read_recent_arm(actions, rule.parameters(400), arm, best)
            assert tuple(found) == pytest.approx(by_definition(actions, rule, arm, best), rel=1e-9)
            deviation = np.sqrt(0.25 / found.own + 0.25 / found.other + found.apart**2 / 12)
            if found.estimated:  # the compiled loop
                assert columns.gap[0, arm] == pytest.approx(found.gap)
                assert columns.gap_high[0, arm] == pytest.approx(found.gap + 1.959964 * deviation)


@every_rule
def test_intervals_hold(rule):
    """The share that holds, of about 180, has a standard error of 1.6%: three of them are allowed."""
    rule, held, generator = rule.model_copy(update={"exploration": 2.0}), [], np.random.default_rng(5)
    for run in range(60):
        means = 0.5 * generator.standard_normal(4)
        log = rule.demonstrate(ub.Instance(means, 0.5), 2_000, seed=run)
        columns, truth = ub.estimate(log, rule, sigma=0.5, check=False).columns, means.max() - means
        holds = (columns.gap_low[0] <= truth) & (truth <= columns.gap_high[0])
        held += holds[columns.verdict[0] == ESTIMATED].tolist()
        bounded = columns.verdict[0] == BOUNDED
        assert (columns.gap_low[0][bounded] <= truth[bounded]).all()
    assert len(held) > 120
    assert 0.95 - 3 * 0.016 < np.mean(held) <= 1.0


def test_an_arm_whose_window_ran_empty_is_bounded():
    log = RULES[0].demonstrate(INSTANCE, 1_000, seed=1)
    found = ub.estimate(log, RULES[0], sigma=0.5, check=False)["3"]
    assert (found.verdict, found.gap) == ("bounded", None)
    assert 0 < found.gap_low < 4


@every_rule
def test_arms_that_change_do_not_fit(rule):
    halves = [rule.demonstrate(ub.Instance(means, 0.5), 1_000, seed=1) for means in ([0.4, 0.0], [0.0, 0.4])]
    log = ub.ActionLog.from_codes(np.concatenate([half.actions for half in halves]), ("0", "1"))
    with pytest.warns(ub.AssumptionWarning, match="does not look like"):
        assert ub.estimate(log, rule, sigma=0.5, check=True).check.verdict == "does not fit"


@every_rule
def test_what_needs_more_than_the_rule_keeps_is_refused(rule):
    log = rule.demonstrate(INSTANCE, 300, runs=2)
    single = log.select(0)
    for method in ("counts", "switching", "naive"):
        with pytest.raises(NotIdentifiable, match=f"the rule forgets.* as method {method} needs"):
            ub.estimate(single, rule, method=method, sigma=0.5)
    with pytest.raises(NotIdentifiable, match="the rule forgets"):
        ub.estimate(log, rule, pool=True, sigma=0.5)
    with pytest.raises(NotIdentifiable, match="the bootstrap counts its simulations"):
        ub.estimate(single, rule, method="bootstrap", sigma=0.5)
    with pytest.raises(NotIdentifiable, match="no posterior of a rule that forgets"):
        ub.posterior(single, rule, sigma=0.5)
    follower = ub.StreamingEstimate(rule, sigma=0.5)
    follower.update([0, 1, 2, 3, 0])
    with pytest.raises(NotIdentifiable, match="scanned, followed, begun in mid-run"):
        follower.estimate()
    with pytest.raises(NotIdentifiable, match="scanned, followed, begun in mid-run"):
        ub.estimate(single, rule, sigma=0.5, starting_pulls={"0": 9, "1": 3, "2": 3, "3": 3})
