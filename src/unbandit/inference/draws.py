"""`infer`: draws of every mean from clouds of hidden reward sums."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator, RandomisedRule
from unbandit.errors import InferenceError, LogError, Notice, NotIdentifiable, option
from unbandit.formatting import counted, quoted
from unbandit.inference.clouds import FilterResult, LookAhead, run_filters
from unbandit.inference.filter import CloudCollapsed, FilterPass, log_mean, systematic
from unbandit.inference.prior import CERTAIN, Prior, belief_of
from unbandit.inference.result import Posterior, gaps_of
from unbandit.instance import Bernoulli, Noise
from unbandit.kernels.smc.cloud import ArmPrior, Belief, posterior_mean
from unbandit.log import ActionLog
from unbandit.log.availability import Availability

BAND = (0.025, 0.5, 0.975)

UNSETTLED = 0.125  # share of an interval's half-length that another seed may move a number by
SCATTERED, SCATTERED_BY_CHANCE = 10.0, 1.0  # deviation of the clouds' log evidences; for rules that choose by chance
SCATTERED_THIN, THIN = 0.3, 10.0  # the same, where so few particles of a cloud explained some action
MOST_RESENT = 8_000  # rounds of a log whose clouds are sent again where they differ
SAFELY, FEWEST_TIMES, MOST_TIMES = 1.5, 2.0, 4.0  # with how many times as many particles
NUMBERED_APART = 12  # times the number of clouds, and more: the numbers of clouds that join others
MOST_NAMED = 3  # numbers that are named where another seed would move several so far
SURELY_BEST = 0.95  # the probability from which on an arm is called the best, and has no gap

FEWEST_AGREEING = 20  # the smallest number of draws that must agree with a known best mean


def infer(
    log: ActionLog, rule: Demonstrator, prior: Prior, noise: Noise, horizons: Sequence[int], *,
    anchor: tuple[int, float] | None = None, is_best: bool = False, particles: int | None = None, clouds: int = 4,
    draws: int = 1_000, seed: int = 0, threads: int | None = None, look_ahead: LookAhead | None = None,
    there: Availability | None = None,
) -> Posterior:  # fmt: skip
    """Draw from the posterior of every mean; several demonstrations are taken as of one instance.

    Parameters
    ----------
    anchor, is_best
        An arm (its position) and its known mean, and whether it is known to be the best.
    particles, clouds, draws
        Particles per cloud, clouds, and draws per cloud.
    look_ahead
        How clouds look at the whole log, if that is not to be chosen.
    there
        Which arms could be pulled when, if not all in all rounds.
    """
    check_informative(log, rule)
    check_rewards(log, noise)
    shortest = int(log.lengths.min())
    belief = belief_of(prior, len(log.arms), noise, anchor)
    rivals = None if there is None or there.covers(shortest) else there.rivals(shortest)

    def filtered(
        record: ActionLog, number: int | None, look: LookAhead | None, *, tolerant: bool = False, more: bool = False
    ) -> FilterResult:
        own, first = horizons[: len(record)], NUMBERED_APART * (clouds + 1) if more else 0
        return run_filters(
            record, rule, belief, own, number, clouds, seed, threads, keep_paths=not more, tolerant=tolerant,
            look_ahead=look, there=there, first=first,
        )  # fmt: skip

    def drawn(result: FilterResult) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Return draws from each cloud, and those that agree with a known best mean."""
        each = [draws_of(result, cloud, belief, draws, seed) for cloud in range(result.clouds)]
        means = np.stack(each)
        return means, each if anchor is None or not is_best else agreeing(means, anchor)

    result = filtered(log, particles, look_ahead)
    means, by_cloud = drawn(result)
    chance = isinstance(rule, RandomisedRule)
    if particles is None and not result.resent and int(log.lengths.sum()) <= MOST_RESENT:
        times = more_particles(by_cloud, result, rivals, by_chance=chance)
        if times > 1:
            joins = chance and times < MOST_TIMES  # otherwise many more particles begin anew
            number = round((times - 1 if joins else times) * result.particles)
            with suppress(CloudCollapsed):  # then the first answer stands, with its warning
                again = filtered(log, number, result.look_ahead, more=joins)
                result = result.joined(again) if joins else again
                means, by_cloud = drawn(result)
    if anchor is not None and is_best:
        means = with_best(means, anchor, log.arms, seed)
    evidence, error = log_mean(result.evidences)
    first = result
    if result.twisted and len(log) > 1:  # particles at the end of the first demonstration know what comes after it
        with suppress(CloudCollapsed):  # then the path is what all demonstrations say of it
            first = filtered(log.select(0), particles, None, tolerant=True)
    rounds, path = _path(first)
    return Posterior(
        rule=str(rule), prior=prior, noise=noise, horizon=max(horizons), arms=log.arms, pulls=log.pulls.sum(axis=0),
        means=means, log_evidence=evidence, log_evidence_error=error, evidences=result.evidences,
        effective_size=result.smallest, particles=result.particles, judged=result.judged,
        path_rounds=rounds, path=path,
        warnings=(
            *_relaxed(result), *_few_known(log, rule, result),
            *clouds_differ(by_cloud, log.arms, result.particles, rivals),
            *evidence_differs(result.evidences, result.smallest, result.particles, by_chance=chance),
        ),
        rivals=rivals,
    )  # fmt: skip


def check_informative(log: ActionLog, rule: Demonstrator) -> None:
    """Refuse a log of which no filter can learn anything."""
    if not log.ordered:
        raise NotIdentifiable("The log holds pull counts without their order, and the posterior needs the order.")
    if rule.reveals == "nothing" and log.rewards is None:
        text = f"{rule.name}: its choices do not depend on rewards, so the log reveals nothing about them."
        raise NotIdentifiable(text)
    if (shortest := int(log.lengths.min())) < len(log.arms):
        raise NotIdentifiable(
            f"The log has {counted(shortest, 'round')} for {len(log.arms)} arms: "
            "not every arm can have been tried even once."
        )


def check_rewards(log: ActionLog, noise: Noise) -> None:
    """Refuse known rewards other than 0 and 1 where rewards are Bernoulli."""
    if log.rewards is None or not isinstance(noise, Bernoulli):
        return
    others = np.flatnonzero(~(np.isnan(log.rewards) | np.isin(log.rewards, (0, 1))))
    if others.size:
        at = int(others[0])
        which = int(np.searchsorted(log.offsets, at, side="right")) - 1
        name, value = log.demonstrations[which], float(log.rewards[at])
        where = f"round {at - int(log.offsets[which]) + 1:,}"
        where += "" if len(log) == 1 and name == "1" else f" of {log.noun} {quoted(name)}"
        more = f", the first of {others.size:,} others" if others.size > 1 else ""
        raise LogError(
            f"expected rewards of 0 and 1 for Bernoulli rewards; got {value:g} in {where}{more}.",
            remedy=f"Correct it, or leave {option('bernoulli')} out if rewards are not 0 and 1.", value=value,
        )  # fmt: skip


def draws_of(result: FilterResult, cloud: int, belief: Belief, draws: int, seed: int) -> NDArray[np.float64]:
    """Draw means from one cloud; from each run that it is joined from in proportion to its weight."""
    if result.parts == 1:
        return draw_means(result.passes[cloud][-1], belief, draws, seed, cloud)
    generator = np.random.default_rng([seed, cloud, 8])
    ends = np.floor(draws * np.cumsum(result.masses(cloud)) + generator.random()).astype(np.int64)
    ends[-1] = draws
    drawn = [
        draw_means(result.passes[at][-1], belief, number, seed, at)
        for at, number in zip(range(cloud, len(result.passes), result.clouds), np.diff(ends, prepend=0), strict=True)
    ]
    return generator.permutation(np.concatenate(drawn))


def draw_means(last: FilterPass, belief: Belief, draws: int, seed: int, cloud: int) -> NDArray[np.float64]:
    """Draw means from one cloud: a particle in proportion to its weight, then each mean given its sum."""
    generator = np.random.default_rng([seed, cloud, 2])
    chosen = systematic(last.cloud.log_weights, draws, generator)
    chosen = generator.permutation(chosen)
    totals = (last.cloud.past + last.cloud.sums)[chosen]
    behind = last.cloud.before + (last.pulls if last.pulls.ndim == 1 else last.pulls[chosen])
    if belief.bernoulli:
        drawn = generator.beta(belief.first + totals, belief.second + behind - totals)
        known = belief.first + belief.second >= CERTAIN
        return np.where(known, np.round(belief.first / (belief.first + belief.second), 12), drawn)
    mean, variance = posterior_mean(ArmPrior(belief.first, belief.second, belief.sigma), behind, totals)
    return np.asarray(mean + np.sqrt(variance) * generator.standard_normal(totals.shape))


def with_best(
    means: NDArray[np.float64], anchor: tuple[int, float], arms: tuple[str, ...], seed: int
) -> NDArray[np.float64]:
    """Keep the draws in which no arm is better than the one whose mean is known to be the best."""
    flat = means.reshape(-1, means.shape[-1])
    agree = np.concatenate(agreeing(means, anchor))
    if len(agree) < FEWEST_AGREEING:
        raise InferenceError(
            f'of {len(flat):,} draws {len(agree)} agree that no arm is better than "{arms[anchor[0]]}", the '
            f"most-pulled one, with mean {anchor[1]}.",
            parameter="best_mean",
            count=len(agree),
            remedy=f"Give {option('anchor')} for the arm whose mean is known, or check the rule.",
        )
    chosen = np.random.default_rng([seed, 3]).permutation(np.arange(len(flat)) % len(agree))
    return np.asarray(agree[chosen].reshape(means.shape))


def agreeing(means: NDArray[np.float64], anchor: tuple[int, float]) -> list[NDArray[np.float64]]:
    """Return the draws of each cloud in which no arm is better than the one that is known; of clouds that have any."""
    kept = [each[(np.delete(each, anchor[0], axis=1) <= anchor[1]).all(axis=1)] for each in means]
    return [each for each in kept if len(each)] or kept


def _path(result: FilterResult) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return at some rounds the band of every hidden sample mean, in the first demonstration, given it alone."""
    firsts = [passes[0] for passes in result.passes[: result.clouds]]
    shares = [np.exp(each.cloud.log_weights - each.cloud.log_weights.max()) for each in firsts]
    weights = np.concatenate([share / share.sum() for share in shares])
    chosen = np.random.default_rng(0).choice(weights.size, min(weights.size, 1_000), p=weights / weights.sum())
    values = np.concatenate([each.path() for each in firsts], axis=1)[:, chosen]
    band = np.moveaxis(np.quantile(values, BAND, axis=1), 0, -1) if values.size else np.zeros((0, values.shape[2], 3))
    return firsts[0].rounds[firsts[0].cloud.marks], np.asarray(band)


def _relaxed(result: FilterResult) -> list[Notice]:
    """Name the first round whose choice no particle of a cloud explains exactly."""
    rounds = result.relaxed
    if not rounds:
        return []
    more = f" (and in {len(rounds) - 1} more)" if len(rounds) > 1 else ""
    text = (
        f"In round {rounds[0]}{more} no particle explains the choice exactly: the rule may not have made this log, "
        "or more particles are needed."
    )
    return [Notice("strained", text, round=rounds[0])]


def _few_known(log: ActionLog, rule: Demonstrator, result: FilterResult) -> list[Notice]:
    """Warn where the level of all means rests on a few known rewards, for which a cloud is a poor approximation.

    Not where particles were drawn given the whole log: known rewards are part of it.
    """
    if log.rewards is None or result.twisted or not getattr(rule, "shifts", True):
        return []
    known = int(np.count_nonzero(~np.isnan(log.rewards)))
    text = (
        f"The common level of the means is based on {known} known reward(s), and the cloud may have too few values of "
        "it: trust the gaps more than the means, and compare two seeds."
    )
    return [Notice("level-from-rewards", text)]


def more_particles(
    clouds: Sequence[NDArray[np.float64]], result: FilterResult, rivals: NDArray[np.bool_] | None, *, by_chance: bool
) -> float:
    """Return how many times as many particles let clouds agree, by how far they are from it; 1 if they do.

    Variances fall in proportion to the number of particles. What clouds have missed takes more than that.
    """
    if evidence_differs(result.evidences, result.smallest, result.particles, by_chance):
        return MOST_TIMES
    if len(clouds) == 1 or not all(len(each) for each in clouds):  # none may agree with a known best mean
        return 1.0
    furthest = max((move.share for move in movements(clouds, rivals)), default=0.0)
    if furthest <= UNSETTLED:
        return 1.0
    fewest = SAFELY if by_chance else FEWEST_TIMES  # clouds that begin anew take all of it, those that join a part
    return float(np.clip(SAFELY * (furthest / UNSETTLED) ** 2, fewest, MOST_TIMES))


def clouds_differ(
    clouds: Sequence[NDArray[np.float64]], arms: tuple[str, ...], particles: int, rivals: NDArray[np.bool_] | None
) -> list[Notice]:
    """Warn where another seed would typically move a mean or a gap by an eighth of its interval's half-length.

    That is, roughly, where expectations by single clouds scatter by a third of the posterior's standard deviation.
    """
    moves = [] if len(clouds) == 1 else movements(clouds, rivals)
    far = sorted((move for move in moves if move.share > UNSETTLED), key=lambda move: -move.share)
    if not far:
        return []
    named = [
        f"the {each.quantity} of {quoted(arms[each.arm])} by {each.size:.2g} ({each.share:.0%} of its interval's "
        "half-length)"
        for each in far[:MOST_NAMED]
    ]
    more = f" and {counted(len(far) - MOST_NAMED, 'more number')} as far" if len(far) > MOST_NAMED else ""
    text = (
        f"The computation has not converged: another seed would typically change {', '.join(named)}{more}. Give more "
        f"{option('particles')} than {particles:,}."
    )
    return [Notice("clouds-differ", text, arm=arms[far[0].arm])]


def evidence_differs(evidences: NDArray[np.float64], smallest: float, particles: int, by_chance: bool) -> list[Notice]:
    """Warn where clouds agree on the means, or nearly, and not on how probable the log is.

    Clouds that find less of the evidence have missed explanations of the log that others found, and all of them may
    have missed more. For rules without chance single decisions rule out nearly all particles, and that says little.
    """
    finite = evidences[np.isfinite(evidences)]
    if finite.size < 2:
        return []
    deviation = float(finite.std(ddof=1))
    most = SCATTERED_BY_CHANCE if by_chance else SCATTERED
    if not (deviation > most or (by_chance and smallest < THIN and deviation > SCATTERED_THIN)):
        return []
    text = (
        f"The computation may have missed explanations of the log: independent runs find logarithms of its probability "
        f"from {finite.min():.1f} to {finite.max():.1f}. Intervals may be too short. Give more {option('particles')} "
        f"than {particles:,}, or compare two seeds."
    )
    return [Notice("evidence-differs", text)]


@dataclass(frozen=True)
class Movement:
    """By how much another seed would typically move a number."""

    quantity: str  # mean or gap
    arm: int
    size: float  # the standard deviation of the difference of two runs
    share: float  # of the half-length of the number's 95% interval


def movements(
    clouds: Sequence[NDArray[np.float64]], rivals: NDArray[np.bool_] | None = None
) -> list[Movement]:  # fmt: skip
    """Compare independent clouds: draws of the means, (draws, arms) from each of `C` clouds.

    An expectation by all clouds has the Monte-Carlo variance `b^2 / C`, where `b^2` is the variance of expectations by
    one cloud; two runs differ by `sqrt(2 b^2 / C)`. Four clouds show `b` poorly, so that each arm's `b^2`, in units of
    its interval, is averaged with what all arms have on average. Left out are numbers without an interval: a known
    mean, and the gap of an arm that is surely the best. `rivals` as in `gaps_of`.
    """
    best = (gaps_of(np.concatenate(clouds), rivals) == 0).mean(axis=0)
    result = []
    for quantity, left_out in (("mean", np.zeros(best.size, np.bool_)), ("gap", best >= SURELY_BEST)):
        draws = [gaps_of(each, rivals) if quantity == "gap" else each for each in clouds]
        low, high = np.quantile(np.concatenate(draws), BAND[::2], axis=0)
        half = (high - low) / 2
        places = np.flatnonzero(~left_out & (half > 0))
        centres = np.array([each.mean(axis=0) for each in draws])[:, places]
        shares = 2 / len(clouds) * centres.var(axis=0, ddof=1) / np.square(half[places])
        steadied = np.sqrt((shares + shares.mean()) / 2) if places.size else shares
        for arm, share in zip(places.tolist(), steadied.tolist(), strict=True):
            result.append(Movement(quantity, arm, share * float(half[arm]), share))
    return result


def draws_between(
    means: NDArray[np.float64], points: NDArray[np.float64], places: NDArray[np.float64], weights: NDArray[np.float64],
    generator: np.random.Generator, *, bounded: bool = False,
) -> NDArray[np.float64]:  # fmt: skip
    """Return draws averaged over numbers of a rule, of which there are draws under a few values only.

    Draws alone would end where these few values do, and so would intervals. So each goes from the value that it was
    drawn under, the nearest, to one among all that are possible, by as much as mean and deviation of the draws differ
    between the values.

    Parameters
    ----------
    means
        Draws under each value: (values, clouds, draws, arms).
    points, places, weights
        The values, (values, numbers), and what is possible: places, (places, numbers), with weights that sum to 1.
    bounded
        Whether means are between 0 and 1.
    """
    values, clouds, draws, arms = means.shape
    scale = np.maximum(np.sqrt(weights @ np.square(places - weights @ places)), 1e-12)
    if bounded:
        inside = np.clip(means, 1e-12, 1 - 1e-12)
        means = np.log(inside / (1 - inside))
    flat = means.reshape(values, -1, arms)
    middle, deviation = flat.mean(axis=1), np.maximum(flat.std(axis=1), 1e-12)
    drawn = generator.choice(len(places), size=(clouds, values * draws), p=weights)
    nearest = np.square((places[:, None] - points) / scale).sum(axis=2).argmin(axis=1)[drawn]
    which = np.empty_like(drawn)
    for cloud, value in np.ndindex(clouds, values):
        own = nearest[cloud] == value
        turns = [generator.permutation(draws) for _ in range(-(-int(own.sum()) // draws))]
        which[cloud, own] = np.concatenate([*turns, np.empty(0, np.int64)])[: own.sum()]
    start = means[nearest, np.arange(clouds)[:, None], which] - middle[nearest]
    shift = _between(points, middle, places)[drawn] - _between(points, middle, points)[nearest]
    there, here = (
        _between(points, deviation, at).clip(deviation.min(axis=0), deviation.max(axis=0)) for at in (places, points)
    )
    moved = middle[nearest] + start * there[drawn] / here[nearest] + shift
    return np.asarray(1 / (1 + np.exp(-moved)) if bounded else moved)


def _between(
    points: NDArray[np.float64], known: NDArray[np.float64], places: NDArray[np.float64]
) -> NDArray[np.float64]:  # fmt: skip
    """Return what is known at points, (points, anything), at other places: along straight lines, or on a plane."""
    if points.shape[1] > 1:
        terms = [np.column_stack([np.ones(len(each)), each]) for each in (points, places)]
        return np.asarray(terms[1] @ np.linalg.lstsq(terms[0], known, rcond=None)[0])
    order = np.argsort(points[:, 0])
    x, y = points[order, 0], known[order]
    after = np.clip(np.searchsorted(x, places[:, 0]), 1, len(x) - 1)
    share = (places[:, 0] - x[after - 1]) / np.maximum(x[after] - x[after - 1], 1e-12)
    return np.asarray(y[after - 1] + share[:, None] * (y[after] - y[after - 1]))
