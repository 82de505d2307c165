"""How often the check warns of drift: of logs without any, and of logs in which one gap changes halfway.

`python tests/statistical/test_drift_statistics.py 45 20` prints the rates of docs/your-log.md: 45 logs of every size
without drift, 20 of every change with it. They are measured as `estimate` does it, without the rest of the check.
"""

from __future__ import annotations

import sys
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import unbandit as ub
from unbandit.demonstrators import IndexRule, parse_rule
from unbandit.estimators.procedures import quantile
from unbandit.inference.check import SIMULATIONS, AnsweredMeans
from unbandit.inference.predictive import ArmDrift, drift_of

SIGMA = 0.5
RULES = ("ucb:alpha=0.25", "ucb1", "moss", f"klucb:noise=gaussian,sigma={SIGMA}", "lilucb")
SIZES = tuple((arms, rounds) for arms in (2, 4, 10) for rounds in (500, 2_000, 5_000))
NEAR = 0.05  # within which every other log's means are
CHANGES = (0.25, 0.5, 1.0)


def drift_in(log: ub.ActionLog, rule: IndexRule, seed: int) -> ArmDrift | None:
    """Look for drift as the check of `estimate` does."""
    rounds, noise = int(log.lengths[0]), ub.Gaussian(SIGMA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ub.AssumptionWarning)
        answer = ub.estimate(log, rule, sigma=SIGMA, check=False)
    numbers = answer.columns
    means = AnsweredMeans(numbers.gap[0], numbers.gap_low[0], numbers.gap_high[0], quantile(answer.level))
    if not means.says_anything:
        return None
    rule, drawn = rule.for_arms(len(log.arms)), means.draw(SIMULATIONS, noise, np.random.default_rng([seed, 7]))
    played = rule.demonstrate_at(drawn, noise, rounds, length=rounds, seed=seed + 1)
    found = drift_of(log.demonstration(0), played, rule, rounds, SIGMA, log.arms, "1")
    return None if found is None else found[0]


def still(rule: IndexRule, arms: int, rounds: int, seed: int) -> ub.ActionLog:
    """Play a log without drift: of means from N(0, 1) or, every other one, of nearly equal ones."""
    generator = np.random.default_rng([seed, arms, rounds])
    means = generator.standard_normal(arms) if seed % 2 == 0 else generator.uniform(0.0, NEAR, arms)
    return rule.demonstrate(ub.Instance(means, SIGMA), rounds, seed=seed)


class Drifting(NamedTuple):
    log: ub.ActionLog
    arm: str


def drifting(rule: IndexRule, change: float, rounds: int, seed: int) -> Drifting:
    """Play four arms with even means from 1 to 0, of which one rises or falls halfway."""
    generator, arms = np.random.default_rng([seed, rounds, 1]), 4
    before = generator.permutation(np.linspace(1.0, 0.0, arms))
    after, moved, own = before.copy(), int(generator.integers(arms)), rule.for_arms(arms)
    after[moved] += change * generator.choice([-1.0, 1.0])
    pulls, sums = np.zeros(arms, np.int64), np.zeros(arms)
    actions, noise = np.empty(rounds, np.uint8), SIGMA * generator.standard_normal(rounds)
    known: dict[int, float] = {}

    def offset(number: int, round: int) -> float:
        if own.uses_round:
            return own.index(0.0, number, round, rounds)
        if number not in known:
            known[number] = own.index(0.0, number, round, rounds)
        return known[number]

    for round in range(rounds):
        arm = round
        if round >= arms:
            added = [offset(number, round + 1) for number in pulls.tolist()]
            arm = int(np.argmax(sums / pulls + added))
        pulls[arm] += 1
        sums[arm] += (before if 2 * round < rounds else after)[arm] + noise[round]
        actions[round] = arm
    return Drifting(ub.ActionLog.from_codes(actions, [str(arm) for arm in range(arms)]), str(moved))


def rule_of(text: str) -> IndexRule:
    rule = parse_rule(text)
    assert isinstance(rule, IndexRule)
    return rule


def alarms(text: str, arms: int, rounds: int, runs: range) -> int:
    rule = rule_of(text)
    found = (drift_in(still(rule, arms, rounds, seed), rule, seed) for seed in runs)
    return sum(each is not None and each.drifted for each in found)


def noticed(text: str, change: float, rounds: int, runs: range) -> tuple[int, int, int, int]:
    """Return how many logs with drift were noticed, and of how many the right arm was named, alone or as one of two.

    Then of how many one arm was named alone, and of how many of these the right one.
    """
    rule, seen, right, alone, alone_right = rule_of(text), 0, 0, 0, 0
    for seed in runs:
        log, arm = drifting(rule, change, rounds, seed)
        found = drift_in(log, rule, seed)
        if found is not None and found.drifted:
            named = (found.arm,) if found.decided else (found.shown_by, found.best)
            seen, right = seen + 1, right + (arm in named)
            alone, alone_right = alone + found.decided, alone_right + (named == (arm,))
    return seen, right, alone, alone_right


@pytest.mark.parametrize("text", RULES)
def test_a_log_without_drift_is_seldom_warned_of(text: str) -> None:
    """The alarm is at 0.5%: of 12 logs two alarms would happen once in 600 tests."""
    assert sum(alarms(text, arms, rounds, range(3)) for arms, rounds in SIZES if rounds <= 2_000 and arms > 2) <= 1


def test_drift_is_noticed_and_the_arm_named() -> None:
    """More than half of the logs are noticed at a change of 1; of eight, two or fewer once in 60 tests."""
    seen, right, alone, alone_right = noticed("ucb:alpha=0.25", 1.0, 2_000, range(8))
    assert seen >= 3
    assert right >= seen - 1
    assert alone >= 3
    assert alone_right >= alone - 1


def main(without: int, with_drift: int, texts: tuple[str, ...]) -> None:
    for text in texts:
        found = {size: alarms(text, *size, range(without)) for size in SIZES}
        print(f"{text}: {sum(found.values())} alarms in {without * len(SIZES)} logs without drift; {found}", flush=True)
        for rounds in (2_000, 5_000):
            for change in CHANGES:
                seen, right, alone, alone_right = noticed(text, change, rounds, range(with_drift))
                named = f"right arm {right}, named alone {alone}, of these right {alone_right}"
                print(f"{text}: change {change}, T={rounds}: {seen} of {with_drift}, {named}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), tuple(sys.argv[3:]) or RULES)
