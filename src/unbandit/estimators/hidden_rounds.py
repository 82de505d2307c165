"""Logs that miss rounds: what the rows that were seen say about every gap.

Two kinds. Where every round was *kept* with one probability, the pulls of an arm are known up to a negative binomial
distribution: counts are completed many times, each is read as a whole log is, and the readings are mixed. Where rounds
are numbered and nothing says how some got lost, counts lie between the pulls seen and those plus all rounds missing,
and a gap between what both ends say. A demonstration of which no round is missing is read as a whole log is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule
from unbandit.estimators.procedures import (
    Comparison,
    Request,
    check_comparable,
    compare,
    most_pulled,
    needed,
    quantile,
)
from unbandit.instance import Noise
from unbandit.kernels.procedures import COLUMNS
from unbandit.log.partial import ThinnedLog
from unbandit.log.tallies import Tallies
from unbandit.result import BEST, BOUNDED, ESTIMATED, UNSEEN

COMPLETIONS = 256  # ways in which the counts of a thinned log are completed
BISECTIONS = 50
STILL_ACTIVE = 1e-3  # probability of not being seen for so long, at which an arm no longer counts as active

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Marks = NDArray[np.bool_]


class HiddenRequest(Request):
    """A request about a log that misses rounds."""

    def compare(self, start: int, stop: int) -> Comparison:
        """Read the demonstrations from `start` up to `stop` by a closed form, allowing for the rounds not seen."""
        log, found = self.log, Comparison.empty((stop - start, len(self.log.arms)))
        assert isinstance(log, ThinnedLog)
        check_comparable(self.rule, self.method)
        read = _between if log.kept is None else _mixed
        for which in range(start, stop):
            found.put(np.array([which - start]), (_alone if _is_whole(log, which) else read)(self, log, which))
        return found

    def read(self, tallies: Tallies, which: int, noise: Noise | None) -> Comparison:
        """Read counts of one demonstration as those of a whole log."""
        return compare(tallies, self.rule, self.method, int(self.horizons[which]), self.constant, self.anchor, noise)


# Demonstrations of which no round is missing


def _is_whole(log: ThinnedLog, which: int) -> bool:
    """Return whether numbers show every round of a demonstration from its first one on."""
    return log.kept is None and int(log.lengths[which]) == int(log.rows.lengths[which])


def _alone(request: HiddenRequest, log: ThinnedLog, which: int) -> Comparison:
    """Read a whole demonstration as if the others, which miss rounds, were not there."""
    tallies = log.rows.tallied(needed(request.rule, request.method)).part(which, which + 1)
    return request.read(tallies, which, request.known_noise)


# Rounds that were kept with one probability


def _completed(log: ThinnedLog, seen: Tallies, which: int, rule: Demonstrator) -> Tallies:
    """Return counts of whole runs of which one demonstration may be what was kept, each as probable as the others.

    Of an arm seen `s` times, `n - s` pulls were not. A gap is as likely to be one number as another, and `n` falls with
    its square, so `n` has a density of `n^(-3/2)`: given `s`, `n - s` is negative binomial with `s - 1/2` successes. A
    gap that is only bounded has no such density; with `s + 1` successes the largest `n` that is probable enough is as
    large as in a test of `n` by `s`.
    """
    assert log.kept is not None
    kept, total = log.kept, int(log.lengths[which])
    generator, shape = np.random.default_rng([which, 15]), (COMPLETIONS, seen.pulls.shape[1])
    own, of_best, rounds = (each[0] for each in seen.at_switching)
    pulls, last = seen.pulls[0], log.rounds_of(which, seen.last[0])
    top = int(pulls.argmax())

    def hidden(counts: Counts, opening: int = 0) -> Counts:
        successes = np.where(counts > opening, counts - 0.5, counts + 1)
        return np.asarray(generator.negative_binomial(successes, kept, shape))

    until = own + hidden(own, getattr(rule, "initial", 1))  # up to the switching round that was seen
    best_until = of_best + hidden(of_best)
    after = np.minimum(generator.geometric(kept, shape) - 1, until - own)
    every = until + np.where(pulls > own, pulls - own + hidden(pulls - own), 0)
    every[:, top] = pulls[top] + hidden(np.full(shape[1], pulls[top]))[:, 0]
    if log.numbers is not None:
        others = every.sum(axis=1) - every[:, top]
        every[:, top] = np.maximum(total - others, pulls[top])
    every = np.where(pulls > 0, np.minimum(every, every[:, [top]]), 0)
    until = np.minimum(until, every)
    # After the last pull that was seen there may be more: at the pace of those before, of best arm and rounds.
    begun = np.maximum(until - after, 1)
    at_switch = log.rounds_of(which, rounds)
    of_best_then = np.minimum(best_until + after * best_until // begun, every[:, [top]] - 1)
    later = np.minimum(at_switch + after * at_switch // begun, total)
    of_best_then = np.maximum(of_best_then, 1)
    until[:, top] = of_best_then[:, top] = 0
    later = np.where(own > 0, later, 0)
    later[:, top] = last[top]
    found = Tallies(every, last=np.broadcast_to(last, shape), own=until, of_best=of_best_then, rounds=later)
    if isinstance(rule, EliminationRule):
        unseen = (1 - kept) / (2 - kept)  # of an active arm, from one pull of another that is seen to its next
        gone = (pulls > 0) & (unseen ** _seen_since(seen, top) < STILL_ACTIVE)
        gone[top] = False
        found = replace(found, gone=np.broadcast_to(gone, shape))
    return found


def _mixed(request: HiddenRequest, log: ThinnedLog, which: int) -> Comparison:
    """Mix what completions of one demonstration say: the mean of their points, and quantiles of their mixture."""
    rule, z, seen = request.rule, request.z, log.tallied("switching").part(which, which + 1)
    read = request.read(_completed(log, seen, which, rule), which, request.known_noise)
    pulls = seen.pulls
    best = read.best.mean(axis=0, keepdims=True) > 0.5 if isinstance(rule, EliminationRule) else most_pulled(pulls)
    verdict = np.where((read.verdict == ESTIMATED).mean(axis=0, keepdims=True) > 0.5, ESTIMATED, BOUNDED)
    if isinstance(rule, IndexRule):
        verdict = np.where(pulls > rule.initial, verdict, BOUNDED)
    verdict = np.where(pulls > 0, verdict, UNSEEN)
    if best.sum() == 1:
        verdict = np.where(best, BEST, verdict)
    ends, numbers = request.intervals(read), dict.fromkeys(COLUMNS, np.full(pulls.shape, np.nan))
    with np.errstate(invalid="ignore"):
        low = _quantile(read.below, ends.deviation, -z)
        high = _quantile(read.above, ends.deviation_above, z)
        estimated, bounded = verdict == ESTIMATED, verdict == BOUNDED
        middle, below, above = (low + high) / 2, _mean(read.below), _mean(read.above)
        reach = np.fmax(below - low, high - above)
        numbers["gap"] = np.where(estimated, _mean(read.gap), np.where(verdict == BEST, 0.0, np.nan))
        numbers["below"] = np.where(estimated, middle, np.where(bounded, below, np.nan))
        numbers["above"] = np.where(estimated, middle, np.where(bounded, above, np.nan))
        numbers["spread"] = np.where(estimated, (high - low) / 2, reach) / z
    # Where some completions do not limit a gap, nothing does: an arm seen in the opening at most, or gone at once.
    unlimited = bounded & (np.isnan(read.above).any(axis=0, keepdims=True) | isinstance(rule, IndexRule))
    numbers["above"] = np.where(unlimited, np.nan, numbers["above"])
    numbers["spread"] = np.where(unlimited, (below - low) / z, numbers["spread"])
    for name in ("own", "other", "own_above", "other_above", "slope", "cut"):
        numbers[name] = _mean(read._column(name))
    numbers["slope"] = np.where(np.isnan(numbers["slope"]), 1.0, numbers["slope"])
    table = np.stack([np.broadcast_to(numbers[name], pulls.shape) for name in COLUMNS])
    return Comparison(best, verdict.astype(np.int8), table, np.empty((0, 0)))


def _mean(values: Numbers) -> Numbers:
    """Return the mean over completions, of those that have a number; NaN where none has."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / known.sum(axis=0, keepdims=True))


def _quantile(centres: Numbers, deviations: Numbers, z: float) -> Numbers:
    """Return the quantile of a mixture of normal distributions, one per row, that a normal one has at `z`."""
    known = ~np.isnan(centres + deviations)
    centres, deviations = np.where(known, centres, 0.0), np.where(known & (deviations > 0), deviations, 1e-12)
    reach = (abs(z) + 5) * deviations
    low = np.where(known, centres - reach, np.inf).min(axis=0)
    high = np.where(known, centres + reach, -np.inf).max(axis=0)
    number = known.sum(axis=0)
    low, high = np.where(number > 0, low, np.nan), np.where(number > 0, high, np.nan)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        share = (ndtr((middle - centres) / deviations) * known).sum(axis=0) / np.maximum(number, 1)
        low, high = np.where(share < ndtr(z), middle, low), np.where(share < ndtr(z), high, middle)
    return np.asarray((low + high)[None] / 2)


# Rounds whose numbers are missing


def _between(request: HiddenRequest, log: ThinnedLog, which: int) -> Comparison:
    """Bracket every gap by what the fewest and the most pulls say that an arm and the best one can have had.

    When the best arm was last seen, it was preferred to an arm with at most the pulls seen and all rounds missing so
    far; when the arm was last seen, it was preferred to a best arm with at most those. A gap is estimated where the
    bracket that missing rounds leave is shorter than noise alone makes its interval; otherwise it is bounded.
    """
    rule, seen = request.rule, log.tallied("switching").part(which, which + 1)
    pulls, last = seen.pulls[0], seen.last[0]
    top, total, end = int(pulls.argmax()), int(log.lengths[which]), int(log.rows.lengths[which])
    rounds, missing = log.rounds_of(which, last), log.rounds_of(which, last) - last
    in_opening = rounds <= len(log.arms) * getattr(rule, "initial", 1)
    if isinstance(rule, EliminationRule):
        least, most, gone = _elimination_ends(seen, total - end, missing, top, in_opening)
        best = (pulls > 0) & ~gone
    else:
        least, most = _index_ends(rule, log, which, seen, missing, top, in_opening)
        best = (pulls > 0) & (pulls + total - end >= pulls[top])
    low, high = (request.read(each, which, None) for each in (least, most))
    numbers, names = low.numbers.copy(), COLUMNS.index
    for name in ("above", "own_above", "other_above"):
        numbers[names(name)] = high.numbers[names(name)]
    found = Comparison(best[None], low.verdict.copy(), numbers, np.empty((0, 0)))
    deviation = request.intervals(found).deviation
    with np.errstate(invalid="ignore"):
        numbers[names("below")] = np.fmin(found.below, found.above)
        narrow = found.above - found.below <= 2 * quantile(0.95) * deviation
        is_known = (high.verdict == ESTIMATED) & narrow & ~best
    verdict = np.where(is_known, ESTIMATED, BOUNDED)
    verdict = np.where(pulls > 0, verdict, UNSEEN)
    verdict = np.where(best & (best.sum() == 1), BEST, verdict)
    numbers[names("gap")] = np.where(is_known, (found.below + found.above) / 2, np.where(verdict == BEST, 0.0, np.nan))
    may_be_best = best & (verdict == BOUNDED)
    numbers[names("below")] = np.where(may_be_best, 0.0, found.below)
    if isinstance(rule, IndexRule):  # the arm seen most often has not been compared with one that may be better
        numbers[names("above"), :, top] = np.nan
    found.verdict[:] = verdict
    return found


def _index_ends(
    rule: Demonstrator, log: ThinnedLog, which: int, seen: Tallies, missing: Counts, top: int, in_opening: Marks
) -> tuple[Tallies, Tallies]:
    """Return the counts of an index rule that make gaps smallest, and those that make them largest."""
    own, of_best, rows = (each[0] for each in seen.at_switching)
    pulls, last, initial = seen.pulls[0], seen.last[0], getattr(rule, "initial", 1)
    rounds, most = log.rounds_of(which, rows), int(pulls[top])
    ended = int(log.rounds_of(which, last)[top])
    many = np.minimum(own + missing[top], max(most - 1, 1))
    many[top] = 0
    every = np.where(np.arange(pulls.size) == top, most, np.where(pulls > 0, np.maximum(many, 1), 0))
    then = np.maximum(np.where(own > 0, of_best, most), 1)
    least = _counted(every, top, many, then, rounds, ended)
    few = np.where(in_opening, pulls, np.maximum(pulls, initial + 1))
    after = last > last[top]  # seen after the best arm was
    best_then = np.where(after, most, of_best) + missing
    above = int(max(best_then.max(initial=0), most) + missing.max(initial=0) + 1)
    few[top], rounds = 0, log.rounds_of(which, last)
    every = np.where(np.arange(pulls.size) == top, above, few)
    return least, _counted(every, top, few, np.maximum(best_then, 1), rounds, int(rounds.max()) + 1)


def _counted(every: Counts, top: int, own: Counts, of_best: Counts, rounds: Counts, ended: int) -> Tallies:
    """Return counts of one demonstration in which the most-pulled arm comes last."""
    rounds, of_best = rounds.copy(), of_best.copy()
    rounds[top], of_best[top] = ended, 0
    last = np.where(every > 0, rounds, 0)
    return Tallies(every[None], last=last[None], own=own[None], of_best=of_best[None], rounds=rounds[None])


def _seen_since(seen: Tallies, top: int) -> Counts:
    """Return how often the most-pulled arm was seen after the last row of every arm."""
    _, of_best, rows = (each[0] for each in seen.at_switching)
    return np.where(seen.last[0] > rows, 0, seen.pulls[0, top] - of_best)


def _elimination_ends(
    seen: Tallies, lost: int, missing: Counts, top: int, in_opening: Marks
) -> tuple[Tallies, Tallies, Marks]:
    """Return the counts of an elimination rule that make gaps smallest, and those that make them largest.

    An arm is gone where another was seen more often since than rounds are missing: an active arm would have been pulled
    between any two of those.
    """
    pulls = seen.pulls[0]
    gone = (pulls > 0) & (_seen_since(seen, top) - 1 > lost - missing)
    gone[top] = False
    many = np.where(gone, pulls + lost, pulls)
    few = np.where(in_opening, pulls, np.maximum(pulls, 2))
    ends = (Tallies(each[None], gone=gone[None]) for each in (many, few))
    return *ends, gone
