"""Both sides of the last hesitation: what a record says about a gap that lies between two of the rule's decisions.

Procedures 1 and 2 read one moment, after the arm's last pull. The record shows two. Just *before* that pull the arm's
turn had come: its index had waited for the best arm's to come down to it, so the two were equal, and the gap between
the sample means was then `before`. *After* it the arm never came first again: the gap was at least `after`, up to the
best arm's last pull. `gap_at_hesitation` is what the two say together, and how uncertain that leaves the gap;
`bracket_index_arm` and `bracket_eliminated_arm` find the two sides in a record's counts.

Plain numbers in, plain numbers out, so that the CPU and a GPU run the same functions.
"""

import math
from typing import Any, NamedTuple

from unbandit.kernels.compile import called, inlined
from unbandit.kernels.intervals import reward_deviation
from unbandit.kernels.procedures import (
    BEST_ARM,
    BOUNDED,
    ESTIMATED,
    UNSEEN,
    Assumptions,
    Compared,
    compare_eliminated_arm,
    compare_index_arm,
    gap_and_slope,
    procedure_1,
    without_comparison,
)
from unbandit.kernels.special import ROOT_HALF, log_normal_cdf

ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
MANY_PULLS = 6.0  # of an arm, from about which on noise, not the distance between the two sides, makes the error
NODES = 16  # differences between two decisions that are looked at, where a rule decides in batches
MOST_DEVIATIONS = 4.0  # of the noise: where two decisions are further apart, a gap is only bounded by both
MOST_TILT = 0.5  # deviations by which a gap is lowered at most, because arms are given up when they look worst


@inlined
def midpoint(after: float, before: float) -> float:
    """Return the point that needs no knowledge of the noise: halfway between the two sides."""
    return (after + before) / 2.0


@inlined
def stopping_tilt(deviation: float, step: float, added: float, pulls: float) -> float:
    """Return by how many deviations an arm's gap looks too large because the rule chose when to stop pulling it.

    An arm is given up when it looks worst. In expectation `n (gap found - gap) = 0` (Wald), so the gap found is too
    large by `-cov(n, gap found) / n`: by `deviation^2 d(log n)/d(gap)`, where `added` more pulls, of `pulls`, would
    have lowered it by `step`. The expansion is for many pulls, so it is damped where there are few.
    """
    tilt = deviation * added / (pulls * step) if step > 0.0 else MOST_TILT
    return min(tilt, MOST_TILT) * (1.0 - 1.0 / pulls)


@inlined
def magnitude_tilt(size: float) -> float:
    """Return by how many deviations a gap of `size` deviations is lowered, its order of magnitude being unknown.

    No unit of a gap is more likely than another: its logarithm is uniform, so a gap has a density of `1 / gap`, down to
    where noise hides it. For `1 / sqrt(gap^2 + deviation^2)` the logarithm falls by this in one deviation.
    """
    size = max(size, 0.0)
    return size / (1.0 + size * size)


@called
def hesitation_moments(
    before: float, after: float, deviation: float, moved: float, tilt: float
) -> tuple[float, float]:  # fmt: skip
    """Return the mean and the standard deviation of a gap, given both sides of the last hesitation.

    The sample means differed by `before`, a measurement of the gap with variance `s^2`. After the arm's last pull they
    differ by `d`, of variance `k s^2`, and `d` is at least `after`. Sample means are martingales, so given the first
    difference `d` is normal around `before + (1 - k) (gap - before)` with variance `k (1 - k) s^2`. Under a flat prior,
    tilted as in `stopping_tilt`, the gap therefore has the density

        phi((gap - before) / s + tilt) Phi((E[d] - after) / sqrt(var d)),

    an extended skew-normal distribution. `moved` is `sqrt(1 - k)`.
    """
    at = (before - after) / (deviation * moved) - moved * tilt
    hazard = math.exp(-0.5 * at * at - log_normal_cdf(at)) / ROOT_TWO_PI
    gap = before + deviation * (moved * hazard - tilt)
    return gap, deviation * math.sqrt(max(1.0 - moved * moved * hazard * (at + hazard), 0.0))


@called
def gap_at_hesitation(
    before: float, after: float, step: float, own_before: float, best_before: float, own: float, best: float,
    of_arm: float, of_best: float,
) -> tuple[float, float, float]:  # fmt: skip
    """Return a gap, the middle of its interval and the standard deviation around that.

    Before the arm's last pull (or batch) the two arms had `own_before` and `best_before` pulls, after it `own` and
    `best`. A reward of the arm has the deviation `of_arm`; one of the best arm moves the gap as one with `of_best`
    would. The interval has the tilt of Jeffreys' prior, half of what makes the mean unbiased: then it misses about as
    often on either side. The point is to have a small squared error, and is halfway between two, but no further off
    than one deviation. One is the unbiased mean, after many pulls lowered by `magnitude_tilt`. (Not after few: to be
    pulled again after its opening an arm had to look good, which makes its gap look small already.) The other is the
    midpoint of the two sides after few pulls, Procedure 2's own `before - step` after many.
    """
    variance = of_arm * of_arm / own_before + of_best * of_best / best_before
    later = of_arm * of_arm / own + of_best * of_best / best
    if not variance > later:
        return midpoint(after, before), midpoint(after, before), math.sqrt(variance)
    deviation, moved = math.sqrt(variance), math.sqrt(1.0 - later / variance)
    tilt = stopping_tilt(deviation, step, own - own_before, own)
    middle, spread = hesitation_moments(before, after, deviation, moved, tilt / 2.0)
    many = own * own * own / (own * own * own + MANY_PULLS * MANY_PULLS * MANY_PULLS)
    lowered = tilt + many * magnitude_tilt(middle / deviation)
    mean, _ = hesitation_moments(before, after, deviation, moved, lowered)
    lower = (1.0 - many) * midpoint(after, before) + many * (before - step)
    gap = (mean + lower) / 2.0
    return min(max(gap, middle - spread), middle + spread), middle, spread


@called
def gap_between_decisions(
    low: float, before: float, after: float, step: float, own_before: float, best_before: float, own: float,
    best: float, of_arm: float, of_best: float,
) -> tuple[float, float, float]:  # fmt: skip
    """Return what `gap_at_hesitation` does, where the sample means differed by anything from `low` to `before`.

    A rule that decides in batches does not stop where the two indices are equal. At its decision before the last one
    for the arm it still preferred the best arm, so the difference was at least `low`; given each difference between
    the two the gap has the density of `hesitation_moments`, and they are mixed by how probable what came after is.
    """
    variance = of_arm * of_arm / own_before + of_best * of_best / best_before
    later = of_arm * of_arm / own + of_best * of_best / best
    deviation, moved = math.sqrt(variance), math.sqrt(max(1.0 - later / variance, 0.01))
    tilt = 0.5 * stopping_tilt(deviation, step, own - own_before, own)
    total, first, second = 0.0, 0.0, 0.0
    for node in range(NODES):
        place = low + (before - low) * (node + 0.5) / NODES
        mean, spread = hesitation_moments(place, after, deviation, moved, tilt)
        weight = math.exp(log_normal_cdf((place - after) / (deviation * moved) - moved * tilt))
        total += weight
        first += weight * mean
        second += weight * (spread * spread + mean * mean)
    if not total > 0.0:
        return midpoint(after, before), midpoint(after, before), deviation
    middle = first / total
    return middle, middle, math.sqrt(max(second / total - middle * middle, 0.0))


@inlined
def gap_between(after: float, before: float, variance: float) -> tuple[float, float]:
    """Return a gap anywhere between the two sides, and its standard deviation, `variance` being that of the noise."""
    return midpoint(after, before), math.sqrt(variance + (before - after) * (before - after) / 12.0)


@called
def gap_at_elimination(
    failed: float, survived: float, own_before: float, own: float, variance: float, added: float
) -> tuple[float, float, float]:  # fmt: skip
    """Return a gap, the middle of its interval and the standard deviation around that, for an arm that was eliminated.

    At the test after `own_before` pulls of the arm the sample means differed by less than `survived`, after `own` by
    `failed` or more. Under a flat prior the second difference `d` is normal around the first with a variance of
    `w^2` (`added`), the first being anywhere below `survived`: so `d` has the density `Phi((survived - d) / w)` above
    `failed`, with closed moments, and the gap is normal around `d` with `variance`. Tilts and interval as in
    `gap_at_hesitation`; the point is halfway between the unbiased mean, lowered by `magnitude_tilt`, and Procedure 1's,
    `failed`.
    """
    deviation, width = math.sqrt(variance), math.sqrt(added)
    if not width > 0.0:
        return midpoint(failed, survived), midpoint(failed, survived), deviation
    at = max(survived - failed, 0.0) / width
    below, density = 0.5 * math.erfc(-at * ROOT_HALF), math.exp(-0.5 * at * at) / ROOT_TWO_PI
    total = at * below + density
    first = (0.5 * (at * at - 1.0) * below + 0.5 * at * density) / total
    second = (at * at * at * below + (at * at + 2.0) * density) / (3.0 * total)
    difference, spread = survived - width * first, math.sqrt(variance + added * max(second - first * first, 0.0))
    tilt = deviation * stopping_tilt(deviation, survived - failed, own - own_before, own)
    middle = difference - 0.5 * tilt
    lowered = difference - tilt - deviation * magnitude_tilt(middle / deviation)
    return (lowered + failed) / 2.0, middle, spread


# Where the two sides are in a record


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
    batch = assumed.batch
    compared = compare_index_arm(rule, assumed, best_mean, pulls, own, of_best, round, most, ended, over)
    if compared.verdict != ESTIMATED:
        return compared
    best_after, last = max(most - batch, of_best), max(ended - batch, 1)
    if pulls > own:
        looks = Looks(own, most, ended, own, best_after, last)
        return _between_looks(rule, assumed, best_mean, most, looks, True, compared)
    looks = Looks(max(own - batch, assumed.initial), of_best, max(round - batch + 1, 1), own, best_after, last)
    return _between_looks(rule, assumed, best_mean, most, looks, False, compared)


class Looks(NamedTuple):
    """What an index rule knew when it last turned to an arm, and when it last preferred the most-pulled one to it.

    Counts are of rewards that were known; all are 0 where there was no such decision.
    """

    own_before: int
    best_before: int
    decided: int  # the round of the decision for the arm
    own: int
    best_after: int
    ended: int  # the round of the last decision for the most-pulled arm
    own_least: int = 0  # where delays are random, `own_before` less one deviation of it, and one more; otherwise 0
    own_most: int = 0
    best_least: int = 0  # likewise of `best_before`
    best_most: int = 0


@called
def bracket_delayed_arm(
    rule: Any, assumed: Assumptions, best_mean: float, pulls: int, most: int, looks: Looks
) -> Compared:  # fmt: skip
    """Compare an arm of an index rule whose rewards are late with the most-pulled one: as `bracket_index_arm`.

    The indices of a decision are those of the rewards known then. An arm that was pulled in the opening alone is
    bounded from below by the last decision against it.
    """
    nan, own, best_after = math.nan, float(looks.own), float(looks.best_after)
    if pulls == 0:
        return without_comparison(UNSEEN, nan)
    if looks.own == 0 or looks.best_after == 0:
        return Compared(BOUNDED, nan, 0.0, nan, nan, nan, nan, nan, 1.0, nan, nan)
    after, slope = gap_and_slope(rule, assumed.shifts, best_mean, looks.own, looks.best_after, looks.ended)
    bounded = Compared(
        BOUNDED, nan, after if after == after else 0.0, nan, own, best_after, nan, nan, slope, nan, nan
    )  # fmt: skip
    if looks.own_before == 0 or looks.best_before == 0:
        return bounded
    below, slope = gap_and_slope(rule, assumed.shifts, best_mean, looks.own, looks.best_before, looks.decided)
    if below != below:
        return bounded
    n_before, n_best = float(looks.own_before), float(looks.best_before)
    fallback = Compared(ESTIMATED, below, below, below, own, n_best, n_before, n_best, slope, nan, nan)
    compared = _between_looks(rule, assumed, best_mean, most, looks, looks.decided > looks.ended, fallback)
    return compared if looks.own_least == 0 else _with_hidden_counts(rule, assumed, best_mean, looks, compared)


@called
def _with_hidden_counts(
    rule: Any, assumed: Assumptions, best_mean: float, looks: Looks, compared: Compared
) -> Compared:  # fmt: skip
    """Allow for not knowing which rewards were known: counts are one deviation less or more, each as likely.

    That moves the gap by the mean of both, since it is not linear in the counts, and adds half their distance.
    """
    shifts, decided = assumed.shifts, looks.decided
    at, _ = gap_and_slope(rule, shifts, best_mean, looks.own_before, looks.best_before, decided)
    few, _ = gap_and_slope(rule, shifts, best_mean, looks.own_least, looks.best_before, decided)
    many, _ = gap_and_slope(rule, shifts, best_mean, looks.own_most, looks.best_before, decided)
    of_few, _ = gap_and_slope(rule, shifts, best_mean, looks.own_before, looks.best_least, decided)
    of_many, _ = gap_and_slope(rule, shifts, best_mean, looks.own_before, looks.best_most, decided)
    moved = (few + many + of_few + of_many) / 2.0 - 2.0 * at
    added = math.sqrt((few - many) * (few - many) + (of_few - of_many) * (of_few - of_many)) / 2.0
    if not (moved == moved and added == added):
        return compared
    gap, below, above, spread = compared.gap + moved, compared.below + moved, compared.above + moved, compared.spread
    if spread == spread:
        spread = math.sqrt(spread * spread + added * added)
    else:
        below, above = below - added, above + added
    return Compared(
        compared.verdict, gap, below, above, compared.own, compared.other, compared.own_above, compared.other_above,
        compared.slope, compared.cut, spread,
    )  # fmt: skip


@called
def _between_looks(
    rule: Any, assumed: Assumptions, best_mean: float, most: int, looks: Looks, returned: bool, compared: Compared
) -> Compared:  # fmt: skip
    """Return what both sides of the last hesitation say; `compared`, which has Procedure 2's gap, where one is missing.

    `returned` says whether the arm was pulled after the most-pulled one's last pull.
    """
    nan, shifts, own, best_after = math.nan, assumed.shifts, looks.own, looks.best_after
    after, _ = gap_and_slope(rule, shifts, best_mean, own, best_after, looks.ended)
    own_before, best_before = looks.own_before, looks.best_before
    before, slope = gap_and_slope(rule, shifts, best_mean, own_before, best_before, looks.decided)
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
    if assumed.batch > 1:
        earlier = max(best_before - assumed.batch, assumed.initial)
        low, _ = gap_and_slope(rule, shifts, best_mean, own_before, earlier, max(looks.decided - assumed.batch, 1))
        low = min(low, before) if low == low else min(after, before)
        noise = of_arm * of_arm / n_before + of_best_arm * of_best_arm / n_best
        if (before - low) * (before - low) > MOST_DEVIATIONS * MOST_DEVIATIONS * noise:
            return Compared(
                BOUNDED, nan, after, max(after, before), n, float(best_after), n_before, n_best, slope, nan, nan
            )  # fmt: skip
        gap, middle, spread = gap_between_decisions(
            low, before, after, step, n_before, n_best, n, float(best_after), of_arm, of_best_arm
        )
        return Compared(ESTIMATED, gap, middle, middle, n, n_best, n, n_best, slope, nan, spread)
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
    noise = of_arm * of_arm + of_best * of_best
    variance, added = noise / n, noise / earlier - noise / n
    gap, middle, spread = gap_at_elimination(failed, survived, earlier, n, variance, added)
    return Compared(ESTIMATED, gap, middle, middle, n, n, n, n, 1.0, compared.cut, spread)
