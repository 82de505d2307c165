"""Demonstrators: decision rules with their parameters, one small file each.

`base` says what every rule is; `index`, `elimination` and `randomised` are the kinds; `registry` finds rules by name.
"""

from unbandit.demonstrators.base import Demonstrator
from unbandit.demonstrators.elimination import EliminationRule, Eliminations
from unbandit.demonstrators.epsilon_greedy import EpsilonGreedy
from unbandit.demonstrators.index import AdditiveIndexRule, IndexRule, SwitchingCounts
from unbandit.demonstrators.randomised import PullCounts, RandomisedRule
from unbandit.demonstrators.registry import parse_rule, rules
from unbandit.demonstrators.sae import SAE
from unbandit.demonstrators.ucb import UCB
from unbandit.demonstrators.uniform import Uniform

__all__ = [
    "SAE",
    "UCB",
    "AdditiveIndexRule",
    "Demonstrator",
    "EliminationRule",
    "Eliminations",
    "EpsilonGreedy",
    "IndexRule",
    "PullCounts",
    "RandomisedRule",
    "SwitchingCounts",
    "Uniform",
    "parse_rule",
    "rules",
]
