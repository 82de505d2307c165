"""Where the leader of a greedy rule changed, as far as the actions show it: a twist towards these meetings.

Just before the leader changes from arm `a` to arm `b`, `a` leads by less than one reward moves a sample mean. Which of
the two was pulled is often not plain: the first pull of `b` may have been exploration, which made it the leader, or the
first as the leader. So a lead is measured by what a reward of the arm with fewer pulls moves its mean by, about `j =
sigma / n` after `n` pulls. A lead `D` that one normal reward turns has density `Phi(-D / j)`: mean 0.63 j and standard
deviation 0.52 j. A site is wider, since the actions do not say for certain that the leader changed, and when: narrow
sites leave explanations out, and clouds agree on too little evidence.
"""

import math
from collections.abc import Sequence

import numpy as np

from unbandit.demonstrators import RandomisedRule
from unbandit.inference.twist import MOST_TWISTED, TwistedLog, firsts_of, transitions_of
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.smc.cloud import Belief, Steps
from unbandit.kernels.smc.leader import most_likely_leaders
from unbandit.kernels.smc.twist import UNRECORDED, Sites, Twist, solve_twist

CHANGING = (1e-3, 1e-5)  # probability that a reward changes the leader, to tell changes from exploration
LEAD = 0.63  # expectation of a lead that one reward turns, in units of what it moves a sample mean by
COIN = 0.5  # standard deviation of a reward of 0 or 1, about
WIDTHS = (1.5, 5.0)  # standard deviation of a site, in the same unit


def can_meet(rule: RandomisedRule, readings: Sequence[Steps], arms: int) -> bool:
    """Return whether the changes of a rule's leader can be read from the actions, and a twist built from them."""
    return rule.batch == 1 and sum(each.arm.size for each in readings) * arms * arms <= MOST_TWISTED


def twist_leaders(
    rule: RandomisedRule, belief: Belief, readings: Sequence[Steps], chances: Sequence[Numbers], horizon: int,
    known: tuple[Numbers, Numbers],
) -> list[TwistedLog]:  # fmt: skip
    """Return twists towards the meetings of a log: towards more or fewer of them, and with wider and narrower sites.

    There is none if the leader never changes.
    """
    transitions = transitions_of(rule, rule.parameters(horizon), belief, readings, known)
    twists: list[TwistedLog] = []
    tried: set[tuple[int, ...]] = {()}
    for changing in CHANGING:
        judged = np.zeros_like(transitions.judged)
        meetings = _meetings(belief, readings, chances, math.log(changing), judged)
        places = tuple(np.flatnonzero(judged).tolist())
        for width in WIDTHS if places not in tried else ():
            sites, moves = meetings._replace(bend=meetings.bend / width**2), transitions._replace(judged=judged)
            pull = np.zeros((judged.size, meetings.slope.shape[1] * (2 if transitions.separate else 1)))
            twist = Twist(pull, np.zeros(judged.size), np.ones(judged.size))
            start = solve_twist(moves, sites, twist, UNRECORDED)
            twists.append(TwistedLog(moves, sites, twist, start, firsts_of(readings)))
        tried.add(places)
    return twists


def _meetings(
    belief: Belief, readings: Sequence[Steps], chances: Sequence[Numbers], changing: float, judged: Integers
) -> Sites:
    """Return a site of unit width for each change of the leader, and mark its round as judged."""
    length, arms, at = judged.size, belief.first.size, 0
    sites = Sites(np.zeros((length, arms)), np.zeros((length, arms)), np.zeros((length, arms, arms)))
    for steps, chance in zip(readings, chances, strict=True):
        leaders = most_likely_leaders(steps, chance, changing)
        counts = np.cumsum(np.eye(arms, dtype=np.int64)[steps.arm], axis=0)
        for step in np.flatnonzero(leaders[:-1] != leaders[1:]):
            if step < max(steps.opening, 1):
                continue
            old, new, pulls = leaders[step], leaders[step + 1], counts[step - 1]
            jump = (COIN if belief.bernoulli else belief.sigma) / counts[step, [old, new]].min()
            lead = np.zeros(arms)
            lead[old], lead[new] = 1 / pulls[old], -1 / pulls[new]
            judged[at + step] = 1
            sites.centre[at + step, old] = LEAD * jump * pulls[old]
            sites.bend[at + step] = np.outer(lead, lead) / jump**2
        at += steps.arm.size
    return sites
