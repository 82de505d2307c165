"""The paper's procedures: from counts to an arm's gap and its verdict, one arm at a time.

`procedure_1` and `procedure_2` are the formulas; around them stands what the record allows to say about an arm
(`Compared`), read at one moment as in the paper. `kernels.bracket` reads both sides of the last hesitation,
`kernels.intervals` adds what the rewards' noise leaves open, and `kernels.comparison` runs all of it over
demonstrations and arms; a GPU runs the same functions, one thread per demonstration (`kernels.gpu`).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unbandit.kernels.compile import called, inlined
from unbandit.kernels.formula import index_value, mean_value, width_value

BEST, ESTIMATED, BOUNDED, UNSEEN = 0, 1, 2, 3
BEST_ARM, NO_ARM = -1, -2
STEP = 1e-5  # by how much the best arm's mean is moved to see how far another arm's follows


class Assumptions(NamedTuple):
    """What is assumed besides the counts."""

    initial: int  # of an index rule: pulls of each arm in the opening
    batch: int  # and rounds from one decision to the next
    shifts: bool  # whether gaps need no known mean
    anchor: int  # the arm whose mean is known; `BEST_ARM` for the best arm, whichever it is, `NO_ARM` for none
    known_mean: float  # the mean of that arm
    sigma: float  # the standard deviation of a reward; NaN for Bernoulli rewards, whose mean decides
    noise_known: bool  # whether points may rest on that deviation; otherwise it was merely assumed
    z: float  # how many deviations an interval reaches
    wider: float  # and a bound that luck may have caused
    log_error: float  # the logarithm of the probability beyond `z`


class Compared(NamedTuple):
    """Two sample means whose difference the record shows, exactly or up to a bound.

    An interval reaches from `below - z s` to `above + z s` with `s^2 = sigma_i^2 / own + (slope sigma_best)^2 / other`,
    at its upper end with the counts of an earlier comparison where there was one. NaN stands for none.
    """

    verdict: int  # one of `result.VERDICTS`, as its number
    gap: float  # the point
    below: float  # what the interval's low end starts from
    above: float  # and its high end
    own: float  # how many rewards stand behind the arm's sample mean
    other: float  # and behind that of the arm it was compared with
    own_above: float  # the same of the comparison that `above` comes from: the last that the arm won or survived
    other_above: float
    slope: float  # how far the arm's estimated mean moves with the best arm's: 1 where gaps need no known mean
    cut: float  # of an arm that was eliminated: the smallest gap whose elimination the record could show
    spread: float  # the standard deviation of the gap where the comparison knows it; NaN where it follows from counts


COLUMNS = Compared._fields[1:]  # the numbers, as they follow each other in tables


# The procedures


@inlined
def procedure_1(rule: Any, pulls: float) -> float:
    """Return an arm's gap (Procedure 1): it was eliminated when it fell two widths behind, `Delta_i = 2 C(n_i)`.

    Counts may end in one half, so the rule's widths are those of half pulls: `C(n)` is at `2 n`.
    """
    return 2.0 * width_value(rule, np.uint64(2.0 * pulls))


@inlined
def procedure_2(rule: Any, best_mean: float, pulls: int, best_pulls: int, round: int) -> float:
    """Return an arm's gap (Procedure 2): at its switching round `tau_i` both indices were equal.

    Solves `index(mu_best - Delta_i, n_i, t) = index(mu_best, n_best, t)`, both counts at `tau_i`. For an additive index
    that is `Delta_i = C(n_i) - C(n_best)`, whatever the best mean.
    """
    return best_mean - solve_equal_indices(rule, best_mean, best_pulls, pulls, round)


@inlined
def solve_equal_indices(rule: Any, known_mean: float, known_pulls: int, pulls: int, round: int) -> float:
    """Return the mean that after `pulls` pulls has the index that `known_mean` has after `known_pulls`."""
    level = index_value(rule, known_mean, np.uint64(known_pulls), np.uint64(round))
    return mean_value(rule, level, np.uint64(pulls), np.uint64(round))


@inlined
def naive_gap(pulls: int, horizon: float, constant: float) -> float:
    """Return `constant sqrt(ln T / n_i)`: any low-regret rule pulls an arm about `ln T / gap^2` times."""
    return constant * math.sqrt(math.log(horizon) / pulls)


# What a record says of one arm


@called
def gap_and_slope(
    rule: Any, shifts: bool, best_mean: float, pulls: int, best_pulls: int, round: int
) -> tuple[float, float]:  # fmt: skip
    """Return the gap of Procedure 2, and how far the arm's mean moves with the best arm's."""
    if shifts:
        return procedure_2(rule, 0.0, pulls, best_pulls, round), 1.0
    if best_mean != best_mean:
        return math.nan, 1.0
    step = STEP * max(abs(best_mean), 1.0)
    gap = procedure_2(rule, best_mean, pulls, best_pulls, round)
    below = solve_equal_indices(rule, best_mean - step, best_pulls, pulls, round)
    above = solve_equal_indices(rule, best_mean + step, best_pulls, pulls, round)
    slope = (above - below) / (2.0 * step)
    if not math.isfinite(slope):
        slope = (best_mean - gap - below) / step  # at the edge of what a mean can be
    return gap if math.isfinite(gap) else math.nan, slope if math.isfinite(slope) else 1.0


@inlined
def without_comparison(verdict: int, gap: float) -> Compared:
    """Return a verdict that rests on no comparison."""
    nan = math.nan
    return Compared(verdict, gap, nan, nan, nan, nan, nan, nan, 1.0, nan, nan)


@called
def compare_index_arm(
    rule: Any, assumed: Assumptions, best_mean: float, pulls: int, own: int, of_best: int, round: int, most: int,
    ended: int, over: bool,
) -> Compared:  # fmt: skip
    """Compare an arm of an index rule, pulled `pulls` times in the end, with the most-pulled one.

    At the arm's switching round `round` the two had `own` and `of_best` pulls; the most-pulled arm has `most` in the
    end, and `ended` is the round after its last. An arm that was never reconsidered, pulled in the opening alone before
    the best arm's last pull or not at all since, is bounded from below by the same equation with `most`: `over` says
    whether all its pulls came before, or only those of the opening. (After an opening that no index rule makes, an arm
    may have more pulls then: all of them count. Where `of_best` is 0, `own` are pulls before a log that
    begins in mid-run: the last hesitation may lie there.) `best_mean` is NaN where it is not known, and not used where
    gaps need no known mean.
    """
    if pulls == 0:
        return without_comparison(UNSEEN, math.nan)
    nan, shifts = math.nan, assumed.shifts
    if own > assumed.initial and of_best > 0:
        below, slope = gap_and_slope(rule, shifts, best_mean, own, of_best, round + 1)
        # Before the last decision for it, the arm's index was still in front; since then it was never taken up again,
        # so it fell below where the best arm's index stood in the end. The upper end starts halfway between the two.
        before = max(own - assumed.batch, assumed.initial)
        then, _ = gap_and_slope(rule, shifts, best_mean, before, of_best, round + 1)
        in_the_end, _ = gap_and_slope(rule, shifts, best_mean, before, most, ended)
        above = (then + in_the_end) / 2.0
        gap = below if assumed.batch == 1 else (below + above) / 2.0
        solved = below == below
        n, n_best, n_before = float(own), float(of_best), float(before)
        return Compared(
            ESTIMATED if solved else BOUNDED, gap, below if solved else 0.0, above, n, n_best, n_before, n_best, slope,
            nan, nan,
        )  # fmt: skip
    held = pulls if over else max(min(pulls, assumed.initial), own)
    below, slope = gap_and_slope(rule, shifts, best_mean, held, most, ended)
    below = below if below == below else 0.0
    return Compared(BOUNDED, nan, below, nan, float(held), float(most), nan, nan, slope, nan, nan)


@called
def compare_eliminated_arm(rule: Any, pulls: int, before: int, gone: bool, active: int, most: int) -> Compared:
    """Read off how an elimination rule treated an arm.

    `before` is the last test before the arm's last epoch (0 for none), `gone` whether its turn visibly passed; `active`
    arms were left in the end, and the most-pulled one had `most` pulls. An arm that is still active has survived its
    last test: its gap is at most twice the width there. While two or more are active, none is known to be best. Where
    tests are not made at every epoch, an arm that was eliminated at one of them was still there after the test before:
    its gap lies between twice the width at the one and at the other, and the point halfway.
    """
    nan = math.nan
    if pulls == 0:
        return without_comparison(UNSEEN, nan)
    if not gone:
        if active == 1:
            return without_comparison(BEST, 0.0)
        if before == 0:
            return Compared(BOUNDED, nan, 0.0, nan, nan, nan, nan, nan, 1.0, nan, nan)
        n = float(before)
        return Compared(BOUNDED, nan, 0.0, procedure_1(rule, n), n, n, n, n, 1.0, nan, nan)
    n, below = float(pulls), procedure_1(rule, float(pulls))
    if before == pulls - 1:
        # How long the arm could have stayed: until the end or, against the last arm alone, half of what that had.
        longest = (pulls + most) / 2.0 if active == 1 else float(max(most - 1, pulls))
        return Compared(ESTIMATED, below, below, below, n, n, n, n, 1.0, procedure_1(rule, longest), nan)
    if before == 0:
        return Compared(BOUNDED, nan, below, nan, n, n, n, n, 1.0, nan, nan)
    above, survived = procedure_1(rule, float(before)), float(before)
    return Compared(ESTIMATED, (below + above) / 2.0, below, above, n, n, survived, survived, 1.0, nan, nan)
