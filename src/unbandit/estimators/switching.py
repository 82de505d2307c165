"""The paper's two procedures: read each arm's gap off the round at which the demonstrator switched away from it.

At its switching round the demonstrator hesitated between arm i and the best arm: its two decision values were equal, up
to one reward. Solve that equation for the gap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import SwitchingCounts
from unbandit.estimators.comparison import Comparison, Tests, Width, most_pulled
from unbandit.estimators.equating import Equation
from unbandit.result import BOUNDED, ESTIMATED, UNSEEN

__all__ = ["eliminated_and_active", "index_comparison"]

BACK, BLOCK = 64, 1 << 16
"""Epochs that are looked at backwards from one, and together."""

SetUp = Callable[[SwitchingCounts], Equation]
"""What makes the rule's equation from what was read."""


def eliminated_and_active(pulls: NDArray[np.int64], gone: NDArray[np.bool_], width: Width, tests: Tests) -> Comparison:
    """Invert successive elimination: an arm eliminated after `n_i` pulls has gap `2 C(n_i)` (Procedure 1).

    An arm counts as eliminated only if its turn visibly passed (`gone`). One that is still active at the end has
    survived test `n_i - 1`: its gap is at most `2 C(n_i - 1)`. While two or more are active, none of them is known to
    be best. Of one demonstration, or of many: one row each.

    Where tests are not made at every epoch, an arm that went at one of them was still there after the test before: its
    gap lies between twice the width at the one and at the other, and the point halfway.
    """
    result = Comparison.of_nothing(pulls.shape)
    n, at = pulls[gone].astype(np.float64), pulls[gone]
    before = _latest_test(tests, at - 1)
    skipped = before < at - 1  # no test at the epoch before: the last one survived is further back
    survived = skipped & (before > 0)
    result.below[gone] = 2 * width(n, gone)
    above = np.where(skipped, np.nan, result.below[gone])
    if survived.any():
        places = np.zeros_like(gone)
        places[gone] = survived
        above[survived] = 2 * width(before[survived].astype(np.float64), places)
    result.above[gone] = above
    result.gap[gone] = np.where(survived, (result.below[gone] + above) / 2, result.below[gone])
    result.own[gone] = result.other[gone] = n
    result.own_above[gone] = result.other_above[gone] = np.where(survived, before, n)
    result.verdict[gone] = np.where(skipped & ~survived, BOUNDED, ESTIMATED)
    result.gap[gone & (result.verdict == BOUNDED)] = np.nan

    active = (pulls > 0) & ~gone
    alone = active & (active.sum(axis=-1, keepdims=True) == 1)
    # How long the arm could have stayed: until the end or, against the last arm alone, for half of what that had.
    most = pulls.max(axis=-1, keepdims=True)
    longest = np.where(alone.any(axis=-1, keepdims=True), (pulls + most) / 2, np.maximum(most - 1, pulls))[gone]
    result.cut = np.full(pulls.shape, np.nan)
    result.cut[gone] = np.where(skipped, np.nan, 2 * width(longest.astype(np.float64), gone))
    result.settle(alone)
    result.best, open_still = active, active & ~alone
    result.verdict[open_still], result.below[open_still] = BOUNDED, 0.0
    last = _latest_test(tests, np.maximum(pulls - 1, 0))
    tested = open_still & (last > 0)
    result.above[tested] = 2 * width(last[tested].astype(np.float64), tested)
    for counts in (result.own, result.other, result.own_above, result.other_above):
        counts[tested] = last[tested]
    return result


def _latest_test(tests: Tests, epochs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each of some epochs the latest one up to it that ended in a test; 0 where none did.

    Where it is far back, all epochs are looked at, a block after the other, for there may be billions.
    """
    asked, places = np.unique(epochs, return_inverse=True)
    found = np.where(asked > 0, -1, 0)
    for back in range(BACK):  # most rules test at every epoch, or at every so many
        tested = (found < 0) & (asked > back) & tests(np.maximum(asked - back, 1))
        found[tested] = asked[tested] - back
        if (found >= 0).all():
            break
    so_far = 0
    for start in range(0, int(asked[found < 0].max(initial=-1)) + 1, BLOCK):
        numbers = np.arange(start, start + BLOCK)
        up_to = np.maximum.accumulate(np.where((numbers > 0) & tests(numbers), numbers, so_far))
        here = (found < 0) & (asked >= start) & (asked < start + BLOCK)
        found[here], so_far = up_to[asked[here] - start], int(up_to[-1])
    return found[places].reshape(epochs.shape)


def index_comparison(read: SwitchingCounts, over: NDArray[np.bool_] | bool, set_up: SetUp) -> Comparison:
    """Invert an index rule: equate the indices of arm and best arm, both counts at the switching round (Procedure 2).

    Of an additive rule, `gap_i = C(n_i) - C(n_best)`. An arm that was never reconsidered, pulled in the opening alone
    before the best arm's last pull or not at all since, is bounded from below by the same equation with all of the best
    arm's pulls. It had all its own pulls behind it then if it is marked in `over`, otherwise those of the opening.
    (After an opening that no index rule makes, an arm may have more pulls then: all of them count.)
    Of one demonstration, or of many: one row each.
    """
    pulls, equation = read.pulls, set_up(read)
    initial, batch = equation.rule.initial, equation.rule.batch
    best, top = most_pulled(pulls), pulls.argmax(axis=-1)[..., None]
    all_of_best, ended = (np.take_along_axis(counts, top, axis=-1) for counts in (pulls, read.rounds))
    seen = (pulls > 0) & ~best
    compared = seen & (read.own > initial) & (read.of_best > 0)
    below, slope = equation.solve(compared, read.own, read.of_best, read.rounds)
    # Before the last decision for it, the arm's index was still in front; since then it was never taken up again, so it
    # fell to below where the best arm's index stood in the end. The upper end starts halfway between the two.
    before = np.maximum(read.own - batch, initial)
    then, _ = equation.solve(compared, before, read.of_best, read.rounds)
    in_the_end, _ = equation.solve(compared, before, all_of_best, ended)
    above = (then + in_the_end) / 2
    gap = below.copy() if batch == 1 else (below + above) / 2
    own, other, own_above = (np.where(compared, counts, np.nan) for counts in (read.own, read.of_best, before))
    other_above = other.copy()
    verdict = np.where(compared, np.int8(ESTIMATED), np.int8(UNSEEN))

    never = seen & ~compared
    if never.any():
        pulls_then = np.where(over, pulls, np.minimum(pulls, initial))
        bound, slope_then = equation.solve(never, pulls_then, all_of_best, ended)
        below = np.where(never, bound, below)
        slope = slope if equation.width is not None else np.where(never, slope_then, slope)
        own, other = np.where(never, pulls_then, own), np.where(never, all_of_best, other)
        verdict[never] = BOUNDED
    unsolved = seen & np.isnan(below)
    if unsolved.any():
        verdict[unsolved], below[unsolved] = BOUNDED, 0.0
    result = Comparison(best, verdict, gap, below, above, own, other, own_above, other_above, slope)
    result.settle(best)
    return result
