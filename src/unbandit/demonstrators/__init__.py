"""Demonstrators: decision rules with their parameters, one small file each.

`base` says what every rule is, `index` and `elimination` are the two kinds so far, `registry` finds rules by name.
"""

from unbandit.demonstrators.base import Demonstrator
from unbandit.demonstrators.elimination import EliminationRule, Eliminations
from unbandit.demonstrators.index import AdditiveIndexRule, IndexRule, SwitchingCounts
from unbandit.demonstrators.registry import parse_rule, rules
from unbandit.demonstrators.sae import SAE
from unbandit.demonstrators.ucb import UCB

__all__ = [
    "SAE",
    "UCB",
    "AdditiveIndexRule",
    "Demonstrator",
    "EliminationRule",
    "Eliminations",
    "IndexRule",
    "SwitchingCounts",
    "parse_rule",
    "rules",
]
