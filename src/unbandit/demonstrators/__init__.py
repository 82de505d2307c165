"""Demonstrators: decision rules with their parameters, one small file each.

`base` says what every rule is and finds rules by name; `index`, `elimination` and `randomised` are the kinds.
"""

from unbandit.demonstrators.anytime_moss import AnytimeMOSS
from unbandit.demonstrators.base import Demonstrator, parse_rule, rules
from unbandit.demonstrators.bayes_ucb import BayesUCB
from unbandit.demonstrators.discounted_ucb import DiscountedUCB
from unbandit.demonstrators.elimination import EliminationRule
from unbandit.demonstrators.epsilon_greedy import EpsilonGreedy
from unbandit.demonstrators.exp3 import EXP3
from unbandit.demonstrators.explore_then_commit import ExploreThenCommit
from unbandit.demonstrators.index import AdditiveIndexRule, IndexRule
from unbandit.demonstrators.klucb import KLUCB
from unbandit.demonstrators.learning_softmax import LearningSoftmax
from unbandit.demonstrators.lil_klucb import LilKLUCB
from unbandit.demonstrators.lilucb import LilUCB
from unbandit.demonstrators.moss import MOSS
from unbandit.demonstrators.randomised import RandomisedRule
from unbandit.demonstrators.recent import RecentIndexRule
from unbandit.demonstrators.sae import SAE, PhasedElimination
from unbandit.demonstrators.sliding_window_ucb import SlidingWindowUCB
from unbandit.demonstrators.softmax import Softmax
from unbandit.demonstrators.successive_elimination import SuccessiveElimination
from unbandit.demonstrators.thompson import Thompson
from unbandit.demonstrators.top_two import TopTwoThompson
from unbandit.demonstrators.tuned_ucb import UCBTuned
from unbandit.demonstrators.ucb import UCB
from unbandit.demonstrators.ucb1 import UCB1
from unbandit.demonstrators.ucbv import UCBV
from unbandit.demonstrators.uniform import Uniform

__all__ = [
    "EXP3", "KLUCB", "MOSS", "SAE", "UCB", "UCB1", "UCBV", "AdditiveIndexRule", "AnytimeMOSS", "BayesUCB",
    "Demonstrator", "DiscountedUCB", "EliminationRule", "EpsilonGreedy", "ExploreThenCommit", "IndexRule",
    "LearningSoftmax", "LilKLUCB", "LilUCB", "PhasedElimination", "RandomisedRule", "RecentIndexRule",
    "SlidingWindowUCB", "Softmax", "SuccessiveElimination", "Thompson", "TopTwoThompson", "UCBTuned", "Uniform",
    "parse_rule", "rules",
]  # fmt: skip
