"""Rivals of a rule: what else may have made a record.

A rule is tested against the others of its kind with their usual parameters, and against itself with rewards that
scatter less or more; `random_choices` stands for every rule that chooses at random.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from unbandit.demonstrators import Demonstrator, IndexRule, rules
from unbandit.errors import ParameterError
from unbandit.inference.decisions import Decisions, Predictions, without_rule
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.log import ActionLog

FACTORS = (0.5, 0.7, 1.4, 2.0)  # standard deviations of a reward, times the assumed one
RANDOM = "choices at random"
MEMORIES = {f"{RANDOM}, {memory:.0f} rounds remembered": memory for memory in (50.0, 400.0)} | {RANDOM: math.inf}


class Rival(NamedTuple):
    """Another rule, or the same with other rewards, that may have made a record."""

    name: str
    rule: IndexRule
    noise: Noise


def predicts(rule: Demonstrator, noise: Noise) -> bool:
    """Return whether decisions of a rule can be predicted one by one: of an index that is the mean plus an offset."""
    return isinstance(rule, IndexRule) and rule.shifts and isinstance(noise, Gaussian)


def rivals_of(rule: IndexRule, noise: Gaussian, log: ActionLog) -> list[Rival]:
    """Return other index rules with usual parameters, and the rule itself with other noise."""
    arms, found = len(log.arms), list[Rival]()
    for each in rules().values():
        if not issubclass(each, IndexRule) or each.name == rule.name:
            continue
        usual = usual_parameters(each, noise, log)
        if isinstance(usual, IndexRule) and predicts(usual, noise):
            found.append(Rival(str(usual), usual.for_arms(arms), noise))
    others = (noise.sigma * factor for factor in FACTORS)
    return found + [
        Rival(f"{rule} with rewards of standard deviation {sigma:.3g}", rule, Gaussian(sigma)) for sigma in others
    ]


def usual_parameters(rule: type[Demonstrator], noise: Noise, log: ActionLog) -> Demonstrator | None:
    """Return a rule with its default parameters, where these suit the noise, or else the first guess at them."""
    tried = [guess for guess, _ in rule.guesses(noise, log)]
    with suppress(ParameterError):
        tried.insert(0, rule())
    return next((each for each in tried if isinstance(noise, Bernoulli) or not each.bernoulli_only), None)


def random_choices(decisions: Decisions) -> Mapping[str, Predictions]:
    """Predict as one who chooses at random, with a shorter and a longer memory."""
    return {name: without_rule(decisions, memory) for name, memory in MEMORIES.items()}
