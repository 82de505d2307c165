"""Does a rule fit many participants? Simulations of the population that was fitted, and rivals of the rule.

Two tests share the probability of a false alarm. One *simulates* every participant at the parameters and values that
were found, and compares statistics of a log (`inference.predictive`), averaged over participants. The other asks how
much more probable all choices are under *rivals*: another learner, and habits that learn nothing. Under the rule, the
ratio of a rival's evidence to its own exceeds `r` with a probability of at most `1 / r`. A rival may be any prediction
of the choices, however rough; what it misses only makes it weaker. The rule's own evidence must not fall short: where
rewards are hidden it depends on the prior of the arms' values, so before odds are against the rule, other priors are
tried, and the one that suits it best counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp

from unbandit import checks
from unbandit.demonstrators import EpsilonGreedy, LearningSoftmax, RandomisedRule
from unbandit.errors import Notice
from unbandit.fit import Check, Statistic, not_checked
from unbandit.formatting import counted, joined, short_numbers, times
from unbandit.hierarchy.levels import Hierarchy
from unbandit.hierarchy.likelihood import Numbers, Participant, free_parameters
from unbandit.inference.check import BY_CHANCE, DOES_NOT_FIT
from unbandit.inference.predictive import compare, statistics_of, wordings
from unbandit.inference.rivals import NEARLY_AS_PROBABLE, ROOM, Odds
from unbandit.inference.steps import opening_chance
from unbandit.instance import Bernoulli, Noise
from unbandit.kernels.smc.cloud import Belief

FEWEST_COMPARED, ROUNDS_PER_ARM = 2, 2  # participants, and rounds of each, below which nothing is compared
MOST_COMPARED = 30  # participants whose choices rivals predict: of more, some are taken, evenly spread
MIXTURES, SPARSE = 4_000, 0.5  # draws of how common each of a rival's parameters is, and their Dirichlet prior
CENTRES, STRENGTHS = (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9), (2.0, 8.0, 40.0)  # of the Beta prior of staying with an arm
PREFERENCES = (0.3, 1.0, 3.0, 10.0, 100.0)  # of the Dirichlet prior of a fixed preference
WIDTHS = (3.0, 1.0, 0.3, 0.1)  # of the prior of hidden values, times the assumed one
CERTAINLY, FEWEST_SEEN = 0.02, 0.2  # how near 0 or 1 a prior's centre may lie, and of how many rewards it may be
STAY = "a habit of staying with an arm, whatever it brought"
PREFERENCE = "a fixed preference for some arms"
WIN_STAY = "staying after a good outcome and leaving after a bad one"

Choices = NDArray[np.integer]


def check_population(
    people: Sequence[Participant], hierarchy: Hierarchy, places: Numbers, drawn: Sequence[Numbers],
    log_evidence: float, noise: Noise, seed: int, workers: int,
) -> Check:  # fmt: skip
    """Check a rule against all participants.

    Parameters
    ----------
    people, hierarchy
        The participants, and both levels.
    places
        Draws of their parameters: (draws, participants, parameters).
    drawn
        For each participant, means of the arms at each of these draws: (draws, means, arms); NaN where there are none.
        Where everybody shares them they are the same for all.
    log_evidence
        Of all choices, under the rule.
    """
    compared = [at for at, each in enumerate(people) if _says_enough(each, drawn[at])]
    if len(compared) < FEWEST_COMPARED:
        least = ROUNDS_PER_ARM * len(people[0].log.arms)
        return not_checked(f"{counted(len(compared), 'participant')} with {least} rounds or more: too few to compare.")
    statistics, by_simulation, number = _by_simulation(people, compared, places, drawn, noise, seed, workers)
    asked = np.unique(np.linspace(0, len(people) - 1, min(len(people), MOST_COMPARED)).round().astype(int)).tolist()
    if len(asked) < len(people):
        log_evidence = hierarchy.only(asked).log_evidence(seed)
    evidences = _evidences([people[at] for at in asked], noise, workers)
    odds = _odds(evidences, log_evidence)
    if odds.log_ratio > ROOM:
        odds = odds._replace(log_ratio=odds.log_ratio - _shortfall(people, asked, places, drawn, workers))
    by_odds = odds.p_value / BY_CHANCE["odds"]
    by_simulation = math.inf if by_simulation is None else by_simulation / BY_CHANCE["simulations"]
    value = min(by_odds, by_simulation)
    whose = "" if len(asked) == len(people) else f" of {len(asked)} participants"
    if value > DOES_NOT_FIT:
        reason = f"The choices{whose} are not clearly more probable under {joined(evidences, 'or')}."
        return Check("fits", min(1.0, value), number, reason, statistics, (), len(compared))
    if by_odds < by_simulation:
        reason = f"The choices{whose} are about {times(odds.log_ratio)} times as probable under {odds.names[0]}."
    else:
        said = statistics[0].sentence
        reason = f"On average over participants, {said[0].lower()}{said[1:]}"
    instead = odds.names if odds.log_ratio > 0 else ()
    return Check("does not fit", value, number, reason, statistics, instead, len(compared))


def said_of_population(check: Check, rule: str) -> tuple[list[Notice], list[Notice]]:
    """Return the warnings and notes that the check of a population gives rise to."""
    name = short_numbers(rule)
    if check.verdict == "not checked":
        return [], [Notice("not-checked", f"Not checked whether people choose by {name}. {check.reason}")]
    if check.verdict == "does not fit":
        text = (
            f"The choices do not look like those of {name}, whatever the parameters of each participant "
            f"({check.chance}). {check.reason} Do not rely on these numbers: they hold only if people choose by "
            "the rule."
        )
        return [Notice("does-not-fit", text)], []
    text = (
        f"Checked: {name} fits these choices. They do not differ noticeably from {check.simulations} simulations of "
        f"{counted(check.checked, 'participant')}. {check.reason} This does not prove the rule: similar rules may fit "
        "as well."
    )
    return [], [Notice("fits", text)]


# Simulations


def _says_enough(person: Participant, means: Numbers) -> bool:
    """Return whether a participant has rounds to compare, and means to simulate at."""
    is_long = int(person.log.lengths[0]) >= ROUNDS_PER_ARM * len(person.log.arms)
    return is_long and bool(np.isfinite(means).all(axis=(1, 2)).any())


def _by_simulation(
    people: Sequence[Participant], compared: Sequence[int], places: Numbers, drawn: Sequence[Numbers], noise: Noise,
    seed: int, workers: int,
) -> tuple[tuple[Statistic, ...], float | None, int]:  # fmt: skip
    """Return statistics averaged over participants, their probability, and how many simulations there are."""
    runs = min(drawn[at].shape[1] for at in compared)

    def both(at: int) -> tuple[Mapping[str, Numbers], Mapping[str, Numbers]]:
        person, arms = people[at], len(people[at].log.arms)
        played = _simulated(person, places[:, at], drawn[at][:, :runs], noise, seed, at)
        return statistics_of(person.log.demonstration(0)[None], arms), statistics_of(played, arms)

    found = checks.in_parts("Checking the rule", both, [(at,) for at in compared], workers)
    names = [name for name in found[0][0] if all(name in own for own, _ in found)]  # of other lengths, not all
    own, others = ({name: np.mean([pair[side][name] for pair in found], axis=0) for name in names} for side in (0, 1))
    log = people[compared[0]].log
    return *compare(own, others, wordings(len(log.arms), int(log.lengths[0]))), runs * len(places)


def _simulated(person: Participant, places: Numbers, means: Numbers, noise: Noise, seed: int, at: int) -> Choices:
    """Play a participant's rounds at every draw of parameters and means: (simulations, rounds)."""
    known = np.flatnonzero(np.isfinite(means).all(axis=(1, 2)))
    runs, played = means.shape[1], []
    for draw in range(len(places)):
        use = draw if draw in known else int(known[draw % known.size])
        values = np.clip(means[use], 0.0, 1.0) if isinstance(noise, Bernoulli) else means[use]
        played.append(
            person.rule_at(places[use].tolist()).demonstrate_at(
                values, noise, person.horizon, length=int(person.log.lengths[0]), seed=seed, threads=1,
                first_run=(at * len(places) + draw) * runs,
            )
        )  # fmt: skip
    return np.concatenate(played)


# Rivals


def _evidences(people: Sequence[Participant], noise: Noise, workers: int) -> dict[str, float]:
    """Return the log evidence of every rival."""
    return {_learner(people[0].rule).name: _learnt(people, noise, workers)} | habits(people)


def _odds(evidences: Mapping[str, float], log_evidence: float) -> Odds:
    """Compare the choices' evidence under the rule with that of its rivals together, each as probable beforehand."""
    names, values = list(evidences), np.array(list(evidences.values()))
    near = [names[at] for at in np.argsort(-values) if values[at] > values.max() - NEARLY_AS_PROBABLE]
    return Odds(float(logsumexp(values)) - math.log(values.size) - log_evidence, tuple(near))


def _shortfall(
    people: Sequence[Participant], asked: Sequence[int], places: Numbers, drawn: Sequence[Numbers], workers: int
) -> float:
    """Return by how many nats the rule's evidence may fall short where rewards are hidden.

    Clouds differ. And values need not follow the prior: participants who share a bandit all have the same. What that
    costs adds up over participants. So each one's choices are evaluated with other priors, at one place of the
    parameters; what is gained by the prior that suits all of them best counts.
    """
    hidden = [at for at in asked if not people[at].rewards_known and np.isfinite(drawn[at]).any()]
    if not hidden:
        return 0.0
    centre = np.mean([np.nanmean(drawn[at], axis=(0, 1)) for at in hidden], axis=0)
    beliefs = other_beliefs(people[hidden[0]].belief, centre)

    def along(at: int) -> list[float]:
        place = places[:, at].mean(axis=0).tolist()
        own = people[at].log_probabilities(place)
        own = own[np.isfinite(own)]
        if not own.size:
            return [0.0] * (1 + len(beliefs))
        gained = [replace(people[at], belief=each).log_probability(place) - float(np.median(own)) for each in beliefs]
        return [float(np.ptp(own)), *gained]

    found = np.array(checks.in_parts("Trying other priors", along, [(at,) for at in hidden], workers)).sum(axis=0)
    return float(found[0] + max(0.0, found[1:].max()))


def other_beliefs(belief: Belief, centre: Numbers) -> list[Belief]:
    """Return priors of several widths, around the mean of the given one and around another centre."""
    found = []
    for width in WIDTHS:
        if not belief.bernoulli:
            found += [belief._replace(first=at, second=belief.second * width**2) for at in (belief.first, centre)]
            continue
        seen = belief.first + belief.second
        number = np.maximum((seen + 1) / width**2 - 1, FEWEST_SEEN)  # of rewards: the variance is m(1 - m)/(number + 1)
        for at in (belief.first / seen, np.clip(centre, CERTAINLY, 1 - CERTAINLY)):
            found.append(belief._replace(first=at * number, second=(1 - at) * number))
    return found


def _learner(rule: RandomisedRule) -> RandomisedRule:
    """Return another rule that learns: with a softmax, or for one with learning rate and softmax a greedy one."""
    common = {name: getattr(rule, name) for name in ("initial", "opening", "batch", "delay")}
    if isinstance(rule, LearningSoftmax):
        return EpsilonGreedy(ties="random", **common)
    return LearningSoftmax(**common)


def _learnt(people: Sequence[Participant], noise: Noise, workers: int) -> float:
    """Return the log evidence of another learner: its parameters are on a small grid, in unknown shares of people."""
    rule = _learner(people[0].rule)
    free = free_parameters(rule, noise.deviation)
    grid = type(rule).grid(noise)
    places = list(product(*([float(each.coordinate(value)) for value in grid[each.name]] for each in free)))

    def along(person: Participant) -> list[float]:
        other = replace(person, rule=rule, parameters=free)
        return [other.rough_log_probability(place) for place in places]

    tasks = [(each,) for each in people]
    table = np.array(checks.in_parts("Comparing with another rule", along, tasks, workers))
    best = table.max(axis=1)
    if not np.isfinite(best).all():
        return -math.inf
    shares = np.random.default_rng(0).dirichlet(np.full(len(places), SPARSE), MIXTURES)
    mixed = np.log(np.maximum(np.exp(table - best[:, None]) @ shares.T, 1e-300)).sum(axis=0)
    return float(logsumexp(mixed) - math.log(MIXTURES) + best.sum())


def habits(people: Sequence[Participant]) -> dict[str, float]:
    """Return the log evidence of habits that learn nothing; of one that goes by rewards, where all are known."""
    arms, first = len(people[0].log.arms), people[0].rule.initial * len(people[0].log.arms)
    actions = [each.log.demonstration(0).astype(np.int64) for each in people]
    opening = sum(opening_chance(each.log, 0, each.rule) for each in people)
    counts = np.array([np.bincount(each[first:], minlength=arms) for each in actions])[:, None]
    strength = np.array(PREFERENCES)[None, :, None]
    each_way = gammaln(strength + counts).sum(axis=2) - gammaln((strength + counts).sum(axis=2))
    each_way += gammaln(arms * strength[..., 0]) - arms * gammaln(strength[..., 0])
    found = {PREFERENCE: opening + _mixed(each_way)}
    begin = max(first, 1)  # the choice before which nothing is remembered
    before, stays = (
        [each[begin - 1 : -1] for each in actions],
        [each[begin:] == each[begin - 1 : -1] for each in actions],
    )
    turns = opening - sum(math.log(max(arms - 1, 1)) * int((~each).sum()) for each in stays)
    turns -= 0.0 if first else len(people) * math.log(arms)
    by_arm = [_stayed(stays, [each == arm for each in before]) for arm in range(arms)]
    if all(each.rewards_known for each in people):
        good = [_good(each.log.rewards)[begin - 1 : -1] for each in people]
        sides = (good, [~each for each in good])
        found[WIN_STAY] = turns + sum(_mixed(_stayed(stays, side)) for side in sides)
    return found | {STAY: turns + _mixed(np.sum(by_arm, axis=0))}


def _good(rewards: Numbers | None) -> NDArray[np.bool_]:
    """Return which rewards are no less than the average so far."""
    assert rewards is not None
    return np.asarray(rewards >= np.cumsum(rewards) / np.arange(1, rewards.size + 1))


def _stayed(stays: Sequence[NDArray[np.bool_]], when: Sequence[NDArray[np.bool_]]) -> Numbers:
    """Return how probable each participant's stays are in some rounds, under each Beta prior: (people, priors)."""
    centres, strengths = (each.ravel() for each in np.meshgrid(CENTRES, STRENGTHS))
    staying, leaving = centres * strengths, (1 - centres) * strengths
    yes = np.array([[int((each & own).sum())] for each, own in zip(stays, when, strict=True)])
    no = np.array([[int((~each & own).sum())] for each, own in zip(stays, when, strict=True)])
    return np.asarray(betaln(staying + yes, leaving + no) - betaln(staying, leaving))


def _mixed(by_prior: Numbers) -> float:
    """Return the log evidence of all participants, whose common prior is any of several: (people, priors)."""
    return float(logsumexp(by_prior.sum(axis=0)) - math.log(by_prior.shape[1]))
