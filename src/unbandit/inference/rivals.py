"""Evidence against a rule: how much more probable would the record be under another rule, or under none at all?

The ratio of two probabilities of a record, another model's over the assumed rule's, is at most 1 on average over the
records that the rule makes, so by Markov's inequality it exceeds 100 in at most one of 100. That holds for a weighted
average of any models that are fixed beforehand, and needs no simulations. A filter's estimate of a probability has no
bias; it is seldom far too large, but often too small where particles are few.

Models without a rule are sequences in which an arm's probability depends on the arm before, or not, and changes from
block to block (Dirichlet-multinomial with a count of 1/2 for each arm, after Krichevsky and Trofimov). They stand for
every rule that chooses at random.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from unbandit import checks
from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, rules
from unbandit.errors import InferenceError, NotIdentifiable, ParameterError
from unbandit.inference.filter import FilterResult, run_filters
from unbandit.inference.prior import Prior, belief_of
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.log import ActionLog

FACTORS = (0.5, 0.7, 1.4, 2.0)  # sigmas beside the assumed one
BATCHES = (2, 3, 4, 5, 8, 10, 16, 20, 25, 32, 50, 100)
BLOCKS = (1, 4, 16)  # of a sequence without a rule
RANDOM = "choices at random"

SCREENED = 0.2  # the share of the record that every rival reads
FINALISTS = 3  # rivals that read all of it
FEW, MANY = 50, 100  # particles for the two


@dataclass(frozen=True)
class Rival:
    """Another rule, or the same with other rewards, that may have made a record."""

    name: str
    rule: Demonstrator
    noise: Noise
    usual: bool = False  # whether these are a rule's own default parameters


def rivals_of(rule: Demonstrator, noise: Noise, log: ActionLog) -> list[Rival]:
    """Return the rule with other noise and batches, and other rules of its kind with usual parameters."""
    found: list[Rival] = []
    arms = len(log.arms)
    if isinstance(noise, Gaussian):
        for factor in FACTORS:
            found.append(Rival(f"{rule} with sigma = {noise.sigma * factor:g}", rule, Gaussian(noise.sigma * factor)))
    if not isinstance(rule, IndexRule | EliminationRule):
        return found
    if isinstance(rule, IndexRule):
        own, actions = getattr(rule, "batch", 1), log.demonstration(0)
        for batch in BATCHES:
            if batch != own and _in_batches(actions, rule.initial * arms, batch):
                found.append(Rival(f"{rule} in batches of {batch}", rule.model_copy(update={"batch": batch}), noise))
    kind = IndexRule if isinstance(rule, IndexRule) else EliminationRule
    for each in rules().values():
        if not issubclass(each, kind) or each.reveals != "values":
            continue
        try:
            guesses = each.guesses(noise, log)
        except ParameterError:
            continue
        allowed = [each for each, _ in guesses if isinstance(noise, Bernoulli) or not each.bernoulli_only]
        default = _usual(each, noise, allowed)
        others = [guess.for_arms(arms) for guess in allowed if guess != default]
        if default is not None and (fitted := default.for_arms(arms)) != rule:
            found.append(Rival(str(default), fitted, noise, usual=True))
        found += [Rival(str(guess), guess, noise) for guess in others if guess != rule]
    return found


def _usual(rule: type[Demonstrator], noise: Noise, guesses: Sequence[Demonstrator]) -> Demonstrator | None:
    """Return a rule with its own default parameters, or the first guess at them."""
    try:
        default = rule()
    except ParameterError:
        return guesses[0] if guesses else None
    if default.bernoulli_only and isinstance(noise, Gaussian):
        return guesses[0] if guesses else None
    return default


def _in_batches(actions: NDArray[np.integer], opening: int, batch: int) -> bool:
    """Return whether an arm only changes every so many rounds after the opening."""
    changes = np.flatnonzero(actions[1:] != actions[:-1]) + 1
    later = changes[changes > opening]
    return bool(later.size and ((later - opening) % batch == 0).all())


def clouds_of(
    log: ActionLog, rule: Demonstrator, noise: Noise, prior: Prior, horizon: int, particles: int, *, clouds: int = 1,
    seed: int = 0, threads: int | None = 1, anchor: tuple[int, float] | None = None,
) -> FilterResult:  # fmt: skip
    """Send clouds of particles through one demonstration, also where no particle explains a round exactly."""
    belief = belief_of(prior, len(log.arms), noise, anchor)
    return run_filters(
        log, rule, belief, [horizon], particles, clouds, seed, threads, keep_paths=False, tolerant=True, relaxing=True
    )


def log_evidence_of(
    log: ActionLog, rule: Demonstrator, noise: Noise, prior: Prior, horizon: int, particles: int, seed: int
) -> float:
    """Return the log evidence of a rule by one cloud; minus infinity if it cannot have made the record."""
    try:
        found = clouds_of(log, rule, noise, prior, horizon, particles, seed=seed)
    except (InferenceError, NotIdentifiable):
        return -math.inf
    return float(found.evidences.max())


@dataclass(frozen=True)
class Weighed:
    """A rival that read the record."""

    name: str
    value: float  # the log of its weight among the rivals times the probability of the record under it
    rival: Rival | None  # None for choices at random
    log_weight: float


def without_rule(actions: NDArray[np.integer], arms: int) -> float:
    """Return the log probability of a sequence of arms under models without a rule, averaged over them."""
    values = [
        sum(_dirichlet(part, arms, remembers) for part in np.array_split(actions, blocks))
        for blocks in BLOCKS
        if blocks <= actions.size
        for remembers in (False, True)
    ]
    return float(np.logaddexp.reduce(values) - math.log(len(values)))


def _dirichlet(actions: NDArray[np.integer], arms: int, remembers: bool) -> float:
    """Return the log probability where each arm's is unknown: the same in every round, or given the arm before."""
    codes = actions.astype(np.int64)
    if remembers:
        counts = np.bincount(codes[:-1] * arms + codes[1:], minlength=arms * arms).reshape(arms, arms)
        first = -math.log(arms)
    else:
        counts, first = np.bincount(codes, minlength=arms)[None], 0.0
    half = 0.5
    rows = gammaln(arms * half) - gammaln(counts.sum(axis=1) + arms * half)
    return first + float(rows.sum() + (gammaln(counts + half) - gammaln(half)).sum())


def weigh(
    log: ActionLog, rule: Demonstrator, noise: Noise, prior: Prior, horizon: int, seed: int, threads: int | None,
) -> list[Weighed]:  # fmt: skip
    """Return the rivals that make the record most probable, the best first, and choices at random."""
    arms, length = len(log.arms), int(log.lengths[0])
    rivals = rivals_of(rule, noise, log)
    start = log.select(0, max(arms * 4, int(SCREENED * length)))
    workers, weights = checks.threads(threads), _log_weights(rivals)

    def evidences(part: ActionLog, which: Sequence[int], particles: int) -> list[float]:
        tasks = [(part, rivals[at].rule, rivals[at].noise, prior, horizon, particles, seed) for at in which]
        found = checks.in_threads(log_evidence_of, tasks, workers)
        return [value + weights[at] for value, at in zip(found, which, strict=True)]

    screened = evidences(start, range(len(rivals)), FEW)
    order = [at for at in np.argsort(screened)[::-1].tolist() if screened[at] > -math.inf][:FINALISTS]
    weighed = [
        Weighed(rivals[at].name, value, rivals[at], float(weights[at]))
        for at, value in zip(order, evidences(log, order, MANY), strict=True)
    ]
    random = without_rule(log.demonstration(0), arms) + float(weights[-1])
    return sorted([*weighed, Weighed(RANDOM, random, None, float(weights[-1]))], key=lambda each: -each.value)


def _log_weights(rivals: Sequence[Rival]) -> NDArray[np.float64]:
    """Return the logs of the rivals' weights, and of choices at random: half for the usual ones, half for the rest."""
    usual = np.array([each.usual for each in rivals] + [True])
    shares = np.where(usual, 1 / usual.sum(), 1 / max(1, (~usual).sum()))
    return np.asarray(np.log(shares / (1 if usual.all() else 2)))
