"""What a log with contexts says: coefficients, the best arm at the average context, and values of other contexts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.contexts.check import NOTED, by_chance_notice
from unbandit.contexts.design import Design, design_of
from unbandit.contexts.posterior import ContextPosterior, context_posterior
from unbandit.contexts.table import read_features
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import MISREAD, Audience, Notice, UnbanditError, printable, python_option
from unbandit.fit import Check
from unbandit.formatting import counted, json_number, number
from unbandit.inference.check import check_together
from unbandit.log.columns import DEMONSTRATION, noun_of
from unbandit.log.formats import sources_of
from unbandit.log.sources import Layout, Paths
from unbandit.progress import current_work, interruptible
from unbandit.tables import Finding

if TYPE_CHECKING:
    from unbandit.contexts.log import ContextLog
    from unbandit.contexts.rule import LinearRule

FEWEST_DRAWS, DRAWS_BEYOND = 200, 5  # at which offers are compared, and of them beyond each end of an interval
BLOCK = 100_000  # values of offers that are compared at once
SCHEMA = "unbandit.contexts/1"


class OfferedArm(NamedTuple):
    """How often an arm's offer was the best of those in its round, and how often it was chosen."""

    arm: str
    offered: int  # rounds
    chosen: int  # of them
    best: float  # the expected share of these rounds in which no other offer was worth more
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class ContextEstimate(Finding):
    """Coefficients of a linear model from a log with contexts, and what follows from them.

    Attributes
    ----------
    posteriors
        The draws behind all of it, by demonstration: each is a learner that was read on its own.
    offers
        Likewise, how often every arm's offer was the best of its round, the most often best arm first.
    best
        Likewise, the probability of each arm to be the best one: at the average context in a disjoint model, and at its
        own features in a shared one. Empty where features of an arm change in a shared model: which arm is best then
        depends on the round.
    predictions
        The value of every row that was asked for, with its interval; None if none was.
    notices
        What may be wrong, and what to know about how the log was read.
    noun
        What a demonstration is called, by the column of their names: "subject", say.
    """

    posteriors: Mapping[str, ContextPosterior]
    offers: Mapping[str, tuple[OfferedArm, ...]]
    best: Mapping[str, Mapping[str, float]]
    predictions: pl.DataFrame | None = None
    notices: tuple[Notice, ...] = ()
    noun: str = DEMONSTRATION

    def __repr__(self) -> str:
        many = counted(len(self.posterior.names), "coefficient")
        if self.several:
            of = counted(len(self.posteriors), self.noun)
            return f"<ContextEstimate: {many} of each of {of}, {self.posterior.rule}>"
        first = next(iter(self.offers.values()))[0]
        return f"<ContextEstimate: {many}, {self.posterior.rule}, {first.arm} best in {first.best:.0%} of its rounds>"

    @property
    def posterior(self) -> ContextPosterior:
        """Return the posterior of the first demonstration, mostly the only one."""
        return next(iter(self.posteriors.values()))

    @property
    def several(self) -> bool:
        """Return whether there are several demonstrations."""
        return len(self.posteriors) > 1

    @property
    def check(self) -> Check:
        """Return whether the rule fits; several demonstrations are judged together, and how many they are counts."""
        checked = {name: each.check for name, each in self.posteriors.items() if each.check.p_value is not None}
        if not self.several or not checked:
            return self.posterior.check
        together = check_together(list(checked.values()), list(checked), len(self.posteriors))
        if together.failed:
            return together
        worst = min(checked.values(), key=lambda each: each.p_value or 0.0)
        said = f"{len(checked):,} of {counted(len(checked), self.noun)} fit. The one that fits worst: {worst.reason}"
        return replace(together, reason=said)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per coefficient, and per demonstration if there are several."""
        return _stacked({name: found.to_frame() for name, found in self.posteriors.items()})

    def to_dict(self, audience: Audience = python_option) -> dict[str, Any]:
        """Return the answer in the form that JSON has it; of several demonstrations, those are in a list."""
        found, check = self.posterior, self.check
        answer: dict[str, Any] = {
            "schema": SCHEMA, "rule": found.rule, "method": "posterior",
            "rounds": sum(each.rounds for each in self.posteriors.values()), "level": found.level,
            "sigma": found.sigma, "prior": found.prior, "check": check.to_dict(),
        }  # fmt: skip
        if self.several:
            answer["demonstrations"] = [{"demonstration": name, **self._learner(name)} for name in self.posteriors]
        else:
            answer |= self._learner(next(iter(self.posteriors)))
        answer["notices"] = [notice.to_dict(audience) for notice in self.notices]
        answer["coefficients"] = self.to_frame().to_dicts()
        if self.predictions is not None:
            answer["predictions"] = self.predictions.to_dicts()
        return answer

    def _learner(self, name: str) -> dict[str, Any]:
        """Return what is known of one demonstration."""
        found, (low, high) = self.posteriors[name], self.posteriors[name].length()
        return {
            **({"rounds": found.rounds} if self.several else {}),
            "log_evidence": json_number(found.log_evidence),
            "direction": {"angle": json_number(found.angle)},
            "length": {"low": low, "high": high},
            "fitted": [each.to_dict() for each in found.fitted],
            "offers": [each._asdict() for each in self.offers[name]],
            "best": [{"arm": arm, "probability": chance} for arm, chance in self.best[name].items()],
        }


def estimate_contexts(
    log: ContextLog, rule: LinearRule | RuleFamily | str, *, sigma: float, prior: float = 1.0, level: float = 0.95,
    particles: int | None = None, seed: int = 0, predict: Paths | None = None, layout: Layout | None = None,
    check: bool = True, first: tuple[int, int] | None = None,
) -> ContextEstimate:  # fmt: skip
    """Estimate the coefficients of a log with contexts; `predict` is a table of contexts whose values to add.

    Several demonstrations are learners of their own, with their own coefficients. Of a log that is read in part `first`
    says how many demonstrations are, and how many rounds of each.
    """
    most, rounds = (len(log), None) if first is None else first
    noun = noun_of(log.demonstrations)
    rows = None
    if predict is not None:  # read first: what is wrong with it should not wait
        rows = read_features(sources_of(predict, layout or Layout(), unpack=True), log.feature_names)
    posteriors, offers, predictions, notices = {}, {}, {}, list[Notice]()
    best: dict[str, dict[str, float]] = {}
    for at, name in enumerate(log.demonstrations[:most]):
        alone = replace(log.select(at, rounds), reading=log.reading)
        try:
            found = context_posterior(
                alone, rule, sigma=sigma, prior=prior, level=level, particles=particles, seed=seed, check=check
            )
        except UnbanditError as error:
            text = f'In {noun} "{printable(name)}": {error.text}' if len(log) > 1 else error.text
            raise error.at(text=text) from None
        posteriors[name], offers[name], best[name] = found, offered_arms(found, alone), {}
        disjoint = found.names[0][1] is not None
        if disjoint or _has_fixed_features(alone):
            chances = found.best_at(average_context(alone, disjoint=disjoint))
            best[name] = {log.arms[arm]: float(chances[arm]) for arm in np.argsort(-chances, kind="stable")}
        if rows is not None:
            predictions[name] = _predicted(found, rows, log.arms)
        notices += [replace(each, demonstration=name) if len(log) > 1 else each for each in found.notices]
    table = None if rows is None else _stacked(predictions)
    answer = ContextEstimate(posteriors, offers, best, table, (*log.reading, *notices), noun)
    return replace(answer, notices=_without_chance(answer)) if answer.several else answer


def _without_chance(answer: ContextEstimate) -> tuple[Notice, ...]:
    """Return the notices, with a note first in place of a warning of what may happen by chance in one of several."""
    check = answer.check
    if check.verdict != "fits" or not check.failed:
        return answer.notices
    alone = {name: answer.posteriors[name] for name in check.failed}
    notes = [
        replace(by_chance_notice(each.check, each.rule, check.checked, answer.noun), demonstration=name)
        for name, each in alone.items()
    ]
    return (*notes, *(each for each in answer.notices if each.code != "does-not-fit"))


def angle_between(one: ContextEstimate, other: ContextEstimate) -> float | None:
    """Return the largest angle between the coefficients in two answers, in degrees; None if these are not the same."""
    angles = []
    for name in one.posteriors.keys() & other.posteriors.keys():
        first, second = one.posteriors[name], other.posteriors[name]
        if first.names != second.names:
            return None
        cosine = first.mean @ second.mean / (np.linalg.norm(first.mean) * np.linalg.norm(second.mean))
        angles.append(math.degrees(math.acos(min(max(float(cosine), -1.0), 1.0))))
    return max(angles, default=None)


def warnings_and_notes(log: ContextLog, notices: Sequence[Notice]) -> tuple[list[Notice], list[Notice]]:
    """Return notices about a log as warnings and notes: how it was read, that the rule fits, fitted numbers."""
    notes = [each for each in log.reading if each.code not in MISREAD]
    notes += [each for each in notices if each.code in NOTED]
    return [each for each in dict.fromkeys((*log.reading, *notices)) if each not in notes], notes


def degrees(angle: float) -> str:
    """Write an angle with its unit, from 10 degrees on without decimals."""
    written = number(angle, 2) if angle < 10 else f"{angle:.0f}"
    return "1 degree" if written == "1" else f"{written} degrees"


def _stacked(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return tables of several demonstrations as one with their names; of one, as it is."""
    if len(tables) == 1:
        return next(iter(tables.values()))
    named = (table.select(pl.lit(name).alias("demonstration"), pl.all()) for name, table in tables.items())
    return pl.concat(named)


def offered_arms(found: ContextPosterior, log: ContextLog) -> tuple[OfferedArm, ...]:
    """Return how often each arm's offer was the best of its round, over draws; of arms that were never offered none."""
    design = design_of(log, intercept=found.has_intercept, disjoint=found.names[0][1] is not None)
    least = max(FEWEST_DRAWS, math.ceil(2 * DRAWS_BEYOND / (1 - found.level)))
    thinned = found.draws[:: max(len(found.draws) // least, 1)]
    offered = np.bincount(design.codes, minlength=design.arms)
    chosen = np.bincount(design.codes[design.rows], minlength=design.arms)
    shares = interruptible(lambda: _times_best(design, thinned)) / np.maximum(offered, 1)
    low, high = np.quantile(shares, [0.5 - found.level / 2, 0.5 + found.level / 2], axis=0).tolist()
    mean = shares.mean(axis=0)
    order = [int(arm) for arm in np.argsort(-mean, kind="stable") if offered[arm]]
    return tuple(
        OfferedArm(log.arms[arm], int(offered[arm]), int(chosen[arm]), float(mean[arm]), low[arm], high[arm])
        for arm in order
    )


def _times_best(design: Design, thetas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return in how many rounds no other offer was worth more than an arm's: (vectors of parameters, arms)."""
    found, slack = np.zeros((design.arms, len(thetas))), design.rounding(thetas)
    lengths, work, done = np.diff(design.offsets), current_work(), 0
    with work.stage("Comparing offers", lengths.size, in_parts=True):
        for length in np.unique(lengths):  # rounds with as many offers are one array
            starts = design.offsets[:-1][lengths == length]
            step = max(BLOCK // (int(length) * len(thetas)), 1)
            for at in range(0, starts.size, step):
                work.end_if_stopped()
                offers = (starts[at : at + step, None] + np.arange(length)).ravel()
                values = design.values(thetas, offers).reshape(-1, length, len(thetas))
                is_best = (values >= values.max(axis=1, keepdims=True) - slack).reshape(offers.size, -1)
                order = np.argsort(design.codes[offers], kind="stable")
                arms, first = np.unique(design.codes[offers][order], return_index=True)
                found[arms] += np.add.reduceat(is_best[order], first, axis=0, dtype=np.int64)
                done += min(step, starts.size - at)
                work.reach(done)
    return found.T


def _has_fixed_features(log: ContextLog) -> bool:
    """Return whether every arm has the same features in all rounds, so that they belong to the arm."""
    order = np.argsort(log.codes, kind="stable")
    codes, features = log.codes[order], log.features[order]
    same = codes[1:] == codes[:-1]
    return bool((features[1:][same] == features[:-1][same]).all())


def average_context(log: ContextLog, *, disjoint: bool) -> NDArray[np.float64]:
    """Return the average features: of all offers, one row for a disjoint model; of the offers of each arm for a shared.

    An arm that was never offered has the average of all.
    """
    total = log.features.mean(axis=0)
    if disjoint:
        return np.asarray(total)[None]
    counts = np.bincount(log.codes, minlength=len(log.arms))
    sums = np.zeros((len(log.arms), log.features.shape[1]))
    np.add.at(sums, log.codes, log.features)
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], total)


def _predicted(found: ContextPosterior, rows: NDArray[np.float64], arms: Sequence[str]) -> pl.DataFrame:
    """Return the value of every row with its interval; in a disjoint model, for every arm."""
    mean, low, high = found.predict(rows)
    columns: dict[str, Any] = {"row": np.arange(1, len(rows) + 1)}
    if mean.ndim == 2:
        columns["row"] = np.repeat(columns["row"], len(arms))
        columns["arm"] = pl.Series(list(arms) * len(rows), dtype=pl.String)
    return pl.DataFrame(columns | {"value": mean.ravel(), "low": low.ravel(), "high": high.ravel()})
