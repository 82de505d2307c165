"""`population(log, rule)`: what a rule's parameters are in a population of participants, and in each of them."""

from __future__ import annotations

import math
import os
import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from unbandit import checks
from unbandit.demonstrators import RandomisedRule
from unbandit.demonstrators.base import Demonstrator
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import AssumptionWarning, InferenceError, Notice, NotIdentifiable, option
from unbandit.estimators.arguments import as_log, check_numbers, horizons
from unbandit.estimators.check import NOT_WANTED, wanted
from unbandit.estimators.posterior import settled_prior
from unbandit.fit import not_checked
from unbandit.formatting import counted, listed
from unbandit.hierarchy.check import check_population, said_of_population
from unbandit.hierarchy.levels import Hierarchy, PopulationDraws
from unbandit.hierarchy.likelihood import (
    PARTICLES,
    REACH,
    FreeParameter,
    Numbers,
    Participant,
    free_parameters,
    rule_of_people,
)
from unbandit.hierarchy.result import Population
from unbandit.identification.candidates import assumed_noise
from unbandit.inference import NormalPrior, Prior
from unbandit.inference.draws import check_rewards
from unbandit.inference.filter import known_rewards
from unbandit.inference.parameters import SCALED
from unbandit.inference.prior import belief_of
from unbandit.instance import Gaussian, Noise
from unbandit.kernels.smc.cloud import ArmPrior, Belief, posterior_mean
from unbandit.log import ActionLog

PLACES, DRAWS_PER_PLACE = 8, 100  # of a participant's parameters at which the arms' means are drawn, and draws at each
SHARED_PLACES, SIMULATED = 100, 8  # draws at which everybody is simulated who shares values, and simulations of each
FEW_PARTICIPANTS = 10  # below which the spread rests on its prior as much as on the participants
CHANCE = 2.0  # nats by which choices must be more probable than random ones to say anything about parameters
SILENT = 0.9  # share of the prior's deviation that is left where choices say next to nothing
EDGE, MANY_AT_EDGE = 0.5, 0.1  # distance from the end of what is searched, and share of participants there
UNLIKE = 1e-4  # probability below which participants' averages do not scatter by chance
FEWEST_EFFECTIVE = 400  # draws of the population below which its intervals are not precise


def population(
    log: ActionLog | str | os.PathLike[str] | Any,
    rule: Demonstrator | RuleFamily | str,
    *,
    values: Literal["own", "shared"] = "own",
    prior: Prior | str | None = None,
    sigma: float | None = None,
    bernoulli: bool = False,
    horizon: int | None = None,
    level: float = 0.95,
    particles: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    check: bool | None = None,
) -> Population:
    """Estimate a rule's parameters in a population of participants, and in each of them with partial pooling.

    Each demonstration is a participant with a bandit of their own. On the log odds of a number between 0 and 1, and on
    the logarithm of any other positive number, the participants' parameters are draws from a normal population, whose
    centre and spread are estimated with them. So a participant with few or uninformative choices is drawn towards the
    others. Where the log holds every reward, the choices' probability is exact; hidden rewards are integrated out.

    Parameters
    ----------
    log
        As for `estimate`, with one demonstration per participant and the order of rounds.
    rule
        A rule that chooses at random. A parameter that is given is the same for everybody; those that are left out
        differ between participants: rate and temperature of `learning-softmax`, the temperature of `softmax`, epsilon
        of `epsilon-greedy`, sigma of `thompson`. `fit` in their place says the same: `learning-softmax:fit`.
    values
        Whose the arms' values are: `own` values for each participant, or `shared` ones, the same for everybody: where
        the log holds every reward.
    prior
        On every mean, as for `posterior`; by default wide, and around the rewards where the log holds some.
    sigma
        Standard deviation of a reward. By default what the rewards show where the log holds every one; otherwise 1,
        with a warning.
    bernoulli
        Whether rewards were 0 or 1; takes the place of sigma.
    horizon
        `T` of the rule, if the log is only the beginning.
    level
        Of all intervals.
    particles
        Per cloud of an evaluation of a participant's choices; there are more where clouds differ.
    seed
        The same seed gives the same answer, on any number of threads.
    threads
        By default one per core.
    check
        Whether to check the rule: would it, with the fitted population, have made these choices? True by default.

    Raises
    ------
    NotIdentifiable
        If there is one participant, no parameter that may differ, or no order of rounds; if hidden values are shared.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.0], 0.5), horizon=50, runs=12, seed=1)
    >>> found = ub.population(log, "softmax", sigma=0.5)
    >>> [(each.parameter, each.low < 0.3 < each.high) for each in found.population]
    [('temperature', True)]
    """
    record = as_log(log, "population")
    assumed = rule_of_people(rule)
    check_numbers(level=level, sigma=sigma, bernoulli=bernoulli, rule=assumed)
    checks.one_of("values", values, ("own", "shared"))
    seed, workers = checks.seed(seed), checks.threads(threads)
    number = PARTICLES if particles is None else checks.whole("particles", particles)
    _refuse(record)
    noise, warnings, notes = _noise(record, sigma, bernoulli)
    check_rewards(record, noise)
    if not isinstance(assumed, RandomisedRule):
        raise NotIdentifiable(
            f"{assumed.name}: the rule is deterministic, so choices have no probability at other parameters.",
            remedy="Only rules that choose at random have a population.",
        )
    free = free_parameters(assumed, noise.deviation)
    on_means = settled_prior(_around_rewards(record, noise) if prior is None else prior, noise, None)
    belief = belief_of(on_means, len(record.arms), noise, None)
    lengths = horizons(horizon, record).tolist()
    people = [
        Participant(record.select(at), assumed, free, belief, lengths[at], number, seed) for at in range(len(record))
    ]
    shared, known = values == "shared", all(each.rewards_known for each in people)
    if shared and not known:
        raise NotIdentifiable(
            "Hidden values of the arms that participants share are not estimated: nothing but choices shows them, and "
            "no way to read them that was tried had intervals that hold.",
            remedy=f"Leave {option('values')} out. Where the log holds every reward, values can be shared.",
        )
    tables = checks.in_parts("Reading participants", _table, [(each,) for each in people], workers)
    hierarchy = Hierarchy(tables, free)
    draws = hierarchy.draw(seed)
    if shared:
        draws = replace(draws, values=_given_rewards(record, belief, len(draws.people), seed))
    number = SHARED_PLACES if shared else PLACES
    places = np.linspace(0, len(draws.people) - 1, number).astype(np.intp)
    if draws.values is not None:
        together = np.repeat(draws.values[places, None], SIMULATED, axis=1)  # everybody is simulated with the same
        values_at, drawn = [together] * len(people), [draws.values]
    else:
        tasks = [(each, draws.people[places, at]) for at, each in enumerate(people)]
        values_at = checks.in_parts("Drawing values", _draw_values, tasks, workers)
        drawn = [_known(each.reshape(-1, len(record.arms))) for each in values_at]
    fit = not_checked(NOT_WANTED)
    if wanted(check):
        fit = check_population(
            people, hierarchy, draws.people[places], values_at, draws.log_evidence, noise, seed, workers
        )
    tail = 0.5 - level / 2
    pulls = record.pulls
    means = np.array(
        [[np.quantile(each, tail, axis=0), each.mean(axis=0), np.quantile(each, 1 - tail, axis=0)] for each in drawn]
    )
    if shared:
        means = np.repeat(means, len(people), axis=0)
    seen = np.broadcast_to(pulls.sum(axis=0), pulls.shape) if shared else pulls
    means = np.where((seen > 0)[:, :, None], np.moveaxis(means, 1, 2), np.nan)
    best = np.array([_shares_of_best(each) for each in drawn] * (len(people) if shared else 1))
    common = _common(assumed, free)
    misfits, said = said_of_population(fit, common) if wanted(check) else ([], [])
    unlike = _not_shared(record, noise) if shared else []
    warnings = [*unlike, *misfits, *warnings, *_doubts(draws, free, len(people))]
    notes += said + _remarks(record, hierarchy, draws, free, on_means, assumed.initial * len(record.arms))
    answer = Population(
        rule=common, participants=tuple(record.demonstrations), rounds=record.lengths,
        parameters=free, level=float(level),
        prior=on_means, noise=noise, seed=seed, rewards_known=known, draws=draws, arms=record.arms, pulls=pulls,
        means=means, probability_best=best, check=fit, warnings=tuple(warnings), notes=tuple(notes),
    )  # fmt: skip
    for notice in answer.warnings:
        python_warnings.warn(notice.message, AssumptionWarning, stacklevel=2)
    return answer


def _table(person: Participant) -> Numbers:
    """Tabulate a participant's likelihood; a refusal names the participant."""
    try:
        return person.table()
    except InferenceError as error:
        name = person.log.demonstrations[0]
        raise InferenceError(
            f'participant "{name}": {error.text}', round=error.round, remedy=error.remedy or "Check the rule."
        ) from None


def _given_rewards(record: ActionLog, prior: Belief, number: int, seed: int) -> Numbers:
    """Draw values that everybody shares, where all rewards are known: (draws, arms)."""
    sums, counts = known_rewards(record)
    generator = np.random.default_rng([seed, 12])
    if prior.bernoulli:
        return generator.beta(prior.first + sums, prior.second + counts - sums, (number, sums.size))
    mean, variance = posterior_mean(ArmPrior(prior.first, prior.second, prior.sigma), counts, sums)
    return np.asarray(mean + np.sqrt(variance) * generator.standard_normal((number, sums.size)))


def _not_shared(record: ActionLog, noise: Noise) -> list[Notice]:
    """Warn where rewards show that arms were not worth the same to all participants.

    The scatter of participants' averages around an arm's is chi-squared, nearly: rules pull an arm less often after bad
    rewards.
    """
    pulls, sums = record.pulls, _sums(record)[0]
    average = sums.sum(axis=0) / np.maximum(pulls.sum(axis=0), 1)
    variance = noise.sigma**2 if isinstance(noise, Gaussian) else np.maximum(average * (1 - average), 1e-9)
    scatter = float((pulls * np.square(sums / np.maximum(pulls, 1) - average) / variance).sum())
    freedom = np.count_nonzero(pulls) - np.count_nonzero(pulls.sum(axis=0))
    if not freedom or chi2.sf(scatter, freedom) >= UNLIKE:
        return []
    text = (
        "The rewards contradict that arms were worth the same to all participants: participants' averages of an arm "
        f"differ {math.sqrt(scatter / freedom):.1f} times as much as by chance. The values below describe nobody: "
        f"leave {option('values')} out."
    )
    return [Notice("values-differ", text)]


def _draw_values(person: Participant, places: Numbers) -> Numbers:
    return person.draw_values(places, DRAWS_PER_PLACE)


def _refuse(record: ActionLog) -> None:
    """Refuse a log that shows no population."""
    if not record.ordered:
        raise NotIdentifiable("The log holds pull counts without their order, and parameters need the order.")
    if len(record) < 2:
        raise NotIdentifiable(
            "The log has one participant, and one shows no population.",
            remedy=f"Name the column of participants with {option('columns', {'demonstration': 'NAME'})}.",
        )


def _noise(record: ActionLog, sigma: float | None, bernoulli: bool) -> tuple[Noise, list[Notice], list[Notice]]:
    """Return the rewards' noise with warnings and notes: where all rewards are known, what they show."""
    if sigma is not None or bernoulli or record.rewards is None or np.isnan(record.rewards).any():
        return *assumed_noise(sigma, bernoulli), []
    sums, groups = _sums(record)
    off = record.rewards - (sums / np.maximum(record.pulls, 1)).reshape(-1)[groups]
    freedom = record.rewards.size - np.count_nonzero(record.pulls)
    deviation = float(np.sqrt(np.square(off).sum() / max(freedom, 1)))
    if not deviation > 0:
        deviation = float(record.rewards.std()) or 1.0
    text = (
        "The log holds every reward: sigma is their standard deviation around what an arm gave a participant on "
        f"average, {deviation:.3g}."
    )
    return Gaussian(deviation), [], [Notice("sigma-from-rewards", text)]


def _sums(record: ActionLog) -> tuple[Numbers, NDArray[np.int64]]:
    """Return the sum of each participant's rewards of each arm, all being known, and every round's place in it."""
    assert record.actions is not None
    assert record.rewards is not None
    people = np.repeat(np.arange(len(record)), record.lengths)
    groups = (people * len(record.arms) + record.actions).astype(np.int64)
    sums = np.bincount(groups, weights=record.rewards, minlength=record.pulls.size).astype(np.float64)
    return sums.reshape(record.pulls.shape), groups


def _around_rewards(record: ActionLog, noise: Noise) -> NormalPrior | None:
    """Return a wide prior where the known rewards lie; None where there are none, or they are 0 and 1."""
    if record.rewards is None or not isinstance(noise, Gaussian) or np.isnan(record.rewards).all():
        return None
    centre, spread = float(np.nanmean(record.rewards)), float(np.nanstd(record.rewards))
    return NormalPrior(mean=float(f"{centre:.3g}"), deviation=float(f"{2 * max(noise.sigma, spread):.3g}"))


def _known(draws: Numbers) -> Numbers:
    """Return the draws that there are; if there are none, one of NaN."""
    known = draws[~np.isnan(draws).any(axis=1)]
    return known if len(known) else draws[:1]


def _shares_of_best(draws: Numbers) -> Numbers:
    """Return in which share of the draws every arm is best; NaN where there are no draws."""
    if np.isnan(draws).any():
        return np.full(draws.shape[1], np.nan)
    return np.bincount(draws.argmax(axis=1), minlength=draws.shape[1]) / len(draws)


def _common(rule: RandomisedRule, free: Sequence[FreeParameter]) -> str:
    """Write the rule without the parameters that differ."""
    names = {each.name for each in free}
    head, _, rest = str(rule).partition(":")
    kept = [part for part in rest.split(",") if part and part.partition("=")[0] not in names]
    return f"{head}:{','.join(kept)}" if kept else head


def _doubts(draws: PopulationDraws, free: Sequence[FreeParameter], people: int) -> list[Notice]:
    """Return what may be wrong."""
    found = []
    if people < FEW_PARTICIPANTS:
        text = (
            f"With {counted(people, 'participant')} the spread of the population rests on its prior as much as on "
            "them: read its interval, not its value."
        )
        found.append(Notice("few-participants", text, count=people))
    if draws.effective_size < FEWEST_EFFECTIVE:
        text = (
            f"Only {draws.effective_size:.0f} of the draws of the population count: another seed may move its "
            "intervals."
        )
        found.append(Notice("population-unsettled", text, count=int(draws.effective_size)))
    for at, each in enumerate(free):
        low, high = REACH[each.scale]
        places = np.median(draws.people[:, :, at], axis=0)
        share = float(((places < low + EDGE) | (places > high - EDGE)).mean())
        if share > MANY_AT_EDGE:
            ends = f"{float(each.value(low)):.3g} to {float(each.value(high)):.3g}"
            text = (
                f"For {share:.0%} of the participants {each.name} lies at an end of the range that is searched, "
                f"{ends}: the rule, or the rewards' unit, may be another."
            )
            found.append(Notice("parameter-at-limit", text, count=int(share * people)))
    return found


def _remarks(
    record: ActionLog, hierarchy: Hierarchy, draws: PopulationDraws, free: Sequence[FreeParameter], prior: Prior,
    opening: int,
) -> list[Notice]:  # fmt: skip
    """Return what is worth knowing."""
    found = []
    decided = np.maximum(record.lengths - opening, 0)
    gained = hierarchy.largest + decided * np.log(len(record.arms))
    random = [record.demonstrations[at] for at in np.flatnonzero(gained < CHANCE).tolist()]
    if random:
        text = (
            f"The choices of {counted(len(random), 'participant')} ({listed(random)}) are hardly more probable under "
            "this rule than by chance: their parameters are the population's."
        )
        found.append(Notice("near-chance", text, count=len(random)))
    usual = np.array([np.hypot(each.usual[1], 1.0) for each in free])
    silent = (draws.alone.std(axis=0) > SILENT * usual).all(axis=1) & (gained >= CHANCE)
    if silent.any():
        names = [record.demonstrations[at] for at in np.flatnonzero(silent).tolist()]
        text = (
            f"The choices of {counted(len(names), 'participant')} ({listed(names)}) say next to nothing about the "
            "parameters: what is shown for them is the population's."
        )
        found.append(Notice("population-alone", text, count=len(names)))
    whose = "Every participant has a bandit of their own" if draws.values is None else "All participants share a bandit"
    text = f"{whose}; the prior on every mean is {prior}."
    found.append(Notice("prior", text + f" Change it with {option('prior')}."))
    if any(each.name == SCALED for each in free) and isinstance(prior, NormalPrior) and record.rewards is None:
        text = (
            f"Choices show differences between arms in units of the {SCALED}, and hardly how large both are: that is "
            f"settled by the prior. Under one half as wide, {SCALED} and differences would be down to half as large. "
            f"Give one as wide as you expect arms to differ, with {option('prior')}."
        )
        found.append(Notice("scale-from-prior", text))
    return found
