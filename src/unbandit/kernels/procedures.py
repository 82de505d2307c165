"""The paper's procedures: from counts to an arm's gap, its interval and its verdict, one arm at a time.

`procedure_1` and `procedure_2` are the formulas. Around them stand what the record allows to say about an arm
(`Compared`), read at one moment as in the paper or at both sides of the last hesitation (`kernels.bracket`), and the
interval that the rewards' noise leaves. On the CPU the loops below run them over demonstrations and arms; a GPU runs
the same functions, one thread per demonstration (`kernels.gpu`).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from unbandit.kernels.bracket import gap_at_elimination, gap_at_hesitation, gap_between, midpoint
from unbandit.kernels.compile import Integers, Marks, Numbers, called, compiled, inlined
from unbandit.kernels.formula import PowerWidth, index_value, mean_value, width_value
from unbandit.kernels.special import log_normal_cdf

BEST, ESTIMATED, BOUNDED, UNSEEN = 0, 1, 2, 3
BEST_ARM, NO_ARM = -1, -2
ONE_SIDED, TWO_SIDED, COUNTS_ONLY = 0, 1, 2  # how a record is read: as in the paper, as a bracket, without its order
STEP = 1e-5  # by how much the best arm's mean is moved to see how far another arm's follows
ONE_IN_A_MILLION = 4.75  # standard deviations that a normal variable exceeds by luck once in a million times
APART = 1.3  # times `z`: the best arm is chosen after the fact, so an arm this close is not told apart from it
CLEAR = 4.0  # deviations by which a gap must exceed the smallest that the record could show, to be taken as it is

Verdicts = NDArray[np.int8]


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


COLUMNS = Compared._fields[1:]  # the numbers that the loops below fill in, in this order


class PowerWidths(NamedTuple):
    """The widths `factor sqrt(growth / n)`, with a growth for each demonstration."""

    factor: float
    growth: Numbers


def rule_of(rules: Any, which: int) -> Any:
    """Return the rule's parameters for one demonstration: the same for all, or with a growth for each."""
    return PowerWidth(rules.factor, rules.growth[which]) if isinstance(rules, PowerWidths) else rules


@overload(rule_of, strict=False)
def _rule_by_type(rules: Any, which: Any) -> Any:
    if getattr(rules, "instance_class", None) is PowerWidths:
        return lambda rules, which: PowerWidth(rules.factor, rules.growth[which])
    return lambda rules, which: rules


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
def _gap_and_slope(
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
def _without_comparison(verdict: int, gap: float) -> Compared:
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
    may have more pulls then: all of them count.) `best_mean` is NaN where it is not known, and not used where gaps need
    no known mean.
    """
    if pulls == 0:
        return _without_comparison(UNSEEN, math.nan)
    nan, shifts = math.nan, assumed.shifts
    if own > assumed.initial and of_best > 0:
        below, slope = _gap_and_slope(rule, shifts, best_mean, own, of_best, round + 1)
        # Before the last decision for it, the arm's index was still in front; since then it was never taken up again,
        # so it fell below where the best arm's index stood in the end. The upper end starts halfway between the two.
        before = max(own - assumed.batch, assumed.initial)
        then, _ = _gap_and_slope(rule, shifts, best_mean, before, of_best, round + 1)
        in_the_end, _ = _gap_and_slope(rule, shifts, best_mean, before, most, ended)
        above = (then + in_the_end) / 2.0
        gap = below if assumed.batch == 1 else (below + above) / 2.0
        solved = below == below
        n, n_best, n_before = float(own), float(of_best), float(before)
        return Compared(
            ESTIMATED if solved else BOUNDED, gap, below if solved else 0.0, above, n, n_best, n_before, n_best, slope,
            nan, nan,
        )  # fmt: skip
    held = pulls if over else min(pulls, assumed.initial)
    below, slope = _gap_and_slope(rule, shifts, best_mean, held, most, ended)
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
        return _without_comparison(UNSEEN, nan)
    if not gone:
        if active == 1:
            return _without_comparison(BEST, 0.0)
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


# The same, read at both sides of the last hesitation


@called
def bracket_index_arm(
    rule: Any, assumed: Assumptions, best_mean: float, pulls: int, own: int, of_best: int, round: int, most: int,
    ended: int, over: bool,
) -> Compared:  # fmt: skip
    """Compare an arm of an index rule with the most-pulled one at both sides of their last hesitation.

    Arguments as for `compare_index_arm`, and so are the verdicts. The arm's last decision was at its switching round,
    with one pull less than after it (one batch less); the most-pulled arm was last preferred to it when it was last
    pulled itself. An arm that was pulled after that was just then preferred: its index lies between two of the
    most-pulled arm's. Where the noise is not known the point is halfway between the sides.
    """
    nan, shifts, batch = math.nan, assumed.shifts, assumed.batch
    compared = compare_index_arm(rule, assumed, best_mean, pulls, own, of_best, round, most, ended, over)
    if compared.verdict != ESTIMATED:
        return compared
    best_after = max(most - batch, of_best)
    after, _ = _gap_and_slope(rule, shifts, best_mean, own, best_after, max(ended - batch, 1))
    returned = pulls > own
    if returned:
        own_before, best_before, decided = own, most, ended
    else:
        own_before, best_before, decided = max(own - batch, assumed.initial), of_best, max(round - batch + 1, 1)
    before, slope = _gap_and_slope(rule, shifts, best_mean, own_before, best_before, decided)
    if assumed.noise_known and assumed.sigma != assumed.sigma:  # where no mean solves it, 0 is nearest
        before, after = before if before == before else best_mean, after if after == after else best_mean
    if not (before == before and after == after):
        return compared
    n, n_before, n_best = float(own), float(own_before), float(best_before)
    point = midpoint(after, before)
    if not assumed.noise_known or (assumed.sigma != assumed.sigma and best_mean != best_mean):
        low, high = min(after, before), max(after, before)
        return Compared(ESTIMATED, point, low, high, n, n_best, n_before, n_best, slope, nan, nan)
    of_arm = reward_deviation(assumed, best_mean - point, n)
    of_best_arm = abs(slope) * reward_deviation(assumed, best_mean, float(most))
    if returned:
        gap, spread = gap_between(after, before, of_arm * of_arm / n + of_best_arm * of_best_arm / n_best)
        return Compared(ESTIMATED, gap, gap, gap, n, n_best, n, n_best, slope, nan, spread)
    step = before - compared.below  # what the last pull, or batch, took off
    gap, middle, spread = gap_at_hesitation(
        before, after, step, n_before, n_best, n, float(best_after), of_arm, of_best_arm
    )
    if assumed.sigma != assumed.sigma and not shifts:  # an index that knows that means are from 0 to 1
        gap = min(max(gap, best_mean - 1.0), best_mean)
    return Compared(ESTIMATED, gap, middle, middle, n, n_best, n, n_best, slope, nan, spread)


@called
def bracket_eliminated_arm(
    rule: Any, assumed: Assumptions, pulls: int, before: int, gone: bool, active: int, most: int
) -> Compared:
    """Read off how an elimination rule treated an arm: it survived the test before its last epoch, and failed the next.

    Arguments as for `compare_eliminated_arm`. An arm that failed its first test is only bounded from below.
    """
    nan, compared = math.nan, compare_eliminated_arm(rule, pulls, before, gone, active, most)
    if compared.verdict != ESTIMATED:
        return compared
    n, failed = float(pulls), procedure_1(rule, float(pulls))
    if before == 0:
        return Compared(BOUNDED, nan, failed, nan, n, n, n, n, 1.0, nan, nan)
    survived, earlier = procedure_1(rule, float(before)), float(before)
    if not assumed.noise_known:
        return Compared(
            ESTIMATED, midpoint(failed, survived), failed, survived, n, n, earlier, earlier, 1.0, compared.cut, nan
        )
    best_mean = assumed.known_mean if assumed.anchor == BEST_ARM else nan
    of_arm = reward_deviation(assumed, best_mean - midpoint(failed, survived), n)
    of_best = reward_deviation(assumed, best_mean, nan)
    gap, middle, spread = gap_at_elimination(failed, survived, earlier, n, of_arm, of_best)
    return Compared(ESTIMATED, gap, middle, middle, n, n, n, n, 1.0, compared.cut, spread)


# Noise: from comparisons to intervals


@inlined
def reward_deviation(assumed: Assumptions, mean: float, pulls: float) -> float:
    """Return the standard deviation of an arm's rewards; 1/2 for a Bernoulli arm whose mean is not known.

    A mean that was estimated at 0 or below, or at 1 or above, says no more than that it is not known.
    """
    if assumed.sigma == assumed.sigma:
        return assumed.sigma
    if not 0.0 < mean < 1.0:
        return 0.5
    # Few successes, or few failures, do not show how rare they are: as if there had been two more of each.
    added = (pulls * mean + 2.0) / (pulls + 4.0)
    variance, smoothed = mean * (1.0 - mean), abs(added * (1.0 - added))
    return math.sqrt(max(variance, smoothed) if smoothed == smoothed else variance)


@inlined
def known_deviation(assumed: Assumptions) -> float:
    """Return the standard deviation of the rewards of the arm whose mean is known."""
    if assumed.sigma == assumed.sigma:
        return assumed.sigma
    return math.sqrt(assumed.known_mean * (1.0 - assumed.known_mean))


@inlined
def _variance(of_arm: float, of_best: float, slope: float, own: float, other: float) -> float:
    """Return the variance of a gap; NaN where nothing was compared."""
    return of_arm * of_arm / own + (slope * of_best) * (slope * of_best) / other


@inlined
def gap_variances(compared: Compared, of_arm: float, of_best: float) -> tuple[float, float]:
    """Return the variances behind the low and the high end of a gap's interval; NaN where nothing was compared."""
    if compared.spread == compared.spread:
        return compared.spread * compared.spread, compared.spread * compared.spread
    return (
        _variance(of_arm, of_best, compared.slope, compared.own, compared.other),
        _variance(of_arm, of_best, compared.slope, compared.own_above, compared.other_above),
    )


@called
def gap_interval(
    assumed: Assumptions, compared: Compared, of_arm: float, of_best: float, level_deviation: float
) -> tuple[float, float, float, float]:
    """Return the low and high ends of a gap's interval, and the standard deviation behind each.

    A bound is not let below 0, an estimate's end is. `of_arm` and `of_best` are the standard deviations of a reward,
    `level_deviation` that of the best arm's mean where it follows from another arm's (0 otherwise).
    """
    loose = ((1.0 - compared.slope) * level_deviation) * ((1.0 - compared.slope) * level_deviation)
    below, above = gap_variances(compared, of_arm, of_best)
    deviation, earlier = math.sqrt(below + loose), math.sqrt(above + loose)
    high = compared.above + assumed.z * earlier
    if compared.verdict == BOUNDED:
        # An arm given up at once gets its verdict *because* its first rewards were low. Where that would happen to an
        # arm as good as the best more often than once in a million times, the bound holds at a smaller error.
        reach = assumed.wider if compared.below < ONE_IN_A_MILLION * deviation else assumed.z
        reach = reach * deviation if deviation == deviation else 0.0
        return max(compared.below - reach, 0.0), high, deviation, earlier
    low = compared.below - assumed.z * deviation
    if compared.spread == compared.spread and compared.below < APART * assumed.z * deviation:
        low = min(low, 0.0)
    ahead = (compared.below - compared.cut) / deviation
    if ahead < CLEAR:
        low = min(low, max(compared.below - _reach_before_the_end(assumed, ahead) * deviation, 0.0))
    return low, high, deviation, earlier


@called
def _reach_before_the_end(assumed: Assumptions, ahead: float) -> float:
    """Return how far the low end reaches of an arm that the record was only just long enough to show eliminated.

    Had such an arm's sample mean been a little better, there would be no estimate: given that there is one, it is
    likely too large. With `x` the gap found and `c` the smallest that the record could show, the low end is the `g` at
    which a normal variable around `g` is `x` or more in 2.5% (of 95% intervals) of the cases in which it is `c` or
    more; but at least 0, since no gap is below.
    """
    least, most = assumed.z, 64.0
    for _ in range(40):
        middle = (least + most) / 2.0
        if log_normal_cdf(-middle) - log_normal_cdf(ahead - middle) > assumed.log_error:
            least = middle
        else:
            most = middle
    return least


# Loops over demonstrations and arms


@inlined
def _fill(compared: Compared, d: int, arm: int, verdict: Verdicts, numbers: Numbers) -> None:
    verdict[d, arm] = compared.verdict
    for at, number in enumerate(compared[1:]):
        numbers[at, d, arm] = number


@inlined
def _taken(verdict: Verdicts, numbers: Numbers, d: int, arm: int) -> Compared:
    return Compared(
        verdict[d, arm], numbers[0, d, arm], numbers[1, d, arm], numbers[2, d, arm], numbers[3, d, arm],
        numbers[4, d, arm], numbers[5, d, arm], numbers[6, d, arm], numbers[7, d, arm], numbers[8, d, arm],
        numbers[9, d, arm],
    )  # fmt: skip


@called
def _best_mean(rule: Any, assumed: Assumptions, top: int, own: int, of_best: int, round: int) -> float:
    """Return the best arm's mean as the one known mean implies it, from the anchor's counts; NaN where it does not."""
    if assumed.shifts or assumed.anchor < 0 or assumed.anchor == top:
        return assumed.known_mean
    if own <= assumed.initial or of_best == 0:
        return math.nan
    mean = solve_equal_indices(rule, assumed.known_mean, own, of_best, round + 1)
    return mean if math.isfinite(mean) else math.nan


@compiled
def compare_index(
    rules: Any, assumed: Assumptions, reading: int, pulls: Integers, last: Integers, own: Integers,
    of_best: Integers, rounds: Integers, best: Marks, verdict: Verdicts, numbers: Numbers, at_the_end: Numbers,
) -> None:  # fmt: skip
    """Fill in what demonstrations of an index rule say about every arm's gap.

    Counts are those of `Tallies`; `last` may have no rows. The `reading` is `ONE_SIDED` (Procedure 2), `TWO_SIDED`, or
    `COUNTS_ONLY`: all indices are taken as equal before the last round. Filled in are which arm was pulled most
    (`best`), the verdicts, `numbers` (`COLUMNS`) and, if it has rows, `at_the_end`: how much larger the gap is that
    the last round shows (0 where no mean gives one) than that of the switching round; NaN for arms without an estimate.
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
        mean_at_end = _best_mean(rule, assumed, top, pulls[d, anchor], most, end)
        if counts_only:
            mean, ended = mean_at_end, end + 1
        else:
            mean = _best_mean(rule, assumed, top, own[d, anchor], of_best[d, anchor], rounds[d, anchor])
            ended = rounds[d, top] + 1
        if assumed.shifts and assumed.anchor >= 0 and assumed.anchor != top:
            mean = math.nan  # what is known is another arm's, and gaps need none
        for arm in range(arms):
            count = pulls[d, arm]
            if arm == top:
                compared = _without_comparison(BEST, 0.0)
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
                    gap, _ = _gap_and_slope(rule, assumed.shifts, mean_at_end, count, most, end + 1)
                    then = compared.gap
                    if reading == TWO_SIDED:
                        then, _ = _gap_and_slope(
                            rule, assumed.shifts, mean, own[d, arm], of_best[d, arm], rounds[d, arm] + 1
                        )
                    further = (gap if gap == gap else 0.0) - then
                at_the_end[d, arm] = further


@compiled
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


@compiled
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
                compared = _without_comparison(BEST, 0.0)
            elif pulls[d, arm] == 0:
                compared = _without_comparison(UNSEEN, math.nan)
            else:
                compared = _without_comparison(ESTIMATED, naive_gap(pulls[d, arm], horizons[d], constant))
            _fill(compared, d, arm, verdict, numbers)


@compiled
def fill_intervals(
    assumed: Assumptions, best: Marks, verdict: Verdicts, numbers: Numbers, ends: Numbers, means: Numbers
) -> None:
    """Fill in intervals of gaps, and from one known mean those of means.

    With any arm but the best as anchor, both comparisons' noise counts: the interval is rather too long, as the two
    share the best arm's sample mean in part. An anchor without an estimated gap says nothing about the others. `ends`
    are low and high ends of the gaps and the standard deviation behind each, (4, demonstrations, arms); `means` are
    points, low and high ends, (3, demonstrations, arms), or (3, 0, arms) for none.
    """
    arms, anchor, known = best.shape[1], assumed.anchor, assumed.known_mean
    for d in range(best.shape[0]):
        top, active = -1, 0
        for arm in range(arms):
            active += 1 if best[d, arm] else 0
            top = arm if best[d, arm] and top < 0 else top
        alone, itself = active == 1, active == 1 and top == anchor
        # the best arm's mean, as far as the anchor shows it, and its deviation
        shift = numbers[0, d, anchor] if anchor >= 0 else 0.0
        level = known + (shift if shift == shift else 0.0)
        of_best = 0.5 if assumed.sigma != assumed.sigma else assumed.sigma
        if anchor == BEST_ARM or itself:
            of_best = known_deviation(assumed)
        elif anchor >= 0 and alone:
            of_best = reward_deviation(assumed, level, math.nan)
        level_deviation = 0.0
        if anchor >= 0:
            compared = _taken(verdict, numbers, d, anchor)
            variance, _ = gap_variances(compared, known_deviation(assumed), of_best)
            level_deviation = math.sqrt(variance if variance == variance else 0.0) / compared.slope
        for arm in range(arms):
            compared = _taken(verdict, numbers, d, arm)
            of_arm = reward_deviation(assumed, level - compared.gap, compared.own)
            if arm == anchor:
                of_arm = known_deviation(assumed)
            low, high, deviation, earlier = gap_interval(assumed, compared, of_arm, of_best, level_deviation)
            ends[0, d, arm], ends[1, d, arm], ends[2, d, arm], ends[3, d, arm] = low, high, deviation, earlier
            if means.shape[1] == 0:
                continue
            if anchor == BEST_ARM or itself:
                mean, mean_low, mean_high = known - compared.gap, known - high, known - low
            elif shift != shift:
                mean, mean_low, mean_high = math.nan, math.nan, math.nan
            elif arm == anchor:
                mean, mean_low, mean_high = known, math.nan, math.nan
            else:
                mean, mean_low, mean_high = _mean_interval(
                    assumed, compared, of_arm, of_best, known + shift, level_deviation
                )
            means[0, d, arm], means[1, d, arm], means[2, d, arm] = mean, mean_low, mean_high


@called
def _mean_interval(
    assumed: Assumptions, compared: Compared, of_arm: float, of_best: float, level: float, level_deviation: float
) -> tuple[float, float, float]:
    """Return an arm's mean with its interval, from the best arm's mean and that mean's standard deviation."""
    loose = (compared.slope * level_deviation) * (compared.slope * level_deviation)
    variance, earlier = gap_variances(compared, of_arm, of_best)
    reach = assumed.z * math.sqrt((variance if variance == variance else 0.0) + loose)
    further = assumed.z * math.sqrt((earlier if earlier == earlier else 0.0) + loose)
    mean = level - compared.gap
    if compared.verdict == BEST:
        return mean, mean - reach, mean + reach
    return mean, level - compared.above - further, level - compared.below + reach
