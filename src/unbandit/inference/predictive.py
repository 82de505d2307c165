"""A record beside simulations of a rule, in a few statistics.

Arms are compared by rank, the most-pulled first: which arm it is, the simulations know from the record. All statistics
together are judged by the one furthest from the simulated ones, in their standard deviations. How far out the furthest
one of a record lies is itself simulated, so looking at many statistics raises no more false alarms.

The same simulations show whether an arm's value drifted. Where a rule's index is the sample mean plus an offset, a log
shows differences between sample means again and again. When an arm's turn comes, its index has just met the others':
the difference is that of the offsets. When an arm is pulled, its index is no smaller than the other's: the difference
has a limit. A mean of `n` rewards and that of all `N` differ by noise of variance `sigma^2 (1/n - 1/N)`, so what is
known at some moment and what is known at the end are apart by

    z = (d_moment - d_end) / (sigma sqrt(1/n_i - 1/N_i + 1/n_b - 1/N_b)),

as long as nothing drifts. The furthest of all arms and moments is compared with that of simulations of the rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import AdditiveIndexRule, Demonstrator, EliminationRule, IndexRule
from unbandit.fit import Statistic, Wording
from unbandit.formatting import ordinal, quoted
from unbandit.kernels.formula import meaning

MOST_RANKS = 5  # with more arms than this, not all ranks are compared
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the record, at which pulls are compared
ALARM = 0.005  # at this probability or a smaller one an arm has drifted
POSSIBLE = 0.05  # the same where the rule does not fit, and drift is a possible cause
DRIFT = "drift"  # the statistic of a check
EIGHTHS = np.arange(1, 8) / 8  # of a log: the moments that are compared with its end
MOST_ARMS = 100  # in which drift is looked for
DECIDES = 3.0  # standard deviations by which a third arm contradicts that one of two moved, and not the other
FEWEST_IN_TURN = 4  # rounds by which a log pulls arms in turn for longer than all simulations, at least

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Marks = NDArray[np.bool_]
Values = Mapping[str, NDArray[np.float64]]  # each statistic's values, one per run


def statistics_of(actions: NDArray[np.integer], arms: int) -> Values:
    """Return the statistics of simulated or observed actions (runs x rounds)."""
    runs, length = actions.shape
    changes = actions[:, 1:] != actions[:, :-1]
    switches = changes.sum(axis=1).astype(np.float64)
    starts = np.ones(actions.shape, np.bool_)
    starts[:, 1:] = changes
    row, at = np.nonzero(starts)
    lengths = np.diff(at, append=length)
    ends = np.flatnonzero(np.append(row[1:] != row[:-1], True))
    lengths[ends] = length - at[ends]
    values = {
        "switches": switches,
        "switches, later half": changes[:, length // 2 :].sum(axis=1).astype(np.float64),
        "longest run": np.maximum.reduceat(lengths, np.append(0, ends[:-1] + 1)).astype(np.float64),
        "runs of one pull": np.bincount(row, weights=lengths == 1, minlength=runs),
        "mean log run": np.bincount(row, weights=np.log(lengths), minlength=runs) / (switches + 1),
    }
    first = np.arange(runs)[:, None] * arms
    pulls = np.zeros((len(SHARES), runs, arms))
    start = 0
    for which, stop in enumerate(_parts(length)):
        counted = np.bincount((actions[:, start:stop] + first).reshape(-1), minlength=runs * arms).reshape(runs, arms)
        pulls[which] = counted if which == 0 else pulls[which - 1] + counted
        start = max(start, stop)
    order = np.argsort(-pulls[-1], axis=1, kind="stable")
    visits = np.bincount(row * arms + actions[row, at], minlength=runs * arms).reshape(runs, arms)
    for rank in _ranks(arms):
        own = order[:, rank, None]
        for which, rounds in enumerate(_parts(length)):
            values[_pulls_name(rank, rounds, length)] = np.take_along_axis(pulls[which], own, axis=1)[:, 0]
        values[f"runs, rank {rank + 1}"] = np.take_along_axis(visits, own, axis=1)[:, 0].astype(np.float64)
    return values


def _ranks(arms: int) -> Sequence[int]:
    return range(arms) if arms <= MOST_RANKS else (0, 1, 2, arms // 2, arms - 1)


def _parts(length: int) -> list[int]:
    """Return after how many rounds pulls are compared."""
    return [max(1, round(share * length)) for share in SHARES]


def _pulls_name(rank: int, rounds: int, length: int) -> str:
    return f"pulls, rank {rank + 1}" + ("" if rounds == length else f", first {rounds:,} rounds")


def wordings(arms: int, length: int) -> Mapping[str, Wording]:
    """Return how each statistic is said."""
    last, once = "with this rule it would last", "this rule would do so"
    found = {
        "switches": Wording("switches between arms", "The log switches arms", "this rule would switch"),
        "switches, later half": Wording(
            "switches in the later half", "In its later half the log switches arms", "this rule would switch"
        ),
        "longest run": Wording(
            "longest stay with one arm, in rounds", "The longest stay with one arm lasts", last, "round"
        ),
        "runs of one pull": Wording("stays of a single round", "The log leaves an arm after a single round", once),
        "mean log run": Wording(
            "typical stay with one arm, in rounds", "A typical stay with one arm lasts", last, "round", logarithm=True
        ),
    }
    for rank in _ranks(arms):
        arm = "least-pulled arm" if rank == arms - 1 else f"{ordinal(rank + 1)} most-pulled arm"
        arm = "most-pulled arm" if rank == 0 else arm
        for rounds in _parts(length):
            where = "" if rounds == length else f" in the first {rounds:,} rounds"
            found[_pulls_name(rank, rounds, length)] = Wording(
                f"pulls of the {arm}{where}", f"The {arm} has", "this rule would give it", "pull", where
            )
        found[f"runs, rank {rank + 1}"] = Wording(
            f"turns to the {arm}", f"The log turns to the {arm}", "this rule would turn to it"
        )
    return found


def compare(
    observed: Values, simulated: Values, words: Mapping[str, Wording] | None = None
) -> tuple[tuple[Statistic, ...], float | None]:
    """Return each statistic, the furthest first, and the probability that a simulated record lies as far out.

    None where no statistic differs between the record and the simulations, so that nothing is compared.
    """
    names, number = list(simulated), len(next(iter(simulated.values())))
    own = np.array([float(observed[name][0]) for name in names])
    others = np.column_stack([simulated[name] for name in names])
    # counts are skewed: they are compared as logarithms; the record is one of all, where the rule is right
    together = np.log1p(np.vstack([own, others]))
    centre, spread = together.mean(axis=0), together.std(axis=0)
    spread[np.ptp(together, axis=0) == 0] = 0.0  # the deviation of equal numbers is rounded, and not quite 0
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.abs(together - centre) / spread
    far[:, spread == 0] = 0.0
    furthest = far.max(axis=1)
    probability = float((furthest >= furthest[0] * (1 - 1e-9)).sum() / (number + 1)) if spread.any() else None
    tails = (1 + np.minimum((others <= own).sum(axis=0), (others >= own).sum(axis=0))) / (number + 1)
    low, median, high = np.quantile(others, (0.025, 0.5, 0.975), axis=0)
    columns = np.column_stack([own, low, median, high, np.minimum(1.0, 2 * tails), far[0]]).tolist()
    said = words or {}
    statistics = [
        replace(Statistic(name, *values), wording=said.get(name)) for name, values in zip(names, columns, strict=True)
    ]
    return tuple(sorted(statistics, key=lambda each: -each.distance)), probability


# Drift


def in_turn(actions: NDArray[Any], arms: int) -> NDArray[np.int64]:
    """Return for how many rounds each run, (runs, rounds), pulls all arms in turn, always in the order of the first.

    Examples
    --------
    >>> in_turn(np.array([[0, 1, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0]]), 2)
    array([5, 2, 0])
    """
    if actions.shape[1] <= arms:
        return np.zeros(len(actions), np.int64)
    first = (np.sort(actions[:, :arms], axis=1) == np.arange(arms)).all(axis=1)
    other = actions[:, arms:] != actions[:, :-arms]
    ends = np.where(other.any(axis=1), other.argmax(axis=1), other.shape[1])
    return np.asarray(np.where(first, arms + ends, 0))


def longer_in_turn(rule: Demonstrator, own: NDArray[Any], played: NDArray[Any], arms: int) -> str | None:
    """Say that a log pulls arms in turn for longer than all simulations, by a full turn or more.

    A rule that knows nothing yet takes arms in turn. If it learns late, other numbers of the rule may explain all later
    choices, and what these are worth besides.
    """
    if isinstance(rule, EliminationRule):
        return None
    found, most = int(in_turn(own[None], arms)[0]), int(in_turn(played, arms).max())
    if found - most < arms or found - most < FEWEST_IN_TURN:
        return None
    known = type(rule).model_fields
    tried = [
        *(["delay=fit"] if "delay" in known and rule.fixed_delay == 0 and found < own.size // 2 else []),
        *([f"initial={found // arms}"] if "initial" in known else []),
    ]
    advice = f" Try the rule with {', or with '.join(tried)}." if tried else ""
    return (
        f"The first {found:,} rounds pull all arms in turn, and no simulation does so for more than {most:,}. Logs of "
        "rules that learn of rewards late begin like that, and of those that pull every arm several times first."
        f"{advice}"
    )


class ArmDrift(NamedTuple):
    """How much the gap of an arm to the best one moved between a moment and the end of a log, where it moved most.

    Gaps are those of the averages since the log began. Of one that is only limited, `at_moment` or `at_end` is the
    limit; `moment_is` and `end_is` say so.
    """

    demonstration: str
    arm: str
    shown_by: str  # the arm whose gap moved: the same or, if others moved alike, the one that did most
    best: str
    round: int  # the last one before the moment
    at_moment: float
    at_end: float
    moment_is: str  # "about", "at least", "at most"
    end_is: str
    distance: float  # in standard deviations
    p_value: float  # of simulations without drift, the share that differ as much
    decided: bool = True  # whether a third arm tells which of the two moved, `shown_by` or `best`

    @property
    def who(self) -> str:
        """Say which arm drifted or, where no third one decides, which two did."""
        return who_drifted(self.arm if self.decided else None, self.shown_by, self.best)

    @property
    def drifted(self) -> bool:
        """Return whether the gap moved by more than chance makes it."""
        return self.p_value <= ALARM

    def agrees(self, arm: str, change: float) -> bool:
        """Return whether an arm that rises or falls by so much may be what was seen.

        Examples
        --------
        >>> found = ArmDrift("1", "A", "B", "A", 3_000, 0.35, 0.1, "at least", "about", 5.0, 0.0025)
        >>> found.agrees("A", -0.2), found.agrees("A", 0.2), found.agrees("B", 0.2)
        (True, False, False)
        """
        fell = self.at_end < self.at_moment  # the gap of `shown_by` to the best
        if arm not in ((self.arm,) if self.decided else (self.shown_by, self.best)):
            return False
        return (change < 0) == (fell if arm == self.best else not fell)

    @property
    def said(self) -> str:
        """Say what was seen, to follow a colon."""
        who = shown_how(self.arm if self.decided else None, self.shown_by)
        moment, end = _below(self.at_moment, self.moment_is), _below(self.at_end, self.end_is)
        return (
            f"by its average since the log began, {who} was {moment} {quoted(self.best)} after round {self.round:,}, "
            f"and {end} at the end, {self.distance:.1f} standard deviations apart"
        )


def shows_drift(rule: Demonstrator, arms: int) -> bool:
    """Return whether drift shows in a rule's choices: in those of an index that is the mean plus an offset."""
    return isinstance(rule, IndexRule) and rule.shifts and not rule.is_late and arms <= MOST_ARMS


def drift_of(
    actions: NDArray[np.integer], simulated: NDArray[np.integer], rule: IndexRule, horizon: int, deviation: float,
    arms: tuple[str, ...], demonstration: str,
) -> tuple[ArmDrift, Statistic] | None:  # fmt: skip
    """Return where a record's gaps moved most, and its place among simulations; None where no gap shows twice."""
    moved = _moved(np.vstack([actions[None], simulated]), len(arms), rule.for_arms(len(arms)), horizon, deviation)
    furthest = moved.distances.max(axis=(0, 1, 3))
    if furthest[0] == 0.0:
        return None
    own, others = float(furthest[0]), furthest[1:]
    chance = float((furthest >= own * (1 - 1e-9)).mean())
    own_distances = moved.distances[:, :, 0]
    kind, at, arm = (int(each) for each in np.unravel_index(own_distances.argmax(), own_distances.shape))
    best, (moment, end) = int(moved.best[0]), KINDS[kind]
    shown = float(moved.shifts[kind, at, 0, arm])
    mover = which_moved(moved.falls[:, at, 0], arm, best, shown, abs(shown) / own)
    values = float(moved.at_moment[kind, at, 0, arm]), float(moved.at_end[kind, at, 0, arm])
    grew = values[1] > values[0]
    round = int(moved.moments[at])
    found = ArmDrift(
        demonstration, arms[arm if mover is None else mover], arms[arm], arms[best], round, *values,
        _kind(moment, least=not grew), _kind(end, least=grew), own, chance, mover is not None,
    )  # fmt: skip
    low, middle, high = np.quantile(others, (0.0, 0.5, 0.975)).tolist()
    spread = float(others.std())
    wording = Wording(
        f"largest change of a gap (of arm {quoted(arms[arm])}, after round {round:,}), in standard deviations",
        f"The gap of arm {quoted(arms[arm])} changes by", "with this rule it would by", "standard deviation",
    )  # fmt: skip
    far = abs(own - float(others.mean())) / spread if spread > 0 else 0.0
    return found, Statistic(DRIFT, own, low, middle, high, chance, far, wording)


def which_moved(falls: Numbers, arm: int, best: int, shown: float, deviation: float) -> int | None:
    """Return which of an arm and the best one moved, as a third arm tells; None where none does.

    The arm's gap to the best one fell by what is `shown`, or by more; those of all by the least, the most and the
    deviation of `falls`. If the arm alone moved, other gaps stay; if the best one did, all fall alike. A third arm
    contradicts one of the two clearly, and the other much less. A gap that moved on between the moments at which its
    two limits were read tells nothing.
    """
    low, high, deviations = falls
    usable = (deviations > 0) & (low <= high + deviations)
    if not usable[arm]:
        return None
    if shown < 0:
        low, high, shown = -high, -low, -shown
    with np.errstate(divide="ignore", invalid="ignore"):
        others_moved = np.maximum(low, -high) / deviations
        others_stayed = (shown - high) / np.hypot(deviations, deviation)
    third = usable & ~np.isin(np.arange(low.size), (arm, best))
    against = [float(each[third & np.isfinite(each)].max(initial=0.0)) for each in (others_moved, others_stayed)]
    if max(against) < DECIDES or min(against) > max(against) / 2:
        return None
    return best if against[0] > against[1] else arm


def who_drifted(arm: str | None, shown_by: str, best: str) -> str:
    """Say which arm drifted or, where that is not known, which two did."""
    if arm is not None:
        return f"Arm {quoted(arm)} drifted"
    return f"Arms {quoted(shown_by)} and {quoted(best)} drifted relative to each other (the log shows only differences)"


def shown_how(arm: str | None, shown_by: str) -> str:
    """Say whose gap shows it, to follow a colon."""
    if arm is None:
        return quoted(shown_by)
    return "it" if arm == shown_by else f"others moved alike against it, and {quoted(shown_by)}"


POINT, LIMIT = "about", "limit"
KINDS = ((POINT, POINT), (POINT, LIMIT), (LIMIT, POINT))  # what is known at the moment, and at the end


def _kind(known: str, *, least: bool) -> str:
    return known if known == POINT else "at least" if least else "at most"


def _below(gap: float, kind: str) -> str:
    """Write a gap or a limit of it: by how much an arm is below another, or above it."""
    if gap < 0:
        return f"{ {'at least': 'at most', 'at most': 'at least'}.get(kind, kind) } {-gap:.3g} above"
    return f"{kind} {gap:.3g} below"


def is_alarm(drifted: int, tested: int) -> bool:
    """Return whether so many of some demonstrations drifted, at `ALARM` each, as hardly ever would by chance."""
    fewer = (math.comb(tested, k) * ALARM**k * (1 - ALARM) ** (tested - k) for k in range(drifted))
    return drifted > 0 and 1.0 - math.fsum(fewer) <= ALARM * (1 + 1e-9)


class _Moved(NamedTuple):
    """What is known of gaps to the best arm at some moments and at the end: (kinds, moments, runs, arms).

    A distance is 0 where the two do not contradict each other.
    """

    moments: Counts  # the last round of each
    best: Counts  # of each run
    at_moment: Numbers
    at_end: Numbers
    shifts: Numbers
    distances: Numbers
    falls: Numbers  # how much gaps fell until the end: the least, the most, their deviation; (3, moments, runs, arms)


class _Known(NamedTuple):
    """A gap between sample means, in favour of the best arm, and after how many pulls: (runs, arms), NaN for none."""

    gap: Numbers
    pulls: Counts
    of_best: Counts


class _Turns:
    """The turns of every arm in several runs: rounds without a change."""

    def __init__(self, actions: NDArray[np.integer], arms: int) -> None:
        runs, self.length = actions.shape
        starts = np.ones(actions.shape, np.bool_)
        starts[:, 1:] = actions[:, 1:] != actions[:, :-1]
        row, at = np.nonzero(starts)
        places = (row * arms + actions[row, at]) * self.length + at  # in order of runs, arms and rounds
        order = np.argsort(places, kind="stable")
        self.lengths = np.diff(row * self.length + at, append=actions.size)[order]
        self.places = places[order]
        self.before = np.cumsum(self.lengths) - self.lengths
        self.first = np.searchsorted(self.places, np.arange(runs * arms) * self.length)
        self.base = np.append(self.before, actions.size)[self.first]

    def last(self, own: Counts, before: Counts | int) -> tuple[Counts, Counts, Counts, Marks]:
        """Return the last turn of arms that began before some rounds: its start, the pulls before, its length.

        Arms are numbered through all runs; the last array says which had a turn.
        """
        which = np.searchsorted(self.places, own * self.length + before) - 1
        had = which >= self.first[own]
        which = np.maximum(which, 0)
        start = self.places[which] - own * self.length
        return start, self.before[which] - self.base[own], np.minimum(self.lengths[which], before - start), had

    def pulls(self, own: Counts, before: Counts | int) -> Counts:
        """Return how often arms were pulled before some rounds."""
        _, earlier, length, had = self.last(own, before)
        return np.where(had, earlier + length, 0)


class _Seen(NamedTuple):
    """What runs show of every gap before some round: one that was met, and a limit of it, (runs, arms)."""

    met: _Known
    started: Counts  # the round of the meeting
    limit: _Known
    is_least: Marks  # whether the limit is the least gap, as where the best arm was pulled later


def _moved(actions: NDArray[np.integer], arms: int, rule: IndexRule, horizon: int, deviation: float) -> _Moved:
    """Compare every moment with the end of the runs."""
    runs, length = actions.shape
    moments, turns = np.round(EIGHTHS * length).astype(np.int64), _Turns(actions, arms)
    every = np.arange(runs * arms).reshape(runs, arms)
    best = turns.pulls(every, length).argmax(axis=1)
    tops = np.broadcast_to(every[np.arange(runs), best][:, None], every.shape)
    *earlier, last = (_seen(turns, every, tops, int(moment), rule, horizon) for moment in [*moments, length])
    at_moment, at_end, shifts, distances = np.zeros((4, len(KINDS), moments.size, runs, arms))
    falls = np.zeros((3, moments.size, runs, arms))
    for at, seen in enumerate(earlier):
        pairs = (seen.met, last.met), (seen.met, last.limit), (seen.limit, last.met)
        apart = [_apart(known, later, deviation) for known, later in pairs]
        falls[:, at] = _fell(seen, last, *apart)
        for kind, ((known, later), (shift, spread)) in enumerate(zip(pairs, apart, strict=True)):
            far = np.abs(shift) / spread
            contradicts = (seen.started != last.started, (shift < 0) == last.is_least, (shift > 0) == seen.is_least)
            counts = np.isfinite(far) & contradicts[kind]
            at_moment[kind, at], at_end[kind, at] = known.gap, later.gap
            shifts[kind, at], distances[kind, at] = np.where(counts, shift, 0.0), np.where(counts, far, 0.0)
    return _Moved(moments, best, at_moment, at_end, shifts, distances, falls)


def _apart(known: _Known, later: _Known, deviation: float) -> tuple[Numbers, Numbers]:
    """Return how much a gap fell, and its standard deviation; NaN where no reward came in between."""
    with np.errstate(divide="ignore", invalid="ignore"):
        own, of_best = 1 / known.pulls - 1 / later.pulls, 1 / known.of_best - 1 / later.of_best
        variance = np.where((own >= 0) & (of_best >= 0) & (own + of_best > 0), own + of_best, np.nan)
        return known.gap - later.gap, deviation * np.sqrt(variance)


def _fell(
    seen: _Seen, last: _Seen, met: tuple[Numbers, Numbers], until: tuple[Numbers, Numbers],
    since: tuple[Numbers, Numbers],
) -> Numbers:  # fmt: skip
    """Return the least and the most by which gaps fell, and the deviation of these; equal where gaps were met twice."""
    is_exact = np.isfinite(met[0] * met[1]) & (seen.started != last.started)
    later, earlier = (np.where(np.isfinite(each[1]), each[0], np.nan) for each in (until, since))
    low = np.fmax(np.where(last.is_least, -np.inf, later), np.where(seen.is_least, earlier, -np.inf))
    high = np.fmin(np.where(last.is_least, later, np.inf), np.where(seen.is_least, np.inf, earlier))
    found = np.stack([low, high, np.fmax(until[1], since[1])])
    return np.where(is_exact, [met[0], met[0], met[1]], found)


def _seen(turns: _Turns, every: Counts, tops: Counts, before: int, rule: IndexRule, horizon: int) -> _Seen:
    """Read all gaps to the best arm, which has the most pulls of the whole run, before a round."""
    (start, earlier, length, had), (top_start, top_earlier, top_length, top_had) = (
        turns.last(arm, before) for arm in (every, tops)
    )
    both, is_less = had & top_had, earlier + length <= top_earlier + top_length
    # the turn of the arm that has fewer pulls: its index had just met the other's
    begun, pulls = np.where(is_less, start, top_start), np.where(is_less, earlier, top_earlier)
    met = _known(turns, every, tops, is_less, begun, pulls, both, rule, horizon)
    # the latest pull of either: its index was no smaller
    own_end, top_end = start + length - 1, top_start + top_length - 1
    is_own = own_end > top_end
    at, pulls = np.where(is_own, own_end, top_end), np.where(is_own, earlier + length, top_earlier + top_length) - 1
    limit = _known(turns, every, tops, is_own, at, pulls, both, rule, horizon)
    return _Seen(met, begun, limit, ~is_own)


def _known(
    turns: _Turns, every: Counts, tops: Counts, is_own: Marks, at: Counts, pulls: Counts, usable: Marks,
    rule: IndexRule, horizon: int,
) -> _Known:  # fmt: skip
    """Return the gaps at which indices are equal before round `at + 1`, in which one of the two arms is pulled.

    That is the arm itself where `is_own`, else the best one; it has so many `pulls` by then.
    """
    other = turns.pulls(np.where(is_own, tops, every), at)
    usable = usable & (every != tops) & (at >= rule.initial * every.shape[1]) & (pulls > 0) & (other > 0)
    own, of_best = np.where(is_own, pulls, other), np.where(is_own, other, pulls)
    gap = np.full(every.shape, np.nan)
    both = np.stack([own[usable], of_best[usable]])
    gap[usable] = np.subtract(*offsets_over_means(rule, horizon, both, at[usable] + 1))
    return _Known(gap, own, of_best)


def offsets_over_means(rule: IndexRule, horizon: int, pulls: Counts, rounds: Counts) -> Numbers:
    """Return by how much indices are above sample means."""
    if isinstance(rule, AdditiveIndexRule):
        return np.asarray(rule.width(np.arange(1.0, pulls.max(initial=1) + 1), horizon)[pulls - 1])
    rounds = np.broadcast_to(rounds if rule.uses_round else 1, pulls.shape)
    most = int(rounds.max(initial=0)) + 1
    pairs, places = np.unique(pulls * most + rounds, return_inverse=True)
    given: Any = rule.parameters(horizon)
    formula = meaning(given)["index_value"]
    numbers = SimpleNamespace(**{name: float(given[name]) for name in given.dtype.names})

    def offset(pulls: int, round: int) -> float:
        try:
            return float(formula(numbers, 0.0, pulls, round))
        except (ArithmeticError, ValueError):  # where compiled code goes on with NaN
            return math.nan

    values = [offset(pair // most, pair % most) for pair in pairs.tolist()]
    return np.asarray(values, np.float64)[places].reshape(pulls.shape)
