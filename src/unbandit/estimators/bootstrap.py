"""A second opinion on every interval: simulate the rule at the estimate, estimate again, read off how far it strays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import NotIdentifiable
from unbandit.estimators import intervals
from unbandit.estimators.diagnostics import read_one
from unbandit.estimators.procedures import Anchor, Comparison, compare_many
from unbandit.estimators.request import Answer, Request
from unbandit.instance import Bernoulli, Gaussian, Instance
from unbandit.result import BEST, BOUNDED, ESTIMATED, Notice

__all__ = ["Replicate", "bootstrapped", "replicates"]

OFTEN = 0.1
"""From this share of the simulations on, another best arm or a missing estimate is worth a warning."""

Replicate = Callable[[Request, int, Instance, int, int], Comparison]
"""Simulate demonstration `which` on an instance so many times, from a seed, and estimate: one row a simulation."""


def replicates(asked: Request, which: int, instance: Instance, resamples: int, seed: int) -> Comparison:
    """Simulate a demonstration again and again, as long as it was, and read each as the record was read."""
    horizon, length = int(asked.horizons[which]), int(asked.log.lengths[which])
    evidence = asked.rule.evidence(instance, horizon, runs=resamples, seed=seed, length=length)
    return compare_many(evidence, asked.rule, asked.method, horizon, asked.constant, asked.anchor)


def bootstrapped(asked: Request, resamples: int, seed: int, replicate: Replicate = replicates) -> Answer:
    """Give every estimated arm the bootstrap's interval: the estimate, less how far simulations at it stray from it.

    An arm that is only bounded is simulated at its bound, or halfway between two, and keeps its bounds: they need no
    simulation. Where several arms may be best, the first of them is simulated as the best.

    Parameters
    ----------
    replicate
        What simulates and estimates again; for rules without a closed form another estimator can be put in.
    """
    answer = Answer(asked.log.demonstrations, asked.log.pulls)
    answer.room("gap", "gap_low", "gap_high", "mean", "mean_low", "mean_high")
    for which in range(len(asked.log)):
        comparison = read_one(asked, which, answer)
        anchor = asked.anchor
        low, high = intervals.ends(comparison, asked.noise, anchor, asked.z)
        mean, mean_low, mean_high = intervals.means(comparison, asked.noise, anchor, asked.z, (low, high))
        again = replicate(asked, which, instance_at(asked, comparison, low, high), resamples, seed)
        strayed = np.where(again.verdict == BEST, 0.0, again.gap)
        spread, spreads = (intervals.spreads(each, asked.noise, anchor)[0] for each in (comparison, again))
        tail = (1 - asked.level) / 2
        estimated = comparison.verdict == ESTIMATED
        low[estimated], high[estimated] = _ends(comparison.gap, spread, strayed, spreads, tail)[:, estimated]
        if anchor is not None and (anchor.arm is None or comparison.verdict[anchor.arm] == BEST):
            mean_low[estimated], mean_high[estimated] = anchor.value - high[estimated], anchor.value - low[estimated]
        elif anchor is not None and anchor.arm is not None:
            at, others = [anchor.arm], estimated | (comparison.verdict == BEST)
            others[at] = False
            both = np.hypot(np.nan_to_num(spread), spread[at]), np.hypot(np.nan_to_num(spreads), spreads[:, at])
            found = _ends(comparison.gap - comparison.gap[at], both[0], strayed - strayed[:, at], both[1], tail)
            mean_low[others], mean_high[others] = anchor.value - found[1, others], anchor.value - found[0, others]
        row = {"gap": comparison.gap, "gap_low": low, "gap_high": high}
        row |= {"mean": mean, "mean_low": mean_low, "mean_high": mean_high}
        here = asked.log.demonstrations[which] if len(asked.log) > 1 else None
        answer.warnings += [
            replace(notice, demonstration=here) for notice in _doubts(comparison, again, asked.log.arms)
        ]
        answer.put(which, row, comparison)
    if (answer.verdict == BOUNDED).any():
        said = "Arms that are only bounded were simulated at their bound (halfway between two), and keep their bounds."
        answer.notes.append(Notice("bounded-kept", said))
    answer.notes.append(
        Notice("bootstrap", f"Intervals are read off {resamples:,} simulations at the estimate, from seed {seed}.")
    )
    return answer


def instance_at(
    asked: Request, comparison: Comparison, low: NDArray[np.float64], high: NDArray[np.float64]
) -> Instance:
    """Return the instance that the estimate describes; means are counted from the best arm's, or from 0."""
    within = np.where(np.isnan(high), comparison.below, (low + high) / 2)
    gaps = np.where(np.isnan(comparison.gap), within, comparison.gap)
    gaps = np.where(np.isnan(gaps), np.nanmax(gaps, initial=0.0), gaps)  # of an arm never seen nothing is known
    gaps[comparison.best.argmax()] = 0.0  # of several that may be best, the first
    means = _best_mean(asked, comparison) - gaps
    if asked.noise.sigma is None:
        return Instance(np.clip(means, 0.0, 1.0), Bernoulli(), arms=asked.log.arms)
    return Instance(means, Gaussian(asked.noise.sigma), arms=asked.log.arms)


def _best_mean(asked: Request, comparison: Comparison) -> float:
    """Return the best arm's mean as far as it is known; 0 where only gaps count."""
    anchor: Anchor | None = asked.anchor
    if anchor is None:
        if asked.noise.sigma is None:
            raise NotIdentifiable(
                "bootstrap: rewards of 0 and 1 are simulated from means, and gaps alone give none; give best_mean or "
                "an anchor."
            )
        return 0.0
    shift = 0.0 if anchor.arm is None else float(np.nan_to_num(comparison.gap[anchor.arm]))
    return anchor.value + shift


def _ends(
    points: NDArray[np.float64],
    spread: NDArray[np.float64],
    strayed: NDArray[np.float64],
    spreads: NDArray[np.float64],
    tail: float,
) -> NDArray[np.float64]:
    """Return the low and high ends, one column an arm: the point less the quantiles of how far simulations stray.

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
    found, estimated = [], comparison.verdict == ESTIMATED
    other = 1 - np.mean((again.best & comparison.best).any(axis=-1) & (again.best.sum(axis=-1) == 1))
    if comparison.best.sum() == 1 and other > OFTEN:
        said = (
            f"In {other:.0%} of the simulations at the estimate another arm, or none, was found best: the record "
            "hardly tells which is."
        )
        found.append(Notice("best-uncertain", said, arm=arms[int(comparison.best.argmax())]))
    missing = np.mean((again.verdict == BOUNDED), axis=0) * estimated
    if missing.max(initial=0.0) > OFTEN:
        at = int(missing.argmax())
        said = (
            f'Arm "{arms[at]}" had no estimate in {missing[at]:.0%} of the simulations at the estimate: its interval '
            "rests on the others, and is likely too short."
        )
        found.append(Notice("often-bounded", said, arm=arms[at]))
    return found
