"""Send clouds of particles through a record: a few independent ones, whose differences tell the Monte-Carlo error."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import whole
from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, RandomisedRule
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.inference.steps import steps_of, tests_of
from unbandit.kernels.rng import QUANTILE_TABLE
from unbandit.kernels.smc.cloud import Belief, Cloud, Steps
from unbandit.kernels.smc.elimination import OUT, EliminationTests, filter_elimination
from unbandit.kernels.smc.index import filter_index
from unbandit.kernels.smc.randomised import filter_randomised
from unbandit.log import ActionLog
from unbandit.tape import Tape

WORK = 1_500_000
"""About how many particles times steps a cloud has, where their number is not given."""

FEWEST, MOST = 250, 4_000
"""Particles of a cloud."""

TRIES = 16
"""Candidates for each reward, where a rule's decisions jump with its sample means."""

STRAINED = 0.005
"""In this share of steps, or one, a cloud may hold no exact explanation, where indices grow with the round."""

MARKS, KEPT = 100, 4_000_000
"""At how many rounds the sums are kept, and how many numbers a cloud keeps at most."""


class EmptiedError(InferenceError):
    """Say that no particle of a cloud explains the record: the rule cannot have made it, or it takes more of them."""


@dataclass(frozen=True, eq=False)
class Passage:
    """Hold how one cloud went through one demonstration.

    Attributes
    ----------
    pulls
        How many rewards of each arm are behind the sums.
    rounds, judged
        Of each step, and the round whose action its weights judge: the next one, where a randomised rule is looked
        ahead.
    length
        Of the demonstration.
    counts
        The pulls of each arm at each of the cloud's marks.
    strained
        Rounds whose choice no particle explains exactly.
    """

    cloud: Cloud
    pulls: NDArray[np.int64]
    rounds: NDArray[np.int64]
    judged: NDArray[np.int64]
    length: int
    counts: NDArray[np.int64]
    strained: tuple[int, ...] = ()

    def path(self) -> NDArray[np.float64]:
        """Return the sample means that each particle had at the marks, traced back: (marks, particles, arms).

        NaN for an arm not yet pulled.
        """
        cloud = self.cloud
        found, line = np.full_like(cloud.kept_sums, np.nan), np.arange(cloud.sums.shape[0])
        for mark in range(cloud.marks.size - 1, -1, -1):
            pulled = self.counts[mark] > 0
            means = cloud.kept_sums[mark][line][:, pulled] / self.counts[mark][pulled]
            found[mark][:, pulled] = means + (cloud.shift - cloud.kept_shifts[mark, line])[:, None]
            line = cloud.kept_ancestors[mark, line]
        return found


@dataclass(frozen=True, eq=False)
class Filtered:
    """Hold all clouds at the end of the record.

    Attributes
    ----------
    passages
        For each cloud its way through each demonstration; those that were emptied are left out.
    evidences
        The logarithm of the record's probability, by each cloud; minus infinity by one that was emptied.
    """

    belief: Belief
    passages: tuple[tuple[Passage, ...], ...]
    evidences: NDArray[np.float64]


def particles_for(steps: int) -> int:
    """Return how many particles a cloud has by default: fewer for a longer record, so that the work is alike.

    Examples
    --------
    >>> particles_for(500), particles_for(5_000), particles_for(10**6)
    (3000, 300, 250)
    """
    return int(min(max(WORK // max(steps, 1), FEWEST), MOST))


def filtered(
    log: ActionLog, rule: Demonstrator, belief: Belief, horizons: Sequence[int], particles: int | None, clouds: int,
    seed: int, threads: int | None, marks: bool = True, tolerant: bool = False,
) -> Filtered:  # fmt: skip
    """Send clouds through all demonstrations of a log, one after the other, as of one instance.

    Raises
    ------
    InferenceError
        If the rule cannot have made the record, or if every particle of a cloud died; where that is tolerated, of all
        clouds.
    """
    rule = rule.for_arms(len(log.arms))
    readings = [_reading(log, which, rule, horizon) for which, horizon in enumerate(horizons)]
    number = particles or particles_for(max(_steps(reading) for reading in readings))

    def one(cloud: int) -> tuple[Passage, ...] | EmptiedError:
        try:
            return _pass(log, rule, belief, horizons, readings, number, cloud, seed, marks)
        except EmptiedError as error:
            return error

    workers = min(clouds, os.cpu_count() or 1 if threads is None else whole("threads", threads))
    if workers == 1:
        found = tuple(one(cloud) for cloud in range(clouds))
    else:
        with ThreadPoolExecutor(workers) as pool:
            found = tuple(pool.map(one, range(clouds)))
    passed = tuple(passages for passages in found if not isinstance(passages, EmptiedError))
    emptied = [error for error in found if isinstance(error, EmptiedError)]
    if emptied and not (tolerant and passed):
        raise emptied[0]
    opening = sum(_opening(log, which, rule) for which in range(len(log)))
    evidences = [sum(p.cloud.increments.sum() for p in passages) + opening for passages in passed]
    return Filtered(belief, passed, np.array(evidences + [-math.inf] * len(emptied)))


def surprises(found: Filtered) -> NDArray[np.float64]:
    """Return the logarithm of each round's probability, averaged over clouds; 0 for rounds between steps."""
    rows = []
    for passages in found.passages:
        values = [np.zeros(passage.length) for passage in passages]
        for row, passage in zip(values, passages, strict=True):
            np.add.at(row, passage.judged - 1, passage.cloud.increments)
            if passage.judged.size and passage.judged[0] == 2:  # there the first two rounds are judged together
                row[:2] = row[1] / 2
        rows.append(np.concatenate(values))
    return np.asarray(np.mean(rows, axis=0))


def log_mean(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the logarithm of the mean of numbers given by their logarithms, and its standard error.

    The error is from the scatter of the numbers, or of their logarithms where that is larger: with few clouds that
    differ much, the mean is the largest one's and hardly an estimate.

    Examples
    --------
    >>> log_mean(np.array([-3.0, -3.0]))
    (-3.0, 0.0)
    """
    largest = values.max()
    shares = np.exp(values - largest)
    value = float(largest + np.log(shares.mean()))
    if values.size == 1:
        return value, math.nan
    natural = shares.std(ddof=1) / shares.mean() / math.sqrt(values.size)
    finite = values[np.isfinite(values)]
    scatter = finite.std(ddof=1) / math.sqrt(finite.size) if finite.size > 1 else 0.0
    return value, float(max(natural, scatter))


def _reading(log: ActionLog, which: int, rule: Demonstrator, horizon: int) -> Steps | EliminationTests:
    """Cut a demonstration into what the filter of the rule's kind reads."""
    actions = log.demonstration(which).astype(np.int64)
    given = log.select(which).rewards
    rewards = np.full(actions.size, np.nan) if given is None else np.array(given)
    if isinstance(rule, EliminationRule):
        return tests_of(actions, rewards, log.arms, rule, horizon)
    if isinstance(rule, IndexRule):
        return steps_of(actions, rewards, log.arms, rule.initial, rule.batch)
    if isinstance(rule, RandomisedRule):
        return steps_of(actions, rewards, log.arms, rule.initial, 1)
    raise NotIdentifiable(f"{rule.name}: there is no posterior for rules of this kind.")


def _steps(reading: Steps | EliminationTests) -> int:
    return reading.arm.size if isinstance(reading, Steps) else reading.epoch.size * reading.last.size


def _opening(log: ActionLog, which: int, rule: Demonstrator) -> float:
    """Return the logarithm of an opening's probability: 1 in the arms' order, otherwise one of all orders."""
    turns = 1 if isinstance(rule, EliminationRule) else int(getattr(rule, "initial", 0))
    arms = len(log.arms)
    head = log.demonstration(which)[: turns * arms]
    in_order = getattr(rule, "ties", "lowest") == "lowest" or not isinstance(rule, IndexRule)
    if in_order and np.array_equal(head, np.tile(np.arange(arms), turns)[: head.size]):
        return 0.0
    return -turns * math.lgamma(arms + 1)


def _pass(
    log: ActionLog, rule: Demonstrator, belief: Belief, horizons: Sequence[int],
    readings: Sequence[Steps | EliminationTests], number: int, cloud: int, seed: int, marks: bool,
) -> tuple[Passage, ...]:  # fmt: skip
    """Send one cloud through all demonstrations; what was gained in one is the past of the next."""
    arms = len(log.arms)
    past, before = _known_beforehand(log, number)
    passages: list[Passage] = []
    for which, (reading, horizon) in enumerate(zip(readings, horizons, strict=True)):
        name = np.uint64(cloud * len(readings) + which)
        state = _cloud(belief, reading, number, arms, past, before, Tape(seed).key, name, marks)
        pulls, died, rounds = _filter(rule, reading, belief, state, horizon, log.rewards is not None)
        judged = _judged(rule, reading, rounds)
        strained = np.flatnonzero(state.relaxed == number)
        growing = isinstance(rule, IndexRule) and rule.uses_round
        if died or strained.size > (max(1, STRAINED * rounds.size) if growing else 0):
            where = int(judged[died - 1 if died else strained[0]]) if rounds.size else died
            raise EmptiedError(
                f"round {where}: none of {number} particles explains the record so far under {rule}. Another rule or "
                "other parameters made it, or it takes more particles."
            )
        counts = _counts(reading, state.marks, arms)
        hard = tuple(int(judged[at]) for at in strained)
        passages.append(Passage(state, pulls, rounds, judged, int(log.lengths[which]), counts, hard))
        order = _heirs(state.log_weights, seed, int(name))
        past = (state.past + state.sums)[order]
        before = state.before + pulls
    return tuple(passages)


def _known_beforehand(log: ActionLog, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Take in all rewards that are known: the observer may learn from them at once, the rule sees each in its round."""
    arms = len(log.arms)
    past, before = np.zeros((number, arms)), np.zeros(arms)
    if log.rewards is not None and log.actions is not None:
        known = ~np.isnan(log.rewards)
        before = np.bincount(log.actions[known], minlength=arms).astype(np.float64)
        past += np.bincount(log.actions[known], weights=log.rewards[known], minlength=arms)
    return past, before


def _cloud(
    belief: Belief, reading: Steps | EliminationTests, number: int, arms: int, past: NDArray[np.float64],
    before: NDArray[np.float64], key: Any, name: np.uint64, marks: bool,
) -> Cloud:  # fmt: skip
    """Make room for a cloud."""
    steps = reading.arm.size if isinstance(reading, Steps) else reading.epoch.size
    kept = min(MARKS, max(2, KEPT // (number * arms)), steps) if marks else 0
    at = np.unique(np.linspace(0, steps - 1, kept).astype(np.int64)) if kept else np.zeros(0, np.int64)
    return Cloud(
        belief=belief, sums=np.zeros((number, arms)), past=past.copy(), before=before.copy(),
        log_weights=np.zeros(number), increments=np.zeros(steps), effective_size=np.full(steps, float(number)),
        relaxed=np.zeros(steps, np.int64), ancestors=np.zeros(number, np.int64), lineage=np.arange(number), marks=at,
        kept_sums=np.zeros((at.size, number, arms)), kept_ancestors=np.zeros((at.size, number), np.int64),
        kept_shifts=np.zeros((at.size, number)), shift=np.zeros(number), key=key, name=name, table=QUANTILE_TABLE,
    )  # fmt: skip


def _counts(reading: Steps | EliminationTests, marks: NDArray[np.int64], arms: int) -> NDArray[np.int64]:
    """Return each arm's pulls at some steps."""
    if isinstance(reading, EliminationTests):
        there = np.where(reading.fate != OUT, reading.epoch[:, None], 0)
        return np.asarray(np.maximum.accumulate(there, axis=0)[marks])
    rows = [np.bincount(reading.arm[: mark + 1], reading.count[: mark + 1], arms) for mark in marks]
    return np.array(rows, np.int64).reshape(len(rows), arms)


def _filter(
    rule: Demonstrator, reading: Steps | EliminationTests, belief: Belief, cloud: Cloud, horizon: int, some_known: bool
) -> tuple[NDArray[np.int64], int, NDArray[np.int64]]:
    """Run the filter of the rule's kind; return the pulls behind the sums, where it died, and each step's round."""
    arms = cloud.sums.shape[1]
    level = not belief.bernoulli and not some_known  # a known reward says where the level is
    if isinstance(reading, EliminationTests):
        pulls = np.zeros(arms, np.int64)
        alike = (belief.first == belief.first[0]) & (belief.second == belief.second[0]) & (cloud.before == 0)
        died = filter_elimination(reading, cloud, level, alike, pulls)
        active = (reading.fate != OUT).sum(axis=1)
        epochs = np.diff(reading.epoch, prepend=0)
        return pulls, died, np.cumsum(epochs * active)
    pulls = np.bincount(reading.arm, weights=reading.count, minlength=arms).astype(np.int64)
    if isinstance(rule, IndexRule):
        shifts, ties = rule.shifts and level, rule.ties == "random"
        parameters = rule.parameters(horizon)
        died = filter_index(parameters, reading, cloud, rule.uses_round, ties, shifts)
        return pulls, died, reading.round
    assert isinstance(rule, RandomisedRule)
    memories = np.zeros((cloud.sums.shape[0], arms, rule.columns))
    tries = 2 if belief.bernoulli else 1 if rule.smooth else TRIES
    shifts = rule.shifts and level
    died = filter_randomised(
        rule.parameters(horizon), reading, cloud, memories, rule.batch, tries, rule.smooth, shifts
    )  # fmt: skip
    return pulls, died, reading.round


def _judged(rule: Demonstrator, reading: Steps | EliminationTests, rounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the round whose action each step's weights judge."""
    if not isinstance(reading, Steps) or not isinstance(rule, RandomisedRule) or rule.batch > 1:
        return rounds
    ahead = (rounds >= reading.opening) & (rounds < rounds.size)
    return np.where(ahead, rounds + 1, rounds)


def _heirs(weights: NDArray[np.float64], seed: int, name: int) -> NDArray[np.int64]:
    """Draw particles in proportion to their weights, systematically."""
    shares = np.exp(weights - weights.max())
    places = (np.arange(weights.size) + np.random.default_rng([seed, name, 1]).random()) / weights.size
    return np.minimum(np.searchsorted(np.cumsum(shares / shares.sum()), places), weights.size - 1)
