"""Whether a rule fits a log with contexts: rivals that explain the choices better.

Under the assumed rule and prior, the ratio of another rule's evidence to its own exceeds `r` with a probability of at
most `1 / r`, and so does that of a mixture of rivals. Evidence of rivals comes from the Gaussian approximation, which
is nearly exact for cuts and falls short for choices by chance; that of the assumed rule from particles.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from unbandit.contexts.clouds import run_clouds
from unbandit.contexts.design import INTERCEPT, Design
from unbandit.contexts.expectation import ChoiceRecord, approximate, log_rewards, path_of, rough_evidence
from unbandit.errors import Notice
from unbandit.fit import Check
from unbandit.formatting import counted, more_probable, number
from unbandit.kernels.compile import Numbers
from unbandit.kernels.simulate_linear import GREEDY, SOFTMAX, THOMPSON, UCB

DOES_NOT_FIT = 0.01  # the error probability of the check
OTHER_STRENGTHS = (0.25, 0.5, 2.0, 4.0)  # times that of the assumed rule
OTHER_NOISE = (0.5, 2.0)  # times the assumed one
OWN_WEIGHT, RANDOM_WEIGHT = 0.5, 0.1  # of rivals of the rule's own kind together, and of choices at random
CONFIRMED = 3  # rivals whose evidence is computed by particles, before a rule is said not to fit
MOST_WORK = 15_000_000  # comparisons times the square of the coefficients of the part that is checked
DISJOINT_WORK = 30_000_000  # the same of a rival with coefficients for each arm, beyond which it is not compared
PARTICLES = 500  # of a cloud for a part
OTHER_BATCHES = (5, 10, 20, 50, 100)  # rounds after which a rival takes up rewards
MOST_FEATURES = 10  # of which each is left out in turn
OTHER_CAUSES = (
    "A feature that the learner used may be missing as well, coefficients may have changed over time or be larger than "
    "the prior expects, or rewards may have come late."
)
NOTED = ("fits", "fitted")  # codes of notes that are no warnings
CLOSE = math.log(20)  # nats by which a rival may be behind the best, and still be named


def check_record(
    record: ChoiceRecord, name: str, *, sigma: float, prior: float, log_evidence: float, seed: int,
    design: Design | None = None,
) -> Check:  # fmt: skip
    """Compare a rule's evidence with that of rivals, on the first part of a long record.

    `log_evidence` is that of the choices, given the known rewards; those count where a rival has other noise. The
    `design` names features and arms; without it, rivals have the same ones.
    """
    part = first_part(record)
    if part is not record:
        approximation = approximate(part, path_of(part, sigma=sigma, prior=prior))
        log_evidence = run_clouds(approximation, particles=PARTICLES, clouds=2, seed=seed).log_evidence[0]
    rivals = _rivals(part, name, sigma, prior, design)
    evidences = np.array([rough_evidence(each, noise, prior) for _, each, noise, _ in rivals])
    said = [*(text for text, *_ in rivals), "a choice at random"]
    log_weights = np.log([*(weight for *_, weight in rivals), RANDOM_WEIGHT])
    values = np.append(evidences, -float(np.log(np.diff(part.offsets)).sum()))
    own = log_rewards(part, sigma, prior)
    by_rewards = np.array([*(log_rewards(each, noise, prior) - own for _, each, noise, _ in rivals), 0.0])
    values += by_rewards
    p_value = _bound(log_weights + values - log_evidence)
    if p_value <= DOES_NOT_FIT:  # an approximation may fail: what counts is confirmed by particles
        order = np.argsort(-values[:-1])
        for at in order[:CONFIRMED]:
            _, rival, noise, _ = rivals[at]
            values[at] = _exact_evidence(rival, noise, prior, seed) + by_rewards[at]
        values[order[CONFIRMED:]] = -math.inf
        p_value = _bound(log_weights + values - log_evidence)
    rounds = record.chosen.size
    choices = f"all {rounds:,} choices" if part is record else f"the first {part.chosen.size:,} of {rounds:,} choices"
    apart = ""
    if any("(disjoint=" in text for text in said):
        apart = " or the same coefficients for all" if design and design.count > 1 else " or coefficients for each arm"
    tried = (
        f"the same rule with other numbers or noise, in batches, with other features{apart}; other rules; and a choice "
        "at random."
    )
    if p_value > DOES_NOT_FIT:
        reason = f"None of {len(said)} others makes {choices} clearly more probable: {tried}"
        return Check("fits", p_value=p_value, reason=reason, checked=1)
    order = np.argsort(-values)
    instead = tuple(said[at] for at in order if values[at] > values.max() - CLOSE)
    more = more_probable(values.max() - log_evidence)
    reason = f"{instead[0]} makes {choices} {more}. {len(said)} others were compared: {tried}"
    return Check("does not fit", p_value=p_value, reason=reason, instead=instead, checked=1, failed=("1",))


def _bound(logs: Numbers) -> float:
    """Return how probable such odds in favour of rivals are at most."""
    return min(1.0, math.exp(-max(float(np.logaddexp.reduce(logs)), 0.0)))


def _exact_evidence(record: ChoiceRecord, sigma: float, prior: float, seed: int) -> float:
    """Return a rival's log evidence by particles."""
    approximation = approximate(record, path_of(record, sigma=sigma, prior=prior))
    if not math.isfinite(approximation.log_start):
        return -math.inf
    found = run_clouds(approximation, particles=PARTICLES, clouds=2, seed=seed).log_evidence[0]
    return found if math.isfinite(found) else -math.inf


def check_notice(check: Check, rule: str, in_proportion: str | None = None) -> list[Notice]:
    """Say whether a rule fits, and which given number the coefficients are in proportion to, if there is one."""
    if check.verdict == "does not fit":
        text = f"{rule} does not fit the log ({check.chance}): {check.reason} {OTHER_CAUSES}"
        text += " Do not rely on the numbers."
        return [Notice("does-not-fit", text, count=1)]
    if check.verdict != "fits":
        return []
    claim = (check.reason or "").partition(": ")[0].rstrip(".")  # without a list of all that was tried
    text = f"Checked: {claim[:1].lower()}{claim[1:]}."
    if in_proportion is not None:
        name = rule.partition(":")[0]
        remedy = "it must be right." if in_proportion == "sigma" else (
            f"if you do not know it, use {name}:{in_proportion}=fit."
        )  # fmt: skip
        text = (
            f"Coefficients are about in proportion to {in_proportion}, and a log may not show that it is wrong, even "
            f"by a factor of 3: {remedy} {text}"
        )
    return [Notice("fits", text)]


def by_chance_notice(check: Check, rule: str, several: int, noun: str) -> Notice:
    """Say of one of several demonstrations, which fit together, that it would not fit alone."""
    text = (
        f"Checked: {rule} fits the {counted(several, noun)} taken together. This one would not fit "
        f"alone ({check.chance}), as may happen by chance: {check.reason}"
    )
    return Notice("fits", text)


def first_part(record: ChoiceRecord) -> ChoiceRecord:
    """Return the first part of a record that is too long to be checked."""
    work = np.cumsum(np.diff(record.offsets)) * record.vectors.shape[1] ** 2
    rounds = max(int(np.searchsorted(work, MOST_WORK)), 1)
    if rounds >= record.chosen.size:
        return record
    return replace(
        record, vectors=record.vectors[: record.offsets[rounds]], offsets=record.offsets[: rounds + 1],
        chosen=record.chosen[:rounds], known=record.known[:rounds], rewards=record.rewards[:rounds],
    )  # fmt: skip


def _rivals(
    record: ChoiceRecord, name: str, sigma: float, prior: float, design: Design | None
) -> Sequence[tuple[str, ChoiceRecord, float, float]]:
    """Return what else may have made the record: words, how it chooses, the noise, and its weight."""
    labels = {UCB: "linucb:alpha", THOMPSON: "lints:v", GREEDY: "lin-epsilon-greedy:epsilon",
              SOFTMAX: "lin-softmax:temperature"}  # fmt: skip
    scale = prior * math.sqrt(float(np.square(record.vectors).sum(axis=1).mean()))
    strengths = {
        UCB: (sigma, 3 * sigma), THOMPSON: (0.5 * sigma, 2 * sigma), GREEDY: (0.05, 0.2),
        SOFTMAX: (0.05 * scale, 0.3 * scale),
    }  # fmt: skip
    own = [record.strength * factor for factor in OTHER_STRENGTHS]
    own = [each for each in own if record.kind != GREEDY or each < 1]
    rivals = [(f"{labels[record.kind]}={number(each, 3)}", replace(record, strength=each), sigma) for each in own]
    rivals += [(f"{name} with sigma {number(factor * sigma, 3)}", record, factor * sigma) for factor in OTHER_NOISE]
    rivals += [(f"{name} {how}", each, sigma) for how, each in _learning_otherwise(record, design)]
    others = [
        (f"{labels[kind]}={number(each, 3)}", replace(record, kind=kind, strength=each), sigma)
        for kind, values in strengths.items() if kind != record.kind for each in values
    ]  # fmt: skip
    weights = [OWN_WEIGHT / len(rivals)] * len(rivals) + [(1 - OWN_WEIGHT - RANDOM_WEIGHT) / len(others)] * len(others)
    return [(*each, weight) for each, weight in zip(rivals + others, weights, strict=True)]


def _learning_otherwise(record: ChoiceRecord, design: Design | None) -> Iterator[tuple[str, ChoiceRecord]]:
    """Yield the same rule learning otherwise: in batches (or not), for all arms together or each, with other features.

    Other features are one less, or an intercept more.
    """
    rounds = np.arange(record.chosen.size)
    if np.array_equal(record.known, rounds):
        for size in OTHER_BATCHES:
            yield f"in batches of {size} rounds", replace(record, known=rounds // size * size)
    elif record.known.size > 1:
        yield "without batch and delay", replace(record, known=rounds)
    if design is None:
        return
    if (vectors := _otherwise_shared(record, design)) is not None:
        how = "coefficients for each arm (disjoint=true)"
        if design.count > 1:
            how = "the same coefficients for all arms (disjoint=false)"
        yield f"with {how}", replace(record, vectors=_fixed(vectors))
    names = design.names
    features = list(dict.fromkeys(feature for feature, _ in names))
    if not 1 < len(features) <= MOST_FEATURES:
        return
    for feature in features:
        columns = [at for at, (each, _) in enumerate(names) if each == feature]
        which = "intercept (intercept=false)" if feature == INTERCEPT else f'feature "{feature}"'
        yield f"without the {which}", replace(
            record, vectors=_fixed(np.delete(record.vectors, columns, axis=1))
        )  # fmt: skip
    if names[0][1] is None and np.ptp(record.vectors, axis=0).all():
        ones = np.ones((len(record.vectors), 1))
        yield "with an intercept", replace(record, vectors=_fixed(np.hstack((record.vectors, ones))))


def _otherwise_shared(record: ChoiceRecord, design: Design) -> Numbers | None:
    """Return what a disjoint model in place of a shared one multiplies, or the other way; None if that says nothing.

    A shared model needs offers that differ within a round. A disjoint one must not have too many coefficients.
    """
    offers, size = record.vectors.shape
    if design.count > 1:
        vectors = record.vectors.reshape(offers, design.count, design.size).sum(axis=1)
        first = np.repeat(record.offsets[:-1], np.diff(record.offsets))
        return None if np.array_equal(vectors, vectors[first]) else vectors
    if design.arms == 1 or offers * (design.arms * size) ** 2 > DISJOINT_WORK:
        return None
    full = np.zeros((offers, design.arms, size))
    full[np.arange(offers), design.codes[:offers]] = record.vectors
    return full.reshape(offers, -1)


def _fixed(vectors: Numbers) -> Numbers:
    """Return vectors that cannot be written to, as those of a design: kernels are compiled for one kind of array."""
    vectors.flags.writeable = False
    return vectors
