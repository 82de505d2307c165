"""How often the check says that a log begins in mid-run: of logs without their first 500 rounds, and of whole ones.

`python tests/statistical/test_lost_beginnings.py 40` prints the rates of docs/your-log.md, from 40 whole and 40 cut
logs of every rule. They are measured as `estimate` does it, without the rest of the check.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import unbandit as ub
from unbandit.demonstrators import Demonstrator, RandomisedRule, parse_rule
from unbandit.inference.prior import usual_prior
from unbandit.inference.rivals import SETTLED, settled_from_the_start

SIGMA, ROUNDS, CUT = 0.5, 2_500, 500
RULES = (
    f"thompson:sigma={SIGMA}", "thompson:noise=bernoulli", f"top-two-thompson:sigma={SIGMA}",
    "softmax:temperature=0.2,initial=0", "epsilon-greedy:epsilon=0.1,initial=0",
)  # fmt: skip


IN_TURN = ("ucb:alpha=0.25", "ucb1", "klucb:noise=gaussian,sigma=0.5", "moss", "lilucb", "sae:alpha=0.25")
"""Rules that try every arm in turn first: what their logs lack is seen without a check."""


def made(rule: Demonstrator, seed: int) -> ub.ActionLog:
    """Play 2 to 10 arms with means between 0 and 1, in every fourth log nearly equal ones, in every fifth low ones."""
    generator, arms = np.random.default_rng(seed), (4, 2, 10, 3, 6)[seed % 5]
    means = generator.uniform(0.0, 1.0, arms)
    if seed % 4 == 3:
        means = 0.5 + 0.05 * generator.standard_normal(arms)
    elif seed % 5 == 1:
        means *= 0.1
    return rule.demonstrate(ub.Instance(means, noise_of(rule)), ROUNDS, seed=seed)


def noise_of(rule: Demonstrator) -> ub.Gaussian | ub.Bernoulli:
    bernoulli = getattr(rule, "bernoulli_only", False) or getattr(rule, "noise", "") == "bernoulli"
    return ub.Bernoulli() if bernoulli else ub.Gaussian(SIGMA)


def looks_settled(text: str, seed: int, cut: int) -> bool:
    rule = parse_rule(text)
    log = made(rule, seed)
    rows = ub.ActionLog.from_codes(log.demonstration(0)[cut:], log.arms)
    noise, own = noise_of(rule), rule.for_arms(len(log.arms))
    if not isinstance(own, RandomisedRule):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ub.AssumptionWarning)
            answer = ub.estimate(rows, own, sigma=SIGMA, check=False)
        return not {"opening", "late-arm"}.isdisjoint(each.code for each in answer.warnings)
    return settled_from_the_start(rows, own, noise, usual_prior(noise, None), ROUNDS - cut, seed, None) > SETTLED


@pytest.mark.parametrize("text", RULES + IN_TURN)
def test_whole_logs_are_seldom_said_to_begin_in_mid_run(text: str) -> None:
    """Some 1% are: of eight, two would be once in 400 tests."""
    assert sum(looks_settled(text, seed, 0) for seed in range(8)) <= 1


@pytest.mark.parametrize("text", RULES[:2] + IN_TURN[:5])
def test_a_lost_beginning_is_noticed(text: str) -> None:
    """Some two thirds are; of eight, two or fewer would be once in 50 tests."""
    assert sum(looks_settled(text, seed, CUT) for seed in range(8)) >= 3


def main(number: int, texts: tuple[str, ...]) -> None:
    for text in texts:
        found = [sum(looks_settled(text, seed, cut) for seed in range(number)) for cut in (0, CUT)]
        print(f"{text}: {found[0]} of {number} whole logs, {found[1]} of {number} cut ones", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), tuple(sys.argv[2:]) or RULES + IN_TURN)
