"""What an index rule whose rewards are late knew at its last decisions, counted from its actions.

With a delay of `d` the rule knows, when it looks, the rewards of all but the `d` rounds before. A look is a round, or
the first one of a batch. Rounds come in runs, as in `kernels.tally`, so that a log may be read piece by piece: `recent`
is a ring of each demonstration's last rounds, and `known` the rewards of each arm that were known at its last look.
"""

import math

import numpy as np

from unbandit.kernels.compile import Integers, Marks, Numbers, compiled, inlined
from unbandit.kernels.tally import Codes


@inlined
def _learn(t: int, opening: int, batch: int, delay: int, recent: Integers, known: Integers) -> int:
    """Let the rewards become known that are so before round `t`, counted from 0; return the round of its look.

    Within a batch nothing becomes known. In the opening, which makes no decisions, one reward does in each round.
    """
    look = t if t < opening else t - (t - opening) % batch
    if look == t:
        before = t - 1 if t <= opening else t - batch  # the look before
        for s in range(max(before - delay, 0), t - delay):
            known[recent[s % recent.size]] += 1
    return look


@compiled
def looks_of_runs(
    codes: Codes, starts: Integers, who: Integers, lengths: Integers, opening: int, batch: int, delay: int,
    best: Integers, end: Integers, recent: Integers, known: Integers, looks: Integers,
) -> None:  # fmt: skip
    """Fill in what was known at the last decisions (`kernels.bracket.Looks`); runs are as in `tally_runs`.

    For each demonstration `best` is its most-pulled arm and `end` the round of that arm's last pull, from 1. The
    decision for an arm is the first one with the rewards that were known at its last: from then on nothing new was
    known of the arm. Rounds after `end` count where an arm returns. All arrays but the first three begin as 0.
    """
    arms = known.shape[1]
    for run in range(who.size):
        d, start, stop = who[run], starts[run], starts[run + 1]
        before, top, last = lengths[d], best[d], end[d] - 1
        for t in range(before, before + stop - start):
            look = _learn(t, opening, batch, delay, recent[d], known[d])
            arm = np.int64(codes[start + t - before])
            recent[d, t % recent.shape[1]] = arm
            if t < opening:
                continue
            if t == last:
                for each in range(arms):
                    looks[d, each, 3], looks[d, each, 4], looks[d, each, 5] = known[d, each], known[d, top], look + 1
            returns = t > last and looks[d, arm, 2] <= last
            if arm != top and (returns or (t < last and known[d, arm] != looks[d, arm, 0])):
                looks[d, arm, 0], looks[d, arm, 1], looks[d, arm, 2] = known[d, arm], known[d, top], look + 1
        lengths[d] = before + stop - start


@compiled
def pairs_of_looks(
    codes: Codes, starts: Integers, who: Integers, lengths: Integers, opening: int, batch: int, delay: int,
    last: Integers, recent: Integers, known: Integers, turn: Integers, turn_round: Integers, own: Integers,
    of_other: Integers, decided: Integers, ended: Integers, end_round: Integers,
) -> None:  # fmt: skip
    """Add runs to what is known of every pair of arms, since any may become the most-pulled one; see `looks_of_runs`.

    At `[i, b]`, `own`, `of_other` and `decided` are the rewards known of both arms, and the round, at arm i's last
    decision as if b were the most-pulled arm, and `ended` the rewards of arm i known at b's last decision, in
    `end_round[b]`. `turn[i]` are the rewards of all arms known at the first decision for i with as many of its own,
    and `turn_round[i]` is the round of that. `last` is the round of each arm's last pull; it goes on here.
    """
    for run in range(who.size):
        d, start, stop, before = who[run], starts[run], starts[run + 1], lengths[who[run]]
        for t in range(before, before + stop - start):
            look = _learn(t, opening, batch, delay, recent[d], known[d])
            arm = np.int64(codes[start + t - before])
            recent[d, t % recent.shape[1]] = arm
            if t >= opening:
                # --- as arm i: a return after another one's last pull, and the turn that further pulls repeat ---
                for b in range(known.shape[1]):
                    if b != arm and decided[d, arm, b] < last[d, b]:
                        own[d, arm, b], of_other[d, arm, b] = known[d, arm], known[d, b]
                        decided[d, arm, b] = look + 1
                if known[d, arm] != turn[d, arm, arm]:
                    turn_round[d, arm] = look + 1
                    for b in range(known.shape[1]):
                        turn[d, arm, b] = known[d, b]
                # --- as arm b: all turns so far came before its last pull ---
                end_round[d, arm] = look + 1
                for i in range(known.shape[1]):
                    ended[d, i, arm] = known[d, i]
                    if i != arm:
                        own[d, i, arm], of_other[d, i, arm] = turn[d, i, i], turn[d, i, arm]
                        decided[d, i, arm] = turn_round[d, i]
            last[d, arm] = t + 1
        lengths[d] = before + stop - start


# Random delays: what was known is hidden, and expected


@inlined
def _opening_of(actions: Codes, arms: int, has_order: bool, seen: Marks) -> int:
    """Return the round, counted from 0, up to which arms come in turn, whether or not the rule had to wait so long.

    With an order, all turns are like the first; without one, every turn has an order of its own.
    """
    for t in range(actions.size):
        if t % arms == 0:
            for arm in range(arms):
                seen[arm] = False
        arm = np.int64(actions[t])
        if seen[arm] or (has_order and t >= arms and actions[t - arms] != actions[t]):
            return t
        seen[arm] = True
    return np.int64(actions.size)


@inlined
def _awaited(actions: Codes, cumulative: Numbers, look: int, arm: int) -> tuple[float, float]:
    """Return how many rewards of an arm are not known before round `look`, from 0: the mean and the variance."""
    mean, variance = 0.0, 0.0
    for s in range(max(look - cumulative.size, 0), look):
        if actions[s] == arm:
            known = cumulative[look - 1 - s]
            mean += 1.0 - known
            variance += known * (1.0 - known)
    return mean, variance


@inlined
def _count(number: float) -> int:
    """Round to a count of rewards; one at least is known of every arm."""
    return max(np.int64(math.floor(number + 0.5)), 1)


@compiled
def expected_looks(
    codes: Codes, offsets: Integers, cumulative: Numbers, has_order: bool, pulls: Integers, last: Integers,
    looks: Integers,
) -> None:  # fmt: skip
    """Fill in what is expected to have been known at the last decisions, where delays are random (`Looks`).

    A reward of round `s` is known before round `t` with probability `F(t - 1 - s)`, so expected counts are rounded sums
    of these, `cumulative` being `F`; with those at the decision for the arm come counts of one deviation less and more.
    That decision is the first of its last stretch of pulls before the most-pulled arm's last one, since a reward that
    arrived within the stretch would have ended it; or the first one after.
    """
    arms = pulls.shape[1]
    so_far, seen = np.empty(arms, np.int64), np.empty(arms, np.bool_)
    for d in range(pulls.shape[0]):
        actions, top = codes[offsets[d] : offsets[d + 1]], 0
        for arm in range(arms):
            top = arm if pulls[d, arm] > pulls[d, top] else top
            so_far[arm] = 0
            for at in range(looks.shape[2]):
                looks[d, arm, at] = 0
        end, opening = last[d, top] - 1, _opening_of(actions, arms, has_order, seen)
        for t in range(actions.size):
            arm = np.int64(actions[t])
            repeated = t > opening and actions[t - 1] == arm
            if t >= opening and arm != top and not repeated and (t < end or looks[d, arm, 2] <= end):
                looks[d, arm, 0], looks[d, arm, 1], looks[d, arm, 2] = so_far[arm], so_far[top], t + 1
            if t == end and t >= opening:
                for each in range(arms):
                    looks[d, each, 3], looks[d, each, 4], looks[d, each, 5] = so_far[each], so_far[top], t + 1
            so_far[arm] += 1
        for arm in range(arms):
            for own, of_best, round in ((0, 1, 2), (3, 4, 5)):
                for at, each in ((own, arm), (of_best, top)):
                    if looks[d, arm, round] > 0:
                        awaited, variance = _awaited(actions, cumulative, looks[d, arm, round] - 1, each)
                        mean, deviation = looks[d, arm, at] - awaited, math.sqrt(variance)
                        looks[d, arm, at] = _count(mean)
                        if at < 2:
                            looks[d, arm, 6 + 2 * at] = _count(mean - deviation)
                            looks[d, arm, 7 + 2 * at] = _count(mean + deviation)
