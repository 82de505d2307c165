"""Does a rule fit a record? The check behind every answer.

Three tests share the probability of a false alarm. One *simulates* the rule at the means that were found and compares
statistics of the record (`predictive`): it notices whatever is out of the ordinary, for every rule. The others
*predict* the decisions one by one (`decisions`) and look for what other rules would do instead (`rivals`): they tell
close kin apart, for index rules with normal rewards. A rule that chooses at random is compared with index rules, and
with choices that depend on no reward. Beside the verdict, the same simulations show whether an arm's value drifted
(`predictive`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule, RecentIndexRule
from unbandit.errors import InferenceError, LogError
from unbandit.fit import IF, ONE_BY_ONE, Check, FitVerdict, Statistic, Wording, not_checked, short_name
from unbandit.formatting import capitalise, counted
from unbandit.inference.clouds import run_filters
from unbandit.inference.decisions import (
    Decisions,
    Predictions,
    Residuals,
    by_evidence,
    decisions_of,
    predict,
    residuals,
)
from unbandit.inference.draws import check_rewards, draw_means
from unbandit.inference.filter import systematic
from unbandit.inference.predictive import (
    POSSIBLE,
    ArmDrift,
    compare,
    drift_of,
    longer_in_turn,
    shows_drift,
    statistics_of,
    wordings,
)
from unbandit.inference.prior import NormalPrior, belief_of, usual_prior
from unbandit.inference.rivals import (
    NEARLY_AS_PROBABLE,
    RANDOM,
    RIVAL_PARTICLES,
    UNIFORM,
    Odds,
    Rival,
    odds_of_chance,
    odds_of_numbers,
    odds_of_rivals,
    predicts,
    random_choices,
    rivals_of,
    weights_of,
)
from unbandit.inference.steps import check_decisions, check_late_opening, reading_of
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.log import ActionLog
from unbandit.log.columns import noun_of, only

if TYPE_CHECKING:
    from unbandit.log.availability import Availability
    from unbandit.log.partial import PartialLog, ThinnedLog

DOES_NOT_FIT = 0.01  # at this probability or a smaller one
SHARES = {"decisions": 0.37, "evidence": 0.37, "simulations": 0.26}  # of the error probability that each test may use
BY_CHANCE = {"simulations": 0.74, "odds": 0.26}  # the same where decisions are not predicted; all odds share theirs
SIMULATIONS = 399  # enough that a record beyond all of them does not fit, with the share of this test
MOST_ROUNDS = 10_000  # of the record that are compared with simulations
MOST_ROUNDS_OF_PART = 100_000  # that are simulated to show the rows of a part of a run
MOST_DECISIONS, DECISIONS_BY_ARMS = 2_000, 16_000  # that are predicted, and these times arms
MOST_COMPARED = 1_000  # rounds in which a rule that chooses at random is compared with index rules
PARTICLES = 64  # of each of the rule's two clouds; a rival has one of `RIVAL_PARTICLES`
POSTERIOR_PARTICLES = 400  # where means come from no answer
NO_PROBABILITY = "the probability of this log could not be computed"
EXTENSION, MOST_EXTENSIONS = 8, 6  # of standard deviations tried where none was given, in powers of the root of 2
MOST_CHECKED, FEWEST_CHECKED = 20, 4  # of more demonstrations some are checked, evenly spread
MOST_CHECKED_ROUNDS = 12_000  # rounds of demonstrations that are checked, roughly


@dataclass(frozen=True, eq=False)
class AnsweredMeans:
    """What an answer says about the means of one demonstration."""

    gap: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    z: float  # how many deviations an interval reaches
    mean: NDArray[np.float64] | None = None
    draws: NDArray[np.float64] | None = None  # (draws, arms), of a posterior

    @property
    def says_anything(self) -> bool:
        """Return whether any mean can be drawn from it."""
        return self.draws is not None or bool(np.isfinite(self.low + self.gap)[self.gap != 0].any())

    @property
    def size(self) -> float:
        """Return the typical size of a gap: its root mean square, with bounds for what is only bounded."""
        known = np.where(np.isfinite(self.gap), self.gap, np.where(np.isfinite(self.low), self.low, np.nan))
        return float(np.sqrt(np.nansum(known**2) / max(np.isfinite(known).sum() - 1, 1)))

    def draw(self, number: int, noise: Noise, generator: np.random.Generator) -> NDArray[np.float64]:
        """Draw sets of means, (number, arms): from the posterior, or from the intervals."""
        if self.draws is not None:
            return np.asarray(self.draws[generator.integers(len(self.draws), size=number)])
        arms, typical = self.gap.size, max(self.size, 0.2 * noise.deviation)
        gaps = np.zeros((number, arms))
        for arm in range(arms):
            low, high = self.low[arm], self.high[arm]
            if self.gap[arm] == 0 and not np.isfinite(high):  # the best arm
                continue
            if np.isfinite(self.gap[arm]) and np.isfinite(low + high):
                drawn = (low + high) / 2 + (high - low) / (2 * self.z) * generator.standard_normal(number)
                gaps[:, arm] = np.abs(drawn)
            elif np.isfinite(high):
                gaps[:, arm] = generator.uniform(max(low, 0.0) if np.isfinite(low) else 0.0, high, number)
            else:
                gaps[:, arm] = (max(low, 0.0) if np.isfinite(low) else 0.0) + generator.exponential(typical, number)
        if not isinstance(noise, Bernoulli):
            return np.asarray(-gaps)
        top = np.clip(gaps.max(axis=1), 0.0, 1.0)
        level = top + (1 - top) * generator.random(number)
        if self.mean is not None and np.isfinite(self.mean + self.gap).any():
            level[:] = np.nanmedian((self.mean + self.gap)[np.isfinite(self.mean + self.gap)])
        return np.asarray(np.clip(level[:, None] - gaps, 0.0, 1.0))


def check_log(
    log: ActionLog, rule: Demonstrator, noise: Noise, horizons: Sequence[int],
    answered: Callable[[int], AnsweredMeans | None] | None, *, noise_known: bool = True, seed: int = 0,
    threads: int | None = None, part: PartialLog | ThinnedLog | None = None,
    availability: Availability | None = None, alone: bool = True, drifts: list[ArmDrift] | None = None,
) -> Check:  # fmt: skip
    """Check every demonstration, or of many some, and summarise; `answered` returns what was answered for one.

    Where the log has the rows of part of a run, that `part` is simulated too. A rule that is not `alone` is weighed
    against others elsewhere: that it is not compared with them here is not worth a word. `drifts` is filled in with
    what each demonstration shows of drift, where it can show any.
    """
    several, played = len(log), np.flatnonzero(log.lengths)
    if not played.size:
        return not_checked("There are no rounds.")
    length = float(np.mean(np.minimum(log.lengths[played], MOST_DECISIONS)))
    number = min(played.size, int(np.clip(MOST_CHECKED_ROUNDS / length, FEWEST_CHECKED, MOST_CHECKED)))
    chosen = played[np.unique(np.linspace(0, played.size - 1, number).round().astype(int))].tolist()
    checked = []
    for which in chosen:
        own = None if answered is None else answered(which)
        shown = None if part is None else (part, which)
        request = _Request(
            log.select(which), rule, noise, horizons[which], own, noise_known, seed, threads, shown, availability,
            alone,
        )  # fmt: skip
        checked.append(request.in_any_convention())
        if drifts is not None:
            drifts += request.drifts
    if several == 1:
        return checked[0]
    return check_together(checked, only(log.demonstrations, *chosen), several)


def check_together(found: Sequence[Check], names: Sequence[str], several: int) -> Check:
    """Summarise the checks of several demonstrations: by Simes' test, and by how many of them do not fit."""
    known = sorted((each.p_value, at) for at, each in enumerate(found) if each.p_value is not None)
    if not known:
        return found[0]
    number = len(known)
    failed = tuple(name for name, each in zip(names, found, strict=True) if each.verdict == "does not fit")
    by_values = min(value * number / (rank + 1) for rank, (value, _) in enumerate(known))
    together = by_values if number == 1 else min(1.0, 2 * min(by_values, _as_many(len(failed), number)))
    fits = together > DOES_NOT_FIT and 2 * len(failed) <= number
    worst = found[known[0][1]]
    were, do = "was" if number == 1 else "were", "does" if len(failed) == 1 else "do"
    passed = number - len(failed)
    parts = [] if number == several else [f"Of {counted(several, noun_of(names))} {number:,} {were} checked."]
    if failed:
        first = f'{noun_of(names).capitalize()} "{names[known[0][1]]}", the one that fits worst: {worst.reason}'
        chance = ", as may happen by chance" if fits else ""
        others = f"; {passed:,} {'fits' if passed == 1 else 'fit'}" if passed else ""
        parts.append(f"{len(failed):,} of {number:,} {do} not fit{chance}{others}. {first}")
    else:
        parts += sorted({each.reason for each in found if each.reason})
    verdict: FitVerdict = "fits" if fits else "does not fit"
    sigmas = [each.sigma for each in found if each.sigma is not None]
    return Check(
        verdict, together, worst.simulations, " ".join(parts) or None, worst.statistics,
        () if fits else worst.instead, number, failed, all(each.weighed for each in found),
        float(np.median(sigmas)) if sigmas else None,
    )  # fmt: skip


def _as_many(failed: int, number: int) -> float:
    """Return the probability that so many demonstrations of the rule, or more, do not fit."""
    each = (math.comb(number, k) * DOES_NOT_FIT**k * (1 - DOES_NOT_FIT) ** (number - k) for k in range(failed))
    return max(0.0, 1.0 - math.fsum(each))


@dataclass(frozen=True, eq=False)
class _Request:
    """One demonstration to check."""

    log: ActionLog
    rule: Demonstrator
    noise: Noise
    horizon: int
    found: AnsweredMeans | None
    noise_known: bool
    seed: int
    threads: int | None
    part: tuple[PartialLog | ThinnedLog, int] | None = (
        None  # of a run that the log shows, and which of its demonstrations
    )
    availability: Availability | None = None  # of arms that were not there in all rounds
    alone: bool = True
    drifts: list[ArmDrift] = field(default_factory=list)  # filled in: what the log shows of drift, if anything
    sigmas: list[float] = field(default_factory=list)  # filled in: the deviation that fits best, if none is known

    def in_any_convention(self) -> Check:
        """Check the rule; where it does not fit, also as other implementations play it."""
        first = self._with_sigma()
        for other in self.rule.conventions(self.noise) if first.verdict == "does not fit" else ():
            asked = replace(self, rule=other, drifts=[], sigmas=[])
            again = asked._with_sigma()
            if again.verdict == "fits":
                self.drifts[:] = asked.drifts
                return replace(again, reason=" ".join(filter(None, (f"It fits as {other}.", again.reason))))
        return first

    def _with_sigma(self) -> Check:
        return replace(self.check(), sigma=next(iter(self.sigmas), None))

    def check(self) -> Check:
        arms, length = len(self.log.arms), int(self.log.lengths[0])
        rule, rounds = self.rule.for_arms(arms), min(length, max(MOST_ROUNDS, 4 * arms))
        if length < 2 * arms:
            return not_checked(f"{length} rounds of {arms} arms are too few to compare.")
        whole, forgets, there = self.part is None, isinstance(rule, RecentIndexRule), self.availability
        if self.part is not None and self._played(rounds) > MOST_ROUNDS_OF_PART:
            return not_checked(f"The log shows too little of {self._played(rounds):,} rounds to simulate all of them.")
        predicted = whole and predicts(rule, self.noise, there) and self._decided() >= 4 * arms
        if not whole and (self.found is None or not self.found.says_anything):
            return not_checked("No gap was estimated, so there is nothing to simulate.")
        is_thinned = self.part is not None and hasattr(self.part[0], "kept")
        if is_thinned and self.found is not None and np.isnan(self.found.gap).any():
            # Simulated at its bound, an arm would be pulled too often.
            return not_checked("Rounds are missing, and too little is known about some arm to simulate it.")
        late = rule.random_delay is not None or (isinstance(rule, IndexRule) and rule.is_late)
        try:
            check_rewards(self.log, self.noise)
            if whole and not forgets:  # no filter reads rules that forget
                start = self.log.select(0, rounds) if isinstance(rule, IndexRule) else self.log
                slow = late or getattr(rule, "batch", 1) > 1
                if late and there is None:
                    check_late_opening(start, rule)
                elif there is not None and slow and isinstance(rule, IndexRule):
                    check_decisions(start, rule, there)
                elif there is None or (isinstance(rule, IndexRule | RandomisedRule) and not slow):
                    reading_of(start, 0, rule, self.horizon, there)
        except (InferenceError, LogError) as refusal:
            return self._verdict(0.0, capitalise(str(refusal)), ())
        if (forgets or (there is not None and not predicted)) and (self.found is None or not self.found.says_anything):
            return not_checked("No gap is known, and the rule can only be simulated at one.")
        if late and (self.found is None or not self.found.says_anything):
            return not_checked("No gap was estimated, so there is nothing to simulate.")
        noise, notes = self.noise, []
        aimed = rule if predicted and isinstance(rule, IndexRule) else None
        if not self.noise_known and not isinstance(noise, Bernoulli):
            if aimed is None:
                return not_checked("The standard deviation of a reward is not known, and this rule does not show it.")
            fitted = self._fitted_noise(aimed)
            if fitted is None:
                return not_checked("No standard deviation of a reward that was tried makes the log probable.")
            noise = fitted
            self.sigmas.append(noise.deviation)
            notes.append(
                f"The check takes a standard deviation of {noise.deviation:.2g} per reward, which fits the log best."
            )
        decided = None if aimed is None else self._predicted(aimed, noise)
        if decided is None and there is not None and (self.found is None or not self.found.says_anything):
            return not_checked("No decision could be predicted, and no gap is known that the rule can be simulated at.")
        try:
            means = self._means(rule, noise, decided)
        except InferenceError as refusal:
            return self._verdict(0.0, capitalise(str(refusal)), ())
        own, played = self.log.demonstration(0)[:rounds], self._simulated(rule, noise, means, rounds)
        statistics, by_simulation = compare(
            statistics_of(own[None], arms), statistics_of(played, arms), wordings(arms, rounds)
        )
        drift = self._drift(rule, noise, own, played)
        moved = self.drifts[-1] if drift and self.drifts[-1].p_value <= POSSIBLE else None
        if whole and there is None and (longer := longer_in_turn(rule, own, played, arms)) is not None:
            return self._verdict(1 / (1 + SIMULATIONS), longer, (*statistics, *drift), SIMULATIONS)
        if rounds < length:
            notes.append(f"Simulations cover the first {rounds:,} of {length:,} rounds.")
        if aimed is not None and decided is None:
            notes.append("No decision could be predicted, so only simulations were compared.")
        if decided is None:
            if by_simulation is None:
                return not_checked("All simulations of this rule are alike, so there is nothing to compare.")
            odds, numbers = None, None
            if isinstance(rule, RandomisedRule):
                obstacle = self._obstacle_to_odds(rule, late)
                odds = self._odds(odds_of_rivals, rule, noise, means) if obstacle is None else None
                asks = self.alone and obstacle is None  # `identify` compares numbers itself
                numbers = self._odds(odds_of_numbers, rule, noise, means) if asks else None
                if odds is None and self.alone and by_simulation > DOES_NOT_FIT:
                    notes.append(f"Not compared with index rules such as UCB1, because {obstacle or NO_PROBABILITY}.")
            elif isinstance(rule, IndexRule) and not forgets and self._obstacle_to_odds(rule, late) is None:
                try:
                    odds = self._odds(odds_of_chance, rule, noise, means)
                except InferenceError as refusal:
                    return replace(self._verdict(0.0, _unexplained(refusal), statistics, SIMULATIONS), weighed=True)
            weighed = [each for each in (odds, numbers) if each is not None]
            if not weighed:
                reason = _said(by_simulation, _furthest(statistics), notes)
                return self._verdict(by_simulation, reason, (*statistics, *drift), SIMULATIONS)
            value, names = by_simulation / BY_CHANCE["simulations"], tuple[str, ...]()
            reason = _furthest(statistics)
            for each in weighed:
                names = names or (each.names if each.log_ratio > each.room else ())
                if (by_odds := each.p_value * len(weighed) / BY_CHANCE["odds"]) < value:
                    value, reason, names = by_odds, _more_probable(each), each.names
            found = self._verdict(value, _said(value, reason, notes), (*statistics, *drift), SIMULATIONS, names)
            return replace(found, weighed=odds is not None)
        values = {
            "decisions": decided.p_value, "evidence": decided.by_evidence,
            "simulations": math.inf if by_simulation is None else by_simulation,
        }  # fmt: skip
        value, test = min((value / SHARES[name], name) for name, value in values.items())
        statistics = (decided.switches, *statistics)
        if decided.number < length:
            notes.append(f"The first {decided.number:,} decisions were predicted one by one.")
        reason = _furthest(statistics) if test == "simulations" else decided.reason(moved)
        instead = decided.instead(moved)
        return self._verdict(value, _said(value, reason, notes), (*statistics, *drift), SIMULATIONS, instead)

    def _verdict(
        self, value: float, reason: str | None, statistics: tuple[Statistic, ...], simulations: int = 0,
        instead: tuple[str, ...] = (),
    ) -> Check:  # fmt: skip
        fits = value > DOES_NOT_FIT
        failed = () if fits else (self.log.demonstrations[0],)
        verdict: FitVerdict = "fits" if fits else "does not fit"
        return Check(verdict, min(1.0, value), simulations, reason, statistics, () if fits else instead, 1, failed)

    def _played(self, rounds: int) -> int:
        """Return how many rounds of a run show as many rows."""
        return rounds if self.part is None else self.part[0].played(self.part[1], rounds)

    def _seed(self, number: int) -> int:
        """Return another seed, still one of 64 bits."""
        return (self.seed + number) % 2**64

    def _decided(self) -> int:
        """Return how many rounds are predicted one by one."""
        most = min(MOST_DECISIONS, DECISIONS_BY_ARMS // len(self.log.arms))
        return int(min(self.log.lengths[0], most))

    def _prior(self, noise: Noise) -> NormalPrior:
        size = 2.0 * noise.deviation if self.found is None else self.found.size
        return NormalPrior(0.0, max(size, 0.2 * noise.deviation))

    def _lead(self, prior: NormalPrior) -> float:
        """Return by how much the best arm is better than the next, as the answer has it."""
        gaps = np.zeros(0) if self.found is None else np.sort(self.found.gap[np.isfinite(self.found.gap)])
        return float(gaps[1]) if gaps.size > 1 and gaps[1] > 0 else prior.deviation

    def _fitted_noise(self, rule: IndexRule) -> Gaussian | None:
        """Return the noise under which the rule makes the record most probable; None if that is beyond all reason."""
        start, found = self.log.select(0, self._decided()), dict[int, float]()

        def evidence(exponent: int) -> float:
            noise = _noise(exponent)
            given = (start, rule, noise, self._prior(noise), self.horizon, RIVAL_PARTICLES)
            return predict(*given, seed=self.seed, evidence_only=True, there=self.availability).log_evidence

        size = self.found.size if self.found is not None and self.found.size > 0 else 1.0
        low, high = (round(2 * math.log2(size)) + away for away in (-EXTENSION, EXTENSION))
        for _ in range(MOST_EXTENSIONS):
            new = [exponent for exponent in range(low, high + 1) if exponent not in found]
            values = checks.in_threads(evidence, [(each,) for each in new], checks.threads(self.threads))
            found |= dict(zip(new, values, strict=True))
            best = max(found, key=found.__getitem__)
            if found[best] == -math.inf:
                break
            if min(found) < best < max(found):
                return _noise(best)
            low, high = (best - EXTENSION, best - 1) if best == min(found) else (best + 1, best + EXTENSION)
        return None

    def _predicted(self, rule: IndexRule, noise: Noise) -> _Decided | None:
        """Let the rule and its rivals predict the decisions; None where the rule's own particles do not survive."""
        assert isinstance(noise, Gaussian)
        start, prior = self.log.select(0, self._decided()), self._prior(noise)
        there = self.availability
        rivals = rivals_of(rule, noise, start, self._lead(prior), batched=there is None)
        threads = checks.threads(self.threads)

        def by_rule(seed: int) -> Predictions:
            return predict(start, rule, noise, prior, self.horizon, PARTICLES, seed=seed, there=there)

        first, second = checks.in_threads(by_rule, [(self.seed,), (self._seed(1),)], threads)
        if not (math.isfinite(first.log_evidence) and math.isfinite(second.log_evidence)):
            return None

        def by_rival(one: Rival) -> Predictions | None:
            try:
                return predict(
                    start, one.rule, one.noise, prior, self.horizon, RIVAL_PARTICLES, seed=self._seed(2),
                    drift=one.drift, unless_below=first, there=there,
                )  # fmt: skip
            except InferenceError:  # a rival with another opening cannot have made it
                return None

        others = checks.in_threads(by_rival, [(each,) for each in rivals], threads)
        decisions = decisions_of(start, rule.initial, rule.batch, there)
        known = {each.name: other for each, other in zip(rivals, others, strict=True) if other is not None}
        every = {**known, **random_choices(decisions)}
        weights = weights_of(rule, rivals)
        tested, length = residuals(decisions, (first, second), every), int(self.log.lengths[0])
        drifting = {
            each.name: (self.log.arms[each.drift[0]], each.drift[1]) for each in rivals if each.drift is not None
        }
        return _Decided(
            decisions, (first, second), every, weights, tested, self._decided(), length, self.seed, drifting
        )

    def _obstacle_to_odds(self, rule: RandomisedRule | IndexRule, late: bool) -> str | None:
        """Return why a rule is not compared with others by the probability of the log; None where it is."""
        arms, length = len(self.log.arms), int(self.log.lengths[0])
        obstacles = {
            "rounds are missing from the log": self.part is not None,
            "arms arrive late": self.availability is not None and self.availability.arrives,
            "rewards come late": late,
            "decisions are made in batches": rule.batch > 1,
            "the log has rewards": self.log.rewards is not None,
            f"{length:,} rounds of {arms} arms are too few": length < 4 * arms,
            f"{arms} arms are too many": min(self._decided(), MOST_COMPARED) < 4 * arms,
        }
        return next((why for why, holds in obstacles.items() if holds), None)

    def _odds(
        self, method: Callable[..., Odds | None], rule: RandomisedRule | IndexRule, noise: Noise,
        means: NDArray[np.float64],
    ) -> Odds | None:  # fmt: skip
        """Compare a rule with others by the probability of the log, by one method; None where its own is not known.

        Its own prior is around the means that were found, and wide: it has the benefit of the doubt.
        """
        decided = min(self._decided(), MOST_COMPARED)
        prior = usual_prior(noise, float(means.mean()))
        if isinstance(prior, NormalPrior):
            prior = NormalPrior(prior.mean, max(prior.deviation, 2 * float(means.std())))
        start, threads = self.log.select(0, decided), checks.threads(self.threads)
        return method(start, rule, noise, prior, self.horizon, self._seed(3), threads, self.availability)

    def _means(self, rule: Demonstrator, noise: Noise, decided: _Decided | None) -> NDArray[np.float64]:
        """Draw the means to simulate at."""
        generator, number = np.random.default_rng([self.seed, 7]), SIMULATIONS
        noise_known = self.noise_known or isinstance(noise, Bernoulli)
        if self.found is not None and self.found.says_anything and (noise_known or decided is None):
            return self.found.draw(number, noise, generator)
        if decided is not None:
            return decided.means(number, noise, self.log, generator)
        belief = belief_of(usual_prior(noise, None), len(self.log.arms), noise, None)
        start = self.log.select(0, min(int(self.log.lengths[0]), MOST_DECISIONS))
        clouds = run_filters(
            start, rule, belief, [self.horizon], POSTERIOR_PARTICLES, 1, self.seed, 1, keep_paths=False, tolerant=True,
            relaxing=True,
        )  # fmt: skip
        means = draw_means(clouds.passes[0][-1], belief, number, self.seed, 0)
        return np.clip(means, 0.0, 1.0) if isinstance(noise, Bernoulli) else means

    def _simulated(
        self, rule: Demonstrator, noise: Noise, means: NDArray[np.float64], rounds: int
    ) -> NDArray[Any]:  # fmt: skip
        """Simulate the rule, and return of every run what the log has of its own."""
        played = rule.demonstrate_at(
            means,
            noise,
            self.horizon,
            length=self._played(rounds),
            seed=self._seed(1),
            threads=self.threads,
            availability=self.availability,
        )
        if self.part is None:
            return played
        part, which = self.part
        return part.rows_of(which, played)

    def _drift(
        self, rule: Demonstrator, noise: Noise, own: NDArray[Any], played: NDArray[Any]
    ) -> tuple[Statistic, ...]:  # fmt: skip
        """Look for drift in whole runs of arms that were all there, with rewards whose noise is known; fill it in."""
        told = self.found is not None and (self.noise_known or isinstance(noise, Bernoulli))
        whole = self.part is None and self.availability is None
        if not (told and whole and isinstance(rule, IndexRule) and shows_drift(rule, len(self.log.arms))):
            return ()
        name = self.log.demonstrations[0]
        found = drift_of(own, played, rule, self.horizon, noise.deviation, self.log.arms, name)
        if found is None:
            return ()
        self.drifts.append(found[0])
        return found[1:]


@dataclass(frozen=True, eq=False)
class _Decided:
    """A record whose decisions were predicted one by one."""

    decisions: Decisions
    own: tuple[Predictions, Predictions]
    others: Mapping[str, Predictions]
    weights: Mapping[str, float]  # of the others, before anything is seen
    tested: Residuals
    number: int  # of rounds that were predicted
    length: int  # of the log
    seed: int
    drifting: Mapping[str, tuple[str, float]]  # of the others those with an arm that drifts, and by how much

    @cached_property
    def p_value(self) -> float:
        return self.tested.p_value(self.seed)

    @property
    def by_evidence(self) -> float:
        return by_evidence(self.own, self.others, self.weights, self.tested)

    @property
    def switches(self) -> Statistic:
        """Return how often the arm changed, beside how often it would have, given the choices before each."""
        chance = 1 - (self.own[0].repeats + self.own[1].repeats) / 2
        known = ~np.isnan(chance)
        chance = chance[known]
        expected, spread = float(chance.sum()), float(np.sqrt((chance * (1 - chance)).sum()))
        observed = float((~self.decisions.again)[known].sum())
        reach = 1.96 * spread
        off = abs(observed - expected) / max(spread, 1e-9)
        where = "" if self.number == self.length else f" in the first {self.number:,} rounds"
        wording = Wording(
            f"switches after the opening{where}", "After its opening the log switches arms",
            "given the choices before each, this rule would switch", where=where,
        )  # fmt: skip
        return Statistic(
            ONE_BY_ONE, observed, max(0.0, expected - reach), expected, expected + reach,
            math.erfc(off * math.sqrt(0.5)), off, wording,
        )  # fmt: skip

    def reason(self, moved: ArmDrift | None = None) -> str:
        """Say what looks different."""
        scores, better = self.tested.scores, self.instead(moved)
        name = self.tested.names[int(scores.argmax())] if scores.size else ""
        parts = [self.switches.sentence] if self.switches.outside else []
        if better and better[0] == RANDOM:
            parts.append("Arms follow each other as if they were chosen at random.")
        elif better and not parts:
            rule, _, condition = short_name(better[0]).partition(IF)
            condition = f" if {condition}" if condition else ""
            parts.append(f"The moments at which it changes arms fit {rule} better{condition}.")
        elif not parts and name and name not in self.others:
            kind, later = name.split()[0], " in its later part" if name.endswith("later") else ""
            parts.append(f"The log stays with an arm {kind} often than this rule would{later}.")
        return " ".join(parts or ["It changes arms at other moments than this rule would."])

    def instead(self, moved: ArmDrift | None = None) -> tuple[str, ...]:
        """Return the rivals that make the record more probable than the rule does, the most probable first.

        A drift that contradicts what the log shows of drift, if it does, is left out: it may stand for something else
        in the rounds that are predicted.
        """
        own = max(each.log_evidence for each in self.own)
        odd = {name for name, (arm, change) in self.drifting.items() if moved and not moved.agrees(arm, change)}
        values = {name: other.log_evidence for name, other in self.others.items() if name not in odd}
        best = max([own, *values.values()])
        near = sorted((-value, name) for name, value in values.items() if value > max(own, best - NEARLY_AS_PROBABLE))
        return tuple(dict.fromkeys(RANDOM if name.startswith(RANDOM) else name for _, name in near))

    def means(
        self, number: int, noise: Noise, log: ActionLog, generator: np.random.Generator
    ) -> NDArray[np.float64]:  # fmt: skip
        """Draw means from the rule's clouds."""
        particles, log_weights = self.own[0].means, self.own[0].log_weights
        chosen = systematic(log_weights, number, generator)
        pulls = np.maximum(np.bincount(log.demonstration(0)[: self.number], minlength=len(log.arms)), 1)
        drawn = particles[chosen] + noise.deviation / np.sqrt(pulls) * generator.standard_normal((number, pulls.size))
        return np.asarray(drawn)


def _noise(exponent: int) -> Gaussian:
    return Gaussian(2.0 ** (exponent / 2))


def _unexplained(refusal: InferenceError) -> str:
    """Say where the rule can no longer have made the log."""
    where = "" if refusal.round is None else f" up to round {refusal.round:,}"
    return f"No sequence of rewards that was tried makes the rule choose as in the log{where}."


def _more_probable(odds: Odds) -> str:
    """Say how much more probable others make the log."""
    others = "under deterministic rules"
    if odds.names[0] in (RANDOM, UNIFORM):
        others = "if arms are chosen at random, whatever rewards they bring"
    elif odds.same_rule:
        others = f"under {odds.names[0]}"
    about = "at least" if odds.same_rule else "about"
    return f"The log is {about} 10^{odds.log_ratio / math.log(10):.0f} times as probable {others}."


def _furthest(statistics: Sequence[Statistic]) -> str:
    """Say which statistic looks most different."""
    return max(statistics, key=lambda each: each.distance).sentence


def _said(value: float, reason: str, notes: Sequence[str]) -> str | None:
    """Return what looks different, where the rule does not fit, and what is worth noting."""
    return " ".join([reason, *notes] if value <= DOES_NOT_FIT else notes) or None
