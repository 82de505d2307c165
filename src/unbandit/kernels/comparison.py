"""Loops over demonstrations and arms: from counts to what each record says about every gap, by each closed form.

They fill in tables; what is said of one arm is in `kernels.procedures` and `kernels.bracket`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from unbandit.kernels.bracket import Looks, bracket_delayed_arm, bracket_eliminated_arm, bracket_index_arm
from unbandit.kernels.compile import CALLED, Integers, Marks, Numbers, called, compiled_late, inlined
from unbandit.kernels.formula import PowerWidth
from unbandit.kernels.intervals import Verdicts
from unbandit.kernels.procedures import (
    BEST,
    ESTIMATED,
    UNSEEN,
    Assumptions,
    Compared,
    compare_eliminated_arm,
    compare_index_arm,
    gap_and_slope,
    naive_gap,
    solve_equal_indices,
    without_comparison,
)

ONE_SIDED, TWO_SIDED, COUNTS_ONLY = 0, 1, 2  # how a record is read: as in the paper, as a bracket, without its order


class PowerWidths(NamedTuple):
    """The widths `factor sqrt(growth / n)`, with a growth for each demonstration."""

    factor: float
    growth: Numbers


def rule_of(rules: Any, which: int) -> Any:
    """Return the rule's parameters for one demonstration: the same for all, or with a growth for each."""
    return PowerWidth(rules.factor, rules.growth[which]) if isinstance(rules, PowerWidths) else rules


@overload(rule_of, strict=False, jit_options=CALLED)
def _rule_by_type(rules: Any, which: Any) -> Any:
    if getattr(rules, "instance_class", None) is PowerWidths:
        return lambda rules, which: PowerWidth(rules.factor, rules.growth[which])
    return lambda rules, which: rules


@inlined
def _fill(compared: Compared, d: int, arm: int, verdict: Verdicts, numbers: Numbers) -> None:
    verdict[d, arm] = compared.verdict
    for at, number in enumerate(compared[1:]):
        numbers[at, d, arm] = number


@called
def _best_mean(
    rule: Any, assumed: Assumptions, top: int, own: int, of_best: int, round: int, least: int
) -> float:  # fmt: skip
    """Return the best arm's mean as the one known mean implies it, from the anchor's counts; NaN where it does not.

    The anchor must have more than `least` pulls.
    """
    if assumed.shifts or assumed.anchor < 0 or assumed.anchor == top:
        return assumed.known_mean
    if own <= least or of_best == 0:
        return math.nan
    mean = solve_equal_indices(rule, assumed.known_mean, own, of_best, round + 1)
    return mean if math.isfinite(mean) else math.nan


@called
def surplus_at_the_end(
    rule: Any, shifts: bool, best_mean: float, gap: float, own: int, of_best: int, decided: int
) -> float:  # fmt: skip
    """Return by how much a gap exceeds the one in the sample means when the arm's turn last came.

    In deviations of that one, a reward having a deviation of 1. Counts are of rewards known then: where they are late
    or decisions made in batches, the arm was pulled on with the index that it had, and ended below the best arm's.
    """
    then, slope = gap_and_slope(rule, shifts, best_mean, own, of_best, decided)
    return ((gap if gap == gap else 0.0) - then) / math.sqrt(1.0 / own + slope * slope / of_best)


@compiled_late(spared=200)  # arms
def compare_index(
    rules: Any, assumed: Assumptions, reading: int, pulls: Integers, last: Integers, own: Integers, of_best: Integers,
    rounds: Integers, looks: Integers | None, best: Marks, verdict: Verdicts, numbers: Numbers, at_the_end: Numbers,
) -> None:  # fmt: skip
    """Fill in what demonstrations of an index rule say about every arm's gap.

    Counts are those of `Tallies`; `last` may have no rows, and there are `looks` only where rewards are late
    (where there are none, nothing is compiled for them).
    The `reading` is `ONE_SIDED` (Procedure 2), `TWO_SIDED`, or `COUNTS_ONLY`: all indices are taken as equal before the
    last round. Filled in are which arm was pulled most (`best`), the verdicts, `numbers` (`COLUMNS`) and, if it has
    rows, `at_the_end`: how much larger the gap is that the last round shows (0 where no mean gives one) than the one
    when the arm's turn last came (`surplus_at_the_end`); NaN for arms without an estimate.
    """
    arms, anchor, counts_only = pulls.shape[1], max(assumed.anchor, 0), reading == COUNTS_ONLY
    for d in range(pulls.shape[0]):
        rule, top, total = rule_of(rules, d), 0, np.int64(0)
        for arm in range(arms):
            total += pulls[d, arm]
            top = arm if pulls[d, arm] > pulls[d, top] else top
            best[d, arm] = False
        best[d, top] = True
        most, end = pulls[d, top], max(int(total) - 1, 0)
        mean_at_end = _best_mean(rule, assumed, top, pulls[d, anchor], most, end, assumed.initial)
        if counts_only:
            mean, ended = mean_at_end, end + 1
        else:
            at_anchor = own[d, anchor], of_best[d, anchor], rounds[d, anchor]
            mean = _best_mean(rule, assumed, top, *at_anchor, assumed.initial)
            ended = rounds[d, top] + 1
        if looks is not None:
            seen = looks[d, anchor]
            mean = _best_mean(rule, assumed, top, seen[0], seen[1], seen[2] - 1, 0)
        if assumed.shifts and assumed.anchor >= 0 and assumed.anchor != top:
            mean = math.nan  # what is known is another arm's, and gaps need none
        for arm in range(arms):
            count = pulls[d, arm]
            if arm == top:
                compared = without_comparison(BEST, 0.0)
            elif looks is not None:
                seen = looks[d, arm]
                known = Looks(seen[0], seen[1], seen[2], seen[3], seen[4], seen[5], seen[6], seen[7], seen[8], seen[9])
                compared = bracket_delayed_arm(rule, assumed, mean, count, most, known)
            elif counts_only:
                compared = compare_index_arm(rule, assumed, mean, count, count, most, end, most, ended, True)
            else:
                over = last.shape[0] > 0 and last[d, arm] < last[d, top]
                counts = own[d, arm], of_best[d, arm], rounds[d, arm]
                if reading == TWO_SIDED:
                    compared = bracket_index_arm(rule, assumed, mean, count, *counts, most, ended, over)
                else:
                    compared = compare_index_arm(rule, assumed, mean, count, *counts, most, ended, over)
            _fill(compared, d, arm, verdict, numbers)
            if at_the_end.shape[0] > 0:
                further = math.nan
                if compared.verdict == ESTIMATED:
                    if looks is not None:
                        seen = looks[d, arm]
                        own_then, best_then, decided = seen[0], seen[1], seen[2]
                        gap, _ = gap_and_slope(rule, assumed.shifts, mean, seen[3], seen[4], seen[5])
                    else:
                        own_then, best_then, decided = own[d, arm], of_best[d, arm], rounds[d, arm] + 1
                        if assumed.batch > 1:  # the decision for the batch
                            own_then = max(own_then - assumed.batch, assumed.initial)
                            decided = max(decided - assumed.batch, 1)
                        gap, _ = gap_and_slope(rule, assumed.shifts, mean_at_end, count, most, end + 1)
                    further = surplus_at_the_end(rule, assumed.shifts, mean, gap, own_then, best_then, decided)
                at_the_end[d, arm] = further


@compiled_late(spared=200)  # arms
def compare_elimination(
    rules: Any, assumed: Assumptions, reading: int, pulls: Integers, before: Integers, gone: Marks, best: Marks,
    verdict: Verdicts, numbers: Numbers,
) -> None:  # fmt: skip
    """Fill in what demonstrations of an elimination rule say about every arm's gap; see `compare_index`.

    `before` has the last test before each arm's last epoch; all arms still active may be best.
    """
    for d in range(pulls.shape[0]):
        rule, active, most = rule_of(rules, d), 0, np.int64(0)
        for arm in range(pulls.shape[1]):
            most = max(most, pulls[d, arm])
            best[d, arm] = pulls[d, arm] > 0 and not gone[d, arm]
            active += 1 if best[d, arm] else 0
        for arm in range(pulls.shape[1]):
            shown = pulls[d, arm], before[d, arm], gone[d, arm]
            if reading == TWO_SIDED:
                compared = bracket_eliminated_arm(rule, assumed, *shown, active, most)
            else:
                compared = compare_eliminated_arm(rule, *shown, active, most)
            _fill(compared, d, arm, verdict, numbers)


@compiled_late(spared=200)  # arms
def compare_naive(
    horizons: Numbers, constant: float, pulls: Integers, best: Marks, verdict: Verdicts, numbers: Numbers
) -> None:
    """Fill in the naive estimate, which needs no rule, is not consistent, and has no interval; see `compare_index`."""
    for d in range(pulls.shape[0]):
        top = 0
        for arm in range(pulls.shape[1]):
            top = arm if pulls[d, arm] > pulls[d, top] else top
        for arm in range(pulls.shape[1]):
            best[d, arm] = arm == top
            if arm == top:
                compared = without_comparison(BEST, 0.0)
            elif pulls[d, arm] == 0:
                compared = without_comparison(UNSEEN, math.nan)
            else:
                compared = without_comparison(ESTIMATED, naive_gap(pulls[d, arm], horizons[d], constant))
            _fill(compared, d, arm, verdict, numbers)
