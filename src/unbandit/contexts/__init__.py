"""Contexts: logs of arms with features, and the rules that choose by a linear model of them.

`log` is what an observer sees, and `table` reads it. `rule` is what the rules share; each has a file of its own.
`design` has the vectors of their models, `simulation` plays them. `posterior` reads coefficients from choices, by the
approximation in `expectation` and the particles in `clouds`; `check` compares the rule with rivals.
"""

from unbandit.contexts.lin_epsilon_greedy import LinEpsilonGreedy
from unbandit.contexts.lin_softmax import LinSoftmax
from unbandit.contexts.lints import LinTS
from unbandit.contexts.linucb import LinUCB
from unbandit.contexts.log import ContextLog
from unbandit.contexts.rule import LinearRule, known_linear_rules
from unbandit.contexts.simulation import ContextInstance

__all__ = [
    "ContextInstance", "ContextLog", "LinEpsilonGreedy", "LinSoftmax", "LinTS", "LinUCB", "LinearRule",
    "known_linear_rules",
]  # fmt: skip
