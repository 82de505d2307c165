"""A second opinion on every interval: simulate the rule at the estimate, estimate again, measure how far it strays."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import Notice, NotIdentifiable, option
from unbandit.estimators.arguments import shows_part
from unbandit.estimators.availability import obstacle_to_simulations, read_available, said_of_availability
from unbandit.estimators.diagnostics import Diagnosis, PlacedNotices
from unbandit.estimators.procedures import Answer, Comparison, Intervals, Request, compare
from unbandit.instance import Bernoulli, Instance
from unbandit.log import ActionLog
from unbandit.result import BEST, BOUNDED, ESTIMATED

MOST_SIMULATED_ROUNDS = 50_000_000  # at a time, where whole runs are kept to read a part of them
OFTEN = 0.1  # from this share of the simulations on, another best arm or a missing estimate is worth a warning

Numbers = NDArray[np.float64]


def bootstrapped(request: Request, resamples: int, seed: int) -> Answer:
    """Give every estimated arm the bootstrap's interval: the estimate, less how far simulations at it stray from it.

    An arm that is only bounded is simulated at its bound, or halfway between two, and keeps its bounds: they need no
    simulation. Where several arms may be best, the first of them is simulated as the best.
    """
    answer, diagnosis = Answer(request.log.demonstrations, request.log.pulls), Diagnosis(request)
    comparison = Comparison.joined(diagnosis.read(lambda _, part: part))
    ends, doubts = request.intervals(comparison), PlacedNotices()
    for which, name in enumerate(request.log.demonstrations):
        seen, found = comparison.row(which), Intervals(*(each[which] if len(each) else each for each in ends))
        _check_means(request, which, found)
        instance = _instance_at(request, seen, found)
        again = _simulated(request, which, instance, resamples, seed)
        demonstration = name if len(request.log) > 1 else None
        for notice in _doubts(seen, again, request.log.arms):
            doubts.append((which, replace(notice, demonstration=demonstration)))
        answer.put(which, _row(request, seen, found, again), seen.verdict, seen.best)
    diagnosis.report(answer, warnings=doubts)
    if request.available is not None and request.availability is not None and isinstance(request.log, ActionLog):
        warnings, notes, answer.apart = said_of_availability(request.available, request.log, request.availability)
        answer.warnings += warnings
        answer.notes += notes
    if (answer.verdict == BOUNDED).any():
        text = "Arms that are only bounded were simulated at their bound (halfway between two), and keep their bounds."
        answer.notes.append(Notice("bounded-kept", text))
    answer.notes.append(
        Notice("bootstrap", f"Intervals are read off {resamples:,} simulations at the estimate, from seed {seed}.")
    )
    return answer


def _simulated(request: Request, which: int, instance: Instance, resamples: int, seed: int) -> Comparison:
    """Return what simulations in place of one demonstration say; of part of a run, the same part of whole runs.

    Where arms come and go, they are there in the same rounds.
    """
    rule, horizon, length = request.rule, int(request.horizons[which]), int(request.lengths[which])
    there = request.availability if request.available is not None else None
    if there is None and not shows_part(request.log):
        return compare(
            rule.evidence(instance, horizon, runs=resamples, seed=seed, length=length), rule, request.method, horizon,
            request.constant, request.anchor, request.known_noise,
        )  # fmt: skip
    few, parts = max(1, MOST_SIMULATED_ROUNDS // length), []
    for first in range(0, resamples, few):
        means = np.tile(instance.means, (min(few, resamples - first), 1))
        runs = rule.demonstrate_at(
            means, instance.noise, horizon, length=length, seed=seed, first_run=first, availability=there
        )
        horizons = np.full(len(runs), horizon)
        if shows_part(request.log):
            shown = replace(request, log=request.log.like(which, runs), horizons=horizons)
            parts.append(shown.compare(0, len(runs)))
            continue
        assert there is not None
        offsets, known = np.arange(len(runs) + 1) * length, (request.anchor, request.known_noise)
        found = read_available(runs.reshape(-1), offsets, there, rule, request.method, horizons, *known)
        parts.append(found.comparison)
    return Comparison.joined(parts)


def _check_means(request: Request, which: int, found: Intervals) -> None:
    """Refuse a demonstration whose arms come and go and that leaves open at which means to simulate it."""
    reading, there = request.available, request.availability
    if reading is None or there is None:
        return
    if why := obstacle_to_simulations(reading, which, request.log, there, found.low, found.high):
        raise NotIdentifiable(why, remedy=f"Use {option('method', 'bracket')}.")


def _row(request: Request, seen: Comparison, found: Intervals, again: Comparison) -> dict[str, Numbers]:
    """Return one demonstration's numbers, with the simulations' intervals for arms that are estimated."""
    anchor, tail, estimated = request.anchor, (1 - request.level) / 2, seen.verdict == ESTIMATED
    low, high, spread = found.low, found.high, found.deviation
    mean, mean_low, mean_high = found[4:] if anchor else np.full((3, low.size), np.nan)
    spreads = request.intervals(again).deviation
    strayed = np.where(again.verdict == BEST, 0.0, again.gap)
    low[estimated], high[estimated] = _ends(seen.gap, spread, strayed, spreads, tail)[:, estimated]
    if anchor is not None and (anchor.arm is None or seen.verdict[anchor.arm] == BEST):
        mean_low[estimated], mean_high[estimated] = anchor.value - high[estimated], anchor.value - low[estimated]
    elif anchor is not None and anchor.arm is not None:
        at, others = [anchor.arm], estimated | (seen.verdict == BEST)
        others[at] = False
        both = np.hypot(np.nan_to_num(spread), spread[at]), np.hypot(np.nan_to_num(spreads), spreads[:, at])
        ends = _ends(seen.gap - seen.gap[at], both[0], strayed - strayed[:, at], both[1], tail)
        mean_low[others], mean_high[others] = anchor.value - ends[1, others], anchor.value - ends[0, others]
    row = {"gap": seen.gap, "gap_low": low, "gap_high": high}
    return row | {"mean": mean, "mean_low": mean_low, "mean_high": mean_high}


def _instance_at(request: Request, seen: Comparison, found: Intervals) -> Instance:
    """Return the instance that the estimate describes; means are counted from the best arm's, or from 0."""
    within = np.where(np.isnan(found.high), seen.below, (found.low + found.high) / 2)
    gaps = np.where(np.isnan(seen.gap), within, seen.gap)
    gaps = np.where(np.isnan(gaps), np.nanmax(gaps, initial=0.0), gaps)  # of an arm never seen nothing is known
    gaps[seen.best.argmax()] = 0.0  # of several that may be best, the first
    means = _best_mean(request, seen) - gaps
    if isinstance(request.noise, Bernoulli):
        means = np.clip(means, 0.0, 1.0)
    return Instance(means, request.noise, arms=request.log.arms)


def _best_mean(request: Request, seen: Comparison) -> float:
    """Return the best arm's mean as far as it is known; 0 where only gaps count."""
    anchor = request.anchor
    if anchor is None:
        if isinstance(request.noise, Bernoulli):
            raise NotIdentifiable(
                "bootstrap: rewards of 0 and 1 are simulated from means, and gaps alone give none; give "
                f"{option('best_mean')} or {option('anchor')}."
            )
        return 0.0
    return anchor.value + (0.0 if anchor.arm is None else float(np.nan_to_num(seen.gap[anchor.arm])))


def _ends(points: Numbers, spread: Numbers, strayed: Numbers, spreads: Numbers, tail: float) -> Numbers:
    """Return the low and high ends, one column per arm: the point less the quantiles of how far simulations stray.

    Each simulation's error is counted in its own deviations where they are known: an arm with fewer pulls strays more.
    """
    known = ~np.isnan(strayed).all(axis=0) & ~np.isnan(points)
    found = np.full((2, points.size), np.nan)
    if known.any():
        unit, units = (np.where(np.isnan(each) | (each == 0), 1.0, each) for each in (spread, spreads))
        errors = (strayed - points) / np.where(np.isnan(spread), 1.0, units)
        quantiles = np.nanquantile(errors[:, known], [1 - tail, tail], axis=0)
        found[:, known] = points[known] - quantiles * unit[known]
    return found


def _doubts(comparison: Comparison, again: Comparison, arms: tuple[str, ...]) -> list[Notice]:
    """Warn where simulations at the estimate do not lead back to it."""
    notices, estimated = [], comparison.verdict == ESTIMATED
    other = 1 - np.mean((again.best & comparison.best).any(axis=-1) & (again.best.sum(axis=-1) == 1))
    if comparison.best.sum() == 1 and other > OFTEN:
        text = (
            f"In {other:.0%} of the simulations at the estimate another arm, or none, was found best: the log "
            "hardly shows which is."
        )
        notices.append(Notice("best-uncertain", text, arm=arms[int(comparison.best.argmax())]))
    missing = np.mean((again.verdict == BOUNDED), axis=0) * estimated
    if missing.max(initial=0.0) > OFTEN:
        at = int(missing.argmax())
        text = (
            f'Arm "{arms[at]}" had no estimate in {missing[at]:.0%} of the simulations at the estimate: its interval '
            "rests on the others, and is likely too short."
        )
        notices.append(Notice("often-bounded", text, arm=arms[at]))
    return notices
