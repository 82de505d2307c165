"""Rules that forget: what their rounds say about gaps, held against the definition, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import unbandit as ub
from unbandit.errors import InferenceError, NotIdentifiable, ParameterError
from unbandit.kernels.recent import read_recent_arm
from unbandit.result import BOUNDED, ESTIMATED

INSTANCE = ub.Instance([1.0, 0.7, 0.4, -3.0], 0.5)
CLOSE = ub.Instance([1.0, 0.9, 0.8, 0.6], 0.5)
RULES = [ub.SlidingWindowUCB(window=60), ub.DiscountedUCB(discount=0.98)]
BATCHED = [ub.SlidingWindowUCB(window=250, batch=4), ub.DiscountedUCB(discount=0.98, exploration=0.1, batch=4)]
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
tied = pytest.mark.filterwarnings("ignore:The most-pulled arm is tied")  # pulls in batches often are
with_batches = pytest.mark.parametrize("rule", RULES + BATCHED, ids=str)


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
    decisions = [t for t in range(rounds) if t < 4 or (t - 4) % rule.batch == 0]
    for t in decisions:
        if bounded:
            points[t] = gaps[t]
        elif (coming := pulled[pulled >= t]).size:
            points[t], side = gaps[coming[0]], None
            before = pulled[pulled < coming[0]].max(initial=-1)
            if window and own[coming[0]] < own[t]:
                side = gaps[before + 1]
            elif rule.batch > 1:
                preferred = [s for s in decisions if before < s < coming[0] and actions[s] == best]
                side = gaps[preferred[-1]] if preferred else None
            if side is not None and np.isfinite(side):
                apart[t] = abs(points[t] - side)
                points[t] = (points[t] + side) / 2
    if not bounded and rule.batch > 1:
        lay_stays(actions, decisions, arm, weight, own, points)
    used = np.isfinite(points) & np.isfinite(gaps)
    share = np.where(used, own, 0.0) / own[used].sum()
    of_arm = (used[:, None] * weight).sum(axis=0)[actions == arm] / own[used].sum()
    of_best = (np.where(used, share / np.where(other > 0, other, 1.0), 0.0) @ weight)[actions == best]
    return not bounded, share[used] @ points[used], share @ apart, 1 / (of_arm @ of_arm), 1 / (of_best @ of_best)


def lay_stays(actions, decisions, arm, weight, own, points):
    """Give all rewards of a stay one mean: the one that leads from the point before it to the point after it."""
    chosen, bounds = actions[decisions] == arm, points.copy()
    for first in range(len(decisions)):
        if not chosen[first] or (first and chosen[first - 1]):
            continue
        last = first + int(np.argmin(chosen[first:])) if not chosen[first:].all() else None
        if last is None or np.isnan(points[decisions[last]]):
            continue
        start, end = decisions[first], decisions[last]
        of_stay = weight[:, start:end].sum(axis=1)  # what the stay adds to the arm's recent pulls, before each round
        before = 0.0 if own[start] == 0 else points[start]
        mean = (own[end] * points[end] - (own[end] - of_stay[end]) * before) / of_stay[end]
        for t in decisions[first + 1 : last]:
            stay = weight[t, start:t].sum()
            points[t] = min(bounds[t], ((own[t] - stay) * before + stay * mean) / own[t])


@tied
@with_batches
def test_the_reading_is_the_definition(rule):
    stays, read = 0, 0
    for seed in range(3):
        log = rule.demonstrate(INSTANCE if rule.batch == 1 else CLOSE, 400, seed=seed)
        actions, columns = log.actions, ub.estimate(log, rule, sigma=0.5, check=False).columns
        best = int(np.bincount(actions).argmax())
        for arm in {0, 1, 2, 3} - {best}:
            turns = actions[4 :: rule.batch] == arm
            stays += np.count_nonzero(turns[1:] & turns[:-1])
            found = read_recent_arm(actions, rule.parameters(400), 4, arm, best)
            assert tuple(found) == pytest.approx(by_definition(actions, rule, arm, best), rel=1e-9)
            deviation = np.sqrt(0.25 / found.own + 0.25 / found.other + found.apart**2 / 12)
            read += found.estimated
            if found.estimated:  # the compiled loop
                assert columns.gap[0, arm] == pytest.approx(found.gap)
                assert columns.gap_high[0, arm] == pytest.approx(found.gap + 1.959964 * deviation)
    assert read > 0
    assert stays > 5 or rule.batch == 1


@tied
@pytest.mark.parametrize("batch", [1, 20])
@every_rule
def test_intervals_hold(rule, batch):
    """Three standard errors of the share that holds are allowed; batches leave a window empty more often."""
    longer = {"window": 500} if batch > 1 and "window" in type(rule).model_fields else {}
    rule = rule.model_copy(update={"exploration": 2.0, "batch": batch, **longer})
    held, generator = [], np.random.default_rng(5)
    for run in range(60):
        means = 0.5 * generator.standard_normal(4)
        log = rule.demonstrate(ub.Instance(means, 0.5), 2_000, seed=run)
        columns, truth = ub.estimate(log, rule, sigma=0.5, check=False).columns, means.max() - means
        holds = (columns.gap_low[0] <= truth) & (truth <= columns.gap_high[0])
        held += holds[columns.verdict[0] == ESTIMATED].tolist()
        bounded = columns.verdict[0] == BOUNDED
        assert (columns.gap_low[0][bounded] <= truth[bounded]).all()
    assert len(held) > (60 if batch > 1 else 120)
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(held))


@every_rule
def test_a_batch_is_told_from_another(rule):
    longer = {"window": 600} if "window" in type(rule).model_fields else {}
    made = rule.model_copy(update={"batch": 20, **longer})
    log = made.demonstrate(CLOSE, 2_000, seed=3)
    assert ub.estimate(log, made, sigma=0.5, check=True).check.verdict == "fits"
    for batch in (1, 4):
        with pytest.raises(NotIdentifiable, match=f"as a rule with batch=20 does; got batch={batch}.*Give batch=20"):
            ub.estimate(log, made.model_copy(update={"batch": batch}), sigma=0.5, check=False)
    shifted = ub.ActionLog.from_codes(log.actions[1:], log.arms)  # batches after another opening
    with pytest.raises(NotIdentifiable, match=r"as a rule with batch=20 does; got batch=1\..*another opening"):
        ub.estimate(shifted, rule, sigma=0.5, check=False)
    with pytest.raises(InferenceError, match="a rule that decides every 20 rounds"):
        ub.estimate(shifted, made, sigma=0.5, check=False)
    first = 4 + 1 + int(np.flatnonzero(np.diff(log.actions[4:]) != 0)[0]) + 1
    with pytest.raises(InferenceError, match=rf"from round 5 on would not have changed its arm in round {first}\b"):
        ub.estimate(log, made.model_copy(update={"batch": 37}), sigma=0.5, check=False)
    plain = rule.demonstrate(INSTANCE, 2_000, seed=3)
    with pytest.raises(InferenceError, match="a rule that decides every 20 rounds"):
        ub.estimate(plain, made, sigma=0.5, check=False)


def test_few_changes_show_no_batch():
    actions = np.repeat([0, 1, 0, 1, 0], [1, 1, 40, 20, 60])  # chance makes two changes look so
    log = ub.ActionLog.from_codes(actions, ("0", "1"))
    assert ub.estimate(log, ub.DiscountedUCB(), sigma=0.5, check=False)["0"].verdict == "best"


@every_rule
def test_delays_and_fitted_batches_are_refused(rule):
    log = rule.demonstrate(INSTANCE, 300)
    for delay in ("5", "geometric:5", "fit"):
        with pytest.raises(ParameterError, match=f"{rule.title} has no delay: it is taken to know every reward"):
            ub.estimate(log, f"{rule.name}:delay={delay}", sigma=0.5)
    with pytest.raises(NotIdentifiable, match="its evidence cannot be computed"):
        ub.estimate(log, f"{rule.name}:batch=fit", sigma=0.5)


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
