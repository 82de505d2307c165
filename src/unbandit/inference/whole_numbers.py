"""Settings of a rule that a log shows: its opening, how long a decision lasts, late rewards, and who wins a tie.

A log leaves few values possible: an opening ends where an arm comes again too early, and an index rule that decides
every `batch` rounds changes its arm at the end of a batch only. All that are possible are compared by the evidence of
the log, which counts less for a longer batch: a few changes have some large common divisor by chance, so that the
prior of a batch is `1 / batch`.

How late rewards are (`delay`), and how ties are broken (`ties`), are weighed: an answer is averaged over all that is
possible. With a delay an opening goes on until rewards are known, so that a log has a longest possible one. Delays are
compared first on the beginning of the log, and those that explain it on all of it; of rules without an opening, whose
evidence is smooth, on a grid that is refined around its top.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import IndexRule, RandomisedRule
from unbandit.demonstrators.family import AVERAGED, WHOLE, RuleFamily
from unbandit.errors import InferenceError, NotIdentifiable, option
from unbandit.fit import FittedNumber
from unbandit.formatting import counted, joined
from unbandit.inference.steps import reading_of
from unbandit.log import ActionLog

Settings = Mapping[str, Any]

CLEARLY = 5.0  # nats by which the log must be more probable under one value than under every other
MOST_OPENING = 20  # pulls of every arm at the beginning, at most
BY_EVIDENCE = "evidence of every value that the log leaves possible"
TIES = ("lowest", "random")
LONGEST = 1_000  # delay that is considered
GRID = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, LONGEST)  # delays that are compared first, without an opening
FINER, MOST_NODES = 8.0, 40  # nats below the top up to which the grid is refined, and its places at most
BEGINNING, FURTHER = 30, 300  # rounds after the longest opening by which delays are told apart first, and next
QUICK, HOPELESS = 400, 25.0  # particles for such a beginning, and nats by which a delay falls behind that is given up
MOST_WORK, PER_MINUTE = 1.2e8, 4e7  # particles times rounds of all delays together, and of a minute, roughly
LEAST_ERROR, DRAWS = 0.3, 2_000  # nats of a log evidence, and draws of all errors
IMPROBABLE, MOST_SETTINGS = 0.01, 5  # settings that are left out of an average, and how many it has
MOST_OF_IT = 0.95  # of the probability, which those that are averaged over have at least
OPEN_END = 3.0  # nats below the top, within which the longest delay must not be where nothing else bounds delays
SHOWN = 1.0  # nats between possible values, below which a log does not show them


class Setting(NamedTuple):
    """Settings of a rule, and how probable they are."""

    probability: float
    values: Settings


def settled_whole_numbers(
    log: ActionLog, family: RuleFamily, evidence: Callable[[Mapping[str, int]], float]
) -> tuple[dict[str, int], tuple[FittedNumber, ...]]:
    """Find the whole numbers that are to be fitted; `evidence` is the log evidence of the log, given some values.

    Raises
    ------
    NotIdentifiable
        If several values explain the log about as well, or their evidence cannot be compared.
    InferenceError
        If none explains it.
    """
    names = [name for name in family.free if name in WHOLE]
    if not names:
        return {}, ()
    _refuse_hidden(family, names)
    given = dict(family.known)
    openings = _openings(log, family) if "initial" in names else [int(given.get("initial", _usual(family, "initial")))]
    tried: list[dict[str, int]] = []
    for opening in openings:
        batches = _batches(log, opening) if "batch" in names else [1]
        tried += [{"initial": opening, "batch": batch} for batch in batches]
    values = [{name: each[name] for name in names} for each in tried]
    found = [(evidence(each) - math.log(each.get("batch", 1)), each) for each in values]  # prior of a batch: 1 / batch
    found.sort(key=lambda pair: -pair[0])
    best, chosen = found[0]
    if best == -math.inf:
        raise InferenceError(
            f"no value of {joined(names)} explains the log under {family.kind.name}.",
            remedy="Check the rule: `check` and `identify` try others.",
        )
    near = [each for value, each in found[1:] if value > best - CLEARLY]
    if near:
        others = joined([_written(each) for each in (chosen, *near[:3])], "or")
        raise NotIdentifiable(
            f"{family}: the log does not show {joined(names)}: it may be {others}.",
            parameter=names[0],
            remedy=f"Give {joined(names)} a value, or a longer log.",
        )
    numbers = [FittedNumber(name, chosen[name], chosen[name], chosen[name], BY_EVIDENCE) for name in names]
    return chosen, tuple(numbers)


def _refuse_hidden(family: RuleFamily, names: Sequence[str]) -> None:
    """Refuse whole numbers that this kind of rule does not show."""
    index = issubclass(family.kind, IndexRule)
    if "batch" in names and not index:
        raise NotIdentifiable(
            f"{family}: a batch shows where a rule stays with one arm; this rule draws an arm in every round.",
            parameter="batch",
            remedy="Give batch a value.",
        )
    if not index and not issubclass(family.kind, RandomisedRule):
        raise NotIdentifiable(
            f"{family}: openings are compared for index rules and rules that choose at random only.",
            parameter=names[0],
            remedy=f"Give {joined(list(names))} a value.",
        )


def _usual(family: RuleFamily, name: str) -> int:
    return int(family.kind.model_fields[name].default)


def _openings(log: ActionLog, family: RuleFamily) -> list[int]:
    """Return how often every arm may have been pulled first, in every demonstration; fewest first."""
    arms, least = len(log.arms), 1 if issubclass(family.kind, IndexRule) else 0
    possible = list(range(least, MOST_OPENING + 1))
    for which in range(len(log)):
        actions = log.demonstration(which)
        possible = [turns for turns in possible if _opens(actions, arms, turns)]
    if not possible:
        raise InferenceError(
            f"{family.kind.name}: the rule pulls every arm first, and the log does not begin like that.",
            remedy="Another rule made this log, it begins in mid-run, or rounds are missing.",
        )
    return possible


def _opens(actions: NDArray[np.integer], arms: int, turns: int) -> bool:
    """Return whether the first rounds pull every arm so many times.

    Examples
    --------
    >>> [_opens(np.array([1, 0, 0, 1, 1]), 2, turns) for turns in (0, 1, 2, 3)]
    [True, True, True, False]
    """
    head = actions[: turns * arms]
    return head.size == turns * arms and bool((np.bincount(head, minlength=arms) == turns).all())


def _batches(log: ActionLog, opening: int) -> list[int]:
    """Return the batches after which the arm may have changed: whatever divides the rounds of all changes.

    Examples
    --------
    >>> _batches(ActionLog.from_codes(np.array([0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1]), ("a", "b")), 1)
    [1]
    >>> _batches(ActionLog.from_codes(np.array([0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]), ("a", "b")), 1)
    [1, 2, 4]
    """
    common = 0
    for which in range(len(log)):
        after = log.demonstration(which)[opening * len(log.arms) :]
        common = math.gcd(common, *(np.flatnonzero(np.diff(after)) + 1).tolist())
    if common == 0:
        raise NotIdentifiable(
            "batch: the log never changes its arm after the opening, so that any batch is possible.",
            parameter="batch",
            remedy="Give batch a value.",
        )
    return [each for each in range(1, common + 1) if common % each == 0]


def _written(values: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


# Settings that an answer is averaged over


Asked = Callable[[Settings, int | None, int | None], tuple[float, float]]
"""Returns the log evidence and its error, given settings, rounds of every demonstration and particles; None for all."""


def weighed_settings(
    log: ActionLog, family: RuleFamily, horizons: Sequence[int], level: float, evidence: Asked
) -> tuple[tuple[Setting, ...], tuple[FittedNumber, ...]]:
    """Weigh the delays, and the ways to break ties, that are to be fitted: the most probable settings come first.

    Of very many, few equally likely ones stand for all, the median one first. `evidence` returns the log evidence of
    some settings with its error.

    Raises
    ------
    NotIdentifiable
        If the log does not show them, or comparing them would take too long.
    InferenceError
        If none explains it.
    """
    names = [name for name in AVERAGED if name in family.free]
    if not names:
        return (Setting(1.0, {}),), ()
    if not issubclass(family.kind, IndexRule | RandomisedRule):
        raise NotIdentifiable(
            f"{family}: {joined(names)} can be fitted for index rules and rules that choose at random only, and not "
            "for those that forget.",
            parameter=names[0],
            remedy=f"Give {joined(names)} a value.",
        )
    delays = _delays(log, family, horizons) if "delay" in names else [int(family.known.get("delay", 0))]
    ways = TIES if "ties" in names else [family.known.get("ties")]
    tried = [
        {name: value for name, value in (("ties", way), ("delay", delay)) if name in names}
        for way, delay in product(ways, delays)
    ]
    if "delay" in names and len(delays) > 1 and _opens_in_turn(family):
        found = _by_stages(log, family, tried, max(delays), evidence)
    elif "delay" in names and len(delays) > 1:
        found = [pair for way in ways for pair in _by_grid(delays, {"ties": way} if "ties" in names else {}, evidence)]
    else:
        found = [(each, *evidence(each, None, None)) for each in tried]
    found = [each for each in found if math.isfinite(each[1])]
    if not found:
        raise InferenceError(
            f"no value of {joined(names)} explains the log under {family.kind.name}.",
            remedy="Check the rule: `check` and `identify` try others.",
        )
    values = np.array([value for _, value, _ in found])
    on_grid = "delay" in names and len(delays) > 1 and not _opens_in_turn(family)
    last = [value for each, value, _ in found if each["delay"] == delays[-1]] if on_grid else []
    possible = len(ways) * (delays[-1] + 1) if on_grid else len(tried)
    if len(tried) > 1 and len(found) == possible and np.ptp(values) < SHOWN:
        some = [_written(tried[at]) for at in (0, -1)]
        text = joined(some, "or") if len(tried) == 2 else f"anything from {some[0]} to {some[1]}"
        raise NotIdentifiable(
            f"{family}: the log does not show {joined(names)}: it is about as probable with {text}.",
            parameter=names[0],
            remedy="Leave ties out: values are about the same either way."
            if names == ["ties"]
            else f"Give {joined(names)} a value, or a longer log.",
        )
    if last and max(last) > values.max() - OPEN_END:
        raise NotIdentifiable(
            f"{family}: the log does not show delay: {delays[-1]:,} rounds, the longest that is considered, are about "
            "as probable as any.",
            parameter="delay",
            remedy="Give delay a value.",
        )
    chances = _chances(values, np.array([error for *_, error in found]))
    every = [Setting(float(chance), each) for chance, (each, *_) in zip(chances, found, strict=True)]
    return _standing(every), tuple(_weighed_number(name, every, level) for name in family.free if name in names)


def _chances(values: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities by log evidences whose errors are known: on average over these."""
    off = np.random.default_rng(0).standard_normal((DRAWS, values.size)) * np.maximum(
        np.nan_to_num(errors), LEAST_ERROR
    )
    shares = np.exp(values + off - (values + off).max(axis=1, keepdims=True))
    return np.asarray((shares / shares.sum(axis=1, keepdims=True)).mean(axis=0))


def _standing(every: Sequence[Setting]) -> tuple[Setting, ...]:
    """Return few settings that stand for all: the probable ones or, of too many, equally likely ones between."""
    kept = [each for each in sorted(every, key=lambda each: -each.probability) if each.probability >= IMPROBABLE]
    if len(kept) > MOST_SETTINGS or sum(each.probability for each in kept) < MOST_OF_IT * sum(
        each.probability for each in every
    ):
        ordered = sorted(every, key=lambda each: (each.values.get("delay", 0), each.values.get("ties", "")))
        sums = np.cumsum([each.probability for each in ordered])
        at = np.searchsorted(sums / sums[-1], (np.arange(MOST_SETTINGS) + 0.5) / MOST_SETTINGS)
        middle = MOST_SETTINGS // 2
        kept = [ordered[at[which]] for which in (middle, *np.delete(np.arange(MOST_SETTINGS), middle))]
        return tuple(Setting(1 / MOST_SETTINGS, each.values) for each in kept)
    total = sum(each.probability for each in kept)
    return tuple(Setting(each.probability / total, each.values) for each in kept)


def _weighed_number(name: str, every: Sequence[Setting], level: float) -> FittedNumber:
    """Return the most probable value of a setting, its interval, and all values that are possible."""
    chances: dict[Any, float] = {}
    for each in every:
        chances[each.values[name]] = chances.get(each.values[name], 0.0) + each.probability
    best = max(chances, key=lambda value: chances[value])
    shown = {value: chance for value, chance in chances.items() if chance >= IMPROBABLE / 10}
    pairs = sorted(shown.items(), key=lambda pair: -pair[1]) if len(shown) <= 2 * MOST_SETTINGS else []
    low = high = best
    if name == "delay":
        values, sums = sorted(chances), np.cumsum([chances[value] for value in sorted(chances)])
        low, high = (
            values[min(int(np.searchsorted(sums, share * sums[-1])), len(values) - 1)]
            for share in (0.5 - level / 2, 0.5 + level / 2)
        )
    return FittedNumber(name, best, low, high, BY_EVIDENCE, possible=tuple(pairs))


def _opens_in_turn(family: RuleFamily) -> bool:
    """Return whether the rule pulls all arms in turn until their rewards are known."""
    return issubclass(family.kind, IndexRule) or int(getattr(family.example, "initial", 0)) > 0


def _delays(log: ActionLog, family: RuleFamily, horizons: Sequence[int]) -> list[int]:
    """Return the delays that the log leaves possible: an opening is longer with a delay, in every demonstration."""
    if {"initial", "batch"} & set(family.free):
        raise NotIdentifiable(
            f"{family}: delay is fitted alone: with another opening, or batches, another delay is possible.",
            parameter="delay",
            remedy="Give the others a value.",
        )
    arms, shortest = len(log.arms), int(log.lengths.min())
    most = min(LONGEST, shortest // 2)
    if not _opens_in_turn(family):
        return [each for each in GRID if each < most] + [most]
    ways = TIES if "ties" in family.free else [None]

    def is_impossible(delay: int) -> bool:
        for way in ways:
            rule = family.at({"delay": delay} | ({} if way is None else {"ties": way})).for_arms(arms)
            rounds = rule.initial * arms + delay + 1
            try:
                for which, horizon in enumerate(horizons):
                    reading_of(log.select(which, rounds), 0, rule, horizon)
            except InferenceError:
                continue
            return False
        return True

    if is_impossible(0):
        rule = family.example.for_arms(arms)
        for which, horizon in enumerate(horizons):
            reading_of(log, which, rule, horizon)  # refuses the opening, with the round
    count = bisect_left(range(most + 1), True, key=is_impossible)
    if count > most:
        raise NotIdentifiable(
            f"{family}: the log does not show delay: it takes the arms in turn for {most:,} rounds and more, as a rule "
            "does that knows no rewards yet.",
            parameter="delay",
            remedy="Give delay a value, or a longer log.",
        )
    return list(range(count))


def _by_stages(
    log: ActionLog, family: RuleFamily, tried: Sequence[Settings], longest: int, evidence: Asked
) -> list[tuple[Settings, float, float]]:
    """Compare settings on longer and longer beginnings of the log, without those that fall behind."""
    opening = int(family.example.initial) * len(log.arms) + longest
    rounds = opening + BEGINNING
    work = len(tried) * sum(min(rounds, int(each)) for each in log.lengths) * QUICK
    if work > MOST_WORK:
        raise NotIdentifiable(
            f"{family}: the log begins in turn for {opening:,} rounds, and comparing {counted(len(tried), 'delay')} "
            f"would take about {work / PER_MINUTE:.0f} minutes.",
            parameter="delay",
            remedy=f"Give delay a value. `identify` compares a few, with {option('candidates', family.kind.name)}.",
        )
    left, found = list(tried), list[tuple[Settings, float, float]]()
    for part in (rounds, opening + FURTHER, None):
        if part is not None and part >= int(log.lengths.max()):
            continue
        found = [(each, *evidence(each, part, None if part is None else QUICK)) for each in left]
        top = max(value for _, value, _ in found)
        if top == -math.inf:
            continue  # so few particles explain nothing: ask for all of the log
        left = [each for each, value, error in found if value > top - HOPELESS - 3 * np.nan_to_num(error)]
        if len(left) == 1 and part is not None:
            return [(left[0], 0.0, 0.0)]
    return found


def _by_grid(
    delays: Sequence[int], others: Settings, evidence: Asked
) -> list[tuple[Settings, float, float]]:  # fmt: skip
    """Compute the evidence on a grid of delays that is refined around its top; in between it is interpolated."""
    known = {delay: evidence({**others, "delay": delay}, None, None) for delay in delays}
    while len(known) < MOST_NODES:
        places, top = sorted(known), max(value for value, _ in known.values())
        wide = [
            (before, after)
            for before, after in pairwise(places)
            if after - before > 1 and max(known[before][0], known[after][0]) > top - FINER
        ]
        if not wide or top == -math.inf:
            break
        for before, after in sorted(wide, key=lambda pair: pair[0] - pair[1])[: MOST_NODES - len(known)]:
            middle = (before + after) // 2
            known[middle] = evidence({**others, "delay": middle}, None, None)
    places = sorted(known)
    values, errors = (np.array([known[place][at] for place in places]) for at in (0, 1))
    every = range(places[-1] + 1)
    least = values[np.isfinite(values)].min(initial=0.0) - FINER
    between = np.interp(every, places, np.where(np.isfinite(values), values, least))
    off = np.interp(every, places, np.nan_to_num(errors))
    kept = between > between.max() - HOPELESS
    return (
        [({**others, "delay": delay}, float(between[delay]), float(off[delay])) for delay in every if kept[delay]]
        if np.isfinite(values).any()
        else []
    )
