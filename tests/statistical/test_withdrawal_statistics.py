"""How often an arm is said to be withdrawn: of logs of rules that choose at random, whole ones and withdrawn ones.

`python tests/statistical/test_withdrawal_statistics.py 60 30` prints the rates of docs/your-log.md: of 60 logs of every
rule in which all arms were there to the end, and of 30 in which one was withdrawn. They are measured as `estimate` does
it, without the rest of the check.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pytest

import unbandit as ub
from unbandit.demonstrators import RandomisedRule, parse_rule
from unbandit.inference.prior import usual_prior
from unbandit.inference.rivals import withdrawals

SIGMA, ROUNDS = 0.5, (300, 1_000, 2_000)
RULES = (
    f"thompson:sigma={SIGMA}", "thompson:noise=bernoulli", "softmax:temperature=0.2",
    "learning-softmax:rate=0.1,temperature=0.2", "epsilon-greedy:epsilon=0.1",
)  # fmt: skip
OFTEN = 0.1  # share of the rounds just before, from which on an arm was still pulled often


class Played(NamedTuple):
    """A log, and of an arm that was withdrawn: its position, and its share of the rounds just before that."""

    log: ub.ActionLog
    arm: int | None
    share: float


def rule_of(text: str) -> RandomisedRule:
    rule = parse_rule(text)
    assert isinstance(rule, RandomisedRule)
    return rule


def noise_of(rule: RandomisedRule) -> ub.Gaussian | ub.Bernoulli:
    return ub.Bernoulli() if rule.bernoulli_only else ub.Gaussian(SIGMA)


def played(rule: RandomisedRule, seed: int, *, withdrawn: bool) -> Played:
    """Play 2 to 6 arms: of four logs two have means between 0 and 1, one from N(0, 1), one nearly equal ones.

    An arm is withdrawn at some time between a tenth and a half of the log, among those pulled in the last twentieth.
    """
    generator, arms, rounds, noise = np.random.default_rng(seed), 2 + seed % 5, ROUNDS[seed % 3], noise_of(rule)
    means = generator.uniform(0.0, 1.0, arms)
    if seed % 4 == 2 and not rule.bernoulli_only:
        means = generator.standard_normal(arms)
    elif seed % 4 == 3:
        means = np.clip(0.5 + 0.05 * generator.standard_normal(arms), 0.0, 1.0)
    instance = ub.Instance(means, noise)
    whole = rule.demonstrate(instance, rounds, seed=seed)
    if not withdrawn:
        return Played(whole, None, 0.0)
    last = int(generator.integers(rounds // 10, rounds // 2))
    recent = whole.demonstration(0)[last - max(20, rounds // 20) : last]
    arm = int(generator.choice(np.unique(recent)))
    log = rule.demonstrate(instance, rounds, seed=seed, availability={whole.arms[arm]: (None, last)})
    return Played(log, arm, float((recent == arm).mean()))


def warned(text: str, seed: int, *, withdrawn: bool) -> tuple[list[int], int | None, float]:
    """Return the arms that are said to be withdrawn; the one that was, and its share of the rounds before that."""
    rule = rule_of(text)
    log, arm, share = played(rule, seed, withdrawn=withdrawn)
    noise, own = noise_of(rule), rule.for_arms(len(log.arms))
    found = withdrawals(log, own, noise, usual_prior(noise, None), int(log.lengths[0]), seed, 1)
    return [each.arm for each in found if each.is_odd(len(log.arms))], arm, share


@pytest.mark.parametrize("text", RULES)
def test_arms_of_whole_logs_are_hardly_ever_said_to_be_withdrawn(text: str) -> None:
    """Less than 1% are: of eight, two would be once in 400 tests."""
    assert sum(bool(warned(text, seed, withdrawn=False)[0]) for seed in range(8)) <= 1


@pytest.mark.parametrize("text", [RULES[0], *RULES[2:4]])
def test_arms_that_were_pulled_often_are_said_to_be_withdrawn(text: str) -> None:
    """Most are that were pulled in a tenth of the rounds just before: of seven of Thompson sampling, six or so."""
    found = [warned(text, seed, withdrawn=True) for seed in (0, 3, 6, 12, 15, 18, 27)]
    often = [arm in named for named, arm, share in found if share >= OFTEN]
    assert len(often) >= 3
    assert sum(often) >= len(often) - 2


def main(whole: int, withdrawn: int, texts: tuple[str, ...]) -> None:
    for text in texts:
        alarms = sum(bool(warned(text, seed, withdrawn=False)[0]) for seed in range(whole))
        print(f"{text}: {alarms} of {whole} whole logs", flush=True)
        found = [warned(text, seed, withdrawn=True) for seed in range(withdrawn)]
        for name, often in (("often", True), ("seldom", False)):
            named = [arm in arms for arms, arm, share in found if (share >= OFTEN) == often]
            print(f"{text}: {sum(named)} of {len(named)} withdrawn arms that were {name} pulled", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), tuple(sys.argv[3:]) or RULES)
